/*-------------------------------------------------------------------------
 * reach.c - does a query start from few rows, and find all others by indexes?
 *
 * Most joins of an application are such: a customer, its orders, the lines of these.  No relation of them is
 * going to be sorted as a whole, however large it is.  To consider that for each of them made planning a join
 * of four tables take a third longer, which was most of the query's time (docs/decisions/30-cost-model.md).
 *
 * From the relation with the fewest rows on, those are reached that have an index whose first column is
 * equal to one of a relation reached before.  The rows are multiplied by those that a value has on average.
 * What is so reached in few rows all in all is joined by nested loops, by PostgreSQL's own costs.
 *
 * Memory: a set of relations, the planner's.  Nothing is raised.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "catalog/pg_am.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/selfuncs.h"

/* Rows of the relation to begin with, at most, and of all joined. */
#define FEW_BEGIN		100.0
#define FEW_JOINED		10000.0

/* Has a relation an index that finds a value of a column? */
static bool
has_index(const RelOptInfo *rel, AttrNumber column)
{
	ListCell   *lc;

	foreach(lc, rel->indexlist)
	{
		const IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if ((index->relam == BTREE_AM_OID || index->relam == HASH_AM_OID) &&
			index->indexkeys[0] == column && (index->indpred == NIL || index->predOK))
			return true;
	}
	return false;
}

/* If `expr` is a column of `rel` that an index finds: rows that a value has; else -1. */
static double
rows_found(PlannerInfo *root, const RelOptInfo *rel, Node *expr)
{
	VariableStatData data;
	double		values;
	bool		unknown;

	expr = strip_implicit_coercions(expr);
	if (!IsA(expr, Var) || (Index) ((Var *) expr)->varno != rel->relid ||
		!has_index(rel, ((Var *) expr)->varattno))
		return -1;
	examine_variable(root, expr, 0, &data);
	values = get_variable_numdistinct(&data, &unknown);
	ReleaseVariableStats(data);
	return unknown ? -1 : Max(rel->tuples, 1) / Max(values, 1);
}

/* By a class of equal columns: rows of `rel` for one of those reached, or -1. */
static double
rows_by_classes(PlannerInfo *root, const RelOptInfo *rel, Relids reached)
{
	ListCell   *lc;
	ListCell   *lm;

	foreach(lc, root->eq_classes)
	{
		const EquivalenceClass *ec = lfirst_node(EquivalenceClass, lc);

		if (ec->ec_has_volatile || !bms_is_member(rel->relid, ec->ec_relids) ||
			!bms_overlap(ec->ec_relids, reached))
			continue;
		foreach(lm, ec->ec_members)
		{
			double		rows = rows_found(root, rel, (Node *) lfirst_node(EquivalenceMember, lm)->em_expr);

			if (rows >= 0)
				return rows;
		}
	}
	return -1;
}

/* The same by the condition of an outer join. */
static double
rows_by_conditions(PlannerInfo *root, const RelOptInfo *rel, Relids reached)
{
	ListCell   *lc;

	foreach(lc, rel->joininfo)
	{
		const RestrictInfo *condition = lfirst_node(RestrictInfo, lc);
		bool		left;

		if (condition->mergeopfamilies == NIL)
			continue;
		left = bms_is_member(rel->relid, condition->left_relids);
		if (bms_is_subset(left ? condition->right_relids : condition->left_relids, reached))
		{
			double		rows = rows_found(root, rel, left ? get_leftop(condition->clause) :
										  get_rightop(condition->clause));

			if (rows >= 0)
				return rows;
		}
	}
	return -1;
}

/* The base relation with the fewest rows; NULL if there is only one. */
static const RelOptInfo *
smallest(PlannerInfo *root)
{
	const RelOptInfo *found = NULL;
	int			relid = -1;
	int			n = 0;

	while ((relid = bms_next_member(root->all_baserels, relid)) >= 0)
	{
		const RelOptInfo *rel = relid < root->simple_rel_array_size ? root->simple_rel_array[relid] : NULL;

		if (rel == NULL)
			continue;
		n++;
		if (found == NULL || rel->rows < found->rows)
			found = rel;
	}
	return n > 1 ? found : NULL;
}

/* Are all relations of a query level reached from one with few rows, in few rows? */
bool
ws_reached_by_indexes(PlannerInfo *root)
{
	const RelOptInfo *first = smallest(root);
	Relids		reached;
	double		rows;
	bool		more = true;

	if (first == NULL || first->rows > FEW_BEGIN || !enable_nestloop)
		return false;
	rows = first->rows;
	reached = bms_make_singleton(first->relid);
	while (more && rows <= FEW_JOINED)
	{
		int			relid = -1;

		more = false;
		while ((relid = bms_next_member(root->all_baserels, relid)) >= 0)
		{
			const RelOptInfo *rel;
			double		found;

			if (relid >= root->simple_rel_array_size || bms_is_member(relid, reached))
				continue;
			rel = root->simple_rel_array[relid];
			if (rel == NULL)
				continue;
			found = rows_by_classes(root, rel, reached);
			if (found < 0)
				found = rows_by_conditions(root, rel, reached);
			if (found < 0)
				continue;
			rows *= Max(found, 1);
			reached = bms_add_member(reached, relid);
			more = true;
		}
	}
	return rows <= FEW_JOINED && bms_is_subset(root->all_baserels, reached);
}
