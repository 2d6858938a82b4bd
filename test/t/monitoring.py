#!/usr/bin/python3
"""WiscSort beside what else watches a server: pg_stat_statements, auto_explain, pg_stat_io, and Prometheus'
postgres_exporter with the queries of contrib/postgres_exporter.yml.

The three libraries are loaded in every order: each puts itself into hooks of the executor.
"""

import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request

import common
from common import check, equal, rows, skip, value

TREE = os.path.dirname(os.path.dirname(common.HERE))
FILE = os.path.join(TREE, 'contrib', 'postgres_exporter.yml')
LIBRARIES = ('pg_stat_statements', 'auto_explain', 'wiscsort')
NODE = ('Sort Key', 'Sort Method', 'Record Store', 'Record Store Choice', 'Memory', 'Disk', 'IndexMap Entries', 'Runs',
        'Merge Passes')
SETTINGS = {'compute_query_id': 'on', 'max_parallel_workers_per_gather': '0', 'auto_explain.log_min_duration': '0',
            'auto_explain.log_analyze': 'on', 'auto_explain.log_verbose': 'on', 'auto_explain.log_format': 'json',
            'auto_explain.log_nested_statements': 'on', 'auto_explain.log_level': 'log', 'log_min_messages': 'log',
            'pg_stat_statements.track': 'all', 'wiscsort.record_store': 'spool'}
BY_KEY = 'SELECT k, pad FROM t ORDER BY k'


def server(libraries=LIBRARIES):
    """A server with the libraries preloaded in this order; None, and a word, where one is not installed."""
    folder = subprocess.run([common.options.pg_config, '--pkglibdir'], check=True, text=True,
                            stdout=subprocess.PIPE).stdout.strip()
    missing = [name for name in libraries if not os.path.exists(os.path.join(folder, name + '.so'))]
    if missing:
        skip('beside ' + ', '.join(libraries), 'not installed: ' + ', '.join(missing))
        return None
    return common.server(preload=False, shared_preload_libraries=', '.join(libraries), **SETTINGS)


def tables(cur):
    cur.execute('CREATE EXTENSION IF NOT EXISTS wiscsort; CREATE EXTENSION IF NOT EXISTS pg_stat_statements')
    cur.execute("CREATE TABLE t AS SELECT i, hashint8(i) AS k, repeat('x', 90) AS pad FROM generate_series(1, 20000) i")
    cur.execute("CREATE FUNCTION nested() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE r record; n bigint := 0; BEGIN"
                ' FOR r IN SELECT i, pad FROM t ORDER BY hashint8(i + 1) LOOP n := n + 1; END LOOP; RETURN n; END $$')
    cur.execute('CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher')
    cur.execute('ANALYZE t')


def all_logged(cluster, since):
    """The plans that auto_explain has logged since that place of the log, as objects."""
    for found in re.finditer(r'duration: [\d.]+ ms  plan:\n((?:\t.*\n)+)', cluster.log()[since:]):
        yield json.loads(re.sub('^\t', '', found.group(1), flags=re.M))


def logged(cluster, since, query):
    """That of a query; None if there is none."""
    return next((plan for plan in all_logged(cluster, since) if query in plan['Query Text']), None)


def nodes(plan):
    yield plan
    for child in plan.get('Plans', []):
        yield from nodes(child)


def every_order():
    """Whatever the order, each library sees the query, and they agree on it."""
    cluster = server()
    if cluster is None:
        return
    with cluster:
        tables(common.core(cluster))
        for order in itertools.permutations(LIBRARIES):
            name = ', '.join(order)
            cluster.restart({'shared_preload_libraries': name})
            cur = common.session(cluster, work_mem='64kB')
            cur.execute('SELECT wiscsort.stat_reset(), pg_stat_statements_reset()')
            since = len(cluster.log())
            for sql in (BY_KEY, 'SELECT nested()'):
                rows(cur, sql)
            found = rows(cur, 'SELECT query, sorts, merge_pass, spool, s.rows FROM wiscsort.stat s'
                              ' LEFT JOIN pg_stat_statements p ON p.queryid = query_id AND p.userid = s.userid'
                              ' AND p.dbid = datid WHERE sorts > 0 ORDER BY query')
            of_function = 'SELECT i, pad FROM t ORDER BY hashint8(i + $1)'
            equal(found, [(query, 1, 1, 1, 20000) for query in (of_function, BY_KEY)], name + ': query ids agree')
            spilled = rows(cur, 'SELECT temp_blks_written > 200, rows FROM pg_stat_statements'
                                " WHERE query = '%s'" % BY_KEY)
            equal(spilled, [(True, 20000)], name + ': pg_stat_statements counts temporary blocks')
            for what, query in (('a statement', BY_KEY), ('a query of a function', 'SELECT i, pad FROM t ORDER BY')):
                plan = logged(cluster, since, query)
                if not check(plan is not None, '%s: auto_explain logs %s' % (name, what), cluster.log()[since:]):
                    continue
                sorts = [n for n in nodes(plan['Plan']) if n.get('Custom Plan Provider') == 'WiscSort']
                equal([[f for f in NODE if f not in n] for n in sorts], [[]], '%s: with the node and its fields' % name)
                equal([(n['IndexMap Entries'], n['Sort Method']) for n in sorts], [(20000, 'wiscsort merge-pass')],
                      name + ': as they were')
            for call, executed in (("why('%s')", 0), ("advise('%s')", 0), ("advise('%s', true)", 1)):
                since = len(cluster.log())
                cur.execute('SELECT pg_stat_statements_reset()')
                rows(cur, 'SELECT * FROM wiscsort.' + call % BY_KEY)
                counted = rows(cur, "SELECT coalesce(sum(calls), 0)::int FROM pg_stat_statements WHERE query = '%s'" % BY_KEY)
                plans = [plan for plan in all_logged(cluster, since) if plan['Query Text'] == BY_KEY]
                equal((counted, len(plans)), ([(executed,)], executed), '%s: executions of %s' % (name, call))
        check(not cluster.crashed(), 'no crash', cluster.log()[-3000:])


def utility():
    """Sorts of what has no query identifier of its own are found under the client's statement, by whomever."""
    cluster = server(('pg_stat_statements', 'wiscsort'))
    if cluster is None:
        return
    with cluster:
        tables(common.core(cluster))
        cur = common.session(cluster, work_mem='64kB')
        cursor = 'BEGIN; DECLARE c CURSOR FOR %s; FETCH 3 FROM c; COMMIT' % BY_KEY
        statements = (cursor, 'CREATE TABLE copy AS ' + BY_KEY, 'CREATE MATERIALIZED VIEW view AS ' + BY_KEY,
                      'REFRESH MATERIALIZED VIEW view')
        for enable, counted in (('on', 'sorts + aborted'), ('off', 'left_to_core')):
            cur.execute('DROP TABLE IF EXISTS copy; DROP MATERIALIZED VIEW IF EXISTS view; SET wiscsort.enable = ' + enable)
            for sql in statements:
                cur.execute('SELECT wiscsort.stat_reset(), pg_stat_statements_reset()')
                for part in sql.split('; '):
                    cur.execute(part)
                found = rows(cur, 'SELECT query_id IS NOT NULL, count(*), count(DISTINCT queryid) FROM wiscsort.stat s'
                                  ' LEFT JOIN pg_stat_statements p ON p.queryid = query_id AND p.userid = s.userid'
                                  ' AND p.dbid = datid WHERE %s > 0 GROUP BY 1' % counted)
                # PostgreSQL's own sort of a cursor is counted when that ends, which may be in another statement
                none = sql == cursor and enable == 'off' and cur.connection.server_version < 180000
                equal(found, [(False, 1, 0) if none else (True, 1, 1)], 'WiscSort %s: %s' % (enable, sql))


def input_output():
    """What pg_stat_database, pg_stat_statements and (from 16 on) pg_stat_io count of a sort."""
    with common.server(track_io_timing='on', shared_buffers='1MB') as cluster:
        cur = common.session(cluster, work_mem='64kB', **{'wiscsort.direct_read': 'off'})
        cur.execute("CREATE TABLE t AS SELECT hashint8(i) AS k, repeat('x', 900) AS pad FROM generate_series(1, 9000) i")
        cur.execute('CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher')
        cur.execute('VACUUM ANALYZE t')
        see = common.core(cluster)
        see.execute('SET SESSION AUTHORIZATION watcher')
        io = value(see, "SELECT count(*) FROM pg_class WHERE oid = to_regclass('pg_stat_io')")
        if not io:
            skip('pg_stat_io', 'PostgreSQL 16 and later have it')

        def counted(store):
            """By the sort: temporary files and bytes, and reads and hits of blocks of relations."""
            def now():
                value(cur, 'SELECT pg_stat_force_next_flush()')
                rows(cur, 'SELECT 1')
                found = list(rows(see, 'SELECT temp_files, temp_bytes FROM pg_stat_database'
                                       ' WHERE datname = current_database()')[0])
                if io:
                    found += rows(see, "SELECT sum(reads), sum(hits) FROM pg_stat_io WHERE object = 'relation'"
                                       " AND backend_type = 'client backend'")[0]
                return [int(n) for n in found]
            cur.execute("SET wiscsort.record_store = '%s'" % store)
            before = now()
            plan = value(cur, 'EXPLAIN (ANALYZE, FORMAT json) SELECT * FROM t ORDER BY k')
            return [b - a for a, b in zip(before, now())], plan[0]['Plan']

        blocks = value(cur, "SELECT pg_relation_size('t') / 8192")
        spool, node = counted('spool')
        # Disk is rounded up to kB
        check(spool[0] >= 1 and abs(spool[1] - node['Disk'] * 1024) <= spool[0] * 8192,
              'pg_stat_database counts temporary files of a spool', (spool, node))
        heap, node = counted('heap')
        equal(node['Record Store'], 'heap', 'rows stay in their table')
        check(heap[1] < spool[1] / 10, 'and few temporary bytes', (heap, spool))
        if io:
            check(spool[2] >= blocks - 128, 'pg_stat_io: the table is read once for a spool', (spool, blocks))
            visits = node['Blocks Buffered']
            check(heap[2] + heap[3] >= visits + blocks - 128, 'pg_stat_io: and its blocks are fetched again',
                  (heap, visits, blocks))
        see.connection.close()


# --- Prometheus -----------------------------------------------------------------------------------

def queries():
    """The file of queries, parsed; None, and a word, without a parser."""
    try:
        import yaml
    except ImportError:
        return skip('contrib/postgres_exporter.yml', 'python3-yaml is not installed')
    with open(FILE) as f:
        return yaml.safe_load(f)


def watcher(cluster):
    """A session of a member of pg_monitor, which does not load the library by itself."""
    cur = cluster.connect().cursor()
    cur.execute('SET SESSION AUTHORIZATION watcher')
    return cur


def exporter_file():
    """Every query of the file runs as a member of pg_monitor and returns the columns that it names."""
    file = queries()
    if file is None:
        return
    with common.server(preload=False, **dict(SETTINGS, shared_preload_libraries='wiscsort')) as cluster:
        owner = common.session(cluster, work_mem='64kB')
        owner.execute('CREATE EXTENSION wiscsort; CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher')
        owner.execute('CREATE ROLE "an other" LOGIN SUPERUSER; CREATE ROLE nobody LOGIN')
        owner.execute("CREATE TABLE t AS SELECT hashint8(i) AS k, repeat('x', 90) AS pad FROM generate_series(1, 20000) i")
        owner.execute("CREATE TABLE u AS SELECT * FROM t; ANALYZE t; ANALYZE u")
        owner.execute('SELECT wiscsort.stat_reset()')
        see = watcher(cluster)
        for sql in (BY_KEY, 'SELECT * FROM u ORDER BY k', 'SELECT * FROM t ORDER BY k DESC OFFSET 10'):
            rows(owner, sql)
        owner.execute('SET SESSION AUTHORIZATION "an other"')
        rows(owner, BY_KEY)
        owner.execute('BEGIN; DECLARE c CURSOR FOR ' + BY_KEY)
        owner.execute('FETCH 10 FROM c')

        found = {}
        for name, entry in file.items():
            check(set(entry) <= {'query', 'metrics', 'master', 'cache_seconds', 'runonserver'} and entry['master'],
                  name + ': known keys', entry)
            metrics = {}
            for metric in entry['metrics']:
                (column, what), = metric.items()
                metrics[column] = what['usage']
                check(what['usage'] in ('LABEL', 'COUNTER', 'GAUGE') and what['description'], name + '.' + column)
                check(re.match('[a-z_]+$', column), '%s.%s: a name for Prometheus' % (name, column))
            see.execute(entry['query'])
            equal([d.name for d in see.description], list(metrics), name + ': the columns are the metrics')
            labels = [c for c in metrics if metrics[c] == 'LABEL']
            found[name] = [dict(zip(metrics, row)) for row in see.fetchall()]
            check(found[name], name + ': there are rows')
            for row in found[name]:
                check(all(row[c] is not None and isinstance(row[c], str) == (c in labels) for c in row),
                      name + ': labels are texts, all else numbers', row)
            distinct = {tuple(row[c] for c in labels) for row in found[name]}
            equal(len(distinct), len(found[name]), name + ': no two rows with the same labels')

        stat = {row['usename']: row for row in found['wiscsort_stat']}
        mine = stat['postgres']
        equal((mine['sorts'], mine['rows'], mine['merge_pass']), (3, 60000, 3), 'sorts of all queries, summed up')
        equal(stat['an other']['sorts'], 1, 'of each role')
        running = {row['usename']: row for row in found['wiscsort_progress']}
        other = running['an other']
        equal((other['phase'], other['sorts'], other['rows_in'], other['rows_out']), ('output', 1, 20000, 10),
              'what runs')
        check(other['temp_bytes'] > 1000000 and other['memory_bytes'] > 0, 'and what it takes', other)

        see.execute('RESET SESSION AUTHORIZATION; SET SESSION AUTHORIZATION nobody')
        for name, entry in file.items():
            see.execute(entry['query'])
            check(all(v is not None for row in see.fetchall() for v in row), name + ': works for anybody, too')
        exporter(cluster, file)


def exporter(cluster, file):
    """The exporter itself, where it is installed: it gives every metric out."""
    program = shutil.which('postgres_exporter') or shutil.which('prometheus-postgres-exporter')
    if program is None:
        return skip('postgres_exporter', 'it is not installed')
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        address = '127.0.0.1:%d' % s.getsockname()[1]
    source = 'user=watcher dbname=postgres host=%s port=%s sslmode=disable' % (cluster.host, cluster.port)
    log = os.path.join(cluster.dir, 'exporter.log')
    with open(log, 'w') as f:
        process = subprocess.Popen([program, '--web.listen-address=' + address, '--extend.query-path=' + FILE],
                                   env=dict(os.environ, DATA_SOURCE_NAME=source), stdout=f, stderr=f)
    try:
        text = ''
        for _ in range(100):
            try:
                with urllib.request.urlopen('http://%s/metrics' % address, timeout=10) as page:
                    text = page.read().decode()
                break
            except OSError:
                time.sleep(0.1)
        given = set(re.findall(r'^(wiscsort_\w+)\{?', text, re.M))
        wanted = {'%s_%s' % (name, column) for name, entry in file.items() for metric in entry['metrics']
                  for column, what in metric.items() if what['usage'] != 'LABEL'}
        with open(log) as f:
            check(wanted <= given, 'postgres_exporter gives every metric out', '%s\n%s' % (wanted - given, f.read()))
        found = re.search(r'^wiscsort_stat_rows\{(.*usename="postgres".*)\} (.*)$', text, re.M)
        equal(found and float(found.group(2)), 60000.0, 'with the figures')
    finally:
        process.terminate()
        process.wait()


if __name__ == '__main__':
    common.run([every_order, utility, input_output, exporter_file])
