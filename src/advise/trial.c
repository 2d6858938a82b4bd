/*-------------------------------------------------------------------------
 * trial.c - some rows of a sort's input, sorted by core and by WiscSort to see how long that takes.
 *
 * How much a comparison costs depends on type, collation and machine: of texts under libc it is fifty times
 * that of integers.  What the sort took that was run says little of the other, or of other settings.  So the
 * first rows of the input are kept while the query is run, and sorted afterwards by both, once with
 * each setting for which the time is forecast.  Where only a part of the rows is kept, memory is that part of
 * the setting, as far as it can be, so that there are as many runs.  What a trial took, divided by what
 * model.c says of it, is the factor for what it says of all rows.
 *
 * Time: trials end after `seconds`, about: how many rows may be sorted is found with few.  EXPLAIN ANALYZE
 * times each row that goes in and comes out; so do trials.
 *
 * Memory: rows are kept in a tuplestore, with work_mem, of SAMPLE_BYTES at most; a trial takes its setting's
 * part, or LEAST_HERE, in a context of its own.  Temporary files of both.
 * Errors: those of comparing the values, and of files.
 *-------------------------------------------------------------------------
 */
#include "advise/advise.h"

#include <math.h>

#include "access/htup_details.h"
#include "exec/exec.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "portability/instr_time.h"
#include "sort/again.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/tuplesort.h"
#include "utils/tuplestore.h"

#define SAMPLE_BYTES	(128.0 * 1024 * 1024)
#define SAMPLE_LEAST	2000	/* rows that say something */
#define PILOT_ROWS		20000
#define MOST_FACTOR		50.0
#define TURNS			3		/* of a trial: with fresh pages one takes twice as long as another */

/* Memory of trials.  With less than LEAST_HERE a row takes WiscSort longer than with a setting above that. */
#define LEAST_SCALED	((Size) 64 * 1024)
#define LEAST_HERE		((Size) 4096 * 1024)

/* Of what temporary files may have (wiscsort.max_temp, temp_file_limit), the part that a trial may take. */
#define LIMIT_SHARE		0.5

/* Memory of what keeps the rows of a sort at least, in kB. */
#define LEAST_STORE		64

struct WsSample
{
	TupleDesc	desc;
	const TupleTableSlotOps *ops;	/* of the rows' slot */
	Tuplestorestate *store;
	WsMeasured	kept;
	double		most;			/* bytes to be kept */
};

/* Keeps a row, if there is room. */
static void
take(WsMeasured *measured, TupleTableSlot *slot)
{
	WsSample   *s = measured->sample;

	if (s->kept.minimal > s->most)
		return;
	tuplestore_puttupleslot(s->store, slot);
	ws_measure_row(&s->kept, ws_minimal_bytes(slot), 0);
}

/* Has rows kept of a node that is measured: `share` of what all such nodes of a plan may keep. */
void
ws_sample(WsMeasured *measured, double share)
{
	WsSample   *s = palloc0(sizeof(WsSample));

	s->desc = ExecGetResultType(measured->node);
	s->ops = ExecGetResultSlotOps(measured->node, NULL);
	s->kept.unit = ws_spool_unit(s->desc);
	/* where temporary files are limited, it has none: a tuplestore takes four times a short row's bytes */
	s->most = share *
		(ws_max_temp < 0 && temp_file_limit < 0 ? SAMPLE_BYTES : Min(SAMPLE_BYTES, work_mem * 256.0));
	s->store = tuplestore_begin_heap(false, false, Max((int) (share * work_mem), LEAST_STORE));
	measured->sample = s;
	measured->take = take;
}

/* No more trials: frees the rows. */
void
ws_sample_end(WsMeasured *measured)
{
	if (measured->sample == NULL)
		return;
	tuplestore_end(measured->sample->store);
	pfree(measured->sample);
	measured->sample = NULL;
}

/* One sort of the first rows that are kept. */
typedef struct Trial
{
	const WsSample *sample;
	const WsFoundSort *found;
	int64		rows;
	int64		read;
	int64		asked;				/* rows that are read from the sort, for a LIMIT */
	double		codes;			/* the least share of the memory that codes took */
	Size		entry;			/* the most bytes that an entry took */
	Size		pad;			/* core's rows are at least so long as minimal tuples; 0: as they are */
	const WsFoundSort *by_core; /* core sorts what the node returns, by these keys; NULL: what it takes in */
	WsTimer    *input;
	TupleTableSlot *stored;
	TupleTableSlot *row;		/* with its values, if the sort gets them so */
	instr_time	begun;
} Trial;

static void
begin(Trial *t)
{
	const WsSample *s = t->sample;

	t->read = 0;
	t->input = ws_timer_create();
	t->stored = MakeSingleTupleTableSlot(s->desc, &TTSOpsMinimalTuple);
	t->row = s->ops == &TTSOpsVirtual ? MakeSingleTupleTableSlot(s->desc, s->ops) : NULL;
	tuplestore_rescan(s->store);
	INSTR_TIME_SET_CURRENT(t->begun);
}

/* What the node makes of a row that it gets. */
static TupleTableSlot *
projected(const WsFoundSort *found, TupleTableSlot *row)
{
	ResetExprContext(found->node->ps_ExprContext);
	found->node->ps_ExprContext->ecxt_scantuple = row;
	return ExecProject(found->node->ps_ProjInfo);
}

/* No more rows are made of those in `row`, the slot of those that it gets. */
static void
end_projecting(const WsFoundSort *found, TupleTableSlot *row)
{
	ExecClearTuple(row);
	if (found->node->ps_ProjInfo != NULL)
		ExecClearTuple(found->node->ps_ResultTupleSlot);
}

/*
 * The next row, timed as an input's, in a slot as the query's sort gets it, or, if `result`, which is the
 * slot of the node's rows, core's sort; NULL after the last.
 */
static TupleTableSlot *
next_row(Trial *t, TupleTableSlot *result)
{
	TupleTableSlot *slot = t->stored;
	bool		found;

	CHECK_FOR_INTERRUPTS();
	InstrStartNode(t->input);
	found = t->read++ < t->rows && tuplestore_gettupleslot(t->sample->store, true, false, slot);
	if (found && result != NULL)
		slot = projected(t->found, ExecCopySlot(result, slot));
	else if (found && t->row != NULL)
	{
		slot_getallattrs(slot);
		ExecClearTuple(t->row);
		memcpy(t->row->tts_values, slot->tts_values, slot->tts_nvalid * sizeof(Datum));
		memcpy(t->row->tts_isnull, slot->tts_isnull, slot->tts_nvalid * sizeof(bool));
		slot = ExecStoreVirtualTuple(t->row);
	}
	InstrStopNode(t->input, found ? 1 : 0);
	return found ? slot : NULL;
}

/* Seconds since it began, without those of its input. */
static double
end(Trial *t)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, t->begun);
	InstrEndLoop(t->input);
	if (t->row != NULL)
		ExecDropSingleTupleTableSlot(t->row);
	ExecDropSingleTupleTableSlot(t->stored);
	return INSTR_TIME_GET_DOUBLE(now) - ws_timer_seconds(t->input);
}

/* A row that is as long as those that core would sort. */
static MinimalTuple
padded(const Trial *t, MinimalTuple row, MinimalTuple room)
{
	if (row->t_len >= t->pad)
		return row;
	memcpy(room, row, row->t_len);
	room->t_len = (uint32) t->pad;
	return room;
}

/* Core's sort, in CurrentMemoryContext. */
static double
sort_by_core(Trial *t, const WsSortFacts *facts, int kilobytes)
{
	const WsFoundSort *found = t->by_core != NULL ? t->by_core : t->found;
	PlanState  *node = t->found->node;
	TupleTableSlot *made = t->by_core != NULL ? ((WsSortState *) node)->css.ss.ss_ScanTupleSlot : NULL;
	TupleDesc	desc = t->by_core != NULL ? ExecGetResultType(node) : t->sample->desc;
	Size		pad = t->by_core != NULL ? 0 : t->pad;
	bool		datum = ws_core_sorts_datums(desc, pad > 0);
	int			flags = facts->request.random_access ? TUPLESORT_RANDOMACCESS : TUPLESORT_NONE;
	TupleTableSlot *slot;
	TupleTableSlot *minimal = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	MinimalTuple room = pad > 0 ? palloc0(pad) : NULL;
	WsTimer    *output = ws_timer_create();
	Tuplesortstate *sort;
	Datum		value;
	bool		isnull;
	bool		freed;
	bool		more = true;
	double		seconds;

	begin(t);
	if (datum)
		sort = tuplesort_begin_datum(TupleDescAttr(desc, 0)->atttypid, found->sortops[0],
									 found->collations[0], found->nulls_first[0], kilobytes, NULL, flags);
	else
		sort = tuplesort_begin_heap(desc, found->ncols, found->attnos, found->sortops, found->collations,
									found->nulls_first, kilobytes, NULL, flags);
	while ((slot = next_row(t, made)) != NULL)
	{
		if (datum)
		{
			slot_getsomeattrs(slot, 1);
			tuplesort_putdatum(sort, slot->tts_values[0], slot->tts_isnull[0]);
		}
		else if (pad == 0)
			tuplesort_puttupleslot(sort, slot);
		else
		{
			MinimalTuple row = padded(t, ExecFetchSlotMinimalTuple(t->stored, &freed), room);

			tuplesort_puttupleslot(sort, ExecStoreMinimalTuple(row, minimal, false));
		}
	}
	tuplesort_performsort(sort);
	for (int64 n = 0; more && n < t->asked; n++)
	{
		CHECK_FOR_INTERRUPTS();
		InstrStartNode(output);
		more = datum ? ws_tuplesort_getdatum(sort, &value, &isnull) :
			tuplesort_gettupleslot(sort, true, false, minimal, NULL);
		InstrStopNode(output, more ? 1 : 0);
	}
	seconds = end(t);
	ExecDropSingleTupleTableSlot(minimal);
	if (made != NULL)
		end_projecting(t->found, made);
	tuplesort_end(sort);
	return seconds;
}

/* The slot for a WiscSort's rows: that of the node, if it is one. */
static TupleTableSlot *
result_slot(const Trial *t, const WsRequest *request)
{
	if (t->found->kind == WS_NODE_OURS)
		return ((WsSortState *) t->found->node)->css.ss.ss_ScanTupleSlot;
	return MakeSingleTupleTableSlot(t->sample->desc, request->store == WS_KIND_KEYS ? &TTSOpsVirtual :
									&TTSOpsHeapTuple);
}

static bool
needs_query(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) ||
		(IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC))
		return true;
	return expression_tree_walker(node, needs_query, arg);
}

/*
 * Has a WiscSort's node a projection that a trial may call?  Not one that needs more than its row, or may do
 * more than return values; nor under a LIMIT, since it may fail for rows that the query does not return.
 */
static bool
may_project(const WsFoundSort *found)
{
	Node	   *made = (Node *) found->node->plan->targetlist;

	return found->kind == WS_NODE_OURS && found->bound <= 0 && !needs_query(made, NULL) &&
		!contain_volatile_functions(made) && found->node->ps_ProjInfo != NULL;
}

/* WiscSort, in CurrentMemoryContext.  Where the node makes other rows of those that it gets, so does this. */
static double
sort_here(Trial *t, const WsRequest *request)
{
	TupleDesc	desc = t->sample->desc;
	PlanState  *node = t->found->node;
	Relation	rel = request->store == WS_KIND_HEAP ? ((WsSortState *) node)->rel : NULL;
	TupleTableSlot *slot;
	TupleTableSlot *result = result_slot(t, request);
	WsTimer    *output = ws_timer_create();
	WsRequest	own = *request;
	WsSortStats stats;
	WsSort	   *sort;
	bool		projects = may_project(t->found);
	bool		more = true;
	double		seconds;

	own.codes = 0;
	begin(t);
	sort = ws_sort_create(&own, desc, rel);
	while ((slot = next_row(t, NULL)) != NULL)
		ws_sort_put(sort, slot);
	ws_sort_perform(sort);
	for (int64 n = 0; more && n < t->asked; n++)
	{
		CHECK_FOR_INTERRUPTS();
		InstrStartNode(output);
		more = ws_sort_get(sort, true, result);
		if (more && projects)
			(void) projected(t->found, result);
		InstrStopNode(output, more ? 1 : 0);
	}
	seconds = end(t);
	end_projecting(t->found, result);
	ws_sort_stats(sort, &stats);
	t->codes = Min(t->codes, (double) stats.codes / (double) request->memory);
	t->entry = Max(t->entry, stats.entry_bytes);
	ws_sort_destroy(sort);
	return seconds;
}

static int64
part_of(int64 bytes, double part)
{
	return bytes == PG_INT64_MAX ? bytes : (int64) ((double) bytes * part);
}

/*
 * The request for a part of the rows, with `taken` bytes of memory in the place of `memory`: decisions are
 * those of all rows.
 */
static WsRequest
request_for(const WsRequest *r, Size memory, Size taken, double part)
{
	WsRequest	request = *r;

	request.memory = taken;
	if (memory >= WS_HELPER_MEMORY && taken < WS_HELPER_MEMORY)
	{
		request.threads.read = abs(request.threads.read);
		request.threads.sort = abs(request.threads.sort);
		request.threads.write = abs(request.threads.write);
	}
	request.rows *= part;
	request.cache = part_of(r->cache, part);
	request.allowance = part_of(r->allowance, part);
	request.found = part_of(r->found, part);
	request.stays = part_of(r->stays, part);
	request.again = false;
	request.wanted = r->wanted > 0 ? Max((uint64) ((double) r->wanted * part), 1) : 0;
	request.watch = NULL;
	return request;
}

/*
 * Could sorts with these `facts`, of which core's has `by_core` bytes of memory, write more than temporary
 * files may have, beside `written` bytes?
 */
static bool
over_limits(const WsSortFacts *facts, Size by_core, double written)
{
	double		here = ws_forecast_here(facts, facts->request.memory).temp / 1024;
	double		core = ws_forecast_core(facts, by_core).temp / 1024;

	return (ws_max_temp >= 0 && here > ws_max_temp * LIMIT_SHARE) ||
		(temp_file_limit >= 0 && Max(here, core) > (temp_file_limit - written / 1024) * LIMIT_SHARE);
}

/* That of the three turns. */
static double
median(const double took[TURNS])
{
	double		least = Min(took[0], took[1]);
	double		most = Max(took[0], took[1]);

	return Max(least, Min(most, took[2]));
}

/*
 * Sorts the first `rows` rows, of all that the facts are of, with all settings but those that are ample as
 * one before was; once, or in `turns` turns.  Core's rows are `pad` bytes long at least.  Sets factors, and
 * in the facts what codes and an entry take; returns the seconds that it took.
 */
static double
try_settings(WsAdvised *a, int64 rows, int turns, Size pad)
{
	const WsFoundSort *found = a->found;
	WsSortFacts *facts = &a->facts;
	double	   *core = a->core;
	double	   *here = a->here;
	Trial		t = {.sample = a->input->sample, .found = found, .rows = rows, .pad = pad,
	.asked = PG_INT64_MAX,.codes = 1};
	double		part = (double) rows / Max(facts->rows, 1);
	double		all = 0;
	bool		core_in_memory = false;
	bool		here_in_memory = false;
	MemoryContext old;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "WiscSort trials",
												  ALLOCSET_DEFAULT_SIZES);

	if (found->bound > 0)
		t.asked = (int64) Max(found->bound * part, 1);
	/* with the table as store, what the node gets of a row need not be all of it */
	if (facts->request.store != WS_KIND_HEAP && ws_core_sorts_output(a) && may_project(found))
		t.by_core = a->by_core->found;
	for (int i = 0; i < WS_SETTINGS; i++)
	{
		Size		memory = (Size) ws_settings[i] * 1024;
		Size		scaled = Max((Size) ((double) memory * part), LEAST_SCALED);
		WsSortFacts sample = *facts;
		double		here_took[TURNS] = {0};
		double		core_took[TURNS] = {0};

		sample.rows = (double) rows;
		sample.taken *= part;
		sample.request = request_for(&facts->request, memory, Max(scaled, Min(memory, LEAST_HERE)), part);
		/* not if that would keep off the disk what the setting does not */
		if (ws_forecast_here(&sample, sample.request.memory).in_memory &&
			!ws_forecast_here(facts, memory).in_memory)
			sample.request = request_for(&facts->request, memory, scaled, part);
		if (over_limits(&sample, scaled, a->input->written))
		{
			core[i] = i > 0 ? core[i - 1] : 1;
			here[i] = i > 0 ? here[i - 1] : 1;
			continue;
		}
		old = MemoryContextSwitchTo(context);
		for (int turn = 0; turn < turns; turn++)
		{
			MemoryContextReset(context);
			if (!core_in_memory)
				core_took[turn] = sort_by_core(&t, facts, (int) (scaled / 1024));
			if (!here_in_memory)
				here_took[turn] = sort_here(&t, &sample.request);
			all += core_took[turn] + here_took[turn];
		}
		for (int turn = turns; turn < TURNS; turn++)
		{
			core_took[turn] = core_took[0];
			here_took[turn] = here_took[0];
		}
		MemoryContextSwitchTo(old);
		core[i] = core_in_memory ? core[i - 1] :
			median(core_took) / ws_forecast_core(&sample, scaled).seconds;
		here[i] = here_in_memory ? here[i - 1] :
			median(here_took) / ws_forecast_here(&sample, sample.request.memory).seconds;
		core_in_memory = ws_forecast_core(facts, memory).in_memory;
		here_in_memory = ws_forecast_here(facts, memory).in_memory;
		core[i] = Max(1 / MOST_FACTOR, Min(core[i], MOST_FACTOR));
		here[i] = Max(1 / MOST_FACTOR, Min(here[i], MOST_FACTOR));
	}
	MemoryContextDelete(context);
	facts->request.codes = t.codes < 1 ? t.codes : 0;
	facts->entry = Max(facts->entry, t.entry);
	return all;
}

/*
 * How many times as long as forecast both take for such rows, with each of the settings: sets the factors,
 * and in the facts, which are those of all rows, what codes and an entry take.  False if too few rows are
 * there to tell.  Of a sort that was executed several times the rows of all are kept, but no more sorted than
 * one has, which is what the memory is for.  `longest` bytes are those of the rows that core would sort, as
 * minimal tuples.  Takes `seconds`, about.
 */
bool
ws_try_sorts(WsAdvised *a, double longest, double seconds)
{
	const WsSample *s = a->input->sample;
	int64		rows = (int64) Min(s->kept.rows, ceil(a->facts.rows));
	Size		pad = longest > s->kept.minimal / Max(s->kept.rows, 1) + 1 ? (Size) longest : 0;
	int64		pilot = Min(rows, PILOT_ROWS);
	double		took;

	if (rows < SAMPLE_LEAST)
		return false;
	took = try_settings(a, pilot, 1, pad);
	rows = (int64) Min((double) rows, (double) pilot * seconds / Max(took * TURNS, 1e-6));
	(void) try_settings(a, Max(rows, pilot), rows < pilot ? 1 : TURNS, pad);
	return true;
}
