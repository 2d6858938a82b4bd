/*-------------------------------------------------------------------------
 * entry.h - the 16 bytes that are sorted in the place of a row.
 *
 * An entry is 16 bytes: the first 10 bytes of the normalised key (the
 * prefix) above a 48-bit pointer that says where the row is.  Read as one
 * 128-bit unsigned integer its order is the sort order, and the pointer
 * breaks ties, so that a sort of entries is stable in arrival order.
 *-------------------------------------------------------------------------
 */
#ifndef WS_ENTRY_H
#define WS_ENTRY_H

#include "compat.h"

#define WS_PREFIX_BYTES		10
#define WS_POINTER_BITS		48
#define WS_POINTER_MASK		((UINT64CONST(1) << WS_POINTER_BITS) - 1)

typedef unsigned __int128 ws_uint128;

/* Little-endian halves of the 128-bit integer, in the order vqsort wants them. */
typedef struct WsEntry
{
	uint64		lo;				/* key bytes 8-9, then the pointer */
	uint64		hi;				/* key bytes 0-7, big-endian */
} WsEntry;

static inline ws_uint128
ws_entry_int(WsEntry e)
{
	return ((ws_uint128) e.hi << 64) | e.lo;
}

static inline WsEntry
ws_entry_make(ws_uint128 prefix, uint64 pointer)
{
	WsEntry		e;
	ws_uint128	v = (prefix << WS_POINTER_BITS) | pointer;

	e.lo = (uint64) v;
	e.hi = (uint64) (v >> 64);
	return e;
}

static inline uint64
ws_entry_pointer(WsEntry e)
{
	return e.lo & WS_POINTER_MASK;
}

/* Prefix of an entry as an integer of 80 bits. */
static inline ws_uint128
ws_entry_prefix(WsEntry e)
{
	return ws_entry_int(e) >> WS_POINTER_BITS;
}

/* The first n bytes of a prefix. */
static inline ws_uint128
ws_prefix_mask(int n)
{
	ws_uint128	all = ((ws_uint128) 1 << (WS_PREFIX_BYTES * 8)) - 1;

	return all ^ (all >> (n * 8));
}

static inline bool
ws_entry_same_prefix(WsEntry a, WsEntry b)
{
	return a.hi == b.hi && ((a.lo ^ b.lo) >> WS_POINTER_BITS) == 0;
}

/* Sorts after every entry that a row can have: pointers stay below the mask. */
#define WS_ENTRY_MAX	((WsEntry) {~UINT64CONST(0), ~UINT64CONST(0)})

#endif							/* WS_ENTRY_H */
