"""A memory cgroup around a server: less memory than the machine has.

A group of its own below the one that this process is in, of version 1 or 2, whichever has the memory
controller.  Needs root, and a hierarchy that may be written to.  Page cache counts: what a process in the
group is the first to read is charged to it, and reclaimed when the limit is met.
"""

import os
import time

ROOT = '/sys/fs/cgroup'


class MemoryGroupError(Exception):
    """There is no such group to be had here."""


def _own():
    """(the directory of this process's group, the name of its limit's file)."""
    with open('/proc/self/cgroup') as f:
        groups = [line.rstrip('\n').split(':', 2) for line in f]
    for _, controllers, path in groups:
        if 'memory' in controllers.split(','):
            return os.path.join(ROOT, 'memory', path.lstrip('/')), 'memory.limit_in_bytes'
    for number, controllers, path in groups:
        if number == '0' and not controllers:
            return os.path.join(ROOT, path.lstrip('/')), 'memory.max'
    raise MemoryGroupError('there is no memory cgroup')


class MemoryGroup:
    """A group of so many MB, until close()."""

    def __init__(self, megabytes):
        parent, self._limit = _own()
        self.path = os.path.join(parent, 'wiscsort-%d' % os.getpid())
        try:
            os.mkdir(self.path)
            self.limit(megabytes)
        except OSError as error:
            self.close()
            raise MemoryGroupError('a memory cgroup of %d MB: %s' % (megabytes, error))

    def _write(self, name, value):
        with open(os.path.join(self.path, name), 'w') as f:
            f.write(str(value))

    def limit(self, megabytes):
        """Changes how many MB it has."""
        self._write(self._limit, megabytes << 20)

    def add(self, pid):
        """Puts a process into the group, and so its future children."""
        with open('/proc/%d/task/%d/children' % (pid, pid)) as f:
            children = f.read().split()
        self._write('cgroup.procs', pid)
        for process in children:
            try:
                self._write('cgroup.procs', process)
            except ProcessLookupError:
                pass            # it has ended

    def close(self):
        """Removes the group, whose processes must be gone, or be going; True when it is gone."""
        for _ in range(50):
            try:
                os.rmdir(self.path)
            except FileNotFoundError:
                pass
            except OSError:
                time.sleep(0.1)
                continue
            return True
        return False
