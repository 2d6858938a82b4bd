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
 * On error the sorter's files and memory go with their owners; Shutdown ends
 * nothing, because a cursor is shut down after every FETCH.
 *-------------------------------------------------------------------------
 */
#include "exec/exec.h"
#include "exec/below/below.h"

#include "access/htup_details.h"
#include "common/int.h"
#include "executor/executor.h"
#include "jit/jit.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/tlist.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

static const CustomExecMethods exec_methods;

static Node *
create_state(CustomScan *cscan)
{
	WsSortState *state = (WsSortState *) newNode(sizeof(WsSortState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

/*
 * Has scans look for nulls in columns that are NOT NULL by now.  Core's sort takes keys out of copies of its
 * rows, and finds nulls there; here keys may come from a scan's slot, which many nodes (Append, Limit,
 * Gather, LockRows) pass on as it is.
 */
static bool
read_nulls(PlanState *input, void *context)
{
	switch (nodeTag(input))
	{
		case T_SeqScanState:
		case T_SampleScanState:
		case T_IndexScanState:
		case T_BitmapHeapScanState:
		case T_TidScanState:
		case T_TidRangeScanState:
			ws_slot_read_nulls(((ScanState *) input)->ss_ScanTupleSlot);
			break;
		default:
			break;
	}
	return planstate_tree_walker(input, read_nulls, context);
}

/*
 * The keys of a sort that leaves rows in their table are a projection of its scan.  Compiled code that takes
 * rows apart trusts NOT NULL constraints: without it, where one is younger than the snapshot.
 */
static void
compile_no_deforming(EState *estate, Relation rel)
{
	if ((estate->es_jit_flags & PGJIT_DEFORM) == 0 ||
		ws_constraints_hold(RelationGetDescr(rel), RelationGetRelid(rel), estate->es_snapshot))
		return;
	estate->es_jit_flags &= ~PGJIT_DEFORM;
	if (estate->es_jit != NULL)
		estate->es_jit->flags &= ~PGJIT_DEFORM;
}

static void
begin_sort(CustomScanState *node, EState *estate, int eflags)
{
	WsSortState *state = (WsSortState *) node;
	CustomScan *cscan = (CustomScan *) node->ss.ps.plan;
	const int	access = EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK;

	/* the projection is made anew below, and with it what it knows of subplans */
	node->ss.ps.subPlan = NIL;
	ws_gathered_begin(state, estate, eflags);
	state->request = ws_request_read(cscan->custom_private, estate->es_snapshot);
	state->request->random_access = (eflags & access) != 0;
	if (cscan->custom_exprs != NIL)
	{
		state->limit = ExecInitExpr(linitial(cscan->custom_exprs), &node->ss.ps);
		state->offset = ExecInitExpr(lsecond(cscan->custom_exprs), &node->ss.ps);
	}

	if (cscan->scan.scanrelid > 0)
		compile_no_deforming(estate, node->ss.ss_currentRelation);
	/* The input is read once, forward. */
	outerPlanState(node) = ExecInitNode(outerPlan(cscan), estate, eflags & ~access);
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		ws_note_keys(state);
	if (WS_SLOTS_TRUST_NOT_NULL)
		(void) read_nulls(outerPlanState(node), NULL);

	if (cscan->scan.scanrelid > 0)
	{
		/*
		 * The rows are those of the table.  For WHERE CURRENT OF this is a sort
		 * nevertheless, and refused as core's: no relation to be found here.
		 */
		state->rel = node->ss.ss_currentRelation;
		node->ss.ss_currentRelation = NULL;
		ws_request_note_columns(state->request, cscan, RelationGetDescr(state->rel));
		ws_init_scan_slot(estate, &node->ss, RelationGetDescr(state->rel), &TTSOpsHeapTuple);
		ExecAssignScanProjectionInfo(&node->ss);
		return;
	}
	ws_init_scan_slot(estate, &node->ss, ExecGetResultType(outerPlanState(node)),
					  state->request->store == WS_KIND_KEYS ? &TTSOpsVirtual : &TTSOpsHeapTuple);
	ExecAssignScanProjectionInfoWithVarno(&node->ss, INDEX_VAR);
}

/* The sorts of the node are going to be watched. */
static void
watch_sorts(WsSortState *state)
{
	WsWatch    *watch;

	state->track = ws_track_create(state->request->query, state->css.ss.ps.plan->plan_node_id);
	watch = ws_track_watch(state->track);
	watch->exceeded = ws_exceeds_max_temp;
	watch->arg = state;
	state->request->watch = watch;
}

/* So many rows have been handed out: says so. */
static inline void
show_output(WsSortState *state, int64 rows)
{
	WsFigures  *figures = state->figures;

	figures->rows_out = rows;
	if (unlikely(state->request->wanted > 0) && (uint64) rows == state->request->wanted)
		ws_track_drained(state->track);
	if (unlikely(rows % WS_LOOK_ROWS == 0) && state->sort != NULL)
	{
		figures->memory = ws_sort_memory(state->sort);
		if (rows == WS_LOOK_ROWS)
			figures->flowing_at = GetCurrentTimestamp();
	}
}

/* The number that a clause of LIMIT comes to; false if it is null, as LIMIT ALL is, or less than 0. */
static bool
clause_value(WsSortState *state, ExprState *clause, int64 *value)
{
	bool		isnull;

	*value = DatumGetInt64(ExecEvalExprSwitchContext(clause, state->css.ss.ps.ps_ExprContext, &isnull));
	return !isnull && *value >= 0;
}

/*
 * How many rows the LIMIT above is going to ask for, 0 if all.  It has evaluated the same clauses before it
 * asks for the first.
 */
static uint64
rows_wanted(WsSortState *state)
{
	int64		limit;
	int64		offset;

	if (state->limit == NULL)
		return 0;
	ResetExprContext(state->css.ss.ps.ps_ExprContext);
	if (!clause_value(state, state->limit, &limit))
		return 0;
	if (!clause_value(state, state->offset, &offset))
		offset = 0;
	if (pg_add_s64_overflow(limit, offset, &limit) || limit > state->request->rows * WS_MOST_WANTED)
		return 0;
	return (uint64) limit;
}

/* Is it time to set the figures that are not counted?  *looked is when that was last. */
static bool
is_time(WsFigures *figures, TimestampTz *looked)
{
	TimestampTz now = GetCurrentTimestamp();

	if (*looked == 0)
		*looked = now;
	if (figures->rows_in % WS_LOOK_ROWS != 0 && now - *looked < WS_LOOK_US)
		return false;
	*looked = now;
	return true;
}

/* Sets them; rows have `memory` bytes. */
static void
look(WsSortState *state, int64 memory, TimestampTz now)
{
	WsFigures  *f = state->figures;
	int			batch;
	int			batches;

	f->memory = memory;
	f->share_read = ws_share_read(outerPlanState(state), f->rows_in);
	f->rows_each = ws_share_each(outerPlanState(state));
	f->share_done = ws_share_done(outerPlanState(state), f->share_read, &batch, &batches);
	f->batch = batch;
	f->batches = batches;
	/* known while the first batch is joined */
	f->uneven |= batches > 0 && batch == 0 && f->share_read < 0 && f->share_done >= 0;
	if (f->uneven)
		f->share_read = -1;
	if (batch > 0 && f->turned_at == 0)
	{
		f->turned = batch;
		f->turned_at = now;
	}
	f->looked_rows = f->rows_in;
	f->looked_at = now;
}

/* The few rows that are kept have been sorted, of all that the input had. */
static void
have_few(WsSortState *state)
{
	WsSortStats *stats = &state->stats;

	memset(stats, 0, sizeof(WsSortStats));
	stats->runs.entries = ws_few_rows(state->few);
	if (ws_few_bounded(state->few))
	{
		stats->wanted = state->request->wanted;
		stats->passed = state->figures->rows_in - stats->runs.entries;
	}
	state->figures->memory = ws_few_bytes(state->few);
	stats->memory = ws_few_peak(state->few);
	stats->entry_bytes = sizeof(WsEntry);
	stats->few = true;
	state->has_stats = true;
	state->store = "few rows";
	ws_track_stage(state->track, WS_STAGE_OUTPUT);
}

/* The few rows that are all are sorted. */
static void
sort_few(WsSortState *state)
{
	state->figures->rows_in = ws_few_rows(state->few);
	ws_track_stage(state->track, WS_STAGE_SORT);
	ws_few_sort(state->few);
	have_few(state);
}

/* Would the rows that a LIMIT asks for fit work_mem, as PostgreSQL sorts, for all that the planner knew? */
static bool
bound_fits(const WsSortState *state)
{
	int			width = Max(state->request->width, state->css.ss.ps.plan->plan_width);

	return state->request->wanted > 0 && (double) state->request->wanted *
		(MAXALIGN(width) + MAXALIGN(SizeofHeapTupleHeader)) <= work_mem * 1024.0;
}

/*
 * Sorts the rows that a LIMIT asks for, out of those that are kept, and all others.  False if the large
 * sort is to have them (ws_few_put): what is kept then are the first of what has come, and the input goes
 * on behind it.
 */
static bool
sort_bounded(WsSortState *state)
{
	PlanState  *outer = outerPlanState(state);
	WsFigures  *figures = state->figures;
	TimestampTz looked = 0;
	TupleTableSlot *slot;
	WsInput		input;
	MemoryContext old;
	bool		fit = true;

	figures->rows_in = ws_few_rows(state->few);
	ws_few_bound(state->few);
	old = MemoryContextSwitchTo(ws_few_context(state->few));
	ws_input_begin(&input, outer);
	MemoryContextSwitchTo(old);
	while (fit && (slot = ws_input_next(&input)) != NULL)
	{
		fit = ws_few_put(state->few, slot);
		if (unlikely(++figures->rows_in % WS_CLOCK_ROWS == 0) && is_time(figures, &looked))
			look(state, ws_few_bytes(state->few), looked);
	}
	if (!fit)
		return false;
	if (input.prefetch != NULL)
		state->prefetched = ws_prefetch_count(input.prefetch);
	ws_track_stage(state->track, WS_STAGE_SORT);
	ws_few_sort(state->few);
	have_few(state);
	return true;
}

/* Sorts the rows that are kept, and all others of the input. */
static void
sort_many(WsSortState *state)
{
	PlanState  *outer = outerPlanState(state);
	WsFigures  *figures = state->figures;
	MemoryContext old = CurrentMemoryContext;
	WsSort	   *sort;
	WsInput		input;
	TimestampTz looked = 0;
	TupleTableSlot *slot;

	ws_request_resolve(state->request, outer, state->rel);
	ws_track_store(state->track, state->request);
	state->foretold = (WsForetold) {ws_frequent_values, state};
	state->request->foretold = &state->foretold;
	if (ws_track_sorts && !state->foreseen)
		ws_track_foresee(state->track, ws_foresee_output(state));
	state->foreseen = true;
	ws_memory_keep(state->request->memory);
	sort = ws_sort_create(state->request, ExecGetResultType(outer), state->rel);
	MemoryContextSwitchTo(sort->sorter->context);
	ws_input_begin(&input, outer);
	MemoryContextSwitchTo(old);
	if (state->few != NULL)
	{
		for (int64 i = 0; i < ws_few_rows(state->few); i++)
		{
			CHECK_FOR_INTERRUPTS();
			ws_sort_put(sort, ws_few_row(state->few, i));
		}
		sort->sorter->dropped = (uint64) (figures->rows_in - ws_few_rows(state->few));
		ws_few_end(state->few);
	}
	while ((slot = ws_input_next(&input)) != NULL)
	{
		if (unlikely(figures->rows_in == 0))
			ws_track_first_row(state->track);
		ws_sort_put(sort, slot);
		if (unlikely(++figures->rows_in % WS_CLOCK_ROWS == 0) && is_time(figures, &looked))
			look(state, ws_sort_memory(sort), looked);
	}
	figures->memory = ws_sort_memory(sort);
	ws_track_stage(state->track, WS_STAGE_SORT);
	if (input.prefetch != NULL)
		state->prefetched = ws_prefetch_count(input.prefetch);
	state->store = sort->sorter->store->ops->name;
	ws_sort_perform(sort);
	ws_sort_stats(sort, &state->stats);
	state->has_stats = true;
	state->sort = sort;
	figures->memory = ws_sort_memory(sort);
	ws_track_stage(state->track, WS_STAGE_OUTPUT);
}

/* Reads the whole input and sorts it. */
static void
sort_input(WsSortState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	PlanState  *outer = outerPlanState(state);
	ScanDirection direction = estate->es_direction;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	bool		first = state->track == NULL;

	estate->es_direction = ForwardScanDirection;
	if (first)
	{
		watch_sorts(state);
		state->few = ws_few_create(outer, state->rel, state->request);
	}
	/* of the sort before */
	state->request->copies = false;
	state->request->bound = NULL;
	state->prefetched = 0;
	state->request->wanted = rows_wanted(state);
	ws_note_keys(state);
	ws_track_begin(state->track, state->request);
	state->figures = state->request->watch->figures;
	MemoryContextSwitchTo(old);
	state->request->memory = (Size) work_mem * 1024;
	if (state->few != NULL && ws_few_read(state->few, outer, state->track))
		sort_few(state);
	else if (state->few == NULL || !bound_fits(state) || !sort_bounded(state))
		sort_many(state);
	estate->es_direction = direction;
}

/* The next row, or the one before, into the node's slot; false if there is none. */
static bool
get_row(WsSortState *state)
{
	ScanState  *ss = &state->css.ss;
	bool		forward = !ScanDirectionIsBackward(ss->ps.state->es_direction);

	if (state->sort != NULL)
	{
		if (!ws_sort_get(state->sort, forward, ss->ss_ScanTupleSlot))
			return false;
		show_output(state, ws_sort_position(state->sort));
		return true;
	}
	if (!ws_few_get(state->few, forward, ss->ss_ScanTupleSlot))
		return false;
	show_output(state, ws_few_position(state->few));
	return true;
}

static TupleTableSlot *
exec_sort(CustomScanState *node)
{
	WsSortState *state = (WsSortState *) node;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	ProjectionInfo *projection = node->ss.ps.ps_ProjInfo;

	if (unlikely(state->sort == NULL) && !ws_few_sorted(state->few))
		sort_input(state);
	if (!get_row(state))
	{
		ws_track_drained(state->track);
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

/* The sort, if there is one, has ended in order: counts it. */
static void
finish_sort(WsSortState *state)
{
	if (state->sort != NULL)
		ws_sort_stats(state->sort, &state->stats);
	else if (!ws_few_sorted(state->few))
		return;
	ws_track_end(state->track, state->request, &state->stats);
	if (ws_log_min_temp >= 0 && state->keys != NIL && state->stats.disk >= (int64) ws_log_min_temp * 1024)
		ws_log_sort(state);
	if (state->sort != NULL)
		ws_sort_destroy(state->sort);
	else
		ws_few_end(state->few);
	state->sort = NULL;
	state->figures = NULL;		/* a slot that is another sort's now */
}

static void
end_sort(CustomScanState *node)
{
	WsSortState *state = (WsSortState *) node;

	forget_result(state);
	finish_sort(state);
	ws_track_close(state->track);
	ExecEndNode(outerPlanState(node));
}

/* As ExecReScanSort: sort again only if the input may have changed. */
static void
rescan_sort(CustomScanState *node)
{
	WsSortState *state = (WsSortState *) node;
	PlanState  *outer = outerPlanState(node);
	uint64		sorted = state->request->wanted;
	uint64		wanted;

	if (state->sort == NULL && !ws_few_sorted(state->few))
		return;					/* ExecProcNode rescans the input if need be */

	forget_result(state);
	wanted = rows_wanted(state);
	if (outer->chgParam != NULL || !state->request->random_access ||
		((state->sort != NULL || ws_few_bounded(state->few)) && sorted > 0 &&
		 (wanted == 0 || wanted > sorted)))
	{
		finish_sort(state);
		if (outer->chgParam == NULL)
			ExecReScan(outer);
	}
	else if (state->sort != NULL)
		ws_sorter_rewind(state->sort->sorter);
	else
		ws_few_rewind(state->few);
}

static void
mark_sort(CustomScanState *node)
{
	WsSortState *state = (WsSortState *) node;

	if (state->sort != NULL)
		ws_sorter_mark(state->sort->sorter);
	else if (ws_few_sorted(state->few))
		ws_few_mark(state->few);
}

static void
restore_sort(CustomScanState *node)
{
	WsSortState *state = (WsSortState *) node;

	if (state->sort != NULL)
		ws_sorter_restore(state->sort->sorter);
	else if (ws_few_sorted(state->few))
		ws_few_restore(state->few);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "WiscSort",
	.BeginCustomScan = begin_sort,
	.ExecCustomScan = exec_sort,
	.EndCustomScan = end_sort,
	.ReScanCustomScan = rescan_sort,
	.MarkPosCustomScan = mark_sort,
	.RestrPosCustomScan = restore_sort,
	.EstimateDSMCustomScan = ws_gathered_estimate,
	.InitializeDSMCustomScan = ws_gathered_create,
	.InitializeWorkerCustomScan = ws_gathered_attach,
	.ShutdownCustomScan = ws_gathered_write,
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
