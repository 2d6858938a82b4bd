/*-------------------------------------------------------------------------
 * prefetch.c - hash tables of the joins below a sort, brought into the cache.
 *
 * A hash join above a sequential scan looks its rows up one at a time, and waits
 * for memory two or three times for each: for the bucket, the tuple in it, and
 * often the next one.  What the sort writes with each row drives the table out of
 * the cache all the faster.  So when the scan has come to a new page, the
 * key columns of all its visible rows are hashed here, and what the join
 * is going to look at is prefetched for all rows at once: first the buckets, then
 * their first tuples, then the second ones ("group prefetching": Chen, Ailamaki,
 * Gibbons and Mowry, Improving Hash Join Performance through Prefetching, 2004).
 *
 * The join does its work as ever; nothing is written, and a guess that is wrong,
 * such as for a row that the scan's condition drops, costs time only.  When few
 * rows come out for those that were looked at, it pauses.
 *
 * EXPLAIN ANALYZE counts this as the sort's time, and the join's is the shorter for it.
 *
 * Joins one above the other, by columns of the scanned table, are all served.
 * Not those whose table is small, or shared by parallel workers.  Keys must be
 * columns of fixed width or short text, hashed by PostgreSQL's own functions, which
 * then neither fetch anything nor fail.
 *
 * Core ÷ ours without this and with it: hash table of 0.8 MB 2.3 and 2.3, of 2.4 MB 1.7
 * and 2.7, of 100 MB 1.3 and 2.6 (5 M rows at 64 MB; docs/prefetch_joins.md has the tables and queries).
 *-------------------------------------------------------------------------
 */
#include "exec/below/below.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/transam.h"
#include "executor/hashjoin.h"
#include "executor/nodeHash.h"
#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#define CACHE_LINE		64

/*
 * Hash tables smaller than this are in the processor's own cache anyway (bytes).
 * Where assertions are on, all are served, so that the tests' are.
 */
#ifdef USE_ASSERT_CHECKING
#define SMALL_TABLE		((Size) 1)
#else
#define SMALL_TABLE		((Size) 1024 * 1024)
#endif

/* With more batches than these few rows are looked up while the table is scanned. */
#define MANY_BATCHES	4

/* Key columns further to the right take too long to find (attribute number). */
#define FAR_COLUMN		32

/* Pages between looks at how many rows came out, and to pass by if few did. */
#define LOOK_PAGES		32
#define PAUSE_PAGES		256

/* One key column of a join. */
typedef struct WsJoinKey
{
	AttrNumber	attno;			/* of the scanned table */
	bool		text;
	FmgrInfo	hash;
	Oid			collation;
} WsJoinKey;

typedef struct WsServedJoin
{
	HashJoinState *state;
	int			nkeys;
	WsJoinKey *keys;
} WsServedJoin;

struct WsPrefetch
{
	ScanState  *scan;
	List	   *joins;			/* of WsServedJoin, the lowest first */
	BlockNumber block;			/* the page looked at last */
	int			pause;			/* pages still to be passed by */
	int			pages;			/* looked at since `rows` and `hinted` were 0 */
	uint64		rows;			/* that came out of the joins */
	uint64		hinted;			/* of the pages looked at */
	uint64		total;			/* rows whose matches were prefetched, each join's */
	HashJoinTuple *buckets[MaxHeapTuplesPerPage];
};

/*
 * The column of the table at the bottom that `expr`, an expression of the join
 * `node`, stands for; NULL if it is not one.
 */
static const Var *
table_column(PlanState *node, Expr *expr)
{
	for (;;)
	{
		Var		   *var;
		TargetEntry *entry;

		while (IsA(expr, RelabelType))
			expr = ((RelabelType *) expr)->arg;
		var = (Var *) expr;
		if (!IsA(expr, Var) || var->varattno <= 0)
			return NULL;
		if (!IsA(node, HashJoinState))
			return var;
		if (var->varno != OUTER_VAR)
			return NULL;
		node = outerPlanState(node);
		entry = list_nth_node(TargetEntry, node->plan->targetlist, var->varattno - 1);
		expr = entry->expr;
	}
}

/* Sets *key to a hash key of the join and the function for it, if they qualify. */
static bool
served_key(WsJoinKey *key, HashJoinState *state, Expr *expr, Oid operator, Oid collation)
{
	const Var  *column = table_column(&state->js.ps, expr);
	RegProcedure function,
				right;
	int			length;

	if (column == NULL || column->varattno > FAR_COLUMN ||
		!get_op_hash_functions(operator, &function, &right) ||
		function >= FirstUnpinnedObjectId)
		return false;
	length = get_typlen(column->vartype);
	if (length <= 0 &&
		((function != F_HASHTEXT && function != F_HASHBPCHAR) ||
		 !OidIsValid(collation) ||	/* undetermined: core raises that, if it comes to it */
		 !get_collation_isdeterministic(collation)))
		return false;
	key->attno = column->varattno;
	key->text = length <= 0;
	key->collation = collation;
	fmgr_info(function, &key->hash);
	return true;
}

/* The join as one to be served, or NULL if it cannot be. */
static WsServedJoin *
served_join(HashJoinState *state)
{
	HashJoin   *plan = (HashJoin *) state->js.ps.plan;
	WsServedJoin *join = palloc0(sizeof(WsServedJoin));
	ListCell   *key,
			   *op,
			   *collation;

	join->state = state;
	join->keys = palloc0(list_length(plan->hashkeys) * sizeof(WsJoinKey));
	forthree(key, plan->hashkeys, op, plan->hashoperators, collation, plan->hashcollations)
	{
		if (!served_key(&join->keys[join->nkeys++], state, lfirst(key), lfirst_oid(op),
						lfirst_oid(collation)))
			return NULL;
	}
	return join;
}

/*
 * Prepares serving the hash joins of which `outer` is the highest, in
 * CurrentMemoryContext.  NULL if there are none that can be.
 */
WsPrefetch *
ws_prefetch_create(PlanState *outer)
{
	PlanState  *node = outer;
	List	   *joins = NIL;
	WsPrefetch *prefetch;

	for (; IsA(node, HashJoinState); node = outerPlanState(node))
	{
		WsServedJoin *join = served_join((HashJoinState *) node);

		if (join != NULL)
			joins = lcons(join, joins);
	}
	if (joins == NIL || !ws_scans_pages(node))
		return NULL;
	prefetch = palloc0(sizeof(WsPrefetch));
	prefetch->scan = (ScanState *) node;
	prefetch->joins = joins;
	prefetch->block = InvalidBlockNumber;
	return prefetch;
}

/* Is this text in the tuple as it is, and at most 126 bytes? */
static inline bool
is_short(const char *text)
{
	return VARATT_IS_SHORT(text) && !VARATT_IS_EXTERNAL(text);
}

/*
 * Sets *hash to the tuple's, as the join will; false for a null, which it passes
 * by, and for a text that is not short.
 */
static bool
hash_keys(const WsServedJoin *join, HeapTuple tuple, TupleDesc desc, uint32 *hash)
{
	*hash = 0;
	for (int i = 0; i < join->nkeys; i++)
	{
		WsJoinKey *k = &join->keys[i];
		bool		isnull;
		Datum		value = heap_getattr(tuple, k->attno, desc, &isnull);

		if (isnull || (k->text && !is_short(DatumGetPointer(value))))
			return false;
		*hash = pg_rotate_left32(*hash, 1) ^
			DatumGetUInt32(FunctionCall1Coll(&k->hash, k->collation, value));
	}
	return true;
}

static inline void
prefetch_tuple(HashJoinTuple tuple)
{
	if (tuple != NULL)
	{
		__builtin_prefetch(tuple);
		__builtin_prefetch((char *) tuple + CACHE_LINE);
	}
}

/* Prefetches what the rows of the page will be joined with. */
static void
prefetch_matches(WsPrefetch *prefetch, const WsServedJoin *join, HeapScanDesc page)
{
	HashJoinTable table = join->state->hj_HashTable;
	TupleDesc	desc = RelationGetDescr(prefetch->scan->ss_currentRelation);
	Page		data = BufferGetPage(page->rs_cbuf);
	HeapTupleData tuple = page->rs_ctup;
	int			ntuples = page->rs_ntuples;
	int			n = 0;

	/* with an empty table the join may have ended before it hashed its first row */
	if (table == NULL || table->parallel_state != NULL || table->totalTuples == 0 ||
		table->spaceUsed < SMALL_TABLE || table->nbatch > MANY_BATCHES)
		return;
	for (int i = 0; i < ntuples; i++)
	{
		ItemId		item = PageGetItemId(data, page->rs_vistuples[i]);
		uint32		hash;
		int			bucket,
					batch;

		tuple.t_data = (HeapTupleHeader) PageGetItem(data, item);
		tuple.t_len = ItemIdGetLength(item);
		if (!hash_keys(join, &tuple, desc, &hash))
			continue;
		/* of the row that has just come out, the join has the hash, too */
		Assert(i != (int) page->rs_cindex ||
			   outerPlanState(join->state) != (PlanState *) prefetch->scan ||
			   hash == join->state->hj_CurHashValue);
		ExecHashGetBucketAndBatch(table, hash, &bucket, &batch);
		if (batch != table->curbatch)
			continue;
		prefetch->buckets[n] = &table->buckets.unshared[bucket];
		__builtin_prefetch(prefetch->buckets[n++]);
	}
	for (int i = 0; i < n; i++)
		prefetch_tuple(*prefetch->buckets[i]);
	prefetch->total += n;
	for (int i = 0; i < n; i++)
		if (*prefetch->buckets[i] != NULL)
			prefetch_tuple((*prefetch->buckets[i])->next.unshared);
}

/* Rows of the scan whose matches were prefetched, counted for each join. */
uint64
ws_prefetch_count(const WsPrefetch *prefetch)
{
	return prefetch->total;
}

/* Is looking at this page worth while? */
static bool
is_worth(WsPrefetch *prefetch)
{
	if (prefetch->pause > 0)
	{
		prefetch->pause--;
		prefetch->rows = 0;
		return false;
	}
	if (++prefetch->pages > LOOK_PAGES)
	{
		if (prefetch->rows < prefetch->hinted / 4)
			prefetch->pause = PAUSE_PAGES;
		prefetch->pages = 0;
		prefetch->rows = 0;
		prefetch->hinted = 0;
	}
	return true;
}

/*
 * To be called for each row that has come out of the joins.  Raises nothing.
 */
void
ws_prefetch_row(WsPrefetch *prefetch)
{
	HeapScanDesc page = (HeapScanDesc) prefetch->scan->ss_currentScanDesc;
	ListCell   *cell;

	prefetch->rows++;
	if (likely(page == NULL || page->rs_cblock == prefetch->block))
		return;
	prefetch->block = page->rs_cblock;
	page = ws_scan_page(prefetch->scan);
	if (page == NULL || !is_worth(prefetch))
		return;
	prefetch->hinted += page->rs_ntuples;
	foreach(cell, prefetch->joins)
		prefetch_matches(prefetch, lfirst(cell), page);
}
