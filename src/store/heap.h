/*-------------------------------------------------------------------------
 * heap.h - the table itself as record store.
 *-------------------------------------------------------------------------
 */
#ifndef WS_HEAP_H
#define WS_HEAP_H

#include "store/batch.h"
#include "store/row.h"
#include "store/store.h"

#include "access/htup_details.h"
#include "storage/block.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"

/* ---- heap_direct.c: blocks from mapped files and shared buffers ---- */
typedef struct WsDirect WsDirect;

#define WS_DIRECT_BLOCKS	32	/* locked together at most */
#define WS_HEAP_TOUCHED		256 /* touched together */

typedef struct WsDirectBlock
{
	BlockNumber block;
	const char *page;			/* or NULL */
	const char *near;			/* to be touched before it is locked, or NULL: where the page is, or was */
	int			buffer;			/* number of the shared buffer it is in, or -1 */
	Size		from;			/* the caller's entries in it */
	Size		end;
} WsDirectBlock;

extern WsDirect *ws_direct_create(Relation rel);
extern bool ws_direct_persistent(const WsDirect *direct);
extern void ws_direct_remember(WsDirect *d, int32 *buffers, BlockNumber blocks);
extern bool ws_direct_remembers(const WsDirect *d);
extern void ws_direct_find(WsDirect *d, WsDirectBlock *blocks, int n, bool files);
extern void ws_direct_recall(WsDirect *d, WsDirectBlock *blocks, int n, bool files);
extern void ws_direct_touch(const char *page, OffsetNumber offset);
extern void ws_direct_prefetch_row(const char *page, OffsetNumber offset);
extern void ws_direct_touch_row(const char *page, OffsetNumber offset);
extern int	ws_direct_lock(WsDirect *d, WsDirectBlock *blocks, int n);
extern void ws_direct_unlock(WsDirect *d, const WsDirectBlock *blocks, int n);
extern bool ws_direct_in_memory(WsDirect *d, BlockNumber block);
extern const char *ws_direct_page(WsDirect *d, BlockNumber block);
extern bool ws_direct_is_shared(WsDirect *d, BlockNumber block);
extern void ws_direct_announce(const char *page);
extern void ws_direct_failed(const WsDirect *d) __attribute__((noreturn));

/* ---- heap_announce.c: the system told of blocks to come ---- */
typedef struct WsAnnouncer WsAnnouncer;
struct WsHeapOrder;

#define WS_ANNOUNCED	16		/* blocks at a time */

extern WsAnnouncer *ws_announcer_create(Relation rel, struct WsHeapOrder *order);
extern void ws_announce(WsAnnouncer *announcer, const BlockNumber *blocks, int n);

/* ---- heap_buffered.c: blocks through the buffer manager ---- */
typedef BlockNumber (*WsNextBlock) (void *arg);
typedef void (*WsUseBuffer) (void *arg, Buffer buffer);

extern void ws_read_blocks(Relation rel, BufferAccessStrategy strategy, WsAnnouncer *announcer,
						   WsNextBlock next, WsUseBuffer use, void *arg);
extern void ws_announce_blocks(WsAnnouncer *announcer, WsNextBlock next, void *arg);

/* ---- heap_table.c: a table whose rows are fetched ---- */

#define WS_VISITS			64
#define WS_LATE_VISITS		1024	/* more than a scan has buffers of its own */

/* The blocks that the rows came from: some of all, some of those of late. */
typedef struct WsVisits
{
	BlockNumber last;
	uint64		number;			/* of visits: of rows that came one after the other */
	uint64		step;			/* each such is noted */
	int			noted;
	BlockNumber spread[WS_VISITS];	/* of all, as far from one another */
	BlockNumber late[WS_LATE_VISITS];	/* the last ones, as a ring */
	bool		untold;			/* whether blocks are in memory cannot be told */
} WsVisits;

typedef struct WsHeapTable
{
	Relation	rel;
	BlockNumber blocks;			/* when this was made */
	BufferAccessStrategy strategy;	/* or NULL */
	WsDirect   *direct;			/* or NULL */
	WsVisits	visits;
} WsHeapTable;

extern void ws_heap_table_note(WsHeapTable *table, BlockNumber block);

/* A row has come from `block`. */
static inline void
ws_heap_table_visit(WsHeapTable *table, BlockNumber block)
{
	if (block != table->visits.last)
		ws_heap_table_note(table, block);
}

extern void ws_heap_table_init(WsHeapTable *table, Relation rel, const WsRequest *request);
extern double ws_heap_table_absent(const WsHeapTable *table);
extern BlockNumber ws_heap_table_visited(const WsHeapTable *table);
extern void ws_heap_count_visits(Relation rel, WsStoreStats *stats, int direct, int shared);
extern void ws_heap_bad_pointer(Relation rel, uint64 pointer) __attribute__((noreturn));

/* ---- heap_keys.c: keys of ties, read from the table ---- */
typedef struct WsHeapKeys WsHeapKeys;

/* Of the pointer of a row whose keys have been spooled, although those of others come from the table. */
#define WS_TIE_SPOOLED		(UINT64CONST(1) << (WS_POINTER_BITS - 1))

extern WsHeapKeys *ws_heap_keys_create(const WsStoreContext *context, WsHeapTable *table);
extern const WsKeyRows *ws_heap_keys_rows(const WsHeapKeys *keys);
extern bool ws_heap_keys_too_many(const WsHeapKeys *keys, uint64 rows);
extern void ws_heap_keys_spooled(WsHeapKeys *keys, const WsKeyRows *spooled);
extern void ws_heap_keys_stats(const WsHeapKeys *keys, WsStoreStats *stats);

/* ---- heap_order.c: the pointers of the next window, in block order ---- */

/* Of a row in a window: block, line pointer and position in the output, in 32, 11 and 21 bits. */
typedef uint64 WsHeapRow;

#define WS_OFFSET_BITS		11
#define WS_POSITION_BITS	21
#define WS_WINDOW_ROWS		((Size) 1 << WS_POSITION_BITS)	/* at most */
StaticAssertDecl(MaxHeapTuplesPerPage < (1 << WS_OFFSET_BITS) - 1, "line pointers have more bits");

/* A line pointer that no row can have remains one. */
static inline WsHeapRow
ws_heap_row(uint64 pointer, Size position)
{
	uint64		offset = Min(pointer & 0xFFFF, (1 << WS_OFFSET_BITS) - 1);

	return ((pointer >> 16) << WS_OFFSET_BITS | offset) << WS_POSITION_BITS | position;
}

static inline Size
ws_row_position(WsHeapRow row)
{
	return row & (WS_WINDOW_ROWS - 1);
}

static inline BlockNumber
ws_row_block(WsHeapRow row)
{
	return (BlockNumber) (row >> (WS_OFFSET_BITS + WS_POSITION_BITS));
}

static inline OffsetNumber
ws_row_offset(WsHeapRow row)
{
	return (OffsetNumber) (row >> WS_POSITION_BITS & ((1 << WS_OFFSET_BITS) - 1));
}

/* Its pointer. */
static inline uint64
ws_row_pointer(WsHeapRow row)
{
	return (uint64) ws_row_block(row) << 16 | ws_row_offset(row);
}

typedef struct WsHeapOrder
{
	WsChore		chore;			/* must be first */
	WsStream   *stream;
	bool		vectorised;
	WsHelper   *helper;			/* or NULL */
	bool		started;		/* the next pointers are being taken */
	WsRegion   *region;
	WsHeapRow  *entries;
	Size		wanted;
	Size		rows;
} WsHeapOrder;

extern WsHeapOrder *ws_heap_order_create(const WsStoreContext *context, WsStream *stream, Size max_rows);
extern const WsHeapRow *ws_heap_order_next(WsHeapOrder *o, Size rows, Size *n, Size *wanted);
extern void ws_heap_order_ahead(WsHeapOrder *o, Size rows);
extern const WsHeapRow *ws_heap_order_look(const WsHeapOrder *o, Size *n);
extern void ws_heap_order_stop(WsHeapOrder *o);

/* ---- heap.c: the next rows in output order, fetched in block order ---- */

/* The pointer of a row of a table: its TID as 48 bits, in physical order. */
static inline uint64
ws_tid_pointer(const ItemPointerData *tid)
{
	return (uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16 |
		ItemPointerGetOffsetNumberNoCheck(tid);
}

static inline BlockNumber
ws_pointer_block(uint64 pointer)
{
	return (BlockNumber) (pointer >> 16);
}

static inline OffsetNumber
ws_pointer_offset(uint64 pointer)
{
	return (OffsetNumber) (pointer & 0xFFFF);
}

/*
 * The row at a line pointer of a page, and its length; NULL if there is none.
 */
static inline const char *
ws_heap_find_row(const char *page, OffsetNumber offset, Size *length)
{
	const PageHeaderData *header = (const PageHeaderData *) page;
	ItemIdData	lp;

	/* the number of line pointers, from a page header that may be damaged */
	if (offset == 0 || offset > MaxHeapTuplesPerPage ||
		SizeOfPageHeaderData + offset * sizeof(ItemIdData) > header->pd_lower)
		return NULL;
	lp = header->pd_linp[offset - 1];
	if (lp.lp_flags != LP_NORMAL || lp.lp_len < SizeofHeapTupleHeader ||
		lp.lp_off + lp.lp_len > BLCKSZ)
		return NULL;
	*length = lp.lp_len;
	return page + lp.lp_off;
}

/* Where one side of the team puts rows, and what it met.  No two sides share a cache line. */
typedef struct WsHeapSide
{
	Size		used;			/* offset in the arena: the next row's place */
	Size		end;			/* of the part it may use */
	Size		wanted;			/* bytes, all its rows would have taken */
	bool		missing;		/* some found no room */
	uint64		bad;			/* a pointer that is not a row's, or 0 */
	char		apart[2 * PG_CACHE_LINE_SIZE];
} WsHeapSide;

typedef struct WsHeap
{
	const WsRequest *request;
	Relation	rel;
	const WsHeapTable *table;
	WsHeapOrder *source;
	Size		memory;			/* bytes, for all of the window */
	Size		least;			/* of them, from the beginning */
	WsRegion   *region;
	BufferAccessStrategy strategy;
	WsDirect   *direct;			/* or NULL: then there is an announcer */
	WsAnnouncer *announcer;
	bool		resident;		/* most blocks have been in shared_buffers lately */
	bool		remembers;		/* in which buffer each block was at its last visit */
	/* the window */
	uint64		first;			/* number of its first row in the output */
	Size		rows;			/* in it */
	Size		head;			/* the next to hand out */
	Size		prefetched;		/* of the copies, the CPU has been asked for */
	bool		announced;		/* the system knows the first blocks of the window to come */
	Size		batch;			/* rows to ask for next time */
	bool		reads_on;		/* the window follows another, whose rows were handed out */
	const WsHeapRow *order;		/* by row, in block order; until ws_heap_order_ahead */
	uint32	   *where;			/* by position: place in the arena */
	char	   *arena;
	Size		room;			/* bytes */
	Size		part;			/* bytes that a side takes of it at a time */
	char		apart[PG_CACHE_LINE_SIZE];	/* what follows changes all the time */
	pg_atomic_uint64 used;		/* bytes taken */
	WsHeapSide	sides[2];
	WsTeam	   *team;			/* fetches blocks */
	bool		team_fetch;		/* both fetch this window, as far as processors allow */
	WsDirectBlock *touching;	/* WS_HEAP_TOUCHED blocks, touched together */
	int			groups;			/* lock groups, of WS_DIRECT_BLOCKS of these at most */
	int			in_group[WS_HEAP_TOUCHED / WS_DIRECT_BLOCKS];	/* blocks of each */
	WsDirectBlock *blocks;		/* one, whose blocks are fetched together */
	int			nblocks;
	Size		touched;		/* bytes of the region that have their pages */
	uint64		waited_us;		/* microseconds, for windows through the buffer manager */
	double		average;		/* bytes of a row in the arena */
	double		deviation;		/* of one window's average from that before, lately */
	char	   *single;			/* a row that found no room there */
	WsStoreStats stats;
} WsHeap;

/* ---- heap_fetch.c ---- */
#define WS_NO_ROOM			((uint32) 1 << 31)	/* of `where`: the rest is an entry's number */
/* In a row in the arena: its pointer, and its length below that. */
#define WS_ROW_FRONT		(UNSTORED - sizeof(uint64))

extern void ws_heap_fetch(WsHeap *h);
extern bool ws_heap_announce(WsHeap *h);
extern void ws_heap_fetch_single(WsHeap *h, uint64 pointer);

/* ---- heap.c ---- */
extern WsHeap *ws_heap_create(const WsStoreContext *context, const WsHeapTable *table, WsStream *stream,
							  Size memory, Size most);
extern void ws_heap_stop(WsHeap *heap);
extern bool ws_heap_next(WsHeap *heap, HeapTuple tuple);
extern bool ws_heap_rest(WsHeap *heap, uint64 *pointer);
extern double ws_heap_reads(const WsHeap *heap, BlockNumber blocks);
extern void ws_heap_seek(WsHeap *heap, uint64 position);

#endif							/* WS_HEAP_H */
