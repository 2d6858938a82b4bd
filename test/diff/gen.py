"""Random tables for the differential test.

Everything follows from the seed.  A seed's schema has two tables of the same
columns, t1 and the smaller t2:

    id int4            unique, in random order
    g int4             a few distinct values
    c1 .. cN           the columns under test, random types and values
    k1 .. kM           ranks, see below
    pad text           sometimes, to make rows wide
    f                  sometimes, a column added later with a fast default

A rank column kJ holds dense_rank() over a sort key, computed by PostgreSQL's
own sort over the rows of both tables.  Two rows have the same rank exactly
when the key's operators call them equal, so a result is in order when its
ranks are, whatever the values look like.
"""

import random
import re
from collections import Counter

import coltypes


class Key:
    """A sort key.  expr and rank are templates with {a} for the table's alias;
    rank is an expression that prints alike exactly for equal keys.  using:
    the operators (<, >) to sort by, or None.  column: the column's name when
    the key is a plain column."""

    def __init__(self, expr, rank, using=None, column=None):
        self.expr, self.rank, self.using, self.column = expr, rank, using, column

    def at(self, alias):
        return self.expr.format(a=alias)

    def rank_at(self, alias):
        return self.rank.format(a=alias)


class Column:
    def __init__(self, name, type_, values, not_null):
        self.name, self.type, self.values, self.not_null = name, type_, values, not_null


def row_count(rng):
    pick = rng.random()
    if pick < 0.07:
        return rng.choice([0, 1, 2])
    if pick < 0.35:
        return rng.randint(3, 100)
    if pick < 0.78:
        return rng.randint(100, 1200)
    if pick < 0.955:
        return rng.randint(1200, 5000)
    return rng.randint(15000, 50000)


WIDEST = 7000                   # bytes that stay in their row, a few of which fill a small work_mem


def literal(value):
    """A value in COPY's text format as a constant."""
    if value is None:
        return 'NULL'
    plain = re.sub(r'\\(.)', lambda m: {'t': '\t', 'n': '\n', 'r': '\r'}.get(m[1], m[1]), value)
    return "'%s'" % plain.replace("'", "''")


class Tables:
    """A seed's tables: `statements()` creates them, `keys` are the sort keys."""

    def __init__(self, seed, names):
        rng = self.rng = random.Random('tables %d' % seed)
        self.seed, self.schema = seed, 'd%d' % seed
        self.n = row_count(rng)
        self.huge = self.n > 6000
        self.n2 = min(self.n // 2, rng.choice([1, 20, 300]))
        width = rng.randint(1, 3 if self.huge else 6)
        self.columns = [self._column(names, i + 1) for i in range(width)]
        self.kind = rng.choice(['heap'] * 6 + ['partitioned', 'inherited', 'unlogged', 'temp'])
        self.kind2 = rng.choice(['heap', 'heap', 'partitioned', 'temp'])
        self.pad = rng.choice([0, 0, 0, 30, 200, 900, WIDEST]) if not self.huge else rng.choice([0, 60])
        self.dropped = rng.sample(range(width + 2), rng.choice([0, 0, 1, 2]))
        self.added = rng.choice([None, None, ('int4', '7', 'f'), ('text', "'fast default'", 'f'),
                                 ('int8 NOT NULL', '-1', 'f')])
        self.presort = rng.choice([None, None, None, 'c1', 'c1 DESC', 'id'])
        self.keys, self.ranks = [], {}
        self._make_keys()
        self.rows = self._rows()
        self._decide()

    # --- columns and keys ---------------------------------------------------

    def _column(self, names, number):
        rng = self.rng
        type_ = coltypes.choose(rng, names, number)
        while type_.big and self.n > 1500:
            type_ = coltypes.choose(rng, names, number)
        distinct = rng.choice([1, 3, 10, 60, self.n // 10, self.n, self.n])
        distinct = max(1, min(distinct, 5000, self.n))
        pool = [type_.value(rng) for _ in range(distinct)]
        if distinct >= self.n and rng.random() < 0.5:
            values = pool
        elif self.n > 0 and random.Random(self.seed * 10 + number).random() < 0.1:
            early = rng.randrange(self.n)       # few values at first, and others later
            if type_.name in ('int2', 'int4', 'int8') and self.seed % 2 == 0:
                pool.sort(key=int)              # these are out of their range, on both sides
                pool = pool[distinct // 2:] + pool[:distinct // 2]
            values = rng.choices(pool[:7], k=early) + rng.choices(pool, k=self.n - early)
        elif rng.random() < 0.15:
            values = [pool[min(int(rng.expovariate(1)), distinct - 1)] for _ in range(self.n)]
        else:
            values = rng.choices(pool, k=self.n)
        if type_.big:
            small = rng.choices(pool[:5], k=3)
            keep = max(2, min(20, 2000 // max(self.n, 1)))
            values = [v if len(v) < 500 or rng.random() * self.n < keep else small[0][:200]
                      for v in values]
        null_share = rng.choice([0, 0, 0.02, 0.3, 1])
        if null_share:
            values = [None if rng.random() < null_share else v for v in values]
        not_null = null_share == 0 and rng.random() < 0.5
        return Column('c%d' % number, type_, values, not_null)

    def _add_key(self, expr, exact, using=None, column=None):
        """expr: a template with {c}-style column names already replaced by
        {a}.name.  Keys whose text tells equality need no rank column."""
        if exact:
            rank = expr
        else:
            number = len(self.ranks) + 1
            self.ranks[number] = (expr.format(a='s'), using)
            rank = '{a}.k%d' % number
        self.keys.append(Key(expr, rank, using, column))

    def _make_keys(self):
        rng = self.rng
        for col in self.columns:
            name = '{a}.' + col.name
            self._add_key(name, col.type.exact and not col.type.big, column=col.name)
            exprs = list(col.type.exprs)
            exprs.append(('CASE WHEN {a}.id % 3 <> 0 THEN {c} END', col.type.exact))
            for expr, exact in rng.sample(exprs, min(len(exprs), rng.choice([0, 1, 1, 2]))):
                if len(self.ranks) < (4 if self.huge else 9):
                    self._add_key(expr.replace('{c}', name), exact and not col.type.big)
            if col.type.pattern and rng.random() < 0.3:
                self._add_key(name, False, using=('~<~', '~>~'))
        if rng.random() < 0.3:
            picked = rng.sample(self.columns, min(2, len(self.columns)))
            row = 'ROW(%s)' % ', '.join('{a}.' + c.name for c in picked)
            self._add_key(row, False, using=rng.choice([None, ('*<', '*>')]))
        if rng.random() < 0.2 and self.n <= 400:
            self._add_key('({a}.id - 100)', False, using=('|<|', '|>|'))
        self.keys.append(Key('{a}.g', '{a}.g', column='g'))
        if self.added:
            self.keys.append(Key('{a}.f', '{a}.f'))

    # --- rows and tables ------------------------------------------------------

    def _rows(self):
        """Rows of the staging table: part, id, g and the columns' values, in
        COPY's text format."""
        ids = list(range(1, self.n + 1))
        self.rng.shuffle(ids)
        groups = self.rng.choice([1, 5, 20])
        return [dict({'part': str(2 if i < self.n2 else 1), 'id': str(id_),
                      'g': str(id_ * 7919 % 101 % groups)},
                     **{c.name: c.values[i] for c in self.columns}) for i, id_ in enumerate(ids)]

    def _decide(self):
        """What happens to the two tables while they are filled."""
        rng = self.rng
        self.what = {}
        for name, kind in (('t1', self.kind), ('t2', self.kind2)):
            what = self.what[name] = {'kind': kind}
            what['dropped'] = [(place, 'gone%d' % number) + rng.choice(
                [('text', "'gone'"), ('int8', 'id'), ('bool', 'id % 2 = 0')])
                for number, place in enumerate(sorted(self.dropped, reverse=True))]
            if kind == 'partitioned':
                what['method'] = rng.choice(['HASH', 'RANGE'])
            what['delete'] = rng.random() < 0.2
            what['index'] = rng.choice(['id', 'g', 'g, id']) if rng.random() < 0.2 else None
        self.analyze = rng.random() < 0.5

    # --- statements ----------------------------------------------------------

    def copy_data(self):
        """The rows as COPY reads them."""
        return ''.join('\t'.join('\\N' if v is None else v for v in row.values()) + '\n'
                       for row in self.rows)

    def inserts(self):
        """Statements that do what COPY does."""
        return ['INSERT INTO s VALUES\n  ' + ',\n  '.join(
            '(%s)' % ', '.join(map(literal, row.values())) for row in self.rows[i:i + 1000])
            for i in range(0, len(self.rows), 1000)]

    def staging(self):
        """Statements before the COPY into table s."""
        found = ['CREATE SCHEMA ' + self.schema, 'SET search_path = %s, public' % self.schema]
        for col in self.columns:
            found += col.type.setup
        columns = ''.join(', %s %s' % (c.name, c.type.decl) for c in self.columns)
        found.append('CREATE UNLOGGED TABLE s (part int, id int4, g int4%s)' % columns)
        return found

    def statements(self):
        """Statements after it."""
        names = ', '.join(['part', 'id', 'g'] + [c.name for c in self.columns])
        ranks = []
        for number, (expr, using) in self.ranks.items():
            order = expr + (' USING %s' % using[0] if using else '')
            ranks.append('(dense_rank() OVER (ORDER BY %s))::int4 AS k%d' % (order, number))
        found = ['CREATE UNLOGGED TABLE sr AS SELECT %s FROM s' % ', '.join([names] + ranks)]
        for part, name in enumerate(self.what, 1):
            found += self._table(name, part, **self.what[name])
        found.append('DROP TABLE s, sr')
        if self.analyze:
            found += ['ANALYZE ' + name for name in self.what]
        return found

    def _table(self, name, part, kind, dropped, delete, index, method=None):
        """Creates and fills a table: some rows, then columns are dropped and
        added, then the other rows."""
        columns = [('id', 'int4 NOT NULL'), ('g', 'int4')]
        columns += [(c.name, c.type.decl + (' NOT NULL' if c.not_null else ''))
                    for c in self.columns]
        columns += [('k%d' % number, 'int4') for number in self.ranks]
        values = {column: column for column, _ in columns}
        if self.pad:
            columns.append(('pad', 'text'))
            values['pad'] = "repeat('p', id * 31 %% %d)" % self.pad
        for place, column, decl, value in dropped:
            columns.insert(place, (column, decl))
            values[column] = value
        found = self._create(name, kind, method, columns)
        if self.pad == WIDEST:
            found.append('ALTER TABLE %s ALTER pad SET STORAGE PLAIN' % name)
        found += self._insert(name, kind, values, 'part = %d AND id %% 5 < 3' % part)
        for _, column, _, _ in dropped:
            found.append('ALTER TABLE %s DROP COLUMN %s' % (name, column))
            del values[column]
        if self.added:
            decl, default, column = self.added
            found.append('ALTER TABLE %s ADD COLUMN %s %s DEFAULT %s'
                         % (name, column, decl, default))
            if 'int' in decl:
                values[column] = 'id % 4'
        found += self._insert(name, kind, values, 'part = %d AND id %% 5 >= 3' % part)
        if delete:
            found.append('DELETE FROM %s WHERE id %% 11 = 3' % name)
        if index:
            found.append('CREATE INDEX ON %s (%s)' % (name, index))
        return found

    def _insert(self, name, kind, values, where):
        """INSERTs of the rows; an inheritance child takes a third of them."""
        insert = 'INSERT INTO %%s (%s) SELECT %s FROM sr WHERE %s%%s%s' % (
            ', '.join(values), ', '.join(values.values()).replace('%', '%%'),
            where.replace('%', '%%'), ' ORDER BY ' + self.presort if self.presort else '')
        if kind == 'inherited':
            return [insert % (name, ' AND id % 3 <> 0'),
                    insert % (name + '_child', ' AND id % 3 = 0')]
        return [insert % (name, '')]

    def _create(self, name, kind, method, columns):
        body = ', '.join('%s %s' % c for c in columns)
        if kind == 'partitioned':
            found = ['CREATE TABLE %s (%s) PARTITION BY %s (id)' % (name, body, method)]
            for i in range(3):
                bounds = ('WITH (MODULUS 3, REMAINDER %d)' % i if method == 'HASH' else
                          'FROM (%s) TO (%s)' % (['MINVALUE', '10', '200'][i],
                                                 ['10', '200', 'MAXVALUE'][i]))
                found.append('CREATE TABLE %s_%d PARTITION OF %s FOR VALUES %s'
                             % (name, i, name, bounds))
            return found
        prefix = {'unlogged': 'UNLOGGED ', 'temp': 'TEMP '}.get(kind, '')
        found = ['CREATE %sTABLE %s (%s)' % (prefix, name, body)]
        if kind == 'inherited':
            found.append('CREATE TABLE %s_child () INHERITS (%s)' % (name, name))
        return found

    def drop(self):
        return ['DROP SCHEMA %s CASCADE' % self.schema, 'DROP TABLE IF EXISTS t1, t2',
                'RESET search_path']

    def fan_out(self, column):
        """About how many pairs of rows of t1 agree in this column."""
        if column == 'g':
            return self.n * self.n / 5
        values = next(c for c in self.columns if c.name == column).values
        return sum(n * n for v, n in Counter(values).items() if v is not None)


# What every database of the test needs once: operators |<| and so on, which
# order integers by magnitude, with a comparison function in PL/pgSQL; walk(),
# which reads a query row by row, with a subtransaction for each, some of them
# aborted; and collations.
ABS = ['''
CREATE FUNCTION abs_cmp(a int4, b int4) RETURNS int4 IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE plpgsql AS $$ BEGIN RETURN sign(abs(a) - abs(b)); END $$''']
for _name, _op in (('lt', '<'), ('le', '<='), ('eq', '='), ('ge', '>='), ('gt', '>')):
    ABS.append('CREATE FUNCTION abs_%s(a int4, b int4) RETURNS bool IMMUTABLE STRICT '
               'PARALLEL SAFE LANGUAGE sql AS $$ SELECT abs(a) %s abs(b) $$' % (_name, _op))
    ABS.append('CREATE OPERATOR |%s| (LEFTARG = int4, RIGHTARG = int4, FUNCTION = abs_%s%s)'
               % (_op, _name, ', MERGES' if _op == '=' else ''))
ABS += ['''
CREATE OPERATOR CLASS abs_ops FOR TYPE int4 USING btree AS OPERATOR 1 |<|, OPERATOR 2 |<=|,
OPERATOR 3 |=|, OPERATOR 4 |>=|, OPERATOR 5 |>|, FUNCTION 1 abs_cmp(int4, int4)''']
WALK = ['''
CREATE FUNCTION walk(query text, stop int4) RETURNS SETOF int4 LANGUAGE plpgsql AS $$
DECLARE
    r record;
    n int4 := 0;
BEGIN
    FOR r IN EXECUTE query LOOP
        n := n + 1;
        EXIT WHEN n > stop;
        BEGIN
            PERFORM 1 / (n % 7);
            RETURN NEXT r.id;
        EXCEPTION WHEN division_by_zero THEN
            RETURN NEXT -r.id;
        END;
    END LOOP;
END $$''']
ICU = [
    "CREATE COLLATION icu_de (provider = icu, locale = 'de')",
    "CREATE COLLATION icu_nd2 (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    "CREATE COLLATION icu_nd1 (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
]


def setup(icu, text=None):
    """Those statements, for a server with ICU or without; or only those that a
    text of SQL needs."""
    if text is None:
        return ABS + WALK + (ICU if icu else [])
    return ((ABS if re.search(r'\|[<>]\|', text) else []) + (WALK if 'walk(' in text else [])
            + [sql for sql in ICU if sql.split()[2] in text])
