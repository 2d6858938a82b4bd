/*-------------------------------------------------------------------------
 * keys.c - sorted entries, of which rows are made.
 *
 * For sorts whose rows are nothing but their keys (key/decode.c): no row is
 * stored, and none is read.  Merging is all there is to do then, and a helper does it
 * for the next batch of entries while the backend hands out those of this one.
 *
 * Batches start small and grow, so that a reader that wants only the first
 * rows does not make the merge produce many.
 *
 * Memory: two batches, or one without a helper.
 *-------------------------------------------------------------------------
 */
#include "guc.h"
#include "store/keys.h"

#include "miscadmin.h"

#define FIRST_BATCH		((Size) 32)
#define MAX_ENTRIES		((Size) 8192)
#define BATCH_GROWTH	4
#define WORTHWHILE_ROWS	10000

static void
take(WsChore *chore)
{
	WsKeysBatch *b = (WsKeysBatch *) chore;
	const WsKeys *k = b->owner;
	Size		n;

	b->n = 0;
	while (b->n < b->wanted &&
		   (n = k->source.next(k->source.source, b->entries + b->n,
							   Min(b->wanted - b->n, WS_WINDOW_ROWS))) > 0)
		b->n += n;
}

/*
 * Starts reading the entries that `source` delivers, `rows` of them, with
 * `memory` bytes.  Allocates in CurrentMemoryContext, and starts the helper below
 * it: all that the source touches belongs to that context or lives longer.
 */
WsKeys *
ws_keys_create(const WsEntries *source, Size memory, uint64 rows)
{
	WsKeys	   *k = palloc0(sizeof(WsKeys));

	k->source = *source;
	k->max = Max(FIRST_BATCH, Min(memory / 2 / sizeof(WsEntry), MAX_ENTRIES));
	if (source->share != NULL)
		k->helper = ws_helper_start(ws_read_threads, rows >= WORTHWHILE_ROWS);
	if (k->helper != NULL && !source->share(source->source))
		ws_keys_stop(k);
	for (int i = 0; i < (k->helper != NULL ? 2 : 1); i++)
	{
		k->batches[i].chore.run = take;
		k->batches[i].owner = k;
		k->batches[i].entries = palloc(k->max * sizeof(WsEntry));
	}
	ws_keys_restart(k);
	return k;
}

/* Forgets what has been taken: the source continues elsewhere.  Not with a helper. */
void
ws_keys_restart(WsKeys *k)
{
	k->current = k->batches;
	k->current->n = k->head = 0;
	k->wanted = FIRST_BATCH;
}

/* Without a helper, the batch is filled at once. */
static void
submit(WsKeys *k, WsKeysBatch *b)
{
	b->wanted = Min(k->wanted, k->max);
	k->wanted = b->wanted * BATCH_GROWTH;
	ws_helper_submit(k->helper, &b->chore);
}

/* The next batch; false at the end. */
static bool
next_batch(WsKeys *k)
{
	CHECK_FOR_INTERRUPTS();
	k->head = 0;
	if (k->helper == NULL || !k->started)
		submit(k, k->current);
	else if (k->current->n == 0)
		return false;			/* the end, again */
	else
		k->current = k->batches + (k->current == k->batches);
	k->started = true;
	(void) ws_helper_wait(k->helper, &k->current->chore);
	k->source.settle(k->source.source);
	if (k->helper != NULL && k->current->n > 0)
		submit(k, k->batches + (k->current == k->batches));
	return k->current->n > 0;
}

/* Sets *entry to the next entry and returns true, or returns false at the end. */
bool
ws_keys_next(WsKeys *k, WsEntry *entry)
{
	if (unlikely(k->head >= k->current->n) && !next_batch(k))
		return false;
	*entry = k->current->entries[k->head++];
	return true;
}

/* Bytes of memory in use. */
Size
ws_keys_memory(const WsKeys *k)
{
	return (k->helper != NULL ? 2 : 1) * k->max * sizeof(WsEntry);
}

/* Stops the helper.  NULL is fine. */
void
ws_keys_stop(WsKeys *k)
{
	if (k == NULL)
		return;
	ws_helper_stop(k->helper);
	k->helper = NULL;
}
