/*-------------------------------------------------------------------------
 * region.c - address space reserved once and committed as it fills.
 *
 * The IndexMap and the in-memory spool grow to a size nobody knows in
 * advance.  Doubling an array copies it and needs three times its size for
 * a moment; reserving address space and making it usable piece by piece
 * does neither, and what has been consumed can be handed back to the
 * system.
 *
 * Memory bound: `committed` bytes, which is what the caller counts against
 * work_mem.  On error the region goes away with the memory context it was
 * created in.
 *-------------------------------------------------------------------------
 */
#include "os/os.h"

#include <sys/mman.h>
#include <unistd.h>

#include "utils/memutils.h"

#define HUGE_PAGE	((Size) 2 * 1024 * 1024)
#define TERABYTE	((Size) 1 << 40)

static void
region_unmap(void *arg)
{
	WsRegion   *region = arg;

	if (region->base != NULL)
		munmap(region->base, region->reserved);
	region->base = NULL;
}

/*
 * Reserves address space for up to `bytes` bytes, in CurrentMemoryContext,
 * whose reset releases it.  Nothing is committed yet.  Where so much cannot
 * be reserved (ulimit -v) the region is smaller: look at `reserved`.
 * Raises ERRCODE_OUT_OF_MEMORY if not even 64 kB can be had.
 */
WsRegion *
ws_region_create(Size bytes)
{
	WsRegion   *region = palloc0(sizeof(WsRegion));
	Size		page = sysconf(_SC_PAGESIZE);
	void	   *base = MAP_FAILED;

	bytes = TYPEALIGN(page, Min(bytes, TERABYTE));
	while (bytes >= 64 * 1024)
	{
		base = mmap(NULL, bytes, PROT_NONE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (base != MAP_FAILED)
			break;
		bytes = TYPEALIGN(page, bytes / 2);
	}
	if (base == MAP_FAILED)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Could not reserve address space for a sort: %m")));
	region->base = base;
	region->reserved = bytes;
#ifdef MADV_NOHUGEPAGE
	/* A small sort must not be given a 2 MB page for its 64 kB. */
	if (bytes < 8 * HUGE_PAGE)
		(void) madvise(base, bytes, MADV_NOHUGEPAGE);
#endif
	region->callback.func = region_unmap;
	region->callback.arg = region;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &region->callback);
	return region;
}

/*
 * Makes at least the first `bytes` bytes usable (zero-filled where new).
 * Raises ERRCODE_OUT_OF_MEMORY when the system refuses, or when more is asked
 * for than was reserved.
 */
void
ws_region_commit(WsRegion *region, Size bytes)
{
	Size		page = sysconf(_SC_PAGESIZE);

	bytes = TYPEALIGN(page, bytes);
	if (bytes <= region->committed)
		return;
	if (bytes > region->reserved ||
		mprotect(region->base + region->committed, bytes - region->committed,
				 PROT_READ | PROT_WRITE) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Could not commit %zu bytes for a sort.", bytes)));
	region->committed = bytes;
}

/*
 * Hands everything beyond the first `bytes` bytes back to the system; it can
 * be committed again, and is zero then.
 */
void
ws_region_shrink(WsRegion *region, Size bytes)
{
	Size		page = sysconf(_SC_PAGESIZE);

	bytes = TYPEALIGN(page, bytes);
	if (bytes >= region->committed)
		return;
	(void) madvise(region->base + bytes, region->committed - bytes, MADV_DONTNEED);
	(void) mprotect(region->base + bytes, region->committed - bytes, PROT_NONE);
	region->committed = bytes;
}

/*
 * Hands the first `bytes` bytes, or the whole pages of them, back to the system
 * for good.
 */
void
ws_region_release(WsRegion *region, Size bytes)
{
	Size		page = sysconf(_SC_PAGESIZE);

	bytes = TYPEALIGN_DOWN(page, bytes);
	if (bytes <= region->released)
		return;
	(void) madvise(region->base + region->released, bytes - region->released, MADV_DONTNEED);
	region->released = bytes;
}

/*
 * Releases the address space now.  The struct itself stays with its memory
 * context, which may still call back.
 */
void
ws_region_destroy(WsRegion *region)
{
	if (region != NULL)
	{
		region_unmap(region);
		region->committed = region->reserved = region->released = 0;
	}
}
