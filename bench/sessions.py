"""Sessions that work at the same time: bench/parallel, and what else wants it."""

import os
import sys
import threading
import time

import psycopg2

TICKS = os.sysconf('SC_CLK_TCK')


class Running:
    """The server that the environment names."""

    def __init__(self):
        self.database = os.environ.get('PGDATABASE', 'postgres')

    def connect(self):
        conn = psycopg2.connect(dbname=self.database)
        conn.autocommit = True
        return conn


def execute(server, *statements):
    conn = server.connect()
    with conn.cursor() as cur:
        for statement in statements:
            cur.execute(statement)
        found = cur.fetchall() if cur.description else None
    conn.close()
    return found


class Sessions:
    def __init__(self, server, number):
        self.conns = [server.connect() for _ in range(number)]
        self.pids = [conn.info.backend_pid for conn in self.conns]

    def set(self, settings):
        for conn in self.conns:
            with conn.cursor() as cur:
                cur.execute('RESET ALL')
                for item in settings.items():
                    cur.execute('SELECT set_config(%s, %s, false)', item)

    def close(self):
        for conn in self.conns:
            conn.close()

    def fetch(self, query, session=0):
        with self.conns[session].cursor() as cur:
            cur.execute(query)
            return cur.fetchone()

    def cpu(self):
        """Seconds of processors: of the sessions, and of the workers that have come to their end."""
        def fields(pid):
            with open('/proc/%d/stat' % pid) as f:
                return f.read().rsplit(')', 1)[1].split()
        found = [fields(pid) for pid in self.pids]
        workers = fields(int(found[0][1]))
        return (sum(int(one[11]) + int(one[12]) for one in found) + int(workers[13]) + int(workers[14])) / TICKS

    def run(self, work):
        """work(session) in all of them: (seconds until the last one is done, seconds of processors)."""
        problems = []

        def one(session):
            try:
                work(session)
            except Exception as error:
                problems.append(str(error))
        threads = [threading.Thread(target=one, args=(session,)) for session in range(len(self.conns))]
        before, begin = self.cpu(), time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - begin
        if problems:
            sys.exit('sessions at once: ' + '; '.join(problems))
        time.sleep(0.05)                # workers are waited for by the postmaster
        return seconds, self.cpu() - before
