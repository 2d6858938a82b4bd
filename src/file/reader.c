/*-------------------------------------------------------------------------
 * reader.c - the readers there are: plain, ahead and mapped (reader.h).
 *
 * Memory: the struct, in CurrentMemoryContext.  Buffers are the caller's; mappings belong to
 * their files.
 *-------------------------------------------------------------------------
 */
#include "file/reader.h"

/* Puts a read behind those submitted before. */
void
ws_reader_queue(WsReader *reader, WsRead *read)
{
	read->next = NULL;
	if (reader->first == NULL)
		reader->first = read;
	else
		reader->last->next = read;
	reader->last = read;
}

/* Takes the oldest read out; NULL if there is none. */
WsRead *
ws_reader_unqueue(WsReader *reader)
{
	WsRead	   *read = reader->first;

	if (read != NULL)
		reader->first = read->next;
	return read;
}

static void
free_reader(WsReader *reader)
{
	pfree(reader);
}

/* ---- plain ---- */

static WsRead *
wait_plain(WsReader *reader)
{
	WsRead	   *read = ws_reader_unqueue(reader);

	if (read == NULL)
		return NULL;
	read->error = ws_file_read(reader->files, read->file, read->buffer, read->bytes, read->offset);
	read->data = read->buffer;
	if (read->error == 0)
		pg_atomic_fetch_add_u64(&reader->bytes, read->bytes);
	return read;
}

static const WsReaderOps plain = {ws_reader_queue, NULL, wait_plain, free_reader};

/*
 * A reader that reads when it is waited for.  `helper_safe` says that all files it will be
 * asked for allow helpers.
 */
WsReader *
ws_reader_plain(WsFileSet *files, bool helper_safe)
{
	WsReader   *reader = palloc0(sizeof(WsReader));

	pg_atomic_init_u64(&reader->bytes, 0);
	reader->ops = &plain;
	reader->files = files;
	reader->helper_safe = helper_safe;
	return reader;
}

/* ---- ahead ---- */

static void
submit_ahead(WsReader *reader, WsRead *read)
{
	ws_file_read_ahead(reader->files, read->file, read->bytes, read->offset);
	ws_reader_queue(reader, read);
}

static WsRead *
wait_ahead(WsReader *reader)
{
	WsRead	   *read = wait_plain(reader);

	if (read != NULL)
		ws_file_forget(reader->files, read->file, read->bytes, read->offset);
	return read;
}

static const WsReaderOps ahead = {submit_ahead, NULL, wait_ahead, free_reader};

/* A reader that has the system read ahead; for files whose bytes are read once. */
WsReader *
ws_reader_ahead(WsFileSet *files, bool helper_safe)
{
	WsReader   *reader = ws_reader_plain(files, helper_safe);

	reader->ops = &ahead;
	return reader;
}

/* ---- mapped ---- */

typedef struct MappedReader
{
	WsReader	reader;			/* must be first */
	const char *map;
} MappedReader;

static WsRead *
wait_mapped(WsReader *reader)
{
	WsRead	   *read = ws_reader_unqueue(reader);

	if (read != NULL)
	{
		read->data = ((MappedReader *) reader)->map + read->offset;
		read->error = 0;
	}
	return read;
}

static const WsReaderOps mapped = {ws_reader_queue, NULL, wait_mapped, free_reader};

/*
 * A reader of the first `bytes` bytes of one file, through a mapping, which ends with the next
 * mapping of that file.  A page that cannot be read is a fault (os/sigbus.c).  Raises what
 * ws_file_map raises.
 */
WsReader *
ws_reader_mapped(WsFileSet *files, int file, int64 bytes)
{
	MappedReader *reader = palloc0(sizeof(MappedReader));

	pg_atomic_init_u64(&reader->reader.bytes, 0);
	reader->reader.ops = &mapped;
	reader->reader.files = files;
	reader->reader.helper_safe = true;
	reader->map = ws_file_map(files, file, bytes);
	return &reader->reader;
}

/* Counts what a reader has read.  In the backend. */
void
ws_reader_count(WsReader *reader)
{
	uint64		bytes = pg_atomic_exchange_u64(&reader->bytes, 0);

	if (bytes > 0)
		ws_file_count_read(reader->files, bytes);
}
