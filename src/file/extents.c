/*-------------------------------------------------------------------------
 * extents.c - a mapping of a file that lies in several, in one piece of address space.
 *
 * Address space is reserved for the whole, as large as it is and no larger, and each extent is mapped into
 * its place there.  The system merges nothing of that: a mapping counts as one for each extent (65,530 is
 * Linux's usual limit for a process, vm.max_map_count).
 *
 * Memory: the struct.  On error: ERRCODE_DATA_CORRUPTED with the name of the member that is too short, here
 * or at the first touch (os/sigbus.c, which asks here whose page it was); the error of the system if it does
 * not map so much.  What was mapped goes with the memory context.
 *-------------------------------------------------------------------------
 */
#include "file/extents.h"

#include <sys/mman.h>

#include "utils/memutils.h"

struct WsExtents
{
	WsMapping	mapping;		/* must be first.  base NULL: there is none */
	const WsStripe *stripe;
	WsTempFile *const *members;
	const WsThreads *threads;
	MemoryContextCallback callback;
};

/*
 * The name of the member that has byte *at of the mapping, and in *at where that is in it.  For a handler of
 * signals.
 */
static const char *
name_at(const WsMapping *mapping, Size *at)
{
	const WsExtents *x = (const WsExtents *) mapping;
	WsPart		part = ws_stripe_part(x->stripe, 1, (int64) *at);

	*at = (Size) part.offset;
	return x->members[part.member]->name;
}

static void
unmap(void *arg)
{
	WsExtents  *x = arg;

	if (x->mapping.base == NULL)
		return;
	ws_sigbus_forget(&x->mapping);
	munmap(x->mapping.base, x->mapping.bytes);
	x->mapping.base = NULL;
}

/*
 * Prepares for mapping a file, in CurrentMemoryContext, whose members are in members[]: those that are not
 * there yet may come later.  `stripe` and `members` outlive it; `threads` says which helpers there may be.
 */
WsExtents *
ws_extents_create(const WsStripe *stripe, WsTempFile *const *members, const WsThreads *threads)
{
	WsExtents  *x = palloc0(sizeof(WsExtents));

	x->stripe = stripe;
	x->members = members;
	x->threads = threads;
	x->mapping.name_at = name_at;
	x->callback.func = unmap;
	x->callback.arg = x;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &x->callback);
	return x;
}

/*
 * Maps the first `bytes` bytes for reading and returns the address, which is valid until the next call,
 * ws_extents_close, or the end of the memory context.  Raises as said above.
 */
char *
ws_extents_map(WsExtents *x, int64 bytes)
{
	char	   *base;
	WsPart		part;

	if (x->mapping.base != NULL && x->mapping.bytes == (Size) bytes)
		return x->mapping.base;
	unmap(x);
	for (int i = 0; i < x->stripe->width; i++)
	{
		int64		length = ws_stripe_length(x->stripe, bytes, i);

		if (length > 0)
			ws_tempfile_check_length(x->members[i], length);
	}
	base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		ws_tempfile_cannot_map(x->members[0]);
	x->mapping.base = base;
	x->mapping.bytes = (Size) bytes;
	for (int64 at = 0; at < bytes; at += part.bytes)
	{
		part = ws_stripe_part(x->stripe, (Size) (bytes - at), at);
		ws_tempfile_map_at(x->members[part.member], base + at, part.bytes, part.offset);
	}
	(void) madvise(base, bytes, MADV_RANDOM);
	ws_sigbus_register(&x->mapping);
	return base;
}

/* Ends the mapping, now or soon (os/dispose.c).  The members have been closed.  NULL is fine. */
void
ws_extents_close(WsExtents *x)
{
	if (x == NULL || x->mapping.base == NULL)
		return;
	ws_sigbus_forget(&x->mapping);
	ws_dispose(x->mapping.base, x->mapping.bytes, x->threads);
	x->mapping.base = NULL;
}
