/*-------------------------------------------------------------------------
 * compare.c - comparing rows whose prefixes are equal.
 *
 * The columns' own SortSupport comparators decide, as in core's sort, from
 * the first column on: the prefix may have held only part of it.  For
 * columns that have an encoding they agree with the order of the key bytes.
 * Returned is the order of the keys only, never of the pointers.
 *
 * Where letters tell the order of texts, these are compared by them; what they leave equal is not.
 *
 * These run once a tie, on rows that have been put away; they allocate only
 * where a value is toasted.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

/*
 * Compares the key columns from number `from_col` (from 0) on.  Values are
 * indexed by attno - 1.  Returns <0, 0, >0.
 */
int
ws_key_compare(const WsKeySpec *spec, int from_col,
			   const Datum *avalues, const bool *anull,
			   const Datum *bvalues, const bool *bnull)
{
	for (int i = from_col; i < spec->ncols; i++)
	{
		int			att = spec->cols[i].attno - 1;
		int			cmp = ws_compare_values(spec, i, avalues[att], anull[att], bvalues[att], bnull[att]);

		if (cmp != 0)
			return cmp;
	}
	return 0;
}
