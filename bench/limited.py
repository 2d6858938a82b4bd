"""A table for what is measured in a memory cgroup: stale, together, windows."""

import os


def make_table(cluster, options):
    """Makes t of options.rows rows of an int8 and a text of options.width bytes.  No file of it is cached then."""
    cur = cluster.connect().cursor()
    cur.execute('CREATE TABLE t (k int8, v text)')
    cur.execute('ALTER TABLE t ALTER v SET STORAGE PLAIN')
    cur.execute("INSERT INTO t SELECT hashint8extended(i, 1), left(repeat(md5(i::text), %s / 32 + 1), %s)"
                ' FROM generate_series(1, %s) i', (options.width, options.width, options.rows))
    cur.execute('ANALYZE t')
    cur.execute('CHECKPOINT')
    for folder, _, names in os.walk(os.path.join(cluster.data, 'base')):
        for name in names:
            with open(os.path.join(folder, name), 'rb') as f:
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    cur.connection.close()
