/*-------------------------------------------------------------------------
 * rowwrite.c - writing runs of rows: the rows themselves, in order, with their entries.
 *
 * What travels inside a run need not be fetched afterwards: the merge reads all of it from front to back.
 * That is the classic external merge sort; it is the better way where the page cache
 * cannot hold the rows, so that fetching one would be a read of its own.
 *
 * Rows come in their final order and are copied out of memory, one behind the other, into blocks
 * (rowblock.h), of which several are written with one call.  The first entry of each block is noted for
 * the read order (rowread.c).  A row that is larger than a block gets one of its own.  A block is as long as
 * what is in it, in units of a page: rows of half a block would take twice their disk otherwise.
 *
 * All runs share a file.  How long a run becomes is not known before its end, so that each block gets its
 * place when it is complete (rowspace.c).  One run is written at a time.
 *
 * Memory: the buffer and the block starts, which the caller lends.
 * On error: ENOSPC and the like as any write of temporary files; a row with a header that makes no
 * sense as ERRCODE_DATA_CORRUPTED.  A helper leaves both for the backend (ws_rows_write_end).
 *-------------------------------------------------------------------------
 */
#include "run/run.h"

#include "utils/memutils.h"

/* Rows whose cache lines are asked for before they are copied. */
#define PREFETCH_ROWS	16

/* Rows between two looks at whether the helper is to end: of large ones they are some MB. */
#define STOP_ROWS		64

/* At most so many blocks hold rows and entries of `bytes` bytes: any two of them fill one. */
uint32
ws_rows_most_blocks(Size bytes, Size block_size)
{
	Size		blocks = 2 * bytes / (block_size - sizeof(WsRowBlock)) + 2;

	return (uint32) Min(blocks, WS_MOST_STARTS);
}

/*
 * Starts a run of the file `home`.  `buffer` has buffer_bytes bytes, at least one block, is aligned to
 * 4096 bytes, and stays the caller's.  `starts` is a chunk of palloc with room for max_starts members; it is
 * the caller's afterwards, where w->starts is.  If there is a helper it is going to write the run: the file
 * must allow that, and the run must not have more blocks.
 */
void
ws_rows_write_begin(WsRowWriter *w, WsRowFile *home, const WsRowSource *source,
					uint32 number, int level, char *buffer, Size buffer_bytes,
					WsBlockStart *starts, uint32 max_starts, WsHelper *helper)
{
	memset(w, 0, sizeof(WsRowWriter));
	w->home = home;
	w->source = source;
	if (number >= WS_MOST_ROW_RUNS)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many runs in a sort"),
				 errhint("Raise work_mem.")));
	w->buffer = buffer;
	w->buffer_bytes = TYPEALIGN_DOWN(WS_ROWS_UNIT, buffer_bytes);
	w->starts = starts;
	w->max_starts = max_starts;
	w->helper = helper;
	w->run.rows = true;
	w->run.file = home->file;
	w->run.block_size = home->block_size;
	w->run.number = w->run.arrival = number;
	w->run.level = level;
	w->run.largest = home->block_size;
}

/* Writes bytes at an offset of the file. */
static void
write_bytes(WsRowWriter *w, const char *data, Size bytes, int64 offset)
{
	WsFileSet  *files = w->home->files;

	if (w->helper == NULL)
		ws_file_write(files, w->run.file, data, bytes, offset);
	else if (w->error == 0)
		w->error = ws_file_append_raw(files, w->run.file, data, bytes, offset);
}

/* Writes the blocks that are complete. */
static void
write_blocks(WsRowWriter *w)
{
	Size		bytes = w->start - w->from;

	if (bytes > 0)
		write_bytes(w, w->buffer + w->from, bytes, (int64) w->next_unit * WS_ROWS_UNIT - bytes);
	w->from = w->start;
}

static inline WsRowBlock *
open_block(const WsRowWriter *w)
{
	return (WsRowBlock *) (w->buffer + w->start);
}

/* The least entry with the prefix of this one. */
static inline WsEntry
least_like(WsEntry entry)
{
	entry.lo &= ~WS_POINTER_MASK;
	return entry;
}

/* Notes a block's first entry. */
static void
note_start(WsRowWriter *w, WsEntry first)
{
	if (w->run.blocks == w->max_starts)
	{
		if (w->helper != NULL)
		{
			w->wrong = "It has more blocks than were expected.";
			return;
		}
		ws_starts_check(w->max_starts);
		w->max_starts *= 2;
		w->starts = repalloc_huge(w->starts, w->max_starts * sizeof(WsBlockStart));
		if (w->rows != NULL)
			w->rows = repalloc_huge(w->rows, w->max_starts * sizeof(uint64));
	}
	w->starts[w->run.blocks].first = first.hi;
	w->starts[w->run.blocks].run = w->run.number;
	if (w->rows != NULL)
		w->rows[w->run.blocks] = w->written;
	w->run.blocks++;
}

/* Finds a place for the last block, of n units.  Those in the buffer go out if they end elsewhere. */
static void
place_block(WsRowWriter *w, uint32 n)
{
	WsBlockStart *start = &w->starts[w->run.blocks - 1];
	uint32		most = (uint32) (w->run.block_size / WS_ROWS_UNIT);
	uint32		unit;

	if (w->home->end > PG_UINT32_MAX - n - most)
	{
		/* that is 16 TB */
		w->error = EFBIG;
		if (w->helper == NULL)
			ws_file_write_failed(w->home->files, w->run.file, w->error);
		return;
	}
	unit = ws_rowfile_take(w->home, n, w->next_unit);
	if (unit != w->next_unit)
		write_blocks(w);
	start->unit = unit;
	start->units_less_1 = Min(n, most) - 1;
	w->next_unit = unit + n;
	w->end = Max(w->end, w->next_unit);
	w->run.units += n;
}

/* Completes the open block, behind which one begins with `next`. */
static void
close_block(WsRowWriter *w, WsEntry next)
{
	WsRowBlock *block = open_block(w);
	Size		size = w->nentries * sizeof(WsEntry);
	Size		bytes = TYPEALIGN(WS_ROWS_UNIT, w->used + size);
	WsEntry    *filled = (WsEntry *) ((char *) block + w->run.block_size) - w->nentries;
	WsEntry    *entries = (WsEntry *) ((char *) block + bytes) - w->nentries;

	for (WsEntry *a = filled, *b = filled + w->nentries - 1; a < b; a++, b--)
	{
		WsEntry		e = *a;

		*a = *b;
		*b = e;
	}
	memmove(entries, filled, size);
	memset((char *) block + w->used, 0, (char *) entries - ((char *) block + w->used));
	ws_rowblock_describe(block, w->nentries, w->run.number, w->run.blocks - 1, bytes, next);
	block->crc = ws_rowblock_crc(block);
	place_block(w, (uint32) (bytes / WS_ROWS_UNIT));
	w->written += w->nentries;
	w->used = 0;
	w->nentries = 0;
	w->start += bytes;
	if (w->start + w->run.block_size > w->buffer_bytes)
	{
		write_blocks(w);
		w->from = w->start = 0;
	}
}

/* Where in a block a row goes behind `used` bytes. */
static inline Size
row_offset(const WsRowWriter *w, Size used, Size lead)
{
	return TYPEALIGN((Size) 1 << w->source->shift, used + lead) - lead;
}

/* The entry of a row in a block. */
static inline WsEntry
entry_in_block(const WsRowWriter *w, WsEntry entry, Size offset, Size lead)
{
	entry.lo = (entry.lo & ~WS_POINTER_MASK) | (offset + lead) >> w->source->shift;
	return entry;
}

/* Parts of a block that is larger than the buffer, one behind the other; zeros where there are no data. */
typedef struct Parts
{
	const char *data[5];
	Size		bytes[5];
} Parts;

/* The CRC of parts behind the header's own CRC; zeros are less than a unit. */
static pg_crc32c
parts_crc(const Parts *parts)
{
	static const char zeros[WS_ROWS_UNIT];
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, parts->data[0] + sizeof(pg_crc32c), parts->bytes[0] - sizeof(pg_crc32c));
	for (int i = 1; i < (int) lengthof(parts->data); i++)
		COMP_CRC32C(crc, parts->data[i] != NULL ? parts->data[i] : zeros, parts->bytes[i]);
	FIN_CRC32C(crc);
	return crc;
}

/* Writes parts, together whole units, through the buffer, which is empty, to the units from `unit` on. */
static void
write_parts(WsRowWriter *w, const Parts *parts, uint32 unit)
{
	int64		offset = (int64) unit * WS_ROWS_UNIT;
	Size		filled = 0;

	for (int i = 0; i < (int) lengthof(parts->data); i++)
		for (Size done = 0; done < parts->bytes[i];)
		{
			Size		n = Min(parts->bytes[i] - done, w->buffer_bytes - filled);

			if (parts->data[i] == NULL)
				memset(w->buffer + filled, 0, n);
			else
				memcpy(w->buffer + filled, parts->data[i] + done, n);
			done += n;
			filled += n;
			if (filled == w->buffer_bytes)
			{
				if (w->helper != NULL && ws_helper_is_stopping(w->helper))
					return;
				write_bytes(w, w->buffer, filled, offset);
				offset += filled;
				filled = 0;
			}
		}
	if (filled > 0)
		write_bytes(w, w->buffer, filled, offset);
}

/* A block with one row that is larger than blocks are.  What comes behind it is not known: nothing less. */
static void
write_large(WsRowWriter *w, WsEntry entry, const char *row, Size bytes, Size lead)
{
	WsRowBlock	block;
	Size		offset = row_offset(w, sizeof(WsRowBlock), lead);
	Size		total = TYPEALIGN(WS_ROWS_UNIT, offset + bytes + sizeof(WsEntry));
	WsEntry		in_block = entry_in_block(w, entry, offset, lead);
	Parts		parts = {
		{(const char *) &block, NULL, row, NULL, (const char *) &in_block},
		{sizeof(WsRowBlock), offset - sizeof(WsRowBlock), bytes, total - offset - bytes - sizeof(WsEntry),
		sizeof(WsEntry)}
	};
	uint32		unit;

	write_blocks(w);
	w->from = w->start = 0;
	note_start(w, entry);
	if (w->wrong != NULL)
		return;
	place_block(w, (uint32) (total / WS_ROWS_UNIT));
	unit = w->next_unit - (uint32) (total / WS_ROWS_UNIT);
	ws_rowblock_describe(&block, 1, w->run.number, w->run.blocks - 1, total, least_like(entry));
	block.crc = parts_crc(&parts);
	write_parts(w, &parts, unit);
	w->run.largest = Max(w->run.largest, total);
	w->written++;
}

/* Appends one row, whose entry is to have this place among the others. */
static void
put_row(WsRowWriter *w, WsEntry entry)
{
	const WsRowSource *source = w->source;
	const Size	room = w->run.block_size - sizeof(WsEntry);
	Size		bytes;
	Size		lead;
	Size		offset;
	const char *row = source->locate(source->store, ws_entry_pointer(entry), &bytes, &lead);
	WsRowBlock *block;

	if (unlikely(row == NULL))
	{
		w->wrong = "The header of a row in it makes no sense.";
		return;
	}
	offset = row_offset(w, w->used, lead);
	if (w->used > 0 && offset + bytes + w->nentries * sizeof(WsEntry) > room)
	{
		close_block(w, least_like(entry));
		offset = 0;
	}
	if (w->used == 0)
	{
		offset = row_offset(w, sizeof(WsRowBlock), lead);
		if (offset + bytes > room)
		{
			write_large(w, entry, row, bytes, lead);
			return;
		}
		note_start(w, entry);
		if (w->wrong != NULL)
			return;
		w->used = sizeof(WsRowBlock);
	}
	block = open_block(w);
	memset((char *) block + w->used, 0, offset - w->used);
	memcpy((char *) block + offset, row, bytes);
	w->used = offset + bytes;
	w->nentries++;
	((WsEntry *) ((char *) block + w->run.block_size))[-(ptrdiff_t) w->nentries] =
		entry_in_block(w, entry, offset, lead);
}

/*
 * Appends the rows of n entries, which must follow in order.  May be called in a helper if the run was
 * begun so.
 */
void
ws_rows_write(WsRowWriter *w, const WsEntry *entries, Size n)
{
	const WsRowSource *source = w->source;

	for (Size i = 0; i < n && w->wrong == NULL && w->error == 0; i++)
	{
		/* then nobody will read it; an error is waiting for the helper to end */
		if (i % STOP_ROWS == 0 && w->helper != NULL && ws_helper_is_stopping(w->helper))
			return;
		if (i + PREFETCH_ROWS < n)
			source->prefetch(source->store, ws_entry_pointer(entries[i + PREFETCH_ROWS]));
		put_row(w, entries[i]);
	}
}

/* Writes what is left.  Where ws_rows_write has been called. */
void
ws_rows_write_last(WsRowWriter *w)
{
	if (w->wrong != NULL)
		return;
	if (w->used > 0)
		close_block(w, WS_ENTRY_MAX);
	write_blocks(w);
	w->run.nentries = w->written;
	ws_rowfile_align(w->home);
}

/* Ends the run and returns its description; raises what was met.  In the backend. */
WsRun
ws_rows_write_end(WsRowWriter *w)
{
	WsFileSet  *files = w->home->files;

	if (w->error != 0)
		ws_file_write_failed(files, w->run.file, w->error);
	if (w->wrong != NULL)
		ws_file_corrupt(files, w->run.file, 0, -1, w->wrong, NULL);
	if (w->helper != NULL)
		ws_file_appended(files, w->run.file, (Size) w->run.units * WS_ROWS_UNIT,
						 (int64) w->end * WS_ROWS_UNIT);
	return w->run;
}
