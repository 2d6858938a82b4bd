/*-------------------------------------------------------------------------
 * spoolstore.c - the spool as a store.
 *
 * Rows are handed out by a helper that reads ahead (ahead.c) if there is one and
 * reading goes forward only, else through the window (window.c).
 *
 * Memory: that of the spool, the window's queue, and what reading ahead is given.
 *-------------------------------------------------------------------------
 */
#include "store/spool.h"

static uint64
put(WsStore *store, TupleTableSlot *slot, uint64 number)
{
	WsSpool    *spool = (WsSpool *) store;
	uint64		pointer = ws_spool_append(spool, slot);

	store->in_memory = spool->buffered;
	return pointer;
}

static Size
spill(WsStore *store, Size alone, Size helped, Size entries)
{
	return ws_spool_spill((WsSpool *) store, alone, helped, entries);
}

static void
end(WsStore *store)
{
	ws_spool_finish((WsSpool *) store);
}

static void
open_rows(WsStore *store, WsStream *stream, Size memory)
{
	WsSpool    *spool = (WsSpool *) store;

	spool->output = palloc0(sizeof(WsSpoolOutput));
	ws_window_init(&spool->output->window, spool, stream);
	if (!spool->request->random_access)
		spool->output->ahead = ws_ahead_create(spool, stream, memory);
}

static bool
get(WsStore *store, TupleTableSlot *slot)
{
	WsSpoolOutput *output = ((WsSpool *) store)->output;
	bool		found = output->ahead != NULL ? ws_ahead_next(output->ahead, &output->tuple) :
		ws_window_next(&output->window, &output->tuple);

	if (likely(found))
		ExecStoreHeapTuple(&output->tuple, slot, false);
	return found;
}

static void
seek(WsStore *store, uint64 position)
{
	ws_window_seek(&((WsSpool *) store)->output->window, position);
}

static void
close_store(WsStore *store)
{
	WsSpool    *spool = (WsSpool *) store;

	if (spool->output != NULL)
		ws_ahead_stop(spool->output->ahead);
	ws_spool_destroy(spool);
}

static const WsStoreOps spool_ops = {
	.name = "spool",
	.put = put,
	.spill = spill,
	.end = end,
	.open = open_rows,
	.get = get,
	.seek = seek,
	.close = close_store,
};

/* A spool as a store, in CurrentMemoryContext. */
WsStore *
ws_spool_store(const WsStoreContext *context)
{
	WsSpool    *spool = ws_spool_create(context);

	spool->store.ops = &spool_ops;
	if (!context->spec->exact)
	{
		spool->rows = ws_spool_keys(spool);
		spool->store.keys = &spool->rows;
	}
	return &spool->store;
}
