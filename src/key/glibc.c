/*-------------------------------------------------------------------------
 * glibc.c - what letters weigh under a locale of the GNU C library, out of its own tables.
 *
 * strcoll follows four tables of a locale: for a byte that a letter begins with, either where the letter's
 * weights are, or where sequences of bytes are listed that begin so, with their weights; the weights, each
 * level's behind the other's, with its length in front; and for groups of letters ("rule sets"), in which
 * direction each level goes.  The library hands them out by nl_langinfo, and they have had this form since
 * version 2.1 (locale/weight.h, string/strcoll_l.c there).
 *
 * Where a level goes backward for some letters, strcoll puts off those that follow one another until it comes
 * to one for which it does not, or to the end.  In the first case it loses the last but one of them.  So in
 * en_US '48s' has two weights on the second level, and '4.8s', whose point is ignored and lost, three.
 *
 * That is trusted only as far as strcoll confirms it: pairs of texts are compared by both.  If it does not,
 * it may have been mended: then they are compared once more, as if nothing was lost.  A library older than
 * 2.28, which has other orders, or one that is no GNU C library, is not asked.
 *
 * Memory: none.  Nothing is raised.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

#include <ctype.h>
#include <langinfo.h>
#include <locale.h>
#include <string.h>

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 28)

#define ASCII			0x80
#define FIRST_PLAIN		0x20
#define END_PLAIN		0x7F

/* Directions of a level, which are bits. */
#define FORWARD			1
#define BACKWARD		2
#define POSITION		4

#define FIRST			0
#define ACCENTS			1
#define CASE			2
#define LAST			3

#define SEQUENCES		1000	/* of a list, at most */

/* Pairs of texts that are compared, and letters of each at most. */
#define PAIRS			2000
#define LONGEST			12

typedef struct Tables
{
	const uint8 *rules;
	const int32 *first;			/* by the first byte */
	const uint8 *weights;
	const uint8 *lists;
	const int32 *ranges;		/* for letters of a range in a list, where their weights are */
} Tables;

static bool
find_tables(locale_t locale, Tables *t)
{
	/* an item that is a number, which a pointer holds */
	uint32		levels = (uint32) (uintptr_t) nl_langinfo_l(_NL_COLLATE_NRULES, locale);

	t->rules = (const uint8 *) nl_langinfo_l(_NL_COLLATE_RULESETS, locale);
	t->first = (const int32 *) (const void *) nl_langinfo_l(_NL_COLLATE_TABLEMB, locale);
	t->weights = (const uint8 *) nl_langinfo_l(_NL_COLLATE_WEIGHTMB, locale);
	t->lists = (const uint8 *) nl_langinfo_l(_NL_COLLATE_EXTRAMB, locale);
	t->ranges = (const int32 *) (const void *) nl_langinfo_l(_NL_COLLATE_INDIRECTMB, locale);
	return levels == WS_LETTER_LEVELS && t->rules != NULL && t->first != NULL && t->weights != NULL &&
		t->lists != NULL && t->ranges != NULL;
}

/* Weights that stand where `index` says; not known if their levels go in directions that are not expected. */
static void
read_weights(const Tables *t, int32 index, WsLetterWeights *out)
{
	const uint8 *rules = t->rules + (index >> 24) * WS_LETTER_LEVELS;
	const uint8 *at = t->weights + (index & 0xFFFFFF);
	int			elements = 0;

	out->known = rules[FIRST] == FORWARD && rules[CASE] == FORWARD && (rules[LAST] & ~POSITION) == FORWARD &&
		(rules[ACCENTS] == FORWARD || rules[ACCENTS] == BACKWARD);
	out->backward = rules[ACCENTS] == BACKWARD;
	for (int level = 0; level < WS_LETTER_LEVELS; level++)
	{
		uint8		n = *at++;

		if (n > WS_LETTER_WEIGHT)
			out->known = false;
		else
		{
			out->n[level] = n;
			memcpy(out->bytes[level], at, n);
		}
		at += n;
	}
	/* each element is a number, coded as UTF-8 codes it */
	for (int i = 0; i < out->n[FIRST]; i++)
		elements += (out->bytes[FIRST][i] & 0xC0) != 0x80;
	out->several = elements > 1;
}

/* Notes letters that are in a sequence behind another one.  Are there any that are not ASCII? */
static bool
note_behind(const uint8 *letters, Size n, WsLetterFacts *facts)
{
	bool		others = false;
	Size		bytes;

	for (Size i = 0; i < n; i += bytes)
	{
		int			letter = ws_letter_at(letters + i, n - i, &bytes);

		others |= letter >= ASCII;
		if (letter >= ASCII && letter < WS_LETTERS)
			facts->letter[letter].joined = true;
	}
	return others;
}

/*
 * Goes through the list of what begins with a byte, which is a letter of ASCII or the first of two of another
 * one: what the letters weigh, and which of them are in sequences of several.
 */
static void
read_list(const Tables *t, int first, WsLetterFacts *facts)
{
	const uint8 *at = t->lists - t->first[first];
	int			own = first < ASCII ? 0 : 1;	/* bytes of the letter that follow the first */
	int			base = first < ASCII ? first : (first & 0x1F) << 6;

	for (int s = 0; s < SEQUENCES; s++)
	{
		int32		index;
		int			n = at[sizeof(index)];
		const uint8 *bytes = at + sizeof(index) + 1;
		int			length;
		int			letter = base + (own > 0 && n > 0 ? bytes[0] & 0x3F : 0);

		memcpy(&index, at, sizeof(index));
		length = index < 0 ? 2 * n : n; /* a range has two ends */
		if (n == own && index >= 0)
			read_weights(t, index, &facts->letter[letter]);
		else if (n == 1 && own == 1)
			for (int i = 0; i <= bytes[1] - bytes[0]; i++)
			{
				/* what has an entry of its own stands in front */
				if (letter + i < WS_LETTERS && !facts->letter[letter + i].known)
					read_weights(t, t->ranges[-index + i], &facts->letter[letter + i]);
			}
		else if (n > own && (index < 0 || own > 0 || !note_behind(bytes, n, facts)))
		{
			facts->letter[letter].joined = true;
			(void) note_behind(bytes + own, length - own, facts);
		}
		if (n == 0)
			return;
		/* the next one is aligned */
		at = bytes + length + (sizeof(int32) - (1 + length) % sizeof(int32)) % sizeof(int32);
	}
}

/* Two letters one after the other. */
static void
take_pair(const WsLetterFacts *facts, const char *letters, WsLetterWeights *out)
{
	const WsLetterWeights *a = &facts->letter[(uint8) letters[0]];
	const WsLetterWeights *b = &facts->letter[(uint8) letters[1]];

	out->known = a->known && b->known;
	for (int level = 0; level < WS_LETTER_LEVELS; level++)
	{
		if (a->n[level] + b->n[level] > WS_LETTER_WEIGHT)
			out->known = false;
		else
		{
			out->n[level] = a->n[level] + b->n[level];
			memcpy(out->bytes[level], a->bytes[level], a->n[level]);
			memcpy(out->bytes[level] + a->n[level], b->bytes[level], b->n[level]);
		}
	}
}

/* The weights of a text of ASCII on a level, of *n bytes. */
static void
weights_of(const WsLetterFacts *facts, int level, const char *text, uint8 *out, int *n)
{
	int			last = 0;		/* bytes of the last letter for which the level goes backward */
	int			last_but_one = 0;

	*n = 0;
	for (const char *c = text; *c != '\0'; c++)
	{
		const WsLetterWeights *w = &facts->letter[(uint8) *c];

		memcpy(out + *n, w->bytes[level], w->n[level]);
		*n += w->n[level];
		if (level != ACCENTS)
			continue;
		if (w->backward)
		{
			last_but_one = last;
			last = w->n[level];
			continue;
		}
		/* which of them is lost makes no difference: all weigh the same */
		*n -= last_but_one;
		last = last_but_one = 0;
	}
}

/* How the weights order two texts of ASCII. */
static int
compare_by_weights(const WsLetterFacts *facts, const char *a, const char *b)
{
	for (int level = 0; level < WS_LETTER_LEVELS; level++)
	{
		uint8		x[LONGEST * WS_LETTER_WEIGHT] = {0};
		uint8		y[LONGEST * WS_LETTER_WEIGHT] = {0};
		int			n;
		int			m;
		int			cmp;

		weights_of(facts, level, a, x, &n);
		weights_of(facts, level, b, y, &m);
		cmp = memcmp(x, y, Min(n, m));
		if (cmp != 0 || n != m)
			return cmp != 0 ? cmp : n - m;
	}
	return 0;
}

/* Makes up two texts that are alike, for there to be something to compare on each level. */
static void
make_up(uint32 *random, char a[LONGEST + 1], char b[LONGEST + 1])
{
	static const char likely[] = "aAbBzZ019 -.,'/_";
	int			n = 0;

	memset(a, 0, LONGEST + 1);
	memset(b, 0, LONGEST + 1);
	/* of the second text, each step adds two letters at most */
	for (int i = 0; i < LONGEST - 2 && n + 2 <= LONGEST; i++)
	{
		*random = *random * 1664525 + 1013904223;
		a[i] = likely[*random >> 8 & 15];
		if ((*random >> 16 & 3) == 0)
			a[i] = (char) (FIRST_PLAIN + (*random >> 18) % (END_PLAIN - FIRST_PLAIN));
		/* the same, or of the other case, or without it, or with one more */
		switch (*random >> 13 & 7)
		{
			case 0:
				continue;
			case 1:
				b[n++] = likely[*random >> 26 & 15];
				break;
			case 2:
				b[n++] = (char) (isalpha((unsigned char) a[i]) ? a[i] ^ 0x20 : a[i]);
				continue;
		}
		b[n++] = a[i];
	}
}

/* Does strcoll order pairs of texts, which are made up, as the weights do? */
static bool
is_confirmed(locale_t locale, const WsLetterFacts *facts)
{
	uint32		random = 1;

	for (int i = 0; i < PAIRS; i++)
	{
		char		a[LONGEST + 1];
		char		b[LONGEST + 1];
		int			cmp;
		int			wanted;

		make_up(&random, a, b);
		cmp = strcoll_l(a, b, locale);
		wanted = compare_by_weights(facts, a, b);
		if ((cmp < 0) != (wanted < 0) || (cmp > 0) != (wanted > 0))
			return false;
	}
	return true;
}

/* Sets what the letters of a locale weigh.  False if its tables cannot be relied on. */
bool
ws_glibc_facts(locale_t locale, WsLetterFacts *facts)
{
	Tables		t;

	if (!find_tables(locale, &t))
		return false;
	for (int c = FIRST_PLAIN; c < END_PLAIN; c++)
	{
		if (t.first[c] >= 0)
			read_weights(&t, t.first[c], &facts->letter[c]);
		else
			read_list(&t, c, facts);
	}
	for (int first = 0xC2; first <= (0xC0 | (WS_LETTERS - 1) >> 6); first++)
		if (t.first[first] < 0)
			read_list(&t, first, facts);
	for (int i = 0; i < WS_LETTER_PAIRS; i++)
		take_pair(facts, ws_letter_pair(i), &facts->pair[i]);
	for (int c = FIRST_PLAIN; c < END_PLAIN; c++)
		if (!facts->letter[c].known || facts->letter[c].joined)
			return false;
	if (is_confirmed(locale, facts))
		return true;
	for (int c = 0; c < ASCII; c++)
		facts->letter[c].backward = false;
	return is_confirmed(locale, facts);
}

#else							/* another library */

bool
ws_glibc_facts(locale_t locale, WsLetterFacts *facts)
{
	return false;
}
#endif
