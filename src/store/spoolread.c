/*-------------------------------------------------------------------------
 * spoolread.c - reading rows of the spool: in place, or copied in bulk.
 *
 * A row is found by its pointer, in the mapping of the spool's file or in
 * memory; its header is checked against the columns and the bounds of the
 * spool before anybody deforms it (spool.c has the format).  A header that makes no
 * sense raises ERRCODE_DATA_CORRUPTED with the file's name and the row's offset; a page that cannot
 * be read does so through os/sigbus.c.
 *
 * Memory: none, but for the slots that ties read key columns through.
 *-------------------------------------------------------------------------
 */
#include "store/row.h"
#include "store/spool.h"

/* Rows longer than this are not copied. */
#define COPY_LIMIT		2048

/*
 * Raises the error of a row, or of a page, that cannot be read.  `offset` in the file: one that is not there
 * is not named.
 */
void
ws_spool_damaged(const WsSpool *spool, const char *what, int64 offset)
{
	if (spool->file >= 0)
		ws_file_corrupt(spool->files, spool->file, 1, offset < spool->flushed ? offset : -1, what, NULL);
	ws_corrupt("(in memory)", what, NULL);
}

/* Rows that travel are in no file of the spool's. */
static void
bad_row(const WsSpool *spool, uint64 pointer)
{
	ws_spool_damaged(spool, "The header of a row in it makes no sense.",
					 (pointer & WS_TRAVELS) != 0 ? -1 : (int64) (pointer << spool->shift) - WS_ROW_HEADER);
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
	int64		room = (pointer & WS_TRAVELS) != 0 ? spool->places.end[ws_travel_place(pointer)] - row :
		spool->flushed + (spool->travels ? 0 : (int64) spool->buffered) -
		((int64) (pointer << spool->shift) - WS_ROW_HEADER);
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
	length = length_of_masks(mask, mask2);
	if (unlikely(length == LENGTH_ESCAPE))
		memcpy(&length, row - sizeof(uint64), sizeof(length));

	expected = MAXALIGN(SizeofHeapTupleHeader +
						((mask & HEAP_HASNULL) ? BITMAPLEN(natts) : 0));
	/* tables that had OIDS until they were upgraded carry 4 more bytes */
	if (unlikely(natts > spool->desc->natts || hoff < expected ||
				 hoff > expected + MAXIMUM_ALIGNOF ||
				 length + UNSTORED < hoff ||
				 room < 0 || length > (uint64) room))
		return NULL;

	/* a fault, if there has to be one, happens here */
	for (const char *page = (const char *) TYPEALIGN_DOWN(4096, (uintptr_t) (row + length - 1));
		 page > row; page -= 4096)
		(void) *(const volatile char *) page;
	*tuple_length = (uint32) (length + UNSTORED);
	return (char *) row - UNSTORED;
}

/* The same, for other files. */
char *
ws_spool_locate(const WsSpool *spool, uint64 pointer, uint32 *tuple_length)
{
	return locate(spool, pointer, tuple_length);
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
		bad_row(spool, pointer);
	ItemPointerSetInvalid(&tuple->t_self);
	tuple->t_tableOid = InvalidOid;
}

/*
 * Copies rows out of the spool, one behind the other in `arena`: where[], which
 * has their pointers, becomes what ws_spool_tuple's t_data would be, length[]
 * its t_len.  Stops at a row that finds no room, is too long to be worth a
 * copy, or has a header that makes no sense, and when `enough(arg)`, asked every
 * WS_PREFETCH_GROUP rows, says so.  Returns the number of rows copied; where[] is
 * unchanged behind them.  Callable from helpers; prefetches as the window does.
 */
Size
ws_spool_copy_rows(const WsSpool *spool, Size n, uint64 *where, uint32 *length,
				   char *arena, Size room, bool (*enough) (void *arg), void *arg)
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

			if (enough(arg))
				return i;
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

/* What ties keep of a row, with the slot that deforms into it. */
typedef struct SpoolSlot
{
	WsKeySlot	key;			/* must be first */
	TupleTableSlot *slot;
	HeapTupleData tuple;
} SpoolSlot;

static WsKeySlot *
make_slot(void *store)
{
	WsSpool    *spool = store;
	SpoolSlot  *s = palloc0(sizeof(SpoolSlot));

	s->slot = MakeSingleTupleTableSlot(spool->desc, &TTSOpsHeapTuple);
	s->key.pointer = WS_POINTER_MASK;
	s->key.values = s->slot->tts_values;
	s->key.isnull = s->slot->tts_isnull;
	return &s->key;
}

static void
fetch_key(void *store, uint64 pointer, WsKeySlot *key)
{
	WsSpool    *spool = store;
	SpoolSlot  *s = (SpoolSlot *) key;

	if (key->pointer == pointer)
		return;
	ws_spool_tuple(spool, pointer, &s->tuple);
	ExecStoreHeapTuple(&s->tuple, s->slot, false);
	slot_getsomeattrs(s->slot, spool->key_natts);
	key->pointer = pointer;
}

/* How ties read key columns from this spool. */
WsKeyRows
ws_spool_keys(WsSpool *spool)
{
	WsKeyRows	rows = {.ready = ready_keys, .prefetch = prefetch_key, .make_slot = make_slot,
		.fetch = fetch_key, .store = spool};

	return rows;
}
