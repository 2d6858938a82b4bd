/*-------------------------------------------------------------------------
 * memfiles.c - the file set of src/file/file.h in memory, which can have faults.
 *
 * The same functions as fileset.c and tempfile.c have, linked in their place.  A file is a piece
 * of address space that never moves, so that a helper can write one part of it while the backend
 * writes another, as with a real file.  A set belongs to its memory context; its bytes go with a
 * callback, as descriptors do.
 *
 * The n-th call that writes, or reads, fails as faults.h says: EIO, ENOSPC, the end of the file, or
 * a byte that has changed.
 *
 * What a real file would let pass and still is wrong ends the program: a helper that writes what was
 * not announced, a helper at a file that does not allow it, a read of what was never written.
 *-------------------------------------------------------------------------
 */
#include "faults.h"

#include "file/file.h"

#define FILE_ROOM	((int64) 64 * 1024 * 1024)
#define MOST_FILES	40

typedef struct MemFile
{
	char		name[32];
	char	   *bytes;			/* FILE_ROOM of them */
	int64		size;
	bool		helpers;		/* may use it */
} MemFile;

struct WsFileSet
{
	MemoryContextCallback callback;
	int			n;
	MemFile		files[MOST_FILES];
	int64		counted;		/* bytes read */
};

Faults		faults;

/* No helper for files that are created from now on. */
bool		memfiles_no_helpers;

/* So many times no helper is allowed, as if there were no descriptor to be had then. */
int			memfiles_refusals;

/* A helper takes so long for a write, in microseconds. */
int			memfiles_helper_takes;

/* ---- faults ---- */

/* The `at`-th call of a kind fails from now on; at 0: none does. */
void
faults_set(FaultKind kind, long at)
{
	faults.kind = kind;
	faults.at = at;
	faults.calls = 0;
	server.cancel_at = kind == FAULT_CANCEL ? at : 0;
	server.commit_fails_at = kind == FAULT_COMMIT ? at : 0;
}

/* Has there been such a call?  After server_try. */
bool
faults_met(void)
{
	if (faults.kind == FAULT_CANCEL)
		return server.checks >= faults.at;
	if (faults.kind == FAULT_COMMIT)
		return server.commits >= faults.at;
	return faults.calls >= faults.at;
}

const char *
faults_name(FaultKind kind)
{
	static const char *const names[FAULT_KINDS] = {
		"none", "EIO on write", "ENOSPC on write", "EIO on write in a helper", "ENOSPC on write in a helper",
		"EIO on read", "short read", "flipped byte", "EIO of the reader", "short read of the reader",
		"flipped byte of the reader", "cancel", "no memory to commit"
	};

	return names[kind];
}

/* The SQLSTATE that a fault must lead to. */
int
faults_sqlstate(FaultKind kind)
{
	switch (kind)
	{
		case FAULT_WRITE_EIO:
		case FAULT_HELPER_EIO:
		case FAULT_FILE_EIO:
		case FAULT_READER_EIO:
			return ERRCODE_IO_ERROR;
		case FAULT_WRITE_ENOSPC:
		case FAULT_HELPER_ENOSPC:
			return ERRCODE_DISK_FULL;
		case FAULT_CANCEL:
			return ERRCODE_QUERY_CANCELED;
		case FAULT_COMMIT:
			return ERRCODE_OUT_OF_MEMORY;
		default:
			return ERRCODE_DATA_CORRUPTED;
	}
}

/* ---- the set ---- */

static void
memfiles_release(void *arg)
{
	WsFileSet  *set = arg;

	while (set->n > 0)
	{
		if (set->files[--set->n].bytes == NULL)
			continue;
		server_munmap(set->files[set->n].bytes, FILE_ROOM);
		server.files--;
	}
}

WsFileSet *
ws_fileset_create(const WsThreads *threads, int64 stays)
{
	WsFileSet  *set = palloc0(sizeof(WsFileSet));

	set->callback.func = memfiles_release;
	set->callback.arg = set;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &set->callback);
	return set;
}

void
ws_fileset_watch(WsFileSet *set, WsWatch *watch)
{
}

static MemFile *
memfile(const WsFileSet *set, int file)
{
	if (file < 0 || file >= set->n)
		server_die("file %d of %d", file, set->n);
	return (MemFile *) &set->files[file];
}

int
ws_file_create(WsFileSet *set)
{
	MemFile    *f = &set->files[set->n];

	if (set->n == MOST_FILES)
		server_die("more than %d files", MOST_FILES);
	snprintf(f->name, sizeof(f->name), "pgsql_tmp/mem%d", set->n);
	f->bytes = server_mmap(NULL, FILE_ROOM, PROT_READ | PROT_WRITE,
						   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (f->bytes == MAP_FAILED)
		server_die("no address space");
	f->size = 0;
	f->helpers = false;
	server.files++;
	return set->n++;
}

void
ws_fileset_stripe(WsFileSet *set, int64 extent)
{
}

void
ws_file_align(WsFileSet *set, int file, Size unit)
{
	if (memfile(set, file)->size > 0)
		server_die("%s is not empty", memfile(set, file)->name);
}

int
ws_file_width(const WsFileSet *set, int file)
{
	return 1;
}

void
ws_file_drop(WsFileSet *set, int file)
{
	MemFile    *f = memfile(set, file);

	/* whoever looks at it now is found out; the disk that it had counts, as its number is not used again */
	server_munmap(f->bytes, FILE_ROOM);
	f->bytes = NULL;
	server.files--;
}

bool
ws_file_allow_helpers(WsFileSet *set, int file)
{
	if (memfiles_refusals > 0 && !memfile(set, file)->helpers)
	{
		memfiles_refusals--;
		return false;
	}
	memfile(set, file)->helpers |= !memfiles_no_helpers;
	return memfile(set, file)->helpers;
}

static void
memfile_grow(MemFile *f, int64 end)
{
	if (end > FILE_ROOM)
		server_die("a file of more than %lld bytes", (long long) FILE_ROOM);
	f->size = Max(f->size, end);
}

/* Raises the fault of a write by the backend, if it is to have one. */
static void
memfile_write_fault(WsFileSet *set, int file)
{
	if (!server_in_backend())
		server_die("a helper writes as only the backend may");
	if (fault_due(FAULT_WRITE_EIO))
		ws_file_write_failed(set, file, EIO);
	if (fault_due(FAULT_WRITE_ENOSPC))
		ws_file_write_failed(set, file, ENOSPC);
}

void
ws_file_write(WsFileSet *set, int file, const void *data, Size bytes, int64 offset)
{
	MemFile    *f = memfile(set, file);

	memfile_write_fault(set, file);
	memfile_grow(f, offset + (int64) bytes);
	memcpy(f->bytes + offset, data, bytes);
}

void
ws_file_extend(WsFileSet *set, int file, Size bytes, int64 offset)
{
	memfile_write_fault(set, file);
	memfile_grow(memfile(set, file), offset + (int64) bytes);
}

void
ws_file_announce(WsFileSet *set, int file, Size bytes, int64 offset)
{
	memfile_grow(memfile(set, file), offset + (int64) bytes);
}

void
ws_file_prepare(WsFileSet *set, int file, Size bytes, int64 offset)
{
}

void
ws_file_charge(WsFileSet *set, int file)
{
	memfile_write_fault(set, file);
}

int
ws_file_write_raw(WsFileSet *set, int file, const void *data, Size bytes, int64 offset)
{
	MemFile    *f = memfile(set, file);

	if (!f->helpers || offset + (int64) bytes > f->size)
		server_die("a helper writes %zu bytes at %lld of %s, which has %lld", bytes, (long long) offset,
				   f->name, (long long) f->size);
	if (fault_due(FAULT_HELPER_EIO))
		return EIO;
	if (fault_due(FAULT_HELPER_ENOSPC))
		return ENOSPC;
	if (memfiles_helper_takes > 0)
		usleep(memfiles_helper_takes);
	memcpy(f->bytes + offset, data, bytes);
	return 0;
}

bool
ws_file_allow_appending(WsFileSet *set, int file)
{
	return ws_file_allow_helpers(set, file);
}

int
ws_file_append_raw(WsFileSet *set, int file, const void *data, Size bytes, int64 offset)
{
	memfile_grow(memfile(set, file), offset + (int64) bytes);
	return ws_file_write_raw(set, file, data, bytes, offset);
}

void
ws_file_appended(WsFileSet *set, int file, Size bytes, int64 size)
{
	if (!server_in_backend() || size > memfile(set, file)->size)
		server_die("%s has not been appended to", memfile(set, file)->name);
}

#ifndef WS_REAL_DESCRIPTORS
bool
ws_file_allow_direct(WsFileSet *set, int file, int *cached)
{
	return false;
}

bool
ws_file_stretch(const WsFileSet *set, int file, Size bytes, int64 offset, WsStretch *stretch)
{
	return false;
}
#endif

int
ws_file_error(const WsFileSet *set, int file, int64 offset, int error)
{
	return error;
}

void
ws_file_read_ahead(WsFileSet *set, int file, Size bytes, int64 offset)
{
}

bool
ws_file_punch(WsFileSet *set, int file, Size bytes, int64 offset)
{
	MemFile    *f = memfile(set, file);

	if (!server_in_backend() || offset + (int64) bytes > f->size)
		server_die("a hole in %s that may not be there", f->name);
	memset(f->bytes + offset, 0x7F, bytes);
	return true;
}

void
ws_file_forget(WsFileSet *set, int file, Size bytes, int64 offset)
{
}

int
ws_file_read(WsFileSet *set, int file, void *data, Size bytes, int64 offset)
{
	MemFile    *f = memfile(set, file);

	if (!server_in_backend() && !f->helpers)
		server_die("a helper reads %s, which does not allow it", f->name);
	if (offset < 0 || offset + (int64) bytes > f->size)
		return SHORT_FILE;
	if (fault_due(FAULT_FILE_EIO))
		return EIO;
	if (fault_due(FAULT_FILE_SHORT))
	{
		memcpy(data, f->bytes + offset, bytes / 2);
		return SHORT_FILE;
	}
	memcpy(data, f->bytes + offset, bytes);
	if (fault_due(FAULT_FILE_FLIP))
		fault_flip(data, bytes);
	return 0;
}

void
ws_file_count_read(WsFileSet *set, Size bytes)
{
	if (!server_in_backend())
		server_die("a helper counts what was read");
	set->counted += (int64) bytes;
}

/* Bytes counted as read so far. */
int64
memfiles_counted(const WsFileSet *set)
{
	return set->counted;
}

char *
ws_file_map(WsFileSet *set, int file, int64 bytes)
{
	if (memfile(set, file)->size < bytes)
		ws_file_read_failed(set, file, SHORT_FILE, 0, "its end");
	return memfile(set, file)->bytes;
}

void
ws_file_write_failed(const WsFileSet *set, int file, int error)
{
	errno = error;
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not write to temporary file \"%s\": %m", memfile(set, file)->name)));
}

void
ws_file_read_failed(const WsFileSet *set, int file, int error, int64 offset, const char *part)
{
	if (error == SHORT_FILE)
		ws_file_corrupt(set, file, 0, -1, "It ends before the data that was written to it.", part);
	errno = error;
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not read from temporary file \"%s\": %m", memfile(set, file)->name)));
}

void
ws_file_corrupt(const WsFileSet *set, int file, Size bytes, int64 offset, const char *what, const char *part)
{
	if (offset + (int64) bytes > Max(memfile(set, file)->size, 1))
		server_die("%s is damaged behind its end", memfile(set, file)->name);
	ws_corrupt(memfile(set, file)->name, what, part);
}

int64
ws_fileset_bytes(const WsFileSet *set)
{
	int64		bytes = 0;

	for (int i = 0; i < set->n; i++)
		bytes += set->files[i].size;
	return bytes;
}

void
ws_fileset_close(WsFileSet *set)
{
	if (set != NULL)
		memfiles_release(set);
}
