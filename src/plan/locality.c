/*-------------------------------------------------------------------------
 * locality.c - does an index find its rows together in the table, though these are in another order?
 *
 * Events that have the uuid of their session are written session by session: the scan of an index on it goes
 * to another page once in a session.  pg_stats.correlation compares the order of the whole table, is 0, and
 * core charges a page for nearly every row (docs/decisions/30-cost-model.md).
 *
 * So a few leaf pages of the index are read when a query is planned, as core reads the ends of an index for
 * the estimate of an inequality (get_actual_variable_range).  They are spread over the index by the golden
 * ratio, always the same ones.  Counted is how often a row is on another page of the table than the row
 * before.
 *
 * Memory: a fixed array, of what was found in this statement.  Of an index that is too small, or nearly
 * empty, nothing is said: its rows count as scattered, as those of other kinds of indexes.  Nothing is raised
 * but what reading a page may raise.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include <math.h>

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/spccache.h"

/*
 * Leaf pages that are read, at most, and pages that are looked at for them; of each, rows after which no
 * other tuple is counted; rows that say something.
 */
#define MOST_LEAVES		6
#define MOST_PAGES		16
#define MOST_ROWS		200
#define LEAST_ROWS		100

/*
 * What the visit of another page than that of the row before takes: in shared buffers, of cpu_tuple_cost (0.8
 * to 1.2 us); and what reading it there takes beyond, from the system's page cache, of seq_page_cost (2.5 to
 * 3.4 us).
 */
#define VISIT			22.0
#define READ			0.6

/* Of the rows that an index finds, those that are sorted at least. */
#define LEAST_SORTED	0.5

#define GOLDEN			0.6180339887

/* How many indexes are remembered. */
#define REMEMBERED		64

typedef struct Found
{
	Oid			index;
	BlockNumber pages;
	TimestampTz statement;
	double		scatter;
} Found;

/* Rows of an index that were looked at, and how many of them are on another page than the one before. */
typedef struct Counted
{
	int			rows;
	int			moves;
} Counted;

/* Counts rows of a leaf page.  Is it one? */
static bool
count_page(Page page, Counted *c)
{
	BTPageOpaque opaque;
	OffsetNumber last;
	BlockNumber before = InvalidBlockNumber;
	int			most = c->rows + MOST_ROWS;

	if (PageIsNew(page) || PageGetSpecialSize(page) != MAXALIGN(sizeof(BTPageOpaqueData)))
		return false;
	opaque = BTPageGetOpaque(page);
	if (!P_ISLEAF(opaque) || P_IGNORE(opaque))
		return false;
	last = PageGetMaxOffsetNumber(page);
	for (OffsetNumber i = P_FIRSTDATAKEY(opaque); i <= last && c->rows < most; i = OffsetNumberNext(i))
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
	return true;
}

/* Of the rows of an index, those that are on another page of the table than the row before; 1 if unknown. */
static double
measure(Oid indexid)
{
	Relation	index = index_open(indexid, NoLock);	/* the planner holds a lock */
	BlockNumber pages = RELATION_IS_OTHER_TEMP(index) ? 0 : RelationGetNumberOfBlocks(index);
	Counted		c = {0, 0};
	int			leaves = 0;

	/* the first page has no rows; of few pages, none is to be read often */
	for (int i = 0; i < MOST_PAGES && i + 1 < (int64) pages && leaves < MOST_LEAVES; i++)
	{
		double		place = fmod(0.5 + i * GOLDEN, 1);
		Buffer		buffer = ReadBuffer(index, 1 + (BlockNumber) (place * (pages - 1)));

		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		leaves += count_page(BufferGetPage(buffer), &c);
		UnlockReleaseBuffer(buffer);
	}
	index_close(index, NoLock);
	return c.rows < LEAST_ROWS ? 1 : (double) c.moves / c.rows;
}

/* The same, once for an index in a statement. */
static double
scatter_of(const IndexOptInfo *index)
{
	static Found all[REMEMBERED];
	Found	   *found = &all[index->indexoid % REMEMBERED];
	TimestampTz now = GetCurrentStatementStartTimestamp();

	if (index->relam != BTREE_AM_OID || index->hypothetical)
		return 1;
	if (found->index != index->indexoid || found->statement != now || found->pages != index->pages)
	{
		found->index = InvalidOid;	/* should an error come */
		found->scatter = measure(index->indexoid);
		found->statement = now;
		found->pages = index->pages;
		found->index = index->indexoid;
	}
	return found->scatter;
}

/* Of the pages of a table, those that are beyond so many bytes of memory. */
static double
beyond(const RelOptInfo *rel, double memory)
{
	double		table = (double) rel->pages * BLCKSZ;

	return table > memory ? 1 - memory / table : 0;
}

/* Of the pages of the table that a path reads, those that shared buffers do not hold. */
static double
unbuffered(const IndexPath *path)
{
	bool		temporary = get_rel_persistence(path->indexinfo->indexoid) == RELPERSISTENCE_TEMP;

	return beyond(path->path.parent, (double) (temporary ? num_temp_buffers : NBuffers) * BLCKSZ);
}

/*
 * Does a path scan an index that takes less than `cost`, that of a WiscSort, by what its pages say of where
 * its rows are?  What it is charged for the index itself, and for conditions, is core's.
 *
 * A WiscSort reads the table's pages in their order, which takes next to nothing where shared buffers hold
 * them.  It is charged less than it takes for the rows instead: if it has all, one makes up for the other.
 * Of fewer rows, it is taken off the costs.  If it has less than half of those that the index finds, it may
 * find them otherwise, and nothing is said.
 */
bool
ws_index_takes_less(const Path *path, Cost cost)
{
	const IndexPath *scan = (const IndexPath *) path;
	const RelOptInfo *rel = path->parent;
	double		rows;
	double		share;
	double		missing;
	double		random_page;
	double		seq_page;
	Cost		charge;
	Cost		visit;

	if (!IsA(path, IndexPath) || path->param_info != NULL)
		return false;
	rows = clamp_row_est(scan->indexselectivity * rel->tuples);
	if (rel->rows < LEAST_SORTED * rows)
		return false;
	share = path->parallel_workers > 0 ? Min(1, path->rows / Max(rel->rows, 1)) : 1;
	missing = unbuffered(scan);
	get_tablespace_page_costs(rel->reltablespace, &random_page, &seq_page);
	cost -= seq_page * rel->pages * (1 - Min(1, rel->rows / Max(rel->tuples, 1))) * (1 - missing);
	charge = scan->indextotalcost + rel->baserestrictcost.startup + path->pathtarget->cost.startup +
		share * rows * (cpu_tuple_cost + rel->baserestrictcost.per_tuple) +
		path->rows * path->pathtarget->cost.per_tuple;
	if (charge >= cost)
		return false;
	visit = share * VISIT * cpu_tuple_cost + READ * seq_page * missing +
		random_page * beyond(rel, ws_page_cache()->bytes);
	if (path->pathtype == T_IndexOnlyScan)
		visit *= 1 - rel->allvisfrac;
	return charge + rows * scatter_of(scan->indexinfo) * visit < cost;
}
