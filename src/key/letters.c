/*-------------------------------------------------------------------------
 * letters.c - key bytes of text, letter by letter, that tell its order for certain.
 *
 * A sort key of ICU takes 0.25 us and more a text, strxfrm as much, and a prefix has room for eight bytes of
 * it.  But the collation algorithm (Unicode Technical Standard 10, and ISO 14651, which libc follows) can be
 * followed here for most texts: where no letters of a collation count together, the weights of a text on the
 * first level are those of its letters, one after the other, which alphabet.c numbers as *places*.  On the
 * second level are accents, on the third is case; on a fourth, libc counts what it has ignored before, which
 * are blanks and punctuation.  So
 *
 *	- a *plain* text, of printable ASCII, has nothing on the second level.  Its key bytes are the places of
 *	  its letters; an end; if there are capitals, a bit for each place; and if the collation ignores
 *	  letters, between which others they are.  They tell its order wholly: texts with the same bytes are
 *	  the same.
 *	- an *accented* text has letters of Latin-1 and Latin Extended-A, too, which have weights of their own
 *	  on the first level, or those of plain letters and more than these on the second.  Its key bytes are
 *	  its places, and an end that is above the others: plain texts with the same places come before it.
 *	  What tells it from other accented texts is left to the comparator.
 *	- every other text is *strange*: it has other letters, or such as count together with those before them,
 *	  or that differ from plain ones in what is case there.  As soon as one has come, the key bytes of the
 *	  column are but a guess for the rest of the sort: they have the same form, with the places that
 *	  alphabet.c finds, so that those that have been made stay good; and what has been sorted before is in
 *	  the right order.
 *
 * strcoll goes through some letters backward on the second level, and skips one of them (glibc.c).  On that
 * level all plain letters weigh the same: so the text of which more are skipped is less.  How many these are
 * stands in front of the cases, if there are any.
 *
 * Of the letters that are ignored, what decides is whether the first one that two texts have not in common
 * comes before a letter of the other, than which it weighs less; or else is behind all that the other has.
 * So they are written as the number of places in front of each, and which it is; then that there are no more,
 * which is above all numbers; or, if there are some behind the last place, above that, these.
 *
 * What the letters of a collation tell is in a table (lettertable.c).  Nothing is allocated or raised but by
 * detoasting, and by lowering.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"

#define FIRST_PLAIN		0x20
#define MOST_GUESSED	512		/* bytes of a strange text */

/* Of ignored letters: places in front of one, which are more if this is all; and what ends them. */
#define MORE_PLACES		100
#define NO_MORE			0x80
#define BEHIND_ALL		0x81
#define END_BEHIND		0

#define MOST_SKIPPED	200		/* in a byte */
#define MARKED			64		/* letters that are looked at together */

/* Where the first of eight bytes of a text, from number `from` on, is that is not printable ASCII; or 8. */
static inline Size
plain_end(const uint8 *text, Size from)
{
	const uint64 ones = ~UINT64CONST(0) / 0xFF;
	uint64		word;

	memcpy(&word, text, sizeof(word));
	word = pg_bswap64(pg_ntoh64(word)); /* the first byte lowest */
	/* below the first, DEL, or not ASCII: exact as long as none is */
	word = ((word - ones * FIRST_PLAIN) | (word + ones) | word) & (ones << 7) & (~UINT64CONST(0) << from * 8);
	return word == 0 ? sizeof(word) : (Size) pg_rightmost_one_pos64(word) / BITS_PER_BYTE;
}

/* What the letters of a text tell of its order. */
static WsLettered
letters_of(const WsLetterTable *table, const uint8 *text, Size n)
{
	WsLettered	result = WS_LETTERS_PLAIN;
	Size		bytes;
	int			letter;

	for (Size i = 0; i < n && result < WS_LETTERS_STRANGE; i += bytes)
	{
		Size		eight = Min(i, n - sizeof(uint64)); /* the last ones may begin before */

		bytes = n < sizeof(uint64) ? 0 : eight + plain_end(text + eight, i - eight) - i;
		if (bytes > 0)
			continue;
		letter = ws_letter_at(text + i, n - i, &bytes);
		result = Max(result, letter < WS_LETTERS ? (WsLettered) table->lettered[letter] : WS_LETTERS_STRANGE);
	}
	return result;
}

/* Notes what a text that has come makes of a column's bytes. */
static inline void
note(WsLetters *l, WsLettered lettered)
{
	if (likely(lettered != WS_LETTERS_STRANGE || l->strange))
		return;
	l->strange = l->spec->guess = true;
	l->spec->doubts++;
}

/* Where bytes of a key are put: those from `skip` on, up to `end`. */
typedef struct LetterBytes
{
	uint8	   *out;
	Size		skip;
	Size		end;
	Size		pos;
} LetterBytes;

static inline void
add_byte(LetterBytes *w, uint8 byte)
{
	if (w->pos >= w->skip && w->pos < w->end)
		w->out[w->pos - w->skip] = byte;
	w->pos++;
}

/* The same of several. */
static inline void
add_bytes(LetterBytes *w, const uint8 *bytes, Size n)
{
	Size		from = w->pos < w->skip ? w->skip - w->pos : 0;
	Size		to = w->pos < w->end ? Min(n, w->end - w->pos) : 0;

	if (from < to)
		memcpy(w->out + (w->pos + from - w->skip), bytes + from, to - from);
	w->pos += n;
}

/* What some letters of a plain text are: a bit for each of n, the first one lowest. */
typedef struct Marks
{
	Size		n;				/* up to MARKED */
	uint64		placed;
	uint64		capital;
	uint64		backward;
} Marks;

/* A plain text: with its marks, if they are of all letters. */
typedef struct Plain
{
	const WsLetterTable *table;
	const uint8 *text;
	Size		n;
	Size		places;			/* of its letters */
	Marks		marks;
} Plain;

/*
 * Writes the places of n letters to `places`, which has room for so many, and returns how many have one.
 * Marks them, if asked to.  Nothing depends on a branch: it cannot be foretold where words end.
 */
static inline Size
find_places(const WsLetterTable *table, const uint8 *text, Size n, uint8 *places, Marks *marks)
{
	Marks		m = {.n = n};
	Size		placed = 0;

	for (Size i = 0; i < n; i++)
	{
		uint8		place = table->places[text[i]][0];

		places[placed] = place;
		placed += place != 0;
		if (marks == NULL)
			continue;
		m.placed |= (uint64) (place != 0) << i;
		m.capital |= (uint64) table->capital[text[i]] << i;
		m.backward |= (uint64) table->backward[text[i]] << i;
	}
	if (marks != NULL)
		*marks = m;
	return placed;
}

/* The marks of its letters from number i on, a multiple of MARKED. */
static Marks
marks_of(const Plain *p, Size i)
{
	uint8		places[MARKED];
	Marks		marks = p->marks;

	if (marks.n < p->n)
		(void) find_places(p->table, p->text + i, Min(p->n - i, MARKED), places, &marks);
	return marks;
}

/* The places of a text of a collation that ignores some letters; and marks, if the text is short. */
static void
put_places(LetterBytes *w, Plain *p)
{
	uint8		places[MARKED];
	Size		n = Min(MARKED, w->end + 1);

	if (p->n <= n)
		add_bytes(w, places, find_places(p->table, p->text, p->n, places, &p->marks));
	else
		for (Size i = 0; i < p->n && w->pos <= w->end; i += n)
		{
			n = Min(Min(p->n - i, MARKED), Max(w->end - w->pos, BITS_PER_BYTE));
			add_bytes(w, places, find_places(p->table, p->text + i, n, places, NULL));
		}
}

/* Those of a collation that ignores no letters, of which each has one. */
static void
put_each(LetterBytes *w, const Plain *p)
{
	Size		end = Min(p->n, w->end);

	for (Size i = w->skip; i < end; i++)
		w->out[i - w->skip] = p->table->places[p->text[i]][0];
	w->pos = p->n;
}

static bool
has_capitals(const Plain *p)
{
	bool		capital = false;

	if (p->marks.n == p->n)
		return p->marks.capital != 0;
	for (Size i = 0; i < p->n && !capital; i++)
		capital = p->table->capital[p->text[i]];
	return capital;
}

/* A bit for each place, the highest of a byte first, which says whether it is that of a capital. */
static void
put_cases(LetterBytes *w, const Plain *p)
{
	Size		from = w->pos;
	Size		place = 0;

	for (Size i = 0; i < p->places && w->pos <= w->end; i += BITS_PER_BYTE)
		add_byte(w, 0);
	for (Size i = 0; i < p->n && from + place / BITS_PER_BYTE < w->end; i += MARKED)
	{
		Marks		m = marks_of(p, i);
		bool		more = i + m.n < p->n;

		for (Size j = 0; j < m.n && (more || m.capital >> j != 0); j++)
		{
			Size		pos = from + place / BITS_PER_BYTE;
			uint8		bit = 0x80 >> place % BITS_PER_BYTE;

			if ((m.capital >> j & 1) != 0 && pos >= w->skip && pos < w->end)
				w->out[pos - w->skip] |= bit;
			place += m.placed >> j & 1;
		}
	}
}

/* Where the ignored letters are. */
static void
put_ignored(LetterBytes *w, const Plain *p)
{
	Size		last = p->n;	/* behind the last letter that has a place */
	Size		from = 0;		/* behind the last ignored one */

	while (last > 0 && p->table->places[p->text[last - 1]][0] == 0)
		last--;
	for (Size i = 0; i < last && w->pos <= w->end; i += MARKED)
	{
		uint64		without = ~marks_of(p, i).placed;

		if (last - i < MARKED)
			without &= (UINT64CONST(1) << (last - i)) - 1;
		for (; without != 0 && w->pos <= w->end; without &= without - 1)
		{
			Size		letter = i + pg_rightmost_one_pos64(without);
			Size		places = letter - from;

			for (; places >= MORE_PLACES; places -= MORE_PLACES)
				add_byte(w, MORE_PLACES + 1);
			add_byte(w, (uint8) (places + 1));
			add_byte(w, p->table->ignored[p->text[letter]]);
			from = letter + 1;
		}
	}
	if (last == p->n)
	{
		add_byte(w, NO_MORE);
		return;
	}
	add_byte(w, BEHIND_ALL);
	for (Size i = last; i < p->n && w->pos <= w->end; i++)
		add_byte(w, p->table->ignored[p->text[i]]);
	add_byte(w, END_BEHIND);
}

/*
 * How many weights of the second level libc does not see: of several letters one behind the other for which
 * it goes backward, and behind which there is one for which it does not, the last but one.
 */
static Size
count_skipped(const Plain *p)
{
	Marks		before = {0};
	Size		skipped = 0;

	for (Size i = 0; i < p->n; i += MARKED)
	{
		Marks		m = marks_of(p, i);
		uint64		last = m.backward << 1 | before.backward >> (MARKED - 1);
		uint64		last_but_one = (m.backward & m.placed) << 2 |
			(before.backward & before.placed) >> (MARKED - 2);
		uint64		behind = ~m.backward & last & last_but_one;

		if (m.n < MARKED)
			behind &= (UINT64CONST(1) << m.n) - 1;
		for (; behind != 0; behind &= behind - 1)
			skipped++;
		before = m;
	}
	return skipped;
}

static void
put_skipped(LetterBytes *w, Size skipped)
{
	if (skipped == 0)
		return;
	add_byte(w, WS_END_SKIPS);
	for (; skipped >= MOST_SKIPPED; skipped -= MOST_SKIPPED)
		add_byte(w, PG_UINT8_MAX - MOST_SKIPPED);
	add_byte(w, (uint8) (PG_UINT8_MAX - skipped));
}

static void
put_plain(LetterBytes *w, const WsLetterTable *table, const uint8 *text, Size n)
{
	Plain		p = {.table = table, .text = text, .n = n};
	bool		capitals;

	if (table->ignores)
		put_places(w, &p);
	else
		put_each(w, &p);
	p.places = w->pos;
	if (w->pos >= w->end)
	{
		w->pos = w->end + 1;	/* there is more */
		return;
	}
	capitals = has_capitals(&p);
	if (table->ignores)
		put_skipped(w, count_skipped(&p));
	add_byte(w, capitals ? WS_END_CASES : WS_END_SMALL);
	if (capitals)
		put_cases(w, &p);
	if (p.places < n)
		put_ignored(w, &p);
	else if (table->ignores)
		add_byte(w, NO_MORE);
}

/* The places of an accented text, and its end. */
static void
put_accented(LetterBytes *w, const WsLetterTable *table, const uint8 *text, Size n)
{
	Size		bytes;

	for (Size i = 0; i < n && w->pos < w->end; i += bytes)
	{
		const uint8 *places = table->places[ws_letter_at(text + i, n - i, &bytes)];

		for (int j = 0; j < WS_LETTER_PLACES && places[j] != 0; j++)
			add_byte(w, places[j]);
	}
	add_byte(w, WS_END_COMPARED);
}

/* The same of a strange one, as far as they can be guessed. */
static void
put_strange(LetterBytes *w, WsAlphabet *alphabet, const char *text, Size n)
{
	uint8		places[MOST_GUESSED];
	Size		placed;
	Size		found = ws_alphabet_places(alphabet, text, n, Min(w->end, sizeof(places)), places, &placed);

	for (Size i = 0; i < placed; i++)
		add_byte(w, (uint8) (places[i] + WS_SHIFT));
	/* above all ends */
	for (Size i = placed; i < found; i++)
		add_byte(w, Max(places[i], WS_END_COMPARED + 1));
	add_byte(w, WS_END_COMPARED);
}

/*
 * Writes bytes skip .. skip + wanted - 1 of what a text's letters tell to `out`, as if for an ascending
 * column, and nothing behind their end.  Returns how many bytes there are, as far as they were followed: more
 * than skip + wanted if there are more.  Sets *plain if they tell it wholly, unless the column's bytes are a
 * guess.
 */
Size
ws_letters_bytes(const WsKeyColumn *col, Datum value, Size skip, Size wanted, uint8 *out, bool *plain)
{
	const WsLetterTable *table = col->letters->table;
	struct varlena *v = ws_text_of(col, value);
	const char *text = VARDATA_ANY(v);
	Size		n = ws_icu_length(col, text, VARSIZE_ANY_EXHDR(v));
	LetterBytes w = {out, skip, skip + wanted, 0};
	WsLettered	lettered = letters_of(table, (const uint8 *) text, n);

	note(col->letters, lettered);
	*plain = lettered == WS_LETTERS_PLAIN;
	if (likely(*plain))
		put_plain(&w, table, (const uint8 *) text, n);
	else if (lettered == WS_LETTERS_ACCENTED)
		put_accented(&w, table, (const uint8 *) text, n);
	else
		put_strange(&w, col->alphabet, text, n);
	if ((Pointer) v != DatumGetPointer(value))
		pfree(v);
	return w.pos;
}

/* Where the ignored letters that begin at `pos` of n bytes end, or behind them all. */
static Size
ignored_end(const uint8 *bytes, Size n, Size pos, uint8 invert)
{
	while (pos < n)
	{
		uint8		byte = bytes[pos++] ^ invert;

		if (byte == NO_MORE)
			return pos;
		if (byte == BEHIND_ALL)
			break;
		pos += byte <= MORE_PLACES; /* which it is */
	}
	while (pos < n)
		if ((bytes[pos++] ^ invert) == END_BEHIND)
			return pos;
	return n + 1;
}

/*
 * Where in n bytes of a key, inverted by `invert`, those of a text end that begin with its places: how many
 * they are, or n + 1 if they go on.  `ignores`: of a collation that ignores letters.  *compared says whether
 * only the comparator tells the rest.  Pure.
 */
Size
ws_letters_end(const uint8 *bytes, Size n, uint8 invert, bool ignores, bool *compared)
{
	Size		places = 0;
	Size		pos;
	uint8		end;

	*compared = false;
	while (places < n && (bytes[places] ^ invert) > WS_END_COMPARED)
		places++;
	pos = places;
	if (pos < n && (bytes[pos] ^ invert) == WS_END_SKIPS)
	{
		pos++;
		while (pos < n && (bytes[pos] ^ invert) == PG_UINT8_MAX - MOST_SKIPPED)
			pos++;
		pos++;
	}
	if (pos >= n)
		return n + 1;
	end = bytes[pos++] ^ invert;
	*compared = end == WS_END_COMPARED;
	if (end == WS_END_CASES)
		pos += (places + BITS_PER_BYTE - 1) / BITS_PER_BYTE;
	if (ignores && !*compared)
		pos = ignored_end(bytes, n, pos, invert);
	return Min(pos, n + 1);
}

/*
 * What the letters of a value of a column tell.  One that is toasted counts as strange: it is not fetched for
 * the sake of a look at it.
 */
WsLettered
ws_letters_of(const WsLetterTable *table, const WsKeyColumn *col, Datum value)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(value);
	WsLettered	lettered;

	if (VARATT_IS_EXTERNAL(v) || VARATT_IS_COMPRESSED(v))
		return WS_LETTERS_STRANGE;
	v = ws_text_of(col, value);
	lettered = letters_of(table, (const uint8 *) VARDATA_ANY(v),
						  ws_icu_length(col, VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v)));
	if ((Pointer) v != DatumGetPointer(value))
		pfree(v);
	return lettered;
}

/* Looks at a value whose bytes may not be asked for. */
void
ws_letters_look(const WsKeyColumn *col, Datum value)
{
	if (!col->letters->strange)
		note(col->letters, ws_letters_of(col->letters->table, col, value));
}

/* Do its bytes tell a value's order wholly? */
bool
ws_letters_tell(const WsKeyColumn *col, Datum value)
{
	return !col->letters->strange && ws_letters_of(col->letters->table, col, value) == WS_LETTERS_PLAIN;
}

/* The places of a text, one after the other. */
typedef struct Reading
{
	const uint8 *text;
	Size		n;
	Size		pos;
	uint8		second;			/* of the last letter, if that is still to come */
} Reading;

/* The next one, or 0 at the end. */
static inline uint8
next_place(const WsLetterTable *table, Reading *r)
{
	uint8		second = r->second;
	Size		bytes;

	r->second = 0;
	if (second != 0)
		return second;
	while (r->pos < r->n)
	{
		const uint8 *places = table->places[ws_letter_at(r->text + r->pos, r->n - r->pos, &bytes)];

		r->pos += bytes;
		if (places[0] == 0)
			continue;
		r->second = places[1];
		return places[0];
	}
	return 0;
}

/* Bytes that two texts begin with alike, in whole letters. */
static Size
alike(const Reading *a, const Reading *b)
{
	Size		n = Min(a->n, b->n);
	Size		i = 0;

	while (i + sizeof(uint64) <= n && memcmp(a->text + i, b->text + i, sizeof(uint64)) == 0)
		i += sizeof(uint64);
	while (i < n && a->text[i] == b->text[i])
		i++;
	while (i > 0 && ((i < a->n && (a->text[i] & 0xC0) == 0x80) || (i < b->n && (b->text[i] & 0xC0) == 0x80)))
		i--;
	return i;
}

/* ws_letters_compare for two texts that are in line, and lowered if need be. */
static bool
compare_in_line(const WsKeyColumn *col, const struct varlena *v, const struct varlena *w, int *cmp)
{
	Reading		a = {.text = (const uint8 *) VARDATA_ANY(v)};
	Reading		b = {.text = (const uint8 *) VARDATA_ANY(w)};
	uint8		place;
	uint8		other;

	a.n = ws_icu_length(col, VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v));
	b.n = ws_icu_length(col, VARDATA_ANY(w), VARSIZE_ANY_EXHDR(w));
	a.pos = b.pos = alike(&a, &b);
	*cmp = 0;
	if (a.pos == a.n && b.pos == b.n)
		return true;
	do
	{
		place = next_place(col->letters->table, &a);
		other = next_place(col->letters->table, &b);
	} while (place == other && place != 0);
	*cmp = (place > other) - (place < other);
	return *cmp != 0;
}

/*
 * Orders two values of a column of which no text that has come is strange, as an ascending one; sets *cmp.
 * False if they are not told by what they weigh on the first level, or are not in line.
 */
bool
ws_letters_compare(const WsKeyColumn *col, Datum x, Datum y, int *cmp)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(x);
	struct varlena *w = (struct varlena *) DatumGetPointer(y);
	bool		told;

	if (VARATT_IS_EXTERNAL(v) || VARATT_IS_COMPRESSED(v) || VARATT_IS_EXTERNAL(w) || VARATT_IS_COMPRESSED(w))
		return false;
	if (likely(!col->lowered))
		return compare_in_line(col, v, w, cmp);
	v = ws_lowered(x);
	w = ws_lowered(y);
	told = compare_in_line(col, v, w, cmp);
	pfree(v);
	pfree(w);
	return told;
}
