/*-------------------------------------------------------------------------
 * heap_announce.c - the system told of the blocks of a table that are going to be read.
 *
 * posix_fadvise, which PrefetchBuffer is, finds memory for a block and starts the read.  A backend that
 * reads blocks at random spends 60 % of its time there.  The helper, which is idle while a window is
 * fetched, does it instead: on mappings of the table's files, with the madvise that is the same call below,
 * as PostgreSQL's descriptors are for the backend alone.  Where there is no helper, where it is behind,
 * and where files cannot be mapped, the backend does it.  (Decision 46.)
 *
 * PostgreSQL 17 and later announce by themselves (heap_buffered.c).
 *
 * Memory: that of the mappings (heap_direct.c), and 5 kB.  Raises what PrefetchBuffer does.
 *-------------------------------------------------------------------------
 */
#include "store/heap.h"

#include "storage/bufmgr.h"

#define CHORES	32				/* on their way at most */

typedef struct Announcement
{
	WsChore		chore;			/* must be first */
	int			n;
	const char *pages[WS_ANNOUNCED];
} Announcement;

struct WsAnnouncer
{
	Relation	rel;
	WsHeapOrder *order;			/* whose helper it is, as long as there is one */
	WsDirect   *files;			/* or NULL */
	Announcement chores[CHORES];
	int			next;			/* of them, to be used */
};

static void
announce_chore(WsChore *chore)
{
	const Announcement *a = (const Announcement *) chore;

	for (int i = 0; i < a->n; i++)
		ws_direct_announce(a->pages[i]);
}

/* Announces blocks of `rel`.  Allocates in CurrentMemoryContext, in which the order has its helper. */
WsAnnouncer *
ws_announcer_create(Relation rel, WsHeapOrder *order)
{
	WsAnnouncer *a = palloc0(sizeof(WsAnnouncer));

	a->rel = rel;
	a->order = order;
	if (order->helper != NULL)
		a->files = ws_direct_create(rel);
	for (int i = 0; i < CHORES; i++)
		a->chores[i].chore.run = announce_chore;
	return a;
}

/* What the helper is to do next, or NULL if the backend announces. */
static Announcement *
free_chore(WsAnnouncer *a)
{
	Announcement *chore = &a->chores[a->next];

	if (a->files == NULL || a->order->helper == NULL || ws_chore_is_queued(&chore->chore))
		return NULL;
	a->next = (a->next + 1) % CHORES;
	chore->n = 0;
	return chore;
}

/* Announces n blocks, at most WS_ANNOUNCED. */
void
ws_announce(WsAnnouncer *a, const BlockNumber *blocks, int n)
{
	Announcement *chore = free_chore(a);

	for (int i = 0; i < n; i++)
	{
		const char *page = chore != NULL ? ws_direct_page(a->files, blocks[i]) : NULL;

		if (page == NULL)
			(void) PrefetchBuffer(a->rel, MAIN_FORKNUM, blocks[i]);
		else if (!ws_direct_is_shared(a->files, blocks[i]))
			chore->pages[chore->n++] = page;
	}
	if (chore != NULL && chore->n > 0)
		ws_helper_submit(a->order->helper, &chore->chore);
}
