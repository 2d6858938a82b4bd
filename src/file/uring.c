/*-------------------------------------------------------------------------
 * uring.c - a queue of the system: io_uring, by liburing (queue.h).
 *
 * Threads take turns: one may submit what another waits for.  So a ring is neither for one issuer
 * (IORING_SETUP_SINGLE_ISSUER, _DEFER_TASKRUN), nor does it leave the end of a read to the next call of who
 * submitted it (_COOP_TASKRUN), who may not make one for long.  The kernel may cancel reads of a thread that
 * has ended: they are done otherwise, as any other that it would not do (async.c).
 *
 * What a ring did not take at once stays in its memory, and would go with what is submitted next, perhaps
 * into a buffer that is somebody else's by then.  So a ring that has refused one is given nothing more, and
 * is ended.
 *
 * A ring has a descriptor, which is closed on exec; a process that is forked does not have its memory.
 *
 * Memory: some 8 kB of the kernel's, for which kernels before 5.12 ask RLIMIT_MEMLOCK.  It refuses where
 * that is too little, where there is no descriptor to spare, where kernel.io_uring_disabled or seccomp
 * forbids it, and on kernels before 5.6, which have no such read.
 *-------------------------------------------------------------------------
 */
#include "file/queue.h"

#ifdef HAVE_LIBURING
#include <liburing.h>

#include "storage/fd.h"

typedef struct UringQueue
{
	WsQueue		queue;			/* must be first */
	struct io_uring ring;
} UringQueue;

static void
end_uring(WsQueue *queue)
{
	io_uring_queue_exit(&((UringQueue *) queue)->ring);
	ReleaseExternalFD();
}

static bool
open_uring(WsQueue *queue)
{
	struct io_uring *ring = &((UringQueue *) queue)->ring;

	if (!AcquireExternalFD())
		return false;
	if (io_uring_queue_init((unsigned) queue->depth, ring, 0) != 0)
	{
		ReleaseExternalFD();
		return false;
	}
	/* RW_CUR_POS came with IORING_OP_READ */
	if ((ring->features & IORING_FEAT_RW_CUR_POS) == 0 || io_uring_ring_dontfork(ring) != 0)
	{
		end_uring(queue);
		return false;
	}
	return true;
}

static int
submit_uring(WsQueue *queue, WsOperation **operations, int n)
{
	struct io_uring *ring = &((UringQueue *) queue)->ring;
	int			taken = 0;

	if (queue->broken)
		return 0;
	for (int i = 0; i < n; i++)
	{
		const WsRead *read = operations[i]->read;
		struct io_uring_sqe *sqe = io_uring_get_sqe(ring);	/* there are as many as operations */

		io_uring_prep_read(sqe, operations[i]->fd, read->buffer, (unsigned) Min(read->bytes, INT_MAX),
						   operations[i]->offset);
		io_uring_sqe_set_data(sqe, operations[i]);
	}
	while (taken < n && !queue->broken)
	{
		int			more = io_uring_submit(ring);

		if (more > 0)
			taken += more;
		else
			queue->broken = more != -EINTR;
	}
	return taken;
}

static int
results_uring(WsQueue *queue, int least)
{
	struct io_uring *ring = &((UringQueue *) queue)->ring;
	struct io_uring_cqe *cqes[WS_DEPTH];
	unsigned	n;

	/* whatever that says, what has come is taken */
	(void) io_uring_wait_cqe_nr(ring, &cqes[0], (unsigned) least);
	n = io_uring_peek_batch_cqe(ring, cqes, WS_DEPTH);
	for (unsigned i = 0; i < n; i++)
		ws_operation_done(io_uring_cqe_get_data(cqes[i]), cqes[i]->res);
	io_uring_cq_advance(ring, n);
	return (int) n;
}

const WsQueueOps ws_queue_uring = {sizeof(UringQueue), 0, open_uring, submit_uring, results_uring, end_uring};
#else
const WsQueueOps ws_queue_uring = {0, 0, NULL, NULL, NULL, NULL};
#endif							/* HAVE_LIBURING */
