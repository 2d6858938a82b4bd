/*-------------------------------------------------------------------------
 * heap_buffered.c - blocks of a table in ascending order, through the buffer
 * manager.
 *
 * PostgreSQL 17 and later have read streams, which look ahead, combine
 * neighbouring blocks into one read, and on 18 read asynchronously.  Before them,
 * the system is told of the next blocks (heap_announce.c).
 *
 * On error, pins are released by their resource owner.
 *-------------------------------------------------------------------------
 */
#include "store/heap.h"

#include "miscadmin.h"
#include "optimizer/optimizer.h"
#ifdef WS_HAVE_READ_STREAM
#include "storage/read_stream.h"
#endif

#ifdef WS_HAVE_READ_STREAM

typedef struct Stream
{
	WsNextBlock next;
	void	   *arg;
} Stream;

static BlockNumber
next_block(ReadStream *stream, void *private, void *per_buffer_data)
{
	const Stream *s = private;

	return s->next(s->arg);
}

#else

/*
 * Blocks the system is told of: 4 MB.  A block that the device is late with is waited for while those
 * behind it arrive, and then nothing is on its way.  With 128 instead of 512, bench/windows
 * --work-mem 4MB reads a tenth less.
 */
#define AHEAD	512

/* The blocks to come, a ring. */
typedef struct Stream
{
	WsAnnouncer *announcer;
	WsNextBlock next;
	void	   *arg;
	BlockNumber blocks[AHEAD];
	int			first;
	int			filled;
	bool		ended;
} Stream;

/* Takes blocks to come, and announces them, WS_ANNOUNCED at a time. */
static void
look_ahead(Stream *s)
{
	while (!s->ended && s->filled <= AHEAD - WS_ANNOUNCED)
	{
		BlockNumber taken[WS_ANNOUNCED];
		int			n = 0;

		while (n < WS_ANNOUNCED && (taken[n] = s->next(s->arg)) != InvalidBlockNumber)
		{
			s->blocks[(s->first + s->filled++) % AHEAD] = taken[n];
			n++;
		}
		s->ended = n < WS_ANNOUNCED;
		if (effective_io_concurrency > 0)
			ws_announce(s->announcer, taken, n);
	}
}

#endif

/* Tells the system of the first blocks that a call of ws_read_blocks is going to want; `next` as there. */
void
ws_announce_blocks(WsAnnouncer *announcer, WsNextBlock next, void *arg)
{
#ifndef WS_HAVE_READ_STREAM
	Stream		s = {.announcer = announcer, .next = next, .arg = arg};

	look_ahead(&s);
#endif
}

/*
 * Calls use(arg, buffer) for each of the blocks of `rel` that next(arg) returns
 * before InvalidBlockNumber, in that order.  `use` gets a pin, which it gives up;
 * next is called ahead of use.  Raises the errors of reading blocks and of `use`.
 */
void
ws_read_blocks(Relation rel, BufferAccessStrategy strategy, WsAnnouncer *announcer, WsNextBlock next,
			   WsUseBuffer use, void *arg)
{
#ifdef WS_HAVE_READ_STREAM
	Stream		s = {next, arg};
	ReadStream *stream = read_stream_begin_relation(READ_STREAM_DEFAULT, strategy, rel,
													MAIN_FORKNUM, next_block, &s, 0);
	Buffer		buffer;

	while (BufferIsValid(buffer = read_stream_next_buffer(stream, NULL)))
	{
		CHECK_FOR_INTERRUPTS();
		use(arg, buffer);
	}
	read_stream_end(stream);
#else
	Stream		s = {.announcer = announcer, .next = next, .arg = arg};

	for (look_ahead(&s); s.filled > 0; look_ahead(&s))
	{
		BlockNumber block = s.blocks[s.first];

		s.first = (s.first + 1) % AHEAD;
		s.filled--;
		CHECK_FOR_INTERRUPTS();
		use(arg, ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_NORMAL, strategy));
	}
#endif
}
