#!/usr/bin/python3
"""test/diff/reduce.py: failures of the differential test become small scripts.

Its failures are made up here: with --refuse the test takes some right answers of
WiscSort for wrong ones, or crashes the server after them.
"""

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DIFF = os.path.join(HERE, os.pardir, 'diff')
sys.path.insert(0, DIFF)

import common                           # noqa: E402
import gen                              # noqa: E402
import queries                          # noqa: E402
from common import check, equal, server  # noqa: E402
from locales import make_locales        # noqa: E402


def reduced(seed, refuse, place, *more):
    """Runs a seed; gives what the test says of its first reduced failure, and
    the text of the script."""
    done = subprocess.run(
        ['/usr/bin/python3', os.path.join(DIFF, 'run'), '--pg-config', common.options.pg_config,
         '--seeds', '%d-%d' % (seed, seed), '--jobs', '1', '--refuse', refuse, '--reduce', '1',
         '--reduced', place] + list(more), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == 1, 'refused answers are failures', done.stdout[-3000:])
    found = re.search(r'reduced to (\d+) rows, (\d+) columns and a query of kind (\w+), .*: (\S+)$',
                      done.stdout, re.M)
    if not check(found, 'a failure is reduced', done.stdout[-3000:]):
        return None, None
    with open(found[4]) as f:
        return found, f.read()


def wrong_answer():
    """A difference that needs two of 1756 rows."""
    with tempfile.TemporaryDirectory(prefix='wiscsort-reduce-') as place:
        found, script = reduced(3, r'differs:(?s)\b1685\b.*\b1463\b', place)
        if found is None:
            return
        check(int(found[1]) <= 10, 'few rows are left', found[0])
        check(int(found[2]) <= 2, 'few columns are left', found[0])
        check(len(script) < 4000 and 'differs' in script, 'the script is small', script[:4000])
        equal([id_ in script for id_ in ('1685', '1463')], [True, True], 'the rows it needs are there')
        # the seed's database has a locale that the machine may lack, as the script says
        if 'make_locale' in script and make_locales(place) is None:
            os.environ['LOCPATH'] = place
        with server() as cluster:
            done = cluster.psql(file=found[4])
        os.environ.pop('LOCPATH', None)
        core, _, ours = done.stdout.partition('WiscSort:\n')
        check('Sort of PostgreSQL:' in core and 'Custom Scan (WiscSort)' in ours, 'it runs core, then WiscSort',
              done.stdout)
        both = re.compile(r'(?s)\b1685\b.*\b1463\b')
        check(both.search(core) and both.search(ours), 'and it shows the rows', done.stdout)


def crash():
    """A crash that needs one of 35 rows."""
    with tempfile.TemporaryDirectory(prefix='wiscsort-reduce-') as place:
        found, script = reduced(57, r'crash:\b23\b', place, '--reduce-time', '15')
        if found is None:
            return
        check(int(found[1]) <= 5 and '-- lost,' in script, 'a crash is reduced, too', script[:4000])


def choices():
    """A query can be made again from its choices, and from simpler ones."""
    again, shorter, plain = [], 0, True
    for seed in range(1, 30):
        tables = gen.Tables(seed, {'icu_de'})
        for number in range(1, 13):
            query = queries.make(seed, number, tables)
            same = queries.make(seed, number, tables, query.drawn)
            again.append((same.steps, same.settings, same.forced) ==
                         (query.steps, query.settings, query.forced))
            simplest = queries.make(seed, number, tables, {})
            shorter += len(str(simplest.steps)) < len(str(query.steps))
            plain = plain and simplest.kind == 'plain'
    check(all(again), 'the same choices give the same query', again)
    check(plain, 'the simplest choices give a plain sort')
    check(shorter > 300, 'the simplest choices give short queries', shorter)


if __name__ == '__main__':
    common.run([choices, wrong_answer, crash])
