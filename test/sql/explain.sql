-- What EXPLAIN says: the Sort Key in core's notation, and the same properties in every format.
LOAD 'wiscsort';
SET max_parallel_workers_per_gather = 0;
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;

CREATE TABLE wtest.x (id int NOT NULL, k int, v numeric, s text, c text COLLATE "C", t timestamptz);
INSERT INTO wtest.x SELECT i, i % 17, i % 5, md5(i::text), md5(i::text), timestamptz '2026-01-01' + i * interval '1 hour'
                      FROM generate_series(1, 1000) i;
ANALYZE wtest.x;

-- EXPLAIN's text.
EXPLAIN (COSTS OFF) SELECT * FROM wtest.x ORDER BY k;
EXPLAIN (COSTS OFF) SELECT * FROM wtest.x WHERE k > 3 ORDER BY v DESC, c NULLS FIRST;
EXPLAIN (COSTS OFF, VERBOSE) SELECT id, c FROM wtest.x ORDER BY k DESC NULLS LAST, id;

-- The Sort Key lines of a query: with WiscSort, and whether core writes the same.
CREATE FUNCTION wtest.key_lines(query text) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    line text;
    result text[] := '{}';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line LIKE '%Sort Key:%' THEN
            result := result || ltrim(line);
        END IF;
    END LOOP;
    RETURN result;
END $$;
CREATE FUNCTION wtest.core_key_lines(query text) RETURNS text[]
LANGUAGE sql SET wiscsort.enable = off AS $$ SELECT wtest.key_lines(query) $$;

SET enable_hashagg = off;
SELECT array_to_string(wtest.key_lines(q), ' / ') AS key_lines,
       wtest.key_lines(q) = wtest.core_key_lines(q) AS as_core, wtest.uses(q)
  FROM unnest(ARRAY[
    'SELECT * FROM wtest.x ORDER BY k',
    'SELECT * FROM wtest.x ORDER BY k DESC',
    'SELECT * FROM wtest.x ORDER BY k NULLS FIRST, v DESC NULLS LAST, id DESC NULLS FIRST',
    'SELECT * FROM wtest.x ORDER BY k + 1, -v',
    'SELECT id FROM wtest.x ORDER BY lower(s), upper(c)',
    'SELECT * FROM wtest.x ORDER BY s COLLATE "C"',
    'SELECT * FROM wtest.x ORDER BY c COLLATE "und-x-icu" DESC, s COLLATE "POSIX"',
    'SELECT * FROM wtest.x ORDER BY s USING ~<~',
    'SELECT * FROM wtest.x ORDER BY s USING ~>~, k USING >',
    'SELECT * FROM wtest.x ORDER BY k USING <, id USING >',
    'SELECT * FROM wtest.x y ORDER BY y.t, y.id',
    'SELECT y FROM wtest.x y ORDER BY y',
    'SELECT id FROM wtest.x ORDER BY (SELECT max(k) FROM wtest.x), id',
    'SELECT id FROM wtest.x ORDER BY CASE WHEN k > 3 THEN 1 ELSE 2 END, date_trunc(''day'', t), id',
    'SELECT id AS "Renamed", k AS "order" FROM wtest.x ORDER BY "order", "Renamed"',
    'SELECT k, count(*) AS n FROM wtest.x GROUP BY k ORDER BY n DESC, max(v), k',
    'SELECT a.id FROM wtest.x a CROSS JOIN (SELECT 1 AS one) b ORDER BY a.k + b.one, a.id',
    'SELECT * FROM (SELECT id, k FROM wtest.x ORDER BY k OFFSET 0) s ORDER BY id',
    'SELECT g, g % 3 FROM generate_series(1, 100) g ORDER BY 2, 1 DESC',
    'SELECT id, row_number() OVER (ORDER BY v DESC, id) FROM wtest.x']) WITH ORDINALITY u(q, o)
 ORDER BY o;
RESET enable_hashagg;

-- Properties, in their order. A plan's WiscSort node holds core's own properties and these.
CREATE FUNCTION wtest.properties(query text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    explained json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT JSON) ' || query INTO explained;
    RETURN QUERY
        SELECT format('%s: %s', key, json_typeof(value))
          FROM json_each(explained->0->'Plan') WITH ORDINALITY e(key, value, o)
         WHERE key NOT IN ('Parallel Aware', 'Async Capable', 'Actual Rows', 'Actual Loops', 'Plans', 'Disabled',
                           'Relation Name', 'Alias')
         ORDER BY o;
END $$;
SELECT wtest.properties('SELECT * FROM wtest.x ORDER BY k, id');

-- The properties that have one value here, in every format.
CREATE FUNCTION wtest.explained(format text, query text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    line text;
    result text := '';
BEGIN
    FOR line IN EXECUTE format('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT %s) %s', format, query) LOOP
        result := result || line || E'\n';
    END LOOP;
    RETURN result;
END $$;
SELECT f AS format, regexp_replace(ltrim(m[1]), '[ ,]+$', '') AS property
  FROM unnest(ARRAY['TEXT', 'JSON', 'YAML', 'XML']) WITH ORDINALITY u(f, o),
       regexp_matches(wtest.explained(f, 'SELECT id FROM wtest.x ORDER BY k, id'),
                      '^(.*(?:Sort.Method|Record.Store|IndexMap.Entries|Runs|Merge.Passes).*)$', 'gn') WITH ORDINALITY r(m, n)
 ORDER BY o, n;
SELECT f AS format, t ~ 'Memory\W+(\d+)' AS memory, t ~ 'Disk\W+(\d+)' AS disk
  FROM unnest(ARRAY['TEXT', 'JSON', 'YAML', 'XML']) WITH ORDINALITY u(f, o),
       wtest.explained(f, 'SELECT id FROM wtest.x ORDER BY k, id') t
 ORDER BY o;

SELECT f AS format, t ~ 'Custom.Plan.Provider\W+WiscSort|Custom Scan \(WiscSort\)' AS provider, t ~ 'Sort.Key\W+(Item\W+)?k' AS sort_key
  FROM unnest(ARRAY['TEXT', 'JSON', 'YAML', 'XML']) WITH ORDINALITY u(f, o),
       wtest.explained(f, 'SELECT id FROM wtest.x ORDER BY k, id') t
 ORDER BY o;

-- A node that never ran.
SELECT regexp_replace(line, '\(.*\)$', '(...)') AS line
  FROM regexp_split_to_table(wtest.explained('TEXT', 'SELECT 1 FROM generate_series(1, 0) g, LATERAL (SELECT id FROM wtest.x WHERE k = g ORDER BY v, id OFFSET 0) s'), '\n') line
 WHERE line ~ 'WiscSort|Sort Method|Record Store|Runs';
