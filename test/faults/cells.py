"""The queries that faults are injected into: every record store, with keys of several kinds, through
every phase of a sort.

A cell is a list of statements, and the settings of its session.  Rows are compared with those that
PostgreSQL's own sort gives, so that every order is a total one.
"""

from collections import namedtuple

Cell = namedtuple('Cell', 'query store keys phase io threads cold settings statements shown')

ROWS = 4000
FEW, MANY = 12000, 52000        # rows, so that runs of rows, and of entries, are merged in two passes

TABLES = """
CREATE TABLE t AS
SELECT i, (i * 7919::int8 %% %(modulus)d)::int4 AS k, i %% 1500 AS m,
       'the same beginning ' || lpad((i * 7919::int8 %% %(modulus)d)::text, 7, '0') AS p,
       substr(md5(i::text), 1, 3 + i %% 9) || (i * 7919::int8 %% %(modulus)d) AS w,
       repeat('y', 20 + i %% 30) AS pad, (i * 7919::int8 %% %(modulus)d)::numeric / 7 AS n,
       'the same beginning ' || i %% 1500 AS mp, (i %% 1500)::text AS mt, (i %% 1500)::numeric AS mn
  FROM generate_series(1, %(rows)d) i;
ANALYZE t;
"""

# What is ordered by: exact keys, prefixes with ties that the rows decide, text under both kinds of
# collations, and values that only a comparison function orders.
KEYS = {
    'exact': 'k',
    'ties': 'p COLLATE "C"',
    'icu': 'w COLLATE "und-x-icu"',
    'libc': 'w COLLATE faults_libc',
    'compared': 'n',
}

# Of all rows in order: how many, and a sum that depends on the order and on all columns.
DIGEST = "SELECT count(s.*), md5(string_agg(s::text, ','))"
NODES = {'enable_hashjoin': 'off', 'enable_nestloop': 'off', 'enable_material': 'off'}


def ordered(keys, source='t', where=''):
    if keys == 'only':
        return 'SELECT k FROM %s %s ORDER BY k' % (source, where)
    return 'SELECT i, k, w, pad FROM %s %s ORDER BY %s, i' % (source, where, KEYS[keys])


def digest(keys, source='t'):
    return [DIGEST + ' FROM (%s OFFSET 0) s' % ordered(keys, source)]


def cursor(keys):
    """Backward as well, and to places: the sort is read in any order."""
    return ['BEGIN', 'DECLARE c SCROLL CURSOR FOR ' + ordered(keys), 'FETCH 300 FROM c',
            'MOVE ABSOLUTE %d FROM c' % (ROWS - 100), 'FETCH 40 FROM c', 'FETCH BACKWARD 60 FROM c',
            'FETCH ABSOLUTE 1000 FROM c', 'FETCH BACKWARD 50 FROM c', 'ROLLBACK']


def rescan(keys):
    """The same rows again, and then other ones."""
    total = DIGEST + ', sum(x) FROM generate_series(1, 2) x CROSS JOIN LATERAL ('
    again = 'SELECT * FROM (%s OFFSET 0) b WHERE b.k > x * 5000 OFFSET 0' % ordered(keys)
    other = ordered(keys, where='WHERE k > x * 5000') + ' OFFSET 0'
    return [total + again + ') s UNION ALL ' + total + other + ') s']


JOINED = {'exact': '%s.m', 'ties': '%s.mp COLLATE "C"', 'icu': '%s.mt COLLATE "und-x-icu"',
          'libc': '%s.mt COLLATE faults_libc', 'compared': '%s.mn', 'only': '%s.m'}


def merge_join(keys):
    """Duplicates on both sides: the inner one is marked and restored."""
    columns = 'a.m AS j' if keys == 'only' else 'a.i AS j, a.pad, b.k'
    return ['SELECT count(*), sum(hashtextextended(s::text, 0)) FROM (SELECT %s FROM t a JOIN t b ON %s = %s) s'
            % (columns, JOINED[keys] % 'a', JOINED[keys] % 'b')]


def make(store, keys, phase, io=None, threads=0):
    """One cell.  `shown` is what EXPLAIN ANALYZE has to say of it."""
    settings = {'work_mem': '64kB', 'wiscsort.record_store': store, 'max_parallel_workers_per_gather': '0',
                'wiscsort.io_method': io or 'auto', 'wiscsort.direct_read': 'on'}
    settings.update({'wiscsort.%s_threads' % work: str(threads) for work in ('read', 'sort', 'write')})
    shown = 'Record Store: ' + store
    if store == 'keys':
        settings['wiscsort.record_store'] = 'heap'
        keys = 'only'
    elif store == 'again':
        # the page cache is said to have lost the spool after some rows
        settings.update({'wiscsort.record_store': 'auto', 'wiscsort.cache_size': '1GB',
                         'wiscsort.debug_again': '500'})
        shown = 'Record Store: spool, then inline'
    elif store == 'heap again':
        settings.update({'wiscsort.record_store': 'heap', 'wiscsort.debug_again': '500'})
        shown = 'Record Store: heap, then inline'
    elif store == 'late':
        # the spool outgrows the page cache that there is said to be
        settings.update({'wiscsort.record_store': 'auto', 'wiscsort.cache_size': '100kB'})
        shown = 'Record Store: inline'
    if io is not None:
        shown += '|I/O Method: ' + io
    if phase == 'sort':
        statements = digest(keys)
    elif phase == 'passes':
        statements = digest(keys, 'few' if store == 'inline' else 'many')
        settings['wiscsort.block_size'] = '8kB'     # fewer runs can be merged at once
    elif phase == 'savepoint':
        # the driver rolls back to it, and looks at the backend before the transaction ends
        statements = ['BEGIN', 'SAVEPOINT s'] + digest(keys) + ['ROLLBACK']
    elif phase == 'cursor':
        statements = cursor(keys)
    elif phase == 'rescan':
        statements = rescan(keys)
    else:
        statements = merge_join(keys)
        settings.update(NODES)
    name = '%s, %s, %s' % (store, keys, phase)
    if io:
        name += ', ' + io
    if threads:
        name += ', helpers'
    # what was just written is cached, and would not be read with libaio; with helpers it stays so
    cold = io == 'libaio' and not threads
    return Cell(name, store, keys, phase, io, threads, cold, settings, statements, shown)


PHASES = ('sort', 'passes', 'cursor', 'rescan', 'merge join')


def every():
    cells = []
    for phase in PHASES:
        for keys in KEYS:
            cells += [make(store, keys, phase) for store in ('spool', 'heap')]
            cells += [make('inline', keys, phase, io) for io in ('sync', 'libaio')
                      if io == 'sync' or keys in ('exact', 'ties')]
        cells.append(make('keys', 'only', phase))
    for phase in PHASES:
        for store, keys in (('spool', 'exact'), ('spool', 'icu'), ('heap', 'ties'), ('keys', 'only')):
            cells.append(make(store, keys, phase, threads=1))
        for io in ('sync', 'libaio'):
            cells.append(make('inline', 'ties', phase, io, threads=1))
    for threads in (0, 1):
        cells += [make(store, 'ties', 'savepoint', threads=threads) for store in ('spool', 'heap', 'keys')]
        cells += [make('inline', 'ties', 'savepoint', io, threads) for io in ('sync', 'libaio')]
    for keys in ('exact', 'ties'):
        for threads in (0, 1):
            cells += [make(store, keys, 'sort', threads=threads) for store in ('again', 'heap again', 'late')]
    return cells


def few():
    """Some of them, for a test that is over soon."""
    return [make('spool', 'ties', 'sort'), make('spool', 'exact', 'passes'),
            make('heap', 'icu', 'sort', threads=1), make('keys', 'only', 'cursor'),
            make('spool', 'libc', 'cursor', threads=1), make('inline', 'ties', 'sort', 'libaio'),
            make('inline', 'exact', 'passes', 'sync'), make('inline', 'ties', 'cursor', 'libaio', threads=1),
            make('inline', 'exact', 'merge join', 'sync'), make('heap', 'ties', 'rescan'),
            make('again', 'exact', 'sort'), make('heap again', 'ties', 'sort'),
            make('inline', 'ties', 'savepoint', 'libaio', threads=1)]
