/*-------------------------------------------------------------------------
 * orderings.c - the orderings in which a base relation is worth having.
 *
 * What postgres_fdw asks a remote server to deliver sorted is what is useful
 * here: the query's own orderings (ORDER BY, GROUP BY, window, DISTINCT), and
 * one for each equivalence class that a merge join could use.  In addition,
 * for each other relation that shares several classes with this one, all of
 * them in one order that both sides arrive at, so that a merge join on
 * several clauses finds both inputs sorted.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "access/htup_details.h"
#include "executor/hashjoin.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

/* More orderings than that, and planning costs more than it can gain. */
#define MAX_ORDERINGS	10

/* Bytes that joins add to rows, from which on it may pay to sort a table below them. */
#define WIDER			500

/* Of a table's rows, those after which a query ends early. */
#define FEW				0.1

/* Adds an ordering unless it is empty, known, or one too many. */
static List *
add_ordering(List *orderings, List *pathkeys)
{
	ListCell   *lc;

	if (pathkeys == NIL || list_length(orderings) >= MAX_ORDERINGS)
		return orderings;
	foreach(lc, orderings)
	{
		/* a longer one sorts by this one too */
		if (pathkeys_contained_in(pathkeys, lfirst(lc)))
			return orderings;
	}
	return lappend(orderings, pathkeys);
}

/*
 * Can the relation's rows be sorted by these keys, before any join?  With
 * `parallel`, in a parallel worker?
 */
bool
ws_ordering_computable(PlannerInfo *root, RelOptInfo *rel, List *pathkeys, bool parallel)
{
	ListCell   *lc;

	foreach(lc, pathkeys)
		if (!ws_class_computable(root, rel, lfirst_node(PathKey, lc)->pk_eclass, parallel))
			return false;
	return pathkeys != NIL;
}

/*
 * Is each key a column of the relation?  Expressions of a query's ordering are
 * not evaluated below its joins: a row that no join lets through might raise an
 * error (1 / x) that the query does not have.  Nor are they in other places (evaluated_for_all).
 */
static bool
only_columns(PlannerInfo *root, RelOptInfo *rel, List *pathkeys)
{
	ListCell   *lc;

	foreach(lc, pathkeys)
	{
		EquivalenceClass *ec = lfirst_node(PathKey, lc)->pk_eclass;
		bool		found = false;
		ListCell   *lc2;

		foreach(lc2, rel->reltarget->exprs)
		{
			Expr	   *expr = lfirst(lc2);

			if (IsA(expr, Var) && ws_member_of(root, rel, ec, expr) != NULL)
				found = true;
		}
		if (!found)
			return false;
	}
	return true;
}

/*
 * Does core evaluate the keys of a query's ordering for all rows of its only relation?  Not below its groups,
 * which HAVING may drop, or its windows, which may end early, but for what it groups by or its first window
 * has.  Nor below the LIMIT of a member of UNION, if the UNION wants that order and not the member.
 */
static bool
evaluated_for_all(const PlannerInfo *root, List *pathkeys)
{
	bool		groups = pathkeys == root->group_pathkeys;

	return bms_membership(root->all_baserels) == BMS_SINGLETON &&
		(root->parse->groupClause == NIL || groups) &&
		(!root->parse->hasWindowFuncs || groups || pathkeys_contained_in(pathkeys, root->window_pathkeys)) &&
		(root->parse->limitCount == NULL || groups || pathkeys == root->sort_pathkeys ||
		 pathkeys == root->window_pathkeys || pathkeys == root->distinct_pathkeys);
}

/* The relation that a base relation, or a partition of it, is. */
static Relids
parent_relids(const RelOptInfo *rel)
{
	return rel->top_parent_relids != NULL ? rel->top_parent_relids : rel->relids;
}

/* Would the rows of a relation not fit the memory of a hash table? */
static bool
hash_spills(const RelOptInfo *rel)
{
	double		row = MAXALIGN(rel->reltarget->width) + MAXALIGN(SizeofMinimalTupleHeader);

	row += HJTUPLE_OVERHEAD;
	return rel->rows * row > (double) get_hash_memory_limit();
}

/*
 * Is one of these base relations, but for `rel`, so large that sorting it may be worth while?  Otherwise a
 * hash join takes less.
 */
static bool
has_large(PlannerInfo *root, const RelOptInfo *rel, Relids relids)
{
	int			i = -1;

	if (!enable_hashjoin)
		return true;
	while ((i = bms_next_member(relids, i)) >= 0)
	{
		const RelOptInfo *other = i < root->simple_rel_array_size ? root->simple_rel_array[i] : NULL;

		if (other != NULL && !bms_is_member(i, parent_relids(rel)) && other->reloptkind == RELOPT_BASEREL &&
			(ws_debug_force || hash_spills(other)))
			return true;
	}
	return false;
}

/*
 * Those of the classes whose keys may be evaluated for all rows of the relation.  Where more than two are
 * joined, an expression waits for the join that needs it: another join may have to come first, or the planner
 * may put it first, and it may let no row through that raises an error.
 */
static List *
evaluable_classes(PlannerInfo *root, RelOptInfo *rel, List *classes)
{
	List	   *evaluable = NIL;
	ListCell   *lc;

	foreach(lc, classes)
		if (bms_num_members(root->all_baserels) <= 2 ||
			only_columns(root, rel, list_make1(ws_ascending_pathkey(root, lfirst(lc)))))
			evaluable = lappend(evaluable, lfirst(lc));
	return evaluable;
}

/* Equivalence classes that a merge join of this relation could use, with one that is large, too. */
static List *
mergeable_classes(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *classes = NIL;
	ListCell   *lc;

	foreach(lc, root->eq_classes)
	{
		EquivalenceClass *ec = lfirst(lc);

		if (has_large(root, rel, ec->ec_relids) && eclass_useful_for_merging(root, ec, rel))
			classes = list_append_unique_ptr(classes, ec);
	}
	foreach(lc, rel->joininfo)
	{
		RestrictInfo *ri = lfirst(lc);
		Relids		relids = parent_relids(rel);

		if (ri->mergeopfamilies == NIL ||
			(OidIsValid(ri->hashjoinoperator) && !has_large(root, rel, ri->clause_relids)))
			continue;
		update_mergeclause_eclasses(root, ri);
		if (bms_overlap(relids, ri->right_ec->ec_relids))
			classes = list_append_unique_ptr(classes, ri->right_ec);
		else if (bms_overlap(relids, ri->left_ec->ec_relids))
			classes = list_append_unique_ptr(classes, ri->left_ec);
	}
	return classes;
}

/* The shared classes of two relations as one ordering, the same for both. */
static List *
shared_ordering(PlannerInfo *root, RelOptInfo *rel, List *classes, int peer,
				bool parallel)
{
	List	   *pathkeys = NIL;
	ListCell   *lc;

	foreach(lc, classes)
	{
		EquivalenceClass *ec = lfirst(lc);
		PathKey    *pk;

		if (!bms_is_member(peer, ec->ec_relids) || !ws_class_computable(root, rel, ec, parallel))
			continue;
		pk = ws_ascending_pathkey(root, ec);
		if (!list_member_ptr(pathkeys, pk))
			pathkeys = lappend(pathkeys, pk);
	}
	return list_length(pathkeys) > 1 ? pathkeys : NIL;
}

/* Is there no condition that joins the relation with others? */
static bool
joined_by_nothing(const RelOptInfo *rel)
{
	return !rel->has_eclass_joins && rel->joininfo == NIL;
}

/*
 * Of which other relations does a condition tell the rows that join `rel`, that only a nested loop can check:
 * a range, a function?  PostgreSQL takes a fixed share of all pairs for it, of ranges of time a ninth, where
 * an index finds a few.  Outer joins that only add columns to the rows of `rel` drop none, and do not count.
 */
static Relids
guessed_by(const PlannerInfo *root, const RelOptInfo *rel, const RestrictInfo *ri)
{
	Relids		others = bms_difference(bms_intersect(ri->clause_relids, root->all_baserels),
										parent_relids(rel));

	if (OidIsValid(ri->hashjoinoperator) || ws_is_optional(root, parent_relids(rel), others))
		return NULL;
	return others;
}

/* Does any join of the level go by such a condition? */
static bool
joined_by_guess(PlannerInfo *root, const RelOptInfo *rel)
{
	int			i = -1;
	ListCell   *lc;

	while ((i = bms_next_member(root->all_baserels, i)) >= 0)
		foreach(lc, root->simple_rel_array[i] != NULL ? root->simple_rel_array[i]->joininfo : NIL)
			if (!bms_is_empty(guessed_by(root, rel, lfirst_node(RestrictInfo, lc))))
				return true;
	return false;
}

/* Is there a relation that joins `rel` by nothing else?  `classes` have those that equality joins. */
static bool
has_guessed_peer(PlannerInfo *root, const RelOptInfo *rel, List *classes)
{
	ListCell   *lc,
			   *lc2;

	foreach(lc, rel->joininfo)
	{
		Relids		peers = guessed_by(root, rel, lfirst_node(RestrictInfo, lc));

		foreach(lc2, classes)
			peers = bms_difference(peers, ((EquivalenceClass *) lfirst(lc2))->ec_relids);
		if (!bms_is_empty(peers))
			return true;
	}
	return false;
}

/*
 * Does a LIMIT end the query after few of the rows of `rel`, or of all partitions with it?  One that is not
 * known yet does, as PostgreSQL has it.  A cursor does not: most are read to their end.
 */
static bool
ends_early(PlannerInfo *root, const RelOptInfo *rel)
{
	const Node *limit = root->parse->limitCount;

	if (limit != NULL && IsA(limit, Const) && ((const Const *) limit)->constisnull)
		limit = NULL;
	if (rel->top_parent_relids != NULL)
		rel = find_base_rel(root, bms_singleton_member(rel->top_parent_relids));
	if (root->tuple_fraction >= 1)
		return root->tuple_fraction <= FEW * rel->rows;
	return root->tuple_fraction > 0 && limit != NULL;
}

/*
 * May it pay to sort `rel` by the ordering of the whole query below joins, where nothing ends early?  Only a
 * merge join by the same key keeps the order at no cost.  A nested loop does, too, but its look-up takes more
 * than twice as long as that of a hash join, which its cost does not say: there joins must make so wide rows
 * that sorting them afterwards takes long, or leave no choice.  How many they make must not be a guess: if
 * they make few, looking these up by an index takes nothing beside sorting a table
 * (docs/decisions/30-cost-model.md).
 */
static bool
pays_below_joins(PlannerInfo *root, const RelOptInfo *rel, List *pathkeys, List *classes)
{
	const Query *q = root->parse;

	if (ws_debug_force || bms_membership(root->all_baserels) == BMS_SINGLETON ||
		list_member_ptr(classes, linitial_node(PathKey, pathkeys)->pk_eclass))
		return true;
	if (joined_by_guess(root, rel))
		return false;
	if (ends_early(root, rel) || !enable_hashjoin || !bms_is_empty(rel->lateral_referencers) ||
		joined_by_nothing(rel))
		return true;
	return q->groupClause == NIL && q->groupingSets == NIL && !q->hasAggs &&
		ws_sorted_width(root) > WIDER + rel->reltarget->width;
}

/*
 * The orderings, each a List of PathKey, that are worth a sorted path of
 * `rel`.  With `parallel`, only those whose expressions a parallel worker may
 * evaluate.  Lists belong to the planner's context.
 */
List *
ws_useful_orderings(PlannerInfo *root, RelOptInfo *rel, bool parallel)
{
	List	   *own[] = {root->query_pathkeys, root->sort_pathkeys,
		root->group_pathkeys, root->window_pathkeys, root->distinct_pathkeys};
	List	   *orderings = NIL;
	List	   *classes;
	ListCell   *lc;
	int			peer = -1;
	List	   *grouping = root->parse->groupClause != NIL ? root->group_pathkeys : root->distinct_pathkeys;

	if (!ws_debug_force && ws_reached_by_indexes(root))
		return NIL;
	if (!ws_debug_force && grouping != NIL && ws_hashed_for_less(root))
	{
		/* a hash table may take much less than it seems */
		for (int i = 0; i < (int) lengthof(own); i++)
			if (pathkeys_contained_in(grouping, own[i]))
				own[i] = NIL;
	}
	if (ws_limit_may_starve(root, rel))
		memset(own, 0, sizeof(own));
	if (ws_made_in_scan_order(root, rel, ends_early(root, rel)) ||
		(!ws_debug_force && ws_is_union_of_few(root)))
		for (int i = 0; i < (int) lengthof(own); i++)
			if (own[i] == root->query_pathkeys)
				own[i] = NIL;
	/* a window without an order may stop after some rows, and numbers them as they are scanned */
	if (!ws_debug_force && root->parse->hasWindowFuncs && root->window_pathkeys == NIL)
		for (int i = 0; i < (int) lengthof(own); i++)
			if (own[i] != root->group_pathkeys)
				own[i] = NIL;
	/* mostly these are one list, and what of it can be computed takes a while with many partitions */
	for (int i = 1; i < (int) lengthof(own); i++)
		for (int j = 0; j < i; j++)
			if (own[j] == own[i])
				own[i] = NIL;
	classes = mergeable_classes(root, rel);
	/* nested loops would be between the sorted rows and the merge, or the end */
	if (!ws_debug_force && has_guessed_peer(root, rel, classes))
		classes = NIL;
	for (int i = 0; i < (int) lengthof(own); i++)
		if (own[i] != NIL && pays_below_joins(root, rel, own[i], classes) &&
			ws_ordering_computable(root, rel, own[i], parallel) &&
			(evaluated_for_all(root, own[i]) || only_columns(root, rel, own[i])))
			orderings = add_ordering(orderings, own[i]);

	classes = evaluable_classes(root, rel, classes);
	while (list_length(classes) > 1 &&
		   (peer = bms_next_member(root->all_baserels, peer)) >= 0)
	{
		if (!bms_is_member(peer, parent_relids(rel)))
			orderings = add_ordering(orderings,
									 shared_ordering(root, rel, classes, peer,
													 parallel));
	}
	foreach(lc, classes)
	{
		List	   *pathkeys = list_make1(ws_ascending_pathkey(root, lfirst(lc)));

		if (ws_ordering_computable(root, rel, pathkeys, parallel))
			orderings = add_ordering(orderings, pathkeys);
	}
	return orderings;
}
