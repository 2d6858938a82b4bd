/*-------------------------------------------------------------------------
 * stream.c - streams that can be read from any place: the sorted IndexMap, and a run.
 *
 * Memory: the struct, in CurrentMemoryContext.  The IndexMap, and the run's buffer of one block,
 * are the caller's.
 *-------------------------------------------------------------------------
 */
#include "merge/stream.h"

/* ---- the sorted IndexMap ---- */

typedef struct ArrayStream
{
	WsStream	stream;			/* must be first */
	WsIndexMap *map;
} ArrayStream;

static Size
array_next(WsStream *stream, WsEntry *out, Size max)
{
	const WsEntry *entries = ((ArrayStream *) stream)->map->entries;
	Size		n = Min(max, stream->count - stream->taken);

	memcpy(out, entries + stream->taken, n * sizeof(WsEntry));
	stream->taken += n;
	return n;
}

static void
array_seek(WsStream *stream, uint64 position)
{
	stream->taken = position;
}

static Size
array_release(WsStream *stream)
{
	WsRegion   *region = ((ArrayStream *) stream)->map->region;

	ws_region_release(region, stream->taken * sizeof(WsEntry));
	return region->released;
}

static const WsStreamOps array_ops = {array_next, NULL, array_seek, array_release};

/* The first n entries of an IndexMap, which are sorted.  Once some are released it is forward only. */
WsStream *
ws_stream_of_array(WsIndexMap *map, uint64 n)
{
	ArrayStream *a = palloc0(sizeof(ArrayStream));

	a->stream.ops = &array_ops;
	a->stream.helper_safe = true;
	a->stream.count = n;
	a->stream.context = CurrentMemoryContext;
	a->map = map;
	return &a->stream;
}

/* ---- one run on disk ---- */

typedef struct RunStream
{
	WsStream	stream;			/* must be first */
	WsRunReader reader;
} RunStream;

static Size
run_next(WsStream *stream, WsEntry *out, Size max)
{
	RunStream  *r = (RunStream *) stream;
	Size		capacity = ws_block_capacity(r->reader.run.block_size);
	Size		done = 0;

	while (done < max && stream->taken < stream->count)
	{
		Size		first = stream->taken % capacity;
		const WsEntry *entries;
		Size		n;

		entries = ws_run_block(&r->reader, (int64) (stream->taken / capacity), &n);
		if (entries == NULL)
			break;
		n = Min(Min(n - first, max - done), stream->count - stream->taken);
		memcpy(out + done, entries + first, n * sizeof(WsEntry));
		done += n;
		stream->taken += n;
	}
	return done;
}

static void
run_raise(WsStream *stream)
{
	RunStream  *r = (RunStream *) stream;

	ws_run_read_raise(&r->reader);
	ws_reader_count(r->reader.reader);
}

static void
run_seek(WsStream *stream, uint64 position)
{
	stream->taken = position;
}

static const WsStreamOps run_ops = {run_next, run_raise, run_seek, NULL};

/* A run, read through `reader` and a buffer of one block (16-byte aligned).  Raises what its header shows. */
WsStream *
ws_stream_of_run(WsReader *reader, const WsRun *run, char *buffer)
{
	RunStream  *r = palloc0(sizeof(RunStream));

	r->stream.ops = &run_ops;
	r->stream.helper_safe = reader->helper_safe;
	r->stream.count = run->nentries;
	r->stream.context = CurrentMemoryContext;
	ws_run_read_begin(&r->reader, reader, run, buffer);
	return &r->stream;
}
