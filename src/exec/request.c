/*-------------------------------------------------------------------------
 * request.c - a sort's request: written by the planner, read by the executor.
 *
 * A plan may be copied, and sent to parallel workers, so that it holds lists and
 * values: the request becomes the list custom_private, with a member for each of
 * the names below.
 *
 * That a column is NOT NULL saves its null byte, but the planner saw today's constraints. A
 * snapshot from before SET NOT NULL still sees the nulls that were there: under
 * REPEATABLE READ, and in a STABLE function, which has its caller's snapshot. So a constraint
 * counts only if the snapshot sees it, too (constraint_holds).
 *
 * Settings are looked at when the sort begins.  Nothing below exec/ reads them.
 *-------------------------------------------------------------------------
 */
#include "exec/exec.h"

#include "access/htup_details.h"
#include "access/reloptions.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_tablespace.h"
#include "commands/tablespace.h"
#include "guc.h"
#include "index/index.h"
#include "key/key.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/spccache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

/*
 * What one sort counts on, of effective_cache_size and of the memory that is there, which its input and
 * others use, too.  (2.4 GB of rows of 100 bytes with 1 GB of memory, core 22 s: 100 MB 11.7 s, 200 MB
 * 12.1 s, 300 MB 13.4 s, 450 MB 22 s.  Four sorts of 250 MB at once: in files 0.9 of core, travelling 1.5.)
 */
#define SETTING_SHARE		0.5
#define MEMORY_SHARE		0.2

/* Rows that need not be copied are, if that stays below so much of what limits there are. */
#define LIMIT_SHARE			0.5

/* A spool may become runs if it, these, and the runs of entries that it has are below so much of them. */
#define LIMIT_FOR_RUNS		0.9

/* Bytes of rows, below which what was found for a statement a second ago is believed. */
#define SMALL_SPOOL			(16.0 * 1024 * 1024)

/* Of a file of runs of rows so many times as much may stay in the page cache: what goes is read in order. */
#define STAYS				3

/*
 * Bytes of an extent of a striped file.  So much may be on its way behind what is appended to a member
 * (file/tempfile.c): with larger ones, members would wait for each other.
 */
#define EXTENT				((int64) 8 * 1024 * 1024)
#define EXTENT_UNIT			((int64) 64 * 1024)

#define ROW_OVERHEAD		14		/* bytes of a row in the spool beside its data */
#define LEAST_ROW_OVERHEAD	8		/* at least */

/* What custom_private has: another number whenever its members, or what they mean, change. */
#define PLAN_LAYOUT			1

enum
{
	PRIVATE_LAYOUT,
	PRIVATE_ATTNOS,
	PRIVATE_SORTOPS,
	PRIVATE_COLLATIONS,
	PRIVATE_NULLS_FIRST,
	PRIVATE_TABLES,				/* of NOT NULL constraints */
	PRIVATE_COLUMNS,
	PRIVATE_STORE,
	PRIVATE_WHY,
	PRIVATE_ROWS,
	PRIVATE_WIDTH,
	PRIVATE_SHARERS,
	PRIVATE_TIES,
	PRIVATE_TABLE_COLUMNS,		/* NIL unless rows stay in their table */
	PRIVATE_QUERY,
	PRIVATE_COUNT
};

/* An empty request with room for `ncols` sort columns, in CurrentMemoryContext. */
WsRequest *
ws_request_create(int ncols)
{
	WsRequest  *r = palloc0(sizeof(WsRequest));

	r->ncols = ncols;
	r->attnos = palloc0(ncols * sizeof(AttrNumber));
	r->sortops = palloc0(ncols * sizeof(Oid));
	r->collations = palloc0(ncols * sizeof(Oid));
	r->nulls_first = palloc0(ncols * sizeof(bool));
	r->notnull = palloc0(ncols * sizeof(bool));
	return r;
}

/*
 * The planner's part of a request as a list for custom_private.  `constraints` has a
 * member for each sort column; request->notnull is not written.
 */
List *
ws_request_write(const WsRequest *r, const WsConstraint *constraints)
{
	List	   *attnos = NIL;
	List	   *sortops = NIL;
	List	   *collations = NIL;
	List	   *nulls_first = NIL;
	List	   *tables = NIL;
	List	   *columns = NIL;
	List	   *table_columns = NIL;
	List	   *private;

	for (int i = 0; i < r->ncols; i++)
	{
		attnos = lappend_int(attnos, r->attnos[i]);
		sortops = lappend_oid(sortops, r->sortops[i]);
		collations = lappend_oid(collations, r->collations[i]);
		nulls_first = lappend_int(nulls_first, r->nulls_first[i]);
		tables = lappend_oid(tables, constraints[i].table);
		columns = lappend_int(columns, constraints[i].column);
		if (r->columns != NULL)
			table_columns = lappend_int(table_columns, r->columns[i]);
	}
	private = list_make5(makeInteger(PLAN_LAYOUT), attnos, sortops, collations, nulls_first);
	private = lappend(private, tables);
	private = lappend(private, columns);
	private = lappend(private, makeInteger(r->store));
	private = lappend(private, makeString(pstrdup(r->why)));
	/* with a point: sent to a worker, a number without one comes as an Integer */
	private = lappend(private, makeFloat(psprintf("%.1f", r->rows)));
	private = lappend(private, makeFloat(psprintf("%.1f", r->width)));
	private = lappend(private, makeInteger(r->sharers));
	private = lappend(private, makeInteger(r->ties));
	private = lappend(private, table_columns);
	private = lappend(private, makeString(pstrdup("0")));
	Assert(list_length(private) == PRIVATE_COUNT);
	return private;
}

/*
 * Notes the identifier of the query in a list that ws_request_write has made: what a parallel worker is told
 * of it is that of the statement which the client has sent.
 */
void
ws_request_note_query(List *private, int64 query)
{
	lfirst(list_nth_cell(private, PRIVATE_QUERY)) = makeString(psprintf(INT64_FORMAT, query));
}

/* Was a row of the catalogs there when the snapshot was taken?  Not if it is our own. */
static bool
was_there(HeapTuple tuple, Snapshot snapshot)
{
	TransactionId xmin = HeapTupleHeaderGetXmin(tuple->t_data);

	if (!TransactionIdIsNormal(xmin))
		return true;
	return !TransactionIdIsCurrentTransactionId(xmin) && !XidInMVCCSnapshot(xmin, snapshot);
}

/* Does the constraint hold for every row that the snapshot sees? */
static bool
constraint_holds(Oid table, AttrNumber column, Snapshot snapshot)
{
	HeapTuple	tuple;
	bool		holds;

	if (!OidIsValid(table) || snapshot == NULL || !IsMVCCSnapshot(snapshot))
		return false;
	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(table), Int16GetDatum(column));
	if (!HeapTupleIsValid(tuple))
		return false;
	holds = was_there(tuple, snapshot);
	ReleaseSysCache(tuple);
	if (!holds)
		return false;

	/* 18 keeps a row for the constraint, which tells when it was validated */
	tuple = ws_notnull_constraint(table, column);
	return tuple == NULL || was_there(tuple, snapshot);
}

/* Do all NOT NULL constraints of a table, whose rows `desc` describes, hold for the rows of a snapshot? */
bool
ws_constraints_hold(TupleDesc desc, Oid table, Snapshot snapshot)
{
	for (int i = 0; i < desc->natts; i++)
		if (ws_attribute_notnull(desc, i + 1) && !constraint_holds(table, i + 1, snapshot))
			return false;
	return true;
}

/* The widths of the sort columns, with their null bytes. */
static WsKeyWidth
width_of(const WsRequest *r)
{
	WsKeyWidth	all = WS_NO_WIDTH;

	for (int i = 0; i < r->ncols; i++)
		ws_key_width_add(&all, r->sortops[i], r->collations[i], r->notnull[i]);
	return all;
}

/* Are the sort columns, with their null bytes, decodable and no longer than a prefix? */
bool
ws_request_keys_fit(const WsRequest *r)
{
	WsKeyWidth	all = width_of(r);

	return all.decodable && ws_prefix_holds(&all);
}

/*
 * Has this build of the library made a plan?  A parallel worker loads the file that is there now, which may
 * have been replaced since its leader's session began.
 */
static void
check_layout(const List *private)
{
	Node	   *layout = linitial(private);

	if (!IsA(layout, Integer) || intVal(layout) != PLAN_LAYOUT || list_length(private) != PRIVATE_COUNT)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the plan was made by another build of wiscsort"),
				 errdetail("The library has been replaced since this session began."),
				 errhint("Connect again.")));
}

/*
 * The request that ws_request_write has written, for rows that `snapshot` sees, in
 * CurrentMemoryContext.  What is the executor's is still to be set.
 */
WsRequest *
ws_request_read(List *private, Snapshot snapshot)
{
	List	   *attnos;
	List	   *sortops;
	List	   *collations;
	List	   *nulls_first;
	List	   *tables;
	List	   *columns;
	List	   *table_columns;
	WsRequest  *r;
	WsKeyWidth	all;

	check_layout(private);
	attnos = list_nth(private, PRIVATE_ATTNOS);
	sortops = list_nth(private, PRIVATE_SORTOPS);
	collations = list_nth(private, PRIVATE_COLLATIONS);
	nulls_first = list_nth(private, PRIVATE_NULLS_FIRST);
	tables = list_nth(private, PRIVATE_TABLES);
	columns = list_nth(private, PRIVATE_COLUMNS);
	table_columns = list_nth(private, PRIVATE_TABLE_COLUMNS);
	r = ws_request_create(list_length(attnos));
	for (int i = 0; i < r->ncols; i++)
	{
		r->attnos[i] = (AttrNumber) list_nth_int(attnos, i);
		r->sortops[i] = list_nth_oid(sortops, i);
		r->collations[i] = list_nth_oid(collations, i);
		r->nulls_first[i] = list_nth_int(nulls_first, i) != 0;
		r->notnull[i] = constraint_holds(list_nth_oid(tables, i),
										 (AttrNumber) list_nth_int(columns, i), snapshot);
	}
	r->store = (WsStoreKind) intVal(list_nth(private, PRIVATE_STORE));
	r->why = strVal(list_nth(private, PRIVATE_WHY));
	r->rows = floatVal(list_nth(private, PRIVATE_ROWS));
	r->width = floatVal(list_nth(private, PRIVATE_WIDTH));
	r->sharers = intVal(list_nth(private, PRIVATE_SHARERS));
	r->ties = (WsTieKeys) intVal(list_nth(private, PRIVATE_TIES));
	r->query = (int64) strtoll(strVal(list_nth(private, PRIVATE_QUERY)), NULL, 10);
	if (table_columns != NIL)
	{
		r->columns = palloc(r->ncols * sizeof(AttrNumber));
		for (int i = 0; i < r->ncols; i++)
			r->columns[i] = (AttrNumber) list_nth_int(table_columns, i);
	}
	/* what the snapshot sees of NOT NULL constraints may make keys shorter */
	all = width_of(r);
	if (ws_prefix_holds(&all))
		r->ties = WS_TIES_NONE;
	if (r->store == WS_KIND_KEYS && !ws_request_keys_fit(r))
	{
		r->store = WS_KIND_SPOOL;
		r->why = "a NOT NULL constraint is younger than the snapshot";
	}
	return r;
}

/*
 * Sets which columns of its table, whose rows are described by `desc`, a sort that leaves rows there is asked
 * for: request->needed, unless it is asked for more of the rows than columns.  NOT NULL columns are needed
 * anyhow, because code that is compiled for rows of the table (jit) does not look whether they are null.  In
 * CurrentMemoryContext.
 */
void
ws_request_note_columns(WsRequest *r, const CustomScan *plan, TupleDesc desc)
{
	Bitmapset  *columns = NULL;
	int			member = -1;
	bool		all;

	Assert(r->store == WS_KIND_HEAP);
	pull_varattnos((Node *) plan->scan.plan.targetlist, plan->scan.scanrelid, &columns);
	for (int i = 0; i < r->ncols; i++)
		columns = bms_add_member(columns, r->columns[i] - FirstLowInvalidHeapAttributeNumber);
	all = bms_is_member(-FirstLowInvalidHeapAttributeNumber, columns);
	r->needed = palloc(desc->natts * sizeof(bool));
	for (int i = 0; i < desc->natts; i++)
		r->needed[i] = all || TupleDescAttr(desc, i)->attnotnull;
	while ((member = bms_next_member(columns, member)) >= 0)
	{
		AttrNumber	attno = member + FirstLowInvalidHeapAttributeNumber;

		if (attno > 0)
			r->needed[attno - 1] = true;
		else if (attno < 0)
		{
			r->needed = NULL;
			break;
		}
	}
	bms_free(columns);
}

/* What a setting of threads means now: a parallel query, or one processor, leaves nothing to gain. */
static int
resolve_threads(int setting)
{
	static TimestampTz asked = 0;
	static bool alone;

	/* once a statement: a system call for each of many small sorts takes as long as they */
	if (asked == 0 || asked != GetCurrentStatementStartTimestamp())
	{
		asked = GetCurrentStatementStartTimestamp();
		alone = ws_processors() < 2;
	}
	return setting < 0 && (IsInParallelMode() || alone) ? 0 : setting;
}

/* The bytes that a spool of `rows` rows with `width` bytes of data each has, about. */
double
ws_spool_bytes(double rows, double width)
{
	return rows * (width + ROW_OVERHEAD);
}

/*
 * The bytes of a sort's files that the page cache can be expected to hold, for each of `sharers` sorts of
 * parts of one input.  What was found `still` microseconds ago, or later, holds.  *bound is set
 * to what it comes from, for EXPLAIN.
 */
static int64
cache_found(int sharers, int64 still, const char **bound)
{
	const WsMemory *found;
	int64		setting = (int64) ((double) effective_cache_size * BLCKSZ * SETTING_SHARE);
	int64		memory;

	if (ws_cache_size >= 0)
	{
		*bound = "wiscsort.cache_size";
		return (int64) ws_cache_size * 1024;
	}
	found = ws_memory_once(GetCurrentTimestamp(), still);
	memory = (int64) ((double) found->bytes * MEMORY_SHARE);
	*bound = ws_memory_bound_name(setting <= memory ? WS_BOUND_NONE : found->bound);
	return Min(setting, memory) / sharers;
}

/*
 * The bytes that a spool's file may have: of an input with more, all rows travel inside runs.  What was found
 * `still` microseconds ago, or later, holds.  *bound is set to what it comes from, or to NULL if the setting
 * of the store decides.
 */
int64
ws_spool_allowance(int sharers, int64 still, const char **bound)
{
	*bound = NULL;
	if (ws_record_store == WS_STORE_SPOOL || ws_record_store == WS_STORE_HEAP)
		return PG_INT64_MAX;
	if (ws_record_store == WS_STORE_INLINE)
		return 0;
	return cache_found(sharers, still, bound);
}

/*
 * Is random reading as cheap as sequential in a tablespace, by its own options, as on persistent memory?
 * The server's random_page_cost does not say that: many set it to 1 for SSDs, and there a row that is read
 * for itself still costs far more than one in memory.
 */
bool
ws_needs_no_cache(Oid tablespace)
{
	Oid			place = OidIsValid(tablespace) ? tablespace : MyDatabaseTableSpace;
	double		random_page;
	double		seq_page;
	HeapTuple	tuple;
	Datum		datum;
	bool		missing;
	bool		own = false;

	get_tablespace_page_costs(place, &random_page, &seq_page);
	if (random_page > seq_page)
		return false;
	tuple = SearchSysCache1(TABLESPACEOID, ObjectIdGetDatum(place));
	if (!HeapTupleIsValid(tuple))
		return false;
	datum = SysCacheGetAttr(TABLESPACEOID, tuple, Anum_pg_tablespace_spcoptions, &missing);
	if (!missing)
	{
		TableSpaceOpts *options = (TableSpaceOpts *) tablespace_reloptions(datum, false);

		own = options->random_page_cost >= 0 || options->seq_page_cost >= 0;
		pfree(options);
	}
	ReleaseSysCache(tuple);
	return own;
}

/*
 * Is the table too large, as the planner would find now, to stay in memory until its rows are handed out?
 * The plan may be older than that.
 */
static bool
has_outgrown_memory(const WsRequest *r, Relation rel)
{
	double		bytes = (double) RelationGetNumberOfBlocks(rel) * BLCKSZ;

	return ws_record_store == WS_STORE_AUTO && !ws_debug_force &&
		bytes > WS_CACHE_SHARE * (double) r->cache && !ws_needs_no_cache(rel->rd_rel->reltablespace);
}

/* Do so many bytes of temporary files stay well below what limits there are? */
static bool
within_limits(double bytes)
{
	return (temp_file_limit < 0 || bytes < LIMIT_SHARE * 1024 * temp_file_limit) &&
		(ws_max_temp < 0 || bytes < LIMIT_SHARE * 1024 * ws_max_temp);
}

/*
 * Lowers the allowance of a sort, whose spool of `bytes` bytes is expected to keep it, to what may become
 * runs on the way within a limit in kB; -1: there is none.
 */
static void
heed_limit(WsRequest *r, double bytes, double width, int limit, const char *name)
{
	double		row = width + LEAST_ROW_OVERHEAD;
	double		most = LIMIT_FOR_RUNS * 1024 * limit * row / (2 * row + 2 * sizeof(WsEntry));

	if (limit < 0 || bytes > most || (double) r->allowance <= most)
		return;
	r->found = r->allowance = (int64) most;
	r->bound = name;
}

/* How old what is known of the memory may be: few rows are not worth a look, which takes longer than they. */
static int64
found_still(const WsRequest *r)
{
	return ws_spool_bytes(r->rows, r->width) < SMALL_SPOOL ? WS_FOUND_LATELY : WS_FOUND_STILL;
}

/*
 * Does the scan of the input push a spool's file out of the page cache before its rows are handed out?  Each
 * page of either comes into the cache once, and the oldest leave it first.
 */
static bool
is_swept(const WsRequest *r, PlanState *input)
{
	return ws_cache_size < 0 &&
		ws_bytes_scanned(input) > (double) ws_memory_once(GetCurrentTimestamp(), found_still(r))->bytes;
}

/*
 * Finds what of it this sort is allowed: nothing if more rows are expected than that, so that they travel
 * from the first on.  And whether rows of the table `rel` are copied, although planned to stay there.
 */
static void
find_allowance(WsRequest *r, PlanState *input, Relation rel)
{
	const char *bound;
	double		width = r->width;
	double		rows = ws_rows_taken_in(r->rows, (double) r->wanted);
	bool		limited = temp_file_limit >= 0 || ws_max_temp >= 0;
	int			sharers = r->sharers;

	/* the inner side of a join in workers: each of them sorts all of it */
	if (sharers == 1 && IsParallelWorker())
		sharers += max_parallel_workers_per_gather;
	r->bound = NULL;
	r->found = r->allowance = PG_INT64_MAX;
	r->again = r->copies = false;
	r->again_at = -1;
	if (r->store == WS_KIND_KEYS)
		return;
	r->stays = STAYS * cache_found(sharers, found_still(r), &bound);
	r->again_at = ws_debug_again;
	/*
	 * Beginning again takes more temporary disk: a table's rows are copied, and those of a spool are there
	 * twice where the system cannot shorten its file from its beginning.  A sort that can go on without that
	 * is not to come to a limit by it.
	 */
	r->again = !limited && ws_record_store == WS_STORE_AUTO;
	if (r->store == WS_KIND_HEAP)
	{
		r->again = !limited && r->needed != NULL && (r->again || r->again_at >= 0);
		if (r->needed == NULL || !has_outgrown_memory(r, rel))
			return;
		width = (double) RelationGetNumberOfBlocks(rel) * BLCKSZ / Max(rel->rd_rel->reltuples, 1);
		r->copies = within_limits(ws_spool_bytes(rows, width) + rows * sizeof(WsEntry));
		if (!r->copies)
			return;
	}
	r->found = ws_spool_allowance(sharers, found_still(r), &r->bound);
	r->allowance = ws_spool_bytes(rows, width) > (double) r->found ? 0 : r->found;
	if (r->bound == NULL)
		return;					/* the setting of the store decides */
	if (r->allowance > 0 && ws_spool_bytes(rows, width) > (double) r->memory && is_swept(r, input))
	{
		r->found = r->allowance = 0;
		r->bound = "scan of the input";
	}
	else
	{
		heed_limit(r, ws_spool_bytes(rows, width), width, temp_file_limit, "temp_file_limit");
		heed_limit(r, ws_spool_bytes(rows, width), width, ws_max_temp, "wiscsort.max_temp");
	}
}

/*
 * Sets what comes from settings, when the sort is about to begin; `rel` is the table that has its rows, if
 * one has.
 */
void
ws_request_resolve(WsRequest *r, PlanState *input, Relation rel)
{
	r->memory = (Size) work_mem * 1024;
	if (r->watch != NULL)
		r->watch->disk_limit = ws_max_temp < 0 ? -1 : (int64) ws_max_temp * 1024;
	r->cache = (int64) effective_cache_size * BLCKSZ;
	if (r->store == WS_KIND_HEAP)
	{
		int64		memory = ws_memory_once(GetCurrentTimestamp(), found_still(r))->bytes;

		r->cache = Min(r->cache, memory);
	}
	find_allowance(r, input, rel);
	r->vectorised = ws_sort_kernel != WS_KERNEL_TEMPLATE && ws_sort_has_vqsort();
	r->direct_always = ws_direct_read == WS_DIRECT_ON;
	r->direct_never = ws_direct_read == WS_DIRECT_OFF;
	r->extent = ws_debug_extent < 0 ? EXTENT : TYPEALIGN(EXTENT_UNIT, (int64) ws_debug_extent * 1024);
	r->reads.method = ws_merge_read == WS_MERGE_BLOCK ? WS_READ_BLOCK :
		ws_merge_read == WS_MERGE_DOUBLE ? WS_READ_DOUBLE : WS_READ_ORDER;
	r->reads.assist = ws_assist_blocks;
	r->reads.io = ws_io_method == WS_IO_SYNC ? WS_READER_SYNC :
		ws_io_method == WS_IO_URING ? WS_READER_URING :
		ws_io_method == WS_IO_AUTO ? WS_READER_BUILT_IN : WS_READER_LIBAIO;
	r->block = (Size) Max(ws_block_size, 0) * 1024;
	r->threads.read = resolve_threads(ws_read_threads);
	r->threads.sort = resolve_threads(ws_sort_threads);
	r->threads.write = resolve_threads(ws_write_threads);
	r->threads.most = ws_max_threads;
}

/* Rows that a table had when it was vacuumed or analysed; less than 0: not known. */
double
ws_rows_analysed(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	double		rows = -1;

	if (HeapTupleIsValid(tuple))
	{
		rows = ((Form_pg_class) GETSTRUCT(tuple))->reltuples;
		ReleaseSysCache(tuple);
	}
	return rows;
}
