/*-------------------------------------------------------------------------
 * runlist.c - the live runs of a sort: those that are still to be merged.
 *
 * Of runs of rows the beginnings of all blocks are kept, too, for the read order (rowread.c).
 *
 * Runs of which many follow one another (chain.c) need not be merged yet, though they are more than one merge
 * has blocks for: up to four times as many.
 *
 * Memory: 120 bytes a run, and 16 a block of rows.
 *-------------------------------------------------------------------------
 */
#include "run/run.h"

#include "utils/memutils.h"

/* Are there so many beginnings that their numbers could pass 32 bits with as many more?  That is an error. */
void
ws_starts_check(Size n)
{
	if (n > WS_MOST_STARTS)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many blocks in a sort"),
				 errhint("Raise work_mem, or wiscsort.block_size.")));
}

/* Adds the beginnings of the n blocks of a run, which the caller keeps. */
void
ws_starts_add(WsFormation *f, const WsBlockStart *starts, uint32 n)
{
	ws_starts_check((Size) f->nstarts + n);
	if (f->nstarts + n > f->max_starts)
	{
		uint32		more = Max(n, f->max_starts / 2);
		Size		bytes = (f->max_starts + more) * sizeof(WsBlockStart);

		ws_account_add(f->account, more * sizeof(WsBlockStart));
		f->max_starts += more;
		f->starts = f->starts == NULL ? MemoryContextAllocHuge(GetMemoryChunkContext(f), bytes) :
			repalloc_huge(f->starts, bytes);
	}
	memcpy(f->starts + f->nstarts, starts, n * sizeof(WsBlockStart));
	f->nstarts += n;
}

/* Forgets all of them: they are in the order of the last merge. */
void
ws_starts_free(WsFormation *f)
{
	if (f->starts == NULL)
		return;
	ws_account_subtract(f->account, f->max_starts * sizeof(WsBlockStart));
	pfree(f->starts);
	f->starts = NULL;
	f->nstarts = f->max_starts = 0;
}

static int
compare_uint32(const void *a, const void *b)
{
	uint32		x = *(const uint32 *) a;
	uint32		y = *(const uint32 *) b;

	return (x > y) - (x < y);
}

/* Forgets those of n runs. */
static void
starts_drop(WsFormation *f, const WsRun *runs, int n)
{
	uint32	   *numbers = palloc(Max(n, 1) * sizeof(uint32));
	uint32		left = 0;
	bool		dropped = false;

	for (int i = 0; i < n; i++)
		numbers[i] = runs[i].number;
	qsort(numbers, n, sizeof(uint32), compare_uint32);
	for (uint32 i = 0; i < f->nstarts; i++)
	{
		const WsBlockStart *start = &f->starts[i];
		uint32		run = start->run;

		/* those of a run follow one another */
		if (i == 0 || run != start[-1].run)
			dropped = bsearch(&run, numbers, n, sizeof(uint32), compare_uint32) != NULL;
		if (!dropped)
			f->starts[left++] = *start;
	}
	f->nstarts = left;
	pfree(numbers);
}

/* Adds a live run. */
void
ws_formation_add_run(WsFormation *f, WsRun run)
{
	if (f->nruns == f->max_runs)
	{
		int			more = Max(16, f->max_runs);

		ws_account_add(f->account, more * sizeof(WsRun));
		f->max_runs += more;
		f->runs = f->runs == NULL ?
			MemoryContextAlloc(GetMemoryChunkContext(f), f->max_runs * sizeof(WsRun)) :
			repalloc(f->runs, f->max_runs * sizeof(WsRun));
	}
	f->runs[f->nruns++] = run;
	f->stats.bytes += run.rows ? (int64) run.units * (int64) WS_ROWS_UNIT :
		ws_run_bytes(run.nentries, run.block_size);
}

/* Releases the first n live runs, which have been merged. */
void
ws_formation_drop_runs(WsFormation *f, int n)
{
	for (int i = 0; i < n; i++)
		if (!f->runs[i].rows)
			ws_run_release(&f->home, &f->runs[i]);
	starts_drop(f, f->runs, n);
	memmove(f->runs, f->runs + n, (f->nruns - n) * sizeof(WsRun));
	f->nruns -= n;
}

/* How many live runs there are of a level. */
int
ws_formation_runs_of_level(const WsFormation *f, int level)
{
	int			n = 0;

	for (int i = 0; i < f->nruns; i++)
		n += f->runs[i].level == level;
	return n;
}

/* Of the runs that a merge has blocks for, so many times as many may wait in chains. */
#define CHAINED		4

/* Have there come to be so many runs of a level that they should be merged, if `most` is what may be? */
bool
ws_formation_too_many(const WsFormation *f, int level, int most)
{
	int			n = ws_formation_runs_of_level(f, level);

	return n > most && (n > CHAINED * f->fan_in || ws_formation_count_chains(f, level) > most);
}

/* The same of level 0, while the piece that is being filled has no entry: it is not written. */
bool
ws_formation_is_crowded(const WsFormation *f)
{
	/* so that what is in the IndexMap still finds room among fan_in */
	return f->overflowed && f->map->count == (Size) f->current * f->piece &&
		ws_formation_too_many(f, 0, Max(1, f->fan_in - 2 * f->npieces + 1));
}
