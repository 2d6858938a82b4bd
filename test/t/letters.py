#!/usr/bin/python3
"""Texts that letters do not tell come late, where the key bytes before them leave no byte for a guess, or have
none of theirs in the prefix at all, or where a limit is known: the order is right nevertheless."""

import os
import tempfile

import common
from common import check, healthy, in_turn, rows, session, skip, uses
from locales import collation, make_locale

STORES = ['spool', 'inline', 'heap']


def compare(cluster, name, query):
    wanted = rows(common.core(cluster), query)
    for store in STORES:
        settings = {} if common.options.core else {'wiscsort.record_store': store}
        cur = session(cluster, work_mem='1MB', **settings)
        uses(cur, query)
        check(rows(cur, query) == wanted, '%s, %s' % (name, store))
        cur.connection.close()


# A guess may take 'A' to be less than 'a' with a letter that is ignored.
def behind_wide_columns():
    """What is before the texts is all of a prefix, or more, so that they only count where it is the same."""
    with common.server() as cluster:
        cur = common.core(cluster)
        cur.execute('CREATE TABLE wide (a int8 NOT NULL, b int2 NOT NULL, s interval NOT NULL, u uuid NOT NULL,'
                    ' t text COLLATE "en-x-icu" NOT NULL)')
        cur.execute('INSERT INTO wide SELECT hashint8(n), n % 30000, n * interval \'1 s\', md5(n::text)::uuid,'
                    " CASE WHEN i > 30000 THEN E'a\\x01' ELSE 'A' END"
                    ' FROM generate_series(1, 60000) i, LATERAL (SELECT i % 30000) AS x(n)')
        cur.execute('ANALYZE wide')
        for order in ('a, b, t', 's, t', 'u, t', 'u DESC, t DESC'):
            compare(cluster, 'strange texts by ' + order, 'SELECT a, t FROM wide ORDER BY ' + order)
        healthy(cluster, 'wide columns')


def where_few_tie():
    """Few of the first rows tie, half of all do, and a Greek letter, of which letters tell nothing, comes late."""
    with common.server() as cluster:
        cur = common.core(cluster)
        cur.execute('CREATE TABLE told (a int8 NOT NULL, b int2 NOT NULL, c text COLLATE "en-x-icu",'
                    ' t text COLLATE "en-x-icu" NOT NULL)')
        cur.execute("INSERT INTO told SELECT hashint8(n), n % 30000, md5(n::text), CASE WHEN i > 30000 AND i % 2 = 0 THEN"
                    " U&'\\03B1bc' ELSE 'Z' END || i FROM generate_series(1, 60000) i, LATERAL (SELECT CASE"
                    ' WHEN i > 30000 THEN 30000 + i / 2 WHEN i % 100 = 0 THEN i - 1 ELSE i END) x(n)')
        cur.execute('ANALYZE told')
        cur.execute("UPDATE pg_class SET reltuples = 4e6 WHERE relname = 'told'")
        for order in ('a, b, t', 'a DESC, b, t DESC', 'c, t', 'c DESC, t DESC'):
            compare(cluster, 'Greek texts by ' + order, 'SELECT a, t FROM told ORDER BY ' + order)
        healthy(cluster, 'few that tie')


def behind_another_text():
    """The letters of the text before do not tell its order: both are compared."""
    with common.server() as cluster:
        cur = common.core(cluster)
        cur.execute('CREATE TABLE two (i int, c text COLLATE "cs-x-icu", t text COLLATE "en-x-icu")')
        cur.execute("INSERT INTO two SELECT i, md5((i % 25000)::text), CASE WHEN i % 100 = 7 AND i > 30000 THEN U&'a\\FB01x'"
                    " WHEN i % 100 = 8 AND i > 30000 THEN E'a\\x02b' ELSE 'a' || chr(97 + i % 26) || i % 7 END"
                    ' FROM generate_series(1, 60000) i')
        cur.execute('ANALYZE two')
        for order in ('c, t, i', 'c DESC, t DESC, i'):
            compare(cluster, 'strange texts by ' + order, 'SELECT i, t FROM two ORDER BY ' + order)
        cur.execute("CREATE TABLE three AS SELECT i, md5((i % 50)::text) COLLATE \"en-x-icu\" AS a,"
                    ' md5((i % 700)::text) COLLATE "en-x-icu" AS b, md5(i::text) COLLATE "en-x-icu" AS c'
                    ' FROM generate_series(1, 60000) i')
        cur.execute('ANALYZE three')
        for order in ('c, b, i', 'b DESC, a, c DESC', 'c, a, b'):
            compare(cluster, 'texts of one collation by ' + order, 'SELECT i, c FROM three ORDER BY ' + order)
        healthy(cluster, 'another text')


def behind_a_limit():
    """Punctuation, which libc ignores, comes first.  Then a ligature comes."""
    with tempfile.TemporaryDirectory(prefix='wiscsort-locale-') as place:
        why = make_locale(place)
        if why:
            skip('text under en_US.utf8 and a limit', why)
            return
        os.environ['LOCPATH'] = place
        with common.server() as cluster:
            cur = common.core(cluster)
            cur.execute(collation('en_US'))
            cur.execute("CREATE TABLE few AS SELECT CASE WHEN i BETWEEN 60001 AND 60100 THEN U&'\\FB01' || i"
                        " ELSE 'f' || chr(97 + (hashint4(i) & 1023) % 26) || '-' || md5(i::text) END"
                        ' COLLATE "en_US.utf8" AS t FROM generate_series(1, 120000) i')
            cur.execute('ANALYZE few')
            compare(cluster, 'a ligature and a limit', 'SELECT t FROM few ORDER BY t LIMIT 45000')
            healthy(cluster, 'a limit')
        del os.environ['LOCPATH']


CYRILLIC = "translate(md5(%s::text), '0123456789abcdef', 'абвгдежзиклмнопр')"


def other_scripts():
    """Behind Latin texts, and known values, come others of which an alphabet knows no letter."""
    with tempfile.TemporaryDirectory(prefix='wiscsort-locale-') as place:
        why = make_locale(place)
        if not why:
            os.environ['LOCPATH'] = place
        with common.server() as cluster:
            cur = common.core(cluster)
            names = ['en-x-icu', 'cs-x-icu']
            if why:
                skip('text under en_US.utf8 and other scripts', why)
            else:
                cur.execute(collation('en_US'))
                names.append('en_US.utf8')
            for turn, name in enumerate(names):
                cur.execute('DROP TABLE IF EXISTS late')
                cur.execute('CREATE TABLE late AS SELECT i, (CASE WHEN i <= 20000 THEN md5(i::text) WHEN i %% 7 = 0'
                            " THEN 'x' || {0} ELSE {0} END) COLLATE \"{1}\" AS t, (CASE WHEN i <= 20000 THEN {2}"
                            ' ELSE {0} END) COLLATE "{1}" AS few FROM generate_series(1, 50000) i'
                            .replace('%%', '%').format(CYRILLIC % 'i', name, CYRILLIC % '(i % 300)'))
                cur.execute('ANALYZE late')
                for order in in_turn(('t, i', 't DESC, i', 'few, t, i', 'few DESC, i'), turn, 2):
                    compare(cluster, '%s by %s' % (name, order), 'SELECT i, t FROM late ORDER BY ' + order)
            healthy(cluster, 'other scripts')
        os.environ.pop('LOCPATH', None)


def beside_each_other():
    """Texts with wrong guesses lie beside each other, and those that follow are smaller than all of them."""
    with common.server() as cluster:
        cur = common.core(cluster)
        cur.execute("CREATE TABLE marks AS SELECT i, (CASE WHEN i > 20000 AND i % 2000 < 4 THEN repeat(U&'\\0301', 4)"
                    " || 'zzz' || i ELSE md5(i::text) END) COLLATE \"en-x-icu\" AS t FROM generate_series(1, 60000) i")
        cur.execute('ANALYZE marks')
        for order in ('t', 't DESC', 'i % 3, t'):
            compare(cluster, 'accents alone by ' + order, 'SELECT i, t FROM marks ORDER BY %s, i' % order)
        healthy(cluster, 'beside each other')


def first_is_odd():
    """Of objects the first one has another key than all others, or keys are of two kinds."""
    with common.server() as cluster:
        cur = common.core(cluster)
        cur.execute('CREATE TABLE docs AS SELECT i, CASE WHEN i = 1 THEN \'{"error": 1}\'::jsonb WHEN i % 5 = 0 THEN'
                    " jsonb_build_object('id', i % 9, 'at', hashint4(i)) ELSE jsonb_build_object('customer', hashint4(i))"
                    ' END AS doc FROM generate_series(1, 40000) i')
        cur.execute('ANALYZE docs')
        for order in ('doc', 'doc DESC', 'i % 50, doc'):
            compare(cluster, 'objects by ' + order, 'SELECT i, doc FROM docs ORDER BY %s, i' % order)
        healthy(cluster, 'objects')


if __name__ == '__main__':
    common.run([behind_wide_columns, where_few_tie, behind_another_text, behind_a_limit, other_scripts,
                beside_each_other, first_is_odd])
