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
 * several batches, table access methods other than heap.
 *-------------------------------------------------------------------------
 */
#include "exec/exec.h"

#include "access/heapam.h"
#include "access/relscan.h"
#include "executor/hashjoin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#define UNKNOWN		(-1.0)

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
	/* a scan may begin in the middle */
	return (heap->rs_cblock >= heap->rs_startblock ? heap->rs_cblock - heap->rs_startblock + 0.5 :
			heap->rs_cblock + blocks - heap->rs_startblock + 0.5) / blocks;
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
 * The share of its work that a node has done, from 0 to 1, or less than 0: who knows.  It has returned so
 * many rows; -1: that is not known.
 */
double
ws_share_read(PlanState *node, int64 rows)
{
	/* what returns some of its input's rows only has no count of these */
	int64		below = node->qual != NULL ? -1 : rows;

	switch (nodeTag(node))
	{
		case T_SeqScanState:
			return of_scan((const ScanState *) node);
		case T_AppendState:
			return of_append((const AppendState *) node, rows);
		case T_AggState:
			return of_groups((const AggState *) node, rows);
		case T_SubqueryScanState:
			return ws_share_read(((SubqueryScanState *) node)->subplan, below);
		case T_ResultState:
			return outerPlanState(node) != NULL ? ws_share_read(outerPlanState(node), below) : UNKNOWN;
		case T_WindowAggState:
			return ws_share_read(outerPlanState(node), below);
		case T_HashJoinState:
			{
				HashJoinTable table = ((HashJoinState *) node)->hj_HashTable;

				/* in batches, the outer side is read before most of the rows are joined */
				if (table == NULL || table->nbatch > 1)
					return UNKNOWN;
				return ws_share_read(outerPlanState(node), -1);
			}
		case T_NestLoopState:
		case T_MergeJoinState:
		case T_GroupState:
		case T_UniqueState:
		case T_ProjectSetState:
		case T_IncrementalSortState:
		case T_GatherState:
			return ws_share_read(outerPlanState(node), -1);
		case T_CustomScanState:
			if (strcmp(((CustomScanState *) node)->methods->CustomName, "WiscSort") == 0)
			{
				const WsFigures *figures = ((WsSortState *) node)->figures;

				if (figures != NULL && figures->rows_in > 0 && figures->stage == WS_STAGE_OUTPUT)
					return (double) figures->rows_out / (double) figures->rows_in;
			}
			return UNKNOWN;
		default:
			return UNKNOWN;
	}
}

/*
 * The share of the time that a node's rows take which has passed, or less than 0: who knows.  That is what it
 * has read, `share_read`, if that is known.  A hash join in batches reads all of its outer side before most
 * rows are joined: it is about half done then, and the other batches are alike.
 */
double
ws_share_done(PlanState *node, double share_read)
{
	for (;;)
		switch (nodeTag(node))
		{
			case T_SubqueryScanState:
				node = ((SubqueryScanState *) node)->subplan;
				break;
			case T_ResultState:
				if (outerPlanState(node) == NULL)
					return share_read;
				node = outerPlanState(node);
				break;
			case T_WindowAggState:
			case T_ProjectSetState:
				node = outerPlanState(node);
				break;
			case T_HashJoinState:
				{
					HashJoinTable table = ((HashJoinState *) node)->hj_HashTable;
					double		read;

					if (table == NULL || table->nbatch == 1)
						return share_read;
					if (table->curbatch > 0)
						return 0.5 + 0.5 * table->curbatch / table->nbatch;
					read = ws_share_read(outerPlanState(node), -1);
					return read < 0 ? UNKNOWN : read / 2;
				}
			default:
				return share_read;
		}
}

/*
 * The bytes of tables that are read from front to back while `node` returns its rows; what is read before the
 * first of them, and by indexes, aside.  By a scan that workers share: of the whole table.
 */
double
ws_bytes_scanned(PlanState *node)
{
	double		bytes = 0;

	switch (nodeTag(node))
	{
		case T_SeqScanState:
			return (double) RelationGetNumberOfBlocks(((ScanState *) node)->ss_currentRelation) * BLCKSZ;
		case T_AppendState:
			for (int i = 0; i < ((AppendState *) node)->as_nplans; i++)
				bytes += ws_bytes_scanned(((AppendState *) node)->appendplans[i]);
			return bytes;
		case T_AggState:
			if (((AggState *) node)->aggstrategy != AGG_SORTED)
				return 0;
			return ws_bytes_scanned(outerPlanState(node));
		case T_SubqueryScanState:
			return ws_bytes_scanned(((SubqueryScanState *) node)->subplan);
		case T_ResultState:
			return outerPlanState(node) != NULL ? ws_bytes_scanned(outerPlanState(node)) : 0;
		case T_WindowAggState:
		case T_HashJoinState:
		case T_NestLoopState:
		case T_MergeJoinState:
		case T_GroupState:
		case T_UniqueState:
		case T_ProjectSetState:
		case T_IncrementalSortState:
		case T_GatherState:
			return ws_bytes_scanned(outerPlanState(node));
		default:
			return 0;
	}
}
