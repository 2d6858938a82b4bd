/*-------------------------------------------------------------------------
 * losertree.h - a tournament among sorted sources.
 *-------------------------------------------------------------------------
 */
#ifndef WS_LOSERTREE_H
#define WS_LOSERTREE_H

#include "entry.h"

typedef struct WsTreeNode
{
	WsEntry		entry;
	int32		source;
} WsTreeNode;

/*
 * Orders two entries with equal prefixes from their rows: <0, 0, >0.  Equal
 * keys return 0 and are ordered by their pointers.
 */
typedef int (*WsTieBreak) (void *arg, const WsTreeNode *a, const WsTreeNode *b);

typedef struct WsLoserTree
{
	int			n;				/* sources */
	WsTieBreak	tie;			/* NULL: the prefix is the whole key */
	void	   *tie_arg;
	WsTreeNode	winner;			/* the least entry; WS_ENTRY_MAX at the end */
	WsTreeNode *losers;			/* n nodes, of which 1 .. n-1 are used */
} WsLoserTree;

extern void ws_losertree_init(WsLoserTree *tree, int n, WsTreeNode *nodes,
							  WsTieBreak tie, void *tie_arg);
extern void ws_losertree_build(WsLoserTree *tree, const WsEntry *first);
extern void ws_losertree_replace(WsLoserTree *tree, WsEntry next);

/* Has every source come to its end? */
static inline bool
ws_losertree_empty(const WsLoserTree *tree)
{
	return ws_entry_pointer(tree->winner.entry) == WS_POINTER_MASK;
}

#endif							/* WS_LOSERTREE_H */
