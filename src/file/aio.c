/*-------------------------------------------------------------------------
 * aio.c - a queue of the system: libaio (queue.h).
 *
 * The kernel copies what it is told to do; it stays all the same, as Valgrind looks there for what was done.
 *
 * Memory: the struct, and the kernel's.  It refuses where aio-max-nr of them
 * are in use, and where seccomp forbids it.  In a process that was forked it is not valid.
 *-------------------------------------------------------------------------
 */
#include "file/queue.h"
#include "file/stripe.h"

#ifdef HAVE_LIBAIO
#include <libaio.h>

typedef struct AioQueue
{
	WsQueue		queue;			/* must be first */
	io_context_t context;
	struct iocb iocbs[FLEXIBLE_ARRAY_MEMBER];	/* by the numbers of operations */
} AioQueue;

static bool
open_aio(WsQueue *queue)
{
	return io_setup(queue->depth, &((AioQueue *) queue)->context) == 0;
}

static int
submit_aio(WsQueue *queue, WsOperation **operations, int n)
{
	AioQueue   *q = (AioQueue *) queue;
	struct iocb *iocbs[WS_DEPTH * WS_MOST_MEMBERS];
	int			taken = 0;

	for (int i = 0; i < n; i++)
	{
		const WsRead *read = operations[i]->read;

		iocbs[i] = &q->iocbs[operations[i]->number];
		io_prep_pread(iocbs[i], operations[i]->fd, read->buffer, read->bytes, operations[i]->offset);
		iocbs[i]->data = operations[i];
	}
	while (taken < n)
	{
		int			more = io_submit(q->context, n - taken, iocbs + taken);

		if (more == -EINTR)
			continue;
		if (more <= 0)
			break;
		taken += more;
	}
	return taken;
}

static int
results_aio(WsQueue *queue, int least)
{
	struct io_event events[WS_DEPTH];
	int			n = io_getevents(((AioQueue *) queue)->context, least, WS_DEPTH, events, NULL);

	for (int i = 0; i < n; i++)
		ws_operation_done(events[i].data, (long) events[i].res);
	return Max(n, 0);
}

static void
end_aio(WsQueue *queue)
{
	(void) io_destroy(((AioQueue *) queue)->context);
}

const WsQueueOps ws_queue_aio = {
	sizeof(AioQueue), sizeof(struct iocb), open_aio, submit_aio, results_aio, end_aio
};
#else
const WsQueueOps ws_queue_aio = {0, 0, NULL, NULL, NULL, NULL};
#endif							/* HAVE_LIBAIO */
