/*-------------------------------------------------------------------------
 * nested.c - sort keys that are made of parts (arrays, ranges, rows, jsonb): do their first parts tell
 * rows apart?
 *
 * Of such a value, 64 bits are in the prefix at most, or 80 as a guess (key/nested.c).  Where many values
 * have the same, as texts do that begin alike, the comparator decides, on rows that are fetched for it, and
 * core's sort is faster.  The bounds of the histogram that ANALYZE makes divide the rows into equal parts: if
 * two neighbours have the same bits, all rows between them do.  For ranges, it keeps lower and upper bounds
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
	uint8		bits[WS_PREFIX_BYTES];
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

/* Is the key made of parts that have bits, which are certain, or a guess if `guessing`? */
static bool
has_bits(const PathKey *pathkey, bool guessing)
{
	return ws_nested_create(proc_of(pathkey), exprType((Node *) expression_of(pathkey)),
							pathkey->pk_eclass->ec_collation, guessing) != NULL;
}

/* Is the key made of parts that have bits? */
bool
ws_key_is_nested(const PathKey *pathkey)
{
	return has_bits(pathkey, false) || has_bits(pathkey, true);
}

/* Is it, and are all of these a guess? */
bool
ws_nested_is_guessed(const PathKey *pathkey)
{
	return !has_bits(pathkey, false) && has_bits(pathkey, true);
}

static int
compare_bounds(const void *a, const void *b)
{
	const Bound *x = a;
	const Bound *y = b;

	return memcmp(x->bits, y->bits, WS_PREFIX_BYTES);
}

/* Do the bits of a histogram's bounds leave many parts untold? */
static bool
bounds_untold(const AttStatsSlot *slot, Oid proc, Oid collation)
{
	SortSupport guess = ws_nested_create(proc, slot->valuetype, collation, true);
	SortSupport nested = ws_nested_create(proc, slot->valuetype, collation, false);
	Bound	   *bounds = palloc(slot->nvalues * sizeof(Bound));
	int			untold = 0;

	if ((nested == NULL && guess == NULL) || slot->nvalues <= LEAST_PARTS)
		return false;
	memset(bounds, 0, slot->nvalues * sizeof(Bound));
	for (int i = 0; i < slot->nvalues; i++)
	{
		bounds[i].value = slot->values[i];
		if (guess != NULL)
			ws_nested_guess(guess, slot->values[i], WS_PREFIX_BYTES, bounds[i].bits);
		else
		{
			Datum		bits = nested->abbrev_converter(slot->values[i], nested);

			memcpy(bounds[i].bits, &bits, sizeof(bits));
		}
	}
	qsort(bounds, slot->nvalues, sizeof(Bound), compare_bounds);
	for (int i = 1; i < slot->nvalues; i++)
		untold += compare_bounds(&bounds[i], &bounds[i - 1]) == 0 &&
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
