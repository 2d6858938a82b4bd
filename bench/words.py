"""Words for a line of results, and the parts of RESULTS.md: what bench/report and workloads.py share."""

import pictures
from tables import markdown, ratio, remarks

PICTURES = 'docs/pictures'
RATIO_AXIS = 'core time ÷ WiscSort time'
KEYS = {'text_c': 'text "C"', 'text_icu': 'text ICU', 'text_libc': 'text C.utf8',
        'text_us': 'text en_US.utf8', 'text_int4desc': 'text "C", int4 DESC'}
# In this order in tables and pictures; what is not listed comes last.
KEY_ORDER = ('int8', 'float8', 'timestamptz', 'uuid', 'numeric', 'text_c', 'text_icu', 'text_libc',
             'text_us', 'text_int4desc')
DISTRIBUTIONS = ('random', 'sorted', 'reversed', 'equal', 'nulls', 'few')
CACHES = ('cached', 'shared', 'part', 'pmem', 'cold')
SHAPES = ('table', 'join')
MEMORY_UNITS = {'kB': 1, 'MB': 1 << 10, 'GB': 1 << 20}
STORE = 'wiscsort.record_store'
THRESHOLD = 'wiscsort.threshold'
SOURCE = ('PostgreSQL', 'commit', 'date and run', 'remarks')
TAIL = ('>rows', '>ratio [quartiles]', '>tax') + SOURCE



# --- words for a line -----------------------------------------------------

def kilobytes(text):
    """work_mem in kB, for an order."""
    number, unit = text[:-2], text[-2:]
    return int(number) * MEMORY_UNITS[unit] if unit in MEMORY_UNITS and number.isdigit() else 0


def size(text):
    """'64MB' as '64 MB'."""
    return text[:-2] + ' ' + text[-2:] if kilobytes(text) else text


def count(number):
    return '{:,}'.format(number) if isinstance(number, int) else '?'


def source(line):
    """The columns of SOURCE."""
    versions = line.get('versions', {})
    changed = '+' if versions.get('uncommitted_changes') else ''
    return [versions.get('postgresql', '?'), (versions.get('commit') or '?')[:9] + changed, line['run'],
            remarks(line)]


def tail(line):
    """The columns of TAIL."""
    tax = line.get('tax_ratio')
    return [count(line.get('rows')), ratio(line), '%.2f' % tax[1] if tax else ''] + source(line)


def position(order, value):
    return order.index(value) if value in order else len(order)


def sort_key(line):
    """By what was sorted, then by the conditions."""
    return (position(SHAPES, line.get('shape')), line.get('width') or 0, position(KEY_ORDER, line.get('key')),
            position(DISTRIBUTIONS, line.get('distribution')), kilobytes(line.get('work_mem', '')),
            position(CACHES, line.get('cache')), -(line.get('rows') or 0), line['name'], line['run'])


def settings(line):
    return line.get('settings', {})


def store(line):
    """The record store asked for."""
    return settings(line).get(STORE, 'auto')


def described(line):
    """The settings of the cell as words."""
    return ', '.join('%s = %s' % item for item in sorted(settings(line).items()))


def is_plain(line):
    """A sort of one table that consumes every row, on equal terms."""
    return (line.get('shape') == 'table' and line.get('consume') == 'count'
            and not line.get('core_settings') and not line.get('memory') and set(settings(line)) <= {STORE, THRESHOLD})


def memory_names(memories):
    """Names for a legend: only the first says what it is."""
    return [('' if number else 'work_mem ') + size(memory) for number, memory in enumerate(memories)]


def usual_rows(lines):
    """The number of rows that most lines have; of two, the larger."""
    numbers = [line['rows'] for line in lines]
    return max(numbers, key=lambda rows: (numbers.count(rows), rows), default=0)


def bar(line, need=None):
    return line and pictures.Bar(line['ratio'], need)


def picture_note(lines):
    """Numbers of rows, releases and dates of what a picture shows."""
    lines = list(lines)
    dates = sorted({line['date'] for line in lines})
    rows = sorted({line['rows'] for line in lines})
    return '%s rows; PostgreSQL %s; measured %s' % (
        ' to '.join(map(count, dict.fromkeys((rows[0], rows[-1])))),
        ', '.join(sorted({source(line)[0] for line in lines})),
        ' to '.join(dict.fromkeys((dates[0], dates[-1]))))


class Section:
    """A part of RESULTS.md: the lines that it shows, its text, and its pictures (name -> SVG).
    All sections but the first get the newest lines, oldest first."""

    def __init__(self, shown, headings, rows, picture=None, alt='', svg=None):
        self.shown = shown
        self.text = markdown(headings, rows)
        self.pictures = {}
        if svg:
            self.text = '![%s](%s/%s)\n\n%s' % (alt, PICTURES, picture, self.text)
            self.pictures[picture] = svg
