/*-------------------------------------------------------------------------
 * tablerows.h - rows of a table: by their TIDs, and in the order in which they lie there.
 *-------------------------------------------------------------------------
 */
#ifndef WS_TABLEROWS_H
#define WS_TABLEROWS_H

#include "sort/sorter.h"

/* ---- tablerows.c: one row, as far as it is needed ---- */
typedef struct WsTableRows
{
	Relation	rel;
	TupleDesc	desc;			/* a copy, not counted */
	const bool *needed;			/* by column */
	int			last;			/* number of the last column that is needed */
	TupleTableSlot *whole;		/* a row as it is in the table */
	TupleTableSlot *row;		/* the same, with nothing in columns that nobody needs */
} WsTableRows;

extern WsTableRows *ws_table_rows_create(Relation rel, const bool *needed, bool by_tid);
extern TupleTableSlot *ws_table_rows_row(WsTableRows *rows);
extern TupleTableSlot *ws_table_rows_fetch(WsTableRows *rows, TupleTableSlot *slot);
extern void ws_table_rows_clear(WsTableRows *rows);

/* ---- tableorder.c: all of some rows ---- */
typedef struct WsTableOrder
{
	WsRequest	request;
	WsSorter   *sorter;			/* of TIDs; NULL: it has ended */
	TupleTableSlot *place;		/* what is put into that */
	WsTableRows *rows;
	WsSortStats stats;			/* when it has ended */
} WsTableOrder;

extern WsTableOrder *ws_table_order_create(const WsRequest *request, Relation rel, Size memory);
extern void ws_table_order_put(WsTableOrder *order, uint64 pointer);
extern void ws_table_order_perform(WsTableOrder *order);
extern TupleTableSlot *ws_table_order_next(WsTableOrder *order);
extern void ws_table_order_end(WsTableOrder *order);

#endif							/* WS_TABLEROWS_H */
