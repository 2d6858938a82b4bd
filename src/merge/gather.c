/*-------------------------------------------------------------------------
 * gather.c - merging runs of exact keys by sorting, a batch at a time.
 *
 * A tournament costs log2(runs) unpredictable comparisons an entry, one after
 * the other: 25 ns for 3 runs, 45 ns for 46.  Sorting a few thousand entries
 * with vqsort costs 8 ns an entry, whatever their number of sources.  So where
 * memory allows it, and a vectorised kernel is there:
 *
 *	1. Every run has a block in memory.  The least of their last entries is the
 *	   bound: no block that is still on disk has an entry below it.  (FMsort's
 *	   block read order is the sequence of these bounds.)
 *	2. The entries up to the bound are copied from all blocks into one buffer.
 *	3. The buffer is sorted and handed out.
 *
 * Each batch uses up at least one block, so that it holds about a block's
 * worth of entries.  Ties need no care: prefixes are whole keys.
 *
 * Memory: a second block a run, for the buffer.
 *-------------------------------------------------------------------------
 */
#include "merge/merge.h"

/*
 * Lets the merge work by gathering, through a buffer of `room` entries that
 * the caller lends (16-byte aligned).  Returns false, and changes nothing, if
 * it cannot: keys are not exact, the kernel is not vectorised, a source is not
 * a run, or the buffer cannot hold a block of each.
 */
bool
ws_merge_gather(WsMerge *merge, WsEntry *buffer, Size room)
{
	Size		need = 0;

	if (!merge->spec->exact || merge->nsources < 2 || !ws_sort_is_vectorised())
		return false;
	for (int i = 0; i < merge->nsources; i++)
	{
		if (!merge->sources[i].from_run)
			return false;
		need += ws_block_capacity(merge->sources[i].reader.run.block_size);
	}
	if (need > room)
		return false;
	merge->gathered = buffer;
	return true;
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
 * Gathers and sorts the next batch into merge->gathered; returns the number of
 * entries, 0 at the end of all runs.
 */
Size
ws_merge_gather_next(WsMerge *merge)
{
	ws_uint128	bound = ws_entry_int(WS_ENTRY_MAX);
	Size		total = 0;

	for (int i = 0; i < merge->nsources; i++)
	{
		WsSource   *s = &merge->sources[i];

		if (s->next == s->end && !ws_source_load(s))
			continue;
		if (!ws_run_is_last_block(&s->reader))
			bound = Min(bound, ws_entry_int(s->end[-1]));
	}
	for (int i = 0; i < merge->nsources; i++)
	{
		WsSource   *s = &merge->sources[i];
		Size		n = count_upto(s->next, s->end - s->next, bound);

		memcpy(merge->gathered + total, s->next, n * sizeof(WsEntry));
		s->next += n;
		total += n;
	}
	ws_sort_entries(merge->gathered, total);
	return total;
}
