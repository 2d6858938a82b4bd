/*-------------------------------------------------------------------------
 * jsonb.c - abbreviated keys of jsonb.
 *
 * As of other values that are made of values (nested.c), the first parts go into 64 bits.  What goes in is
 * what the value is: 0 an array of nothing, 1 a scalar, 2 another array, 3 an object.  Of arrays and objects
 * how many members they have, then these.  Of each member its type, in the order of jbvType; of strings their
 * bytes; of numbers the bytes of a key column; of members of objects the key before that.
 *
 * Strings compare under the database's collation.  They have bytes if it is ordered as bytes, an abbreviation
 * if it is of ICU, behind which nothing may follow, and nothing if it is of libc, unless they may be guessed
 * (part.c).
 *
 * Keys of objects are long, and most objects have the same ones.  So a key is compared with the one that
 * most of the first objects had in its place, or the first one of all: 0 if it is less, 1 if equal, 2 if
 * greater.  A comparison of values comes to the n-th key only if all before it is equal, so that both have it
 * in the same place.
 *
 * Memory: a few words, and as many keys of objects as there can be bits of.  A value with a short header is
 * copied to the stack.  One that is compressed or stored elsewhere is detoasted as a whole.  Errors are
 * those of detoasting.
 *-------------------------------------------------------------------------
 */
#include "key/bits.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "utils/fmgroids.h"
#include "utils/jsonb.h"
#include "utils/varlena.h"

#define FLAG_BITS		2		/* of what a value is, or of a comparison of keys */
#define TYPE_BITS		3		/* of a member */
#define COUNT_BITS		4		/* of how many there are, */
#define MANY			15		/* unless so many; then these follow: */
#define MANY_BITS		28
#define MOST_KEYS		(WS_GUESS_BITS / (FLAG_BITS + TYPE_BITS) + 1)	/* that there can be bits of */

/* What most of the first objects had as their n-th key, or the first one of all. */
typedef struct FirstKey
{
	char	   *text;
	int			length;
	int			votes;			/* for it, beyond those for others */
} FirstKey;

typedef struct Layout
{
	WsNested	nested;
	WsKeyColumn numbers;		/* as if they were a column */
	WsKeyColumn texts;			/* strings, the same, if they are guessed */
	bool		bytes;			/* strings compare as bytes; */
	WsIcu	   *icu;			/* or by ICU; NULL: by neither */
	int			nkeys;			/* that this value has had so far */
	FirstKey	keys[MOST_KEYS];	/* of the first object that has so many */
	MemoryContext context;		/* of these */
} Layout;

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

static void put_container(WsBits *b, Layout *layout, const JsonbContainer *c);

static void
put_string(WsBits *b, const Layout *layout, const char *text, Size length)
{
	if (layout->bytes)
	{
		/* with a zero byte behind it, which no string has in it */
		uint8		bytes[sizeof(ws_uint128)] = {0};

		memcpy(bytes, text, Min(length, sizeof(bytes)));
		ws_bits_put_bytes(b, bytes, Min(length + 1, sizeof(bytes)));
		return;
	}
	if (layout->nested.guesses)
	{
		ws_part_put_text(b, &layout->texts, text, length);
		return;
	}
	if (layout->icu != NULL && b->left > 0)
	{
		uint64		key = 0;

		if (!ws_icu_key(layout->icu, text, length, &key))
			ws_icu_failed();
		ws_bits_put(b, key, WS_KEY_BITS);
	}
	ws_bits_end(b);
}

static inline bool
is_key(const FirstKey *first, const char *text, int length)
{
	return length == first->length && memcmp(text, first->text, length) == 0;
}

static void
set_key(FirstKey *first, MemoryContext context, const char *text, int length)
{
	first->text = MemoryContextAlloc(context, length + 1);
	memcpy(first->text, text, length);
	first->length = length;
	first->votes = 1;
}

/* What more than half of the values have is left when all have voted (Boyer and Moore, 1981). */
static void
vote(FirstKey *first, MemoryContext context, const char *text, int length)
{
	first->votes += is_key(first, text, length) ? 1 : -1;
	if (first->votes >= 0)
		return;
	pfree(first->text);
	set_key(first, context, text, length);
}

/* A key of an object, of which there have been `layout->nkeys` in this value. */
static void
put_key(WsBits *b, Layout *layout, const char *text, int length)
{
	FirstKey   *first = &layout->keys[layout->nkeys++];
	int			cmp = 0;

	if (first->text == NULL)
		set_key(first, layout->context, text, length);
	else if (layout->nested.voting)
		vote(first, layout->context, text, length);
	else if (!is_key(first, text, length))
		cmp = varstr_cmp(text, length, first->text, first->length, DEFAULT_COLLATION_OID);
	ws_bits_put(b, cmp < 0 ? 0 : cmp == 0 ? 1 : 2, FLAG_BITS);
	if (cmp != 0)
		put_string(b, layout, text, length);
}

/* The i-th child of a container, whose bytes are at `offset` behind `data`. */
static void
put_member(WsBits *b, Layout *layout, const JsonbContainer *c, int i, const char *data, uint32 offset)
{
	JEntry		entry = c->children[i];
	const char *aligned = data + INTALIGN(offset);

	if (JBE_ISSTRING(entry))
	{
		ws_bits_put(b, MEMBER_STRING, TYPE_BITS);
		put_string(b, layout, data + offset, getJsonbLength(c, i));
	}
	else if (JBE_ISNUMERIC(entry))
	{
		ws_bits_put(b, MEMBER_NUMERIC, TYPE_BITS);
		ws_bits_put_part(b, &layout->numbers, PointerGetDatum(aligned));
	}
	else if (JBE_ISBOOL(entry))
	{
		ws_bits_put(b, MEMBER_BOOL, TYPE_BITS);
		ws_bits_put(b, JBE_ISBOOL_TRUE(entry) ? 1 : 0, 1);
	}
	else if (JBE_ISNULL(entry))
		ws_bits_put(b, MEMBER_NULL, TYPE_BITS);
	else
	{
		const JsonbContainer *member = (const JsonbContainer *) aligned;

		ws_bits_put(b, JsonContainerIsObject(member) ? MEMBER_OBJECT : MEMBER_ARRAY, TYPE_BITS);
		put_container(b, layout, member);
	}
}

/* How many members an array or an object has, and these.  Each takes bits, so that this ends soon. */
static void
put_container(WsBits *b, Layout *layout, const JsonbContainer *c)
{
	bool		object = JsonContainerIsObject(c);
	int			n = (int) JsonContainerSize(c);
	const char *data = (const char *) (c->children + (object ? 2 * n : n));
	uint32		offset = 0;
	uint32		value = object ? getJsonbOffset(c, n) : 0;

	ws_bits_put(b, Min(n, MANY), COUNT_BITS);
	if (n >= MANY)
		ws_bits_put(b, n, MANY_BITS);
	for (int i = 0; i < n && b->left > 0; i++)
	{
		if (object)
		{
			put_key(b, layout, data + offset, (int) getJsonbLength(c, i));
			if (b->left > 0)
				put_member(b, layout, c, n + i, data, value);
			JBE_ADVANCE_OFFSET(value, c->children[n + i]);
		}
		else
			put_member(b, layout, c, i, data, offset);
		JBE_ADVANCE_OFFSET(offset, c->children[i]);
	}
}

/*
 * An empty array comes before scalars, which are arrays of one element in jsonb's storage, and other
 * arrays behind them: compareJsonbContainers has the number of elements overrule that one is a scalar.
 */
static void
put_jsonb(WsBits *b, WsNested *nested, Datum value)
{
	Layout	   *layout = (Layout *) nested;
	WsFlat		room;
	Jsonb	   *jsonb = (Jsonb *) ws_bits_flat(value, &room);
	const JsonbContainer *root = &jsonb->root;

	layout->nkeys = 0;
	if (JsonContainerIsScalar(root))
	{
		ws_bits_put(b, 1, FLAG_BITS);
		put_member(b, layout, root, 0, (const char *) (root->children + 1), 0);
	}
	else if (JsonContainerIsObject(root) || JsonContainerSize(root) > 0)
	{
		ws_bits_put(b, JsonContainerIsObject(root) ? 3 : 2, FLAG_BITS);
		put_container(b, layout, root);
	}
	ws_bits_put_away(jsonb, value, &room);
}

/* What there is to know of jsonb, in CurrentMemoryContext. */
WsNested *
ws_jsonb_create(bool guessing)
{
	Layout	   *layout = palloc0(sizeof(Layout));

	layout->nested.put = put_jsonb;
	layout->nested.guessing = guessing;
	layout->nested.votes = true;
	layout->context = CurrentMemoryContext;
	layout->bytes = ws_collation_is_bytes(DEFAULT_COLLATION_OID);
	layout->icu = layout->bytes ? NULL : ws_icu_create(DEFAULT_COLLATION_OID);
	layout->numbers.encoding = ws_comparison_encoding(F_NUMERIC_CMP, InvalidOid, &layout->numbers.width);
	layout->numbers.length = -1;
	layout->nested.guesses = guessing && !layout->bytes && layout->icu == NULL &&
		ws_part_guessed(&layout->texts, F_BTTEXTCMP, TEXTOID, DEFAULT_COLLATION_OID);
	return &layout->nested;
}
