/*-------------------------------------------------------------------------
 * tablerows.c - a row of a table, as far as a sort needs it.
 *
 * For sorts that were to leave their rows in the table, and copy them after all (again.c).  The row that is
 * copied has the columns that are needed, and null in the place of the others, so that the table's columns
 * keep their numbers.  Columns that are younger than the row have their defaults.
 *
 * Memory: two slots.  Errors: those of reading blocks, and of a row that is gone.
 *-------------------------------------------------------------------------
 */
#include "sort/tablerows.h"

#include "access/tableam.h"
#include "store/heap.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/*
 * Prepares for rows of `rel`, which stays open and locked, of which the columns in `needed` are needed.  With
 * `by_tid` they are fetched here, otherwise somebody puts them into rows->whole.  Allocates in
 * CurrentMemoryContext.
 */
WsTableRows *
ws_table_rows_create(Relation rel, const bool *needed, bool by_tid)
{
	WsTableRows *rows = palloc0(sizeof(WsTableRows));
	bool		all;

	rows->rel = rel;
	rows->desc = CreateTupleDescCopyConstr(RelationGetDescr(rel));
	/* a row that is older than a column has not even the column's default */
	all = rows->desc->constr == NULL || rows->desc->constr->missing == NULL;
	rows->needed = needed;
	for (int i = 0; i < rows->desc->natts; i++)
	{
		all = all && needed[i];
		if (needed[i])
			rows->last = i + 1;
	}
	rows->whole = MakeSingleTupleTableSlot(rows->desc, by_tid ? &TTSOpsBufferHeapTuple : &TTSOpsHeapTuple);
	rows->row = all ? rows->whole : MakeSingleTupleTableSlot(rows->desc, &TTSOpsVirtual);
	return rows;
}

/* The row of rows->whole, as far as it is needed; valid as long as that. */
TupleTableSlot *
ws_table_rows_row(WsTableRows *rows)
{
	TupleTableSlot *whole = rows->whole;
	TupleTableSlot *row = rows->row;

	if (row == whole)
		return row;
	slot_getsomeattrs(whole, rows->last);
	ExecClearTuple(row);
	memset(row->tts_isnull, true, rows->desc->natts * sizeof(bool));
	for (int i = 0; i < rows->last; i++)
		if (rows->needed[i])
		{
			row->tts_values[i] = whole->tts_values[i];
			row->tts_isnull[i] = whole->tts_isnull[i];
		}
	return ExecStoreVirtualTuple(row);
}

/*
 * The row whose TID is the first column of `slot`, and which the query's snapshot has seen; valid until the
 * next call, and its block stays pinned as long.
 */
TupleTableSlot *
ws_table_rows_fetch(WsTableRows *rows, TupleTableSlot *slot)
{
	ItemPointer tid;

	slot_getsomeattrs(slot, 1);
	tid = (ItemPointer) DatumGetPointer(slot->tts_values[0]);
	if (!table_tuple_fetch_row_version(rows->rel, tid, SnapshotAny, rows->whole))
		ws_heap_bad_pointer(rows->rel, ws_tid_pointer(tid));
	return ws_table_rows_row(rows);
}

/* Lets the row go. */
void
ws_table_rows_clear(WsTableRows *rows)
{
	ExecClearTuple(rows->row);
	ExecClearTuple(rows->whole);
}
