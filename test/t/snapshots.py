#!/usr/bin/python3
"""The table as record store and transactions: what is fetched late is what a
cursor's snapshot saw, whoever changes the table, and every error is core's.

Each scenario runs with core's sort as well, on a table of its own that is the
same, and has to come to the same result.
"""

import common
from common import check, clean, equal, error, healthy, in_turn, rows, value
from churn import nodes, session

N = 20000
QUERY = 'SELECT i, k, v, pad, ctid FROM %s ORDER BY k, i'
WAYS = {'a sequential scan': {'enable_indexscan': 'off', 'enable_bitmapscan': 'off'},
        'an index scan': {'enable_seqscan': 'off', 'enable_bitmapscan': 'off'},
        'a bitmap scan': {'enable_seqscan': 'off', 'enable_indexscan': 'off'}}


def create(cluster, name, kind='TABLE', n=N, cur=None):
    cur = cur or common.core(cluster)
    cur.execute('CREATE %s %s (i int PRIMARY KEY, k int, v int, pad text) WITH (fillfactor = 70)' % (kind, name))
    cur.execute("INSERT INTO %s SELECT i, hashint4(i) %% 1000, 0, repeat('p', i %% 300)"
                ' FROM generate_series(1, %d) i' % (name, n))
    cur.execute('ANALYZE ' + name)


def both(cluster, scenario, *args):
    """What a scenario gives with core's sort, and with the rows in the table."""
    answers = []
    for table, connect in (('of_core', common.core), ('ours', session)):
        cur = connect(cluster, work_mem='64kB')
        if connect is session and not common.options.core:
            equal(nodes(cur, QUERY % table, '').get('Relation Name'), table, 'rows stay in the table')
        answers.append(scenario(cluster, connect, table, *args))
    return answers


def tables(cluster):
    create(cluster, 'of_core')
    create(cluster, 'ours')


# --- cursors ----------------------------------------------------------------------

# Updates within the page and to other pages, deletes, rows in their places.
CHANGES = ['UPDATE {0} SET v = v + 1 WHERE i % 3 = 0', 'UPDATE {0} SET v = v + 1 WHERE i % 6 = 0',
           "UPDATE {0} SET k = k + 1, i = i + 1000000, pad = pad || 'longer' WHERE i % 5 = 0",
           'DELETE FROM {0} WHERE i % 7 = 0',
           "INSERT INTO {0} SELECT i, i % 999, 0, repeat('n', i % 700) FROM generate_series(2000001, 2020000) i"]


def change(cur, table):
    for statement in CHANGES:
        cur.execute(statement.format(table))


def cursor(cluster, connect, table, own, hold, way):
    """A cursor, a tenth of which is fetched before the table is changed."""
    cur = connect(cluster, work_mem='64kB', **WAYS[way])
    other = common.core(cluster)
    where = 'WHERE i > 100'
    query = (QUERY % table).replace('ORDER', where + ' ORDER')
    wanted = rows(other, query)
    cur.execute('BEGIN')
    if own:                     # rows of its own transaction, in two versions
        cur.execute('UPDATE %s SET v = 5 WHERE i %% 4 = 0' % table)
        cur.execute('UPDATE %s SET v = 6 WHERE i %% 8 = 0' % table)
        wanted = rows(cur, query)
    cur.execute('DECLARE c CURSOR %s FOR %s' % (hold, query))
    found = rows(cur, 'FETCH 2000 FROM c')
    change(cur if own else other, table)
    if hold:
        cur.execute('COMMIT')
    for _ in range(2):
        other.execute('VACUUM ' + table)
    found += rows(cur, 'FETCH 5000 FROM c')
    # a bitmap scan keeps its last page pinned, and from 19 on so does an index scan
    if hold or not ('bitmap' in way or 'index' in way and other.connection.server_version >= 190000):
        other.execute('VACUUM (FREEZE) ' + table)
    found += rows(cur, 'FETCH ALL FROM c')
    cur.execute('CLOSE c' if hold else 'COMMIT')
    return found == wanted, len(found) > 9 * N // 10


def cursors():
    """By the session itself and by another; with and without hold."""
    with common.server(shared_buffers='1MB') as cluster:
        for own in (True, False):
            for hold in ('', 'WITH HOLD'):
                for way in in_turn(WAYS, own + 2 * bool(hold), 2):
                    tables(cluster)
                    equal(both(cluster, cursor, own, hold, way), [(True, True)] * 2,
                          'a cursor %s over %s while %s changes the table' %
                          (hold or 'WITHOUT HOLD', way, 'its session' if own else 'another'))
                    common.core(cluster).execute('DROP TABLE ours, of_core')
        clean(cluster, 'cursors')
        healthy(cluster, 'cursors')


def subtransaction(cluster, connect, table):
    cur, other = connect(cluster, work_mem='64kB'), common.core(cluster)
    query = QUERY % table
    before = rows(other, query)
    cur.execute('BEGIN')
    cur.execute('DECLARE outside NO SCROLL CURSOR FOR ' + query)
    cur.execute('DECLARE unread NO SCROLL CURSOR FOR ' + query)
    found = rows(cur, 'FETCH 100 FROM outside')
    cur.execute('SAVEPOINT a')
    change(cur, table)
    with_a = rows(cur, query)
    cur.execute('DECLARE inside NO SCROLL CURSOR FOR ' + query)
    in_a = rows(cur, 'FETCH 100 FROM inside')
    cur.execute('SAVEPOINT b')
    cur.execute('DELETE FROM %s WHERE i %% 2 = 0' % table)
    cur.execute("INSERT INTO %s SELECT i, 1, 1, 'b' FROM generate_series(3000001, 3010000) i" % table)
    in_a += rows(cur, 'FETCH 100 FROM inside')
    found += rows(cur, 'FETCH 100 FROM outside')
    cur.execute('ROLLBACK TO b')
    # what b left behind is removed, and its places are taken again
    other.execute('VACUUM ' + table)
    cur.execute("INSERT INTO %s SELECT i, 1, 1, 'c' FROM generate_series(4000001, 4010000) i" % table)
    in_a += rows(cur, 'FETCH ALL FROM inside')
    cur.execute('ROLLBACK TO a')
    gone = error(cur, 'FETCH 1 FROM inside')[0]
    cur.execute('ROLLBACK TO a')
    other.execute('VACUUM ' + table)
    cur.execute("INSERT INTO %s SELECT i, 1, 1, 'd' FROM generate_series(5000001, 5010000) i" % table)
    found += rows(cur, 'FETCH ALL FROM outside')
    unread = rows(cur, 'FETCH ALL FROM unread')
    cur.execute('COMMIT')
    return found == before, unread == before, in_a == with_a, gone


def subtransactions():
    """Cursors declared before and in subtransactions that are rolled back."""
    with common.server(shared_buffers='1MB') as cluster:
        tables(cluster)
        equal(both(cluster, subtransaction), [(True, True, True, '34000')] * 2, 'cursors and subtransactions')
        clean(cluster, 'subtransactions')
        healthy(cluster, 'subtransactions')


def growing(cluster, connect, table, others):
    """Rows inserted into a table by the very sort of it, and by others meanwhile."""
    cur, other = connect(cluster, work_mem='64kB'), common.core(cluster)
    cur.execute('CREATE SEQUENCE s_%s' % table)
    cur.execute("INSERT INTO {0} SELECT 9000000 + nextval('s_{0}'), k, i, pad FROM"
                ' (SELECT * FROM {0} ORDER BY k, i OFFSET 0) s'.format(table))
    cur.execute('BEGIN')
    cur.execute('DECLARE c CURSOR FOR ' + QUERY % table)
    found = rows(cur, 'FETCH 10 FROM c')
    wanted = rows(other, QUERY % table)
    for n in range(3):
        (other if others else cur).execute(
            "INSERT INTO %s SELECT i + %d, 0, 0, repeat('g', 500) FROM generate_series(1, 5000) i"
            % (table, 20000000 + n * 10000))
        found += rows(cur, 'FETCH 3000 FROM c')
    found += rows(cur, 'FETCH ALL FROM c')
    cur.execute('COMMIT')
    cur.execute('DROP SEQUENCE s_%s' % table)
    return found == wanted, sorted(r[:4] for r in found)


def extension():
    """The table grows while it is sorted."""
    with common.server(shared_buffers='1MB') as cluster:
        for others in (False, True):
            tables(cluster)
            theirs, ours = both(cluster, growing, others)
            check(theirs[0] and ours[0] and len(ours[1]) == 2 * N and theirs[1] == ours[1],
                  'the table grows by %s' % ('others' if others else 'its own session'), (theirs[0], ours[0]))
            common.core(cluster).execute('DROP TABLE ours, of_core')
        healthy(cluster, 'extension')


def temporary(cluster, connect, table):
    """A temporary table, larger than its buffers."""
    cur = connect(cluster, work_mem='64kB', temp_buffers='800kB')
    create(cluster, 'pg_temp.' + table, cur=cur)
    query = QUERY % table
    if connect is session and not common.options.core:
        equal(nodes(cur, query, '').get('Relation Name'), table, 'rows stay in the temporary table')
    result = []
    for hold in ('', 'WITH HOLD'):
        wanted = rows(cur, query)
        cur.execute('BEGIN')
        cur.execute('DECLARE c CURSOR %s FOR %s' % (hold, query))
        found = rows(cur, 'FETCH 100 FROM c')
        cur.execute('SAVEPOINT a')
        change(cur, table)
        cur.execute('ROLLBACK TO a')
        change(cur, table)
        found += rows(cur, 'FETCH 1000 FROM c')
        result.append(error(cur, 'TRUNCATE ' + table)[0] if not hold else None)
        if hold:
            cur.execute('COMMIT')
            cur.execute('VACUUM ' + table)
            found += rows(cur, 'FETCH ALL FROM c')
            cur.execute('CLOSE c')
        else:
            cur.execute('ROLLBACK')
            cur.execute('VACUUM ' + table)
            wanted = wanted[:1100]
        result.append(found == wanted)
    return result


def temporary_tables():
    with common.server() as cluster:
        tables(cluster)
        equal(both(cluster, temporary), [['55006', True, None, True]] * 2, 'cursors on a temporary table')
        healthy(cluster, 'temporary tables')


# --- errors and locks -----------------------------------------------------------------

DDL = ['TRUNCATE {0}', 'ALTER TABLE {0} ALTER v TYPE bigint', 'ALTER TABLE {0} ADD COLUMN more int DEFAULT 1',
       'ALTER TABLE {0} DROP COLUMN pad', 'ALTER TABLE {0} SET TABLESPACE pg_default',
       'CLUSTER {0} USING {0}_pkey', 'REINDEX TABLE {0}', 'DROP TABLE {0}', 'VACUUM FULL {0}']


def definitions(cluster, connect, table):
    """Attempts to take the table away from under a cursor."""
    cur = connect(cluster, work_mem='64kB')
    other = common.core(cluster, lock_timeout='200ms')
    wanted = rows(other, QUERY % table)
    codes = []
    cur.execute('BEGIN')
    cur.execute('DECLARE c CURSOR FOR ' + QUERY % table)
    found = rows(cur, 'FETCH 10 FROM c')
    for statement in DDL:
        cur.execute('SAVEPOINT a')
        codes.append(error(cur, statement.format(table))[0])
        cur.execute('ROLLBACK TO a')
        codes.append(error(other, statement.format(table))[0])
        found += rows(cur, 'FETCH 100 FROM c')
    found += rows(cur, 'FETCH ALL FROM c')
    cur.execute('CLOSE c')
    codes.append(error(other, 'TRUNCATE ' + table)[0])
    cur.execute('COMMIT')
    codes.append(error(other, 'VACUUM FULL ' + table)[0])
    return found == wanted, codes


def table_stays():
    """VACUUM FULL, TRUNCATE, ALTER TABLE and others with a cursor open."""
    with common.server(shared_buffers='1MB') as cluster:
        tables(cluster)
        theirs, ours = both(cluster, definitions)
        equal(ours, theirs, "the table stays, with core's errors")
        equal((ours[0], set(ours[1])), (True, {'55006', '55P03', '25001', None}), 'and these are as expected')
        healthy(cluster, 'definitions')


def serializable(cluster, connect, table, way, apart):
    """Two transactions that each read what the other writes, or do not."""
    codes, locks = [], []
    one, two = (connect(cluster, work_mem='64kB', **WAYS[way]) for _ in range(2))
    ranges = [(101, 5000), (10001, 15000)] if apart else [(101, 15000)] * 2
    look = common.core(cluster)
    for cur, (low, high) in zip((one, two), ranges):
        cur.execute('BEGIN ISOLATION LEVEL SERIALIZABLE')
        cur.execute('DECLARE c CURSOR FOR SELECT * FROM {0} WHERE i BETWEEN {1} AND {2} ORDER BY k, i'.format(
            table, low, high))
        rows(cur, 'FETCH 5 FROM c')
        locks.append(rows(look, "SELECT locktype, relation::regclass::text = '%s', page, tuple FROM pg_locks"
                          " WHERE mode = 'SIReadLock' AND pid = %d ORDER BY 1, 2, 3, 4"
                          % (table, cur.connection.get_backend_pid())))
    for cur, (low, high) in zip((one, two), ranges):
        codes.append(error(cur, 'UPDATE {0} SET v = v + 1 WHERE i = {1}'.format(table, low + (cur is two)))[0])
        codes.append(error(cur, 'FETCH ALL FROM c')[0])
    for cur in (one, two):
        codes.append(error(cur, 'COMMIT')[0])
    return codes, locks


def serialization():
    """Predicate locks are the scan's: the same locks, the same failures."""
    # enough of them that locks of pages do not become one of the whole table
    with common.server(max_pred_locks_per_transaction=2000) as cluster:
        tables(cluster)
        for way in WAYS:
            for apart in (False, True):
                theirs, ours = both(cluster, serializable, way, apart)
                name = 'serializable, %s, %s' % (way, 'apart' if apart else 'overlapping')
                equal(ours[0], theirs[0], name + ": core's outcome")
                equal(ours[1], theirs[1], name + ": core's predicate locks")
                check(('40001' in theirs[0]) == (not apart or way == 'a sequential scan') and all(theirs[1]),
                      name + ': which is the expected one', theirs[0])
        healthy(cluster, 'serializable')


def locking(cluster, connect, table):
    """FOR UPDATE with a row that changes while it waits; WHERE CURRENT OF."""
    cur, other = connect(cluster, work_mem='64kB'), common.core(cluster)
    result = []
    cur.execute('BEGIN')
    cur.execute('DECLARE c CURSOR FOR SELECT * FROM %s ORDER BY k, i' % table)
    rows(cur, 'FETCH 10 FROM c')
    for statement in ('UPDATE %s SET v = 77 WHERE CURRENT OF c', 'DELETE FROM %s WHERE CURRENT OF c'):
        cur.execute('SAVEPOINT a')
        code, message = error(cur, statement % table)
        result.append((code, message.replace(table, 'it')))
        cur.execute('ROLLBACK TO a')
    cur.execute('ROLLBACK')
    cur.execute('BEGIN')
    cur.execute('DECLARE c CURSOR FOR SELECT * FROM %s ORDER BY k, i FOR UPDATE' % table)
    rows(cur, 'FETCH 10 FROM c')
    result.append(error(cur, 'UPDATE %s SET v = 78 WHERE CURRENT OF c' % table)[0])
    rows(cur, 'FETCH 5000 FROM c')
    result.append(error(cur, 'DELETE FROM %s WHERE CURRENT OF c' % table)[0])
    cur.execute('COMMIT')
    # rows that were changed between the snapshot and the lock
    cur.execute('BEGIN')
    cur.execute('DECLARE c CURSOR FOR SELECT i, k, v FROM %s ORDER BY k, i FOR UPDATE' % table)
    locked = value(cur, 'FETCH 1 FROM c')
    other.execute('UPDATE %s SET v = v + 1, k = -k WHERE i %% 3 = 0 AND i <> %d' % (table, locked))
    other.execute('DELETE FROM %s WHERE i %% 3 = 1 AND i <> %d' % (table, locked))
    result.append(rows(cur, 'FETCH ALL FROM c'))
    cur.execute('COMMIT')
    result.append(rows(other, 'SELECT i, k, v FROM %s ORDER BY i' % table))
    return result


def locking_rows():
    """FOR UPDATE and WHERE CURRENT OF do as with core's sort."""
    with common.server() as cluster:
        tables(cluster)
        theirs, ours = both(cluster, locking)
        equal(ours[:4], theirs[:4], 'WHERE CURRENT OF')
        equal([code for code, _ in theirs[:2]] + theirs[2:4], ['24000', '24000', None, None], 'as expected')
        check(ours[4:] == theirs[4:], 'rows changed before they are locked')
        check(len(theirs[4]) < 3 * N // 4 and any(r[2] == 1 for r in theirs[4]), 'as expected', len(theirs[4]))
        healthy(cluster, 'locking')


def expiring_snapshots():
    """old_snapshot_threshold: rows may vanish under a snapshot, so they are copied."""
    with common.server() as cluster:
        tables(cluster)
        if value(common.core(cluster), "SELECT current_setting('server_version_num')::int >= 170000"):
            common.skip('old_snapshot_threshold', 'does not exist')
            return
        if common.options.core:
            return
        for threshold in ('60min', '0', '-1'):
            cluster.restart({'old_snapshot_threshold': threshold})
            cur = session(cluster)
            node = nodes(cur, QUERY % 'ours', '')
            equal((node.get('Custom Plan Provider'), node.get('Relation Name')),
                  ('WiscSort', 'ours' if threshold == '-1' else None), 'old_snapshot_threshold = ' + threshold)
        healthy(cluster, 'old_snapshot_threshold')


if __name__ == '__main__':
    common.run([cursors, subtransactions, extension, temporary_tables, table_stays, serialization, locking_rows,
                expiring_snapshots])
