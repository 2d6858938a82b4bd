/*-------------------------------------------------------------------------
 * merge.c - the merge of sorted sources into one sequence of entries.
 *
 * Sources are runs, read a block at a time through a buffer that the caller
 * lends, or slices of the IndexMap.  A loser tree picks the least entry.  Ties
 * that the prefix does not settle are settled by the rows, unless the prefix
 * holds the whole key.
 *
 * Memory: 64 bytes or so a source, and the buffers lent.  Errors are those of
 * reading a run; they leave the merge unusable, and its memory to its context.
 *-------------------------------------------------------------------------
 */
#include "merge/merge.h"

#include "miscadmin.h"

static int
break_tie(void *arg, WsEntry a, WsEntry b)
{
	WsMerge    *merge = arg;
	MemoryContext old;
	int			cmp;

	if (ws_key_complete(merge->spec, a))
		return 0;
	old = MemoryContextSwitchTo(merge->tie_context);
	cmp = ws_key_compare_rows(merge->spec, merge->rows,
							  ws_entry_pointer(a), ws_entry_pointer(b));
	MemoryContextSwitchTo(old);
	return cmp;
}

/*
 * Creates a merge of `nsources` >= 1 sources in CurrentMemoryContext.  Each
 * source is to be given by ws_merge_slice or ws_merge_run before
 * ws_merge_start.
 */
WsMerge *
ws_merge_create(const WsKeySpec *spec, const WsKeyRows *rows, int nsources)
{
	WsMerge    *merge = palloc0(sizeof(WsMerge));

	merge->spec = spec;
	merge->rows = rows;
	merge->nsources = nsources;
	merge->sources = palloc0(nsources * sizeof(WsSource));
	ws_losertree_init(&merge->tree, nsources, palloc0(nsources * sizeof(WsTreeNode)),
					  spec->exact ? NULL : break_tie, merge);
	if (!spec->exact)
		merge->tie_context = AllocSetContextCreate(CurrentMemoryContext, "WiscSort ties",
												   ALLOCSET_DEFAULT_SIZES);
	return merge;
}

/* Makes n sorted entries in memory a source; they stay the caller's. */
void
ws_merge_slice(WsMerge *merge, int source, const WsEntry *entries, Size n)
{
	merge->sources[source].next = entries;
	merge->sources[source].end = entries + n;
}

/* Makes a run a source, read through `buffer` (block_size bytes). */
void
ws_merge_run(WsMerge *merge, int source, const WsRun *run, char *buffer)
{
	WsSource   *s = &merge->sources[source];

	s->from_run = true;
	s->block = 0;
	ws_run_read_begin(&s->reader, run, buffer);
}

/* The next entry of a source, or WS_ENTRY_MAX behind its last. */
static inline WsEntry
source_next(WsSource *s)
{
	if (unlikely(s->next == s->end))
	{
		Size		n;

		if (!s->from_run)
			return WS_ENTRY_MAX;
		s->next = ws_run_block(&s->reader, s->block, &n);
		if (s->next == NULL)
		{
			s->end = NULL;
			return WS_ENTRY_MAX;
		}
		s->end = s->next + n;
		s->block++;
	}
	return *s->next++;
}

/* Reads the first entry of every source and plays the first matches. */
void
ws_merge_start(WsMerge *merge)
{
	WsEntry    *first = palloc(merge->nsources * sizeof(WsEntry));

	if (!merge->spec->exact)
		merge->rows->ready(merge->rows->store);
	for (int i = 0; i < merge->nsources; i++)
		first[i] = source_next(&merge->sources[i]);
	ws_losertree_build(&merge->tree, first);
	pfree(first);
}

/*
 * Writes the next entries in order to `out`, at most `max`, and returns how
 * many they are; 0 only at the end.
 */
Size
ws_merge_next(WsMerge *merge, WsEntry *out, Size max)
{
	Size		n = 0;

	CHECK_FOR_INTERRUPTS();
	if (merge->tie_context != NULL)
		MemoryContextReset(merge->tie_context);
	if (merge->nsources == 1)
	{
		/* nothing to compare: the tree's winner, then what follows it */
		WsEntry		e = merge->tree.winner.entry;

		while (n < max && ws_entry_pointer(e) != WS_POINTER_MASK)
		{
			out[n++] = e;
			e = source_next(&merge->sources[0]);
		}
		merge->tree.winner.entry = e;
		return n;
	}
	while (n < max && !ws_losertree_empty(&merge->tree))
	{
		WsSource   *s = &merge->sources[merge->tree.winner.source];

		out[n++] = merge->tree.winner.entry;
		ws_losertree_replace(&merge->tree, source_next(s));
	}
	return n;
}

/* Frees the merge; runs and buffers are not its own. */
void
ws_merge_free(WsMerge *merge)
{
	if (merge->tie_context != NULL)
		MemoryContextDelete(merge->tie_context);
	pfree(merge->tree.losers);
	pfree(merge->sources);
	pfree(merge);
}
