/*-------------------------------------------------------------------------
 * gathered.c - what the sorts of parallel workers did, for EXPLAIN of their leader.
 *
 * Each worker has a sort of its own, whose figures end with its process.  Each writes them into the shared
 * memory of its parallel query when it shuts its plan down.  Core copies those of its Sort from there when
 * the workers have ended; of a custom scan it does not, so that the leader has this memory call back when it
 * is going to be detached, which is the next thing.
 *
 * execParallel.c tells only those custom scans of a parallel query that are "parallel aware", which for
 * EXPLAIN, and for who reads plans, this one is not.  So an execution that is instrumented has a flat copy
 * of the plan node that says it is, until ExecutorFinish.  An execution that EXPLAIN does not run has none.
 *
 * Memory bound: a WsWorkerSort for each worker, twice.
 *-------------------------------------------------------------------------
 */
#include "exec/exec.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "storage/dsm.h"

/* What a worker wrote. */
typedef struct WsWorkerSort
{
	bool		sorted;
	char		store[16];		/* its name */
	WsSortStats stats;
} WsWorkerSort;

/* Of one node, in the leader and in each worker. */
struct WsWorkerSorts
{
	Plan	   *plan;			/* the node's own */
	dsm_segment *segment;		/* of a parallel query that runs, or NULL */
	WsWorkerSort *shared;		/* there, of all workers; in a worker, its own */
	WsWorkerSort *kept;			/* of the last that has ended, in the query's memory; NULL: none began */
	int			nworkers;		/* that both have room for */
};

static ExecutorFinish_hook_type next_finish_hook = NULL;

/*
 * To be called when the node's execution begins, with ExecutorStart's eflags: has it told of a parallel
 * query, if that is instrumented.
 */
void
ws_gathered_begin(WsSortState *state, EState *estate, int eflags)
{
	PlanState  *node = &state->css.ss.ps;
	CustomScan *copy;

	if (estate->es_instrument == 0 || (eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0 ||
		!(IsParallelWorker() || estate->es_plannedstmt->parallelModeNeeded))
		return;
	copy = makeNode(CustomScan);
	*copy = *castNode(CustomScan, node->plan);
	copy->scan.plan.parallel_aware = true;
	state->workers = palloc0(sizeof(WsWorkerSorts));
	state->workers->plan = node->plan;
	node->plan = &copy->scan.plan;
}

/* EstimateDSMCustomScan callback: bytes of the parallel query's segment. */
Size
ws_gathered_estimate(CustomScanState *node, ParallelContext *pcxt)
{
	return mul_size(sizeof(WsWorkerSort), (Size) Max(pcxt->nworkers, 1));
}

/* Keeps what is in the memory of a parallel query that has ended. */
static void
keep_figures(dsm_segment *segment, Datum arg)
{
	WsWorkerSorts *workers = (WsWorkerSorts *) DatumGetPointer(arg);

	memcpy(workers->kept, workers->shared, sizeof(WsWorkerSort) * workers->nworkers);
	workers->segment = NULL;
}

/* InitializeDSMCustomScan callback, of the leader: when a parallel query starts; not when it is redone. */
void
ws_gathered_create(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	WsWorkerSorts *workers = ((WsSortState *) node)->workers;

	memset(coordinate, 0, node->pscan_len);
	if (pcxt->seg == NULL || workers->segment != NULL)
		return;					/* there are no workers; or two expressions share a subplan */
	workers->nworkers = (int) (node->pscan_len / sizeof(WsWorkerSort));
	workers->kept = MemoryContextAllocZero(node->ss.ps.state->es_query_cxt, node->pscan_len);
	workers->shared = coordinate;
	workers->segment = pcxt->seg;
	on_dsm_detach(pcxt->seg, keep_figures, PointerGetDatum(workers));
}

/* InitializeWorkerCustomScan callback. */
void
ws_gathered_attach(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	((WsSortState *) node)->workers->shared = (WsWorkerSort *) coordinate + ParallelWorkerNumber;
}

/* ShutdownCustomScan callback: a worker's plan ends, or waits for the next rescan.  Nothing in the leader. */
void
ws_gathered_write(CustomScanState *node)
{
	WsSortState *state = (WsSortState *) node;
	WsWorkerSort *mine;

	if (!IsParallelWorker() || state->workers == NULL || state->workers->shared == NULL || !state->has_stats)
		return;
	if (state->sort != NULL)
		ws_sort_stats(state->sort, &state->stats);
	mine = state->workers->shared;
	mine->stats = state->stats;
	strlcpy(mine->store, state->store, sizeof(mine->store));
	mine->sorted = true;
}

/* How many workers there may have been. */
int
ws_gathered_count(const WsSortState *state)
{
	return state->workers == NULL || state->workers->kept == NULL ? 0 : state->workers->nworkers;
}

/*
 * The figures of worker `number`, which is less than their count, and the name of its store; NULL if it did
 * not sort.  Both live as long as the node's execution.
 */
const WsSortStats *
ws_gathered_sort(const WsSortState *state, int number, const char **store)
{
	const WsWorkerSort *sort = &state->workers->kept[number];

	*store = sort->store;
	return sort->sorted ? &sort->stats : NULL;
}

/* Gives the nodes of a plan that has been executed their own plans back. */
static bool
restore_plans(PlanState *node, void *context)
{
	if (IsA(node, CustomScanState) &&
		strcmp(((CustomScanState *) node)->methods->CustomName, "WiscSort") == 0 &&
		((WsSortState *) node)->workers != NULL)
		node->plan = ((WsSortState *) node)->workers->plan;
	return planstate_tree_walker(node, restore_plans, context);
}

static void
finish_execution(QueryDesc *desc)
{
	if (next_finish_hook != NULL)
		next_finish_hook(desc);
	else
		standard_ExecutorFinish(desc);
	if (desc->instrument_options != 0 && (IsParallelWorker() || desc->plannedstmt->parallelModeNeeded))
		(void) restore_plans(desc->planstate, NULL);
}

/* Joins the hook chain of the executor's finish.  Called once. */
void
ws_install_gathered_hook(void)
{
	next_finish_hook = ExecutorFinish_hook;
	ExecutorFinish_hook = finish_execution;
}
