/*-------------------------------------------------------------------------
 * fileset.c - the temporary files of one sort, known by their numbers.
 *
 * Whoever writes rows or runs names a place by a file's number, an offset and a length:
 * descriptions of runs hold no pointers, and unit tests put files in memory in the
 * place of these (test/unit/memfiles.c).  PostgreSQL chooses the next of temp_tablespaces
 * for each file.
 *
 * The set and its files belong to the memory context it was created in, and the
 * files to the resource owner as well (tempfile.c).
 *-------------------------------------------------------------------------
 */
#include "file/file.h"
#include "file/tempfile.h"

#include "utils/memutils.h"

/* The spool's, one for each level of runs (run/run.h), and that of the runs of rows. */
#define MOST_FILES		40

struct WsFileSet
{
	MemoryContext context;
	const WsThreads *threads;
	int64		stays;
	WsTempFile *files[MOST_FILES];	/* helpers look at it: never moved.  NULL for those that were dropped */
	int			n;
	int64		most;			/* bytes that all files had, when one was dropped */
};

/*
 * Creates an empty set in CurrentMemoryContext.  `threads` says which helpers there may be.  Of a file that
 * is appended to, the first `stays` bytes may stay in the page cache.
 */
WsFileSet *
ws_fileset_create(const WsThreads *threads, int64 stays)
{
	WsFileSet  *set = palloc0(sizeof(WsFileSet));

	set->context = CurrentMemoryContext;
	set->threads = threads;
	set->stays = stays;
	return set;
}

/* Creates an empty file and returns its number.  Raises the errors of the system. */
int
ws_file_create(WsFileSet *set)
{
	MemoryContext old = MemoryContextSwitchTo(set->context);

	if (set->n == MOST_FILES)
		elog(ERROR, "too many temporary files of a sort");
	set->files[set->n] = ws_tempfile_create(set->threads);
	MemoryContextSwitchTo(old);
	return set->n++;
}

/* Closes and deletes a file, of which nobody may be using anything.  Its number is not used again. */
void
ws_file_drop(WsFileSet *set, int file)
{
	WsTempFile *tf = set->files[file];

	set->most = ws_fileset_bytes(set);
	set->files[file] = NULL;
	ws_tempfile_close(tf);
}

/* May helpers write to and read from this file?  Makes it so if that is possible. */
bool
ws_file_allow_helpers(WsFileSet *set, int file)
{
	return ws_tempfile_allow_helpers(set->files[file]);
}

/*
 * A descriptor of a file for reading past the page cache, and in *cached one for reading through it, both of
 * the file; -1 if there is none to be had.
 */
int
ws_file_direct(WsFileSet *set, int file, int *cached)
{
	if (!ws_tempfile_allow_direct(set->files[file]))
		return -1;
	*cached = set->files[file]->raw;
	return set->files[file]->direct;
}

/* Writes `bytes` bytes at `offset`.  Raises what goes wrong. */
void
ws_file_write(WsFileSet *set, int file, const void *data, Size bytes, int64 offset)
{
	ws_tempfile_write(set->files[file], data, bytes, offset);
}

/* Charges bytes that a helper is going to write, and makes the file that long. */
void
ws_file_extend(WsFileSet *set, int file, Size bytes, int64 offset)
{
	ws_tempfile_extend(set->files[file], bytes, offset);
}

/* The same for a file whose end is charged by ws_file_charge (tempfile.c). */
void
ws_file_announce(WsFileSet *set, int file, Size bytes, int64 offset)
{
	ws_tempfile_announce(set->files[file], bytes, offset);
}

/* Has the system get pages ready behind what helpers are writing (tempfile.c). */
void
ws_file_prepare(WsFileSet *set, int file, Size bytes, int64 offset)
{
	ws_tempfile_prepare(set->files[file], bytes, offset);
}

/* Ends what ws_file_announce and ws_file_prepare began, once all is written. */
void
ws_file_charge(WsFileSet *set, int file)
{
	ws_tempfile_charge(set->files[file]);
}

/* Writes what was announced; returns 0 or an errno.  For helpers. */
int
ws_file_write_raw(WsFileSet *set, int file, const void *data, Size bytes, int64 offset)
{
	return ws_raw_write(set->files[file]->raw, data, bytes, offset);
}

/* May helpers write to this file without saying beforehand how much?  Not under temp_file_limit. */
bool
ws_file_allow_appending(WsFileSet *set, int file)
{
	return ws_tempfile_allow_appending(set->files[file]);
}

/*
 * Writes what was not announced, so that little of it stays in the page cache; returns 0 or an errno.  For
 * helpers; to be followed by ws_file_appended.
 */
int
ws_file_append_raw(WsFileSet *set, int file, const void *data, Size bytes, int64 offset)
{
	return ws_raw_append(set->files[file]->raw, data, bytes, offset, set->stays);
}

/* Counts bytes that a helper has written by ws_file_append_raw, and that made the file so long. */
void
ws_file_appended(WsFileSet *set, int file, Size bytes, int64 size)
{
	ws_tempfile_appended(set->files[file], bytes, size);
}

/* Has the system begin to read, if the file allows helpers.  Callable from these. */
void
ws_file_read_ahead(WsFileSet *set, int file, Size bytes, int64 offset)
{
	ws_raw_read_ahead(set->files[file]->raw, bytes, offset);
}

/* Gives the disk of bytes back that nobody will read again.  False if the file system cannot. */
bool
ws_file_punch(WsFileSet *set, int file, Size bytes, int64 offset)
{
	return ws_tempfile_punch(set->files[file], bytes, offset);
}

/* Says that nobody will read this again: it need not stay in the page cache.  Callable from helpers. */
void
ws_file_forget(WsFileSet *set, int file, Size bytes, int64 offset)
{
	ws_raw_forget(set->files[file]->raw, bytes, offset, set->stays);
}

/*
 * Reads; returns 0, or what ws_file_read_failed makes an error of.  Callable from helpers if
 * ws_file_allow_helpers has said so.
 */
int
ws_file_read(WsFileSet *set, int file, void *data, Size bytes, int64 offset)
{
	return ws_tempfile_read(set->files[file], data, bytes, offset);
}

/* Counts bytes that ws_file_read has read. */
void
ws_file_count_read(WsFileSet *set, Size bytes)
{
	if (bytes > 0)
		ws_tempfile_count_read(bytes);
}

/* Maps the first `bytes` bytes of a file for reading; see ws_tempfile_map. */
char *
ws_file_map(WsFileSet *set, int file, int64 bytes)
{
	return ws_tempfile_map(set->files[file], bytes);
}

/* Raises the error of a write that returned `error`. */
void
ws_file_write_failed(const WsFileSet *set, int file, int error)
{
	ws_tempfile_write_failed(set->files[file], error);
}

/* Raises the error of a read that returned `error`.  `where` is what was read: a DETAIL names it. */
void
ws_file_read_failed(const WsFileSet *set, int file, int error, const char *where)
{
	ws_tempfile_read_failed(set->files[file], error, where);
}

/* Raises ERRCODE_DATA_CORRUPTED with the file's name.  `what` and, if not NULL, `where` make the DETAIL. */
void
ws_file_corrupt(const WsFileSet *set, int file, const char *what, const char *where)
{
	ws_corrupt(set->files[file]->name, what, where);
}

/* Bytes that all files have had at most.  None becomes shorter. */
int64
ws_fileset_bytes(const WsFileSet *set)
{
	int64		bytes = 0;

	for (int i = 0; i < set->n; i++)
		bytes += set->files[i] != NULL ? set->files[i]->size : 0;
	return Max(bytes, set->most);
}

/* Closes and deletes all files.  Nobody may be using them.  NULL is fine. */
void
ws_fileset_close(WsFileSet *set)
{
	while (set != NULL && set->n > 0)
		ws_tempfile_close(set->files[--set->n]);
}
