#!/usr/bin/python3
"""Every program of the tests and the benchmark finds what it imports, and says how it is used; what
`make check` does not run is not broken unseen.  No server is needed."""

import importlib
import json
import os
import subprocess
import sys

import common
from common import check

ROOT = os.path.dirname(os.path.dirname(common.HERE))
sys.path[:0] = [os.path.join(ROOT, name) for name in ('bench', 'tools', 'test/mutants')]

import cells                            # noqa: E402
import faults                           # noqa: E402
import standard                         # noqa: E402

PROGRAMS = ('bench/run', 'bench/builds', 'bench/neighbour', 'bench/together', 'bench/fmsort', 'bench/report',
            'bench/costs', 'bench/draw', 'bench/progress', 'bench/advise', 'bench/tracked', 'tools/report', 'bench/tpch', 'bench/tpcc', 'bench/demo', 'test/run', 'test/diff/run', 'test/core/run', 'test/core/sqlsmith',
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


def standards_are_understood():
    """Every report of TPC-H and TPC-C has tables that there are; the 22 queries are 22."""
    for name, known in (('tpch', 8), ('tpcc', 9)):
        case = standard.contents(name)
        tables = {words[2] for words in (text.split() for text in case['create']) if words[:2] == ['CREATE', 'TABLE']}
        found = [standard.Standard(name, one, mode, '4MB', case['settings'], 1000)
                 for one in case['reports'] for mode in standard.MODES]
        check(len(tables) == known and all(cell.tables(tables) and cell.query() for cell in found)
              and len({cell.name for cell in found}) == len(case['reports'])
              and {one.get('settings') for one in case['reports']} <= set(case['settings']) | {None},
              'bench/cases/%s.json: %d reports' % (name, len(case['reports'])))
    done = subprocess.run([os.path.join(ROOT, 'bench', 'tpch'), '--list', '--sets', 'queries', '--modes', 'serial'],
                          text=True, stdout=subprocess.PIPE)
    check(done.stdout.splitlines() == ['Q%d, serial, 4MB' % number for number in range(1, 23)],
          'bench/cases/tpch.sql: 22 queries', done.stdout)
    scripts = os.path.join(ROOT, 'bench', 'cases', 'tpcc')
    check({name + '.sql' for name in standard.contents('tpcc')['transactions']} == set(os.listdir(scripts)),
          'bench/cases/tpcc: a script for each transaction')


def faults_fit():
    """The old lines of the faults in test/mutants are in the sources, once each."""
    for name in sorted(os.listdir(os.path.join(ROOT, 'test/mutants'))):
        if name.endswith('.py'):
            importlib.import_module(name[:-len('.py')])     # adds to faults.FAULTS
    for fault in faults.FAULTS:
        with open(os.path.join(ROOT, fault.file)) as f:
            lines = [line.strip() for line in f]
        old = [line.strip() for line in fault.old.split('\n')]
        found = sum(lines[i:i + len(old)] == old for i in range(len(lines)))
        if found != 1:
            check(False, 'fault "%s": its line is there %d times' % (fault.name, found), fault.old)
    check(len(faults.FAULTS) >= 200, 'the faults fit: %d' % len(faults.FAULTS))


if __name__ == '__main__':
    common.run([help_of_each, cases_are_understood, contests_are_understood, standards_are_understood, faults_fit])
