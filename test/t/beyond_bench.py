#!/usr/bin/python3
"""Sorts of tables larger than a server's memory, as bench/run checks them: each returns the rows that PostgreSQL's
own sort returns, in order.  Nothing is timed."""

import json
import os
import subprocess
import sys

import common
from common import check

ROOT = os.path.dirname(os.path.dirname(common.HERE))
CASE = 'beyond_small'
MEGABYTES = 200                 # of the case's memory cgroups


def larger_than_memory(_group):
    done = subprocess.run([sys.executable, os.path.join(ROOT, 'bench', 'run'), '--case', CASE, '--pairs', '0',
                           '--pg-config', common.options.pg_config], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    with open(os.path.join(ROOT, 'bench', 'cases', CASE + '.json')) as f:
        cells = [(cell['name'], str(cell['rows'])) for cell in json.load(f)['cells']]
    check(done.returncode == 0, 'bench/run checks sorts beyond memory', done.stdout[-3000:])
    for name, rows in cells:
        found = [line[len(name):].split() for line in done.stdout.splitlines()
                 if line.startswith(name + ' ') and ' wisc ' in line]
        check(len(found) == 1, name + ': once, and WiscSort sorts', done.stdout[-3000:])
        check(found and found[0][0] == rows and 'same' in found[0] and 'ERROR' not in found[0],
              name + ': its answer is right', found)


def beyond_memory():
    common.limited(MEGABYTES, larger_than_memory)


if __name__ == '__main__':
    common.run([beyond_memory])
