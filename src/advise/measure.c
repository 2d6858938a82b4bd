/*-------------------------------------------------------------------------
 * measure.c - running a query, and measuring the rows of its sorts.
 *
 * A function is put between a node and whoever asks it for rows; it adds up what each row takes in a spool
 * (store/spool.c) and in core's sort.  For that time no sort takes rows from its scan past the node
 * (exec/input.c).
 *
 * Read only: the query is run in a subtransaction that may not write, and that is rolled back (advise.c).
 *
 * Memory: some bytes a measured node, in CurrentMemoryContext.
 *-------------------------------------------------------------------------
 */
#include "advise/advise.h"

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "exec/exec.h"
#include "executor/executor.h"
#include "store/row.h"
#include "utils/tuplesort.h"
#include "utils/typcache.h"

/* Bytes of a row in one of core's tapes beside what a minimal tuple has behind its length. */
#define TAPE_LENGTH			sizeof(unsigned int)

/* Those of the query that runs now, the last one that was asked for first. */
static List *measured = NIL;

static WsMeasured *
find(const PlanState *node)
{
	ListCell   *lc;

	foreach(lc, measured)
		if (((WsMeasured *) lfirst(lc))->node == node)
			return lfirst(lc);
	return NULL;
}

/* Bytes of a row as a minimal tuple. */
Size
ws_minimal_bytes(TupleTableSlot *slot)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;
	bool		hasnull = false;

	if ((TTS_IS_BUFFERTUPLE(slot) || TTS_IS_HEAPTUPLE(slot)) && ((HeapTupleTableSlot *) slot)->tuple != NULL)
		return ((HeapTupleTableSlot *) slot)->tuple->t_len - MINIMAL_TUPLE_OFFSET;
	if (TTS_IS_MINIMALTUPLE(slot) && ((MinimalTupleTableSlot *) slot)->mintuple != NULL)
		return ((MinimalTupleTableSlot *) slot)->mintuple->t_len;
	slot_getallattrs(slot);
	for (int i = 0; i < desc->natts && !hasnull; i++)
		hasnull = slot->tts_isnull[i];
	return MAXALIGN(SizeofMinimalTupleHeader + (hasnull ? BITMAPLEN(desc->natts) : 0)) +
		heap_compute_data_size(desc, slot->tts_values, slot->tts_isnull);
}

/* Bytes of the columns of a row that core's rows have a second time. */
static Size
again_bytes(const WsMeasured *m, TupleTableSlot *slot)
{
	Size		bytes = 0;
	int			attno = -1;

	while ((attno = bms_next_member(m->twice, attno)) >= 0)
	{
		bool		isnull;
		int			length = TupleDescAttr(slot->tts_tupleDescriptor, attno - 1)->attlen;
		Datum		value = slot_getattr(slot, attno, &isnull);

		if (!isnull)
			bytes = att_addlength_datum(bytes, length, value);
	}
	return bytes;
}

/* Adds a row that is so long as a minimal tuple, with `again` bytes more as core has it. */
void
ws_measure_row(WsMeasured *m, Size minimal, Size again)
{
	Size		stored = minimal - MINIMAL_TUPLE_DATA_OFFSET;

	m->rows++;
	m->minimal += minimal;
	m->again += again;
	m->core += MAXALIGN(minimal + again) + WS_CORE_CHUNK;
	m->spool += TYPEALIGN(m->unit, stored + (stored >= LENGTH_ESCAPE ? sizeof(uint64) : 0));
}

/* Does core sort such rows as datums?  `again`: it has a column of them twice. */
bool
ws_core_sorts_datums(TupleDesc desc, bool again)
{
	return desc->natts == 1 && !again && (WS_CORE_SORTS_ANY_DATUM || TupleDescAttr(desc, 0)->attbyval);
}

/*
 * Does what datums take beside the array count as memory of core's sort?  In 15 and 17.12, and not in 18.6: a
 * sort of a few tells.
 */
static bool
core_counts_datums(void)
{
	enum {DATUMS = 100, BYTES = 1024};
	static int	kilobytes = -1;

	if (kilobytes < 0)
	{
		Oid			less = lookup_type_cache(TEXTOID, TYPECACHE_LT_OPR)->lt_opr;
		Tuplesortstate *sort = tuplesort_begin_datum(TEXTOID, less, C_COLLATION_OID, false, 1024, NULL,
													 TUPLESORT_NONE);
		text	   *value = palloc0(BYTES);
		TuplesortInstrumentation stats;

		SET_VARSIZE(value, BYTES);
		for (int i = 0; i < DATUMS; i++)
			tuplesort_putdatum(sort, PointerGetDatum(value), false);
		tuplesort_performsort(sort);
		tuplesort_get_stats(sort, &stats);
		tuplesort_end(sort);
		pfree(value);
		kilobytes = (int) stats.spaceUsed;
	}
	return kilobytes >= DATUMS * BYTES / 1024;
}

/*
 * Sets what core takes for a row, that is `minimal` bytes long as a minimal tuple on average, `again` of them
 * for columns that core has twice, and takes `core` bytes in memory.
 */
void
ws_set_core_row(WsSortFacts *facts, TupleDesc desc, double minimal, double again, double core)
{
	Size		header = MAXALIGN(SizeofMinimalTupleHeader);

	facts->core_row = core;
	facts->core_tape = minimal - MINIMAL_TUPLE_DATA_OFFSET;
	if (ws_core_sorts_datums(desc, again > 0))
	{
		bool		by_value = TupleDescAttr(desc, 0)->attbyval;

		facts->core_row = by_value || !core_counts_datums() ? 0 : core - header;
		facts->core_tape = by_value ? sizeof(Datum) : minimal - header;
	}
	facts->core_tape += TAPE_LENGTH;
	if (facts->request.random_access)
		facts->core_tape += TAPE_LENGTH;
}

static TupleTableSlot *
measured_row(PlanState *node)
{
	WsMeasured *m = find(node);
	TupleTableSlot *slot = m->real(node);

	if (m->loops != node->instrument->nloops)
	{
		m->most = Max(m->most, m->rows - m->begun);
		m->begun = m->rows;
		m->loops = node->instrument->nloops;
	}
	if (!TupIsNull(slot))
	{
		ws_measure_row(m, ws_minimal_bytes(slot), again_bytes(m, slot));
		if (m->take != NULL)
			m->take(m, slot);
	}
	return slot;
}

/* To how many bytes a spool aligns rows. */
int
ws_spool_unit(TupleDesc desc)
{
	for (int i = 0; i < desc->natts; i++)
		if (TupleDescAttr(desc, i)->attalign == TYPALIGN_DOUBLE)
			return 8;
	return 4;
}

/* Before the first of ws_measure of a query.  Queries that are measured do not nest. */
void
ws_measure_begin(void)
{
	if (ws_input_by_rows)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a query that is being measured cannot have another one measured")));
	measured = NIL;
}

/* Has the rows measured that a node returns from now on, until the query ends. */
WsMeasured *
ws_measure(PlanState *node)
{
	WsMeasured *m = find(node);

	if (m != NULL)
		return m;
	m = palloc0(sizeof(WsMeasured));
	m->node = node;
	m->unit = ws_spool_unit(ExecGetResultType(node));
	m->real = node->ExecProcNodeReal;
	ExecSetExecProcNode(node, measured_row);
	measured = lcons(m, measured);
	return m;
}

/* Runs a query to its end, with what is measured; afterwards nothing is. */
void
ws_run_measured(QueryDesc *desc)
{
	List	   *nodes = measured;
	int64		before = pgBufferUsage.temp_blks_written;
	ListCell   *lc;

	ws_input_by_rows = true;
	PG_TRY();
	{
		ws_executor_run(desc);
		ExecutorFinish(desc);
	}
	PG_FINALLY();
	{
		ws_input_by_rows = false;
		measured = NIL;
	}
	PG_END_TRY();
	/* they may be asked for rows once more, by a trial */
	foreach(lc, nodes)
	{
		WsMeasured *m = lfirst(lc);

		ExecSetExecProcNode(m->node, m->real);
		m->written = (double) (pgBufferUsage.temp_blks_written - before) * BLCKSZ;
	}
}
