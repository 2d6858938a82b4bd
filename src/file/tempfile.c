/*-------------------------------------------------------------------------
 * tempfile.c - a temporary file: written in large pieces, read or mapped.
 *
 * It lies in one tablespace whole; fileset.c makes one file of several.
 *
 * Everything goes through PostgreSQL's virtual files, so that temp_file_limit,
 * temp_tablespaces, log_temp_files, pg_stat_database and the clean-up at
 * abort work as they do for core's own temporary files.  Blocks are counted
 * in pgBufferUsage, which EXPLAIN (BUFFERS) shows as temp read and written.
 *
 * Helper threads write and read through a duplicate descriptor.  What they are
 * going to write is charged before, by writing its last byte through the
 * virtual file: temp_file_limit is only looked at there.
 *
 * The file belongs to CurrentResourceOwner: at abort it is closed and
 * deleted there, and emptied.  The struct, the mapping and the duplicate descriptor belong to
 * the memory context the file was created in, which may stay until the end of the transaction: an emptied
 * file takes no disk meanwhile, but for what a helper is still writing.
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* sync_file_range */
#endif
#include "file/tempfile.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "commands/tablespace.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/*
 * Bytes in one system call.  Larger writes gain nothing, and the page cache
 * takes larger folios for them, which the system finds less often among pages
 * that were freed a moment ago.
 */
#define WRITE_PIECE		(64 * 1024)

/* Bytes by which a file is made longer to have pages ready. */
#define EXTENSION		((Size) 16 * 1024 * 1024)

/* Bytes that may be on their way to the device behind what is being appended. */
#define BEHIND			((int64) 8 * 1024 * 1024)

#define TOO_SHORT		"It ends before the data that was written to it."

/* Whoever deletes the memory context also ends mapping and descriptor. */
typedef struct MappedTempFile
{
	WsTempFile	tf;
	WsMapping	mapping;
	MemoryContextCallback callback;
	const WsThreads *threads;
	WsOwned		owned;
} MappedTempFile;

static void owner_goes(WsOwned *owned, bool after, bool commits);

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

static void
close_descriptor(int *fd)
{
	if (*fd < 0)
		return;
	close(*fd);
	ReleaseExternalFD();
	*fd = -1;
}

static void
release(void *arg)
{
	MappedTempFile *m = arg;

	ws_owned_drop(&m->owned);
	unmap(m);
	close_descriptor(&m->tf.raw);
	close_descriptor(&m->tf.direct);
}

/*
 * Creates an empty temporary file in the next of temp_tablespaces.  Memory
 * comes from CurrentMemoryContext.  `threads` says which helpers there may be.
 */
WsTempFile *
ws_tempfile_create(const WsThreads *threads)
{
	MappedTempFile *m = palloc0(sizeof(MappedTempFile));

	PrepareTempTablespaces();
	m->tf.file = OpenTemporaryFile(false);
	m->tf.name = pstrdup(FilePathName(m->tf.file));
	m->tf.raw = m->tf.direct = -1;
	m->threads = threads;
	m->callback.func = release;
	m->callback.arg = m;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &m->callback);
	ws_owned_take(&m->owned, owner_goes);
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
		int			piece = (int) Min(left, (Size) WRITE_PIECE);
		int			done;

		errno = 0;
		done = FileWrite(tf->file, (char *) from, piece, offset,
						 WAIT_EVENT_BUFFILE_WRITE);
		if (done <= 0)
			ws_tempfile_write_failed(tf, errno == 0 ? ENOSPC : errno);
		from += done;
		offset += done;
		left -= done;
		CHECK_FOR_INTERRUPTS();
	}
	tf->size = Max(tf->size, offset);
	count_blocks(bytes, &pgBufferUsage.temp_blks_written);
}

/*
 * Reads exactly `bytes` bytes at `offset`, and returns 0, an errno, or WS_SHORT_FILE.  Raises and
 * counts nothing.
 * Callable from helpers if the file allows them.
 */
int
ws_tempfile_read(WsTempFile *tf, void *data, Size bytes, int64 offset)
{
	char	   *to = data;

	if (tf->raw >= 0)
		return ws_raw_read(tf->raw, data, bytes, offset);
	while (bytes > 0)
	{
		int			piece = (int) Min(bytes, (Size) 1024 * 1024);
		int			done = FileRead(tf->file, to, piece, offset,
									WAIT_EVENT_BUFFILE_READ);

		if (done <= 0)
			return done == 0 ? WS_SHORT_FILE : errno;
		to += done;
		offset += done;
		bytes -= done;
	}
	return 0;
}

/* Counts bytes that have been read. */
void
ws_tempfile_count_read(Size bytes)
{
	count_blocks(bytes, &pgBufferUsage.temp_blks_read);
}

/* Raises the error of a write that failed with `error`, as ws_raw_write returns it. */
void
ws_tempfile_write_failed(const WsTempFile *tf, int error)
{
	errno = error;
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not write to temporary file \"%s\": %m", tf->name)));
}

/*
 * Raises the error of a read of `where` that failed with `error`, as ws_raw_read
 * returns it.
 */
void
ws_tempfile_read_failed(const WsTempFile *tf, int error, const char *where)
{
	if (error == WS_SHORT_FILE)
		ws_corrupt(tf->name, TOO_SHORT, where);
	errno = error;
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not read from temporary file \"%s\": %m", tf->name),
			 errdetail("The read was of %s.", where)));
}

/* Makes the descriptor that helpers need, which has been accounted for; false if the system has none. */
static bool
duplicate_descriptor(WsTempFile *tf)
{
	/* FileSize makes sure that the virtual file has a descriptor. */
	if (FileSize(tf->file) >= 0)
		tf->raw = fcntl(FileGetRawDesc(tf->file), F_DUPFD_CLOEXEC, 0);
	if (tf->raw < 0)
		ReleaseExternalFD();
	return tf->raw >= 0;
}

/*
 * Makes the descriptor that helpers need, if there is none yet; false if the
 * process has none to spare.
 */
bool
ws_tempfile_allow_helpers(WsTempFile *tf)
{
	return tf->raw >= 0 || (AcquireExternalFD() && duplicate_descriptor(tf));
}

/*
 * The file's resource owner goes.  At abort, the disk is given back that it takes after it has been closed,
 * when its size has been counted, because something else holds it.
 */
static void
owner_goes(WsOwned *owned, bool after, bool commits)
{
	MappedTempFile *m = (MappedTempFile *) ((char *) owned - offsetof(MappedTempFile, owned));

	if (commits)
		return;
	/* until the owner has gone it is open: by another descriptor it can be emptied */
	if (!after && (m->tf.mapping != NULL || m->tf.mapped_elsewhere || m->tf.direct >= 0))
		(void) ws_tempfile_allow_helpers(&m->tf);
	if (after && m->tf.raw >= 0 && ftruncate(m->tf.raw, 0) != 0)
		elog(DEBUG1, "could not truncate temporary file \"%s\": %m", m->tf.name);
}

/*
 * What ws_tempfile_allow_helpers does, for a file for which there is no other way.  Raises an error if the
 * system has no descriptor.
 */
void
ws_tempfile_require_helpers(WsTempFile *tf)
{
	if (tf->raw >= 0)
		return;
	ReserveExternalFD();
	if (!duplicate_descriptor(tf))
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open temporary file \"%s\" once more: %m", tf->name)));
}

/*
 * Makes the descriptor for reading past the page cache, if there is none yet; false if the file system
 * knows no such thing, or the process has no descriptor to spare.
 */
bool
ws_tempfile_allow_direct(WsTempFile *tf)
{
#ifdef O_DIRECT
	char		name[32];

	if (tf->direct >= 0)
		return true;
	if (!ws_tempfile_allow_helpers(tf) || !AcquireExternalFD())
		return false;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", tf->raw);
	tf->direct = open(name, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (tf->direct < 0)
		ReleaseExternalFD();
	return tf->direct >= 0;
#else
	return false;
#endif
}

/*
 * Charges `bytes` bytes at `offset` that a helper is going to write, and makes
 * the file that long.  Raises what ws_tempfile_write raises.
 */
void
ws_tempfile_extend(WsTempFile *tf, Size bytes, int64 offset)
{
	ws_tempfile_write(tf, "", 1, offset + bytes - 1);
	if (bytes > BLCKSZ)			/* a block has been counted */
		count_blocks(bytes - BLCKSZ, &pgBufferUsage.temp_blks_written);
}

/*
 * Says that a helper is going to write `bytes` bytes at `offset`.  Without temp_file_limit
 * nothing is charged yet (the two threads would wait for each other's lock on
 * the file): that is left to ws_tempfile_charge.
 */
void
ws_tempfile_announce(WsTempFile *tf, Size bytes, int64 offset)
{
	if (temp_file_limit >= 0)
	{
		ws_tempfile_extend(tf, bytes, offset);
		return;
	}
	tf->size = Max(tf->size, offset + (int64) bytes);
	count_blocks(bytes, &pgBufferUsage.temp_blks_written);
}

/* Writes; returns 0 or an errno.  For helpers. */
int
ws_raw_write(int fd, const void *data, Size bytes, int64 offset)
{
	const char *from = data;

	while (bytes > 0)
	{
		ssize_t		done = pwrite(fd, from, Min(bytes, (Size) WRITE_PIECE), offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? errno : ENOSPC;
		from += done;
		offset += done;
		bytes -= done;
	}
	return 0;
}

/*
 * Can helpers append to this file, so that its length is known afterwards only?  Not where
 * temp_file_limit has to be looked at before.
 */
bool
ws_tempfile_allow_appending(WsTempFile *tf)
{
	return temp_file_limit < 0 && ws_tempfile_allow_helpers(tf);
}

/*
 * Writes, has the system begin to write that to the device, and waits for what was written BEHIND bytes
 * before, as a file grows, which then leaves the page cache: neither the table's pages nor anybody else's
 * have to.  But what it has up to `stays` may stay: most files are deleted before the system has written
 * them to the device, and need not be then.  Returns 0 or an errno.  For helpers.
 */
int
ws_raw_append(int fd, const void *data, Size bytes, int64 offset, int64 stays)
{
	int			error = ws_raw_write(fd, data, bytes, offset);

#ifdef SYNC_FILE_RANGE_WRITE
	if (error == 0 && offset >= stays)
		(void) sync_file_range(fd, offset, bytes, SYNC_FILE_RANGE_WRITE);
	if (error == 0 && offset >= stays + BEHIND)
	{
		(void) sync_file_range(fd, offset - BEHIND, bytes, SYNC_FILE_RANGE_WAIT_BEFORE |
							   SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
		ws_raw_forget(fd, bytes, offset - BEHIND, stays);
	}
#endif
	return error;
}

/* Counts bytes that a helper has appended, and that made the file so long. */
void
ws_tempfile_appended(WsTempFile *tf, Size bytes, int64 size)
{
	tf->size = Max(tf->size, size);
	count_blocks(bytes, &pgBufferUsage.temp_blks_written);
}

/*
 * Has the system begin to read what will be read soon.  Without a descriptor it does nothing.  For
 * helpers.
 */
void
ws_raw_read_ahead(int fd, Size bytes, int64 offset)
{
	if (fd >= 0)
		(void) posix_fadvise(fd, offset, bytes, POSIX_FADV_WILLNEED);
}

/* Makes a hole of what nobody will read again, which gives its disk back.  False if that cannot be. */
bool
ws_tempfile_punch(WsTempFile *tf, Size bytes, int64 offset)
{
#ifdef FALLOC_FL_PUNCH_HOLE
	/* FileSize makes sure that there is a descriptor */
	return FileSize(tf->file) >= 0 &&
		fallocate(FileGetRawDesc(tf->file), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
				  (off_t) bytes) == 0;
#else
	return false;
#endif
}

/*
 * Lets pages go that nobody will read again, but for those before `stays`.  Without a descriptor it does
 * nothing.  For helpers.
 */
void
ws_raw_forget(int fd, Size bytes, int64 offset, int64 stays)
{
	if (fd >= 0 && offset >= stays)
		(void) posix_fadvise(fd, offset, bytes, POSIX_FADV_DONTNEED);
}

/* Reads; returns 0, an errno, or WS_SHORT_FILE.  For helpers. */
int
ws_raw_read(int fd, void *data, Size bytes, int64 offset)
{
	char	   *to = data;

	while (bytes > 0)
	{
		ssize_t		done = pread(fd, to, bytes, offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? errno : WS_SHORT_FILE;
		to += done;
		offset += done;
		bytes -= done;
	}
	return 0;
}

/*
 * Has the system get pages for `bytes` bytes at `offset`, behind what has been given to helpers to
 * write: by reading ahead where there is nothing yet.  Unlike a write, that does not wait for the
 * file's lock, which a helper has nearly all the time.  To be followed by ws_tempfile_charge.
 */
void
ws_tempfile_prepare(WsTempFile *tf, Size bytes, int64 offset)
{
	if (tf->extended < offset + (int64) bytes)
	{
		int64		extended = offset + bytes + EXTENSION;

		if (FileTruncate(tf->file, extended, WAIT_EVENT_BUFFILE_TRUNCATE) != 0)
			return;
		tf->extended = extended;
	}
	(void) FilePrefetch(tf->file, offset, (int) bytes, WAIT_EVENT_BUFFILE_READ);
}

/*
 * Tells PostgreSQL how large the file has become, once helpers have written
 * all of it, and takes back what was prepared behind.
 */
void
ws_tempfile_charge(WsTempFile *tf)
{
	char		last;

	if (tf->extended > tf->size &&
		FileTruncate(tf->file, tf->size, WAIT_EVENT_BUFFILE_TRUNCATE) != 0)
		ws_tempfile_write_failed(tf, errno);
	tf->extended = 0;
	if (tf->size > 0 && FileRead(tf->file, &last, 1, tf->size - 1, WAIT_EVENT_BUFFILE_READ) == 1)
		(void) FileWrite(tf->file, &last, 1, tf->size - 1, WAIT_EVENT_BUFFILE_WRITE);
}

/* Raises the error of a file that has fewer than `bytes` bytes.  The virtual file has a descriptor then. */
void
ws_tempfile_check_length(const WsTempFile *tf, int64 bytes)
{
	int64		size = FileSize(tf->file);
	char		where[WS_WHERE_BYTES];

	if (size >= bytes)
		return;
	snprintf(where, sizeof(where), "at offset " INT64_FORMAT, Max(size, 0));
	ws_corrupt(tf->name, TOO_SHORT, where);
}

/* Raises the error of a mapping that cannot be, from errno. */
void
ws_tempfile_cannot_map(const WsTempFile *tf)
{
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not map temporary file \"%s\": %m", tf->name)));
}

/*
 * Maps `bytes` bytes at `offset` for reading to an address at which nothing else may be; both begin a page.
 * Whose address space it is ends the mapping.
 */
void
ws_tempfile_map_at(WsTempFile *tf, char *address, Size bytes, int64 offset)
{
	tf->mapped_elsewhere = true;
	ws_tempfile_check_length(tf, offset + (int64) bytes);
	if (mmap(address, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, FileGetRawDesc(tf->file),
			 (off_t) offset) == MAP_FAILED)
		ws_tempfile_cannot_map(tf);
}

/* Ends the mapping that ws_tempfile_map has made, if there is one. */
void
ws_tempfile_unmap(WsTempFile *tf)
{
	unmap((MappedTempFile *) tf);
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

	ws_tempfile_check_length(tf, bytes);
	base = mmap(NULL, bytes, PROT_READ, MAP_SHARED, FileGetRawDesc(tf->file), 0);
	if (base == MAP_FAILED)
		ws_tempfile_cannot_map(tf);
	(void) madvise(base, bytes, MADV_RANDOM);
	m->mapping.base = base;
	m->mapping.bytes = bytes;
	m->mapping.name = tf->name;
	tf->mapping = &m->mapping;
	ws_sigbus_register(&m->mapping);
	return base;
}

/*
 * Unmaps, closes and thereby deletes the file.  Its name is gone at return; its pages may
 * be given back a little later (dispose.c).
 */
void
ws_tempfile_close(WsTempFile *tf)
{
	MappedTempFile *m = (MappedTempFile *) tf;
	bool		tight = tf != NULL && tf->mapping != NULL && ws_room_is_short(tf->raw, tf->mapping->bytes);

	if (tf == NULL)
		return;
	FileClose(tf->file);		/* may raise a cancel: the callbacks do the rest then */
	ws_owned_drop(&m->owned);
	if (tf->mapping != NULL)
	{
		ws_sigbus_forget(&m->mapping);
		tf->mapping = NULL;
		ws_dispose(m->mapping.base, m->mapping.bytes, tight ? NULL : m->threads);
	}
	release(tf);
}
