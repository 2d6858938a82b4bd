/*-------------------------------------------------------------------------
 * few.c - sorts of few rows, in memory, and by comparison functions.
 *
 * The planner may expect thousands of rows where ten come: of an expression without statistics, of a
 * value that is rarer than the average.  A statement of a tenth of a millisecond then took six times as
 * long, for memory that is mapped and unmapped, a look at what the system has left, windows of the table
 * (docs/decisions/56-few-rows.md).  So the first rows are kept as they come.  If the input ends with
 * them, they are sorted so.  Otherwise the large sort gets them first.  A sort that is done again may be
 * done often: there more rows are few.
 *
 * Of a LIMIT, the number may only be known now, and be small: then those rows are few that it asks for, out
 * of all.  If they are wider than was planned, so that they do not fit work_mem, the large sort gets them.
 * If it leaves rows in their table, it also gets those that come in the opposite order: it writes 16 bytes
 * for each, and core's heap takes two or three times as long.
 *
 * Rows that a large sort leaves in their table are copied out of it here, when the scan has them: the input's
 * own rows are only their places and keys.
 *
 * Memory: AGAIN_BYTES and a row, or work_mem, which the large sort has once more while it gets such rows; of
 * the node, and reset for each sort.  Errors: those of top.c.
 *-------------------------------------------------------------------------
 */
#include "exec/exec.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/rel.h"

/* So many rows, or bytes of them, are few. */
#define FEW_ROWS		512
#define FEW_BYTES		((Size) 256 * 1024)

/* The same of a sort that is done again, or whose rows an index finds. */
#define AGAIN_ROWS		4096
#define AGAIN_BYTES		((Size) 1024 * 1024)

/* After so many rows it is plain that they come in the opposite order. */
#define REVERSED_ROWS	16384

/* Of work_mem, what the kept rows have. */
#define MEMORY_SHARE	4

struct WsFew
{
	const WsRequest *request;
	TupleTableSlot *slot;		/* of the input's rows: made of one that is kept */
	TupleTableSlot **row;		/* where a row is that is to be kept */
	TupleDesc	desc;			/* of those */
	bool		in_table;		/* they are the table's */
	WsTop	   *top;
	int			most;			/* rows and bytes that are few */
	Size		most_bytes;
	bool		sorted;
	int64		position;		/* rows handed out */
	int64		marked;
	bool		at_end;			/* behind the last one */
};

/*
 * Are rows found by an index, one by one?  That takes longer than a copy of them, and how many there are is
 * known least: of values that are rare, or have no statistics.
 */
static bool
reads_by_index(const PlanState *input)
{
	switch (nodeTag(input))
	{
		case T_IndexScanState:
		case T_IndexOnlyScanState:
		case T_BitmapHeapScanState:
			return true;
		case T_SubqueryScanState:
			return reads_by_index(((const SubqueryScanState *) input)->subplan);
		case T_NestLoopState:
			return reads_by_index(outerPlanState(input));
		default:
			return false;
	}
}

/* More rows are few, where a copy of them is a small part of what they take. */
static void
allow_more(WsFew *few)
{
	few->most = ws_debug_few >= 0 ? ws_debug_few : AGAIN_ROWS;
	few->most_bytes = AGAIN_BYTES;
}

/*
 * Prepares for the few rows of a node's sorts of `input`, as `r` asks for, whose rows stay in `rel`, or NULL,
 * in CurrentMemoryContext, which is the query's.  NULL, if they are to be sorted as many are.
 */
WsFew *
ws_few_create(PlanState *input, Relation rel, const WsRequest *r)
{
	int			most = ws_debug_few >= 0 ? ws_debug_few : ws_debug_force ? 0 : FEW_ROWS;
	WsFew	   *few;

	if (most == 0)
		return NULL;
	few = palloc0(sizeof(WsFew));
	few->request = r;
	few->most = most;
	few->most_bytes = FEW_BYTES;
	if (most == FEW_ROWS && reads_by_index(input))
		allow_more(few);
	few->in_table = rel != NULL;
	few->desc = rel != NULL ? RelationGetDescr(rel) : ExecGetResultType(input);
	few->slot = ExecInitExtraTupleSlot(input->state, ExecGetResultType(input),
									   rel != NULL ? &TTSOpsVirtual : &TTSOpsHeapTuple);
	/* the projection of the table's scan, which made the input's row, has it */
	few->row = rel != NULL ? &input->ps_ExprContext->ecxt_scantuple : NULL;
	/* two keys may be one column: what sorts of it takes the first that is the same */
	memset(few->slot->tts_isnull, true, few->slot->tts_tupleDescriptor->natts);
	few->top = ws_top_create(few->desc, rel != NULL ? r->columns : r->attnos, r);
	return few;
}

/* Keeps the input's row in `slot`, or the table's that it was made of. */
static inline void
keep(WsFew *few, TupleTableSlot *slot)
{
	ws_top_put(few->top, few->in_table ? *few->row : slot);
}

/* Reads the first rows of `input`, and keeps them, watched by `track`.  True if there are no more. */
bool
ws_few_read(WsFew *few, PlanState *input, WsTrack *track)
{
	WsFigures  *figures = ws_track_watch(track)->figures;
	Size		most = Min(few->most_bytes, (Size) work_mem * 1024 / MEMORY_SHARE);

	while (ws_top_rows(few->top) < few->most && ws_top_bytes(few->top) < most)
	{
		TupleTableSlot *slot = ExecProcNode(input);

		CHECK_FOR_INTERRUPTS();
		if (TupIsNull(slot))
			return true;
		keep(few, slot);
		if (ws_top_rows(few->top) == 1)
			ws_track_first_row(track);
		figures->rows_in = ws_top_rows(few->top);
		figures->memory = (int64) ws_top_bytes(few->top);
	}
	return false;
}

/* From now on only those rows are kept that the request's LIMIT asks for, and ws_few_put gets the others. */
void
ws_few_bound(WsFew *few)
{
	ws_top_bound(few->top, (int64) few->request->wanted);
}

/* The memory context that is reset with the rows. */
MemoryContext
ws_few_context(const WsFew *few)
{
	return ws_top_context(few->top);
}

/* Takes another row of the input.  False if the large sort is to have the kept ones, and all others. */
bool
ws_few_put(WsFew *few, TupleTableSlot *slot)
{
	keep(few, slot);
	if (unlikely(few->in_table && ws_top_is_reversed(few->top, REVERSED_ROWS)) &&
		temp_file_limit < 0 && ws_max_temp < 0)
		return false;
	return ws_top_bytes(few->top) <= (Size) work_mem * 1024;
}

/* How many rows are kept. */
int64
ws_few_rows(const WsFew *few)
{
	return ws_top_rows(few->top);
}

/* Bytes of memory that they have, about. */
int64
ws_few_bytes(const WsFew *few)
{
	return (int64) ws_top_bytes(few->top);
}

/* The same, with what was fetched to sort them. */
int64
ws_few_peak(const WsFew *few)
{
	return (int64) ws_top_peak(few->top);
}

/* One of the kept rows as the input had it, valid until the next call. */
TupleTableSlot *
ws_few_row(WsFew *few, int64 number)
{
	HeapTuple	row = ws_top_row(few->top, number);
	const WsRequest *r = few->request;

	if (!few->in_table)
		return ExecStoreHeapTuple(row, few->slot, false);
	ExecClearTuple(few->slot);
	few->slot->tts_values[0] = PointerGetDatum(&row->t_self);
	few->slot->tts_isnull[0] = false;
	for (int i = 0; i < r->ncols; i++)
		few->slot->tts_values[r->attnos[i] - 1] = heap_getattr(row, r->columns[i], few->desc,
															   &few->slot->tts_isnull[r->attnos[i] - 1]);
	return ExecStoreVirtualTuple(few->slot);
}

/* Sorts the rows that are kept. */
void
ws_few_sort(WsFew *few)
{
	ws_top_sort(few->top);
	few->sorted = true;
	few->position = few->marked = 0;
	few->at_end = false;
}

/* Have they been sorted? */
bool
ws_few_sorted(const WsFew *few)
{
	return few != NULL && few->sorted;
}

/* Are there perhaps more rows than a LIMIT has asked for? */
bool
ws_few_bounded(const WsFew *few)
{
	return ws_top_is_bounded(few->top);
}

/*
 * Puts the next row, or the one before, into `slot`, as ws_sort_get.  Behind the last one, the one before is
 * the last.
 */
bool
ws_few_get(WsFew *few, bool forward, TupleTableSlot *slot)
{
	int64		rows = ws_top_rows(few->top);

	if (forward)
	{
		few->at_end = few->position == rows;
		if (few->at_end)
			return false;
		few->position++;
	}
	else if (few->at_end)
		few->at_end = false;
	else if (few->position > 0)
		few->position--;
	if (few->position == 0)
		return false;
	ExecForceStoreHeapTuple(ws_top_row(few->top, few->position - 1), slot, false);
	return true;
}

/* How many rows have been handed out. */
int64
ws_few_position(const WsFew *few)
{
	return few->position;
}

void
ws_few_mark(WsFew *few)
{
	few->marked = few->position;
}

void
ws_few_restore(WsFew *few)
{
	few->position = few->marked;
	few->at_end = false;
}

void
ws_few_rewind(WsFew *few)
{
	few->position = 0;
	few->at_end = false;
}

/* Forgets the rows. */
void
ws_few_end(WsFew *few)
{
	ExecClearTuple(few->slot);
	ws_top_end(few->top);
	few->sorted = false;
	allow_more(few);
}
