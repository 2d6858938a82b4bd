/*-------------------------------------------------------------------------
 * rowread.c - reading runs of rows in the order in which a merge needs their blocks.
 *
 * A merge of n runs has one block of each in memory.  Which block it needs next is known beforehand: that
 * with the least first entry (FMsort's block read order).  So the first entries of all blocks are noted
 * when runs are written, and sorted when they are to be merged; the next l blocks of that order are
 * always on their way, into l buffers more (its assist blocks).  A block that has arrived waits until its
 * run asks for it.  The buffer that the run has used up takes its place among the l.
 *
 * Where entries do not tell the whole order, keys with equal prefixes may want blocks in another order
 * than this.  A block that is not on its way is then read at once, into the buffer that its run has used
 * up, so that the order may be wrong at the price of a wait, and nothing can get stuck.
 *
 * To compare with, a merge can read as others do (WsMergeRead, the three of FMsort's Table 5): each block
 * when it is needed; or into two buffers a run, the next block while the one before is in use.
 *
 * Rows are used where they are: the entries that a block brings point to them, by place and offset (run.h).
 * They are valid until the next block of the same run is asked for.
 *
 * Reading raises nothing, so that helpers can do it: what was met stays until ws_rows_in_raise.
 *
 * Memory: the buffers, which the caller lends; 9 bytes a block for the order, and 16 more while it is being
 * sorted, before there are buffers; for a row that is larger than a block, as much as that while it is in
 * use.
 * On error: ERRCODE_DATA_CORRUPTED with the file's name and the block for one that is short or fails a check;
 * otherwise the error of the system call.
 *-------------------------------------------------------------------------
 */
#include "run/run.h"

#include <sys/mman.h>
#include <unistd.h>

#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/memutils.h"

/* Of the buffers for reading ahead, one in so many is free before the next reads are asked for. */
#define BATCH_SHARE		4

/* One block in memory, or on its way. */
typedef struct Slot
{
	WsRead		read;			/* must be first */
	struct Slot *next;		/* of its run, or of those that are free */
	bool		arrived;
} Slot;

typedef struct Run
{
	WsRun		run;
	Slot	   *current;		/* whose rows are in use */
	Slot	   *first;			/* behind it, asked for */
	Slot	   *last;
	uint32		block;			/* number of the next one */
	uint32		ordered;		/* blocks of the read order so far, the first included */
	uint32	   *units;			/* where its blocks are, one by one */
	uint8	   *lengths;		/* units that are read of each into a buffer, less 1 */
	char	   *large;			/* for blocks that are larger than a buffer, or NULL */
	Size		in_large;		/* bytes of the one that is there */
	int			error;			/* of a read, or 0 */
	const char *wrong;			/* what a check found in block number `block`, or NULL */
	Size		wrong_bytes;	/* that it has looked at */
} Run;

struct WsRowsIn
{
	WsReader   *reader;
	const WsRowSource *source;
	WsRowFile  *home;
	bool		recycle;		/* blocks that have been read make room for others */
	WsMergeRead method;
	Size		page;			/* bytes of one of the system's, or more */
	Size		counted;		/* bytes, in the file's account */
	Size		large;			/* bytes of large blocks now */
	Size		large_most;		/* and at most, of which so many are counted: */
	Size		large_counted;
	Run		   *runs;
	int			nruns;
	Slot	   *free;
	int			on_their_way;	/* blocks */
	Size		assist;			/* buffers that may still be used to read ahead in the read order */
	Size		batch;			/* that are used at a time */
	uint32	   *order;			/* runs, by the first entries of their blocks */
	uint32		norder;
	uint32		at;				/* the next of it to be asked for */
	WsReadStats *stats;
};

static int
compare_numbers(const void *a, const void *b)
{
	const WsRun *x = *(const WsRun *const *) a;
	const WsRun *y = *(const WsRun *const *) b;

	return (x->number > y->number) - (x->number < y->number);
}

static inline int
compare_starts(const WsBlockStart *x, const WsBlockStart *y)
{
	if (x->first != y->first)
		return x->first > y->first ? 1 : -1;
	return (x->run > y->run) - (x->run < y->run);
}

#define ST_SORT sort_starts
#define ST_ELEMENT_TYPE WsBlockStart
#define ST_COMPARE(a, b) compare_starts(a, b)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * Finds where the blocks of these runs are, and, for the read order, sorts all but the first ones by the
 * entries that they begin with.
 */
static void
make_order(WsRowsIn *in, const WsRun *runs, const WsBlockStart *starts, uint32 nstarts)
{
	const WsRun **by_number = palloc(in->nruns * sizeof(WsRun *));
	WsBlockStart *mine;
	Size		blocks = 0;
	uint32		n = 0;
	Run		   *r = NULL;

	for (int i = 0; i < in->nruns; i++)
	{
		by_number[i] = &runs[i];
		blocks += runs[i].blocks;
	}
	mine = MemoryContextAllocHuge(CurrentMemoryContext, Max(blocks, 1) * sizeof(WsBlockStart));
	qsort(by_number, in->nruns, sizeof(WsRun *), compare_numbers);
	for (uint32 i = 0; i < nstarts; i++)
	{
		/* those of a run follow one another */
		if (i == 0 || starts[i].run != starts[i - 1].run)
		{
			const WsRun key = {.number = starts[i].run};
			const WsRun *wanted = &key;
			const WsRun **found = bsearch(&wanted, by_number, in->nruns, sizeof(WsRun *), compare_numbers);

			r = found != NULL ? &in->runs[*found - runs] : NULL;
		}
		if (r == NULL)
			continue;
		/* counted here for once */
		r->units[r->ordered] = starts[i].unit;
		r->lengths[r->ordered] = starts[i].units_less_1;
		if (r->ordered++ == 0)
			continue;
		mine[n] = starts[i];
		mine[n++].run = (uint32) (r - in->runs);
	}
	in->stats->blocks += n;
	if (in->method != WS_READ_ORDER)
		n = 0;
	sort_starts(mine, n);
	in->order = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(uint32));
	for (uint32 i = 0; i < n; i++)
		in->order[i] = mine[i].run;
	for (int i = 0; i < in->nruns; i++)
	{
		Assert(in->runs[i].ordered == runs[i].blocks);
		in->runs[i].ordered = 1;
	}
	in->norder = n;
	in->counted += (blocks + n) * sizeof(uint32) + blocks;
	pfree(mine);
	pfree(by_number);
}

/* Has a block of a run read into a free buffer. */
static Slot *
submit_block(WsRowsIn *in, Run *r, uint32 block)
{
	Slot	   *b = in->free;

	in->free = b->next;
	b->next = NULL;
	b->arrived = false;
	b->read.file = r->run.file;
	b->read.offset = (int64) r->units[block] * WS_ROWS_UNIT;
	b->read.bytes = (r->lengths[block] + 1) * WS_ROWS_UNIT;
	if (r->first == NULL)
		r->first = b;
	else
		r->last->next = b;
	r->last = b;
	in->reader->ops->submit(in->reader, &b->read);
	in->on_their_way++;
	return b;
}

/* Has what was submitted begin. */
static void
start(WsRowsIn *in)
{
	if (in->reader->ops->start != NULL)
		in->reader->ops->start(in->reader);
}

/* Asks for as many blocks of the order as there are buffers for, a batch of them at least. */
static void
read_ahead(WsRowsIn *in)
{
	if (in->assist < in->batch)
		return;
	while (in->assist > 0 && in->at < in->norder)
	{
		Run		   *r = &in->runs[in->order[in->at++]];
		uint32		block = r->ordered++;

		if (block < r->block)
			continue;			/* it could not wait */
		in->assist--;
		submit_block(in, r, block);
	}
	start(in);
}

/*
 * Prepares reading `nruns` runs of one block size.  `starts` has the block starts of these runs, and perhaps
 * of others; it is not needed afterwards.  Run number i has place WS_ARENAS + i of source->places.  Allocates
 * in CurrentMemoryContext; counts in home->account what is not the caller's, and in `stats` what it does.
 * With `recycle`, for the backend alone, other blocks may be written where those were that have been
 * read.  `reader` is closed by ws_rows_in_free.
 */
WsRowsIn *
ws_rows_in_create(WsReader *reader, const WsRowSource *source, WsRowFile *home, bool recycle,
				  WsMergeRead method, WsReadStats *stats,
				  const WsRun *runs, int nruns, const WsBlockStart *starts, uint32 nstarts)
{
	WsRowsIn   *in = palloc0(sizeof(WsRowsIn));
	WsPlaces   *places = source->places;
	const long	page = sysconf(_SC_PAGESIZE);

	in->reader = reader;
	in->source = source;
	in->home = home;
	in->recycle = recycle;
	in->method = method;
	in->stats = stats;
	in->nruns = nruns;
	in->page = Max((Size) page, WS_IO_ALIGN);
	in->runs = palloc0(nruns * sizeof(Run));
	if (places->n < WS_ARENAS + nruns)
	{
		places->n = WS_ARENAS + nruns;
		places->base = repalloc(places->base, places->n * sizeof(char *));
		places->end = repalloc(places->end, places->n * sizeof(char *));
	}
	for (int i = 0; i < nruns; i++)
	{
		in->runs[i].run = runs[i];
		in->runs[i].units = MemoryContextAllocHuge(CurrentMemoryContext, runs[i].blocks * sizeof(uint32));
		in->runs[i].lengths = MemoryContextAllocHuge(CurrentMemoryContext, runs[i].blocks);
		if (runs[i].largest > runs[i].block_size)
			in->runs[i].large = (char *)
				TYPEALIGN(in->page, MemoryContextAllocHuge(CurrentMemoryContext,
														   runs[i].largest + in->page));
	}
	make_order(in, runs, starts, nstarts);
	ws_account_add(home->account, in->counted);
	return in;
}

/* The bytes that it has allocated, as they count. */
Size
ws_rows_in_bytes(const WsRowsIn *in)
{
	return in->counted;
}

/*
 * Starts reading, through `nbuffers` buffers, which lie one behind the other at `buffers`, aligned to 4096
 * bytes: at least as many as there are runs, or twice as many to read into two of each.  Allocates in
 * CurrentMemoryContext.
 */
void
ws_rows_in_begin(WsRowsIn *in, char *buffers, Size nbuffers)
{
	Slot	   *all = palloc0(nbuffers * sizeof(Slot));

	Assert(nbuffers >= (Size) in->nruns * (in->method == WS_READ_DOUBLE ? 2 : 1));
	in->assist = nbuffers - in->nruns;
	in->batch = Max(in->assist / BATCH_SHARE, 1);
	for (Size i = 0; i < nbuffers; i++)
	{
		all[i].read.buffer = buffers + i * in->runs[0].run.block_size;
		all[i].next = in->free;
		in->free = &all[i];
	}
	for (int i = 0; i < in->nruns; i++)
		submit_block(in, &in->runs[i], 0);
	start(in);
	read_ahead(in);
}

/* Waits for the oldest read. */
static void
wait_one(WsRowsIn *in)
{
	Slot	   *b = (Slot *) in->reader->ops->wait(in->reader);

	b->arrived = true;
	in->on_their_way--;
}

/* Waits for one block. */
static void
wait_for(WsRowsIn *in, Slot *b)
{
	instr_time	start;
	instr_time	end;

	if (b->arrived)
		return;
	INSTR_TIME_SET_CURRENT(start);
	while (!b->arrived)
		wait_one(in);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	in->stats->stalls += INSTR_TIME_GET_MICROSEC(end) >= WS_STALL_US;
	in->stats->stalled_us += INSTR_TIME_GET_MICROSEC(end);
}

/* The rest of a block that is larger than the buffer that it begins in; false if it could not be read. */
static bool
read_rest(WsRowsIn *in, Run *r, Slot *b, uint64 bytes)
{
	Slot		rest = {.read = b->read};

	r->in_large = bytes;
	in->large += bytes;
	in->large_most = Max(in->large_most, in->large);
	memcpy(r->large, b->read.data, r->run.block_size);
	rest.read.offset += r->run.block_size;
	rest.read.bytes = bytes - r->run.block_size;
	rest.read.buffer = r->large + r->run.block_size;
	in->reader->ops->submit(in->reader, &rest.read);
	in->on_their_way++;
	wait_for(in, &rest);
	if (rest.read.error == 0 && rest.read.data != rest.read.buffer)
		memcpy(rest.read.buffer, rest.read.data, rest.read.bytes);
	r->error = rest.read.error;
	return r->error == 0;
}

/* Makes the entries of a block point to the rows in it; NULL, or what is wrong. */
static const char *
place_rows(WsRowsIn *in, int run, WsRowBlock *block)
{
	WsPlaces   *places = in->source->places;
	WsEntry    *entries = ws_rowblock_entries(block);
	int			place = WS_ARENAS + run;
	uint64		most = block->bytes >> in->source->shift;
	bool		outside = false;

	for (uint32 i = 0; i < block->nentries; i++)
	{
		outside |= ws_entry_pointer(entries[i]) >= most;
		entries[i].lo += ws_travel_pointer(place, 0);
	}
	places->base[place] = (const char *) block;
	places->end[place] = (const char *) entries;
	return outside ? "An entry in it points behind its block." : NULL;
}

/* Looks at a block that has arrived, and puts it into use. */
static WsRowBlock *
enter_block(WsRowsIn *in, int run, Slot *b)
{
	Run		   *r = &in->runs[run];
	WsRowBlock *block = (WsRowBlock *) b->read.data;

	r->error = b->read.error;
	if (r->error != 0)
		return NULL;
	r->wrong_bytes = b->read.bytes;
	r->wrong = ws_rowblock_check_header(block, b->read.bytes, r->run.block_size, r->run.largest,
										r->run.number, r->block);
	if (r->wrong == NULL && block->bytes > b->read.bytes)
	{
		r->wrong_bytes = block->bytes;
		if (!read_rest(in, r, b, block->bytes))
			return NULL;
		else
			block = (WsRowBlock *) r->large;
	}
	if (r->wrong == NULL)
		r->wrong = ws_rowblock_check(block);
	if (r->wrong == NULL)
		r->wrong = place_rows(in, run, block);
	return r->wrong == NULL ? block : NULL;
}

/* Gives back what a run has used up: its buffer, and the memory of a large row. */
static void
release_block(WsRowsIn *in, Run *r)
{
	if (r->current == NULL)
		return;
	if (r->in_large > 0)
	{
		(void) madvise(r->large, TYPEALIGN_DOWN(in->page, r->in_large), MADV_DONTNEED);
		in->large -= r->in_large;
		r->in_large = 0;
	}
	r->current->next = in->free;
	in->free = r->current;
	r->current = NULL;
}

/*
 * The entries of the next block of a run, in *n how many there are, and in *following something that no
 * entry behind them is less than; NULL behind the last block, and when reading failed (ws_rows_in_raise).
 * The run's rows of before are gone.
 */
const WsEntry *
ws_rows_in_next(WsRowsIn *in, int run, Size *n, WsEntry *following)
{
	Run		   *r = &in->runs[run];
	WsRowBlock *block;
	Slot	   *b;
	bool		ahead;

	if (r->error != 0 || r->wrong != NULL || r->block == r->run.blocks)
		return NULL;
	release_block(in, r);
	/* the first one is read into the run's own buffer, as is one that could not wait */
	ahead = r->first != NULL && r->block > 0;
	b = r->first != NULL ? r->first : submit_block(in, r, r->block);
	wait_for(in, b);
	r->first = b->next;
	r->current = b;
	in->assist += ahead;
	block = enter_block(in, run, b);
	if (block == NULL)
	{
		in->reader->failed = true;
		return NULL;
	}
	if (in->recycle)
		ws_rowfile_free(in->home, r->units[r->block], (uint32) (block->bytes / WS_ROWS_UNIT));
	r->block++;
	*n = block->nentries;
	*following = r->block == r->run.blocks ? WS_ENTRY_MAX : block->next;
	if (in->method == WS_READ_DOUBLE && r->first == NULL && r->block < r->run.blocks)
	{
		submit_block(in, r, r->block);
		start(in);
	}
	read_ahead(in);
	return ws_rowblock_entries(block);
}

/* Is the next block of a run in memory already? */
bool
ws_rows_in_is_there(const WsRowsIn *in, int run)
{
	const Slot *b = in->runs[run].first;

	return b != NULL && b->arrived;
}

/* Makes a block the next one of the only run. */
void
ws_rows_in_seek(WsRowsIn *in, int run, uint32 block)
{
	Run		   *r = &in->runs[run];

	Assert(in->nruns == 1 && !in->recycle);
	while (r->first != NULL)
	{
		Slot	   *b = r->first;

		wait_for(in, b);
		r->first = b->next;
		b->next = in->free;
		in->free = b;
	}
	r->block = block;
	in->at = in->norder;		/* from now on nothing is read ahead */
}

/* Raises what was met in reading, if anything was, and counts what was read.  In the backend. */
void
ws_rows_in_raise(WsRowsIn *in)
{
	/* a helper that reads may raise it meanwhile */
	Size		most = *(volatile Size *) &in->large_most;

	ws_reader_count(in->reader);
	if (most > in->large_counted)
	{
		ws_account_add(in->home->account, most - in->large_counted);
		in->large_counted = most;
	}
	for (int i = 0; in->reader->failed && i < in->nruns; i++)
	{
		const Run  *r = &in->runs[i];
		char		part[WS_PART_BYTES];
		int64		offset;

		if (r->error == 0 && r->wrong == NULL)
			continue;
		/* the block that was entered last: a run goes no further */
		offset = (int64) r->units[r->block] * WS_ROWS_UNIT;
		snprintf(part, sizeof(part), "block %u of run %u", r->block, r->run.number);
		if (r->error != 0)
			ws_file_read_failed(in->reader->files, r->run.file, r->error, offset, part);
		ws_file_corrupt(in->reader->files, r->run.file, r->wrong_bytes, offset, r->wrong, part);
	}
}

/*
 * Waits for what is on its way, so that its buffers may go, and closes the reader.  Memory is the
 * context's.
 */
void
ws_rows_in_free(WsRowsIn *in)
{
	while (in->on_their_way > 0)
		wait_one(in);
	in->reader->ops->close(in->reader);
	ws_account_subtract(in->home->account, in->counted + in->large_counted);
	in->counted = in->large_counted = 0;
}
