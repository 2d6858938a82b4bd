"""Faults in a server's I/O: a cancel, a timeout, an error of the device, or a full disk at one call of a
query on its temporary files.

shim.c, loaded into the server, counts the calls and makes one of them fail.  After each fault the query
must have given the right rows, or one error that fits; and the backend must have what it had before:
descriptors, mappings, threads, memory, reads on their way, and no temporary file.
"""

import collections
import mmap
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

import psycopg2

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE] + [os.path.join(HERE, os.pardir, *to) for to in (('t',), (os.pardir, 'tools'))]
from cluster import Cluster  # noqa: E402
from common import has_method  # noqa: E402
import cells as queries  # noqa: E402

# As in shim.c.
KINDS = {'error': 1, 'full': 2, 'short': 3, 'end': 4, 'cancel': 5, 'timeout': 6, 'errors': 7,
         'always full': 8}
CREATE, OPEN, READ, WRITE, SIZE, ADVICE, MAP, SETUP, SUBMIT, RESULT, TRY, TABLE = (1 << n for n in range(12))
NAMES = {CREATE: 'create', OPEN: 'open', READ: 'read', WRITE: 'write', SIZE: 'set the size', ADVICE: 'advise',
         MAP: 'map', SETUP: 'io_setup', SUBMIT: 'io_submit', RESULT: 'io_getevents', TRY: 'read if cached',
         TABLE: 'map a table', 0: 'none'}
CONTROL = struct.Struct('9i')

# Errors that a kind may end with: SQLSTATE, a part of the message, and whether it names the file.
IO_ERROR = [('58030', 'Input/output error', True)]
FULL = [('53100', 'No space left on device', True)]
CANCELED = 'canceling statement due to '
# what PostgreSQL says of a file that it cannot create, and of a mapping, by its version
NO_FILE = [('XX000', 'could not create temporary file', True)]
NO_MAPPING = [(code, 'could not map temporary file', True) for code in ('53200', 'XX000')]
EXPECTED = {
    'error': IO_ERROR,
    'errors': IO_ERROR + NO_FILE + NO_MAPPING,
    'full': FULL,
    'always full': FULL + NO_FILE,
    'short': [],
    'end': FULL + [('XX001', 'of a sort is damaged', True)],
    'cancel': [('57014', CANCELED + 'user request', False)],
    'timeout': [('57014', CANCELED + 'statement timeout', False)],
}
# Calls whose failure is not to be noticed: what they are for is done otherwise.
SILENT = ADVICE | OPEN | SETUP | SUBMIT | TRY | TABLE

TIMEOUT_MS = 60
WAIT_MS = 80
MOST_CONTEXTS = 16              # of libaio, kept for other sorts (file/aio.c)
SLACK_KB = 1024
HANGS = 60                      # seconds


class FaultError(Exception):
    """Something about the test itself is wrong."""


def compiler():
    return shutil.which(os.environ.get('CC', 'cc')) or shutil.which('gcc')


class Shim:
    """The library, compiled, and the file that it shares with us."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix='wiscsort-faults-')
        os.chmod(self.dir, 0o755)
        self.library = os.path.join(self.dir, 'shim.so')
        self.path = os.path.join(self.dir, 'control')
        done = subprocess.run([compiler(), '-O2', '-Wall', '-shared', '-fPIC', '-o', self.library,
                               os.path.join(HERE, 'shim.c'), '-ldl'], text=True, stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise FaultError('shim.c does not compile:\n' + done.stderr)
        with open(self.path, 'wb') as f:
            f.write(bytes(CONTROL.size))
        os.chmod(self.path, 0o666)
        with open(self.path, 'r+b') as f:
            self.shared = mmap.mmap(f.fileno(), CONTROL.size)

    def arm(self, pid, kind, at, cold):
        """Has the at-th call of the backend fail; with 0 they are only counted."""
        on_their_way = self.seen()[3]
        self.shared[:] = CONTROL.pack(0, KINDS[kind], at, WAIT_MS, cold, 0, 0, 0, on_their_way)
        self.shared[:4] = struct.pack('i', pid)

    def disarm(self):
        """(calls, faults, what the first of these happened to, reads on their way)"""
        self.shared[:4] = struct.pack('i', 0)
        return self.seen()

    def seen(self):
        return CONTROL.unpack(self.shared[:])[5:]

    def close(self):
        self.shared.close()
        shutil.rmtree(self.dir, ignore_errors=True)


class FaultCluster(Cluster):
    """A private server that has the shim loaded."""

    def __init__(self, shim, *args, **more):
        self.shim = shim
        super().__init__(*args, **more)

    def _server_env(self):
        return dict(super()._server_env(), LD_PRELOAD=self.shim.library, WISCSORT_FAULTS=self.shim.path)


def state_of(pid, data):
    """What a backend has: descriptors (but those of tables), threads, mappings, kB of private memory."""
    links = []
    for fd in os.listdir('/proc/%d/fd' % pid):
        try:
            links.append(os.readlink('/proc/%d/fd/%s' % (pid, fd)))
        except FileNotFoundError:
            continue
    tables = re.compile(r'(%s/)?(base/\d+|global|pg_wal)/' % re.escape(data))
    state = {'descriptors': sorted(link for link in links if not tables.match(link)),
             'threads': len(os.listdir('/proc/%d/task' % pid))}
    anonymous = contexts = 0
    files = []
    with open('/proc/%d/maps' % pid) as f:
        for line in f:
            fields = line.split(None, 5)
            name = fields[5].strip() if len(fields) > 5 else ''
            if name.startswith('/[aio]'):
                contexts += 1
            elif 'pgsql_tmp' in name or '/base/' in name:
                files.append(name)
            elif not name or name.startswith('['):
                begin, end = fields[0].split('-')
                anonymous += int(end, 16) - int(begin, 16)
    state.update(anonymous=anonymous // 1024, files=sorted(files), contexts=contexts)
    return state


def differences(now, before):
    """What a backend has that it had not, as text."""
    found = []
    if now['descriptors'] != before['descriptors']:
        found.append('descriptors: %s, before: %s' % (now['descriptors'], before['descriptors']))
    if now['threads'] != 1:
        found.append('%d threads' % now['threads'])
    if now['files']:
        found.append('mapped: %s' % now['files'])
    if now['anonymous'] > before['anonymous'] + SLACK_KB:
        found.append('%d kB of memory, before: %d' % (now['anonymous'], before['anonymous']))
    if now['contexts'] > MOST_CONTEXTS:
        found.append('%d contexts of libaio' % now['contexts'])
    return found


class Tally:
    """What became of the faults of one cell."""

    def __init__(self):
        self.injected = self.missed = self.errors = self.right = self.failed = 0
        self.seconds = 0.0
        self.calls = collections.Counter()
        self.codes = collections.Counter()
        self.kinds = {kind: [0, 0, 0, 0] for kind in KINDS}     # injected, errors, right rows, failures


class Faults:
    """A server, one session in it, and the cells that were prepared."""

    def __init__(self, pg_config, report):
        self.report = report
        self.shim = Shim()
        try:
            self.cluster = FaultCluster(self.shim, pg_config, {'session_preload_libraries': 'wiscsort'})
        except BaseException:
            self.shim.close()
            raise
        self.faults = self.failures = 0
        self.log_at = 0
        self.conn = self.cur = None
        self.tallies, self.skipped, self.lacks = {}, {}, {}
        self.expected, self.calls, self.before = {}, {}, {}
        self.tables()
        self.connect()

    def close(self):
        self.cluster.close()
        self.shim.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def tables(self):
        with self.cluster.connect() as conn, conn.cursor() as cur:
            try:
                cur.execute("CREATE COLLATION faults_libc (provider = libc, locale = 'C.utf8')")
            except psycopg2.Error as e:
                self.lacks['libc'] = str(e)
            cur.execute("SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'")
            if cur.fetchone() is None:
                self.lacks['icu'] = 'the server is built without ICU'
            cur.execute(queries.TABLES % {'rows': queries.ROWS, 'modulus': 1000003})
            for name, rows in (('few', queries.FEW), ('many', queries.MANY)):
                cur.execute('CREATE TABLE %s AS SELECT x * %d + i AS i,'
                            ' ((i * 7919::int8 + x * 104729) %% 1000003)::int4 AS k,'
                            ' p || x AS p, w || x AS w, pad, n + x AS n FROM t, generate_series(0, %d) x;'
                            ' ANALYZE %s' % (name, queries.ROWS, rows // queries.ROWS - 1, name))
            cur.execute('CHECKPOINT')
        conn.close()

    def connect(self):
        self.conn = self.cluster.connect(**{'wiscsort.enable': 'on', 'wiscsort.debug_force': 'on',
                                            'wiscsort.threshold': '0'})
        self.cur = self.conn.cursor()
        self.cur.execute('SELECT pg_backend_pid()')
        self.pid = self.cur.fetchone()[0]
        self.set('default', {})

    def set(self, name, settings):
        self.settled = name
        for setting, value in settings.items():
            self.cur.execute('SELECT set_config(%s, %s, false)', (setting, value))

    def use(self, cell):
        """Makes the session that of a cell."""
        if self.settled == cell.query:
            return
        for setting in list(queries.NODES) + ['cache_size', 'debug_again', 'block_size']:
            self.cur.execute('RESET ' + ('' if setting in queries.NODES else 'wiscsort.') + setting)
        self.set(cell.query, cell.settings)

    # --- one execution --------------------------------------------------

    def execute(self, cell):
        """All rows, or the error."""
        found = []
        try:
            for statement in cell.statements:
                self.cur.execute(statement)
                if self.cur.description:
                    found.append(self.cur.fetchall())
        except psycopg2.Error as e:
            return None, e
        return found, None

    def new_log(self):
        """What the server has logged since the last call."""
        with open(self.cluster.logfile, 'rb') as f:
            f.seek(self.log_at)
            text = f.read()
        self.log_at += len(text)
        return text.decode(errors='replace')

    def fail(self, cell, what, detail='', kind=None):
        self.failures += 1
        if cell.query in self.tallies:
            self.tallies[cell.query].failed += 1
            if kind:
                self.tallies[cell.query].kinds[kind][3] += 1
        self.report('%s: %s' % (cell.query, what), str(detail))

    def prepare(self, cell):
        """Finds what a cell's rows are, what its session has, and how many calls each kind counts."""
        if cell.keys in self.lacks:
            self.skipped[cell.query] = self.lacks[cell.keys]
            return
        with self.cluster.connect(**{'wiscsort.enable': 'off'}) as conn, conn.cursor() as cur:
            own, self.cur = self.cur, cur
            wanted, problem = self.execute(cell)
            self.cur = own
        conn.close()
        if problem:
            raise FaultError('%s: %s' % (cell.query, problem))
        self.use(cell)
        if not self.explained(cell):
            self.skipped[cell.query] = 'files here cannot be read with libaio'
            return
        self.tallies[cell.query] = Tally()
        self.calls[cell.query] = {}
        self.expected[cell.query] = wanted
        for kind in KINDS:
            if kind in ('errors', 'always full'):
                self.calls[cell.query][kind] = self.calls[cell.query]['error' if kind == 'errors' else 'full']
            elif kind in ('cancel', 'timeout'):
                self.calls[cell.query][kind] = self.calls[cell.query]['error']
            else:
                self.shim.arm(self.pid, kind, 0, cell.cold)
                rows, problem = self.execute(cell)
                self.calls[cell.query][kind] = self.shim.disarm()[0]
                if rows != wanted:
                    self.fail(cell, 'not the right rows, without any fault',
                              problem or 'found %.300r\nwanted %.300r' % (rows, wanted))
                    break
        self.new_log()

    def explained(self, cell):
        """Checks that a cell is what its name says; false if there is no libaio to be had."""
        sql = [s for s in cell.statements if s.startswith(('SELECT', 'DECLARE'))][0]
        sql = re.sub(r'^DECLARE c SCROLL CURSOR FOR ', '', sql)
        self.cur.execute('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ' + sql)
        plan = '\n'.join(row[0] for row in self.cur.fetchall())
        missing = [shown for shown in cell.shown.split('|') if shown not in plan]
        passes = max([int(n) for n in re.findall(r'Merge Passes: (\d+)', plan)] + [0])
        if missing == ['I/O Method: libaio'] and not has_method(self.cluster, 'libaio'):
            return False
        if missing or (cell.phase == 'passes' and passes < 2):
            raise FaultError('%s: EXPLAIN does not show %s, and %d passes:\n%s'
                             % (cell.query, missing, passes, plan))
        return True

    # --- one fault ------------------------------------------------------

    def settle(self, before):
        """What the backend has now; a thread that has been joined may be in /proc for a moment."""
        for _ in range(40):
            now = state_of(self.pid, self.cluster.data)
            found = differences(now, before)
            if not found:
                break
            time.sleep(0.025)
        return found

    def inject(self, cell, kind, at):
        """One fault, and what became of it."""
        tally = self.tallies[cell.query]
        self.use(cell)
        if cell.query not in self.before:
            self.execute(cell)
            self.settle(state_of(self.pid, self.cluster.data))
            self.before[cell.query] = state_of(self.pid, self.cluster.data)
            if any('pgsql_tmp' in link for link in self.before[cell.query]['descriptors']):
                self.fail(cell, 'a descriptor is left without any fault',
                          self.before[cell.query]['descriptors'])
        if kind == 'timeout':
            self.cur.execute('SET statement_timeout = %d' % TIMEOUT_MS)
        watch = threading.Timer(HANGS, self.end_hanging)
        watch.start()
        self.shim.arm(self.pid, kind, at, cell.cold)
        found, problem = self.execute(cell)
        _, injected, what, on_their_way = self.shim.disarm()
        watch.cancel()
        name = '%s at call %d (%s)' % (kind, at, NAMES[what])
        if self.conn.closed:
            self.fail(cell, name + ': the backend is gone', '%s\n%s'
                      % (problem, self.new_log()[-3000:]), kind)
            self.again(cell)
            return
        self.recover(kind, cell, name)
        self.count(tally, kind, what, injected, problem)
        if problem is None:
            if found != self.expected[cell.query]:
                self.fail(cell, name + ': wrong rows', 'found %.300r\nwanted %.300r'
                          % (found, self.expected[cell.query]), kind)
        else:
            self.judge(cell, kind, what, injected, problem, name)
        self.left(cell, kind, name, on_their_way, problem is not None)
        if self.conn.info.transaction_status != psycopg2.extensions.TRANSACTION_STATUS_IDLE:
            self.cur.execute('ROLLBACK')
        if kind == 'timeout':
            self.cur.execute('RESET statement_timeout')

    def end_hanging(self):
        """Kills the backend, which then counts as one that is gone: a statement took too long."""
        self.report('a backend hangs, and is killed', '')
        os.kill(self.pid, signal.SIGKILL)

    def count(self, tally, kind, what, injected, problem):
        if not injected:
            tally.missed += 1
            return
        self.faults += 1
        tally.injected += 1
        tally.kinds[kind][0] += 1
        tally.kinds[kind][1 if problem else 2] += 1
        tally.calls[what] += 1
        if problem is None:
            tally.right += 1
        else:
            tally.errors += 1
            tally.codes[problem.pgcode] += 1

    def judge(self, cell, kind, what, injected, problem, name):
        """Checks that an error is the one that fits."""
        allowed = EXPECTED[kind]
        if what == MAP and kind == 'error':
            allowed = NO_MAPPING
        elif what & SILENT and kind == 'error':
            allowed = []
        fits = (injected or kind == 'timeout') and any(
            code == problem.pgcode and part in str(problem) and (not named or 'pgsql_tmp' in str(problem))
            for code, part, named in allowed)
        if not fits:
            self.fail(cell, name + ': an error that does not fit',
                      '%s %s' % (problem.pgcode, problem), kind)

    def recover(self, kind, cell, name):
        """Ends the transaction, or goes back to its savepoint."""
        try:
            if self.conn.info.transaction_status != psycopg2.extensions.TRANSACTION_STATUS_IDLE:
                self.cur.execute('ROLLBACK TO s' if cell.phase == 'savepoint' else 'ROLLBACK')
        except psycopg2.Error as e:
            self.fail(cell, name + ': a second error', e, kind)

    def left(self, cell, kind, name, on_their_way, error):
        """Checks what is there after a fault."""
        found = self.settle(self.before[cell.query])
        if on_their_way != 0:
            found.append('%d reads on their way' % on_their_way)
        found += ['file ' + path for path in self.cluster.temp_files()]
        log = self.new_log()
        errors = len(re.findall(r'^\S+ \S+ \S+ \[\d+\] (ERROR|FATAL|PANIC):', log, re.M))
        if errors != int(error) or re.search(r'(WARNING|FATAL|PANIC):|LOG:  could not|TRAP:', log):
            found.append('the log has\n' + log[-1500:])
        if found:
            self.fail(cell, name + ': something is left', '\n'.join(found), kind)
            self.before[cell.query] = state_of(self.pid, self.cluster.data)

    def unharmed(self, cell):
        """Checks the rows of a run without a fault."""
        self.use(cell)
        found, problem = self.execute(cell)
        if found != self.expected[cell.query]:
            self.fail(cell, 'wrong rows in a run without a fault', problem or found)
        self.new_log()

    def again(self, cell):
        """A new session, after a crash."""
        for _ in range(200):
            try:
                self.connect()
                break
            except psycopg2.OperationalError:
                time.sleep(0.1)
        self.log_at = os.path.getsize(self.cluster.logfile)
        self.before = {}

    def memory(self):
        """kB of the backend: private memory, and what its memory contexts have."""
        with open('/proc/%d/status' % self.pid) as f:
            resident = [int(line.split()[1]) for line in f if line.startswith('RssAnon')][0]
        self.cur.execute('SELECT sum(total_bytes) / 1024 FROM pg_backend_memory_contexts')
        return resident, int(self.cur.fetchone()[0])


def plan(calls, count):
    """Which calls fail: {cell: {kind: [numbers]}}, `count` or more in all, if there are so many.

    All calls of a kind where they are few, else as many as of any other, evenly spaced, from a call on that
    is another one for each."""
    most = max(n for kinds in calls.values() for n in kinds.values())
    limit = 1

    def chosen(kind, n):
        # a timeout takes long, and goes the way of a cancel
        return min(n, 1 + limit // 4 if kind == 'timeout' else limit)
    while limit < most and sum(chosen(*item) for kinds in calls.values() for item in kinds.items()) < count:
        limit += 1

    def places(cell, kind, n):
        m = chosen(kind, n)
        first = zlib.crc32((cell + kind).encode()) % max(n // m, 1) if m else 0
        return [1 + first + i * n // m for i in range(m)]
    return {cell: {kind: places(cell, kind, n) for kind, n in kinds.items()} for cell, kinds in calls.items()}


def run(pg_config, cells, count, report, progress=lambda text: None):
    """Prepares the cells and injects faults; gives the Faults, with their tallies, and memory twice."""
    with Faults(pg_config, report) as faults:
        for number, cell in enumerate(cells):
            progress('preparing %d of %d: %s' % (number + 1, len(cells), cell.query))
            faults.prepare(cell)
        cells = [cell for cell in cells if cell.query in faults.tallies]
        chosen = plan(faults.calls, count)
        early = None
        for number, cell in enumerate(cells):
            done = 0
            start = time.monotonic()
            for kind, calls in chosen[cell.query].items():
                for at in calls:
                    faults.inject(cell, kind, at)
                    done += 1
                    if done % 25 == 0:
                        faults.unharmed(cell)
                        progress('%d of %d: %s, %d faults'
                                 % (number + 1, len(cells), cell.query, faults.faults))
            faults.unharmed(cell)
            faults.tallies[cell.query].seconds = time.monotonic() - start
            if number == len(cells) // 5:
                early = faults.memory()
        late = faults.memory()
        for cell in cells:
            # descriptors that were counted and not given back would leave none for this
            if cell.io == 'libaio' and cell.phase == 'sort':
                faults.use(cell)
                faults.explained(cell) or faults.fail(cell, 'is not read with libaio any more')
                break
        for before, after, what in zip(early, late, ('private memory', 'memory contexts')):
            if after > before + 2 * SLACK_KB:
                faults.failures += 1
                report('the backend has grown: %s' % what, '%d kB, then %d kB' % (before, after))
        faults.grown = (early, late)
        if faults.cluster.crashed():
            faults.failures += 1
            report('the server has crashed', faults.cluster.log()[-3000:])
        return faults
