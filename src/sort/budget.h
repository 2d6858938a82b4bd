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
	Size		block;			/* of a run, that was asked for; 0: chosen */
} WsBudget;

/* What is left for entries, ties and merging beside the spool's buffers, and the block of a run. */
typedef struct WsEntryBudget
{
	Size		entries;
	Size		block;
} WsEntryBudget;

/* The division for rows that travel inside runs. */
typedef struct WsRowBudget
{
	Size		block;			/* of a run */
	Size		buffer;			/* blocks that are written at a time */
	int			arenas;			/* that rows are put into */
	Size		arena;			/* rows of one of them */
	Size		entries;		/* of all of them, with what settling ties needs */
	Size		merging;		/* all that there is for merges */
} WsRowBudget;

extern WsRowBudget ws_budget_rows(const WsBudget *budget, Size row, Size entry, bool helped);
extern void ws_budget_for_shorter(WsRowBudget *b);
extern WsBudget ws_budget(const WsRequest *request);
extern WsEntryBudget ws_budget_entries(const WsBudget *budget, Size buffers);
extern Size ws_budget_one_pass(const WsRequest *request, Size memory, bool rows);

#endif							/* WS_BUDGET_H */
