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

/*
 * The share of the table's blocks that is not in memory, 0 to 1.  0 where direct reads are refused, since it
 * cannot be told then, and of tables that are read soon enough.
 */
double
ws_heap_table_absent(const WsHeapTable *table)
{
	MemoryContext own;
	MemoryContext old;
	WsDirect   *direct;
	double		absent = 0;

	if (table->blocks < LEAST_BLOCKS)
		return 0;
	if (table->direct != NULL)
		return ws_direct_absent(table->direct);
	/* mapped for this look */
	own = AllocSetContextCreate(CurrentMemoryContext, "WiscSort look", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(own);
	direct = ws_direct_create(table->rel);
	if (direct != NULL)
		absent = ws_direct_absent(direct);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(own);
	return absent;
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
