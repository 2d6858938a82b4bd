/*-------------------------------------------------------------------------
 * again.c - a sort that begins again, because the page cache does not hold its rows.
 *
 * Rows that wait in a file are fetched in sorted order, which is fast in memory, and a read of its own for
 * each row elsewhere.  How much memory there is was found out before (exec/request.c), and others may have
 * taken it since, or the limit of a container may have been lowered.  Then all rows are read once more, in
 * the order in which they came, which the device does at its full speed, and sorted so that they travel
 * inside runs.  That is about as much as the sort would have cost if this had been known.
 *
 * Looked at: samples of the file's pages, at the end of the input; and page faults that wait while rows
 * are handed out.  As long as these have cost less than a share of what beginning again would, it goes on
 * (who may stop at any row rents before he buys).
 *
 * Both sorts are stable, so that their orders are the same, and rows that have been handed out are passed
 * over.  The last of them is compared.
 *
 * Memory: that of the first sort is given back before the second begins.  Disk: the store gives back what
 * has been read, where the file system can.  On error both go with their owners.
 *-------------------------------------------------------------------------
 */
#include "sort/again.h"

#include <sys/resource.h>

#include "access/htup_details.h"
#include "executor/executor.h"
#include "miscadmin.h"

/* Rows between two looks, and between two looks for an interrupt. */
#define LOOK_ROWS		4096
#define INTERRUPT_ROWS	1024

/* Share of the file that is gone: enough to begin again at once, and enough to believe the faults. */
#define GONE			0.25
#define SOME_GONE		0.05

/* A page fault that waits, in microseconds, and the bytes that a sort begun again comes to in one. */
#define FAULT_US		80.0
#define BYTES_PER_US	200.0

/* Of what beginning again costs, the share that faults must have cost. */
#define RENT			0.25

/* Page faults of this process, helpers included, that had to wait for a device. */
static int64
waiting_faults(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_majflt : 0;
}

/*
 * Starts a sort, as ws_sorter_create does, in CurrentMemoryContext.
 */
WsSort *
ws_sort_create(const WsRequest *request, TupleDesc desc, Relation rel)
{
	WsSort	   *sort = palloc0(sizeof(WsSort));

	sort->next_look = PG_UINT64_MAX;
	sort->sorter = ws_sorter_create(request, desc, rel);
	return sort;
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

/* The first sort's rows, in the order in which they came, into another one, which is the sort from now on. */
static void
put_again(WsSort *sort)
{
	WsSorter   *first = sort->sorter;
	const WsStoreOps *ops = first->store->ops;
	WsRequest  *request = palloc(sizeof(WsRequest));
	TupleTableSlot *row = ops->scan(first->store);
	WsSorter   *s;
	uint64		rows = 0;

	*request = *first->request;
	request->allowance = 0;
	request->again = false;
	request->rows = (double) first->formation->stats.entries;
	/* nobody reads entries any more */
	ws_formation_close(first->formation);
	s = ws_sorter_create(request, row->tts_tupleDescriptor, NULL);
	sort->first = first;
	sort->sorter = s;
	for (; row != NULL; row = ops->scan(first->store))
	{
		if (rows++ % INTERRUPT_ROWS == 0)
			CHECK_FOR_INTERRUPTS();
		ws_sorter_put(s, row);
	}
	ws_sorter_perform(s);
	s->mark_position = first->mark_position;
	s->mark_eof = first->mark_eof;
}

/*
 * Sorts all rows again.  `slot` has the row that was got last, and then has it again, or is NULL if there
 * is none.
 */
static void
begin_again(WsSort *sort, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(sort->sorter->context);
	HeapTuple	last = NULL;

	sort->next_look = PG_UINT64_MAX;
	sort->rows_before = sort->sorter->position;
	if (slot != NULL)
	{
		last = ExecCopySlotHeapTuple(slot);
		ExecClearTuple(slot);
	}
	put_again(sort);
	if (last != NULL)
	{
		pass_over(sort->sorter, sort->rows_before - 1, slot);
		if (!ws_sorter_get(sort->sorter, true, slot) ||
			!is_same(ExecFetchSlotHeapTuple(slot, false, NULL), last))
			elog(ERROR, "a sort that began again came to another order");
		heap_freetuple(last);
	}
	MemoryContextSwitchTo(old);
}

/* Ends the input and sorts, as ws_sorter_perform does; begins again, or begins to watch. */
void
ws_sort_perform(WsSort *sort)
{
	WsSorter   *s = sort->sorter;
	const WsRequest *request = s->request;

	ws_sorter_perform(s);
	if (!request->again || !s->on_disk || s->travels || s->store->ops->scan == NULL)
		return;
	if (request->again_at >= 0)
		sort->next_look = (uint64) request->again_at;
	if (request->again_at == 0 ||
		(request->again_at < 0 && s->store->ops->absent(s->store) >= GONE))
		begin_again(sort, NULL);
	else if (request->again_at < 0)
	{
		sort->next_look = LOOK_ROWS;
		sort->faults_before = waiting_faults();
	}
}

/* Would beginning again be less than what is to be expected of going on? */
static bool
is_worth_it(const WsSort *sort)
{
	const WsSorter *s = sort->sorter;
	double		waited = (double) (waiting_faults() - sort->faults_before) * FAULT_US;
	double		rows = (double) s->position;
	double		left = (double) s->formation->stats.entries - rows;
	double		price = (double) ws_fileset_bytes(s->files) / BYTES_PER_US;

	return waited >= price * RENT && waited / rows * left > price &&
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
		sort->next_look += LOOK_ROWS;
}

/* What EXPLAIN ANALYZE shows: of the sort as it began again, if it has. */
void
ws_sort_stats(const WsSort *sort, WsSortStats *stats)
{
	WsSortStats first;

	ws_sorter_stats(sort->sorter, stats);
	if (sort->first == NULL)
		return;
	ws_sorter_stats(sort->first, &first);
	stats->again = true;
	stats->rows_before = sort->rows_before;
	stats->memory = Max(first.memory, stats->memory + (int64) sort->first->account.now);
	stats->disk = first.store.twice ? first.disk + stats->disk : Max(first.disk, stats->disk);
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
	pfree(sort);
}
