#!/usr/bin/python3
"""The table as record store (record_store = heap) while others change the table,
while its files are damaged, and what it says of its memory and its blocks.

HEAP_SECONDS=1800 test/t/heap.py --only busy_moving    as long as one likes
"""

import glob
import os
import struct
import time

import churn
import common
from churn import nodes, session
from common import Cluster, check, equal, error, healthy, rows, usable, value

SECONDS = float(os.environ.get('HEAP_SECONDS', '5'))
DAMAGED = 'XX001'


def server(checksums=False, **settings):
    if not common.options.core:
        settings.setdefault('session_preload_libraries', 'wiscsort')
    return Cluster(common.options.pg_config, settings, common.checksums(checksums))


# --- others change the table --------------------------------------------------

# A page that is verified is one that was in no buffer: without checksums, more
# depends on the look for its buffer at every visit.

def busy(name, n, checksums, **settings):
    """Sorts while rows change, die, and are vacuumed."""
    with server(checksums, autovacuum='on', autovacuum_naptime='1s', **settings) as cluster:
        churn.create(cluster, n)
        with churn.Changes(cluster, n) as changes:
            tally = churn.compare(cluster, SECONDS)
        print('# %s: %s' % (name, tally), flush=True)
        check(tally.compared >= churn.LEAST and not tally.different and not tally.errors and changes.alive and
              tally.fewest > n // 3, name + ': the same rows as core', 'others alive: %s' % changes.alive)
        check(common.options.core or tally.in_table == tally.compared, name + ': rows stayed in the table')
        healthy(cluster, name)


def busy_few():
    busy('few buffers', 30000, False, shared_buffers='1MB')


def busy_moving():
    busy('buffers for a third, checksums', 100000, True, shared_buffers='16MB')


def busy_dirty():
    busy('buffers for a third', 100000, False, shared_buffers='16MB')


def busy_many():
    busy('buffers for all', 30000, False, shared_buffers='256MB')


# --- damage --------------------------------------------------------------------

QUERY = 'SELECT i, k, pad FROM d ORDER BY k'


def damage_case(name, checksums, damage, codes, text, pad=500, query=QUERY, **settings):
    """Damage to a table's file between the first rows of a cursor and the others."""
    settings.setdefault('work_mem', '256kB')
    with server(checksums, shared_buffers='1MB') as cluster:
        cur = common.core(cluster)
        cur.execute("CREATE TABLE d AS SELECT i, hashint4(i) AS k, repeat('x', %d) AS pad"
                    ' FROM generate_series(1, 40000) i' % pad)
        cur.execute('VACUUM (FREEZE, ANALYZE) d')
        cur.execute('CHECKPOINT')
        path = os.path.join(cluster.data, value(cur, "SELECT pg_relation_filepath('d')"))
        whole = rows(cur, query)
        cur = session(cluster, **settings)
        cur.execute('BEGIN')
        cur.execute('DECLARE c CURSOR FOR ' + query)
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


def dead_line_pointers(path):
    """Every line pointer of these pages says that its row, which is there, is dead."""
    with open(path, 'r+b') as f:
        for page in range(20, os.path.getsize(path) // 8192):
            f.seek(page * 8192 + 24)
            pointers = [struct.unpack('<I', f.read(4))[0] | 3 << 15 for _ in range(10)]
            f.seek(page * 8192 + 24)
            f.write(struct.pack('<10I', *pointers))


def no_room_for_line_pointers(path):
    """The headers of these pages say that there are no line pointers, which are there."""
    with open(path, 'r+b') as f:
        for page in range(20, os.path.getsize(path) // 8192):
            f.seek(page * 8192 + 12)
            f.write(struct.pack('<H', 24))


def half(path):
    os.truncate(path, os.path.getsize(path) // 2 // 8192 * 8192)


def damage():
    """Line pointers that are gone, pages that fail their checksum, a short file."""
    if common.options.core:
        return
    damage_case('line pointers gone', False, no_line_pointers, [DAMAGED], 'of table "d" is gone')
    damage_case('line pointers dead', False, dead_line_pointers, [DAMAGED], 'of table "d" is gone')
    damage_case('line pointers behind the last', False, no_room_for_line_pointers, [DAMAGED],
                'of table "d" is gone')
    damage_case('line pointers gone, through buffers', False, no_line_pointers, [DAMAGED],
                'of table "d" is gone', **{'wiscsort.direct_read': 'off'})
    damage_case('checksum failure', True, no_line_pointers, [DAMAGED], 'invalid page in block')
    damage_case('file cut in half', False, half, [DAMAGED], 'could not read')
    damage_case('file cut in half, checksums', True, half, [DAMAGED], 'could not read')
    # keys of ties, which the merge reads from the table
    tied = {'query': 'SELECT i, k, pad FROM d ORDER BY pad COLLATE "C", k', 'work_mem': '64kB',
            'wiscsort.debug_tie_keys': 'table'}
    damage_case('line pointers gone, of ties', False, no_line_pointers, [DAMAGED], 'of table "d" is gone', **tied)
    damage_case('line pointers gone, of ties, through buffers', False, no_line_pointers, [DAMAGED],
                'of table "d" is gone', **dict(tied, **{'wiscsort.direct_read': 'off'}))
    # of a page that has been verified before
    damage_case('checksum failure, of ties', True, no_line_pointers, [DAMAGED], '', **tied)
    damage_case('file cut in half, of ties', False, half, [DAMAGED], 'could not read', **tied)
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
        cur.execute("CREATE TABLE ids AS SELECT md5(i::text)::uuid AS u, md5('t' || i) COLLATE \"C\" AS t, i"
                    ' FROM generate_series(1, 100000) i')
        cur.execute('ANALYZE')
        for memory in (64, 256, 1024, 16384):
            for table in ('narrow', 'uneven', 'ids'):
                for order in ('u', 't', 'i, u') if table == 'ids' else ('k', 'k, i'):
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
        for name, sign in (('shorter', '<'), ('longer', '>')):
            core = common.core(cluster)
            core.execute("CREATE TABLE %s AS SELECT k, CASE WHEN k %s 100000 THEN repeat('x', 1900) ELSE k::text END AS v"
                         ' FROM (SELECT abs(hashint4(i)) %% 200000 AS k FROM generate_series(1, 100000) i) s'
                         % (name, sign))
            core.execute('ANALYZE ' + name)
            core.connection.close()
            for threads in (0, 1):
                cur = session(cluster, work_mem='2MB', **{'wiscsort.read_threads': str(threads)})
                top = nodes(cur, 'SELECT k, v FROM %s ORDER BY k' % name)
                check(top['Record Store'] == 'heap' and top['Memory'] <= 2048 * 1.1,
                      'rows that get %s, read_threads %d: memory' % (name, threads), top)
        cur = session(cluster, work_mem='1900kB')
        top = nodes(cur, 'SELECT * FROM narrow ORDER BY k')
        check('one-pass' in top['Sort Method'] and top['Window Rows'] * 60 > (1900 - 100000 * 16 / 1024) * 1024 * 2,
              'the window grows while entries are used up', top)
        check(top['Memory'] <= 1900 * 1.1, 'within work_mem', top)
        cur = session(cluster, work_mem='64MB')
        top = nodes(cur, 'SELECT * FROM narrow ORDER BY k')
        check(10000 < top['Window Rows'] < 40000 and top['Memory'] < 5000, 'no further than pays', top)
        cur.execute('SET wiscsort.direct_read = off')
        top = nodes(cur, 'SELECT * FROM narrow ORDER BY k')
        check(top['Window Rows'] > 60000, 'where blocks may have to come from a device it grows on', top)
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
    common.run([busy_few, busy_moving, busy_dirty, busy_many, damage, figures])
