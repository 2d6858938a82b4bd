-- What an executor node has to survive: rescans, mark and restore, early ends, row locks, errors.
LOAD 'wiscsort';
SET max_parallel_workers_per_gather = 0;
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;
SET work_mem = '64kB';

-- Rescans: the same sort again, and one with other parameters.
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SELECT x, array_agg(id) FROM (VALUES (1), (2), (3)) v(x)
  CROSS JOIN LATERAL (SELECT id FROM wtest.e WHERE k < 4 ORDER BY k OFFSET 0) s GROUP BY x ORDER BY x;
SELECT x, array_agg(id) FROM (VALUES (1), (5), (1), (NULL), (3)) v(x)
  CROSS JOIN LATERAL (SELECT id FROM wtest.e WHERE k < x ORDER BY k DESC OFFSET 0) s GROUP BY x ORDER BY x;
SELECT x, (SELECT array_agg(id) FROM (SELECT id FROM wtest.e WHERE k = x OR k = x + 50 ORDER BY id DESC) s)
  FROM generate_series(0, 3) x;
SELECT x, ARRAY(SELECT id FROM wtest.e WHERE k < x ORDER BY k % x, id) FROM generate_series(1, 4) x;
SELECT x FROM generate_series(0, 4) x WHERE 38 = ANY (SELECT k FROM (SELECT k FROM wtest.e ORDER BY id + x OFFSET x) s);
SELECT wtest.compare('SELECT x, id FROM generate_series(1, 5) x CROSS JOIN LATERAL (SELECT id FROM wtest.big WHERE k % 7 < x ORDER BY k, id OFFSET 0) s') AS changed,
       wtest.compare('SELECT x, id FROM generate_series(1, 5) x CROSS JOIN LATERAL (SELECT id FROM wtest.big ORDER BY k, id OFFSET 0) s') AS unchanged,
       wtest.compare('SELECT x, y, id FROM generate_series(1, 3) x CROSS JOIN LATERAL (SELECT y, t.id FROM generate_series(1, 3) y CROSS JOIN LATERAL (SELECT id FROM wtest.e WHERE k % 3 < x AND id % 5 < y ORDER BY k, id OFFSET 0) t ORDER BY y DESC, t.id OFFSET 0) s') AS nested;
-- Some of them find no rows: at first, between others, twice, and at last.
SELECT wtest.compare('SELECT x, id FROM unnest(ARRAY[-1, 5, -1, -1, NULL, 3, 5, -1]) x CROSS JOIN LATERAL (SELECT id FROM wtest.big WHERE k % 7 < x ORDER BY k, id OFFSET 0) s') AS no_rows,
       wtest.compare('SELECT x, y, id FROM unnest(ARRAY[5, -1, 3]) x CROSS JOIN LATERAL (SELECT y, t.id FROM generate_series(1, 2) y CROSS JOIN LATERAL (SELECT id FROM wtest.e WHERE k % 7 < x ORDER BY k, id OFFSET 0) t OFFSET 0) s') AS again_none,
       wtest.compare('SELECT x, ARRAY(SELECT id FROM wtest.big WHERE k % 7 < x ORDER BY k DESC, id OFFSET 100) FROM unnest(ARRAY[5, -1, 3, -1, 6]) x') AS arrays;
-- Where there are none, the input is not read again for the same parameters.
CREATE SEQUENCE wtest.looked;
SELECT count(id), count(*) FROM unnest(ARRAY[5, -1]) x CROSS JOIN LATERAL (SELECT y, t.id FROM generate_series(1, 20) y LEFT JOIN LATERAL (SELECT id FROM wtest.big WHERE id <= 500 AND (x > 0 OR (id = 1 AND nextval('wtest.looked') < 0)) ORDER BY k, id OFFSET 0) t ON true OFFSET 0) s;
SELECT last_value AS looked FROM wtest.looked;
RESET enable_material;
RESET enable_mergejoin;
RESET enable_memoize;

-- Mark and restore: a merge join whose inner side has duplicates, longer than a run.
SET enable_nestloop = off;
SET enable_material = off;
SELECT wtest.compare('SELECT count(*), sum(a.id::int8 * b.id) FROM wtest.e a JOIN wtest.e b ON a.k / 10 = b.k / 10') AS groups,
       wtest.compare('SELECT count(*), sum(a.id::int8 * b.id) FROM wtest.e a JOIN wtest.big b ON a.k % 2 = b.id % 2') AS long_groups,
       wtest.compare('SELECT a.id AS a, b.id AS b FROM wtest.e a LEFT JOIN wtest.big b ON a.k = b.id / 3 AND a.id % 2 = b.id % 2 ORDER BY a.id, b.id') AS left_join,
       wtest.compare('SELECT count(*), sum(a.id), sum(b.id) FROM wtest.e a FULL JOIN wtest.big b ON a.k = b.id / 3') AS full_join;
RESET enable_material;
SELECT wtest.compare('SELECT count(*), sum(a.id::int8 * b.id) FROM wtest.e a JOIN wtest.big b ON a.k % 2 = b.id % 2') AS long_groups;
RESET enable_nestloop;
RESET enable_hashjoin;

-- Prepared statements, planned once.
SET plan_cache_mode = force_generic_plan;
PREPARE p (int) AS SELECT id, k FROM wtest.e WHERE k < $1 ORDER BY k;
EXECUTE p (3);
EXECUTE p (0);
EXECUTE p (2);
PREPARE l (int8, int8) AS SELECT id FROM wtest.e ORDER BY k LIMIT $1 OFFSET $2;
EXECUTE l (2, 0);
EXECUTE l (2, 98);
EXECUTE l (0, 1);
EXECUTE l (NULL, 97);
SET wiscsort.enable = off;
EXECUTE p (2);
SET wiscsort.enable = on;
DEALLOCATE p;
DEALLOCATE l;
RESET plan_cache_mode;

-- LIMIT, OFFSET and WITH TIES.
SELECT wtest.compare('SELECT * FROM (SELECT id FROM wtest.big ORDER BY k, id LIMIT 7000) s ORDER BY id') AS limited,
       wtest.compare('SELECT id FROM (SELECT id, k FROM wtest.big ORDER BY k, id OFFSET 7990) s ORDER BY id') AS "offset",
       wtest.compare('SELECT id FROM (SELECT id, k / 100000000 AS c FROM wtest.big ORDER BY k / 100000000 FETCH FIRST 3000 ROWS WITH TIES) s ORDER BY id') AS with_ties;
SELECT count(*) FROM (SELECT 1 FROM wtest.big ORDER BY k OFFSET 8000) s;
SELECT EXISTS (SELECT 1 FROM wtest.big ORDER BY k OFFSET 10);

-- Row locks.
BEGIN;
SELECT id, k FROM wtest.e WHERE k < 3 ORDER BY k FOR UPDATE;
SELECT id, k FROM wtest.e WHERE k < 3 ORDER BY k DESC FOR SHARE SKIP LOCKED;
SELECT e.id, s.id FROM wtest.e JOIN (SELECT id, k FROM wtest.big WHERE id < 4 ORDER BY k OFFSET 0) s ON e.id = s.id ORDER BY e.k FOR NO KEY UPDATE OF e NOWAIT;
SELECT count(*) FROM (SELECT id FROM wtest.big ORDER BY k FOR KEY SHARE) s;
ROLLBACK;

-- Changes fed by a sort.
BEGIN;
UPDATE wtest.e SET pad = s.n::text FROM (SELECT id, row_number() OVER (ORDER BY k, id) AS n FROM wtest.e) s WHERE s.id = e.id;
SELECT bool_and(pad = n::text) FROM (SELECT pad, row_number() OVER (ORDER BY k, id) AS n FROM wtest.e) s;
DELETE FROM wtest.e WHERE id IN (SELECT id FROM wtest.e ORDER BY k DESC OFFSET 3);
SELECT id, k FROM wtest.e ORDER BY k;
INSERT INTO wtest.e SELECT id + 1000, k FROM wtest.big ORDER BY k;
MERGE INTO wtest.e USING (SELECT id, k FROM wtest.big ORDER BY k OFFSET 0) s ON e.id = s.id + 1000
  WHEN MATCHED THEN UPDATE SET k = -s.k - 1;
SELECT count(*), count(DISTINCT id) FROM wtest.e;
WITH moved AS (DELETE FROM wtest.e WHERE id > 1000 RETURNING id) SELECT count(*), min(id), max(id) FROM (SELECT id FROM moved ORDER BY id DESC OFFSET 0) s;
CREATE TEMP TABLE ordered AS SELECT id, k FROM wtest.big ORDER BY k, id;
SELECT bool_and(k >= before) FROM (SELECT k, lag(k) OVER (ORDER BY ctid) AS before FROM ordered) s;
ROLLBACK;

-- COPY, and volatile functions once a row.
COPY (SELECT id, k FROM wtest.e WHERE k < 3 ORDER BY k DESC) TO STDOUT;
CREATE TEMP SEQUENCE seq;
SELECT count(DISTINCT n), max(n) FROM (SELECT nextval('seq') AS n, id FROM wtest.big ORDER BY k OFFSET 0) s;
SELECT last_value FROM seq;
SELECT id, generate_series(1, 2) FROM wtest.e WHERE k < 2 ORDER BY k, 2 DESC;

-- Errors below, above and inside savepoints; an open cursor goes on.
SELECT wtest.error('SELECT sum(v) FROM (SELECT 1 / (id - 7000) AS v FROM wtest.big ORDER BY k OFFSET 0) s') AS below,
       wtest.error('SELECT sum(1 / (id - 7000)) FROM (SELECT id FROM wtest.big ORDER BY k OFFSET 0) s') AS above;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT k FROM wtest.big ORDER BY k, id;
MOVE 10 IN c;
SAVEPOINT s;
DECLARE inner_c NO SCROLL CURSOR FOR SELECT k FROM wtest.big ORDER BY k DESC, id;
MOVE 10 IN inner_c;
SELECT 1 / 0;
ROLLBACK TO s;
FETCH 1 FROM inner_c;
ROLLBACK TO s;
FETCH 1 FROM c;
MOVE 7000 IN c;
FETCH 1 FROM c;
COMMIT;
CREATE FUNCTION wtest.with_errors() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    r record;
    seen int := 0;
    failed int := 0;
    before int;
    ordered boolean := true;
BEGIN
    FOR r IN SELECT id, k FROM wtest.big ORDER BY k LOOP
        ordered := ordered AND (before IS NULL OR before <= r.k);
        before := r.k;
        seen := seen + 1;
        BEGIN
            IF r.id % 500 = 0 THEN
                PERFORM 1 / 0 FROM (SELECT id FROM wtest.big ORDER BY pad COLLATE "C", id OFFSET 0) s WHERE id > 10;
            END IF;
        EXCEPTION WHEN division_by_zero THEN
            failed := failed + 1;
        END;
    END LOOP;
    RETURN format('%s rows, %s errors, ordered: %s', seen, failed, ordered);
END $$;
SELECT wtest.with_errors();

-- A sort inside the function that a sort calls for every row.
CREATE FUNCTION wtest.nth(n int) RETURNS int
LANGUAGE sql VOLATILE AS $$ SELECT id FROM (SELECT id, k FROM wtest.e ORDER BY k, id OFFSET 0) s OFFSET n LIMIT 1 $$;
SELECT wtest.compare('SELECT id, wtest.nth(id % 100) AS n FROM wtest.e ORDER BY 2 DESC, id') AS recursive_use;

-- An ORDER BY expression is not evaluated for rows that the join drops.
CREATE TABLE wtest.dividend AS SELECT i AS id, i % 10 AS d FROM generate_series(1, 3000) i;
CREATE TABLE wtest.divisible AS SELECT id FROM wtest.dividend WHERE d <> 0;
ANALYZE wtest.dividend;
ANALYZE wtest.divisible;
SELECT wtest.compare('SELECT x.id, 100 / x.d AS q FROM wtest.dividend x JOIN wtest.divisible y USING (id) ORDER BY 100 / x.d, x.id') AS late_evaluation,
       wtest.compare('SELECT x.id FROM wtest.dividend x JOIN wtest.divisible y USING (id) GROUP BY x.id, 100 / x.d ORDER BY x.id') AS late_grouping,
       wtest.compare('SELECT id, 100 / d AS q FROM wtest.dividend WHERE d <> 0 ORDER BY 2 DESC, 1') AS one_table;

-- UPDATE, DELETE and MERGE of several result relations, through merge joins.
SET enable_hashjoin = off;
SET enable_nestloop = off;
CREATE TABLE wtest.target (id int, n int) PARTITION BY RANGE (id);
CREATE TABLE wtest.target_1 PARTITION OF wtest.target FOR VALUES FROM (0) TO (1000);
CREATE TABLE wtest.target_2 PARTITION OF wtest.target FOR VALUES FROM (1000) TO (9000);
INSERT INTO wtest.target SELECT i, 0 FROM generate_series(1, 2000) i;
CREATE TABLE wtest.source AS SELECT i * 3 AS id, i AS n FROM generate_series(1, 1000) i;
ANALYZE wtest.target;
ANALYZE wtest.source;
UPDATE wtest.target t SET n = s.n FROM wtest.source s WHERE s.id = t.id;
UPDATE wtest.target t SET n = t.n + 1 FROM wtest.source s, wtest.source s2 WHERE s.id = t.id AND s2.n = t.n + s.n;
DELETE FROM wtest.target t USING wtest.source s WHERE s.id = t.id AND s.n % 2 = 0;
MERGE INTO wtest.target t USING wtest.source s ON s.id = t.id
 WHEN MATCHED THEN UPDATE SET n = t.n + 1 WHEN NOT MATCHED THEN INSERT VALUES (s.id, -1);
SELECT count(*), sum(id), sum(n), count(*) FILTER (WHERE n = -1) AS inserted FROM wtest.target;
RESET enable_hashjoin;
RESET enable_nestloop;

-- What a row's header shares with a composite value's (HEAP_IS_DATUM of 15.20)
-- is clear, for every length, whatever the row before it ends with.
DO $$
BEGIN
  FOR n IN 150..280 BY 2 LOOP
    EXECUTE format('CREATE TABLE wtest.header (id int NOT NULL, pad char(%s) NOT NULL, n smallint NOT NULL)', n);
    INSERT INTO wtest.header SELECT i * 7919 % 2003, 'x', -4 FROM generate_series(1, 2000) i;
    IF wtest.compare('SELECT id, pad, n FROM wtest.header ORDER BY id, pad') <> 'same' THEN
      RAISE 'rows differ with char(%)', n;
    END IF;
    DROP TABLE wtest.header;
  END LOOP;
END $$;

-- Rows taken from a scan's page count as the scan's, in statistics and in EXPLAIN.
CREATE FUNCTION wtest.scanned(enable bool, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    tuples int8;
    before int8 := pg_stat_get_xact_tuples_returned('wtest.e'::regclass);
    plan json;
BEGIN
    PERFORM set_config('wiscsort.enable', enable::text, true);
    EXECUTE format('SELECT count(*) FROM (%s OFFSET 0) s', query);
    tuples := pg_stat_get_xact_tuples_returned('wtest.e'::regclass) - before;
    EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
    RETURN format('%s, of which %s', tuples, jsonb_path_query_first(plan::jsonb,
        '$.** ? (@."Node Type" == "Seq Scan")."Actual Rows"')::text::float);
END $$;
SELECT wtest.scanned(true, q) AS ours, wtest.scanned(false, q) AS core
  FROM unnest(ARRAY['SELECT * FROM wtest.e ORDER BY k, id',
                    'SELECT id, k + 1 FROM wtest.e ORDER BY 2, 1',
                    'SELECT * FROM wtest.e WHERE id % 3 = 0 ORDER BY k, id']) q;

-- Columns of fixed width, where they lie in tuples with and without nulls, and of before
-- and after columns were added and dropped.
CREATE TABLE wtest.placed (a int2, gone int4, b int8 NOT NULL, c "char", d uuid, v text, e int4);
INSERT INTO wtest.placed SELECT i % 7, i, hashint8(i), chr(65 + i % 26)::"char", md5(i::text)::uuid, i::text, i % 100
  FROM generate_series(1, 2000) i;
ALTER TABLE wtest.placed DROP gone, ADD f int4 DEFAULT 7, ADD g int8;
INSERT INTO wtest.placed SELECT nullif(i % 7, 3), hashint8(-i), NULL, md5((i % 50)::text)::uuid, NULL, i % 10, i % 9, nullif(i % 5, 0)
  FROM generate_series(1, 2000) i;
ANALYZE wtest.placed;
-- (tuples with missing or dropped columns are projected first; these are not)
CREATE TABLE wtest.placed_whole (a int2, b int8 NOT NULL, c "char", d uuid);
INSERT INTO wtest.placed_whole SELECT i % 7, hashint8(i), chr(65 + i % 26)::"char", md5(i::text)::uuid FROM generate_series(1, 2000) i;
ALTER TABLE wtest.placed_whole ADD g int8;
INSERT INTO wtest.placed_whole SELECT nullif(i % 7, 3), hashint8(-i), nullif(chr(65 + i % 26), 'F')::"char", md5((i % 50)::text)::uuid, nullif(i % 5, 0)
  FROM generate_series(1, 2000) i;
ANALYZE wtest.placed_whole;
SELECT o, wtest.compare('SELECT * FROM wtest.placed_whole ORDER BY ' || o) AS answer
  FROM unnest(ARRAY['b', 'a, b', 'a DESC, c, b', 'd DESC, b', 'c DESC, d, b', 'g, a, b', 'g DESC, d, b']) o;
SELECT o, wtest.compare('SELECT * FROM wtest.placed ORDER BY ' || o) AS answer
  FROM unnest(ARRAY['b', 'a, b', 'a DESC, c, b', 'd DESC, b', 'c, d, b', 'e, b', 'f DESC, b', 'g, f, b', 'g NULLS FIRST, a, b']) o;

-- A cancel that comes while the sort ends leaves no mapping of a deleted file.
CREATE TABLE wtest.wide AS SELECT hashint4(i) AS k, repeat('x', 500) AS v FROM generate_series(1, 20000) i;
ANALYZE wtest.wide;
SET log_temp_files = 0;
SET work_mem = '1MB';			-- the spool is the only file
SET wiscsort.record_store = spool;
DO $$
DECLARE
    r record;
BEGIN
    SELECT pg_cancel_backend(pg_backend_pid()), s.* INTO r FROM (SELECT * FROM wtest.wide ORDER BY k OFFSET 0) s;
    RAISE 'not cancelled';
EXCEPTION WHEN query_canceled THEN
END $$;
RESET log_temp_files;
RESET work_mem;
RESET wiscsort.record_store;
SELECT count(*) FROM regexp_split_to_table(pg_read_file('/proc/' || pg_backend_pid() || '/maps'), E'\\n') line WHERE line LIKE '%pgsql_tmp%';

-- Nothing is left behind.
SELECT count(*) FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql_tmp' || pg_backend_pid() || '.%';
