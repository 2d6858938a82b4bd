/*-------------------------------------------------------------------------
 * heap_order.c - the pointers of the next window, sorted by block.
 *
 * Taking pointers from the merge and sorting them needs nothing of
 * PostgreSQL's: a helper does it for the next window while the backend fetches
 * and hands out the rows of this one.  Without a helper, or where the merge has to stay with the backend,
 * the backend does it when it comes to it.
 *
 * Memory: 16 bytes a pointer, twice with a helper.
 *-------------------------------------------------------------------------
 */
#include "record/heap.h"

#include "index/index.h"

/* Takes up to b->wanted pointers.  In a helper only if the source allows it. */
static void
take(WsHeapBatch *b)
{
	const WsHeapOrder *o = b->owner;
	uint64		pointers[WS_WINDOW_ROWS];
	Size		n;

	b->rows = 0;
	while (b->rows < b->wanted &&
		   (n = o->pointers.next(o->pointers.source, pointers, Min(b->wanted - b->rows, WS_WINDOW_ROWS))) > 0)
	{
		for (Size i = 0; i < n; i++)
		{
			b->entries[b->rows].hi = pointers[i];
			b->entries[b->rows].lo = b->rows;
			b->rows++;
		}
	}
}

static void
take_chore(WsChore *chore)
{
	WsHeapBatch *b = (WsHeapBatch *) chore;

	take(b);
	ws_sort_vectorised(b->entries, b->rows);
}

static void
prepare(WsHeapBatch *b, Size wanted)
{
	ws_region_commit(b->region, wanted * sizeof(WsEntry));
	b->entries = (WsEntry *) b->region->base;
	b->wanted = wanted;
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

	o->pointers = *pointers;
	if (pointers->share != NULL && ws_sort_is_vectorised())
		o->helper = ws_helper_start(ws_read_threads,
									max_rows * sizeof(WsEntry) >= WS_HELPER_MEMORY / 16);
	if (o->helper != NULL && !pointers->share(pointers->source))
		ws_heap_order_stop(o);
	for (int i = 0; i < (o->helper != NULL ? 2 : 1); i++)
	{
		WsHeapBatch *b = &o->batches[i];

		b->chore.run = take_chore;
		b->owner = o;
		b->region = ws_region_create(Max(max_rows * sizeof(WsEntry), 64 * 1024));
	}
	return o;
}

/*
 * The pointers of the next window, at most `rows`, with their positions in the
 * output, by pointer; *n is 0 at the end.  They are valid until the next call.
 */
WsEntry *
ws_heap_order_next(WsHeapOrder *o, Size rows, Size *n)
{
	WsHeapBatch *b = &o->batches[o->current];

	if (o->helper == NULL)
	{
		prepare(b, rows);
		take(b);
		ws_sort_entries(b->entries, b->rows);
	}
	else
	{
		if (!o->started)
			ws_heap_order_ahead(o, rows);
		b = &o->batches[o->current];
		(void) ws_helper_wait(o->helper, &b->chore);
		o->pointers.settle(o->pointers.source);
		o->started = false;
	}
	*n = b->rows;
	return b->entries;
}

/*
 * Lets the helper, if there is one, take the pointers of the window after that
 * whose pointers came last, at most `rows`.
 */
void
ws_heap_order_ahead(WsHeapOrder *o, Size rows)
{
	if (o->helper == NULL)
		return;
	o->current = 1 - o->current;
	prepare(&o->batches[o->current], rows);
	ws_helper_submit(o->helper, &o->batches[o->current].chore);
	o->started = true;
}

/* Bytes of memory for each pointer of a window. */
Size
ws_heap_order_bytes(const WsHeapOrder *o)
{
	return (o->helper != NULL ? 2 : 1) * sizeof(WsEntry);
}

/* Bytes of memory in use. */
Size
ws_heap_order_memory(const WsHeapOrder *o)
{
	return o->batches[0].region->committed +
		(o->helper != NULL ? o->batches[1].region->committed : 0);
}

/* Stops the helper. */
void
ws_heap_order_stop(WsHeapOrder *o)
{
	ws_helper_stop(o->helper);
	o->helper = NULL;
}
