/*-------------------------------------------------------------------------
 * left.c - counts sorts that were left to core, and that spilled to disk.
 *
 * Core's Sort node tells nobody what it did, but for EXPLAIN.  So when the execution of a plan ends, its
 * Sorts and Incremental Sorts are asked, as EXPLAIN does.  Plans of a transaction in which this process has
 * written no temporary file are not looked through.  Each parallel worker counts its own.
 *
 * Memory bound: a row of counts.  On error nothing has been counted.
 *-------------------------------------------------------------------------
 */
#include "stat/stat.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "guc.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "tcop/pquery.h"
#include "utils/backend_status.h"
#include "utils/portal.h"
#include "utils/tuplesort.h"

static ExecutorEnd_hook_type next_end_hook = NULL;

/* Blocks of temporary files that this process had written when its last transaction ended. */
static int64 written_before = 0;

/* Bytes of disk that a sort has used; 0 if it did not, or is not there. */
static int64
disk_of(Tuplesortstate *sort)
{
	TuplesortInstrumentation stats;

	if (sort == NULL)
		return 0;
	tuplesort_get_stats(sort, &stats);
	return stats.spaceType == SORT_SPACE_TYPE_DISK ? (int64) stats.spaceUsed * 1024 : 0;
}

static bool
count_left(PlanState *node, void *arg)
{
	int64	   *counts = arg;
	int64		disk = 0;

	if (IsA(node, SortState) && ((SortState *) node)->sort_Done)
		disk = disk_of(((SortState *) node)->tuplesortstate);
	else if (IsA(node, IncrementalSortState))
	{
		IncrementalSortState *sort = (IncrementalSortState *) node;
		int64		prefix = disk_of(sort->prefixsort_state);

		disk = disk_of(sort->fullsort_state);
		disk = Max(disk, prefix);
	}
	counts[WS_LEFT] += disk > 0;
	counts[WS_LEFT_BYTES] += disk;
	return planstate_tree_walker(node, count_left, arg);
}

/* Does the client's statement put rows into a table that it makes or fills?  Then plans end with it. */
static bool
makes_table(void)
{
	const PlannedStmt *stmt;

	if (ActivePortal == NULL || list_length(ActivePortal->stmts) != 1)
		return false;
	stmt = linitial_node(PlannedStmt, ActivePortal->stmts);
	return stmt->utilityStmt != NULL &&
		(IsA(stmt->utilityStmt, CreateTableAsStmt) || IsA(stmt->utilityStmt, RefreshMatViewStmt));
}

/*
 * The query that a plan's sorts are counted under, as those of our nodes are (plan/finish.c); 0: none.  Not
 * so of a cursor, which ends in another statement.
 */
static int64
counted_under(const QueryDesc *desc)
{
	if (desc->plannedstmt->queryId == 0 && makes_table())
		return (int64) pgstat_get_my_query_id();
	return (int64) desc->plannedstmt->queryId;
}

/* Counts those of a plan whose execution ends. */
static void
count_plan(QueryDesc *desc)
{
	WsShared   *shared;
	WsStatKey	key = {.database = MyDatabaseId, .role = GetUserId(),
		.query = counted_under(desc)};
	int64		counts[WS_COUNTS] = {0};

	(void) count_left(desc->planstate, counts);
	/* asked for only then: making it may raise an error */
	if (counts[WS_LEFT] > 0 && (shared = ws_shared()) != NULL)
		ws_stat_add(shared, &key, counts);
}

static void
end_execution(QueryDesc *desc)
{
	if (unlikely(pgBufferUsage.temp_blks_written != written_before) && ws_track_sorts &&
		desc->planstate != NULL)
		count_plan(desc);
	if (next_end_hook != NULL)
		next_end_hook(desc);
	else
		standard_ExecutorEnd(desc);
}

static void
end_transaction(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PARALLEL_ABORT:
			written_before = pgBufferUsage.temp_blks_written;
			break;
		default:
			break;
	}
}

/* Joins the hook chain of the executor's end.  Called once. */
void
ws_install_left_hooks(void)
{
	next_end_hook = ExecutorEnd_hook;
	ExecutorEnd_hook = end_execution;
	RegisterXactCallback(end_transaction, NULL);
}
