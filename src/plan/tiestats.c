/*-------------------------------------------------------------------------
 * tiestats.c - what the statistics of a table say of ties on the prefix, and where their keys are to be.
 *
 * ties.c tells the share of rows that are expected to tie.  With more than MOST_TIED, the heap store keeps a
 * spool of keys.  So it does where there are no statistics, unless a unique index says as much.
 *
 * Values in the statistics are only compared as bytes, and nothing of them is shown, so that it does not
 * matter who may read the column.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "key/key.h"
#include "nodes/nodeFuncs.h"
#include "plan/ties.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/*
 * Of the rows.  A tie costs 1 to 2 us from the table; the spool costs 0.05 to 0.4 us for
 * every row (docs/decisions/45-ties-from-the-table.md).
 */
#define MOST_TIED		0.05

/* Bytes of a numeric that are looked at: more than a prefix has. */
#define MOST_OF_NUMERIC	((Size) 32)

/* How the values of statistics become the bytes of a key, or nothing of the kind. */
static bool
has_bytes(WsEncoding encoding)
{
	switch (encoding)
	{
		case WS_ENC_BYTES:
		case WS_ENC_TEXT:
		case WS_ENC_BPCHAR:
		case WS_ENC_NAME:
		case WS_ENC_BYTEA:
		case WS_ENC_NUMERIC:
			return true;
		default:
			return false;
	}
}

/* The bytes of a value, as in a key but for the escapes of strings. */
static const char *
bytes_of(WsEncoding encoding, int width, Datum value, Size *length)
{
	struct varlena *string;
	uint8	   *numeric;

	switch (encoding)
	{
		case WS_ENC_BYTES:
			*length = width;
			return DatumGetPointer(value);
		case WS_ENC_NAME:
			*length = strlen(NameStr(*DatumGetName(value)));
			return NameStr(*DatumGetName(value));
		case WS_ENC_NUMERIC:
			string = PG_DETOAST_DATUM_PACKED(value);
			numeric = palloc(MOST_OF_NUMERIC);
			*length = ws_numeric_bytes((const uint8 *) VARDATA_ANY(string), VARSIZE_ANY_EXHDR(string), 0, 0,
									   MOST_OF_NUMERIC, numeric);
			*length = Min(*length, MOST_OF_NUMERIC);
			return (const char *) numeric;
		default:
			string = PG_DETOAST_DATUM_PACKED(value);
			*length = VARSIZE_ANY_EXHDR(string);
			return VARDATA_ANY(string);
	}
}

/* The bytes that such a value has in a key: a string's terminator, and what escapes it, are among them. */
static Size
bytes_in_key(WsEncoding encoding, const char *bytes, Size length)
{
	Size		zeros = 0;

	switch (encoding)
	{
		case WS_ENC_BYTES:
		case WS_ENC_NUMERIC:
			return length;
		case WS_ENC_BYTEA:
			for (Size i = 0; i < length; i++)
				zeros += bytes[i] == 0;
			return length + zeros + 2;
		default:
			return length + 1;
	}
}

/* Of the order that the histogram is in, nothing is known here. */
static int
compare_bounds(const void *a, const void *b)
{
	const WsTieBound *x = a;
	const WsTieBound *y = b;
	int			cmp = memcmp(x->bytes, y->bytes, Min(x->length, y->length));

	return cmp != 0 ? cmp : (x->length > y->length) - (x->length < y->length);
}

/* Adds the histogram, and the lengths of the most common values. */
static void
add_values(WsTieColumn *col, WsEncoding encoding, int width, HeapTuple stats)
{
	AttStatsSlot slot;
	Size		length;

	if (get_attstatsslot(&slot, stats, STATISTIC_KIND_HISTOGRAM, InvalidOid, ATTSTATSSLOT_VALUES))
	{
		col->bounds = palloc(slot.nvalues * sizeof(WsTieBound));
		col->nbounds = slot.nvalues;
		/* the slot is not freed: bounds point to its values, until the planner's memory goes */
		for (int i = 0; i < slot.nvalues; i++)
		{
			col->bounds[i].bytes = bytes_of(encoding, width, slot.values[i], &length);
			col->bounds[i].length = length;
			length = bytes_in_key(encoding, col->bounds[i].bytes, length);
			col->longest = Max(col->longest, length);
		}
		qsort(col->bounds, col->nbounds, sizeof(WsTieBound), compare_bounds);
	}
	if (get_attstatsslot(&slot, stats, STATISTIC_KIND_MCV, InvalidOid, ATTSTATSSLOT_VALUES))
	{
		for (int i = 0; i < slot.nvalues; i++)
		{
			const char *bytes = bytes_of(encoding, width, slot.values[i], &length);

			length = bytes_in_key(encoding, bytes, length);
			col->longest = Max(col->longest, length);
		}
		free_attstatsslot(&slot);
	}
}

/* The "<" of a key's values in `var`, a column of `rel`: what is equal to it may be of another type. */
static Oid
less_than(PlannerInfo *root, const PathKey *pathkey, Node *var, RelOptInfo *rel)
{
	EquivalenceMember *em = ws_member_of(root, rel, pathkey->pk_eclass, (Expr *) var);
	Oid			type = em->em_datatype;

	return get_opfamily_member(pathkey->pk_opfamily, type, type, BTLessStrategyNumber);
}

/* Are all values so long that ANALYZE has kept none of them? */
static bool
all_long(HeapTuple stats)
{
	AttStatsSlot slot;

	if (get_attstatsslot(&slot, stats, STATISTIC_KIND_HISTOGRAM, InvalidOid, 0) ||
		get_attstatsslot(&slot, stats, STATISTIC_KIND_MCV, InvalidOid, 0))
		return false;
	return ((Form_pg_statistic) GETSTRUCT(stats))->stadistinct != 0;
}

/* Are the values of a sort column long, so that they are stored elsewhere? */
static bool
is_long(PlannerInfo *root, Node *var)
{
	VariableStatData stats;
	bool		found = false;

	if (get_typlen(exprType(var)) != -1)
		return false;
	examine_variable(root, var, 0, &stats);
	if (HeapTupleIsValid(stats.statsTuple))
		found = all_long(stats.statsTuple);
	ReleaseVariableStats(stats);
	return found;
}

/* What is known of a sort column, a Var of `rel`, which has `tuples` rows. */
static WsTieColumn
column_of(PlannerInfo *root, const PathKey *pathkey, Node *var, RelOptInfo *rel, double tuples,
		  bool last)
{
	WsTieColumn col = {.last = last};
	VariableStatData stats;
	AttStatsSlot slot;
	bool		descending;
	bool		guessed;
	int			width;
	WsEncoding	encoding = ws_key_encoding(less_than(root, pathkey, var, rel),
										   pathkey->pk_eclass->ec_collation, &descending, &width);

	if (encoding == WS_ENC_NONE)
		return col;
	col.width = width;
	col.ends = ws_encoding_partial(encoding);
	examine_variable(root, var, 0, &stats);
	if (HeapTupleIsValid(stats.statsTuple))
	{
		col.nulls = ((Form_pg_statistic) GETSTRUCT(stats.statsTuple))->stanullfrac;
		if (get_attstatsslot(&slot, stats.statsTuple, STATISTIC_KIND_MCV, InvalidOid, ATTSTATSSLOT_NUMBERS))
		{
			for (int i = 0; i < slot.nnumbers; i++)
				col.common += slot.numbers[i];
			free_attstatsslot(&slot);
		}
		if (has_bytes(encoding))
			add_values(&col, encoding, width, stats.statsTuple);
	}
	if (HeapTupleIsValid(stats.statsTuple) || stats.isunique)
	{
		double		values = get_variable_numdistinct(&stats, &guessed);

		if (!guessed)
			col.unique = Min(1, values / Max(1, tuples * (1 - col.nulls)));
	}
	ReleaseVariableStats(stats);
	return col;
}

/*
 * Where the keys of ties are to be, of a sort by `pathkeys` that leaves rows in their table, of `tuples`
 * rows: `input` has TIDs and then the sort columns (heap.c).
 */
WsTieKeys
ws_tie_keys(PlannerInfo *root, const Path *input, List *pathkeys, double tuples)
{
	int			n = list_length(pathkeys);
	WsTieColumn *cols = palloc(n * sizeof(WsTieColumn));
	WsKeyWidth	all = WS_NO_WIDTH;

	for (int i = 0; i < n; i++)
	{
		const PathKey *pathkey = list_nth_node(PathKey, pathkeys, i);

		ws_key_width_add(&all, less_than(root, pathkey, list_nth(input->pathtarget->exprs, i + 1),
						 input->parent),
						 pathkey->pk_eclass->ec_collation, false);
	}
	if (ws_prefix_holds(&all))
		return WS_TIES_NONE;
	if (ws_debug_tie_keys != WS_TIE_KEYS_AUTO)
		return ws_debug_tie_keys == WS_TIE_KEYS_TABLE ? WS_TIES_TABLE : WS_TIES_SPOOL;
	/* from a spool it can be learnt that they need not be read (key/aside.c) */
	for (int i = 1; i < n; i++)
		if (is_long(root, list_nth(input->pathtarget->exprs, i + 1)))
			return WS_TIES_SPOOL;
	for (int i = 0; i < n; i++)
		cols[i] = column_of(root, list_nth_node(PathKey, pathkeys, i),
							list_nth(input->pathtarget->exprs, i + 1), input->parent, tuples, i + 1 == n);
	return ws_tied_share(input->rows, n, cols) <= MOST_TIED ? WS_TIES_TABLE : WS_TIES_SPOOL;
}
