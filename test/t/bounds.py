#!/usr/bin/python3
"""What many sorts in one backend take: threads, descriptors, mappings, memory, address space.
Helpers begin where there is enough to do, end with the last row that they can give, and there are never
more than wiscsort.max_threads; address space follows the estimate, not work_mem."""

import os
import threading
import time

import common
from common import backend, check, core, equal, error, healthy, rows, session, value

SMALL_SORTS = 10000
UNION = 400


EXITING = 4                     # of a thread's flags: it has ended, but /proc has it for a moment yet


def threads_of(pid):
    """Threads of a process, without those that have ended and been joined."""
    count = 0
    for thread in os.listdir('/proc/%d/task' % pid):
        try:
            with open('/proc/%d/task/%s/stat' % (pid, thread)) as f:
                count += int(f.read().rsplit(')', 1)[1].split()[6]) & EXITING == 0
        except (FileNotFoundError, ProcessLookupError):
            pass
    return count


def state_of(pid):
    """Threads, descriptors, mappings, and kB of private memory of a process."""
    with open('/proc/%d/maps' % pid) as f:
        maps = len(f.readlines())
    with open('/proc/%d/status' % pid) as f:
        anon = [int(line.split()[1]) for line in f if line.startswith('RssAnon')][0]
    return {'threads': threads_of(pid), 'descriptors': len(os.listdir('/proc/%d/fd' % pid)),
            'mappings': maps, 'memory': anon}


def most_threads(cur, sql):
    """Runs a statement; gives the most threads the backend had meanwhile, beside its first."""
    pid = backend(cur)
    most = [0]
    done = threading.Event()

    def watch():
        while not done.wait(0.002):
            most[0] = max(most[0], threads_of(pid) - 1)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        cur.execute(sql)
        cur.fetchall()
    finally:
        done.set()
        watcher.join()
    return most[0]


def many_sorts():
    """Sorts one after the other, all of them open until the statement ends."""
    with common.server(shared_buffers='256MB') as cluster:
        core(cluster).execute("CREATE TABLE x AS SELECT hashint8(i) AS k, md5(i::text) AS v"
                              ' FROM generate_series(1, 12000) i; ANALYZE x')
        union = 'SELECT count(*), max(v) FROM (%s) u' % ' UNION ALL '.join(
            ['(SELECT k, v FROM x ORDER BY k OFFSET 0)'] * UNION)
        for forced in ('-1', '1'):
            cur = session(cluster, work_mem='1MB', max_parallel_workers_per_gather='0',
                          **{'wiscsort.%s_threads' % kind: forced for kind in ('read', 'sort', 'write')})
            cur.execute('SET max_stack_depth = \'2MB\'')
            most = most_threads(cur, union)
            check(1 <= most <= 4, '%d sorts, threads %s: at most 4 threads at a time' % (UNION, forced), most)
            for limit in (0, 1, 2):
                cur.execute('SET wiscsort.max_threads = %d' % limit)
                most = most_threads(cur, union)
                check(most <= limit, 'wiscsort.max_threads = %d, threads %s' % (limit, forced), most)
            cur.connection.close()
        healthy(cluster, 'many sorts')


def ends_with_the_last_row():
    """A cursor that has given its last row keeps no thread."""
    with common.server() as cluster:
        core(cluster).execute("CREATE TABLE x AS SELECT hashint8(i) AS k, i, repeat('x', 80) AS v"
                              ' FROM generate_series(1, 200000) i; ANALYZE x')
        for store in ('spool', 'heap', 'auto'):
            for columns in ('*', 'k'):
                for work_mem in ('1MB', '64MB'):
                    cur = session(cluster, work_mem=work_mem, max_parallel_workers_per_gather='0',
                                  **{'wiscsort.record_store': store, 'wiscsort.read_threads': '1',
                                     'wiscsort.sort_threads': '1', 'wiscsort.write_threads': '1'})
                    cur.execute('BEGIN')
                    cur.execute('DECLARE c NO SCROLL CURSOR FOR SELECT %s FROM x ORDER BY k' % columns)
                    cur.execute('MOVE 1 FROM c')
                    before = threads_of(backend(cur)) - 1
                    cur.execute('MOVE 199998 FROM c')
                    equal(len(rows(cur, 'FETCH 1 FROM c')), 1, 'the last row')
                    for _ in range(50):		# the thread that ends a file's mapping may take a moment
                        left = threads_of(backend(cur)) - 1
                        if left == 0:
                            break
                        time.sleep(0.02)
                    check(before <= 1 and left == 0, '%s, SELECT %s, %s: one helper reads, none is left'
                          % (store, columns, work_mem), (before, left))
                    cur.connection.close()
        healthy(cluster, 'last row')


def small_sorts():
    """A session is after thousands of sorts as it was after some."""
    with common.server() as cluster:
        cur = session(cluster, work_mem='64kB', **{'wiscsort.read_threads': '1', 'wiscsort.sort_threads': '1',
                                                   'wiscsort.write_threads': '1'})
        core(cluster).execute("CREATE TABLE x AS SELECT i, hashint8(i) AS k, md5(i::text) AS v"
                              ' FROM generate_series(1, 300) i; ANALYZE x')
        cur.execute('''CREATE FUNCTION sorts(n int) RETURNS int8 LANGUAGE plpgsql AS $$
            DECLARE total int8 := 0; m int8;
            BEGIN
                FOR j IN 1..n LOOP
                    IF j % 3 = 0 THEN
                        SELECT count(*) INTO m FROM (SELECT * FROM x ORDER BY k OFFSET 0) s;
                    ELSIF j % 3 = 1 THEN
                        SELECT count(*) INTO m FROM (SELECT * FROM x WHERE i % 2 = 0 ORDER BY v, i OFFSET 0) s;
                    ELSE
                        SELECT count(*) INTO m FROM (SELECT k FROM x ORDER BY k OFFSET 0) s;
                    END IF;
                    total := total + m;
                END LOOP;
                RETURN total;
            END $$''')
        rows(cur, 'SELECT sorts(1000)')
        before = state_of(backend(cur))
        rows(cur, 'SELECT sorts(%d)' % SMALL_SORTS)
        after = state_of(backend(cur))
        check(all(after[k] <= before[k] for k in ('threads', 'descriptors', 'mappings')) and
              after['memory'] <= before['memory'] + 512,
              '%d small sorts leave a session as it was' % SMALL_SORTS, (before, after))
        healthy(cluster, 'small sorts')


def address_space():
    """With the largest work_mem there is, hundreds of sorts take no more address space than they need."""
    with common.server() as cluster:
        core(cluster).execute("CREATE TABLE x AS SELECT hashint8(i) AS k, md5(i::text) AS v"
                              ' FROM generate_series(1, 3000) i; ANALYZE x')
        union = 'SELECT count(*), max(v) FROM (%s) u' % ' UNION ALL '.join(
            ['(SELECT k, v FROM x ORDER BY k, v OFFSET 0)'] * 300)
        wanted = rows(core(cluster), union)
        cur = session(cluster, work_mem='2147483647kB')
        code, message = error(cur, union)
        check(code is None and cur.fetchall() == wanted, '300 sorts with work_mem = 2147483647kB', message)
        healthy(cluster, 'address space')


def limited_address_space():
    """ulimit -v: what comes after a sort in the same query finds room, too."""
    import resource
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, before[1]))
    try:
        cluster = common.server(shared_buffers='32MB')
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    with cluster:
        core(cluster).execute("CREATE TABLE x AS SELECT hashint8(i) AS k, repeat(md5(i::text), 8) AS v"
                              ' FROM generate_series(1, 400000) i; ANALYZE x')
        sql = ('SELECT count(*), sum(length(v)) FROM (%s) u' % ' UNION ALL '.join(
            ['(SELECT k, v FROM x ORDER BY k, v OFFSET 0)'] * 6))
        wanted = value(core(cluster), 'SELECT 6 * count(*) FROM x')
        for work_mem in ('4MB', '1GB'):
            cur = session(cluster, work_mem=work_mem, **{'wiscsort.record_store': 'spool'})
            code, message = error(cur, sql)
            check(code is None and cur.fetchall()[0][0] == wanted,
                  'six sorts of 110 MB with 3 GB of address space, work_mem = %s' % work_mem, message)
            cur.connection.close()
        healthy(cluster, 'limited address space')


def read_ahead():
    """With -1 a thread reads ahead only where there is enough for it to do."""
    if common.options.core or len(os.sched_getaffinity(0)) < 2:
        return
    with common.server(shared_buffers='256MB') as cluster:
        core(cluster).execute('CREATE TABLE ahead AS SELECT hashint8(i)::int8 AS k, md5((i % 9000)::text) COLLATE "C" AS v, i'
                              ' FROM generate_series(1, 400000) i; ANALYZE ahead')
        for what, columns, key, memory, wanted in (
                ('little memory', 'k, i', 'k', '256kB', 0), ('exact keys', 'k, i', 'k', '2MB', 1),
                ('ties', 'v, i', 'v, i', '2MB', 1), ('keys alone', 'k', 'k', '2MB', 1),
                ('keys alone, little memory', 'k', 'k', '512kB', 0)):
            for forced in ('-1', '0', '1'):
                cur = session(cluster, work_mem=memory, max_parallel_workers_per_gather='0', **{
                    'wiscsort.record_store': 'auto' if columns == 'k' else 'spool', 'wiscsort.read_threads': forced,
                    'wiscsort.sort_threads': '0', 'wiscsort.write_threads': '0'})
                cur.execute('BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT %s FROM ahead ORDER BY %s' % (columns, key))
                rows(cur, 'FETCH 5 FROM c')
                equal(threads_of(backend(cur)) - 1, wanted if forced == '-1' else int(forced),
                      'read_threads %s: %s' % (forced, what))
                cur.connection.close()
        healthy(cluster, 'read ahead')


if __name__ == '__main__':
    common.run([many_sorts, ends_with_the_last_row, small_sorts, address_space, limited_address_space, read_ahead])
