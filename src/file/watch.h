/*-------------------------------------------------------------------------
 * watch.h - what others may see of a sort while it works, and how much disk it may take.
 *
 * The figures may lie in shared memory, where other processes read them at any time: each is written by the
 * backend alone, whole, and means something without the others, or nearly: what was seen at a look may for a
 * moment be of two.  Helpers touch none of this.
 *-------------------------------------------------------------------------
 */
#ifndef WS_WATCH_H
#define WS_WATCH_H

#include "entry.h"

/* What the executor node is at. */
typedef enum WsStage
{
	WS_STAGE_INPUT,
	WS_STAGE_SORT,
	WS_STAGE_OUTPUT
} WsStage;

typedef struct WsFigures
{
	int64		rows_in;
	int64		rows_out;
	int64		merged;			/* entries that the present merge pass has moved */
	int64		to_merge;		/* of so many */
	int64		pass_began;		/* a TimestampTz */
	int64		disk;			/* bytes of temporary files */
	int64		memory;			/* bytes, as of a moment ago */
	double		share_read;		/* of the input, at the same moment; 0 or less: who knows */
	double		share_done;		/* of what it takes to read it; the same */
	int64		turned_at;		/* a hash join came to its second batch, a TimestampTz; 0: it has not */
	double		rows_each;		/* ws_share_each() of the input, at the same moment */
	int64		looked_rows;	/* rows that had come in at that moment */
	int64		looked_at;		/* it, a TimestampTz, or the end of a later merge pass; 0: none */
	int64		flowing_at;		/* WS_LOOK_ROWS were out, a TimestampTz; 0: not, or of few rows */
	int32		stage;			/* WsStage */
	int32		pass;			/* the merge pass that is being made, from 1; 0: none */
	int32		passes;			/* of so many, as it looks now */
	int32		batches;		/* of a hash join that the input comes from; 0: there is none in batches */
	int32		batch;			/* the present one, from 0 */
	int32		turned;			/* the one to which it came then */
	int32		uneven;			/* batches do not have the same number of rows */
} WsFigures;

typedef struct WsWatch
{
	WsFigures  *figures;
	int64		disk_peak;		/* bytes */
	int64		disk_limit;		/* bytes, or -1 */
	void		(*exceeded) (struct WsWatch *watch);	/* raises the error of that limit */
	void	   *arg;			/* its */
} WsWatch;

/*
 * Temporary files become larger by so many bytes, or have become that.  Raises the error of the limit.
 * `watch` may be NULL.
 */
static inline void
ws_watch_grow(WsWatch *watch, int64 bytes)
{
	int64		disk;

	if (watch == NULL)
		return;
	disk = watch->figures->disk + bytes;
	if (watch->disk_limit >= 0 && disk > watch->disk_limit)
		watch->exceeded(watch);
	watch->figures->disk = disk;
	watch->disk_peak = Max(watch->disk_peak, disk);
}

/* They have given so many bytes back.  `watch` may be NULL. */
static inline void
ws_watch_shrink(WsWatch *watch, int64 bytes)
{
	if (watch != NULL)
		watch->figures->disk -= bytes;
}

/* A merge pass over so many entries begins, at `now`, a TimestampTz. */
static inline void
ws_watch_pass(WsWatch *watch, int pass, int passes, int64 entries, int64 now)
{
	watch->figures->merged = 0;
	watch->figures->to_merge = entries;
	watch->figures->pass_began = now;
	watch->figures->passes = passes;
	watch->figures->pass = pass;
}

/* It has ended, at `now`.  No row has come in meanwhile, which says nothing about the input. */
static inline void
ws_watch_passed(WsWatch *watch, int64 now)
{
	if (watch->figures->looked_at > 0)
		watch->figures->looked_at = now;
	watch->figures->pass = 0;
}

/* It has moved so many entries more.  `watch` may be NULL. */
static inline void
ws_watch_merged(WsWatch *watch, int64 entries)
{
	if (watch != NULL)
		watch->figures->merged += entries;
}

#endif							/* WS_WATCH_H */
