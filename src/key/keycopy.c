/*-------------------------------------------------------------------------
 * keycopy.c - copies of key values, of which a helper makes keys.
 *
 * What a helper may do is to read memory and to compute.  So it can make keys of values that are all
 * there: not of toasted ones, nor where a comparator, the system's strxfrm or lower case is asked for, nor
 * of what raises an error.  A copy is
 *
 *	a bit for each column, which says whether it is null; then, for each, its value, or where in the copy
 *	that begins; then these values.
 *
 * Copies of the same values are the same bytes.  Pure.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

typedef struct Copy
{
	uint64		nulls;			/* as wide as a value: nothing is left between them */
	Datum		value[FLEXIBLE_ARRAY_MEMBER];
} Copy;

#define MOST_COLUMNS	64

static inline Size
head_bytes(const WsKeySpec *spec)
{
	return offsetof(Copy, value) + spec->ncols * sizeof(Datum);
}

/* Can a helper make keys of copies, and are keys dear enough for that: the letters of a text? */
bool
ws_keycopy_wanted(const WsKeySpec *spec)
{
	for (int i = 0; i < spec->ncols; i++)
	{
		const WsKeyColumn *col = &spec->cols[i];

		if (ws_encoding_partial(col->encoding) || col->dictionary != NULL || col->lowered)
			return false;
	}
	return spec->cols[0].letters != NULL && spec->ranges == NULL && spec->ncols <= MOST_COLUMNS;
}

/* Bytes of a value, that is not null, in a copy of its own; 0 if that cannot be made. */
static inline Size
copied_bytes(const WsKeyColumn *col, Datum value)
{
	const struct varlena *v = (const struct varlena *) DatumGetPointer(value);

	if (col->length > 0)
		return col->length;
	if (col->length != -1 || VARATT_IS_EXTERNAL(v) || VARATT_IS_COMPRESSED(v))
		return 0;
	return VARSIZE_ANY(v);
}

/* Bytes of a copy of a row's values; 0 if a key has to be made of them as they are: it may raise an error. */
Size
ws_keycopy_bytes(const WsKeySpec *spec, const Datum *values, const bool *isnull)
{
	Size		bytes = head_bytes(spec);

	for (int i = 0; i < spec->ncols; i++)
	{
		const WsKeyColumn *col = &spec->cols[i];
		int			att = col->attno - 1;

		if (isnull[att] && col->notnull)
			return 0;
		if (!isnull[att] && !col->byval)
		{
			Size		n = copied_bytes(col, values[att]);

			if (n == 0)
				return 0;
			bytes += MAXALIGN(n);
		}
	}
	return bytes;
}

/* Do letters tell the texts of a row, of which a copy can be made?  Else keys are a guess. */
bool
ws_keycopy_tells(const WsKeySpec *spec, const Datum *values, const bool *isnull)
{
	for (int i = 0; i < spec->ncols; i++)
	{
		const WsKeyColumn *col = &spec->cols[i];
		int			att = col->attno - 1;

		if (col->letters != NULL && !isnull[att] &&
			ws_letters_of(col->letters->table, col, values[att]) == WS_LETTERS_STRANGE)
			return false;
	}
	return true;
}

/* Makes a copy of `bytes` bytes, as ws_keycopy_bytes has it, at `out`, which is aligned. */
void
ws_keycopy_put(const WsKeySpec *spec, const Datum *values, const bool *isnull, Size bytes, char *out)
{
	Copy	   *copy = (Copy *) out;
	Size		end = head_bytes(spec);

	copy->nulls = 0;
	for (int i = 0; i < spec->ncols; i++)
	{
		const WsKeyColumn *col = &spec->cols[i];
		int			att = col->attno - 1;

		copy->value[i] = 0;
		if (isnull[att])
			copy->nulls |= UINT64CONST(1) << i;
		else if (col->byval)
			copy->value[i] = values[att];
		else
		{
			const void *value = DatumGetPointer(values[att]);
			Size		n = col->length > 0 ? (Size) col->length : VARSIZE_ANY(value);

			/* the bytes of the last word first: copies are compared */
			*(uint64 *) (out + end + MAXALIGN(n) - sizeof(uint64)) = 0;
			memcpy(out + end, value, n);
			copy->value[i] = end;
			end += MAXALIGN(n);
		}
	}
	Assert(end == bytes);
}

/* Sets a row's key values from a copy, to which they belong, in `values` and `isnull`, by attno - 1. */
void
ws_keycopy_get(const WsKeySpec *spec, const char *from, Datum *values, bool *isnull)
{
	const Copy *copy = (const Copy *) from;

	for (int i = 0; i < spec->ncols; i++)
	{
		const WsKeyColumn *col = &spec->cols[i];
		int			att = col->attno - 1;

		isnull[att] = (copy->nulls >> i & 1) != 0;
		values[att] = col->byval || isnull[att] ? copy->value[i] : PointerGetDatum(from + copy->value[i]);
	}
}
