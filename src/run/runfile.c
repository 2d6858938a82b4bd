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

/* Bytes of a run in its file. */
static int64
run_bytes(uint64 nentries, Size block_size)
{
	uint64		capacity = ws_block_capacity(block_size);
	uint64		blocks = (nentries + capacity - 1) / capacity;

	return sizeof(WsRunHeader) + blocks * sizeof(WsBlockHeader) + nentries * sizeof(WsEntry);
}

/* Can helpers write to and read from `home`?  Creates the file if need be. */
bool
ws_run_allow_helpers(WsRunFile *home)
{
	if (home->file == NULL)
		home->file = ws_tempfile_create();
	return ws_tempfile_allow_helpers(home->file);
}

/*
 * Starts a run of exactly nentries entries at the end of `home`, creating the
 * file if there is none (in CurrentMemoryContext).  `buffer` has block_size
 * bytes, is 16-byte aligned, and stays the caller's.  With `raw` a helper is
 * going to write the entries: the file must allow it.
 */
void
ws_run_write_begin(WsRunWriter *w, WsRunFile *home, uint64 nentries,
				   Size block_size, uint32 number, int level, char *buffer, bool raw)
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
	w->offset = home->end + sizeof(header);
	w->raw = raw;
	w->error = 0;

	ws_run_header_seal(&header, nentries, block_size, number);
	ws_tempfile_write(home->file, &header, sizeof(header), home->end);
	if (raw)
		ws_tempfile_extend(home->file, run_bytes(nentries, block_size) - sizeof(header),
						   w->offset);
	home->end += run_bytes(nentries, block_size);
	home->live++;
}

static void
write_block(WsRunWriter *w)
{
	WsBlockHeader *block = (WsBlockHeader *) w->buffer;
	Size		bytes = sizeof(WsBlockHeader) + w->filled * sizeof(WsEntry);

	ws_block_seal(block, (uint32) w->filled, w->run.number, w->block++);
	if (!w->raw)
		ws_tempfile_write(w->run.home->file, w->buffer, bytes, w->offset);
	else if (w->error == 0)
		w->error = ws_raw_write(w->run.home->file->raw, w->buffer, bytes, w->offset);
	w->offset += bytes;
	w->written += w->filled;
	w->filled = 0;
}

/*
 * Appends n entries, which must follow in order.  The last call writes all
 * that is left.  A raw writer may be called in a helper.
 */
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
		if (w->filled == capacity || w->written + w->filled == w->run.nentries)
			write_block(w);
	}
}

/* Ends the run and returns its description; raises what a helper met. */
WsRun
ws_run_write_end(WsRunWriter *w)
{
	if (w->error != 0)
		ws_tempfile_failed(w->run.home->file, true, w->error);
	if (w->written != w->run.nentries)
		elog(ERROR, "run has " UINT64_FORMAT " entries instead of " UINT64_FORMAT,
			 w->written, w->run.nentries);
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
	r->raw = false;
	r->error = 0;
	r->wrong = NULL;
	r->nread = 0;
	ws_tempfile_read(run->home->file, &header, sizeof(header), run->offset);
	wrong = ws_run_header_check(&header, run->nentries, run->block_size, run->number);
	if (wrong != NULL)
		ws_corrupt(run->home->file->name, wrong);
}

/*
 * Raises what a helper that read this run met, and counts what it read.
 */
void
ws_run_read_settle(WsRunReader *r)
{
	WsTempFile *file = r->run.home->file;

	if (r->error != 0)
		ws_tempfile_failed(file, false, r->error);
	if (r->wrong != NULL)
		ws_corrupt(file->name, r->wrong);
	if (r->nread > 0)
		ws_tempfile_count_read(r->nread);
	r->nread = 0;
}

/* Reads block number `block`, of `bytes` bytes; false in a helper that failed. */
static bool
load_block(WsRunReader *r, int64 block, Size bytes)
{
	const WsRun *run = &r->run;
	WsTempFile *file = run->home->file;
	int64		offset = run->offset + sizeof(WsRunHeader) +
		block * (int64) (sizeof(WsBlockHeader) +
						 ws_block_capacity(run->block_size) * sizeof(WsEntry));
	const char *wrong;

	r->loaded = -1;
	if (r->error != 0 || r->wrong != NULL)
		return false;			/* has been read in vain, and not been settled */
	if (!r->raw)
		ws_tempfile_read(file, r->buffer, bytes, offset);
	else if ((r->error = ws_raw_read(file->raw, r->buffer, bytes, offset)) != 0)
		return false;
	else
		r->nread += bytes;
	wrong = ws_block_check((WsBlockHeader *) r->buffer, (uint32) r->nloaded,
						   run->number, (uint32) block);
	if (wrong != NULL && !r->raw)
		ws_corrupt(file->name, wrong);
	r->wrong = wrong;
	r->loaded = wrong == NULL ? block : -1;
	return wrong == NULL;
}

/*
 * The entries of block number `block` and, in *n, how many they are; NULL
 * behind the last block, and when a helper failed.  Valid until the next call
 * with this reader.
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

		r->nloaded = (bytes - sizeof(WsBlockHeader)) / sizeof(WsEntry);
		if (!load_block(r, block, bytes))
			return NULL;
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
