/*-------------------------------------------------------------------------
 * share.c - how much of a sort's input has been read, and how much there is of it.
 *
 * The planner's number of rows may be wrong by any factor, and what a sort still has to read with it.  But
 * most plans are driven by one node, to whose rows the rows of the whole are about proportional: the table
 * that is scanned, the outer side of a join (Chaudhuri, Narasayya, Ramamurthy: Estimating Progress of
 * Execution for SQL Queries, SIGMOD 2004).  How far that is can be read off it, exactly.
 *
 * Reads a few fields of the nodes on the way down; takes no memory, and raises nothing.
 *
 * Refused (the share is unknown): index and bitmap scans, functions, LIMIT, core's sorts, hash joins in
 * several batches that are parallel, below a Gather or have frequent values, and table access methods other
 * than heap.
 *-------------------------------------------------------------------------
 */
#include "exec/exec.h"

#include "access/heapam.h"
#include "access/relscan.h"
#include "executor/hashjoin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#define UNKNOWN		(-1.0)

/* The share of its page's rows that a scan has come to: one row may be joined with millions. */
static double
of_page(const HeapScanDescData *heap)
{
	if ((heap->rs_base.rs_flags & SO_ALLOW_PAGEMODE) == 0 || heap->rs_ntuples == 0)
		return 0.5;
	return Min(1, ((double) heap->rs_cindex + 0.5) / (double) heap->rs_ntuples);
}

/* The share of the table's blocks that a scan has come to. */
static double
of_scan(const ScanState *scan)
{
	const HeapScanDescData *heap = (const HeapScanDescData *) scan->ss_currentScanDesc;
	double		blocks;
	double		taken;

	if (heap == NULL || scan->ss_currentRelation->rd_tableam != GetHeapamTableAmRoutine())
		return UNKNOWN;
	if (heap->rs_base.rs_parallel != NULL)
	{
		ParallelBlockTableScanDesc all = (ParallelBlockTableScanDesc) heap->rs_base.rs_parallel;

		blocks = (double) all->phs_nblocks;
		taken = (double) pg_atomic_read_u64(&all->phs_nallocated);
		return blocks > 0 ? Min(1, taken / blocks) : UNKNOWN;
	}
	blocks = (double) heap->rs_nblocks;
	if (!heap->rs_inited || blocks == 0 || heap->rs_cblock == InvalidBlockNumber)
		return UNKNOWN;
	taken = (double) heap->rs_cblock - (double) heap->rs_startblock + of_page(heap);
	/* a scan may begin in the middle */
	return (heap->rs_cblock >= heap->rs_startblock ? taken : taken + blocks) / blocks;
}

/* Of several inputs, one after the other, by the planner's figures. */
static double
of_append(const AppendState *append, int64 rows)
{
	double		all = 0;
	double		done = 0;

	/* workers take inputs in an order of their own */
	if (append->as_whichplan < 0 || append->as_nplans < 1 || append->as_nasyncplans > 0 ||
		append->as_pstate != NULL)
		return UNKNOWN;
	if (append->as_nplans == 1)
		return ws_share_read(append->appendplans[0], rows);
	for (int i = 0; i < append->as_nplans; i++)
	{
		double		expected = Max(1, append->appendplans[i]->plan->plan_rows);
		double		share;

		all += expected;
		if (i > append->as_whichplan)
			continue;
		share = i < append->as_whichplan ? 1 : ws_share_read(append->appendplans[i], -1);
		done += expected * Max(0.0, share);
	}
	return done / all;
}

/* Groups that have been made of all rows are counted. */
static double
of_groups(const AggState *agg, int64 rows)
{
	if (agg->aggstrategy == AGG_SORTED || agg->aggstrategy == AGG_PLAIN)
		return ws_share_read(outerPlanState(agg), -1);
	if (agg->aggstrategy != AGG_HASHED || !agg->table_filled || agg->hash_ever_spilled ||
		agg->hash_ngroups_current == 0 || agg->ss.ps.qual != NULL || rows < 0)
		return UNKNOWN;
	return Min(1, (double) rows / (double) agg->hash_ngroups_current);
}

/*
 * The input that drives a node: that whose rows the node's are about proportional to, and which it reads
 * while it returns them.  NULL if there is none such.
 */
static PlanState *
driver_of(PlanState *node)
{
	switch (nodeTag(node))
	{
		case T_SubqueryScanState:
			return ((SubqueryScanState *) node)->subplan;
		case T_ResultState:
		case T_WindowAggState:
		case T_HashJoinState:
		case T_NestLoopState:
		case T_MergeJoinState:
		case T_GroupState:
		case T_UniqueState:
		case T_ProjectSetState:
		case T_IncrementalSortState:
		case T_GatherState:
			return outerPlanState(node);
		default:
			return NULL;
	}
}

/* Is it a hash join in batches, which reads its outer side before most of the rows are joined? */
static bool
is_batched(const PlanState *node)
{
	HashJoinTable table = IsA(node, HashJoinState) ? ((const HashJoinState *) node)->hj_HashTable : NULL;

	return table != NULL && table->nbatch > 1;
}

/* Is there one that drives a node, below others of this process or not? */
static bool
is_driven_by_batches(PlanState *node)
{
	while (node != NULL && !is_batched(node))
		node = driver_of(node);
	return node != NULL;
}

/*
 * The share of the rows of such a join: of what has been read of the outer side, one batch's rows.  Not if
 * frequent values are joined at once, whatever their batch is, or workers share the batches.
 */
static double
of_batches(PlanState *join)
{
	HashJoinTable table = ((const HashJoinState *) join)->hj_HashTable;
	double		read;

	if (table->parallel_state != NULL || table->skewEnabled)
		return UNKNOWN;
	if (table->curbatch > 0)
		return (table->curbatch + 0.5) / table->nbatch;
	read = ws_share_read(driver_of(join), -1);
	return read < 0 ? UNKNOWN : read / table->nbatch;
}

/*
 * The share of its rows that a node has returned, from 0 to 1, or less than 0: who knows.  That is so many
 * rows; -1: that is not known.
 */
double
ws_share_read(PlanState *node, int64 rows)
{
	PlanState  *driver = driver_of(node);
	int64		below = -1;

	switch (nodeTag(node))
	{
		case T_SeqScanState:
			return of_scan((const ScanState *) node);
		case T_AppendState:
			return of_append((const AppendState *) node, rows);
		case T_AggState:
			return of_groups((const AggState *) node, rows);
		case T_SubqueryScanState:
		case T_ResultState:
		case T_WindowAggState:
			/* what returns some of its input's rows only has no count of these */
			if (node->qual == NULL)
				below = rows;
			break;
		case T_HashJoinState:
			/* nothing is known before there is a table */
			if (((HashJoinState *) node)->hj_HashTable == NULL)
				return UNKNOWN;
			if (is_batched(node))
				return of_batches(node);
			break;
		case T_GatherState:
			/* each process has batches of its own */
			if (is_driven_by_batches(outerPlanState(node)))
				return UNKNOWN;
			break;
		case T_CustomScanState:
			if (strcmp(((CustomScanState *) node)->methods->CustomName, "WiscSort") == 0)
			{
				const WsFigures *figures = ((WsSortState *) node)->figures;

				if (figures != NULL && figures->rows_in > 0 && figures->stage == WS_STAGE_OUTPUT)
					return (double) figures->rows_out / (double) figures->rows_in;
			}
			return UNKNOWN;
		default:
			break;
	}
	return driver != NULL ? ws_share_read(driver, below) : UNKNOWN;
}

/*
 * The rows of a node that a row of its driving input gives, as the planner has it, if the inner side is
 * executed for each and may give many.  The share stays what it is meanwhile.  Otherwise 0.
 */
double
ws_share_each(PlanState *node)
{
	double		rows = node->plan->plan_rows;
	bool		each = false;
	PlanState  *driver;

	while ((driver = driver_of(node)) != NULL)
	{
		each = each || IsA(node, NestLoopState) || IsA(node, ProjectSetState);
		node = driver;
	}
	return each ? rows / Max(1, node->plan->plan_rows) : 0;
}

/*
 * The share of the time that a node's rows take which has passed, or less than 0: who knows.  That is what it
 * has read, `share_read`, if that is known.  Of a hash join in batches that drives it, it is half when the
 * outer side has been read, and the other batches are alike; *batch is set to the number of the present one,
 * from 0, and *batches to how many there are, or 0 where there is no such join.
 */
double
ws_share_done(PlanState *node, double share_read, int *batch, int *batches)
{
	HashJoinTable table;
	double		read;

	*batch = *batches = 0;
	while (node != NULL && !is_batched(node))
		node = IsA(node, GatherState) ? NULL : driver_of(node);
	if (node == NULL)
		return share_read;
	table = ((HashJoinState *) node)->hj_HashTable;
	if (table->parallel_state != NULL)
		return UNKNOWN;
	*batch = table->curbatch;
	*batches = table->nbatch;
	if (table->curbatch > 0)
		return 0.5 + 0.5 * table->curbatch / table->nbatch;
	read = ws_share_read(driver_of(node), -1);
	return read < 0 ? UNKNOWN : read / 2;
}

/*
 * The bytes of tables that are read from front to back while `node` returns its rows; what is read before the
 * first of them, and by indexes, aside.  By a scan that workers share: of the whole table.
 */
double
ws_bytes_scanned(PlanState *node)
{
	PlanState  *driver = driver_of(node);
	double		bytes = 0;

	if (IsA(node, SeqScanState))
		return (double) RelationGetNumberOfBlocks(((ScanState *) node)->ss_currentRelation) * BLCKSZ;
	if (IsA(node, AppendState))
		for (int i = 0; i < ((AppendState *) node)->as_nplans; i++)
			bytes += ws_bytes_scanned(((AppendState *) node)->appendplans[i]);
	else if (IsA(node, AggState) && ((AggState *) node)->aggstrategy == AGG_SORTED)
		driver = outerPlanState(node);
	return driver != NULL ? ws_bytes_scanned(driver) : bytes;
}
