/*-------------------------------------------------------------------------
 * track.c - the sorts of one executor node, on their way into the statistics.
 *
 * A node sorts once for each rescan.  What its sorts have done is added up here, in the memory of its query,
 * and counted when the node ends: one lock for each node.  While a sort runs, its figures are in a slot of
 * the shared memory, if there is one, where each row costs one store.
 *
 * A sort is known to be aborted, and its slot free again, when its resource owner goes, or the query's
 * memory, although the node has not ended.  The memory alone would be too late: that of a query in a function
 * stays until ROLLBACK, and that of a cursor which fails in a savepoint until the transaction ends.  Of what
 * the sort has done by then only its temporary files are still known.
 *
 * Memory bound: about 1,200 bytes for each node that sorts.
 *-------------------------------------------------------------------------
 */
#include "stat/stat.h"

#include <math.h>
#include <sys/resource.h>

#include "access/xact.h"
#include "guc.h"
#include "miscadmin.h"
#include "sort/budget.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Of the system's blocks, in which it counts what a process has read, so many are one of ours. */
#define SYSTEM_BLOCKS	(BLCKSZ / 512)

/* Microseconds of a forecast that is compared with what it took; logarithm of the most it can be off. */
#define LEAST_FORESEEN	20000.0
#define MOST_OFF		4.0

struct WsTrack
{
	WsWatch		watch;
	WsFigures	own;			/* while there is no slot */
	MemoryContextCallback callback;
	WsOwned		owned;			/* the sort that runs */
	WsShared   *shared;			/* NULL: nothing is counted */
	WsSlot	   *slot;			/* or NULL */
	WsStatKey	key;
	int			node;
	double		foreseen;		/* nanoseconds a row from the end of the input on */
	TimestampTz statement;		/* of the client's, that asked for the first row */
	bool		suspended;		/* another one asked for the last: a cursor's rows wait for the client */
	TimestampTz drained;		/* the last row was asked for; 0: not yet */
	bool		open;			/* the node has not ended */
	bool		sorting;		/* a sort has begun, and has not ended */
	bool		table;			/* its rows wait in their table */
	WsStage		stage;
	TimestampTz since;			/* it is in that stage */
	int64		spent[3];		/* microseconds in each */
	int64		device;			/* blocks of the system that had been read when the input ended, or -1; */
	int64		device_end;		/* and when all rows were out; 0: they are not */
	int64		counts[WS_COUNTS];	/* of sorts that have ended */
};

static void
release_slot(WsTrack *t)
{
	if (t->slot != NULL)
		ws_slot_free(t->slot);
	t->slot = NULL;
	t->own = (WsFigures) {0};
	t->watch.figures = &t->own;
}

/* Counts what there is, and ends. */
static void
finish(WsTrack *t)
{
	if (!t->open)
		return;
	t->open = false;
	ws_owned_drop(&t->owned);
	release_slot(t);
	if (t->shared != NULL && t->counts[WS_SORTS] + t->counts[WS_ABORTED] > 0)
		ws_stat_add(t->shared, &t->key, t->counts);
}

/* The memory of the query goes, or what it has been working with. */
static void
forget(void *arg)
{
	WsTrack    *t = arg;

	if (t->open && t->sorting)
	{
		t->counts[WS_ABORTED]++;
		t->counts[WS_TEMP_PEAK] = Max(t->counts[WS_TEMP_PEAK], t->watch.disk_peak);
	}
	finish(t);
}

/* A sort whose owner is released by an abort has ended. */
static void
owner_goes(WsOwned *owned, bool after, bool commits)
{
	WsTrack    *t = (WsTrack *) ((char *) owned - offsetof(WsTrack, owned));

	if (after && !commits && t->sorting)
		forget(t);
}

/*
 * Prepares for the sorts of node number `node` of a query, whose identifier is `query` or 0, in
 * CurrentMemoryContext, which is the query's.
 */
WsTrack *
ws_track_create(int64 query, int node)
{
	WsTrack    *t = palloc0(sizeof(WsTrack));

	t->watch.figures = &t->own;
	t->watch.disk_limit = -1;
	t->key.database = MyDatabaseId;
	t->key.role = GetUserId();
	t->key.query = query;
	t->node = node;
	t->open = true;
	if (ws_track_sorts)
		t->shared = ws_shared();
	t->callback.func = forget;
	t->callback.arg = t;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &t->callback);
	return t;
}

/* The sort's rows wait in their table, or are copied, after all. */
void
ws_track_store(WsTrack *t, const WsRequest *request)
{
	t->table = request->store == WS_KIND_HEAP && !request->copies;
	if (t->slot == NULL)
		return;
	ws_slot_change(t->slot);
	t->slot->table = t->table;
	ws_slot_changed(t->slot);
}

/* Each row of its sorts is going to take so many nanoseconds from the end of the input on, perhaps. */
void
ws_track_foresee(WsTrack *t, double ns)
{
	t->foreseen = ns;
	if (t->slot == NULL)
		return;
	ws_slot_change(t->slot);
	t->slot->foreseen = ns;
	ws_slot_changed(t->slot);
}

/* What the sort is to be watched by. */
WsWatch *
ws_track_watch(WsTrack *t)
{
	return &t->watch;
}

/* A sort begins. */
void
ws_track_begin(WsTrack *t, const WsRequest *request)
{
	PGPROC	   *leader = MyProc->lockGroupLeader;
	WsSlot	   *slot;

	t->sorting = true;
	ws_owned_take(&t->owned, owner_goes);
	t->stage = WS_STAGE_INPUT;
	t->since = GetCurrentTimestamp();
	t->table = request->store == WS_KIND_HEAP;
	t->device = -1;
	t->device_end = 0;
	t->drained = 0;
	t->watch.disk_peak = 0;
	t->own = (WsFigures) {0};
	memset(t->spent, 0, sizeof(t->spent));
	if (t->shared == NULL || (slot = ws_slot_take(t->shared)) == NULL)
		return;
	ws_slot_change(slot);
	slot->figures = t->own;
	slot->pid = MyProcPid;
	slot->leader = leader != NULL && leader != MyProc ? leader->pid : 0;
	slot->node = t->node;
	slot->key = t->key;
	slot->expected = request->rows;
	slot->wanted = (double) request->wanted;
	slot->foreseen = t->foreseen;
	slot->table = t->table;
	slot->began = slot->first_row = slot->stage_began = t->since;
	memset(slot->spent, 0, sizeof(slot->spent));
	ws_slot_changed(slot);
	t->slot = slot;
	t->watch.figures = &slot->figures;
}

/* Its first row has come.  What was done for that, as making a hash table, is not done for every row. */
void
ws_track_first_row(WsTrack *t)
{
	if (t->slot == NULL)
		return;
	ws_slot_change(t->slot);
	t->slot->first_row = GetCurrentTimestamp();
	ws_slot_changed(t->slot);
}

/* Blocks of the system that this process, with its helpers, has had read from a device. */
static int64
blocks_read(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_inblock : 0;
}

/* Adds the time until now to that of the stage: none, if the clock has been set back. */
static void
add_time(WsTrack *t, TimestampTz now)
{
	t->spent[t->stage] += Max(now - t->since, 0);
}

/* The sort comes to another stage. */
void
ws_track_stage(WsTrack *t, WsStage stage)
{
	TimestampTz now = GetCurrentTimestamp();

	add_time(t, now);
	if (t->slot != NULL)
	{
		ws_slot_change(t->slot);
		t->slot->spent[t->stage] = t->spent[t->stage];
		t->slot->stage_began = now;
		ws_slot_changed(t->slot);
	}
	t->stage = stage;
	t->since = now;
	t->watch.figures->stage = stage;
	if (stage == WS_STAGE_OUTPUT)
		t->statement = GetCurrentStatementStartTimestamp();
	/* a system call, which small sorts do without */
	if (stage == WS_STAGE_SORT &&
		(t->watch.disk_peak > 0 || (t->table && t->watch.figures->rows_in >= WS_LOOK_ROWS)))
		t->device = blocks_read();
}

/* It has no more rows to hand out, or none that anybody is going to ask for. */
void
ws_track_drained(WsTrack *t)
{
	if (t->drained != 0)
		return;
	t->drained = GetCurrentTimestamp();
	t->suspended = t->statement != GetCurrentStatementStartTimestamp();
	if (t->device >= 0)
		t->device_end = blocks_read();
}

/* Counts how far off the forecast of what comes behind the input was, if it was about something. */
static void
count_foreseen(WsTrack *t, double rows)
{
	double		foreseen = rows * t->foreseen / 1000;
	double		taken = (double) (t->spent[WS_STAGE_SORT] + t->drained - t->since);
	double		log_ratio;

	if (t->stage != WS_STAGE_OUTPUT || t->drained == 0 || t->suspended || foreseen < LEAST_FORESEEN ||
		taken <= 0)
		return;
	log_ratio = log2(taken / foreseen);
	t->counts[WS_FORESEEN + t->table]++;
	t->counts[WS_FORESEEN_LOG + t->table] += (int64) (1024 * Max(-MOST_OFF, Min(log_ratio, MOST_OFF)));
}

/*
 * With how much work_mem would it have been one-pass?  The number of the class (WS_NEEDS).  Rows that travel
 * would have had to be in memory, all of them.
 */
static int
need_of(const WsRequest *request, const WsSortStats *s, bool travels)
{
	Size		row = travels ? s->row_bytes : 0;
	double		bytes = (double) s->runs.entries * (double) (s->entry_bytes + row);
	WsRequest	r = *request;
	int			need = 0;
	int			more = WS_NEEDS - 1;

	r.codes = (double) s->codes / (double) request->memory;
	while (need < more)
	{
		int			middle = (need + more) / 2;

		if (bytes > (double) ws_budget_one_pass(&r, ws_need_bytes(middle), travels))
			need = middle + 1;
		else
			more = middle;
	}
	return need;
}

/* The sort has ended in order, and this is what it did. */
void
ws_track_end(WsTrack *t, const WsRequest *request, const WsSortStats *s)
{
	int64	   *c = t->counts;
	WsStoreKind store = request->copies ? WS_KIND_SPOOL : request->store;
	bool		travels = s->store.travels && !s->again;

	count_foreseen(t, (double) (request->wanted > 0 ? Min(request->wanted, s->runs.entries) :
								s->runs.entries));
	add_time(t, GetCurrentTimestamp());
	t->sorting = false;
	c[WS_SORTS]++;
	c[s->runs.formed > 0 ? WS_MERGE_PASS : WS_ONE_PASS]++;
	c[s->few ? WS_FEW : travels ? WS_INLINE : store == WS_KIND_HEAP ? WS_HEAP :
	  store == WS_KIND_KEYS ? WS_KEYS : WS_SPOOL]++;
	c[WS_ROWS] += (int64) s->runs.entries;
	c[WS_SPOOL_BYTES] += s->store.spooled;
	c[WS_RUN_BYTES] += s->runs.bytes;
	c[WS_TEMP_BYTES] += s->disk;
	c[WS_RUNS] += s->runs.formed;
	c[WS_MERGES] += s->runs.passes;
	for (int i = 0; i < 3; i++)
		c[WS_INPUT_US + i] += t->spent[i];
	c[WS_BLOCKS_DIRECT] += s->store.blocks_direct;
	c[WS_BLOCKS_BUFFERED] += s->store.blocks_buffered;
	c[WS_BLOCKS_RUNS] += (int64) s->runs.reads.blocks;
	if (t->device >= 0)
		c[WS_BLOCKS_DEVICE] +=
			((t->device_end > 0 ? t->device_end : blocks_read()) - t->device) / SYSTEM_BLOCKS;
	c[WS_STALLS] += (int64) s->runs.reads.stalls;
	c[WS_STALLED_US] += (int64) s->runs.reads.stalled_us;
	c[WS_BEGAN_AGAIN] += s->again;
	c[WS_TRAVELLED] += travels && request->allowance > 0;
	c[WS_COPIED] += request->copies;
	c[WS_IO_REFUSED] += s->runs.reads.blocks > 0 && s->runs.reads.io != request->reads.io;
	c[WS_TEMP_PEAK] = Max(c[WS_TEMP_PEAK], s->disk);
	c[WS_MEMORY_PEAK] = Max(c[WS_MEMORY_PEAK], s->memory);
	/* the few rows of a sort that nobody took for one need no memory to speak of, and may be sorted often */
	if (!s->few)
		c[WS_NEED + need_of(request, s, travels)]++;
	release_slot(t);
}

/* The node ends.  NULL is fine. */
void
ws_track_close(WsTrack *t)
{
	if (t != NULL)
		finish(t);
}
