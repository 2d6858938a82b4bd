/*-------------------------------------------------------------------------
 * range.c - codes of values from the range that they have.
 *
 * A column of eight bytes with a null byte takes nine of the ten bytes of a prefix, though its values may
 * be from 0 to 7420: the next column is not in the prefix, and every row ties.  So the first columns of a
 * key that are of fixed width, up to WIDEST bytes, have codes of as many *bits* as the range of their values
 * takes, which the first rows of a sort say.  A prefix is these codes one behind the other, then the key's
 * bytes from the next column on.
 *
 * A code's first bits, up to ESCAPE_BITS, are its *mark*.  One mark is that of a null, the first or the
 * last one; one is that of values below the range, one of those above it, and behind these the value
 * follows with all its bits.  The other marks are those of values in the range, and behind them are the
 * bits that are left of a number that ascends with the value.  So codes are prefix-free and in the order of
 * the values, whatever comes later: no value is without a code of its own, and one outside the range only
 * takes more bits, about as many as its bytes and a null byte.  A prefix of whole codes of all columns is
 * the whole key; one that ends within a code is *cut*, and such rows may tie.  Until one has been cut, no two
 * rows tie if all columns have codes (ws_key_tells_all).
 *
 * Ranges are widened to both sides: by what rounding up to bits leaves; by the bits that all codes together
 * leave of a prefix, divided among them; or by one bit each if bytes follow.  A range that would come to hold
 * all values of its width holds them, with one mark for nulls, if there may be any.
 *
 * Pure.
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#define ESCAPE_BITS		6
#define WIDEST			12		/* a mark and a value behind it have room in 128 bits */
#define PREFIX_BITS		(WS_PREFIX_BYTES * BITS_PER_BYTE)

/* The first columns of a key that may have codes. */
int
ws_ranges_columns(const WsKeySpec *spec)
{
	int			n = 0;

	while (n < spec->ncols && spec->cols[n].width > 0 && spec->cols[n].width <= WIDEST &&
		   !ws_encoding_partial(spec->cols[n].encoding))
		n++;
	return n;
}

/* All bits of a column's values. */
static inline ws_uint128
all_bits(const WsKeyColumn *col)
{
	return ~(ws_uint128) 0 >> (128 - col->width * BITS_PER_BYTE);
}

/* Begins to learn the ranges of a key's first columns; NULL if these have none.  In CurrentMemoryContext. */
WsRanges *
ws_ranges_create(const WsKeySpec *spec)
{
	int			n = ws_ranges_columns(spec);
	WsRanges   *r;

	if (n == 0)
		return NULL;
	r = palloc(offsetof(WsRanges, range) + n * sizeof(WsRange));
	r->ncols = n;
	r->all = false;
	for (int i = 0; i < n; i++)
		r->range[i] = (WsRange) {.least = ~(ws_uint128) 0,
			.invert = spec->cols[i].descending ? all_bits(&spec->cols[i]) : 0,
			.whole = spec->cols[i].width * BITS_PER_BYTE};
	return r;
}

/* Learns from a row: until ws_ranges_number, a range is from the least value to that and `span`, if seen. */
void
ws_ranges_learn(WsRanges *r, const WsKeySpec *spec, const Datum *values, const bool *isnull)
{
	for (int i = 0; i < r->ncols; i++)
	{
		WsRange    *range = &r->range[i];
		int			att = spec->cols[i].attno - 1;
		ws_uint128	value;

		if (isnull[att])
			continue;
		value = ws_value_bits(&spec->cols[i], values[att]) ^ range->invert;
		if (!range->seen)
			range->least = value;
		range->seen = true;
		if (value < range->least)
		{
			range->span += range->least - value;
			range->least = value;
		}
		else
			range->span = Max(range->span, value - range->least);
	}
}

/* The number of values that codes of `bits` bits have room for, less one; false if for none. */
static bool
room_of(const WsKeyColumn *col, int bits, ws_uint128 *span)
{
	int			escape = Min(bits, ESCAPE_BITS);
	int			marks = (1 << escape) - (col->notnull ? 2 : 3);

	if (marks <= 0)
		return false;
	*span = ((ws_uint128) marks << (bits - escape)) - 1;
	return true;
}

/* Bits of the codes of all values of a column. */
static inline int
most_bits(const WsKeyColumn *col)
{
	return col->width * BITS_PER_BYTE + (col->notnull ? 0 : 1);
}

/* The fewest bits that the range of a column takes. */
static int
least_bits(const WsRange *range, const WsKeyColumn *col)
{
	ws_uint128	span;

	for (int bits = 1; bits < most_bits(col); bits++)
		if (room_of(col, bits, &span) && span >= range->span)
			return bits;
	return most_bits(col);
}

/* Has a column codes of range->bits bits. */
static void
number(WsRange *range, const WsKeyColumn *col)
{
	int			marks = 0;		/* before those of values */
	ws_uint128	span = 0;

	range->null = range->below = range->above = WS_NO_MARK;
	if (range->bits == most_bits(col))
	{
		range->escape = col->notnull ? 0 : 1;
		range->least = 0;
		range->span = all_bits(col);
		if (!col->notnull)
			range->null = col->nulls_first ? 0 : 1;
		range->first = (ws_uint128) (range->null == 0) << range->whole;
		return;
	}
	range->escape = Min(range->bits, ESCAPE_BITS);
	range->above = (1 << range->escape) - 1;
	if (!col->notnull)
		range->null = col->nulls_first ? marks++ : range->above--;
	range->below = marks++;
	range->first = (ws_uint128) marks << (range->bits - range->escape);
	(void) room_of(col, range->bits, &span);
	range->least -= Min(range->least, (span - range->span) / 2);
	range->least = Min(range->least, all_bits(col) - Min(span, all_bits(col)));
	range->span = span;
}

/* Ends learning: says how many bits codes have, and numbers them. */
void
ws_ranges_number(WsRanges *r, const WsKeySpec *spec)
{
	int			bits = 0;
	bool		widened = true;

	for (int i = 0; i < r->ncols; i++)
	{
		WsRange    *range = &r->range[i];

		if (!range->seen)
			range->least = all_bits(&spec->cols[i]) / 2;
		range->bits = least_bits(range, &spec->cols[i]);
		/* what begins behind a prefix is not in it */
		if (bits >= PREFIX_BITS)
			r->ncols = i;
		bits += range->bits;
	}
	r->all = r->ncols == spec->ncols;
	for (int turn = 0; widened && (r->all || turn == 0); turn++)
	{
		widened = false;
		for (int i = 0; i < r->ncols && bits < PREFIX_BITS; i++)
		{
			if (r->range[i].bits == most_bits(&spec->cols[i]))
				continue;
			r->range[i].bits++;
			bits++;
			widened = true;
		}
	}
	for (int i = 0; i < r->ncols; i++)
		number(&r->range[i], &spec->cols[i]);
	r->whole = r->all && bits <= PREFIX_BITS;
}

/*
 * What the codes of a prefix tell, in terms of the key's bytes: sets told->columns and told->reach, and *left
 * to the bits of the prefix that are behind the codes.  False if the prefix is cut.
 */
bool
ws_ranges_told(const WsKeySpec *spec, ws_uint128 prefix, WsTold *told, int *left)
{
	const WsRanges *r = spec->ranges;

	*left = PREFIX_BITS;
	told->reach = 0;
	for (told->columns = 0; told->columns < r->ncols; told->columns++)
	{
		const WsRange *range = &r->range[told->columns];
		const WsKeyColumn *col = &spec->cols[told->columns];
		int			bits = range->bits;
		int			mark;

		if (*left < range->escape)
			return false;
		mark = (int) (prefix >> (*left - range->escape)) & ((1 << range->escape) - 1);
		if (mark == range->null)
			bits = range->escape;
		else if (mark == range->below || mark == range->above)
			bits = range->escape + range->whole;
		if (bits > *left)
			return false;
		*left -= bits;
		told->reach += (col->notnull ? 0 : 1) + (mark == range->null ? 0 : col->width);
	}
	return true;
}
