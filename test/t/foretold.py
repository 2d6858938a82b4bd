#!/usr/bin/python3
"""Tables in stretches of equal values: their first rows show few of these, and statistics foretell the others
(src/key/foretold.c)."""

import re

import common
from common import check, equal, explain, healthy, rows, skip, value
from locales import at_hand, collation

ROWS = 120000
VALUES = 13

# What is sorted, from where statistics are found: through joins, subqueries, members of an Append, casts.
INPUTS = {
    'table': 'SELECT k, n FROM t',
    'subquery': 'SELECT k, n FROM (SELECT * FROM t OFFSET 0) s',
    'join': 'SELECT t.k, t.n FROM t JOIN few ON few.i = t.n % 4',
    'partitions': 'SELECT k, n FROM (SELECT * FROM parted OFFSET 0) s',
    'union': 'SELECT k, n FROM (SELECT k, n FROM t UNION ALL SELECT k, n FROM t) s',
    'varchar': 'SELECT v::text COLLATE "%s" AS k, n FROM t',
}


def tables(cur, name):
    """Stretches of 13 values, some with letters of other languages, in no order."""
    cur.execute("CREATE FUNCTION word(i int) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT"
                " (ARRAY['north', U&'\\00DCber', 'zone ', '', 'a/'])[1 + abs(hashint4(i + 7)) % 5]"
                ' || abs(hashint4(i)) % 100000 $$')
    cur.execute('CREATE TABLE t AS SELECT word(part) COLLATE "%s" AS k, word(part)::varchar COLLATE "%s" AS v, hashint4(i) AS n,'
                " i, i %% 3 AS f, ('customer of the region ' || word(part)) COLLATE \"C\" AS b"
                ' FROM (SELECT i, i * %d / %d AS part FROM generate_series(0, %d) i) s' % (name, name, VALUES, ROWS, ROWS - 1))
    cur.execute('CREATE TABLE few AS SELECT generate_series(-3, 3) AS i')
    cur.execute('CREATE TABLE parted (LIKE t) PARTITION BY LIST (k)')
    for (k,) in rows(cur, 'SELECT DISTINCT k FROM t ORDER BY k'):
        cur.execute('CREATE TABLE part_%d PARTITION OF parted FOR VALUES IN (%%s)' % abs(hash(k)), (k,))
    cur.execute('INSERT INTO parted SELECT * FROM t')


def learnt(plan, what='Columns'):
    found = re.search(r'Coded %s: (\d+)' % what, plan)
    return int(found.group(1)) if found else 0


def codes_of(name):
    with common.server() as cluster:
        cur = common.session(cluster, work_mem='256kB', max_parallel_workers_per_gather='0', enable_hashjoin='on')
        core = common.core(cluster, work_mem='256kB', max_parallel_workers_per_gather='0')
        if name == 'en_US.utf8':
            core.execute(collation('en_US'))
        tables(cur, name)
        beginnings = []
        for analysed in False, True:
            if analysed:
                cur.execute('ANALYZE')
            query = 'SELECT b, n FROM t ORDER BY b, n'
            equal(rows(cur, query), rows(core, query), name + ': beginnings')
            beginnings.append(learnt(explain(cur, query, ', ANALYZE, VERBOSE'), 'Beginnings'))
            for what, query in INPUTS.items():
                query = (query % name if '%s' in query else query) + ' ORDER BY k, n'
                equal(rows(cur, query), rows(core, query), '%s: %s, %sanalysed' % (name, what, '' if analysed else 'not '))
                plan = explain(cur, query, ', ANALYZE, VERBOSE')
                if not common.options.core:
                    check('WiscSort' in plan and learnt(plan) == analysed,
                          '%s: %s: codes of what statistics %s' % (name, what, 'know' if analysed else 'do not know'), plan)
        check(common.options.core or beginnings[0] < beginnings[1], name + ': codes of beginnings', beginnings)
        # a sort of copies of rows, that were to stay in their table: their columns have other numbers
        query = 'SELECT f, n, k FROM t ORDER BY k, n'
        cur.execute('SET wiscsort.record_store = heap; SET wiscsort.debug_again = 50')
        equal(rows(cur, query), rows(core, query), name + ': a sort that begins again')
        cur.execute('RESET wiscsort.record_store; RESET wiscsort.debug_again')
        # statistics that are wrong: other values, and others of the same name in other rows
        cur.execute("UPDATE t SET k = k || '!' WHERE i < %d" % (ROWS // 2))
        cur.execute("UPDATE t SET k = NULL WHERE n % 10 = 0")
        query = 'SELECT k, n FROM t ORDER BY k DESC NULLS LAST, n'
        equal(rows(cur, query), rows(core, query), name + ': of other values than there are')
        grown(cluster, name, LATIN, '256kB', 100, 20000)
        grown(cluster, name, CYRILLIC, '4MB', 1500, 40000)
        # if statistics say that all have room, codes it is, and letters if they say that they have none
        clustered(cluster, name, CYRILLIC, '4MB', 20, 3000, 1)
        clustered(cluster, name, LATIN, '4MB', 20, 3000, 1)
        clustered(cluster, name, LATIN, '128kB', 60, 3000, 0)
        # few in all, as they come
        clustered(cluster, name, LATIN, '256kB', 10000, 5, 1)
        healthy(cluster, name)


# A value by its number: of Latin letters, whose order letters tell, and of others.
LATIN = "(ARRAY['Anna ', U&'\\00C9mile ', U&'\\00C5ke ', ''])[1 + j % 4] || j"
CYRILLIC = ("translate(md5(j::text), '0123456789abcdef',"
            " U&'\\0430\\0431\\0432\\0433\\0434\\0435\\0436\\0437\\0438\\043A\\043B\\043C\\043D\\043E\\043F\\0440')")


def grown(cluster, name, text, work_mem, few, many):
    """First rows of few values, of which many more come than a dictionary has room for."""
    settings = dict(work_mem=work_mem, max_parallel_workers_per_gather='0')
    cur, core = common.session(cluster, **settings), common.core(cluster, **settings)
    cur.execute('DROP TABLE IF EXISTS grown')
    cur.execute('CREATE TABLE grown AS SELECT (%s) COLLATE "%s" AS k, hashint4(i) AS n'
                ' FROM (SELECT i, abs(hashint4(i + 1)) %% CASE WHEN i < 25000 THEN %d ELSE %d END AS j'
                ' FROM generate_series(1, %d) i OFFSET 0) s' % (text, name, few, many, 2 * many + 20000))
    for analysed in False, True:
        if analysed:
            cur.execute('ANALYZE grown')
        for query in ('SELECT k, n FROM grown ORDER BY k, n', 'SELECT k, n FROM grown ORDER BY k DESC NULLS FIRST, n DESC'):
            equal(rows(cur, query), rows(core, query),
                  '%s: %d and %d values, %sanalysed' % (name, few, many, '' if analysed else 'not '))
        plan = explain(cur, query, ', ANALYZE, VERBOSE')
        check(common.options.core or ('WiscSort' in plan and learnt(plan) == (not analysed)),
              '%s: %d and %d values: codes only if all may fit (%s)' % (name, few, many, analysed), plan)


def clustered(cluster, name, text, work_mem, each, values, coded):
    """Rows of each value come together: the second half of the first rows has values that the first has not."""
    settings = dict(work_mem=work_mem, max_parallel_workers_per_gather='0')
    cur, core = common.session(cluster, **settings), common.core(cluster, **settings)
    cur.execute('DROP TABLE IF EXISTS clustered')
    cur.execute('CREATE TABLE clustered AS SELECT (%s) COLLATE "%s" AS k, hashint4(i) AS n'
                ' FROM (SELECT i, abs(hashint4(i / %d)) %% %d AS j FROM generate_series(1, 150000) i OFFSET 0) s'
                % (text, name, each, values))
    cur.execute('ANALYZE clustered')
    for query in ('SELECT k, n FROM clustered ORDER BY k, n', 'SELECT k, n FROM clustered ORDER BY k DESC, n'):
        equal(rows(cur, query), rows(core, query), '%s: %d rows of each value together' % (name, each))
    plan = explain(cur, query, ', ANALYZE, VERBOSE')
    check(common.options.core or ('WiscSort' in plan and learnt(plan) == coded),
          '%s: %d rows of each of %d values together, %s: %d columns have codes' % (name, each, values, work_mem, coded), plan)


def icu():
    with common.server() as cluster:
        if not value(common.core(cluster), "SELECT count(*) FROM pg_collation WHERE collname = 'de-x-icu'"):
            return skip('ICU', 'the server has none')
    codes_of('de-x-icu')


def libc():
    with at_hand('en_US') as lacking:
        if lacking:
            return skip('en_US', lacking)
        codes_of('en_US.utf8')


if __name__ == '__main__':
    common.run([icu, libc])
