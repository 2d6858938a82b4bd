/*-------------------------------------------------------------------------
 * settle.c - which of the finished paths of a query level is the best, when WiscSorts are in them.
 *
 * Core has compared its paths by what it charges: too much for handing rows to the leader and for an index in
 * the order of the table, next to nothing for most functions.  A WiscSort that has made one of them cheaper
 * since must not have it chosen if it takes more than another that core could have had
 * (docs/decisions/30-cost-model.md).
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

/* What makes a cost the greater one, also where add_path takes a hundredth for nothing. */
#define JUST_MORE			1.02

/*
 * What a path is charged too much, for handing rows from workers to the leader, and for an index; less what
 * it is charged too little for the conditions of a scan, for what is made of its rows, and for a sort without
 * helper threads.  Of its rows, `share` are taken.
 */
static Cost
overcharge(PlannerInfo *root, const Path *path, double share)
{
	Cost		cost = 0;
	const Path *below;
	const List *members;
	ListCell   *lc;

	for (;;)
		switch (nodeTag(path))
		{
			case T_GatherPath:
				below = ((const GatherPath *) path)->subpath;
				cost += share * (1 - ws_hand_over(below->pathtarget->width)) *
					(path->total_cost - below->total_cost);
				path = below;
				break;
			case T_GatherMergePath:
				below = ((const GatherMergePath *) path)->subpath;
				cost += share * (1 - ws_hand_over(below->pathtarget->width)) *
					(path->total_cost - below->total_cost);
				path = below;
				break;
			case T_ProjectionPath:
				cost -= share * ws_hidden_result_cost(root, path);
				path = ((const ProjectionPath *) path)->subpath;
				break;
			case T_CustomPath:
				if (!ws_is_wiscsort(path))
					return cost;
				cost -= ws_undercharge(root, path);
				path = linitial(((const CustomPath *) path)->custom_paths);
				share = 1;
				break;
			case T_Path:
				return cost - share * ws_hidden_cost(root, path);
			case T_AppendPath:
			case T_MergeAppendPath:
				members = IsA(path, AppendPath) ? ((const AppendPath *) path)->subpaths :
					((const MergeAppendPath *) path)->subpaths;
				foreach(lc, members)
					cost += overcharge(root, lfirst(lc), share);
				return cost;
			case T_SortPath:
				path = ((const SortPath *) path)->subpath;
				share = 1;			/* whatever a LIMIT takes */
				break;
			case T_IncrementalSortPath:
				path = ((const IncrementalSortPath *) path)->spath.subpath;
				break;
			case T_LimitPath:
				below = ((const LimitPath *) path)->subpath;
				share *= Min(1, path->rows / Max(below->rows, 1));
				path = below;
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
				if (ws_in_table_order(root, (Path *) path))
					cost += share * (1 - WS_INDEX_SHARE) * path->total_cost;
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
		Cost		cost = path->total_cost - overcharge(root, path, 1);

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
			path->total_cost - overcharge(root, path, 1) > r->least)
			path->total_cost = best * JUST_MORE;
	}
}
