/*-------------------------------------------------------------------------
 * tableorder.c - rows of a table, in the order in which they lie there.
 *
 * A sort whose rows stay in their table has pointers to them, in the order of the keys.  When it begins
 * again (again.c), those rows are read once, block by block.  That is one more sort of rows that stay in
 * their table, by their TIDs: exact keys of 6 bytes, so that neither ties nor a spool are to be
 * thought of, and whose windows read the table from front to back.
 *
 * Memory: as the caller says; 16 bytes a row, of memory or of temporary files.  On error all of it goes
 * with the sorter.
 *-------------------------------------------------------------------------
 */
#include "sort/tablerows.h"

#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "store/heap.h"

/* The sort column: the TID, as the first column of the input of any sort of rows that stay in their table. */
static AttrNumber place_attno = 1;
static Oid	place_sortop = TIDLessOperator;
static Oid	place_collation = InvalidOid;
static bool place_nulls_first = false;
static bool place_notnull = true;

/*
 * Prepares to take pointers to rows of `rel`, which stays open and locked, about request->rows of them, with
 * `memory` bytes.  Rows have the columns of request->needed.  Allocates in CurrentMemoryContext.
 */
WsTableOrder *
ws_table_order_create(const WsRequest *request, Relation rel, Size memory)
{
	WsTableOrder *order = palloc0(sizeof(WsTableOrder));
	WsRequest  *r = &order->request;
	TupleDesc	places = CreateTemplateTupleDesc(1);

	TupleDescInitEntry(places, 1, "ctid", TIDOID, -1, 0);
	ws_tuple_desc_finalize(places);
	*r = *request;
	r->ncols = 1;
	r->attnos = &place_attno;
	r->sortops = &place_sortop;
	r->collations = &place_collation;
	r->nulls_first = &place_nulls_first;
	r->notnull = &place_notnull;
	r->ties = WS_TIES_NONE;
	r->columns = NULL;
	r->memory = memory;
	r->random_access = r->again = false;
	/* a LIMIT is for rows in the order of the query */
	r->wanted = 0;
	/* its blocks are not in memory */
	r->direct_always = false;
	r->direct_never = true;
	order->rows = ws_table_rows_create(rel, request->needed, false);
	order->place = MakeSingleTupleTableSlot(places, &TTSOpsVirtual);
	order->sorter = ws_sorter_create(r, places, rel);
	return order;
}

/* Takes a pointer. */
void
ws_table_order_put(WsTableOrder *order, uint64 pointer)
{
	ItemPointerData tid;

	ItemPointerSet(&tid, ws_pointer_block(pointer), ws_pointer_offset(pointer));
	ExecClearTuple(order->place);
	order->place->tts_values[0] = PointerGetDatum(&tid);
	order->place->tts_isnull[0] = false;
	ExecStoreVirtualTuple(order->place);
	ws_sorter_put(order->sorter, order->place);
	ExecClearTuple(order->place);
}

/* There are no more pointers; rows can be had. */
void
ws_table_order_perform(WsTableOrder *order)
{
	ws_sorter_perform(order->sorter);
}

/* The next row, valid until the next call, or NULL at the end.  Raises the errors of reading blocks. */
TupleTableSlot *
ws_table_order_next(WsTableOrder *order)
{
	if (!ws_sorter_get(order->sorter, true, order->rows->whole))
		return NULL;
	return ws_table_rows_row(order->rows);
}

/* Gives memory and files back, and keeps what `stats` shows of them. */
void
ws_table_order_end(WsTableOrder *order)
{
	ws_table_rows_clear(order->rows);
	ws_sorter_stats(order->sorter, &order->stats);
	ws_sorter_destroy(order->sorter);
	order->sorter = NULL;
}
