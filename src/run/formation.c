/*-------------------------------------------------------------------------
 * formation.c - run formation, and the passes that keep the runs few.
 *
 * Entries go into the IndexMap.  If all of them fit, they are sorted where
 * they are (OnePass).  Otherwise each full IndexMap is sorted and written as
 * runs of level 0, one a piece; when about `fan_in` runs of a level exist they
 * are merged into one run of the next level (balanced merge), so that the
 * number of runs stays logarithmic and any input can be sorted in any
 * work_mem.  The final merge is left to the reader: ws_formation_merge hands it
 * out unread.
 *
 * Runs of a level live in one file, which is used again once they have been
 * merged: with L levels the disk holds each entry at most about twice.
 *
 * Memory: the IndexMap, one block for writing, and what settling ties takes.
 * An intermediate merge happens when the IndexMap is empty, and reads through
 * its memory.  On error nothing is left that its owners do not clean up.
 *-------------------------------------------------------------------------
 */
#include "run/run.h"

#include "merge/merge.h"
#include "miscadmin.h"

/* Entries moved from a merge to a run at a time. */
#define COPY_ENTRIES	1024

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
	f->piece = WS_PIECE_ENTRIES;
	return f;
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
	Size		entries;

	bytes = TYPEALIGN_DOWN(4096, bytes);	/* memory comes in pages */
	entries = bytes / (sizeof(WsEntry) + ws_ties_bytes_per_entry(f->spec));
	f->block_size = block_size;
	f->block = (char *) palloc(block_size + 16);
	f->block = (char *) TYPEALIGN(16, (uintptr_t) f->block);
	map->capacity = Max(Min(entries, map->capacity), map->count);
	/* the pairs of ties are not there during a merge: all bytes are */
	f->fan_in = (int) Max(2, Min(bytes / block_size, 4096));
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
	WsIndexMap *map = f->map;
	int			n = (int) ((map->count + f->piece - 1) / f->piece);
	WsMerge    *merge = ws_merge_create(f->spec, f->rows, Max(n, 1));

	Assert(map->sorted == map->count);
	for (int i = 0; i < n; i++)
		ws_merge_slice(merge, i, map->entries + i * f->piece,
					   Min(f->piece, map->count - i * f->piece));
	ws_merge_start(merge);
	return merge;
}

/*
 * A merge of the first n live runs, through the memory of the IndexMap.  If
 * there is three times the memory it needs, it gathers.
 */
static WsMerge *
merge_runs(WsFormation *f, int n)
{
	WsMerge    *merge = ws_merge_create(f->spec, f->rows, n);
	Size		blocks = n * f->block_size;
	Size		bytes = 3 * n <= f->fan_in ? 3 * blocks : blocks;
	char	   *buffers = ws_indexmap_borrow(f->map, bytes);

	for (int i = 0; i < n; i++)
		ws_merge_run(merge, i, &f->runs[i], buffers + i * f->block_size);
	if (!ws_merge_gather(merge, (WsEntry *) (buffers + blocks),
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
					   f->next_number++, level, f->block);
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

/*
 * Writes the IndexMap, each piece as a run of level 0, and empties it.  One
 * run of all pieces would have to be merged here, which costs more than the
 * final merge pays for having more runs.
 */
static void
write_runs(WsFormation *f)
{
	WsIndexMap *map = f->map;

	note_memory(f, map->count - map->sorted);
	ws_indexmap_sort_piece(map, f->spec, f->rows);
	for (Size start = 0; start < map->count; start += f->piece)
	{
		Size		n = Min(f->piece, map->count - start);
		WsRunWriter writer;

		ws_run_write_begin(&writer, &f->files[0], n, f->block_size,
						   f->next_number++, 0, f->block);
		ws_run_write(&writer, map->entries + start, n);
		add_run(f, ws_run_write_end(&writer));
		f->formed++;
	}
	ws_indexmap_reset(map);
}

/*
 * Takes one entry in.  May sort, write a run, and merge; raises their errors.
 */
void
ws_formation_add(WsFormation *f, WsEntry entry)
{
	WsIndexMap *map = f->map;

	if (unlikely(map->count >= map->capacity))
	{
		int			pieces = (int) ((map->capacity + f->piece - 1) / f->piece);

		write_runs(f);
		/* while the next IndexMap's runs still find room among fan_in */
		for (int level = 0; runs_of_level(f, level) > Max(1, f->fan_in - pieces); level++)
			merge_lowest(f, runs_of_level(f, level));
	}
	ws_indexmap_append(map, entry);
	f->entries++;
	if (unlikely(map->count - map->sorted >= f->piece))
		ws_indexmap_sort_piece(map, f->spec, f->rows);
}

/*
 * Ends the input.  Afterwards either all entries are in the IndexMap, sorted
 * in pieces or, if `whole`, as one; or all are in at most fan_in runs.
 */
void
ws_formation_sort_rest(WsFormation *f, bool whole)
{
	if (f->nruns == 0)
	{
		if (whole && f->map->count > f->piece)
			f->map->sorted = 0;
		ws_indexmap_sort_piece(f->map, f->spec, f->rows);
		return;
	}
	if (f->map->count > 0)
		write_runs(f);
	while (f->nruns > f->fan_in)
		merge_lowest(f, Min(f->fan_in, f->nruns - f->fan_in + 1));
}

/*
 * The final merge, started but not read.  To be called once, after
 * ws_formation_sort_rest.  It reads from the IndexMap's memory.
 */
WsMerge *
ws_formation_merge(WsFormation *f)
{
	WsMerge    *merge;

	if (f->nruns == 0)
		return merge_pieces(f);
	f->passes++;
	ws_region_shrink(f->map->region, 0);
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
	return f->map->region->committed + f->block_size + f->max_runs * sizeof(WsRun);
}

/* Closes the run files and releases the IndexMap. */
void
ws_formation_close(WsFormation *f)
{
	if (f == NULL)
		return;
	for (int i = 0; i < WS_MAX_LEVELS; i++)
		ws_tempfile_close(f->files[i].file);
	ws_region_destroy(f->map->region);
}
