/*-------------------------------------------------------------------------
 * learn.c - which columns of a key have a dictionary, and what keys begin with, told from the first rows.
 *
 * Entries of the first rows have no prefix at first.  Then the values of all columns whose
 * order bytes do not tell are collected from the rows, and each column with few
 * values gets codes for them (dictionary.c).  A column with many values gets none, and ends the key.
 *
 * If the prefixes that are made of such keys leave many rows tied, what keys begin with gets codes, too
 * (beginnings.c).
 *
 * Statistics of the planner are not asked: the rows of a sort are seldom those of a table, and what its
 * first rows do not show may be added later.
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* With more different values in so many rows, there are too many; and where that is plain after few rows. */
#define MOST_SHARE		0.75
#define FIRST_LOOK		2048
#define FIRST_SHARE		0.95

/* Bytes that texts must begin with alike, to be passed over in guesses. */
#define LEAST_COMMON	4

/* Bytes of codes: the fewer, the more of the next columns is in the prefix; the more, the more values fit. */
#define SHORTEST		2
#define FEW_VALUES		64		/* that may do with two bytes */
#define SOME_VALUES		256		/* with three */
#define MOST_BYTES		4

/* Rows among which there must be one that the prefix ties, and the fewest rows that say so. */
#define ONE_TIED_IN		64
#define LEAST_ROWS		1024
#define LEAST_BYTES		1024	/* for codes of beginnings */
#define MOST_OF_KEY		(WS_BEGINNING + sizeof(WsKeyBytes))
#define FIRST_KEYS		64		/* that tell how long the others are */
#define FEWER_TIES		2		/* that codes of beginnings must leave, by this factor */

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

		if (!isnull[col->attno - 1] && ws_encoding_partial(col->encoding) &&
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
	return ws_encoding_partial(col->encoding) && !col->dissimilar;
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

/* Frees all that has been learnt: no key is made or compared any more. */
void
ws_key_forget(WsKeySpec *spec)
{
	if (spec->beginnings != NULL)
		ws_beginnings_free(spec->beginnings);
	spec->beginnings = NULL;
	for (int c = 0; c < spec->ncols; c++)
		if (spec->cols[c].dictionary != NULL)
			drop(&spec->cols[c]);
}

/* What has been learnt of the keys. */
WsLearnt
ws_key_learnt(const WsKeySpec *spec)
{
	WsLearnt	learnt = {.beginnings = spec->beginnings != NULL ? ws_beginnings_count(spec->beginnings) : 0};

	for (int c = 0; c < spec->ncols; c++)
	{
		learnt.coded += spec->cols[c].dictionary != NULL;
		learnt.guessed += spec->cols[c].encoding == WS_ENC_TRANSFORMED && spec->cols[c].guess != NULL;
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
collect(WsKeySpec *spec, const WsKeyRows *rows, const WsEntry *entries, Size n)
{
	WsGuess    *found = palloc(spec->ncols * sizeof(WsGuess));
	WsKeySlot  *slot = rows->make_slot(rows->store);
	Size	   *seen = palloc0(spec->ncols * sizeof(Size));
	int			left = 1;

	for (Size i = 0; i < n && (left > 0 || i < FIRST_LOOK); i++)
	{
		CHECK_FOR_INTERRUPTS();
		rows->fetch(rows->store, ws_entry_pointer(entries[i]), slot);
		left = 0;
		for (int c = 0; c < spec->ncols; c++)
		{
			WsKeyColumn *col = &spec->cols[c];

			if (col->transform != NULL && !slot->isnull[col->attno - 1])
				find_beginning(col, slot->values[col->attno - 1], &found[c]);
			if (col->dictionary == NULL)
				continue;
			left++;
			if (slot->isnull[col->attno - 1])
				continue;
			seen[c]++;
			if (!ws_dictionary_learn(col->dictionary, slot->values[col->attno - 1]) ||
				(seen[c] == FIRST_LOOK && has_many(col->dictionary, FIRST_LOOK, FIRST_SHARE)))
				drop(col);
		}
	}
	for (int c = 0; c < spec->ncols; c++)
		if (spec->cols[c].dictionary != NULL &&
			(seen[c] == 0 || has_many(spec->cols[c].dictionary, seen[c], MOST_SHARE)))
			drop(&spec->cols[c]);
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

/* The entries of the first rows. */
static void
make_entries(const WsKeySpec *spec, const WsKeyRows *rows, WsEntry *entries, Size n)
{
	WsKeySlot  *slot = rows->make_slot(rows->store);

	for (Size i = 0; i < n; i++)
	{
		uint64		pointer = ws_entry_pointer(entries[i]);

		CHECK_FOR_INTERRUPTS();
		rows->fetch(rows->store, pointer, slot);
		entries[i] = ws_key_entry(spec, slot->values, slot->isnull, pointer);
	}
}

static int
compare_prefixes(const void *a, const void *b)
{
	ws_uint128	x = *(const ws_uint128 *) a;
	ws_uint128	y = *(const ws_uint128 *) b;

	return (x > y) - (x < y);
}

/* The prefixes of entries, as far as `mask` goes, in order, as entries without pointers. */
static WsEntry *
sorted_prefixes(const WsEntry *entries, Size n, ws_uint128 mask)
{
	WsEntry    *sorted = (WsEntry *) TYPEALIGN(sizeof(WsEntry), palloc((n + 1) * sizeof(WsEntry)));

	for (Size i = 0; i < n; i++)
		sorted[i] = ws_entry_make(ws_entry_prefix(entries[i]) & mask, 0);
	qsort(sorted, n, sizeof(WsEntry), compare_prefixes);
	return sorted;
}

/*
 * The column that is guessed behind others although these tell most rows apart, or -1: there a guess costs
 * more than it gives.
 */
static int
needless_guess(const WsKeySpec *spec, const WsEntry *entries, Size n)
{
	WsEntry    *sorted;
	WsTold		told;
	Size		distinct = 1;
	Size		first = 0;

	while (first < n && (told = ws_key_told(spec, entries[first])).what != WS_TOLD_GUESSED)
		first++;
	if (first == n || told.columns == 0)
		return -1;
	sorted = sorted_prefixes(entries, n, ws_prefix_mask(told.bytes));
	for (Size i = 1; i < n; i++)
		distinct += !ws_entry_same_prefix(sorted[i - 1], sorted[i]);
	return distinct > n * MOST_SHARE ? told.columns : -1;
}

/* Rows that have the prefix of another one, though more of their keys is needed to tell their order. */
static Size
tied_rows(const WsKeySpec *spec, const WsEntry *entries, Size n)
{
	WsEntry    *sorted = sorted_prefixes(entries, n, ws_prefix_mask(WS_PREFIX_BYTES));
	Size		tied = 0;

	for (Size i = 1; i < n; i++)
		if (ws_entry_same_prefix(sorted[i - 1], sorted[i]) &&
			ws_key_told(spec, sorted[i]).what != WS_TOLD_ALL)
			tied++;
	return tied;
}

/*
 * The first bytes of the keys of some of the rows, as many as fit *bytes bytes.  Sets *found, and *bytes to
 * what these take.
 */
static WsKeyBytes *
sample_keys(const WsKeySpec *spec, const WsKeyRows *rows, const WsEntry *entries, Size n, Size *found,
			Size *bytes)
{
	WsKeySlot  *slot = rows->make_slot(rows->store);
	WsKeyBytes *keys = palloc(n * sizeof(WsKeyBytes));
	Size		most = Min(*bytes, n * MOST_OF_KEY);
	char	   *pool = palloc(most + MOST_OF_KEY);
	Size		used = 0;
	Size		step = 1;

	*found = *bytes = 0;
	for (Size i = 0; i < n; i += step)
	{
		uint8		key[WS_BEGINNING];
		Size		length = WS_BEGINNING;

		CHECK_FOR_INTERRUPTS();
		rows->fetch(rows->store, ws_entry_pointer(entries[i]), slot);
		(void) ws_key_bytes(spec, slot->values, slot->isnull, 0, WS_BEGINNING, key);
		while (length > 0 && key[length - 1] == 0)
			length--;
		keys[(*found)++] = (WsKeyBytes) {memcpy(pool + used, key, length), length};
		used += length;
		*bytes = used + *found * sizeof(WsKeyBytes);
		/* the others are as long as the first ones */
		if (*found == FIRST_KEYS)
			step = 1 + *bytes / FIRST_KEYS * n / most;
		if (*bytes + MOST_OF_KEY > most)
			break;
	}
	return keys;
}

/*
 * Guesses the order of texts of ICU whose abbreviated keys are the same, because they begin alike, if that
 * leaves fewer of the rows tied.
 */
static void
learn_guess(WsKeySpec *spec, const WsKeyRows *rows, WsEntry *entries, Size n)
{
	WsKeyColumn *col = spec->cols;
	WsKeyColumn abbreviated;
	bool		guess = spec->guess;
	Size		tied;

	while (col < spec->cols + spec->ncols && (!ws_encoding_partial(col->encoding) || col->dictionary != NULL))
		col++;
	if (col == spec->cols + spec->ncols || col->icu == NULL || col->guess == NULL ||
		(tied = tied_rows(spec, entries, n)) < n / ONE_TIED_IN)
		return;
	abbreviated = *col;
	col->encoding = WS_ENC_TRANSFORMED;
	col->width = 0;
	spec->guess = true;
	spec->first_alone = ws_first_alone(spec);
	make_entries(spec, rows, entries, n);
	if (tied_rows(spec, entries, n) * FEWER_TIES <= tied)
		return;
	*col = abbreviated;
	spec->guess = guess;
	spec->first_alone = ws_first_alone(spec);
	make_entries(spec, rows, entries, n);
}

/*
 * Gives what keys begin with codes, of `most` bytes at most, if that leaves fewer of the rows tied.  Returns
 * the bytes that it takes.  The context that the codes belong to is `context`.  What they are made of takes
 * `spare` bytes, which are counted in `account`, and half of `most`.
 */
static Size
learn_beginnings(WsKeySpec *spec, const WsKeyRows *rows, WsEntry *entries, Size n, Size most,
				 Size spare, WsAccount *account, MemoryContext context)
{
	MemoryContext work;
	Size		tied;
	Size		found;
	Size		bytes = spare + most / 2;
	WsKeyBytes *keys;

	if (spec->guess || n < LEAST_ROWS || (tied = tied_rows(spec, entries, n)) < n / ONE_TIED_IN)
		return 0;
	keys = sample_keys(spec, rows, entries, n, &found, &bytes);
	ws_account_add(account, Min(bytes, spare));
	ws_account_subtract(account, Min(bytes, spare));
	most -= Min(most, bytes - Min(bytes, spare));
	work = MemoryContextSwitchTo(context);
	spec->beginnings = ws_beginnings_create(keys, found, most);
	MemoryContextSwitchTo(work);
	spec->first_alone = false;
	make_entries(spec, rows, entries, n);
	if (tied_rows(spec, entries, n) * FEWER_TIES <= tied)
		return ws_beginnings_bytes(spec->beginnings);
	ws_beginnings_free(spec->beginnings);
	spec->beginnings = NULL;
	spec->first_alone = ws_first_alone(spec);
	make_entries(spec, rows, entries, n);
	return 0;
}

/*
 * Gives columns a dictionary each, and what keys begin with codes, of `most` bytes together at most, if the
 * first rows of a sort, which have these `n` entries, say that it pays; and gives the entries their prefixes.
 * All that is allocated belongs to CurrentMemoryContext.  Meanwhile `spare` bytes more may be taken, which
 * are counted in `account`.  Returns the bytes that dictionaries and codes may come to take.
 */
Size
ws_key_learn(WsKeySpec *spec, const WsKeyRows *rows, WsEntry *entries, Size n, Size most,
			 Size spare, WsAccount *account)
{
	MemoryContext context = CurrentMemoryContext;
	MemoryContext work = AllocSetContextCreate(context, "WiscSort learning", ALLOCSET_SMALL_SIZES);
	bool		goes_on = true;
	Size		bytes = 0;
	int			columns = 0;
	int			needless;

	for (int c = 0; c < spec->ncols; c++)
		columns += may_have_codes(&spec->cols[c]);
	for (int c = 0; c < spec->ncols; c++)
		if (may_have_codes(&spec->cols[c]))
			spec->cols[c].dictionary = ws_dictionary_create(&spec->cols[c], &spec->compare[c],
															most / columns);
	MemoryContextSwitchTo(work);
	rows->ready(rows->store);
	if (columns > 0)
		collect(spec, rows, entries, n);
	for (int c = 0; c < spec->ncols; c++)
		keep_beginning(&spec->cols[c], context);
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
		bytes += most / columns;
	}
	spec->first_alone = ws_first_alone(spec);
	make_entries(spec, rows, entries, n);
	learn_guess(spec, rows, entries, n);
	needless = needless_guess(spec, entries, n);
	if (needless >= 0)
	{
		spec->cols[needless].encoding = WS_ENC_NONE;
		make_entries(spec, rows, entries, n);
	}
	if (most > bytes + LEAST_BYTES)
		bytes += learn_beginnings(spec, rows, entries, n, most - bytes, spare, account, context);
	MemoryContextSwitchTo(context);
	MemoryContextDelete(work);
	return bytes;
}
