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
 * Memory: the queue, 8 bytes a pointer.
 *-------------------------------------------------------------------------
 */
#include "store/spool.h"

/* Prepares a window on rows of `spool`, in the order of `stream`. */
void
ws_window_init(WsWindow *window, WsSpool *spool, WsStream *stream)
{
	memset(window, 0, offsetof(WsWindow, queue));
	window->spool = spool;
	window->stream = stream;
	window->batch = WS_FIRST_BATCH;
}

/* Fills the window with as many rows as it can have, up to the one of this number. */
static void
fill_back(WsWindow *window, uint64 position)
{
	WsEntry		entries[WS_TAKE_ROWS];
	Size		rows = Min(position + 1, WS_TAKE_ROWS);

	window->first = position + 1 - rows;
	window->stream->ops->seek(window->stream, window->first);
	window->filled = ws_stream_next(window->stream, entries, rows);
	for (Size i = 0; i < window->filled; i++)
		window->queue[i] = ws_entry_pointer(entries[i]);
	window->back = true;
}

/*
 * Continues at row number `position`, which a stream that can be read from any place allows.  Whoever goes
 * back to the row before the first one is likely to want those before that as well (1 M rows of 70 bytes,
 * 4 MB, MOVE BACKWARD 900000: 465 ms when there were 31 of them, 43 with all that the queue holds, core 48).
 */
void
ws_window_seek(WsWindow *window, uint64 position)
{
	if (position < window->first || position > window->first + window->filled)
	{
		uint64		first = window->first;

		ws_window_init(window, window->spool, window->stream);
		if (position > 0 && position + 1 == first)
			fill_back(window, position);
		else
		{
			window->first = position;
			window->stream->ops->seek(window->stream, position);
		}
	}
	window->head = (Size) (position - window->first);
	window->prefetched = Max(window->prefetched, window->head);
	if (window->back && window->head >= WS_PREFETCH_GROUP)
		ws_spool_prefetch(window->spool, window->queue[window->head - WS_PREFETCH_GROUP]);
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
	/* the row handed out last stays where it may be a mark */
	Size		drop = window->back && window->head > 0 ? window->head - 1 : window->head;
	Size		left = window->filled - drop;
	WsEntry		entries[WS_TAKE_ROWS];
	Size		got;

	memmove(window->queue, window->queue + drop, left * sizeof(uint64));
	window->first += drop;
	window->prefetched -= drop;
	window->head -= drop;
	window->back = false;
	got = ws_stream_next(window->stream, entries, Min(window->batch, WS_TAKE_ROWS - left));
	for (Size i = 0; i < got; i++)
		window->queue[left + i] = ws_entry_pointer(entries[i]);
	window->drained = got == 0;
	window->filled = left + got;
	window->batch = ws_batch_after(window->batch, WS_TAKE_ROWS);
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
		if (window->filled - window->prefetched < WS_PREFETCH_GROUP && !window->drained &&
			!(window->back && window->head < window->filled))
			refill(window);
		prefetch_group(window);
	}
	if (unlikely(window->head >= window->filled))
		return false;
	ws_spool_tuple(window->spool, window->queue[window->head++], tuple);
	return true;
}
