/*-------------------------------------------------------------------------
 * paths.c - sorted paths for base relations.
 *
 * Added in set_rel_pathlist_hook for the orderings of orderings.c, with the rows spooled and, where
 * heap.c allows it, with the rows left in the table; rewrite.c wraps the Sorts that are left over
 * joins, aggregates, functions and set operations.
 *
 * A top-N sort under a LIMIT that fits work_mem stays core's: it never holds
 * more than N rows.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"

static set_rel_pathlist_hook_type next_rel_hook = NULL;
static create_upper_paths_hook_type next_upper_hook = NULL;

/*
 * A WiscSort path of the relation's rows, which stay in the table, or NULL, with *refusal if it is not
 * to be.  `scan` becomes part of it; `sort` is what core would do.
 */
static CustomPath *
sort_in_table(PlannerInfo *root, RelOptInfo *rel, Path *scan, const Path *sort, List *pathkeys,
			  double bound, const char **refusal)
{
	Path	   *input = ws_heap_input(root, rel, scan, pathkeys);
	Oid			relid = planner_rt_fetch(rel->relid, root)->relid;
	CustomPath *cpath;
	WsTieKeys	ties;

	if (input == NULL)
	{
		*refusal = "a sort key is not a column of the table";
		return NULL;
	}
	ties = ws_tie_keys(root, input, pathkeys, rel->tuples);
	*refusal = ws_table_refusal(root, input, pathkeys, ties, rel, relid, bound);
	if (*refusal != NULL)
		return NULL;
	cpath = ws_wrap_heap_sort(root, create_sort_path(root, rel, input, pathkeys, -1.0), rel, ties);
	ws_cost_heap_sort(root, &cpath->path, sort, input, bound, pathkeys, ties, rel, relid);
	return cpath;
}

/*
 * A path of the relation that may become our input: add_path frees what it
 * finds dominated, so a path in the relation's list cannot be shared.
 */
static Path *
private_copy(const Path *path)
{
	Size		size;
	Path	   *copy;

	switch (nodeTag(path))
	{
		case T_IndexPath:
			size = sizeof(IndexPath);
			break;
		case T_BitmapHeapPath:
			size = sizeof(BitmapHeapPath);
			break;
		case T_TidPath:
			size = sizeof(TidPath);
			break;
		case T_TidRangePath:
			size = sizeof(TidRangePath);
			break;
		case T_Path:
			size = sizeof(Path);
			break;
		default:
			return NULL;
	}
	copy = palloc(size);
	memcpy(copy, path, size);
	return copy;
}

/*
 * The cheapest path of a list that needs no parameters and, if asked for, knows
 * the rows' TIDs, as a private copy.
 */
static Path *
cheapest_input(List *pathlist, bool tids)
{
	Path	   *best = NULL;
	ListCell   *lc;

	foreach(lc, pathlist)
	{
		Path	   *path = lfirst(lc);

		if (path->param_info != NULL || (tids && !ws_has_tids(path)))
			continue;
		if (best == NULL || compare_path_costs(path, best, TOTAL_COST) < 0)
			best = path;
	}
	return best != NULL ? private_copy(best) : NULL;
}

static bool
relation_eligible(RelOptInfo *rel, RangeTblEntry *rte)
{
	ListCell   *lc;

	if (rte->rtekind != RTE_RELATION || rte->inh || rte->tablesample != NULL ||
		(rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW) ||
		(rel->reloptkind != RELOPT_BASEREL && rel->reloptkind != RELOPT_OTHER_MEMBER_REL) ||
		!bms_is_empty(rel->lateral_relids) || IS_DUMMY_REL(rel))
		return false;
	foreach(lc, rel->baserestrictinfo)
		if (lfirst_node(RestrictInfo, lc)->pseudoconstant)
			return false;		/* a gating Result would go on top of us */
	return true;
}

/* Does core put a path behind another one in its lists? */
static bool
costs_more(const Path *path, const Path *other)
{
	return ws_more_disabled(path, other) ||
		(path->total_cost > other->total_cost && !ws_more_disabled(other, path));
}

/* The place of a path among others, by cost. */
static int
place_of(const List *paths, const Path *path)
{
	ListCell   *lc;

	foreach(lc, paths)
		if (costs_more(lfirst(lc), path))
			return foreach_current_index(lc);
	return list_length(paths);
}

/*
 * The paths with a sorted one beside them, in its place by cost, unless one in the same order costs less.
 * add_path and add_partial_path take a sorted path for the better one, where the sort costs little beside its
 * input, and drop the other: add_partial_path always, add_path where nearly all of both is the cost of being
 * disabled.
 */
static List *
with_path(List *paths, Path *path)
{
	ListCell   *lc;

	foreach(lc, paths)
	{
		const Path *other = lfirst(lc);

		if (costs_more(other, path))
			break;
		if (other->param_info == NULL && pathkeys_contained_in(path->pathkeys, other->pathkeys))
			return paths;
	}
	return list_insert_nth(paths, place_of(paths, path), path);
}

/*
 * Does the level outside get the relation's partial paths as they are?  So it is in the members of set
 * operations, which have an order to be delivered in from PostgreSQL 17 on.  Core adds them one by one to
 * those of the level's result, and frees those that others are better than, to which its Gather Merge may
 * refer.  Of the paths that core has made there are none of that kind; of a sort that with_path() has
 * added, there would be.
 */
static bool
hands_on_partial_paths(const PlannerInfo *root, const RelOptInfo *rel)
{
	const Query *parse = root->parse;

	return root->parent_root != NULL && rel->reloptkind == RELOPT_BASEREL &&
		bms_membership(root->all_baserels) == BMS_SINGLETON && parse->sortClause == NIL &&
		parse->groupClause == NIL && parse->groupingSets == NIL && parse->distinctClause == NIL &&
		!parse->hasAggs && !parse->hasWindowFuncs;
}

/*
 * Would each process of a parallel merge join sort all of the relation?  The planner charges that once, and
 * takes it for less than a parallel hash join, of which it charges too much where a value is common
 * (docs/decisions/30-cost-model.md).  Of partitions, one process may sort each.
 */
static bool
sorted_by_each(const PlannerInfo *root, const RelOptInfo *rel)
{
	return rel->partial_pathlist != NIL && !IS_OTHER_REL(rel) &&
		bms_membership(root->all_baserels) == BMS_MULTIPLE;
}

/* Adds a sorted path to those that core has made, none of which is dropped for it. */
static void
add_sorted_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *cpath, bool partial)
{
	if (rel->reloptkind == RELOPT_BASEREL && bms_membership(root->all_baserels) == BMS_MULTIPLE)
		ws_hand_on_keys(cpath);
	ws_keep_early_paths(root, rel);
	if (!partial && (sorted_by_each(root, rel) ||
					 !ws_ordering_computable(root, rel, cpath->path.pathkeys, true)))
		cpath->path.parallel_safe = false;
	if (partial)
		rel->partial_pathlist = with_path(rel->partial_pathlist, (Path *) cpath);
	else if (ws_costs_of_disabled(&cpath->path))
		rel->pathlist = with_path(rel->pathlist, (Path *) cpath);
	else
		add_path(rel, (Path *) cpath);
}

/*
 * Has the scan of an index take the place of `sort`, a WiscSort path that is dearer than the index in truth,
 * at the costs of that: so it is chosen where the sort would have been, also where core charges it more than
 * its own sort, or a hash table.
 */
static void
take_place(RelOptInfo *rel, Path *index, const Path *sort, bool partial)
{
	List	  **paths = partial ? &rel->partial_pathlist : &rel->pathlist;

	*paths = list_delete_ptr(*paths, index);
	index->total_cost = sort->total_cost;
	*paths = list_insert_nth(*paths, place_of(*paths, index), index);
}

/* The reasons of two paths of which cost is going to choose one. */
static void
set_cost_reasons(CustomPath *table, CustomPath *spooled)
{
	Cost		fetch = table->path.total_cost;
	Cost		spool = spooled->path.total_cost;

	ws_set_reason(table, psprintf("estimated cost %.0f, with a spool %.0f", fetch, spool));
	ws_set_reason(spooled, ws_debug_force ? "wiscsort.debug_force prefers it" :
			   psprintf("estimated cost %.0f, from the table %.0f", spool, fetch));
}

/* The cheaper one of two paths, one of which may be NULL. */
static const CustomPath *
cheaper(const CustomPath *a, const CustomPath *b)
{
	if (a == NULL || b == NULL)
		return a != NULL ? a : b;
	return a->path.total_cost <= b->path.total_cost ? a : b;
}

/*
 * Adds a WiscSort of `input` for each ordering that is useful, and one of `scan`
 * that leaves the rows in the table unless there is a `refusal`.  Those of parallel workers (`partial`) come
 * first: where they are to sort, no one process does.
 */
static void
sort_input(PlannerInfo *root, RelOptInfo *rel, Path *input, Path *scan, const char *refusal,
		   bool partial)
{
	double		query_bound = ws_query_bound(root, partial);
	ListCell   *lc;

	/* of one table there is no other order; looking for it takes a while with many partitions */
	if (root->query_pathkeys != NIL && query_bound != WS_NO_BOUND &&
		ws_bound_leaves(query_bound, root->query_pathkeys, rel->rows, rel->reltarget->width))
		return;
	foreach(lc, ws_useful_orderings(root, rel, partial))
	{
		List	   *pathkeys = lfirst(lc);
		const char *no_table = refusal != NULL ? refusal :
			scan == NULL ? "no scan of the table tells where its rows are" : NULL;
		const char *no_spool;
		const char *no_sort;
		Path	   *index = NULL;
		SortPath   *sort;
		CustomPath *spooled = NULL;
		CustomPath *table = NULL;
		double		bound = pathkeys_contained_in(root->query_pathkeys, pathkeys) ?
			query_bound : WS_NO_BOUND;

		if (pathkeys_contained_in(pathkeys, input->pathkeys) ||
			ws_bound_leaves(bound, pathkeys, rel->rows, rel->reltarget->width) ||
			!ws_sort_considered(input->rows, rel->reltarget->width, ws_only_value(input, pathkeys)))
			continue;
		no_sort = ws_again_refusal(root, rel->relids);
		if (no_sort == NULL)
			no_sort = ws_comparison_refusal(root, pathkeys, input->rows);
		if (no_sort != NULL)
		{
			ws_note_left(no_sort, input->rows, pathkeys);
			continue;
		}
		sort = create_sort_path(root, rel, input, pathkeys, -1.0);
		no_spool = ws_spool_refusal(root, input, pathkeys, bound);
		if (no_table == NULL && !ws_keys_alone(input, pathkeys))
			table = sort_in_table(root, rel, scan, &sort->path, pathkeys, bound, &no_table);
		if (no_spool == NULL && (table == NULL || ws_record_store != WS_STORE_HEAP))
			spooled = ws_wrap_sort(root, sort, bound);
		if (table != NULL)
			ws_charge_workers(root, rel, table, &sort->path, input->parallel_workers);
		if (spooled != NULL)
			ws_charge_workers(root, rel, spooled, &sort->path, input->parallel_workers);

		if (spooled != NULL && cheaper(table, spooled) == spooled &&
			ws_sorted_with_others(root, rel, pathkeys, bound))
			continue;
		no_sort = NULL;
		if (table != NULL || spooled != NULL)
			no_sort = ws_presorted_refusal(root, rel, partial ? rel->partial_pathlist : rel->pathlist,
										   pathkeys, ws_any_compared(pathkeys),
										   cheaper(table, spooled)->path.total_cost,
										   sort->path.total_cost);
		if (no_sort == NULL && (table != NULL || spooled != NULL))
			index = ws_better_index(root, partial ? rel->partial_pathlist : rel->pathlist,
									&cheaper(table, spooled)->path);
		if (index != NULL)
		{
			take_place(rel, index, &cheaper(table, spooled)->path, partial);
			no_sort = "an index finds the rows in order, and together in the table";
		}
		if (no_sort == NULL && partial && ws_read_partly(root))
			no_sort = ws_presorted_refusal(root, rel, rel->pathlist, pathkeys, ws_any_compared(pathkeys),
										   0, sort->path.total_cost);
		if (no_sort != NULL)
		{
			ws_note_left(no_sort, input->rows, pathkeys);
			continue;
		}
		if ((table != NULL || spooled != NULL) && !partial &&
			ws_workers_sort(root, rel, cheaper(table, spooled)))
			continue;
		if (table != NULL && spooled != NULL)
			set_cost_reasons(table, spooled);
		else if (table != NULL)
			ws_set_reason(table, ws_record_store != WS_STORE_HEAP ? no_spool :
						  "wiscsort.record_store is heap");
		else if (spooled != NULL && no_table != NULL)
			ws_set_reason(spooled, no_table);
		else if (spooled == NULL)
			ws_note_left(no_spool, input->rows, pathkeys);
		if (table != NULL || spooled != NULL)
			ws_note_costs(cheaper(table, spooled)->path.total_cost, &sort->path, input->rows);
		if (table != NULL)
			add_sorted_path(root, rel, table, partial);
		if (spooled != NULL)
			add_sorted_path(root, rel, spooled, partial);
	}
}

/* set_rel_pathlist_hook: sorted paths of a base relation. */
static void
add_sorted_paths(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	Path	   *input;
	Path	   *scan;
	const char *refusal;

	if (next_rel_hook != NULL)
		next_rel_hook(root, rel, rti, rte);
	if (!ws_enable || !relation_eligible(rel, rte) ||
		!ws_sort_considered(rel->rows, rel->reltarget->width, NULL) || ws_narrower_when_sorted(root, rel))
		return;

	refusal = ws_heap_refusal(root, rel, rte);
	if (rel->consider_parallel && !hands_on_partial_paths(root, rel))
	{
		input = cheapest_input(rel->partial_pathlist, false);
		scan = cheapest_input(rel->partial_pathlist, true);
		if (input != NULL && ws_sort_considered(input->rows, rel->reltarget->width, NULL))
			sort_input(root, rel, input, scan, refusal, true);
	}
	input = cheapest_input(rel->pathlist, false);
	scan = cheapest_input(rel->pathlist, true);
	if (input != NULL)
		sort_input(root, rel, input, scan, refusal, false);
}

/* create_upper_paths_hook: Sorts left in the finished path trees. */
static void
replace_sorts(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
			  RelOptInfo *output_rel, void *extra)
{
	if (next_upper_hook != NULL)
		next_upper_hook(root, stage, input_rel, output_rel, extra);
	if (!ws_enable)
		return;
	if (stage == UPPERREL_FINAL)
		ws_rewrite_final(root, output_rel);
}

/* Puts wiscsort into the planner's hook chains.  Called once. */
void
ws_install_planner_hooks(void)
{
	next_rel_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = add_sorted_paths;
	next_upper_hook = create_upper_paths_hook;
	create_upper_paths_hook = replace_sorts;
	ws_install_finish_hook();
	ws_install_join_hook();
	ws_install_lookup_hook();
	ws_install_why_hooks();
}
