#!/usr/bin/python3
"""bench/draw: a seed draws the same cells again; every cell can be run; its check refuses wrong answers; and a
measurement that is not what it says fails."""

import argparse
import os
import sys

import common
from common import check, equal
from cluster import Cluster
from locales import at_hand

ROOT = os.path.dirname(os.path.dirname(common.HERE))
sys.path.insert(0, os.path.join(ROOT, 'bench'))

import drawn                            # noqa: E402
import measure                          # noqa: E402
import pairs                            # noqa: E402
import workloads                        # noqa: E402


def seeds_are_repeated():
    many, few = drawn.cells(5, 60, 5000), drawn.cells(5, 12, 5000)
    equal([cell.script() for cell in few], [cell.script() for cell in many[:12]],
          'a cell does not depend on how many there are')
    check(drawn.cells(6, 1, 5000)[0].script() != few[0].script(), 'another seed, other cells')
    equal(drawn.cells(5, 60, 5000, limits=True)[59].timed(), many[59].timed(), '--limits changes no query')
    large = {cell.table.number: cell.table for cell in drawn.cells(5, 400, 10000000)}.values()
    check(all(drawn.LEAST_ROWS <= table.rows <= 10000000 and table.size <= drawn.BYTES for table in large)
          and max(table.rows for table in large) > 3000000, 'tables have 1,000 to 10,000,000 rows, in 1.2 GB',
          sorted((table.rows, table.size) for table in large))
    shapes = {cell.shape for cell in drawn.cells(5, 400, 5000)}
    equal(shapes, set(drawn.SHAPES), 'every kind of query is drawn')
    equal(sorted(shape for kind in workloads.KINDS.values() for shape in kind), sorted(drawn.SHAPES),
          'each of them is in the picture')


def answers_are_checked():
    """On core's own answers: right, in another order, and with a row that is another."""
    with at_hand() as lacking:
        if lacking:
            return common.skip('answers are checked', lacking)
        with Cluster(common.options.pg_config) as server:
            server.psql("CREATE COLLATION letters (provider = libc, locale = 'en_US.utf8')")
            conn, table, disorders = server.connect(), None, 0
            for cell in drawn.cells(5, 60, 1500):
                with conn.cursor() as cur:
                    if table is not cell.table:
                        cur.execute('DROP TABLE IF EXISTS t, u')
                        for statement in cell.table.create_sql():
                            cur.execute(statement)
                        table = cell.table
                    cur.execute(cell.check())
                    right = cur.fetchone()
                    good = right[2] == 0 and (cell.limit or right[0] > 0)
                    if cell.reference():
                        cur.execute(cell.reference())
                        good = good and cur.fetchone() == right[:2]
                    if not good:
                        check(False, 'cell %d: its answer' % cell.number, '%s\n%s' % (cell.check(), right))
                    for text in (cell.timed(), cell.explained()):
                        cur.execute('BEGIN; EXPLAIN ' + text if not text.startswith('COPY') else 'BEGIN; ' + text)
                        cur.execute('ROLLBACK')
                    # all keys the other way round: as many disorders as there are different neighbours
                    cell.keys, before = [(name, not down, first) for name, down, first in cell.keys], cell.order_by
                    if cell.sorts and not cell.limit:
                        wrong = cell.check().replace('ORDER BY ' + cell.order_by, 'ORDER BY ' + before)
                        cur.execute('SELECT count(*) FROM (SELECT DISTINCT %s FROM (%s) s) s'
                                    % (', '.join(name for name, _, _ in cell.keys), cell.query()))
                        different = cur.fetchone()[0]
                        cur.execute(wrong)
                        found = cur.fetchone()[2]
                        disorders += found
                        if found < different - 1:
                            check(False, 'cell %d: rows in the opposite order are told' % cell.number,
                                  '%s\n%d of %d' % (wrong, found, different))
            check(disorders > 1000, 'rows in the opposite order are told: %d' % disorders)
            conn.close()


class Rows(pairs.Pairs):
    """A table; and a view that has other rows for WiscSort, or in another order."""

    def server(self):
        if self.bench is None:
            self.bench = measure.Bench(common.options.pg_config)
            self.bench.server().psql('''
                CREATE TABLE t AS SELECT i AS id, hashint4(i) AS k, repeat('x', 90) AS v FROM generate_series(1, 200000) i;
                ANALYZE t;
                CREATE VIEW fewer AS SELECT * FROM t WHERE id <> 77 OR current_setting('wiscsort.enable') = 'off';
                CREATE VIEW other AS SELECT id, k, CASE WHEN id = 77 THEN current_setting('wiscsort.enable') ELSE v END
                    AS v FROM t;
                CREATE VIEW sorted AS SELECT id, CASE current_setting('wiscsort.enable') WHEN 'on' THEN k ELSE -k END
                    AS k, v FROM t;''')
            self.tables = ['t']
        return self.bench.server()

    def load(self, cell):
        self.server()


class Selected(pairs.Query):
    """Rows of a table or a view, sorted by k."""

    work_mem, settings = '1MB', {}

    def __init__(self, table, shape='order', **more):
        self.select, self.shape, self.columns = 'SELECT id, k, v FROM ' + table, shape, ['id', 'k', 'v']
        self.keys, self.sorts = [('k', False, False)], True
        for name, value in more.items():
            setattr(self, name, value)


def measurements_fail():
    """What differs between both sides, is not the expected plan, or was read from the disk, is an error."""
    more = argparse.Namespace(set=[], pairs=1, most=1)
    with Rows(more) as measured:
        found = measured.measure(Selected('t', expects=['WiscSort']))
        check('error' not in found and found['used_wiscsort'] and found['plans'] == 'sort' and found['correct']
              and found['core']['methods'] == ['external merge'], 'a measurement', found)
        for shape, more in (('copy', {}), ('ctas', {}), ('cursor', {'fetch': 100}), ('limit', {'limit': 'LIMIT 20000'})):
            found = measured.measure(Selected('t', shape, **more))
            check('ratio' in found and 'error' not in found, 'a measurement by ' + shape, found)
        for table, shape in (('fewer', 'order'), ('other', 'order'), ('sorted', 'order'), ('sorted', 'cursor'),
                             ('other', 'ctas')):
            found = measured.measure(Selected(table, shape, fetch=1000))
            check('a wrong answer' in found.get('error', ''), 'wrong rows of %s, %s' % (table, shape), found)
        for table, places, wrong in (('t', [1], False), ('other', [1], True), ('fewer', [1], True)):
            found = measured.measure(Selected(table, 'answer', places=places, keys=(), columns=(), sorts=False,
                                              select='SELECT id, k, v FROM %s ORDER BY k' % table))
            equal('a wrong answer' in found.get('error', ''), wrong, 'the whole answer of ' + table)
        found = measured.measure(Selected('t', expects=['Merge Join']))
        check('not the expected plan: no Merge Join' in found.get('error', ''), 'another plan is an error', found)
        reads, measure.Bench._disk_reads = measure.Bench._disk_reads, staticmethod(lambda conn, n=[0]: n.append(0) or
                                                                                   len(n) << 21)
        found = measured.measure(Selected('t'))
        measure.Bench._disk_reads = staticmethod(reads)
        check('read from the disk' in found.get('error', ''), 'reading from the disk is an error', found)


if __name__ == '__main__':
    common.run([seeds_are_repeated, answers_are_checked, measurements_fail])
