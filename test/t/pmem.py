#!/usr/bin/python3
"""A table in a tablespace on persistent memory, for which tmpfs stands in with
PMEM_IS_PMEM_FORCE=1: rows come out of libpmem's mappings, the same as core's, and
EXPLAIN says so."""

import os
import re
import shutil
import tempfile

import common
from churn import nodes, session
from common import Cluster, check, equal, healthy, rows, skip, uses, value

FORCE = 'PMEM_IS_PMEM_FORCE'
TMPFS = '/dev/shm'
QUERIES = ['SELECT * FROM p ORDER BY k, i', 'SELECT i, pad FROM p WHERE i % 3 > 0 ORDER BY pad COLLATE "C" DESC, i']


def mappings(pid, path):
    """How a process has mapped the table's files: a set of permissions."""
    with open('/proc/%d/maps' % pid) as f:
        return {line.split()[1] for line in f if path in line}


def costs(cluster):
    """Random reads cost what the tablespace says."""
    def in_table(random_page):
        common.core(cluster).execute('ALTER TABLESPACE shm SET (random_page_cost = %s)' % random_page)
        cur = cluster.connect(**{'effective_cache_size': '64kB', 'work_mem': '64kB',
                                 'wiscsort.record_store': 'heap'}).cursor()
        top = nodes(cur, QUERIES[0], '')
        return top['Node Type'] == 'Custom Scan' and top.get('Relation Name') == 'p'
    check(in_table(0.01) and not in_table(50), 'random reads cost what the tablespace says')
    common.core(cluster).execute('ALTER TABLESPACE shm RESET (random_page_cost)')


def devices(cluster):
    """wiscsort.status() tells what temporary files are kept on, of every tablespace that they go to."""
    cur = common.core(cluster)
    cur.execute("SET temp_tablespaces = 'shm', 'pg_default'")
    found = dict(rows(cur, "SELECT name, value FROM wiscsort.status() WHERE name LIKE 'device%'"))
    memory = found.pop('device of temporary files in shm', '')
    check(re.fullmatch(r'\S+ \(tmpfs, memory\), [0-9]+ MB free', memory), 'temporary files in memory', memory)
    room = os.statvfs(TMPFS)
    check(abs(int(memory.split()[-3]) - (room.f_bavail * room.f_frsize >> 20)) < 256, 'their room', memory)
    equal(sorted(found), ['device of temporary files in pg_default', 'device of the database'], 'and of other devices')
    equal(len({told.split('), ')[0] for told in found.values()}), 1, 'of which both are one')


def compared(persistent):
    """Sorts of a table on tmpfs, in a server with and without the variable."""
    name = 'persistent memory' if persistent else 'tmpfs'
    place = tempfile.mkdtemp(prefix='wiscsort-', dir=TMPFS)
    os.environ.pop(FORCE, None)
    if persistent:
        os.environ[FORCE] = '1'
    try:
        with Cluster(common.options.pg_config, {'session_preload_libraries': 'wiscsort', 'shared_buffers': '1MB'}) as cluster:
            cluster.give(place)
            cur = common.core(cluster)
            cur.execute('CREATE EXTENSION wiscsort')
            cur.execute("CREATE TABLESPACE shm LOCATION '%s'" % place)
            cur.execute("CREATE TABLE p TABLESPACE shm AS SELECT i, hashint4(i) AS k, md5((i % 999)::text)"
                        " || repeat('x', 100) AS pad FROM generate_series(1, 30000) i")
            cur.execute('VACUUM ANALYZE p')
            cur.execute('CHECKPOINT')
            built = 'libpmem: yes' in value(cur, 'SELECT wiscsort.version()')
            path = value(cur, "SELECT pg_relation_filepath('p')")
            devices(cluster)
            for memory in ('64kB', '16MB'):
                for sql in QUERIES:
                    cur = session(cluster, work_mem=memory)
                    uses(cur, sql)
                    equal(rows(cur, sql), rows(common.core(cluster), sql), '%s, %s: %s' % (name, memory, sql))
                    top = nodes(cur, sql)
                    check(top['Blocks Direct'] > 0 and top.get('Persistent Memory', False) == (persistent and built),
                          '%s, %s: what EXPLAIN says' % (name, memory), top)
            costs(cluster)
            cur.execute('BEGIN')
            cur.execute('DECLARE c NO SCROLL CURSOR FOR ' + QUERIES[0])
            rows(cur, 'FETCH 10 FROM c')
            equal(mappings(cur.connection.info.backend_pid, os.path.basename(path)), {'r--s'},
                  name + ': the mapping is shared, and for reading only')
            cur.execute('COMMIT')
            equal(mappings(cur.connection.info.backend_pid, os.path.basename(path)), set(), name + ': it ends with the query')
            healthy(cluster, name)
    finally:
        os.environ.pop(FORCE, None)
        shutil.rmtree(place, ignore_errors=True)


def tablespace():
    if common.options.core or not os.path.isdir(TMPFS):
        return skip('tablespace on persistent memory', 'nothing to stand in for it')
    for persistent in (True, False):
        compared(persistent)


if __name__ == '__main__':
    common.run([tablespace])
