/*-------------------------------------------------------------------------
 * finish.c - last touches to a finished plan.
 *
 * EXPLAIN finds the meaning of a custom scan's columns in custom_scan_tlist.
 * The planner requires expressions there that are equal to those of the
 * input's target list, and above a set operation these are Vars of no
 * relation, which cannot be deparsed: "bogus varno".  Core's own nodes say
 * "column n of the outer plan" instead, once setrefs.c is through; so this
 * walks the plan when planning has ended and writes the same into our nodes.
 *
 * Execution does not depend on that: only the types of custom_scan_tlist
 * matter there, and they stay.  It does depend on the other touches.  One keeps
 * columns apart that their expressions do not tell apart (match_by_position), one
 * says how many rows a LIMIT asks for (hand_down).  And statistics want to know
 * which query a node is of.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "exec/request.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/planner.h"
#include "utils/backend_status.h"

static planner_hook_type next_planner_hook = NULL;

/* This process has made a node of ours; until then there is nothing to find. */
static bool made_nodes = false;

static void finish(Plan *plan, int64 query);

/*
 * Of a node that projects nothing, because its columns cannot be told apart by their expressions
 * (is_ambiguous in path.c): each column is that of the same position, as of core's Sort.  setrefs.c has taken
 * the first of several that are equal, and left constants.
 */
static void
match_by_position(CustomScan *cscan)
{
	List	   *input = cscan->custom_scan_tlist;
	ListCell   *lc;

	if (cscan->flags & CUSTOMPATH_SUPPORT_PROJECTION)
		return;
	foreach(lc, cscan->scan.plan.targetlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);
		Var		   *var = (Var *) tle->expr;

		if (tle->resno > list_length(input))
			continue;
		if (IsA(var, Var) && var->varno == INDEX_VAR &&
			equal(list_nth_node(TargetEntry, input, var->varattno - 1)->expr,
				  list_nth_node(TargetEntry, input, tle->resno - 1)->expr))
			var->varattno = tle->resno;
		else if (IsA(var, Const) && equal(var, list_nth_node(TargetEntry, input, tle->resno - 1)->expr))
			tle->expr = (Expr *) makeVarFromTargetEntry(INDEX_VAR, list_nth(input, tle->resno - 1));
	}
}

/*
 * Has our nodes below a LIMIT know how many rows it is going to ask for: its clauses, which they evaluate
 * (exec/node.c).  That reaches as far down as in ExecSetTupleBound, which knows no custom scans.
 */
static void
hand_down(Plan *plan, const Limit *limit, bool parallel)
{
	CustomScan *cscan = (CustomScan *) plan;
	ListCell   *lc;

	if (plan == NULL || plan->qual != NIL)
		return;
	switch (nodeTag(plan))
	{
		case T_Result:
			hand_down(outerPlan(plan), limit, parallel);
			break;
		case T_Gather:
		case T_GatherMerge:
			hand_down(outerPlan(plan), limit, true);
			break;
		case T_SubqueryScan:
			hand_down(((SubqueryScan *) plan)->subplan, limit, parallel);
			break;
		case T_Append:
			foreach(lc, ((Append *) plan)->appendplans)
				hand_down(lfirst(lc), limit, parallel);
			break;
		case T_MergeAppend:
			foreach(lc, ((MergeAppend *) plan)->mergeplans)
				hand_down(lfirst(lc), limit, parallel);
			break;
		case T_CustomScan:
			if (cscan->methods == &ws_scan_methods &&
				ws_limit_told(limit->limitCount, limit->limitOffset, parallel))
				cscan->custom_exprs = list_make2(copyObject(limit->limitCount), limit->limitOffset != NULL ?
												 copyObject(limit->limitOffset) :
												 (Node *) makeNullConst(INT8OID, -1, InvalidOid));
			break;
		default:
			break;
	}
}

static void
finish_list(List *plans, int64 query)
{
	ListCell   *lc;

	foreach(lc, plans)
		finish(lfirst(lc), query);
}

/* Finishes a plan of the query with this identifier. */
static void
finish(Plan *plan, int64 query)
{
	if (plan == NULL)
		return;
	check_stack_depth();
	switch (nodeTag(plan))
	{
		case T_Limit:
			if (((Limit *) plan)->limitCount != NULL &&
				((Limit *) plan)->limitOption == LIMIT_OPTION_COUNT)
				hand_down(outerPlan(plan), (Limit *) plan, false);
			break;
		case T_Append:
			finish_list(((Append *) plan)->appendplans, query);
			break;
		case T_MergeAppend:
			finish_list(((MergeAppend *) plan)->mergeplans, query);
			break;
		case T_SubqueryScan:
			finish(((SubqueryScan *) plan)->subplan, query);
			break;
		case T_CustomScan:
			{
				CustomScan *cscan = (CustomScan *) plan;
				List	   *tlist = NIL;
				ListCell   *lc;

				finish_list(cscan->custom_plans, query);
				if (cscan->methods != &ws_scan_methods)
					break;
				ws_request_note_query(cscan->custom_private, query);
				if (cscan->scan.scanrelid > 0)
					break;
				match_by_position(cscan);
				foreach(lc, outerPlan(plan)->targetlist)
				{
					TargetEntry *tle = flatCopyTargetEntry(lfirst(lc));

					tle->expr = (Expr *) makeVarFromTargetEntry(OUTER_VAR, lfirst(lc));
					tlist = lappend(tlist, tle);
				}
				cscan->custom_scan_tlist = tlist;
				break;
			}
		default:
			break;
	}
	finish(outerPlan(plan), query);
	finish(innerPlan(plan), query);
}

/*
 * The query that sorts of this plan are counted under.  What a utility statement has planned, as DECLARE
 * CURSOR (before PostgreSQL 18), CREATE TABLE AS or REFRESH MATERIALIZED VIEW, may have no identifier of its
 * own.  Then it is that of the client's statement, which pg_stat_statements has.  0: there is none.
 */
static int64
counted_under(const PlannedStmt *stmt)
{
	return stmt->queryId != 0 ? (int64) stmt->queryId : (int64) pgstat_get_my_query_id();
}

static PlannedStmt *
finish_plan(Query *parse, const char *query_string, int cursor_options,
			ParamListInfo params WS_PLANNER_PARAMETER)
{
	PlannedStmt *volatile stmt = NULL;
	bool		noted = ws_note_planning(parse);
	bool		before = ws_planning_for((cursor_options & CURSOR_OPT_FAST_PLAN) != 0);

	PG_TRY();
	{
		if (next_planner_hook != NULL)
			stmt = next_planner_hook(parse, query_string, cursor_options, params WS_PLANNER_ARGUMENT);
		else
			stmt = standard_planner(parse, query_string, cursor_options, params WS_PLANNER_ARGUMENT);
	}
	PG_FINALLY();
	{
		/* a function that the planner evaluates may go on after an error of a query of its own */
		ws_note_planned(parse, stmt, noted);
		ws_planned_for(before);
	}
	PG_END_TRY();
	if (made_nodes)
	{
		int64		query = counted_under(stmt);

		finish(stmt->planTree, query);
		finish_list(stmt->subplans, query);
	}
	return stmt;
}

/* Says that a plan being made has one of our nodes. */
void
ws_plan_has_node(void)
{
	made_nodes = true;
}

/* Joins planner_hook's chain.  Called once. */
void
ws_install_finish_hook(void)
{
	next_planner_hook = planner_hook;
	planner_hook = finish_plan;
}
