-- The extension as its users first meet it, and the helper functions of the other tests (schema wtest).

-- The library works without CREATE EXTENSION.
LOAD 'wiscsort';
SHOW wiscsort.enable;

CREATE EXTENSION wiscsort;
SELECT extname, extversion, nspname AS schema, extrelocatable
  FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace
 WHERE extname = 'wiscsort';
SELECT wiscsort.version() LIKE 'wiscsort 0.2.0,%' AS version_told;
SELECT wiscsort.version() ~* 'hwy' AS libhwy_told,
       wiscsort.version() ~* 'aio' AS libaio_told,
       wiscsort.version() ~* 'uring' AS liburing_told,
       wiscsort.version() ~* 'pmem' AS libpmem_told,
       wiscsort.version() ~ 'ICU' AS icu_told;

-- Settings.
SELECT name, setting, unit, context, vartype, min_val, max_val,
       array_remove(enumvals, 'vqsort') AS enumvals, boot_val
  FROM pg_settings
 WHERE name LIKE 'wiscsort.%'
 ORDER BY name COLLATE "C";
SELECT name FROM pg_settings
 WHERE name LIKE 'wiscsort.%' AND (short_desc = '' OR short_desc IS NULL);

CREATE SCHEMA wtest;
CREATE COLLATION wtest_nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);

-- One node of an EXPLAIN (FORMAT JSON) plan and everything below it, a line a node. Costs and whatever
-- else differs between PostgreSQL versions is left out.
CREATE FUNCTION wtest.node(node jsonb, depth int) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    line text;
    child jsonb;
BEGIN
    line := coalesce('Custom Scan (' || (node->>'Custom Plan Provider') || ')', node->>'Node Type');
    line := line || coalesce(' ' || (node->>'Strategy'), '');
    IF node->>'Join Type' <> 'Inner' THEN
        line := line || ' ' || (node->>'Join Type');
    END IF;
    line := line || coalesce(' on ' || (node->>'Relation Name'), '');
    IF node ? 'Sort Key' THEN
        line := line || ' by ' || (SELECT string_agg(k, ', ' ORDER BY o)
                                     FROM jsonb_array_elements_text(node->'Sort Key') WITH ORDINALITY e(k, o));
    END IF;
    IF node ? 'Presorted Key' THEN
        line := line || ' presorted ' || (SELECT string_agg(k, ', ' ORDER BY o)
                                            FROM jsonb_array_elements_text(node->'Presorted Key') WITH ORDINALITY e(k, o));
    END IF;
    RETURN NEXT repeat('  ', depth) || line;
    FOR child IN SELECT * FROM jsonb_array_elements(coalesce(node->'Plans', '[]')) LOOP
        RETURN QUERY SELECT * FROM wtest.node(child, depth + 1);
    END LOOP;
END $$;

-- A property of the first node of a plan that has it.
CREATE FUNCTION wtest.property(options text, query text, name text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    explained jsonb;
BEGIN
    EXECUTE format('EXPLAIN (%s, FORMAT JSON) %s', options, query) INTO explained;
    RETURN jsonb_path_query_first(explained, ('$.**."' || name || '"')::jsonpath) #>> '{}';
END $$;

CREATE FUNCTION wtest.plan(query text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    explained json;
BEGIN
    EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO explained;
    RETURN QUERY SELECT * FROM wtest.node((explained->0->'Plan')::jsonb, 0);
END $$;

CREATE FUNCTION wtest.uses(query text) RETURNS boolean
LANGUAGE sql AS $$
    SELECT coalesce(bool_or(line LIKE '%Custom Scan (WiscSort)%'), false) FROM wtest.plan(query) line
$$;

-- With wiscsort.enable off there is no trace of wiscsort in the plan.
CREATE FUNCTION wtest.off(query text) RETURNS boolean
LANGUAGE sql SET wiscsort.enable = off AS $$
    SELECT NOT wtest.uses(query)
$$;

-- Every row of a query, in order, as text.
CREATE FUNCTION wtest.rows(query text) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    result text[];
BEGIN
    EXECUTE format('SELECT array_agg(s::text) FROM (%s) s', query) INTO result;
    RETURN coalesce(result, '{}');
END $$;

-- What differs between two answers, or null.
CREATE FUNCTION wtest.difference(core text[], ours text[]) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    IF core = ours THEN
        RETURN NULL;
    END IF;
    IF cardinality(core) <> cardinality(ours) THEN
        RETURN format('%s rows instead of %s', cardinality(ours), cardinality(core));
    END IF;
    RETURN (SELECT format('row %s is %s instead of %s', o, left(b, 60), left(a, 60))
              FROM unnest(core, ours) WITH ORDINALITY u(a, b, o)
             WHERE a IS DISTINCT FROM b
             ORDER BY o LIMIT 1);
END $$;

-- The same by PostgreSQL's own sort.
CREATE FUNCTION wtest.core_rows(query text) RETURNS text[]
LANGUAGE sql SET wiscsort.enable = off AS $$
    SELECT wtest.rows(query)
$$;

-- Does WiscSort give the rows that core gives, in the same order? The query's order has to be total, or
-- rows that tie have to be alike. Says 'same', or what is wrong. First under the settings as they are:
CREATE FUNCTION wtest.compare_as_set(query text, core text[] DEFAULT NULL) RETURNS text
LANGUAGE plpgsql
SET wiscsort.enable = on AS $$
DECLARE
    ours text[];
BEGIN
    IF NOT wtest.uses(format('SELECT array_agg(s::text) FROM (%s) s', query)) THEN
        RETURN 'no WiscSort in the plan';
    END IF;
    ours := wtest.rows(query);
    RETURN coalesce(wtest.difference(coalesce(core, wtest.core_rows(query)), ours), 'same');
END $$;

-- and, what most tests use, wherever it is legal, with little and with enough work_mem, and with both the
-- built-in kernel and the one that the build prefers.
CREATE FUNCTION wtest.compare(query text) RETURNS text
LANGUAGE plpgsql
SET wiscsort.threshold = 0
SET wiscsort.debug_force = on
SET wiscsort.sort_kernel = auto
SET work_mem = '64MB' AS $$
DECLARE
    core text[] := wtest.core_rows(query);
    kernel text;
    memory text;
    verdict text;
BEGIN
    FOREACH kernel IN ARRAY ARRAY['template', 'auto'] LOOP
        PERFORM set_config('wiscsort.sort_kernel', kernel, true);
        FOREACH memory IN ARRAY ARRAY['64kB', '64MB'] LOOP
            PERFORM set_config('work_mem', memory, true);
            verdict := wtest.compare_as_set(query, core);
            IF verdict <> 'same' THEN
                RETURN format('kernel %s, work_mem %s: %s', kernel, memory, verdict);
            END IF;
        END LOOP;
    END LOOP;
    RETURN 'same';
END $$;

-- The error a statement raises, without what differs between versions: 'SQLSTATE message'.
CREATE FUNCTION wtest.error(statement text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS OR query_canceled THEN
    RETURN SQLSTATE || ' ' || regexp_replace(replace(SQLERRM, '"temp_file_limit"', 'temp_file_limit'),
                                             '^(-?\d+)( kB)?(.*) \(.*\)$', '\1\3 (BOUNDS)');
END $$;

-- The lines EXPLAIN ANALYZE adds, with figures masked.
CREATE FUNCTION wtest.analyzed(query text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
        line := regexp_replace(line, ' \(actual.*\)$', '');
        CONTINUE WHEN line ~ 'Disabled:|Index Searches:|Storage:';
        RETURN NEXT regexp_replace(line, '\d+( (?=kB))?', 'N', 'g');
    END LOOP;
END $$;

-- One WiscSort node's figures.
CREATE FUNCTION wtest.figures(query text, OUT method text, OUT entries int8, OUT runs int8, OUT passes int8,
                              OUT memory int8, OUT disk int8)
LANGUAGE plpgsql AS $$
DECLARE
    explained json;
    node jsonb;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO explained;
    node := jsonb_path_query_first(explained::jsonb, '$.** ? (@."Custom Plan Provider" == "WiscSort")');
    method := node->>'Sort Method';
    entries := node->>'IndexMap Entries';
    runs := node->>'Runs';
    passes := node->>'Merge Passes';
    memory := node->>'Memory';
    disk := node->>'Disk';
END $$;

-- Scrolling over a sort of many runs: backward gives forward's rows, reversed.
CREATE FUNCTION wtest.there_and_back(query text) RETURNS TABLE (rows int, same boolean)
LANGUAGE plpgsql AS $$
DECLARE
    c refcursor;
    r record;
    forward int[] := '{}';
    backward int[] := '{}';
BEGIN
    OPEN c SCROLL FOR EXECUTE query;
    LOOP
        FETCH NEXT FROM c INTO r;
        EXIT WHEN NOT FOUND;
        forward := forward || r.id;
    END LOOP;
    LOOP
        FETCH PRIOR FROM c INTO r;
        EXIT WHEN NOT FOUND;
        backward := r.id || backward;
    END LOOP;
    CLOSE c;
    rows := cardinality(forward);
    same := forward = backward;
    RETURN NEXT;
END $$;

-- The helpers at work.
SELECT * FROM wtest.plan('SELECT 1');
SELECT wtest.uses('SELECT 1'), wtest.off('SELECT 1');
SELECT wtest.difference('{a,b}', '{a}'), wtest.difference('{a,b}', '{a,c}'), wtest.difference('{a}', '{a}') IS NULL AS equal;
SELECT wtest.error('SELECT 1/0'), wtest.error('SELECT 1');

-- Tables that several tests use.
CREATE TABLE wtest.e (id int NOT NULL, k int, pad text);
INSERT INTO wtest.e SELECT i, (i * 37) % 101, repeat('e', i % 50) FROM generate_series(1, 100) i;
CREATE TABLE wtest.big (id int NOT NULL, k int NOT NULL, pad text);
INSERT INTO wtest.big SELECT i, hashint4(i), repeat('b', i % 60) FROM generate_series(1, 8000) i;
ANALYZE wtest.e, wtest.big;
