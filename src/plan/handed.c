/*-------------------------------------------------------------------------
 * handed.c - which of its paths a subquery hands on to the query around it.
 *
 * Where a subquery has a WiscSort it keeps paths that begin early (early.c), though the query around it may
 * want all of its rows, and core then keeps a path for its costs in all.  A path that core would have dropped
 * so must not come through: a LIMIT outside takes a share of it that is in proportion to the rows, which is
 * next to nothing, and is wrong if few of them pass what is between (HAVING, a join).  By an index in random
 * order most of the table is read then.
 *
 * So a path without WiscSorts goes if another one, as good in its order, costs less even with core's sorts in
 * the place of its WiscSorts.  Core would not have had all of these plans: it sorts below few joins.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "compat.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/paths.h"

/* What core's planner takes for a difference of costs. */
#define FUZZ	1.01

/* What core's sort of the rows of a WiscSort would cost more, if so. */
static Cost
saved_here(const Path *path)
{
	const SortPath *sort = linitial_node(SortPath, ((const CustomPath *) path)->custom_paths);
	Path		core = {.type = T_Path};

	/* of whole rows, even where these stay in their table, and the sort's input has their TIDs and keys */
	ws_cost_core_sort(&core, sort->subpath, path->rows, path->pathtarget->width);
	return Max(0, core.total_cost - path->total_cost);
}

/* The inputs of a path. */
static List *
inputs_of(const Path *path)
{
	Path	  **input;
	List	   *inputs = NIL;

	switch (nodeTag(path))
	{
		case T_MergePath:
		case T_NestPath:
		case T_HashPath:
			return list_make2(((const JoinPath *) path)->outerjoinpath,
							  ((const JoinPath *) path)->innerjoinpath);
		case T_AppendPath:
			return ((const AppendPath *) path)->subpaths;
		case T_MergeAppendPath:
			return ((const MergeAppendPath *) path)->subpaths;
		case T_SetOpPath:
			for (int i = 0; i < WS_SETOP_INPUTS; i++)
				inputs = lappend(inputs, *ws_setop_input((SetOpPath *) path, i));
			return inputs;
		case T_RecursiveUnionPath:
			return list_make2(((const RecursiveUnionPath *) path)->leftpath,
							  ((const RecursiveUnionPath *) path)->rightpath);
		case T_CustomPath:
			return ws_is_wiscsort(path) ?
				list_make1(linitial_node(SortPath, ((const CustomPath *) path)->custom_paths)->subpath) : NIL;
		case T_ProjectionPath:
			return list_make1(((const ProjectionPath *) path)->subpath);
		case T_ProjectSetPath:
			return list_make1(((const ProjectSetPath *) path)->subpath);
		case T_SubqueryScanPath:
			return list_make1(((const SubqueryScanPath *) path)->subpath);
		case T_SortPath:
			return list_make1(((const SortPath *) path)->subpath);
		case T_IncrementalSortPath:
			return list_make1(((const IncrementalSortPath *) path)->spath.subpath);
		case T_GroupPath:
			return list_make1(((const GroupPath *) path)->subpath);
		case T_AggPath:
			return list_make1(((const AggPath *) path)->subpath);
		case T_GroupingSetsPath:
			return list_make1(((const GroupingSetsPath *) path)->subpath);
		case T_WindowAggPath:
			return list_make1(((const WindowAggPath *) path)->subpath);
		case T_MaterialPath:
			return list_make1(((const MaterialPath *) path)->subpath);
		case T_MemoizePath:
			return list_make1(((const MemoizePath *) path)->subpath);
		case T_GatherPath:
			return list_make1(((const GatherPath *) path)->subpath);
		case T_GatherMergePath:
			return list_make1(((const GatherMergePath *) path)->subpath);
		case T_LimitPath:
			return list_make1(((const LimitPath *) path)->subpath);
		case T_LockRowsPath:
			return list_make1(((const LockRowsPath *) path)->subpath);
		default:
			input = ws_unique_input((Path *) path);
			return input != NULL ? list_make1(*input) : NIL;
	}
}

/* What a path would cost more with core's sorts in the place of its WiscSorts.  Sets *any if it has one. */
static Cost
saved(const Path *path, bool *any)
{
	Cost		cost = 0;
	ListCell   *lc;

	check_stack_depth();
	if (ws_is_wiscsort(path))
	{
		*any = true;
		cost = saved_here(path);
	}
	foreach(lc, inputs_of(path))
		cost += saved(lfirst(lc), any);
	return cost;
}

/*
 * Drops the paths of a finished subquery that core would not have kept to its end, unless they have a
 * WiscSort.  There is always one left.
 */
void
ws_drop_late_paths(const PlannerInfo *root, RelOptInfo *final_rel)
{
	List	   *paths = list_copy(final_rel->pathlist);
	int			n = list_length(paths);
	Cost	   *core;			/* of each, if core sorted */
	bool	   *sorts;			/* has it a WiscSort? */

	/* core itself looks for early ends if not all rows are wanted */
	if (n < 2 || root->parent_root == NULL || root->tuple_fraction > 0)
		return;
	core = palloc(n * sizeof(Cost));
	sorts = palloc0(n * sizeof(bool));
	for (int i = 0; i < n; i++)
	{
		const Path *path = list_nth(paths, i);

		core[i] = path->total_cost + saved(path, &sorts[i]);
	}
	for (int i = 0; i < n; i++)
	{
		Path	   *path = list_nth(paths, i);
		bool		late = false;

		for (int j = 0; j < n && !sorts[i] && !late; j++)
		{
			const Path *other = list_nth(paths, j);

			late = path->total_cost > FUZZ * core[j] &&
				pathkeys_contained_in(path->pathkeys, other->pathkeys) &&
				other->parallel_safe >= path->parallel_safe && !ws_more_disabled(other, path);
		}
		if (late)
			final_rel->pathlist = list_delete_ptr(final_rel->pathlist, path);
	}
}
