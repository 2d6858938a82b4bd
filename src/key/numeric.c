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
 * inverted, and a class one less than that.  So bytes are in the order of numeric_cmp, equal values have
 * equal bytes (1.0 and 1.00 differ in the display scale, which does not count), and no value's bytes begin
 * another's.  An amount of money below 100 million has seven bytes.  No value's begin with 0 or 255, so that
 * these can be a null's.
 *
 * The layout of stored values is not in PostgreSQL's headers, but it is on its disks, and the same since 9.1
 * (14 for infinities): src/backend/utils/adt/numeric.c describes it.
 *
 * Pure.
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

/* ---- stored values: a header of two bytes, perhaps the weight, and the digits ---- */
#define KIND_BITS		0xC000
#define KIND_NEGATIVE	0x4000	/* of long ones */
#define KIND_SPECIAL	0xC000
#define SPECIAL_BITS	0xF000
#define SPECIAL_PLUS	0xD000
#define SPECIAL_MINUS	0xF000
#define SHORT_BIT		0x8000	/* the weight is in the header */
#define SHORT_NEGATIVE	0x2000
#define SHORT_WEIGHT	0x007F	/* in two's complement */
#define SHORT_SIGN		0x0040	/* of the weight */

/* ---- classes; a negative value's are NEGATIVE of its opposite's ---- */
#define CLASS_MINUS		0x01	/* infinity */
#define CLASS_ZERO		0x7F
#define CLASS_FIRST		0x80	/* of positive values: below the least weight that has a class */
#define CLASS_LAST		0xFC
#define CLASS_PLUS		0xFD	/* infinity */
#define CLASS_NAN		0xFE
#define NEGATIVE(byte)	((uint8) (0xFE - (byte)))
#define MOST_WEIGHT		61		/* that has a class, and of negative weights the least */

/* What there is of a numeric: the bytes in front of its digits, and these. */
typedef struct Digits
{
	uint8		head[3];
	int			nhead;
	bool		negative;
	const uint8 *digits;
	Size		ndigits;
} Digits;

static inline uint16
word_at(const uint8 *bytes)
{
	uint16		word;

	memcpy(&word, bytes, sizeof(word)); /* not aligned behind a short header */
	return word;
}

/* What is special has no digits, but a class. */
static inline void
set_special(Digits *parts, uint16 header)
{
	header &= SPECIAL_BITS;
	parts->head[0] = header == SPECIAL_PLUS ? CLASS_PLUS : header == SPECIAL_MINUS ? CLASS_MINUS : CLASS_NAN;
}

static inline void
set_weight(Digits *parts, int weight)
{
	if (likely(abs(weight) <= MOST_WEIGHT))
		parts->head[0] = (uint8) (CLASS_FIRST + 1 + MOST_WEIGHT + weight);
	else
	{
		uint16		place = (uint16) (weight - PG_INT16_MIN);

		parts->head[0] = weight < 0 ? CLASS_FIRST : CLASS_LAST;
		parts->head[1] = place >> 8;
		parts->head[2] = (uint8) place;
		parts->nhead = 3;
	}
}

/* Of a numeric whose n bytes behind its varlena header are at `value`. */
static inline Digits
parts_of(const uint8 *value, Size n)
{
	uint16		header = word_at(value);
	Digits		parts = {.head = {CLASS_ZERO}, .nhead = 1, .digits = value + sizeof(header)};
	int			weight;

	if (likely((header & KIND_BITS) == SHORT_BIT))
	{
		parts.negative = (header & SHORT_NEGATIVE) != 0;
		weight = (header & SHORT_WEIGHT) - (header & SHORT_SIGN ? SHORT_WEIGHT + 1 : 0);
	}
	else if ((header & KIND_BITS) == KIND_SPECIAL)
	{
		set_special(&parts, header);
		return parts;
	}
	else
	{
		parts.negative = (header & KIND_BITS) == KIND_NEGATIVE;
		weight = (int16) word_at(parts.digits);
		parts.digits += sizeof(int16);
	}
	parts.ndigits = (value + n - parts.digits) / sizeof(uint16);
	/* core compares values without the zeros at their ends, which it does not store */
	for (; parts.ndigits > 0 && unlikely(word_at(parts.digits) == 0); parts.ndigits--, weight--)
		parts.digits += sizeof(uint16);
	while (parts.ndigits > 0 && unlikely(word_at(parts.digits + (parts.ndigits - 1) * sizeof(uint16)) == 0))
		parts.ndigits--;
	if (likely(parts.ndigits > 0))
		set_weight(&parts, weight);
	else
		parts.negative = false;
	return parts;
}

/* Digit number d, and whether another one follows. */
static inline uint16
digit_of(const Digits *parts, Size d)
{
	return (uint16) (word_at(parts->digits + d * sizeof(uint16)) * 2 + (d + 1 < parts->ndigits));
}

/* The first 16 key bytes of a value, from the highest one on, with zeros behind them. */
static inline ws_uint128
first_bits(const Digits *parts, bool descending)
{
	int			left = 128 - 8 * parts->nhead;
	ws_uint128	bits = (ws_uint128) parts->head[0] << 120;
	bool		invert = parts->negative != descending;

	if (unlikely(parts->nhead > 1))
		bits |= (ws_uint128) parts->head[1] << 112 | (ws_uint128) parts->head[2] << 104;
	for (Size d = 0; d < parts->ndigits && left > 0; d++, left -= 16)
	{
		ws_uint128	digit = digit_of(parts, d);

		bits |= left >= 16 ? digit << (left - 16) : digit >> (16 - left);
	}
	/* so that no class is inverted to 0 or 255 */
	if (parts->negative)
		bits += (ws_uint128) 1 << 120;
	return invert ? bits ^ (left > 0 ? ~(((ws_uint128) 1 << left) - 1) : ~(ws_uint128) 0) : bits;
}

/*
 * The first 16 key bytes of a numeric, whose n bytes behind its varlena header are at `value`, as an integer,
 * with zeros behind them.  Sets *all to how many there are in all.
 */
ws_uint128
ws_numeric_bits(const uint8 *value, Size n, bool descending, Size *all)
{
	Digits		parts = parts_of(value, n);

	*all = parts.nhead + parts.ndigits * sizeof(uint16);
	return first_bits(&parts, descending);
}

/*
 * Writes the key bytes skip .. skip + wanted - 1 of a numeric, each XORed with `invert`, to `out`, as far as
 * there are that many.  Returns how many there are in all.
 */
Size
ws_numeric_bytes(const uint8 *value, Size n, uint8 invert, Size skip, Size wanted, uint8 *out)
{
	Digits		parts = parts_of(value, n);
	Size		all = parts.nhead + parts.ndigits * sizeof(uint16);
	Size		end = Min(skip + wanted, all);
	ws_uint128	bits = first_bits(&parts, invert != 0);
	Size		i = skip;

	for (; i < end && i < sizeof(bits); i++)
		out[i - skip] = (uint8) (bits >> (120 - 8 * i));
	if (parts.negative)
		invert ^= 0xFF;
	for (; i < end; i++)
	{
		uint16		digit = digit_of(&parts, (i - parts.nhead) / sizeof(uint16));

		out[i - skip] = ((i - parts.nhead) % sizeof(uint16) == 0 ? digit >> 8 : (uint8) digit) ^ invert;
	}
	return all;
}

/*
 * Where the key bytes of a numeric that begin at `pos`, of n bytes that are XORed with `invert`, end: n + 1
 * if that is behind them.
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
