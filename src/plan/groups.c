/*-------------------------------------------------------------------------
 * groups.c - may a hash table make a query's groups in less time than core charges for it?
 *
 * Of an expression (date_trunc('day', t), lower(name)) without statistics PostgreSQL takes as many values for
 * granted as its columns have, and of several columns as many as there are combinations: that is the most
 * there can be.  Of a code and its name there are as many as of the code.  Values that were unique when a
 * table was analysed are taken for unique when it has grown.  Where they are few, a hash table in memory
 * takes half as long as any sort, however much cheaper the sort seems (docs/decisions/30-cost-model.md).
 *
 * Core also takes 8 kB for granted of each group that string_agg and the like collect values of, so that a
 * table of a thousand groups seems to be written to disk.  And where not all groups fit, it charges as if all
 * rows were written, and not those alone whose groups do not.
 *
 * So it is left to core to choose between a hash table and a sort, and a WiscSort for such groups is charged
 * just less than core's.
 *
 * Where nothing can be hashed, a sort it is.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "exec/request.h"
#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_statistic_ext.h"
#include "catalog/pg_type.h"
#include "executor/nodeAgg.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/selfuncs.h"

/*
 * Bytes that a group takes in a hash table, about; and what an aggregate adds of which is not said how much
 * it keeps, as string_agg and array_agg do: at least, and as core charges it.
 */
#define GROUP_BYTES		128
#define LEAST_KEPT		1024
#define MOST_KEPT		ALLOCSET_DEFAULT_INITSIZE

/* Of a table's rows, so many at most are chosen ones. */
#define CHOSEN			0.5

/* Of a table's rows, values from which on nearly each has its own. */
#define NEARLY_ALL		0.9

/* A table of so many times the rows that it had when it was analysed has other values, perhaps. */
#define GROWN			4.0

/*
 * Where no helper shares the sort's work, a hash table takes less than it up to so many times the memory that
 * it may have, if groups have so many rows: of one column, and of several, of whose values there may be more
 * combinations.
 */
#define SPILLED_ONE		10.0
#define ROWS_OF_ONE		20.0
#define SPILLED_MORE	5.0
#define ROWS_OF_MORE	50.0

/*
 * The same of values that are wider than a prefix, so that equal ones are read once more to be compared, with
 * less work_mem than TIED_MEMORY: of a type without collation, whose values take few bytes.  Of values that
 * are made of others, whatever work_mem, and how many rows groups have.
 */
#define SPILLED_TIED	64.0
#define ROWS_OF_TIED	3.0
#define TIED_MEMORY		((Size) 4 * 1024 * 1024)

/*
 * How many times the rows has a table that it had when it was vacuumed or analysed, where it has grown so
 * much that this tells little of it?  Else 1.
 */
static double
growth(PlannerInfo *root, const RelOptInfo *rel)
{
	const RangeTblEntry *rte = root->simple_rte_array[rel->relid];
	double		rows;

	if (rte->rtekind != RTE_RELATION || rte->inh)
		return 1;
	rows = ws_rows_analysed(rte->relid);
	if (rows < 0)
		return 1;				/* truncated, and filled again */
	return rel->tuples < GROWN * rows ? 1 : rel->tuples / Max(rows, 1);
}

/*
 * May there be far fewer values of an expression than PostgreSQL expects?  Sets *values to that number, and
 * *least to that of which it knows.
 */
static bool
is_unknown(PlannerInfo *root, Node *expr, double *values, double *least)
{
	VariableStatData data;
	bool		unknown;

	*values = *least = 1;
	expr = strip_implicit_coercions(expr);
	if (IsA(expr, Const) || IsA(expr, Param))
		return false;
	examine_variable(root, expr, 0, &data);
	*values = *least = get_variable_numdistinct(&data, &unknown);
	/* a part of the rows is expected to be values of their own, and no index says so */
	if (!data.isunique && HeapTupleIsValid(data.statsTuple) && data.rel != NULL && data.rel->relid > 0 &&
		((Form_pg_statistic) GETSTRUCT(data.statsTuple))->stadistinct < 0)
		*least /= growth(root, data.rel);
	unknown = !HeapTupleIsValid(data.statsTuple) && !data.isunique;
	ReleaseVariableStats(data);
	return unknown && !IsA(expr, Var);
}

/*
 * Rows of a base relation before any condition: of those that inherit from it, and of a partitioned table as
 * it was analysed; 0 if that has not been done.
 */
static double
all_rows(PlannerInfo *root, const RelOptInfo *rel)
{
	const RangeTblEntry *rte = root->simple_rte_array[rel->relid];
	double		rows = 0;
	ListCell   *lc;

	if (!rte->inh)
		return rel->tuples;
	if (rte->rtekind != RTE_RELATION || rte->relkind != RELKIND_PARTITIONED_TABLE)
	{
		foreach(lc, root->append_rel_list)
		{
			const AppendRelInfo *member = lfirst_node(AppendRelInfo, lc);
			const RelOptInfo *child = root->simple_rel_array[member->child_relid];

			if (member->parent_relid == rel->relid && child != NULL)
				rows += Max(child->tuples, child->rows);
		}
		return rows;
	}
	rows = ws_rows_analysed(rte->relid);
	return Max(rows, 0);
}

/* Is a column among these?  Above an outer join it may have other marks than below (PostgreSQL 16). */
static bool
has_column(const List *vars, const Var *column)
{
	ListCell   *lc;

	foreach(lc, vars)
	{
		const Var  *var = lfirst_node(Var, lc);

		if (var->varno == column->varno && var->varattno == column->varattno)
			return true;
	}
	return false;
}

/*
 * Is a column of a table of which a condition on another column chooses some rows?  What belongs to one
 * tenant, or to one month, has few of the values that the whole table has, often; PostgreSQL takes it that
 * such rows have as many as any others.
 */
static bool
is_of_chosen_rows(PlannerInfo *root, Node *expr)
{
	const RelOptInfo *rel;
	double		rows;
	ListCell   *lc;

	expr = strip_implicit_coercions(expr);
	if (!IsA(expr, Var) || ((Var *) expr)->varlevelsup != 0 || ((Var *) expr)->varno <= 0 ||
		((Var *) expr)->varno >= root->simple_rel_array_size)
		return false;
	rel = root->simple_rel_array[((Var *) expr)->varno];
	if (rel == NULL)
		return false;
	rows = all_rows(root, rel);
	if (rows > 0 && rel->rows > CHOSEN * rows)
		return false;
	foreach(lc, rel->baserestrictinfo)
	{
		List	   *vars = pull_var_clause((Node *) lfirst_node(RestrictInfo, lc)->clause,
										   PVC_RECURSE_PLACEHOLDERS);

		if (vars != NIL && !has_column(vars, (Var *) expr))
			return true;
	}
	return false;
}

/* Has the table of a column statistics of combinations of its columns? */
static bool
has_combinations(PlannerInfo *root, Node *expr)
{
	ListCell   *lc;

	expr = strip_implicit_coercions(expr);
	if (!IsA(expr, Var) || ((Var *) expr)->varlevelsup != 0 || ((Var *) expr)->varno <= 0 ||
		((Var *) expr)->varno >= root->simple_rel_array_size ||
		root->simple_rel_array[((Var *) expr)->varno] == NULL)
		return false;
	foreach(lc, root->simple_rel_array[((Var *) expr)->varno]->statlist)
		if (lfirst_node(StatisticExtInfo, lc)->kind == STATS_EXT_NDISTINCT)
			return true;
	return false;
}

/* Adds to the bytes of a group what the query's aggregates keep of it, at least and as core charges it. */
static void
add_kept(PlannerInfo *root, double *least, double *most)
{
	ListCell   *lc;

	foreach(lc, root->aggtransinfos)
	{
		const AggTransInfo *info = lfirst(lc);
		bool		unknown = info->aggtranstype == INTERNALOID && info->aggtransspace <= 0;

		*least += unknown ? LEAST_KEPT : Max(info->aggtransspace, 0);
		*most += unknown ? MOST_KEPT : Max(info->aggtransspace, 0);
	}
}

/* Rows of that of the query's relations which is expected to return most. */
static double
most_rows(const PlannerInfo *root)
{
	double		rows = 0;
	int			relid = -1;

	while ((relid = bms_next_member(root->all_baserels, relid)) >= 0)
		if (root->simple_rel_array[relid] != NULL)
			rows = Max(rows, root->simple_rel_array[relid]->rows);
	return rows;
}

/* Values of the column that has most of them, of the result of a query; 1 if that is not known. */
static double
most_values(PlannerInfo *root)
{
	double		most = 1;
	ListCell   *lc;

	/* columns of a set operation are of no relation */
	if (root->parse->setOperations != NULL)
		return most;
	foreach(lc, root->processed_tlist)
	{
		double		values;
		double		few;

		if (!is_unknown(root, (Node *) lfirst_node(TargetEntry, lc)->expr, &values, &few))
			most = Max(most, few);
	}
	return most;
}

/* Bytes of a group of rows of these types. */
static double
group_bytes(const List *types)
{
	double		bytes = GROUP_BYTES;
	ListCell   *lc;

	foreach(lc, types)
		bytes += get_typavgwidth(lfirst_oid(lc), -1);
	return bytes;
}

/* Different rows that the members of a set operation have together, at least. */
static double
least_of_members(PlannerInfo *root, const Node *op)
{
	const RelOptInfo *member;

	if (IsA(op, SetOperationStmt))
		return least_of_members(root, ((const SetOperationStmt *) op)->larg) +
			least_of_members(root, ((const SetOperationStmt *) op)->rarg);
	member = root->simple_rel_array[((const RangeTblRef *) op)->rtindex];
	return member == NULL || member->subroot == NULL ? 0 : most_values(member->subroot);
}

/* Is it a UNION whose different rows a hash table can find? */
static bool
is_hashable_union(const SetOperationStmt *op)
{
	return op->op == SETOP_UNION && !op->all && enable_hashagg && grouping_is_hashable(op->groupClauses);
}

/*
 * Might a hash table have half of the different rows of a UNION in memory?  It is charged as if no row came
 * twice.
 */
static bool
union_is_hashed(PlannerInfo *root)
{
	const SetOperationStmt *op = (const SetOperationStmt *) root->parse->setOperations;

	return is_hashable_union(op) &&
		least_of_members(root, (const Node *) op) * group_bytes(op->colTypes) <= 2 * get_hash_memory_limit();
}

/* The columns by which the query groups, or else of which it wants each combination once. */
static List *
group_columns(const PlannerInfo *root)
{
	return root->parse->groupClause != NIL ? root->parse->groupClause : root->parse->distinctClause;
}

/* May a hash table make the groups of the query (GROUP BY, or else DISTINCT)? */
bool
ws_can_hash_groups(const PlannerInfo *root)
{
	const Query *parse = root->parse;

	return group_columns(root) != NIL && enable_hashagg && parse->groupingSets == NIL &&
		grouping_is_hashable(group_columns(root)) &&
		(parse->groupClause != NIL ? root->numOrderedAggs == 0 : !parse->hasDistinctOn && !parse->hasAggs);
}

/*
 * Bytes of a group as core has it: it takes what comes in for what is kept, and counts what is kept of values
 * of no fixed size.
 */
static double
bytes_by_core(PlannerInfo *root)
{
	AggClauseCosts costs;

	MemSet(&costs, 0, sizeof(costs));
	get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);
	return hash_agg_entry_size(list_length(root->aggtransinfos), ws_sorted_width(root),
							   costs.transitionSpace);
}

/* Are there as many values of the columns together as of one, which tells the rows of a table apart? */
static bool
one_tells_all(PlannerInfo *root, List *columns, double values)
{
	List	   *vars = pull_var_clause((Node *) columns, PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS |
									   PVC_RECURSE_PLACEHOLDERS);
	int			relid = vars != NIL ? linitial_node(Var, vars)->varno : 0;
	double		rows;
	ListCell   *lc;

	foreach(lc, vars)
		if (lfirst_node(Var, lc)->varno != relid)
			return false;
	if (relid <= 0 || relid >= root->simple_rel_array_size || root->simple_rel_array[relid] == NULL)
		return false;
	rows = all_rows(root, root->simple_rel_array[relid]);
	return rows > 0 && values >= NEARLY_ALL * rows;
}

/* Are the values of an expression wider than a prefix, on average, and of a type whose keys are as wide? */
static bool
is_wide(PlannerInfo *root, Node *expr)
{
	VariableStatData data;
	int32		width;
	Oid			type = getBaseType(exprType(expr));

	if (type != UUIDOID && type != BYTEAOID && type != TEXTOID && type != VARCHAROID)
		return false;
	examine_variable(root, strip_implicit_coercions(expr), 0, &data);
	width = HeapTupleIsValid(data.statsTuple) ? ((Form_pg_statistic) GETSTRUCT(data.statsTuple))->stawidth :
		get_typavgwidth(exprType(expr), exprTypmod(expr));
	ReleaseVariableStats(data);
	return width > WS_PREFIX_BYTES;
}

/* Are the values of an expression such that comparing two of them takes several times as long as hashing? */
static bool
is_made_of_values(Node *expr)
{
	Oid			type = getBaseType(exprType(expr));

	return type == JSONBOID || type_is_range(type) || type_is_multirange(type) || type_is_rowtype(type);
}

/*
 * Does a hash table of which some is written take less than a sort, where one column has `least` values, in
 * groups of so many bytes, because a sort compares equal ones, or ones much alike, by what their prefixes
 * lack?
 */
static bool
beats_ties(PlannerInfo *root, Node *expr, double least, double least_bytes, double memory)
{
	double		most = OidIsValid(exprCollation(expr)) ? SPILLED_ONE : SPILLED_TIED;
	double		bytes;

	if (is_made_of_values(expr))
	{
		bytes = bytes_by_core(root);
		return least * Max(least_bytes, bytes) <= SPILLED_TIED * memory;
	}
	return work_mem * (Size) 1024 < TIED_MEMORY && least * least_bytes <= most * memory &&
		least * ROWS_OF_TIED <= most_rows(root) && is_wide(root, expr);
}

/*
 * Might a hash table make the groups of the query (GROUP BY, or else DISTINCT) in less time than it is
 * charged, because these are perhaps far fewer than expected, or few of its rows would be written?
 */
bool
ws_hashed_for_less(PlannerInfo *root)
{
	List	   *clauses = group_columns(root);
	List	   *columns = NIL;
	double		memory = get_hash_memory_limit();
	double		one = 1;		/* as many as the column with most values has */
	double		least = 1;
	double		most = 1;
	double		least_bytes = GROUP_BYTES;
	double		most_bytes = GROUP_BYTES;
	bool		several;
	bool		combined = false;
	ListCell   *lc;

	if (root->parse->setOperations != NULL)
		return union_is_hashed(root);
	if (!ws_can_hash_groups(root))
		return false;
	foreach(lc, clauses)
	{
		Node	   *expr = get_sortgroupclause_expr(lfirst(lc), root->processed_tlist);
		double		values;
		double		few;

		if (is_unknown(root, expr, &values, &few))
			return true;
		one = Max(one, values);
		if (!is_of_chosen_rows(root, expr))
			least = Max(least, few);
		most *= values;
		combined = combined || has_combinations(root, expr);
		columns = lappend(columns, expr);
	}
	add_kept(root, &least_bytes, &most_bytes);
	if (combined)
		most = one;
	if (most * most_bytes <= memory && most * bytes_by_core(root) <= memory)
		return false;			/* core charges a table in memory, and rightly */
	several = list_length(columns) > 1 && !one_tells_all(root, columns, least);
	return least * least_bytes <= memory ||
		(list_length(columns) == 1 && beats_ties(root, linitial(columns), least, least_bytes, memory)) ||
		(work_mem * (Size) 1024 < WS_HELPER_MEMORY &&
		 least * least_bytes <= (several ? SPILLED_MORE : SPILLED_ONE) * memory &&
		 least * (several ? ROWS_OF_MORE : ROWS_OF_ONE) <= most_rows(root));
}

/* The set operation of `query` of which `member` is a side, at or below `op`; or NULL. */
static const SetOperationStmt *
operation_of(const Query *query, const Node *op, const Query *member)
{
	const Node *sides[2];

	if (op == NULL || !IsA(op, SetOperationStmt))
		return NULL;
	sides[0] = ((const SetOperationStmt *) op)->larg;
	sides[1] = ((const SetOperationStmt *) op)->rarg;
	for (int i = 0; i < 2; i++)
	{
		const SetOperationStmt *found;

		if (IsA(sides[i], RangeTblRef))
			found = rt_fetch(((const RangeTblRef *) sides[i])->rtindex, query->rtable)->subquery == member ?
				(const SetOperationStmt *) op : NULL;
		else
			found = operation_of(query, sides[i], member);
		if (found != NULL)
			return found;
	}
	return NULL;
}

/*
 * Is the query a member of a UNION whose rows it is to sort for that alone, though a hash table might have
 * half of its different ones in memory?  From PostgreSQL 17 on members are asked for an order, and the hash
 * table is charged as if no row came twice.  If core sorted the other members, and WiscSort this one, the
 * merge of all would take its place.
 */
bool
ws_is_union_of_few(PlannerInfo *root)
{
	const List *orders[] = {root->sort_pathkeys, root->group_pathkeys, root->window_pathkeys,
		root->distinct_pathkeys};
	const Query *parent = root->parent_root != NULL ? root->parent_root->parse : NULL;
	const SetOperationStmt *op = parent != NULL ?
		operation_of(parent, parent->setOperations, root->parse) : NULL;

	if (op == NULL || !is_hashable_union(op) || root->query_pathkeys == NIL)
		return false;
	for (int i = 0; i < (int) lengthof(orders); i++)
		if (orders[i] == root->query_pathkeys)
			return false;
	return most_values(root) * group_bytes(op->colTypes) <= 2 * get_hash_memory_limit();
}
