#!/usr/bin/python3
"""NOT NULL constraints that are younger than the snapshot: a STABLE function, and a transaction
that keeps its snapshot, still see the nulls that were there, and get their rows."""

import threading
import time

import common
from common import check, core, equal, healthy, rows, session, value

FUNCTION = """CREATE FUNCTION {name}() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE r record; found text := '';
BEGIN
    FOR r IN SELECT k, v FROM nn ORDER BY {order} OFFSET 0 LOOP
        found := found || coalesce(r.k::text, 'null') || ' ';
    END LOOP;
    RETURN found;
END $$"""
CALL = 'SELECT {name}() FROM (SELECT pg_sleep(1.5) OFFSET 0) s WHERE s IS NOT NULL'
ORDERS = {'by_key': 'k', 'by_two': 'k, v'}


def fill(cur):
    cur.execute('DROP TABLE IF EXISTS nn')
    cur.execute('CREATE TABLE nn (k int8, v int4)')
    cur.execute('INSERT INTO nn SELECT CASE WHEN i % 10 > 0 THEN i END, i FROM generate_series(1, 200) i')


def change(cur):
    cur.execute('BEGIN; DELETE FROM nn WHERE k IS NULL; ALTER TABLE nn ALTER k SET NOT NULL; COMMIT')


def stable_function():
    """Planned after the change, executed with a snapshot from before."""
    with common.server() as cluster:
        other = core(cluster)
        fill(other)
        for name, order in ORDERS.items():
            other.execute(FUNCTION.format(name=name, order=order))
        for name in ORDERS:
            fill(other)
            wanted = value(core(cluster), 'SELECT %s()' % name)
            cur = session(cluster)
            answer = []
            thread = threading.Thread(target=lambda: answer.append(
                common.error(cur, CALL.format(name=name))[1] or cur.fetchone()[0]))
            thread.start()
            time.sleep(0.5)
            change(other)
            thread.join()
            equal(answer, [wanted], 'a STABLE function sees the nulls, ' + name)
            check('null' not in value(session(cluster), 'SELECT %s()' % name), 'and later none, ' + name)
        healthy(cluster, 'stable function')


def own_change():
    """The constraint is made by the statement that calls the function, behind its snapshot."""
    with common.server() as cluster:
        cur = session(cluster)
        fill(cur)
        cur.execute(FUNCTION.format(name='by_key', order='k'))
        cur.execute("CREATE FUNCTION change() RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN"
                    ' DELETE FROM nn WHERE k IS NULL; ALTER TABLE nn ALTER k SET NOT NULL; RETURN 1; END $$')
        cur.execute('SELECT by_key()')
        wanted = cur.fetchone()[0]
        query = 'SELECT by_key() FROM (SELECT change() AS c OFFSET 0) s WHERE s.c = 1'
        code, message = common.error(cur, query)
        check(code is None and cur.fetchone()[0] == wanted, 'one statement changes and sorts', message)
        healthy(cluster, 'own change')


def kept_snapshot():
    with common.server() as cluster:
        other = core(cluster)
        fill(other)
        cur = session(cluster)
        cur.execute('BEGIN ISOLATION LEVEL REPEATABLE READ')
        cur.execute('SELECT 1')
        change(other)
        found = rows(cur, 'SELECT k FROM nn ORDER BY k NULLS FIRST OFFSET 0')
        equal(len([k for k, in found if k is None]), 20, 'REPEATABLE READ sees the nulls')
        cur.execute('COMMIT')
        equal(len(rows(cur, 'SELECT k FROM nn ORDER BY k OFFSET 0')), 180, 'and none afterwards')
        healthy(cluster, 'kept snapshot')


# The rows of a scan come to the sort as they are, or through nodes that pass them on.
COLUMN_IN_FRONT = ('SELECT * FROM %s ORDER BY k', 'SELECT * FROM %s ORDER BY n, k',
                   'SELECT * FROM (SELECT * FROM %s LIMIT 3000) s ORDER BY k',
                   'SELECT * FROM (SELECT * FROM %s LIMIT 3000) s ORDER BY pad',
                   'SELECT * FROM %s TABLESAMPLE SYSTEM (100) ORDER BY k',
                   'SELECT * FROM (SELECT * FROM %s OFFSET 0) s WHERE random() >= 0 ORDER BY k')


def column_in_front():
    """A constraint of a column that is no key, but lies in front of one: rows are taken apart as if it held."""
    with common.server(max_parallel_workers_per_gather='0') as cluster:
        other = core(cluster)
        other.execute('CREATE TABLE a (n int, k int, pad text); CREATE TABLE parts (n int, k int, pad text)'
                      ' PARTITION BY HASH (k);'
                      'CREATE TABLE one PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);'
                      'CREATE TABLE two PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1)')
        for table in ('a', 'parts'):
            for store in ('spool', 'heap'):
                for jit in ('off', 'on'):
                    cur = session(cluster) if common.options.core else \
                        session(cluster, **{'wiscsort.record_store': store})
                    other.execute('ALTER TABLE %s ALTER n DROP NOT NULL' % table)
                    other.execute('TRUNCATE ' + table)
                    other.execute("INSERT INTO %s SELECT nullif(i %% 10, 0), hashint4(i), 'row ' || i"
                                  ' FROM generate_series(1, 3000) i' % table)
                    other.execute('ANALYZE ' + table)
                    queries = [query % table for query in COLUMN_IN_FRONT]
                    wanted = [rows(core(cluster), query) for query in queries]
                    cur.execute('SET jit = %s; SET jit_above_cost = 0; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1'
                                % jit)
                    other.execute('BEGIN; DELETE FROM {0} WHERE n IS NULL; ALTER TABLE {0} ALTER n SET NOT NULL; COMMIT'
                                  .format(table))
                    for query, right in zip(queries, wanted):
                        check(rows(cur, query) == right, '%s, %s, jit = %s' % (query, store, jit))
                    cur.execute('COMMIT')
                    cur.connection.close()
        healthy(cluster, 'column in front')


if __name__ == '__main__':
    common.run([stable_function, own_change, kept_snapshot, column_in_front])
