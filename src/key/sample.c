/*-------------------------------------------------------------------------
 * sample.c - the first rows of a sort, from which something is learnt: their entries, how many of these are
 * tied, and codes of what their keys begin with: of beginnings (beginnings.c), or from ranges (range.c).
 *-------------------------------------------------------------------------
 */
#include "key/learning.h"
#include "key/text.h"

#include <math.h>

#include "miscadmin.h"

/* Of codes of beginnings. */
#define LEAST_BYTES		1024
#define MOST_OF_KEY		(WS_BEGINNING + sizeof(WsKeyBytes))
#define FIRST_KEYS		64		/* that tell how long the others are */

/*
 * Share of the rows that packing must save from being tied: it takes as long for all rows as ties do for so
 * many.  Behind letters of which a collation ignores some, ties are dear.  Then the part of the sample that
 * says so, its least rows, and how many rows there must be for one of the sample.
 */
#ifndef WORTH_PACKING
#define WORTH_PACKING	0.2
#define WORTH_IF_DEAR	0.05
#define LEAST_REST		((Size) 256)
#define MANY_MORE		16
#endif
#define REST_ONE_IN		8

/* Or packing leaves fewer of the sample tied by this factor. */
#define FEWER_TIED		4

/* Codes pay if there are so many times as many prefixes, though not fewer rows are tied. */
#define MUCH_SMALLER	8

/* The entry of the row that another entry is of, with its prefix. */
static WsEntry
make_entry(const WsLearning *l, WsEntry entry, WsKeySlot *slot)
{
	uint64		pointer = ws_entry_pointer(entry);

	CHECK_FOR_INTERRUPTS();
	l->rows->fetch(l->rows->store, pointer, slot);
	return ws_key_entry(l->spec, slot->values, slot->isnull, pointer);
}

/*
 * Takes a sample of the entries, from all of the first rows: an eighth of as many as there are rows in all,
 * but of WS_LEARN_ROWS more than half only if they are a 32nd.  What is done with it takes as long an
 * entry as a small sort takes a row.
 */
void
ws_learn_sample(WsLearning *l)
{
	double		most = Max(l->expected / 32, WS_LEARN_ROWS / 2);
	Size		wanted = Max(WS_LEARN_SAMPLE, (Size) Min(l->expected / 8, most));
	Size		step = Max(1, (l->n + wanted - 1) / wanted);

	/* more than expected: there may be many more */
	if ((double) l->n > l->expected)
		step = 1;
	l->step = step;
	l->sampled = (l->n + step - 1) / step;
	l->sample = l->entries;
	if (step > 1)
	{
		l->sample = palloc((l->sampled + 1) * sizeof(WsEntry));
		l->sample = (WsEntry *) TYPEALIGN(sizeof(WsEntry), l->sample);
		for (Size i = 0; i < l->sampled; i++)
			l->sample[i] = l->entries[i * step];
	}
	l->sorted = (WsEntry *) TYPEALIGN(64, palloc(l->sampled * sizeof(WsEntry) + 64));
}

/* Gives those of the sample their prefixes. */
void
ws_learn_entries(const WsLearning *l)
{
	WsKeySlot  *slot = l->rows->make_slot(l->rows->store);

	l->spec->cut = false;
	for (Size i = 0; i < l->sampled; i++)
		l->sample[i] = make_entry(l, l->sample[i], slot);
}

/* Gives all first rows theirs: those of the sample have them, unless it has imagined values. */
void
ws_learn_all_entries(const WsLearning *l)
{
	WsKeySlot  *slot = l->rows->make_slot(l->rows->store);

	l->spec->cut &= !l->imagined;
	for (Size i = 0; i < l->n; i++)
		l->entries[i] = !l->imagined && i % l->step == 0 ? l->sample[i / l->step] :
			make_entry(l, l->entries[i], slot);
}

/* The entries in order, with the first `bytes` bytes of their prefixes.  Valid until asked for again. */
const WsEntry *
ws_learn_sorted(const WsLearning *l, int bytes)
{
	ws_uint128	mask = ws_prefix_mask(bytes);

	for (Size i = 0; i < l->sampled; i++)
		l->sorted[i] = ws_entry_make(ws_entry_prefix(l->sample[i]) & mask, ws_entry_pointer(l->sample[i]));
	l->sort(l->sorted, l->sampled, l->vectorised);
	return l->sorted;
}

/* Rows that have the prefix of another one, though more of their keys is needed to tell their order. */
Size
ws_learn_tied(const WsLearning *l)
{
	const WsEntry *sorted = ws_learn_sorted(l, WS_PREFIX_BYTES);
	Size		tied = 0;

	for (Size i = 1; i < l->sampled; i++)
		if (ws_entry_same_prefix(sorted[i - 1], sorted[i]) &&
			ws_key_told(l->spec, sorted[i]).what != WS_TOLD_ALL)
			tied++;
	return tied;
}

/* Those whose keys are different, too. */
Size
ws_learn_tied_apart(const WsLearning *l)
{
	const WsEntry *sorted = ws_learn_sorted(l, WS_PREFIX_BYTES);
	WsKeySlot  *a = l->rows->make_slot(l->rows->store);
	WsKeySlot  *b = l->rows->make_slot(l->rows->store);
	Size		tied = 0;

	for (Size i = 1; i < l->sampled; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!ws_entry_same_prefix(sorted[i - 1], sorted[i]) ||
			ws_key_told(l->spec, sorted[i]).what == WS_TOLD_ALL)
			continue;
		l->rows->fetch(l->rows->store, ws_entry_pointer(sorted[i - 1]), a);
		l->rows->fetch(l->rows->store, ws_entry_pointer(sorted[i]), b);
		tied += ws_key_compare(l->spec, 0, a->values, a->isnull, b->values, b->isnull) != 0;
	}
	return tied;
}

/* The length of a key without the zero bytes at its end; `n` is a multiple of eight. */
static Size
without_zeros(const uint8 *key, Size n)
{
	uint64		word = 0;

	for (; n > 0 && word == 0; n -= sizeof(word))
		memcpy(&word, key + n - sizeof(word), sizeof(word));
	n += word == 0 ? 0 : sizeof(word);
	while (n > 0 && key[n - 1] == 0)
		n--;
	return n;
}

/*
 * The first bytes of the keys of some of the rows, as many as fit *bytes bytes.  Sets *found, and *bytes to
 * what these take.
 */
static WsKeyBytes *
sample_keys(const WsLearning *l, Size *found, Size *bytes)
{
	WsKeySlot  *slot = l->rows->make_slot(l->rows->store);
	WsKeyBytes *keys = palloc(l->sampled * sizeof(WsKeyBytes));
	Size		most = Min(*bytes, l->sampled * MOST_OF_KEY);
	char	   *pool = palloc(most + MOST_OF_KEY);
	Size		used = 0;
	Size		step = 1;

	*found = *bytes = 0;
	for (Size i = 0; i < l->sampled; i += step)
	{
		uint8		key[WS_BEGINNING];
		Size		length = WS_BEGINNING;

		CHECK_FOR_INTERRUPTS();
		l->rows->fetch(l->rows->store, ws_entry_pointer(l->sample[i]), slot);
		(void) ws_key_guessed_bytes(l->spec, slot->values, slot->isnull, 0, WS_BEGINNING, key);
		length = without_zeros(key, length);
		keys[(*found)++] = (WsKeyBytes) {memcpy(pool + used, key, length), length, 0};
		used += length;
		*bytes = used + *found * sizeof(WsKeyBytes);
		/* the others are as long as the first ones */
		if (*found == FIRST_KEYS)
			step = 1 + *bytes / FIRST_KEYS * l->sampled / most;
		if (*bytes + MOST_OF_KEY > most)
			break;
	}
	return keys;
}

/* Do bytes tell the order of all columns? */
static bool
bytes_tell(const WsKeySpec *spec)
{
	for (int c = 0; c < spec->ncols; c++)
		if (ws_encoding_partial(spec->cols[c].encoding))
			return false;
	return true;
}

/*
 * Gives what the keys of a sample begin with codes, and may pack the bytes behind.  What these are made of
 * takes the spare bytes, and half of those for codes.
 */
static void
make_beginnings(const WsLearning *l, WsPack pack)
{
	MemoryContext work = AllocSetContextCreate(CurrentMemoryContext, "WiscSort sample",
											   ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(work);
	Size		most = l->most;
	Size		bytes = l->spare + most / 2;
	Size		found;
	WsKeyBytes *keys = sample_keys(l, &found, &bytes);

	ws_account_add(l->account, Min(bytes, l->spare));
	ws_account_subtract(l->account, Min(bytes, l->spare));
	most -= Min(most, bytes - Min(bytes, l->spare));
	MemoryContextSwitchTo(l->context);
	l->spec->beginnings = ws_beginnings_create(keys, found, bytes_tell(l->spec), pack, most);
	l->spec->first_alone = false;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(work);
}

static void
free_beginnings(WsKeySpec *spec)
{
	if (spec->beginnings != NULL)
		ws_beginnings_free(spec->beginnings);
	spec->beginnings = NULL;
	spec->first_alone = ws_first_alone(spec);
}

/*
 * Is it worth codes that `left` entries of a sample are tied instead of `tied`?  If these are fewer by
 * WS_LEARN_FEWER, or if groups of them are smaller by MUCH_SMALLER: a row is compared by its prefix with most
 * others then.
 */
static bool
is_better(const WsLearning *l, Size left, Size tied)
{
	return left * WS_LEARN_FEWER <= tied || l->sampled - left >= (l->sampled - tied) * MUCH_SMALLER;
}

/*
 * The share of all rows that will be tied with others, as a sample of them tells: if a share of the rows, and
 * no others, are in groups of one size, the pairs and the triples in the sample tell both.  Sets *tied to
 * what ws_learn_tied returns.
 */
static double
share_tied(const WsLearning *l, Size *tied)
{
	const WsEntry *sorted = ws_learn_sorted(l, WS_PREFIX_BYTES);
	double		n = (double) l->sampled;
	double		pairs = 0;
	double		triples = 0;
	double		share = 1;
	Size		group = 1;

	*tied = 0;
	for (Size i = 1; i < l->sampled; i++)
	{
		if (!ws_entry_same_prefix(sorted[i - 1], sorted[i]) || ws_key_complete(l->spec, sorted[i]))
		{
			group = 1;
			continue;
		}
		/* with each of those before it in the group, and each two of them */
		pairs += (double) group;
		triples += (double) group * (double) (group - 1) / 2;
		group++;
		(*tied)++;
	}
	if (pairs == 0)
		return 0;
	if (triples > 0)
		share = Min(1, 2 * pairs * pairs / (3 * n * triples));
	return share * (1 - exp(-2 * pairs / (n * n) * l->expected / share));
}

/*
 * How bytes behind beginnings are packed.  A guess, of which the prefix does not tell what is in front, must
 * not be in the prefix: nobody would know it for one (told.c).  The guess of a first column without codes has
 * only a null byte in front, which is always told.
 */
static WsPack
way_to_pack(const WsKeySpec *spec)
{
	if (bytes_tell(spec) && !spec->lettered)
		return WS_PACK_ALL;
	return spec->ncols == 1 && spec->cols[0].dictionary == NULL ? WS_PACK_ALL : WS_PACK_TOLD;
}

/* Must texts be read from their beginnings on to tell what follows some bytes of their keys? */
static bool
are_ties_dear(const WsKeySpec *spec)
{
	for (int c = 0; c < spec->ncols; c++)
		if (spec->cols[c].letters != NULL && spec->cols[c].letters->table->ignores)
			return true;
	return false;
}

/*
 * Makes codes of some entries, and gives others their prefixes by these.  Returns how many of the others are
 * tied, and sets *share to the share of all rows that will be.
 */
static Size
tied_by_codes(const WsLearning *of, WsPack pack, const WsLearning *others, double *share)
{
	Size		tied;

	make_beginnings(of, pack);
	ws_learn_entries(others);
	*share = share_tied(others, &tied);
	free_beginnings(others->spec);
	return tied;
}

/*
 * Are codes that are made of most of the sample good for the rest?  If keys repeat by chance, as references
 * to many rows do, or go on with the time, codes are only good for those that they are made of.  Sets *pack
 * if it is better to pack the bytes behind.  Leaves entries without the right prefixes.
 */
static bool
hold_for_others(const WsLearning *l, WsPack *pack)
{
	WsLearning	most = *l;
	WsLearning	rest = *l;
	double		worth = are_ties_dear(l->spec) ? WORTH_IF_DEAR : WORTH_PACKING;
	double		share;
	double		packed_share;
	Size		tied;
	Size		left;

	rest.sampled = Min(l->sampled / 2, Max(l->sampled / REST_ONE_IN, LEAST_REST));
	most.sampled -= rest.sampled;
	rest.sample += most.sampled;
	tied = ws_learn_tied(&rest);
	left = tied_by_codes(&most, WS_PACK_NONE, &rest, &share);
	*pack = WS_PACK_NONE;
	if (rest.sampled >= LEAST_REST && l->expected >= (double) l->sampled * MANY_MORE && share >= worth)
	{
		WsPack		way = way_to_pack(l->spec);
		Size		packed = tied_by_codes(&most, way, &rest, &packed_share);

		/* of very many rows, few that tie in the sample mean that all do: then groups must be much smaller */
		if (share - packed_share >= worth || packed * FEWER_TIED <= left)
		{
			*pack = way;
			left = packed;
		}
	}
	return is_better(&rest, left, tied);
}

/*
 * Gives what keys begin with codes if that is better (is_better) than that `tied` of the rows are tied, as
 * now, and makes the entries anew.  Sets *tied to those that are left.  Returns the bytes that the
 * codes take.
 */
static Size
code_beginnings(const WsLearning *l, Size *tied)
{
	bool		others = !l->all || l->step > 1;
	WsPack		pack = WS_PACK_NONE;
	Size		left;

	if (l->most < LEAST_BYTES || l->sampled < WS_LEARN_LEAST)
		return 0;
	if (!others || hold_for_others(l, &pack))
	{
		make_beginnings(l, pack);
		ws_learn_entries(l);
		left = ws_learn_tied(l);
		if (is_better(l, left, *tied))
		{
			*tied = left;
			return ws_beginnings_bytes(l->spec->beginnings);
		}
		free_beginnings(l->spec);
	}
	ws_learn_entries(l);
	return 0;
}

/* The same, if many rows are tied. */
Size
ws_learn_beginnings(const WsLearning *l)
{
	Size		tied;

	if (l->sampled < WS_LEARN_LEAST || (tied = ws_learn_tied(l)) < l->sampled / WS_LEARN_ONE_IN)
		return 0;
	return code_beginnings(l, &tied);
}

/* The ranges of the first columns, in l->context; NULL if these have none. */
static WsRanges *
find_ranges(const WsLearning *l)
{
	MemoryContext work = MemoryContextSwitchTo(l->context);
	WsRanges   *r = ws_ranges_create(l->spec);
	WsKeySlot  *slot;

	MemoryContextSwitchTo(work);
	if (r == NULL)
		return NULL;
	slot = l->rows->make_slot(l->rows->store);
	for (Size i = 0; i < l->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		l->rows->fetch(l->rows->store, ws_entry_pointer(l->entries[i]), slot);
		ws_ranges_learn(r, l->spec, slot->values, slot->isnull);
	}
	ws_ranges_number(r, l->spec);
	return r;
}

/* Gives the first columns codes from their ranges, or takes them, and makes the entries anew. */
static void
use_ranges(const WsLearning *l, WsRanges *r)
{
	l->spec->ranges = r;
	l->spec->first_alone = ws_first_alone(l->spec);
	ws_learn_entries(l);
}

/* Does so if that makes prefixes of whole keys.  Did it? */
bool
ws_learn_ranges(const WsLearning *l)
{
	WsRanges   *r;

	if (ws_ranges_columns(l->spec) < l->spec->ncols || (r = find_ranges(l)) == NULL)
		return false;
	if (r->whole)
		use_ranges(l, r);
	else
		pfree(r);
	return l->spec->ranges != NULL;
}

/*
 * Gives the first columns codes from their ranges, or what keys begin with codes, whichever leaves fewer rows
 * tied, if it is fewer by WS_LEARN_FEWER.  Makes the entries anew.  Returns the bytes that codes take.
 */
Size
ws_learn_first_bytes(const WsLearning *l)
{
	WsKeySpec  *spec = l->spec;
	Size		few = Max(1, l->sampled / WS_LEARN_ONE_IN);
	Size		tied = ws_learn_tied(l);
	Size		by_ranges;
	Size		by_beginnings = tied;
	Size		bytes;
	WsRanges   *r;

	if (tied < few)
		return 0;
	/* a guess counts the bytes before it */
	if (spec->guess || (r = find_ranges(l)) == NULL)
		return code_beginnings(l, &by_beginnings);
	use_ranges(l, r);
	by_ranges = ws_learn_tied(l);
	if (by_ranges < few)
		return 0;
	use_ranges(l, NULL);
	bytes = code_beginnings(l, &by_beginnings);
	if (Min(by_beginnings, tied / WS_LEARN_FEWER) < by_ranges)
	{
		pfree(r);
		return bytes;
	}
	free_beginnings(spec);
	use_ranges(l, r);
	return 0;
}
