/*-------------------------------------------------------------------------
 * spool.h - the spool, and how its rows are handed out.
 *-------------------------------------------------------------------------
 */
#ifndef WS_SPOOL_H
#define WS_SPOOL_H

#include "entry.h"

#include "access/htup_details.h"
#include "file/reader.h"
#include "store/batch.h"
#include "store/store.h"

/* ---- spool.c: a private copy of each row, in arrival order ---- */
#define WS_SPOOL_BUFFERS	4	/* with a helper that writes them */
#define WS_SPOOL_HEADER		24	/* bytes of the file before its first row */

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
	WsStore		store;			/* must be first */
	const WsRequest *request;
	WsKeyRows	rows;			/* how ties read it */
	TupleDesc	desc;			/* a copy, not counted */
	WsSpoolColumn *columns;
	int			shift;			/* log2 of the pointer's unit, in bytes */
	uint64		nrows;
	WsAccount  *account;
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
	int			nbacklog;		/* pieces given so far */
	WsWrite		backlog_writes[WS_SPOOL_BUFFERS];	/* the last of these */
	int64		flushed;		/* bytes in the file, or on their way; offset of the buffer */
	int64		departed;		/* bytes that it had when it was dropped */
	int64		prepared;		/* bytes of the file up to which pages are ready */
	int			prepare_pause;	/* waits to come in which none are got */
	WsFileSet  *files;
	int			file;			/* -1 while all rows are in memory */
	WsReader   *reader;			/* of the file, mapped */
	const char *map;			/* its bytes */
	int64		mapped;			/* bytes of it */
	bool		tells;			/* the system knows which of them are in memory */
	AttrNumber	key_natts;		/* columns that keys are made of */
	int64		start;			/* what pointers of rows in the buffer begin at: flushed, or 0 */
	/* once rows travel (travel.c) */
	bool		travels;
	WsRowSource source;
	WsPlaces	places;
	WsRegion   *arenas[WS_ARENAS];	/* instead of region */
	int			arena;			/* the one that rows are put into now */
	Size		arena_bytes;	/* of rows, beside a large one */
	uint64		travelled;		/* bytes of rows that departed, or were put into one before this */
	struct WsSpoolOutput *output;	/* NULL until rows are handed out */
	struct WsSpoolScan *scan;	/* NULL until they are all read again */
} WsSpool;

extern WsSpool *ws_spool_create(const WsStoreContext *context);
extern uint64 ws_spool_append(WsSpool *spool, TupleTableSlot *slot);
extern Size ws_spool_spill(WsSpool *spool, Size alone, Size helped, Size entries);
extern void ws_spool_make_readable(WsSpool *spool);
extern void ws_spool_finish(WsSpool *spool);
extern int64 ws_spool_filed(const WsSpool *spool);
extern void ws_spool_destroy(WsSpool *spool);

/* ---- spoolread.c ---- */
extern void ws_spool_tuple(WsSpool *spool, uint64 pointer, HeapTuple tuple);
extern Size ws_spool_copy_rows(const WsSpool *spool, Size n, uint64 *where,
							   uint32 *length, char *arena, Size room,
							   bool (*enough) (void *arg), void *arg);
extern WsKeyRows ws_spool_keys(WsSpool *spool);
extern void ws_spool_damaged(const WsSpool *spool, const char *what, int64 offset) __attribute__((noreturn));

extern char *ws_spool_locate(const WsSpool *spool, uint64 pointer, uint32 *tuple_length);

/* ---- travel.c: rows that travel inside runs ---- */
extern const WsRowSource *ws_spool_depart(WsSpool *spool, Size *average);
extern void ws_spool_travel(WsSpool *spool, Size arena_bytes);
extern void ws_spool_turn(WsSpool *spool, int arena);
extern void ws_spool_drop_file(WsSpool *spool);
extern void ws_spool_arrive(WsSpool *spool);

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
	int64		offset;

	if (unlikely((pointer & WS_TRAVELS) != 0))
		return spool->places.base[ws_travel_place(pointer)] +
			((pointer & (WS_PLACE_OFFSETS - 1)) << spool->shift);
	offset = (int64) (pointer << spool->shift);
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
#define WS_PREFETCH_GROUP	32

typedef struct WsWindow
{
	WsSpool    *spool;
	WsStream   *stream;
	uint64		first;			/* number of the first row in the queue */
	Size		head;			/* next pointer to hand out */
	Size		filled;			/* pointers in the queue */
	Size		prefetched;		/* of them, already prefetched */
	Size		batch;			/* pointers to ask for next time */
	bool		drained;		/* the stream has no more */
	bool		back;			/* it was filled for who goes back */
	uint64		queue[WS_TAKE_ROWS];
} WsWindow;

extern void ws_window_init(WsWindow *window, WsSpool *spool, WsStream *stream);
extern bool ws_window_next(WsWindow *window, HeapTuple tuple);
extern void ws_window_seek(WsWindow *window, uint64 position);

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
	const char *fault;			/* address of a page that could not be read, or NULL */
	uint64	   *where;			/* address of a row copied, pointer of another */
	uint32	   *length;
	char	   *arena;
} WsAheadBatch;

struct WsAhead
{
	WsSpool    *spool;
	WsHelper   *helper;			/* NULL once it has nothing more to give */
	WsStream   *stream;
	Size		max_rows;		/* of a batch */
	Size		arena_bytes;	/* of a batch */
	char		apart[PG_CACHE_LINE_SIZE];	/* what follows changes with every row */
	int			current;
	Size		head;			/* next row of the current batch */
	Size		prefetched;		/* rows of it prefetched or copied */
	char		apart_too[PG_CACHE_LINE_SIZE];
	WsAheadBatch batches[WS_AHEAD_BATCHES];
};

extern WsAhead *ws_ahead_create(WsSpool *spool, WsStream *stream, Size memory);
extern bool ws_ahead_next(WsAhead *ahead, HeapTuple tuple);
extern void ws_ahead_stop(WsAhead *ahead);
extern void ws_ahead_end(WsAhead *ahead);

/* ---- carry.c: rows that travelled, on their way out ---- */
typedef struct WsCarry WsCarry;

extern WsCarry *ws_carry_create(WsSpool *spool, WsStream *stream, Size memory);
extern bool ws_carry_next(WsCarry *carry, HeapTuple tuple);
extern void ws_carry_seek(WsCarry *carry, uint64 position);
extern void ws_carry_stop(WsCarry *carry);

/*
 * ---- spoolstore.c: the spool as a store ----
 *
 * Written with every row that is handed out: not in one cache line with what the helper reads for every
 * row that it copies (10 M rows of 16 bytes: 2.9 s instead of 2.2 s).
 */
typedef struct WsSpoolOutput
{
	char		apart[PG_CACHE_LINE_SIZE];
	WsAhead    *ahead;			/* instead of the window, or NULL */
	WsCarry    *carry;			/* the same, once rows travel */
	HeapTupleData tuple;		/* what the slot points to */
	WsWindow	window;
} WsSpoolOutput;

/* ---- spoolscan.c: all rows once more, in the order in which they came ---- */
typedef struct WsSpoolScan
{
	TupleTableSlot *slot;
	HeapTupleData tuple;		/* what the slot points to */
	uint64		rows;			/* handed out so far */
	int64		end;			/* of the last one, an offset */
	int64		asked;			/* up to here the system has been asked to read */
	int64		punched;		/* up to here the file is a hole */
	bool		punches;		/* the file system knows holes */
} WsSpoolScan;

extern bool ws_spool_tells(const WsSpool *spool);
extern double ws_spool_absent(const WsSpool *spool);
extern TupleTableSlot *ws_spool_scan(WsSpool *spool);

#endif							/* WS_SPOOL_H */
