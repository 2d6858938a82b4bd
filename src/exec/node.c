/*-------------------------------------------------------------------------
 * node.c - the executor node Custom Scan (WiscSort).
 *
 * A drop-in for core's Sort node: its input is its outer plan, its scan tuple
 * is the input's row, and it keeps Sort's contract for rescan, mark and
 * restore, backward scan, and parameters (nodeSort.c).  That is why EPQ,
 * FOR UPDATE and WHERE CURRENT OF behave above it as above a Sort.
 *
 * Rows are returned as heap tuples in place, in the spool.  PostgreSQL
 * prepares a virtual scan slot for a custom scan, and expressions compiled
 * for virtual slots do not deform: the slot and the projection are therefore
 * made again here, for TTSOpsHeapTuple.
 *
 * With the table as record store (plan/heap.c) the node scans that table: its
 * scan tuple is the table's row, and its input are TIDs and keys.
 *
 * On error the sorter's files and memory go with their owners; Shutdown does
 * nothing, because a cursor is shut down after every FETCH.
 *-------------------------------------------------------------------------
 */
#include "exec/exec.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/tlist.h"
#include "utils/rel.h"

static const CustomExecMethods exec_methods;

static Node *
create_state(CustomScan *cscan)
{
	WsSortState *state = (WsSortState *) newNode(sizeof(WsSortState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

/* Takes the sort columns out of custom_private (see plan/paths.c). */
static void
read_columns(WsSortState *state, List *private)
{
	List	   *attnos = linitial(private);
	List	   *sortops = lsecond(private);
	List	   *collations = lthird(private);
	List	   *nulls_first = lfourth(private);
	List	   *notnull = list_nth(private, 4);
	int			n = list_length(attnos);

	state->ncols = n;
	state->attnos = palloc(n * sizeof(AttrNumber));
	state->sortops = palloc(n * sizeof(Oid));
	state->collations = palloc(n * sizeof(Oid));
	state->nulls_first = palloc(n * sizeof(bool));
	state->notnull = palloc(n * sizeof(bool));
	for (int i = 0; i < n; i++)
	{
		state->attnos[i] = (AttrNumber) list_nth_int(attnos, i);
		state->sortops[i] = list_nth_oid(sortops, i);
		state->collations[i] = list_nth_oid(collations, i);
		state->nulls_first[i] = list_nth_int(nulls_first, i) != 0;
		state->notnull[i] = list_nth_int(notnull, i) != 0;
	}
}

/*
 * Is there nothing in the input's rows but keys, and will the entries tell these
 * (key/decode.c)?
 */
static bool
rows_are_keys(const WsSortState *state, TupleDesc input)
{
	Bitmapset  *told = NULL;
	int			bytes = 0;

	if (ws_record_store == WS_STORE_SPOOL)
		return false;
	for (int i = 0; i < state->ncols; i++)
	{
		Form_pg_attribute att = TupleDescAttr(input, state->attnos[i] - 1);
		bool		descending;
		int			width;

		if (!ws_encoding_decodable(ws_key_encoding(state->sortops[i], state->collations[i],
												   &descending, &width)) ||
			!att->attbyval || att->attlen != width)
			return false;
		bytes += width + (state->notnull[i] ? 0 : 1);
		told = bms_add_member(told, state->attnos[i]);
	}
	return bytes <= WS_PREFIX_BYTES && bms_num_members(told) == input->natts;
}

static void
begin_sort(CustomScanState *node, EState *estate, int eflags)
{
	WsSortState *state = (WsSortState *) node;
	CustomScan *cscan = (CustomScan *) node->ss.ps.plan;
	TupleDesc	input;
	const int	access = EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK;

	read_columns(state, cscan->custom_private);

	/*
	 * The planner looked at today's constraints.  A snapshot from before a SET
	 * NOT NULL still sees the nulls that were there.
	 */
	if (IsolationUsesXactSnapshot())
		memset(state->notnull, 0, state->ncols * sizeof(bool));
	state->random_access = (eflags & access) != 0;

	/* The input is read once, forward. */
	outerPlanState(node) = ExecInitNode(outerPlan(cscan), estate, eflags & ~access);

	if (cscan->scan.scanrelid > 0)
	{
		/*
		 * The rows are those of the table.  For WHERE CURRENT OF this is a sort
		 * nevertheless, and refused as core's: no relation to be found here.
		 */
		state->rel = node->ss.ss_currentRelation;
		node->ss.ss_currentRelation = NULL;
		ExecInitScanTupleSlot(estate, &node->ss, RelationGetDescr(state->rel),
							  &TTSOpsHeapTuple);
		ExecAssignScanProjectionInfo(&node->ss);
		return;
	}
	input = ExecGetResultType(outerPlanState(node));
	state->keys_only = rows_are_keys(state, input);
	ExecInitScanTupleSlot(estate, &node->ss, input,
						  state->keys_only ? &TTSOpsVirtual : &TTSOpsHeapTuple);
	ExecAssignScanProjectionInfoWithVarno(&node->ss, INDEX_VAR);
}

/* Reads the whole input and sorts it. */
static void
sort_input(WsSortState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	PlanState  *outer = outerPlanState(state);
	ScanDirection direction = estate->es_direction;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	WsSorter   *sorter;
	WsInput		input;
	TupleTableSlot *slot;

	estate->es_direction = ForwardScanDirection;
	sorter = ws_sorter_create(ExecGetResultType(outer), state->ncols, state->attnos,
							  state->sortops, state->collations, state->nulls_first,
							  state->notnull, work_mem, state->random_access, state->rel,
							  state->keys_only);
	MemoryContextSwitchTo(sorter->context);
	ws_input_begin(&input, outer);
	MemoryContextSwitchTo(old);
	while ((slot = ws_input_next(&input)) != NULL)
		ws_sorter_put(sorter, slot);
	if (input.prefetch != NULL)
		state->prefetched = ws_prefetch_count(input.prefetch);
	ws_sorter_perform(sorter);
	ws_sorter_stats(sorter, &state->stats);
	state->has_stats = true;
	state->sorter = sorter;
	estate->es_direction = direction;
}

static TupleTableSlot *
exec_sort(CustomScanState *node)
{
	WsSortState *state = (WsSortState *) node;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	ProjectionInfo *projection = node->ss.ps.ps_ProjInfo;

	if (unlikely(state->sorter == NULL))
		sort_input(state);

	if (!ws_sorter_get(state->sorter,
					   !ScanDirectionIsBackward(node->ss.ps.state->es_direction),
					   slot))
	{
		ExecClearTuple(slot);
		return projection != NULL ? ExecClearTuple(projection->pi_state.resultslot) : slot;
	}
	if (projection == NULL)
		return slot;
	ResetExprContext(node->ss.ps.ps_ExprContext);
	node->ss.ps.ps_ExprContext->ecxt_scantuple = slot;
	return ExecProject(projection);
}

static void
forget_result(WsSortState *state)
{
	/* the slots point into the spool */
	ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
	if (state->css.ss.ps.ps_ResultTupleSlot != NULL)
		ExecClearTuple(state->css.ss.ps.ps_ResultTupleSlot);
}

static void
end_sort(CustomScanState *node)
{
	WsSortState *state = (WsSortState *) node;

	forget_result(state);
	ws_sorter_destroy(state->sorter);
	state->sorter = NULL;
	ExecEndNode(outerPlanState(node));
}

/* As ExecReScanSort: sort again only if the input may have changed. */
static void
rescan_sort(CustomScanState *node)
{
	WsSortState *state = (WsSortState *) node;
	PlanState  *outer = outerPlanState(node);

	if (state->sorter == NULL)
		return;					/* ExecProcNode rescans the input if need be */

	forget_result(state);
	if (outer->chgParam != NULL || !state->random_access)
	{
		ws_sorter_destroy(state->sorter);
		state->sorter = NULL;
		if (outer->chgParam == NULL)
			ExecReScan(outer);
	}
	else
		ws_sorter_rewind(state->sorter);
}

static void
mark_sort(CustomScanState *node)
{
	WsSortState *state = (WsSortState *) node;

	if (state->sorter != NULL)
		ws_sorter_mark(state->sorter);
}

static void
restore_sort(CustomScanState *node)
{
	WsSortState *state = (WsSortState *) node;

	if (state->sorter != NULL)
		ws_sorter_restore(state->sorter);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "WiscSort",
	.BeginCustomScan = begin_sort,
	.ExecCustomScan = exec_sort,
	.EndCustomScan = end_sort,
	.ReScanCustomScan = rescan_sort,
	.MarkPosCustomScan = mark_sort,
	.RestrPosCustomScan = restore_sort,
	.ExplainCustomScan = ws_explain,
};

const CustomScanMethods ws_scan_methods = {
	.CustomName = "WiscSort",
	.CreateCustomScanState = create_state,
};

/* Makes the node known, so that parallel workers can read plans with it. */
void
ws_register_node(void)
{
	RegisterCustomScanMethods(&ws_scan_methods);
}
