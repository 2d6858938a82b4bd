/*-------------------------------------------------------------------------
 * rewrite.c - replacing the Sorts that a finished path tree contains.
 *
 * Called at UPPERREL_FINAL, once for every query level, when the candidates
 * of that level are complete.  Each SortPath whose WiscSort is cheaper (or
 * any, under debug_force) is wrapped; a MergePath that sorts its inputs
 * itself, and a MergeAppendPath that sorts its children, get a WiscSort path
 * below them instead; or one takes the place of such a MergeAppendPath, unless
 * something above may leave it half read.  What was saved is taken off the cost of every path
 * above, so that the choice between candidates sees it.
 *
 * Left to core: IncrementalSort, parameterised Sorts, and Sorts under a LIMIT
 * for which core keeps a heap of few rows.  How far a LIMIT reaches follows
 * ExecSetTupleBound.  Subquery levels have had their own turn: of what is below a
 * SubqueryScan, only a Sort that has been added since is looked at (rewrite_member).
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

/*
 * What a sort for an unknown number of groups costs, of core's.  It replaces that alone, which takes no more
 * than being less: a hundredth of a whole query may be more than what a hash table is cheaper by.
 */
#define BARELY_LESS			0.9999

/* What sorts of members and their merge take, of what they are charged (docs/decisions/30-cost-model.md). */
#define MERGE_TAKES			1.25

typedef struct Rewrite
{
	PlannerInfo *root;
	WsSaved		saved;			/* below the path being looked at */
	bool		unknown;		/* how many groups there are (groups.c) */
	bool		for_groups;		/* the path being looked at delivers their rows */
	int			workers;		/* run the path being looked at, each */
} Rewrite;

static void rewrite(Rewrite *rw, Path **path, double bound);

/*
 * Does the path deliver row identity columns that stand for those of several
 * result relations (UPDATE, DELETE and MERGE of a partitioned table)?  They
 * become real columns in setrefs.c, but not in a custom scan's own target list.
 */
static bool
has_row_identity(const Path *path)
{
	ListCell   *lc;

	foreach(lc, path->pathtarget->exprs)
	{
		Node	   *expr = lfirst(lc);

		if (IsA(expr, Var) && ((Var *) expr)->varno == ROWID_VAR)
			return true;
	}
	return false;
}

/* The WiscSort path in the place of a Sort, perhaps of one `for_groups`, if it is to be used; else NULL. */
static CustomPath *
better_sort(Rewrite *rw, SortPath *sort, bool for_groups, double bound)
{
	CustomPath *cpath;
	Path	   *input = sort->subpath;
	const char *refusal;

	if (sort->path.param_info != NULL || sort->path.pathkeys == NIL ||
		has_row_identity(input) ||
		!ws_sort_considered(input->rows, input->pathtarget->width,
							ws_only_value(input, sort->path.pathkeys)) ||
		ws_bound_leaves(bound, sort->path.pathkeys, input->rows, input->pathtarget->width))
		return NULL;
	refusal = ws_again_refusal(rw->root, input->parent->relids);
	if (refusal == NULL)
		refusal = ws_comparison_refusal(rw->root, sort->path.pathkeys, input->rows);
	if (refusal == NULL)
		refusal = ws_spool_refusal(rw->root, input, sort->path.pathkeys, bound);
	if (refusal == NULL)
		refusal = ws_members_refusal(input, sort->path.pathkeys);
	if (refusal != NULL)
	{
		ws_note_left(refusal, input->rows, sort->path.pathkeys);
		return NULL;
	}
	cpath = ws_wrap_sort(rw->root, sort, bound);
	ws_charge_workers(rw->root, NULL, cpath, &sort->path, rw->workers);
	if (for_groups && rw->unknown)
	{
		cpath->path.startup_cost = Max(cpath->path.startup_cost, BARELY_LESS * sort->path.startup_cost);
		cpath->path.total_cost = Max(cpath->path.total_cost, BARELY_LESS * sort->path.total_cost);
	}
	if (!ws_debug_force && cpath->path.total_cost >= sort->path.total_cost)
	{
		ws_note_costs(cpath->path.total_cost, &sort->path, input->rows);
		return NULL;
	}
	return cpath;
}

/* Puts a WiscSort path above *child, if that beats the Sort core would add. */
static bool
sort_child(Rewrite *rw, Path **child, List *pathkeys, double bound)
{
	Path	   *input = *child;
	SortPath   *sort;
	CustomPath *cpath;

	if (input->param_info != NULL)
		return false;
	sort = create_sort_path(rw->root, input->parent, input, pathkeys, bound);
	cpath = better_sort(rw, sort, false, bound);
	if (cpath == NULL)
		return false;
	rw->saved.startup += sort->path.startup_cost - cpath->path.startup_cost;
	rw->saved.total += sort->path.total_cost - cpath->path.total_cost;
	*child = (Path *) cpath;
	return true;
}

/* Like rewrite, for the members of a list of paths. */
static void
rewrite_list(Rewrite *rw, List *paths, double bound)
{
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);

		rewrite(rw, &path, bound);
		lfirst(lc) = path;
	}
}

static void
rewrite_merge_join(Rewrite *rw, MergePath *merge)
{
	JoinPath   *join = &merge->jpath;
	bool		merged = IsA(join->innerjoinpath, MergeAppendPath);

	rewrite(rw, &join->outerjoinpath, WS_NO_BOUND);
	rewrite(rw, &join->innerjoinpath, WS_NO_BOUND);
	if (merged && ws_is_wiscsort(join->innerjoinpath))
		merge->materialize_inner = false;	/* which could not mark and restore */
	if (merge->outersortkeys != NIL && join->outerjoinpath->pathkeys == NIL &&
		sort_child(rw, &join->outerjoinpath, merge->outersortkeys, WS_NO_BOUND))
	{
		ws_hand_on_keys((CustomPath *) join->outerjoinpath);
		merge->outersortkeys = NIL;
	}
	if (merge->innersortkeys != NIL && join->innerjoinpath->pathkeys == NIL &&
		sort_child(rw, &join->innerjoinpath, merge->innersortkeys, WS_NO_BOUND))
	{
		ws_hand_on_keys((CustomPath *) join->innerjoinpath);
		merge->innersortkeys = NIL;
		/* it was there to spare a spilled Sort from marking and restoring */
		merge->materialize_inner = false;
	}
	if (merge->innersortkeys == NIL && !merge->skip_mark_restore &&
		!ExecSupportsMarkRestore(join->innerjoinpath))
		merge->materialize_inner = true;
}

/* Has the level FETCH FIRST ... WITH TIES, of which no sort is told? */
static bool
has_ties(const Rewrite *rw)
{
	return rw->root->parse->limitOption == LIMIT_OPTION_WITH_TIES;
}

static void
rewrite_merge_append(Rewrite *rw, MergeAppendPath *append, double bound)
{
	ListCell   *lc;

	rewrite_list(rw, append->subpaths, bound);
	foreach(lc, append->subpaths)
	{
		Path	   *child = lfirst(lc);

		/* of a child that has the first keys in order, 19 sorts one group at a time */
		if (child->pathkeys == NIL &&
			sort_child(rw, &child, append->path.pathkeys,
					   bound != WS_NO_BOUND ? bound :
					   append->limit_tuples > 0 && !has_ties(rw) ? append->limit_tuples : WS_NO_BOUND))
			lfirst(lc) = child;
	}
}

/* The path below projections. */
static Path *
below_projections(Path *path)
{
	while (IsA(path, ProjectionPath))
		path = ((ProjectionPath *) path)->subpath;
	return path;
}

/*
 * Are the members of a merge sorted, all of them, one or more by a path of their own?  Those without, which
 * fit into memory, get a Sort when core makes the plan; if they are in order by the first keys, from
 * PostgreSQL 19 on an Incremental Sort, which begins early.
 */
static bool
are_sorts(const MergeAppendPath *append)
{
	bool		any = false;
	ListCell   *lc;

	foreach(lc, append->subpaths)
	{
		const Path *path = below_projections(lfirst(lc));
		int			common;

		if (IsA(path, SortPath) || ws_is_wiscsort(path))
			any = true;
		else if (pathkeys_count_contained_in(append->path.pathkeys, path->pathkeys, &common) || common > 0)
			return false;
	}
	return any;
}

/*
 * One WiscSort of all members' rows in the place of `path`, if that is a merge of members that are sorted
 * each by itself, and costs more; else NULL.  Core has looked at one Sort of all rows, too; but that has
 * its own costs until ws_rewrite_final, the members' sorts have ours, and add_path has dropped it.  A
 * hundred sorts of 1,000 rows take 1.3 times as long as one of all (64 kB): when it is a sort's turn, its
 * rows are no longer in the processor's caches.  And a merge compares rows once more.  So the one may be
 * charged more by MERGE_TAKES; it takes the merge's place at the merge's cost then.
 *
 * Left as it is: whatever a LIMIT, or another reader, may end early, row marks, and what the settings say:
 * rows that are to stay in their tables.
 */
static CustomPath *
one_sort(Rewrite *rw, Path *path, bool for_groups, double bound)
{
	PlannerInfo *root = rw->root;
	const MergeAppendPath *append = (const MergeAppendPath *) path;
	Path	   *input;
	CustomPath *cpath;
	Cost		below;			/* what both read */

	if (!IsA(path, MergeAppendPath) ||
		ws_debug_force || ws_record_store == WS_STORE_HEAP || bound != WS_NO_BOUND ||
		root->parse->limitCount != NULL || root->parse->rowMarks != NIL ||
		append->limit_tuples > 0 || path->param_info != NULL || path->parallel_workers > 0 ||
		!are_sorts(append) || ws_inherited_bound(root) != WS_NO_BOUND || ws_read_partly(root))
		return NULL;
	input = path->parent->cheapest_total_path;
	if (input != NULL)
		input = below_projections(input);
	if (input == NULL || !IsA(input, AppendPath) ||
		input->param_info != NULL || input->parallel_workers > 0 ||
		(path->parallel_safe && !input->parallel_safe) ||
		!equal(input->pathtarget->exprs, path->pathtarget->exprs))
		return NULL;
	cpath = better_sort(rw, create_sort_path(root, path->parent, input, path->pathkeys, -1.0), for_groups,
						bound);
	below = Min(input->total_cost, path->total_cost);
	if (cpath == NULL || cpath->path.total_cost - below >= MERGE_TAKES * (path->total_cost - below))
		return NULL;
	cpath->path.total_cost = Min(cpath->path.total_cost, path->total_cost);
	cpath->path.startup_cost = Min(cpath->path.startup_cost, cpath->path.total_cost);
	return cpath;
}

/*
 * The number of rows a LIMIT node asks its input for: of clauses that are evaluated anew, and of which no
 * sort is told, the number that core's planner expects.
 */
static double
limit_bound(const Rewrite *rw, LimitPath *limit)
{
	double		bound;

	if (limit->limitOption == LIMIT_OPTION_WITH_TIES)
		return WS_NO_BOUND;
	bound = ws_limit_bound(limit->limitCount, limit->limitOffset, false);
	return bound == WS_UNTOLD_BOUND && rw->root->limit_tuples > 0 ? rw->root->limit_tuples : bound;
}

/* What price_in_full saves of a merge of members: of those that it sorts itself. */
static WsSaved
price_members_in_full(const Rewrite *rw, const MergeAppendPath *append)
{
	WsSaved		saved = {0, 0};
	ListCell   *lc;

	foreach(lc, append->subpaths)
	{
		Path	   *child = lfirst(lc);
		Path	   *few;
		Path	   *full;

		if (child->pathkeys != NIL)
			continue;
		few = (Path *) create_sort_path(rw->root, child->parent, child, append->path.pathkeys,
										append->limit_tuples);
		full = (Path *) create_sort_path(rw->root, child->parent, child, append->path.pathkeys, -1.0);
		saved.startup += few->startup_cost - full->startup_cost;
		saved.total += few->total_cost - full->total_cost;
	}
	return saved;
}

/*
 * Core prices the sort below FETCH FIRST ... WITH TIES as one that keeps so many rows.  It does not: no sort
 * is told of that LIMIT, so that all rows are sorted.  Returns what is saved by that: less than nothing.
 */
static WsSaved
price_in_full(const Rewrite *rw, Path **path)
{
	Path	   *p = *path;
	WsSaved		saved = {0, 0};

	if (IsA(p, SortPath))
	{
		Path	   *input = ((SortPath *) p)->subpath;
		SortPath   *full = create_sort_path(rw->root, p->parent, input, p->pathkeys, -1.0);

		full->path.pathtarget = p->pathtarget;
		saved.startup = p->startup_cost - full->path.startup_cost;
		saved.total = p->total_cost - full->path.total_cost;
		*path = (Path *) full;
		return saved;
	}
	if (IsA(p, ProjectionPath))
		saved = price_in_full(rw, &((ProjectionPath *) p)->subpath);
	else if (IsA(p, GatherMergePath))
		saved = price_in_full(rw, &((GatherMergePath *) p)->subpath);
	else if (IsA(p, LockRowsPath))
		saved = price_in_full(rw, &((LockRowsPath *) p)->subpath);
	else if (IsA(p, MergeAppendPath))
		saved = price_members_in_full(rw, (MergeAppendPath *) p);
	p->startup_cost -= saved.startup;
	p->total_cost -= saved.total;
	return saved;
}

/* Is this one of the paths that a query level has been left with? */
static bool
is_of_level(PlannerInfo *level, const Path *path)
{
	const RelOptInfo *final = fetch_upper_rel(level, UPPERREL_FINAL, NULL);

	return list_member_ptr(final->pathlist, path) || list_member_ptr(final->partial_pathlist, path);
}

/*
 * The scan of a subquery with the Sort on top of that replaced, if PostgreSQL has put it there after the
 * subquery was planned: so it does from 17 on, to have members of a UNION in order, and from 18 on of
 * INTERSECT and EXCEPT.  The result is a new path: others may have the scan too.
 */
static Path *
rewrite_member(Rewrite *rw, SubqueryScanPath *scan, double bound)
{
	PlannerInfo *level = scan->path.parent->subroot;
	Rewrite		member = {level, {0, 0}, rw->unknown, false, rw->workers};
	Path	   *sort = scan->subpath;
	CustomPath *cpath;
	SubqueryScanPath *result;

	if (level == NULL || !IsA(sort, SortPath) || is_of_level(level, sort))
		return (Path *) scan;
	cpath = better_sort(&member, (SortPath *) sort, true, bound);
	if (cpath == NULL)
		return (Path *) scan;
	rw->saved.startup = sort->startup_cost - cpath->path.startup_cost;
	rw->saved.total = sort->total_cost - cpath->path.total_cost;
	result = palloc(sizeof(SubqueryScanPath));
	*result = *scan;
	result->subpath = (Path *) cpath;
	return (Path *) result;
}

/*
 * Replaces sorts in the tree under *path, which itself may be replaced.
 * `bound` is how many rows a LIMIT above will ask it for.
 */
static void
rewrite(Rewrite *rw, Path **path, double bound)
{
	Path	   *p = *path;
	WsSaved		outside = rw->saved;
	bool		for_groups = rw->for_groups;
	int			workers = rw->workers;
	CustomPath *one;

	check_stack_depth();
	/* each of them runs all that is below, also what is not a part of something (the inner side of a join) */
	rw->workers = Max(workers, p->parallel_workers);
	rw->saved.startup = rw->saved.total = 0;
	rw->for_groups = false;

	switch (nodeTag(p))
	{
		case T_SortPath:
			{
				SortPath   *sort = (SortPath *) p;
				CustomPath *cpath;

				rewrite(rw, &sort->subpath, WS_NO_BOUND);
				p->startup_cost -= rw->saved.total;
				p->total_cost -= rw->saved.total;
				cpath = better_sort(rw, sort, for_groups, bound);
				if (cpath != NULL)
				{
					rw->saved.startup = rw->saved.total + p->startup_cost - cpath->path.startup_cost;
					rw->saved.total += p->total_cost - cpath->path.total_cost;
					*path = (Path *) cpath;
				}
				else
					rw->saved.startup = rw->saved.total;
				goto done;
			}
		case T_CustomPath:
			if (ws_is_wiscsort(p))
			{
				SortPath   *sort = linitial(((CustomPath *) p)->custom_paths);

				rewrite(rw, &sort->subpath, WS_NO_BOUND);
				rw->saved.startup = rw->saved.total;
			}
			break;
		case T_IncrementalSortPath:
			rewrite(rw, &((IncrementalSortPath *) p)->spath.subpath, WS_NO_BOUND);
			break;
		case T_MergePath:
			rewrite_merge_join(rw, (MergePath *) p);
			break;
		case T_NestPath:
		case T_HashPath:
			rewrite(rw, &((JoinPath *) p)->outerjoinpath, WS_NO_BOUND);
			rewrite(rw, &((JoinPath *) p)->innerjoinpath, WS_NO_BOUND);
			break;
		case T_AppendPath:
			rewrite_list(rw, ((AppendPath *) p)->subpaths, bound);
			break;
		case T_MergeAppendPath:
			rewrite_merge_append(rw, (MergeAppendPath *) p, bound);
			break;
		case T_LimitPath:
			{
				LimitPath  *limit = (LimitPath *) p;
				WsSaved		less = {0, 0};

				if (has_ties(rw) || rw->root->parse->rowMarks != NIL)
					less = price_in_full(rw, &limit->subpath);
				rewrite(rw, &limit->subpath, limit_bound(rw, limit));
				rw->saved.startup += less.startup;
				rw->saved.total += less.total;
				break;
			}
		case T_SubqueryScanPath:
			p = *path = rewrite_member(rw, (SubqueryScanPath *) p, bound);
			break;
		case T_GatherPath:
			rewrite(rw, &((GatherPath *) p)->subpath, ws_bound_in_worker(rw->root, bound));
			break;
		case T_GatherMergePath:
			rw->for_groups = for_groups;
			rewrite(rw, &((GatherMergePath *) p)->subpath, ws_bound_in_worker(rw->root, bound));
			break;
		case T_ProjectionPath:
			rewrite(rw, &((ProjectionPath *) p)->subpath, bound);
			break;
		case T_ProjectSetPath:
			rewrite(rw, &((ProjectSetPath *) p)->subpath, WS_NO_BOUND);
			break;
		case T_MaterialPath:
			rewrite(rw, &((MaterialPath *) p)->subpath, WS_NO_BOUND);
			break;
		case T_MemoizePath:
			rewrite(rw, &((MemoizePath *) p)->subpath, WS_NO_BOUND);
			break;
		case T_GroupPath:
			rw->for_groups = true;
			rewrite(rw, &((GroupPath *) p)->subpath, WS_NO_BOUND);
			break;
		case T_AggPath:
			rw->for_groups = true;
			rewrite(rw, &((AggPath *) p)->subpath, WS_NO_BOUND);
			break;
		case T_GroupingSetsPath:
			rewrite(rw, &((GroupingSetsPath *) p)->subpath, WS_NO_BOUND);
			break;
		case T_WindowAggPath:
			rewrite(rw, &((WindowAggPath *) p)->subpath, WS_NO_BOUND);
			break;
		case T_SetOpPath:
			for (int i = 0; i < WS_SETOP_INPUTS; i++)
				rewrite(rw, ws_setop_input((SetOpPath *) p, i), WS_NO_BOUND);
			break;
		case T_RecursiveUnionPath:
			rewrite(rw, &((RecursiveUnionPath *) p)->leftpath, WS_NO_BOUND);
			rewrite(rw, &((RecursiveUnionPath *) p)->rightpath, WS_NO_BOUND);
			break;
		case T_LockRowsPath:
			rewrite(rw, &((LockRowsPath *) p)->subpath, WS_NO_BOUND);
			break;
		case T_ModifyTablePath:
			rewrite(rw, &((ModifyTablePath *) p)->subpath, WS_NO_BOUND);
			break;
		default:
			{
				Path	  **input = ws_unique_input(p);

				rw->for_groups = input != NULL;
				if (input != NULL)
					rewrite(rw, input, WS_NO_BOUND);
				break;			/* else a scan, or a path of somebody else */
			}
	}
	p->startup_cost = Max(0, p->startup_cost - rw->saved.startup);
	p->total_cost = Max(p->startup_cost, p->total_cost - rw->saved.total);
	one = one_sort(rw, p, for_groups, bound);
	if (one != NULL)
	{
		rw->saved.startup += p->startup_cost - one->path.startup_cost;
		rw->saved.total += p->total_cost - one->path.total_cost;
		*path = (Path *) one;
	}
done:
	rw->workers = workers;
	rw->saved.startup += outside.startup;
	rw->saved.total += outside.total;
}

/*
 * Replaces Sorts in all candidate paths of a query level.
 */
void
ws_rewrite_final(PlannerInfo *root, RelOptInfo *final_rel)
{
	Rewrite		rw = {root, {0, 0}, !ws_debug_force && ws_hashed_for_less(root), false, 0};
	double		bound = ws_inherited_bound(root);
	WsRivals	rivals;

	if (!ws_debug_force)
		ws_drop_late_paths(root, final_rel);
	rivals = ws_rivals(root, final_rel->pathlist);
	rewrite_list(&rw, final_rel->pathlist, bound);
	if (!ws_debug_force)
		ws_settle_rivals(root, final_rel->pathlist, &rivals);
	rewrite_list(&rw, final_rel->partial_pathlist, bound);
}
