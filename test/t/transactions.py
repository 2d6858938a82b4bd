#!/usr/bin/python3
"""Sorts that live across statements: cursors, subtransactions, WITH HOLD,
procedures that commit, prepared statements, temporary tablespaces."""

import os
import time

import common
from common import check, clean, equal, error, explain, healthy, rows, session, uses, value

N = 60000
QUERY = 'SELECT i, k, pad FROM t ORDER BY k, i'


def table(cluster):
    cur = common.core(cluster)
    cur.execute("CREATE TABLE t AS SELECT i, hashint8(i) %% 1000 AS k, repeat('z', i %% 60) AS pad"
                ' FROM generate_series(1, %d) i' % N)
    return rows(cur, QUERY)


def subtransactions():
    """Cursors opened and read in subtransactions that are rolled back."""
    with common.server() as cluster:
        answer = table(cluster)
        cur = session(cluster, work_mem='64kB')
        uses(cur, QUERY)
        cur.execute('BEGIN')
        cur.execute('DECLARE outer_one NO SCROLL CURSOR FOR ' + QUERY)
        cur.execute('DECLARE untouched NO SCROLL CURSOR FOR ' + QUERY)
        equal(rows(cur, 'FETCH 10 FROM outer_one'), answer[:10], 'the first rows of a cursor')
        before = cluster.temp_files()
        check(before, 'a cursor has temporary files')
        cur.execute('SAVEPOINT a')
        cur.execute('DECLARE inner_one CURSOR FOR %s DESC' % QUERY)
        rows(cur, 'FETCH 5 FROM inner_one')
        check(len(cluster.temp_files()) > len(before), 'a second cursor has files of its own')
        equal(error(cur, 'SELECT 1 / 0')[0], '22012', 'an error in the subtransaction')
        cur.execute('ROLLBACK TO a')
        equal(cluster.temp_files(), before, 'the files of the inner cursor are gone, no other')
        equal(error(cur, 'FETCH 1 FROM inner_one')[0], '34000', 'and so is the inner cursor')
        cur.execute('ROLLBACK TO a')
        equal(rows(cur, 'FETCH 1000 FROM outer_one'), answer[10:1010], 'the outer one goes on')
        cur.execute('SAVEPOINT b')
        equal(rows(cur, 'FETCH 1000 FROM untouched'), answer[:1000],
              'a cursor that is first read in a subtransaction')
        equal(rows(cur, 'FETCH 100 FROM outer_one'), answer[1010:1110], 'the other one there too')
        cur.execute('ROLLBACK TO b')
        equal(rows(cur, 'FETCH ALL FROM untouched'), answer[1000:], 'goes on after its roll back')
        equal(rows(cur, 'FETCH ALL FROM outer_one'), answer[1110:], 'the outer one to its end')
        cur.execute('SAVEPOINT c')
        cur.execute('DECLARE released CURSOR FOR ' + QUERY)
        rows(cur, 'FETCH 3 FROM released')
        cur.execute('RELEASE c')
        equal(rows(cur, 'FETCH ALL FROM released'), answer[3:], 'a cursor of a released savepoint')
        cur.execute('COMMIT')
        clean(cluster, 'after COMMIT')
        healthy(cluster, 'subtransactions')


def disk_of(pid):
    """Bytes of disk that deleted temporary files take, which a process has open or mapped."""
    files = {}
    for folder in ('fd', 'map_files'):
        for name in os.listdir('/proc/%d/%s' % (pid, folder)):
            path = '/proc/%d/%s/%s' % (pid, folder, name)
            try:
                if 'pgsql_tmp' in os.readlink(path):
                    found = os.stat(path)
                    files[found.st_ino] = found.st_blocks * 512
            except OSError:         # closed meanwhile
                pass
    return sum(files.values())


def threads_of(pid):
    return len(os.listdir('/proc/%d/task' % pid))


def spins(pid):
    """Does a thread of a process that waits for its client run nevertheless?"""
    def ran():
        with open('/proc/%d/stat' % pid) as f:
            return sum(map(int, f.read().rpartition(')')[2].split()[11:13]))
    time.sleep(0.1)
    before = ran()
    time.sleep(1)
    return (ran() - before) / os.sysconf('SC_CLK_TCK') > 0.3


def failed():
    """What fails in a transaction that goes on, or is not ended yet, leaves no disk taken and no thread running."""
    with common.server(preload=False, shared_preload_libraries='wiscsort', shared_buffers='1MB') as cluster:
        answer = table(cluster)
        other = common.core(cluster)
        other.execute('CREATE EXTENSION wiscsort')
        counted_sorts = [0]

        def counted(name):
            """It has ended for progress and statistics, too."""
            if not common.options.core:
                counted_sorts[0] += 1
                equal(rows(other, 'SELECT sum(aborted), (SELECT count(*) FROM wiscsort.progress) FROM wiscsort.stat'),
                      [(counted_sorts[0], 0)], name + ' is counted at once, and no longer shown')
        for settings in ({'wiscsort.record_store': 'spool'}, {'wiscsort.record_store': 'heap'}):
            cur = session(cluster, work_mem='64kB', **{'wiscsort.%s_threads' % t: '1' for t in
                                                       ('read', 'sort', 'write')}, **settings)
            cur.execute("CREATE OR REPLACE FUNCTION late(i int8) RETURNS int8 LANGUAGE plpgsql AS $$ BEGIN"
                        " IF i = 30000 THEN RAISE 'late'; END IF; RETURN i; END $$")
            pid = common.backend(cur)
            query = 'SELECT late(row_number() OVER ()), i FROM (%s OFFSET 0) s' % QUERY
            what = settings['wiscsort.record_store']
            uses(cur, query)
            cur.execute('BEGIN')
            cur.execute('DECLARE c NO SCROLL CURSOR FOR ' + query)
            equal(rows(cur, 'FETCH 1 FROM c'), [(1, answer[0][0])], what + ': a cursor')
            check(what == 'heap' or disk_of(pid) > 1000000, what + ': it takes disk', disk_of(pid))
            cur.execute('SAVEPOINT s')
            equal(error(cur, 'FETCH ALL FROM c')[0], 'P0001', what + ': it fails in a savepoint')
            cur.execute('ROLLBACK TO s')
            counted(what + ': a cursor that failed')
            check(disk_of(pid) < 100000, what + ': a cursor that failed takes no disk', disk_of(pid))
            check(not spins(pid), what + ': nor a processor')
            equal(threads_of(pid), 1, what + ': it has no helper')
            equal(rows(cur, QUERY), answer, what + ': another sort in the transaction')
            equal(error(cur, 'FETCH ALL FROM c')[0], '55000', what + ': nothing can be got of it')
            cur.execute('ROLLBACK')
            cur.execute("CREATE OR REPLACE FUNCTION all_of() RETURNS int8 LANGUAGE plpgsql AS $$ DECLARE n int8; BEGIN"
                        " SELECT sum(row_number) INTO n FROM (%s) s (row_number); RETURN n; END $$" % query)
            cur.execute('SELECT pg_stat_reset()')
            cur.execute('BEGIN')
            equal(error(cur, 'SELECT all_of()')[0], 'P0001', what + ': a sort in a function fails')
            counted(what + ': a sort in a function')
            check(disk_of(pid) < 100000, what + ': it takes no disk before ROLLBACK', disk_of(pid))
            check(not spins(pid), what + ': nor a processor')
            equal(threads_of(pid), 1, what + ': it has no helper before ROLLBACK')
            cur.execute('ROLLBACK')
            cur.execute('SELECT pg_stat_force_next_flush()')
            written = value(cur, 'SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()')
            check(what == 'heap' or written > 1000000, what + ': pg_stat_database has counted it', written)
            equal(rows(cur, QUERY), answer, what + ': the session goes on')
            cur.connection.close()
        clean(cluster, 'sorts that failed')
        healthy(cluster, 'sorts that failed')


def held():
    """WITH HOLD, and loops in procedures that commit."""
    with common.server() as cluster:
        answer = table(cluster)
        cur = session(cluster, work_mem='64kB')
        for scroll in ('NO SCROLL', 'SCROLL'):
            cur.execute('BEGIN')
            cur.execute('DECLARE h %s CURSOR WITH HOLD FOR %s' % (scroll, QUERY))
            equal(rows(cur, 'FETCH 7 FROM h'), answer[:7], scroll + ' WITH HOLD: before COMMIT')
            cur.execute('COMMIT')
            equal(rows(cur, 'FETCH 1000 FROM h'), answer[7:1007], scroll + ' WITH HOLD: after COMMIT')
            if scroll == 'SCROLL':
                cur.execute('MOVE ABSOLUTE 3 FROM h')
                equal(rows(cur, 'FETCH 5 FROM h'), answer[3:8], 'SCROLL WITH HOLD: back again')
                cur.execute('MOVE ABSOLUTE 1007 FROM h')
            equal(rows(cur, 'FETCH ALL FROM h'), answer[1007:], scroll + ' WITH HOLD: to the end')
            cur.execute('CLOSE h')
            clean(cluster, scroll + ' WITH HOLD')
        cur.execute('BEGIN')
        cur.execute('DECLARE h CURSOR WITH HOLD FOR ' + QUERY)
        cur.execute('ROLLBACK')
        clean(cluster, 'WITH HOLD rolled back')
        cur.execute('CREATE TABLE seen (n serial, i int4)')
        for end in ('COMMIT', 'ROLLBACK'):
            cur.execute('TRUNCATE seen RESTART IDENTITY')
            cur.execute('''
                DO $$
                DECLARE
                    r record;
                    n int4 := 0;
                BEGIN
                    FOR r IN %s LOOP
                        n := n + 1;
                        INSERT INTO seen (i) VALUES (r.i);
                        IF n %% 500 = 0 THEN COMMIT; END IF;
                        IF n %% 777 = 0 THEN %s; END IF;
                        EXIT WHEN n = 5000;
                    END LOOP;
                END $$''' % (QUERY, end))
            found = [r[0] for r in rows(cur, 'SELECT i FROM seen ORDER BY n')]
            wanted = [r[0] for r in answer[:5000]]
            if end == 'ROLLBACK':
                places = iter(wanted)
                check(len(found) > 2000 and all(i in places for i in found),
                      'a loop that commits and rolls back', found[:20])
            else:
                equal(found, wanted, 'a loop that commits')
            clean(cluster, 'a loop with ' + end)
        healthy(cluster, 'held cursors')


def tablespaces():
    """temp_tablespaces is honoured, by every file."""
    with common.server() as cluster:
        answer = table(cluster)
        for name in ('one', 'two'):
            cluster.tablespace(name)
        cur = session(cluster, work_mem='64kB', temp_tablespaces='one,two')
        places = set()
        for _ in range(4):
            cur.execute('BEGIN')
            cur.execute('DECLARE c NO SCROLL CURSOR FOR ' + QUERY)
            rows(cur, 'FETCH 10 FROM c')
            files = cluster.temp_files()
            check(files and all(f.startswith('pg_tblspc/') for f in files),
                  'temporary files lie in temp_tablespaces', files)
            places |= {f.split('/')[1] for f in files}
            equal(rows(cur, 'FETCH ALL FROM c'), answer[10:], 'with the right rows')
            cur.execute('COMMIT')
            clean(cluster, 'temp_tablespaces')
        equal(len(places), 2, 'both tablespaces are used')
        cur.connection.close()
        other = common.core(cluster)
        other.execute('DROP TABLESPACE one')
        other.execute('DROP TABLESPACE two')
        check(True, 'the tablespaces can be dropped')
        healthy(cluster, 'temp_tablespaces')


def several_at_once():
    """Many cursors at once, read in turns; the end of a session with them."""
    with common.server(max_files_per_process=64) as cluster:
        answer = table(cluster)
        cur = session(cluster, work_mem='64kB')
        cur.execute('BEGIN')
        fine = True
        for c in range(40):
            cur.execute('DECLARE c%d NO SCROLL CURSOR FOR %s' % (c, QUERY))
        for first in (0, 500, 1000):
            for c in range(40):
                fine &= rows(cur, 'FETCH 500 FROM c%d' % c) == answer[first:first + 500]
        check(fine, 'forty cursors read in turns, with few file descriptors')
        for c in range(0, 40, 3):
            cur.execute('CLOSE c%d' % c)
        for c in range(1, 40, 3):
            fine &= rows(cur, 'FETCH 500 FROM c%d' % c) == answer[1500:2000]
        check(fine, 'closing some leaves the others')
        cur.connection.close()
        clean(cluster, 'the end of a session with open cursors')
        cur = session(cluster, work_mem='64kB')
        two = 'SELECT a.i, b.i FROM t a JOIN t b ON a.k = b.k AND a.i < 600 AND b.i < 600'
        cur.execute('SET enable_hashjoin = off; SET enable_nestloop = off')
        uses(cur, two)
        check(explain(cur, two).count('Sort Key') >= 2, 'two sorts in one plan', explain(cur, two))
        other = common.core(cluster)
        equal(sorted(rows(cur, two)), sorted(rows(other, two)), 'a merge join of two sorts')
        healthy(cluster, 'several at once')


def prepared():
    """Prepared statements that live longer than the settings and the table
    they were planned for."""
    with common.server() as cluster:
        answer = table(cluster)
        cur = session(cluster, work_mem='64kB', plan_cache_mode='force_generic_plan')
        cur.execute('PREPARE p (int4) AS SELECT i, k, pad FROM t WHERE i <= $1 ORDER BY k, i')
        uses(cur, 'EXECUTE p (60000)')
        equal(rows(cur, 'EXECUTE p (60000)'), answer, 'a prepared statement')
        if not common.options.core:
            cur.execute('SET wiscsort.enable = off')
        equal(rows(cur, 'EXECUTE p (60000)'), answer, 'after wiscsort.enable was switched off')
        cur.execute('ALTER TABLE t ADD COLUMN more int4 DEFAULT 5')
        cur.execute('DELETE FROM t WHERE i % 2 = 0')
        equal(rows(cur, 'EXECUTE p (60000)'), [r for r in answer if r[0] % 2],
              'after the table was changed')
        equal(value(cur, 'SELECT count(*) FROM pg_prepared_statements'), 1, 'it is still prepared')
        clean(cluster, 'prepared statements')
        healthy(cluster, 'prepared statements')


def old_snapshot():
    """A snapshot from before a column was declared NOT NULL."""
    with common.server() as cluster:
        cur = common.core(cluster)
        cur.execute('CREATE TABLE nn (a int8, b int8)')
        cur.execute('INSERT INTO nn SELECT nullif(i % 100, 7), i FROM generate_series(1, 5000) i')
        query = 'SELECT a, b FROM nn ORDER BY a, b'
        answer = rows(cur, query)
        old = session(cluster, work_mem='64kB')
        old.execute('BEGIN ISOLATION LEVEL REPEATABLE READ')
        old.execute('SELECT 1')
        cur.execute('DELETE FROM nn WHERE a IS NULL')
        cur.execute('ALTER TABLE nn ALTER a SET NOT NULL, ALTER b SET NOT NULL')
        uses(old, query)
        equal(rows(old, query), answer, 'an old snapshot sees the nulls that were there')
        old.execute('COMMIT')
        equal(rows(old, query), [r for r in answer if r[0] is not None], 'a new one does not')
        healthy(cluster, 'old snapshots')


if __name__ == '__main__':
    common.run([subtransactions, failed, held, tablespaces, several_at_once, prepared, old_snapshot])
