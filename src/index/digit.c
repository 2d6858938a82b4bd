/*-------------------------------------------------------------------------
 * digit.c - the next bytes of the keys of rows that tie, as the prefixes of their entries.
 *
 * Keys of a group may go on alike for long: a second column of addresses, say, behind a first that is one.
 * Reading that in digits of ten bytes takes a fetch of each row a digit.  So bytes that nearly all rows share
 * are passed over: some rows show which these are, and as each row is read, it is seen whether it has them.
 * The few that do not come before or behind the others.  If these are many, all rows say what is shared.
 *
 * 127,034 rows that tie behind 40 values, with 110 bytes in common, 4 MB: 162 ms for the sort, 85 now.
 *
 * Memory: half a kilobyte.  Errors are those of fetching rows.
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "miscadmin.h"

#define SAMPLED_ROWS		64	/* that show what all share */
#define STRANGERS_ONE_IN	8	/* rows that need not share it */

/* Bytes of keys behind those that a group is known to share. */
typedef struct Shared
{
	Size		n;				/* that its rows share */
	uint8		bytes[WS_BEGINNING];
} Shared;

/* A row's bytes from d->reach on, in front of a value that only a comparator can order.  Returns how many. */
static Size
told_bytes(const WsDigit *d, WsEntry entry, Size n, uint8 *bytes)
{
	const WsKeySlot *key = d->slot;
	Size		told;

	d->rows->fetch(d->rows->store, ws_entry_pointer(entry), d->slot);
	(void) ws_key_told_bytes(d->spec, key->values, key->isnull, d->reach, n, bytes, &told);
	return told;
}

/* What the rows of a group share, as one in `step` tells. */
static void
find_shared(const WsDigit *d, const WsEntry *group, Size n, Size step, Shared *shared)
{
	shared->n = told_bytes(d, group[0], WS_BEGINNING, shared->bytes);
	for (Size i = step; i < n && shared->n > 0; i += step)
	{
		uint8		bytes[WS_BEGINNING];
		Size		same = 0;

		CHECK_FOR_INTERRUPTS();
		shared->n = told_bytes(d, group[i], shared->n, bytes);
		while (same < shared->n && bytes[same] == shared->bytes[same])
			same++;
		shared->n = same;
	}
}

static inline void
swap_entries(WsEntry *a, WsEntry *b)
{
	WsEntry		entry = *a;

	*a = *b;
	*b = entry;
}

/*
 * Gives the rows that share `shared` the bytes behind as prefixes, and puts the others before or behind them.
 * False if these are many.
 */
static bool
read_behind(WsDigit *d, WsEntry *group, Size n, const Shared *shared)
{
	WsKeySlot  *key = d->slot;
	Size		most = n / STRANGERS_ONE_IN;
	Size		i = 0;

	d->before = d->behind = 0;
	while (i < n - d->behind)
	{
		uint8		bytes[WS_BEGINNING + WS_PREFIX_BYTES];
		int			cmp;

		CHECK_FOR_INTERRUPTS();
		if (i + WS_TIES_AHEAD < n)
			d->rows->prefetch(d->rows->store, ws_entry_pointer(group[i + WS_TIES_AHEAD]));
		d->rows->fetch(d->rows->store, ws_entry_pointer(group[i]), key);
		(void) ws_key_bytes(d->spec, key->values, key->isnull, d->reach, shared->n + WS_PREFIX_BYTES, bytes);
		cmp = memcmp(bytes, shared->bytes, shared->n);
		if (cmp == 0)
		{
			group[i] = ws_key_window_entry(bytes + shared->n, ws_entry_pointer(group[i]));
			i++;
		}
		else if (d->before + d->behind == most)
			return false;
		else if (cmp < 0)
			swap_entries(&group[i++], &group[d->before++]);
		else
			swap_entries(&group[i], &group[n - ++d->behind]);
	}
	return true;
}

/*
 * Gives the rows of a group, whose keys are the same in d->reach bytes, the next bytes of the keys as
 * prefixes, and sets d->reach to how many are told then.  d->before rows in front of the others and d->behind
 * rows behind them, are less or greater than these: they keep their prefixes, and are in no order.
 */
void
ws_read_digit(WsDigit *d, WsEntry *group, Size n)
{
	Shared		shared = {.n = 0};

	/* where rows are dear to fetch, not for few */
	if (d->rows->keep == NULL || n >= SAMPLED_ROWS)
		find_shared(d, group, n, 1 + n / SAMPLED_ROWS, &shared);
	if (!read_behind(d, group, n, &shared))
	{
		/* then there are no strangers: each entry gets a new prefix */
		find_shared(d, group, n, 1, &shared);
		if (!read_behind(d, group, n, &shared))
		{
			shared.n = 0;
			(void) read_behind(d, group, n, &shared);
		}
	}
	d->reach += shared.n + WS_PREFIX_BYTES;
}
