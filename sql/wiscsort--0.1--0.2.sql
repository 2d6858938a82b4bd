/* wiscsort 0.1 to 0.2: what a DBA asks, statistics and progress.  CREATE EXTENSION executes both scripts. */
\echo Use "ALTER EXTENSION wiscsort UPDATE" to load this file. \quit

-- Nobody's operators but PostgreSQL's: in the first builds the schema may be somebody's who had made it before.
SET LOCAL search_path = pg_catalog, pg_temp;

-- The first builds had version() alone.  The later ones that called themselves 0.1 had some of the rest, which
-- is made anew; what others have made of these views has to go first.
DROP VIEW IF EXISTS wiscsort.stat, wiscsort.stat_info, wiscsort.progress;
DROP FUNCTION IF EXISTS wiscsort.advise, wiscsort.why, wiscsort.status, wiscsort.enable_in_database,
	wiscsort.disable_in_database, wiscsort.stat_rows, wiscsort.stat_reset, wiscsort.stat_info_row,
	wiscsort.progress_rows, wiscsort.advise_workload;
DROP DOMAIN IF EXISTS wiscsort.share;

-- The first builds made the schema beside the extension, which left it behind when it was dropped.
DO $$
DECLARE
	extension oid := (SELECT e.oid FROM pg_catalog.pg_extension e WHERE e.extname = 'wiscsort');
BEGIN
	UPDATE pg_catalog.pg_extension e SET extnamespace = 'pg_catalog'::regnamespace
	 WHERE e.oid = extension AND e.extnamespace = 'wiscsort'::regnamespace;
	IF FOUND THEN
		-- if it was somebody else's, nothing of that is left
		IF EXISTS (SELECT FROM (SELECT 'pg_proc'::regclass, p.oid, p.pronamespace FROM pg_catalog.pg_proc p
				UNION ALL SELECT 'pg_class'::regclass, c.oid, c.relnamespace FROM pg_catalog.pg_class c
				UNION ALL SELECT 'pg_operator'::regclass, o.oid, o.oprnamespace FROM pg_catalog.pg_operator o)
				x(class, id, namespace)
			 WHERE x.namespace = 'wiscsort'::regnamespace
			   AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = x.class AND d.objid = x.id
					AND d.refclassid = 'pg_extension'::regclass AND d.refobjid = extension)) THEN
			RAISE EXCEPTION 'schema wiscsort has objects that are not of the extension'
				USING HINT = 'Move them to another schema, and update again.',
				ERRCODE = 'object_not_in_prerequisite_state';
		END IF;
		ALTER SCHEMA wiscsort OWNER TO CURRENT_USER;
		UPDATE pg_catalog.pg_namespace SET nspacl = NULL WHERE oid = 'wiscsort'::regnamespace;
		DELETE FROM pg_catalog.pg_depend d
		 WHERE d.classid = 'pg_extension'::regclass AND d.objid = extension
		   AND d.refclassid = 'pg_namespace'::regclass;
		INSERT INTO pg_catalog.pg_depend (classid, objid, objsubid, refclassid, refobjid, refobjsubid, deptype)
		VALUES ('pg_namespace'::regclass, 'wiscsort'::regnamespace, 0, 'pg_extension'::regclass, extension, 0, 'e');
	END IF;
END
$$;

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
	LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
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

-- ---- statistics and progress (src/stat) ----

CREATE FUNCTION wiscsort.stat_rows(
	OUT database oid, OUT role oid, OUT query_id bigint,
	OUT sorts bigint, OUT aborted bigint, OUT one_pass bigint, OUT merge_pass bigint,
	OUT spool bigint, OUT heap bigint, OUT inline bigint, OUT keys bigint, OUT few bigint,
	OUT rows bigint, OUT spool_bytes bigint, OUT run_bytes bigint, OUT temp_bytes bigint,
	OUT runs bigint, OUT merge_passes bigint,
	OUT input_us bigint, OUT sort_us bigint, OUT output_us bigint,
	OUT blocks_direct bigint, OUT blocks_buffered bigint, OUT blocks_of_runs bigint,
	OUT blocks_from_device bigint, OUT read_stalls bigint, OUT read_stall_us bigint,
	OUT began_again bigint, OUT travelled bigint, OUT copied bigint, OUT io_refused bigint,
	OUT left_to_core bigint, OUT left_to_core_bytes bigint,
	OUT temp_peak bigint, OUT memory_peak bigint, OUT one_pass_at bigint[])
	RETURNS SETOF record
	LANGUAGE c VOLATILE STRICT PARALLEL SAFE
	AS 'MODULE_PATHNAME', 'wiscsort_stat_rows';

CREATE VIEW wiscsort.stat AS
	SELECT s.database AS datid, d.datname, s.role AS userid, r.rolname AS usename, s.query_id,
		s.sorts, s.aborted, s.one_pass, s.merge_pass, s.spool, s.heap, s.inline, s.keys, s.few,
		s.rows, s.spool_bytes, s.run_bytes, s.temp_bytes, s.temp_peak, s.memory_peak, s.runs, s.merge_passes,
		s.input_us / 1e6::float8 AS input_seconds, s.sort_us / 1e6::float8 AS sort_seconds,
		s.output_us / 1e6::float8 AS output_seconds,
		s.blocks_direct, s.blocks_buffered, s.blocks_of_runs, s.blocks_from_device,
		s.read_stalls, s.read_stall_us / 1e6::float8 AS read_stall_seconds,
		s.began_again, s.travelled, s.copied, s.io_refused,
		s.left_to_core, s.left_to_core_bytes, s.one_pass_at
	FROM wiscsort.stat_rows() s
		LEFT JOIN pg_catalog.pg_database d ON d.oid = s.database
		LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.role;

COMMENT ON VIEW wiscsort.stat IS
	'what sorts have done since the server started, by database, role and query';

CREATE FUNCTION wiscsort.stat_reset() RETURNS bigint
	LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'wiscsort_stat_reset';

COMMENT ON FUNCTION wiscsort.stat_reset() IS
	'forgets what wiscsort.stat shows, and returns of how many sorts that was';

CREATE FUNCTION wiscsort.stat_info_row(
	OUT stats_since timestamptz, OUT rows_given_up bigint, OUT max_rows int)
	RETURNS SETOF record
	LANGUAGE c VOLATILE STRICT PARALLEL SAFE
	AS 'MODULE_PATHNAME', 'wiscsort_stat_info';

CREATE VIEW wiscsort.stat_info AS
	SELECT i.stats_since, i.rows_given_up, i.max_rows FROM wiscsort.stat_info_row() i;

COMMENT ON VIEW wiscsort.stat_info IS
	'since when wiscsort.stat counts, and how many of its rows had to be given up';

CREATE FUNCTION wiscsort.progress_rows(
	OUT database oid, OUT role oid, OUT query_id bigint, OUT pid int, OUT leader_pid int, OUT node int,
	OUT phase text, OUT rows_in bigint, OUT rows_out bigint, OUT rows_expected float8,
	OUT temp_bytes bigint, OUT memory_bytes bigint, OUT rows_per_second float8,
	OUT began timestamptz, OUT estimated_end timestamptz, OUT merged bigint,
	OUT input_us bigint, OUT sort_us bigint, OUT output_us bigint)
	RETURNS SETOF record
	LANGUAGE c VOLATILE STRICT PARALLEL SAFE
	AS 'MODULE_PATHNAME', 'wiscsort_progress_rows';

CREATE VIEW wiscsort.progress AS
	SELECT p.pid, p.leader_pid, p.database AS datid, d.datname, p.role AS userid, r.rolname AS usename,
		p.query_id, p.node, p.phase, p.rows_in, p.rows_out, p.rows_expected, p.merged,
		p.temp_bytes, p.memory_bytes, p.rows_per_second, p.began, p.estimated_end,
		p.input_us / 1e6::float8 AS input_seconds, p.sort_us / 1e6::float8 AS sort_seconds,
		p.output_us / 1e6::float8 AS output_seconds
	FROM wiscsort.progress_rows() p
		LEFT JOIN pg_catalog.pg_database d ON d.oid = p.database
		LEFT JOIN pg_catalog.pg_roles r ON r.oid = p.role;

COMMENT ON VIEW wiscsort.progress IS
	'sorts that run now, and how far they are';

REVOKE ALL ON FUNCTION wiscsort.stat_reset() FROM PUBLIC;
GRANT SELECT ON wiscsort.stat, wiscsort.stat_info, wiscsort.progress TO PUBLIC;

-- An argument of this type is checked before the function is called.
CREATE DOMAIN wiscsort.share AS float8
	CONSTRAINT "above 0 and at most 1" CHECK (VALUE > 0 AND VALUE <= 1);

COMMENT ON DOMAIN wiscsort.share IS
	'a share of something: above 0, and at most 1, which is all of it';

CREATE FUNCTION wiscsort.advise_workload(share wiscsort.share DEFAULT 0.95,
	OUT datname name, OUT usename name, OUT sorts bigint, OUT one_pass_now float8, OUT work_mem_kb bigint)
	RETURNS SETOF record
	LANGUAGE sql VOLATILE STRICT PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
	AS $$
	WITH needed AS (
		SELECT s.datid, s.datname, s.userid, s.usename, n.class, sum(n.sorts) AS sorts
		  FROM wiscsort.stat s, unnest(s.one_pass_at) WITH ORDINALITY n (sorts, class)
		 GROUP BY s.datid, s.datname, s.userid, s.usename, n.class
	), up_to AS (
		SELECT n.*, sum(n.sorts) OVER (PARTITION BY n.datid, n.userid ORDER BY n.class) AS so_far,
			sum(n.sorts) OVER (PARTITION BY n.datid, n.userid) AS total,
			max(n.class) OVER () AS last
		  FROM needed n
	), now AS (
		SELECT s.datid, s.userid, sum(s.one_pass - s.few) / nullif(sum(s.sorts - s.few), 0)::float8 AS one_pass
		  FROM wiscsort.stat s GROUP BY s.datid, s.userid
	)
	SELECT u.datname, u.usename, u.total::bigint, n.one_pass,
		-- elements of one_pass_at are four to a doubling: 64, 80, 96, 112, 128 kB
		min(CASE WHEN u.so_far >= share * u.total AND u.class < u.last
			THEN (4 + (u.class - 1) % 4) * 16 << ((u.class - 1) / 4)::int END)
	  FROM up_to u JOIN now n ON n.datid IS NOT DISTINCT FROM u.datid AND n.userid IS NOT DISTINCT FROM u.userid
	 WHERE u.total > 0
	 GROUP BY u.datid, u.userid, u.datname, u.usename, u.total, n.one_pass
	 ORDER BY u.total DESC
	$$;

COMMENT ON FUNCTION wiscsort.advise_workload(wiscsort.share) IS
	'the least work_mem with which that share of the sorts counted would have been one-pass, by database and role';

-- ---- end of statistics and progress ----

-- Making a function loads the library into this session, settings included.  The next one does without, unless
-- it is in a list of libraries: that is said, but to sessions that had loaded it before.
-- (Scripts of extensions are executed without notices, unless they ask for them.)
DO $$
DECLARE
	before text := current_setting('client_min_messages');
BEGIN
	IF (SELECT count(*) = 2 FROM wiscsort.status() s
		 WHERE (s.name = 'loaded in this session' AND s.value = 'by CREATE EXTENSION') OR
			(s.name = 'session_preload_libraries of the database' AND s.hint IS NOT NULL)) AND
		(SELECT s.reset_val IN ('notice', 'log') OR s.reset_val LIKE 'debug%'
		   FROM pg_settings s WHERE s.name = 'client_min_messages') THEN
		PERFORM set_config('client_min_messages', 'notice', true);
		RAISE NOTICE 'this session uses wiscsort, but new sessions do not load it yet'
			USING HINT = 'SELECT wiscsort.enable_in_database(); has new sessions of this database load it.';
		-- or it would stay for the rest of the transaction
		PERFORM set_config('client_min_messages', before, true);
	END IF;
END
$$;
