#!/usr/bin/python3
"""Every program of the tests and the benchmark finds what it imports, and says how it is used; what
`make check` does not run is not broken unseen.  No server is needed."""

import json
import os
import subprocess
import sys

import common
from common import check

ROOT = os.path.dirname(os.path.dirname(common.HERE))
sys.path[:0] = [os.path.join(ROOT, 'bench'), os.path.join(ROOT, 'test', 'mutants')]

import cells                            # noqa: E402
import faults                           # noqa: E402

PROGRAMS = ('bench/run', 'bench/builds', 'bench/neighbour', 'bench/together', 'bench/fmsort', 'bench/report',
            'bench/costs', 'bench/draw', 'bench/demo', 'test/run', 'test/diff/run', 'test/core/run', 'test/core/sqlsmith',
            'test/mutants/run', 'test/sanitize/backends', 'tools/cluster.py')


def help_of_each():
    for program in PROGRAMS:
        done = subprocess.run([os.path.join(ROOT, program), '--help'], text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        check(done.returncode == 0 and 'usage:' in done.stdout, program + ' --help', done.stdout[-2000:])


def cases_are_understood():
    """Every cell of every case gives its statements."""
    for name in cells.load_cases():
        found = cells.case_cells([name], 1000)
        texts = [text for cell in found for text in cell.create_sql() + [cell.query(), cell.check_query()]]
        check(found and all(texts), 'bench/cases/%s.json: %d cells' % (name, len(found)))


def contests_are_understood():
    """Every contest of plans has tables, a query and switches that there are."""
    with open(os.path.join(ROOT, 'bench', 'cases', 'costs.json')) as f:
        contents = json.load(f)
    found = contents['contests']
    check(found and all(set(one['tables']) <= set(contents['tables']) and one['query'].format(rows=1000)
                        and isinstance(one['switches'], list) for one in found),
          'bench/cases/costs.json: %d contests' % len(found))
    done = subprocess.run([os.path.join(ROOT, 'bench', 'costs'), '--list'], text=True, stdout=subprocess.PIPE)
    check(done.returncode == 0 and len(done.stdout.splitlines()) >= len(found), 'bench/costs --list', done.stdout)


def faults_fit():
    """The old lines of test/mutants/faults.py are in the sources, once each."""
    for fault in faults.FAULTS:
        with open(os.path.join(ROOT, fault.file)) as f:
            lines = [line.strip() for line in f]
        old = [line.strip() for line in fault.old.split('\n')]
        found = sum(lines[i:i + len(old)] == old for i in range(len(lines)))
        if found != 1:
            check(False, 'fault "%s": its line is there %d times' % (fault.name, found), fault.old)
    check(len(faults.FAULTS) >= 60, 'the faults fit: %d' % len(faults.FAULTS))


if __name__ == '__main__':
    common.run([help_of_each, cases_are_understood, contests_are_understood, faults_fit])
