/*-------------------------------------------------------------------------
 * numeric.c - key bytes of numeric: its whole order, in few bytes.
 *
 * A numeric is digits to the base 10000, without zeros at its ends, and the weight of the first: the power of
 * 10000 that it counts.  Its key bytes are
 *
 *	one byte	the class: -Infinity, negative, zero, positive, Infinity, NaN.  Weights near 0 have a class
 *				each; of others two bytes with the weight follow
 *	two bytes	for each digit: the digit, and as the last bit whether another one follows
 *
 * Of two positive values the one with the greater weight is the greater one; then the one with the greater
 * digit where they first differ; then the one that goes on.  A negative value has the bytes of its opposite,
 * inverted.  So bytes are in the order of numeric_cmp, equal values have equal bytes (of 1.0 and 1.00 only the
 * display scale differs, which does not count), and no value's bytes begin another's.  An amount of money
 * below 100 million has seven bytes.  No value's begin with 0 or 255, so that these can be a null's.
 *
 * The layout of stored values is not in PostgreSQL's headers, but it is on its disks, and the same since 9.1
 * (14 for infinities): src/backend/utils/adt/numeric.c describes it.
 *
 * Pure.
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

/* ---- stored values: a header of two bytes, perhaps the weight, and the digits ---- */
#define BASE			10000	/* digits are less */
#define KIND_BITS		0xC000
#define KIND_NEGATIVE	0x4000	/* of long ones */
#define KIND_SPECIAL	0xC000
#define SPECIAL_BITS	0xF000
#define SPECIAL_PLUS	0xD000
#define SPECIAL_MINUS	0xF000
#define SHORT_BIT		0x8000	/* the weight is in the header */
#define SHORT_NEGATIVE	0x2000
#define SHORT_WEIGHT	0x007F	/* in two's complement */

/* ---- classes; a negative value's are inverted, as all its bytes ---- */
#define CLASS_MINUS		0x01	/* infinity */
#define CLASS_ZERO		0x7F
#define CLASS_FIRST		0x80	/* of positive values: below the least weight that has a class */
#define CLASS_LAST		0xFC
#define CLASS_PLUS		0xFD	/* infinity */
#define CLASS_NAN		0xFE
#define NEGATIVE(byte)	((uint8) (0xFE - (byte)))
#define MOST_WEIGHT		61		/* that has a class, and of negative weights the least */

/* Bytes in front of the digits. */
typedef struct Head
{
	uint8		bytes[3];
	int			n;
} Head;

static inline uint16
word_at(const uint8 *bytes)
{
	uint16		word;

	memcpy(&word, bytes, sizeof(word)); /* not aligned behind a short header */
	return word;
}

static inline Head
head_of(int weight)
{
	Head		head = {.n = 1};

	if (abs(weight) <= MOST_WEIGHT)
		head.bytes[0] = (uint8) (CLASS_FIRST + 1 + MOST_WEIGHT + weight);
	else
	{
		uint16		place = (uint16) (weight - PG_INT16_MIN);

		head.bytes[0] = weight < 0 ? CLASS_FIRST : CLASS_LAST;
		head.bytes[1] = place >> 8;
		head.bytes[2] = (uint8) place;
		head.n = 3;
	}
	return head;
}

/*
 * Writes the key bytes skip .. skip + wanted - 1 of a numeric, whose n bytes behind its varlena header are at
 * `value`, to `out`, as far as there are that many.  Returns how many there are in all.
 */
Size
ws_numeric_bytes(const uint8 *value, Size n, Size skip, Size wanted, uint8 *out)
{
	uint16		header = word_at(value);
	const uint8 *digits = value + sizeof(header);
	bool		negative = (header & SHORT_NEGATIVE) != 0;
	int			weight = (header & SHORT_WEIGHT) - (header & (SHORT_WEIGHT + 1) / 2 ? SHORT_WEIGHT + 1 : 0);
	Head		head = {.bytes = {CLASS_ZERO}, .n = 1};
	Size		ndigits;
	Size		end;
	Size		i = skip;

	if ((header & KIND_BITS) == KIND_SPECIAL)
	{
		header &= SPECIAL_BITS;
		if (skip == 0 && wanted > 0)
			out[0] = header == SPECIAL_PLUS ? CLASS_PLUS : header == SPECIAL_MINUS ? CLASS_MINUS : CLASS_NAN;
		return 1;
	}
	if ((header & SHORT_BIT) == 0)
	{
		negative = (header & KIND_BITS) == KIND_NEGATIVE;
		weight = (int16) word_at(digits);
		digits += sizeof(int16);
	}
	ndigits = (value + n - digits) / sizeof(uint16);
	/* core compares values without the zeros that it does not store */
	for (; ndigits > 0 && unlikely(word_at(digits) == 0); ndigits--, weight--)
		digits += sizeof(uint16);
	while (ndigits > 0 && unlikely(word_at(digits + (ndigits - 1) * sizeof(uint16)) == 0))
		ndigits--;
	if (ndigits > 0)
		head = head_of(weight);
	else
		negative = false;

	end = Min(skip + wanted, head.n + ndigits * sizeof(uint16));
	for (; i < end && i < (Size) head.n; i++)
		out[i - skip] = negative ? i == 0 ? NEGATIVE(head.bytes[0]) : 0xFF ^ head.bytes[i] : head.bytes[i];
	while (i < end)
	{
		Size		d = (i - head.n) / sizeof(uint16);
		uint16		digit = (uint16) (word_at(digits + d * sizeof(uint16)) * 2 + (d + 1 < ndigits));

		if (negative)
			digit = ~digit;
		if ((i - head.n) % sizeof(uint16) == 0)
			out[i++ - skip] = digit >> 8;
		if (i < end)
			out[i++ - skip] = (uint8) digit;
	}
	return head.n + ndigits * sizeof(uint16);
}

/*
 * Where the key bytes of a numeric that begin at `pos`, of n bytes that are XORed with `invert`, end: n + 1 if
 * that is behind them.
 */
int
ws_numeric_end(const uint8 *bytes, int n, int pos, uint8 invert)
{
	uint8		class;
	uint8		last;			/* of a digit that none follows, its last bit */

	if (pos >= n)
		return n + 1;
	class = bytes[pos++] ^ invert;
	if (class == CLASS_MINUS || class == CLASS_ZERO || class >= CLASS_PLUS)
		return pos;
	last = (class < CLASS_ZERO) ^ (invert & 1);
	if (class < CLASS_ZERO)
		class = NEGATIVE(class);
	if (class == CLASS_FIRST || class == CLASS_LAST)
		pos += 2;
	for (; pos + 2 <= n; pos += 2)
		if ((bytes[pos + 1] & 1) == last)
			return pos + 2;
	return n + 1;
}
