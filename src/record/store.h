/*-------------------------------------------------------------------------
 * store.h - the record store: where rows wait for their turn.
 *-------------------------------------------------------------------------
 */
#ifndef WS_STORE_H
#define WS_STORE_H

#include "wiscsort.h"

#include "access/htup_details.h"
#include "executor/tuptable.h"
#include "io/io.h"
#include "key/key.h"

/* ---- spool.c: a private copy of each row, in arrival order ---- */
typedef struct WsSpool
{
	TupleDesc	desc;			/* a copy, not counted */
	int			shift;			/* log2 of the pointer's unit, in bytes */
	uint64		nrows;
	WsRegion   *region;			/* all rows, or the write buffer */
	Size		buffered;		/* bytes used in region */
	Size		buffer_size;	/* bytes of the write buffer; 0 = all in memory */
	Size		peak_memory;	/* bytes, most since the spool has a file */
	int64		flushed;		/* bytes in the file; offset of the buffer */
	WsTempFile *file;			/* NULL while all rows are in memory */
	const char *map;			/* mapping of the file */
	int64		mapped;			/* bytes of it */
	AttrNumber	key_natts;		/* columns that keys are made of */
} WsSpool;

extern WsSpool *ws_spool_create(TupleDesc desc, AttrNumber key_natts, Size memory);
extern uint64 ws_spool_append(WsSpool *spool, TupleTableSlot *slot);
extern void ws_spool_spill(WsSpool *spool, Size buffer_size);
extern void ws_spool_make_readable(WsSpool *spool);
extern void ws_spool_finish(WsSpool *spool);
extern void ws_spool_tuple(WsSpool *spool, uint64 pointer, HeapTuple tuple);
extern WsKeyRows ws_spool_keys(WsSpool *spool);
extern void ws_spool_destroy(WsSpool *spool);

/* Bytes of a row before the place its pointer names. */
#define WS_ROW_HEADER		6

/*
 * Where the row at a pointer is; the caller knows that it can be read.  The
 * header decides on which side of the buffer's start it is: a row of nulls
 * has nothing behind it.
 */
static inline const char *
ws_spool_address(const WsSpool *spool, uint64 pointer)
{
	int64		offset = (int64) (pointer << spool->shift);

	return offset - WS_ROW_HEADER < spool->flushed ? spool->map + offset
		: spool->region->base + (offset - spool->flushed);
}

/*
 * Asks the CPU for the first cache lines of a row.  Always inline: gcc 12 takes
 * a function that only prefetches for one without effects, and drops the call.
 */
static pg_attribute_always_inline void
ws_spool_prefetch(const WsSpool *spool, uint64 pointer)
{
	const char *p = ws_spool_address(spool, pointer);

	__builtin_prefetch(p - 8);
	__builtin_prefetch(p + 56);
}

/* ---- window.c: the next rows in output order ---- */
#define WS_WINDOW_ROWS		512
#define WS_PREFETCH_GROUP	32

typedef Size (*WsNextPointers) (void *source, uint64 *pointers, Size max);

typedef struct WsWindow
{
	WsSpool    *spool;
	WsNextPointers next;
	void	   *source;
	Size		head;			/* next pointer to hand out */
	Size		filled;			/* pointers in the queue */
	Size		prefetched;		/* of them, already prefetched */
	Size		batch;			/* pointers to ask for next time */
	bool		drained;		/* the source has no more */
	uint64		queue[WS_WINDOW_ROWS];
} WsWindow;

extern void ws_window_init(WsWindow *window, WsSpool *spool, WsNextPointers next, void *source);
extern bool ws_window_next(WsWindow *window, HeapTuple tuple);
extern void ws_window_clear(WsWindow *window);

#endif							/* WS_STORE_H */
