#!/usr/bin/python3
"""The table as record store (record_store = heap) while others change the table,
while its files are damaged, and what it says of its memory and its blocks.

HEAP_SECONDS=1800 test/t/heap.py --only busy    as long as one likes
"""

import glob
import json
import os
import random
import subprocess
import tempfile
import threading
import time

import common
from common import Cluster, check, equal, error, healthy, rows, usable, value

SECONDS = float(os.environ.get('HEAP_SECONDS', '12'))
DAMAGED = 'XX001'
HEAP = {'wiscsort.record_store': 'heap', 'wiscsort.direct_read': 'on'}
CHANGES = r"""
\set id random(1, 30000)
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


def server(checksums=False, **settings):
    if not common.options.core:
        settings.setdefault('session_preload_libraries', 'wiscsort')
    return Cluster(common.options.pg_config, settings,
                   ['--data-checksums'] if checksums else None)


def session(cluster, **settings):
    return common.session(cluster, **(settings if common.options.core else dict(HEAP, **settings)))


def nodes(cur, sql, how='ANALYZE, '):
    """EXPLAIN's top node."""
    found = value(cur, 'EXPLAIN (%sCOSTS OFF, TIMING OFF, FORMAT JSON) %s' % (how, sql))
    return (json.loads(found) if isinstance(found, str) else found)[0]['Plan']


# --- others change the table --------------------------------------------------

def housekeeping(cluster, stop):
    """VACUUM, checkpoints and index builds, one after the other."""
    rng = random.Random(1)
    cur = cluster.connect().cursor()
    while not stop.is_set():
        cur.execute(rng.choice(['VACUUM t', 'VACUUM t', 'VACUUM (FREEZE) t', 'CHECKPOINT',
                                'DROP INDEX IF EXISTS t_v; CREATE INDEX CONCURRENTLY t_v ON t (v)'
                                ]).split(';')[0])
        if rng.random() < 0.2:
            cur.execute('DROP INDEX IF EXISTS t_k')
            cur.execute('CREATE INDEX t_k ON t (k)')
        stop.wait(rng.random() / 5)


def compare_once(cluster, rng, order):
    """Core's answer and ours, of which most is fetched a while after the scan,
    in one snapshot.  Gives whether they are the same."""
    cur = session(cluster, work_mem=rng.choice(['64kB', '1MB', '16MB']),
                  **({} if common.options.core else
                     {'wiscsort.direct_read': rng.choice(['on', 'auto', 'off']),
                      'wiscsort.read_threads': rng.choice(['0', '1'])}))
    query = 'SELECT id, k, v, pad, ctid FROM t ORDER BY ' + order
    cur.execute('BEGIN ISOLATION LEVEL REPEATABLE READ')
    cur.execute('DECLARE c NO SCROLL CURSOR FOR ' + query)
    ours = rows(cur, 'FETCH %d FROM c' % rng.choice([1, 40, 1000]))
    time.sleep(rng.random() / 3)
    ours += rows(cur, 'FETCH ALL FROM c')
    if not common.options.core:
        cur.execute('SET LOCAL wiscsort.enable = off')
    same = rows(cur, query) == ours
    cur.execute('ROLLBACK')
    cur.connection.close()
    return same, len(ours)


def busy_with(name, checksums, seconds, **settings):
    with server(checksums, autovacuum='on', autovacuum_naptime='1s', **settings) as cluster:
        cur = common.core(cluster)
        cur.execute('CREATE TABLE t (id int PRIMARY KEY, k int, v int, pad text) WITH (fillfactor = 80)')
        cur.execute("INSERT INTO t SELECT i, (i * 7919) % 10007, 0, repeat('x', i % 600)"
                    ' FROM generate_series(1, 30000) i')
        cur.execute('ANALYZE t')
        if not common.options.core:
            plan = nodes(session(cluster), 'SELECT * FROM t ORDER BY k, id', '')
            equal(plan.get('Relation Name'), 't', name + ': the rows stay in the table')
        with tempfile.NamedTemporaryFile('w', suffix='.sql') as script:
            script.write(CHANGES)
            script.flush()
            os.chmod(script.name, 0o644)
            changing = subprocess.Popen(
                [cluster.program('pgbench'), '-n', '-f', script.name, '-c', '2', '-T', str(int(seconds) + 60),
                 '-h', cluster.host, '-p', str(cluster.port), '-U', cluster.user, cluster.database],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stop = threading.Event()
            keeper = threading.Thread(target=housekeeping, args=(cluster, stop))
            keeper.start()
            try:
                rng = random.Random(2)
                compared = different = 0
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    same, n = compare_once(cluster, rng, rng.choice(['k, id', 'id', 'v, id', 'pad, id']))
                    compared += 1
                    different += not same
                alive = changing.poll() is None
            finally:
                stop.set()
                keeper.join()
                changing.kill()
                changing.wait()
        check(compared >= 3 and different == 0 and alive and n > 10000,
              '%s: sorts while rows change, die and are vacuumed' % name,
              '%d of %d differ, %d rows, pgbench %s' % (different, compared, n, alive))
        healthy(cluster, name)


def busy():
    """Updates, deletes, inserts, VACUUM, checkpoints and index builds."""
    busy_with('checksums, few buffers', True, SECONDS / 2, shared_buffers='1MB')
    busy_with('no checksums, many buffers', False, SECONDS / 2, shared_buffers='256MB')


# --- damage --------------------------------------------------------------------

QUERY = 'SELECT i, k, pad FROM d ORDER BY k'


def damage_case(name, checksums, damage, codes, text, pad=500, **settings):
    """Damage to a table's file between the first rows of a cursor and the others."""
    settings.setdefault('work_mem', '256kB')
    with server(checksums, shared_buffers='1MB') as cluster:
        cur = common.core(cluster)
        cur.execute("CREATE TABLE d AS SELECT i, hashint4(i) AS k, repeat('x', %d) AS pad"
                    ' FROM generate_series(1, 40000) i' % pad)
        cur.execute('VACUUM (FREEZE, ANALYZE) d')
        cur.execute('CHECKPOINT')
        path = os.path.join(cluster.data, value(cur, "SELECT pg_relation_filepath('d')"))
        whole = rows(cur, QUERY)
        cur = session(cluster, **settings)
        cur.execute('BEGIN')
        cur.execute('DECLARE c CURSOR FOR ' + QUERY)
        equal(rows(cur, 'FETCH 10 FROM c'), whole[:10], name + ': the first rows')
        damage(path)
        code, message = error(cur, 'FETCH ALL FROM c')
        check(code in codes and text in message, name + ': a clear error', (code, message))
        if code == 'lost':
            return
        cur.execute('ROLLBACK')
        usable(cur, cluster, name)
        check(not cluster.crashed(), name + ': no crash', cluster.log()[-2000:])


def no_line_pointers(path):
    """Every page but the first few loses its line pointers."""
    with open(path, 'r+b') as f:
        for page in range(20, os.path.getsize(path) // 8192):
            f.seek(page * 8192 + 24)
            f.write(bytes(40))


def half(path):
    os.truncate(path, os.path.getsize(path) // 2 // 8192 * 8192)


def damage():
    """Line pointers that are gone, pages that fail their checksum, a short file."""
    if common.options.core:
        return
    damage_case('line pointers gone', False, no_line_pointers, [DAMAGED], 'of table "d" is gone')
    damage_case('checksum failure', True, no_line_pointers, [DAMAGED], 'invalid page in block')
    damage_case('file cut in half', False, half, [DAMAGED], 'could not read')
    damage_case('file cut in half, checksums', True, half, [DAMAGED], 'could not read')
    # windows so large that the backend and its helper fetch them together
    together = {'pad': 80, 'work_mem': '4MB', 'wiscsort.read_threads': '1'}
    damage_case('line pointers gone, with a helper', False, no_line_pointers, [DAMAGED],
                'of table "d" is gone', **together)
    for _ in range(3):
        damage_case('file cut in half, with a helper', False, half, [DAMAGED], 'could not read', **together)


# --- what it says of itself -----------------------------------------------------

def figures():
    """Memory within work_mem, no temporary bytes, blocks counted by how they came."""
    if common.options.core:
        return
    with server(shared_buffers='1MB') as cluster:
        cur = common.core(cluster)
        cur.execute("CREATE TABLE narrow AS SELECT i, hashint4(i) AS k, i AS v FROM generate_series(1, 100000) i")
        cur.execute('CREATE TABLE uneven (i int, k int, pad text)')
        cur.execute('ALTER TABLE uneven ALTER pad SET STORAGE plain')
        cur.execute("INSERT INTO uneven SELECT i, hashint4(i), repeat('x', CASE WHEN i % 100 = 0"
                    " THEN 7000 ELSE i %% 50 END) FROM generate_series(1, 30000) i".replace('%%', '%'))
        cur.execute('ANALYZE')
        for memory in (64, 256, 1024, 16384):
            for table in ('narrow', 'uneven'):
                for order in ('k', 'k, i'):
                    cur = session(cluster, work_mem='%dkB' % memory)
                    name = '%s by %s in %d kB' % (table, order, memory)
                    top = nodes(cur, 'SELECT * FROM %s ORDER BY %s' % (table, order))
                    check(top['Memory'] <= memory * 1.1 + 16, name + ': memory', top)
                    check(top['Record Store'] == 'heap' and top['Window Rows'] > 0, name + ': the store', top)
                    if 'one-pass' in top['Sort Method']:
                        check(top['Disk'] == 0, name + ': nothing spilled', top)
                    else:
                        # a merge in several passes has part of the entries twice
                        bytes_ = 16.2 if top['Merge Passes'] == 1 else 20
                        check(top['Disk'] * 1024 <= bytes_ * top['IndexMap Entries'] + 65536,
                              name + ': 16 bytes a row', top)
                    cur.connection.close()
        cur = session(cluster, work_mem='1900kB')
        top = nodes(cur, 'SELECT * FROM narrow ORDER BY k')
        check('one-pass' in top['Sort Method'] and top['Window Rows'] * 60 > (1900 - 100000 * 16 / 1024) * 1024 * 2,
              'the window grows while entries are used up', top)
        check(top['Memory'] <= 1900 * 1.1, 'within work_mem', top)
        cur = session(cluster, work_mem='1MB')
        top = nodes(cur, 'SELECT * FROM narrow ORDER BY k')
        check(top['Blocks Direct'] > top['Blocks Buffered'], 'blocks come from the files', top)
        cur.execute('SET wiscsort.direct_read = off')
        top = nodes(cur, 'SELECT * FROM narrow ORDER BY k')
        check(top['Blocks Direct'] == 0 and top['Blocks Buffered'] > 0, 'unless switched off', top)
        cur.execute('SET wiscsort.direct_read = auto')
        cur.execute("SET effective_cache_size = '8kB'")
        top = nodes(cur, 'SELECT * FROM narrow ORDER BY k')
        check(top['Blocks Direct'] == 0, 'or the page cache is too small for the table', top)
        cur.execute('RESET effective_cache_size')
        cur.execute('SET wiscsort.direct_read = on')
        cur.execute('CREATE TEMP TABLE ours AS SELECT * FROM narrow')
        top = nodes(cur, 'SELECT * FROM ours ORDER BY k')
        check(top['Record Store'] == 'heap' and top['Blocks Direct'] == 0,
              'a temporary table is read through its own buffers', top)
        cur.connection.close()
        cur = common.core(cluster)
        before = value(cur, "SELECT heap_blks_read FROM pg_statio_user_tables WHERE relname = 'narrow'")
        mine = session(cluster, work_mem='1MB')
        rows(mine, 'SELECT count(v) FROM (SELECT * FROM narrow ORDER BY k OFFSET 0) s')
        mine.connection.close()
        for _ in range(50):
            after = value(cur, "SELECT heap_blks_read FROM pg_statio_user_tables WHERE relname = 'narrow'")
            if after - before > 1000:
                break
            time.sleep(0.1)
        check(after - before > 1000, 'direct reads count in pg_statio_user_tables', after - before)
        check(not glob.glob(os.path.join(cluster.data, 'base', 'pgsql_tmp', '*')), 'no file is left')
        healthy(cluster, 'figures')


if __name__ == '__main__':
    common.run([busy, damage, figures])
