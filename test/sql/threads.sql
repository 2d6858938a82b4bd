-- Helper threads: the same rows whoever writes, sorts, merges and fetches.
LOAD 'wiscsort';
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;
SET max_parallel_workers_per_gather = 0;

CREATE TABLE threads_t AS
  SELECT i AS id, hashint8(i) % 5000 AS k, CASE WHEN i % 7 > 0 THEN hashint8(i)::text END AS t,
         repeat('v', i % 90) AS pad
    FROM generate_series(1, 30000) i;
-- texts that make rows longer than a write buffer
INSERT INTO threads_t
  SELECT -i, i, 'wide', string_agg(hashint8(j)::text, ',') FROM generate_series(1, 20) i,
         generate_series(1, i * i * 100) j GROUP BY i;
ANALYZE threads_t;

-- Digest of the rows in order, core's and ours with every combination.
CREATE FUNCTION threads_digest(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  digest text;
BEGIN
  EXECUTE 'SELECT md5(string_agg(md5(r::text), '''')) FROM (' || query || ' OFFSET 0) r' INTO digest;
  RETURN digest;
END $$;

CREATE FUNCTION threads_differences(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  core text;
  memory text;
  threads text;
BEGIN
  PERFORM set_config('wiscsort.enable', 'off', true);
  core := threads_digest(query);
  PERFORM set_config('wiscsort.enable', 'on', true);
  FOREACH memory IN ARRAY ARRAY['64kB', '256kB', '1MB', '256MB'] LOOP
    PERFORM set_config('work_mem', memory, true);
    FOREACH threads IN ARRAY ARRAY['000', '001', '010', '100', '111', '---'] LOOP
      PERFORM set_config('wiscsort.read_threads', replace(substr(threads, 1, 1), '-', '-1'), true);
      PERFORM set_config('wiscsort.sort_threads', replace(substr(threads, 2, 1), '-', '-1'), true);
      PERFORM set_config('wiscsort.write_threads', replace(substr(threads, 3, 1), '-', '-1'), true);
      IF threads_digest(query) IS DISTINCT FROM core THEN
        RETURN NEXT format('%s %s', memory, threads);
      END IF;
    END LOOP;
  END LOOP;
END $$;

SELECT threads_differences('SELECT * FROM threads_t ORDER BY id');
SELECT threads_differences('SELECT id, k FROM threads_t ORDER BY k DESC, id');
SELECT threads_differences('SELECT id, t, pad FROM threads_t ORDER BY t COLLATE "C", id');
SELECT threads_differences('SELECT id, k FROM threads_t ORDER BY k::numeric, id DESC');
SELECT threads_differences('SELECT id, CASE WHEN id < 0 THEN t || ''x'' ELSE pad END FROM threads_t ORDER BY id');

-- Keys of text under ICU, which a helper makes: also null, long, compressed, and not plain ASCII.
CREATE TABLE threads_icu AS
SELECT i AS id, CASE WHEN i % 50 = 0 THEN NULL WHEN i % 97 = 0 THEN repeat(md5(i::text), 40 + i % 80) WHEN i % 10 = 0 THEN 'Ä' || md5((i % 500)::text)
                     WHEN i % 10 = 1 THEN md5((i % 30)::text) || repeat(' ', i % 3) ELSE md5(i::text) END COLLATE "und-x-icu" AS t
  FROM generate_series(1, 8000) i;
SELECT threads_differences('SELECT id, md5(t) FROM threads_icu ORDER BY t, id');
SELECT threads_differences('SELECT id, md5(t) FROM threads_icu ORDER BY t DESC NULLS LAST, id DESC');
SELECT threads_differences('SELECT id, md5(t) FROM threads_icu ORDER BY t COLLATE "de-x-icu" NULLS FIRST, id');
SELECT threads_differences('SELECT id, md5(t) FROM threads_icu WHERE t IS NOT NULL ORDER BY t::char(40), id');
-- and in several runs
SET work_mem = '2MB';
SET wiscsort.sort_threads = 1;
SELECT q, threads_digest(q) = (SELECT d FROM (SELECT set_config('wiscsort.enable', 'off', true)) s(x), LATERAL (SELECT threads_digest(q) || left(x, 0)) l(d)) AS as_core,
       set_config('wiscsort.enable', 'on', true)
  FROM unnest(ARRAY['SELECT id, CASE WHEN id % 40 > 0 THEN md5((id % 90000)::text) END COLLATE "und-x-icu" AS t FROM generate_series(1, 200000) id ORDER BY t, id',
                    'SELECT id, md5((id % 90000)::text)::char(34) COLLATE "de-x-icu" AS t FROM generate_series(1, 200000) id ORDER BY t DESC, id DESC',
                    -- short texts that find room where a long one did not
                    'SELECT id, repeat(md5((id * 7 % 100003)::text), CASE WHEN id % 3 = 0 THEN 30 ELSE 1 END) COLLATE "und-x-icu" AS t FROM generate_series(1, 100000) id ORDER BY t NULLS FIRST, id']) q;
RESET wiscsort.sort_threads;

-- All threads at work, and interrupted at each stage.
SET wiscsort.read_threads = 1;
SET wiscsort.sort_threads = 1;
SET wiscsort.write_threads = 1;
SET work_mem = '256kB';
SELECT count(*) FROM (SELECT * FROM threads_t ORDER BY k, id LIMIT 7) s;
SELECT id FROM threads_t WHERE id > 0 ORDER BY id DESC LIMIT 3;
-- an error while rows come in, and one while they go out
SELECT count(*) FROM (SELECT 1 / (id - 25000) FROM threads_t ORDER BY 1 OFFSET 0) s;
SELECT sum(1 / (id - 25000)) FROM (SELECT id FROM threads_t ORDER BY id OFFSET 0) s;
DO $$
BEGIN
  PERFORM count(1 / (id - 25000)) FROM (SELECT id, pad FROM threads_t ORDER BY id OFFSET 0) s;
EXCEPTION WHEN division_by_zero THEN
  RAISE NOTICE 'caught';
END $$;
-- cursors: left in the middle, closed, one beside the other
BEGIN;
DECLARE a NO SCROLL CURSOR FOR SELECT id FROM threads_t WHERE id > 0 ORDER BY id;
DECLARE b NO SCROLL CURSOR FOR SELECT id FROM threads_t WHERE id > 0 ORDER BY id DESC;
FETCH 2 FROM a;
FETCH 2 FROM b;
MOVE 20000 FROM a;
SET LOCAL wiscsort.sort_kernel = template;
FETCH 2 FROM a;
CLOSE a;
FETCH 1 FROM b;
SAVEPOINT s;
DECLARE c NO SCROLL CURSOR FOR SELECT id, pad FROM threads_t WHERE id > 0 ORDER BY id;
MOVE 100 FROM c;
ROLLBACK TO s;
FETCH 1 FROM b;
COMMIT;
-- sorted again for each outer row
SELECT o.n, s.* FROM (VALUES (1), (15000), (29998)) o(n),
  LATERAL (SELECT min(id), max(id), count(*)
             FROM (SELECT id FROM threads_t WHERE id >= o.n ORDER BY k, id OFFSET 0) q) s;
-- out of range
SET wiscsort.read_threads = 2;
SET wiscsort.sort_threads = -2;
RESET wiscsort.read_threads;

DROP FUNCTION threads_differences(text);
DROP FUNCTION threads_digest(text);
DROP TABLE threads_t, threads_icu;
