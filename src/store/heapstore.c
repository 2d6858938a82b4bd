/*-------------------------------------------------------------------------
 * heapstore.c - the table itself as a store.
 *
 * The sort's input are rows of a TID and the key columns.  If the prefix is the whole key nothing else
 * is kept of them: the pointer is the TID.  Otherwise ties need the keys.  Where few are expected
 * (plan/ties.c), these are read from the table as well (heap_keys.c).  Else the narrow
 * rows go to a spool of their own; the stream of pointers into that becomes one of TIDs on its way out.
 * So do those that come when ties have turned out to be many; their pointers have WS_TIE_SPOOLED.
 *
 * Rows are fetched through a window (heap.c).
 *
 * Memory: all that the sorted result leaves goes to the window, and an eighth of what the sort
 * has at least (sort/budget.c).
 *-------------------------------------------------------------------------
 */
#include "store/heap.h"
#include "store/spool.h"

#include "utils/memutils.h"
#include "utils/rel.h"

/* A helper that writes needs several buffers of 4 kB. */
#define LEAST_BUFFER	((Size) 16 * 1024)

/* Of a block that is not in memory, 64 at a time: 65,000 to 90,000 a second (bench/windows). */
#define READ_US			15.0

typedef struct HeapStore
{
	WsStore		store;			/* must be first */
	WsStoreContext context;
	WsHeapTable table;
	WsStore    *spool;			/* of TIDs and keys, or NULL */
	WsHeapKeys *keys;			/* if these are read from the table, else NULL */
	Size		buffer;			/* bytes for a spool that may be made late; 0: rows are still in memory */
	WsHeap	   *heap;
	WsStoreStats fetched;		/* what that has done, when it is there no more */
	HeapTupleData tuple;		/* what the slot points to */
} HeapStore;

/* A spool for the keys of rows that come from now on. */
static void
begin_spool(HeapStore *h)
{
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(h));

	h->spool = ws_spool_store(&h->context);
	ws_heap_keys_spooled(h->keys, h->spool->keys);
	MemoryContextSwitchTo(old);
}

/* The pointer of a row whose TID and keys are put into the spool. */
static uint64
put_spooled(HeapStore *h, TupleTableSlot *slot, uint64 number)
{
	uint64		pointer = h->spool->ops->put(h->spool, slot, number);

	/* memory has been used up already: room for a buffer was left then, and none for rows */
	if (unlikely(h->buffer > 0))
	{
		(void) h->spool->ops->spill(h->spool, h->buffer, h->buffer, h->context.request->memory * 2);
		h->buffer = 0;
	}
	h->store.in_memory = h->spool->in_memory;
	h->store.full = h->spool->full;
	return h->keys != NULL ? pointer | WS_TIE_SPOOLED : pointer;
}

static uint64
put(WsStore *store, TupleTableSlot *slot, uint64 number)
{
	HeapStore  *h = (HeapStore *) store;
	ItemPointer tid;

	slot_getsomeattrs(slot, 1);
	tid = (ItemPointer) DatumGetPointer(slot->tts_values[0]);
	if (unlikely(!ItemPointerIsValid(tid)))
		elog(ERROR, "a row of table \"%s\" came without its TID",
			 RelationGetRelationName(h->context.rel));
	ws_heap_table_visit(&h->table, ItemPointerGetBlockNumber(tid));
	if (h->keys != NULL && h->spool == NULL && ws_heap_keys_too_many(h->keys, number))
		begin_spool(h);
	if (h->spool != NULL)
		return put_spooled(h, slot, number);
	return ws_tid_pointer(tid);
}

static Size
spill(WsStore *store, Size alone, Size helped, Size entries)
{
	HeapStore  *h = (HeapStore *) store;

	if (h->spool != NULL)
		return h->spool->ops->spill(h->spool, alone, helped, entries);
	if (h->keys != NULL)
		h->buffer = Max(alone, LEAST_BUFFER);
	return h->buffer;
}

static void
end(WsStore *store)
{
	HeapStore  *h = (HeapStore *) store;

	if (h->spool != NULL)
		h->spool->ops->end(h->spool);
}

/* ---- the stream of TIDs behind a stream of pointers into the spool ---- */

typedef struct TidStream
{
	WsStream	stream;			/* must be first */
	WsStream   *pointers;
	WsSpool    *spool;
	bool		mixed;			/* only pointers with WS_TIE_SPOOLED are of rows there */
} TidStream;

/* What a pointer of the stream is in the spool, or WS_POINTER_MASK if it is a TID. */
static inline uint64
in_spool(const TidStream *t, uint64 pointer)
{
	if (!t->mixed)
		return pointer;
	return (pointer & WS_TIE_SPOOLED) != 0 ? pointer & ~WS_TIE_SPOOLED : WS_POINTER_MASK;
}

static Size
tids_next(WsStream *stream, WsEntry *out, Size max)
{
	TidStream  *t = (TidStream *) stream;
	Size		n = ws_stream_next(t->pointers, out, max);

	for (Size start = 0; start < n; start += WS_PREFETCH_GROUP)
	{
		Size		limit = Min(start + WS_PREFETCH_GROUP, n);

		for (Size i = start; i < limit; i++)
		{
			uint64		pointer = in_spool(t, ws_entry_pointer(out[i]));

			if (pointer != WS_POINTER_MASK)
				ws_spool_prefetch(t->spool, pointer);
		}
		for (Size i = start; i < limit; i++)
		{
			uint64		pointer = in_spool(t, ws_entry_pointer(out[i]));
			HeapTupleData tuple;

			if (pointer == WS_POINTER_MASK)
				continue;
			/* never null, and the first of the columns */
			ws_spool_tuple(t->spool, pointer, &tuple);
			out[i] = ws_entry_make(0, ws_tid_pointer((ItemPointer) ((char *) tuple.t_data +
																	tuple.t_data->t_hoff)));
		}
	}
	stream->taken += n;
	return n;
}

static void
tids_seek(WsStream *stream, uint64 position)
{
	WsStream   *pointers = ((TidStream *) stream)->pointers;

	pointers->ops->seek(pointers, position);
	stream->taken = position;
}

static Size
tids_release(WsStream *stream)
{
	WsStream   *pointers = ((TidStream *) stream)->pointers;

	return pointers->ops->release != NULL ? pointers->ops->release(pointers) : 0;
}

/* Not helper_safe: a row that makes no sense is raised. */
static const WsStreamOps tids_ops = {tids_next, NULL, tids_seek, tids_release};

static WsStream *
tids_of(WsStream *pointers, WsStore *spool, bool mixed)
{
	TidStream  *t = palloc0(sizeof(TidStream));

	t->stream.ops = &tids_ops;
	t->stream.count = pointers->count;
	t->stream.context = pointers->context;
	t->pointers = pointers;
	t->spool = (WsSpool *) spool;
	t->mixed = mixed;
	return &t->stream;
}

static void
open_rows(WsStore *store, WsStream *stream, Size memory)
{
	HeapStore  *h = (HeapStore *) store;
	Size		budget = h->context.request->memory;

	if (h->spool != NULL)
		stream = tids_of(stream, h->spool, h->keys != NULL);
	memory = Max(memory, budget / 16);
	h->heap = ws_heap_create(&h->context, &h->table, stream, memory, Max(memory, budget));
}

static bool
get(WsStore *store, TupleTableSlot *slot)
{
	HeapStore  *h = (HeapStore *) store;
	bool		found = ws_heap_next(h->heap, &h->tuple);

	if (likely(found))
		ExecStoreHeapTuple(&h->tuple, slot, false);
	return found;
}

static void
seek(WsStore *store, uint64 position)
{
	ws_heap_seek(((HeapStore *) store)->heap, position);
}

static double
absent(const WsStore *store)
{
	return ws_heap_table_absent(&((const HeapStore *) store)->table);
}

static WsStoreToll
toll(const WsStore *store)
{
	const HeapStore *h = (const HeapStore *) store;
	BlockNumber blocks = ws_heap_table_visited(&h->table);

	return (WsStoreToll) {.bytes = (double) blocks * BLCKSZ,
		.reads = ws_heap_reads(h->heap, blocks), .read_us = READ_US,
		.waited_us = (double) h->heap->waited_us};
}

/* Bytes in the file of the spool of keys, if there is one. */
static int64
spooled(const HeapStore *h)
{
	WsStoreStats s = {0};

	if (h->spool != NULL)
		h->spool->ops->stats(h->spool, &s);
	return s.spooled;
}

/* Memory of what hands rows out, and files, may go when there are no more. */
static bool
rest(WsStore *store, uint64 *pointer)
{
	HeapStore  *h = (HeapStore *) store;

	if (h->heap != NULL && ws_heap_rest(h->heap, pointer))
		return true;
	if (h->heap != NULL)
	{
		ws_heap_stop(h->heap);
		h->fetched = h->heap->stats;
		h->fetched.spooled = spooled(h);
		h->heap = NULL;
		if (h->spool != NULL)
			h->spool->ops->close(h->spool);
		h->spool = NULL;
	}
	return false;
}

static void
stats(const WsStore *store, WsStoreStats *s)
{
	const HeapStore *h = (const HeapStore *) store;

	*s = h->heap != NULL ? h->heap->stats : h->fetched;
	s->windows = true;
	if (h->spool != NULL)
		s->spooled = spooled(h);
	if (h->keys != NULL)
		ws_heap_keys_stats(h->keys, s);
	s->persistent = h->table.direct != NULL && ws_direct_persistent(h->table.direct);
}

static void
close_store(WsStore *store)
{
	HeapStore  *h = (HeapStore *) store;

	ws_heap_stop(h->heap);
	if (h->spool != NULL)
		h->spool->ops->close(h->spool);
}

static const WsStoreOps heap_ops = {
	.name = "heap",
	.put = put,
	.spill = spill,
	.end = end,
	.open = open_rows,
	.get = get,
	.seek = seek,
	.absent = absent,
	.toll = toll,
	.rest = rest,
	.stats = stats,
	.close = close_store,
};

/* The table context->rel as a store, in CurrentMemoryContext.  The first column of the input is the TID. */
WsStore *
ws_heap_store(const WsStoreContext *context)
{
	HeapStore  *h = palloc0(sizeof(HeapStore));

	h->store.ops = &heap_ops;
	h->context = *context;
	ws_heap_table_init(&h->table, context->rel, context->request);
	if (!context->spec->exact && context->request->ties == WS_TIES_TABLE)
	{
		h->keys = ws_heap_keys_create(context, &h->table);
		h->store.keys = ws_heap_keys_rows(h->keys);
	}
	else if (!context->spec->exact)
	{
		h->spool = ws_spool_store(context);
		h->store.keys = h->spool->keys;
	}
	return &h->store;
}
