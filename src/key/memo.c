/*-------------------------------------------------------------------------
 * memo.c - key bytes that a row's first column has in common with the row before.
 *
 * Tables are often in the order of a text, or of what it belongs to: then many rows have the text of the row
 * before.  What letters or strxfrm tell of it takes much longer to find out than whether it is the same
 * (docs/decisions/47-codes-of-few-values.md).  Core's abbreviated keys have such a memo, too.  Where hardly
 * any row has it, it is given up.
 *
 * Memory: one chunk in the caller's context.  Nothing is raised but what making key bytes raises.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

#define MEMO_TEXT		512		/* bytes */
#define MEMO_BYTES		(WS_BEGINNING + WS_MOST_BEHIND)	/* of a key */

/* What a text that comes again is worth, in such as do not; of these, so many are borne at most. */
#define WORTH			8
#define MOST_PATIENCE	1024
#define FIRST_PATIENCE	256

struct WsMemo
{
	WsKeySpec	first;			/* of the first column alone */
	int			patience;
	Size		text_bytes;		/* of the value before, 0: there is none */
	Size		wanted;			/* of its key bytes, */
	Size		length;			/* and how many there are, as far as they were followed */
	char		text[MEMO_TEXT];
	uint8		bytes[MEMO_BYTES];
};

/*
 * A memo for the keys of spec, as they are made from now on, in CurrentMemoryContext; NULL if the bytes of
 * its first column are not dear.
 */
WsMemo *
ws_memo_create(const WsKeySpec *spec)
{
	const WsKeyColumn *col = &spec->cols[0];
	WsMemo	   *memo;

	if ((col->encoding != WS_ENC_LETTERS && col->encoding != WS_ENC_TRANSFORMED) ||
		col->dictionary != NULL || col->length != -1 || col->byval || spec->ranges != NULL)
		return NULL;
	memo = palloc(sizeof(WsMemo));
	memo->first = *spec;
	memo->first.ncols = 1;
	memo->patience = FIRST_PATIENCE;
	memo->text_bytes = 0;
	return memo;
}

/* Is it of use for a row's first value?  Not if it is stored elsewhere, nor behind a text that is strange. */
static bool
is_memorable(const WsMemo *memo, const WsKeyColumn *col, const struct varlena *v)
{
	return memo->patience > 0 && !VARATT_IS_EXTERNAL(v) && !VARATT_IS_COMPRESSED(v) &&
		VARSIZE_ANY(v) <= MEMO_TEXT && !(col->letters != NULL && col->letters->strange);
}

/*
 * What ws_key_bytes_behind(spec, 0, 0, ...) does, with a memo for that spec.  Bytes of a text that is not the
 * one before are made for the first column alone, then for those behind it.
 */
Size
ws_memo_key_bytes(WsMemo *memo, const WsKeySpec *spec, const Datum *values, const bool *isnull, Size n,
				  uint8 *out)
{
	const WsKeyColumn *col = &spec->cols[0];
	const struct varlena *v = (const struct varlena *) DatumGetPointer(values[col->attno - 1]);
	Size		length;

	Assert(n <= MEMO_BYTES);
	if (isnull[col->attno - 1] || !is_memorable(memo, col, v))
		return ws_key_bytes_behind(spec, 0, 0, values, isnull, n, out);
	if (memo->text_bytes == VARSIZE_ANY(v) && memo->wanted == n &&
		memcmp(memo->text, v, memo->text_bytes) == 0)
	{
		memcpy(out, memo->bytes, n);
		memo->patience = Min(memo->patience + WORTH, MOST_PATIENCE);
	}
	else
	{
		memo->patience--;
		memo->text_bytes = 0;
		memo->length = ws_key_bytes_behind(&memo->first, 0, 0, values, isnull, n, out);
		if (unlikely(!is_memorable(memo, col, v)))
			return ws_key_bytes_behind(spec, 0, 0, values, isnull, n, out);
		memo->text_bytes = VARSIZE_ANY(v);
		memo->wanted = n;
		memcpy(memo->text, v, memo->text_bytes);
		memcpy(memo->bytes, out, n);
	}
	length = memo->length;
	if (spec->ncols == 1 || length > n)
		return length;
	return ws_key_bytes_behind(spec, 1, length, values, isnull, n - length, out + length);
}
