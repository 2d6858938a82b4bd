/*-------------------------------------------------------------------------
 * learntext.c - how the order of a column of text is told, or guessed, told from the first rows.
 *
 * Where letters tell the order of the first rows' texts, key bytes are made of them (letters.c).  The rest
 * is about the first column of a key whose values neither bytes nor codes tell.  If it is text of libc or
 * ICU, its key bytes may be
 *
 *  - nothing at all, if the columns before it tell most rows apart;
 *  - the places of its letters (alphabet.c), perhaps with codes of what many of them begin with: if that puts
 *	  the first rows into the right order;
 *  - else, for ICU, the beginning of its sort key, or if too many texts begin alike, that of the rest of it
 *	  (guess.c); for libc, what strxfrm makes of the rest.
 */
#include "key/learning.h"
#include "key/text.h"

#include "miscadmin.h"

/* Neighbours that are compared to find out whether a guess is right. */
#define COMPARED	4096

/* Rows for which it is worth to find out what letters of a collation tell: 5 ms with ICU, 1 ms with libc. */
#define LETTERS_LEAST_ICU	20000
#define LETTERS_LEAST_LIBC	4000

/* So many times as many where the columns before tell rows apart: letters only save memory for ties there. */
#define NEEDLESS_TIMES	16

/* What ICU's sort keys tell is certain: for a guess to be worth it, they must tie one in so many rows. */
#define MANY_ONE_IN	4

/*
 * Of guesses at what is made of texts, one in so many may be wrong where there is nothing else: mending that
 * takes little in a piece (ws_mend), but then the merge compares rows.
 */
#define PARTS_RIGHT	64

/* A column whose letters may tell its order, by the first rows. */
typedef struct Lettered
{
	const WsLetterTable *table; /* NULL: it is none */
	WsLettered	least;			/* what they tell of the text of which they tell least */
} Lettered;

/* So many values are few, whatever statistics say: the rows of a sort may have no others. */
#define LEAST_DOUBTFUL	64

/* Unless one in so many of the values has only come in the second half of the first rows: more will come. */
#define LATE_ONE_IN		3

/*
 * Is a column to do without its codes if it can, because the dictionary has no room for all of its values?
 * It takes comparisons to find the place of one that is not in it, and again when ties with that are settled.
 */
bool
ws_has_doubtful_codes(const WsLearning *l, int column)
{
	const WsDictionary *d = l->spec->cols[column].dictionary;
	int			values = d != NULL ? ws_dictionary_values(d) : 0;

	return values > 1 && !l->all && (values > LEAST_DOUBTFUL || l->late[column] * LATE_ONE_IN >= values) &&
		!ws_foretold_fit(l, column, values, ws_dictionary_most(d));
}

/* Finds what letters tell of the n columns that have a table.  One look at each row for all of them. */
static void
look_at_letters(const WsLearning *l, Lettered *of, int n)
{
	const WsKeySpec *spec = l->spec;
	WsKeySlot  *slot = l->rows->make_slot(l->rows->store);

	for (Size i = 0; i < l->n && n > 0; i++)
	{
		CHECK_FOR_INTERRUPTS();
		l->rows->fetch(l->rows->store, ws_entry_pointer(l->entries[i]), slot);
		for (int c = 0; c < spec->ncols; c++)
		{
			const WsKeyColumn *col = &spec->cols[c];
			WsLettered	found;

			if (of[c].table == NULL || of[c].least == WS_LETTERS_STRANGE || slot->isnull[col->attno - 1])
				continue;
			found = ws_letters_of(of[c].table, col, slot->values[col->attno - 1]);
			of[c].least = Max(of[c].least, found);
			n -= of[c].least == WS_LETTERS_STRANGE;
		}
	}
}

/*
 * The alphabet of a column's collation, whose table this is: that of a column before it, or a new one, in
 * CurrentMemoryContext.
 */
static WsAlphabet *
alphabet_of(const WsKeySpec *spec, int column, const WsLetterTable *table)
{
	for (int c = 0; c < column; c++)
		if (spec->cols[c].letters != NULL && spec->cols[c].letters->table == table)
			return spec->cols[c].alphabet;
	return ws_alphabet_of(spec->cols[column].transform);
}

/*
 * Has letters tell the order of columns of text where they do so in the first rows.  Codes tell that of
 * accented texts wholly, letters do not: so columns that have any come later, if they have no codes.  So do
 * columns that have few values, for all that statistics know: a code is found in less time.  Codes that
 * are doubtful are given up for letters.
 */
void
ws_learn_letters(const WsLearning *l, bool accented)
{
	WsKeySpec  *spec = l->spec;
	WsLettered	most = accented ? WS_LETTERS_ACCENTED : WS_LETTERS_PLAIN;
	Lettered   *of = palloc0(spec->ncols * sizeof(Lettered));
	int			n = 0;

	spec->guess = false;
	for (int c = 0; c < spec->ncols; c++)
	{
		const WsKeyColumn *col = &spec->cols[c];
		double		least = (col->icu != NULL ? LETTERS_LEAST_ICU : LETTERS_LEAST_LIBC) *
			(col->needless ? NEEDLESS_TIMES : 1);

		if (col->transform == NULL || col->letters != NULL ||
			(col->dictionary != NULL && !ws_has_doubtful_codes(l, c)) || (!accented && ws_foretold_few(l, c)))
			continue;
		of[c].table = ws_letter_table(col, Max(l->expected, (double) l->n) >= least);
		n += of[c].table != NULL;
	}
	look_at_letters(l, of, n);
	for (int c = 0; c < spec->ncols; c++)
	{
		WsKeyColumn *col = &spec->cols[c];

		if (of[c].table != NULL && of[c].least <= most)
		{
			MemoryContext work = MemoryContextSwitchTo(l->context);

			if (col->dictionary != NULL)
				ws_dictionary_free(col->dictionary);
			col->dictionary = NULL;
			col->alphabet = alphabet_of(spec, c, of[c].table);
			col->letters = palloc(sizeof(WsLetters));
			*col->letters = (WsLetters) {of[c].table, spec, false};
			col->encoding = WS_ENC_LETTERS;
			col->width = 0;
			spec->lettered = true;
			MemoryContextSwitchTo(work);
		}
		spec->guess |= col->encoding == WS_ENC_TRANSFORMED;
	}
	pfree(of);
}

/* The first column that neither bytes nor codes tell, or NULL. */
static WsKeyColumn *
untold_column(const WsKeySpec *spec)
{
	for (int c = 0; c < spec->ncols; c++)
		if (ws_encoding_partial(spec->cols[c].encoding) && spec->cols[c].dictionary == NULL)
			return &spec->cols[c];
	return NULL;
}

/*
 * Is there a guess behind other columns although these tell most rows apart?  There it costs more than it
 * gives.
 */
static bool
is_needless(const WsLearning *l)
{
	const WsEntry *sorted;
	WsTold		told;
	Size		distinct = 1;
	Size		first = 0;

	while (first < l->sampled && (told = ws_key_told(l->spec, l->sample[first])).what != WS_TOLD_GUESSED)
		first++;
	if (first == l->sampled || told.columns == 0)
		return false;
	sorted = ws_learn_sorted(l, told.bytes);
	for (Size i = 1; i < l->sampled; i++)
		distinct += !ws_entry_same_prefix(sorted[i - 1], sorted[i]);
	return distinct > l->sampled * WS_LEARN_DISTINCT;
}

/*
 * Are the first rows in the right order, as far as their prefixes guess it?  One in `allowed` that are looked
 * at need not be; 0: all must.
 */
static bool
guesses_rightly(const WsLearning *l, Size allowed)
{
	const WsEntry *sorted = ws_learn_sorted(l, WS_PREFIX_BYTES);
	WsKeySlot  *a = l->rows->make_slot(l->rows->store);
	WsKeySlot  *b = l->rows->make_slot(l->rows->store);
	Size		step = 1 + l->sampled / COMPARED;
	Size		wrong = 0;

	for (Size i = 1; i < l->sampled; i += step)
	{
		WsCertain	certain = ws_key_certain(l->spec, sorted[i]);

		CHECK_FOR_INTERRUPTS();
		if (!certain.guessed || !ws_same_certainly(&certain, sorted[i - 1]) ||
			ws_entry_same_prefix(sorted[i - 1], sorted[i]))
			continue;
		l->rows->fetch(l->rows->store, ws_entry_pointer(sorted[i - 1]), a);
		l->rows->fetch(l->rows->store, ws_entry_pointer(sorted[i]), b);
		if (ws_key_compare(l->spec, certain.columns, a->values, a->isnull, b->values, b->isnull) > 0)
			wrong++;
		if (wrong * allowed > l->sampled / step || (wrong > 0 && allowed == 0))
			return false;
	}
	return true;
}

/* Has a column guessed, in place of what its key bytes are now. */
static void
begin_guessing(const WsLearning *l, WsKeyColumn *col)
{
	col->encoding = WS_ENC_TRANSFORMED;
	col->width = 0;
	l->spec->guess = true;
	l->spec->first_alone = ws_first_alone(l->spec);
}

/* Takes that back. */
static void
end_guessing(const WsLearning *l, WsKeyColumn *col, const WsKeyColumn *before, bool guess)
{
	*col = *before;
	l->spec->guess = guess;
	l->spec->first_alone = ws_first_alone(l->spec);
	ws_learn_entries(l);
}

/*
 * Guesses by the places of letters if that is right, and leaves at most `most` of the rows tied.  Adds to
 * *bytes what codes of beginnings take.  Did it?
 */
static bool
learn_alphabet(const WsLearning *l, WsKeyColumn *col, Size most, Size *bytes)
{
	WsKeyColumn before = *col;
	bool		guess = l->spec->guess;
	MemoryContext work = MemoryContextSwitchTo(l->context);
	WsAlphabet *alphabet = ws_alphabet_of(col->transform);
	Size		taken;

	MemoryContextSwitchTo(work);
	if (alphabet == NULL)
		return false;
	begin_guessing(l, col);
	col->alphabet = alphabet;
	col->guess = NULL;
	ws_learn_entries(l);
	taken = ws_learn_beginnings(l);
	if (ws_learn_tied(l) <= most && guesses_rightly(l, 0))
	{
		*bytes += taken;
		return true;
	}
	if (l->spec->beginnings != NULL)
		ws_beginnings_free(l->spec->beginnings);
	l->spec->beginnings = NULL;
	pfree(alphabet);
	end_guessing(l, col, &before, guess);
	return false;
}

/*
 * Guesses by what values are made of, if that is right, and tells more rows apart than bits that are certain,
 * of which `tied` rows have those of others.
 */
static void
learn_parts(const WsLearning *l, WsKeyColumn *col, bool certain, Size tied)
{
	WsKeyColumn before = *col;
	bool		guess = l->spec->guess;

	if (certain)
	{
		begin_guessing(l, col);
		ws_learn_entries(l);
		if (ws_learn_tied(l) > tied / WS_LEARN_FEWER || !guesses_rightly(l, 0))
			end_guessing(l, col, &before, guess);
	}
	else if (!guesses_rightly(l, PARTS_RIGHT))
	{
		col->encoding = WS_ENC_NONE;
		ws_learn_entries(l);
	}
}

/*
 * Says how the first column that neither bytes nor codes tell is guessed, if it is text or made of it, and
 * makes entries anew.  Returns the bytes that codes of beginnings take.
 */
Size
ws_learn_text(const WsLearning *l)
{
	WsKeyColumn *col = untold_column(l->spec);
	bool		certain;		/* what its bytes tell */
	Size		bytes = 0;
	Size		tied;
	Size		few = l->sampled / WS_LEARN_ONE_IN;

	if (col == NULL || (col->transform == NULL && col->parts == NULL))
		return 0;
	certain = col->encoding != WS_ENC_TRANSFORMED;
	if (!certain && is_needless(l))
	{
		col->encoding = WS_ENC_NONE;
		ws_learn_entries(l);
		return 0;
	}
	tied = ws_learn_tied(l);
	if (certain && (tied < few || ws_learn_tied_apart(l) < l->sampled / MANY_ONE_IN))
		return 0;
	if (col->parts != NULL)
	{
		learn_parts(l, col, certain, tied);
		return 0;
	}
	if (l->sampled >= WS_LEARN_LEAST &&
		learn_alphabet(l, col, certain ? tied / WS_LEARN_FEWER : Max(tied, few), &bytes))
		return bytes;
	if (certain && col->guess != NULL)
	{
		WsKeyColumn before = *col;
		bool		guess = l->spec->guess;

		begin_guessing(l, col);
		ws_learn_entries(l);
		if (ws_learn_tied(l) > tied / WS_LEARN_FEWER)
			end_guessing(l, col, &before, guess);
	}
	return 0;
}
