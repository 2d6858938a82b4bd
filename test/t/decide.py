#!/usr/bin/python3
"""The rules of test/core/compare.py: they accept what is open, and nothing else."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, 'core'))

import common                           # noqa: E402
import compare                          # noqa: E402
import reasons                          # noqa: E402
from common import equal                # noqa: E402


def shown(statement, header, *rows):
    """What psql prints for a statement."""
    widths = [max(len(str(row[i])) for row in (header,) + rows) for i in range(len(header))]
    lines = [' | '.join(str(cell).ljust(width) for cell, width in zip(row, widths)) for row in rows]
    names = ' | '.join(name.ljust(width) for name, width in zip(header, widths))
    return statement.splitlines() + [' ' + names, '-+-'.join('-' * w for w in widths).join('--')] + \
        [' ' + line for line in lines] + ['(%d row%s)' % (len(rows), '' if len(rows) == 1 else 's'), '']


def rules(core, ours):
    return [difference.rule for difference in compare.compare(core, ours)]


def pair(statement, header, core, ours):
    return rules(shown(statement, header, *core), shown(statement, header, *ours))


def main():
    a, b = [(1, 'x'), (2, 'y'), (2, 'z')], [(1, 'x'), (2, 'z'), (2, 'y')]
    plain = 'SELECT k, v FROM t'
    equal(pair(plain, ['k', 'v'], a, a), [], 'no difference')
    equal(pair(plain + ';', ['k', 'v'], a, b), ['order: none asked for'], 'no ORDER BY: any order')
    equal(pair(plain + ' ORDER BY k;', ['k', 'v'], a, b), ['order: keys equal'], 'ties in any order')
    equal(pair(plain + ' ORDER BY 1 DESC NULLS LAST LIMIT 3;', ['k', 'v'], a, b), ['order: keys equal'],
          'a key by its number')
    equal(pair(plain + ' ORDER BY t.k;', ['k', 'v'], a, b), ['order: keys equal'], 'a key with its table')
    equal(pair(plain + ' ORDER BY k, v;', ['k', 'v'], a, b), [None], 'the second key is out of order')
    equal(pair(plain + ' ORDER BY v;', ['k', 'v'], a, b), [None], 'the only key is out of order')
    equal(pair(plain + ' ORDER BY k + 0;', ['k', 'v'], a, b), [None], 'a key that is not in the result')
    equal(pair('SELECT * FROM (SELECT k, v FROM t ORDER BY v) s;', ['k', 'v'], a, b),
          ['order: none asked for'], 'an ORDER BY inside a subquery')
    equal(pair("SELECT k, v FROM t WHERE v <> ' ORDER BY v';", ['k', 'v'], a, b),
          ['order: none asked for'], 'an ORDER BY inside a string')
    equal(pair('FETCH ALL FROM c;', ['k', 'v'], a, b), [None], 'rows of a cursor')
    equal(pair(plain + ';', ['k', 'v'], a, a[:2]), [None], 'a row is missing')
    equal(pair(plain + ';', ['k', 'v'], a, a[:2] + [(2, 'w')]), [None], 'a row is another')
    equal(pair(plain + ';', ['k', 'v'], a[:2] + a[1:2], a[:2] + a[:1]), [None], 'another row twice')
    equal(pair('EXPLAIN SELECT 1;', ['QUERY PLAN'], [('Sort',)], [('Custom Scan (WiscSort)',)]), ['plan'],
          'a plan')
    notices = ['UPDATE t SET k = 1;', 'NOTICE:  a', 'NOTICE:  b']
    equal(set(rules(notices, [notices[0], notices[2], notices[1]])), {'messages'}, 'notices in another order')
    equal(set(rules(notices, notices[:2])), {None}, 'a notice is missing')
    equal(set(rules(notices, notices[:2] + ['ERROR:  b'])), {None}, 'an error instead of a notice')
    windows = ['first_value', 'k']
    found = compare.compare(
        shown('SELECT first_value(k) over (order by j), k FROM t;', windows, (1, 1), (2, 2)),
        shown('SELECT first_value(k) over (order by j), k FROM t;', windows, (2, 1), (2, 3)))
    equal([reasons.find('window.out', difference) for difference in found], [None],
          'a listed statement with another row')


if __name__ == '__main__':
    common.run([main])
