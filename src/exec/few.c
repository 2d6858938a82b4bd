/*-------------------------------------------------------------------------
 * few.c - sorts of so few rows that to prepare a large one would take longer than to sort them.
 *
 * The planner may expect thousands of rows where ten come: of an expression without statistics, of a value
 * that is rarer than the average.  A statement of a tenth of a millisecond then took six times as long, for
 * memory that is mapped and unmapped, a look at what the system has left, windows of the table
 * (docs/decisions/56-few-rows.md).  So the first rows are kept as they come.  If the input ends with them,
 * PostgreSQL's own sort orders them in memory, and rows that stayed in their table are fetched one by one.
 * Otherwise the large sort gets them first.
 *
 * Memory: FEW_BYTES and a row, twice while they are sorted; of the node, and reset for each sort.
 * Errors: those of comparing and detoasting.
 *-------------------------------------------------------------------------
 */
#include "exec/exec.h"

#include "access/tableam.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "store/heap.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/tuplesort.h"

/* So many rows, or bytes of them, are few. */
#define FEW_ROWS		512
#define FEW_BYTES		((Size) 256 * 1024)

/* Of work_mem, what the kept rows have: PostgreSQL's sort is to have its copies in memory. */
#define MEMORY_SHARE	4

struct WsFew
{
	MemoryContext context;		/* of what follows, but for the slots */
	TupleTableSlot *slot;		/* of the input's rows */
	TupleTableSlot *found;		/* of the table's, or NULL */
	int			most;
	MinimalTuple *rows;			/* as they came */
	int			room;
	int			nrows;
	Size		bytes;
	Tuplesortstate *sort;		/* NULL: they are not all */
	int64		position;		/* rows handed out */
	int64		marked;
};

/*
 * Prepares for the few rows of a node's sorts of `input`, whose rows stay in `rel`, or NULL, in
 * CurrentMemoryContext, which is the query's.  NULL, if they are to be sorted as many are.
 */
WsFew *
ws_few_create(PlanState *input, Relation rel)
{
	EState	   *estate = input->state;
	int			most = ws_debug_few >= 0 ? ws_debug_few : ws_debug_force ? 0 : FEW_ROWS;
	WsFew	   *few;

	if (most == 0)
		return NULL;
	few = palloc0(sizeof(WsFew));
	few->most = most;
	few->context = AllocSetContextCreate(CurrentMemoryContext, "WiscSort few rows", ALLOCSET_DEFAULT_SIZES);
	few->slot = ExecInitExtraTupleSlot(estate, ExecGetResultType(input), &TTSOpsMinimalTuple);
	if (rel != NULL)
		few->found = ExecInitExtraTupleSlot(estate, RelationGetDescr(rel), table_slot_callbacks(rel));
	return few;
}

static void
keep(WsFew *few, TupleTableSlot *slot)
{
	if (few->nrows == few->room)
	{
		few->room = few->room == 0 ? 16 : few->room * 2;
		few->rows = few->rows == NULL ? palloc(few->room * sizeof(MinimalTuple)) :
			repalloc(few->rows, few->room * sizeof(MinimalTuple));
	}
	few->rows[few->nrows] = ExecCopySlotMinimalTuple(slot);
	few->bytes += few->rows[few->nrows++]->t_len;
}

/* Reads the first rows of `input`, and keeps them, watched by `track`.  True if there are no more. */
bool
ws_few_read(WsFew *few, PlanState *input, WsTrack *track)
{
	WsFigures  *figures = ws_track_watch(track)->figures;
	Size		most = Min(FEW_BYTES, (Size) work_mem * 1024 / MEMORY_SHARE);
	MemoryContext old = CurrentMemoryContext;

	while (few->nrows < few->most && few->bytes < most)
	{
		TupleTableSlot *slot = ExecProcNode(input);

		CHECK_FOR_INTERRUPTS();
		if (TupIsNull(slot))
			return true;
		MemoryContextSwitchTo(few->context);
		keep(few, slot);
		MemoryContextSwitchTo(old);
		if (few->nrows == 1)
			ws_track_first_row(track);
		figures->rows_in = few->nrows;
		figures->memory = (int64) few->bytes;
	}
	return false;
}

/* How many rows are kept. */
int
ws_few_rows(const WsFew *few)
{
	return few->nrows;
}

/* Bytes of memory that they have, about. */
int64
ws_few_bytes(const WsFew *few)
{
	return (int64) MemoryContextMemAllocated(few->context, true);
}

/* One of the kept rows, valid until the next call. */
TupleTableSlot *
ws_few_row(WsFew *few, int number)
{
	return ExecStoreMinimalTuple(few->rows[number], few->slot, false);
}

/* Sorts them. */
void
ws_few_sort(WsFew *few, const WsRequest *r)
{
	MemoryContext old = MemoryContextSwitchTo(few->context);

	few->sort = tuplesort_begin_heap(few->slot->tts_tupleDescriptor, r->ncols, r->attnos, r->sortops,
									 r->collations, r->nulls_first, work_mem, NULL,
									 r->random_access ? TUPLESORT_RANDOMACCESS : TUPLESORT_NONE);
	for (int i = 0; i < few->nrows; i++)
		tuplesort_puttupleslot(few->sort, ws_few_row(few, i));
	tuplesort_performsort(few->sort);
	few->position = few->marked = 0;
	MemoryContextSwitchTo(old);
}

/* Have they been sorted? */
bool
ws_few_sorted(const WsFew *few)
{
	return few != NULL && few->sort != NULL;
}

/*
 * Has `slot` be the row of the table that the input's row in few->slot names, as `snapshot` sees it.  It is
 * copied: a cursor may be open for long, and a page that is pinned keeps VACUUM waiting.
 */
static void
fetch(WsFew *few, TupleTableSlot *slot, Relation rel, Snapshot snapshot)
{
	bool		isnull;
	ItemPointer tid = (ItemPointer) DatumGetPointer(slot_getattr(few->slot, 1, &isnull));

	if (isnull || !ItemPointerIsValid(tid))
		elog(ERROR, "a row of table \"%s\" has come without its place", RelationGetRelationName(rel));
	if (!table_tuple_fetch_row_version(rel, tid, snapshot, few->found))
		ws_heap_bad_pointer(rel, ws_tid_pointer(tid));
	ExecCopySlot(slot, few->found);
	ExecClearTuple(few->found);
}

/* Puts the next row, or the one before, into `slot`, as ws_sort_get; `rel` has it, or NULL. */
bool
ws_few_get(WsFew *few, bool forward, TupleTableSlot *slot, Relation rel, Snapshot snapshot)
{
	if (!tuplesort_gettupleslot(few->sort, forward, false, few->slot, NULL))
	{
		if (forward)
			few->position = few->nrows;
		else
			few->position = 0;
		return false;
	}
	few->position += forward ? 1 : -1;
	if (rel != NULL)
		fetch(few, slot, rel, snapshot);
	else
		ExecCopySlot(slot, few->slot);
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
	tuplesort_markpos(few->sort);
	few->marked = few->position;
}

void
ws_few_restore(WsFew *few)
{
	tuplesort_restorepos(few->sort);
	few->position = few->marked;
}

void
ws_few_rewind(WsFew *few)
{
	tuplesort_rescan(few->sort);
	few->position = 0;
}

/* Forgets the rows. */
void
ws_few_end(WsFew *few)
{
	ExecClearTuple(few->slot);
	if (few->found != NULL)
		ExecClearTuple(few->found);
	if (few->sort != NULL)
		tuplesort_end(few->sort);
	MemoryContextReset(few->context);
	few->sort = NULL;
	few->rows = NULL;
	few->room = few->nrows = 0;
	few->bytes = 0;
}
