/*-------------------------------------------------------------------------
 * nested.c - abbreviated keys of values that are made of other values: arrays, ranges, multiranges, rows.
 *
 * Core compares such values part by part, with a function call for each, after it has detoasted both.  But
 * the first parts of most values differ.  So the parts go one after the other into an integer of 64 bits,
 * the first ones into the highest bits, until it is full.  It is an abbreviated key, as SortSupport makes
 * them: where two differ, they are in the order of the values; where they do not, the comparator decides.
 * What goes in, with as many bits as it needs:
 *
 *	array		for each element 2 if it is null, or else 1 and its value; then 0.  So says array_cmp: an
 *				array comes before a longer one that begins with it, and a null behind every value
 *	range		0 if it is empty, 1 if there is no lower bound, or else 2, the bound, and 1 if it is
 *				exclusive; then 1 if there is no upper bound, or else 0, the bound, and 1 if it is inclusive
 *	multirange	the same for each of its ranges, none of which is empty; then 0
 *	row			for each field, but dropped ones, 1 if it is null, or else 0 and its value: record_cmp
 *				puts nulls behind every value, too
 *
 * Elements, bounds and fields have the bytes that a key column of their type would have, under the
 * collation of the array, the range type or the field.  Of some these are an abbreviation themselves,
 * which may be the same for values that differ, so that nothing may follow.
 *
 * Memory: a few words for each part.  A value with a short header is copied to the stack.  One that is
 * compressed or stored elsewhere is detoasted as a whole.  Errors are those of detoasting.
 *
 * Refused: elements without bytes (text under libc, enums); those that may be of any type (anyarray), and
 * rows that bring their own type along (record).  Fields without bytes end the key, if they are not the
 * first.  An array or a range whose header says that it is of another type than the column has the key 0.
 *-------------------------------------------------------------------------
 */
#include "key/bits.h"

#include "access/htup_details.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/multirangetypes.h"
#include "utils/rangetypes.h"
#include "utils/typcache.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare" /* in an inline function of this header */
#include "utils/arrayaccess.h"
#pragma GCC diagnostic pop

#define FLAG_BITS		2		/* of an element or a range */

typedef struct Nested
{
	Oid			type;			/* in the header of values: of elements, or of themselves */
	WsKeyColumn part;			/* elements or bounds, as if they were a column */
	char		align;			/* of elements */
	TypeCacheEntry *range;		/* of the range type */
	TupleDesc	desc;			/* of rows; */
	int			nfields;		/* of these, the first ones that are not dropped, as many as have bits */
	WsKeyColumn *fields;
	Oid		   *types;			/* of these */
} Nested;

/* ---- arrays ---- */

static void
put_elements(WsBits *b, const Nested *nested, AnyArrayType *array)
{
	int			n = ArrayGetNItems(AARR_NDIM(array), AARR_DIMS(array));
	array_iter	it;

	ws_array_iter_setup(&it, array, nested->part.length, nested->part.byval, nested->align);
	for (int i = 0; i < n && b->left > 0; i++)
	{
		bool		isnull;
		Datum		element = ws_array_iter_next(&it, &isnull, i, nested->part.length,
												 nested->part.byval, nested->align);

		ws_bits_put(b, isnull ? 2 : 1, FLAG_BITS);
		if (!isnull)
			ws_bits_put_part(b, &nested->part, element);
	}
}

static Datum
abbreviate_array(Datum value, SortSupport ssup)
{
	const Nested *nested = ssup->ssup_extra;
	WsBits		b = {0, WS_KEY_BITS};
	WsFlat		room;
	AnyArrayType *array;

	if (VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))
	{
		array = (AnyArrayType *) DatumGetEOHP(value);
		if (AARR_ELEMTYPE(array) == nested->type)
			put_elements(&b, nested, array);
		return UInt64GetDatum(b.key);
	}
	array = (AnyArrayType *) ws_bits_flat(value, &room);
	if (AARR_ELEMTYPE(array) == nested->type)
		put_elements(&b, nested, array);
	ws_bits_put_away(array, value, &room);
	return UInt64GetDatum(b.key);
}

/* ---- ranges ---- */

static void
put_range(WsBits *b, const Nested *nested, const RangeBound *lower, const RangeBound *upper)
{
	ws_bits_put(b, lower->infinite ? 1 : 2, FLAG_BITS);
	if (!lower->infinite)
	{
		ws_bits_put_part(b, &nested->part, lower->val);
		ws_bits_put(b, lower->inclusive ? 0 : 1, 1);
	}
	ws_bits_put(b, upper->infinite ? 1 : 0, 1);
	if (!upper->infinite)
	{
		ws_bits_put_part(b, &nested->part, upper->val);
		ws_bits_put(b, upper->inclusive ? 1 : 0, 1);
	}
}

static Datum
abbreviate_range(Datum value, SortSupport ssup)
{
	const Nested *nested = ssup->ssup_extra;
	WsBits		b = {0, WS_KEY_BITS};
	WsFlat		room;
	RangeType  *range = (RangeType *) ws_bits_flat(value, &room);

	if (RangeTypeGetOid(range) == nested->type)
	{
		RangeBound	lower;
		RangeBound	upper;
		bool		empty;

		range_deserialize(nested->range, range, &lower, &upper, &empty);
		if (!empty)
			put_range(&b, nested, &lower, &upper);
	}
	ws_bits_put_away(range, value, &room);
	return UInt64GetDatum(b.key);
}

static Datum
abbreviate_multirange(Datum value, SortSupport ssup)
{
	const Nested *nested = ssup->ssup_extra;
	WsBits		b = {0, WS_KEY_BITS};
	WsFlat		room;
	MultirangeType *ranges = (MultirangeType *) ws_bits_flat(value, &room);

	if (MultirangeTypeGetOid(ranges) == nested->type)
		for (uint32 i = 0; i < ranges->rangeCount && b.left > 0; i++)
		{
			RangeBound	lower;
			RangeBound	upper;

			multirange_get_bounds(nested->range, ranges, i, &lower, &upper);
			put_range(&b, nested, &lower, &upper);
		}
	ws_bits_put_away(ranges, value, &room);
	return UInt64GetDatum(b.key);
}

/* ---- composite types ---- */

/* A field of another type than the column's ends the key: record_cmp raises an error if it comes that far. */
static void
put_fields(WsBits *b, const Nested *nested, HeapTuple row, TupleDesc desc)
{
	int			n = 0;

	for (int i = 0; i < desc->natts && n < nested->nfields && b->left > 0; i++)
	{
		bool		isnull;
		Datum		field;

		if (TupleDescAttr(desc, i)->attisdropped)
			continue;
		if (TupleDescAttr(desc, i)->atttypid != nested->types[n])
			break;
		field = heap_getattr(row, i + 1, desc, &isnull);
		ws_bits_put(b, isnull ? 1 : 0, 1);
		if (!isnull)
			ws_bits_put_part(b, &nested->fields[n], field);
		n++;
	}
}

static Datum
abbreviate_composite(Datum value, SortSupport ssup)
{
	const Nested *nested = ssup->ssup_extra;
	WsBits		b = {0, WS_KEY_BITS};
	WsFlat		room;
	HeapTupleHeader header = (HeapTupleHeader) ws_bits_flat(value, &room);
	HeapTupleData row = {.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};

	if (likely(HeapTupleHeaderGetTypeId(header) == nested->type))
		put_fields(&b, nested, &row, nested->desc);
	else
	{
		/* which record_cmp compares all the same, if its fields are alike */
		TupleDesc	desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header),
												  HeapTupleHeaderGetTypMod(header));

		put_fields(&b, nested, &row, desc);
		ReleaseTupleDesc(desc);
	}
	ws_bits_put_away(header, value, &room);
	return UInt64GetDatum(b.key);
}

/* ---- which there are ---- */

/* Sets how values that `proc` compares become bits.  False if they do not. */
static bool
find_part(WsKeyColumn *part, Oid proc, Oid type, Oid collation)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_LT_OPR | TYPECACHE_CMP_PROC);

	part->length = entry->typlen;
	part->byval = entry->typbyval;
	part->encoding = ws_comparison_encoding(proc, collation, &part->width);
	if (!ws_encoding_partial(part->encoding))
		return true;
	part->abbreviate = ws_nested_create(proc, type, collation);
	if (part->abbreviate != NULL)
	{
		part->encoding = WS_ENC_ABBREVIATED;
		part->width = sizeof(Datum);
		return true;
	}
	/* the comparator would raise an error where there is no collation, but not before it compares */
	if (entry->cmp_proc != proc || !OidIsValid(entry->lt_opr) ||
		(OidIsValid(get_typcollation(type)) && !OidIsValid(collation)))
		return false;
	ws_find_abbreviation(part, entry->lt_opr, collation);
	return part->encoding != WS_ENC_NONE;
}

/* Prepares for arrays of a type.  False if bits do not tell the order of elements. */
static bool
find_elements(Nested *nested, Oid type, Oid collation)
{
	TypeCacheEntry *entry;

	nested->type = get_element_type(type);
	if (!OidIsValid(nested->type))
		return false;
	entry = lookup_type_cache(nested->type, TYPECACHE_CMP_PROC);
	nested->align = entry->typalign;
	return find_part(&nested->part, entry->cmp_proc, nested->type, collation);
}

/* The same for bounds of a range type. */
static bool
find_bounds(Nested *nested, TypeCacheEntry *range)
{
	nested->range = range;
	return range != NULL && range->rngelemtype != NULL &&
		find_part(&nested->part, range->rng_cmp_proc_finfo.fn_oid, range->rngelemtype->type_id,
				  range->rng_collation);
}

/* The same for the first fields of a composite type: until one has no bits. */
static bool
find_fields(Nested *nested, Oid type)
{
	int			left = WS_KEY_BITS;

	if (get_typtype(type) != TYPTYPE_COMPOSITE)
		return false;
	nested->desc = lookup_rowtype_tupdesc_copy(type, -1);
	nested->fields = palloc0(Min(nested->desc->natts, WS_KEY_BITS) * sizeof(WsKeyColumn));
	nested->types = palloc0(Min(nested->desc->natts, WS_KEY_BITS) * sizeof(Oid));
	for (int i = 0; i < nested->desc->natts && left > 0; i++)
	{
		Form_pg_attribute att = TupleDescAttr(nested->desc, i);
		WsKeyColumn *field = &nested->fields[nested->nfields];
		TypeCacheEntry *entry;

		if (att->attisdropped)
			continue;
		entry = lookup_type_cache(att->atttypid, TYPECACHE_CMP_PROC);
		if (!OidIsValid(entry->cmp_proc) ||
			!find_part(field, entry->cmp_proc, att->atttypid, att->attcollation))
			break;
		nested->types[nested->nfields++] = att->atttypid;
		left -= 1 + field->width * BITS_PER_BYTE;
	}
	return nested->nfields > 0;
}

/*
 * SortSupport, in CurrentMemoryContext, that does nothing but abbreviate the values of a type, which `proc`
 * compares, to 64 bits that ascend with them.  NULL if there are no such bits.
 */
SortSupport
ws_nested_create(Oid proc, Oid type, Oid collation)
{
	SortSupport ssup = palloc0(sizeof(SortSupportData));
	Nested	   *nested = palloc0(sizeof(Nested));
	bool		found = false;

	type = getBaseType(type);
	nested->type = type;
	ssup->ssup_cxt = CurrentMemoryContext;
	ssup->ssup_extra = nested;
	switch (proc)
	{
		case F_BTARRAYCMP:
			ssup->abbrev_converter = abbreviate_array;
			found = find_elements(nested, type, collation);
			break;
		case F_RANGE_CMP:
			ssup->abbrev_converter = abbreviate_range;
			found = find_bounds(nested, lookup_type_cache(type, TYPECACHE_RANGE_INFO));
			break;
		case F_MULTIRANGE_CMP:
			ssup->abbrev_converter = abbreviate_multirange;
			found = find_bounds(nested, lookup_type_cache(type, TYPECACHE_MULTIRANGE_INFO)->rngtype);
			break;
		case F_BTRECORDCMP:
			ssup->abbrev_converter = abbreviate_composite;
			found = find_fields(nested, type);
			break;
		case F_JSONB_CMP:
			ssup->abbrev_converter = ws_jsonb_abbreviate;
			ssup->ssup_extra = ws_jsonb_create();
			found = true;
			break;
	}
	if (found)
		return ssup;
	pfree(nested);
	pfree(ssup);
	return NULL;
}
