-- LIMIT above a WiscSort whose rows do not fit work_mem: rows that cannot be among the first are left out.

LOAD 'wiscsort';
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;
SET work_mem = '64kB';
SET max_parallel_workers_per_gather = 0;

CREATE TABLE wtest.lim AS
SELECT id, hashint8extended(id, 1) AS k, id % 7 AS few, nullif(id % 11, 3)::int2 AS x,
       ('shared beginning ' || md5(id::text)) COLLATE "C" AS t, (id * 7919 % 20011)::numeric / 100 AS n,
       md5((id % 300)::text) COLLATE "und-x-icu" AS u, md5(id::text) COLLATE "und-x-icu" AS v,
       repeat('x', id % 50) AS pad
  FROM generate_series(1, 20000) id;
ANALYZE wtest.lim;

-- The query's answer as core gives it, and how many rows were passed over: some, or none.
CREATE FUNCTION wtest.limited(query text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN wtest.compare_as_set(query) || ', passed over: ' ||
        CASE wtest.property('ANALYZE', query, 'Rows Passed Over')::int8 > 0
        WHEN true THEN 'some' WHEN false THEN 'none' ELSE 'no bound' END;
END $$;

-- Kinds of keys, each with every store.  A first column that is only guessed tells nothing for certain.
CREATE FUNCTION wtest.limited_by(keys text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    s text;
    clause text;
    verdict text;
    verdicts text[];
BEGIN
    FOREACH s IN ARRAY ARRAY['spool', 'heap', 'inline', 'auto'] LOOP
        PERFORM set_config('wiscsort.record_store', s, true);
        FOREACH clause IN ARRAY ARRAY['LIMIT 2000', 'OFFSET 1500 LIMIT 700'] LOOP
            verdict := wtest.limited(format('SELECT * FROM wtest.lim ORDER BY %s %s', keys, clause));
            IF verdict <> ALL (coalesce(verdicts, '{}')) THEN
                verdicts := verdicts || verdict;
            END IF;
        END LOOP;
    END LOOP;
    RETURN array_to_string(verdicts, '; ');
END $$;
SELECT keys, wtest.limited_by(keys)
  FROM unnest(ARRAY['k', 'k DESC', 'few, id', 'few DESC, k', 'x NULLS FIRST, k', 'x DESC NULLS FIRST, id DESC',
                    'x, t', 't', 't DESC', 'n', 'n DESC NULLS LAST', 'u, id', 'u DESC, k', 'few, v', 'v, id', 'id',
                    'id DESC']) keys;

-- Guesses that turn out wrong: behind what the first texts begin with, others come by their bytes at first.
CREATE TABLE wtest.guessed AS
SELECT id, (CASE WHEN id > 12000 AND id % 3 = 0 THEN chr(193 + id % 4) || id
                 WHEN id > 12000 AND id % 3 = 1 THEN 'Z' || id
                 ELSE 'http://example.org/shared/' || md5(id::text) END) COLLATE "und-x-icu" AS t, id % 2 AS few
  FROM generate_series(1, 20000) id;
ANALYZE wtest.guessed;
SELECT keys, wtest.compare_as_set(format('SELECT * FROM wtest.guessed ORDER BY %s LIMIT 3000', keys))
  FROM unnest(ARRAY['t', 't DESC', 'few, t', 'few DESC, t DESC']) keys;
DROP TABLE wtest.guessed;

-- Helpers, or none; rows that fit one piece in memory; both directions of reading.
SET wiscsort.sort_threads = 1;
SELECT wtest.limited('SELECT * FROM wtest.lim ORDER BY k LIMIT 3000') AS helped,
       wtest.limited('SELECT * FROM wtest.lim ORDER BY few, t LIMIT 3000') AS ties;
SET wiscsort.sort_threads = 0;
SELECT wtest.limited('SELECT * FROM wtest.lim ORDER BY k LIMIT 3000') AS alone;
RESET wiscsort.sort_threads;
SET work_mem = '512kB';
SELECT wtest.limited('SELECT * FROM wtest.lim ORDER BY k LIMIT 9000') AS one_pass;
SET work_mem = '64kB';

-- Rows that tie at the limit, of which any will do: the keys are the same.
SELECT wtest.limited('SELECT few FROM wtest.lim ORDER BY few LIMIT 4000') AS few,
       wtest.limited('SELECT few, x FROM wtest.lim ORDER BY few DESC, x LIMIT 4000') AS two,
       wtest.limited('SELECT x, length(pad) FROM wtest.lim WHERE id % 50 = 7 OR x IS NULL ORDER BY x NULLS FIRST, length(pad) LIMIT 1400') AS nulls;

-- More than there are, nothing, everything; an OFFSET beyond the end; a sum that is no bigint.
SELECT wtest.limited('SELECT * FROM wtest.lim ORDER BY k LIMIT 100000') AS more,
       wtest.limited('SELECT * FROM wtest.lim ORDER BY k OFFSET 30000 LIMIT 10') AS beyond,
       wtest.limited('SELECT * FROM wtest.lim ORDER BY k LIMIT ALL') AS everything,
       wtest.limited('SELECT * FROM wtest.lim ORDER BY k OFFSET 5 LIMIT 9223372036854775807') AS overflow;
SELECT wtest.error('SELECT * FROM wtest.lim ORDER BY k OFFSET -5 LIMIT 3000') AS negative;

-- WITH TIES asks for more, and so may row locks; a projection, a subquery, UNION ALL and partitions do not.
SELECT wtest.limited('SELECT few FROM wtest.lim ORDER BY few FETCH FIRST 3000 ROWS WITH TIES') AS with_ties,
       wtest.limited('SELECT k + 1, few FROM (SELECT * FROM wtest.lim ORDER BY k) s LIMIT 3000') AS subquery,
       wtest.limited('SELECT * FROM (SELECT * FROM wtest.lim ORDER BY k OFFSET 0) s WHERE few > 2 LIMIT 3000') AS filtered,
       wtest.limited('(SELECT id, k FROM wtest.lim ORDER BY k LIMIT 3000) UNION ALL (SELECT id, k FROM wtest.lim ORDER BY id DESC LIMIT 10)') AS arms;
SELECT wtest.property('ANALYZE', 'SELECT * FROM wtest.lim ORDER BY k LIMIT 3000 FOR UPDATE', 'Bound') AS locked;
SELECT wtest.property('ANALYZE', 'SELECT * FROM wtest.lim ORDER BY k OFFSET 100 LIMIT 3000', 'Bound') AS bound,
       wtest.property('ANALYZE', 'SELECT * FROM wtest.lim ORDER BY k', 'Bound') AS none;

-- Parameters: as often as it is executed, the number of the time.
SET plan_cache_mode = force_generic_plan;
PREPARE lim (int8, int8) AS
SELECT count(*), min(id), max(id), sum(k::numeric) FROM (SELECT * FROM wtest.lim ORDER BY k LIMIT $1 OFFSET $2) s;
EXECUTE lim (2500, 0);
EXECUTE lim (5, 1);
EXECUTE lim (NULL, 3);
EXECUTE lim (0, 7);
EXECUTE lim (4000, NULL);
EXECUTE lim (3, 19998);
SET wiscsort.enable = off;
DISCARD PLANS;
EXECUTE lim (2500, 0);
EXECUTE lim (5, 1);
EXECUTE lim (NULL, 3);
EXECUTE lim (0, 7);
EXECUTE lim (4000, NULL);
EXECUTE lim (3, 19998);
RESET wiscsort.enable;
DISCARD PLANS;
SELECT wtest.property('ANALYZE', 'EXECUTE lim (2500, 30)', 'Bound') AS bound;
DEALLOCATE lim;
RESET plan_cache_mode;
-- Of text the prefixes may tell nothing: core's heap may be the better one.
SELECT wtest.uses('SELECT * FROM wtest.lim ORDER BY k LIMIT (SELECT 10)') AS number,
       wtest.uses('SELECT * FROM wtest.lim ORDER BY v LIMIT (SELECT 10)') AS text,
       wtest.uses('SELECT * FROM wtest.lim ORDER BY n LIMIT (SELECT 10)') AS numeric;

-- A number that changes from rescan to rescan, and a subquery that is one.
SELECT wtest.compare_as_set('SELECT v.n, s.* FROM (VALUES (3), (2500), (1), (4000)) v(n),
    LATERAL (SELECT count(*), sum(id), max(k) FROM (SELECT * FROM wtest.lim ORDER BY k LIMIT v.n) r) s') AS rescans,
       wtest.compare_as_set('SELECT v.n, s.* FROM (VALUES (1), (2500), (0), (3000)) v(n),
    LATERAL (SELECT count(*), sum(id), max(k) FROM (SELECT * FROM wtest.lim WHERE few <> v.n % 7 ORDER BY few, k LIMIT v.n OFFSET v.n / 2) r) s') AS others,
       wtest.compare_as_set('SELECT * FROM wtest.lim ORDER BY k LIMIT (SELECT 2500 + count(*) FROM wtest.lim WHERE id < 9)') AS subquery,
       wtest.compare_as_set('SELECT * FROM wtest.lim ORDER BY k LIMIT 2500 + (random() * 0)::int') AS volatile;

-- The same where the sort is read again from its first row, as the inner side of a join: once for each v.n.
SET enable_material = off;
SELECT wtest.compare_as_set('SELECT v.n, s.* FROM (VALUES (3), (2500), (1), (4000)) v(n),
    LATERAL (SELECT count(*), sum(id), max(k) FROM (VALUES (1), (2)) two
             LEFT JOIN (SELECT * FROM wtest.lim ORDER BY k LIMIT v.n) r ON true) s') AS inner_side;
RESET enable_material;

-- Cursors, forward and backward, and again from the first row.
CREATE FUNCTION wtest.scrolled(query text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    c refcursor;
    step text;
    id int;
    seen text := '';
BEGIN
    OPEN c SCROLL FOR EXECUTE query;
    FOREACH step IN ARRAY ARRAY['FIRST', 'ABSOLUTE 1234', 'RELATIVE -20', 'LAST', 'NEXT', 'PRIOR', 'PRIOR',
                                'ABSOLUTE -3000', 'ABSOLUTE 2', 'PRIOR', 'PRIOR', 'NEXT'] LOOP
        EXECUTE format('FETCH %s FROM %I', step, c) INTO id;
        seen := seen || coalesce(id::text, '-') || ' ';
    END LOOP;
    CLOSE c;
    RETURN seen;
END $$;
CREATE FUNCTION wtest.scrolls(query text) RETURNS boolean
LANGUAGE plpgsql SET wiscsort.enable = on AS $$
DECLARE
    used boolean := wtest.uses(query);
    ours text := wtest.scrolled(query);
BEGIN
    SET LOCAL wiscsort.enable = off;
    RETURN used AND ours = wtest.scrolled(query);
END $$;
SELECT wtest.scrolls('SELECT id FROM wtest.lim ORDER BY k LIMIT 3000') AS keys,
       wtest.scrolls('SELECT id, pad, t FROM wtest.lim ORDER BY t LIMIT 2999') AS ties;
SET wiscsort.record_store = inline;
SELECT wtest.scrolls('SELECT id, pad FROM wtest.lim ORDER BY k OFFSET 10 LIMIT 3000') AS inline;
SET wiscsort.record_store = heap;
SELECT wtest.scrolls('SELECT id, pad FROM wtest.lim ORDER BY k OFFSET 10 LIMIT 3000') AS heap;
RESET wiscsort.record_store;

-- Beginning again, from a spool and from a table.
SET wiscsort.debug_again = 700;
SELECT wtest.limited('SELECT * FROM wtest.lim ORDER BY k LIMIT 3000') AS spool,
       wtest.limited('SELECT * FROM wtest.lim ORDER BY few, t LIMIT 3000') AS ties;
SET wiscsort.record_store = heap;
SELECT wtest.limited('SELECT * FROM wtest.lim ORDER BY k LIMIT 3000') AS heap;
RESET wiscsort.record_store;
RESET wiscsort.debug_again;

-- Few blocks in a merge: runs are merged while no piece is open, and no more at once than memory has blocks for.
CREATE TABLE wtest.many AS SELECT i::int8 AS id, hashint8extended(i, 1) AS k, repeat('x', 48) AS pad FROM generate_series(1, 500000) i;
ANALYZE wtest.many;
SET work_mem = '4MB';
SET wiscsort.block_size = '512kB';
SET wiscsort.record_store = heap;
SELECT wtest.limited('SELECT * FROM wtest.many ORDER BY id DESC LIMIT 50000') AS descending;
SET wiscsort.record_store = inline;
SET plan_cache_mode = force_generic_plan;
PREPARE many (int8) AS SELECT count(*), sum(k::numeric), max(pad) FROM (SELECT k, pad FROM wtest.many ORDER BY k LIMIT $1) s;
SELECT bool_or(line ~ 'WiscSort') AS random FROM wtest.plan('EXECUTE many (20000)') line;
EXECUTE many (20000);
SET wiscsort.enable = off;
DISCARD PLANS;
EXECUTE many (20000);
RESET wiscsort.enable;
RESET plan_cache_mode;
DEALLOCATE many;
RESET wiscsort.record_store;
RESET wiscsort.block_size;
DROP TABLE wtest.many;
SET work_mem = '64kB';

-- Below Gather Merge each worker has the bound.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET wiscsort.record_store = spool;
SELECT line FROM wtest.plan('SELECT * FROM wtest.lim ORDER BY k LIMIT 3000') line;
SELECT wtest.property('ANALYZE', 'SELECT * FROM wtest.lim ORDER BY k LIMIT 3000', 'Bound') AS bound,
       wtest.compare_as_set('SELECT * FROM wtest.lim ORDER BY k LIMIT 3000') AS constant;
SET plan_cache_mode = force_generic_plan;
PREPARE lim (int8) AS SELECT count(*), sum(id), max(k) FROM (SELECT * FROM wtest.lim ORDER BY k LIMIT $1) s;
EXECUTE lim (2500);
EXECUTE lim (3);
SET wiscsort.enable = off;
DISCARD PLANS;
EXECUTE lim (2500);
EXECUTE lim (3);
RESET wiscsort.enable;
DEALLOCATE lim;
-- From the most rows to the fewest: for a rescan that asks for more, workers keep the bound of the first scan,
-- whoever sorts (ExecParallelReinitialize leaves tuples_needed as it was), and rows are missing.
SELECT v.n, s.* FROM (VALUES (4000), (2500), (3)) v(n),
    LATERAL (SELECT count(*), sum(id), max(k) FROM (SELECT * FROM wtest.lim ORDER BY k LIMIT v.n) r) s;
SET max_parallel_workers_per_gather = 0;
SET wiscsort.enable = off;
SELECT v.n, s.* FROM (VALUES (4000), (2500), (3)) v(n),
    LATERAL (SELECT count(*), sum(id), max(k) FROM (SELECT * FROM wtest.lim ORDER BY k LIMIT v.n) r) s;
DROP TABLE wtest.lim;
