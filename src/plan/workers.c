/*-------------------------------------------------------------------------
 * workers.c - one sort in the leader, or one in each parallel worker.
 *
 * Core decides that by parallel_tuple_cost, which is charged for a row of any width, and by the costs of what
 * a scan evaluates, which are next to nothing for most functions.  Handing over a row of 1 kB takes
 * several times as long as one of 50 bytes; a regular expression, or a function of text, takes as long as the
 * sort.  And where there is too little memory for helper threads, workers are what takes their place
 * (docs/decisions/30-cost-model.md).
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "exec/request.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "optimizer/restrictinfo.h"
#include "os/os.h"
#include "utils/lsyscache.h"

/* Of parallel_tuple_cost, what handing over a row takes, and what each 1,000 bytes of it take beyond that. */
#define HAND_OVER		0.4
#define HAND_OVER_WIDE	1.2

/* What a function of values by reference takes beyond its cpu_operator_cost, in these; how many count. */
#define DEAR_CALL		40
#define MOST_CALLS		3

/* Of parallel_tuple_cost, what core charges for a row that Gather Merge hands over. */
#define GATHER_MERGE	1.05

/* Of what a sort is charged, what it takes beyond that where there is no memory for helper threads. */
#define WITHOUT_HELPER	1.5

/* Of what one process with helper threads is charged for a sort, what each of several takes without any. */
#define NO_HELPERS		1.25

/* Of core's sort, the most and the least that is taken for less: add_path takes a hundredth for nothing. */
#define LESS			0.98
#define LEAST_LESS		0.97

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

/* What evaluating these for a row takes that nobody has charged for. */
static Cost
hidden_cost(PlannerInfo *root, List *exprs)
{
	Calls		calls = {root, 0};
	ListCell   *lc;

	foreach(lc, exprs)
		(void) count_dear(lfirst(lc), &calls);
	return DEAR_CALL * cpu_operator_cost * Min(calls.dear, MOST_CALLS);
}

/* The same of what `path` makes of its input's rows. */
Cost
ws_hidden_result_cost(PlannerInfo *root, const Path *path)
{
	return hidden_cost(root, path->pathtarget->exprs) * path->rows;
}

/*
 * What the conditions that `scan` evaluates, and what it makes of its rows, take that nobody has charged for:
 * of one that reads the whole table, which workers could share; else 0.
 */
Cost
ws_hidden_cost(PlannerInfo *root, const Path *scan)
{
	const RelOptInfo *rel = scan->parent;
	Cost		cost;

	if (scan->pathtype != T_SeqScan || !IS_SIMPLE_REL(rel) || rel->partial_pathlist == NIL)
		return 0;
	cost = ws_hidden_result_cost(root, scan);
	if (rel->baserestrictinfo != NIL)
		cost += hidden_cost(root, extract_actual_clauses(rel->baserestrictinfo, false)) * rel->tuples *
			scan->rows / Max(rel->rows, 1);
	return cost;
}

/*
 * Are the rows of `rel`, by `pathkeys`, the result of the query or of a LIMIT, in an order that no comparison
 * function makes?  Not below joins and groups.
 */
static bool
is_result(PlannerInfo *root, const RelOptInfo *rel, List *pathkeys)
{
	const Query *q = root->parse;

	return !ws_debug_force && enable_gathermerge && IS_SIMPLE_REL(rel) &&
		bms_membership(root->all_baserels) == BMS_SINGLETON && q->groupClause == NIL &&
		q->groupingSets == NIL && !q->hasAggs && q->distinctClause == NIL &&
		!ws_any_stays_compared(root, pathkeys, rel->rows);
}

/* Is it ours to say who sorts them?  Not where perhaps only some are wanted. */
static bool
may_choose(PlannerInfo *root, const RelOptInfo *rel, List *pathkeys)
{
	return root->parse->limitCount == NULL && root->tuple_fraction <= 0 &&
		is_result(root, rel, pathkeys) && !ws_read_partly(root);
}

/* What a sort takes beyond its charge. */
static Cost
beyond(Cost charged)
{
	return work_mem * (Size) 1024 < WS_HELPER_MEMORY ? WITHOUT_HELPER * charged : 0;
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
 * What a WiscSort of a table's rows takes beyond its charge, where it is ours to say whether workers sort
 * them.
 */
Cost
ws_undercharge(PlannerInfo *root, const Path *sort)
{
	const Path *scan = input_of(sort);
	Cost		more = beyond(sort->total_cost - scan->total_cost);

	return more > 0 && scan->parent->partial_pathlist != NIL &&
		may_choose(root, scan->parent, sort->pathkeys) ? more : 0;
}

/*
 * What making a row of the result is charged, where it is more than columns, and in *hidden what it takes
 * beyond that: one process that sorts a table makes all of them, and workers make their own, as core plans
 * it.
 */
static Cost
result_cost(PlannerInfo *root, Cost *hidden)
{
	QualCost	charged = {0, 0};
	List	   *exprs = NIL;
	ListCell   *lc;

	*hidden = 0;
	if (root->parse->hasWindowFuncs || !is_parallel_safe(root, (Node *) root->processed_tlist))
		return 0;
	foreach(lc, root->processed_tlist)
	{
		Node	   *expr = (Node *) lfirst_node(TargetEntry, lc)->expr;
		QualCost	cost;

		if (IsA(expr, Var))
			continue;
		cost_qual_eval_node(&cost, expr, root);
		charged.per_tuple += cost.per_tuple;
		exprs = lappend(exprs, expr);
	}
	*hidden = hidden_cost(root, exprs);
	return charged.per_tuple;
}

/* Of what one process begins for all rows of a table, the part of its partition `rel`. */
static double
share_of(PlannerInfo *root, const RelOptInfo *rel)
{
	const RelOptInfo *table;

	if (rel->reloptkind == RELOPT_BASEREL || bms_membership(rel->top_parent_relids) != BMS_SINGLETON)
		return 1;
	table = find_base_rel(root, bms_singleton_member(rel->top_parent_relids));
	return rel->rows / Max(table->rows, 1);
}

/* The cheapest of these paths that is a WiscSort in this order, or that is none; or NULL. */
static const Path *
cheapest(List *paths, bool sorted, List *pathkeys)
{
	const Path *least = NULL;
	ListCell   *lc;

	foreach(lc, paths)
	{
		const Path *path = lfirst(lc);

		if (ws_is_wiscsort(path) == sorted &&
			(!sorted || compare_pathkeys(path->pathkeys, pathkeys) == PATHKEYS_EQUAL) &&
			(least == NULL || path->total_cost < least->total_cost))
			least = path;
	}
	return least;
}

/*
 * Does a path of `rel` deliver rows in an order, beside ours?  An index in random order takes several times
 * what it is charged, so that nothing that competes with it is to be charged more.
 */
static bool
has_ordered_path(const RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->pathlist)
		if (((const Path *) lfirst(lc))->pathkeys != NIL && !ws_is_wiscsort(lfirst(lc)))
			return true;
	return false;
}

/*
 * Of what a sort by each of so many parallel workers is charged, what it takes: they have no helper threads,
 * and may be more processes than there are processors.  Core charges its own sorts for neither.  Below 1 MB
 * of work_mem, where nobody has helpers, it is what it is charged.
 */
static double
share_in_workers(int workers)
{
	double		processes = ws_processes(workers);
	int			processors = ws_processors();
	double		share = Max(1, processes / processors);

	if (work_mem * (Size) 1024 < WS_HELPER_MEMORY)
		return 1;
	return processors > 1 && ws_max_threads > 0 ? NO_HELPERS * share : share;
}

/*
 * Charges `cpath`, a WiscSort in each of so many parallel workers, or in one process if there are none, what
 * it takes beyond its costs.  It stays cheaper than `sort`, core's own, if it is.
 *
 * Without memory for helpers one process has none either.  ws_workers_sort says who sorts then; but under a
 * LIMIT core compares the two, so both are charged that here.  `rel` is the table that is sorted; NULL if
 * it is something else.
 */
void
ws_charge_workers(PlannerInfo *root, const RelOptInfo *rel, CustomPath *cpath, const Path *sort, int workers)
{
	const Path *input = linitial_node(SortPath, cpath->custom_paths)->subpath;
	Path	   *path = &cpath->path;
	Cost		startup = path->startup_cost - input->total_cost;
	Cost		total = path->total_cost - input->total_cost;
	double		share;
	double		less;

	if (ws_debug_force || path->total_cost >= sort->total_cost)
		return;
	if (work_mem * (Size) 1024 >= WS_HELPER_MEMORY)
		share = workers > 0 ? share_in_workers(workers) : 1;
	else if (rel != NULL && root->parse->limitCount != NULL && is_result(root, rel, path->pathkeys) &&
			 (workers > 0 || cheapest(rel->partial_pathlist, true, path->pathkeys) != NULL) &&
			 !has_ordered_path(rel))
		share = 1 + WITHOUT_HELPER;
	else
		return;
	/* what is cheaper by its own costs stays so */
	less = LEAST_LESS + (LESS - LEAST_LESS) * path->total_cost / sort->total_cost;
	path->startup_cost = Max(path->startup_cost, Min(input->total_cost + share * startup,
													 less * sort->startup_cost));
	path->total_cost = Max(path->total_cost, Min(input->total_cost + share * total, less * sort->total_cost));
	path->startup_cost = Min(path->startup_cost, path->total_cost);
}

/*
 * What scanning and sorting takes a worker; *scan is set to its scan, NULL if it has none to sort.  The scans
 * of partitions are put together before core has workers sort them, so that a partition need not have a
 * sorted path: if it is small for three.
 */
static Cost
cost_in_worker(const RelOptInfo *rel, const CustomPath *serial, const Path **scan)
{
	const Path *sorted = cheapest(rel->partial_pathlist, true, serial->path.pathkeys);
	const Path *all = input_of(&serial->path);

	*scan = sorted != NULL ? input_of(sorted) : rel->reloptkind == RELOPT_BASEREL ? NULL :
		cheapest(rel->partial_pathlist, false, NIL);
	if (sorted != NULL || *scan == NULL)
		return sorted != NULL ? sorted->total_cost : 0;
	return (*scan)->total_cost + share_in_workers((*scan)->parallel_workers) *
		(serial->path.total_cost - all->total_cost) * (*scan)->rows / Max(all->rows, 1);
}

/*
 * Would core have one process sort a partition's rows, by its own costs, `result` for each row of the result
 * among them?  It has no Gather Merge then of all partitions either: what would be left is one sort of all,
 * instead of one for each that is sorted alone.
 */
static bool
drops_gather_merge(const RelOptInfo *rel, const CustomPath *serial, const Path *part, Cost result)
{
	const Path *all = input_of(&serial->path);
	const Path *sort = linitial(serial->custom_paths);
	Cost		sorting = (sort->total_cost - all->total_cost) * part->rows / Max(all->rows, 1);

	return rel->reloptkind != RELOPT_BASEREL &&
		part->total_cost + sorting + result * part->rows + GATHER_MERGE * parallel_tuple_cost * rel->rows >
		sort->total_cost + result * all->rows;
}

/*
 * Are parallel workers to sort the rows of `rel`, and not the one process of `serial`, a WiscSort path?  If
 * they are not, the WiscSort paths that they have in that order go; if it is not ours to say, both stay.
 */
bool
ws_workers_sort(PlannerInfo *root, RelOptInfo *rel, const CustomPath *serial)
{
	List	   *pathkeys = serial->path.pathkeys;
	const Path *all = input_of(&serial->path);
	const Path *part;
	Cost		result;
	Cost		hidden;
	Cost		shared;
	Cost		alone;
	ListCell   *lc;

	if (rel->partial_pathlist == NIL || !may_choose(root, rel, pathkeys))
		return false;
	shared = cost_in_worker(rel, serial, &part);
	result = result_cost(root, &hidden);
	if (part == NULL || drops_gather_merge(rel, serial, part, result))
		return false;
	result += hidden;
	alone = serial->path.total_cost + beyond(serial->path.total_cost - all->total_cost) +
		ws_hidden_cost(root, all) + result * all->rows;
	shared += beyond(shared - part->total_cost) + ws_hidden_cost(root, part) + result * part->rows +
		parallel_setup_cost * share_of(root, rel) +
		parallel_tuple_cost * ws_hand_over(rel->reltarget->width) * rel->rows;
	if (shared < alone)
		return true;
	foreach(lc, rel->partial_pathlist)
	{
		const Path *path = lfirst(lc);

		if (ws_is_wiscsort(path) && compare_pathkeys(path->pathkeys, pathkeys) == PATHKEYS_EQUAL)
			rel->partial_pathlist = foreach_delete_current(rel->partial_pathlist, lc);
	}
	return false;
}
