/*-------------------------------------------------------------------------
 * lookups.c - nested loops that look rows up by an index, for rows that a WiscSort has put in another order.
 *
 * A sort may be below a nested loop that keeps its order, or above it.  Below, rows come to the loop in the
 * order of the sort.  Rows of one order in their table often have keys of one order (customers and their
 * orders, orders and their lines), and lookups of these find the pages that the one before has read; after
 * the sort each lookup goes to other pages.  The planner's costs of a loop know nothing of that, as core's
 * Sort costs so much that the question hardly comes up.  A WiscSort is cheap, and where lookups are dear,
 * both plans cost the same within the planner's 1 %, so that it keeps only the one with an order.
 *
 * So a loop over sorted rows is charged for each lookup, as far as the table's order was that of the keys
 * that are looked up, and the other table does not fit shared_buffers.  The loop over the rows as they come
 * from the table stays beside it.
 *
 * Measured: docs/decisions/30-cost-model.md.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"

/* A lookup that is not near the one before reads so many pages more: of the index, and of the table. */
#define PAGES_OF_LOOKUP		2

static set_join_pathlist_hook_type next_join_hook = NULL;

/* The WiscSort of a table's rows, in the order of the table, that a path gets its order from; or NULL. */
static const CustomPath *
sort_below(const Path *path)
{
	const Path *input;

	while (!ws_is_wiscsort(path))
	{
		if (IsA(path, NestPath))
			path = ((const NestPath *) path)->jpath.outerjoinpath;
		else if (IsA(path, ProjectionPath))
			path = ((const ProjectionPath *) path)->subpath;
		else
			return NULL;
	}
	input = linitial_node(SortPath, ((const CustomPath *) path)->custom_paths)->subpath;
	if (IsA(input, ProjectionPath))
		input = ((const ProjectionPath *) input)->subpath;
	if (input->pathtype != T_SeqScan && input->pathtype != T_BitmapHeapScan)
		return NULL;
	return (const CustomPath *) path;
}

/*
 * The pages of the table in which a path looks up rows with parameters; 0 if it does nothing of the kind, or
 * if the rows of each key are looked up once (Memoize).  *lookup is set to that path, of one of the
 * partitions.
 */
static double
pages_looked_up(const Path *path, const Path **lookup)
{
	double		pages = 0;
	ListCell   *lc;

	if (path->param_info == NULL)
		return 0;
	if (IsA(path, AppendPath))
	{
		foreach(lc, ((const AppendPath *) path)->subpaths)
			pages += pages_looked_up(lfirst(lc), lookup);
		return pages;
	}
	if (!IsA(path, IndexPath) && !IsA(path, BitmapHeapPath))
		return 0;
	*lookup = path;
	return (double) path->parent->pages;
}

/* How far the order of the table, which the sort takes away, was that of what `inner` looks up: 0 to 1. */
static double
order_lost(PlannerInfo *root, const CustomPath *sort, const Path *inner)
{
	const RelOptInfo *rel = sort->path.parent;
	const EquivalenceClass *first = linitial_node(PathKey, sort->path.pathkeys)->pk_eclass;
	double		lost = 0;
	ListCell   *lc;

	foreach(lc, inner->param_info->ppi_clauses)
	{
		const RestrictInfo *ri = lfirst_node(RestrictInfo, lc);
		double		order;
		Node	   *key;

		if (!is_opclause(ri->clause) || list_length(((OpExpr *) ri->clause)->args) != 2)
			continue;
		key = bms_equal(ri->left_relids, rel->relids) ? get_leftop(ri->clause) :
			bms_equal(ri->right_relids, rel->relids) ? get_rightop(ri->clause) : NULL;
		if (key != NULL && IsA(key, RelabelType))
			key = (Node *) ((RelabelType *) key)->arg;
		if (key == NULL || !IsA(key, Var) || ((Var *) key)->varattno <= 0)
			continue;
		/* keys in their order are as good as it gets */
		if (ri->left_ec == first || ri->right_ec == first || ri->parent_ec == first)
			return 0;
		order = ws_correlation(planner_rt_fetch(rel->relid, root)->relid, ((Var *) key)->varattno);
		lost = Max(lost, order);
	}
	return lost * lost;
}

/* The same loop over rows as they come from the table, or NULL. */
static Path *
over_unsorted(PlannerInfo *root, RelOptInfo *joinrel, const NestPath *loop, Path *outer)
{
	const Path *sorted = loop->jpath.outerjoinpath;
	NestPath   *copy;

	if (outer->param_info != NULL || outer->parallel_workers != sorted->parallel_workers ||
		ws_more_disabled(outer, sorted) || ws_more_disabled(sorted, outer))
		return NULL;
	copy = makeNode(NestPath);
	*copy = *loop;
	copy->jpath.outerjoinpath = outer;
	copy->jpath.path.startup_cost += outer->startup_cost - sorted->startup_cost;
	copy->jpath.path.total_cost += outer->total_cost - sorted->total_cost;
	copy->jpath.path.parallel_safe = loop->jpath.path.parallel_safe && outer->parallel_safe;
	copy->jpath.path.pathkeys = build_join_pathkeys(root, joinrel, loop->jpath.jointype, outer->pathkeys);
	return &copy->jpath.path;
}

/* The cheapest of these paths that has not got its order from a WiscSort. */
static Path *
cheapest_unsorted(List *pathlist)
{
	Path	   *best = NULL;
	ListCell   *lc;

	foreach(lc, pathlist)
	{
		Path	   *path = lfirst(lc);

		if (path->param_info == NULL && sort_below(path) == NULL &&
			(best == NULL || compare_path_costs(path, best, TOTAL_COST) < 0))
			best = path;
	}
	return best;
}

/* Charges loops of a list, with these sides, and puts those over unsorted rows beside them. */
static void
charge_loops(PlannerInfo *root, RelOptInfo *joinrel, List **pathlist, List *outer_paths,
			 const RelOptInfo *inner, JoinType jointype, void (*add) (RelOptInfo *, Path *))
{
	List	   *charged = NIL;
	ListCell   *lc;

	foreach(lc, *pathlist)
	{
		NestPath   *loop = lfirst(lc);
		const CustomPath *sort;
		const Path *lookup;
		Path	   *unsorted;
		double		pages;
		double		share;

		if (!IsA(loop, NestPath) || loop->jpath.jointype != jointype ||
			loop->jpath.innerjoinpath->parent != inner ||
			!list_member_ptr(outer_paths, loop->jpath.outerjoinpath) ||
			(pages = pages_looked_up(loop->jpath.innerjoinpath, &lookup)) == 0 ||
			(sort = sort_below(loop->jpath.outerjoinpath)) == NULL)
			continue;
		share = order_lost(root, sort, lookup) * (1 - NBuffers / pages);
		if (share <= 0)
			continue;
		*pathlist = foreach_delete_current(*pathlist, lc);
		unsorted = cheapest_unsorted(outer_paths);
		if (unsorted != NULL)
			charged = lappend(charged, over_unsorted(root, joinrel, loop, unsorted));
		loop->jpath.path.total_cost += share * PAGES_OF_LOOKUP * seq_page_cost *
			loop->jpath.outerjoinpath->rows;
		charged = lappend(charged, loop);
	}
	foreach(lc, charged)
		if (lfirst(lc) != NULL)
			add(joinrel, lfirst(lc));
}

/* set_join_pathlist_hook: loops over the sorted rows of a table. */
static void
charge_lookups(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outer, RelOptInfo *inner,
			   JoinType jointype, JoinPathExtraData *extra)
{
	if (next_join_hook != NULL)
		next_join_hook(root, joinrel, outer, inner, jointype, extra);
	if (!ws_enable)
		return;
	if (jointype == JOIN_UNIQUE_OUTER || jointype == JOIN_UNIQUE_INNER)
		jointype = JOIN_INNER;
	charge_loops(root, joinrel, &joinrel->pathlist, outer->pathlist, inner, jointype, add_path);
	charge_loops(root, joinrel, &joinrel->partial_pathlist, outer->partial_pathlist, inner, jointype,
				 add_partial_path);
}

/* Joins set_join_pathlist_hook's chain.  Called once. */
void
ws_install_lookup_hook(void)
{
	next_join_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = charge_lookups;
}
