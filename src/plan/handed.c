/*-------------------------------------------------------------------------
 * handed.c - which of its paths a subquery hands on to the query around it.
 *
 * Where a subquery has a WiscSort it keeps paths that begin early (early.c), though the query around it may
 * want all of its rows, and core then keeps a path for its costs in all.  A path that core would have dropped
 * so must not come through: a LIMIT outside takes a share of it that is in proportion to the rows, which is
 * next to nothing, and is wrong if few of them pass what is between (HAVING, a join).  By an index in random
 * order most of the table is read then.
 *
 * So a path without WiscSorts goes if another one, as good in its order, costs less with core's sorts in the
 * place of its WiscSorts.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "compat.h"
#include "optimizer/paths.h"

/* What core's planner takes for a difference of costs. */
#define FUZZ	1.01

/* The one input of a path that has one, or NULL. */
static Path *
input_of(const Path *path)
{
	Path	  **input;

	switch (nodeTag(path))
	{
		case T_ProjectionPath:
			return ((const ProjectionPath *) path)->subpath;
		case T_ProjectSetPath:
			return ((const ProjectSetPath *) path)->subpath;
		case T_SubqueryScanPath:
			return ((const SubqueryScanPath *) path)->subpath;
		case T_SortPath:
			return ((const SortPath *) path)->subpath;
		case T_IncrementalSortPath:
			return ((const IncrementalSortPath *) path)->spath.subpath;
		case T_GroupPath:
			return ((const GroupPath *) path)->subpath;
		case T_AggPath:
			return ((const AggPath *) path)->subpath;
		case T_GroupingSetsPath:
			return ((const GroupingSetsPath *) path)->subpath;
		case T_WindowAggPath:
			return ((const WindowAggPath *) path)->subpath;
		case T_MaterialPath:
			return ((const MaterialPath *) path)->subpath;
		case T_MemoizePath:
			return ((const MemoizePath *) path)->subpath;
		case T_GatherPath:
			return ((const GatherPath *) path)->subpath;
		case T_GatherMergePath:
			return ((const GatherMergePath *) path)->subpath;
		default:
			input = ws_unique_input((Path *) path);
			return input != NULL ? *input : NULL;
	}
}

/* What a path would cost more with core's sorts in the place of its WiscSorts.  Sets *any if it has one. */
static Cost
saved(const Path *path, bool *any)
{
	const List *members = NIL;
	Cost		cost = 0;
	ListCell   *lc;

	for (; path != NULL; path = input_of(path))
		switch (nodeTag(path))
		{
			case T_CustomPath:
				if (!ws_is_wiscsort(path))
					return cost;
				*any = true;
				cost -= path->total_cost;
				path = linitial(((const CustomPath *) path)->custom_paths);
				cost += path->total_cost;
				break;
			case T_MergePath:
			case T_NestPath:
			case T_HashPath:
				return cost + saved(((const JoinPath *) path)->outerjoinpath, any) +
					saved(((const JoinPath *) path)->innerjoinpath, any);
			case T_AppendPath:
			case T_MergeAppendPath:
				members = IsA(path, AppendPath) ? ((const AppendPath *) path)->subpaths :
					((const MergeAppendPath *) path)->subpaths;
				foreach(lc, members)
					cost += saved(lfirst(lc), any);
				return cost;
			default:
				break;
		}
	return cost;
}

/*
 * Drops the paths of a finished subquery that core would not have kept to its end, unless they have a
 * WiscSort.  There is always one left.
 */
void
ws_drop_late_paths(const PlannerInfo *root, RelOptInfo *final_rel)
{
	ListCell   *lc,
			   *lc2;

	/* core itself looks for early ends if not all rows are wanted */
	if (root->parent_root == NULL || root->tuple_fraction > 0)
		return;
	foreach(lc, final_rel->pathlist)
	{
		const Path *path = lfirst(lc);
		bool		sorts = false;
		bool		late = false;

		(void) saved(path, &sorts);
		foreach(lc2, sorts ? NIL : final_rel->pathlist)
		{
			const Path *other = lfirst(lc2);

			late |= path->total_cost > FUZZ * (other->total_cost + saved(other, &sorts)) &&
				pathkeys_contained_in(path->pathkeys, other->pathkeys) &&
				other->parallel_safe >= path->parallel_safe && !ws_more_disabled(other, path);
		}
		if (late)
			final_rel->pathlist = foreach_delete_current(final_rel->pathlist, lc);
	}
}
