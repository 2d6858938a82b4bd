#!/usr/bin/python3
"""What wiscsort.stat counts of few sorts; t/stat.py has the rest."""

import os
import re
import threading
import time

import common
from common import check, equal, healthy, rows, session, skip, value


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


def progress():
    """Progress of a sort of which a LIMIT wants some rows, and of one whose input is slow."""
    with common.server(preload=False, shared_preload_libraries='wiscsort', max_parallel_workers_per_gather='0') as cluster:
        common.core(cluster).execute('CREATE EXTENSION wiscsort')
        cur, other = session(cluster, work_mem='64kB'), session(cluster)
        cur.execute("CREATE TABLE t AS SELECT i, hashint8(i) AS k, repeat('x', 60) AS pad FROM generate_series(1, 20000) i;"
                    ' ANALYZE t')
        cur.execute('BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT * FROM t ORDER BY k LIMIT 2000; FETCH 1000 FROM c')
        time.sleep(0.5)
        there = 'SELECT rows_in, rows_out, estimated_end > clock_timestamp() FROM wiscsort.progress'
        equal(rows(other, there), [(20000, 1000, True)], 'a sort of which a LIMIT wants 2000 rows')
        cur.execute('FETCH 1000 FROM c')
        equal(rows(other, there), [(20000, 2000, False)], 'and which has handed them out')
        cur.execute('COMMIT')
        for few, name in ((-1, 'many'), (512, 'few')):
            cur.execute('SET wiscsort.debug_few = %d' % few)
            slow = threading.Thread(target=cur.execute, args=(
                'SELECT * FROM (SELECT k, pg_sleep(0.002), pad FROM t WHERE i <= 450 OFFSET 0) s ORDER BY k',))
            slow.start()
            seen = []
            while slow.is_alive():
                seen += rows(other, "SELECT rows_in, memory_bytes, phase FROM wiscsort.progress WHERE rows_in > 300")
                time.sleep(0.02)
            slow.join()
            check(any(row[0] < 450 and row[1] > 0 and row[2] == 'input' for row in seen),
                  'rows and memory of a slow input: ' + name, seen[:5])
        healthy(cluster, 'progress')


def devices():
    """Blocks that come from a device while rows are handed out, also of a sort whose rows stay in their table."""
    settings = {'shared_preload_libraries': 'wiscsort', 'max_parallel_workers_per_gather': '0', 'shared_buffers': '1MB'}
    if common.major() >= 18:
        settings['io_method'] = 'sync'          # what I/O workers read is not the process's
    with common.server(preload=False, **settings) as cluster:
        common.core(cluster).execute('CREATE EXTENSION wiscsort')
        cur = session(cluster, work_mem='16MB')
        cur.execute("CREATE TABLE t AS SELECT i, hashint8(i) AS k, repeat(md5(i::text), 20) AS pad"
                    ' FROM generate_series(1, 20000) i')
        cur.execute('VACUUM (FREEZE, ANALYZE) t')
        path = os.path.join(cluster.data, value(cur, "SELECT pg_relation_filepath('t')"))
        counted = "SELECT coalesce(sum(blocks_from_device), 0)::int FROM wiscsort.stat"
        cur.execute('SET wiscsort.record_store = heap; SET wiscsort.direct_read = off; SET wiscsort.read_threads = 0')
        for dropped in (False, True):
            before = value(cur, counted)
            cur.execute('CHECKPOINT')
            cur.execute('BEGIN; DECLARE c CURSOR FOR SELECT * FROM t ORDER BY k OFFSET 0; FETCH 1 FROM c')
            if dropped:
                with open(path, 'rb') as f:
                    os.fsync(f.fileno())
                    os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            cur.execute('MOVE ALL FROM c; COMMIT')
            blocks = value(cur, counted) - before
            check((blocks > 100) == dropped, 'blocks from the device: %s' % ('dropped' if dropped else 'cached'), blocks)
        healthy(cluster, 'devices')


def many_roles():
    """More roles than there is room for, all without query identifiers: those that sorted longest ago share a row,
    and a query has its own again."""
    if common.options.core:
        return skip('roles', "PostgreSQL's own sort has no statistics")
    with common.server(preload=False, shared_preload_libraries='wiscsort', compute_query_id='off') as cluster:
        common.core(cluster).execute('CREATE EXTENSION wiscsort')
        cur, other = session(cluster, work_mem='64kB'), common.core(cluster)
        cur.execute('CREATE TABLE s AS SELECT i FROM generate_series(1, 50) i; GRANT SELECT ON s TO PUBLIC')
        most = value(cur, 'SELECT max_rows FROM wiscsort.stat_info')
        value(cur, 'SELECT wiscsort.stat_reset()')
        count = most + 150
        cur.execute("""DO $$ BEGIN
            FOR n IN 1 .. %d LOOP
                EXECUTE 'CREATE ROLE r' || n;
                EXECUTE 'SET LOCAL ROLE r' || n;
                EXECUTE 'SELECT count(*) FROM (SELECT i FROM s ORDER BY i OFFSET 0) s';
                RESET ROLE;
            END LOOP; END $$""" % count)
        found = rows(other, 'SELECT count(*), sum(sorts), max(sorts) FILTER (WHERE userid IS NULL),'
                          " count(*) FILTER (WHERE usename LIKE 'r%'), min(substr(usename, 2)::int)"
                          " FILTER (WHERE usename LIKE 'r%') FROM wiscsort.stat WHERE sorts > 0")[0]
        given_up = value(cur, 'SELECT rows_given_up FROM wiscsort.stat_info')
        equal((found[1], found[2], found[3] + found[2], found[4]), (count, given_up, count, given_up + 1),
              'the oldest share a row, and none is lost')
        check(0 < given_up < 300 and found[0] <= most + 1, 'others have their own', (found, given_up))
        cur.execute('SET compute_query_id = on')
        for n in range(count - 1, count + 1):
            cur.execute('SET ROLE r%d' % n)
            rows(cur, 'SELECT i FROM s ORDER BY i')
            cur.execute('RESET ROLE')
        equal(rows(other, "SELECT usename, query_id IS NOT NULL, sorts FROM wiscsort.stat WHERE usename IN ('r%d', 'r%d')"
                        ' ORDER BY 1, 2' % (count - 1, count)),
              [('r%d' % n, own, 1) for n in range(count - 1, count + 1) for own in (False, True)], 'a query has its own row')
        equal(value(other, 'SELECT sum(sorts)::int FROM wiscsort.advise_workload()'), count + 2, 'advice is of all')
        # advice of so many rows is sorted on disk itself
        left = value(other, 'SELECT sum(left_to_core)::int FROM wiscsort.stat')
        equal(value(other, 'SELECT wiscsort.stat_reset()'), count + 2 + left, 'and so is what is forgotten')
        healthy(cluster, 'many_roles')


if __name__ == '__main__':
    common.run([seldom, progress, devices, many_roles])
