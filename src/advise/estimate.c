/*-------------------------------------------------------------------------
 * estimate.c - what the planner knows of the sorts of a query, and how it plans them otherwise.
 *
 * Rows and widths are those of the plan, as EXPLAIN shows them.  The query is planned again with each of the
 * settings for which sorts are forecast, since the planner may have the rows of a sort wait elsewhere there,
 * and once without WiscSort: PostgreSQL computes columns of the result before it sorts, while a WiscSort of
 * a table has the table's columns wait, and computes of them what it returns.
 *
 * Memory: that of the query.  Errors: those of planning, and the refusals of query.c.
 *-------------------------------------------------------------------------
 */
#include "advise/advise.h"

#include "access/htup_details.h"
#include "exec/exec.h"
#include "executor/executor.h"
#include "index/index.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"

/* The settings for which both sorts are forecast, as one would write them. */
const char *const ws_setting_names[WS_SETTINGS] = {"4MB", "16MB", "64MB", "256MB", "1GB"};

/* What the planner takes each worker to cost the leader, of what it reads (core's get_parallel_divisor). */
#define LEADER_SHARE		0.3

/* The request of a sort that is core's, as WiscSort would have it. */
static WsRequest *
request_of(const WsFoundSort *found)
{
	const Plan *input = outerPlan(found->node->plan);
	WsRequest  *r = ws_request_create(found->ncols);

	for (int i = 0; i < found->ncols; i++)
	{
		r->attnos[i] = found->attnos[i];
		r->sortops[i] = found->sortops[i];
		r->collations[i] = found->collations[i];
		r->nulls_first[i] = found->nulls_first[i];
	}
	r->why = "";
	r->rows = input->plan_rows;
	r->width = input->plan_width;
	r->sharers = found->processes;
	if (ws_rows_are_keys(r, input->targetlist))
		r->store = WS_KIND_KEYS;
	if (found->kind == WS_NODE_CORE)
		r->random_access = ((SortState *) found->node)->randomAccess;
	return r;
}

/* Do parallel processes have a part each of what `node` returns?  Something below it then hands out parts. */
static bool
is_parted(PlanState *node, void *arg)
{
	if (node->plan->parallel_aware)
		return true;
	return planstate_tree_walker(node, is_parted, arg);
}

/*
 * The rows of a sort's input in one process.  The planner expects the leader to read fewer than a worker
 * does, since it gathers theirs; but of these there are none before all have sorted what they read.
 */
static double
rows_of_one(const WsFoundSort *found)
{
	double		rows = outerPlan(found->node->plan)->plan_rows;
	int			workers = found->processes - (parallel_leader_participation ? 1 : 0);
	double		leader = parallel_leader_participation ? Max(0.0, 1.0 - LEADER_SHARE * workers) : 0;

	if (found->processes == 1 || !is_parted(outerPlanState(found->node), NULL))
		return rows;
	return clamp_row_est(rows * (workers + leader) / found->processes);
}

/* What the planner knows of a sort. */
static WsAdvised *
estimate(WsFoundSort *found)
{
	WsAdvised  *a = palloc0(sizeof(WsAdvised));
	WsSortFacts *facts = &a->facts;
	const Plan *input = outerPlan(found->node->plan);
	const Plan *rows = input;
	TupleDesc	desc = ExecGetResultType(outerPlanState(found->node));
	Relation	rel = NULL;
	WsRequest  *r;
	WsKeySpec  *spec;
	WsMeasured	m = {0};

	if (found->kind == WS_NODE_OURS)
	{
		r = ((WsSortState *) found->node)->request;
		rel = ((WsSortState *) found->node)->rel;
	}
	else
		r = request_of(found);
	ws_request_resolve(r, outerPlanState(found->node), rel);
	if (!found->threads)
	{
		/* those that were asked for are there nevertheless */
		r->threads.read = Max(r->threads.read, 0);
		r->threads.sort = Max(r->threads.sort, 0);
		r->threads.write = Max(r->threads.write, 0);
	}
	spec = ws_keyspec_create(desc, r->ncols, r->attnos, r->sortops, r->collations, r->nulls_first,
							 r->notnull);

	a->found = found;
	for (int i = 0; i < WS_SETTINGS; i++)
		a->core[i] = a->here[i] = 1;
	facts->request = *r;
	facts->entry = sizeof(WsEntry) + ws_ties_bytes_per_entry(spec);
	facts->exact = spec->exact;
	facts->bytes = !spec->comparator && !spec->guess;
	facts->rows = rows_of_one(found);
	if (found->bound > 0 && found->bound <= facts->rows * WS_MOST_WANTED)
	{
		facts->request.wanted = (uint64) found->bound;
		facts->wanted = found->bound;
		facts->taken = ws_rows_taken_in(facts->rows, facts->wanted);
	}

	m.unit = ws_spool_unit(desc);
	ws_measure_row(&m, MAXALIGN(SizeofMinimalTupleHeader) + input->plan_width, 0);
	facts->row = m.spool;
	if (r->store == WS_KIND_HEAP)
	{
		/* of the table's rows core would sort those columns that are wanted */
		if (r->ties == WS_TIES_SPOOL)
			facts->tie_row = m.spool;
		rows = found->node->plan;
		desc = ExecGetResultType(found->node);
		memset(&m, 0, sizeof(m));
		m.unit = ws_spool_unit(desc);
		ws_measure_row(&m, MAXALIGN(SizeofMinimalTupleHeader) + rows->plan_width, 0);
		facts->row = m.spool;
	}
	a->rows = rows;
	a->width = rows->plan_width;
	ws_set_core_row(facts, desc, m.minimal, 0, m.core);
	return a;
}

/* The sorts of a plan, as far as the planner knows them. */
List *
ws_estimate_all(const QueryDesc *desc)
{
	List	   *sorts = NIL;
	ListCell   *lc;

	foreach(lc, ws_find_sorts(desc->plannedstmt, desc->planstate))
		sorts = lappend(sorts, estimate(lfirst(lc)));
	return sorts;
}

/* The sort of another plan of the query that is to have the same order, and is not somebody else's yet. */
static const WsAdvised *
counterpart(const WsAdvised *a, List **others)
{
	ListCell   *lc;

	foreach(lc, *others)
	{
		const WsAdvised *other = lfirst(lc);

		if (strcmp(other->found->keys, a->found->keys) != 0)
			continue;
		*others = list_delete_cell(*others, lc);
		return other;
	}
	return NULL;
}

/* The sorts of the query's plan with a setting, as it is meanwhile. */
static List *
planned_with(const char *setting, const char *value, const char *text, int cursor_options)
{
	int			level = NewGUCNestLevel();
	QueryDesc  *desc;
	List	   *sorts;

	(void) set_config_option(setting, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	desc = ws_query_begin(ws_plan_query(ws_accept_query(text), text, cursor_options), text, false);
	sorts = ws_estimate_all(desc);
	ws_query_end(desc);
	AtEOXact_GUC(false, level);
	return sorts;
}

/* Plans the query with each of the settings, and notes how each of the sorts is planned there. */
void
ws_plan_with_settings(List *sorts, const char *text, int cursor_options)
{
	for (int i = 0; i < WS_SETTINGS; i++)
	{
		List	   *others = planned_with("work_mem", ws_setting_names[i], text, cursor_options);
		ListCell   *lc;

		foreach(lc, sorts)
		{
			WsAdvised  *a = lfirst(lc);

			a->there[i] = counterpart(a, &others);
		}
	}
}

/* Plans the query as it would be without WiscSort, and notes which of core's sorts would be in its place. */
void
ws_plan_by_core(List *sorts, const char *text, int cursor_options)
{
	List	   *others = planned_with("wiscsort.enable", "off", text, cursor_options);
	ListCell   *lc;

	foreach(lc, sorts)
	{
		WsAdvised  *a = lfirst(lc);
		const WsAdvised *other = counterpart(a, &others);

		if (a->found->kind != WS_NODE_OURS || other == NULL)
			continue;
		a->by_core = other;
		a->facts.core_row = other->facts.core_row;
		a->facts.core_tape = other->facts.core_tape;
	}
}

/* Is a column of the target list something else than one of a table, or of the node below? */
static bool
computes(const List *targetlist)
{
	ListCell   *lc;

	foreach(lc, targetlist)
		if (!IsA(lfirst_node(TargetEntry, lc)->expr, Var))
			return true;
	return false;
}

/* Have two target lists columns of the same types; and, if `all`, are these made in the same way? */
static bool
same_columns(const List *one, const List *other, bool all)
{
	ListCell   *lc1;
	ListCell   *lc2;

	if (list_length(one) != list_length(other))
		return false;
	forboth(lc1, one, lc2, other)
	{
		const Expr *expr1 = lfirst_node(TargetEntry, lc1)->expr;
		const Expr *expr2 = lfirst_node(TargetEntry, lc2)->expr;

		if (exprType((const Node *) expr1) != exprType((const Node *) expr2) || (all && !equal(expr1, expr2)))
			return false;
	}
	return true;
}

/*
 * Does core sort the rows that a WiscSort returns, and not those that it takes in?  So it is where it
 * computes columns before it sorts, and all of them: what it computes afterwards is not among these.
 */
bool
ws_core_sorts_output(const WsAdvised *a)
{
	const PlanState *node = a->found->node;
	const List *sorted;

	if (a->by_core == NULL || node->ps_ProjInfo == NULL)
		return false;
	sorted = a->by_core->rows->targetlist;
	return computes(sorted) && !same_columns(sorted, outerPlan(node->plan)->targetlist, true) &&
		same_columns(sorted, node->plan->targetlist, false);
}

/*
 * The facts with one of the settings: the planner may have the rows wait elsewhere there, or the other way
 * round have WiscSort sort only there.
 */
WsSortFacts
ws_facts_with(const WsAdvised *a, int setting)
{
	const WsAdvised *there = a->there[setting];
	WsSortFacts facts = a->facts;
	double		tie_row = facts.tie_row;
	bool		computed;

	if (there == NULL || there->found->kind != WS_NODE_OURS)
		return facts;
	facts.request = there->facts.request;
	facts.request.wanted = a->facts.request.wanted;
	/* what was learnt from the rows is so wherever they wait */
	facts.entry = Max(facts.entry, there->facts.entry);
	facts.tie_row = there->facts.tie_row > 0 && tie_row > 0 ? tie_row : there->facts.tie_row;
	computed = computes(a->rows->targetlist) || computes(there->rows->targetlist);
	if (!same_columns(a->rows->targetlist, there->rows->targetlist, computed))
		facts.row = there->facts.row;
	return facts;
}
