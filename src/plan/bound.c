/*-------------------------------------------------------------------------
 * bound.c - how many rows a LIMIT is going to ask a sort for.
 *
 * Core's Sort is told when the query runs.  A WiscSort evaluates the clauses itself (finish.c hands them
 * down), so that one whose number is not known yet may be planned all the same: it can be one as fast as
 * core's heap of few rows.  But not where the clauses might come to something else the second time, as a
 * function that is not immutable may, or where a worker cannot evaluate them: there the sort would never be
 * told, and is left to core.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

/* Is a function not to be called in a parallel worker? */
static bool
is_leaders(Oid function, void *context)
{
	return func_parallel(function) != PROPARALLEL_SAFE;
}

/* Does an expression have a parameter that another node sets, or a function that workers do not call? */
static bool
is_kept_from_workers(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param))
		return ((Param *) node)->paramkind != PARAM_EXTERN;
	/* whose checks may call whatever */
	if (IsA(node, CoerceToDomain))
		return true;
	return check_functions_in_node(node, is_leaders, context) ||
		expression_tree_walker(node, is_kept_from_workers, context);
}

/* Does a clause come to the same again, in a node below, or even (`parallel`) in a worker? */
static bool
may_be_evaluated(Node *clause, bool parallel)
{
	return !contain_mutable_functions(clause) && !contain_subplans(clause) &&
		(!parallel || !is_kept_from_workers(clause, NULL));
}

/* Can a sort below a LIMIT of these clauses, perhaps in a parallel worker, be told how many rows that are? */
bool
ws_limit_told(Node *count, Node *offset, bool parallel)
{
	return may_be_evaluated(count, parallel) && may_be_evaluated(offset, parallel);
}

/* The number of rows that a LIMIT of these clauses, of the option LIMIT_OPTION_COUNT, asks a sort for. */
double
ws_limit_bound(Node *count, Node *offset, bool parallel)
{
	double		bound;

	if (count == NULL)
		return WS_NO_BOUND;
	if (!IsA(count, Const) || (offset != NULL && !IsA(offset, Const)))
		return ws_limit_told(count, offset, parallel) ? WS_UNKNOWN_BOUND : WS_UNTOLD_BOUND;
	if (((Const *) count)->constisnull)
		return WS_NO_BOUND;		/* LIMIT ALL */
	bound = (double) DatumGetInt64(((Const *) count)->constvalue);
	if (offset != NULL && !((Const *) offset)->constisnull)
		bound += (double) DatumGetInt64(((Const *) offset)->constvalue);
	return Max(bound, 1.0);
}

/* A column in whose order a level delivers its rows: its number there, and how it is ordered. */
typedef struct OrderedColumn
{
	AttrNumber	column;
	Oid			sortop;
	bool		nulls_first;
} OrderedColumn;

/* Does a level give each row of `relid`, its only relation, to the level outside, as it comes? */
static bool
hands_over(PlannerInfo *root, int relid)
{
	Query	   *q = root->parse;

	/* columns of members of UNION ALL need not have the numbers that they have in it */
	return !planner_rt_fetch(relid, root)->inh && (q->limitCount != NULL || !limit_needed(q)) &&
		root->simple_rel_array[relid]->baserestrictinfo == NIL && q->setOperations == NULL &&
		q->groupClause == NIL && q->groupingSets == NIL && q->distinctClause == NIL &&
		q->havingQual == NULL && q->rowMarks == NIL && !q->hasAggs && !q->hasWindowFuncs && !q->hasTargetSRFs;
}

/* The column of `relid` that an item of a target list is; or 0. */
static AttrNumber
column_of(const TargetEntry *item, int relid)
{
	const Var  *var = (const Var *) item->expr;

	return item->expr != NULL && IsA(var, Var) && var->varno == relid && var->varlevelsup == 0 ?
		var->varattno : 0;
}

/* The columns by which a level's ORDER BY orders it, the first first. */
static List *
columns_ordered(const Query *parse)
{
	List	   *order = NIL;
	ListCell   *lc;

	foreach(lc, parse->sortClause)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		OrderedColumn *c = palloc(sizeof(OrderedColumn));

		c->column = get_sortgroupclause_tle(clause, parse->targetList)->resno;
		c->sortop = clause->sortop;
		c->nulls_first = clause->nulls_first;
		order = lappend(order, c);
	}
	return order;
}

/* Are rows of `relid` that are in an `order` in that of the level's ORDER BY, too? */
static bool
is_in_order(const Query *parse, int relid, const List *order)
{
	ListCell   *lc;

	if (list_length(parse->sortClause) > list_length(order))
		return false;
	foreach(lc, parse->sortClause)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		const OrderedColumn *c = list_nth(order, foreach_current_index(lc));

		if (clause->sortop != c->sortop || clause->nulls_first != c->nulls_first ||
			column_of(get_sortgroupclause_tle(clause, parse->targetList), relid) != c->column)
			return false;
	}
	return true;
}

/* The `order` of the rows of `relid` by the numbers that the columns have in a level's own rows. */
static List *
order_outside(const Query *parse, int relid, const List *order)
{
	List	   *found = NIL;
	ListCell   *lc;

	foreach(lc, order)
	{
		OrderedColumn *c = lfirst(lc);
		ListCell   *item;

		foreach(item, parse->targetList)
			if (column_of(lfirst(item), relid) == c->column)
				break;
		if (item == NULL)
			break;
		c->column = lfirst_node(TargetEntry, item)->resno;
		found = lappend(found, c);
	}
	return found;
}

/*
 * The level outside whose LIMIT a sort of this level's rows is told of: ExecSetTupleBound() passes it through
 * levels that give their only relation's rows to the next one, in the order that they come in.  Or NULL.
 */
static const Query *
limit_outside(const PlannerInfo *root)
{
	List	   *order = columns_ordered(root->parse);

	if (limit_needed(root->parse))
		return NULL;			/* the rows go through a Limit of its own */
	for (PlannerInfo *outside = root->parent_root; outside != NULL; outside = outside->parent_root)
	{
		int			relid;

		/* none yet while common table expressions and SubPlans are planned */
		if (!bms_get_singleton_member(outside->all_baserels, &relid) || !hands_over(outside, relid) ||
			!is_in_order(outside->parse, relid, order))
			return NULL;
		if (outside->parse->limitCount != NULL)
			return outside->parse->limitOption == LIMIT_OPTION_COUNT ? outside->parse : NULL;
		order = order_outside(outside->parse, relid, order);
	}
	return NULL;
}

/* A bound as it is in a parallel worker, of a LIMIT of a query level, or of one outside. */
double
ws_bound_in_worker(PlannerInfo *root, double bound)
{
	const Query *parse = root->parse;

	if (bound != WS_UNKNOWN_BOUND)
		return bound;
	if (parse->limitCount == NULL)
		parse = limit_outside(root);
	if (parse == NULL && root->parent_root != NULL)
		parse = root->parent_root->parse;
	return parse != NULL && ws_limit_told(parse->limitCount, parse->limitOffset, true) ? bound :
		WS_UNTOLD_BOUND;
}

/*
 * Does a level ask its only subquery for more rows than its LIMIT is for?  Its conditions may drop some, and
 * ExecSetTupleBound() does not pass its windows, functions that return sets, and locks.
 */
static bool
is_bound_lost(PlannerInfo *root)
{
	int			relid;

	return root->parse->hasWindowFuncs || root->parse->hasTargetSRFs || root->parse->rowMarks != NIL ||
		(bms_get_singleton_member(root->all_baserels, &relid) &&
		 root->simple_rel_array[relid]->baserestrictinfo != NIL);
}

/*
 * The number of rows that levels outside will take of a subquery.  The planner passes a LIMIT's number down
 * as tuple_fraction, but only to the next level, and not if that has an ORDER BY, be it the same one.
 */
double
ws_inherited_bound(PlannerInfo *root)
{
	const Query *outside = root->parent_root != NULL ? root->parent_root->parse : NULL;

	if (outside == NULL)
		return WS_NO_BOUND;
	if (root->tuple_fraction <= 0 || outside->limitCount == NULL)
	{
		outside = limit_outside(root);
		return outside == NULL ? WS_NO_BOUND :
			ws_limit_bound(outside->limitCount, outside->limitOffset, false);
	}
	if (is_bound_lost(root->parent_root))
		return WS_NO_BOUND;
	if (root->tuple_fraction >= 1)
		return root->tuple_fraction;
	return ws_limit_told(outside->limitCount, outside->limitOffset, false) ? WS_UNKNOWN_BOUND :
		WS_UNTOLD_BOUND;
}

/* Does an outer join only add columns of `other` to the rows of `own`, whatever its conditions? */
bool
ws_is_optional(const PlannerInfo *root, Relids own, Relids other)
{
	ListCell   *lc;

	foreach(lc, root->join_info_list)
	{
		const SpecialJoinInfo *join = lfirst_node(SpecialJoinInfo, lc);

		if ((join->jointype == JOIN_LEFT || join->jointype == JOIN_FULL) &&
			bms_is_subset(other, join->syn_righthand) && !bms_overlap(own, join->syn_righthand))
			return true;
	}
	return false;
}

/*
 * Might the rows of `rel`, in the order of the query, be read far beyond the LIMIT of the query, or of one
 * outside?  They are if conditions on other tables, or EXISTS and IN, or joins that find nothing, drop those
 * that come first.  Core keeps the LIMIT's rows above the joins.
 */
bool
ws_limit_may_starve(PlannerInfo *root, const RelOptInfo *rel)
{
	const Query *q = root->parse;
	Relids		own = rel->top_parent_relids != NULL ? rel->top_parent_relids : rel->relids;
	ListCell   *lc;

	if (ws_debug_force || (q->limitCount == NULL && root->tuple_fraction <= 0) ||
		bms_membership(root->all_baserels) != BMS_MULTIPLE ||
		(q->limitCount == NULL &&
		 (q->groupClause != NIL || q->groupingSets != NIL || q->distinctClause != NIL || q->hasAggs ||
		  q->hasWindowFuncs)))
		return false;
	foreach(lc, root->join_info_list)
	{
		const SpecialJoinInfo *join = lfirst_node(SpecialJoinInfo, lc);

		/* EXISTS, IN and NOT EXISTS drop rows without a condition on the other table */
		if ((join->jointype == JOIN_SEMI || join->jointype == JOIN_ANTI) &&
			bms_overlap(own, join->syn_lefthand))
			return true;
	}
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		const RelOptInfo *other = root->simple_rel_array[i];

		if (other != NULL && other->reloptkind == RELOPT_BASEREL && !bms_overlap(own, other->relids) &&
			!ws_is_optional(root, own, other->relids) &&
			(other->baserestrictinfo != NIL || !ws_finds_partners(root, other)))
			return true;
	}
	return false;
}

/* How many rows the query's LIMIT asks for of a sort of its only relation in the order of the query. */
double
ws_query_bound(PlannerInfo *root, bool parallel)
{
	Query	   *parse = root->parse;
	double		bound;

	if (bms_membership(root->all_baserels) != BMS_SINGLETON ||
		parse->groupClause || parse->groupingSets || parse->distinctClause ||
		parse->hasAggs || parse->hasWindowFuncs || parse->hasTargetSRFs ||
		(parse->limitCount != NULL && parse->rowMarks != NIL))
		return WS_NO_BOUND;		/* of rows that are locked more may be asked for, too */
	bound = parse->limitCount == NULL ? ws_inherited_bound(root) :
		parse->limitOption == LIMIT_OPTION_WITH_TIES ? WS_NO_BOUND :
		root->limit_tuples > 0 ? root->limit_tuples :
		ws_limit_told(parse->limitCount, parse->limitOffset, false) ? WS_UNKNOWN_BOUND : WS_UNTOLD_BOUND;
	return parallel ? ws_bound_in_worker(root, bound) : bound;
}
