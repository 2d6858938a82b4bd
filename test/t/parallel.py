#!/usr/bin/python3
"""Sorts of large tables where workers may be had: one WiscSort of text takes the place of core's Gather Merge, but
not of a parallel scan that is dear; many such sorts at once give what one gives; and EXPLAIN has the figures of
each worker's sort."""

import re
import threading

import common
from common import check, explain, healthy, rows, session, skip
from locales import at_hand

DEAR = ('CREATE FUNCTION dear(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1000'
        ' AS $$ BEGIN RETURN true; END $$')
TABLE = ("CREATE TABLE x AS SELECT i, md5(i::text) COLLATE us AS t, i % 1000 AS f, repeat('x', 60) AS v"
         ' FROM generate_series(1, 200000) i')
VISITS = ("CREATE TABLE visit AS SELECT 'http://example.com/' || left(md5((hashint4(i) % 33333)::text), 20) COLLATE us AS url,"
          " repeat('x', 150) AS v FROM generate_series(1, 100000) i")
AT_ONCE = 8


def planned(cur, sql, **settings):
    """A plan, which nodes of interest it has, and its cost."""
    for item in settings.items():
        cur.execute('SELECT set_config(%s, %s, false)', item)
    found = explain(cur, sql)
    cost = common.value(cur, 'EXPLAIN (FORMAT JSON) ' + sql)[0]['Plan']['Total Cost']
    for name in settings:
        cur.execute('RESET ' + name)
    return found, {node for node in ('Gather Merge', 'WiscSort', 'HashAggregate') if node in found}, cost


def chosen(cluster):
    cur = cluster.connect(work_mem='1MB', max_parallel_workers_per_gather='2').cursor()
    off = {'wiscsort.enable': 'off'}
    for order in ('t', 't DESC, i', 'f, t'):
        query = 'SELECT * FROM x ORDER BY ' + order
        found, nodes, high = planned(cur, query, **off)
        check(nodes == {'Gather Merge'}, order + ': core has workers sort', found)
        found, nodes, cost = planned(cur, query)
        check(nodes == {'WiscSort'}, order + ': one WiscSort', found)
        check(0.7 * high < cost < high, order + ': charged somewhat less than core', (cost, high))
        found, nodes, _ = planned(cur, query, enable_gathermerge='off')
        check(nodes == {'WiscSort'}, order + ': without Gather Merge', found)
        _, _, high = planned(cur, query, max_parallel_workers_per_gather='0', **off)
        _, _, cost = planned(cur, query, max_parallel_workers_per_gather='0')
        check(0.98 * high < cost < high, order + ': where there are no workers, just less than Sort', (cost, high))
    found, nodes, _ = planned(cur, 'SELECT * FROM x WHERE dear(i) ORDER BY t')
    check(nodes == {'Gather Merge', 'WiscSort'}, 'a dear scan is left to workers', found)
    found, nodes, _ = planned(cur, 'SELECT f, count(*) FROM x GROUP BY f')
    check('WiscSort' not in nodes, 'a hash table of few groups stays', found)
    found, nodes, _ = planned(cur, 'SELECT url, count(*) FROM visit GROUP BY url')
    check(nodes == {'HashAggregate'}, 'one of many, beside which no sort is charged less for workers', found)
    cur.connection.close()


def many(cluster):
    """As many sorts at once as find no processor of their own, half of them with workers."""
    queries = ['SELECT i, v FROM x ORDER BY f, i', 'SELECT i, v FROM x ORDER BY t',
               'SELECT i, row_number() OVER (PARTITION BY f ORDER BY t) AS w FROM x ORDER BY i',
               'SELECT f, count(*), max(t) FROM x GROUP BY f ORDER BY f']
    wanted = {query: rows(common.core(cluster, max_parallel_workers_per_gather='0'), query) for query in queries}
    problems = []
    workers = {'max_parallel_workers_per_gather': '2', 'wiscsort.debug_force': 'off', 'parallel_setup_cost': '0',
               'parallel_tuple_cost': '0'}
    found = explain(session(cluster, work_mem='1MB', **workers), queries[0])
    check('Gather Merge' in found and 'WiscSort' in found, 'workers sort', found)

    def work(number):
        cur = session(cluster, work_mem=('64kB', '1MB', '4MB')[number % 3],
                      **(workers if number % 2 else {'max_parallel_workers_per_gather': '0'}))
        for turn in range(len(queries)):
            query = queries[(number + turn) % len(queries)]
            if rows(cur, query) != wanted[query]:
                problems.append((number, query))
        cur.connection.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(not problems, '%d sorts at once' % AT_ONCE, problems)


def sorts_in(plan):
    """The WiscSorts of a plan in JSON, whether or not they are below Gather."""
    if plan.get('Custom Plan Provider') == 'WiscSort':
        yield plan
    for below in plan.get('Plans', ()):
        yield from sorts_in(below)


def analysed(cur, sql):
    """The only WiscSort of a plan that has been executed, and how many workers there were."""
    plan = common.value(cur, 'EXPLAIN (ANALYZE, FORMAT JSON) ' + sql)[0]['Plan']

    def workers(plan):
        return plan.get('Workers Launched', 0) + sum(workers(below) for below in plan.get('Plans', ()))
    found = list(sorts_in(plan))
    check(len(found) == 1, 'one WiscSort', plan)
    return found[0], workers(plan)


def explained(cluster):
    """Each worker's sort has its figures in EXPLAIN, and no node pretends to be parallel."""
    cur = session(cluster, **{'work_mem': '1MB', 'max_parallel_workers_per_gather': '2', 'parallel_setup_cost': '0',
                              'parallel_tuple_cost': '0', 'wiscsort.debug_force': 'off'})
    total = 200000
    query = 'SELECT i, v FROM x ORDER BY f, i'
    for leader in ('on', 'off'):
        cur.execute('SET parallel_leader_participation = ' + leader)
        found, launched = analysed(cur, query)
        each = found.get('Worker Sorts', [])
        check(launched > 0 and len(each) == launched, 'a sort for each worker, leader ' + leader, found)
        check([sort['Worker Number'] for sort in each] == list(range(launched)), 'their numbers', each)
        check(('IndexMap Entries' in found) == (leader == 'on'), 'the leader sorts if it takes part', found)
        everyone = each + [found] if leader == 'on' else each
        check(sum(sort['IndexMap Entries'] for sort in everyone) == total, 'all rows, leader ' + leader, everyone)
        check(all(sort['Sort Method'] == 'wiscsort ' + ('merge-pass' if sort['Runs'] > 0 else 'one-pass') and
                  (sort['Merge Passes'] > 0) == (sort['Runs'] > 0) and sort['Record Store'] in ('spool', 'inline') and
                  sort['Disk'] > sort['IndexMap Entries'] * 60 / 1024 and sort['Memory'] > 0
                  for sort in everyone if sort['IndexMap Entries'] > 20000), 'their figures', everyone)
        check(found['Parallel Aware'] is False, 'not parallel aware', found)
    for options, pattern in (('', r'Worker 1:  Sort Method: wiscsort \w+-pass  Record Store: [\w ]+  Memory: \d+kB'
                              r'  Disk: \d+kB  Rows: \d+'),
                             (', VERBOSE', r'Worker 0:  Sort Method: wiscsort ')):
        text = explain(cur, query, ', ANALYZE, TIMING off' + options)
        check(re.search(pattern, text) and 'Parallel Custom Scan' not in text, 'in text' + options, text)
    text = explain(cur, query)
    check('Custom Scan (WiscSort)' in text and 'Worker 0' not in text and 'Parallel Custom' not in text,
          'a plan that is not executed', text)
    text = explain(cur, query, ', BUFFERS')
    check('Custom Scan (WiscSort)' in text and 'Parallel Custom' not in text, 'with BUFFERS', text)

    # inside a join that each worker does, and in a parallel query that begins anew for each row outside
    cur.execute('SET enable_hashjoin = off')
    cur.execute('SET enable_nestloop = off')
    inner = 'SELECT count(*) FROM x a JOIN x b USING (i)'
    plan = common.value(cur, 'EXPLAIN (ANALYZE, FORMAT JSON) ' + inner)[0]['Plan']
    check(any('Worker Sorts' in sort for sort in sorts_in(plan)), 'below a merge join', plan)
    cur.execute('RESET enable_nestloop')
    again = ('SELECT * FROM (VALUES (1), (2), (3)) o(n), LATERAL (SELECT i FROM (SELECT i, v FROM x ORDER BY f, i'
             ' OFFSET 0) s WHERE i > n LIMIT 2) q')
    found = explain(cur, again, ', ANALYZE, TIMING off')
    check(re.search(r'Gather Merge.*loops=3', found) and 'Worker 0:  Sort Method' in found, 'again and again', found)
    cur.execute('SET wiscsort.enable = off')
    wanted = rows(cur, again)
    cur.execute('RESET wiscsort.enable')
    common.equal(rows(cur, again), wanted, 'the rows of the last')
    cur.execute('RESET ALL')
    cur.connection.close()


def parallel():
    with at_hand() as lacking:
        if lacking:
            return skip('text under libc', lacking)
        with common.server(parallel_tuple_cost='0.05') as cluster:
            # so that core takes workers for so few rows
            cur = common.core(cluster)
            cur.execute("CREATE COLLATION us (provider = libc, locale = 'en_US.utf8')")
            cur.execute(DEAR)
            cur.execute(TABLE)
            cur.execute(VISITS)
            cur.execute('VACUUM ANALYZE x, visit')
            if not common.options.core:
                chosen(cluster)
            many(cluster)
            if not common.options.core:
                explained(cluster)
            healthy(cluster, 'parallel')


if __name__ == '__main__':
    common.run([parallel])
