/*-------------------------------------------------------------------------
 * sorter.h - one sort from first row to last.
 *-------------------------------------------------------------------------
 */
#ifndef WS_SORTER_H
#define WS_SORTER_H

#include "store/store.h"

#include "merge/merge.h"
#include "sort/budget.h"

/* What it did, for EXPLAIN.  No pointers. */
typedef struct WsSortStats
{
	WsRunStats	runs;
	uint64		wanted;			/* rows that were asked for; 0: all */
	uint64		passed;			/* rows that were passed over */
	WsStoreStats store;
	bool		few;			/* few rows were sorted, in memory */
	int64		memory;			/* bytes, peak */
	int64		disk;			/* bytes, peak */
	bool		again;			/* it began again */
	uint64		rows_before;	/* when so many rows had been handed out */
	Size		entry_bytes;	/* of memory, for each entry */
	Size		codes;			/* of memory, for codes of values */
	Size		row_bytes;		/* for each row, on average, if rows travel; else 0 */
	WsLearnt	learnt;
} WsSortStats;

typedef struct WsOrder WsOrder;

typedef struct WsSorter
{
	MemoryContext context;
	const WsRequest *request;
	WsBudget	budget;
	WsAccount	account;
	WsKeySpec  *spec;
	WsKeyFetch *fetch;
	WsFileSet  *files;
	WsStore    *store;
	WsFormation *formation;
	WsBound    *bound;			/* NULL: all rows are asked for */
	uint64		dropped;		/* rows of the input that are not asked for and did not come here */
	WsPasses   *passes;
	Size		entry_bytes;	/* of memory, for each entry */
	Size		keys_room;		/* of the map: below it there is nothing to do for a row but its entry */
	Size		learns;			/* rows whose entries have no prefix yet come to so many; 0: none */
	Size		for_codes;		/* bytes of the memory for codes of values */
	Size		codes;			/* the same, when they had been made */
	WsLearnt	learnt;
	WsOrder    *order;			/* rows may come in order; NULL: they do not */
	bool		on_disk;		/* temporary files are used */
	bool		travels;		/* rows travel inside runs */
	Size		row_bytes;		/* then: of a row, on average */
	uint32		turns;			/* pieces that have been turned to, then */
	/* reading */
	MemoryContext output;		/* of the final merge, or NULL */
	uint64		position;		/* rows returned, net */
	bool		eof;
	uint64		mark_position;
	bool		mark_eof;
} WsSorter;

extern WsSorter *ws_sorter_create(const WsRequest *request, TupleDesc desc, Relation rel);
extern void ws_sorter_put(WsSorter *sorter, TupleTableSlot *slot);
extern void ws_sorter_perform(WsSorter *sorter);
extern bool ws_sorter_get(WsSorter *sorter, bool forward, TupleTableSlot *slot);
extern void ws_sorter_rewind(WsSorter *sorter);
extern void ws_sorter_mark(WsSorter *sorter);
extern void ws_sorter_restore(WsSorter *sorter);
extern void ws_sorter_stats(const WsSorter *sorter, WsSortStats *stats);
extern void ws_sorter_end_output(WsSorter *sorter);
extern void ws_sorter_destroy(WsSorter *sorter);

/* ---- learn.c ---- */
extern void ws_sorter_begin_queue(WsSorter *sorter);
extern void ws_sorter_begin_learning(WsSorter *sorter);
extern void ws_sorter_learn(WsSorter *sorter, bool ended);
extern void ws_sorter_end_entries(WsSorter *sorter);

/* ---- order.c: rows that come in order ---- */
extern WsOrder *ws_order_create(const WsSorter *sorter);
extern bool ws_order_holds(WsSorter *sorter);
extern void ws_order_begin(WsSorter *sorter, bool holds);
extern bool ws_order_goes_on(WsSorter *sorter, const Datum *values, const bool *isnull, bool kept);
extern void ws_order_end(WsSorter *sorter);

#endif							/* WS_SORTER_H */
