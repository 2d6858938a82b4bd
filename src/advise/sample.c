/*-------------------------------------------------------------------------
 * sample.c - some rows of a sort's input, sorted by core to see how long that takes.
 *
 * How much a comparison costs depends on type, collation and machine: of texts under libc it is fifty times
 * that of integers.  What WiscSort took says little of it.  So the first rows of the input are kept while the
 * query is run, and sorted by tuplesort.c afterwards, once in memory and once with files; model.c does the
 * rest.
 *
 * Memory: SAMPLE_BYTES at most, and what sorting them takes, in a context of its own, until the query ends.
 * Errors: those of comparing the values.
 *-------------------------------------------------------------------------
 */
#include "advise/advise.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#define SAMPLE_ROWS		100000
#define SAMPLE_BYTES	((Size) 16 * 1024 * 1024)
#define SAMPLE_LEAST	5000	/* rows that say something */
#define AMPLE			(1024 * 1024)	/* kB, with which they are sorted in memory */
#define EXTERNAL_RUNS	4

struct WsSample
{
	MemoryContext context;
	TupleDesc	desc;
	MinimalTuple *rows;
	int			n;
	WsMeasured	measured;
};

/* Keeps a row, if there is room. */
static void
take(WsMeasured *measured, TupleTableSlot *slot)
{
	WsSample   *s = measured->sample;
	MemoryContext old;

	if (s->n >= SAMPLE_ROWS || s->measured.minimal > SAMPLE_BYTES)
		return;
	old = MemoryContextSwitchTo(s->context);
	s->rows[s->n] = ExecCopySlotMinimalTuple(slot);
	ws_measure_row(&s->measured, s->rows[s->n++]->t_len);
	MemoryContextSwitchTo(old);
}

/* Has rows kept of a node that is measured. */
void
ws_sample(WsMeasured *measured)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "WiscSort sample",
												  ALLOCSET_DEFAULT_SIZES);
	WsSample   *s = palloc0(sizeof(WsSample));

	s->context = context;
	s->desc = ExecGetResultType(measured->node);
	s->measured.unit = ws_spool_unit(s->desc);
	s->rows = MemoryContextAlloc(context, SAMPLE_ROWS * sizeof(MinimalTuple));
	measured->sample = s;
	measured->take = take;
}

/*
 * Core's sort of them with so much memory, in seconds.  Rows that it returns are timed one by one, as in the
 * query that was run: it is told in the same measure.
 */
static double
sort_by_core(const WsSample *s, const WsFoundSort *found, int kilobytes)
{
	bool		datum = s->desc->natts == 1 && TupleDescAttr(s->desc, 0)->attbyval;
	TupleTableSlot *slot = MakeSingleTupleTableSlot(s->desc, &TTSOpsMinimalTuple);
	WsTimer    *timer = ws_timer_create();
	Tuplesortstate *sort;
	bool		more = true;
	instr_time	begin;
	instr_time	end;

	INSTR_TIME_SET_CURRENT(begin);
	if (datum)
		sort = tuplesort_begin_datum(TupleDescAttr(s->desc, 0)->atttypid, found->sortops[0],
									 found->collations[0], found->nulls_first[0], kilobytes, NULL,
									 TUPLESORT_NONE);
	else
		sort = tuplesort_begin_heap(s->desc, found->ncols, found->attnos, found->sortops, found->collations,
									found->nulls_first, kilobytes, NULL, TUPLESORT_NONE);
	for (int i = 0; i < s->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		ExecStoreMinimalTuple(s->rows[i], slot, false);
		if (datum)
		{
			slot_getsomeattrs(slot, 1);
			tuplesort_putdatum(sort, slot->tts_values[0], slot->tts_isnull[0]);
		}
		else
			tuplesort_puttupleslot(sort, slot);
	}
	tuplesort_performsort(sort);
	if (datum)
		(void) tuplesort_skiptuples(sort, s->n, true);
	else
		while (more)
		{
			CHECK_FOR_INTERRUPTS();
			InstrStartNode(timer);
			more = tuplesort_gettupleslot(sort, true, false, slot, NULL);
			InstrStopNode(timer, more ? 1 : 0);
		}
	ExecDropSingleTupleTableSlot(slot);
	tuplesort_end(sort);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, begin);
	return INSTR_TIME_GET_DOUBLE(end);
}

/*
 * How many times as long as forecast core takes for such rows: in memory, and with files.  False if too few
 * rows are there to tell.  `facts` are those of all rows.
 */
bool
ws_sample_core(const WsSample *s, const WsFoundSort *found, const WsSortFacts *facts, double *memory,
			   double *files)
{
	const WsMeasured *m = &s->measured;
	WsSortFacts sample = *facts;
	int			few = (int) Max(m->core / EXTERNAL_RUNS / 1024, 64);
	WsSortForecast f;

	if (s->n < SAMPLE_LEAST)
		return false;
	sample.rows = s->n;
	ws_set_core_row(&sample, s->desc, m->minimal / s->n, m->core / s->n);
	f = ws_forecast_core(&sample, (Size) AMPLE * 1024);
	*memory = sort_by_core(s, found, AMPLE) / f.seconds;
	f = ws_forecast_core(&sample, (Size) few * 1024);
	*files = sort_by_core(s, found, few) / f.seconds;
	return true;
}
