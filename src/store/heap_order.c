/*-------------------------------------------------------------------------
 * heap_order.c - the pointers of the next window, sorted by block.
 *
 * Taking pointers from the merge and sorting them needs nothing of
 * PostgreSQL's: a helper does it for the next window while the backend hands
 * out the rows of this one.  Without a helper, or where the stream has to stay with the backend,
 * the backend does it when it comes to it.
 *
 * A small window's pointers are sorted in less time than a helper takes to wake up: the backend does it.
 *
 * While a window is fetched, its pointers are needed, and both fetch (os/team.c) where blocks are read
 * directly.  So there is room for the pointers of one window only, and windows are the larger for it.
 *
 * Memory: 8 bytes a pointer.
 *-------------------------------------------------------------------------
 */
#include "store/heap.h"

#include "index/index.h"
#include "miscadmin.h"

/* Pointers of a window that are worth waking a helper: that takes some 10 us. */
#define LEAST_AHEAD		1024

/*
 * Takes up to o->wanted pointers.  In a helper only if the stream is helper_safe; there are fewer if it is to
 * end.
 */
static void
take(WsHeapOrder *o, bool helped)
{
	WsEntry		entries[WS_TAKE_ROWS];
	Size		n;

	o->rows = 0;
	while (o->rows < o->wanted &&
		   (n = o->stream->ops->next(o->stream, entries, Min(o->wanted - o->rows, WS_TAKE_ROWS))) > 0)
	{
		if (!helped)
			CHECK_FOR_INTERRUPTS();
		else if (ws_helper_is_stopping(o->helper))
			return;
		for (Size i = 0; i < n; i++)
		{
			o->entries[o->rows] = ws_heap_row(ws_entry_pointer(entries[i]), o->rows);
			o->rows++;
		}
	}
}

static void
take_chore(WsChore *chore)
{
	WsHeapOrder *o = (WsHeapOrder *) chore;

	take(o, true);
	if (!ws_helper_is_stopping(o->helper))
		ws_sort_numbers(o->entries, o->rows, true);
}

static void
prepare(WsHeapOrder *o, Size wanted)
{
	Size		bytes = wanted * sizeof(WsHeapRow);

	/* longer rows: what their pointers leave is for the window */
	if (o->region->committed > bytes + bytes / 4)
		ws_region_shrink(o->region, bytes);
	if (!ws_region_reserve(o->region, bytes))
		wanted = o->region->reserved / sizeof(WsHeapRow);
	ws_region_commit(o->region, wanted * sizeof(WsHeapRow));
	o->entries = (WsHeapRow *) o->region->base;
	o->wanted = wanted;
}

/*
 * Prepares to take pointers from `stream`, max_rows at a time at most.  Allocates in
 * CurrentMemoryContext, which is the stream's, and starts the helper below it.
 */
WsHeapOrder *
ws_heap_order_create(const WsStoreContext *context, WsStream *stream, Size max_rows)
{
	const WsThreads *threads = &context->request->threads;
	WsHeapOrder *o = palloc0(sizeof(WsHeapOrder));
	Size		limit = Max(max_rows * sizeof(WsHeapRow), 64 * 1024);

	o->chore.run = take_chore;
	o->stream = stream;
	o->vectorised = context->request->vectorised;
	/* who reads from any place has the pointers of one window at a time */
	if (stream->helper_safe && o->vectorised && !context->request->random_access)
		o->helper = ws_helper_start(threads->read, threads->most,
									stream->count >= WS_HELPER_ROWS &&
									max_rows * sizeof(WsHeapRow) >= WS_HELPER_MEMORY / 16);
	o->region = ws_region_create(context->account,
								 (Size) Min(stream->count * sizeof(WsHeapRow), limit), limit);
	return o;
}

/*
 * The pointers of the next window, at most `rows`, with their positions in the
 * output, by pointer; *n is how many, 0 at the end, and *wanted how many were asked for.  They are
 * valid until the next call of this or of ws_heap_order_ahead.
 */
const WsHeapRow *
ws_heap_order_next(WsHeapOrder *o, Size rows, Size *n, Size *wanted)
{
	if (o->helper == NULL || (!o->started && rows < LEAST_AHEAD))
	{
		prepare(o, rows);
		take(o, false);
		ws_stream_raise(o->stream);
		ws_sort_numbers(o->entries, o->rows, o->vectorised);
	}
	else
	{
		if (!o->started)
			ws_heap_order_ahead(o, rows);
		(void) ws_helper_wait(o->helper, &o->chore);
		ws_stream_raise(o->stream);
		o->started = false;
	}
	*n = o->rows;
	*wanted = o->wanted;
	return o->entries;
}

/* Lets the helper, if there is one, take the pointers of the next window, at most `rows`. */
void
ws_heap_order_ahead(WsHeapOrder *o, Size rows)
{
	if (o->helper == NULL || rows < LEAST_AHEAD)
		return;
	prepare(o, rows);
	ws_helper_submit(o->helper, &o->chore);
	o->started = true;
}

/*
 * The pointers that ws_heap_order_next is going to return, and in *n how many: if the helper has them by now,
 * otherwise NULL.
 */
const WsHeapRow *
ws_heap_order_look(const WsHeapOrder *o, Size *n)
{
	if (!o->started || !ws_chore_is_done(&o->chore))
		return NULL;
	pg_read_barrier();
	*n = o->rows;
	return o->entries;
}

/* Stops the helper. */
void
ws_heap_order_stop(WsHeapOrder *o)
{
	ws_helper_stop(o->helper);
	o->helper = NULL;
	o->started = false;
}
