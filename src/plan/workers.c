/*-------------------------------------------------------------------------
 * workers.c - one sort in the leader, or one in each parallel worker.
 *
 * Core decides that by parallel_tuple_cost, which is charged for a row of any width, and by the costs of what
 * a scan evaluates, which are next to nothing for most functions.  Handing over a row of 1 kB takes
 * several times as long as one of 50 bytes; a regular expression, or a function of text, takes as long as the
 * sort (docs/decisions/30-cost-model.md).
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

/* Of parallel_tuple_cost, what handing over a row takes, and what each 1,000 bytes of it take beyond that. */
#define HAND_OVER		0.4
#define HAND_OVER_WIDE	1.2

/* What a function of values by reference takes beyond its cpu_operator_cost, in these; how many count. */
#define DEAR_CALL		40
#define MOST_CALLS		3

/* Of what core charges for handing rows of `width` bytes from workers to the leader, what that takes. */
double
ws_hand_over(int width)
{
	return HAND_OVER + HAND_OVER_WIDE * width / 1000;
}

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
		plain = ws_op_interpretation(((OpExpr *) node)->opno) != NIL;
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
 * What the conditions that `scan` evaluates take that nobody has charged for: of one that reads the whole
 * table, which workers could share; else 0.
 */
Cost
ws_hidden_cost(PlannerInfo *root, const Path *scan)
{
	const RelOptInfo *rel = scan->parent;
	Calls		calls = {root, 0};
	ListCell   *lc;

	if (scan->pathtype != T_SeqScan || rel->reloptkind != RELOPT_BASEREL || rel->partial_pathlist == NIL)
		return 0;
	foreach(lc, rel->baserestrictinfo)
		(void) count_dear((Node *) lfirst_node(RestrictInfo, lc)->clause, &calls);
	return DEAR_CALL * cpu_operator_cost * Min(calls.dear, MOST_CALLS) * rel->tuples *
		scan->rows / Max(rel->rows, 1);
}

/*
 * Is it ours to say who sorts the rows of `rel` by `pathkeys`?  Not below joins and groups, under a LIMIT,
 * and where comparison functions order them.
 */
static bool
may_choose(PlannerInfo *root, const RelOptInfo *rel, List *pathkeys)
{
	const Query *q = root->parse;

	return !ws_debug_force && enable_gathermerge && rel->reloptkind == RELOPT_BASEREL &&
		bms_membership(root->all_baserels) == BMS_SINGLETON && q->groupClause == NIL &&
		q->groupingSets == NIL && !q->hasAggs && q->distinctClause == NIL && q->limitCount == NULL &&
		root->tuple_fraction <= 0 && !ws_any_stays_compared(root, pathkeys, rel->rows);
}

/* The scan that a WiscSort sorts. */
static const Path *
input_of(const Path *sort)
{
	const Path *path = linitial_node(SortPath, ((const CustomPath *) sort)->custom_paths)->subpath;

	while (IsA(path, ProjectionPath))
		path = ((const ProjectionPath *) path)->subpath;
	return path;
}

/*
 * Are parallel workers to sort the rows of `rel`, and not the one process of `serial`, a WiscSort path?  If
 * they are not, the WiscSort paths that they have in that order go; if it is not ours to say, both stay.
 */
bool
ws_workers_sort(PlannerInfo *root, RelOptInfo *rel, const CustomPath *serial)
{
	List	   *pathkeys = serial->path.pathkeys;
	const Path *least = NULL;
	Cost		shared;
	ListCell   *lc;

	if (rel->partial_pathlist == NIL || !may_choose(root, rel, pathkeys))
		return false;
	foreach(lc, rel->partial_pathlist)
	{
		const Path *path = lfirst(lc);

		if (ws_is_wiscsort(path) && compare_pathkeys(path->pathkeys, pathkeys) == PATHKEYS_EQUAL &&
			(least == NULL || path->total_cost < least->total_cost))
			least = path;
	}
	if (least == NULL)
		return false;
	shared = least->total_cost + ws_hidden_cost(root, input_of(least)) + parallel_setup_cost +
		parallel_tuple_cost * ws_hand_over(rel->reltarget->width) * rel->rows;
	if (shared < serial->path.total_cost + ws_hidden_cost(root, input_of(&serial->path)))
		return true;
	foreach(lc, rel->partial_pathlist)
	{
		const Path *path = lfirst(lc);

		if (ws_is_wiscsort(path) && compare_pathkeys(path->pathkeys, pathkeys) == PATHKEYS_EQUAL)
			rel->partial_pathlist = foreach_delete_current(rel->partial_pathlist, lc);
	}
	return false;
}
