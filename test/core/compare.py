"""Decides whether two outputs of the same psql script differ in ways that matter.

One output is core's, the other ours.  Only two differences are accepted, each
decided from the text of the two result tables and of the statement:

    plan    the statement shows a plan (EXPLAIN, or a function that runs it)
    order   the tables have the same rows, in an order that the statement leaves
            open: it has no ORDER BY, or the columns it orders by, which must
            all be in the table, have the same values row by row

    messages  the notices of a file are the same, in another order: triggers fire
            and functions speak in the order in which rows come

Everything else is undecided, and a failure.
"""

import collections
import difflib
import re

RULER = re.compile(r'^-+(\+-+)*$')
COUNT = re.compile(r'^\(\d+ rows?\)$')
WORDS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|\$(\w*)\$.*?\$\1\$|[A-Za-z_][\w$]*|[^\s]", re.S)

Difference = collections.namedtuple('Difference', 'rule statement core ours')


class Table:
    """A result table in psql's aligned format: lines[start:end], header first."""

    def __init__(self, lines, start, end):
        self.start, self.end = start, end
        self.header = [cell.strip() for cell in lines[start].split('|')]
        ruler = lines[start + 1]
        self.edges = [0] + [m.start() for m in re.finditer(r'\+', ruler)] + [None]
        self.rows = lines[start + 2:end - 1]
        self.lines = lines[start:end]

    def column(self, number):
        """The values of a column, counted from 0, row by row."""
        cells = []
        for row in self.rows:
            parts = row.split('|')
            if len(parts) != len(self.header):
                return None
            cells.append(parts[number].strip())
        return cells


def tables(lines):
    """The result tables of an output, in order."""
    found = []
    i = 0
    while i < len(lines):
        if RULER.match(lines[i]) and i > 0:
            end = i + 1
            while end < len(lines) and not COUNT.match(lines[end]):
                if RULER.match(lines[end]) and lines[end] != lines[i]:
                    break
                end += 1
            if end < len(lines) and COUNT.match(lines[end]):
                found.append(Table(lines, i - 1, end + 1))
                i = end
        i += 1
    return found


def statement_before(lines, start):
    """The statement that produced the table at lines[start]."""
    text = []
    for i in range(start - 1, -1, -1):
        line = lines[i]
        if COUNT.match(line) or (text and re.search(r';\s*(--.*)?$', line)) or \
                re.match(r'(ERROR|NOTICE|WARNING|INFO|DETAIL|HINT|CONTEXT|LINE \d+):?', line):
            break
        text.append(line)
    return '\n'.join(reversed(text)).strip()


def words_of(statement):
    return [m.group(0) for m in WORDS.finditer(statement) if not m.group(0).startswith('--')]


def top_level(statement):
    """(word, position in the list) of words outside parentheses."""
    depth = 0
    for i, word in enumerate(words_of(statement)):
        if word == '(':
            depth += 1
        elif word == ')':
            depth -= 1
        elif depth == 0:
            yield i, word


def order_keys(statement):
    """The ORDER BY list at the top level, each key a list of words; [] if there is none."""
    words = words_of(statement)
    start = None
    level = list(top_level(statement))
    for (i, word), (j, after) in zip(level, level[1:]):
        if word.lower() == 'order' and after.lower() == 'by' and j == i + 1:
            start = j + 1
    if start is None:
        return []
    keys, key, depth = [], [], 0
    for word in words[start:]:
        if word == '(':
            depth += 1
        elif word == ')':
            depth -= 1
        if depth == 0 and word.lower() in ('limit', 'offset', 'fetch', 'for', ';', '\\', 'on'):
            break
        if depth == 0 and word == ',':
            keys.append(key)
            key = []
        else:
            key.append(word)
    return keys + [key]


def key_column(key, header):
    """Number of the output column that a key names, or None."""
    words = list(key)
    lower = [w.lower() for w in words]
    if 'nulls' in lower:
        words = words[:lower.index('nulls')]
    if 'collate' in lower:
        words = words[:lower.index('collate')]
    if 'using' in lower:
        words = words[:lower.index('using')]
    while words and words[-1].lower() in ('asc', 'desc'):
        words = words[:-1]
    if len(words) == 1 and words[0].isdigit():
        return int(words[0]) - 1
    if len(words) == 3 and words[1] == '.':
        words = words[2:]
    if len(words) != 1:
        return None
    name = words[0].strip('"') if words[0].startswith('"') else words[0].lower()
    return header.index(name) if header.count(name) == 1 else None


def is_plan(table):
    return any('QUERY PLAN' in cell for cell in table.header) or \
        any('WiscSort' in line for line in table.rows)


def decide(statement, core, ours):
    """The rule that accepts a pair of differing tables, or None."""
    if is_plan(core) or is_plan(ours):
        return 'plan'
    if core.header != ours.header or sorted(core.rows) != sorted(ours.rows):
        return None
    words = [w.lower() for _, w in top_level(statement)]
    if words[:1] == ['fetch'] or words[:1] == ['execute']:
        return None
    keys = order_keys(statement)
    if not keys:
        return 'order: none asked for'
    for key in keys:
        number = key_column(key, core.header)
        if number is None or number >= len(core.header):
            return None
        a, b = core.column(number), ours.column(number)
        if a is None or a != b:
            return None
    return 'order: keys equal'


def compare(core, ours):
    """Yields a Difference for each table or stretch of lines that differs."""
    core_tables = tables(core)
    ours_tables = tables(ours)
    decided = []                # ranges of core's lines
    if len(core_tables) == len(ours_tables):
        for a, b in zip(core_tables, ours_tables):
            if a.lines == b.lines:
                continue
            statement = statement_before(core, a.start)
            yield Difference(decide(statement, a, b), statement, a.lines, b.lines)
            decided.append((a, b))
    # what is left must be the same
    rest_core = without(core, [a for a, _ in decided])
    rest_ours = without(ours, [b for _, b in decided])
    matcher = difflib.SequenceMatcher(None, rest_core, rest_ours, autojunk=False)
    stretches = [(rest_core[i1:i2], rest_ours[j1:j2], i1)
                 for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != 'equal']
    removed = sorted(line for a, _, _ in stretches for line in a)
    added = sorted(line for _, b, _ in stretches for line in b)
    notices = removed == added and all(line.startswith('NOTICE:') for line in removed)
    for a, b, start in stretches:
        yield Difference('messages' if notices else None,
                         '\n'.join(rest_core[max(0, start - 6):start]), a, b)


def without(lines, cut):
    keep, last = [], 0
    for table in cut:
        keep += lines[last:table.start] + ['(a table that differs)']
        last = table.end
    return keep + lines[last:]
