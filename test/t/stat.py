#!/usr/bin/python3
"""wiscsort.stat counts what sorts did, exactly as EXPLAIN tells it and whatever becomes of them;
wiscsort.progress shows those that run; wiscsort.max_temp and wiscsort.log_min_temp."""

import json
import random
import re
import threading
import time

import psycopg2

import common
from common import check, equal, error, healthy, rows, skip, value

SHARED = {'shared_preload_libraries': 'wiscsort', 'compute_query_id': 'on', 'max_parallel_workers_per_gather': '0'}
FIELDS = ('sorts', 'aborted', 'one_pass', 'merge_pass', 'spool', 'heap', 'inline', 'keys', 'few', 'rows', 'temp_peak',
          'memory_peak', 'runs', 'merge_passes', 'blocks_direct', 'blocks_buffered', 'blocks_of_runs', 'read_stalls',
          'read_stall_seconds * 1e6', 'began_again', 'left_to_core', 'left_to_core_bytes')
PEAKS = ('temp_peak', 'memory_peak')
ALL = 'count(s.*) FROM (%s OFFSET 0) s'


def server(**more):
    cluster = common.server(preload=False, **dict(SHARED, **more))
    common.core(cluster).execute('CREATE EXTENSION wiscsort')
    return cluster


def session(cluster, **settings):
    return common.session(cluster, **dict({'work_mem': '64kB'}, **settings))


def tables(cur, count=20000):
    cur.execute("CREATE TABLE t AS SELECT i, hashint8(i) AS k, md5(i::text) AS m, i %% 10 AS few, repeat('x', 60) AS pad"
                ' FROM generate_series(1, %d) i' % count)
    cur.execute('CREATE TABLE u AS SELECT i AS j, hashint8(i + 1) AS l FROM generate_series(1, %d) i' % (count // 2))
    cur.execute('ANALYZE')


def stat(cur, where='true'):
    """All counts together, {name: number}."""
    wanted = ['%s(%s)' % ('max' if name in PEAKS else 'sum', name) for name in FIELDS]
    cur.execute('SELECT %s FROM wiscsort.stat WHERE %s' % (', '.join(wanted), where))
    return {name: round(found or 0) for name, found in zip(FIELDS, cur.fetchone())}


def total(cur):
    found = stat(cur)
    return found['sorts'] + found['aborted'] + found['left_to_core']


def kilobytes(count):
    return (count + 1023) // 1024


def up_to(number):
    """The work_mem of an element of one_pass_at, in kB."""
    return (4 + number % 4) * 16 << number // 4


# --- against EXPLAIN --------------------------------------------------------------------------------

def nodes(plan):
    yield plan
    for child in plan.get('Plans', []):
        yield from nodes(child)


def explained(plan):
    """The same, by the fields of EXPLAIN."""
    found = dict.fromkeys(FIELDS, 0)
    for node in nodes(plan):
        if node.get('Sort Space Type') == 'Disk':
            found['left_to_core'] += 1
            found['left_to_core_bytes'] += node['Sort Space Used'] * 1024
        if 'IndexMap Entries' not in node:
            continue
        found['sorts'] += 1
        found[node['Sort Method'].split()[1].replace('-', '_')] += 1
        found[node['Record Store'].split(',')[0].replace(' rows', '')] += 1
        found['began_again'] += 'Began Again At Row' in node
        found['temp_peak'] = max(found['temp_peak'], node['Disk'])
        found['memory_peak'] = max(found['memory_peak'], node['Memory'])
        for name, field in (('rows', 'IndexMap Entries'), ('runs', 'Runs'), ('merge_passes', 'Merge Passes'),
                            ('blocks_direct', 'Blocks Direct'), ('blocks_buffered', 'Blocks Buffered'),
                            ('blocks_of_runs', 'Read Order Blocks'), ('read_stalls', 'Read Stalls')):
            found[name] += node.get(field, 0)
        found['read_stall_seconds * 1e6'] += round(node.get('Read Stall Time', 0) * 1000)
    return found


def exact():
    """Random sorts: what is counted is what EXPLAIN (ANALYZE) says."""
    chance = random.Random(20)
    wrong, seen = [], dict.fromkeys(FIELDS, 0)
    with server(shared_buffers='256kB') as cluster:
        cur = session(cluster)
        tables(cur)
        for number in range(500):
            store = chance.choice(('auto', 'heap', 'spool', 'inline'))
            settings = {'wiscsort.record_store': store, 'work_mem': chance.choice(('64kB', '128kB', '1MB', '8MB')),
                        'wiscsort.enable': chance.choice(('on', 'on', 'on', 'off')),
                        'wiscsort.direct_read': chance.choice(('on', 'off')),
                        'wiscsort.debug_few': chance.choice(('-1', '-1', '300')),
                        'wiscsort.debug_again': chance.choice(('-1', '-1', '0', '700')),
                        'enable_hashjoin': 'off', 'enable_nestloop': 'off'}
            for name, setting in settings.items():
                cur.execute('SELECT set_config(%s, %s, false)', (name, setting))
            keys = ', '.join(chance.choice(('k', 'm DESC', 'i', 'few', 'pad', 'm COLLATE "C"'))
                             for _ in range(chance.randint(1, 3)))
            sql = chance.choice(('SELECT * FROM t WHERE i <= %d ORDER BY %s',
                                 'SELECT i, k, m, few, pad FROM t WHERE i <= %d ORDER BY %s LIMIT 7000',
                                 'SELECT i FROM t WHERE i <= %d ORDER BY i',
                                 'SELECT i, k, m, few, pad FROM t, u WHERE i = j AND i <= %d ORDER BY %s',
                                 'SELECT few, count(DISTINCT k) FROM t WHERE i <= %d GROUP BY few, i ORDER BY 2, 1'))
            parts = (chance.choice((0, 300, 5000, 20000)), keys)
            sql = sql % parts[:sql.count('%')]
            value(cur, 'SELECT wiscsort.stat_reset()')
            plan = rows(cur, 'EXPLAIN (ANALYZE, FORMAT JSON) ' + sql)[0][0]
            plan = (plan if isinstance(plan, list) else json.loads(plan))[0]['Plan']
            found, wanted = stat(cur), explained(plan)
            for name in PEAKS:
                found[name] = kilobytes(found[name])
            if found != wanted:
                wrong.append((number, settings, sql, {n: (found[n], wanted[n]) for n in FIELDS if found[n] != wanted[n]}))
            seen = {name: seen[name] + wanted[name] for name in FIELDS}
        check(not wrong, '500 sorts: counted as EXPLAIN says', '%d wrong, first %s' % (len(wrong), wrong[:3]))
        idle = [name for name, count in seen.items() if count == 0 and name not in ('aborted', 'read_stalls')]
        equal(idle, [], 'there was something of everything')
        healthy(cluster, 'exact')


def bytes_and_times():
    with server() as cluster:
        cur = session(cluster)
        tables(cur)
        for store in ('spool', 'heap', 'inline'):
            value(cur, 'SELECT wiscsort.stat_reset()')
            cur.execute('SET wiscsort.record_store = ' + store)
            rows(cur, 'SELECT * FROM t ORDER BY m')
            found = rows(cur, 'SELECT spool_bytes, run_bytes, temp_bytes, temp_peak, input_seconds, sort_seconds,'
                         ' output_seconds, one_pass_at, merge_passes, io_refused FROM wiscsort.stat WHERE sorts > 0')[0]
            spooled, runs, temp, peak = map(int, found[:4])
            equal(temp, peak, store + ': of one sort the sum is the peak')
            if store == 'inline':
                check(spooled == 0 and runs >= 20000 * 90, store + ': rows are in runs', found)
            else:
                check((spooled > 20000 * 90) == (store == 'spool') and runs >= 320000, store + ': rows and entries', found)
                check(found[8] > 1 or 0 <= temp - spooled - runs <= 65536, store + ': all files are the spool and runs', found)
            check(found[4] > 0 and found[6] > 0, store + ': it took time', found)
            # rows would have to be in memory (about 2.5 MB); of others their entries would (320 kB)
            equal((sum(found[7]), len(found[7])), (1, 82), store + ': with how much memory it would be one pass')
            need = found[7].index(1)
            least, most = (2048, 4096) if store == 'inline' else (320, 512)
            check(least <= up_to(need) <= most, store + ': about how much that is', up_to(need))
            for kb, passes in ((up_to(need), 'one-pass'), (up_to(need - 1), 'merge')):
                cur.execute("SET work_mem = '%dkB'" % kb)
                plan = '\n'.join(row[0] for row in rows(cur, 'EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM t ORDER BY m'))
                check(passes in plan, '%s: with %d kB it is %s' % (store, kb, passes), plan)
            cur.execute("SET work_mem = '64kB'")
            equal(found[9], 0, store + ': nothing was refused')
        value(cur, 'SELECT wiscsort.stat_reset()')
        rows(cur, 'SELECT g, s.i FROM generate_series(1, 30) g, LATERAL (SELECT i FROM t WHERE i % 100 = g'
                  ' ORDER BY k OFFSET 1) s')
        found = stat(cur)
        equal((found['sorts'], found['rows']), (30, 30 * 200), 'each rescan is a sort')
        value(cur, 'SELECT wiscsort.stat_reset()')
        cur.execute('SET wiscsort.track = off')
        rows(cur, 'SELECT * FROM t ORDER BY m')
        equal(total(cur), 0, 'nothing is counted with wiscsort.track = off')


def workload():
    with server() as cluster:
        cur = session(cluster)
        other = common.core(cluster)        # whose own sorts are not counted
        tables(cur)
        equal(rows(other, 'SELECT * FROM wiscsort.advise_workload()'), [], 'of no sorts there is nothing to advise')
        cur.execute('SET wiscsort.record_store = spool')
        for _ in range(3):
            rows(cur, 'SELECT * FROM t ORDER BY k')
        for _ in range(17):
            rows(cur, 'SELECT * FROM t WHERE i <= 1000 ORDER BY k')
        # 20,000 entries take 320 kB, 1,000 take 16 kB
        for share, wanted in (0.95, 384), (0.85, 64), (1, 384):
            found = rows(other, 'SELECT sorts, one_pass_now, work_mem_kb FROM wiscsort.advise_workload(%s)' % share)
            equal(found, [(20, 0.85, wanted)], 'one pass for a share of %s' % share)
        for share in '0', '-0.5', '1.001', "'NaN'":
            code, said = error(other, 'SELECT * FROM wiscsort.advise_workload(%s)' % share)
            check(code == '23514' and 'above 0 and at most 1' in said, 'a share of %s is refused' % share, said)
        cur.execute("SET work_mem = '%dkB'" % wanted)
        found = [row[0] for row in rows(cur, 'EXPLAIN ANALYZE SELECT * FROM t ORDER BY k')]
        check(any('one-pass' in line for line in found), 'with what is advised it is one pass', found)
        other.execute('GRANT SELECT ON t TO PUBLIC')
        value(cur, 'SELECT wiscsort.stat_reset()')
        for role in 'gone', 'too':
            other.execute('CREATE ROLE ' + role)
            cur.execute('SET ROLE ' + role)
            rows(cur, 'SELECT * FROM t ORDER BY k')
            cur.execute('RESET ROLE')
            other.execute('DROP ROLE ' + role)
        found = rows(other, 'SELECT usename, sorts, one_pass_now, work_mem_kb FROM wiscsort.advise_workload()')
        equal(found, [(None, 1, 1, 384)] * 2, 'roles that have been dropped have a row each')


def parallel():
    """Workers' sorts are those of the query."""
    with server(max_parallel_workers_per_gather='2', min_parallel_table_scan_size='0', parallel_setup_cost='0',
                parallel_tuple_cost='0') as cluster:
        cur = session(cluster, **{'wiscsort.debug_force': 'off', 'wiscsort.threshold': '64kB'})
        tables(cur, 60000)
        cur.execute('SET wiscsort.record_store = spool')
        plan = rows(cur, 'EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM t ORDER BY k')[0][0][0]['Plan']
        kinds = [node.get('Custom Plan Provider', node['Node Type']) for node in nodes(plan)]
        check('Gather Merge' in kinds and 'WiscSort' in kinds, 'the sort is parallel', kinds)
        gather = [node for node in nodes(plan) if node['Node Type'] == 'Gather Merge'][0]
        found = rows(cur, 'SELECT query_id, sorts, rows FROM wiscsort.stat WHERE sorts > 0')
        equal([(r[1], int(r[2])) for r in found], [(gather['Workers Launched'] + 1, 60000)],
              'all processes count for one query')
        cur.execute('SET wiscsort.enable = off')
        value(cur, 'SELECT wiscsort.stat_reset()')
        plan = rows(cur, 'EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) SELECT * FROM t ORDER BY k')[0][0][0]['Plan']
        sort = [node for node in nodes(plan) if node['Node Type'] == 'Sort'][0]
        # a worker that came late may have had few rows
        spilled = [by for by in [sort] + sort.get('Workers', []) if by.get('Sort Space Type') == 'Disk']
        check(len(spilled) > 0, "core's sorts spill", sort)
        equal(stat(cur)['left_to_core'], len(spilled), "and so do core's")
        healthy(cluster, 'parallel')


# --- many at once -----------------------------------------------------------------------------------

def at_once():
    """Sessions that sort and fail, others that reset and look: each sort is counted once."""
    sessions, each = 64, 16
    with server(max_connections='90') as cluster:
        cur = session(cluster)
        tables(cur, 3000)
        value(cur, 'SELECT wiscsort.stat_reset()')
        forgotten, problems, over = [], [], threading.Event()

        def work(number):
            try:
                mine = session(cluster)
                for turn in range(each):
                    store = ('spool', 'heap', 'inline', 'auto')[(number + turn) % 4]
                    mine.execute('SET wiscsort.record_store = ' + store)
                    if turn % 4 == 3:
                        code, _ = error(mine, 'SELECT * FROM (SELECT i / (i - 2900) AS a, m FROM t OFFSET 0) s ORDER BY a, m')
                        if code != '22012':
                            problems.append(code)
                    else:
                        mine.execute('SELECT %s FROM t ORDER BY %s' % (('m', 'k, m')[turn % 2], ('m', 'k')[number % 2]))
                mine.connection.close()
            except psycopg2.Error as e:
                problems.append(e)

        def look(reset):
            try:
                mine = session(cluster)
                while not over.is_set():
                    if reset:
                        forgotten.append(int(value(mine, 'SELECT wiscsort.stat_reset()')))
                    rows(mine, 'SELECT * FROM wiscsort.stat')
                    rows(mine, 'SELECT * FROM wiscsort.progress')
                    time.sleep(0.005)
            except psycopg2.Error as e:
                problems.append(e)
        workers = [threading.Thread(target=work, args=(n,)) for n in range(sessions)]
        lookers = [threading.Thread(target=look, args=(n < 2,)) for n in range(3)]
        for thread in workers + lookers:
            thread.start()
        for thread in workers:
            thread.join()
        over.set()
        for thread in lookers:
            thread.join()
        equal(problems, [], '%d sessions at once: no error' % sessions)
        equal(sum(forgotten) + total(cur), sessions * each, 'each sort is counted once, resets or not')
        check(sum(count > 0 for count in forgotten) > 1, 'there were resets in between', forgotten)
        equal(rows(cur, 'SELECT * FROM wiscsort.progress'), [], 'and no sort is shown any more')
        healthy(cluster, 'at once')


def many_queries():
    """More queries than there is room for: the oldest give way, and nothing is lost."""
    with server() as cluster:
        cur = session(cluster)
        cur.execute('CREATE TABLE s AS SELECT i FROM generate_series(1, 50) i')
        value(cur, 'SELECT wiscsort.stat_reset()')
        count = 1200
        for number in range(count):
            cur.execute('SELECT * FROM s ORDER BY i%s' % ''.join('+-'[number >> bit & 1] + '1' for bit in range(11)))
        equal(total(cur), count, '%d queries: all are counted' % count)
        found = rows(cur, 'SELECT count(*), count(query_id), max(sorts) FROM wiscsort.stat WHERE sorts > 0')[0]
        info = rows(cur, 'SELECT stats_since < now(), rows_given_up, max_rows FROM wiscsort.stat_info')[0]
        check(found[0] <= info[2] and found[0] == found[1] + 1 and found[2] > 1, 'in fewer rows, one of them without query',
              (found, info))
        check(info[0] and info[1] > 0, 'which the view of itself says', info)
        newest = value(cur, "SELECT count(*) FROM wiscsort.stat WHERE sorts = 1 AND query_id IS NOT NULL")
        equal(newest, found[1], 'each of the others has its own')
        cur.execute('SET compute_query_id = off')
        value(cur, 'SELECT wiscsort.stat_reset()')
        rows(cur, 'SELECT * FROM s ORDER BY i')
        equal(rows(cur, 'SELECT query_id, sorts FROM wiscsort.stat'), [(None, 1)], 'without query identifiers')
        cur.execute('SET compute_query_id = on')
        value(cur, 'SELECT wiscsort.stat_reset()')
        for number in range(info[2]):
            cur.execute('SELECT * FROM s ORDER BY i%s' % ''.join('+-'[number >> bit & 1] + '1' for bit in range(11)))
        equal(value(cur, 'SELECT rows_given_up FROM wiscsort.stat_info'), 0, 'as many queries as there is room for')
        cur.execute('SET compute_query_id = off')
        rows(cur, 'SELECT * FROM s ORDER BY i')
        check(value(cur, 'SELECT rows_given_up FROM wiscsort.stat_info') > 0, 'one without identifier takes room')
        equal(value(cur, 'SELECT count(*) FROM wiscsort.stat WHERE query_id IS NULL'), 1, 'in one row with the oldest')
        equal(total(cur), info[2] + 1, 'nothing is lost')


# --- what does not end well -------------------------------------------------------------------------

def slow(row, lock=1, count=20000):
    """A sort whose input waits for a lock when it comes to a row."""
    return ('SELECT i, x FROM (SELECT i, CASE WHEN i = %d THEN pg_advisory_lock(%d)::text END AS x'
            ' FROM generate_series(1, %d) i OFFSET 0) s ORDER BY hashint8(i)' % (row, lock, count))


def started(cur, statement):
    """Runs a statement in a thread, which is returned with a list of what its outcome is to be."""
    outcome = []
    thread = threading.Thread(target=lambda: outcome.append(error(cur, statement)[0]))
    thread.start()
    return thread, outcome


def wait_for(cur, sql):
    """The row of a query, once there is one."""
    for _ in range(600):
        found = rows(cur, sql)
        if found:
            return found[0]
        time.sleep(0.02)
    return None


def aborted():
    with server() as cluster:
        cur, other = session(cluster), session(cluster)
        tables(cur)
        rows(cur, 'SELECT wiscsort.stat_reset()')

        def ends(name, counted, finished=0):
            found = stat(other)
            equal((found['aborted'], found['sorts'], rows(other, 'SELECT pid FROM wiscsort.progress')),
                  (counted, finished, []), name)
            value(other, 'SELECT wiscsort.stat_reset()')
        equal(error(cur, 'SELECT 1 / (i - 19999) AS a, pad FROM t ORDER BY a, k')[0], '22012', 'an error in the input')
        check(stat(other)['temp_peak'] > 1000000, 'what it has written is known', stat(other))
        ends('an aborted sort is counted as that', 1)
        rows(cur, 'SELECT * FROM t ORDER BY k LIMIT 7000')
        ends('one that is not read to its end is not', 0, 1)
        cur.connection.autocommit = False
        cur.execute('DECLARE c CURSOR FOR SELECT * FROM t ORDER BY k; FETCH 10 FROM c; SAVEPOINT p')
        cur.execute('DECLARE d CURSOR FOR SELECT * FROM t ORDER BY m; FETCH 10 FROM d; ROLLBACK TO p; CLOSE c')
        cur.connection.commit()
        ends('a cursor of a savepoint, and another one', 1, 1)
        cur.execute('DECLARE c CURSOR FOR SELECT * FROM t ORDER BY k; FETCH 10 FROM c')
        cur.connection.rollback()
        cur.connection.autocommit = True
        ends('a cursor of a transaction that is rolled back', 1)
        cur.execute('DECLARE c CURSOR WITH HOLD FOR SELECT * FROM t ORDER BY k')
        cur.execute('CLOSE c')
        ends('WITH HOLD', 0, 1)
        rows(cur, "DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM t ORDER BY k LOOP RAISE 'x'; END LOOP;"
                  " EXCEPTION WHEN OTHERS THEN NULL; END $$; SELECT 1")
        ends('in a subtransaction of a function', 1)
        value(other, 'SELECT pg_advisory_lock(1)')
        for how, code in (('cancel', '57014'), ('terminate', '57P01')):
            victim = session(cluster)
            thread, outcome = started(victim, slow(15000))
            found = wait_for(other, 'SELECT pid, rows_in FROM wiscsort.progress WHERE rows_in = 14999')
            check(found is not None, how + ': it waits', rows(other, 'SELECT * FROM wiscsort.progress'))
            value(other, 'SELECT pg_%s_backend(%d)' % (how, found[0]))
            thread.join()
            check(outcome in ([code], ['lost']), how, outcome)
            wait_for(other, 'SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %d AND state = %s)'
                     % (found[0], "'active'"))
            ends(how + ': counted, and no longer shown', 1)
        healthy(cluster, 'aborted')


# --- progress ---------------------------------------------------------------------------------------

def progress():
    with server() as cluster:
        cur, other = session(cluster, work_mem='256kB'), session(cluster)
        tables(cur)
        value(other, 'SELECT pg_advisory_lock(1)')
        thread, outcome = started(cur, slow(15000))
        what = ('SELECT phase, rows_in, rows_out, temp_bytes > 0, memory_bytes BETWEEN 65536 AND 400000, usename, datname,'
                ' query_id IS NOT NULL, node, leader_pid, rows_per_second > 0, estimated_end > began, input_seconds > 0'
                ' FROM wiscsort.progress WHERE rows_in = 14999')
        equal(wait_for(other, what), ('input', 14999, 0, True, True, 'postgres', 'postgres', True, 0, None, True, True, True),
              'a sort that reads its input')
        equal(value(other, 'SELECT pid FROM wiscsort.progress'), cur.connection.info.backend_pid, 'whose it is')
        value(other, 'SELECT pg_advisory_unlock(1)')
        thread.join()
        equal((outcome, rows(other, 'SELECT * FROM wiscsort.progress')), ([None], []), 'it has ended')
        cur.execute('BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT * FROM t ORDER BY k; FETCH 1234 FROM c')
        equal(rows(other, 'SELECT phase, rows_in, rows_out, rows_per_second > 0, estimated_end > began, output_seconds > 0'
                   ' FROM wiscsort.progress'), [('output', 20000, 1234, True, True, True)], 'a sort that hands rows out')
        for number in range(17):
            cur.execute('DECLARE c%d CURSOR FOR SELECT i FROM t ORDER BY k; FETCH 10 FROM c%d' % (number, number))
        equal(value(other, 'SELECT count(*) FROM wiscsort.progress'), 16, 'of one session sixteen are shown')
        cur.execute('COMMIT')
        equal(value(other, 'SELECT count(*) FROM wiscsort.progress'), 0, 'and then none')
        cur.execute('BEGIN; SET LOCAL wiscsort.debug_force = on')
        many = 'generate_series(1, 1000000)'
        thread, outcome = started(cur, 'SELECT a FROM %s a, %s b, %s c, %s d ORDER BY a' % ((many,) * 4))
        equal(wait_for(other, 'SELECT estimated_end FROM wiscsort.progress WHERE rows_in > 1000'), (None,),
              'a sort that ends in a million years')
        cur.connection.cancel()
        thread.join()
        equal(outcome, ['57014'], 'which is cancelled')
        cur.execute('ROLLBACK')
        merging(cluster, cur, other)
        healthy(cluster, 'progress')


def merging(cluster, cur, other):
    cur.execute("SET work_mem = '64kB'; SET wiscsort.record_store = inline")
    cur.execute("CREATE TABLE big AS SELECT hashint8(i) AS k, repeat('x', 100) AS pad FROM generate_series(1, 300000) i")
    for _ in range(10):
        thread, outcome = started(cur, 'SELECT count(s.*) FROM (SELECT * FROM big ORDER BY k OFFSET 0) s')
        phases = {}
        while thread.is_alive():
            for phase, merged in rows(other, 'SELECT phase, merged FROM wiscsort.progress'):
                phases[phase] = max(merged, phases.get(phase, 0))
        thread.join()
        merges = [re.fullmatch(r'merge pass (\d+) of (\d+)', phase) for phase in phases if phase.startswith('merge')]
        if merges and 'input' in phases and 'output' in phases:
            break
    check(merges and 'input' in phases and 'output' in phases, 'a sort that merges in several passes', phases)
    check(all(m and int(m[1]) < int(m[2]) for m in merges), 'a pass that is not the last', phases)
    check(max((phases[m[0]] for m in merges), default=0) > 0, 'which moves entries', phases)


# --- who may see it, and where it is not there ------------------------------------------------------

def privileges():
    with server() as cluster:
        cur, other = session(cluster), session(cluster)
        tables(cur, 3000)
        cur.execute('CREATE ROLE alice LOGIN; CREATE ROLE bob LOGIN; CREATE ROLE monitor LOGIN;'
                    ' GRANT pg_read_all_stats TO monitor; GRANT SELECT ON t TO alice')
        value(cur, 'SELECT wiscsort.stat_reset()')
        cur.execute('SET ROLE alice')
        rows(cur, 'SELECT * FROM t ORDER BY k')
        cur.execute('BEGIN; DECLARE c CURSOR FOR SELECT * FROM t ORDER BY m; FETCH 5 FROM c')
        for role, sees in (('alice', True), ('bob', False), ('monitor', True), ('postgres', True)):
            other.execute('SET ROLE ' + role)
            found = rows(other, "SELECT usename, query_id IS NOT NULL, sorts, rows IS NOT NULL, one_pass_at IS NOT NULL"
                         " FROM wiscsort.stat WHERE usename = 'alice'")
            equal(found, [('alice', sees, 1 if sees else None, sees, sees)], 'stat, as ' + role)
            found = rows(other, 'SELECT usename, pid IS NOT NULL, phase IS NOT NULL, rows_in IS NOT NULL,'
                         ' estimated_end IS NOT NULL FROM wiscsort.progress')
            equal(found, [('alice', True, sees, sees, sees)], 'progress, as ' + role)
            wanted = None if role == 'postgres' else '42501'
            for name, setting in (('track', 'off'), ('max_temp', '1MB'), ('log_min_temp', '1MB')):
                equal(error(other, "SET wiscsort.%s = '%s'" % (name, setting))[0], wanted, '%s, as %s' % (name, role))
            if wanted is not None:
                equal(error(other, 'SELECT wiscsort.stat_reset()')[0], wanted, 'stat_reset, as ' + role)
        cur.execute('COMMIT')


def without_memory():
    """Sorting needs none of it; asking for it without says what to do."""
    with common.server() as cluster:
        cur = session(cluster)
        cur.execute('CREATE EXTENSION wiscsort')
        tables(cur, 3000)
        equal(rows(cur, 'SELECT * FROM t ORDER BY k'), sorted(rows(cur, 'SELECT * FROM t'), key=lambda r: r[1]), 'it sorts')
        views = ('SELECT * FROM wiscsort.stat', 'SELECT * FROM wiscsort.progress', 'SELECT * FROM wiscsort.stat_info',
                 'SELECT wiscsort.stat_reset()')
        if cur.connection.server_version >= 170000:
            equal([error(cur, sql)[0] for sql in views], [None] * 4, 'the registry of segments has the memory')
            return
        for sql in views:
            code, message = error(cur, sql)
            check(code == '55000' and 'HINT' in message and 'shared_preload_libraries' in message, sql, (code, message))
        equal(error(cur, "SET wiscsort.max_temp = '64kB'; SELECT * FROM t ORDER BY m")[0], '53400', 'max_temp needs none')
        healthy(cluster, 'without memory')


# --- limits and the log -----------------------------------------------------------------------------

STEPS = ('SELECT n + 1, p FROM (SELECT n, p FROM r ORDER BY p DESC OFFSET 0) s WHERE n < 3',
         '(WITH s AS MATERIALIZED (SELECT n, p FROM r ORDER BY p DESC) SELECT n + 1, p FROM s WHERE n < 3)')
RECURSIVE = 'WITH RECURSIVE r(n, p) AS (SELECT 1, i FROM generate_series(1, 20000) i UNION ALL %s) SELECT count(*) FROM r'


def max_temp():
    with server() as cluster:
        cur = session(cluster, work_mem='256kB')
        tables(cur)
        rows(cur, "SELECT * FROM t ORDER BY k")
        for store in ('spool', 'heap', 'inline'):
            for threads in ('0', '1'):
                cur.execute('SET wiscsort.max_temp = -1; SET wiscsort.record_store = %s; SET wiscsort.write_threads = %s;'
                            ' SET wiscsort.sort_threads = %s' % (store, threads, threads))
                value(cur, 'SELECT wiscsort.stat_reset()')
                rows(cur, 'SELECT * FROM t ORDER BY k DESC, m')
                need = stat(cur)['temp_peak']
                name = '%s, %s threads' % (store, threads)
                for share, code in ((0, '53400'), (0.3, '53400'), (0.9, '53400'), (1.1, None)):
                    limit = int(need * share) // 1024
                    cur.execute('SET wiscsort.max_temp = %d' % limit)
                    value(cur, 'SELECT wiscsort.stat_reset()')
                    found, message = error(cur, 'SELECT * FROM t ORDER BY k DESC, m')
                    equal(found, code, '%s: %.1f of what it needs' % (name, share))
                    check(found is None or ('sort by k DESC, m exceed' in message and '(%dkB)' % limit in message
                                            and 'HINT' in message), name + ': the message names the sort', message)
                    peak = stat(cur)['temp_peak']
                    check(peak <= limit * 1024 + (262144 if store == 'inline' and threads == '1' else 0),
                          name + ': not more than that is used', (peak, limit))
                    common.clean(cluster, name)
        cur.execute('SET wiscsort.max_temp = -1')
        common.usable(cur, cluster, 'after max_temp')
        equal(rows(cur, "SELECT name, setting, unit, min_val, max_val, context FROM pg_settings WHERE name IN"
                   " ('wiscsort.max_temp', 'wiscsort.log_min_temp') ORDER BY name"),
              [('wiscsort.' + name, '-1', 'kB', '-1', '2147483647', 'superuser') for name in ('log_min_temp', 'max_temp')],
              'units and bounds')
        cur.execute('SET wiscsort.max_temp = 0')
        found, message = error(cur, RECURSIVE % STEPS[0])
        check(found == '53400' and 'sort by r_1.p DESC exceed' in message, 'below a recursive union', (found, message))
        for bad in ('-2', '1.5 parsecs', '99999999999999'):
            equal(error(cur, "SET wiscsort.max_temp = '%s'" % bad)[0], '22023', 'refused: ' + bad)
        healthy(cluster, 'max_temp')


def log_min_temp():
    with server(log_min_messages='log') as cluster:
        cur = session(cluster)
        tables(cur)

        def logged(setting, sql):
            cur.execute('SET wiscsort.log_min_temp = ' + setting)
            before = len(cluster.log())
            plan = rows(cur, 'EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) ' + sql)[0][0][0]['Plan']
            return plan, re.findall(r'LOG:  WiscSort of (\d+) rows: (.*)', cluster.log()[before:])
        for store in ('spool', 'heap', 'inline'):
            cur.execute('SET wiscsort.record_store = ' + store)
            plan, lines = logged("'1kB'", 'SELECT * FROM t ORDER BY m COLLATE "C" DESC, i')
            equal([line[0] for line in lines], ['20000'], store + ': one line')
            fields = dict(part.split(': ', 1) for part in lines[0][1].split('; ')) if lines else {}
            ours = {name: found for name, found in plan.items()
                    if name in fields or name in ('Sort Key', 'Disk', 'Memory', 'Runs', 'Record Store')}
            ours['Sort Key'] = ', '.join(ours['Sort Key'])
            different = {n: (fields.get(n), f) for n, f in ours.items() if str(f) != re.sub(r' (kB|ms)$', '', fields.get(n, ''))
                         and n != 'Read Stall Time'}
            equal(different, {}, store + ': it says what EXPLAIN says')
            check(len(fields) >= 9, store + ': all of it', fields)
        plan, lines = logged("'%dkB'" % (plan['Disk'] + 1), 'SELECT * FROM t ORDER BY m COLLATE "C" DESC, i')
        equal(lines, [], 'not below the size')
        plan, lines = logged('-1', 'SELECT * FROM t ORDER BY m')
        equal(lines, [], 'not with -1')
        cur.execute("SET work_mem = '64MB'")
        plan, lines = logged('0', 'SELECT * FROM t ORDER BY m')
        equal(len(lines), 1, '0 logs those without files, too')
        rows(cur, 'SELECT * FROM t a, LATERAL (SELECT k FROM u WHERE j < a.i ORDER BY l LIMIT 1) s WHERE a.i < 3')
        cur.execute("SET work_mem = '256kB'")
        before = len(cluster.log())
        equal(value(cur, RECURSIVE % STEPS[0]), 60000, 'below a recursive union')
        equal(re.findall(r'LOG:  WiscSort of (\d+) rows: Sort Key: ([^;]*)', cluster.log()[before:]),
              [('20000', 'r_1.p DESC')] * 3, 'its sorts are logged')
        equal(value(cur, RECURSIVE % STEPS[1]), 60000, 'one whose plan begins before the union')
        # a table, and a function, that go while a cursor is open do not make errors of its first row and of its end
        other = session(cluster)
        cur.execute("CREATE FUNCTION less(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN -$1; END'")
        cur.execute('CREATE TABLE noted (i int); CREATE TABLE gone (i int PRIMARY KEY)')
        cur.execute('SET wiscsort.log_min_temp = 0; BEGIN')
        cur.execute('INSERT INTO noted VALUES (1)')
        cur.execute('DECLARE c NO SCROLL CURSOR FOR SELECT t.* FROM t LEFT JOIN gone USING (i) ORDER BY less(t.i)')
        equal(error(cur, 'DROP TABLE gone; FETCH 1 FROM c')[0], None, 'a table that was dropped')
        other.execute('DROP FUNCTION less(int)')
        value(cur, 'SELECT count(*) FROM pg_tables')
        before = len(cluster.log())
        cur.execute('COMMIT')
        equal(re.findall(r'LOG:  WiscSort of (\d+) rows: Sort Key: ([^;]*)', cluster.log()[before:]), [('20000', '(less(t.i))')],
              'keys of a function that was dropped')
        equal(value(cur, 'SELECT count(*) FROM noted'), 1, 'and the transaction has committed')
        healthy(cluster, 'log_min_temp')


if __name__ == '__main__':
    tests = [exact, bytes_and_times, workload, parallel, at_once, many_queries, aborted, progress, privileges, without_memory,
             max_temp, log_min_temp]

    def without():
        skip('statistics', "PostgreSQL's own sort has none")
    common.run([without] if '--core' in __import__('sys').argv else tests)
