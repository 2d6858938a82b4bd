-- Keys of ties that are read from the table: which sorts do so, and that they give what core's gives.
LOAD 'wiscsort';
SET max_parallel_workers_per_gather = 0;
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;
SET wiscsort.record_store = heap;
SET work_mem = '64kB';

-- Dropped columns, columns that are younger than rows, keys that are toasted, nulls, and many ties.
CREATE TABLE wtest.tied (gone int, id int NOT NULL, few text COLLATE "C", u uuid, ts timestamptz, i8 int8, b bytea,
                         n numeric, gone_too text, long text COLLATE "C", d interval, net inet, pad text);
ALTER TABLE wtest.tied ALTER long SET STORAGE EXTERNAL;
INSERT INTO wtest.tied
SELECT i, i, CASE WHEN i % 11 > 0 THEN 'the same beginning ' || i % 37 END,
       CASE WHEN i % 13 > 0 THEN ('00000000-0000-0000-0000-' || lpad((i % 1009)::text, 12, '0'))::uuid END,
       timestamptz '2026-01-01' + i % 50 * interval '1 minute', CASE WHEN i % 17 > 0 THEN (i * 7919::int8) % 3001 END,
       CASE WHEN i % 19 > 0 THEN decode(lpad(to_hex(i % 400), 30 + i % 2 * 8, '0'), 'hex') END,
       CASE WHEN i % 23 > 0 THEN (123456789012345678901234567890 + i % 700) / 1000.0 END, 'gone',
       repeat('so it goes ', 1 + i % 3) || i % 90, i % 60 * interval '1 day 00:00:00.1',
       ('2001:db8::' || to_hex(i % 500))::inet, repeat('p', i % 200)
  FROM generate_series(1, 3000) i;
ALTER TABLE wtest.tied DROP COLUMN gone, DROP COLUMN gone_too;
ALTER TABLE wtest.tied ADD COLUMN late text COLLATE "C" DEFAULT 'a default that is longer than the prefix',
                       ADD COLUMN later uuid DEFAULT '11111111-2222-3333-4444-555555555555', ADD COLUMN latest int8;
UPDATE wtest.tied SET late = 'a default that is longer than others ' || id % 5, latest = id % 3 WHERE id % 4 = 0;
UPDATE wtest.tied SET long = repeat('on and on, ', 500 + id % 3) || id % 2 WHERE id % 60 = 0;
INSERT INTO wtest.tied (id, few, u, i8) SELECT i, NULL, NULL, NULL FROM generate_series(3001, 3100) i;
ALTER TABLE wtest.tied ALTER long SET STORAGE EXTENDED;
UPDATE wtest.tied SET long = repeat('packed ', 1000) || id % 2 WHERE id % 50 = 7;
DELETE FROM wtest.tied WHERE id % 31 = 5;
VACUUM wtest.tied;
INSERT INTO wtest.tied (id, long) SELECT i, 'where others were' || i % 3 FROM generate_series(3101, 3160) i;

SET wiscsort.debug_tie_keys = 'table';
CREATE FUNCTION wtest.compare_by(setting text, value text, query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('wiscsort.' || s, value, false) FROM unnest(string_to_array(setting, ' ')) s;
    RETURN wtest.compare(query);
END $$;
SELECT k, way, wtest.compare_by('direct_read', way, format('SELECT * FROM wtest.tied ORDER BY %s, id', k))
  FROM unnest(ARRAY['few', 'few DESC NULLS LAST', 'u', 'u DESC', 'ts, i8', 'ts DESC, i8 NULLS FIRST', 'b', 'b DESC', 'n', 'n DESC, few',
                    'long', 'long DESC', 'late', 'later, latest DESC', 'latest, late, later', 'd, net', 'net DESC', 'pad, few',
                    'few COLLATE "und-x-icu"', 'ts, n, b', 'pad COLLATE "C", ts, late DESC']) k,
       (VALUES ('auto'), ('off')) w(way)
 WHERE way = 'auto' OR k IN ('few', 'u', 'n', 'long', 'late');
RESET wiscsort.direct_read;

-- Rows are in the order of another column, of an index, or some of them.
SELECT wtest.compare('SELECT few, id FROM wtest.tied WHERE id % 3 > 0 ORDER BY few, n, id') AS some,
       wtest.compare('SELECT id * 2 AS twice, upper(long) FROM wtest.tied ORDER BY u, few, id') AS expressions;
CREATE INDEX ON wtest.tied (id);
SET enable_seqscan = off;
SELECT wtest.compare('SELECT * FROM wtest.tied WHERE id BETWEEN 100 AND 2900 ORDER BY few, u, id') AS by_bitmap;
SET enable_bitmapscan = off;
SELECT wtest.compare('SELECT * FROM wtest.tied WHERE id BETWEEN 100 AND 2900 ORDER BY few, u, id') AS by_index;
RESET enable_seqscan;
RESET enable_bitmapscan;
CREATE TEMP TABLE tied_temp AS SELECT * FROM wtest.tied;
SELECT wtest.compare('SELECT * FROM tied_temp ORDER BY few, u, id') AS temporary;

-- Merge joins that go back, rescans, a parent whose child has its columns in another order.
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
SELECT wtest.compare('SELECT a.id, b.id, b.pad FROM wtest.tied a JOIN wtest.tied b ON a.u = b.u AND a.ts = b.ts WHERE a.id < 900 ORDER BY a.id, b.id') AS marked;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_material;
SELECT wtest.compare('SELECT x, s.* FROM generate_series(1, 3) x CROSS JOIN LATERAL (SELECT id, few FROM wtest.tied WHERE id % 5 < x ORDER BY few, b, id OFFSET 0) s') AS rescanned;
CREATE TABLE wtest.tied_part (id int, t text COLLATE "C", u uuid) PARTITION BY HASH (id);
CREATE TABLE wtest.tied_part_0 PARTITION OF wtest.tied_part FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE wtest.tied_part_1 (u uuid, other int, t text COLLATE "C", id int);
ALTER TABLE wtest.tied_part_1 DROP COLUMN other;
ALTER TABLE wtest.tied_part ATTACH PARTITION wtest.tied_part_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO wtest.tied_part SELECT id, few, u FROM wtest.tied;
ANALYZE wtest.tied_part;
SELECT wtest.compare('SELECT * FROM wtest.tied_part ORDER BY t, u, id') AS partitions;

-- Cursors, in both directions.
CREATE FUNCTION wtest.to_and_fro(memory text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text := '';
    r record;
    c refcursor := 'walker';
BEGIN
    PERFORM set_config('work_mem', memory, true);
    EXECUTE format('DECLARE walker SCROLL CURSOR FOR %s', query);
    FOR i IN 1 .. 700 LOOP
        FETCH RELATIVE CASE WHEN i % 3 = 0 THEN -2 WHEN i % 50 = 1 THEN 90 ELSE 3 END FROM c INTO r;
        result := md5(result || coalesce(r::text, '-'));
    END LOOP;
    CLOSE c;
    RETURN result;
END $$;
SELECT memory, wtest.to_and_fro(memory, q) = (SELECT w FROM (SELECT set_config('wiscsort.enable', 'off', true)) s(x), LATERAL (SELECT wtest.to_and_fro(memory, q) || left(x, 0)) l(w)) AS as_core,
       set_config('wiscsort.enable', 'on', true)
  FROM unnest(ARRAY['64kB', '8MB']) memory, (VALUES ('SELECT * FROM wtest.tied ORDER BY few, u, id')) t(q);

-- Rows that change, die and are pruned while a cursor is open on them: the merge reads keys of ties meanwhile.
CREATE TABLE wtest.tied_busy (id int PRIMARY KEY, t text COLLATE "C", v text) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO wtest.tied_busy SELECT i, 'common to all: ' || lpad((i * 37 % 4001)::text, 6, '0'), 'first ' || i FROM generate_series(1, 8000) i;
ANALYZE wtest.tied_busy;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, t, v FROM wtest.tied_busy ORDER BY t, id;
FETCH 3 FROM c;
UPDATE wtest.tied_busy SET v = 'second';
UPDATE wtest.tied_busy SET v = 'third', t = 'another' || id;
DELETE FROM wtest.tied_busy WHERE id % 2 = 0;
SELECT count(*) FROM wtest.tied_busy WHERE v = 'third';
DO $$
DECLARE
    c refcursor := 'c';
    r record;
    last text := '';
    n int := 3;
BEGIN
    LOOP
        FETCH c INTO r;
        EXIT WHEN NOT FOUND;
        n := n + 1;
        IF r.v <> 'first ' || r.id OR (r.t || lpad(r.id::text, 6)) COLLATE "C" <= last THEN
            RAISE EXCEPTION 'row % is %', n, r;
        END IF;
        last := r.t || lpad(r.id::text, 6);
    END LOOP;
    RAISE NOTICE '% rows', n;
END $$;
COMMIT;
RESET wiscsort.debug_tie_keys;

-- Who decides: statistics.
CREATE TABLE wtest.told (id int, u uuid, same uuid, md5 text COLLATE "C", mail text COLLATE "C", number text COLLATE "C", code text COLLATE "C",
                         bytes bytea, n numeric, few int8, ts timestamptz, half text COLLATE "C", libc text, icu text COLLATE "und-x-icu", pad text,
                         short bytea, zeros bytea);
INSERT INTO wtest.told
SELECT i, md5(i::text)::uuid, ('00000000-0000-0000-0000-' || lpad(i::text, 12, '0'))::uuid, md5(i::text), md5(i::text) || '@example.com',
       'customer-' || lpad(i::text, 8, '0') || '-x', (ARRAY['new', 'paid', 'sent'])[1 + i % 3], decode(md5(i::text), 'hex'), i * 1.25, i % 5,
       timestamptz '2026-01-01' + i * interval '1 second', md5((i / 2)::text), md5(i::text), md5(i::text), repeat('x', 10),
       decode(repeat('7' || i % 5, 7), 'hex'), decode('0000000' || i % 5, 'hex')
  FROM generate_series(1, 7000) i;
CREATE FUNCTION wtest.tie_keys(key text) RETURNS text
LANGUAGE sql AS $$ SELECT wtest.property('VERBOSE', 'SELECT * FROM wtest.told ORDER BY ' || key, 'Tie Keys') $$;
SELECT wtest.tie_keys('u') AS no_statistics, wtest.tie_keys('id, ts') AS no_index;
CREATE UNIQUE INDEX told_id ON wtest.told (id);
SELECT wtest.tie_keys('u') AS no_statistics, wtest.tie_keys('id, ts') AS unique_index;
ANALYZE wtest.told;
SELECT k, wtest.tie_keys(k) FROM unnest(ARRAY['u', 'u DESC', 'same', 'md5', 'mail', 'number', 'code', 'code, id', 'bytes', 'n', 'n, id', 'few, id, ts',
    'few, u', 'ts, id, few', 'id', 'id, icu', 'half', 'libc COLLATE "C"', 'icu', 'short', 'zeros']) k;
SELECT wtest.compare('SELECT * FROM wtest.told ORDER BY ' || k || ', id')
  FROM unnest(ARRAY['u', 'same', 'md5', 'number', 'code', 'bytes', 'n', 'few, u', 'half']) k;

-- No temporary bytes in OnePass, 16 a row in MergePass, and what EXPLAIN says.
CREATE FUNCTION wtest.ties_analyzed(key text, memory text, OUT facts jsonb) LANGUAGE plpgsql AS $$
DECLARE
    explained json;
    node jsonb;
BEGIN
    PERFORM set_config('work_mem', memory, false);
    EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) SELECT * FROM wtest.told ORDER BY ' || key INTO explained;
    node := explained->0->'Plan';
    facts := jsonb_build_object('method', node->'Sort Method', 'store', node->'Record Store', 'ties', node->'Tie Keys',
        'fetched', CASE WHEN (node->>'Tie Rows Fetched')::int > 100 THEN 'many' WHEN (node->>'Tie Rows Fetched')::int < 100 THEN 'few' END,
        'disk per row', round((node->>'Disk')::numeric * 1024 / (node->>'IndexMap Entries')::numeric));
END $$;
SELECT memory, k, wtest.ties_analyzed(k, memory) FROM unnest(ARRAY['64kB', '8MB']) memory, unnest(ARRAY['u', 'md5', 'n', 'same']) k;
SET wiscsort.debug_tie_keys = 'table';
SELECT wtest.ties_analyzed('same', '8MB'), wtest.ties_analyzed('code, u', '8MB');
-- Statistics that are wrong: the keys of later rows are spooled.
SET work_mem = '64kB';
SELECT wtest.ties_analyzed('same', '64kB')->'ties' AS ties;
SELECT k, wtest.compare('SELECT * FROM wtest.told ORDER BY ' || k || ' DESC, id')
  FROM unnest(ARRAY['same', 'number', 'few, ts', 'half', 'pad COLLATE "C", n']) k;
SELECT threads, wtest.compare_by('write_threads sort_threads read_threads', threads, 'SELECT * FROM wtest.told ORDER BY same, id')
  FROM (VALUES ('0'), ('1')) t(threads);
RESET wiscsort.write_threads;
RESET wiscsort.sort_threads;
RESET wiscsort.read_threads;
SELECT wtest.to_and_fro('64kB', q) = (SELECT w FROM (SELECT set_config('wiscsort.enable', 'off', true)) s(x), LATERAL (SELECT wtest.to_and_fro('64kB', q) || left(x, 0)) l(w)) AS as_core,
       set_config('wiscsort.enable', 'on', true)
  FROM (VALUES ('SELECT * FROM wtest.told ORDER BY same')) t(q);
SET wiscsort.debug_tie_keys = 'spool';
SELECT wtest.ties_analyzed('u', '64kB')->'ties' AS ties;
RESET wiscsort.debug_tie_keys;
EXPLAIN (COSTS OFF, VERBOSE) SELECT id FROM wtest.told ORDER BY u;
SELECT count(*) FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql_tmp' || pg_backend_pid() || '.%';
