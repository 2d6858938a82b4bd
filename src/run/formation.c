/*-------------------------------------------------------------------------
 * formation.c - run formation, and the passes that keep the runs few.
 *
 * Entries go into the IndexMap, piece by piece.  A full piece is sorted; if a
 * helper is there, by the helper, while the next piece is being filled.  If the
 * IndexMap can hold all entries, the pieces are merged where they are (OnePass).
 * Otherwise, from the moment when it is full, each piece is written as a run of
 * level 0 before it is filled again; when about `fan_in` runs of a level exist
 * they are merged into one run of the next level (balanced merge), so that the
 * number of runs stays logarithmic and any input can be sorted in any
 * work_mem.  The final merge is left to the reader: ws_formation_merge hands it
 * out unread.
 *
 * Runs of a level live in one file, which is used again once they have been
 * merged: with L levels the disk holds each entry at most about twice.
 *
 * The last piece need not be written where there is room for it beside the merge:
 * it is a source of the final merge where it is.
 *
 * The helper sorts by prefix and, if keys are exact, writes the run.  Settling
 * ties needs rows and comparators, and stays with the backend.
 *
 * Memory: the IndexMap, one block for writing, and what settling ties takes.
 * An intermediate merge happens when the IndexMap is empty, and reads through
 * its memory.  On error nothing is left that its owners do not clean up.
 *-------------------------------------------------------------------------
 */
#include "guc.h"
#include "run/run.h"

#include "merge/merge.h"
#include "miscadmin.h"

/* Entries moved from a merge to a run at a time. */
#define COPY_ENTRIES	1024

/* Entries of a last piece that two threads sort sooner than one. */
#define SHARED_ENTRIES	((Size) 32 * 1024)

static void
lay_out_pieces(WsFormation *f, Size piece)
{
	Size		capacity = f->map->capacity;

	f->piece = Min(piece, capacity);
	f->npieces = (int) ((capacity + f->piece - 1) / f->piece);
	f->end = f->piece;
}

/*
 * Starts run formation in CurrentMemoryContext with an IndexMap of at most
 * `max_bytes` bytes.  `spec` and `rows` must outlive it.
 */
WsFormation *
ws_formation_create(const WsKeySpec *spec, const WsKeyRows *rows, Size max_bytes)
{
	WsFormation *f = palloc0(sizeof(WsFormation));

	f->spec = spec;
	f->rows = rows;
	f->map = ws_indexmap_create(max_bytes);
	lay_out_pieces(f, WS_PIECE_ENTRIES);
	/* limiting the memory can make two of one; one more for split_last */
	f->pieces = palloc0((f->npieces + 2) * sizeof(WsPiece));
	return f;
}

/* Where a piece starts, and how many entries it can have. */
static WsEntry *
piece_entries(const WsFormation *f, int i, Size *room)
{
	Size		start = i * f->piece;

	*room = Min(f->piece, f->map->capacity - start);
	return f->map->entries + start;
}

/* Bytes of memory in use, with `ties` entries whose ties are being settled. */
static void
note_memory(WsFormation *f, Size ties)
{
	f->peak_memory = Max(f->peak_memory, ws_formation_memory(f) +
						 ties * ws_ties_bytes_per_entry(f->spec));
}

static void
note_disk(WsFormation *f)
{
	int64		disk = 0;

	for (int i = 0; i < WS_MAX_LEVELS; i++)
		if (f->files[i].file != NULL)
			disk += f->files[i].file->size;
	f->peak_disk = Max(f->peak_disk, disk);
}

static void
add_run(WsFormation *f, WsRun run)
{
	if (f->nruns == f->max_runs)
	{
		f->max_runs = Max(16, 2 * f->max_runs);
		f->runs = f->runs == NULL ? palloc(f->max_runs * sizeof(WsRun)) :
			repalloc(f->runs, f->max_runs * sizeof(WsRun));
	}
	f->runs[f->nruns++] = run;
	note_disk(f);
}

/* A merge of the pieces of the IndexMap. */
static WsMerge *
merge_pieces(WsFormation *f)
{
	int			n = f->current + 1;
	WsMerge    *merge = ws_merge_create(f->spec, f->rows, n);

	for (int i = 0; i < n; i++)
		ws_merge_slice(merge, i, f->pieces[i].entries, f->pieces[i].n);
	ws_merge_start(merge);
	return merge;
}

/*
 * A merge of the first n live runs and of what is kept in the IndexMap, through
 * the rest of its memory.  If there is three times the memory it needs, it gathers.
 */
static WsMerge *
merge_runs(WsFormation *f, int n)
{
	int			nsources = n + (f->nkept > 0 ? lengthof(f->kept) : 0);
	WsMerge    *merge = ws_merge_create(f->spec, f->rows, nsources);
	Size		kept = TYPEALIGN(64, f->nkept * sizeof(WsEntry));
	Size		blocks = nsources * f->block_size;
	Size		bytes = 3 * nsources <= f->fan_in ? 3 * blocks : blocks;
	char	   *buffers = ws_indexmap_borrow(f->map, kept + bytes) + kept;

	for (int i = 0; i < n; i++)
		ws_merge_run(merge, i, &f->runs[i], buffers + i * f->block_size);
	if (f->nkept > 0)
	{
		ws_merge_slice(merge, n, f->map->entries, f->kept[0]);
		ws_merge_slice(merge, n + 1, f->map->entries + f->kept[0], f->kept[1]);
	}
	if (!ws_merge_gather(merge, ws_block_capacity(f->block_size), (WsEntry *) (buffers + blocks),
						 (bytes - blocks) / sizeof(WsEntry)))
		ws_merge_start(merge);
	return merge;
}

/* Writes what a merge delivers as one run of nentries entries. */
static WsRun
write_merged(WsFormation *f, WsMerge *merge, uint64 nentries, int level)
{
	WsRunWriter writer;
	WsEntry		batch[COPY_ENTRIES];
	Size		n;

	if (level >= WS_MAX_LEVELS)
		elog(ERROR, "too many merge levels");
	ws_run_write_begin(&writer, &f->files[level], nentries, f->block_size,
					   f->next_number++, level, f->block, false);
	while ((n = ws_merge_next(merge, batch, COPY_ENTRIES)) > 0)
		ws_run_write(&writer, batch, n);
	ws_merge_free(merge);
	return ws_run_write_end(&writer);
}

/* Lowest level first, then youngest: any number of them span one arrival interval. */
static int
run_order(const void *a, const void *b)
{
	const WsRun *x = a;
	const WsRun *y = b;

	if (x->level != y->level)
		return x->level - y->level;
	return (x->number < y->number) - (x->number > y->number);
}

/* Merges the n live runs of the lowest levels into one. */
static void
merge_lowest(WsFormation *f, int n)
{
	uint64		entries = 0;
	int			level = 0;
	WsRun		run;

	qsort(f->runs, f->nruns, sizeof(WsRun), run_order);
	for (int i = 0; i < n; i++)
	{
		entries += f->runs[i].nentries;
		level = Max(level, f->runs[i].level);
	}
	run = write_merged(f, merge_runs(f, n), entries, level + 1);
	note_memory(f, 0);
	/* with comparators, the IndexMap may use only part of what merging may */
	ws_region_shrink(f->map->region, f->map->capacity * sizeof(WsEntry));
	f->map->room = Min(f->map->room, f->map->region->committed / sizeof(WsEntry));
	for (int i = 0; i < n; i++)
		ws_run_release(&f->runs[i]);
	memmove(f->runs, f->runs + n, (f->nruns - n) * sizeof(WsRun));
	f->nruns -= n;
	f->passes = Max(f->passes, level + 1);
	add_run(f, run);
}

static int
runs_of_level(const WsFormation *f, int level)
{
	int			n = 0;

	for (int i = 0; i < f->nruns; i++)
		n += f->runs[i].level == level;
	return n;
}

/* In a helper: sorts a piece and writes it, as far as that is asked for. */
static void
piece_chore(WsChore *chore)
{
	WsPiece    *p = (WsPiece *) chore;

	if (!p->sorted)
		ws_sort_vectorised(p->entries, p->n);
	p->sorted = true;
	if (p->write)
		ws_run_write(&p->writer, p->entries, p->n);
}

/* Has a full piece sorted and, after an overflow and if `write`, perhaps written. */
static void
submit_piece(WsFormation *f, WsPiece *p, bool write)
{
	if (f->helper == NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (!p->sorted)
			ws_sort_entries(p->entries, p->n);
		p->sorted = true;
		return;
	}
	if (write && f->overflowed && f->spec->exact && ws_run_allow_helpers(&f->files[0]))
	{
		ws_run_write_begin(&p->writer, &f->files[0], p->n, f->block_size,
						   f->next_number++, 0, f->block, true);
		p->write = true;
	}
	p->chore.run = piece_chore;
	ws_helper_submit(f->helper, &p->chore);
}

static void
run_formed(WsFormation *f, WsPiece *p)
{
	add_run(f, ws_run_write_end(&p->writer));
	f->formed++;
	p->n = 0;
	p->write = false;
}

/* Waits for a piece; afterwards it is written, or sorted with its ties settled. */
static void
finish_piece(WsFormation *f, WsPiece *p)
{
	(void) ws_helper_wait(f->helper, &p->chore);
	if (p->write)
		run_formed(f, p);
	else if (p->n > 0 && !p->settled)
	{
		Assert(p->sorted);
		note_memory(f, p->n);
		if (!f->spec->exact)
			ws_settle_ties(p->entries, p->n, f->spec, f->rows);
		p->settled = true;
	}
}

/* Writes a piece, unless that has been done. */
static void
empty_piece(WsFormation *f, WsPiece *p)
{
	finish_piece(f, p);
	if (p->n == 0)
		return;
	ws_run_write_begin(&p->writer, &f->files[0], p->n, f->block_size,
					   f->next_number++, 0, f->block, false);
	ws_run_write(&p->writer, p->entries, p->n);
	run_formed(f, p);
}

/* Writes all pieces but the current one, the oldest first. */
static void
empty_others(WsFormation *f)
{
	for (int i = 1; i < f->npieces; i++)
		empty_piece(f, &f->pieces[(f->current + i) % f->npieces]);
}

/* Writes all pieces. */
static void
empty_all(WsFormation *f)
{
	empty_others(f);
	empty_piece(f, &f->pieces[f->current]);
	f->map->count = 0;
}

/* Ends the filling of the current piece, with entries up to the map's count. */
static WsPiece *
close_piece(WsFormation *f)
{
	WsPiece    *p = &f->pieces[f->current];
	Size		room;

	ws_late_finish(f->late);
	p->entries = piece_entries(f, f->current, &room);
	p->n = f->map->count - (p->entries - f->map->entries);
	Assert(p->n <= room);
	p->sorted = p->settled = p->write = false;
	return p;
}

/* Makes piece number i the one that is filled. */
static void
open_piece(WsFormation *f, int i)
{
	Size		room;

	f->current = i;
	f->map->count = piece_entries(f, i, &room) - f->map->entries;
	f->end = f->map->count + room;
}

/* The IndexMap is full for the first time. */
static void
overflow(WsFormation *f)
{
	f->overflowed = true;
	/* their sort is done, or nearly so: now they are to be written, too */
	for (int i = 0; i < f->current; i++)
	{
		finish_piece(f, &f->pieces[i]);
		if (f->spec->exact)
			submit_piece(f, &f->pieces[i], true);
	}
}

/* Starts the helper, if there is to be one. */
static void
start_helper(WsFormation *f, Size bytes)
{
	if (f->helper == NULL && ws_sort_is_vectorised())
		f->helper = ws_helper_start(ws_sort_threads, bytes >= WS_HELPER_MEMORY);
}

/*
 * The current piece is full: has it sorted, and makes room in the next one.
 * May write runs and merge; raises their errors.
 */
void
ws_formation_next_piece(WsFormation *f)
{
	int			next = (f->current + 1) % f->npieces;
	WsPiece    *p = close_piece(f);

	if (!f->overflowed)
		start_helper(f, f->map->capacity * sizeof(WsEntry));
	if (next == 0 && !f->overflowed)
		overflow(f);
	submit_piece(f, p, true);
	if (f->helper == NULL)
		finish_piece(f, p);
	if (f->overflowed)
	{
		empty_piece(f, &f->pieces[next]);

		/* so that what is in the IndexMap still finds room among fan_in */
		if (runs_of_level(f, 0) > Max(1, f->fan_in - 2 * f->npieces + 1))
		{
			empty_all(f);
			for (int level = 0; runs_of_level(f, level) > Max(1, f->fan_in - f->npieces); level++)
				merge_lowest(f, runs_of_level(f, level));
		}
	}
	open_piece(f, next);
}

/*
 * Says that from now on `bytes` bytes of memory are there for entries, ties
 * and merging, and that runs have blocks of `block_size` bytes.  Must have
 * been called before the IndexMap is full.
 */
void
ws_formation_limit(WsFormation *f, Size bytes, Size block_size)
{
	WsIndexMap *map = f->map;
	Size		capacity;
	Size		room;

	bytes = TYPEALIGN_DOWN(4096, bytes);	/* memory comes in pages */
	capacity = bytes / (sizeof(WsEntry) + ws_ties_bytes_per_entry(f->spec));
	f->block_size = block_size;
	f->block = (char *) palloc(block_size + 16);
	f->block = (char *) TYPEALIGN(16, (uintptr_t) f->block);
	map->capacity = Max(Min(capacity, map->capacity), map->count);
	/* the pairs of ties are not there during a merge: all bytes are */
	f->fan_in = (int) Max(2, Min(bytes / block_size, 4096));
	start_helper(f, bytes);

	/* two pieces at least, so that one can be sorted while one is filled */
	if (f->current == 0 && f->helper != NULL && map->capacity < 2 * f->piece)
		lay_out_pieces(f, TYPEALIGN(4, (map->capacity + 1) / 2));
	else
		f->npieces = (int) ((map->capacity + f->piece - 1) / f->piece);
	for (;;)
	{
		Size		count = map->count;
		WsEntry    *entries = piece_entries(f, f->current, &room);

		f->end = (entries - map->entries) + room;
		if (count <= f->end)
			break;
		map->count = f->end;
		submit_piece(f, close_piece(f), true);
		map->count = count;
		f->current++;
	}
}

/*
 * Leaves the beginning of the last piece to the helper, to be sorted, and perhaps written
 * if `write`, meanwhile, and returns it as a piece of its own, an empty one if it is not worth it.
 */
static WsPiece *
split_last(WsFormation *f, WsPiece *last, bool write)
{
	WsPiece    *first = &f->pieces[f->npieces];

	memset(first, 0, sizeof(WsPiece));
	first->entries = last->entries;
	if (f->helper == NULL || !f->overflowed || last->n < SHARED_ENTRIES)
		return first;
	/* less than half if it has more to do; vqsort wants 64 bytes */
	first->n = TYPEALIGN_DOWN(4, write ? last->n * 3 / 8 : last->n / 2);
	last->entries += first->n;
	last->n -= first->n;
	submit_piece(f, first, write);
	return first;
}

/*
 * Is there room for n entries beside the blocks of the final merge, and `reading`
 * bytes for its reader?
 */
static bool
may_keep(const WsFormation *f, Size n, Size reading)
{
	Size		nsources = f->nruns + f->npieces + lengthof(f->kept);

	return f->overflowed &&
		n * sizeof(WsEntry) + 3 * nsources * f->block_size + reading <= (Size) f->fan_in * f->block_size;
}

/* Leaves the two parts of the last piece in memory, sorted, at the IndexMap's start. */
static void
keep_last(WsFormation *f, WsPiece *first, WsPiece *last)
{
	finish_piece(f, first);
	finish_piece(f, last);
	f->kept[0] = first->n;
	f->kept[1] = last->n;
	f->nkept = first->n + last->n;
	memmove(f->map->entries, first->entries, f->nkept * sizeof(WsEntry));
	first->n = last->n = 0;
	f->map->count = 0;
}

/*
 * Ends the input.  Afterwards either all entries are in the IndexMap, sorted
 * in pieces or, if `whole`, as one; or they are in at most fan_in runs, but
 * for the last ones, which may be kept in memory if not `whole`.  `reading`: bytes of the
 * memory that the reader of the final merge wants.
 */
void
ws_formation_sort_rest(WsFormation *f, bool whole, Size reading)
{
	WsIndexMap *map = f->map;
	WsPiece    *last = close_piece(f);
	bool		keep = !whole && may_keep(f, last->n, reading);
	WsPiece    *first = split_last(f, last, !keep);

	/* the helper may be busy with what came before: not with this */
	ws_sort_entries(last->entries, last->n);
	last->sorted = true;
	if (keep)
	{
		empty_others(f);
		keep_last(f, first, last);
		return;
	}
	if (f->overflowed)
	{
		empty_piece(f, first);	/* the block that runs are written from is free then */
		empty_all(f);
		while (f->nruns > f->fan_in)
			merge_lowest(f, Min(f->fan_in, f->nruns - f->fan_in + 1));
		return;
	}
	for (int i = 0; i <= f->current; i++)
		finish_piece(f, &f->pieces[i]);
	if (whole && f->current > 0)
	{
		ws_sort_entries(map->entries, map->count);
		if (!f->spec->exact)
			ws_settle_ties(map->entries, map->count, f->spec, f->rows);
	}
}

/*
 * The final merge, started but not read.  To be called once, after
 * ws_formation_sort_rest.  It reads from the IndexMap's memory.
 */
WsMerge *
ws_formation_merge(WsFormation *f)
{
	WsMerge    *merge;

	if (!f->overflowed)
		return merge_pieces(f);
	f->passes++;
	ws_region_shrink(f->map->region, f->nkept * sizeof(WsEntry));
	f->map->room = 0;
	merge = merge_runs(f, f->nruns);
	note_memory(f, 0);
	return merge;
}

/*
 * All entries as one run on disk, for readers that need any entry at any
 * time.  To be called instead of ws_formation_merge, after a MergePass.  The run
 * belongs to the formation.
 */
WsRun *
ws_formation_single_run(WsFormation *f)
{
	Assert(f->nruns > 0);
	if (f->nruns > 1)
		merge_lowest(f, f->nruns);
	ws_region_shrink(f->map->region, 0);
	return &f->runs[0];
}

/* Bytes of memory in use now. */
Size
ws_formation_memory(const WsFormation *f)
{
	return f->map->region->committed - f->map->region->released + f->block_size + f->max_runs * sizeof(WsRun);
}

/* Closes the run files and releases the IndexMap. */
void
ws_formation_close(WsFormation *f)
{
	if (f == NULL)
		return;
	ws_helper_stop(f->helper);
	f->helper = NULL;
	for (int i = 0; i < WS_MAX_LEVELS; i++)
		ws_tempfile_close(f->files[i].file);
	ws_region_destroy(f->map->region);
}
