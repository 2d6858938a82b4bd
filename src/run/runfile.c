/*-------------------------------------------------------------------------
 * runfile.c - writing and reading runs.
 *
 * A run is written once, front to back, one block at a time, and read by
 * block number, in any order: a streaming merge asks for one block after the
 * other, a scrolling cursor for any.  The format and its checks are in
 * runblock.h.  Runs of one merge level share a file, in which a new run takes the first place that is large
 * enough, of those whose runs have been read, so that neither merging in several passes nor runs that are
 * written once more (sort/order.c) multiply the disk that is used.
 *
 * Reading raises nothing, so that helpers can do it: what was met stays in the reader of
 * the run until ws_run_read_raise.
 *
 * Memory: one block, which the caller lends, and 16 bytes a live run.
 * On error: ERRCODE_DATA_CORRUPTED with the file's name and the block for a run that is
 * short or fails a check; otherwise the error of the system call.
 *-------------------------------------------------------------------------
 */
#include "run/run.h"

/* Bytes of a run of entries in its file. */
int64
ws_run_bytes(uint64 nentries, Size block_size)
{
	uint64		capacity = ws_block_capacity(block_size);
	uint64		blocks = (nentries + capacity - 1) / capacity;

	return sizeof(WsRunHeader) + blocks * sizeof(WsBlockHeader) + nentries * sizeof(WsEntry);
}

/*
 * Prepares for runs in files of `files`, which it creates when they are needed.  Keeps what it has to know of
 * them in CurrentMemoryContext.
 */
void
ws_runs_init(WsRunFiles *home, WsFileSet *files)
{
	memset(home, 0, sizeof(WsRunFiles));
	home->files = files;
	home->context = CurrentMemoryContext;
	for (int i = 0; i < WS_MAX_LEVELS; i++)
		home->level[i].file = -1;
}

/* The number of the file of a level's runs. */
static int
file_of(WsRunFiles *home, int level)
{
	if (home->level[level].file < 0)
		home->level[level].file = ws_file_create(home->files);
	return home->level[level].file;
}

/* Can helpers write and read runs of this level? */
bool
ws_runs_allow_helpers(WsRunFiles *home, int level)
{
	return ws_file_allow_helpers(home->files, file_of(home, level));
}

/* Has room for one more live run of a level. */
static void
grow_live(WsRunFiles *home, int level)
{
	int			most = Max(16, home->level[level].max_live * 2);

	if (home->level[level].nlive < home->level[level].max_live)
		return;
	if (home->level[level].live == NULL)
		home->level[level].live = MemoryContextAlloc(home->context, most * sizeof(WsRunExtent));
	else
		home->level[level].live = repalloc(home->level[level].live, most * sizeof(WsRunExtent));
	home->level[level].max_live = most;
}

/* Where in the file of a level a run of `bytes` bytes goes, which is live from now on. */
static int64
take_place(WsRunFiles *home, int level, int64 bytes)
{
	WsRunExtent *live;
	int64		begin = 0;
	int			i = 0;

	grow_live(home, level);
	live = home->level[level].live;
	for (; i < home->level[level].nlive && live[i].begin - begin < bytes; i++)
		begin = live[i].end;
	memmove(&live[i + 1], &live[i], (home->level[level].nlive - i) * sizeof(WsRunExtent));
	live[i] = (WsRunExtent) {begin, begin + bytes};
	home->level[level].nlive++;
	return begin;
}

/*
 * Starts a run of exactly nentries entries among those of its level.  `buffer` has
 * block_size bytes, is 16-byte aligned, and stays the caller's.  If a helper is given, it
 * is going to write the entries: the level must allow it.
 */
void
ws_run_write_begin(WsRunWriter *w, WsRunFiles *home, uint64 nentries,
				   Size block_size, uint32 number, int level, char *buffer, WsHelper *helper)
{
	WsRunHeader header;
	int64		begin = take_place(home, level, ws_run_bytes(nentries, block_size));

	memset(w, 0, sizeof(WsRunWriter));
	w->files = home->files;
	w->run.file = file_of(home, level);
	w->run.offset = begin;
	w->run.nentries = nentries;
	w->run.block_size = block_size;
	w->run.number = w->run.arrival = number;
	w->run.level = level;
	w->buffer = buffer;
	w->offset = begin + sizeof(header);
	w->helper = helper;

	ws_run_header_seal(&header, nentries, block_size, number);
	ws_file_write(w->files, w->run.file, &header, sizeof(header), begin);
	if (helper != NULL)
		ws_file_extend(w->files, w->run.file, ws_run_bytes(nentries, block_size) - sizeof(header),
					   w->offset);
}

static void
write_block(WsRunWriter *w)
{
	WsBlockHeader *block = (WsBlockHeader *) w->buffer;
	Size		bytes = sizeof(WsBlockHeader) + w->filled * sizeof(WsEntry);

	ws_block_seal(block, (uint32) w->filled, w->run.number, w->block++);
	if (w->helper == NULL)
		ws_file_write(w->files, w->run.file, w->buffer, bytes, w->offset);
	else if (w->error == 0)
		w->error = ws_file_write_raw(w->files, w->run.file, w->buffer, bytes, w->offset);
	w->offset += bytes;
	w->written += w->filled;
	w->filled = 0;
}

/*
 * Appends n entries, which must follow in order.  The last call writes all
 * that is left.  May be called in a helper if the run was begun so.
 */
void
ws_run_write(WsRunWriter *w, const WsEntry *entries, Size n)
{
	Size		capacity = ws_block_capacity(w->run.block_size);

	if (n == 0)
		return;
	if (w->written + w->filled == 0)
		w->run.first = entries[0];
	w->run.last = entries[n - 1];
	while (n > 0)
	{
		Size		take = Min(n, capacity - w->filled);

		/* then nobody will read it; an error is waiting for the helper to end */
		if (w->filled == 0 && w->helper != NULL && ws_helper_is_stopping(w->helper))
			return;
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
		ws_file_write_failed(w->files, w->run.file, w->error);
	if (w->written != w->run.nentries)
		elog(ERROR, "run has " UINT64_FORMAT " entries instead of " UINT64_FORMAT,
			 w->written, w->run.nentries);
	return w->run;
}

/*
 * Reads `bytes` bytes at `offset` of the run's file, which are block number `block`, or the run's header
 * (-1), into the buffer; false if that failed.
 */
static bool
read_bytes(WsRunReader *r, int64 block, int64 offset, Size bytes)
{
	r->asked = block;
	r->read.file = r->run.file;
	r->read.offset = offset;
	r->read.bytes = bytes;
	r->read.buffer = r->buffer;
	r->reader->ops->submit(r->reader, &r->read);
	(void) r->reader->ops->wait(r->reader);
	r->error = r->read.error;
	if (r->error != 0)
		r->reader->failed = true;
	return r->error == 0;
}

/*
 * Opens a run for reading, and checks its header.  Raises what is wrong.  `buffer` has block_size
 * bytes, is 16-byte aligned, and stays the caller's, as `reader` does, which nobody else may
 * have reads submitted to meanwhile.
 */
void
ws_run_read_begin(WsRunReader *r, WsReader *reader, const WsRun *run, char *buffer)
{
	memset(r, 0, sizeof(WsRunReader));
	r->reader = reader;
	r->buffer = buffer;
	(void) ws_run_read_next(r, run);
	ws_run_read_raise(r);
}

/*
 * Continues with another run, through the same buffer; false if reading has failed.  Raises nothing: may be
 * called in a helper.
 */
bool
ws_run_read_next(WsRunReader *r, const WsRun *run)
{
	if (r->error != 0 || r->wrong != NULL)
		return false;
	r->run = *run;
	r->loaded = -1;
	if (read_bytes(r, -1, run->offset, sizeof(WsRunHeader)))
		r->wrong = ws_run_header_check((const WsRunHeader *) r->read.data, run->nentries,
									   run->block_size, run->number);
	if (r->wrong != NULL)
		r->reader->failed = true;
	return r->error == 0 && r->wrong == NULL;
}

/* Raises what was met in reading this run, if anything was. */
void
ws_run_read_raise(const WsRunReader *r)
{
	char		part[WS_PART_BYTES];

	if (r->error == 0 && r->wrong == NULL)
		return;
	if (r->asked < 0)
		snprintf(part, sizeof(part), "the header of run %u", r->run.number);
	else
		snprintf(part, sizeof(part), "block " INT64_FORMAT " of run %u", r->asked, r->run.number);
	if (r->error != 0)
		ws_file_read_failed(r->reader->files, r->run.file, r->error, r->read.offset, part);
	ws_file_corrupt(r->reader->files, r->run.file, r->read.bytes, r->read.offset, r->wrong, part);
}

/* Reads block number `block`, of `bytes` bytes; false if that failed. */
static bool
load_block(WsRunReader *r, int64 block, Size bytes)
{
	const WsRun *run = &r->run;
	int64		offset = run->offset + sizeof(WsRunHeader) +
		block * (int64) (sizeof(WsBlockHeader) +
						 ws_block_capacity(run->block_size) * sizeof(WsEntry));

	r->loaded = -1;
	/* what was met before is still to be raised */
	if (r->error != 0 || r->wrong != NULL || !read_bytes(r, block, offset, bytes))
		return false;
	r->wrong = ws_block_check((const WsBlockHeader *) r->read.data, (uint32) r->nloaded,
							  run->number, (uint32) block);
	if (r->wrong != NULL)
	{
		r->reader->failed = true;
		return false;
	}
	r->loaded = block;
	return true;
}

/*
 * The entries of block number `block` and, in *n, how many they are; NULL
 * behind the last block, and when reading failed (ws_run_read_raise).  Valid until the next call
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
	return (const WsEntry *) (r->read.data + sizeof(WsBlockHeader));
}

/* Is the block in the buffer the run's last? */
bool
ws_run_is_last_block(const WsRunReader *r)
{
	return (r->loaded + 1) * ws_block_capacity(r->run.block_size) >= r->run.nentries;
}

/* Deletes the files, of which no run is live: none is written any more. */
void
ws_runs_drop(WsRunFiles *home)
{
	for (int i = 0; i < WS_MAX_LEVELS; i++)
	{
		Assert(home->level[i].nlive == 0);
		if (home->level[i].file >= 0)
			ws_file_drop(home->files, home->level[i].file);
		home->level[i].file = -1;
	}
}

/* Says that a run is no longer wanted: its place is free. */
void
ws_run_release(WsRunFiles *home, const WsRun *run)
{
	WsRunExtent *live = home->level[run->level].live;
	int			n = home->level[run->level].nlive;
	int			i = 0;

	while (i < n && live[i].begin != run->offset)
		i++;
	if (i == n)
		elog(ERROR, "run %u is in no place", run->number);
	memmove(&live[i], &live[i + 1], (n - i - 1) * sizeof(WsRunExtent));
	home->level[run->level].nlive--;
}
