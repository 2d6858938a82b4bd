"""A library built of the sources with some lines changed: for test/eager and bench/tracked.

The copy lies outside the tree, and the installed library is not touched.  Lines are told whole; one that is not
there as often as expected ends the program.
"""

import os
import shutil
import subprocess
import sys

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PARTS = ['src', 'Makefile', 'wiscsort.control', 'sql', '.ci']


def copied(place, lines):
    """A copy of the sources with other lines: each (file, line as it is, line as it is to be, how often it is there)."""
    for part in PARTS:
        source, target = os.path.join(TREE, part), os.path.join(place, part)
        if os.path.isdir(source):
            shutil.copytree(source, target, ignore=shutil.ignore_patterns('*.o', '*.d', '*.bc', '__pycache__'))
        else:
            shutil.copy(source, target)
    for name, old, new, *often in lines:
        path = os.path.join(place, name)
        with open(path) as f:
            found = f.read().split('\n')
        if found.count(old) != (often or [1])[0]:
            sys.exit('%s has this line %d times, not %d: %s' % (name, found.count(old), (often or [1])[0], old))
        with open(path, 'w') as f:
            f.write('\n'.join(new if line == old else line for line in found))


def build(place, pg_config, lines):
    """Builds the library in the folder `place`; gives its path."""
    os.chmod(place, 0o755)      # the servers are another user's
    copied(place, lines)
    built = subprocess.run(['make', '-s', '-j2', '-C', place, 'PG_CONFIG=' + pg_config, 'with_llvm=no', 'WERROR=',
                            'wiscsort.so'],
                           text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if built.returncode != 0:
        print(built.stdout)
        sys.exit('a library with other lines does not build')
    return os.path.join(place, 'wiscsort.so')
