/*-------------------------------------------------------------------------
 * tempfile.c - a temporary file: written in large pieces, read or mapped.
 *
 * Everything goes through PostgreSQL's virtual files, so that temp_file_limit,
 * temp_tablespaces, log_temp_files, pg_stat_database and the clean-up at
 * abort work as they do for core's own temporary files.  Blocks are counted
 * in pgBufferUsage, which EXPLAIN (BUFFERS) shows as temp read and written.
 *
 * The file belongs to CurrentResourceOwner: at abort it is closed and
 * deleted there.  The struct and the mapping belong to the memory context
 * the file was created in.
 *-------------------------------------------------------------------------
 */
#include "io/io.h"

#include <sys/mman.h>

#include "commands/tablespace.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Whoever deletes the memory context also ends the mapping. */
typedef struct MappedTempFile
{
	WsTempFile	tf;
	WsMapping	mapping;
	MemoryContextCallback callback;
} MappedTempFile;

static void
unmap(void *arg)
{
	MappedTempFile *m = arg;

	if (m->tf.mapping != NULL)
	{
		ws_sigbus_forget(&m->mapping);
		munmap(m->mapping.base, m->mapping.bytes);
		m->tf.mapping = NULL;
	}
}

/*
 * Creates an empty temporary file in the next of temp_tablespaces.  Memory
 * comes from CurrentMemoryContext.
 */
WsTempFile *
ws_tempfile_create(void)
{
	MappedTempFile *m = palloc0(sizeof(MappedTempFile));

	PrepareTempTablespaces();
	m->tf.file = OpenTemporaryFile(false);
	m->tf.name = pstrdup(FilePathName(m->tf.file));
	m->callback.func = unmap;
	m->callback.arg = m;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &m->callback);
	return &m->tf;
}

static void
count_blocks(Size bytes, int64 *blocks)
{
	*blocks += (bytes + BLCKSZ - 1) / BLCKSZ;
}

/*
 * Writes `bytes` bytes at `offset`.  Raises the error of the system call
 * (ENOSPC as ERRCODE_DISK_FULL) or that of temp_file_limit.
 */
void
ws_tempfile_write(WsTempFile *tf, const void *data, Size bytes, int64 offset)
{
	const char *from = data;
	Size		left = bytes;

	while (left > 0)
	{
		int			piece = (int) Min(left, (Size) 1024 * 1024);
		int			done;

		errno = 0;
		done = FileWrite(tf->file, (char *) from, piece, offset,
						 WAIT_EVENT_BUFFILE_WRITE);
		if (done <= 0)
		{
			if (errno == 0)
				errno = ENOSPC;
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not write to temporary file \"%s\": %m", tf->name)));
		}
		from += done;
		offset += done;
		left -= done;
		CHECK_FOR_INTERRUPTS();
	}
	tf->size = Max(tf->size, offset);
	count_blocks(bytes, &pgBufferUsage.temp_blks_written);
}

/*
 * Reads exactly `bytes` bytes at `offset`.  Raises the error of the system
 * call, or ERRCODE_DATA_CORRUPTED when the file ends before.
 */
void
ws_tempfile_read(WsTempFile *tf, void *data, Size bytes, int64 offset)
{
	char	   *to = data;
	Size		left = bytes;

	while (left > 0)
	{
		int			piece = (int) Min(left, (Size) 1024 * 1024);
		int			done = FileRead(tf->file, to, piece, offset,
									WAIT_EVENT_BUFFILE_READ);

		if (done < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read from temporary file \"%s\": %m", tf->name)));
		if (done == 0)
			ws_corrupt(tf->name, "It ends before the data that was written to it.");
		to += done;
		offset += done;
		left -= done;
	}
	count_blocks(bytes, &pgBufferUsage.temp_blks_read);
	CHECK_FOR_INTERRUPTS();
}

/*
 * Maps the first `bytes` bytes for reading and returns the address, which is
 * valid until the next call, ws_tempfile_close, or the end of the memory
 * context.  A file that has become shorter than that raises
 * ERRCODE_DATA_CORRUPTED, here or at the first touch (sigbus.c).
 */
char *
ws_tempfile_map(WsTempFile *tf, int64 bytes)
{
	MappedTempFile *m = (MappedTempFile *) tf;
	void	   *base;

	if (tf->mapping != NULL && tf->mapping->bytes == (Size) bytes)
		return tf->mapping->base;
	unmap(m);

	/* FileSize also makes sure that the virtual file has a descriptor. */
	if (FileSize(tf->file) < bytes)
		ws_corrupt(tf->name, "It ends before the data that was written to it.");
	base = mmap(NULL, bytes, PROT_READ, MAP_SHARED, FileGetRawDesc(tf->file), 0);
	if (base == MAP_FAILED)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not map temporary file \"%s\": %m", tf->name)));
	(void) madvise(base, bytes, MADV_RANDOM);
	m->mapping.base = base;
	m->mapping.bytes = bytes;
	m->mapping.name = tf->name;
	tf->mapping = &m->mapping;
	ws_sigbus_register(&m->mapping);
	return base;
}

/* Unmaps, closes and thereby deletes the file. */
void
ws_tempfile_close(WsTempFile *tf)
{
	if (tf == NULL)
		return;
	unmap(tf);
	FileClose(tf->file);
}
