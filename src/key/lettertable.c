/*-------------------------------------------------------------------------
 * lettertable.c - what the letters of a collation tell of the order of text (letters.c).
 *
 * The providers of collations say what each letter weighs on each level, and which count together with
 * others (icu.c, glibc.c).  Here it is found out whether the weights are such as letters.c relies on:
 *
 *	- No letters of ASCII count together, as ch does in Czech and aa in Danish.
 *	- Of two plain letters, the one with the greater place weighs more on the first level, and those with
 *	  the same place are a small letter and its capital, which weighs more on the third.  All plain letters
 *	  weigh the same on the second, and all that are no capitals on the third.
 *	- A letter that is ignored on these levels weighs less on the fourth than all that are not, and no two
 *	  of them weigh the same.
 *
 * If one of these is not so, letters of the collation tell nothing, and text is guessed (learntext.c).
 * Letters that are not plain make a text accented or strange, as letters.c says.
 *
 * To be asked once, which takes 5 ms with ICU and 1 ms with libc, and known as long as the backend lives:
 * 1.5 kB a collation, and 3 kB for its alphabet (alphabet.c), which is there for guesses as well, and takes
 * less time.  Nothing is raised.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

#include "utils/memutils.h"

#define FIRST_PLAIN		0x20
#define END_PLAIN		0x7F
#define ASCII			0x80

/* Places, with WS_SHIFT, and the gaps between them are bytes. */
#define MOST_NUMBERED	125

/* Levels. */
#define FIRST			0
#define ACCENTS			1
#define CASE			2
#define LAST			3

/* What is known of a collation. */
typedef struct Known
{
	char	   *name;
	bool		numbered;		/* its alphabet is known: */
	WsAlphabet *alphabet;		/* or NULL if it has none */
	bool		asked;			/* what its letters tell is known: */
	WsLetterTable *table;		/* or NULL if they do not */
	struct Known *next;
} Known;

static Known *known = NULL;

static int
compare_level(const WsLetterWeights *a, const WsLetterWeights *b, int level)
{
	int			cmp = memcmp(a->bytes[level], b->bytes[level], Min(a->n[level], b->n[level]));

	return cmp != 0 ? cmp : (int) a->n[level] - (int) b->n[level];
}

static inline uint8
place_of(const WsLetterTable *table, int letter)
{
	return table->places[letter][0];
}

/* Is it ignored on all levels but the last? */
static bool
is_ignored(const WsLetterWeights *w)
{
	return w->n[FIRST] == 0 && w->n[ACCENTS] == 0 && w->n[CASE] == 0 && w->n[LAST] > 0;
}

/* Are all plain letters that are not ignored told by their places and case?  Says which are capitals. */
static bool
places_tell(const WsLetterFacts *facts, WsLetterTable *table)
{
	const WsLetterWeights *small = &facts->letter['a'];

	for (int c = FIRST_PLAIN; c < END_PLAIN; c++)
	{
		const WsLetterWeights *w = &facts->letter[c];

		if (!w->known || w->joined || w->several)
			return false;
		if (is_ignored(w))
			continue;
		if (w->n[FIRST] == 0 || table->places[c][1] != 0 || compare_level(w, small, ACCENTS) != 0)
			return false;
		table->capital[c] = compare_level(w, small, CASE) > 0;
		if (!table->capital[c] && compare_level(w, small, CASE) != 0)
			return false;
		for (int d = FIRST_PLAIN; d < c; d++)
		{
			int			by_weight = compare_level(&facts->letter[d], w, FIRST);
			int			by_place = (int) place_of(table, d) - (int) place_of(table, c);

			if (is_ignored(&facts->letter[d]))
				continue;
			if ((by_weight > 0) != (by_place > 0) || (by_weight < 0) != (by_place < 0))
				return false;
			if (by_place == 0 && table->capital[c] == table->capital[d])
				return false;
		}
	}
	return true;
}

/* Gives letters that only the last level counts their ranks there.  False if that does not tell them. */
static bool
rank_ignored(const WsLetterFacts *facts, WsLetterTable *table)
{
	for (int c = FIRST_PLAIN; c < END_PLAIN; c++)
	{
		const WsLetterWeights *w = &facts->letter[c];
		int			rank = 1;

		if (!is_ignored(w))
			continue;
		if (place_of(table, c) != 0)
			return false;
		for (int d = FIRST_PLAIN; d < END_PLAIN; d++)
		{
			const WsLetterWeights *other = &facts->letter[d];
			int			cmp = compare_level(other, w, LAST);
			Size		least = Min(other->n[LAST], w->n[LAST]);

			if (d == c)
				continue;
			/* no weight may be the beginning of another one */
			if (memcmp(other->bytes[LAST], w->bytes[LAST], least) == 0 || (!is_ignored(other) && cmp < 0))
				return false;
			rank += is_ignored(other) && cmp < 0;
		}
		table->ignored[c] = (uint8) rank;
		table->ignores = true;
	}
	return true;
}

/* A small plain letter at a place, or 0. */
static char
plain_at(const WsLetterTable *table, uint8 place)
{
	for (int c = FIRST_PLAIN; c < END_PLAIN; c++)
		if (place_of(table, c) == place && !table->capital[c])
			return (char) c;
	return 0;
}

/* Has a letter, on the first level, a weight of its own, with a place that says so? */
static bool
weighs_alone(const WsLetterFacts *facts, const WsLetterTable *table, int letter)
{
	const WsLetterWeights *w = &facts->letter[letter];

	if (w->several || w->n[FIRST] == 0)
		return false;
	for (int c = FIRST_PLAIN; c < END_PLAIN; c++)
	{
		int			by_weight = compare_level(&facts->letter[c], w, FIRST);

		if (!is_ignored(&facts->letter[c]) &&
			(by_weight == 0 || (by_weight < 0) != (place_of(table, c) < place_of(table, letter))))
			return false;
	}
	return true;
}

/*
 * Does a letter that is not plain weigh as much as plain ones on the first level, and more on the second; or
 * is its weight on the first level its own?
 */
static bool
is_accented(const WsLetterFacts *facts, const WsLetterTable *table, int letter)
{
	const WsLetterWeights *w = &facts->letter[letter];
	const WsLetterWeights *plain = NULL;
	const uint8 *places = table->places[letter];
	char		first = plain_at(table, places[0]);

	if (!w->known || w->joined || w->backward || places[0] == 0)
		return false;
	if (places[1] == 0 && first == 0)
		return weighs_alone(facts, table, letter);
	if (places[1] == 0)
		plain = &facts->letter[(int) first];
	else
		for (int i = 0; i < WS_LETTER_PAIRS; i++)
			if (ws_letter_pair(i)[0] == first && ws_letter_pair(i)[1] == plain_at(table, places[1]))
				plain = &facts->pair[i];
	return plain != NULL && plain->known && compare_level(w, plain, FIRST) == 0 &&
		compare_level(w, plain, ACCENTS) > 0;
}

/* Are the places of two letters that make texts accented in the order of what they weigh? */
static bool
accented_differ(const WsLetterFacts *facts, const WsLetterTable *table)
{
	for (int a = ASCII; a < WS_LETTERS; a++)
		for (int b = ASCII; b < a; b++)
		{
			int			by_weight = compare_level(&facts->letter[b], &facts->letter[a], FIRST);
			int			by_place = (int) place_of(table, b) - (int) place_of(table, a);

			if (table->lettered[a] != WS_LETTERS_ACCENTED || table->lettered[b] != WS_LETTERS_ACCENTED ||
				table->places[a][1] != 0 || table->places[b][1] != 0)
				continue;
			if ((by_weight > 0) != (by_place > 0) || (by_weight < 0) != (by_place < 0))
				return false;
		}
	return true;
}

/* What is known of a collation, which may be nothing yet. */
static Known *
find_known(const WsTransform *transform)
{
	const char *name = ws_transform_name(transform);
	Known	   *k = known;

	while (k != NULL && strcmp(k->name, name) != 0)
		k = k->next;
	if (k == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

		k = palloc0(sizeof(Known));
		k->name = pstrdup(name);
		k->next = known;
		known = k;
		MemoryContextSwitchTo(old);
	}
	return k;
}

/* The alphabet of a collation, which stays as long as the backend; NULL if it has none. */
static const WsAlphabet *
known_alphabet(Known *k, const WsTransform *transform)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	if (!k->numbered)
		k->alphabet = ws_alphabet_create(transform);
	k->numbered = true;
	MemoryContextSwitchTo(old);
	return k->alphabet;
}

/*
 * The alphabet of the collation that a transformation is of, in CurrentMemoryContext; NULL if it has none.
 * What its letters weigh is found out once in a backend.
 */
WsAlphabet *
ws_alphabet_of(const WsTransform *transform)
{
	const WsAlphabet *alphabet = known_alphabet(find_known(transform), transform);

	return alphabet != NULL ? ws_alphabet_copy(alphabet, transform) : NULL;
}

/*
 * What letters tell that have the places of an alphabet, in CurrentMemoryContext; NULL if there is none, or
 * if those of plain texts do not tell all.
 */
static WsLetterTable *
make_table(const WsAlphabet *alphabet, const WsLetterFacts *facts)
{
	WsLetterTable *table;
	bool		tells;

	if (alphabet == NULL)
		return NULL;
	table = palloc0(sizeof(WsLetterTable));
	for (int i = 0; i < WS_LETTERS; i++)
	{
		const uint8 *places = ws_alphabet_letter(alphabet, i);

		for (int j = 0; j < WS_LETTER_PLACES && places[j] != 0; j++)
			table->places[i][j] = (uint8) (places[j] + WS_SHIFT);
		table->lettered[i] = WS_LETTERS_STRANGE;
	}
	tells = ws_alphabet_weights(alphabet) <= MOST_NUMBERED && places_tell(facts, table) &&
		rank_ignored(facts, table);
	for (int i = FIRST_PLAIN; i < END_PLAIN; i++)
		table->backward[i] = facts->letter[i].backward;
	for (int i = FIRST_PLAIN; i < END_PLAIN; i++)
		table->lettered[i] = WS_LETTERS_PLAIN;
	for (int i = ASCII; i < WS_LETTERS && tells; i++)
		if (is_accented(facts, table, i))
			table->lettered[i] = WS_LETTERS_ACCENTED;
	if (tells && accented_differ(facts, table))
		return table;
	pfree(table);
	return NULL;
}

/*
 * What the letters of a column's collation tell, which stays as long as the backend; NULL if they do not, or
 * if that is not known yet and is not to be found out.
 */
const WsLetterTable *
ws_letter_table(const WsKeyColumn *col, bool make)
{
	WsLetterFacts *facts;
	MemoryContext old;
	Known	   *k;

	if (col->transform == NULL)
		return NULL;
	k = find_known(col->transform);
	if (k->asked || !make)
		return k->table;
	facts = palloc0(sizeof(WsLetterFacts));
	old = MemoryContextSwitchTo(TopMemoryContext);
	if (ws_transform_facts(col->transform, facts))
		k->table = make_table(known_alphabet(k, col->transform), facts);
	k->asked = true;
	MemoryContextSwitchTo(old);
	pfree(facts);
	return k->table;
}
