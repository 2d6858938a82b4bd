/*-------------------------------------------------------------------------
 * frequent.c - the frequent values of a column of a sort's input, by the statistics of its tables.
 *
 * The column is followed down the plan, through joins and subqueries, to a column of a table, or of each
 * member of an Append; what an expression computes is not known.  Values are the most common ones of
 * pg_statistic.  They go into what is learnt (key/foretold.c), and nowhere else.
 *
 * Memory: the values, in CurrentMemoryContext, MOST of them and those of one more table at most.
 *-------------------------------------------------------------------------
 */
#include "exec/exec.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#define MOST	1024

/* What is looked for, and what has been found. */
typedef struct Search
{
	EState	   *estate;
	Oid			type;			/* of the column */
	WsFrequent *found;
	int			room;
	double		rows;			/* of all tables that were found */
} Search;

static bool
is_text(Oid type)
{
	return type == TEXTOID || type == VARCHAROID;
}

static void
add_value(Search *s, Datum value, double rows)
{
	WsFrequent *f = s->found;

	if (f->n == s->room)
	{
		s->room = Max(2 * s->room, 64);
		f->values = f->values == NULL ? palloc(s->room * sizeof(Datum)) :
			repalloc(f->values, s->room * sizeof(Datum));
		f->shares = f->shares == NULL ? palloc(s->room * sizeof(double)) :
			repalloc(f->shares, s->room * sizeof(double));
	}
	f->values[f->n] = value;
	f->shares[f->n++] = rows;
}

/*
 * Adds a number of different values, of which there may be more where that is not known (0).  Those of the
 * members of an Append are taken for different ones.
 */
static void
add_distinct(Search *s, double distinct)
{
	if (distinct <= 0)
		s->found->distinct = -1;
	else if (s->found->distinct >= 0)
		s->found->distinct += distinct;
}

/* Of so many rows nothing is known. */
static void
add_unknown(Search *s, double rows)
{
	s->rows += rows;
	add_distinct(s, 0);
}

/* Adds the values of a table's column, of which there are so many rows. */
static void
add_table(Search *s, Oid relid, AttrNumber attno, double rows)
{
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(relid), Int16GetDatum(attno),
										BoolGetDatum(false));
	AttStatsSlot slot;
	double		distinct;
	double		analysed;

	s->rows += rows;
	if (!HeapTupleIsValid(tuple))
	{
		add_distinct(s, 0);
		return;
	}
	distinct = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
	analysed = ws_rows_analysed(relid);
	add_distinct(s, distinct < 0 ? -distinct * Max(analysed, 0) : distinct);
	/* the values stay, and belong to the context */
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_MCV, InvalidOid,
						 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS) &&
		(slot.valuetype == s->type || (is_text(slot.valuetype) && is_text(s->type))))
		for (int i = 0; i < Min(slot.nvalues, slot.nnumbers); i++)
			add_value(s, slot.values[i], rows * slot.numbers[i]);
	ReleaseSysCache(tuple);
}

/* The column that an expression of a plan's target list is, or NULL if it is none. */
static const Var *
column_of(List *targets, AttrNumber attno)
{
	const TargetEntry *target = get_tle_by_resno(targets, attno);
	const Node *node = target != NULL ? (const Node *) target->expr : NULL;

	while (node != NULL && IsA(node, RelabelType))
		node = (const Node *) ((const RelabelType *) node)->arg;
	return node != NULL && IsA(node, Var) && ((const Var *) node)->varattno > 0 ? (const Var *) node : NULL;
}

static void search(Search *s, const Plan *plan, AttrNumber attno);

/* Does so in each member of an Append. */
static void
search_members(Search *s, List *members, AttrNumber attno)
{
	ListCell   *lc;

	foreach(lc, members)
	{
		if (s->found->n >= MOST)
			add_unknown(s, ((const Plan *) lfirst(lc))->plan_rows);
		else
			search(s, lfirst(lc), attno);
	}
}

/* Goes down to where a column of a plan comes from, and adds its values. */
static void
search(Search *s, const Plan *plan, AttrNumber attno)
{
	const Var  *var = column_of(plan->targetlist, attno);
	const RangeTblEntry *rte;

	check_stack_depth();
	if (var != NULL && var->varno == INDEX_VAR && IsA(plan, IndexOnlyScan))
		var = column_of(((const IndexOnlyScan *) plan)->indextlist, var->varattno);
	if (var == NULL || var->varno == INDEX_VAR)
		add_unknown(s, plan->plan_rows);
	else if (var->varno == OUTER_VAR && IsA(plan, Append))
		search_members(s, ((const Append *) plan)->appendplans, var->varattno);
	else if (var->varno == OUTER_VAR && IsA(plan, MergeAppend))
		search_members(s, ((const MergeAppend *) plan)->mergeplans, var->varattno);
	else if (var->varno == OUTER_VAR && outerPlan(plan) != NULL)
		search(s, outerPlan(plan), var->varattno);
	else if (var->varno == INNER_VAR && innerPlan(plan) != NULL)
		search(s, innerPlan(plan), var->varattno);
	else if (IS_SPECIAL_VARNO(var->varno))
		add_unknown(s, plan->plan_rows);
	else if (IsA(plan, SubqueryScan))
		search(s, ((const SubqueryScan *) plan)->subplan, var->varattno);
	else if ((rte = exec_rt_fetch(var->varno, s->estate))->rtekind == RTE_RELATION)
		add_table(s, rte->relid, var->varattno, plan->plan_rows);
	else
		add_unknown(s, plan->plan_rows);
}

/* See WsForetold: `who` is the WsSortState.  What sorts may be copies of the input's rows. */
bool
ws_frequent_values(const void *who, int column, WsFrequent *found)
{
	const WsSortState *state = who;
	const PlanState *input = outerPlanState(state);
	AttrNumber	attno = state->request->attnos[column];
	Search		s = {.estate = input->state, .found = found};

	s.type = TupleDescAttr(input->ps_ResultTupleDesc, attno - 1)->atttypid;
	*found = (WsFrequent) {0};
	search(&s, input->plan, attno);
	for (int i = 0; i < found->n; i++)
		found->shares[i] /= Max(s.rows, 1);
	return found->n > 0 || found->distinct > 0;
}
