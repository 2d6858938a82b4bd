"""What a result file says beside the measurements: the machine, the versions,
the server's settings, and the table that people read, losses first."""

import hashlib
import json
import os
import platform
import subprocess

HEADINGS = ('cell', 'rows', 'node', 'core s', 'wisc s', 'ratio [quartiles]', 'need',
            'tax', 'memory MB', 'temp MB', 'answer', 'remarks')
LEFT_ALIGNED = ('cell', 'node', 'answer', 'remarks')


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
        'load_average': os.getloadavg()[0],
    }


def versions(cluster, root, core_only):
    found = {
        'postgresql': cluster.psql('SELECT version()').stdout.strip(),
        'python': platform.python_version(),
        'commit': _output(['git', '-C', root, 'rev-parse', 'HEAD']),
        'uncommitted_changes': bool(_output(['git', '-C', root, 'status', '--porcelain'])),
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


def save(path, result):
    """Writes a result file, whole or not at all."""
    with open(path + '.new', 'w') as f:
        json.dump(result, f, indent=1, ensure_ascii=False)
        f.write('\n')
    os.replace(path + '.new', path)


# --- the table ----------------------------------------------------------

def failed(cell):
    """True for an error, a wrong answer, or a cell that was never reached."""
    return 'ratio' not in cell or 'error' in cell or not cell['answer']['correct']


def missed(cell):
    """True when a cell has a required ratio and did not reach it."""
    return bool(cell.get('need')) and (
        failed(cell) or cell['ratio'][1] < cell['need'] or not cell['used_wiscsort'])


def losses_first(cells):
    """Failures, then missed requirements, then by the ratio, smallest first."""
    return sorted(cells, key=lambda c: (not failed(c), not missed(c),
                                        c['ratio'][1] if 'ratio' in c else 0))


def _megabytes(cell, field, unit):
    observed = cell.get('observed', {})
    return ' / '.join('%.0f' % (observed[side][field] / unit) if side in observed else '?'
                      for side in ('core', 'wiscsort'))


def _remarks(cell):
    remarks = []
    if 'error' in cell:
        remarks.append('ERROR: ' + cell['error'][:120])
    elif 'ratio' not in cell:
        remarks.append('not measured')
    if cell.get('disk_reads'):
        remarks.append('read from disk')
    if missed(cell) and not failed(cell):
        remarks.append('below need')
    if 'ratio' in cell and cell['ratio'][1] < 1:
        remarks.append('loss')
    return '; '.join(remarks)


def _row(cell):
    used = {None: '?', True: 'wisc', False: 'core'}[cell.get('used_wiscsort')]
    answer = '?'
    if 'answer' in cell:
        answer = 'same' if cell['answer']['correct'] else 'WRONG'
    row = [cell['name'], str(cell['rows']), used]
    if 'ratio' in cell:
        low, median, high = cell['ratio']
        row += ['%.2f' % cell['core_seconds'], '%.2f' % cell['wiscsort_seconds'],
                '%.2f [%.2f %.2f]' % (median, low, high)]
    else:
        row += ['?', '?', '?']
    row.append('%.1f' % cell['need'] if cell.get('need') else '')
    tax = cell.get('tax_ratio')
    row.append('%.2f' % tax[1] if tax else '?')
    row.append(_megabytes(cell, 'rss_anon_peak_kb', 1024))
    row.append(_megabytes(cell, 'temp_bytes', 2**20))
    return row + [answer, _remarks(cell)]


def table(cells):
    """The cells as text, one line each; pairs of figures are core / wiscsort."""
    rows = [HEADINGS] + [_row(cell) for cell in losses_first(cells)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    lines = []
    for row in rows:
        columns = [value.ljust(width) if heading in LEFT_ALIGNED else value.rjust(width)
                   for value, width, heading in zip(row, widths, HEADINGS)]
        lines.append('  '.join(columns).rstrip())
    lines.insert(1, '  '.join('-' * width for width in widths))
    return '\n'.join(lines)
