/*-------------------------------------------------------------------------
 * told.c - what a prefix tells of its key, from its bytes alone.
 *
 * Rows with equal prefixes are equal if the prefix is the whole key.  Otherwise what tells them apart
 * is either more bytes of the key, or a value that only its comparator can order; then the bytes of
 * the prefix behind that value's beginning may be a guess (transform.c).  No row is looked at: keys
 * are prefix-free, column by column, so that equal bytes are of the same columns.
 *
 * Pure.
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#define PAST_PREFIX	(WS_PREFIX_BYTES + 1)

/*
 * Where the inet that begins at `pos` of a prefix ends, or PAST_PREFIX if the
 * prefix does not say.
 */
static int
inet_end(const uint8 *bytes, int pos, uint8 invert)
{
	uint8		family;

	if (pos >= WS_PREFIX_BYTES)
		return PAST_PREFIX;
	family = bytes[pos++] ^ invert;
	pos += ws_inet_address_bytes(family);
	if (pos >= WS_PREFIX_BYTES)
		return PAST_PREFIX;
	return pos + 1 + ws_inet_address_bytes(family) - ws_inet_network_bytes(family, bytes[pos] ^ invert);
}

/* The same for a text with two terminators; *second says which. */
static int
text_before_end(const uint8 *bytes, int pos, uint8 invert, bool *second)
{
	while (pos < WS_PREFIX_BYTES)
	{
		uint8		byte = bytes[pos++];

		*second = byte & 1;
		if ((byte ^ invert) < WS_LAST_ESCAPED)
			return pos;
		pos += (byte ^ invert) == WS_LAST_ESCAPED;
	}
	return PAST_PREFIX;
}

/* The same for a value that ends with a terminator. */
static int
terminated_end(WsEncoding encoding, const uint8 *bytes, int pos, uint8 invert)
{
	while (pos < WS_PREFIX_BYTES)
	{
		if (bytes[pos++] != invert)
			continue;
		if (encoding != WS_ENC_BYTEA && encoding != WS_ENC_BIT)
			return pos;
		/* the terminator, or a zero byte of the value? */
		if (pos < WS_PREFIX_BYTES && bytes[pos++] == invert)
			return encoding == WS_ENC_BIT ? pos + 1 : pos;
	}
	return PAST_PREFIX;
}

/*
 * A column whose order bytes do not tell, at `pos` of the prefix: its code, if it has a dictionary.
 * False if the key goes on behind it, at *pos, because the code is exact; else *told is set.
 */
static bool
ends_key(const WsKeyColumn *col, const uint8 *bytes, int *pos, WsTold *told)
{
	told->what = WS_TOLD_COMPARED;
	if (col->dictionary != NULL)
	{
		*pos += col->code_bytes;
		if (*pos > WS_PREFIX_BYTES)
		{
			told->what = WS_TOLD_IN_PART;
			return true;
		}
		if (ws_code_is_exact(bytes[*pos - 1]))
			return false;
	}
	told->bytes = *pos;
	if (col->encoding == WS_ENC_TRANSFORMED && *pos <= WS_LAST_GUESS)
		told->what = WS_TOLD_GUESSED;
	return true;
}

/* What the prefix of an entry tells of its key. */
WsTold
ws_key_told(const WsKeySpec *spec, WsEntry entry)
{
	ws_uint128	prefix = ws_entry_prefix(entry);
	uint8		bytes[WS_PREFIX_BYTES];
	int			pos = 0;
	bool		told_null = false;
	bool		second = false;
	WsTold		told = {WS_TOLD_ALL};

	if (spec->exact)
		return told;
	for (int i = WS_PREFIX_BYTES - 1; i >= 0; i--, prefix >>= 8)
		bytes[i] = (uint8) prefix;

	for (; told.columns < spec->ncols; told.columns++)
	{
		const WsKeyColumn *col = &spec->cols[told.columns];
		uint8		invert = col->descending ? 0xFF : 0;

		if (told_null)
		{
			told_null = false;
			if (second == !col->nulls_first)
				continue;
		}
		else if (!col->notnull)
		{
			if (pos >= WS_PREFIX_BYTES)
				break;
			if (bytes[pos++] == ws_null_byte(col, true))
				continue;
			if (col->null_apart)
				pos--;
		}
		if (ws_encoding_partial(col->encoding))
		{
			if (ends_key(col, bytes, &pos, &told))
				return told;
			continue;
		}
		if (col->width > 0)
			pos += col->width;
		else if (col->encoding == WS_ENC_INET)
			pos = inet_end(bytes, pos, invert);
		else if (col->tells_null)
		{
			pos = text_before_end(bytes, pos, invert, &second);
			told_null = true;
		}
		else
			pos = terminated_end(col->encoding, bytes, pos, invert);
		if (pos > WS_PREFIX_BYTES)
			break;
	}
	if (told.columns < spec->ncols)
		told.what = WS_TOLD_IN_PART;
	return told;
}
