#!/usr/bin/python3
"""What wiscsort.stat counts of few sorts; t/stat.py has the rest."""

import re

import common
from common import check, equal, healthy, rows, session


def seldom():
    """Rows that travel because the page cache is used up, rows that are copied although the plan leaves them in
    their table, and blocks that are read in another way than was asked for."""
    with common.server(preload=False, shared_preload_libraries='wiscsort', max_parallel_workers_per_gather='0',
                       plan_cache_mode='force_generic_plan', max_files_per_process='64') as cluster:
        common.core(cluster).execute('CREATE EXTENSION wiscsort')
        cur = session(cluster, work_mem='64kB')
        cur.execute("CREATE TABLE t AS SELECT i, hashint8(i) AS k, md5(i::text) AS m, repeat('x', 60) AS pad"
                    ' FROM generate_series(1, 20000) i; ANALYZE t')

        def counted():
            return rows(cur, 'SELECT coalesce(sum(travelled), 0)::int, coalesce(sum(copied), 0)::int,'
                        ' coalesce(sum(io_refused), 0)::int FROM wiscsort.stat')[0]

        cur.execute("SET wiscsort.record_store = inline; SET wiscsort.io_method = 'sync'")
        rows(cur, 'SELECT * FROM t ORDER BY m')
        equal(counted(), (0, 0, 0), 'who asks for rows inside runs is not counted')
        cur.execute("SET wiscsort.record_store = auto; SET wiscsort.cache_size = '300kB'")
        rows(cur, 'SELECT * FROM t ORDER BY m')
        equal(counted(), (0, 0, 0), 'nor is a sort of more rows than that, which is known before')
        rows(cur, 'SELECT * FROM t WHERE i % 1 = 0 ORDER BY m')      # of which the planner expects 1 in 200
        equal(counted(), (1, 0, 0), 'rows travelled')
        cur.execute("SET wiscsort.cache_size = -1; SET wiscsort.record_store = heap; PREPARE p AS"
                    ' SELECT * FROM t ORDER BY k, i')
        rows(cur, 'EXECUTE p')
        equal(counted(), (1, 0, 0), 'rows stayed in their table')
        cur.execute("SET wiscsort.debug_force = off; SET wiscsort.record_store = auto; SET effective_cache_size = '2MB'")
        rows(cur, 'EXECUTE p')
        equal(counted()[1], 1, 'rows were copied')
        cur.execute('SET wiscsort.debug_force = on; SET wiscsort.record_store = inline; RESET effective_cache_size')
        refused = counted()[2]
        for method in rows(cur, "SELECT enumvals FROM pg_settings WHERE name = 'wiscsort.io_method'")[0][0]:
            cur.execute("SET wiscsort.io_method = '%s'" % method)
            plan = '\n'.join(row[0] for row in rows(cur, 'EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM t ORDER BY m'))
            was = re.search(r'I/O Method: (\S+)', plan).group(1)
            refused += was != (method if method != 'auto' else 'libaio')
            equal(counted()[2], refused, '%s was %s' % (method, was))
        cur.execute("SET wiscsort.io_method = 'io_uring'; SET work_mem = '256kB'; BEGIN")
        for n in range(30):             # more than there are descriptors for
            cur.execute('DECLARE c%d CURSOR FOR SELECT * FROM t ORDER BY m; FETCH 1000 FROM c%d' % (n, n))
        cur.execute('COMMIT')
        check(counted()[2] > refused, 'some had no descriptor for a ring', counted())
        healthy(cluster, 'seldom')


if __name__ == '__main__':
    common.run([seldom])
