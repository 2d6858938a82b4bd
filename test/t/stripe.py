#!/usr/bin/python3
"""Temporary files that are striped over several temp_tablespaces: the rows are core's, every tablespace has its
share, what is counted and limited is counted and limited to the byte, errors name the file that they are about,
and nothing is left behind."""

import os
import re
import subprocess
import time
from collections import Counter

import common
from common import check, clean, equal, error, explain, healthy, in_turn, rows, session, skip, usable, value

SPACES = ('one', 'two', 'three')
EXTENT = '64kB'
DISK_FULL, LIMIT_EXCEEDED, DAMAGED = '53100', '53400', 'XX001'
ROWS = 40000
MAKE = """
CREATE TABLE t AS SELECT i, hashint4(i) AS k, repeat('p', 80 + i %% 97) AS pad,
    CASE WHEN i %% 20000 = 77 THEN repeat(md5(i::text), 5000) END AS long FROM generate_series(1, %d) i;
ALTER TABLE t ALTER long SET STORAGE EXTERNAL;
CREATE TABLE narrow AS SELECT hashint4(i) AS k FROM generate_series(1, 300000) i;
ANALYZE""" % ROWS
# two rows have 160 kB
WIDE = "SELECT * FROM (SELECT i, k, pad, long || '' AS long FROM t OFFSET 0) w ORDER BY k, i"
PLAIN = 'SELECT i, k, pad FROM t ORDER BY k, i'
KEYS = 'SELECT k FROM narrow ORDER BY k'


def threads(n):
    return {'wiscsort.%s_threads' % work: n for work in ('read', 'sort', 'write')}


def ways():
    """Every way in which a sort uses files: (name, query, settings)."""
    for turn, (n, memory) in enumerate((n, memory) for n in (0, 1) for memory in ('64kB', '512kB')):
        common_ = dict(threads(n), work_mem=memory)
        others = [('heap', PLAIN, {'wiscsort.record_store': 'heap'}), ('keys', KEYS, {'wiscsort.record_store': 'heap'})]
        others += [('inline, ' + method, WIDE, {'wiscsort.record_store': 'inline', 'wiscsort.io_method': method})
                   for method in ('libaio', 'io_uring')]
        yield 'spool', WIDE, dict(common_, **{'wiscsort.record_store': 'spool'})
        yield 'inline, sync', WIDE, dict(common_, **{'wiscsort.record_store': 'inline', 'wiscsort.io_method': 'sync'})
        for name, sql, settings in in_turn(others, turn, 2):
            yield name, sql, dict(common_, **settings)
    yield 'inline, blocks of 12 kB', WIDE, dict(threads(1), work_mem='1MB', **{
        'wiscsort.record_store': 'inline', 'wiscsort.block_size': '12kB'})
    yield 'inline, double', WIDE, dict(threads(1), work_mem='1MB', **{
        'wiscsort.record_store': 'inline', 'wiscsort.merge_read': 'double'})
    yield 'begins again', PLAIN, dict(threads(1), work_mem='256kB', **{
        'wiscsort.cache_size': '1GB', 'wiscsort.debug_again': '3000'})


def named(name, settings):
    return '%s, %s threads, %s' % (name, settings['wiscsort.read_threads'], settings['work_mem'])


def server(**settings):
    cluster = common.server(max_parallel_workers_per_gather='0', autovacuum='off', **settings)
    for name in SPACES:
        cluster.tablespace(name)
    common.core(cluster).execute(MAKE)
    return cluster


def striped(cluster, spaces=2, extent=EXTENT, **settings):
    return session(cluster, temp_tablespaces=','.join(SPACES[:spaces]), **{'wiscsort.debug_extent': extent}, **settings)


def digest(sql):
    return "SELECT md5(string_agg(md5(s::text), '')) FROM (%s OFFSET 0) s" % sql


def consume(sql):
    return 'SELECT count(s.*) FROM (%s OFFSET 0) s' % sql


def sizes(cluster):
    """Bytes of temporary files, by the tablespace that they are in."""
    found = Counter()
    for name in cluster.temp_files():
        found[name.split('/')[1]] += os.path.getsize(os.path.join(cluster.data, name))
    return found


def same_rows():
    """Rows and their order, with one to three tablespaces, and with lists that have one twice, or an empty name."""
    with server() as cluster:
        core = common.core(cluster, work_mem='1GB')
        right = {sql: value(core, digest(sql)) for sql in (WIDE, PLAIN, KEYS)}
        for spaces in (2, 3):
            for name, sql, settings in ways():
                cur = striped(cluster, spaces, **settings)
                equal(value(cur, digest(sql)), right[sql], '%d tablespaces: %s' % (spaces, named(name, settings)))
                cur.connection.close()
        for places in ('one', 'one,one,two', 'two,two', "'', two", "one, '', two, pg_default"):
            for name, sql, settings in (('spool', WIDE, {}), ('inline', PLAIN, {'wiscsort.record_store': 'inline'})):
                cur = striped(cluster, work_mem='256kB', **settings)
                cur.execute('SET temp_tablespaces = ' + places)
                equal(value(cur, digest(sql)), right[sql], 'temp_tablespaces = %s: %s' % (places, name))
                cur.connection.close()
        clean(cluster, 'same rows')
        healthy(cluster, 'same rows')


def shares():
    """Every tablespace has as much as the others, but for an extent of each file; a small sort makes no more
    files than without stripes; and with extents of their usual size the rows are core's, too."""
    with server() as cluster:
        for name, sql, settings in ways():
            if name == 'begins again':
                continue
            cur = striped(cluster, 3, **settings)
            cur.execute('BEGIN; DECLARE c NO SCROLL CURSOR FOR ' + sql)
            rows(cur, 'FETCH 5 FROM c')
            found = sizes(cluster)
            check(len(found) == 3 and max(found.values()) < min(found.values()) + 600000,
                  'every tablespace has its share: ' + named(name, settings), found)
            cur.execute('ROLLBACK')
            cur.connection.close()
        few = PLAIN.replace('FROM t', 'FROM (SELECT * FROM t LIMIT 8000) t')
        for store in ('spool', 'inline'):
            counts = []
            for extent in ('0', '-1'):
                cur = striped(cluster, 3, extent, work_mem='256kB', **threads(0), **{'wiscsort.record_store': store})
                cur.execute('BEGIN; DECLARE c NO SCROLL CURSOR FOR ' + few)
                rows(cur, 'FETCH 5 FROM c')
                counts.append(len(cluster.temp_files()))
                cur.connection.close()
            check(counts[0] == counts[1] > 0, 'a small sort makes no more files: ' + store, counts)
        usual(cluster)
        clean(cluster, 'shares')
        healthy(cluster, 'shares')


def usual(cluster):
    core = common.core(cluster, work_mem='1GB')
    sql = ('SELECT t.i, n, k, pad FROM t, generate_series(1, 8) n ORDER BY hashint4(t.i + n), t.i, n')
    right = value(core, digest(sql))
    for store in ('spool', 'inline'):
        cur = striped(cluster, 2, '-1', work_mem='256kB', **{'wiscsort.record_store': store})
        equal(value(cur, digest(sql)), right, 'extents as usual: ' + store)
        cur.execute('BEGIN; DECLARE c NO SCROLL CURSOR FOR ' + sql)
        rows(cur, 'FETCH 5 FROM c')
        found = sizes(cluster)
        check(len(found) == 2 and max(found.values()) < min(found.values()) + 2 * 8400000,
              'both tablespaces have their share of each file: ' + store, found)
        cur.connection.close()


def accounting():
    """log_temp_files, pg_stat_database and EXPLAIN say what they say without stripes, and temp_file_limit is met
    at the same byte."""
    with server(log_temp_files=0, log_min_messages='log') as cluster:
        stat = ('SELECT pg_stat_force_next_flush(), temp_bytes::int8 FROM pg_stat_database'
                ' WHERE datname = current_database()')
        for name, sql, settings in ways():
            if name == 'begins again':
                continue
            totals, disks = [], []
            for extent in ('0', EXTENT):
                cur = striped(cluster, 2, extent, **settings)
                cur.execute("SET temp_file_limit = '1GB'")      # runs of rows are not appended to by a helper then
                # what the session before has counted is there when it is gone
                while value(cur, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'") > 1:
                    time.sleep(0.01)
                rows(cur, stat)
                before = rows(cur, stat)[0][1]
                seen = len(cluster.log())
                rows(cur, consume(sql))
                rows(cur, stat)
                totals.append(sum(common.logged_files(cluster.log()[seen:])))
                equal(int(rows(cur, stat)[0][1] - before), totals[-1],
                      'pg_stat_database: %s, extents of %s' % (named(name, settings), extent))
                disks.append([line.strip() for line in explain(cur, sql, ', ANALYZE').split('\n') if 'Disk:' in line])
                limit(cluster, cur, sql, totals[-1], '%s, extents of %s' % (named(name, settings), extent))
                cur.connection.close()
            if 'begins' not in name and settings['wiscsort.sort_threads'] == 0:
                equal(totals[1], totals[0], 'bytes in the log: ' + named(name, settings))
                equal(disks[1], disks[0], 'EXPLAIN, Disk: ' + named(name, settings))
        clean(cluster, 'accounting')
        healthy(cluster, 'accounting')


def limit(cluster, cur, sql, whole, name):
    fits, fails = -(-whole // 1024), (whole - 1) // 1024
    cur.execute('SET temp_file_limit = %d' % fits)
    equal(error(cur, consume(sql)), (None, ''), 'temp_file_limit that is enough: ' + name)
    cur.execute('SET temp_file_limit = %d' % fails)
    equal(error(cur, consume(sql))[0], LIMIT_EXCEEDED, 'and one that is not: ' + name)
    clean(cluster, name)


def damage():
    """Each file of an open cursor, one at a time: cut off, or with other bytes in it."""
    with server() as cluster:
        for name, sql, settings in ways():
            if name != 'begins again':
                for how in (cut_off, overwrite):
                    if how == cut_off or name not in ('spool', 'keys', 'heap'):
                        damage_each(cluster, named(name, settings), sql, settings, how)
        healthy(cluster, 'damage')


def cut_off(path):
    os.truncate(path, 0)


def overwrite(path):
    size = os.path.getsize(path)
    with open(path, 'r+b') as f:
        f.write(b'\x55' * size)


def damage_each(cluster, name, sql, settings, how):
    tried = set()
    for number in range(50):
        cur = striped(cluster, 2, **settings)
        cur.execute('BEGIN; DECLARE c NO SCROLL CURSOR FOR ' + sql)
        rows(cur, 'FETCH 20 FROM c')
        files = [f for f in cluster.temp_files() if os.path.getsize(os.path.join(cluster.data, f)) > 300000]
        if number >= len(files):
            break
        lengths = {os.path.basename(f): os.path.getsize(os.path.join(cluster.data, f)) for f in files}
        how(os.path.join(cluster.data, files[number]))
        code, message = error(cur, 'FETCH ALL FROM c')
        if code is None and settings['work_mem'] == '64kB':
            cur.connection.close()      # runs that have been merged already
            continue
        tried.add(files[number].split('/')[1])
        about = message.split('of a sort is damaged')[0]
        wanted = os.path.basename(files[number])
        others = [f for f in files if os.path.basename(f) in about and os.path.basename(f) != wanted]
        check(code == DAMAGED and wanted in about, '%s, %s, file %d: XX001 and its name' % (name, how.__name__, number),
              '%s\n%s\n%s of %s' % (code, message, files[number], files))
        check(len(others) <= 1 and (not others or '" or "' in about),
              '%s, %s, file %d: no other name, but of a block in two files' % (name, how.__name__, number), message)
        place = re.search(r'at offset (\d+(?: or \d+)*)\.', message)
        names, offsets = re.findall(r'pgsql_tmp\d+\.\d+', about), place.group(1).split(' or ') if place else []
        check(len(names) == len(offsets) and all(int(o) < lengths.get(n, 0) for n, o in zip(names, offsets)),
              '%s, %s, file %d: an offset in each file that is named' % (name, how.__name__, number), (message, lengths))
        if code == 'lost':
            return
        cur.execute('ROLLBACK')
        usable(cur, cluster, name)
        cur.connection.close()
    cur.connection.close()
    equal(len(tried), 2, '%s, %s: errors with files in both tablespaces' % (name, how.__name__))


def no_space():
    """One of two tablespaces is full: that is the error, with the name of a file there."""
    with server() as cluster, common.small_disk(cluster, 'one of two tablespaces is full') as place:
        if place is not None:
            fill_up(cluster, place)


def fill_up(cluster, place):
    cur = common.core(cluster)
    oid = value(cur, "SELECT oid FROM pg_tablespace WHERE spcname = 'small'")
    cur.connection.close()
    for name, sql, settings in ways():
        cur = striped(cluster, **settings)
        cur.execute('SET temp_tablespaces = one, small')
        if name in ('keys', 'heap'):
            continue            # too little
        code, message = error(cur, consume(sql))
        check(code == DISK_FULL and 'pg_tblspc/%d/' % oid in message and 'No space left' in message,
              'no space left in one tablespace: ' + named(name, settings), (code, message))
        clean(cluster, 'no space left')
        cur.connection.close()
    subprocess.run(['mount', '-o', 'remount,size=100m', place], check=True)
    equal(error(striped(cluster, work_mem='256kB'), consume(WIDE)), (None, ''), 'with enough space')
    mixed(cluster)
    healthy(cluster, 'no space left')


def mixed(cluster):
    """A file system that can be read past the page cache, and one that perhaps cannot."""
    right = value(common.core(cluster, work_mem='1GB'), digest(WIDE))
    for n in (0, 1):
        cur = striped(cluster, work_mem='1MB', **threads(n), **{'wiscsort.record_store': 'inline'})
        cur.execute('SET temp_tablespaces = one, small')
        equal(value(cur, digest(WIDE)), right, 'two kinds of file systems, %d threads' % n)
        cur.connection.close()


def left_behind():
    """After errors and cancelled statements: no file, descriptor or mapping more than before."""
    with server() as cluster:
        for name, sql, settings in ways():
            cur = striped(cluster, 3, **settings)
            pid = common.backend(cur)

            def state():
                return (len(os.listdir('/proc/%d/fd' % pid)), sum(1 for _ in open('/proc/%d/maps' % pid)))
            # of one row only, among the last ones of the table
            failing = consume(sql.replace('SELECT ', 'SELECT 1 / (k::int8 - (SELECT k FROM %s OFFSET %d LIMIT 1)), '
                                          % (('narrow', 270000) if sql == KEYS else ('t', ROWS * 0.9)), 1))
            before = None
            stopped = 0
            for turn in range(6):
                equal(error(cur, failing)[0], '22012', 'a row fails: ' + named(name, settings))
                common.set_timeout(cur, 5 + 25 * turn)
                stopped += error(cur, consume(sql))[0] == '57014'
                common.set_timeout(cur, 0)
                cur.execute('BEGIN; DECLARE c CURSOR FOR ' + sql)
                rows(cur, 'FETCH 1000 FROM c')
                cur.execute('ROLLBACK')
                if turn == 2:
                    before = state()
            after = state()
            check(stopped > 0, 'some are cancelled: ' + named(name, settings), stopped)
            check(after[0] - before[0] <= 2 and after[1] - before[1] <= 2,
                  'descriptors and mappings do not add up: ' + named(name, settings), (before, after))
            usable(cur, cluster, named(name, settings))
            cur.connection.close()
        healthy(cluster, 'left behind')


def few_descriptors():
    """A server that allows each process few files."""
    with server(max_files_per_process=64) as cluster:
        core = common.core(cluster, work_mem='1GB')
        right = value(core, digest(WIDE))
        for store in ('spool', 'inline'):
            many = striped(cluster, 3, work_mem='256kB', **threads(1), **{'wiscsort.record_store': store})
            many.execute('BEGIN')
            for i in range(12):
                many.execute('DECLARE c%d NO SCROLL CURSOR FOR %s' % (i, PLAIN))
                rows(many, 'FETCH 10 FROM c%d' % i)
            equal(value(many, digest(WIDE)), right, 'many sorts and few descriptors: ' + store)
            many.execute('ROLLBACK')
            many.connection.close()
        clean(cluster, 'few descriptors')
        healthy(cluster, 'few descriptors')


if __name__ == '__main__':
    common.run([same_rows, shares, accounting, damage, no_space, left_behind, few_descriptors])
