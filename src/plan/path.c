/*-------------------------------------------------------------------------
 * path.c - the WiscSort path, and the plan node made of it.
 *
 * A WiscSort path is a CustomPath around core's own SortPath.  Core makes a
 * Sort plan of the inner one, and with it decides the sort columns, operators,
 * collations and null order, and adds sort expressions to the input's target
 * list; the custom plan takes all that over, and the Sort's input as its outer
 * plan.  Nothing of make_sort_from_pathkeys is repeated here.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "access/table.h"
#include "exec/request.h"
#include "key/key.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/rel.h"

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
 * (VERBOSE); does it hand on what it sorts by; and if the store is the table, where the keys of ties are.
 */
static bool
in_table(const CustomPath *cpath)
{
	return list_length(cpath->custom_private) > 2;
}

/*
 * Has a path that only joins may read hand on expressions that it sorts by, as core's Sort does, so that a
 * merge join need not evaluate them again.
 */
void
ws_hand_on_keys(CustomPath *cpath)
{
	lsecond(cpath->custom_private) = makeBoolean(true);
}

/* `tlist` and, behind it, the expressions that `sort` sorts by and has of its input. */
static List *
with_keys(List *tlist, const Sort *sort, List *input)
{
	for (int i = 0; i < sort->numCols; i++)
	{
		TargetEntry *key = get_tle_by_resno(input, sort->sortColIdx[i]);

		if (IsA(key->expr, Var) || tlist_member(key->expr, tlist) != NULL)
			continue;
		key = makeTargetEntry(copyObject(key->expr), list_length(tlist) + 1, NULL, true);
		tlist = lappend(tlist, key);
	}
	return tlist;
}

/* Is there nothing in the input's rows, of target list `tlist`, but keys, which the entries will tell? */
bool
ws_rows_are_keys(const WsRequest *request, List *tlist)
{
	Bitmapset  *told = NULL;

	if (ws_record_store == WS_STORE_SPOOL || ws_record_store == WS_STORE_INLINE ||
		!ws_request_keys_fit(request))
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

/* The sort columns as columns of the table, whose TIDs and keys the rows of the input are (heap.c). */
static AttrNumber *
table_columns(const WsRequest *request, List *tlist)
{
	AttrNumber *columns = palloc(request->ncols * sizeof(AttrNumber));

	for (int i = 0; i < request->ncols; i++)
		columns[i] = castNode(Var, get_tle_by_resno(tlist, request->attnos[i])->expr)->varattno;
	return columns;
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
	request->sharers = ws_processes(best_path->path.parallel_workers) *
		ws_sorts_at_once(root, rel, best_path->path.pathkeys);
	if (in_table(best_path))
	{
		request->store = WS_KIND_HEAP;
		request->ties = (WsTieKeys) intVal(lthird(best_path->custom_private));
		request->columns = table_columns(request, input);
		cscan->scan.scanrelid = rel->relid; /* its rows are what we return */
	}
	else
	{
		if (ws_rows_are_keys(request, input))
		{
			request->store = WS_KIND_KEYS;
			request->why = "the rows are nothing but their keys";
		}
		cscan->custom_scan_tlist = copyObject(input);
		if (boolVal(lsecond(best_path->custom_private)))
			tlist = with_keys(tlist, sort, input);
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

/* Sets what EXPLAIN (VERBOSE) says of why a path has the record store it has. */
void
ws_set_reason(CustomPath *cpath, const char *reason)
{
	linitial(cpath->custom_private) = makeString(pstrdup(reason));
}

/*
 * Are there columns that their expressions do not tell apart?  Core's Sort hands its input's columns on by
 * position.  Those of a custom scan are matched by expression (setrefs.c).  Of volatile ones that are equal
 * (SELECT random(), random()) it takes the first for all of them.  With grouping sets it does so of any that
 * are equal, though each is null in rows of its own (GROUPING SETS ((a), (b)) of one column twice).  It
 * leaves constants as they are, which are null in some of these rows, too (GROUPING SETS ((k, 'all'), (k));
 * 18 hides them).  finish.c mends that if nothing else was projected.
 */
static bool
is_ambiguous(PlannerInfo *root, const PathTarget *target)
{
	bool		sets = root->parse->groupingSets != NIL;
	ListCell   *lc;

	foreach(lc, target->exprs)
	{
		int			next = foreach_current_index(lc) + 1;
		ListCell   *lc2;

		if (sets && IsA(lfirst(lc), Const))
			return true;
		if (!sets && (IsA(lfirst(lc), Var) || !contain_volatile_functions(lfirst(lc))))
			continue;
		for_each_from(lc2, target->exprs, next)
			if (equal(lfirst(lc), lfirst(lc2)))
				return true;
	}
	return false;
}

/* A WiscSort path around `sort`, without its costs. */
static CustomPath *
wrap(PlannerInfo *root, SortPath *sort)
{
	CustomPath *cpath = makeNode(CustomPath);

	Assert(sort->path.param_info == NULL);
	cpath->path = sort->path;
	cpath->path.type = T_CustomPath;
	cpath->path.pathtype = T_CustomScan;
	cpath->path.parallel_aware = false;
	ws_path_copy_disabled(&cpath->path, sort->subpath);
	cpath->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_MARK_RESTORE;
	if (!is_ambiguous(root, sort->path.pathtarget))
		cpath->flags |= CUSTOMPATH_SUPPORT_PROJECTION;
	cpath->custom_paths = list_make1(sort);
	cpath->custom_private = list_make2(makeString(
		!IS_SIMPLE_REL(sort->subpath->parent) ? "the input is not a scan of one table" :
		"the sort belongs to a later step, or costs more from the table"), makeBoolean(false));
	cpath->methods = &path_methods;
	return cpath;
}

/*
 * A WiscSort path that does what `sort` does, of which a LIMIT takes `bound` rows.  `sort` must not be
 * parameterised and becomes part of the new path.
 */
CustomPath *
ws_wrap_sort(PlannerInfo *root, SortPath *sort, double bound)
{
	CustomPath *cpath = wrap(root, sort);

	/* to go back, rows that travel have to be written once more: Material above does that better */
	if (ws_cost_sort(root, &cpath->path, &sort->path, sort->subpath, sort->path.pathkeys, bound))
		cpath->flags &= ~CUSTOMPATH_SUPPORT_MARK_RESTORE;
	return cpath;
}

/*
 * A WiscSort path around `sort`, whose input is TIDs and keys, of rows that stay in the table `rel`;
 * `ties` says where the keys of ties are.  Without its costs.
 */
CustomPath *
ws_wrap_heap_sort(PlannerInfo *root, SortPath *sort, RelOptInfo *rel, WsTieKeys ties)
{
	CustomPath *cpath = wrap(root, sort);

	cpath->path.pathtarget = rel->reltarget;
	cpath->custom_private = lappend(cpath->custom_private, makeInteger(ties));
	return cpath;
}
