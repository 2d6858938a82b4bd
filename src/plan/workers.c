/*-------------------------------------------------------------------------
 * workers.c - one sort in the leader, or one in each parallel worker.
 *
 * Core decides that by parallel_tuple_cost, which is charged for a row of any width, and by the costs of what
 * a scan evaluates, which are next to nothing for most functions.  Handing over a row of 1 kB takes four
 * times as long as one of 50 bytes; a regular expression, or a function of text, takes as long as the sort
 * (docs/decisions/30-cost-model.md).
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "utils/lsyscache.h"

/* What a function of values by reference takes beyond its cpu_operator_cost, in these; how many count. */
#define DEAR_CALL		40
#define MOST_CALLS		3

/* Is a type passed by reference? */
static bool
by_reference(Oid type)
{
	return OidIsValid(type) && !get_typbyval(type);
}

/* Calls of functions in an expression. */
typedef struct Calls
{
	PlannerInfo *root;
	int			dear;			/* they are charged like an integer's comparison, and take much longer */
} Calls;

/* Counts dear calls. */
static bool
count_dear(Node *node, void *context)
{
	Calls	   *calls = context;
	QualCost	charged = {0, 0};
	Oid			function = InvalidOid;
	bool		plain = false;

	if (node == NULL)
		return false;
	if (IsA(node, FuncExpr))
		function = ((FuncExpr *) node)->funcid;
	else if (IsA(node, OpExpr))
	{
		function = get_opcode(((OpExpr *) node)->opno);
		plain = get_op_btree_interpretation(((OpExpr *) node)->opno) != NIL;
	}
	if (OidIsValid(function) && !plain)
		add_function_cost(calls->root, function, node, &charged);
	if (OidIsValid(function) && !plain && charged.per_tuple <= cpu_operator_cost)
	{
		bool		dear = by_reference(exprType(node));
		ListCell   *lc;

		foreach(lc, IsA(node, FuncExpr) ? ((FuncExpr *) node)->args : ((OpExpr *) node)->args)
			dear = dear || by_reference(exprType(lfirst(lc)));
		calls->dear += dear;
	}
	return expression_tree_walker(node, count_dear, context);
}

/*
 * What the conditions on the rows of `rel`, the only relation of its level, take that nobody has charged for;
 * 0 if workers cannot share it.
 */
Cost
ws_hidden_cost(PlannerInfo *root, const RelOptInfo *rel)
{
	Calls		calls = {root, 0};
	ListCell   *lc;

	if (ws_debug_force || rel->reloptkind != RELOPT_BASEREL || rel->partial_pathlist == NIL ||
		bms_membership(root->all_baserels) != BMS_SINGLETON)
		return 0;
	foreach(lc, rel->baserestrictinfo)
		(void) count_dear((Node *) lfirst_node(RestrictInfo, lc)->clause, &calls);
	return DEAR_CALL * cpu_operator_cost * Min(calls.dear, MOST_CALLS) * rel->tuples;
}

/*
 * Who is to sort the rows of `rel` by `pathkeys`, which one WiscSort does for `serial`?  WS_BY_ANY where that
 * is not ours to say: below joins and groups, under a LIMIT, and where workers cannot.  `input` is the
 * cheapest scan that workers share, or NULL.
 */
WsSorters
ws_who_sorts(PlannerInfo *root, RelOptInfo *rel, Path *input, List *pathkeys, Cost serial)
{
	const Query *q = root->parse;
	Cost		hidden;
	Cost		shared;
	CustomPath *sort;

	if (ws_debug_force || input == NULL || !enable_gathermerge || rel->reloptkind != RELOPT_BASEREL ||
		bms_membership(root->all_baserels) != BMS_SINGLETON || q->groupClause != NIL ||
		q->groupingSets != NIL || q->hasAggs || q->distinctClause != NIL || q->limitCount != NULL ||
		root->tuple_fraction > 0 ||
		!ws_ordering_computable(root, rel, pathkeys, true) ||
		ws_any_stays_compared(root, pathkeys, rel->rows))
		return WS_BY_ANY;
	sort = ws_wrap_sort(root, create_sort_path(root, rel, input, pathkeys, -1.0), WS_NO_BOUND);
	hidden = ws_hidden_cost(root, rel);
	shared = sort->path.total_cost + hidden * input->rows / Max(rel->rows, 1) + parallel_setup_cost +
		parallel_tuple_cost * ws_hand_over(rel->reltarget->width) * rel->rows;
	return shared < serial + hidden ? WS_BY_WORKERS : WS_BY_ONE;
}
