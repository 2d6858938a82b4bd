-- Sorts in one pass, in several runs, and in several merge passes.
LOAD 'wiscsort';
SET max_parallel_workers_per_gather = 0;
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;

CREATE TABLE wtest.m (id int NOT NULL, k int8 NOT NULL, s text COLLATE "C", n numeric, pad text);
INSERT INTO wtest.m
SELECT i, hashint8extended(i, 1), CASE WHEN i % 10 > 0 THEN repeat('common prefix ', 2) || md5(i::text) END, (i * 7919 % 1000) / 7.0, repeat('m', i % 90)
  FROM generate_series(1, 20000) i;
ANALYZE wtest.m;

-- One pass: all entries fit in work_mem.
SET work_mem = '64MB';
SELECT * FROM wtest.analyzed('SELECT * FROM wtest.m ORDER BY k');
SELECT method, entries, runs, passes, memory BETWEEN 1 AND 65536 * 1.1 AS memory_in_bounds, disk
  FROM wtest.figures('SELECT * FROM wtest.m ORDER BY k');

-- One pass, with the rows in a temporary file.
SET work_mem = '1MB';
SELECT method, entries, runs, passes, memory BETWEEN 1 AND 1024 * 1.1 AS memory_in_bounds, disk BETWEEN 1000 AND 3000 AS rows_on_disk
  FROM wtest.figures('SELECT * FROM wtest.m ORDER BY k');

-- Merge pass: runs are written and merged.
SET work_mem = '64kB';
SELECT * FROM wtest.analyzed('SELECT * FROM wtest.m ORDER BY k');
SELECT method, entries, runs > 1 AS runs, passes >= 1 AS passes, memory BETWEEN 1 AND 64 * 1.1 AS memory_in_bounds, disk BETWEEN 1000 AND 3500 AS rows_and_runs
  FROM wtest.figures('SELECT * FROM wtest.m ORDER BY k');
SELECT method, entries, runs > 1 AS runs
  FROM wtest.figures('SELECT * FROM wtest.m ORDER BY s DESC, id');
SELECT method, entries, runs > 1 AS runs
  FROM wtest.figures('SELECT * FROM wtest.m ORDER BY n, id');

-- Several merge passes.
SELECT method, entries, runs > 20 AS runs, passes > 1 AS passes, memory BETWEEN 1 AND 64 * 1.1 AS memory_in_bounds
  FROM wtest.figures('SELECT hashint4(i) AS k, i FROM generate_series(1, 300000) i ORDER BY 1');
SELECT method, entries, runs > 20 AS runs, passes > 1 AS passes, memory BETWEEN 1 AND 64 * 1.1 AS memory_in_bounds
  FROM wtest.figures('SELECT (i % 100)::numeric / 3 AS k, i FROM generate_series(1, 100000) i ORDER BY 1, 2 DESC');
SELECT count(*), count(DISTINCT i), bool_and(k >= before) AS ordered
  FROM (SELECT k, i, lag(k, 1, k) OVER () AS before
          FROM (SELECT hashint4(i) AS k, i FROM generate_series(1, 300000) i ORDER BY 1 OFFSET 0) s) t;

-- The rows and their order are core's.
SELECT wtest.compare('SELECT * FROM wtest.m ORDER BY k') AS int8,
       wtest.compare('SELECT * FROM wtest.m ORDER BY k DESC') AS int8_desc,
       wtest.compare('SELECT * FROM wtest.m ORDER BY s, id') AS tails,
       wtest.compare('SELECT * FROM wtest.m ORDER BY s DESC NULLS LAST, id') AS tails_desc,
       wtest.compare('SELECT * FROM wtest.m ORDER BY n DESC, id') AS compared,
       wtest.compare('SELECT * FROM wtest.m ORDER BY s COLLATE "und-x-icu" NULLS FIRST, id DESC') AS icu;
SELECT wtest.compare('SELECT * FROM wtest.m ORDER BY id') AS sorted_already,
       wtest.compare('SELECT * FROM wtest.m ORDER BY id DESC') AS reversed,
       wtest.compare('SELECT id % 3 AS few FROM wtest.m ORDER BY 1') AS few_distinct,
       wtest.compare('SELECT 1 AS one FROM wtest.m ORDER BY id * 0') AS one_value,
       wtest.compare('SELECT * FROM wtest.m ORDER BY id / 100, s DESC, k') AS nearly_sorted;

-- Two sorts at once, one over the other, and a merge join of two.
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT wtest.compare('SELECT * FROM (SELECT id, k, row_number() OVER (ORDER BY n, k) AS r FROM wtest.m) s ORDER BY r DESC') AS stacked,
       wtest.compare('SELECT a.id, b.s FROM wtest.m a JOIN wtest.m b ON a.k = b.k AND a.s = b.s ORDER BY a.n, a.id') AS joined,
       wtest.compare('SELECT sum(a.id), count(b.id) FROM wtest.m a JOIN wtest.m b ON a.n = b.n WHERE a.id < 2000') AS groups;
RESET enable_hashjoin;
RESET enable_nestloop;

-- The last piece stays in memory beside the merge, sorted by one thread or in two parts by two.
CREATE TABLE wtest.kept AS SELECT i AS id, i::int8 * 7919 % 70001 AS k, nullif(i % 900, 7) AS few, 'the same beginning ' || i * 7919 % 5003 AS t
  FROM generate_series(1, 70000) i;
ANALYZE wtest.kept;
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;
SELECT memory, threads, kernel, o, wtest.compare_as_set(format('SELECT id, k FROM wtest.kept WHERE id <= %s ORDER BY %s', n, o)) AS answer
  FROM (VALUES ('512kB', 70000), ('1MB', 61000)) m(memory, n),
       unnest(ARRAY['0', '1']) threads, unnest(ARRAY['auto', 'template']) kernel,
       unnest(ARRAY['k', 'few DESC, id', 't COLLATE "C", id']) o,
       LATERAL (SELECT set_config('work_mem', memory, false), set_config('wiscsort.sort_threads', threads, false),
                       set_config('wiscsort.sort_kernel', kernel, false) OFFSET 0) s;
-- 70000 entries of 16 bytes would be 1094 kB
SET work_mem = '1MB';
SELECT wtest.property('ANALYZE', 'SELECT k FROM wtest.kept ORDER BY k', 'Disk')::int BETWEEN 1 AND 1090 AS not_all_written;
RESET work_mem;
RESET wiscsort.sort_threads;
RESET wiscsort.sort_kernel;

-- PostgreSQL counts the temporary file: temp_file_limit holds, and nothing is left behind.
SET work_mem = '64kB';
SET temp_file_limit = '500kB';
SELECT wtest.error('SELECT count(pad) FROM (SELECT * FROM wtest.m ORDER BY k OFFSET 0) s');
RESET temp_file_limit;
SELECT wtest.error('SELECT count(pad) FROM (SELECT * FROM wtest.m ORDER BY k OFFSET 0) s');
SELECT count(*) FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql_tmp' || pg_backend_pid() || '.%';
