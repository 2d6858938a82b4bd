/*-------------------------------------------------------------------------
 * again.h - a sort as the executor sees it: a sorter, or a second one that has begun again.
 *-------------------------------------------------------------------------
 */
#ifndef WS_AGAIN_H
#define WS_AGAIN_H

#include "sort/sorter.h"
#include "sort/tablerows.h"

typedef struct WsSort
{
	WsSorter   *sorter;			/* who takes rows and hands them out */
	WsSorter   *first;			/* the one before, or NULL */
	Relation	rel;			/* the table that has the rows, or NULL */
	WsTableRows *copies;		/* rows of the table are copied as they come; else NULL */
	MemoryContext copying;		/* what that needs, or NULL */
	WsTableOrder *order;		/* by which they were read again, or NULL */
	uint64		next_look;		/* row at which to look whether to begin again */
	int64		faults_before;	/* page faults that had waited before the first row */
	uint64		rows_before;	/* handed out when it began again */
} WsSort;

extern WsSort *ws_sort_create(const WsRequest *request, TupleDesc desc, Relation rel);
extern void ws_sort_put_copy(WsSort *sort, TupleTableSlot *slot);
extern void ws_sort_perform(WsSort *sort);
extern void ws_sort_look(WsSort *sort, TupleTableSlot *slot);
extern void ws_sort_stats(const WsSort *sort, WsSortStats *stats);
extern void ws_sort_destroy(WsSort *sort);

/* As ws_sorter_put. */
static inline void
ws_sort_put(WsSort *sort, TupleTableSlot *slot)
{
	if (unlikely(sort->copies != NULL))
		ws_sort_put_copy(sort, slot);
	else
		ws_sorter_put(sort->sorter, slot);
}

/* How many rows have been handed out.  Those read from the table again come without the ones before. */
static inline int64
ws_sort_position(const WsSort *sort)
{
	return (int64) (sort->sorter->position + (sort->order != NULL ? sort->rows_before : 0));
}

/* Bytes of memory that it has now. */
static inline int64
ws_sort_memory(const WsSort *sort)
{
	return (int64) (sort->sorter->account.now + (sort->first != NULL ? sort->first->account.now : 0));
}

/* As ws_sorter_get. */
static inline bool
ws_sort_get(WsSort *sort, bool forward, TupleTableSlot *slot)
{
	bool		found = ws_sorter_get(sort->sorter, forward, slot);

	if (unlikely(sort->sorter->position >= sort->next_look) && found && forward)
		ws_sort_look(sort, slot);
	return found;
}

#endif							/* WS_AGAIN_H */
