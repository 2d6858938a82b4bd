/*-------------------------------------------------------------------------
 * report.c - what is said of a sort outside EXPLAIN: in an error, and in the server's log.
 *
 * wiscsort.log_min_temp has what EXPLAIN (ANALYZE, VERBOSE) would show of a sort logged when that has
 * ended, in one line.  wiscsort.max_temp ends a sort by an error that names its keys.  Both deparse them as
 * EXPLAIN does, which reads catalogs: only in a transaction that goes on, and in the backend.  For the log
 * that is done when the query begins, if it can be, and kept.  A function that a key calls, or a table that
 * the plan does not read, may be dropped while a cursor is open, and then its first row, or its end,
 * perhaps within COMMIT, would raise an error.
 *
 * Memory bound: that of the text.
 *-------------------------------------------------------------------------
 */
#include "exec/exec.h"

#include "nodes/nodeFuncs.h"
#include "utils/ruleutils.h"

/*
 * The names of a query's relations and of all their columns, as deparsing wants them.  Looking them up takes
 * a while with many partitions, each of which may be sorted alone: that is done once a query.
 */
static EState *named_query = NULL;
static List *names = NIL;

static void
forget_names(void *arg)
{
	if (named_query == arg)
		named_query = NULL;
}

static List *
names_of(EState *estate)
{
	PlannedStmt *stmt = estate->es_plannedstmt;
	MemoryContextCallback *end;
	MemoryContext old;
	Bitmapset  *all = NULL;

	if (named_query == estate)
		return names;
	old = MemoryContextSwitchTo(estate->es_query_cxt);
	all = bms_add_range(NULL, 1, list_length(stmt->rtable));
	names = deparse_context_for_plan_tree(stmt, select_rtable_names_for_explain(stmt->rtable, all));
	end = palloc(sizeof(MemoryContextCallback));
	end->func = forget_names;
	end->arg = estate;
	MemoryContextRegisterResetCallback(estate->es_query_cxt, end);
	MemoryContextSwitchTo(old);
	named_query = estate;
	return names;
}

/* Adds the unions to `unions` whose work tables are read below a node.  True if one is yet to begin. */
static bool
add_unions(PlanState *node, List **unions)
{
	if (IsA(node, WorkTableScanState))
	{
		int			param = ((WorkTableScan *) node->plan)->wtParam;
		Pointer		found = DatumGetPointer(node->state->es_param_exec_vals[param].value);

		if (found == NULL)
			return true;
		*unions = lappend(*unions, castNode(RecursiveUnionState, (Node *) found)->ps.plan);
	}
	return planstate_tree_walker(node, add_unions, unions);
}

/* Those plan nodes above the sort without which its keys cannot be deparsed. */
static List *
ancestors_of(WsSortState *state)
{
	List	   *unions = NIL;

	(void) add_unions(outerPlanState(&state->css), &unions);
	return unions;
}

/* The sort keys, as texts, in which columns have the names of their tables: if `prefix`, or of several. */
static List *
keys_of(WsSortState *state, bool prefix)
{
	EState	   *estate = state->css.ss.ps.state;
	List	   *context = set_deparse_context_plan(names_of(estate), state->css.ss.ps.plan,
												   ancestors_of(state));

	return ws_sort_keys(state, context, prefix || ws_several_relations(estate->es_plannedstmt->rtable));
}

/*
 * Notes the keys of a sort that may be logged, for as long as the query lives: when that begins, or else when
 * the sort does, as the setting may come later, and the recursion that a query is a step of.
 */
void
ws_note_keys(WsSortState *state)
{
	MemoryContext context;
	MemoryContext old;
	List	   *unions = NIL;
	List	   *keys;
	ListCell   *lc;

	if (ws_log_min_temp < 0 || state->keys != NIL || add_unions(outerPlanState(&state->css), &unions))
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, "WiscSort keys", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	keys = keys_of(state, true);
	MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	foreach(lc, keys)
		state->keys = lappend(state->keys, pstrdup(lfirst(lc)));
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/* The sort keys, as one text. */
static char *
all_keys_of(WsSortState *state)
{
	StringInfoData keys;
	ListCell   *lc;

	initStringInfo(&keys);
	foreach(lc, keys_of(state, false))
		appendStringInfo(&keys, "%s%s", keys.len > 0 ? ", " : "", (char *) lfirst(lc));
	return keys.data;
}

/* Raises the error of a sort whose temporary files would become larger than wiscsort.max_temp. */
void
ws_exceeds_max_temp(WsWatch *watch)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("temporary files of the sort by %s exceed wiscsort.max_temp (" INT64_FORMAT "kB)",
					all_keys_of(watch->arg), watch->disk_limit / 1024),
			 errdetail("It had taken in " INT64_FORMAT " rows.", watch->figures->rows_in),
			 errhint("Raise wiscsort.max_temp or work_mem, or sort fewer or narrower rows.")));
}

/* Logs what a sort that has ended did. */
void
ws_log_sort(WsSortState *state)
{
	/* a sort may be done again for each of many rows */
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "WiscSort log",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	ExplainState *es = NewExplainState();
	StringInfoData line;

	es->analyze = es->verbose = es->timing = true;
	ws_explain_by(&state->css, state->keys, es);
	initStringInfo(&line);
	for (const char *c = es->str->data; *c != '\0'; c++)
	{
		if (*c != '\n')
			appendStringInfoChar(&line, *c);
		else if (c[1] != '\0')
			appendStringInfoString(&line, "; ");
	}
	ereport(LOG, (errmsg("WiscSort of " UINT64_FORMAT " rows: %s", state->stats.runs.entries, line.data),
				  errhidecontext(true)));
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
