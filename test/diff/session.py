"""One worker of the differential test: a private cluster, the tables of a
seed, and each query run by PostgreSQL's own sort and by WiscSort.
"""

import io
import os
import random
import re
import signal
import sys
import time
from collections import Counter

import psycopg2
import psycopg2.extensions
from psycopg2.extensions import TRANSACTION_STATUS_IDLE

import gen
import queries

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, os.pardir, 'tools'))
from cluster import Cluster, ClusterError  # noqa: E402
from locales import RULES, collation  # noqa: E402

AS_TEXT = psycopg2.extensions.new_type(tuple(psycopg2.extensions.string_types), 'AS_TEXT',
                                       psycopg2.extensions.UNICODE)
DATABASES = [('plain', "LOCALE 'C'"), ('utf8', "LOCALE 'C.UTF-8'"),
             ('icu', "LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'en'"), ('libc', "LOCALE 'en_US.utf8'")]
# in each, if the server has it; the locales are made by run
ALSO = ['CREATE EXTENSION citext'] + [collation(name) for name in RULES]
# for tables of many rows: some runs, buffers and windows of some size, the last piece kept in memory
BETWEEN = ['128kB', '200kB', '400kB', '1MB', '2MB']
SORT_NODE = re.compile(r'(^|->)\s*(Incremental )?Sort\b', re.M)
STATEMENT_TIMEOUT = '90s'
ROWS_DIFFER = 'the rows differ'


class Result:
    """What a seed gave: failures are texts; failed, the queries among them, as
    (tables, query, Failure); counts go into the summary."""

    def __init__(self, seed):
        self.seed, self.failures, self.failed, self.counts = seed, [], [], Counter()


class Failure:
    """What is wrong with a query.  what: `differs`, an SQLSTATE, `lost`, `log`
    or `files`; memory and how: the settings of WiscSort at the time."""

    def __init__(self, what, text, memory=None, how=None):
        self.what, self.text, self.memory, self.how = what, text, memory, how


class Lost(Exception):
    """The server closed the connection."""


class Session:
    """options: the command line of test/diff/run."""

    def __init__(self, options):
        self.options = options
        settings = {'max_parallel_workers': 4, 'shared_buffers': '64MB',
                    'statement_timeout': STATEMENT_TIMEOUT, 'log_min_messages': 'warning',
                    'log_min_error_statement': 'panic'}
        if not options.core_only:
            settings['session_preload_libraries'] = 'wiscsort'
        settings.update(item.split('=', 1) for item in options.set)
        self.cluster = Cluster(options.pg_config, settings)
        self.use_tablespaces(['stripe%d' % i for i in range(options.tablespaces)])
        self.ready, self.logged = {}, 0
        self.kernels = options.kernels
        if not options.core_only:
            try:
                self.kernels = self.known_kernels()
            except BaseException:
                self.close()
                raise

    def use_tablespaces(self, names):
        """Temporary files are striped over these."""
        for name in names:
            self.cluster.tablespace(name)
        if names:
            self.cluster.restart({'temp_tablespaces': ','.join(names), 'wiscsort.debug_extent': '64kB'})

    def close(self):
        self.cluster.close()

    def known_kernels(self):
        with self.cluster.connect().cursor() as cur:
            cur.execute("SELECT enumvals FROM pg_settings WHERE name = 'wiscsort.sort_kernel'")
            known = cur.fetchone()[0]
            cur.connection.close()
        return [k for k in self.options.kernels if k in known]

    # --- connections ------------------------------------------------------------

    def database(self, seed):
        """Name of the seed's database, created when it is the first; a server
        that lacks the locale has the first one only."""
        name, how = DATABASES[seed % len(DATABASES)]
        if name not in self.ready:
            try:
                self.cluster.psql('CREATE DATABASE %s TEMPLATE template0 %s' % (name, how))
            except ClusterError:
                if seed % len(DATABASES) == 0:
                    raise
                return self.database(0)
            with self.cluster.connect(name).cursor() as cur:
                # a server of 16 and later without ICU still lists the collation "unicode"
                cur.execute("SELECT count(*) FROM pg_collation WHERE collname = 'und-x-icu'")
                icu = cur.fetchone()[0] > 0
                for sql in gen.setup(icu):
                    cur.execute(sql)
                for sql in ALSO:
                    self.cluster.psql(sql, database=name, check=False)
                cur.execute("SELECT collname FROM pg_collation UNION SELECT extname FROM pg_extension")
                self.ready[name] = {row[0] for row in cur}
                cur.connection.close()
        return name

    def connect(self, name):
        self.conn = self.cluster.connect(name)
        psycopg2.extensions.register_type(AS_TEXT, self.conn)
        self.parallel = ('debug_parallel_query' if self.conn.server_version >= 160000
                         else 'force_parallel_mode')
        self.cur = self.conn.cursor()

    def execute(self, sql):
        """The statement's rows, or its command tag."""
        try:
            self.cur.execute(sql)
            if self.cur.description:
                return self.cur.fetchall()
            return self.cur.statusmessage
        except psycopg2.Error:
            if self.conn.closed:
                raise Lost() from None
            raise

    def setting(self, name):
        """The server's name of a setting."""
        return self.parallel if name == 'force_parallel' else name

    def set(self, settings):
        for name, value in settings.items():
            self.execute("SET %s = '%s'" % (self.setting(name), value))

    def reset(self, settings):
        for name in settings:
            self.execute('RESET ' + self.setting(name))

    # --- one seed -----------------------------------------------------------------

    def run_seed(self, seed):
        result = Result(seed)
        name = self.database(seed)
        tables = gen.Tables(seed, self.ready[name])
        result.counts['rows'] = tables.n
        self.connect(name)
        try:
            self.create(tables)
            for number in self.numbers(seed):
                query = queries.make(seed, number, tables)
                result.counts['queries'] += 1
                failure = self.run_query(query, seed, result.counts)
                if failure:
                    result.failed.append((tables, query, failure))
                    result.failures.append(self.describe(query, seed, failure))
                    if failure.what == 'lost':
                        break
            else:
                for sql in tables.drop():
                    self.execute(sql)
        except psycopg2.Error as error:
            result.failures.append('seed %d: the tables failed: %s' % (seed, error))
        except Lost:
            self.recover()
            result.failures.append('seed %d: the server closed the connection:\n%s'
                                   % (seed, self.new_log()))
        finally:
            self.conn.close()
        found = self.leftovers()
        if found:
            result.failures.append('seed %d: %s' % (seed, found.text))
        return result

    def numbers(self, seed):
        """The numbers of the queries to run."""
        if self.options.query is not None:
            return [self.options.query]
        return range(1, self.options.queries + 1)

    def create(self, tables):
        for sql in tables.staging():
            self.execute(sql)
        self.cur.copy_expert('COPY s FROM STDIN', io.StringIO(tables.copy_data()))
        for sql in tables.statements():
            self.execute(sql)

    def leftovers(self):
        """A failure for files or complaints that should not be there."""
        files = self.left_behind()
        if files:
            return Failure('files', 'temporary files left behind: %s' % files)
        log = self.new_log()
        if 'WARNING' in log or 'PANIC' in log or 'TRAP' in log:
            return Failure('log', 'in the server log:\n' + log)
        return None

    def left_behind(self):
        """Temporary files that exist after the query has ended."""
        for _ in range(50):
            files = self.cluster.temp_files()
            if not files:
                break
            time.sleep(0.1)
        return files

    def new_log(self):
        log = self.cluster.log()
        new, self.logged = log[self.logged:], len(log)
        return new[-6000:]

    def recover(self):
        """Waits for the server after a crash, or makes a new cluster.

        The postmaster may learn of the crash a moment after the client does, and
        then ends the sessions that began meanwhile: so one must last a while."""
        for _ in range(100):
            try:
                conn = self.cluster.connect()
                time.sleep(0.3)
                conn.cursor().execute('SELECT 1')
                conn.close()
                return
            except psycopg2.Error:
                time.sleep(0.1)
        self.cluster.close()
        self.__init__(self.options)

    # --- one query ----------------------------------------------------------------

    def run_query(self, query, seed, counts):
        """None, or a Failure."""
        self.memory, self.how = '64MB', None
        try:
            self.set(query.settings)
            failure = self.compare_all(query, seed, counts)
            self.reset(query.settings)
        except psycopg2.Error as error:
            failure = Failure(error.pgcode, 'ERROR %s %s' % (error.pgcode, error))
            self.clean_up(seed)
        except Lost:
            self.recover()
            failure = Failure('lost', 'the server closed the connection\n' + self.new_log())
        if failure:
            failure.memory, failure.how = self.memory, self.how
        return failure

    def clean_up(self, seed):
        """After an error: as the query found the session."""
        if self.conn.info.transaction_status != TRANSACTION_STATUS_IDLE:
            self.execute('ROLLBACK')
        for sql in ('CLOSE ALL', 'DEALLOCATE ALL', 'RESET ALL',
                    'SET search_path = d%d, public' % seed):
            self.execute(sql)

    def compare_all(self, query, seed, counts):
        options = self.options
        rng = random.Random('settings %d %d' % (seed, query.number))
        expected = self.answers(query, '64MB', None)
        left = self.leftovers()
        if left:
            return left
        sorts = SORT_NODE.search(self.plan(query)) is not None
        between = [rng.choice(BETWEEN)] if counts['rows'] > 3000 else []
        for memory in options.work_mem + between:
            how = {'wiscsort.sort_kernel': rng.choice(self.kernels),
                   'wiscsort.record_store': rng.choice(['auto', 'heap', 'heap', 'spool', 'inline', 'inline']),
                   'wiscsort.cache_size': rng.choice(['-1', '-1', '0', '64kB', '1MB']),
                   'wiscsort.debug_few': rng.choice(['-1', '-1', '-1', '7', '400', '1000000']),
                   'wiscsort.debug_again': rng.choice(['-1', '-1', '0', '1', '50', '3000']),
                   'wiscsort.merge_read': rng.choice(['auto', 'auto', 'read_order', 'double', 'block']),
                   'wiscsort.assist_blocks': rng.choice(['-1', '-1', '0', '1', '7', '64']),
                   'wiscsort.block_size': rng.choice(['-1', '-1', '4kB', '12kB', '1MB']),
                   'wiscsort.direct_read': rng.choice(['auto', 'on', 'on', 'off']),
                   'wiscsort.debug_tie_keys': rng.choice(['auto', 'table', 'table', 'spool'])}
            for work in ('read', 'sort', 'write'):
                how['wiscsort.%s_threads' % work] = rng.choice(['-1', '0', '1', '1'])
            how['wiscsort.io_method'] = rng.choice(['auto', 'sync', 'libaio', 'io_uring', 'io_uring'])
            if memory == options.work_mem[0] and sorts:
                self.configure(memory, how, query.forced)
                self.count(query, counts, self.plan(query))
            problem = self.compare(query, expected, self.answers(query, memory, how))
            if problem:
                return Failure('differs', problem)
            if counts['rows'] > 3000:
                self.count_passes(query, counts)
            left = self.leftovers()
            if left:
                return left
        self.configure('64MB', None)
        return None

    def answers(self, query, memory, how):
        """What each of the query's statements gives."""
        self.configure(memory, how, query.forced)
        return [self.execute(step) for step in query.steps]

    def compare(self, query, expected, got):
        """None, or the first difference in words."""
        for number, (want, have) in enumerate(zip(expected, got)):
            problem = difference(query, want, have) or self.refused(have)
            if problem == ROWS_DIFFER and query.superset:
                memory, how = self.memory, self.how
                self.configure('64MB', None)
                problem = not_within(have, self.execute(query.superset))
                self.configure(memory, how, query.forced)
            if problem:
                return 'statement %d: %s\n%s' % (number + 1, problem,
                                                 first_difference(query, want, have))
        return None

    def refused(self, rows):
        """For the test of reduce.py: some right answers of WiscSort count as
        wrong, or are followed by a crash."""
        what, _, pattern = (self.options.refuse or '').partition(':')
        if not pattern or self.how is None or isinstance(rows, str):
            return None
        if not re.search(pattern, '\n'.join('|'.join(map(str, row)) for row in rows)):
            return None
        if what == 'crash':
            os.kill(self.conn.info.backend_pid, signal.SIGKILL)
            self.execute('SELECT pg_sleep(10)')
        return 'refused'

    def configure(self, memory, how, forced=True):
        """how: further settings; None: PostgreSQL's own sort."""
        self.memory, self.how = memory, how
        self.execute("SET work_mem = '%s'" % memory)
        if self.options.core_only:
            return
        if how is None:
            self.execute('SET wiscsort.enable = off')
        else:
            self.set(dict(how, **{'wiscsort.enable': 'on', 'wiscsort.threshold': '0',
                                  'wiscsort.debug_force': 'on' if forced else 'off'}))

    def plan(self, query):
        return '\n'.join(row[0] for row in self.execute('EXPLAIN (COSTS OFF) ' + query.explain))

    def count(self, query, counts, plan):
        used = 'WiscSort' in plan
        counts['ordered'] += 1
        counts['used'] += used
        counts['ordered ' + query.kind] += 1
        counts['used ' + query.kind] += used
        counts['parallel'] += used and 'Gather' in plan

    def count_passes(self, query, counts):
        if self.options.core_only or query.kind not in ('plain', 'digest', 'limited', 'window'):
            return
        plan = '\n'.join(row[0] for row in self.execute(
            'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' + query.explain))
        counts['one-pass'] += plan.count('one-pass')
        counts['merge-pass'] += plan.count('merge-pass')

    def describe(self, query, seed, failure):
        options = self.options
        command = 'test/diff/run --seeds %d-%d --query %d --work-mem %s' % (
            seed, seed, query.number, ','.join(options.work_mem))
        if options.pg_config != 'pg_config':
            command += ' --pg-config ' + options.pg_config
        if options.core_only:
            command += ' --core-only'
        where = 'core' if failure.how is None else 'work_mem %s, %s' % (
            failure.memory, ', '.join('%s %s' % s for s in failure.how.items()))
        lines = ['seed %d, query %d (%s): %s: %s' % (seed, query.number, query.kind, where, failure.text)]
        lines += ['  settings: %s%s' % (query.settings, '' if query.forced else ', not forced')]
        lines += ['  ' + step for step in query.steps]
        lines += ['  reproduce: ' + command]
        return '\n'.join(lines)


# --- comparison ---------------------------------------------------------------------

def masked(query, rows):
    if not query.ignore:
        return rows
    keep = [i for i in range(len(rows[0])) if i not in query.ignore] if rows else []
    return [tuple(row[i] for i in keep) for row in rows]


def difference(query, want, have):
    """None when `have` is a right answer where PostgreSQL's own is `want`."""
    if isinstance(want, str) or isinstance(have, str):
        return None if want == have else 'command tags differ: %s, %s' % (want, have)
    if len(want) != len(have):
        return '%d rows instead of %d' % (len(have), len(want))
    n = query.ranks
    if n and [row[:n] for row in want] != [row[:n] for row in have]:
        return 'the sequence of the sort keys differs'
    want, have = masked(query, want), masked(query, have)
    if query.total:
        return None if want == have else 'the sequence of the rows differs'
    return None if Counter(want) == Counter(have) else ROWS_DIFFER


def not_within(rows, candidates):
    extra = Counter(rows) - Counter(candidates)
    return 'a row that is none of the candidates: %s' % (list(extra)[:1],) if extra else None


def first_difference(query, want, have):
    """The first place where the two differ, in words."""
    if isinstance(want, str) or isinstance(have, str):
        return ''
    if not query.total and not query.ranks:
        want, have = sorted(masked(query, want), key=repr), sorted(masked(query, have), key=repr)
    for number in range(max(len(want), len(have))):
        one = want[number] if number < len(want) else None
        two = have[number] if number < len(have) else None
        if one != two:
            return '  row %d\n    core     %.300s\n    wiscsort %.300s' % (number, one, two)
    return ''
