/*-------------------------------------------------------------------------
 * exec.h - the sorter and the executor node around it.
 *-------------------------------------------------------------------------
 */
#ifndef WS_EXEC_H
#define WS_EXEC_H

#include "guc.h"

#include "exec/request.h"
#include "key/learning.h"
#include "nodes/extensible.h"
#include "sort/again.h"
#include "stat/stat.h"

/* ---- input.c ---- */
typedef struct WsInput
{
	PlanState  *outer;
	ScanState  *scan;			/* the same, if it is a scan read by pages, or NULL */
	struct HeapScanDescData *page;	/* its descriptor, with a page to be read, or NULL */
	AttrNumber *columns;		/* that the scan's projection takes, or NULL; 0 and less: the TID */
	AttrNumber	last_column;	/* the greatest of them */
	struct WsPrefetch *prefetch;	/* for hash joins, or NULL */
} WsInput;

extern bool ws_input_by_rows;	/* every row comes through its node, where advise() measures it */

extern void ws_input_begin(WsInput *input, PlanState *outer);
extern TupleTableSlot *ws_input_next(WsInput *input);

/* ---- share.c, foresee.c: for wiscsort.progress; whether a scan sweeps the page cache ---- */
extern double ws_share_read(PlanState *node, int64 rows);
extern double ws_share_each(PlanState *node);
extern double ws_share_done(PlanState *node, double share_read, int *batch, int *batches);
extern double ws_bytes_scanned(PlanState *node);
struct WsSortState;
extern double ws_foresee_output(const struct WsSortState *state);

/* ---- frequent.c: for key/foretold.c ---- */
extern bool ws_frequent_values(const void *who, int column, WsFrequent *found);

/* ---- top.c: rows in memory ---- */
typedef struct WsTop WsTop;

extern WsTop *ws_top_create(TupleDesc desc, const AttrNumber *attnos, const WsRequest *request);
extern void ws_top_put(WsTop *top, TupleTableSlot *slot);
extern bool ws_top_is_reversed(const WsTop *top, int64 least);
extern void ws_top_sort(WsTop *top);
extern void ws_top_bound(WsTop *top, int64 bound);
extern bool ws_top_is_bounded(const WsTop *top);
extern MemoryContext ws_top_context(const WsTop *top);
extern Size ws_top_bytes(const WsTop *top);
extern Size ws_top_peak(const WsTop *top);
extern int64 ws_top_rows(const WsTop *top);
extern HeapTuple ws_top_row(const WsTop *top, int64 number);
extern void ws_top_end(WsTop *top);

/* ---- few.c: few rows ---- */
typedef struct WsFew WsFew;

extern WsFew *ws_few_create(PlanState *input, Relation rel, const WsRequest *request);
extern bool ws_few_read(WsFew *few, PlanState *input, WsTrack *track);
extern void ws_few_bound(WsFew *few);
extern MemoryContext ws_few_context(const WsFew *few);
extern bool ws_few_put(WsFew *few, TupleTableSlot *slot);
extern int64 ws_few_rows(const WsFew *few);
extern int64 ws_few_bytes(const WsFew *few);
extern int64 ws_few_peak(const WsFew *few);
extern TupleTableSlot *ws_few_row(WsFew *few, int64 number);
extern void ws_few_sort(WsFew *few);
extern bool ws_few_sorted(const WsFew *few);
extern bool ws_few_bounded(const WsFew *few);
extern bool ws_few_get(WsFew *few, bool forward, TupleTableSlot *slot);
extern int64 ws_few_position(const WsFew *few);
extern void ws_few_mark(WsFew *few);
extern void ws_few_restore(WsFew *few);
extern void ws_few_rewind(WsFew *few);
extern void ws_few_end(WsFew *few);

/* ---- node.c ---- */
typedef struct WsSortState
{
	CustomScanState css;		/* must be first */
	WsRequest  *request;
	WsForetold	foretold;		/* of the request */
	ExprState  *limit;			/* of the LIMIT above; NULL: there is none that counts */
	ExprState  *offset;
	Relation	rel;			/* whose rows stay in it, or NULL */
	WsSort	   *sort;			/* NULL until the first row is asked for, or if these are few */
	WsFew	   *few;			/* first rows of the input, or all; NULL: not kept */
	bool		foreseen;		/* how long what comes behind the input is going to take */
	WsTrack    *track;			/* NULL until then, too */
	List	   *keys;			/* as texts, for a line of the log; NIL: not known yet */
	WsFigures  *figures;		/* of the sort, as others may see them */
	uint64		prefetched;		/* rows of the input whose matches in a hash join were */
	bool		has_stats;
	const char *store;			/* its name */
	WsSortStats stats;
	struct WsWorkerSorts *workers;	/* of a parallel query that is instrumented, or NULL */
} WsSortState;

extern void ws_register_node(void);

/* ---- explain.c ---- */
extern List *ws_sort_key_names(const Plan *input, int ncols, const AttrNumber *attnos, const Oid *sortops,
							   const Oid *collations, const bool *nulls_first, List *context, bool prefix);
extern List *ws_sort_keys(WsSortState *state, List *context, bool prefix);
extern const char *ws_store_choice(const WsSortState *state);
extern void ws_explain(CustomScanState *node, List *ancestors, ExplainState *es);
extern void ws_explain_by(CustomScanState *node, List *keys, ExplainState *es);

/* ---- gathered.c: figures of workers, for EXPLAIN ---- */
typedef struct WsWorkerSorts WsWorkerSorts;

extern void ws_install_gathered_hook(void);
extern void ws_gathered_begin(WsSortState *state, EState *estate, int eflags);
extern Size ws_gathered_estimate(CustomScanState *node, struct ParallelContext *pcxt);
extern void ws_gathered_create(CustomScanState *node, struct ParallelContext *pcxt, void *coordinate);
extern void ws_gathered_attach(CustomScanState *node, shm_toc *toc, void *coordinate);
extern void ws_gathered_write(CustomScanState *node);
extern int	ws_gathered_count(const WsSortState *state);
extern const WsSortStats *ws_gathered_sort(const WsSortState *state, int number, const char **store);

/* ---- report.c ---- */
extern void ws_exceeds_max_temp(WsWatch *watch) __attribute__((noreturn));
extern void ws_note_keys(WsSortState *state);
extern void ws_log_sort(WsSortState *state);

#endif							/* WS_EXEC_H */
