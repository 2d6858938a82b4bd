#!/usr/bin/python3
"""A private PostgreSQL cluster for tests and benchmarks.

Problem: a test needs a server of its own, with its own settings, that cannot
be confused with any other server and is gone afterwards, whatever happens.

The cluster lives in a fresh directory under $TMPDIR (or /tmp) and listens on
a Unix socket in that directory only.  It runs as an unprivileged user: the
caller, or, when the caller is root, `postgres` (else `nobody`).  It is stopped
and its directory removed when the `with` block or the process ends, also by an
exception, SIGINT, SIGTERM or SIGHUP; a small watcher process does the same when the
caller is killed outright.  Only processes started here are ever signalled.

As a library:

    with Cluster(settings={'work_mem': '64kB'}) as c:
        conn = c.connect(**{'wiscsort.enable': 'off'})

As a command, with PGHOST, PGPORT, PGUSER and PGDATABASE set for CMD:

    tools/cluster.py [--pg-config X] [--set name=value]... -- CMD ARGS
"""

import argparse
import atexit
import glob
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

PORT = '5432'
SUPERUSER = 'postgres'
SOCKET_LIMIT = 107
TEMPLATES = 'WISCSORT_TEMPLATES'        # environment: a folder in which what initdb made is kept, and copied
START_TIMEOUT = 60
CRASH = re.compile(
    r'PANIC:|TRAP:|was terminated by signal|was terminated by exception'
    r'|AddressSanitizer|:\d+:\d+: runtime error:|stack smashing detected')

DEFAULTS = {
    'listen_addresses': '',
    'port': PORT,
    'fsync': 'off',
    'full_page_writes': 'off',
    'autovacuum': 'off',
    'jit': 'off',
    'log_min_messages': 'warning',
    'log_line_prefix': '%m [%p] ',
    'logging_collector': 'off',
    'max_wal_size': '16GB',
    'checkpoint_timeout': '1h',
    'datestyle': 'ISO, MDY',
    'timezone': 'UTC',
}

# Waits for its standard input to close, which happens when the caller is gone
# or has let go.  What the caller has already stopped and removed is left alone.
WATCHER = r'''
trap "" INT TERM HUP
read -r line
[ -d "$1" ] || exit 0
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
if [ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd")" = "$1/data" ]; then
    kill -QUIT "$pid"
    n=0
    while [ "$(readlink "/proc/$pid/cwd")" = "$1/data" ] && [ $n -lt 100 ]; do
        sleep 0.1
        n=$((n + 1))
    done
fi
rm -rf "$1" || { sleep 1; rm -rf "$1"; }
'''


class ClusterError(Exception):
    """The cluster could not be created, started or stopped."""


def _server_user():
    """The passwd entry the server runs as; None means the caller itself."""
    if os.getuid() != 0:
        return None
    for name in ('postgres', 'nobody'):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ClusterError('running as root, and there is no user postgres or nobody')


def _quote(value):
    if isinstance(value, bool):
        value = 'on' if value else 'off'
    return "'" + str(value).replace('\\', '\\\\').replace("'", "''") + "'"


def copy(folder, to):
    """Copies a folder, with its owners and modes."""
    subprocess.run(['cp', '-a', folder, to], check=True)


def _raise_exit(signum, frame):
    sys.exit(128 + signum)


# A Python signal handler runs only when the interpreter is back from C, where a
# client library may wait for a query's end and may then replace the handler's
# exception by its own.  So a thread, woken by the signal itself, stops the
# servers and notes that the process is to end; the next use of a cluster ends it.
_live = set()
_handled = False
_ending = None                  # the signal that came


def _handle_signals():
    """SIGTERM, SIGHUP and SIGINT end the process by way of an exception."""
    global _handled
    if _handled or threading.current_thread() is not threading.main_thread():
        return
    _handled = True
    for signum in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signum) == signal.SIG_DFL:
            signal.signal(signum, _raise_exit)
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))
    threading.Thread(target=_stop_on_signal, args=(receiver,), daemon=True).start()


def _stop_on_signal(receiver):
    global _ending
    while True:
        signum = os.read(receiver, 1)[0]
        if signal.getsignal(signum) in (_raise_exit, signal.default_int_handler):
            _ending = signum
            for cluster in list(_live):
                cluster.quit()


def end_if_told():
    """Ends the process if a signal has told it to."""
    if _ending is not None:
        sys.exit(128 + _ending)


class Cluster:
    """One private cluster.  `dir` holds everything; `data` is the data
    directory; `host`, `port` and `user` are for clients; `pid` is the
    postmaster's process id while it runs, else None."""

    def __init__(self, pg_config='pg_config', settings=None, initdb_args=None,
                 keep_log=None):
        """keep_log: False, True (the log is kept as <directory>.log, and the
        name is printed), or the file name to keep it under.  None: in the directory
        that WISCSORT_SERVER_LOGS names, if it names one."""
        self.pg_config = pg_config
        self.bindir = self.config('--bindir')
        self.settings = dict(DEFAULTS)
        self.settings.update(settings or {})
        self.keep_log = keep_log
        self.quiet_log = keep_log is None and os.environ.get('WISCSORT_SERVER_LOGS')
        self.port, self.user, self.database = PORT, SUPERUSER, 'postgres'
        self._owner = os.getpid()
        self._user = _server_user()
        self._proc = self._watcher = None
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix='wiscsort-'))
        self.data = os.path.join(self.dir, 'data')
        self.logfile = os.path.join(self.dir, 'log')
        self.host = self.dir
        atexit.register(self.close)
        _live.add(self)
        _handle_signals()
        try:
            self._watcher = subprocess.Popen(
                ['/bin/sh', '-c', WATCHER, 'watcher', self.dir], cwd='/',
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True)
            self._initdb(initdb_args or [])
            self.start()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close('immediate' if exc[0] else 'fast')
        end_if_told()

    # --- programs -------------------------------------------------------

    def config(self, option):
        """What pg_config says, e.g. config('--pkglibdir')."""
        return subprocess.run([self.pg_config, option], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()

    def program(self, name):
        """Full name of one of this installation's programs."""
        return os.path.join(self.bindir, name)

    def env(self, database=None):
        """The environment for a client program of this cluster."""
        env = {k: v for k, v in os.environ.items() if not k.startswith('PG')}
        env.update(PGHOST=self.host, PGPORT=self.port, PGUSER=self.user,
                   PGDATABASE=database or self.database)
        return env

    def as_server(self, command):
        """The command, to be run as the server's user."""
        if self._user is None:
            return command
        return ['setpriv', '--reuid=%d' % self._user.pw_uid,
                '--regid=%d' % self._user.pw_gid, '--init-groups', '--'] + command

    def _server_env(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith(('PG', 'LC_'))}
        env.update(LC_ALL='C', HOME=self.dir)
        return env

    def give(self, path):
        """Makes the server's user the owner of a file or directory."""
        if self._user is not None:
            os.chown(path, self._user.pw_uid, self._user.pw_gid)

    # --- life cycle -----------------------------------------------------

    def _initdb(self, args):
        socket = os.path.join(self.dir, '.s.PGSQL.' + PORT)
        if len(socket) > SOCKET_LIMIT:
            raise ClusterError('socket name too long, set a shorter TMPDIR: ' + socket)
        self.give(self.dir)
        template = None if args else self._template()
        if template and os.path.isdir(template):
            copy(template, self.data)
            return
        done = subprocess.run(
            self.as_server([self.program('initdb'), '-D', self.data, '-U', SUPERUSER,
                             '-A', 'trust', '-E', 'UTF8', '--no-locale', '-N'] + list(args)),
            cwd=self.dir, env=self._server_env(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise ClusterError('initdb failed:\n' + done.stdout)
        with open(os.path.join(self.data, 'postgresql.conf'), 'a') as conf:
            conf.write("\ninclude 'cluster.conf'\n")
        if template:
            made = tempfile.mkdtemp(dir=os.path.dirname(template))
            copy(self.data, os.path.join(made, 'data'))
            try:
                os.rename(os.path.join(made, 'data'), template)
            except OSError:
                pass            # another one was faster

    def _template(self):
        """Where a data directory of this installation is kept for other clusters; None: nowhere."""
        folder = os.environ.get(TEMPLATES)
        return folder and os.path.join(folder, self.bindir.replace('/', '-'))

    def start(self, settings=None):
        """Starts the server; settings are added to those it had."""
        end_if_told()
        if self.pid is not None:
            raise ClusterError('the server already runs')
        self.settings.update(settings or {})
        conf = os.path.join(self.data, 'cluster.conf')
        with open(conf, 'w') as f:
            f.write("unix_socket_directories = %s\n" % _quote(self.dir))
            for name, value in self.settings.items():
                f.write('%s = %s\n' % (name, _quote(value)))
        self.give(conf)
        with open(self.logfile, 'ab') as log:
            self._proc = subprocess.Popen(
                self.as_server([self.program('postgres'), '-D', self.data]),
                cwd=self.data, env=self._server_env(), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + START_TIMEOUT
        while not self._ready():
            if self._proc.poll() is not None:
                raise ClusterError('the server did not start:\n' + self.log()[-4000:])
            if time.monotonic() > deadline:
                raise ClusterError('the server is not ready after %d s:\n%s'
                                   % (START_TIMEOUT, self.log()[-4000:]))
            time.sleep(0.02)

    def _ready(self):
        try:
            with open(os.path.join(self.data, 'postmaster.pid')) as f:
                lines = f.read().split('\n')
        except OSError:
            return False
        return (len(lines) > 7 and lines[0].strip() == str(self._proc.pid)
                and lines[7].strip() == 'ready')

    def stop(self, mode='fast'):
        """Stops the server: fast, then immediate, then SIGKILL to its own id."""
        modes = ['fast', 'immediate'] if mode == 'fast' else [mode]
        for m in modes:
            if self.pid is None:
                break
            self._proc.send_signal({'smart': signal.SIGTERM, 'fast': signal.SIGINT,
                                    'immediate': signal.SIGQUIT}[m])
            try:
                self._proc.wait(timeout=20)
            except subprocess.TimeoutExpired:
                continue
        if self.pid is not None:
            self._proc.kill()
            self._proc.wait()
        self._proc = None

    def quit(self):
        """Tells the server to stop at once, and does not wait."""
        proc = self._proc
        if proc is not None and proc.poll() is None:
            proc.send_signal(signal.SIGQUIT)

    def restart(self, settings=None):
        """Stops and starts the server; settings are added to those it had."""
        self.stop()
        self.start(settings)

    def close(self, mode='immediate'):
        """Stops the server and removes the directory.  May be called twice."""
        if os.getpid() != self._owner:
            return
        atexit.unregister(self.close)
        _live.discard(self)
        self.stop(mode)
        if self.keep_log and os.path.exists(self.logfile):
            name = self.dir + '.log' if self.keep_log is True else self.keep_log
            shutil.copyfile(self.logfile, name)
            print('server log: ' + name, file=sys.stderr)
            self.keep_log = False
        elif self.quiet_log and os.path.exists(self.logfile):
            shutil.copyfile(self.logfile, os.path.join(self.quiet_log, os.path.basename(self.dir) + '.log'))
            self.quiet_log = None
        shutil.rmtree(self.dir, ignore_errors=True)
        if self._watcher is not None:
            self._watcher.stdin.close()
            self._watcher.wait()
            self._watcher = None

    @property
    def pid(self):
        """The postmaster's process id, None when it does not run."""
        if self._proc is None or self._proc.poll() is not None:
            return None
        return self._proc.pid

    # --- clients --------------------------------------------------------

    def connect(self, database=None, **gucs):
        """A psycopg2 connection in autocommit mode, with settings applied:
        connect(work_mem='4MB', **{'wiscsort.enable': 'off'})."""
        import psycopg2
        end_if_told()
        conn = psycopg2.connect(host=self.host, port=self.port, user=self.user,
                                dbname=database or self.database)
        conn.autocommit = True
        with conn.cursor() as cur:
            for name, value in gucs.items():
                if isinstance(value, bool):
                    value = 'on' if value else 'off'
                cur.execute('SELECT set_config(%s, %s, false)', (name, str(value)))
        return conn

    def psql(self, sql=None, file=None, database=None, args=('-qAt',), check=True,
             gucs=None):
        """Runs psql on a text or a file; gives the completed process, with
        text in stdout and stderr.  With check, an error raises ClusterError."""
        end_if_told()
        env = self.env(database)
        if gucs:
            env['PGOPTIONS'] = ' '.join(
                '-c %s=%s' % (k, str(v).replace('\\', r'\\').replace(' ', r'\ '))
                for k, v in gucs.items())
        command = [self.program('psql'), '-X', '-v', 'ON_ERROR_STOP=%d' % check, *args]
        if file is not None:
            command += ['-f', file]
        done = subprocess.run(command, input=sql or '', env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if check and done.returncode != 0:
            raise ClusterError('psql exited with %d:\n%s' % (done.returncode, done.stderr))
        return done

    def tablespace(self, name):
        """Creates a tablespace in a new directory and gives that directory."""
        path = os.path.join(self.dir, 'tablespace_' + name)
        os.mkdir(path, 0o700)
        self.give(path)
        self.psql('CREATE TABLESPACE "%s" LOCATION %s' % (name, _quote(path)))
        return path

    # --- observation ----------------------------------------------------

    def log(self):
        """The server's log so far."""
        try:
            with open(self.logfile, errors='replace') as f:
                return f.read()
        except FileNotFoundError:
            return ''

    def crashed(self):
        """True when the log shows a crash, a PANIC, a failed assertion or a
        sanitizer's report."""
        return CRASH.search(self.log()) is not None

    def temp_files(self):
        """What lies in the temporary-file directories, relative to data."""
        found = []
        for pattern in ('base/pgsql_tmp', 'pg_tblspc/*/PG_*/pgsql_tmp'):
            for top in glob.glob(os.path.join(self.data, pattern)):
                for folder, folders, files in os.walk(top):
                    found += [os.path.relpath(os.path.join(folder, name), self.data)
                              for name in folders + files]
        return sorted(found)


# --- memory of a process ------------------------------------------------

def memory(pid):
    """The Vm* and Rss* fields of /proc/PID/status, in kB; {} when it is gone."""
    try:
        with open('/proc/%d/status' % pid) as f:
            return {k: int(v.split()[0]) for k, v in
                    (line.split(':', 1) for line in f) if k.startswith(('Vm', 'Rss'))}
    except (OSError, ValueError, IndexError):
        return {}


def rss_peak(pid):
    """(peak, now): the process's peak resident set less what it now maps of
    files and shared memory, and its RssAnon now; in kB.  The first counts all
    of the process's life; RssSampler measures one statement."""
    m = memory(pid)
    if not m:
        return (0, 0)
    return (m['VmHWM'] - m['RssFile'] - m['RssShmem'], m['RssAnon'])


class RssSampler:
    """Samples a process's memory in a thread while the block runs.  Peaks in
    kB: `anon` (RssAnon) and `file` (RssFile, which names mapped files);
    `start` is RssAnon at the beginning."""

    def __init__(self, pid, interval=0.01):
        self.process, self.interval = pid, interval
        self.anon = self.file = self.start = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def _sample(self):
        m = memory(self.process)
        self.anon = max(self.anon, m.get('RssAnon', 0))
        self.file = max(self.file, m.get('RssFile', 0))

    def _loop(self):
        while not self._done.wait(self.interval):
            self._sample()

    def __enter__(self):
        self._sample()
        self.start = self.anon
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._done.set()
        self._thread.join()
        self._sample()


# --- command mode -------------------------------------------------------

def main():
    parser = argparse.ArgumentParser(
        description='Runs a command against a fresh private PostgreSQL cluster.')
    parser.add_argument('--pg-config', default=os.environ.get('PG_CONFIG', 'pg_config'))
    parser.add_argument('--set', action='append', default=[], metavar='NAME=VALUE',
                        help='a server setting; may be repeated')
    parser.add_argument('--keep-log', metavar='FILE')
    parser.add_argument('command', nargs='+', help='the command, after --')
    args = parser.parse_args()
    for item in args.set:
        if '=' not in item:
            parser.error('--set wants NAME=VALUE, got ' + item)
    settings = dict(item.split('=', 1) for item in args.set)
    try:
        with Cluster(args.pg_config, settings, keep_log=args.keep_log) as cluster:
            child = subprocess.Popen(args.command, env=cluster.env())
            try:
                status = child.wait()
            except BaseException:
                child.terminate()
                try:
                    child.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    child.kill()
                raise
            if cluster.crashed():
                print('the server crashed:\n' + cluster.log()[-4000:], file=sys.stderr)
                return status or 1
    except (ClusterError, OSError) as error:
        end_if_told()
        print('cluster.py: %s' % error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return status if status >= 0 else 128 - status


if __name__ == '__main__':
    sys.exit(main())
