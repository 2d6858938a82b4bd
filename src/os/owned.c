/*-------------------------------------------------------------------------
 * owned.c - what is told when a resource owner goes: files, helpers, sorts that are counted.
 *
 * PostgreSQL tells a callback of each owner that goes, and one goes with every subtransaction and every
 * EXCEPTION block.  So what an owner has is found by the owner: a plan may have a sort for each of a
 * thousand partitions, and a loop over its rows a subtransaction for each row
 * (docs/decisions/32-errors-and-ownership.md).
 *
 * Memory: the one told has it.  Nothing here raises an error.
 *-------------------------------------------------------------------------
 */
#include "os/os.h"

#include "common/hashfn.h"
#include "utils/resowner.h"

#define OWNER_BUCKETS	1024

/* By the owner. */
static dlist_head buckets[OWNER_BUCKETS];

static dlist_head *
bucket_of(ResourceOwner owner)
{
	return &buckets[murmurhash32((uint32) ((uintptr_t) owner / MAXIMUM_ALIGNOF)) % OWNER_BUCKETS];
}

/* A resource owner goes, CurrentResourceOwner. */
static void
tell_owned(ResourceReleasePhase phase, bool commits, bool top_level, void *arg)
{
	ResourceOwner owner = CurrentResourceOwner;
	dlist_mutable_iter iter;

	if (phase == RESOURCE_RELEASE_LOCKS)
		return;
	dlist_foreach_modify(iter, bucket_of(owner))
	{
		WsOwned    *o = dlist_container(WsOwned, node, iter.cur);

		if (o->owner != owner)
			continue;
		o->goes(o, phase == RESOURCE_RELEASE_AFTER_LOCKS, commits);
		if (phase == RESOURCE_RELEASE_AFTER_LOCKS)
			ws_owned_drop(o);
	}
}

/*
 * Has `goes` called for `o` when CurrentResourceOwner goes: before that releases its files, and (`after`)
 * when it has released all.  `goes` may drop `o`, and does not free it.  An owner that had it before forgets
 * it.
 */
void
ws_owned_take(WsOwned *o, void (*goes) (WsOwned *o, bool after, bool commits))
{
	static bool registered = false;

	if (!registered)
		RegisterResourceReleaseCallback(tell_owned, NULL);
	registered = true;
	ws_owned_drop(o);
	o->owner = CurrentResourceOwner;
	o->goes = goes;
	if (o->owner != NULL)
		dlist_push_head(bucket_of(o->owner), &o->node);
}

/* Forgets it, if an owner has it; one of zeros has none. */
void
ws_owned_drop(WsOwned *o)
{
	if (o->owner != NULL)
		dlist_delete(&o->node);
	o->owner = NULL;
}
