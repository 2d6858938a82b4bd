/*-------------------------------------------------------------------------
 * compared.c - settling ties by comparisons.
 *
 *	- By the comparator of one column: a sort of pairs {value, pointer}, for which each row is read once.
 *	  Rows that are equal in it are settled by the columns behind it as if there were no others, that is,
 *	  by digits where these are bytes.  (20,000 values of a composite type and an int4, 1 M rows: core ÷
 *	  WiscSort 1.03; with rows fetched for each comparison of equal values 0.91.)
 *	- By rows, of which each comparison reads two: for few.
 *	- Of rows that should be in order, those that are not are inserted where they belong.
 *
 * Memory: the pairs, which ws_ties_bytes_per_entry announces, and are gone before the columns behind are
 * settled.
 *-------------------------------------------------------------------------
 */
#include "index/settle.h"
#include "key/text.h"
#include "key/value.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#define LEAST_IN_A_ROW		8	/* rows that are smaller than those left, until these are doubted */
#define MISPLACED_ONE_IN	8	/* rows that a guess has sorted, if its order is to be mended */

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

/* Orders a group by its rows: each comparison fetches two. */
void
ws_compare_rows(Ties *t, WsEntry *group, Size n)
{
	sort_by_rows(group, n, t);
}

/* The first key column of a row that the prefix does not tell, beside its pointer. */
typedef struct Pair
{
	Datum		datum;
	uint64		pointer;		/* PAIR_NULL set if the datum is null */
} Pair;

#define PAIR_NULL	(UINT64CONST(1) << 63)

static inline int
compare_pair_values(const Pair *a, const Pair *b, const Ties *t)
{
	return ws_compare_values(t->spec, t->told, a->datum, (a->pointer & PAIR_NULL) != 0,
							 b->datum, (b->pointer & PAIR_NULL) != 0);
}

static int
compare_pairs(const Pair *a, const Pair *b, Ties *t)
{
	uint64		pa = a->pointer & WS_POINTER_MASK;
	uint64		pb = b->pointer & WS_POINTER_MASK;
	int			cmp = compare_pair_values(a, b, t);

	t->tied |= cmp == 0 && pa != pb;
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

/* Entries in the order of their pairs, with a number as prefix, which is another for another value. */
static void
put_back(Ties *t, const Pair *pairs, WsEntry *group, Size n)
{
	ws_uint128	number = 0;

	for (Size i = 0; i < n; i++)
	{
		if (t->tied && i > 0)
		{
			CHECK_FOR_INTERRUPTS();
			number += compare_pair_values(&pairs[i - 1], &pairs[i], t) != 0;
		}
		group[i] = ws_entry_make(number, pairs[i].pointer & WS_POINTER_MASK);
	}
}

/*
 * Do bytes tell the order of all columns?  Letters do until a text is strange.  Text of libc is guessed
 * behind the code of a gap, which nobody verifies where other bytes tell rows apart.
 */
static bool
bytes_order_all(const WsKeySpec *spec)
{
	for (int i = 0; i < spec->ncols; i++)
	{
		const WsKeyColumn *col = &spec->cols[i];

		if (col->encoding == WS_ENC_TRANSFORMED ||
			(col->encoding == WS_ENC_LETTERS && col->letters->strange) ||
			(col->dictionary == NULL && ws_encoding_partial(col->encoding)))
			return false;
	}
	return true;
}

/*
 * Orders rows whose columns up to the one that is told next are the same by those behind it, which get keys
 * of their own, as if there were no others; or by the comparator of the first of them.
 */
static void
settle_equal(Ties *t, WsEntry *group, Size n)
{
	int			next = t->told + 1;
	WsKeySpec	behind = *t->spec;
	Ties		inner = *t;

	behind.ncols -= next;
	behind.cols += next;
	behind.compare += next;
	behind.beginnings = NULL;
	behind.ranges = NULL;
	behind.memo = NULL;
	behind.exact = behind.first_alone = false;
	inner.spec = &behind;
	inner.first += next;
	inner.told = 0;
	inner.reach = 0;
	inner.unverified = false;
	if (n <= FEW_ROWS)
		sort_by_rows(group, n, &inner);
	else if (ws_each_follows(&inner, group, n))
		return;
	else if (bytes_order_all(&behind))
		inner.settle_by_key(&inner, group, n);
	else
		ws_settle_by_comparator(&inner, group, n);
}

/* Have two rows the same bytes in the column that is told next?  The first one is in a slot already. */
static bool
same_in_column(Ties *t, const WsKeySlot *first, WsEntry entry)
{
	const WsKeyColumn *col = &t->spec->cols[t->told];
	const WsKeySlot *key = fetch(t, ws_entry_pointer(entry), 1);
	int			att = col->attno - 1;

	return key->isnull[att] == first->isnull[att] &&
		(key->isnull[att] || ws_same_value(col, first->values[att], key->values[att]));
}

/* Have all rows of a group?  The last one tells mostly, if not. */
static bool
all_same(Ties *t, const WsEntry *group, Size n)
{
	const WsKeySlot *first = fetch(t, ws_entry_pointer(group[0]), 0);

	if (!same_in_column(t, first, group[n - 1]))
		return false;
	for (Size i = 1; i + 1 < n; i++)
	{
		if (i + WS_TIES_AHEAD < n)
			t->rows->prefetch(t->rows->store, ws_entry_pointer(group[i + WS_TIES_AHEAD]));
		if (!same_in_column(t, first, group[i]))
			return false;
		CHECK_FOR_INTERRUPTS();
	}
	return true;
}

/* If a group is the same in the column that is told next, orders it by those behind.  Is it? */
bool
ws_settle_same(Ties *t, WsEntry *group, Size n)
{
	ws_uint128	common = ws_entry_prefix(group[0]);

	if (t->told + 1 >= t->spec->ncols || !all_same(t, group, n))
		return false;
	settle_equal(t, group, n);
	for (Size i = 0; i < n; i++)
		group[i] = ws_entry_make(common, ws_entry_pointer(group[i]));
	return true;
}

/* Orders all groups of rows with the same prefix, which are the same in that column. */
static void
settle_behind(Ties *t, WsEntry *entries, Size n)
{
	Size		start = 0;

	for (Size i = 1; i <= n; i++)
	{
		if (i < n && ws_entry_same_prefix(entries[i], entries[start]))
			continue;
		if (i - start > 1)
			settle_equal(t, entries + start, i - start);
		start = i;
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Orders a group by the comparator of the next column, through pairs, and what is equal by the columns
 * behind; or by rows if values to be copied take too much.
 */
void
ws_settle_by_comparator(Ties *t, WsEntry *group, Size n)
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
		WsKeySlot  *key = fetch_in_turn(t, group, n, i);

		pairs[i].pointer = ws_entry_pointer(group[i]);
		pairs[i].datum = key->values[att];
		if (key->isnull[att])
			pairs[i].pointer |= PAIR_NULL;
		else if (t->rows->keep != NULL)
			pairs[i].datum = t->rows->keep(t->rows->store, key, t->first + t->told, &kept);
		CHECK_FOR_INTERRUPTS();
	}
	t->tied = false;
	if (kept <= t->rows->kept)
	{
		sort_pairs(pairs, n, t);
		t->tied &= t->told + 1 < t->spec->ncols;
		put_back(t, pairs, group, n);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(work);	/* with what the comparators left */
	if (kept > t->rows->kept)
		sort_by_rows(group, n, t);
	else if (t->tied)
		settle_behind(t, group, n);
	for (Size i = 0; i < n; i++)
		group[i] = ws_entry_make(common, ws_entry_pointer(group[i]));
}

/*
 * How many of the last `most` rows that are left are to be taken out for `entry` to follow the one before
 * them; 0 if that would not do.
 */
static Size
rows_above(Ties *t, const WsEntry *entries, Size left, WsEntry entry, Size most)
{
	Size		low = left - Min(most, left);
	Size		from = low;
	Size		to = left;

	if (low > 0 && compare_keys(t, ws_entry_pointer(entries[low - 1]), ws_entry_pointer(entry), t->told) > 0)
		return 0;
	while (from < to)
	{
		Size		middle = from + (to - from) / 2;

		if (compare_keys(t, ws_entry_pointer(entries[middle]), ws_entry_pointer(entry), t->told) > 0)
			to = middle;
		else
			from = middle + 1;
	}
	return left - from;
}

/*
 * Takes rows out of an array that is nearly in order, so that what is left is: a row that is smaller than the
 * one before it, or that one, if the row follows the one before that.  Where some rows beside each other have
 * wrong guesses, all that follow may be smaller: after LEAST_IN_A_ROW of these, as many rows may be taken out
 * in front of one as were behind them.  They are put into `dropped`, of which
 * there is room for `most`; *ndropped says how many there are.  Returns how many are left; 0 if there would
 * be more than `most`, and all rows are in the array then.
 */
static Size
drop_misplaced(Ties *t, WsEntry *entries, Size n, WsEntry *dropped, Size most, Size *ndropped)
{
	int			slot = 0;		/* of the last one that is left */
	WsKeySlot  *last = fetch(t, ws_entry_pointer(entries[0]), slot);
	Size		left = 1;
	Size		back;
	int			in_a_row = 0;	/* rows that were dropped, one after the other */

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
			in_a_row = 0;
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
		back = in_a_row < LEAST_IN_A_ROW ? 1 : in_a_row;
		back = rows_above(t, entries, left, entries[i], Min(back, most - *ndropped));
		if (back > 0)
		{
			for (; back > 0; back--)
				dropped[(*ndropped)++] = entries[--left];
			entries[left++] = entries[i];
			in_a_row = 0;
		}
		else
		{
			dropped[(*ndropped)++] = entries[i];
			in_a_row++;
		}
		slot = 0;
		last = fetch(t, ws_entry_pointer(entries[left - 1]), slot);
	}
	return left;
}

/*
 * Has each row no smaller key than the one before it?  Reads each row once, and gives up at the first that
 * has.
 */
bool
ws_each_follows(Ties *t, WsEntry *entries, Size n)
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
bool
ws_mend(Ties *t, WsEntry *entries, Size n)
{
	Size		most = n / MISPLACED_ONE_IN + 1;
	char	   *memory = MemoryContextAllocHuge(CurrentMemoryContext, (most + 1) * sizeof(WsEntry));
	WsEntry    *dropped = (WsEntry *) TYPEALIGN(sizeof(WsEntry), memory);
	Size		ndropped;
	Size		left = drop_misplaced(t, entries, n, dropped, most, &ndropped);

	if (left > 0 && ndropped > 0)
	{
		ws_settle_by_comparator(t, dropped, ndropped);
		insert_rows(t, entries, left, dropped, ndropped);
	}
	pfree(memory);				/* the pairs may take all that is left */
	if (left == 0)
		ws_settle_by_comparator(t, entries, n);
	return ndropped == 0;
}
