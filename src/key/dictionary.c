/*-------------------------------------------------------------------------
 * dictionary.c - short codes for the values of a column whose comparison is dear.
 *
 * Text under libc, domains over it and types without an encoding are ordered by a function.
 * Where such a column has few values, their order needs to be found out only once: each value gets a
 * *code*, an integer of a few bytes whose order is the values'.  It is found by the value's bytes,
 * without a comparison, for equal bytes are equal values.  The next column's bytes follow in the key.
 *
 * It is an order-preserving dictionary (Binnig, Hildenbrand and Faerber, SIGMOD 2009) whose codes are
 * labels as in list labelling (Dietz and Sleator, STOC 1987), except that a label never changes, because
 * there are entries with it already:
 *
 *	- The values of the first rows are sorted by the comparator, and get even codes, as far
 *	  from each other as possible.
 *	- A value that comes later gets a code between those of its neighbours: half-way; or, where the last
 *	  one came next to it, near that, so that values that come in order do not use up the room.
 *	- Where there is no room, or no memory, or where new values hardly ever come again, it gets the odd
 *	  code of the gap between its neighbours, which all values there share.  The comparator settles
 *	  their ties.  No value gets a code of its own there any more.
 *
 * A value's place is found by its *hint*, eight bytes: an abbreviation, which is certain where two of them
 * differ, or a guess at a text's order.  Of a guess, the comparator is asked about the neighbours, and about
 * all if these are not its neighbours.  In the key of a value that shares the code of a gap, its hint
 * follows, without the bytes that the hints of the neighbours have in common.
 *
 * Different bytes may be equal values (arrays of 1.0 and 1.00): they get the same code.
 *
 * Memory: a context of its own, and at most the bytes that were allowed.  Errors are those of
 * comparing and detoasting, and leave the dictionary as it was.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"
#include "key/value.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"

#define MOST_VALUES		(16 * 1024)
#define FIRST_VALUES	64
#define VALUES_CHUNK			1024	/* bytes of values that are allocated at a time */
#define TABLE_BYTES		(sizeof(Known) + 3 * sizeof(uint32))	/* of each value that there is room for */

#define MOST_REMEMBERED	1024	/* bytes of a value that got the code of a gap */

/* Values may be added as long as there are no more than this, or than rows that had one of them again. */
#define ADDED_FREELY	64

/* A value beside the last one added is this share of the room there away from it, or of the first room. */
#define STEPS			256
#define FIRST_STEPS		8192

typedef struct Known
{
	Datum		datum;
	uint64		hint;
	uint32		hash;
	uint32		code;
	uint32		length;			/* of its bytes */
	bool		gap_used;		/* the code of the gap behind it has been given away */
} Known;

/* A value that has the code of a gap, and will have no other: rows that follow often have the same. */
typedef struct Stranger
{
	uint32		hash;
	uint32		code;
	Size		length;			/* 0: there is none */
	char		bytes[MOST_REMEMBERED];
} Stranger;

struct WsDictionary
{
	const WsKeyColumn *col;
	SortSupport compare;
	MemoryContext context;
	MemoryContext work;			/* what comparators leave */
	Size		most;			/* bytes */
	Size		bytes;
	Known	   *values;			/* in the order in which they came */
	int			nvalues;
	int			room;
	uint32	   *slots;			/* hash table: 1 + number of a value, or 0; twice `room` of them */
	uint32	   *order;			/* numbers of values in their order, one of those that are equal */
	int			nordered;
	char	   *chunk;			/* where the bytes of the next value go */
	Size		left;			/* of it */
	/* once there are codes */
	int			code_bytes;		/* 0: not yet */
	uint32		distance;		/* of the first codes from each other */
	int			learnt;			/* values from the first rows */
	uint32		last;			/* number of the value that was added last */
	uint64		recurred;		/* rows with values added since */
	Stranger	stranger;		/* the last value that got the code of a gap, */
	WsHint		hint;			/* and its hint */
	bool		gap_used;		/* as in Known: before the first */
};

/* Starts a dictionary of at most `most` bytes, in CurrentMemoryContext, which `col` and `compare` outlive. */
WsDictionary *
ws_dictionary_create(const WsKeyColumn *col, SortSupport compare, Size most)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "WiscSort dictionary",
												  ALLOCSET_SMALL_SIZES);
	WsDictionary *d = MemoryContextAllocZero(context, sizeof(WsDictionary));

	d->col = col;
	d->compare = compare;
	d->context = context;
	d->work = AllocSetContextCreate(context, "WiscSort dictionary work", ALLOCSET_SMALL_SIZES);
	d->most = most;
	return d;
}

/* Frees it. */
void
ws_dictionary_free(WsDictionary *d)
{
	MemoryContextDelete(d->context);
}

/* Different values in it, equal ones of other bytes included. */
int
ws_dictionary_values(const WsDictionary *d)
{
	return d->nvalues;
}

/*
 * Gives up half of the bytes that it may come to take if it has hardly begun to use them: codes of what keys
 * begin with may need them.  Returns what is left.
 */
Size
ws_dictionary_share(WsDictionary *d)
{
	if (d->bytes <= d->most / 16)
		d->most /= 2;
	return d->most;
}

/* Values that it may come to have, if others are as long as those that it has. */
int
ws_dictionary_most(const WsDictionary *d)
{
	Size		each = (d->bytes - d->room * TABLE_BYTES) / Max(d->nvalues, 1) + 1;
	Size		most = 0;

	for (Size room = FIRST_VALUES; room <= MOST_VALUES && room * TABLE_BYTES < d->most; room *= 2)
	{
		Size		values = (d->most - room * TABLE_BYTES) / each;

		most = Max(most, Min(values, room));
	}
	return (int) most;
}

/* Bytes of memory that it takes. */
Size
ws_dictionary_bytes(const WsDictionary *d)
{
	return d->bytes;
}

static void
put_slot(WsDictionary *d, int number)
{
	uint32		mask = 2 * d->room - 1;
	uint32		slot = d->values[number].hash & mask;

	while (d->slots[slot] != 0)
		slot = (slot + 1) & mask;
	d->slots[slot] = number + 1;
}

/* Makes room for another value of `length` bytes.  False if that is too much memory. */
static bool
make_room_for(WsDictionary *d, Size length)
{
	int			room = d->room == 0 ? FIRST_VALUES : 2 * d->room;
	Size		tables = d->nvalues < d->room ? 0 :
		(room - d->room) * TABLE_BYTES;
	Size		chunk = MAXALIGN(VARHDRSZ + length) <= d->left ? 0 :
		Max(MAXALIGN(VARHDRSZ + length), VALUES_CHUNK);

	if (d->nvalues >= MOST_VALUES || d->bytes + tables + chunk > d->most)
		return false;
	if (chunk > 0)
	{
		d->chunk = MemoryContextAlloc(d->context, chunk);
		d->left = chunk;
		d->bytes += chunk;
	}
	if (tables > 0)
	{
		Known	   *values = MemoryContextAlloc(d->context, room * sizeof(Known));
		uint32	   *order = MemoryContextAlloc(d->context, room * sizeof(uint32));
		uint32	   *slots = MemoryContextAllocZero(d->context, 2 * room * sizeof(uint32));

		if (d->room > 0)
		{
			memcpy(values, d->values, d->nvalues * sizeof(Known));
			memcpy(order, d->order, d->nordered * sizeof(uint32));
			pfree(d->values);
			pfree(d->order);
			pfree(d->slots);
		}
		d->values = values;
		d->order = order;
		d->slots = slots;
		d->room = room;
		d->bytes += tables;
		for (int i = 0; i < d->nvalues; i++)
			put_slot(d, i);
	}
	return true;
}

/* The bytes of a value that has been added. */
static inline const char *
known_bytes(const WsKeyColumn *col, const Known *v)
{
	return col->byval ? (const char *) &v->datum :
		(const char *) DatumGetPointer(v->datum) + (col->length == -1 ? VARHDRSZ : 0);
}

/* The number of the value of these bytes, or -1. */
static inline int
find_known(const WsDictionary *d, const char *bytes, Size length, uint32 hash)
{
	uint32		mask = 2 * d->room - 1;

	if (d->room == 0)
		return -1;
	for (uint32 slot = hash & mask; d->slots[slot] != 0; slot = (slot + 1) & mask)
	{
		const Known *v = &d->values[d->slots[slot] - 1];

		if (v->hash == hash && v->length == length && ws_same_bytes(known_bytes(d->col, v), bytes, length))
			return d->slots[slot] - 1;
	}
	return -1;
}

/* Adds a value of such bytes, for which there is room.  Returns its number. */
static int
add_value(WsDictionary *d, Datum value, const char *bytes, Size length, uint32 hash)
{
	Known	   *v = &d->values[d->nvalues];

	memset(v, 0, sizeof(Known));
	v->hash = hash;
	v->length = (uint32) length;
	v->datum = value;
	if (!d->col->byval)
	{
		Size		n = length;

		v->datum = PointerGetDatum(d->chunk);
		if (d->col->length == -1)
		{
			SET_VARSIZE(d->chunk, VARHDRSZ + length);
			memcpy(d->chunk + VARHDRSZ, bytes, length);
			n += VARHDRSZ;
		}
		else
		{
			memcpy(d->chunk, bytes, length);
			if (d->col->length == -2)
				d->chunk[n++] = '\0';
		}
		d->chunk += MAXALIGN(n);
		d->left -= MAXALIGN(n);
	}
	put_slot(d, d->nvalues);
	return d->nvalues++;
}

/* Of short values a cheaper hash than PostgreSQL's: a product of 128 bits, folded. */
static inline uint32
hash_of(const char *bytes, Size length)
{
	WsWords		words;
	ws_uint128	product;

	if (length > WS_SHORT_VALUE)
		return hash_bytes((const unsigned char *) bytes, (int) length);
	words = ws_words_of(bytes, length);
	product = (ws_uint128) (words.first ^ UINT64CONST(0x9E3779B97F4A7C15)) *
		(words.last ^ length ^ UINT64CONST(0xD6E8FEB86659FD93));
	return (uint32) ((uint64) (product >> 64) ^ (uint64) product);
}

/* A value as it is stored: not toasted.  To be given back to put_away. */
static inline Datum
detoasted(const WsKeyColumn *col, Datum value)
{
	return ws_is_toasted(col, value) ? PointerGetDatum(PG_DETOAST_DATUM_PACKED(value)) : value;
}

static inline void
put_away(Datum value, Datum original)
{
	if (value != original)
		pfree(DatumGetPointer(value));
}

/*
 * Takes in a value of one of the first rows.  False if there are too many.
 */
bool
ws_dictionary_learn(WsDictionary *d, Datum original)
{
	Datum		value = detoasted(d->col, original);
	Size		length;
	const char *bytes = ws_image_of(d->col, &value, &length);
	uint32		hash = hash_of(bytes, length);
	bool		known = find_known(d, bytes, length, hash) >= 0;

	if (!known && make_room_for(d, length))
	{
		(void) add_value(d, value, bytes, length, hash);
		known = true;
	}
	put_away(value, original);
	return known;
}

static inline int
compare_values(const WsDictionary *d, Datum a, Datum b)
{
	return ApplySortComparator(a, false, b, false, d->compare);
}

static int
compare_known(const uint32 *a, const uint32 *b, WsDictionary *d)
{
	return compare_values(d, d->values[*a].datum, d->values[*b].datum);
}

#define ST_SORT sort_known
#define ST_ELEMENT_TYPE uint32
#define ST_COMPARE_ARG_TYPE WsDictionary
#define ST_COMPARE(a, b, arg) compare_known(a, b, arg)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* The first bytes of what the key has for a value without a code, in their order; 0 where there are none. */
static uint64
hint_of(const WsDictionary *d, Datum value)
{
	const WsKeyColumn *col = d->col;
	uint64		hint = 0;

	if (col->encoding == WS_ENC_TRANSFORMED)
	{
		ws_guess_of(col, value, sizeof(hint), (uint8 *) &hint);
		return pg_ntoh64(hint);
	}
	if (col->abbreviate != NULL)
		hint = ws_key_abbreviation(col, value);
	return col->descending ? ~hint : hint;
}

static inline const Known *
known(const WsDictionary *d, int i)
{
	return &d->values[d->order[i]];
}

/*
 * Ends the learning: values get codes of `code_bytes` bytes.
 */
void
ws_dictionary_number(WsDictionary *d, int code_bytes)
{
	uint64		distance = (UINT64CONST(1) << (8 * code_bytes)) / (d->nvalues + 1);
	uint32		code = 0;

	for (int i = 0; i < d->nvalues; i++)
		d->order[i] = i;
	sort_known(d->order, d->nvalues, d);
	d->code_bytes = code_bytes;
	d->learnt = d->nvalues;
	/* of no value at all, 2^32 would be none */
	d->distance = (uint32) Min(distance, PG_UINT32_MAX) & ~1;
	Assert(d->distance >= 4);
	for (int i = 0; i < d->nvalues; i++)
	{
		Known	   *v = &d->values[d->order[i]];

		if (i == 0 || compare_values(d, known(d, d->nordered - 1)->datum, v->datum) != 0)
		{
			code += d->distance;
			d->order[d->nordered++] = d->order[i];
		}
		v->code = code;
		CHECK_FOR_INTERRUPTS();
	}
	d->last = PG_UINT32_MAX;
	(void) ws_dictionary_hint_values(d);
}

/* Gives values their hints, anew if guesses at the column have changed.  Are they in the values' order? */
bool
ws_dictionary_hint_values(WsDictionary *d)
{
	bool		ascend = true;

	for (int i = 0; i < d->nvalues; i++)
	{
		d->values[i].hint = hint_of(d, d->values[i].datum);
		CHECK_FOR_INTERRUPTS();
	}
	for (int i = 1; i < d->nordered; i++)
		ascend &= known(d, i - 1)->hint <= known(d, i)->hint;
	return ascend;
}

/* The first of the ordered values from `low` whose hint is not below `hint`. */
static int
place_by_hint(const WsDictionary *d, uint64 hint, int low)
{
	int			high = d->nordered;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (known(d, middle)->hint < hint)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * The first of the ordered values that is not less than `value`.  Sets *equal if it is not greater either.
 */
static int
place_of(const WsDictionary *d, Datum value, uint64 hint, bool *equal)
{
	int			low = place_by_hint(d, hint, 0);
	int			high = low;

	if (low < d->nordered && known(d, low)->hint == hint)
		high = hint == PG_UINT64_MAX ? d->nordered : place_by_hint(d, hint + 1, low);
	if (d->col->encoding == WS_ENC_TRANSFORMED)
	{
		if (low > 0 && compare_values(d, known(d, low - 1)->datum, value) >= 0)
			low = 0;
		if (high < d->nordered && compare_values(d, known(d, high)->datum, value) <= 0)
			high = d->nordered;
	}
	*equal = false;
	while (low < high)
	{
		int			middle = (low + high) / 2;
		int			cmp = compare_values(d, known(d, middle)->datum, value);

		if (cmp == 0)
		{
			*equal = true;
			return middle;
		}
		if (cmp < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A code for a value between the ordered ones i - 1 and i; 0 if there is none. */
static uint32
code_between(const WsDictionary *d, int i)
{
	uint64		low = i > 0 ? known(d, i - 1)->code : 0;
	uint64		high = i < d->nordered ? known(d, i)->code : UINT64CONST(1) << (8 * d->code_bytes);
	uint64		step = Max(Min((high - low) / STEPS, d->distance / FIRST_STEPS) & ~1, 2);

	if (high - low < 4)
		return 0;
	if (i > 0 && d->order[i - 1] == d->last)
		return (uint32) (low + step);
	if (i < d->nordered && d->order[i] == d->last)
		return (uint32) (high - step);
	return (uint32) (low + ((high - low) / 2 & ~1));
}

/* Bytes that two hints begin with alike. */
static inline int
bytes_in_common(uint64 a, uint64 b)
{
	return a == b ? (int) sizeof(a) : (63 - pg_leftmost_one_pos64(a ^ b)) / BITS_PER_BYTE;
}

/* The code of a value that is not in the dictionary: it is added if that is possible, and pays. */
static uint32
code_of_new(WsDictionary *d, Datum value, const char *bytes, Size length, uint32 hash)
{
	MemoryContext old = MemoryContextSwitchTo(d->work);
	uint64		hint = hint_of(d, value);
	bool		equal;
	int			i = place_of(d, value, hint, &equal);
	int			added = d->nvalues - d->learnt;
	bool	   *gap_used = i > 0 ? &d->values[d->order[i - 1]].gap_used : &d->gap_used;
	bool		pays = added < ADDED_FREELY || d->recurred >= (uint64) added;
	uint32		code = equal ? known(d, i)->code : *gap_used ? 0 : code_between(d, i);

	MemoryContextSwitchTo(old);
	MemoryContextReset(d->work);
	if (code != 0 && pays && make_room_for(d, length))
	{
		int			number = add_value(d, value, bytes, length, hash);

		d->values[number].code = code;
		d->values[number].hint = hint;
		if (!equal)
		{
			memmove(d->order + i + 1, d->order + i, (d->nordered - i) * sizeof(uint32));
			d->order[i] = number;
			d->nordered++;
			d->last = number;
		}
		return code;
	}
	if (equal)
		return code;
	code = (i > 0 ? known(d, i - 1)->code : 0) + 1;
	*gap_used = true;
	d->stranger.length = 0;
	if (length <= MOST_REMEMBERED)
	{
		d->stranger.hash = hash;
		d->stranger.code = code;
		d->stranger.length = length;
		memcpy(d->stranger.bytes, bytes, length);
	}
	d->hint.bits = hint;
	d->hint.passed = bytes_in_common(i > 0 ? known(d, i - 1)->hint : 0,
									 i < d->nordered ? known(d, i)->hint : PG_UINT64_MAX);
	return code;
}

static inline bool
is_last_stranger(const WsDictionary *d, const char *bytes, Size length, uint32 hash)
{
	return length > 0 && d->stranger.length == length && d->stranger.hash == hash &&
		memcmp(d->stranger.bytes, bytes, length) == 0;
}

/*
 * The code of a value, of as many bytes as were asked for.  The same value always has the
 * same one, and codes are in the order of values, in which equal codes are of equal values if they are exact,
 * or else of values of the same gap.
 */
uint32
ws_dictionary_code(WsDictionary *d, Datum original)
{
	Datum		value = detoasted(d->col, original);
	Size		length;
	const char *bytes = ws_image_of(d->col, &value, &length);
	uint32		hash = hash_of(bytes, length);
	int			number = find_known(d, bytes, length, hash);
	uint32		code;

	if (likely(number >= 0))
	{
		d->recurred += number >= d->learnt;
		code = d->values[number].code;
	}
	else if (is_last_stranger(d, bytes, length, hash))
		code = d->stranger.code;
	else
		code = code_of_new(d, value, bytes, length, hash);
	put_away(value, original);
	return code;
}

/* The hint of the value whose code was asked for last, if that was the code of a gap. */
WsHint
ws_dictionary_hint(const WsDictionary *d)
{
	return d->hint;
}
