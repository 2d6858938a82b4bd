/*-------------------------------------------------------------------------
 * fakereader.c - a reader that injects faults, in the place of the plain one.
 *
 * The read of its n-th submit comes back from `wait` with EIO, cut off, or with a byte that has
 * changed (faults.h).  Otherwise it reads from the file set, which may have faults of its own: when it is
 * waited for, or, with fakereader_early, as soon as it is submitted, as a kind that reads ahead would.
 *
 * Memory: the struct, in CurrentMemoryContext.  What it is asked wrongly ends the program: a wait
 * without a submit, a read that is submitted twice, a helper where it has not said that it may be used by one.
 *-------------------------------------------------------------------------
 */
#include "faults.h"

/* Everything but these readers is reader.c's; they have other names here. */
#define ws_reader_plain ws_reader_plain_of_files
#define ws_reader_ahead ws_reader_ahead_of_files
#include "../../src/file/reader.c"
#undef ws_reader_plain
#undef ws_reader_ahead

typedef struct FakeReader
{
	WsReader	reader;			/* must be first */
	FaultKind	due;			/* what the read `failing` comes back with */
	WsRead	   *failing;
} FakeReader;

bool		fakereader_early;

static void
fake_read(WsReader *reader, WsRead *read)
{
	read->error = ws_file_read(reader->files, read->file, read->buffer, read->bytes, read->offset);
}

static void
fake_submit(WsReader *reader, WsRead *read)
{
	FakeReader *fake = (FakeReader *) reader;

	if (!server_in_backend() && !reader->helper_safe)
		server_die("a helper reads through a reader that is not safe");
	for (WsRead *other = reader->first; other != NULL; other = other->next)
		if (other == read)
			server_die("a read is submitted twice");
	for (FaultKind kind = FAULT_READER_EIO; kind <= FAULT_READER_FLIP; kind++)
		if (fault_due(kind))
		{
			fake->due = kind;
			fake->failing = read;
		}
	read->data = NULL;
	read->error = 0;
	ws_reader_queue(reader, read);
	if (fakereader_early)
		fake_read(reader, read);
}

static WsRead *
fake_wait(WsReader *reader)
{
	FakeReader *fake = (FakeReader *) reader;
	WsRead	   *read = ws_reader_unqueue(reader);

	if (read == NULL)
		server_die("a wait without a submit");
	if (!fakereader_early)
		fake_read(reader, read);
	read->data = read->buffer;
	if (read == fake->failing)
	{
		fake->failing = NULL;
		if (fake->due == FAULT_READER_EIO)
			read->error = EIO;
		else if (fake->due == FAULT_READER_SHORT)
		{
			memset(read->buffer + read->bytes / 2, 0, read->bytes - read->bytes / 2);
			read->error = SHORT_FILE;
		}
		else
			fault_flip(read->buffer, read->bytes);
	}
	if (read->error == 0)
		pg_atomic_fetch_add_u64(&reader->bytes, read->bytes);
	return read;
}

static const WsReaderOps faulty_ops = {fake_submit, NULL, fake_wait, free_reader};

/* What the sources take for the plain reader. */
WsReader *
ws_reader_plain(WsFileSet *files, bool helper_safe)
{
	FakeReader *fake = palloc0(sizeof(FakeReader));

	fake->reader.ops = &faulty_ops;
	fake->reader.files = files;
	fake->reader.helper_safe = helper_safe;
	return &fake->reader;
}

/* The same for the one that reads ahead. */
WsReader *
ws_reader_ahead(WsFileSet *files, bool helper_safe)
{
	return ws_reader_plain(files, helper_safe);
}
