"""What the tests in this folder share: options, reporting, servers.

A test script is a list of functions given to run(); each gets the options, and
reports what it finds with check().  A script prints `ok - name` or `not ok -
name` lines and exits with 1 when anything failed.  With --core the scripts run
against PostgreSQL's own sort, to which most of them apply as well: that
tests the tests.
"""

import argparse
import atexit
import contextlib
import os
import pwd
import re
import subprocess
import sys
import threading
import time
import traceback

import psycopg2

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, os.pardir, 'tools'))
from cluster import Cluster, end_if_told  # noqa: E402
from memgroup import MemoryGroup, MemoryGroupError  # noqa: E402

FORCED = {'wiscsort.enable': 'on', 'wiscsort.debug_force': 'on', 'wiscsort.threshold': '0'}
ALL = os.environ.get('WISCSORT_TEST') == 'all'      # nothing takes turns
options = None
failed = 0


def in_turn(choices, turn, n):
    """n of the choices, which take turns; all of them with test/run --all.  What is tested with one of two
    lists each is so tested with every pair, sooner or later, in a part of the time."""
    choices = list(choices)
    if ALL:
        return choices
    return [choices[i] for i in sorted((turn + k) % len(choices) for k in range(n))]


def check(fine, name, detail=''):
    """Reports one finding; gives `fine` back."""
    global failed
    print('%s - %s' % ('ok' if fine else 'not ok', name), flush=True)
    if not fine:
        failed += 1
        for line in str(detail).splitlines():
            print('#   ' + line, flush=True)
    return fine


def equal(found, wanted, name):
    return check(found == wanted, name, 'found  %.2000r\nwanted %.2000r' % (found, wanted))


def skip(name, reason):
    print('ok - %s # SKIP %s' % (name, reason), flush=True)



@contextlib.contextmanager
def small_disk(cluster, name):
    """The mount point of a tmpfs of 1 MB with the tablespace `small`; None, and `name` is skipped, without."""
    if os.getuid() != 0:
        skip(name, 'only root can mount a tmpfs')
        yield None
        return
    place = os.path.join(cluster.dir, 'small')
    os.mkdir(place)
    mounted = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=1m,mode=777', 'wiscsort', place],
                             stderr=subprocess.PIPE, text=True)
    if mounted.returncode != 0:
        skip(name, mounted.stderr.strip())
        yield None
        return
    unmount = ['umount', '-l', place]
    atexit.register(subprocess.run, unmount)
    try:
        folder = os.path.join(place, 'space')
        os.mkdir(folder, 0o700)
        user = pwd.getpwuid(os.stat(cluster.data).st_uid)
        os.chown(folder, user.pw_uid, user.pw_gid)
        cur = core(cluster)
        cur.execute("CREATE TABLESPACE small LOCATION '%s'" % folder)
        cur.connection.close()
        yield place
    finally:
        atexit.unregister(subprocess.run)
        subprocess.run(unmount, check=True)


LACKS = re.compile('ICU is not supported in this build|collation "[^"]*-x-icu"|extension "pg_\\w+" is not available'
                   '|could not access file "pg_\\w+"|cannot open shared object file')


def is_bare():
    """Is it a server without ICU, which then has no contrib either, and cannot be moved (test/wheel)?"""
    def tell(what):
        return subprocess.run([options.pg_config, what], check=True, text=True, stdout=subprocess.PIPE).stdout
    if int(re.search('[0-9]+', tell('--version')).group()) < 16:
        return '--with-icu' not in tell('--configure')
    return '--without-icu' in tell('--configure')


def run(tests):
    """Runs the test functions, each whatever became of the others."""
    global options
    parser = argparse.ArgumentParser()
    parser.add_argument('--pg-config', default=os.environ.get('PG_CONFIG', 'pg_config'))
    parser.add_argument('--core', action='store_true',
                        help="test PostgreSQL's own sort instead of WiscSort")
    parser.add_argument('--only', help='run only the tests whose names have this in them')
    options = parser.parse_args()
    for test in tests:
        if options.only and options.only not in test.__name__:
            continue
        try:
            test()
        except KeyboardInterrupt:
            sys.exit(130)
        except Exception:
            end_if_told()
            lacking = LACKS.search(traceback.format_exc())
            if not lacking or not is_bare():
                check(False, test.__name__, traceback.format_exc())
                continue
            skip(test.__name__, lacking.group())
            if test.__name__ == 'start':
                break           # which the others need
    sys.exit(1 if failed else 0)


# --- servers and sessions ---------------------------------------------------

def server(preload=True, **settings):
    """A private cluster that has WiscSort loaded in every session."""
    if preload and not options.core:
        settings.setdefault('session_preload_libraries', 'wiscsort')
    return Cluster(options.pg_config, settings)


def limited(megabytes, test):
    """test(group) with a memory cgroup of so many MB; skipped where there is none to be had."""
    try:
        group = MemoryGroup(megabytes)
    except MemoryGroupError as e:
        return skip('a server in a memory cgroup', e)
    try:
        test(group)
    finally:
        check(group.close(), 'the cgroup is removed')


def major():
    """The major version of the server."""
    version = subprocess.run([options.pg_config, '--version'], check=True, text=True, stdout=subprocess.PIPE).stdout
    return int(re.search(r'\d+', version).group())


def checksums(wanted):
    """initdb's options for data checksums, or none: since 18 they are the default."""
    since_18 = major() >= 18
    return ['--data-checksums'] if wanted else ['--no-data-checksums'] if since_18 else []


def session(cluster, **settings):
    """A cursor on a new session in which every sort is taken by WiscSort."""
    if not options.core:
        settings = dict(FORCED, **settings)
    return cluster.connect(**settings).cursor()


def core(cluster, **settings):
    """A cursor on a new session with PostgreSQL's own plans."""
    if not options.core:
        settings = dict({'wiscsort.enable': 'off'}, **settings)
    return cluster.connect(**settings).cursor()


def rows(cur, sql):
    cur.execute(sql)
    return cur.fetchall()


def value(cur, sql):
    return rows(cur, sql)[0][0]


def explain(cur, sql, options_=''):
    return '\n'.join(r[0] for r in rows(cur, 'EXPLAIN (COSTS OFF%s) %s' % (options_, sql)))


def uses(cur, sql):
    """Checks that the query's plan has the sort under test."""
    plan = explain(cur, sql)
    return check(('Sort Key' if options.core else 'WiscSort') in plan,
                 'WiscSort is in the plan of: %.60s' % sql, plan)


def error(cur, sql):
    """(SQLSTATE, message) of the error a statement ends with; (None, '')
    when it succeeds; ('lost', ...) when the connection is gone."""
    try:
        cur.execute(sql)
    except psycopg2.Error as e:
        if cur.connection.closed:
            return (e.pgcode or 'lost', str(e))
        return e.pgcode, str(e)
    return None, ''


def set_timeout(cur, ms):
    """Sets statement_timeout; the one in force may hit this statement too."""
    for _ in range(20):
        if error(cur, 'SET statement_timeout = %d' % ms)[0] is None:
            return
    raise RuntimeError('statement_timeout cannot be set')


def backend(cur):
    return value(cur, 'SELECT pg_backend_pid()')


def clean(cluster, name):
    """Checks that no temporary file is left, within a short while."""
    for _ in range(40):
        files = cluster.temp_files()
        if not files:
            break
        time.sleep(0.05)
    return check(not files, name + ': no temporary file left', '\n'.join(files))


def usable(cur, cluster, name):
    """Checks that the session goes on, sorts right, and leaves nothing."""
    sql = ('SELECT count(*), bool_and(i = n) FROM (SELECT i, row_number() OVER () AS n FROM'
           ' (SELECT i FROM (SELECT i FROM generate_series(1, 20000) i ORDER BY md5(i::text)'
           ' OFFSET 0) a ORDER BY i OFFSET 0) b) c')
    try:
        found = rows(cur, sql)
        check(found == [(20000, True)], name + ': the session still sorts', found)
    except psycopg2.Error as e:
        check(False, name + ': the session still sorts', e)
    clean(cluster, name)


# Exits with 0 if the system gives a queue, and reads past the page cache; with 3 if not.
ASK = """
import ctypes, os, sys, tempfile
place, library, method = sys.argv[1:]
with tempfile.NamedTemporaryFile(dir=place) as f:
    try:
        os.close(os.open(f.name, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        sys.exit(3)
if method == 'libaio':
    sys.exit(3 if ctypes.CDLL(library).io_setup(64, ctypes.byref(ctypes.c_void_p())) else 0)
features = (ctypes.c_uint32 * 30)()     # struct io_uring_params; IORING_FEAT_RW_CUR_POS, as file/uring.c needs it
ring = ctypes.CDLL(None).syscall(ctypes.c_long(425), ctypes.c_uint(64), features)
sys.exit(0 if ring >= 0 and features[5] & 8 else 3)
"""


def has_method(cluster, method):
    """Whether libaio or io_uring is to be had in a cluster, found out without WiscSort: the module is linked
    with its library, and the system gives it to the server's user."""
    module = os.path.join(cluster.config('--pkglibdir'), 'wiscsort.so')
    linked = subprocess.run(['ldd', module], check=True, text=True, stdout=subprocess.PIPE).stdout
    library = re.search(r'%s\S* => (/\S+)' % {'libaio': 'libaio', 'io_uring': 'liburing'}[method], linked)
    if library is None:
        return False
    asked = subprocess.run(cluster.as_server(['/usr/bin/python3', '-c', ASK, cluster.data, library.group(1), method]),
                           cwd='/', text=True, stderr=subprocess.PIPE)
    if asked.returncode not in (0, 3):
        raise RuntimeError('it is not known whether there is %s: %s' % (method, asked.stderr))
    return asked.returncode == 0


def logged_files(log):
    """Sizes of the temporary files a log names (log_temp_files = 0)."""
    return [int(size) for size in re.findall(r'temporary file: path "[^"]*", size (\d+)', log)]


def healthy(cluster, name):
    """Checks that the server has not crashed and has not complained.  (An autovacuum
    worker that is slow to start is the machine's.)"""
    log = cluster.log()
    bad = [line for line in log.splitlines()
           if 'WARNING:' in line and 'WARNING:  autovacuum worker ' not in line]
    check(not cluster.crashed() and not bad, name + ': no crash and no warning in the log',
          '\n'.join(bad) or log[-3000:])


def cancelled(cluster, cur, statement, seconds):
    """Runs a statement in a thread and cancels it after `seconds`.  Gives
    (SQLSTATE or None, seconds from the cancel request to the end)."""
    pid = backend(cur)
    outcome = []

    def target():
        outcome.append(error(cur, statement)[0])
        outcome.append(time.monotonic())
    with cluster.connect().cursor() as other:
        thread = threading.Thread(target=target)
        thread.start()
        thread.join(seconds)
        sent = time.monotonic()
        other.execute('SELECT pg_cancel_backend(%d)' % pid)
        thread.join(120)
        other.connection.close()
    if len(outcome) < 2:
        return 'hangs', 120.0
    return outcome[0], outcome[1] - sent
