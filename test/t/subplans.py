#!/usr/bin/python3
"""wiscsort.advise() and why() name the sort of a subplan once, whoever refers to it."""

import common
from common import equal, healthy, rows


def of_partitions():
    """The scan of each partition has the same condition."""
    with common.server() as cluster:
        cur = common.session(cluster)
        cur.execute('CREATE EXTENSION wiscsort')
        cur.execute('CREATE TABLE few AS SELECT i FROM generate_series(1, 9) i')
        cur.execute('CREATE TABLE p (i int, v int) PARTITION BY LIST (i)')
        for i in range(1, 4):
            cur.execute('CREATE TABLE p%d PARTITION OF p FOR VALUES IN (%d)' % (i, i))
        cur.execute('INSERT INTO p SELECT 1 + i % 3, i FROM generate_series(1, 300) i')
        cur.execute('ANALYZE few, p')
        query = ('SELECT i FROM p WHERE v > (SELECT f.i FROM few f WHERE f.i <> p.i ORDER BY f.i OFFSET 1 LIMIT 1)')
        for call in ('why($q$%s$q$)', 'advise($q$%s$q$)', 'advise($q$%s$q$, true)'):
            equal(rows(cur, 'SELECT keys FROM wiscsort.' + call % query), [('f.i',)], call)
        healthy(cluster, 'subplans')


if __name__ == '__main__':
    common.run([of_partitions])
