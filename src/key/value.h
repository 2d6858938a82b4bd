/*-------------------------------------------------------------------------
 * value.h - the bytes of a value, by which values are the same without a comparison.
 *
 * Equal bytes are equal values for every comparator.  The reverse does not hold (1.0 and 1.00).
 *-------------------------------------------------------------------------
 */
#ifndef WS_VALUE_H
#define WS_VALUE_H

#include "key/key.h"

/* The bytes of a value that is not toasted, which say that values are equal. */
static inline const char *
ws_image_of(const WsKeyColumn *col, const Datum *value, Size *length)
{
	const char *bytes;

	if (col->byval)
	{
		*length = sizeof(Datum);
		return (const char *) value;
	}
	bytes = DatumGetPointer(*value);
	if (col->length > 0)
		*length = col->length;
	else if (col->length == -2)
		*length = strlen(bytes);
	else
	{
		*length = VARSIZE_ANY_EXHDR(bytes);
		bytes = VARDATA_ANY(bytes);
		if (col->padded)
			while (*length > 0 && bytes[*length - 1] == ' ')
				(*length)--;
	}
	return bytes;
}

/* Short values are compared and hashed as two numbers, which with their length tell their bytes. */
#define WS_SHORT_VALUE	16		/* bytes at most */

typedef struct WsWords
{
	uint64		first;
	uint64		last;
} WsWords;

static inline WsWords
ws_words_of(const char *bytes, Size n)
{
	WsWords		words = {0, 0};
	uint32		first;
	uint32		last;

	if (n >= sizeof(uint64))
	{
		memcpy(&words.first, bytes, sizeof(uint64));
		memcpy(&words.last, bytes + n - sizeof(uint64), sizeof(uint64));
	}
	else if (n >= sizeof(uint32))
	{
		memcpy(&first, bytes, sizeof(first));
		memcpy(&last, bytes + n - sizeof(last), sizeof(last));
		words.first = first;
		words.last = last;
	}
	else if (n > 0)
	{
		words.first = (uint8) bytes[0] | (uint64) (uint8) bytes[n / 2] << 8;
		words.last = (uint8) bytes[n - 1];
	}
	return words;
}

/* Are so many bytes the same? */
static inline bool
ws_same_bytes(const char *a, const char *b, Size n)
{
	WsWords		x;
	WsWords		y;

	if (n > WS_SHORT_VALUE)
		return memcmp(a, b, n) == 0;
	x = ws_words_of(a, n);
	y = ws_words_of(b, n);
	return x.first == y.first && x.last == y.last;
}

/* Is a value of variable length toasted, so that its bytes are not those of the value? */
static inline bool
ws_varlena_is_toasted(Datum value)
{
	const struct varlena *v = (const struct varlena *) DatumGetPointer(value);

	return VARATT_IS_EXTERNAL(v) || VARATT_IS_COMPRESSED(v);
}

/* The same of a value of any type. */
static inline bool
ws_is_toasted(const WsKeyColumn *col, Datum value)
{
	return col->length == -1 && ws_varlena_is_toasted(value);
}

/* Have two values, which are not null, the same bytes?  Toasted ones are not fetched for that: false. */
static inline bool
ws_same_value(const WsKeyColumn *col, Datum x, Datum y)
{
	const char *a;
	const char *b;
	Size		n;
	Size		m;

	if (col->byval)
		return x == y;
	if (ws_is_toasted(col, x) || ws_is_toasted(col, y))
		return false;
	a = ws_image_of(col, &x, &n);
	b = ws_image_of(col, &y, &m);
	return n == m && ws_same_bytes(a, b, n);
}

#endif							/* WS_VALUE_H */
