-- Codes of values from the range that the first rows have: as core sorts, whatever comes later.
LOAD 'wiscsort';
SET max_parallel_workers_per_gather = 0;
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;

-- Values that the first rows do not have come behind 17,000 of them: nulls, near ones and the very last ones.
CREATE TABLE wtest.ranged (id int NOT NULL, wide int8, small int8, nn int8 NOT NULL, i4 int4, i2 int2, b bool, ch "char",
                           o oid, d date, t time, ts timestamp, tz timestamptz, m money, f4 float4, f8 float8, l pg_lsn,
                           c text COLLATE "C", u uuid, n numeric, pad text);
INSERT INTO wtest.ranged
SELECT i, hashint8extended(i % 900, 1) & 9223372036854775807, i % 801, i * 7 % 3001, i % 500 - 250, i % 90, i % 3 = 0,
       chr(65 + i % 26)::"char", 16384 + i % 700, date '2026-01-01' + i % 400, time '08:00' + i % 600 * interval '1 minute',
       timestamp '2026-01-01' + i % 999 * interval '1 hour', timestamptz '2026-01-01' + i % 99 * interval '1 day',
       (i % 300 / 4.0)::numeric::money, i % 77 / 8.0, i % 333 / 3.0, '0/16B3740'::pg_lsn + i % 50,
       CASE WHEN i % 5 > 0 THEN 'text ' || i % 350 END, md5((i % 60)::text)::uuid, i % 40 / 7.0, repeat('p', i % 40)
  FROM generate_series(1, 17000) i;
CREATE TABLE wtest.within AS SELECT * FROM wtest.ranged;
INSERT INTO wtest.ranged (id, nn, wide, small, i4)
SELECT 17000 + i, i * 100 - 5000, CASE i % 3 WHEN 0 THEN -i END, i * 10, CASE WHEN i % 2 = 0 THEN i END
  FROM generate_series(1, 120) i;
INSERT INTO wtest.ranged
SELECT 17200 + i * 2 + low, v, v, v, v >> 32, v >> 48, NULL, (CASE low WHEN 1 THEN '' ELSE '~' END)::"char",
       (CASE low WHEN 1 THEN 0 ELSE 4294967295 END)::oid, CASE low WHEN 1 THEN '-infinity' ELSE 'infinity' END::date,
       CASE low WHEN 1 THEN '00:00' ELSE '24:00' END::time, CASE low WHEN 1 THEN '-infinity' ELSE 'infinity' END::timestamp,
       CASE low WHEN 1 THEN '-infinity' ELSE 'infinity' END::timestamptz, (v / 100)::money,
       CASE low WHEN 1 THEN '-infinity' ELSE 'NaN' END::float4, CASE low WHEN 1 THEN '-infinity' ELSE 'NaN' END::float8,
       CASE low WHEN 1 THEN '0/0' ELSE 'FFFFFFFF/FFFFFFFF' END::pg_lsn, repeat('z', low), NULL, low, 'last'
  FROM generate_series(1, 20) i, generate_series(0, 1) low,
       LATERAL (SELECT CASE low WHEN 1 THEN -9223372036854775808 + i % 4 ELSE 9223372036854775807 - i % 5 END::int8 AS v) x;
INSERT INTO wtest.ranged (id, nn) SELECT i, i % 3 FROM generate_series(17300, 17400) i;

-- How many columns have such codes; behind some of which others go on.
SELECT k, wtest.property('ANALYZE, VERBOSE', format('SELECT * FROM wtest.ranged ORDER BY %s', k), 'Ranged Columns') AS columns
  FROM unnest(ARRAY['wide', 'wide, small', 'i4, i4 DESC, small', 'tz, wide', 'i4, i2, b, nn', 'small, c, id', 'tz, n, id',
                    'c, wide', 'u, small', 'n, small']) k;

-- All orders, with little memory and with enough, in the stores that there are.
SELECT k, string_agg(DISTINCT wtest.compare(format('SELECT * FROM wtest.%s ORDER BY %s, id', r, k)), '; ') AS answer
  FROM unnest(ARRAY['wide, small', 'wide DESC, small NULLS FIRST', 'small, wide DESC', 'small NULLS FIRST, nn DESC', 'nn DESC, i4, i2',
                    'i4, i2 DESC, b, ch, o', 'b DESC NULLS LAST, ch DESC, o DESC, d DESC', 'd, t, ts', 'tz DESC, m, f4', 'f4, f8 DESC, l',
                    'f8 NULLS FIRST, wide', 'l DESC, small, c', 'm, c DESC, small', 'i4 DESC, u, n', 'i2, n DESC, wide', 'ts, c COLLATE "und-x-icu", nn']) k,
       unnest(ARRAY['ranged', 'within']) r
 WHERE r = 'ranged' OR k LIKE 'wide, %'
 GROUP BY k ORDER BY k;
SELECT store, work_mem, keys, k, wtest.compare_as_set('SELECT * FROM wtest.ranged ORDER BY ' || k) AS answer
  FROM (VALUES ('spool', '256kB', 'auto'), ('spool', '1MB', 'auto'), ('heap', '64kB', 'table'), ('heap', '64kB', 'spool'),
               ('heap', '4MB', 'spool'), ('inline', '64kB', 'auto'), ('inline', '512kB', 'auto')) s(store, work_mem, keys),
       unnest(ARRAY['wide, small, id', 'small DESC, nn, id']) k,
       LATERAL (SELECT set_config('wiscsort.record_store', store, false), set_config('work_mem', work_mem, false),
                       set_config('wiscsort.debug_tie_keys', keys, false) OFFSET 0) x
 ORDER BY store, work_mem, keys, k;
RESET wiscsort.record_store;
RESET wiscsort.debug_tie_keys;

-- Few rows, none, nulls only, one value only.
SET work_mem = '64kB';
SELECT f, wtest.compare('SELECT wide, small, id FROM wtest.ranged WHERE ' || f || ' ORDER BY wide, small DESC, id') AS answer
  FROM unnest(ARRAY['id < 70', 'id < 3', 'id < 0', 'wide IS NULL', 'small = 5', 'id > 16900', 'small IS NULL OR id % 100 = 0']) f;

-- Backward, to a mark, once for each row of another table, and in parallel.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM wtest.ranged ORDER BY small, wide, id;
MOVE LAST FROM c;
FETCH BACKWARD 4 FROM c;
FETCH ABSOLUTE 9000 FROM c;
FETCH FIRST FROM c;
ROLLBACK;
SELECT wtest.compare($$SELECT a.id, b.id AS other FROM wtest.ranged a JOIN wtest.within b USING (small, i4)
  WHERE a.id % 40 = 0 AND b.id % 3 = 0 ORDER BY small, i4, a.id, b.id$$) AS joined,
       wtest.compare($$SELECT g, x.id FROM generate_series(1, 5) g, LATERAL (SELECT id FROM wtest.ranged
  WHERE id % 50 = g OR id > 17300 ORDER BY small, wide, id OFFSET 0) x$$) AS again;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT wtest.compare($$SELECT a.id, b.id AS other FROM wtest.ranged a JOIN wtest.ranged b USING (small, wide, nn)
  WHERE a.id > 16500 ORDER BY small, wide, nn, a.id, b.id$$) AS merged;
RESET enable_hashjoin;
RESET enable_nestloop;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
RESET wiscsort.debug_force;
SET work_mem = '64kB';
SELECT wtest.compare_as_set('SELECT id FROM wtest.ranged ORDER BY wide, small, id') AS parallel;
SELECT bool_or(line ~ 'Gather Merge') AS gather_merge
  FROM wtest.plan('SELECT array_agg(s::text) FROM (SELECT id FROM wtest.ranged ORDER BY wide, small, id) s') line;

-- Keys of other columns that fit their prefixes, until rows come late whose keys go on behind: texts, numbers, codes.
SET wiscsort.debug_force = on;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE wtest.fits AS
SELECT i AS id, left(md5((i % 700)::text), 3) COLLATE "C" AS c, (i % 900 / 4.0)::numeric AS n, ARRAY[i % 7] AS a, repeat('p', i % 40) AS pad
  FROM generate_series(1, 20000) i;
ALTER TABLE wtest.fits ALTER id SET NOT NULL;
CREATE TABLE wtest.goes_on (LIKE wtest.fits);
INSERT INTO wtest.goes_on SELECT * FROM wtest.fits;
INSERT INTO wtest.goes_on
SELECT 20000 + i, 'ffffffffffff' || lpad((500 - i)::text, 4, '0'), 1 + (500 - i) * 1e-28, ARRAY[3, 500 - i], 'late' FROM generate_series(1, 400) i;
SELECT r, k, wtest.compare(format('SELECT * FROM wtest.%s ORDER BY %s, id', r, k)) AS answer
  FROM unnest(ARRAY['fits', 'goes_on']) r, unnest(ARRAY['c', 'c DESC', 'n', 'n DESC NULLS LAST', 'a', 'a DESC']) k ORDER BY r, k;
SELECT store, work_mem, k, wtest.compare_as_set(format('SELECT * FROM wtest.goes_on ORDER BY %s, id', k)) AS answer
  FROM (VALUES ('spool', '256kB'), ('heap', '64kB'), ('inline', '64kB'), ('inline', '512kB')) s(store, work_mem),
       unnest(ARRAY['c', 'n', 'a']) k,
       LATERAL (SELECT set_config('wiscsort.record_store', store, false), set_config('work_mem', work_mem, false) OFFSET 0) x
 ORDER BY store, work_mem, k;
RESET wiscsort.record_store;

-- Values of more than eight bytes, of which those that come late have no room in a prefix, and tie.
CREATE TABLE wtest.spans AS
SELECT i AS id, (hashint4(i) % 7) * interval '3 days 1 hour' AS iv, timetz '08:00+01' + i % 50 * interval '1 minute' AS zt,
       hashint4(i + 1) AS n
  FROM generate_series(1, 17000) i;
SET wiscsort.record_store = spool;
SELECT k, wtest.property('ANALYZE, VERBOSE', format('SELECT * FROM wtest.spans ORDER BY %s', k), 'Ranged Columns') AS columns
  FROM unnest(ARRAY['iv', 'iv, n', 'zt', 'zt, n', 'iv, zt', 'n, iv']) k;
INSERT INTO wtest.spans
SELECT 17000 + i, CASE i % 4 WHEN 0 THEN interval '100000000 years' WHEN 1 THEN interval '-100000000 years' ELSE i % 7 * interval '1 year' END,
       CASE WHEN i % 3 > 0 THEN timetz '23:59+15' END, hashint4(-i)
  FROM generate_series(1, 8000) i;
SELECT k, wtest.compare(format('SELECT iv, zt, n FROM wtest.spans ORDER BY %s', k)) AS answer
  FROM unnest(ARRAY['iv, n', 'iv DESC, n', 'zt, n', 'zt DESC, n DESC', 'n, iv, zt', 'iv, zt, n', 'iv, id']) k;
RESET wiscsort.record_store;

DROP TABLE wtest.ranged, wtest.within, wtest.fits, wtest.goes_on, wtest.spans;
