/*-------------------------------------------------------------------------
 * chain.c - runs that follow one another are one source of a merge.
 *
 * Rows that come in order, backwards, or nearly so make runs that hardly overlap.  Two of which one ends
 * before the other begins need no merging: they are read one after the other, as a chain.  So a merge has as
 * many sources as runs overlap at one place, and not as many as there are runs: one for rows in order, two
 * or three for rows that are near their places.  With little memory that saves whole passes.
 *
 * Intervals are divided into the fewest chains by going through them in the order of their beginnings: each
 * continues a chain that has ended before it, if there is one.  (The number of chains is that of the
 * intervals which overlap at some place; the greedy division of interval graphs.)
 *
 * If a prefix may tie with another, the prefix that ends a run and the one that the next begins with must
 * differ, so that rows with equal prefixes are in one run of a chain.  Prefixes that guess are in no order
 * that could be relied on before the merge has looked: such runs are in no chain.
 *
 * Memory: 30 bytes a run while it divides.  Runs that are kept because they are in chains: see runlist.c.
 *-------------------------------------------------------------------------
 */
#include "run/run.h"

/* Runs that a merge has blocks for: with fewer, none are kept for their chains. */
#define LEAST_FAN_IN	8

static inline int
compare_entries(WsEntry a, WsEntry b)
{
	ws_uint128	x = ws_entry_int(a);
	ws_uint128	y = ws_entry_int(b);

	return (x > y) - (x < y);
}

/* By beginning; of those that begin alike the one that ends first, which others can follow. */
static int
compare_runs(const void *a, const void *b)
{
	const WsRun *x = a;
	const WsRun *y = b;
	int			first = compare_entries(x->first, y->first);

	return first != 0 ? first : compare_entries(x->last, y->last);
}

/* A run's end: its last entry, and which run it is. */
typedef struct RunEnd
{
	WsEntry		last;
	int			run;
} RunEnd;

static int
compare_ends(const void *a, const void *b)
{
	const RunEnd *x = a;
	const RunEnd *y = b;
	int			last = compare_entries(x->last, y->last);

	return last != 0 ? last : x->run - y->run;
}

/*
 * Does a run whose last entry is `last` end before one that begins with `first`?  Entries that tell all may
 * be equal where rows are nothing but their keys: it does not matter which of those comes first.
 */
static inline bool
ends_before(WsEntry last, WsEntry first, bool whole)
{
	return whole ? ws_entry_int(last) <= ws_entry_int(first) :
		ws_entry_prefix(last) < ws_entry_prefix(first);
}

/*
 * Divides n runs into chains: puts those of a chain one behind the other, in order, writes how many each has
 * to `lengths`, and returns how many chains there are.  With `whole`, entries are in the order of their keys
 * and arrival as they are; else equal prefixes may tie.
 */
int
ws_chain_runs(WsRun *runs, int n, bool whole, int *lengths)
{
	RunEnd	   *ends = palloc(n * sizeof(RunEnd));
	int		   *next = palloc(n * sizeof(int));
	int		   *heads = palloc(n * sizeof(int));
	int		   *ended = palloc(n * sizeof(int));
	WsRun	   *sorted = palloc(n * sizeof(WsRun));
	int			nended = 0;
	int			nheads = 0;
	int			e = 0;
	int			to = 0;

	qsort(runs, n, sizeof(WsRun), compare_runs);
	for (int i = 0; i < n; i++)
		ends[i] = (RunEnd) {runs[i].last, i};
	qsort(ends, n, sizeof(RunEnd), compare_ends);
	for (int i = 0; i < n; i++)
	{
		/* whatever ends before this one has been seen: it begins before, too, or is that one entry */
		while (e < n && ends[e].run < i && ends_before(ends[e].last, runs[i].first, whole))
			ended[nended++] = ends[e++].run;
		next[i] = -1;
		if (nended > 0)
			next[ended[--nended]] = i;
		else
			heads[nheads++] = i;
	}
	for (int h = 0; h < nheads; h++)
	{
		lengths[h] = 0;
		for (int i = heads[h]; i >= 0; i = next[i], lengths[h]++)
			sorted[to++] = runs[i];
	}
	Assert(to == n);
	memcpy(runs, sorted, n * sizeof(WsRun));
	pfree(sorted);
	pfree(ended);
	pfree(heads);
	pfree(next);
	pfree(ends);
	return nheads;
}

/*
 * Are runs of a formation in an order that says where they end?  And is there memory for more than the
 * few that have to be merged as they come, lest the disk holds them too often?
 */
bool
ws_formation_may_chain(const WsFormation *f)
{
	/* runs of entries may still be there when rows have begun to travel */
	return (f->nruns == 0 || !f->runs[0].rows) && f->guesses == WS_GUESSES_NONE && f->fan_in >= LEAST_FAN_IN;
}

/* The same with `runs`, copies of n live runs of a formation, of which perhaps each is a chain of its own. */
int
ws_formation_chains(const WsFormation *f, WsRun *runs, int n, int *lengths)
{
	if (ws_formation_may_chain(f))
		return ws_chain_runs(runs, n, f->in_order || ws_key_tells_all(f->spec), lengths);
	for (int i = 0; i < n; i++)
		lengths[i] = 1;
	return n;
}

/* How many chains the live runs of a level make; -1: of all levels. */
int
ws_formation_count_chains(const WsFormation *f, int level)
{
	WsRun	   *runs = palloc(Max(f->nruns, 1) * sizeof(WsRun));
	int		   *lengths = palloc(Max(f->nruns, 1) * sizeof(int));
	int			n = 0;

	for (int i = 0; i < f->nruns; i++)
		if (level < 0 || f->runs[i].level == level)
			runs[n++] = f->runs[i];
	n = n > 0 ? ws_formation_chains(f, runs, n, lengths) : 0;
	pfree(lengths);
	pfree(runs);
	return n;
}
