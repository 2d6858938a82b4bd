/*-------------------------------------------------------------------------
 * index.h - the IndexMap: entries in memory, sorted in pieces.
 *-------------------------------------------------------------------------
 */
#ifndef WS_INDEX_H
#define WS_INDEX_H

#include "os/os.h"
#include "key/key.h"

/*
 * Entries sorted at one go.  vqsort cannot be interrupted, and takes about 45
 * ms for 2 M entries: a cancel is seen within 100 ms.
 */
#define WS_PIECE_ENTRIES	((Size) 2 * 1024 * 1024)

/* ---- indexmap.c ---- */
typedef struct WsIndexMap
{
	WsEntry    *entries;		/* 64-byte aligned; elsewhere after ws_indexmap_grow */
	Size		count;			/* where the next entry goes */
	Size		room;			/* entries committed */
	Size		capacity;		/* entries allowed; may only shrink to >= count */
	WsRegion   *region;
} WsIndexMap;

extern WsIndexMap *ws_indexmap_create(WsAccount *account, double expected, Size max_bytes);
extern bool ws_indexmap_must_move(const WsIndexMap *map);
extern bool ws_indexmap_grow(WsIndexMap *map);
extern char *ws_indexmap_borrow(WsIndexMap *map, Size bytes);

/* Appends one entry; the caller has seen to it that count < room (ws_indexmap_grow). */
static inline void
ws_indexmap_append(WsIndexMap *map, WsEntry entry)
{
	Assert(map->count < map->room);
	/* halves: a load of 16 bytes would wait for two stores of 8 (15 ns) */
	map->entries[map->count].lo = entry.lo;
	map->entries[map->count++].hi = entry.hi;
}

/* ---- kernel.c ---- */
extern void ws_sort_entries(WsEntry *entries, Size n, bool vectorised);
extern bool ws_sort_has_vqsort(void);
extern void ws_sort_vectorised(WsEntry *entries, Size n);
extern void ws_sort_numbers(uint64 *numbers, Size n, bool vectorised);

/* ---- vqsort.cc ---- */
extern void ws_vqsort(WsEntry *entries, Size n);
extern void ws_vqsort_numbers(uint64 *numbers, Size n);

/* ---- digit.c ---- */

/* Rows that are prefetched before they are read. */
#define WS_TIES_AHEAD	16

/* The next bytes of keys that tie. */
typedef struct WsDigit
{
	const WsKeySpec *spec;
	const WsKeyRows *rows;
	WsKeySlot  *slot;			/* for a row at a time */
	Size		reach;			/* bytes of the key that are the same throughout the group, or told */
	Size		before;			/* rows that are less than the others, whatever these have */
	Size		behind;			/* and greater */
} WsDigit;

extern void ws_read_digit(WsDigit *digit, WsEntry *group, Size n);

/* ---- windows.c ---- */
#define WS_WINDOWED		64		/* rows of a group, at most */
#define WS_WINDOW		64		/* bytes of their keys */

typedef struct WsWindows
{
	uint64		words[WS_WINDOWED][WS_WINDOW / sizeof(uint64)];
	bool		goes_on[WS_WINDOWED];	/* the key, behind its window */
} WsWindows;

extern bool ws_sort_by_windows(const WsDigit *digit, WsWindows *windows, WsEntry *group, Size n);

/* ---- ties.c ---- */
/* Guesses in the prefixes of entries. */
typedef enum WsGuesses
{
	WS_GUESSES_NONE,			/* there are none */
	WS_GUESSES_RIGHT,			/* prefixes are in the order of the keys */
	WS_GUESSES_WRONG			/* not everywhere: the wrong ones have been wiped out */
} WsGuesses;

extern Size ws_ties_bytes_per_entry(const WsKeySpec *spec);
extern WsGuesses ws_settle_ties(WsEntry *entries, Size n, const WsKeySpec *spec,
								const WsKeyRows *rows, bool vectorised);

#endif							/* WS_INDEX_H */
