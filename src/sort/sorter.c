/*-------------------------------------------------------------------------
 * sorter.c - one sort from first row to last: put, perform, get.
 *
 * Ties the parts together in the order in which a row meets them: the key of the row, the
 * store for the row itself, formation and passes for the entry, and the stream of
 * sorted entries by which the store hands rows out again.  Knows nothing of plans, and
 * not which store there is.
 *
 * Memory is divided by budget.c, and counted in the sorter's account.
 *
 * Reading: a cursor that only moves forward reads the final merge as a stream.
 * Random access (backward, mark and restore, rewind) is given when asked for:
 * by the sorted IndexMap itself, or after a MergePass by a final run on disk.
 *
 * On error, files and memory go with their owners: the resource owner, and the sorter's context.
 *-------------------------------------------------------------------------
 */
#include "sort/sorter.h"

#include "utils/memutils.h"

/*
 * Starts a sort of rows of type `desc`, in a memory context
 * of its own under CurrentMemoryContext.  The request outlives it.  Raises what
 * core's sort raises for columns that cannot be sorted.
 *
 * `rel`, if the request's store is the heap, is the table that has the rows: it stays open and locked,
 * the first column of `desc` is their TID, and what is got is its rows.
 */
WsSorter *
ws_sorter_create(const WsRequest *request, TupleDesc desc, Relation rel)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "WiscSort",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	WsSorter   *sorter = palloc0(sizeof(WsSorter));
	WsStoreContext parts = {.request = request, .desc = desc, .rel = rel};

	sorter->context = context;
	sorter->request = request;
	sorter->budget = ws_budget(request);
	sorter->spec = ws_keyspec_create(desc, request->ncols, request->attnos, request->sortops,
									 request->collations, request->nulls_first, request->notnull);
	sorter->fetch = ws_key_fetch_create(sorter->spec, desc);
	sorter->entry_bytes = sizeof(WsEntry) + ws_ties_bytes_per_entry(sorter->spec);
	sorter->files = ws_fileset_create(&request->threads, request->stays);
	ws_fileset_stripe(sorter->files, request->extent);
	ws_fileset_watch(sorter->files, request->watch);
	parts.spec = sorter->spec;
	parts.files = sorter->files;
	parts.account = &sorter->account;
	sorter->store = ws_store_create(&parts);
	sorter->formation = ws_formation_create(sorter->spec, sorter->store->keys, &request->threads,
											&sorter->account, sorter->files, request->vectorised,
											request->rows, request->memory);
	if (request->wanted > 0)
	{
		sorter->bound = palloc(sizeof(WsBound));
		ws_account_add(&sorter->account, sizeof(WsBound));
		ws_bound_init(sorter->bound, request->wanted);
		ws_formation_bound(sorter->formation, sorter->bound);
	}
	sorter->passes = ws_passes_create(sorter->formation, sorter->files, request->watch);
	ws_sorter_begin_learning(sorter);
	ws_sorter_begin_queue(sorter);
	MemoryContextSwitchTo(old);
	return sorter;
}

static void travel(WsSorter *sorter);

/* Divides the memory for a sort that uses temporary files. */
static void
use_disk(WsSorter *sorter)
{
	const WsBudget *budget = &sorter->budget;
	WsEntryBudget b;
	Size		buffers = 0;

	ws_sorter_learn(sorter, false);
	if (sorter->request->allowance == 0 && sorter->store->ops->depart != NULL)
	{
		travel(sorter);
		return;
	}
	sorter->on_disk = true;
	sorter->store->full = false;
	if (sorter->store->ops->spill != NULL)
		buffers = sorter->store->ops->spill(sorter->store, budget->alone, budget->helped,
											sorter->formation->map->count * sorter->entry_bytes);
	b = ws_budget_entries(budget, buffers);
	ws_formation_limit(sorter->formation, b.entries, b.block);
}

/*
 * Has all rows travel inside runs from now on: what the page cache may hold of them is used up.  Those
 * that wait in memory, or in a file that is still in the page cache, become runs at once: there it will
 * not be for long.  (2.4 GB of rows of 100 bytes with 1 GB of memory, 450 MB of them left in the file:
 * 34 s; core 22 s.)
 */
static void
travel(WsSorter *sorter)
{
	WsFormation *f = sorter->formation;
	WsStore    *store = sorter->store;
	Size		row;
	const WsRowSource *source;
	WsRowBudget b;

	ws_order_end(sorter);
	source = store->ops->depart(store, &row);
	sorter->row_bytes = row;
	b = ws_budget_rows(&sorter->budget, row, sorter->entry_bytes, false);
	if (sorter->on_disk)
	{
		ws_formation_flush(f);
		ws_passes_narrow(sorter->passes);
	}
	ws_formation_travel(f, source, b.block, b.buffer, b.merging, sorter->request->reads);
	if (sorter->on_disk)
		ws_passes_depart(sorter->passes, f->stats.entries * row);
	else
		ws_formation_flush(f);
	b = ws_budget_rows(&sorter->budget, row, sorter->entry_bytes, f->helper != NULL);
	ws_budget_for_shorter(&b);
	ws_formation_limit_rows(f, b.entries, b.arenas);
	store->ops->travel(store, b.arena);
	sorter->on_disk = sorter->travels = true;
	sorter->turns = f->turns;
}

/* What is to be done when a piece of the IndexMap has been ended. */
static void
follow_up(WsSorter *sorter)
{
	WsFormation *f = sorter->formation;

	ws_passes_check(sorter->passes);
	if (sorter->travels && sorter->turns != f->turns)
	{
		sorter->turns = f->turns;
		sorter->store->ops->turn(sorter->store, f->current);
	}
}

/* Makes room for the next entry. */
static void
make_room(WsSorter *sorter)
{
	WsFormation *f = sorter->formation;

	while (!ws_formation_has_room(f))
	{
		if (!ws_formation_make_room(f))
			use_disk(sorter);
		follow_up(sorter);
	}
}

/* Makes room for the next row. */
static void
make_way(WsSorter *sorter)
{
	ws_sorter_learn(sorter, false);
	if (sorter->travels)
	{
		ws_formation_turn(sorter->formation);
		follow_up(sorter);
	}
	else if (sorter->on_disk)
		travel(sorter);
	else
		use_disk(sorter);
}

/*
 * Up to how many entries in the map nothing is to be done for rows but to add theirs: of rows that are
 * nothing but their keys, until there is no more room, or memory, for them; else none.
 */
static Size
keys_room(const WsSorter *sorter)
{
	const WsFormation *f = sorter->formation;
	Size		room = Min(f->end, f->map->room);

	if (sorter->request->store != WS_KIND_KEYS || sorter->bound != NULL || sorter->learns > 0 ||
		f->in_order || f->queue != NULL)
		return 0;
	return sorter->on_disk ? room : Min(room, sorter->budget.shared / sorter->entry_bytes);
}

/* What ws_sorter_put does, in all cases. */
static void
take_in(WsSorter *sorter, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(sorter->context);
	WsFormation *f = sorter->formation;
	const Datum *values;
	const bool *isnull;
	WsEntry		entry = {0, 0};
	uint64		pointer;
	bool		in_order = f->in_order;
	bool		bounded = sorter->bound != NULL && sorter->bound->known && !in_order;

	ws_key_fetch(sorter->fetch, slot, &values, &isnull);
	if (in_order)
	{
		bool		enough = sorter->bound != NULL && f->stats.entries >= sorter->bound->rows;

		if (unlikely(!ws_order_goes_on(sorter, values, isnull, !enough)))
			ws_order_end(sorter);
		else if (enough)
		{
			sorter->bound->passed++;
			MemoryContextSwitchTo(old);
			return;
		}
	}
	else if (unlikely(bounded))
	{
		entry = ws_key_entry(sorter->spec, values, isnull, 0);
		ws_bound_doubt(sorter->bound, sorter->spec);
		if (sorter->bound->known && ws_bound_passes(sorter->bound, entry))
		{
			sorter->bound->passed++;
			MemoryContextSwitchTo(old);
			return;
		}
	}
	if (unlikely(sorter->store->full) || (unlikely(!sorter->on_disk) &&
		 sorter->store->in_memory + (f->map->count + 1) * sorter->entry_bytes > sorter->budget.shared))
		make_way(sorter);
	if (unlikely(!ws_formation_has_room(f)))
		make_room(sorter);
	/* that memory is full may have told that the rows before came in order: then this one is the next */
	if (unlikely(f->in_order && !in_order) && !ws_order_goes_on(sorter, values, isnull, true))
	{
		ws_order_end(sorter);
		if (!ws_formation_has_room(f))
			make_room(sorter);
	}

	pointer = sorter->store->ops->put(sorter->store, slot, f->stats.entries);
	if (unlikely(bounded))
	{
		entry.lo |= pointer;
		ws_formation_add(f, entry);
	}
	else if (unlikely(sorter->learns > 0))
	{
		ws_formation_add(f, ws_entry_make(0, pointer));
		/* the other half may be needed for it */
		if (f->map->count == sorter->learns || sorter->store->in_memory > sorter->budget.shared / 2)
			ws_sorter_learn(sorter, false);
	}
	else if (f->in_order)
		ws_formation_add(f, ws_entry_make(0, pointer));
	else if (f->queue != NULL && ws_keyqueue_put(f->queue, values, isnull, ws_formation_place(f)))
		ws_formation_add(f, ws_entry_make(0, pointer));
	else
		ws_formation_add(f, ws_key_entry(sorter->spec, values, isnull, pointer));
	sorter->keys_room = keys_room(sorter);
	MemoryContextSwitchTo(old);
}

/*
 * Takes in the row of `slot`, which is copied.  Raises the errors of writing
 * temporary files and of detoasting or comparing values.
 */
void
ws_sorter_put(WsSorter *sorter, TupleTableSlot *slot)
{
	if (sorter->formation->map->count < sorter->keys_room)
	{
		const Datum *values;
		const bool *isnull;

		ws_key_fetch(sorter->fetch, slot, &values, &isnull);
		ws_formation_add(sorter->formation, ws_key_entry(sorter->spec, values, isnull, 0));
	}
	else
		take_in(sorter, slot);
}

/* Ends the input and sorts.  Rows can be got afterwards. */
void
ws_sorter_perform(WsSorter *sorter)
{
	MemoryContext old = MemoryContextSwitchTo(sorter->context);
	const WsRequest *request = sorter->request;
	WsStream   *stream;
	Size		left;

	ws_sorter_learn(sorter, true);
	ws_passes_end(sorter->passes, request->random_access, sorter->budget.reading);
	sorter->store->ops->end(sorter->store);
	stream = ws_passes_stream(sorter->passes, request->random_access);
	if (sorter->bound != NULL)
		stream->count = Min(stream->count, sorter->bound->rows);
	sorter->output = stream->context == sorter->context ? NULL : stream->context;
	left = request->memory - Min(sorter->account.now, request->memory);
	/* helpers are started below what they touch, so that they end before it goes */
	MemoryContextSwitchTo(stream->context);
	sorter->store->ops->open(sorter->store, stream, Min(left, sorter->budget.reading));
	MemoryContextSwitchTo(old);
}

/* Makes the next row the one of a number. */
static void
seek(WsSorter *sorter, uint64 position)
{
	MemoryContext old = MemoryContextSwitchTo(sorter->context);

	Assert(sorter->request->random_access);
	sorter->store->ops->seek(sorter->store, position);
	sorter->position = position;
	MemoryContextSwitchTo(old);
}

/* One row backward, with the end-of-data behaviour of core's tuplesort. */
static bool
get_backward(WsSorter *sorter, TupleTableSlot *slot)
{
	if (!sorter->request->random_access)
		elog(ERROR, "backward scan of a sort without random access");
	if (sorter->position == 0)
		return false;
	if (sorter->eof)
		sorter->eof = false;	/* the last row, again */
	else
		sorter->position--;		/* the row before the one returned last */
	if (sorter->position == 0)
	{
		seek(sorter, 0);
		return false;
	}
	seek(sorter, sorter->position - 1);
	if (!sorter->store->ops->get(sorter->store, slot))
		elog(ERROR, "sorted row " UINT64_FORMAT " is missing", sorter->position);
	sorter->position++;
	return true;
}

/*
 * Puts the next row into `slot`, or the one before when not `forward` (which
 * needs random access), and returns true; false at either end.  The slot is of
 * heap tuples, or virtual if the store has virtual_rows.  The data is valid until the next call.
 */
bool
ws_sorter_get(WsSorter *sorter, bool forward, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(sorter->context);
	bool		found;

	if (likely(forward))
	{
		found = sorter->store->ops->get(sorter->store, slot);
		if (likely(found))
			sorter->position++;
		else
			sorter->eof = true;
	}
	else
		found = get_backward(sorter, slot);
	MemoryContextSwitchTo(old);
	return found;
}

/* Starts over at the first row.  Needs random access. */
void
ws_sorter_rewind(WsSorter *sorter)
{
	seek(sorter, 0);
	sorter->eof = false;
	sorter->mark_position = 0;
	sorter->mark_eof = false;
}

/* Remembers the position.  Needs random access. */
void
ws_sorter_mark(WsSorter *sorter)
{
	Assert(sorter->request->random_access);
	sorter->mark_position = sorter->position;
	sorter->mark_eof = sorter->eof;
}

/* Returns to the position remembered. */
void
ws_sorter_restore(WsSorter *sorter)
{
	seek(sorter, sorter->mark_position);
	sorter->eof = sorter->mark_eof;
}

/* What EXPLAIN ANALYZE shows. */
void
ws_sorter_stats(const WsSorter *sorter, WsSortStats *stats)
{
	memset(stats, 0, sizeof(WsSortStats));
	stats->runs = sorter->formation->stats;
	stats->learnt = sorter->learnt;
	if (sorter->bound != NULL)
	{
		stats->wanted = sorter->bound->rows;
		stats->passed = sorter->bound->passed + sorter->dropped;
	}
	stats->memory = sorter->account.peak;
	stats->disk = ws_fileset_bytes(sorter->files);
	stats->entry_bytes = sorter->entry_bytes;
	stats->codes = sorter->codes;
	stats->row_bytes = sorter->row_bytes;
	if (sorter->store->ops->stats != NULL)
		sorter->store->ops->stats(sorter->store, &stats->store);
}

/*
 * Gives back the entries' memory and all files of a sort that hands out no more rows.  Its store has ended
 * its output before.  Waits for reads that are on their way into the formation's memory.
 */
void
ws_sorter_end_output(WsSorter *sorter)
{
	if (sorter->output != NULL)
		MemoryContextDelete(sorter->output);
	sorter->output = NULL;
	ws_sorter_end_entries(sorter);
	ws_fileset_close(sorter->files);
}

/* Ends the sort: closes its files, releases its memory.  NULL is fine. */
void
ws_sorter_destroy(WsSorter *sorter)
{
	if (sorter == NULL)
		return;
	sorter->store->ops->close(sorter->store);
	ws_sorter_end_output(sorter);
	MemoryContextDelete(sorter->context);
}
