/*-------------------------------------------------------------------------
 * ties.c - settling entries whose prefixes are equal, in groups.
 *
 * After the integer sort, rows with the same prefix stand together, in
 * arrival order.  A group whose prefix is the whole key (told from its
 * bytes) is settled: equal rows stay in arrival order.  Otherwise:
 *
 *  - A small group whose next bytes tell its order: each row is read once (windows.c).
 *  - A group whose rows are in order as they came, or all have the same key: found out by comparing each
 *	  with the one before it.
 *  - A key that is bytes throughout: the prefix of every entry in the group
 *	  is overwritten with the next WS_PREFIX_BYTES bytes of its key, taken
 *	  from the row; the group is sorted by the same kernel, and its own groups
 *	  of equals are settled in turn; then the common prefix is put back.  This
 *	  is a most-significant-digit radix sort with 10-byte digits, and it reads
 *	  each row once a digit instead of once a comparison (digit.c).
 *  - A key whose bytes end at a value that only its comparator can order: by that (compared.c), and rows
 *	  that are equal in it by the columns behind, as if these were all of the key.
 *  - If the order of its bytes can be guessed (key/transform.c): as by digits, behind what the group's
 *	  values begin with (key/guess.c), and after GUESSES_DEEP guesses by the comparators.  At the end each
 *	  row is compared with the one before it.  If few are out of order, they are inserted where they
 *	  belong; if many are, the group is sorted by the comparators.
 *  - If the prefixes themselves are a guess, that is done with all rows that have the same bytes before
 *	  the guess.  If it is wrong, it is wiped out of their prefixes.
 *
 * Columns that the prefix tells wholly are not compared again.
 *
 *  - What is still tied after MAX_DIGITS digits (long values with much in
 *	  common): a sort of the entries that compares whole rows.
 *
 * Where rows are in their table (WsKeyRows has a `keep`), a fetch costs more, and less in the order of the
 * table.  Groups are in that order, because entries with equal prefixes are in the order of their pointers,
 * so that digits read each block once for all of a group's rows in it.
 *
 * Memory: digits and row comparisons are in place.  The pairs take another 16
 * bytes an entry of the group, which ws_ties_bytes_per_entry announces so that
 * the caller can leave room within work_mem.
 *-------------------------------------------------------------------------
 */
#include "index/settle.h"
#include "key/text.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#define MAX_DIGITS		8
#define FAR_DIGITS		32		/* MAX_DIGITS where a row is dear to fetch, but less so in order */
#define GUESSES_DEEP	3
#define LETTERS_DEEP	16		/* the same by letters */
#define GUESSED_ROWS	6		/* that are worth a guess */
#define SAMPLED_ROWS	64		/* that show what all begin with */

/* How a group with equal bytes is to be ordered. */
typedef enum Way
{
	DONE,						/* its keys are equal */
	DIGITS,						/* by more bytes */
	GUESSES,					/* by a guess; elsewhere than in prefixes, it is verified afterwards */
	COMPARISONS
} Way;

static void settle(Ties *t, WsEntry *entries, Size n, int digits, Way way);

/* Orders rows that do not share what the others of their group do: of that, all is told as before. */
static void
settle_strangers(Ties *t, WsEntry *strangers, Size n, int digits, int told, Size reach)
{
	t->told = told;
	t->reach = reach;
	/* they have one prefix: in the order of their pointers again */
	ws_sort_entries(strangers, n, t->vectorised);
	settle(t, strangers, n, digits, DIGITS);
}

/* Orders a group by the next digit of its keys, and that by the one after. */
static void
settle_by_digit(Ties *t, WsEntry *group, Size n, int digits)
{
	ws_uint128	common = ws_entry_prefix(group[0]);
	int			told = t->told;
	Size		reach = t->reach;
	WsDigit		d = {.spec = t->spec, .rows = t->rows, .slot = t->slot[0], .reach = reach};
	Size		same;

	ws_read_digit(&d, group, n);
	same = n - d.before - d.behind;
	if (d.before > 0)
		settle_strangers(t, group, d.before, digits, told, reach);
	if (d.behind > 0)
		settle_strangers(t, group + d.before + same, d.behind, digits, told, reach);
	group += d.before;
	t->told = told;
	t->reach = d.reach;
	ws_sort_entries(group, same, t->vectorised);
	settle(t, group, same, digits + 1, DIGITS);
	for (Size i = 0; i < same; i++)
		group[i] = ws_entry_make(common, ws_entry_pointer(group[i]));
}

/* Orders rows whose windows are the same: by a value at which these end, or by their rows. */
static void
settle_beyond_windows(Ties *t, WsEntry *group, Size n)
{
	uint8		window[WS_WINDOW];
	WsKeySlot  *key;
	Size		certain = WS_WINDOW;

	if (n > FEW_ROWS)
	{
		key = fetch(t, ws_entry_pointer(group[0]), 0);
		(void) ws_key_told_bytes(t->spec, key->values, key->isnull, t->reach, WS_WINDOW, window, &certain);
	}
	if (certain == WS_WINDOW)
		ws_compare_rows(t, group, n);
	else
	{
		t->told = ws_key_compared_column(t->spec, key->values, key->isnull);
		if (!ws_settle_same(t, group, n))
			ws_settle_by_comparator(t, group, n);
	}
}

/* Orders a small group by the next bytes of its keys, and by what is behind, unless they tell too little. */
static bool
settle_by_windows(Ties *t, WsEntry *group, Size n)
{
	WsDigit		d = {.spec = t->spec, .rows = t->rows, .slot = t->slot[0], .reach = t->reach};
	int			told = t->told;
	bool		goes_on[WS_WINDOWED];
	Size		start = 0;

	if (!ws_sort_by_windows(&d, t->windows, group, n))
		return false;
	memcpy(goes_on, t->windows->goes_on, n * sizeof(bool));
	for (Size i = 1; i <= n; i++)
		if (i == n || !goes_on[i])
		{
			settle_beyond_windows(t, group + start, i - start);
			t->told = told;
			start = i;
		}
	return true;
}

/*
 * Orders a group by a guess at the order of its first column that bytes do not tell, which is the `deep`-th
 * guess.  A first is verified, with all that are below it.
 */
static void
settle_by_guess(Ties *t, WsEntry *group, Size n, int deep)
{
	ws_uint128	common = ws_entry_prefix(group[0]);
	const WsKeyColumn *col = &t->spec->cols[t->told];
	int			att = col->attno - 1;
	WsGuess		guess = {.col = NULL};

	for (Size i = 0; i < n; i += Max(1, n / SAMPLED_ROWS))
	{
		WsKeySlot  *key = fetch(t, ws_entry_pointer(group[i]), 0);

		if (key->isnull[att])
			continue;
		if (guess.col == NULL)
			ws_guess_begin(&guess, col, key->values[att]);
		else
			ws_guess_add(&guess, key->values[att]);
	}
	if (guess.col == NULL)
	{
		ws_settle_by_comparator(t, group, n);
		return;
	}
	for (Size i = 0; i < n; i++)
	{
		WsKeySlot  *key = fetch_in_turn(t, group, n, i);
		uint8		window[WS_PREFIX_BYTES];

		if (key->isnull[att])
			memset(window, col->nulls_first ? 0 : 0xFF, sizeof(window));
		else
			ws_guess_window(&guess, key->values[att], WS_PREFIX_BYTES, window);
		group[i] = ws_key_window_entry(window, ws_entry_pointer(group[i]));
		CHECK_FOR_INTERRUPTS();
	}
	pfree(guess.beginning);
	ws_sort_entries(group, n, t->vectorised);
	/* a window that is the same for all would be so the next time */
	if (ws_entry_same_prefix(group[0], group[n - 1]))
		ws_settle_by_comparator(t, group, n);
	else
		settle(t, group, n, deep + 1, GUESSES);
	for (Size i = 0; i < n; i++)
		group[i] = ws_entry_make(common, ws_entry_pointer(group[i]));
	if (deep == 0)
		(void) ws_mend(t, group, n);
}

/*
 * How many guesses are worth it for a group that has come to one of them by another: letters are cheap, until
 * a text has no more of them.
 */
static int
guesses_deep(const Ties *t, WsEntry entry)
{
	const WsKeyColumn *col = &t->spec->cols[t->told];
	uint8		end = col->descending ? 0xFF : 0;

	if (col->alphabet == NULL)
		return GUESSES_DEEP;
	return (uint8) ws_entry_prefix(entry) == end ? 0 : LETTERS_DEEP;
}

/* How to go on with a group that is equal in `digits` digits, and has come there by `way`. */
static Way
way_on(Ties *t, WsEntry entry, int digits, Way way)
{
	uint8		window[WS_PREFIX_BYTES];
	WsKeySlot  *key;
	Size		length;

	if (way == GUESSES)
		return digits <= guesses_deep(t, entry) ? GUESSES : COMPARISONS;
	if (digits == 1)
	{
		WsTold		told = ws_key_told(t->spec, entry);

		t->told = told.columns;
		t->reach = told.reach;
		/* with nothing behind what is certain, the guess has been wiped out */
		t->unverified = told.what == WS_TOLD_GUESSED &&
			ws_entry_prefix(entry) != ws_key_certain(t->spec, entry).from;
		switch (told.what)
		{
			case WS_TOLD_ALL:
				return DONE;
			case WS_TOLD_IN_PART:
				return DIGITS;
			default:
				return t->spec->cols[t->told].transform != NULL ? GUESSES : COMPARISONS;
		}
	}
	key = fetch(t, ws_entry_pointer(entry), 0);
	length = ws_key_bytes(t->spec, key->values, key->isnull, t->reach - WS_PREFIX_BYTES, sizeof(window),
						  window);
	if (length == WS_KEY_UNBOUNDED)
	{
		t->told = ws_key_compared_column(t->spec, key->values, key->isnull);
		t->unverified = false;
		return t->spec->cols[t->told].transform != NULL ? GUESSES : COMPARISONS;
	}
	return length <= t->reach ? DONE : DIGITS;
}

/* The prefix that was last asked about, and whether it is the whole key. */
typedef struct LastAsked
{
	WsEntry		entry;
	bool		complete;
} LastAsked;

/* Prefetches the rows of entry i and the one before it, if they are in a group that will need them. */
static inline void
prefetch_tied(Ties *t, const WsEntry *entries, Size i, LastAsked *last)
{
	if (!ws_entry_same_prefix(entries[i], entries[i - 1]))
		return;
	if (!ws_entry_same_prefix(entries[i], last->entry))
		*last = (LastAsked) {entries[i], ws_key_complete(t->spec, entries[i])};
	if (last->complete)
		return;
	t->rows->prefetch(t->rows->store, ws_entry_pointer(entries[i - 1]));
	t->rows->prefetch(t->rows->store, ws_entry_pointer(entries[i]));
}

/* Finds the groups of equals among entries sorted by `digits` digits, which are more of `way`. */
static void
settle(Ties *t, WsEntry *entries, Size n, int digits, Way way)
{
	LastAsked	last = {WS_ENTRY_MAX, false};
	Size		start = 0;
	int			told = t->told;
	Size		reach = t->reach;

	for (Size i = 1; i <= n; i++)
	{
		WsEntry    *group = entries + start;
		Size		size = i - start;
		Way			on;

		if (digits == 1 && way == DIGITS && i + WS_TIES_AHEAD < n)
			prefetch_tied(t, entries, i + WS_TIES_AHEAD, &last);
		if (i < n && ws_entry_same_prefix(entries[i], group[0]))
			continue;
		start = i;
		t->told = told;
		t->reach = reach;
		if (size == 1 || (on = way_on(t, group[0], digits, way)) == DONE)
			continue;
		CHECK_FOR_INTERRUPTS();

		/* few distinct keys are common, as are rows that come in order; a further digit reads them again */
		if (size <= FEW_ROWS)
			ws_compare_rows(t, group, size);
		else if ((on == DIGITS && size <= WS_WINDOWED && t->rows->keep == NULL &&
				  settle_by_windows(t, group, size)) || ws_each_follows(t, group, size) ||
				 (on != DIGITS && ws_settle_same(t, group, size)))
			continue;
		else if (on == GUESSES && size >= GUESSED_ROWS)
			settle_by_guess(t, group, size, way == GUESSES ? digits : t->unverified ? 1 : 0);
		else if (on == GUESSES || on == COMPARISONS)
			ws_settle_by_comparator(t, group, size);
		else if (on == DIGITS && digits >= (t->rows->keep != NULL ? FAR_DIGITS : MAX_DIGITS))
			ws_compare_rows(t, group, size);
		else
			settle_by_digit(t, group, size, digits);
	}
}

/* Orders a group by keys of its rows, of which no prefix tells anything. */
static void
settle_by_key(Ties *t, WsEntry *group, Size n)
{
	if (n <= WS_WINDOWED && t->rows->keep == NULL && settle_by_windows(t, group, n))
		return;
	for (Size i = 0; i < n; i++)
	{
		WsKeySlot  *key = fetch_in_turn(t, group, n, i);
		uint8		window[WS_PREFIX_BYTES];

		(void) ws_key_prefix_bytes(t->spec, key->values, key->isnull, window);
		group[i] = ws_key_window_entry(window, ws_entry_pointer(group[i]));
		CHECK_FOR_INTERRUPTS();
	}
	t->reach = WS_PREFIX_BYTES;
	ws_sort_entries(group, n, t->vectorised);
	settle(t, group, n, 2, DIGITS);
}

/*
 * Verifies the order of rows that a guess has sorted.  If it is wrong, mends it, and wipes the guess out,
 * which leaves the prefix `wiped`.
 */
static bool
verify(Ties *t, WsEntry *entries, Size n, ws_uint128 wiped)
{
	if (ws_mend(t, entries, n))
		return true;
	for (Size i = 0; i < n; i++)
		entries[i] = ws_entry_make(wiped, ws_entry_pointer(entries[i]));
	return false;
}

/* Verifies all that is a guess, if it has not been wiped out already. */
static WsGuesses
verify_guesses(Ties *t, WsEntry *entries, Size n)
{
	WsGuesses	result = WS_GUESSES_NONE;
	Size		end;

	for (Size start = 0; start < n; start = end)
	{
		WsCertain	certain = ws_key_certain(t->spec, entries[start]);
		bool		guessed = certain.behind;

		CHECK_FOR_INTERRUPTS();
		for (end = start; end < n && ws_same_certainly(&certain, entries[end]); end++)
			guessed |= ws_entry_prefix(entries[end]) != certain.from;
		t->told = certain.columns;
		if (guessed)
			result = Max(result, WS_GUESSES_RIGHT);
		if (guessed && end - start > 1 && !verify(t, entries + start, end - start, certain.from))
			result = WS_GUESSES_WRONG;
	}
	return result;
}

/*
 * Puts the entries of a sorted array into the order of their whole keys, and
 * rows with equal keys into the order of their pointers.  The keys come from
 * the rows behind the entries.  `vectorised` as for ws_sort_entries.  Returns what has become of prefixes
 * that were guesses.
 */
WsGuesses
ws_settle_ties(WsEntry *entries, Size n, const WsKeySpec *spec, const WsKeyRows *rows,
			   bool vectorised)
{
	MemoryContext work = AllocSetContextCreate(CurrentMemoryContext, "WiscSort ties",
											   ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(work);
	Ties		t = {.spec = spec, .rows = rows, .vectorised = vectorised, .settle_by_key = settle_by_key};
	WsGuesses	guesses = WS_GUESSES_NONE;

	t.slot[0] = rows->make_slot(rows->store);
	t.slot[1] = rows->make_slot(rows->store);
	rows->ready(rows->store);
	t.windows = palloc(sizeof(WsWindows));
	settle(&t, entries, n, 1, DIGITS);
	if (spec->guess)
		guesses = verify_guesses(&t, entries, n);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(work);	/* with what the comparators left */
	return guesses;
}
