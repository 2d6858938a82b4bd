/*-------------------------------------------------------------------------
 * heap.c - the window over a table: rows fetched once, in block order.
 *
 * With the table as record store, a sort has only keys and TIDs to sort, and
 * writes no row anywhere.  Fetching each row by its TID in output order costs a
 * random block a row.  The window takes the next W pointers instead, sorts
 * them by block, visits each block once for all its rows in the window, copies
 * those, and hands them out in output order.  (The offset queue of WiscSort's
 * RECORD read; W follows from work_mem.)
 *
 * A TID that the query's snapshot has seen keeps naming the same row until the
 * query ends: whoever deleted or updated the row did so too late for VACUUM or
 * pruning to remove it, and both move a row's bytes within the page, never its
 * line pointer.  So rows are fetched without another look at visibility.  A
 * line pointer that is not that of a row is corruption: an ERROR with the
 * block's number, never a row less.
 *
 * Blocks are read directly where that is possible (heap_direct.c), otherwise
 * through the buffer manager.
 *
 * Windows start small and grow, so that a reader that wants only the first
 * rows does not make the merge produce many.
 *
 * Memory: `memory` bytes for the window, and one block for a row that finds no
 * room in it because others are longer than the average so far.
 *-------------------------------------------------------------------------
 */
#include "record/heap.h"
#include "record/row.h"

#include <sys/mman.h>

#include "index/index.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

#define BATCH_GROWTH	8
#define MAX_ROWS		WS_PIECE_ENTRIES
#define NO_ROOM			((uint32) 1 << 31)	/* of `where`: the rest is an entry's number */
#define GROUP			32		/* copies prefetched at one go */
#define HOLD_ROWS		128		/* rows fetched under the same locks, about */
#define BATCH_HOLDS		8
#define ITEM_BLOCKS		8		/* of a hold, copied by the same thread */
#define TEAM_ROWS		1024	/* windows that are worth a team */
#define PART			((Size) 64 * 1024)	/* of the arena, for one side */

/* Of a row, beside the arena; and in front of it there. */
#define PER_ROW			sizeof(uint32)
#define ROW_FRONT		sizeof(uint64)	/* pointer, and length below it */
#define SLACK(average)	((average) * 1.125)

/*
 * Starts fetching rows of `rel` in the order in which `pointers` delivers their
 * TIDs.  `rel` stays open and locked, and the snapshot that the TIDs were seen
 * with stays registered.  `memory` is in bytes.  Allocates as
 * ws_heap_order_create does.
 */
WsHeap *
ws_heap_create(Relation rel, const WsPointers *pointers, Size memory)
{
	WsHeap	   *h = palloc0(sizeof(WsHeap));
	BlockNumber blocks = RelationGetNumberOfBlocks(rel);

	h->rel = rel;
	h->source = ws_heap_order_create(pointers, Min(memory / sizeof(WsEntry), MAX_ROWS));
	h->region = ws_region_create(Max(memory, 64 * 1024));
	h->memory = Min(memory, h->region->reserved);
	(void) madvise(h->region->base, h->region->reserved, MADV_HUGEPAGE);
	h->single = palloc(BLCKSZ + MAXIMUM_ALIGNOF);
	h->average = rel->rd_rel->reltuples > 0 ?
		(double) blocks * BLCKSZ / rel->rd_rel->reltuples : 256;
	h->average = Max(64, Min(h->average, BLCKSZ));
	/* one scan must not sweep the whole of shared_buffers (as in heapam.c) */
	if (!RelationUsesLocalBuffers(rel) && blocks > (BlockNumber) NBuffers / 4)
		h->strategy = GetAccessStrategy(BAS_BULKREAD);

	/*
	 * Where the page cache cannot hold the table, a page that was touched might
	 * be gone again when it is copied, and be read under the mapping locks.
	 */
	if (ws_direct_read == WS_DIRECT_ON ||
		(ws_direct_read == WS_DIRECT_AUTO && blocks <= (BlockNumber) effective_cache_size))
		h->direct = ws_direct_create(rel);
	h->team = palloc(sizeof(WsTeam));
	ws_team_init(h->team, h->source->helper);
	h->touching = palloc(BATCH_HOLDS * WS_DIRECT_BLOCKS * sizeof(WsDirectBlock));
	pg_atomic_init_u64(&h->used, 0);
	ws_heap_restart(h, 0);
	return h;
}

/* Empties the window: the source continues at row number `position`. */
void
ws_heap_restart(WsHeap *h, uint64 position)
{
	h->first = position;
	h->rows = h->head = 0;
	h->batch = WS_HEAP_FIRST_BATCH;
}

/* Continues at row number `position`, if that is in the window. */
bool
ws_heap_seek(WsHeap *h, uint64 position)
{
	if (position < h->first || position > h->first + h->rows)
		return false;
	h->head = h->prefetched = (Size) (position - h->first);
	return true;
}

static void
bad_pointer(WsHeap *h, uint64 pointer)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("row (%u,%u) of table \"%s\" is gone while it was being sorted",
					ws_pointer_block(pointer), ws_pointer_offset(pointer),
					RelationGetRelationName(h->rel)),
			 errdetail("Block %u has no row at that line pointer any more.",
					   ws_pointer_block(pointer)),
			 errhint("Check the table with amcheck's verify_heapam().")));
}

/*
 * The row at a line pointer of a page, and its length; NULL if there is none.
 */
static inline const char *
find_row(const char *page, OffsetNumber offset, Size *length)
{
	const PageHeaderData *header = (const PageHeaderData *) page;
	ItemIdData	lp;

	/* the number of line pointers, from a page header that may be damaged */
	if (offset == 0 || offset > MaxOffsetNumber ||
		SizeOfPageHeaderData + offset * sizeof(ItemIdData) > header->pd_lower)
		return NULL;
	lp = header->pd_linp[offset - 1];
	if (lp.lp_flags != LP_NORMAL || lp.lp_len < SizeofHeapTupleHeader ||
		lp.lp_off + lp.lp_len > BLCKSZ)
		return NULL;
	*length = lp.lp_len;
	return page + lp.lp_off;
}

/* Puts a row with its pointer in front, at `to`. */
static inline void
put_row(char *to, uint64 pointer, const char *row, Size length)
{
	uint64		front = pointer << 16 | length;

	memcpy(to, &front, sizeof(front));
	copy_bytes(to + ROW_FRONT, row, length);
}

/* Room for `bytes` in the arena, or NULL if there is no more. */
static inline char *
make_room(WsHeap *h, WsHeapSide *side, Size bytes)
{
	char	   *place;

	if (unlikely(side->used + bytes > side->end))
	{
		Size		start = pg_atomic_fetch_add_u64(&h->used, h->part);

		if (start + bytes > h->room)
			return NULL;
		side->used = start;
		side->end = Min(start + h->part, h->room);
	}
	place = h->arena + side->used;
	side->used += bytes;
	return place;
}

/*
 * Copies the rows of one block that entries [from, end) name.  Returns the
 * first entry whose row is not there, or `end`.  Raises nothing.
 */
static Size
copy_rows(WsHeap *h, WsHeapSide *side, const char *page, Size from, Size end)
{
	for (; from < end; from++)
	{
		WsEntry		e = h->order[from];
		Size		length;
		Size		bytes;
		const char *row = find_row(page, ws_pointer_offset(e.hi), &length);
		char	   *place;

		if (unlikely(row == NULL))
			break;
		bytes = MAXALIGN(ROW_FRONT + length);
		side->wanted += bytes;
		place = make_room(h, side, bytes);
		if (likely(place != NULL))
		{
			put_row(place, e.hi, row, length);
			h->where[e.lo] = (uint32) ((place - h->arena) / MAXIMUM_ALIGNOF);
		}
		else
			h->where[e.lo] = NO_ROOM | (uint32) from;
	}
	return from;
}

/* The same through the buffer manager.  Raises bad_pointer's error. */
static void
copy_buffered(WsHeap *h, Size from, Size end)
{
	BlockNumber block = ws_pointer_block(h->order[from].hi);
	Buffer		buffer = ReadBufferExtended(h->rel, MAIN_FORKNUM, block,
											RBM_NORMAL, h->strategy);
	Size		done;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	done = copy_rows(h, &h->sides[WS_TEAM_BACKEND], BufferGetPage(buffer), from, end);
	UnlockReleaseBuffer(buffer);
	h->stats.buffered++;
	if (unlikely(done < end))
		bad_pointer(h, h->order[done].hi);
}

/* Where the entries of the block of entry `from` end. */
static inline Size
block_end(const WsHeap *h, Size from)
{
	BlockNumber block = ws_pointer_block(h->order[from].hi);
	Size		end = from + 1;

	while (end < h->rows && ws_pointer_block(h->order[end].hi) == block)
		end++;
	return end;
}

/* Puts visits on the books that the buffer manager keeps of its own. */
static void
count_visits(WsHeap *h, int direct, int shared)
{
	h->stats.direct += direct;
	h->stats.buffered += shared;
	pgBufferUsage.shared_blks_read += direct;
	pgBufferUsage.shared_blks_hit += shared;
	for (int i = 0; i < direct + shared; i++)
		pgstat_count_buffer_read(h->rel);
	for (int i = 0; i < shared; i++)
		pgstat_count_buffer_hit(h->rel);
	if (direct > 0)
		ws_count_io_read((uint32) direct);
	if (shared > 0)
		ws_count_io_hit((uint32) shared);
}

/*
 * What follows is done by the backend and its helper together, in items
 * (io/team.c): the backend takes them from the front, the helper from the back.
 */

/* Touches rows in the table's files, in two steps whose misses overlap. */
static void
touch_rows(WsHeap *h, const WsDirectBlock *blocks, int n)
{
	for (int i = 0; i < n; i++)
		if (blocks[i].page != NULL)
			ws_direct_touch(blocks[i].page, ws_pointer_offset(h->order[blocks[i].from].hi));
	for (int i = 0; i < n; i++)
		for (Size e = blocks[i].from; e < blocks[i].end && blocks[i].page != NULL; e++)
			ws_direct_touch_row(blocks[i].page, ws_pointer_offset(h->order[e].hi));
}

/*
 * The rows of a batch.  The first half of the items are the first halves of its
 * holds, the others the second halves in reverse order: so that whoever touches
 * blocks is likely to copy from them.
 */
static void
touch_batch(void *arg, int item, int side)
{
	WsHeap	   *h = arg;
	int			hold = item < BATCH_HOLDS ? item : 2 * BATCH_HOLDS - 1 - item;

	touch_rows(h, h->touching + hold * WS_DIRECT_BLOCKS + (item < BATCH_HOLDS ? 0 : WS_DIRECT_BLOCKS / 2),
			   WS_DIRECT_BLOCKS / 2);
}

/* The same for pages in shared buffers, which always are in memory. */
static void
prefetch_buffers(WsHeap *h, WsDirectBlock *blocks, int n)
{
	for (int i = 0; i < n; i++)
		if (blocks[i].buffer >= 0 && blocks[i].page != NULL)
			__builtin_prefetch(blocks[i].page + SizeOfPageHeaderData + sizeof(ItemIdData) *
							   ws_pointer_offset(h->order[blocks[i].from].hi));
	for (int i = 0; i < n; i++)
		for (Size e = blocks[i].from; e < blocks[i].end && blocks[i].buffer >= 0 && blocks[i].page != NULL; e++)
			ws_direct_touch_row(blocks[i].page, ws_pointer_offset(h->order[e].hi));
}

/* Copies the rows of blocks that are locked. */
static void
copy_blocks(void *arg, int item, int side)
{
	WsHeap	   *h = arg;
	WsHeapSide *s = &h->sides[side];
	WsDirectBlock *blocks = h->blocks + item * ITEM_BLOCKS;
	int			n = Min(h->nblocks - item * ITEM_BLOCKS, ITEM_BLOCKS);

	prefetch_buffers(h, blocks, n);
	for (int i = 0; i < n; i++)
	{
		Size		done;

		if (blocks[i].page == NULL)
			continue;
		done = copy_rows(h, s, blocks[i].page, blocks[i].from, blocks[i].end);
		if (unlikely(done < blocks[i].end))
			s->bad = h->order[done].hi;
	}
}

/*
 * Fetches the rows of h->blocks directly, as far as that is possible: from
 * the table's files only with `files`.  Those left are moved to the front.
 */
static void
fetch_directly(WsHeap *h, bool files)
{
	WsDirectBlock *blocks = h->blocks;
	bool		complete;
	int			present;
	int			shared = 0;
	int			direct = 0;
	int			left = 0;

	present = ws_direct_lock(h->direct, blocks, h->nblocks);
	complete = ws_team_run(h->team, copy_blocks, h, (h->nblocks + ITEM_BLOCKS - 1) / ITEM_BLOCKS);
	ws_direct_unlock(h->direct, blocks, h->nblocks);
	if (unlikely(!complete))
		ws_direct_failed(h->direct);
	for (int side = 0; side < 2; side++)
		if (unlikely(h->sides[side].bad != 0))
			bad_pointer(h, h->sides[side].bad);
	for (int i = 0; i < h->nblocks; i++)
	{
		if (blocks[i].page == NULL)
			blocks[left++] = blocks[i];
		else if (blocks[i].buffer >= 0)
			shared++;
		else
			direct++;
	}
	count_visits(h, direct, shared);
	if (!files || !h->resident)
		h->resident = present > h->nblocks / 2;
	h->nblocks = left;
}

/* Fetches the rows of h->blocks, which have been touched if `touched`. */
static void
fetch_hold(WsHeap *h, bool touched)
{
	if (h->direct != NULL && h->resident)
	{
		ws_direct_find(h->direct, h->blocks, h->nblocks, false);
		fetch_directly(h, false);
		touched = false;
	}
	if (h->direct != NULL && h->nblocks > 0)
	{
		if (!touched)
		{
			ws_direct_find(h->direct, h->blocks, h->nblocks, true);
			touch_rows(h, h->blocks, h->nblocks);
		}
		fetch_directly(h, true);
	}
	if (h->direct == NULL && effective_io_concurrency > 0)
		for (int i = 0; i < h->nblocks; i++)
			(void) PrefetchBuffer(h->rel, MAIN_FORKNUM, h->blocks[i].block);
	for (int i = 0; i < h->nblocks; i++)
		copy_buffered(h, h->blocks[i].from, h->blocks[i].end);
}

/* Fetches the rows of all entries, which are in block order. */
static void
fetch_rows(WsHeap *h)
{
	for (Size next = 0; next < h->rows;)
	{
		bool		touched = false;
		int			n[BATCH_HOLDS];

		CHECK_FOR_INTERRUPTS();
		for (int hold = 0; hold < BATCH_HOLDS; hold++)
		{
			WsDirectBlock *b = h->touching + hold * WS_DIRECT_BLOCKS;
			Size		limit = Min(h->rows, next + HOLD_ROWS);

			for (n[hold] = 0; next < limit && n[hold] < WS_DIRECT_BLOCKS; n[hold]++, b++)
			{
				b->block = ws_pointer_block(h->order[next].hi);
				b->from = next;
				b->end = next = block_end(h, next);
			}
			for (int i = n[hold]; i < WS_DIRECT_BLOCKS; i++)
				h->touching[hold * WS_DIRECT_BLOCKS + i].page = NULL;
		}
		if (h->direct != NULL && !h->resident)
		{
			for (int hold = 0; hold < BATCH_HOLDS; hold++)
				ws_direct_find(h->direct, h->touching + hold * WS_DIRECT_BLOCKS, n[hold], true);
			touched = true;
			if (!ws_team_run(h->team, touch_batch, h, 2 * BATCH_HOLDS))
				ws_direct_failed(h->direct);
		}
		for (int hold = 0; hold < BATCH_HOLDS && n[hold] > 0; hold++)
		{
			h->blocks = h->touching + hold * WS_DIRECT_BLOCKS;
			h->nblocks = n[hold];
			fetch_hold(h, touched);
		}
	}
}

/* Rows of a window that shall have `rows` if memory allows it. */
static Size
affordable(const WsHeap *h, Size rows)
{
	Size		row = ws_heap_order_bytes(h->source) + PER_ROW + (Size) SLACK(h->average);

	return Max(1, Min(rows, Min(h->memory / row, MAX_ROWS)));
}

/* Divides the window's memory for h->rows rows. */
static void
lay_out(WsHeap *h)
{
	Size		order = ws_heap_order_memory(h->source);
	Size		wish = h->rows * (PER_ROW + (Size) SLACK(h->average));
	Size		most = h->memory - Min(order, h->memory);

	ws_region_commit(h->region, Max(Min(wish, most), h->rows * PER_ROW + MAXIMUM_ALIGNOF));
	/* no page of it shall be a new one under the mapping locks */
	for (; h->touched < h->region->committed; h->touched += 4096)
		h->region->base[h->touched] = 0;
	h->where = (uint32 *) h->region->base;
	h->arena = (char *) MAXALIGN(h->where + h->rows);
	h->room = h->region->base + h->region->committed - h->arena;
	h->room = Min(h->room, (Size) NO_ROOM * MAXIMUM_ALIGNOF);
	/* a part has room for any row */
	h->part = h->team->on_duty ? MAXALIGN_DOWN(Max(2 * BLCKSZ, Min(h->room / 64, PART))) : h->room;
	pg_atomic_write_u64(&h->used, 0);
	memset(h->sides, 0, sizeof(h->sides));
}

/* The next window.  False at the end. */
static bool
fill(WsHeap *h)
{
	Size		next = Min(h->batch * BATCH_GROWTH, MAX_ROWS);
	bool		together = h->direct != NULL && h->source->helper != NULL;

	h->first += h->rows;
	h->head = h->prefetched = 0;
	h->order = ws_heap_order_next(h->source, affordable(h, h->batch), &h->rows);
	if (h->rows == 0)
		return false;
	together = together && h->rows >= TEAM_ROWS;
	if (together)
		ws_team_start(h->team);
	else
		ws_heap_order_ahead(h->source, affordable(h, next));
	lay_out(h);
	fetch_rows(h);
	if (together)
	{
		ws_team_end(h->team);
		ws_heap_order_ahead(h->source, affordable(h, next));
	}
	h->average = Max((double) (h->sides[0].wanted + h->sides[1].wanted) / h->rows, 32);
	h->stats.rows = Max(h->stats.rows, h->rows);
	h->batch = next;
	return true;
}

/* Bytes of memory in use. */
Size
ws_heap_memory(const WsHeap *h)
{
	return h->region->committed + ws_heap_order_memory(h->source);
}

/* Stops the helper.  NULL is fine. */
void
ws_heap_stop(WsHeap *h)
{
	if (h != NULL)
		ws_heap_order_stop(h->source);
}

/* Fetches a row that found no room in the window. */
static void
fetch_single(WsHeap *h, uint64 pointer)
{
	Buffer		buffer = ReadBufferExtended(h->rel, MAIN_FORKNUM, ws_pointer_block(pointer),
											RBM_NORMAL, h->strategy);
	Size		length;
	const char *row;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	row = find_row(BufferGetPage(buffer), ws_pointer_offset(pointer), &length);
	if (row != NULL)
		put_row(h->single, pointer, row, length);
	UnlockReleaseBuffer(buffer);
	h->stats.buffered++;
	if (row == NULL)
		bad_pointer(h, pointer);
}

/* Asks the CPU for copies that are handed out soon. */
static inline void
prefetch_copies(WsHeap *h)
{
	Size		end = Min(h->prefetched + GROUP, h->rows);

	for (Size i = h->prefetched; i < end; i++)
	{
		const char *row = h->arena + (Size) h->where[i] * MAXIMUM_ALIGNOF;

		if (unlikely((h->where[i] & NO_ROOM) != 0))
			continue;
		__builtin_prefetch(row);
		__builtin_prefetch(row + 64);
		__builtin_prefetch(row + 128);
	}
	h->prefetched = end;
}

/*
 * Points `tuple` at the next row in order and returns true, or returns false
 * at the end.  The row is valid until the next call.  Raises
 * ERRCODE_DATA_CORRUPTED and the errors of reading blocks.
 */
bool
ws_heap_next(WsHeap *h, HeapTuple tuple)
{
	const char *row;
	uint64		front;
	uint32		where;

	if (unlikely(h->head >= h->rows) && !fill(h))
		return false;
	if (unlikely(h->prefetched < h->rows && h->prefetched <= h->head + GROUP))
		prefetch_copies(h);
	where = h->where[h->head++];
	if (likely((where & NO_ROOM) == 0))
		row = h->arena + (Size) where * MAXIMUM_ALIGNOF;
	else
	{
		fetch_single(h, h->order[where & ~NO_ROOM].hi);
		row = h->single;
	}
	memcpy(&front, row, sizeof(front));
	tuple->t_data = (HeapTupleHeader) (row + ROW_FRONT);
	tuple->t_len = (uint32) (front & 0xFFFF);
	ItemPointerSet(&tuple->t_self, ws_pointer_block(front >> 16), ws_pointer_offset(front >> 16));
	tuple->t_tableOid = RelationGetRelid(h->rel);
	return true;
}
