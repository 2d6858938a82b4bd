/*-------------------------------------------------------------------------
 * stream.h - entries in sorted order, wherever they come from.
 *
 * Kinds: the sorted IndexMap and one run on disk (stream.c), and the final merge (merge.c).  Of the last
 * two there are kinds that bring rows with them.  A stream is read by one thread at a time.  If it is
 * `helper_safe` that may be a helper, which raises nothing: the backend calls ws_stream_raise before it
 * uses what came.
 *-------------------------------------------------------------------------
 */
#ifndef WS_STREAM_H
#define WS_STREAM_H

#include "entry.h"
#include "run/run.h"

typedef struct WsStream WsStream;

typedef struct WsStreamOps
{
	/*
	 * writes up to `max` entries to `out`, and returns how many; 0 only at the end, or after a failure.
	 * Rows that travel are there until the next call (run/rowread.c)
	 */
	Size		(*next) (WsStream *stream, WsEntry *out, Size max);
	/* raises what `next` met; in the backend.  NULL: it never meets anything */
	void		(*raise) (WsStream *stream);
	/* continues at entry number `position`; NULL: forward only */
	void		(*seek) (WsStream *stream, uint64 position);
	/*
	 * frees memory of entries that have been taken, and returns how many bytes that makes so far;
	 * NULL: it cannot.  Not while `next` runs, and nothing is sought afterwards
	 */
	Size		(*release) (WsStream *stream);
} WsStreamOps;

struct WsStream
{
	const WsStreamOps *ops;
	bool		helper_safe;	/* `next` may be called by a helper */
	uint64		count;			/* entries in all; may be set to less before the first is taken */
	uint64		taken;			/* number of the next one */
	MemoryContext context;		/* what `next` touches belongs to it, or lives longer */
};

/* In the backend: the next entries.  Raises what is met. */
static inline Size
ws_stream_next(WsStream *stream, WsEntry *out, Size max)
{
	Size		n = stream->ops->next(stream, out, max);

	if (stream->ops->raise != NULL)
		stream->ops->raise(stream);
	return n;
}

/* Raises what a helper has met that called `next`. */
static inline void
ws_stream_raise(WsStream *stream)
{
	if (stream->ops->raise != NULL)
		stream->ops->raise(stream);
}

extern WsStream *ws_stream_of_array(WsIndexMap *map, uint64 n);
extern WsStream *ws_stream_of_run(WsReader *reader, const WsRun *run, char *buffer);

/* ---- rowstream.c ---- */
extern WsStream *ws_stream_of_rows(WsRowsIn *rows, const WsRun *run, bool helper_safe,
								   const uint64 *first_rows);

#endif							/* WS_STREAM_H */
