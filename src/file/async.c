/*-------------------------------------------------------------------------
 * async.c - a reader that has many reads on their way at once, past the page cache.
 *
 * posix_fadvise, which the reader `ahead` relies on, reads nothing ahead where a memory cgroup is at its
 * limit: the system gives up on pages that it would have to make room for, and each read waits for the
 * device.  Reads that go past the page cache (O_DIRECT) need no pages.  What the cache has is taken from
 * there: mincore tells whether it has a block.  (preadv2 with RWF_NOWAIT would tell, too, but reads what is
 * not there into the cache, so that the device had to read each block twice.)
 *
 * Reads are given to a queue of the system (queue.h) several at a time, where there are several: each time
 * the device has to be told.  WS_DEPTH for each tablespace that the file is in may be on their way; those
 * that come then wait until some have been handed back.
 *
 * A read that the device or the file system will not do so, that was cancelled, or that is of bytes in two
 * members of the file (fileset.c), is done as the plain reader does it: when it is waited for.
 *
 * Queues belong to the process and are used again, since ending one takes 10 ms and more.  They are taken
 * and given back by the backend alone; in between the reader's user may be a helper.
 *
 * Memory: as many operations, in CurrentMemoryContext; queues, in TopMemoryContext; address space as large
 * as the file, unless that is limited.  On error nothing may be on its way into memory that is given back:
 * the reader's memory context waits for it before it goes.
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* preadv2 */
#endif
#include "file/queue.h"
#include "file/stripe.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "utils/memdebug.h"
#include "utils/memutils.h"

/* Reads that have waited for operations are begun so many at a time. */
#define BATCH		(WS_DEPTH / 4)

/*
 * Queues of a kind that nobody is using, at most so many.  Ending one takes 10 ms, and each has
 * operations of libaio that the whole machine has 65,536 of: sessions of a pool keep it as long as they live.
 */
#define MOST_IDLE	1

typedef struct AsyncReader
{
	WsReader	reader;			/* must be first */
	MemoryContextCallback callback;
	WsQueue    *queue;			/* or NULL: given back */
	bool		waits;			/* the file system does not know RWF_NOWAIT */
	char	   *map[WS_MOST_MEMBERS];	/* of a member, to ask what is in the page cache; or NULL */
	Size		map_bytes[WS_MOST_MEMBERS];
	int			on_their_way;
	WsOperation **ready;		/* not given to the system yet.  Room for as many as the queue has */
	int			nready;
	WsRead	   *later;			/* the first read that has not begun for want of an operation, or NULL */
	WsOperation *free;
	int			nfree;
} AsyncReader;

/* The kinds of queues, and those that nobody is using. */
static struct
{
	const WsQueueOps *ops;
	WsQueue    *idle;
	int			nidle;
}			kinds[WS_READER_KINDS] = {
	[WS_READER_LIBAIO] = {&ws_queue_aio},
	[WS_READER_URING] = {&ws_queue_uring},
};

/* The process whose these are. */
static pid_t owner;

/* Gives the system what is ready.  What it refuses will be read otherwise, when it is waited for. */
static void
start_async(WsReader *reader)
{
	AsyncReader *r = (AsyncReader *) reader;
	int			taken = 0;

	if (r->nready > 0)
		taken = r->queue->ops->submit(r->queue, r->ready, r->nready);
	r->on_their_way += taken;
	for (; taken < r->nready; taken++)
		ws_operation_done(r->ready[taken], -EAGAIN);
	r->nready = 0;
}

/* Waits for at least so many results, or WS_DEPTH if that is less.  Callable from helpers. */
static void
take_results(AsyncReader *r, int least)
{
	r->on_their_way -= r->queue->ops->results(r->queue, Min(least, WS_DEPTH));
}

/* A queue of a kind, for `depth` reads at once; NULL if the system gives none. */
static WsQueue *
take_queue(WsReaderKind kind, int depth)
{
	const WsQueueOps *ops = kinds[kind].ops;
	WsQueue    *queue;

	if (ops == NULL || ops->open == NULL)
		return NULL;
	for (WsQueue **idle = &kinds[kind].idle; *idle != NULL; idle = &(*idle)->next)
		if ((*idle)->depth == depth)
		{
			queue = *idle;
			*idle = queue->next;
			kinds[kind].nidle--;
			return queue;
		}
	queue = MemoryContextAllocZero(TopMemoryContext, ops->bytes + depth * ops->operation_bytes);
	queue->kind = kind;
	queue->depth = depth;
	queue->ops = ops;
	if (!ops->open(queue))
	{
		pfree(queue);
		return NULL;
	}
	return queue;
}

static void
end_queue(WsQueue *queue)
{
	queue->ops->end(queue);
	pfree(queue);
}

/* Gives back a queue that nothing is on its way in.  The one that has been idle the longest makes room. */
static void
give_queue_back(WsQueue *queue)
{
	WsQueue   **last = &kinds[queue->kind].idle;

	if (queue->broken)
	{
		end_queue(queue);
		return;
	}
	if (kinds[queue->kind].nidle == MOST_IDLE)
	{
		while ((*last)->next != NULL)
			last = &(*last)->next;
		end_queue(*last);
		*last = NULL;
		kinds[queue->kind].nidle--;
	}
	queue->next = kinds[queue->kind].idle;
	kinds[queue->kind].idle = queue;
	kinds[queue->kind].nidle++;
}

/* Waits for what is on its way, and gives the queue back. */
static void
end(void *arg)
{
	AsyncReader *r = arg;

	if (r->queue == NULL)
		return;
	while (r->on_their_way > 0)
		take_results(r, r->on_their_way);
	r->nready = 0;
	r->later = NULL;
	for (int i = 0; i < WS_MOST_MEMBERS; i++)
		if (r->map[i] != NULL)
			munmap(r->map[i], r->map_bytes[i]);
	give_queue_back(r->queue);
	r->queue = NULL;
}

/* Has the page cache all of a block, which is at `s`? */
static bool
is_cached(const AsyncReader *r, const WsRead *read, const WsStretch *s)
{
	const char *map = r->map[s->member];

	return map != NULL && (Size) s->offset + read->bytes <= r->map_bytes[s->member] &&
		ws_pages_absent(map + s->offset, read->bytes) == 0;
}

/*
 * Reads a block through the page cache, which has just had it: without waiting for a device, if the file
 * system knows that (overlayfs, FUSE and others do not).  Returns what preadv2 does.
 */
static ssize_t
read_through_cache(AsyncReader *r, const WsRead *read, const WsStretch *s)
{
	struct iovec to = {read->buffer, read->bytes};

	if (!r->waits)
	{
		ssize_t		got = preadv2(s->cached, &to, 1, s->offset, RWF_NOWAIT);

		if (got >= 0 || errno == EAGAIN)
			return got;
		r->waits = true;
	}
	return preadv2(s->cached, &to, 1, s->offset, 0);
}

/* Reads what the page cache has at once; false if it has not all of it. */
static bool
read_cached(AsyncReader *r, WsRead *read, const WsStretch *s)
{
	if (!is_cached(r, read, s) || read_through_cache(r, read, s) != (ssize_t) read->bytes)
		return false;
	ws_file_forget(r->reader.files, read->file, read->bytes, read->offset);
	return true;
}

/* Reads from the page cache, or makes a read ready for the system.  There is an operation that is free. */
static void
begin_read(AsyncReader *r, WsRead *read)
{
	WsOperation *o = r->free;
	WsStretch	s;

	if (!ws_file_stretch(r->reader.files, read->file, read->bytes, read->offset, &s))
		return;
	if (read_cached(r, read, &s))
	{
		read->data = read->buffer;
		return;
	}
	if (s.offset % WS_IO_ALIGN != 0 || read->bytes % WS_IO_ALIGN != 0 ||
		(uintptr_t) read->buffer % WS_IO_ALIGN != 0)
		return;
	r->free = o->next;
	r->nfree--;
	o->read = read;
	o->fd = s.direct;
	o->offset = s.offset;
	o->done = false;
	r->ready[r->nready++] = o;
	read->operation = o;
}

/* Begins reads that had to wait for that. */
static void
begin_later(AsyncReader *r)
{
	for (; r->later != NULL && r->nfree > 0; r->later = r->later->next)
		begin_read(r, r->later);
	start_async(&r->reader);
}

static void
submit_async(WsReader *reader, WsRead *read)
{
	AsyncReader *r = (AsyncReader *) reader;

	ws_reader_queue(reader, read);
	read->operation = NULL;
	read->error = 0;
	read->data = NULL;
	if (r->later != NULL)
		return;
	if (r->nfree > 0)
		begin_read(r, read);
	else
		r->later = read;
}

/* Waits for an operation, which is free then. */
static void
finish_read(AsyncReader *r, WsOperation *o)
{
	WsRead	   *read = o->read;

	start_async(&r->reader);
	while (!o->done)
		take_results(r, 1);
	if (o->result == (long) read->bytes)
	{
		VALGRIND_MAKE_MEM_DEFINED(read->buffer, read->bytes);
		read->data = read->buffer;
	}
	else if (o->result == -EIO)
		read->error = ws_file_error(r->reader.files, read->file, read->offset, EIO);
	o->next = r->free;
	r->free = o;
	r->nfree++;
}

static WsRead *
wait_async(WsReader *reader)
{
	AsyncReader *r = (AsyncReader *) reader;
	WsRead	   *read;

	/* all operations are free when it is the first one's turn, of those that have not begun */
	if (r->nfree >= BATCH && r->later != NULL)
		begin_later(r);
	read = ws_reader_unqueue(reader);
	if (read == NULL)
		return NULL;
	if (read->operation != NULL)
		finish_read(r, read->operation);
	/* one that could not be done so, or ended early, which is the file's end or will be said then */
	if (read->data == NULL && read->error == 0)
		read->error = ws_file_read(reader->files, read->file, read->buffer, read->bytes, read->offset);
	read->data = read->buffer;
	if (read->error == 0)
		pg_atomic_fetch_add_u64(&reader->bytes, read->bytes);
	return read;
}

static void
close_async(WsReader *reader)
{
	/* the struct stays for its callback, until the context goes */
	end(reader);
}

static const WsReaderOps async = {submit_async, start_async, wait_async, close_async};

/*
 * Maps a member, if that can be done, and address space is not limited.  Nothing is read there.  Without it
 * all its blocks are read past the page cache.
 */
static void
map_member(AsyncReader *r, int member, int fd)
{
	struct rlimit limit;
	struct stat st;
	void	   *map;

	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		return;
	if (fstat(fd, &st) != 0 || st.st_size == 0)
		return;
	map = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return;
	r->map[member] = map;
	r->map_bytes[member] = (Size) st.st_size;
}

/* A queue of the wanted kind, or else of another. */
static WsQueue *
take_any_queue(WsReaderKind wanted, int depth)
{
	WsQueue    *queue;

	/* those of the process that this one was forked from are not valid here */
	for (int kind = 0; owner != getpid() && kind < WS_READER_KINDS; kind++)
	{
		kinds[kind].idle = NULL;
		kinds[kind].nidle = 0;
	}
	owner = getpid();
	queue = take_queue(wanted, depth);
	for (int kind = 0; queue == NULL && kind < WS_READER_KINDS; kind++)
		queue = take_queue(kind, depth);
	return queue;
}

/*
 * A reader of one file, in CurrentMemoryContext, by a queue of the kind *kind, or of another if the system
 * gives none; *kind becomes what it is.  NULL, and WS_READER_SYNC, if that was wanted, there is no queue
 * (not built in, aio-max-nr, io_uring_disabled, seccomp), or the file cannot be read past the page cache
 * (tmpfs).  The buffers that it reads into outlive that memory context.
 */
WsReader *
ws_reader_async(WsFileSet *files, int file, bool helper_safe, WsReaderKind *kind)
{
	WsReaderKind wanted = *kind;
	AsyncReader *r;
	WsOperation *operations;
	int			cached[WS_MOST_MEMBERS];
	int			depth = 0;

	*kind = WS_READER_SYNC;
	if (wanted == WS_READER_SYNC || !ws_file_allow_direct(files, file, cached))
		return NULL;
	for (int i = 0; i < WS_MOST_MEMBERS; i++)
		depth += cached[i] >= 0 ? WS_DEPTH : 0;
	/* nothing is raised between taking a queue and the callback that gives it back */
	r = palloc0(sizeof(AsyncReader));
	pg_atomic_init_u64(&r->reader.bytes, 0);
	r->ready = palloc(depth * sizeof(WsOperation *));
	operations = palloc0(depth * sizeof(WsOperation));
	r->queue = take_any_queue(wanted, depth);
	if (r->queue == NULL)
	{
		pfree(operations);
		pfree(r->ready);
		pfree(r);
		return NULL;
	}
	*kind = r->queue->kind;
	r->callback.func = end;
	r->callback.arg = r;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &r->callback);
	r->reader.ops = &async;
	r->reader.files = files;
	r->reader.helper_safe = helper_safe;
	for (int i = 0; i < WS_MOST_MEMBERS; i++)
		if (cached[i] >= 0)
			map_member(r, i, cached[i]);
	for (int i = 0; i < depth; i++)
	{
		operations[i].number = i;
		operations[i].next = r->free;
		r->free = &operations[i];
	}
	r->nfree = depth;
	return &r->reader;
}
