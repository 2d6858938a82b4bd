#!/usr/bin/python3
"""Switching WiscSort on and off, installing it and taking it away: every step that the README tells.

The server is one of its own, a relocated copy, so that its library can be taken away.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))

import common                           # noqa: E402
from cluster import Cluster, ClusterError  # noqa: E402
from common import check, equal         # noqa: E402

GONE = 'could not access file "wiscsort"'
ORDERED = 'EXPLAIN (COSTS OFF) SELECT * FROM big ORDER BY note'
place = pg_config = cluster = None


def tell(option):
    return subprocess.run([pg_config, option], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def start():
    """Copies the server, installs WiscSort into the copy, and starts it."""
    global place, pg_config, cluster
    place = tempfile.mkdtemp(prefix='wiscsort-install-')
    os.chmod(place, 0o755)
    original = shutil.which(common.options.pg_config)
    pg_config = original
    folders = [tell('--bindir'), tell('--pkglibdir'), tell('--sharedir')]
    for folder in folders:
        shutil.copytree(folder, place + folder, symlinks=True, dirs_exist_ok=True)
    for top in folders[1:]:
        for folder, _, names in os.walk(place + top):
            for name in names:
                if 'wiscsort' in name:
                    os.unlink(os.path.join(folder, name))
    pg_config = place + folders[0] + '/pg_config'
    if not os.path.exists(pg_config):
        shutil.copy(original, pg_config)
    equal(os.path.realpath(tell('--pkglibdir')), os.path.realpath(place + folders[1]), 'the server is a copy')
    cluster = Cluster(pg_config, {})


def psql(sql, database=None, gucs=None):
    """All that psql says."""
    done = cluster.psql(sql, database=database, check=False, args=('-At',), gucs=gucs)
    return done.stdout + done.stderr


def make(*arguments):
    done = subprocess.run(['make', '-s', 'PG_CONFIG=' + common.options.pg_config, *arguments], cwd=TREE,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={k: v for k, v in os.environ.items() if not k.startswith('MAKE') and k != 'MFLAGS'})
    check(done.returncode == 0, 'make ' + ' '.join(arguments).replace(place, '...'), done.stdout)


def library():
    return os.path.join(tell('--pkglibdir'), 'wiscsort.so')


def five_commands():
    """The five commands of the README, and what each of them says."""
    with open(os.path.join(TREE, 'README.md')) as f:
        readme = f.read()
    lines = re.search(r'Five commands.*?```\n(.*?)```', readme, re.S).group(1).strip().split('\n')
    equal([line.split()[0] for line in lines], ['sudo', 'psql', 'psql', 'psql', 'psql'], 'five commands are told')
    equal(os.path.exists(library()), False, 'there is no library yet')
    make('install', 'DESTDIR=' + place)
    check(os.path.exists(library()), '1: the library is installed', library())
    commands = [re.search(r'-c "([^"]*)"', line).group(1) for line in lines[1:]]
    found = psql(commands[0])
    check('NOTICE' in found and 'new sessions do not load it yet' in found and
          'wiscsort.enable_in_database()' in found, '2: CREATE EXTENSION says what is to be done', found)
    psql('CREATE TABLE big AS SELECT i, md5(i::text) AS note FROM generate_series(1, 200000) i; ANALYZE big')
    psql('ALTER DATABASE postgres SET max_parallel_workers_per_gather = 0')
    check('WiscSort' not in psql(ORDERED), 'until then new sessions do without', psql(ORDERED))
    equal(psql(commands[1]).strip(), 'wiscsort', '3: enable_in_database() says the new list')
    equal(psql(commands[2]).strip(), 'on', '4: a new session has the library')
    equal(commands[3].replace('TABLE', 'big').replace('COLUMN', 'note'), ORDERED, '5: EXPLAIN of an ORDER BY')
    check('Custom Scan (WiscSort)' in psql(ORDERED), '5: ORDER BY uses it', psql(ORDERED))


def settings_before_load():
    """What a session without the library says of the settings."""
    without = {'session_preload_libraries': ''}
    check('unrecognized configuration parameter' in psql('SHOW wiscsort.enable', gucs=without), 'SHOW before LOAD')
    equal(psql("SET wiscsort.work = 1; SHOW wiscsort.work", gucs=without).split(), ['SET', '1'],
          'any name may be set before LOAD')
    equal(psql("SET wiscsort.enable = off; LOAD 'wiscsort'; SHOW wiscsort.enable", gucs=without).split(),
          ['SET', 'LOAD', 'off'], 'and is taken over by LOAD')
    check('WARNING' in psql("SET wiscsort.work = 1; LOAD 'wiscsort'", gucs=without), 'or refused, with a warning')
    psql('CREATE ROLE reporting LOGIN SUPERUSER; ALTER ROLE reporting SET wiscsort.enable = off', gucs=without)
    equal(psql("SELECT setconfig FROM pg_db_role_setting WHERE setdatabase = 0").strip(), '{wiscsort.enable=off}',
          'a role can have a setting before the library is there')
    psql('DROP ROLE reporting')


def own_list():
    return psql("SELECT c FROM pg_db_role_setting, unnest(setconfig) c WHERE setrole = 0"
                " AND c LIKE 'session_preload%'").strip()


def enable(gucs=None):
    return psql('SELECT wiscsort.enable_in_database()', gucs=gucs).strip()


def disable(gucs=None):
    return psql('SELECT wiscsort.disable_in_database()', gucs=gucs).strip()


def lists():
    """Nothing that is in a list of libraries is lost."""
    equal((enable(), own_list()), ('wiscsort', 'session_preload_libraries=wiscsort'), 'on again: no change')
    equal((disable(), own_list()), ('', ''), 'off: nothing is left')
    equal((disable(), own_list()), ('', ''), 'off again: no change')
    strange = os.path.join(tell('--pkglibdir'), 'a "b", c.so')
    shutil.copy(os.path.join(tell('--pkglibdir'), 'dict_snowball.so'), strange)
    quoted = '"' + strange.replace('"', '""') + '"'

    def shown():
        return psql('SHOW session_preload_libraries').strip()

    psql("ALTER DATABASE postgres SET session_preload_libraries = 'plpgsql', '%s'" % strange)
    equal(enable(), 'plpgsql, %s, wiscsort' % quoted, 'behind what is there, quoted')
    equal(shown(), 'plpgsql, %s, wiscsort' % quoted, 'and a new session loads all of it')
    equal(disable(), 'plpgsql, %s' % quoted, 'out of the list')
    equal(shown(), 'plpgsql, %s' % quoted, 'the others are still there')
    psql('ALTER DATABASE postgres RESET session_preload_libraries')

    psql("ALTER SYSTEM SET session_preload_libraries = 'plpgsql'; ")
    psql('SELECT pg_reload_conf()')
    for gucs in (None, {'session_preload_libraries': ''}):
        how = ' with PGOPTIONS' if gucs else ''
        equal(enable(gucs), 'plpgsql, wiscsort', "the cluster's list is kept" + how)
        equal(shown(), 'plpgsql, wiscsort', 'for new sessions' + how)
        equal((disable(gucs), own_list()), ('plpgsql', ''), "off: the cluster's list counts again" + how)
    with open(os.path.join(cluster.data, 'postgresql.conf'), 'r+') as conf:
        whole = conf.read()
        conf.write('\nno_such_setting = 1\n')
        conf.flush()
        equal(enable({'session_preload_libraries': ''}), 'plpgsql, wiscsort', 'also with a mistake in the configuration')
        disable()
        conf.seek(0)
        conf.truncate()
        conf.write(whole)
    psql("ALTER SYSTEM SET session_preload_libraries = 'plpgsql', 'wiscsort'")
    psql('SELECT pg_reload_conf()')
    equal((enable(), own_list()), ('plpgsql, wiscsort', ''), 'on for all: nothing to be done')
    equal(disable(), 'plpgsql', 'off here, though on for all')
    equal(shown(), 'plpgsql', 'for new sessions of this database')
    psql("ALTER SYSTEM SET session_preload_libraries = 'wiscsort'")
    psql('SELECT pg_reload_conf()')
    equal((disable(), own_list()), ('plpgsql', 'session_preload_libraries=plpgsql'), 'a list of its own stays')
    equal(psql('SHOW session_preload_libraries', database='template1').strip(), 'wiscsort', 'elsewhere it is on')
    psql('ALTER DATABASE postgres RESET session_preload_libraries')
    psql("ALTER SYSTEM SET session_preload_libraries = 'plpgsql'")
    psql('SELECT pg_reload_conf()')
    psql("ALTER DATABASE postgres SET session_preload_libraries = 'wiscsort'")
    equal((disable(), own_list()), ('plpgsql', ''), "off: nothing is left of its own list, and the cluster's counts")
    psql('ALTER SYSTEM RESET session_preload_libraries')
    psql('SELECT pg_reload_conf()')
    equal(enable(), 'wiscsort', 'on')
    os.unlink(strange)


def hint(name, **gucs):
    return psql("SELECT coalesce(hint, '') FROM wiscsort.status() WHERE name = '%s'" % name, gucs=gucs).strip()


def status():
    """status() has a hint for what is wrong, and none otherwise."""
    equal(psql("SELECT count(hint) FROM wiscsort.status() WHERE name <> 'statistics'",
               gucs={'effective_cache_size': '1MB'}).strip(), '0', 'nothing is wrong')
    equal(psql("SELECT value FROM wiscsort.status() WHERE name = 'loaded in this session'").strip(),
          'when it began', 'preloaded')
    equal(psql("LOAD 'wiscsort'; SELECT value FROM wiscsort.status() WHERE name = 'loaded in this session'",
               gucs={'session_preload_libraries': ''}).split('\n')[1], 'by LOAD, or by a function', 'loaded later')
    check('on' in hint('wiscsort.enable', **{'wiscsort.enable': 'off'}), 'preloaded, and off')
    check('correct it' in hint('page cache', effective_cache_size='8TB'), 'effective_cache_size far above memory')
    equal(hint('page cache', effective_cache_size='1MB'), '', 'and below it')
    psql('CREATE ROLE "a b"; ALTER ROLE "a b" SET session_preload_libraries = plpgsql')
    check('ALTER ROLE' in hint('roles with a list without wiscsort'), 'a role with a list of its own')
    psql('DROP ROLE "a b"')
    disable()
    check('enable_in_database' in hint('session_preload_libraries of the database'), 'not in the list')
    enable()


def dropping():
    """DROP EXTENSION leaves no schema, and pg_dump's script makes the extension again."""
    dump = subprocess.run([cluster.program('pg_dump'), '-n', 'wiscsort', '-e', 'wiscsort'], env=cluster.env(),
                          text=True, stdout=subprocess.PIPE, check=True).stdout
    check('CREATE EXTENSION' in dump and 'CREATE FUNCTION' not in dump and 'CREATE SCHEMA' not in dump,
          'the dump has the extension and nothing of what is in it', dump)
    psql('DROP EXTENSION wiscsort')
    equal(psql("SELECT count(*) FROM pg_namespace WHERE nspname = 'wiscsort'").strip(), '0', 'no schema is left')
    psql(dump)
    check(psql('SELECT wiscsort.version()').startswith('wiscsort '), 'restored')


OLDER_CONTROL = """default_version = '0.1'
module_pathname = '$libdir/wiscsort'
relocatable = false
schema = wiscsort
"""
OLDER_SCRIPT = """CREATE FUNCTION wiscsort.version() RETURNS text LANGUAGE c STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'wiscsort_version';
"""


MEMBERS = ("SELECT pg_describe_object(classid, objid, objsubid) FROM pg_depend WHERE refclassid = 'pg_extension'::regclass"
           " AND deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'wiscsort') ORDER BY 1")


def older_build():
    """A database with the extension as the first builds made it, 0.1, is updated, and dropped without a trace."""
    extension = os.path.join(tell('--sharedir'), 'extension')
    files = {'wiscsort.control': OLDER_CONTROL, 'wiscsort--0.1.sql': OLDER_SCRIPT}
    for name, older in files.items():
        os.rename(os.path.join(extension, name), os.path.join(extension, name + '.new'))
        with open(os.path.join(extension, name), 'w') as f:
            f.write(older)
    psql('CREATE DATABASE older')
    psql('CREATE EXTENSION wiscsort', 'older')
    for name in files:
        os.replace(os.path.join(extension, name + '.new'), os.path.join(extension, name))
    check(psql('SELECT wiscsort.version()', 'older').startswith('wiscsort '), 'an older build: what it has works')
    check('does not exist' in psql('SELECT * FROM wiscsort.status()', 'older'), 'it lacks functions')
    with open(os.path.join(TREE, 'README.md')) as f:
        told = re.search(r'`(ALTER EXTENSION wiscsort UPDATE)`', f.read()).group(1)
    equal(psql('SET client_min_messages = warning; ' + told, 'older').split('\n')[:2], ['SET', 'ALTER EXTENSION'],
          'as README tells')
    check('loaded' in psql('SELECT * FROM wiscsort.status()', 'older'), 'then it has all of them')
    psql('CREATE DATABASE newer')
    psql('CREATE EXTENSION wiscsort', 'newer')
    equal(psql(MEMBERS, 'older'), psql(MEMBERS, 'newer'), 'the same as an extension that is made now')
    equal(psql("SELECT extversion, extnamespace::regnamespace FROM pg_extension WHERE extname = 'wiscsort'", 'older').strip(),
          '0.2|pg_catalog', 'in the same schema')
    check('already installed' in psql(told, 'older'), 'there is nothing more to update')
    dump = subprocess.run([cluster.program('pg_dump'), 'older'], env=cluster.env(), text=True, stdout=subprocess.PIPE,
                          check=True).stdout
    check('CREATE EXTENSION' in dump and 'CREATE SCHEMA' not in dump, 'its dump has the extension alone', dump)
    psql('DROP EXTENSION wiscsort', 'older')
    equal(psql("SELECT count(*) FROM pg_namespace WHERE nspname = 'wiscsort'", 'older').strip(), '0', 'no schema is left')
    psql('DROP DATABASE newer')
    psql('DROP DATABASE older')


LATER_SCRIPT = OLDER_SCRIPT + """CREATE FUNCTION wiscsort.why(query text, OUT sort integer, OUT reason text)
RETURNS SETOF record LANGUAGE c VOLATILE STRICT AS 'MODULE_PATHNAME', 'wiscsort_why';
CREATE FUNCTION wiscsort.stat_rows(OUT database oid, OUT one_pass_at bigint[]) RETURNS SETOF record
LANGUAGE c VOLATILE STRICT AS 'MODULE_PATHNAME', 'wiscsort_stat_rows';
CREATE FUNCTION wiscsort.progress_rows(OUT database oid, OUT role oid) RETURNS SETOF record
LANGUAGE c VOLATILE STRICT AS 'MODULE_PATHNAME', 'wiscsort_progress_rows';
CREATE FUNCTION wiscsort.status(OUT name text, OUT value text) RETURNS SETOF record
LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'wiscsort_status';
CREATE VIEW wiscsort.stat AS SELECT * FROM wiscsort.stat_rows();
CREATE DOMAIN wiscsort.share AS float8 CHECK (VALUE > 0);
CREATE FUNCTION wiscsort.advise_workload(share wiscsort.share DEFAULT 0.95) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
"""


def later_build():
    """A later 0.1, with functions of other columns: errors instead of crashes, and an update."""
    extension = os.path.join(tell('--sharedir'), 'extension')
    path = os.path.join(extension, 'wiscsort--0.1.sql')
    os.rename(path, path + '.new')
    with open(path, 'w') as f:
        f.write("CREATE SCHEMA wiscsort;\n" + LATER_SCRIPT)
    psql('CREATE DATABASE later')
    said = psql("CREATE EXTENSION wiscsort VERSION '0.1'", 'later')
    check('CREATE EXTENSION' in said, 'a later 0.1', said)
    os.replace(path + '.new', path)
    for query in ("SELECT * FROM wiscsort.why('SELECT 1')", 'SELECT * FROM wiscsort.stat', 'SELECT * FROM wiscsort.status()',
                  'SELECT * FROM wiscsort.progress_rows()'):
        said = psql(query, 'later')
        check('is of another build than the library' in said and 'HINT' in said, query + ' of a later 0.1', said)
    with open(os.path.join(TREE, 'README.md')) as f:
        check('the extension wiscsort of this database is of another build than the library' in
              ' '.join(f.read().split()), 'README has the message')
    said = psql('SET client_min_messages = warning; ALTER EXTENSION wiscsort UPDATE', 'later')
    equal(said.split('\n')[:2], ['SET', 'ALTER EXTENSION'], 'it is updated')
    check('loaded' in psql('SELECT * FROM wiscsort.status()', 'later'), 'then its functions are those of the library')
    psql('CREATE DATABASE newer')
    psql('CREATE EXTENSION wiscsort', 'newer')
    equal(psql(MEMBERS, 'later'), psql(MEMBERS, 'newer'), 'and it is the same as an extension that is made now')
    psql('DROP DATABASE newer')
    psql('DROP DATABASE later')


def hidden_list():
    """A database's own list hides the server's: status() names what is missing from it."""
    psql('CREATE DATABASE lists')
    psql('CREATE EXTENSION wiscsort', 'lists')
    query = "SELECT value FROM wiscsort.status() WHERE name LIKE 'libraries that%'"
    psql('ALTER SYSTEM SET session_preload_libraries = auto_explain')
    psql('SELECT pg_reload_conf(), pg_sleep(0.5)')
    psql('SELECT wiscsort.enable_in_database()', 'lists')
    equal(psql(query, 'lists').strip(), '', 'a list that was made of the server\'s')
    psql('ALTER SYSTEM SET session_preload_libraries = auto_explain, pg_stat_statements')
    psql('SELECT pg_reload_conf(), pg_sleep(0.5)')
    equal(psql(query, 'lists').strip(), 'pg_stat_statements', 'one that the server has got since')
    psql('ALTER SYSTEM RESET session_preload_libraries')
    psql('SELECT pg_reload_conf(), pg_sleep(0.5)')
    equal(psql(query, 'lists').strip(), '', 'and none when it is gone')
    psql('DROP DATABASE lists')


def uninstalling():
    """The wrong order, what it breaks, and the way back in; then the right order."""
    make('uninstall', 'DESTDIR=' + place)
    check(not os.path.exists(library()), 'the library is gone')
    check(GONE in psql('SELECT 1'), 'with the setting left behind every connection fails', psql('SELECT 1'))
    check('1' == psql('SELECT 1', database='template1').strip(), 'those of other databases do not')
    way = {'session_preload_libraries': ''}
    equal(psql('SELECT 1', gucs=way).strip(), '1', "PGOPTIONS is the way back in")
    equal(psql('ALTER DATABASE postgres RESET session_preload_libraries', gucs=way).strip(), 'ALTER DATABASE',
          'and the setting goes')
    equal(psql('SELECT 1').strip(), '1', 'connections begin again')
    equal(psql('DROP EXTENSION wiscsort').strip(), 'DROP EXTENSION', 'DROP EXTENSION needs no library')
    cluster.stop()
    try:
        cluster.start({'shared_preload_libraries': 'wiscsort'})
        check(False, 'with shared_preload_libraries the server does not start')
        cluster.stop()
    except ClusterError as e:
        check(GONE in str(e), 'with shared_preload_libraries the server does not start', e)
    cluster.start({'shared_preload_libraries': ''})
    equal(psql('SELECT 1').strip(), '1', 'without, it does')

    make('install', 'DESTDIR=' + place)
    psql('CREATE EXTENSION wiscsort')
    enable()
    check('WiscSort' in psql(ORDERED), 'installed again')
    equal(disable(), '', 'the right order: first out of the list')
    equal(psql('DROP EXTENSION wiscsort').strip(), 'DROP EXTENSION', 'then DROP EXTENSION')
    make('uninstall', 'DESTDIR=' + place)
    equal(psql('SELECT count(*) FROM big').strip(), '200000', 'then make uninstall: the server is as before')
    left = [name for top in (tell('--pkglibdir'), tell('--sharedir')) for folder, _, names in os.walk(top)
            for name in names if 'wiscsort' in name]
    equal(left, [], 'and no file is left')


def end():
    log = cluster.log()
    check(not cluster.crashed(), 'no crash', log[-3000:])
    cluster.close()
    shutil.rmtree(place)


if __name__ == '__main__':
    common.run([start, five_commands, settings_before_load, lists, status, hidden_list, dropping, older_build,
                later_build, uninstalling, end])
