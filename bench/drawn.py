"""What bench/draw measures: tables and queries drawn by a seed.  Sorts that spill are drawn more often.

Table n of seed s, and the cells on it, depend on s, n and the largest number of rows alone, so that a cell
can be made again without those before it.  Every value is a function of the row's number i: a place p among
the rows says in which order the keys lie in the table, r = p * distinct / rows is which of the distinct
values it is, and u is r spread over 62 bits, in the same order.  A type makes its value of u or r.
"""

import math
import random

from cells import _text as filler_text
from pairs import Query

BYTES = 1_200_000_000           # of a table, at most
HEADER = 32                     # bytes of a row beside its values
U_BITS = 62
U_MAX = 1 << U_BITS
PLAIN_FROM = 1500               # wider fillers would be compressed or moved out
LEAST_ROWS = 1000
SMALL_MEMORY = ('64kB', '256kB')
SMALL_BYTES = 200_000_000       # larger tables are not sorted in those
WORK_MEM = {'64kB': 1, '256kB': 1, '1MB': 2, '4MB': 6, '16MB': 3, '64MB': 4, '256MB': 1, '1GB': 1}
SERIAL = {'max_parallel_workers_per_gather': '0', 'jit': 'off'}
MODES = {'serial': (5, SERIAL),
         'defaults': (3, {'max_parallel_workers_per_gather': '2', 'jit': 'on'}),
         'parallel': (1, {**SERIAL, 'max_parallel_workers_per_gather': '2'}),
         'jit': (1, {**SERIAL, 'jit': 'on'})}
NO_HASH = {'enable_hashagg': 'off'}
MERGE = {'enable_hashjoin': 'off', 'enable_nestloop': 'off'}
WIDTHS = {16: 2, 40: 3, 100: 4, 200: 2, 500: 2, 1000: 1, 4000: 1}
ORDERS = {
    'random': (5, '{h} % {rows}'),
    'sorted': (1, 'i - 1'),
    'reversed': (1, '{rows} - i'),
    'clustered': (1, 'least({rows} - 1, (hashint8extended(i / 500, {salt}) & 4611686018427387903)'
                     ' % ({rows} / 500 + 1) * 500 + i % 500)'),
    'half sorted': (1, 'CASE WHEN i <= {rows} / 2 THEN i - 1 ELSE {h} % {rows} END'),
    'alternately sorted': (1, 'CASE WHEN i % 2 = 0 THEN i - 1 ELSE {h} % {rows} END'),
    'nearly sorted': (1, 'least({rows} - 1, i - 1 + {h} % 1000)'),
}
COLLATIONS = {'C': '"C"', 'libc': 'letters', 'ICU': '"en-x-icu"', 'default': None}
# Of text: (bytes, value)
TEXTS = {
    'hex': (12, "lpad(to_hex({u} >> 14), 12, '0')"),
    'letters': (14, "translate(lpad(to_hex({u} >> 14), 12, '0'), '0123456789abcdef', 'aBcDéFgHïJkLmÑoP')"),
    'digits': (14, '({u} >> 20)::text'),
    'alike': (32, "'customer of the region ' || lpad(({u} >> 34)::text, 9, '0')"),
    'url': (34, "'https://example.org/' || to_hex({u} >> 48) || '/' || to_hex({u} & 68719476735)"),
    'name': (16, "(ARRAY['Anna','Bo','Chloé','de Vries','Eva-Maria','O''Neill','van Dam','Zoë'])[1 + ({u} >> 59)]"
                 " || ' ' || to_hex(({u} >> 20) & 16777215)"),
    'long': (110, "repeat('paragraph ', 8) || lpad(({u} >> 20)::text, 30, ' ')"),
}
# Of the others: a weight, and one or more of (bytes, value)
TYPES = {
    'int4': (4, [(4, '(({u} >> 30) - 2147483648)::int4'), (4, '{r}::int4')]),
    'int8': (4, [(8, '{u} - 2305843009213693952'), (8, '{r}')]),
    'float8': (2, [(8, '({u} - 2305843009213693952) / 1e9::float8'), (8, '{r}::float8 / 4')]),
    'date': (2, [(4, "date '1990-01-01' + ({u} >> 48)::int4")]),
    'timestamptz': (3, [(8, "timestamptz '2000-01-01' + ({u} >> 12) * interval '1 microsecond'"),
                        (8, "timestamptz '2024-01-01' + {r} * interval '1 second'")]),
    'uuid': (2, [(16, "(lpad(to_hex({u}), 16, '0') || left(md5({u}::text), 16))::uuid")]),
    'numeric': (3, [(10, '({u} >> 10)::numeric * 0.0001'), (6, '{r}::numeric / 100'),
                    (14, '{u}::numeric * 1.000000001')]),
    'text': (8, None), 'varchar(60)': (2, None), 'char': (2, None),
    'bool': (1, [(1, '{u} >= 2305843009213693952')]),
    'interval': (1, [(16, "({u} >> 42) * interval '1 minute'")]),
    'inet': (1, [(10, "inet '0.0.0.0' + ({u} >> 30)")]),
    'bytea': (1, [(10, "decode(lpad(to_hex({u}), 16, '0'), 'hex')")]),
    'jsonb': (1, [(16, 'to_jsonb({u} >> 20)'), (40, "jsonb_build_object('a', {u} >> 40, 'b', {r} % 10)")]),
    'int4[]': (1, [(32, 'ARRAY[({u} >> 42)::int4, (({u} >> 21) & 2097151)::int4]')]),
}
SHAPES = {'order': 7, 'copy': 2, 'ctas': 2, 'keys': 2, 'filter': 2, 'group': 2, 'group sorted': 2, 'distinct': 2,
          'distinct on': 1, 'window': 2, 'merge join': 2, 'join': 1, 'limit': 2, 'offset': 1, 'cursor': 1}


def bytes_of(memory):
    return int(memory[:-2]) << {'kB': 10, 'MB': 20, 'GB': 30}[memory[-2:]]


def pick(rng, weights):
    """A key of a dictionary of weights, or of tuples that begin with one."""
    names = list(weights)
    return rng.choices(names, [weights[name][0] if isinstance(weights[name], tuple) else weights[name]
                               for name in names])[0]


class Column:
    """A key column: its type, and the value as a function of the row's number i."""

    def __init__(self, rng, name, rows, first, mixed):
        self.name, self.type, self.collation = name, pick(rng, TYPES), None
        alternatives = TYPES[self.type][1]
        self.words = self.type
        if alternatives is None:
            kind, which = rng.choice(list(TEXTS)), rng.choice(list(COLLATIONS))
            self.bytes, value = TEXTS[kind]
            self.collation = COLLATIONS[which]
            if self.type == 'char':
                self.type = 'char(%d)' % (self.bytes + rng.choice((2, 10)))
                self.bytes = int(self.type[5:-1])
            if self.type == 'varchar(60)' and self.bytes > 60:
                self.type = self.words = 'varchar(200)'
            self.words = '%s %s (%s)' % (self.type, which, kind)
        else:
            self.bytes, value = rng.choice(alternatives)
        # the first of several columns decides less
        numbers = {1: 1, rng.randint(2, 100): 3, rng.randint(1000, 9999): 3, rows: 1 if mixed else 6}
        self.distinct = min(rows, pick(rng, numbers))
        self.nulls = pick(rng, {0: 7, 10: 2, 50: 1})
        self.skew = self.distinct < rows and rng.random() < 0.2
        self.order = pick(rng, ORDERS) if first else 'random'
        salt = rng.randint(1, 1 << 30)
        h = '(hashint8extended(i, %d) & %d)' % (salt, U_MAX - 1)
        place = ORDERS[self.order][1].format(h=h, rows=rows, salt=salt)
        if self.skew:
            place = 'floor(power((%s)::float8 / %d, 4) * %d)::int8' % (place, rows, rows)
        self.r = '(%s) * %d / %d' % (place, self.distinct, rows)
        step = U_MAX // self.distinct
        u, r = '%s_u' % name, '%s_r' % name
        self.u = '%s * %d + (hashint8extended(%s, 5) & %d) %% %d' % (r, step, r, U_MAX - 1, step)
        self.value = value.format(u=u, r=r)
        if self.nulls:
            self.value = 'CASE WHEN (hashint8extended(i, %d) & 1048575) %% 100 >= %d THEN %s END' \
                % (salt + 1, self.nulls, self.value)

    def describe(self):
        return '%s, %d distinct%s%s' % (self.words, self.distinct,
                               ' skewed' if self.skew else '', ', %d %% null' % self.nulls if self.nulls else '')

    def definition(self):
        return '%s %s%s' % (self.name, self.type, ' COLLATE ' + self.collation if self.collation else '')


class Table:
    """One table t (id, keys, v), and u, which has the keys of t's first column once each."""

    def __init__(self, seed, number, max_rows, limits=False):
        rng = random.Random('%d/%d' % (seed, number))
        self.number = number
        span = math.log(max_rows / LEAST_ROWS)
        self.rows = int(LEAST_ROWS * math.exp(span * rng.random() ** 0.4)) if max_rows > LEAST_ROWS else max_rows
        keys = rng.choices((1, 2, 3, 4), (5, 3, 1, 1))[0]
        wanted, again = pick(rng, WIDTHS), rng.randint(1, 1 << 30)

        def columns():
            return [Column(random.Random('%d/%d' % (again, n)), 'k%d' % (n + 1), self.rows, n == 0, n + 1 < keys)
                    for n in range(keys)]
        key_bytes = sum(column.bytes for column in columns()) + 4
        self.width = max(wanted, key_bytes)
        self.filler = self.width - key_bytes
        self.rows = min(self.rows, BYTES // (self.width + HEADER))
        self.columns = columns()
        self.size = self.rows * (self.width + HEADER)
        self.memory = None
        chance = random.Random('%d/%d/limits' % (seed, number))
        if limits and self.size > SMALL_BYTES and chance.random() < 0.3:
            self.memory = max(300, int(self.size / 2**20 * chance.choice((0.6, 1.0, 1.5))) + 150)
        self.cells = rng.randint(3, 6)

    @property
    def names(self):
        return ['id'] + [column.name for column in self.columns] + (['v'] if self.filler > 0 else [])

    def describe(self):
        return '%s rows of %d B: %s; %s' % ('{:,}'.format(self.rows), self.width,
                                            '; '.join(column.describe() for column in self.columns),
                                            self.columns[0].order)

    def create_sql(self):
        definitions = ['id int4'] + [column.definition() for column in self.columns]
        values = ['i::int4'] + [column.value for column in self.columns]
        if self.filler > 0:
            definitions.append('v text')
            values.append(filler_text('i', self.filler))
        found = ['CREATE TABLE t (%s)' % ', '.join(definitions)]
        if self.filler >= PLAIN_FROM:
            found.append('ALTER TABLE t ALTER v SET STORAGE PLAIN')
        ranks = ', '.join('%s AS %s_r' % (column.r, column.name) for column in self.columns)
        spread = ', '.join('%s AS %s_u' % (column.u, column.name) for column in self.columns)
        found.append('INSERT INTO t SELECT %s FROM (SELECT *, %s FROM (SELECT i, %s FROM generate_series(1::int8, %d)'
                     ' i OFFSET 0) r OFFSET 0) s' % (', '.join(values), spread, ranks, self.rows))
        found.append('CREATE TABLE u AS SELECT k1, min(id) AS w FROM t WHERE k1 IS NOT NULL GROUP BY k1'
                     ' ORDER BY min(id)')
        return found


class Cell(Query):
    """One query with its settings on a table."""

    def __init__(self, seed, number, table, place):
        rng = random.Random('%d/%d/%d' % (seed, table.number, place))
        self.seed, self.number, self.table = seed, number, table
        self.shape = pick(rng, SHAPES)
        memories = {name: weight * (3 if bytes_of(name) < table.size / 2 else 1) for name, weight in WORK_MEM.items()
                    if table.size <= SMALL_BYTES or name not in SMALL_MEMORY}
        self.work_mem, self.mode = pick(rng, memories), pick(rng, MODES)
        self.settings = dict(MODES[self.mode][1])
        self.cache = 'limited' if table.memory else pick(rng, {'cached': 12, 'cold': 1})
        names = [column.name for column in table.columns][:rng.randint(1, len(table.columns))]
        if rng.random() < 0.2:
            rng.shuffle(names)
        self.keys = [(name, rng.random() < 0.25, rng.random() < 0.15) for name in names]
        self.fetch = 0
        self.select, self.sorts, self.columns = self._draw(rng, names)
        self.sure = bool({'id', 'n'} & set(self.columns))

    def _draw(self, rng, names):
        """(query without the last ORDER BY, what it is ordered by or None, what it returns)."""
        columns, rows = self.table.names, self.table.rows
        listed = ', '.join(names)
        every = ', '.join(columns)
        if self.shape in ('order', 'copy', 'ctas', 'cursor'):
            if self.shape == 'order' and rng.random() < 0.15 and 'id' not in names:
                self.keys.append(('id', False, False))
            if self.shape == 'cursor':
                self.fetch = min(20000, rng.choice((100, rows // 10)))
            return 'SELECT %s FROM t' % every, True, columns
        if self.shape == 'keys':
            return 'SELECT %s FROM t' % listed, True, names
        if self.shape == 'filter':
            return 'SELECT %s FROM t WHERE id %% %d < 3' % (every, rng.choice((4, 10))), True, columns
        if self.shape in ('group', 'group sorted'):
            if self.shape == 'group sorted':
                self.settings.update(NO_HASH)
            return ('SELECT %s, count(*) AS n, max(id) AS last FROM t GROUP BY %s' % (listed, listed),
                    rng.random() < 0.5, names + ['n', 'last'])
        if self.shape == 'distinct':
            if rng.random() < 0.5:
                self.settings.update(NO_HASH)
            return 'SELECT DISTINCT %s FROM t' % listed, rng.random() < 0.5, names
        if self.shape == 'distinct on':
            self.keys = [(name, False, False) for name in names + ['id']]
            return 'SELECT DISTINCT ON (%s) %s FROM t' % (listed, every), True, columns
        if self.shape == 'window':
            over = rng.choice(('rank() OVER (ORDER BY {0})', 'count(*) OVER (PARTITION BY {0})',
                               'lag(id) OVER (ORDER BY {0}, id)', 'sum(id) OVER (PARTITION BY {1} ORDER BY id)'))
            return ('SELECT %s, %s AS w FROM t' % (every, over.format(listed, names[0])), False, columns + ['w'])
        if self.shape in ('merge join', 'join'):
            if self.shape == 'merge join':
                self.settings.update(MERGE)
            listed = ', '.join('t.' + name for name in columns)
            return 'SELECT %s, u.w FROM t JOIN u ON u.k1 = t.k1' % listed, False, columns + ['w']
        assert self.shape in ('limit', 'offset')
        share = rng.choice((0.05, 0.3, 0.8))
        self.limit = 'LIMIT %d' % max(1, int(rows * share)) if self.shape == 'limit' \
            else 'OFFSET %d LIMIT 100' % int(rows * max(share, 0.3))
        return 'SELECT %s FROM t' % every, True, columns

    def describe(self):
        words = {'cursor': ' FETCH %d' % self.fetch}.get(self.shape, '')
        return '%s%s, %s, %s' % (self.shape, words, self.work_mem, self.mode) \
            + (', ' + self.cache if self.cache != 'cached' else '') \
            + (' in %d MB' % self.table.memory if self.table.memory else '')

    def facts(self, args):
        """What its line says of it."""
        return {'case': 'draw', 'shape': self.shape, 'name': self.describe(), 'cell': self.number,
                'table': self.table.describe(), 'types': [column.words for column in self.table.columns],
                'drawn': '%d/%d/%d%s' % (args.seed, self.number, args.max_rows, '/limits' if args.limits else ''),
                'width': self.table.width, 'rows': self.table.rows, 'work_mem': self.work_mem, 'cache': self.cache,
                'memory': self.table.memory, 'mode': self.mode, 'select': self.timed(),
                'settings': {**self.settings, **dict(item.split('=', 1) for item in args.set)}}

    def script(self):
        """For psql: the cell alone."""
        lines = ['-- seed %d, cell %d: %s' % (self.seed, self.number, self.describe()),
                 '-- ' + self.table.describe(),
                 'DROP TABLE IF EXISTS t, u, made;']
        if any(column.collation == 'letters' for column in self.table.columns):
            lines.append("CREATE COLLATION IF NOT EXISTS letters (provider = libc, locale = 'en_US.utf8');")
        lines += [text + ';' for text in self.table.create_sql()]
        lines += ['VACUUM (FREEZE, ANALYZE) t;', 'VACUUM (FREEZE, ANALYZE) u;', "LOAD 'wiscsort';"]
        lines += ["SET %s = '%s';" % item for item in self.everything().items()]
        for enable in ('off', 'on') * 2:
            lines += ['SET wiscsort.enable = %s;' % enable, 'EXPLAIN (ANALYZE, BUFFERS) %s;' % self.explained()]
        return '\n'.join(lines) + '\n'


def cells(seed, number, max_rows, limits=False):
    """The first so many cells of a seed."""
    found, tables = [], 0
    while len(found) < number:
        table = Table(seed, tables, max_rows, limits)
        tables += 1
        for place in range(table.cells):
            found.append(Cell(seed, len(found) + 1, table, place))
    return found[:number]
