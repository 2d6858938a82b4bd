/*-------------------------------------------------------------------------
 * store.h - the record store: where rows wait for their turn.
 *
 * A sort puts each row of its input into the store and gets a pointer for it, sorts the
 * pointers with the keys, and has the store hand the rows out in that order.
 *
 *	spool	a private copy of each row: in memory, then in a temporary file
 *	heap	the rows stay in their table
 *	keys	rows that are nothing but their keys, and are made of the entries
 *
 * A fake one is in test/unit.
 *-------------------------------------------------------------------------
 */
#ifndef WS_STORE_H
#define WS_STORE_H

#include "entry.h"

#include "executor/tuptable.h"
#include "file/file.h"
#include "key/key.h"
#include "merge/stream.h"
#include "store/request.h"
#include "utils/relcache.h"

typedef struct WsStore WsStore;

/* What a store has done, for EXPLAIN.  No pointers. */
typedef struct WsStoreStats
{
	bool		windows;		/* what follows is set */
	Size		window_rows;	/* most rows fetched at a time */
	int64		blocks_direct;	/* visits of blocks in the table's files */
	int64		blocks_buffered;	/* in shared_buffers */
	bool		persistent;		/* the files are on persistent memory */
	bool		ties_in_table;	/* what follows is set */
	bool		ties_spooled;	/* keys of later rows were spooled, as there were too many */
	int64		tie_rows;		/* rows read there for their keys */
	int64		spooled;		/* bytes of rows, or of keys, in the spool's file */
	bool		travels;		/* rows travel inside runs */
	bool		twice;			/* what `scan` read stayed on the disk until its end */
} WsStoreStats;

/* Microseconds of a page fault that waits for a device. */
#define WS_FAULT_US			80.0

/* What it costs that rows are not in memory. */
typedef struct WsStoreToll
{
	double		bytes;			/* to be read, if all are read once in the order in which they lie */
	double		reads;			/* if they are handed out */
	double		read_us;		/* microseconds of such a read */
	double		waited_us;		/* for reads so far, page faults not counted */
} WsStoreToll;

typedef struct WsStoreOps
{
	const char *name;			/* for EXPLAIN */
	bool		virtual_rows;	/* `get` wants a virtual slot, not one of heap tuples */

	/* keeps the row of `slot`, whose number in the input is `number`; returns its pointer */
	uint64		(*put) (WsStore *store, TupleTableSlot *slot, uint64 number);

	/*
	 * Memory is used up, by `entries` bytes of entries and by rows: moves these to a temporary file, by
	 * and by, through buffers of `alone` bytes, or of `helped` if a helper writes.  Returns how many that
	 * is.  NULL: there are no rows in memory.
	 */
	Size		(*spill) (WsStore *store, Size alone, Size helped, Size entries);

	/*
	 * All rows are to travel inside runs.  In this order: `depart` says whose rows they are, for those
	 * who write and read runs, and how many bytes a row has on average; `travel`, when those that there
	 * are have been written as runs, makes room for `arena` bytes of those that come, and for as many
	 * later; `turn`, when piece number `arena` of the IndexMap begins, puts them there.  Such an arena is
	 * full when `full` says so.  NULL: they cannot
	 */
	const WsRowSource *(*depart) (WsStore *store, Size *average);
	void		(*travel) (WsStore *store, Size arena);
	void		(*turn) (WsStore *store, int arena);

	/* the input has ended */
	void		(*end) (WsStore *store);

	/* begins to hand rows out in the stream's order, with `memory` bytes if it needs any */
	void		(*open) (WsStore *store, WsStream *stream, Size memory);

	/* puts the next row into `slot`, valid until the next call; false at the end */
	bool		(*get) (WsStore *store, TupleTableSlot *slot);

	/* continues at row number `position`; only if the request has random_access */
	void		(*seek) (WsStore *store, uint64 position);

	/*
	 * of rows that wait in a file or a table, the share that is not in memory, 0 to 1, and in `toll` what
	 * they cost; NULL, both: none ever wait there.  Then `scan`, instead of `get`, returns each row in the
	 * order in which they came, and NULL at the end, when the store has none any more.  A row is valid until
	 * the next call
	 */
	double		(*absent) (const WsStore *store);
	WsStoreToll (*toll) (const WsStore *store);
	TupleTableSlot *(*scan) (WsStore *store);

	/*
	 * instead of `scan`, where rows stay in their table: takes the pointer of a row that has not been handed
	 * out, of any; false when there are no more.  Only `stats` and `close` may follow
	 */
	bool		(*rest) (WsStore *store, uint64 *pointer);
	void		(*stats) (const WsStore *store, WsStoreStats *stats);	/* NULL: there are none */

	/* stops helpers, releases memory */
	void		(*close) (WsStore *store);
} WsStoreOps;

struct WsStore
{
	const WsStoreOps *ops;
	const WsKeyRows *keys;		/* how ties get at keys; NULL if the prefix is the whole key */
	Size		in_memory;		/* bytes of rows that are in memory */
	bool		full;			/* no more of them here, although memory may be left */
};

/* What a store is made of, and for. */
typedef struct WsStoreContext
{
	const WsRequest *request;
	const WsKeySpec *spec;
	TupleDesc	desc;			/* of the input's rows */
	Relation	rel;			/* whose rows stay in it, open and locked; else NULL */
	WsFileSet  *files;
	WsAccount  *account;
} WsStoreContext;

extern WsStore *ws_store_create(const WsStoreContext *context);

/* The kinds. */
extern WsStore *ws_spool_store(const WsStoreContext *context);
extern WsStore *ws_heap_store(const WsStoreContext *context);
extern WsStore *ws_keys_store(const WsStoreContext *context);

#endif							/* WS_STORE_H */
