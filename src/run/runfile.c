/*-------------------------------------------------------------------------
 * runfile.c - writing and reading runs.
 *
 * A run is written once, front to back, one block at a time, and read by
 * block number, in any order: a streaming merge asks for one block after the
 * other, a scrolling cursor for any.  The format and its checks are in
 * runblock.h.  Runs of one merge level share a file; when the last of them
 * has been merged the file is written from its start again, so that merging
 * in several passes does not multiply the disk that is used.
 *
 * Memory: one block, which the caller lends.
 * On error: ERRCODE_DATA_CORRUPTED with the file's name for a run that is
 * short or fails a check; otherwise the error of the system call.
 *-------------------------------------------------------------------------
 */
#include "run/run.h"

/*
 * Starts a run of exactly nentries entries at the end of `home`, creating the
 * file if there is none (in CurrentMemoryContext).  `buffer` has block_size
 * bytes, is 16-byte aligned, and stays the caller's.
 */
void
ws_run_write_begin(WsRunWriter *w, WsRunFile *home, uint64 nentries,
				   Size block_size, uint32 number, int level, char *buffer)
{
	WsRunHeader header;

	if (home->file == NULL)
		home->file = ws_tempfile_create();
	w->run.home = home;
	w->run.offset = home->end;
	w->run.nentries = nentries;
	w->run.block_size = block_size;
	w->run.number = number;
	w->run.level = level;
	w->buffer = buffer;
	w->filled = 0;
	w->written = 0;
	w->block = 0;

	ws_run_header_seal(&header, nentries, block_size, number);
	ws_tempfile_write(home->file, &header, sizeof(header), home->end);
	w->offset = home->end + sizeof(header);
}

static void
write_block(WsRunWriter *w)
{
	WsBlockHeader *block = (WsBlockHeader *) w->buffer;
	Size		bytes = sizeof(WsBlockHeader) + w->filled * sizeof(WsEntry);

	ws_block_seal(block, (uint32) w->filled, w->run.number, w->block++);
	ws_tempfile_write(w->run.home->file, w->buffer, bytes, w->offset);
	w->offset += bytes;
	w->written += w->filled;
	w->filled = 0;
}

/* Appends n entries, which must follow in order. */
void
ws_run_write(WsRunWriter *w, const WsEntry *entries, Size n)
{
	Size		capacity = ws_block_capacity(w->run.block_size);

	while (n > 0)
	{
		Size		take = Min(n, capacity - w->filled);

		memcpy(w->buffer + sizeof(WsBlockHeader) + w->filled * sizeof(WsEntry),
			   entries, take * sizeof(WsEntry));
		w->filled += take;
		entries += take;
		n -= take;
		if (w->filled == capacity)
			write_block(w);
	}
}

/* Ends the run and returns its description. */
WsRun
ws_run_write_end(WsRunWriter *w)
{
	if (w->filled > 0)
		write_block(w);
	if (w->written != w->run.nentries)
		elog(ERROR, "run has " UINT64_FORMAT " entries instead of " UINT64_FORMAT,
			 w->written, w->run.nentries);
	w->run.home->end = w->offset;
	w->run.home->live++;
	return w->run;
}

/*
 * Opens a run for reading and checks its header.  `buffer` has block_size
 * bytes, is 16-byte aligned, and stays the caller's.
 */
void
ws_run_read_begin(WsRunReader *r, const WsRun *run, char *buffer)
{
	WsRunHeader header;
	const char *wrong;

	r->run = *run;
	r->buffer = buffer;
	r->loaded = -1;
	r->nloaded = 0;
	ws_tempfile_read(run->home->file, &header, sizeof(header), run->offset);
	wrong = ws_run_header_check(&header, run->nentries, run->block_size, run->number);
	if (wrong != NULL)
		ws_corrupt(run->home->file->name, wrong);
}

/*
 * The entries of block number `block` and, in *n, how many they are; NULL
 * behind the last block.  Valid until the next call with this reader.
 */
const WsEntry *
ws_run_block(WsRunReader *r, int64 block, Size *n)
{
	const WsRun *run = &r->run;

	if (block * ws_block_capacity(run->block_size) >= run->nentries)
		return NULL;
	if (r->loaded != block)
	{
		Size		bytes = ws_block_bytes(run->block_size, run->nentries, block);
		const char *wrong;

		r->loaded = -1;
		r->nloaded = (bytes - sizeof(WsBlockHeader)) / sizeof(WsEntry);
		ws_tempfile_read(run->home->file, r->buffer, bytes,
						 run->offset + sizeof(WsRunHeader) + block * (int64)
						 (sizeof(WsBlockHeader) +
						  ws_block_capacity(run->block_size) * sizeof(WsEntry)));
		wrong = ws_block_check((WsBlockHeader *) r->buffer, (uint32) r->nloaded,
							   run->number, (uint32) block);
		if (wrong != NULL)
			ws_corrupt(run->home->file->name, wrong);
		r->loaded = block;
	}
	*n = r->nloaded;
	return (const WsEntry *) (r->buffer + sizeof(WsBlockHeader));
}

/* Is the block in the buffer the run's last? */
bool
ws_run_is_last_block(const WsRunReader *r)
{
	return (r->loaded + 1) * ws_block_capacity(r->run.block_size) >= r->run.nentries;
}

/* Entry number `index` (from 0) of the run. */
WsEntry
ws_run_entry(WsRunReader *r, uint64 index)
{
	Size		capacity = ws_block_capacity(r->run.block_size);
	Size		n;
	const WsEntry *entries = ws_run_block(r, (int64) (index / capacity), &n);

	Assert(entries != NULL && index % capacity < n);
	return entries[index % capacity];
}

/* Says that a run is no longer wanted; its file is reused when none is. */
void
ws_run_release(WsRun *run)
{
	Assert(run->home->live > 0);
	if (--run->home->live == 0)
		run->home->end = 0;
}
