/*-------------------------------------------------------------------------
 * trie.h - the trie of what many keys begin with (trie.c), which beginnings.c goes through.
 *-------------------------------------------------------------------------
 */
#ifndef WS_TRIE_H
#define WS_TRIE_H

#include "key/key.h"

#define WS_TRIE_ROOT	0		/* its beginning is empty */

/* A node. */
typedef struct WsBeginning
{
	int			parent;			/* the root is its own */
	int			first_child;	/* the others follow it */
	int			label;			/* in the labels: what it adds to the parent's beginning */
	int			rank;			/* in the ranks, which say which child a byte leads to */
	uint16		children;
	uint16		length;			/* of the beginning, with the parent's */
	uint16		before;			/* code of the gap before this node, which is its parent's */
	uint16		last;			/* code of the gap behind its last child */
	uint16		above;			/* code of what begins with a part of its label, and is above it */
	uint8		first;			/* byte of the label */
	uint8		least;			/* byte that has a rank; it is the first child's */
	uint16		ranked;			/* bytes that have one, from that on; the last is the last child's */
} WsBeginning;

StaticAssertDecl(sizeof(WsBeginning) == 32, "a node is in one cache line");

struct WsBeginnings
{
	int			nodes;
	Size		reach;			/* bytes of a key that a prefix tells at most */
	WsBeginning *node;
	uint8	   *labels;
	uint8	   *ranks;
	uint16	   *node_of;		/* the node whose beginning a code tells, or tells a part of */
	WsPacking  *packing;		/* of the bytes behind beginnings, or NULL */
	Size		behind;			/* of these, a prefix tells so many at most */
	Size		bytes;
};

extern WsBeginnings *ws_trie_create(WsKeyBytes *keys, Size n, bool ends, Size most);

#endif							/* WS_TRIE_H */
