#!/usr/bin/python3
"""Values that are made of text under libc, and of enums (arrays, rows, ranges, jsonb): sorted by a guess that is
verified, also where the guess is wrong, and where the first rows do not show it."""

import common
from common import check, healthy, in_turn, rows, session, skip
from locales import at_hand

WORD = "translate(substr(md5((i * %d)::text), 1, 2 + i %% 6), '0123456789', 'ghijklmnop')"
TEXTS = {
    'words': (WORD % 1, WORD % 3),
    'few, then words': ("'tag ' || i %% 5", WORD % 3),
    'words of two cases': ("translate(%s, 'abcdef', 'aAbBeE')" % (WORD % 1), WORD % 3),
    'accents': ("translate(substr(md5((i %% 300)::text), 1, 3), '0123456789abcdef', 'aáeéèêoöôuUüyÿAE')", WORD % 3),
    'long beginnings': ("repeat('the same ', 12) || i * 7919 %% 10007", WORD % 3),
    'lower case, then capitals': ("CASE WHEN i > 5000 THEN initcap(%s) ELSE %s END" % (WORD % 1, WORD % 1), WORD % 3),
    'nulls, empty and blanks': ("CASE i %% 7 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN '  ' ELSE md5(i::text) END",
                                "repeat(' ', i %% 3)"),
    'characters that weigh nothing': ("chr(1 + i %% 8) || md5((i %% 900)::text) || chr(1 + i %% 3)", "chr(1 + i %% 5)"),
}
VALUES = {
    'a': ('text[]', 'ARRAY[t, u]'),
    'b': ('bpchar(30)[]', "CASE i % 3 WHEN 0 THEN ARRAY[t] WHEN 1 THEN ARRAY[t, u, t] ELSE ARRAY[NULL, u] END::bpchar(30)[]"),
    'c': ('named', 'ROW(t, i % 100)::named'),
    'd': ('kinds', 'ROW(i % 3, u, t)::kinds'),
    'e': ('jsonb', "jsonb_build_object('kind', i % 5, 'name', t, 'of', u)"),
    'f': ('jsonb', 'to_jsonb(t)'),
    'g': ('words', 'words(least(t, u), greatest(t, u))'),
    'h': ('named[]', "ARRAY[ROW(u, i % 10)::named, ROW(t, i)::named]"),
    'l': ('level[]', "ARRAY(SELECT (enum_range(NULL::level))[1 + abs(hashint4(i * 8 + k)) % 6] FROM generate_series(1, i % 6) k)"),
    'n': ('two', 'ROW(t, u)::two'),
    'm': ('levels', "ROW((enum_range(NULL::level))[1 + i % 6], t)::levels"),
}
GUESSED = {'words': dict.fromkeys('acdefm', True), 'accents': {'a': False, 'c': False}}
ORDERS = ['%s, i', '%s DESC NULLS LAST, i', 'i / 2000, %s, i']
SETTINGS = [{'work_mem': '64kB', 'wiscsort.sort_threads': '0'}, {'work_mem': '256kB'},
            {'work_mem': '1MB', 'wiscsort.record_store': 'heap'}, {'work_mem': '64MB'}]


def compare(cluster, turn, name):
    for place, column in enumerate(VALUES):
        for form in ORDERS[turn % 2:]:
            orders = form % column
            query = 'SELECT i, %s::text AS shown FROM x ORDER BY %s' % (column, orders)
            cur = common.core(cluster, database='us')
            wanted = rows(cur, query)
            cur.connection.close()
            for settings in in_turn(SETTINGS, turn + place, 1):
                if common.options.core:
                    settings = {'work_mem': settings['work_mem']}
                cur = session(cluster, database='us', **settings)
                check(rows(cur, query) == wanted, '%s by %s, %s' % (name, orders, settings['work_mem']), settings)
                cur.connection.close()


def guesses(cluster, name):
    """Is there a guess where one pays, and none where it would be wrong?"""
    if common.options.core or name not in GUESSED:
        return
    cur = session(cluster, database='us', work_mem='256kB')
    for column, guessed in GUESSED[name].items():
        cur.execute('EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) SELECT * FROM x ORDER BY %s' % column)
        node = cur.fetchone()[0][0]['Plan']
        check((node.get('Guessed Columns', 0) > 0) == guessed, 'the order of %s by %s is guessed: %s'
              % (name, column, guessed), node)


def made_of_text():
    with at_hand() as lacking:
        if lacking:
            return skip('values made of text under libc', lacking)
        with common.server() as cluster:
            common.core(cluster).execute("CREATE DATABASE us TEMPLATE template0 LOCALE 'en_US.utf8'")
            cur = common.core(cluster, database='us')
            cur.execute('CREATE EXTENSION wiscsort')
            cur.execute("CREATE TYPE level AS ENUM ('a', 'z', 'b', 'y', 'c')")
            cur.execute("ALTER TYPE level ADD VALUE 'middle' BEFORE 'b'")
            cur.execute('CREATE TYPE named AS (name text, n int)')
            cur.execute('CREATE TYPE kinds AS (kind int2, name text, other text)')
            cur.execute('CREATE TYPE two AS (name text, code text COLLATE "C")')
            cur.execute('CREATE TYPE levels AS (l level, name text)')
            cur.execute('CREATE TYPE words AS RANGE (subtype = text)')
            for turn, (name, (first, second)) in enumerate(TEXTS.items()):
                cur.execute('DROP TABLE IF EXISTS x')
                cur.execute('CREATE TABLE x (i int, %s)' % ', '.join('%s %s' % (c, v[0]) for c, v in VALUES.items()))
                cur.execute('INSERT INTO x SELECT i, %s FROM (SELECT i, %s AS t, %s AS u FROM generate_series(1, 7000) i) s'
                            % (', '.join(v[1] for v in VALUES.values()), first.replace('%%', '%'),
                               second.replace('%%', '%')))
                cur.execute('ANALYZE x')
                compare(cluster, turn, name)
                guesses(cluster, name)
            healthy(cluster, 'parts')


if __name__ == '__main__':
    common.run([made_of_text])
