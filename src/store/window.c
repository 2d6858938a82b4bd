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

/* Continues at row number `position`, which a stream that can be read from any place allows. */
void
ws_window_seek(WsWindow *window, uint64 position)
{
	uint64		begin = ws_batch_begin(position, window->first);

	if (position < window->first || position > window->first + window->filled)
	{
		ws_window_init(window, window->spool, window->stream);
		window->first = begin;
		window->stream->ops->seek(window->stream, begin);
		/* rows before the position are not handed out, but may be soon */
		if (begin < position)
		{
			WsEntry		entries[WS_FIRST_BATCH];

			window->filled = ws_stream_next(window->stream, entries, position - begin);
			for (Size i = 0; i < window->filled; i++)
				window->queue[i] = ws_entry_pointer(entries[i]);
		}
	}
	window->head = (Size) (position - window->first);
	window->prefetched = Max(window->prefetched, window->head);
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
	WsEntry		entries[WS_TAKE_ROWS];
	Size		got;

	memmove(window->queue, window->queue + window->head, left * sizeof(uint64));
	window->first += window->head;
	window->prefetched -= window->head;
	window->head = 0;
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
		if (window->filled - window->prefetched < WS_PREFETCH_GROUP && !window->drained)
			refill(window);
		prefetch_group(window);
	}
	if (unlikely(window->head >= window->filled))
		return false;
	ws_spool_tuple(window->spool, window->queue[window->head++], tuple);
	return true;
}
