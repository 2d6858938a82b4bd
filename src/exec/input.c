/*-------------------------------------------------------------------------
 * input.c - the rows of the outer plan, those of a table a page at a time.
 *
 * A sequential scan finds out which rows of a page are visible for all of them
 * at once (heap_prepare_pagescan, before PostgreSQL 17 heapgetpage), and then
 * hands them out one by one through five functions.  Here its node is
 * executed for the first row of each page, with all that this brings: reading
 * the page, its visibility, predicate locks, interrupts.  The other rows are
 * taken from the scan's own list, into its own slot, as heap_getnextslot and
 * ExecScan would.
 *
 * Where the scan's projection takes columns and evaluates nothing, as TID and key of a row that stays in its
 * table, they are taken without the interpreter of expressions.
 *
 * Not for scans that are rechecked by EvalPlanQual, other table access methods,
 * snapshots that do not allow pages at a time, and, when EXPLAIN ANALYZE counts,
 * scans that evaluate something: that is to be their time, not the sort's.  Nor while wiscsort.advise()
 * measures the rows.
 *-------------------------------------------------------------------------
 */
#include "exec/exec.h"
#include "exec/below/below.h"
#include "guc.h"

#include "access/heapam.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

bool		ws_input_by_rows = false;

/*
 * The columns of its row, or the TID, that a scan's projection takes; NULL if it evaluates something.
 */
static AttrNumber *
columns_taken(const PlanState *outer, AttrNumber *last)
{
	List	   *tlist = outer->plan->targetlist;
	AttrNumber *columns = palloc(list_length(tlist) * sizeof(AttrNumber));
	ListCell   *lc;

	*last = 0;
	foreach(lc, tlist)
	{
		const Var  *var = (const Var *) lfirst_node(TargetEntry, lc)->expr;

		if (!IsA(var, Var) || var->varno != (int) ((const Scan *) outer->plan)->scanrelid ||
			(var->varattno <= 0 && var->varattno != SelfItemPointerAttributeNumber))
		{
			pfree(columns);
			return NULL;
		}
		columns[foreach_current_index(lc)] = var->varattno;
		*last = Max(*last, var->varattno);
	}
	return columns;
}

/*
 * Prepares reading `outer` to its end.  The input is the caller's memory; what
 * it needs besides is in CurrentMemoryContext.
 */
void
ws_input_begin(WsInput *input, PlanState *outer)
{
	memset(input, 0, sizeof(WsInput));
	input->outer = outer;
	if (!ws_input_by_rows && ws_scans_pages(outer) &&
		(outer->instrument == NULL ||
		 (outer->qual == NULL && outer->ps_ProjInfo == NULL)))
	{
		input->scan = (ScanState *) outer;
		if (outer->ps_ProjInfo != NULL)
			input->columns = columns_taken(outer, &input->last_column);
	}
	else if (ws_prefetch_joins)
		input->prefetch = ws_prefetch_create(outer);
}

/* The next row by way of the node; NULL at the end. */
static TupleTableSlot *
from_node(WsInput *input)
{
	TupleTableSlot *slot = ExecProcNode(input->outer);

	CHECK_FOR_INTERRUPTS();
	if (TupIsNull(slot))
		return NULL;
	if (input->scan != NULL)
		input->page = ws_scan_page(input->scan);
	else if (input->prefetch != NULL)
		ws_prefetch_row(input->prefetch);
	return slot;
}

/* Makes the page's row number `index` the scan's current one. */
static inline void
take_row(HeapScanDesc page, int index, TupleTableSlot *slot)
{
	HeapTuple	tuple = &page->rs_ctup;
	OffsetNumber offset = page->rs_vistuples[index];
	Page		data = BufferGetPage(page->rs_cbuf);
	ItemId		item = PageGetItemId(data, offset);

	Assert(((BufferHeapTupleTableSlot *) slot)->buffer == page->rs_cbuf);
	page->rs_cindex = index;
	tuple->t_data = (HeapTupleHeader) PageGetItem(data, item);
	tuple->t_len = ItemIdGetLength(item);
	ItemPointerSetOffsetNumber(&tuple->t_self, offset);
	pgstat_count_heap_getnext(page->rs_base.rs_rd);

	/* as ExecStoreBufferHeapTuple, of a page that the slot has pinned already */
	slot->tts_nvalid = 0;
	((HeapTupleTableSlot *) slot)->off = 0;
	slot->tts_tid = tuple->t_self;
}

/* The columns of a row, in the slot of the scan's projection. */
static inline TupleTableSlot *
take_columns(const WsInput *input, TupleTableSlot *row)
{
	TupleTableSlot *slot = input->outer->ps_ProjInfo->pi_state.resultslot;
	int			n = slot->tts_tupleDescriptor->natts;

	input->outer->ps_ExprContext->ecxt_scantuple = row;
	ExecClearTuple(slot);
	slot_getsomeattrs(row, input->last_column);
	for (int i = 0; i < n; i++)
	{
		int			column = input->columns[i];

		slot->tts_isnull[i] = column > 0 && row->tts_isnull[column - 1];
		slot->tts_values[i] = column > 0 ? row->tts_values[column - 1] : PointerGetDatum(&row->tts_tid);
	}
	return ExecStoreVirtualTuple(slot);
}

/*
 * The next row of the outer plan, or NULL at its end.  It is valid until the
 * next call.  Raises what the plan raises.
 */
TupleTableSlot *
ws_input_next(WsInput *input)
{
	HeapScanDesc page = input->page;
	PlanState  *outer = input->outer;

	while (page != NULL && page->rs_cindex + 1 < page->rs_ntuples)
	{
		TupleTableSlot *slot = input->scan->ss_ScanTupleSlot;
		ExprContext *econtext = outer->ps_ExprContext;

		if (unlikely(((HeapTupleTableSlot *) slot)->tuple != &page->rs_ctup))
			break;				/* an expression has made it a copy */

		take_row(page, page->rs_cindex + 1, slot);
		if (outer->qual != NULL || (outer->ps_ProjInfo != NULL && input->columns == NULL))
		{
			CHECK_FOR_INTERRUPTS();	/* who knows how long it takes */
			ResetExprContext(econtext);
			econtext->ecxt_scantuple = slot;
			if (outer->qual != NULL && !ExecQual(outer->qual, econtext))
				continue;
			if (outer->ps_ProjInfo != NULL && input->columns == NULL)
				slot = ExecProject(outer->ps_ProjInfo);
		}
		if (input->columns != NULL)
			slot = take_columns(input, slot);
		if (outer->instrument != NULL)
			outer->instrument->tuplecount += 1;
		return slot;
	}
	return from_node(input);
}
