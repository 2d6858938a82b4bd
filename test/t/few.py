#!/usr/bin/python3
"""Few rows, which PostgreSQL's sort orders in memory: as many as that are, one more, and none; every store, cursors that
go back, merge joins that mark and restore, rescans, LIMIT."""

import random
import re

import common
from common import check, equal, explain, healthy, in_turn, rows, session, value

FEW = 40
SIZES = (0, 1, 2, FEW - 1, FEW, FEW + 1, 3 * FEW, 2000)
STORES = {'heap': 'SELECT * FROM t WHERE i <= %d ORDER BY k, i', 'spool': 'SELECT * FROM t WHERE i <= %d ORDER BY m DESC, i',
          'keys': 'SELECT k, i FROM t WHERE i <= %d ORDER BY k DESC, i'}


def start(cluster, size=2000):
    cur = common.core(cluster)
    cur.execute("CREATE TABLE t AS SELECT i, hashint4(i) AS k, md5(i::text) AS m, i %% 7 AS few,"
                " CASE WHEN i %% 3 > 0 THEN repeat(md5(i::text), i %% 9) END AS pad FROM generate_series(1, %d) i" % size)
    cur.execute("ALTER TABLE t ADD added text DEFAULT 'there'; ALTER TABLE t DROP few")
    cur.execute('VACUUM ANALYZE t')


def stores():
    """The rows, the slots' system columns among them, and what EXPLAIN says."""
    with common.server(max_parallel_workers_per_gather='0') as cluster:
        start(cluster)
        core = common.core(cluster)
        for store, query in STORES.items():
            cur = session(cluster, **{'wiscsort.record_store': 'auto' if store == 'keys' else store, 'wiscsort.debug_few': FEW})
            for size in SIZES:
                sql = query % size
                equal(rows(cur, sql), rows(core, sql), '%d rows, %s' % (size, store))
                plan = explain(cur, sql, ', ANALYZE, TIMING OFF')
                wanted = 'few rows' if size < FEW else store
                check('Record Store: %s\n' % wanted in plan and 'IndexMap Entries: %d\n' % size in plan,
                      '%d rows, %s: %s' % (size, store, wanted), plan)
        cur = session(cluster, **{'wiscsort.record_store': 'heap', 'wiscsort.debug_few': FEW})
        sql = 'SELECT ctid, tableoid::regclass, t FROM t WHERE i <= 30 ORDER BY k'
        equal(rows(cur, sql), rows(core, sql), 'system columns, and rows as values')
        cur.execute("SET wiscsort.debug_few = 1000000; SET work_mem = '64kB'")
        sql = 'SELECT * FROM t ORDER BY pad, i'
        equal(rows(cur, sql), rows(core, sql), 'more than a fourth of work_mem')
        check('few rows' not in explain(cur, sql, ', ANALYZE'), 'is not few')
        # a key that is another one's column, too
        core.execute("CREATE TABLE d AS SELECT i, md5((i % 700)::text) AS t, repeat('x', 900) AS b FROM generate_series(1, 3000) i")
        cur = session(cluster, **{'wiscsort.debug_few': FEW, 'wiscsort.record_store': 'heap', 'work_mem': '64kB'})
        sql = 'SELECT * FROM d WHERE i <= %d ORDER BY t COLLATE "en-x-icu" DESC, t COLLATE "C", i'
        for size in (FEW // 2, 3000):
            equal(rows(cur, sql % size), rows(core, sql % size), 'a column that is two keys, %d rows' % size)
        healthy(cluster, 'stores')


def how_many():
    """How many rows are few by default; and abbreviated keys order them as whole ones."""
    with common.server(max_parallel_workers_per_gather='0') as cluster:
        cur = common.core(cluster)
        cur.execute("CREATE TABLE n AS SELECT i, i % 100 AS f, md5(i::text) COLLATE \"en-x-icu\" AS m, repeat('same', 5) ||"
                    ' hashint4(i) % 10 AS s, nullif((hashint4(i) % 1000) / 7.0, 0) AS d FROM generate_series(1, 100000) i')
        cur.execute('CREATE INDEX ON n (f)')
        cur.execute('VACUUM ANALYZE n')
        core = common.core(cluster)
        cur = cluster.connect(**{'wiscsort.threshold': '0', 'work_mem': '4MB', 'enable_seqscan': 'off'}).cursor()
        for order in ('m', 'm DESC', 's, i', 's COLLATE "C", i DESC', 'd NULLS FIRST, i', 'd DESC, s, i', 'i'):
            for wanted, condition in (('few rows', 'f = 7'), ('spool', 'f < 7')):
                sql = 'SELECT m, s, d, i, f FROM n WHERE %s ORDER BY %s' % (condition, order)
                equal(rows(cur, sql), rows(core, sql), '%s by %s' % (condition, order))
                plan = explain(cur, sql, ', ANALYZE, TIMING OFF')
                check('Record Store: %s\n' % wanted in plan or ('Record Store' in plan and wanted != 'few rows'),
                      '%s by %s: %s' % (condition, order, wanted), plan)
        cur.execute('RESET enable_seqscan; SET enable_bitmapscan = off; SET enable_indexscan = off')
        plan = explain(cur, 'SELECT m, s, d, i, f FROM n WHERE f = 7 ORDER BY m', ', ANALYZE, TIMING OFF')
        check('few rows' not in plan and 'WiscSort' in plan, '1,000 rows of a scan are not few', plan)
        healthy(cluster, 'how many')


# How keys are stored, and what in them tells two apart.
TOASTED = {
    'one that compresses': "SELECT i, repeat(md5(i::text), 200) AS k FROM s",
    'one of many rows': "SELECT i, repeat(md5((i % 5)::text), 200) AS k FROM s",
    'short and long, and nulls': "SELECT i, CASE WHEN i % 4 > 0 THEN repeat(md5(i::text), i * i % 150) END AS k FROM s",
    'beginnings that are alike': "SELECT i, repeat('same', 50) || repeat(md5(i::text), 150) AS k FROM s",
    'long numbers': "SELECT i, (repeat((i % 9)::text, 9000) || i)::numeric AS k FROM s",
    'arrays': "SELECT i, array_fill(i % 20, ARRAY[900]) || i AS k FROM s",
}


ORDERS = ('k, i', 'k DESC NULLS LAST, i DESC', 'k NULLS FIRST, i % 3 DESC, i', 'i % 4, k DESC, i')


def toasted():
    """First keys that are compressed or out of line: the order is that of core."""
    with common.server(max_parallel_workers_per_gather='0') as cluster:
        core = common.core(cluster)
        core.execute('CREATE TABLE s AS SELECT abs(hashint4(i)) % 1000 AS i FROM generate_series(1, 70) i')
        kinds = ['STORAGE MAIN', 'STORAGE EXTERNAL', 'STORAGE EXTENDED']
        if common.error(core, "SET default_toast_compression = 'lz4'; RESET default_toast_compression")[0] is None:
            kinds.append('COMPRESSION lz4')
        ours = [session(cluster, **{'wiscsort.debug_few': 1000, 'work_mem': memory}) for memory in ('64kB', '4MB')]
        for number, (name, query) in enumerate(TOASTED.items()):
            for kind in in_turn(kinds, number, 2):
                core.execute('DROP TABLE IF EXISTS l; CREATE TABLE l AS %s LIMIT 0; ALTER TABLE l ALTER k SET %s; INSERT INTO l %s;'
                             ' ANALYZE l' % (query, kind, query))
                wrong = []
                for order in ORDERS:
                    for size in (1, 2, 3, 20, 63, 64, 70):
                        sql = ('SELECT i, md5(k::text) FROM (SELECT * FROM (SELECT * FROM l LIMIT %d) l ORDER BY %s OFFSET 0) l'
                               % (size, order))
                        wanted = rows(core, sql)
                        wrong += [(order, size, cur is ours[0]) for cur in ours if rows(cur, sql) != wanted]
                equal(wrong, [], '%s, %s' % (name, kind))
        plan = explain(ours[1], sql, ', ANALYZE, TIMING OFF')
        check('Record Store: few rows\n' in plan, 'they are few', plan)
        # of longer and longer keys, for which varlena.c makes larger buffers, which stay from sort to sort
        core.execute('CREATE TABLE longer AS SELECT i, repeat(md5(i::text), 1 + i * 3) COLLATE "en-x-icu" AS k'
                     ' FROM generate_series(1, 90) i; ANALYZE longer')
        sql = ('SELECT g, s.i FROM generate_series(1, 90) g, LATERAL (SELECT * FROM longer WHERE i <= g'
               ' ORDER BY k OFFSET 0) s ORDER BY g')
        for cur in ours:
            equal(rows(cur, sql), rows(core, sql), 'long keys of sorts that are done again')
        healthy(cluster, 'toasted')


def fetches():
    """Each toasted key is fetched once, as core does it to abbreviate; the memory for that is work_mem's."""
    with common.server(max_parallel_workers_per_gather='0') as cluster:
        core = common.core(cluster)
        core.execute('CREATE TABLE l (i int, k text COLLATE "C"); ALTER TABLE l ALTER k SET STORAGE EXTERNAL;'
                     ' INSERT INTO l SELECT i, repeat(md5(i::text), 100) FROM generate_series(1, 60) i; ANALYZE l')
        sql = 'SELECT * FROM l ORDER BY k'

        def measured(cur):
            explain(cur, sql, ', ANALYZE, BUFFERS')
            plan = explain(cur, sql, ', ANALYZE, BUFFERS')
            return int(re.search('shared hit=([0-9]+)', plan).group(1)), int(re.search('Memory: ([0-9]+)', plan).group(1))
        wanted = measured(core)[0]
        for memory, least, most in (('64kB', 32, 80), ('4MB', 190, 300)):
            cur = session(cluster, **{'wiscsort.debug_few': 1000, 'work_mem': memory})
            found, used = measured(cur)
            check(found <= wanted + 10, '%s: buffers are looked up as often as by core' % memory, (found, wanted))
            check(least <= used <= most, '%s: the memory of the keys is counted' % memory, used)
        healthy(cluster, 'fetches')


def cursors():
    """Cursors go to and fro as core's."""
    chance = random.Random(20261127)
    with common.server(max_parallel_workers_per_gather='0') as cluster:
        start(cluster)
        ours, core = session(cluster, **{'wiscsort.debug_few': FEW}), common.core(cluster)
        for size in SIZES[:-1]:
            sql = 'SELECT i, m, pad FROM t WHERE i <= %d ORDER BY m' % size
            for cur in (ours, core):
                cur.execute('BEGIN; DECLARE c SCROLL CURSOR FOR ' + sql)
            wrong = []
            for _ in range(60):
                move = 'FETCH %s FROM c' % chance.choice(('NEXT', 'PRIOR', 'FIRST', 'LAST', '5', 'BACKWARD 3', 'ALL', 'RELATIVE 0',
                                                          'ABSOLUTE %d' % chance.randint(-size - 1, size + 1)))
                found, wanted = rows(ours, move), rows(core, move)
                wrong += [(move, found, wanted)] if found != wanted else []
            equal(wrong, [], 'a cursor over %d rows' % size)
            for cur in (ours, core):
                cur.execute('COMMIT')
        ours.execute("BEGIN; DECLARE c CURSOR FOR SELECT * FROM t WHERE i <= 20 ORDER BY m; FETCH 20 FROM c")
        pinned = "SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('t') AND pinning_backends > 0"
        if common.error(core, 'CREATE EXTENSION pg_buffercache')[0] is None:
            equal(value(core, pinned), 0, 'no page stays pinned')
        ours.execute('COMMIT')
        healthy(cluster, 'cursors')


def again():
    """Sorts of a node that are done again: now few, now many; and merge joins, which mark and restore."""
    with common.server(max_parallel_workers_per_gather='0') as cluster:
        start(cluster)
        core = common.core(cluster)
        for store in ('heap', 'spool'):
            cur = session(cluster, **{'wiscsort.debug_few': FEW, 'wiscsort.record_store': store, 'work_mem': '64kB',
                                      'enable_hashjoin': 'off', 'enable_nestloop': 'off', 'enable_material': 'off'})
            for sql in ('SELECT g, ARRAY(SELECT m FROM t WHERE i % 100 < g ORDER BY m) FROM generate_series(0, 6) g',
                        'SELECT g, s.* FROM generate_series(0, 200, 7) g, LATERAL (SELECT * FROM t WHERE i < g ORDER BY m'
                        ' OFFSET g % 3 LIMIT 4) s ORDER BY g, s.m',
                        'SELECT count(*), sum(a.i * b.i) FROM (SELECT i, i % 5 AS x FROM t WHERE i <= 30) a JOIN'
                        ' (SELECT i, i % 5 AS x FROM t WHERE i <= 35) b USING (x)'):
                equal(rows(cur, sql), rows(core, sql), '%s: %s' % (store, sql))
                check('WiscSort' in explain(cur, sql), 'by WiscSort', explain(cur, sql))
        healthy(cluster, 'again')


def limits():
    """LIMITs that are known when the query runs: the rows that they ask for are few, in whatever order all come."""
    with common.server(max_parallel_workers_per_gather='0', plan_cache_mode='force_generic_plan') as cluster:
        start(cluster, 20000)
        core = common.core(cluster)
        core.execute("CREATE TABLE wide AS SELECT i, repeat(md5(i::text), 60 + i % 40) AS pad FROM generate_series(1, 2000) i;"
                     " ALTER TABLE wide ALTER pad SET STORAGE PLAIN")
        orders = ('k, i', 'k DESC, i', 'i', 'i DESC', 'few, m DESC', 'few DESC, pad NULLS FIRST, i', 'few, pad DESC, k')
        for store in ('heap', 'spool'):
            cur = session(cluster, **{'wiscsort.debug_few': FEW, 'wiscsort.record_store': store, 'work_mem': '128kB'})
            core.execute('DEALLOCATE ALL')
            for number, order in enumerate(orders):
                text = ('(int8, int8) AS SELECT ctid, * FROM (SELECT ctid, i, k, m, pad, i %% 7 AS few FROM t) t'
                        ' ORDER BY %s LIMIT $1 OFFSET $2')
                for c in (cur, core):
                    c.execute('PREPARE q%d%s' % (number, text % order))
                for limit, offset in ((0, 0), (1, 0), (5, 2), (FEW, 0), (FEW + 1, 0), (300, 30), (1400, 0), (19900, 300)):
                    query = 'EXECUTE q%d(%d, %d)' % (number, limit, offset)
                    equal(rows(cur, query), rows(core, query), '%s: %s, %d rows from %d' % (store, order, limit, offset))
                plan = explain(cur, 'EXECUTE q%d(5, 2)' % number, ', ANALYZE, TIMING OFF')
                if (store, order) == ('heap', 'i DESC'):
                    check('Record Store: heap\n' in plan, 'rows in the opposite order are left in their table', plan)
                    cur.execute("SET temp_file_limit = '1GB'")
                    plan = explain(cur, 'EXECUTE q%d(5, 2)' % number, ', ANALYZE, TIMING OFF')
                    cur.execute('RESET temp_file_limit')
                for wanted in ('Record Store: few rows\n', 'Bound: 7\n', 'Rows Passed Over: 19993\n', 'IndexMap Entries: 7\n',
                               'Disk: 0 kB\n'):
                    check(wanted in plan, '%s: %s: %s' % (store, order, wanted.strip()), plan)
            cur.execute("PREPARE w(int8) AS SELECT * FROM wide ORDER BY i DESC LIMIT $1")
            equal(rows(cur, 'EXECUTE w(500)'), rows(core, 'SELECT * FROM wide ORDER BY i DESC LIMIT 500'), 'wide rows')
            cur.execute("PREPARE again(int8) AS SELECT g, s.* FROM generate_series(0, 3) g, LATERAL (SELECT i, m FROM t"
                        " WHERE i > g ORDER BY m LIMIT $1 + g * 3) s")
            equal(rows(cur, 'EXECUTE again(4)'), rows(core, "SELECT g, s.* FROM generate_series(0, 3) g, LATERAL (SELECT i, m"
                       " FROM t WHERE i > g ORDER BY m LIMIT 4 + g * 3) s"), 'limits that grow from sort to sort')
            cur.execute("SET temp_file_limit = 0; SET wiscsort.record_store = spool")
            equal(rows(cur, 'EXECUTE q3(5, 0)'), rows(core, 'EXECUTE q3(5, 0)'), 'no temporary file')
        healthy(cluster, 'limits')


def wider():
    """Rows that a LIMIT asks for, and that are much wider than the planner thinks: the large sort gets them."""
    with common.server(max_parallel_workers_per_gather='0', plan_cache_mode='force_generic_plan') as cluster:
        core = common.core(cluster)
        core.execute("CREATE TABLE w AS SELECT i, hashint4(i) AS k, 'x'::text AS pad FROM generate_series(1, 3000) i; ANALYZE w;"
                     " ALTER TABLE w ALTER pad SET STORAGE PLAIN, SET (autovacuum_enabled = off);"
                     " UPDATE w SET pad = repeat(md5(i::text), 30)")
        for store in ('heap', 'spool'):
            cur = session(cluster, **{'wiscsort.debug_few': FEW, 'wiscsort.record_store': store, 'work_mem': '64kB'})
            cur.execute('PREPARE w(int8) AS SELECT * FROM w ORDER BY k, i LIMIT $1')
            for limit in (10, 200, 1000):
                equal(rows(cur, 'EXECUTE w(%d)' % limit), rows(core, 'SELECT * FROM w ORDER BY k, i LIMIT %d' % limit),
                      '%s: %d wide rows' % (store, limit))
            for limit, found in ((10, True), (200, False)):
                plan = explain(cur, 'EXECUTE w(%d)' % limit, ', ANALYZE, TIMING OFF')
                check(('few rows' in plan) == found, '%s: %d rows are few: %s' % (store, limit, found), plan)
        # those that come last are among the first, and wide: by then others have been dropped
        core.execute("CREATE TABLE v AS SELECT i, -i AS k, ''::text AS pad FROM generate_series(1, 9000) i; ANALYZE v;"
                     " ALTER TABLE v ALTER pad SET STORAGE PLAIN, SET (autovacuum_enabled = off);"
                     " UPDATE v SET pad = repeat(md5(i::text), CASE WHEN i > 8000 THEN 30 ELSE 0 END)")
        for store in ('heap', 'spool'):
            cur = session(cluster, **{'wiscsort.debug_few': FEW, 'wiscsort.record_store': store, 'work_mem': '64kB'})
            cur.execute('PREPARE v(int8) AS SELECT * FROM v ORDER BY k, i LIMIT $1')
            equal(rows(cur, 'EXECUTE v(200)'), rows(core, 'SELECT * FROM v ORDER BY k, i LIMIT 200'), store + ': wide ones last')
            plan = explain(cur, 'EXECUTE v(200)', ', ANALYZE, TIMING OFF')
            entries, passed = (int((re.findall(field + r': (\d+)', plan) or [0])[0])
                               for field in ('IndexMap Entries', 'Rows Passed Over'))
            check('few rows' not in plan and entries + passed == 9000 and passed > 7000,
                  store + ': each row is counted, those too that were dropped before', plan)
        healthy(cluster, 'wider')


if __name__ == '__main__':
    common.run([stores, how_many, toasted, fetches, cursors, again, limits, wider])
