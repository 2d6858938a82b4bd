/* wiscsort 0.1: nothing in here is needed for sorting; load the library. */
\echo Use "CREATE EXTENSION wiscsort" to load this file. \quit

-- Made here, so that it is a part of the extension and goes with it.
CREATE SCHEMA wiscsort;

CREATE FUNCTION wiscsort.version() RETURNS text
	LANGUAGE c STABLE STRICT PARALLEL SAFE
	AS 'MODULE_PATHNAME', 'wiscsort_version';

COMMENT ON FUNCTION wiscsort.version() IS
	'version of wiscsort, and the optional libraries it was built with';
