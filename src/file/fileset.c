/*-------------------------------------------------------------------------
 * fileset.c - the temporary files of one sort, known by their numbers.
 *
 * Whoever writes rows or runs names a place by a file's number, an offset and a length:
 * descriptions of runs hold no pointers, and unit tests put files in memory in the
 * place of these (test/unit/memfiles.c).
 *
 * Where there are several temp_tablespaces, a file is striped over them, so that it has the bandwidth and the
 * room of all: it consists of several members, one in each tablespace, which have an extent of it in turn
 * (stripe.c).  A member is a temporary file of PostgreSQL's (tempfile.c).  It is made by the backend, when
 * something is going to be written to it: a file of one extent is one member.  With one tablespace a file is
 * one member of any length.  Errors name the member.
 *
 * The set and its files belong to the memory context it was created in, and the
 * files to the resource owner as well (tempfile.c).
 *-------------------------------------------------------------------------
 */
#include "file/extents.h"
#include "file/file.h"
#include "file/spaces.h"
#include "file/stripe.h"
#include "file/tempfile.h"

#include "lib/stringinfo.h"
#include "utils/memutils.h"

/* The spool's, one for each level of runs (run/run.h), and that of the runs of rows. */
#define MOST_FILES		40

/* What went wrong, as one number: an error of tempfile.c, and from this bit on the member's number. */
#define MEMBER_SHIFT	16

/* Members are looked at by helpers: never moved, and those of bytes that a helper is to have are there. */
typedef struct StripedFile
{
	WsStripe	stripe;
	Oid			spaces[WS_MOST_MEMBERS];	/* tablespaces of the members, if there are several */
	WsTempFile *members[WS_MOST_MEMBERS];	/* the first is always there.  NULL: not yet */
	bool		helpers;		/* may use all members, those that are still to come, too */
	WsExtents  *extents;		/* its mapping in several members, or NULL */
	int64		length;			/* bytes that the watch knows of, */
	int64		holes;			/* and of them, those that were given back */
} StripedFile;

struct WsFileSet
{
	MemoryContext context;
	const WsThreads *threads;
	int64		stays;
	int64		extent;			/* bytes, or 0: files are not striped */
	StripedFile *files[MOST_FILES]; /* helpers look at it.  NULL for those that were dropped */
	int			n;
	int64		most;			/* bytes that all files had, when one was dropped */
	WsWatch    *watch;			/* or NULL */
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

/* Has a watch know how long the files are, and limit that. */
void
ws_fileset_watch(WsFileSet *set, WsWatch *watch)
{
	set->watch = watch;
}

/* A file ends at `end` now, or will at once.  In the backend.  Raises the error of the watch's limit. */
static inline void
note_end(WsFileSet *set, int file, int64 end)
{
	StripedFile *f = set->files[file];

	if (end <= f->length)
		return;
	ws_watch_grow(set->watch, end - f->length);
	f->length = end;
}

/*
 * Has files that are created from now on striped over temp_tablespaces, if there are several, by extents of
 * `extent` bytes, a multiple of the system's pages; 0: not.
 */
void
ws_fileset_stripe(WsFileSet *set, int64 extent)
{
	set->extent = extent;
}

/* Member number i, made if it is not there yet.  In the backend.  Raises the errors of the system. */
static WsTempFile *
member(WsFileSet *set, int file, int i)
{
	StripedFile *f = set->files[file];

	if (unlikely(f->members[i] == NULL))
	{
		MemoryContext old = MemoryContextSwitchTo(set->context);
		WsTempFile *tf;

		if (i > 0)
			ws_spaces_turn_to(f->spaces[i]);
		tf = ws_tempfile_create(set->threads);
		if (f->helpers)
			ws_tempfile_require_helpers(tf);
		f->members[i] = tf;
		MemoryContextSwitchTo(old);
	}
	return f->members[i];
}

/* Creates an empty file and returns its number.  Raises the errors of the system. */
int
ws_file_create(WsFileSet *set)
{
	StripedFile *f = MemoryContextAllocZero(set->context, sizeof(StripedFile));

	if (set->n == MOST_FILES)
		elog(ERROR, "too many temporary files of a sort");
	f->stripe.extent = set->extent;
	f->stripe.width = set->extent > 0 ? ws_spaces_find(f->spaces, WS_MOST_MEMBERS) : 1;
	set->files[set->n++] = f;
	(void) member(set, set->n - 1, 0);
	return set->n - 1;
}

/*
 * Says that an empty file is going to have blocks of `unit` bytes, one behind the other from its beginning:
 * none of them shall lie in two members, as long as all have that size.
 */
void
ws_file_align(WsFileSet *set, int file, Size unit)
{
	WsStripe   *stripe = &set->files[file]->stripe;

	stripe->extent = Max(stripe->extent / (int64) unit, 1) * (int64) unit;
}

/* How many members it has: so many devices can be at work at once, if each tablespace has its own. */
int
ws_file_width(const WsFileSet *set, int file)
{
	int			width = 0;

	for (int i = 0; i < WS_MOST_MEMBERS; i++)
		width += set->files[file]->members[i] != NULL;
	return width;
}

/* Closes all members, which deletes them. */
static void
close_file(WsFileSet *set, StripedFile *f)
{
	if (f == NULL)
		return;
	ws_watch_shrink(set->watch, f->length - f->holes);
	for (int i = 0; i < f->stripe.width; i++)
		ws_tempfile_close(f->members[i]);
	ws_extents_close(f->extents);
}

/* Closes and deletes a file, of which nobody may be using anything.  Its number is not used again. */
void
ws_file_drop(WsFileSet *set, int file)
{
	StripedFile *f = set->files[file];

	set->most = ws_fileset_bytes(set);
	set->files[file] = NULL;
	close_file(set, f);
}

/* May helpers write to and read from this file?  Makes it so if that is possible. */
bool
ws_file_allow_helpers(WsFileSet *set, int file)
{
	StripedFile *f = set->files[file];

	for (int i = 0; i < f->stripe.width; i++)
		if (f->members[i] != NULL && !ws_tempfile_allow_helpers(f->members[i]))
			return false;
	f->helpers = true;
	return true;
}

/*
 * May what the file has be read past the page cache?  Makes it so if that is possible, for all of its
 * members, and sets cached[WS_MOST_MEMBERS] to their descriptors through the page cache; -1 for those that
 * are not there.  In the backend.
 */
bool
ws_file_allow_direct(WsFileSet *set, int file, int *cached)
{
	StripedFile *f = set->files[file];

	for (int i = 0; i < WS_MOST_MEMBERS; i++)
	{
		cached[i] = -1;
		if (f->members[i] == NULL)
			continue;
		if (!ws_tempfile_allow_direct(f->members[i]))
			return false;
		cached[i] = f->members[i]->raw;
	}
	return true;
}

/*
 * Sets *stretch to where `bytes` bytes at `offset` are, with the descriptors of their member; false if they
 * are in several members, or ws_file_allow_direct has not come to their member.  Callable from helpers.
 */
bool
ws_file_stretch(const WsFileSet *set, int file, Size bytes, int64 offset, WsStretch *stretch)
{
	const StripedFile *f = set->files[file];
	WsPart		part = ws_stripe_part(&f->stripe, bytes, offset);
	const WsTempFile *tf = f->members[part.member];

	if (part.bytes != bytes || tf == NULL || tf->direct < 0)
		return false;
	stretch->member = part.member;
	stretch->cached = tf->raw;
	stretch->direct = tf->direct;
	stretch->offset = part.offset;
	return true;
}

/*
 * What ws_file_read_failed and ws_file_write_failed take, for errno `error` of a read or write at `offset`.
 * Callable from helpers.
 */
int
ws_file_error(const WsFileSet *set, int file, int64 offset, int error)
{
	int			number = ws_stripe_part(&set->files[file]->stripe, 1, offset).member;

	return error < 0 ? error - (number << MEMBER_SHIFT) : error + (number << MEMBER_SHIFT);
}

/* Writes `bytes` bytes at `offset`.  Raises what goes wrong. */
void
ws_file_write(WsFileSet *set, int file, const void *data, Size bytes, int64 offset)
{
	const char *from = data;
	WsPart		part;

	note_end(set, file, offset + (int64) bytes);
	for (; bytes > 0; from += part.bytes, offset += part.bytes, bytes -= part.bytes)
	{
		part = ws_stripe_part(&set->files[file]->stripe, bytes, offset);
		ws_tempfile_write(member(set, file, part.member), from, part.bytes, part.offset);
	}
}

/* Does something to each member that has some of these bytes, or will have. */
#define FOR_EACH_SPAN(span, f, bytes, offset) \
	for (WsPart span = ws_stripe_span(&(f)->stripe, bytes, offset, 0); span.member < (f)->stripe.width; \
		 span = ws_stripe_span(&(f)->stripe, bytes, offset, span.member + 1)) \
		if (span.bytes > 0)

/* Charges bytes that a helper is going to write, and makes the file that long. */
void
ws_file_extend(WsFileSet *set, int file, Size bytes, int64 offset)
{
	note_end(set, file, offset + (int64) bytes);
	FOR_EACH_SPAN(span, set->files[file], bytes, offset)
		ws_tempfile_extend(member(set, file, span.member), span.bytes, span.offset);
}

/* The same for a file whose end is charged by ws_file_charge (tempfile.c). */
void
ws_file_announce(WsFileSet *set, int file, Size bytes, int64 offset)
{
	note_end(set, file, offset + (int64) bytes);
	FOR_EACH_SPAN(span, set->files[file], bytes, offset)
		ws_tempfile_announce(member(set, file, span.member), span.bytes, span.offset);
}

/* Has the system get pages ready behind what helpers are writing (tempfile.c), in members that are there. */
void
ws_file_prepare(WsFileSet *set, int file, Size bytes, int64 offset)
{
	StripedFile *f = set->files[file];

	FOR_EACH_SPAN(span, f, bytes, offset)
		if (f->members[span.member] != NULL)
			ws_tempfile_prepare(f->members[span.member], span.bytes, span.offset);
}

/* Ends what ws_file_announce and ws_file_prepare began, once all is written. */
void
ws_file_charge(WsFileSet *set, int file)
{
	StripedFile *f = set->files[file];

	for (int i = 0; i < f->stripe.width; i++)
		if (f->members[i] != NULL)
			ws_tempfile_charge(f->members[i]);
}

/* Writes to members that are there, or appends; returns 0, or what ws_file_write_failed makes an error of. */
static int
write_raw(const WsFileSet *set, int file, bool append, const void *data, Size bytes, int64 offset)
{
	const StripedFile *f = set->files[file];
	const char *from = data;
	WsPart		part;

	for (; bytes > 0; from += part.bytes, offset += part.bytes, bytes -= part.bytes)
	{
		int			error;
		int			fd;

		part = ws_stripe_part(&f->stripe, bytes, offset);
		fd = f->members[part.member]->raw;
		if (append)
			error = ws_raw_append(fd, from, part.bytes, part.offset,
								  ws_stripe_length(&f->stripe, set->stays, part.member));
		else
			error = ws_raw_write(fd, from, part.bytes, part.offset);
		if (error != 0)
			return ws_file_error(set, file, offset, error);
	}
	return 0;
}

/* Writes what was announced; returns 0, or what ws_file_write_failed makes an error of.  For helpers. */
int
ws_file_write_raw(WsFileSet *set, int file, const void *data, Size bytes, int64 offset)
{
	return write_raw(set, file, false, data, bytes, offset);
}

/*
 * May helpers write to this file without saying beforehand how much?  Not under temp_file_limit.  Makes all
 * members, which a helper cannot.
 */
bool
ws_file_allow_appending(WsFileSet *set, int file)
{
	StripedFile *f = set->files[file];

	if (!ws_tempfile_allow_appending(f->members[0]))
		return false;
	for (int i = 1; i < f->stripe.width; i++)
		(void) member(set, file, i);
	return ws_file_allow_helpers(set, file);
}

/*
 * Writes what was not announced, so that little of it stays in the page cache; returns as ws_file_write_raw
 * does.  For helpers; to be followed by ws_file_appended.
 */
int
ws_file_append_raw(WsFileSet *set, int file, const void *data, Size bytes, int64 offset)
{
	return write_raw(set, file, true, data, bytes, offset);
}

/* Counts bytes that a helper has written by ws_file_append_raw, and that made the file so long. */
void
ws_file_appended(WsFileSet *set, int file, Size bytes, int64 size)
{
	StripedFile *f = set->files[file];

	/* how many of them are whose does not matter */
	for (int i = 0; i < f->stripe.width; i++)
		ws_tempfile_appended(f->members[i], i == 0 ? bytes : 0, ws_stripe_length(&f->stripe, size, i));
	note_end(set, file, size);
}

/* Has the system begin to read, if the file allows helpers.  Callable from these. */
void
ws_file_read_ahead(WsFileSet *set, int file, Size bytes, int64 offset)
{
	const StripedFile *f = set->files[file];

	FOR_EACH_SPAN(span, f, bytes, offset)
		if (f->members[span.member] != NULL)
			ws_raw_read_ahead(f->members[span.member]->raw, span.bytes, span.offset);
}

/* Gives the disk of bytes back that nobody will read again.  False if a file system cannot. */
bool
ws_file_punch(WsFileSet *set, int file, Size bytes, int64 offset)
{
	StripedFile *f = set->files[file];
	bool		done = true;

	FOR_EACH_SPAN(span, f, bytes, offset)
		done &= ws_tempfile_punch(member(set, file, span.member), span.bytes, span.offset);
	if (done)
	{
		int64		hole = Min((int64) bytes, f->length - f->holes);

		f->holes += hole;
		ws_watch_shrink(set->watch, hole);
	}
	return done;
}

/* Says that nobody will read this again: it need not stay in the page cache.  Callable from helpers. */
void
ws_file_forget(WsFileSet *set, int file, Size bytes, int64 offset)
{
	const StripedFile *f = set->files[file];

	FOR_EACH_SPAN(span, f, bytes, offset)
		if (f->members[span.member] != NULL)
			ws_raw_forget(f->members[span.member]->raw, span.bytes, span.offset,
						  ws_stripe_length(&f->stripe, set->stays, span.member));
}

/*
 * Reads; returns 0, or what ws_file_read_failed makes an error of.  Callable from helpers if
 * ws_file_allow_helpers has said so.
 */
int
ws_file_read(WsFileSet *set, int file, void *data, Size bytes, int64 offset)
{
	const StripedFile *f = set->files[file];
	char	   *to = data;
	WsPart		part;

	for (; bytes > 0; to += part.bytes, offset += part.bytes, bytes -= part.bytes)
	{
		int			error;

		part = ws_stripe_part(&f->stripe, bytes, offset);
		error = f->members[part.member] == NULL ? WS_SHORT_FILE :
			ws_tempfile_read(f->members[part.member], to, part.bytes, part.offset);
		if (error != 0)
			return ws_file_error(set, file, offset, error);
	}
	return 0;
}

/* Counts bytes that ws_file_read has read. */
void
ws_file_count_read(WsFileSet *set, Size bytes)
{
	if (bytes > 0)
		ws_tempfile_count_read(bytes);
}

/*
 * Maps the first `bytes` bytes of a file for reading and returns the address, which is valid until the next
 * call or the end of the file.  Raises what ws_tempfile_map and ws_extents_map do.
 */
char *
ws_file_map(WsFileSet *set, int file, int64 bytes)
{
	StripedFile *f = set->files[file];
	WsTempFile *first = f->members[0];

	if (ws_stripe_length(&f->stripe, bytes, 0) == bytes)
		return ws_tempfile_map(first, bytes);
	ws_tempfile_unmap(first);
	if (f->extents == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(set->context);

		f->extents = ws_extents_create(&f->stripe, f->members, set->threads);
		MemoryContextSwitchTo(old);
	}
	return ws_extents_map(f->extents, bytes);
}

/* The number of the member that an error is about; *error becomes one of tempfile.c. */
static int
member_of_error(const StripedFile *f, int *error)
{
	int			number = abs(*error) >> MEMBER_SHIFT;
	int			what = abs(*error) & ((1 << MEMBER_SHIFT) - 1);

	*error = *error < 0 ? -what : what;
	return f->members[number] != NULL ? number : 0;
}

/* Raises the error of a write that returned `error`. */
void
ws_file_write_failed(const WsFileSet *set, int file, int error)
{
	const StripedFile *f = set->files[file];
	int			number = member_of_error(f, &error);

	ws_tempfile_write_failed(f->members[number], error);
}

/*
 * Raises the error of a read at `offset` that returned `error`.  `part` is what was read: a DETAIL names it,
 * and the offset in the member.
 */
void
ws_file_read_failed(const WsFileSet *set, int file, int error, int64 offset, const char *part)
{
	const StripedFile *f = set->files[file];
	int			number = member_of_error(f, &error);
	char		where[WS_WHERE_BYTES];

	snprintf(where, sizeof(where), "%s, at offset " INT64_FORMAT, part,
			 ws_stripe_span(&f->stripe, 0, offset, number).offset);
	ws_tempfile_read_failed(f->members[number], error, where);
}

/*
 * Raises ERRCODE_DATA_CORRUPTED with the name of the member that has `bytes` bytes at `offset`, or those of
 * several.  `what`, `part`, which may be NULL, and the offsets in these members make the DETAIL.  Offset -1:
 * it is not known, and the first member is named.
 */
void
ws_file_corrupt(const WsFileSet *set, int file, Size bytes, int64 offset, const char *what, const char *part)
{
	const StripedFile *f = set->files[file];
	StringInfoData names;
	StringInfoData where;

	if (offset < 0)
		ws_corrupt(f->members[0]->name, what, part);
	initStringInfo(&names);
	initStringInfo(&where);
	FOR_EACH_SPAN(span, f, bytes, offset)
		if (f->members[span.member] != NULL)
		{
			appendStringInfo(&where, "%s" INT64_FORMAT, names.len > 0 ? " or " : "at offset ", span.offset);
			appendStringInfo(&names, "%s%s", names.len > 0 ? "\" or \"" : "", f->members[span.member]->name);
		}
	if (names.len == 0)
		ws_corrupt(f->members[0]->name, what, part);
	ws_corrupt(names.data, what, part == NULL ? where.data : psprintf("%s, %s", part, where.data));
}

/* Bytes that all files have had at most.  None becomes shorter. */
int64
ws_fileset_bytes(const WsFileSet *set)
{
	int64		bytes = 0;

	for (int i = 0; i < set->n; i++)
		for (int j = 0; set->files[i] != NULL && j < set->files[i]->stripe.width; j++)
			bytes += set->files[i]->members[j] != NULL ? set->files[i]->members[j]->size : 0;
	return Max(bytes, set->most);
}

/* Closes and deletes all files.  Nobody may be using them.  NULL is fine. */
void
ws_fileset_close(WsFileSet *set)
{
	if (set == NULL)
		return;
	set->most = ws_fileset_bytes(set);
	while (set->n > 0)
		close_file(set, set->files[--set->n]);
}
