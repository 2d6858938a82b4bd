/*-------------------------------------------------------------------------
 * gathered.c - what the sorts of parallel workers did, for EXPLAIN of their leader.
 *
 * Each worker has a sort of its own, whose figures end with its process.  Core's Sort has them copied by
 * execParallel.c; for a custom scan that calls nothing after the workers have ended, and while they run
 * their figures are not final.  So the leader makes a segment of shared memory that outlives the parallel
 * query: each worker writes its figures there when it shuts its plan down, and EXPLAIN reads them.
 *
 * execParallel.c tells only those custom scans of a parallel query that are "parallel aware", which for
 * EXPLAIN, and for who reads plans, this one is not.  So an execution that is instrumented has a flat copy
 * of the plan node that says it is, until ExecutorFinish, which comes before EXPLAIN in every case.
 *
 * Memory bound: a WsWorkerSort for each worker.
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
	Plan	   *plan;			/* the node's own; NULL in a worker */
	dsm_segment *segment;		/* NULL: no worker has been started */
	int			nworkers;
	int			number;			/* of this worker */
};

static ExecutorFinish_hook_type next_finish_hook = NULL;

/* To be called when the node's execution begins: has it told of a parallel query, if that is instrumented. */
void
ws_gathered_begin(WsSortState *state, EState *estate)
{
	PlanState  *node = &state->css.ss.ps;
	CustomScan *copy;

	if (estate->es_instrument == 0 || !(IsParallelWorker() || estate->es_plannedstmt->parallelModeNeeded))
		return;
	copy = makeNode(CustomScan);
	*copy = *castNode(CustomScan, node->plan);
	copy->scan.plan.parallel_aware = true;
	state->workers = palloc0(sizeof(WsWorkerSorts));
	state->workers->plan = node->plan;
	node->plan = &copy->scan.plan;
}

/* Detaches from the shared memory; the last to do so frees it. */
void
ws_gathered_end(WsSortState *state)
{
	if (state->workers != NULL && state->workers->segment != NULL)
		dsm_detach(state->workers->segment);
}

/* EstimateDSMCustomScan callback: bytes of the parallel query's segment, for the handle of the other. */
Size
ws_gathered_estimate(CustomScanState *node, ParallelContext *pcxt)
{
	return sizeof(dsm_handle);
}

/* InitializeDSMCustomScan callback, of the leader: when a parallel query starts; not when it is redone. */
void
ws_gathered_create(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	WsWorkerSorts *workers = ((WsSortState *) node)->workers;
	Size		size = sizeof(WsWorkerSort) * Max(pcxt->nworkers, 1);

	if (workers->segment != NULL)
		dsm_detach(workers->segment);
	workers->nworkers = pcxt->nworkers;
	workers->segment = dsm_create(size, DSM_CREATE_NULL_IF_MAXSEGMENTS);
	if (workers->segment != NULL)
		memset(dsm_segment_address(workers->segment), 0, size);
	*(dsm_handle *) coordinate = workers->segment == NULL ? DSM_HANDLE_INVALID :
		dsm_segment_handle(workers->segment);
}

/* InitializeWorkerCustomScan callback. */
void
ws_gathered_attach(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	WsWorkerSorts *workers = ((WsSortState *) node)->workers;
	dsm_handle	handle = *(dsm_handle *) coordinate;

	workers->number = ParallelWorkerNumber;
	if (handle != DSM_HANDLE_INVALID)
		workers->segment = dsm_attach(handle);
}

/* ShutdownCustomScan callback: a worker's plan ends, or waits for the next rescan.  Nothing in the leader. */
void
ws_gathered_write(CustomScanState *node)
{
	WsSortState *state = (WsSortState *) node;
	WsWorkerSort *mine;

	if (!IsParallelWorker() || state->workers == NULL || state->workers->segment == NULL ||
		!state->has_stats)
		return;
	if (state->sort != NULL)
		ws_sort_stats(state->sort, &state->stats);
	mine = (WsWorkerSort *) dsm_segment_address(state->workers->segment) + state->workers->number;
	mine->stats = state->stats;
	strlcpy(mine->store, state->store, sizeof(mine->store));
	mine->sorted = true;
}

/* How many workers there may have been. */
int
ws_gathered_count(const WsSortState *state)
{
	return state->workers == NULL || state->workers->segment == NULL ? 0 : state->workers->nworkers;
}

/*
 * The figures of worker `number`, which is less than their count, and the name of its store; NULL if it did
 * not sort.  Both live as long as the node's execution.
 */
const WsSortStats *
ws_gathered_sort(const WsSortState *state, int number, const char **store)
{
	const WsWorkerSort *sort = (const WsWorkerSort *) dsm_segment_address(state->workers->segment) + number;

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
	if (desc->instrument_options != 0 && desc->plannedstmt->parallelModeNeeded)
		(void) restore_plans(desc->planstate, NULL);
}

/* Joins the hook chain of the executor's finish.  Called once. */
void
ws_install_gathered_hook(void)
{
	next_finish_hook = ExecutorFinish_hook;
	ExecutorFinish_hook = finish_execution;
}
