/*-------------------------------------------------------------------------
 * told.c - what a prefix tells of its key, from its bytes alone.
 *
 * Rows with equal prefixes are equal if the prefix is the whole key.  Otherwise what tells them apart
 * is either more bytes of the key, or a value that only its comparator can order; then the bytes of
 * the prefix behind that value's beginning may be a guess (transform.c).  No row is looked at: keys
 * are prefix-free, column by column, so that equal bytes are of the same columns.  Codes from ranges
 * (range.c) are told first, and bytes are those of the columns behind them.
 *
 * Pure.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

/* The bytes of a key that a prefix tells. */
typedef struct Bytes
{
	uint8		at[WS_BEGINNING + WS_MOST_BEHIND];
	int			n;
} Bytes;

/*
 * Where the inet that begins at `pos` of a prefix's bytes ends, or behind them all if
 * they do not say.
 */
static int
inet_end(const Bytes *bytes, int pos, uint8 invert)
{
	uint8		family;

	if (pos >= bytes->n)
		return bytes->n + 1;
	family = bytes->at[pos++] ^ invert;
	pos += ws_inet_address_bytes(family);
	if (pos >= bytes->n)
		return bytes->n + 1;
	return pos + 1 + ws_inet_address_bytes(family) - ws_inet_network_bytes(family, bytes->at[pos] ^ invert);
}

/* The same for a text with two terminators; *second says which. */
static int
text_before_end(const Bytes *bytes, int pos, uint8 invert, bool *second)
{
	while (pos < bytes->n)
	{
		uint8		byte;

		if (pos + (int) sizeof(uint64) <= bytes->n && ws_none_escaped(&bytes->at[pos], invert))
		{
			pos += sizeof(uint64);
			continue;
		}
		byte = bytes->at[pos++];
		*second = byte & 1;
		if ((byte ^ invert) < WS_LAST_ESCAPED)
			return pos;
		pos += (byte ^ invert) == WS_LAST_ESCAPED;
	}
	return bytes->n + 1;
}

/* The same for a value that ends with a terminator. */
static int
terminated_end(WsEncoding encoding, const Bytes *bytes, int pos, uint8 invert)
{
	while (pos < bytes->n)
	{
		const uint8 *end = memchr(&bytes->at[pos], invert, bytes->n - pos);

		if (end == NULL)
			break;
		pos = (int) (end - bytes->at) + 1;
		if (encoding != WS_ENC_BYTEA && encoding != WS_ENC_BIT)
			return pos;
		/* the terminator, or a zero byte of the value? */
		if (pos < bytes->n && bytes->at[pos++] == invert)
			return encoding == WS_ENC_BIT ? pos + 1 : pos;
	}
	return bytes->n + 1;
}

/*
 * A column whose order bytes do not tell, at `pos` of the prefix: its code, if it has a dictionary.
 * False if the key goes on behind it, at *pos, because the code is exact; else *told is set.
 */
static bool
ends_key(const WsKeyColumn *col, const Bytes *bytes, int *pos, WsTold *told)
{
	if (col->dictionary != NULL)
	{
		*pos += col->code_bytes;
		if (*pos > bytes->n)
		{
			told->what = WS_TOLD_IN_PART;
			return true;
		}
		if (ws_code_is_exact(bytes->at[*pos - 1]))
			return false;
	}
	told->bytes = *pos;
	told->what = WS_TOLD_COMPARED;
	if (col->encoding == WS_ENC_TRANSFORMED && *pos <= WS_LAST_GUESS)
		told->what = WS_TOLD_GUESSED;
	return true;
}

/* What the prefix of an entry tells of its key. */
WsTold
ws_key_told(const WsKeySpec *spec, WsEntry entry)
{
	ws_uint128	prefix = ws_entry_prefix(entry);
	Bytes		bytes;
	int			pos = 0;
	bool		told_null = false;
	bool		second = false;
	bool		packed;
	Size		coded = 0;		/* bytes of the key that `bytes` begins behind */
	int			left = WS_PREFIX_BYTES * BITS_PER_BYTE;
	WsTold		told = {.what = WS_TOLD_ALL};

	if (spec->exact)
	{
		told.reach = WS_PREFIX_BYTES;
		return told;
	}
	packed = spec->beginnings != NULL && ws_beginnings_packed(spec->beginnings);
	if (packed)
	{
		if ((prefix & WS_PACKED_WHOLE) != 0 && spec->doubts == 0)
		{
			told.columns = spec->ncols;
			return told;
		}
	}
	/* a text has no zero byte: this one has ended, or is null */
	else if (ws_text_first(spec) && spec->ncols == 1 && !spec->cols[0].descending && (uint8) prefix == 0)
	{
		told.columns = 1;
		return told;
	}
	if (spec->ranges != NULL)
	{
		if (!ws_ranges_told(spec, prefix, &told, &left))
		{
			told.what = WS_TOLD_IN_PART;
			return told;
		}
		coded = told.reach;
		told.coded = WS_PREFIX_BYTES * BITS_PER_BYTE - left;
	}
	if (spec->beginnings != NULL)
		bytes.n = (int) ws_beginnings_expand(spec->beginnings, prefix, bytes.at);
	else
	{
		bytes.n = left / BITS_PER_BYTE;
		prefix >>= left % BITS_PER_BYTE;
		for (int i = bytes.n - 1; i >= 0; i--, prefix >>= 8)
			bytes.at[i] = (uint8) prefix;
	}
	told.reach = coded + bytes.n;

	for (; told.columns < spec->ncols; told.columns++)
	{
		const WsKeyColumn *col = &spec->cols[told.columns];
		uint8		invert = col->descending ? 0xFF : 0;
		bool		strange = col->letters != NULL && col->letters->strange;

		if (told_null)
		{
			told_null = false;
			if (second == !col->nulls_first)
				continue;
		}
		else if (!col->notnull)
		{
			/* a packed null byte that is not told might be once the guess is wiped out */
			if (pos >= bytes.n && (!strange || packed))
				break;
			if (pos < bytes.n && bytes.at[pos++] == ws_null_byte(col, true))
				continue;
			if (col->null_apart)
				pos--;
		}
		if (strange)
		{
			told.bytes = pos;
			told.what = WS_TOLD_GUESSED;
			return told;
		}
		if (ws_encoding_partial(col->encoding))
		{
			if (ends_key(col, &bytes, &pos, &told))
				return told;
			continue;
		}
		if (col->width > 0)
			pos += col->width;
		else if (col->encoding == WS_ENC_INET)
			pos = inet_end(&bytes, pos, invert);
		else if (col->encoding == WS_ENC_NUMERIC)
			pos = ws_numeric_end(bytes.at, bytes.n, pos, invert);
		else if (col->letters != NULL)
		{
			bool		compared;

			pos += (int) ws_letters_end(bytes.at + pos, bytes.n - pos, invert, col->letters->table->ignores,
										&compared);
			if (compared)
			{
				told.what = WS_TOLD_COMPARED;
				return told;
			}
		}
		else if (col->tells_null)
		{
			pos = text_before_end(&bytes, pos, invert, &second);
			told_null = true;
		}
		else
			pos = terminated_end(col->encoding, &bytes, pos, invert);
		if (pos > bytes.n)
			break;
	}
	if (told.columns < spec->ncols)
		told.what = WS_TOLD_IN_PART;
	return told;
}

/* May bytes behind the prefix be a guess, of a column from number `from` on whose letters were to tell it? */
static bool
guesses_behind(const WsKeySpec *spec, int from)
{
	for (int c = from; c < spec->ncols; c++)
		if (spec->cols[c].letters != NULL && spec->cols[c].letters->strange)
			return true;
	return false;
}

/*
 * What is certain of an entry's prefix.  Prefixes, whether they begin with a code or not, are in the order of
 * their keys, guesses included; so those that have the same bytes in front of a guess are neighbours.
 */
WsCertain
ws_key_certain(const WsKeySpec *spec, WsEntry entry)
{
	WsTold		told = ws_key_told(spec, entry);
	ws_uint128	prefix = ws_entry_prefix(entry);
	WsCertain	certain = {.guessed = told.what == WS_TOLD_GUESSED, .columns = told.columns, .from = prefix,
		.to = prefix};

	if (told.what == WS_TOLD_IN_PART && spec->guess && spec->lettered)
		certain.guessed = certain.behind = guesses_behind(spec, told.columns);
	if (!certain.guessed || certain.behind)
		return certain;
	if (spec->beginnings == NULL)
	{
		int			bits = WS_PREFIX_BYTES * BITS_PER_BYTE - told.coded - told.bytes * BITS_PER_BYTE;
		ws_uint128	guess = bits > 0 ? ((ws_uint128) 1 << bits) - 1 : 0;

		certain.from = prefix & ~guess;
		certain.to = prefix | guess;
		certain.behind = bits < BITS_PER_BYTE;
	}
	else
	{
		Bytes		bytes;
		Size		same;

		bytes.n = (int) ws_beginnings_expand(spec->beginnings, prefix, bytes.at);
		certain.behind = told.bytes >= bytes.n;
		memset(bytes.at + told.bytes, 0, sizeof(bytes.at) - told.bytes);
		certain.from = ws_beginnings_prefix(spec->beginnings, bytes.at, sizeof(bytes.at) + 1, &same);
		memset(bytes.at + told.bytes, 0xFF, sizeof(bytes.at) - told.bytes);
		certain.to = ws_beginnings_prefix(spec->beginnings, bytes.at, 0, &same);
	}
	return certain;
}
