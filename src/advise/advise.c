/*-------------------------------------------------------------------------
 * advise.c - wiscsort.advise(query, run): the sorts of a query, and how much work_mem they want.
 *
 * One row for each sort of the plan: what is known of its rows, what core and WiscSort do with them at the
 * present work_mem, the work_mem from which on each needs one pass, what both take at five settings, and
 * a recommendation.  The forecasts are model.c's.
 *
 * Without `run` rows and widths are the planner's estimates, as EXPLAIN shows them.  With `run` the query is
 * run in this process, and they are measured.  That is done in a subtransaction that may only read,
 * and that is rolled back: nothing is left of what functions in the query might do, except what no
 * transaction undoes.  Its rights are those of the caller.
 *
 * Memory: that of the query.  Errors: those of the query, and the refusals of query.c.
 *-------------------------------------------------------------------------
 */
#include "advise/advise.h"

#include <math.h>

#include "access/htup_details.h"
#include "exec/exec.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "stat/stat.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/tuplestore.h"

#define LEAST_SECONDS		0.001	/* of a sort that is taken as a measure of the machine */
#define MOST_SCALE			20.0
#define TRIALS_LEAST		4.0		/* seconds that trials may take */
#define TRIALS_SHARE		6.0		/* of those that the query took, if that is more */

#define COLUMNS				14

/*
 * Notes which keys core would have a second time: those of a table under another collation than their
 * columns', because its sort wants a column that has the collation.
 */
static void
note_copies(WsAdvised *a, PlanState *input)
{
	const WsFoundSort *found = a->found;

	if (found->kind != WS_NODE_OURS || a->facts.request.store == WS_KIND_HEAP ||
		IsA(input, SubqueryScanState))
		return;
	for (int i = 0; i < found->ncols; i++)
	{
		Form_pg_attribute att = TupleDescAttr(ExecGetResultType(input), found->attnos[i] - 1);

		if (att->attlen < 0 && OidIsValid(found->collations[i]) && found->collations[i] != att->attcollation)
			a->input->twice = bms_add_member(a->input->twice, found->attnos[i]);
	}
}

/* Has a sort's rows measured: it may keep `share` of what all sorts may. */
static void
begin_measuring(WsAdvised *a, double share)
{
	PlanState  *input = outerPlanState(a->found->node);

	a->input = ws_measure(input);
	note_copies(a, input);
	if (a->found->kind != WS_NODE_INCREMENTAL && a->input->sample == NULL)
		ws_sample(a->input, share);
	if (a->facts.request.store == WS_KIND_HEAP || ws_core_sorts_output(a))
		a->output = ws_measure(a->found->node);
}

/* Sets all factors. */
static void
set_factors(WsAdvised *a, double factor)
{
	for (int i = 0; i < WS_SETTINGS; i++)
		a->core[i] = a->here[i] = factor;
}

/* Seconds that a node and all below it took. */
static double
seconds_of(PlanState *node)
{
	InstrEndLoop(node->instrument);
	return ws_node_seconds(node);
}

/* How many rows WiscSort takes in of as many, if it heeds a LIMIT; as it did in the last execution. */
static double
rows_taken(const WsAdvised *a, double rows)
{
	const WsSortFacts *facts = &a->facts;
	const WsSortState *state = (const WsSortState *) a->found->node;
	double		last = a->input->rows - a->input->begun;

	if (facts->wanted == 0)
		return 0;
	if (a->found->kind != WS_NODE_OURS || !state->has_stats || last <= 0)
		return ws_rows_taken_in(rows, facts->wanted);
	/* the order of rows may have hidden from it what is not wanted */
	return rows * Max(0, last - (double) state->stats.passed) / last;
}

/* What an entry took in a WiscSort that was run counts, more than what it took in a trial with fewer rows. */
static void
note_entry(WsAdvised *a)
{
	const WsSortState *state = (const WsSortState *) a->found->node;

	if (a->found->kind == WS_NODE_OURS && state->has_stats && !state->stats.few)
		a->facts.entry = state->stats.entry_bytes;
}

/*
 * Takes what was measured into the facts, and finds how long the sort takes: by trials, of so many seconds,
 * or else by how long it took.
 */
static void
end_measuring(WsAdvised *a, double trials)
{
	WsSortFacts *facts = &a->facts;
	PlanState  *node = a->found->node;
	PlanState  *input = outerPlanState(node);
	const WsMeasured *by_core = a->output != NULL ? a->output : a->input;
	const WsMeasured *rows = facts->request.store == WS_KIND_HEAP ? by_core : a->input;
	double		seconds = seconds_of(node) - seconds_of(input);
	double		loops = Max(input->instrument->nloops, 1);
	double		mean = a->input->rows / loops;	/* rows of an execution */
	double		minimal;		/* bytes of a row as core has it */
	double		again;
	bool		tried;
	WsSortFacts usual;
	WsSortForecast f;

	a->measured = true;
	if (facts->wanted > 0 && a->found->kind == WS_NODE_OURS && ((WsSortState *) node)->has_stats)
	{
		/* it may not have been told */
		facts->request.wanted = ((WsSortState *) node)->request->wanted;
		facts->wanted = (double) facts->request.wanted;
	}
	facts->rows = mean;
	facts->taken = rows_taken(a, mean);
	if (by_core->rows == 0)
		return;
	facts->row = rows->spool / rows->rows;
	if (facts->tie_row > 0)
		facts->tie_row = a->input->spool / a->input->rows;
	a->width = (int) rint(rows->minimal / rows->rows) - (int) MAXALIGN(SizeofMinimalTupleHeader);
	again = by_core->again / by_core->rows;
	minimal = by_core->minimal / by_core->rows + again;
	ws_set_core_row(facts, ExecGetResultType(by_core->node), minimal, again, by_core->core / by_core->rows);

	/* memory and disk are sized for the execution with the most rows */
	usual = *facts;
	facts->rows = Max(Max(a->input->most, a->input->rows - a->input->begun), mean);
	facts->taken = rows_taken(a, facts->rows);
	tried = a->input->sample != NULL && ws_try_sorts(a, minimal, trials);
	note_entry(a);

	/* how long it took says something unless somebody stopped asking for rows */
	if (tried || node->instrument->ntuples < a->input->rows || seconds / loops < LEAST_SECONDS)
		return;
	f = a->found->kind == WS_NODE_OURS ? ws_forecast_here(&usual, (Size) work_mem * 1024) :
		ws_forecast_core(&usual, (Size) work_mem * 1024);
	set_factors(a, Max(1 / MOST_SCALE, Min(seconds / loops / f.seconds, MOST_SCALE)));
}

/* What a sort does, in words. */
static char *
describe(const WsSortForecast *f)
{
	if (f->in_memory)
		return pstrdup("in memory");
	if (f->one_pass)
		return pstrdup("one-pass");
	return psprintf("external, %.0f runs, %d %s", f->runs, f->passes, f->passes == 1 ? "pass" : "passes");
}

/* Does core not sort all rows at once, which is what is foreseen of it? */
static bool
sorts_a_part(const WsAdvised *a)
{
	return ws_is_top_n(a) || a->found->kind == WS_NODE_INCREMENTAL;
}

/* Would core keep a heap of the rows that a LIMIT takes, with so much memory, kB? */
static bool
fits_core(const WsAdvised *a, int kb)
{
	return a->found->bound > 0 && ws_bound_fits(a->found->bound, a->facts.rows, a->width, kb * 1024.0);
}

static void
add_estimate(StringInfo buf, const char *who, const WsSortForecast *f, double scale)
{
	appendStringInfo(buf, ", \"%s\": {\"seconds\": %.3f, \"temp_bytes\": %.0f}", who, f->seconds * scale,
					 f->temp);
}

/* What both sorts take at each setting, as jsonb. */
static Datum
estimates(const WsAdvised *a)
{
	StringInfoData buf;

	initStringInfo(&buf);
	appendStringInfoChar(&buf, '[');
	for (int i = 0; i < WS_SETTINGS; i++)
	{
		WsSortForecast core = ws_forecast_core(&a->facts, (Size) ws_settings[i] * 1024);
		WsSortFacts facts = ws_facts_with(a, i);
		WsSortForecast here = ws_forecast_here(&facts, (Size) ws_settings[i] * 1024);

		appendStringInfo(&buf, "%s{\"work_mem\": \"%s\"", i > 0 ? ", " : "", ws_setting_names[i]);
		if (sorts_a_part(a) || fits_core(a, ws_settings[i]))
			appendStringInfoString(&buf, ", \"core\": null");
		else
			add_estimate(&buf, "core", &core, a->core[i]);
		add_estimate(&buf, "wiscsort", &here, a->here[i]);
		appendStringInfoChar(&buf, '}');
	}
	appendStringInfoChar(&buf, ']');
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(buf.data));
}

/* Puts the row of a sort into the result. */
static void
put_row(const WsAdvised *a, int number, ReturnSetInfo *result)
{
	static const char *const kinds[] = {"Sort", "Incremental Sort", "WiscSort"};
	const WsSortFacts *facts = &a->facts;
	WsSortForecast core = ws_forecast_core(facts, (Size) work_mem * 1024);
	WsSortForecast here = ws_forecast_here(facts, (Size) work_mem * 1024);
	int			least_here = ws_least_work_mem(facts, ws_forecast_here, 0);
	int			least_core = ws_least_work_mem(facts, ws_forecast_core, 0);
	bool		incremental = a->found->kind == WS_NODE_INCREMENTAL;
	Datum		values[COLUMNS];
	bool		nulls[COLUMNS] = {0};
	char	   *reason;
	int			i = 0;

	values[i++] = Int32GetDatum(number);
	values[i++] = CStringGetTextDatum(kinds[a->found->kind]);
	values[i++] = CStringGetTextDatum(a->found->keys);
	values[i++] = Int64GetDatum((int64) Min(facts->rows, 1e18));
	values[i++] = Int32GetDatum(a->width);
	values[i++] = BoolGetDatum(a->measured);
	values[i++] = Int32GetDatum(a->found->processes);
	values[i++] = CStringGetTextDatum(ws_is_top_n(a) ? "top-N heapsort" :
									  incremental ? "in groups" : describe(&core));
	values[i++] = CStringGetTextDatum(describe(&here));
	nulls[i] = least_here == MAX_KILOBYTES;
	values[i++] = Int64GetDatum(least_here);
	nulls[i] = least_core == MAX_KILOBYTES || sorts_a_part(a);
	values[i++] = Int64GetDatum(least_core);
	values[i++] = estimates(a);
	values[i++] = Int64GetDatum(ws_recommend(a, a->found->kind == WS_NODE_OURS ? least_here : least_core,
										  &reason));
	values[i++] = CStringGetTextDatum(reason);
	Assert(i == COLUMNS);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

typedef struct Question
{
	const char *text;
	bool		run;
	ReturnSetInfo *result;
} Question;

/* Plans a query, runs it if it is to, and puts a row for each of its sorts into the result. */
static void
advise(void *arg)
{
	const Question *question = arg;
	const char *text = question->text;
	bool		run = question->run;
	Query	   *query = ws_accept_query(text);
	int			cursor_options = run ? 0 : CURSOR_OPT_PARALLEL_OK;
	PlannedStmt *stmt = ws_plan_query(query, text, cursor_options);
	QueryDesc  *desc;
	List	   *sorts;
	ListCell   *lc;
	int			number = 0;
	double		trials;

	if (run)
		ws_measure_begin();
	desc = ws_query_begin(stmt, text, run);
	sorts = ws_estimate_all(desc);
	if (sorts != NIL)
		ws_plan_by_core(sorts, text, cursor_options);
	if (run)
	{
		foreach(lc, sorts)
			begin_measuring(lfirst(lc), 1.0 / list_length(sorts));
		ws_run_measured(desc);
		trials = seconds_of(desc->planstate) * TRIALS_SHARE;
		trials = Max(trials, TRIALS_LEAST);
		foreach(lc, sorts)
		{
			end_measuring(lfirst(lc), trials / list_length(sorts));
			ws_sample_end(((WsAdvised *) lfirst(lc))->input);
		}
	}
	if (sorts != NIL)
		ws_plan_with_settings(sorts, text, cursor_options);
	foreach(lc, sorts)
		put_row(lfirst(lc), ++number, question->result);
	ws_query_end(desc);
}

PG_FUNCTION_INFO_V1(wiscsort_advise);
PGDLLEXPORT Datum wiscsort_advise(PG_FUNCTION_ARGS);

/* wiscsort.advise(query text, run boolean) */
Datum
wiscsort_advise(PG_FUNCTION_ARGS)
{
	Question	question = {text_to_cstring(PG_GETARG_TEXT_PP(0)), PG_GETARG_BOOL(1),
		ws_return_rows(fcinfo, COLUMNS)};

	ws_reading(question.text, advise, &question);
	return (Datum) 0;
}
