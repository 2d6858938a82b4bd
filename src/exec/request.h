/*-------------------------------------------------------------------------
 * request.h - a sort's request on its way from the planner to the executor.
 *-------------------------------------------------------------------------
 */
#ifndef WS_EXEC_REQUEST_H
#define WS_EXEC_REQUEST_H

#include "store/request.h"

#include "nodes/extensible.h"
#include "nodes/pg_list.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"

/* A column whose NOT NULL constraint says that a sort column has no nulls; or none. */
typedef struct WsConstraint
{
	Oid			table;			/* InvalidOid: there is none */
	AttrNumber	column;
} WsConstraint;

/* Of the cache, what one sort's files may take: a sort is not alone, and the table goes through it, too. */
#define WS_CACHE_SHARE		0.5

/* The node that is made for a request (node.c). */
extern const CustomScanMethods ws_scan_methods;

extern WsRequest *ws_request_create(int ncols);
extern List *ws_request_write(const WsRequest *request, const WsConstraint *constraints);
extern void ws_request_note_query(List *private, int64 query);
extern WsRequest *ws_request_read(List *private, Snapshot snapshot);
extern bool ws_request_keys_fit(const WsRequest *request);
extern bool ws_constraints_hold(TupleDesc desc, Oid table, Snapshot snapshot);
extern void ws_request_note_columns(WsRequest *request, const CustomScan *plan, TupleDesc desc);
extern void ws_request_resolve(WsRequest *request, PlanState *input, Relation rel);
extern bool ws_needs_no_cache(Oid tablespace);
extern double ws_rows_analysed(Oid relid);
extern double ws_spool_bytes(double rows, double width);
extern int64 ws_spool_allowance(int sharers, int64 still, const char **bound);

#endif							/* WS_EXEC_REQUEST_H */
