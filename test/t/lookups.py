#!/usr/bin/python3
"""Sorts and nested loops that look rows up by an index: rows are not sorted below the loop where that takes them out of
the order in which the other table can be read, and sorted there where it does not."""

import common
from common import check, core, equal, healthy, rows, session

MAKE = """
CREATE TABLE ord AS SELECT i AS key, i %% 5 AS prio, hashint4(i) AS mixed, i %% 100 AS day FROM generate_series(1, %d) i;
CREATE TABLE line AS SELECT i / 4 AS key, hashint4(i / 4) AS mixed, i %% 3 AS a, i %% 2 AS b, repeat('x', 100) AS pad
  FROM generate_series(4, %d) i;
CREATE INDEX ON line (key);
CREATE INDEX ON line (mixed)"""
ORDERS = 20000
EXISTS = ('SELECT prio, count(*) FROM ord WHERE day < 30 AND EXISTS (SELECT * FROM line WHERE line.{0} = ord.{0} AND a < b)'
          ' GROUP BY {1} ORDER BY {1}')
LOOPS = {'enable_hashjoin': 'off', 'enable_mergejoin': 'off', 'enable_hashagg': 'off', 'work_mem': '64kB'}


def sorted_below(cur, query):
    """Is the sort of a query below its nested loop?"""
    cur.execute('EXPLAIN (COSTS OFF) ' + query)
    lines = [line for (line,) in cur.fetchall()]
    loop, sort = (next(i for i, line in enumerate(lines) if word in line) for word in ('Nested Loop', 'Sort)'))
    return sort > loop


def lookups():
    if common.options.core:
        return common.skip('lookups', "PostgreSQL's own sort is hardly ever below a loop")
    for buffers, spoilt in (('1MB', True), ('128MB', False)):
        with common.server(max_parallel_workers_per_gather='0', autovacuum='off', shared_buffers=buffers) as cluster:
            plain = core(cluster, **LOOPS)
            plain.execute(MAKE % (ORDERS, 4 * ORDERS + 3))
            plain.execute('VACUUM ANALYZE ord, line')
            cur = session(cluster, **{**LOOPS, 'wiscsort.debug_force': 'off'})
            for key, by, below in (('key', 'prio', not spoilt), ('key', 'key', True), ('mixed', 'prio', True)):
                query = EXISTS.format(key, by).replace('prio, count', '%s, count' % by)
                equal(sorted_below(cur, query), below, '%s, looked up by %s, sorted by %s' % (buffers, key, by))
                check(rows(cur, query) == rows(plain, query), 'the same rows: ' + query)
            query = 'SELECT * FROM ord JOIN line USING (key) WHERE day < 30 ORDER BY prio LIMIT 5'
            check(sorted_below(cur, query), buffers + ': who wants few rows has them looked up for few')
            healthy(cluster, 'lookups')


if __name__ == '__main__':
    common.run([lookups])
