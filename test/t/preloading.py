#!/usr/bin/python3
"""Lists of libraries that databases and roles have: enable_in_database() and disable_in_database() lose nothing
of them, whatever is changed meanwhile, and status() says whose sessions load what."""

import common
from common import equal, error, rows, value


def session(cluster):
    cur = cluster.connect().cursor()
    cur.execute('SELECT wiscsort.version()')
    return cur


def lists(cluster):
    """Libraries that all roles have in every database are neither lost nor overlooked."""
    cur = session(cluster)
    cur.execute("ALTER ROLE ALL SET session_preload_libraries = 'auto_explain'")
    equal(value(cur, 'SELECT wiscsort.enable_in_database()'), 'auto_explain, wiscsort', 'ALTER ROLE ALL: nothing is lost')
    equal(value(cur, 'SELECT wiscsort.disable_in_database()'), 'auto_explain', 'nor when it is switched off')
    own = "SELECT count(*) FROM pg_db_role_setting, unnest(setconfig) c WHERE setdatabase <> 0 AND c LIKE '%preload%'"
    equal(value(cur, own), 0, 'the database has no list of its own then')
    hint = "SELECT hint LIKE 'New sessions do not load%' FROM wiscsort.status() WHERE name LIKE '%of the database'"
    equal(value(cur, hint), True, 'status() says that it is off')
    cur.execute("ALTER ROLE ALL SET session_preload_libraries = 'wiscsort'")
    equal(value(cur, hint), None, 'and that it is on by ALTER ROLE ALL')
    equal(error(cur, 'SELECT wiscsort.disable_in_database()')[0], '55000', 'no empty list, which no dump restores')
    cur.execute("ALTER ROLE ALL SET session_preload_libraries = 'auto_explain', 'wiscsort'")
    equal(value(cur, 'SELECT wiscsort.disable_in_database()'), 'auto_explain', 'switched off in this database')
    equal(value(cur, own), 1, 'by a list of its own')
    cur.execute('ALTER ROLE ALL RESET session_preload_libraries')
    cur.execute("ALTER DATABASE %s SET session_preload_libraries = 'wiscsort', 'auto_explain'"
                % value(cur, 'SELECT current_database()'))
    equal(value(cur, 'SELECT wiscsort.enable_in_database()'), 'wiscsort, auto_explain', 'a list that has it stays as it is')
    database = value(cur, 'SELECT current_database()')
    equal(rows(cur, 'SELECT wiscsort.disable_in_database(), wiscsort.enable_in_database()'),
          [('auto_explain', 'auto_explain, wiscsort')], 'one after the other in one command')
    equal(value(cur, 'SELECT wiscsort.disable_in_database()'), 'auto_explain', 'and both were done')
    old = session(cluster)
    old.execute('BEGIN ISOLATION LEVEL REPEATABLE READ')
    value(old, 'SELECT 1')
    cur.execute('ALTER DATABASE %s SET session_preload_libraries = auto_explain, pg_stat_statements' % database)
    equal(value(old, 'SELECT wiscsort.enable_in_database()'), 'auto_explain, pg_stat_statements, wiscsort',
          'what was put into the list behind the snapshot of the transaction is not lost')
    cur.execute("SET lock_timeout = '10ms'")
    equal(error(cur, 'ALTER DATABASE %s RESET session_preload_libraries' % database)[0], '55P03',
          'nor what would be until it ends')
    old.execute('COMMIT')
    cur.execute('RESET lock_timeout')
    cur.execute("ALTER DATABASE %s SET session_preload_libraries = 'wiscsort', 'auto_explain'" % database)
    blamed = "SELECT max(value) FROM wiscsort.status() WHERE name LIKE 'roles with a list%'"
    cur.execute('CREATE ROLE other')
    cur.execute("ALTER ROLE other SET session_preload_libraries = 'auto_explain'")
    equal(value(cur, blamed), 'other', 'a role with a list without it')
    cur.execute("ALTER ROLE other IN DATABASE %s SET session_preload_libraries = 'wiscsort'" % database)
    equal(value(cur, blamed), None, 'and with it in this database')
    cur.execute("ALTER ROLE other SET session_preload_libraries = 'wiscsort'")
    cur.execute("ALTER ROLE other IN DATABASE %s SET session_preload_libraries = 'auto_explain'" % database)
    equal(value(cur, blamed), 'other', 'and the other way round, once')
    cur.execute('ALTER ROLE other IN DATABASE %s RESET session_preload_libraries; ALTER ROLE other RESET ALL;'
                ' DROP ROLE other' % database)
    cur.execute('ALTER DATABASE %s RESET session_preload_libraries' % database)
    equal(value(cur, hint), True, 'it is off again')
    cur.execute("ALTER ROLE CURRENT_USER SET session_preload_libraries = 'wiscsort'")
    equal(value(cur, hint), None, 'and on for the role that asks')
    cur.execute('ALTER ROLE CURRENT_USER RESET session_preload_libraries')


def main():
    with common.server(preload=False) as cluster:
        session_before = cluster.connect().cursor()
        session_before.execute('CREATE EXTENSION wiscsort')
        lists(cluster)
        common.healthy(cluster, 'preloading')


if __name__ == '__main__':
    common.run([main])
