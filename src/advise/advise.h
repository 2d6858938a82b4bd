/*-------------------------------------------------------------------------
 * advise.h - what a DBA asks: what sorts a query has, who sorts, why, and with how much memory.
 *-------------------------------------------------------------------------
 */
#ifndef WS_ADVISE_H
#define WS_ADVISE_H

/* Functions that SQL calls are seen from outside, and nothing else (wiscsort.c). */
#ifndef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#endif

#include "entry.h"

#include "executor/execdesc.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "plan/plan.h"
#include "store/request.h"

/* ---- model.c ---- */
#define WS_SETTINGS		5

extern const int ws_settings[WS_SETTINGS];

/* One sort: what is known of its rows, by estimate or by having been run. */
typedef struct WsSortFacts
{
	double		rows;			/* of one execution, that with the most, in one process */
	double		wanted;			/* of these, by a LIMIT that WiscSort heeds; 0: all */
	double		taken;			/* rows that it takes in for that */
	double		row;			/* bytes of a row in a spool, on average */
	double		tie_row;		/* with the table as store: bytes of a TID and a key, or 0: not spooled */
	double		core_row;		/* bytes of a row as core has it in memory, beside its array; or 0: none */
	double		core_tape;		/* the same on one of its tapes */
	Size		entry;			/* bytes of an entry, with what settling ties needs */
	bool		bytes;			/* keys are compared as bytes */
	bool		exact;			/* an entry has all of a key */
	WsRequest	request;		/* as it is for the present work_mem */
} WsSortFacts;

/* What a sort does with so much memory. */
typedef struct WsSortForecast
{
	bool		in_memory;		/* nothing is written */
	bool		one_pass;		/* no entry is written; of core: the same as in_memory */
	double		runs;
	int			passes;
	double		merged;			/* rows that are merged before the final merge, each as often as it is */
	double		temp;			/* bytes of temporary files, at their largest */
	double		seconds;		/* of the sort itself, without its input */
} WsSortForecast;

extern WsSortForecast ws_forecast_here(const WsSortFacts *facts, Size memory);
extern WsSortForecast ws_forecast_core(const WsSortFacts *facts, Size memory);

typedef WsSortForecast (*WsForecaster) (const WsSortFacts *facts, Size memory);

extern int	ws_least_work_mem(const WsSortFacts *facts, WsForecaster forecast, int passes);

/* ---- query.c ---- */

/* Who sorts, in a plan. */
typedef enum WsSortNode
{
	WS_NODE_CORE,
	WS_NODE_INCREMENTAL,
	WS_NODE_OURS
} WsSortNode;

/* A sort in a plan that has been made ready for execution. */
typedef struct WsFoundSort
{
	PlanState  *node;
	WsSortNode	kind;
	char	   *keys;			/* as EXPLAIN shows them */
	int			ncols;
	AttrNumber *attnos;			/* the arrays of the plan node, or of the request */
	Oid		   *sortops;
	Oid		   *collations;
	bool	   *nulls_first;
	double		bound;			/* rows that a LIMIT above takes, or WS_NO_BOUND */
	int			processes;		/* that have a part of the input each */
	bool		threads;		/* it may have helper threads: nothing in the plan is parallel */
} WsFoundSort;

extern Query *ws_accept_query(const char *text);
extern void ws_reading(const char *text, void (*work) (void *arg), void *arg);
extern QueryDesc *ws_query_begin(PlannedStmt *stmt, const char *text, bool run);
extern void ws_query_end(QueryDesc *desc);
extern const Node *ws_only_target(const List *targetlist);
extern List *ws_find_sorts(PlannedStmt *stmt, PlanState *top);

/* ---- advise.c ---- */
/* A sort, with what is known before and after the query has been run. */
typedef struct WsAdvised
{
	WsFoundSort *found;
	WsSortFacts facts;
	const Plan *rows;			/* what the planner expects of the rows */
	int			width;			/* bytes of a row's data */
	bool		measured;
	double		core[WS_SETTINGS];	/* how many times as long as forecast it takes core */
	double		here[WS_SETTINGS];	/* and WiscSort */
	const struct WsAdvised *there[WS_SETTINGS];	/* as it is planned with that, or NULL */
	const struct WsAdvised *by_core;	/* of a WiscSort: core's in its place, as it is planned, or NULL */
	struct WsMeasured *input;	/* or NULL */
	struct WsMeasured *output;	/* the rows that it returns, if core may sort these */
} WsAdvised;

/* ---- estimate.c ---- */
extern const char *const ws_setting_names[WS_SETTINGS];

extern List *ws_estimate_all(const QueryDesc *desc);
extern void ws_plan_with_settings(List *sorts, const char *text, int cursor_options);
extern void ws_plan_by_core(List *sorts, const char *text, int cursor_options);
extern bool ws_core_sorts_output(const WsAdvised *a);
extern WsSortFacts ws_facts_with(const WsAdvised *a, int setting);

/* ---- recommend.c ---- */
extern bool ws_is_top_n(const WsAdvised *a);
extern int	ws_recommend(const WsAdvised *a, int least, char **reason);

/* ---- reasons.c ---- */
extern const char *ws_reason(const WsFoundSort *found, const List *sorts, bool planned, List *notes);

/* ---- measure.c ---- */

struct WsSample;

/* The rows of a node. */
typedef struct WsMeasured
{
	PlanState  *node;
	ExecProcNodeMtd real;
	int			unit;			/* to which a spool aligns them */
	double		rows;
	double		loops;			/* executions that have ended */
	double		begun;			/* rows of these */
	double		most;			/* of one of them */
	double		minimal;		/* bytes as minimal tuples */
	double		core;			/* bytes of core's memory */
	double		spool;			/* bytes of a spool */
	Bitmapset  *twice;			/* columns that core's rows have a second time */
	double		again;			/* bytes of these */
	double		written;		/* bytes of temporary files, by the whole query */
	void		(*take) (struct WsMeasured *measured, TupleTableSlot *slot);	/* each row, or NULL */
	struct WsSample *sample;	/* its */
} WsMeasured;

extern void ws_measure_begin(void);
extern WsMeasured *ws_measure(PlanState *node);
extern void ws_measure_row(WsMeasured *m, Size minimal, Size again);
extern Size ws_minimal_bytes(TupleTableSlot *slot);
extern int	ws_spool_unit(TupleDesc desc);
extern bool ws_core_sorts_datums(TupleDesc desc, bool again);
extern void ws_set_core_row(WsSortFacts *facts, TupleDesc desc, double minimal, double again, double core);
extern void ws_run_measured(QueryDesc *desc);

/* ---- trial.c ---- */
typedef struct WsSample WsSample;

extern void ws_sample(WsMeasured *measured, double share);
extern void ws_sample_end(WsMeasured *measured);
extern bool ws_try_sorts(WsAdvised *a, double longest, double seconds);

/* ---- preload.c ---- */
extern List *ws_split_libraries(const char *list);
extern bool ws_names_wiscsort(const char *list);
extern bool ws_new_sessions_load(const char **hidden);

/* ---- option.c ---- */
extern void ws_install_explain_option(void);

#endif							/* WS_ADVISE_H */
