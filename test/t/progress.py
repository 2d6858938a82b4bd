#!/usr/bin/python3
"""wiscsort.progress where each row of a small outer side gives many rows: how many are expected.  (test/t/stat.py
has the rest of the view.)"""

import threading
import time

import common
from common import check, equal, error, healthy, rows, skip, value

# Each of ten rows, in one block, gives 8000.
WAITS = ('SELECT n, i, x FROM (SELECT n, i, CASE WHEN n = %d AND i = %d THEN pg_advisory_xact_lock(1)::text END AS x'
         ' FROM %s OFFSET 0) s ORDER BY hashint8(i)')
RIGHT = 'ten, LATERAL (SELECT i + 0 * n AS i FROM generate_series(1, 8000) i OFFSET 0) l'
WRONG = 'ten, generate_series(1, many) i'
PROJECTED = '(SELECT n, generate_series(1, 8000) i FROM ten OFFSET 0) p'


def expected(cur, other, sql, came):
    """How many rows are expected when so many have come, and none for half a second."""
    value(other, 'SELECT pg_advisory_lock(1)')
    outcome = []
    thread = threading.Thread(target=lambda: outcome.append(error(cur, sql)[0]))
    thread.start()
    for _ in range(600):
        if rows(other, 'SELECT 1 FROM wiscsort.progress WHERE rows_in = %d' % came):
            break
        time.sleep(0.02)
    time.sleep(0.5)
    found = rows(other, 'SELECT rows_in, rows_expected FROM wiscsort.progress')
    value(other, 'SELECT pg_advisory_unlock(1)')
    thread.join()
    equal((outcome, [row[0] for row in found]), ([None], [came]), 'a sort that waits, and ends')
    return found[0][1] if found else None


def outer():
    if common.options.core:
        return skip('progress', "PostgreSQL's own sort has none")
    with common.server(preload=False, shared_preload_libraries='wiscsort', jit='off') as cluster:
        cur, other = common.session(cluster, work_mem='64MB'), common.session(cluster)
        cur.execute('CREATE EXTENSION IF NOT EXISTS wiscsort')
        cur.execute('CREATE TABLE ten AS SELECT n, 8000 AS many FROM generate_series(1, 10) n')
        cur.execute('ANALYZE ten')
        for name, n, i, source, least, most in (('the planner is right', 1, 5000, RIGHT, 80000, 80000),
                                                ('the planner is right', 7, 7000, RIGHT, 80000, 80000),
                                                ('rows are projected', 2, 7000, PROJECTED, 80000, 80000),
                                                ('the planner is wrong', 8, 4500, WRONG, 70000, 90000)):
            came = 8000 * (n - 1) + i - 1
            found = expected(cur, other, WAITS % (n, i, source), came)
            check(found is not None and least <= found <= most, '%s, when %d of 80000 rows have come' % (name, came), found)
        healthy(cluster, 'progress')


def waits(cur, other, pause=2):
    """How long the rows of a sort are expected to be on their way out when 100 have been fetched by a cursor; the
    others are fetched `pause` seconds later."""
    cur.execute('BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT * FROM t ORDER BY k')
    cur.execute('FETCH 100 FROM c')
    behind = value(other, 'SELECT extract(epoch FROM estimated_end - began) - input_seconds - sort_seconds - output_seconds'
                   ' FROM wiscsort.progress')
    time.sleep(pause)
    cur.execute('MOVE ALL FROM c')
    cur.execute('COMMIT')
    return float(behind)


def cursor():
    """That a client does not ask for more rows for a while says nothing of the next sort."""
    if common.options.core:
        return skip('progress', "PostgreSQL's own sort has none")
    with common.server(preload=False, shared_preload_libraries='wiscsort', jit='off', compute_query_id='on',
                       max_parallel_workers_per_gather='0') as cluster:
        cur, other = common.session(cluster, work_mem='64MB'), common.session(cluster)
        cur.execute('CREATE EXTENSION IF NOT EXISTS wiscsort')
        cur.execute("CREATE TABLE t AS SELECT i, hashint8(i) AS k, repeat('x', 60) AS pad"
                    ' FROM generate_series(1, 400000) i')
        cur.execute('ANALYZE t')
        first = waits(cur, other)
        second = waits(cur, other)
        # with the two seconds that they waited it was 1.17
        check(0.02 < first and second < first + 0.5, "a cursor's rows that wait for the client", (first, second))
        apart(cur, other)
        healthy(cluster, 'cursor')


def apart(cur, other):
    """What is done with rows from a spool says nothing of those that wait in their table."""
    cur.execute('SET compute_query_id = off')
    told = {}
    for turn in (0, 1):
        for store in ('heap', 'spool'):
            cur.execute('SET wiscsort.record_store = %s' % store)
            told[store, turn] = waits(cur, other, 0)
        cur.execute("SELECT count(md5(repeat(pad, 40))) FROM (SELECT * FROM t ORDER BY k OFFSET 0) s")
    # one of five that are counted took 16 times as long, or more
    check(told['spool', 1] > told['spool', 0] * 1.5, 'rows from a spool, after such that took long', told)
    check(told['heap', 1] < told['heap', 0] * 1.4 + 0.1, 'rows from their table, after such from a spool', told)


BATCHES = """SELECT count(pad) FROM (SELECT o.i, o.pad FROM
    (SELECT i, pad, CASE WHEN i = %d THEN pg_advisory_xact_lock(1)::text END AS x FROM wide OFFSET 0) o
    JOIN narrow USING (i) WHERE (o.i + narrow.i) %% 1 = 0 ORDER BY hashint8(o.i), o.x OFFSET 0) s"""


def batches():
    """A hash join in batches: while its outer side is read, the rows of one batch come."""
    if common.options.core:
        return skip('progress', "PostgreSQL's own sort has none")
    with common.server(preload=False, shared_preload_libraries='wiscsort', jit='off', hash_mem_multiplier='1',
                       max_parallel_workers_per_gather='0', enable_mergejoin='off', enable_nestloop='off') as cluster:
        cur, other = common.session(cluster, work_mem='4MB'), common.session(cluster)
        cur.execute('CREATE EXTENSION IF NOT EXISTS wiscsort')
        cur.execute("CREATE TABLE wide AS SELECT i, repeat('x', 60) AS pad FROM generate_series(1, 400000::bigint) i;"
                    ' CREATE TABLE narrow AS SELECT i FROM wide; ANALYZE wide; ANALYZE narrow')
        value(other, 'SELECT pg_advisory_lock(1)')
        outcome = []
        thread = threading.Thread(target=lambda: outcome.append(error(cur, BATCHES % 240000)[0]))
        thread.start()
        for _ in range(3000):
            if rows(other, "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):
                break
            time.sleep(0.02)
        found = rows(other, 'SELECT phase, rows_in, rows_expected FROM wiscsort.progress')
        value(other, 'SELECT pg_advisory_unlock(1)')
        thread.join()
        check(outcome == [None] and len(found) == 1 and found[0][0] == 'input' and 10000 < found[0][1] < 130000 and
              300000 < found[0][2] < 500000, 'rows of a hash join in batches, 2000 by the planner', (outcome, found))
        healthy(cluster, 'batches')


if __name__ == '__main__':
    common.run([outer, cursor, batches])
