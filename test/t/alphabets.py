#!/usr/bin/python3
"""Text of several languages, told or guessed by its letters: also where letters count together, where one
counts as two, where a letter is new, and where the first rows do not show any of that."""

import io
import os
import tempfile

import common
from common import check, healthy, in_turn, session, skip, uses
from locales import make_locale

LOCALES = ['de_DE', 'sv_SE', 'ja_JP', 'cs_CZ', 'hu_HU', 'da_DK', 'fr_CA']
ICU = ['sv-x-icu', 'cs-x-icu', 'und-x-icu', 'de-x-icu']
UNTOLD = ['cs_CZ', 'hu_HU', 'da_DK', 'cs-x-icu', 'ja_JP', 'fr_CA']    # letters that count together, other orders
WORD = "translate(substr(md5(i::text), 1, 4 + i %% 5), '0123456789', '%s')"
TEXTS = {
    'words': WORD % 'ghijklmnop',
    'words of Latin letters': WORD % 'äöüßøåñçžœ',
    'words that begin with capitals': 'initcap(%s)' % (WORD % 'ghijklmnøå'),
    'words of two cases': WORD % 'ABCDEFéÉøØ',
    'letters that count together': "substr('chcsaalldzsz', 1 + 2 * (i % 6), 2) || " + WORD % 'chszaadlyg',
    'paths': "'/srv/Öffentlich/' || i * 7919 % 40 || '/straße-' || i * 104729 % 50 || '/' || md5(i::text)",
    'paths of two cases': "'/srv/' || CASE i % 2 WHEN 0 THEN 'Data/' ELSE 'data/' END || i * 7919 % 5000",
    'other letters': "substr('aйяあ漢–“€z', 1 + i % 9, 1) || i * 7919 % 50 || substr('жñ—¼', 1 + i % 4, 1) || i % 90",
    'letters that weigh nothing': "'item' || repeat(chr(1 + i % 3), i % 4) || i * 7919 % 3000 || chr(173) || i % 9",
    'digits and punctuation': "substr(md5(i::text), 1, 2) || (ARRAY['-', ' ', '.', '', '_', '4.8', '48', '$', '$/'])"
                              "[1 + i % 9] || substr(md5((i + 7)::text), 1, 2)",
    'punctuation behind and in front': "substr('.. -', 1, i % 5) || (ARRAY['ab', 'Ab', 'a.b', 'a4', 'a-4'])[1 + i % 5]"
                                       " || (i * 7919 % 40) || left(', --', greatest(i % 7 - 2, 0))",
    'plain, and one that is strange, later': "CASE WHEN i = 17777 THEN 'жук' ELSE " + WORD % 'ghijklmnoP' + ' END',
    'accents, later': "CASE WHEN i > 17000 THEN translate(" + WORD % 'ghijklmnoP' + ", 'aeo', 'áéö') ELSE "
                      + WORD % 'ghijklmnoP' + ' END',
    'letters that count together, later': "CASE WHEN i > 17000 THEN substr('chaa', 1 + 2 * (i % 2), 2) ELSE 'b' END"
                                          ' || ' + WORD % 'ghijklmnop',
    # each run is in order, but not all together
    'letters that count together, later, in runs of their own':
        "'same beginning ' || CASE i / 500 WHEN 16 THEN 'ch' WHEN 39 THEN 'd' ELSE 'b' END || md5(i::text)",
    'letters that count as two, later': "CASE WHEN i > 17000 THEN 'kæßœ' WHEN i % 2 = 0 THEN 'kaes' ELSE 'kaet' END"
                                        ' || i * 7919 % 5000',
}
ORDERS = ['t, i', 't DESC NULLS LAST, i', 'n, p, i', 'n DESC, t, i']
SETTINGS = [{'work_mem': '64kB', 'wiscsort.sort_threads': '0'}, {'work_mem': '256kB'}, {'work_mem': '1MB'}]


def learn_letters(cur, collation):
    """Has the session find out what the collation says of its letters: more rows than the tests'."""
    cur.execute('SELECT count(*) FROM (SELECT md5(i::text) COLLATE "%s" FROM generate_series(1, 20000) i ORDER BY 1'
                ' OFFSET 0) s' % collation)


def told(cluster, collation, name):
    """Are collations told by letters that are to be?"""
    if common.options.core:
        return
    cur = session(cluster, work_mem='1MB')
    cur.execute('EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) SELECT md5(i::text) COLLATE "%s" FROM generate_series(1, 20000) i'
                ' ORDER BY 1' % collation)
    node = cur.fetchone()[0][0]['Plan']
    check((node.get('Lettered Columns', 0) > 0) == (name not in UNTOLD), 'letters of ' + name, node)
    cur.connection.close()


def more_than_expected(cluster, collation):
    """Letters are asked also where the planner expects few rows."""
    if common.options.core:
        return
    cur = session(cluster, work_mem='1MB')
    cur.execute('CREATE FUNCTION pg_temp.texts() RETURNS SETOF text ROWS 100 LANGUAGE plpgsql AS'
                ' $$ BEGIN RETURN QUERY SELECT md5(i::text) FROM generate_series(1, 20000) i; END $$')
    cur.execute('EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) SELECT * FROM pg_temp.texts() t ORDER BY t COLLATE "%s"'
                % collation)
    node = cur.fetchone()[0][0]['Plan']
    check(node.get('Lettered Columns', 0) > 0, 'more rows than expected in ' + collation, node)
    cur.connection.close()


def hardly_compared(cluster, collation):
    """They are not asked behind a column that tells rows apart, unless there are many rows; but used if known."""
    if common.options.core:
        return
    cur = session(cluster, work_mem='1MB')
    query = 'SELECT i FROM generate_series(1, 20000) i ORDER BY -i, md5(i::text) COLLATE "%s"' % collation
    for known in (False, True):
        cur.execute('EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) ' + query)
        node = cur.fetchone()[0][0]['Plan']
        check((node.get('Lettered Columns', 0) > 0) == known, 'letters behind numbers, known: %s' % known, node)
        learn_letters(cur, collation)
    cur.connection.close()


def sessions(cluster, collations):
    """A session for each of SETTINGS, which knows the letters of all collations."""
    curs = []
    for settings in SETTINGS:
        curs.append(session(cluster, **({'work_mem': settings['work_mem']} if common.options.core else settings)))
        for collation in collations:
            learn_letters(curs[-1], collation)
    return curs


def answer(cur, query):
    """The rows, as COPY writes them: without an object of Python for each value."""
    found = io.BytesIO()
    cur.copy_expert('COPY (%s) TO STDOUT' % query, found)
    return found.getvalue()


def compare(core, curs, turn, name):
    for number in in_turn(range(len(ORDERS)), turn, 2):
        order = ORDERS[number]
        query = 'SELECT i, t FROM x ORDER BY ' + order
        wanted = answer(core, query)
        settings, cur = SETTINGS[number % len(SETTINGS)], curs[number % len(curs)]
        uses(cur, query)
        check(answer(cur, query) == wanted, '%s by %s, %s' % (name, order, settings['work_mem']), settings)


def behind_gaps(core, curs, collation, sql):
    """Texts that have codes, and later ones that have none, behind a column of which the same holds."""
    for later in ("CASE i % 2 WHEN 0 THEN '¼' ELSE '1z' END", "substr('chczclaaabaz', 1 + 2 * (i % 6), 2)",
                  "substr('szszzsdz', 1 + 2 * (i % 4), 2)"):
        core.execute('DROP TABLE IF EXISTS x')
        core.execute('CREATE TABLE x AS SELECT i, ARRAY[CASE WHEN i <= 20000 THEN i % 4 WHEN i <= 20200 THEN i ELSE 1000 END]'
                     " AS a, (CASE WHEN i <= 20000 THEN 'é' || i % 4 WHEN i <= 20200 THEN 'x' || i ELSE " + later +
                     ' || i * 7919 %% 5000 END) COLLATE "%s" AS t FROM generate_series(1, 30000) i' % sql)
        core.execute('ANALYZE x')
        query = 'SELECT i, t FROM x ORDER BY a, t, i'
        wanted = answer(core, query)
        for settings, cur in zip(SETTINGS + [{'work_mem': '4MB'}], curs + curs[-1:]):
            if not common.options.core:
                cur.execute("SET work_mem = '%s'" % settings['work_mem'])
            uses(cur, query)
            check(answer(cur, query) == wanted, 'behind gaps: %s in %s' % (later, collation), settings)


def several():
    with tempfile.TemporaryDirectory(prefix='wiscsort-locale-') as place:
        made = [name for name in LOCALES if not make_locale(place, name)]
        if not made:
            skip('text under libc collations', 'no locale can be made')
        os.environ['LOCPATH'] = place
        with common.server() as cluster:
            cur = common.core(cluster)
            for name in made:
                cur.execute('CREATE COLLATION %s (provider = libc, locale = \'%s.utf8\')' % (name, name))
            known = {collation: collation.lower() if collation in made else collation for collation in made + ICU}
            curs = sessions(cluster, known.values())
            for turn, (name, text) in enumerate(TEXTS.items()):
                cur.execute('DROP TABLE IF EXISTS s')
                cur.execute('CREATE TABLE s AS SELECT i, i % 10 AS n, ' + text + ' AS v'
                            ' FROM generate_series(1, ' + ('20000' if 'later' in name else '5000') + ') i')
                for place, (collation, sql) in enumerate(known.items()):
                    cur.execute('DROP TABLE IF EXISTS x')
                    cur.execute('CREATE TABLE x (i int, n smallint, t text COLLATE "%s", p char(60) COLLATE "%s")' %
                                (sql, sql))
                    cur.execute('INSERT INTO x SELECT i, n, nullif(v, \'\'), left(v, 60) FROM s')
                    cur.execute('ANALYZE x')
                    compare(cur, curs, turn + place, '%s in %s' % (name, collation))
            for collation, sql in known.items():
                behind_gaps(cur, curs, collation, sql)
            for collation, sql in known.items():
                told(cluster, sql, collation)
            for collation in made:
                if collation not in UNTOLD:
                    more_than_expected(cluster, collation.lower())
                    hardly_compared(cluster, collation.lower())
            healthy(cluster, 'alphabets')
        del os.environ['LOCPATH']


if __name__ == '__main__':
    common.run([several])
