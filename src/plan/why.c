/*-------------------------------------------------------------------------
 * why.c - EXPLAIN (VERBOSE) says why a sort was left to core.
 *
 * Core's Sort node has no room for that, and PostgreSQL no hook to print beside a node before 18.
 * So it is a property of the query, `WiscSort`, behind the plan: reasons are collected while EXPLAIN has
 * the statement planned, and printed when its execution ends, which ExplainOnePlan does while
 * the query's group is still open.  Only if the plan has a Sort.
 *
 * EXPLAIN EXECUTE takes a plan that was made before: it says nothing.
 *
 * wiscsort.why() (advise/reasons.c) has a query planned by itself, and gets a list of notes, each with the
 * rows and the number of keys of the sort that it is about.  They have the costs of sorts, too, that lost by
 * them.  From 18 on EXPLAIN has an option WISCSORT, which wants the same list, and says it beside each sort
 * (advise/option.c).
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "commands/explain.h"
#include "executor/executor.h"
#include "lib/stringinfo.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "tcop/tcopprot.h"

/* The EXPLAIN that is running; they nest where functions are executed. */
typedef struct Explained
{
	struct Explained *outer;
	ExplainState *es;
	const Query *query;
	bool		planning;		/* this one, and nothing that its planning has planned */
	const PlannedStmt *stmt;	/* NULL until it has been planned */
	StringInfoData reasons;
	bool		listed;			/* notes are wanted, too */
	List	   *notes;			/* of WsNote */
} Explained;

/* Paths whose costs differ by less are as good to the planner (add_path in core). */
#define FUZZ	1.01

static Explained *explained = NULL;

static ExplainOneQuery_hook_type next_explain_hook = NULL;
static ExecutorEnd_hook_type next_end_hook = NULL;

/* Adds to the list of notes. */
static void
add_note(const char *reason, double rows, const List *pathkeys, bool cost)
{
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(explained->reasons.data));
	WsNote	   *note = palloc(sizeof(WsNote));

	note->reason = pstrdup(reason);
	note->rows = rows;
	note->nkeys = list_length(pathkeys);
	note->cost = cost;
	explained->notes = lappend(explained->notes, note);
	MemoryContextSwitchTo(old);
}

/* Notes why a sort of `rows` rows is left to core, if anybody wants to know. */
void
ws_note_left(const char *reason, double rows, const List *pathkeys)
{
	if (explained == NULL || !explained->planning)
		return;
	if (explained->listed)
		add_note(reason, rows, pathkeys, false);
	if (strstr(explained->reasons.data, reason) != NULL)
		return;
	if (explained->reasons.len > 0)
		appendStringInfoString(&explained->reasons, "; ");
	appendStringInfoString(&explained->reasons, reason);
}

/*
 * Notes what a WiscSort of `rows` rows costs, and what core's `sort` of these does, if a list is wanted, and
 * core's may be chosen for that.
 */
void
ws_note_costs(Cost cost, const Path *sort, double rows)
{
	if (explained == NULL || !explained->planning || !explained->listed || cost * FUZZ < sort->total_cost)
		return;
	add_note(psprintf("estimated cost %.0f, of WiscSort %.0f", sort->total_cost, cost), rows, sort->pathkeys,
			 true);
}

/*
 * A statement is going to be planned: perhaps the one that is explained, or one of a function that is called
 * for a constant.  Returns what ws_note_planned wants.
 */
bool
ws_note_planning(const Query *query)
{
	bool		before = explained != NULL && explained->planning;

	if (explained != NULL)
		explained->planning = explained->query == query && explained->stmt == NULL;
	return before;
}

/* It has been planned; `before` is what ws_note_planning returned. */
void
ws_note_planned(const Query *query, const PlannedStmt *stmt, bool before)
{
	if (explained == NULL)
		return;
	if (explained->query == query)
		explained->stmt = stmt;
	explained->planning = before;
}

static bool
has_sort(PlanState *node, void *arg)
{
	return IsA(node, SortState) || IsA(node, IncrementalSortState) ||
		planstate_tree_walker(node, has_sort, arg);
}

static void
end_execution(QueryDesc *desc)
{
	if (explained != NULL && !explained->listed && desc->plannedstmt == explained->stmt &&
		explained->reasons.len > 0 &&
		has_sort(desc->planstate, NULL))
		ExplainPropertyText("WiscSort", psprintf("left to core: %s", explained->reasons.data),
							explained->es);
	if (next_end_hook != NULL)
		next_end_hook(desc);
	else
		standard_ExecutorEnd(desc);
}

static void
explain_query(Query *query, int options, IntoClause *into, ExplainState *es,
			  const char *text, ParamListInfo params, QueryEnvironment *env)
{
	Explained	this = {.outer = explained, .es = es, .query = query, .listed = ws_explain_flag(es)};

	initStringInfo(&this.reasons);
	explained = es->verbose || this.listed ? &this : NULL;
	PG_TRY();
	{
		if (next_explain_hook != NULL)
			next_explain_hook(query, options, into, es, text, params, env);
		else
			ws_explain_one_query(query, options, into, es, text, params, env);
	}
	PG_FINALLY();
	{
		explained = this.outer;
	}
	PG_END_TRY();
}

/* The list of notes of the statement that `es` explains; false if its plan was made before. */
bool
ws_notes_of(const ExplainState *es, List **notes)
{
	bool		known = explained != NULL && explained->es == es && explained->stmt == es->pstmt;

	*notes = known ? explained->notes : NIL;
	return known;
}

/* Plans a query as pg_plan_query does; *notes is set to a list of WsNote. */
PlannedStmt *
ws_plan_with_notes(Query *query, const char *text, List **notes)
{
	Explained	this = {.outer = explained, .query = query, .listed = true};
	PlannedStmt *stmt;

	initStringInfo(&this.reasons);
	explained = &this;
	PG_TRY();
	{
		stmt = ws_plan_query(query, text, CURSOR_OPT_PARALLEL_OK);
	}
	PG_FINALLY();
	{
		explained = this.outer;
	}
	PG_END_TRY();
	*notes = this.notes;
	return stmt;
}

/* Joins the hook chains of EXPLAIN and of the executor's end.  Called once. */
void
ws_install_why_hooks(void)
{
	next_explain_hook = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_query;
	next_end_hook = ExecutorEnd_hook;
	ExecutorEnd_hook = end_execution;
}
