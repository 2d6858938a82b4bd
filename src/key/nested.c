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
 *
 * A guess at the order of values is made in the same way, of the first 80 bits, where text under libc and
 * enums are guessed (part.c).
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
	WsNested	nested;
	Oid			type;			/* in the header of values: of elements, or of themselves */
	WsKeyColumn part;			/* elements or bounds, as if they were a column */
	char		align;			/* of elements */
	TypeCacheEntry *range;		/* of the range type */
	TupleDesc	desc;			/* of rows; */
	int			nfields;		/* of these, the first ones that are not dropped, as many as have bits */
	WsKeyColumn *fields;
	Oid		   *types;			/* of these */
} Nested;

/* Appends what a part has in a key, or in a guess. */
static inline void
put_part(WsBits *b, const WsKeyColumn *part, Datum value)
{
	if (likely(part->encoding != WS_ENC_TRANSFORMED))
		ws_bits_put_part(b, part, value);
	else
		ws_part_put_guess(b, part, value);
}

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
			put_part(b, &nested->part, element);
	}
}

static void
put_array(WsBits *b, WsNested *base, Datum value)
{
	const Nested *nested = (Nested *) base;
	WsFlat		room;
	AnyArrayType *array;

	if (VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))
	{
		array = (AnyArrayType *) DatumGetEOHP(value);
		if (AARR_ELEMTYPE(array) == nested->type)
			put_elements(b, nested, array);
		return;
	}
	array = (AnyArrayType *) ws_bits_flat(value, &room);
	if (AARR_ELEMTYPE(array) == nested->type)
		put_elements(b, nested, array);
	ws_bits_put_away(array, value, &room);
}

/* ---- ranges ---- */

static void
put_bounds(WsBits *b, const Nested *nested, const RangeBound *lower, const RangeBound *upper)
{
	ws_bits_put(b, lower->infinite ? 1 : 2, FLAG_BITS);
	if (!lower->infinite)
	{
		put_part(b, &nested->part, lower->val);
		ws_bits_put(b, lower->inclusive ? 0 : 1, 1);
	}
	ws_bits_put(b, upper->infinite ? 1 : 0, 1);
	if (!upper->infinite)
	{
		put_part(b, &nested->part, upper->val);
		ws_bits_put(b, upper->inclusive ? 1 : 0, 1);
	}
}

static void
put_range(WsBits *b, WsNested *base, Datum value)
{
	const Nested *nested = (Nested *) base;
	WsFlat		room;
	RangeType  *range = (RangeType *) ws_bits_flat(value, &room);

	if (RangeTypeGetOid(range) == nested->type)
	{
		RangeBound	lower;
		RangeBound	upper;
		bool		empty;

		range_deserialize(nested->range, range, &lower, &upper, &empty);
		if (!empty)
			put_bounds(b, nested, &lower, &upper);
	}
	ws_bits_put_away(range, value, &room);
}

static void
put_multirange(WsBits *b, WsNested *base, Datum value)
{
	const Nested *nested = (Nested *) base;
	WsFlat		room;
	MultirangeType *ranges = (MultirangeType *) ws_bits_flat(value, &room);

	if (MultirangeTypeGetOid(ranges) == nested->type)
		for (uint32 i = 0; i < ranges->rangeCount && b->left > 0; i++)
		{
			RangeBound	lower;
			RangeBound	upper;

			multirange_get_bounds(nested->range, ranges, i, &lower, &upper);
			put_bounds(b, nested, &lower, &upper);
		}
	ws_bits_put_away(ranges, value, &room);
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
			put_part(b, &nested->fields[n], field);
		n++;
	}
}

static void
put_composite(WsBits *b, WsNested *base, Datum value)
{
	const Nested *nested = (Nested *) base;
	WsFlat		room;
	HeapTupleHeader header = (HeapTupleHeader) ws_bits_flat(value, &room);
	HeapTupleData row = {.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};

	if (likely(HeapTupleHeaderGetTypeId(header) == nested->type))
		put_fields(b, nested, &row, nested->desc);
	else
	{
		/* which record_cmp compares all the same, if its fields are alike */
		TupleDesc	desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header),
												  HeapTupleHeaderGetTypMod(header));

		put_fields(b, nested, &row, desc);
		ReleaseTupleDesc(desc);
	}
	ws_bits_put_away(header, value, &room);
}

/* ---- which there are ---- */

/* Sets how values that `proc` compares become bits, of a part of `base`.  False if they do not. */
static bool
find_part(WsNested *base, WsKeyColumn *part, Oid proc, Oid type, Oid collation)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_LT_OPR | TYPECACHE_CMP_PROC);

	part->length = entry->typlen;
	part->byval = entry->typbyval;
	part->encoding = ws_comparison_encoding(ws_comparison_by(proc, type), collation, &part->width);
	if (!ws_encoding_partial(part->encoding))
		return true;
	if (base->guessing)
	{
		base->guesses |= ws_part_guessed(part, proc, type, collation);
		part->abbreviate = ws_nested_create(proc, type, collation, true);
		base->guesses |= part->abbreviate != NULL;
	}
	if (part->encoding == WS_ENC_NONE && part->abbreviate == NULL)
		part->abbreviate = ws_nested_create(proc, type, collation, false);
	if (part->abbreviate != NULL)
	{
		part->encoding = WS_ENC_ABBREVIATED;
		part->width = sizeof(Datum);
	}
	/* the comparator would raise an error where there is no collation, but not before it compares */
	if (part->encoding != WS_ENC_NONE || entry->cmp_proc != proc || !OidIsValid(entry->lt_opr) ||
		(OidIsValid(get_typcollation(type)) && !OidIsValid(collation)))
		return part->encoding != WS_ENC_NONE;
	/* texts of libc have no abbreviations, and its locale may be gone: the comparator may never ask for it */
	if (OidIsValid(get_typcollation(type)) && ws_transformable(collation))
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
	return find_part(&nested->nested, &nested->part, entry->cmp_proc, nested->type, collation);
}

/* The same for bounds of a range type. */
static bool
find_bounds(Nested *nested, TypeCacheEntry *range)
{
	nested->range = range;
	return range != NULL && range->rngelemtype != NULL &&
		find_part(&nested->nested, &nested->part, range->rng_cmp_proc_finfo.fn_oid,
				  range->rngelemtype->type_id, range->rng_collation);
}

/* The same for the first fields of a composite type: until one has no bits. */
static bool
find_fields(Nested *nested, Oid type)
{
	int			left = nested->nested.guessing ? WS_GUESS_BITS : WS_KEY_BITS;

	if (get_typtype(type) != TYPTYPE_COMPOSITE)
		return false;
	nested->desc = lookup_rowtype_tupdesc_copy(type, -1);
	nested->fields = palloc0(Min(nested->desc->natts, left) * sizeof(WsKeyColumn));
	nested->types = palloc0(Min(nested->desc->natts, left) * sizeof(Oid));
	for (int i = 0; i < nested->desc->natts && left > 0; i++)
	{
		Form_pg_attribute att = TupleDescAttr(nested->desc, i);
		WsKeyColumn *field = &nested->fields[nested->nfields];
		TypeCacheEntry *entry;

		if (att->attisdropped)
			continue;
		entry = lookup_type_cache(att->atttypid, TYPECACHE_CMP_PROC);
		if (!OidIsValid(entry->cmp_proc) ||
			!find_part(&nested->nested, field, entry->cmp_proc, att->atttypid, att->attcollation))
			break;
		nested->types[nested->nfields++] = att->atttypid;
		left -= 1 + field->width * BITS_PER_BYTE;
	}
	return nested->nfields > 0;
}

/* Prepares for values of a type that `proc` compares.  False if there are no bits. */
static bool
find_parts(Nested *nested, Oid proc, Oid type, Oid collation)
{
	switch (proc)
	{
		case F_BTARRAYCMP:
			nested->nested.put = put_array;
			return find_elements(nested, type, collation);
		case F_RANGE_CMP:
			nested->nested.put = put_range;
			return find_bounds(nested, lookup_type_cache(type, TYPECACHE_RANGE_INFO));
		case F_MULTIRANGE_CMP:
			nested->nested.put = put_multirange;
			return find_bounds(nested, lookup_type_cache(type, TYPECACHE_MULTIRANGE_INFO)->rngtype);
		case F_BTRECORDCMP:
			nested->nested.put = put_composite;
			return find_fields(nested, type);
		default:
			return false;
	}
}

/* Does a function compare values that are made of parts? */
static bool
has_parts(Oid proc)
{
	return proc == F_BTARRAYCMP || proc == F_RANGE_CMP || proc == F_MULTIRANGE_CMP || proc == F_BTRECORDCMP ||
		proc == F_JSONB_CMP;
}

/* SortSupport's abbrev_converter, of what ws_nested_create returns. */
static Datum
abbreviate(Datum value, SortSupport ssup)
{
	WsNested   *nested = ssup->ssup_extra;
	WsBits		b = {0, WS_KEY_BITS};

	nested->put(&b, nested, value);
	return UInt64GetDatum((uint64) b.key);
}

/*
 * SortSupport, in CurrentMemoryContext, that does nothing but abbreviate the values of a type, which `proc`
 * compares, to 64 bits that ascend with them; or, if `guessing`, to what is a guess at that.  NULL if there
 * are no such bits, or nothing of them would be a guess.
 */
SortSupport
ws_nested_create(Oid proc, Oid type, Oid collation, bool guessing)
{
	SortSupport ssup;
	Nested	   *nested;
	WsNested   *found = NULL;

	/* the planner asks about each key, time and again */
	if (!has_parts(proc))
		return NULL;
	ssup = palloc0(sizeof(SortSupportData));
	nested = palloc0(sizeof(Nested));
	type = getBaseType(type);
	nested->type = type;
	nested->nested.guessing = guessing;
	if (proc == F_JSONB_CMP)
		found = ws_jsonb_create(guessing);
	else if (find_parts(nested, proc, type, collation))
		found = &nested->nested;
	if (found != NULL && found->guesses == guessing)
	{
		ssup->ssup_cxt = CurrentMemoryContext;
		ssup->ssup_extra = found;
		ssup->abbrev_converter = abbreviate;
		return ssup;
	}
	pfree(nested);
	pfree(ssup);
	return NULL;
}

/*
 * Does what ws_nested_create returned, or another abbreviation, want to see some values before it makes bits
 * of one?  Then it is shown `value`, unless that is NULL.
 */
bool
ws_nested_vote(SortSupport ssup, const Datum *value)
{
	WsBits		b = {0, WS_GUESS_BITS};
	WsNested   *nested;

	if (ssup == NULL || ssup->abbrev_converter != abbreviate)
		return false;
	nested = ssup->ssup_extra;
	if (!nested->votes || value == NULL)
		return nested->votes;
	nested->voting = true;
	nested->put(&b, nested, *value);
	nested->voting = false;
	return true;
}

/*
 * Writes `wanted` bytes of the guess at a value's place to `out`, WS_PREFIX_BYTES at most; of what
 * ws_nested_create returns.
 */
void
ws_nested_guess(SortSupport guess, Datum value, Size wanted, uint8 *out)
{
	WsNested   *nested = guess->ssup_extra;
	WsBits		b = {0, WS_GUESS_BITS};
	uint64		half[2];

	nested->put(&b, nested, value);
	b.key <<= sizeof(b.key) * BITS_PER_BYTE - WS_GUESS_BITS;
	half[0] = pg_hton64((uint64) (b.key >> 64));
	half[1] = pg_hton64((uint64) b.key);
	memcpy(out, half, Min(wanted, sizeof(half)));
}
