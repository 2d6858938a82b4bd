/*-------------------------------------------------------------------------
 * batch.h - how many rows are taken from a stream at a time.
 *
 * Batches start small and grow, so that a reader that wants only the first
 * rows does not make the merge produce many.
 *-------------------------------------------------------------------------
 */
#ifndef WS_BATCH_H
#define WS_BATCH_H

#include "entry.h"

#define WS_FIRST_BATCH	((Size) 32)	/* rows */
#define WS_TAKE_ROWS	((Size) 512)	/* taken from a stream in one call, at most */

/* The size of the batch behind one of `rows` rows, of `most` at most. */
static inline Size
ws_batch_after(Size rows, Size most)
{
	return Min(rows * 8, most);
}

/*
 * Where a batch is to begin that has row number `position`, when the one before began at
 * `first`: a little before, if rows are read backward.
 */
static inline uint64
ws_batch_begin(uint64 position, uint64 first)
{
	return position < first ? position - Min(position, WS_FIRST_BATCH - 1) : position;
}

#endif							/* WS_BATCH_H */
