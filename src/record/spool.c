/*-------------------------------------------------------------------------
 * spool.c - the spool: each row once, in arrival order.
 *
 * Rows are appended in memory until the caller says that work_mem is used up
 * (ws_spool_spill); from then on the memory is a write buffer in front of a
 * temporary file that takes large sequential writes.  With a helper there are
 * WS_SPOOL_BUFFERS of them: one is filled while others are being written.
 * Afterwards any row is read through a mapping, in place: a slot can point
 * straight at it.  (The record store of WiscSort, on the page cache instead of
 * PMEM.)
 *
 * Format of a row: the part of a heap tuple from t_infomask2 on, that is, 6
 * bytes of header, the null bitmap, padding, and the data, as heap_deform_tuple
 * reads them.  What comes before (transaction ids, ctid) means nothing here and
 * is not stored; a HeapTupleHeader pointer is formed so that those fields fall
 * on the row before, and nobody may look at them.  The row's length (without
 * those fields) lives in the header bits that have a meaning only for
 * visibility: 12 bits of t_infomask and 3 of t_infomask2; a row too long for
 * 15 bits has its length in the 8 bytes before it.  That makes a row 4 bytes
 * shorter than in core's tapes, and pays for its alignment.
 *
 * A pointer is (offset of the row + 6) in units of the strictest alignment of
 * the columns, 4 or 8 bytes, which is also what the data is aligned to.
 *
 * Memory: while in memory, the rows; later, the write buffers, of which the
 * first grows for a row that is larger than it.  Mapped file pages belong to the system.
 * On error: the file and the memory go with their owners (io/tempfile.c,
 * io/region.c).  A row header that makes no sense raises
 * ERRCODE_DATA_CORRUPTED with the file's name.
 *-------------------------------------------------------------------------
 */
#include "record/store.h"

#include "access/tupmacs.h"
#include "executor/tuptable.h"
#include "utils/memutils.h"

/* Bytes of a heap tuple header that are not stored, and that are. */
#define UNSTORED		offsetof(HeapTupleHeaderData, t_infomask2)	/* 18 */
StaticAssertDecl(UNSTORED == 18 && SizeofHeapTupleHeader == 23,
				 "layout of HeapTupleHeaderData has changed");

#define FILE_MAGIC		"wiscsort spool 1\n\0\0\0\0\0\0"
#define FILE_HEADER		24
StaticAssertDecl(sizeof(FILE_MAGIC) == FILE_HEADER, "spool file header");

/* Rows longer than this are not copied. */
#define COPY_LIMIT		2048

#define LENGTH_ESCAPE	0x7FFF
#define MASK_KEEP		0x000F	/* t_infomask bits that describe the data */
#define FLUSH_ALIGN		8

/* In-memory growth: in steps that stay small against what is there. */
#define GROWTH(committed)	Max((Size) 4 * 1024, Min((committed) / 16, (Size) 1024 * 1024))

/*
 * Creates an empty spool for rows of type `desc`, in CurrentMemoryContext.
 * `memory` (bytes) is what it may come to hold in memory; `key_natts` the
 * number of leading columns that the keys are made of.
 */
WsSpool *
ws_spool_create(TupleDesc desc, AttrNumber key_natts, Size memory)
{
	WsSpool    *spool = palloc0(sizeof(WsSpool));

	spool->desc = CreateTupleDescCopy(desc);
	spool->key_natts = key_natts;
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

	/* Address space costs nothing: leave room for the largest row there is. */
	spool->region = ws_region_create(memory + MaxAllocSize + 2 * 1024 * 1024);
	ws_region_commit(spool->region, 16 * 1024);
	spool->buffer = spool->region->base;
	spool->room = spool->region->committed;
	memcpy(spool->buffer, FILE_MAGIC, FILE_HEADER);
	spool->buffered = FILE_HEADER;
	return spool;
}

/* Waits until every buffer given to the helper is written. */
static void
drain(WsSpool *spool)
{
	if (spool->writer == NULL)
		return;
	for (int i = 0; i < WS_SPOOL_BUFFERS; i++)
		ws_write_finish(spool->writer, &spool->writes[i]);
	ws_tempfile_charge(spool->file);
}

/* Bytes from one buffer to the next, of several. */
static inline Size
stride(const WsSpool *spool)
{
	return spool->buffer_size + FLUSH_ALIGN;
}

/* Makes buffer number i the one that is filled. */
static void
use_buffer(WsSpool *spool, int i)
{
	spool->current = i;
	spool->buffer = spool->region->base + i * stride(spool);
	spool->room = stride(spool);
}

/* Gives back what is more than the buffers need. */
static void
shrink(WsSpool *spool)
{
	ws_region_shrink(spool->region,
					 stride(spool) * (spool->writer != NULL ? WS_SPOOL_BUFFERS : 1));
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

		ws_write_start(spool->writer, &spool->writes[spool->current], spool->file,
					   spool->buffer, aligned, spool->flushed);
		ws_write_finish(spool->writer, &spool->writes[next]);
		use_buffer(spool, next);
	}
	else
	{
		ws_tempfile_write(spool->file, spool->buffer, aligned, spool->flushed);
		shrink(spool);			/* a large row had made it grow */
	}
	spool->flushed += aligned;
	spool->buffered = 0;
}

/*
 * Moves the rows to a temporary file; from here on at most `memory` bytes of
 * memory are used (a larger row excepted).  `writer`, which may be NULL,
 * writes from then on.  Raises the errors of ws_tempfile_write.
 */
void
ws_spool_spill(WsSpool *spool, Size memory, WsHelper *writer)
{
	Assert(spool->file == NULL);
	spool->file = ws_tempfile_create();
	if (writer != NULL && ws_tempfile_allow_helpers(spool->file))
	{
		spool->writer = writer;
		memory = TYPEALIGN_DOWN(4096, memory / WS_SPOOL_BUFFERS);
	}
	spool->room = 0;			/* not one of the buffers yet */
	spool->buffer_size = memory - FLUSH_ALIGN;
	flush_buffer(spool);
	ws_region_commit(spool->region,
					 stride(spool) * (spool->writer != NULL ? WS_SPOOL_BUFFERS : 1));
	spool->peak_memory = spool->region->committed;
}

/* Makes the buffer large enough for `bytes` bytes. */
static void
grow_buffer(WsSpool *spool, Size bytes)
{
	WsRegion   *region = spool->region;
	Size		grown = region->committed + GROWTH(region->committed);

	if (spool->buffer_size > 0)
	{
		/* one large row: it takes the place of all buffers */
		Assert(spool->buffered == 0);
		drain(spool);
		spool->current = 0;
		spool->buffer = region->base;
		grown = 0;
	}
	else if (grown > region->reserved)
		grown = 0;
	ws_region_commit(region, Max(bytes, grown));
	spool->room = region->committed;
	if (spool->buffer_size > 0)
		spool->peak_memory = Max(spool->peak_memory, region->committed);
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
	*pointer = (spool->flushed + data) >> spool->shift;
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
	mask2 = (mask2 & HEAP_NATTS_MASK) | (uint16) ((stored >> 12) << 13);
	mask = (mask & MASK_KEEP) | (uint16) (stored << 4);
	memcpy(row, &mask2, sizeof(mask2));
	memcpy(row + 2, &mask, sizeof(mask));
}

/*
 * memcpy for rows, in vector registers.  Where gcc 12 makes `rep movs` of memcpy
 * it waits for the row's cache misses: 55 ns a row of 100 bytes.
 */
static inline void
copy_bytes(char *to, const char *from, Size n)
{
	if (n < 32)
	{
		memcpy(to, from, n);
		return;
	}
	for (Size i = 0; i + 32 < n; i += 32)
		memcpy(to + i, from + i, 32);
	memcpy(to + n - 32, from + n - 32, 32);
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
	*pointer = (spool->flushed + data) >> spool->shift;
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

	row = reserve_row(spool, hoff - UNSTORED + data_size, &pointer);
	memset(row, 0, hoff - UNSTORED + data_size);
	heap_fill_tuple(desc, slot->tts_values, slot->tts_isnull,
					row + hoff - UNSTORED, data_size, &mask,
					hasnull ? (bits8 *) (row + SizeofHeapTupleHeader - UNSTORED) : NULL);
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
		drain(spool);
		spool->map = ws_tempfile_map(spool->file, spool->flushed);
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
	if (spool->file != NULL)
	{
		flush_buffer(spool);
		drain(spool);
		ws_region_shrink(spool->region, 0);
		spool->room = 0;
	}
	ws_spool_make_readable(spool);
}

static void
bad_row(const WsSpool *spool)
{
	ws_corrupt(spool->file ? spool->file->name : "(in memory)",
			   "The header of a row in it makes no sense.");
}

/*
 * Finds the row at a pointer: returns its HeapTupleHeader, of which the fields
 * up to t_ctid are not there, and in *tuple_length what t_len shall be; or
 * NULL if its header makes no sense.  Touches every page of the row.  Callable
 * from helpers.
 */
static inline char *
locate(const WsSpool *spool, uint64 pointer, uint32 *tuple_length)
{
	const char *data = ws_spool_address(spool, pointer);
	const char *row = data - WS_ROW_HEADER;
	int64		offset = (int64) (pointer << spool->shift) - WS_ROW_HEADER;
	int64		limit = spool->flushed + (int64) spool->buffered;
	uint16		mask2;
	uint16		mask;
	uint8		hoff;
	int			natts;
	uint64		length;
	Size		expected;

	memcpy(&mask2, row, sizeof(mask2));
	memcpy(&mask, row + 2, sizeof(mask));
	hoff = (uint8) row[4];
	natts = mask2 & HEAP_NATTS_MASK;
	length = (uint64) (mask2 >> 13) << 12 | mask >> 4;
	if (unlikely(length == LENGTH_ESCAPE))
		memcpy(&length, row - sizeof(uint64), sizeof(length));

	expected = MAXALIGN(SizeofHeapTupleHeader +
						((mask & HEAP_HASNULL) ? BITMAPLEN(natts) : 0));
	/* tables that had OIDS until they were upgraded carry 4 more bytes */
	if (unlikely(natts > spool->desc->natts || hoff < expected ||
				 hoff > expected + MAXIMUM_ALIGNOF ||
				 length + UNSTORED < hoff ||
				 length > (uint64) (limit - offset)))
		return NULL;

	/* a fault, if there has to be one, happens here */
	for (const char *page = (const char *) TYPEALIGN_DOWN(4096, (uintptr_t) (row + length - 1));
		 page > row; page -= 4096)
		(void) *(const volatile char *) page;
	*tuple_length = (uint32) (length + UNSTORED);
	return (char *) row - UNSTORED;
}

/*
 * Points `tuple` at the row.  The data stays in the spool: it is valid until
 * the spool is destroyed, and read-only.  Every page of the row has been
 * touched when this returns.  Raises ERRCODE_DATA_CORRUPTED.
 */
void
ws_spool_tuple(WsSpool *spool, uint64 pointer, HeapTuple tuple)
{
	tuple->t_data = (HeapTupleHeader) locate(spool, pointer, &tuple->t_len);
	if (unlikely(tuple->t_data == NULL))
		bad_row(spool);
	ItemPointerSetInvalid(&tuple->t_self);
	tuple->t_tableOid = InvalidOid;
}

/*
 * Copies rows out of the spool, one behind the other in `arena`: where[], which
 * has their pointers, becomes what ws_spool_tuple's t_data would be, length[]
 * its t_len.  Stops at a row that finds no room, is too long to be worth a
 * copy, or has a header that makes no sense.  Returns the number of rows
 * copied; where[] is unchanged behind them.  Callable from helpers; prefetches
 * as the window does.
 */
Size
ws_spool_copy_rows(const WsSpool *spool, Size n, uint64 *where, uint32 *length,
				   char *arena, Size room)
{
	Size		used = 0;
	Size		prefetched = 0;

	for (Size i = 0; i < n; i++)
	{
		const char *row;
		char	   *to = arena + used;

		if (i % WS_PREFETCH_GROUP == 0)
		{
			Size		end = Min(i + 2 * WS_PREFETCH_GROUP, n);

			for (; prefetched < end; prefetched++)
				ws_spool_prefetch(spool, where[prefetched]);
		}
		row = locate(spool, where[i], &length[i]);
		if (unlikely(row == NULL) || length[i] > COPY_LIMIT ||
			used + MAXALIGN(length[i]) > room)
			return i;
		/* the alignment is that in the spool: what follows the header counts */
		copy_bytes(to + UNSTORED, row + UNSTORED, length[i] - UNSTORED);
		used += MAXALIGN(length[i]);
		where[i] = (uint64) (uintptr_t) to;
	}
	return n;
}

static void
ready_keys(void *store)
{
	ws_spool_make_readable(store);
}

static void
prefetch_key(void *store, uint64 pointer)
{
	ws_spool_prefetch(store, pointer);
}

/* A place with the slot that deforms into it. */
typedef struct SpoolPlace
{
	WsKeyPlace	place;			/* must be first */
	TupleTableSlot *slot;
	HeapTupleData tuple;
} SpoolPlace;

static WsKeyPlace *
make_place(void *store)
{
	WsSpool    *spool = store;
	SpoolPlace *p = palloc0(sizeof(SpoolPlace));

	p->slot = MakeSingleTupleTableSlot(spool->desc, &TTSOpsHeapTuple);
	p->place.pointer = WS_POINTER_MASK;
	p->place.values = p->slot->tts_values;
	p->place.isnull = p->slot->tts_isnull;
	return &p->place;
}

static void
fetch_key(void *store, uint64 pointer, WsKeyPlace *place)
{
	WsSpool    *spool = store;
	SpoolPlace *p = (SpoolPlace *) place;

	if (place->pointer == pointer)
		return;
	ws_spool_tuple(spool, pointer, &p->tuple);
	ExecStoreHeapTuple(&p->tuple, p->slot, false);
	slot_getsomeattrs(p->slot, spool->key_natts);
	place->pointer = pointer;
}

/* How ties read key columns from this spool. */
WsKeyRows
ws_spool_keys(WsSpool *spool)
{
	WsKeyRows	rows = {ready_keys, prefetch_key, make_place, fetch_key, spool};

	return rows;
}

/* Releases file, mapping and memory now. */
void
ws_spool_destroy(WsSpool *spool)
{
	if (spool == NULL)
		return;
	ws_tempfile_close(spool->file);
	ws_region_destroy(spool->region);
}
