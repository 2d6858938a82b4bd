/*-------------------------------------------------------------------------
 * windows.c - a small group of rows that tie, sorted by the next bytes of their keys.
 *
 * Comparing rows fetches two of them a comparison; digits (digit.c) fetch each row twice and more.  For a
 * small group the next WS_WINDOW bytes of all keys find room in the processor's cache.  So each row is
 * fetched once.  Words of eight bytes that all rows share are passed over, and the next one is compared.
 * A window ends where a key comes to a value that only its comparator can order.
 * (docs/decisions/12-small-groups-of-ties.md)
 *
 * Memory: a WsWindows, which is the caller's.  Errors are those of fetching rows.
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "port/pg_bswap.h"

#define WORDS			(WS_WINDOW / sizeof(uint64))

/* A row of the group, as far as its place in the order depends on it. */
typedef struct Place
{
	uint64		first;			/* the first word that is not shared, as a number */
	const uint64 *rest;			/* the words behind it */
	uint32		number;
	uint32		words;			/* in the rest */
} Place;

static inline int
compare_places(const Place *a, const Place *b)
{
	int			cmp;

	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	cmp = memcmp(a->rest, b->rest, a->words * sizeof(uint64));
	return cmp != 0 ? cmp : (a->number > b->number) - (a->number < b->number);
}

#define ST_SORT sort_places
#define ST_ELEMENT_TYPE Place
#define ST_COMPARE(a, b) compare_places(a, b)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Fills the windows.  Sets *shared to the words that all share. */
static void
fill(const WsDigit *d, WsWindows *w, const WsEntry *group, Size n, Size *shared)
{
	const WsKeySlot *key = d->slot;

	*shared = WORDS;
	for (Size i = 0; i < n; i++)
	{
		Size		length;
		Size		told;
		Size		same = 0;

		if (i + WS_TIES_AHEAD < n)
			d->rows->prefetch(d->rows->store, ws_entry_pointer(group[i + WS_TIES_AHEAD]));
		d->rows->fetch(d->rows->store, ws_entry_pointer(group[i]), d->slot);
		length = ws_key_told_bytes(d->spec, key->values, key->isnull, d->reach, WS_WINDOW,
								   (uint8 *) w->words[i], &told);
		w->goes_on[i] = length > d->reach + WS_WINDOW;
		while (same < *shared && w->words[i][same] == w->words[0][same])
			same++;
		*shared = same;
	}
}

/*
 * Sorts a group of at most WS_WINDOWED rows, whose keys are the same in d->reach bytes, by the next WS_WINDOW
 * bytes of these, and rows that have the same ones by their pointers.  Sets w->goes_on[i] if entry i may yet
 * have to go before the one before it: both have the same bytes, and there are more.  False, and nothing is
 * changed, if that tells too little.
 */
bool
ws_sort_by_windows(const WsDigit *d, WsWindows *w, WsEntry *group, Size n)
{
	Place		places[WS_WINDOWED];
	WsEntry		entries[WS_WINDOWED];
	bool		goes_on[WS_WINDOWED];
	Size		shared;

	Assert(n <= WS_WINDOWED);
	fill(d, w, group, n, &shared);
	if (shared == WORDS)
	{
		/* all equal, if they end here */
		for (Size i = 0; i < n; i++)
			if (w->goes_on[i])
				return false;
		return true;
	}
	for (Size i = 0; i < n; i++)
	{
		const uint64 *words = w->words[i] + shared;

		places[i] = (Place) {pg_ntoh64(*words), words + 1, (uint32) i, (uint32) (WORDS - shared - 1)};
	}
	sort_places(places, n);
	memcpy(entries, group, n * sizeof(WsEntry));
	memcpy(goes_on, w->goes_on, n * sizeof(bool));
	for (Size i = 0; i < n; i++)
	{
		group[i] = entries[places[i].number];
		w->goes_on[i] = i > 0 && goes_on[places[i].number] && places[i].first == places[i - 1].first &&
			memcmp(places[i].rest, places[i - 1].rest, places[i].words * sizeof(uint64)) == 0;
	}
	return true;
}
