/*-------------------------------------------------------------------------
 * leaves.c - how many of the rows that the scan of an index finds are on another page than the one before?
 *
 * That is not the same for all values: the rows of the tenant who has most of an append-only table lie
 * together, and those of 2,000 others do not.  So it is asked of the range of the index that the scan reads:
 * where the first columns are equal to values that are known, or null, and the next one is in an interval.
 * With no such condition the range is the whole index.
 *
 * A few leaf pages are read when a query is planned, as core reads the ends of an index for the estimate of
 * an inequality (get_actual_variable_range).  From the root down, a child is taken of those that have a part
 * of the range: by the golden ratio, always the same ones.  A range is what is between two cuts, which are
 * found as an index scan finds where it begins: by the keys and comparisons of nbtree.
 *
 * One page is locked at a time.  One that has been split since its parent was read, or deleted, has fewer
 * tuples of the range, or none; one that has a new use is told by its level, and by the comparisons.  Nothing
 * is written to pages, and no snapshot is used: rows that nobody sees count, unless they are known as dead.
 *
 * Memory: a fixed array, of what was found in this statement, and two keys for a moment.  Of an index that is
 * too small, or nearly empty, nothing is said: its rows count as scattered, as those of other kinds of
 * indexes.  Values of conditions are constants, or come from PostgreSQL's own stable functions.  Nothing is
 * raised but what a scan of the index may raise.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include <math.h>

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "common/hashfn.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "optimizer/optimizer.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/*
 * Leaf pages that are read, at most, and how often one is looked for; of each, rows after which no other
 * tuple is counted; rows that say something.
 */
#define MOST_LEAVES		6
#define MOST_DESCENTS	10
#define MOST_ROWS		200
#define LEAST_ROWS		100

#define GOLDEN			0.6180339887

/* How many ranges are remembered. */
#define REMEMBERED		64

/* What a condition says of where a column's values begin, or end, in the order of the index. */
typedef struct Bound
{
	bool		known;
	bool		after;			/* of equal values, behind all; else before all */
	bool		null;
	Datum		value;
	Oid			compare;		/* if the value is of another type than the index has */
	uint32		hash;
} Bound;

/* A range of an index: columns that have one value each, and the bounds of the next one. */
typedef struct Range
{
	int			equal;
	Bound		values[INDEX_MAX_KEYS];
	Bound		low;
	Bound		high;
} Range;

/* Where a range begins or ends: before, or after, the tuples that begin as `key` has it. */
typedef struct Cut
{
	BTScanInsert key;			/* NULL: at the end of the index */
	bool		after;
} Cut;

typedef struct Found
{
	Oid			index;
	uint32		range;
	BlockNumber pages;
	TimestampTz statement;
	double		scatter;
} Found;

/* Rows of an index that were looked at, and how many of them are on another page than the one before. */
typedef struct Counted
{
	int			rows;
	int			moves;
	int			leaves;
	BlockNumber seen[MOST_LEAVES];
} Counted;

static bool
is_users(Oid function, void *context)
{
	return function >= FirstNormalObjectId;
}

/* Does an expression call a function that is not PostgreSQL's own?  It may take long, or have effects. */
static bool
calls_users(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return check_functions_in_node(node, is_users, context) ||
		expression_tree_walker(node, calls_users, context);
}

/* The bound by a value, of the operator's type; not known if it cannot be had before the query runs. */
static Bound
bound_by(PlannerInfo *root, const IndexOptInfo *index, int column, Node *value, Oid type, bool after)
{
	Bound		bound = {.after = after};
	const Const *constant;

	if (!IsA(value, Const) && !calls_users(value, NULL))
		value = estimate_expression_value(root, value);
	if (!IsA(value, Const) || ((Const *) value)->constisnull)
		return bound;
	constant = (Const *) value;
	if (type != index->opcintype[column])
	{
		bound.compare = get_opfamily_proc(index->opfamily[column], index->opcintype[column], type,
										  BTORDER_PROC);
		if (!OidIsValid(bound.compare))
			return bound;
	}
	bound.known = true;
	bound.value = constant->constvalue;
	bound.hash = hash_combine(type, datum_image_hash(bound.value, constant->constbyval, constant->constlen));
	return bound;
}

/* Narrows a column's range by one condition; of several bounds the last counts.  Has it one value then? */
static bool
narrow(PlannerInfo *root, const IndexOptInfo *index, int column, const Expr *clause, Range *range)
{
	const OpExpr *op = (const OpExpr *) clause;
	int			strategy;
	Oid			left;
	Oid			right;
	Node	   *value;

	if (IsA(clause, NullTest))
	{
		bool		null = ((const NullTest *) clause)->nulltesttype == IS_NULL;
		/* nulls are at one end of the others */
		bool		first = index->nulls_first[column];
		Bound	   *bound = first ? &range->low : &range->high;

		if (null)
			range->values[column] = (Bound) {.known = true, .null = true};
		else if (!bound->known)
			*bound = (Bound) {.known = true, .null = true, .after = first};
		return null;
	}
	if (!IsA(clause, OpExpr) || list_length(op->args) != 2 ||
		get_op_opfamily_strategy(op->opno, index->opfamily[column]) == 0)
		return false;
	get_op_opfamily_properties(op->opno, index->opfamily[column], false, &strategy, &left, &right);
	value = lsecond(op->args);
	if (strategy == BTEqualStrategyNumber)
	{
		range->values[column] = bound_by(root, index, column, value, right, false);
		return range->values[column].known;
	}
	else
	{
		bool		less = strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber;
		bool		same = strategy == BTLessEqualStrategyNumber || strategy == BTGreaterEqualStrategyNumber;
		bool		high = less != index->reverse_sort[column];
		Bound		bound = bound_by(root, index, column, value, right, same == high);

		if (bound.known)
			*(high ? &range->high : &range->low) = bound;
		return false;
	}
}

/* The range of its index that a path reads, as far as it is known. */
static void
find_range(PlannerInfo *root, const IndexPath *path, Range *range)
{
	const IndexOptInfo *index = path->indexinfo;
	bool		equal = true;

	range->equal = 0;
	for (int column = 0; column < index->nkeycolumns && equal; column++)
	{
		ListCell   *lc;

		range->low.known = range->high.known = equal = false;
		foreach(lc, path->indexclauses)
		{
			const IndexClause *clause = lfirst_node(IndexClause, lc);
			ListCell   *qual;

			if (clause->indexcol != column)
				continue;
			foreach(qual, clause->indexquals)
				if (!equal)
					equal = narrow(root, index, column, lfirst_node(RestrictInfo, qual)->clause, range);
		}
		if (equal)
			range->equal++;
		else if (range->low.known != range->high.known)
		{
			bool		first = index->nulls_first[column];
			Bound	   *other = first ? &range->low : &range->high;

			/* what is compared is not null */
			if (!other->known)
				*other = (Bound) {.known = true, .null = true, .after = first};
		}
	}
	/* the last column has one value: so there is none behind */
	if (equal)
		range->low.known = range->high.known = false;
}

static uint32
hash_bound(uint32 hash, const Bound *bound)
{
	return hash_combine(hash, bound->known ? bound->hash * 8 + bound->null * 4 + bound->after * 2 + 1 : 0);
}

static uint32
hash_range(const Range *range)
{
	uint32		hash = range->equal;

	for (int i = 0; i < range->equal; i++)
		hash = hash_bound(hash, &range->values[i]);
	return hash_bound(hash_bound(hash, &range->low), &range->high);
}

static void
put_value(ScanKey scankey, const Bound *bound)
{
	if (bound->null)			/* as it was made */
		return;
	scankey->sk_flags &= ~SK_ISNULL;
	scankey->sk_argument = bound->value;
	if (OidIsValid(bound->compare))
		fmgr_info(bound->compare, &scankey->sk_func);
}

/* The cut at an end of a range, by the columns that are equal and a bound of the next. */
static Cut
cut_by(Relation index, const Range *range, const Bound *bound, bool end)
{
	Cut			cut = {NULL, end};

	if (range->equal == 0 && !bound->known)
		return cut;
	cut.key = _bt_mkscankey(index, NULL);
	_bt_metaversion(index, &cut.key->heapkeyspace, &cut.key->allequalimage);
	for (int i = 0; i < range->equal; i++)
		put_value(&cut.key->scankeys[i], &range->values[i]);
	if (bound->known)
	{
		put_value(&cut.key->scankeys[range->equal], bound);
		cut.after = bound->after;
	}
	cut.key->keysz = range->equal + bound->known;
	return cut;
}

/* The first tuple of a page that is not before a cut; the number behind the last if there is none. */
static OffsetNumber
behind_cut(Relation index, Page page, const Cut *cut)
{
	OffsetNumber low = P_FIRSTDATAKEY(BTPageGetOpaque(page));
	OffsetNumber high = OffsetNumberNext(PageGetMaxOffsetNumber(page));

	while (low < high)
	{
		OffsetNumber middle = low + (high - low) / 2;
		int32		order = _bt_compare(index, cut->key, page, middle);

		if (order > 0 || (order == 0 && cut->after))
			low = OffsetNumberNext(middle);
		else
			high = middle;
	}
	return low;
}

/* Counts rows of tuples of a leaf page, from `first` to the one before `end`. */
static void
count_rows(Page page, OffsetNumber first, OffsetNumber end, Counted *c)
{
	BlockNumber before = InvalidBlockNumber;
	int			most = c->rows + MOST_ROWS;

	for (OffsetNumber i = first; i < end && c->rows < most; i = OffsetNumberNext(i))
	{
		ItemId		item = PageGetItemId(page, i);
		IndexTuple	tuple;
		ItemPointer tids;
		int			n = 1;

		if (!ItemIdIsNormal(item))	/* its row is dead */
			continue;
		tuple = (IndexTuple) PageGetItem(page, item);
		tids = &tuple->t_tid;
		if (BTreeTupleIsPosting(tuple))
		{
			n = BTreeTupleGetNPosting(tuple);
			tids = BTreeTupleGetPosting(tuple);
		}
		for (int j = 0; j < n; j++)
		{
			BlockNumber block = ItemPointerGetBlockNumberNoCheck(&tids[j]);

			if (before != InvalidBlockNumber)
			{
				c->rows++;
				c->moves += block != before;
			}
			before = block;
		}
	}
}

/* Has this page of an index tuples of that level? */
static bool
is_of_level(Page page, uint32 level)
{
	BTPageOpaque opaque;

	if (PageIsNew(page) || PageGetSpecialSize(page) != MAXALIGN(sizeof(BTPageOpaqueData)))
		return false;
	opaque = BTPageGetOpaque(page);
	return !P_IGNORE(opaque) && !P_ISMETA(opaque) && opaque->btpo_level == level &&
		PageGetMaxOffsetNumber(page) >= P_FIRSTDATAKEY(opaque);
}

/*
 * Goes down from the root at a `block` to the leaf that is at a `place` in the range, from 0 to 1, and counts
 * its rows, unless it has been seen.
 */
static void
descend(Relation index, BlockNumber block, uint32 level, Cut low, Cut high, double place, Counted *c)
{
	for (;; level--)
	{
		Buffer		buffer;
		Page		page;
		bool		here;
		OffsetNumber first;
		OffsetNumber end;

		for (int i = 0; level == 0 && i < c->leaves; i++)
			if (c->seen[i] == block)
				return;
		buffer = ReadBuffer(index, block);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buffer);
		here = is_of_level(page, level);
		if (here)
		{
			first = P_FIRSTDATAKEY(BTPageGetOpaque(page));
			end = OffsetNumberNext(PageGetMaxOffsetNumber(page));
			if (high.key != NULL)
				end = behind_cut(index, page, &high);
			if (low.key != NULL)
				first = behind_cut(index, page, &low);
			if (level > 0 && low.key != NULL)
				first = OffsetNumberPrev(first);	/* whose child has the cut */
			here = first < end;
		}
		if (here && level == 0)
		{
			c->seen[c->leaves++] = block;
			count_rows(page, first, end, c);
		}
		else if (here)
		{
			double		at = place * (end - first);
			OffsetNumber child = first + (OffsetNumber) at;

			place = at - floor(at);
			if (child > first)
				low.key = NULL;
			if (child < OffsetNumberPrev(end))
				high.key = NULL;
			block = BTreeTupleGetDownLink((IndexTuple) PageGetItem(page, PageGetItemId(page, child)));
		}
		UnlockReleaseBuffer(buffer);
		if (!here || level == 0)
			return;
	}
}

/* Where the descent into an index begins; InvalidBlockNumber if there is nothing. */
static BlockNumber
find_root(Relation index, uint32 *level)
{
	Buffer		buffer = ReadBuffer(index, BTREE_METAPAGE);
	BlockNumber root = InvalidBlockNumber;
	Page		page = BufferGetPage(buffer);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (!PageIsNew(page) && BTPageGetMeta(page)->btm_magic == BTREE_MAGIC &&
		BTPageGetMeta(page)->btm_root != P_NONE)
	{
		root = BTPageGetMeta(page)->btm_fastroot;
		*level = BTPageGetMeta(page)->btm_fastlevel;
	}
	UnlockReleaseBuffer(buffer);
	return root;
}

/* Of the rows in a range of an index, those that are on another page than the one before; 1 if unknown. */
static double
measure(Oid indexid, const Range *range)
{
	Relation	index = index_open(indexid, NoLock);	/* the planner holds a lock */
	uint32		level = 0;
	BlockNumber root = RELATION_IS_OTHER_TEMP(index) ? InvalidBlockNumber : find_root(index, &level);
	Counted		c = {.rows = 0};

	if (root != InvalidBlockNumber)
	{
		Cut			low = cut_by(index, range, &range->low, false);
		Cut			high = cut_by(index, range, &range->high, true);

		for (int i = 0; i < MOST_DESCENTS && c.leaves < MOST_LEAVES; i++)
			descend(index, root, level, low, high, fmod(0.5 + i * GOLDEN, 1), &c);
		if (low.key != NULL)
			pfree(low.key);
		if (high.key != NULL)
			pfree(high.key);
	}
	index_close(index, NoLock);
	return c.rows < LEAST_ROWS ? 1 : (double) c.moves / c.rows;
}

/* The same, of the range that a path reads, once in a statement. */
double
ws_index_scatter(PlannerInfo *root, const IndexPath *path)
{
	static Found all[REMEMBERED];
	const IndexOptInfo *index = path->indexinfo;
	TimestampTz now = GetCurrentStatementStartTimestamp();
	Range		range;
	uint32		hash;
	Found	   *found;

	if (index->relam != BTREE_AM_OID || index->hypothetical || index->pages < 2)
		return 1;
	find_range(root, path, &range);
	hash = hash_range(&range);
	found = &all[(index->indexoid + hash) % REMEMBERED];
	if (found->index != index->indexoid || found->range != hash || found->statement != now ||
		found->pages != index->pages)
	{
		found->index = InvalidOid;	/* should an error come */
		found->scatter = measure(index->indexoid, &range);
		found->range = hash;
		found->statement = now;
		found->pages = index->pages;
		found->index = index->indexoid;
	}
	return found->scatter;
}
