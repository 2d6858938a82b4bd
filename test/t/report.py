#!/usr/bin/python3
"""bench/report: what RESULTS.md and its pictures say of given lines, and that those
in the repository are of the lines in the repository.  No server is needed."""

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import common
from common import check, equal

ROOT = os.path.dirname(os.path.dirname(common.HERE))
sys.path.insert(0, os.path.join(ROOT, 'bench'))

import cells                            # noqa: E402
import results                          # noqa: E402
import tables                           # noqa: E402

REPORT = os.path.join(ROOT, 'bench', 'report')
SVG = '{http://www.w3.org/2000/svg}'
LOSSES = '## Where wiscsort loses or gains little'
FAILURES = '## Cells without a result'
RUN = {'date': '2026-01-02', 'run': '2026-01-02-made-up', 'command': ['--case', 'headline'],
       'core_only': False, 'server': {'jit': 'off', 'port': '5432', 'lc_time': 'C'},
       'machine': {'cpu': 'a', 'cores': 2, 'ram_kb': 2048, 'kernel': 'k', 'file_system': 'f'},
       'versions': {'postgresql': 'PostgreSQL 15.1 (made up)', 'commit': '0123456789abcdef',
                    'uncommitted_changes': False, 'library_sha256': 'f' * 64, 'wiscsort': '0.1'}}


def measured(ratio, case='headline', **fields):
    """What measure.Bench gives of a cell, with the fields of a description."""
    cell = cells.Cell({'name': 'a cell', 'case': case, **fields}).describe()
    pair = {'ratio': ratio, 'load_average': 0.5}
    seen = {'rss_anon_peak_kb': 4096, 'rss_file_peak_kb': 1024, 'temp_bytes': 2 << 20,
            'sorts': [{'Sort Method': 'made up', 'Record Store': 'spool'}]}
    cell.update(pairs=[{**pair, 'counted': False}] + [{**pair, 'counted': True}] * 3,
                ratio=[ratio - 0.01, ratio, ratio + 0.02], tax_ratio=[ratio] * 3, core_seconds=ratio,
                wiscsort_seconds=1.0, unsorted_seconds=0.5, disk_reads=False, used_wiscsort=True,
                shared_buffers='128MB', answer={'correct': True}, observed={'core': seen, 'wiscsort': seen})
    return cell


def line(ratio, case='headline', date='2026-01-02', run='made-up', number=1, of=1, **fields):
    run = {**RUN, 'date': date, 'run': '%s-%s' % (date, run)}
    return results.cell_line(run, number, of, measured(ratio, case, **fields))


def neighbour(ratio, **fields):
    pair = {'counted': True, 'ratio': ratio}
    for side in results.SIDES:
        pair[side] = {'tps': 1000.0, 'sorts': 7, 'sort_seconds': 0.5}
    description = {'name': 'pgbench beside sorts, 64MB', 'work_mem': '64MB', 'rows': 100000, 'clients': 1,
                   'seconds': 1, 'settings': {}, 'need': 0.95, **fields}
    return results.neighbour_line(RUN, description, [pair], 1200.0, [ratio] * 3)


def merge(reads, ratio, wanted=64, **fields):
    cell = {'name': '%d runs, %s' % (wanted, reads), 'table': 'orders', 'rows': 1000, 'wanted': wanted, 'runs': wanted,
            'block_kb': 4, 'merge_memory': '2600kB', 'reads': reads, 'assist': 64 if reads == 'read_order' else 0,
            'formation_seconds': 1.0, 'merge_seconds': 6 / ratio, 'waited_seconds': 0.5, 'pairs': 3,
            'ratio': [ratio - 0.1, ratio, ratio + 0.1], 'double_ratio': [ratio] * 3, **fields}
    return results.merge_line(RUN, 1, 1, cell)


def contest(ratio, **fields):
    plans = [{'plan': 'WiscSort', 'cost': 50000, 'seconds': 0.25, 'runs': 3},
             {'plan': 'Index Scan', 'cost': 80000, 'seconds': 0.25 * ratio, 'runs': 3},
             {'plan': 'Unique < WiscSort', 'cost': None, 'seconds': 0.5, 'runs': 1}]
    found = {'name': 'ORDER BY, 4MB', 'work_mem': '4MB', 'rows': 1000, 'settings': {}, 'select': 'SELECT 1', 'pairs': 3,
             'ratios': [ratio] * 3, 'ratio': [ratio] * 3, 'loss': 1.0, 'core_seconds': 0.25 * ratio,
             'wiscsort_seconds': 0.25, 'used_wiscsort': True, 'chosen': 'WiscSort', 'core_chosen': 'Index Scan',
             'fastest': 'WiscSort', 'plans': plans, **fields}
    return results.contest_line(RUN, 1, 1, found, 0.95)


def query(ratio, case='tpch', error=None, number=1, of=1, **fields):
    """A line of bench/tpch, bench/tpcc or bench/draw."""
    facts = {'case': case, 'shape': 'report', 'name': 'a report', 'mode': 'serial', 'rows': 1000, 'work_mem': '4MB',
             'cache': 'cached', 'settings': {}}
    facts['select'] = 'SELECT %s' % [case, fields.get('name')]
    if case == 'draw':
        facts.update(cell=number, table='1,000 rows', drawn='7/%d/1000' % number, shape='order')
    found = {'used_wiscsort': True, 'plans': 'sort', 'correct': True, 'ratios': [ratio] * 3, 'ratio': [ratio] * 3,
             'pairs': 3, 'core_seconds': ratio, 'wiscsort_seconds': 1.0, 'sort_seconds': 0.5}
    for name in ('plans', 'sort_seconds', 'alone', 'jit', 'others'):
        if name in fields:
            found[name] = fields.pop(name)
    return results.query_line({**RUN, 'run': RUN['run'] + case}, number, of, {**facts, **fields},
                              {'error': error} if error else found)


def report(data, *arguments):
    """(exit status, what was printed, {path: text} of what was made).  `data` is a list of
    lines, or the text of a file."""
    if not isinstance(data, str):
        data = ''.join(json.dumps(one) + '\n' for one in data)
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, 'results.jsonl'), os.path.join(folder, 'made')
        with open(source, 'w') as f:
            f.write(data)
        done = subprocess.run([REPORT, '--results', source, '--output', target, *arguments], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        made = {}
        for place, _, names in os.walk(target):
            for name in names:
                path = os.path.join(place, name)
                with open(path) as f:
                    made[os.path.relpath(path, target)] = f.read()
        return done.returncode, done.stdout, made


def rows(made, title):
    """The rows of the table below a title, as lists of cells; without the heading."""
    if title + '\n' not in made['RESULTS.md']:
        return None
    below = made['RESULTS.md'].split(title + '\n', 1)[1].split('\n## ')[0]
    found = [text[2:-2].split(' | ') for text in below.splitlines() if text.startswith('|')]
    return [[value.strip() for value in row] for row in found[2:]]


def names(made, title):
    return [row[0] for row in rows(made, title) or []]


def rows_of_tables():
    cell = {'work_mem': '4MB', 'need': 2.3}
    _, _, made = report([line(3.5, name='100 B rows, 4MB', **cell), neighbour(0.97)])
    equal(rows(made, '## Headline cells'),
          [['100 B rows, 4MB', '2.3', '3.50', '1.00', '4 / 4', '2 / 2', '10,000,000', '3.50 [3.49 3.52]',
            '3.50', '15.1', '012345678', '2026-01-02-made-up', '']], 'a row of the headline')
    equal(rows(made, '## By width and memory'),
          [['100', '4 MB', 'cached', '', '10,000,000', '3.50 [3.49 3.52]', '3.50', '15.1', '012345678',
            '2026-01-02-made-up', '']], 'a row by width')
    equal(rows(made, '## Beside pgbench'),
          [['pgbench beside sorts, 64MB', '1000', '1000', '7 / 7', '100,000', '0.97 [0.97 0.97]', '15.1',
            '012345678', '2026-01-02-made-up', '']], 'a row beside pgbench')
    equal(rows(made, LOSSES), [], 'no loss')
    equal(rows(made, FAILURES), None, 'no failure')
    _, _, made = report([line(ratio, 'stores', name=store, width=500, rows=1000,
                              settings={'wiscsort.record_store': store})
                         for store, ratio in (('heap', 2), ('auto', 3), ('spool', 4))])
    equal(rows(made, '## Record stores'),
          [['500', 'random', '64 MB', 'cached', '1,000', '', '3.00 [2.99 3.02]', '4.00 [3.99 4.02]',
            '2.00 [1.99 2.02]', 'spool', '15.1', '012345678', '2026-01-02-made-up', '']],
          'a row of record stores')


def losses_come_first():
    data = [line(2, name='gain'), line(1.05, name='little', key='uuid'), line(0.8, name='loss', key='float8'),
            line(1.1, name='enough', key='numeric'), line(0.9, name='join', shape='join'),
            neighbour(0.9), neighbour(0.96, name='fine', settings={'a': 'b'})]
    _, _, made = report(data)
    equal(names(made, LOSSES), ['loss', 'join', 'pgbench beside sorts, 64MB', 'little'],
          'what loses or gains little, the smallest ratio first')
    text = made['RESULTS.md']
    equal([title for title in text.split('\n') if title.startswith('## ')][0], LOSSES, 'losses come first')
    check('loss' in rows(made, LOSSES)[0][-1], 'a loss is called one')
    printed = tables.text([one for one in data if one['case'] != 'neighbour']).splitlines()
    equal([row.split()[0] for row in printed[2:]], ['loss', 'join', 'little', 'enough', 'gain'],
          "bench/run's table has the smallest ratio first")


def the_newest_complete_line_counts():
    old, new = line(0.7, run='old'), line(2, date='2026-01-03', run='new')
    for data, order in (([old, new], 'in order'), ([new, old], 'out of order')):
        _, _, made = report(data)
        equal(rows(made, LOSSES), [], 'a newer date replaces a loss, lines ' + order)
        check('2026-01-03-new' in rows(made, '## Headline cells')[0],
              'the table names its run, lines ' + order)
    _, _, made = report([line(0.7, run='first'), line(2, run='second')])
    equal(rows(made, LOSSES), [], 'of one date the later line counts')
    _, _, made = report([line(0.7, rows=1000, run='short'), line(2)])
    equal(len(rows(made, LOSSES)), 1, 'other rows are another cell')
    _, _, made = report([line(0.7, name='another name', run='old'), line(2, date='2026-01-03')])
    equal(rows(made, LOSSES), [], 'another name is the same cell')
    failed = measured(2)
    failed['error'] = 'it broke'
    _, _, made = report([line(3), results.cell_line({**RUN, 'run': 'broken'}, 1, 1, failed)])
    equal(rows(made, '## Headline cells')[0][7], '3.00 [2.99 3.02]', 'a failure replaces no result')
    found = rows(made, FAILURES)
    check(found and found[0][0] == 'a cell' and 'it broke' in found[0][-1], 'a failure is told', found)


def nothing_is_left_out():
    wrong = measured(2)
    wrong['answer'] = {'correct': False}
    wrong = results.cell_line(RUN, 1, 1, wrong)
    _, _, made = report([wrong])
    check('a wrong answer' in rows(made, FAILURES)[0][-1], 'a wrong answer is a failure')
    missing = results.cell_line(RUN, 1, 1, {**cells.Cell({'name': 'c', 'case': 'grid'}).describe(),
                                            'error': results.NOT_REACHED})
    _, _, made = report([missing])
    check(results.NOT_REACHED in rows(made, FAILURES)[0][-1], 'a cell that was not reached is a failure')
    _, _, made = report([line(2, number=2, of=5), line(2, number=1, of=5, key='uuid')])
    equal(rows(made, FAILURES)[0][0], '3 of 5 cells', 'a run that was killed lacks lines')
    odd = [line(2, 'sortbench', name='records', shape='sortbench_ascii'),
           line(2, 'keys', name='limit', consume='limit'),
           line(2, 'baselines', name='big', core_settings={'a': 'b'})]
    _, _, made = report(odd)
    equal(sorted(names(made, '## Other queries')), ['big', 'limit', 'records'], 'the rest has a table')
    noise = line(0.9, name='noise')
    noise['core_only'] = True
    _, _, made = report([noise, line(2)])
    equal((rows(made, LOSSES), names(made, "## The machine's noise")), ([], ['noise']),
          'core on both sides is no loss')


def a_broken_file_is_reported():
    good = json.dumps(line(2)) + '\n'
    broken = ((good + good[:50], 2, 'cut off', 'a last line that is cut off'),
              (good + good.rstrip('\n'), 2, 'cut off', 'a last line without its end'),
              (good + '<<<<<<< ours\n' + good, 2, 'not JSON', 'a line that is no JSON'),
              (good + '\n', 2, 'not JSON', 'an empty line'),
              ('[]\n', 1, 'a line wants', 'a line that is no object'))
    for data, number, words, name in broken:
        status, said, made = report(data)
        check(status == 2 and 'results.jsonl:%d: ' % number in said and words in said and not made,
              name + ' is reported, and nothing is written', said)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'results.jsonl')
        results.append(path, line(2))
        results.append(path, line(3, key='uuid'))
        equal([one['ratio'][1] for one in results.read(path)], [2, 3], 'lines are appended')
        equal(results.free_name(path, '2026-01-02', 'made-up'), '2026-01-02-made-up-2',
              'a run has a name of its own')
        with open(path, 'a') as f:
            f.write('{"cut')
        try:
            results.append(path, line(4))
            found = 'no error'
        except results.ResultsError as error:
            found = str(error)
        check('cut off' in found, 'nothing is appended to a line that is cut off', found)


def what_a_run_says_once():
    lines = [dict(line(2), run=run, server=server, machine={'cpu': 'one'}, command=['--rows', '1'])
             for run, server in (('a', {'jit': 'on'}), ('b', {'jit': 'on'}), ('a', {'jit': 'on'}), ('a', {'jit': 'off'}),
                                 ('a', {'jit': 'on'}))]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'results.jsonl')
        for one in lines:
            results.append(path, one)
        equal(results.read(path), lines, 'lines are read as they were given')
        with open(path) as f:
            written = [json.loads(text) for text in f]
        equal([sorted(set(results.SAID_ONCE) & set(one)) for one in written],
              [sorted(set(results.SAID_ONCE) & set(lines[0]))] * 2 + [[], ['server'], ['server']],
              'and have what a run says once in its first line, and where it changes')
        os.remove(path)
        results.append(path, lines[0])
        equal(results.read(path), lines[:1], 'a new file of the same name has it again')


def orders_of_reading():
    section = '## The read order'
    _, _, made = report([merge('block', 1), merge('double', 0.9), merge('read_order', 2.5, need=3.0), line(2)])
    equal(names(made, section), ['orders'] * 3, 'a row for each way to read')
    check('below need' in made['RESULTS.md'] and 'loss' not in made['RESULTS.md'].split(section)[1],
          'too little is said, and nothing of it is a loss', made['RESULTS.md'])


def contests_of_plans():
    section = '## Estimated cost against seconds'
    _, _, made = report([contest(3.0), contest(0.99, select='SELECT 2'), line(2)])
    equal([row[:9] for row in rows(made, section)][:3],
          [['ORDER BY, 4MB', '`WiscSort`', 'wiscsort', '50,000', '200,000', '0.250', '1.00', '1,000',
            '3.00 [3.00 3.00]'],
           ['', '`Unique < WiscSort`', '', '?', '?', '0.500', '2.00', '', ''],
           ['', '`Index Scan`', 'core', '80,000', '106,667', '0.750', '3.00', '', '']], 'the plans of a contest')
    equal(rows(made, LOSSES), [], 'two plans that take the same are no loss')
    _, _, made = report([contest(0.9)])
    equal(names(made, LOSSES), ['ORDER BY, 4MB'], "a plan that is slower than core's own is one")
    failed = results.contest_line(RUN, 1, 1, {'name': 'c', 'error': 'wrong'}, 0.95)
    _, _, made = report([failed])
    equal(names(made, FAILURES), ['c'], 'a contest that failed is told')


def queries_of_standards():
    data = [query(2.0, name='sorted', alone=1.5, jit='jit / none', others={'by hand': 3.0, 'DuckDB 1': None}),
            query(0.8, name='slower'), query(0.7, name='noise', plans='same'),
            query(4.0, name='quick', mode='defaults', settings={'jit': 'on'}),
            query(1.2, name='Q1', shape='answer'), query(3.0, 'tpcc', name='of C')]
    _, _, made = report(data)
    found = rows(made, '## Reports over TPC-H')
    equal([row[1:3] + row[8:9] + row[11:12] for row in found],
          [['geometric mean of 1; of 1 whose plans differ', 'defaults', '4.00', '4.00; 4.00'],
           ['geometric mean of 3; of 2 whose plans differ', 'serial', '1.10', '1.04; 1.26'],
           ['slower', 'serial', '', '0.80 [0.80 0.80]'], ['sorted', 'serial', '1.50', '2.00 [2.00 2.00]'],
           ['quick', 'defaults', '', '4.00 [4.00 4.00]'], ['noise', 'serial', '', '0.70 [0.70 0.70]']],
          'reports: means, then the smallest ratios, then equal plans')
    equal((found[3][5], found[3][9]), ('sort; jit: jit / none', 'by hand 3.00, DuckDB 1 fails'), 'what a report says')
    equal((names(made, '## TPC-H')[1:], [row[1] for row in rows(made, '## Reports over TPC-C')][1:]),
          (['Q1'], ['of C']), 'queries, and reports over TPC-C')
    equal(names(made, LOSSES), ['slower'], 'a loss is one, and noise is none')
    long = [text for text in made['RESULTS.md'].split('\n') if len(text) > 110 and not text.startswith(('|', '!'))]
    equal(long, [], 'no line is longer than tools/lint allows')
    check(all('docs/pictures/%s.svg' % name in made for name in ('tpch', 'tpch_reports', 'tpcc_reports')), 'pictures')


def drawn_cells():
    data = [query(2.0, 'draw', number=1, of=6), query(0.9, 'draw', name='slow', number=2, of=6),
            query(0.97, 'draw', name='close', number=3, of=6),
            query(0.5, 'draw', name='noise', plans='same', number=4, of=6),
            query(0.5, 'draw', name='short', sort_seconds=0.01, number=5, of=6),
            query(0, 'draw', error=results.NOT_REACHED, number=6, of=6)]
    _, _, made = report(data)
    found = rows(made, '## Drawn by a seed')
    equal(found[0][1:8], ['5', '3', '1.20', '0.90', '2', '1', '1: 0.50 to 0.50'], 'a run of drawn cells')
    equal([row[0] for row in found[1:]], ['order', 'cell 2: slow; 1,000 rows', 'cell 3: close; 1,000 rows'],
          'cells below 1')
    check(all(len(text) <= 110 for text in made['RESULTS.md'].split('\n') if not text.startswith(('|', '!'))), 'short lines')
    equal(names(made, LOSSES), ['slow'], 'only what counts is a loss')
    equal(names(made, FAILURES), ['1 of 6 cells'], 'what was not reached in time has one row')
    equal(results.identity(data[0]) == results.identity(data[1]), False, 'each cell is one of its own')


def unknown_fields_do_not_matter():
    data = [line(2), line(0.9, 'grid', key='uuid'), neighbour(1)]
    more = [{'new': [1, {'a': None}], **one, 'core': {**one['core'], 'new': 1}} for one in data]
    equal(report(more)[2], report(data)[2], 'unknown fields change nothing')
    least = {'date': '2026-01-02', 'run': 'r', 'case': 'headline', 'name': 'n'}
    status, said, made = report([least, line(2)])
    check(status == 0 and names(made, FAILURES) == ['n'], 'a line that has only a name is a failure', said)


def lines_say_what_matters():
    one = line(2)
    equal(one['server'], {'jit': 'off', 'shared_buffers': '128MB'}, 'settings that say nothing are left out')
    equal((one['versions']['postgresql'], one['versions']['commit'], one['machine']['ram_mb']),
          ('15.1', '0123456789ab', 2), 'versions and machine are short')
    equal((one['pairs'], one['ratios'], one['complete']), (3, [2, 2, 2], True), 'the warm-up is not counted')
    long = results.cell_line(dict(RUN, command=['--case', 'x' * 3000]), 1, 1, measured(2, 'headline'))['command']
    equal((len(long), long[-4:]), (204, ' ...'), 'a long command is cut')
    with open(results.FILE) as f:
        longest = max(map(len, f))
    check(longest <= 2500, 'a line stays short', longest)


def pictures_are_well_formed():
    data = [line(2 + number / 10, 'grid', name='x < "y" & z', key=key, work_mem=memory, rows=1000)
            for number, key in enumerate(cells.KEYS) for memory in ('4MB', '64MB')]
    data += [line(3, name='a & <b>', width=16), neighbour(1, settings={'a': '<&>'})]
    data += [merge('block', 1), merge('double', 0.9), merge('read_order', 4, need=3.0)]
    _, _, made = report(data)
    folder = os.path.join(ROOT, 'docs', 'pictures')
    every = {path: text for path, text in made.items() if path.endswith('.svg')}
    equal(sorted(map(os.path.basename, every)), ['beside.svg', 'headline.svg', 'read_order.svg', 'type.svg', 'width.svg'],
          'five pictures')
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name)) as f:
            every['committed ' + name] = f.read()
    for name, text in sorted(every.items()):
        try:
            root = xml.etree.ElementTree.fromstring(text)
        except xml.etree.ElementTree.ParseError as error:
            check(False, name + ' is well-formed', error)
            continue
        ground = root.find(SVG + 'rect')
        check(root.tag == SVG + 'svg' and root.find(SVG + 'title').text
              and ground.get('fill') == '#ffffff' and ground.get('width') == root.get('width'),
              name + ' is an SVG with a title on white')
    for path in made:
        if path.endswith('.svg'):
            check('](%s)' % path in made['RESULTS.md'], path + ' is shown')
    _, _, made = report([line(2, 'sortbench', shape='sortbench_ascii')])
    equal((sorted(made), '.svg' in made['RESULTS.md']), (['RESULTS.md'], False),
          'nothing to show, no picture')


def the_committed_report_is_current():
    done = subprocess.run([REPORT, '--check'], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    equal((done.returncode, done.stdout), (0, ''), 'RESULTS.md and docs/pictures are of bench/results.jsonl')
    data = open(results.FILE).read()
    status, said, made = report(data)
    for path, text in sorted(made.items()):
        with open(os.path.join(ROOT, path)) as f:
            equal(f.read() == text, True, path + ' comes out the same elsewhere')
    status, said, made = report(data, '--check')
    check(status == 1 and 'RESULTS.md' in said and not made,
          '--check tells of what is missing, and writes nothing', said)


if __name__ == '__main__':
    common.run([rows_of_tables, losses_come_first, the_newest_complete_line_counts, nothing_is_left_out,
                a_broken_file_is_reported, what_a_run_says_once, unknown_fields_do_not_matter, orders_of_reading,
                contests_of_plans, queries_of_standards, drawn_cells, lines_say_what_matters, pictures_are_well_formed,
                the_committed_report_is_current])
