/*-------------------------------------------------------------------------
 * alphabet.c - the letters of a collation as bytes: a guess at the order of text, without transforming it.
 *
 * Collations order texts by the weights of their letters on the first level, one after the other; case and
 * accents count only where these are the same.  strxfrm and ICU take 0.3 us for ten letters to find the
 * weights of a text out, and 3 us for eighty.  So the weights of the letters that Latin scripts are written
 * with are found out once, by transforming each letter alone, and numbered in their order: the *places* of
 * an alphabet.  Letters that differ by case or accent have the same place, some have two (ss for sharp s),
 * and those that do not count on the first level have none.  What a text is guessed by are the places of its
 * letters, which are bytes that beginnings can have codes for (beginnings.c).
 *
 * Another letter is transformed when it comes.  It may weigh as much as one of them, or nothing.  Else it
 * gets the place between those that it is between, of which there is one left everywhere.  It may be any of
 * several letters: what follows are the bytes that transforming makes of the text from it on, so that texts
 * in other scripts behind Latin ones are told apart (docs/decisions/53-letters.md).  The MOST_TRANSFORMED-th
 * such letter of a text ends the guess, because transforming takes long.
 *
 * It is a guess, because there are collations in which letters together have a weight of their own (ch in
 * Czech): learning looks whether it is right (learntext.c), and all of it is verified (index/ties.c).
 *
 * Only for databases of UTF-8.  Memory: 4 kB, in CurrentMemoryContext.  Nothing is raised.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

#include "mb/pg_wchar.h"

#define LETTERS		WS_LETTERS
#define MOST_PLACES	WS_LETTER_PLACES
#define WEIGHT		16			/* bytes of a letter's weights that are looked at */
#define MOST_WEIGHTS	127		/* whose places, and those between, are bytes above 0 */
#define MOST_TRANSFORMED	4	/* letters of a text */
#define REST		14			/* bytes that say what is behind a place between others */

/* What a letter weighs on the first level: bytes that are compared as memcmp does, zero beyond the end. */
typedef struct Weight
{
	uint8		bytes[WEIGHT];
} Weight;

struct WsAlphabet
{
	const WsTransform *transform;
	uint64		transformed;	/* letters, since it was made */
	int			weights;
	Weight		weight[MOST_WEIGHTS];	/* in order */
	uint8		places[LETTERS][MOST_PLACES];	/* 0: none */
};

/* Letters that weigh as much as two others, in some collations. */
static const struct
{
	uint16		letter;
	char		two[3];
}			doubles[] =
{
	{0xC6, "ae"}, {0xE6, "ae"}, {0xDF, "ss"}, {0x132, "ij"}, {0x133, "ij"}, {0x152, "oe"}, {0x153, "oe"}
};

static Weight
weight_of(const WsTransform *transform, const char *text, Size n)
{
	char		out[WS_TRANSFORMED];
	Size		length = ws_transform(transform, text, n, WEIGHT, out);
	const char *end = memchr(out, WS_LEVEL_END, Min(length, WEIGHT));
	Weight		weight = {{0}};

	memcpy(weight.bytes, out, end != NULL ? (Size) (end - out) : Min(length, WEIGHT));
	return weight;
}

/* The same of a code point below LETTERS, which takes one byte or two. */
static Weight
weight_of_letter(const WsTransform *transform, int letter)
{
	const char	one = (char) letter;
	const char	two[2] = {(char) (0xC0 | letter >> 6), (char) (0x80 | (letter & 0x3F))};

	return letter < 0x80 ? weight_of(transform, &one, 1) : weight_of(transform, two, 2);
}

/* Bytes of the letter of several bytes that a text begins with. */
static Size
letter_bytes(const char *text, Size n)
{
	Size		bytes = 1;

	while (bytes < n && (text[bytes] & 0xC0) == 0x80)
		bytes++;
	return bytes;
}

static int
compare_weights(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(Weight));
}

/* The place of a weight: even if it is known, else odd, which is the gap where it would be. */
static uint8
place_among(const WsAlphabet *alphabet, Weight weight)
{
	int			from = 0;
	int			to = alphabet->weights;

	while (from < to)
	{
		int			middle = (from + to) / 2;
		int			cmp = compare_weights(&weight, &alphabet->weight[middle]);

		if (cmp == 0)
			return (uint8) (2 * middle + 2);
		if (cmp < 0)
			to = middle;
		else
			from = middle + 1;
	}
	return (uint8) (2 * from + 1);
}

/* Numbers the weights of the letters.  False if there are too many different ones. */
static bool
number_weights(WsAlphabet *alphabet, const Weight *of)
{
	const Weight none = {{0}};
	Weight	   *sorted = palloc(LETTERS * sizeof(Weight));
	int			n = 0;

	memcpy(sorted, of, LETTERS * sizeof(Weight));
	qsort(sorted, LETTERS, sizeof(Weight), compare_weights);
	for (int i = 0; i < LETTERS && n <= MOST_WEIGHTS; i++)
	{
		if (compare_weights(&sorted[i], i == 0 ? &none : &sorted[i - 1]) == 0)
			continue;
		if (n < MOST_WEIGHTS)
			alphabet->weight[n] = sorted[i];
		n++;
	}
	pfree(sorted);
	alphabet->weights = n;
	return n <= MOST_WEIGHTS;
}

/* Gives a letter that weighs as much as two others their places. */
static void
place_doubles(WsAlphabet *alphabet, const Weight *of)
{
	for (int i = 0; i < (int) lengthof(doubles); i++)
	{
		Weight		both = weight_of(alphabet->transform, doubles[i].two, 2);

		if (compare_weights(&both, &of[doubles[i].letter]) != 0)
			continue;
		for (int j = 0; j < MOST_PLACES; j++)
			alphabet->places[doubles[i].letter][j] = alphabet->places[(uint8) doubles[i].two[j]][0];
	}
}

/*
 * The alphabet of a collation, in CurrentMemoryContext; NULL if the database is not of UTF-8, or if the
 * collation tells more letters apart than there are places.
 */
WsAlphabet *
ws_alphabet_create(const WsTransform *transform)
{
	const Weight none = {{0}};
	WsAlphabet *alphabet;
	Weight	   *of;
	bool		fits;

	if (GetDatabaseEncoding() != PG_UTF8)
		return NULL;
	alphabet = palloc0(sizeof(WsAlphabet));
	alphabet->transform = transform;
	of = palloc0(LETTERS * sizeof(Weight));
	for (int i = 1; i < LETTERS; i++)
		of[i] = weight_of_letter(transform, i);
	fits = number_weights(alphabet, of);
	for (int i = 1; i < LETTERS && fits; i++)
		if (compare_weights(&of[i], &none) != 0)
			alphabet->places[i][0] = place_among(alphabet, of[i]);
	if (fits)
		place_doubles(alphabet, of);
	pfree(of);
	if (fits)
		return alphabet;
	pfree(alphabet);
	return NULL;
}

/* The same alphabet once more, in CurrentMemoryContext.  It transforms by `transform`, which outlives it. */
WsAlphabet *
ws_alphabet_copy(const WsAlphabet *alphabet, const WsTransform *transform)
{
	WsAlphabet *copy = palloc(sizeof(WsAlphabet));

	memcpy(copy, alphabet, sizeof(WsAlphabet));
	copy->transform = transform;
	copy->transformed = 0;
	return copy;
}

/* How many different weights its letters have: places are at most one more than twice that. */
int
ws_alphabet_weights(const WsAlphabet *alphabet)
{
	return alphabet->weights;
}

/* How many letters it did not know, and had to have transformed. */
uint64
ws_alphabet_transformed(const WsAlphabet *alphabet)
{
	return alphabet->transformed;
}

/* The places of a letter below WS_LETTERS, zero where it has none. */
const uint8 *
ws_alphabet_letter(const WsAlphabet *alphabet, int letter)
{
	return alphabet->places[letter];
}

/*
 * Writes the places of one letter of several bytes to `out`, and returns how many these are.  Counts in
 * *transformed if it had to be transformed; MOST_TRANSFORMED there ends the guess.
 */
static Size
place_letter(WsAlphabet *alphabet, const char *text, Size n, uint8 out[MOST_PLACES], int *transformed)
{
	int			letter = n == 2 ? (text[0] & 0x1F) << 6 | (text[1] & 0x3F) : LETTERS;
	Weight		weight;

	if (letter < LETTERS)
	{
		memcpy(out, alphabet->places[letter], MOST_PLACES);
		return (out[0] != 0) + (out[1] != 0);
	}
	weight = weight_of(alphabet->transform, text, n);
	(*transformed)++;
	alphabet->transformed++;
	if (weight.bytes[0] == 0)
		return 0;
	out[0] = place_among(alphabet, weight);
	if (out[0] % 2 != 0)
		*transformed = MOST_TRANSFORMED;
	return 1;
}

/*
 * Writes the places of a text's letters to `out`, and behind one between those of others what transforming
 * makes of the text from there: `wanted` bytes at most.  Returns how many these are, of which *placed are
 * places.
 */
Size
ws_alphabet_places(WsAlphabet *alphabet, const char *text, Size n, Size wanted, uint8 *out, Size *placed)
{
	char		rest[WS_TRANSFORMED];
	const char *end;
	Size		length;
	Size		letter = 0;
	int			transformed = 0;

	*placed = 0;
	for (Size i = 0; i < n && *placed < wanted && transformed < MOST_TRANSFORMED;)
	{
		uint8		places[MOST_PLACES];
		Size		bytes;
		Size		found;

		if (!IS_HIGHBIT_SET(text[i]))
		{
			out[*placed] = alphabet->places[(uint8) text[i++]][0];
			*placed += out[*placed] != 0;
			continue;
		}
		letter = i;
		bytes = letter_bytes(text + i, n - i);
		found = place_letter(alphabet, text + i, bytes, places, &transformed);
		for (Size j = 0; j < found && *placed < wanted; j++)
			out[(*placed)++] = places[j];
		i += bytes;
	}
	if (*placed == 0 || *placed == wanted || out[*placed - 1] % 2 == 0)
		return *placed;
	/* always so many: less of a text may be transformed to others, where letters count together */
	length = ws_transform(alphabet->transform, text + letter, n - letter, REST, rest);
	length = Min(length, REST);
	/* what follows are weights of another level, which count after all places */
	end = memchr(rest, WS_LEVEL_END, length);
	if (end != NULL)
		length = end - rest;
	length = Min(length, wanted - *placed);
	memcpy(out + *placed, rest, length);
	return *placed + length;
}
