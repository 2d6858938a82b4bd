/*-------------------------------------------------------------------------
 * guess.c - guesses at the order of a group of texts that begin alike.
 *
 * What strxfrm makes of the beginning of a text says nothing where all begin alike, as addresses of one
 * site or the paths of one directory do.  So what the texts of a group begin with, as far as a sample
 * of them tells, is passed over; and so is what all texts of a column begin with, as far as its first
 * values tell.  A text that begins otherwise is put in front of the others or behind them, as its bytes
 * say, the nearer the more of the beginning it has, and that is passed over: a guess as well.
 *
 * Memory: a copy of the beginning, in the caller's context.  Nothing is raised but by detoasting.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

/* Bytes that are kept of a beginning at most. */
#define MOST_COMMON		((Size) 255)

/* A text's place, in the first byte of the guess: in front of those that begin alike, among, or behind. */
#define IN_FRONT	0
#define ALIKE	1
#define BEHIND	2
#define MOST_MARKS	2			/* that byte, and one for how much of the beginning it has */

/* A text's bytes, as far as they count. */
static const char *
text_of(const WsKeyColumn *col, Datum value, Size *n)
{
	const char *text = VARDATA_ANY(DatumGetPointer(value));

	*n = VARSIZE_ANY_EXHDR(DatumGetPointer(value));
	if (col->padded)
		while (*n > 0 && text[*n - 1] == ' ')
			(*n)--;
	return text;
}

static inline Datum
detoast(const WsKeyColumn *col, Datum value)
{
	return PointerGetDatum(ws_text_of(col, value));
}

static inline void
free_detoasted(Datum value, Datum original)
{
	if (value != original)
		pfree(DatumGetPointer(value));
}

/* Of a column that descends. */
static void
invert(uint8 *bytes, Size n)
{
	for (Size i = 0; i < n; i++)
		bytes[i] ^= 0xFF;
}

/* Begins guessing at the order of a group of texts of a column, of which `value` is one. */
void
ws_guess_begin(WsGuess *guess, const WsKeyColumn *col, Datum value)
{
	Datum		text = detoast(col, value);
	Size		n;
	const char *bytes = text_of(col, text, &n);

	guess->col = col;
	guess->common = Min(n, MOST_COMMON);
	guess->beginning = palloc(guess->common + 1);
	memcpy(guess->beginning, bytes, guess->common);
	free_detoasted(text, value);
}

/* Bytes that a text and the beginning have in common, in whole characters (of UTF-8). */
static Size
common_bytes(const WsGuess *guess, const char *bytes, Size n)
{
	Size		i = 0;

	while (i < guess->common && i < n && bytes[i] == guess->beginning[i])
		i++;
	while (i > 0 && i < guess->common && (guess->beginning[i] & 0xC0) == 0x80)
		i--;
	return i;
}

/* Another one: all of them that are shown begin alike in guess->common bytes. */
void
ws_guess_add(WsGuess *guess, Datum value)
{
	Datum		text = detoast(guess->col, value);
	Size		n;
	const char *bytes = text_of(guess->col, text, &n);

	guess->common = common_bytes(guess, bytes, n);
	free_detoasted(text, value);
}

/* Writes `wanted` bytes of the guess at a text's place among the others to `out`, zero beyond its end. */
void
ws_guess_window(const WsGuess *guess, Datum value, Size wanted, uint8 *out)
{
	const WsKeyColumn *col = guess->col;
	Datum		text = detoast(col, value);
	Size		n;
	const char *bytes = text_of(col, text, &n);
	Size		known = 0;
	Size		written = 0;

	if (guess->common > 0 && wanted > MOST_MARKS)
	{
		known = common_bytes(guess, bytes, n);
		out[written++] = ALIKE;
		if (known < guess->common)
		{
			bool		above = known < n && (uint8) bytes[known] > (uint8) guess->beginning[known];

			out[0] = above ? BEHIND : IN_FRONT;
			out[written++] = (uint8) (above ? PG_UINT8_MAX - known : known);
		}
	}
	written += ws_guess_text(col, bytes + known, n - known, wanted - written, out + written);
	memset(out + written, 0, wanted - written);
	if (col->descending)
		invert(out, wanted);
	free_detoasted(text, value);
}

/*
 * The same for a value of a column, whose beginning counts if the column has one; or for one that is made of
 * parts (nested.c), of which there are WS_PREFIX_BYTES.
 */
void
ws_guess_of(const WsKeyColumn *col, Datum value, Size wanted, uint8 *out)
{
	WsGuess		none = {.col = col, .beginning = NULL, .common = 0};

	if (col->parts != NULL)
	{
		Assert(wanted <= WS_PREFIX_BYTES);
		ws_nested_guess(col->parts, value, wanted, out);
		if (col->descending)
			invert(out, wanted);
		return;
	}
	ws_guess_window(col->guess != NULL ? col->guess : &none, value, wanted, out);
}
