/*-------------------------------------------------------------------------
 * window.c - the window: the next rows in output order.
 *
 * Takes pointers from the merge in batches, asks the CPU for rows before they
 * are handed out, and hands them out in place.  Rows in output order are at
 * random addresses, so that each costs a cache miss and a TLB miss.  Prefetching
 * hides the first; but a prefetch does not retire before its address is
 * translated, so that one prefetch a row still waits for each page walk.  The
 * prefetches of WS_PREFETCH_GROUP rows are therefore issued together, where the
 * CPU overlaps their page walks: 68 ns a row became 23 (10 M rows of 100
 * bytes, spool of 1 GB in the page cache).
 *
 * Batches start small and grow, so that a reader that wants only the first
 * rows does not make the merge produce many.
 *
 * Memory: the queue, 8 bytes a pointer.
 *-------------------------------------------------------------------------
 */
#include "store/store.h"

#define FIRST_BATCH		8

/*
 * Prepares a window on rows of `spool`, in the order in which `next` delivers
 * their pointers (at most `max` a call; 0 means the end).
 */
void
ws_window_init(WsWindow *window, WsSpool *spool, WsNextPointers next, void *source)
{
	window->spool = spool;
	window->next = next;
	window->source = source;
	ws_window_clear(window);
}

/* Forgets the queue, because the source has been moved. */
void
ws_window_clear(WsWindow *window)
{
	window->head = window->filled = window->prefetched = 0;
	window->batch = FIRST_BATCH;
	window->drained = false;
}

/* Prefetches the next group of rows that are queued. */
static void
prefetch_group(WsWindow *window)
{
	Size		end = Min(window->prefetched + WS_PREFETCH_GROUP, window->filled);
	const WsSpool *spool = window->spool;

	for (Size i = window->prefetched; i < end; i++)
		ws_spool_prefetch(spool, window->queue[i]);
	window->prefetched = end;
}

/* Tops the queue up behind the pointers that are still in it. */
static void
refill(WsWindow *window)
{
	Size		left = window->filled - window->head;
	Size		got;

	memmove(window->queue, window->queue + window->head, left * sizeof(uint64));
	window->prefetched -= window->head;
	window->head = 0;
	got = window->next(window->source, window->queue + left,
					   Min(window->batch, WS_WINDOW_ROWS - left));
	if (got == 0)
		window->drained = true;
	window->filled = left + got;
	window->batch = Min(window->batch * 2, WS_WINDOW_ROWS);
}

/*
 * Points `tuple` at the next row in order and returns true, or returns false
 * at the end.  The row's data stays in the spool.
 */
bool
ws_window_next(WsWindow *window, HeapTuple tuple)
{
	if (unlikely(window->prefetched - window->head <= WS_PREFETCH_GROUP))
	{
		if (window->filled - window->prefetched < WS_PREFETCH_GROUP && !window->drained)
			refill(window);
		prefetch_group(window);
	}
	if (unlikely(window->head >= window->filled))
		return false;
	ws_spool_tuple(window->spool, window->queue[window->head++], tuple);
	return true;
}
