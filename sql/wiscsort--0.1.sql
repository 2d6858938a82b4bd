/* wiscsort 0.1: nothing in here is needed for sorting; load the library. */
\echo Use "CREATE EXTENSION wiscsort" to load this file. \quit

-- Made here, so that it is a part of the extension and goes with it.
CREATE SCHEMA wiscsort;

CREATE FUNCTION wiscsort.version() RETURNS text
	LANGUAGE c STABLE STRICT PARALLEL SAFE
	AS 'MODULE_PATHNAME', 'wiscsort_version';

COMMENT ON FUNCTION wiscsort.version() IS
	'version of wiscsort, and the optional libraries it was built with';

-- What a DBA asks (src/advise).
CREATE FUNCTION wiscsort.advise(query text, run boolean DEFAULT false,
		OUT sort integer, OUT node text, OUT keys text, OUT rows bigint, OUT width integer,
		OUT measured boolean, OUT processes integer, OUT core text, OUT wiscsort text,
		OUT one_pass_kb bigint, OUT core_in_memory_kb bigint, OUT estimates jsonb,
		OUT recommended_kb bigint, OUT reason text) RETURNS SETOF record
	LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'wiscsort_advise';
COMMENT ON FUNCTION wiscsort.advise(text, boolean) IS
	'the sorts of a query, and the work_mem that each of them wants; run: by running it, read only';

CREATE FUNCTION wiscsort.why(query text,
		OUT sort integer, OUT node text, OUT keys text, OUT sorted_by text, OUT reason text)
		RETURNS SETOF record
	LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'wiscsort_why';
COMMENT ON FUNCTION wiscsort.why(text) IS
	'the sorts of a query, who sorts, and why';

CREATE FUNCTION wiscsort.status(OUT name text, OUT value text, OUT hint text) RETURNS SETOF record
	LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'wiscsort_status';
COMMENT ON FUNCTION wiscsort.status() IS
	'what is loaded where, built with what, which memory was found, and what is wrong';

CREATE FUNCTION wiscsort.enable_in_database() RETURNS text
	LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'wiscsort_enable_in_database';
COMMENT ON FUNCTION wiscsort.enable_in_database() IS
	'has new sessions of this database load wiscsort; returns session_preload_libraries as it is then';

CREATE FUNCTION wiscsort.disable_in_database() RETURNS text
	LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'wiscsort_disable_in_database';
COMMENT ON FUNCTION wiscsort.disable_in_database() IS
	'has new sessions of this database not load wiscsort; returns session_preload_libraries as it is then';

-- Everybody may ask; what a query may read is decided by the rights of who asks.
GRANT USAGE ON SCHEMA wiscsort TO PUBLIC;
REVOKE EXECUTE ON FUNCTION wiscsort.enable_in_database(), wiscsort.disable_in_database() FROM PUBLIC;
-- (end of src/advise)

-- Making a function loads the library into this session, settings included.  The next one does without, unless
-- it is in a list of libraries: that is said, but to sessions that had loaded it before.
-- (Scripts of extensions are executed without notices, unless they ask for them.)
DO $$
BEGIN
	IF (SELECT count(*) = 2 FROM wiscsort.status() s
		 WHERE (s.name = 'loaded in this session' AND s.value = 'by CREATE EXTENSION') OR
			(s.name = 'session_preload_libraries of the database' AND s.hint IS NOT NULL)) AND
		(SELECT s.reset_val IN ('notice', 'log') OR s.reset_val LIKE 'debug%'
		   FROM pg_settings s WHERE s.name = 'client_min_messages') THEN
		PERFORM set_config('client_min_messages', 'notice', true);
		RAISE NOTICE 'this session uses wiscsort, but new sessions do not load it yet'
			USING HINT = 'SELECT wiscsort.enable_in_database(); has new sessions of this database load it.';
	END IF;
END
$$;
