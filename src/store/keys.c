/*-------------------------------------------------------------------------
 * keys.c - rows that are nothing but their keys, made of the entries.
 *
 * Such a row (key/decode.c) is stored nowhere, and none is read.  Its pointer is 0, so that rows of equal
 * keys have equal entries, which the kernel puts in order in few passes.  Merging is all there is to do
 * then, and a helper does it for the next batch of entries while the backend hands out those of this one.
 *
 * Memory: two batches, or one without a helper.
 *-------------------------------------------------------------------------
 */
#include "store/batch.h"
#include "store/store.h"

#include "miscadmin.h"

#define MAX_ENTRIES		((Size) 8192)

typedef struct KeysBatch
{
	WsChore		chore;			/* must be first */
	WsStream   *stream;
	WsEntry    *entries;
	Size		wanted;
	Size		n;
} KeysBatch;

typedef struct KeysStore
{
	WsStore		store;			/* must be first */
	WsStoreContext context;
	WsStream   *stream;
	WsHelper   *helper;			/* or NULL: only the first batch is used */
	bool		submitted;		/* the batch that is not the current one is being filled */
	Size		max;			/* entries of a batch at most */
	Size		wanted;			/* of the next */
	uint64		first;			/* number of the current batch's first row */
	Size		head;			/* next entry of the current batch */
	KeysBatch  *current;
	char		apart[PG_CACHE_LINE_SIZE];	/* what follows is the helper's, too */
	KeysBatch	batches[2];
} KeysStore;

static uint64
put(WsStore *store, TupleTableSlot *slot, uint64 number)
{
	return 0;
}

static void
end(WsStore *store)
{
}

static void
take(WsChore *chore)
{
	KeysBatch  *b = (KeysBatch *) chore;
	Size		n;

	b->n = 0;
	while (b->n < b->wanted &&
		   (n = b->stream->ops->next(b->stream, b->entries + b->n, b->wanted - b->n)) > 0)
		b->n += n;
}

static void
open_rows(WsStore *store, WsStream *stream, Size memory)
{
	KeysStore  *k = (KeysStore *) store;
	const WsThreads *threads = &k->context.request->threads;

	k->stream = stream;
	k->max = Max(WS_FIRST_BATCH, Min(memory / 2 / sizeof(WsEntry), MAX_ENTRIES));
	k->wanted = WS_FIRST_BATCH;
	k->current = k->batches;
	/* nothing is gained where the entries are in memory already */
	if (stream->helper_safe && stream->ops->seek == NULL)
		k->helper = ws_helper_start(threads->read, threads->most, stream->count >= WS_HELPER_ROWS &&
									k->context.request->memory >= WS_HELPER_MEMORY);
	for (int i = 0; i < (k->helper != NULL ? 2 : 1); i++)
	{
		k->batches[i].chore.run = take;
		k->batches[i].stream = stream;
		k->batches[i].entries = palloc(k->max * sizeof(WsEntry));
		ws_account_add(k->context.account, k->max * sizeof(WsEntry));
	}
}

/* Has a batch filled, by the helper if there is one. */
static void
submit(KeysStore *k, KeysBatch *b)
{
	b->wanted = Min(k->wanted, k->max);
	k->wanted = ws_batch_after(b->wanted, k->max);
	ws_helper_submit(k->helper, &b->chore);
}

/* The next batch; false at the end. */
static bool
next_batch(KeysStore *k)
{
	KeysBatch  *other = k->batches + (k->current == k->batches);

	CHECK_FOR_INTERRUPTS();
	k->first += k->current->n;
	k->head = 0;
	if (k->submitted)
		k->current = other;
	else
		submit(k, k->current);
	k->submitted = false;
	(void) ws_helper_wait(k->helper, &k->current->chore);
	ws_stream_raise(k->stream);
	if (k->helper != NULL && k->current->n == k->current->wanted)
	{
		submit(k, k->batches + (k->current == k->batches));
		k->submitted = true;
	}
	else if (k->helper != NULL)
	{
		/* that was all: the stream has ended */
		ws_helper_stop(k->helper);
		k->helper = NULL;
	}
	return k->current->n > 0;
}

static bool
get(WsStore *store, TupleTableSlot *slot)
{
	KeysStore  *k = (KeysStore *) store;

	if (unlikely(k->head >= k->current->n) && !next_batch(k))
		return false;
	ExecClearTuple(slot);
	ws_key_decode(k->context.spec, k->current->entries[k->head++], slot->tts_values, slot->tts_isnull);
	ExecStoreVirtualTuple(slot);
	return true;
}

static void
seek(WsStore *store, uint64 position)
{
	KeysStore  *k = (KeysStore *) store;

	Assert(k->helper == NULL);
	if (position < k->first || position > k->first + k->current->n)
	{
		uint64		begin = ws_batch_begin(position, k->first);

		k->stream->ops->seek(k->stream, begin);
		k->current->n = 0;
		k->wanted = WS_FIRST_BATCH;
		k->first = begin;
		if (begin < position)
			(void) next_batch(k);
	}
	k->head = (Size) (position - k->first);
}

static void
close_store(WsStore *store)
{
	KeysStore  *k = (KeysStore *) store;

	ws_helper_stop(k->helper);
	k->helper = NULL;
}

static const WsStoreOps keys_ops = {
	.name = "keys",
	.virtual_rows = true,
	.put = put,
	.end = end,
	.open = open_rows,
	.get = get,
	.seek = seek,
	.close = close_store,
};

/* A store of rows that are nothing but their keys, in CurrentMemoryContext.  The spec is exact. */
WsStore *
ws_keys_store(const WsStoreContext *context)
{
	KeysStore  *k = palloc0(sizeof(KeysStore));

	Assert(context->spec->exact);
	k->store.ops = &keys_ops;
	k->context = *context;
	return &k->store;
}
