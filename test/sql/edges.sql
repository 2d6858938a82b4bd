-- Where one byte, one row or one bit decides: what test/mutants found no other test for.
LOAD 'wiscsort';
SET max_parallel_workers_per_gather = 0;
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;
SET wiscsort.record_store = spool;
SET work_mem = '64kB';

-- Rows of about 8191 bytes: from there on the length does not fit the row's header (store/row.h).
SELECT wtest.compare('SELECT i AS id, repeat(''x'', 8140 + i % 80) AS t FROM generate_series(1, 160) i ORDER BY id DESC') AS "8191 bytes";

-- TOAST pointers in rows that the spool builds of values.
CREATE TABLE wtest.toasted (id int, long text);
ALTER TABLE wtest.toasted ALTER long SET STORAGE EXTERNAL;
INSERT INTO wtest.toasted SELECT i, repeat(md5(i::text), 100) FROM generate_series(1, 300) i;
SELECT wtest.compare('SELECT -id AS k, long FROM wtest.toasted ORDER BY k') AS toasted;

-- What a helper has written of a spool counts against temp_file_limit, once it is set, too.
SET work_mem = '1MB';
SET wiscsort.write_threads = 1;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT i % 1009 AS k, repeat('x', 500) AS t FROM generate_series(1, 20000) i ORDER BY k;
MOVE 1 IN c;
SET LOCAL temp_file_limit = '9MB';
SET LOCAL wiscsort.enable = off;
SELECT wtest.error('SELECT count(*) FROM (SELECT i FROM generate_series(1, 200000) i ORDER BY -i OFFSET 0) s');
ROLLBACK;
-- One of 0 is met at the first write, not when all has been written.
CREATE TEMP SEQUENCE edges_read;
SET temp_file_limit = 0;
SELECT wtest.error('SELECT count(t) FROM (SELECT * FROM (SELECT nextval(''edges_read'') AS n, i, repeat(''x'', 500) AS t FROM generate_series(1, 20000) i OFFSET 0) r ORDER BY i % 1009 OFFSET 0) s');
SELECT last_value < 10000 AS early FROM edges_read;
RESET temp_file_limit;
RESET wiscsort.write_threads;
SET work_mem = '64kB';

-- Keys a byte too long for a prefix, and numerics that differ behind it.
CREATE TABLE wtest.edges (i8 int8 NOT NULL, i2 int2, n numeric);
INSERT INTO wtest.edges SELECT i % 5, nullif(i * 7 % 1000, 3), 123456789012345678901234567890 + i * 7919 % 3001
  FROM generate_series(1, 3000) i;
ANALYZE wtest.edges;
SELECT wtest.compare('SELECT * FROM wtest.edges ORDER BY i8, i2, n') AS "11 bytes and a numeric",
       wtest.compare('SELECT i8, i2 FROM wtest.edges ORDER BY i8, i2') AS "11 bytes",
       wtest.compare('SELECT n, i2 FROM wtest.edges ORDER BY n') AS "numeric";

-- Numerics that are toasted, packed, of one digit or thousands, of weights that have no byte of their own, and special.
CREATE TABLE wtest.digits (id int, far numeric, packed numeric);
ALTER TABLE wtest.digits ALTER far SET STORAGE EXTERNAL;
INSERT INTO wtest.digits
SELECT i, (CASE WHEN i % 2 = 0 THEN '-' ELSE '' END || repeat('1234567890', 900 + i % 3) || i % 7 || '.' || repeat('05', 50))::numeric,
       CASE WHEN i % 3 = 0 THEN repeat('10', 3000 + i % 2)::numeric + i % 5
            WHEN i % 3 = 1 THEN (i % 9 - 4) * 10::numeric ^ (i % 600 - 300)
            ELSE ('{NaN, Infinity, -Infinity, 0, 0.000, 1, 1.0, -1, 1e248, 1e-244, 1e244, 1e-248}'::numeric[])[1 + i % 12] END
  FROM generate_series(1, 600) i;
INSERT INTO wtest.digits SELECT i, NULL, NULL FROM generate_series(601, 610) i;
SELECT pg_column_size(far) > 4000 AS far, pg_relation_size(reltoastrelid) > 0 AS toasted
  FROM pg_class, wtest.digits WHERE oid = 'wtest.digits'::regclass AND id = 1;
SELECT wtest.compare('SELECT * FROM wtest.digits ORDER BY far, id') AS far,
       wtest.compare('SELECT * FROM wtest.digits ORDER BY far DESC NULLS LAST, packed, id') AS "far, packed",
       wtest.compare('SELECT * FROM wtest.digits ORDER BY packed NULLS FIRST, id') AS packed,
       wtest.compare('SELECT * FROM wtest.digits ORDER BY packed DESC, far, id') AS "packed, far";

-- A text that is guessed at, behind a numeric of seven bytes: what the prefix has of the guess has to be verified.
CREATE TABLE wtest.behind (id int, n numeric NOT NULL, s text COLLATE "en-x-icu" NOT NULL);
INSERT INTO wtest.behind
SELECT i, 100000.01 + i % 100, CASE i WHEN 1000 THEN U&'item-\0436' WHEN 15000 THEN 'Zebra' ELSE 'item-' || md5(i::text) END
  FROM generate_series(1, 15000) i;
ANALYZE wtest.behind;
SELECT wtest.compare('SELECT * FROM wtest.behind ORDER BY n, s') AS "numeric, guess",
       wtest.compare('SELECT * FROM wtest.behind ORDER BY n DESC, s DESC') AS "both DESC";

-- Every block of a run that is read counts, and once.
SET wiscsort.record_store = heap;
SELECT wtest.property('ANALYZE, TIMING OFF, BUFFERS', 'SELECT k FROM wtest.big ORDER BY k', 'Temp Read Blocks')::int BETWEEN 15 AND 100 AS counted;

-- Rows with equal keys stay in arrival order, whoever settles the tie.
CREATE TABLE wtest.alike AS
  SELECT i AS id, (lpad((i % 1000)::text, 10, '0') || repeat('x', 20)) COLLATE "C" AS few,
         (repeat('y', 12) || i % 40) COLLATE "C" AS many, 123456789012345678901234567890 + i % 7 AS n
    FROM generate_series(1, 3000) i;
ANALYZE wtest.alike;
CREATE FUNCTION wtest.out_of_arrival(key text) RETURNS TABLE (low bigint, high bigint)
LANGUAGE plpgsql AS $$
DECLARE
    query text := format('SELECT count(*) FROM (SELECT k, id, lag(k) OVER () AS k1, lag(id) OVER () AS id1 FROM
        (SELECT %s AS k, id FROM wtest.alike ORDER BY %s OFFSET 0) s) t WHERE k = k1 AND id < id1', key, key);
BEGIN
    SET LOCAL work_mem = '64kB';
    EXECUTE query INTO low;
    SET LOCAL work_mem = '4MB';
    EXECUTE query INTO high;
    RETURN NEXT;
END $$;
SELECT k, a.* FROM unnest(ARRAY['few', 'many', 'n', 'many COLLATE "und-x-icu"']) k, wtest.out_of_arrival(k) a;

-- Nulls that tie, in a column that its comparator orders.
SELECT wtest.compare('SELECT id, few, CASE WHEN id % 3 > 0 THEN n END AS n FROM wtest.alike ORDER BY 3, 2, 1') AS nulls;

-- Sorted again although no parameter of the input has changed: the one that has is above the sort.
SELECT wtest.compare('SELECT x, s.* FROM generate_series(1, 3) x CROSS JOIN LATERAL (SELECT * FROM (SELECT id, k FROM wtest.big WHERE id <= 2000 ORDER BY k, id OFFSET 0) b WHERE b.id % 3 < x OFFSET 0) s') AS again;

-- Volatile columns that look the same are two, and an OFFSET counts among the rows that a LIMIT asks for.
SELECT wtest.uses('SELECT random() AS a, random() AS b FROM wtest.big ORDER BY 1, 2') AS used, count(*) > 0 AS two
  FROM (SELECT random() AS a, random() AS b FROM wtest.big ORDER BY 1, 2 OFFSET 0) s WHERE a <> b;
-- Also where a query outside labels them in another way.
SELECT wtest.uses('SELECT a, b FROM (SELECT random() AS a, random() AS b FROM wtest.big ORDER BY 2, 1) s ORDER BY a') AS used, count(*) = 0 AS two
  FROM (SELECT a, b FROM (SELECT random() AS a, random() AS b FROM wtest.big ORDER BY 2, 1) s ORDER BY a OFFSET 0) t WHERE a = b;
SELECT wtest.uses('SELECT id + 1 AS x FROM (SELECT id FROM wtest.big OFFSET 0) s ORDER BY x LIMIT 10 OFFSET 10000') AS many,
       wtest.uses('SELECT id + 1 AS x FROM (SELECT id FROM wtest.big OFFSET 0) s ORDER BY x LIMIT 10 OFFSET 10') AS few;

-- A column that is NOT NULL in its partition, and null above an outer join of partitions.
CREATE TABLE wtest.sides (k int NOT NULL, x int NOT NULL) PARTITION BY LIST (k);
CREATE TABLE wtest.sides_1 PARTITION OF wtest.sides FOR VALUES IN (1);
CREATE TABLE wtest.sides_2 PARTITION OF wtest.sides FOR VALUES IN (2);
INSERT INTO wtest.sides SELECT 1 + i % 2, i FROM generate_series(1, 2000) i;
ANALYZE wtest.sides;
SET enable_partitionwise_join = on;
SET enable_partitionwise_aggregate = on;
SET enable_hashagg = off;
SELECT wtest.compare('SELECT a.k, b.x, count(DISTINCT a.x) FROM wtest.sides a LEFT JOIN wtest.sides b ON a.k = b.k AND a.x = 2 * b.x GROUP BY a.k, b.x ORDER BY 1, 2') AS partitionwise,
       wtest.compare('SELECT DISTINCT a.x, b.x FROM wtest.sides a FULL JOIN wtest.sides b ON a.k = b.k AND a.x = b.x + 400 ORDER BY 1, 2') AS full_join;
RESET enable_partitionwise_join;
RESET enable_partitionwise_aggregate;
RESET enable_hashagg;

-- Rows of two columns of which one is the key, and the other is equal to it.
SET wiscsort.record_store = heap;
EXPLAIN (COSTS OFF, VERBOSE) SELECT k, x FROM wtest.sides_1 WHERE k = x ORDER BY k;

-- Helpers that have ended leave their places to others.
SET work_mem = '64kB';
SET wiscsort.record_store = spool;
SET wiscsort.read_threads = 1;
SET wiscsort.max_threads = 2;
SELECT wtest.compare_as_set('SELECT id, pad FROM wtest.big ORDER BY id') AS sorted FROM generate_series(1, 4);
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, pad FROM wtest.big ORDER BY k;
MOVE 1 IN c;
SELECT count(*) > 1 AS helped FROM pg_ls_dir('/proc/' || pg_backend_pid() || '/task');
ROLLBACK;
RESET wiscsort.read_threads;
RESET wiscsort.max_threads;

-- Texts on their way to a helper that makes their keys: a block of them is full before its rows are.
SET work_mem = '4MB';
SET wiscsort.sort_threads = 1;
CREATE TABLE wtest.long_texts AS SELECT i AS id, left(repeat(md5((i % 997)::text), 32), 700 + i % 320) AS t FROM generate_series(1, 6000) i;
ALTER TABLE wtest.long_texts ALTER t SET STORAGE PLAIN;
ANALYZE wtest.long_texts;
SELECT wtest.compare_as_set('SELECT id, left(t, 40) FROM wtest.long_texts ORDER BY t COLLATE "und-x-icu", id') AS long_texts;
RESET wiscsort.sort_threads;

-- The end of a cursor that has been there is forgotten by one that starts over.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, k FROM wtest.e ORDER BY k;
MOVE FORWARD ALL IN c;
FETCH ABSOLUTE 2 FROM c;
FETCH PRIOR FROM c;
COMMIT;

-- A sort that may keep its rows for a rescan, but whose input changes; and one that may not, whose input stays.
SET enable_material = off;
SELECT x, (SELECT string_agg(y || ':' || coalesce(s.id, 0), ' ') FROM (VALUES (1), (2)) v(y)
             LEFT JOIN (SELECT id FROM wtest.e WHERE k < x ORDER BY k OFFSET 0) s ON true) FROM generate_series(0, 3) x;
SELECT x, s.* FROM (VALUES (1), (2), (3)) v(x)
  CROSS JOIN LATERAL (SELECT * FROM (SELECT id, k FROM wtest.e ORDER BY k OFFSET 0) t WHERE t.id <= x OFFSET 0) s;
RESET enable_material;

-- Keys that begin with as many ones as the entry that stands for the end of a run.
CREATE TABLE wtest.high (b bytea NOT NULL, id int);
INSERT INTO wtest.high SELECT decode(repeat('ff', 10 + i % 3), 'hex'), i FROM generate_series(1, 9000) i;
ANALYZE wtest.high;
SELECT wtest.compare('SELECT * FROM wtest.high ORDER BY b, id') AS high;

-- Columns that are a byte too long for rows that are made of their keys.
RESET wiscsort.record_store;
SELECT wtest.compare('SELECT i8, i2 FROM wtest.edges ORDER BY i8, i2') AS "11 bytes";

-- The file of a level of runs is used again once they have been merged.
SET work_mem = '64kB';
CREATE TABLE wtest.levels AS SELECT hashint4(i) AS k FROM generate_series(1, 400000) i;
ANALYZE wtest.levels;
SELECT wtest.property('ANALYZE, TIMING OFF', 'SELECT k FROM wtest.levels ORDER BY k', 'Disk')::int < 1.4 * 400000 * 16 / 1024 AS used_again;
DROP TABLE wtest.levels;

-- Keys that differ behind their prefixes, in several runs of which all fit into memory at once.
SET work_mem = '256kB';
SELECT wtest.compare_as_set('SELECT s.id, a.many FROM wtest.alike a, generate_series(1, 10) s(id) ORDER BY a.many, s.id') AS gathered;

-- Constants that are grouped by, and are null in some grouping sets.
SET work_mem = '64kB';
CREATE TABLE wtest.sets AS SELECT i AS k FROM generate_series(1, 20000) i;
ANALYZE wtest.sets;
SELECT wtest.compare($$SELECT k, 'all'::text AS lit, 'all'::text AS other, count(*) FROM wtest.sets
  GROUP BY GROUPING SETS ((k, 2), (k), (2)) ORDER BY count(*), k, grouping('all'::text)$$) AS constants_of_sets;
SELECT wtest.compare($$SELECT lit, row_number() OVER (ORDER BY k, g) AS n, k FROM
  (SELECT k, 'x'::text AS lit, grouping('x'::text) AS g FROM wtest.sets GROUP BY CUBE (k, 2)) s ORDER BY n$$) AS constants_in_windows;
SELECT wtest.compare($$SELECT * FROM (SELECT k AS a, k AS b, count(*) FROM wtest.sets
  GROUP BY GROUPING SETS ((a), (b)) ORDER BY count(*) OFFSET 0) s ORDER BY a, b$$) AS one_column_twice;
SELECT wtest.compare($$SELECT * FROM (SELECT k % 7000 AS a, k % 7000 AS b, max(k) FROM wtest.sets
  GROUP BY ROLLUP (1, 2) ORDER BY 3 OFFSET 0) s ORDER BY a, b$$) AS one_expression_twice;
CREATE VIEW wtest.sets_view AS SELECT k, 'all'::text AS lit, count(*) AS c FROM wtest.sets
  GROUP BY GROUPING SETS ((k, 2), (k)) ORDER BY c, k;
CREATE TABLE wtest.sets_kept AS SELECT * FROM wtest.sets_view;
INSERT INTO wtest.sets_kept SELECT k, 'all'::text, count(*) FROM wtest.sets
  GROUP BY GROUPING SETS ((k, 2), (k)) ORDER BY 3, 1;
SELECT lit, count(*) FROM wtest.sets_kept GROUP BY lit ORDER BY lit;
DROP TABLE wtest.sets_kept;
DROP VIEW wtest.sets_view;
DROP TABLE wtest.sets;
