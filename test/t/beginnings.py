#!/usr/bin/python3
"""Keys that begin alike: codes of what they begin with, and guesses of ICU text behind that, also where letters
go together with what is passed over."""

import common
from common import check, equal, healthy, in_turn, rows, session, uses

TEXTS = {
    'addresses': "'https://www.shop-' || i * 7919 % 20 || '.example.org/category/' || i * 104729 % 50 || '/' || md5(i::text)",
    'one beginning': "repeat('x', 100) || md5(i::text)",
    'one longer than is kept': "repeat('all the same ', 25) || md5(i::text)",
    'numbers that grow': "lpad(i::text, 30, '0')",
    'numbers that fall': "'order ' || lpad((1000000 - i * 30)::text, 30, '0')",
    'others later': "CASE WHEN i < 17000 THEN 'https://www.example.org/' || i % 5000 ELSE md5(i::text) END",
    'a few others': "CASE i % 100 WHEN 1 THEN '' WHEN 2 THEN 'https' WHEN 3 THEN chr(233) || i WHEN 4 THEN NULL"
                    " ELSE 'https://www.example.org/' || i * 7919 % 5000 END",
    'parts of others': "left(repeat('abc', 30), 1 + i * 7919 % 80) || CASE i % 3 WHEN 0 THEN '' WHEN 1 THEN 'b' ELSE 'd' || i % 90 END",
    'bytes that are escaped': "'the same' || chr(1 + i % 3) || chr(1 + i % 2) || chr(1 + i % 5) || i * 7919 % 3000",
    # one letter of Danish, behind z, of which the first half is in what all begin with
    'letters of two': "'Herr Sla' || substr('abcz', 1 + i % 4, 1) || md5(i::text)",
    'accents of their own': "'Herr Sla' || CASE i % 3 WHEN 0 THEN chr(778) WHEN 1 THEN chr(769) ELSE '' END || i * 7919 % 3000",
    'few, of two cases': "CASE i % 2 WHEN 0 THEN 'https://www.example.org/' ELSE 'HTTPS://www.example.org/' END || i * 7919 % 3000",
}
ORDERS = ['c, i', 'c DESC NULLS LAST, i', 'd, i', 'd DESC, i', 'b, i', 'n, c, i', 'n, d, i', 'q, d, i',
          's, c DESC, i', 's, l, i', 'l, m DESC, i', 'p DESC, d, i', 'v, c, i']
SETTINGS = [{'work_mem': '64kB', 'wiscsort.sort_threads': '0'}, {'work_mem': '1MB'},
            {'work_mem': '1MB', 'wiscsort.record_store': 'heap', 'wiscsort.sort_kernel': 'template'},
            {'work_mem': '1MB', 'wiscsort.record_store': 'inline'}, {'work_mem': '64MB'}]


def compare(cluster, turn, name):
    for place, order in enumerate(ORDERS):
        query = 'SELECT i, c, n FROM x ORDER BY ' + order
        core = common.core(cluster)
        wanted = rows(core, query)
        core.connection.close()
        for number in in_turn(range(len(SETTINGS)), turn + place, 2):
            settings = SETTINGS[number]
            if common.options.core:
                settings = {'work_mem': settings['work_mem']}
            cur = session(cluster, **settings)
            if order == 'c, i':
                uses(cur, query)
            check(rows(cur, query) == wanted, '%s by %s, settings %d' % (name, order, number), settings)
            if number != 1:
                cur.connection.close()
                continue
            cur.execute('BEGIN')
            cur.execute('DECLARE c SCROLL CURSOR FOR ' + query)
            cur.execute('MOVE LAST FROM c')
            check(rows(cur, 'FETCH BACKWARD ALL FROM c') == wanted[-2::-1],
                  '%s by %s, settings %d, backward' % (name, order, number), settings)
            cur.execute('ROLLBACK')
            cur.connection.close()


def explained(cluster):
    """EXPLAIN says what has been learnt."""
    if common.options.core:
        return
    cur = session(cluster, work_mem='1MB')
    for order, field in (('c, i', 'Coded Beginnings'), ('d, i', 'Guessed Columns'), ('n, c, i', 'Coded Columns'),
                         ('s, n, i', 'Coded Columns'), ('c, n, i', 'Coded Beginnings')):
        cur.execute('EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) SELECT i, c, n FROM x ORDER BY ' + order)
        node = cur.fetchone()[0][0]['Plan']
        check(node.get(field, 0) > 0, 'by %s: %s is %s' % (order, field, node.get(field)))
    equal(node.get('Coded Columns', 0), 0, 'what stands behind a column that tells rows apart gets no codes')
    cur.connection.close()


def alike():
    with common.server() as cluster:
        cur = common.core(cluster)
        for turn, (name, text) in enumerate(TEXTS.items()):
            cur.execute('DROP TABLE IF EXISTS x')
            cur.execute('CREATE TABLE x (i int, c text COLLATE "C", d text COLLATE "da-x-icu", b bytea,'
                        ' n text COLLATE "da-x-icu", q numeric,'
                        ' s smallint, l bigint, m bigint, p char(60) COLLATE "da-x-icu", v varchar COLLATE "C" NOT NULL)')
            cur.execute('INSERT INTO x SELECT i, v, v, v::bytea, i % 10, i % 10, i % 4, i % 1000, i * 7919 % 100003, left(v, 60),'
                        " coalesce(left(v, 40), '') FROM (SELECT i, " + text + ' AS v FROM generate_series(1, 20000) i) s')
            cur.execute('ANALYZE x')
            if name == 'one beginning':
                explained(cluster)
            compare(cluster, turn, name)
        healthy(cluster, 'beginnings')


def packed():
    """Words, of which the bytes behind codes are packed: also if other letters come later."""
    with common.server() as cluster:
        cur = common.core(cluster)
        cur.execute("CREATE TABLE w AS SELECT i, c, c COLLATE \"en-x-icu\" AS d, nullif(i % 7, 0) AS n, left(c, 20) AS l FROM"
                    " (SELECT i, string_agg((ARRAY['regular', 'final', 'deposits', 'requests', 'Sleep', 'quickly', 'across', 'the',"
                    " 'furiously', 'packages', 'carefully', 'ironic', 'accounts', 'bold'])[1 + (hashint4(i * 7 + k) & 2147483647) % 14],"
                    " CASE k % 3 WHEN 1 THEN ', ' ELSE ' ' END ORDER BY k) || CASE WHEN i > 70000 AND i % 5 = 0 THEN chr(960) || i"
                    " WHEN i % 1000 = 0 THEN chr(233) ELSE '' END AS c FROM generate_series(1, 80000) i, generate_series(1, 5) k"
                    " GROUP BY i) s")
        cur.execute('ANALYZE w')
        for order in ('c COLLATE "C"', 'c COLLATE "C", i', 'c COLLATE "C" DESC, i', 'd, i', 'd DESC, i', 'l COLLATE "C", d, i', 'n, d, i'):
            query = 'SELECT %s c FROM w ORDER BY %s' % ('i,' if order.endswith('i') else '', order)
            cur = common.core(cluster)
            wanted = rows(cur, query)
            cur.connection.close()
            for memory in ('512kB', '4MB'):
                cur = session(cluster, work_mem=memory)
                check(rows(cur, query) == wanted, 'words by %s, %s' % (order, memory))
                cur.connection.close()
        healthy(cluster, 'words that are packed')


def by_chance():
    """Keys that repeat, of which few come again: codes of those that the first rows have are of no use."""
    if common.options.core:
        return
    with common.server() as cluster:
        cur = session(cluster, work_mem='1MB')
        cur.execute("CREATE TABLE r AS SELECT md5((hashint4(i) & 65535)::text)::uuid AS u, md5((hashint4(i) & 127)::text)"
                    "::uuid AS f, i FROM generate_series(1, 100000) i")
        cur.execute('ANALYZE r')
        for order, coded in (('u, i', False), ('f, i', True)):
            query = 'SELECT u, f, i FROM r ORDER BY ' + order
            cur.execute('EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) ' + query)
            node = cur.fetchone()[0][0]['Plan']
            equal(node.get('Coded Beginnings', 0) > 0, coded, 'codes of beginnings by ' + order)
            check(rows(cur, query) == rows(common.core(cluster), query), 'rows by ' + order)
        healthy(cluster, 'keys that repeat by chance')


if __name__ == '__main__':
    common.run([alike, packed, by_chance])
