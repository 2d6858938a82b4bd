/*-------------------------------------------------------------------------
 * again.c - a sort that begins again, because the page cache does not hold its rows.
 *
 * Rows that wait in a file, or in their table, are fetched in sorted order, which is fast in memory, and a
 * read of its own for each row elsewhere.  How much memory there is was found out before
 * (exec/request.c), and others may have taken it since, or the limit of a container may have been
 * lowered.  Then all rows are read once more, in the order in which they came, or lie in their table
 * (tableorder.c), which the device does at its full speed, and sorted so that they travel inside runs.
 * That is about as much as the sort would have cost if this had been known, and a scan of the table more.
 *
 * If it is known before the first row that memory does not hold the table, although the plan says so, each
 * row is copied when it comes, while its block is in memory for the scan (tablerows.c).
 *
 * Looked at: samples of the file's or the table's pages, at the end of the input; and, while rows are handed
 * out, page faults that wait, and what the store waits for its reads.  As long as these have cost less than
 * a share of what beginning again would, it goes on (who may stop at any row rents before he buys).
 *
 * From a file, all rows are sorted again.  Both sorts are stable, so that their orders are the same, and
 * rows that have been handed out are passed over.  The last of them is compared: if it is another one, a
 * comparison function is not consistent, and the sort ends with an error.  From a table, only rows
 * that have not been handed out are: equal keys may come in another order than in the first sort.  So one
 * that is to be read from any place begins again before its first row, or not at all.
 *
 * Memory: that of the first sort is given back before the second begins.  Pointers to rows of a table are
 * there twice for a while, and are sorted with a quarter of the memory, 8 MB at most.  Disk: so are the
 * first one's runs, and the store gives back what has been read, where the file system can; from a table,
 * 16 bytes a row are there until the end of the second sort's input.  On error all goes with its owners.
 *-------------------------------------------------------------------------
 */
#include "sort/again.h"

#include <sys/resource.h>

#include "access/htup_details.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/regproc.h"

/* Rows between two looks, at least, and of those before; and between two looks for an interrupt. */
#define LOOK_ROWS		4096
#define LOOK_SHARE		16
#define INTERRUPT_ROWS	1024

/* Share of the rows' pages that is gone: enough to begin again at once, and enough to believe the faults. */
#define GONE			0.25
#define SOME_GONE		0.05

/* Bytes that a sort begun again comes to in a microsecond. */
#define BYTES_PER_US	200.0

/* Of what beginning again costs, the share that faults must have cost. */
#define RENT			0.25

/* Bytes that pointers to rows of a table are sorted with, beside the second sort. */
#define MOST_ORDERING	((Size) 8 * 1024 * 1024)
#define LEAST_ORDERING	((Size) 64 * 1024)

/* Page faults of this process, helpers included, that had to wait for a device. */
static int64
waiting_faults(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_majflt : 0;
}

/* The request of a sort of copies of the rows, which have the columns of the table if there is one. */
static WsRequest *
request_of_copies(const WsRequest *first)
{
	WsRequest  *request = palloc(sizeof(WsRequest));

	*request = *first;
	request->store = WS_KIND_SPOOL;
	if (request->columns != NULL)
		request->attnos = request->columns;
	request->ties = WS_TIES_NONE;
	request->columns = NULL;
	request->again = request->again && request->copies;
	request->copies = false;
	return request;
}

/* The same for one that begins again after `first`: rows travel from the first on. */
static WsRequest *
request_again(const WsSorter *first)
{
	WsRequest  *request = request_of_copies(first->request);

	request->allowance = 0;
	request->rows = (double) first->formation->stats.entries;
	/* from a table only those rows come that are asked for, and have not been handed out */
	if (first->store->ops->rest != NULL)
		request->wanted = 0;
	return request;
}

/*
 * Starts a sort, as ws_sorter_create does, in CurrentMemoryContext.  With request->copies, rows of `rel` are
 * copied as they come.
 */
WsSort *
ws_sort_create(const WsRequest *request, TupleDesc desc, Relation rel)
{
	WsSort	   *sort = palloc0(sizeof(WsSort));

	sort->next_look = PG_UINT64_MAX;
	if (request->copies)
	{
		MemoryContext old;

		sort->copying = AllocSetContextCreate(CurrentMemoryContext, "WiscSort copies", ALLOCSET_SMALL_SIZES);
		old = MemoryContextSwitchTo(sort->copying);
		sort->copies = ws_table_rows_create(rel, request->needed, true);
		request = request_of_copies(request);
		desc = sort->copies->desc;
		rel = NULL;
		MemoryContextSwitchTo(old);
	}
	sort->rel = rel;
	sort->sorter = ws_sorter_create(request, desc, rel);
	return sort;
}

/* Takes in a copy of the row of the table of which `slot` has the TID and the keys. */
void
ws_sort_put_copy(WsSort *sort, TupleTableSlot *slot)
{
	ws_sorter_put(sort->sorter, ws_table_rows_fetch(sort->copies, slot));
}

/* Passes rows over that had been handed out before, through `slot`. */
static void
pass_over(WsSorter *s, uint64 rows, TupleTableSlot *slot)
{
	if (rows > 0 && s->request->random_access)
	{
		s->store->ops->seek(s->store, rows);
		s->position = rows;
	}
	while (s->position < rows)
	{
		if (s->position % INTERRUPT_ROWS == 0)
			CHECK_FOR_INTERRUPTS();
		if (!ws_sorter_get(s, true, slot))
			elog(ERROR, "sorted row " UINT64_FORMAT " is missing", s->position);
	}
}

/* Are these the same row? */
static bool
is_same(HeapTuple a, HeapTuple b)
{
	const Size	header = offsetof(HeapTupleHeaderData, t_bits);

	return a->t_len == b->t_len && a->t_data->t_hoff == b->t_data->t_hoff &&
		memcmp((char *) a->t_data + header, (char *) b->t_data + header, a->t_len - header) == 0;
}

/* The error of a second sort whose order is not that of the first.  Names the operators of the sort. */
static void __attribute__((noreturn, cold))
report_other_order(const WsRequest *request)
{
	char	   *operators = format_operator(request->sortops[0]);

	for (int i = 1; i < request->ncols; i++)
		operators = psprintf("%s, %s", operators, format_operator(request->sortops[i]));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
			 errmsg("a comparison function of the sort by %s is not consistent", operators),
			 errdetail("The sort began again, because its rows had left memory, and came to another order."),
			 errhint("Check the operator classes of these operators, or set wiscsort.enable to off.")));
}

/*
 * Gives back all that the first sort has beside its rows: entries in memory and in runs, and what read them.
 * Its store no longer hands out rows in order.
 */
static void
end_order(WsSorter *first)
{
	WsFormation *f = first->formation;

	if (first->output != NULL)
		MemoryContextDelete(first->output);
	first->output = NULL;
	ws_formation_drop_runs(f, f->nruns);
	ws_runs_drop(&f->home);
	ws_sorter_end_entries(first);
}

/* The rows of the first sort, in the order in which they came, into another one; returns that. */
static WsSorter *
put_scanned(WsSorter *first)
{
	const WsStoreOps *ops = first->store->ops;
	TupleTableSlot *row = ops->scan(first->store);
	WsSorter   *s;
	uint64		rows = 0;

	end_order(first);
	s = ws_sorter_create(request_again(first), row->tts_tupleDescriptor, NULL);
	for (; row != NULL; row = ops->scan(first->store))
	{
		if (rows++ % INTERRUPT_ROWS == 0)
			CHECK_FOR_INTERRUPTS();
		ws_sorter_put(s, row);
	}
	return s;
}

/* Rows that it has not handed out, in the order of their table, into another one; returns that. */
static WsSorter *
put_from_table(WsSort *sort, WsSorter *first)
{
	WsRequest  *request = request_again(first);
	Size		memory = Max(Min(request->memory / 4, MOST_ORDERING), LEAST_ORDERING);
	WsTableOrder *order = ws_table_order_create(first->request, sort->rel, memory);
	TupleTableSlot *row;
	WsSorter   *s;
	uint64		rows = 0;
	uint64		pointer;

	sort->order = order;
	while (first->store->ops->rest(first->store, &pointer))
	{
		if (rows++ % INTERRUPT_ROWS == 0)
			CHECK_FOR_INTERRUPTS();
		ws_table_order_put(order, pointer);
	}
	ws_sorter_end_output(first);
	ws_table_order_perform(order);
	request->memory = Max(request->memory - Min(memory, request->memory), LEAST_ORDERING);
	s = ws_sorter_create(request, order->rows->desc, NULL);
	for (rows = 0; (row = ws_table_order_next(order)) != NULL; rows++)
	{
		if (rows % INTERRUPT_ROWS == 0)
			CHECK_FOR_INTERRUPTS();
		ws_sorter_put(s, row);
	}
	ws_table_order_end(order);
	return s;
}

/* Sorts rows again.  `slot` has the row that was got last, and then has it again; NULL: there is none. */
static void
begin_again(WsSort *sort, TupleTableSlot *slot)
{
	WsSorter   *first = sort->sorter;
	WsSorter   *s;
	MemoryContext old = MemoryContextSwitchTo(first->context);
	WsFigures  *figures = first->request->watch != NULL ? first->request->watch->figures : NULL;
	HeapTuple	last = NULL;

	sort->next_look = PG_UINT64_MAX;
	sort->rows_before = first->position;
	if (figures != NULL)
		figures->stage = WS_STAGE_SORT;
	if (slot != NULL)
	{
		last = ExecCopySlotHeapTuple(slot);
		ExecClearTuple(slot);
	}
	s = sort->rel != NULL ? put_from_table(sort, first) : put_scanned(first);
	sort->first = first;
	sort->sorter = s;
	ws_sorter_perform(s);
	s->mark_position = first->mark_position;
	s->mark_eof = first->mark_eof;
	if (last != NULL && sort->rel != NULL)
		ExecForceStoreHeapTuple(last, slot, true);
	else if (last != NULL)
	{
		pass_over(s, sort->rows_before - 1, slot);
		if (!ws_sorter_get(s, true, slot) || !is_same(ExecFetchSlotHeapTuple(slot, false, NULL), last))
			report_other_order(s->request);
		heap_freetuple(last);
	}
	if (figures != NULL && sort->rows_before > 0)
		figures->stage = WS_STAGE_OUTPUT;
	MemoryContextSwitchTo(old);
}

/* Are its rows where they may leave memory, and can they be sorted again? */
static bool
may_begin_again(const WsSorter *s)
{
	return s->request->again && s->store->ops->toll != NULL &&
		(s->store->ops->rest != NULL || (s->on_disk && !s->travels));
}

/* What beginning again costs, in microseconds. */
static double
price(const WsStoreToll *toll)
{
	return toll->bytes / BYTES_PER_US;
}

/* At the end of the input: have so many rows left memory that it does not pay to begin handing them out? */
static bool
is_gone(const WsSorter *s)
{
	const WsStoreOps *ops = s->store->ops;
	double		gone;
	WsStoreToll toll;

	/* not each time for few rows of a large table */
	if (ops->rest != NULL && s->formation->stats.entries < LOOK_ROWS)
		return false;
	gone = ops->absent(s->store);
	if (gone < GONE)
		return false;
	toll = ops->toll(s->store);
	return gone * toll.reads * toll.read_us > price(&toll);
}

/* Ends the input and sorts, as ws_sorter_perform does; begins again, or begins to watch. */
void
ws_sort_perform(WsSort *sort)
{
	WsSorter   *s = sort->sorter;
	const WsRequest *request = s->request;

	if (sort->copies != NULL)
		ws_table_rows_clear(sort->copies);
	ws_sorter_perform(s);
	if (!may_begin_again(s))
		return;
	if (request->again_at == 0 || (request->again_at < 0 && is_gone(s)))
	{
		begin_again(sort, NULL);
		return;
	}
	if (sort->rel != NULL && request->random_access)
		return;
	sort->next_look = request->again_at > 0 ? (uint64) request->again_at : LOOK_ROWS;
	sort->faults_before = waiting_faults();
}

/* Would beginning again be less than what is to be expected of going on? */
static bool
is_worth_it(const WsSort *sort)
{
	const WsSorter *s = sort->sorter;
	WsStoreToll toll = s->store->ops->toll(s->store);
	double		waited = (double) (waiting_faults() - sort->faults_before) * WS_FAULT_US + toll.waited_us;
	double		rows = (double) s->position;
	double		all = (double) s->formation->stats.entries;
	double		left = (s->bound != NULL ? Min(all, (double) s->bound->rows) : all) - rows;

	return waited >= price(&toll) * RENT && waited / rows * left > price(&toll) &&
		s->store->ops->absent(s->store) >= SOME_GONE;
}

/*
 * Looks whether to begin again, and does so.  `slot` has the row that was got last, and still has it
 * afterwards.
 */
void
ws_sort_look(WsSort *sort, TupleTableSlot *slot)
{
	if (sort->sorter->request->again_at >= 0 || is_worth_it(sort))
		begin_again(sort, slot);
	else
		sort->next_look += Max(LOOK_ROWS, sort->next_look / LOOK_SHARE);
}

/* Adds what was fetched from the table before a sort began again. */
static void
add_fetched(WsStoreStats *all, const WsStoreStats *first)
{
	all->windows |= first->windows;
	all->window_rows = Max(all->window_rows, first->window_rows);
	all->blocks_direct += first->blocks_direct;
	all->blocks_buffered += first->blocks_buffered;
	all->persistent |= first->persistent;
	all->ties_in_table |= first->ties_in_table;
	all->ties_spooled |= first->ties_spooled;
	all->tie_rows += first->tie_rows;
}

/* What EXPLAIN ANALYZE shows: of the sort as it began again, if it has, and of what it did before. */
void
ws_sort_stats(const WsSort *sort, WsSortStats *stats)
{
	WsSortStats first;

	ws_sorter_stats(sort->sorter, stats);
	if (sort->first == NULL)
		return;
	ws_sorter_stats(sort->first, &first);
	stats->runs.entries = first.runs.entries;
	stats->runs.bytes += first.runs.bytes;
	stats->store.spooled += first.store.spooled;
	add_fetched(&stats->store, &first.store);
	stats->wanted = first.wanted;
	stats->passed = first.passed;
	stats->again = true;
	stats->rows_before = sort->rows_before;
	if (sort->order != NULL)
	{
		const WsSortStats *order = &sort->order->stats;

		stats->memory = Max(first.memory, stats->memory) + order->memory;
		stats->disk = Max(first.disk, stats->disk) + order->disk;
		return;
	}
	stats->memory = Max(first.memory, stats->memory + (int64) sort->first->account.now);
	stats->disk = first.store.twice ? first.disk + stats->disk : Max(first.disk, stats->disk);
	/* what of the first one's rows has been read is given back by and by */
	if (sort->sorter->request->watch != NULL)
		stats->disk = Max(stats->disk, sort->sorter->request->watch->disk_peak);
}

/* Ends the sort: closes its files, releases its memory.  NULL is fine. */
void
ws_sort_destroy(WsSort *sort)
{
	if (sort == NULL)
		return;
	ws_sorter_destroy(sort->sorter);
	/* below which the second one was */
	ws_sorter_destroy(sort->first);
	if (sort->copying != NULL)
		MemoryContextDelete(sort->copying);
	pfree(sort);
}
