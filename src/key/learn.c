/*-------------------------------------------------------------------------
 * learn.c - which columns of a key have a dictionary, and what keys begin with, told from the first rows.
 *
 * Entries of the first rows have no prefix at first.  Then the values of all columns whose
 * order bytes do not tell are collected from the rows, and each column with few
 * values gets codes for them (dictionary.c).  A column with many values gets none, and ends the key.
 *
 * Columns whose values are long and hardly ever needed are set aside before (aside.c).
 *
 * If the prefixes that are made of such keys leave many rows tied, what keys begin with gets codes, too
 * (beginnings.c), or its first columns get codes from the range of their values (range.c): which of the two
 * sample.c decides.  How text is guessed is in learntext.c.
 *
 * Statistics of the planner are only asked where the first rows show few of the values, and how many there
 * are where they show many, or more and more (foretold.c): the rows of a sort are seldom those of a table,
 * and what its first rows do not show may be added later.
 *-------------------------------------------------------------------------
 */
#include "key/learning.h"
#include "key/text.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* Where it is plain after few rows that a column has too many values. */
#define FIRST_LOOK		2048
#define FIRST_SHARE		0.95

/*
 * Of the values of a column, those that come in the second half of the first rows at most; and so many may in
 * any case.  If more do, as where the table is in their order, the rows that follow will have others.
 */
#define LATE_SHARE		(1.0 / 3)
#define FEW_LATE		16

/* Bytes that texts must begin with alike, to be passed over in guesses. */
#define LEAST_COMMON	4

/* Rows that are shown to what wants to see some. */
#define SHOWN			64

/* One letter in so many values may be one that an alphabet does not know. */
#define UNKNOWN			8

/* Text of so many values loses its codes where there may be more than a dictionary has room for. */
#define MANY_VALUES		1024

/* Bytes of codes: the fewer, the more of the next columns is in the prefix; the more, the more values fit. */
#define SHORTEST		2
#define FEW_VALUES		64		/* that may do with two bytes */
#define SOME_VALUES		256		/* with three */
#define MOST_BYTES		4

/* Could something be learnt?  Where rows are dear to fetch, prefixes tell them anyway. */
bool
ws_key_can_learn(const WsKeySpec *spec, const WsKeyRows *rows)
{
	return !spec->exact && rows->keep == NULL;
}

int
ws_key_compared_column(const WsKeySpec *spec, const Datum *values, const bool *isnull)
{
	int			c = 0;

	for (; c < spec->ncols - 1; c++)
	{
		const WsKeyColumn *col = &spec->cols[c];

		if (isnull[col->attno - 1])
			continue;
		if (col->letters != NULL && !ws_letters_tell(col, values[col->attno - 1]))
			break;
		if (ws_encoding_partial(col->encoding) &&
			(col->dictionary == NULL ||
			 !ws_code_is_exact(ws_dictionary_code(col->dictionary, values[col->attno - 1]))))
			break;
	}
	return c;
}

/* Core compares no values of a column if those before it differ: comparing all that there are may fail. */
static bool
may_have_codes(const WsKeyColumn *col)
{
	return ws_encoding_partial(col->encoding) && !col->dissimilar && !col->aside && !col->needless;
}

/*
 * Has no column codes behind others that tell rows apart.  Their values are hardly ever compared, and finding
 * the place of one that is new takes comparisons: of citext behind an int4 that was unique, most of the sort
 * (docs/decisions/47-codes-of-few-values.md).  Only letters may tell something of them (aside.c).  More
 * columns tell no fewer rows apart, so that the first one that is needless is found by halving.
 */
static void
leave_needless(const WsLearning *l)
{
	WsKeySpec  *spec = l->spec;
	int		   *coded = palloc(spec->ncols * sizeof(int));	/* columns that may have codes */
	int			n = 0;
	int			from = 0;
	int			to;

	for (int c = 1; c < spec->ncols; c++)
		if (may_have_codes(&spec->cols[c]))
			coded[n++] = c;
	to = n;
	while (from < to)
	{
		int			middle = from + (to - from - 1) / 2;

		if (ws_learn_tell_apart(l, coded[middle]))
			to = middle;
		else
			from = middle + 1;
	}
	for (int c = to < n ? coded[to] : spec->ncols; c < spec->ncols; c++)
		spec->cols[c].needless = true;
}

static void
drop(WsKeyColumn *col)
{
	ws_dictionary_free(col->dictionary);
	col->dictionary = NULL;
}

/* Has it so many values in so many rows that codes do not pay? */
static bool
has_many(const WsDictionary *d, Size rows, double share)
{
	return ws_dictionary_values(d) > rows * share;
}

/*
 * Do so many of a column's values only come in the second half of the first rows that others will come, and
 * do statistics not say that there is room for all of these?
 */
static bool
come_late(const WsLearning *l, int column)
{
	const WsDictionary *d = l->spec->cols[column].dictionary;
	int			values = ws_dictionary_values(d);
	int			late = l->late[column];

	return late > FEW_LATE && late > values * LATE_SHARE &&
		!ws_foretold_to_fit(l, column, values, ws_dictionary_most(d));
}

/* Frees the alphabet of a column, which those behind it of the same collation may share. */
static void
forget_alphabet(WsKeySpec *spec, int column)
{
	WsAlphabet *alphabet = spec->cols[column].alphabet;

	if (alphabet == NULL)
		return;
	for (int c = column; c < spec->ncols; c++)
		if (spec->cols[c].alphabet == alphabet)
			spec->cols[c].alphabet = NULL;
	pfree(alphabet);
}

/* Frees all that has been learnt: no key is made or compared any more. */
void
ws_key_forget(WsKeySpec *spec)
{
	if (spec->beginnings != NULL)
		ws_beginnings_free(spec->beginnings);
	spec->beginnings = NULL;
	if (spec->ranges != NULL)
		pfree(spec->ranges);
	spec->ranges = NULL;
	if (spec->memo != NULL)
		pfree(spec->memo);
	spec->memo = NULL;
	for (int c = 0; c < spec->ncols; c++)
	{
		if (spec->cols[c].dictionary != NULL)
			drop(&spec->cols[c]);
		forget_alphabet(spec, c);
	}
}

/* What has been learnt of the keys. */
WsLearnt
ws_key_learnt(const WsKeySpec *spec)
{
	WsLearnt	learnt = {.beginnings = spec->beginnings != NULL ? ws_beginnings_count(spec->beginnings) : 0,
		.ranged = spec->ranges != NULL ? spec->ranges->ncols : 0};

	for (int c = 0; c < spec->ncols; c++)
	{
		learnt.coded += spec->cols[c].dictionary != NULL;
		learnt.lettered += spec->cols[c].letters != NULL && !spec->cols[c].letters->strange;
		learnt.guessed += spec->cols[c].letters != NULL ? spec->cols[c].letters->strange :
			spec->cols[c].encoding == WS_ENC_TRANSFORMED && spec->cols[c].dictionary == NULL &&
			(spec->cols[c].guess != NULL || spec->cols[c].alphabet != NULL || spec->cols[c].parts != NULL);
	}
	return learnt;
}

/* What a column's texts begin with, as far as another one tells. */
static void
find_beginning(WsKeyColumn *col, Datum value, WsGuess *found)
{
	if (col->guess == NULL)
	{
		ws_guess_begin(found, col, value);
		col->guess = found;
	}
	else if (col->guess->common > 0)
		ws_guess_add(col->guess, value);
}

/* Those that begin alike keep that, in the context; the others lose it. */
static void
keep_beginning(WsKeyColumn *col, MemoryContext context)
{
	const WsGuess *found = col->guess;

	if (found == NULL)
		return;
	col->guess = NULL;
	if (found->common < LEAST_COMMON)
		return;
	col->guess = MemoryContextAlloc(context, sizeof(WsGuess));
	*col->guess = *found;
	col->guess->beginning = MemoryContextAlloc(context, col->guess->common);
	memcpy(col->guess->beginning, found->beginning, col->guess->common);
}

/* Collects the values of all columns; those that have too many lose their dictionary. */
static void
collect(WsLearning *l)
{
	WsKeySpec  *spec = l->spec;
	const WsKeyRows *rows = l->rows;
	Size		n = l->n;
	WsGuess    *found = palloc(spec->ncols * sizeof(WsGuess));
	WsKeySlot  *slot = rows->make_slot(rows->store);
	Size	   *seen = palloc0(spec->ncols * sizeof(Size));
	int		   *early = palloc0(spec->ncols * sizeof(int));
	int			left = 1;

	for (Size i = 0; i < n && (left > 0 || i < FIRST_LOOK); i++)
	{
		CHECK_FOR_INTERRUPTS();
		rows->fetch(rows->store, ws_entry_pointer(l->entries[i]), slot);
		left = 0;
		for (int c = 0; c < spec->ncols; c++)
		{
			WsKeyColumn *col = &spec->cols[c];

			if (col->transform != NULL && col->letters == NULL && !slot->isnull[col->attno - 1])
				find_beginning(col, slot->values[col->attno - 1], &found[c]);
			if (col->dictionary == NULL)
				continue;
			left++;
			if (i == n / 2)
				early[c] = ws_dictionary_values(col->dictionary);
			if (slot->isnull[col->attno - 1])
				continue;
			seen[c]++;
			if (!ws_dictionary_learn(col->dictionary, slot->values[col->attno - 1]) ||
				(seen[c] == FIRST_LOOK && has_many(col->dictionary, FIRST_LOOK, FIRST_SHARE)))
				drop(col);
		}
	}
	l->late = palloc(spec->ncols * sizeof(int));
	for (int c = 0; c < spec->ncols; c++)
	{
		const WsDictionary *d = spec->cols[c].dictionary;

		l->late[c] = d != NULL ? ws_dictionary_values(d) - early[c] : 0;
		if (d != NULL && (seen[c] == 0 || has_many(d, seen[c], WS_LEARN_DISTINCT) || come_late(l, c)))
			drop(&spec->cols[c]);
	}
}

/* Drops codes of texts of which so many may not be in the dictionary that ICU or strxfrm takes less work. */
static void
drop_doubtful(const WsLearning *l)
{
	for (int c = 0; c < l->spec->ncols; c++)
	{
		WsKeyColumn *col = &l->spec->cols[c];

		if (col->dictionary != NULL && col->transform != NULL &&
			ws_dictionary_values(col->dictionary) > MANY_VALUES && ws_has_doubtful_codes(l, c))
			drop(col);
	}
}

/*
 * Has letters say where among the known values others are, if they say it rightly of the known ones, and know
 * nearly all letters of these: that is cheaper than transforming.
 */
static void
hint_by_letters(WsKeyColumn *col, MemoryContext context)
{
	MemoryContext work = MemoryContextSwitchTo(context);

	col->alphabet = col->transform != NULL ? ws_alphabet_of(col->transform) : NULL;
	MemoryContextSwitchTo(work);
	if (col->alphabet == NULL ||
		(ws_dictionary_hint_values(col->dictionary) &&
		 ws_alphabet_transformed(col->alphabet) * UNKNOWN <=
		 (uint64) ws_dictionary_values(col->dictionary)))
		return;
	pfree(col->alphabet);
	col->alphabet = NULL;
	(void) ws_dictionary_hint_values(col->dictionary);
}

/* Would the whole key fit the prefix with codes of so many bytes? */
static bool
fits(const WsKeySpec *spec, int code_bytes)
{
	int			bytes = 0;

	for (int c = 0; c < spec->ncols; c++)
	{
		const WsKeyColumn *col = &spec->cols[c];

		if (col->dictionary == NULL && (col->width == 0 || ws_encoding_partial(col->encoding)))
			return false;
		bytes += (col->dictionary != NULL ? code_bytes : col->width) + (col->notnull ? 0 : 1);
	}
	return bytes <= WS_PREFIX_BYTES;
}

/* Shows some of the first rows to columns that want to see values before keys are made of them. */
static void
show_first(const WsLearning *l)
{
	const WsKeySpec *spec = l->spec;
	WsKeySlot  *slot = l->rows->make_slot(l->rows->store);
	Size		step = Max(1, l->n / SHOWN);
	bool		wanted = false;

	for (int c = 0; c < spec->ncols; c++)
		wanted |= ws_nested_vote(spec->cols[c].abbreviate, NULL) || ws_nested_vote(spec->cols[c].parts, NULL);
	for (Size i = 0; wanted && i < l->n; i += step)
	{
		l->rows->fetch(l->rows->store, ws_entry_pointer(l->entries[i]), slot);
		for (int c = 0; c < spec->ncols; c++)
		{
			const WsKeyColumn *col = &spec->cols[c];

			if (slot->isnull[col->attno - 1])
				continue;
			(void) ws_nested_vote(col->abbreviate, &slot->values[col->attno - 1]);
			(void) ws_nested_vote(col->parts, &slot->values[col->attno - 1]);
		}
	}
}

/*
 * Gives columns a dictionary each, and what keys begin with codes, if the first rows of a sort say that it
 * pays; says how texts are told or guessed; and gives their entries prefixes.  All that is learnt belongs
 * to CurrentMemoryContext.  Returns the bytes that dictionaries and codes may come to take.
 */
Size
ws_key_learn(WsLearning *l)
{
	WsKeySpec  *spec = l->spec;
	MemoryContext context = CurrentMemoryContext;
	MemoryContext work = AllocSetContextCreate(context, "WiscSort learning", ALLOCSET_SMALL_SIZES);
	const WsKeyRows *rows = l->rows;
	bool		goes_on = true;
	Size		most = l->most;
	Size		bytes = 0;
	int			columns = 0;

	l->context = context;
	l->expected = l->all ? (double) l->n : l->expected;
	l->rows->ready(l->rows->store);
	MemoryContextSwitchTo(work);
	ws_learn_foretold(l);
	ws_learn_aside(l);
	show_first(l);
	leave_needless(l);
	ws_learn_letters(l, false);
	ws_learn_aside_needless(l);
	MemoryContextSwitchTo(context);
	for (int c = 0; c < spec->ncols; c++)
		columns += may_have_codes(&spec->cols[c]);
	for (int c = 0; c < spec->ncols; c++)
		if (may_have_codes(&spec->cols[c]))
			spec->cols[c].dictionary = ws_dictionary_create(&spec->cols[c], &spec->compare[c],
															most / columns);
	MemoryContextSwitchTo(work);
	if (columns > 0)
		collect(l);
	for (int c = 0; c < spec->ncols; c++)
		keep_beginning(&spec->cols[c], context);
	ws_learn_letters(l, true);
	drop_doubtful(l);
	for (int c = 0; c < spec->ncols; c++)
	{
		WsKeyColumn *col = &spec->cols[c];
		int			values;

		if (!ws_encoding_partial(col->encoding))
			continue;
		if (col->dictionary != NULL && !goes_on)
			drop(col);
		if (col->dictionary == NULL)
		{
			goes_on = false;
			continue;
		}
		values = ws_dictionary_values(col->dictionary);
		col->code_bytes = values <= SOME_VALUES ? SHORTEST + 1 : MOST_BYTES;
		if (values <= FEW_VALUES && !fits(spec, SHORTEST + 1) && fits(spec, SHORTEST))
			col->code_bytes = SHORTEST;
		ws_dictionary_number(col->dictionary, col->code_bytes);
		if (col->encoding == WS_ENC_TRANSFORMED)
			hint_by_letters(col, context);
		/* behind a column that has none, of which beginnings may tell more */
		bytes += spec->cols[0].dictionary == NULL ? ws_dictionary_share(col->dictionary) : most / columns;
	}
	l->most -= Min(l->most, bytes);
	spec->first_alone = ws_first_alone(spec);
	ws_learn_sample(l);
	if (!ws_learn_ranges(l))
	{
		ws_learn_entries(l);
		bytes += ws_learn_text(l);
		if (spec->beginnings == NULL)
			bytes += ws_learn_first_bytes(l);
	}
	l->rows = rows;
	MemoryContextSwitchTo(context);
	spec->memo = ws_memo_create(spec);
	MemoryContextSwitchTo(work);
	ws_learn_all_entries(l);
	MemoryContextSwitchTo(context);
	MemoryContextDelete(work);
	return bytes;
}
