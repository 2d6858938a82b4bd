/*-------------------------------------------------------------------------
 * prefix.c - the prefixes of rows, which entries are sorted by.
 *
 * A prefix is what a key begins with (normalize.c), or codes of it that the first rows of a sort have shown
 * (range.c, beginnings.c, dictionary.c).  The commonest keys are made without a loop over columns or bytes.
 *
 * Pure.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

#include "fmgr.h"
#include "key/fixed.h"

/* A value of a column of fixed width, as an integer in the order that is asked for. */
static inline ws_uint128
ordered_bits(const WsKeyColumn *col, Datum value)
{
	ws_uint128	v = fixed_bits(col, value);

	return col->descending ? v ^ ~(ws_uint128) 0 >> (128 - col->width * BITS_PER_BYTE) : v;
}

/* An exact key, left-justified in the 80 bits of a prefix. */
static inline ws_uint128
exact_prefix(const WsKeySpec *spec, const Datum *values, const bool *isnull)
{
	ws_uint128	prefix = 0;

	for (int i = 0; i < spec->ncols; i++)
	{
		const WsKeyColumn *col = &spec->cols[i];
		int			att = col->attno - 1;
		int			bits = col->width * 8;

		if (!col->notnull)
			prefix = (prefix << 8) | ws_null_byte(col, isnull[att]);
		prefix <<= bits;
		if (!isnull[att])
			prefix |= ordered_bits(col, values[att]);
		else if (unlikely(col->notnull))
			ws_unexpected_null();
	}
	return prefix << (8 * (WS_PREFIX_BYTES - spec->exact_bytes));
}

/*
 * The prefix if the first column, which is not null, decides all of it (ws_first_alone):
 * no loop over columns or bytes.
 */
static inline ws_uint128
first_prefix(const WsKeyColumn *col, Datum value)
{
	int			bits = col->width * 8;
	int			left = ws_first_bits(col);
	ws_uint128	prefix = ws_first_null(col, false);
	ws_uint128	v = ordered_bits(col, value);

	return prefix | (bits <= left ? v << (left - bits) : v >> (bits - left));
}

/* Notes whether a key of n bytes, or one for a comparator, goes on behind what its prefix tells; or may. */
static inline void
note_cut(WsKeySpec *spec, Size n, Size told)
{
	spec->cut |= n > told || spec->doubts > 0;
}

/* A window of key bytes as a prefix. */
static inline ws_uint128
window_prefix(const uint8 window[WS_PREFIX_BYTES])
{
	uint64		first;
	uint16		last;

	memcpy(&first, window, sizeof(first));
	memcpy(&last, window + sizeof(first), sizeof(last));
	return (ws_uint128) pg_ntoh64(first) << 16 | pg_ntoh16(last);
}

/* The entry of a window of key bytes. */
WsEntry
ws_key_window_entry(const uint8 window[WS_PREFIX_BYTES], uint64 pointer)
{
	return ws_entry_make(window_prefix(window), pointer);
}

/* A prefix of codes from ranges, and of the bytes of the columns that have none. */
static inline ws_uint128
ranged_prefix(WsKeySpec *spec, const Datum *values, const bool *isnull)
{
	const WsRanges *r = spec->ranges;
	ws_uint128	prefix = 0;
	int			left = WS_PREFIX_BYTES * BITS_PER_BYTE;
	uint8		window[WS_PREFIX_BYTES];

	for (int i = 0; i < r->ncols; i++)
	{
		const WsRange *range = &r->range[i];
		int			att = spec->cols[i].attno - 1;
		int			bits = range->escape;
		ws_uint128	code = range->null;

		if (!isnull[att])
			code = ws_range_code(range, fixed_bits(&spec->cols[i], values[att]), &bits);
		else if (unlikely(spec->cols[i].notnull))
			ws_unexpected_null();
		if (unlikely(bits > left))
		{
			spec->cut = true;
			return prefix << left | code >> (bits - left);
		}
		prefix = prefix << bits | code;
		left -= bits;
	}
	if (r->all)
		return prefix << left;
	if (left == 0)
	{
		spec->cut = true;
		return prefix;
	}
	note_cut(spec, ws_key_bytes_behind(spec, r->ncols, 0, values, isnull, WS_PREFIX_BYTES, window),
			 left / BITS_PER_BYTE);
	return prefix << left | window_prefix(window) >> (WS_PREFIX_BYTES * BITS_PER_BYTE - left);
}

/* The last `left` bits of a prefix, which are whole bytes: those of the columns from number `from` on. */
static inline ws_uint128
prefix_behind(WsKeySpec *spec, int from, int left, const Datum *values, const bool *isnull)
{
	Size		n = left / BITS_PER_BYTE;
	Size		before = WS_PREFIX_BYTES - n;
	uint8		window[WS_PREFIX_BYTES];

	note_cut(spec, ws_key_bytes_behind(spec, from, before, values, isnull, n, window), WS_PREFIX_BYTES);
	memset(window + n, 0, before);
	return window_prefix(window) >> (before * BITS_PER_BYTE);
}

/*
 * The prefix if the first column is a numeric, which is not null: its bytes, and as many of the columns
 * behind it as there is room for.
 */
static inline ws_uint128
numeric_prefix(WsKeySpec *spec, const Datum *values, const bool *isnull)
{
	const WsKeyColumn *col = &spec->cols[0];
	Datum		value = values[col->attno - 1];
	struct varlena *v = (struct varlena *) DatumGetPointer(value);
	ws_uint128	prefix;
	Size		n;

	if (unlikely(!VARATT_IS_SHORT(v) || VARATT_IS_EXTERNAL(v)))
		v = PG_DETOAST_DATUM_PACKED(value);
	prefix = ws_numeric_bits((const uint8 *) VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v), col->descending, &n) >>
		(128 - WS_PREFIX_BYTES * BITS_PER_BYTE);
	if (unlikely((Pointer) v != DatumGetPointer(value)))
		pfree(v);
	if (spec->ncols == 1 || n >= WS_PREFIX_BYTES)
	{
		note_cut(spec, n + spec->ncols - 1, WS_PREFIX_BYTES);
		return prefix;
	}
	return prefix | prefix_behind(spec, 1, (int) (WS_PREFIX_BYTES - n) * BITS_PER_BYTE, values, isnull);
}

/*
 * The prefix if the first column has codes from a dictionary: codes, and values of fixed width, then the
 * bytes of the columns behind them.
 */
static inline ws_uint128
coded_prefix(WsKeySpec *spec, const Datum *values, const bool *isnull)
{
	ws_uint128	prefix = 0;
	int			left = WS_PREFIX_BYTES * BITS_PER_BYTE;
	int			i;

	for (i = 0; i < spec->ncols; i++)
	{
		const WsKeyColumn *col = &spec->cols[i];
		int			att = col->attno - 1;
		int			bits = col->width * BITS_PER_BYTE;
		ws_uint128	before = prefix;	/* what is in front of the column, */
		int			room = left;	/* and the bits that it leaves */
		ws_uint128	v;

		if (col->dictionary == NULL && (bits == 0 || ws_encoding_partial(col->encoding)))
			return prefix << left | prefix_behind(spec, i, left, values, isnull);
		if (left == 0)
			break;
		if (!col->notnull)
		{
			prefix = prefix << BITS_PER_BYTE | ws_null_byte(col, isnull[att]);
			left -= BITS_PER_BYTE;
		}
		if (isnull[att])
		{
			if (unlikely(col->notnull))
				ws_unexpected_null();
			continue;
		}
		if (left == 0)
			break;
		if (col->dictionary != NULL)
		{
			v = ws_dictionary_code(col->dictionary, values[att]);
			bits = col->code_bytes * BITS_PER_BYTE;
			/* the columns before are not asked again: a value that comes again pays (dictionary.c) */
			if (unlikely(!ws_code_is_exact((uint32) v)))
				return before << room | prefix_behind(spec, i, room, values, isnull);
		}
		else
			v = ordered_bits(col, values[att]);
		if (bits > left)
		{
			spec->cut = true;
			return prefix << left | v >> (bits - left);
		}
		prefix = prefix << bits | v;
		left -= bits;
	}
	spec->cut |= i < spec->ncols;
	return prefix << left;
}

/* Looks at a row's texts, of the columns from number `from` on, whose letters are to tell their order. */
static inline void
look_from(const WsKeySpec *spec, int from, const Datum *values, const bool *isnull)
{
	for (int i = from; i < spec->ncols; i++)
	{
		const WsKeyColumn *col = &spec->cols[i];

		if (col->letters != NULL && !isnull[col->attno - 1])
			ws_letters_look(col, values[col->attno - 1]);
	}
}

/*
 * The first column whose bytes may not be asked for where a prefix is made: behind columns of fixed width
 * that leave it no room, or behind a column of any other kind.  Bytes of letters take a look at them.  Codes
 * from ranges may leave less room than bytes do: of values that are out of these.
 */
static inline int
first_unasked(const WsKeySpec *spec)
{
	Size		most = spec->beginnings != NULL ? ws_beginnings_reach(spec->beginnings) : WS_PREFIX_BYTES;
	Size		bytes = 0;

	if (spec->ranges != NULL)
		return 0;
	for (int i = 0; i < spec->ncols; i++)
	{
		const WsKeyColumn *col = &spec->cols[i];

		bytes += col->notnull ? 0 : 1;
		if (bytes >= most)
			return i;
		if (col->width == 0 || col->dictionary != NULL || ws_encoding_partial(col->encoding))
			return i + 1;
		bytes += col->width;
	}
	return spec->ncols;
}

/* Looks at the texts of all columns: for a row of which no key is made. */
void
ws_key_look(const WsKeySpec *spec, const Datum *values, const bool *isnull)
{
	look_from(spec, 0, values, isnull);
}

/* The first n bytes of a row's key, and how many there are, as ws_key_bytes_behind has it. */
static inline Size
row_bytes(const WsKeySpec *spec, const Datum *values, const bool *isnull, Size n, uint8 *out)
{
	if (spec->memo != NULL)
		return ws_memo_key_bytes(spec->memo, spec, values, isnull, n, out);
	return ws_key_bytes_behind(spec, 0, 0, values, isnull, n, out);
}

/*
 * Writes the first ws_beginnings_reach bytes of a row's key to `out`, zero beyond its end.  Returns how many
 * there are, more than that if it goes on.  Looks at letters as ws_key_entry does.
 */
Size
ws_key_reached(const WsKeySpec *spec, const Datum *values, const bool *isnull, uint8 *out)
{
	if (unlikely(spec->lettered))
		look_from(spec, first_unasked(spec), values, isnull);
	return row_bytes(spec, values, isnull, ws_beginnings_reach(spec->beginnings), out);
}

/*
 * The entry, without a pointer, of a key of n bytes of which these are the first, by what keys begin with.
 * Sets *cut if it goes on behind its prefix.  Of the specification nothing but the beginnings is read.
 */
WsEntry
ws_key_reached_entry(const WsKeySpec *spec, const uint8 *key, Size n, bool *cut)
{
	Size		told;
	ws_uint128	prefix = ws_beginnings_prefix(spec->beginnings, key, n, &told);

	*cut |= n > told;
	return ws_entry_make(prefix, 0);
}

static inline WsEntry
row_entry(WsKeySpec *spec, const Datum *values, const bool *isnull, uint64 pointer)
{
	uint8		window[WS_PREFIX_BYTES];

	/* texts whose bytes are not asked for are compared by their letters */
	if (unlikely(spec->lettered))
		look_from(spec, first_unasked(spec), values, isnull);
	if (spec->first_alone && likely(!isnull[spec->cols[0].attno - 1]))
		return ws_entry_make(first_prefix(&spec->cols[0], values[spec->cols[0].attno - 1]), pointer);
	if (spec->exact)
		return ws_entry_make(exact_prefix(spec, values, isnull), pointer);
	if (spec->ranges != NULL)
		return ws_entry_make(ranged_prefix(spec, values, isnull), pointer);
	if (spec->beginnings != NULL)
	{
		uint8		key[WS_BEGINNING + WS_MOST_BEHIND];
		Size		n = row_bytes(spec, values, isnull, ws_beginnings_reach(spec->beginnings), key);
		WsEntry		entry = ws_key_reached_entry(spec, key, n, &spec->cut);

		spec->cut |= spec->doubts > 0;
		entry.lo |= pointer;
		return entry;
	}
	if (spec->cols[0].dictionary != NULL)
		return ws_entry_make(coded_prefix(spec, values, isnull), pointer);
	if (spec->cols[0].encoding == WS_ENC_NUMERIC && likely(!isnull[spec->cols[0].attno - 1]))
		return ws_entry_make(numeric_prefix(spec, values, isnull), pointer);
	note_cut(spec, row_bytes(spec, values, isnull, WS_PREFIX_BYTES, window), WS_PREFIX_BYTES);
	return ws_key_window_entry(window, pointer);
}

/*
 * The entry of a row: its prefix, which is the first WS_PREFIX_BYTES bytes of its key, or a code of what
 * it begins with and what follows, or codes of its first columns; and `pointer`, which must fit 48 bits.
 * Sets spec->cut if that is not the whole key.
 */
WsEntry
ws_key_entry(WsKeySpec *spec, const Datum *values, const bool *isnull, uint64 pointer)
{
	WsEntry		entry = row_entry(spec, values, isnull, pointer);

	Assert(!ws_key_tells_all(spec) || ws_key_complete(spec, entry));
	return entry;
}
