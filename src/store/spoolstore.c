/*-------------------------------------------------------------------------
 * spoolstore.c - the spool as a store.
 *
 * Rows are handed out by a helper that reads ahead (ahead.c) if there is one and reading goes forward
 * only, else through the window (window.c).  Rows that travel inside runs (travel.c) come by carry.c.
 *
 * Memory: that of the spool, the window's queue, and what reading ahead is given.
 *-------------------------------------------------------------------------
 */
#include "store/spool.h"

/* The pointer of a row that has been put into an arena. */
static uint64
travel_pointer(WsSpool *spool, uint64 offset)
{
	/* a large row may have moved the arena */
	spool->places.base[spool->arena] = spool->buffer;
	spool->places.end[spool->arena] = spool->buffer + spool->buffered;
	if (spool->buffered >= spool->arena_bytes)
		spool->store.full = true;
	return ws_travel_pointer(spool->arena, offset);
}

static uint64
put(WsStore *store, TupleTableSlot *slot, uint64 number)
{
	WsSpool    *spool = (WsSpool *) store;
	uint64		pointer = ws_spool_append(spool, slot);

	store->in_memory = spool->buffered;
	if (unlikely(spool->travels))
		return travel_pointer(spool, pointer);
	return pointer;
}

static const WsRowSource *
depart(WsStore *store, Size *average)
{
	return ws_spool_depart((WsSpool *) store, average);
}

static void
travel(WsStore *store, Size arena)
{
	ws_spool_travel((WsSpool *) store, arena);
}

static void
turn(WsStore *store, int arena)
{
	ws_spool_turn((WsSpool *) store, arena);
}

static Size
spill(WsStore *store, Size alone, Size helped, Size entries)
{
	return ws_spool_spill((WsSpool *) store, alone, helped, entries);
}

static void
end(WsStore *store)
{
	WsSpool    *spool = (WsSpool *) store;

	ws_spool_finish(spool);
	spool->tells = ws_spool_tells(spool);
}

static void
open_rows(WsStore *store, WsStream *stream, Size memory)
{
	WsSpool    *spool = (WsSpool *) store;

	spool->output = palloc0(sizeof(WsSpoolOutput));
	if (spool->travels)
	{
		spool->output->carry = ws_carry_create(spool, stream, memory);
		return;
	}
	ws_window_init(&spool->output->window, spool, stream);
	if (!spool->request->random_access)
		spool->output->ahead = ws_ahead_create(spool, stream, memory);
}

static bool
get(WsStore *store, TupleTableSlot *slot)
{
	WsSpoolOutput *output = ((WsSpool *) store)->output;
	bool		found = output->ahead != NULL ? ws_ahead_next(output->ahead, &output->tuple) :
		output->carry != NULL ? ws_carry_next(output->carry, &output->tuple) :
		ws_window_next(&output->window, &output->tuple);

	if (likely(found))
		ExecStoreHeapTuple(&output->tuple, slot, false);
	return found;
}

static void
seek(WsStore *store, uint64 position)
{
	WsSpoolOutput *output = ((WsSpool *) store)->output;

	if (output->carry != NULL)
		ws_carry_seek(output->carry, position);
	else
		ws_window_seek(&output->window, position);
}

static double
absent(const WsStore *store)
{
	return ws_spool_absent((const WsSpool *) store);
}

/* Bytes that a page fault brings, at least. */
#define FAULT_BYTES		4096.0

static WsStoreToll
toll(const WsStore *store)
{
	const WsSpool *spool = (const WsSpool *) store;
	double		bytes = (double) spool->mapped;
	double		reads = Max((double) spool->nrows, bytes / FAULT_BYTES);

	if (spool->request->wanted > 0)
		reads = Min(reads, (double) spool->request->wanted);
	return (WsStoreToll) {.bytes = bytes, .reads = reads, .read_us = WS_FAULT_US};
}

static TupleTableSlot *
scan(WsStore *store)
{
	WsSpool    *spool = (WsSpool *) store;

	/* what handed rows out goes with its stream */
	if (spool->scan == NULL && spool->output != NULL)
		ws_ahead_end(spool->output->ahead);
	spool->output = NULL;
	return ws_spool_scan(spool);
}

static void
stats(const WsStore *store, WsStoreStats *stats)
{
	const WsSpool *spool = (const WsSpool *) store;

	stats->spooled = ws_spool_filed(spool);
	stats->travels = spool->travels;
	stats->twice = spool->scan != NULL && !spool->scan->punches;
}

static void
close_store(WsStore *store)
{
	WsSpool    *spool = (WsSpool *) store;

	if (spool->output != NULL)
		ws_ahead_stop(spool->output->ahead);
	if (spool->output != NULL && spool->output->carry != NULL)
		ws_carry_stop(spool->output->carry);
	ws_spool_destroy(spool);
	ws_spool_arrive(spool);
}

static const WsStoreOps spool_ops = {
	.name = "spool",
	.put = put,
	.spill = spill,
	.depart = depart,
	.travel = travel,
	.turn = turn,
	.end = end,
	.open = open_rows,
	.get = get,
	.seek = seek,
	.absent = absent,
	.toll = toll,
	.scan = scan,
	.stats = stats,
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
