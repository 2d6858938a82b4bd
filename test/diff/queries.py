"""Random queries over the tables of gen.py, for the differential test.

Each function below makes one kind of query.  Unless a query is told to be
`total` (a unique id ends its ORDER BY), rows that are equal in all sort keys may
come in any order, so its first columns are the ranks of the keys.
"""

import copy

from draws import Draws


class Query:
    """steps: the statements, whose results are compared one by one.
    ranks: how many leading columns are ranks, whose sequence must agree.
    total: the whole sequence must agree.  ignore: columns whose text may
    differ between equal values.  explain: the statement to EXPLAIN.
    superset: for a LIMIT over peers, a query that has all candidate rows.
    settings: SET before, RESET after.  forced: with wiscsort.debug_force."""

    def __init__(self, steps, ranks=0, total=False, ignore=(), explain=None, superset=None,
                 settings=None):
        self.steps = [steps] if isinstance(steps, str) else steps
        self.ranks, self.total, self.ignore = ranks, total, frozenset(ignore)
        self.explain = explain or self.steps[0]
        self.superset = superset
        self.settings = dict(settings or {})
        self.kind = self.number = self.drawn = None
        self.forced = True

    def but(self, **changed):
        """The same query with other attributes."""
        other = copy.copy(self)
        other.__dict__.update(changed)
        return other


PARALLEL = {'parallel_setup_cost': 0, 'parallel_tuple_cost': 0, 'min_parallel_table_scan_size': 0,
            'max_parallel_workers_per_gather': 2}
MERGE_JOIN = {'enable_hashjoin': 'off', 'enable_nestloop': 'off'}


class Maker:
    """Pieces of queries over one seed's tables."""

    def __init__(self, rng, tables):
        self.rng, self.tables = rng, tables

    def chance(self, share):
        return self.rng.random() < share

    def keys(self, low=1, high=4, plain=False):
        """Some of the sort keys; plain: no operator of its own (USING)."""
        pool = [k for k in self.tables.keys if not (plain and k.using)]
        return self.rng.sample(pool, min(len(pool), self.rng.randint(low, high)))

    def joinable(self):
        return self.rng.choice([k for k in self.tables.keys if k.column])

    def direction(self, key=None):
        rng = self.rng
        if key is not None and key.using:
            way = ' USING ' + rng.choice(key.using)
        elif self.chance(0.12):
            way = rng.choice([' USING <', ' USING >', ' USING OPERATOR(pg_catalog.>)'])
        else:
            way = rng.choice(['', ' ASC', ' DESC', ' DESC'])
        return way + rng.choice(['', '', ' NULLS FIRST', ' NULLS LAST'])

    def order(self, pairs, *ids):
        """ORDER BY for pairs (key, alias), then the ids."""
        parts = [key.at(alias) + self.direction(key) for key, alias in pairs]
        parts += [i + self.rng.choice(['', ' DESC']) for i in ids]
        return ' ORDER BY ' + ', '.join(parts)

    def columns(self, alias, many=True):
        """Some columns to carry along, as a list with a leading comma."""
        if self.tables.huge or not many:
            return ''
        names = [c.name for c in self.tables.columns] + (['pad'] if self.tables.pad else [])
        picked = [alias + '.' + n for n in names if self.chance(0.4)]
        if self.chance(0.08):
            picked.append(alias)
        if self.chance(0.05):
            picked += [alias + '.ctid', alias + '.tableoid', alias + '.xmin']
        return ''.join(', ' + p for p in picked)

    def where(self, alias):
        column = self.rng.choice(self.tables.columns).name
        if not self.chance(0.35):
            return ''
        return ' WHERE ' + self.rng.choice(
            ['{a}.id % 7 <> 2', '{a}.g < 3', '{a}.%s IS NOT NULL' % column, 'false',
             '{a}.id > (SELECT min(g) FROM t2)', '{a}.id % 2 = 0']).format(a=alias)

    def ranks(self, pairs):
        return ', '.join(key.rank_at(alias) for key, alias in pairs)

    def every(self, limit):
        """A condition on a.id that keeps about n of the pairs of a join."""
        return lambda pairs: 'a.id %% %d = 0' % max(1, int(pairs // limit) + 1)


def on(keys, alias):
    return [(k, alias) for k in keys]


# --- one table -------------------------------------------------------------------

def plain(m):
    pairs = on(m.keys(1, 5), 'a')
    total = m.chance(0.5)
    order = m.order(pairs, *(['a.id'] if total else []))
    return Query('SELECT %s, a.id%s FROM t1 a%s%s' % (
        m.ranks(pairs), m.columns('a'), m.where('a'), order), len(pairs), total)


def limited(m):
    pairs = on(m.keys(1, 3), 'a')
    total = m.chance(0.5)
    order = m.order(pairs, *(['a.id'] if total else []))
    base = 'SELECT %s, a.id%s FROM t1 a%s%s' % (
        m.ranks(pairs), m.columns('a'), m.where('a'), order)
    size = m.rng.choice([0, 1, 10, 100, m.tables.n // 10, m.tables.n // 4, m.tables.n // 3, m.tables.n // 2,
                         m.tables.n + 1])
    if not total and m.chance(0.2):
        return Query(base + ' FETCH FIRST %d ROWS WITH TIES' % size, len(pairs))
    limit = ' LIMIT %d' % size
    if m.chance(0.4):
        limit = m.rng.choice([limit, '']) + ' OFFSET %d' % m.rng.choice([0, 1, 50, m.tables.n // 5, m.tables.n // 2])
    return Query(base + limit, len(pairs), total, superset=None if total else base)


def nested(m):
    """A sort of the first or last rows of another sort."""
    inner, outer = on(m.keys(1, 3), 'a'), on(m.keys(1, 3), 's')
    limit = m.rng.choice([' OFFSET 0', ' LIMIT %d' % (m.tables.n // 2), ' OFFSET 10'])
    return Query('SELECT %s, s.id FROM (SELECT a.* FROM t1 a%s%s) s%s' % (
        m.ranks(outer), m.order(inner, 'a.id'), limit, m.order(outer)), len(outer))


def no_columns(m):
    return Query('SELECT count(*) FROM (SELECT FROM t1 a%s OFFSET 0) s'
                 % m.order(on(m.keys(), 'a')))


def digest(m):
    """The sequence of many rows in one value."""
    return Query("SELECT md5(string_agg(s.id::text, ',')), sum(length(s.line)) FROM "
                 '(SELECT a.id, a::text AS line FROM t1 a%s%s OFFSET 0) s'
                 % (m.where('a'), m.order(on(m.keys(), 'a'), 'a.id')))


def long_rows(m):
    """Rows of up to 60 kB that are computed, not stored: no TOAST."""
    few = 'a.id %% %d = 0' % (m.tables.n // 300 + 1)
    long = 'repeat(chr(65 + a.id % 26), a.id % 5 * {})'.format(m.rng.choice([3000, 6553, 8190, 15000]))
    keys = m.order(on(m.keys(1, 2), 'a'), 'a.id')
    if m.chance(0.4):
        keys = ' ORDER BY %s COLLATE "C"%s, a.id' % (long, m.direction())
    return Query('SELECT s.id, length(s.w), md5(s.w) FROM (SELECT a.id, %s AS w, a.g FROM t1 a WHERE %s%s'
                 ' OFFSET 0) s' % (long, few, keys), total=True)


def expanded(m):
    """Array values in the form that array_append gives them."""
    value = 'array_append(ARRAY[a.id % 7, a.g], a.id % 3)'
    keys = m.rng.choice([m.order(on(m.keys(1, 2), 'a'), 'a.id'),
                         ' ORDER BY %s%s, a.id' % (value, m.direction())])
    return Query('SELECT a.id, %s FROM t1 a%s%s' % (value, m.where('a'), keys), total=True)


def subquery_key(m):
    pairs = on(m.keys(1, 2), 'a')
    if m.tables.huge:
        return plain(m)
    sub = '(SELECT count(*) FROM t2 b WHERE b.g = a.g AND b.id > a.id - 50)'
    return Query('SELECT %s, %s, a.id FROM t1 a WHERE a.id %% 3 = 0%s' % (
        m.ranks(pairs), sub, m.order(pairs, sub)), len(pairs) + 1)


def distinct(m):
    keys = m.keys(1, 3, plain=True)
    pairs = on(keys, 'a')
    n = len(keys)
    exprs = ', '.join(k.at('a') for k in keys)
    order = m.order(pairs) if m.chance(0.6) else ''
    return Query('SELECT DISTINCT %s, %s FROM t1 a%s%s' % (
        m.ranks(pairs), exprs, m.where('a'), order), n if order else 0, ignore=range(n, 2 * n),
        settings={'enable_hashagg': m.rng.choice(['on', 'off', 'off'])})


def distinct_on(m):
    keys = m.keys(1, 3, plain=True)
    pairs = on(keys, 'a')
    return Query('SELECT DISTINCT ON (%s) %s, a.id%s FROM t1 a%s%s' % (
        ', '.join(k.at('a') for k in keys), m.ranks(pairs), m.columns('a'), m.where('a'),
        m.order(pairs, 'a.id')), len(pairs), True)


def grouped(m):
    keys = m.keys(1, 3, plain=True)
    pairs = on(keys, 'a')
    exprs = [k.at('a') for k in keys]
    ranks = [k.at('a') if k.rank == k.expr else 'min(%s)' % k.rank_at('a') for k in keys]
    order = m.order(pairs) if m.chance(0.7) else ''
    agg = m.rng.choice(['count(*), sum(a.id), min(a.id)', 'count(DISTINCT a.g), sum(a.id)',
                        "md5(string_agg(a.id::text, ',' ORDER BY a.id))"])
    return Query('SELECT %s, %s FROM t1 a%s GROUP BY %s%s' % (
        ', '.join(ranks), agg, m.where('a'), ', '.join(exprs), order),
        len(keys) if order else 0, bool(order),
        settings={'enable_hashagg': m.rng.choice(['on', 'off', 'off'])})


def grouping_sets(m):
    keys = [k.at('a') for k in m.keys(2, 3, plain=True)]
    form = m.rng.choice(['ROLLUP (%s)', 'CUBE (%s)', 'GROUPING SETS (%s, ())'])
    order = m.rng.choice(['', ' ORDER BY 1, 2, 3, 4'])
    # a constant that is grouped by is null in some rows, and never sorted by
    constant = "'all'::text" if m.chance(0.4) else 'NULL'
    if constant != 'NULL':
        keys.insert(m.rng.randint(0, len(keys)), constant)
    grouping = ' + '.join('%d * grouping(%s)' % (10 ** i, k) for i, k in enumerate(keys))
    return Query('SELECT %s, count(*), sum(a.id), min(a.id), %s FROM t1 a%s GROUP BY %s%s' % (
        grouping, constant, m.where('a'), form % ', '.join(keys), order), total=bool(order),
        settings={'enable_hashagg': m.rng.choice(['on', 'off'])})


def alike(m):
    """Columns whose expressions are equal, each of which grouping sets make null in rows of their own."""
    key = m.keys(1, 1, plain=True)[0].at('a')
    form = m.rng.choice(['ROLLUP (1, 2)', 'CUBE (1, 2)', 'GROUPING SETS ((1), (2))', 'GROUPING SETS ((1, 2), (2), ())'])
    groups = 'SELECT %s AS x, %s AS y, count(*) AS n, min(a.id) AS low FROM t1 a%s GROUP BY %s' % (
        key, key, m.where('a'), form)
    if m.chance(0.3):
        return Query('SELECT rank() OVER (ORDER BY n, low), x IS NULL, y IS NULL, n, low FROM (%s) s' % groups, ranks=1,
                     settings={'enable_hashagg': m.rng.choice(['on', 'off'])})
    return Query('SELECT x IS NULL, y IS NULL, n, low FROM (%s ORDER BY 3, 4 OFFSET 0) s' % groups,
                 settings={'enable_hashagg': m.rng.choice(['on', 'off'])})


def window(m):
    def over(unique, frame=''):
        part = m.rng.choice(['', '', 'PARTITION BY %s' % m.keys(1, 1, True)[0].at('a'),
                             'PARTITION BY a.g'])
        return ' OVER (%s%s%s)' % (part, m.order(on(m.keys(1, 2), 'a'),
                                                 *(['a.id'] if unique else [])), frame)
    columns = [m.rng.choice([
        'rank()' + over(False), 'dense_rank()' + over(False), 'row_number()' + over(True),
        'lag(a.id)' + over(True), 'sum(a.id)' + over(False),
        'first_value(a.id)' + over(True), 'count(*)' + over(False, ' GROUPS 1 PRECEDING'),
        'array_agg(a.id)' + over(True, ' ROWS 2 PRECEDING')])
        for _ in range(1 if m.tables.huge else m.rng.randint(1, 3))]
    order = m.order(on(m.keys(1, 2), 'a'), 'a.id') if m.chance(0.5) else ''
    return Query('SELECT a.id, %s FROM t1 a%s%s' % (', '.join(columns), m.where('a'), order),
                 total=bool(order))


def set_returning(m):
    pairs = on(m.keys(1, 2), 'a')
    if m.tables.huge:
        return plain(m)
    if m.chance(0.5):
        return Query('SELECT a.id, generate_series(1, a.id %% 4) AS n FROM t1 a%s, n'
                     % m.order(pairs, 'a.id'), total=True)
    return Query('SELECT %s, a.id, unnest(ARRAY[3, 1, NULL]) FROM t1 a%s'
                 % (m.ranks(pairs), m.order(pairs)), len(pairs))


def function_scan(m):
    n = m.rng.choice([10, 1000, 20000])
    key = m.rng.choice(['i * 7919 %% %d' % (n + 3), "md5(i::text) COLLATE \"C\"", '-i',
                        'i % 3', "(i % 10)::text"])
    return Query('SELECT %s, i FROM generate_series(1, %d) i ORDER BY %s%s, i' % (
        key, n, key, m.direction()), 1, True)


# --- several tables ----------------------------------------------------------------

def join(m):
    key = m.joinable()
    outer = m.rng.choice(['', '', 'LEFT']) if m.tables.n < 2000 else ''
    # the ranks of missing rows are null, whatever rank a null key has
    pairs = [(k, m.rng.choice('a' if outer else 'ab')) for k in m.keys(1, 3)]
    fan = m.tables.fan_out(key.column) * m.tables.n2 / max(m.tables.n, 1)
    total = m.chance(0.5)
    method = m.rng.choice([{}, MERGE_JOIN, {'enable_hashjoin': 'off', 'enable_mergejoin': 'off'}])
    return Query('SELECT %s, a.id, b.id%s FROM t1 a %s JOIN t2 b ON %s = %s AND %s%s' % (
        m.ranks(pairs), m.columns('a'), outer, key.at('a'), key.at('b'), m.every(4000)(fan),
        m.order(pairs, *(['a.id', 'b.id'] if total else []))), len(pairs), total, settings=method)


def merge_join(m):
    """Duplicates on both sides: mark and restore."""
    key, second = m.joinable(), m.rng.choice([None, m.joinable()])
    own = m.chance(0.4)
    fan = m.tables.fan_out(key.column) * (1 if own else m.tables.n2 / max(m.tables.n, 1))
    kind = m.rng.choice(['', '', 'LEFT', 'RIGHT', 'FULL'])
    condition = '%s = %s' % (key.at('a'), key.at('b'))
    if second is not None and second is not key:
        condition += ' AND %s = %s' % (second.at('a'), second.at('b'))
    settings = dict(MERGE_JOIN, enable_material=m.rng.choice(['on', 'off']))
    if m.tables.huge:   # core may take a nested loop all the same, and scan its inner table for each row
        settings['enable_material'] = 'on'
    few = m.every(10000)(fan)
    other = 't1' if own else 't2'
    if m.chance(0.25):
        sql = 'SELECT a.id FROM t1 a WHERE %s %s (SELECT FROM %s b WHERE %s)' % (
            few, m.rng.choice(['AND EXISTS', 'AND NOT EXISTS']), other, condition)
    else:
        sql = 'SELECT a.id, b.id FROM (SELECT * FROM t1 a WHERE %s) a %s JOIN %s b ON %s' % (
            few, kind, other, condition)
    return Query('SELECT count(*), sum(hashtext(x::text)) FROM (%s) x' % sql
                 if m.chance(0.3) else sql, settings=settings, explain=sql)


def set_operation(m):
    keys = m.keys(1, 2, plain=True)
    n = len(keys)
    sides = []
    for alias, table in (('a', 't1'), ('b', m.rng.choice(['t2', 't2', 't1']))):
        sides.append('SELECT %s, %s FROM %s %s%s' % (
            m.ranks(on(keys, alias)), ', '.join(k.at(alias) for k in keys), table, alias,
            m.where(alias)))
    verb = m.rng.choice(['UNION ALL', 'UNION', 'INTERSECT', 'EXCEPT', 'INTERSECT ALL',
                         'EXCEPT ALL'])
    order = ', '.join('%d%s' % (n + 1 + i, m.direction()) for i in range(n))
    return Query('%s %s %s ORDER BY %s' % (sides[0], verb, sides[1], order), n,
                 ignore=range(n, 2 * n), settings={'enable_hashagg': m.rng.choice(['on', 'off'])})


def union_inside(m):
    pairs = on(m.keys(1, 3), 's')
    names = ', '.join(['id'] + [c.name for c in m.tables.columns] + ['g']
                      + ['k%d' % (i + 1) for i in range(len(m.tables.ranks))]
                      + (['f'] if m.tables.added else []))
    return Query('SELECT %s, s.id FROM (SELECT %s FROM t1 UNION ALL SELECT %s FROM t2) s%s' % (
        m.ranks(pairs), names, names, m.order(pairs)), len(pairs))


# --- repeated and partial execution ----------------------------------------------------

def lateral(m):
    outer = 3 if m.tables.huge else m.rng.choice([5, 15])
    where = m.rng.choice(['b.g = a.g', 'b.id > a.id', 'b.id % 3 = a.id % 3'])
    limit = m.rng.choice(['', ' LIMIT 3', ' LIMIT 20 OFFSET 2', ' LIMIT 1 + a.id % 3'])
    limit = limit or (' LIMIT 2000' if m.tables.huge else '')
    inner = 'SELECT b.id FROM t1 b WHERE %s%s%s' % (where, m.order(on(m.keys(1, 2), 'b'), 'b.id'),
                                                   limit)
    outside = '(SELECT * FROM t2 ORDER BY id LIMIT %d) a' % outer
    form = m.rng.randrange(4)
    if form == 0:
        return Query('SELECT a.id, s.id FROM %s, LATERAL (%s) s' % (outside, inner))
    if form == 1:
        return Query('SELECT a.id, s.id, s.n FROM %s LEFT JOIN LATERAL (SELECT t.id, row_number() '
                     'OVER () AS n FROM (%s) t) s ON true ORDER BY 1, 3' % (outside, inner),
                     total=True)
    if form == 2:
        return Query('SELECT a.id, ARRAY(%s) FROM %s ORDER BY a.id' % (inner, outside), total=True)
    single = inner[:len(inner) - len(limit)] + ' LIMIT 1'
    return Query('SELECT a.id, (%s) FROM %s ORDER BY a.id' % (single, outside), total=True)


def rescan(m):
    """The inner side of a nested loop, sorted once and read again."""
    inner = '(SELECT b.id, row_number() OVER () AS n FROM (SELECT * FROM t1 b%s %s) b) s' % (
        m.order(on(m.keys(1, 2), 'b'), 'b.id'),
        m.rng.choice(['OFFSET 0', 'LIMIT 50', 'OFFSET 3']))
    return Query('SELECT a.id, s.id, s.n FROM (SELECT id FROM t2 ORDER BY id LIMIT %d) a '
                 'LEFT JOIN %s ON s.id %% 5 <> a.id %% 5 AND s.n < 300' % (m.rng.choice([2, 6]), inner),
                 settings={'enable_material': m.rng.choice(['off', 'off', 'on'])})


def recursive(m):
    step = 'SELECT b.id, r.n + 1 FROM r JOIN t1 b ON b.id = r.id * 2 WHERE r.n < 5'
    settings = dict(MERGE_JOIN)
    if m.chance(0.5) and not m.tables.huge:
        settings = {}
        step = ('SELECT s.id, r.n + 1 FROM r, LATERAL (SELECT b.id FROM t1 b WHERE '
                'b.g = r.id %% 5%s LIMIT 2) s WHERE r.n < 4'
                % m.order(on(m.keys(1, 2), 'b'), 'b.id'))
    return Query('WITH RECURSIVE r (id, n) AS (SELECT id, 1 FROM t2 WHERE id < 6 UNION ALL %s) '
                 'SELECT id, n FROM r ORDER BY n DESC, id' % step, total=True, settings=settings)


def cte(m):
    pairs = on(m.keys(1, 2), 'x')
    body = 'SELECT a.* FROM t1 a%s LIMIT %d' % (m.order(on(m.keys(1, 3), 'a'), 'a.id'),
                                               m.rng.choice([10, 500, m.tables.n]))
    use = m.rng.choice(['x', 'x JOIN x y ON y.id = x.id', 'x JOIN t2 y ON y.id = x.id + 1'])
    return Query('WITH x AS %s (%s) SELECT %s, x.id FROM %s%s' % (
        m.rng.choice(['', 'MATERIALIZED', 'NOT MATERIALIZED']), body, m.ranks(pairs), use,
        m.order(pairs)), len(pairs))


def prepared(m):
    pairs = on(m.keys(1, 3), 'a')
    sql = ('SELECT a.id%s FROM t1 a WHERE a.id %% $1 <> 0%s, a.id %% $1, a.id LIMIT $2'
           % (m.columns('a'), m.order(pairs)))
    steps = ['PREPARE p (int4, int8) AS ' + sql]
    steps += ['EXECUTE p (%d, %d)' % (m.rng.randint(1, 5), m.rng.choice([1, 10, m.tables.n // 4, 100000]))
              for _ in range(m.rng.choice([2, 6]) if m.tables.n < 1000 else 2)]
    return Query(steps + ['DEALLOCATE p'], total=True,
                 explain=sql.replace('$1', '3').replace('$2', '100000'),
                 settings={'plan_cache_mode': m.rng.choice(
                     ['auto', 'force_generic_plan', 'force_custom_plan'])})


FORWARD = ['FETCH 1', 'FETCH 7', 'FETCH FORWARD 100', 'MOVE 20', 'FETCH NEXT']
ANYWAY = FORWARD + [
    'FETCH BACKWARD 5', 'FETCH PRIOR', 'FETCH FORWARD 0', 'FETCH FIRST', 'FETCH LAST',
    'FETCH ABSOLUTE 9', 'FETCH ABSOLUTE -3', 'FETCH RELATIVE -4', 'MOVE BACKWARD ALL', 'MOVE 500',
    'FETCH RELATIVE 11', 'FETCH BACKWARD 40', 'MOVE FORWARD ALL']


def cursor(m):
    sql = 'SELECT a.id%s FROM t1 a%s%s' % (m.columns('a'), m.where('a'),
                                           m.order(on(m.keys(1, 3), 'a'), 'a.id'))
    scroll = m.chance(0.6)
    hold = m.chance(0.25)
    steps = ['BEGIN', 'DECLARE cur %sSCROLL CURSOR %sFOR %s' % (
        '' if scroll else 'NO ', 'WITH HOLD ' if hold else '', sql)]
    moves = [m.rng.choice(ANYWAY if scroll else FORWARD) for _ in range(m.rng.randint(2, 12))]
    if m.chance(0.6):
        moves.append('FETCH ALL')
    steps += [move + ' FROM cur' for move in moves]
    if hold:
        steps[m.rng.randint(2, len(steps)):0] = ['COMMIT']
        steps.append('CLOSE cur')
        if 'COMMIT' not in steps:
            steps.append('COMMIT')
    else:
        place = m.rng.randint(2, len(steps))
        if m.chance(0.3):
            steps[place:place] = ['SAVEPOINT s', 'ROLLBACK TO s']
        steps.append(m.rng.choice(['COMMIT', 'ROLLBACK']))
    return Query(steps, total=True, explain=sql)


def walked(m):
    """A PL/pgSQL loop with a subtransaction for every row."""
    if m.tables.huge:
        return digest(m)
    sql = 'SELECT a.id%s FROM t1 a%s' % (m.columns('a'), m.order(on(m.keys(1, 3), 'a'), 'a.id'))
    return Query('SELECT walk($q$%s$q$, %d)' % (sql, m.rng.choice([5, 200, 20000])), total=True,
                 explain=sql)


def for_update(m):
    pairs = on(m.keys(1, 3), 'a')
    sql = 'SELECT %s, a.id%s FROM t1 a%s%s%s FOR %s' % (
        m.ranks(pairs), m.columns('a'), m.where('a'), m.order(pairs, 'a.id'),
        m.rng.choice(['', ' LIMIT 20']), m.rng.choice(['UPDATE', 'SHARE', 'KEY SHARE SKIP LOCKED']))
    return Query(['BEGIN', sql, 'ROLLBACK'], total=True, explain=sql)


def inserted(m):
    sql = 'INSERT INTO ins (id) SELECT a.id FROM t1 a%s%s' % (
        m.where('a'), m.order(on(m.keys(1, 3), 'a'), 'a.id'))
    return Query(['CREATE TEMP TABLE IF NOT EXISTS ins (n serial, id int4)',
                  'TRUNCATE ins RESTART IDENTITY', sql, 'SELECT n, id FROM ins ORDER BY n'],
                 total=True, explain=sql.replace('INSERT INTO ins (id) ', ''))


def modified(m):
    picked = 'SELECT a.id FROM t1 a%s %s' % (m.order(on(m.keys(1, 3), 'a'), 'a.id'),
                                            m.rng.choice(['LIMIT 200', 'OFFSET 3']))
    sql = m.rng.choice(['DELETE FROM t1 WHERE id IN (%s) RETURNING id',
                        'UPDATE t1 SET g = g + 1 WHERE id IN (%s) RETURNING id, g']) % picked
    return Query(['BEGIN', sql, 'ROLLBACK'], explain=picked)


KINDS = [(plain, 10), (limited, 9), (nested, 3), (no_columns, 1), (digest, 2), (long_rows, 2),
         (expanded, 1), (subquery_key, 1), (distinct, 3), (distinct_on, 3), (grouped, 4),
         (grouping_sets, 2), (alike, 1), (window, 5), (set_returning, 2), (function_scan, 1), (join, 5),
         (merge_join, 6), (set_operation, 4), (union_inside, 2), (lateral, 4), (rescan, 2),
         (recursive, 2), (cte, 2), (prepared, 3), (cursor, 6), (walked, 2), (for_update, 2),
         (inserted, 2), (modified, 1)]


def make(seed, number, tables, told=None):
    """Query `number` of a seed; with other choices when told (draws.py)."""
    rng = Draws('query %d %d' % (seed, number), told)
    kind = rng.choices([k for k, _ in KINDS], [w for _, w in KINDS])[0]
    query = kind(Maker(rng, tables))
    query.kind, query.number = kind.__name__, number
    if rng.random() < 0.22:
        query.settings.update(PARALLEL)
        if rng.random() < 0.15:
            query.settings['force_parallel'] = 'on'
        # under debug_force no parallel plan is cheaper than a serial one
        query.forced = rng.random() < 0.3
    for name, share in (('enable_incremental_sort', 0.2), ('enable_sort', 0.05),
                        ('enable_seqscan', 0.05), ('enable_memoize', 0.1)):
        if rng.random() < share:
            query.settings[name] = 'off'
    if query.settings.get('enable_nestloop') == 'off':
        query.settings.pop('enable_sort', None)     # both off: core joins by a nested loop, for minutes
    query.drawn = rng.drawn
    return query
