/*-------------------------------------------------------------------------
 * exec.h - the sorter and the executor node around it.
 *-------------------------------------------------------------------------
 */
#ifndef WS_EXEC_H
#define WS_EXEC_H

#include "guc.h"

#include "exec/request.h"
#include "nodes/extensible.h"
#include "sort/again.h"

/* ---- input.c ---- */
typedef struct WsInput
{
	PlanState  *outer;
	ScanState  *scan;			/* the same, if it is a scan read by pages, or NULL */
	struct HeapScanDescData *page;	/* its descriptor, with a page to be read, or NULL */
	struct WsPrefetch *prefetch;	/* for hash joins, or NULL */
} WsInput;

extern void ws_input_begin(WsInput *input, PlanState *outer);
extern TupleTableSlot *ws_input_next(WsInput *input);

/* ---- node.c ---- */
typedef struct WsSortState
{
	CustomScanState css;		/* must be first */
	WsRequest  *request;
	ExprState  *limit;			/* of the LIMIT above; NULL: there is none that counts */
	ExprState  *offset;
	Relation	rel;			/* whose rows stay in it, or NULL */
	WsSort	   *sort;			/* NULL until the first row is asked for */
	uint64		prefetched;		/* rows of the input whose matches in a hash join were */
	bool		has_stats;
	const char *store;			/* its name */
	WsSortStats stats;
} WsSortState;

extern void ws_register_node(void);

/* ---- explain.c ---- */
extern void ws_explain(CustomScanState *node, List *ancestors, ExplainState *es);

#endif							/* WS_EXEC_H */
