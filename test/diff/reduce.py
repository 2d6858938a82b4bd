"""Makes a failure of the differential test small.

    reduce(session, tables, query, failure)

repeats the query with something left out, and keeps what still fails in the
same way: choices made while the query was generated (draws.py), settings,
statements, columns, properties of the tables, rows.  What is left is written as
a script for psql, which makes the tables and runs the query with PostgreSQL's
sort and with WiscSort.  A candidate counts only if PostgreSQL's own sort runs
it, twice, with answers that agree and no complaint; so leaving out something
that the query needs is not taken for a failure.
"""

import copy
import os
import time

import psycopg2
from psycopg2.extensions import TRANSACTION_STATUS_IDLE

import draws
import gen
import queries
from session import DATABASES, RULES, Lost, collation

DATABASE = 'wiscsort_reduced'


class OutOfTime(Exception):
    pass


class Case:
    """What is run: the tables, the query, and WiscSort's settings."""

    def __init__(self, tables, query, memory, how):
        self.tables, self.query, self.memory, self.how = tables, query, memory, how

    def but(self, **changed):
        other = copy.copy(self)
        other.__dict__.update(changed)
        return other


class Reducer:
    def __init__(self, session, tables, query, failure):
        self.session, self.original = session, tables
        self.what = failure.what
        self.best = Case(tables, query, failure.memory, failure.how)
        self.made = None                # the tables that are in the database
        self.deadline = time.monotonic() + session.options.reduce_time
        self.tried, self.why, self.best_why = 0, '', ''
        self.queries = {frozenset(query.drawn.items())}

    # --- does it still fail? ------------------------------------------------------

    def fails(self, case):
        """Whether the case fails as the first one did."""
        if time.monotonic() > self.deadline:
            raise OutOfTime()
        self.tried += 1
        session = self.session
        found = None
        stage = 'tables'
        try:
            self.make(case.tables)
            session.set(case.query.settings)
            stage = 'core'
            expected = session.answers(case.query, '64MB', None)
            if session.compare(case.query, expected, session.answers(case.query, '64MB', None)) \
                    or session.leftovers():
                stage = 'core fails'
            elif session.conn.info.transaction_status == TRANSACTION_STATUS_IDLE:
                stage = 'ours'
                got = session.answers(case.query, case.memory, case.how)
                self.why = session.compare(case.query, expected, got)
                left = None if self.why else session.leftovers()
                if left:
                    found, self.why = left.what, left.text
                else:
                    found = 'differs' if self.why else None
            session.clean_up(self.original.seed)
        except psycopg2.Error as error:
            found, self.why = error.pgcode, str(error)
            self.made = None
        except Lost:
            session.recover()
            found, self.why = 'lost', 'the server closed the connection'
            self.made = None
            session.new_log()
        return stage == 'ours' and found == self.what

    def make(self, tables):
        """Puts the tables into the database, if they are not there already."""
        if self.made is tables and not self.session.conn.closed:
            return
        session = self.session
        self.made = None
        session.conn.close()
        session.connect(session.database(tables.seed))
        session.execute('DROP SCHEMA IF EXISTS %s CASCADE' % tables.schema)
        session.create(tables)
        self.made = tables

    def attempt(self, **changed):
        """Takes a changed case when it still fails."""
        case = self.best.but(**changed)
        if not self.fails(case):
            return False
        self.best, self.best_why = case, self.why
        return True

    # --- what can be left out -----------------------------------------------------

    def run(self):
        """Whether the failure could be repeated at all."""
        if not any(self.attempt() for _ in range(3)):
            return False
        try:
            before = None
            while before != self.size():
                before = self.size()
                self.wiscsort_settings()
                self.choices()
                self.properties()
                self.rows()
            self.query_settings()
            self.steps()
            self.properties()
            self.rows()
        except OutOfTime:
            pass
        return True

    def size(self):
        return (len(self.best.tables.rows), len(str(self.best.tables.statements())),
                len(str(self.best.query.steps)), len(self.best.how))

    def wiscsort_settings(self):
        for name in list(self.best.how):
            self.attempt(how={n: v for n, v in self.best.how.items() if n != name})

    def choices(self):
        """Another query, with simpler choices: first of all a plain sort by each of the keys."""
        query = self.best.query
        if query.kind != 'plain':
            kind = {place: 0 for place in list(query.drawn)[:1]}
            plain = self.made_of(kind).drawn
            for place in [p for p in plain if p[0] == 'sample']:
                if any(self.attempt_query(self.made_of(plain | {place: (number,)}))
                       for number in range(len(self.original.keys))):
                    break
        while any(self.attempt_query(self.made_of(told))
                  for told in draws.simpler(self.best.query.drawn)):
            pass

    def attempt_query(self, query):
        """Takes a query when it still fails; each is tried once only, for a
        choice may have no simpler one and come out as it was."""
        choices = frozenset(query.drawn.items())
        if choices in self.queries:
            return False
        self.queries.add(choices)
        return self.attempt(query=query)

    def made_of(self, told):
        return queries.make(self.original.seed, self.best.query.number, self.original, told)

    def query_settings(self):
        query = self.best.query
        if not query.forced:
            self.attempt(query=query.but(forced=True))
        for name in list(query.settings):
            settings = {n: v for n, v in self.best.query.settings.items() if n != name}
            self.attempt(query=self.best.query.but(settings=settings))

    def steps(self):
        for number in reversed(range(len(self.best.query.steps))):
            steps = self.best.query.steps
            if len(steps) > 1:
                self.attempt(query=self.best.query.but(steps=steps[:number] + steps[number + 1:]))

    def properties(self):
        """Columns, and what else the tables need not have."""
        def table(**changed):
            tables = copy.copy(self.best.tables)
            tables.__dict__.update(changed)
            return self.attempt(tables=tables)
        tables = self.best.tables
        if len(tables.what) > 1:
            table(what={'t1': tables.what['t1']})
        for name, value in (('pad', 0), ('added', None), ('presort', None), ('analyze', False)):
            if getattr(tables, name):
                table(**{name: value})
        for name, what in self.best.tables.what.items():
            for key, value in (('kind', 'heap'), ('dropped', []), ('delete', False), ('index', None)):
                now = self.best.tables.what
                if now[name][key] and now[name][key] != value:
                    table(what=dict(now, **{name: dict(now[name], **{key: value})}))
        for number in list(tables.ranks):
            table(ranks={n: r for n, r in self.best.tables.ranks.items() if n != number})
        for column in tables.columns:
            now = self.best.tables
            table(columns=[c for c in now.columns if c is not column],
                  rows=[{n: v for n, v in row.items() if n != column.name} for row in now.rows])

    def rows(self):
        """Delta debugging: leaves out halves, quarters, ... single rows."""
        size = (len(self.best.tables.rows) + 1) // 2
        while size:
            start = 0
            while start < len(self.best.tables.rows):
                tables = copy.copy(self.best.tables)
                tables.rows = tables.rows[:start] + tables.rows[start + size:]
                if not self.attempt(tables=tables):
                    start += size
            size = min(size // 2, len(self.best.tables.rows))

    # --- what is left -------------------------------------------------------------

    def script(self):
        """The case as statements for psql."""
        case, session = self.best, self.session
        query, tables = case.query, case.tables
        body = tables.staging() + tables.inserts() + tables.statements()
        settings = ["SET %s = '%s'" % (session.setting(name), value)
                    for name, value in query.settings.items()]
        ours = ["SET wiscsort.enable = on", "SET wiscsort.threshold = 0",
                'SET wiscsort.debug_force = %s' % ('on' if query.forced else 'off'),
                "SET work_mem = '%s'" % case.memory]
        ours += ["SET %s = '%s'" % item for item in case.how.items()]
        lines = ['-- %s, seed %d, query %d (%s), reduced by test/diff/run' % (
            self.what, tables.seed, query.number, query.kind)]
        lines += ['--   ' + line for line in self.best_why.strip().splitlines()[:12]]
        lines += ['-- Run with psql -X -f.  Makes the database %s and leaves it there.' % DATABASE]
        database = session.database(tables.seed)
        locale = next(how for name, how in DATABASES if name == database)
        text = '\n'.join(body + query.steps)
        setup = gen.setup(True, text)
        used = [name for name in RULES if name + '.utf8' in text + locale]
        setup += [collation(name) for name in used if name + '.utf8' in text]
        if used:
            lines += ['-- The server needs locales, of the system or of LOCPATH: ' + ', '.join(used),
                      '-- (make_locales in tools/locales.py).']
        if 'citext' in text:
            setup.append('CREATE EXTENSION citext')
        return '\n'.join(lines) + '\n' + ';\n'.join(
            ['DROP DATABASE IF EXISTS ' + DATABASE,
             'CREATE DATABASE %s TEMPLATE template0 %s' % (DATABASE, locale),
             "\\connect %s\nLOAD 'wiscsort'" % DATABASE] + setup + body + settings
            + ["\\echo Sort of PostgreSQL:\nSET wiscsort.enable = off", "SET work_mem = '64MB'"]
            + query.steps + ['\\echo WiscSort:\n' + ours[0]] + ours[1:]
            + ['EXPLAIN (COSTS OFF) ' + query.explain] + query.steps) + ';\n'

    def write(self):
        options = self.session.options
        os.makedirs(options.reduced, exist_ok=True)
        name = os.path.join(options.reduced, 'seed-%d-query-%d.sql' % (
            self.original.seed, self.best.query.number))
        with open(name, 'w') as f:
            f.write(self.script())
        return name


def reduce(session, tables, query, failure):
    """Reduces a failure and says, in a line, what became of it."""
    where = 'seed %d, query %d' % (tables.seed, query.number)
    if failure.how is None:
        return "%s: not reduced: it fails with PostgreSQL's own sort" % where
    session.connect(session.database(tables.seed))
    reducer = Reducer(session, tables, query, failure)
    try:
        if not reducer.run():
            return '%s: not reduced: it did not happen again' % where
        best = reducer.best
        return '%s: reduced to %d rows, %d columns and a query of kind %s, in %d attempts: %s' % (
            where, len(best.tables.rows), len(best.tables.columns), best.query.kind, reducer.tried,
            reducer.write())
    finally:
        session.conn.close()
