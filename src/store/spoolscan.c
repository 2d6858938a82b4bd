/*-------------------------------------------------------------------------
 * spoolscan.c - is the spool's file still in memory; and its rows once more, in the order in which they came.
 *
 * A spool is fast as long as the page cache has its file.  Whether it does is known to the system alone,
 * and can change while rows are handed out: so samples of its pages are looked at.  If they are gone,
 * all rows are read once from front to back, and sorted again (sort/again.c).
 *
 * No list of rows is kept for that.  A row says how long it is, and the next one begins where alignment
 * lets it, or behind the padding of a flush, of which all bytes are 0; a row's header never is, nor is the
 * length in front of a row that is too long for its header (spool.c has the format).
 *
 * What has been read is given back to the file system by and by, where that knows holes: the disk need
 * not hold rows twice.
 *
 * Memory: a slot.  On error: as spoolread.c.
 *-------------------------------------------------------------------------
 */
#include "store/row.h"
#include "store/spool.h"

#define SAMPLES			64
#define SAMPLE_BYTES	((int64) 64 * 1024)

#define READ_STEP		((int64) 1024 * 1024)
#define READ_AHEAD		((int64) 4 * 1024 * 1024)
#define PUNCH_STEP		((int64) 16 * 1024 * 1024)

/*
 * Can it be told which of the file's pages are in memory?  Asked when the last of them has just been written:
 * if even that is not there, the file system keeps its files elsewhere (ZFS), or needs no memory for them
 * (DAX).
 */
bool
ws_spool_tells(const WsSpool *spool)
{
	int64		last = spool->mapped - SAMPLE_BYTES;
	double		absent = last < 0 ? -1 : ws_pages_absent(spool->map + last, SAMPLE_BYTES);

	return absent >= 0 && absent < 1;
}

/* Of the file's pages, the share that is not in memory: 0 to 1, from samples; 0 if that cannot be told. */
double
ws_spool_absent(const WsSpool *spool)
{
	int64		samples = Min(SAMPLES, spool->mapped / SAMPLE_BYTES);
	int64		last = spool->mapped - SAMPLE_BYTES;
	double		absent = 0;

	if (samples == 0 || !spool->tells)
		return 0;
	for (int64 i = 0; i < samples; i++)
	{
		double		here = ws_pages_absent(spool->map + last / Max(samples - 1, 1) * i, SAMPLE_BYTES);

		if (here < 0)
			return 0;
		absent += here;
	}
	return absent / (double) samples;
}

/* Where the header of the row, or its length, is that begins behind offset `end`. */
static int64
next_begin(const WsSpool *spool, int64 end)
{
	int64		unit = (int64) 1 << spool->shift;
	int64		here = TYPEALIGN(unit, end + WS_ROW_HEADER) - WS_ROW_HEADER;
	uint32		bits;

	if (here + (int64) sizeof(bits) > spool->flushed)
		ws_spool_damaged(spool, "It ends before its last row.", Min(here, spool->flushed - 1));
	memcpy(&bits, spool->map + here, sizeof(bits));
	return bits != 0 ? here : (int64) TYPEALIGN(8, end) + 8 - WS_ROW_HEADER;
}

/* Begins: all rows are in the file, and what handed them out in order has ended. */
static WsSpoolScan *
begin(WsSpool *spool)
{
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(spool));
	WsSpoolScan *scan = palloc0(sizeof(WsSpoolScan));

	scan->slot = MakeSingleTupleTableSlot(spool->desc, &TTSOpsHeapTuple);
	scan->end = WS_SPOOL_HEADER;
	scan->punches = true;
	ws_file_read_ahead(spool->files, spool->file, READ_AHEAD, 0);
	scan->asked = READ_AHEAD;
	MemoryContextSwitchTo(old);
	return scan;
}

/*
 * The next row in the order in which they came, from the first, in a slot of the spool's; NULL at the end,
 * where the file is deleted.  A row is gone at the next call.  Raises ERRCODE_DATA_CORRUPTED.
 */
TupleTableSlot *
ws_spool_scan(WsSpool *spool)
{
	WsSpoolScan *scan = spool->scan;
	int64		row;
	int64		behind;

	if (scan == NULL)
		scan = spool->scan = begin(spool);
	if (scan->rows == spool->nrows)
	{
		ExecClearTuple(scan->slot);
		ws_spool_drop_file(spool);
		return NULL;
	}
	if (scan->asked < spool->flushed && scan->end + READ_AHEAD > scan->asked)
	{
		ws_file_read_ahead(spool->files, spool->file, READ_STEP, scan->asked);
		scan->asked += READ_STEP;
	}
	behind = TYPEALIGN_DOWN(ws_page_bytes(), scan->end);
	if (scan->punches && behind >= scan->punched + PUNCH_STEP)
	{
		scan->punches = ws_file_punch(spool->files, spool->file, behind - scan->punched, scan->punched);
		scan->punched = behind;
	}

	row = next_begin(spool, scan->end);
	if (row + WS_ROW_HEADER > spool->flushed)
		ws_spool_damaged(spool, "It ends before its last row.", Min(row, spool->flushed - 1));
	if (spool->map[row + 4] == 0)	/* where a header has how long it is; a length is less than 4 GB */
		row += sizeof(uint64);
	ws_spool_tuple(spool, (uint64) (row + WS_ROW_HEADER) >> spool->shift, &scan->tuple);
	scan->end = row + scan->tuple.t_len - UNSTORED;
	scan->rows++;
	ExecStoreHeapTuple(&scan->tuple, scan->slot, false);
	return scan->slot;
}
