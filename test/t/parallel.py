#!/usr/bin/python3
"""Sorts of large tables where workers may be had: one WiscSort of text takes the place of core's Gather Merge, but
not of a parallel scan that is dear; and many such sorts at once give what one gives."""

import threading

import common
from common import check, explain, healthy, rows, session, skip
from locales import at_hand

DEAR = ('CREATE FUNCTION dear(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1000'
        ' AS $$ BEGIN RETURN true; END $$')
TABLE = ("CREATE TABLE x AS SELECT i, md5(i::text) COLLATE us AS t, i % 1000 AS f, repeat('x', 60) AS v"
         ' FROM generate_series(1, 200000) i')
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
            cur.execute('VACUUM ANALYZE x')
            if not common.options.core:
                chosen(cluster)
            many(cluster)
            healthy(cluster, 'parallel')


if __name__ == '__main__':
    common.run([parallel])
