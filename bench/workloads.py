"""The sections of RESULTS.md on cells drawn by a seed, and on TPC-H and TPC-C."""

import collections

import pictures
import results
from tables import node, ratio
from words import RATIO_AXIS, SOURCE, Section, count, kilobytes, picture_note, size, source

DRAWN = '''\
Cells that nobody has chosen: a seed draws types, collations, distinct values, order in the table,
widths, rows, `work_mem`, parallel workers, jit, and the query. A cell *counts* if core sorts for more
than %d ms and the two plans differ; where they are the same the ratio is noise (*same plans*). Of those
that count, a loss is below %.2f. *mean* is the geometric mean; in the picture, the quartiles are over
the cells of a kind of query. A cell of seed S is repeated by `bench/draw --seed S --cell N`, with the
`--max-rows` of its run.
''' % (results.SORTED_LEAST * 1000, results.DRAWN_NEED)
STANDARD = '''\
%s
*mode*: with the server's defaults (two parallel workers, jit), or serially without jit. *plans*: `same`
means that both sides run one plan, so that the ratio is noise; `sort` that they differ in who sorts and
nothing else; `other` in more; *jit* says what is compiled, core / WiscSort, where that differs. *alone*
is the ratio without jit and with core in a plan of the same shape as WiscSort's, where one of these
differs: the sort's own part.
'''
OTHERS = '''*others* are seconds ÷ seconds of WiscSort: core with `work_mem` so large that it sorts in memory; the
rewrite by hand, which sorts ctids and joins them back; and DuckDB with 1 and 2 threads, memory for
`work_mem` and the table, and text in the order of bytes. The number of a report is that in the picture.
'''
QUERIES = STANDARD % 'The 22 queries, with validation parameters. At least 0.97 is required where the plans differ.'
TPCH = STANDARD % "Reports over TPC-H's tables." + OTHERS
TPCC = STANDARD % "Reports over TPC-C's tables." + OTHERS


# Of the picture of drawn cells: what their queries are.
KINDS = {'ORDER BY': ('order', 'keys', 'filter'), 'COPY, CTAS': ('copy', 'ctas'), 'GROUP BY': ('group', 'group sorted'),
         'DISTINCT': ('distinct', 'distinct on'), 'window': ('window',), 'joins': ('merge join', 'join'),
         'LIMIT, OFFSET': ('limit', 'offset'), 'cursor': ('cursor',)}


def drawn(lines):
    """Of cells drawn by a seed, a row for each run and kind of query, then the cells below 1."""
    shown = [line for line in lines if line['case'] == 'draw']
    counted = [line for line in shown if results.drawn_counts(line)]
    groups = {}
    for line in counted:
        groups.setdefault(line['shape'], []).append(line)
    groups = {shape: groups[shape] for shape in sorted(groups)}

    def row(name, cells):
        ratios = [line['ratio'][1] for line in cells if results.drawn_counts(line)]
        noise = [line['ratio'][1] for line in cells if line['plans'] == 'same']
        return [name, len(cells), len(ratios), '%.2f' % results.mean(ratios), '%.2f' % min(ratios, default=1),
                sum(one < 1 for one in ratios), sum(one < results.DRAWN_NEED for one in ratios),
                '%d: %.2f to %.2f' % (len(noise), min(noise), max(noise)) if noise else '', '']
    runs = list(dict.fromkeys(line['run'] for line in shown))
    rows = [row(run, [line for line in shown if line['run'] == run])[:-1]
            + ['; '.join(source(next(line for line in shown if line['run'] == run))[:2])] for run in runs]
    rows += [row(shape, [line for line in shown if line['shape'] == shape]) for shape in groups]
    rows += [['cell %d: %s; %s' % (line['cell'], line['name'], line['table']), 1, 1, ratio(line), '', '', '', '',
              '; '.join(source(line))] for line in sorted(counted, key=lambda line: line['ratio'][1])
             if line['ratio'][1] < 1]
    svg = groups and pictures.bars(
        'Cells drawn by a seed: how many times faster than core', picture_note(counted), 'kind of query', RATIO_AXIS,
        ['median cell'],
        [('%s\n%d cells' % (kind, len(ratios)), [pictures.Bar(results.quartiles(ratios))])
         for kind, shapes in KINDS.items()
         for ratios in [[line['ratio'][1] for shape in shapes for line in groups.get(shape, [])]] if ratios])
    return Section(shown, ('run, kind of query, or cell below 1', '>cells', '>that count', '>mean', '>least', '>below 1',
                           '>losses', 'same plans', 'PostgreSQL; commit'), rows,
                   'drawn.svg', 'Ratio of cells drawn by a seed, by the kind of query', svg)


def standard(lines, case, answers, picture, title):
    """The queries or the reports of TPC-H or TPC-C: mean of each mode, then the smallest ratios first."""
    shown = [line for line in lines if line['case'] == case and (line['shape'] == 'answer') == answers]
    names = list(dict.fromkeys(line['name'] for line in shown))
    places = {name: name if answers else str(number) for number, name in enumerate(names, 1)}
    conditions = sorted({(line['mode'], line['work_mem'], line['rows']) for line in shown},
                        key=lambda one: (one[0], kilobytes(one[1]), one[2]))
    rows = []
    for mode, memory, number in conditions:
        group = [line for line in shown if (line['mode'], line['work_mem'], line['rows']) == (mode, memory, number)]
        differ = [line for line in group if line['plans'] != 'same']
        alone = [line.get('alone', line['ratio'][1]) for line in differ]
        rows.append(['', 'geometric mean of %d; of %d whose plans differ' % (len(group), len(differ)), mode, size(memory),
                     '', '', '', '', '%.2f' % results.mean([one for one in alone if one]), '', count(number),
                     '%.2f; %.2f' % (results.mean([line['ratio'][1] for line in group]),
                                     results.mean([line['ratio'][1] for line in differ]))] + [''] * len(SOURCE))
    for line in sorted(shown, key=lambda line: (line['plans'] == 'same', line['ratio'][1])):
        jit = '; jit: ' + line['jit'] if 'jit' in line else ''
        alone = '' if 'alone' not in line else '%.2f' % line['alone'] if line['alone'] else 'no such plan'
        others = ', '.join('%s %s' % (name, '%.2f' % (seconds / line['wiscsort_seconds']) if seconds else 'fails')
                           for name, seconds in line.get('others', {}).items())
        rows.append([places[line['name']], line['name'], line['mode'], size(line['work_mem']), node(line),
                     line['plans'] + jit, '%.3f' % line['core_seconds'], '%.3f' % line['wiscsort_seconds'], alone, others,
                     count(line['rows']), ratio(line)] + source(line))
    # a run that measured some of the queries of a larger table does not take the picture from one of all
    numbers = collections.Counter((line['work_mem'], line['rows']) for line in shown)
    best = max(conditions, key=lambda one: (numbers[one[1:]], one[2], -kilobytes(one[1])), default=None)
    usual = [line for line in shown if (line['work_mem'], line['rows']) == best[1:]]
    modes = sorted({line['mode'] for line in usual})
    found = {(line['name'], line['mode']): line for line in usual}
    svg = usual and pictures.bars(
        title, picture_note(usual), 'query' if answers else 'report, by its number in the table', RATIO_AXIS, modes,
        [(places[name], [pictures.Bar(found[name, mode]['ratio']) if (name, mode) in found else None for mode in modes])
         for name in names])
    return Section(shown, ('#', 'query', 'mode', '>work_mem', 'node', 'plans', '>core s', '>WiscSort s', '>alone',
                           'others', '>rows', '>ratio [quartiles]') + SOURCE, rows, picture, title, svg)
