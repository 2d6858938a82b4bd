/*-------------------------------------------------------------------------
 * rowpasses.c - merges of runs of rows: into one run, and the final one.
 *
 * Memory goes to three things: a block of each run; blocks more to read ahead into (run/rowread.c), 64 for
 * each tablespace that the runs are in, unless the request says otherwise; and, if the rest is enough for it,
 * the buffers by which a merge gathers.
 *
 * On error nothing is left that its owners do not clean up.
 *-------------------------------------------------------------------------
 */
#include "merge/merge.h"

#include "miscadmin.h"

/* Blocks to read ahead into, for each file that the runs are in, unless a number was asked for. */
#define ASSIST			64

/* Entries of rows moved from a merge to a run at a time. */
#define BATCH_ENTRIES	512

/* Of these so many come before gathering: a wait costs more than what that saves. */
#define AHEAD_FIRST		16

/* In the order in which their rows have come, so that rows with equal keys keep it. */
static int
arrival_order(const void *a, const void *b)
{
	const WsRun *x = a;
	const WsRun *y = b;

	return (x->arrival > y->arrival) - (x->arrival < y->arrival);
}

/* Sets how many blocks there have to be besides those of n runs in `width` files, and how many are of use. */
static void
blocks_ahead(const WsMergeReads *reads, int n, int width, Size *least, Size *most)
{
	switch (reads->method)
	{
		case WS_READ_ORDER:
			*most = reads->assist < 0 ? (Size) ASSIST * width : (Size) reads->assist;
			*least = Min(*most, 1);
			break;
		case WS_READ_BLOCK:
			*most = *least = 0;
			break;
		case WS_READ_DOUBLE:
			*most = *least = n;
			break;
	}
}

/*
 * A merge of the first n live runs through `memory` bytes, some of which the block starts have.  If it is the
 * final one, these go; if not, the disk that the runs have is written to as they are read.
 */
static WsMerge *
merge_row_runs(WsPasses *p, int n, Size memory, bool final)
{
	WsFormation *f = p->formation;
	bool		helper_safe = ws_file_allow_helpers(p->files, f->row_home.file);
	Size		share = ws_gather_share(n);
	Size		gather = TYPEALIGN(WS_IO_ALIGN, 2 * n * share * sizeof(WsEntry));
	Size		order;
	Size		least = 0;
	Size		most = 0;
	Size		buffers;
	char	   *base;
	WsMerge    *merge;
	WsRowsIn   *in;
	MemoryContext old;
	WsReader   *reader;

	qsort(f->runs, n, sizeof(WsRun), arrival_order);
	merge = ws_merge_create(f->spec, f->rows, NULL, n, f->guesses != WS_GUESSES_NONE);
	merge->stream.helper_safe &= helper_safe;
	old = MemoryContextSwitchTo(merge->stream.context);
	f->stats.reads.io = f->row_reads.io;
	f->stats.reads.method = f->row_reads.method;
	reader = ws_reader_async(p->files, f->row_home.file, helper_safe, &f->stats.reads.io);
	if (reader == NULL)
		reader = ws_reader_ahead(p->files, helper_safe);
	in = ws_rows_in_create(reader, f->source, &f->row_home, !final, f->row_reads.method, &f->stats.reads,
						   f->runs, n, f->starts, f->nstarts);
	if (final)
		ws_starts_free(f);
	order = ws_rows_in_bytes(in) + f->max_starts * sizeof(WsBlockStart);
	memory -= Min(order, memory / 2);
	blocks_ahead(&f->row_reads, n, ws_file_width(p->files, f->row_home.file), &least, &most);
	if (gather + (n + Max(least, Min(most, AHEAD_FIRST))) * f->row_block > memory)
		gather = 0;
	buffers = (memory - Min(gather, memory)) / f->row_block;
	buffers = Max(Min(buffers, n + most), n + least);

	base = ws_indexmap_borrow(f->map, buffers * f->row_block + gather);
	ws_rows_in_begin(in, base, buffers);
	MemoryContextSwitchTo(old);
	base += buffers * f->row_block;
	for (int i = 0; i < n; i++)
		ws_merge_rows(merge, i, in, i, &f->runs[i]);
	if (gather == 0 ||
		!ws_merge_gather(merge, share, (WsEntry *) base, gather / sizeof(WsEntry), f->vectorised))
		ws_merge_start(merge);
	return merge;
}

/*
 * Writes what a merge delivers, about `bytes` bytes of rows, as one run of rows, and frees the merge.  With
 * `any_order`, f->block_rows says where its rows are.
 */
WsRun
ws_rows_write_merged(WsPasses *p, WsMerge *merge, Size bytes, int level, bool any_order)
{
	WsFormation *f = p->formation;
	uint32		most = ws_rows_most_blocks(bytes, f->row_block);
	WsBlockStart *starts = MemoryContextAllocHuge(CurrentMemoryContext, most * sizeof(WsBlockStart));
	WsRowWriter w;
	WsEntry		batch[BATCH_ENTRIES];
	Size		got;
	WsRun		run;

	ws_rows_write_begin(&w, &f->row_home, f->source, f->next_number++, level,
						f->row_buffer, f->row_buffer_bytes, starts, most, NULL);
	if (any_order)
		w.rows = MemoryContextAllocHuge(CurrentMemoryContext, most * sizeof(uint64));
	while ((got = ws_stream_next(&merge->stream, batch, BATCH_ENTRIES)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		ws_rows_write(&w, batch, got);
		ws_watch_merged(p->watch, got);
	}
	ws_rows_write_last(&w);
	ws_merge_free(merge);
	run = ws_rows_write_end(&w);
	ws_starts_add(f, w.starts, run.blocks);
	pfree(w.starts);
	if (any_order)
		ws_account_add(f->account, run.blocks * sizeof(uint64));
	f->block_rows = w.rows;
	return run;
}

/* Merges the first n live runs into one.  They stay live, but for the disk that they had. */
WsRun
ws_rows_merge(WsPasses *p, int n, int level, bool any_order)
{
	WsFormation *f = p->formation;
	WsMerge    *merge = merge_row_runs(p, n, f->row_memory, false);
	Size		bytes = 0;

	for (int i = 0; i < n; i++)
		bytes += (Size) f->runs[i].units * WS_ROWS_UNIT;
	return ws_rows_write_merged(p, merge, bytes, level, any_order);
}

/* The merge of all live runs, which leaves p->reading bytes of memory. */
WsMerge *
ws_rows_final(WsPasses *p)
{
	WsFormation *f = p->formation;

	return merge_row_runs(p, f->nruns, f->row_memory - Min(p->reading, f->row_memory / 2), true);
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
	in = ws_rows_in_create(ws_reader_plain(p->files, helper_safe), f->source, &f->row_home, false,
						   WS_READ_ORDER, &f->stats.reads, f->runs, 1, f->starts, f->nstarts);
	ws_rows_in_begin(in, base, buffers);
	return ws_stream_of_rows(in, &f->runs[0], helper_safe, f->block_rows);
}
