/*-------------------------------------------------------------------------
 * heap_order.c - the pointers of the next window, sorted by block.
 *
 * Taking pointers from the merge and sorting them needs nothing of
 * PostgreSQL's: a helper does it for the next window while the backend hands
 * out the rows of this one.  Without a helper, or where the merge has to stay with the backend,
 * the backend does it when it comes to it.
 *
 * While a window is fetched, its pointers are needed, and both fetch (os/team.c) where blocks are read
 * directly.  So there is room for the pointers of one window only, and windows are the larger for it.
 *
 * Memory: 16 bytes a pointer.
 *-------------------------------------------------------------------------
 */
#include "guc.h"
#include "store/heap.h"

#include "index/index.h"

/* Takes up to o->wanted pointers.  In a helper only if the source allows it. */
static void
take(WsHeapOrder *o)
{
	uint64		pointers[WS_WINDOW_ROWS];
	Size		n;

	o->rows = 0;
	while (o->rows < o->wanted &&
		   (n = o->pointers.next(o->pointers.source, pointers, Min(o->wanted - o->rows, WS_WINDOW_ROWS))) > 0)
	{
		for (Size i = 0; i < n; i++)
		{
			o->entries[o->rows].hi = pointers[i];
			o->entries[o->rows].lo = o->rows;
			o->rows++;
		}
	}
}

static void
take_chore(WsChore *chore)
{
	WsHeapOrder *o = (WsHeapOrder *) chore;

	take(o);
	ws_sort_vectorised(o->entries, o->rows);
}

static void
prepare(WsHeapOrder *o, Size wanted)
{
	Size		bytes = wanted * sizeof(WsEntry);

	/* longer rows: what their pointers leave is for the window */
	if (o->region->committed > bytes + bytes / 4)
		ws_region_shrink(o->region, bytes);
	ws_region_commit(o->region, bytes);
	o->entries = (WsEntry *) o->region->base;
	o->wanted = wanted;
}

/*
 * Prepares to take pointers, max_rows at a time at most.  Allocates in
 * CurrentMemoryContext, and starts the helper below it: all that the source
 * touches belongs to that context or lives longer.
 */
WsHeapOrder *
ws_heap_order_create(const WsPointers *pointers, Size max_rows)
{
	WsHeapOrder *o = palloc0(sizeof(WsHeapOrder));

	o->chore.run = take_chore;
	o->pointers = *pointers;
	if (pointers->share != NULL && ws_sort_is_vectorised())
		o->helper = ws_helper_start(ws_read_threads,
									max_rows * sizeof(WsEntry) >= WS_HELPER_MEMORY / 16);
	if (o->helper != NULL && !pointers->share(pointers->source))
		ws_heap_order_stop(o);
	o->region = ws_region_create(Max(max_rows * sizeof(WsEntry), 64 * 1024));
	return o;
}

/*
 * The pointers of the next window, at most `rows`, with their positions in the
 * output, by pointer; *n is 0 at the end.  They are valid until the next call of
 * this or of ws_heap_order_ahead.
 */
WsEntry *
ws_heap_order_next(WsHeapOrder *o, Size rows, Size *n)
{
	if (o->helper == NULL)
	{
		prepare(o, rows);
		take(o);
		ws_sort_entries(o->entries, o->rows);
	}
	else
	{
		if (!o->started)
			ws_heap_order_ahead(o, rows);
		(void) ws_helper_wait(o->helper, &o->chore);
		o->pointers.settle(o->pointers.source);
		o->started = false;
	}
	*n = o->rows;
	return o->entries;
}

/* Lets the helper, if there is one, take the pointers of the next window, at most `rows`. */
void
ws_heap_order_ahead(WsHeapOrder *o, Size rows)
{
	if (o->helper == NULL)
		return;
	prepare(o, rows);
	ws_helper_submit(o->helper, &o->chore);
	o->started = true;
}

/* Bytes of memory in use. */
Size
ws_heap_order_memory(const WsHeapOrder *o)
{
	return o->region->committed;
}

/* Stops the helper. */
void
ws_heap_order_stop(WsHeapOrder *o)
{
	ws_helper_stop(o->helper);
	o->helper = NULL;
}
