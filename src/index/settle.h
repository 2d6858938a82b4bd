/*-------------------------------------------------------------------------
 * settle.h - what the parts of settling ties share: ties.c, compared.c.
 *-------------------------------------------------------------------------
 */
#ifndef WS_SETTLE_H
#define WS_SETTLE_H

#include "index/index.h"

#define FEW_ROWS		4		/* rows that are compared at once */

typedef struct Ties
{
	const WsKeySpec *spec;		/* of the columns from number `first` on: those before are the same */
	int			first;
	const WsKeyRows *rows;
	WsKeySlot  *slot[2];
	bool		vectorised;		/* entries are sorted by vqsort */
	int			told;			/* columns that are the same throughout the group */
	Size		reach;			/* bytes of the key that are the same throughout the group, or are told */
	bool		unverified;		/* its prefixes are a guess that is going to be verified */
	bool		tied;			/* a comparison has found equal values, with columns behind */
	WsWindows  *windows;		/* room for those of a small group */
	/* orders a group by keys of its rows from their first bytes on, of which no prefix tells anything */
	void		(*settle_by_key) (struct Ties *t, WsEntry *group, Size n);
} Ties;

static inline WsKeySlot *
fetch(Ties *t, uint64 pointer, int slot)
{
	t->rows->fetch(t->rows->store, pointer, t->slot[slot]);
	return t->slot[slot];
}

/* The row of entry i of a group whose rows are read one after the other; those further on are asked for. */
static inline WsKeySlot *
fetch_in_turn(Ties *t, const WsEntry *group, Size n, Size i)
{
	if (i + WS_TIES_AHEAD < n)
		t->rows->prefetch(t->rows->store, ws_entry_pointer(group[i + WS_TIES_AHEAD]));
	return fetch(t, ws_entry_pointer(group[i]), 0);
}

/* Orders two rows by their key columns from number `column` on. */
static inline int
compare_keys(Ties *t, uint64 a, uint64 b, int column)
{
	WsKeySlot *x = fetch(t, a, 0);
	WsKeySlot *y = fetch(t, b, 1);

	return ws_key_compare(t->spec, column, x->values, x->isnull, y->values, y->isnull);
}

/* ---- compared.c ---- */
extern void ws_compare_rows(Ties *t, WsEntry *group, Size n);
extern bool ws_settle_same(Ties *t, WsEntry *group, Size n);
extern void ws_settle_by_comparator(Ties *t, WsEntry *group, Size n);
extern bool ws_each_follows(Ties *t, WsEntry *entries, Size n);
extern bool ws_mend(Ties *t, WsEntry *entries, Size n);

#endif							/* WS_SETTLE_H */
