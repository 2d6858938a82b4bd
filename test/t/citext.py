#!/usr/bin/python3
"""citext: text that is compared in lower case, as the database's own collation makes it, under the column's
collation.  Letters that have another lower case in some languages, or several, or none of one byte."""

import common
from common import check, equal, explain, healthy, rows, skip, value
from locales import at_hand, collation

# Databases: whose lower case it is.
DATABASES = {
    'bytes': "LOCALE 'C'",
    'us': "LOCALE 'en_US.utf8'",
    'turkish': "LOCALE 'tr_TR.utf8'",
    'german': "LOCALE_PROVIDER icu ICU_LOCALE 'de' LOCALE 'C'",
    'dotless': "LOCALE_PROVIDER icu ICU_LOCALE 'tr' LOCALE 'C'",
}

COLLATIONS = ['', 'COLLATE "C"', 'COLLATE "en_US.utf8"', 'COLLATE "de-x-icu"', 'COLLATE nocase']

# Of 40 kinds of texts, each in several cases.
TEXTS = r"""
CREATE FUNCTION cased(t text, n int) RETURNS text IMMUTABLE LANGUAGE sql AS $$
    SELECT CASE n % 4 WHEN 0 THEN t WHEN 1 THEN upper(t COLLATE "de-x-icu") COLLATE "C"
           WHEN 2 THEN initcap(t COLLATE "C") ELSE lower(t COLLATE "C") END COLLATE "C" $$;
CREATE TABLE kinds AS SELECT cased(CASE n % 40
    WHEN 0 THEN '' WHEN 1 THEN 'i' || n % 97 WHEN 2 THEN U&'\0131' || n % 97 WHEN 3 THEN U&'\0130' || n % 97
    WHEN 4 THEN 'stra' || U&'\00DF' || 'e' || n % 97 WHEN 5 THEN U&'\1E9E' || n % 97
    WHEN 6 THEN U&'\039F\0394\039F\03A3' WHEN 7 THEN U&'\03C3\03C2' || n % 7
    WHEN 8 THEN 'Q' || repeat('Ab', 1500) || n % 97 WHEN 9 THEN U&'\FB01' || n % 97
    WHEN 10 THEN E'a\x01' || n % 97 WHEN 11 THEN U&'\00C4' || md5((n % 997)::text)
    WHEN 12 THEN 'a b-' || n % 97 WHEN 13 THEN U&'J\030C' WHEN 14 THEN U&'I\0307' || n % 7
    WHEN 15 THEN NULL
    ELSE md5((n % 2503)::text) END, n) AS t, n FROM generate_series(1, 8000) n
"""


def same(cluster, database, name, query, **settings):
    core = common.core(cluster, database=database, **settings)
    ours = common.session(cluster, database=database, **settings)
    plan = explain(ours, query)
    found, wanted = rows(ours, query), rows(core, query)
    check(found == wanted and ('WiscSort' in plan or common.options.core), '%s: %s' % (database, name),
          plan + '\n' + '\n'.join('%.200r %.200r' % pair for pair in zip(found, wanted) if pair[0] != pair[1])[:1500])
    core.connection.close()
    ours.connection.close()


def lacks_citext(cur):
    """Creates the extension in a database; skips the test if it is not there."""
    code, message = common.error(cur, 'CREATE EXTENSION citext')
    if code is not None:
        skip('citext', message.splitlines()[0])
    return code is not None


def every_collation():
    """All orders there are, with what ties decided by a number."""
    with at_hand('en_US', 'tr_TR') as lacking, common.server() as cluster:
        if lacking:
            skip('citext under locales of libc', lacking)
            return
        for database, how in DATABASES.items():
            cur = common.core(cluster)
            cur.execute("CREATE DATABASE %s TEMPLATE template0 ENCODING 'UTF8' %s" % (database, how))
            cur = common.core(cluster, database=database)
            if lacks_citext(cur):
                return
            cur.execute(collation('en_US'))
            cur.execute("CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
            cur.execute(TEXTS)
            for i, clause in enumerate(COLLATIONS):
                cur.execute('CREATE TABLE c%d AS SELECT n, t::citext %s AS c FROM kinds' % (i, clause))
                cur.execute('ANALYZE c%d' % i)
                memory = ['64kB', '8MB'][i % 2]
                where = clause or 'the default'
                same(cluster, database, where, 'SELECT n FROM c%d ORDER BY c, n' % i, work_mem=memory)
                same(cluster, database, where + ', descending',
                     'SELECT n, c FROM c%d ORDER BY c DESC NULLS LAST, n DESC' % i, work_mem=memory)
                same(cluster, database, where + ', plain texts only',
                     "SELECT n FROM c%d WHERE n %% 40 > 15 ORDER BY c, n" % i, work_mem=memory)
                same(cluster, database, where + ', behind a column that ties',
                     'SELECT n FROM c%d ORDER BY n %% 5, c, n' % i, work_mem=memory)
                same(cluster, database, where + ', distinct', 'SELECT DISTINCT lower(c COLLATE "C"), c = c'
                     ' FROM (SELECT DISTINCT ON (c) c FROM c%d WHERE n %% 40 > 15 ORDER BY c, n) s'
                     ' ORDER BY 1' % i, work_mem=memory)
            healthy(cluster, database)


def told():
    """Its key bytes are those of text, where the planner trusts in them."""
    with at_hand('en_US') as lacking, common.server() as cluster:
        if lacking or common.options.core:
            skip('EXPLAIN of citext', lacking or 'core has no such lines')
            return
        cur = cluster.connect(work_mem='512kB').cursor()
        if lacks_citext(cur):
            return
        cur.execute(collation('en_US'))
        cur.execute('CREATE TABLE every AS SELECT i, initcap(md5(i::text))::citext COLLATE "en_US.utf8" AS c,'
                    ' initcap(md5(i::text))::citext COLLATE "C" AS b, repeat(\'x\', 60) AS pad'
                    ' FROM generate_series(1, 40000) i')
        cur.execute('ANALYZE every')
        plan = explain(cur, 'SELECT * FROM every ORDER BY c', ', ANALYZE, VERBOSE')
        check('WiscSort' in plan and 'Lettered Columns: 1' in plan, 'letters tell it under libc', plan)
        plan = explain(cur, 'SELECT * FROM every ORDER BY b', ', ANALYZE, VERBOSE')
        check('WiscSort' in plan and 'Lettered' not in plan, 'bytes tell it under C', plan)
        equal(value(cur, "SELECT string_agg(c::text, ' ') FROM (SELECT * FROM (VALUES ('b'), ('A'), ('a'), ('B')) v(c)"
                         " ORDER BY c::citext COLLATE \"C\", c COLLATE \"C\") s"), 'A a B b', 'case does not count')
        healthy(cluster, 'citext')


if __name__ == '__main__':
    common.run([every_collation, told])
