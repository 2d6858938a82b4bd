/*-------------------------------------------------------------------------
 * rowpasses.c - merges of runs of rows: into one run, and the final one.
 *
 * Memory goes to three things: a block of each run; blocks more to read ahead into (run/rowread.c); and,
 * if the rest is enough for it, the buffers by which a merge gathers.  Runs of entries, which point into
 * the spool, may take part: they are few (ws_passes_gather_runs).
 *
 * On error nothing is left that its owners do not clean up.
 *-------------------------------------------------------------------------
 */
#include "merge/merge.h"

#include "miscadmin.h"

/*
 * Blocks to read ahead into, at most and at least, of which the least is what a deep queue of reads gains
 * by.
 */
#define MOST_ASSIST		((Size) 64)
#define LEAST_ASSIST	((Size) 1)

/* Entries of rows moved from a merge to a run at a time. */
#define BATCH_ENTRIES	512

/* In the order in which their rows have come, so that rows with equal keys keep it. */
static int
arrival_order(const void *a, const void *b)
{
	const WsRun *x = a;
	const WsRun *y = b;

	return (x->arrival > y->arrival) - (x->arrival < y->arrival);
}

/* A merge of the first n live runs, those of rows first, through `memory` bytes of the IndexMap's memory. */
static WsMerge *
merge_row_runs(WsPasses *p, int n, Size memory)
{
	WsFormation *f = p->formation;
	bool		helper_safe = ws_file_allow_helpers(p->files, f->row_home.file);
	int			nrows = 0;
	Size		share = ws_gather_share(n);
	Size		entry_block = TYPEALIGN(WS_IO_ALIGN, f->block_size);
	Size		gather = TYPEALIGN(WS_IO_ALIGN, 2 * n * share * sizeof(WsEntry));
	Size		order = f->max_starts * sizeof(WsBlockStart) + f->nstarts * 16;
	Size		blocks;
	Size		buffers;
	char	   *base;
	WsReader   *reader;
	WsMerge    *merge;
	WsRowsIn   *in;
	MemoryContext old;

	for (int i = 0; i < n; i++)
	{
		helper_safe &= f->runs[i].rows || ws_runs_allow_helpers(&f->home, f->runs[i].level);
		nrows += f->runs[i].rows;
	}
	Assert(nrows > 0);
	qsort(f->runs, nrows, sizeof(WsRun), arrival_order);
	memory -= Min(order, memory / 2);
	blocks = (n - nrows) * entry_block;
	if (blocks + gather + (nrows + LEAST_ASSIST) * f->row_block > memory)
		gather = 0;
	buffers = memory > blocks + gather ? (memory - blocks - gather) / f->row_block : 0;
	buffers = Max(Min(buffers, nrows + MOST_ASSIST), nrows + LEAST_ASSIST);

	base = ws_indexmap_borrow(f->map, buffers * f->row_block + blocks + gather);
	reader = n > nrows ? ws_reader_plain(p->files, helper_safe) : NULL;
	merge = ws_merge_create(f->spec, f->rows, reader, n);
	merge->stream.helper_safe &= helper_safe;
	old = MemoryContextSwitchTo(merge->stream.context);
	in = ws_rows_in_create(ws_reader_ahead(p->files, helper_safe), f->source, &f->row_home, &f->stats.reads,
						   f->runs, nrows, f->starts, f->nstarts, base, buffers);
	MemoryContextSwitchTo(old);
	base += buffers * f->row_block;
	for (int i = 0; i < nrows; i++)
		ws_merge_rows(merge, i, in, i, &f->runs[i]);
	for (int i = nrows; i < n; i++, base += entry_block)
		ws_merge_run(merge, i, &f->runs[i], base);
	if (gather == 0 ||
		!ws_merge_gather(merge, share, (WsEntry *) base, gather / sizeof(WsEntry), f->vectorised))
		ws_merge_start(merge);
	return merge;
}

/*
 * Merges the first n live runs, of rows or not, into one of rows.  They stay live.  With `any_order`,
 * f->block_rows says where its rows are.
 */
WsRun
ws_rows_merge(WsPasses *p, int n, int level, bool any_order)
{
	WsFormation *f = p->formation;
	WsMerge    *merge = merge_row_runs(p, n, f->row_memory);
	WsRowWriter w;
	WsEntry		batch[BATCH_ENTRIES];
	WsBlockStart *starts;
	Size		bytes = 0;
	uint32		most;
	Size		got;
	WsRun		run;

	for (int i = 0; i < n; i++)
		bytes += f->runs[i].rows ? (Size) f->runs[i].units * f->row_block : 0;
	most = ws_rows_most_blocks(bytes, f->row_block);
	starts = MemoryContextAllocHuge(CurrentMemoryContext, most * sizeof(WsBlockStart));
	ws_rows_write_begin(&w, &f->row_home, f->source, f->next_number++, level,
						f->row_buffer, f->row_buffer_bytes, starts, most, false);
	if (any_order)
		w.rows = MemoryContextAllocHuge(CurrentMemoryContext, most * sizeof(uint64));
	ws_rows_in_recycle(merge->rows_in);
	while ((got = ws_stream_next(&merge->stream, batch, BATCH_ENTRIES)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		ws_rows_write(&w, batch, got);
	}
	ws_rows_write_last(&w);
	ws_merge_free(merge);
	run = ws_rows_write_end(&w);
	for (int i = 0; i < n; i++)
		if (f->runs[i].rows)
			run.arrival = Min(run.arrival, f->runs[i].arrival);
	ws_starts_add(f, w.starts, run.blocks);
	pfree(w.starts);
	if (any_order)
		ws_account_add(f->account, run.blocks * sizeof(uint64));
	f->block_rows = w.rows;
	return run;
}

/* The merge of all live runs, which leaves p->reading bytes of memory. */
WsMerge *
ws_rows_final(WsPasses *p)
{
	WsFormation *f = p->formation;
	int			nrows = 0;

	/* those of rows first */
	for (int i = 0; i < f->nruns; i++)
		if (f->runs[i].rows)
		{
			WsRun		run = f->runs[i];

			f->runs[i] = f->runs[nrows];
			f->runs[nrows++] = run;
		}
	return merge_row_runs(p, f->nruns, f->row_memory - Min(p->reading, f->row_memory / 2));
}

/* The one live run as a stream that can be read from any place. */
WsStream *
ws_rows_stream(WsPasses *p)
{
	WsFormation *f = p->formation;
	const Size	buffers = 2;
	bool		helper_safe = ws_file_allow_helpers(p->files, f->row_home.file);
	char	   *base;
	WsRowsIn   *in;

	ws_region_shrink(f->map->region, 0);
	f->map->room = 0;
	base = ws_indexmap_borrow(f->map, buffers * f->row_block);
	in = ws_rows_in_create(ws_reader_plain(p->files, helper_safe), f->source, &f->row_home, &f->stats.reads,
						   f->runs, 1, f->starts, f->nstarts, base, buffers);
	return ws_stream_of_rows(in, &f->runs[0], helper_safe, f->block_rows);
}
