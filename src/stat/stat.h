/*-------------------------------------------------------------------------
 * stat.h - cumulative statistics of sorts, and how far those are that run.
 *-------------------------------------------------------------------------
 */
#ifndef WS_STAT_H
#define WS_STAT_H

#include "file/watch.h"
#include "sort/sorter.h"

#include "datatype/timestamp.h"
#include "fmgr.h"
#include "port/atomics.h"
#include "storage/lwlock.h"
#include "storage/spin.h"

/* ---- shared.c: the memory that all backends share ---- */

/* Rows of the statistics; and sorts of one backend that are shown at a time. */
#define WS_STAT_ROWS	1024
#define WS_STAT_BUCKETS	1024
#define WS_SLOTS		16

/* Of work_mem with which sorts would have been one-pass: 64 kB to 64 GB, four to a doubling, and more. */
#define WS_NEEDS		82

/* Up to how much work_mem the class is, in bytes: 64, 80, 96, 112, 128, 160 kB, and so on. */
#define ws_need_bytes(class)	((int64) (4 + (class) % 4) * 16 * 1024 << (class) / 4)

/* One more whenever the shared memory, or a count, changes: builds that differ are not to share it. */
#define WS_STAT_LAYOUT	8

/*
 * The figures that are not counted one by one are those of the moment after so many rows; or after so many
 * microseconds, the clock being looked at after each WS_CLOCK_ROWS rows.
 */
#define WS_LOOK_ROWS	4096
#define WS_LOOK_US		100000
#define WS_CLOCK_ROWS	64

/* What is counted, in the order of the columns of wiscsort.stat_rows().  Times are microseconds. */
typedef enum WsCount
{
	WS_SORTS,
	WS_ABORTED,
	WS_ONE_PASS,
	WS_MERGE_PASS,
	WS_SPOOL,
	WS_HEAP,
	WS_INLINE,
	WS_KEYS,
	WS_FEW,
	WS_ROWS,
	WS_SPOOL_BYTES,
	WS_RUN_BYTES,
	WS_TEMP_BYTES,
	WS_RUNS,
	WS_MERGES,
	WS_INPUT_US,
	WS_SORT_US,
	WS_OUTPUT_US,
	WS_BLOCKS_DIRECT,
	WS_BLOCKS_BUFFERED,
	WS_BLOCKS_RUNS,
	WS_BLOCKS_DEVICE,
	WS_STALLS,
	WS_STALLED_US,
	WS_BEGAN_AGAIN,
	WS_TRAVELLED,
	WS_COPIED,
	WS_IO_REFUSED,
	WS_LEFT,
	WS_LEFT_BYTES,
	WS_TEMP_PEAK,				/* from here on the largest counts, not the sum */
	WS_MEMORY_PEAK,
	WS_SHOWN,					/* so many columns; behind them, sums again: */
	WS_NEED = WS_SHOWN,
	/* sorts of which is known how far off the forecast was: those of rows that wait in their table apart; */
	WS_FORESEEN = WS_NEED + WS_NEEDS,
	WS_FORESEEN_LOG = WS_FORESEEN + 2,	/* and by how much: sums of logarithms, of base 2, in 1/1024 */
	WS_COUNTS = WS_FORESEEN_LOG + 2
} WsCount;

typedef struct WsStatKey
{
	Oid			database;		/* InvalidOid, and no role: all for which there is no row */
	Oid			role;
	int64		query;			/* 0: none, or all for which there is no row */
} WsStatKey;

typedef struct WsStatRow
{
	WsStatKey	key;
	int			next;			/* of its bucket, or of those that are free; -1: none */
	slock_t		mutex;			/* of what follows, for those who have the lock shared */
	TimestampTz last;			/* counted */
	int64		counts[WS_COUNTS];
} WsStatRow;

/* A sort that runs.  Written by its backend alone. */
typedef struct WsSlot
{
	WsFigures	figures;		/* at any time */
	/* consistent if `change` is even and the same before and behind reading */
	uint32		change;
	int			pid;			/* 0: there is none */
	int			leader;			/* of a parallel worker, or 0 */
	int			node;			/* its number in the plan */
	WsStatKey	key;
	double		expected;		/* rows */
	double		wanted;			/* of these, by a LIMIT; 0: all */
	double		foreseen;		/* nanoseconds a row from the end of the input on */
	bool		table;			/* its rows wait in their table */
	TimestampTz began;
	TimestampTz first_row;		/* came from the input; or it began */
	TimestampTz stage_began;
	int64		spent[3];		/* microseconds, of stages that have ended */
} WsSlot;

typedef union WsPaddedSlot
{
	WsSlot		slot;
	char		pad[TYPEALIGN(PG_CACHE_LINE_SIZE, sizeof(WsSlot))];
} WsPaddedSlot;

typedef struct WsShared
{
	LWLock		lock;			/* exclusive: rows come and go.  Shared: they are counted in */
	int			tranche;
	TimestampTz since;			/* when all of it was zero */
	int64		folded;			/* rows that had to go */
	int			free;			/* first row that is, or -1 */
	int			buckets[WS_STAT_BUCKETS];
	WsStatRow	rows[WS_STAT_ROWS];	/* the first one is of all for which there is none */
	int			nslots;
	WsPaddedSlot slots[FLEXIBLE_ARRAY_MEMBER];	/* WS_SLOTS of each backend */
} WsShared;

extern void ws_stat_install(void);
extern WsShared *ws_shared(void);
extern const char *ws_why_not_shared(void);
extern WsStatRow *ws_stat_find(WsShared *shared, const WsStatKey *key);
extern void ws_stat_add(WsShared *shared, const WsStatKey *key, const int64 *counts);
extern int64 ws_stat_clear(WsShared *shared);
extern WsSlot *ws_slot_take(WsShared *shared);
extern void ws_slot_free(WsSlot *slot);

/* Goes around changes of a slot other than of its figures. */
static inline void
ws_slot_change(WsSlot *slot)
{
	slot->change |= 1;
	pg_write_barrier();
}

static inline void
ws_slot_changed(WsSlot *slot)
{
	pg_write_barrier();
	slot->change++;
}

/* A row's counts, and perhaps another's. */
static inline void
ws_counts_add(int64 *to, const int64 *from)
{
	for (int i = 0; i < WS_COUNTS; i++)
		to[i] = i >= WS_TEMP_PEAK && i < WS_SHOWN ? Max(to[i], from[i]) : to[i] + from[i];
}

/* ---- track.c: the sorts of one executor node ---- */
typedef struct WsTrack WsTrack;

extern WsTrack *ws_track_create(int64 query, int node);
extern WsWatch *ws_track_watch(WsTrack *track);
extern void ws_track_begin(WsTrack *track, const WsRequest *request);
extern void ws_track_store(WsTrack *track, const WsRequest *request);
extern void ws_track_foresee(WsTrack *track, double ns);
extern void ws_track_first_row(WsTrack *track);
extern void ws_track_stage(WsTrack *track, WsStage stage);
extern void ws_track_drained(WsTrack *track);
extern void ws_track_end(WsTrack *track, const WsRequest *request, const WsSortStats *stats);
extern void ws_track_close(WsTrack *track);

/* ---- setof.c: functions that return rows ---- */
extern struct ReturnSetInfo *ws_return_rows(FunctionCallInfo fcinfo, int columns);

/* ---- left.c: sorts that were left to core ---- */
extern void ws_install_left_hooks(void);

#endif							/* WS_STAT_H */
