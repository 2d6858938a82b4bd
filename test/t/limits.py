#!/usr/bin/python3
"""A sort that runs out of disk, or whose input or comparison fails: the error is
PostgreSQL's own, nothing is left behind, and the session goes on."""

import subprocess

import common
from common import check, clean, equal, error, healthy, rows, session, skip, usable, uses

WIDE = "SELECT * FROM wide ORDER BY k"
NARROW = "SELECT * FROM narrow ORDER BY k"
DISK_FULL, LIMIT_EXCEEDED = '53100', '53400'


def tables(cur):
    cur.execute("CREATE TABLE wide AS SELECT i, hashint8(i) AS k, repeat('x', 500) AS pad"
                ' FROM generate_series(1, 40000) i')
    cur.execute('CREATE TABLE narrow AS SELECT hashint8(i) AS k FROM generate_series(1, 200000) i')


def consume(sql):
    """Reads every row on the server, to its last column."""
    return 'SELECT count(s.*) FROM (%s OFFSET 0) s' % sql


def need(cluster, cur, sql):
    """Bytes of temporary files that a sort writes."""
    before = len(cluster.log())
    rows(cur, sql)
    return sum(common.logged_files(cluster.log()[before:]))


def becoming_runs(cluster, cur):
    """More rows come than are expected, and more than may wait in a spool: that and its runs are there together for a
    while, but not where a limit that core's sort keeps, or a spool alone, has no room for both."""
    for sql, share in (('SELECT * FROM wide WHERE i % 1 = 0 ORDER BY k', 7 / 8),
                       ('SELECT k, hashint8(k) AS h FROM narrow WHERE k % 1 = 0 ORDER BY h', 3 / 8)):
        sql = consume(sql)
        cur.execute('SET max_parallel_workers_per_gather = 0; SET wiscsort.debug_force = on')
        cur.execute('SET wiscsort.record_store = spool')
        whole = need(cluster, cur, sql)
        cur.execute("SET temp_file_limit = '%dkB'" % (whole // 1024 * 5 // 4))
        found = common.explain(cur, sql, ', ANALYZE')
        check('Record Store: spool' in found, 'a spool that was asked for stays one', found)
        cur.execute('RESET temp_file_limit; RESET wiscsort.record_store; SET wiscsort.enable = off')
        core = need(cluster, cur, sql)
        cur.execute("SET wiscsort.enable = on; SET wiscsort.cache_size = '%dkB'" % (whole // 1024 * share))
        found = common.explain(cur, sql, ', ANALYZE, VERBOSE')
        check('Record Store: inline' in found, 'a spool becomes runs', found)
        for limit in ('temp_file_limit', 'wiscsort.max_temp'):
            cur.execute("SET %s = '%dkB'" % (limit, max(core, whole) // 1024 * 5 // 4))
            equal(error(cur, sql)[0], None, '%s: %s' % (limit, sql))
            cur.execute('RESET ' + limit)
        cur.execute('RESET wiscsort.cache_size; RESET wiscsort.debug_force; RESET max_parallel_workers_per_gather')


def temp_file_limit():
    """The limit is met while rows are spooled, and at many places between the
    first byte and the last, which takes in the writing of runs."""
    with common.server(log_temp_files=0, log_min_messages='log') as cluster:
        cur = session(cluster, work_mem='64kB')
        tables(cur)
        uses(cur, WIDE)
        pid = common.backend(cur)
        cur.execute("SET temp_file_limit = '200kB'")
        code, message = error(cur, consume(WIDE))
        equal(code, LIMIT_EXCEEDED, 'temp_file_limit while rows are spooled')
        check('temp_file_limit' in message, 'the message names the limit', message)
        cur.execute('RESET temp_file_limit')
        usable(cur, cluster, 'after temp_file_limit in the spool')
        becoming_runs(cluster, cur)
        for sql in (WIDE, NARROW):
            sql = consume(sql)
            cur.execute('RESET temp_file_limit')
            whole = need(cluster, cur, sql)
            check(whole > 1000000, 'the sort writes temporary files', whole)
            codes = []
            for percent in (1, 10, 25, 40, 50, 60, 70, 80, 90, 97):
                cur.execute('SET temp_file_limit = %d' % (whole * percent // 102400))
                codes.append(error(cur, sql)[0])
                if cluster.temp_files():
                    codes.append('files left at %d %%' % percent)
            check(set(codes) <= {LIMIT_EXCEEDED, None} and codes.count(LIMIT_EXCEEDED) >= 4,
                  'every temp_file_limit gives that error or none', codes)
        cur.execute('RESET temp_file_limit')
        usable(cur, cluster, 'after all limits')
        equal(common.backend(cur), pid, 'it is the same backend still')
        healthy(cluster, 'temp_file_limit')


def no_space():
    """A temporary tablespace on a small tmpfs."""
    with common.server() as cluster, common.small_disk(cluster, 'no space left on the temporary tablespace') as place:
        if place is not None:
            fill_up(cluster, place)


def fill_up(cluster, place):
    cur = session(cluster, work_mem='64kB')
    tables(cur)
    pid = common.backend(cur)
    cur.execute('SET temp_tablespaces = small')
    for threads in (0, 1):
        if threads > 0 and not common.options.core:
            # a helper writes, and the backend raises what it met
            cur.execute("SET work_mem = '256kB'")
            for work in ('read', 'sort', 'write'):
                cur.execute('SET wiscsort.%s_threads = %d' % (work, threads))
        for size in ('1m', '3m', '8m'):
            subprocess.run(['mount', '-o', 'remount,size=' + size, place], check=True)
            for sql in (WIDE, NARROW):
                if sql is NARROW and size != '1m':
                    continue
                code, message = error(cur, consume(sql))
                check(code == DISK_FULL and 'No space left' in message,
                      'no space left on a device of %s, %d threads: %s' % (size, threads, sql),
                      (code, message))
                clean(cluster, 'no space left on %s, %d threads' % (size, threads))
    subprocess.run(['mount', '-o', 'remount,size=200m', place], check=True)
    equal(error(cur, consume(WIDE)), (None, ''), 'with enough space the same sort succeeds')
    equal(common.backend(cur), pid, 'it is the same backend still')
    usable(cur, cluster, 'after no space left')
    healthy(cluster, 'no space left')


# The value that the comparison function does not take is not among those that a sort learns from.
LATE = {'few others': '* FROM (SELECT CASE WHEN i = 39000 THEN 777 ELSE i % 5 END AS k, pad FROM wide) s ORDER BY k USING ?<?',
        'behind a column': '* FROM (SELECT i % 3 AS a, CASE WHEN i = 39000 THEN 777 ELSE i % 5 END AS k, pad FROM wide) s'
                           ' ORDER BY a, k USING ?<?',
        'all different': '* FROM (SELECT CASE WHEN i = 39000 THEN 777 ELSE i + 1000 END AS k, pad FROM wide) s'
                         ' ORDER BY k USING ?<?'}


def failing_input():
    """Errors in what the sort reads and in what it calls."""
    with common.server() as cluster:
        cur = session(cluster, work_mem='64kB')
        tables(cur)
        for place in (1, 700, 20000, 39999):
            code, _ = error(cur, consume('SELECT k / (i - %d) AS k, pad FROM wide ORDER BY k' % place))
            equal(code, '22012', 'an error in row %d of the input' % place)
            clean(cluster, 'after the error in row %d' % place)
        cur.execute('''
            CREATE FUNCTION touchy_cmp(a int4, b int4) RETURNS int4 IMMUTABLE LANGUAGE plpgsql AS $$
            BEGIN
                IF a = 777 OR b = 777 THEN RAISE EXCEPTION USING errcode = 'P0777', message = 'seven'; END IF;
                RETURN btint4cmp(a, b);
            END $$''')
        for name in ('lt', 'le', 'eq', 'ge', 'gt'):
            cur.execute('CREATE FUNCTION touchy_%s(int4, int4) RETURNS bool IMMUTABLE LANGUAGE sql'
                        ' AS $$ SELECT int4%s($1, $2) $$' % (name, name))
        for op, name in (('<', 'lt'), ('<=', 'le'), ('=', 'eq'), ('>=', 'ge'), ('>', 'gt')):
            cur.execute('CREATE OPERATOR ?%s? (LEFTARG = int4, RIGHTARG = int4, FUNCTION = touchy_%s)'
                        % (op, name))
        cur.execute('''CREATE OPERATOR CLASS touchy_ops FOR TYPE int4 USING btree AS OPERATOR 1 ?<?,
            OPERATOR 2 ?<=?, OPERATOR 3 ?=?, OPERATOR 4 ?>=?, OPERATOR 5 ?>?,
            FUNCTION 1 touchy_cmp(int4, int4)''')
        for memory in ('64kB', '64MB'):
            cur.execute("SET work_mem = '%s'" % memory)
            for n in (700, 5000):
                sql = 'SELECT i %% %d AS k FROM wide WHERE i < 6000 ORDER BY i %% %d USING ?<?' % (n, n)
                code, _ = error(cur, consume(sql))
                equal(code, 'P0777' if n > 777 else None,
                      'an error in a comparison function, work_mem %s, %d values' % (memory, n))
                clean(cluster, 'after the error in the comparison')
            for name, sql in LATE.items():
                code, _ = error(cur, consume('SELECT %s' % sql))
                equal(code, 'P0777', 'an error in a comparison of a value that comes late: %s, work_mem %s' % (name, memory))
                clean(cluster, 'after the error in the comparison')
        usable(cur, cluster, 'after errors of input and comparison')
        healthy(cluster, 'errors of input and comparison')


if __name__ == '__main__':
    common.run([temp_file_limit, no_space, failing_input])
