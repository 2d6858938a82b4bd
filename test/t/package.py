#!/usr/bin/python3
"""What is published: META.json by PGXN's specification 1.0.0, versions that agree, make dist, debian/."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))

import common                           # noqa: E402
from common import check, equal         # noqa: E402

SEMVER = re.compile(r'(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-?[A-Za-z][0-9A-Za-z-]*)?$')
RANGE = re.compile(r'((==|!=|>=?|<=?)? *(\d+\.\d+\.\d+\S*|0)(, *|$))+$')
TERM = re.compile(r'[^\s/\\\x00-\x1f\x7f]{2,}$')
LICENSES = ('agpl_3 apache_1_1 apache_2_0 artistic_1 artistic_2 bsd freebsd gfdl_1_2 gfdl_1_3 gpl_1 gpl_2 gpl_3 '
            'lgpl_2_1 lgpl_3_0 mit mozilla_1_0 mozilla_1_1 openssl perl_5 postgresql qpl_1_0 ssleay sun zlib '
            'open_source restricted unrestricted unknown').split()
REQUIRED = ('name', 'version', 'abstract', 'maintainer', 'license', 'provides', 'meta-spec')
OPTIONAL = ('description', 'generated_by', 'tags', 'no_index', 'prereqs', 'release_status', 'resources')
PHASES = ('configure', 'build', 'test', 'runtime', 'develop')
RELATIONS = ('requires', 'recommends', 'suggests', 'conflicts')


def text(value):
    return isinstance(value, str) and value.strip() != ''


def faults(meta):
    """What the specification has against a META.json."""
    found = ['no ' + key for key in REQUIRED if key not in meta]
    found += ['unknown key ' + key for key in meta
              if key not in REQUIRED + OPTIONAL and not re.match('x_', key, re.I)]
    if found:
        return found

    def need(fine, what):
        if not fine:
            found.append(what)
    need(TERM.match(meta['name']), 'name')
    need(SEMVER.match(meta['version']), 'version')
    need(text(meta['abstract']), 'abstract')
    maintainers = meta['maintainer'] if isinstance(meta['maintainer'], list) else [meta['maintainer']]
    need(maintainers and all(map(text, maintainers)), 'maintainer')
    licenses = meta['license']
    need(isinstance(licenses, dict) or all(
        name in LICENSES for name in (licenses if isinstance(licenses, list) else [licenses])), 'license')
    need(isinstance(meta['meta-spec'], dict) and meta['meta-spec'].get('version') == '1.0.0', 'meta-spec')
    need(isinstance(meta['provides'], dict) and meta['provides'], 'provides')
    for name, what in meta['provides'].items():
        need(TERM.match(name), 'provides: name')
        need(text(what.get('file')) and SEMVER.match(what.get('version', '')), 'provides: file, version')
        need(set(what) <= {'file', 'version', 'abstract', 'docfile'}, 'provides: unknown key')
    for phase, relations in meta.get('prereqs', {}).items():
        need(phase in PHASES, 'prereqs: phase')
        for relation, needed in relations.items():
            need(relation in RELATIONS, 'prereqs: relation')
            need(all(RANGE.match(str(v)) for v in needed.values()), 'prereqs: version')
    need(meta.get('release_status', 'stable') in ('stable', 'testing', 'unstable'), 'release_status')
    tags = meta.get('tags', [])
    need(all(text(tag) and len(tag) <= 255 and '/' not in tag and '\\' not in tag for tag in tags) and
         len(set(tags)) == len(tags), 'tags')
    for key in ('description', 'generated_by'):
        need(key not in meta or text(meta[key]), key)
    return found


def read(name):
    with open(os.path.join(TREE, name), encoding='utf-8') as f:
        return f.read()


def meta():
    """META.json is as it should be, and a bad one would be noticed."""
    good = json.loads(read('META.json'))
    equal(faults(good), [], 'META.json is right')
    for key, value, fault in (('version', '0.1', 'version'), ('license', 'PostgreSQL', 'license'),
                              ('meta-spec', {}, 'meta-spec'), ('release_status', 'beta', 'release_status'),
                              ('tags', ['a/b'], 'tags'), ('author', 'me', 'unknown key author'),
                              ('prereqs', {'run': {}}, 'prereqs: phase')):
        equal(faults(dict(good, **{key: value})), [fault], 'a bad %s is noticed' % key)
    for name, what in good['provides'].items():
        check(os.path.exists(os.path.join(TREE, what['file'])), '%s: %s is there' % (name, what['file']))
        check(os.path.exists(os.path.join(TREE, what['docfile'])), '%s: %s is there' % (name, what['docfile']))


def versions():
    """All places say the same version."""
    version = json.loads(read('META.json'))['version']
    equal(re.search(r'WS_VERSION\s+"(.*)"', read('src/guc.h')).group(1), version, 'guc.h')
    equal(re.search(r'Version (\d\S*)\.$', read('README.md'), re.M).group(1), version, 'README.md')
    equal(re.search(r"default_version = '(.*)'", read('wiscsort.control')).group(1),
          '.'.join(version.split('.')[:2]), 'wiscsort.control')
    equal(re.search(r'\((.*)-\d+\)', read('debian/changelog')).group(1), version, 'debian/changelog')
    spec = read('packaging/wiscsort.spec')
    equal(re.search(r'^Version: +(\S+)', spec, re.M).group(1), version, 'packaging/wiscsort.spec')
    equal(re.search(r'^%changelog\n.* - (\S+)-\d+$', spec, re.M).group(1), version, 'and its changelog')
    equal(re.search(r'^## (\S+)', read('CHANGELOG.md'), re.M).group(1), version, 'CHANGELOG.md')


def debian():
    """One package for a version, from the template; all versions that the Makefile builds for."""
    template = read('debian/control.in').split('\n\n')[1]
    control = read('debian/control')
    for version in re.findall(r'^Package: postgresql-(\d+)-', control, re.M):
        check(template.replace('PGVERSION', version).strip() in control, 'debian/control: ' + version)
    # test/packages runs them
    commands = subprocess.run(['bash', '-c', 'eval "$(sed -n "/^commands()/,/^}/p" test/packages)"; commands'],
                              cwd=TREE, text=True, stdout=subprocess.PIPE).stdout.split('\n')[:-1]
    equal([line.split(' -c ')[0] for line in commands],
          ['sudo apt install ../postgresql-15-wiscsort_*.deb'] + ['psql -d shop'] * 4, 'README: five commands from the .deb')
    supported = re.search(r'foreach v,([\d ]+),', read('Makefile')).group(1).split()
    equal(read('debian/pgversions').split(), supported, 'debian/pgversions')


def spec():
    """What the RPM spec names is there, and rpm reads it, where there is one."""
    text_ = read('packaging/wiscsort.spec')
    for line in re.findall(r'^%(?:doc|license) (.*)$', text_, re.M):
        for name in line.split():
            check(os.path.exists(os.path.join(TREE, name)), 'packaging/wiscsort.spec: ' + name)
    wanted = set(re.findall(r'^(WITH_\w+) \?=', read('Makefile'), re.M))
    equal(set(re.findall(r'\b(WITH_\w+)=no', text_)), wanted, 'each optional library can be left out')
    if not shutil.which('rpmspec'):
        return common.skip('rpmspec', 'it is not installed')
    for without in ([], ['--without', 'hwy', '--with', 'tests']):
        done = subprocess.run(['rpmspec', '-P', '--define', 'pgmajorversion 16'] + without +
                              [os.path.join(TREE, 'packaging', 'wiscsort.spec')], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        check(done.returncode == 0 and 'wiscsort_16' in done.stdout and
              'Requires: postgresql16-server' in done.stdout and
              ('WITH_LIBHWY=no' in done.stdout) == bool(without), 'rpmspec ' + ' '.join(without), done.stdout)


def dockerfile():
    """The Dockerfile copies what is there, and packages of Debian are those of debian/control."""
    text_ = re.sub(r'\\\n', ' ', read('packaging/Dockerfile'))
    needed = set(re.findall(r'^ (lib\S+-dev),$', read('debian/control'), re.M))
    check(needed and needed <= set(text_.split()), 'packaging/Dockerfile has the libraries of debian/control', needed)
    stages = re.findall(r'^FROM (\S+)(?: AS (\S+))?$', text_, re.M)
    equal(stages, [('postgres:${PG_MAJOR}', 'build'), ('build', 'demo'), ('postgres:${PG_MAJOR}', '')], 'stages')
    for name in re.findall(r'^COPY (?!--from)(\S+)', text_, re.M):
        check(os.path.exists(os.path.join(TREE, name)), 'packaging/Dockerfile: COPY ' + name)


def dist():
    """make dist packs what is committed, below one folder, with META.json at its top."""
    name = 'wiscsort-' + json.loads(read('META.json'))['version']
    if not os.path.exists(os.path.join(TREE, '.git')):
        return common.skip('make dist', 'not a git checkout')
    place = tempfile.mkdtemp(prefix='wiscsort-dist-')
    try:
        tree = os.path.join(place, 'tree')
        git = ['git', '-c', 'safe.directory=*']
        subprocess.run(git + ['clone', '-q', '--no-hardlinks', TREE, tree], check=True)
        environment = {k: v for k, v in os.environ.items() if not k.startswith('MAKE') and k != 'MFLAGS'}
        done = subprocess.run(['make', '-s', 'dist', 'PG_CONFIG=/nonexistent'], cwd=tree, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        equal((done.returncode, done.stdout), (0, ''), 'make dist needs no server')
        files = subprocess.run(git + ['ls-files'], cwd=tree, check=True, text=True,
                               stdout=subprocess.PIPE).stdout.split('\n')
        wanted = sorted('%s/%s' % (name, f) for f in files if f)
        with tarfile.open(os.path.join(tree, name + '.tar.gz')) as tar:
            equal(sorted(m.name for m in tar if not m.isdir()), wanted, 'the tar archive')
        with zipfile.ZipFile(os.path.join(tree, name + '.zip')) as archive:
            equal(sorted(n for n in archive.namelist() if not n.endswith('/')), wanted, 'the zip archive')
            equal(json.loads(archive.read(name + '/META.json'))['name'], 'wiscsort', 'META.json is at its top')
    finally:
        shutil.rmtree(place)


if __name__ == '__main__':
    common.run([meta, versions, debian, spec, dockerfile, dist])
