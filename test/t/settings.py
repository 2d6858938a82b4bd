#!/usr/bin/python3
"""Loading the library, its settings, and what is promised for `off`: plans
exactly as they are without the library."""

import psycopg2

import common
from common import check, equal, error, explain, healthy, rows, skip, value
from cluster import Cluster

FORCE = ('SET wiscsort.enable = on; SET wiscsort.debug_force = on; SET wiscsort.threshold = 0;'
         ' SET work_mem = \'64kB\'')
QUERY = 'SELECT * FROM t1 ORDER BY k'

TABLES = '''
CREATE TABLE t1 AS SELECT i AS id, i % 100 AS g, hashint8(i) AS k, 'text ' || hashint8(i) AS t,
    i * 1.5 AS n, repeat('x', 100) AS pad FROM generate_series(1, 20000) i;
CREATE TABLE t2 AS SELECT i AS id, i % 50 AS g, hashint8(i + 7) AS k FROM generate_series(1, 3000) i;
CREATE INDEX ON t2 (id);
CREATE TABLE p (id int4, g int4, k int4) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (5000);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (5000) TO (20000);
INSERT INTO p SELECT id, g, k FROM t1 WHERE id < 20000;
CREATE INDEX ON p1 (k);
CREATE VIEW v AS SELECT * FROM t1 ORDER BY n DESC;
ANALYZE t1;
ANALYZE t2;
ANALYZE p;
'''

PLANS = '''
SELECT * FROM t1 ORDER BY k
SELECT * FROM t1 ORDER BY k DESC NULLS LAST, t
SELECT * FROM t1 ORDER BY k LIMIT 10
SELECT id FROM t1 ORDER BY t COLLATE "C" USING >
SELECT id FROM t1 WHERE g = 5 ORDER BY n, id OFFSET 3
SELECT DISTINCT g, k FROM t1
SELECT DISTINCT ON (g) g, id FROM t1 ORDER BY g, k
SELECT g, count(*) FROM t1 GROUP BY g ORDER BY count(*) DESC
SELECT g, k, sum(n) FROM t1 GROUP BY g, k
SELECT g, k, sum(n) FROM t1 GROUP BY ROLLUP (g, k)
SELECT g, string_agg(t, ',' ORDER BY k) FROM t1 GROUP BY g
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY k) FROM t1
SELECT id, rank() OVER (PARTITION BY g ORDER BY k) FROM t1
SELECT id, sum(k) OVER (ORDER BY t), lag(id) OVER (ORDER BY n) FROM t1
SELECT * FROM t1 JOIN t2 USING (g) ORDER BY t1.k, t2.k
SELECT * FROM t1 JOIN t2 ON t1.k = t2.k
SELECT * FROM t1 LEFT JOIN t2 ON t1.id = t2.id ORDER BY t2.k NULLS FIRST
SELECT * FROM t1 FULL JOIN t2 ON t1.k = t2.k AND t1.g = t2.g
SELECT * FROM t1 WHERE EXISTS (SELECT FROM t2 WHERE t2.g = t1.g) ORDER BY t
SELECT * FROM t1 WHERE k NOT IN (SELECT k FROM t2) ORDER BY t
SELECT * FROM t1 a, LATERAL (SELECT * FROM t2 b WHERE b.g = a.g ORDER BY b.k LIMIT 2) s
SELECT (SELECT b.id FROM t2 b WHERE b.g = a.g ORDER BY b.k LIMIT 1) FROM t1 a ORDER BY a.t
SELECT id FROM t1 UNION SELECT id FROM t2 ORDER BY 1
SELECT id, k FROM t1 UNION ALL SELECT id, k FROM t2 ORDER BY 2 DESC
SELECT g FROM t1 INTERSECT SELECT g FROM t2 ORDER BY g
SELECT g FROM t1 EXCEPT ALL SELECT g FROM t2
SELECT * FROM p ORDER BY k
SELECT * FROM p JOIN t1 USING (k) ORDER BY p.id
SELECT g, count(*) FROM p GROUP BY g
SELECT * FROM v WHERE g < 10
SELECT * FROM (SELECT * FROM t1 ORDER BY k LIMIT 5000) s ORDER BY t
WITH x AS MATERIALIZED (SELECT * FROM t1 ORDER BY k) SELECT * FROM x JOIN x y USING (id) ORDER BY y.t
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT * FROM r ORDER BY n
SELECT * FROM generate_series(1, 100000) i ORDER BY i DESC
SELECT id, generate_series(1, 3) FROM t1 ORDER BY k, 2
SELECT * FROM t1 ORDER BY k FOR UPDATE
SELECT * FROM (VALUES (3), (1), (2)) x (a) ORDER BY a
SELECT max(k), min(t), count(DISTINCT g) FROM t1
INSERT INTO t2 SELECT id, g, k FROM t1 ORDER BY t
UPDATE t2 SET k = s.k FROM (SELECT * FROM t1 ORDER BY k LIMIT 100) s WHERE s.id = t2.id
DELETE FROM t2 WHERE id IN (SELECT id FROM t1 ORDER BY t LIMIT 10)
DECLARE c SCROLL CURSOR FOR SELECT * FROM t1 ORDER BY k
'''.strip().splitlines()

ENVIRONMENTS = [
    {}, {'work_mem': '64kB'}, {'work_mem': '64kB', 'enable_hashjoin': 'off', 'enable_hashagg': 'off'},
    {'parallel_setup_cost': 0, 'parallel_tuple_cost': 0, 'min_parallel_table_scan_size': 0},
    {'enable_sort': 'off'}, {'enable_incremental_sort': 'off', 'enable_nestloop': 'off'},
    {'enable_partitionwise_join': 'on', 'enable_partitionwise_aggregate': 'on'},
]


def texts(cur, verbose='VERBOSE'):
    """EXPLAIN of all queries, with costs, to the last byte."""
    found = []
    for sql in PLANS:
        try:
            text = '\n'.join(r[0] for r in rows(cur, 'EXPLAIN (%s) %s' % (verbose, sql)))
        except psycopg2.Error as e:
            text = str(e)
            check(False, 'EXPLAIN fails: ' + sql, text)
        found.append((sql, text))
    return found


def plans_when_off():
    """Compares a session without the library with one that has it, off."""
    with common.server(preload=False) as cluster:
        cluster.psql(TABLES)
        for settings in ENVIRONMENTS:
            plain = cluster.connect(**settings).cursor()
            loaded = cluster.connect(**settings).cursor()
            wanted = texts(plain)
            if not common.options.core:
                loaded.execute("LOAD 'wiscsort'; SET wiscsort.debug_force = on; SET wiscsort.threshold = 0")
                forced = texts(loaded)
                changed = sum(one != two for one, two in zip(wanted, forced))
                if settings.get('enable_sort') != 'off':
                    check(changed > 20, 'switched on and forced, most plans change: %s' % settings, changed)
                loaded.execute('SET wiscsort.enable = off')
            found = texts(loaded)
            differing = [pair for pair in zip(wanted, found) if pair[0] != pair[1]]
            check(not differing, 'enable = off: %d plans as without the library: %s'
                  % (len(PLANS), settings), '\n\n'.join(b[0] + '\n' + a[1] + '\n--- off\n' + b[1]
                                                        for a, b in differing))
            check('WiscSort' not in str(found), 'no WiscSort when off: %s' % settings)
            plain.connection.close()
            loaded.connection.close()
        small = cluster.connect(work_mem='8GB').cursor()
        wanted = texts(small)
        if not common.options.core:
            small.execute("LOAD 'wiscsort'")
        found = texts(small)
        equal([a[0] for a, b in zip(wanted, found) if a != b], [],
              'with the default threshold, sorts that fit work_mem keep their plans')
        healthy(cluster, 'plans when off')


def loading():
    """LOAD, session_preload_libraries, shared_preload_libraries, workers."""
    if common.options.core:
        skip('loading', "PostgreSQL's own sort has nothing to load")
        return
    with common.server(preload=False, max_parallel_workers=4) as cluster:
        cluster.psql(TABLES)
        cur = cluster.connect().cursor()
        equal(error(cur, 'SHOW wiscsort.enable')[0], '42704', 'without the library there is no setting')
        cur.execute("LOAD 'wiscsort'")
        works(cur, 'LOAD')
        cur.execute("ALTER ROLE postgres SET session_preload_libraries = 'wiscsort'")
        works(cluster.connect().cursor(), 'session_preload_libraries of a role')
        cur.execute('ALTER ROLE postgres RESET session_preload_libraries')
        cluster.restart({'session_preload_libraries': 'wiscsort'})
        works(cluster.connect().cursor(), 'session_preload_libraries')
        cluster.restart({'session_preload_libraries': '', 'shared_preload_libraries': 'wiscsort'})
        cur = cluster.connect().cursor()
        works(cur, 'shared_preload_libraries')
        cur.execute("LOAD 'wiscsort'")
        works(cur, 'shared_preload_libraries and LOAD')
        cluster.restart({'wiscsort.enable': 'off', 'wiscsort.threshold': '100MB'})
        cur = cluster.connect().cursor()
        equal((value(cur, 'SHOW wiscsort.enable'), value(cur, 'SHOW wiscsort.threshold')),
              ('off', '100MB'), 'settings of the configuration file')
        works(cur, 'after a configuration file that switches it off')
        cur.execute('CREATE ROLE visitor')
        cur.execute('GRANT SELECT ON t1 TO visitor')
        cur.execute('SET ROLE visitor')
        works(cur, 'without any privilege')
        healthy(cluster, 'loading')


def works(cur, how):
    """The setting exists and the node is used, also in parallel workers."""
    cur.execute(FORCE)
    check('WiscSort' in explain(cur, QUERY), how + ': WiscSort is used', explain(cur, QUERY))
    equal(value(cur, 'SELECT count(*) FROM (SELECT k, lag(k) OVER () AS before FROM (%s OFFSET 0) s) s'
                ' WHERE k < before' % QUERY), 0, how + ': and sorts')
    cur.execute('SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;'
                ' SET min_parallel_table_scan_size = 0; SET wiscsort.debug_force = off')
    plan = explain(cur, QUERY, ', ANALYZE, TIMING OFF, SUMMARY OFF')
    check('Gather Merge' in plan and 'WiscSort' in plan and 'Workers Launched: 0' not in plan,
          how + ': in parallel workers', plan)


def values():
    """Values that are refused, with PostgreSQL's own errors."""
    if common.options.core:
        skip('values', "PostgreSQL's own sort has no settings")
        return
    with common.server() as cluster:
        cur = cluster.connect().cursor()
        for name, bad in (('threshold', '-2'), ('threshold', '99999999999999'), ('threshold', 'many'),
                          ('threshold', '1.5 parsecs'), ('sort_kernel', 'bubble'), ('sort_kernel', ''),
                          ('enable', 'maybe'), ('enable', ''), ('debug_force', '17'), ('cache_size', '-2'),
                          ('io_method', 'fast'), ('io_method', 'uring'), ('merge_read', 'both'), ('assist_blocks', '65'),
                          ('assist_blocks', '-2'), ('block_size', '2MB'), ('block_size', '-8kB')):
            code, message = error(cur, "SET wiscsort.%s = '%s'" % (name, bad))
            check(code == '22023' and 'wiscsort.' + name in message, 'refused: %s = %r' % (name, bad),
                  (code, message))
            equal(error(cur, "ALTER SYSTEM SET wiscsort.%s = '%s'" % (name, bad))[0], '22023',
                  'by ALTER SYSTEM too: %s = %r' % (name, bad))
        for name, good, shown in (('threshold', '-1', '-1'), ('threshold', '0', '0'),
                                  ('threshold', '8MB', '8MB'), ('sort_kernel', 'template', 'template'),
                                  ('sort_kernel', 'AUTO', 'auto'), ('enable', 'no', 'off'),
                                  ('debug_force', '1', 'on'), ('cache_size', '1GB', '1GB'),
                                  ('merge_read', 'double', 'double'), ('io_method', 'IO_URING', 'io_uring'),
                                  ('assist_blocks', '0', '0'),
                                  ('block_size', '4', '4kB'), ('block_size', '1MB', '1MB')):
            cur.execute("SET wiscsort.%s = '%s'" % (name, good))
            equal(value(cur, 'SHOW wiscsort.' + name), shown, 'accepted: %s = %s' % (name, good))
        cur.execute('RESET ALL')
        equal([value(cur, 'SHOW wiscsort.' + n) for n in ('enable', 'threshold', 'sort_kernel',
                                                          'debug_force', 'merge_read', 'assist_blocks',
                                                          'block_size', 'io_method')],
              ['on', '-1', 'auto', 'off', 'auto', '-1', '-1', 'auto'], 'the defaults')
        equal(error(cur, 'SET wiscsort.foo = 1')[0], '42602', 'an unknown setting is refused')
        found = {}
        for name, to in (('enable', 'off'), ('threshold', '1MB'), ('record_store', 'heap'), ('cache_size', '1GB'),
                         ('direct_read', 'off'), ('debug_force', 'on')):
            cur.execute("SET wiscsort.%s = '%s'" % (name, to))
            found['wiscsort.' + name] = to
        shown = value(cur, 'EXPLAIN (SETTINGS, FORMAT JSON) SELECT 1')[0]['Settings']
        equal({name: to for name, to in shown.items() if name.startswith('wiscsort.')}, found,
              'EXPLAIN (SETTINGS) shows those that plans depend on')
        cur.execute('RESET ALL')
        equal(rows(cur, "SELECT name FROM pg_settings WHERE name LIKE 'wiscsort.%' AND context <> 'user' ORDER BY name"),
              [('wiscsort.log_min_temp',), ('wiscsort.max_temp',), ('wiscsort.track',)],
              'every user may change them, but for three')
        healthy(cluster, 'values')
    with Cluster(common.options.pg_config) as cluster:
        cur = cluster.connect().cursor()
        cur.execute("SET wiscsort.foo = 1; SET wiscsort.threshold = '7MB'; SET wiscsort.sort_kernel = 'odd'")
        cur.execute("LOAD 'wiscsort'")
        equal(value(cur, 'SHOW wiscsort.threshold'), '7MB', 'a value set before loading is kept')
        equal(value(cur, 'SHOW wiscsort.sort_kernel'), 'auto', 'a bad one is not')
        equal(error(cur, 'SHOW wiscsort.foo')[0], '42704', 'an unknown one is removed')


if __name__ == '__main__':
    common.run([plans_when_off, loading, values])
