/*-------------------------------------------------------------------------
 * indexmap.c - the IndexMap, an array of entries that grows in place.
 *
 * Address space is reserved for what is expected, and committed in steps (os/region.c): no
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
 * Creates an IndexMap of at most `max_bytes` bytes in CurrentMemoryContext, with address
 * space for about `expected` entries.  Its memory is counted in `account`.
 */
WsIndexMap *
ws_indexmap_create(WsAccount *account, double expected, Size max_bytes)
{
	WsIndexMap *map = palloc0(sizeof(WsIndexMap));
	double		bytes = Min(expected * 1.25 * sizeof(WsEntry) + GROWTH(0), (double) max_bytes);

	map->region = ws_region_create_small(account, (Size) bytes, max_bytes);
	map->entries = (WsEntry *) map->region->base;
	map->capacity = max_bytes / sizeof(WsEntry);

	/* vqsort is 30 times slower on an unaligned array */
	Assert(((uintptr_t) map->entries & 63) == 0);
	return map;
}

/* Bytes to have committed after the next step. */
static Size
next_size(const WsIndexMap *map)
{
	Size		bytes = map->room * sizeof(WsEntry);

	return Min(bytes + GROWTH(bytes), map->capacity * sizeof(WsEntry));
}

/* Will ws_indexmap_grow move the entries? */
bool
ws_indexmap_must_move(const WsIndexMap *map)
{
	return next_size(map) > map->region->reserved;
}

/*
 * Commits room for more entries.  May move them: nobody may hold a pointer to any.  Returns false,
 * and changes nothing, if the IndexMap is as large as it may be, or the system gives no more
 * address space.
 */
bool
ws_indexmap_grow(WsIndexMap *map)
{
	Size		bytes = next_size(map);

	if (bytes <= map->room * sizeof(WsEntry) || !ws_region_reserve(map->region, bytes))
		return false;
	map->entries = (WsEntry *) map->region->base;
	ws_region_commit(map->region, bytes);
	map->room = Min(map->region->committed / sizeof(WsEntry), map->capacity);
	return true;
}

/*
 * Lends the first `bytes` bytes of an empty IndexMap's memory, 64-byte
 * aligned.  The loan ends when entries are appended again.  Raises out of memory.
 */
char *
ws_indexmap_borrow(WsIndexMap *map, Size bytes)
{
	Assert(map->count == 0);
	(void) ws_region_reserve(map->region, bytes);
	map->entries = (WsEntry *) map->region->base;
	ws_region_commit(map->region, bytes);
	map->room = Max(map->room, Min(map->region->committed / sizeof(WsEntry), map->capacity));
	return map->region->base;
}
