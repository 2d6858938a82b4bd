/*-------------------------------------------------------------------------
 * test_losertree.c - the tree of losers against a plain sort.
 *
 * Random sources of random lengths, some empty, are merged; the result must
 * be the sorted union of all entries.  With a tie-break, entries with equal
 * prefixes must come in the tie-break's order, and in pointer order where it
 * says equal.
 *-------------------------------------------------------------------------
 */
#include "unit.h"
#include "../../src/merge/losertree.c"

#define MAX_SOURCES 70
#define MAX_ENTRIES 3000

static WsEntry entries[MAX_SOURCES][MAX_ENTRIES];
static int	lengths[MAX_SOURCES];
static WsEntry expected[MAX_SOURCES * MAX_ENTRIES];
static int	total;
static bool with_tie;
static long ties_broken;

/* The order that the rows behind the entries would have: by pointer % 7, descending. */
static int
row_order(void *arg, const WsTreeNode *a, const WsTreeNode *b)
{
	uint64		x = ws_entry_pointer(a->entry) % 7;
	uint64		y = ws_entry_pointer(b->entry) % 7;

	ties_broken++;
	return (x < y) - (x > y);
}

static int
full_order(const void *a, const void *b)
{
	const WsEntry *x = a;
	const WsEntry *y = b;

	if (with_tie && ws_entry_same_prefix(*x, *y))
	{
		WsTreeNode	xn = {*x, 0};
		WsTreeNode	yn = {*y, 0};
		int			cmp = row_order(NULL, &xn, &yn);

		if (cmp != 0)
			return cmp;
	}
	return (ws_entry_int(*x) > ws_entry_int(*y)) - (ws_entry_int(*x) < ws_entry_int(*y));
}

static void
make_sources(int n, uint64 distinct)
{
	uint64		pointer = 0;

	total = 0;
	for (int s = 0; s < n; s++)
	{
		lengths[s] = next_random() % 5 == 0 ? 0 : next_random() % (20000 / n < MAX_ENTRIES ? 20000 / n : MAX_ENTRIES);
		for (int i = 0; i < lengths[s]; i++)
		{
			ws_uint128	prefix = next_random() % distinct;

			/* use both halves of the entry */
			prefix = (prefix << 16) | (distinct > 1000 ? next_random() & 0xFFFF : 0);
			pointer += 1 + next_random() % 3;
			entries[s][i] = ws_entry_make(prefix, pointer);
			expected[total++] = entries[s][i];
		}
		qsort(entries[s], lengths[s], sizeof(WsEntry), full_order);
	}
	qsort(expected, total, sizeof(WsEntry), full_order);
}

/* Merges and compares; returns the position of the first difference, or -1. */
static int
merge_differs(int n)
{
	WsTreeNode	nodes[MAX_SOURCES];
	WsEntry		first[MAX_SOURCES];
	int			next[MAX_SOURCES];
	WsLoserTree tree;

	ws_losertree_init(&tree, n, nodes, with_tie ? row_order : NULL, NULL);
	for (int s = 0; s < n; s++)
	{
		next[s] = 1;
		first[s] = lengths[s] > 0 ? entries[s][0] : WS_ENTRY_MAX;
	}
	ws_losertree_build(&tree, first);
	for (int i = 0; i < total; i++)
	{
		int			s = tree.winner.source;

		if (ws_losertree_empty(&tree) ||
			ws_entry_int(tree.winner.entry) != ws_entry_int(expected[i]))
			return i;
		ws_losertree_replace(&tree, next[s] < lengths[s] ? entries[s][next[s]] : WS_ENTRY_MAX);
		next[s]++;
	}
	return ws_losertree_empty(&tree) ? -1 : total;
}

int
main(void)
{
	int			counts[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 70};
	uint64		distincts[] = {1, 3, 100, 1000000};

	for (with_tie = false;; with_tie = true)
	{
		for (int c = 0; c < (int) lengthof(counts); c++)
		{
			int			bad = -1;

			for (int d = 0; d < (int) lengthof(distincts) && bad < 0; d++)
			{
				make_sources(counts[c], distincts[d]);
				bad = merge_differs(counts[c]);
			}
			CHECK(bad < 0, "%d sources merge like a sort%s (first difference at %d)",
				  counts[c], with_tie ? ", ties broken by rows" : "", bad);
		}
		if (with_tie)
			break;
	}
	CHECK(ties_broken > 0, "the tie-break was asked");

	/* an entry with the greatest prefix is not taken for the end */
	with_tie = false;
	total = 1;
	lengths[0] = 1;
	lengths[1] = 0;
	entries[0][0] = expected[0] = ws_entry_make((((ws_uint128) 1) << 80) - 1, 5);
	CHECK(merge_differs(2) < 0, "the greatest key is not the sentinel");
	return failures != 0;
}
