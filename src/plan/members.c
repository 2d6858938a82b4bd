/*-------------------------------------------------------------------------
 * members.c - which expressions of a relation are members of an equivalence class.
 *
 * A class has a member for each partition (before PostgreSQL 18, all in one list), and core's functions go
 * through that list for each column of each partition.  For core that is bearable, since it asks for the
 * partitions of a path that it has chosen; sorts of each partition are considered for each of them.  With
 * 500 partitions of 20 columns that was nine tenths of planning.  So the parent's members are looked at, of
 * which there are few, as they are in the partition.  And how many such sorts there are at once.
 *
 * Measured: docs/decisions/30-cost-model.md.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include <math.h>

#include "nodes/nodeFuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "partitioning/partbounds.h"

/* Sorts that are said to be at once at most: a number that may be multiplied. */
#define MOST_AT_ONCE	100000.0

/* Orderings for which it is kept whether partitions follow them. */
#define KEPT_ORDERINGS	8

/* The same without conversions that change no bits. */
static const Node *
bare(const Node *expr)
{
	while (expr != NULL && IsA(expr, RelabelType))
		expr = (const Node *) ((const RelabelType *) expr)->arg;
	return expr;
}

/* What a column of a parent is in one of its partitions; NULL: not simply a column. */
static const Node *
column_in(PlannerInfo *root, const Var *var, Index relid)
{
	const AppendRelInfo *info;
	const Node *parents;

	if (var->varno == (int) relid)
		return (const Node *) var;
	info = root->append_rel_array != NULL ? root->append_rel_array[relid] : NULL;
	parents = info != NULL ? column_in(root, var, info->parent_relid) : NULL;
	if (parents == NULL || !IsA(parents, Var) || ((const Var *) parents)->varattno <= 0 ||
		((const Var *) parents)->varattno > list_length(info->translated_vars))
		return NULL;
	return list_nth(info->translated_vars, ((const Var *) parents)->varattno - 1);
}

/* What a parent's expression is in one of its partitions. */
static const Node *
expression_in(PlannerInfo *root, RelOptInfo *rel, const Expr *expr)
{
	const Node *column = IsA(expr, Var) ? column_in(root, (const Var *) expr, rel->relid) : NULL;

	return column != NULL ? column : ws_expression_in_child(root, expr, rel);
}

/* Is a relation a partition, or a member of UNION ALL, whose parent has the members to look at? */
static bool
has_parents(const PlannerInfo *root, const RelOptInfo *rel)
{
	return rel->reloptkind == RELOPT_OTHER_MEMBER_REL && rel->top_parent_relids != NULL;
}

/* The next of the class's members that are of the parent alone, from *at on; NULL: there are no more. */
static EquivalenceMember *
next_of_parent(const RelOptInfo *rel, const EquivalenceClass *ec, int *at)
{
	while (*at < list_length(ec->ec_members))
	{
		EquivalenceMember *em = list_nth_node(EquivalenceMember, ec->ec_members, (*at)++);

		/* those of partitions come behind all others */
		if (em->em_is_child)
			return NULL;
		if (!em->em_is_const && bms_equal(em->em_relids, rel->top_parent_relids))
			return em;
	}
	return NULL;
}

/*
 * The member of the class that `expr`, of `rel`, is; of a partition that of its parent, which has the same
 * types.  NULL: it is none.
 */
EquivalenceMember *
ws_member_of(PlannerInfo *root, RelOptInfo *rel, EquivalenceClass *ec, Expr *expr)
{
	EquivalenceMember *em;
	int			at = 0;

	if (!has_parents(root, rel))
		return find_ec_member_matching_expr(ec, expr, rel->relids);
	while ((em = next_of_parent(rel, ec, &at)) != NULL)
		if (equal(bare(expression_in(root, rel, em->em_expr)), bare((const Node *) expr)))
			return em;
	return NULL;
}

/* Are all columns of an expression in the target? */
static bool
has_columns_of(const PathTarget *target, const Node *expr)
{
	const int	flags = PVC_INCLUDE_AGGREGATES | PVC_INCLUDE_WINDOWFUNCS | PVC_INCLUDE_PLACEHOLDERS;
	List	   *wanted = pull_var_clause((Node *) expr, flags);

	return list_difference(wanted, pull_var_clause((Node *) target->exprs, flags)) == NIL;
}

/* Can the rows of a relation be sorted by the class, before any join?  With `parallel`, in a worker? */
bool
ws_class_computable(PlannerInfo *root, RelOptInfo *rel, EquivalenceClass *ec, bool parallel)
{
	EquivalenceMember *em;
	int			at = 0;

	if (!has_parents(root, rel))
		return relation_can_be_sorted_early(root, rel, ec, parallel);
	if (ec->ec_has_volatile)
		return false;
	while ((em = next_of_parent(rel, ec, &at)) != NULL)
	{
		const Node *expr = expression_in(root, rel, em->em_expr);

		if (!expression_returns_set((Node *) expr) &&
			(list_member(rel->reltarget->exprs, expr) || has_columns_of(rel->reltarget, expr)) &&
			(!parallel || is_parallel_safe(root, (Node *) expr)))
			return true;
	}
	return false;
}

/* Does core read a parent's partitions one after the other, for rows in the order of `pathkeys`? */
static bool
follows_bounds_anew(PlannerInfo *root, RelOptInfo *parent, List *pathkeys)
{
	const ScanDirection directions[] = {ForwardScanDirection, BackwardScanDirection};

	if (parent->part_scheme == NULL || !partitions_are_ordered(parent->boundinfo, parent->live_parts))
		return false;
	for (int i = 0; i < (int) lengthof(directions); i++)
	{
		bool		partial;
		List	   *bounds = build_partition_pathkeys(root, parent, directions[i], &partial);

		if (pathkeys_contained_in(pathkeys, bounds) ||
			(!partial && pathkeys_contained_in(bounds, pathkeys)))
			return true;
	}
	return false;
}

/*
 * The same, and kept: each partition asks it several times, and each answer looks at the members of all.
 * (docs/decisions/30-cost-model.md)
 */
static bool
follows_bounds(PlannerInfo *root, RelOptInfo *parent, List *pathkeys)
{
	static struct
	{
		const RelOptInfo *parent;
		const List *pathkeys;
		const PathKey *only;	/* the one of a list of one, which each has anew */
		bool		follows;
	}			kept[KEPT_ORDERINGS];
	static int	n = 0;
	static uint64 number = 0;
	const PathKey *only = list_length(pathkeys) == 1 ? linitial_node(PathKey, pathkeys) : NULL;

	if (number != ws_planning_number())
		n = 0;
	number = ws_planning_number();
	for (int i = 0; i < Min(n, KEPT_ORDERINGS); i++)
		if (kept[i].parent == parent &&
			(kept[i].pathkeys == pathkeys || (only != NULL && kept[i].only == only)))
			return kept[i].follows;
	kept[n % KEPT_ORDERINGS].follows = follows_bounds_anew(root, parent, pathkeys);
	kept[n % KEPT_ORDERINGS].parent = parent;
	kept[n % KEPT_ORDERINGS].pathkeys = pathkeys;
	kept[n % KEPT_ORDERINGS].only = only;
	return kept[n++ % KEPT_ORDERINGS].follows;
}

/* The base relation of which `rel` is a partition or a member; NULL: of none, or of a join. */
static RelOptInfo *
parent_of(PlannerInfo *root, const RelOptInfo *rel)
{
	if (rel->reloptkind != RELOPT_OTHER_MEMBER_REL ||
		bms_membership(rel->top_parent_relids) != BMS_SINGLETON)
		return NULL;
	return find_base_rel(root, bms_singleton_member(rel->top_parent_relids));
}

/*
 * Are the rows of `rel`, a partition or a member of UNION ALL, to be sorted by `pathkeys` with those of all
 * others, and not by themselves?  `bound` is that of a LIMIT.
 *
 * A sort by keys that are compared is to take the place of core's, and of no hash table.  Core has no merge
 * of small sorts for which it would have to charge what that takes: by its costs many small sorts are cheaper
 * than one of all rows, and so than the hash table that is cheaper than this one.  Without them, core's one
 * Sort becomes a WiscSort (rewrite.c).  Where workers can scan, they stay: core's Sort would give way to
 * sorts of workers there, which take longer than the one sort that takes the place of the merge.
 */
bool
ws_sorted_with_others(PlannerInfo *root, const RelOptInfo *rel, List *pathkeys, double bound)
{
	RelOptInfo *parent = parent_of(root, rel);

	return !ws_debug_force && parent != NULL && bound == WS_NO_BOUND && ws_record_store != WS_STORE_HEAP &&
		rel->partial_pathlist == NIL && root->parse->rowMarks == NIL &&
		bms_membership(root->all_baserels) == BMS_SINGLETON &&
		ws_any_stays_compared(root, pathkeys, parent->rows) && !follows_bounds(root, parent, pathkeys) &&
		!ws_read_partly(root);
}

/*
 * Sorts of all partitions whose results are merged are there at once: to how many sorts as that of `rel` do
 * they come, by rows?  1 if it is no partition, and where one partition is read after the other.
 */
int
ws_sorts_at_once(PlannerInfo *root, const RelOptInfo *rel, List *pathkeys)
{
	RelOptInfo *parent = parent_of(root, rel);
	double		times;

	if (parent == NULL || pathkeys == NIL || follows_bounds(root, parent, pathkeys))
		return 1;
	times = ceil(parent->rows / Max(rel->rows, 1.0));
	return (int) Max(1.0, Min(times, MOST_AT_ONCE));
}
