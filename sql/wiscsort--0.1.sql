/* wiscsort 0.1: nothing in here is needed for sorting; load the library. */
\echo Use "CREATE EXTENSION wiscsort" to load this file. \quit

CREATE FUNCTION wiscsort.version() RETURNS text
	LANGUAGE c STABLE STRICT PARALLEL SAFE
	AS 'MODULE_PATHNAME', 'wiscsort_version';

COMMENT ON FUNCTION wiscsort.version() IS
	'version of wiscsort, and the optional libraries it was built with';

-- ---- statistics and progress (src/stat) ----

CREATE FUNCTION wiscsort.stat_rows(
	OUT database oid, OUT role oid, OUT query_id bigint,
	OUT sorts bigint, OUT aborted bigint, OUT one_pass bigint, OUT merge_pass bigint,
	OUT spool bigint, OUT heap bigint, OUT inline bigint, OUT keys bigint,
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
		s.sorts, s.aborted, s.one_pass, s.merge_pass, s.spool, s.heap, s.inline, s.keys,
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
	'since when wiscsort.stat counts, and how many rows of queries it has had to give up';

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
GRANT USAGE ON SCHEMA wiscsort TO PUBLIC;
GRANT SELECT ON wiscsort.stat, wiscsort.stat_info, wiscsort.progress TO PUBLIC;

-- ---- end of statistics and progress ----

-- Calling it loads the library into this session, settings included.
DO $$ BEGIN PERFORM wiscsort.version(); END $$;
