#!/usr/bin/python3
"""UNION: a hash table that core would choose is charged as if no row came twice, and is not given up for sorts."""

import common
from common import check, equal, explain, healthy, rows

QUERIES = {
    'few in one member, many in the other': 'SELECT shop, channel FROM fact UNION SELECT agent, channel FROM fact',
    'an index in one member': 'SELECT agent, status FROM fact UNION SELECT shop, status FROM fact',
    'a constant': "SELECT agent, 'a' AS s FROM fact UNION SELECT shop, 'b' FROM fact",
}


def hashed():
    with common.server(work_mem='1MB', max_parallel_workers_per_gather='0') as cluster:
        core, ours = common.core(cluster), cluster.connect().cursor()
        core.execute("CREATE TABLE fact AS SELECT i AS id, i * 7919 % 5 AS shop, i * 7907 % 9973 AS agent, 'CH' || i % 40 AS channel,"
                     " 'state ' || i % 5 AS status, repeat('x', 50) AS note FROM generate_series(1, 100000) i")
        core.execute('CREATE INDEX ON fact (shop, id)')
        core.execute('ANALYZE fact')
        for name, query in QUERIES.items():
            wanted = 'HashAggregate' in explain(core, query)
            plan = explain(ours, query)
            # PostgreSQL 15 and 16 may sort, with a hash table that is charged as much
            check(not wanted or ('HashAggregate' in plan and 'WiscSort' not in plan), name, plan)
            equal(sorted(rows(ours, query)), sorted(rows(core, query)), name + ': rows')
        # a set operation that is a member has columns of no relation
        for query in ('(SELECT shop FROM fact UNION SELECT agent FROM fact ORDER BY 1 LIMIT 10) UNION SELECT id FROM fact',
                      '(SELECT shop, id FROM fact EXCEPT SELECT id, shop FROM fact LIMIT 5) UNION SELECT 1, 2'):
            equal(len(rows(ours, 'EXPLAIN ' + query)) > 0, True, 'planned: ' + query)
        if common.major() >= 17:
            check(wanted, 'core has a hash table')
        core.execute('CREATE TABLE one AS SELECT i AS id, repeat(md5(i::text), 3) AS t FROM generate_series(1, 200000) i')
        core.execute('ANALYZE one')
        plan = explain(ours, 'SELECT id, t FROM one UNION SELECT -id, t FROM one')
        check('WiscSort' in plan or common.options.core, 'rows that are all different are sorted', plan)
        # from PostgreSQL 17 on, core puts a Sort on top of the plan of such a member
        query = 'SELECT a.id, b.t FROM one a JOIN one b ON b.id = a.id * 2 UNION SELECT -id, t FROM one'
        plan = explain(ours, query)
        check(('WiscSort' in plan and '->  Sort' not in plan) or common.options.core, 'the sort of a join is ours', plan)
        equal(sorted(rows(ours, query)), sorted(rows(core, query)), 'rows of a join')
        healthy(cluster, 'UNION')


if __name__ == '__main__':
    common.run([hashed])
