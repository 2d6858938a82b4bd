/*-------------------------------------------------------------------------
 * tableorder.c - sort/tablerows.h over the rows that a test has put into its sort.
 *
 * Their pointers are their numbers, so that the order is that of the numbers: a mark for each row.
 *-------------------------------------------------------------------------
 */
#include "../../src/sort/tablerows.h"

/* The rows: set by the test. */
static const FakeTable *ordered_table;

static bool *ordered_marks;
static Size ordered_next;
static TupleTableSlot *ordered_row;

WsTableOrder *
ws_table_order_create(const WsRequest *wanted, Relation rel, Size memory)
{
	WsTableOrder *o = palloc0(sizeof(WsTableOrder));

	o->rows = palloc0(sizeof(WsTableRows));
	ordered_marks = palloc0(ordered_table->n + 1);
	ordered_next = 0;
	ordered_row = palloc0(sizeof(TupleTableSlot));
	ordered_row->tts_values = palloc0((ordered_table->ncols + 1) * sizeof(Datum));
	ordered_row->tts_isnull = palloc0((ordered_table->ncols + 1) * sizeof(bool));
	ordered_row->tts_nvalid = (AttrNumber) (ordered_table->ncols + 1);
	return o;
}

void
ws_table_order_put(WsTableOrder *o, uint64 pointer)
{
	if (pointer >= ordered_table->n || ordered_marks[pointer])
		server_die("pointer " UINT64_FORMAT " comes twice, or is that of no row", pointer);
	ordered_marks[pointer] = true;
}

void
ws_table_order_perform(WsTableOrder *o)
{
}

TupleTableSlot *
ws_table_order_next(WsTableOrder *o)
{
	const FakeTable *t = ordered_table;
	Size		row;

	while (ordered_next < t->n && !ordered_marks[ordered_next])
		ordered_next++;
	row = ordered_next++;
	if (row >= t->n)
		return NULL;
	memcpy(ordered_row->tts_values, t->values + row * t->ncols, t->ncols * sizeof(Datum));
	memcpy(ordered_row->tts_isnull, t->isnull + row * t->ncols, t->ncols * sizeof(bool));
	ordered_row->tts_values[t->ncols] = row;
	return ordered_row;
}

void
ws_table_order_end(WsTableOrder *o)
{
}

/* ---- rows that are copied as they come: not here ---- */

WsTableRows *
ws_table_rows_create(Relation rel, const bool *needed, bool by_tid)
{
	server_die("rows are to be copied");
	return NULL;
}

TupleTableSlot *
ws_table_rows_fetch(WsTableRows *rows, TupleTableSlot *slot)
{
	return NULL;
}

void
ws_table_rows_clear(WsTableRows *rows)
{
}
