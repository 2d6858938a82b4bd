/*-------------------------------------------------------------------------
 * sorter.c - one sort from first row to last: put, perform, get.
 *
 * Ties the parts together in the order in which a row meets them: key,
 * IndexMap and runs for the entry; spool for the row; merge and window on the
 * way out.  Knows nothing of plans.
 *
 * Memory, for a budget of W = work_mem bytes.  At first rows and entries share
 * W, less the buffers of the helper that is going to write.  When it is used up the rows go to the
 * spool's file, by and by if there is that helper, and W is split:
 *		spool buffers	W/16: one of 8 kB to 64 kB (larger writes gain nothing), or
 *						four of 4 kB to 256 kB that a helper writes
 *		run block		1/256 of the rest, 4 kB to 256 kB
 *		entries			all that is left (with what settling ties needs)
 * After the input the entries' memory holds the merge's blocks; of what they
 * leave, up to W/8 (3 MB at most) go to the rows that a helper reads ahead.  The window and
 * fixed structures take a few kB beside it.
 *
 * If the rows stay in their table (store/heap.c), the input is rows of a TID
 * and the key columns.  The TID is the pointer if the prefix is the whole key,
 * and nothing is spooled; otherwise these narrow rows are, because ties need
 * them.  All memory that the sorted result leaves goes to the window, for which
 * W/8 is kept free.
 *
 * Reading: a cursor that only moves forward reads the final merge as a stream.
 * Random access (backward, mark and restore, rewind) is given when asked for:
 * by the sorted IndexMap itself, or after a MergePass by a final run on disk.
 *-------------------------------------------------------------------------
 */
#include "guc.h"
#include "exec/exec.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#define CLAMP(x, low, high)		Max((Size) (low), Min((Size) (x), (Size) (high)))
#define SPOOL_BUFFER(w)			CLAMP((w) / 16, 8 * 1024, 64 * 1024)
#define HELPED_BUFFERS(w)		CLAMP((w) / 16, 16 * 1024, 1024 * 1024)
#define AHEAD(w)				CLAMP((w) / 8, 8 * 1024, 3 * 1024 * 1024)
#define KEYS_AHEAD(w)			CLAMP((w) / 16, 8 * 1024, 256 * 1024)
#define RUN_BLOCK(rest)			TYPEALIGN_DOWN(4096, CLAMP((rest) / 256, 4 * 1024, 256 * 1024))

/*
 * Bytes that rows and entries may take before temporary files are used.  A helper that writes
 * the rows then needs its buffers beside them.
 */
static Size
memory_for_rows(const WsSorter *sorter)
{
	Size		kept = 0;

	if (sorter->keys_only)
		kept = KEYS_AHEAD(sorter->budget);
	else if (sorter->rel != NULL)
		kept = sorter->budget / 8;
	else if (ws_thread_wanted(ws_write_threads, sorter->budget >= WS_HELPER_MEMORY))
		kept = HELPED_BUFFERS(sorter->budget);
	return sorter->budget - Min(kept, sorter->budget);
}

/*
 * Starts a sort of rows of type `desc` by `ncols` columns, in a memory context
 * of its own under CurrentMemoryContext.  `work_mem_kb` bounds its memory, in
 * kB; `random_access` asks for more than reading forward once.  Raises what
 * core's sort raises for columns that cannot be sorted.
 *
 * `rel`, if not NULL, is the table that has the rows: it stays open and locked,
 * the first column of `desc` is their TID, and what is got is its rows.
 * `keys_only` says that all columns are key columns that the entries tell
 * (key/decode.c).
 */
WsSorter *
ws_sorter_create(TupleDesc desc, int ncols, const AttrNumber *attnos,
				 const Oid *sortops, const Oid *collations,
				 const bool *nulls_first, const bool *notnull,
				 int work_mem_kb, bool random_access, Relation rel, bool keys_only)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "WiscSort",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	WsSorter   *sorter = palloc0(sizeof(WsSorter));

	sorter->context = context;
	sorter->budget = (Size) work_mem_kb * 1024;
	sorter->random_access = random_access;
	sorter->spec = ws_keyspec_create(desc, ncols, attnos, sortops, collations,
									 nulls_first, notnull);
	sorter->fetch = ws_key_fetch_create(sorter->spec, desc);
	sorter->rel = rel;
	sorter->keys_only = keys_only;
	sorter->unspooled = keys_only || (rel != NULL && sorter->spec->exact);
	sorter->entry_bytes = sizeof(WsEntry) + ws_ties_bytes_per_entry(sorter->spec);
	sorter->spool = ws_spool_create(desc, sorter->spec->last_attno, sorter->budget);
	sorter->rows = ws_spool_keys(sorter->spool);
	sorter->formation = ws_formation_create(sorter->spec, &sorter->rows, sorter->budget);

	/* where address space is limited, so is what can be held in memory */
	sorter->budget = Min(sorter->budget, sorter->formation->map->region->reserved);
	sorter->budget = Min(sorter->budget, sorter->spool->region->reserved / 2);
	sorter->memory_for_rows = memory_for_rows(sorter);
	if (sorter->budget >= 32 * WS_LATE_BYTES)
		sorter->formation->late = ws_late_create(sorter->spec, ws_sort_threads, true);
	MemoryContextSwitchTo(old);
	return sorter;
}

/* Bytes in use while rows and entries share the memory. */
static void
note_memory(WsSorter *sorter)
{
	sorter->peak_memory = Max(sorter->peak_memory, ws_spool_memory(sorter->spool) +
							  ws_formation_memory(sorter->formation) +
							  ws_late_memory(sorter->formation->late) +
							  sorter->formation->map->count *
							  ws_ties_bytes_per_entry(sorter->spec));
}

/* Divides the memory for a sort that uses temporary files. */
static void
use_disk(WsSorter *sorter)
{
	Size		spool;
	Size		rest;
	Size		block;
	Size		entries;

	sorter->on_disk = true;
	note_memory(sorter);
	if (sorter->unspooled)
	{
		block = RUN_BLOCK(sorter->budget);
		ws_formation_limit(sorter->formation, sorter->budget - block, block);
		return;
	}
	sorter->writer = ws_helper_start(ws_write_threads, sorter->budget >= WS_HELPER_MEMORY);
	spool = sorter->writer != NULL ? HELPED_BUFFERS(sorter->budget) :
		SPOOL_BUFFER(sorter->budget);
	rest = sorter->budget - spool;
	block = RUN_BLOCK(rest);
	ws_formation_limit(sorter->formation, rest - block, block);
	/* all at once after a row that was too large, otherwise more than the entries grow by */
	entries = sorter->formation->map->count * sorter->entry_bytes;
	ws_spool_spill(sorter->spool, spool, sorter->writer,
				   sorter->spool->buffered + entries + spool > sorter->budget + sorter->budget / 16 ? 0 :
				   (int) (2 + entries / Max(sorter->spool->buffered, 1)));
	note_memory(sorter);
}

/*
 * Takes in the row of `slot`, which is copied.  Raises the errors of writing
 * temporary files and of detoasting or comparing values.
 */
void
ws_sorter_put(WsSorter *sorter, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(sorter->context);
	WsFormation *f = sorter->formation;
	const Datum *values;
	const bool *isnull;
	uint64		pointer;
	WsEntry    *place;
	int			first;

	if (unlikely(!sorter->on_disk) &&
		sorter->spool->buffered +
		(f->map->count + 1) * sorter->entry_bytes > sorter->memory_for_rows)
		use_disk(sorter);

	if (sorter->rel != NULL)
	{
		slot_getsomeattrs(slot, 1);
		if (unlikely(!ItemPointerIsValid((ItemPointer) DatumGetPointer(slot->tts_values[0]))))
			elog(ERROR, "a row of table \"%s\" came without its TID",
				 RelationGetRelationName(sorter->rel));
	}
	ws_key_fetch(sorter->fetch, slot, &values, &isnull);
	if (sorter->keys_only)
		pointer = f->entries;	/* any number will do */
	else if (sorter->unspooled)
		pointer = ws_tid_pointer((ItemPointer) DatumGetPointer(slot->tts_values[0]));
	else
		pointer = ws_spool_append(sorter->spool, slot);
	place = ws_formation_place(f);
	first = sorter->spec->cols[0].attno - 1;
	if (f->late != NULL && !isnull[first] && ws_late_put(f->late, values[first], place))
		ws_formation_add(f, ws_entry_make(0, pointer));
	else
		ws_formation_add(f, ws_key_entry(sorter->spec, values, isnull, pointer));
	MemoryContextSwitchTo(old);
}

/*
 * The next entries of whichever result there is.  Called by a helper if
 * sorter->pure.
 */
static Size
next_entries(void *source, WsEntry *entries, Size max)
{
	WsSorter   *sorter = source;
	Size		n;

	if (sorter->merge != NULL)
		n = sorter->pure ? ws_merge_take(sorter->merge, entries, max) :
			ws_merge_next(sorter->merge, entries, max);
	else
	{
		n = Min(max, sorter->formation->entries - sorter->fetched);
		for (Size i = 0; i < n; i++)
			entries[i] = sorter->array != NULL ? sorter->array[sorter->fetched + i] :
				ws_run_entry(sorter->run, sorter->fetched + i);
	}
	sorter->fetched += n;
	return n;
}

/* The window's source: the pointers of these. */
static Size
next_pointers(void *source, uint64 *pointers, Size max)
{
	WsEntry		batch[WS_WINDOW_ROWS];
	Size		n = next_entries(source, batch, max);

	for (Size i = 0; i < n; i++)
		pointers[i] = ws_entry_pointer(batch[i]);
	return n;
}

/* The heap window's source: the same as pointers into the table. */
static Size
next_tids(void *source, uint64 *pointers, Size max)
{
	WsSorter   *sorter = source;
	Size		n = next_pointers(source, pointers, max);

	if (sorter->unspooled)
		return n;
	for (Size start = 0; start < n; start += WS_PREFETCH_GROUP)
	{
		Size		end = Min(start + WS_PREFETCH_GROUP, n);

		for (Size i = start; i < end; i++)
			ws_spool_prefetch(sorter->spool, pointers[i]);
		for (Size i = start; i < end; i++)
		{
			HeapTupleData tuple;

			/* never null, and the first of the columns */
			ws_spool_tuple(sorter->spool, pointers[i], &tuple);
			pointers[i] = ws_tid_pointer((ItemPointer) ((char *) tuple.t_data +
														tuple.t_data->t_hoff));
		}
	}
	return n;
}

/* Bytes in use now that the input has ended. */
static Size
memory_used(const WsSorter *sorter)
{
	return ws_formation_memory(sorter->formation) +
		(sorter->spool->file == NULL ? ws_spool_memory(sorter->spool) : 0);
}

/* Lets a helper call next_pointers, if what it reads needs no backend. */
static bool
share_pointers(void *source)
{
	WsSorter   *sorter = source;

	sorter->pure = sorter->merge == NULL || ws_merge_allow_helpers(sorter->merge);
	return sorter->pure;
}

/* Raises what a helper met while it called next_pointers. */
static void
settle_pointers(void *source)
{
	WsSorter   *sorter = source;

	if (sorter->merge != NULL)
		ws_merge_settle(sorter->merge);
}

/* Frees the part of the sorted IndexMap that has been read.  Returns its bytes. */
static Size
give_back(void *source)
{
	WsSorter   *sorter = source;
	WsRegion   *region = sorter->formation->map->region;

	ws_region_release(region, sorter->fetched * sizeof(WsEntry));
	return region->released;
}

/* Has the rows fetched from their table, through a window of the memory left. */
static void
fetch_from_table(WsSorter *sorter)
{
	Size		used = memory_used(sorter);
	Size		memory = Max(sorter->budget - Min(used, sorter->budget), sorter->budget / 16);

	WsPointers	pointers = {next_tids, NULL, settle_pointers, NULL, sorter};

	if (sorter->unspooled && !sorter->random_access)
		pointers.share = share_pointers;
	if (sorter->array != NULL && !sorter->random_access)
		pointers.give_back = give_back;
	if (sorter->merge != NULL)
		MemoryContextSwitchTo(sorter->merge->context);
	sorter->heap = ws_heap_create(sorter->rel, &pointers, memory, Max(memory, sorter->budget));
}

/* Has rows made of the sorted entries. */
static void
read_keys(WsSorter *sorter)
{
	WsEntries	entries = {next_entries, NULL, settle_pointers, sorter};
	Size		used = memory_used(sorter);

	if (sorter->merge != NULL)
	{
		entries.share = share_pointers;
		MemoryContextSwitchTo(sorter->merge->context);
	}
	sorter->keys = ws_keys_create(&entries, Min(KEYS_AHEAD(sorter->budget), sorter->budget - Min(used, sorter->budget)),
								  sorter->formation->entries);
}

/*
 * Has a helper read ahead, if the memory left suffices.  What it touches lives
 * in the sorter's context or, for a merge, in that one's: it is started below
 * the latter, so that it ends first.
 */
static void
read_ahead(WsSorter *sorter)
{
	Size		used = memory_used(sorter);
	Size		memory = Min(AHEAD(sorter->budget), sorter->budget - Min(used, sorter->budget));
	WsPointers	pointers = {next_pointers, share_pointers, settle_pointers, NULL, sorter};

	if (sorter->random_access || memory < AHEAD(sorter->budget) / 2)
		return;
	if (sorter->merge != NULL)
		MemoryContextSwitchTo(sorter->merge->context);
	sorter->ahead = ws_ahead_create(sorter->spool, &pointers, memory);
	if (sorter->ahead != NULL)
		sorter->peak_memory = Max(sorter->peak_memory, used + ws_ahead_memory(sorter->ahead));
}

/* Ends the input and sorts.  Rows can be got afterwards. */
void
ws_sorter_perform(WsSorter *sorter)
{
	MemoryContext old = MemoryContextSwitchTo(sorter->context);
	WsFormation *f = sorter->formation;

	note_memory(sorter);
	/* a window over a table takes all the memory there is */
	ws_formation_sort_rest(f, sorter->random_access,
						   sorter->rel != NULL ? sorter->budget :
						   sorter->keys_only ? KEYS_AHEAD(sorter->budget) : AHEAD(sorter->budget));
	ws_late_stop(f->late);
	ws_spool_finish(sorter->spool);

	if (f->nruns == 0 && (sorter->random_access || f->map->count <= f->piece))
		sorter->array = f->map->entries;
	else if (sorter->random_access)
	{
		sorter->run = palloc0(sizeof(WsRunReader));
		ws_run_read_begin(sorter->run, ws_formation_single_run(f),
						  f->block);
	}
	else
		sorter->merge = ws_formation_merge(f);
	if (sorter->rel != NULL)
		fetch_from_table(sorter);
	else if (sorter->keys_only)
		read_keys(sorter);
	else
	{
		ws_window_init(&sorter->window, sorter->spool, next_pointers, sorter);
		read_ahead(sorter);
	}
	MemoryContextSwitchTo(old);
}

/* Makes the window continue at a row number. */
static void
seek(WsSorter *sorter, uint64 position)
{
	Assert(sorter->random_access);
	sorter->position = position;
	if (sorter->heap != NULL && ws_heap_seek(sorter->heap, position))
		return;
	sorter->fetched = position;
	if (sorter->heap != NULL)
		ws_heap_restart(sorter->heap, position);
	else if (sorter->keys != NULL)
		ws_keys_restart(sorter->keys);
	else
		ws_window_clear(&sorter->window);
}

/*
 * The row before the position, from the table: in the window, or in a new one
 * that starts a little before, for the next rows backward.
 */
static void
get_before(WsSorter *sorter, HeapTuple tuple)
{
	uint64		position = sorter->position;
	uint64		next = position - 1;

	if (!ws_heap_seek(sorter->heap, next))
	{
		next = position - Min(position, WS_HEAP_FIRST_BATCH);
		seek(sorter, next);
	}
	for (; next < position; next++)
		if (!ws_heap_next(sorter->heap, tuple))
			elog(ERROR, "sorted row %llu is missing", (unsigned long long) next);
	sorter->position = position;
}

/* Puts the row of an entry that tells all of it into the slot. */
static inline void
put_decoded(const WsSorter *sorter, WsEntry entry, TupleTableSlot *slot)
{
	ExecClearTuple(slot);
	ws_key_decode(sorter->spec, entry, slot->tts_values, slot->tts_isnull);
	ExecStoreVirtualTuple(slot);
}

/* One row backward, with the end-of-data behaviour of core's tuplesort. */
static bool
get_backward(WsSorter *sorter, TupleTableSlot *slot)
{
	WsEntry		entry;

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
	if (sorter->heap != NULL)
		get_before(sorter, &sorter->tuple);
	else
	{
		sorter->fetched = sorter->position - 1;
		(void) next_entries(sorter, &entry, 1);
		seek(sorter, sorter->position);
		if (sorter->keys_only)
		{
			put_decoded(sorter, entry, slot);
			return true;
		}
		ws_spool_tuple(sorter->spool, ws_entry_pointer(entry), &sorter->tuple);
	}
	ExecStoreHeapTuple(&sorter->tuple, slot, false);
	return true;
}

/* The next row. */
static inline bool
get_forward(WsSorter *sorter, TupleTableSlot *slot)
{
	WsEntry		entry;
	bool		found;

	if (sorter->keys_only)
	{
		found = ws_keys_next(sorter->keys, &entry);
		if (likely(found))
			put_decoded(sorter, entry, slot);
		return found;
	}
	if (sorter->heap != NULL)
		found = ws_heap_next(sorter->heap, &sorter->tuple);
	else if (sorter->ahead != NULL)
		found = ws_ahead_next(sorter->ahead, &sorter->tuple);
	else
		found = ws_window_next(&sorter->window, &sorter->tuple);
	if (likely(found))
		ExecStoreHeapTuple(&sorter->tuple, slot, false);
	return found;
}

/*
 * Puts the next row into `slot`, or the one before when not `forward` (which
 * needs random access), and returns true; false at either end.  The slot is of
 * heap tuples, or virtual with keys_only.  The data is valid until the next call.
 */
bool
ws_sorter_get(WsSorter *sorter, bool forward, TupleTableSlot *slot)
{
	MemoryContext old;
	bool		found;

	if (unlikely(!forward))
	{
		if (!sorter->random_access)
			elog(ERROR, "backward scan of a sort without random access");
		return get_backward(sorter, slot);
	}
	old = MemoryContextSwitchTo(sorter->context);
	found = get_forward(sorter, slot);
	MemoryContextSwitchTo(old);
	if (likely(found))
		sorter->position++;
	else
		sorter->eof = true;
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
	Assert(sorter->random_access);
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
	const WsFormation *f = sorter->formation;

	stats->merge_pass = f->formed > 0;
	stats->entries = f->entries;
	stats->runs = f->formed;
	stats->passes = f->passes;
	stats->memory = Max(sorter->peak_memory,
						sorter->spool->peak_memory + f->peak_memory);
	stats->store = sorter->rel != NULL ? "heap" : sorter->keys_only ? "keys" : "spool";
	if (sorter->keys != NULL)
		stats->memory = Max(stats->memory, (int64) (memory_used(sorter) +
													ws_keys_memory(sorter->keys)));
	stats->heap = sorter->heap != NULL;
	if (stats->heap)
	{
		stats->window = sorter->heap->stats;
		stats->window.persistent = sorter->heap->direct != NULL &&
			ws_direct_persistent(sorter->heap->direct);
		stats->memory = Max(stats->memory, (int64) (memory_used(sorter) +
							ws_heap_memory(sorter->heap)));
	}
	stats->disk = f->peak_disk + (sorter->spool->file != NULL ? sorter->spool->file->size : 0);
}

/* Ends the sort: closes its files, releases its memory. */
void
ws_sorter_destroy(WsSorter *sorter)
{
	if (sorter == NULL)
		return;
	ws_ahead_stop(sorter->ahead);
	ws_heap_stop(sorter->heap);
	ws_keys_stop(sorter->keys);
	ws_late_stop(sorter->formation->late);
	ws_formation_close(sorter->formation);
	ws_helper_stop(sorter->writer);
	ws_spool_destroy(sorter->spool);
	MemoryContextDelete(sorter->context);
}
