/*-------------------------------------------------------------------------
 * region.c - address space that is committed as it fills, and moved to grow.
 *
 * The IndexMap and the in-memory spool grow to a size nobody knows in
 * advance.  Doubling an array copies it and needs three times its size for
 * a moment; reserving address space and making it usable piece by piece
 * does neither, and what has been consumed can be handed back to the
 * system.
 *
 * Address space has an end, too: under ulimit -v, and with hundreds of sorts that may each
 * take terabytes.  So what is reserved is what the planner expects; where that is too little
 * the region is moved to twice as much (mremap: page tables move, bytes do not).
 *
 * A small region outlives its sort, for the next one that wants the same: a sort that is done again for each
 * row of another (a lateral subquery), or for each of many short statements, would spend most of its time
 * mapping and unmapping memory.  More rows may have been expected than come, so a region begins as a small
 * one, and is moved to what is expected when that is used up.
 *
 * Memory bound: `committed` less `released` bytes, which the region's account counts.  What is usable
 * beyond `committed` has never been touched, or has been handed back, and takes none.  Spare regions have
 * SPARES times SPARE_BYTES at most, that nobody counts.
 * On error the region goes away with the memory context it was created in.
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* mremap */
#endif
#include "os/os.h"

#include <sys/mman.h>
#include <unistd.h>

#include "utils/memutils.h"

#define HUGE_PAGE	((Size) 2 * 1024 * 1024)
#define LEAST		((Size) 64 * 1024)	/* bytes of a region */
#define STEP		((Size) 64 * 1024)	/* bytes made usable at a time */
#define SPARES		4
#define SPARE_BYTES	((Size) 64 * 1024)	/* touched, of one that is kept */
#define SPARE_SPACE	((Size) 128 * 1024) /* of address space, at most */

/* Regions that nobody has, the one that was given back last at the end. */
static struct
{
	char	   *base;
	Size		reserved;
	Size		limit;
	Size		usable;
	Size		touched;		/* bytes from base that are not zero */
}			spares[SPARES];
static int	nspares = 0;

static Size
page_size(void)
{
	static Size size = 0;

	if (size == 0)
		size = (Size) sysconf(_SC_PAGESIZE);
	return size;
}

/* Bytes that count against work_mem. */
static inline Size
counted(const WsRegion *region)
{
	return region->committed - Min(region->released, region->committed);
}

static void
count_change(WsRegion *region, Size before)
{
	Size		after = counted(region);

	if (after > before)
		ws_account_add(region->account, after - before);
	else
		ws_account_subtract(region->account, before - after);
}

/* Gives the address space of all spare regions back. */
void
ws_region_drop_spares(void)
{
	while (nspares > 0)
	{
		nspares--;
		munmap(spares[nspares].base, spares[nspares].reserved);
	}
}

/* Takes the spare of that number away. */
static void
remove_spare(int n)
{
	nspares--;
	memmove(&spares[n], &spares[n + 1], (nspares - n) * sizeof(spares[0]));
}

static void
region_unmap(void *arg)
{
	WsRegion   *region = arg;

	if (region->base == NULL)
		return;
	if (region->committed > SPARE_BYTES || region->reserved > SPARE_SPACE || region->huge_pages)
		munmap(region->base, region->reserved);
	else
	{
		if (nspares == SPARES)
		{
			munmap(spares[0].base, spares[0].reserved);
			remove_spare(0);
		}
		spares[nspares].base = region->base;
		spares[nspares].reserved = region->reserved;
		spares[nspares].limit = region->limit;
		spares[nspares].usable = region->usable;
		spares[nspares++].touched = region->committed;
	}
	region->base = NULL;
}

/* Has the region be a spare one of its size, as if it were new, if there is one. */
static bool
take_spare(WsRegion *region)
{
	for (int i = nspares - 1; i >= 0; i--)
		if (spares[i].reserved == region->reserved && spares[i].limit == region->limit)
		{
			region->base = spares[i].base;
			region->usable = spares[i].usable;
			memset(region->base, 0, spares[i].touched);
			remove_spare(i);
			return true;
		}
	return false;
}

/* Address space of `bytes` bytes, or of as much less as there is; NULL if not even LEAST. */
static void *
reserve(Size *bytes, Size least)
{
	Size		wanted = *bytes;

	for (; *bytes >= least; *bytes /= 2)
	{
		void	   *base;

		*bytes = TYPEALIGN(page_size(), *bytes);
		base = mmap(NULL, *bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (base != MAP_FAILED)
			return base;
		if (nspares > 0)
		{
			ws_region_drop_spares();
			*bytes = wanted * 2;	/* once more */
		}
	}
	return NULL;
}

/* Unless it is asked for, a small sort is not given a 2 MB page for its 64 kB. */
static void
advise(const WsRegion *region, char *base, Size bytes)
{
#ifdef MADV_HUGEPAGE
	if (region->huge_pages)
		(void) madvise(base, bytes, MADV_HUGEPAGE);
	else if (region->limit < 8 * HUGE_PAGE)
		(void) madvise(base, bytes, MADV_NOHUGEPAGE);
#endif
}

/*
 * Asks for huge pages, where the system has them: for a region that is read and written in no order
 * (docs/decisions/08-helper-orders-the-window.md).
 */
void
ws_region_use_huge_pages(WsRegion *region)
{
	region->huge_pages = true;
	advise(region, region->base, region->reserved);
}

/* A region of which `reserved` bytes are reserved now. */
static WsRegion *
create(WsAccount *account, Size reserved, Size expected, Size limit)
{
	WsRegion   *region = palloc0(sizeof(WsRegion));

	region->account = account;
	limit = TYPEALIGN(page_size(), limit);
	region->limit = Max(limit, LEAST);
	region->expected = Min(expected, region->limit);
	region->reserved = TYPEALIGN(page_size(), Max(Min(reserved, region->limit), LEAST));
	region->callback.func = region_unmap;
	region->callback.arg = region;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &region->callback);
	if (take_spare(region))
		return region;
	region->base = reserve(&region->reserved, LEAST);
	if (region->base == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Could not reserve address space for a sort: %m")));
	advise(region, region->base, region->reserved);
	return region;
}

/*
 * Reserves address space for `expected` bytes, in CurrentMemoryContext, whose reset releases
 * it.  The region may come to have `limit` bytes.  Nothing is committed yet; what will be is counted
 * in `account`, which outlives the region.  Where so much cannot be reserved (ulimit -v) the region
 * is smaller.  Raises ERRCODE_OUT_OF_MEMORY if not even 64 kB can be had.
 */
WsRegion *
ws_region_create(WsAccount *account, Size expected, Size limit)
{
	return create(account, expected, expected, limit);
}

/*
 * The same, but of what is expected no more than SPARE_SPACE is reserved before ws_region_reserve asks for
 * more: whoever commits asks before.
 */
WsRegion *
ws_region_create_small(WsAccount *account, Size expected, Size limit)
{
	return create(account, SPARE_SPACE, expected, limit);
}

/* Moves what is committed to larger address space of its own, by copying it. */
static bool
copy_region(WsRegion *region, Size bytes, Size *grown)
{
	char	   *base = reserve(grown, bytes);

	if (base == NULL)
		return false;
	advise(region, base, *grown);
	if (region->committed > 0 && mprotect(base, region->committed, PROT_READ | PROT_WRITE) != 0)
	{
		munmap(base, *grown);
		return false;
	}
	memcpy(base + region->released, region->base + region->released,
		   region->committed - region->released);
	munmap(region->base, region->reserved);
	region->base = base;
	region->usable = region->committed;
	return true;
}

/*
 * Makes sure that at least `bytes` bytes are reserved.  May move the region: every pointer
 * into it is to be made again from `base`, and no helper may be using one.  Returns false, and changes
 * nothing, if that is more than the limit, or than the system gives.
 */
bool
ws_region_reserve(WsRegion *region, Size bytes)
{
	Size		least = Max(2 * region->reserved, region->expected);
	Size		grown = Min(Max(bytes, least), region->limit);
	Size		usable = region->usable;
	char	   *moved = MAP_FAILED;

	if (bytes <= region->reserved)
		return true;
	if (bytes > region->limit)
		return false;
	bytes = TYPEALIGN(page_size(), bytes);
	grown = TYPEALIGN(page_size(), grown);

	/* fails, and changes nothing, if the system does not have it as one piece, or has no more */
	if (usable > 0)
		moved = mremap(region->base, usable, grown, MREMAP_MAYMOVE);
	if (moved == MAP_FAILED)
	{
		if (!copy_region(region, bytes, &grown))
			return false;
	}
	else
	{
		(void) mprotect(moved + usable, grown - usable, PROT_NONE);
		/* the rest of what was reserved; before it may be somebody else's by now */
		if (region->reserved > usable)
			munmap(region->base + usable, region->reserved - usable);
		region->base = moved;
	}
	region->reserved = grown;
	return true;
}

/*
 * Makes at least the first `bytes` bytes writable, in steps: where a sort commits a page at a time, the
 * calls took as long as the rows.  False if the system refuses.
 */
static bool
make_usable(WsRegion *region, Size bytes)
{
	Size		step = Min(TYPEALIGN(STEP, bytes), region->reserved);

	if (bytes <= region->usable)
		return true;
	if (bytes > region->reserved ||
		mprotect(region->base + region->usable, step - region->usable, PROT_READ | PROT_WRITE) != 0)
		return false;
	region->usable = step;
	return true;
}

/*
 * Makes at least the first `bytes` bytes usable (zero-filled where new).
 * Raises ERRCODE_OUT_OF_MEMORY when the system refuses, or when more is asked
 * for than is reserved.
 */
void
ws_region_commit(WsRegion *region, Size bytes)
{
	Size		before = counted(region);

	bytes = TYPEALIGN(page_size(), bytes);
	if (bytes <= region->committed)
		return;
	if (!make_usable(region, bytes))
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Could not commit %zu bytes for a sort.", bytes)));
	region->committed = bytes;
	count_change(region, before);
}

/*
 * Hands everything beyond the first `bytes` bytes back to the system; it can
 * be committed again, and is zero then.
 */
void
ws_region_shrink(WsRegion *region, Size bytes)
{
	Size		before = counted(region);

	bytes = TYPEALIGN(page_size(), bytes);
	if (bytes >= region->committed)
		return;
	(void) madvise(region->base + bytes, region->committed - bytes, MADV_DONTNEED);
	region->committed = bytes;
	region->released = Min(region->released, bytes);
	count_change(region, before);
}

/*
 * Hands the first `bytes` bytes, or the whole pages of them, back to the system
 * for good.
 */
void
ws_region_release(WsRegion *region, Size bytes)
{
	Size		before = counted(region);

	bytes = TYPEALIGN_DOWN(page_size(), Min(bytes, region->committed));
	if (bytes <= region->released)
		return;
	(void) madvise(region->base + region->released, bytes - region->released, MADV_DONTNEED);
	region->released = bytes;
	count_change(region, before);
}

/*
 * Releases the address space now.  The struct itself stays with its memory
 * context, which may still call back.
 */
void
ws_region_destroy(WsRegion *region)
{
	if (region == NULL)
		return;
	ws_account_subtract(region->account, counted(region));
	region_unmap(region);
	region->committed = region->usable = region->reserved = region->released = 0;
}
