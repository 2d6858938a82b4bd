/*-------------------------------------------------------------------------
 * carry.c - rows that travelled, on their way out of the final merge.
 *
 * The merge has a row in memory only until it is asked for the next entries.  So a helper copies the rows
 * of what it is given, one behind the other, into batches, which the backend reads from front to back
 * meanwhile; it does all of the merge, reading of blocks included.  A row that is too large for a batch
 * is handed out where it is, and the helper goes on when the backend has done with it.
 *
 * Without a helper, or where ties need the backend, rows are handed out where they are.
 *
 * Memory: BATCHES batches of what the caller allows.  On error: what the helper met is raised by the
 * backend when it comes to the batch.
 *-------------------------------------------------------------------------
 */
#include "store/row.h"
#include "store/spool.h"

#include "miscadmin.h"

#define BATCHES			3
#define MAX_ROWS		((Size) 8192)	/* of a batch */
#define MIN_ROWS		((Size) 8)
#define PREFETCH_ROWS	16
#define PER_ROW			(sizeof(char *) + sizeof(uint32))
#define SMALL_ROW		128		/* bytes: as many as are taken at a time backward are in a block or two */

typedef struct Batch
{
	WsChore		chore;			/* must be first */
	WsCarry    *carry;
	Size		wanted;			/* rows at most */
	Size		n;
	char	  **row;
	uint32	   *length;
	char	   *arena;
	bool		in_place;		/* its one row is where the merge has it */
	bool		skipped;		/* because of such a row before it */
	bool		damaged;
	bool		fault;			/* a page could not be read */
} Batch;

struct WsCarry
{
	WsSpool    *spool;
	WsStream   *stream;
	WsHelper   *helper;			/* or NULL */
	bool		small;			/* rows are, on average */
	Size		max_rows;		/* of a batch */
	Size		arena_bytes;	/* of it; 0 without a helper */
	/* what the stream has given, and no batch has yet */
	WsEntry		entries[WS_TAKE_ROWS];
	Size		taken;
	Size		pending;		/* of them, taken so far included */
	bool		held;			/* a row is being used in place */
	/* reading */
	char		apart[PG_CACHE_LINE_SIZE];
	int			current;
	Size		head;			/* next row of the batch, or of the entries */
	uint64		first;			/* number of the first of the entries */
	bool		ended;
	Batch		batches[BATCHES];
};

/* Fills a batch.  In a helper only if the stream is helper_safe. */
static void
fill(Batch *b)
{
	WsCarry    *c = b->carry;
	Size		used = 0;

	b->n = 0;
	b->in_place = b->damaged = false;
	b->skipped = c->held;
	while (!b->skipped && b->n < b->wanted)
	{
		char	   *row;
		uint32		length;

		if (c->taken == c->pending)
		{
			/* then nobody will look at the batch */
			if (ws_helper_is_stopping(c->helper))
				return;
			c->taken = 0;
			c->pending = c->stream->ops->next(c->stream, c->entries, WS_TAKE_ROWS);
			if (c->pending == 0)
				return;
		}
		if (c->taken + PREFETCH_ROWS < c->pending)
			ws_spool_prefetch(c->spool, ws_entry_pointer(c->entries[c->taken + PREFETCH_ROWS]));
		row = ws_spool_locate(c->spool, ws_entry_pointer(c->entries[c->taken]), &length);
		b->damaged = row == NULL;
		if (b->damaged)
			return;
		if (used + MAXALIGN(length) > c->arena_bytes)
		{
			if (b->n > 0)
				return;
			b->in_place = c->held = true;
			b->wanted = 1;
		}
		else
		{
			copy_bytes(b->arena + used + UNSTORED, row + UNSTORED, length - UNSTORED);
			row = b->arena + used;
			used += MAXALIGN(length);
		}
		b->row[b->n] = row;
		b->length[b->n++] = length;
		c->taken++;
	}
}

static void
fill_chore(WsChore *chore)
{
	Batch	   *b = (Batch *) chore;
	sigjmp_buf	jump;

	if (sigsetjmp(jump, 0) == 0)
	{
		ws_fault_jump = &jump;
		fill(b);
	}
	else
		b->fault = true;
	ws_fault_jump = NULL;
}

/*
 * Starts handing out rows in the order of `stream`, with `memory` bytes if a helper does that.  Allocates in
 * CurrentMemoryContext, which is the stream's, and starts the helper below it.
 */
WsCarry *
ws_carry_create(WsSpool *spool, WsStream *stream, Size memory)
{
	const WsThreads *threads = &spool->request->threads;
	Size		stored = spool->travelled / Max(spool->nrows, 1);
	Size		average = stored + UNSTORED + 2 * MAXIMUM_ALIGNOF;
	Size		rows = Min(memory / BATCHES / (average + PER_ROW), MAX_ROWS);
	WsCarry    *c = palloc0(sizeof(WsCarry));
	Size		wanted = Min(WS_FIRST_BATCH, rows);

	c->spool = spool;
	c->stream = stream;
	c->small = stored <= SMALL_ROW;
	c->current = -1;
	if (stream->helper_safe && !spool->request->random_access && rows >= MIN_ROWS)
		c->helper = ws_helper_start(threads->read, threads->most, spool->nrows >= WS_HELPER_ROWS);
	if (c->helper == NULL)
		return c;
	c->max_rows = rows;
	c->arena_bytes = rows * average;
	ws_account_add(spool->account, BATCHES * (rows * PER_ROW + c->arena_bytes));
	for (int i = 0; i < BATCHES; i++)
	{
		Batch	   *b = &c->batches[i];

		b->chore.run = fill_chore;
		b->carry = c;
		b->wanted = wanted;
		wanted = ws_batch_after(wanted, rows);
		b->row = palloc(rows * sizeof(char *));
		b->length = palloc(rows * sizeof(uint32));
		b->arena = palloc(c->arena_bytes);
		ws_helper_submit(c->helper, &b->chore);
	}
	return c;
}

/* Goes on to the next batch; false at the end. */
static bool
next_batch(WsCarry *c)
{
	Batch	   *b;

	if (c->ended)
		return false;
	CHECK_FOR_INTERRUPTS();
	if (c->current >= 0)
	{
		b = &c->batches[c->current];
		b->wanted = c->max_rows;
		ws_helper_submit(c->helper, &b->chore);
	}
	c->current = (c->current + 1) % BATCHES;
	b = &c->batches[c->current];
	(void) ws_helper_wait(c->helper, &b->chore);
	if (b->skipped)
	{
		/* what it has waited for is done with; those behind it come after it */
		for (int i = 0; i < BATCHES; i++)
			(void) ws_helper_wait(c->helper, &c->batches[i].chore);
		c->held = false;
		for (int i = 0; i < BATCHES; i++)
			ws_helper_submit(c->helper, &c->batches[(c->current + i) % BATCHES].chore);
		(void) ws_helper_wait(c->helper, &b->chore);
	}
	ws_stream_raise(c->stream);
	if (b->fault)
		ws_spool_damaged(c->spool, WS_UNREADABLE_PAGE, -1);
	if (b->damaged)
		ws_spool_damaged(c->spool, "The header of a row in it makes no sense.", -1);
	c->head = 0;
	if (b->n == 0)
	{
		c->ended = true;
		ws_carry_stop(c);
	}
	return b->n > 0;
}

/* The next row where the merge has it. */
static bool
next_in_place(WsCarry *c, HeapTuple tuple)
{
	if (c->head == c->pending)
	{
		if (c->ended)
			return false;
		CHECK_FOR_INTERRUPTS();
		c->first += c->pending;
		c->head = 0;
		c->pending = ws_stream_next(c->stream, c->entries, WS_TAKE_ROWS);
		c->ended = c->pending == 0;
		if (c->ended)
			return false;
	}
	if (c->head + PREFETCH_ROWS < c->pending)
		ws_spool_prefetch(c->spool, ws_entry_pointer(c->entries[c->head + PREFETCH_ROWS]));
	ws_spool_tuple(c->spool, ws_entry_pointer(c->entries[c->head++]), tuple);
	return true;
}

/*
 * Points `tuple` at the next row in order and returns true, or returns false at the end.  The row is
 * valid until the next call.  Raises ERRCODE_DATA_CORRUPTED.
 */
bool
ws_carry_next(WsCarry *c, HeapTuple tuple)
{
	Batch	   *b;

	if (c->arena_bytes == 0)
		return next_in_place(c, tuple);
	b = &c->batches[Max(c->current, 0)];
	if (unlikely(c->current < 0 || c->head >= b->n))
	{
		if (!next_batch(c))
			return false;
		b = &c->batches[c->current];
	}
	tuple->t_data = (HeapTupleHeader) b->row[c->head];
	tuple->t_len = b->length[c->head++];
	ItemPointerSetInvalid(&tuple->t_self);
	tuple->t_tableOid = InvalidOid;
	return true;
}

/* Continues at row number `position`, which a stream that can be read from any place allows. */
void
ws_carry_seek(WsCarry *c, uint64 position)
{
	c->ended = false;
	if (position < c->first || position > c->first + c->pending)
	{
		/* large rows a little before it are in other blocks, which would have to be read each time */
		c->first = c->small ? ws_batch_begin(position, c->first) : position;
		c->stream->ops->seek(c->stream, c->first);
		c->pending = c->head = 0;
	}
	/* a batch ends where a block does */
	while (position > c->first + c->pending)
	{
		c->first += c->pending;
		c->pending = ws_stream_next(c->stream, c->entries, WS_TAKE_ROWS);
		if (c->pending == 0)
			elog(ERROR, "sorted row " UINT64_FORMAT " is missing", position);
	}
	c->head = (Size) (position - c->first);
}

/* Stops the helper, if there is one. */
void
ws_carry_stop(WsCarry *c)
{
	ws_helper_stop(c->helper);
	c->helper = NULL;
}
