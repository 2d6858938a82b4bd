/*-------------------------------------------------------------------------
 * cost.h - what a sort costs: a pure function of its shape and a profile.
 *-------------------------------------------------------------------------
 */
#ifndef WS_COST_H
#define WS_COST_H

#include "store/request.h"

/* What the costs depend on. */
typedef struct WsShape
{
	double		rows;			/* of the input */
	double		wanted;			/* of them, the first ones that a LIMIT asks for; 0: all */
	double		memory;			/* bytes: work_mem */
	double		cache;			/* bytes of files that the page cache is expected to hold */
	double		comparisons;	/* share of a comparison sort that prefixes leave to be done */
	double		spool;			/* bytes of rows that are copied; 0 if none are */
	double		allowance;		/* if there are more, they all travel inside runs */
	WsStoreKind store;
	/* with the heap */
	double		table;			/* bytes of the table */
	double		row;			/* bytes of one of its rows, as a spool would hold it */
	double		ordered;		/* how far the rows lie in the key's order, 0 to 1 */
	bool		asked;			/* the setting asks for the heap, which is not charged for being slower */
} WsShape;

/* Constants: PostgreSQL's units of cost, and shares of them that are fitted to measurements. */
typedef struct WsProfile
{
	double		seq_page;		/* PostgreSQL's cost parameters */
	double		random_page;
	double		cpu_tuple;
	double		cpu_operator;
	double		append;			/* of cpu_tuple, a row: key and append */
	double		passed;			/* the same: a key alone */
	double		fetch;			/* the same: merge and fetch */
	double		decode;			/* the same without a row to fetch */
	double		sort;			/* of comparing, by vqsort */
	double		io;				/* of seq_page, buffered large I/O */
	double		heap;			/* of cpu_tuple, a row fetched from the table, on top */
	double		heap_in_order;	/* the same where the table is in the order of the keys */
	double		small_window;	/* the same, on top, with a window of no rows */
	double		tied;			/* of cpu_tuple, a row whose key is in a spool beside the table */
	double		large_window;	/* of the rows: no block is visited often */
	double		fresh;			/* of seq_page, a page that no earlier file has left behind */
	double		recycled;		/* of the cache: pages that one has */
	double		startup_rows;	/* set-up of a sort, in appended rows */
} WsProfile;

/* In PostgreSQL's units, beside what the input costs. */
typedef struct WsCost
{
	double		startup;
	double		run;
} WsCost;

extern const WsProfile ws_default_profile;

extern WsCost ws_cost(const WsShape *shape, const WsProfile *profile);

#endif							/* WS_COST_H */
