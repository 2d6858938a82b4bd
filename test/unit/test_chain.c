/*-------------------------------------------------------------------------
 * test_chain.c - runs are divided into the fewest chains, and each is in order.
 *
 * Random intervals, many and few, long and short, with equal prefixes and equal entries at their ends.  The
 * right number is the most that overlap at one place, counted one place after the other.
 *-------------------------------------------------------------------------
 */
#include "sorting.c"

#define MOST	60

/* An entry of one of 100 prefixes, and of one of 1000 rows. */
static WsEntry
entry_of(uint64 place)
{
	return ws_entry_make(place / 1000, place % 1000 + 1);
}

static bool
ends_early(const WsRun *a, const WsRun *b, bool whole)
{
	return whole ? ws_entry_int(a->last) <= ws_entry_int(b->first) :
		ws_entry_prefix(a->last) < ws_entry_prefix(b->first);
}

/* Is a run one entry, perhaps many times? */
static bool
is_one(const WsRun *run)
{
	return ws_entry_int(run->first) == ws_entry_int(run->last);
}

/*
 * The most of n runs that overlap: where some run begins they all do.  Whole entries that are equal are in any
 * order, so runs that meet in an entry do not overlap, and those of one entry only follow one another.
 */
static int
overlapping(const WsRun *runs, int n, bool whole)
{
	int			most = 0;

	for (int i = 0; i < n; i++)
	{
		ws_uint128	place = ws_entry_int(runs[i].first);
		int			across = 0;	/* begin before the place, or there, and end after it */
		int			around = 0;	/* begin before the place, and end after it */

		for (int j = 0; j < n; j++)
		{
			bool		ends = ends_early(&runs[j], &runs[i], whole);

			across += ws_entry_int(runs[j].first) <= place && !ends;
			around += ws_entry_int(runs[j].first) < place && !ends;
		}
		most = Max(most, Max(across, whole && is_one(&runs[i]) ? around + 1 : around));
	}
	return most;
}

static void
divide(int n, uint64 range, uint64 span, bool whole)
{
	WsRun		runs[MOST];
	int			lengths[MOST];
	bool		seen[MOST] = {0};
	int			wanted;
	int			chains;
	int			at = 0;
	bool		right = true;

	memset(runs, 0, sizeof(runs));
	for (int i = 0; i < n; i++)
	{
		uint64		first = next_random() % (range - span);

		runs[i].first = entry_of(first);
		runs[i].last = entry_of(first + next_random() % span);
		runs[i].number = i;
	}
	wanted = overlapping(runs, n, whole);
	chains = ws_chain_runs(runs, n, whole, lengths);
	for (int c = 0; c < chains; at += lengths[c++])
		for (int i = 0; i < lengths[c]; i++)
		{
			right &= !seen[runs[at + i].number] && (i == 0 || ends_early(&runs[at + i - 1], &runs[at + i], whole));
			seen[runs[at + i].number] = true;
		}
	CHECK(right && at == n && chains == wanted, "%d runs of up to %d, %s: %d chains, %d wanted", n, (int) span,
		  whole ? "whole" : "prefixes", chains, wanted);
}

static void
all(void *arg)
{
	for (int whole = 0; whole < 2; whole++)
	{
		const uint64 spans[] = {1, 10, 500, 3000, 20000, 99999};

		for (int s = 0; s < lengthof(spans); s++)
		{
			divide(1, 100000, spans[s], whole);
			divide(2, 100000, spans[s], whole);
			for (int i = 0; i < 20; i++)
				divide(MOST - i, 100000, spans[s], whole);
		}
		/* few places: most runs meet, and many are one entry */
		for (uint64 span = 1; span < 5; span++)
			for (int i = 0; i < 20; i++)
				divide(MOST - i, 12, span, whole);
	}
}

int
main(void)
{
	CHECK(server_try(all, NULL) && server_left() == NULL, "nothing is left");
	return failures != 0;
}
