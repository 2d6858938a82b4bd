/*-------------------------------------------------------------------------
 * sort.c - sorting an array of entries as 128-bit integers.
 *
 * Two kernels: Highway's vqsort (vqsort.cc) when the extension was
 * built with libhwy, and PostgreSQL's lib/sort_template.h, specialised for
 * entries and interruptible.  The caller chooses.  Entries that are equal, pointers and all, are
 * of rows that are nothing but their keys, so that the kernels give the same result.
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "miscadmin.h"

static inline int
entry_compare(const WsEntry *a, const WsEntry *b)
{
	ws_uint128	x = ws_entry_int(*a);
	ws_uint128	y = ws_entry_int(*b);

	return (x > y) - (x < y);
}

#define ST_SORT sort_entries_template
#define ST_ELEMENT_TYPE WsEntry
#define ST_COMPARE(a, b) entry_compare(a, b)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Numbers, also without interrupt checks. */
#define ST_SORT sort_numbers_template
#define ST_ELEMENT_TYPE uint64
#define ST_COMPARE(a, b) ((*(a) > *(b)) - (*(a) < *(b)))
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Entries without interrupt checks, for few of them. */
#define ST_SORT sort_few_entries
#define ST_ELEMENT_TYPE WsEntry
#define ST_COMPARE(a, b) entry_compare(a, b)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

#ifdef HAVE_LIBHWY

/* Below this vqsort's set-up costs more than it gains. */
#define VQSORT_MIN_ENTRIES	64

/* Turns n entries round. */
static void
reverse(WsEntry *entries, Size n)
{
	for (Size a = 0, z = n; a + 1 < z; a++)
	{
		WsEntry		e = entries[a];

		entries[a] = entries[--z];
		entries[z] = e;
	}
}

/* Are n entries the other way round, but those with equal prefixes in the order in which their rows came? */
static bool
is_reversed(const WsEntry *entries, Size n)
{
	for (Size i = 1; i < n; i++)
	{
		bool		greater = ws_entry_int(entries[i - 1]) > ws_entry_int(entries[i]);

		if (greater == ws_entry_same_prefix(entries[i - 1], entries[i]))
			return false;
	}
	return true;
}

/*
 * Are n entries in order as they are, or the other way round?  Then they are put in order, and nothing is
 * left to be done.  Others are left as they are, mostly after a few comparisons.
 */
static bool
sort_ordered(WsEntry *entries, Size n)
{
	Size		i = 1;

	while (i < n && ws_entry_int(entries[i - 1]) <= ws_entry_int(entries[i]))
		i++;
	if (i >= n)
		return true;
	if (!is_reversed(entries, n))
		return false;
	reverse(entries, n);
	for (Size from = 0, to; from < n; from = to)
	{
		to = from + 1;
		while (to < n && ws_entry_same_prefix(entries[from], entries[to]))
			to++;
		reverse(entries + from, to - from);
	}
	return true;
}
#endif

/*
 * Sorts n <= WS_PIECE_ENTRIES entries in place, ascending, with vqsort, if
 * ws_sort_has_vqsort.  The array is 16-byte aligned (it is much slower
 * otherwise).  Callable from helpers; cannot be interrupted.
 */
void
ws_sort_vectorised(WsEntry *entries, Size n)
{
	Assert(((uintptr_t) entries & 15) == 0);
#ifdef HAVE_LIBHWY
	if (n >= VQSORT_MIN_ENTRIES)
	{
		if (!sort_ordered(entries, n))
			ws_vqsort(entries, n);
		return;
	}
#endif
	sort_few_entries(entries, n);
}

/* Has vqsort been built in? */
bool
ws_sort_has_vqsort(void)
{
#ifdef HAVE_LIBHWY
	return true;
#else
	return false;
#endif
}

/*
 * Sorts n entries in place, ascending, with vqsort if `vectorised`, which it may only be
 * if ws_sort_has_vqsort.  vqsort cannot be interrupted: more than
 * WS_PIECE_ENTRIES are left to the template, which can.
 */
void
ws_sort_entries(WsEntry *entries, Size n, bool vectorised)
{
	if (vectorised && n <= WS_PIECE_ENTRIES)
		ws_sort_vectorised(entries, n);
	else
		sort_entries_template(entries, n);
}

/*
 * Sorts n <= WS_PIECE_ENTRIES numbers in place, ascending, with vqsort if `vectorised`.  Callable from
 * helpers; cannot be interrupted.
 */
void
ws_sort_numbers(uint64 *numbers, Size n, bool vectorised)
{
#ifdef HAVE_LIBHWY
	if (vectorised && n >= VQSORT_MIN_ENTRIES)
	{
		ws_vqsort_numbers(numbers, n);
		return;
	}
#endif
	sort_numbers_template(numbers, n);
}
