/*-------------------------------------------------------------------------
 * heap_table.c - a table whose rows are fetched by their TIDs: how, what is counted, what is wrong.
 *
 * Shared by the window (heap.c), which fetches each row once, and by ties (heap_keys.c), which read keys.
 *
 * Memory: that of direct reads (heap_direct.c).
 *-------------------------------------------------------------------------
 */
#include "store/heap.h"

#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Of a table that it is asked whether it is in memory: 64 MB. */
#define LEAST_BLOCKS	((BlockNumber) (64 * 1024 * 1024 / BLCKSZ))

/*
 * Prepares fetching rows of `rel`, which stays open and locked.  Allocates in CurrentMemoryContext, whose
 * reset ends it.
 */
void
ws_heap_table_init(WsHeapTable *table, Relation rel, const WsRequest *request)
{
	table->rel = rel;
	table->blocks = RelationGetNumberOfBlocks(rel);
	table->strategy = NULL;
	table->direct = NULL;
	table->visits.number = 0;
	table->visits.noted = 0;
	table->visits.untold = false;
	table->visits.last = InvalidBlockNumber;
	table->visits.step = 1;
	/* one scan must not sweep the whole of shared_buffers (as in heapam.c) */
	if (!RelationUsesLocalBuffers(rel) && table->blocks > (BlockNumber) NBuffers / 4)
		table->strategy = GetAccessStrategy(BAS_BULKREAD);

	/*
	 * Where the page cache cannot hold the table, a page that was touched might
	 * be gone again when it is copied, and be read under the mapping locks.
	 */
	if (request->direct_always ||
		(!request->direct_never && (int64) table->blocks * BLCKSZ <= request->cache))
		table->direct = ws_direct_create(rel);
}

/* How many different blocks the rows came from, at most. */
BlockNumber
ws_heap_table_visited(const WsHeapTable *table)
{
	return (BlockNumber) Min((uint64) table->blocks, table->visits.number);
}

/* Maps the table for a look; NULL if that is refused.  end_look undoes it. */
static WsDirect *
begin_look(const WsHeapTable *table, MemoryContext *own)
{
	MemoryContext old;
	WsDirect   *direct;

	*own = NULL;
	if (table->direct != NULL)
		return table->direct;
	*own = AllocSetContextCreate(CurrentMemoryContext, "WiscSort look", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(*own);
	direct = ws_direct_create(table->rel);
	MemoryContextSwitchTo(old);
	return direct;
}

static void
end_look(MemoryContext own)
{
	if (own != NULL)
		MemoryContextDelete(own);
}

/*
 * Finds out whether it can be told what is in memory.  Blocks that have been read a moment ago are: if of
 * those that are not in shared_buffers none seems to be, the file system keeps its files elsewhere (ZFS), or
 * needs no memory for them (DAX).
 */
static void
look(WsHeapTable *table)
{
	WsVisits   *v = &table->visits;
	MemoryContext own;
	WsDirect   *direct = begin_look(table, &own);
	int			looked = 0;

	for (int i = 0; direct != NULL && i < WS_LATE_VISITS && looked < WS_VISITS; i++)
	{
		BlockNumber block = v->late[(v->number + i) % WS_LATE_VISITS];

		if (ws_direct_is_shared(direct, block))
			continue;
		looked++;
		v->untold = !ws_direct_in_memory(direct, block);
		if (!v->untold)
			break;
	}
	end_look(own);
}

/* Notes that rows come from another block than the last ones, for ws_heap_table_visit. */
void
ws_heap_table_note(WsHeapTable *table, BlockNumber block)
{
	WsVisits   *v = &table->visits;

	if (v->number % v->step == 0)
	{
		if (v->noted == WS_VISITS)
		{
			v->noted /= 2;
			for (int i = 0; i < v->noted; i++)
				v->spread[i] = v->spread[2 * i];
			v->step *= 2;
		}
		if (v->number % v->step == 0)
			v->spread[v->noted++] = block;
	}
	v->late[v->number++ % WS_LATE_VISITS] = block;
	v->last = block;
	if (v->number == LEAST_BLOCKS)
		look(table);
}

/*
 * Of the blocks that the rows came from, the share that is not in memory, 0 to 1: from samples.  0 where that
 * cannot be told, as where direct reads are refused, and of few blocks, which are read soon enough.
 */
double
ws_heap_table_absent(const WsHeapTable *table)
{
	const WsVisits *v = &table->visits;
	MemoryContext own;
	WsDirect   *direct;
	int			absent = 0;

	if (v->untold || ws_heap_table_visited(table) < LEAST_BLOCKS)
		return 0;
	direct = begin_look(table, &own);
	for (int i = 0; direct != NULL && i < v->noted; i++)
		absent += !ws_direct_in_memory(direct, v->spread[i]);
	end_look(own);
	return (double) absent / v->noted;
}

/*
 * Counts visits of blocks that did not go through the buffer manager, in the table's files (`direct`) and in
 * shared buffers: in `stats`, and on the books that the buffer manager keeps of its own.
 */
void
ws_heap_count_visits(Relation rel, WsStoreStats *stats, int direct, int shared)
{
	stats->blocks_direct += direct;
	stats->blocks_buffered += shared;
	pgBufferUsage.shared_blks_read += direct;
	pgBufferUsage.shared_blks_hit += shared;
	for (int i = 0; i < direct + shared; i++)
		pgstat_count_buffer_read(rel);
	for (int i = 0; i < shared; i++)
		pgstat_count_buffer_hit(rel);
	if (direct > 0)
		ws_count_io_read((uint32) direct);
	if (shared > 0)
		ws_count_io_hit((uint32) shared);
}

/* Raises the error of a pointer that is not, or no longer, that of a row of `rel`. */
void
ws_heap_bad_pointer(Relation rel, uint64 pointer)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("row (%u,%u) of table \"%s\" is gone while it was being sorted",
					ws_pointer_block(pointer), ws_pointer_offset(pointer),
					RelationGetRelationName(rel)),
			 errdetail("Block %u has no row at that line pointer any more.",
					   ws_pointer_block(pointer)),
			 errhint("Check the table with amcheck's verify_heapam().")));
	pg_unreachable();
}
