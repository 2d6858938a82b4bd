-- The table as record store: what is refused, and rows fetched later that are the rows that were scanned.
LOAD 'wiscsort';
SET max_parallel_workers_per_gather = 0;
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;
SET wiscsort.record_store = heap;
SET work_mem = '64kB';

CREATE TABLE wtest.h (gone int, id int NOT NULL, k int8 NOT NULL, t text COLLATE "C", n numeric, pad text);
INSERT INTO wtest.h SELECT i, i, (i * 7919::int8) % 5003, md5((i % 700)::text), i % 97, repeat('x', i % 300)
                      FROM generate_series(1, 6000) i;
ALTER TABLE wtest.h DROP COLUMN gone;
ALTER TABLE wtest.h ADD COLUMN late int DEFAULT 7, ADD COLUMN made int8 GENERATED ALWAYS AS (k + id) STORED;
ALTER TABLE wtest.h ALTER pad SET STORAGE EXTERNAL;
UPDATE wtest.h SET pad = repeat('long', 1000) WHERE id % 500 = 0;
INSERT INTO wtest.h SELECT 6000 + i, i % 100, NULL, NULL, NULL FROM generate_series(1, 500) i;
DELETE FROM wtest.h WHERE id % 7 = 3;
CREATE INDEX ON wtest.h (id);
VACUUM ANALYZE wtest.h;
CREATE TABLE wtest.h_empty (LIKE wtest.h);
CREATE TABLE wtest.h_old AS SELECT i AS id, i % 50 AS k FROM generate_series(1, 3000) i;
ALTER TABLE wtest.h_old ADD COLUMN added text DEFAULT 'the default';

-- What the plan is made of.
EXPLAIN (COSTS OFF, VERBOSE) SELECT * FROM wtest.h ORDER BY k;
EXPLAIN (COSTS OFF, VERBOSE) SELECT id + 1 AS x, t FROM wtest.h WHERE n > 3 ORDER BY t DESC, k;
SET enable_seqscan = off;
SET enable_indexscan = off;
EXPLAIN (COSTS OFF, VERBOSE) SELECT t FROM wtest.h WHERE id < 1000 ORDER BY k;
SET enable_bitmapscan = off;
RESET enable_indexscan;
EXPLAIN (COSTS OFF, VERBOSE) SELECT t FROM wtest.h WHERE id < 1000 ORDER BY k;
EXPLAIN (COSTS OFF) SELECT t FROM wtest.h WHERE ctid < '(10,1)' ORDER BY k;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- With either way of reading, little and enough work_mem, exact keys and others, every scan.
CREATE FUNCTION wtest.compare_heap(query text) RETURNS text
LANGUAGE plpgsql SET wiscsort.record_store = heap AS $$
DECLARE
    way text;
    threads text;
    verdict text;
BEGIN
    FOREACH way IN ARRAY ARRAY['auto', 'off'] LOOP
        FOREACH threads IN ARRAY ARRAY['0', '1'] LOOP
            PERFORM set_config('wiscsort.direct_read', way, true);
            PERFORM set_config('wiscsort.read_threads', threads, true);
            verdict := wtest.compare(query);
            IF verdict <> 'same' THEN
                RETURN format('direct_read %s, read_threads %s: %s', way, threads, verdict);
            END IF;
        END LOOP;
    END LOOP;
    RETURN 'same';
END $$;
SELECT q, wtest.compare_heap(q) FROM unnest(ARRAY[
    'SELECT * FROM wtest.h ORDER BY k, id',
    'SELECT * FROM wtest.h ORDER BY k DESC, id',
    'SELECT * FROM wtest.h ORDER BY t, id',
    'SELECT * FROM wtest.h ORDER BY t DESC NULLS LAST, n NULLS FIRST, id',
    'SELECT * FROM wtest.h ORDER BY n, id DESC',
    'SELECT h, h.k FROM wtest.h ORDER BY id',
    'SELECT ctid, tableoid::regclass, id FROM wtest.h ORDER BY k, id',
    'SELECT id * 2, upper(t), length(pad), made, late FROM wtest.h WHERE n > 50 ORDER BY made, id',
    'SELECT * FROM wtest.h WHERE id BETWEEN 100 AND 3000 ORDER BY k, id',
    'SELECT * FROM wtest.h WHERE ctid < ''(40,1)'' ORDER BY k, id',
    'SELECT * FROM wtest.h_old ORDER BY k DESC, id',
    'SELECT count(*) OVER (PARTITION BY t ORDER BY id), id, pad FROM wtest.h ORDER BY t, id',
    'SELECT DISTINCT ON (t) t, id FROM wtest.h ORDER BY t, id',
    'SELECT * FROM (SELECT * FROM wtest.h ORDER BY k, id LIMIT 300) s ORDER BY id']) q;
SELECT count(*) FROM (SELECT * FROM wtest.h_empty ORDER BY k) s;

-- What is refused, and sorts all the same.
CREATE TABLE wtest.h_target AS SELECT * FROM wtest.h;
CREATE TABLE wtest.h_parts (id int, k int8) PARTITION BY RANGE (id);
CREATE TABLE wtest.h_parts_1 PARTITION OF wtest.h_parts FOR VALUES FROM (0) TO (5000);
CREATE TABLE wtest.h_parts_2 PARTITION OF wtest.h_parts FOR VALUES FROM (5000) TO (90000);
INSERT INTO wtest.h_parts SELECT id, k FROM wtest.h;
ANALYZE wtest.h_parts;
CREATE FUNCTION wtest.in_table(query text) RETURNS boolean
LANGUAGE sql AS $$ SELECT coalesce(bool_or(line ~ 'WiscSort\) on '), false) FROM wtest.plan(query) line $$;
SELECT q, wtest.in_table(q), wtest.uses(q) FROM unnest(ARRAY[
    'SELECT * FROM wtest.h ORDER BY k',
    'SELECT xmin, * FROM wtest.h ORDER BY k',
    'SELECT xmax, cmin, k FROM wtest.h_parts ORDER BY k',
    'SELECT * FROM wtest.h_parts ORDER BY k',
    'SELECT * FROM wtest.h ORDER BY k + 1',
    'SELECT * FROM wtest.h ORDER BY k FOR UPDATE',
    'SELECT * FROM wtest.h TABLESAMPLE bernoulli (50) ORDER BY k',
    'SELECT * FROM pg_class ORDER BY relpages',
    'UPDATE wtest.h_target x SET n = 1 FROM wtest.h y WHERE x.k = y.k',
    'INSERT INTO wtest.h_target (id, k) SELECT id, k FROM wtest.h ORDER BY k']) q;
SET wiscsort.record_store = spool;
SELECT wtest.in_table('SELECT * FROM wtest.h ORDER BY k');
SET wiscsort.record_store = heap;
SET wiscsort.enable = off;
SELECT wtest.in_table('SELECT * FROM wtest.h ORDER BY k');
SET wiscsort.enable = on;

-- An INSERT that reads the table it fills.
INSERT INTO wtest.h_target (id, k) SELECT id + 10000, k FROM wtest.h_target ORDER BY k DESC;
SELECT count(*), count(DISTINCT id), sum(k) FROM wtest.h_target;

-- Cursors: any direction, held, and refused by WHERE CURRENT OF as core's sorts are.
CREATE FUNCTION wtest.walk_back(query text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    result text := '';
    r record;
    c refcursor := 'walker';
BEGIN
    EXECUTE format('DECLARE walker SCROLL CURSOR FOR %s', query);
    MOVE LAST FROM c;
    LOOP
        FETCH PRIOR FROM c INTO r;
        EXIT WHEN NOT FOUND;
        result := md5(result || r::text);
    END LOOP;
    CLOSE c;
    RETURN result;
END $$;
CREATE TABLE wtest.h_bloated AS SELECT i AS id, (i * 7919::int8) % 3001 AS k, repeat('b', 150 + i % 90) AS pad FROM generate_series(1, 3000) i;
CREATE TABLE wtest.h_broad AS SELECT i AS id, (i * 7919::int8) % 9001 AS k, repeat(md5(i::text), 50) AS pad FROM generate_series(1, 6000) i;
ANALYZE wtest.h_bloated;
-- a window has fewer rows than are read again to go back by one
CREATE TABLE wtest.h_broader AS SELECT id, k, repeat(md5(id::text), 62) AS pad FROM wtest.h_broad;
ALTER TABLE wtest.h_broader ALTER pad SET STORAGE PLAIN;
INSERT INTO wtest.h_broader SELECT -id, -k, repeat(md5(id::text), 220) FROM wtest.h_broad WHERE id <= 500;
ANALYZE wtest.h_broad;
ANALYZE wtest.h_broader;
SELECT q, wtest.walk_back(q) = (SELECT w FROM (SELECT set_config('wiscsort.enable', 'off', true)) s(x), LATERAL (SELECT wtest.walk_back(q) || left(x, 0)) l(w)) AS as_core,
       set_config('wiscsort.enable', 'on', true)
  FROM unnest(ARRAY['SELECT * FROM wtest.h_bloated ORDER BY k, id', 'SELECT * FROM wtest.h_bloated WHERE id < 2500 ORDER BY k',
                    'SELECT * FROM wtest.h_broad ORDER BY k', 'SELECT * FROM wtest.h_broad ORDER BY pad',
                    'SELECT * FROM wtest.h_broader ORDER BY k', 'SELECT * FROM wtest.h_broader WHERE id < 0 ORDER BY k']) q;
CREATE FUNCTION wtest.walk(cursor_options text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    result text := '';
    step text;
    r record;
    c refcursor := 'walker';
BEGIN
    EXECUTE format('DECLARE walker %s CURSOR FOR SELECT id, k FROM wtest.h ORDER BY k, id', cursor_options);
    FOREACH step IN ARRAY ARRAY['FORWARD 3', 'BACKWARD 1', 'ABSOLUTE 4000', 'BACKWARD 100', 'RELATIVE 50', 'LAST',
                                'PRIOR', 'NEXT', 'NEXT', 'PRIOR', 'ABSOLUTE 33', 'PRIOR', 'PRIOR', 'FIRST', 'PRIOR', 'NEXT'] LOOP
        EXECUTE 'FETCH ' || step || ' FROM walker' INTO r;
        result := result || step || ': ' || coalesce(r.id::text, '-') || '; ';
    END LOOP;
    CLOSE c;
    RETURN result;
END $$;
BEGIN;
SELECT wtest.walk('SCROLL') = (SELECT w FROM (SELECT set_config('wiscsort.enable', 'off', true)) s(x), LATERAL (SELECT wtest.walk('SCROLL') || left(x, 0)) l(w)) AS as_core;
ROLLBACK;
SET work_mem = '4MB';
BEGIN;
SELECT wtest.walk('SCROLL') = (SELECT w FROM (SELECT set_config('wiscsort.enable', 'off', true)) s(x), LATERAL (SELECT wtest.walk('SCROLL') || left(x, 0)) l(w)) AS as_core;
ROLLBACK;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, k FROM wtest.h ORDER BY k, id;
FETCH 2 FROM c;
DELETE FROM wtest.h WHERE CURRENT OF c;
ROLLBACK;
SET work_mem = '64kB';
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT id, k FROM wtest.h ORDER BY k DESC, id;
FETCH 2 FROM held;
COMMIT;
FETCH 2 FROM held;
CLOSE held;

-- Rows that change, die and are pruned while a cursor is open on them.
CREATE TABLE wtest.h_busy (id int PRIMARY KEY, k int, v text) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO wtest.h_busy SELECT i, (i * 37) % 1009, 'first ' || i FROM generate_series(1, 2000) i;
ANALYZE wtest.h_busy;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, k, v FROM wtest.h_busy ORDER BY k, id;
FETCH 3 FROM c;
UPDATE wtest.h_busy SET v = 'second';
UPDATE wtest.h_busy SET v = 'third', k = -k;
DELETE FROM wtest.h_busy WHERE id % 2 = 0;
SAVEPOINT s;
INSERT INTO wtest.h_busy SELECT -i, i, 'never' FROM generate_series(1, 500) i;
DELETE FROM wtest.h_busy WHERE id > 1000;
ROLLBACK TO s;
SELECT count(*), sum(id) FROM wtest.h_busy WHERE v = 'third';
CREATE FUNCTION wtest.rest_of(c refcursor) RETURNS TABLE (n bigint, ids numeric, strange bigint)
LANGUAGE plpgsql AS $$
DECLARE
    r record;
    last int := -1;
BEGIN
    n := 0; ids := 0; strange := 0;
    LOOP
        FETCH c INTO r;
        EXIT WHEN NOT FOUND;
        n := n + 1;
        ids := ids + r.id;
        IF r.v <> 'first ' || r.id OR r.k < last THEN
            strange := strange + 1;
        END IF;
        last := r.k;
    END LOOP;
    RETURN NEXT;
END $$;
SELECT * FROM wtest.rest_of('c');
COMMIT;

-- Mark and restore, rescans, partitions, inheritance, temporary tables.
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
SELECT wtest.compare_heap('SELECT a.id, b.id, b.pad FROM wtest.h_old a JOIN wtest.h b ON a.k = b.k ORDER BY a.id, b.id') AS marked,
       wtest.compare_heap('SELECT a.id, b.id FROM wtest.h_old a LEFT JOIN wtest.h b ON a.id = b.k ORDER BY a.id, b.id') AS left_join;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_material;
SELECT wtest.compare_heap('SELECT x, s.* FROM generate_series(1, 3) x CROSS JOIN LATERAL (SELECT id, t FROM wtest.h WHERE k % 7 < x ORDER BY k, id OFFSET 0) s') AS rescanned;
CREATE TABLE wtest.h_part (id int, k int, v text) PARTITION BY HASH (id);
CREATE TABLE wtest.h_part_0 PARTITION OF wtest.h_part FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE wtest.h_part_1 (v text, other int, k int, id int);
ALTER TABLE wtest.h_part_1 DROP COLUMN other;
ALTER TABLE wtest.h_part ATTACH PARTITION wtest.h_part_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO wtest.h_part SELECT i, i * 31 % 997, 'v' || i FROM generate_series(1, 4000) i;
ANALYZE wtest.h_part;
CREATE TABLE wtest.h_child (more int) INHERITS (wtest.h_old);
INSERT INTO wtest.h_child SELECT i, i % 30, 'child', i FROM generate_series(1, 1000) i;
CREATE TEMP TABLE h_temp AS SELECT id, k, pad FROM wtest.h;
SELECT wtest.plan('SELECT * FROM wtest.h_part ORDER BY k, id');
SELECT wtest.compare_heap('SELECT * FROM wtest.h_part ORDER BY k, id') AS partitions,
       wtest.compare_heap('SELECT * FROM wtest.h_old ORDER BY k, id, added') AS inheritance,
       wtest.compare_heap('SELECT * FROM h_temp ORDER BY k, id') AS temporary;
-- What the file of a temporary table has is older than the rows that now are where other rows were.
CREATE TEMP TABLE h_flush AS SELECT repeat('x', 1000) AS pad FROM generate_series(1, 12000);
DELETE FROM h_temp WHERE id % 2 = 0;
VACUUM h_temp;
INSERT INTO h_temp SELECT id, k, 'another row' FROM wtest.h WHERE id % 2 = 0;
SELECT wtest.compare_heap('SELECT * FROM h_temp ORDER BY k, id') AS temporary;
DROP TABLE h_flush;

-- Parallel workers, each with its part.
RESET wiscsort.debug_force;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT wtest.plan('SELECT * FROM wtest.h ORDER BY k, id');
CREATE FUNCTION wtest.digest(threads int) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    PERFORM set_config('wiscsort.read_threads', threads::text, true);
    -- planned anew at each call
    EXECUTE $q$SELECT count(*) || md5(string_agg(s::text, ' ')) FROM (SELECT * FROM wtest.h ORDER BY k, id OFFSET 0) s$q$
        INTO result;
    RETURN result;
END $$;
SELECT count(DISTINCT d) FROM (SELECT wtest.digest(1) UNION ALL SELECT wtest.digest(0) UNION ALL
    SELECT wtest.digest(0) FROM set_config('wiscsort.enable', 'off', false)) u(d);
RESET wiscsort.enable;
SET max_parallel_workers_per_gather = 0;
SET wiscsort.debug_force = on;

-- EXPLAIN ANALYZE: nothing spilled, or entries alone; the fields of the window.
CREATE FUNCTION wtest.heap_analyzed(query text, OUT facts jsonb) LANGUAGE plpgsql AS $$
DECLARE
    explained json;
    node jsonb;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS, FORMAT JSON) ' || query INTO explained;
    node := explained->0->'Plan';
    facts := jsonb_build_object('method', node->'Sort Method', 'store', node->'Record Store', 'entries', node->'IndexMap Entries',
        'disk per row', (node->>'Disk')::numeric * 1024 / (node->>'IndexMap Entries')::numeric > 17.5,
        'disk', (node->>'Disk')::int > 0, 'window', (node->>'Window Rows')::int BETWEEN 32 AND 6500,
        'blocks', (node->>'Blocks Direct')::int + (node->>'Blocks Buffered')::int > 100,
        'counted', (node->>'Shared Hit Blocks')::int + (node->>'Shared Read Blocks')::int >= (node->>'Blocks Direct')::int + (node->>'Blocks Buffered')::int);
END $$;
SELECT wtest.heap_analyzed('SELECT * FROM wtest.h ORDER BY k');
SET work_mem = '4MB';
SELECT wtest.heap_analyzed('SELECT * FROM wtest.h ORDER BY k');
SET wiscsort.direct_read = off;
SELECT wtest.heap_analyzed('SELECT * FROM wtest.h ORDER BY t');
RESET wiscsort.direct_read;

-- auto: wide rows stay in the table, narrow ones are spooled.
RESET wiscsort.debug_force;
RESET wiscsort.record_store;
SET work_mem = '64kB';
CREATE TABLE wtest.h_wide (k int8, pad text);
ALTER TABLE wtest.h_wide ALTER pad SET STORAGE PLAIN;
INSERT INTO wtest.h_wide SELECT (i * 7919::int8) % 5003, repeat('x', 2000) FROM generate_series(1, 3000) i;
ANALYZE wtest.h_wide;
SELECT wtest.in_table('SELECT * FROM wtest.h_wide ORDER BY k') AS wide,
       wtest.in_table('SELECT k FROM wtest.h_wide ORDER BY k') AS narrow_columns,
       wtest.in_table('SELECT * FROM wtest.h_target ORDER BY k') AS narrow;

SET wiscsort.record_store = attic;
SET wiscsort.direct_read = maybe;

-- Nothing is left behind.
SELECT count(*) FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql_tmp' || pg_backend_pid() || '.%';

-- Why a sort has the record store it has.
CREATE FUNCTION wtest.choice(query text) RETURNS text
LANGUAGE sql AS $$ SELECT regexp_replace(wtest.property('VERBOSE', query, 'Record Store Choice'), '\d+', 'N', 'g') $$;
SET wiscsort.debug_force = on;
SET wiscsort.record_store = heap;
SELECT q, wtest.choice(q) FROM unnest(ARRAY[
    'SELECT * FROM wtest.h ORDER BY k',
    'SELECT * FROM wtest.h ORDER BY k + 1',
    'SELECT k FROM wtest.h ORDER BY k',
    'SELECT xmin, * FROM wtest.h ORDER BY k',
    'SELECT * FROM wtest.h ORDER BY k FOR UPDATE',
    'SELECT * FROM pg_class ORDER BY relpages',
    'SELECT a.k, b.id FROM wtest.h a JOIN wtest.h_old b USING (id) ORDER BY a.k, b.id, a.t']) q;
SET wiscsort.record_store = auto;
SELECT wtest.choice('SELECT * FROM wtest.h ORDER BY k');
SET wiscsort.record_store = spool;
SELECT wtest.choice('SELECT * FROM wtest.h ORDER BY k');
RESET wiscsort.debug_force;
SET wiscsort.record_store = auto;
SELECT wtest.choice('SELECT * FROM wtest.h ORDER BY k') LIKE 'estimated cost N, % N' AS by_cost;

-- A table that is in order already: fetching its rows costs little, if they are not narrow.
CREATE TABLE wtest.h_ordered AS SELECT i::int8 AS k, repeat(md5(i::text), 7) AS v FROM generate_series(1, 20000) i;
CREATE TABLE wtest.h_shuffled AS SELECT * FROM wtest.h_ordered ORDER BY v;
ANALYZE wtest.h_ordered;
ANALYZE wtest.h_shuffled;
SELECT wtest.in_table('SELECT * FROM wtest.h_ordered ORDER BY k DESC') AS ordered,
       wtest.in_table('SELECT * FROM wtest.h_shuffled ORDER BY k DESC') AS shuffled;

-- A table that cannot be read directly stays where it is only if that is asked for.
CREATE TEMP TABLE h_passing AS TABLE wtest.h_ordered;
ANALYZE h_passing;
SELECT wtest.choice('SELECT * FROM h_passing ORDER BY k DESC') AS temporary;
SET wiscsort.direct_read = off;
SELECT wtest.choice('SELECT * FROM wtest.h_ordered ORDER BY k DESC') AS by_setting;
SET wiscsort.record_store = heap;
SELECT wtest.in_table('SELECT * FROM h_passing ORDER BY k DESC') AS temporary,
       wtest.in_table('SELECT * FROM wtest.h_ordered ORDER BY k DESC') AS by_setting;
RESET wiscsort.direct_read;
DROP TABLE h_passing;

-- An index in the order of the table is no reason to leave the sort of a few of its rows to PostgreSQL.
CREATE TABLE wtest.h_indexed AS SELECT i, i % 50 AS tag, repeat('x', 500) AS pad FROM generate_series(1, 30000) i;
CREATE INDEX ON wtest.h_indexed (i);
CREATE INDEX ON wtest.h_indexed (tag);
VACUUM ANALYZE wtest.h_indexed;
SELECT wtest.in_table('SELECT * FROM wtest.h_indexed WHERE tag = 5 ORDER BY i') AS few,
       wtest.in_table('SELECT * FROM wtest.h_indexed WHERE tag < 45 ORDER BY i') AS most;
SET wiscsort.record_store = auto;

-- Where keys for ties would take most of a row's bytes, rows do not stay in the table.
CREATE TABLE wtest.h_keys AS
SELECT 'value ' || i / 5000 AS few, repeat(md5((i % 5000)::text), 3) AS v, i AS n FROM generate_series(1, 20000) i;
CREATE TABLE wtest.h_keys_wide AS SELECT *, repeat('x', 400) AS pad FROM wtest.h_keys;
ANALYZE wtest.h_keys;
ANALYZE wtest.h_keys_wide;
SELECT wtest.choice('SELECT * FROM wtest.h_keys ORDER BY few, v') AS narrow,
       wtest.choice('SELECT * FROM wtest.h_keys_wide ORDER BY few, v') AS wide;
SELECT wtest.compare('SELECT * FROM wtest.h_keys ORDER BY few, v') AS narrow,
       wtest.compare('SELECT * FROM wtest.h_keys_wide ORDER BY few, v') AS wide;

-- Rows that become longer, or shorter, in the order they are wanted: a window has no room for all that it was made for.
CREATE TABLE wtest.h_longer AS
SELECT (i * 7919::int8) % 20011 AS k, repeat('x', ((i * 7919::int8) % 20011 / 20)::int) AS pad FROM generate_series(1, 20000) i;
ANALYZE wtest.h_longer;
SET wiscsort.record_store = heap;
SELECT threads, wtest.compare('SELECT * FROM wtest.h_longer ORDER BY k') AS longer, wtest.compare('SELECT * FROM wtest.h_longer ORDER BY k DESC') AS shorter
  FROM (VALUES ('0'), ('1'), ('-1')) t(threads), set_config('wiscsort.read_threads', threads, false);
RESET wiscsort.read_threads;
RESET wiscsort.record_store;
