#!/usr/bin/python3
"""Every program of the tests and the benchmark finds what it imports, and says how it is used; what
`make check` does not run is not broken unseen.  No server is needed."""

import os
import subprocess
import sys

import common
from common import check

ROOT = os.path.dirname(os.path.dirname(common.HERE))
sys.path.insert(0, os.path.join(ROOT, 'bench'))

import cells                            # noqa: E402

PROGRAMS = ('bench/run', 'bench/builds', 'bench/neighbour', 'bench/report', 'bench/demo', 'test/run', 'test/diff/run',
            'test/core/run', 'test/core/sqlsmith', 'test/mutants/run', 'test/sanitize/backends', 'tools/cluster.py')


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


if __name__ == '__main__':
    common.run([help_of_each, cases_are_understood])
