/*-------------------------------------------------------------------------
 * encoding.c - which types have key bytes.
 *
 * A type is recognised by what orders it, not by its name: the ordering
 * operator leads to its btree family, and the family's comparison procedure
 * for the operator's declared input type tells which encoding is right.
 * That covers domains, varchar, and operator classes of other extensions
 * that reuse core's procedures, or give them names of their own, as
 * contrib/isn does.  Of whatever is unknown, SortSupport may abbreviate
 * values to 8 bytes (text under ICU collations), which go into the prefix.
 *
 * Enums stay with the comparator: their OIDs are in the order of the labels only
 * as long as all are even, and ALTER TYPE ... ADD VALUE can add an odd one, which a
 * function in the query may return, after the key specification has been made.
 *
 * Collations: only byte order (C, POSIX, builtin C, and C.UTF-8 of libc) is encoded.  strxfrm of
 * libc is not trusted to agree with strcoll, as in core, but makes a guess (transform.c).
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "key/fixed.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* The function inside the server that a procedure is another name for; InvalidOid if it is none such. */
static Oid
function_inside(Oid proc)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(proc));
	Oid			function = InvalidOid;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	if (((Form_pg_proc) GETSTRUCT(tuple))->prolang == INTERNALlanguageId)
	{
		bool		isnull;
		Datum		name = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);

		if (!isnull)
			function = fmgr_internal_function(TextDatumGetCString(name));
	}
	ReleaseSysCache(tuple);
	return function;
}

/* Are the values of two types stored alike? */
static bool
stored_alike(Oid a, Oid b)
{
	int16		length[2];
	bool		byval[2];
	char		align[2];

	get_typlenbyvalalign(a, &length[0], &byval[0], &align[0]);
	get_typlenbyvalalign(b, &length[1], &byval[1], &align[1]);
	return length[0] == length[1] && byval[0] == byval[1] && align[0] == align[1];
}

/*
 * PostgreSQL's own procedure that compares values of a type, if `proc` is another name for one of values of
 * fixed width that have an encoding, and the type is stored as these are; else `proc`.
 */
Oid
ws_comparison_by(Oid proc, Oid type)
{
	Oid			own;
	Oid		   *types;
	int			n;
	int			width;

	if (proc < FirstNormalObjectId)
		return proc;
	own = function_inside(proc);
	if (!OidIsValid(own))
		return proc;
	(void) ws_comparison_encoding(own, InvalidOid, &width);
	if (width == 0)
		return proc;
	(void) get_func_signature(own, &types, &n);
	return stored_alike(type, types[0]) ? own : proc;
}

/*
 * The comparison procedure behind an ordering operator, which is PostgreSQL's own if it is another name for
 * that; *descending is set too.  InvalidOid if it is not one of a btree family.
 */
Oid
ws_comparison_proc(Oid sortop, bool *descending)
{
	Oid			opfamily;
	Oid			opcintype;

	*descending = false;
	if (!ws_ordering_op(sortop, &opfamily, &opcintype, descending))
		return InvalidOid;
	return ws_comparison_by(get_opfamily_proc(opfamily, opcintype, opcintype, BTORDER_PROC), opcintype);
}

/*
 * The encoding of what a procedure compares under a collation; *width (bytes of the value, 0 if
 * it varies) is set too.  WS_ENC_NONE when only the comparator can tell.
 */
WsEncoding
ws_comparison_encoding(Oid proc, Oid collation, int *width)
{
	*width = 0;
#define FIXED(enc, bytes)	do { *width = (bytes); return (enc); } while (0)
	switch (proc)
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
			return WS_ENC_NUMERIC;
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

/* Is an attribute of a function this name? */
static bool
is_named(HeapTuple tuple, AttrNumber attno, const char *name)
{
	bool		isnull;
	Datum		datum = SysCacheGetAttr(PROCOID, tuple, attno, &isnull);

	return !isnull && strcmp(TextDatumGetCString(datum), name) == 0;
}

/* Is it the function by which citext compares (lower.c), of whatever name, and in whatever schema? */
static bool
lowers_texts(Oid proc)
{
	HeapTuple	tuple;
	bool		lowers;

	if (proc < FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(proc));
	if (!HeapTupleIsValid(tuple))
		return false;
	lowers = ((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId &&
		is_named(tuple, Anum_pg_proc_prosrc, "citext_cmp") &&
		is_named(tuple, Anum_pg_proc_probin, "$libdir/citext");
	ReleaseSysCache(tuple);
	return lowers;
}

/*
 * The comparison procedure behind an ordering operator, or, if that lowers texts, the one that compares the
 * lowered ones.
 */
static Oid
comparison_when_lowered(Oid sortop, bool *descending)
{
	Oid			proc = ws_comparison_proc(sortop, descending);

	return lowers_texts(proc) ? F_BTTEXTCMP : proc;
}

/*
 * The same for an ordering operator; *descending is set too.  Of what compares texts in lower case
 * (ws_key_is_lowered), that of the lowered ones.
 */
WsEncoding
ws_key_encoding(Oid sortop, Oid collation, bool *descending, int *width)
{
	return ws_comparison_encoding(comparison_when_lowered(sortop, descending), collation, width);
}

/* Adds a sort column to what is known of the width of all. */
void
ws_key_width_add(WsKeyWidth *all, Oid sortop, Oid collation, bool notnull)
{
	bool		descending;
	int			width;
	WsEncoding	encoding = ws_key_encoding(sortop, collation, &descending, &width);

	all->fixed = all->fixed && width > 0;
	all->decodable = all->decodable && !all->ends &&
		ws_encoding_decodable(ws_encoding_apart(encoding));
	all->ends = encoding != ws_encoding_apart(encoding);
	all->bytes += width + (notnull ? 0 : 1);
}

/* Does the operator order texts by what they are in lower case? */
bool
ws_key_is_lowered(Oid sortop)
{
	bool		descending;

	return lowers_texts(ws_comparison_proc(sortop, &descending));
}

/* Is it text, of whatever collation, that the operator orders, perhaps in lower case? */
bool
ws_key_is_text(Oid sortop, bool *padded)
{
	bool		descending;
	Oid			proc = comparison_when_lowered(sortop, &descending);

	*padded = proc == F_BPCHARCMP;
	return proc == F_BTTEXTCMP || proc == F_BPCHARCMP;
}

/* Sets up SortSupport for a column's values, in CurrentMemoryContext. */
void
ws_init_sort_support(SortSupport ssup, AttrNumber attno, Oid sortop, Oid collation,
					 bool nulls_first, bool abbreviate)
{
	ssup->ssup_cxt = CurrentMemoryContext;
	ssup->ssup_collation = collation;
	ssup->ssup_nulls_first = nulls_first;
	ssup->ssup_attno = attno;
	ssup->abbreviate = abbreviate;
	PrepareSortSupportFromOrderingOp(sortop, ssup);
}

/*
 * Does SortSupport abbreviate values in a way of its own, of which their own comparison has to decide?
 * PostGIS does, for geometry.
 */
bool
ws_abbreviates_otherwise(Oid sortop, Oid collation)
{
	SortSupport ssup = palloc0(sizeof(SortSupportData));

	ws_init_sort_support(ssup, 1, sortop, collation, false, true);
	return ssup->abbrev_converter != NULL && ssup->comparator != ssup_datum_unsigned_cmp;
}

/*
 * Sets the encoding of a column that only its comparator can order wholly:
 * SortSupport's abbreviated keys if it makes any that compare as integers.
 */
void
ws_find_abbreviation(WsKeyColumn *col, Oid sortop, Oid collation)
{
	SortSupport ssup = palloc0(sizeof(SortSupportData));

	ws_init_sort_support(ssup, col->attno, sortop, collation, col->nulls_first, true);
	if (ssup->abbrev_converter == NULL || ssup->comparator != ssup_datum_unsigned_cmp)
	{
		col->encoding = WS_ENC_NONE;
		col->width = 0;
		return;
	}
	col->encoding = WS_ENC_ABBREVIATED;
	col->width = sizeof(Datum);
	col->abbreviate = ssup;
	if (ws_key_is_text(sortop, &col->padded) &&
		(col->icu = ws_icu_create(collation)) != NULL)
	{
		ssup->abbrev_converter = ws_icu_abbreviate;
		ssup->ssup_extra = col;
	}
}
