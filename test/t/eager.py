#!/usr/bin/python3
"""test/eager: the differential test of a library that takes codes wherever it may, learnt from few rows."""

import os
import subprocess

import common
from common import check

SEEDS = '1-60'


def seeds():
    done = subprocess.run(
        [os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, 'eager'), '--pg-config',
         common.options.pg_config, '--seeds', SEEDS, '--reduce', '0'],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    last = done.stdout.strip().rpartition('\n')[2]
    check(done.returncode == 0 and last.endswith(', 0 failed'), 'codes that are taken early: ' + last,
          done.stdout[-6000:])


if __name__ == '__main__':
    common.run([seeds])
