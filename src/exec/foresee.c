/*-------------------------------------------------------------------------
 * foresee.c - how long a sort's rows will take on their way out, before the first one has.
 *
 * That is for wiscsort.progress, while the input is read.  To what handing out a row takes of the sort
 * itself, by its store, comes what is done with it above: what the planner has charged for the nodes above,
 * up to the first that takes all rows in before it returns one; and, at the top, the conversion to text.
 *
 * The constants are nanoseconds of the machine on which they were fitted (bench/progress), and rough.
 * stat/track.c compares them with what sorts take, and corrects them by that.
 *
 * Goes through the plan once for each node that sorts.  Takes no memory, and raises nothing.
 *-------------------------------------------------------------------------
 */
#include "exec/exec.h"

#include "tcop/cmdtag.h"
#include "tcop/pquery.h"
#include "utils/portal.h"

/* Of a row: by store, and what comes to that. */
#define SPOOL_ROW		31.0
#define INLINE_ROW		55.0
#define HEAP_ROW		240.0
#define KEYS_ROW		20.0
#define MERGED_ROW		40.0
#define BYTE			0.1
#define SENT_ROW		40.0
#define SENT_COLUMN		35.0
/* Of the planner's unit of cost, in the nodes above. */
#define UNIT			4000.0
#define WINDOW_UNIT		10000.0
#define GROUP_UNIT		1500.0

/* Has a node all rows of its input before it returns one? */
static bool
takes_all(const Plan *plan)
{
	return IsA(plan, Hash) || IsA(plan, Sort) ||
		(IsA(plan, Agg) && ((const Agg *) plan)->aggstrategy != AGG_SORTED) ||
		(IsA(plan, CustomScan) &&strcmp(((const CustomScan *) plan)->methods->CustomName, "WiscSort") == 0);
}

/* The inputs of a node that are in a list, or NIL. */
static List *
more_inputs(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Append:
			return ((const Append *) plan)->appendplans;
		case T_MergeAppend:
			return ((const MergeAppend *) plan)->mergeplans;
		case T_CustomScan:
			return ((const CustomScan *) plan)->custom_plans;
		default:
			return NIL;
	}
}

/* The input of a SubqueryScan, or the first one. */
static const Plan *
first_input(const Plan *plan)
{
	return IsA(plan, SubqueryScan) ? ((const SubqueryScan *) plan)->subplan : plan->lefttree;
}

/* What a node takes, in nanoseconds, that has the sort below it. */
static double
own_time(const Plan *plan, bool below_first)
{
	double		unit = IsA(plan, WindowAgg) ? WINDOW_UNIT : IsA(plan, Agg) ? GROUP_UNIT : UNIT;
	double		inputs = 0;
	const Plan *first = first_input(plan);
	ListCell   *lc;

	if (takes_all(plan))
		return Max(plan->startup_cost - (first != NULL ? first->total_cost : 0), 0) * unit;
	if (first != NULL)
		inputs += first->total_cost;
	/* the other side of a merge join is made when the first row has been got from the outer one */
	if (plan->righttree != NULL && !(IsA(plan, MergeJoin) && below_first))
		inputs += plan->righttree->total_cost;
	foreach(lc, more_inputs(plan))
		inputs += ((const Plan *) lfirst(lc))->total_cost;
	return Max(plan->total_cost - inputs, 0) * unit;
}

/*
 * Looks for the node `sort`, by its number, at and below `plan`.  If it is there, adds to *time what is above
 * it takes, and sets *ended if there is a node that takes all.
 */
static bool
go_down(const Plan *plan, int sort, double *time, bool *ended)
{
	bool		first;
	bool		there;
	ListCell   *lc;

	if (plan == NULL || plan->plan_node_id == sort)
		return plan != NULL;
	first = there = go_down(first_input(plan), sort, time, ended);
	if (!there)
		there = go_down(plan->righttree, sort, time, ended);
	foreach(lc, more_inputs(plan))
		there = there || go_down(lfirst(lc), sort, time, ended);
	if (there && !*ended)
	{
		*time += own_time(plan, first);
		*ended = takes_all(plan) || (IsA(plan, NestLoop) && !first);
	}
	return there;
}

/* Do the rows of a query become text, of which the client, or a file, has each? */
static bool
is_sent(const EState *estate)
{
	const QueryDesc *desc = ActivePortal != NULL ? ActivePortal->queryDesc : NULL;

	if (ActivePortal == NULL)
		return false;
	if (desc != NULL && desc->estate == estate)
		return ActivePortal->commandTag == CMDTAG_SELECT;
	return ActivePortal->commandTag == CMDTAG_COPY;
}

/* Nanoseconds that a row of the node is going to take after the input, with all that is done with it. */
double
ws_foresee_output(const WsSortState *state)
{
	const WsRequest *request = state->request;
	const EState *estate = state->css.ss.ps.state;
	const PlannedStmt *stmt = estate->es_plannedstmt;
	int			plan = state->css.ss.ps.plan->plan_node_id;
	double		rows = Max(request->rows, 1);
	double		time = 0;
	bool		ended = false;
	bool		above = go_down(stmt->planTree, plan, &time, &ended);
	bool		top = above && !ended;
	double		ns;
	ListCell   *lc;

	foreach(lc, stmt->subplans)
		above = above || go_down(lfirst(lc), plan, &time, &ended);
	if (request->store == WS_KIND_HEAP && !request->copies)
		ns = HEAP_ROW;
	else if (request->store == WS_KIND_KEYS)
		ns = KEYS_ROW;
	else
		ns = request->allowance == 0 ? INLINE_ROW : SPOOL_ROW;
	if (rows * sizeof(WsEntry) > request->memory)
		ns += MERGED_ROW;
	ns += BYTE * request->width + time / rows;
	if (top && is_sent(estate))
		ns += (SENT_ROW + SENT_COLUMN * list_length(stmt->planTree->targetlist)) *
			stmt->planTree->plan_rows / rows;
	return ns;
}
