/*-------------------------------------------------------------------------
 * spool.c - the spool: each row once, in arrival order.
 *
 * Rows are appended in memory until the caller says that work_mem is used up (ws_spool_spill); from then on
 * the memory is a write buffer in front of a temporary file that takes large sequential writes.  With a
 * helper there are WS_SPOOL_BUFFERS of them: one is filled while others, and what was in memory, are written.
 * Afterwards any row is read through a mapping, in place: a slot can point straight at it.
 *
 * Format of a row: the part of a heap tuple from t_infomask2 on, that is, 6
 * bytes of header, the null bitmap, padding, and the data, as heap_deform_tuple
 * reads them.  What comes before (transaction ids, ctid) means nothing here and
 * is not stored; a HeapTupleHeader pointer is formed so that those fields fall
 * on the row before, and nobody may look at them.  The row's length (without
 * those fields) lives in the header bits that have a meaning only for
 * visibility (row.h); a row too long for those 13 bits has its length in the 8
 * bytes before it.  That makes a row 4 bytes shorter than in core's tapes, and
 * pays for its alignment.
 *
 * A pointer is (offset of the row + 6) in units of the strictest alignment of
 * the columns, 4 or 8 bytes, which is also what the data is aligned to.
 *
 * Memory: while in memory, the rows; later, what is not yet written of them and the write buffers, of
 * which the first grows for a row that is larger than it.  Mapped file pages belong to the system.
 * On error: the file and the memory go with their owners.  Reading is in spoolread.c.
 *-------------------------------------------------------------------------
 */
#include "store/row.h"
#include "store/spool.h"

#include "access/tupmacs.h"
#include "executor/tuptable.h"
#include "portability/instr_time.h"
#include "utils/memutils.h"

#define FILE_MAGIC		"wiscsort spool 1\n\0\0\0\0\0\0"
StaticAssertDecl(sizeof(FILE_MAGIC) == WS_SPOOL_HEADER, "spool file header");

#define MASK_KEEP		0x000F	/* t_infomask bits that describe the data */
#define FLUSH_ALIGN		8
#define ROW_EXTRA		((Size) 2 * 1024 * 1024)	/* bytes of a buffer beside the largest row, at most */

/* Bytes that pages are got ready for at a time, and how far ahead at most. */
#define PREPARE_PIECE	((Size) 64 * 1024)
#define PREPARE_AHEAD	((Size) 8 * 1024 * 1024)

/* Microseconds for a piece, below which its pages cost nothing, and waits to leave it at that. */
#define PREPARE_CHEAP	40
#define PREPARE_PAUSE	8

/* In-memory growth: in steps that stay small against what is there. */
#define GROWTH(committed)	Max((Size) 4 * 1024, Min((committed) / 16, (Size) 1024 * 1024))

/*
 * Creates an empty spool for rows of type context->desc, in CurrentMemoryContext.  What the
 * context points to outlives it, but for `desc`.
 */
WsSpool *
ws_spool_create(const WsStoreContext *context)
{
	const WsRequest *request = context->request;
	TupleDesc	desc = context->desc;
	WsSpool    *spool = palloc0(sizeof(WsSpool));
	double		expected = 1.25 * request->rows * (request->width + WS_ROW_HEADER + MAXIMUM_ALIGNOF);

	spool->request = request;
	spool->account = context->account;
	spool->files = context->files;
	spool->file = -1;
	spool->desc = CreateTupleDescCopy(desc);
	spool->key_natts = context->spec->last_attno;
	spool->columns = palloc(Max(desc->natts, 1) * sizeof(WsSpoolColumn));
	spool->shift = 2;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		WsSpoolColumn *column = &spool->columns[i];

		column->length = att->attlen;
		column->align = (uint8) att_align_nominal(1, att->attalign);
		column->byval = att->attbyval;
		column->packable = att->attlen == -1 && att->attstorage != TYPSTORAGE_PLAIN;
		if (column->align == 8)
			spool->shift = 3;
	}

	/* there may come to be a row of 1 GB beside the rest */
	spool->region = ws_region_create_small(context->account,
										   (Size) Min(expected, (double) request->memory) + ROW_EXTRA,
										   request->memory + MaxAllocSize + ROW_EXTRA);
	ws_region_commit(spool->region, 16 * 1024);
	spool->buffer = spool->region->base;
	spool->room = spool->region->committed;
	memcpy(spool->buffer, FILE_MAGIC, WS_SPOOL_HEADER);
	spool->buffered = WS_SPOOL_HEADER;
	return spool;
}

/* Bytes from one buffer to the next, of several. */
static inline Size
stride(const WsSpool *spool)
{
	return spool->buffer_size + FLUSH_ALIGN;
}

/* Bytes of the buffers. */
static inline Size
all_buffers(const WsSpool *spool)
{
	return stride(spool) * (spool->writer != NULL ? WS_SPOOL_BUFFERS : 1);
}

/*
 * Waits for a write.  Where a page costs more than what is written to it (a virtual machine whose host has
 * to provide it: 4 us), the writer is slower than the backend, which meanwhile has pages provided for it.
 */
static void
await_write(WsSpool *spool, WsWrite *w)
{
	spool->prepared = Max(spool->prepared, spool->flushed);
	if (spool->prepare_pause > 0)
		spool->prepare_pause--;
	while (spool->prepare_pause == 0 && ws_chore_is_queued(&w->chore) &&
		   spool->prepared < spool->flushed + (int64) PREPARE_AHEAD)
	{
		instr_time	start;
		instr_time	end;

		INSTR_TIME_SET_CURRENT(start);
		ws_file_prepare(spool->files, spool->file, PREPARE_PIECE, spool->prepared);
		spool->prepared += PREPARE_PIECE;
		INSTR_TIME_SET_CURRENT(end);
		INSTR_TIME_SUBTRACT(end, start);
		if (INSTR_TIME_GET_MICROSEC(end) < PREPARE_CHEAP)
			spool->prepare_pause = PREPARE_PAUSE;
	}
	ws_write_finish(spool->writer, w);
}

/* Waits for a piece of the backlog, and gives back the memory of it and those before. */
static void
finish_piece(WsSpool *spool, int number)
{
	WsWrite    *w = &spool->backlog_writes[number % WS_SPOOL_BUFFERS];

	await_write(spool, w);
	ws_region_release(spool->region, (Size) w->offset + w->bytes);
}

/* Gives the writer up to `pieces` more pieces of the backlog. */
static void
write_backlog(WsSpool *spool, int pieces)
{
	for (; pieces > 0 && spool->submitted < spool->backlog; pieces--)
	{
		Size		bytes = Min(stride(spool), spool->backlog - spool->submitted);

		if (spool->nbacklog >= WS_SPOOL_BUFFERS)
			finish_piece(spool, spool->nbacklog - WS_SPOOL_BUFFERS);
		ws_write_start(spool->writer, &spool->backlog_writes[spool->nbacklog++ % WS_SPOOL_BUFFERS],
					   spool->files, spool->file, spool->region->base + spool->submitted, bytes,
					   spool->submitted);
		spool->submitted += bytes;
	}
}

/* Waits until the backlog and every buffer given to the helper are written. */
static void
drain(WsSpool *spool)
{
	if (spool->writer == NULL)
		return;
	spool->prepare_pause = INT_MAX; /* nothing comes behind */
	write_backlog(spool, INT_MAX);
	for (int i = Max(spool->nbacklog - WS_SPOOL_BUFFERS, 0); i < spool->nbacklog; i++)
		finish_piece(spool, i);
	for (int i = 0; i < WS_SPOOL_BUFFERS; i++)
		ws_write_finish(spool->writer, &spool->writes[i]);
	ws_file_charge(spool->files, spool->file);
	spool->prepared = 0;
	spool->prepare_pause = 0;
}

/* Makes buffer number i the one that is filled. */
static void
use_buffer(WsSpool *spool, int i)
{
	spool->current = i;
	spool->buffer = spool->region->base + spool->origin + i * stride(spool);
	spool->room = stride(spool);
}

/* Gives back what is more than the buffers need. */
static void
shrink(WsSpool *spool)
{
	ws_region_shrink(spool->region, spool->origin + all_buffers(spool));
	use_buffer(spool, 0);
}

/* Writes what is buffered, or has the helper do it, and empties the buffer. */
static void
flush_buffer(WsSpool *spool)
{
	Size		aligned = TYPEALIGN(FLUSH_ALIGN, spool->buffered);

	if (spool->buffered == 0)
		return;
	memset(spool->buffer + spool->buffered, 0, aligned - spool->buffered);
	if (spool->writer != NULL && spool->room == stride(spool))
	{
		int			next = (spool->current + 1) % WS_SPOOL_BUFFERS;

		ws_write_start(spool->writer, &spool->writes[spool->current], spool->files, spool->file,
					   spool->buffer, aligned, spool->flushed);
		spool->flushed += aligned;
		write_backlog(spool, spool->pieces);
		await_write(spool, &spool->writes[next]);
		use_buffer(spool, next);
	}
	else
	{
		ws_file_write(spool->files, spool->file, spool->buffer, aligned, spool->flushed);
		spool->flushed += aligned;
		shrink(spool);			/* a large row had made it grow */
	}
	spool->start = spool->flushed;
	spool->buffered = 0;
	if (spool->flushed > spool->request->allowance)
		spool->store.full = true;
}

/*
 * Leaves the rows in memory, beside the buffers, until the writer has come to them: it is given
 * `pieces` pieces of the size of a buffer with each buffer.  False if there is no address space for
 * the buffers.
 */
static bool
keep_backlog(WsSpool *spool, int pieces)
{
	Size		aligned = TYPEALIGN(FLUSH_ALIGN, spool->buffered);

	if (!ws_region_reserve(spool->region, TYPEALIGN(4096, aligned) + WS_SPOOL_BUFFERS * stride(spool)))
		return false;
	spool->buffer = spool->region->base;
	memset(spool->buffer + spool->buffered, 0, aligned - spool->buffered);
	spool->start = spool->flushed = spool->backlog = aligned;
	spool->buffered = 0;
	spool->pieces = pieces;
	spool->origin = TYPEALIGN(4096, aligned);
	use_buffer(spool, 0);
	return true;
}

/*
 * Moves the rows to a temporary file; from here on buffers are used of `alone` bytes, or, if a
 * helper writes, of `helped` bytes, beside the backlog and a larger row.  `entries` bytes of memory are
 * not the spool's.  Returns the bytes of the buffers.  Raises the errors of writing.
 */
Size
ws_spool_spill(WsSpool *spool, Size alone, Size helped, Size entries)
{
	const WsRequest *request = spool->request;
	Size		used = alone;
	int			pieces = 0;

	Assert(spool->file < 0);
	spool->store.full = false;
	spool->file = ws_file_create(spool->files);
	if (ws_file_allow_helpers(spool->files, spool->file))
		spool->writer = ws_helper_start(request->threads.write, request->threads.most,
										request->memory >= WS_HELPER_MEMORY);
	if (spool->writer != NULL)
	{
		used = helped;
		/* all at once after a row that was too large, otherwise more than the entries grow by */
		if (spool->buffered + entries + used <= request->memory + request->memory / 16)
			pieces = (int) Min(2 + entries / Max(spool->buffered, 1), INT_MAX);
	}
	spool->buffer_size = (spool->writer != NULL ? TYPEALIGN_DOWN(4096, used / WS_SPOOL_BUFFERS) : used) -
		FLUSH_ALIGN;
	if (pieces == 0 || !keep_backlog(spool, pieces))
	{
		spool->room = 0;			/* not one of the buffers yet */
		flush_buffer(spool);
		(void) ws_region_reserve(spool->region, spool->origin + all_buffers(spool));
		spool->buffer = spool->region->base + spool->origin;
	}
	ws_region_commit(spool->region, spool->origin + all_buffers(spool));
	write_backlog(spool, pieces);
	return used;
}

/* Makes the buffer large enough for `bytes` bytes. */
static void
grow_buffer(WsSpool *spool, Size bytes)
{
	WsRegion   *region = spool->region;
	Size		grown = 0;

	if (spool->buffer_size > 0)
	{
		/* one large row: it takes the place of all buffers */
		Assert(spool->buffered == 0);
		drain(spool);
		spool->current = 0;
	}
	else
		grown = region->committed + GROWTH(region->committed);

	/* nobody is using what is there: it may move */
	if (!ws_region_reserve(region, spool->origin + Max(bytes, grown)) && grown > 0)
	{
		spool->store.full = true;
		grown = 0;
		(void) ws_region_reserve(region, bytes);
	}
	ws_region_commit(region, spool->origin + Max(bytes, grown));
	/* that there is no more is found out while there is room for a row, not when there is none */
	if (spool->buffer_size == 0 &&
		!ws_region_reserve(region, region->committed + GROWTH(region->committed)))
		spool->store.full = true;
	spool->buffer = region->base + spool->origin;
	spool->room = region->committed - spool->origin;
}

/*
 * Makes room for a row of `length` bytes and returns where it goes; *pointer
 * is set to its pointer.
 */
static char *
reserve_row(WsSpool *spool, Size length, uint64 *pointer)
{
	Size		unit = (Size) 1 << spool->shift;
	Size		escape = length >= LENGTH_ESCAPE ? sizeof(uint64) : 0;
	Size		data;
	Size		end;

	for (;;)
	{
		data = TYPEALIGN(unit, spool->buffered + escape + WS_ROW_HEADER);
		end = data - WS_ROW_HEADER + length;
		if (spool->buffer_size == 0 || end <= spool->buffer_size ||
			spool->buffered == 0)
			break;
		flush_buffer(spool);
	}
	if (end + FLUSH_ALIGN > spool->room)
		grow_buffer(spool, end + FLUSH_ALIGN);

	memset(spool->buffer + spool->buffered, 0,
		   data - WS_ROW_HEADER - spool->buffered);
	if (escape > 0)
	{
		uint64		stored = length;

		memcpy(spool->buffer + data - WS_ROW_HEADER - escape, &stored, sizeof(stored));
	}
	*pointer = (spool->start + data) >> spool->shift;
	spool->buffered = end;
	spool->nrows++;
	return spool->buffer + data - WS_ROW_HEADER;
}

/* Puts the length of a row into the header bits it does not need. */
static inline void
set_length(char *row, Size length)
{
	uint16		mask2;
	uint16		mask;
	uint16		stored = Min(length, LENGTH_ESCAPE);

	memcpy(&mask2, row, sizeof(mask2));
	memcpy(&mask, row + 2, sizeof(mask));
	mask2 = (mask2 & HEAP_NATTS_MASK) | length_in_mask2(stored);
	mask = (mask & MASK_KEEP) | length_in_mask(stored);
	memcpy(row, &mask2, sizeof(mask2));
	memcpy(row + 2, &mask, sizeof(mask));
}

/*
 * Writes a row's header at `row`: everything up to the data.  `mask` has the
 * bits of t_infomask that describe the data.
 */
static inline void
put_header(char *row, int natts, uint16 mask, Size hoff, Size length)
{
	uint16		mask2 = (uint16) natts;

	memcpy(row, &mask2, sizeof(mask2));
	memcpy(row + 2, &mask, sizeof(mask));
	row[4] = (char) hoff;
	set_length(row, length);
}

/*
 * Builds a row of values behind the last one in a single pass, as
 * heap_fill_tuple would, and returns true.  Returns false, with nothing
 * appended, for a value that is neither in line nor of fixed length, and for a
 * row that the buffer may have no room for.  (Two passes with heap_fill_tuple:
 * 110 ns for a row of 4 columns and 110 bytes; this: 60.)
 */
static bool
build_row(WsSpool *spool, const Datum *values, const bool *isnull, bool hasnull,
		  Size hoff, uint64 *pointer)
{
	int			natts = spool->desc->natts;
	Size		data = TYPEALIGN((Size) 1 << spool->shift, spool->buffered + WS_ROW_HEADER);
	char	   *row = spool->buffer + data - WS_ROW_HEADER;
	char	   *start = row + hoff - UNSTORED;
	char	   *end;
	char	   *p = start;
	uint16		mask = hasnull ? HEAP_HASNULL : 0;

	end = spool->buffer + (spool->buffer_size > 0 ? Min(spool->buffer_size, spool->room) : spool->room);
	end = Min(end, row + LENGTH_ESCAPE) - 2 * MAXIMUM_ALIGNOF;
	if (start > end)
		return false;
	memset(spool->buffer + spool->buffered, 0, start - (spool->buffer + spool->buffered));
	for (int i = 0; i < natts; i++)
	{
		const WsSpoolColumn *column = &spool->columns[i];
		char	   *at = (char *) TYPEALIGN(column->align, (uintptr_t) p);
		const char *value = DatumGetPointer(values[i]);
		Size		length;

		if (hasnull)
		{
			if (isnull[i])
				continue;
			row[SizeofHeapTupleHeader - UNSTORED + i / 8] |= (char) (1 << (i % 8));
		}
		if (column->length > 0)
			length = column->length;
		else if (column->length != -1 || VARATT_IS_EXTERNAL(value))
			return false;
		else
		{
			mask |= HEAP_HASVARWIDTH;
			if (VARATT_IS_SHORT(value))
			{
				at = p;
				length = VARSIZE_SHORT(value);
			}
			else if (column->packable && VARATT_CAN_MAKE_SHORT(value))
			{
				length = VARATT_CONVERTED_SHORT_SIZE(value);
				if (p + length > end)
					return false;
				SET_VARSIZE_SHORT(p, length);
				copy_bytes(p + 1, VARDATA(value), length - 1);
				p += length;
				continue;
			}
			else
				length = VARSIZE(value);
		}
		if (at + length > end)
			return false;
		while (p < at)
			*p++ = 0;
		if (column->byval)
			store_att_byval(at, values[i], column->length);
		else
			copy_bytes(at, value, length);
		p = at + length;
	}
	put_header(row, natts, mask, hoff, p - row);
	*pointer = (spool->start + data) >> spool->shift;
	spool->buffered = p - spool->buffer;
	spool->nrows++;
	return true;
}

/* A slot without a tuple of its own: builds the row in place. */
static uint64
append_values(WsSpool *spool, TupleTableSlot *slot)
{
	TupleDesc	desc = spool->desc;
	uint64		pointer;
	bool		hasnull = false;
	Size		hoff;
	Size		data_size;
	char	   *row;
	uint16		mask = 0;

	slot_getallattrs(slot);
	for (int i = 0; i < desc->natts && !hasnull; i++)
		hasnull = slot->tts_isnull[i];
	hoff = MAXALIGN(SizeofHeapTupleHeader + (hasnull ? BITMAPLEN(desc->natts) : 0));
	if (build_row(spool, slot->tts_values, slot->tts_isnull, hasnull, hoff, &pointer))
		return pointer;
	data_size = heap_compute_data_size(desc, slot->tts_values, slot->tts_isnull);
	if (hoff + data_size > MaxAllocSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a row of %zu bytes is too large to be sorted", hoff + data_size)));

	row = reserve_row(spool, hoff - UNSTORED + data_size, &pointer);
	memset(row, 0, hoff - UNSTORED + data_size);
	heap_fill_tuple(desc, slot->tts_values, slot->tts_isnull,
					row + hoff - UNSTORED, data_size, &mask,
					hasnull ? (uint8 *) (row + SizeofHeapTupleHeader - UNSTORED) : NULL);
	put_header(row, desc->natts, mask, hoff, hoff - UNSTORED + data_size);
	return pointer;
}

/*
 * Appends the slot's row and returns its pointer.  Values are stored as core's
 * sort would store them: TOAST pointers stay, expanded objects are flattened.
 * Raises the errors of ws_tempfile_write, and out of memory.
 */
uint64
ws_spool_append(WsSpool *spool, TupleTableSlot *slot)
{
	const char *source;
	Size		length;
	uint64		pointer;
	char	   *row;

	if ((TTS_IS_BUFFERTUPLE(slot) || TTS_IS_HEAPTUPLE(slot)) &&
		((HeapTupleTableSlot *) slot)->tuple != NULL)
	{
		HeapTuple	tuple = ((HeapTupleTableSlot *) slot)->tuple;

		source = (const char *) tuple->t_data + UNSTORED;
		length = tuple->t_len - UNSTORED;
	}
	else if (TTS_IS_MINIMALTUPLE(slot) &&
			 ((MinimalTupleTableSlot *) slot)->mintuple != NULL)
	{
		MinimalTuple tuple = ((MinimalTupleTableSlot *) slot)->mintuple;

		source = (const char *) tuple + MINIMAL_TUPLE_DATA_OFFSET;
		length = tuple->t_len - MINIMAL_TUPLE_DATA_OFFSET;
	}
	else
		return append_values(spool, slot);

	row = reserve_row(spool, length, &pointer);
	copy_bytes(row, source, length);
	set_length(row, length);
	return pointer;
}

/* Makes every row that was appended so far readable. */
void
ws_spool_make_readable(WsSpool *spool)
{
	if (spool->mapped < spool->flushed)
	{
		WsRead		whole = {.file = spool->file, .bytes = (Size) spool->flushed};
		MemoryContext old;

		drain(spool);
		if (spool->reader != NULL)
			spool->reader->ops->close(spool->reader);
		old = MemoryContextSwitchTo(GetMemoryChunkContext(spool));
		spool->reader = ws_reader_mapped(spool->files, spool->file, spool->flushed);
		MemoryContextSwitchTo(old);
		spool->reader->ops->submit(spool->reader, &whole);
		(void) spool->reader->ops->wait(spool->reader);
		spool->map = whole.data;
		spool->mapped = spool->flushed;
	}
}

/*
 * Ends appending: writes what is buffered if there is a file, gives the
 * buffer back, and makes all rows readable.
 */
void
ws_spool_finish(WsSpool *spool)
{
	if (spool->file >= 0 && !spool->travels)
	{
		flush_buffer(spool);
		drain(spool);
		ws_helper_stop(spool->writer);
		spool->writer = NULL;
		ws_region_shrink(spool->region, 0);
		spool->room = 0;
	}
	ws_spool_make_readable(spool);
}

/* Bytes that its file has, or had before rows travelled. */
int64
ws_spool_filed(const WsSpool *spool)
{
	return spool->departed + (spool->file >= 0 ? spool->flushed : 0);
}

/* Stops the writer, and releases memory now.  The file is its set's. */
void
ws_spool_destroy(WsSpool *spool)
{
	ws_helper_stop(spool->writer);
	spool->writer = NULL;
	ws_region_destroy(spool->region);
}
