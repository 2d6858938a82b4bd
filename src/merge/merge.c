/*-------------------------------------------------------------------------
 * merge.c - the merge of sorted sources into one sequence of entries.
 *
 * Sources are runs, read a block at a time through a buffer that the caller
 * lends, or slices of the IndexMap.  A loser tree picks the least entry.
 *
 * Ties that the prefix does not settle are settled by the rows.  An entry that
 * wins or loses meets up to log2(sources) others on its way; its row is read
 * once: each source keeps the next WS_TIED_BYTES key bytes of its current
 * entry, or its key columns for the comparator.  If prefixes guess by letters (key/alphabet.c), so do these.
 * Of the rows of a source with equal keys few are read.
 *
 * Where prefixes guess the order of keys, that would leave every match to the comparator.  So the final merge
 * goes by the guess, if it is right in every source: first once through, to compare each row with the one
 * before it, and if that finds none out of order, once more for the result.
 *
 * Runs of rows are read by rowread.c.  Their rows are in memory until the next call of `next`, and no longer:
 * a block whose entries have all been handed out is replaced by the next one only then, and
 * a batch ends where one has been used up.
 *
 * Memory: some 150 bytes a source, and the buffers lent; a row slot a source
 * that has been in a tie.  Errors are those of reading runs and rows; they
 * leave the merge unusable, and its memory to its context.
 *-------------------------------------------------------------------------
 */
#include "merge/merge.h"

#include <math.h>

#include "miscadmin.h"

static const WsStreamOps merge_ops;

/*
 * Entries after a tie for which another is expected: rows that are dear to fetch are prefetched then.  Others
 * are while one in TIES_WORTH entries has been read for a tie: asking the page table for a row takes as long
 * as reading it.
 */
#define TIES_LATELY		64
#define TIES_WORTH		3

/* Entries that are looked at ahead of the winner, and times that this is not done, at most. */
#define MOST_AHEAD		256
#define MOST_BLIND		1024

/* Rows that are compared, and prefetched, at a time when a guess is verified. */
#define VERIFIED_ENTRIES	512
#define PREFETCHED_ROWS		((Size) 16)

/*
 * Makes *tied that of the row of an entry: key bytes from `reach` on, if `guesses` with what a guess makes of
 * a value, or columns if `reach` is 0.  Reads the row if it is not.
 */
static void
make_tied(WsMerge *merge, WsTied *tied, WsEntry entry, Size reach, bool guesses)
{
	uint64		pointer = ws_entry_pointer(entry);

	if (tied->pointer == pointer)
		return;
	if (tied->slot == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(merge->stream.context);

		tied->slot = merge->rows->make_slot(merge->rows->store);
		MemoryContextSwitchTo(old);
	}
	merge->rows->fetch(merge->rows->store, pointer, tied->slot);
	merge->ties_lately = merge->rows->keep != NULL ? 2 * TIES_LATELY :
		Min(merge->ties_lately + TIES_WORTH, 2 * TIES_LATELY);
	if (reach > 0)
		tied->complete = (guesses ? ws_key_guessed_bytes : merge->wipes ? ws_key_certain_bytes : ws_key_bytes)
			(merge->spec, tied->slot->values, tied->slot->isnull, reach, WS_TIED_BYTES, tied->window) <=
			reach + WS_TIED_BYTES;
	tied->pointer = pointer;
}

/* What the prefix of an entry tells: most that are asked for have the one before. */
static const WsTold *
told_of(WsMerge *merge, WsEntry entry)
{
	if (!ws_entry_same_prefix(entry, merge->last_tied))
	{
		merge->told = ws_key_told(merge->spec, entry);
		merge->last_tied = entry;
	}
	return &merge->told;
}

/* Compares the keys of two entries with the same prefix, of which `told` is said, by their rows. */
static int
compare_tied(WsMerge *merge, const WsTold *told, WsEntry a, WsTied *x, WsEntry b, WsTied *y)
{
	MemoryContext old = MemoryContextSwitchTo(merge->tie_context);
	bool		guesses = told->what == WS_TOLD_GUESSED && !merge->wipes &&
		merge->spec->cols[told->columns].alphabet != NULL;
	bool		bytes = (told->what == WS_TOLD_IN_PART && told->reach > 0) || guesses;
	int			cmp = 0;

	make_tied(merge, x, a, bytes ? told->reach : 0, guesses);
	make_tied(merge, y, b, bytes ? told->reach : 0, guesses);
	if (bytes)
		cmp = memcmp(x->window, y->window, WS_TIED_BYTES);
	if (cmp == 0 && !(bytes && x->complete))
	{
		merge->compared++;
		cmp = ws_key_compare(merge->spec, told->columns, x->slot->values, x->slot->isnull,
							 y->slot->values, y->slot->isnull);
	}
	MemoryContextSwitchTo(old);
	return cmp;
}

static int
break_tie(void *arg, const WsTreeNode *a, const WsTreeNode *b)
{
	WsMerge    *merge = arg;
	const WsTold *told = told_of(merge, a->entry);

	if (told->what == WS_TOLD_ALL)
		return 0;
	return compare_tied(merge, told, a->entry, &merge->tied[a->source], b->entry, &merge->tied[b->source]);
}

/*
 * Creates a merge of `nsources` >= 1 sources, in a memory context of its own
 * under CurrentMemoryContext.  Each source is to be given by ws_merge_slice or
 * ws_merge_run, which reads through `reader`, before ws_merge_start.  The merge is a stream of all entries.
 * It goes by what prefixes guess, unless it wipes that out of them, so that comparators decide.
 */
WsMerge *
ws_merge_create(const WsKeySpec *spec, const WsKeyRows *rows, WsReader *reader, int nsources, bool wipes)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "WiscSort merge",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	WsMerge    *merge = palloc0(sizeof(WsMerge));

	merge->stream.ops = &merge_ops;
	merge->stream.context = context;
	/* ties read rows, and compare */
	merge->whole = ws_key_tells_all(spec);
	merge->stream.helper_safe = merge->whole && (reader == NULL || reader->helper_safe);
	merge->reader = reader;
	merge->wipes = wipes;
	merge->spec = spec;
	merge->rows = rows;
	merge->waiting = -1;
	merge->nsources = nsources;
	merge->sources = palloc0(nsources * sizeof(WsSource));
	ws_losertree_init(&merge->tree, nsources, palloc0(nsources * sizeof(WsTreeNode)),
					  merge->whole ? NULL : break_tie, merge);
	if (!merge->whole)
	{
		merge->last_tied = ws_entry_make(0, 0);
		merge->told = ws_key_told(spec, merge->last_tied);
		merge->tie_context = AllocSetContextCreate(context, "WiscSort ties",
												   ALLOCSET_SMALL_SIZES);
		merge->tied = palloc0(nsources * sizeof(WsTied));
		for (int i = 0; i < nsources; i++)
			merge->tied[i].pointer = WS_POINTER_MASK;
		merge->ahead.pointer = WS_POINTER_MASK;
		merge->far = MOST_AHEAD;
	}
	MemoryContextSwitchTo(old);
	return merge;
}

/* Makes n sorted entries in memory a source; they stay the caller's. */
void
ws_merge_slice(WsMerge *merge, int source, const WsEntry *entries, Size n)
{
	merge->stream.count += n;
	merge->sources[source].next = entries;
	merge->sources[source].end = merge->sources[source].limit = entries + n;
}

/* Makes a run a source, read through `buffer` (block_size bytes). */
void
ws_merge_run(WsMerge *merge, int source, const WsRun *run, char *buffer)
{
	WsSource   *s = &merge->sources[source];

	s->from_run = true;
	s->block = 0;
	merge->stream.count += run->nentries;
	ws_run_read_begin(&s->reader, merge->reader, run, buffer);
}

/*
 * The same with n runs of which each ends before the next one begins (run/chain.c), which the merge has
 * copies of.
 */
void
ws_merge_chain(WsMerge *merge, int source, const WsRun *runs, int n, char *buffer)
{
	WsSource   *s = &merge->sources[source];

	ws_merge_run(merge, source, runs, buffer);
	if (n == 1)
		return;
	s->nmore = n - 1;
	s->more = memcpy(MemoryContextAlloc(merge->stream.context, s->nmore * sizeof(WsRun)), runs + 1,
					 s->nmore * sizeof(WsRun));
	for (int i = 0; i < s->nmore; i++)
		merge->stream.count += s->more[i].nentries;
	merge->chained = true;
}

/*
 * Makes run number `run` of those that `rows` reads a source.  The merge's stream has its rows in memory
 * then.
 */
void
ws_merge_rows(WsMerge *merge, int source, WsRowsIn *rows, int run, const WsRun *described)
{
	WsSource   *s = &merge->sources[source];

	s->rows = merge->rows_in = rows;
	s->run = run;
	s->following = (WsEntry) {0, 0};
	merge->stream.count += described->nentries;
}

/* The next entry of a source, or WS_ENTRY_MAX behind its last. */
static inline WsEntry
source_next(const WsMerge *merge, WsSource *s)
{
	if (unlikely(s->next == s->end) && ((!s->from_run && s->rows == NULL) || !ws_source_load(s)))
		return WS_ENTRY_MAX;
	return unlikely(merge->wipes) ? ws_entry_wiped(merge->spec, *s->next++) : *s->next++;
}

/* Must the source's next block be loaded before its next entry is known, and is one to be expected? */
static inline bool
must_wait(const WsSource *s)
{
	return s->rows != NULL && s->next == s->end && !ws_source_is_used_up(s);
}

static void
forget_tied(WsTied *tied)
{
	tied->pointer = WS_POINTER_MASK;
	if (tied->slot != NULL)
		tied->slot->pointer = WS_POINTER_MASK;
}

/*
 * Loads the block that a source has been waiting for: the rows that the last batch has brought of it are gone
 * now.  Returns its first entry.
 */
static WsEntry
end_waiting(WsMerge *merge)
{
	int			source = merge->waiting;

	merge->waiting = -1;
	/* other rows will be where those were that ties have seen */
	if (merge->tied != NULL)
	{
		forget_tied(&merge->tied[source]);
		forget_tied(&merge->ahead);
	}
	return source_next(merge, &merge->sources[source]);
}

/*
 * Says, before ws_merge_start, that entries have no prefixes because their rows came in order: pointers are
 * their order, and nothing is tied.
 */
void
ws_merge_in_order(WsMerge *merge)
{
	merge->tree.tie = NULL;
	merge->tied = NULL;
	merge->tie_context = NULL;	/* a helper may be reading */
	merge->stream.helper_safe = merge->reader == NULL || merge->reader->helper_safe;
}

/*
 * Reads the first entry of every source and plays the first matches.  Not
 * called if the merge gathers.
 */
void
ws_merge_start(WsMerge *merge)
{
	WsEntry    *first = palloc(merge->nsources * sizeof(WsEntry));

	if (!merge->whole)
		merge->rows->ready(merge->rows->store);
	for (int i = 0; i < merge->nsources; i++)
		first[i] = source_next(merge, &merge->sources[i]);
	ws_losertree_build(&merge->tree, first);
	pfree(first);
}

/*
 * Prefixes do not tell whether `next` has the key of the winner, whose prefix it has.  Where the winner was
 * tied, the last entry with that prefix in the source's block is compared with it: if their keys are equal,
 * so are those of all between them.  If not, a nearer one is the next time, or none for a while (as in
 * Timsort's galloping).
 */
static bool
equal_ahead(WsMerge *merge, WsEntry winner)
{
	int			number = merge->tree.winner.source;
	WsSource   *source = &merge->sources[number];
	WsTied	   *tied = &merge->tied[number];
	const WsEntry *last = source->next;

	if (source->equal > 0)
	{
		source->equal--;
		return true;
	}
	if (tied->pointer != ws_entry_pointer(winner) || merge->wipes)
		return false;
	if (merge->blind > 0)
	{
		merge->blind--;
		return false;
	}
	while (last < source->end && last - source->next < merge->far && ws_entry_same_prefix(*last, winner))
		last++;
	if (last == source->next)
		return false;
	if (compare_tied(merge, told_of(merge, winner), winner, tied, last[-1], &merge->ahead) != 0)
	{
		merge->far = Max(1, (last - source->next) / 4);
		if (merge->far == 1)
			merge->blind = merge->blinded = Min(2 * merge->blinded + 1, MOST_BLIND);
		return false;
	}
	merge->far = Min(2 * merge->far, MOST_AHEAD);
	merge->blinded = 0;
	source->equal = last - source->next;
	return true;
}

/*
 * Is the key of `next`, whose prefix is its predecessor's, the predecessor's, who has won?
 * Sources hold rows of disjoint spans of arrival order, so that of two rows of
 * a source with equal keys no row of another source can come between them.  That is not said of chains of
 * runs, in which rows with equal prefixes are in one run unless prefixes and arrival are all that counts.
 */
static inline bool
same_key(WsMerge *merge, WsEntry next, WsEntry winner)
{
	if (ws_entry_pointer(next) == WS_POINTER_MASK)
		return false;
	if (merge->tied == NULL)
		return !merge->chained;
	return told_of(merge, next)->what == WS_TOLD_ALL || equal_ahead(merge, winner);
}

/* Raises what was met in reading runs, and counts what was read. */
static void
merge_raise(WsStream *stream)
{
	WsMerge    *merge = (WsMerge *) stream;

	if (merge->rows_in != NULL)
		ws_rows_in_raise(merge->rows_in);
	if (merge->reader == NULL)
		return;
	/* a helper is writing to the sources: no look at them without need */
	for (int i = 0; merge->reader->failed && i < merge->nsources; i++)
		if (merge->sources[i].from_run)
			ws_run_read_raise(&merge->sources[i].reader);
	ws_reader_count(merge->reader);
}

/* The next entries in order, by gathering, from the one source, or by the tournament. */
static Size
take(WsMerge *merge, WsEntry *out, Size max)
{
	Size		n = 0;

	if (merge->gathered != NULL)
	{
		if (merge->taken == merge->ngathered)
		{
			merge->ngathered = ws_merge_gather_next(merge);
			merge->taken = 0;
		}
		n = Min(max, merge->ngathered - merge->taken);
		memcpy(out, merge->gathered + merge->taken, n * sizeof(WsEntry));
		merge->taken += n;
		return n;
	}
	if (merge->nsources == 1)
	{
		/* nothing to compare: the tree's winner, then what follows it */
		WsEntry		e = merge->waiting < 0 ? merge->tree.winner.entry : end_waiting(merge);

		while (n < max && ws_entry_pointer(e) != WS_POINTER_MASK)
		{
			out[n++] = e;
			if (must_wait(&merge->sources[0]))
			{
				merge->waiting = 0;
				break;
			}
			e = source_next(merge, &merge->sources[0]);
		}
		merge->tree.winner.entry = e;
		return n;
	}
	if (merge->waiting >= 0)
		ws_losertree_replace(&merge->tree, end_waiting(merge));
	while (n < max && !ws_losertree_empty(&merge->tree))
	{
		WsEntry		winner = merge->tree.winner.entry;
		WsSource   *source = &merge->sources[merge->tree.winner.source];
		WsEntry		next;

		if (must_wait(source))
		{
			merge->waiting = merge->tree.winner.source;
			out[n++] = winner;
			break;
		}
		next = source_next(merge, source);

		if (merge->ties_lately > 0 && --merge->ties_lately >= TIES_LATELY && source->equal == 0 &&
			source->next < source->end)
			merge->rows->prefetch(merge->rows->store, ws_entry_pointer(*source->next));
		out[n++] = winner;
		if (ws_entry_same_prefix(next, winner) && same_key(merge, next, winner))
			merge->tree.winner.entry = next;	/* wins again, unplayed */
		else
			ws_losertree_replace(&merge->tree, next);
	}
	return n;
}

static Size
merge_next(WsStream *stream, WsEntry *out, Size max)
{
	WsMerge    *merge = (WsMerge *) stream;
	Size		n;

	/* otherwise this may be a helper */
	if (merge->tie_context != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(merge->tie_context);
	}
	max = Min(max, stream->count - stream->taken);
	n = max > 0 ? take(merge, out, max) : 0;
	stream->taken += n;
	return n;
}

static const WsStreamOps merge_ops = {merge_next, merge_raise, NULL, NULL};

/*
 * Prefetches the rows of two entries that are neighbours, if these will have to be compared; *certain is of
 * one before them.
 */
static inline void
prefetch_guessed(WsMerge *merge, WsEntry a, WsEntry b, WsCertain *certain)
{
	if (!ws_same_certainly(certain, b))
		*certain = ws_key_certain(merge->spec, b);
	if (!certain->guessed || !ws_same_certainly(certain, a))
		return;
	merge->rows->prefetch(merge->rows->store, ws_entry_pointer(a));
	merge->rows->prefetch(merge->rows->store, ws_entry_pointer(b));
}

/*
 * Reads all of a merge that goes by a guess.  Has each row a key that is not smaller than the one
 * before it, and do prefixes tell most rows apart?
 */
bool
ws_merge_verify(WsMerge *merge)
{
	const WsKeyRows *rows = merge->rows;
	WsEntry		batch[VERIFIED_ENTRIES];
	WsEntry		last = {0, 0};
	bool		has_last = false;
	bool		fetched = false;	/* its row is in the slot that is not current */
	WsKeySlot  *slots[2];
	int			current = 0;
	bool		right = true;
	uint64		verified = 0;
	WsCertain	certain = ws_key_certain(merge->spec, last);
	WsCertain	ahead = certain;
	MemoryContext old = MemoryContextSwitchTo(merge->stream.context);
	Size		n;

	slots[0] = rows->make_slot(rows->store);
	slots[1] = rows->make_slot(rows->store);
	while (right && (n = ws_stream_next(&merge->stream, batch, VERIFIED_ENTRIES)) > 0)
	{
		/* two passes with so many ties, and what is verified, against comparing all the way up the tree */
		if (2.0 * merge->compared + verified > merge->stream.taken * log2(merge->nsources))
			right = false;
		MemoryContextSwitchTo(merge->tie_context);
		for (Size i = 1; i < Min(n, PREFETCHED_ROWS); i++)
			prefetch_guessed(merge, batch[i - 1], batch[i], &ahead);
		for (Size i = 0; i < n && right; i++)
		{
			if (i + PREFETCHED_ROWS < n)
				prefetch_guessed(merge, batch[i + PREFETCHED_ROWS - 1], batch[i + PREFETCHED_ROWS],
								 &ahead);
			if (!ws_same_certainly(&certain, batch[i]))
				certain = ws_key_certain(merge->spec, batch[i]);
			if (!certain.guessed)
				continue;
			/* what is certain may tell them apart */
			if (has_last && ws_same_certainly(&certain, last))
			{
				if (!fetched)
					rows->fetch(rows->store, ws_entry_pointer(last), slots[1 - current]);
				rows->fetch(rows->store, ws_entry_pointer(batch[i]), slots[current]);
				right = ws_key_compare(merge->spec, certain.columns, slots[1 - current]->values,
									   slots[1 - current]->isnull, slots[current]->values,
									   slots[current]->isnull) <= 0;
				current = 1 - current;
				fetched = true;
				verified++;
			}
			else
				fetched = false;
			last = batch[i];
			has_last = true;
		}
		MemoryContextSwitchTo(merge->stream.context);
	}
	MemoryContextSwitchTo(old);
	return right;
}

/* Frees the merge and its reader; runs and buffers are not its own. */
void
ws_merge_free(WsMerge *merge)
{
	if (merge->rows_in != NULL)
		ws_rows_in_free(merge->rows_in);
	if (merge->reader != NULL)
		merge->reader->ops->close(merge->reader);
	MemoryContextDelete(merge->stream.context);
}
