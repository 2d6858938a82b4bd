"""A table that others keep changing, and sorts of it compared with core's.

Rows that stay in their table are fetched a while after the scan has seen them.
Whatever happens to the table in between, they must be what core's sort, which
copies them at once, gives in the same snapshot.
"""

import json
import os
import random
import subprocess
import tempfile
import threading
import time

import psycopg2

import common
from common import rows, value

CHANGES = r"""
\set id random(1, :rows)
\set what random(1, 10)
\if :what <= 6
UPDATE t SET v = v + 1 WHERE id = :id;
\elif :what <= 8
UPDATE t SET k = (k * 7 + :id) % 10007, v = v + 1, pad = repeat('y', :id % 700) WHERE id BETWEEN :id AND :id + 5;
\elif :what = 9
DELETE FROM t WHERE id = :id;
\else
INSERT INTO t SELECT :id, :id % 10007, 0, repeat('z', :id % 500) ON CONFLICT (id) DO NOTHING;
\endif
"""
CHORES = [['VACUUM t'], ['VACUUM t'], ['VACUUM (FREEZE) t'], ['CHECKPOINT'],
          ['DROP INDEX IF EXISTS t_k', 'CREATE INDEX t_k ON t (k)']]
CONCURRENTLY = ['DROP INDEX IF EXISTS t_v', 'CREATE INDEX CONCURRENTLY t_v ON t (v)']
HEAP = {'wiscsort.record_store': 'heap', 'wiscsort.direct_read': 'on'}
LEAST = 3
ORDERS = ['k, id', 'id', 'v, id', 'pad, id', 'v, k, id', 'pad COLLATE "C", v, id']
# what is scanned, and how: in a row, by an index, by a bitmap
SCANS = [('', {}), ('', {}), ('WHERE id > 1000', {'enable_seqscan': 'off', 'enable_bitmapscan': 'off'}),
         ('WHERE id > 1000', {'enable_seqscan': 'off', 'enable_indexscan': 'off'})]


def session(cluster, **settings):
    """A cursor on a new session whose sorts leave their rows in the table."""
    return common.session(cluster, **(settings if common.options.core else dict(HEAP, **settings)))


def nodes(cur, sql, how='ANALYZE, '):
    """EXPLAIN's top node."""
    found = value(cur, 'EXPLAIN (%sCOSTS OFF, TIMING OFF, FORMAT JSON) %s' % (how, sql))
    return (json.loads(found) if isinstance(found, str) else found)[0]['Plan']


def create(cluster, n):
    """The table, of n rows, and core's answer as a function: a STABLE one sees
    the snapshot of the statement that calls it."""
    cur = common.core(cluster)
    cur.execute('CREATE TABLE t (id int PRIMARY KEY, k int, v int, pad text) WITH (fillfactor = 80)')
    cur.execute("INSERT INTO t SELECT i, (i * 7919) %% 10007, 0, repeat('x', i %% 600)"
                ' FROM generate_series(1, %d) i' % n)
    cur.execute('ANALYZE t')
    cur.execute('''CREATE FUNCTION core_hash(query text) RETURNS text STABLE LANGUAGE plpgsql %s AS $$
                   DECLARE answer text;
                   BEGIN
                       EXECUTE 'SELECT md5(string_agg(s::text, '','')) FROM (' || query || ') s' INTO answer;
                       RETURN answer;
                   END $$''' % ('' if common.options.core else 'SET wiscsort.enable = off'))


class Changes:
    """While the block runs: two clients of pgbench, and one that vacuums, freezes,
    checkpoints and builds indexes.  `alive` is false afterwards if one of them gave up."""

    def __init__(self, cluster, n, chores=CHORES + [CONCURRENTLY]):
        self.cluster, self.rows, self.chores, self.alive = cluster, n, chores, True
        self.stop = threading.Event()
        self.keeper = threading.Thread(target=self.keep)

    def keep(self):
        rng = random.Random(1)
        cur = self.cluster.connect().cursor()
        try:
            while not self.stop.is_set():
                for statement in rng.choice(self.chores):
                    cur.execute(statement)
                self.stop.wait(rng.random() / 5)
        except psycopg2.Error as problem:
            print('# ' + str(problem), flush=True)
            self.alive = False

    def __enter__(self):
        self.script = tempfile.NamedTemporaryFile('w', suffix='.sql')
        self.script.write(CHANGES)
        self.script.flush()
        os.chmod(self.script.name, 0o644)
        c = self.cluster
        self.pgbench = subprocess.Popen(
            [c.program('pgbench'), '-n', '-f', self.script.name, '-D', 'rows=%d' % self.rows, '-c', '2',
             '-T', '100000', '-h', c.host, '-p', str(c.port), '-U', c.user, c.database],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.keeper.start()
        return self

    def __exit__(self, *exc):
        self.alive &= self.pgbench.poll() is None
        self.stop.set()
        self.keeper.join()
        self.pgbench.kill()
        self.pgbench.wait()
        self.script.close()


class Tally:
    """What came of comparisons."""

    def __init__(self):
        self.compared = self.in_table = self.fewest = 0
        self.different, self.errors = [], []

    def add(self, query, ours, wanted, in_table):
        self.compared += 1
        self.in_table += in_table
        self.fewest = min(self.fewest or len(wanted), len(wanted))
        if ours != wanted:
            first = next((pair for pair in zip(ours, wanted) if pair[0] != pair[1]), 'the number of rows')
            self.different.append('%s: %d and %d rows; first: %.1000r' % (query, len(ours), len(wanted), first))

    def __str__(self):
        return '%d compared, %d with rows in the table, %d or more rows, %d differ, %d errors\n%s' % (
            self.compared, self.in_table, self.fewest, len(self.different), len(self.errors),
            '\n'.join([repr(e) for e in self.errors[:5]] + self.different[:5]))


def by_cursor(cur, rng, query):
    """Ours, most of it fetched a while after the scan, and core's, in one snapshot."""
    cur.execute('BEGIN ISOLATION LEVEL REPEATABLE READ')
    in_table = nodes(cur, query, '').get('Relation Name') == 't'
    cur.execute('DECLARE c NO SCROLL CURSOR FOR ' + query)
    ours = rows(cur, 'FETCH %d FROM c' % rng.choice([1, 40, 1000]))
    time.sleep(rng.random() / 3)
    ours += rows(cur, 'FETCH ALL FROM c')
    if not common.options.core:
        cur.execute('SET LOCAL wiscsort.enable = off')
    wanted = rows(cur, query)
    cur.execute('ROLLBACK')
    return ours, wanted, in_table


def by_hash(cur, rng, query):
    """Hashes of both, of one statement in READ COMMITTED that takes its time."""
    in_table = nodes(cur, query, '').get('Relation Name') == 't'
    cur.execute('SELECT md5(string_agg(s::text, \',\')), max(n), core_hash(%s) FROM'
                ' (SELECT s, row_number() OVER () AS n, CASE WHEN s.id %% 1000 = 0 THEN pg_sleep(0.005) END'
                ' FROM (' + query.replace('%', '%%') + ' OFFSET 0) s OFFSET 0) p', (query,))
    ours, n, wanted = cur.fetchone()
    return [ours] * n, [wanted] * n, in_table


def compare_once(cluster, rng, tally):
    """One sort, compared with core's."""
    where, scan = rng.choice(SCANS)
    settings = dict(scan, work_mem=rng.choice(['64kB', '1MB', '16MB']))
    if not common.options.core:
        settings.update({'wiscsort.direct_read': rng.choice(['on', 'auto', 'off']),
                         'wiscsort.read_threads': rng.choice(['0', '1']),
                         'wiscsort.debug_tie_keys': rng.choice(['auto', 'table', 'table'])})
    query = 'SELECT id, k, v, pad, ctid FROM t %s ORDER BY %s' % (where, rng.choice(ORDERS))
    how = rng.choice([by_cursor, by_cursor, by_hash])
    try:
        cur = session(cluster, **settings)
        tally.add(query, *how(cur, rng, query))
        cur.connection.close()
    except psycopg2.Error as problem:
        tally.errors.append((problem.pgcode, str(problem)))
        time.sleep(0.2)


def compare(cluster, seconds, sessions=2):
    """Sorts by several sessions for so long, or until some were compared.  Gives a Tally."""
    tally = Tally()
    end = time.monotonic() + seconds

    def loop(seed):
        rng = random.Random(seed)
        try:
            while (time.monotonic() < end + (0 if tally.compared >= LEAST else 20) and
                   len(tally.different) < 5):
                compare_once(cluster, rng, tally)
        except Exception as problem:
            tally.errors.append((None, repr(problem)))
    threads = [threading.Thread(target=loop, args=(seed,)) for seed in range(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally
