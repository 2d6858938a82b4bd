/*-------------------------------------------------------------------------
 * abbreviations.c - int8 ordered by operators whose SortSupport has abbreviations that a function of its own
 * compares, of which 0 is equal to all: as PostGIS orders geometry.  For left_to_core.py.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/sortsupport.h"

PG_MODULE_MAGIC;

static int
compare(Datum x, Datum y, SortSupport ssup)
{
	int64		a = DatumGetInt64(x);
	int64		b = DatumGetInt64(y);

	return (a > b) - (a < b);
}

static int
compare_abbreviations(Datum x, Datum y, SortSupport ssup)
{
	return x == 0 || y == 0 ? 0 : (x > y) - (x < y);
}

static Datum
abbreviate(Datum original, SortSupport ssup)
{
	return (Datum) (DatumGetInt64(original) / 16 + (PG_INT64_MAX / 16));
}

static bool
abort_abbreviations(int memtupcount, SortSupport ssup)
{
	return false;
}

PG_FUNCTION_INFO_V1(far_cmp);

/* btint8cmp, which nobody knows by this name. */
Datum
far_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), NULL));
}

PG_FUNCTION_INFO_V1(sort_support);

Datum
sort_support(PG_FUNCTION_ARGS)
{
	SortSupport ssup = (SortSupport) PG_GETARG_POINTER(0);

	ssup->comparator = compare;
	if (ssup->abbreviate)
	{
		ssup->comparator = compare_abbreviations;
		ssup->abbrev_converter = abbreviate;
		ssup->abbrev_abort = abort_abbreviations;
		ssup->abbrev_full_comparator = compare;
	}
	PG_RETURN_VOID();
}
