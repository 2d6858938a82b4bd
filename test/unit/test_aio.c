/*-------------------------------------------------------------------------
 * test_aio.c - the reader that has many reads on their way (file/async.c), over a file of this directory's
 * file system, or over several that are one, and both queues of the system, libaio and io_uring.
 *
 * What it brings must be what the file has, in the order in which it was asked for, with any number of reads
 * on their way, in the page cache and not; reads that cannot be done so are done otherwise; and nothing may
 * be on its way once the reader is closed, or the memory context that it belongs to is gone.
 *-------------------------------------------------------------------------
 */
#define WS_REAL_DESCRIPTORS
#include "server.c"
#include "memfiles.c"

#include "../../src/os/region.c"
#include "../../src/os/owned.c"
#include "../../src/os/helper.c"
#include "../../src/os/sigbus.c"
#include "../../src/os/resident.c"
#include "../../src/file/reader.c"
#include "../../src/file/stripe.c"

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

static bool no_queue;			/* the system gives none */
static int	takes = -1;			/* it takes so many reads more, and refuses what is behind them; -1: all */
static long given;				/* reads that it has taken */

/* What the system is asked for, so that it can refuse. */
#ifdef HAVE_LIBAIO
#include <libaio.h>

static int
test_io_setup(int n, io_context_t *context)
{
	return no_queue ? -EAGAIN : io_setup(n, context);
}

static int
test_io_submit(io_context_t context, long n, struct iocb **iocbs)
{
	int			taken = takes == 0 ? -EAGAIN : io_submit(context, takes < 0 ? n : Min(n, takes), iocbs);

	if (taken > 0)
	{
		given += taken;
		takes -= takes > 0 ? taken : 0;
	}
	return taken;
}
#define io_setup		test_io_setup
#define io_submit		test_io_submit
#endif
#ifdef HAVE_LIBURING
#include <liburing.h>

static int
test_queue_init(unsigned n, struct io_uring *ring, unsigned flags)
{
	return no_queue ? -EPERM : io_uring_queue_init(n, ring, flags);
}

/* What is behind those that it takes stays in the ring's memory. */
static int
test_submit(struct io_uring *ring)
{
	unsigned	tail = ring->sq.sqe_tail;
	int			taken;

	if (takes == 0)
		return -EAGAIN;
	if (takes > 0)
		ring->sq.sqe_tail = Min(tail, ring->sq.sqe_head + takes);
	taken = io_uring_submit(ring);
	if (taken > 0)
	{
		given += taken;
		takes -= takes > 0 ? taken : 0;
	}
	ring->sq.sqe_tail = tail;
	return taken;
}
#define io_uring_queue_init	test_queue_init
#define io_uring_submit		test_submit
#endif

static bool no_nowait;			/* the file system does not know RWF_NOWAIT */
static long refusals;			/* times that it was asked all the same */

#include <sys/uio.h>

static ssize_t
test_preadv2(int fd, const struct iovec *to, int n, off_t offset, int flags)
{
	if (no_nowait && flags != 0)
	{
		refusals++;
		errno = EOPNOTSUPP;
		return -1;
	}
	return preadv2(fd, to, n, offset, flags);
}
#define preadv2			test_preadv2

/* Whether the system gives a queue of the kind, which file/async.c is not asked. */
static bool
system_has(WsReaderKind kind, int depth)
{
#ifdef HAVE_LIBAIO
	io_context_t context = NULL;

	if (kind == WS_READER_LIBAIO && io_setup(depth, &context) == 0)
	{
		io_destroy(context);
		return true;
	}
#endif
#ifdef HAVE_LIBURING
	struct io_uring ring;

	if (kind == WS_READER_URING && io_uring_queue_init((unsigned) depth, &ring, 0) == 0)
	{
		bool		reads = (ring.features & IORING_FEAT_RW_CUR_POS) != 0;

		io_uring_queue_exit(&ring);
		return reads;
	}
#endif
	return false;
}

#include "../../src/file/aio.c"
#include "../../src/file/uring.c"
#include "../../src/file/async.c"

#define BLOCK	4096
#define BLOCKS	2048
#define READS	200

static WsStripe stripe;
static int	cached_fd[WS_MOST_MEMBERS];
static int	direct_fd[WS_MOST_MEMBERS];
static WsFileSet *files;
static char *content;
static long split;				/* reads that were of bytes in two files */

/* The kind that is tested, and its name. */
static WsReaderKind tested;
static const char *name;

bool
ws_file_allow_direct(WsFileSet *set, int file, int *cached)
{
	for (int i = 0; i < WS_MOST_MEMBERS; i++)
		cached[i] = i < stripe.width ? cached_fd[i] : -1;
	return direct_fd[0] >= 0;
}

bool
ws_file_stretch(const WsFileSet *set, int file, Size bytes, int64 offset, WsStretch *stretch)
{
	WsPart		part = ws_stripe_part(&stripe, bytes, offset);

	*stretch = (WsStretch) {part.member, cached_fd[part.member], direct_fd[part.member], part.offset};
	split += part.bytes != bytes;
	return part.bytes == bytes;
}

/* A reader of the kind that is tested, or NULL. */
static WsReader *
make_reader(void)
{
	WsReaderKind kind = tested;
	WsReader   *reader = ws_reader_async(files, 0, true, &kind);

	if (reader != NULL && kind != tested)
	{
		reader->ops->close(reader);
		return NULL;
	}
	return reader;
}

/* Nothing of the files is in the page cache. */
static void
drop(void)
{
	for (int i = 0; i < stripe.width; i++)
		(void) posix_fadvise(cached_fd[i], 0, 0, POSIX_FADV_DONTNEED);
}

/* Writes what has to be in a file. */
static void
write_member(int i)
{
	WsPart		part;

	for (Size at = 0; at < (Size) BLOCKS * BLOCK; at += part.bytes)
	{
		part = ws_stripe_part(&stripe, (Size) BLOCKS * BLOCK - at, at);
		if (part.member == i &&
			pwrite(cached_fd[i], content + at, part.bytes, part.offset) != (ssize_t) part.bytes)
			server_die("no file could be written in test/unit");
	}
	if (fsync(cached_fd[i]) != 0)
		server_die("no file could be synced in test/unit");
}

/* The same bytes in `width` files, and in a file in memory, from which it is read otherwise. */
static void
make_files(int width)
{
	static const WsThreads no_threads = {0};

	stripe = (WsStripe) {width, 60 * BLOCK};
	content = aligned_alloc(BLOCK, (size_t) BLOCKS * BLOCK);
	for (Size i = 0; i < (Size) BLOCKS * BLOCK; i++)
		content[i] = (char) (i / BLOCK * 7 + i % 251);
	for (int i = 0; i < width; i++)
	{
		char		path[] = "test/unit/aio.XXXXXX";

		cached_fd[i] = mkstemp(path);
		write_member(i);
		direct_fd[i] = open(path, O_RDONLY | O_DIRECT);
		unlink(path);
	}
	files = ws_fileset_create(&no_threads, 0);
	ws_file_create(files);
	ws_file_write(files, 0, content, (Size) BLOCKS * BLOCK, 0);
}

/* Reads of one to four blocks at random, up to `depth` of them on their way; how many were wrong. */
static long
read_at_random(WsReader *reader, int depth, bool odd)
{
	static WsRead reads[READS];
	char	   *buffers = aligned_alloc(BLOCK, (size_t) READS * 4 * BLOCK);
	long		wrong = 0;
	int			asked = 0;

	/* Valgrind does not see what a ring brings */
	memset(buffers, 0x44, (size_t) READS * 4 * BLOCK);
	for (int got = 0; got < READS; got++)
	{
		WsRead	   *read;

		for (; asked < READS && asked < got + depth; asked++)
		{
			read = &reads[asked];
			memset(read, 0, sizeof(WsRead));
			read->bytes = (1 + next_random() % 4) * BLOCK - (odd ? 100 : 0);
			read->offset = (int64) (next_random() % (BLOCKS - 4)) * BLOCK + (odd ? 12 : 0);
			read->buffer = buffers + (Size) asked * 4 * BLOCK;
			reader->ops->submit(reader, read);
		}
		read = reader->ops->wait(reader);
		wrong += read != &reads[got] || read->error != 0 ||
			memcmp(read->data, content + read->offset, read->bytes) != 0;
	}
	wrong += reader->ops->wait(reader) != NULL;
	free(buffers);
	return wrong;
}

/* Blocks that are in the page cache. */
static long
resident(void)
{
	static unsigned char there[BLOCKS];
	long		n = 0;

	for (int i = 0; i < stripe.width; i++)
	{
		Size		bytes = (Size) ws_stripe_length(&stripe, (int64) BLOCKS * BLOCK, i);
		void	   *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, cached_fd[i], 0);

		if (map == MAP_FAILED || mincore(map, bytes, there) != 0)
			server_die("mincore does not work here");
		for (Size j = 0; j < bytes / BLOCK; j++)
			n += there[j] & 1;
		munmap(map, bytes);
	}
	return n;
}

static void
reads(bool dropped)
{
	const int	depths[] = {1, 2, 63, 64, 65, 191, 192, 193, READS};

	for (int i = 0; i < lengthof(depths); i++)
		for (int odd = 0; odd < 2; odd++)
		{
			WsReader   *reader;
			long		wrong;

			if (dropped)
				drop();
			given = split = 0;
			reader = make_reader();
			wrong = reader == NULL ? -1 : read_at_random(reader, depths[i], odd);
			CHECK(wrong == 0 && ((AsyncReader *) reader)->on_their_way == 0 && pg_atomic_read_u64(&reader->bytes) > 0,
				  "%s: %s, %d at once%s, %d files: %ld wrong", name,
				  dropped ? "from the device" : "from the page cache", depths[i], odd ? ", not aligned" : "",
				  stripe.width, wrong);
			if (dropped && !odd)
				CHECK(given == READS - split && (split > 0) == (stripe.width > 1) && resident() == 0,
					  "%s: all in one file are given to the system, past the page cache: %ld, %ld not, %ld blocks",
					  name, given, split, resident());
			if (reader != NULL)
				reader->ops->close(reader);
		}
}

/* The file system does not know RWF_NOWAIT: what the page cache has comes from there all the same. */
static void
without_nowait(void)
{
	WsReader   *reader = make_reader();
	long		wrong;

	for (int i = 0; i < stripe.width; i++)
		write_member(i);
	given = refusals = 0;
	no_nowait = true;
	wrong = read_at_random(reader, 64, false);
	no_nowait = false;
	CHECK(wrong == 0 && given == 0 && refusals == 1 && resident() == (long) BLOCKS,
		  "%s: from the page cache, without RWF_NOWAIT: %ld reads of the device, asked %ld times (%ld wrong)", name,
		  given, refusals, wrong);
	reader->ops->close(reader);
}

/* 64 reads, or as many as are asked for, into buffers that lie one behind the other. */
static char *
submit_some(WsReader *reader, WsRead *reads, int n)
{
	char	   *buffer = aligned_alloc(BLOCK, (size_t) n * BLOCK);

	drop();
	memset(buffer, 0x55, (size_t) n * BLOCK);
	for (int i = 0; i < n; i++)
	{
		reads[i] = (WsRead) {.offset = (int64) i * 8 * BLOCK, .bytes = BLOCK, .buffer = buffer + i * BLOCK};
		reader->ops->submit(reader, &reads[i]);
	}
	reader->ops->start(reader);
	return buffer;
}

/* Those of the first n that have not come. */
static int
not_there(const char *buffer, int n)
{
	int			missing = 0;

	for (int i = 0; i < n; i++)
		missing += memcmp(buffer + i * BLOCK, content + (Size) i * 8 * BLOCK, BLOCK) != 0;
	return missing;
}

/* What is on its way has come when the memory context is gone, without a close, or the reader is closed. */
static void
left_alone(bool closed)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "reader", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	WsReader   *reader = make_reader();
	static WsRead reads[READS];
	int			idle_before = kinds[tested].nidle;
	char	   *buffer = submit_some(reader, reads, READS);
	int			missing;

	MemoryContextSwitchTo(old);
	if (closed)
		reader->ops->close(reader);
	else
		MemoryContextDelete(context);
	missing = not_there(buffer, WS_DEPTH);
	memset(buffer, 0x66, (size_t) READS * BLOCK);
	if (closed)
		MemoryContextDelete(context);
	CHECK(missing == 0 && kinds[tested].nidle == idle_before + 1,
		  "%s: %s waits for its reads, and gives the queue back: %d missing", name,
		  closed ? "a reader that is closed" : "a memory context", missing);
	drop();
	reader = make_reader();
	missing = read_at_random(reader, READS, false) != 0;
	for (int i = 0; i < READS * BLOCK; i++)
		missing += buffer[i] != 0x66;
	CHECK(missing == 0, "%s: and nothing comes afterwards", name);
	reader->ops->close(reader);
	free(buffer);
}

static void
refused(void)
{
	int			direct[WS_MOST_MEMBERS];
	WsReader   *reader;
	WsRead		read = {.offset = (int64) (BLOCKS - 1) * BLOCK, .bytes = 2 * BLOCK,
	.buffer = aligned_alloc(BLOCK, 2 * BLOCK)};
	WsReaderKind kind = tested;

	reader = make_reader();
	reader->ops->submit(reader, &read);
	CHECK(reader->ops->wait(reader) == &read && read.error == SHORT_FILE,
		  "%s: a read behind the file's end: error %d", name, read.error);
	reader->ops->close(reader);

	memcpy(direct, direct_fd, sizeof(direct));
	direct_fd[0] = -1;
	CHECK(ws_reader_async(files, 0, true, &kind) == NULL && kind == WS_READER_SYNC,
		  "%s: no descriptor: no reader", name);

	/* one that may not be read from: each read is refused, and done otherwise */
	for (int i = 0; i < stripe.width; i++)
		direct_fd[i] = open("/dev/null", O_WRONLY);
	drop();
	reader = make_reader();
	CHECK(read_at_random(reader, 64, false) == 0, "%s: reads that the system refuses are done otherwise", name);
	reader->ops->close(reader);
	for (int i = 0; i < stripe.width; i++)
		close(direct_fd[i]);
	memcpy(direct_fd, direct, sizeof(direct));
	free(read.buffer);
}

/* The file has become shorter than it was when the reader was made. */
static void
cut(void)
{
	const Size	left = (Size) BLOCKS / 2 * BLOCK + 1000;
	WsReader   *reader = make_reader();
	WsRead		reads[3];
	char	   *buffer = aligned_alloc(BLOCK, (size_t) 6 * BLOCK);
	long		wrong = 0;

	memset(buffer, 0x44, (size_t) 6 * BLOCK);
	for (int i = 0; i < stripe.width; i++)
		if (ftruncate(cached_fd[i], (off_t) ws_stripe_length(&stripe, (int64) left, i)) != 0)
			server_die("a file could not be made shorter");
	files->files[0].size = (int64) left;
	drop();
	for (int i = 0; i < 3; i++)
	{
		/* before the end, across it and behind it */
		reads[i] = (WsRead) {.offset = (int64) (BLOCKS / 2 - 3 + 2 * i) * BLOCK, .bytes = 2 * BLOCK,
		.buffer = buffer + 2 * i * BLOCK};
		reader->ops->submit(reader, &reads[i]);
	}
	for (int i = 0; i < 3; i++)
		wrong += reader->ops->wait(reader) != &reads[i] || reads[i].error != (i == 0 ? 0 : SHORT_FILE);
	wrong += memcmp(buffer, content + reads[0].offset, 2 * BLOCK) != 0;
	CHECK(wrong == 0, "%s: a file that has become shorter", name);
	reader->ops->close(reader);
	for (int i = 0; i < stripe.width; i++)
		write_member(i);
	files->files[0].size = (int64) BLOCKS * BLOCK;
	free(buffer);
}

/* The system takes a part of what it is given. */
static void
partly(void)
{
	for (int n = 0; n < 100; n += 11)
	{
		WsReader   *reader;
		long		wrong;

		drop();
		reader = make_reader();
		takes = n;
		wrong = reader == NULL ? -1 : read_at_random(reader, READS, false);
		takes = -1;
		CHECK(wrong == 0, "%s: the system takes %d reads and no more: %ld wrong", name, n, wrong);
		if (reader != NULL)
			reader->ops->close(reader);
	}
	left_alone(true);
}

/* The system gives no queue of one kind, and then of none. */
static void
no_queues(void)
{
	WsReaderKind kind = tested;
	WsReader   *reader;
	WsQueue    *idle[WS_READER_KINDS];

	for (int i = 0; i < WS_READER_KINDS; i++)
	{
		idle[i] = kinds[i].idle;
		kinds[i].idle = NULL;
	}
	no_queue = true;
	CHECK(ws_reader_async(files, 0, true, &kind) == NULL && kind == WS_READER_SYNC,
		  "%s: the system gives no queue: no reader", name);
	for (int i = 0; i < WS_READER_KINDS; i++)
		if (i != tested)
			kinds[i].idle = idle[i];
	for (int i = 0; i < WS_READER_KINDS; i++)
		if (i != tested && idle[i] != NULL)
		{
			kind = tested;
			reader = ws_reader_async(files, 0, true, &kind);
			CHECK(reader != NULL && kind == i && read_at_random(reader, READS, false) == 0,
				  "%s: the other kind takes its place", name);
			reader->ops->close(reader);
		}
	kinds[tested].idle = idle[tested];
	no_queue = false;
	kind = WS_READER_SYNC;
	CHECK(ws_reader_async(files, 0, true, &kind) == NULL && kind == WS_READER_SYNC,
		  "%s: none if none is wanted", name);
#ifdef HAVE_LIBURING
	if (tested == WS_READER_URING)
	{
		int			before = server.descriptors;

		kinds[tested].idle = NULL;
		server.no_descriptors = true;
		CHECK(make_reader() == NULL && server.descriptors == before, "%s: no descriptor to spare", name);
		server.no_descriptors = false;
		kinds[tested].idle = idle[tested];
	}
#endif
}

/* A thread submits, and ends; another waits for what it has submitted. */
static void *
submitter(void *arg)
{
	WsReader   *reader = arg;
	static WsRead reads[READS];

	return submit_some(reader, reads, READS);
}

static void
threads(void)
{
	long		wrong = 0;

	for (int i = 0; i < 20; i++)
	{
		WsReader   *reader = make_reader();
		pthread_t	thread;
		void	   *buffer;
		WsRead	   *read;

		if (pthread_create(&thread, NULL, submitter, reader) != 0 || pthread_join(thread, &buffer) != 0)
			server_die("no thread");
		while ((read = reader->ops->wait(reader)) != NULL)
			wrong += read->error != 0;
		wrong += not_there(buffer, READS);
		reader->ops->close(reader);
		free(buffer);
	}
	CHECK(wrong == 0, "%s: who waits is not who submitted, and that has ended: %ld wrong", name, wrong);
}

static void
nothing(int number)
{
}

/* Signals come all the time. */
static void
interrupted(void)
{
	struct sigaction act = {.sa_handler = nothing};
	struct sigaction before;
	struct itimerval often = {{0, 100}, {0, 100}};
	const struct itimerval never = {{0, 0}, {0, 0}};
	long		wrong = 0;

	sigaction(SIGALRM, &act, &before);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 10; i++)
	{
		WsReader   *reader = make_reader();

		drop();
		wrong += read_at_random(reader, 1 + i * 10, false);
		reader->ops->close(reader);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	CHECK(wrong == 0, "%s: signals: %ld wrong", name, wrong);
}

/* A process that is forked does not use the queues that are here. */
static void
forked(void)
{
	pid_t		child;
	int			status = -1;

	fflush(stdout);
	child = fork();
	if (child == 0)
	{
		WsReader   *reader = make_reader();

		drop();
		_exit(reader != NULL && read_at_random(reader, READS, false) == 0 ? 0 : 1);
	}
	waitpid(child, &status, 0);
	CHECK(status == 0 && kinds[tested].nidle > 0, "%s: a process that is forked has queues of its own: %d", name,
		  status);
	status = (int) read_at_random(make_reader(), READS, false);
	CHECK(status == 0, "%s: and this one keeps its own", name);
}

/* More readers at once than queues are kept for. */
static void
many(void)
{
	WsReader   *readers[MOST_IDLE + 4];
	long		wrong = 0;

	for (int i = 0; i < lengthof(readers); i++)
		readers[i] = make_reader();
	for (int i = 0; i < lengthof(readers); i++)
		wrong += readers[i] == NULL || read_at_random(readers[i], 8, false) != 0;
	for (int i = 0; i < lengthof(readers); i++)
		if (readers[i] != NULL)
			readers[i]->ops->close(readers[i]);
	CHECK(wrong == 0 && kinds[tested].nidle == MOST_IDLE, "%s: %d readers at once, %d queues kept", name,
		  (int) lengthof(readers), kinds[tested].nidle);
}

/* Ends the queues of the tested kind that nobody is using. */
static void
end_idle(void)
{
	WsQueue    *queue;

	while ((queue = kinds[tested].idle) != NULL)
	{
		kinds[tested].idle = queue->next;
		end_queue(queue);
	}
	kinds[tested].nidle = 0;
}

/* One that nobody is using, if the system gives it. */
static void
make_idle(void)
{
	WsReader   *reader = make_reader();

	if (reader != NULL)
		reader->ops->close(reader);
}

/* Queues for other numbers of reads at once make room for each other, and none is taken for another. */
static void
other_depths(void)
{
	long		wrong = 0;

	for (int depth = WS_DEPTH; depth <= 12 * WS_DEPTH; depth += WS_DEPTH)
	{
		WsQueue    *queue = take_queue(tested, depth);

		wrong += queue == NULL || queue->depth != depth;
		if (queue != NULL)
			give_queue_back(queue);
		wrong += kinds[tested].nidle > MOST_IDLE || kinds[tested].idle != queue;
	}
	wrong += kinds[tested].nidle != MOST_IDLE;
	CHECK(wrong == 0, "%s: queues of other depths: %ld wrong", name, wrong);
	end_idle();
	make_idle();
}

static void
all_of_it(void *width)
{
	static const char *const names[WS_READER_KINDS] = {"sync", "libaio", "io_uring"};
	WsReader   *reader;

	make_files(*(int *) width);
	if (direct_fd[0] < 0)
	{
		printf("ok - readers # SKIP files of test/unit cannot be read past the page cache\n");
		return;
	}
	for (tested = WS_READER_LIBAIO; tested < WS_READER_KINDS; tested++)
	{
		end_idle();
		make_idle();
	}
	for (tested = WS_READER_LIBAIO; tested < WS_READER_KINDS; tested++)
	{
		name = names[tested];
		reader = make_reader();
		if (reader == NULL)
		{
			if (system_has(tested, WS_DEPTH * stripe.width))
				CHECK(false, "%s: a reader", name);
			else
				printf("ok - %s # SKIP there is none\n", name);
			continue;
		}
		reader->ops->close(reader);
		reads(true);
		reads(false);
		without_nowait();
		left_alone(false);
		left_alone(true);
		refused();
		cut();
		partly();
		no_queues();
		threads();
		interrupted();
		forked();
		many();
		other_depths();
	}
}

int
main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int width = 1; width <= 3; width += 2)
		CHECK(server_try(all_of_it, &width), "no error (%s)", server.message);
	return failures != 0;
}
