-- Cursors over a sort: forward, in every direction, and beyond the end of a transaction.
LOAD 'wiscsort';
SET max_parallel_workers_per_gather = 0;
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;
SET work_mem = '64kB';

-- Cursors without scrolling: in pieces, and closed early.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, k FROM wtest.e ORDER BY k;
FETCH 3 FROM c;
MOVE 90 IN c;
FETCH 3 FROM c;
FETCH ALL FROM c;
FETCH 1 FROM c;
CLOSE c;
DECLARE c NO SCROLL CURSOR FOR SELECT k FROM wtest.big ORDER BY k, id;
MOVE 5000 IN c;
FETCH 2 FROM c;
CLOSE c;
DECLARE c NO SCROLL CURSOR FOR SELECT id FROM wtest.e ORDER BY k;
FETCH 1 FROM c;
FETCH BACKWARD 1 FROM c;
ROLLBACK;

-- Scrolling: every direction.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, k FROM wtest.e ORDER BY k DESC;
FETCH 2 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
FETCH FORWARD 1 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ABSOLUTE 50 FROM c;
FETCH 0 FROM c;
FETCH RELATIVE -2 FROM c;
FETCH RELATIVE 2 FROM c;
FETCH ABSOLUTE -3 FROM c;
MOVE ABSOLUTE 0 IN c;
FETCH PRIOR FROM c;
FETCH FIRST FROM c;
FETCH BACKWARD ALL FROM c;
MOVE FORWARD ALL IN c;
FETCH BACKWARD 1 FROM c;
COMMIT;

SELECT * FROM wtest.there_and_back('SELECT id FROM wtest.big ORDER BY k, id');
SELECT * FROM wtest.there_and_back('SELECT id FROM wtest.big ORDER BY pad COLLATE "C" DESC');
SELECT * FROM wtest.there_and_back('SELECT id FROM wtest.big WHERE id < 0 ORDER BY k');

-- A cursor that outlives its transaction.
BEGIN;
DECLARE h SCROLL CURSOR WITH HOLD FOR SELECT id, k FROM wtest.e ORDER BY k;
FETCH 1 FROM h;
COMMIT;
FETCH 2 FROM h;
FETCH BACKWARD 1 FROM h;
FETCH LAST FROM h;
CLOSE h;
DECLARE h NO SCROLL CURSOR WITH HOLD FOR SELECT k FROM wtest.big ORDER BY k, id;
MOVE 7998 IN h;
FETCH ALL FROM h;
CLOSE h;

-- WHERE CURRENT OF is refused over a sort, as core refuses it.
BEGIN;
DECLARE c CURSOR FOR SELECT id, k FROM wtest.e ORDER BY k;
FETCH 1 FROM c;
DELETE FROM wtest.e WHERE CURRENT OF c;
ROLLBACK;

-- Back and forth over more rows than are looked ahead for: what each step finds, with core's and with WiscSort's.
CREATE FUNCTION wtest.walked(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    c refcursor;
    found_so_far text := '';
    r record;
BEGIN
    OPEN c SCROLL FOR EXECUTE query;
    FOR step IN 1..600 LOOP
        FETCH RELATIVE CASE WHEN step % 100 < 30 THEN -1 WHEN step % 100 = 30 THEN 2100 WHEN step % 100 < 60 THEN 1
                            WHEN step % 7 = 0 THEN -700 ELSE hashint4(step) % 900 + 60 END FROM c INTO r;
        found_so_far := md5(found_so_far || coalesce(r::text, 'none'));
    END LOOP;
    CLOSE c;
    RETURN found_so_far;
END $$;
CREATE TABLE wtest.walk AS SELECT hashint4(i) AS k, i AS id, repeat('w', i % 60) AS pad FROM generate_series(1, 20000) i;
ANALYZE wtest.walk;
CREATE FUNCTION wtest.walks_as_core(store text, memory text, query text) RETURNS text LANGUAGE plpgsql
SET wiscsort.debug_force = on SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
    ours text;
BEGIN
    PERFORM set_config('wiscsort.record_store', store, true), set_config('work_mem', memory, true), set_config('wiscsort.enable', 'on', true);
    IF NOT wtest.uses(query) THEN
        RETURN 'no WiscSort in the plan';
    END IF;
    ours := wtest.walked(query);
    PERFORM set_config('wiscsort.enable', 'off', true);
    RETURN CASE WHEN ours = wtest.walked(query) THEN 'same' ELSE 'different' END;
END $$;
SELECT store, memory, wtest.walks_as_core(store, memory, 'SELECT * FROM wtest.walk ORDER BY k, id')
  FROM unnest(ARRAY['spool', 'heap']) store, unnest(ARRAY['64kB', '256kB', '64MB']) memory;
