-- Where WiscSort stands in a plan, and where core keeps its own sort.
LOAD 'wiscsort';
SET max_parallel_workers_per_gather = 0;
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;

CREATE TABLE wtest.a (id int NOT NULL, k int, v int, s text COLLATE "C");
CREATE TABLE wtest.b (id int NOT NULL, k int, w int);
INSERT INTO wtest.a SELECT i, (i * 7919) % 5003, i % 10, md5(i::text) FROM generate_series(1, 5000) i;
INSERT INTO wtest.b SELECT i, (i * 6007) % 5003, i % 7 FROM generate_series(1, 3000) i;
CREATE TABLE wtest.part (id int NOT NULL, k int, v int) PARTITION BY RANGE (id);
CREATE TABLE wtest.part_1 PARTITION OF wtest.part FOR VALUES FROM (0) TO (2000);
CREATE TABLE wtest.part_2 PARTITION OF wtest.part FOR VALUES FROM (2000) TO (4000);
INSERT INTO wtest.part SELECT i, (i * 7919) % 5003, i % 10 FROM generate_series(1, 3999) i;
ANALYZE wtest.a, wtest.b, wtest.part;
CREATE FUNCTION wtest.make_part(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE wtest.many_%s PARTITION OF wtest.many FOR VALUES FROM (%s) TO (%s)',
				   i, i * 1000, i * 1000 + 1000);
	RETURN i;
END $$;

-- ORDER BY on a base relation, with and without a filter and expressions.
SELECT * FROM wtest.plan('SELECT * FROM wtest.a ORDER BY k');
SELECT * FROM wtest.plan('SELECT id, v + 1 FROM wtest.a WHERE v < 5 ORDER BY k DESC, s NULLS FIRST');
SELECT * FROM wtest.plan('SELECT * FROM wtest.a ORDER BY k + v');
SELECT * FROM wtest.plan('SELECT id FROM wtest.a ORDER BY lower(s), k DESC NULLS LAST');

-- Over a join, an aggregate, a function, VALUES and set operations.
SET enable_mergejoin = off;
SET enable_nestloop = off;
SELECT * FROM wtest.plan('SELECT a.id, b.w FROM wtest.a JOIN wtest.b USING (id) ORDER BY b.k, a.k');
SELECT * FROM wtest.plan('SELECT v, count(*) FROM (SELECT v FROM wtest.a OFFSET 0) s GROUP BY ROLLUP (v) ORDER BY count(*) DESC');
SELECT * FROM wtest.plan('SELECT * FROM generate_series(1, 10) g ORDER BY g DESC');
SELECT * FROM wtest.plan('SELECT * FROM (VALUES (3), (1), (2)) v(x) ORDER BY x');
SELECT bool_or(line ~ 'WiscSort') AS ours, bool_or(line ~ '^ *Sort ') AS core
  FROM wtest.plan('SELECT id FROM wtest.a UNION ALL SELECT id FROM wtest.b ORDER BY 1') line;
SELECT * FROM wtest.plan('WITH c AS MATERIALIZED (SELECT * FROM wtest.a) SELECT * FROM c ORDER BY k');
RESET enable_nestloop;
RESET enable_mergejoin;

-- Merge joins.
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT * FROM wtest.plan('SELECT count(a.v), count(b.w) FROM wtest.a JOIN wtest.b ON a.k = b.k');
SELECT * FROM wtest.plan('SELECT count(a.v), count(b.w) FROM wtest.a LEFT JOIN wtest.b ON a.k = b.k');
SELECT * FROM wtest.plan('SELECT count(a.v), count(b.w) FROM wtest.a FULL JOIN wtest.b ON a.k = b.k');
RESET enable_nestloop;
RESET enable_hashjoin;

-- GROUP BY, DISTINCT and window functions.
SET enable_hashagg = off;
SELECT * FROM wtest.plan('SELECT k, count(*) FROM wtest.a GROUP BY k');
SELECT * FROM wtest.plan('SELECT DISTINCT k FROM wtest.a');
SELECT * FROM wtest.plan('SELECT DISTINCT ON (v) v, k FROM wtest.a ORDER BY v, k DESC');
SELECT * FROM wtest.plan('SELECT v, sum(k) OVER (PARTITION BY v ORDER BY id) FROM wtest.a');
SELECT * FROM wtest.plan('SELECT v, k, count(*) FROM wtest.a GROUP BY v, k ORDER BY count(*), v, k');
RESET enable_hashagg;

-- Subqueries, CTAS and INSERT.
SELECT * FROM wtest.plan('SELECT count(*) FROM (SELECT * FROM wtest.a ORDER BY k OFFSET 0) s');
SELECT * FROM wtest.plan('SELECT ARRAY(SELECT k FROM wtest.a ORDER BY k)');
SELECT * FROM wtest.plan('INSERT INTO wtest.b SELECT id, k, v FROM wtest.a ORDER BY k');
SELECT * FROM wtest.plan('SELECT * FROM wtest.a ORDER BY k FOR UPDATE');

-- Partitions: a sort of all, or a merge of sorted partitions.
SELECT line ~ '^(Custom Scan \(WiscSort\)|Merge Append)' AS sorted_above
  FROM wtest.plan('SELECT * FROM wtest.part ORDER BY k') line LIMIT 1;
SELECT bool_or(line ~ 'WiscSort') AS ours, bool_or(line ~ '^ *Sort ') AS core
  FROM wtest.plan('SELECT * FROM wtest.part ORDER BY k') line;
SELECT bool_or(line ~ 'WiscSort') AS ours, bool_or(line ~ '^ *Sort ') AS core
  FROM wtest.plan('SELECT * FROM wtest.part_1 ORDER BY k') line;

-- Under Gather Merge, where the planner finds it cheaper.
SET wiscsort.debug_force = off;
SET work_mem = '64kB';
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT * FROM wtest.plan('SELECT * FROM wtest.a ORDER BY k');
SET max_parallel_workers_per_gather = 0;
RESET work_mem;

-- One sort of all rows of many small partitions, not a merge of as many sorts, unless a LIMIT may end it early.
CREATE TABLE wtest.many (id int, k int, v text) PARTITION BY RANGE (id);
SELECT count(wtest.make_part(i)) FROM generate_series(0, 29) i;
INSERT INTO wtest.many SELECT i, hashint4(i), repeat('v', 60) || i FROM generate_series(0, 29999) i;
ANALYZE wtest.many;
SET work_mem = '64kB';
SELECT * FROM wtest.plan('SELECT * FROM wtest.many ORDER BY k') LIMIT 3;
SELECT * FROM wtest.plan('SELECT k + 1, v FROM wtest.many ORDER BY k OFFSET 0') LIMIT 3;
SELECT * FROM wtest.plan('SELECT * FROM wtest.many ORDER BY k LIMIT 2000') LIMIT 3;
SELECT * FROM wtest.plan('SELECT * FROM wtest.many ORDER BY k FOR UPDATE') LIMIT 3;
-- The same below windows, groups and merge joins; not where a window may stop, or a LIMIT above.
SELECT * FROM wtest.plan('SELECT v, rank() OVER (ORDER BY k) FROM wtest.many') LIMIT 3;
SELECT * FROM wtest.plan('SELECT k, string_agg(v, NULL) FROM wtest.many GROUP BY k') LIMIT 3;
BEGIN;
SET LOCAL enable_hashjoin = off;
SELECT line FROM wtest.plan('SELECT a.v, b.v FROM wtest.many a JOIN wtest.many b USING (k)') line WHERE line ~ 'Join|WiscSort|Merge|Material';
COMMIT;
SELECT * FROM wtest.plan('SELECT * FROM (SELECT v, row_number() OVER (ORDER BY k) AS n FROM wtest.many) s WHERE n < 10000') LIMIT 4;
SELECT * FROM wtest.plan('SELECT v, rank() OVER (ORDER BY k) FROM wtest.many LIMIT 20000') LIMIT 3;
CREATE VIEW wtest.many_checked AS
	SELECT count(*), sum(hashtextextended(v, k)), bool_and(before <= k) AS in_order
	  FROM (SELECT k, v, lag(k, 1, k) OVER () AS before FROM (SELECT * FROM wtest.many ORDER BY k OFFSET 0) s) w;
SELECT * FROM wtest.many_checked;
SET wiscsort.enable = off;
SELECT * FROM wtest.many_checked;
RESET wiscsort.enable;
DROP VIEW wtest.many_checked;
RESET work_mem;
DROP TABLE wtest.many;

-- An index that gives the order makes a sort needless.
CREATE INDEX a_id ON wtest.a (id);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT * FROM wtest.plan('SELECT * FROM wtest.a ORDER BY id');
-- Incremental Sort is core's.
SELECT * FROM wtest.plan('SELECT * FROM wtest.a ORDER BY id, k LIMIT 100');
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP INDEX wtest.a_id;

-- Few rows wanted: core's top-N sort.
SELECT * FROM wtest.plan('SELECT * FROM wtest.a ORDER BY k LIMIT 10');
SELECT * FROM wtest.plan('SELECT * FROM wtest.a ORDER BY k LIMIT 10 OFFSET 5');
SELECT * FROM wtest.plan('SELECT * FROM (SELECT * FROM wtest.a ORDER BY k LIMIT 10) s JOIN wtest.b USING (id) ORDER BY w LIMIT 3') LIMIT 2;
-- A LIMIT reaches through a subquery and a CTE, one that does not fit work_mem does not count, nor does one
-- that an aggregate or WITH TIES stands in front of.
SELECT * FROM wtest.plan('SELECT * FROM (SELECT * FROM wtest.a ORDER BY k) s LIMIT 10');
SELECT * FROM wtest.plan('WITH s AS (SELECT id + 1, k FROM wtest.a ORDER BY s) SELECT k FROM s LIMIT 10');
SET wiscsort.debug_force = on;
SELECT * FROM wtest.plan('SELECT * FROM wtest.a ORDER BY k LIMIT 10');
SELECT * FROM wtest.plan('SELECT * FROM (SELECT * FROM wtest.a ORDER BY k) s LIMIT 10');
SELECT * FROM wtest.plan('SELECT v, count(*) FROM (SELECT * FROM wtest.a ORDER BY k OFFSET 0) s GROUP BY v LIMIT 1');
-- The LIMIT may be of a level outside that has the same order, or even further outside; but not if that has
-- another order, or not all of the rows.
CREATE VIEW wtest.ordered AS SELECT id + 1 AS more, v, k, s FROM wtest.a ORDER BY k DESC, s;
SELECT q, wtest.uses(q)
  FROM unnest(ARRAY['SELECT * FROM wtest.ordered ORDER BY k DESC LIMIT 10',
                    'SELECT s, k FROM (SELECT s, random(), k FROM wtest.ordered) x ORDER BY k DESC, s LIMIT 10',
                    'SELECT * FROM (SELECT o.*, random() FROM wtest.ordered o) x LIMIT 10 OFFSET 5',
                    'SELECT * FROM wtest.ordered ORDER BY k LIMIT 10',
                    'SELECT * FROM wtest.ordered ORDER BY k DESC, s, v LIMIT 10',
                    'SELECT * FROM wtest.ordered ORDER BY k DESC NULLS LAST LIMIT 10',
                    'SELECT * FROM (SELECT s, random() AS r, k FROM wtest.ordered) x WHERE r < 2 ORDER BY k DESC LIMIT 10',
                    'SELECT * FROM (SELECT * FROM wtest.ordered OFFSET 5) x LIMIT 10',
                    'SELECT * FROM (SELECT * FROM wtest.ordered OFFSET 0) x LIMIT 10',
                    'SELECT * FROM (SELECT s, more, v FROM wtest.ordered UNION ALL SELECT s, v, id FROM wtest.a) x (s, m, c) ORDER BY c DESC LIMIT 10',
                    'SELECT k, count(*) FROM wtest.ordered GROUP BY k ORDER BY k DESC LIMIT 10',
                    'SELECT k, sum(more) OVER (ORDER BY k DESC) FROM wtest.ordered ORDER BY k DESC LIMIT 10']) q;
DROP VIEW wtest.ordered;
SELECT * FROM wtest.plan('SELECT k FROM wtest.a ORDER BY k FETCH FIRST 10 ROWS WITH TIES');
SET work_mem = '64kB';
SELECT * FROM wtest.plan('SELECT * FROM wtest.a ORDER BY k LIMIT 4000');
RESET work_mem;
SET wiscsort.debug_force = off;

-- The threshold: by default only what core would spill, which is nothing here.
RESET wiscsort.threshold;
SELECT * FROM wtest.plan('SELECT * FROM wtest.a ORDER BY k');
SET work_mem = '64kB';
SELECT wtest.uses('SELECT * FROM wtest.a ORDER BY k') AS spills;
SELECT wtest.uses('SELECT * FROM (SELECT id FROM wtest.a LIMIT 100) s ORDER BY id') AS fits;
SET wiscsort.threshold = '1GB';
SELECT wtest.uses('SELECT * FROM wtest.a ORDER BY k') AS under_threshold;
SET wiscsort.threshold = 0;

-- A scan that a setting disables is not dropped for a sort of its rows, which costs hardly more.
SET enable_seqscan = off;
SELECT bool_or(line ~ 'Hash Join') AS hash_join, bool_or(line ~ 'WiscSort') AS sorts
  FROM wtest.plan('SELECT count(a.s), count(b.w) FROM wtest.a JOIN wtest.b USING (id)') line;
RESET enable_seqscan;

-- WITH TIES sorts all rows, as core's does in spite of its price.
SELECT * FROM wtest.plan('SELECT -i FROM generate_series(1, 200000) i ORDER BY 1 FETCH FIRST 3 ROWS WITH TIES');
SELECT * FROM wtest.plan('SELECT -i FROM generate_series(1, 200000) i ORDER BY 1 FETCH FIRST 3 ROWS ONLY');

-- Off: core's plan.
SET wiscsort.debug_force = on;
SELECT bool_and(wtest.off(q)) AS all_off
  FROM unnest(ARRAY['SELECT * FROM wtest.a ORDER BY k',
                    'SELECT DISTINCT k FROM wtest.a',
                    'SELECT * FROM wtest.part ORDER BY k',
                    'SELECT v, count(*) FROM wtest.a GROUP BY v ORDER BY count(*) DESC']) q;
SET wiscsort.enable = off;
SELECT * FROM wtest.plan('SELECT * FROM wtest.a ORDER BY k');
SET wiscsort.enable = on;

-- enable_sort = off is about this sort, too: it does not displace a path without one.
CREATE INDEX a_k ON wtest.a (k);
SET wiscsort.debug_force = off;
SET enable_sort = off;
SET enable_bitmapscan = off;
SET random_page_cost = 50;
SELECT * FROM wtest.plan('SELECT * FROM wtest.a ORDER BY k');
RESET random_page_cost;
RESET enable_bitmapscan;
RESET enable_sort;
DROP INDEX wtest.a_k;

-- The same rows through all of these.
SET wiscsort.threshold = 0;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_hashagg = off;
SELECT wtest.compare('SELECT a.id, b.w FROM wtest.a JOIN wtest.b USING (id) ORDER BY b.k, a.k, a.id') AS over_join,
       wtest.compare('SELECT v, count(*) FROM wtest.a GROUP BY v ORDER BY count(*) DESC, v') AS over_aggregate,
       wtest.compare('SELECT * FROM generate_series(1, 3000) g ORDER BY md5(g::text) COLLATE "C"') AS over_function,
       wtest.compare('SELECT id, k FROM wtest.a UNION ALL SELECT id, w FROM wtest.b ORDER BY 2, 1') AS over_union;
SELECT wtest.compare('SELECT a.id AS a, b.id AS b FROM wtest.a JOIN wtest.b ON a.k = b.k ORDER BY a.id DESC, b.id') AS merge_join,
       wtest.compare('SELECT a.id AS a, b.id AS b FROM wtest.a FULL JOIN wtest.b ON a.k = b.k AND a.v = b.w ORDER BY a.id, b.id') AS full_join,
       wtest.compare('SELECT sum(a.id), b.k FROM wtest.a JOIN wtest.b ON a.v = b.w WHERE a.id < 300 AND b.id < 300 GROUP BY b.k ORDER BY b.k') AS many_to_many;
SELECT wtest.compare('SELECT k, count(*), min(id) FROM wtest.a GROUP BY k ORDER BY k') AS group_by,
       wtest.compare('SELECT DISTINCT v, k FROM wtest.a ORDER BY v, k') AS "distinct",
       wtest.compare('SELECT id, v, sum(k) OVER (PARTITION BY v ORDER BY id DESC), rank() OVER (ORDER BY k, id) FROM wtest.a ORDER BY id') AS windows,
       wtest.compare('SELECT * FROM wtest.part ORDER BY k, id') AS partitions;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_hashagg;
SET max_parallel_workers_per_gather = 2;
SELECT wtest.compare_as_set('SELECT * FROM wtest.a ORDER BY k, id') AS gather_merge,
       wtest.compare_as_set('SELECT id, v FROM wtest.part ORDER BY v, id DESC') AS gather_merge_partitions,
       wtest.compare_as_set('SELECT k, count(*) FROM (SELECT * FROM wtest.a ORDER BY s) t GROUP BY k ORDER BY 2, 1') AS with_aggregate;
SELECT bool_or(line ~ 'Gather Merge') AS gather_merge
  FROM wtest.plan('SELECT array_agg(s::text) FROM (SELECT * FROM wtest.a ORDER BY k, id) s') line;
RESET max_parallel_workers_per_gather;

-- What HAVING drops is not evaluated below it, and a key that is equal to a row's place is a column nevertheless.
CREATE TABLE wtest.sevenths AS SELECT id % 7 AS r FROM wtest.a;
ANALYZE wtest.sevenths;
SET enable_hashagg = off;
SELECT wtest.compare('SELECT id % 7 AS r, count(*) FROM wtest.a GROUP BY 1 HAVING max(id % 7) <> 0 ORDER BY 1, 100 / (id % 7)') AS by_expression,
       wtest.compare('SELECT r, count(*) FROM wtest.sevenths GROUP BY r HAVING max(r) <> 0 ORDER BY r, 100 / r') AS by_column;
RESET enable_hashagg;
CREATE TABLE wtest.place (p tid, v text);
INSERT INTO wtest.place SELECT ('(' || i / 60 || ',' || 1 + i % 60 || ')')::tid, 'v' || i FROM generate_series(0, 2999) i;
ANALYZE wtest.place;
SELECT wtest.compare('SELECT p, v FROM wtest.place WHERE ctid = p ORDER BY p, v') AS place;

-- A merge join does not evaluate again what its input is sorted by.
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT wtest.property('VERBOSE', 'SELECT a.id, b.id AS other FROM wtest.a JOIN wtest.b ON a.id + a.k = b.id - b.k', 'Merge Cond') AS condition;
SELECT wtest.compare('SELECT a.id, b.id AS other FROM wtest.a JOIN wtest.b ON a.id + a.k = b.id - b.k ORDER BY 1, 2') AS base,
       wtest.compare('SELECT s.x, b.id AS other FROM (SELECT a.id + c.id AS x, a.k FROM wtest.a JOIN wtest.a c ON a.id = c.k) s RIGHT JOIN wtest.b ON s.x * 2 = b.id - b.k ORDER BY 1, 2') AS joined;
RESET enable_hashjoin;
RESET enable_nestloop;

-- What core would take without sorting stays: an unsorted scan for workers, an index for a merge join that ends early.
RESET wiscsort.debug_force;
RESET wiscsort.threshold;
SET work_mem = '64kB';
CREATE TABLE wtest.far AS SELECT i * 7919 % 50021 AS k, repeat('x', 80) AS pad FROM generate_series(1, 50000) i;
CREATE TABLE wtest.near AS SELECT i AS k FROM generate_series(1, 500) i;
VACUUM ANALYZE wtest.far, wtest.near;
CREATE FUNCTION wtest.dear(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 10000 AS 'BEGIN RETURN $1 < 25000; END';
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT wtest.uses('SELECT count(*) FROM wtest.far JOIN wtest.near USING (k) WHERE wtest.dear(k)') AS workers_sort;
RESET max_parallel_workers_per_gather;
CREATE INDEX ON wtest.far (k);
SET random_page_cost = 10;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT wtest.uses('SELECT k, pad FROM wtest.far ORDER BY k') AS all_rows, wtest.uses('SELECT pad FROM wtest.far JOIN wtest.near USING (k)') AS few;
CREATE TABLE wtest.far_parts (LIKE wtest.far) PARTITION BY HASH (k);
CREATE TABLE wtest.far_parts_0 PARTITION OF wtest.far_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE wtest.far_parts_1 PARTITION OF wtest.far_parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO wtest.far_parts SELECT * FROM wtest.far;
CREATE INDEX ON wtest.far_parts (k);
VACUUM ANALYZE wtest.far_parts;
SET max_parallel_workers_per_gather = 0;
SELECT wtest.uses('SELECT k, pad FROM wtest.far_parts ORDER BY k') AS all_parts,
       wtest.uses('SELECT pad FROM wtest.far_parts JOIN wtest.near USING (k)') AS few_parts,
       wtest.uses('SELECT a.pad, b.pad AS other FROM wtest.near LEFT JOIN (wtest.far a JOIN wtest.far b ON a.k = b.k) ON a.k = near.k') AS few_joined;
RESET enable_hashjoin;
RESET enable_nestloop;
-- An index also stays where a reader may stop without the planner counting on it.
SELECT wtest.uses('SELECT * FROM (SELECT *, row_number() OVER (ORDER BY k) AS n FROM wtest.far) s WHERE n % 2 = 0') AS whole_window,
       wtest.uses('SELECT * FROM (SELECT *, row_number() OVER (ORDER BY k) AS n FROM wtest.far) s WHERE n <= 10') AS first_of_window,
       wtest.uses('WITH s AS MATERIALIZED (SELECT * FROM wtest.far ORDER BY k) SELECT * FROM s') AS whole_cte,
       wtest.uses('WITH s AS MATERIALIZED (SELECT * FROM wtest.far ORDER BY k) SELECT * FROM s LIMIT 10') AS first_of_cte,
       wtest.uses('WITH s AS MATERIALIZED (SELECT * FROM wtest.far ORDER BY k) SELECT count(*) FROM (SELECT * FROM s LIMIT 10) x') AS first_counted,
       wtest.uses('WITH s AS (SELECT * FROM wtest.far ORDER BY k) SELECT (SELECT k FROM s LIMIT 1), (SELECT pad FROM s OFFSET 5 LIMIT 1)') AS first_twice,
       wtest.uses('WITH s AS MATERIALIZED (SELECT * FROM wtest.far ORDER BY k) SELECT 1 WHERE EXISTS (SELECT FROM s)') AS first_exists,
       wtest.uses('DECLARE c CURSOR FOR WITH s AS MATERIALIZED (SELECT * FROM wtest.far ORDER BY k) SELECT * FROM s') AS first_of_cursor;
-- The same over partitions, and where those who read a part are further outside.
SELECT wtest.uses('WITH s AS MATERIALIZED (SELECT * FROM wtest.far_parts ORDER BY k) SELECT * FROM s') AS whole_parts,
       wtest.uses('WITH s AS MATERIALIZED (SELECT * FROM wtest.far_parts ORDER BY k) SELECT * FROM s LIMIT 10') AS first_of_parts,
       wtest.uses('SELECT 1 WHERE EXISTS (WITH s AS MATERIALIZED (SELECT * FROM wtest.far ORDER BY k) SELECT FROM s WHERE pad <> '''')') AS first_within,
       wtest.uses('WITH s AS MATERIALIZED (SELECT * FROM wtest.far ORDER BY k) SELECT 5 <> ALL (SELECT k FROM s)') AS first_not_all;
RESET random_page_cost;
-- Nor is the first step of a recursion told from others, in which rows may be few.
SET wiscsort.threshold = 0;
SELECT wtest.uses('WITH RECURSIVE r AS (SELECT k, 0 AS n FROM wtest.far UNION ALL SELECT k, n + 1 FROM (SELECT DISTINCT ON (k) * FROM r ORDER BY k, n) s WHERE n < 3) SELECT * FROM r') AS steps,
       wtest.uses('WITH RECURSIVE r AS (SELECT k, 0 AS n FROM wtest.far UNION ALL SELECT k, n + 1 FROM r WHERE n < 3) SELECT * FROM r ORDER BY n, k') AS afterwards;
RESET wiscsort.threshold;

-- Of a code and its name there may be as many groups as of the code: a hash table or a sort, as core has it.
SET work_mem = '512kB';
CREATE TABLE wtest.coded AS SELECT i % 1000 AS code, i % 1000 * 3 AS name, i / 1000 AS other FROM generate_series(1, 200000) i;
ANALYZE wtest.coded;
SELECT wtest.uses('SELECT code, name, count(*) FROM wtest.coded GROUP BY code, name') AS groups;
CREATE STATISTICS wtest.coded_too (ndistinct) ON code, other FROM wtest.coded;
ANALYZE wtest.coded;
SELECT wtest.uses('SELECT code, other, count(*) FROM wtest.coded GROUP BY code, other') AS combinations;

-- What is sorted for each row of a query outside may be a few rows each time; of an equality the average is known.
SET work_mem = '64kB';
CREATE TABLE wtest.halves AS SELECT i % 2 AS half, i FROM generate_series(1, 40000) i;
ANALYZE wtest.halves;
SELECT wtest.uses('SELECT ARRAY(SELECT code FROM wtest.coded WHERE other > near.k ORDER BY name) FROM wtest.near') AS perhaps_few,
       wtest.uses('SELECT ARRAY(SELECT c FROM (SELECT name, other, min(code) AS c FROM wtest.coded GROUP BY name, other) s WHERE other > near.k ORDER BY c) FROM wtest.near') AS moved,
       wtest.uses('SELECT ARRAY(SELECT sum(code) FROM wtest.coded WHERE other > near.k GROUP BY name, code ORDER BY 1) FROM wtest.near') AS groups,
       wtest.uses('SELECT s.* FROM wtest.near, LATERAL (SELECT code FROM wtest.coded WHERE other <> near.k ORDER BY name OFFSET 0) s') AS lateral,
       wtest.uses('SELECT ARRAY(SELECT h FROM wtest.halves h WHERE half = near.k ORDER BY i) FROM wtest.near') AS average,
       wtest.uses('SELECT ARRAY(SELECT code FROM wtest.coded WHERE other > (SELECT min(k) FROM wtest.near) ORDER BY name)') AS once;

-- Of single values that are passed by value, core holds more in its memory.
SET work_mem = '512kB';
SELECT wtest.uses('SELECT code FROM wtest.coded WHERE other < 15 ORDER BY code') AS held,
       wtest.uses('SELECT code FROM wtest.coded WHERE other < 60 ORDER BY code') AS spilled,
       wtest.uses('SELECT code, name FROM wtest.coded WHERE other < 15 ORDER BY code') AS rows;
SET work_mem = '64kB';

-- A subquery that is asked once is no value of a row outside; one row of all takes all rows below a LIMIT, too.
SELECT wtest.uses('SELECT * FROM (SELECT * FROM wtest.coded WHERE name NOT IN (SELECT k FROM wtest.near) ORDER BY name OFFSET 0) s') AS not_in;
SET random_page_cost = 10;
SELECT wtest.uses('SELECT max(n) FROM (SELECT length(pad) AS n FROM wtest.far ORDER BY k OFFSET 0) s LIMIT 1') AS one_row;

-- A LIMIT that no sort can be told of, since it is evaluated anew: core's heap, if it may be small.
CREATE FUNCTION wtest.some(n int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN n; END';
CREATE FUNCTION wtest.stable(n int) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN n; END';
SELECT wtest.uses('SELECT * FROM wtest.far ORDER BY k + 0 LIMIT (SELECT 10)') AS told,
       wtest.uses('SELECT * FROM wtest.far ORDER BY k + 0 LIMIT wtest.some(10)') AS volatile,
       wtest.uses('SELECT * FROM wtest.far ORDER BY k + 0 LIMIT 10 OFFSET wtest.some(10)') AS volatile_offset,
       wtest.uses('SELECT * FROM wtest.far ORDER BY k + 0 LIMIT wtest.stable(10)') AS stable,
       wtest.uses('SELECT * FROM wtest.far ORDER BY k + 0 LIMIT wtest.stable(1000000)') AS stable_all,
       wtest.uses('SELECT * FROM (SELECT * FROM wtest.far ORDER BY k + 0) s LIMIT wtest.some(10)') AS outside;

-- A window without an order numbers rows as they are scanned, and may stop: no sort below it.
SELECT * FROM wtest.plan('SELECT * FROM (SELECT row_number() OVER () AS n, far.* FROM wtest.far ORDER BY k + 0) s WHERE n <= 10');

RESET random_page_cost;
SET wiscsort.debug_force = on;
-- Keys of partitions that are expressions, or columns at other places; and those of UNION ALL.
CREATE TABLE wtest.moved (pad text, k int, gone int);
ALTER TABLE wtest.moved DROP gone, ADD more int DEFAULT 3;
INSERT INTO wtest.moved SELECT pad, k + 100000 FROM wtest.far;
CREATE TABLE wtest.mixed (k int, pad text, more int) PARTITION BY RANGE (k);
CREATE TABLE wtest.mixed_0 PARTITION OF wtest.mixed FOR VALUES FROM (0) TO (100000) PARTITION BY HASH (k);
CREATE TABLE wtest.mixed_00 PARTITION OF wtest.mixed_0 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
ALTER TABLE wtest.mixed ATTACH PARTITION wtest.moved FOR VALUES FROM (100000) TO (200000);
INSERT INTO wtest.mixed SELECT k, pad, 4 FROM wtest.far;
ANALYZE wtest.mixed;
SELECT wtest.compare('SELECT k, more FROM wtest.mixed ORDER BY more, k'),
       wtest.compare('SELECT k, more FROM wtest.mixed ORDER BY k % 1000, k'),
       wtest.compare('SELECT * FROM (SELECT k, pad FROM wtest.far UNION ALL SELECT k + 1, pad FROM wtest.moved) s ORDER BY k'),
       wtest.compare('SELECT a.k FROM wtest.mixed a JOIN wtest.mixed b ON a.k = b.more * 1000 ORDER BY a.k');

-- Rows are sorted where they are narrow: below the result's columns, unless these are as wide.
SET wiscsort.debug_force = off;
RESET wiscsort.threshold;
SET work_mem = '64kB';
CREATE TABLE wtest.bodies AS SELECT i AS id, hashint4(i) AS k, repeat(md5(i::text), 15) AS body
  FROM generate_series(1, 12000) i;
ANALYZE wtest.bodies;
SELECT * FROM wtest.plan('SELECT length(body) FROM wtest.bodies ORDER BY 1 OFFSET 0') LIMIT 3;
SELECT * FROM wtest.plan('SELECT id, left(body, 40) FROM wtest.bodies ORDER BY k OFFSET 0') LIMIT 3;
SELECT * FROM wtest.plan('SELECT id, left(body, 40), rank() OVER (ORDER BY k) FROM wtest.bodies') LIMIT 3;
SELECT * FROM wtest.plan('SELECT body, left(body, 40) FROM wtest.bodies ORDER BY k OFFSET 0') LIMIT 2;
SELECT * FROM wtest.plan('SELECT length(body), rank() OVER (ORDER BY length(body)) FROM wtest.bodies') LIMIT 4;
CREATE FUNCTION wtest.sorted_bytes(query text) RETURNS bigint LANGUAGE sql AS $$
	SELECT 1024 * wtest.property('ANALYZE, COSTS OFF, TIMING OFF', query, 'Disk')::bigint
$$;
SELECT wtest.sorted_bytes('SELECT id, left(body, 40) FROM wtest.bodies ORDER BY k OFFSET 0') < 2000000 AS narrow,
       wtest.sorted_bytes('SELECT id, body, left(body, 40) FROM wtest.bodies ORDER BY k OFFSET 0') > 5000000 AS wide;
SELECT wtest.compare('SELECT length(body) FROM wtest.bodies ORDER BY 1'),
       wtest.compare('SELECT id, left(body, 40) FROM wtest.bodies ORDER BY k, id');

-- Workers sort where functions of their scan take long; one process does where rows are wide to hand over.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 10;
SET work_mem = '1MB';
RESET parallel_tuple_cost;
SELECT * FROM wtest.plan('SELECT * FROM wtest.bodies ORDER BY k') LIMIT 2;
CREATE TABLE wtest.slim AS SELECT i AS id, hashint4(i) AS k, md5(i::text) AS pad FROM generate_series(1, 45000) i;
ANALYZE wtest.slim;
SELECT * FROM wtest.plan('SELECT * FROM wtest.slim WHERE id > 100 ORDER BY k') LIMIT 2;
SELECT * FROM wtest.plan('SELECT * FROM wtest.slim WHERE pad !~ ''(a|b).*(c|d).*zz'' ORDER BY k') LIMIT 2;
SELECT wtest.compare('SELECT * FROM wtest.slim WHERE pad !~ ''(a|b).*(c|d).*zz'' ORDER BY k, id');
SET max_parallel_workers_per_gather = 0;

-- Results that take long are made by workers, of partitions too; and so are their conditions evaluated.
SET max_parallel_workers_per_gather = 2;
SELECT * FROM wtest.plan('SELECT id, upper(md5(pad)) FROM wtest.slim ORDER BY k') LIMIT 2;
SELECT * FROM wtest.plan('SELECT id, k + 1 FROM wtest.slim ORDER BY k') LIMIT 2;
SELECT wtest.compare('SELECT id, upper(md5(pad)) FROM wtest.slim ORDER BY k, id');
CREATE TABLE wtest.slims (id int, k int, pad text) PARTITION BY RANGE (id);
CREATE TABLE wtest.slims_1 PARTITION OF wtest.slims FOR VALUES FROM (0) TO (15000);
CREATE TABLE wtest.slims_2 PARTITION OF wtest.slims FOR VALUES FROM (15000) TO (60000);
INSERT INTO wtest.slims SELECT i, hashint4(i), md5(i::text) FROM generate_series(1, 45000) i;
ANALYZE wtest.slims;
SELECT * FROM wtest.plan('SELECT * FROM wtest.slims ORDER BY k') LIMIT 2;
SELECT * FROM wtest.plan('SELECT * FROM wtest.slims WHERE md5(upper(pad)) <> pad ORDER BY k') LIMIT 2;
SET parallel_tuple_cost = 0.05;
SELECT * FROM wtest.plan('SELECT id, upper(md5(pad)) FROM wtest.slims ORDER BY k') LIMIT 2;
RESET parallel_tuple_cost;
SELECT wtest.compare('SELECT * FROM wtest.slims WHERE md5(upper(pad)) <> pad ORDER BY k, id');
-- So they do where there is no memory for helper threads.
SET work_mem = '512kB';
SELECT * FROM wtest.plan('SELECT * FROM wtest.slim WHERE id > 100 ORDER BY k') LIMIT 2;
SELECT * FROM wtest.plan('SELECT * FROM wtest.slim WHERE id > 100 ORDER BY pad COLLATE "und-x-icu"') LIMIT 2;
SELECT * FROM wtest.plan('SELECT * FROM wtest.slim WHERE id > 100 ORDER BY pad COLLATE "C"') LIMIT 2;
SET parallel_tuple_cost = 0.05;
SELECT * FROM wtest.plan('SELECT * FROM wtest.slim WHERE id > 100 ORDER BY k OFFSET 20000 LIMIT 10000') LIMIT 3;
RESET parallel_tuple_cost;
-- Where there are none because nobody wants them, one process stays.
SET work_mem = '1MB';
SET wiscsort.max_threads = 0;
SELECT * FROM wtest.plan('SELECT * FROM wtest.slim WHERE id > 100 ORDER BY k') LIMIT 2;
RESET wiscsort.max_threads;
-- Workers have no helper threads: they sort for groups where few are handed over, of a table and above a join.
CREATE TABLE wtest.dozens AS SELECT i AS id, hashint4(i) % 3000 AS k, md5(i::text) AS pad FROM generate_series(1, 60000) i;
CREATE TABLE wtest.titles AS SELECT i AS k, i % 7 AS title FROM generate_series(-3000, 3000) i;
ANALYZE wtest.dozens, wtest.titles;
SET enable_hashagg = off;
SET enable_mergejoin = off;
SET parallel_tuple_cost = 0;
SELECT * FROM wtest.plan('SELECT k, count(*), max(pad) FROM wtest.dozens GROUP BY k');
SELECT * FROM wtest.plan('SELECT k, count(*), max(pad), max(title) FROM wtest.dozens JOIN wtest.titles USING (k) GROUP BY k');
SELECT wtest.compare('SELECT k, count(*), max(pad), max(title) FROM wtest.dozens JOIN wtest.titles USING (k) GROUP BY k');
SET parallel_tuple_cost = 0.115;
SELECT * FROM wtest.plan('SELECT k, count(*), max(pad) FROM wtest.dozens GROUP BY k');
SET parallel_tuple_cost = 0.175;
SELECT * FROM wtest.plan('SELECT k, count(*), max(pad), max(title) FROM wtest.dozens JOIN wtest.titles USING (k) GROUP BY k');
SELECT wtest.compare('SELECT k, count(*), max(pad), max(title) FROM wtest.dozens JOIN wtest.titles USING (k) GROUP BY k');
RESET parallel_tuple_cost;
RESET enable_mergejoin;
RESET enable_hashagg;
SET work_mem = '64kB';
SELECT count(*) FROM wtest.slim WHERE current_setting('work_mem') <> '';
SET max_parallel_workers_per_gather = 0;

-- The rows of a star join are sorted above its hash joins, and not the table below look-ups, unless joins make them wide.
CREATE TABLE wtest.colours AS SELECT i AS id, md5(i::text) AS name, repeat('x', 1000) AS page FROM generate_series(1, 300) i;
ALTER TABLE wtest.colours ADD PRIMARY KEY (id);
ANALYZE wtest.colours;
SELECT * FROM wtest.plan('SELECT s.id, c.name FROM wtest.slim s JOIN wtest.colours c ON c.id = s.id % 300 + 1 ORDER BY s.k');
SELECT * FROM wtest.plan('SELECT s.id, c.* FROM wtest.slim s JOIN wtest.colours c ON c.id = s.id % 300 + 1 ORDER BY s.k') LIMIT 2;
SELECT * FROM wtest.plan('SELECT s.id, x FROM wtest.slim s, unnest(ARRAY[s.id, 1]) x ORDER BY s.k') LIMIT 2;
SELECT * FROM wtest.plan('SELECT s.id, c.name FROM wtest.colours c JOIN wtest.slim s ON c.id = s.id % 300 + 1 ORDER BY c.name') LIMIT 2;
SELECT wtest.compare('SELECT s.id, c.name FROM wtest.slim s JOIN wtest.colours c ON c.id = s.id % 300 + 1 ORDER BY s.k, s.id');
-- A table joined by a range is not sorted before that: an index may find few of its rows.
CREATE INDEX slim_id ON wtest.slim (id);
SELECT * FROM wtest.plan('SELECT s.*, c.name FROM wtest.colours c JOIN wtest.slim s ON s.id BETWEEN c.id AND c.id + 2 WHERE c.id < 100 ORDER BY s.k');
SELECT * FROM wtest.plan('SELECT s.k, rank() OVER (PARTITION BY s.k ORDER BY s.pad) FROM wtest.colours c JOIN wtest.slim s ON s.id BETWEEN c.id AND c.id + 2 WHERE c.id < 100');
SELECT * FROM wtest.plan('SELECT s.*, c.name FROM wtest.colours c JOIN wtest.slim s ON s.id BETWEEN c.id AND c.id + 2 ORDER BY s.k LIMIT 10');
SELECT * FROM wtest.plan('SELECT s.*, c.* FROM wtest.colours c JOIN wtest.slim s ON s.id BETWEEN c.id AND c.id + 2 ORDER BY s.k');
SELECT * FROM wtest.plan('SELECT s.k FROM wtest.slim s JOIN wtest.slim t ON t.k = s.k JOIN wtest.colours c ON s.id BETWEEN c.id AND c.id + 2 WHERE c.id < 10 ORDER BY s.k');
-- An outer join drops none.
SELECT * FROM wtest.plan('SELECT s.*, c.name FROM wtest.slim s LEFT JOIN wtest.colours c ON s.id BETWEEN c.id AND c.id + 2 ORDER BY s.k LIMIT 10');
DROP INDEX wtest.slim_id;
-- A cursor, and a LIMIT that lets most rows through, change nothing of that.
CREATE TABLE wtest.shelf AS SELECT i AS id, 'n' || i AS name FROM generate_series(1, 100000) i;
ALTER TABLE wtest.shelf ADD PRIMARY KEY (id);
ANALYZE wtest.shelf;
SELECT * FROM wtest.plan('DECLARE c CURSOR FOR SELECT s.id, c.name FROM wtest.slim s JOIN wtest.shelf c ON c.id = s.id * 3 ORDER BY s.k') LIMIT 2;
SELECT * FROM wtest.plan('SELECT s.id, c.name FROM wtest.slim s JOIN wtest.colours c ON c.id = s.id % 300 + 1 ORDER BY s.k LIMIT 1000000');
SELECT * FROM wtest.plan('SELECT s.id, c.name FROM wtest.slim s JOIN wtest.colours c ON c.id = s.id % 300 + 1 ORDER BY s.k LIMIT NULL') LIMIT 2;

-- What is looked up for each row of the result is looked up in the order of the scan, below the sort.
SELECT * FROM wtest.plan('SELECT s.id, (SELECT c.name FROM wtest.colours c WHERE c.id = s.id % 300 + 1) FROM wtest.slim s ORDER BY s.k');
SELECT * FROM wtest.plan('SELECT s.id, (SELECT max(c.name) FROM wtest.colours c) FROM wtest.slim s ORDER BY s.k');
CREATE FUNCTION wtest.colour(n int) RETURNS text STABLE LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT name FROM wtest.colours WHERE id = n); END';
CREATE FUNCTION wtest.below_sort(query text, expression text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || query LOOP
		IF line LIKE '% Output: %(' || expression || '%' THEN RETURN true; END IF;
	END LOOP;
	RETURN false;
END $$;
SELECT wtest.below_sort('SELECT s.id, wtest.colour(s.id % 300 + 1) FROM wtest.slim s ORDER BY s.k', 'wtest.colour('),
       wtest.below_sort('SELECT s.id, upper(s.pad) FROM wtest.slim s ORDER BY s.k', 'upper(') AS not_looked_up;
CREATE TABLE wtest.papers AS SELECT i AS id, hashint4(i) AS k, (SELECT string_agg(md5((i * 100 + j)::text), '') FROM generate_series(1, 80) j) AS body FROM generate_series(1, 6000) i;
ANALYZE wtest.papers;
SELECT 1024 * wtest.property('ANALYZE, COSTS OFF, TIMING OFF', 'SELECT id, body || 1 FROM wtest.papers ORDER BY k', 'Disk')::bigint > 10000000 AS made;
SELECT wtest.below_sort('SELECT id, lower(body) FROM wtest.papers ORDER BY k', 'lower('),
       wtest.below_sort('SELECT id, lower(body) FROM wtest.papers ORDER BY k LIMIT 5000', 'lower(') AS most,
       wtest.below_sort('SELECT id, k + 1, body FROM wtest.papers ORDER BY k', '(papers.k + 1') AS narrow;
SELECT wtest.compare('SELECT id, body || 1 FROM wtest.papers ORDER BY k');
-- Groups by a part of a wide column are made of rows without it, unless an aggregate takes it.
SELECT wtest.sorted_bytes('SELECT left(body, 9), count(DISTINCT id) FROM wtest.bodies GROUP BY 1') < 2000000 AS narrow,
       wtest.sorted_bytes('SELECT left(body, 9), id, count(*) FROM wtest.bodies GROUP BY ROLLUP (1, 2)') < 2000000 AS sets,
       wtest.sorted_bytes('SELECT left(body, 9), count(DISTINCT id) FROM wtest.bodies GROUP BY 1 HAVING max(body) > ''8''') > 5000000 AS wide;
SELECT wtest.compare('SELECT left(body, 9), count(DISTINCT id) FROM wtest.bodies GROUP BY 1 ORDER BY 1');
-- So it is where nobody has measured how wide a column is, of a table or of members of one.
CREATE TABLE wtest.unmeasured AS SELECT * FROM wtest.bodies;
CREATE TABLE wtest.unmeasured_all (LIKE wtest.bodies) PARTITION BY RANGE (id);
CREATE TABLE wtest.unmeasured_1 PARTITION OF wtest.unmeasured_all FOR VALUES FROM (0) TO (20000);
INSERT INTO wtest.unmeasured_all SELECT * FROM wtest.bodies;
SELECT wtest.sorted_bytes('SELECT id, left(body, 40) FROM wtest.unmeasured ORDER BY k OFFSET 0') < 2000000 AS narrow,
       wtest.sorted_bytes('SELECT id, md5(body) FROM wtest.unmeasured_all ORDER BY 2 OFFSET 0') < 2000000 AS member,
       wtest.sorted_bytes('SELECT id, body, left(body, 40) FROM wtest.unmeasured ORDER BY k OFFSET 0') > 5000000 AS wide,
       wtest.sorted_bytes('SELECT id, upper(body) FROM wtest.unmeasured ORDER BY k OFFSET 0') > 5000000 AS as_wide;
-- A whole row has all columns; and one column, whatever its width, is little beside a wide one that is sorted along.
CREATE TABLE wtest.noted AS SELECT * FROM wtest.bodies;
ANALYZE wtest.noted;
ALTER TABLE wtest.noted ADD note text;
SELECT line FROM wtest.plan('SELECT m, left(body, 9) FROM wtest.unmeasured m ORDER BY k') line WHERE line ~ 'WiscSort';
SELECT wtest.below_sort('SELECT m, left(body, 9) AS part FROM wtest.unmeasured m ORDER BY k', '"left"(') AS whole_row,
       wtest.below_sort('SELECT id, body, note IS NOT NULL FROM wtest.noted ORDER BY k', 'IS NOT NULL') AS beside;
-- Where a key is an expression, what it is made of is not sorted along, though the rest is hardly narrower.
SELECT wtest.sorted_bytes('SELECT -(k + id) AS x, id FROM wtest.bodies ORDER BY 1 OFFSET 0')
     = wtest.sorted_bytes('SELECT * FROM (SELECT -(k + id) AS x, id FROM wtest.bodies OFFSET 0) s ORDER BY x OFFSET 0') AS as_narrow;
SELECT wtest.compare('SELECT s.id, (SELECT c.name FROM wtest.colours c WHERE c.id = s.id % 300 + 1) FROM wtest.slim s ORDER BY s.k, s.id');

-- Nor does a UNION of few different rows sort its members (PostgreSQL 17 and later ask for that).
CREATE TABLE wtest.shown AS SELECT i % 300 AS did FROM generate_series(1, 30000) i;
ANALYZE wtest.shown;
SELECT bool_or(line ~ 'Merge Append') FROM wtest.plan('SELECT id % 5, pad IS NULL FROM wtest.slim UNION SELECT id, false FROM wtest.colours') line;
SELECT bool_or(line ~ 'Merge Append') FROM wtest.plan('SELECT did FROM wtest.shown UNION SELECT id FROM wtest.colours') line;
SELECT wtest.compare('SELECT id % 5 FROM wtest.slim UNION SELECT id FROM wtest.colours ORDER BY 1');

-- Where most rows come in the order of indexes, core's sort compares each with the one before.
CREATE TABLE wtest.keyed AS SELECT i AS id, md5(i::text)::uuid AS u FROM generate_series(1, 30000) i;
CREATE INDEX ON wtest.keyed (u);
CREATE INDEX ON wtest.keyed (id);
VACUUM ANALYZE wtest.keyed;
SET enable_seqscan = off;
SELECT bool_or(line ~ 'WiscSort') AS in_order FROM wtest.plan('SELECT u FROM (SELECT u FROM wtest.keyed UNION ALL SELECT u FROM wtest.keyed OFFSET 0) s ORDER BY 1') line;
SELECT bool_or(line ~ 'WiscSort') AS backwards FROM wtest.plan('SELECT u FROM (SELECT u FROM wtest.keyed UNION ALL SELECT u FROM wtest.keyed OFFSET 0) s ORDER BY 1 DESC') line;
SELECT bool_or(line ~ 'WiscSort') AS numbers FROM wtest.plan('SELECT id FROM (SELECT id FROM wtest.keyed UNION ALL SELECT id FROM wtest.keyed OFFSET 0) s ORDER BY 1') line;
RESET enable_seqscan;

-- Groups of rows that a condition on another column chooses may be far fewer than expected.
CREATE TABLE wtest.visits AS SELECT i AS id, hashint8extended(i / 50, 7) AS visit, repeat('x', 60) AS pad FROM generate_series(1, 600000) i;
ANALYZE wtest.visits;
SELECT * FROM wtest.plan('SELECT visit, count(*) FROM wtest.visits WHERE id >= 400000 GROUP BY visit') LIMIT 1;
SELECT * FROM wtest.plan('SELECT visit, count(*) FROM wtest.visits WHERE pad LIKE ''x%'' GROUP BY visit') LIMIT 1;
SELECT * FROM wtest.plan('SELECT visit, count(*) FROM wtest.visits WHERE visit > 0 GROUP BY visit') LIMIT 1;
CREATE TABLE wtest.monthly (LIKE wtest.visits) PARTITION BY RANGE (id);
CREATE TABLE wtest.monthly_1 PARTITION OF wtest.monthly FOR VALUES FROM (0) TO (300000);
CREATE TABLE wtest.monthly_2 PARTITION OF wtest.monthly FOR VALUES FROM (300000) TO (700000);
INSERT INTO wtest.monthly SELECT * FROM wtest.visits;
ANALYZE wtest.monthly;
SELECT * FROM wtest.plan('SELECT visit, count(*) FROM wtest.monthly WHERE id < 300000 GROUP BY visit') LIMIT 1;
SELECT * FROM wtest.plan('SELECT visit, count(*) FROM wtest.monthly WHERE id > 0 GROUP BY visit') LIMIT 1;

-- Nor, of a table that has grown, how many values it has that were unique; a small hash table of which a part is
-- written is not charged as if it all were; and of arrays a prefix tells a part.
CREATE TABLE wtest.grown (k int, st text);
INSERT INTO wtest.grown SELECT hashint4(i), 'a' FROM generate_series(1, 100) i;
VACUUM ANALYZE wtest.grown;
INSERT INTO wtest.grown SELECT hashint4(i) & 63, 'b' || i % 3 FROM generate_series(1, 100000) i;
CREATE TABLE wtest.spilt AS SELECT hashint4(i) & 2047 AS k, hashint4(i) AS few, repeat('x', 50) AS pad FROM generate_series(1, 200000) i;
CREATE TABLE wtest.arrays AS SELECT ARRAY[i % 50, hashint4(i) & 1023, hashint4(i + 1) & 1023] AS a, i AS id FROM generate_series(1, 100000) i;
ANALYZE wtest.spilt, wtest.arrays;
SELECT * FROM wtest.plan('SELECT k, count(*) FROM wtest.spilt GROUP BY k') LIMIT 1;
SELECT * FROM wtest.plan('SELECT few, count(*) FROM wtest.spilt GROUP BY few') LIMIT 1;
SET work_mem = '1MB';
SELECT * FROM wtest.plan('SELECT k, st, count(*) FROM wtest.grown GROUP BY k, st') LIMIT 1;
SELECT * FROM wtest.plan('SELECT a, count(*) FROM wtest.arrays GROUP BY a') LIMIT 1;
SELECT * FROM wtest.plan('SELECT a FROM wtest.arrays ORDER BY a') LIMIT 1;
CREATE TABLE wtest.objects AS SELECT jsonb_build_object('n', hashint4(i) % 1000, 'i', i) AS j, int4range(i, i + 5) AS r, i AS n
  FROM generate_series(1, 100000) i;
ANALYZE wtest.objects;
SELECT * FROM wtest.plan('SELECT DISTINCT j FROM wtest.objects') LIMIT 1;
SELECT * FROM wtest.plan('SELECT r, count(*) FROM wtest.objects GROUP BY r') LIMIT 1;
SELECT * FROM wtest.plan('SELECT DISTINCT n FROM wtest.objects') LIMIT 1;
CREATE TABLE wtest.filled (k int, st text);
INSERT INTO wtest.filled SELECT i, 'a' FROM generate_series(1, 60000) i;
VACUUM ANALYZE wtest.filled;
TRUNCATE wtest.filled;
INSERT INTO wtest.filled SELECT i, 'a' FROM generate_series(1, 100000) i;
SELECT * FROM wtest.plan('SELECT k, st, count(*) FROM wtest.filled GROUP BY k, st') LIMIT 1;
DELETE FROM wtest.grown;
INSERT INTO wtest.grown SELECT i, 'b' || i % 3 FROM generate_series(1, 100000) i;
CREATE UNIQUE INDEX grown_once ON wtest.grown (k);
UPDATE pg_class SET reltuples = 100 WHERE oid = 'wtest.grown'::regclass;
SELECT * FROM wtest.plan('SELECT DISTINCT k, st FROM wtest.grown') LIMIT 1;
SELECT * FROM wtest.plan('SELECT id, a, count(*) FROM wtest.arrays GROUP BY id, a') LIMIT 1;
DROP INDEX wtest.grown_once;
VACUUM wtest.grown;
SELECT * FROM wtest.plan('SELECT k, st, count(*) FROM wtest.grown GROUP BY k, st') LIMIT 1;
-- Rows of partitions are sorted as one by keys that are compared: many small sorts would take a hash table's place.
CREATE TABLE wtest.arrays_parts (a int[], id int) PARTITION BY RANGE (id);
DO $$
BEGIN
	FOR i IN 0 .. 20 LOOP
		EXECUTE format('CREATE TABLE wtest.arrays_parts_%s PARTITION OF wtest.arrays_parts FOR VALUES FROM (%s) TO (%s)',
					   i, i * 5000, i * 5000 + 5000);
	END LOOP;
END $$;
INSERT INTO wtest.arrays_parts SELECT * FROM wtest.arrays;
ANALYZE wtest.arrays_parts;
SET work_mem = '320kB';
SELECT * FROM wtest.plan('SELECT a, count(*) FROM wtest.arrays_parts GROUP BY a') LIMIT 1;
SELECT * FROM wtest.plan('SELECT a FROM wtest.arrays_parts ORDER BY a') LIMIT 2;
SELECT * FROM wtest.plan('SELECT id, a FROM wtest.arrays_parts ORDER BY id, a') LIMIT 2;
-- Nor is each partition sorted by itself where some fit into memory, or where the page cache is small.
CREATE TABLE wtest.uneven (a int, b int, pad text) PARTITION BY LIST (a);
CREATE TABLE wtest.uneven_1 PARTITION OF wtest.uneven FOR VALUES IN (1);
CREATE TABLE wtest.uneven_2 PARTITION OF wtest.uneven FOR VALUES IN (2);
INSERT INTO wtest.uneven SELECT CASE WHEN i % 100 = 0 THEN 2 ELSE 1 END, hashint4(i), repeat('x', 60) FROM generate_series(1, 60000) i;
CREATE TABLE wtest.even (a int, b int, pad text) PARTITION BY HASH (a);
DO $$
BEGIN
	FOR i IN 0 .. 11 LOOP
		EXECUTE format('CREATE TABLE wtest.even_%s PARTITION OF wtest.even FOR VALUES WITH (MODULUS 12, REMAINDER %s)', i, i);
	END LOOP;
END $$;
INSERT INTO wtest.even SELECT i, hashint4(i), repeat('x', 100) FROM generate_series(1, 240000) i;
ANALYZE wtest.uneven, wtest.even;
SET work_mem = '256kB';
SET random_page_cost = 1.1;
SELECT * FROM wtest.plan('SELECT * FROM wtest.uneven ORDER BY b') LIMIT 2;
SET effective_cache_size = '16MB';
SELECT * FROM wtest.plan('SELECT * FROM wtest.even ORDER BY b') LIMIT 2;
RESET effective_cache_size;
DROP TABLE wtest.uneven, wtest.even;
-- A hash table that costs half a hundredth less than core's sort stays, if it is not known how many groups there are.
SET work_mem = '64kB';
SET random_page_cost = 1.43;
SELECT * FROM wtest.plan('SELECT id % 12000, count(*) FROM wtest.bodies GROUP BY 1') LIMIT 1;
SET random_page_cost = 2;
SELECT * FROM wtest.plan('SELECT id % 12000, count(*) FROM wtest.bodies GROUP BY 1') LIMIT 2;
RESET random_page_cost;

-- An index that finds its rows together in the table, which is in another order: events of a session's uuid.
CREATE TABLE wtest.events AS SELECT i AS id, md5('s' || i / 12)::uuid AS session, repeat('x', 60) AS pad
  FROM generate_series(1, 60000) i;
CREATE INDEX ON wtest.events (session);
VACUUM ANALYZE wtest.events;
SET work_mem = '4MB';
SELECT * FROM wtest.plan('SELECT * FROM wtest.events ORDER BY session');
SELECT * FROM wtest.plan('SELECT session, string_agg(pad, NULL) FROM wtest.events GROUP BY session');
SET enable_indexscan = off;
SELECT * FROM wtest.plan('SELECT * FROM wtest.events ORDER BY session');
RESET enable_indexscan;
-- It stays a WiscSort where each row is elsewhere, or hardly any is left, or none.
UPDATE wtest.events SET session = md5(id::text)::uuid;
VACUUM FULL ANALYZE wtest.events;
SELECT * FROM wtest.plan('SELECT * FROM wtest.events ORDER BY session');
SET wiscsort.threshold = 0;
DELETE FROM wtest.events WHERE id % 100 <> 0;
VACUUM wtest.events;
SELECT * FROM wtest.plan('SELECT * FROM wtest.events ORDER BY session');
TRUNCATE wtest.events;
SELECT * FROM wtest.plan('SELECT * FROM wtest.events ORDER BY session');
RESET wiscsort.threshold;
DROP TABLE wtest.events;

-- That is asked of what the conditions select: tenant 1 has rows in order up to 60000, and in none above; of tenant 2
-- two of three have null, of tenant 3 eight of nine, and are in order, and the others in none.
CREATE TABLE wtest.turns AS SELECT i AS id, greatest(i % 4, 1) AS tenant, CASE WHEN i % 4 < 2 AND i <= 60000 THEN i
  WHEN i % 4 < 2 OR i > 40000 + 40000 * (i % 4) THEN 70001 + hashint4(i) % 10000 END AS at, repeat('x', 60) AS pad
  FROM generate_series(1, 180000) i;
CREATE INDEX ON wtest.turns (tenant, at DESC);
VACUUM ANALYZE wtest.turns;
SET work_mem = '256kB';
SET wtest.tenant = '1';
CREATE FUNCTION wtest.scan(text) RETURNS SETOF text LANGUAGE SQL
  AS $$ SELECT * FROM wtest.plan('SELECT * FROM wtest.turns WHERE ' || $1) LIMIT 1 $$;
SELECT * FROM wtest.scan('tenant = 1 AND at <= 60000 ORDER BY at');
SELECT * FROM wtest.scan('tenant = 1 AND at > 60000 ORDER BY at');
SELECT * FROM wtest.scan('tenant = 2 AND at IS NULL ORDER BY at');
SELECT * FROM wtest.scan('tenant = 2 AND at > 0 ORDER BY at');
SELECT * FROM wtest.scan('tenant = 3 AND at > 0 ORDER BY at');
SELECT * FROM wtest.scan('tenant = current_setting(''wtest.tenant'')::int AND at <= 60000 ORDER BY at');
-- A value may be of another type, of which the lower half would be another value.
SELECT * FROM wtest.scan('tenant = 1 AND at < 60000::bigint ORDER BY at');
SELECT * FROM wtest.scan('tenant = 1 AND at < 4295027296 ORDER BY at');
-- Where it is not known, the whole index is asked.
PREPARE turns_of AS SELECT * FROM wtest.turns WHERE tenant = $1 AND at <= $2 ORDER BY at;
SET plan_cache_mode = force_generic_plan;
SELECT * FROM wtest.plan('EXECUTE turns_of(1, 60000)') LIMIT 1;
SET plan_cache_mode = force_custom_plan;
SELECT * FROM wtest.plan('EXECUTE turns_of(1, 60000)') LIMIT 1;
RESET plan_cache_mode;
SET work_mem = '64kB';
DROP TABLE wtest.turns;

-- Under a LIMIT above a join the table is sorted before it, unless conditions on others may drop the first rows.
CREATE TABLE wtest.names AS SELECT i AS id, i > 500 AS active FROM generate_series(1, 1000) i;
ALTER TABLE wtest.names ADD PRIMARY KEY (id);
ANALYZE wtest.names;
CREATE STATISTICS wtest.names_of_bodies ON (id % 1000 + 1) FROM wtest.bodies;
ANALYZE wtest.bodies;
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT w.*, active FROM wtest.bodies w JOIN wtest.names n ON n.id = w.id % 1000 + 1 ORDER BY k LIMIT 10') line;
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT w.*, active FROM wtest.bodies w JOIN wtest.names n ON n.id = w.id % 1000 + 1 WHERE active ORDER BY k LIMIT 10') line;

-- So may a join of which nobody knows how many rows find a partner: one without an index, or a function.
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT w.*, active FROM wtest.bodies w JOIN wtest.names n ON n.id = (w.id + 1) % 1000 + 1 ORDER BY k LIMIT 10') line;
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT w.* FROM wtest.bodies w JOIN generate_series(100000, 101000) g ON g = w.id ORDER BY k LIMIT 10') line;
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT w.* FROM wtest.bodies w CROSS JOIN LATERAL (SELECT n.id FROM wtest.names n WHERE n.id = w.id * 100000 LIMIT 1) x ORDER BY k LIMIT 10') line;
SELECT bool_or(line ~ 'Nested Loop') FROM wtest.plan('SELECT w.body, count(*) FROM wtest.bodies w JOIN wtest.slim s ON s.id = w.id WHERE s.k > 0 GROUP BY 1 ORDER BY 1 LIMIT 10') line;
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT w.*, active FROM wtest.bodies w LEFT JOIN wtest.names n ON n.id = w.id % 1000 + 1 AND active ORDER BY k LIMIT 10') line;

SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT w.* FROM wtest.bodies w WHERE NOT EXISTS (SELECT FROM wtest.names n WHERE n.id = w.id) ORDER BY k LIMIT 10') line;

-- So it is with the LIMIT of a level outside, which a sort below joins is not told of.
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT * FROM (SELECT w.*, active FROM wtest.bodies w JOIN wtest.names n ON n.id = w.id % 1000 + 1 AND active ORDER BY k) s LIMIT 10') line;
-- Core's sort is told of no LIMIT above windows, conditions outside, and locks: all rows are sorted.
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT row_number() OVER (), s.* FROM (SELECT * FROM wtest.bodies ORDER BY k) s LIMIT 10') line;
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT * FROM (SELECT * FROM wtest.bodies ORDER BY k OFFSET 0) s WHERE id % 3 = 1 LIMIT 10') line;
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT * FROM wtest.bodies ORDER BY k LIMIT 10 FOR UPDATE') line;
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT * FROM (SELECT * FROM wtest.bodies ORDER BY k OFFSET 0) s LIMIT 10') line;
-- A function of LIMIT that workers must not call is not handed down to them.
CREATE FUNCTION wtest.leaders(n int) RETURNS int8 IMMUTABLE PARALLEL RESTRICTED LANGUAGE plpgsql AS 'BEGIN RETURN n; END';
SET max_parallel_workers_per_gather = 2;
SET parallel_tuple_cost = 0;
SET plan_cache_mode = force_generic_plan;
PREPARE restricted(int) AS SELECT * FROM wtest.slim WHERE pad <> 'x' ORDER BY k LIMIT wtest.leaders($1);
PREPARE safe(int) AS SELECT * FROM wtest.slim WHERE pad <> 'x' ORDER BY k LIMIT $1;
SELECT wtest.plan('EXECUTE restricted(20000)') LIMIT 3;
SELECT wtest.plan('EXECUTE safe(20000)') LIMIT 3;

-- Groups by columns of one table, that an index joins with many rows of another: a hash table takes less than a nested loop.
RESET parallel_tuple_cost;
RESET plan_cache_mode;
SET max_parallel_workers_per_gather = 0;
SET work_mem = '256kB';
CREATE TABLE wtest.owner_of AS SELECT i AS id, 'IBAN' || lpad(i::text, 18, '0') AS iban, 'owner ' || md5(i::text) AS owner FROM generate_series(1, 5000) i;
CREATE TABLE wtest.booking AS SELECT 1 + abs(hashint4(i)) % 5000 AS account, i AS amount, repeat('x', 50) AS note FROM generate_series(1, 60000) i;
CREATE INDEX ON wtest.booking (account);
ANALYZE wtest.owner_of, wtest.booking;
SELECT bool_or(line ~ 'Nested Loop') FROM wtest.plan('SELECT iban, owner, count(*), sum(amount) FROM wtest.owner_of o LEFT JOIN wtest.booking b ON b.account = o.id GROUP BY iban, owner') line;
-- So does a sort of the joined rows.
SELECT bool_or(line ~ 'Nested Loop') FROM wtest.plan('SELECT iban, owner, note, amount FROM wtest.owner_of o LEFT JOIN wtest.booking b ON b.account = o.id ORDER BY iban, owner') line;
SELECT bool_or(line ~ 'Nested Loop') FROM wtest.plan('SELECT owner, array_agg(note ORDER BY amount) FROM wtest.owner_of o JOIN wtest.booking b ON b.account = o.id GROUP BY owner') line;
-- The bytes of a group are those that core counts: a value of text for each max and min.
SET work_mem = '512kB';
CREATE TABLE wtest.contact AS SELECT 'company ' || i % 400 AS company, abs(hashint4(i)) % 5 AS rating, abs(hashint4(i + 1)) % 2 AS active, md5(i::text) AS last FROM generate_series(1, 60000) i;
ANALYZE wtest.contact;
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT company, rating, active, count(*), max(last), min(last) FROM wtest.contact GROUP BY 1, 2, 3') line;
-- Values wider than a prefix, of which many are equal: a sort reads them twice, a hash table writes few bytes of each.
SET work_mem = '256kB';
CREATE TABLE wtest.wide_groups AS SELECT md5((i % 20000)::text)::uuid AS u, decode(md5((i % 20000)::text), 'hex') AS b, (i % 20000)::int8 AS k, left(md5((i % 20000)::text), 6) AS t FROM generate_series(1, 100000) i;
ANALYZE wtest.wide_groups;
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT DISTINCT u FROM wtest.wide_groups') line;
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT b, count(*) FROM wtest.wide_groups GROUP BY b') line;
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT DISTINCT k FROM wtest.wide_groups') line;
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT DISTINCT t COLLATE "C" FROM wtest.wide_groups') line;
-- A subquery of which all rows are wanted hands on no path that core would not have kept, by an index in random order.
SET work_mem = '512kB';
SET wiscsort.threshold = 0;
CREATE TABLE wtest.sold AS SELECT i AS id, 1 + abs(hashint4(i)) % 5000 AS cust, 1 + abs(hashint4(i + 1)) % 200 AS prod, i / 100 AS day, abs(hashint4(i + 2)) % 10000 AS amt, repeat('x', 60) AS pad FROM generate_series(1, 60000) i;
CREATE INDEX ON wtest.sold (cust, day);
CREATE TABLE wtest.taken_back AS SELECT id, cust, day FROM wtest.sold WHERE id % 10 = 0;
CREATE INDEX ON wtest.taken_back (cust, day);
CREATE TABLE wtest.day AS SELECT i AS day, i / 60 AS period FROM generate_series(0, 600) i;
ALTER TABLE wtest.day ADD PRIMARY KEY (day);
ANALYZE wtest.sold, wtest.taken_back, wtest.day;
SELECT bool_or(line ~ 'Incremental Sort') FROM wtest.plan('SELECT * FROM (SELECT s.cust, s.prod, sum(amt) AS t FROM wtest.sold s LEFT JOIN wtest.taken_back r ON r.cust = s.cust AND r.id = s.id JOIN wtest.day d ON d.day = s.day WHERE period = 1 AND r.id IS NULL GROUP BY 1, 2) s WHERE t > 250 ORDER BY cust, prod LIMIT 100') line;
RESET wiscsort.threshold;
-- But it does what core would have kept beside its own sort: a merge join ends after the first rows of the index.
CREATE TABLE wtest.shuffled AS SELECT i AS id, abs(hashint4(i)) % 60000 AS k, repeat('x', 60) AS pad FROM generate_series(1, 60000) i;
CREATE INDEX ON wtest.shuffled (k);
CREATE TABLE wtest.lowest AS SELECT i AS k FROM generate_series(1, 100) i;
ANALYZE wtest.shuffled, wtest.lowest;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT bool_or(line ~ 'WiscSort') FROM wtest.plan('SELECT * FROM (SELECT * FROM wtest.shuffled ORDER BY k OFFSET 0) s JOIN wtest.lowest USING (k)') line;
RESET enable_hashjoin;
RESET enable_nestloop;
DROP TABLE wtest.wide_groups, wtest.sold, wtest.taken_back, wtest.day, wtest.shuffled, wtest.lowest;
