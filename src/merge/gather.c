/*-------------------------------------------------------------------------
 * gather.c - merging runs of keys that their prefixes hold by sorting, a batch at a time.
 *
 * A tournament costs log2(runs) unpredictable comparisons an entry, one after
 * the other: 25 ns for 3 runs, 60 ns for 46.  Sorting a few thousand entries
 * with vqsort costs 15 to 17 ns an entry, whatever their number of sources.  So
 * where memory allows it, and a vectorised kernel is there:
 *
 *	1. Every run has a block in memory.  The least of their last entries is the
 *	   bound: no block that is still on disk has an entry below it.  (FMsort's
 *	   block read order is the sequence of these bounds.)  So is the entry that ends a
 *	   source's share of a batch.
 *	2. The entries up to the bound are copied from all blocks into one buffer.
 *	3. The buffer is sorted and handed out.  Few runs are merged two by two
 *	   instead, without branches: 2 ns an entry and pass, in cache.
 *
 * Without shares batches come in bursts: blocks of runs that are alike end at keys that are alike, so that
 * one batch takes nearly all of every block, and the next ones little.  Ties need no care: prefixes
 * are whole keys.
 *
 * Memory: two more blocks a run, for the buffer and the passes over it.
 *-------------------------------------------------------------------------
 */
#include "merge/merge.h"

/* Up to so many runs, merging two by two beats sorting: 6 passes of 2 ns against 17 ns. */
#define MAX_PAIRWISE	64

/*
 * Lets the merge work by gathering, through a buffer of `room` entries that the caller lends (16-byte
 * aligned).  No source has more than `block_entries` entries in a block, or in a batch (ws_gather_share);
 * slices are taken by so many.  Returns false, and changes nothing, if it cannot: prefixes are not whole
 * keys, the kernel is not vectorised, or the buffer cannot hold two blocks of each source.
 */
bool
ws_merge_gather(WsMerge *merge, Size block_entries, WsEntry *buffer, Size room, bool vectorised)
{
	Size		need = merge->nsources * block_entries;

	if (!merge->whole || merge->nsources < 2 || !vectorised || 2 * need > room)
		return false;
	for (int i = 0; i < merge->nsources; i++)
	{
		WsSource   *s = &merge->sources[i];

		s->block_entries = block_entries;
		if (!s->from_run && s->rows == NULL)
			s->end = s->next;	/* nothing is loaded yet */
	}
	merge->gathered = buffer;
	merge->scratch = buffer + need;
	return true;
}

/*
 * Merges two sorted arrays into `out`, from both ends at the same time (quadsort's parity merge): that
 * the processor can do the one while it waits for what the other compares makes 2 ns an entry out of 6.
 */
static void
merge_two(const WsEntry *a, Size na, const WsEntry *b, Size nb, WsEntry *out)
{
	const WsEntry *aend = a + na;
	const WsEntry *bend = b + nb;
	WsEntry    *outend = out + na + nb;
	ptrdiff_t	steps;

	/* for so many steps neither array can be used up; gcc 12 makes no branches of this */
	while ((steps = Min(aend - a, bend - b) / 2) > 0)
		for (; steps > 0; steps--)
		{
			int			least = ws_entry_int(*b) < ws_entry_int(*a);
			int			last = ws_entry_int(bend[-1]) < ws_entry_int(aend[-1]);
			const WsEntry *front = least ? b : a;
			const WsEntry *back = last ? aend : bend;

			*out++ = *front;
			*--outend = back[-1];
			b += least;
			a += 1 - least;
			aend -= last;
			bend -= 1 - last;
		}
	while (a < aend && b < bend)
		*out++ = ws_entry_int(*b) < ws_entry_int(*a) ? *b++ : *a++;
	memcpy(out, a, (aend - a) * sizeof(WsEntry));
	memcpy(out + (aend - a), b, (bend - b) * sizeof(WsEntry));
}

/*
 * Merges n sorted segments that lie one behind the other in merge->gathered;
 * the lengths are used up.
 */
static void
merge_pairwise(WsMerge *merge, Size *lengths, int n)
{
	while (n > 1)
	{
		const WsEntry *from = merge->gathered;
		WsEntry    *to = merge->scratch;
		int			merged = 0;

		for (int i = 0; i < n; i += 2)
		{
			Size		na = lengths[i];
			Size		nb = i + 1 < n ? lengths[i + 1] : 0;

			merge_two(from, na, from + na, nb, to);
			from += na + nb;
			to += na + nb;
			lengths[merged++] = na + nb;
		}
		n = merged;
		to = merge->scratch;
		merge->scratch = merge->gathered;
		merge->gathered = to;
	}
}

/* How many of n sorted entries are not above `bound`. */
static Size
count_upto(const WsEntry *entries, Size n, ws_uint128 bound)
{
	Size		low = 0;

	while (n > 0)
	{
		Size		half = n / 2;

		if (ws_entry_int(entries[low + half]) <= bound)
		{
			low += half + 1;
			n -= half + 1;
		}
		else
			n = half;
	}
	return low;
}

/*
 * The entry up to which all sources have their entries in memory, and have no more than `share` of them.
 * A run of rows whose block is used up need not have loaded the next one, as long as other sources have
 * entries less than those: so a block comes when it is due, and not when its predecessor is used up.
 */
static ws_uint128
find_bound(WsMerge *merge, ptrdiff_t share)
{
	for (;;)
	{
		ws_uint128	bound = ws_entry_int(WS_ENTRY_MAX);
		ws_uint128	least = bound;	/* that is in memory */
		WsSource   *due = NULL;

		for (int i = 0; i < merge->nsources; i++)
		{
			WsSource   *s = &merge->sources[i];

			if (s->next == s->end)
			{
				if (s->rows != NULL && !ws_source_is_used_up(s) && !ws_rows_in_is_there(s->rows, s->run))
				{
					ws_uint128	before = ws_entry_int(s->following);

					before -= before > 0;
					if (due == NULL || before < bound)
						due = s;
					bound = Min(bound, before);
					continue;
				}
				if ((s->rows != NULL && ws_source_is_used_up(s)) || !ws_source_load(s))
					continue;
			}
			least = Min(least, ws_entry_int(*s->next));
			if (s->end - s->next > share)
				bound = Min(bound, ws_entry_int(s->next[share - 1]));
			else if (!ws_source_at_last_block(s))
				bound = Min(bound, ws_entry_int(s->end[-1]));
		}
		if (due == NULL || least <= bound)
			return bound;
		(void) ws_source_load(due);
	}
}

/*
 * Gathers and sorts the next batch into merge->gathered; returns the number of
 * entries, 0 at the end of all runs.
 */
Size
ws_merge_gather_next(WsMerge *merge)
{
	ws_uint128	bound;
	Size		lengths[MAX_PAIRWISE];
	int			segments = 0;
	Size		total = 0;
	ptrdiff_t	share = (ptrdiff_t) ws_gather_share(merge->nsources);

	bound = find_bound(merge, share);
	for (int i = 0; i < merge->nsources; i++)
	{
		WsSource   *s = &merge->sources[i];
		Size		n;

		if (s->next == s->end || ws_entry_int(*s->next) > bound)
			continue;
		n = count_upto(s->next, s->end - s->next, bound);
		memcpy(merge->gathered + total, s->next, n * sizeof(WsEntry));
		s->next += n;
		total += n;
		if (segments < MAX_PAIRWISE)
			lengths[segments] = n;
		segments++;
	}
	if (segments <= MAX_PAIRWISE)
		merge_pairwise(merge, lengths, segments);
	else
		ws_sort_vectorised(merge->gathered, total);
	return total;
}
