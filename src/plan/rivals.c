/*-------------------------------------------------------------------------
 * rivals.c - what core has to sort by beside its Sort: indexes, Incremental Sort, and Sorts of parallel
 * workers.
 *
 * All are charged by a measure that is not that of WiscSort's costs, so each has a share here that was
 * fitted to what it takes.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include <math.h>

#include "access/amapi.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

/* Of what core charges for an Incremental Sort beside its input, what it takes. */
#define INCREMENTAL_SHARE	0.4

/*
 * Where an index is so much in the order of the table, its scan takes as long as the table's, and some more;
 * and of what core charges for it so much.
 */
#define INDEX_ORDERED		0.95
#define INDEX_SHARE			0.5

/*
 * Of what core charges for Sorts of workers and Gather Merge, beside the scan, what one WiscSort of text
 * is charged, which takes less, whoever sorts in the workers (docs/decisions/30-cost-model.md).
 */
#define GATHERED_SHARE		0.65

/* Of parallel_tuple_cost, what handing over a row takes, and what each 1,000 bytes of it take beyond that. */
#define HAND_OVER			0.4
#define HAND_OVER_WIDE		1.2

/* What makes a cost the greater one, also where add_path takes a hundredth for nothing. */
#define JUST_MORE			1.02

/* Is a path the scan of an index whose order is that of the table, or the reverse? */
static bool
is_in_table_order(PlannerInfo *root, Path *path)
{
	amcostestimate_function estimate;
	Cost		startup;
	Cost		total;
	Selectivity selectivity;
	double		correlation;
	double		pages;

	if (!IsA(path, IndexPath))
		return false;
	estimate = (amcostestimate_function) ((IndexPath *) path)->indexinfo->amcostestimate;
	estimate(root, (IndexPath *) path, 1.0, &startup, &total, &selectivity, &correlation, &pages);
	/* of several columns btcostestimate takes off a quarter */
	if (((IndexPath *) path)->indexinfo->nkeycolumns > 1)
		correlation /= 0.75;
	return fabs(correlation) >= INDEX_ORDERED;
}

/*
 * Does one of `paths` deliver rows in order, by an index in the order of the table?  Do those that deliver
 * them in the order of the first keys make core's Incremental Sort cheaper
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
	bool		partly;
	ListCell   *lc;

	if (ws_debug_force)
		return NULL;
	partly = ws_read_partly(root);
	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);
		Path	   *sort;
		int			presorted;
		bool		whole;
		bool		ordered;

		if (path->param_info != NULL || IsA(path, CustomPath))
			continue;
		whole = pathkeys_count_contained_in(pathkeys, path->pathkeys, &presorted);
		if (presorted == 0)
			continue;
		ordered = is_in_table_order(root, path);
		/* unless it is read to its end for the sake of a few rows that are found otherwise */
		if (whole && ordered && INDEX_SHARE * path->total_cost < cost)
			return "an index delivers the rows in the order of the table";
		if (partly && (whole || enable_incremental_sort))
			return "an index delivers the rows in order, and perhaps only the first are read";
		if (whole || !enable_incremental_sort)
			continue;
		sort = (Path *) create_incremental_sort_path(root, rel, path, pathkeys, presorted, -1.0);
		if (sort->total_cost < core && (ordered ? INDEX_SHARE : 1) * path->total_cost +
			share * (sort->total_cost - path->total_cost) < cost)
			return "an Incremental Sort of rows in the order of the first keys takes less";
	}
	return NULL;
}

/* Of what core charges for handing rows of `width` bytes from workers to the leader, what that takes. */
double
ws_hand_over(int width)
{
	return HAND_OVER + HAND_OVER_WIDE * width / 1000;
}

/* What a path is charged too much, for handing rows from workers to the leader, and for an index. */
static Cost
overcharge(PlannerInfo *root, const Path *path)
{
	Cost		cost = 0;
	const Path *below;

	for (;;)
		switch (nodeTag(path))
		{
			case T_GatherPath:
				below = ((const GatherPath *) path)->subpath;
				cost += (1 - ws_hand_over(below->pathtarget->width)) * (path->total_cost - below->total_cost);
				path = below;
				break;
			case T_GatherMergePath:
				below = ((const GatherMergePath *) path)->subpath;
				cost += (1 - ws_hand_over(below->pathtarget->width)) * (path->total_cost - below->total_cost);
				path = below;
				break;
			case T_ProjectionPath:
				path = ((const ProjectionPath *) path)->subpath;
				break;
			case T_SortPath:
				path = ((const SortPath *) path)->subpath;
				break;
			case T_IncrementalSortPath:
				path = ((const IncrementalSortPath *) path)->spath.subpath;
				break;
			case T_LimitPath:
				path = ((const LimitPath *) path)->subpath;
				break;
			case T_WindowAggPath:
				path = ((const WindowAggPath *) path)->subpath;
				break;
			case T_AggPath:
				path = ((const AggPath *) path)->subpath;
				break;
			case T_GroupPath:
				path = ((const GroupPath *) path)->subpath;
				break;
			case T_IndexPath:
				if (is_in_table_order(root, (Path *) path))
					cost += (1 - INDEX_SHARE) * path->total_cost;
				return cost;
			default:
				return cost;
		}
}

/*
 * Remembers the costs of `paths`, which are those that core gives them, and which of them takes least.  Where
 * there is one there is nothing to choose: so it is with most queries of few rows, whose planning counts.
 */
WsRivals
ws_rivals(PlannerInfo *root, List *paths)
{
	WsRivals	r = {.place = -1};
	ListCell   *lc;

	if (list_length(paths) < 2)
		return r;
	r.costs = palloc(list_length(paths) * sizeof(Cost));
	foreach(lc, paths)
	{
		const Path *path = lfirst(lc);
		int			i = foreach_current_index(lc);
		Cost		cost = path->total_cost - overcharge(root, path);

		r.costs[i] = path->total_cost;
		if (r.place < 0 || cost < r.least)
		{
			r.place = i;
			r.least = cost;
		}
	}
	return r;
}

/* Of the paths that a WiscSort has made cheaper since, has none chosen that takes more than that one. */
void
ws_settle_rivals(PlannerInfo *root, List *paths, const WsRivals *r)
{
	Cost		best;
	ListCell   *lc;

	if (r->place < 0)
		return;
	best = ((Path *) list_nth(paths, r->place))->total_cost;
	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);
		int			i = foreach_current_index(lc);

		if (i != r->place && path->total_cost < r->costs[i] && path->total_cost < best &&
			path->total_cost - overcharge(root, path) > r->least)
			path->total_cost = best * JUST_MORE;
	}
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
