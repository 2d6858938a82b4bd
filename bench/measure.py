"""Measures one cell at a time on a private cluster, by bench/README.md.

The two sides are two sessions of the same server with the same settings, but
for wiscsort.enable.  For each cell: make the data, bring the cache into its
state, look at both plans, check both answers, then time pairs in the order
A B, B A, A B, ...; the first pair is a warm-up and is not counted.  Memory,
temporary bytes and the nodes' own figures come from one further EXPLAIN ANALYZE
run a side in a fresh session.

With core_only both sides are core and no library is loaded: the ratios then
show the noise of the machine.

What goes wrong in a cell becomes that cell's 'error'; the next cell starts on
a server that is known to work.
"""

import glob
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from cells import HERE
from cluster import Cluster, ClusterError, RssSampler, end_if_told
from memgroup import MemoryGroup, MemoryGroupError
from results import quartiles

import psycopg2

SIDES = ('core', 'wiscsort')
PROVIDER = 'WiscSort'
PREWARMED = 'pg_prewarm'
CACHED_BUFFERS = '128MB'
TMPFS = '/dev/shm'              # stands in for persistent memory
FORCE = 'PMEM_IS_PMEM_FORCE'    # has libpmem take it for that
DISK_READ_NOTE = 1 << 20        # bytes a run may read from disk without a note
READ_CHUNK = 1 << 22
SERVER = {
    'wal_level': 'minimal', 'max_wal_senders': '0', 'shared_buffers': CACHED_BUFFERS,
    'maintenance_work_mem': '256MB', 'max_parallel_workers_per_gather': '0',
    'max_parallel_maintenance_workers': '0', 'statement_timeout': '1800s',
}


class Refused(Exception):
    """A cell cannot be measured as described."""


def plan_nodes(plan):
    """Every node of an EXPLAIN (FORMAT JSON) plan, outermost first."""
    yield plan
    for child in plan.get('Plans', []):
        yield from plan_nodes(child)


def sort_nodes(plan):
    """The nodes that sort, core's and wiscsort's."""
    return [node for node in plan_nodes(plan)
            if node['Node Type'] in ('Sort', 'Incremental Sort') or is_wiscsort(node)]


def is_wiscsort(node):
    return node.get('Custom Plan Provider') == PROVIDER


class Bench:
    """Owns the cluster and the data set that is in it."""

    def __init__(self, pg_config='pg_config', core_only=False, progress=print):
        self.pg_config, self.core_only, self.progress = pg_config, core_only, progress
        self.cluster = None
        self.dataset, self.made = None, []
        self.state = None           # (dataset, cache, memory) that the server was started for
        self.group = None           # the memory cgroup that it is in
        self.place = None           # the directory of the tablespace on tmpfs

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        if self.cluster is not None:
            self.cluster.close()
        if self.group is not None:
            self.group.close()
        if self.place is not None:
            shutil.rmtree(self.place, ignore_errors=True)
        self.cluster = self.dataset = self.state = self.group = self.place = None

    def server(self):
        """The running cluster; creates one where there is none."""
        if self.cluster is None:
            settings = dict(SERVER)
            if not self.core_only:
                settings['session_preload_libraries'] = 'wiscsort'
            self.cluster = Cluster(self.pg_config, settings)
            self._extension('wiscsort')
        return self.cluster

    def _extension(self, name):
        """Creates an extension where the installation has it."""
        with self.cluster.connect() as conn, conn.cursor() as cur:
            cur.execute('SELECT count(*) FROM pg_available_extensions WHERE name = %s', (name,))
            available = cur.fetchone()[0] > 0
            if available and not (self.core_only and name == 'wiscsort'):
                cur.execute('CREATE EXTENSION IF NOT EXISTS ' + name)
        conn.close()
        return available

    def session(self, cell, side):
        """A session with the cell's settings for that side."""
        settings = {'work_mem': cell.work_mem, **cell.settings}
        if side == 'core':
            settings.update(cell.core_settings)
        if not self.core_only:
            settings['wiscsort.enable'] = 'on' if side == 'wiscsort' else 'off'
        return self.server().connect(**settings)

    # --- data and cache -------------------------------------------------

    def load(self, cell):
        """Makes the cell's tables, unless they are there."""
        if self.dataset == cell.dataset:
            return
        self.dataset = self.state = None
        started = time.monotonic()
        server = self.server()
        if self.group is not None or server.settings['shared_buffers'] != CACHED_BUFFERS:
            self.restart(CACHED_BUFFERS, None)
        conn = server.connect()
        cur = conn.cursor()
        cur.execute('DROP TABLE IF EXISTS ' + ', '.join({'t', 'd', *self.made}))
        self.made = cell.tables
        if cell.cache == 'pmem':
            self.make_tablespace(cur)
        cur.execute('SET default_tablespace = %s', ('pmem' if cell.cache == 'pmem' else '',))
        # In the transaction that creates them, the tables need no WAL.
        cur.execute('BEGIN')
        for statement in cell.create_sql():
            cur.execute(statement)
        if cell.gensort_args():
            self._generate(cur, cell.gensort_args())
        cur.execute('COMMIT')
        for table in cell.tables:
            cur.execute('VACUUM (FREEZE, ANALYZE) ' + table)
        cur.execute('CHECKPOINT')
        conn.close()
        self.dataset = cell.dataset
        self.progress('  data made in %.0f s' % (time.monotonic() - started))

    def make_tablespace(self, cur):
        """The tablespace pmem, on tmpfs, where random reads cost what others do."""
        if self.place is not None:
            return
        self.place = tempfile.mkdtemp(prefix='wiscsort-', dir=TMPFS)
        self.server().give(self.place)
        cur.execute('CREATE TABLESPACE pmem LOCATION %s WITH (random_page_cost = 1)', (self.place,))

    @staticmethod
    def _generate(cur, args):
        program = os.path.join(HERE, 'gensort')
        if not os.path.exists(program):
            raise Refused('bench/gensort is not built: make bench/gensort')
        child = subprocess.Popen([program] + args, stdout=subprocess.PIPE)
        try:
            cur.copy_expert('COPY t FROM STDIN (FORMAT binary)', child.stdout)
        finally:
            child.stdout.close()
            status = child.wait()
        if status != 0:
            raise Refused('gensort exited with %d' % status)

    def prepare_cache(self, cell):
        """Restarts the server in the state the cell asks for."""
        if self.state == (cell.dataset, cell.cache, cell.memory):
            return
        server = self.server()
        size = sum(os.path.getsize(path) for path in self.files(cell))
        buffers = CACHED_BUFFERS
        if cell.cache == 'shared':
            buffers = '%dMB' % (size * 1.1 / 2**20 + 128)
        if cell.cache == 'part':
            buffers = cell.buffers
        self.restart(buffers, cell.memory, cell.cache == 'pmem')
        if cell.cache == 'limited':
            self.drop(self.files(cell))     # what others have read does not count against the group
        if cell.cache in ('shared', 'part'):
            if not self._extension(PREWARMED):
                raise Refused('cache=shared needs the extension ' + PREWARMED)
            for table in cell.tables:
                server.psql("SELECT pg_prewarm('%s')" % table)
        self.state = (cell.dataset, cell.cache, cell.memory)

    def restart(self, buffers, memory, forced=False):
        """Restarts the server, in a memory cgroup of so many MB if memory is not None.  With `forced`, libpmem
        takes any mapping there for persistent memory."""
        server = self.server()
        os.environ.pop(FORCE, None)
        if forced:
            os.environ[FORCE] = '1'
        server.restart({'shared_buffers': buffers})     # outside of any group again
        os.environ.pop(FORCE, None)
        if self.group is not None:
            self.group.close()
            self.group = None
        if memory is not None:
            self.group = MemoryGroup(memory)
            self.group.add(server.pid)

    def files(self, cell):
        """The files of the cell's tables."""
        found = []
        for table in cell.tables:
            path = self.server().psql("SELECT pg_relation_filepath('%s')" % table).stdout.strip()
            if not path:        # of partitions
                continue
            base = os.path.join(self.server().data, path)
            found += [base] + sorted(glob.glob(base + '.*'))
        return found

    @staticmethod
    def touch(cell, files):
        """Reads the files into the page cache, or, for cold, drops them.  In limited memory the
        server has read what it has."""
        if cell.cache == 'cold':
            Bench.drop(files)
        elif cell.cache != 'limited':
            for path in files:
                with open(path, 'rb', buffering=0) as f:
                    while f.read(READ_CHUNK):
                        pass

    @staticmethod
    def drop(files):
        """Drops the files from the page cache."""
        for path in files:
            with open(path, 'rb', buffering=0) as f:
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    # --- one cell -------------------------------------------------------

    def measure(self, cell, pairs):
        """The result of one cell: a dictionary, with 'error' if it failed."""
        result = cell.describe()
        sessions = {}
        try:
            self.load(cell)
            self.prepare_cache(cell)
            result['shared_buffers'] = self.server().settings['shared_buffers']
            files = self.files(cell)
            sessions = {side: self.session(cell, side) for side in SIDES}
            self.check_plans(cell, sessions, result)
            self.check_answers(cell, sessions, result)
            if pairs > 0:
                self.time_pairs(cell, sessions, files, pairs, result)
                self.observe(cell, files, result)
        except (psycopg2.Error, ClusterError, MemoryGroupError, Refused, OSError) as error:
            end_if_told()      # a signal to this process stops the server first: no error of the cell
            result['error'] = ' '.join(str(error).split())
        for conn in sessions.values():
            conn.close()
        if self.cluster is not None and (self.cluster.crashed() or 'error' in result):
            if self.cluster.crashed():
                result['error'] = ('%s (the server crashed)' % result.get('error', '')).strip()
            result['server_log'] = self.cluster.log()[-3000:]
            self.close()
        return result

    def check_plans(self, cell, sessions, result):
        """Refuses a core side that uses wiscsort; records what the other does."""
        for side in SIDES:
            uses = self.uses(sessions[side], cell.explainable())
            if side == 'core' and uses:
                raise Refused("the core side's plan has a WiscSort node")
            if side == 'wiscsort':
                result['used_wiscsort'] = uses

    @staticmethod
    def uses(conn, query):
        """Whether the query's plan has a WiscSort node."""
        with conn.cursor() as cur:
            cur.execute('EXPLAIN (FORMAT JSON) ' + query)
            return any(map(is_wiscsort, plan_nodes(cur.fetchone()[0][0]['Plan'])))

    def check_answers(self, cell, sessions, result):
        """Both sides must give the rows of the tables, in order."""
        with sessions['core'].cursor() as cur:
            cur.execute(cell.reference_query())
            expected = cur.fetchone()
        cell.found_rows = expected[0]
        answer = {'rows': expected[0], 'hash': str(expected[1])}
        correct = expected[0] == cell.answer_rows
        for side in SIDES:
            with sessions[side].cursor() as cur:
                cur.execute(cell.check_query())
                rows, digest, disorders = cur.fetchone()
                cur.execute('ROLLBACK')
            good = (rows, digest) == expected and disorders == 0
            answer[side] = {'rows': rows, 'hash': str(digest), 'disorders': disorders}
            correct = correct and good
        answer['used_wiscsort'] = self.uses(sessions['wiscsort'], cell.checked_query())
        answer['correct'] = correct
        result['answer'] = answer
        if result['used_wiscsort'] and not answer['used_wiscsort']:
            raise Refused('the checked query has another plan, without WiscSort')

    def time_pairs(self, cell, sessions, files, pairs, result):
        """One warm-up pair and the counted ones, interleaved A B B A."""
        timed = []
        for number in range(pairs + 1):
            self.touch(cell, files)
            pair = {'counted': number > 0, 'order': 'AB' if number % 2 == 0 else 'BA',
                    'load_average': os.getloadavg()[0]}
            for side in SIDES if number % 2 == 0 else SIDES[::-1]:
                if cell.cache == 'cold':
                    self.touch(cell, files)
                pair[side] = self._time(sessions[side], cell, True)
            if cell.cache == 'cold':
                self.touch(cell, files)
            pair['ratio'] = pair['core']['seconds'] / pair['wiscsort']['seconds']
            pair['unsorted'] = pair['tax_ratio'] = None
            if cell.order:
                pair['unsorted'] = self._time(sessions['core'], cell, False)
                taxes = [pair[side]['seconds'] - pair['unsorted']['seconds'] for side in SIDES]
                pair['tax_ratio'] = taxes[0] / taxes[1] if min(taxes) > 0 else None
            timed.append(pair)
            self.progress('  %s %s: core %.2f s, %s %.2f s, ratio %.2f'
                          % ('pair %d' % number if number else 'warm-up', pair['order'],
                             pair['core']['seconds'],
                             'core' if self.core_only else 'wiscsort',
                             pair['wiscsort']['seconds'],
                             pair['ratio']))
        counted = [pair for pair in timed if pair['counted']]
        result['pairs'] = timed
        result['ratio'] = quartiles([pair['ratio'] for pair in counted])
        taxes = [pair['tax_ratio'] for pair in counted]
        result['tax_ratio'] = None if None in taxes else quartiles(taxes)
        for side in SIDES + ('unsorted',):
            result[side + '_seconds'] = statistics.median(p[side]['seconds'] for p in counted) \
                if counted[0][side] else None
        result['disk_reads'] = cell.cache not in ('cold', 'limited') and any(
            (pair[side]['disk_read_bytes'] or 0) > DISK_READ_NOTE
            for pair in counted for side in SIDES)

    def _time(self, conn, cell, ordered):
        """Seconds of one run, and what its process read from the disk."""
        before = self._disk_reads(conn)
        with conn.cursor() as cur:
            started = time.perf_counter()
            cur.execute(cell.query(ordered))
            counts = (cur.rowcount,) if cell.consume == 'copy' else cur.fetchone()
            seconds = time.perf_counter() - started
        if set(counts) != {cell.answer_rows}:
            raise Refused('a run gave %s rows instead of %d' % (counts, cell.answer_rows))
        after = self._disk_reads(conn)
        return {'seconds': round(seconds, 6),
                'disk_read_bytes': None if after is None else after - before}

    @staticmethod
    def _disk_reads(conn):
        try:
            with open('/proc/%d/io' % conn.info.backend_pid) as f:
                return int(dict(line.split(': ') for line in f)['read_bytes'])
        except OSError:
            return None

    # --- memory, temporary bytes, the nodes' figures --------------------

    def observe(self, cell, files, result):
        """One EXPLAIN ANALYZE a side in a fresh session; not timed."""
        result['observed'] = {}
        for side in SIDES:
            self.touch(cell, files)
            conn = self.session(cell, side)
            with conn.cursor() as cur:
                temp_before = self._temp_bytes(cur)
                with RssSampler(conn.info.backend_pid) as rss:
                    cur.execute('EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) '
                                + cell.explainable())
                    plan = cur.fetchone()[0][0]['Plan']
                temp = self._temp_bytes(cur) - temp_before
            conn.close()
            result['observed'][side] = {
                'rss_anon_peak_kb': rss.anon, 'rss_anon_start_kb': rss.start,
                'rss_file_peak_kb': rss.file, 'temp_bytes': temp,
                'explain_temp_bytes': plan.get('Temp Written Blocks', 0) * 8192,
                'shared_read_blocks': plan.get('Shared Read Blocks'),
                'sorts': [{k: v for k, v in node.items() if k != 'Plans'}
                          for node in sort_nodes(plan)],
            }

    @staticmethod
    def _temp_bytes(cur):
        """This database's temporary bytes, after this session has reported."""
        cur.execute('SELECT pg_stat_force_next_flush()')
        cur.execute('SELECT temp_bytes FROM pg_stat_database'
                    ' WHERE datname = current_database()')
        return cur.fetchone()[0]
