/*-------------------------------------------------------------------------
 * keyspec.c - from ORDER BY columns to a key specification.
 *
 * A type is recognised by what orders it, not by its name: the ordering
 * operator leads to its btree family, and the family's comparison procedure
 * for the operator's declared input type tells which encoding is right.
 * That covers domains, varchar, and operator classes of other extensions
 * that reuse core's procedures.  Whatever is unknown is sorted by its own
 * comparator, so that no type is refused; if its SortSupport can abbreviate
 * values to 8 bytes, these go into the prefix, and the comparator settles ties
 * only (numeric, text under ICU collations).
 *
 * Enums stay with the comparator: their OIDs are in the order of the labels only
 * as long as all are even, and ALTER TYPE ... ADD VALUE can add an odd one, which a
 * function in the query may return, after the key specification has been made.
 *
 * Collations: only byte order (C, POSIX, builtin C, and C.UTF-8 of libc) is encoded.  strxfrm of
 * libc is not trusted to agree with strcoll, as in core, but makes a guess (transform.c).
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#include "access/nbtree.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "utils/fmgroids.h"

/*
 * The encoding for an ordering operator under a collation; *descending and
 * *width (bytes of the value, 0 if it varies) are set too.  WS_ENC_NONE when
 * only the comparator can tell.
 */
WsEncoding
ws_key_encoding(Oid sortop, Oid collation, bool *descending, int *width)
{
	Oid			opfamily;
	Oid			opcintype;

	*descending = false;
	*width = 0;
	if (!ws_ordering_op(sortop, &opfamily, &opcintype, descending))
		return WS_ENC_NONE;

#define FIXED(enc, bytes)	do { *width = (bytes); return (enc); } while (0)
	switch (get_opfamily_proc(opfamily, opcintype, opcintype, BTORDER_PROC))
	{
		case F_BTBOOLCMP:
			FIXED(WS_ENC_BOOL, 1);
		case F_BTCHARCMP:
			FIXED(WS_ENC_CHAR, 1);
		case F_BTINT2CMP:
			FIXED(WS_ENC_INT2, 2);
		case F_BTINT4CMP:
		case F_DATE_CMP:
			FIXED(WS_ENC_INT4, 4);
		case F_BTOIDCMP:
			FIXED(WS_ENC_UINT4, 4);
		case F_BTINT8CMP:
		case F_TIME_CMP:
		case F_TIMESTAMP_CMP:
		case F_TIMESTAMPTZ_CMP:
		case F_CASH_CMP:
			FIXED(WS_ENC_INT8, 8);
		case F_PG_LSN_CMP:
		case F_XID8CMP:
			FIXED(WS_ENC_UINT8, 8);
		case F_BTFLOAT4CMP:
			FIXED(WS_ENC_FLOAT4, 4);
		case F_BTFLOAT8CMP:
			FIXED(WS_ENC_FLOAT8, 8);
		case F_UUID_CMP:
			FIXED(WS_ENC_BYTES, 16);
		case F_MACADDR_CMP:
			FIXED(WS_ENC_BYTES, 6);
		case F_MACADDR8_CMP:
			FIXED(WS_ENC_BYTES, 8);
		case F_TIMETZ_CMP:
			FIXED(WS_ENC_TIMETZ, 12);
		case F_INTERVAL_CMP:
			FIXED(WS_ENC_INTERVAL, 10);
		case F_BTTIDCMP:
			FIXED(WS_ENC_TID, 6);
		case F_NUMERIC_CMP:
			FIXED(WS_ENC_NUMERIC, 8);
		case F_BYTEACMP:
			return WS_ENC_BYTEA;
		case F_BITCMP:
		case F_VARBITCMP:
			return WS_ENC_BIT;
		case F_NETWORK_CMP:
			return WS_ENC_INET;
		case F_BTTEXT_PATTERN_CMP:
			return WS_ENC_TEXT;
		case F_BTBPCHAR_PATTERN_CMP:
			return WS_ENC_BPCHAR;
		case F_BTTEXTCMP:
			return ws_collation_is_bytes(collation) ? WS_ENC_TEXT : WS_ENC_NONE;
		case F_BPCHARCMP:
			return ws_collation_is_bytes(collation) ? WS_ENC_BPCHAR : WS_ENC_NONE;
		case F_BTNAMECMP:
			return ws_collation_is_bytes(collation) ? WS_ENC_NAME : WS_ENC_NONE;
		default:
			return WS_ENC_NONE;
	}
#undef FIXED
}

/* Adds a sort column to what is known of the width of all. */
void
ws_key_width_add(WsKeyWidth *all, Oid sortop, Oid collation, bool notnull)
{
	bool		descending;
	int			width;
	WsEncoding	encoding = ws_key_encoding(sortop, collation, &descending, &width);

	all->fixed = all->fixed && width > 0 && !ws_encoding_partial(encoding);
	all->decodable = all->decodable && ws_encoding_decodable(encoding);
	all->bytes += width + (notnull ? 0 : 1);
}

static void
init_sort_support(SortSupport ssup, AttrNumber attno, Oid sortop, Oid collation,
				  bool nulls_first, bool abbreviate)
{
	ssup->ssup_cxt = CurrentMemoryContext;
	ssup->ssup_collation = collation;
	ssup->ssup_nulls_first = nulls_first;
	ssup->ssup_attno = attno;
	ssup->abbreviate = abbreviate;
	PrepareSortSupportFromOrderingOp(sortop, ssup);
}

/* Is it text, of whatever collation, that the operator orders? */
bool
ws_key_is_text(Oid sortop, bool *padded)
{
	Oid			opfamily;
	Oid			opcintype;
	bool		descending;
	Oid			proc;

	if (!ws_ordering_op(sortop, &opfamily, &opcintype, &descending))
		return false;
	proc = get_opfamily_proc(opfamily, opcintype, opcintype, BTORDER_PROC);
	*padded = proc == F_BPCHARCMP;
	return proc == F_BTTEXTCMP || proc == F_BPCHARCMP;
}

/*
 * Sets the encoding of a column that only its comparator can order wholly:
 * SortSupport's abbreviated keys if it makes any that compare as integers.
 */
static void
find_abbreviation(WsKeyColumn *col, Oid sortop, Oid collation)
{
	SortSupport ssup = palloc0(sizeof(SortSupportData));

	init_sort_support(ssup, col->attno, sortop, collation, col->nulls_first, true);
	if (ssup->abbrev_converter == NULL ||
		(col->encoding != WS_ENC_NUMERIC && ssup->comparator != ssup_datum_unsigned_cmp))
	{
		col->encoding = WS_ENC_NONE;
		col->width = 0;
		return;
	}
	if (col->encoding != WS_ENC_NUMERIC)
		col->encoding = WS_ENC_ABBREVIATED;
	col->width = sizeof(Datum);
	col->abbreviate = ssup;
	if (col->encoding == WS_ENC_ABBREVIATED && ws_key_is_text(sortop, &col->padded) &&
		(col->icu = ws_icu_create(collation)) != NULL)
	{
		ssup->abbrev_converter = ws_icu_abbreviate;
		ssup->ssup_extra = col;
		col->transform = ws_transform_of_icu(col->icu, collation);
	}
}

/* Makes the column one whose order is guessed, if it can be. */
static bool
find_transform(WsKeyColumn *col, Oid sortop, Oid collation)
{
	if (!ws_key_is_text(sortop, &col->padded))
		return false;
	col->transform = ws_transform_create(collation);
	if (col->transform == NULL)
		return false;
	col->encoding = WS_ENC_TRANSFORMED;
	return true;
}

/* Do values of a type have types of their own?  Those of different rows need not be comparable then. */
static bool
is_dissimilar(Oid type)
{
	return type == RECORDOID || type == RECORDARRAYOID;
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

		Assert(attnos[i] > 0 && attnos[i] <= desc->natts);
		col->attno = attnos[i];
		col->nulls_first = nulls_first[i];
		col->notnull = notnull[i];
		col->length = TupleDescAttr(desc, attnos[i] - 1)->attlen;
		col->byval = TupleDescAttr(desc, attnos[i] - 1)->attbyval;
		col->dissimilar = is_dissimilar(TupleDescAttr(desc, attnos[i] - 1)->atttypid);
		spec->last_attno = Max(spec->last_attno, attnos[i]);

		init_sort_support(&spec->compare[i], attnos[i], sortops[i],
						  collations[i], nulls_first[i], false);

		col->encoding = ws_key_encoding(sortops[i], collations[i],
										&col->descending, &col->width);
		if (ws_encoding_partial(col->encoding))
		{
			find_abbreviation(col, sortops[i], collations[i]);
			spec->comparator = true;
			if (col->encoding == WS_ENC_NONE && find_transform(col, sortops[i], collations[i]))
				spec->guess = true;
		}
		col->null_apart = ws_null_apart(col->encoding, col->nulls_first, col->descending,
										GetDatabaseEncoding() == PG_UTF8);
		if (i > 0)
			col[-1].tells_null = ws_tells_null(&col[-1], col);
		ws_key_width_add(&all, sortops[i], collations[i], col->notnull);
	}
	spec->exact = ws_prefix_holds(&all);
	if (spec->exact)
		spec->exact_bytes = all.bytes;
	spec->first_alone = ws_first_alone(spec);
	return spec;
}
