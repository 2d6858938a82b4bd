/*-------------------------------------------------------------------------
 * exec.h - the sorter and the executor node around it.
 *-------------------------------------------------------------------------
 */
#ifndef WS_EXEC_H
#define WS_EXEC_H

#include "guc.h"

#include "merge/merge.h"
#include "nodes/extensible.h"
#include "store/heap.h"
#include "store/keys.h"
#include "store/store.h"

/* ---- sorter.c ---- */
typedef struct WsSortStats
{
	bool		merge_pass;		/* runs were written */
	uint64		entries;
	int			runs;
	int			passes;
	int64		memory;			/* bytes, peak */
	int64		disk;			/* bytes, peak */
	const char *store;			/* where the rows waited */
	bool		heap;			/* in their table */
	WsHeapStats window;			/* then */
} WsSortStats;

typedef struct WsSorter
{
	MemoryContext context;
	const WsKeySpec *spec;
	WsKeyFetch *fetch;
	WsSpool    *spool;
	WsKeyRows	rows;
	WsFormation *formation;
	Size		budget;			/* bytes */
	Size		memory_for_rows;	/* of them, for rows and entries without temporary files */
	Relation	rel;			/* whose rows are sorted, if they stay there, or NULL */
	bool		keys_only;		/* rows are nothing but their keys */
	bool		unspooled;		/* no row is put away */
	bool		on_disk;		/* temporary files are used */
	Size		entry_bytes;	/* of memory, for each entry */
	bool		random_access;
	/* the sorted result: exactly one of these */
	const WsEntry *array;
	WsRunReader *run;
	WsMerge    *merge;
	/* reading it */
	uint64		fetched;		/* entries the window has taken */
	uint64		position;		/* rows returned, net */
	bool		eof;
	uint64		mark_position;
	bool		mark_eof;
	HeapTupleData tuple;		/* what the slot points to */
	Size		peak_memory;
	WsWindow	window;
	bool		pure;			/* the window's source may be called by a helper */
	WsAhead    *ahead;			/* instead of the window, or NULL */
	WsHeap	   *heap;			/* the same, if the rows are in their table */
	WsKeys	   *keys;			/* the same, if rows are made of entries */
	WsHelper   *writer;			/* writes the spool, or NULL */
} WsSorter;

extern WsSorter *ws_sorter_create(TupleDesc desc, int ncols, const AttrNumber *attnos,
								  const Oid *sortops, const Oid *collations,
								  const bool *nulls_first, const bool *notnull,
								  int work_mem_kb, bool random_access, Relation rel,
								  bool keys_only);
extern void ws_sorter_put(WsSorter *sorter, TupleTableSlot *slot);
extern void ws_sorter_perform(WsSorter *sorter);
extern bool ws_sorter_get(WsSorter *sorter, bool forward, TupleTableSlot *slot);
extern void ws_sorter_rewind(WsSorter *sorter);
extern void ws_sorter_mark(WsSorter *sorter);
extern void ws_sorter_restore(WsSorter *sorter);
extern void ws_sorter_stats(const WsSorter *sorter, WsSortStats *stats);
extern void ws_sorter_destroy(WsSorter *sorter);

/* ---- prefetch.c ---- */
typedef struct WsPrefetch WsPrefetch;

extern WsPrefetch *ws_prefetch_create(PlanState *outer);
extern void ws_prefetch_row(WsPrefetch *prefetch);
extern uint64 ws_prefetch_count(const WsPrefetch *prefetch);

/* ---- input.c ---- */
typedef struct WsInput
{
	PlanState  *outer;
	ScanState  *scan;			/* the same, if it is a scan read by pages, or NULL */
	struct HeapScanDescData *page;	/* its descriptor, with a page to be read, or NULL */
	WsPrefetch *prefetch;		/* for hash joins, or NULL */
} WsInput;

extern bool ws_input_by_pages(const PlanState *node);
extern struct HeapScanDescData *ws_input_page(const ScanState *scan);
extern void ws_input_begin(WsInput *input, PlanState *outer);
extern TupleTableSlot *ws_input_next(WsInput *input);

/* ---- node.c ---- */
typedef struct WsSortState
{
	CustomScanState css;		/* must be first */
	int			ncols;
	AttrNumber *attnos;
	Oid		   *sortops;
	Oid		   *collations;
	bool	   *nulls_first;
	bool	   *notnull;
	bool		random_access;
	Relation	rel;			/* whose rows stay in it, or NULL */
	WsSorter   *sorter;			/* NULL until the first row is asked for */
	bool		keys_only;		/* rows are nothing but their keys */
	uint64		prefetched;		/* rows of the input whose matches in a hash join were */
	bool		has_stats;
	WsSortStats stats;
} WsSortState;

extern const CustomScanMethods ws_scan_methods;
extern void ws_register_node(void);

/* ---- explain.c ---- */
extern void ws_explain(CustomScanState *node, List *ancestors, ExplainState *es);

#endif							/* WS_EXEC_H */
