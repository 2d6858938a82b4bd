#!/usr/bin/python3
"""Rows that come in the order of their keys, for which no keys are made: all of them, or until one that is less."""

import common
from common import check, healthy, rows, session, uses

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
    for number, settings in enumerate(SETTINGS):
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


if __name__ == '__main__':
    common.run([in_order, memory_is_full])
