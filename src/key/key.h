/*-------------------------------------------------------------------------
 * key.h - sort keys: what the columns are, how they become bytes.
 *
 * A key is the ORDER BY columns of one row as a byte string whose memcmp
 * order is the sort order.  The encoding is prefix-free, column by column:
 *
 *	null byte	absent for a column known to be NOT NULL; otherwise 0/1 so
 *				that nulls come first or last as asked, never inverted.  A type
 *				no value of which begins with the byte 0 or 255, whichever a null
 *				needs, has it for nulls only; behind a text, its terminator
 *				tells whether the next column is null
 *	value		absent for a null (zero bytes in an exact key, see below);
 *				every byte inverted for DESC
 *
 * An *exact* key has only fixed-width columns and at most WS_PREFIX_BYTES
 * bytes: the prefix is the whole key, and a null value is zero bytes so
 * that the width stays fixed.
 *
 * A column whose type or collation has no encoding ends the byte string
 * after its null byte.  Such a key needs the *comparator*: ties on the
 * prefix are settled by the types' own SortSupport functions.  If it has few
 * values, they get *codes* (dictionary.c), behind which the next column follows.
 *-------------------------------------------------------------------------
 */
#ifndef WS_KEY_H
#define WS_KEY_H

#include <sys/socket.h>

#include "entry.h"
#include "os/os.h"
#include "utils/inet.h"
#include "utils/sortsupport.h"

typedef enum WsEncoding
{
	WS_ENC_NONE,				/* comparator only */
	WS_ENC_BOOL,
	WS_ENC_CHAR,				/* "char", unsigned */
	WS_ENC_INT2,
	WS_ENC_INT4,				/* also date */
	WS_ENC_INT8,				/* also time, timestamp, timestamptz, money */
	WS_ENC_UINT4,				/* oid */
	WS_ENC_UINT8,				/* pg_lsn, xid8 */
	WS_ENC_FLOAT4,
	WS_ENC_FLOAT8,
	WS_ENC_FLOAT4_APART,		/* the last column of an exact key: equal floats that are not the same */
	WS_ENC_FLOAT8_APART,		/* have bytes of their own (fixed.h) */
	WS_ENC_BYTES,				/* fixed length by reference: uuid, macaddr, macaddr8 */
	WS_ENC_TIMETZ,
	WS_ENC_INTERVAL,
	WS_ENC_TID,
	WS_ENC_ABBREVIATED,			/* SortSupport's abbreviated key, then comparator */
	WS_ENC_TRANSFORMED,			/* a guess at text's order, to be verified */
	WS_ENC_LETTERS,				/* text under ICU whose letters tell its order */
	WS_ENC_TEXT,				/* text, varchar under a C-like collation */
	WS_ENC_BPCHAR,
	WS_ENC_NAME,
	WS_ENC_BYTEA,
	WS_ENC_BIT,					/* also varbit */
	WS_ENC_INET,				/* also cidr */
	WS_ENC_NUMERIC
} WsEncoding;

typedef struct WsKeyColumn
{
	AttrNumber	attno;			/* in the sorted row, from 1 */
	WsEncoding	encoding;
	int			width;			/* bytes of the value; 0 = variable or none */
	bool		descending;
	bool		nulls_first;
	bool		notnull;		/* known: no null byte */
	bool		null_apart;		/* a null byte for nulls only */
	bool		tells_null;		/* its terminator says whether the next column is null */
	SortSupport abbreviate;		/* makes abbreviated keys, or NULL */
	struct WsIcu *icu;			/* makes them of text, or NULL */
	struct WsTransform *transform;	/* guesses, or NULL */
	struct WsGuess *guess;		/* what texts begin with, or NULL */
	SortSupport parts;			/* guesses by what values are made of, or NULL */
	struct WsAlphabet *alphabet;	/* guesses instead of `transform`, or NULL */
	struct WsLetters *letters;	/* makes key bytes, of WS_ENC_LETTERS; else NULL */
	bool		padded;			/* trailing blanks do not count (bpchar) */
	bool		lowered;		/* text that is compared in lower case (lower.c) */
	int16		length;			/* attlen of its values, and whether they are passed by value */
	bool		byval;
	bool		dissimilar;		/* there may be values of it that cannot be compared */
	bool		aside;			/* nothing of it goes into keys (aside.c) */
	bool		needless;		/* the columns before it tell rows apart */
	struct WsDictionary *dictionary;	/* codes of its values, or NULL */
	int			code_bytes;		/* of these, if so */
	struct WsRanks *ranks;		/* of an enum's labels, in a guess; or NULL */
} WsKeyColumn;

typedef struct WsKeySpec
{
	int			ncols;
	WsKeyColumn *cols;
	AttrNumber	last_attno;		/* highest attno of a key column */
	bool		exact;			/* the prefix is the whole key */
	bool		cut;			/* a prefix has been made that may not be */
	bool		first_alone;	/* the first column decides all of it, unless null */
	int			exact_bytes;	/* its width, if exact */
	bool		comparator;		/* ties need the comparator, not more bytes */
	bool		guess;			/* there are columns of which key bytes are guessed */
	struct WsBeginnings *beginnings;	/* prefixes begin with their codes, or NULL */
	struct WsRanges *ranges;	/* codes of the first columns, of which prefixes are then; or NULL */
	bool		lettered;		/* there are columns of WS_ENC_LETTERS */
	int			doubts;			/* times that one of these has become strange */
	struct WsMemo *memo;		/* of the first column of the row before, or NULL */
	SortSupport compare;		/* ncols full comparators */
} WsKeySpec;

/* Does the value's encoding leave equal bytes to the comparator? */
static inline bool
ws_encoding_partial(WsEncoding encoding)
{
	return encoding == WS_ENC_NONE || encoding == WS_ENC_ABBREVIATED ||
		encoding == WS_ENC_TRANSFORMED;
}

/*
 * Can a null be told from every value by its first byte, 0 or 255?  An inet begins with its family, and a
 * numeric with its class.  Text in UTF-8 has no byte 255, but the empty one begins with its terminator: 0 is
 * only free where it is inverted.  What is not UTF-8 nevertheless, such as the name of a role that another
 * database has made, has a byte 254 in front if it begins with that or 255 (normalize.c).
 */
static inline bool
ws_null_apart(WsEncoding encoding, bool nulls_first, bool descending, bool utf8)
{
	switch (encoding)
	{
		case WS_ENC_INET:
		case WS_ENC_NUMERIC:
			return true;
		case WS_ENC_TEXT:
		case WS_ENC_BPCHAR:
			return utf8 && nulls_first == descending;
		default:
			return false;
	}
}

/*
 * Can a value's terminator say whether the next column is null?  A text has no zero
 * byte, and hardly ever a 1 or a 2: with these escaped, two terminators are left.
 */
static inline bool
ws_tells_null(const WsKeyColumn *col, const WsKeyColumn *next)
{
	return (col->encoding == WS_ENC_TEXT || col->encoding == WS_ENC_BPCHAR ||
			col->encoding == WS_ENC_NAME) && !next->notnull && !next->null_apart;
}

/* Is the first column a text whose bytes tell its order? */
static inline bool
ws_text_first(const WsKeySpec *spec)
{
	return spec->cols[0].encoding == WS_ENC_TEXT || spec->cols[0].encoding == WS_ENC_BPCHAR;
}

/*
 * Does the first column, if it is not null, decide all bytes of the prefix?  It is of
 * fixed width then, and alone, or wide, or the comparator orders what is behind it.
 */
static inline bool
ws_first_alone(const WsKeySpec *spec)
{
	const WsKeyColumn *col = &spec->cols[0];

	return col->width > 0 && !col->null_apart && col->dictionary == NULL && spec->beginnings == NULL &&
		spec->ranges == NULL &&
		((spec->ncols == 1 && col->width + (col->notnull ? 0 : 1) <= WS_PREFIX_BYTES) ||
		 ws_encoding_partial(col->encoding) || col->width + (col->notnull ? 0 : 1) >= WS_PREFIX_BYTES);
}

/*
 * Whether the prefix holds the whole key: asked of sort columns by the planner, of a request, and of a
 * key specification, and answered here.
 */
typedef struct WsKeyWidth
{
	bool		fixed;			/* all columns are of fixed width, and bytes tell their order */
	bool		decodable;		/* and their values (decode.c) */
	bool		ends;			/* which takes that no other column follows */
	int			bytes;			/* null bytes included */
} WsKeyWidth;

#define WS_NO_WIDTH ((WsKeyWidth) {.fixed = true, .decodable = true})

extern void ws_key_width_add(WsKeyWidth *all, Oid sortop, Oid collation, bool notnull);

static inline bool
ws_prefix_holds(const WsKeyWidth *all)
{
	return all->fixed && all->bytes <= WS_PREFIX_BYTES;
}

/* The null byte of a column that has one: where a null is, or a value. */
static inline uint8
ws_null_byte(const WsKeyColumn *col, bool isnull)
{
	if (col->null_apart)
		return col->nulls_first ? 0 : 0xFF;
	return isnull != col->nulls_first;
}

/* Bits of the prefix that are left for the first column's value, behind its null byte. */
static inline int
ws_first_bits(const WsKeyColumn *col)
{
	return WS_PREFIX_BYTES * 8 - (col->notnull ? 0 : 8);
}

/* The null byte of a first column where it stands in a prefix; 0 if it has none. */
static inline ws_uint128
ws_first_null(const WsKeyColumn *col, bool isnull)
{
	return col->notnull ? 0 : (ws_uint128) ws_null_byte(col, isnull) << ws_first_bits(col);
}

/* The abbreviation of a value, of a column that has any, as an integer that ascends with it. */
static inline uint64
ws_key_abbreviation(const WsKeyColumn *col, Datum value)
{
	return (uint64) col->abbreviate->abbrev_converter(value, col->abbreviate);
}

/* Key bytes behind a prefix that merges look at, before they leave a tie to the comparators. */
#define WS_TIED_BYTES	40

/* Key length when the bytes do not tell the whole order. */
#define WS_KEY_UNBOUNDED	SIZE_MAX

/*
 * The key columns of one row that has been put away: `values` and `isnull`,
 * indexed by attno - 1, up to last_attno.  Made by WsKeyRows.make_slot.
 */
typedef struct WsKeySlot
{
	uint64		pointer;		/* of the row, or WS_POINTER_MASK */
	Datum	   *values;
	bool	   *isnull;
} WsKeySlot;

/*
 * How ties get at the keys of rows.  A slot belongs to the memory context it
 * was made in; what its values point to is valid until the next `ready`, or only until the slot's next
 * `fetch` if there is a `keep`; and a slot filled before a `ready` must be emptied by its owner.
 */
typedef struct WsKeyRows
{
	void		(*ready) (void *store); /* before a series of fetches */
	void		(*prefetch) (void *store, uint64 pointer);
	WsKeySlot *(*make_slot) (void *store);
	void		(*fetch) (void *store, uint64 pointer, WsKeySlot *slot);
	void	   *store;

	/*
	 * Copies the value of key column number `column` (from 0) into CurrentMemoryContext, adds the bytes to
	 * *bytes, and returns it.  Ties may have `kept` bytes of such copies at a time.  NULL: values stay.
	 */
	Datum		(*keep) (void *store, const WsKeySlot *slot, int column, Size *bytes);
	Size		kept;
} WsKeyRows;

/* ---- keyspec.c ---- */
extern WsKeySpec *ws_keyspec_create(TupleDesc desc, int ncols, const AttrNumber *attnos,
									const Oid *sortops, const Oid *collations,
									const bool *nulls_first, const bool *notnull);

/* ---- encoding.c ---- */
extern Oid	ws_comparison_by(Oid proc, Oid type);
extern Oid	ws_comparison_proc(Oid sortop, bool *descending);
extern WsEncoding ws_comparison_encoding(Oid proc, Oid collation, int *width);
extern WsEncoding ws_key_encoding(Oid sortop, Oid collation, bool *descending, int *width);
extern bool ws_key_is_text(Oid sortop, bool *padded);
extern void ws_init_sort_support(SortSupport ssup, AttrNumber attno, Oid sortop, Oid collation,
								 bool nulls_first, bool abbreviate);
extern void ws_find_abbreviation(WsKeyColumn *col, Oid sortop, Oid collation);

/* ---- nested.c: abbreviated keys of arrays, ranges, multiranges, jsonb and composite types ---- */
extern SortSupport ws_nested_create(Oid proc, Oid type, Oid collation, bool guessing);
extern bool ws_nested_vote(SortSupport nested, const Datum *value);
extern void ws_nested_guess(SortSupport guess, Datum value, Size wanted, uint8 *out);

/* ---- collation.c: whose collation it is ---- */
extern char ws_collation_provider(Oid collation, char **name);

/* ---- dictionary.c: codes of values whose comparison is dear ---- */
typedef struct WsDictionary WsDictionary;

/* Where about in its gap a value is: bytes of it that all values there have can be passed over. */
typedef struct WsHint
{
	uint64		bits;
	int			passed;			/* of its 8 bytes */
} WsHint;

extern WsDictionary *ws_dictionary_create(const WsKeyColumn *col, SortSupport compare, Size most);
extern bool ws_dictionary_learn(WsDictionary *d, Datum value);
extern int	ws_dictionary_values(const WsDictionary *d);
extern int	ws_dictionary_most(const WsDictionary *d);
extern Size ws_dictionary_bytes(const WsDictionary *d);
extern Size ws_dictionary_share(WsDictionary *d);
extern void ws_dictionary_number(WsDictionary *d, int code_bytes);
extern bool ws_dictionary_hint_values(WsDictionary *d);
extern uint32 ws_dictionary_code(WsDictionary *d, Datum value);
extern WsHint ws_dictionary_hint(const WsDictionary *d);
extern void ws_dictionary_free(WsDictionary *d);

/* Is it the code of one value, and not of a gap between two? */
static inline bool
ws_code_is_exact(uint32 code)
{
	return code % 2 == 0;
}

/* ---- beginnings.c: codes of what many keys begin with; pure ---- */
#define WS_CODE_BYTES	2		/* of a prefix that has one */
#define WS_BEHIND_CODE	(WS_PREFIX_BYTES - WS_CODE_BYTES)
#define WS_BEGINNING	256		/* bytes at most */
#define WS_MOST_BEHIND	32		/* bytes behind one that a prefix tells, at most */
#define WS_PACKED_WHOLE	1		/* last bit of a prefix of packed bytes, if these tell the whole key */

/* The first bytes of a key. */
typedef struct WsKeyBytes
{
	const uint8 *bytes;
	Size		n;
	uint64		first;			/* eight of them, as a number; set by ws_beginnings_create */
} WsKeyBytes;

/* How bytes behind beginnings are packed: all, or those that are told and the next one (packing.c). */
typedef enum WsPack
{
	WS_PACK_NONE,
	WS_PACK_ALL,
	WS_PACK_TOLD
} WsPack;

typedef struct WsBeginnings WsBeginnings;

extern WsBeginnings *ws_beginnings_create(WsKeyBytes *keys, Size n, bool ends, WsPack pack, Size most);
extern int	ws_beginnings_count(const WsBeginnings *b);
extern Size ws_beginnings_reach(const WsBeginnings *b);
extern Size ws_beginnings_bytes(const WsBeginnings *b);
extern bool ws_beginnings_packed(const WsBeginnings *b);
extern ws_uint128 ws_beginnings_prefix(const WsBeginnings *b, const uint8 *key, Size n, Size *told);
extern Size ws_beginnings_expand(const WsBeginnings *b, ws_uint128 prefix, uint8 *key);
extern void ws_beginnings_free(WsBeginnings *b);

/* ---- packing.c: bytes of keys in fewer bits, in the same order; pure ---- */
typedef struct WsPacking WsPacking;

extern WsPacking *ws_packing_create(const WsKeyBytes *keys, const uint16 *from, Size n, bool stops,
									Size most);
extern Size ws_packing_bytes(const WsPacking *p);
extern uint64 ws_pack(const WsPacking *p, const uint8 *bytes, uint8 before, Size n, int bits, Size *told);
extern Size ws_unpack(const WsPacking *p, uint64 packed, uint8 before, Size n, int bits, uint8 *bytes);

/* ---- range.c: codes of values from the range that they have; pure ---- */
#define WS_NO_MARK		(-1)

/* The codes of a column.  PostgreSQL's uint128 is aligned as palloc has it. */
typedef struct WsRange
{
	bool		seen;			/* a value of it, when that is learnt */
	uint128		invert;			/* of a value's bits */
	uint128		least;			/* of the range */
	uint128		span;			/* to its last value */
	uint128		first;			/* code of the least */
	int			bits;			/* of the codes of values in the range */
	int			whole;			/* of a value */
	int			escape;			/* of marks: of nulls, and in front of values below and above */
	int			null;			/* or WS_NO_MARK */
	int			below;
	int			above;
} WsRange;

typedef struct WsRanges
{
	int			ncols;			/* that have codes: the first ones */
	bool		all;			/* these are all */
	bool		whole;			/* and prefixes hold them, unless values are out of range */
	WsRange		range[FLEXIBLE_ARRAY_MEMBER];
} WsRanges;

extern int	ws_ranges_columns(const WsKeySpec *spec);
extern WsRanges *ws_ranges_create(const WsKeySpec *spec);
extern void ws_ranges_learn(WsRanges *r, const WsKeySpec *spec, const Datum *values, const bool *isnull);
extern void ws_ranges_number(WsRanges *r, const WsKeySpec *spec);

/* The code of a value, of *bits bits. */
static inline ws_uint128
ws_range_code(const WsRange *range, ws_uint128 value, int *bits)
{
	value ^= range->invert;
	if (likely(value - range->least <= range->span))
	{
		*bits = range->bits;
		return range->first + (value - range->least);
	}
	*bits = range->escape + range->whole;
	return (ws_uint128) (value < range->least ? range->below : range->above) << range->whole | value;
}

/* Is each prefix that has been made the whole key of its row?  Later ones may not be. */
static inline bool
ws_key_tells_all(const WsKeySpec *spec)
{
	return spec->exact || !(spec->cut || spec->first_alone);
}

/* ---- learn.c: which columns have a dictionary, and what keys begin with, told from the first rows ---- */
/* Rows that say what values there are, and how many of these at least say what keys begin with. */
#define WS_LEARN_ROWS	((Size) 16 * 1024)
#define WS_LEARN_SAMPLE	((Size) 2 * 1024)

/* The first column of a row whose order bytes do not tell: ws_key_bytes has returned WS_KEY_UNBOUNDED. */
extern int	ws_key_compared_column(const WsKeySpec *spec, const Datum *values, const bool *isnull);
extern bool ws_key_can_learn(const WsKeySpec *spec, const WsKeyRows *rows);
extern void ws_key_forget(WsKeySpec *spec);

/* What EXPLAIN says of it. */
typedef struct WsLearnt
{
	int			coded;			/* columns whose values have codes */
	int			ranged;			/* columns with codes from the range of their values */
	int			lettered;		/* columns of text whose letters tell their order */
	int			guessed;		/* columns whose order is a guess behind what all begin with */
	int			beginnings;		/* of keys, that have codes */
} WsLearnt;

extern WsLearnt ws_key_learnt(const WsKeySpec *spec);

/* ---- normalize.c: pure ---- */

/* A guess begins at this byte of the key at most: elsewhere the prefix has nothing of it, or too little. */
#define WS_LAST_GUESS	(WS_PREFIX_BYTES - 4)

#define WS_LAST_ESCAPED	2		/* of a text's bytes, with two terminators */

/* Are there none such among the eight bytes of a text at `bytes`? */
static inline bool
ws_none_escaped(const uint8 *bytes, uint8 invert)
{
	const uint64 ones = ~UINT64CONST(0) / 0xFF;
	uint64		word;

	memcpy(&word, bytes, sizeof(word));
	word ^= ones * invert;
	return ((word - ones * (WS_LAST_ESCAPED + 1)) & ~word & (ones << 7)) == 0;
}

/* Bytes of an address of this family. */
static inline int
ws_inet_address_bytes(uint8 family)
{
	return family == PGSQL_AF_INET ? 4 : 16;
}

/* Bytes of it that repeat the network address: whole bytes of the netmask. */
static inline int
ws_inet_network_bytes(uint8 family, uint8 bits)
{
	return Min(bits / BITS_PER_BYTE, ws_inet_address_bytes(family));
}

extern void ws_unexpected_null(void);
extern ws_uint128 ws_value_bits(const WsKeyColumn *col, Datum value);
extern Size ws_value_bytes(const WsKeyColumn *col, Datum value, Size n, uint8 *out);
extern Size ws_key_bytes(const WsKeySpec *spec, const Datum *values, const bool *isnull, Size skip,
						 Size n, uint8 *out);
extern Size ws_key_guessed_bytes(const WsKeySpec *spec, const Datum *values, const bool *isnull, Size skip,
								 Size n, uint8 *out);
extern Size ws_key_certain_bytes(const WsKeySpec *spec, const Datum *values, const bool *isnull, Size skip,
								 Size n, uint8 *out);
extern Size ws_key_told_bytes(const WsKeySpec *spec, const Datum *values, const bool *isnull, Size skip,
							  Size n, uint8 *out, Size *told);
extern Size ws_key_prefix_bytes(const WsKeySpec *spec, const Datum *values, const bool *isnull,
								uint8 out[WS_PREFIX_BYTES]);
extern Size ws_key_bytes_behind(const WsKeySpec *spec, int from, Size before, const Datum *values,
								const bool *isnull, Size n, uint8 *out);

/* ---- prefix.c: pure ---- */
extern WsEntry ws_key_entry(WsKeySpec *spec, const Datum *values, const bool *isnull, uint64 pointer);
extern WsEntry ws_key_window_entry(const uint8 window[WS_PREFIX_BYTES], uint64 pointer);
extern Size ws_key_reached(const WsKeySpec *spec, const Datum *values, const bool *isnull, uint8 *out);
extern WsEntry ws_key_reached_entry(const WsKeySpec *spec, const uint8 *key, Size n, bool *cut);
extern void ws_key_look(const WsKeySpec *spec, const Datum *values, const bool *isnull);

/* ---- numeric.c: pure ---- */
extern ws_uint128 ws_numeric_bits(const uint8 *value, Size n, bool descending, Size *all);
extern Size ws_numeric_bytes(const uint8 *value, Size n, uint8 invert, Size skip, Size wanted,
							 uint8 *out);
extern int	ws_numeric_end(const uint8 *bytes, int n, int pos, uint8 invert);

/* ---- told.c: pure ---- */
typedef struct WsTold
{
	enum
	{
		WS_TOLD_ALL,			/* the prefix is the whole key */
		WS_TOLD_IN_PART,		/* the key goes on behind it */
		WS_TOLD_COMPARED,		/* the comparator decides: bytes say no more */
		WS_TOLD_GUESSED			/* the same, and what follows `bytes` bytes is a guess */
	}			what;
	int			columns;		/* that are wholly told */
	int			bytes;
	int			coded;			/* bits of the prefix in front of these bytes, of codes from ranges */
	Size		reach;			/* bytes of the key that the prefix tells: the next one is not in it; 0 if a
								 * code of the first column is cut */
} WsTold;

extern bool ws_ranges_told(const WsKeySpec *spec, ws_uint128 prefix, WsTold *told, int *left);
extern WsTold ws_key_told(const WsKeySpec *spec, WsEntry entry);

/* Does the prefix hold the whole key, so that rows with this prefix are equal? */
static inline bool
ws_key_complete(const WsKeySpec *spec, WsEntry entry)
{
	return ws_key_told(spec, entry).what == WS_TOLD_ALL;
}

/* The prefixes that have the same bytes as one in front of what it guesses. */
typedef struct WsCertain
{
	bool		guessed;		/* if not, there is only that one */
	bool		behind;			/* it has no byte of the guess, to say whether that is wiped out */
	int			columns;		/* that are wholly told by these bytes, if so */
	ws_uint128	from;			/* the least, which has nothing of the guess */
	ws_uint128	to;
} WsCertain;

extern WsCertain ws_key_certain(const WsKeySpec *spec, WsEntry entry);

static inline bool
ws_same_certainly(const WsCertain *certain, WsEntry entry)
{
	ws_uint128	prefix = ws_entry_prefix(entry);

	return prefix >= certain->from && prefix <= certain->to;
}

/* An entry without what it guesses. */
static inline WsEntry
ws_entry_wiped(const WsKeySpec *spec, WsEntry entry)
{
	return ws_entry_make(ws_key_certain(spec, entry).from, ws_entry_pointer(entry));
}

/* ---- decode.c: pure ---- */
extern bool ws_encoding_decodable(WsEncoding encoding);
extern void ws_key_decode(const WsKeySpec *spec, WsEntry entry, Datum *values, bool *isnull);

/* ---- fetch.c ---- */
typedef struct WsKeyFetch WsKeyFetch;

extern WsKeyFetch *ws_key_fetch_create(const WsKeySpec *spec, TupleDesc desc);
extern void ws_key_fetch(WsKeyFetch *fetch, TupleTableSlot *slot, const Datum **values,
						 const bool **isnull);

/* ---- keycopy.c: copies of key values, of which a helper makes keys; pure ---- */
extern bool ws_keycopy_wanted(const WsKeySpec *spec);
extern Size ws_keycopy_bytes(const WsKeySpec *spec, const Datum *values, const bool *isnull);
extern bool ws_keycopy_tells(const WsKeySpec *spec, const Datum *values, const bool *isnull);
extern void ws_keycopy_put(const WsKeySpec *spec, const Datum *values, const bool *isnull, Size bytes,
						   char *out);
extern void ws_keycopy_get(const WsKeySpec *spec, const char *from, Datum *values, bool *isnull);

/* ---- keyqueue.c: keys that a helper makes while more rows come ---- */
typedef struct WsKeyQueue WsKeyQueue;

#define WS_KEYQUEUE_BYTES	((Size) 128 * 1024)

extern WsKeyQueue *ws_keyqueue_create(WsKeySpec *spec, const WsThreads *threads,
									  WsAccount *account);
extern bool ws_keyqueue_put(WsKeyQueue *q, const Datum *values, const bool *isnull, WsEntry *entry);
extern void ws_keyqueue_finish(WsKeyQueue *q);
extern void ws_keyqueue_stop(WsKeyQueue *q);

/* ---- compare.c ---- */
extern int	ws_key_compare(const WsKeySpec *spec, int from_col,
						   const Datum *avalues, const bool *anull,
						   const Datum *bvalues, const bool *bnull);

#endif							/* WS_KEY_H */
