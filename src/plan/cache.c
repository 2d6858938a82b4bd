/*-------------------------------------------------------------------------
 * cache.c - how much page cache the planner counts on.
 *
 * The least of effective_cache_size and what the machine, its memory cgroups and the process's
 * limits have (os/memory.c).  Looked up at most once a second: a sort that begins looks again.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "optimizer/optimizer.h"
#include "os/os.h"
#include "utils/timestamp.h"

/* The page cache that files of this session can come to have, valid until the next call. */
const WsPageCache *
ws_page_cache(void)
{
	static WsPageCache cache;
	const WsMemory *found = ws_memory_once(GetCurrentTimestamp(), WS_FOUND_LATELY);
	double		setting = (double) effective_cache_size * BLCKSZ;

	cache.bytes = Min(setting, (double) found->bytes);
	cache.bound = ws_memory_bound_name(setting <= (double) found->bytes ? WS_BOUND_NONE : found->bound);
	return &cache;
}
