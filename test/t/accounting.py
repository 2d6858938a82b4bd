#!/usr/bin/python3
"""What a sort uses is counted and bounded: temporary files in the statistics, in
the log and in EXPLAIN; memory; nothing grows with repetition."""

import json
import os
import re

import common
from common import check, clean, equal, healthy, rows, session, uses, value
from cluster import RssSampler, memory

NARROW = 'SELECT k FROM narrow ORDER BY k'
WIDE = 'SELECT k, pad FROM wide ORDER BY k'
TEXTS = 'SELECT k, t FROM texts ORDER BY t'
ALLOWANCE = 2 * 1024


def consume(sql):
    return 'SELECT count(s.*) FROM (%s OFFSET 0) s' % sql


def tables(cluster):
    cur = common.core(cluster)
    cur.execute('CREATE TABLE narrow AS SELECT hashint8(i) AS k FROM generate_series(1, 600000) i')
    cur.execute("CREATE TABLE wide AS SELECT hashint8(i) AS k, repeat('x', 200) AS pad"
                ' FROM generate_series(1, 200000) i')
    cur.execute("CREATE COLLATION icu (provider = icu, locale = 'de')")
    cur.execute("CREATE TABLE texts AS SELECT i AS k, ('the same beginning ' || hashint8(i)) COLLATE icu AS t"
                ' FROM generate_series(1, 100000) i')
    cur.execute('ANALYZE')
    # generate_series had temporary files, which its session's end may count too late
    value(cur, 'SELECT pg_stat_force_next_flush()')
    cur.connection.close()


def temporary_files():
    """pg_stat_database, log_temp_files, EXPLAIN (BUFFERS)."""
    with common.server(log_temp_files=0, log_min_messages='log') as cluster:
        tables(cluster)
        for sql in (NARROW, WIDE, TEXTS):
            cur = session(cluster, work_mem='256kB')
            uses(cur, sql)
            stat = ('SELECT pg_stat_force_next_flush(), temp_bytes::int8, temp_files::int8'
                    ' FROM pg_stat_database WHERE datname = current_database()')
            value(cur, stat)
            before = rows(cur, stat)[0]
            seen = len(cluster.log())
            rows(cur, consume(sql))
            value(cur, stat)
            after = rows(cur, stat)[0]
            sizes = common.logged_files(cluster.log()[seen:])
            check(sum(sizes) > 1000000, 'log_temp_files logs the files of: ' + sql, sizes)
            equal((int(after[1] - before[1]), int(after[2] - before[2])), (sum(sizes), len(sizes)),
                  'pg_stat_database counts the same bytes and files')
            plan = rows(cur, 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' + sql)[0][0]
            top = plan[0]['Plan'] if isinstance(plan, list) else json.loads(plan)[0]['Plan']
            written = top['Temp Written Blocks'] * 8192
            check(0.5 * sum(sizes) <= written <= 8 * sum(sizes), 'EXPLAIN (BUFFERS) counts temp written',
                  (written, sizes))
            check(top['Temp Read Blocks'] > 0, 'EXPLAIN (BUFFERS) counts temp read', top)
            if not common.options.core:
                disk = number(top['Disk'])
                check(0.8 * sum(sizes) <= disk * 1024 <= 1.2 * sum(sizes) + 65536,
                      'EXPLAIN ANALYZE: Disk', (disk, sizes))
                check(number(top['Memory']) <= 256 * 9 / 8,
                      'EXPLAIN ANALYZE: Memory is work_mem, an eighth more at most', top['Memory'])
            cur.connection.close()
        cur = session(cluster, work_mem='1GB')
        seen = len(cluster.log())
        rows(cur, consume(WIDE))
        equal(common.logged_files(cluster.log()[seen:]), [], 'within work_mem no file is written')
        clean(cluster, 'temporary files')
        healthy(cluster, 'temporary files')


def number(text):
    """The kilobytes of a property, whether it has its unit or not."""
    return int(str(text).replace('kB', '').strip())


def peak(cur, sql):
    """Most private memory of the backend while it runs the statement, kB."""
    with RssSampler(common.backend(cur), 0.002) as sampler:
        rows(cur, sql)
    return sampler.anon


def memory_bound():
    """Private memory stays within that of PostgreSQL's own sort + 2 MB: entries of the narrow rows alone would be
    9.6 MB."""
    with common.server() as cluster:
        tables(cluster)
        for size in ('4MB', '64kB', '32MB'):
            for sql in (NARROW, WIDE, TEXTS):
                # in one process, which is the one that is measured
                alone = {'work_mem': size, 'max_parallel_workers_per_gather': 0}
                cur, own = session(cluster, **alone), common.core(cluster, **alone)
                uses(cur, consume(sql))
                found, bound = peak(cur, consume(sql)), peak(own, consume(sql)) + ALLOWANCE
                check(found <= bound, 'memory at work_mem %s: %s' % (size, sql),
                      '%d kB instead of at most %d kB' % (found, bound))
                cur.connection.close()
                own.connection.close()


def large_rows():
    """Rows larger than blocks, one or two in each run, have memory only while they are in use."""
    sql = ("SELECT sum(octet_length(pad)) FROM (SELECT * FROM (SELECT hashint4(i) AS h, repeat('x', CASE WHEN i % 1000 = 0"
           ' AND i > 5000 THEN 5000000 ELSE 1000 END) AS pad FROM generate_series(1, 40000) i OFFSET 0) s'
           ' ORDER BY h OFFSET 0) r')
    with common.server() as cluster:
        alone = {'work_mem': '4MB', 'max_parallel_workers_per_gather': 0}
        cur, own = session(cluster, **{'wiscsort.record_store': 'inline'}, **alone), common.core(cluster, **alone)
        found = common.explain(cur, sql, ', ANALYZE')
        check('Record Store: inline' in found and int(re.search('Runs: ([0-9]+)', found)[1]) > 30, 'rows travel', found)
        said = int(re.search('Memory: ([0-9]+)', found)[1])
        found, bound = peak(cur, sql), peak(own, sql)
        check(found <= bound + ALLOWANCE + 5000, 'memory with large rows: those of core and one more', '%d kB, core %d kB' % (found, bound))
        check(5000 < said < found, 'EXPLAIN counts a large row that is in use', '%d of %d kB' % (said, found))


def repetition():
    """Many sorts in one session, one query that sorts many times, and many
    subtransactions that abort one: nothing grows."""
    with common.server() as cluster:
        tables(cluster)
        cur = session(cluster, work_mem='64kB')
        pid = common.backend(cur)

        def state():
            return (memory(pid)['RssAnon'], len(os.listdir('/proc/%d/fd' % pid)),
                    sum(1 for _ in open('/proc/%d/maps' % pid)))
        small = 'SELECT count(s.*) FROM (SELECT * FROM wide WHERE k % 5 = 0 ORDER BY k OFFSET 0) s'
        rescans = ('SELECT count(s.*), sum(s.n) FROM generate_series(1, %d) g, LATERAL (SELECT k, g AS n'
                   ' FROM (SELECT k, pad FROM wide LIMIT 600) w WHERE k %% 7 <> g %% 7'
                   ' ORDER BY k OFFSET 1) s')
        cur.execute('''
            CREATE FUNCTION failing(count int4) RETURNS int4 LANGUAGE plpgsql AS $$
            DECLARE
                r record;
                n int4 := 0;
            BEGIN
                FOR i IN 1 .. count LOOP
                    BEGIN
                        FOR r IN SELECT k, pad FROM (SELECT * FROM wide LIMIT 3000) s ORDER BY k LOOP
                            n := n + 1;
                            IF n % 100 = 0 THEN RAISE EXCEPTION 'stop'; END IF;
                        END LOOP;
                    EXCEPTION WHEN raise_exception THEN NULL;
                    END;
                END LOOP;
                RETURN n;
            END $$''')
        uses(cur, rescans % 10)
        cases = [('many sorts', [small] * 3, [small] * 30),
                 ('a sort that is repeated in one query', [rescans % 100], [rescans % 2500]),
                 ('sorts in subtransactions that abort', ['SELECT failing(10)'], ['SELECT failing(300)'])]
        for name, warm, many in cases:
            for sql in warm:
                rows(cur, sql)
            before = state()
            for sql in many:
                rows(cur, sql)
            after = state()
            check(after[0] - before[0] < 2048, name + ': memory does not grow',
                  'from %d kB to %d kB' % (before[0], after[0]))
            check(after[1] - before[1] <= 2, name + ': file descriptors do not add up',
                  (before[1], after[1]))
            check(after[2] - before[2] <= 10, name + ': mappings do not add up', (before[2], after[2]))
        during_one_query(cluster, rescans)
        clean(cluster, 'repetition')
        healthy(cluster, 'repetition')


def during_one_query(cluster, rescans):
    """The peak inside one query with many rescans, against few."""
    few, many = (peak(session(cluster, work_mem='64kB'), rescans % n) for n in (50, 2500))
    check(many - few < 4096, 'memory within a query that sorts many times',
          '%d kB with 50, %d kB with 2500' % (few, many))


if __name__ == '__main__':
    common.run([temporary_files, memory_bound, large_rows, repetition])
