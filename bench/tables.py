"""Tables of result lines: as text for a terminal, and parts for those in Markdown."""

import results
from results import SIDES

HEADINGS = ('cell', 'rows', 'node', 'core s', 'wisc s', 'ratio [quartiles]', 'need',
            'tax', 'memory MB', 'temp MB', 'answer', 'remarks')
LEFT_ALIGNED = ('cell', 'node', 'answer', 'remarks')


def both(line, field, unit):
    """A figure of either side, core / wiscsort, in the unit."""
    return ' / '.join('%.0f' % (line[side][field] / unit) if side in line else '?' for side in SIDES)


def ratio(line):
    """The median, with the quartiles in brackets."""
    low, median, high = line['ratio']
    return '%.2f [%.2f %.2f]' % (median, low, high)


def remarks(line):
    found = []
    if 'error' in line:
        found.append('ERROR: ' + line['error'][:120])
    elif line.get('correct') is False:
        found.append('ERROR: a wrong answer')
    elif 'ratio' not in line:
        found.append('not measured')
    if line.get('disk_reads'):
        found.append('read from disk')
    if results.missed(line) and not results.failed(line):
        found.append('below need')
    if 'ratio' in line and is_loss(line):
        found.append('loss')
    return '; '.join(found)


def is_loss(line):
    """Whether the query took longer than without WiscSort, and not by chance alone."""
    if line['case'] == 'draw':
        return results.drawn_loss(line)
    return line['ratio'][1] < 1 and line['case'] not in results.OF_OTHERS and line.get('plans') != 'same'


def node(line):
    """Whose sort node the plan had."""
    return {None: '?', True: 'wisc', False: 'core'}[line.get('used_wiscsort')]


def _row(line):
    row = [line['name'], str(line['rows']), node(line)]
    if 'ratio' in line:
        row += ['%.2f' % line['core_seconds'], '%.2f' % line['wiscsort_seconds'], ratio(line)]
    else:
        row += ['?', '?', '?']
    row.append('%.1f' % line['need'] if line.get('need') else '')
    tax = line.get('tax_ratio')
    row.append('%.2f' % tax[1] if tax else '?')
    row.append(both(line, 'memory_kb', 1024))
    row.append(both(line, 'temp_bytes', 2**20))
    return row + [{None: '?', True: 'same', False: 'WRONG'}[line.get('correct')], remarks(line)]


def aligned(headings, rows, left=LEFT_ALIGNED):
    """A table as text: columns of words to the left, others to the right."""
    rows = [headings] + rows
    widths = [max(len(row[i]) for row in rows) for i in range(len(headings))]
    out = []
    for row in rows:
        columns = [value.ljust(width) if heading in left else value.rjust(width)
                   for value, width, heading in zip(row, widths, headings)]
        out.append('  '.join(columns).rstrip())
    out.insert(1, '  '.join('-' * width for width in widths))
    return '\n'.join(out)


def text(lines):
    """The cells as text, one line each; pairs of figures are core / wiscsort."""
    return aligned(HEADINGS, [_row(line) for line in results.losses_first(lines)])


def markdown(headings, rows):
    """A table in Markdown; a heading that begins with '>' is of a column aligned right."""
    def joined(values):
        return '| ' + ' | '.join(str(value).replace('|', '\\|').replace('\n', ' ') for value in values) + ' |'
    rule = ['--:' if heading.startswith('>') else ':--' for heading in headings]
    return '\n'.join([joined(heading.lstrip('>') for heading in headings), joined(rule)]
                     + [joined(row) for row in rows])
