/*-------------------------------------------------------------------------
 * losertree.c - a tree of losers over 128-bit entries.
 *
 * Knuth's replacement selection tree (TAOCP 5.4.1), used by AlphaSort and
 * FMsort for the merge: inner node i keeps the loser of the match played
 * there, the overall winner stands on top.  Replacing the winner by the next
 * entry of its source replays one path to the root: ceil(log2 n) comparisons,
 * never two a level as in a heap.  Nodes hold the entries themselves, so that
 * a replay touches one array.
 *
 * An exhausted source is represented by WS_ENTRY_MAX, which loses against
 * every entry of a row: pointers are below WS_POINTER_MASK.  Entries of
 * different rows differ in their pointers, unless the rows are nothing but equal keys, so that the
 * result does not depend on which source an entry came from.
 *
 * Pure: memory is the caller's, nothing is raised here (the tie-break may).
 *-------------------------------------------------------------------------
 */
#include "merge/losertree.h"

/* Does a, whose prefix b has, come before b? */
static pg_noinline bool
tied_before(const WsLoserTree *tree, WsTreeNode a, WsTreeNode b)
{
	int			cmp = 0;

	if (ws_entry_pointer(a.entry) != WS_POINTER_MASK && ws_entry_pointer(b.entry) != WS_POINTER_MASK)
		cmp = tree->tie(tree->tie_arg, &a, &b);
	return cmp != 0 ? cmp < 0 : ws_entry_int(a.entry) < ws_entry_int(b.entry);
}

/* Does a come before b?  (By value: that one's address is asked for keeps an entry out of the registers.) */
static inline bool
before(const WsLoserTree *tree, WsTreeNode a, WsTreeNode b)
{
	if (unlikely(tree->tie != NULL && ws_entry_same_prefix(a.entry, b.entry)))
		return tied_before(tree, a, b);
	return ws_entry_int(a.entry) < ws_entry_int(b.entry);
}

/*
 * Prepares a tree for n >= 1 sources in `nodes` (n of them, the caller's).
 * `tie` may be NULL when prefixes are whole keys.
 */
void
ws_losertree_init(WsLoserTree *tree, int n, WsTreeNode *nodes,
				  WsTieBreak tie, void *tie_arg)
{
	tree->n = n;
	tree->losers = nodes;
	tree->tie = tie;
	tree->tie_arg = tie_arg;
}

/* Plays the matches below inner node `node` and returns their winner. */
static WsTreeNode
play(WsLoserTree *tree, int node, const WsEntry *first)
{
	WsTreeNode	left,
				right;

	if (node >= tree->n)
	{
		left.source = node - tree->n;
		left.entry = first[left.source];
		return left;
	}
	left = play(tree, 2 * node, first);
	right = play(tree, 2 * node + 1, first);
	if (before(tree, right, left))
	{
		tree->losers[node] = left;
		return right;
	}
	tree->losers[node] = right;
	return left;
}

/*
 * Plays all matches among the first entries of the sources; an empty source
 * gives WS_ENTRY_MAX.
 */
void
ws_losertree_build(WsLoserTree *tree, const WsEntry *first)
{
	tree->winner = play(tree, 1, first);
}

/*
 * Replaces the winner by the next entry of its source (WS_ENTRY_MAX at its
 * end) and finds the new winner.
 */
void
ws_losertree_replace(WsLoserTree *tree, WsEntry next)
{
	WsTreeNode	champion = {next, tree->winner.source};

	for (int node = (champion.source + tree->n) >> 1; node > 0; node >>= 1)
	{
		WsTreeNode *loser = &tree->losers[node];
		WsTreeNode	other = *loser;

		/* Both outcomes are equally likely: select, do not branch. */
		uint64		swap = -(uint64) before(tree, other, champion);
		uint64		lo = (other.entry.lo ^ champion.entry.lo) & swap;
		uint64		hi = (other.entry.hi ^ champion.entry.hi) & swap;
		int32		src = (other.source ^ champion.source) & (int32) swap;

		loser->entry.lo = other.entry.lo ^ lo;
		loser->entry.hi = other.entry.hi ^ hi;
		loser->source = other.source ^ src;
		champion.entry.lo ^= lo;
		champion.entry.hi ^= hi;
		champion.source ^= src;
	}
	tree->winner = champion;
}
