/*-------------------------------------------------------------------------
 * heap.c - the window over a table: rows fetched once, in block order.
 *
 * With the table as record store, a sort has only keys and TIDs to sort, and
 * writes no row anywhere.  Fetching each row by its TID in output order costs a
 * random block a row.  The window takes the next W pointers instead, sorts
 * them by block, visits each block once for all its rows in the window, copies
 * those, and hands them out in output order.  (The offset queue of WiscSort's
 * RECORD read; W follows from work_mem, and grows as the sorted IndexMap is used up, as far as that pays.)
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
 * Memory: `memory` bytes for the window, and one block for a row that finds no
 * room in it because others are longer than the average so far.
 *-------------------------------------------------------------------------
 */
#include "store/heap.h"

#include <math.h>
#include <sys/mman.h>

#include "index/index.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/rel.h"

#define MAX_ROWS		Min(WS_PIECE_ENTRIES, WS_WINDOW_ROWS)
#define AHEAD			32		/* copies that the CPU has been asked for, or more */
#define TEAM_ROWS		1024	/* windows that are worth a team */
#define PART			((Size) 64 * 1024)	/* of the arena, for one side */
#define REST_ROWS		4096	/* pointers taken at a time that nobody fetches */
#define REMEMBERED_SHARE	32	/* 1 / that of the memory, at most, says where blocks are */
#define MOST_DEVIATION	0.12	/* of a window's average row that room is left for */
#define VISIT_BYTES		600.0	/* of memory that is new: they take as long as the visit of a block */

/* Of a row, beside the arena: its place and its pointer. */
#define PLACE			sizeof(uint32)
#define POINTER			sizeof(WsHeapRow)

static bool fill(WsHeap *h);

/* Empties the window: the stream continues at row number `position`. */
static void
restart(WsHeap *h, uint64 position)
{
	h->first = position;
	h->rows = h->head = 0;
	h->batch = WS_FIRST_BATCH;
}

/* Has direct reads remember where blocks are, if that takes little of the memory. */
static void
remember_buffers(WsHeap *h, BlockNumber blocks, const WsStoreContext *context)
{
	Size		bytes = TYPEALIGN(4096, (Size) blocks * sizeof(int32));

	MemoryContext old;
	WsRegion   *region;

	h->remembers = ws_direct_remembers(h->direct);
	if (h->remembers || !WS_SHARES_BUFFERS || blocks == 0 ||
		bytes > Min(context->request->memory, h->memory) / REMEMBERED_SHARE)
		return;
	/* as long as there are direct reads */
	old = MemoryContextSwitchTo(GetMemoryChunkContext(h->direct));
	region = ws_region_create(context->account, bytes, bytes);
	MemoryContextSwitchTo(old);
	ws_region_commit(region, bytes);
	h->memory -= bytes;
	h->least -= bytes;
	ws_direct_remember(h->direct, (int32 *) region->base, blocks);
	h->remembers = true;
}

/*
 * Starts fetching rows of the table in the order in which `stream` delivers their TIDs.
 * The relation stays open and locked, and the snapshot that the TIDs were seen
 * with stays registered.  The window has `memory` bytes, and what the stream gives
 * back meanwhile, up to `most`.  Allocates as ws_heap_order_create does.
 */
WsHeap *
ws_heap_create(const WsStoreContext *context, const WsHeapTable *table, WsStream *stream, Size memory,
			   Size most)
{
	const WsRequest *request = context->request;
	Relation	rel = table->rel;
	WsHeap	   *h = palloc0(sizeof(WsHeap));
	BlockNumber blocks = table->blocks;
	double		row = (double) blocks * BLCKSZ / Max(rel->rd_rel->reltuples, 1);
	double		expected = 1.5 * stream->count * (row + POINTER + PLACE);

	h->request = request;
	h->rel = rel;
	h->table = table;
	h->direct = table->direct;
	h->source = ws_heap_order_create(context, stream, Min(most / POINTER, MAX_ROWS));
	h->region = ws_region_create(context->account, (Size) Min(expected, (double) most), Max(most, 64 * 1024));
	ws_region_use_huge_pages(h->region);
	h->memory = h->least = Min(memory, h->region->limit);
	if (table->direct != NULL)
		remember_buffers(h, table->blocks, context);
	h->single = palloc(BLCKSZ + MAXIMUM_ALIGNOF);
	h->average = rel->rd_rel->reltuples > 0 ?
		(double) blocks * BLCKSZ / rel->rd_rel->reltuples : 256;
	h->average = Max(64, Min(h->average, BLCKSZ));
	h->deviation = MOST_DEVIATION / 2;
	h->strategy = table->strategy;
	if (h->direct == NULL)
		h->announcer = ws_announcer_create(rel, h->source);
	h->team = palloc(sizeof(WsTeam));
	ws_team_init(h->team, h->source->helper, request->threads.read < 0);
	h->touching = palloc(WS_HEAP_TOUCHED * sizeof(WsDirectBlock));
	pg_atomic_init_u64(&h->used, 0);
	restart(h, 0);
	return h;
}

/*
 * Continues at row number `position`, which a stream that can be read from any place allows.  Who has read on
 * from one window to the next, and goes back to a mark, is going to read on: his window stays as large as it
 * is, so that what he marks next lies in it.
 */
void
ws_heap_seek(WsHeap *h, uint64 position)
{
	if (position < h->first || position > h->first + h->rows)
	{
		uint64		begin = ws_batch_begin(position, h->first);
		Size		batch = h->reads_on && begin > 0 ? Max(h->rows, WS_FIRST_BATCH) : WS_FIRST_BATCH;

		h->source->stream->ops->seek(h->source->stream, begin);
		restart(h, begin);
		h->batch = batch;
		/* a window may have fewer rows than lie before the one that is wanted */
		while (position > h->first + h->rows)
			if (!fill(h))
				elog(ERROR, "sorted row " UINT64_FORMAT " is missing", position);
		h->reads_on = false;
	}
	h->head = h->prefetched = (Size) (position - h->first);
}

/* Bytes of a part of an arena of about `room` bytes.  Any row fits. */
static inline Size
part_of(Size room)
{
	return MAXALIGN_DOWN(Max(2 * BLCKSZ, Min(room / 64, PART)));
}

/* Bytes of an arena that the sides leave of their last parts. */
static inline Size
spare(Size room)
{
	return Min(2 * part_of(room), room / 16);
}

/* Bytes of the arena that a row is going to take, with some more for windows whose rows are longer. */
static inline Size
row_bytes(const WsHeap *h)
{
	return (Size) (h->average * (1.005 + Min(2 * h->deviation, MOST_DEVIATION))) + 1;
}

/*
 * Rows of a window that shall have `rows` if memory allows it: for all that a row
 * takes, and for its pointers beside the window as it is, if they need more than
 * they have.
 */
static Size
affordable(const WsHeap *h, Size rows)
{
	Size		row = POINTER + PLACE + row_bytes(h);
	Size		beside = h->memory - Min(h->region->committed, h->memory);

	beside = Max(beside, h->source->region->committed);
	rows = Min(rows, Min((h->memory - spare(h->memory)) / row, beside / POINTER));
	return Max(1, Min(rows, h->source->region->limit / POINTER));
}

/*
 * Rows beyond which a window is not to grow.  In windows of w rows, all n rows of b blocks take n * b / w
 * visits; and a window takes new memory, which the system has to make.  With rows of s bytes both are least
 * together where w * w is VISIT_BYTES * n * b / s.  Blocks on a device are not to be visited so often, nor
 * those of rows that somebody goes back to.
 */
static Size
worthwhile(const WsHeap *h)
{
	double		visits = (double) h->source->stream->count * ws_heap_table_visited(h->table);
	double		most = sqrt(VISIT_BYTES * visits / (double) (POINTER + PLACE + row_bytes(h)));

	if ((double) affordable(h, ws_batch_after(h->batch, MAX_ROWS)) <= most || h->request->random_access ||
		h->direct == NULL || ws_direct_persistent(h->direct) || h->table->visits.untold ||
		ws_heap_table_absent(h->table) > 0)
		return MAX_ROWS;
	return Min(MAX_ROWS, Max((Size) most, TEAM_ROWS));
}

/* Divides the window's memory for h->rows rows. */
static void
lay_out(WsHeap *h)
{
	Size		order = h->source->region->committed;
	Size		wish = h->rows * (PLACE + row_bytes(h)) + spare(h->memory);
	Size		most = h->memory - Min(order, h->memory);
	Size		bytes = Max(Min(wish, most), h->rows * PLACE + MAXIMUM_ALIGNOF + WS_ROW_FRONT);

	/* shorter rows: what they leave is for more pointers */
	if (h->region->committed > bytes + bytes / 4)
	{
		ws_region_shrink(h->region, bytes);
		h->touched = Min(h->touched, h->region->committed);
	}
	/* pages that move do not lose what they have been touched for */
	if (ws_region_reserve(h->region, bytes))
		ws_region_commit(h->region, bytes);
	else						/* a smaller window; out of memory if not even the places find room */
		ws_region_commit(h->region, Max(Min(bytes, h->region->reserved),
										h->rows * PLACE + MAXIMUM_ALIGNOF + WS_ROW_FRONT));
	/* no page of it shall be a new one under the mapping locks */
	for (; h->touched < h->region->committed; h->touched += 4096)
	{
		if (h->touched % (16 << 20) < 4096)
			CHECK_FOR_INTERRUPTS();
		h->region->base[h->touched] = 0;
	}
	h->where = (uint32 *) h->region->base;
	h->arena = (char *) MAXALIGN(h->where + h->rows);
	/* a row begins before its first byte, and ends as much after its room */
	h->room = h->region->base + h->region->committed - h->arena - WS_ROW_FRONT;
	h->room = Min(h->room, (Size) WS_NO_ROOM * MAXIMUM_ALIGNOF);
	h->part = h->team_fetch ? part_of(h->room) : h->room;
	pg_atomic_write_u64(&h->used, 0);
	memset(h->sides, 0, sizeof(h->sides));
}

/* Learns from a window that has been fetched how much room rows take. */
static void
measure(WsHeap *h)
{
	double		average = Max((double) (h->sides[0].wanted + h->sides[1].wanted) / h->rows, 32);

	h->deviation = Max(fabs(average / h->average - 1), h->deviation * 0.75);
	h->average = average;
}

/* The next window.  False at the end. */
static bool
fill(WsHeap *h)
{
	WsStream   *stream = h->source->stream;
	Size		wanted;
	instr_time	begin;
	instr_time	end;

	h->reads_on = h->rows > 0;
	h->first += h->rows;
	h->head = h->prefetched = 0;
	h->announced = false;
	h->order = ws_heap_order_next(h->source, affordable(h, h->batch), &h->rows, &wanted);
	if (h->rows == 0)
	{
		ws_heap_stop(h);
		return false;
	}
	if (stream->ops->release != NULL && !h->request->random_access)
	{
		Size		released = stream->ops->release(stream);

		h->memory = Min(h->least + released, h->region->limit);
	}
	h->team_fetch = h->direct != NULL && h->source->helper != NULL && h->rows >= TEAM_ROWS;
	if (h->team_fetch)
		ws_team_call(h->team);
	lay_out(h);
	INSTR_TIME_SET_CURRENT(begin);
	ws_heap_fetch(h);
	ws_team_end(h->team);
	if (h->direct == NULL)
	{
		INSTR_TIME_SET_CURRENT(end);
		INSTR_TIME_SUBTRACT(end, begin);
		h->waited_us += INSTR_TIME_GET_MICROSEC(end);
	}
	measure(h);
	h->batch = ws_batch_after(h->batch, worthwhile(h));
	h->stats.window_rows = Max(h->stats.window_rows, h->rows);
	if (h->rows < wanted)
		ws_heap_stop(h);		/* that was all */
	/* rows that found no room are looked for by their pointers */
	else if (!h->sides[0].missing && !h->sides[1].missing)
		ws_heap_order_ahead(h->source, affordable(h, h->batch));
	return true;
}

/*
 * Takes the pointer of a row that has not been handed out: first those of the window, then the stream's.
 * False if there is none left.  No row can be got afterwards.
 */
bool
ws_heap_rest(WsHeap *h, uint64 *pointer)
{
	uint32		where;
	uint64		front;
	Size		wanted;

	if (h->head >= h->rows)
	{
		/* from here on there are pointers alone */
		if (h->where != NULL)
			ws_region_shrink(h->region, 0);
		h->where = NULL;
		h->order = ws_heap_order_next(h->source, REST_ROWS, &h->rows, &wanted);
		h->head = 0;
		if (h->rows == 0)
			return false;
	}
	if (h->where == NULL)
	{
		*pointer = ws_row_pointer(h->order[h->head++]);
		return true;
	}
	where = h->where[h->head++];
	if (unlikely((where & WS_NO_ROOM) != 0))
		*pointer = ws_row_pointer(h->order[where & ~WS_NO_ROOM]);
	else
	{
		memcpy(&front, h->arena + (Size) where * MAXIMUM_ALIGNOF + WS_ROW_FRONT, sizeof(front));
		*pointer = front >> 16;
	}
	return true;
}

/*
 * The blocks that will be read for all rows of the stream, if none is in memory: of a window's w rows, in a
 * table of b blocks, b * (1 - (1 - 1/b)^w) are in different ones.
 */
double
ws_heap_reads(const WsHeap *h, BlockNumber blocks)
{
	double		rows = (double) h->source->stream->count;
	double		most = (double) affordable(h, MAX_ROWS);
	double		window = Min(most, rows);

	if (rows < 1)
		return 0;
	return rows / window * blocks * (1 - exp(-window / Max(blocks, 1)));
}

/* Stops the helper.  NULL is fine. */
void
ws_heap_stop(WsHeap *h)
{
	if (h != NULL)
		ws_heap_order_stop(h->source);
}

/*
 * Asks the CPU for copies that are handed out soon, one for each row that is.  Unlike rows of a spool
 * (window.c) they are in huge pages, so that no prefetch waits for a page walk, and many at a time would
 * wait for one another.
 */
static inline void
prefetch_copies(WsHeap *h)
{
	Size		end = Min(h->head + AHEAD, h->rows);

	for (Size i = h->prefetched; i < end; i++)
	{
		const char *row = h->arena + (Size) h->where[i] * MAXIMUM_ALIGNOF;

		if (unlikely((h->where[i] & WS_NO_ROOM) != 0))
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
	if (unlikely(h->direct == NULL && !h->announced && h->head % AHEAD == 0))
		h->announced = ws_heap_announce(h);
	prefetch_copies(h);
	where = h->where[h->head++];
	if (likely((where & WS_NO_ROOM) == 0))
		row = h->arena + (Size) where * MAXIMUM_ALIGNOF;
	else
	{
		ws_heap_fetch_single(h, ws_row_pointer(h->order[where & ~WS_NO_ROOM]));
		row = h->single;
	}
	memcpy(&front, row + WS_ROW_FRONT, sizeof(front));
	tuple->t_data = (HeapTupleHeader) row;
	tuple->t_len = (uint32) (front & 0xFFFF);
	ItemPointerSet(&tuple->t_self, ws_pointer_block(front >> 16), ws_pointer_offset(front >> 16));
	tuple->t_tableOid = RelationGetRelid(h->rel);
	return true;
}
