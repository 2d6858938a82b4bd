/*-------------------------------------------------------------------------
 * pages.c - sequential scans whose current page can be looked at.
 *-------------------------------------------------------------------------
 */
#include "exec/below/below.h"

#include "access/heapam.h"
#include "executor/executor.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* Is this a scan of a heap whose pages can be looked at? */
bool
ws_scans_pages(const PlanState *node)
{
	const ScanState *scan = (const ScanState *) node;

	return IsA(node, SeqScanState) &&
		node->state->es_epq_active == NULL &&
		scan->ss_currentRelation->rd_tableam == GetHeapamTableAmRoutine() &&
		TTS_IS_BUFFERTUPLE(scan->ss_ScanTupleSlot);
}

/* The descriptor of a scan by pages, if its current page has rows to be taken. */
HeapScanDesc
ws_scan_page(const ScanState *scan)
{
	HeapScanDesc page = (HeapScanDesc) scan->ss_currentScanDesc;

	if (page == NULL || (page->rs_base.rs_flags & SO_ALLOW_PAGEMODE) == 0 ||
		page->rs_base.rs_nkeys > 0 || !BufferIsValid(page->rs_cbuf))
		return NULL;
	return page;
}
