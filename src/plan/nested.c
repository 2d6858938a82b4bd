/*-------------------------------------------------------------------------
 * nested.c - sort keys that are made of parts (arrays, ranges, rows, jsonb): do their first parts tell
 * rows apart?
 *
 * Of such a value, 64 bits are in the prefix at most (key/nested.c).  Where many values have the same, as
 * texts do that begin alike, the comparator decides, on rows that are fetched for it, and core's sort is
 * faster.  The bounds of the histogram that ANALYZE makes divide the rows into equal parts: if two
 * neighbours have the same bits, all rows between them do.  For ranges, it keeps lower and upper bounds
 * in such ranges, which have their bits, too.
 *
 * Neighbours that are equal do not count.  They are of a column with few values, which get codes.  Where
 * there are no statistics, bits are taken to tell rows apart.
 *
 * Values in the statistics become bits, which are only compared with each other, and nothing of them is
 * shown, so that it does not matter who may read the column.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "catalog/pg_statistic.h"
#include "key/key.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/selfuncs.h"

/* A histogram of fewer parts says too little; of a better one, the share of parts that may be untold. */
#define LEAST_PARTS		10
#define MOST_UNTOLD		0.75

typedef struct Bound
{
	uint64		bits;
	Datum		value;
} Bound;

static Expr *
expression_of(const PathKey *pathkey)
{
	return linitial_node(EquivalenceMember, pathkey->pk_eclass->ec_members)->em_expr;
}

static Oid
proc_of(const PathKey *pathkey)
{
	bool		descending;

	return ws_comparison_proc(ws_less_than(pathkey), &descending);
}

/* Is the key made of parts that have bits? */
bool
ws_key_is_nested(const PathKey *pathkey)
{
	return ws_nested_create(proc_of(pathkey), exprType((Node *) expression_of(pathkey)),
							pathkey->pk_eclass->ec_collation) != NULL;
}

static int
compare_bounds(const void *a, const void *b)
{
	const Bound *x = a;
	const Bound *y = b;

	return (x->bits > y->bits) - (x->bits < y->bits);
}

/* Do the bits of a histogram's bounds leave many parts untold? */
static bool
bounds_untold(const AttStatsSlot *slot, Oid proc, Oid collation)
{
	SortSupport nested = ws_nested_create(proc, slot->valuetype, collation);
	Bound	   *bounds = palloc(slot->nvalues * sizeof(Bound));
	int			untold = 0;

	if (nested == NULL || slot->nvalues <= LEAST_PARTS)
		return false;
	for (int i = 0; i < slot->nvalues; i++)
	{
		bounds[i].value = slot->values[i];
		bounds[i].bits = DatumGetUInt64(nested->abbrev_converter(slot->values[i], nested));
	}
	qsort(bounds, slot->nvalues, sizeof(Bound), compare_bounds);
	for (int i = 1; i < slot->nvalues; i++)
		untold += bounds[i].bits == bounds[i - 1].bits &&
			!datumIsEqual(bounds[i].value, bounds[i - 1].value, false, -1);
	return untold > MOST_UNTOLD * (slot->nvalues - 1);
}

/* Do most rows have the bits of many others, whose values are different, as statistics have it? */
bool
ws_nested_untold(PlannerInfo *root, const PathKey *pathkey)
{
	Oid			collation = pathkey->pk_eclass->ec_collation;
	Node	   *expr = (Node *) expression_of(pathkey);
	VariableStatData stats;
	AttStatsSlot slot;
	bool		untold = false;

	/* above a set operation, columns are of no relation that has statistics */
	if (bms_is_member(0, pull_varnos(root, expr)))
		return false;
	examine_variable(root, expr, 0, &stats);
	if (HeapTupleIsValid(stats.statsTuple))
	{
		if (get_attstatsslot(&slot, stats.statsTuple, STATISTIC_KIND_HISTOGRAM, InvalidOid,
							 ATTSTATSSLOT_VALUES))
		{
			untold = bounds_untold(&slot, proc_of(pathkey), collation);
			free_attstatsslot(&slot);
		}
		else if (get_attstatsslot(&slot, stats.statsTuple, STATISTIC_KIND_BOUNDS_HISTOGRAM, InvalidOid,
								  ATTSTATSSLOT_VALUES))
		{
			untold = bounds_untold(&slot, F_RANGE_CMP, collation);
			free_attstatsslot(&slot);
		}
	}
	ReleaseVariableStats(stats);
	return untold;
}
