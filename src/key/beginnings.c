/*-------------------------------------------------------------------------
 * beginnings.c - codes of what many keys begin with.
 *
 * Keys whose first bytes are much the same (addresses, paths, codes with leading zeros, small integers in
 * wide columns) fill their prefixes with what all have in common.  So what many keys of a sample begin
 * with gets a code, and the prefix of a key is the code of the longest such beginning, and WS_BEHIND_CODE
 * bytes that follow it, or what more of them are packed into (packing.c).
 *
 * The beginnings are nodes of a trie (trie.c).  Codes are in the order of the keys: a
 * node's children have theirs between those of the gaps that the node has before, between and behind them,
 * and a key that begins with none of the children gets the code of its gap, and goes on behind the node's
 * beginning.  A key that begins with a part of what a child adds to that has a code below the child's or
 * above it, and a byte that says how long the part is: numbers with leading zeros do so when they grow.
 * So every key has a code, whatever the sample was, and prefixes are in the order of the keys (the string
 * axis of Zhang et al., Order-Preserving Key Compression for In-Memory Search Trees, SIGMOD 2020).  A code
 * tells its beginning: nothing of the key is lost.
 *
 * If they are packed, the last bit says whether they tell the whole key.
 *
 * Memory: as much as the caller allows, in CurrentMemoryContext.  Nothing is raised.
 *-------------------------------------------------------------------------
 */
#include "key/trie.h"

#include "port/pg_bswap.h"

/* The code of what begins with a part of a node's label, and is below it. */
#define BELOW(node)	((node)->before + 1)

/* Bytes of a key of the sample that its prefix tells. */
static Size
sample_told(const WsBeginnings *b, const WsKeyBytes *key)
{
	uint8		bytes[WS_BEGINNING + WS_MOST_BEHIND];
	Size		told;

	memcpy(bytes, key->bytes, key->n);
	memset(bytes + key->n, 0, sizeof(bytes) - key->n);
	(void) ws_beginnings_prefix(b, bytes, key->n, &told);
	return told;
}

/* Packs what is behind beginnings, if `most` bytes of memory are enough. */
static void
pack_behind(WsBeginnings *b, const WsKeyBytes *keys, Size n, bool stops, Size most)
{
	uint16	   *from = palloc(n * sizeof(uint16));
	Size		behind = WS_BEHIND_CODE;

	for (Size i = 0; i < n; i++)
		from[i] = (uint16) (sample_told(b, &keys[i]) - WS_BEHIND_CODE);
	b->packing = ws_packing_create(keys, from, n, stops, most);
	if (b->packing != NULL)
	{
		/* no more bytes need be made of keys than have been told once */
		b->behind = WS_MOST_BEHIND;
		for (Size i = 0; i < n && behind < WS_MOST_BEHIND; i++)
		{
			Size		told = sample_told(b, &keys[i]) - from[i];

			behind = Min(Max(behind, told), WS_MOST_BEHIND);
		}
		b->behind = behind;
		b->reach += behind - WS_BEHIND_CODE;
		b->bytes += ws_packing_bytes(b->packing);
	}
	pfree(from);
}

/*
 * Makes codes of what `keys`, a sample, begin with, in at most `most` bytes, and packs the bytes behind if
 * asked to.  Sorts the keys, each of which has WS_BEGINNING bytes at most and does not end with a zero byte.
 * With `ends`, the bytes of keys tell their whole order.  Belongs to CurrentMemoryContext.
 */
WsBeginnings *
ws_beginnings_create(WsKeyBytes *keys, Size n, bool ends, WsPack pack, Size most)
{
	WsBeginnings *b = ws_trie_create(keys, n, ends, most);

	if (pack != WS_PACK_NONE)
		pack_behind(b, keys, n, pack == WS_PACK_TOLD, most - Min(most, b->bytes));
	return b;
}

/* Beginnings that have codes: all but the root's. */
int
ws_beginnings_count(const WsBeginnings *b)
{
	return b->nodes - 1;
}

/* Bytes of a key that its prefix tells at most. */
Size
ws_beginnings_reach(const WsBeginnings *b)
{
	return b->reach;
}

/* Bytes of memory. */
Size
ws_beginnings_bytes(const WsBeginnings *b)
{
	return b->bytes;
}

/* Are bytes behind beginnings packed? */
bool
ws_beginnings_packed(const WsBeginnings *b)
{
	return b->packing != NULL;
}

/* Are n bytes the same?  There are seven more behind them, whatever these are. */
static inline bool
same_bytes(const uint8 *a, const uint8 *b, Size n)
{
	uint64		x;
	uint64		y;

	for (; n > sizeof(x); n -= sizeof(x), a += sizeof(x), b += sizeof(x))
	{
		memcpy(&x, a, sizeof(x));
		memcpy(&y, b, sizeof(y));
		if (x != y)
			return false;
	}
	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return pg_ntoh64(x ^ y) >> (BITS_PER_BYTE * (sizeof(x) - n)) == 0;
}

/*
 * The first child of a node from whose label's first byte on `byte` is not above it, or behind the last.
 * Looked up, because no processor foresees how a search among digits goes.
 */
static inline int
find_child(const WsBeginnings *b, const WsBeginning *node, uint8 byte)
{
	unsigned	rank = (unsigned) byte - node->least;

	if (rank < node->ranked)
		return node->first_child + b->ranks[node->rank + rank];
	return node->first_child + (byte < node->least ? 0 : node->children);
}

/* The byte that says how much of a label a key begins with: the longer, the nearer to the label. */
static inline uint8
part_byte(bool above, Size part)
{
	return (uint8) (above ? PG_UINT8_MAX - part : part);
}

/*
 * The prefix of a key, of which `key` has the first ws_beginnings_reach bytes, zero beyond its end.  Sets
 * *told to how many of these the prefix tells.
 */
ws_uint128
ws_beginnings_prefix(const WsBeginnings *b, const uint8 *key, Size n, Size *told)
{
	const WsBeginning *node = &b->node[WS_TRIE_ROOT];
	int			behind = WS_BEHIND_CODE;
	Size		known;
	ws_uint128	prefix;
	uint64		bytes;

	for (;;)
	{
		int			end = node->first_child + node->children;
		int			i = find_child(b, node, key[node->length]);
		const WsBeginning *child = &b->node[i];
		const uint8 *label;

		known = node->length;
		if (i == end || child->first != key[known])
		{
			prefix = i < end ? child->before : node->last;
			break;
		}
		label = b->labels + child->label - known;
		/* most labels are of one byte */
		if (child->length == known + 1 ||
			same_bytes(key + known, label + known, child->length - known))
		{
			node = child;
			continue;
		}
		while (key[known] == label[known])
			known++;
		prefix = key[known] < label[known] ? BELOW(child) : child->above;
		prefix = prefix << 8 | part_byte(key[known] > label[known], known - node->length);
		behind--;
		break;
	}
	if (b->packing != NULL)
	{
		bytes = ws_pack(b->packing, key + known, known > 0 ? key[known - 1] : 0, b->behind,
						8 * behind - 1, told);
		*told += known;
		return (prefix << (8 * behind - 1) | bytes) << 1 | (n <= *told ? WS_PACKED_WHOLE : 0);
	}
	*told = known + behind;
	memcpy(&bytes, key + known, sizeof(bytes));
	bytes = pg_ntoh64(bytes);
	return prefix << (8 * behind) | bytes >> (8 * (WS_BEHIND_CODE - behind));
}

/* Writes the bytes of its key that a prefix tells to `key`, and returns how many these are. */
Size
ws_beginnings_expand(const WsBeginnings *b, ws_uint128 prefix, uint8 *key)
{
	int			code = (int) (prefix >> (8 * WS_BEHIND_CODE));
	const WsBeginning *node = &b->node[b->node_of[code]];
	Size		length = node->length;
	int			behind = WS_BEHIND_CODE;

	if (node != &b->node[WS_TRIE_ROOT] && (code == BELOW(node) || code == node->above))
	{
		behind--;
		length = b->node[node->parent].length +
			part_byte(code == node->above, (uint8) (prefix >> (8 * behind)));
	}
	for (Size end = length; node != &b->node[WS_TRIE_ROOT]; node = &b->node[node->parent])
	{
		Size		known = b->node[node->parent].length;

		memcpy(key + known, b->labels + node->label, Min(node->length, end) - known);
	}
	if (b->packing != NULL)
		return length + ws_unpack(b->packing, ((uint64) prefix & ~UINT64CONST(0) >> (64 - 8 * behind)) >> 1,
								  length > 0 ? key[length - 1] : 0, b->behind, 8 * behind - 1, key + length);
	for (int i = behind - 1; i >= 0; i--, prefix >>= 8)
		key[length + i] = (uint8) prefix;
	return length + behind;
}

/* Frees it. */
void
ws_beginnings_free(WsBeginnings *b)
{
	if (b->packing != NULL)
		pfree(b->packing);
	pfree(b->node_of);
	pfree(b->ranks);
	pfree(b->labels);
	pfree(b->node);
	pfree(b);
}
