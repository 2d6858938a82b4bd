-- Cases that once went wrong, or would in an implementation only a little different.
LOAD 'wiscsort';
SET max_parallel_workers_per_gather = 0;
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;

-- Equal volatile columns are columns of their own.
CREATE TEMP SEQUENCE corner_seq;
SELECT wtest.uses('SELECT nextval(''corner_seq'') a, nextval(''corner_seq'') b FROM generate_series(1, 1000) ORDER BY a, b') AS used;
SELECT bool_and(b = a + 1) AS two_columns, count(*)
  FROM (SELECT nextval('corner_seq') a, nextval('corner_seq') b FROM generate_series(1, 1000) ORDER BY a, b) s;
SELECT bool_and(a <> b) AS two_columns, count(*)
  FROM (SELECT DISTINCT random() a, random() b FROM generate_series(1, 1000) OFFSET 0) s;

-- A row of nulls at the very end of the spool, where its data would begin.
SET work_mem = '64kB';
CREATE TEMP TABLE corner_nulls AS SELECT NULL::int4 AS a, NULL::text AS b FROM generate_series(1, 20000);
INSERT INTO corner_nulls SELECT i, repeat('b', i % 7) FROM generate_series(1, 20000) i;
INSERT INTO corner_nulls SELECT NULL, NULL FROM generate_series(1, 5000);
SELECT count(*), count(a), count(b), sum(a) FROM (SELECT * FROM corner_nulls ORDER BY b DESC, a OFFSET 0) s;

-- Rows larger than every buffer, between small ones.
SELECT count(*), sum(length(pad)), bool_and(g >= before) AS sorted
  FROM (SELECT g, pad, lag(g, 1, g) OVER () AS before
          FROM (SELECT (g * 7919) % 500 AS g, repeat('x', CASE WHEN g % 50 = 0 THEN 300000 ELSE g % 90 END) AS pad
                  FROM generate_series(1, 500) g ORDER BY 1 OFFSET 0) s) w;
-- The same with a helper that writes them: a large row is in memory when the file begins, and others come while it is written.
SET wiscsort.write_threads = 1;
SELECT count(*), sum(length(pad)), bool_and(g >= before) AS sorted
  FROM (SELECT g, pad, lag(g, 1, g) OVER () AS before
          FROM (SELECT (g * 7919) % 500 AS g, repeat('x', CASE WHEN g % 50 = 0 THEN 300000 ELSE g % 90 END) AS pad
                  FROM generate_series(1, 500) g ORDER BY 1 OFFSET 0) s) w;
RESET wiscsort.write_threads;

-- Random access over more than one piece of the IndexMap needs no disk if memory is enough.
SET work_mem = '400MB';
SET temp_file_limit = 0;
BEGIN;
DECLARE corner SCROLL CURSOR FOR SELECT (i * 7919) % 2200001 AS k FROM generate_series(0::int8, 2200000) i ORDER BY 1;
FETCH ABSOLUTE 2200000 FROM corner;
FETCH RELATIVE -1000000 FROM corner;
FETCH FIRST FROM corner;
FETCH LAST FROM corner;
COMMIT;
RESET temp_file_limit;

-- Rows that take memory beyond the last step of growth.
SET work_mem = '64MB';
SELECT count(*), sum(length(pad)) FROM
  (SELECT g, repeat(chr(65 + g % 26), 3000000) AS pad FROM generate_series(1, 60) g ORDER BY g DESC OFFSET 0) s;
