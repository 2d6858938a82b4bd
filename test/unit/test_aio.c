/*-------------------------------------------------------------------------
 * test_aio.c - the reader that has many reads on their way (file/aio.c), over a file of this directory's
 * file system, or over several that are one.
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
#include "../../src/os/helper.c"
#include "../../src/os/sigbus.c"
#include "../../src/file/reader.c"
#include "../../src/file/stripe.c"
#include "../../src/file/aio.c"

#ifdef HAVE_LIBAIO
#define BLOCK	4096
#define BLOCKS	2048
#define READS	200

static WsStripe stripe;
static int	cached_fd[WS_MOST_MEMBERS];
static int	direct_fd[WS_MOST_MEMBERS];
static WsFileSet *files;
static char *content;

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
	return part.bytes == bytes;
}

static void
make_member(int i)
{
	char		name[] = "test/unit/aio.XXXXXX";
	int			fd = mkstemp(name);
	WsPart		part;

	for (Size at = 0; at < (Size) BLOCKS * BLOCK; at += part.bytes)
	{
		part = ws_stripe_part(&stripe, (Size) BLOCKS * BLOCK - at, at);
		if (part.member == i &&
			pwrite(fd, content + at, part.bytes, part.offset) != (ssize_t) part.bytes)
			server_die("no file could be written in test/unit");
	}
	if (fsync(fd) != 0)
		server_die("no file could be synced in test/unit");
	cached_fd[i] = fd;
	direct_fd[i] = open(name, O_RDONLY | O_DIRECT);
	unlink(name);
}

/* Has the page cache forget the files. */
static void
forget_files(void)
{
	for (int i = 0; i < stripe.width; i++)
		(void) posix_fadvise(cached_fd[i], 0, 0, POSIX_FADV_DONTNEED);
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
		make_member(i);
	files = ws_fileset_create(&no_threads, 0, true);
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
	const int	depths[] = {1, 2, 63, 64, 65, READS};

	for (int i = 0; i < lengthof(depths); i++)
		for (int odd = 0; odd < 2; odd++)
		{
			WsReader   *reader;
			long		wrong;

			if (dropped)
				forget_files();
			reader = ws_reader_aio(files, 0, true);
			wrong = reader == NULL ? -1 : read_at_random(reader, depths[i], odd);
			CHECK(wrong == 0 && ((AioReader *) reader)->on_their_way == 0 && reader->bytes > 0,
				  "%s, %d at once%s, %d files: %ld wrong", dropped ? "from the device" : "from the page cache",
				  depths[i], odd ? ", not aligned" : "", stripe.width, wrong);
			if (dropped && !odd && depths[i] <= DEPTH * stripe.width)
				CHECK(resident() == 0, "the page cache stays as it was: %ld blocks", resident());
			if (reader != NULL)
				reader->ops->close(reader);
		}
}

/* What is on its way has come when the memory context is gone, without a close. */
static void
left_alone(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "reader", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	WsReader   *reader = ws_reader_aio(files, 0, true);
	char	   *buffer = aligned_alloc(BLOCK, (size_t) 64 * BLOCK);
	static WsRead reads[64];
	int			idle_before = nidle;

	forget_files();
	memset(buffer, 0x55, (size_t) 64 * BLOCK);
	for (int i = 0; i < 64; i++)
	{
		reads[i] = (WsRead) {.offset = (int64) i * 16 * BLOCK, .bytes = BLOCK, .buffer = buffer + i * BLOCK};
		reader->ops->submit(reader, &reads[i]);
	}
	reader->ops->start(reader);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	for (int i = 0; i < 64; i++)
		if (memcmp(buffer + i * BLOCK, content + (Size) i * 16 * BLOCK, BLOCK) != 0)
			idle_before = -100;
	CHECK(nidle == idle_before + 1, "a memory context waits for its reads, and gives the kernel's context back");
	free(buffer);
}

static void
refused(void)
{
	int			direct[WS_MOST_MEMBERS];
	WsReader   *reader;
	WsRead		read = {.offset = (int64) (BLOCKS - 1) * BLOCK, .bytes = 2 * BLOCK,
	.buffer = aligned_alloc(BLOCK, 2 * BLOCK)};

	reader = ws_reader_aio(files, 0, true);
	reader->ops->submit(reader, &read);
	CHECK(reader->ops->wait(reader) == &read && read.error == SHORT_FILE, "a read behind the file's end: error %d",
		  read.error);
	reader->ops->close(reader);

	memcpy(direct, direct_fd, sizeof(direct));
	direct_fd[0] = -1;
	CHECK(ws_reader_aio(files, 0, true) == NULL, "no descriptor: no reader");

	/* one that may not be read from: each read is refused, and done otherwise */
	for (int i = 0; i < stripe.width; i++)
		direct_fd[i] = open("/dev/null", O_WRONLY);
	forget_files();
	reader = ws_reader_aio(files, 0, true);
	CHECK(read_at_random(reader, 64, false) == 0, "reads that the system refuses are done otherwise");
	reader->ops->close(reader);
	for (int i = 0; i < stripe.width; i++)
		close(direct_fd[i]);
	memcpy(direct_fd, direct, sizeof(direct));
	free(read.buffer);
}

/* More readers at once than contexts are kept for. */
static void
many(void)
{
	WsReader   *readers[MOST_IDLE + 4];
	long		wrong = 0;

	for (int i = 0; i < lengthof(readers); i++)
		readers[i] = ws_reader_aio(files, 0, true);
	for (int i = 0; i < lengthof(readers); i++)
		wrong += readers[i] == NULL || read_at_random(readers[i], 8, false) != 0;
	for (int i = 0; i < lengthof(readers); i++)
		if (readers[i] != NULL)
			readers[i]->ops->close(readers[i]);
	CHECK(wrong == 0 && nidle == MOST_IDLE, "%d readers at once, %d contexts kept", (int) lengthof(readers), nidle);
}

static void
all_of_it(void *width)
{
	make_files(*(int *) width);
	if (direct_fd[0] < 0)
	{
		printf("ok - skipped: files of test/unit cannot be read past the page cache\n");
		return;
	}
	while (nidle > 0)
		(void) io_destroy(idle[--nidle].context);
	reads(true);
	reads(false);
	left_alone();
	refused();
	many();
}
#endif

int
main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
#ifdef HAVE_LIBAIO
	for (int width = 1; width <= 3; width += 2)
		CHECK(server_try(all_of_it, &width), "no error (%s)", server.message);
#else
	printf("ok - skipped: built without libaio\n");
#endif
	return failures != 0;
}
