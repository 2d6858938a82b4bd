"""What bench/tpch and bench/tpcc share: reports and queries in several settings, and what they are compared with.

Each query is measured with the server's own defaults (`defaults`: two parallel workers a node, jit) and with
neither (`serial`).  Beside core's sort, those of the reports that say so are compared with

  - core with so much work_mem that it sorts in memory,
  - the rewrite by hand: only ctid and the keys are sorted, and joined back to the rows,
  - DuckDB, if Python has it, with 1 and 2 threads, on the same rows.  It may use work_mem and as much as the
    table takes, which for PostgreSQL is in the page cache.  EXPLAIN ANALYZE runs the query and drops the rows.

A query whose plan is not the expected one, whose answers differ, or that read from the disk, fails.
"""

import json
import os
import re
import sys
import tempfile
import time

import psycopg2

import results
import tables
from cluster import ClusterError
from measure import SIDES, Bench, HERE, Refused, plan_nodes
from pairs import Pairs, Query

DATABASE = 'standard'
TIMEOUT = '600s'
MODES = {'defaults': {'max_parallel_workers_per_gather': '2', 'jit': 'on'},
         'serial': {'max_parallel_workers_per_gather': '0', 'jit': 'off'}}
FITS = 4                        # tables below so many times work_mem need not spill, and may be left to core
DUCK_TYPES = (('character', 'VARCHAR'), ('text', 'VARCHAR'), ('numeric(', None), ('timestamp with', 'TIMESTAMPTZ'))
HEADINGS = ('query', 'mode', 'work_mem', 'node', 'plans', 'core ms', 'wisc ms', 'ratio [quartiles]', 'pairs', 'alone',
            'others / wisc', 'remarks')
LEFT = ('query', 'mode', 'node', 'plans', 'others / wisc', 'remarks')


def contents(name):
    with open(os.path.join(HERE, 'cases', name + '.json')) as f:
        return json.load(f)


def options(parser, default_sets, sets):
    """The options that both programs have."""
    parser.add_argument('--sets', nargs='+', default=default_sets, choices=sets, help='default: %(default)s')
    parser.add_argument('--modes', nargs='+', default=list(MODES), choices=MODES, help='default: %(default)s')
    parser.add_argument('--work-mem', nargs='+', default=['4MB'], metavar='SIZE', help='default: %(default)s')
    parser.add_argument('--only', nargs='+', default=[''], metavar='PART', help='queries with PART in their names')
    parser.add_argument('--pairs', type=int, help='of each query (default: 15 of the 22 queries, 3 of a report)')
    parser.add_argument('--most', type=int, default=15, metavar='N', help='of one below 1 (default %(default)s)')
    parser.add_argument('--no-baselines', action='store_true', help='compare with core alone')
    parser.add_argument('--differing', action='store_true', help='only what has another plan with WiscSort')
    parser.add_argument('--max-seconds', type=int, metavar='N', help='begin no other query afterwards')
    parser.add_argument('--tools', metavar='FOLDER', help='where pip install --target has put tpchgen-cli and duckdb')
    parser.add_argument('--set', action='append', default=[], metavar='NAME=VALUE', help='for every session')
    parser.add_argument('--list', action='store_true', help='print the queries, and stop')
    parser.add_argument('--name', help="the run's name, after the date")
    parser.add_argument('--output', metavar='FILE', help='what lines are appended to (bench/results.jsonl)')
    parser.add_argument('--pg-config', default=os.environ.get('PG_CONFIG', 'pg_config'))


class Standard(Query):
    """A report or a query in one mode, with one work_mem.  `rows` is the number of rows of the largest table."""

    core_allowed, baselines, need = False, False, None

    def __init__(self, case, description, mode, work_mem, settings, rows):
        self.case, self.name, self.mode, self.work_mem, self.rows = case, description['name'], mode, work_mem, rows
        self.shape = description.get('shape', 'report')
        self.select, self.fetch = description['select'], description.get('fetch', 0)
        self.limit = description.get('limit', '').format(half=rows // 2, most=rows * 9 // 10)
        self.settings = {**MODES[mode], **settings.get(description.get('settings'), {})}
        self.keys = [(key.split(' ')[0], key.endswith(' DESC'), False) for key in description.get('keys', [])]
        self.sorts = bool(self.keys)
        self.places, self.pairs = description.get('places'), description.get('pairs')
        self.need, self.baselines = description.get('need'), description.get('baselines', False)
        self.core_allowed = description.get('core_allowed', False)
        self.expects = list(description.get('expects', [])) + ([] if self.core_allowed else ['WiscSort'])

    def tables(self, known):
        return [name for name in known if re.search(r'\b%s\b' % name, self.select)]

    def facts(self, args):
        found = {'case': self.case, 'shape': self.shape, 'name': self.name, 'mode': self.mode, 'rows': self.rows,
                 'work_mem': self.work_mem, 'cache': self.cache, 'select': ' '.join(self.timed().split())[:1200],
                 'settings': {**self.settings, **dict(item.split('=', 1) for item in args.set)}}
        return {**found, 'core_allowed': True} if self.core_allowed else found


class StandardPairs(Pairs):
    """The tables are made once; subclasses say how."""

    wants_alone = True

    def __init__(self, args):
        super().__init__(args)
        self.known, self.rows, self.duck, self.duck_tables = [], 0, None, set()
        self.folder = None

    def close(self):
        super().close()
        if self.duck is not None:
            self.duck.close()
            self.duck = None
        if self.folder is not None:
            self.folder.cleanup()
            self.folder = None

    def server(self):
        if self.bench is None:
            self.bench = Bench(self.args.pg_config)
            server = self.bench.server()
            server.settings['statement_timeout'] = TIMEOUT
            server.restart({'max_wal_size': '32GB'})
            try:
                server.psql("CREATE DATABASE %s TEMPLATE template0 LOCALE 'en_US.utf8'" % DATABASE)
            except ClusterError as error:
                raise SystemExit('no en_US.utf8: %s' % error)
            server.database = DATABASE
            server.psql('CREATE EXTENSION wiscsort')
            started = time.monotonic()
            self.make(server)
            print('data made in %.0f s' % (time.monotonic() - started), flush=True)
        return self.bench.server()

    def load(self, cell):
        conn = self.server().connect()
        self.tables = cell.tables(self.known)
        if sum(map(self.size, self.tables)) < FITS * results.megabytes(cell.work_mem) * 2**20:
            cell.core_allowed, cell.expects = True, [node for node in cell.expects if node != 'WiscSort']
        if cell.shape != 'answer':
            with conn.cursor() as cur:
                cur.execute(cell.select + ' LIMIT 0')
                cell.columns = [column.name for column in cur.description]
        conn.close()

    def same(self, cell):
        """Whether both sides have one plan."""
        sessions, result = {}, {}
        try:
            self.load(cell)
            sessions = {side: self.session(cell, side) for side in SIDES}
            self.plans(cell, sessions, result)
        except (psycopg2.Error, ClusterError, Refused):
            pass                # who measures it says so
        for conn in sessions.values():
            conn.close()
        return result.get('plans') == 'same'

    # --- what is compared beside core -----------------------------------

    def others(self, cell):
        if not cell.baselines or self.args.no_baselines:
            return {}
        found = {'core in memory': lambda: self.in_memory(cell), 'by hand': lambda: self.by_hand(cell)}
        if self.duckdb(cell):
            for threads in (1, 2):
                found['DuckDB %d' % threads] = lambda threads=threads: self.by_duckdb(cell, threads)
        return found

    def in_memory(self, cell):
        """Seconds of core where nothing spills."""
        wanted = self.size() / 2**20 * 3 + 64
        with open('/proc/meminfo') as f:
            available = next(int(line.split()[1]) / 1024 for line in f if line.startswith('MemAvailable'))
        if wanted > available:
            return None         # the page cache would be gone, or the server
        conn = self.session(cell, 'core', work_mem='%dMB' % wanted)
        try:
            return self.run(conn, cell)[0]
        finally:
            conn.close()

    def by_hand(self, cell):
        """Seconds of core where the query is written with a join back."""
        table = self.tables[0]
        counts = ', '.join('count(%s)' % name for name in cell.columns)
        query = ('SELECT %s FROM (SELECT %s.* FROM (SELECT ctid AS place FROM %s ORDER BY %s OFFSET 0) s JOIN %s'
                 ' ON %s.ctid = s.place OFFSET 0) r' % (counts, table, table, cell.order_by, table, table))
        conn = self.session(cell, 'core', enable_hashjoin='off', enable_mergejoin='off')
        with conn.cursor() as cur:
            cur.execute('EXPLAIN (FORMAT JSON) ' + query)
            kinds = {node['Node Type'] for node in plan_nodes(cur.fetchone()[0][0]['Plan'])}
            if not {'Tid Scan', 'Sort'} <= kinds:
                raise Refused('not the plan of the rewrite by hand: %s' % ', '.join(sorted(kinds)))
            started = time.perf_counter()
            cur.execute(query)
            seconds = time.perf_counter() - started
            if max(cur.fetchone()) != self.rows_of(cell):
                raise Refused('the rewrite by hand gave other rows')
        conn.close()
        return seconds

    def rows_of(self, cell):
        return int(self.server().psql('SELECT count(*) FROM ' + self.tables[0]).stdout)

    def size(self, table=None):
        """Bytes of a table, or of the first."""
        return int(self.server().psql("SELECT pg_table_size('%s')" % (table or self.tables[0])).stdout)

    def duckdb(self, cell):
        """Whether DuckDB has the rows; it gets them where it can be had."""
        try:
            import duckdb
        except ImportError:
            return False
        table = self.tables[0]
        if self.duck is None:
            self.folder = tempfile.TemporaryDirectory(prefix='wiscsort-duckdb-')
            self.duck = duckdb.connect(os.path.join(self.folder.name, 'db'))
            self.duck.execute("SET temp_directory = '%s'" % os.path.join(self.folder.name, 'temporary'))
        if table not in self.duck_tables:
            conn, path = self.server().connect(), os.path.join(self.folder.name, 'rows')
            with conn.cursor() as cur, open(path, 'wb') as f:
                cur.execute("SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
                            " WHERE attrelid = '%s'::regclass AND attnum > 0 ORDER BY attnum" % table)
                columns = [(name, next((duck or kind for start, duck in DUCK_TYPES if kind.startswith(start)), kind))
                           for name, kind in cur.fetchall()]
                cur.copy_expert('COPY %s TO STDOUT (FORMAT csv)' % table, f)
            conn.close()
            self.duck.execute('CREATE TABLE %s AS SELECT * FROM read_csv(\'%s\', header = false, columns = {%s})'
                              % (table, path, ', '.join("'%s': '%s'" % column for column in columns)))
            self.duck.execute('CHECKPOINT')
            os.remove(path)
            found = self.duck.execute('SELECT count(*) FROM ' + table).fetchone()[0]
            if found != self.rows_of(cell):
                raise Refused('DuckDB has %d rows' % found)
            self.duck_tables.add(table)
        return True

    def by_duckdb(self, cell, threads):
        """Seconds of the same query, whose rows are dropped."""
        memory = results.megabytes(cell.work_mem) + self.size() / 2**20
        self.duck.execute('SET threads = %d' % threads)
        self.duck.execute("SET memory_limit = '%dMiB'" % memory)
        started = time.perf_counter()
        try:
            self.duck.execute('EXPLAIN ANALYZE ' + cell.query()).fetchall()
        except Exception as error:      # of a module that need not be there: it has run out of memory
            print('  DuckDB: %s' % str(error).split('\n')[0], flush=True)
            return None
        return time.perf_counter() - started


# --- the run ------------------------------------------------------------

def row(line):
    found = [line['name'], line['mode'], line['work_mem'], tables.node(line), line.get('plans', '?')]
    if 'ratio' not in line:
        return found + ['?', '?', '?', '', '', '', tables.remarks(line)]
    return found + ['%.1f' % (line['core_seconds'] * 1000), '%.1f' % (line['wiscsort_seconds'] * 1000),
                    tables.ratio(line), str(line['pairs']), alone(line), others(line),
                    '; '.join(filter(None, [line.get('jit'), tables.remarks(line)]))]


def alone(line):
    """The ratio without jit and with the same plan shape, where that is another."""
    return '' if 'alone' not in line else '%.2f' % line['alone'] if line['alone'] else 'no such plan'


def others(line):
    """What the query is compared with: seconds / those of WiscSort."""
    return ', '.join('%s %s' % (name, '%.2f' % (seconds / line['wiscsort_seconds']) if seconds else 'fails')
                     for name, seconds in line.get('others', {}).items())


def summary(lines):
    found = []
    groups = {}
    for line in lines:
        if not results.failed(line):
            groups.setdefault((line['shape'] == 'answer', line['mode'], line['work_mem']), []).append(line)
    for (answers, mode, memory), group in sorted(groups.items()):
        ratios = [line['ratio'][1] for line in group]
        differ = [line['ratio'][1] for line in group if line['plans'] != 'same']
        sort = [line.get('alone', line['ratio'][1]) for line in group if line['plans'] != 'same']
        found.append('%s, %s, %s: %d, geometric mean %.2f, least %.2f; %d with another plan: %.2f, of the sort alone %.2f'
                     % ('queries' if answers else 'reports', mode, memory, len(group), results.mean(ratios), min(ratios),
                        len(differ), results.mean(differ), results.mean([one for one in sort if one])))
    return '\n'.join(found)


def measured(args, pairs, make_cells, run, root):
    """Measures all cells; gives their lines."""
    lines, started, todo = [], time.monotonic(), []

    def done(cell, result):
        line = results.query_line(run, len(lines) + 1, len(todo), cell.facts(args), result)
        if cell.need and result.get('plans') != 'same':
            line['need'] = cell.need
        if args.output:
            results.append(args.output, line)
        lines.append(line)
    try:
        with pairs:
            run.update(results.place(pairs.server(), root, False))
            todo = make_cells(pairs.rows)
            if args.differing:
                same = [cell for cell in todo if pairs.same(cell)]
                print('%d of %d have the same plan on both sides: %s'
                      % (len(same), len(todo), ', '.join(cell.name for cell in same)), flush=True)
                todo = [cell for cell in todo if cell not in same]
            for number, cell in enumerate(todo, 1):
                if args.max_seconds and time.monotonic() - started > args.max_seconds:
                    break
                result = pairs.measure(cell)
                done(cell, result)
                print('[%d/%d] %s, %s, %s: %s' % (number, len(todo), cell.name, cell.mode, cell.work_mem, 'ERROR: %s\n%s' % (
                    result['error'], result.get('server_log', '')[-1000:]) if 'error' in result else '%s %.2f (%d pairs) %s'
                    % (result['plans'], result['ratio'][1], result['pairs'], others(lines[-1]))), flush=True)
    finally:
        for cell in todo[len(lines):]:
            done(cell, {'error': results.NOT_REACHED})
    return lines


def main(args, pairs, make_cells, case, root):
    """Runs, prints; gives the exit status."""
    import datetime
    from locales import at_hand
    date, name = datetime.date.today().isoformat(), args.name or case
    run = {'date': date, 'command': sys.argv[1:],
           'run': results.free_name(args.output, date, name) if args.output else name}
    with at_hand() as lacking:
        if lacking:
            raise SystemExit('bench/%s: no en_US.utf8: %s' % (case, lacking))
        lines = measured(args, pairs, make_cells, run, root)
    reached = [line for line in lines if line.get('error') != results.NOT_REACHED]
    print('\n' + tables.aligned(HEADINGS, [row(line) for line in results.losses_first(reached)], LEFT))
    print('\n' + summary(reached))
    if len(reached) < len(lines):
        print('NOT REACHED: %d queries' % (len(lines) - len(reached)))
    return 1 if any(map(results.failed, reached)) else 3 if any(map(results.missed, reached)) else 0
