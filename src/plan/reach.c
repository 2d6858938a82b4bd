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

/* So many times as many values may be on the other side of an equality. */
#define MOST_FOUND		2

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

/* How many values an expression has, by statistics; -1 if these do not say. */
static double
values_of(PlannerInfo *root, Node *expr)
{
	VariableStatData data;
	double		values;
	bool		unknown;

	examine_variable(root, expr, 0, &data);
	values = get_variable_numdistinct(&data, &unknown);
	ReleaseVariableStats(data);
	return unknown ? -1 : Max(values, 1);
}

/* Is `expr` a column of `rel` that an index finds? */
static bool
is_indexed(const RelOptInfo *rel, const Node *expr)
{
	return IsA(expr, Var) && (Index) ((const Var *) expr)->varno == rel->relid &&
		has_index(rel, ((const Var *) expr)->varattno);
}

/* If `expr` is a column of `rel` that an index finds: rows that a value has; else -1. */
static double
rows_found(PlannerInfo *root, const RelOptInfo *rel, Node *expr)
{
	double		values;

	expr = strip_implicit_coercions(expr);
	values = is_indexed(rel, expr) ? values_of(root, expr) : -1;
	return values < 0 ? -1 : Max(rel->tuples, 1) / values;
}

/* Has an equality of `other` with others so many values on its side that most of theirs find one? */
static bool
finds_most(PlannerInfo *root, const RelOptInfo *other, const EquivalenceClass *ec)
{
	double		theirs = -1;
	double		its = -1;
	ListCell   *lc;

	foreach(lc, ec->ec_members)
	{
		const EquivalenceMember *em = lfirst(lc);
		Node	   *expr = strip_implicit_coercions((Node *) em->em_expr);
		double		values;

		if (em->em_is_child || em->em_is_const)
			continue;
		if (bms_is_member(other->relid, em->em_relids) && !is_indexed(other, expr))
			continue;
		values = values_of(root, expr);
		if (bms_is_member(other->relid, em->em_relids))
			its = Max(its, values);
		else
			theirs = Max(theirs, values);
	}
	return theirs > 0 && its * MOST_FOUND >= theirs;
}

/*
 * Does an inner join with `other` keep most of the rows of the others, and look each up by an index?  All
 * pairs do; an equality if an index has its column, and statistics have about as many values of it as of the
 * columns that it is equal to.  Of a function, a CTE, a table without index or statistics nothing is known.
 */
bool
ws_finds_partners(PlannerInfo *root, const RelOptInfo *other)
{
	ListCell   *lc;

	/* conditions may be inside of it */
	if (!bms_is_empty(other->lateral_relids))
		return false;
	if (!other->has_eclass_joins && other->joininfo == NIL)
		return true;
	foreach(lc, root->eq_classes)
	{
		const EquivalenceClass *ec = lfirst(lc);

		if (bms_is_member(other->relid, ec->ec_relids) && !ec->ec_has_volatile && finds_most(root, other, ec))
			return true;
	}
	return false;
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
