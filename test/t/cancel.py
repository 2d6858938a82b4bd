#!/usr/bin/python3
"""A sort can be interrupted at any time: pg_cancel_backend, statement_timeout
and pg_terminate_backend, while rows are read, sorted, merged and returned.

Each statement is timed once and then cancelled at many fractions of that time.
The bound on the latency is generous: it is there to find a loop that never
looks for interrupts, not to measure.  A statement lasts several times as long,
so that one that goes on to its end is late.
"""

import os
import signal
import time

import psycopg2

import common
from common import (cancelled, check, clean, equal, error, healthy, rows, session, set_timeout, usable,
                    uses, value)

LATENCY = 1.0                   # of statements that last half a minute
SOON = 0.3                      # of those that measured() makes last longer
CANCELED, TERMINATED = '57014', '57P01'

NARROW = 'SELECT hashint8(i) AS k FROM generate_series(1, %d) i'
TEXTS = "SELECT 'a shared beginning of some length ' || hashint8(i) AS t, i AS k FROM generate_series(1, %d) i"
WIDE = "SELECT i AS k, repeat('x', 900) AS pad FROM generate_series(1, %d) i"

# What takes the time: spooling and merging many runs; comparing texts that share a long
# beginning; comparing by a collation's rules, in one go; wide rows.  These are for less time,
# lest the disk be what is measured.
STATEMENTS = [
    ('many runs', '64kB', NARROW, 2000000, 3, 'SELECT count(s.*) FROM (SELECT k FROM s ORDER BY k OFFSET 0) s'),
    ('long shared prefixes', '1MB', TEXTS, 1400000, 3,
     "SELECT count(s.*) FROM (SELECT t COLLATE \"C\" FROM s ORDER BY 1 OFFSET 0) s"),
    ('one pass by a collation', '512MB', TEXTS, 320000, 3,
     'SELECT count(s.*) FROM (SELECT t COLLATE icu FROM s ORDER BY 1 OFFSET 0) s'),
    ('many equal keys', '512MB', TEXTS, 1300000, 3,
     'SELECT count(s.*) FROM (SELECT t, k FROM s ORDER BY left(t, 11) COLLATE icu, k OFFSET 0) s'),
    ('wide rows', '4MB', WIDE, 300000, 1, 'SELECT count(s.*) FROM (SELECT * FROM s ORDER BY k DESC OFFSET 0) s'),
]


def tables(cluster):
    cur = common.core(cluster)
    collation(cur)
    for table, select, n in (('narrow', NARROW, 500000), ('texts', TEXTS, 250000), ('wide', WIDE, 100000)):
        cur.execute('CREATE TABLE %s AS %s' % (table, select % n))
    cur.execute('ANALYZE')


def collation(cur):
    cur.execute("CREATE COLLATION icu (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")


def measured(cur, select, n, least, sql, name):
    """Seconds that a statement takes, more than `least` times SOON: its table is made, of n rows or more."""
    for _ in range(5):
        cur.execute('DROP TABLE IF EXISTS s; CREATE UNLOGGED TABLE s AS %s; ANALYZE s' % select % n)
        rows(cur, sql)
        start = time.monotonic()
        rows(cur, sql)
        whole = time.monotonic() - start
        if whole > least * SOON:
            break
        n = int(n * 1.3 * least * SOON / whole)
    check(whole > least * SOON, name + ': it lasts long enough', '%.2f s' % whole)
    return whole


def cancels(cluster, cur, sql, times):
    """The SQLSTATEs of a statement that is cancelled at these times, and how late it ended at most."""
    codes, late = [], 0
    for seconds in times:
        code, latency = cancelled(cluster, cur, sql, seconds)
        codes.append(code)
        late = max(late, latency)
        if code == 'hangs':
            break
    return codes, late


def timeouts(_cluster, cur, sql, times):
    """The same by statement_timeout."""
    codes, late = [], 0
    for seconds in times:
        set_timeout(cur, max(1, int(seconds * 1000)))
        start = time.monotonic()
        codes.append(error(cur, sql)[0])
        late = max(late, time.monotonic() - start - seconds)
    set_timeout(cur, 0)
    return codes, late


def stops(way, least, name, *arguments):
    """Checks that a statement is stopped `least` times, and soon; on a busy machine, when tried again."""
    codes, late = way(*arguments)
    if late >= SOON and 'hangs' not in codes:
        print('# %s: %.2f s late, once more' % (name, late))
        codes, late = way(*arguments)
    check(set(codes) <= {CANCELED, None} and codes.count(CANCELED) >= least, name, codes)
    check(late < SOON, name + ' takes effect soon', 'the slowest took %.2f s' % late)


def fractions():
    """pg_cancel_backend and statement_timeout at many points of time."""
    with common.server() as cluster:
        collation(common.core(cluster))
        for name, memory, select, n, least, sql in STATEMENTS:
            cur = session(cluster, work_mem=memory)
            whole = measured(cur, select, n, least, sql, name)
            uses(cur, sql)
            stops(cancels, 3, '%s: cancel at fractions of its time' % name, cluster, cur, sql,
                  [part * whole for part in (0.03, 0.25, 0.45, 0.65, 0.85)])
            stops(timeouts, 1, '%s: statement_timeout' % name, cluster, cur, sql,
                  [part * whole for part in (0.1, 0.4, 0.7)])
            usable(cur, cluster, name)
            cur.connection.close()
        healthy(cluster, 'cancel')


def phases():
    """Phases that can be held still: the input, a comparison, and a reader
    of the result that wait."""
    with common.server() as cluster:
        tables(cluster)
        cur = session(cluster, work_mem='64kB')
        slow_input = ('SELECT count(s.*) FROM (SELECT * FROM (SELECT k, CASE WHEN k %% 100000 = 0 THEN'
                      ' pg_sleep(30) END FROM wide WHERE k > %d OFFSET 0) r ORDER BY k OFFSET 0) s')
        for first in (99999, 0, 5000):
            sql = slow_input % first
            uses(cur, sql)
            code, latency = cancelled(cluster, cur, sql, 0.5)
            check(code == CANCELED and latency < LATENCY, 'cancel while the input waits, after %d rows'
                  % (100000 - first), (code, latency))
            clean(cluster, 'cancel while the input waits')
        reader = ('SELECT count(pg_sleep(0.01)), count(s.*) FROM'
                  ' (SELECT * FROM %s ORDER BY k OFFSET 0) s')
        for table in ('narrow', 'wide'):
            uses(cur, reader % table)
            code, latency = cancelled(cluster, cur, reader % table, 1.5)
            check(code == CANCELED and latency < LATENCY, 'cancel while rows of %s are returned' % table,
                  (code, latency))
            clean(cluster, 'cancel while rows are returned')
        cur.execute('BEGIN')
        cur.execute('DECLARE c NO SCROLL CURSOR FOR SELECT * FROM narrow ORDER BY k')
        cur.execute('FETCH 10 FROM c')
        check(cluster.temp_files(), 'a cursor holds temporary files')
        code, _ = error(cur, 'SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(5)')
        equal(code, CANCELED, 'cancel between two FETCHes')
        clean(cluster, 'cancel between two FETCHes')
        cur.execute('ROLLBACK')
        usable(cur, cluster, 'after all phases')
        healthy(cluster, 'phases')


def parallel():
    """Workers that sort are cancelled with their leader."""
    with common.server(max_parallel_workers=4) as cluster:
        collation(common.core(cluster))
        cur = session(cluster, work_mem='64kB', parallel_setup_cost=0, parallel_tuple_cost=0,
                      min_parallel_table_scan_size=0, max_parallel_workers_per_gather=2)
        if not common.options.core:
            cur.execute('SET wiscsort.debug_force = off')
        sql = 'SELECT * FROM s ORDER BY t COLLATE icu OFFSET 9999999'
        whole = measured(cur, TEXTS, 400000, 3, sql, 'parallel workers')
        check('Gather Merge' in common.explain(cur, sql), 'the plan is parallel', common.explain(cur, sql))
        uses(cur, sql)
        stops(cancels, 1, 'parallel workers: cancel', cluster, cur, sql, [part * whole for part in (0.1, 0.4, 0.7)])
        usable(cur, cluster, 'parallel workers')
        healthy(cluster, 'parallel workers')


def termination():
    """A backend that is told to go, and one that is killed."""
    with common.server() as cluster:
        tables(cluster)
        other = common.core(cluster)
        for how in ('during the sort', 'with an open cursor'):
            cur = session(cluster, work_mem='64kB')
            pid = common.backend(cur)
            if how == 'with an open cursor':
                cur.execute('BEGIN')
                cur.execute('DECLARE c NO SCROLL CURSOR FOR SELECT * FROM narrow ORDER BY k')
                cur.execute('FETCH 10 FROM c')
                check(cluster.temp_files(), 'a cursor holds temporary files')
                other.execute('SELECT pg_terminate_backend(%d, 5000)' % pid)
                code = error(cur, 'FETCH 1 FROM c')[0]
            else:
                sql = ('SELECT pg_terminate_backend(%d) FROM (SELECT k FROM narrow ORDER BY k OFFSET 9999)'
                       ' s LIMIT 1000000' % pid)
                code = error(cur, sql)[0]
            check(code in (TERMINATED, 'lost'), 'pg_terminate_backend ' + how, code)
            clean(cluster, 'pg_terminate_backend ' + how)
        healthy(cluster, 'pg_terminate_backend')
        cur = session(cluster, work_mem='64kB')
        cur.execute('BEGIN')
        cur.execute('DECLARE c NO SCROLL CURSOR FOR SELECT * FROM wide ORDER BY k')
        cur.execute('FETCH 10 FROM c')
        os.kill(common.backend(cur), signal.SIGKILL)
        for _ in range(200):
            time.sleep(0.05)
            try:
                fresh = session(cluster)
                break
            except psycopg2.OperationalError:
                continue
        equal(value(fresh, 'SELECT count(*) FROM narrow'), 500000, 'the server comes back after a SIGKILL')
        clean(cluster, 'after the server came back')


def slow_condition():
    """Rows of one page, each of which takes long to be looked at."""
    with common.server() as cluster:
        common.core(cluster).execute('CREATE TABLE few AS SELECT i FROM generate_series(1, 100) i')
        for sql in ("SELECT i FROM few WHERE md5(lpad(i::text, 20000000, 'ab')) <> 'a' ORDER BY i",
                    "SELECT md5(lpad(i::text, 20000000, 'ab')) FROM few ORDER BY 1"):
            cur = session(cluster)
            uses(cur, sql)
            set_timeout(cur, 300)
            started = time.monotonic()
            code = error(cur, sql)[0]
            took = time.monotonic() - started
            check(code == CANCELED and took < 0.3 + LATENCY, 'cancelled within a page: ' + sql, (code, took))


if __name__ == '__main__':
    common.run([fractions, phases, parallel, termination, slow_condition])
