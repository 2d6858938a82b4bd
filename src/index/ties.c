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
 *  - A key whose bytes end at a value that only its comparator can order: a sort of
 *	  {datum of this column, pointer} pairs by the comparators; further columns are taken
 *	  from the rows.
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
#include "index/index.h"
#include "key/text.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#define MAX_DIGITS		8
#define FAR_DIGITS		32		/* MAX_DIGITS where a row is dear to fetch, but less so in order */
#define GUESSES_DEEP	3
#define LETTERS_DEEP	16		/* the same by letters */
#define MISPLACED_ONE_IN	8	/* rows that a guess has sorted, if its order is to be mended */
#define GUESSED_ROWS	6		/* that are worth a guess */
#define SAMPLED_ROWS	64		/* that show what all begin with */
#define FEW_ROWS		4		/* rows that are compared at once */

typedef struct Ties
{
	const WsKeySpec *spec;
	const WsKeyRows *rows;
	WsKeySlot  *slot[2];
	bool		vectorised;		/* entries are sorted by vqsort */
	int			told;			/* columns that are the same throughout the group */
	Size		reach;			/* bytes of the key that are the same throughout the group, or are told */
	bool		unverified;		/* its prefixes are a guess that is going to be verified */
	WsWindows  *windows;		/* room for those of a small group */
} Ties;

/* How a group with equal bytes is to be ordered. */
typedef enum Way
{
	DONE,						/* its keys are equal */
	DIGITS,						/* by more bytes */
	GUESSES,					/* by a guess; elsewhere than in prefixes, it is verified afterwards */
	COMPARISONS
} Way;

static WsKeySlot *
fetch(Ties *t, uint64 pointer, int slot)
{
	t->rows->fetch(t->rows->store, pointer, t->slot[slot]);
	return t->slot[slot];
}

/* Orders two rows by their key columns from number `column` on. */
static int
compare_keys(Ties *t, uint64 a, uint64 b, int column)
{
	WsKeySlot *x = fetch(t, a, 0);
	WsKeySlot *y = fetch(t, b, 1);

	return ws_key_compare(t->spec, column, x->values, x->isnull, y->values, y->isnull);
}

/* The first key column of a row that the prefix does not tell, beside its pointer. */
typedef struct Pair
{
	Datum		datum;
	uint64		pointer;		/* PAIR_NULL set if the datum is null */
} Pair;

#define PAIR_NULL	(UINT64CONST(1) << 63)

/* Arrival order decides between rows with equal keys. */
static inline int
compare_pointers(uint64 a, uint64 b)
{
	return (a > b) - (a < b);
}

static int
compare_rows(const WsEntry *a, const WsEntry *b, Ties *t)
{
	uint64		pa = ws_entry_pointer(*a);
	uint64		pb = ws_entry_pointer(*b);
	int			cmp = 0;

	if (pa != pb)
		cmp = compare_keys(t, pa, pb, t->told);
	return cmp != 0 ? cmp : compare_pointers(pa, pb);
}

#define ST_SORT sort_by_rows
#define ST_ELEMENT_TYPE WsEntry
#define ST_COMPARE_ARG_TYPE Ties
#define ST_COMPARE(a, b, arg) compare_rows(a, b, arg)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

static int
compare_pairs(const Pair *a, const Pair *b, Ties *t)
{
	uint64		pa = a->pointer & WS_POINTER_MASK;
	uint64		pb = b->pointer & WS_POINTER_MASK;
	int			cmp = ApplySortComparator(a->datum, (a->pointer & PAIR_NULL) != 0,
										  b->datum, (b->pointer & PAIR_NULL) != 0,
										  &t->spec->compare[t->told]);

	if (cmp == 0 && t->spec->ncols > t->told + 1 && pa != pb)
		cmp = compare_keys(t, pa, pb, t->told + 1);
	return cmp != 0 ? cmp : compare_pointers(pa, pb);
}

#define ST_SORT sort_pairs
#define ST_ELEMENT_TYPE Pair
#define ST_COMPARE_ARG_TYPE Ties
#define ST_COMPARE(a, b, arg) compare_pairs(a, b, arg)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Extra bytes of memory that settling ties takes for each entry sorted. */
Size
ws_ties_bytes_per_entry(const WsKeySpec *spec)
{
	return spec->comparator ? sizeof(Pair) : 0;
}

static void settle(Ties *t, WsEntry *entries, Size n, int digits, Way way);

/* Orders a group by the comparators, through pairs; or by rows if values to be copied take too much. */
static void
settle_by_comparator(Ties *t, WsEntry *group, Size n)
{
	ws_uint128	common = ws_entry_prefix(group[0]);
	int			att = t->spec->cols[t->told].attno - 1;
	MemoryContext work = AllocSetContextCreate(CurrentMemoryContext, "WiscSort pairs",
											   ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(work);
	Pair	   *pairs = MemoryContextAllocHuge(work, n * sizeof(Pair));
	Size		kept = 0;

	for (Size i = 0; i < n && kept <= t->rows->kept; i++)
	{
		WsKeySlot *key;

		if (i + WS_TIES_AHEAD < n)
			t->rows->prefetch(t->rows->store, ws_entry_pointer(group[i + WS_TIES_AHEAD]));
		pairs[i].pointer = ws_entry_pointer(group[i]);
		key = fetch(t, pairs[i].pointer, 0);
		pairs[i].datum = key->values[att];
		if (key->isnull[att])
			pairs[i].pointer |= PAIR_NULL;
		else if (t->rows->keep != NULL)
			pairs[i].datum = t->rows->keep(t->rows->store, key, t->told, &kept);
		CHECK_FOR_INTERRUPTS();
	}
	if (kept <= t->rows->kept)
	{
		sort_pairs(pairs, n, t);
		for (Size i = 0; i < n; i++)
			group[i] = ws_entry_make(common, pairs[i].pointer & WS_POINTER_MASK);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(work);	/* with what the comparators left */
	if (kept > t->rows->kept)
		sort_by_rows(group, n, t);
}

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

/* Orders a small group by the next bytes of its keys, and by its rows where that is not enough.  Does it? */
static bool
settle_by_windows(Ties *t, WsEntry *group, Size n)
{
	WsDigit		d = {.spec = t->spec, .rows = t->rows, .slot = t->slot[0], .reach = t->reach};
	Size		start = 0;

	if (!ws_sort_by_windows(&d, t->windows, group, n))
		return false;
	for (Size i = 1; i <= n; i++)
		if (i == n || !t->windows->goes_on[i])
		{
			sort_by_rows(group + start, i - start, t);
			start = i;
		}
	return true;
}

/*
 * Takes rows out of an array that is nearly in order, so that what is left is: a row that is smaller than the
 * one before it, or that one, if the row follows the one before that.  They are put into `dropped`, of which
 * there is room for `most`; *ndropped says how many there are.  Returns how many are left; 0 if there would
 * be more than `most`, and all rows are in the array then.
 */
static Size
drop_misplaced(Ties *t, WsEntry *entries, Size n, WsEntry *dropped, Size most, Size *ndropped)
{
	int			slot = 0;		/* of the last one that is left */
	WsKeySlot  *last = fetch(t, ws_entry_pointer(entries[0]), slot);
	Size		left = 1;

	*ndropped = 0;
	for (Size i = 1; i < n; i++)
	{
		WsKeySlot  *key;

		CHECK_FOR_INTERRUPTS();
		if (i + WS_TIES_AHEAD < n)
			t->rows->prefetch(t->rows->store, ws_entry_pointer(entries[i + WS_TIES_AHEAD]));
		key = fetch(t, ws_entry_pointer(entries[i]), 1 - slot);
		if (ws_key_compare(t->spec, t->told, last->values, last->isnull, key->values, key->isnull) <= 0)
		{
			entries[left++] = entries[i];
			last = key;
			slot = 1 - slot;
			continue;
		}
		if (*ndropped == most)
		{
			for (Size d = 0; d < most; d++)
				entries[left + d] = dropped[d];
			return 0;
		}
		if (left == 1 ||
			compare_keys(t, ws_entry_pointer(entries[left - 2]), ws_entry_pointer(entries[i]), t->told) <= 0)
		{
			dropped[(*ndropped)++] = entries[left - 1];
			entries[left - 1] = entries[i];
		}
		else
			dropped[(*ndropped)++] = entries[i];
		slot = 0;
		last = fetch(t, ws_entry_pointer(entries[left - 1]), slot);
	}
	return left;
}

/*
 * Has each row no smaller key than the one before it?  Reads each row once, and gives up at the first that
 * has.
 */
static bool
each_follows(Ties *t, WsEntry *entries, Size n)
{
	Size		none;

	return drop_misplaced(t, entries, n, NULL, 0, &none) > 0;
}

/* Puts rows that are in order among others that are, behind which there is room. */
static void
insert_rows(Ties *t, WsEntry *entries, Size n, const WsEntry *rows, Size nrows)
{
	while (nrows > 0)
	{
		const WsEntry *row = &rows[--nrows];
		Size		from = 0;
		Size		to = n;

		CHECK_FOR_INTERRUPTS();
		while (from < to)
		{
			Size		middle = from + (to - from) / 2;

			if (compare_rows(&entries[middle], row, t) > 0)
				to = middle;
			else
				from = middle + 1;
		}
		memmove(entries + from + nrows + 1, entries + from, (n - from) * sizeof(WsEntry));
		entries[from + nrows] = *row;
		n = from;
	}
}

/*
 * Puts rows into order that a guess has sorted, and returns whether they were.  Few that are misplaced are
 * taken out, and inserted again (drop-merge sort: Ernerfeldt, 2017).
 */
static bool
mend(Ties *t, WsEntry *entries, Size n)
{
	Size		most = n / MISPLACED_ONE_IN + 1;
	WsEntry    *dropped = MemoryContextAllocHuge(CurrentMemoryContext, most * sizeof(WsEntry));
	Size		ndropped;
	Size		left = drop_misplaced(t, entries, n, dropped, most, &ndropped);

	if (left > 0 && ndropped > 0)
	{
		settle_by_comparator(t, dropped, ndropped);
		insert_rows(t, entries, left, dropped, ndropped);
	}
	pfree(dropped);				/* the pairs may take all that is left */
	if (left == 0)
		settle_by_comparator(t, entries, n);
	return ndropped == 0;
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
		settle_by_comparator(t, group, n);
		return;
	}
	for (Size i = 0; i < n; i++)
	{
		uint64		pointer = ws_entry_pointer(group[i]);
		uint8		window[WS_PREFIX_BYTES];
		WsKeySlot  *key;

		if (i + WS_TIES_AHEAD < n)
			t->rows->prefetch(t->rows->store, ws_entry_pointer(group[i + WS_TIES_AHEAD]));
		key = fetch(t, pointer, 0);
		if (key->isnull[att])
			memset(window, col->nulls_first ? 0 : 0xFF, sizeof(window));
		else
			ws_guess_window(&guess, key->values[att], WS_PREFIX_BYTES, window);
		group[i] = ws_key_window_entry(window, pointer);
		CHECK_FOR_INTERRUPTS();
	}
	pfree(guess.beginning);
	ws_sort_entries(group, n, t->vectorised);
	settle(t, group, n, deep + 1, GUESSES);
	for (Size i = 0; i < n; i++)
		group[i] = ws_entry_make(common, ws_entry_pointer(group[i]));
	if (deep == 0)
		(void) mend(t, group, n);
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
	length = ws_key_window(t->spec, key->values, key->isnull, t->reach - WS_PREFIX_BYTES, window);
	if (length == WS_KEY_UNBOUNDED)
	{
		t->told = ws_key_compared_column(t->spec, key->values, key->isnull);
		t->unverified = false;
		return t->spec->cols[t->told].transform != NULL ? GUESSES : COMPARISONS;
	}
	return length <= t->reach ? DONE : DIGITS;
}

/*
 * Prefetches the rows of entry i and the one before it, if they are in a group
 * that will need them; *known is the last prefix that was found not to.
 */
static inline void
prefetch_tied(Ties *t, const WsEntry *entries, Size i, WsEntry *known)
{
	if (!ws_entry_same_prefix(entries[i], entries[i - 1]) ||
		ws_entry_same_prefix(entries[i], *known))
		return;
	if (ws_key_complete(t->spec, entries[i]))
	{
		*known = entries[i];
		return;
	}
	t->rows->prefetch(t->rows->store, ws_entry_pointer(entries[i - 1]));
	t->rows->prefetch(t->rows->store, ws_entry_pointer(entries[i]));
}

/* Finds the groups of equals among entries sorted by `digits` digits, which are more of `way`. */
static void
settle(Ties *t, WsEntry *entries, Size n, int digits, Way way)
{
	WsEntry		known = WS_ENTRY_MAX;
	Size		start = 0;
	int			told = t->told;
	Size		reach = t->reach;

	for (Size i = 1; i <= n; i++)
	{
		WsEntry    *group = entries + start;
		Size		size = i - start;
		Way			on;

		if (digits == 1 && way == DIGITS && i + WS_TIES_AHEAD < n)
			prefetch_tied(t, entries, i + WS_TIES_AHEAD, &known);
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
			sort_by_rows(group, size, t);
		else if ((on == DIGITS && size <= WS_WINDOWED && t->rows->keep == NULL &&
				  settle_by_windows(t, group, size)) || each_follows(t, group, size))
			continue;
		else if (on == GUESSES && size >= GUESSED_ROWS)
			settle_by_guess(t, group, size, way == GUESSES ? digits : t->unverified ? 1 : 0);
		else if (on == GUESSES || on == COMPARISONS)
			settle_by_comparator(t, group, size);
		else if (on == DIGITS && digits >= (t->rows->keep != NULL ? FAR_DIGITS : MAX_DIGITS))
			sort_by_rows(group, size, t);
		else
			settle_by_digit(t, group, size, digits);
	}
}

/*
 * Verifies the order of rows that a guess has sorted.  If it is wrong, mends it, and wipes the guess out,
 * which leaves the prefix `wiped`.
 */
static bool
verify(Ties *t, WsEntry *entries, Size n, ws_uint128 wiped)
{
	if (mend(t, entries, n))
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
	Ties		t = {.spec = spec, .rows = rows, .vectorised = vectorised};
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
