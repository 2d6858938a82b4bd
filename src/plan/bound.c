/*-------------------------------------------------------------------------
 * bound.c - how many rows a LIMIT is going to ask a sort for.
 *
 * Core's Sort is told when the query runs.  A WiscSort evaluates the clauses itself (finish.c hands them
 * down), so that one whose number is not known yet may be planned all the same: it can be one as fast as
 * core's heap of few rows.  But not where the clauses might come to something else the second time, as a
 * function that is not immutable may, or where a worker cannot evaluate them: there the sort would never be
 * told, and is left to core.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"

/* Does an expression have a parameter that another node sets? */
static bool
has_exec_param(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param))
		return ((Param *) node)->paramkind != PARAM_EXTERN;
	return expression_tree_walker(node, has_exec_param, context);
}

/* Does a clause come to the same again, in a node below, or even (`parallel`) in a worker? */
static bool
may_be_evaluated(Node *clause, bool parallel)
{
	return !contain_mutable_functions(clause) && !contain_subplans(clause) &&
		(!parallel || !has_exec_param(clause, NULL));
}

/* Can a sort below a LIMIT of these clauses, perhaps in a parallel worker, be told how many rows that are? */
bool
ws_limit_told(Node *count, Node *offset, bool parallel)
{
	return may_be_evaluated(count, parallel) && may_be_evaluated(offset, parallel);
}

/* The number of rows that a LIMIT of these clauses, of the option LIMIT_OPTION_COUNT, asks a sort for. */
double
ws_limit_bound(Node *count, Node *offset, bool parallel)
{
	double		bound;

	if (count == NULL)
		return WS_NO_BOUND;
	if (!IsA(count, Const) || (offset != NULL && !IsA(offset, Const)))
		return ws_limit_told(count, offset, parallel) ? WS_UNKNOWN_BOUND : WS_UNTOLD_BOUND;
	if (((Const *) count)->constisnull)
		return WS_NO_BOUND;		/* LIMIT ALL */
	bound = (double) DatumGetInt64(((Const *) count)->constvalue);
	if (offset != NULL && !((Const *) offset)->constisnull)
		bound += (double) DatumGetInt64(((Const *) offset)->constvalue);
	return Max(bound, 1.0);
}

/* A bound as it is in a parallel worker, of a LIMIT of a query level, or of the one above it. */
double
ws_bound_in_worker(PlannerInfo *root, double bound)
{
	const Query *parse = root->parse;

	if (parse->limitCount == NULL && root->parent_root != NULL)
		parse = root->parent_root->parse;
	return bound == WS_UNKNOWN_BOUND && !ws_limit_told(parse->limitCount, parse->limitOffset, true) ?
		WS_UNTOLD_BOUND : bound;
}

/*
 * The number of rows that the level above will take of a subquery: a
 * SubqueryScan passes a LIMIT on (ExecSetTupleBound), and the planner passes
 * the number down as tuple_fraction.
 */
double
ws_inherited_bound(PlannerInfo *root)
{
	const Query *outside = root->parent_root != NULL ? root->parent_root->parse : NULL;

	if (outside == NULL || root->tuple_fraction <= 0 || outside->limitCount == NULL)
		return WS_NO_BOUND;
	if (root->tuple_fraction >= 1)
		return root->tuple_fraction;
	return ws_limit_told(outside->limitCount, outside->limitOffset, false) ? WS_UNKNOWN_BOUND :
		WS_UNTOLD_BOUND;
}

/* How many rows the query's LIMIT asks for of a sort of its only relation in the order of the query. */
double
ws_query_bound(PlannerInfo *root, bool parallel)
{
	Query	   *parse = root->parse;
	double		bound;

	if (bms_membership(root->all_baserels) != BMS_SINGLETON ||
		parse->groupClause || parse->groupingSets || parse->distinctClause ||
		parse->hasAggs || parse->hasWindowFuncs || parse->hasTargetSRFs)
		return WS_NO_BOUND;
	bound = parse->limitCount == NULL ? ws_inherited_bound(root) :
		root->limit_tuples > 0 ? root->limit_tuples :
		ws_limit_told(parse->limitCount, parse->limitOffset, false) ? WS_UNKNOWN_BOUND : WS_UNTOLD_BOUND;
	return parallel ? ws_bound_in_worker(root, bound) : bound;
}
