/*-------------------------------------------------------------------------
 * paths.c - WiscSort paths, and the plan node made of them.
 *
 * A WiscSort path is a CustomPath around core's own SortPath.  Core makes a
 * Sort plan of the inner one, and with it decides the sort columns, operators,
 * collations and null order, and adds sort expressions to the input's target
 * list; the custom plan takes all that over, and the Sort's input as its outer
 * plan.  Nothing of make_sort_from_pathkeys is repeated here.
 *
 * This file adds sorted paths for base relations (set_rel_pathlist_hook) for
 * the orderings of orderings.c, with the rows spooled and, where heap.c allows
 * it, with the rows left in the table; rewrite.c wraps the Sorts that are left over
 * joins, aggregates, functions and set operations.
 *
 * A top-N sort under a LIMIT that fits work_mem stays core's: it never holds
 * more than N rows.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "access/table.h"
#include "exec/exec.h"
#include "exec/request.h"
#include "key/key.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/rel.h"

static set_rel_pathlist_hook_type next_rel_hook = NULL;
static create_upper_paths_hook_type next_upper_hook = NULL;

/* Sets *constraint to what makes this column of the sorted rows certain to hold no null, if anything does. */
static void
find_constraint(PlannerInfo *root, TargetEntry *tle, WsConstraint *constraint)
{
	Var		   *var = (Var *) tle->expr;
	RangeTblEntry *rte;
	Relation	rel;

	memset(constraint, 0, sizeof(WsConstraint));
	if (!IsA(var, Var) || var->varlevelsup != 0 || var->varattno <= 0 ||
		var->varno <= 0 || var->varno >= root->simple_rel_array_size ||
		root->parse->groupingSets != NIL || root->parse->setOperations != NULL)
		return;
	rte = planner_rt_fetch(var->varno, root);
	if (rte->rtekind != RTE_RELATION || rte->inh || ws_var_nullable(root, var) ||
		(rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW))
		return;

	/* the planner holds a lock, and is told when the constraint goes */
	rel = table_open(rte->relid, NoLock);
	if (ws_attribute_notnull(RelationGetDescr(rel), var->varattno))
	{
		constraint->table = rte->relid;
		constraint->column = var->varattno;
	}
	table_close(rel, NoLock);
}

/*
 * A path's custom_private: why it has the record store it has, for EXPLAIN
 * (VERBOSE), and something else if that is the table.
 */
static bool
in_table(const CustomPath *cpath)
{
	return list_length(cpath->custom_private) > 1;
}

/* Is there nothing in the input's rows but keys, which the entries will tell? */
static bool
rows_are_keys(const WsRequest *request, List *tlist)
{
	Bitmapset  *told = NULL;

	if (ws_record_store == WS_STORE_SPOOL || !ws_request_keys_fit(request))
		return false;
	for (int i = 0; i < request->ncols; i++)
	{
		TargetEntry *tle = get_tle_by_resno(tlist, request->attnos[i]);
		bool		descending;
		int			width;
		int16		length;
		bool		byval;

		(void) ws_key_encoding(request->sortops[i], request->collations[i], &descending, &width);
		get_typlenbyval(exprType((Node *) tle->expr), &length, &byval);
		if (!byval || length != width)
			return false;
		told = bms_add_member(told, request->attnos[i]);
	}
	return bms_num_members(told) == list_length(tlist);
}

/* PlanCustomPath callback: custom_plans is core's Sort. */
static Plan *
plan_sort(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path,
		  List *tlist, List *clauses, List *custom_plans)
{
	Sort	   *sort = linitial_node(Sort, custom_plans);
	List	   *input = outerPlan(sort)->targetlist;
	CustomScan *cscan = makeNode(CustomScan);
	WsRequest  *request = ws_request_create(sort->numCols);
	WsConstraint *constraints = palloc(sort->numCols * sizeof(WsConstraint));

	outerPlan(cscan) = outerPlan(sort);
	for (int i = 0; i < sort->numCols; i++)
	{
		request->attnos[i] = sort->sortColIdx[i];
		request->sortops[i] = sort->sortOperators[i];
		request->collations[i] = sort->collations[i];
		request->nulls_first[i] = sort->nullsFirst[i];
		find_constraint(root, get_tle_by_resno(input, sort->sortColIdx[i]), &constraints[i]);
		request->notnull[i] = OidIsValid(constraints[i].table);
	}
	request->why = strVal(linitial(best_path->custom_private));
	request->rows = outerPlan(sort)->plan_rows;
	request->width = outerPlan(sort)->plan_width;
	if (in_table(best_path))
	{
		request->store = WS_KIND_HEAP;
		cscan->scan.scanrelid = rel->relid; /* its rows are what we return */
	}
	else
	{
		if (rows_are_keys(request, input))
		{
			request->store = WS_KIND_KEYS;
			request->why = "the rows are nothing but their keys";
		}
		cscan->custom_scan_tlist = copyObject(input);
	}
	cscan->custom_private = ws_request_write(request, constraints);
	cscan->scan.plan.targetlist = tlist;
	cscan->scan.plan.qual = NIL;	/* the input has applied them */
	cscan->flags = best_path->flags;
	cscan->methods = &ws_scan_methods;
	ws_plan_has_node();
	return &cscan->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = "WiscSort",
	.PlanCustomPath = plan_sort,
};

/* Is this path ours? */
bool
ws_is_wiscsort(const Path *path)
{
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &path_methods;
}

/* Sets what EXPLAIN (VERBOSE) says. */
static void
set_reason(CustomPath *cpath, const char *reason)
{
	linitial(cpath->custom_private) = makeString(pstrdup(reason));
}

/* A WiscSort path around `sort`, without its costs. */
static CustomPath *
wrap(SortPath *sort)
{
	CustomPath *cpath = makeNode(CustomPath);

	Assert(sort->path.param_info == NULL);
	cpath->path = sort->path;
	cpath->path.type = T_CustomPath;
	cpath->path.pathtype = T_CustomScan;
	cpath->path.parallel_aware = false;
	ws_path_copy_disabled(&cpath->path, sort->subpath);
	cpath->flags = CUSTOMPATH_SUPPORT_PROJECTION | CUSTOMPATH_SUPPORT_BACKWARD_SCAN |
		CUSTOMPATH_SUPPORT_MARK_RESTORE;
	cpath->custom_paths = list_make1(sort);
	cpath->custom_private = list_make1(makeString(
		IS_SIMPLE_REL(sort->subpath->parent) ? "the sort belongs to a later step, or costs more from the table" :
		"the input is not a scan of one table"));
	cpath->methods = &path_methods;
	return cpath;
}

/*
 * A WiscSort path that does what `sort` does.  `sort` must not be parameterised
 * and becomes part of the new path.
 */
CustomPath *
ws_wrap_sort(SortPath *sort)
{
	CustomPath *cpath = wrap(sort);

	ws_cost_sort(&cpath->path, sort->subpath, sort->path.pathkeys);
	if (ws_keys_alone(sort->subpath, sort->path.pathkeys))
		set_reason(cpath, "the rows are nothing but their keys");
	return cpath;
}

/*
 * A WiscSort path of the relation's rows, which stay in the table, or NULL.
 * `scan` becomes part of it.
 */
static CustomPath *
sort_in_table(PlannerInfo *root, RelOptInfo *rel, Path *scan, List *pathkeys)
{
	Path	   *input = ws_heap_input(root, rel, scan, pathkeys);
	CustomPath *cpath;

	if (input == NULL)
		return NULL;
	cpath = wrap(create_sort_path(root, rel, input, pathkeys, -1.0));
	cpath->path.pathtarget = rel->reltarget;
	cpath->custom_private = lappend(cpath->custom_private, makeInteger(1));
	ws_cost_heap_sort(&cpath->path, input, pathkeys, rel, planner_rt_fetch(rel->relid, root)->relid);
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

/* Will the query's LIMIT let core sort with a heap of few rows? */
static bool
limit_is_cores(PlannerInfo *root, RelOptInfo *rel)
{
	Query	   *parse = root->parse;
	double		bound;

	if (bms_membership(root->all_baserels) != BMS_SINGLETON ||
		parse->groupClause || parse->groupingSets || parse->distinctClause ||
		parse->hasAggs || parse->hasWindowFuncs || parse->hasTargetSRFs)
		return false;
	if (parse->limitCount == NULL)
		bound = ws_inherited_bound(root);
	else
		bound = root->limit_tuples > 0 ? root->limit_tuples : WS_UNKNOWN_BOUND;
	return ws_bound_is_cores(bound, rel->reltarget->width);
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

static void
add_sorted_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *cpath, bool partial)
{
	if (partial)
		add_partial_path(rel, (Path *) cpath);
	else
	{
		if (!ws_ordering_computable(root, rel, cpath->path.pathkeys, true))
			cpath->path.parallel_safe = false;
		add_path(rel, (Path *) cpath);
	}
}

/* The reasons of two paths of which cost is going to choose one. */
static void
set_cost_reasons(CustomPath *table, CustomPath *spooled)
{
	Cost		fetch = table->path.total_cost;
	Cost		spool = spooled->path.total_cost;

	set_reason(table, psprintf("estimated cost %.0f, with a spool %.0f", fetch, spool));
	set_reason(spooled, ws_debug_force ? "wiscsort.debug_force prefers it" :
			   psprintf("estimated cost %.0f, from the table %.0f", spool, fetch));
}

/*
 * Adds a WiscSort of `input` for each ordering that is useful, and one of `scan`
 * that leaves the rows in the table unless there is a `refusal`.
 */
static void
sort_input(PlannerInfo *root, RelOptInfo *rel, Path *input, Path *scan, const char *refusal,
		   bool partial)
{
	bool		cores_limit = limit_is_cores(root, rel);
	ListCell   *lc;

	foreach(lc, ws_useful_orderings(root, rel, partial))
	{
		List	   *pathkeys = lfirst(lc);
		bool		keys_alone = ws_keys_alone(input, pathkeys);
		CustomPath *spooled;
		CustomPath *table = NULL;

		if (pathkeys_contained_in(pathkeys, input->pathkeys) ||
			(cores_limit && pathkeys_contained_in(root->query_pathkeys, pathkeys)))
			continue;
		if (refusal == NULL && scan != NULL && !keys_alone)
			table = sort_in_table(root, rel, scan, pathkeys);
		if (table != NULL && ws_record_store == WS_STORE_HEAP)
		{
			set_reason(table, "wiscsort.record_store is heap");
			add_sorted_path(root, rel, table, partial);
			continue;
		}
		spooled = ws_wrap_sort(create_sort_path(root, rel, input, pathkeys, -1.0));
		if (!keys_alone)
			set_reason(spooled, refusal != NULL ? refusal :
					   scan == NULL ? "no scan of the table tells where its rows are" :
					   "a sort key is not a column of the table");
		if (table != NULL)
		{
			set_cost_reasons(table, spooled);
			add_sorted_path(root, rel, table, partial);
		}
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
		!ws_sort_considered(rel->rows, rel->reltarget->width))
		return;

	refusal = ws_heap_refusal(root, rel, rte);
	input = cheapest_input(rel->pathlist, false);
	scan = cheapest_input(rel->pathlist, true);
	if (input != NULL)
		sort_input(root, rel, input, scan, refusal, false);
	if (!rel->consider_parallel)
		return;
	input = cheapest_input(rel->partial_pathlist, false);
	scan = cheapest_input(rel->partial_pathlist, true);
	if (input != NULL && ws_sort_considered(input->rows, rel->reltarget->width))
		sort_input(root, rel, input, scan, refusal, true);
}

/* create_upper_paths_hook: Sorts left in the finished path trees. */
static void
replace_sorts(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
			  RelOptInfo *output_rel, void *extra)
{
	if (next_upper_hook != NULL)
		next_upper_hook(root, stage, input_rel, output_rel, extra);
	if (ws_enable && stage == UPPERREL_FINAL)
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
}
