/*-------------------------------------------------------------------------
 * nested.c - abbreviated keys of values that are made of other values: arrays, ranges, multiranges, jsonb.
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
 *	jsonb		what it is: 0 an array of nothing, 1 a scalar, 2 another array, 3 an object.  Of arrays and
 *				objects how many members they have, then these.  Of each member its type, in the order
 *				of jbvType; of strings their bytes; of members of objects the key before that
 *
 * Elements, bounds and members have the bytes that a key column of their type would have, under the
 * collation of the array, the range type or the database.  Of some these are an abbreviation themselves,
 * which may be the same for values that differ, so that nothing may follow.
 *
 * Keys of objects are long, and most objects have the same ones.  So a key is compared with the one that
 * the first object had in its place: 0 if it is less, 1 if equal, 2 if greater.  A comparison of values
 * comes to the n-th key only if all before it is equal, so that both have it in the same place.
 *
 * Memory: a few words, and as many keys of objects as there can be bits of.  A value with a short header is
 * copied to the stack.  One that is compressed or stored elsewhere is detoasted as a whole.  Errors are
 * those of detoasting.
 *
 * Refused: elements without bytes (text under libc, enums, composite types), and those that may be of any
 * type (anyarray).  A value whose header says that it is of another type than the column has the key 0.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "port/pg_bswap.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/jsonb.h"
#include "utils/multirangetypes.h"
#include "utils/rangetypes.h"
#include "utils/typcache.h"
#include "utils/varlena.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare" /* in an inline function of this header */
#include "utils/arrayaccess.h"
#pragma GCC diagnostic pop

#define KEY_BITS		64
#define FLAG_BITS		2		/* of an element, a range, a kind of jsonb, or a comparison of keys */
#define TYPE_BITS		3		/* of a member of jsonb */
#define COUNT_BITS		4		/* of how many there are, */
#define MANY			15		/* unless so many; then these follow: */
#define MANY_BITS		28
#define MOST_KEYS		(KEY_BITS / (FLAG_BITS + TYPE_BITS) + 1)	/* that there can be bits of */

/* What the first object had as its n-th key. */
typedef struct FirstKey
{
	char	   *text;
	int			length;
} FirstKey;

typedef struct Nested
{
	WsKeyColumn part;			/* elements, bounds, or numbers in jsonb, as if they were a column */
	Oid			type;			/* in the header of values: of elements, of the range or multirange */
	char		align;			/* of elements */
	TypeCacheEntry *range;		/* of the range type */
	bool		bytes;			/* strings in jsonb compare as bytes; */
	WsIcu	   *icu;			/* or by ICU; NULL: by neither */
	int			nkeys;
	FirstKey	keys[MOST_KEYS];	/* of the first object that has so many */
	MemoryContext context;		/* of these */
} Nested;

/* An abbreviated key in the making. */
typedef struct Bits
{
	uint64		key;
	int			left;			/* bits that have not been put */
} Bits;

/* Room for a value with a short header. */
typedef union Flat
{
	int64		aligned;
	char		bytes[VARHDRSZ + VARATT_SHORT_MAX];
} Flat;

/* Appends `bits`, which have n bits, or as many of the first ones as there is room for. */
static inline void
put(Bits *b, ws_uint128 bits, int n)
{
	if (n <= b->left)
	{
		b->left -= n;
		b->key |= (uint64) bits << b->left;
	}
	else if (b->left > 0)
	{
		b->key |= (uint64) (bits >> (n - b->left));
		b->left = 0;
	}
}

/* Nothing more can be told. */
static inline void
end(Bits *b)
{
	b->left = 0;
}

/* Appends what a value has in a key. */
static inline void
put_part(Bits *b, const WsKeyColumn *part, Datum value)
{
	if (b->left == 0)
		return;
	if (part->width > 0)
		put(b, ws_value_bits(part, value), part->width * BITS_PER_BYTE);
	else
	{
		uint64		bytes;
		Size		n = ws_value_bytes(part, value, sizeof(bytes), (uint8 *) &bytes);

		n = Min(n, sizeof(bytes)) * BITS_PER_BYTE;
		put(b, pg_ntoh64(bytes) >> (KEY_BITS - n), (int) n);
	}
	if (ws_encoding_partial(part->encoding))
		end(b);
}

/* A value that is not toasted, aligned, and with a long header.  To be given to put_away. */
static inline struct varlena *
flat(Datum value, Flat *room)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(value);
	Size		n;

	if (VARATT_IS_EXTERNAL(v) || !VARATT_IS_SHORT(v))
		return pg_detoast_datum(v);
	n = VARSIZE_SHORT(v) - VARHDRSZ_SHORT;
	SET_VARSIZE(room, VARHDRSZ + n);
	memcpy(VARDATA(room), VARDATA_SHORT(v), n);
	return (struct varlena *) room;
}

static inline void
put_away(void *v, Datum value, const Flat *room)
{
	if (v != DatumGetPointer(value) && v != room)
		pfree(v);
}

/* ---- arrays ---- */

static void
put_elements(Bits *b, const Nested *nested, AnyArrayType *array)
{
	int			n = ArrayGetNItems(AARR_NDIM(array), AARR_DIMS(array));
	array_iter	it;

	ws_array_iter_setup(&it, array, nested->part.length, nested->part.byval, nested->align);
	for (int i = 0; i < n && b->left > 0; i++)
	{
		bool		isnull;
		Datum		element = ws_array_iter_next(&it, &isnull, i, nested->part.length,
												 nested->part.byval, nested->align);

		put(b, isnull ? 2 : 1, FLAG_BITS);
		if (!isnull)
			put_part(b, &nested->part, element);
	}
}

static Datum
abbreviate_array(Datum value, SortSupport ssup)
{
	const Nested *nested = ssup->ssup_extra;
	Bits		b = {0, KEY_BITS};
	Flat		room;
	AnyArrayType *array;

	if (VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))
	{
		array = (AnyArrayType *) DatumGetEOHP(value);
		if (AARR_ELEMTYPE(array) == nested->type)
			put_elements(&b, nested, array);
		return UInt64GetDatum(b.key);
	}
	array = (AnyArrayType *) flat(value, &room);
	if (AARR_ELEMTYPE(array) == nested->type)
		put_elements(&b, nested, array);
	put_away(array, value, &room);
	return UInt64GetDatum(b.key);
}

/* ---- ranges ---- */

static void
put_range(Bits *b, const Nested *nested, const RangeBound *lower, const RangeBound *upper)
{
	put(b, lower->infinite ? 1 : 2, FLAG_BITS);
	if (!lower->infinite)
	{
		put_part(b, &nested->part, lower->val);
		put(b, lower->inclusive ? 0 : 1, 1);
	}
	put(b, upper->infinite ? 1 : 0, 1);
	if (!upper->infinite)
	{
		put_part(b, &nested->part, upper->val);
		put(b, upper->inclusive ? 1 : 0, 1);
	}
}

static Datum
abbreviate_range(Datum value, SortSupport ssup)
{
	const Nested *nested = ssup->ssup_extra;
	Bits		b = {0, KEY_BITS};
	Flat		room;
	RangeType  *range = (RangeType *) flat(value, &room);

	if (RangeTypeGetOid(range) == nested->type)
	{
		RangeBound	lower;
		RangeBound	upper;
		bool		empty;

		range_deserialize(nested->range, range, &lower, &upper, &empty);
		if (!empty)
			put_range(&b, nested, &lower, &upper);
	}
	put_away(range, value, &room);
	return UInt64GetDatum(b.key);
}

static Datum
abbreviate_multirange(Datum value, SortSupport ssup)
{
	const Nested *nested = ssup->ssup_extra;
	Bits		b = {0, KEY_BITS};
	Flat		room;
	MultirangeType *ranges = (MultirangeType *) flat(value, &room);

	if (MultirangeTypeGetOid(ranges) == nested->type)
		for (uint32 i = 0; i < ranges->rangeCount && b.left > 0; i++)
		{
			RangeBound	lower;
			RangeBound	upper;

			multirange_get_bounds(nested->range, ranges, i, &lower, &upper);
			put_range(&b, nested, &lower, &upper);
		}
	put_away(ranges, value, &room);
	return UInt64GetDatum(b.key);
}

/* ---- jsonb ---- */

/* Types of members: those of jbvType, in their order. */
typedef enum MemberType
{
	MEMBER_NULL,
	MEMBER_STRING,
	MEMBER_NUMERIC,
	MEMBER_BOOL,
	MEMBER_ARRAY,
	MEMBER_OBJECT
} MemberType;

static void put_container(Bits *b, Nested *nested, const JsonbContainer *c);

static void
put_string(Bits *b, const Nested *nested, const char *text, Size length)
{
	uint64		bytes = 0;

	if (nested->bytes)
	{
		/* with a zero byte behind it, which no string has in it */
		int			n = (int) Min(length + 1, sizeof(bytes)) * BITS_PER_BYTE;

		memcpy(&bytes, text, Min(length, sizeof(bytes)));
		put(b, pg_ntoh64(bytes) >> (KEY_BITS - n), n);
		return;
	}
	if (nested->icu != NULL && b->left > 0)
	{
		if (!ws_icu_key(nested->icu, text, length, &bytes))
			ws_icu_failed();
		put(b, bytes, KEY_BITS);
	}
	end(b);
}

/* A key of an object, of which there have been `nested->nkeys` in this value. */
static void
put_key(Bits *b, Nested *nested, const char *text, int length)
{
	FirstKey   *first = &nested->keys[nested->nkeys++];
	int			cmp = 0;

	if (first->text == NULL)
	{
		first->text = MemoryContextAlloc(nested->context, length + 1);
		memcpy(first->text, text, length);
		first->length = length;
	}
	else if (length != first->length || memcmp(text, first->text, length) != 0)
		cmp = varstr_cmp(text, length, first->text, first->length, DEFAULT_COLLATION_OID);
	put(b, cmp < 0 ? 0 : cmp == 0 ? 1 : 2, FLAG_BITS);
	if (cmp != 0)
		put_string(b, nested, text, length);
}

/* The i-th child of a container, whose bytes are at `offset` behind `data`. */
static void
put_member(Bits *b, Nested *nested, const JsonbContainer *c, int i, const char *data, uint32 offset)
{
	JEntry		entry = c->children[i];
	const char *aligned = data + INTALIGN(offset);

	if (JBE_ISSTRING(entry))
	{
		put(b, MEMBER_STRING, TYPE_BITS);
		put_string(b, nested, data + offset, getJsonbLength(c, i));
	}
	else if (JBE_ISNUMERIC(entry))
	{
		put(b, MEMBER_NUMERIC, TYPE_BITS);
		put_part(b, &nested->part, PointerGetDatum(aligned));
	}
	else if (JBE_ISBOOL(entry))
	{
		put(b, MEMBER_BOOL, TYPE_BITS);
		put(b, JBE_ISBOOL_TRUE(entry) ? 1 : 0, 1);
	}
	else if (JBE_ISNULL(entry))
		put(b, MEMBER_NULL, TYPE_BITS);
	else
	{
		const JsonbContainer *member = (const JsonbContainer *) aligned;

		put(b, JsonContainerIsObject(member) ? MEMBER_OBJECT : MEMBER_ARRAY, TYPE_BITS);
		put_container(b, nested, member);
	}
}

/* How many members an array or an object has, and these.  Each takes bits, so that this ends soon. */
static void
put_container(Bits *b, Nested *nested, const JsonbContainer *c)
{
	bool		object = JsonContainerIsObject(c);
	int			n = (int) JsonContainerSize(c);
	const char *data = (const char *) (c->children + (object ? 2 * n : n));
	uint32		offset = 0;
	uint32		value = object ? getJsonbOffset(c, n) : 0;

	put(b, Min(n, MANY), COUNT_BITS);
	if (n >= MANY)
		put(b, n, MANY_BITS);
	for (int i = 0; i < n && b->left > 0; i++)
	{
		if (object)
		{
			put_key(b, nested, data + offset, (int) getJsonbLength(c, i));
			if (b->left > 0)
				put_member(b, nested, c, n + i, data, value);
			JBE_ADVANCE_OFFSET(value, c->children[n + i]);
		}
		else
			put_member(b, nested, c, i, data, offset);
		JBE_ADVANCE_OFFSET(offset, c->children[i]);
	}
}

/*
 * An empty array comes before scalars, which are arrays of one element in jsonb's storage, and other
 * arrays behind them: compareJsonbContainers has the number of elements overrule that one is a scalar.
 */
static Datum
abbreviate_jsonb(Datum value, SortSupport ssup)
{
	Nested	   *nested = ssup->ssup_extra;
	Bits		b = {0, KEY_BITS};
	Flat		room;
	Jsonb	   *jsonb = (Jsonb *) flat(value, &room);
	const JsonbContainer *root = &jsonb->root;

	nested->nkeys = 0;
	if (JsonContainerIsScalar(root))
	{
		put(&b, 1, FLAG_BITS);
		put_member(&b, nested, root, 0, (const char *) (root->children + 1), 0);
	}
	else if (JsonContainerIsObject(root) || JsonContainerSize(root) > 0)
	{
		put(&b, JsonContainerIsObject(root) ? 3 : 2, FLAG_BITS);
		put_container(&b, nested, root);
	}
	put_away(jsonb, value, &room);
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
	nested->context = CurrentMemoryContext;
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
		case F_JSONB_CMP:
			ssup->abbrev_converter = abbreviate_jsonb;
			nested->bytes = ws_collation_is_bytes(DEFAULT_COLLATION_OID);
			nested->icu = nested->bytes ? NULL : ws_icu_create(DEFAULT_COLLATION_OID);
			found = find_part(&nested->part, F_NUMERIC_CMP, NUMERICOID, InvalidOid);
			break;
	}
	if (found)
		return ssup;
	pfree(nested);
	pfree(ssup);
	return NULL;
}
