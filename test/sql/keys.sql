-- Rows that are nothing but their keys: made of the sorted entries, with no row stored or read.
LOAD 'wiscsort';
SET max_parallel_workers_per_gather = 0;
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;
SET work_mem = '64kB';

CREATE TABLE wtest.kk (i8 int8 NOT NULL, i4 int4, i2 int2, b bool, c "char", o oid, d date, ts timestamptz,
                       tm time, m money, l pg_lsn, x xid8, f8 float8, t text COLLATE "C", u uuid, n numeric);
INSERT INTO wtest.kk
SELECT (i * 7919::int8) % 5003 * CASE i % 3 WHEN 0 THEN -1 ELSE 1000000007 END,
       nullif(i * 31 % 501, 3) - 250, nullif((i % 200)::int2, 7::int2) - 100::int2, nullif(i % 3, 2) = 1, chr(1 + i % 127)::"char",
       i % 77 + 4000000000, date '2000-01-01' + (i * 17 % 3000 - 1500), timestamptz '2000-01-01 00:00:00+00' + i * 7919 % 5003 * interval '1 s' - interval '40 min',
       time '00:00' + i % 999 * interval '1 min', (i % 333 - 150)::money, pg_lsn(i % 900::numeric), (i % 321)::text::xid8,
       CASE i % 4 WHEN 0 THEN '-0'::float8 WHEN 1 THEN 0 ELSE (i % 99 - 50) / 8.0 END, md5(i::text), md5(i::text)::uuid, i % 7
  FROM generate_series(1, 6000) i;
INSERT INTO wtest.kk (i8, i4, i2, d, ts, l, x, f8)
VALUES (9223372036854775807, 2147483647, 32767, 'infinity', 'infinity', 'FFFFFFFF/FFFFFFFF', '18446744073709551615', 'NaN'),
       (-9223372036854775808, -2147483648, -32768, '-infinity', '-infinity', '0/0', '0', '-infinity'),
       (0, 0, 0, NULL, NULL, NULL, NULL, 'infinity'), (0, 0, 0, NULL, NULL, NULL, NULL, NULL);
ANALYZE wtest.kk;

CREATE FUNCTION wtest.store(query text) RETURNS text
LANGUAGE sql AS $$ SELECT wtest.property('ANALYZE, TIMING OFF', query, 'Record Store') $$;
CREATE FUNCTION wtest.compare_threads(query text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    threads text;
    verdict text;
BEGIN
    FOREACH threads IN ARRAY ARRAY['0', '1'] LOOP
        PERFORM set_config('wiscsort.read_threads', threads, true);
        verdict := wtest.compare(query);
        IF verdict <> 'same' THEN
            RETURN format('read_threads %s: %s', threads, verdict);
        END IF;
    END LOOP;
    RETURN 'same';
END $$;

-- Decoded, and those that are not: their bytes do not tell the value, they do not fit, or there is another column.
SELECT q, wtest.store(q), wtest.compare_threads(q) FROM unnest(ARRAY[
    'SELECT i8 FROM wtest.kk ORDER BY i8',
    'SELECT i8 FROM wtest.kk ORDER BY i8 DESC',
    'SELECT i4 FROM wtest.kk ORDER BY i4',
    'SELECT i4 FROM wtest.kk ORDER BY i4 DESC NULLS LAST',
    'SELECT i4, i2 FROM wtest.kk ORDER BY i2 NULLS FIRST, i4 DESC',
    'SELECT i2, i4, b FROM wtest.kk ORDER BY b DESC, i4, i2 DESC NULLS LAST',
    'SELECT c, i8 FROM wtest.kk WHERE c IS NOT NULL ORDER BY i8, c',
    'SELECT c, o FROM wtest.kk ORDER BY c DESC, o NULLS FIRST',
    'SELECT d, i2 FROM wtest.kk ORDER BY d DESC, i2',
    'SELECT ts FROM wtest.kk ORDER BY ts NULLS FIRST',
    'SELECT tm FROM wtest.kk ORDER BY tm DESC',
    'SELECT m FROM wtest.kk ORDER BY m',
    'SELECT l FROM wtest.kk ORDER BY l DESC NULLS LAST',
    'SELECT x FROM wtest.kk ORDER BY x',
    'SELECT i4 / 2, i4 * 2::int8 FROM wtest.kk ORDER BY i4',
    'SELECT i4 FROM wtest.kk WHERE i8 > 0 AND t > ''5'' ORDER BY i4',
    'SELECT DISTINCT d FROM wtest.kk ORDER BY d',
    'SELECT i4, count(*) FROM wtest.kk GROUP BY i4 ORDER BY i4',
    'SELECT i4, row_number() OVER (ORDER BY i4) FROM wtest.kk ORDER BY i4',
    'SELECT i8 % 10 AS r FROM wtest.kk ORDER BY r',
    'SELECT i4 FROM wtest.kk UNION ALL SELECT i2 FROM wtest.kk ORDER BY 1',
    'SELECT f8::text FROM wtest.kk ORDER BY f8, f8::text',
    'SELECT t FROM wtest.kk ORDER BY t',
    'SELECT n FROM wtest.kk ORDER BY n',
    'SELECT u FROM wtest.kk ORDER BY u',
    'SELECT ts, i4 FROM wtest.kk ORDER BY ts, i4',
    'SELECT i8, i4 FROM wtest.kk ORDER BY i8, i4',
    'SELECT 1 AS one, i4 FROM wtest.kk ORDER BY i4']) q;
SET wiscsort.record_store = spool;
SELECT wtest.store('SELECT i4 FROM wtest.kk ORDER BY i4');
SET wiscsort.record_store = heap;
SELECT wtest.store('SELECT i4 FROM wtest.kk ORDER BY i4');
RESET wiscsort.record_store;

-- Floats, if no other key follows: both zeros come back as they are, and are one value in the order.
CREATE TABLE wtest.floats AS SELECT f8, f8::float4 AS f4, i4 FROM wtest.kk;
ANALYZE wtest.floats;
SELECT q, wtest.store(q), wtest.compare_threads(q) FROM unnest(ARRAY[
    'SELECT f8 + 0 AS f FROM (SELECT f8 FROM wtest.floats ORDER BY f8 OFFSET 0) s',
    'SELECT f8 + 0 AS f FROM (SELECT f8 FROM wtest.floats ORDER BY f8 DESC NULLS LAST OFFSET 0) s',
    'SELECT f4 + 0 AS f FROM (SELECT f4 FROM wtest.floats ORDER BY f4 DESC OFFSET 0) s',
    'SELECT i4, f4 + 0 AS f FROM (SELECT i4, f4 FROM wtest.floats ORDER BY i4 DESC, f4 NULLS FIRST OFFSET 0) s',
    'SELECT f4 + 0 AS f, i4 FROM (SELECT i4, f4 FROM wtest.floats ORDER BY f4, i4 OFFSET 0) s']) q;
SELECT wtest.compare_threads('SELECT f8::text AS f, count(*) FROM (SELECT f8 FROM wtest.floats ORDER BY f8 DESC OFFSET 0) s'
                             ' GROUP BY 1 ORDER BY 1') AS float8,
       wtest.compare_threads('SELECT f4::text AS f, count(*) FROM (SELECT f4 FROM wtest.floats ORDER BY f4 OFFSET 0) s'
                             ' GROUP BY 1 ORDER BY 1') AS float4;

-- Nothing is written while entries fit, and nothing but entries when they do not.
CREATE FUNCTION wtest.disk(query text) RETURNS int
LANGUAGE sql AS $$ SELECT wtest.property('ANALYZE, TIMING OFF', query, 'Disk')::int $$;
SELECT wtest.disk('SELECT i8 FROM wtest.kk ORDER BY i8') BETWEEN 6002 * 16 / 1024 AND 6002 * 16 / 1024 * 2.1 AS entries;
SET work_mem = '4MB';
SELECT wtest.disk('SELECT i8 FROM wtest.kk ORDER BY i8') = 0 AS nothing;
SET work_mem = '64kB';

-- A transaction that keeps its snapshot relies on a NOT NULL that is older, which int8 and bool need to fit.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT wtest.store('SELECT i8, b FROM wtest.kk ORDER BY i8, b');
COMMIT;
SELECT wtest.store('SELECT i8, b FROM wtest.kk ORDER BY i8, b');

-- Backward, with little and enough memory; and again from the start.
CREATE FUNCTION wtest.walk() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    c refcursor;
    v int;
    walked text := '';
BEGIN
    -- planned anew at each call
    OPEN c SCROLL FOR EXECUTE 'SELECT i4 FROM wtest.kk ORDER BY i4 DESC';
    FETCH LAST FROM c INTO v; walked := walked || coalesce(v::text, 'null') || ' ';
    FETCH PRIOR FROM c INTO v; walked := walked || coalesce(v::text, 'null') || ' ';
    FETCH ABSOLUTE 3000 FROM c INTO v; walked := walked || coalesce(v::text, 'null') || ' ';
    FETCH RELATIVE -2999 FROM c INTO v; walked := walked || coalesce(v::text, 'null') || ' ';
    FETCH PRIOR FROM c INTO v; walked := walked || coalesce(v::text, 'none') || ' ';
    FETCH NEXT FROM c INTO v; walked := walked || coalesce(v::text, 'null') || ' ';
    FETCH RELATIVE 100 FROM c INTO v; walked := walked || coalesce(v::text, 'null');
    CLOSE c;
    RETURN walked;
END $$;
SELECT wtest.walk();
SET work_mem = '4MB';
SELECT wtest.walk();
SET wiscsort.enable = off;
SELECT wtest.walk();
RESET wiscsort.enable;

-- Mark and restore, and rescans.
SET work_mem = '64kB';
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT wtest.compare_as_set('SELECT a.i4, count(*) FROM wtest.kk a JOIN wtest.kk b ON a.i4 = b.i4 GROUP BY a.i4');
SELECT wtest.compare_as_set('SELECT a.i2 FROM (SELECT i2 FROM wtest.kk WHERE i8 < 0 AND i4 > 230) a FULL JOIN (SELECT i2 FROM wtest.kk WHERE i4 < -230) b ON a.i2 = b.i2');
RESET enable_hashjoin;
RESET enable_nestloop;
SELECT wtest.compare('SELECT v.n, s.* FROM (VALUES (1), (2), (3)) v(n), LATERAL (SELECT i4 FROM wtest.kk WHERE i2 > v.n * 30 - 100 ORDER BY i4 LIMIT 200) s ORDER BY 1, 2');

-- Types of others whose comparison function is one of PostgreSQL's own by another name: their values have bytes, too,
-- but not where they are stored otherwise (`renamed_low` is an int4 of which btint8cmp would see eight bytes).
CREATE FUNCTION wtest.make_type(type text, like_type text, compare text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL client_min_messages = warning;
    EXECUTE format('CREATE TYPE wtest.%s', type);
    EXECUTE format('CREATE FUNCTION wtest.%s_in(cstring) RETURNS wtest.%1$s AS %L LANGUAGE internal IMMUTABLE STRICT',
                   type, like_type || 'in');
    EXECUTE format('CREATE FUNCTION wtest.%s_out(wtest.%1$s) RETURNS cstring AS %L LANGUAGE internal IMMUTABLE STRICT',
                   type, like_type || 'out');
    EXECUTE format('CREATE TYPE wtest.%s (INPUT = wtest.%1$s_in, OUTPUT = wtest.%1$s_out, LIKE = %2$s)', type, like_type);
    EXECUTE format('CREATE FUNCTION wtest.%s_cmp(wtest.%1$s, wtest.%1$s) RETURNS int4 AS %L LANGUAGE internal IMMUTABLE STRICT',
                   type, compare || 'cmp');
    EXECUTE format('CREATE FUNCTION wtest.%s_lt(wtest.%1$s, wtest.%1$s) RETURNS bool AS %L LANGUAGE internal IMMUTABLE STRICT',
                   type, like_type || 'lt');
    EXECUTE format('CREATE FUNCTION wtest.%s_eq(wtest.%1$s, wtest.%1$s) RETURNS bool AS %L LANGUAGE internal IMMUTABLE STRICT',
                   type, like_type || 'eq');
    EXECUTE format('CREATE FUNCTION wtest.%s_gt(wtest.%1$s, wtest.%1$s) RETURNS bool AS %L LANGUAGE internal IMMUTABLE STRICT',
                   type, like_type || 'gt');
    EXECUTE format('CREATE OPERATOR wtest.< (LEFTARG = wtest.%s, RIGHTARG = wtest.%1$s, FUNCTION = wtest.%1$s_lt)', type);
    EXECUTE format('CREATE OPERATOR wtest.= (LEFTARG = wtest.%s, RIGHTARG = wtest.%1$s, FUNCTION = wtest.%1$s_eq, MERGES)', type);
    EXECUTE format('CREATE OPERATOR wtest.> (LEFTARG = wtest.%s, RIGHTARG = wtest.%1$s, FUNCTION = wtest.%1$s_gt)', type);
    EXECUTE format('CREATE OPERATOR CLASS wtest.%s_ops DEFAULT FOR TYPE wtest.%1$s USING btree AS OPERATOR 1 wtest.<, '
                   'OPERATOR 3 wtest.=, OPERATOR 5 wtest.>, FUNCTION 1 wtest.%1$s_cmp(wtest.%1$s, wtest.%1$s)', type);
END $$;
SELECT wtest.make_type('renamed', 'int8', 'btint8'), wtest.make_type('renamed_low', 'int4', 'btint8'),
       wtest.make_type('renamed_real', 'float8', 'btfloat8');
CREATE TABLE wtest.named AS
SELECT ((i * 7919) % 5003 - 2500)::text::wtest.renamed AS w, nullif(i % 501, 3)::text::wtest.renamed_low AS n,
       CASE i % 5 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' ELSE (i % 77)::text END::wtest.renamed_real AS p,
       ARRAY[(i % 91)::text, (i % 7)::text]::wtest.renamed[] AS a
  FROM generate_series(1, 6000) i;
SELECT q, wtest.store(q), wtest.compare_threads(q) FROM unnest(ARRAY[
    'SELECT w FROM wtest.named ORDER BY w',
    'SELECT w FROM wtest.named ORDER BY w DESC NULLS LAST',
    'SELECT n FROM wtest.named ORDER BY n',
    'SELECT w, p FROM wtest.named ORDER BY p, w',
    'SELECT a, w FROM wtest.named ORDER BY a, w',
    'SELECT DISTINCT p FROM wtest.named ORDER BY p']) q;
