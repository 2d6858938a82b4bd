/*-------------------------------------------------------------------------
 * budget.h - how a sort's memory is divided.
 *-------------------------------------------------------------------------
 */
#ifndef WS_BUDGET_H
#define WS_BUDGET_H

#include "store/request.h"

/* All in bytes. */
typedef struct WsBudget
{
	Size		total;			/* work_mem */
	Size		shared;			/* rows and entries, as long as there are no temporary files */
	Size		alone;			/* then: the spool's buffer, which the backend writes */
	Size		helped;			/* or its buffers, which a helper writes */
	Size		reading;		/* what the final merge is to leave for handing rows out */
	bool		queue;			/* enough for a queue of keys that a helper makes */
} WsBudget;

/* What is left for entries, ties and merging beside the spool's buffers, and the block of a run. */
typedef struct WsEntryBudget
{
	Size		entries;
	Size		block;
} WsEntryBudget;

extern WsBudget ws_budget(const WsRequest *request);
extern WsEntryBudget ws_budget_entries(const WsBudget *budget, Size buffers);

#endif							/* WS_BUDGET_H */
