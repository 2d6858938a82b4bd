#!/usr/bin/python3
"""test/eager: the differential test of a library that takes codes wherever it may, learnt from few rows; and tables
of which a library knows nothing but guesses, some of which are wrong."""

import io
import os
import random
import subprocess
import tempfile

import common
from common import check, core, equal, server, session, value
from locales import at_hand, collation

SEEDS = '1-60'
TABLES = 40 if common.ALL else 12
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, 'eager')
LEADS = {'int2': 2, 'int4': 4}         # bytes


def eager(*arguments):
    return subprocess.run([PROGRAM, '--pg-config', common.options.pg_config] + list(arguments),
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def seeds():
    done = eager('--seeds', SEEDS, '--reduce', '0')
    last = done.stdout.strip().rpartition('\n')[2]
    check(done.returncode == 0 and last.endswith(', 0 failed'), 'codes that are taken early: ' + last,
          done.stdout[-6000:])


def numbers(rng, leads, known, steps):
    """Values of the leading columns.  Behind each of their bytes, those of `known`, comes one that is a step ahead."""
    place = rng.randrange(len(known))
    found = []
    for lead in leads:
        value = 0
        for _ in range(LEADS[lead]):
            place = (place + rng.choice(steps)) % len(known)
            value = value << 8 | known[place]
        found.append(value - (1 << (8 * LEADS[lead] - 1)))
    return found


def fill(cur, rng, leads):
    """A table of columns that cannot be null and a text behind.  Keys are made for the first rows: what comes there
    behind a byte has short codes.  Other bytes come behind the same ones later, in groups that texts tell apart."""
    columns = ['k%d %s NOT NULL' % (i, lead) for i, lead in enumerate(leads)]
    cur.execute('DROP TABLE IF EXISTS t')
    cur.execute('CREATE TABLE t (%s)' % ', '.join(columns + ['c text COLLATE "sv_SE.utf8" NOT NULL']))
    known = rng.sample(range(256), 14)
    length = rng.choice([3, 8])
    first = [numbers(rng, leads, known, [1, 2]) for _ in range(60)]
    lines = [rng.choice(first) + [''.join(rng.choices('abcdefgh', k=20))] for _ in range(3000)]
    for _ in range(40):
        group = numbers(rng, leads, known, range(3, 11))
        lines += [group + [''.join(rng.choices('0123456789abcdefghijklmnopqrstuvwxyz', k=length))]
                  for _ in range(rng.choice([12, 100]))]
    cur.copy_from(io.StringIO(''.join('%s\n' % '\t'.join(map(str, line)) for line in lines)), 't')
    cur.execute('ANALYZE t')


def guesses():
    """Wrong guesses of the order of text, behind bytes that prefixes may not tell, are found out in ties and merges."""
    rng = random.Random(20261130)
    with tempfile.TemporaryDirectory(prefix='wiscsort-guesses-') as place, at_hand('sv_SE') as lacking:
        built = eager('--guesses', '--build', place)
        if not check(built.returncode == 0, 'a library that guesses wrongly is built', built.stdout):
            return
        if lacking is not None:
            return common.skip('wrong guesses', lacking)
        with server(preload=False, max_parallel_workers_per_gather=0, jit='off',
                    session_preload_libraries=os.path.join(place, 'wiscsort.so')) as cluster:
            cluster.connect().cursor().execute(collation('sv_SE'))
            mine, others = session(cluster), core(cluster)
            for _ in range(TABLES):
                leads = rng.choice([['int2'], ['int4'], ['int2', 'int4'], ['int4', 'int2'], ['int2', 'int2', 'int2'], []])
                fill(others, rng, leads)
                order = ', '.join(k + rng.choice(['', ' DESC']) for k in ['k%d' % i for i in range(len(leads))] + ['c'])
                query = "SELECT md5(string_agg(t::text, '|')) FROM (SELECT * FROM t ORDER BY %s OFFSET 0) t" % order
                wanted = value(others, query)
                for memory in ('64kB', '128kB', '16MB'):
                    for store in ('spool', 'heap', 'inline'):
                        mine.execute("SET work_mem = '%s'; SET wiscsort.record_store = %s" % (memory, store))
                        equal(value(mine, query), wanted, '%s, then a text: %s, %s, ORDER BY %s' % (leads, memory, store, order))


if __name__ == '__main__':
    common.run([seeds, guesses])
