/*-------------------------------------------------------------------------
 * rivals.c - what core has to sort by beside its Sort: Incremental Sort, and Sorts of parallel workers.
 *
 * Both are charged by a measure that is not that of WiscSort's costs, so each has a share here that was
 * fitted to what it takes.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

/* Of what core charges for an Incremental Sort beside its input, what it takes. */
#define INCREMENTAL_SHARE	0.4

/*
 * Of what core charges for Sorts of workers and Gather Merge, beside the scan, what one WiscSort of text
 * is charged, which takes less, whoever sorts in the workers (docs/decisions/30-cost-model.md).
 */
#define GATHERED_SHARE		0.85

/*
 * Do rows that `paths` deliver in the order of the first keys make core's Incremental Sort cheaper
 * than a sort that costs `cost`, and than core's own, which costs `core`?  Then why the sort is left to
 * core, else NULL.
 *
 * What core charges for comparisons is too much where they are of numbers in small groups.  Those by a
 * comparison function (`compared`) are charged too little, so these are taken as they are.
 */
const char *
ws_presorted_refusal(PlannerInfo *root, RelOptInfo *rel, List *paths, List *pathkeys, bool compared,
					 Cost cost, Cost core)
{
	double		share = compared ? 1 : INCREMENTAL_SHARE;
	ListCell   *lc;

	if (ws_debug_force || !enable_incremental_sort)
		return NULL;
	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);
		Path	   *sort;
		int			presorted;

		if (path->param_info != NULL || IsA(path, CustomPath) ||
			pathkeys_count_contained_in(pathkeys, path->pathkeys, &presorted) || presorted == 0)
			continue;
		sort = (Path *) create_incremental_sort_path(root, rel, path, pathkeys, presorted, -1.0);
		if (sort->total_cost < core &&
			path->total_cost + share * (sort->total_cost - path->total_cost) < cost)
			return "an Incremental Sort of rows in the order of the first keys takes less";
	}
	return NULL;
}

/*
 * The cost of the cheapest way that core has to sort the rows of `input`, which `sort` does in one process,
 * if all rows are asked for (`wanted` is 0): of a WiscSort in its place, that is, so Gather Merge counts with
 * GATHERED_SHARE.  Only over scans: what joins gain by workers is more than the sort.
 */
Cost
ws_rival_cost(PlannerInfo *root, const Path *input, List *pathkeys, const Path *sort, double wanted)
{
	RelOptInfo *rel = input->parent;
	Path	   *scan = NULL;
	Path	   *path;
	double		rows;
	ListCell   *lc;

	if (wanted > 0 || input->parallel_workers > 0 || !IS_SIMPLE_REL(rel) || !enable_gathermerge ||
		!ws_ordering_computable(root, rel, pathkeys, true))
		return sort->total_cost;
	/* the cheapest comes first */
	foreach(lc, rel->partial_pathlist)
	{
		scan = lfirst(lc);
		if (!IsA(scan, CustomPath) && scan->pathkeys == NIL)
			break;
		scan = NULL;
	}
	if (scan == NULL)
		return sort->total_cost;
	path = (Path *) create_sort_path(root, rel, scan, pathkeys, -1.0);
	rows = path->rows * path->parallel_workers;
	path = (Path *) create_gather_merge_path(root, rel, path, rel->reltarget, pathkeys, NULL, &rows);
	return Min(sort->total_cost, input->total_cost + GATHERED_SHARE * (path->total_cost - scan->total_cost));
}
