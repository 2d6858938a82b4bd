/*-------------------------------------------------------------------------
 * rowstream.c - one run of rows as a stream that can be read from any place.
 *
 * For cursors that scroll, and for mark and restore: the runs have been merged into this one.  A row's
 * block is found by the number of its first row, which was noted when the run was written.
 *
 * Memory: the struct; 8 bytes for each block, which the caller keeps.
 *-------------------------------------------------------------------------
 */
#include "merge/stream.h"

typedef struct RowStream
{
	WsStream	stream;			/* must be first */
	WsRowsIn   *rows;
	const uint64 *first_rows;	/* numbers of them, by block */
	uint32		nblocks;
	uint32		block;			/* the one that is loaded, or is to be */
	bool		loaded;
	const WsEntry *entries;		/* of it */
	Size		n;
} RowStream;

static Size
row_next(WsStream *stream, WsEntry *out, Size max)
{
	RowStream  *r = (RowStream *) stream;
	WsEntry		following;
	Size		from;
	Size		n;

	if (stream->taken >= stream->count)
		return 0;
	if (r->loaded && stream->taken >= r->first_rows[r->block] + r->n)
	{
		r->loaded = false;
		r->block++;
	}
	if (!r->loaded)
	{
		r->entries = ws_rows_in_next(r->rows, 0, &r->n, &following);
		if (r->entries == NULL)
			return 0;
		r->loaded = true;
	}
	from = (Size) (stream->taken - r->first_rows[r->block]);
	n = Min(max, Min(r->n - from, (Size) (stream->count - stream->taken)));
	memcpy(out, r->entries + from, n * sizeof(WsEntry));
	stream->taken += n;
	return n;
}

static void
row_raise(WsStream *stream)
{
	ws_rows_in_raise(((RowStream *) stream)->rows);
}

/* The block that has a row. */
static uint32
block_of(const RowStream *r, uint64 position)
{
	uint32		low = 0;
	uint32		high = r->nblocks - 1;

	while (low < high)
	{
		uint32		middle = low + (high - low + 1) / 2;

		if (r->first_rows[middle] <= position)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static void
row_seek(WsStream *stream, uint64 position)
{
	RowStream  *r = (RowStream *) stream;
	uint32		block = block_of(r, position);

	stream->taken = position;
	if (r->loaded && block == r->block)
		return;
	r->block = block;
	r->loaded = false;
	ws_rows_in_seek(r->rows, 0, block);
}

static const WsStreamOps row_ops = {row_next, row_raise, row_seek, NULL};

/* The only run of `rows`.  The numbers of the first rows of its blocks are the caller's. */
WsStream *
ws_stream_of_rows(WsRowsIn *rows, const WsRun *run, bool helper_safe, const uint64 *first_rows)
{
	RowStream  *r = palloc0(sizeof(RowStream));

	r->stream.ops = &row_ops;
	r->stream.helper_safe = helper_safe;
	r->stream.count = run->nentries;
	r->stream.context = CurrentMemoryContext;
	r->rows = rows;
	r->first_rows = first_rows;
	r->nblocks = run->blocks;
	return &r->stream;
}
