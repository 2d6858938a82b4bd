"""Differences that compare.py cannot decide, each with its reason and a check.

An entry: the test file, a regular expression for the statement, the reason, and
what must hold all the same:

    rows    the same rows in another order
    peers   the same rows in the columns that are not named like a window function
    count   as many rows, whose values the query leaves open
    plan    the result tells of the plan, which debug_force changes
"""

import collections
import re

Entry = collections.namedtuple('Entry', 'file statement reason check')

TIES = 'rows with equal sort keys; the keys are not in the result'
PEERS = 'which of several peers comes first in its window is open'

ENTRIES = [
    Entry('create_index.out', r'ORDER BY \w+ <-> ', TIES, 'rows'),
    Entry('geometry.out', r'ORDER BY distance, area', TIES, 'rows'),
    Entry('groupingsets.out', r'order by coalesce\(a,0\)', TIES, 'rows'),
    Entry('window.out', r'ORDER BY rank\(\) OVER w', TIES, 'rows'),
    Entry('window.out', r'(first_value|last_value|nth_value|lead|lag)\s*\(.*over', PEERS, 'peers'),
    Entry('window.out', r'row_number\(\) OVER \(PARTITION BY depname\)',
          'row_number over a window without ORDER BY', 'count'),
    Entry('window.out', r'row_number\(\) OVER \(PARTITION BY depname ORDER BY enroll_date\) rn', PEERS,
          'peers'),
    Entry('sqljson.out', r'JSON_ARRAYAGG.*OVER \(PARTITION BY', 'an aggregate of a window in any order',
          'count'),
    Entry('sysviews.out', r"where name = 'Caller tuples'", "looks for a memory context of core's sort",
          'plan'),
    Entry('tsrf.out', r'SELECT DISTINCT ON \(g\)', 'DISTINCT ON without ORDER BY', 'count'),
    Entry('join_hash.out', r'\$\$\);', 'shows the batches of a hash join', 'plan'),
]


WINDOW = re.compile(r'^(first_value|last_value|nth_value|nth_2|lead|lag|rn)$')


def plain_cells(lines):
    """The rows of a result table without what is computed over windows, sorted."""
    header = [cell.strip() for cell in lines[0].split('|')]
    plain = [i for i, name in enumerate(header) if not WINDOW.match(name)]
    return sorted([line.split('|')[i].strip() for i in plain] for line in lines[2:-1])


def holds(check, core, ours):
    if check == 'plan':
        return True
    if core[:2] != ours[:2]:
        return False
    if check == 'rows':
        return sorted(core) == sorted(ours)
    if check == 'peers':
        return plain_cells(core) == plain_cells(ours)
    return len(core) == len(ours)


def find(name, difference):
    """The entry that explains a difference, or None."""
    for entry in ENTRIES:
        if name == entry.file and re.search(entry.statement, difference.statement, re.S | re.I) and \
                holds(entry.check, difference.core, difference.ours):
            return entry
    return None
