-- Sorts above hash joins, whose hash tables are brought into the cache page by page of the scanned table.
LOAD 'wiscsort';
SET max_parallel_workers_per_gather = 0;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET enable_memoize = off;
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;

-- Hash tables of some MB: smaller ones are left to the processor.
CREATE TABLE wtest.j_customer (id int8, code text, nation int, name text);
INSERT INTO wtest.j_customer SELECT i, 'c' || i, i % 25, repeat('n', 150) FROM generate_series(1, 8000) i;
CREATE TABLE wtest.j_item (a int, b int8, name text);
INSERT INTO wtest.j_item SELECT i, i % 7, repeat('p', 150) FROM generate_series(1, 8000) i;
CREATE TABLE wtest.j_sale (gone int, id int, customer int, code varchar(12), a int, b int8);
INSERT INTO wtest.j_sale SELECT 0, i, CASE WHEN i % 10 > 0 THEN (i * 7919::int8) % 8000 + 1 END, 'c' || (i * 104729::int8) % 9000,
                              (i * 31::int8) % 8000 + 1, (i * 31::int8) % 8000 % 7 FROM generate_series(1, 12000) i;
ALTER TABLE wtest.j_sale DROP COLUMN gone;
ALTER TABLE wtest.j_sale ADD COLUMN later int8 DEFAULT 17;
DELETE FROM wtest.j_sale WHERE id % 11 = 0;
UPDATE wtest.j_sale SET later = id WHERE id % 13 = 0;
ANALYZE wtest.j_customer;
ANALYZE wtest.j_item;
ANALYZE wtest.j_sale;

-- Every kind of join, the sale outside. Of rows that tie all is told.
SELECT kind, wtest.compare(replace('SELECT s.id, s.later, c.id AS c, c.name FROM wtest.j_sale s KIND JOIN wtest.j_customer c ON c.id = s.customer ORDER BY s.b, s.id, c.id',
                                   'KIND', kind))
  FROM unnest(ARRAY['INNER', 'LEFT', 'RIGHT', 'FULL']) kind;
SELECT wtest.compare('SELECT s.id FROM wtest.j_sale s WHERE EXISTS (SELECT FROM wtest.j_customer c WHERE c.id = s.customer AND c.nation < 20) ORDER BY s.b, s.id') AS semi,
       wtest.compare('SELECT s.id FROM wtest.j_sale s WHERE NOT EXISTS (SELECT FROM wtest.j_customer c WHERE c.id = s.customer AND c.nation < 20) ORDER BY s.b, s.id') AS anti;

-- Keys of other kinds: two columns, text, a column that older rows do not have, and conditions.
SELECT wtest.compare('SELECT s.id, p.name FROM wtest.j_sale s JOIN wtest.j_item p ON p.a = s.a AND p.b = s.b ORDER BY s.customer, s.id') AS two,
       wtest.compare('SELECT s.id, c.name FROM wtest.j_sale s LEFT JOIN wtest.j_customer c ON c.code = s.code ORDER BY s.b, s.id') AS varchar,
       wtest.compare('SELECT s.id, c.name FROM wtest.j_sale s JOIN wtest.j_customer c ON c.id = s.later ORDER BY s.b, s.id') AS later,
       wtest.compare('SELECT s.id, c.name FROM wtest.j_sale s JOIN wtest.j_customer c ON c.id = s.customer AND c.nation + s.b > 9 WHERE s.id % 3 = 1 ORDER BY s.b, s.id') AS conditions;

-- Texts that are not in the row as they are, and a collation by which different bytes are equal.
CREATE TABLE wtest.j_letter (id int, code text, short text);
ALTER TABLE wtest.j_letter ALTER short SET STORAGE EXTERNAL;
INSERT INTO wtest.j_letter SELECT i, repeat('c' || i, 2000), repeat(md5(i::text), 80) FROM generate_series(1, 300) i;
INSERT INTO wtest.j_letter SELECT i, 'C' || i, 'c' FROM generate_series(301, 6000) i;
ANALYZE wtest.j_letter;
SELECT wtest.compare('SELECT a.id, b.id AS b FROM wtest.j_letter a JOIN wtest.j_letter b ON a.code = b.code ORDER BY a.id % 5, a.id') AS compressed,
       wtest.compare('SELECT a.id, b.id AS b FROM wtest.j_letter a JOIN wtest.j_letter b ON a.short = b.short WHERE a.id < 310 ORDER BY a.id % 5, a.id, b.id') AS external,
       wtest.compare('SELECT a.id, c.id AS c FROM wtest.j_letter a JOIN wtest.j_customer c ON a.code = c.code COLLATE wtest_nocase ORDER BY a.id % 5, a.id') AS nocase;

-- Joins above one another; a join by a column of another join's table; the same sort again and again.
SELECT wtest.compare('SELECT s.id, c.name, p.name AS p FROM wtest.j_sale s JOIN wtest.j_customer c ON c.id = s.customer JOIN wtest.j_item p ON p.a = s.a AND p.b = s.b ORDER BY s.b, s.id') AS both,
       wtest.compare('SELECT s.id, c.name, p.name AS p FROM wtest.j_sale s LEFT JOIN wtest.j_customer c ON c.id = s.customer LEFT JOIN wtest.j_item p ON p.a = c.id ORDER BY s.b, s.id') AS through,
       wtest.compare('SELECT x, t.id FROM generate_series(1, 3) x CROSS JOIN LATERAL (SELECT s.id FROM wtest.j_sale s JOIN wtest.j_customer c ON c.id = s.customer WHERE s.b < x ORDER BY s.b, s.id OFFSET 0) t') AS again;

-- A join that ends before it has hashed a row, below one that goes on.
CREATE TABLE wtest.j_event (id int, sale int);
INSERT INTO wtest.j_event SELECT i, i FROM generate_series(1, 20000) i;
ANALYZE wtest.j_event;
SELECT wtest.compare('SELECT e.id, c.id AS c FROM (wtest.j_event e JOIN wtest.j_sale s ON s.id = e.sale AND sign(s.b - 100) <> -1) FULL JOIN wtest.j_customer c ON c.id = e.id ORDER BY c.nation, c.id') AS empty;

-- Collations that do not determine one: an error if there is something to compare, as without us.
CREATE TABLE wtest.j_none (code text COLLATE "POSIX");
SELECT wtest.compare('SELECT c.id FROM (SELECT id, code COLLATE "C" AS code FROM wtest.j_letter) c LEFT JOIN wtest.j_none n ON c.code = n.code COLLATE "C" ORDER BY c.id') AS determined;
CREATE TABLE wtest.j_c (id int, code text COLLATE "C");
INSERT INTO wtest.j_c SELECT id, short FROM wtest.j_letter;
SELECT c.id FROM wtest.j_c c JOIN wtest.j_none n ON c.code = n.code ORDER BY c.id;
INSERT INTO wtest.j_none VALUES ('c');
SELECT c.id FROM wtest.j_c c JOIN wtest.j_none n ON c.code = n.code ORDER BY c.id;

-- A text and a name in one class: what ANALYZE knows of the one is not taken for the other.
CREATE TABLE wtest.j_name (n name, id int);
INSERT INTO wtest.j_name SELECT (ARRAY['bob', 'dora', 'anna', 'zoe'])[1 + i % 4] || i % 60, i FROM generate_series(1, 3000) i;
CREATE TABLE wtest.j_text (x text COLLATE "C", id int);
INSERT INTO wtest.j_text SELECT (ARRAY['bob', 'dora', 'anna', 'zoe'])[1 + i % 4] || i, i FROM generate_series(1, 3000) i;
ANALYZE wtest.j_name, wtest.j_text;
SET enable_hashjoin = off;
SELECT wtest.compare('SELECT t.x, s.id FROM wtest.j_text t JOIN wtest.j_name s ON t.x = s.n ORDER BY s.id') AS name,
       wtest.compare('SELECT t.x, s.id FROM wtest.j_name s JOIN wtest.j_text t ON s.n = t.x ORDER BY s.id') AS text;
RESET enable_hashjoin;

-- What EXPLAIN tells: with one batch, the matches of every row are prefetched, once for each join.
SET work_mem = '64MB';
CREATE FUNCTION wtest.prefetched(query text) RETURNS text
LANGUAGE sql AS $$ SELECT wtest.property('ANALYZE', query, 'Probes Prefetched') $$;
SELECT wtest.prefetched('SELECT s.id, p.name FROM wtest.j_sale s JOIN wtest.j_item p USING (a) ORDER BY s.id')::int - (SELECT count(*) FROM wtest.j_sale) AS one,
       wtest.prefetched('SELECT s.id, c.name, p.name AS p FROM wtest.j_sale s LEFT JOIN wtest.j_customer c ON c.id = s.customer JOIN wtest.j_item p USING (a) ORDER BY s.id')::int
       - (SELECT count(*) + count(customer) FROM wtest.j_sale) AS two,
       wtest.prefetched('SELECT s.id, c.name FROM wtest.j_sale s LEFT JOIN wtest.j_customer c USING (code) ORDER BY s.id')::int - (SELECT count(*) FROM wtest.j_sale) AS varchar,
       wtest.prefetched('SELECT s.id FROM wtest.j_sale s ORDER BY s.id') AS none,
       wtest.prefetched('SELECT s.id, p.name FROM wtest.j_sale s JOIN wtest.j_item p ON p.a = s.a + 1 ORDER BY s.id') AS expression;
-- If few rows come out, it pauses.
SELECT wtest.prefetched('SELECT s.id, p.name FROM wtest.j_sale s LEFT JOIN wtest.j_item p USING (a) WHERE sign(s.id % 50 - 49) <> -1 ORDER BY s.id')::int BETWEEN 1 AND (SELECT count(*) / 2 FROM wtest.j_sale) AS paused;
-- Many batches: rows are looked up when the scan is over.
SET work_mem = '64kB';
SELECT wtest.prefetched('SELECT s.id, p.name FROM wtest.j_sale s JOIN wtest.j_item p USING (a) ORDER BY s.id') AS batches;
RESET work_mem;

-- WiscSort has no process of a parallel merge join sort all of a table: that would be done as often as there are processes.
CREATE TABLE wtest.j_sold AS
SELECT i AS id, CASE WHEN i % 2048 = 0 THEN 1 ELSE 2 + i * 7919 % 10007 END AS customer, i % 1024 AS day, repeat('x', 60) AS note
  FROM generate_series(1, 60000) i;
VACUUM ANALYZE wtest.j_sold;
SET work_mem = '256kB';
SET wiscsort.debug_force = off;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_mergejoin = on;
SET enable_hashjoin = off;
SELECT wtest.plan('SELECT a.id, b.id FROM wtest.j_sold a JOIN wtest.j_sold b ON a.customer = b.customer AND a.day = b.day AND a.id < b.id');

-- An expression as a key: no row is evaluated that core's joins and windows do not let through (division by zero).
SET max_parallel_workers_per_gather = 0;
SET work_mem = '64kB';
SET wiscsort.debug_force = on;
CREATE TABLE wtest.j_of_kind AS SELECT i AS id, i % 2 AS kind, i % 100 AS d FROM generate_series(1, 20000) i;
CREATE TABLE wtest.j_kind AS SELECT 1 AS kind;
CREATE TABLE wtest.j_value AS SELECT i AS c FROM generate_series(0, 20000) i;
CREATE TABLE wtest.j_nobody AS SELECT i AS g FROM generate_series(1, 5) i;
ANALYZE wtest.j_of_kind, wtest.j_kind, wtest.j_value, wtest.j_nobody;
DELETE FROM wtest.j_nobody;
SELECT query, wtest.compare_as_set('SELECT count(*) FROM ' || query) FROM (VALUES
  ('wtest.j_value LEFT JOIN (wtest.j_of_kind JOIN wtest.j_kind USING (kind)) ON c = id / d'),
  ('(wtest.j_of_kind CROSS JOIN wtest.j_nobody) FULL JOIN wtest.j_value ON c = id / d'),
  ('wtest.j_value WHERE c IN (SELECT id / d FROM wtest.j_of_kind JOIN wtest.j_kind USING (kind))'),
  ('wtest.j_value v WHERE NOT EXISTS (SELECT FROM wtest.j_of_kind JOIN wtest.j_kind USING (kind) WHERE v.c = id / d)'),
  ('wtest.j_of_kind JOIN wtest.j_kind USING (kind) JOIN wtest.j_value ON c = id / d'),
  ('(SELECT row_number() OVER (ORDER BY id) AS n FROM wtest.j_of_kind ORDER BY id, 1 / d) s WHERE n <= 3'),
  ('((SELECT id / (id - 15000) FROM wtest.j_of_kind LIMIT 10000) UNION (SELECT c FROM wtest.j_value)) s')) q(query);
-- Of two tables the merge join needs it in any case.
DELETE FROM wtest.j_of_kind WHERE d = 0;
SELECT wtest.compare_as_set('SELECT count(*) FROM wtest.j_value JOIN wtest.j_of_kind ON c = id / d') AS two;
