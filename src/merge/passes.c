/*-------------------------------------------------------------------------
 * passes.c - the merges that a sort needs, and the stream at its end.
 *
 * When about `fan_in` runs of a level exist they are merged into one run of the next
 * level (balanced merge), so that the number of runs stays logarithmic and any input can be
 * sorted in any work_mem.  The final merge is left to the reader.
 *
 * Runs of a level live in one file, which is used again once they have been
 * merged: with L levels the disk holds each entry at most about twice.
 *
 * Memory: an intermediate merge happens when the IndexMap is empty, and reads through
 * its memory; the final merge shares it with entries that were not written.
 * On error nothing is left that its owners do not clean up.
 *-------------------------------------------------------------------------
 */
#include "merge/merge.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

/* Entries moved from a merge to a run at a time. */
#define COPY_ENTRIES	1024

/*
 * Prepares for the merges of what `formation` writes to `files`, in CurrentMemoryContext.  `watch`, if it is
 * not NULL, is told how they go.
 */
WsPasses *
ws_passes_create(WsFormation *formation, WsFileSet *files, WsWatch *watch)
{
	WsPasses   *p = palloc0(sizeof(WsPasses));

	p->formation = formation;
	p->files = files;
	p->watch = watch;
	return p;
}

/* A merge of the pieces of the IndexMap, perhaps as prefixes guess. */
static WsMerge *
merge_pieces(WsFormation *f, bool as_guessed)
{
	int			n = f->current + 1;
	WsMerge    *merge = ws_merge_create(f->spec, f->rows, NULL, n,
										f->guesses != WS_GUESSES_NONE && !as_guessed);

	for (int i = 0; i < n; i++)
		ws_merge_slice(merge, i, f->pieces[i]->entries, f->pieces[i]->n);
	ws_merge_start(merge);
	return merge;
}

/* May all files of the first n live runs be read by helpers? */
static bool
helpers_may_read(WsFormation *f, int n)
{
	for (int i = 0; i < n; i++)
		if (!ws_runs_allow_helpers(&f->home, f->runs[i].level))
			return false;
	return true;
}

/*
 * A merge of the first n live runs and of what is kept in the IndexMap, through
 * the rest of its memory.  If there is three times the memory it needs, it gathers.  Perhaps it goes as
 * prefixes guess.
 */
static WsMerge *
merge_runs(WsPasses *p, int n, bool as_guessed)
{
	WsFormation *f = p->formation;
	WsReader   *reader = ws_reader_plain(p->files, helpers_may_read(f, n));
	WsRun	   *runs = palloc(n * sizeof(WsRun));
	int		   *lengths = palloc(n * sizeof(int));
	const WsRun *run = memcpy(runs, f->runs, n * sizeof(WsRun));
	int			chains = ws_formation_chains(f, runs, n, lengths);
	int			nsources = chains + (f->nkept > 0 ? lengthof(f->kept) : 0);
	WsMerge    *merge = ws_merge_create(f->spec, f->rows, reader, nsources,
										f->guesses != WS_GUESSES_NONE && !as_guessed);
	Size		kept = TYPEALIGN(64, f->nkept * sizeof(WsEntry));
	Size		blocks = nsources * f->block_size;
	Size		bytes = 3 * nsources <= f->fan_in ? 3 * blocks : blocks;
	char	   *buffers = ws_indexmap_borrow(f->map, kept + bytes) + kept;

	for (int i = 0; i < chains; run += lengths[i++])
		ws_merge_chain(merge, i, run, lengths[i], buffers + i * f->block_size);
	pfree(lengths);
	pfree(runs);
	f->stats.chains = chains < n ? chains : 0;
	if (f->in_order)
		ws_merge_in_order(merge);
	if (f->nkept > 0)
	{
		ws_merge_slice(merge, chains, f->map->entries, f->kept[0]);
		ws_merge_slice(merge, chains + 1, f->map->entries + f->kept[0], f->kept[1]);
	}
	if (!ws_merge_gather(merge, ws_block_capacity(f->block_size), (WsEntry *) (buffers + blocks),
						 (bytes - blocks) / sizeof(WsEntry), f->vectorised))
		ws_merge_start(merge);
	return merge;
}

/* Writes what a merge delivers as one run; no more than may be asked for. */
static WsRun
write_merged(WsPasses *p, WsMerge *merge, int level)
{
	WsFormation *f = p->formation;
	uint64		nentries = merge->stream.count;
	WsRunWriter writer;
	WsEntry		batch[COPY_ENTRIES];
	Size		n;

	if (f->bound != NULL)
		merge->stream.count = nentries = Min(nentries, f->bound->rows);
	ws_run_write_begin(&writer, &f->home, nentries, f->block_size,
					   f->next_number++, level, f->block, NULL);
	while ((n = ws_stream_next(&merge->stream, batch, COPY_ENTRIES)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		ws_run_write(&writer, batch, n);
		ws_watch_merged(p->watch, n);
	}
	ws_merge_free(merge);
	return ws_run_write_end(&writer);
}

/* Youngest first: any number of runs next to each other span one arrival interval. */
static int
youngest_first(const void *a, const void *b)
{
	const WsRun *x = a;
	const WsRun *y = b;

	return (x->arrival < y->arrival) - (x->arrival > y->arrival);
}

/* Lowest level first, then youngest.  While rows come in, runs of a higher level are older. */
static int
lowest_first(const void *a, const void *b)
{
	const WsRun *x = a;
	const WsRun *y = b;

	return x->level != y->level ? x->level - y->level : youngest_first(a, b);
}

/*
 * How many times entries are merged in all, as far as can be told: `pass` times now, once more unless this
 * is the last, and more often if more runs are to come than one merge takes.
 */
static int
passes_expected(const WsFormation *f, int pass, bool last)
{
	double		each = (double) f->stats.entries / Max(f->stats.formed, 1);
	double		runs = Max(f->expected, (double) f->stats.entries) / Max(each, 1);
	int			passes = 1;

	for (; f->fan_in > 1 && runs > f->fan_in; runs /= f->fan_in)
		passes++;
	return Max(passes, last ? pass : pass + 1);
}

/* Merges the first n live runs into one, which is to be read in `any_order`. */
static void
merge_first(WsPasses *p, int n, bool any_order)
{
	WsFormation *f = p->formation;
	int			level = 0;
	uint32		arrival = PG_UINT32_MAX;
	uint64		entries = 0;
	WsRun		run;

	for (int i = 0; i < n; i++)
	{
		entries += f->runs[i].nentries;
		level = Max(level, f->runs[i].level);
		arrival = Min(arrival, f->runs[i].arrival);
	}
	if (level + 1 >= WS_MAX_LEVELS)
		elog(ERROR, "too many merge levels");
	/* rows that travel are all merged */
	if (f->bound != NULL && f->source == NULL)
		entries = Min(entries, f->bound->rows);
	if (p->watch != NULL)
		ws_watch_pass(p->watch, level + 1, passes_expected(f, level + 1, any_order), (int64) entries,
					  GetCurrentTimestamp());
	if (f->source != NULL)
		run = ws_rows_merge(p, n, level + 1, any_order);
	else
		run = write_merged(p, merge_runs(p, n, false), level + 1);
	run.arrival = arrival;
	/* some prefixes have no guesses any more */
	if (f->guesses == WS_GUESSES_RIGHT)
		f->guesses = WS_GUESSES_WRONG;
	/* with comparators, and with rows, the IndexMap may use only part of what merging may */
	ws_region_shrink(f->map->region, f->map->capacity * sizeof(WsEntry));
	f->map->room = Min(f->map->room, f->map->region->committed / sizeof(WsEntry));
	ws_formation_drop_runs(f, n);
	f->stats.passes = Max(f->stats.passes, level + 1);
	ws_formation_add_run(f, run);
	if (p->watch != NULL)
		ws_watch_passed(p->watch, GetCurrentTimestamp());
}

/* Has the runs from number `start` on, n of them, be the first. */
static void
put_first(WsFormation *f, int start, int n)
{
	WsRun	   *before = palloc(Max(start, 1) * sizeof(WsRun));

	memcpy(before, f->runs, start * sizeof(WsRun));
	memmove(f->runs, f->runs + start, n * sizeof(WsRun));
	memcpy(f->runs + n, before, start * sizeof(WsRun));
	pfree(before);
}

/* Merges n live runs that came one after the other: those with the fewest entries. */
static void
merge_fewest(WsPasses *p, int n)
{
	WsFormation *f = p->formation;
	uint64		entries = 0;
	uint64		fewest = PG_UINT64_MAX;
	int			start = 0;

	qsort(f->runs, f->nruns, sizeof(WsRun), youngest_first);
	for (int i = 0; i < f->nruns; i++)
	{
		entries += f->runs[i].nentries;
		if (i >= n)
			entries -= f->runs[i - n].nentries;
		if (i >= n - 1 && entries < fewest)
		{
			fewest = entries;
			start = i - n + 1;
		}
	}
	put_first(f, start, n);
	merge_first(p, n, false);
}

/*
 * Merges the n oldest live runs of a level.  What is left of it is younger than the result, so that runs of
 * a higher level stay older than those of a lower one.
 */
static void
merge_oldest(WsPasses *p, int level, int n)
{
	WsFormation *f = p->formation;
	int			end = 0;

	qsort(f->runs, f->nruns, sizeof(WsRun), lowest_first);
	while (end < f->nruns && f->runs[end].level <= level)
		end++;
	/* the oldest are the last of their level */
	put_first(f, end - n, n);
	merge_first(p, n, false);
}

/*
 * Of n runs of a level, how many are to be merged now.  Rows that travel are merged as often as their runs
 * are: of level 0 only so many, but not too few, that the runs still to be expected find room in the final
 * merge.
 */
static int
share_of_level(const WsFormation *f, int level, int n)
{
	double		each = (double) f->stats.entries / Max(f->stats.formed, 1);
	double		left = (f->expected - (double) f->stats.entries) / Max(each, 1);

	if (f->source == NULL || level > 0)
		return n;
	return (int) Max(n / 4 + 2, Min(left * 1.05 + 2 * f->npieces + 2, n));
}

/*
 * How many runs are merged at once while rows come in: some more than in the final merge, for those of all
 * pieces, if all of the memory has blocks for them.
 */
static int
most_at_once(const WsFormation *f)
{
	Size		blocks = f->map->region->limit / (f->source != NULL ? f->row_block : f->block_size);

	return Max(f->fan_in, (int) Min((Size) (f->fan_in + f->npieces), blocks));
}

/* Merges runs while rows come in, until there are few of each level.  Raises the errors of that. */
void
ws_passes_reduce(WsPasses *p)
{
	WsFormation *f = p->formation;
	int			most = Max(1, f->fan_in - f->npieces);

	ws_formation_empty(f);
	if (f->source != NULL)
		f->source->yield(f->source->store);
	for (int level = 0; ws_formation_too_many(f, level, most) || (level == 0 && ws_formation_may_chain(f));
		 level++)
	{
		int			n = ws_formation_runs_of_level(f, level);

		/* what was a chain may be none any more */
		if (n > most_at_once(f) && ws_formation_count_chains(f, level) > f->fan_in)
			n = most_at_once(f);
		merge_oldest(p, level, share_of_level(f, level, n));
	}
	ws_formation_resume(f);
}

/* Merges until one merge is enough for all runs.  Raises the errors of that. */
void
ws_passes_narrow(WsPasses *p)
{
	WsFormation *f = p->formation;

	while (f->nruns > f->fan_in && ws_formation_count_chains(f, -1) > f->fan_in)
		merge_fewest(p, Min(f->fan_in, f->nruns - f->fan_in + 1));
}

/*
 * Has all rows so far, of `bytes` bytes, travel, whose entries are in runs: makes one run of rows of
 * these.  Raises the errors of that.
 */
void
ws_passes_depart(WsPasses *p, Size bytes)
{
	WsFormation *f = p->formation;
	int			n = f->nruns;
	WsRun		run;

	if (n == 0)
		return;
	run = ws_rows_write_merged(p, merge_runs(p, n, false), bytes, 0, false);
	ws_region_shrink(f->map->region, 0);
	f->map->room = 0;
	ws_formation_drop_runs(f, n);
	ws_runs_drop(&f->home);
	ws_formation_add_run(f, run);
}

/* All entries as one run on disk, for readers that need any entry at any time. */
static WsStream *
single_run(WsPasses *p)
{
	WsFormation *f = p->formation;

	if (f->nruns > 1 || f->source != NULL)
		merge_first(p, f->nruns, true);
	if (f->source != NULL)
		return ws_rows_stream(p);
	ws_region_shrink(f->map->region, 0);
	return ws_stream_of_run(ws_reader_plain(p->files, helpers_may_read(f, 1)), &f->runs[0], f->block);
}

/*
 * Ends the input: sorts what is left, and merges until one merge is enough.  `reading` is what
 * the reader of the result wants of the memory, in bytes.  Raises the errors of that.
 */
void
ws_passes_end(WsPasses *p, bool random_access, Size reading)
{
	WsFormation *f = p->formation;

	p->reading = reading;
	ws_formation_end(f, random_access, reading);
	if (f->source != NULL)
		f->source->yield(f->source->store);
	ws_passes_narrow(p);
}

/* The final merge of runs, or of pieces: as prefixes guess, if there are guesses and they are right. */
static WsMerge *
merge_finally(WsPasses *p)
{
	WsFormation *f = p->formation;
	bool		as_guessed = f->guesses == WS_GUESSES_RIGHT;
	WsMerge    *merge;

	if (as_guessed)
	{
		merge = f->overflowed ? merge_runs(p, f->nruns, true) : merge_pieces(f, true);
		as_guessed = ws_merge_verify(merge);
		ws_merge_free(merge);
	}
	return f->overflowed ? merge_runs(p, f->nruns, as_guessed) : merge_pieces(f, as_guessed);
}

/*
 * All entries in order, after ws_passes_end with the same `random_access`: as a stream that can be
 * read from any place if that is set, else perhaps by a merge.  To be called once.  The stream belongs to its
 * context, at or below CurrentMemoryContext, and reads from the formation's memory and files.
 * With keys that are not exact it may hold pointers into rows, which must stay where they are.
 */
WsStream *
ws_passes_stream(WsPasses *p, bool random_access)
{
	WsFormation *f = p->formation;

	if (f->nruns == 0 && (random_access || f->in_order || f->map->count <= f->piece) && f->nkept == 0)
		return ws_stream_of_array(f->map, f->map->count);
	if (random_access)
		return single_run(p);
	if (!f->overflowed)
		return &merge_finally(p)->stream;
	f->stats.passes++;
	ws_region_shrink(f->map->region, f->nkept * sizeof(WsEntry));
	f->map->room = 0;
	if (f->source != NULL)
		return &ws_rows_final(p)->stream;
	return &merge_finally(p)->stream;
}
