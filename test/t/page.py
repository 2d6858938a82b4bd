#!/usr/bin/python3
"""tools/report: the page of pictures says what wiscsort.stat says, is well-formed, and fetches nothing, whatever
queries and roles are called; a browser shows it."""

import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as tree

import common
from common import check, equal, rows, skip, value

PROGRAM = os.path.join(common.HERE, os.pardir, os.pardir, 'tools', 'report')
EVIL = '</code><script src="http://127.0.0.1:9/x.js">&amp;\'"</script><img src=x onerror=alert(1)>'
ROLE = '"<b onclick=""x"">&role"'
BROWSERS = ('chromium', 'chromium-browser', 'google-chrome')


def make(cluster, folder, *more):
    """Has the page made; its text."""
    output = os.path.join(folder, 'page.html')
    done = subprocess.run([PROGRAM, '--output', output, '--psql', cluster.program('psql'), *more], env=cluster.env(),
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == 0 and done.stdout == '', 'tools/report %s' % ' '.join(more[:1]), done.stdout)
    with open(output, encoding='utf-8') as f:
        return f.read()


def harmless(page, name):
    """The page as a tree, which has nothing in it that a browser would fetch or execute."""
    top = tree.fromstring(page)
    elements = {element.tag for element in top.iter()}
    known = set('html head meta title style body main h1 h2 p section div b span i svg rect line polyline text table thead'
                ' tbody tr th td code'.split())
    equal(elements - known, set(), name + ': no other elements')
    attributes = {key for element in top.iter() for key in element.attrib}
    bad = [key for key in attributes if key in ('src', 'href', 'action', 'xmlns') or ':' in key or key.startswith('on')]
    equal(bad, [], name + ': nothing is referred to')
    style = ''.join(element.text or '' for element in top.iter('style'))
    check('url(' not in style and '@import' not in style, name + ': nor by the style')
    return top


def texts(top, tag):
    return [''.join(element.itertext()) for element in top.iter(tag)]


def seen_by_browser(page, folder):
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        return skip('a browser shows the page', 'there is no chromium')
    with open(os.path.join(folder, 'shown.html'), 'w') as f:
        f.write(page)
    picture = os.path.join(folder, 'page.png')
    common_options = ['--headless', '--no-sandbox', '--disable-gpu', '--user-data-dir=' + os.path.join(folder, 'profile'),
                      '--host-resolver-rules=MAP * ~NOTFOUND']
    url = 'file://' + os.path.join(folder, 'shown.html')
    # a browser that cannot show an empty page does not run here
    try:
        empty = subprocess.run([program, *common_options, '--dump-dom', 'about:blank'], text=True, timeout=100,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return skip('a browser shows the page', 'it does not end')
    if empty.returncode != 0 or '<html' not in empty.stdout:
        return skip('a browser shows the page', 'it does not run here')
    done = subprocess.run([program, *common_options, '--dump-dom', url], text=True, timeout=300, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    subprocess.run([program, *common_options, '--window-size=1000,2600', '--screenshot=' + picture, url], timeout=300,
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    equal((done.stdout.count('<svg'), done.stdout.count('<script'), done.stdout.count('<img')),
          (page.count('<svg'), 0, 0), 'a browser has the pictures, and no script')
    with open(picture, 'rb') as f:
        image = f.read()
    check(image.startswith(b'\x89PNG') and len(image) > 30000, 'and its picture of it is not empty', len(image))


def pages():
    if common.options.core:
        return skip('the page', "PostgreSQL's own sort has no statistics")
    with common.server(preload=False, shared_preload_libraries='pg_stat_statements, wiscsort', compute_query_id='on',
                       max_parallel_workers_per_gather='0') as cluster:
        cur = common.session(cluster, work_mem='64kB')
        cur.execute('CREATE EXTENSION wiscsort; CREATE EXTENSION pg_stat_statements')
        page = make(cluster, cluster.dir)
        top = harmless(page, 'without sorts')
        check('Nothing has been counted yet.' in page and '//' not in page, 'without sorts it says so, and there is no URL')
        cur.execute('CREATE TABLE t AS SELECT i, hashint8(i) AS k, md5(i::text) AS m FROM generate_series(1, 20000) i;'
                    ' ANALYZE; CREATE ROLE %s; GRANT SELECT ON t TO PUBLIC' % ROLE)
        # a function whose arguments fit better than those of PostgreSQL's own is not called
        cur.execute("CREATE FUNCTION public.trap(json, wiscsort.stat) RETURNS json LANGUAGE plpgsql AS"
                    " $$ BEGIN RAISE 'trapped'; END $$;"
                    ' CREATE AGGREGATE public.json_agg(wiscsort.stat) (SFUNC = public.trap, STYPE = json)')
        history = os.path.join(cluster.dir, 'history')
        make(cluster, cluster.dir, '--history', history)
        for store in ('spool', 'heap', 'inline'):
            cur.execute('SET wiscsort.record_store = ' + store)
            rows(cur, 'SELECT * FROM t ORDER BY m')
        core = common.core(cluster, work_mem='64kB')
        rows(core, 'SELECT * FROM t ORDER BY m')
        top = harmless(make(cluster, cluster.dir, '--history', history), 'sorts')
        check('//' not in make(cluster, cluster.dir), 'sorts: there is no URL')
        cur.execute('SET ROLE ' + ROLE)
        rows(cur, "SELECT m, '%s' FROM t ORDER BY k /* %s */" % (EVIL.replace("'", "''"), EVIL))
        cur.execute('SELECT i AS "%s" FROM t ORDER BY i DESC' % EVIL.replace('"', '""')[:60])
        cur.execute('RESET ROLE')
        page = make(cluster, cluster.dir, '--history', history)
        top = harmless(page, 'hostile names')
        found = texts(top, 'code')
        check(any('<script src=' in text for text in found), 'the text of the query is told as it is', found)
        check(any('<b onclick="x">&role' in text for text in texts(top, 'td')), 'and the name of the role')
        tiles = dict((span, b) for b, span in zip(texts(top, 'b'), texts(top, 'span')))
        sorts, left, peak = rows(cur, 'SELECT sum(sorts), sum(left_to_core), max(temp_peak) FROM wiscsort.stat')[0]
        equal((tiles['sorts'], tiles['left to core, and spilled']), (str(sorts), str(left)), 'it says what the view says')
        with open(history) as f:
            lines = [json.loads(line) for line in f]
        equal(len(lines), 3, 'each call with --history appends a line')
        cut = os.path.join(cluster.dir, 'cut')
        with open(cut, 'w') as f:
            f.write(json.dumps(lines[0]) + '\n' + json.dumps(lines[1])[:20])
        done = subprocess.run([PROGRAM, '--output', os.path.join(cluster.dir, 'page.html'), '--psql', cluster.program('psql'),
                               '--history', cut], env=cluster.env(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(done.returncode == 0 and 'no whole line' in done.stdout, 'a line that is cut off is told, and left out', done)
        make(cluster, cluster.dir, '--history', history)
        with open(cut) as f:
            equal(len(f.read().splitlines()), 3, 'and what is appended is a line of its own')
        ahead = os.path.join(cluster.dir, 'ahead')
        with open(ahead, 'w') as f:
            f.write(json.dumps(dict(lines[-1], at=lines[-1]['at'] + 3600)) + '\n')
        harmless(make(cluster, cluster.dir, '--history', ahead), 'a clock that went back')
        late = os.path.join(cluster.dir, 'late')
        with open(late, 'w') as f:
            f.write('#!/bin/sh\n%s "$@" | sed -E \'s/("since" ?: ?)[0-9.]+/\\19999999999/\'\n' % cluster.program('psql'))
        os.chmod(late, 0o755)
        earlier = make(cluster, cluster.dir, '--psql', late)
        harmless(earlier, 'before what it counts began')
        check('counted from 2286' in earlier, 'which it tells')
        bars = [title for title in texts(top, 'title') if re.search(r' to .*: \d+ one-pass|: \d+ merge-pass', title)]
        equal(sum(int(re.search(r': (\d+) ', bar).group(1)) for bar in bars), int(sorts),
              'the bars have what was counted from one to the next')
        seen_by_browser(page, cluster.dir)
        cur.execute('SELECT wiscsort.stat_reset()')
        rows(cur, 'SELECT * FROM t ORDER BY m')
        harmless(make(cluster, cluster.dir, '--history', history), 'after a reset')
        env = dict(cluster.env(), PGUSER='nobody_there')
        done = subprocess.run([PROGRAM, '--output', os.path.join(cluster.dir, 'x'), '--psql', cluster.program('psql')], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check(done.returncode == 1 and 'nobody_there' in done.stderr, 'without a connection there is an error', done.stderr)
        cur.execute('CREATE ROLE guest LOGIN')
        done = subprocess.run([PROGRAM, '--output', os.path.join(cluster.dir, 'guest.html'), '--psql',
                               cluster.program('psql')], env=dict(cluster.env(), PGUSER='guest'), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with open(os.path.join(cluster.dir, 'guest.html')) as f:
            page = f.read()
        harmless(page, 'as a guest')
        check(done.returncode == 0 and 'rows of others are not shown' in page and 'ORDER BY' not in page,
              "a guest's page has nothing of others", done.stdout)
        cur.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
        latin = cluster.connect('latin', work_mem='64kB', **common.FORCED).cursor()
        latin.execute('CREATE EXTENSION wiscsort; CREATE EXTENSION pg_stat_statements')
        rows(latin, 'SELECT i AS "\u00e9" FROM generate_series(1, 20000) i ORDER BY hashint8(i)')
        found = texts(harmless(make(cluster, cluster.dir, '--dbname', 'latin'), 'in LATIN1'), 'code')
        check(any('AS "\u00e9"' in text for text in found), 'a database in LATIN1: the text is told as it is', found)
        cur.execute('REVOKE USAGE ON SCHEMA public FROM PUBLIC')
        harmless(make(cluster, cluster.dir, '--dbname', 'dbname=postgres user=guest'), 'the schema may not be used')
        cluster.restart({'shared_preload_libraries': 'wiscsort'})
        harmless(make(cluster, cluster.dir), 'pg_stat_statements is not preloaded')
        common.healthy(cluster, 'the page')


if __name__ == '__main__':
    common.run([pages])
