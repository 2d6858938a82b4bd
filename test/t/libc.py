#!/usr/bin/python3
"""Text under a collation of libc: sorted by a guess that is verified, also where
the guess is wrong.  The locale is made for the test, if its sources are there."""

import os
import tempfile

import common
from common import check, healthy, in_turn, rows, session, skip, uses
from locales import make_locale

TEXTS = {
    'words': "initcap(translate(substr(md5(i::text), 1, 5 + i % 7), '0123456789', 'ghijklmnop')) ||"
             " CASE i % 4 WHEN 0 THEN '' WHEN 1 THEN ' ' || i % 10 WHEN 2 THEN '-x' ELSE 'é' END",
    'case and accents': "translate(substr(md5((i % 3000)::text), 1, 3), '0123456789abcdef', 'aAbBeEéÉèEoOöÖuU')",
    'a common beginning': "'customer number ' || i * 7919 % 10007",
    'a long common beginning': "repeat('the same ', 12) || i * 7919 % 10007",
    'few': "'value ' || i % 7",
    'few, then new ones now and then': "CASE WHEN i % 100 = 7 AND i > 3000 THEN 'value ' || i ELSE 'value ' || i % 7 END",
    'few, then others': "CASE WHEN i > 6000 THEN 'Vàlue ' || i % 900 ELSE 'value ' || i % 7 END",
    'few, then all new': "CASE WHEN i > 6000 THEN 'value ' || i ELSE 'value ' || i % 7 END",
    'few, then in order': "'value ' || CASE WHEN i > 6000 THEN 1000000 + i / 3 ELSE i % 7 END",
    # strxfrm ignores these characters: what it is shown of the text says nothing
    'ignored beginnings': "repeat(chr(1 + i % 5), 50 + i % 30) || md5(i::text)",
    'ignored characters': "chr(1 + i % 8) || md5((i % 5000)::text) || chr(1 + i % 3)",
    'nulls and empty': "CASE WHEN i % 3 = 0 THEN NULL WHEN i % 5 = 0 THEN '' ELSE md5(i::text) END",
    'blanks': "repeat(' ', i % 3) || md5((i % 900)::text) || repeat(' ', i % 4)",
}
ORDERS = ['t, i', 't DESC, i', 't DESC NULLS LAST, n, i', 'p, i', 'n, t, i', 'd, i', 'n DESC, p, t DESC, d, i',
          'd DESC, t, n, i', 'e, p DESC, i', 'c, i % 3, i']
SETTINGS = [{'work_mem': '64kB', 'wiscsort.sort_threads': '0'}, {'work_mem': '1MB', 'wiscsort.sort_threads': '1'},
            {'work_mem': '1MB', 'wiscsort.record_store': 'heap', 'wiscsort.sort_kernel': 'template'},
            {'work_mem': '64MB'}]


def compare(cluster, turn, name):
    for place, order in enumerate(ORDERS):
        query = 'SELECT i, t, n FROM x ORDER BY ' + order
        core = common.core(cluster)
        wanted = rows(core, query)
        core.connection.close()
        backward = in_turn(SETTINGS, turn + place, 1)
        for settings in in_turn(SETTINGS, turn + place, 2):
            back = settings in backward
            if common.options.core:
                settings = {'work_mem': settings['work_mem']}
            cur = session(cluster, **settings)
            if order == 't, i':
                uses(cur, query)
            check(rows(cur, query) == wanted, '%s by %s, %s' % (name, order, settings['work_mem']), settings)
            if back:
                cur.execute('BEGIN')
                cur.execute('DECLARE c SCROLL CURSOR FOR ' + query)
                cur.execute('MOVE LAST FROM c')
                check(rows(cur, 'FETCH BACKWARD ALL FROM c') == wanted[-2::-1],
                      '%s by %s, %s, backward' % (name, order, settings['work_mem']), settings)
                cur.execute('ROLLBACK')
            cur.connection.close()


def collated():
    with tempfile.TemporaryDirectory(prefix='wiscsort-locale-') as place:
        lacking = make_locale(place)
        if lacking:
            return skip('text under libc collations', lacking)
        os.environ['LOCPATH'] = place
        with common.server() as cluster:
            cur = common.core(cluster)
            cur.execute("CREATE COLLATION us (provider = libc, locale = 'en_US.utf8')")
            cur.execute("CREATE COLLATION insensitive (provider = icu, locale = 'und-u-ks-level2',"
                        ' deterministic = false)')
            for turn, (name, text) in enumerate(TEXTS.items()):
                cur.execute('DROP TABLE IF EXISTS x')
                cur.execute('CREATE TABLE x (i int, t text COLLATE us, n numeric, p char(40) COLLATE us,'
                            ' d varchar COLLATE "C.utf8", e text COLLATE "en-x-icu", c text COLLATE insensitive)')
                cur.execute('INSERT INTO x SELECT i, v, i % 10, left(v, 40), v, v, v FROM'
                            ' (SELECT i, ' + text + ' AS v FROM generate_series(1, 12000) i) s')
                cur.execute('ANALYZE x')
                compare(cluster, turn, name)
            healthy(cluster, 'libc')
        del os.environ['LOCPATH']


def versions():
    """A collation of another version: the same rows, and the same warning."""
    with tempfile.TemporaryDirectory(prefix='wiscsort-locale-') as place:
        lacking = make_locale(place)
        if lacking:
            return skip('collations of another version', lacking)
        os.environ['LOCPATH'] = place
        with common.server() as cluster:
            cur = common.core(cluster)
            cur.execute("CREATE COLLATION us (provider = libc, locale = 'en_US.utf8')")
            cur.execute("CREATE COLLATION german (provider = icu, locale = 'de')")
            cur.execute("CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
            cur.execute("UPDATE pg_collation SET collversion = '0' WHERE collname IN ('us', 'german', 'nocase')")
            cur.execute("CREATE TABLE x AS SELECT i, 'Wort ' || i * 7919 % 10007 AS t, 'value ' || i % 7 AS few"
                        ' FROM generate_series(1, 9000) i; ANALYZE x')
            for collation in ('us', 'german', 'nocase'):
                for column in ('t', 'few'):
                    query = 'SELECT * FROM x ORDER BY %s COLLATE %s, i' % (column, collation)
                    found = []
                    for cur in (common.core(cluster), session(cluster, work_mem='64kB')):
                        cur.connection.notices.clear()
                        found.append((rows(cur, query), cur.connection.notices[:]))
                    uses(cur, query)
                    check(found[0][0] == found[1][0], 'rows by %s under %s of another version' % (column, collation))
                    check(len(found[0][1]) == 1 and found[0][1] == found[1][1], 'and the warning of %s' % collation,
                          [notices for _, notices in found])
        del os.environ['LOCPATH']


def broken():
    """Text that is not UTF-8, as another database may have put it into a shared catalog; and a locale that is gone, of a
    column that is never compared."""
    with common.server() as cluster:
        core = common.core(cluster)
        core.execute("CREATE DATABASE latin1 TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'")
        other = cluster.connect('latin1').cursor()
        for name in ('ÿ', 'ÿx', 'þ', 'þÿ', 'ýÿ', 'ÿÿ'):
            other.execute('CREATE ROLE "%s"' % name)
        core.execute("CREATE TABLE r AS SELECT rolname::text AS n, i % 3 AS m FROM pg_roles, generate_series(1, 40) i;"
                     " INSERT INTO r VALUES (NULL, 1), (NULL, NULL), ('', 2), (chr(127), 0), (chr(1114111), 0)")
        cur = session(cluster)
        for order in ('n COLLATE "C"', 'n COLLATE "C" DESC', 'n COLLATE "C" NULLS FIRST', 'm, n COLLATE "C", m',
                      'm DESC, n COLLATE "C" DESC', 'n::char(40) COLLATE "C" DESC, m'):
            query = 'SELECT md5(n), m FROM (SELECT * FROM r ORDER BY %s, m OFFSET 0) s' % order
            check(rows(cur, query) == rows(core, query), 'text that is not UTF-8 by ' + order)
            uses(cur, query)
        core.execute("CREATE COLLATION gone (provider = libc, locale = 'C'); CREATE TYPE pair AS (a int4, b text COLLATE gone);"
                     " CREATE TABLE p AS SELECT ROW(hashint4(i), 'x')::pair AS p FROM generate_series(1, 3000) i;"
                     " UPDATE pg_collation SET collcollate = 'none_such', collctype = 'none_such' WHERE collname = 'gone'")
        cur, core = session(cluster), common.core(cluster)
        query = 'SELECT p FROM p ORDER BY p'
        check(rows(cur, query) == rows(core, query), 'a locale that is gone, of a column that is not compared')
        healthy(cluster, 'broken')


if __name__ == '__main__':
    common.run([collated, versions, broken])
