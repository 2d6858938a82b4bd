#!/usr/bin/python3
"""Temporary files that are damaged behind the sort's back: each kind of damage is
an ERROR with SQLSTATE XX001 that names the file and the place in it, never a crash
and never a wrong row; the session goes on and nothing is left behind."""

import os
import re
import struct
import threading

import common
from common import check, clean, equal, error, healthy, rows, session, skip, usable, uses

DAMAGED = 'XX001'
ROWS = 120000
QUERY = 'SELECT i, k, pad FROM t ORDER BY k, i'
SPOOL, RUN = b'wisc', b'WRUN'
ROWS_MAGIC = b'WROW'
# What a DETAIL says of the place: of a run its block, of a spool the offset.
PLACE = re.compile(r'This is (?:(?:(block \d+)|the header) of run \d+, )?at offset (\d+)\.')
LARGEST_BLOCK = 32768


def table(cluster):
    cur = common.core(cluster)
    cur.execute("CREATE TABLE t AS SELECT i, hashint8(i) AS k, repeat('y', 40) AS pad"
                ' FROM generate_series(1, %d) i' % ROWS)
    cur.execute('''
        CREATE FUNCTION gate(i int4, stop int4) RETURNS int4 LANGUAGE plpgsql AS $$
        BEGIN
            IF i = stop THEN PERFORM pg_advisory_xact_lock_shared(42); END IF;
            RETURN i;
        END $$''')
    cur.connection.close()


def files(cluster, magic):
    """Full names of the temporary files that start with these bytes."""
    found = []
    for name in cluster.temp_files():
        path = os.path.join(cluster.data, name)
        with open(path, 'rb') as f:
            start = f.read(8)
        # a run of rows begins with a checksum
        if (start[4:] if magic == ROWS_MAGIC else start[:4]) == magic:
            found.append(path)
    return found


def overwrite(path, offset, data):
    with open(path, 'r+b') as f:
        f.seek(offset)
        f.write(data)


def flip(path, offset):
    """Changes one bit."""
    with open(path, 'r+b') as f:
        f.seek(offset)
        byte = f.read(1)[0]
        f.seek(offset)
        f.write(bytes([byte ^ 4]))
    return offset


def fill(byte, first, last=1.0):
    """Overwrites a part of the file, given as shares of its length."""
    def damage(path):
        size = os.path.getsize(path)
        start, end = int(size * first), int(size * last)
        overwrite(path, start, bytes([byte]) * (end - start))
    return damage


def cut(share):
    return lambda path: os.truncate(path, int(os.path.getsize(path) * share))


def swap(path):
    """Exchanges two stretches of the file: intact, but in each other's place."""
    size = os.path.getsize(path)
    length = size // 8 // 16 * 16
    with open(path, 'r+b') as f:
        f.seek(size // 2 // 16 * 16)
        one = f.read(length)
        two = f.read(length)
        f.seek(size // 2 // 16 * 16)
        f.write(two + one)


def headers(change):
    """Changes the header of each row of the spool: the fields t_infomask2 and t_infomask, which
    hold its number of columns and its length (store/row.h)."""
    def damage(path):
        with open(path, 'rb') as f:
            data = bytearray(f.read())
        for at in range(26, len(data) - 6, 8):
            columns, mask, offset = struct.unpack_from('<HHB', data, at)
            if columns & 0x7FF == 3 and offset == 24:
                struct.pack_into('<HH', data, at, *change(columns, mask))
        overwrite(path, 0, data)
    return damage


HEADER_DAMAGE = [('with a column too many', headers(lambda columns, mask: (columns + 1, mask))),
                 ('with rows longer than the file',
                  headers(lambda columns, mask: (columns | 0xE000, mask & 0xF | 0xF3E0)))]
SPOOL_DAMAGE = [('emptied', cut(0)), ('cut in half', cut(0.5)), ('short of its last page', cut(0.99)),
                ('zeros in its middle', fill(0, 0.3, 0.7)), ('ones in its middle', fill(255, 0.3, 0.7))]
RUN_DAMAGE = [('emptied', cut(0)), ('cut in half', cut(0.5)), ('zeros behind its start', fill(0, 0.1)),
              ('ones in its middle', fill(255, 0.4, 0.9)), ('parts exchanged', swap),
              ('one bit changed', lambda path: flip(path, os.path.getsize(path) * 3 // 4))]
# What is written where a block has been read already is not noticed: all of the rest of a file is damaged.
ROWS_DAMAGE = [('emptied', cut(0)), ('cut in half', cut(0.5)), ('zeros behind its start', fill(0, 0.1)),
               ('ones in its middle', fill(255, 0.4, 0.9)),
               ('one bit changed', lambda path: flip(path, os.path.getsize(path) * 3 // 4))]


def while_reading():
    """Damage between two FETCHes of an open cursor."""
    with common.server() as cluster:
        table(cluster)
        for scroll in ('NO SCROLL', 'SCROLL'):
            for magic, kind, damages in ((SPOOL, 'spool', SPOOL_DAMAGE), (RUN, 'run', RUN_DAMAGE)):
                for name, damage in damages:
                    for memory, threads, store in (('64kB', 0, 'spool'), ('256kB', 0, 'spool'), ('256kB', 1, 'spool'),
                                                   ('256kB', 0, 'heap'), ('256kB', 1, 'heap')):
                        if store == 'heap' and magic == SPOOL:
                            continue
                        cursor_case(cluster, scroll, magic, '%s file %s, %s cursor, %s, %d threads, %s'
                                    % (kind, name, scroll, memory, threads, store),
                                    damage, helped(cluster, memory, threads, store))
        healthy(cluster, 'damage while reading')


def rows_of_keys():
    """The same where rows are made of the entries alone."""
    with common.server() as cluster:
        table(cluster)
        for scroll in ('NO SCROLL', 'SCROLL'):
            for name, damage in RUN_DAMAGE:
                for threads in (0, 1):
                    cursor_case(cluster, scroll, RUN, 'run file %s, %s, %d threads, keys' % (name, scroll, threads),
                                damage, helped(cluster, '256kB', threads, 'heap'),
                                'SELECT k FROM t ORDER BY k')
        healthy(cluster, 'damage to keys')


def rows_in_runs():
    """The same where rows travel inside runs, read with libaio or without."""
    with common.server() as cluster:
        table(cluster)
        for scroll in ('NO SCROLL', 'SCROLL'):
            for name, damage in ROWS_DAMAGE:
                for method, threads in (('sync', 0), ('sync', 1), ('libaio', 0)):
                    cur = helped(cluster, '256kB', threads, 'inline')
                    if not common.options.core:
                        cur.execute("SET wiscsort.io_method = '%s'" % method)
                    cursor_case(cluster, scroll, ROWS_MAGIC, 'run of rows %s, %s, %s, %d threads'
                                % (name, scroll, method, threads), damage, cur)
        healthy(cluster, 'damage to runs of rows')


def row_headers():
    """Rows whose headers make no sense, while they are read."""
    with common.server() as cluster:
        table(cluster)
        for name, damage in HEADER_DAMAGE:
            for memory, threads in (('64kB', 0), ('256kB', 1)):
                cursor_case(cluster, 'NO SCROLL', SPOOL, 'spool file %s, %d threads' % (name, threads),
                            damage, helped(cluster, memory, threads, 'spool'))
        healthy(cluster, 'damage to headers')


def two_faults():
    """Two pages that cannot be read, of two sorts, with the first error caught in a function."""
    with common.server() as cluster:
        table(cluster)
        cur = helped(cluster, '256kB', 0, 'spool')
        cur.execute('''
            CREATE FUNCTION caught(c refcursor) RETURNS int LANGUAGE plpgsql AS $$
            DECLARE
                r record;
            BEGIN
                LOOP
                    FETCH c INTO r;
                    EXIT WHEN NOT FOUND;
                END LOOP;
                RETURN 0;
            EXCEPTION WHEN data_corrupted THEN
                RETURN 1;
            END $$''')
        cur.execute('BEGIN')
        for name in 'a', 'b':
            cur.execute('DECLARE %s NO SCROLL CURSOR FOR %s' % (name, QUERY))
            cur.execute('MOVE 50 IN ' + name)
        for path in files(cluster, SPOOL):
            cut(0)(path)
        both = "DO $$ BEGIN IF caught('a') + caught('b') <> 2 THEN RAISE 'no error'; END IF; END $$"
        equal(error(cur, both), (None, ''), 'two faults in one statement, both caught')
        healthy(cluster, 'two faults')


def helped(cluster, memory, threads, store):
    """A session that leaves to helper threads all it can, or nothing."""
    settings = {'wiscsort.%s_threads' % work: threads for work in ('read', 'sort', 'write')}
    settings['wiscsort.record_store'] = store
    return session(cluster, work_mem=memory, **({} if common.options.core else settings))


def cursor_case(cluster, scroll, magic, name, damage, cur, query=QUERY):
    pid = common.backend(cur)
    cur.execute('BEGIN')
    cur.execute('DECLARE c %s CURSOR FOR %s' % (scroll, query))
    first = rows(cur, 'FETCH 50 FROM c')
    found = files(cluster, magic)
    if not check(found, name + ': there is such a file', cluster.temp_files()):
        return
    sizes = [os.path.getsize(path) for path in found]
    flipped = [damage(path) for path in found]
    code, message = error(cur, 'FETCH ALL FROM c')
    named(code, message, found, name)
    place = PLACE.search(message)
    if place:
        offset = int(place.group(2))
        check(offset < max(sizes), name + ': the offset is one in the file', (message, sizes))
        check(magic == SPOOL or place.group(1), name + ': the block of a run is named', message)
        at = [byte - offset for byte in flipped if byte is not None]
        check(not at or any(0 <= byte < LARGEST_BLOCK for byte in at),
              name + ': it is the block that was changed', (message, flipped))
    if code == 'lost':
        return
    cur.execute('ROLLBACK')
    check(len(first) == 50 and pid == common.backend(cur), name + ': the backend survives')
    usable(cur, cluster, name)
    cur.connection.close()


def named(code, message, found, name):
    """Checks that an error is that of damage, and names one of the files and a place in it."""
    of_these = any(os.path.basename(path) in message for path in found)
    check(code == DAMAGED and of_these and PLACE.search(message),
          name + ': XX001 with the name of the file and the place', (code, message))


def before_the_merge():
    """Damage to what was written while the input still comes."""
    with common.server() as cluster:
        table(cluster)
        cases = [('run header overwritten', RUN, lambda p: overwrite(p, 0, b'#' * 32)),
                 ('run header with another magic number', RUN, lambda p: overwrite(p, 0, b'NRUW')),
                 ('run header with another version', RUN, lambda p: flip(p, 4)),
                 ('run header with another count', RUN, lambda p: flip(p, 9)),
                 ('run file emptied', RUN, cut(0)),
                 ('first run block, one bit changed', RUN, lambda p: flip(p, 70)),
                 ('spool file emptied', SPOOL, cut(0))]
        for name, magic, damage in cases:
            for threads in (0, 1):
                gate_case(cluster, '%s, %d threads' % (name, threads), magic, damage, threads)
        healthy(cluster, 'damage before the merge')


def gate_case(cluster, name, magic, damage, threads):
    """The input waits for a lock in its last rows; then the file is damaged."""
    guard = common.core(cluster)
    guard.execute('SELECT pg_advisory_lock(42)')
    cur = helped(cluster, '256kB' if threads else '64kB', threads, 'spool')
    pid = common.backend(cur)
    sql = ('SELECT count(s.*) FROM (SELECT * FROM (SELECT gate(i, %d) AS i, k, pad FROM t OFFSET 0) r'
           ' ORDER BY k, i OFFSET 0) s' % (ROWS - 10))
    outcome = []
    thread = threading.Thread(target=lambda: outcome.append(error(cur, sql)))
    thread.start()
    waiting = 'SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %d' % pid
    for _ in range(1000):
        if common.value(guard, waiting):
            break
        thread.join(0.02)
    found = files(cluster, magic)
    check(found, name + ': there is such a file', cluster.temp_files())
    for path in found:
        damage(path)
    guard.connection.close()
    thread.join(60)
    code, message = outcome[0] if outcome else ('hangs', '')
    named(code, message, found, name)
    if code != 'lost':
        equal(common.backend(cur), pid, name + ': the backend survives')
        usable(cur, cluster, name)


def main():
    if common.options.core:
        skip('damaged files', "PostgreSQL's own sort does not check its files")
        return
    with common.server() as cluster:
        table(cluster)
        uses(session(cluster, work_mem='64kB'), QUERY)
    two_faults()
    row_headers()
    rows_of_keys()
    rows_in_runs()
    while_reading()
    before_the_merge()


if __name__ == '__main__':
    common.run([main])
