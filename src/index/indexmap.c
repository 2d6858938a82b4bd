/*-------------------------------------------------------------------------
 * indexmap.c - the IndexMap, an array of entries that grows in place.
 *
 * Address space is reserved once and committed in steps (os/region.c): no
 * doubling copy, and memory use follows the number of rows.  The array is
 * sorted in pieces, each as soon as it is full and still warm
 * (run/formation.c); each becomes a run, or a source of the merge (AlphaSort's
 * QuickSort of small runs followed by a tournament).
 *
 * Memory bound: capacity * 16 bytes.  Between two fillings the same memory
 * serves as merge buffers (ws_indexmap_borrow).
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

/* Committed at a time: large enough to be rare, small against work_mem. */
#define GROWTH(committed)	Max((Size) 4 * 1024, Min((committed) / 16, (Size) 1024 * 1024))

/*
 * Creates an IndexMap of at most `max_bytes` bytes in CurrentMemoryContext.
 */
WsIndexMap *
ws_indexmap_create(Size max_bytes)
{
	WsIndexMap *map = palloc0(sizeof(WsIndexMap));

	map->region = ws_region_create(max_bytes);
	map->entries = (WsEntry *) map->region->base;
	map->capacity = Min(max_bytes, map->region->reserved) / sizeof(WsEntry);

	/* vqsort is 30 times slower on an unaligned array */
	Assert(((uintptr_t) map->entries & 63) == 0);
	return map;
}

/* Commits room for more entries. */
void
ws_indexmap_grow(WsIndexMap *map)
{
	Size		bytes = map->room * sizeof(WsEntry);

	bytes = Min(bytes + GROWTH(bytes), map->capacity * sizeof(WsEntry));
	if (bytes <= map->room * sizeof(WsEntry))
		elog(ERROR, "IndexMap overflow");
	ws_region_commit(map->region, bytes);
	map->room = Min(map->region->committed / sizeof(WsEntry), map->capacity);
}

/*
 * Lends the first `bytes` bytes of an empty IndexMap's memory, 64-byte
 * aligned.  The loan ends when entries are appended again.
 */
char *
ws_indexmap_borrow(WsIndexMap *map, Size bytes)
{
	Assert(map->count == 0);
	ws_region_commit(map->region, bytes);
	map->room = Max(map->room, Min(map->region->committed / sizeof(WsEntry), map->capacity));
	return map->region->base;
}
