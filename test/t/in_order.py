#!/usr/bin/python3
"""Rows that come in the order of their keys, for which no keys are made: all of them, or until one that is less.
And rows whose runs follow one another, which are merged as chains."""

import common
from common import check, healthy, in_turn, rows, session, uses

ROWS = 60000
PLACES = (None, 1, 300, 17000, 40000, ROWS)     # the row that is less than the one before it

# of a number g that grows; what is less is made of 0
KEYS = {
    'icu': 'repeat(\'paragraph \', 8) || lpad(({g} / 3)::text, 20, \'0\') COLLATE "en-x-icu"',
    'c': 'repeat(\'x\', 30) || lpad({g}::text, 8, \'0\') COLLATE "C"',
    'numeric': '({g} * 1000003.57 + 0.001)::numeric',
    'null last': 'CASE WHEN {g} < 59000 THEN ({g} / 10)::numeric END',
    'two': '({g} / 100)::numeric, lpad({g}::text, 12, \'0\') COLLATE "en-x-icu"',
    'wide': "repeat('all the same ', CASE WHEN {g} / 500 = 50 THEN 1500 ELSE 1 END) || lpad({g}::text, 9, '0')"
            ' COLLATE "en-x-icu"',
    'array': 'ARRAY[{g} / 7, {g}]',
}
SETTINGS = [{'work_mem': '64kB', 'wiscsort.sort_threads': '0'}, {'work_mem': '512kB'}, {'work_mem': '64MB'},
            {'work_mem': '512kB', 'wiscsort.cache_size': '1MB'}]


def compare(cluster, name, keys, place):
    less = 'CASE WHEN i = %d THEN 0 ELSE i END' % place if place else 'i'
    columns = ', '.join('%s AS k%d' % (key, k) for k, key in enumerate(split(keys.format(g='g'))))
    query = 'SELECT i, %s FROM (SELECT i, %s AS g FROM generate_series(1, %d) i OFFSET 0) s ORDER BY %s' \
        % (columns, less, ROWS, ', '.join('k%d' % k for k in range(len(split(keys)))) + ', i')
    if name == 'wide':
        query = 'SELECT i, length(k0) FROM (%s) w' % query
    wanted = rows(common.core(cluster), query)
    turn = PLACES.index(place) + list(KEYS).index(name)
    for number in in_turn(range(len(SETTINGS)), turn, 2 if place is None else 1):
        settings = SETTINGS[number]
        cur = session(cluster, **({'work_mem': settings['work_mem']} if common.options.core else settings))
        if place is None:
            uses(cur, query)
        check(rows(cur, query) == wanted, '%s, less at %s, settings %d' % (name, place, number), settings)
        if number == 1 and name != 'wide':
            cur.execute('BEGIN')
            cur.execute('DECLARE c SCROLL CURSOR FOR ' + query)
            cur.execute('MOVE LAST FROM c')
            check(rows(cur, 'FETCH BACKWARD ALL FROM c') == wanted[-2::-1],
                  '%s, less at %s, backward' % (name, place), settings)
            cur.execute('ROLLBACK')
        cur.connection.close()


def split(keys):
    """Columns of a list in which commas are in parentheses as well."""
    found, depth, start = [], 0, 0
    for i, letter in enumerate(keys):
        depth += (letter in '([') - (letter in ')]')
        if letter == ',' and depth == 0:
            found.append(keys[start:i])
            start = i + 1
    return found + [keys[start:]]


# Rows of less memory than their entries: the first ones are learnt from when a row finds all memory used up.  The
# last row but thirty is less than the one before it, or is that row.
FULL = '''
CREATE FUNCTION pg_temp.wrong() RETURNS SETOF int LANGUAGE plpgsql AS $$
BEGIN
    FOR place IN 900..1500 LOOP
        RETURN QUERY SELECT place FROM (SELECT g, lag(g) OVER () AS before FROM (
            SELECT g FROM (SELECT CASE WHEN i = place THEN 5 ELSE i END::numeric AS g
                             FROM generate_series(1, place + 30) i OFFSET 0) r ORDER BY g OFFSET 0) s) w
         WHERE g < before LIMIT 1;
    END LOOP;
END $$'''


def memory_is_full():
    with common.server() as cluster:
        cur = session(cluster, work_mem='64kB')
        cur.execute(FULL)
        check(rows(cur, 'SELECT * FROM pg_temp.wrong()') == [], 'a row that is less, wherever memory is full')
        healthy(cluster, 'memory_is_full')


def in_order():
    with common.server() as cluster:
        for name, keys in KEYS.items():
            for place in PLACES:
                compare(cluster, name, keys, place)
        healthy(cluster, 'in_order')


def told(cur, query):
    """What EXPLAIN says of the WiscSort node."""
    cur.execute('EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) ' + query)
    todo = [cur.fetchone()[0][0]['Plan']]
    while todo:
        node = todo.pop()
        if node.get('Custom Plan Provider') == 'WiscSort':
            return node
        todo += node.get('Plans', [])
    return {}


def nothing_learnt(cur):
    """If all rows that there are come in order, their few values get no codes: no row follows."""
    query = 'SELECT g, (%s / 1000)::text COLLATE "en-x-icu" AS k FROM generate_series(1000, 3000) g ORDER BY k, g'
    for less, coded in (('g', None), ('CASE WHEN g = 2500 THEN 1000 ELSE g END', 1)):
        node = {} if common.options.core else told(cur, query % less)
        check(common.options.core or node.get('Coded Columns') == coded, 'few values, %s' % less, node)


def said():
    """EXPLAIN says so."""
    with common.server() as cluster:
        cur = session(cluster, work_mem='256kB')
        for name, less, wanted in (('in order', 'g', True), ('descending', '-g', None),
                                   ('one less', 'CASE WHEN g = 50000 THEN 0 ELSE g END', None)):
            query = 'SELECT g, %s::numeric AS k FROM generate_series(1, %d) g ORDER BY k' % (less, ROWS)
            if not common.options.core:
                check(told(cur, query).get('Rows in Order') is wanted, 'EXPLAIN, ' + name, told(cur, query))
        nothing_learnt(cur)
        healthy(cluster, 'said')


def written_once():
    """One late row has all entries written again, in the places of those that have been read: no more disk."""
    if common.options.core:
        return
    query = "SELECT timestamptz '2026-01-01' + g * interval '1 s' AS k, %s::int8 AS i FROM generate_series(1, 300000) g" \
            ' ORDER BY k, i'
    late = query.replace('+ g', '+ CASE WHEN g = 299999 THEN 0 ELSE g END')
    with common.server() as cluster:
        for settings in ({}, {'wiscsort.sort_threads': '0'}):
            cur = session(cluster, work_mem='512kB', **dict({'wiscsort.record_store': 'spool'}, **settings))
            disk = [told(cur, sql % 'g')['Disk'] for sql in (query, late)]
            check(0 < disk[1] < 1.03 * disk[0], 'one late row, kB of disk without and with it, %s' % settings, disk)
        healthy(cluster, 'written_once')


# of row i of n rows; how many chains there may be, or None
ORDERS = {
    'sorted': ('i', 1),
    'reversed': ('%(n)d - i', 1),
    'near their places': ('i + hashint4(i) %% 500', 3),
    'two ascending': ('CASE WHEN i %% 2 = 0 THEN i / 2 ELSE 10000000 + i END', None),
    'equal': ('7', 1),
    'few values, ascending': ('i / 7000', 1),
    'blocks in random order': ('(hashint4(i / 5000) & 65535) * 5000 + i %% 5000', None),
    'random, then sorted': ('CASE WHEN i < 20000 THEN hashint4(i) ELSE i END', None),
}
CHAIN_KEYS = {'int8': '(%s)::int8', 'text': "lpad((%s)::text, 10, '0') COLLATE \"C\"", 'two': '((%s) / 3)::int8, (%s)::int4'}


def digest(cur, query):
    return rows(cur, "SELECT count(*), md5(string_agg(q::text, ',')) FROM (%s) q" % query)


def chains():
    """The answer is core's; and sorted rows of exact keys are merged in one pass."""
    n = 50000
    with common.server() as cluster:
        loader = session(cluster)
        for order, (place, most) in ORDERS.items():
            loader.execute('DROP TABLE IF EXISTS c')
            loader.execute('CREATE TABLE c AS SELECT i, (%s)::int8 AS p, repeat(\'x\', i %% 40) AS v '
                           'FROM generate_series(1, %d) i' % ((place % {'n': n} if '%' in place else place), n))
            loader.execute('VACUUM ANALYZE c')
            for name, key in CHAIN_KEYS.items():
                keys = key.replace('%s', 'p')
                query = 'SELECT i, v, row_number() OVER () FROM (SELECT i, v FROM c ORDER BY %s, %s OFFSET 0) s' \
                    % (keys, 'v, i' if name == 'two' else 'i')
                plain = 'SELECT count(v) FROM (SELECT v FROM c ORDER BY %s OFFSET 0) s' % keys
                core = common.core(cluster, work_mem='64MB')
                wanted = [digest(core, query), digest(core, query + ' LIMIT 15000')]
                core.connection.close()
                # the last: a spool, until rows travel
                turn = list(ORDERS).index(order) + list(CHAIN_KEYS).index(name)
                for number, store in enumerate(('spool', 'heap', 'auto')):
                    for memory in in_turn(('64kB', '300kB'), turn + number, 2 if name == 'int8' else 1):
                        cur = session(cluster, work_mem=memory, **({} if common.options.core else
                                                                  {'wiscsort.record_store': store,
                                                                   'wiscsort.cache_size':
                                                                   '1MB' if store == 'auto' else '-1'}))
                        check(digest(cur, query) == wanted[0], '%s, %s, %s, %s' % (order, name, store, memory))
                        check(digest(cur, query + ' LIMIT 15000') == wanted[1],
                              '%s, %s, %s, %s, limit' % (order, name, store, memory))
                        if most and name == 'int8' and store != 'auto' and not common.options.core:
                            found = told(cur, plain)
                            check(found.get('Run Chains', 99) <= most and found['Merge Passes'] <= 2,
                                  '%s, %s, %s: few chains' % (order, store, memory), found)
                        cur.connection.close()
        healthy(cluster, 'chains')


if __name__ == '__main__':
    common.run([in_order, memory_is_full, said, written_once, chains])
