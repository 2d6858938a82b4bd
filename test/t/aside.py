#!/usr/bin/python3
"""Sort keys with long values behind others: they are read no more often than by PostgreSQL's own sort where those
before them tell rows apart, and the rows are the same where they do not.  Of the first of them no more is read than
a key holds."""

import common
from common import check, healthy, in_turn, rows, session, uses

ROWS = 5000
LONG = "(SELECT string_agg(md5(i::text || j), '') FROM generate_series(1, 80 + i % 3) j)"
# `k`, `bill` and `person` tell rows apart, but for a row in a thousand, though not by their first bytes; `few` does not.
# `mixed` has a long value now and then, and `rare` and `rares` so few that they do not count.
MAKE = """
CREATE TABLE x AS SELECT i, CASE WHEN i %% 1000 > 0 THEN hashint8(i) END AS k, i %% 40 AS few,
    md5(i::text) COLLATE "C" AS code, hashint4(i) AS n,
    ('INV-2024-' || lpad((i * 7919 %% %d)::text, 6, '0')) COLLATE "C" AS bill,
    ('p' || i * 7919 %% %d) COLLATE "en-x-icu" AS person,
    CASE WHEN i %% 7 > 0 THEN doc END AS doc, CASE WHEN i %% 7 > 0 THEN doc END COLLATE "C" AS c,
    jsonb_build_object('a', doc) AS j, ARRAY[doc, code] AS a, doc::bytea AS b,
    CASE WHEN i %% 20 = 0 THEN doc ELSE code END AS mixed,
    CASE WHEN i %% 40 = 0 THEN doc ELSE code END COLLATE "und-x-icu" AS rare,
    ARRAY[CASE WHEN i %% 40 = 0 THEN doc ELSE code END] AS rares, CASE WHEN i < %d THEN code ELSE doc END AS late
FROM (SELECT i, left(md5((i / 3)::text), 20) AS code, %s AS doc FROM generate_series(1, %d) i) s""" % (ROWS, ROWS, ROWS * 3 // 4, LONG, ROWS)
COLUMNS = ['doc', 'c', 'j', 'a', 'b', 'mixed', 'rare', 'rares', 'late']
SETTINGS = [{'wiscsort.record_store': 'spool'}, {'wiscsort.record_store': 'inline'}, {'wiscsort.record_store': 'heap'},
            {'wiscsort.record_store': 'spool', 'work_mem': '256kB', 'wiscsort.sort_threads': '0'}]

# Of 16 kB, stored out of line, in a row of TOAST for each 2 kB; `alike` begins with 300 bytes that all have, `few` with
# one of seven, and the values of `squeezed` are compressed.
DOCS = 2000
MAKE_DOCS = """
CREATE TABLE docs (i int, c text COLLATE "C", alike text COLLATE "C", few text COLLATE "C", b bytea, squeezed bytea,
    kind text COLLATE "en-x-icu");
ALTER TABLE docs ALTER c SET STORAGE EXTERNAL, ALTER alike SET STORAGE EXTERNAL, ALTER few SET STORAGE EXTERNAL,
    ALTER b SET STORAGE EXTERNAL;
INSERT INTO docs SELECT i, CASE WHEN i %% 500 > 0 THEN doc END, repeat('alike', 60) || doc, i %% 7 || repeat('few', 6000),
    decode(repeat('00', i %% 3) || '01' || left(md5(i::text), i %% 5 * 2) || repeat('00', 5000 + i %% 2), 'hex'),
    decode(left(md5((i %% 100)::text), 4) || repeat('00', 8000 + i %% 10) || md5(i::text), 'hex'), 'k' || i %% 5
FROM (SELECT i, (SELECT string_agg(md5(i::text || j), '') FROM generate_series(1, 500) j) AS doc
      FROM generate_series(1, %d) i) s""" % DOCS


def server():
    cluster = common.server(max_parallel_workers_per_gather='0', autovacuum='off', shared_buffers='256MB')
    cur = common.core(cluster)
    cur.execute(MAKE)
    cur.execute('VACUUM ANALYZE x')
    cur.execute(MAKE_DOCS)
    cur.execute('VACUUM ANALYZE docs')
    return cluster


def sorting(cluster, **settings):
    if common.options.core:
        settings = {'work_mem': settings.get('work_mem', '1MB')}
    return session(cluster, **dict({'work_mem': '1MB'}, **settings))


def same_rows(cluster):
    core = common.core(cluster, work_mem='64MB')
    for turn, column in enumerate(COLUMNS):
        for order in ('k, {}, i', 'k DESC, {} DESC, i', 'k NULLS FIRST, {} NULLS FIRST, n DESC, i', 'few, {}, i',
                      'code, {} DESC NULLS LAST, i', 'code, n, {}, i', 'k, few, code, {}, i', 'bill, {}',
                      'person DESC, {}'):
            sql = 'SELECT i, md5(%s::text) FROM x ORDER BY %s' % (column, order.format(column))
            wanted = rows(core, sql)
            for settings in in_turn(SETTINGS, turn, 2):
                cur = sorting(cluster, **settings)
                uses(cur, sql)
                check(rows(cur, sql) == wanted, '%s: %s' % (sql[sql.index('ORDER'):], settings))
                cur.connection.close()


def blocks(cur, sql):
    cur.execute('EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(i) FROM (%s OFFSET 0) s' % sql)
    plan = cur.fetchone()[0][0]['Plan']
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']


def read_when_needed(cluster):
    """Values that core does not read are not read."""
    core = common.core(cluster)
    for order in ('n, rare', 'n, rares', 'few, person, rare', 'few, person, rares'):
        sql = 'SELECT * FROM x ORDER BY ' + order
        least = blocks(core, sql)
        cur = sorting(cluster, **SETTINGS[0])
        found = blocks(cur, sql)
        check(found < least + 0.01 * ROWS, '%s: blocks' % order, '%d, core %d' % (found, least))
        cur.connection.close()
    for column in COLUMNS[:-3]:
        for order in ('k, {}', 'k DESC, {} DESC', 'code, n, {}, i', 'bill, {}', 'person, {} DESC'):
            sql = 'SELECT * FROM x ORDER BY ' + order.format(column)
            least = blocks(core, sql)
            for settings in SETTINGS:
                cur = sorting(cluster, **settings)
                uses(cur, sql)
                found = blocks(cur, sql)
                # to read them would take three blocks a row; rows that stay in the table are visited there
                check(found < least + (1.1 if 'heap' in settings.values() else 0.1) * ROWS,
                      '%s: blocks, %s' % (order.format(column), settings), '%d, core %d' % (found, least))
                cur.connection.close()


def beginnings_alone(cluster):
    """Of a long value, a key has the first bytes: no others are read.  A read takes three or four blocks."""
    core = common.core(cluster, work_mem='64MB')
    for turn, column in enumerate(['c', 'c, kind', 'alike', 'few', 'b', 'squeezed']):
        first, *others = column.split(', ')
        for order in (column, ', '.join([first + ' DESC NULLS LAST'] + others), 'left(i::text, 1), ' + column):
            sql = 'SELECT i, %s FROM docs ORDER BY %s, i' % (first, order)
            wanted = rows(core, sql)
            for settings in in_turn(SETTINGS, turn, 2):
                cur = sorting(cluster, **settings)
                uses(cur, sql)
                check(rows(cur, sql) == wanted, 'docs by %s: %s' % (order, settings))
                cur.connection.close()
    for column, reads in (('c', 1), ('c, kind', 2)):
        cur = sorting(cluster, **SETTINGS[0])
        found = blocks(cur, 'SELECT * FROM docs ORDER BY ' + column)
        check(common.options.core or found < (4 * reads + 1) * DOCS, 'docs by %s: blocks' % column, found)
        cur.connection.close()


def long_values():
    with server() as cluster:
        same_rows(cluster)
        read_when_needed(cluster)
        beginnings_alone(cluster)
        healthy(cluster, 'long values')


if __name__ == '__main__':
    common.run([long_values])
