/*-------------------------------------------------------------------------
 * heap_keys.c - the keys of ties, read from the table.
 *
 * Where the prefixes of entries tell nearly all rows apart, it is not worth keeping the keys of all rows for
 * the few that tie: these are read again, each from its block, directly if that is possible (heap_direct.c),
 * or through the buffer manager.  The row is copied, as it may move within its page as soon as no lock is
 * held; then the key columns, and nothing else, are taken out of the copy.  docs/heap.md says why it is the
 * row that was scanned.
 *
 * Statistics may be wrong.  When more rows have been read for ties than a part of those that have come, the
 * keys of rows to come are spooled after all (heapstore.c), and ties between these read the spool.
 *
 * A tie costs more than from a spool, of which it is known how many bytes behind a pointer the key lies:
 * two cache misses instead of one, and a lock.  Groups of ties come in the order of the table
 * (index/ties.c).  docs/decisions/45-ties-from-the-table.md has figures.
 *
 * Memory: one row, and the key columns of one row a slot, as long as they are in the table.  Toasted
 * values stay so.
 *
 * Errors: those of reading blocks, and of a row that is gone.
 *-------------------------------------------------------------------------
 */
#include "store/heap.h"

#include "access/htup_details.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#define AHEAD			8		/* prefetches between that of a line pointer and of its row */
#define LEAST_ROOM		64		/* of a slot, bytes */
#define LEAST_KEPT		((Size) 16 * 1024)

/* Rows read for ties, of those that have come, and beside these, that are too many. */
#define TOO_MANY_SHARE	4
#define TOO_MANY		1000

/* The key columns of one row, in a slot's own memory. */
typedef struct TableSlot
{
	WsKeySlot	key;			/* must be first */
	char	   *bytes;			/* of values by reference */
	Size		room;
	WsKeySlot  *spooled;		/* for rows whose keys are in the spool; NULL until there is one */
} TableSlot;

struct WsHeapKeys
{
	WsKeyRows	rows;
	WsHeapTable *table;
	const WsKeySpec *spec;
	const AttrNumber *columns;	/* of the table, by sort column */
	bool		resident;		/* the last block was in shared_buffers */
	uint64		ahead[AHEAD];	/* pointers prefetched lately, or 0 */
	int			next;			/* the oldest of these */
	char	   *row;			/* a copy */
	const WsKeyRows *spooled;	/* of rows whose pointers say so; NULL: there are none */
	WsStoreStats stats;
};

/*
 * Copies the row at a pointer to k->row without the buffer manager.  Returns its length, or 0 if the block
 * cannot be had so.  Raises ws_heap_bad_pointer's error.
 */
static Size
copy_directly(WsHeapKeys *k, uint64 pointer)
{
	WsDirect   *direct = k->table->direct;
	OffsetNumber offset = ws_pointer_offset(pointer);
	WsDirectBlock block = {.block = ws_pointer_block(pointer), .buffer = -1};
	const char *row = NULL;
	Size		length = 0;

	/* what is in a buffer is not touched in the file */
	for (bool files = !k->resident;; files = true)
	{
		ws_direct_find(direct, &block, 1, files);
		if (block.page != NULL)
		{
			ws_direct_touch(block.page, offset);
			ws_direct_prefetch_row(block.page, offset);
			ws_direct_touch_row(block.page, offset);
		}
		k->resident = ws_direct_lock(direct, &block, 1) > 0;
		if (block.page != NULL || k->resident || files)
			break;
		ws_direct_unlock(direct, &block, 1);
	}
	if (block.page != NULL)
		row = ws_heap_find_row(block.page, offset, &length);
	if (row != NULL)
		memcpy(k->row, row, length);
	ws_direct_unlock(direct, &block, 1);
	if (block.page == NULL)
		return 0;
	if (unlikely(row == NULL))
		ws_heap_bad_pointer(k->table->rel, pointer);
	ws_heap_count_visits(k->table->rel, &k->stats, block.buffer < 0, block.buffer >= 0);
	return length;
}

/* The same through the buffer manager, which can always be done. */
static Size
copy_buffered(WsHeapKeys *k, uint64 pointer)
{
	Buffer		buffer = ReadBufferExtended(k->table->rel, MAIN_FORKNUM, ws_pointer_block(pointer),
											RBM_NORMAL, k->table->strategy);
	Size		length = 0;
	const char *row;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	row = ws_heap_find_row(BufferGetPage(buffer), ws_pointer_offset(pointer), &length);
	if (row != NULL)
		memcpy(k->row, row, length);
	UnlockReleaseBuffer(buffer);
	k->stats.blocks_buffered++;
	if (unlikely(row == NULL))
		ws_heap_bad_pointer(k->table->rel, pointer);
	return length;
}

/* Bytes of a value by reference in a slot. */
static inline Size
value_bytes(Form_pg_attribute att, Datum value)
{
	return MAXALIGN(datumGetSize(value, false, att->attlen));
}

/* Puts the key columns of a row into a slot's memory.  Columns younger than the row have their defaults. */
static void
take_keys(WsHeapKeys *k, HeapTuple tuple, TableSlot *slot)
{
	TupleDesc	desc = RelationGetDescr(k->table->rel);
	Size		bytes = 0;
	char	   *to;

	for (int i = 0; i < k->spec->ncols; i++)
	{
		AttrNumber	column = k->columns[i];
		Form_pg_attribute att = TupleDescAttr(desc, column - 1);
		int			place = k->spec->cols[i].attno - 1;

		slot->key.values[place] = heap_getattr(tuple, column, desc, &slot->key.isnull[place]);
		if (!att->attbyval && !slot->key.isnull[place])
			bytes += value_bytes(att, slot->key.values[place]);
	}
	if (bytes > slot->room)
	{
		slot->room = Max(2 * slot->room, bytes);
		slot->bytes = repalloc(slot->bytes, slot->room);
	}
	to = slot->bytes;
	for (int i = 0; i < k->spec->ncols; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, k->columns[i] - 1);
		int			place = k->spec->cols[i].attno - 1;
		Datum	   *value = &slot->key.values[place];
		Size		length;

		if (att->attbyval || slot->key.isnull[place])
			continue;
		length = value_bytes(att, *value);
		memcpy(to, DatumGetPointer(*value), datumGetSize(*value, false, att->attlen));
		*value = PointerGetDatum(to);
		to += length;
	}
}

/* Is the row's key in the spool? */
static inline bool
is_spooled(const WsHeapKeys *k, uint64 pointer)
{
	return k->spooled != NULL && (pointer & WS_TIE_SPOOLED) != 0;
}

/* Has the slot show the keys of a row in the spool, where they stay. */
static void
fetch_spooled(WsHeapKeys *k, uint64 pointer, TableSlot *slot)
{
	if (slot->spooled == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(slot));

		slot->spooled = k->spooled->make_slot(k->spooled->store);
		MemoryContextSwitchTo(old);
	}
	k->spooled->fetch(k->spooled->store, pointer & ~WS_TIE_SPOOLED, slot->spooled);
	memcpy(slot->key.values, slot->spooled->values, k->spec->last_attno * sizeof(Datum));
	memcpy(slot->key.isnull, slot->spooled->isnull, k->spec->last_attno * sizeof(bool));
}

static void
fetch_key(void *store, uint64 pointer, WsKeySlot *key)
{
	WsHeapKeys *k = store;
	HeapTupleData tuple;
	Size		length = 0;

	if (key->pointer == pointer)
		return;
	key->pointer = WS_POINTER_MASK;
	if (is_spooled(k, pointer))
	{
		fetch_spooled(k, pointer, (TableSlot *) key);
		key->pointer = pointer;
		return;
	}
	if (k->table->direct != NULL)
		length = copy_directly(k, pointer);
	if (length == 0)
		length = copy_buffered(k, pointer);
	k->stats.tie_rows++;
	tuple.t_data = (HeapTupleHeader) k->row;
	tuple.t_len = (uint32) length;
	ItemPointerSet(&tuple.t_self, ws_pointer_block(pointer), ws_pointer_offset(pointer));
	tuple.t_tableOid = RelationGetRelid(k->table->rel);
	take_keys(k, &tuple, (TableSlot *) key);
	key->pointer = pointer;
}

static void
ready_keys(void *store)
{
	WsHeapKeys *k = store;

	if (k->spooled != NULL)
		k->spooled->ready(k->spooled->store);
}

/*
 * Asks the CPU for the row's line pointer, and for the row itself some calls later, when the line pointer is
 * there; or the system for its block, where that may not be in memory.
 */
static void
prefetch_key(void *store, uint64 pointer)
{
	WsHeapKeys *k = store;
	WsDirectBlock block = {.block = ws_pointer_block(pointer)};
	uint64		before = k->ahead[k->next];

	if (is_spooled(k, pointer))
	{
		k->spooled->prefetch(k->spooled->store, pointer & ~WS_TIE_SPOOLED);
		return;
	}
	if (k->table->direct == NULL)
	{
		if (effective_io_concurrency > 0 && (before == 0 || ws_pointer_block(before) != block.block))
			(void) PrefetchBuffer(k->table->rel, MAIN_FORKNUM, block.block);
		k->ahead[0] = pointer;
		return;
	}
	if (k->resident)
		return;
	ws_direct_find(k->table->direct, &block, 1, true);
	if (block.page != NULL)
		__builtin_prefetch(block.page + SizeOfPageHeaderData +
						   (ws_pointer_offset(pointer) - 1) * sizeof(ItemIdData));
	k->ahead[k->next] = pointer;
	k->next = (k->next + 1) % AHEAD;
	if (before == 0)
		return;
	block.block = ws_pointer_block(before);
	ws_direct_find(k->table->direct, &block, 1, true);
	if (block.page != NULL)
	{
		ws_direct_prefetch_row(block.page, ws_pointer_offset(before));
		ws_direct_touch_row(block.page, ws_pointer_offset(before));
	}
}

static WsKeySlot *
make_slot(void *store)
{
	WsHeapKeys *k = store;
	TableSlot  *s = palloc0(sizeof(TableSlot));

	s->key.pointer = WS_POINTER_MASK;
	s->key.values = palloc0(k->spec->last_attno * sizeof(Datum));
	s->key.isnull = palloc0(k->spec->last_attno * sizeof(bool));
	s->room = LEAST_ROOM;
	s->bytes = palloc(s->room);
	return &s->key;
}

static Datum
keep_value(void *store, const WsKeySlot *slot, int column, Size *bytes)
{
	WsHeapKeys *k = store;
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(k->table->rel), k->columns[column] - 1);
	Datum		value = slot->values[k->spec->cols[column].attno - 1];

	if (att->attbyval)
		return value;
	*bytes += value_bytes(att, value);
	return datumCopy(value, false, att->attlen);
}

/*
 * Makes keys of ties come from the table, for pointers that are TIDs.  Allocates in CurrentMemoryContext;
 * `context` and the table outlive it, and context->request has the columns.
 */
WsHeapKeys *
ws_heap_keys_create(const WsStoreContext *context, WsHeapTable *table)
{
	WsHeapKeys *k = palloc0(sizeof(WsHeapKeys));

	Assert(context->request->columns != NULL);
	k->rows = (WsKeyRows) {.ready = ready_keys, .prefetch = prefetch_key, .make_slot = make_slot,
		.fetch = fetch_key, .store = k, .keep = keep_value,
		.kept = Max(context->request->memory / 16, LEAST_KEPT)};
	k->table = table;
	k->spec = context->spec;
	k->columns = context->request->columns;
	k->row = palloc(BLCKSZ);
	return k;
}

/* How ties get at them; as long as `keys` is there. */
const WsKeyRows *
ws_heap_keys_rows(const WsHeapKeys *keys)
{
	return &keys->rows;
}

/*
 * Have ties read so many rows, when `rows` have come, that keys had better be spooled?  Not where a table is
 * so large that its pointers need all their bits.
 */
bool
ws_heap_keys_too_many(const WsHeapKeys *keys, uint64 rows)
{
	return unlikely((uint64) keys->stats.tie_rows > rows / TOO_MANY_SHARE + TOO_MANY) &&
		keys->table->blocks < MaxBlockNumber / 4;
}

/*
 * From now on there are pointers with WS_TIE_SPOOLED, of rows whose keys `spooled` has; it outlives
 * `keys`.
 */
void
ws_heap_keys_spooled(WsHeapKeys *keys, const WsKeyRows *spooled)
{
	keys->spooled = spooled;
}

/* Adds what has been read to `stats`. */
void
ws_heap_keys_stats(const WsHeapKeys *keys, WsStoreStats *stats)
{
	stats->ties_in_table = true;
	stats->ties_spooled = keys->spooled != NULL;
	stats->tie_rows = keys->stats.tie_rows;
	stats->blocks_direct += keys->stats.blocks_direct;
	stats->blocks_buffered += keys->stats.blocks_buffered;
}
