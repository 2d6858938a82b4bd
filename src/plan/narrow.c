/*-------------------------------------------------------------------------
 * narrow.c - rows of which core's sort makes more, or less, than a sorted path of their table would sort.
 *
 * SELECT left(body, 40) ... ORDER BY k: core makes its result's columns first, and sorts these.  A sorted
 * path of the table would sort the whole bodies, in files that core need not have.  So the sort of such a
 * level is core's to plan, and takes its place above the scan; rewrite.c makes it a WiscSort there
 * (docs/decisions/57-where-rows-are-narrow.md).
 *
 * It is also left there where the columns of the result are looked up: by a subquery for each row, or in the
 * TOAST table.  In the order of the scan, these look-ups find together what lies together.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/*
 * Of the width of what is scanned, that of what is narrower.  Where a key is an expression the table cannot
 * be the store, and the columns that it is made of are sorted along for nothing.
 */
#define NARROW		0.5
#define NARROW_EXPR	0.8

/* For so wide a column is taken whose width nobody has measured, and of which a part is wanted. */
#define UNKNOWN_WIDTH	500

/* Is a column of the result one by which windows are made? */
static bool
orders_windows(const PlannerInfo *root, const TargetEntry *item)
{
	ListCell   *lc;

	foreach(lc, root->parse->windowClause)
	{
		const WindowClause *window = lfirst_node(WindowClause, lc);

		if (get_sortgroupref_clause_noerr(item->ressortgroupref, window->partitionClause) != NULL ||
			get_sortgroupref_clause_noerr(item->ressortgroupref, window->orderClause) != NULL)
			return true;
	}
	return false;
}

/* Does a function return a part of a text or document, of which it is not known how long it is? */
static bool
returns_part(const Expr *expr)
{
	Oid			function = IsA(expr, FuncExpr) ? ((const FuncExpr *) expr)->funcid :
		IsA(expr, OpExpr) ? get_opcode(((const OpExpr *) expr)->opno) : InvalidOid;

	switch (function)
	{
		case F_LEFT:
		case F_RIGHT:
		case F_SUBSTR_TEXT_INT4_INT4:
		case F_SUBSTRING_TEXT_INT4_INT4:
		case F_SUBSTRING_TEXT_TEXT:
		case F_SUBSTR_BYTEA_INT4_INT4:
		case F_SUBSTRING_BYTEA_INT4_INT4:
		case F_SPLIT_PART:
		case F_MD5_TEXT:
		case F_MD5_BYTEA:
		case F_JSON_OBJECT_FIELD_TEXT:
		case F_JSON_ARRAY_ELEMENT_TEXT:
		case F_JSON_EXTRACT_PATH_TEXT:
		case F_JSONB_OBJECT_FIELD_TEXT:
		case F_JSONB_ARRAY_ELEMENT_TEXT:
		case F_JSONB_EXTRACT_PATH_TEXT:
			return true;
		default:
			return false;
	}
}

/*
 * Bytes of the columns that an expression is made of, where it may be as wide: PostgreSQL takes any text that
 * is not a column for 32 bytes.  0 if its type says what it is, or the function.
 */
static double
most_bytes(PlannerInfo *root, Expr *expr)
{
	PathTarget *columns;

	if (IsA(expr, Var) || get_typlen(exprType((Node *) expr)) >= 0 || exprTypmod((Node *) expr) >= 0 ||
		returns_part(expr))
		return 0;
	columns = create_empty_pathtarget();
	add_new_columns_to_pathtarget(columns, pull_var_clause((Node *) expr, PVC_RECURSE_WINDOWFUNCS |
														   PVC_INCLUDE_PLACEHOLDERS));
	return set_pathtarget_cost_width(root, columns)->width;
}

/* Is a column of the result made of columns after the sort only?  Windows and groups need some before. */
static bool
made_afterwards(const PlannerInfo *root, const TargetEntry *item)
{
	const Query *q = root->parse;

	if (q->groupClause != NIL)
		return get_sortgroupref_clause_noerr(item->ressortgroupref, q->groupClause) == NULL;
	return q->hasWindowFuncs && !orders_windows(root, item);
}

/*
 * The width of the rows that core's sort of a level takes, at most: for its groups, or else for windows, or
 * of what it returns.
 */
double
ws_sorted_width(PlannerInfo *root)
{
	PathTarget *target = create_empty_pathtarget();
	int			columns = PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_INCLUDE_PLACEHOLDERS;
	double		more = 0;
	ListCell   *lc;

	foreach(lc, root->processed_tlist)
	{
		TargetEntry *item = lfirst_node(TargetEntry, lc);

		if (made_afterwards(root, item))
			add_new_columns_to_pathtarget(target, pull_var_clause((Node *) item->expr, columns));
		else
		{
			add_new_column_to_pathtarget(target, item->expr);
			more += most_bytes(root, item->expr);
		}
	}
	add_new_columns_to_pathtarget(target, pull_var_clause(root->parse->havingQual, columns));
	return set_pathtarget_cost_width(root, target)->width + more;
}

/*
 * Does a query level return the columns of its only relation as they are, and all that are read?  To sum up
 * their widths takes longer where they are many.
 */
static bool
returns_columns(PlannerInfo *root)
{
	RelOptInfo *rel = find_base_rel(root, bms_singleton_member(root->all_baserels));
	Bitmapset  *columns = NULL;
	ListCell   *lc;

	foreach(lc, root->processed_tlist)
	{
		const Var  *var = (const Var *) lfirst_node(TargetEntry, lc)->expr;

		if (!IsA(var, Var) || var->varno != (int) rel->relid)
			return false;
		columns = bms_add_member(columns, var->varattno - FirstLowInvalidHeapAttributeNumber);
	}
	/* a join that was found to be of no use leaves the columns that it wanted */
	foreach(lc, rel->reltarget->exprs)
	{
		const Var  *var = lfirst(lc);

		if (!IsA(var, Var) || !bms_is_member(var->varattno - FirstLowInvalidHeapAttributeNumber, columns))
			return false;
	}
	return true;
}

/* Is an expression, whatever its type is called, one of a list of columns of the result? */
static bool
in_result(Node *expr, List *result)
{
	ListCell   *lc;

	foreach(lc, result)
		if (equal(strip_implicit_coercions((Node *) lfirst_node(TargetEntry, lc)->expr), expr))
			return true;
	return false;
}

/* The expressions by which the whole query is ordered, beside columns. */
static List *
key_expressions(PlannerInfo *root)
{
	List	   *exprs = NIL;
	ListCell   *lc;

	foreach(lc, root->query_pathkeys)
	{
		EquivalenceClass *ec = lfirst_node(PathKey, lc)->pk_eclass;
		Node	   *expr = (Node *) linitial_node(EquivalenceMember, ec->ec_members)->em_expr;

		expr = strip_implicit_coercions(expr);
		if (!IsA(expr, Var))
			exprs = lappend(exprs, expr);
	}
	return exprs;
}

/* The width of those of them that the result has, and a sorted path of a relation beside its columns. */
static double
key_width(PlannerInfo *root, List *exprs)
{
	PathTarget *keys = create_empty_pathtarget();
	ListCell   *lc;

	foreach(lc, exprs)
		if (in_result(lfirst(lc), root->processed_tlist))
			add_new_column_to_pathtarget(keys, lfirst(lc));
	return set_pathtarget_cost_width(root, keys)->width;
}

/* Is a column of `rel` of any length, and has nobody measured how long its values are? */
static bool
is_of_unknown_width(const PlannerInfo *root, const RelOptInfo *rel, const Expr *column)
{
	const Var  *var = (const Var *) column;
	const RangeTblEntry *rte = root->simple_rte_array[rel->relid];

	return IsA(var, Var) && var->varattno > 0 && rte->rtekind == RTE_RELATION &&
		get_typlen(var->vartype) == -1 && type_maximum_size(var->vartype, var->vartypmod) < 0 &&
		!SearchSysCacheExists3(STATRELATTINH, ObjectIdGetDatum(rte->relid), Int16GetDatum(var->varattno),
							   BoolGetDatum(false));
}

/*
 * The columns of the level's relation that core sorts, as they are or in expressions that may be as wide; as
 * pull_varattnos has them.
 */
static Bitmapset *
columns_sorted(PlannerInfo *root, Index level)
{
	Bitmapset  *columns = NULL;
	ListCell   *lc;

	pull_varattnos(root->parse->havingQual, level, &columns);
	foreach(lc, root->processed_tlist)
	{
		TargetEntry *item = lfirst_node(TargetEntry, lc);

		if (IsA(item->expr, Var) || made_afterwards(root, item) || most_bytes(root, item->expr) > 0)
			pull_varattnos((Node *) item->expr, level, &columns);
	}
	return columns;
}

/* Of what inherits from one relation, the one that decides for all of them, so that they are sorted alike. */
static const RelOptInfo *
first_member(const PlannerInfo *root, const RelOptInfo *rel)
{
	Index		parent;
	ListCell   *lc;

	if (rel->reloptkind != RELOPT_OTHER_MEMBER_REL || root->append_rel_array[rel->relid] == NULL)
		return rel;
	parent = root->append_rel_array[rel->relid]->parent_relid;
	foreach(lc, root->append_rel_list)
	{
		const AppendRelInfo *member = lfirst_node(AppendRelInfo, lc);
		const RelOptInfo *child = root->simple_rel_array[member->child_relid];

		if (member->parent_relid == parent && child != NULL && child->pages > 0 &&
			child->reltarget->exprs != NIL)
			return child;
	}
	return rel;
}

/*
 * How many columns of unknown width are read, of which the result has a part at most?  PostgreSQL takes text
 * for 32 bytes then.  `rel` is the relation of the level, or inherits from it and has its columns in the same
 * places.
 */
static int
unknown_parts(PlannerInfo *root, const RelOptInfo *rel)
{
	const RelOptInfo *level = root->simple_rel_array[bms_singleton_member(root->all_baserels)];
	const RelOptInfo *measured = first_member(root, rel);
	Bitmapset  *sorted = NULL;
	int			parts = 0;
	ListCell   *lc1;
	ListCell   *lc2;

	forboth(lc1, level->reltarget->exprs, lc2, measured->reltarget->exprs)
	{
		const Var  *column = lfirst(lc1);

		if (!IsA(column, Var) || !is_of_unknown_width(root, measured, lfirst(lc2)))
			continue;
		if (sorted == NULL)
			sorted = columns_sorted(root, level->relid);
		if (!bms_is_member(column->varattno - FirstLowInvalidHeapAttributeNumber, sorted) &&
			!bms_is_member(-FirstLowInvalidHeapAttributeNumber, sorted))
			parts++;
	}
	return parts;
}

/*
 * Are the rows of `rel`, the only relation of its level, narrower when core sorts them?  Under a LIMIT core
 * makes dear columns of few rows alone.  Who wants rows to stay in their table gets that.
 */
bool
ws_narrower_when_sorted(PlannerInfo *root, const RelOptInfo *rel)
{
	const Query *q = root->parse;
	List	   *exprs;
	double		narrow;
	double		scanned;
	double		sorted;

	if (root->query_pathkeys == NIL || ws_debug_force || ws_record_store == WS_STORE_HEAP ||
		bms_membership(root->all_baserels) != BMS_SINGLETON ||
		(q->hasAggs && q->groupClause == NIL) || q->hasTargetSRFs || q->limitCount != NULL ||
		q->setOperations != NULL || q->commandType != CMD_SELECT || returns_columns(root))
		return false;
	exprs = key_expressions(root);
	narrow = exprs != NIL ? NARROW_EXPR : NARROW;
	scanned = rel->reltarget->width + key_width(root, exprs);
	sorted = ws_sorted_width(root);
	if (sorted > narrow * scanned)
		scanned += UNKNOWN_WIDTH * unknown_parts(root, rel);
	return sorted <= narrow * scanned;
}

/* May a function read tables?  So may those that are stable, and not PostgreSQL's own. */
static bool
reads_tables(Oid function, void *context)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc form;
	bool		reads;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	reads = form->provolatile == PROVOLATILE_STABLE && form->prolang != INTERNALlanguageId &&
		form->prolang != ClanguageId;
	ReleaseSysCache(tuple);
	return reads;
}

/* Is there a subquery in an expression that is executed for each row, or a function that may have one? */
static bool
looks_up(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if ((IsA(node, SubPlan) && ((SubPlan *) node)->parParam != NIL) ||
		check_functions_in_node(node, reads_tables, NULL))
		return true;
	return expression_tree_walker(node, looks_up, context);
}

/* Blocks of the TOAST table of a base relation; 0 if there is none. */
static double
toast_blocks(const RangeTblEntry *rte)
{
	HeapTuple	tuple;
	Oid			toast;
	Relation	relation;
	double		blocks = 0;

	if (rte->rtekind != RTE_RELATION)
		return 0;
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(rte->relid));
	if (!HeapTupleIsValid(tuple))
		return 0;
	toast = ((Form_pg_class) GETSTRUCT(tuple))->reltoastrelid;
	ReleaseSysCache(tuple);
	if (!OidIsValid(toast))
		return 0;
	relation = try_relation_open(toast, AccessShareLock);
	if (relation != NULL)
	{
		blocks = RelationGetNumberOfBlocks(relation);
		relation_close(relation, AccessShareLock);
	}
	return blocks;
}

/* May values of a column be in a TOAST table, where a pointer is in their place?  Then it is no narrower. */
static bool
may_be_toasted(const RelOptInfo *rel, const Var *var)
{
	int32		width = var->varattno > 0 ? rel->attr_widths[var->varattno - rel->min_attr] : 0;
	char		storage = get_typstorage(var->vartype);

	return get_typlen(var->vartype) == -1 &&
		(storage == TYPSTORAGE_EXTENDED || storage == TYPSTORAGE_EXTERNAL) &&
		(width == 0 || width >= (int32) TOAST_POINTER_SIZE);
}

/* Is something made of columns of `rel` that may be in a TOAST table that is larger than the table? */
static bool
reads_toast(PlannerInfo *root, const RelOptInfo *rel, List *exprs)
{
	Relids		relids = rel->top_parent_relids != NULL ? rel->top_parent_relids : rel->relids;
	ListCell   *lc;

	foreach(lc, exprs)
	{
		Node	   *expr = lfirst(lc);
		ListCell   *lc2;

		if (IsA(expr, Var))
			continue;
		foreach(lc2, pull_var_clause(expr, PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS |
									 PVC_RECURSE_PLACEHOLDERS))
		{
			Var		   *var = lfirst_node(Var, lc2);

			if (bms_is_member(var->varno, relids) &&
				may_be_toasted(root->simple_rel_array[var->varno], var))
				return toast_blocks(planner_rt_fetch(rel->relid, root)) > rel->pages;
		}
	}
	return false;
}

/* Adds what the aggregates in an expression take. */
static bool
add_taken(Node *node, List **exprs)
{
	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		ListCell   *lc;

		foreach(lc, ((Aggref *) node)->args)
			*exprs = lappend(*exprs, lfirst_node(TargetEntry, lc)->expr);
		if (((Aggref *) node)->aggfilter != NULL)
			*exprs = lappend(*exprs, ((Aggref *) node)->aggfilter);
		return false;
	}
	return expression_tree_walker(node, add_taken, exprs);
}

/*
 * Are columns of the result, or what aggregates take, looked up, by core in the order in which `rel` is
 * scanned?  With a hash table it is so, too.  (A sum of four rows by an index, for each of 1 M rows: core
 * / WiscSort in the order of the result 0.41.)  `early`: the query ends after few rows.  Where it may end
 * early, core looks up after its sort, but cheap functions come before it all the same.
 */
bool
ws_made_in_scan_order(PlannerInfo *root, const RelOptInfo *rel, bool early)
{
	const Query *q = root->parse;
	List	   *exprs = NIL;
	ListCell   *lc;

	if (root->query_pathkeys == NIL || ws_debug_force || ws_record_store == WS_STORE_HEAP || early ||
		q->hasTargetSRFs || q->hasWindowFuncs || q->setOperations != NULL || q->commandType != CMD_SELECT)
		return false;
	if (q->groupClause != NIL || q->hasAggs)
		(void) add_taken((Node *) root->processed_tlist, &exprs);
	else
		foreach(lc, root->processed_tlist)
			exprs = lappend(exprs, lfirst_node(TargetEntry, lc)->expr);
	return (root->tuple_fraction <= 0 && q->limitCount == NULL && looks_up((Node *) exprs, NULL)) ||
		reads_toast(root, rel, exprs);
}
