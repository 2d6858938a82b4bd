"""The sections of RESULTS.md on tables beyond memory, and on types that the grid has no key for."""

import re

import pictures
from words import RATIO_AXIS, TAIL, Section, bar, described, kilobytes, memory_names, picture_note, size, sort_key, tail

BEYOND = '''\
A server in a memory cgroup of so many MB, which hold its page cache, too: tables and temporary files beyond
that are read from the disk. Drawn cells in such a cgroup are in their own section. The picture has sizes of
tables of 16, 100 and 1000 B rows, as multiples of the memory.
'''
TYPES = '''\
1 M rows of 100 B and their keys, of types and collations of the case `types`: libc's collations are of
locales with rules of their own. *of int8* is the ratio of a sort by two columns, or by few values, divided by
that of different int8 values with the same `work_mem`. At least 1.3 is required of every ratio.
'''
TIMES = re.compile(r'([\d.]+) times the memory, (\d+) B rows')
KIND = re.compile(r'(.*), (all different|7 values|all different, date|date, all different|date, 7 values|'
                  r'7 values, int4 DESC), (\w+)$')
SERIES = (('all different', '4MB'), ('all different', '64MB'), ('7 values, int4 DESC', '4MB'), ('7 values, int4 DESC', '64MB'))


def beyond(lines):
    """Cells of a limited memory, but for those that were drawn."""
    shown = sorted((line for line in lines if line.get('cache') == 'limited' and line['case'] != 'draw'),
                   key=lambda line: (line['case'], sort_key(line)))
    groups = {}
    for line in shown:
        match = TIMES.match(line['name'])
        if match:
            group = groups.setdefault((int(match.group(2)), float(match.group(1))), {})
            group.setdefault(line['work_mem'], line)
    memories = sorted({memory for group in groups.values() for memory in group}, key=kilobytes)
    svg = groups and pictures.bars(
        'Tables beyond memory: how many times faster than core',
        picture_note(line for group in groups.values() for line in group.values()),
        "bytes of a row's values; size of the table, as a multiple of the memory", RATIO_AXIS, memory_names(memories),
        [('%d B\n%g times' % group, [bar(found.get(memory)) for memory in memories])
         for group, found in sorted(groups.items())])
    rows = [[line['name'], line['case'], line['memory'], line['width'], size(line['work_mem']), described(line)] + tail(line)
            for line in shown]
    return Section(shown, ('cell', 'case', '>memory MB', '>width B', '>work_mem', 'settings') + TAIL, rows,
                   'beyond.svg', 'Ratio of tables beyond memory, by their size', svg)


def types(lines):
    """The case `types`: the smallest ratios first."""
    shown = sorted((line for line in lines if line['case'] == 'types'), key=lambda line: (line['ratio'][1], line['name']))
    named = {line['name']: KIND.match(line['name']).groups() for line in shown if KIND.match(line['name'])}
    found = {named[line['name']]: line for line in shown if line['name'] in named}
    rows = []
    for line in shown:
        kind, order, memory = named.get(line['name'], (line['name'], '', line['work_mem']))
        plain = found.get(('int8', 'all different', memory))
        share = '%.2f' % (line['ratio'][1] / plain['ratio'][1]) if plain and order != 'all different' else ''
        rows.append([kind, order, size(memory), share] + tail(line))
    kinds = list(dict.fromkeys(sorted(kind for kind, _, _ in found)))
    memories = [series for series in SERIES if any((kind,) + series in found for kind in kinds)]
    svg = found and pictures.bars(
        'By type and collation: how many times faster than core', picture_note(shown), 'type of the key', RATIO_AXIS,
        ['%s, %s' % (order, size(memory)) for order, memory in memories],
        [(kind, [bar(found.get((kind,) + series)) for series in memories]) for kind in kinds])
    return Section(shown, ('type', 'keys', '>work_mem', '>of int8') + TAIL, rows,
                   'types.svg', 'Ratio by types and collations', svg)
