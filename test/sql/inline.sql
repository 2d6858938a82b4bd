-- Rows that travel inside runs: wiscsort.record_store = inline, and what the page cache may not hold.
LOAD 'wiscsort';
SET max_parallel_workers_per_gather = 0;
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;
SET wiscsort.record_store = inline;
-- whatever the file system can; test/t/beyond.py has the others
SET wiscsort.io_method = sync;

CREATE TABLE wtest.tr (id int NOT NULL, k int8 NOT NULL, few int2, c text COLLATE "C", n numeric, pad text);
INSERT INTO wtest.tr
SELECT i, hashint8extended(i, 3), nullif(i % 7, 3), CASE WHEN i % 11 > 0 THEN 'the same beginning ' || i * 7919 % 5003 END,
       (i * 7919 % 1000) / 7.0, repeat('t', i % 120)
  FROM generate_series(1, 12000) i;
ANALYZE wtest.tr;

-- In memory nothing has to travel.
SET work_mem = '64MB';
SELECT * FROM wtest.analyzed('SELECT * FROM wtest.tr ORDER BY k');
SET work_mem = '256kB';
SELECT * FROM wtest.analyzed('SELECT * FROM wtest.tr ORDER BY k');
SELECT memory BETWEEN 100 AND 256 * 1.2 AS memory_in_bounds, disk BETWEEN 1000 AND 2400 AS disk_in_bounds, runs > 3 AS runs, passes
  FROM wtest.figures('SELECT * FROM wtest.tr ORDER BY k');
-- In several passes, blocks are used again: the disk holds each row once, and little more.
SET work_mem = '64kB';
SELECT disk BETWEEN 1000 AND 2400 AS disk_in_bounds, runs > 20 AS runs, passes > 1 AS passes
  FROM wtest.figures('SELECT * FROM wtest.tr ORDER BY k');

-- Rows wait, and all of them travel once the page cache is said to hold no more.
SET wiscsort.record_store = auto;
SET wiscsort.cache_size = '300kB';
SELECT * FROM wtest.analyzed('SELECT * FROM wtest.tr ORDER BY k');
SELECT wtest.property('ANALYZE, VERBOSE', 'SELECT * FROM wtest.tr ORDER BY k', 'Cache Size') AS size,
       wtest.property('ANALYZE, VERBOSE', 'SELECT * FROM wtest.tr ORDER BY k', 'Cache Bound') AS bound;
SET wiscsort.cache_size = -1;
SELECT wtest.property('ANALYZE, VERBOSE', 'SELECT * FROM wtest.tr ORDER BY k', 'Record Store') AS store,
       wtest.property('ANALYZE, VERBOSE', 'SELECT * FROM wtest.tr ORDER BY k', 'Cache Bound')
         IN ('effective_cache_size', 'memory available', 'memory cgroup', 'limit on address space') AS bound;
SET effective_cache_size = '256kB';
SELECT wtest.property('ANALYZE, VERBOSE', 'SELECT * FROM wtest.tr ORDER BY k', 'Record Store') AS store,
       wtest.property('ANALYZE, VERBOSE', 'SELECT * FROM wtest.tr ORDER BY k', 'Cache Size') AS size,
       wtest.property('ANALYZE, VERBOSE', 'SELECT * FROM wtest.tr ORDER BY k', 'Cache Bound') AS bound;
RESET effective_cache_size;
SET wiscsort.record_store = spool;
SELECT wtest.property('ANALYZE', 'SELECT * FROM wtest.tr ORDER BY k', 'Record Store') AS store;

-- The rows and their order are core's, for keys of every kind, with and without helpers.
SELECT memory, store, cache, threads, o, wtest.compare_as_set('SELECT * FROM wtest.tr ORDER BY ' || o) AS answer
  FROM unnest(ARRAY['64kB', '512kB']) memory, (VALUES ('inline', '-1'), ('auto', '200kB')) s(store, cache),
       unnest(ARRAY['0', '1']) threads,
       unnest(ARRAY['k', 'few DESC NULLS FIRST, c, id', 'c DESC, id', 'n, id', 'c COLLATE "und-x-icu", id', 'id % 3, id DESC']) o,
       LATERAL (SELECT set_config('work_mem', memory, false), set_config('wiscsort.record_store', store, false),
                       set_config('wiscsort.cache_size', cache, false), set_config('wiscsort.read_threads', threads, false),
                       set_config('wiscsort.sort_threads', threads, false), set_config('wiscsort.write_threads', threads, false) OFFSET 0) x
 WHERE threads = '1' OR memory = '64kB'
 ORDER BY memory, store, threads, o;
SET wiscsort.record_store = inline;
SET work_mem = '64kB';
-- Rows that are larger than a block, than a batch, and than all of the memory.
SELECT wtest.compare('SELECT id, CASE WHEN id % 50 = 0 THEN repeat(''long'', id * 7 % 20000) ELSE pad END AS t FROM wtest.tr WHERE id < 3000 ORDER BY k') AS long,
       wtest.compare('SELECT id, repeat(chr(65 + id % 26), 300000) AS t FROM wtest.tr WHERE id < 20 ORDER BY k') AS longer,
       wtest.compare('SELECT id, repeat(''x'', 8100 + id) AS t FROM wtest.tr WHERE id < 200 ORDER BY k') AS "8191 bytes",
       wtest.compare('SELECT repeat(''y'', id * 13 % 9000) AS t, id FROM wtest.tr WHERE id < 1000 ORDER BY 1, 2') AS long_keys;
-- Key-only rows, rows without columns that count, joins and rescans.
SELECT wtest.compare('SELECT k FROM wtest.tr ORDER BY k') AS keys,
       wtest.compare('SELECT NULL::int AS a FROM wtest.tr ORDER BY k') AS nulls,
       wtest.compare('SELECT a.id, b.c FROM wtest.tr a JOIN wtest.tr b ON a.k = b.k ORDER BY a.n, a.id') AS joined,
       wtest.compare('SELECT x, s.id FROM generate_series(1, 3) x CROSS JOIN LATERAL (SELECT id FROM wtest.tr WHERE few < x ORDER BY k OFFSET 0) s') AS again;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT wtest.compare('SELECT count(*), sum(a.id::int8 * b.id) FROM wtest.tr a JOIN wtest.tr b ON a.n = b.n AND a.few <= b.few') AS marked;
RESET enable_hashjoin;
RESET enable_nestloop;

-- Cursors in every direction.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM wtest.tr ORDER BY k;
FETCH LAST FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ABSOLUTE 6000 FROM c;
FETCH RELATIVE -1 FROM c;
FETCH ABSOLUTE 1 FROM c;
FETCH PRIOR FROM c;
FETCH NEXT FROM c;
MOVE ALL IN c;
FETCH BACKWARD 1 FROM c;
ROLLBACK;
SELECT * FROM wtest.there_and_back('SELECT id, pad FROM wtest.tr ORDER BY k');

-- A spool that becomes a run when there are more runs of entries than one merge can take.
SET wiscsort.record_store = auto;
SET wiscsort.sort_threads = 0;
SET wiscsort.write_threads = 0;
SELECT c, rows, sum, unordered
  FROM unnest(ARRAY['2600kB', '2800kB', '2900kB', '3000kB']) c,
       LATERAL (SELECT set_config('wiscsort.cache_size', c, false) OFFSET 0) x,
       LATERAL (SELECT count(*) AS rows, sum(i), count(*) FILTER (WHERE k < before) AS unordered
                  FROM (SELECT k, i, lag(k) OVER () AS before
                          FROM (SELECT hashint4(i) AS k, i FROM generate_series(1, 200000 + 0 * length(set_config)) i ORDER BY 1 OFFSET 0) s) t) y;
RESET wiscsort.sort_threads;
RESET wiscsort.write_threads;
SET wiscsort.cache_size = -1;
SET wiscsort.record_store = inline;

-- One row of megabytes in front of short ones: how memory is divided between rows and entries is not its length alone.
SET work_mem = '4MB';
SELECT wtest.property('ANALYZE', $$SELECT k, v FROM (SELECT 0 AS k, repeat('x', 5000000) AS v UNION ALL
  SELECT hashint4(i), 'y' FROM generate_series(1, 100000) i OFFSET 0) s ORDER BY k$$, 'Runs')::int < 30 AS few_runs;
SET work_mem = '64kB';

-- temp_file_limit is met as the rows are written.
SET temp_file_limit = '500kB';
SELECT wtest.error('SELECT count(pad) FROM (SELECT * FROM wtest.tr ORDER BY k OFFSET 0) s');
RESET temp_file_limit;
SELECT count(pad) FROM (SELECT * FROM wtest.tr ORDER BY k OFFSET 0) s;
-- Bad values.
SELECT wtest.error('SET wiscsort.cache_size = -2'), wtest.error('SET wiscsort.record_store = ''in line''');
DROP TABLE wtest.tr;
