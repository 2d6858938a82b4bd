/*-------------------------------------------------------------------------
 * reasons.c - wiscsort.why(query): who sorts, in the plan of a query, and why.
 *
 * The query is planned and not run.  What the planner notes meanwhile of sorts that are left to core
 * (plan/why.c) has no plan node yet, so that a note belongs to the Sort with the same number of rows and of
 * keys.  The settings, LIMIT, and the threshold are looked at here, as the planner does.
 *-------------------------------------------------------------------------
 */
#include "advise/advise.h"

#include "exec/exec.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "stat/stat.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

/* Columns of wiscsort.why(). */
#define WHY_COLUMNS		5

/* Have several of a plan's sorts so many keys? */
static bool
several_with(const List *sorts, int nkeys)
{
	int			n = 0;
	ListCell   *lc;

	foreach(lc, sorts)
		n += ((const WsFoundSort *) lfirst(lc))->ncols == nkeys;
	return n > 1;
}

/*
 * What was noted of a sort: a refusal, or else costs; NULL if there is nothing.  A refusal of other rows than
 * the plan has is of the sort nevertheless, if no other of the plan's sorts could be meant.
 */
static char *
noted(const WsFoundSort *found, const List *sorts, List *notes)
{
	double		rows = outerPlan(found->node->plan)->plan_rows;
	char	   *other = NULL;
	char	   *costs = NULL;
	ListCell   *lc;

	foreach(lc, notes)
	{
		const WsNote *note = lfirst(lc);

		if (note->nkeys != found->ncols)
			continue;
		if (!note->cost && note->rows == rows)
			return note->reason;
		if (note->cost && note->rows == rows && costs == NULL)
			costs = note->reason;
		if (!note->cost && other == NULL)
			other = note->reason;
	}
	return costs != NULL || several_with(sorts, found->ncols) ? costs : other;
}

/*
 * Why a sort, of the plan's `sorts`, is whose it is: of a WiscSort why its rows wait where they do.  `notes`
 * are those of its planning, if `planned`; else it was planned before, and what only the planner knew is not
 * known any more.
 */
const char *
ws_reason(const WsFoundSort *found, const List *sorts, bool planned, List *notes)
{
	const Plan *input = outerPlan(found->node->plan);
	const char *reason;

	if (found->kind == WS_NODE_OURS)
		return ws_store_choice((const WsSortState *) found->node);
	if (!ws_enable)
		return "wiscsort.enable is off";
	if (!enable_sort)
		return "enable_sort is off";
	if (ws_bound_is_cores(found->bound, found->sortops[0], found->collations[0], input->plan_rows,
						  input->plan_width))
		return found->bound <= 0 ? "a LIMIT that is not a constant may take few rows" :
			psprintf("a LIMIT takes %.0f rows, which fit work_mem: PostgreSQL keeps no more than these",
					 found->bound);
	if (!ws_sort_considered(input->plan_rows, input->plan_width, ws_only_target(input->targetlist)))
		return psprintf("%.0f rows of %d bytes are below %s, of %d kB", input->plan_rows, input->plan_width,
						ws_threshold < 0 ? "work_mem" : "wiscsort.threshold",
						ws_threshold < 0 ? work_mem : ws_threshold);
	reason = noted(found, sorts, notes);
	if (reason != NULL)
		return reason;
	if (!planned)
		return "its plan was made before";
	if (found->kind == WS_NODE_INCREMENTAL)
		return "rows come in the order of the first keys, and that costs less";
	return "the planner adds this sort after it has chosen the plan";
}

typedef struct Question
{
	const char *text;
	ReturnSetInfo *result;
} Question;

/* Plans a query, and puts a row for each of its sorts into the result. */
static void
explain(void *arg)
{
	static const char *const kinds[] = {"Sort", "Incremental Sort", "WiscSort"};
	const Question *question = arg;
	Query	   *parsed = ws_accept_query(question->text);
	List	   *notes;
	List	   *sorts;
	PlannedStmt *stmt = ws_plan_with_notes(parsed, question->text, &notes);
	QueryDesc  *desc = ws_query_begin(stmt, question->text, false);
	ListCell   *lc;
	int			number = 0;

	sorts = ws_find_sorts(desc->plannedstmt, desc->planstate);
	foreach(lc, sorts)
	{
		const WsFoundSort *found = lfirst(lc);
		Datum		values[WHY_COLUMNS];
		bool		nulls[WHY_COLUMNS] = {0};

		values[0] = Int32GetDatum(++number);
		values[1] = CStringGetTextDatum(kinds[found->kind]);
		values[2] = CStringGetTextDatum(found->keys);
		values[3] = CStringGetTextDatum(found->kind == WS_NODE_OURS ? "WiscSort" : "PostgreSQL");
		values[4] = CStringGetTextDatum(ws_reason(found, sorts, true, notes));
		tuplestore_putvalues(question->result->setResult, question->result->setDesc, values, nulls);
	}
	ws_query_end(desc);
}

PG_FUNCTION_INFO_V1(wiscsort_why);
PGDLLEXPORT Datum wiscsort_why(PG_FUNCTION_ARGS);

/* wiscsort.why(query text) */
Datum
wiscsort_why(PG_FUNCTION_ARGS)
{
	Question	question = {text_to_cstring(PG_GETARG_TEXT_PP(0)), ws_return_rows(fcinfo, WHY_COLUMNS)};

	ws_reading(question.text, explain, &question);
	return (Datum) 0;
}
