/*-------------------------------------------------------------------------
 * early.c - paths that have their first rows early, beside a WiscSort, which has none before it has read all.
 *
 * The scan of an index may cost more than a WiscSort, and be the better plan nevertheless: for a merge join
 * that ends early, a LIMIT, or a window of which the first rows are asked for.  Core's Sort hardly ever costs
 * less than such a scan, and so PostgreSQL does not ask when the first row comes where a query wants all rows
 * (consider_startup, which is tuple_fraction > 0).  Where there is a WiscSort it has to:
 *
 *	- a relation that gets one, the parents of a partition, and all joins and later steps above it keep
 *	  paths that begin early.  What an early end is worth, the costs of merge joins say
 *	- of other readers that may stop costs say nothing: an index that delivers the order is left to core
 *	- a subquery hands on no more of them than core's sorts would have left (handed.c)
 *
 * Readers outside of a plan are not seen: functions in PL/pgSQL that leave a loop over a query or take its
 * first row (SELECT INTO), clients that ask for some rows.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/geqo.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

/* As good as all rows: what it is makes no difference to a join, but that it is greater than zero. */
#define NEARLY_NONE		1e-10

/*
 * Joins of more relations keep them only if the query asks for that: planning eight took four times as long
 * (docs/decisions/30-cost-model.md).
 */
#define MOST_EARLY		4

static join_search_hook_type next_join_search_hook = NULL;

/* Is a cursor planned, of which some rows may be fetched?  The levels below learn that too late. */
static bool of_cursor = false;

/* Goes up when the planner begins a query, or is through with one. */
static uint64 plannings = 0;

static bool
has_run_condition(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, WindowFunc) && ws_function_run_condition((WindowFunc *) node) != NIL)
		return true;
	return expression_tree_walker(node, has_run_condition, context);
}

/* Do the windows of a query level end when a condition on their result does not hold any more? */
static bool
windows_stop(PlannerInfo *root)
{
	ListCell   *lc;

	if (root->parse->windowClause == NIL)
		return false;
	foreach(lc, root->parse->windowClause)
		if (ws_clause_run_condition(lfirst_node(WindowClause, lc)) != NIL)
			return true;
	return has_run_condition((Node *) root->parse->targetList, NULL);
}

/* Is something in a query that may leave others half read: LIMIT, a window that may stop, EXISTS, IN, ALL? */
static bool
leaves_rows(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		const Query *query = (const Query *) node;

		return query->limitCount != NULL || query->windowClause != NIL ||
			query_tree_walker((Query *) node, leaves_rows, NULL, 0);
	}
	if (IsA(node, SubLink) && (((SubLink *) node)->subLinkType == EXISTS_SUBLINK ||
							   ((SubLink *) node)->subLinkType == ANY_SUBLINK ||
							   ((SubLink *) node)->subLinkType == ALL_SUBLINK))
		return true;
	return expression_tree_walker(node, leaves_rows, NULL);
}

/* Are the WITH queries of a level being planned?  They are the first of all. */
static bool
plans_with_queries(const PlannerInfo *root)
{
	return list_length(root->cte_plan_ids) < list_length(root->parse->cteList);
}

/* A query is going to be planned, for a cursor or not.  Returns what ws_planned_for is to be called with. */
bool
ws_planning_for(bool cursor)
{
	bool		before = of_cursor;

	plannings++;
	of_cursor = cursor;
	return before;
}

/* It has been planned, or has failed. */
void
ws_planned_for(bool before)
{
	plannings++;
	of_cursor = before;
}

/* What has been found out of the planner's structures holds as long as this number. */
uint64
ws_planning_number(void)
{
	return plannings;
}

/* Does a level leave rows?  All of it is looked at, and each of its WITH queries asks: the last is kept. */
static bool
level_leaves_rows(const PlannerInfo *root)
{
	static const Query *asked = NULL;
	static uint64 number = 0;
	static bool leaves = false;

	if (asked != root->parse || number != plannings)
		leaves = leaves_rows((Node *) root->parse, NULL);
	asked = root->parse;
	number = plannings;
	return leaves;
}

/*
 * May whoever reads the rows of this query level stop before the last one, without the planner counting on
 * it?  So it is below windows that stop, and in subqueries of a query that does not want all rows.
 */
bool
ws_read_partly(PlannerInfo *root)
{
	bool		of_with = false;

	if (windows_stop(root))
		return true;
	for (root = root->parent_root; root != NULL; root = root->parent_root)
	{
		/* a WITH query, which may be read by any part of the level that it belongs to, and of those around */
		of_with |= plans_with_queries(root);
		if (of_with &&
			((of_cursor && root->parent_root == NULL) || level_leaves_rows(root)))
			return true;
		/* one row of all */
		if (root->parse->hasAggs && root->parse->groupClause == NIL && root->parse->groupingSets == NIL)
			return false;
		if (root->parse->limitCount != NULL || root->tuple_fraction > 0 || windows_stop(root))
			return true;
	}
	return false;
}

/* Has a relation keep paths that begin early, and all those of which it is a partition or a member. */
static void
keep_in_parents(PlannerInfo *root, RelOptInfo *rel)
{
	rel->consider_startup = true;
	while (root->append_rel_array != NULL && root->append_rel_array[rel->relid] != NULL)
	{
		rel = find_base_rel(root, root->append_rel_array[rel->relid]->parent_relid);
		rel->consider_startup = true;
	}
}

/* Has paths that begin early kept beside a WiscSort of `rel`, and wherever its rows go. */
void
ws_keep_early_paths(PlannerInfo *root, RelOptInfo *rel)
{
	static const UpperRelationKind later[] = {UPPERREL_GROUP_AGG, UPPERREL_WINDOW, UPPERREL_DISTINCT,
	UPPERREL_ORDERED, UPPERREL_FINAL};

	keep_in_parents(root, rel);
	for (; root->parent_root != NULL; root = root->parent_root)
	{
		PlannerInfo *outer = root->parent_root;

		for (int i = 0; i < (int) lengthof(later); i++)
			fetch_upper_rel(root, later[i], NULL)->consider_startup = true;
		/* which of its subqueries this is, is not known yet */
		for (int i = 1; i < outer->simple_rel_array_size; i++)
		{
			RelOptInfo *other = outer->simple_rel_array[i];

			if (other != NULL && other->rtekind == RTE_SUBQUERY && other->subroot == NULL)
				keep_in_parents(outer, other);
		}
	}
}

/* Does a relation keep paths that begin early, though the query wants all rows? */
static bool
keeps_early_paths(PlannerInfo *root)
{
	if (!ws_enable || root->tuple_fraction > 0)
		return false;
	for (int i = 1; i < root->simple_rel_array_size; i++)
		if (root->simple_rel_array[i] != NULL && root->simple_rel_array[i]->consider_startup)
			return true;
	return false;
}

static RelOptInfo *
search_joins(PlannerInfo *root, int levels, List *rels)
{
	bool		early = levels <= MOST_EARLY && keeps_early_paths(root);
	RelOptInfo *joined;

	/* joins are made for it (build_join_rel); partitionwise ones look at it, and consider a path twice */
	if (early)
		root->tuple_fraction = NEARLY_NONE;
	if (next_join_search_hook != NULL)
		joined = next_join_search_hook(root, levels, rels);
	else if (enable_geqo && levels >= geqo_threshold)
		joined = geqo(root, levels, rels);
	else
		joined = standard_join_search(root, levels, rels);
	if (early)
		root->tuple_fraction = 0;
	return joined;
}

/* Joins join_search_hook's chain.  Called once. */
void
ws_install_join_hook(void)
{
	next_join_search_hook = join_search_hook;
	join_search_hook = search_joins;
}
