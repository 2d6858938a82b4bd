#!/usr/bin/python3
"""Sorts beyond the page cache.  Those that begin again: told to at any row, over every kind of key and row,
and, in a memory cgroup, because the page cache has lost the spool.  And the ways to read runs of rows:
wiscsort.io_method, merge_read, assist_blocks and block_size.  Core says what is right."""

import os
import re

import common
from common import check, equal, explain, healthy, in_turn, rows, set_timeout, value

LIMIT = 300                     # MB
ROWS = 30000
MEMORY = ('64kB', '256kB', '8MB')

# Alignments of 4 and 8, nulls, rows too long for their header, keys that tie and keys that compare.
QUERIES = (
    'SELECT k4, v FROM x ORDER BY k4',
    'SELECT k8, v, n FROM x ORDER BY k8 DESC',
    'SELECT few, i FROM x ORDER BY few',
    'SELECT t, long FROM x ORDER BY t COLLATE "C"',
    'SELECT t, i, v FROM x ORDER BY t COLLATE "C.utf8" DESC',
    'SELECT num, long, n FROM x ORDER BY num NULLS FIRST, i',
    'SELECT * FROM x ORDER BY n, few, i',
)
TOTAL = (QUERIES[0], QUERIES[1], QUERIES[5], QUERIES[6])    # no two rows have the same keys
MAKE = """
CREATE TABLE x AS SELECT i, hashint4(i) AS k4, hashint8(i)::int8 * 65536 AS k8, i %% 3 AS few,
    repeat('v', i %% 90) AS v, CASE WHEN i %% 5 > 0 THEN i %% 40 END AS n,
    substr(md5(i::text), 1, i %% 30) AS t, (hashint4(i) / 7.0)::numeric(20, 5) AS num,
    CASE WHEN i %% 5000 = 0 THEN repeat(md5(i::text), 300 + i %% 500) END AS long
    FROM generate_series(1, %d) i;
ALTER TABLE x ALTER long SET STORAGE EXTERNAL;
ANALYZE x""" % ROWS


def in_order(found, wanted, sql):
    """Whether rows come in the order of core's; where they tie, whether their first columns do, the keys."""
    if sql not in TOTAL:
        found, wanted = [row[0] for row in found], [row[0] for row in wanted]
    return found == wanted


def told():
    """wiscsort.debug_again: the rows and their order are those of core, ties those of the first sort."""
    with common.server(max_parallel_workers_per_gather='0', jit='off') as cluster:
        cur = cluster.connect(work_mem='256kB').cursor()
        cur.execute(MAKE)
        for sql in QUERIES:
            cur.execute('SET wiscsort.enable = off')
            wanted = rows(cur, sql)
            cur.execute("SET wiscsort.enable = on; SET wiscsort.debug_force = on; SET wiscsort.cache_size = '1GB';"
                        ' RESET wiscsort.debug_again')
            first = rows(cur, sql)
            equal(sorted(map(repr, first)), sorted(map(repr, wanted)), 'the rows of core: ' + sql)
            check(in_order(first, wanted, sql), 'the order of core: ' + sql)
            for at in in_turn((0, 1, 4097, ROWS // 2, ROWS - 1, ROWS), QUERIES.index(sql), 3):
                cur.execute('SET wiscsort.debug_again = %d' % at)
                check(rows(cur, sql) == first, 'row %d: %s' % (at, sql))
        cur.execute('SET wiscsort.debug_again = %d' % ROWS)
        found = explain(cur, 'SELECT k4, v FROM x ORDER BY k4', ', ANALYZE')
        check('Record Store: spool, then inline' in found and 'Began Again At Row: %d' % ROWS in found,
              'EXPLAIN says so', found)
        cur.execute('SET wiscsort.debug_again = %d' % (ROWS + 1))
        found = explain(cur, 'SELECT k4, v FROM x ORDER BY k4', ', ANALYZE')
        check('Began Again' not in found, 'not behind the last row', found)
        cur.execute('SET wiscsort.debug_again = 1; BEGIN; DECLARE c CURSOR FOR SELECT k4, v FROM x ORDER BY k4; FETCH 2 FROM c')
        found = rows(cur, 'SELECT name, size FROM pg_ls_tmpdir()')
        equal(len(found), 1, 'of the first sort no file is left: %s' % found)
        cur.execute('ABORT')
        cur.execute("SET wiscsort.debug_again = 10; SET temp_file_limit = '1GB'")
        found = explain(cur, 'SELECT k4, v FROM x ORDER BY k4', ', ANALYZE')
        check('Began Again' not in found, 'not with temp_file_limit', found)
        cur.execute("RESET temp_file_limit; SET wiscsort.max_temp = '1GB'")
        found = explain(cur, 'SELECT k4, v FROM x ORDER BY k4', ', ANALYZE')
        check('Began Again' not in found, 'not with wiscsort.max_temp', found)
        cur.execute("SET work_mem = '2MB'; SET wiscsort.record_store = heap; SET wiscsort.max_temp = '200kB'")
        check('Began Again' not in explain(cur, 'SELECT i, k4, v FROM x ORDER BY k4', ', ANALYZE'),
              'nor from the table, which needs no more than that')
        cur.execute("RESET wiscsort.max_temp; RESET work_mem; SET wiscsort.record_store = 'spool'")
        found = explain(cur, 'SELECT k4, v FROM x ORDER BY k4', ', ANALYZE')
        check('Began Again' not in found, 'not with a spool that was asked for', found)
        healthy(cluster, 'told')


# Compares numbers in circles: of two each may come before the other.
CIRCLES = """
CREATE FUNCTION circle_cmp(a int, b int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT hashint4(a * 31 + b) % 3';
CREATE FUNCTION circle_lt(a int, b int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT circle_cmp(a, b) < 0';
CREATE FUNCTION circle_gt(a int, b int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT circle_cmp(a, b) > 0';
CREATE FUNCTION circle_eq(a int, b int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT circle_cmp(a, b) = 0';
CREATE OPERATOR <<<< (PROCEDURE = circle_lt, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR >>>> (PROCEDURE = circle_gt, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR ==== (PROCEDURE = circle_eq, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR CLASS circles FOR TYPE int USING btree AS OPERATOR 1 <<<<, OPERATOR 3 ====, OPERATOR 5 >>>>,
    FUNCTION 1 circle_cmp(int, int);
CREATE TABLE y AS SELECT i, i % 1009 AS few, md5(i::text) AS t FROM generate_series(1, 4000) i;
ANALYZE y"""


def circles():
    """A comparison function that is not consistent: the order is some order, or the error says what is wrong."""
    with common.server(max_parallel_workers_per_gather='0', jit='off') as cluster:
        cur = cluster.connect(work_mem='64kB').cursor()
        cur.execute(CIRCLES)
        sql = 'SELECT i, few, t FROM y ORDER BY i USING <<<<'
        cur.execute('SET wiscsort.debug_force = on')
        equal(len(rows(cur, sql)), 4000, 'some order')
        cur.execute('SET wiscsort.debug_again = 100')
        state, message = common.error(cur, sql)
        equal(state, '42P17', 'a sort that begins again')
        for part in ('a comparison function of the sort by <<<<(integer,integer) is not consistent',
                     'DETAIL:  The sort began again', 'HINT:  Check the operator classes'):
            check(part in message, 'says: ' + part, message)
        cur.execute('SET wiscsort.enable = off')
        equal(len(rows(cur, sql)), 4000, 'by PostgreSQL, as the hint says')
        healthy(cluster, 'circles')


CHANGE = """
ALTER TABLE x DROP few, ADD few int;
UPDATE x SET few = i % 3;
ALTER TABLE x ADD later int DEFAULT 7, ADD latest text DEFAULT 'none';
UPDATE x SET later = i % 4, latest = t WHERE i % 3 = 0;
ALTER TABLE x ALTER i SET NOT NULL, ALTER k4 SET NOT NULL, ALTER v SET NOT NULL;
ANALYZE x"""
# Orders that leave no choice; columns that are not asked for, dropped, or younger than the rows.
FROM_TABLE = tuple(sql + ', i' for sql in QUERIES[:5]) + QUERIES[5:] + (
    'SELECT i FROM x ORDER BY k8, i',
    'SELECT x FROM x ORDER BY n, i',
    'SELECT x FROM x ORDER BY later, latest COLLATE "C" DESC, i',
    'SELECT long, later FROM x ORDER BY t COLLATE "C" DESC, later, i',
)


def from_table():
    """The same for rows that stay in their table."""
    with common.server(max_parallel_workers_per_gather='0', jit='off') as cluster:
        cur = cluster.connect(work_mem='256kB').cursor()
        cur.execute(MAKE)
        cur.execute(CHANGE)
        for turn, sql in enumerate(FROM_TABLE):
            cur.execute('SET wiscsort.enable = off')
            wanted = rows(cur, sql)
            cur.execute('SET wiscsort.enable = on; SET wiscsort.debug_force = on; SET wiscsort.record_store = heap')
            for number, at in enumerate((-1, 0, 1, 4097, ROWS // 2, ROWS - 1, ROWS)):
                for memory in in_turn(MEMORY, turn + number, 1):
                    cur.execute("SET work_mem = '%s'; SET wiscsort.debug_again = %d" % (memory, at))
                    check(rows(cur, sql) == wanted, '%s, row %d: %s' % (memory, at, sql))
            # code that is compiled for rows of the table
            cur.execute('SET jit = on; SET jit_above_cost = 0; SET wiscsort.debug_again = 3000')
            check(rows(cur, sql) == wanted, 'jit: ' + sql)
            cur.execute('RESET jit; RESET jit_above_cost')
        cur.execute('SET wiscsort.debug_again = 5000')
        found = explain(cur, FROM_TABLE[0], ', ANALYZE')
        check('Record Store: heap, then inline' in found and 'Began Again At Row: 5000' in found,
              'EXPLAIN says so', found)
        found = explain(cur, 'SELECT ctid, k4 FROM x ORDER BY k4', ', ANALYZE')
        check('Record Store: heap\n' in found, 'not if copies of the rows are not enough', found)
        cur.execute("SET temp_file_limit = '1GB'")
        found = explain(cur, FROM_TABLE[0], ', ANALYZE')
        check('Record Store: heap\n' in found, 'not with temp_file_limit', found)
        healthy(cluster, 'from_table')


def outgrown():
    """A plan from when memory held the table copies its rows: with the settings of now, and only then."""
    with common.server(max_parallel_workers_per_gather='0', jit='off', plan_cache_mode='force_generic_plan') as cluster:
        cur = cluster.connect(work_mem='256kB').cursor()
        cur.execute(MAKE)
        cur.execute(CHANGE)
        for n, sql in enumerate(FROM_TABLE):
            if sql.startswith('SELECT few, i'):
                continue        # nothing but keys
            cur.execute('SET wiscsort.enable = off')
            wanted = rows(cur, sql)
            cur.execute('SET wiscsort.enable = on; SET wiscsort.debug_force = on; SET wiscsort.record_store = heap')
            cur.execute('PREPARE p%d AS %s' % (n, sql))
            check(rows(cur, 'EXECUTE p%d' % n) == wanted, 'from the table: ' + sql)
            cur.execute("CREATE FUNCTION walk%d() RETURNS refcursor LANGUAGE plpgsql AS $$DECLARE walked SCROLL CURSOR"
                        " FOR %s; BEGIN walked := 'walked'; OPEN walked; RETURN walked; END$$" % (n, sql))
            equal(rows(cur, 'BEGIN; SELECT walk%d(); FETCH ALL FROM walked' % n), wanted, 'walked: ' + sql)
            cur.execute('COMMIT')
            cur.execute('RESET wiscsort.debug_force; RESET wiscsort.record_store')
            cur.execute("SET effective_cache_size = '2MB'")
            found = explain(cur, 'EXECUTE p%d' % n, ', ANALYZE, VERBOSE')
            check(re.search('Record Store: (spool|inline)', found) and 'memory does not hold the table' in found,
                  'EXPLAIN says so', found)
            for memory in in_turn(MEMORY, n, 1):
                cur.execute("SET work_mem = '%s'" % memory)
                check(rows(cur, 'EXECUTE p%d' % n) == wanted, '%s, copied: %s' % (memory, sql))
            cur.execute('SET jit = on; SET jit_above_cost = 0')
            check(rows(cur, 'EXECUTE p%d' % n) == wanted, 'jit, copied: ' + sql)
            cur.execute('RESET jit; RESET jit_above_cost')
            cur.execute('SET wiscsort.log_min_temp = 0')
            seen = len(cluster.log())
            scroll = rows(cur, 'BEGIN; SELECT walk%d(); FETCH ALL FROM walked' % n)
            equal(scroll, wanted, 'a cursor: ' + sql)
            equal(rows(cur, 'FETCH BACKWARD 9 FROM walked'), wanted[:-10:-1], 'backward: ' + sql)
            cur.execute('COMMIT; RESET wiscsort.log_min_temp')
            found = cluster.log()[seen:]
            check('memory does not hold the table' in found, 'the plan is of before, its rows are copied', found)
            cur.execute('SET random_page_cost = 1')
            found = explain(cur, 'EXECUTE p%d' % n, ', ANALYZE, VERBOSE')
            check('memory does not hold the table' in found, 'also with cheap random reads of the server', found)
            cur.execute('RESET random_page_cost')
            cur.execute('ALTER TABLESPACE pg_default SET (random_page_cost = 1)')
            found = explain(cur, 'EXECUTE p%d' % n, ', ANALYZE')
            check('Record Store: heap' in found, 'not where its tablespace has random reads that are as cheap', found)
            cur.execute("ALTER TABLESPACE pg_default RESET (random_page_cost); SELECT set_config('wiscsort.max_temp',"
                        " pg_relation_size('x') / 1024 || 'kB', false)")
            found = explain(cur, 'EXECUTE p%d' % n, ', ANALYZE')
            check('Record Store: heap' in found, 'nor where copies could come to a limit', found)
            cur.execute('RESET wiscsort.max_temp; RESET effective_cache_size')
            found = explain(cur, 'EXECUTE p%d' % n, ', ANALYZE')
            check('Record Store: heap' in found, 'nor where memory is said to be there', found)
        healthy(cluster, 'outgrown')


def places():
    """Cursors that scroll, mark and restore, rescans: whatever happens before and after the row."""
    with common.server(max_parallel_workers_per_gather='0', jit='off') as cluster:
        cur = cluster.connect(work_mem='256kB', enable_hashjoin='off', enable_nestloop='off').cursor()
        cur.execute(MAKE)
        moves = ('FETCH 3000', 'FETCH BACKWARD 2990', 'FETCH 5000', 'FETCH ABSOLUTE 100', 'FETCH 10', 'FETCH LAST',
                 'FETCH NEXT', 'FETCH PRIOR', 'FETCH BACKWARD 5', 'FETCH ABSOLUTE 7', 'FETCH FIRST')
        join = 'SELECT count(*), sum(a.i::int8 * b.i) FROM x a JOIN x b ON a.k4 = b.k4 AND a.few = b.few'
        many = 'SELECT count(*), sum(a.i + b.i) FROM x a JOIN (SELECT * FROM x LIMIT 3000) b ON a.n = b.n'

        def answers():
            found = []
            cur.execute('BEGIN; DECLARE c SCROLL CURSOR FOR SELECT i, k8, v FROM x ORDER BY k8, i')
            for move in moves:
                found.append(rows(cur, move + ' FROM c'))
            cur.execute('COMMIT')
            return found + [rows(cur, join), rows(cur, many)]

        cur.execute('SET wiscsort.enable = off')
        wanted = answers()
        cur.execute("SET wiscsort.enable = on; SET wiscsort.debug_force = on; SET wiscsort.cache_size = '1GB'")
        for store in ('auto', 'heap'):
            cur.execute('SET wiscsort.record_store = ' + store)
            for at in (-1, 0, 1, 2999, 3001, 6000, ROWS):
                cur.execute('SET wiscsort.debug_again = %d' % at)
                equal(answers(), wanted, 'cursor and joins, %s, row %d' % (store, at))
        healthy(cluster, 'places')


def methods():
    """wiscsort.io_method: the same rows, with work_mem from the least to one merge; where libaio or io_uring
    cannot be had, by another, and EXPLAIN says so."""
    with common.server(max_parallel_workers_per_gather='0', jit='off') as cluster:
        cur = cluster.connect().cursor()
        cur.execute(MAKE)
        known = rows(cur, "SELECT enumvals FROM pg_settings WHERE name = 'wiscsort.io_method'")[0][0]
        for sql in QUERIES:
            cur.execute('SET wiscsort.enable = off')
            wanted = rows(cur, sql)
            cur.execute("SET wiscsort.enable = on; SET wiscsort.debug_force = on; SET wiscsort.record_store = inline")
            for memory in ('64kB', '300kB', '2MB'):
                cur.execute("SET work_mem = '%s'" % memory)
                cur.execute("SET wiscsort.io_method = 'sync'")
                first = rows(cur, sql)
                check(sorted(map(repr, first)) == sorted(map(repr, wanted)), 'the rows of core, %s: %s' % (memory, sql))
                check(in_order(first, wanted, sql), 'the order of core, %s: %s' % (memory, sql))
                for method in known:
                    cur.execute("SET wiscsort.io_method = '%s'" % method)
                    check(rows(cur, sql) == first, '%s, %s: %s' % (method, memory, sql))
        sql = QUERIES[0]
        had = [method for method in ('libaio', 'io_uring') if common.has_method(cluster, method)]
        cur.execute("SET work_mem = '300kB'")
        for method in known:
            cur.execute("SET wiscsort.io_method = '%s'" % method)
            found = explain(cur, sql, ', ANALYZE')
            was = re.search(r'I/O Method: (\S+)\n', found).group(1)
            wanted = 'libaio' if method == 'auto' else method
            if wanted != 'sync' and wanted not in had:
                wanted = (had + ['sync'])[0]
            check(was == wanted, '%s is %s' % (method, was), found)
            if method in ('libaio', 'io_uring') and was != 'sync':
                cancelled(cluster, method)
        healthy(cluster, 'methods')


def ways():
    """wiscsort.merge_read, assist_blocks and block_size: the same rows, and EXPLAIN tells which it was."""
    with common.server(max_parallel_workers_per_gather='0', jit='off') as cluster:
        cur = cluster.connect(work_mem='1MB').cursor()
        cur.execute(MAKE)
        sql = QUERIES[0]
        cur.execute("SET wiscsort.debug_force = on; SET wiscsort.record_store = inline")
        wanted = rows(common.core(cluster), sql)
        blocks = {}
        for way in ('read_order', 'double', 'block'):
            for size in ('-1', '4kB', '13kB', '1MB'):
                for assist in ('-1', '0', '3', '64') if way == 'read_order' else ('-1',):
                    cur.execute("SET wiscsort.merge_read = '%s'; SET wiscsort.block_size = '%s';"
                                " SET wiscsort.assist_blocks = %s" % (way, size, assist))
                    name = '%s, blocks of %s, %s ahead' % (way, size, assist)
                    check(rows(cur, sql) == wanted, name)
                    found = explain(cur, sql, ', ANALYZE, VERBOSE')
                    check('Merge Read: %s\n' % way in found, name, found)
                    blocks[size] = int(re.search(r'Read Order Blocks: (\d+)', found).group(1))
        check(blocks['4kB'] > 2.5 * blocks['13kB'] > 10 * blocks['1MB'], 'block_size', blocks)
        check(blocks['1MB'] > 0, 'an eighth of work_mem at most', blocks)
        healthy(cluster, 'ways')


def descriptors():
    """Sorts open at once, more than there are descriptors for: no ring of io_uring, or none past the page cache,
    and the rows come all the same."""
    with common.server(max_parallel_workers_per_gather='0', jit='off', max_files_per_process='64') as cluster:
        cur = cluster.connect(work_mem='256kB').cursor()
        cur.execute(MAKE)
        cur.execute("SET wiscsort.debug_force = on; SET wiscsort.record_store = inline")
        wanted = rows(common.core(cluster), QUERIES[1])
        for method in ('io_uring', 'libaio'):
            cur.execute("SET wiscsort.io_method = '%s'" % method)
            cur.execute('BEGIN')
            for n in range(12):
                cur.execute('DECLARE c%d NO SCROLL CURSOR FOR %s' % (n, QUERIES[1]))
                check(rows(cur, 'FETCH 1000 FROM c%d' % n) == wanted[:1000], '%s, sort %d begins' % (method, n))
            for n in range(12):
                check(rows(cur, 'FETCH ALL FROM c%d' % n) == wanted[1000:], '%s, sort %d goes on' % (method, n))
            cur.execute('COMMIT')
        healthy(cluster, 'descriptors')


def cancelled(cluster, method):
    """A sort that is stopped anywhere leaves nothing on its way: the next one has the same memory."""
    cur = cluster.connect(work_mem='300kB').cursor()
    cur.execute("SET wiscsort.debug_force = on; SET wiscsort.record_store = inline; SET wiscsort.io_method = '%s'"
                % method)
    sql = 'SELECT count(v), sum(i) FROM (SELECT * FROM x ORDER BY k8 OFFSET 0) s'
    cur.execute('SET wiscsort.enable = off')
    wanted = rows(cur, sql)
    cur.execute('SET wiscsort.enable = on')
    stopped = 0
    for ms in range(5, 400, 13):
        set_timeout(cur, ms)
        try:
            cur.execute(sql)
        except common.psycopg2.errors.QueryCanceled:
            stopped += 1
        set_timeout(cur, 0)
        if ms % 5 == 0:
            equal(rows(cur, sql), wanted, '%s, after a timeout of %d ms' % (method, ms))
    check(stopped > 0, 'some are cancelled: ' + method, stopped)
    common.clean(cluster, 'cancelled')


def forget(path):
    """The page cache no longer has the file, and whoever reads it pays for it."""
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def in_group(group):
    with common.server(shared_buffers='16MB', max_parallel_workers_per_gather='0') as cluster:
        cur = cluster.connect(work_mem='4MB').cursor()
        cur.execute("CREATE TABLE large AS SELECT hashint8(i) AS k, repeat(md5(i::text), 30) AS v"
                    ' FROM generate_series(1, 500000) i; ANALYZE large')
        group.add(cluster.pid)
        cur = cluster.connect(work_mem='4MB').cursor()
        cur.execute("SET wiscsort.cache_size = '4GB'; SET wiscsort.debug_force = on")
        found = explain(cur, 'SELECT * FROM large ORDER BY k', ', ANALYZE')
        check('Record Store: spool, then inline' in found, 'it begins again', found)
        cur.execute("SET plan_cache_mode = force_generic_plan; SET wiscsort.record_store = heap;"
                    ' PREPARE p AS SELECT * FROM large ORDER BY k')
        explain(cur, 'EXECUTE p')
        cur.execute('RESET wiscsort.record_store; CHECKPOINT')
        forget(os.path.join(cluster.data, value(cur, "SELECT pg_relation_filepath('large')")))
        found = explain(cur, 'EXECUTE p', ', ANALYZE')
        check('Record Store: heap, then inline' in found, 'and so does one whose table was in memory once', found)
        sql = 'SELECT count(*), sum(hashtext(v)), bool_and(p <= k) FROM' \
              ' (SELECT *, lag(k) OVER () AS p FROM (SELECT * FROM large ORDER BY k OFFSET 0) s) t'
        found = rows(cur, sql)
        cur.execute('SET wiscsort.enable = off')
        equal(found, rows(cur, sql), 'all rows, in order')
        cur.connection.close()
        healthy(cluster, 'lost')


def lost():
    """More rows than the memory cgroup holds, and a setting that says that the page cache has them all."""
    common.limited(LIMIT, in_group)


if __name__ == '__main__':
    common.run([told, circles, from_table, outgrown, places, methods, descriptors, ways, lost])
