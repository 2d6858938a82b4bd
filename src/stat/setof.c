/*-------------------------------------------------------------------------
 * setof.c - functions that return rows, and the library that fills these.
 *
 * SQL declares the columns, C fills them in.  A database whose extension is of an older build than the
 * library, or of a newer one, has other columns: that is an error, not a row read beyond its end.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "stat/stat.h"
#include "utils/lsyscache.h"

/*
 * Has a function return rows, of `columns` columns, into what this returns: its tuplestore and descriptor are
 * of the query's memory.  Raises an error if SQL has declared another number of columns.
 */
ReturnSetInfo *
ws_return_rows(FunctionCallInfo fcinfo, int columns)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	if (result->setDesc->natts != columns)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the extension wiscsort of this database is of another build than the library"),
				 errdetail("Function %s returns %d columns, and the library has %d for it.",
						   get_func_name(fcinfo->flinfo->fn_oid), result->setDesc->natts, columns),
				 errhint("Connect again, or restart the server if wiscsort is in shared_preload_libraries. "
						 "Then ALTER EXTENSION wiscsort UPDATE, or DROP EXTENSION and CREATE EXTENSION.")));
	return result;
}
