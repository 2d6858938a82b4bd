/*-------------------------------------------------------------------------
 * groups.c - is it known how many groups a query has?
 *
 * Of an expression (date_trunc('day', t), lower(name)) without statistics PostgreSQL takes as many values for
 * granted as its columns have: that is the most there can be.  Where they are few, a hash table in memory
 * takes half as long as any sort, however much cheaper the sort seems (docs/decisions/30-cost-model.md).  So
 * it is left to core to choose between a hash table and a sort, and a WiscSort for such groups is charged
 * just less than core's.
 *
 * Where nothing can be hashed, a sort it is.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "utils/selfuncs.h"

/* May there be far fewer values of an expression than PostgreSQL expects? */
static bool
is_unknown(PlannerInfo *root, Node *expr)
{
	VariableStatData data;
	bool		unknown;

	expr = strip_implicit_coercions(expr);
	if (IsA(expr, Var) || IsA(expr, Const) || IsA(expr, Param))
		return false;
	examine_variable(root, expr, 0, &data);
	unknown = !HeapTupleIsValid(data.statsTuple) && !data.isunique;
	ReleaseVariableStats(data);
	return unknown;
}

/*
 * Might a hash table make the groups of the query (GROUP BY, or else DISTINCT), and are these perhaps far
 * fewer than they are expected to be?
 */
bool
ws_groups_unknown(PlannerInfo *root)
{
	Query	   *parse = root->parse;
	List	   *clauses = parse->groupClause != NIL ? parse->groupClause : parse->distinctClause;
	ListCell   *lc;

	if (!enable_hashagg || parse->groupingSets != NIL || !grouping_is_hashable(clauses) ||
		(parse->groupClause != NIL ? root->numOrderedAggs > 0 : parse->hasDistinctOn || parse->hasAggs))
		return false;
	foreach(lc, clauses)
		if (is_unknown(root, get_sortgroupclause_expr(lfirst(lc), root->processed_tlist)))
			return true;
	return false;
}
