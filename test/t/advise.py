#!/usr/bin/python3
"""wiscsort.advise() and wiscsort.why(): forecasts against sorts that are run, refusals, rights; EXPLAIN's option."""

import json
import random
import re

import psycopg2

import common
from common import check, equal, error, rows, value

SORTS = 50 if common.ALL else 14        # that are drawn at random; bench/advise draws hundreds
COMPUTED = ['upper(m) AS x', 'm || m || m AS y', 'substr(p, 1, 50) AS z', 'i + 1 AS j']
NEAR = 0.10                     # of what is forecast
cluster = None


def start():
    global cluster
    cluster = common.server(preload=False, max_parallel_workers_per_gather=0, jit='off', autovacuum='off')
    cur = cluster.connect().cursor()
    cur.execute('CREATE EXTENSION wiscsort')
    cur.execute("""CREATE TABLE t AS
        SELECT i, (random() * 1e9)::int AS r, (random() * 1e18)::bigint AS b, random() AS f,
               md5(i::text) COLLATE "C" AS m, repeat(md5(i::text), 1 + i % 5) AS p,
               (random() * 1e6)::numeric(20, 4) AS n, md5(random()::text)::uuid AS u,
               CASE WHEN i % 7 > 0 THEN now() - random() * interval '900 days' END AS d
          FROM generate_series(1, 160000) i""")
    cur.execute('VACUUM ANALYZE t')


def session(**settings):
    settings.setdefault('max_parallel_workers_per_gather', 0)
    cur = cluster.connect(**settings).cursor()
    cur.execute('SELECT wiscsort.version()')
    return cur


def records(cur, sql):
    found = rows(cur, sql)
    return [dict(zip([c.name for c in cur.description], row)) for row in found]


def explained(cur, sql):
    """The plan's sort, executed, as EXPLAIN has it."""
    plan = value(cur, 'EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) ' + sql)[0]['Plan']
    while 'Sort Key' not in plan:
        plan = plan['Plans'][0]
    return plan


def drawn(rng):
    """A query with one sort."""
    keys = rng.sample(['r', 'b', 'f', 'm', 'n', 'u', 'd'], rng.choice([1, 1, 1, 2]))
    columns = sorted(set(keys) | set(rng.sample(['i', 'r', 'b', 'm', 'p', 'n', 'd'], rng.randint(0, 5))))
    columns += rng.choice([[], [], rng.sample(COMPUTED, rng.choice([1, 2]))])
    order = ', '.join(key + rng.choice(['', ' DESC', ' NULLS FIRST']) for key in keys)
    source = rng.choice(['t', 't', '(SELECT * FROM t OFFSET 0) t', 't JOIN (VALUES (1)) v(x) ON t.i > x'])
    return 'SELECT %s FROM %s WHERE i <= %d ORDER BY %s' % (
        ', '.join(columns), source, rng.randint(60000, 160000), order)


def near(found, wanted, slack):
    return abs(found - wanted) <= NEAR * wanted + slack


class Tally:
    def __init__(self):
        self.cases, self.bad = 0, []

    def add(self, fine, what):
        self.cases += 1
        if not fine:
            self.bad.append(what)

    def report(self, name, least):
        check(self.cases >= least and not self.bad, '%s: %d cases' % (name, self.cases),
              '%d cases, at least %d wanted\n' % (self.cases, least) + '\n'.join(self.bad[:20]))


def forecasts():
    """What advise() says of a sort that it runs is what EXPLAIN ANALYZE finds at other settings."""
    rng = random.Random(20261124)
    ours = session(**{'wiscsort.debug_force': 'on', 'wiscsort.threshold': 0})
    core = session(**{'wiscsort.enable': 'off'})
    temp, core_temp, one_pass, in_memory, exact, runs = (Tally() for _ in range(6))
    written = 0
    for number in range(SORTS):
        query = drawn(rng)
        store = rng.choice(['auto', 'spool', 'heap', 'inline'])
        ours.execute('SET wiscsort.record_store = %s' % store)
        ours.execute('SET work_mem = %d' % rng.choice([128, 256, 512, 1024, 4096]))
        found = records(ours, 'SELECT * FROM wiscsort.advise($query$%s$query$, true)' % query)
        if len(found) != 1:
            raise RuntimeError('%d sorts: %s' % (len(found), query))
        advice = found[0]
        where = '%d %s: %s' % (number, store, query)
        estimates = advice['estimates']
        estimates = {e['work_mem']: e for e in (json.loads(estimates) if isinstance(estimates, str) else estimates)}
        exact.add(advice['measured'] and advice['rows'] == value(ours, 'SELECT count(*) FROM (%s) q' % query), where)
        plan = explained(ours, query)
        told = re.match(r'external, (\d+) runs, (\d+) pass', advice['wiscsort'])
        told = tuple(map(int, told.groups())) if told else (0, 0)
        # codes of values may take an eighth of the memory, which is not foreseen
        runs.add(abs(told[0] - plan['Runs']) <= max(2, plan['Runs'] / 7) and
                 abs(told[1] - plan['Merge Passes']) <= (told[0] > 50 or plan['Runs'] <= 2),
                 '%s: %s, but %d runs, %d passes' % (where, advice['wiscsort'], plan['Runs'], plan['Merge Passes']))
        for setting in ('4MB', '16MB'):
            for cur, who, tally in ((ours, 'wiscsort', temp), (core, 'core', core_temp)):
                cur.execute("SET work_mem = '%s'" % setting)
                plan = explained(cur, query)
                disk = plan['Disk'] if 'Disk' in plan else \
                    plan['Sort Space Used'] if plan['Sort Space Type'] == 'Disk' else 0
                written += disk > 0
                told = estimates[setting][who]['temp_bytes'] / 1024
                tally.add(near(told, disk, 16), '%s at %s: %.0f kB, forecast %.0f' % (where, setting, disk, told))
        least = advice['one_pass_kb']
        if least is not None and least > 128:
            for share, wanted in ((1 + NEAR, 'one-pass'), (1 - NEAR, 'merge-pass')):
                ours.execute('SET work_mem = %d' % int(least * share))
                one_pass.add(wanted in explained(ours, query)['Sort Method'],
                             '%s: not %s with %d of %d kB' % (where, wanted, least * share, least))
        least = advice['core_in_memory_kb']
        for share, wanted in ((1 + NEAR, 'quicksort'), (1 - NEAR, 'external merge')):
            core.execute('SET work_mem = %d' % int(least * share))
            plan = explained(core, query)
            in_memory.add(plan['Sort Method'] == wanted,
                          '%s: %s with %d of %d kB' % (where, plan['Sort Method'], least * share, least))
    exact.report('rows are counted', SORTS)
    runs.report('runs and passes', SORTS)
    check(written > SORTS, 'most of them wrote temporary files', written)
    temp.report('temporary bytes of WiscSort', 2 * SORTS)
    core_temp.report("temporary bytes of core's sort", 2 * SORTS)
    one_pass.report('work_mem for one pass', SORTS)
    in_memory.report('work_mem for core in memory', 2 * SORTS)


def with_limits():
    """Of a LIMIT that core's memory does not hold, WiscSort's figures are those of the rows that it takes in."""
    ours = session(**{'wiscsort.debug_force': 'on', 'wiscsort.threshold': 0, 'wiscsort.record_store': 'spool'})
    for query in ('SELECT i, b, m, p FROM t ORDER BY b LIMIT 30000', 'SELECT i, b, m, p FROM t ORDER BY m DESC LIMIT 40000'):
        ours.execute("SET work_mem = '512kB'")
        advice = records(ours, 'SELECT * FROM wiscsort.advise($query$%s$query$, true)' % query)[0]
        whole = records(ours, 'SELECT * FROM wiscsort.advise($query$%s$query$, true)' % query.split(' LIMIT')[0])[0]
        check(advice['one_pass_kb'] < 0.7 * whole['one_pass_kb'], 'less than for all rows: ' + query, advice)
        estimates = {e['work_mem']: e for e in advice['estimates']}
        equal((estimates['1GB']['core'], estimates['4MB']['core'] is not None), (None, True),
              'core keeps a heap with much memory, and none with little')
        ours.execute("SET work_mem = '4MB'")
        disk = explained(ours, query)['Disk']
        check(near(estimates['4MB']['wiscsort']['temp_bytes'] / 1024, disk, 0.15 * disk), 'temporary bytes: ' + query,
              (estimates['4MB'], disk))
        for share, wanted in ((1.25, 'one-pass'), (0.75, 'merge-pass')):
            ours.execute('SET work_mem = %d' % int(advice['one_pass_kb'] * share))
            check(wanted in explained(ours, query)['Sort Method'], '%s with %.0f %%: %s' % (wanted, share * 100, query))


def other_stores():
    """Estimates are of the store that the planner chooses with each setting, whatever the present one is."""
    cur = session()
    cur.execute("CREATE TABLE w AS SELECT hashint8(i) AS k, repeat(md5(i::text), 40) AS p FROM generate_series(1, 60000) i")
    cur.execute('VACUUM ANALYZE w')
    query = 'SELECT * FROM w ORDER BY k'
    for present in ('1MB', '4MB', '1GB'):
        cur.execute("SET work_mem = '%s'" % present)
        advice = records(cur, 'SELECT * FROM wiscsort.advise($query$%s$query$, true)' % query)[0]
        told = {e['work_mem']: e['wiscsort']['temp_bytes'] / 1024 for e in advice['estimates']}
        for setting in ('4MB', '16MB'):
            cur.execute("SET work_mem = '%s'" % setting)
            plan = explained(cur, query)
            check(near(told[setting], plan['Disk'], 64), 'at %s, asked at %s: %s' % (setting, present, plan['Record Store']),
                  (told[setting], plan['Disk']))
    cur.execute('DROP TABLE w')


def computed():
    """PostgreSQL sorts rows with columns that were computed before, WiscSort those of the table, whoever sorts now."""
    cur = session(**{'wiscsort.record_store': 'spool'})
    for query in ('SELECT i, m || m || m AS x, b FROM t ORDER BY b', 'SELECT i, b, substr(p, 1, 60) AS x, m FROM t ORDER BY b',
                  'SELECT i, upper(m) AS x, random() FROM t ORDER BY b', 'SELECT m || m AS x, p FROM t ORDER BY b LIMIT 60000'):
        cur.execute("SET work_mem = '4MB'")
        disk = {'wiscsort': explained(cur, query)['Disk']}
        cur.execute('SET wiscsort.enable = off')
        disk['core'] = explained(cur, query)['Sort Space Used']
        cur.execute('RESET wiscsort.enable')
        for present in ('4MB', '256MB'):
            cur.execute("SET work_mem = '%s'" % present)
            found = records(cur, 'SELECT * FROM wiscsort.advise($query$%s$query$, true)' % query)[0]
            equal(found['node'], 'WiscSort' if present == '4MB' else 'Sort', 'who sorts with ' + present)
            for who in sorted(disk) if found['core'] != 'top-N heapsort' else ['wiscsort']:
                told = found['estimates'][0][who]['temp_bytes'] / 1024
                check(near(told, disk[who], 64), '%s, asked at %s: %s' % (who, present, query), (told, disk[who]))


def long_keys():
    """Where a long key column is set aside, which only its values tell, an entry takes more memory."""
    cur = session(work_mem='1MB', **{'wiscsort.debug_force': 'on', 'wiscsort.threshold': 0, 'wiscsort.record_store': 'spool'})
    cur.execute('CREATE TABLE long AS SELECT i AS id, repeat(md5(i::text), 100) COLLATE "C" AS doc'
                ' FROM generate_series(1, 60000) i; ANALYZE long')
    query = 'SELECT * FROM long ORDER BY id, doc'
    for enable in ('on', 'off'):
        cur.execute('SET wiscsort.enable = %s' % enable)
        least = records(cur, 'SELECT * FROM wiscsort.advise($query$%s$query$, true)' % query)[0]['one_pass_kb']
        for share, wanted in ((1 + NEAR, 'one-pass'), (1 - NEAR, 'merge-pass')):
            ours = session(work_mem=int(least * share), **{'wiscsort.debug_force': 'on', 'wiscsort.record_store': 'spool'})
            check(wanted in explained(ours, query)['Sort Method'],
                  'long key column, run with enable = %s: %s with %d kB' % (enable, wanted, least * share), least)
    cur.execute('DROP TABLE long')


def wide_rows():
    """Of rows of half a block, and of more than one, only what is in them is written."""
    cur = session(work_mem='1MB', **{'wiscsort.debug_force': 'on', 'wiscsort.record_store': 'inline'})
    for repeated in (4100, 12000):
        query = 'SELECT hashint4(i) AS h, repeat(md5(i::text), %d) AS p FROM generate_series(1, 200) i ORDER BY h' % repeated
        estimates = records(cur, 'SELECT * FROM wiscsort.advise($query$%s$query$, true)' % query)[0]['estimates']
        told = (json.loads(estimates) if isinstance(estimates, str) else estimates)[0]
        cur.execute("SET work_mem = '4MB'")
        disk = explained(cur, query)['Disk']
        check(told['work_mem'] == '4MB' and near(told['wiscsort']['temp_bytes'] / 1024, disk, 16),
              'temporary bytes of %d rows of %d bytes' % (200, repeated * 32), '%s, %d kB' % (told, disk))


BAD = [
    ('SELECT 1; SELECT 2', '42601', 'several statements'),
    ('', '42601', 'no statement'),
    (' -- nothing', '42601', 'no statement'),
    ('SELEC', '42601', 'syntax'),
    ('SELECT i FROM t WHERE i = $1 ORDER BY m', '42P02', 'parameters'),
    ('SELECT i FROM t WHERE $1 IS NULL ORDER BY m', '42P02', 'a parameter of no type'),
    ('SELECT i FROM t WHERE i = $2 ORDER BY m', '42P02', 'parameters of which one is not there'),
    ('WITH RECURSIVE r AS (SELECT 1 AS i UNION SELECT $1 + $2 FROM r) SELECT i FROM r ORDER BY i', '42P02',
     'parameters in a WITH'),
    ('INSERT INTO t (i) VALUES (0)', '0A000', 'not a query'),
    ('DELETE FROM t', '0A000', 'not a query'),
    ('EXPLAIN ANALYZE SELECT 1', '0A000', 'not a query'),
    ('COPY t TO STDOUT', '0A000', 'not a query'),
    ('CREATE TABLE x AS SELECT 1', '0A000', 'not a query'),
    ('SELECT * INTO x FROM t', '0A000', 'would write'),
    ('WITH d AS (DELETE FROM t RETURNING i) SELECT * FROM d ORDER BY 1', '0A000', 'would write'),
    ('SELECT * FROM t ORDER BY m FOR UPDATE', '0A000', 'would lock'),
    ('SELECT * FROM (SELECT * FROM t FOR SHARE) s ORDER BY m', '0A000', 'would lock'),
    ('SELECT (SELECT i FROM t LIMIT 1 FOR UPDATE)', '0A000', 'would lock'),
    ('SELECT * FROM nowhere', '42P01', 'no such table'),
]


def refusals():
    """Whatever is not one query that reads is refused, and nothing of it is done."""
    cur = session()
    for text, code, name in BAD:
        for call in ('wiscsort.advise(%s)', 'wiscsort.advise(%s, true)', 'wiscsort.why(%s)'):
            found, message = error(cur, 'SELECT * FROM ' + call % ('$bad$%s$bad$' % text))
            equal(found, code, '%s: %s' % (name, call % '...'))
            check(code != '42P02' or 'HINT:  Put values in the places of $1' in message, 'with a hint', message)
    for function in ('advise', 'why'):
        try:
            cur.execute("SELECT 1, * FROM wiscsort.%s('SELECT nosuch FROM t')" % function)
        except psycopg2.Error as e:
            equal((e.diag.statement_position, e.diag.internal_position, e.diag.internal_query),
                  (None, '8', 'SELECT nosuch FROM t'), function + ': an error points into the query given')
    equal(value(cur, 'SELECT count(*) FROM t'), 160000, 'nothing was deleted')
    equal(value(cur, "SELECT to_regclass('x') IS NULL"), True, 'nothing was created')
    equal(rows(cur, "SELECT * FROM wiscsort.advise(NULL)"), [], 'NULL has no sorts')


def reading_only():
    """What functions of a query try is refused, or undone; and what was set before goes on."""
    cur = session()
    cur.execute('CREATE TABLE w (i int); CREATE SEQUENCE s; CREATE TEMP TABLE mine (i int)')
    cur.execute("""CREATE FUNCTION write_w() RETURNS int LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO w VALUES (1); RETURN 1; END $$""")
    cur.execute("""CREATE FUNCTION write_mine() RETURNS int LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO mine VALUES (1); RETURN 1; END $$""")
    for query in ('SELECT write_w() ORDER BY 1', "SELECT nextval('s') ORDER BY 1"):
        equal(error(cur, 'SELECT * FROM wiscsort.advise($q$%s$q$, true)' % query)[0], '25006', 'refused: ' + query)
        equal(error(cur, 'SELECT * FROM wiscsort.advise($q$%s$q$)' % query)[0], None, 'planned: ' + query)
    equal(error(cur, "SELECT * FROM wiscsort.advise('SELECT write_mine() ORDER BY 1', true)")[0], None,
          'a temporary table may be written to')
    equal(value(cur, 'SELECT count(*) FROM mine'), 0, 'and has been rolled back')
    equal(error(cur, "SELECT * FROM wiscsort.advise('SELECT * FROM wiscsort.advise(''SELECT 1'', true)', true)")[0],
          '0A000', 'measured queries do not nest')
    cur.execute("CREATE FUNCTION liar() RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN write_w(); END'")
    for call in ('advise', 'why'):
        equal(error(cur, "SELECT * FROM wiscsort.%s('SELECT liar(), m FROM t ORDER BY m')" % call)[0], '25006',
              call + ': a function that the planner evaluates writes nothing')
    cur.execute('BEGIN')
    cur.execute("SELECT * FROM wiscsort.advise('SELECT * FROM t ORDER BY m', true)")
    equal(error(cur, 'INSERT INTO w VALUES (2)')[0], None, 'a transaction writes afterwards')
    cur.execute("""DO $$ BEGIN PERFORM wiscsort.advise('SELECT 1/(i-5) FROM t ORDER BY m', true);
        EXCEPTION WHEN division_by_zero THEN INSERT INTO w VALUES (3); END $$""")
    cur.execute('COMMIT')
    equal(rows(cur, 'SELECT i FROM w ORDER BY i'), [(2,), (3,)], 'also after an error in the query')
    common.usable(cur, cluster, 'after advise()')


def rights():
    """A query is planned, and run, with the rights of who asks."""
    cur = session()
    cur.execute('CREATE ROLE guest; CREATE TABLE secret AS SELECT 1 AS i; SET ROLE guest')
    for call in ("wiscsort.advise('SELECT * FROM secret ORDER BY i')",
                 "wiscsort.advise('SELECT * FROM secret ORDER BY i', true)",
                 "wiscsort.why('SELECT * FROM secret ORDER BY i')"):
        equal(error(cur, 'SELECT * FROM ' + call)[0], '42501', 'no right: ' + call)
    equal(error(cur, "SELECT * FROM wiscsort.advise('SELECT 1 ORDER BY 1')")[0], None, 'everybody may ask')
    equal(value(cur, "SELECT count(*) FROM wiscsort.status() WHERE value IS NULL AND hint LIKE '%may see%'"), 4,
          'and see the status, but for two lists of libraries and two devices')
    equal(error(cur, 'SELECT wiscsort.enable_in_database()')[0], '42501', 'but not switch it on')


def one(cur, query, function='advise'):
    return records(cur, 'SELECT * FROM wiscsort.%s($q$%s$q$)' % (function, query))[0]


def shapes():
    """Plans of other shapes: LIMIT, parallel plans, several sorts, Incremental Sort, loops."""
    cur = session()
    found = one(cur, 'SELECT * FROM t ORDER BY m LIMIT 10')
    equal((found['core'], found['recommended_kb']), ('top-N heapsort', 4096), 'LIMIT: as it is')
    equal((found['core_in_memory_kb'], {e['core'] for e in found['estimates']} if found['core'] else None),
          (None, {None}), 'LIMIT: what core takes for all rows says nothing')
    cur.execute('SET wiscsort.enable = off')
    found = one(cur, 'SELECT * FROM t ORDER BY m LIMIT 150000')
    check(found['core'].startswith('external') and 'LIMIT' not in found['reason'],
          'a LIMIT whose rows memory does not hold', found)
    for query in ('WITH c AS MATERIALIZED (SELECT * FROM t ORDER BY m) SELECT * FROM c LIMIT 10',
                  'SELECT ARRAY(SELECT m FROM t ORDER BY m, i) LIMIT 1'):
        found = one(cur, query)
        check(found['core'].startswith('external') and 'LIMIT' not in found['reason'], 'a LIMIT does not reach a CTE, nor'
              ' a subquery: ' + query, found)
    cur.execute('RESET wiscsort.enable')
    found = records(cur, "SELECT * FROM wiscsort.advise('SELECT m, sum(i) FROM t GROUP BY m ORDER BY 2, 1', true)")
    equal([f['node'] for f in found], ['WiscSort', 'WiscSort'], 'two sorts')
    check(all(f['measured'] and f['rows'] > 150000 for f in found), 'both are measured', found)
    cur.execute('SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;'
                'SET min_parallel_table_scan_size = 0')
    found = one(cur, 'SELECT * FROM t ORDER BY m')
    equal(found['processes'], 3, 'a parallel plan')
    check(abs(found['rows'] - 160000 / 3) < 10, 'rows are a third of all: the leader sorts as many as a worker', found)
    cur.execute('SET enable_hashjoin = off; SET enable_nestloop = off')
    found = records(cur, "SELECT * FROM wiscsort.advise('SELECT count(m) FROM t JOIN generate_series(1, 50000) g ON g = i')")
    check([f['processes'] for f in found] == [3, 3] and abs(found[0]['rows'] - 160000 / 3) < 10 and found[1]['rows'] == 50000,
          'of a join whose inner input each process sorts in all', found)
    cur.execute('RESET enable_hashjoin; RESET enable_nestloop')
    cur.execute('SET parallel_leader_participation = off')
    found = one(cur, 'SELECT * FROM t ORDER BY m')
    equal((found['processes'], found['rows']), (2, 80000), 'in which the leader only gathers')
    cur.execute('RESET parallel_leader_participation')
    check(found['rows'] < 100000, 'rows are those of one process', found)
    cur.execute('SET max_parallel_workers_per_gather = 0')
    loops = records(cur, """SELECT * FROM wiscsort.advise('SELECT * FROM generate_series(1, 5) g,
        LATERAL (SELECT i FROM t WHERE i <= 1000 * g ORDER BY m OFFSET 1) s', true)""")
    equal([f['rows'] for f in loops], [5000], 'a sort that is executed five times: rows of the largest')
    found = records(cur, "SELECT * FROM wiscsort.advise('SELECT * FROM t WHERE i < 0 ORDER BY m', true)")
    equal([(f['rows'], f['measured']) for f in found], [(0, True)], 'no rows')


def many_times():
    """A trial of a sort that was executed 100 times has the rows of one, and so the memory of its setting."""
    cur = session(work_mem='4MB', enable_seqscan='off')
    cur.execute("CREATE TABLE orders AS SELECT i % 100 AS c, md5(i::text) AS note, repeat('x', 80) AS pad"
                ' FROM generate_series(1, 300000) i; CREATE INDEX ON orders (c); ANALYZE orders')
    query = ('SELECT c.c, s.* FROM generate_series(0, 99) c(c), LATERAL'
             ' (SELECT * FROM orders o WHERE o.c = c.c ORDER BY o.note OFFSET 0) s')
    found = records(cur, "SELECT * FROM wiscsort.advise($q$%s$q$, true)" % query)
    equal([row['rows'] for row in found], [3000], 'rows of one execution')
    with open('/proc/%d/status' % cur.connection.info.backend_pid) as f:
        peak = int(re.search(r'VmHWM:\s*(\d+) kB', f.read())[1])
    check(peak < 105 * 1024, 'trials do not take the memory of many', '%d kB' % peak)
    # 99 small ones and one of 60000 rows, for which memory is told; the last is small
    cur.execute("UPDATE orders SET c = 50 WHERE c < 20; DELETE FROM orders WHERE c <> 50 AND note > '2'; ANALYZE orders")
    one, = records(cur, "SELECT * FROM wiscsort.advise($q$%s$q$, true)" % query)
    alone, = records(cur, "SELECT * FROM wiscsort.advise('SELECT * FROM orders WHERE c = 50 ORDER BY note', true)")
    equal(one['rows'], alone['rows'], 'rows of the largest execution')
    for told in ('one_pass_kb', 'core_in_memory_kb'):
        check(near(one[told], alone[told], 64), '%s of the largest execution' % told, (one[told], alone[told]))
    cur.execute('DROP TABLE orders')


def projections():
    """What a WiscSort makes of its rows may need the query: subplans, values of an outer row."""
    cur = session(work_mem='1MB')
    cur.execute('CREATE TABLE few AS SELECT i FROM generate_series(1, 9) i; ANALYZE few')
    subplan = ('SELECT i, p, (SELECT f.i FROM few f WHERE f.i <> t.i ORDER BY f.i OFFSET 1 LIMIT 1) FROM t'
               ' WHERE i <= 20000 ORDER BY m')
    for function, call in (('why', 'why($q$%s$q$)'), ('advise', 'advise($q$%s$q$, true)')):
        equal([f['node'] for f in records(cur, 'SELECT * FROM wiscsort.' + call % subplan)], ['WiscSort', 'Sort'],
              function + '() has the sort of a subplan once')
    named = "SELECT (SELECT max(s.m) FROM (SELECT m FROM t b ORDER BY b.i % a.i OFFSET 0) s) FROM few a"
    equal([f['keys'] for f in records(cur, 'SELECT * FROM wiscsort.why($q$' + named + '$q$)')], ['((b.i % a.i))'],
          'a key has the name of the column outside')
    found = records(cur, """SELECT * FROM wiscsort.advise($q$SELECT * FROM (SELECT i, m FROM t WHERE i <= 3) a,
        LATERAL (SELECT b.m, b.p || a.m AS y FROM t b ORDER BY b.m OFFSET 0) s$q$, true)""")
    equal([(f['node'], f['measured']) for f in found], [('WiscSort', True)], 'a column made of another row')
    cur.execute("""CREATE FUNCTION noted(int) RETURNS int LANGUAGE plpgsql VOLATILE AS
        $$ BEGIN IF $1 = 17 THEN RAISE NOTICE 'seventeen'; END IF; RETURN $1; END $$""")
    del cur.connection.notices[:]
    rows(cur, "SELECT * FROM wiscsort.advise('SELECT i, noted(i), p FROM t WHERE i <= 5000 ORDER BY m', true)")
    equal(len(cur.connection.notices), 1, 'a volatile function is called once a row')


def other_operators():
    """status() does not call operators that somebody else has made."""
    cur = session()
    cur.execute("""CREATE FUNCTION trap(oid, int4) RETURNS bool LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'called'; END $$;
        CREATE OPERATOR = (LEFTARG = oid, RIGHTARG = int4, FUNCTION = trap);
        ALTER DATABASE postgres SET session_preload_libraries = ''""")
    equal(error(cur, 'SELECT * FROM wiscsort.status()')[0], None, 'status() has a search_path of its own')
    cur.execute('ALTER DATABASE postgres RESET session_preload_libraries; DROP OPERATOR = (oid, int4)')


def recommendations():
    """The setting recommended is one with which the sort is in one pass, and as large as need be."""
    cur = session()
    query = 'SELECT * FROM t ORDER BY n'
    cur.execute("SET work_mem = '64kB'")
    found = records(cur, 'SELECT * FROM wiscsort.advise($q$%s$q$, true)' % query)[0]
    check(found['one_pass_kb'] <= found['recommended_kb'] < 1.1 * found['one_pass_kb'] + 64,
          'the least that is enough', found)
    cur.execute('SET work_mem = %d' % found['recommended_kb'])
    check('one-pass' in explained(cur, query)['Sort Method'], 'it is one-pass then')
    again = one(cur, query)
    equal(again['recommended_kb'], found['recommended_kb'], 'and it stays so')
    check('present work_mem' in again['reason'], 'with the reason', again['reason'])
    # of which the planner expects 1 in 200
    query = 'SELECT * FROM t WHERE i % 1 = 0 ORDER BY n'
    cur.execute("SET work_mem = '64kB'")
    found = records(cur, 'SELECT * FROM wiscsort.advise($q$%s$q$, true)' % query)[0]
    check('merges its runs once' in found['reason'] and 64 < found['recommended_kb'] < 512 < found['one_pass_kb'],
          'a merge of all runs takes far less than one pass', found)
    cur.execute('SET work_mem = %d' % (found['recommended_kb'] * 1.1))
    plan = explained(cur, query)
    equal((plan['Runs'] > 0, plan['Merge Passes']), (True, 1), 'with which they are merged once')
    found = records(cur, 'SELECT * FROM wiscsort.advise($q$%s$q$, true)' % query)[0]
    check('would leave them to PostgreSQL' in found['reason'] and found['recommended_kb'] == 140,
          'the planner would leave it to core', found)
    cur.execute('SET work_mem = %d' % found['one_pass_kb'])
    check('IndexMap Entries' not in explained(cur, query), 'so it does', found)


def limited():
    """What temporary files may have holds for the trials of a query that is run, too."""
    cur = session(work_mem='256MB')

    def written(name):
        total = "SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()"
        before = value(cur, 'SELECT pg_stat_force_next_flush()') or value(cur, total)
        equal(error(cur, "SELECT wiscsort.advise('SELECT * FROM t ORDER BY p', true)")[0], None, name + ': there is advice')
        cur.execute('SELECT pg_stat_force_next_flush()')
        return value(cur, total) - before
    all_of_it = written('without limits')
    cur.execute("SET wiscsort.max_temp = '2MB'")
    ours = written('max_temp')
    cur.execute("RESET wiscsort.max_temp; SET temp_file_limit = '2MB'")
    check(ours < 0.1 * all_of_it, 'max_temp limits trials', (ours, all_of_it))
    both = written('temp_file_limit')
    check(both < 0.1 * all_of_it, 'so does temp_file_limit', (both, all_of_it))
    cur.execute('CREATE TABLE short_rows AS SELECT hashint4(i) AS i FROM generate_series(1, 300000) i')
    cur.execute("ANALYZE short_rows; SET work_mem = '16MB'; SET temp_file_limit = '1MB'")
    equal(error(cur, "SELECT wiscsort.advise('SELECT i FROM short_rows ORDER BY i', true)")[0], None,
          'short rows that are kept for trials take no temporary file')
    # most of the limit is taken by the query's own sort
    least, most = 1, 4096
    query = 'SELECT count(p) FROM (SELECT * FROM t ORDER BY p OFFSET 0) s'
    while most - least > 1:
        middle = (least + most) // 2
        cur.execute("SET temp_file_limit = '%dkB'" % (middle * 64))
        least, most = (least, middle) if error(cur, query)[0] is None else (middle, most)
    cur.execute("SET temp_file_limit = '%dkB'" % (most * 64 + 64))
    equal(error(cur, "SELECT wiscsort.advise('%s', true)" % query)[0], None, 'a limit that the query just meets')
    cur.execute('RESET temp_file_limit; DROP TABLE short_rows')


def why():
    cur = session(work_mem='1MB')

    def reason(query, number=0):
        found = records(cur, 'SELECT * FROM wiscsort.why($q$%s$q$)' % query)[number]
        return '%s, %s: %s' % (found['node'], found['sorted_by'], found['reason'])

    def told(query, pattern, name, number=0):
        found = reason(query, number)
        check(re.search(pattern, found), name, '%s\nnot %s' % (found, pattern))
    told('SELECT * FROM t ORDER BY m', '^WiscSort, WiscSort: ', 'WiscSort, with its store')
    told('SELECT * FROM t ORDER BY m LIMIT 7', '^Sort, PostgreSQL: a LIMIT takes 7 rows', 'LIMIT')
    for limit in ('(random() * 10)::int', '(SELECT 7)'):
        told('SELECT * FROM t ORDER BY m LIMIT ' + limit, '^Sort, PostgreSQL: a LIMIT that is not a constant', limit)
    told('SELECT * FROM t WHERE i < 100 ORDER BY m', '^Sort, PostgreSQL: .* below work_mem, of 1024 kB', 'few rows')
    cur.execute('CREATE INDEX ON t (r); ANALYZE t')
    cur.execute('SET enable_seqscan = off; SET enable_bitmapscan = off')
    told('SELECT r, m FROM t ORDER BY r, m', '^Incremental Sort, PostgreSQL: ', 'Incremental Sort')
    cur.execute('RESET enable_seqscan; RESET enable_bitmapscan')
    cur.execute("SET wiscsort.record_store = spool; SET effective_cache_size = '1MB'")
    told('SELECT * FROM t ORDER BY m', '^Sort, PostgreSQL: .*page cache', 'memory')
    cur.execute('RESET wiscsort.record_store; RESET effective_cache_size')
    cur.execute('SET enable_hashagg = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off;'
                'CREATE INDEX by_i ON t (i)')
    unique = 'SELECT p FROM t a WHERE i IN (SELECT b.i % 30000 FROM t b WHERE b.i > 1000) ORDER BY m'
    told(unique, '^WiscSort, WiscSort: ', 'two sorts by one column each: one is here')
    told(unique, '^(WiscSort, WiscSort: |Sort, PostgreSQL: the planner adds)', 'and the other has not the costs of another', 1)
    cur.execute('RESET enable_hashagg; RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_material; DROP INDEX by_i')
    cur.execute('CREATE TYPE pair AS (a oidvector, b int)')
    cur.execute('CREATE TABLE pairs AS SELECT i % 10 AS g, (i::text::oidvector, i)::pair AS p'
                ' FROM generate_series(1, 50000) i;'
                'ANALYZE pairs')
    told('SELECT * FROM pairs ORDER BY g, p', '^Sort, PostgreSQL: .*comparison function', 'comparison')
    cur.execute('SET wiscsort.enable = off')
    told('SELECT * FROM t ORDER BY m', '^Sort, PostgreSQL: wiscsort.enable is off', 'the setting')
    cur.execute('RESET wiscsort.enable; SET wiscsort.threshold = 1000000')
    told('SELECT * FROM t ORDER BY m', 'below wiscsort.threshold, of 1000000 kB', 'the threshold')
    cur.execute('SET wiscsort.threshold = 0; SET cpu_operator_cost = 0.0000001')
    told('SELECT i, m FROM t WHERE i < 3000 ORDER BY m', 'estimated cost [0-9]+, of WiscSort [0-9]+', 'costs')
    equal(rows(cur, "SELECT * FROM wiscsort.why('SELECT 1')"), [], 'no sort, no row')


def option():
    """EXPLAIN (WISCSORT), from 18 on."""
    cur = session(work_mem='1MB')
    two = 'SELECT m FROM t ORDER BY m LIMIT 7'
    if cur.connection.server_version < 180000:
        equal(error(cur, 'EXPLAIN (WISCSORT) ' + two)[1].split('\n')[0], 'unrecognized EXPLAIN option "wiscsort"',
              'no option before 18')
        return

    def said(statement, options='WISCSORT'):
        """What it says of each node that has a sort key: type, and the two fields."""
        found = []

        def walk(plan):
            if 'Sort Key' in plan:
                found.append((plan['Node Type'], plan.get('WiscSort'), plan.get('Record Store Choice')))
            for child in plan.get('Plans', []):
                walk(child)
        walk(value(cur, 'EXPLAIN (%s, FORMAT JSON) %s' % (options, statement))[0]['Plan'])
        return found

    def told(statement, patterns, name, options='WISCSORT'):
        found = said(statement, options)
        check(len(found) == len(patterns) and all(re.search(pattern, '%s; %s; %s' % each)
                                                  for pattern, each in zip(patterns, found)), name, found)
    told(two, ['^Sort; left to core: a LIMIT takes 7 rows'], 'a sort of core')
    told(two, ['^Sort; None; None$'], 'without the option nothing is said', 'COSTS')
    told(two, ['^Sort; None; None$'], 'switched off', 'WISCSORT off')
    told('SELECT * FROM t ORDER BY m', ['^Custom Scan; None; .*(spool|table)'], 'a WiscSort')
    told('SELECT * FROM (SELECT * FROM t ORDER BY m OFFSET 0) s ORDER BY i LIMIT 3',
         ['^Sort; left to core: a LIMIT takes 3 rows', '^Custom Scan; None; '], 'two sorts, each its own')
    told('SELECT i, (SELECT m FROM t b WHERE b.i < a.i ORDER BY m LIMIT 1) FROM t a ORDER BY m',
         ['^Custom Scan; ', '^Sort; left to core: a LIMIT takes 1 rows'], 'a sort in a subquery of the target list')
    told('CREATE TABLE new AS SELECT * FROM t WHERE i < 100 ORDER BY m', ['below work_mem'], 'CREATE TABLE AS')
    told('SELECT * FROM t ORDER BY m', ['^Custom Scan; None; '], 'executed', 'WISCSORT, ANALYZE')
    text = '\n'.join(row[0] for row in rows(cur, 'EXPLAIN (WISCSORT, VERBOSE) SELECT * FROM t ORDER BY m'))
    equal(text.count('Record Store Choice'), 1, 'beside VERBOSE it is said once')
    cur.execute('SET wiscsort.threshold = 0; SET cpu_operator_cost = 0.0000001')
    cheap = 'SELECT i, m FROM t WHERE i < 3000 ORDER BY m'
    told(cheap, ['estimated cost [0-9]+, of WiscSort [0-9]+'], 'costs')
    cur.execute('PREPARE cheap AS ' + cheap)
    told('EXECUTE cheap', ['^Sort; left to core: its plan was made before'], 'EXPLAIN EXECUTE')
    equal(error(cur, 'EXPLAIN (WISCSORT maybe) ' + two)[1].strip(), 'wiscsort requires a Boolean value', 'not a Boolean')


def end():
    common.healthy(cluster, 'advise')
    cluster.close()


if __name__ == '__main__':
    common.run([start, forecasts, with_limits, other_stores, computed, long_keys, wide_rows, refusals, reading_only, rights, other_operators, shapes, many_times, projections, recommendations,
                limited, why, option, end])
