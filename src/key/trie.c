/*-------------------------------------------------------------------------
 * trie.c - how the trie of what many keys begin with is made from a sample of them.
 *
 * It is a Patricia trie (Morrison, 1968).  A node is made only where keys of the sample that begin so are not
 * told apart by the bytes that follow the beginning of its parent; or, if many keys are equal, where these
 * bytes do not reach their ends: equal prefixes that do not tell the whole key are ties, which cost a look at
 * the rows.
 *
 * What only one key of the sample begins with is likely to be what many of those to come do, if keys like it
 * have nodes.  One key does not tell where that ends, but the others do: behind the same bytes as theirs.
 *
 * Memory: as much as the caller allows, in CurrentMemoryContext.  Nothing is raised.
 *-------------------------------------------------------------------------
 */
#include "key/trie.h"

#include "key/learning.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"

#define MOST_NODES		16384	/* which have four times as many codes */
#define CODES			4		/* of a node at most: the gap before it, below, above, and its last gap */
#define LEAST_TAIL		2		/* bytes that two labels must end with alike */
#define ALONE_TOLD		4		/* bytes behind a beginning that tell its keys apart, as a rule */

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
	WsBeginning *node;
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
	WsBeginning *node = &b->node[b->nodes];
	Size		known = b->nodes == WS_TRIE_ROOT ? 0 : b->node[parent].length;

	if (b->nodes == b->most)
		return false;
	*node = (WsBeginning) {.parent = parent, .length = (uint16) length, .label = (int) b->labels};
	b->labels += length - known;
	if (range.to - range.from == 1)
		b->nalone++;
	else if (b->nodes != WS_TRIE_ROOT)
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
rank_children(Build *b, WsBeginning *node)
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
	if (!add_node(b, WS_TRIE_ROOT, (Range) {0, n}, 0))
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
	WsBeginning *node = &b->node[at];

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
	return sizeof(WsBeginnings) + b->nodes * (sizeof(WsBeginning) + CODES * sizeof(uint16)) + b->labels +
		b->ranks;
}

/* Notes which child is the first whose label begins with no lesser byte. */
static void
fill_ranks(WsBeginnings *b, const WsBeginning *node)
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
	b->node = palloc(build->nodes * sizeof(WsBeginning));
	b->labels = palloc0(build->labels + sizeof(uint64));
	b->ranks = palloc(build->ranks + 1);
	b->node_of = palloc(CODES * build->nodes * sizeof(uint16));
	b->reach = b->behind = WS_BEHIND_CODE;
	b->packing = NULL;
	b->node[WS_TRIE_ROOT] = build->node[WS_TRIE_ROOT];
	for (int i = WS_TRIE_ROOT + 1; i < build->nodes; i++)
	{
		WsBeginning *node = &b->node[i];
		Size		known;

		*node = build->node[i];
		known = b->node[node->parent].length;
		memcpy(b->labels + node->label, build->keys[build->range[i].from].bytes + known,
			   node->length - known);
		node->first = b->labels[node->label];
		b->reach = Max(b->reach, (Size) node->length + WS_BEHIND_CODE);
	}
	for (int i = WS_TRIE_ROOT; i < build->nodes; i++)
		fill_ranks(b, &b->node[i]);
	(void) number_nodes(b, WS_TRIE_ROOT, 0);
	return b;
}

/*
 * Makes the trie of what `keys`, a sample, begin with, in at most `most` bytes, as ws_beginnings_create has
 * it; nothing behind it is packed.
 */
WsBeginnings *
ws_trie_create(WsKeyBytes *keys, Size n, bool ends, Size most)
{
	MemoryContext context = CurrentMemoryContext;
	MemoryContext work = AllocSetContextCreate(context, "WiscSort beginnings", ALLOCSET_DEFAULT_SIZES);
	uint16	   *common;
	WsBeginnings *result;
	Build		b = {.keys = keys, .least = 2, .alone = true};
	Size		equal = 0;

	MemoryContextSwitchTo(work);
	b.most = Max(1, Min(MOST_NODES, most / sizeof(WsBeginning)));
	b.node = palloc(b.most * sizeof(WsBeginning));
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

