/*-------------------------------------------------------------------------
 * travel.c - rows that travel inside runs, from the spool's side.
 *
 * As long as the page cache can be expected to hold the spool's file, rows wait there.  Once it cannot, or
 * from the start if it never could, rows are put into an *arena* in memory, in arrival order, and written
 * as a run, in sorted order, when it is full (run/rowwrite.c).  With a helper there are two: the one is
 * filled while the other is sorted and written.  What the spool's file has by then travels, too, and the
 * file is deleted.
 *
 * A row's pointer then says in which place it is, an arena or a block of a run that is being merged, and
 * where in it (run.h): the same calls find the row behind either kind of pointer (spoolread.c).
 *
 * Memory: the arenas, each of which may have one row that does not fit.  On error they go with their owners.
 *-------------------------------------------------------------------------
 */
#include "store/row.h"
#include "store/spool.h"

#include "utils/memutils.h"

/* Bytes of an arena beside its rows. */
#define ARENA_SLACK		((Size) 64 * 1024)

static const char *
locate(void *store, uint64 pointer, Size *bytes, Size *lead)
{
	uint32		length;
	const char *row = ws_spool_locate(store, pointer, &length);
	Size		escape;

	if (row == NULL)
		return NULL;
	*bytes = length - UNSTORED;
	escape = *bytes >= LENGTH_ESCAPE ? sizeof(uint64) : 0;
	*bytes += escape;
	*lead = WS_ROW_HEADER + escape;
	return row + UNSTORED - escape;
}

static void
prefetch(void *store, uint64 pointer)
{
	ws_spool_prefetch(store, pointer);
}

/* Gives the arenas' memory back: all that is in them has been written. */
static void
yield(void *store)
{
	WsSpool    *spool = store;

	for (int i = 0; i < WS_ARENAS; i++)
		if (spool->arenas[i] != NULL)
			ws_region_shrink(spool->arenas[i], 0);
	spool->room = 0;
}

/*
 * Prepares for rows to travel: whose they are, for those who write and read runs, and in *average how
 * many bytes a row has had so far.
 */
const WsRowSource *
ws_spool_depart(WsSpool *spool, Size *average)
{
	WsRowSource *source = &spool->source;

	source->locate = locate;
	source->prefetch = prefetch;
	source->yield = yield;
	source->store = spool;
	source->places = &spool->places;
	source->shift = spool->shift;
	spool->places.n = WS_ARENAS;
	spool->places.base = MemoryContextAllocZero(GetMemoryChunkContext(spool), WS_ARENAS * sizeof(char *));
	spool->places.end = MemoryContextAllocZero(GetMemoryChunkContext(spool), WS_ARENAS * sizeof(char *));
	spool->travelled = (Size) spool->flushed + spool->buffered;
	*average = spool->travelled / Max(spool->nrows, 1) + 1;
	ws_spool_finish(spool);
	return source;
}

/* Makes an arena the one that rows are put into. */
static void
use_arena(WsSpool *spool, int i)
{
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(spool));

	if (spool->arenas[i] == NULL)
		spool->arenas[i] = ws_region_create(spool->account, spool->arena_bytes + ARENA_SLACK,
											spool->arena_bytes + MaxAllocSize + ARENA_SLACK);
	MemoryContextSwitchTo(old);
	ws_region_commit(spool->arenas[i], 16 * 1024);
	spool->arena = i;
	spool->region = spool->arenas[i];
	spool->buffer = spool->region->base;
	spool->room = spool->region->committed;
	spool->buffered = 0;
	spool->store.full = false;
}

/* Deletes the file, if there is one, whose rows nobody needs any more. */
void
ws_spool_drop_file(WsSpool *spool)
{
	if (spool->file < 0)
		return;
	spool->reader->ops->close(spool->reader);
	spool->reader = NULL;
	ws_file_drop(spool->files, spool->file);
	spool->file = -1;
	spool->map = NULL;
	spool->departed += spool->flushed;
	spool->flushed = spool->mapped = 0;
}

/*
 * From now on rows travel, in arenas of `arena_bytes` bytes.  Those that there were have been written as
 * runs.
 */
void
ws_spool_travel(WsSpool *spool, Size arena_bytes)
{
	ws_spool_drop_file(spool);
	spool->travels = true;
	ws_region_destroy(spool->region);
	spool->arena_bytes = Min(arena_bytes, (Size) WS_PLACE_OFFSETS);
	spool->start = 0;
	spool->buffer_size = 0;
	spool->origin = 0;
	use_arena(spool, 0);
}

/* Goes on with another arena, whose rows have been written. */
void
ws_spool_turn(WsSpool *spool, int arena)
{
	spool->travelled += spool->buffered;
	if (spool->arenas[arena] != NULL)	/* a large row had made it grow */
		ws_region_shrink(spool->arenas[arena], spool->arena_bytes + ARENA_SLACK);
	use_arena(spool, arena);
}

/* Releases what was there for rows that travel. */
void
ws_spool_arrive(WsSpool *spool)
{
	for (int i = 0; i < WS_ARENAS; i++)
	{
		ws_region_destroy(spool->arenas[i]);
		spool->arenas[i] = NULL;
	}
}
