#!/usr/bin/python3
"""The Makefile: what is rebuilt when, what stops it, and where it can build."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))

import common                           # noqa: E402
from common import check, equal         # noqa: E402

FAST = 'COPT=-O0 -g0'
place = None


def tree(name='tree'):
    """A copy of this tree without anything built, made once for each name."""
    path = os.path.join(place, name)
    if not os.path.exists(path):
        shutil.copytree(TREE, path, symlinks=True, ignore=shutil.ignore_patterns(
            '.git', '.build', 'out', '*.o', '*.d', '*.so', '__pycache__', 'test_*[!ch]', 'gensort'))
    return path


def make(*arguments, cwd=None, pg_config=None):
    """(exit status, lines) of a make of its own, whatever make runs this test."""
    ours = ('MAKE', 'MFLAGS', 'WERROR', 'SANITIZE', 'COPT', 'PROFILE', 'V', 'PG_CONFIG', 'WITH_', 'CHECK_')
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(['make', 'PG_CONFIG=' + (pg_config or common.options.pg_config)] + list(arguments),
                          cwd=cwd or tree(), env=environment, text=True, errors='replace',
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.splitlines()


def steps(lines):
    """What was compiled or linked."""
    return [line.split()[1] for line in lines if line.startswith(('  CC ', '  CXX ', '  LD '))]


def sources():
    return [path[len(tree()) + 1:] for pattern in ('src/*.c', 'src/*/*.c', 'src/exec/below/*.c')
            for path in glob.glob(os.path.join(tree(), pattern))]


def fake(version):
    """A pg_config like the one under test, of another version."""
    path = os.path.join(place, 'pg_config-' + version)
    with open(path, 'w') as f:
        f.write('#!/bin/sh\n[ "$1" != --version ] || { echo PostgreSQL %s; exit; }\nexec %s "$@"\n'
                % (version, shutil.which(common.options.pg_config)))
    os.chmod(path, 0o755)
    return path


def stops(name, word, *arguments, **more):
    """Checks that make ends at once with one sentence that has the word in it."""
    status, lines = make(*arguments, **more)
    text = '\n'.join(lines)
    check(status != 0 and len(lines) == 1 and word in text, name + ': one sentence', text)
    check(not steps(lines), name + ': nothing is compiled', text)


def servers():
    stops('no pg_config', 'install postgresql-server-dev', pg_config='/nonexistent/pg_config')
    stops('an empty PG_CONFIG', 'install postgresql-server-dev', 'PG_CONFIG=')
    stops('PostgreSQL 14', 'PostgreSQL 14.20', '-j8', pg_config=fake('14.20'))
    stops('PostgreSQL 20', 'PostgreSQL 20devel', pg_config=fake('20devel'))
    stops('a pg_config with a space', 'space', pg_config=place + '/a b/pg_config')
    stops('no C compiler', 'nonesuch', 'CC=nonesuch-cc')


def builds():
    status, lines = make('-j2', FAST)
    text = '\n'.join(lines)
    check(status == 0 and os.path.exists(tree() + '/wiscsort.so'), 'make builds', text)
    done = steps(lines)
    equal(sorted(step for step in done if step.endswith('.c')), sorted(sources()), 'a step for each source')
    equal(done[-1:], ['wiscsort.so'], 'a step for the library')
    equal([len(line) for line in lines if len(line) > 110], [], 'no line is long')
    equal(sum(line.startswith('libhwy:') for line in lines), 1, 'libraries are reported once')
    # a step for everything, and nothing the second time
    status, lines = make(FAST)
    equal((status, steps(lines)), (0, []), 'nothing changed: nothing is built')
    equal(make('-s', FAST), (0, []), 'make -s is silent')
    status, lines = make('install', FAST, 'DESTDIR=' + place + '/installed')
    equal((status, steps(lines), len(lines)), (0, [], 1), 'make install builds nothing and says one thing')
    check(glob.glob(place + '/installed/**/wiscsort.so', recursive=True), 'make install installs')


def changes():
    os.utime(tree() + '/src/key/normalize.c')
    equal(steps(make(FAST)[1]), ['src/key/normalize.c', 'wiscsort.so'], 'one source changed')
    equal(steps(make('test/unit/test_key')[1]), ['test/unit/test_key.c'], 'a unit test is built')
    equal(steps(make('test/unit/test_key')[1]), [], 'a unit test is built once')
    os.utime(tree() + '/src/key/normalize.c')
    equal(steps(make('-n', 'test/unit/test_key')[1]), ['test/unit/test_key.c'], 'a unit test knows its files')
    with open(tree() + '/src/os/another.c', 'w') as f:
        f.write('int ws_another(void);\nint ws_another(void) { return 0; }\n')
    equal(sorted(steps(make(FAST)[1])), ['src/key/normalize.c', 'src/os/another.c', 'wiscsort.so'],
          'a source is added')
    os.remove(tree() + '/src/os/another.c')
    equal(steps(make(FAST)[1]), ['wiscsort.so'], 'a source is removed')
    os.utime(tree() + '/src/plan/plan.h')
    found = steps(make('-n', FAST)[1])
    check('src/plan/paths.c' in found and 'src/os/region.c' not in found, 'objects know their headers', found)
    with open(tree() + '/src/guc.c', 'a') as f:
        f.write('\nstatic int ws_unused_function(void) { return 0; }\n')
    status, lines = make(FAST, 'src/guc.o')
    check(status == 0 and any('warning:' in line for line in lines), 'warnings are shown', lines)
    shown = make('-W', 'src/guc.c', FAST, 'V=1', 'src/guc.o')[1]
    check(any(' -o src/guc.o ' in line for line in shown), 'V=1 shows the command', shown)
    make('-j2', FAST)


def replaced():
    """A library that is replaced while a session has it: its plans are refused where the new one gets them."""
    path = tree() + '/src/exec/request.c'
    used = os.path.join(place, 'used')
    os.mkdir(used)
    library = used + '/wiscsort.so'
    shutil.copy(tree() + '/wiscsort.so', library)
    for folder in (place, used):
        os.chmod(folder, 0o755)
    with common.server(preload=False, parallel_setup_cost='0', parallel_tuple_cost='0',
                       min_parallel_table_scan_size='0') as cluster:
        cur = cluster.connect(work_mem='64kB').cursor()
        cur.execute('CREATE TABLE t AS SELECT hashint4(i) AS k, i FROM generate_series(1, 30000) i; ANALYZE t')
        cur.execute("LOAD '%s'; SET wiscsort.debug_force = on; SET max_parallel_workers = 8" % library)
        # what takes long is done by workers, and so is the sort
        cur.execute("CREATE FUNCTION slow(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 10000"
                    " AS 'BEGIN RETURN true; END'")
        sql = 'SELECT count(*), max(i) FROM (SELECT * FROM t WHERE slow(i) ORDER BY k OFFSET 0) s'
        plan = common.explain(cur, sql)
        check('Gather' in plan.split('(WiscSort)')[0], 'a WiscSort in workers', plan)
        equal(common.error(cur, sql), (None, ''), 'workers have the same library')
        with open(path) as f:
            text = f.read()
        with open(path, 'w') as f:
            f.write(re.sub(r'(#define PLAN_LAYOUT\s+)(\d+)', lambda m: m[1] + str(int(m[2]) + 1), text))
        equal(steps(make(FAST)[1]), ['src/exec/request.c', 'wiscsort.so'], 'another build')
        shutil.copy(tree() + '/wiscsort.so', library + '.new')
        os.rename(library + '.new', library)
        code, message = common.error(cur, sql)
        check(code == '55000' and 'another build of wiscsort' in message, 'a worker has another library', (code, message))
        cur = cluster.connect(work_mem='64kB').cursor()
        cur.execute("LOAD '%s'" % library)
        equal(common.error(cur, sql), (None, ''), 'a new session has it as well')
        common.healthy(cluster, 'a library that was replaced')
    with open(path, 'w') as f:
        f.write(text)
    make(FAST)


def flags():
    """With -n, which finds out what would be built: each is another than the one before."""
    every = sorted(sources())

    def rebuilt(name, *arguments, **more):
        found = [step for step in steps(make('-n', *arguments, **more)[1]) if step.endswith('.c')]
        equal(sorted(found), every, name + ': all is rebuilt')
    rebuilt('WERROR', FAST, 'WERROR=-Werror')
    rebuilt('a library', FAST, 'WERROR=-Werror', 'WITH_LIBPMEM=' + ('no' if pmem() else 'yes'))
    rebuilt('the server', FAST, 'WERROR=-Werror', pg_config=fake('%s.99' % major()))
    rebuilt('SANITIZE', FAST, 'SANITIZE=-fsanitize=undefined')


def pmem():
    return any(line.startswith('libpmem: found') for line in make('libraries')[1])


def major():
    done = subprocess.run([common.options.pg_config, '--version'], text=True, stdout=subprocess.PIPE)
    return done.stdout.split()[1].split('.')[0]


def outside():
    """VPATH builds."""
    build = os.path.join(place, 'build')
    os.mkdir(build)
    where = ('-f', tree() + '/Makefile', 'VPATH=' + tree(), FAST)
    stops('VPATH beside a build', 'make clean', *where, cwd=build)
    status, lines = make('clean')
    left = [path for ending in ('o', 'd', 'so')
            for path in glob.glob(tree() + '/**/*.' + ending, recursive=True)]
    equal((status, lines, left, os.path.exists(tree() + '/.build')), (0, [], [], False), 'make clean')
    equal(make('src/guc.o', *where, cwd=build)[0], 0, 'VPATH builds an object')
    status, lines = make('-j8', 'clean', 'all', *where, cwd=build)
    check(status == 0 and os.path.exists(build + '/wiscsort.so'), 'VPATH: make -j8 clean all', '\n'.join(lines))
    check(any(step.endswith('src/guc.c') for step in steps(lines)), 'make -j8 clean all cleans first', steps(lines))
    equal(glob.glob(tree() + '/**/*.o', recursive=True), [], 'VPATH leaves the source alone')
    equal(steps(make('-f', tree() + '/Makefile', FAST, cwd=build)[1]), [], 'VPATH need not be named')


def spaces():
    spaced = tree('a tree')
    equal(make(FAST, 'src/guc.o', cwd=spaced)[0], 0, 'a source with a space in its path')
    stops('VPATH with a space', 'space', '-f', spaced + '/Makefile', 'VPATH=' + spaced, cwd=place)


if __name__ == '__main__':
    with tempfile.TemporaryDirectory(prefix='wiscsort-build-') as place:
        try:
            common.run([servers, builds, changes, replaced, flags, outside, spaces])
        except KeyboardInterrupt:
            sys.exit(130)
