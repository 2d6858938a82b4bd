#!/usr/bin/python3
"""Sorts of tables larger than a server's memory, as bench/run measures them: each returns the rows that PostgreSQL's
own sort returns, in order.  How long they take does not count here."""

import json
import os
import subprocess
import sys
import tempfile

import common
from common import check, equal

ROOT = os.path.dirname(os.path.dirname(common.HERE))
CASE = 'beyond_small'
MEGABYTES = 200                 # of the case's memory cgroups
LOST = 3                        # bench/run's exit status: answers are right, times are not


def larger_than_memory(_group):
    with tempfile.TemporaryDirectory() as folder:
        lines = os.path.join(folder, 'lines')
        done = subprocess.run([sys.executable, os.path.join(ROOT, 'bench', 'run'), '--case', CASE, '--output', lines,
                               '--pg-config', common.options.pg_config], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        with open(lines) as f:
            cells = [cell for cell in map(json.loads, f) if 'name' in cell]
    check(done.returncode in (0, LOST), 'bench/run measures sorts beyond memory', done.stdout[-3000:])
    with open(os.path.join(ROOT, 'bench', 'cases', CASE + '.json')) as f:
        equal(sorted(cell['name'] for cell in cells), sorted(cell['name'] for cell in json.load(f)['cells']),
              'no cell is left out')
    for cell in cells:
        check('error' not in cell, cell['name'], cell.get('error', ''))
        check(cell.get('used_wiscsort'), '%s: WiscSort sorts' % cell['name'], cell.get('plans'))


def beyond_memory():
    common.limited(MEGABYTES, larger_than_memory)


if __name__ == '__main__':
    common.run([beyond_memory])
