/*-------------------------------------------------------------------------
 * beginnings.c - codes of what many keys begin with.
 *
 * Keys whose first bytes are much the same (addresses, paths, codes with leading zeros, small integers in
 * wide columns) fill their prefixes with what all have in common.  So what many keys of a sample begin
 * with gets a code, and the prefix of a key is the code of the longest such beginning, and WS_BEHIND_CODE
 * bytes that follow it.
 *
 * The beginnings are nodes of a Patricia trie (Morrison, 1968).  Codes are in the order of the keys: a
 * node's children have theirs between those of the gaps that the node has before, between and behind them,
 * and a key that begins with none of the children gets the code of its gap, and goes on behind the node's
 * beginning.  A key that begins with a part of what a child adds to that has a code below the child's or
 * above it, and a byte that says how long the part is: numbers with leading zeros do so when they grow.
 * So every key has a code, whatever the sample was, and prefixes are in the order of the keys (the string
 * axis of Zhang et al., Order-Preserving Key Compression for In-Memory Search Trees, SIGMOD 2020).  A code
 * tells its beginning: nothing of the key is lost.
 *
 * A node is made only where keys of the sample that begin so are not told apart by the bytes that follow
 * the beginning of its parent; or, if many keys are equal, where these bytes do not reach their ends: equal
 * prefixes that do not tell the whole key are ties, which cost a look at the rows.
 *
 * What only one key of the sample begins with is likely to be what many of those to come do, if keys like it
 * have nodes.  One key does not tell where that ends, but the others do: behind the same bytes as theirs.
 *
 * Memory: as much as the caller allows, in CurrentMemoryContext.  Nothing is raised.
 *-------------------------------------------------------------------------
 */
#include "key/learning.h"

#include "port/pg_bswap.h"
#include "utils/memutils.h"

#define MOST_NODES		16384	/* which have four times as many codes */
#define CODES			4		/* of a node at most: the gap before it, below, above, and its last gap */
#define LEAST_TAIL		2		/* bytes that two labels must end with alike */
#define ALONE_TOLD		4		/* bytes behind a beginning that tell its keys apart, as a rule */
#define ROOT			0		/* its beginning is empty */

typedef struct Beginning
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
} Beginning;

StaticAssertDecl(sizeof(Beginning) == 32, "a node is in one cache line");

struct WsBeginnings
{
	int			nodes;
	Size		reach;			/* bytes of a key that a prefix tells at most */
	Beginning  *node;
	uint8	   *labels;
	uint8	   *ranks;
	uint16	   *node_of;		/* the node whose beginning a code tells, or tells a part of */
	Size		bytes;
};

/* The code of what begins with a part of a node's label, and is below it. */
#define BELOW(node)	((node)->before + 1)

/* A node's keys in the sample: from one to before another. */
typedef struct Range
{
	Size		from;
	Size		to;
} Range;

typedef struct Build
{
	const WsKeyBytes *keys;
	const uint16 *common;		/* bytes that a key has in common with the one before it */
	bool		whole;			/* prefixes should tell whole keys */
	Size		least;			/* keys of a node */
	bool		alone;			/* a node may be of fewer, too, if these end as others do */
	int			most;			/* nodes */
	int			nodes;
	Beginning  *node;
	Range	   *range;
	Size		labels;			/* bytes */
	Size		ranks;
	Size		nalone;			/* nodes of one key */
	const uint8 *label;			/* of the last node of several keys */
	Size		nlabel;
	Size		longest;		/* of such labels */
	const uint8 *tail;			/* what two of them in a row ended with last */
	Size		ntail;
} Build;

static inline int
compare_bytes(const WsKeyBytes *x, const WsKeyBytes *y)
{
	int			cmp;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	cmp = memcmp(x->bytes, y->bytes, Min(x->n, y->n));
	return cmp != 0 ? cmp : (x->n > y->n) - (x->n < y->n);
}

#define ST_SORT sort_keys
#define ST_ELEMENT_TYPE WsKeyBytes
#define ST_COMPARE(a, b) compare_bytes(a, b)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* The first bytes of a key as a number, zero beyond its end. */
static uint64
first_bytes(const WsKeyBytes *key)
{
	uint64		bytes = 0;

	memcpy(&bytes, key->bytes, Min(key->n, sizeof(bytes)));
	return pg_ntoh64(bytes);
}

static uint16
in_common(const WsKeyBytes *x, const WsKeyBytes *y)
{
	Size		i = 0;
	Size		n = Min(x->n, y->n);

	while (i < n && x->bytes[i] == y->bytes[i])
		i++;
	return (uint16) i;
}

/*
 * Notes the label of a node of several keys.  If it ends as the one before it does, that is the tail from now
 * on.  But of two tails, of which one ends with the other, the shorter is kept: a few keys may be alike in
 * more by chance.
 */
static void
note_tail(Build *b, const uint8 *label, Size n)
{
	Size		same = 0;
	Size		most = Min(n, b->nlabel);

	while (same < most && label[n - 1 - same] == b->label[b->nlabel - 1 - same])
		same++;
	b->label = label;
	b->nlabel = n;
	b->longest = Max(b->longest, n);
	if (same < LEAST_TAIL ||
		(b->ntail > 0 && same > b->ntail && memcmp(label + n - b->ntail, b->tail, b->ntail) == 0))
		return;
	b->tail = label + n - same;
	b->ntail = same;
}

/* Adds the node of the keys of a range, which begin with `length` bytes.  False if there are too many. */
static bool
add_node(Build *b, int parent, Range range, Size length)
{
	Beginning  *node = &b->node[b->nodes];
	Size		known = b->nodes == ROOT ? 0 : b->node[parent].length;

	if (b->nodes == b->most)
		return false;
	*node = (Beginning) {.parent = parent, .length = (uint16) length, .label = (int) b->labels};
	b->labels += length - known;
	if (range.to - range.from == 1)
		b->nalone++;
	else if (b->nodes != ROOT)
		note_tail(b, b->keys[range.from].bytes + known, length - known);
	b->range[b->nodes++] = range;
	return true;
}

/* The bytes that all keys of a range, which are two or more, begin with. */
static Size
common_length(const Build *b, Range range)
{
	uint16		length = b->common[range.from + 1];

	for (Size i = range.from + 2; i < range.to; i++)
		length = Min(length, b->common[i]);
	return length;
}

/*
 * Where the beginning of a key ends that goes on behind one of `length` bytes, if it ends as others do.
 * Else 0; also if that is so near that the bytes behind the shorter one tell enough, or farther than in any
 * others: ends of words are in every key somewhere, and the bytes that beginnings reach to are made for each
 * row.
 */
static Size
likely_end(const Build *b, Size key, Size length)
{
	const WsKeyBytes *k = &b->keys[key];
	const uint8 *tail = NULL;
	Size		adds;

	if (b->ntail > 0 && k->n > length + 1)
		tail = memmem(k->bytes + length + 1, k->n - length - 1, b->tail, b->ntail);
	if (tail == NULL)
		return 0;
	adds = tail + b->ntail - k->bytes - length;
	return adds + ALONE_TOLD > WS_BEHIND_CODE && adds <= b->longest + 1 ? length + adds : 0;
}

/* Are there keys in a range of which the bytes behind a beginning of `length` bytes do not tell enough? */
static bool
has_ties(const Build *b, Range range, Size length)
{
	Size		told = length + WS_BEHIND_CODE;

	for (Size i = range.from; i < range.to; i++)
		if ((i > range.from && b->common[i] >= told) ||
			(b->whole && b->keys[i].n >= told && b->keys[i].n < WS_BEGINNING))
			return true;
	return false;
}

/*
 * The length of what the keys of a range begin with, if a node below a beginning of `length` bytes is to be
 * made of that, else 0: for those that it leaves tied, or if the first and the last of them end as others do.
 */
static Size
node_end(const Build *b, Range range, Size length)
{
	Size		n = range.to - range.from;
	Size		end;

	if (n >= b->least && has_ties(b, range, length))
		return common_length(b, range);
	end = b->alone ? likely_end(b, range.from, length) : 0;
	if (end == 0 || n == 1)
		return end;
	return likely_end(b, range.to - 1, length) > 0 ? common_length(b, range) : 0;
}

/* The first byte of a node's label. */
static uint8
first_byte(const Build *b, int node)
{
	return b->keys[b->range[node].from].bytes[b->node[b->node[node].parent].length];
}

/* Makes room for the ranks of a node's children. */
static void
rank_children(Build *b, Beginning *node)
{
	node->rank = (int) b->ranks;
	if (node->children == 0)
		return;
	node->least = first_byte(b, node->first_child);
	node->ranked = first_byte(b, node->first_child + node->children - 1) - node->least + 1;
	b->ranks += node->ranked;
}

/* Adds the children of a node.  False if there are too many. */
static bool
add_children(Build *b, int parent)
{
	Size		length = b->node[parent].length;
	Range		all = b->range[parent];
	Size		from = all.from;
	Size		end;

	b->node[parent].first_child = b->nodes;
	/* a node of one key has no children: nothing says where a longer beginning would end */
	if (all.to - all.from == 1)
		return true;
	for (Size i = all.from + 1; i <= all.to; i++)
	{
		Range		range = {from, i};

		if (i < all.to && b->common[i] > length)
			continue;			/* with the same byte behind the beginning */
		from = i;
		end = node_end(b, range, length);
		if (end == 0)
			continue;
		if (!add_node(b, parent, range, end))
			return false;
		b->node[parent].children++;
	}
	rank_children(b, &b->node[parent]);
	return true;
}

/* Makes the trie, level by level.  False if it is too large. */
static bool
add_nodes(Build *b, Size n)
{
	b->nodes = 0;
	b->labels = b->ranks = b->nalone = b->nlabel = b->longest = b->ntail = 0;
	if (!add_node(b, ROOT, (Range) {0, n}, 0))
		return false;
	for (int i = 0; i < b->nodes; i++)
		if (!add_children(b, i))
			return false;
	return true;
}

/* Gives codes to a node and all below it, from `code` on.  Returns the next one. */
static int
number_nodes(WsBeginnings *b, int at, int code)
{
	Beginning  *node = &b->node[at];

	for (int child = node->first_child; child < node->first_child + node->children; child++)
	{
		b->node_of[code] = (uint16) at;
		b->node[child].before = (uint16) code++;
		b->node_of[code++] = (uint16) child;
		code = number_nodes(b, child, code);
		b->node_of[code] = (uint16) child;
		b->node[child].above = (uint16) code++;
	}
	b->node_of[code] = (uint16) at;
	node->last = (uint16) code;
	return code + 1;
}

static Size
trie_bytes(const Build *b)
{
	return sizeof(WsBeginnings) + b->nodes * (sizeof(Beginning) + CODES * sizeof(uint16)) + b->labels +
		b->ranks;
}

/* Notes which child is the first whose label begins with no lesser byte. */
static void
fill_ranks(WsBeginnings *b, const Beginning *node)
{
	int			child = 0;

	for (int i = 0; i < node->ranked; i++)
	{
		if (node->least + i > b->node[node->first_child + child].first)
			child++;
		b->ranks[node->rank + i] = (uint8) child;
	}
}

/* Copies what has been built, so that the sample may go. */
static WsBeginnings *
copy_trie(const Build *build)
{
	WsBeginnings *b = palloc(sizeof(WsBeginnings));

	b->nodes = build->nodes;
	b->bytes = trie_bytes(build);
	b->node = palloc(build->nodes * sizeof(Beginning));
	b->labels = palloc0(build->labels + sizeof(uint64));
	b->ranks = palloc(build->ranks + 1);
	b->node_of = palloc(CODES * build->nodes * sizeof(uint16));
	b->reach = WS_BEHIND_CODE;
	b->node[ROOT] = build->node[ROOT];
	for (int i = ROOT + 1; i < build->nodes; i++)
	{
		Beginning  *node = &b->node[i];
		Size		known;

		*node = build->node[i];
		known = b->node[node->parent].length;
		memcpy(b->labels + node->label, build->keys[build->range[i].from].bytes + known,
			   node->length - known);
		node->first = b->labels[node->label];
		b->reach = Max(b->reach, (Size) node->length + WS_BEHIND_CODE);
	}
	for (int i = ROOT; i < build->nodes; i++)
		fill_ranks(b, &b->node[i]);
	(void) number_nodes(b, ROOT, 0);
	return b;
}

/*
 * Makes codes of what `keys`, a sample, begin with, in at most `most` bytes.  Sorts the keys, each of which
 * has WS_BEGINNING bytes at most and does not end with a zero byte.  With `ends`, the bytes of keys tell
 * their whole order.  Belongs to CurrentMemoryContext.
 */
WsBeginnings *
ws_beginnings_create(WsKeyBytes *keys, Size n, bool ends, Size most)
{
	MemoryContext context = CurrentMemoryContext;
	MemoryContext work = AllocSetContextCreate(context, "WiscSort beginnings", ALLOCSET_DEFAULT_SIZES);
	uint16	   *common;
	WsBeginnings *result;
	Build		b = {.keys = keys, .least = 2, .alone = true};
	Size		equal = 0;

	MemoryContextSwitchTo(work);
	b.most = Max(1, Min(MOST_NODES, most / sizeof(Beginning)));
	b.node = palloc(b.most * sizeof(Beginning));
	b.range = palloc(b.most * sizeof(Range));
	b.common = common = palloc0((n + 1) * sizeof(uint16));
	for (Size i = 0; i < n; i++)
		keys[i].first = first_bytes(&keys[i]);
	sort_keys(keys, n);
	for (Size i = 1; i < n; i++)
	{
		common[i] = in_common(&keys[i - 1], &keys[i]);
		equal += common[i] == keys[i - 1].n && common[i] == keys[i].n;
	}
	b.whole = ends && equal > n / WS_LEARN_ONE_IN;
	while (!add_nodes(&b, n) || trie_bytes(&b) > most || b.nalone > n / 2)
	{
		/* the root alone always fits */
		if (b.least > n)
			break;
		/* without keys that are alone first */
		if (!b.alone)
			b.least *= 2;
		b.alone = false;
	}
	MemoryContextSwitchTo(context);
	result = copy_trie(&b);
	MemoryContextDelete(work);
	return result;
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
find_child(const WsBeginnings *b, const Beginning *node, uint8 byte)
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
ws_beginnings_prefix(const WsBeginnings *b, const uint8 *key, Size *told)
{
	const Beginning *node = &b->node[ROOT];
	int			behind = WS_BEHIND_CODE;
	Size		known;
	ws_uint128	prefix;
	uint64		bytes;

	for (;;)
	{
		int			end = node->first_child + node->children;
		int			i = find_child(b, node, key[node->length]);
		const Beginning *child = &b->node[i];
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
	const Beginning *node = &b->node[b->node_of[code]];
	Size		length = node->length;
	int			behind = WS_BEHIND_CODE;

	if (node != &b->node[ROOT] && (code == BELOW(node) || code == node->above))
	{
		behind--;
		length = b->node[node->parent].length +
			part_byte(code == node->above, (uint8) (prefix >> (8 * behind)));
	}
	for (int i = behind - 1; i >= 0; i--, prefix >>= 8)
		key[length + i] = (uint8) prefix;
	for (Size end = length; node != &b->node[ROOT]; node = &b->node[node->parent])
	{
		Size		known = b->node[node->parent].length;

		memcpy(key + known, b->labels + node->label, Min(node->length, end) - known);
	}
	return length + behind;
}

/* Frees it. */
void
ws_beginnings_free(WsBeginnings *b)
{
	pfree(b->node_of);
	pfree(b->ranks);
	pfree(b->labels);
	pfree(b->node);
	pfree(b);
}
