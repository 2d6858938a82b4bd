/*-------------------------------------------------------------------------
 * aio.c - a reader that has many reads on their way at once: libaio, past the page cache.
 *
 * posix_fadvise, which the reader `ahead` relies on, reads nothing ahead where a memory cgroup is at its
 * limit: the system gives up on pages that it would have to make room for, and each read waits for the
 * device.  Reads that go past the page cache (O_DIRECT) need no pages.  What the cache has is taken from
 * there: mincore tells whether it has a block.  (preadv2 with RWF_NOWAIT would tell, too, but reads what is
 * not there into the cache, so that the device had to read each block twice.)
 *
 * Reads are given to the system several at a time, where there are several: each time the device has to be
 * told.
 *
 * A read that the device or the file system will not do so is done as the plain reader does it:
 * when it is waited for.
 *
 * Contexts of the kernel belong to the process and are used again, since ending one takes 10 ms and more.
 * They are taken and given back by the backend alone; in between the reader's user may be a helper.
 *
 * Memory: DEPTH operations a tablespace, in CurrentMemoryContext; address space as large as the file, unless
 * that is limited.  On error nothing may be on its way into memory that is given back: the reader's memory
 * context waits for it before it goes.
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* O_DIRECT, preadv2 */
#endif
#include "file/reader.h"
#include "file/stripe.h"

#ifdef HAVE_LIBAIO
#include <fcntl.h>
#include <libaio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "utils/memutils.h"

/* Reads on their way at once, at most, for each tablespace that the file is in. */
#define DEPTH		64

/* Pages of a block that may come from the page cache, at most. */
#define MOST_PAGES	256

/* Contexts that nobody is using, at most so many. */
#define MOST_IDLE	16

/* One read on its way. */
typedef struct Operation
{
	struct iocb iocb;			/* must be first */
	WsRead	   *read;
	struct Operation *next;		/* of those that are free */
	bool		done;
	long		result;			/* bytes, or -errno */
} Operation;

typedef struct AioReader
{
	WsReader	reader;			/* must be first */
	MemoryContextCallback callback;
	io_context_t context;		/* or NULL: given back */
	char	   *map[WS_MOST_MEMBERS];	/* of a member, to ask what is in the page cache; or NULL */
	Size		map_bytes[WS_MOST_MEMBERS];
	int			on_their_way;
	int			nready;			/* of ready[]: not given to the system yet */
	Operation  *free;
	int			depth;
	struct iocb **ready;		/* room for `depth` */
	Operation  *operations;		/* `depth` of them */
} AioReader;

/* A context of the kernel, for so many reads at once. */
typedef struct IdleContext
{
	io_context_t context;
	int			depth;
} IdleContext;

static IdleContext idle[MOST_IDLE];
static int	nidle = 0;

/* Gives the system what is ready.  What it refuses will be read otherwise, when it is waited for. */
static void
start_aio(WsReader *reader)
{
	AioReader  *r = (AioReader *) reader;
	int			taken = 0;

	while (taken < r->nready)
	{
		int			n = io_submit(r->context, r->nready - taken, r->ready + taken);

		if (n <= 0)
			break;
		taken += n;
	}
	r->on_their_way += taken;
	for (; taken < r->nready; taken++)
	{
		Operation  *o = (Operation *) r->ready[taken];

		o->done = true;
		o->result = -EAGAIN;
	}
	r->nready = 0;
}

/* Takes up to DEPTH results, at least `least`.  Callable from helpers. */
static void
take_results(AioReader *r, int least)
{
	struct io_event events[DEPTH];
	int			n;

	do
	{
		n = io_getevents(r->context, least, DEPTH, events, NULL);
	} while (n == -EINTR);
	for (int i = 0; i < n; i++)
	{
		Operation  *o = (Operation *) events[i].obj;

		o->done = true;
		o->result = (long) events[i].res;
		r->on_their_way--;
	}
}

/* Waits for what is on its way, and gives the context back. */
static void
end(void *arg)
{
	AioReader  *r = arg;

	if (r->context == NULL)
		return;
	while (r->on_their_way > 0)
		take_results(r, Min(r->on_their_way, DEPTH));
	r->nready = 0;
	for (int i = 0; i < WS_MOST_MEMBERS; i++)
		if (r->map[i] != NULL)
			munmap(r->map[i], r->map_bytes[i]);
	if (nidle == MOST_IDLE && idle[0].depth != r->depth)
	{
		/* one that may not be wanted any more makes room */
		(void) io_destroy(idle[0].context);
		idle[0] = idle[--nidle];
	}
	if (nidle < MOST_IDLE)
		idle[nidle++] = (IdleContext) {r->context, r->depth};
	else
		(void) io_destroy(r->context);
	r->context = NULL;
}

/* Has the page cache all of a block, which is at `s`? */
static bool
is_cached(const AioReader *r, const WsRead *read, const WsStretch *s)
{
	const char *map = r->map[s->member];
	Size		page = (Size) sysconf(_SC_PAGESIZE);
	Size		begin = TYPEALIGN_DOWN(page, (Size) s->offset);
	Size		end = (Size) s->offset + read->bytes;
	Size		n = (end - begin + page - 1) / page;
	unsigned char there[MOST_PAGES];

	if (map == NULL || end > r->map_bytes[s->member] || n > MOST_PAGES ||
		mincore((void *) (map + begin), end - begin, there) != 0)
		return false;
	for (Size i = 0; i < n; i++)
		if ((there[i] & 1) == 0)
			return false;
	return true;
}

/* Reads what the page cache has at once; false if it has not all of it. */
static bool
read_cached(AioReader *r, WsRead *read, const WsStretch *s)
{
	struct iovec to = {read->buffer, read->bytes};

	if (!is_cached(r, read, s) ||
		preadv2(s->cached, &to, 1, s->offset, RWF_NOWAIT) != (ssize_t) read->bytes)
		return false;
	ws_file_forget(r->reader.files, read->file, read->bytes, read->offset);
	return true;
}

static void
submit_aio(WsReader *reader, WsRead *read)
{
	AioReader  *r = (AioReader *) reader;
	Operation  *o = r->free;
	struct iocb *iocb;
	WsStretch	s;

	ws_reader_queue(reader, read);
	read->operation = NULL;
	read->error = 0;
	read->data = NULL;
	/* in two members, or not there: as the plain reader */
	if (!ws_file_stretch(reader->files, read->file, read->bytes, read->offset, &s))
		return;
	if (read_cached(r, read, &s))
	{
		read->data = read->buffer;
		return;
	}
	if (o == NULL || s.offset % WS_IO_ALIGN != 0 || read->bytes % WS_IO_ALIGN != 0 ||
		(uintptr_t) read->buffer % WS_IO_ALIGN != 0)
		return;
	iocb = &o->iocb;
	io_prep_pread(iocb, s.direct, read->buffer, read->bytes, s.offset);
	r->ready[r->nready++] = iocb;
	r->free = o->next;
	o->read = read;
	o->done = false;
	read->operation = o;
}

static WsRead *
wait_aio(WsReader *reader)
{
	AioReader  *r = (AioReader *) reader;
	WsRead	   *read = ws_reader_unqueue(reader);
	Operation  *o;

	if (read == NULL)
		return NULL;
	o = read->operation;
	if (o != NULL)
	{
		if (r->nready > 0)
			start_aio(reader);
		while (!o->done)
			take_results(r, 1);
		if (o->result == (long) read->bytes)
			read->data = read->buffer;
		else if (o->result < 0 && o->result != -EINVAL && o->result != -EAGAIN)
			read->error = ws_file_error(reader->files, read->file, read->offset, (int) -o->result);
		o->next = r->free;
		r->free = o;
	}
	/* one that could not be done so, or ended early, which is the file's end or will be said then */
	if (read->data == NULL && read->error == 0)
		read->error = ws_file_read(reader->files, read->file, read->buffer, read->bytes, read->offset);
	read->data = read->buffer;
	if (read->error == 0)
		reader->bytes += read->bytes;
	return read;
}

static void
close_aio(WsReader *reader)
{
	/* the struct stays for its callback, until the context goes */
	end(reader);
}

static const WsReaderOps aio = {submit_aio, start_aio, wait_aio, close_aio};

/*
 * Maps a file, if that can be done, and address space is not limited.  Nothing is read there.  Without it
 * all its blocks are read past the page cache.
 */
static void
map_file(AioReader *r, int member, int fd)
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

/* A context of the kernel for `depth` reads at once; NULL if it gives none. */
static io_context_t
take_context(int depth)
{
	io_context_t context = NULL;

	for (int i = nidle - 1; i >= 0; i--)
		if (idle[i].depth == depth)
		{
			context = idle[i].context;
			idle[i] = idle[--nidle];
			return context;
		}
	return io_setup(depth, &context) == 0 ? context : NULL;
}
#endif							/* HAVE_LIBAIO */

/*
 * A reader of one file by libaio, in CurrentMemoryContext; NULL if that cannot be: it has not been built in,
 * the system gives no context (aio-max-nr, seccomp), or the file cannot be read past the page cache (tmpfs).
 * The buffers that it reads into outlive that memory context.
 */
WsReader *
ws_reader_aio(WsFileSet *files, int file, bool helper_safe)
{
#ifdef HAVE_LIBAIO
	AioReader  *r;
	int			cached[WS_MOST_MEMBERS];
	int			depth = 0;
	io_context_t context;

	if (!ws_file_allow_direct(files, file, cached))
		return NULL;
	for (int i = 0; i < WS_MOST_MEMBERS; i++)
		depth += cached[i] >= 0 ? DEPTH : 0;
	r = palloc0(sizeof(AioReader));
	context = take_context(depth);
	if (context == NULL)
	{
		pfree(r);
		return NULL;
	}
	r->reader.ops = &aio;
	r->reader.files = files;
	r->reader.helper_safe = helper_safe;
	r->context = context;
	r->depth = depth;
	r->ready = palloc(depth * sizeof(struct iocb *));
	r->operations = palloc0(depth * sizeof(Operation));
	for (int i = 0; i < WS_MOST_MEMBERS; i++)
		if (cached[i] >= 0)
			map_file(r, i, cached[i]);
	for (int i = 0; i < depth; i++)
	{
		r->operations[i].next = r->free;
		r->free = &r->operations[i];
	}
	r->callback.func = end;
	r->callback.arg = r;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &r->callback);
	return &r->reader;
#else
	return NULL;
#endif
}
