"""What sorts do to others: pgbench's throughput while another session runs a query again and again, with core's
sort (A) or with WiscSort (B), in the order A B, B A, A B, ...; the first pair is a warm-up.  What bench/neighbour
and bench/tpcc share."""

import re
import subprocess
import threading
import time

import psycopg2

from measure import SIDES


class Sorting:
    """Runs the query in another session until the block ends; `right` says whether it returned what it must."""

    def __init__(self, cluster, side, query, right, settings):
        self.times, self.error, self.query, self.right = [], None, query, right
        self.conn = cluster.connect(**{**settings, 'wiscsort.enable': 'on' if side == 'wiscsort' else 'off'})
        with self.conn.cursor() as cur:
            cur.execute('EXPLAIN ' + query)
            self.plan = '\n'.join(row[0] for row in cur.fetchall())
        self.stopping = False
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            with self.conn.cursor() as cur:
                while not self.stopping:
                    started = time.perf_counter()
                    cur.execute(self.query)
                    found = cur.fetchone()[0]
                    if not self.right(found):
                        raise psycopg2.DataError('a sort returned %d rows' % found)
                    self.times.append(time.perf_counter() - started)
        except psycopg2.extensions.QueryCanceledError:
            pass
        except psycopg2.Error as error:
            self.error = error

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.stopping = True
        self.conn.cancel()
        self.thread.join()
        self.conn.close()


def pgbench(cluster, *options):
    """What pgbench prints."""
    done = subprocess.run([cluster.program('pgbench'), *options], env=cluster.env(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise SystemExit('pgbench: ' + done.stderr[-2000:])
    return done.stdout


def throughput(cluster, clients, seconds, more=()):
    """Transactions a second."""
    out = pgbench(cluster, '-n', '-c', str(clients), '-T', str(seconds), *more)
    failed = re.search(r'failed transactions: ([1-9]\d*)', out)
    if failed:
        raise SystemExit('pgbench: %s transactions failed' % failed.group(1))
    return float(re.search(r'tps = ([0-9.]+)', out).group(1))


def measure(cluster, side, query, right, settings, rate):
    """One measurement; `rate` gives transactions a second."""
    with Sorting(cluster, side, query, right, settings) as sorting:
        time.sleep(0.5)
        tps = rate()
    if sorting.error:
        raise sorting.error
    if ('WiscSort' in sorting.plan) != (side == 'wiscsort'):
        raise SystemExit('not the plan of %s:\n%s' % (side, sorting.plan))
    return {'tps': tps, 'sorts': len(sorting.times),
            'sort_seconds': round(sum(sorting.times) / max(len(sorting.times), 1), 4)}


def measure_pairs(cluster, query, right, settings, number_of_pairs, rate, pairs):
    """Fills the list of pairs; gives the throughput alone, before them."""
    alone = rate()
    print('alone: %.0f transactions a second' % alone, flush=True)
    for number in range(number_of_pairs + 1):
        pair = {'counted': number > 0}
        for side in SIDES if number % 2 == 0 else SIDES[::-1]:
            pair[side] = measure(cluster, side, query, right, settings, rate)
        pair['ratio'] = pair['wiscsort']['tps'] / pair['core']['tps']
        pairs.append(pair)
        print('%s: core %.0f tps, %d sorts; wiscsort %.0f tps, %d sorts; ratio %.2f'
              % ('pair %d' % number if number else 'warm-up', pair['core']['tps'], pair['core']['sorts'],
                 pair['wiscsort']['tps'], pair['wiscsort']['sorts'], pair['ratio']), flush=True)
    return alone
