"""The result file bench/results.jsonl: one line of JSON a cell, made, appended, read, judged.

A line has everything that a table or a picture shows, so that nothing else has
to be read for them: what was measured, where, with which versions and
settings, the ratios, and what went wrong.  bench/README.md lists the fields.

The file is only ever appended to, a whole line at a time, when its cell is
done.  Cells that a run did not reach are lines too, with an error.  A line
that is not whole is reported with its number, and nothing is made from the file.

A later line of the same measurement replaces an earlier one in the tables:
the date decides, then the place in the file.
"""

import fnmatch
import hashlib
import json
import math
import os
import platform
import re
import shlex
import statistics
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = os.path.join(HERE, 'results.jsonl')
# What a run and a report write themselves is no uncommitted change.
MADE = ('bench/results.jsonl', 'RESULTS.md', 'docs/pictures')
SIDES = ('core', 'wiscsort')
# Of a run, said by its first line, and then only by lines where it is another.
SAID_ONCE = ('command', 'server', 'machine', 'versions')
MOST_COMMAND = 200      # characters
NEEDED = ('date', 'run', 'case', 'name')
# Lines that agree in these measured the same thing.
MEASURED = ('shape', 'width', 'key', 'distribution', 'work_mem', 'cache', 'rows', 'consume', 'settings',
            'core_settings', 'core_only', 'clients', 'memory', 'buffers', 'create', 'select', 'order_by', 'count',
            'table', 'wanted', 'block_kb', 'reads', 'assist', 'drawn')
# Cases whose ratio is not that of a sort's time: below 1 it is no loss.
OF_OTHERS = ('neighbour', 'fmsort', 'costs')
# Server settings that say nothing about a time.
IDLE_SETTINGS = ('DateStyle', 'TimeZone', 'lc_*', 'log_*', 'logging_collector', 'port', 'listen_addresses',
                 'unix_socket_directories', 'default_text_search_config', 'max_connections',
                 'dynamic_shared_memory_type', 'statement_timeout')
# Of cells that bench/draw draws: what counts is sorted for longer than this by core, and a loss is below that.
SORTED_LEAST, DRAWN_NEED = 0.05, 0.95
NOT_REACHED = 'not measured: the run ended before this cell was done'


# What this process has said in lines: {path: {run: {field: value}}}.
_said = {}


class ResultsError(Exception):
    """A result file cannot be read or written."""


# --- where a run took place -------------------------------------------------

def _read(path, default=''):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return default


def _output(command):
    try:
        return subprocess.run(command, text=True, check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _field(text, name):
    for line in text.splitlines():
        if line.startswith(name):
            return line.split(':', 1)[1].strip()
    return None


def file_system(path):
    """The type of the file system that holds path."""
    best, kind = '', None
    for line in _read('/proc/mounts').splitlines():
        mount, fs = line.split()[1:3]
        inside = path == mount or path.startswith(mount.rstrip('/') + '/')
        if inside and len(mount) >= len(best):
            best, kind = mount, fs
    return kind


def machine(directory):
    return {
        'cpu': _field(_read('/proc/cpuinfo'), 'model name'),
        'cores': len(os.sched_getaffinity(0)),
        'ram_kb': int(_field(_read('/proc/meminfo'), 'MemTotal').split()[0]),
        'kernel': platform.release(),
        'file_system': file_system(directory),
    }


def versions(cluster, root, core_only):
    changes = ['git', '-C', root, 'status', '--porcelain', '--', '.'] + [':!' + path for path in MADE]
    found = {
        'postgresql': cluster.psql('SELECT version()').stdout.strip(),
        'commit': _output(['git', '-C', root, 'rev-parse', 'HEAD']),
        'uncommitted_changes': bool(_output(changes)),
    }
    library = os.path.join(cluster.config('--pkglibdir'), 'wiscsort.so')
    if not core_only and os.path.exists(library):
        with open(library, 'rb') as f:
            found['library_sha256'] = hashlib.sha256(f.read()).hexdigest()
        for line in _read(os.path.join(root, 'wiscsort.control')).splitlines():
            if line.startswith('default_version'):
                found['wiscsort'] = line.split('=')[1].strip().strip("'")
    return found


def server_settings(cluster):
    """Every setting that is not at its built-in default."""
    rows = cluster.psql("SELECT name, current_setting(name) FROM pg_settings"
                        " WHERE source NOT IN ('default', 'override', 'client')"
                        " ORDER BY name", args=('-qAt', '-F', '\t')).stdout
    return dict(line.split('\t', 1) for line in rows.splitlines())


def place(cluster, root, core_only):
    """What every line of a run says about machine, versions and settings."""
    return {'machine': machine(cluster.dir), 'versions': versions(cluster, root, core_only),
            'server': server_settings(cluster)}


# --- lines --------------------------------------------------------------

def _short(value, digits):
    """A number, or a list of numbers, to so many decimals."""
    if isinstance(value, list):
        return [_short(item, digits) for item in value]
    return None if value is None else round(value, digits)


def _ratios(pairs):
    return [_short(pair['ratio'], 4) for pair in pairs]


def _place(run):
    """The run's machine, versions and settings, without what no table wants."""
    versions_ = dict(run.get('versions') or {})
    versions_.pop('python', None)
    release = re.match(r'PostgreSQL (\S+)', versions_.get('postgresql', ''))
    if release:
        versions_['postgresql'] = release.group(1)
    for name in ('commit', 'library_sha256'):
        versions_[name] = (versions_.get(name) or '')[:12] or None
    machine_ = dict(run.get('machine') or {})
    machine_.pop('load_average', None)
    if 'ram_kb' in machine_:
        machine_['ram_mb'] = machine_.pop('ram_kb') // 1024
    settings = {name: value for name, value in (run.get('server') or {}).items()
                if not any(fnmatch.fnmatchcase(name, idle) for idle in IDLE_SETTINGS)}
    return {'server': settings, 'machine': machine_, 'versions': versions_}


def _command(words):
    """The command line, without the options that name places of the machine it ran on.

    A long one is cut: the lines have the names of the cells.
    """
    kept, skip = [], False
    for word in words:
        place = word.split('=')[0] in ('--pg-config', '--output')
        if not skip and not place:
            kept.append(word)
        skip = place and '=' not in word
    command = shlex.join(kept)
    return command if len(command) <= MOST_COMMAND else command[:MOST_COMMAND] + ' ...'


def _run(run, number, of):
    return {'date': run['date'], 'run': run['run'], 'number': number, 'of': of,
            'command': _command(run['command'])}


def cell_line(run, number, of, cell):
    """The line of one cell.  `run` has date, run (its name), command,
    core_only and what place() gives; `cell` is what measure.Bench gives or,
    for one that was not reached, a description with an error."""
    line = _run(run, number, of)
    for field in ('case', 'name', 'shape', 'width', 'key', 'distribution', 'work_mem', 'cache', 'rows',
                  'consume', 'settings', 'core_settings', 'need'):
        line[field] = cell[field]
    for field in ('core_allowed', 'memory', 'buffers', 'create', 'select', 'order_by', 'count'):
        if cell[field]:
            line[field] = cell[field]
    line['core_only'] = run['core_only']
    answer = cell.get('answer', {})
    line['complete'] = 'observed' in cell and 'error' not in cell and answer['correct']
    if 'ratio' in cell:
        counted = [pair for pair in cell['pairs'] if pair['counted']]
        line['pairs'] = len(counted)
        line['ratio'] = _short(list(cell['ratio']), 5)
        line['tax_ratio'] = _short(cell['tax_ratio'] and list(cell['tax_ratio']), 5)
        for side in SIDES + ('unsorted',):
            line[side + '_seconds'] = _short(cell[side + '_seconds'], 6)
        line['ratios'] = _ratios(counted)
        line['load'] = _short(statistics.median(pair['load_average'] for pair in counted), 2)
        line['disk_reads'] = cell['disk_reads']
    if 'used_wiscsort' in cell:
        line['used_wiscsort'] = cell['used_wiscsort']
    if answer:
        line['correct'] = answer['correct']
        if not answer['correct']:
            line['answer'] = answer
    for side, seen in cell.get('observed', {}).items():
        line[side] = {'memory_kb': seen['rss_anon_peak_kb'], 'mapped_kb': seen['rss_file_peak_kb'],
                      'temp_bytes': seen['temp_bytes'],
                      'methods': sorted({sort.get('Sort Method', '?') for sort in seen['sorts']})}
        stores = sorted({sort['Record Store'] for sort in seen['sorts'] if 'Record Store' in sort})
        if stores:
            line[side]['record_store'] = ', '.join(stores)
    if 'error' in cell:
        line['error'] = cell['error'][:500]
        line['server_log'] = cell.get('server_log', '')[-500:]
    line.update(_place(run))
    if 'shared_buffers' in cell:
        line['server']['shared_buffers'] = cell['shared_buffers']
    return line


def neighbour_line(run, description, pairs, alone, ratio, error=None):
    """The line of one run of bench/neighbour: rates are transactions a second."""
    line = _run(run, 1, 1)
    line.update(case='neighbour', shape='pgbench', **description)
    line['complete'] = error is None
    counted = [pair for pair in pairs if pair['counted']]
    if error is None:
        line['pairs'] = len(counted)
        line['ratio'] = _short(list(ratio), 5)
        line['alone_tps'] = _short(alone, 1)
        for side in SIDES:
            line[side] = {what: _short(statistics.median(pair[side][what] for pair in counted), 3)
                          for what in ('tps', 'sorts', 'sort_seconds')}
        line['ratios'] = _ratios(counted)
    else:
        line['error'] = error[:500]
    line.update(_place(run))
    return line


def merge_line(run, number, of, cell):
    """The line of one way to read in a run of bench/fmsort."""
    line = _run(run, number, of)
    line.update(case='fmsort', shape='merge', complete=True)
    line.update((name, _short(value, 5) if isinstance(value, (float, list)) else value)
                for name, value in cell.items())
    line.update(_place(run))
    return line


def contest_line(run, number, of, contest, need):
    """The line of one contest of plans in a run of bench/costs."""
    line = _run(run, number, of)
    line.update(case='costs', shape='plans', need=need, complete='error' not in contest)
    line.update((name, _short(value, 5) if isinstance(value, float) else value) for name, value in contest.items())
    for name in ('ratio', 'ratios'):
        if name in contest:
            line[name] = _short(contest[name], 4)
    if line['complete']:
        line['core_allowed'] = True
    else:
        line['error'] = line['error'][:500]
    line.update(_place(run))
    return line


def query_line(run, number, of, facts, result):
    """The line of what pairs.py measures; facts are the query's description."""
    line = _run(run, number, of)
    line.update(facts)
    line['complete'] = 'error' not in result
    line.update((name, _short(value, 6) if isinstance(value, (float, list)) else value)
                for name, value in result.items() if name not in ('error', 'server_log'))
    if 'error' in result:
        line.update(error=result['error'][:500], server_log=result.get('server_log', '')[-500:])
    line.update(_place(run))
    return line


def _whole(path):
    """Whether the file ends with a whole line, or is empty or not there."""
    try:
        with open(path, 'rb') as f:
            if f.seek(0, os.SEEK_END) == 0:
                return True
            f.seek(-1, os.SEEK_END)
            return f.read(1) == b'\n'
    except FileNotFoundError:
        return True


def brief(line, said):
    """The line without what a line of its run has said before; `said` remembers that, of each run."""
    before = said.setdefault(line['run'], {})
    short = {field: value for field, value in line.items() if field not in SAID_ONCE or before.get(field) != value}
    before.update((field, line[field]) for field in SAID_ONCE if field in line)
    return short


def append(path, line):
    """Adds one line: whole, and on the disk when this returns."""
    if not _whole(path):
        raise ResultsError('%s: its last line is cut off; nothing is added to it' % path)
    if not os.path.exists(path):
        _said.pop(path, None)
    line = brief(line, _said.setdefault(path, {}))
    data = (json.dumps(line, ensure_ascii=False) + '\n').encode()
    with open(path, 'ab', buffering=0) as f:
        if f.write(data) != len(data):
            raise ResultsError('%s: a line could not be written whole' % path)
        os.fsync(f.fileno())


def read(path):
    """All lines, oldest first, with what their runs have said once."""
    try:
        with open(path, encoding='utf-8', newline='\n') as f:
            texts = f.read().split('\n')
    except FileNotFoundError:
        raise ResultsError('%s: there is no such file' % path)
    except (OSError, UnicodeDecodeError) as error:
        raise ResultsError('%s: %s' % (path, error))
    lines, said = [], {}
    for number, text in enumerate(texts, 1):
        if number == len(texts):
            if text:
                raise ResultsError('%s:%d: the last line is cut off: %.60s ...\n'
                                   'A write was interrupted. Remove that line and run its cell again.'
                                   % (path, number, text))
            break
        try:
            line = json.loads(text)
        except ValueError as error:
            raise ResultsError('%s:%d: not JSON (%s): %.60s' % (path, number, error, text))
        if not isinstance(line, dict) or any(not isinstance(line.get(field), str) for field in NEEDED):
            raise ResultsError('%s:%d: a line wants %s' % (path, number, ', '.join(NEEDED)))
        before = said.setdefault(line['run'], {})
        before.update((field, line[field]) for field in SAID_ONCE if field in line)
        lines.append({**line, **before})
    return sorted(lines, key=lambda line: line['date'])


def free_name(path, date, name):
    """A name for a run that no line in the file has."""
    taken = {line['run'] for line in read(path)} if os.path.exists(path) else set()
    stem = '%s-%s' % (date, name)
    run, number = stem, 2
    while run in taken:
        run, number = '%s-%d' % (stem, number), number + 1
    return run


# --- judging ------------------------------------------------------------

def failed(line):
    """True for an error, a wrong answer, or a cell that was never reached."""
    return not line.get('complete') or 'ratio' not in line


def missed(line):
    """True when a cell has a required ratio and did not reach it."""
    return bool(line.get('need')) and (
        failed(line) or line['ratio'][1] < line['need'] or
        not (line.get('core_allowed') or line.get('used_wiscsort', True)))


def drawn_counts(line):
    """Whether a drawn cell says something: core sorts for some time, and not both sides do the same."""
    return not failed(line) and line['sort_seconds'] > SORTED_LEAST and line['plans'] != 'same'


def drawn_loss(line):
    return drawn_counts(line) and line['ratio'][1] < DRAWN_NEED


def quartiles(values):
    """(lower quartile, median, upper quartile)."""
    if len(values) == 1:
        return [values[0]] * 3
    return statistics.quantiles(values, n=4, method='inclusive')


def megabytes(memory):
    """Of a setting like '64MB'."""
    return int(memory[:-2]) * {'kB': 1 / 1024, 'MB': 1, 'GB': 1024}[memory[-2:]]


def mean(values):
    """The geometric mean; of nothing, 1."""
    return math.exp(statistics.mean(map(math.log, values))) if values else 1.0


def losses_first(lines):
    """Failures, then missed requirements, then by the ratio, smallest first."""
    return sorted(lines, key=lambda line: (not failed(line), not missed(line),
                                           line['ratio'][1] if 'ratio' in line else 0))


def identity(line):
    """What was measured: equal for lines that can replace one another."""
    return json.dumps([line.get(field) for field in MEASURED], sort_keys=True)


def newest(lines):
    """For each thing measured, its newest complete line; oldest of these first."""
    found = {}
    for line in lines:
        if not failed(line):
            found.pop(identity(line), None)
            found[identity(line)] = line
    return list(found.values())


def failures(lines):
    """The things measured whose newest line is no result: that line."""
    last = {identity(line): line for line in lines}
    return [line for line in last.values() if failed(line)]


def broken_runs(lines):
    """(run, lines there, lines it should have) of runs that left cells without a line."""
    runs = {}
    for line in lines:
        if 'number' in line and 'of' in line:
            runs.setdefault(line['run'], (set(), line['of']))[0].add(line['number'])
    return [(run, len(numbers), of) for run, (numbers, of) in runs.items() if len(numbers) < of]
