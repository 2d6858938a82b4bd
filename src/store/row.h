/*-------------------------------------------------------------------------
 * row.h - what writing and reading the spool share of a row's format.
 *
 * The format is described in spool.c.
 *-------------------------------------------------------------------------
 */
#ifndef WS_ROW_H
#define WS_ROW_H

#include "entry.h"
#include "access/htup_details.h"

/* Bytes of a heap tuple header that are not stored. */
#define UNSTORED		offsetof(HeapTupleHeaderData, t_infomask2)	/* 18 */
StaticAssertDecl(UNSTORED == 18 && SizeofHeapTupleHeader == 23,
				 "layout of HeapTupleHeaderData has changed");

/*
 * A row's length is in header bits that have a meaning only for visibility: 10
 * of t_infomask and 3 of t_infomask2.  The two that together are HEAP_IS_DATUM
 * (PostgreSQL 15.20: this tuple is a composite value, and its unstored fields
 * say of which type) stay clear, as they are after an insertion into a table.
 */
#define LENGTH_MASK		0xF3F0	/* of t_infomask */
#define LENGTH_ESCAPE	0x1FFF	/* the length is in front of the row */
StaticAssertDecl((LENGTH_MASK & (HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID)) == 0 &&
				 (LENGTH_MASK & (HEAP_HASNULL | HEAP_HASVARWIDTH | HEAP_HASEXTERNAL |
								 HEAP_HASOID_OLD)) == 0,
				 "bits of t_infomask that mean something in a row");

static inline uint16
length_of_masks(uint16 mask, uint16 mask2)
{
	return (uint16) ((mask >> 4 & 0x3F) | (mask >> 6 & 0x3C0) | (mask2 >> 13) << 10);
}

static inline uint16
length_in_mask(uint16 length)
{
	return (uint16) ((length & 0x3F) << 4 | (length & 0x3C0) << 6);
}

static inline uint16
length_in_mask2(uint16 length)
{
	return (uint16) (length >> 10 << 13);
}

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
