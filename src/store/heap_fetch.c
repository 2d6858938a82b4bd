/*-------------------------------------------------------------------------
 * heap_fetch.c - copying the rows of a window out of the table.
 *
 * The window's entries are in block order.  Where direct reads are possible
 * (heap_direct.c), their blocks are taken in lock groups, whose locks are held together,
 * and the groups in batches:
 *
 *	1. All rows of a batch are touched, so that they are in memory and in the
 *	   cache.  No lock is needed for that.
 *	2. For each lock group, the locks are taken, the rows copied, the locks released.
 *
 * The cache and TLB misses of both are what fetching costs.  In large windows the
 * backend and its helper do them together (os/team.c), half of the blocks each: 10 M
 * rows of 100 bytes at 64 MB, 1.3 s of fetching became 1.0 s (perf record of the
 * query in bench/NOTES.md).  The locks are the backend's: a helper copies only while the
 * backend holds them for it.
 *
 * The addresses of blocks in shared buffers are known only under the locks, at the first visit.  Then it
 * is remembered in which buffer a block was (ws_direct_remember).  If memory is too small for that, and
 * most blocks turn out to be in buffers, step 1 is left out.
 *
 * What cannot be had directly comes through the buffer manager: so do, from PostgreSQL 19 on, all blocks that
 * are in shared buffers.
 *-------------------------------------------------------------------------
 */
#include "store/heap.h"
#include "store/row.h"

#include "miscadmin.h"

#define GROUP_ROWS		256		/* rows fetched under the same locks, about */
#define BATCH_GROUPS		(WS_HEAP_TOUCHED / WS_DIRECT_BLOCKS)
#define ROWS_AHEAD		512		/* bytes of the arena, for whose lines the CPU is asked early */
#define COPY_ITEMS		4		/* parts of a lock group, each copied by one thread */

/*
 * Puts a row where its header is going to be, `to`, as in the spool without the fields that only
 * visibility and locks need; its pointer and length take their place.  What is before these is not written.
 */
static inline void
put_row(char *to, uint64 pointer, const char *row, Size length)
{
	uint64		front = pointer << 16 | length;

	memcpy(to + WS_ROW_FRONT, &front, sizeof(front));
	copy_bytes(to + UNSTORED, row + UNSTORED, length - UNSTORED);

	/*
	 * Never both bits, which would make it a composite value (row.h).  No row of
	 * a page has both, unless the page is damaged: then nobody shall look here for
	 * the version of a type.
	 */
	((HeapTupleHeader) to)->t_infomask &= ~HEAP_XMAX_COMMITTED;
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
		side->wanted += side->end - side->used; /* what a part has too little of, rows take as well */
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
		WsHeapRow	e = h->order[from];
		Size		length;
		Size		bytes;
		const char *row = ws_heap_find_row(page, ws_row_offset(e), &length);
		char	   *place;

		if (unlikely(row == NULL))
			break;
		bytes = MAXALIGN(length - WS_ROW_FRONT);
		side->wanted += bytes;
		place = make_room(h, side, bytes);
		if (likely(place != NULL))
		{
			/* the lines of rows to come */
			__builtin_prefetch(place + ROWS_AHEAD, 1);
			__builtin_prefetch(place + ROWS_AHEAD + 64, 1);
			put_row(place, ws_row_pointer(e), row, length);
			h->where[ws_row_position(e)] = (uint32) ((place - h->arena) / MAXIMUM_ALIGNOF);
		}
		else
		{
			h->where[ws_row_position(e)] = WS_NO_ROOM | (uint32) from;
			side->missing = true;
		}
	}
	return from;
}

/* Where the entries of the block of entry `from` end. */
static inline Size
block_end(const WsHeap *h, Size from)
{
	BlockNumber block = ws_row_block(h->order[from]);
	Size		end = from + 1;

	while (end < h->rows && ws_row_block(h->order[end]) == block)
		end++;
	return end;
}

/*
 * Copies the rows of entries from `from` on that are in the pinned buffer, and
 * gives the pin up.  Raises ws_heap_bad_pointer's error.
 */
static void
copy_buffered(WsHeap *h, Buffer buffer, Size from)
{
	Size		end = block_end(h, from);
	Size		done;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	done = copy_rows(h, &h->sides[WS_TEAM_BACKEND], BufferGetPage(buffer), from, end);
	UnlockReleaseBuffer(buffer);
	h->stats.blocks_buffered++;
	if (unlikely(done < end))
		ws_heap_bad_pointer(h->rel, ws_row_pointer(h->order[done]));
}

/* Where reading all blocks of the window through the buffer manager stands. */
typedef struct Buffered
{
	WsHeap	   *h;
	Size		next;			/* entry whose block is to be asked for next */
	Size		copied;			/* entry whose block comes next */
} Buffered;

static BlockNumber
next_block(void *arg)
{
	Buffered   *b = arg;
	BlockNumber block;

	if (b->next >= b->h->rows)
		return InvalidBlockNumber;
	block = ws_row_block(b->h->order[b->next]);
	b->next = block_end(b->h, b->next);
	return block;
}

static void
use_buffer(void *arg, Buffer buffer)
{
	Buffered   *b = arg;

	copy_buffered(b->h, buffer, b->copied);
	b->copied = block_end(b->h, b->copied);
}

/*
 * What follows is done by the backend and its helper together, in items
 * (os/team.c): the backend takes them from the front, the helper from the back.
 */

/* Asks the CPU for page headers and line pointers of rows. */
static pg_attribute_always_inline void
prefetch_pointers(const WsHeap *h, const char *page, Size from, Size end)
{
	__builtin_prefetch(page);
	for (; from < end; from++)
		__builtin_prefetch(page + SizeOfPageHeaderData +
						   (ws_row_offset(h->order[from]) - 1) * sizeof(ItemIdData));
}

static pg_attribute_always_inline void
prefetch_rows(const WsHeap *h, const char *page, Size from, Size end)
{
	for (; from < end; from++)
		ws_direct_prefetch_row(page, ws_row_offset(h->order[from]));
}

/*
 * Touches rows, in steps whose misses overlap.  None of the first two waits for a row; the last sees to it
 * that those in the table's files are in memory, as those in buffers are.
 */
static void
touch_rows(WsHeap *h, const WsDirectBlock *blocks, int n)
{
	for (int i = 0; i < n; i++)
		if (blocks[i].near != NULL)
			prefetch_pointers(h, blocks[i].near, blocks[i].from, blocks[i].end);
	for (int i = 0; i < n; i++)
		if (blocks[i].near != NULL)
			prefetch_rows(h, blocks[i].near, blocks[i].from, blocks[i].end);
	for (int i = 0; i < n; i++)
		for (Size e = blocks[i].from; blocks[i].page != NULL && e < blocks[i].end; e++)
			ws_direct_touch_row(blocks[i].page, ws_row_offset(h->order[e]));
}

/*
 * The rows of a batch.  The first half of the items are the first halves of its
 * lock groups, the others the second halves in reverse order: so that whoever touches
 * blocks is likely to copy from them.
 */
static void
touch_batch(void *arg, int item, int side)
{
	WsHeap	   *h = arg;
	int			group = item < h->groups ? item : 2 * h->groups - 1 - item;
	int			half = (h->in_group[group] + 1) / 2;
	WsDirectBlock *blocks = h->touching + group * WS_DIRECT_BLOCKS;

	if (item < h->groups)
		touch_rows(h, blocks, half);
	else
		touch_rows(h, blocks + half, h->in_group[group] - half);
}

/* The same for blocks that turn out to be in other buffers than they have been touched in. */
static void
prefetch_buffers(WsHeap *h, WsDirectBlock *blocks, int n)
{
	for (int i = 0; i < n; i++)
		if (blocks[i].page != blocks[i].near && blocks[i].page != NULL)
			prefetch_pointers(h, blocks[i].page, blocks[i].from, blocks[i].end);
	for (int i = 0; i < n; i++)
		if (blocks[i].page != blocks[i].near && blocks[i].page != NULL)
			prefetch_rows(h, blocks[i].page, blocks[i].from, blocks[i].end);
}

/* Copies the rows of blocks that are locked. */
static void
copy_blocks(void *arg, int item, int side)
{
	WsHeap	   *h = arg;
	WsHeapSide *s = &h->sides[side];
	int			share = (h->nblocks + COPY_ITEMS - 1) / COPY_ITEMS;
	WsDirectBlock *blocks = h->blocks + item * share;
	int			n = Min(h->nblocks - item * share, share);

	prefetch_buffers(h, blocks, n);
	for (int i = 0; i < n; i++)
	{
		Size		done;

		if (blocks[i].page == NULL)
			continue;
		done = copy_rows(h, s, blocks[i].page, blocks[i].from, blocks[i].end);
		if (unlikely(done < blocks[i].end))
			s->bad = ws_row_pointer(h->order[done]);
	}
}

/*
 * Fetches the rows of h->blocks: directly, as far as that is possible, else through the buffer manager.
 * Unless it is the `last` time, blocks that are in no buffer and have not been touched in a file are
 * left, and moved to the front.
 */
static void
fetch_directly(WsHeap *h, bool last)
{
	WsDirectBlock *blocks = h->blocks;
	bool		complete;
	int			present;
	int			shared = 0;
	int			direct = 0;
	int			left = 0;

	present = ws_direct_lock(h->direct, blocks, h->nblocks);
	complete = ws_team_run(h->team, copy_blocks, h, Min(h->nblocks, COPY_ITEMS));
	ws_direct_unlock(h->direct, blocks, h->nblocks);
	if (unlikely(!complete))
		ws_direct_failed(h->direct);
	for (int side = 0; side < 2; side++)
		if (unlikely(h->sides[side].bad != 0))
			ws_heap_bad_pointer(h->rel, h->sides[side].bad);
	for (int i = 0; i < h->nblocks; i++)
	{
		if (blocks[i].page != NULL && blocks[i].buffer >= 0)
			shared++;
		else if (blocks[i].page != NULL)
			direct++;
		else if (last || blocks[i].buffer >= 0)
			copy_buffered(h, ReadBufferExtended(h->rel, MAIN_FORKNUM, blocks[i].block,
												RBM_NORMAL, h->strategy), blocks[i].from);
		else
			blocks[left++] = blocks[i];
	}
	ws_heap_count_visits(h->rel, &h->stats, direct, shared);
	if (!last)
		h->resident = present > h->nblocks / 2;
	h->nblocks = left;
}

/* Fetches the rows of h->blocks, which have been found, and touched as far as that told where they are. */
static void
fetch_group(WsHeap *h)
{
	fetch_directly(h, false);
	if (h->nblocks > 0)
	{
		ws_direct_find(h->direct, h->blocks, h->nblocks, true);
		touch_rows(h, h->blocks, h->nblocks);
		fetch_directly(h, true);
	}
}

/* The blocks of a window to come. */
typedef struct Coming
{
	const WsHeapRow *order;
	const WsHeapRow *end;
} Coming;

static BlockNumber
coming_block(void *arg)
{
	Coming	   *c = arg;
	BlockNumber block;

	if (c->order == c->end)
		return InvalidBlockNumber;
	block = ws_row_block(*c->order);
	while (c->order < c->end && ws_row_block(*c->order) == block)
		c->order++;
	return block;
}

/*
 * Tells the system of the next window's first blocks, while this one is being handed out, so that the device
 * is not idle meanwhile; false if the helper does not have their order yet.
 */
bool
ws_heap_announce(WsHeap *h)
{
	Size		n;
	const WsHeapRow *order = ws_heap_order_look(h->source, &n);
	Coming		coming;

	if (order == NULL)
		return false;
	coming = (Coming) {order, order + n};
	ws_announce_blocks(h->announcer, coming_block, &coming);
	return true;
}

/* Copies the rows of all entries of the window, which are in block order, into the arena. */
void
ws_heap_fetch(WsHeap *h)
{
	Buffered	buffered = {h, 0, 0};

	if (h->direct == NULL)
	{
		ws_read_blocks(h->rel, h->strategy, h->announcer, next_block, use_buffer, &buffered);
		return;
	}
	for (Size next = 0; next < h->rows;)
	{
		CHECK_FOR_INTERRUPTS();
		if (h->team_fetch)
			ws_team_call(h->team);
		for (h->groups = 0; h->groups < BATCH_GROUPS && next < h->rows; h->groups++)
		{
			int			group = h->groups;
			WsDirectBlock *b = h->touching + group * WS_DIRECT_BLOCKS;
			Size		limit = Min(h->rows, next + GROUP_ROWS);
			int			n;

			for (n = 0; next < limit && n < WS_DIRECT_BLOCKS; n++, b++)
			{
				b->block = ws_row_block(h->order[next]);
				b->from = next;
				b->end = next = block_end(h, next);
			}
			h->in_group[group] = n;
			ws_direct_recall(h->direct, h->touching + group * WS_DIRECT_BLOCKS, n,
							 !h->resident);
		}
		if ((!h->resident || h->remembers) &&
			!ws_team_run(h->team, touch_batch, h, 2 * h->groups))
			ws_direct_failed(h->direct);
		for (int group = 0; group < h->groups; group++)
		{
			h->blocks = h->touching + group * WS_DIRECT_BLOCKS;
			h->nblocks = h->in_group[group];
			fetch_group(h);
		}
	}
}

/* Copies a row that found no room in the window to h->single. */
void
ws_heap_fetch_single(WsHeap *h, uint64 pointer)
{
	Buffer		buffer = ReadBufferExtended(h->rel, MAIN_FORKNUM, ws_pointer_block(pointer),
											RBM_NORMAL, h->strategy);
	Size		length;
	const char *row;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	row = ws_heap_find_row(BufferGetPage(buffer), ws_pointer_offset(pointer), &length);
	if (row != NULL)
		put_row(h->single, pointer, row, length);
	UnlockReleaseBuffer(buffer);
	h->stats.blocks_buffered++;
	if (row == NULL)
		ws_heap_bad_pointer(h->rel, pointer);
}
