/*-------------------------------------------------------------------------
 * below.h - what a sort does for the nodes below it.
 *
 * Not sorting: see docs/prefetch_joins.md.
 *-------------------------------------------------------------------------
 */
#ifndef WS_BELOW_H
#define WS_BELOW_H

#include "entry.h"

#include "nodes/execnodes.h"

/* ---- pages.c: scans whose pages can be looked at ---- */
extern bool ws_scans_pages(const PlanState *node);
extern struct HeapScanDescData *ws_scan_page(const ScanState *scan);

/* ---- prefetch.c: hash joins whose look-ups are prefetched ---- */
typedef struct WsPrefetch WsPrefetch;

extern WsPrefetch *ws_prefetch_create(PlanState *outer);
extern void ws_prefetch_row(WsPrefetch *prefetch);
extern uint64 ws_prefetch_count(const WsPrefetch *prefetch);

#endif							/* WS_BELOW_H */
