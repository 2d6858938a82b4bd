#!/usr/bin/python3
"""bench/draw: a seed draws the same cells again; every cell can be run; and its check refuses wrong answers."""

import os
import sys

import common
from common import check, equal
from cluster import Cluster
from locales import at_hand

ROOT = os.path.dirname(os.path.dirname(common.HERE))
sys.path.insert(0, os.path.join(ROOT, 'bench'))

import drawn                            # noqa: E402


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


if __name__ == '__main__':
    common.run([seeds_are_repeated, answers_are_checked])
