-- Several key columns, keys longer than the prefix, ties, and rows of every make.
LOAD 'wiscsort';
SELECT setseed(0.5);

CREATE TEMP TABLE m AS
SELECT i AS id,
       (random() * 4)::int AS few,
       CASE WHEN random() > 0.1 THEN (random() * 100)::int8 END AS big,
       'https://example.invalid/' || (random() * 20)::int || '/' || repeat('x', (random() * 30)::int) COLLATE "C" AS url,
       repeat('p', 9) || chr(97 + (random() * 3)::int) COLLATE "C" AS ten,
       (random() * 3)::int::numeric / 3 AS num,
       random() AS f,
       CASE WHEN random() > 0.2 THEN date '2020-01-01' + (random() * 10)::int END AS d,
       ARRAY[(random() * 2)::int, (random() * 2)::int] AS arr,
       md5(random()::text) AS pad
  FROM generate_series(1, 4000) i;
ANALYZE m;

-- Directions and nulls of each column are its own.
SELECT wtest.compare('SELECT * FROM m ORDER BY few, big, id') AS asc_asc,
       wtest.compare('SELECT * FROM m ORDER BY few DESC, big NULLS FIRST, id') AS desc_first,
       wtest.compare('SELECT * FROM m ORDER BY few, big DESC NULLS LAST, id DESC') AS desc_last,
       wtest.compare('SELECT * FROM m ORDER BY d NULLS FIRST, big DESC, few, id') AS four,
       wtest.compare('SELECT * FROM m ORDER BY f DESC, d, big, few, url, ten, id') AS seven;

-- Keys that share more than ten bytes.
SELECT wtest.compare('SELECT * FROM m ORDER BY url, id') AS urls,
       wtest.compare('SELECT url FROM m ORDER BY url DESC') AS urls_alone,
       wtest.compare('SELECT * FROM m ORDER BY url DESC, ten, id DESC') AS urls_ten,
       wtest.compare('SELECT * FROM m ORDER BY ten, url, id') AS ten_urls,
       wtest.compare('SELECT * FROM m ORDER BY left(url, 23), id') AS all_alike;

-- Shared prefixes of every length around the ten bytes of an entry; one text is the start of another.
CREATE TEMP TABLE edges AS
SELECT repeat('a', n) || tail AS t, row_number() OVER ()::int AS id
  FROM generate_series(0, 24) n, unnest(ARRAY['', 'a', 'b', E'\x01', E'a\x01', E'b\x7f', 'é']) tail;
SELECT wtest.compare('SELECT t, id FROM edges ORDER BY t COLLATE "C", id') AS ascending,
       wtest.compare('SELECT t, id FROM edges ORDER BY t COLLATE "C" DESC, id') AS descending,
       wtest.compare('SELECT t, id FROM edges ORDER BY t::bytea, id') AS bytes,
       wtest.compare('SELECT t, id FROM edges ORDER BY t::bytea DESC, id DESC') AS bytes_descending,
       wtest.compare('SELECT t, id FROM edges ORDER BY t COLLATE "C", t::bytea DESC, id') AS twice;

-- Compared columns before, after and between normalised ones.
SELECT wtest.compare('SELECT * FROM m ORDER BY num, id') AS compared_first,
       wtest.compare('SELECT * FROM m ORDER BY few, num DESC, id') AS compared_last,
       wtest.compare('SELECT * FROM m ORDER BY num, big, arr DESC, url, id') AS mixed,
       wtest.compare('SELECT * FROM m ORDER BY url COLLATE "und-x-icu", num, id') AS icu,
       wtest.compare('SELECT * FROM m ORDER BY few, url COLLATE "und-x-icu" DESC, d NULLS FIRST, id') AS icu_middle,
       wtest.compare('SELECT * FROM m ORDER BY ROW(few, url), num, id') AS composite;

-- Values that compare equal but differ must not decide before the second key does.
CREATE TEMP TABLE alike AS
SELECT i AS id,
       (ARRAY['0', '-0', 'NaN', '1'])[1 + i % 4]::float8 AS f,
       (ARRAY['1', '1.0', '1.00', '2'])[1 + i % 4]::numeric AS n,
       (ARRAY['a', 'a ', 'a   ', 'b'])[1 + i % 4]::char(5) COLLATE "C" AS c,
       (ARRAY['a', 'A', 'b', 'B'])[1 + i % 4] COLLATE wtest_nocase AS t,
       (ARRAY['1 month', '30 days', '720 hours', '31 days'])[1 + i % 4]::interval AS v
  FROM generate_series(1, 1000) i;
SELECT wtest.compare('SELECT * FROM alike ORDER BY f, id') AS float8,
       wtest.compare('SELECT * FROM alike ORDER BY f DESC, id DESC') AS float8_desc,
       wtest.compare('SELECT * FROM alike ORDER BY n, id') AS "numeric",
       wtest.compare('SELECT * FROM alike ORDER BY c, id') AS bpchar,
       wtest.compare('SELECT * FROM alike ORDER BY t, id') AS nondeterministic,
       wtest.compare('SELECT * FROM alike ORDER BY v, n DESC, t, id') AS "interval";

-- Ties: the same rows, each once, and the keys in order.
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;
SELECT wtest.compare('SELECT few FROM m ORDER BY few') AS few,
       wtest.compare('SELECT 1 AS one FROM m ORDER BY 1 + 0 * few') AS all_equal,
       wtest.uses('SELECT * FROM m ORDER BY few');
SELECT count(*), count(DISTINCT id), sum(hashtext(s::text)::int8) = (SELECT sum(hashtext(m::text)::int8) FROM m) AS same_rows
  FROM (SELECT * FROM m ORDER BY few OFFSET 0) s;

-- Operators other than < and >.
SELECT wtest.compare('SELECT * FROM m ORDER BY url USING ~<~, id') AS pattern_ascending,
       wtest.compare('SELECT * FROM m ORDER BY url USING ~>~, id') AS pattern_descending,
       wtest.compare('SELECT * FROM m ORDER BY big USING >, id USING <') AS greater_first;

-- Rows with dropped columns, columns added with a default, and rows older than the added column.
CREATE TEMP TABLE changed (a int, gone text, b text, gone_too int8);
INSERT INTO changed SELECT i % 50, 'x' || i, 'b' || i, i FROM generate_series(1, 500) i;
ALTER TABLE changed DROP COLUMN gone;
ALTER TABLE changed ADD COLUMN late int DEFAULT 7, ADD COLUMN later text;
ALTER TABLE changed DROP COLUMN gone_too;
INSERT INTO changed SELECT i % 50, 'c' || i, i, 'l' || i FROM generate_series(501, 1000) i;
SELECT wtest.compare('SELECT * FROM changed ORDER BY a, b COLLATE "C"') AS columns,
       wtest.compare('SELECT changed FROM changed ORDER BY late DESC, b COLLATE "C"') AS whole_row,
       wtest.compare('SELECT later, changed, a FROM changed ORDER BY later COLLATE "C" NULLS FIRST, b COLLATE "C"') AS both;

-- Values out of line, compressed, and wider than work_mem.
CREATE TEMP TABLE wide (id int, short text, long text, plain text);
ALTER TABLE wide ALTER long SET STORAGE EXTERNAL, ALTER plain SET STORAGE PLAIN;
INSERT INTO wide
SELECT i, md5(i::text), repeat(md5(i::text), CASE WHEN i % 40 = 0 THEN 6000 ELSE 100 END), repeat(md5((i * 7)::text), i % 60)
  FROM generate_series(1, 400) i;
SELECT wtest.compare('SELECT id, short, md5(long), length(long), plain FROM wide ORDER BY short COLLATE "C"') AS by_short,
       wtest.compare('SELECT id, md5(long), plain FROM wide ORDER BY long COLLATE "C" DESC') AS by_long,
       wtest.compare('SELECT id, md5(long) FROM wide ORDER BY long COLLATE "und-x-icu"') AS by_long_icu,
       wtest.compare('SELECT id, md5(v) FROM (SELECT id, long || plain AS v FROM wide) s ORDER BY v COLLATE "C"') AS by_computed,
       wtest.compare('SELECT md5(s::text) FROM (SELECT id, repeat(long, 2) AS v FROM wide WHERE id % 40 < 4 OFFSET 0) s ORDER BY v COLLATE "C" DESC') AS row_over_work_mem;

-- Nothing but the key, or not even that, in the result; system columns.
SELECT wtest.compare('SELECT FROM m ORDER BY id') AS no_columns,
       wtest.compare('SELECT ctid, id FROM m ORDER BY url, id') AS ctid,
       wtest.compare('SELECT tableoid::regclass, xmax, m FROM m ORDER BY big, id') AS system_columns,
       wtest.compare('SELECT id, few + id, upper(url) FROM m ORDER BY -id') AS expressions;

-- By value and by reference, fixed and variable, of every alignment.
CREATE TEMP TABLE layout AS
SELECT i AS id, (i % 3 = 0) AS b, (i % 100)::int2 AS s, 'c'::"char" AS ch, i::float4 AS f4, i::float8 AS f8,
       md5(i::text)::uuid AS u, ('n' || i)::name AS n, ('x' || i)::varchar AS v, i::bit(3) AS bits,
       point(i, -i) AS p, NULL::int AS nothing, make_interval(days => i) AS iv, '{}'::text[] AS arr
  FROM generate_series(1, 1000) i;
SELECT wtest.compare('SELECT * FROM layout ORDER BY u') AS by_uuid,
       wtest.compare('SELECT * FROM layout ORDER BY b, n DESC') AS by_name,
       wtest.compare('SELECT * FROM layout ORDER BY nothing, iv DESC') AS by_interval;

-- Rows with few different keys, which prefixes do not tell, in every run; and small groups whose keys go on
-- alike behind what is looked at first.
CREATE TABLE wtest.duplicates AS
SELECT i AS id, decode(lpad(to_hex(hashint4(i)::int8 & 1023), 26, '0'), 'hex') AS k0,
       timestamptz '2020-01-01' + (hashint4(-i) & 2047) * interval '1 s' AS k1,
       (repeat('path/', 20 * (i % 2)) || (hashint4(i + 7) & 255)) COLLATE "C" AS k2,
       ((hashint4(i) & 511) * 1000000.5)::numeric AS k3
  FROM generate_series(1, 30000) i;
ANALYZE wtest.duplicates;
SELECT store, kb, wtest.compare_as_set('SELECT k0 FROM wtest.duplicates ORDER BY k0') AS bytes,
       wtest.compare_as_set('SELECT k1, k2 FROM wtest.duplicates ORDER BY k1 DESC, k2') AS groups,
       wtest.compare_as_set('SELECT k3, k2 FROM wtest.duplicates ORDER BY k3, k2 DESC') AS numbers
  FROM (VALUES ('spool', '64kB'), ('spool', '512kB'), ('heap', '64kB'), ('inline', '64kB'), ('inline', '512kB'))
       s(store, kb), set_config('wiscsort.record_store', store, false) a, set_config('work_mem', kb, false) b;
RESET wiscsort.record_store;
RESET work_mem;

-- Among rows that tie, few that do not share what the others do: before these, where a comparator decides in the
-- end, and behind them, where bytes do.
CREATE TABLE wtest.strangers AS
SELECT i AS id, CASE WHEN i > 20000 THEN 7 ELSE hashint8extended(i, 1) END AS k0, (i % 3)::int8 AS k1,
       ('shared s' || CASE
           WHEN j = 0 THEN repeat('m', 20) || repeat('long', 100)
           WHEN j IN (1, 2, 3, 4, 6, 7, 8) THEN '!' || repeat('x', 35) || j % 2
           WHEN j IN (11, 12, 13) THEN '~' || (1000 - j) || repeat('x', 35)
           ELSE repeat('m', 20) || md5(i::text) || repeat('y', 300) END) COLLATE "C" AS k2,
       CASE WHEN j IN (1, 2, 3, 4, 6, 7, 8) THEN 5 ELSE hashint4(i) END::numeric AS k3
  FROM generate_series(1, 20900) i, LATERAL (SELECT (i - 20001) / 3 AS j) l;
ANALYZE wtest.strangers;
SELECT store, wtest.compare('SELECT k0, k1, k2, k3 FROM wtest.strangers ORDER BY k0, k1, k2, k3') AS answer
  FROM (VALUES ('spool'), ('heap'), ('inline')) s(store), set_config('wiscsort.record_store', store, false);
RESET wiscsort.record_store;

-- Many rows of each value that only a comparator orders: the columns behind order them, wherever the rows are.
CREATE TYPE wtest.dear AS (a oidvector, b text COLLATE "C");
CREATE TABLE wtest.manifold AS
SELECT i AS id,
       CASE WHEN i % 50 > 0 THEN ROW((i / 1500)::text::oidvector, 'x')::wtest.dear END AS late,
       ROW((i % 7)::text::oidvector, 'y')::wtest.dear AS few,
       CASE WHEN i % 11 > 0 THEN hashint4(i) % 1000 END AS n,
       ('https://example.invalid/' || i * 7919 % 501) COLLATE "C" AS url,
       ('Name ' || i * 7919 % 499) COLLATE "und-x-icu" AS name,
       (i * 7919 % 97)::numeric / 7 AS num
  FROM generate_series(1, 6000) i;
ANALYZE wtest.manifold;
SELECT store,
       wtest.compare('SELECT * FROM wtest.manifold ORDER BY late, n DESC, id') AS int,
       wtest.compare('SELECT * FROM wtest.manifold ORDER BY late DESC, url, n NULLS FIRST, id') AS text,
       wtest.compare('SELECT * FROM wtest.manifold ORDER BY late, name DESC, id DESC') AS icu,
       wtest.compare('SELECT * FROM wtest.manifold ORDER BY late NULLS FIRST, few, num DESC, id') AS two,
       wtest.compare('SELECT * FROM wtest.manifold ORDER BY num, late, few DESC, name, n, id') AS behind
  FROM (VALUES ('spool'), ('heap')) s(store), set_config('wiscsort.record_store', store, false);
RESET wiscsort.record_store;
