/*-------------------------------------------------------------------------
 * store.h - the record store: where rows wait for their turn.
 *-------------------------------------------------------------------------
 */
#ifndef WS_STORE_H
#define WS_STORE_H

#include "entry.h"

#include "access/htup_details.h"
#include "executor/tuptable.h"
#include "file/file.h"
#include "key/key.h"

/* ---- spool.c: a private copy of each row, in arrival order ---- */
#define WS_SPOOL_BUFFERS	4	/* with a helper that writes them */

/* What storing a value needs to know of its column. */
typedef struct WsSpoolColumn
{
	int16		length;			/* attlen: bytes, or -1 for varlena */
	uint8		align;			/* bytes */
	bool		byval;
	bool		packable;		/* may have a short varlena header */
} WsSpoolColumn;

typedef struct WsSpool
{
	TupleDesc	desc;			/* a copy, not counted */
	WsSpoolColumn *columns;
	int			shift;			/* log2 of the pointer's unit, in bytes */
	uint64		nrows;
	WsRegion   *region;			/* all rows; later their backlog and the write buffers */
	char	   *buffer;			/* where rows go: in region */
	Size		room;			/* bytes usable from there */
	Size		buffered;		/* of them, used */
	Size		buffer_size;	/* when to write them; 0 = all in memory */
	WsHelper   *writer;			/* writes buffers, or NULL */
	WsWrite		writes[WS_SPOOL_BUFFERS];	/* by buffer */
	int			current;		/* number of the buffer */
	Size		origin;			/* of the buffers in region, behind the backlog */
	Size		backlog;		/* bytes that were in memory when there came to be a file */
	Size		submitted;		/* of them, given to the writer */
	int			pieces;			/* of them, to be given to it with each buffer */
	int			nlate;			/* pieces given so far */
	WsWrite		late[WS_SPOOL_BUFFERS];	/* the last of these */
	Size		peak_memory;	/* bytes of buffers, most since the spool has a file */
	int64		flushed;		/* bytes in the file, or on their way; offset of the buffer */
	int64		prepared;		/* bytes of the file up to which pages are ready */
	int			prepare_pause;	/* waits to come in which none are got */
	WsTempFile *file;			/* NULL while all rows are in memory */
	const char *map;			/* mapping of the file */
	int64		mapped;			/* bytes of it */
	AttrNumber	key_natts;		/* columns that keys are made of */
} WsSpool;

extern WsSpool *ws_spool_create(TupleDesc desc, AttrNumber key_natts, Size memory);
extern uint64 ws_spool_append(WsSpool *spool, TupleTableSlot *slot);
extern void ws_spool_spill(WsSpool *spool, Size memory, WsHelper *writer, int pieces);
extern Size ws_spool_memory(const WsSpool *spool);
extern void ws_spool_make_readable(WsSpool *spool);
extern void ws_spool_finish(WsSpool *spool);
extern void ws_spool_destroy(WsSpool *spool);

/* ---- spoolread.c ---- */
extern void ws_spool_tuple(WsSpool *spool, uint64 pointer, HeapTuple tuple);
extern Size ws_spool_copy_rows(const WsSpool *spool, Size n, uint64 *where,
							   uint32 *length, char *arena, Size room,
							   bool (*enough) (void *arg), void *arg);
extern WsKeyRows ws_spool_keys(WsSpool *spool);

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
		: spool->buffer + (offset - spool->flushed);
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
	__builtin_prefetch(p + 120);
}

/* ---- window.c: the next rows in output order ---- */
#define WS_WINDOW_ROWS		512
#define WS_PREFETCH_GROUP	32

/* Puts up to `max` pointers; returns how many, 0 at the end. */
typedef Size (*WsNextPointers) (void *source, uint64 *pointers, Size max);

/*
 * A source of pointers for readers that have a helper.  `share`, asked once
 * there is one, says whether the helper may call `next`; NULL is no.  If so,
 * `settle` is called in the backend before what came is used: it raises what
 * the helper met.  At most WS_WINDOW_ROWS are asked for at a time.  `give_back`,
 * called while `next` is not, frees memory of what has been taken, and returns how many
 * bytes that is so far; NULL is none.
 */
typedef struct WsPointers
{
	WsNextPointers next;
	bool		(*share) (void *source);
	void		(*settle) (void *source);
	Size		(*give_back) (void *source);
	void	   *source;
} WsPointers;

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

/* ---- ahead.c: the window filled by a helper ---- */
#define WS_AHEAD_BATCHES	3

typedef struct WsAhead WsAhead;

/* Rows in output order, the first of them copied out of the spool. */
typedef struct WsAheadBatch
{
	WsChore		take;			/* must be first: asks for pointers */
	WsChore		copy;			/* copies rows, until the backend needs the batch */
	pg_atomic_uint32 owner;		/* which of the two has it */
	WsAhead    *ahead;
	Size		wanted;			/* pointers to ask for */
	Size		npointers;		/* asked for and there */
	Size		ncopied;
	bool		fault;			/* a page could not be read */
	uint64	   *where;			/* address of a row copied, pointer of another */
	uint32	   *length;
	char	   *arena;
} WsAheadBatch;

struct WsAhead
{
	WsSpool    *spool;
	WsHelper   *helper;
	WsPointers	pointers;
	bool		pure;			/* the helper may call next */
	Size		max_rows;		/* of a batch */
	Size		arena_bytes;	/* of a batch */
	int			current;
	Size		head;			/* next row of the current batch */
	Size		prefetched;		/* rows of it prefetched or copied */
	WsAheadBatch batches[WS_AHEAD_BATCHES];
};

extern WsAhead *ws_ahead_create(WsSpool *spool, const WsPointers *pointers, Size memory);
extern bool ws_ahead_next(WsAhead *ahead, HeapTuple tuple);
extern Size ws_ahead_memory(const WsAhead *ahead);
extern void ws_ahead_stop(WsAhead *ahead);

#endif							/* WS_STORE_H */
