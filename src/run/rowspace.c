/*-------------------------------------------------------------------------
 * rowspace.c - where in their file the blocks of runs of rows are.
 *
 * All runs of rows share one file.  A merge gives back the place of each block that it has read, and its
 * output takes it again, so that the file hardly grows while runs are merged.  Blocks have one unit or more:
 * free units are kept as extents, in the order of their places, and neighbours are joined.  The blocks of a
 * run mostly lie one behind the other, so that what was too small for another block soon is large enough.
 *
 * Memory: 8 bytes an extent, counted in the file's account.
 * On error: those of creating a temporary file, and of memory.
 *-------------------------------------------------------------------------
 */
#include "run/run.h"

#include "utils/memutils.h"

/* Extents that are looked at for room, at most: the file rather grows a little. */
#define MOST_LOOKED		1024

/* Creates the file of all runs of rows, whose blocks have `block_size` bytes at most, but for large rows. */
void
ws_rowfile_init(WsRowFile *home, WsFileSet *files, Size block_size, WsAccount *account)
{
	memset(home, 0, sizeof(WsRowFile));
	home->files = files;
	home->file = ws_file_create(files);
	ws_file_align(files, home->file, block_size);
	home->block_size = block_size;
	home->account = account;
}

/* The number of the first extent that begins at `unit` or behind it. */
static uint32
extent_from(const WsRowFile *home, uint32 unit)
{
	uint32		low = 0;
	uint32		high = home->nfree;

	while (low < high)
	{
		uint32		middle = low + (high - low) / 2;

		if (home->free[middle].unit < unit)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void
remove_extent(WsRowFile *home, uint32 i)
{
	home->nfree--;
	memmove(&home->free[i], &home->free[i + 1], (home->nfree - i) * sizeof(WsRowExtent));
}

static void
insert_extent(WsRowFile *home, uint32 i, WsRowExtent extent)
{
	if (home->nfree == home->max_free)
	{
		uint32		more = Max(64, home->max_free / 2);
		Size		bytes = (home->max_free + more) * sizeof(WsRowExtent);

		ws_account_add(home->account, more * sizeof(WsRowExtent));
		home->max_free += more;
		home->free = home->free == NULL ? palloc(bytes) : repalloc_huge(home->free, bytes);
	}
	memmove(&home->free[i + 1], &home->free[i], (home->nfree - i) * sizeof(WsRowExtent));
	home->free[i] = extent;
	home->nfree++;
}

/* Says that n units are free again.  In the backend, and only when no helper is writing. */
void
ws_rowfile_free(WsRowFile *home, uint32 unit, uint32 n)
{
	uint32		i = extent_from(home, unit);
	WsRowExtent *behind = i < home->nfree ? &home->free[i] : NULL;
	WsRowExtent *before = i > 0 ? &home->free[i - 1] : NULL;

	if (before != NULL && before->unit + before->n == unit)
	{
		before->n += n;
		if (behind != NULL && before->unit + before->n == behind->unit)
		{
			before->n += behind->n;
			remove_extent(home, i);
		}
	}
	else if (behind != NULL && unit + n == behind->unit)
	{
		behind->unit = unit;
		behind->n += n;
	}
	else
		insert_extent(home, i, (WsRowExtent) {unit, n});
}

/* The first n units of an extent. */
static uint32
take_from(WsRowFile *home, uint32 i, uint32 n)
{
	uint32		unit = home->free[i].unit;

	home->free[i].unit += n;
	home->free[i].n -= n;
	if (home->free[i].n == 0)
		remove_extent(home, i);
	return unit;
}

/*
 * Takes n units that follow one another, and returns the first of them: from `wanted` on if these are free,
 * or from the smallest extent that has as many, of those that are looked at, or at the file's end.  May be
 * called in a helper.
 */
uint32
ws_rowfile_take(WsRowFile *home, uint32 n, uint32 wanted)
{
	uint32		found = extent_from(home, wanted);
	uint32		most = Min(home->nfree, MOST_LOOKED);

	if (found < home->nfree && home->free[found].unit == wanted && home->free[found].n >= n)
		return take_from(home, found, n);
	found = home->nfree;
	for (uint32 k = 0; k < most; k++, home->looked++)
	{
		if (home->looked >= home->nfree)
			home->looked = 0;
		if (home->free[home->looked].n >= n &&
			(found == home->nfree || home->free[home->looked].n < home->free[found].n))
			found = home->looked;
	}
	if (found < home->nfree)
		return take_from(home, found, n);
	home->end += n;
	return home->end - n;
}

/*
 * Lets the file end at a multiple of the block size, so that the blocks of the next run, as far as they are
 * full, begin at such multiples, and the system can drop them from the page cache as a whole.  (512 MB of
 * rows of 100 bytes in a cgroup of 500 MB, 64 MB: without, 0.82 times as fast as with blocks of one size;
 * bench/builds, case beyond_grid.)  May be called in a helper, which is why the units between are not said
 * to be free: they are less than a block.
 */
void
ws_rowfile_align(WsRowFile *home)
{
	uint32		block = (uint32) (home->block_size / WS_ROWS_UNIT);

	home->end += (block - home->end % block) % block;
}
