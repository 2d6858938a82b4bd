/*-------------------------------------------------------------------------
 * learn.c - the first rows of a sort say which columns of its key get codes.
 *
 * Until then their entries have no prefixes (key/learn.c).  An eighth of the memory is set aside
 * meanwhile, and what dictionaries may come to take remains so.
 *-------------------------------------------------------------------------
 */
#include "sort/sorter.h"

#include "key/learning.h"

/* Of work_mem, what codes of values may take. */
#define CODES_SHARE	8

/* Of the memory, `bytes` bytes are for codes. */
static void
use_for_codes(WsSorter *sorter, Size bytes)
{
	ws_account_add(&sorter->account, bytes);
	ws_account_subtract(&sorter->account, sorter->for_codes);
	sorter->budget.total = sorter->budget.total + sorter->for_codes - bytes;
	sorter->budget.shared = sorter->budget.shared + sorter->for_codes - bytes;
	sorter->for_codes = bytes;
}

/* Has a helper make keys, if it can: now that there are no keys in its queue. */
void
ws_sorter_begin_queue(WsSorter *sorter)
{
	sorter->formation->queue = !sorter->budget.queue ? NULL :
		ws_keyqueue_create(sorter->spec, &sorter->request->threads, &sorter->account);
}

/* Before the first row: are its columns such that there is something to be learnt? */
void
ws_sorter_begin_learning(WsSorter *sorter)
{
	if (!ws_key_can_learn(sorter->spec, sorter->store->keys))
		return;
	sorter->learns = Min(WS_LEARN_ROWS, sorter->formation->end);
	use_for_codes(sorter, sorter->request->memory / CODES_SHARE);
	sorter->order = ws_order_create(sorter);
}

/* Says how keys are made, by the rows that there are, all of them if input has `ended`, and makes theirs. */
static void
learn_keys(WsSorter *sorter, bool ended)
{
	WsFormation *f = sorter->formation;
	Size		used = Min(sorter->account.now, sorter->request->memory);
	Size		bytes;
	Size		entry;
	WsLearning	l = {0};

	l.spec = sorter->spec;
	l.rows = sorter->store->keys;
	l.entries = f->map->entries;
	l.n = f->map->count;
	l.expected = sorter->request->rows;
	l.foretold = sorter->request->foretold;
	l.all = ended;
	l.most = sorter->for_codes;
	l.spare = sorter->request->memory - used;
	l.account = &sorter->account;
	l.sort = ws_sort_entries;
	l.vectorised = f->vectorised;
	bytes = ws_key_learn(&l);
	/* the rest is divided by pages */
	use_for_codes(sorter, Min(TYPEALIGN(BLCKSZ, bytes), sorter->for_codes));
	sorter->codes = sorter->for_codes;
	entry = sizeof(WsEntry) + ws_ties_bytes_per_entry(sorter->spec);
	sorter->entry_bytes = Max(sorter->entry_bytes, entry);
	ws_sorter_begin_queue(sorter);
	sorter->learnt = ws_key_learnt(sorter->spec);
}

/*
 * Learns from the rows that there are, which are all if input has `ended`, unless that has been done, before
 * anything is done with their entries.  Nothing is learnt if all rows have come in order: no key is made.
 * Raises what comparing raises.
 */
void
ws_sorter_learn(WsSorter *sorter, bool ended)
{
	bool		in_order;

	if (sorter->learns == 0)
		return;
	sorter->learns = 0;
	if (sorter->formation->map->count == 0)
	{
		use_for_codes(sorter, 0);
		return;
	}
	in_order = ws_order_holds(sorter);
	if (in_order && ended)
		use_for_codes(sorter, 0);
	else
		learn_keys(sorter, ended);
	ws_order_begin(sorter, in_order);
}

/* Gives back the memory of entries, which nobody reads any more, and of codes in them. */
void
ws_sorter_end_entries(WsSorter *sorter)
{
	ws_formation_close(sorter->formation);
	ws_key_forget(sorter->spec);
	use_for_codes(sorter, 0);
}
