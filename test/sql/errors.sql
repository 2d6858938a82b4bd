-- Bad settings, and errors in the middle of a sort.
LOAD 'wiscsort';

-- Ranges and enumerations get PostgreSQL's own errors.
SELECT wtest.error('SET wiscsort.threshold = -2') AS too_small,
       wtest.error('SET wiscsort.threshold = ''-1MB''') AS below,
       wtest.error('SET wiscsort.threshold = ''big''') AS not_a_number;
SELECT wtest.error('SET wiscsort.threshold = ''1 parsec''') AS unit,
       wtest.error('SET wiscsort.enable = maybe') AS not_boolean,
       wtest.error('SET wiscsort.debug_force = 2') AS not_boolean;
SELECT wtest.error('SET wiscsort.sort_kernel = quantum') AS no_such_kernel;
SELECT wtest.error('SET wiscsort.sort_kernel = ''''') AS empty;
SELECT wtest.error('SELECT set_config(''wiscsort.threshold'', ''99999999999'', false)') ~ 'wiscsort.threshold' AS too_large;
-- The prefix is reserved: a misspelt setting is an error.
SELECT wtest.error('SET wiscsort.treshold = 1') AS misspelt;

-- A failed SET leaves the setting as it was.
SHOW wiscsort.threshold;
SHOW wiscsort.sort_kernel;

-- Units, and who may set them.
SET wiscsort.threshold = '8MB';
SHOW wiscsort.threshold;
SET wiscsort.threshold = 0;
SHOW wiscsort.threshold;
RESET wiscsort.threshold;
SHOW wiscsort.threshold;
CREATE ROLE regress_wiscsort_user;
SET ROLE regress_wiscsort_user;
SET wiscsort.enable = off;
SET wiscsort.threshold = 1024;
SET wiscsort.sort_kernel = template;
SET wiscsort.debug_force = on;
RESET ROLE;
RESET ALL;
DROP ROLE regress_wiscsort_user;

-- Errors while rows come in, go out, and are compared.
SET wiscsort.threshold = 0;
SET wiscsort.debug_force = on;
SET work_mem = '64kB';
SELECT wtest.error('SELECT count(*) FROM (SELECT 100 / (5000 - i) AS v, i FROM generate_series(1, 6000) i ORDER BY 1, 2 OFFSET 0) s') AS rows_in,
       wtest.error('SELECT sum(100 / (5000 - i)) FROM (SELECT i FROM generate_series(1, 6000) i ORDER BY -i OFFSET 0) s') AS rows_out;
CREATE TYPE wtest.touchy AS (a int);
CREATE FUNCTION wtest.touchy_cmp(wtest.touchy, wtest.touchy) RETURNS int
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    IF $1.a = 77 OR $2.a = 77 THEN
        RAISE EXCEPTION 'touchy';
    END IF;
    RETURN ($1.a > $2.a)::int - ($1.a < $2.a)::int;
END $$;
CREATE FUNCTION wtest.touchy_lt(wtest.touchy, wtest.touchy) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT wtest.touchy_cmp($1, $2) < 0 $$;
CREATE FUNCTION wtest.touchy_gt(wtest.touchy, wtest.touchy) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT wtest.touchy_cmp($1, $2) > 0 $$;
CREATE FUNCTION wtest.touchy_eq(wtest.touchy, wtest.touchy) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT wtest.touchy_cmp($1, $2) = 0 $$;
CREATE OPERATOR wtest.<# (LEFTARG = wtest.touchy, RIGHTARG = wtest.touchy, FUNCTION = wtest.touchy_lt, COMMUTATOR = OPERATOR(wtest.>#));
CREATE OPERATOR wtest.># (LEFTARG = wtest.touchy, RIGHTARG = wtest.touchy, FUNCTION = wtest.touchy_gt, COMMUTATOR = OPERATOR(wtest.<#));
CREATE OPERATOR wtest.=# (LEFTARG = wtest.touchy, RIGHTARG = wtest.touchy, FUNCTION = wtest.touchy_eq);
CREATE OPERATOR CLASS wtest.touchy_ops FOR TYPE wtest.touchy USING btree AS
    OPERATOR 1 wtest.<#, OPERATOR 3 wtest.=#, OPERATOR 5 wtest.>#, FUNCTION 1 wtest.touchy_cmp(wtest.touchy, wtest.touchy);
CREATE TEMP TABLE touchy AS SELECT ROW(i * 37 % 503)::wtest.touchy AS t, i AS id FROM generate_series(1, 500) i;
SELECT count(*) AS touchy_rows FROM touchy WHERE (t).a = 77;
SELECT wtest.error('SELECT count(*) FROM (SELECT * FROM touchy ORDER BY t USING OPERATOR(wtest.<#) OFFSET 0) s') AS compared,
       wtest.compare('SELECT * FROM touchy WHERE (t).a <> 77 ORDER BY t USING OPERATOR(wtest.<#), id') AS own_operator_class,
       wtest.compare('SELECT * FROM touchy WHERE (t).a <> 77 ORDER BY t USING OPERATOR(wtest.>#), id') AS own_descending;
-- Amounts of one currency can be compared, and more is not asked for here.
CREATE FUNCTION wtest.amount_cmp(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    IF $1 / 1000 <> $2 / 1000 THEN
        RAISE EXCEPTION 'currencies differ';
    END IF;
    RETURN ($1 > $2)::int - ($1 < $2)::int;
END $$;
CREATE FUNCTION wtest.amount_lt(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT wtest.amount_cmp($1, $2) < 0';
CREATE FUNCTION wtest.amount_gt(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT wtest.amount_cmp($1, $2) > 0';
CREATE FUNCTION wtest.amount_eq(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT wtest.amount_cmp($1, $2) = 0';
CREATE OPERATOR wtest.<~ (LEFTARG = int, RIGHTARG = int, FUNCTION = wtest.amount_lt, COMMUTATOR = OPERATOR(wtest.>~));
CREATE OPERATOR wtest.>~ (LEFTARG = int, RIGHTARG = int, FUNCTION = wtest.amount_gt, COMMUTATOR = OPERATOR(wtest.<~));
CREATE OPERATOR wtest.=~ (LEFTARG = int, RIGHTARG = int, FUNCTION = wtest.amount_eq);
CREATE OPERATOR CLASS wtest.amount_ops FOR TYPE int USING btree AS
    OPERATOR 1 wtest.<~, OPERATOR 3 wtest.=~, OPERATOR 5 wtest.>~, FUNCTION 1 wtest.amount_cmp(int, int);
CREATE TEMP TABLE amounts AS SELECT i % 3 AS currency, i % 3 * 1000 + i % 7 AS amount FROM generate_series(1, 3000) i;
SELECT wtest.compare('SELECT * FROM amounts ORDER BY currency, amount USING OPERATOR(wtest.<~)') AS comparable,
       wtest.error('SELECT * FROM amounts ORDER BY amount USING OPERATOR(wtest.<~)') AS not_comparable;
SELECT wtest.error('SELECT * FROM touchy ORDER BY t USING OPERATOR(wtest.=#)') AS no_ordering_operator;
SELECT wtest.error('SELECT * FROM (SELECT point(i, i) AS p FROM generate_series(1, 9) i) s ORDER BY p') AS unsortable_type;

-- Temporary files beyond wiscsort.max_temp.
SET wiscsort.max_temp = '64kB';
SELECT wtest.error('SELECT count(*) FROM (SELECT i FROM generate_series(1, 100000) i ORDER BY -i, i DESC OFFSET 0) s') AS max_temp,
       wtest.error('SELECT count(*) FROM (SELECT i FROM generate_series(1, 100) i ORDER BY -i, i DESC OFFSET 0) s') AS without_files;
RESET wiscsort.max_temp;

-- Cancelled in the middle; the session goes on.
SET statement_timeout = '200ms';
SELECT wtest.error('SELECT count(*) FROM (SELECT i FROM (SELECT generate_series(1, 100000000) AS i) g ORDER BY hashint4(i) OFFSET 0) s') AS cancelled;
RESET statement_timeout;
SELECT wtest.compare('SELECT i FROM generate_series(1, 1000) i ORDER BY hashint4(i), i') AS goes_on;
SELECT count(*) FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql_tmp' || pg_backend_pid() || '.%';

-- DROP EXTENSION leaves a session that works.
DROP EXTENSION wiscsort;
SELECT wtest.compare('SELECT i FROM generate_series(1, 1000) i ORDER BY hashint4(i), i') AS after_drop;
CREATE EXTENSION wiscsort;
