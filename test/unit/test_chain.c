/*-------------------------------------------------------------------------
 * test_chain.c - runs are divided into the fewest chains, and each is in order.
 *
 * Random intervals, many and few, long and short, with equal prefixes at their ends.  The right number is the
 * most that overlap at one place, counted one place after the other.
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
	return whole ? ws_entry_int(a->last) < ws_entry_int(b->first) :
		ws_entry_prefix(a->last) < ws_entry_prefix(b->first);
}

/* The most of n runs that overlap: some run begins where they all do. */
static int
overlapping(const WsRun *runs, int n, bool whole)
{
	int			most = 0;

	for (int i = 0; i < n; i++)
	{
		int			count = 0;

		for (int j = 0; j < n; j++)
			count += ws_entry_int(runs[j].first) <= ws_entry_int(runs[i].first) &&
				!ends_early(&runs[j], &runs[i], whole);
		most = Max(most, count);
	}
	return most;
}

static void
divide(int n, uint64 span, bool whole)
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
		uint64		first = next_random() % (100000 - span);

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
			divide(1, spans[s], whole);
			divide(2, spans[s], whole);
			for (int i = 0; i < 20; i++)
				divide(MOST - i, spans[s], whole);
		}
	}
}

int
main(void)
{
	CHECK(server_try(all, NULL) && server_left() == NULL, "nothing is left");
	return failures != 0;
}
