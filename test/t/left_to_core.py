#!/usr/bin/python3
"""Sorts that would lose are left to core, and EXPLAIN (VERBOSE) says why: files that would not stay in
the page cache of the server's memory cgroup, and comparison functions that would decide too much."""

import os
import shutil
import subprocess
import tempfile

import common
from common import check, explain, healthy

LIMIT = 300                     # MB


def plan(cur, sql):
    return explain(cur, sql, ', VERBOSE')


def in_group(group):
    with common.server(shared_buffers='16MB', max_parallel_workers_per_gather='0') as cluster:
        cur = cluster.connect(work_mem='4MB').cursor()
        cur.execute("CREATE TABLE small AS SELECT hashint8(i) AS k, repeat('x', 80) AS v"
                    ' FROM generate_series(1, 300000) i')
        cur.execute("CREATE TABLE large AS SELECT hashint8(i) AS k, repeat(md5(i::text), 31) AS v"
                    ' FROM generate_series(1, 300000) i')
        cur.execute('ANALYZE')
        for table in ('small', 'large'):
            found = plan(cur, 'SELECT * FROM %s ORDER BY k' % table)
            check('WiscSort' in found, table + ': taken where memory is enough', found)
        group.add(cluster.pid)
        cur = cluster.connect(work_mem='4MB').cursor()
        with open('/proc/%d/cgroup' % common.backend(cur)) as f:
            check('wiscsort-' in f.read(), 'the backend is in the cgroup')
        found = plan(cur, 'SELECT * FROM small ORDER BY k')
        check('(WiscSort)' in found, 'small: taken in the cgroup, too', found)
        found = plan(cur, 'SELECT * FROM large ORDER BY k')
        check('(WiscSort)' in found, 'large: taken in the cgroup', found)
        for setting, bound in ('4GB', 'memory cgroup'), ('64MB', 'effective_cache_size'), ('64GB', 'memory cgroup'):
            cur.execute("SET effective_cache_size = '%s'" % setting)
            found = explain(cur, 'SELECT * FROM large ORDER BY k', ', VERBOSE, ANALYZE')
            check('Record Store: inline' in found and 'Cache Bound: ' + bound in found,
                  'large: rows travel, effective_cache_size = %s' % setting, found)
        cur.execute("SET wiscsort.record_store = 'spool'; SET effective_cache_size = '4GB'")
        found = plan(cur, 'SELECT * FROM large ORDER BY k')
        check('(WiscSort)' not in found and 'left to core' in found and 'memory cgroup' in found,
              'large with a spool: left to core in the cgroup, and EXPLAIN says so', found)
        for setting in ('64MB', '64GB'):
            cur.execute("SET effective_cache_size = '%s'" % setting)
            found = plan(cur, 'SELECT * FROM large ORDER BY k')
            check('(WiscSort)' not in found, 'large with a spool: effective_cache_size = %s' % setting, found)
        cur.execute('RESET wiscsort.record_store; RESET effective_cache_size')
        cur.execute('CREATE TABLE larger AS SELECT k, v, hashint8(-k) AS other FROM large, generate_series(1, 2)'
                    ' WHERE k % 40 <> 0; ANALYZE larger')
        columns = 'SELECT k, other FROM %s ORDER BY k'
        found = explain(cur, columns % 'larger', ', VERBOSE, ANALYZE')
        check('Record Store: inline' in found and 'Cache Bound: scan of the input' in found,
              'columns of a table that does not fit: its scan would push the spool out', found)
        found = explain(cur, 'SELECT k, v FROM small ORDER BY k', ', VERBOSE, ANALYZE')
        check('Record Store: inline' not in found, 'of one that does they stay', found)
        found = explain(cur, columns.replace('%s', '(SELECT DISTINCT k, other FROM larger OFFSET 0) s'), ', VERBOSE, ANALYZE')
        check('scan of the input' not in found, 'what is scanned before the first row counts for nothing', found)
        cur.execute("SET wiscsort.cache_size = '100MB'")
        found = explain(cur, columns % 'larger', ', VERBOSE, ANALYZE')
        check('Record Store: inline' not in found, 'who sets wiscsort.cache_size knows it', found)
        cur.execute('RESET wiscsort.cache_size')
        cur.execute("SET wiscsort.enable = off")
        found = plan(cur, 'SELECT * FROM large ORDER BY k')
        check('WiscSort' not in found, 'nothing is said with enable = off', found)
        cur.connection.close()
        healthy(cluster, 'memory cgroup')


def memory_cgroup():
    common.limited(LIMIT, in_group)


def formats():
    """The reason is a property in every format, and not there without VERBOSE."""
    with common.server(max_parallel_workers_per_gather='0') as cluster:
        cur = cluster.connect(work_mem='1MB', effective_cache_size='8MB').cursor()
        cur.execute("SET wiscsort.record_store = 'spool'")
        cur.execute("CREATE TABLE x AS SELECT hashint8(i) AS k, repeat('x', 80) AS v"
                    ' FROM generate_series(1, 100000) i; ANALYZE x')
        sql = 'SELECT * FROM x ORDER BY k'
        cur.execute('EXPLAIN (VERBOSE, FORMAT JSON) ' + sql)
        found = cur.fetchone()[0]
        check('effective_cache_size' in found[0].get('WiscSort', '') and found[0]['Plan']['Node Type'] == 'Sort',
              'JSON', found)
        for form in ('XML', 'YAML', 'TEXT'):
            cur.execute('EXPLAIN (VERBOSE, ANALYZE, FORMAT %s) %s' % (form, sql))
            found = '\n'.join(r[0] for r in cur.fetchall())
            check(found.count('left to core') == 1, form, found)
        check('left to core' not in explain(cur, sql), 'not without VERBOSE')
        check('left to core' not in plan(cur, 'SELECT * FROM x'), 'not without a sort')
        cur.execute('CREATE FUNCTION inner_sort() RETURNS int8 IMMUTABLE LANGUAGE plpgsql AS'
                    ' $$ DECLARE r int8; BEGIN SELECT k INTO r FROM x ORDER BY k OFFSET 9999; RETURN 1; END $$')
        found = plan(cur, 'SELECT inner_sort(), * FROM x ORDER BY k LIMIT 10')
        check('Sort' in found and 'left to core' not in found, 'not for a sort of a function', found)
        cur.execute('CREATE FUNCTION failing() RETURNS int8 IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM 1 / 0;'
                    ' RETURN 0; EXCEPTION WHEN division_by_zero THEN RETURN 1; END $$')
        found = plan(cur, 'SELECT * FROM x WHERE failing() = 1 ORDER BY k')
        check('left to core' in found, 'also where planning has called a function whose query failed', found)
        cur.execute("SET random_page_cost = 0.01; SET wiscsort.record_store = 'heap'")
        found = plan(cur, sql)
        check('(WiscSort) on' not in found, 'a table that memory does not hold, whatever random_page_cost is', found)
        cur.execute('ALTER TABLESPACE pg_default SET (random_page_cost = 0.01)')
        found = plan(cur, sql)
        check('(WiscSort) on public.x' in found, 'but for a tablespace that says so', found)
        healthy(cluster, 'formats')


def left(cur, sql):
    """The plan is core's."""
    cur.execute('SET wiscsort.enable = off')
    wanted = explain(cur, sql, ', COSTS ON')
    cur.execute('SET wiscsort.enable = on')
    found = explain(cur, sql, ', COSTS ON')
    check(found == wanted, "core's plan: " + sql, found + '\n' + wanted)


def taken(cur, sql):
    found = explain(cur, sql)
    check('(WiscSort)' in found, 'WiscSort: ' + sql, found)


def abbreviations():
    """Abbreviations that only a function of their own compares, as PostGIS has them, are core's."""
    folder = tempfile.mkdtemp(prefix='wiscsort-')
    library = os.path.join(folder, 'abbreviations.so')
    includes = subprocess.run([common.options.pg_config, '--includedir-server'], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()
    subprocess.run(['cc', '-shared', '-fPIC', '-I', includes, '-o', library,
                    os.path.join(os.path.dirname(__file__), 'abbreviations.c')], check=True)
    os.chmod(folder, 0o755)
    with common.server(max_parallel_workers_per_gather='0') as cluster:
        cur = cluster.connect(work_mem='1MB').cursor()
        for name, support in (('plain', ''), ('short', ', FUNCTION 2 support(internal)')):
            operators = {mark: '%s%s' % (mark, '#' if name == 'plain' else '@') for mark in ('<', '<=', '=', '>=', '>')}
            for mark, function in zip(operators, ('int8lt', 'int8le', 'int8eq', 'int8ge', 'int8gt')):
                cur.execute('CREATE OPERATOR %s (LEFTARG = int8, RIGHTARG = int8, FUNCTION = %s)' % (
                    operators[mark], function))
            cur.execute("CREATE FUNCTION %s_cmp(int8, int8) RETURNS int LANGUAGE C IMMUTABLE STRICT AS '%s', 'far_cmp'"
                        % (name, library))
            if support:
                cur.execute("CREATE FUNCTION support(internal) RETURNS void LANGUAGE C STRICT AS '%s', 'sort_support'"
                            % library)
            cur.execute('CREATE OPERATOR CLASS %s FOR TYPE int8 USING btree AS %s, FUNCTION 1 %s_cmp(int8, int8)%s' % (
                name, ', '.join('OPERATOR %d %s' % (i + 1, operators[mark]) for i, mark in enumerate(operators)),
                name, support))
        cur.execute("CREATE TABLE far AS SELECT hashint8(i)::int8 AS k, (i % 50)::int8 AS few, repeat('x', 80) AS pad"
                    ' FROM generate_series(1, 200000) i; ANALYZE far')
        taken(cur, 'SELECT * FROM far ORDER BY k USING <#')
        left(cur, 'SELECT * FROM far ORDER BY k USING <@')
        left(cur, 'SELECT * FROM far ORDER BY k USING >@, few')
        taken(cur, 'SELECT * FROM far ORDER BY few USING <@')
        cur.execute('SET wiscsort.debug_force = on')
        sql = 'SELECT k FROM far ORDER BY k USING <@'
        taken(cur, sql)
        found = common.rows(cur, sql)
        check(found == sorted(found) and len(found) == 200000, 'forced, they are in order')
        healthy(cluster, 'abbreviations')
    shutil.rmtree(folder)


def comparisons():
    """Rows, which only their comparison function orders, behind a column of few values; but not few of them."""
    with common.server(max_parallel_workers_per_gather='0') as cluster:
        cur = cluster.connect(work_mem='1MB').cursor()
        cur.execute("CREATE TYPE pair AS (a tsvector, b int); CREATE TYPE letter AS ENUM ('a')")
        cur.execute('CREATE TYPE guessed AS (a letter, b int)')
        cur.execute('CREATE TABLE x AS SELECT i, (i % 7)::text::char(10) COLLATE "C.utf8" AS mode,'
                    " ROW('a', i % 5)::pair AS kind, ROW('a', i)::pair AS name, ROW('a', i / 200)::pair AS many,"
                    " ROW('a', i)::guessed AS named, ROW('a', i / 200)::guessed AS lots,"
                    " date '2000-01-01' + i % 2000 AS day, md5(i::text) COLLATE \"C\" AS code"
                    ' FROM generate_series(1, 1000000) i; ANALYZE x')
        for sql in ('SELECT * FROM x ORDER BY day, name', 'SELECT * FROM x ORDER BY many, day',
                    'SELECT name, count(*) FROM x GROUP BY name ORDER BY count(*) DESC, name',
                    'SELECT mode, array_agg(kind) FROM x GROUP BY mode ORDER BY array_agg(kind)'):
            left(cur, sql)
        for sql in ('SELECT * FROM x ORDER BY name', 'SELECT * FROM x ORDER BY name, day',
                    'SELECT * FROM x ORDER BY kind, day', 'SELECT * FROM x ORDER BY mode, day',
                    'SELECT * FROM x ORDER BY day, kind',
                    'SELECT * FROM x ORDER BY code, day', 'SELECT * FROM x ORDER BY day, code',
                    'SELECT * FROM x ORDER BY day, i',
                    # of 1 M rows, core ÷ WiscSort 1.37 and 2.72 (4 MB, 2 pairs, by hand)
                    'SELECT * FROM x ORDER BY day, named', 'SELECT * FROM x ORDER BY lots, day'):
            taken(cur, sql)
        healthy(cluster, 'comparisons')


def nested():
    """Arrays, ranges, jsonb and rows, whose first parts tell rows apart, or do not."""
    with common.server(max_parallel_workers_per_gather='0') as cluster:
        cur = cluster.connect(work_mem='1MB').cursor()
        cur.execute('CREATE TYPE pair AS (a int, b text COLLATE "C")')
        cur.execute('CREATE TABLE x AS SELECT i, i % 2000 AS day, ARRAY[i, 1] AS ints, ARRAY[i / 200] AS many,'
                    " ARRAY['beginning', md5(i::text)] COLLATE \"C\" AS texts,"
                    ' ARRAY[md5(i::text)] COLLATE "C" AS codes, ARRAY[i % 5, 7] AS few,'
                    ' tsrange(to_timestamp(i)::timestamp, NULL) AS spans,'
                    ' tsrange(to_timestamp(i % 5)::timestamp, NULL) AS slots,'
                    " tsrange('1960-01-01', to_timestamp(i)::timestamp) AS since,"
                    " jsonb_build_object('id', i, 'name', 'x') AS doc,"
                    " ROW(i, 'x')::pair AS named, ROW(i % 5, 'name' || i)::pair AS alike,"
                    " jsonb_build_object('id', 1, 'name', md5(i::text)) AS near,"
                    " jsonb_build_object('id', 1234567890123456, 'name', md5(i::text)) AS same"
                    ' FROM generate_series(1, 300000) i; ANALYZE x')
        for key in 'texts', 'since', 'same', 'alike':
            left(cur, 'SELECT * FROM x ORDER BY ' + key)
            left(cur, 'SELECT * FROM x ORDER BY day, ' + key)
            taken(cur, 'SELECT * FROM x ORDER BY i, ' + key)
        for key in 'ints', 'codes', 'many', 'spans', 'slots', 'doc', 'near', 'few', 'named':
            taken(cur, 'SELECT * FROM x ORDER BY ' + key)
            taken(cur, 'SELECT * FROM x ORDER BY day, %s DESC' % key)
        taken(cur, 'SELECT texts FROM x UNION ALL SELECT texts FROM x ORDER BY texts')
        taken(cur, 'SELECT ints, i FROM x EXCEPT SELECT many, day FROM x ORDER BY ints')
        healthy(cluster, 'nested')


def other_plans():
    """What competes with a sort: indexes, Incremental Sort and hash tables (docs/decisions/30-cost-model.md)."""
    with common.server(max_parallel_workers_per_gather='0') as cluster:
        cur = cluster.connect(work_mem='1MB').cursor()
        cur.execute('CREATE TYPE pair AS (a int, b int)')
        cur.execute('CREATE TABLE x AS SELECT i AS id, i / 500 AS lot, i / 100000 AS part, hashint4(i) AS k,'
                    ' hashint4(-i) AS r, hashint4(i) % 50 AS few, hashint4(i) / 8 % 200000 AS half,'
                    ' hashint4(i) / 16 % 300 AS several,'
                    " ROW(hashint4(i), 1)::pair AS a, repeat('x', 60) AS v FROM generate_series(1, 400000) i;"
                    ' CREATE INDEX ON x (id); CREATE INDEX ON x (lot); CREATE INDEX ON x (part);'
                    ' CREATE INDEX ON x (k); CREATE TABLE one AS SELECT 2 AS part')
        cur.execute('VACUUM ANALYZE x, one')
        for sql, wanted in (
                ('SELECT lot, r, v FROM x ORDER BY lot, r', 'Incremental Sort'),
                ('SELECT part, r, v FROM x ORDER BY part, r', 'WiscSort'),
                ('SELECT lot, a, v FROM x ORDER BY lot, a', 'Incremental Sort'),
                ('SELECT id, v FROM x ORDER BY id', 'Index Scan'),
                ('SELECT k, v FROM x ORDER BY k', 'WiscSort'),
                ('SELECT r, v FROM x ORDER BY r', 'WiscSort'),
                ('SELECT DISTINCT few FROM x', 'HashAggregate'),
                ('SELECT DISTINCT half FROM x', 'WiscSort'),
                ('SELECT half, sum(id) FROM x GROUP BY half', 'WiscSort'),
                ('SELECT few, sum(id) FROM x GROUP BY few', 'HashAggregate'),
                ("SELECT several, string_agg(v, ',') FROM x GROUP BY several", 'HashAggregate'),
                ("SELECT half, string_agg(v, ',') FROM x GROUP BY half", 'WiscSort'),
                ('SELECT x.* FROM one JOIN x USING (part) ORDER BY r', 'WiscSort')):
            found = explain(cur, sql)
            check(wanted in found and ('WiscSort' in found) == (wanted == 'WiscSort'),
                  '%s: %s' % (wanted, sql), found)
        sql = 'SELECT lot, r, v FROM x ORDER BY lot, r'
        found = plan(cur, sql)
        check('left to core: an Incremental Sort' in found, 'EXPLAIN says why', found)
        cur.execute('SET enable_incremental_sort = off')
        check('WiscSort' in explain(cur, sql), 'WiscSort, without Incremental Sort')
        cur.execute('SET enable_incremental_sort = on')
        # an index that is in the order of the table, also of two columns
        cur.execute('CREATE INDEX ON x (lot, id); DROP INDEX x_lot_idx')
        for sql in ('SELECT lot, v FROM x ORDER BY lot', 'SELECT lot, id, v FROM x ORDER BY lot DESC, id DESC',
                    "SELECT lot, string_agg(v, ',' ORDER BY r) FROM x GROUP BY lot"):
            left(cur, sql)
        # an index that finds its rows together in the table, which is in stretches that are in no order
        cur.execute("CREATE TABLE y AS SELECT i AS k, hashint4(i) AS r, repeat('x', 60) AS v"
                    ' FROM generate_series(1, 300000) i ORDER BY hashint4(i / 1000), i; CREATE INDEX ON y (k)')
        cur.execute('VACUUM ANALYZE y')
        cur.execute("SELECT abs(correlation) < 0.5 FROM pg_stats WHERE tablename = 'y' AND attname = 'k'")
        check(cur.fetchone()[0], 'the table is in no order')
        for sql in ('SELECT k, v FROM y ORDER BY k', 'SELECT k, v, rank() OVER (ORDER BY k) FROM y',
                    'SELECT k, v FROM y WHERE r < 1000000000 ORDER BY k DESC'):
            found = explain(cur, sql)
            check('Index Scan' in found and 'WiscSort' not in found, 'together in the table: ' + sql, found)
        taken(cur, 'SELECT k, v FROM y WHERE r < -1000000000 ORDER BY k DESC')    # of few of the rows that it reads
        # of how many values an expression has nothing is known: unless there are statistics, or nothing to be hashed
        grouped = ('SELECT half / 2, count(*) FROM x GROUP BY 1', 'SELECT DISTINCT half / 2 FROM x',
                   'SELECT a.half / 2, count(*) FROM x a JOIN x b USING (id) GROUP BY 1')
        for sql in grouped:
            left(cur, sql)
        taken(cur, 'SELECT k / 2, max(v) FROM x GROUP BY 1 ORDER BY 1')    # in the place of core's Sort
        cur.execute('SET enable_hashagg = off')
        for sql in grouped:
            taken(cur, sql)
        cur.execute('RESET enable_hashagg')
        cur.execute('CREATE STATISTICS halves ON (half / 2) FROM x; ANALYZE x')
        taken(cur, grouped[0])
        # workers make more of a join than of a sort
        cur.execute('SET max_parallel_workers_per_gather = 2; SET enable_mergejoin = off;'
                    ' SET parallel_tuple_cost = 0.05')
        for sql in ('SELECT a.v, b.v FROM x a JOIN x b USING (id) ORDER BY a.r, b.k',
                    'SELECT rank() OVER (ORDER BY a.r, b.k) FROM x a JOIN x b USING (id)'):
            found = explain(cur, sql)
            check('Gather Merge' in found and 'WiscSort' in found, 'a sort in workers: ' + sql, found)
        healthy(cluster, 'other plans')


if __name__ == '__main__':
    common.run([memory_cgroup, formats, abbreviations, comparisons, nested, other_plans])
