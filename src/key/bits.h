/*-------------------------------------------------------------------------
 * bits.h - abbreviated keys in the making: parts of a value, one after the other, in 64 bits.
 *
 * The first part is in the highest bits.  What there is no room for is left out, so that keys which
 * differ are in the order of the values, and the comparator decides between the others.  A guess at the
 * order of values is made likewise, of more bits, and of parts that have no others (part.c).
 *-------------------------------------------------------------------------
 */
#ifndef WS_BITS_H
#define WS_BITS_H

#include "key/text.h"

#include "port/pg_bswap.h"

#define WS_KEY_BITS		64		/* of an abbreviated key */
#define WS_GUESS_BITS	(WS_PREFIX_BYTES * BITS_PER_BYTE)	/* of a guess */

/* An abbreviated key, or a guess, in the making. */
typedef struct WsBits
{
	ws_uint128	key;
	int			left;			/* bits that have not been put */
} WsBits;

/* What there is to know of a type whose values are made of parts. */
typedef struct WsNested
{
	/* puts the parts of a value */
	void		(*put) (WsBits *b, struct WsNested *nested, Datum value);
	bool		guessing;		/* parts that have no bits may be guessed, */
	bool		guesses;		/* and some are */
	bool		votes;			/* values are looked at before bits are made of any; */
	bool		voting;			/* this is one of them */
} WsNested;

/* Room for a value with a short header. */
typedef union WsFlat
{
	int64		aligned;
	char		bytes[VARHDRSZ + VARATT_SHORT_MAX];
} WsFlat;

/* Appends `bits`, which have n bits, or as many of the first ones as there is room for. */
static inline void
ws_bits_put(WsBits *b, ws_uint128 bits, int n)
{
	if (n <= b->left && b->left <= WS_KEY_BITS)
	{
		b->left -= n;			/* no arithmetic of 128 bits for keys of 64 */
		b->key |= (uint64) bits << b->left;
	}
	else if (n <= b->left)
	{
		b->left -= n;
		b->key |= bits << b->left;
	}
	else if (b->left > 0)
	{
		b->key |= bits >> (n - b->left);
		b->left = 0;
	}
}

/* Nothing more can be told. */
static inline void
ws_bits_end(WsBits *b)
{
	b->left = 0;
}

/* Bytes for what is left. */
static inline Size
ws_bits_wanted(const WsBits *b)
{
	return (b->left + BITS_PER_BYTE - 1) / BITS_PER_BYTE;
}

/* Appends n of 16 bytes, which are 1 at least. */
static inline void
ws_bits_put_bytes(WsBits *b, const uint8 *bytes, Size n)
{
	uint64		half[2];
	ws_uint128	all;

	memcpy(half, bytes, sizeof(half));
	all = (ws_uint128) pg_ntoh64(half[0]) << 64 | pg_ntoh64(half[1]);
	ws_bits_put(b, all >> ((sizeof(all) - n) * BITS_PER_BYTE), (int) n * BITS_PER_BYTE);
}

/* Appends what a value has in a key. */
static inline void
ws_bits_put_part(WsBits *b, const WsKeyColumn *part, Datum value)
{
	if (b->left == 0)
		return;
	if (part->width > 0)
		ws_bits_put(b, ws_value_bits(part, value), part->width * BITS_PER_BYTE);
	else
	{
		uint8		bytes[sizeof(ws_uint128)] = {0};
		Size		wanted = ws_bits_wanted(b);
		Size		n = ws_value_bytes(part, value, wanted, bytes);

		ws_bits_put_bytes(b, bytes, Min(n, wanted));
	}
	if (ws_encoding_partial(part->encoding))
		ws_bits_end(b);
}

/* A value that is not toasted, aligned, and with a long header.  To be given to ws_bits_put_away. */
static inline struct varlena *
ws_bits_flat(Datum value, WsFlat *room)
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
ws_bits_put_away(void *v, Datum value, const WsFlat *room)
{
	if (v != DatumGetPointer(value) && v != room)
		pfree(v);
}

/* ---- jsonb.c ---- */
extern WsNested *ws_jsonb_create(bool guessing);

/* ---- part.c: guesses at the order of parts ---- */
extern bool ws_part_guessed(WsKeyColumn *part, Oid proc, Oid type, Oid collation);
extern void ws_part_put_text(WsBits *b, const WsKeyColumn *part, const char *text, Size n);
extern void ws_part_put_guess(WsBits *b, const WsKeyColumn *part, Datum value);

#endif							/* WS_BITS_H */
