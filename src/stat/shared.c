/*-------------------------------------------------------------------------
 * shared.c - the shared memory of statistics and progress.
 *
 * One piece of fixed size: a table of counts by database, role and query, and WS_SLOTS slots for each backend
 * in which sorts that run show how far they are.  Since PostgreSQL 17 the first who asks makes it, in a
 * segment of its own; before, it is there only if the library is in shared_preload_libraries.  It is
 * never written to disk: a crash, or a restart, loses it.
 *
 * The table has chains by hash.  Who counts has the lock shared, and the row's spinlock; who makes a row has
 * it exclusively.  When the table is full, the sixteenth of the queries' rows that was counted longest ago is
 * added to rows of the same database and role without a query; and if nearly all rows are such, the sixteenth
 * of them to the first row, which has neither: so that no count is lost.
 *
 * A backend's slots are its own: nobody else writes there, and it needs no lock.
 *
 * Memory bound: about 1 MB, and 4 kB for each backend that max_connections and the like allow.  On error
 * locks go with the transaction; nothing here raises one while it has one.
 *-------------------------------------------------------------------------
 */
#include "stat/stat.h"

#include "access/parallel.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

/* Names that are tried for the segment. */
#define SEGMENT_NAMES	8

#define FOLDED_SHARE	16

static WsShared *shared = NULL;

static shmem_request_hook_type next_request_hook = NULL;
static shmem_startup_hook_type next_startup_hook = NULL;

static Size
shared_bytes(void)
{
	return offsetof(WsShared, slots) + (Size) MaxBackends * WS_SLOTS * sizeof(WsPaddedSlot);
}

/* Empties the table: all rows but the first are free. */
static void
empty(WsShared *s)
{
	for (int i = 0; i < WS_STAT_BUCKETS; i++)
		s->buckets[i] = -1;
	for (int i = 0; i < WS_STAT_ROWS; i++)
	{
		s->rows[i].next = i + 1 < WS_STAT_ROWS ? i + 1 : -1;
		memset(s->rows[i].counts, 0, sizeof(s->rows[i].counts));
	}
	s->free = 1;
	s->folded = 0;
	s->since = GetCurrentTimestamp();
}

static void
initialize(void *arg WS_INIT_PARAMETER)
{
	WsShared   *s = arg;

	memset(s, 0, shared_bytes());
	s->tranche = ws_new_tranche("wiscsort");
	LWLockInitialize(&s->lock, s->tranche);
	for (int i = 0; i < WS_STAT_ROWS; i++)
		SpinLockInit(&s->rows[i].mutex);
	s->nslots = MaxBackends * WS_SLOTS;
	empty(s);
}

static void
request_memory(void)
{
	if (next_request_hook != NULL)
		next_request_hook();
	RequestAddinShmemSpace(shared_bytes());
}

static void
start_memory(void)
{
	bool		found;

	if (next_startup_hook != NULL)
		next_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("wiscsort", shared_bytes(), &found);
	if (!found)
		initialize(shared WS_INIT_ARGUMENT);
	LWLockRelease(AddinShmemInitLock);
}

/* Asks for shared memory, where that has to be done when the server starts.  Called once, from _PG_init. */
void
ws_stat_install(void)
{
	if (WS_HAVE_SEGMENTS || !process_shared_preload_libraries_in_progress)
		return;
	next_request_hook = shmem_request_hook;
	shmem_request_hook = request_memory;
	next_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_memory;
}

static WsSlot *
my_slots(WsShared *s, int i)
{
	return &s->slots[ws_backend_number() * WS_SLOTS + i].slot;
}

/* Frees what this backend has, and what another one with its number may have left. */
static void
free_my_slots(int code, Datum arg)
{
	for (int i = 0; i < WS_SLOTS; i++)
		ws_slot_free(my_slots(shared, i));
}

/*
 * From 17 on, the segment by the n-th name for it; NULL if it cannot be had, and *error is set.  Nothing but
 * locks is to be given back after an error here, so that no subtransaction is needed, which parallel workers
 * cannot have.
 */
static WsShared *
try_segment(int n, ErrorData **error)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	/* another build of the library, loaded before it was replaced, may want another size */
	char	   *name = psprintf("wiscsort %d %zu %d", WS_STAT_LAYOUT, shared_bytes(), n);
	WsShared   *volatile result = NULL;
	bool		found;

	CurrentResourceOwner = NULL;	/* the mapping is the session's */
	PG_TRY();
	{
		result = ws_segment(name, shared_bytes(), initialize, &found);
	}
	PG_CATCH();
	{
		if (geterrcode() == ERRCODE_QUERY_CANCELED)
			PG_RE_THROW();
		LWLockReleaseAll();
		MemoryContextSwitchTo(context);
		*error = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	pfree(name);
	return result;
}

/*
 * From 17 on, the segment; NULL if it cannot be had now.  If the system has no memory for it, this session
 * warns once, and does without: no query fails for want of statistics.
 *
 * Before PostgreSQL mended that, a name for which there was no memory once is of no use until the server
 * starts again: an internal error says that its size is another.  All sessions come to the next name then.
 */
static WsShared *
find_segment(void)
{
	static bool refused = false;
	WsShared   *result = NULL;
	ErrorData  *error = NULL;

	/* who holds interrupts may hold locks of his own */
	if (refused || InterruptHoldoffCount > 0)
		return NULL;
	for (int n = 0; n < SEGMENT_NAMES; n++)
	{
		result = try_segment(n, &error);
		if (result != NULL || error == NULL || error->sqlerrcode != ERRCODE_INTERNAL_ERROR)
			break;
	}
	if (result == NULL && error != NULL)
	{
		refused = true;
		ereport(IsParallelWorker() ? DEBUG1 : WARNING,
				(errcode(error->sqlerrcode),
				 errmsg("wiscsort has no statistics in this session"),
				 errdetail("Shared memory cannot be had: %s.", error->message)));
	}
	return result;
}

/* The shared memory, or NULL if there is none. */
WsShared *
ws_shared(void)
{
	static bool ready = false;

	if (ready)
		return shared;
	if (WS_HAVE_SEGMENTS)
		shared = find_segment();
	if (shared == NULL || MyProc == NULL)
		return NULL;
	ws_register_tranche(shared->tranche, "wiscsort");
	free_my_slots(0, (Datum) 0);
	before_shmem_exit(free_my_slots, (Datum) 0);
	ready = true;
	return shared;
}

/* What to do where there is none. */
const char *
ws_why_not_shared(void)
{
	return WS_HAVE_SEGMENTS ? "The system had none for this session.  A new session asks again." :
		"Before PostgreSQL 17, add \"wiscsort\" to shared_preload_libraries and restart the server.";
}

/* ---- the table ---- */

static int *
bucket_of(WsShared *s, const WsStatKey *key)
{
	return &s->buckets[hash_bytes((const unsigned char *) key, sizeof(*key)) % WS_STAT_BUCKETS];
}

/* The row of a key, or NULL.  The caller has the lock. */
WsStatRow *
ws_stat_find(WsShared *s, const WsStatKey *key)
{
	for (int i = *bucket_of(s, key); i >= 0; i = s->rows[i].next)
		if (memcmp(&s->rows[i].key, key, sizeof(*key)) == 0)
			return &s->rows[i];
	return NULL;
}

/* A new row of a key; NULL if there is no free one. */
static WsStatRow *
make_row(WsShared *s, const WsStatKey *key)
{
	WsStatRow  *row = &s->rows[s->free];
	int		   *bucket = bucket_of(s, key);
	int			i = s->free;

	if (i < 0)
		return NULL;
	s->free = row->next;
	row->key = *key;
	row->next = *bucket;
	*bucket = i;
	memset(row->counts, 0, sizeof(row->counts));
	row->last = 0;
	return row;
}

static void
free_row(WsShared *s, int i)
{
	int		   *at = bucket_of(s, &s->rows[i].key);

	while (*at != i)
		at = &s->rows[*at].next;
	*at = s->rows[i].next;
	s->rows[i].next = s->free;
	s->free = i;
	s->folded++;
}

static int
older_first(const void *a, const void *b)
{
	TimestampTz x = shared->rows[*(const int *) a].last;
	TimestampTz y = shared->rows[*(const int *) b].last;

	return (x > y) - (x < y);
}

/* The numbers of the rows of queries, or of all but the first, the oldest first; returns how many. */
static int
rows_by_age(WsShared *s, bool all, int numbers[WS_STAT_ROWS])
{
	int			n = 0;

	for (int b = 0; b < WS_STAT_BUCKETS; b++)
		for (int i = s->buckets[b]; i >= 0; i = s->rows[i].next)
			if (all || s->rows[i].key.query != 0)
				numbers[n++] = i;
	qsort(numbers, n, sizeof(int), older_first);
	return n;
}

/* Gives up a row: adds it to that without a query, or if it is one, to the first. */
static void
fold_row(WsShared *s, int i)
{
	WsStatRow	old = s->rows[i];
	WsStatKey	key = old.key;
	WsStatRow  *heir = &s->rows[0];

	free_row(s, i);
	if (key.query != 0)
	{
		key.query = 0;
		heir = ws_stat_find(s, &key);
		if (heir == NULL)
			heir = make_row(s, &key);
	}
	ws_counts_add(heir->counts, old.counts);
	heir->last = Max(heir->last, old.last);
}

/* Makes room: gives up the oldest of the queries' rows, or of all where these are few. */
static void
fold(WsShared *s)
{
	static int	numbers[WS_STAT_ROWS];
	int			n = rows_by_age(s, false, numbers);

	if (n < WS_STAT_ROWS / FOLDED_SHARE)
		n = rows_by_age(s, true, numbers);
	for (int i = 0; i < n / FOLDED_SHARE + 1; i++)
		fold_row(s, numbers[i]);
}

/* The row of a key, which is made if need be.  The lock is exclusive. */
static WsStatRow *
find_or_make(WsShared *s, const WsStatKey *key)
{
	WsStatRow  *row = ws_stat_find(s, key);

	/* rows of queries may only become such without: those of all are more than that */
	while (row == NULL && s->free < 0)
	{
		fold(s);
		row = ws_stat_find(s, key);
	}
	return row != NULL ? row : make_row(s, key);
}

/* Adds to the counts of a key. */
void
ws_stat_add(WsShared *s, const WsStatKey *key, const int64 *counts)
{
	TimestampTz now = GetCurrentTimestamp();
	WsStatRow  *row;

	LWLockAcquire(&s->lock, LW_SHARED);
	row = ws_stat_find(s, key);
	if (row == NULL)
	{
		LWLockRelease(&s->lock);
		LWLockAcquire(&s->lock, LW_EXCLUSIVE);
		row = find_or_make(s, key);
	}
	SpinLockAcquire(&row->mutex);
	ws_counts_add(row->counts, counts);
	row->last = now;
	SpinLockRelease(&row->mutex);
	LWLockRelease(&s->lock);
}

/* Forgets all counts.  Returns how many sorts that were, aborted and left ones too. */
int64
ws_stat_clear(WsShared *s)
{
	int64		counts[WS_COUNTS] = {0};

	LWLockAcquire(&s->lock, LW_EXCLUSIVE);
	ws_counts_add(counts, s->rows[0].counts);
	for (int b = 0; b < WS_STAT_BUCKETS; b++)
		for (int i = s->buckets[b]; i >= 0; i = s->rows[i].next)
			ws_counts_add(counts, s->rows[i].counts);
	empty(s);
	LWLockRelease(&s->lock);
	return counts[WS_SORTS] + counts[WS_ABORTED] + counts[WS_LEFT];
}

/* ---- slots ---- */

/* A free slot of this backend's, or NULL. */
WsSlot *
ws_slot_take(WsShared *s)
{
	for (int i = 0; i < WS_SLOTS; i++)
		if (my_slots(s, i)->pid == 0)
			return my_slots(s, i);
	return NULL;
}

/* Has a slot show nothing any more. */
void
ws_slot_free(WsSlot *slot)
{
	ws_slot_change(slot);
	slot->pid = 0;
	ws_slot_changed(slot);
}
