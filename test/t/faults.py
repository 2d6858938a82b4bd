#!/usr/bin/python3
"""Errors of the device, a full disk, short calls, cancels and timeouts at calls on temporary files: the
right rows or one error that fits, and nothing is left.  The long form is test/faults/run."""

import os
import sys

import common
from common import check, skip

sys.path.insert(0, os.path.join(common.HERE, os.pardir, 'faults'))
import cells  # noqa: E402
import inject  # noqa: E402

COUNT = 300


def calls_in_turn():
    if common.options.core:
        return skip('faults in I/O', "PostgreSQL's own sort is not asked")
    if inject.compiler() is None:
        return skip('faults in I/O', 'there is no C compiler')
    run = inject.run(common.options.pg_config, cells.few(), COUNT,
                     lambda what, detail: check(False, what, detail))
    for cell in cells.few():
        tally = run.tallies.get(cell.query)
        if tally is None:
            skip('faults in ' + cell.query, run.skipped[cell.query])
        else:
            check(tally.errors > 0 and tally.right > 0 and tally.failed == 0,
                  'faults in %s: errors or the right rows' % cell.query, vars(tally))
    check(run.failures == 0, 'nothing is left behind, and the backend does not grow', run.failures)


if __name__ == '__main__':
    common.run([calls_in_turn])
