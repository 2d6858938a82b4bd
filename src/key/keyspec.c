/*-------------------------------------------------------------------------
 * keyspec.c - from ORDER BY columns to a key specification.
 *
 * The type of a column leads to its encoding (encoding.c).  Whatever is unknown is sorted by its own
 * comparator, so that no type is refused; if values can be abbreviated to 8 bytes, by core's
 * SortSupport (text under ICU collations) or here (nested.c), these go
 * into the prefix, and the comparator settles ties only.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

#include "access/transam.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "key/fixed.h"
#include "mb/pg_wchar.h"
#include "parser/parse_coerce.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

/*
 * Sets the encoding of a column that only its comparator can order wholly: abbreviated keys, if there are any
 * of its type.
 */
static void
find_abbreviation(WsKeyColumn *col, Oid type, Oid sortop, Oid collation)
{
	bool		descending;
	Oid			proc = ws_comparison_proc(sortop, &descending);

	col->parts = ws_nested_create(proc, type, collation, true);
	col->abbreviate = ws_nested_create(proc, type, collation, false);
	if (col->abbreviate != NULL)
	{
		col->encoding = WS_ENC_ABBREVIATED;
		col->width = sizeof(Datum);
		return;
	}
	if (col->parts != NULL)
	{
		col->encoding = WS_ENC_TRANSFORMED;
		return;
	}
	ws_find_abbreviation(col, col->lowered ? TextLessOperator : sortop, collation);
	if (col->lowered && col->icu == NULL)
	{
		/* core's abbreviations are of texts that are not lowered */
		col->abbreviate = NULL;
		col->encoding = WS_ENC_NONE;
		col->width = 0;
	}
	if (col->icu != NULL)
		col->transform = ws_transform_of_icu(col->icu, collation);
}

/* Makes the column one whose order is guessed, if it is text. */
static void
find_transform(WsKeyColumn *col, Oid sortop, Oid collation)
{
	if (!ws_key_is_text(sortop, &col->padded))
		return;
	col->transform = ws_transform_create(collation);
	if (col->transform != NULL)
		col->encoding = WS_ENC_TRANSFORMED;
}

/* Do values of a type have types of their own?  Those of different rows need not be comparable then. */
static bool
is_dissimilar(Oid type)
{
	return type == RECORDOID || type == RECORDARRAYOID || type == ANYARRAYOID;
}

/*
 * May comparing two values of a type by `proc` fail?  Of comparison functions that are not PostgreSQL's own,
 * only those of string types are trusted: amounts of different currencies, say, may not be comparable.
 */
static bool
may_fail(Oid type, Oid proc)
{
	TypeCacheEntry *entry;
	char		category;
	bool		preferred;

	type = getBaseType(type);
	if (type_is_multirange(type))
		type = get_multirange_range(type);
	if (type_is_rowtype(type))
		return true;
	if (type_is_range(type))
	{
		entry = lookup_type_cache(type, TYPECACHE_RANGE_INFO);
		return may_fail(entry->rngelemtype->type_id, entry->rng_cmp_proc_finfo.fn_oid);
	}
	if (OidIsValid(get_element_type(type)))
	{
		entry = lookup_type_cache(get_element_type(type), TYPECACHE_CMP_PROC);
		return may_fail(entry->type_id, entry->cmp_proc);
	}
	get_type_category_preferred(type, &category, &preferred);
	return proc >= FirstNormalObjectId && category != TYPCATEGORY_STRING;
}

/*
 * Builds the key specification for rows of type `desc`, in
 * CurrentMemoryContext.  All arrays have `ncols` members; `notnull[i]` says
 * that the planner knows column i to hold no null.  Raises what core's sort
 * raises for an operator that cannot be used (an unusable collation, a type
 * without comparison support).
 */
WsKeySpec *
ws_keyspec_create(TupleDesc desc, int ncols, const AttrNumber *attnos,
				  const Oid *sortops, const Oid *collations,
				  const bool *nulls_first, const bool *notnull)
{
	WsKeySpec  *spec = palloc0(sizeof(WsKeySpec));
	WsKeyWidth	all = WS_NO_WIDTH;

	spec->ncols = ncols;
	spec->cols = palloc0(ncols * sizeof(WsKeyColumn));
	spec->compare = palloc0(ncols * sizeof(SortSupportData));

	for (int i = 0; i < ncols; i++)
	{
		WsKeyColumn *col = &spec->cols[i];
		Oid			type = TupleDescAttr(desc, attnos[i] - 1)->atttypid;
		bool		descending;

		Assert(attnos[i] > 0 && attnos[i] <= desc->natts);
		col->attno = attnos[i];
		col->nulls_first = nulls_first[i];
		col->notnull = notnull[i];
		col->length = TupleDescAttr(desc, attnos[i] - 1)->attlen;
		col->byval = TupleDescAttr(desc, attnos[i] - 1)->attbyval;
		spec->last_attno = Max(spec->last_attno, attnos[i]);

		ws_init_sort_support(&spec->compare[i], attnos[i], sortops[i],
							 collations[i], nulls_first[i], false);

		col->encoding = ws_key_encoding(sortops[i], collations[i],
										&col->descending, &col->width);
		col->lowered = OidIsValid(collations[i]) && ws_key_is_lowered(sortops[i]);
		if (col->lowered)
			ws_lower_sort_support(&spec->compare[i]);
		if (ws_encoding_partial(col->encoding))
		{
			/* of a later column core compares no values if those before it differ */
			col->dissimilar = is_dissimilar(type) ||
				(i > 0 && may_fail(type, ws_comparison_proc(sortops[i], &descending)));
			find_abbreviation(col, type, sortops[i], collations[i]);
			spec->comparator = true;
			if (col->encoding == WS_ENC_NONE)
				find_transform(col, sortops[i], collations[i]);
			spec->guess |= col->encoding == WS_ENC_TRANSFORMED;
		}
		col->null_apart = ws_null_apart(col->encoding, col->nulls_first, col->descending,
										GetDatabaseEncoding() == PG_UTF8);
		if (i > 0)
			col[-1].tells_null = ws_tells_null(&col[-1], col);
		ws_key_width_add(&all, sortops[i], collations[i], col->notnull);
	}
	spec->exact = ws_prefix_holds(&all);
	if (spec->exact)
	{
		WsKeyColumn *last = &spec->cols[ncols - 1];

		spec->exact_bytes = all.bytes;
		last->encoding = ws_encoding_apart(last->encoding);
	}
	spec->first_alone = ws_first_alone(spec);
	return spec;
}
