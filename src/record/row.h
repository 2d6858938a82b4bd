/*-------------------------------------------------------------------------
 * row.h - what writing and reading the spool share of a row's format.
 *
 * The format is described in spool.c.
 *-------------------------------------------------------------------------
 */
#ifndef WS_ROW_H
#define WS_ROW_H

#include "wiscsort.h"
#include "access/htup_details.h"

/* Bytes of a heap tuple header that are not stored. */
#define UNSTORED		offsetof(HeapTupleHeaderData, t_infomask2)	/* 18 */
StaticAssertDecl(UNSTORED == 18 && SizeofHeapTupleHeader == 23,
				 "layout of HeapTupleHeaderData has changed");

/* Length in the header of a row that has its length in front of it. */
#define LENGTH_ESCAPE	0x7FFF

/*
 * memcpy for rows, in vector registers.  Where gcc 12 makes `rep movs` of memcpy
 * it waits for the row's cache misses: 55 ns a row of 100 bytes.
 */
static inline void
copy_bytes(char *to, const char *from, Size n)
{
	if (n < 32)
	{
		memcpy(to, from, n);
		return;
	}
	for (Size i = 0; i + 32 < n; i += 32)
		memcpy(to + i, from + i, 32);
	memcpy(to + n - 32, from + n - 32, 32);
}

#endif							/* WS_ROW_H */
