/*-------------------------------------------------------------------------
 * bits.h - abbreviated keys in the making: parts of a value, one after the other, in 64 bits.
 *
 * The first part is in the highest bits.  What there is no room for is left out, so that keys which
 * differ are in the order of the values, and the comparator decides between the others.
 *-------------------------------------------------------------------------
 */
#ifndef WS_BITS_H
#define WS_BITS_H

#include "key/text.h"

#include "port/pg_bswap.h"

#define WS_KEY_BITS		64

/* An abbreviated key in the making. */
typedef struct WsBits
{
	uint64		key;
	int			left;			/* bits that have not been put */
} WsBits;

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
ws_bits_end(WsBits *b)
{
	b->left = 0;
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
		uint64		bytes;
		Size		n = ws_value_bytes(part, value, sizeof(bytes), (uint8 *) &bytes);

		n = Min(n, sizeof(bytes)) * BITS_PER_BYTE;
		ws_bits_put(b, pg_ntoh64(bytes) >> (WS_KEY_BITS - n), (int) n);
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
extern void *ws_jsonb_create(void);
extern Datum ws_jsonb_abbreviate(Datum value, SortSupport ssup);

#endif							/* WS_BITS_H */
