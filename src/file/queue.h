/*-------------------------------------------------------------------------
 * queue.h - queues of the system: reads past the page cache go in, results come out.
 *
 * The reader of async.c is the same over each kind of queue:
 *
 *	aio.c	a context of libaio
 *	uring.c	a ring of io_uring
 *
 * A queue belongs to the process.  The backend alone opens and ends it; in between whoever uses the reader
 * does, a helper also, one at a time.
 *-------------------------------------------------------------------------
 */
#ifndef WS_QUEUE_H
#define WS_QUEUE_H

#include "file/reader.h"

/* Reads on their way at once, at most, for each tablespace that the file is in. */
#define WS_DEPTH	64

/* One read on its way. */
typedef struct WsOperation
{
	WsRead	   *read;
	int			fd;				/* past the page cache */
	int64		offset;			/* in that */
	int			number;			/* of this one, from 0, less than the queue's depth */
	struct WsOperation *next;	/* of those that are free */
	bool		done;
	long		result;			/* bytes, or -errno */
} WsOperation;

typedef struct WsQueueOps WsQueueOps;

typedef struct WsQueue
{
	const WsQueueOps *ops;
	WsReaderKind kind;
	int			depth;			/* reads at once, at most */
	struct WsQueue *next;		/* of those that nobody is using */
	bool		broken;			/* not to be used again */
} WsQueue;

struct WsQueueOps
{
	Size		bytes;			/* of the struct */
	Size		operation_bytes;	/* and for each read at once, behind it */
	/* false if the system gives none; NULL: not built in */
	bool		(*open) (WsQueue *queue);
	/* gives the system reads, and returns how many of them, the first ones, it has taken */
	int			(*submit) (WsQueue *queue, WsOperation **operations, int n);
	/*
	 * waits for `least` of those, WS_DEPTH at most, says what has come of them, and returns of how many;
	 * perhaps 0
	 */
	int			(*results) (WsQueue *queue, int least);
	/* nothing may be on its way */
	void		(*end) (WsQueue *queue);
};

/* For `results`. */
static inline void
ws_operation_done(WsOperation *o, long result)
{
	o->done = true;
	o->result = result;
}

extern const WsQueueOps ws_queue_aio;
extern const WsQueueOps ws_queue_uring;

#endif							/* WS_QUEUE_H */
