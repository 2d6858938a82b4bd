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
#include "access/htup_details.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/lsyscache.h"

/* Of what core charges for an Incremental Sort beside its input, what it takes. */
#define INCREMENTAL_SHARE	0.4

/*
 * Where an index is so much in the order of the table, its scan takes as long as the table's, and some more:
 * of what core charges for it WS_INDEX_SHARE.
 */
#define INDEX_ORDERED		0.95

/*
 * Of what core charges for Sorts of workers and Gather Merge, beside the scan, what one WiscSort of text
 * is charged, which takes less, whoever sorts in the workers (docs/decisions/30-cost-model.md).
 */
#define GATHERED_SHARE		0.65

/* Is a path the scan of an index whose order is that of the table, or the reverse? */
bool
ws_in_table_order(PlannerInfo *root, Path *path)
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
 * comparison function (`compared`) are charged too little, so these are taken as they are; and all above an
 * index that is not in the order of the table, but finds its rows together in it.
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
		Cost		own;
		int			presorted;
		bool		whole;
		bool		ordered;

		if (path->param_info != NULL || IsA(path, CustomPath))
			continue;
		whole = pathkeys_count_contained_in(pathkeys, path->pathkeys, &presorted);
		if (presorted == 0)
			continue;
		ordered = ws_in_table_order(root, path);
		/* unless it is read to its end for the sake of a few rows that are found otherwise */
		if (whole && ordered && WS_INDEX_SHARE * path->total_cost < cost)
			return "an index delivers the rows in the order of the table";
		if (partly && (whole || enable_incremental_sort))
			return "an index delivers the rows in order, and perhaps only the first are read";
		if (whole || !enable_incremental_sort)
			continue;
		sort = (Path *) create_incremental_sort_path(root, rel, path, pathkeys, presorted, -1.0);
		own = sort->total_cost - path->total_cost;
		if (sort->total_cost < core &&
			((ordered ? WS_INDEX_SHARE : 1) * path->total_cost + share * own < cost ||
			 ws_index_takes_less(root, path, cost - own)))
			return "an Incremental Sort of rows in the order of the first keys takes less";
	}
	return NULL;
}

/*
 * Of `paths`, the scan of an index in order that takes less than `sort`, a WiscSort path, because its rows
 * lie together in the table, and that core charges more; NULL if there is none.
 */
Path *
ws_better_index(PlannerInfo *root, List *paths, const Path *sort)
{
	ListCell   *lc;

	if (ws_debug_force)
		return NULL;
	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);

		if (path->total_cost > sort->total_cost && pathkeys_contained_in(sort->pathkeys, path->pathkeys) &&
			!ws_costs_of_disabled(path) && !ws_more_disabled(path, sort) &&
			ws_index_takes_less(root, path, sort->total_cost))
			return path;
	}
	return NULL;
}

/*
 * The cost of the cheapest way that core has to sort the rows of `input`, which `sort` does in one process,
 * if all rows are asked for (`wanted` is 0): of a WiscSort in its place, that is, so Gather Merge counts with
 * GATHERED_SHARE.  Only over scans: what joins gain by workers is more than the sort.  Not for groups that a
 * hash table may make: beside one the share is too little.
 */
Cost
ws_rival_cost(PlannerInfo *root, const Path *input, List *pathkeys, const Path *sort, double wanted)
{
	RelOptInfo *rel = input->parent;
	List	   *grouping = root->parse->groupClause != NIL ? root->group_pathkeys : root->distinct_pathkeys;
	Path	   *scan = NULL;
	Path	   *path;
	double		rows;
	ListCell   *lc;

	if (wanted > 0 || input->parallel_workers > 0 || !IS_SIMPLE_REL(rel) || !enable_gathermerge ||
		(ws_can_hash_groups(root) && pathkeys_contained_in(grouping, pathkeys)) ||
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

/* The place of an expression in what a path returns, from 0; or -1. */
static int
place_of(const Path *path, const Expr *expr)
{
	ListCell   *lc;

	foreach(lc, path->pathtarget->exprs)
		if (equal(strip_implicit_coercions(lfirst(lc)), expr))
			return foreach_current_index(lc);
	return -1;
}

/* The place of the first key's column in what `input` returns, or -1. */
static int
place_of_key(const Path *input, const PathKey *key)
{
	ListCell   *lc;

	foreach(lc, key->pk_eclass->ec_members)
	{
		const EquivalenceMember *em = lfirst_node(EquivalenceMember, lc);
		int			place;

		/* there is one of each partition, up to PostgreSQL 17 */
		if (em->em_is_child && !bms_is_subset(em->em_relids, input->parent->relids))
			continue;
		place = place_of(input, (Expr *) strip_implicit_coercions((Node *) em->em_expr));
		if (place >= 0)
			return place;
	}
	return -1;
}

/*
 * The path below, that makes column *place of what `path` returns as one of its own, of which that is set to
 * the place; `path` itself if it is neither a projection nor a subquery.
 */
static const Path *
made_by(const Path *path, int *place)
{
	while (*place >= 0)
	{
		Node	   *expr = strip_implicit_coercions(list_nth(path->pathtarget->exprs, *place));

		if (IsA(path, ProjectionPath))
		{
			path = ((const ProjectionPath *) path)->subpath;
			*place = place_of(path, (Expr *) expr);
		}
		else if (IsA(path, SubqueryScanPath) && IsA(expr, Var))
		{
			path = ((const SubqueryScanPath *) path)->subpath;
			*place = ((Var *) expr)->varattno - 1;
			if (*place >= list_length(path->pathtarget->exprs))
				*place = -1;
		}
		else
			break;
	}
	return path;
}

/* Does a path scan an index in the order of `key`, that of column `place` of what it returns? */
static bool
scans_in_order(const Path *path, int place, const PathKey *key)
{
	const IndexOptInfo *index;
	const Var  *var;

	path = made_by(path, &place);
	if (place < 0 || !IsA(path, IndexPath))
		return false;
	index = ((const IndexPath *) path)->indexinfo;
	var = (const Var *) strip_implicit_coercions(list_nth(path->pathtarget->exprs, place));
	return IsA(var, Var) && index->sortopfamily != NULL && index->indexkeys[0] == var->varattno &&
		index->sortopfamily[0] == key->pk_opfamily &&
		index->indexcollations[0] == key->pk_eclass->ec_collation &&
		(ScanDirectionIsBackward(((const IndexPath *) path)->indexscandir) != index->reverse_sort[0]) ==
		ws_descending(key);
}

/*
 * Do half of a sort's rows come in order, from indexes of large members of an Append, by a key that is more
 * than some bytes?  Core's sort takes little more than a comparison for each, then; nothing else is faster.
 * Of a member that does not fill its memory, others come behind.
 * Why the sort is left to core, else NULL.  (800,000 and 300,000 rows of uuid, core / WiscSort 0.67 to 0.98.)
 */
const char *
ws_members_refusal(const Path *input, List *pathkeys)
{
	const PathKey *key = linitial_node(PathKey, pathkeys);
	int			place = place_of_key(input, key);
	double		rows = 0;
	ListCell   *lc;
	int16		length;

	input = made_by(input, &place);
	if (ws_debug_force || place < 0 || !IsA(input, AppendPath))
		return NULL;
	length = get_typlen(exprType(list_nth(input->pathtarget->exprs, place)));
	if (length > 0 && length <= (int) sizeof(Datum))
		return NULL;
	foreach(lc, ((const AppendPath *) input)->subpaths)
	{
		const Path *member = lfirst(lc);
		double		row = MAXALIGN(SizeofMinimalTupleHeader) + MAXALIGN(member->pathtarget->width);

		if (member->rows * row >= work_mem * 1024.0 && scans_in_order(member, place, key))
			rows += member->rows;
	}
	return rows >= 0.5 * input->rows ? "most rows come in the order of indexes" : NULL;
}
