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
