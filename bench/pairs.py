"""Pairs of a query, with core's sort and with WiscSort: what bench/draw, bench/tpch and bench/tpcc share.

A Query says what is sorted and how its rows are consumed.  Pairs measures one after the other: both plans are
looked at, both answers compared, then both sides run in turns, A B, B A, ...; the first pairs say how many there are.
Nothing is restarted between queries; the comparison of the answers is the warm-up.
"""

import itertools
import statistics
import time

import psycopg2

import results
from cluster import ClusterError, end_if_told
from measure import DISK_READ_NOTE, SIDES, Bench, Refused, is_wiscsort, plan_nodes
from memgroup import MemoryGroupError
from results import quartiles

LONG_CELL = 60                  # a cell whose first pairs took so many seconds is given few more
CLEAR = 1.05                    # if the first pairs' median is below it, there are more than these
CLOSE_PAIRS = 7                 # of such a cell, if it is not below 1
NOISE_PAIRS = 5                 # enough where both plans are the same, little is sorted, or it takes long
ALONE_PAIRS = 3                 # of the same plan shape without jit
OTHER_TIMES = 3                 # of what is beside both sides
SWITCHES = ('enable_hashagg', 'enable_hashjoin', 'enable_nestloop', 'enable_mergejoin', 'enable_indexscan',
            'enable_incremental_sort')
# The answers of these are compared key by key: which of the rows with equal keys come is left open.
ONLY_KEYS = ('limit', 'offset', 'cursor')


class Query:
    """A query with its settings: `select` without its last ORDER BY; `sorts`: whether it has one, by `keys`, each
    (name, descending, nulls the other way); `columns`: what it returns; `shape`: copy, ctas and cursor say how
    it is consumed, of `answer` all rows are fetched, all others are counted by columns."""

    fetch, limit, cache = 0, '', 'cached'
    sure = True                 # a column is never null: its count is the number of rows
    pairs = None                # the least number, if not that of all
    expects = ()                # what the plan with WiscSort must have
    places = None               # of `answer`: the columns, from 0, that it is ordered by
    keys, sorts, columns = (), False, ()

    @property
    def order_by(self):
        if not self.sorts:
            return None
        return ', '.join(name + (' DESC' if descending else '') + (' NULLS FIRST' if first else ' NULLS LAST')
                         for name, descending, first in self.ordered())

    def ordered(self):
        """(name, descending, nulls first) of each key, nulls as they come by default but for those that are drawn."""
        return [(name, descending, descending != first) for name, descending, first in self.keys]

    def query(self):
        """The query itself."""
        parts = [self.select] + (['ORDER BY ' + self.order_by] if self.sorts else []) + [self.limit]
        return ' '.join(part for part in parts if part)

    def timed(self):
        """The statement that is timed; a cursor is opened before and fetched from after."""
        if self.shape == 'copy':
            return "COPY (%s) TO '/dev/null' (FORMAT binary)" % self.query()
        if self.shape == 'ctas':
            return 'CREATE TABLE made AS ' + self.query()
        if self.shape == 'cursor':
            return 'DECLARE c CURSOR FOR ' + self.query()
        if self.shape == 'answer':
            return self.select
        return 'SELECT %s FROM (%s OFFSET 0) s' % (', '.join('count(%s)' % name for name in self.columns),
                                                   self.query()) if not self.limit else \
            'SELECT %s FROM (%s) s' % (', '.join('count(%s)' % name for name in self.columns), self.query())

    def explained(self):
        """The same for EXPLAIN."""
        return self.query() if self.shape in ('copy', 'ctas') else self.timed()

    def check(self):
        """Gives rows, a sum of hashes over all columns, and how many rows are less than the one before."""
        inner = self.query() if self.limit else self.query() + ' OFFSET 0'
        hashed = 'ROW(%s)' % ', '.join(self.compared())
        if not self.sorts:
            return 'SELECT count(*), sum(hash_record_extended(%s, 0)), 0 FROM (%s) s' % (hashed, inner)
        names = [name for name, _, _ in self.keys]
        lags = ', '.join('lag(%s, 1, %s) OVER () AS p_%s' % (name, name, name) for name in names)
        wrong, equal = [], ''
        for name, descending, first in self.ordered():
            null, other = ('{0}', 'p_{0}') if first else ('p_{0}', '{0}')
            one = ('(p_{0} %s {0} OR (%s IS NULL AND %s IS NOT NULL))' % ('<' if descending else '>', null, other)) \
                .format(name)
            wrong.append(equal + one)
            equal += 'p_%s IS NOT DISTINCT FROM %s AND ' % (name, name)
        # all columns are asked for: narrower rows, which fit memory, would have another plan
        return ('SELECT count(*), sum(hash), count(*) FILTER (WHERE nothing OR %s) FROM (SELECT %s, %s,'
                ' hash_record_extended(%s, 0) AS hash, hash_record_extended(ROW(%s), 0) IS NULL AS nothing FROM (%s) s) w'
                % (' OR '.join(wrong), ', '.join(names), lags, hashed, ', '.join(self.columns), inner))

    def compared(self):
        """The columns that must be the same."""
        return [name for name, _, _ in self.keys] if self.shape in ONLY_KEYS else self.columns

    def reference(self):
        """The same rows without their order, if there is such a query."""
        if not self.sorts or self.limit or self.shape in ('cursor', 'distinct on'):
            return None
        return 'SELECT count(*), sum(hash_record_extended(ROW(%s), 0)) FROM (%s OFFSET 0) s' \
            % (', '.join(self.compared()), self.select)

    def everything(self):
        """All settings of a session but wiscsort.enable."""
        return {'work_mem': self.work_mem, **self.settings}


# --- plans --------------------------------------------------------------

def shape(plan, neutral):
    """The nodes of a plan from the top; neutral: a sort is a sort, whoever does it."""
    name = 'WiscSort' if is_wiscsort(plan) else plan['Node Type']
    if neutral and name in ('WiscSort', 'Sort', 'Incremental Sort'):
        name = 'sort'
    words = [name] + [str(plan[field]) for field in ('Strategy', 'Partial Mode', 'Join Type', 'Workers Planned')
                      if field in plan]
    return '%s(%s)' % (' '.join(words), ', '.join(shape(child, neutral) for child in plan.get('Plans', [])))


def compiled(explained):
    """How much of a plan jit compiles."""
    options = explained.get('JIT', {}).get('Options', {})
    return '' if 'JIT' not in explained else 'jit' + ''.join('+' + name.lower() for name in ('Inlining', 'Optimization')
                                                            if options.get(name))


def sorting(plan, hashing=False):
    """Seconds in sort nodes of an executed plan, and, if `hashing`, in those with hash tables, which do the same
    for joins and groups; None without such a node."""
    found = None
    for node in plan_nodes(plan):
        if node['Node Type'] in ('Sort', 'Incremental Sort') or is_wiscsort(node) or \
                hashing and (node['Node Type'] == 'Hash Join' or node.get('Strategy') in ('Hashed', 'Mixed')):
            spent = node['Actual Total Time'] * node['Actual Loops'] \
                - sum(below['Actual Total Time'] * below['Actual Loops'] for below in node.get('Plans', [])
                      if below.get('Parent Relationship') in ('Outer', 'Inner'))
            found = (found or 0) + max(spent, 0) / max(node['Actual Loops'], 1) / 1000
    return found


# --- one cell -----------------------------------------------------------

class Pairs:
    """A server, and the measurement of one query after the other.  Who uses it makes the server and its tables."""

    wants_alone = False

    def __init__(self, args):
        self.args, self.bench, self.tables = args, None, []
        self.more = dict(item.split('=', 1) for item in args.set)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        if self.bench is not None:
            self.bench.close()
        self.bench = None

    def session(self, cell, side, **more):
        return self.server().connect(**{**cell.everything(), **self.more, **more,
                                        'wiscsort.enable': 'on' if side == 'wiscsort' else 'off'})

    def explain(self, conn, cell, options=''):
        with conn.cursor() as cur:
            cur.execute('EXPLAIN (%sFORMAT JSON) %s' % (options, cell.explained()))
            return cur.fetchone()[0][0]

    def plans(self, cell, sessions, result):
        found = {side: self.explain(sessions[side], cell) for side in SIDES}
        top = {side: found[side]['Plan'] for side in SIDES}
        uses = {side: any(map(is_wiscsort, plan_nodes(top[side]))) for side in SIDES}
        if uses['core']:
            raise Refused("the core side's plan has a WiscSort node")
        result['used_wiscsort'] = uses['wiscsort']
        lacking = [node for node in cell.expects if node not in shape(top['wiscsort'], False)]
        if lacking:
            raise Refused('not the expected plan: no %s in %s' % (', '.join(lacking), shape(top['wiscsort'], False)))
        same = [shape(top['core'], neutral) == shape(top['wiscsort'], neutral) for neutral in (False, True)]
        jit = {side: compiled(found[side]) for side in SIDES}
        result['plans'] = 'same' if same[0] and jit['core'] == jit['wiscsort'] else 'sort' if same[1] else 'other'
        if jit['core'] != jit['wiscsort']:
            result['jit'] = '%s / %s' % (jit['core'] or 'none', jit['wiscsort'] or 'none')

    @staticmethod
    def fetched(conn, cell):
        """What a cursor gives, and the seconds from its opening to its end."""
        with conn.cursor() as cur:
            started = time.perf_counter()
            cur.execute('BEGIN')
            cur.execute(cell.timed())
            cur.execute('FETCH %d FROM c' % cell.fetch)
            rows = cur.fetchall()
            cur.execute('COMMIT')
            return rows, time.perf_counter() - started

    def answers(self, cell, sessions, result):
        """Also the warm-up of both sides."""
        found, compared = {}, [cell.columns.index(name) for name in cell.compared()]
        if result['used_wiscsort'] and cell.shape not in ('answer', 'cursor') \
                and not Bench.uses(sessions['wiscsort'], cell.check()):
            raise Refused('the checked query has another plan, without WiscSort')
        for side in SIDES:
            if cell.shape == 'answer':
                with sessions[side].cursor() as cur:
                    cur.execute(cell.timed())
                    rows = cur.fetchall()
                # rows that tie may come in any order
                found[side] = (len(rows), [[row[place] for place in cell.places] for row in rows],
                               sorted(map(repr, rows)))
            elif cell.shape == 'cursor':
                rows = self.fetched(sessions[side], cell)[0]
                found[side] = ([tuple(row[place] for place in compared) for row in rows], None, 0)
            else:
                with sessions[side].cursor() as cur:
                    cur.execute(cell.check())
                    found[side] = cur.fetchone()
        good = found['core'] == found['wiscsort'] and (cell.shape == 'answer' or found['core'][2] == 0)
        expected = None
        if cell.reference():
            with sessions['core'].cursor() as cur:
                cur.execute(cell.reference())
                expected = cur.fetchone()
            good = good and expected == found['core'][:2]
        result['correct'] = good
        self.rows = found['core'][0] if cell.shape != 'cursor' else len(found['core'][0])
        if not good:
            raise Refused('a wrong answer: core %.150s, wiscsort %.150s, expected %s'
                          % (found['core'], found['wiscsort'], expected))

    def run(self, conn, cell):
        """(seconds, bytes read from the disk)."""
        before = Bench._disk_reads(conn)
        if cell.shape == 'cursor':
            rows, seconds = self.fetched(conn, cell)
            counts = {len(rows)}
        else:
            with conn.cursor() as cur:
                started = time.perf_counter()
                cur.execute(cell.timed())
                rows = cur.fetchall() if cell.shape == 'answer' else None
                seconds = time.perf_counter() - started
                counts = {len(rows)} if rows is not None else \
                    {max(cur.fetchone())} if cur.description else {cur.rowcount}
                if cell.shape == 'ctas':
                    cur.execute('DROP TABLE made')
        if not cell.sure and cell.shape not in ('copy', 'ctas', 'cursor'):
            counts = {self.rows}
        if counts != {self.rows}:
            raise Refused('a run gave %s rows instead of %s' % (counts, self.rows))
        after = Bench._disk_reads(conn)
        return seconds, 0 if after is None else after - before

    def pair(self, cell, sessions, files, number):
        """Seconds of both sides.  What is cached may not be read from the disk: the pair is run again then."""
        for attempt in range(3):
            seconds, reads = {}, 0
            for side in SIDES if number % 2 == 0 else SIDES[::-1]:
                if cell.cache == 'cold':
                    Bench.drop(files)
                elif cell.cache == 'cached':
                    Bench.touch(cell, files)    # the kernel may drop what was not used for some seconds
                seconds[side], read = self.run(sessions[side], cell)
                reads = max(reads, read)
            if cell.cache != 'cached' or reads <= DISK_READ_NOTE:
                return seconds
        raise Refused('%d MB were read from the disk, although the table is cached' % (reads >> 20))

    def time(self, cell, sessions, files, result, started):
        """The pairs, and beside the first of them what others() has."""
        least = cell.pairs or self.args.pairs
        pairs, others, wanted, compared = [], self.others(cell), least, {}
        while len(pairs) < wanted:
            pairs.append(self.pair(cell, sessions, files, len(pairs)))
            ratios = [pair['core'] / pair['wiscsort'] for pair in pairs]
            if len(pairs) <= OTHER_TIMES:
                for name, seconds in others.items():
                    compared.setdefault(name, []).append(seconds())
            if len(pairs) == least:     # decided once: what the others say must not end them
                little = result['plans'] == 'same' or pairs[0]['core'] < results.SORTED_LEAST \
                    or time.monotonic() - started > LONG_CELL
                median = statistics.median(ratios)
                wanted = least if median >= CLEAR else NOISE_PAIRS if little \
                    else self.args.most if median < 1 else CLOSE_PAIRS
                wanted = max(least, min(wanted, self.args.most))
        result.update(ratios=ratios, ratio=quartiles(ratios), pairs=len(ratios))
        for side in SIDES:
            result[side + '_seconds'] = statistics.median(pair[side] for pair in pairs)
        if others:
            result['others'] = {name: None if None in seconds else round(statistics.median(seconds), 4)
                                for name, seconds in compared.items()}

    def others(self, cell):
        """{name: function that gives seconds, or None} of what the query is compared with beside core."""
        return {}

    def alone(self, cell, files, result):
        """The ratio without jit, with a plan of core that has the shape of WiscSort's: what is the sort's own."""
        ours = self.session(cell, 'wiscsort', jit='off')
        wanted, result['alone'] = shape(self.explain(ours, cell)['Plan'], True), None
        switches = [{}, {'max_parallel_workers_per_gather': '0'}]
        switches += [dict.fromkeys(names, 'off') for number in (1, 2) for names in itertools.combinations(SWITCHES, number)]
        for switch in switches:
            core = self.session(cell, 'core', jit='off', **switch)
            if shape(self.explain(core, cell)['Plan'], True) == wanted:
                sessions = {'core': core, 'wiscsort': ours}
                pairs = [self.pair(cell, sessions, files, number) for number in range(ALONE_PAIRS + 1)][1:]
                ratios = [pair['core'] / pair['wiscsort'] for pair in pairs]
                result.update(alone=statistics.median(ratios), alone_by=', '.join(switch))
                break
            core.close()
        ours.close()

    def measure(self, cell):
        """The result of one cell; 'error' if it failed."""
        result, sessions, started = {}, {}, time.monotonic()
        try:
            self.load(cell)
            files = self.bench.files(self)
            sessions = {side: self.session(cell, side) for side in SIDES}
            sessions['core'].cursor().execute('DROP TABLE IF EXISTS made')
            self.plans(cell, sessions, result)
            self.answers(cell, sessions, result)
            self.time(cell, sessions, files, result, started)
            if self.wants_alone and (result['plans'] == 'other' or 'jit' in result):
                self.alone(cell, files, result)
            result['sort_seconds'] = 0.0
            if result['core_seconds'] > results.SORTED_LEAST:
                plan = self.explain(sessions['core'], cell, 'ANALYZE, TIMING ON, ')['Plan']
                spent = sorting(plan, result['used_wiscsort'] and result['plans'] == 'other')
                # a plan of core that does not sort at all: all of it is compared with a sort
                result['sort_seconds'] = spent if spent is not None else \
                    result['core_seconds'] if result['used_wiscsort'] else 0.0
                result['core'] = {'methods': sorted({node['Sort Method'] for node in plan_nodes(plan)
                                                     if 'Sort Method' in node})}
        except (psycopg2.Error, ClusterError, MemoryGroupError, Refused, OSError) as error:
            end_if_told()
            result['error'] = ' '.join(str(error).split())
        for conn in sessions.values():
            conn.close()
        if self.bench is not None and self.bench.cluster is not None and self.bench.cluster.crashed():
            result['error'] = ('%s (the server crashed)' % result.get('error', '')).strip()
            result['server_log'] = self.bench.cluster.log()[-3000:]
            self.close()
        return result
