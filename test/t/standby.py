#!/usr/bin/python3
"""The table as record store on a hot standby, where rows are removed by replay.

What protects a standby's snapshot is either hot_standby_feedback, or that
replay cancels the query before it removes a row the query may want.

STANDBY_SECONDS=1800 test/t/standby.py --only busy    as long as one likes
"""

import os
import re
import subprocess
import threading
import time

import psycopg2

import churn
import common
from churn import nodes, session
from common import Cluster, check, clean, equal, error, healthy, rows, usable, value

SECONDS = float(os.environ.get('STANDBY_SECONDS', '12'))
N = 20000
CONFLICT = 'due to conflict with recovery'
QUERY = 'SELECT id, k, v, pad, ctid FROM t ORDER BY k, id'
FEEDBACK = {'hot_standby_feedback': 'on', 'max_standby_streaming_delay': '-1'}
NO_FEEDBACK = {'hot_standby_feedback': 'off'}


class Standby(Cluster):
    """A hot standby of another cluster, streaming from a slot of its own."""

    def __init__(self, primary, **settings):
        self.primary = primary
        super().__init__(primary.pg_config, dict(primary.settings, wal_receiver_status_interval='1s', **settings))

    def _initdb(self, args):
        p = self.primary
        self.give(self.dir)
        subprocess.run(self.as_server([self.program('pg_basebackup'), '-D', self.data, '-R', '-C', '-S', 'standby',
                                       '-c', 'fast', '-h', p.host, '-p', p.port, '-U', p.user]),
                       cwd=self.dir, env=self._server_env(), check=True)

    def caught_up(self, name, seconds=30):
        """Checks that replay comes to where the primary is now."""
        end = value(self.primary.connect().cursor(), 'SELECT pg_current_wal_insert_lsn()')
        for _ in range(int(seconds * 10)):
            try:
                with self.connect().cursor() as cur:
                    if value(cur, "SELECT pg_last_wal_replay_lsn() >= '%s'" % end):
                        return True
            except psycopg2.Error:
                pass            # a conflict of its own
            time.sleep(0.1)
        return check(False, name + ': replay goes on')

    def feeds_back(self):
        """Waits until the primary knows what the standby's snapshots need."""
        cur = self.primary.connect().cursor()
        for _ in range(300):
            if value(cur, 'SELECT count(xmin) FROM pg_replication_slots'):
                return
            time.sleep(0.1)
        raise RuntimeError('no feedback from the standby')


def primary(**settings):
    if not common.options.core:
        settings.setdefault('session_preload_libraries', 'wiscsort')
    cluster = Cluster(common.options.pg_config, settings, common.checksums(True))
    churn.create(cluster, N)
    cluster.connect().cursor().execute('CREATE EXTENSION pg_buffercache')
    return cluster


def no_pins(cluster, name):
    """Checks that no page of the table is pinned, within a short while."""
    pinned = 'nobody could look'
    for _ in range(40):
        try:
            with cluster.connect().cursor() as cur:
                pinned = rows(cur, "SELECT relblocknumber, pinning_backends FROM pg_buffercache"
                                   " WHERE pinning_backends > 0 AND relfilenode = pg_relation_filenode('t')")
            if not pinned:
                break
        except psycopg2.Error:
            pass                # a conflict of its own
        time.sleep(0.05)
    check(not pinned, name + ': no pin left', pinned)


def lost(cluster):
    """The backends of the sessions replay has ended, by process id: the log says so
    before the client can know.  Also a session that only looked may be among them."""
    return [int(pid) for pid in re.findall(r'\[(\d+)\] FATAL: .* ' + CONFLICT, cluster.log())]


# --- one conflict at a time -----------------------------------------------------

def remove_rows(cluster):
    """What no snapshot of the standby can survive without feedback."""
    cur = common.core(cluster)
    cur.execute('UPDATE t SET v = v + 1, pad = pad || \'u\' WHERE id % 3 = 0')
    cur.execute('VACUUM t')
    cur.connection.close()


def fetching(cur):
    """A reader that wants its next rows after the conflict."""
    cur.execute('DECLARE c NO SCROLL CURSOR FOR ' + QUERY)
    rows(cur, 'FETCH 10 FROM c')
    return 'FETCH ALL FROM c', None


def running(cur):
    """A statement that is in the middle of its output when the conflict comes."""
    sql = 'SELECT count(pg_sleep(0.01)), count(s.*) FROM (%s OFFSET 0) s' % QUERY
    return sql, sql


def running_in_subtransaction(cur):
    cur.execute('SAVEPOINT a')
    return running(cur)


def threads():
    return {} if common.options.core else {'wiscsort.read_threads': '1', 'wiscsort.sort_threads': '1'}


def threads_of(pid):
    """How many threads a backend has; none where replay, which signals until the
    snapshot is gone, has ended its session right after the error."""
    try:
        return len(os.listdir('/proc/%d/task' % pid))
    except OSError:
        return 0


def rolled_back(cur):
    """Ends the transaction; false where the session has been ended."""
    try:
        cur.execute('ROLLBACK')
        return True
    except psycopg2.Error:
        return False


def conflict(standby, kind):
    name = 'conflict, ' + kind.__name__.replace('_', ' ')
    cur = session(standby, work_mem='256kB', **threads())
    pid = common.backend(cur)
    outcome = []
    cur.execute('BEGIN ISOLATION LEVEL REPEATABLE READ')
    statement, at_once = kind(cur)
    thread = threading.Thread(target=lambda: outcome.append(error(cur, statement)))
    if at_once:
        thread.start()
    for _ in range(100):
        if standby.temp_files():
            break
        time.sleep(0.05)
    check(standby.temp_files(), name + ': the sort has temporary files')
    remove_rows(standby.primary)
    standby.caught_up(name)
    if not at_once:
        thread.start()
    thread.join(30)
    code, message = outcome[0] if outcome else ('hangs', '')
    if code != 'lost':
        check(code == '40001' and CONFLICT in message, name + ': a clean error', (code, message))
        check(threads_of(pid) <= 1, name + ': no thread left', threads_of(pid))
    clean(standby, name)
    no_pins(standby, name)
    if rolled_back(cur):
        usable(cur, standby, name)
        equal(rows(cur, QUERY), rows(common.core(standby.primary), QUERY), name + ': and sorts what is there now')
    else:
        equal(lost(standby).count(pid), 1, name + ': the session is ended for it')
    cur.connection.close()


def one_by_one():
    """Without feedback replay cancels sorts, and nothing stays behind.  With it,
    and with a reader in the middle of a sort, it neither waits nor cancels."""
    with primary() as p, Standby(p, shared_buffers='1MB', max_standby_streaming_delay='200ms', **NO_FEEDBACK) as s:
        s.caught_up('conflicts')
        if not common.options.core:
            equal(nodes(session(s), QUERY, '').get('Relation Name'), 't', 'rows stay in the table on a standby')
        if not common.options.core:
            p.connect().cursor().execute('CREATE EXTENSION IF NOT EXISTS wiscsort')
            s.caught_up('the extension')
            equal(error(s.connect().cursor(), 'SELECT wiscsort.enable_in_database()')[0], '25006',
                  'lists of libraries are not changed on a standby')
        for kind in (fetching, running, running_in_subtransaction):
            conflict(s, kind)
        s.restart(FEEDBACK)
        s.feeds_back()
        s.caught_up('feedback')
        cur = session(s, work_mem='64kB')
        cur.execute('BEGIN ISOLATION LEVEL REPEATABLE READ')
        cur.execute('DECLARE c NO SCROLL CURSOR FOR ' + QUERY)
        found = rows(cur, 'FETCH 10 FROM c')
        wanted = rows(common.core(p), QUERY)
        no_pins(s, 'between two FETCHes')
        for _ in range(3):
            remove_rows(p)
            s.caught_up('feedback')
        check(rows(common.core(s), QUERY) != wanted, 'feedback: the rows have changed on the standby')
        found += rows(cur, 'FETCH ALL FROM c')
        equal(found, wanted, 'feedback: the sort has the rows of its snapshot')
        healthy(s, 'one by one')
        healthy(p, 'one by one, the primary')


# --- many ------------------------------------------------------------------------

def busy():
    """Updates, deletes, inserts and VACUUM on the primary while sorts run here.

    No CREATE INDEX CONCURRENTLY: it does not wait for snapshots of standbys, and
    core's index scans in these miss rows (PostgreSQL's bug #18213).
    """
    with primary(autovacuum='on', autovacuum_naptime='1s') as p, Standby(p) as s, \
            churn.Changes(p, N, churn.CHORES) as changes:
        for buffers in ('1MB', '256MB'):
            for settings in (FEEDBACK, dict(NO_FEEDBACK, max_standby_streaming_delay='2s')):
                with_feedback = settings is FEEDBACK
                name = 'buffers of %s, %s feedback' % (buffers, 'with' if with_feedback else 'without')
                s.restart(dict(settings, shared_buffers=buffers))
                if with_feedback:
                    s.feeds_back()
                s.caught_up(name)
                before = len(lost(s))
                tally = churn.compare(s, SECONDS / 4)
                print('# %s: %s' % (name, tally), flush=True)
                check(tally.compared >= churn.LEAST and tally.fewest > N // 3 and not tally.different,
                      name + ': the same rows as core', tally)
                if with_feedback:
                    check(not tally.errors and len(lost(s)) == before, name + ': no error', tally)
                else:
                    others = [e for e in tally.errors if e[0] != '40001']
                    check(len(others) <= len(lost(s)) - before, name + ': no error but conflicts',
                          '%d sessions ended\n%s' % (len(lost(s)) - before, others))
                no_pins(s, name)
                clean(s, name)
        check(changes.alive and changes.pgbench.poll() is None, 'the primary was busy all the while')
        healthy(s, 'busy')
        healthy(p, 'busy, the primary')


if __name__ == '__main__':
    common.run([one_by_one, busy])
