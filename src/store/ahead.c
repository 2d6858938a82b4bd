/*-------------------------------------------------------------------------
 * ahead.c - rows in output order, copied out by a helper ahead of time.
 *
 * What the window does (window.c), on another processor: a helper takes the
 * next pointers from the merge, meets the cache and TLB misses, and copies the
 * rows one behind the other into a batch, which the backend then reads from
 * front to back.  While one batch is being read, the others are filled.
 *
 * Which of the two has more to do depends on the rows and on the plan above.  So
 * the helper copies rows of a batch, from its first, until the backend has come to it; those
 * that it has not come to by then the backend fetches in place, as the window would.  Neither waits:
 * before it copies, the helper takes the pointers of the batch behind.  (Shares of each batch, moved
 * whenever one had waited for the other, and gathers in bursts (merge/gather.c): 10 M rows of
 * 100 bytes at 64 MB were read in 0.76 s; now 0.59 s.)
 *
 * If settling ties needs rows or comparators, the merge stays with the backend,
 * which gives the helper pointers instead.
 *
 * Memory: WS_AHEAD_BATCHES batches of what the caller allows.  On error: the
 * helper reports a damaged row or a page that cannot be read with its batch, and
 * the backend raises ERRCODE_DATA_CORRUPTED when it comes to it.
 *-------------------------------------------------------------------------
 */
#include "store/spool.h"

#include "miscadmin.h"

#define MAX_ROWS		((Size) 8192)
#define MIN_ROWS		((Size) 8)
#define PER_ROW			(sizeof(uint64) + sizeof(uint32))

/* Rows of wildly different lengths: better too much room than too little. */
#define LENGTH_SLACK(average)	((average) + (average) / 8 + MAXIMUM_ALIGNOF)

/* Whose a batch is, from when it is to be copied. */
enum
{
	NOBODY,
	HELPER,
	BACKEND
};

/* Takes the next pointers.  In a helper only if the stream is helper_safe. */
static void
take_pointers(WsAheadBatch *b)
{
	WsStream   *stream = b->ahead->stream;
	WsEntry		entries[WS_TAKE_ROWS];
	Size		got;

	b->npointers = 0;
	while (b->npointers < b->wanted &&
		   (got = stream->ops->next(stream, entries, Min(b->wanted - b->npointers, WS_TAKE_ROWS))) > 0)
		for (Size i = 0; i < got; i++)
			b->where[b->npointers++] = ws_entry_pointer(entries[i]);
}

static void
take_chore(WsChore *chore)
{
	take_pointers((WsAheadBatch *) chore);
}

/* Must the helper leave off copying? */
static bool
is_enough(void *arg)
{
	WsAheadBatch *b = arg;

	return pg_atomic_read_u32(&b->owner) == BACKEND || ws_helper_is_stopping(b->ahead->helper);
}

static void
copy_chore(WsChore *chore)
{
	WsAheadBatch *b = (WsAheadBatch *) ((char *) chore - offsetof(WsAheadBatch, copy));
	uint32		owner = NOBODY;
	sigjmp_buf	jump;

	if (!pg_atomic_compare_exchange_u32(&b->owner, &owner, HELPER))
		return;
	if (sigsetjmp(jump, 0) == 0)
	{
		ws_fault_jump = &jump;
		b->ncopied = ws_spool_copy_rows(b->ahead->spool, b->npointers, b->where, b->length,
										b->arena, b->ahead->arena_bytes, is_enough, b);
	}
	else
		b->fault = ws_fault_address;
	ws_fault_jump = NULL;
}

/* Has pointers taken for batch number i, which nobody uses. */
static void
submit_take(WsAhead *a, int i)
{
	WsAheadBatch *b = &a->batches[i];

	(void) ws_helper_wait(a->helper, &b->copy);	/* never begun, perhaps */
	b->ncopied = 0;
	b->fault = NULL;
	pg_atomic_write_u32(&b->owner, NOBODY);
	if (a->stream->helper_safe)
		ws_helper_submit_lazily(a->helper, &b->take, 2);
	else
		take_pointers(b);
}

/* Bytes of all batches. */
static Size
batch_bytes(const WsAhead *a)
{
	return WS_AHEAD_BATCHES * (a->max_rows * PER_ROW + a->arena_bytes);
}

/*
 * Starts reading rows of `spool` ahead, in the order of `stream`, with `memory` bytes.  Allocates in
 * CurrentMemoryContext, which is the stream's, and starts the helper below it.  Returns NULL if the
 * memory is too little, or if there is to be no helper.
 */
WsAhead *
ws_ahead_create(WsSpool *spool, WsStream *stream, Size memory)
{
	const WsThreads *threads = &spool->request->threads;
	Size		average = (Size) (spool->flushed + (int64) spool->buffered) /
		Max(spool->nrows, 1);
	Size		row = PER_ROW + LENGTH_SLACK(average);
	Size		rows = Min(memory / WS_AHEAD_BATCHES / row, MAX_ROWS);
	Size		wanted = Min(WS_FIRST_BATCH, rows);
	WsHelper   *helper;
	WsAhead    *a;

	if (rows < MIN_ROWS)
		return NULL;
	/* with less memory batches are small, and the two wait for one another (docs/decisions/19-helpers.md) */
	helper = ws_helper_start(threads->read, threads->most, spool->nrows >= WS_HELPER_ROWS &&
							 spool->request->memory >= WS_HELPER_MEMORY);
	if (helper == NULL)
		return NULL;

	a = palloc0(sizeof(WsAhead));
	a->spool = spool;
	a->helper = helper;
	a->stream = stream;
	a->max_rows = rows;
	a->arena_bytes = rows * LENGTH_SLACK(average);
	ws_account_add(spool->account, batch_bytes(a));
	for (int i = 0; i < WS_AHEAD_BATCHES; i++)
	{
		WsAheadBatch *b = &a->batches[i];

		b->take.run = take_chore;
		b->copy.run = copy_chore;
		b->ahead = a;
		b->wanted = wanted;
		wanted = ws_batch_after(wanted, rows);
		b->where = palloc(rows * sizeof(uint64));
		b->length = palloc(rows * sizeof(uint32));
		b->arena = palloc(a->arena_bytes);
		submit_take(a, i);
		if (i > 0)
			ws_helper_submit(helper, &a->batches[i - 1].copy);
	}
	/* as if the batch before the first had just been read */
	a->current = -1;
	return a;
}

/* Goes on to the next batch; false at the end. */
static bool
next_batch(WsAhead *a)
{
	WsAheadBatch *b;

	if (a->helper == NULL)
		return false;			/* the last batch has been read */
	if (a->current >= 0)
	{
		b = &a->batches[a->current];
		b->wanted = a->max_rows;
		submit_take(a, a->current);
		/* the batch behind the next, whose pointers were asked for before */
		ws_helper_submit(a->helper, &a->batches[(a->current + WS_AHEAD_BATCHES - 1) % WS_AHEAD_BATCHES].copy);
	}
	CHECK_FOR_INTERRUPTS();
	a->current = (a->current + 1) % WS_AHEAD_BATCHES;
	b = &a->batches[a->current];
	(void) ws_helper_wait(a->helper, &b->take);
	if (pg_atomic_exchange_u32(&b->owner, BACKEND) == HELPER)
		(void) ws_helper_wait(a->helper, &b->copy);
	ws_stream_raise(a->stream);
	if (b->fault != NULL)
		ws_spool_damaged(a->spool, WS_UNREADABLE_PAGE, b->fault - a->spool->map);
	a->head = 0;
	a->prefetched = b->ncopied;
	/* behind these there is nothing for the helper to do */
	if (b->npointers < b->wanted)
		ws_ahead_stop(a);
	return b->npointers > 0;
}

/* Asks the CPU for the next group of rows that were not copied. */
static void
prefetch_group(WsAhead *a, WsAheadBatch *b)
{
	Size		end = Min(a->prefetched + WS_PREFETCH_GROUP, b->npointers);

	for (Size i = a->prefetched; i < end; i++)
		ws_spool_prefetch(a->spool, b->where[i]);
	a->prefetched = end;
}

/*
 * Points `tuple` at the next row in order and returns true, or returns false
 * at the end.  The row is valid until the next call.  Raises
 * ERRCODE_DATA_CORRUPTED.
 */
bool
ws_ahead_next(WsAhead *a, HeapTuple tuple)
{
	WsAheadBatch *b = &a->batches[Max(a->current, 0)];

	if (unlikely(a->current < 0 || a->head >= b->npointers))
	{
		if (!next_batch(a))
			return false;
		b = &a->batches[a->current];
	}
	if (a->prefetched - a->head <= WS_PREFETCH_GROUP && a->prefetched < b->npointers)
		prefetch_group(a, b);
	if (a->head >= b->ncopied)
	{
		ws_spool_tuple(a->spool, b->where[a->head++], tuple);
		return true;
	}
	tuple->t_data = (HeapTupleHeader) (uintptr_t) b->where[a->head];
	tuple->t_len = b->length[a->head++];
	ItemPointerSetInvalid(&tuple->t_self);
	tuple->t_tableOid = InvalidOid;
	return true;
}

/* Stops the helper, if it has not ended.  NULL is fine. */
void
ws_ahead_stop(WsAhead *a)
{
	if (a == NULL)
		return;
	ws_helper_stop(a->helper);
	a->helper = NULL;
}

/* Ends reading ahead for good, before its memory goes with the stream's context.  NULL is fine. */
void
ws_ahead_end(WsAhead *a)
{
	if (a == NULL)
		return;
	ws_ahead_stop(a);
	ws_account_subtract(a->spool->account, batch_bytes(a));
}
