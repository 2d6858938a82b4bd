"""What the benchmark measures: tables, keys, distributions, queries, cases.

A cell is one combination of a data set, a query and settings.  A data set is
one table (or two, for the join) that can be made again from its description:
every value is a function of the row's number and a fixed seed.

Every key is a monotone function of one number u below 2^62, so a distribution
says only how u depends on the row's number i (1 .. rows).  The row's width is
the bytes of all its values, keys included, without headers; the last column, v,
fills it up.  bench/README.md defines the words.
"""

import glob
import itertools
import json
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
FULL_ROWS = 10_000_000          # rows up to NARROW bytes wide; a fifth beyond
NARROW = 100
PLAIN_FROM = 2000               # wider values would be compressed or moved out
SEED = 20261120

# Per key: (column, type, expression of u) for each column, and its bytes.
KEYS = {
    'int8': ([('k', 'int8', 'u')], 8),
    'float8': ([('k', 'float8', 'u / 1e9::float8')], 8),
    'timestamptz': ([('k', 'timestamptz',
                      "timestamptz '2000-01-01' + (u >> 12) * interval '1 microsecond'")], 8),
    'uuid': ([('k', 'uuid', "(lpad(to_hex(u), 16, '0') || left(md5(u::text), 16))::uuid")], 16),
    'numeric': ([('k', 'numeric', '(u >> 10)::numeric * 0.0001')], 10),
    'text_c': ([('k', 'text COLLATE "C"', "lpad(to_hex(u >> 14), 12, '0')")], 12),
    'text_icu': ([('k', 'text COLLATE "und-x-icu"',
                   "translate(lpad(to_hex(u >> 14), 12, '0'),"
                   " '0123456789abcdef', 'aBcDéFgHïJkLmÑoP')")], 14),
    'text_libc': ([('k', 'text COLLATE "C.utf8"', "lpad(to_hex(u >> 14), 12, '0')")], 12),
    'text_us': ([('k', 'text COLLATE us',
                  "initcap(translate(lpad(to_hex(u >> 14), 12, '0'), '0123456789abcdef', 'aeioulnrstdgbcmp'))")], 12),
    'text_int4desc': ([('k', 'text COLLATE "C"', "lpad(to_hex(u >> 42), 8, '0')"),
                       ('k2', 'int4', '-((u >> 11) & 2147483647)::int4')], 12),
}
COLLATION = "CREATE COLLATION IF NOT EXISTS us (provider = libc, locale = 'en_US.utf8')"    # of text_us
ORDER = {'text_int4desc': 'k, k2 DESC'}

RANDOM = '(hashint8extended(i, %d) & 4611686018427387903)' % SEED
U_MAX = 1 << 62
DISTRIBUTIONS = {
    'random': RANDOM,
    'sorted': '(i - 1) * ({max} / {rows})',
    'reversed': '({rows} - i) * ({max} / {rows})',
    'equal': '({max} / 3)',
    'nulls': 'CASE WHEN hashint8extended(i, 7) % 10 <> 0 THEN ' + RANDOM + ' END',
    'few': '(hashint8extended(i, %d) & 1048575) %% 100 * ({max} / 100)' % SEED,
}
SHAPES = ('table', 'join', 'sortbench_ascii', 'sortbench_binary', 'own')
CACHES = ('shared', 'cached', 'cold', 'limited', 'part', 'pmem')
CONSUMERS = ('count', 'copy', 'keys', 'limit')

DEFAULTS = {
    'case': None, 'name': None, 'shape': 'table', 'width': 100, 'key': 'int8', 'work_mem': '64MB',
    'distribution': 'random', 'cache': 'cached', 'rows': None, 'pairs': None,
    'consume': 'count', 'need': None, 'settings': {}, 'core_settings': {}, 'core_allowed': False,
    'memory': None, 'buffers': None, 'create': None, 'select': None, 'order_by': None, 'count': None,
}
OWN = ('create', 'select', 'count')         # what a cell of the shape `own` says, with or without order_by


class CaseError(Exception):
    """A case file or the command line describes something impossible."""


class Cell:
    """One cell.  Attributes are the names in DEFAULTS."""

    def __init__(self, description, rows=FULL_ROWS):
        unknown = set(description) - set(DEFAULTS)
        if unknown:
            raise CaseError('unknown field: ' + ', '.join(sorted(unknown)))
        for field, value in {**DEFAULTS, **description}.items():
            setattr(self, field, value)
        self.width = int(self.width)
        for field, known in (('shape', SHAPES), ('key', KEYS), ('cache', CACHES),
                             ('distribution', DISTRIBUTIONS), ('consume', CONSUMERS)):
            if getattr(self, field) not in known:
                raise CaseError('%s %r is none of %s'
                                % (field, getattr(self, field), ', '.join(known)))
        if (self.shape == 'own') != all(getattr(self, field) for field in OWN):
            raise CaseError('%s: the shape own, and no other, has %s' % (self.name, ', '.join(OWN)))
        if (self.cache == 'limited') != (self.memory is not None):
            raise CaseError('%s: the cache limited, and no other, has memory' % self.name)
        if (self.cache == 'part') != (self.buffers is not None):
            raise CaseError('%s: the cache part, and no other, has buffers' % self.name)
        self.found_rows = None      # of the shape own: what the query returns, once that is known
        if self.rows is None:
            self.rows = rows if self.width <= NARROW else max(rows // 5, 1)
        if self.name is None:
            self.name = '%s %d B %s %s %s' % (self.key, self.width, self.distribution,
                                              self.work_mem, self.cache)

    def describe(self):
        """The cell as a plain dictionary, for the result file."""
        return {field: getattr(self, field) for field in DEFAULTS}

    @property
    def answer_rows(self):
        """Rows that the measured query returns or counts."""
        if self.shape == 'own':
            return self.found_rows
        return min(self.rows, 1000) if self.consume == 'limit' else self.rows

    # --- data -----------------------------------------------------------

    @property
    def dataset(self):
        """What the data depend on: equal for cells that can share tables."""
        if self.shape == 'table':
            return (self.shape, self.rows, self.width, self.key, self.distribution) + self.place
        if self.shape == 'own':
            return (self.shape, self.rows, tuple(self.create)) + self.place
        return (self.shape, self.rows) + self.place

    @property
    def place(self):
        """Where the tables are, if not where tables are in general."""
        return ('pmem',) if self.cache == 'pmem' else ()

    @property
    def tables(self):
        if self.shape == 'own':
            return re.findall(r'^CREATE TABLE (\w+)', '\n'.join(self.create), re.M)
        return ['t', 'd'] if self.shape == 'join' else ['t']

    def gensort_args(self):
        """Arguments for bench/gensort where it makes the rows, else None."""
        if self.shape == 'sortbench_ascii':
            return ['-a', '-f', 'copy', str(self.rows)]
        if self.shape == 'sortbench_binary':
            return ['-f', 'copy', str(self.rows)]
        return None

    def create_sql(self):
        """Statements that make the tables, empty where gensort fills them."""
        if self.shape == 'sortbench_ascii':
            return ['CREATE TABLE t (k text COLLATE "C", v text)']
        if self.shape == 'sortbench_binary':
            return ['CREATE TABLE t (k bytea, v bytea)']
        if self.shape == 'join':
            return self._join_sql()
        if self.shape == 'own':
            return [statement.format(rows=self.rows) for statement in self.create]
        columns, key_bytes = KEYS[self.key]
        if self.width <= 16:
            filler_type, filler = 'int8', 'hashint8extended(i, 3)'
        else:
            length = self.width - key_bytes
            filler_type, filler = 'text', _text('i', length)
        names = ', '.join('%s %s' % (name, kind) for name, kind, _ in columns)
        values = ', '.join(value for _, _, value in columns)
        statements = [COLLATION] if self.key == 'text_us' else []
        statements.append('CREATE TABLE t (%s, v %s)' % (names, filler_type))
        if self.width >= PLAIN_FROM:
            statements.append('ALTER TABLE t ALTER v SET STORAGE PLAIN')
        u = DISTRIBUTIONS[self.distribution].format(rows=self.rows, max=U_MAX)
        statements.append(
            'INSERT INTO t SELECT %s, %s FROM (SELECT i, %s AS u '
            'FROM generate_series(1::int8, %d) i) s' % (values, filler, u, self.rows))
        return statements

    def _join_sql(self):
        parts = max(self.rows // 100, 1)
        return [
            'CREATE TABLE d (id int8, name text)',
            'INSERT INTO d SELECT i, %s FROM generate_series(1::int8, %d) i'
            % (_text('i', 24), parts),
            'CREATE TABLE t (k int8, part int8, v text)',
            'INSERT INTO t SELECT %s, 1 + (hashint8extended(i, 5) & 4294967295) %% %d, %s '
            'FROM generate_series(1::int8, %d) i' % (RANDOM, parts, _text('i', 60), self.rows),
        ]

    # --- queries --------------------------------------------------------

    @property
    def order(self):
        if self.shape == 'own':
            return self.order_by
        return ORDER.get(self.key, 'k') if self.shape == 'table' else 'k'

    def _source(self, ordered):
        if self.shape == 'own':
            return self.select + (' ORDER BY ' + self.order if ordered and self.order else '')
        select = 'SELECT * FROM t'
        if self.consume == 'keys':
            select = 'SELECT %s FROM t' % self.order.replace(' DESC', '')
        if self.shape == 'join':
            select = 'SELECT t.k, t.part, t.v, d.name FROM t JOIN d ON d.id = t.part'
        limit = ' LIMIT 1000' if self.consume == 'limit' else ''
        return select + (' ORDER BY ' + self.order if ordered else '') + limit

    def query(self, ordered=True):
        """The measured query, or the same one without its ORDER BY."""
        if self.consume == 'copy':
            return "COPY (%s) TO '/dev/null' (FORMAT binary)" % self._source(ordered)
        last = 'count(part), count(v), count(name)' if self.shape == 'join' else 'count(v)'
        if self.consume == 'keys':
            last = 'count(k)'
        if self.shape == 'own':
            last = self.count
        return 'SELECT %s FROM (%s OFFSET 0) s' % (last, self._source(ordered))

    def explainable(self):
        """The measured query in a form that EXPLAIN takes."""
        return self._source(True) if self.consume == 'copy' else self.query()

    def reference_query(self):
        """(rows, sum of the row hashes) without any sort, as far as there is an answer without."""
        return ('SELECT count(*), sum(hash_record_extended(s, 0)) FROM (%s OFFSET 0) s'
                % self._source(self.consume == 'limit'))

    def check_query(self):
        """(rows, sum of the row hashes, rows smaller than their predecessor)
        of the sorted result, in the order in which it arrives."""
        if self.shape == 'own':
            return self._own_check()
        lags, bad = 'lag(k, 1, k) OVER () AS p', 'coalesce(p > k, p IS NULL AND k IS NOT NULL)'
        if 'k2' in self.order:
            lags += ', lag(k2, 1, k2) OVER () AS p2'
            bad += ' OR (p IS NOT DISTINCT FROM k AND p2 < k2)'
        return ('SELECT count(*), sum(hash), count(*) FILTER (WHERE %s) FROM (SELECT k%s, '
                'hash_record_extended(s, 0) AS hash, %s FROM (%s OFFSET 0) s) w'
                % (bad, ', k2' if 'k2' in self.order else '', lags, self._source(True)))


    def checked_query(self):
        """The part of check_query that has the sort."""
        if self.shape != 'own' or not self.order:
            return self.check_query()
        return ('SELECT s.*, hash_record_extended(s, 0) AS hash, row_number() OVER () AS arrival FROM (%s OFFSET 0) s'
                % self._source(True))

    def _own_check(self):
        """The same for any ORDER BY: no row's rank, which core finds, may be less than its predecessor's."""
        if not self.order:
            return 'SELECT count(*), sum(hash_record_extended(s, 0)), 0 FROM (%s OFFSET 0) s' % self.select
        ranked = 'SELECT hash, arrival, rank() OVER (ORDER BY %s) AS place FROM arrived s' % self.order
        return ('BEGIN; CREATE TEMP TABLE arrived ON COMMIT DROP AS %s; SET LOCAL wiscsort.enable = off; '
                'SELECT count(*), sum(hash), count(*) FILTER (WHERE place < before) FROM (SELECT hash, place, '
                'lag(place) OVER (ORDER BY arrival) AS before FROM (%s) s) w' % (self.checked_query(), ranked))


def _text(i, length):
    """An expression: length characters that depend on i."""
    return 'left(repeat(md5(%s::text), %d), %d)' % (i, (length + 31) // 32, length)


# --- cases and grid -----------------------------------------------------

def load_cases():
    """Name -> contents of every file in bench/cases that lists cells."""
    found = {}
    for path in sorted(glob.glob(os.path.join(HERE, 'cases', '*.json'))):
        with open(path) as f:
            contents = json.load(f)
        if 'cells' in contents:
            found[os.path.splitext(os.path.basename(path))[0]] = contents
    return found


def case_cells(names, rows):
    """The cells of the named cases.  A name is a file, or file/part where part
    is in a cell's name."""
    cases, cells = load_cases(), []
    for name in names:
        base, _, part = name.partition('/')
        if base not in cases:
            raise CaseError('no case %s; there are: %s' % (base, ', '.join(cases)))
        chosen = [c for c in cases[base]['cells'] if part in c.get('name', '')]
        if not chosen:
            raise CaseError('no cell of %s has %r in its name' % (base, part))
        pairs, create = cases[base].get('pairs'), cases[base].get('create', {})
        for c in chosen:
            if 'create' in c:
                c = {**c, 'create': create[c['create']]}
            cells.append(Cell({'pairs': pairs, **c, 'case': base}, rows))
    return cells


def load_axes():
    with open(os.path.join(HERE, 'cases', 'grid.json')) as f:
        return json.load(f)


def grid_cells(arguments, rows):
    """The product of the grid's axes.  An argument is axis=value,value,... or
    axis=all, or all alone for every value of every axis; an axis that is not
    named keeps its default."""
    grid = load_axes()
    axes = {name: [axis['default']] for name, axis in grid['axes'].items()}
    for argument in arguments:
        name, _, values = argument.partition('=')
        if argument == 'all':
            axes = {name: axis['values'] for name, axis in grid['axes'].items()}
        elif name not in axes or not values:
            raise CaseError('%r is not AXIS=VALUES with an axis of %s'
                            % (argument, ', '.join(axes)))
        elif values == 'all':
            axes[name] = grid['axes'][name]['values']
        else:
            axes[name] = values.split(',')
    return [Cell({'pairs': grid['pairs'], 'case': 'grid', **dict(zip(axes, combination))}, rows)
            for combination in itertools.product(*axes.values())]
