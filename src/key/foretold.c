/*-------------------------------------------------------------------------
 * foretold.c - values that the first rows of a sort do not show, but statistics foretell.
 *
 * A table that was loaded by region, or is partitioned by it, is in stretches of equal values: its first
 * rows have one or two, and nothing made of these is good for the others.  So where neighbours among the
 * first rows are mostly equal in a column, its statistics are asked.  If they know values of most rows, and
 * the first rows lack half of these, every second of the rows that are learnt from is given such a value, as
 * often as it comes in the table.  The other columns of a row stay as they are.
 *
 * Only what is learnt depends on that; prefixes are made of the rows as they are.  So statistics may be
 * wrong, and values may be there that the query does not select.  Comparing these must not raise an error
 * that the sort would not: columns that only a comparison function of somebody's can order are left out.
 *
 * Memory: that of the values, in CurrentMemoryContext.  Errors are those of the catalogs.
 *-------------------------------------------------------------------------
 */
#include "key/learning.h"
#include "key/value.h"

#include "common/hashfn.h"
#include "miscadmin.h"

/* Neighbours that are looked at, and rows. */
#define LOOKED			64

/* Of the rows, those that the values are to be of; and of these, those whose values the first rows show. */
#define LEAST_KNOWN		0.5
#define MOST_SHOWN		0.5

/* So many values are few, at most: their dictionary fits the cache of a processor. */
#define FEW				1024

/* A column, and the values that it is given. */
typedef struct Column
{
	AttrNumber	attno;
	WsFrequent	frequent;
	double	   *sums;			/* of the shares up to each value */
	double		known;			/* the last one */
} Column;

/* The rows as they are learnt from. */
typedef struct Imagined
{
	WsKeyRows	rows;			/* with this as their store */
	const WsKeyRows *real;
	int			ncolumns;
	Column	   *columns;
} Imagined;

static void
ready_imagined(void *store)
{
	const WsKeyRows *real = ((Imagined *) store)->real;

	real->ready(real->store);
}

static void
prefetch_imagined(void *store, uint64 pointer)
{
	const WsKeyRows *real = ((Imagined *) store)->real;

	real->prefetch(real->store, pointer);
}

static WsKeySlot *
make_imagined_slot(void *store)
{
	const WsKeyRows *real = ((Imagined *) store)->real;

	return real->make_slot(real->store);
}

/* A value, drawn by a number, as often as it comes in the table. */
static Datum
draw_value(const Column *col, uint32 number)
{
	double		place = col->known * number / ((double) PG_UINT32_MAX + 1);
	int			from = 0;
	int			to = col->frequent.n - 1;

	while (from < to)
	{
		int			middle = (from + to) / 2;

		if (place < col->sums[middle])
			to = middle;
		else
			from = middle + 1;
	}
	return col->frequent.values[from];
}

/* A row, of which every second has other values, always the same ones. */
static void
fetch_imagined(void *store, uint64 pointer, WsKeySlot *slot)
{
	const Imagined *im = store;
	uint32		number = murmurhash32((uint32) (pointer ^ pointer >> 32));

	im->real->fetch(im->real->store, pointer, slot);
	if (number % 2 == 0)
		return;
	for (int c = 0; c < im->ncolumns; c++)
	{
		const Column *col = &im->columns[c];

		number = murmurhash32(number + 1);
		slot->values[col->attno - 1] = draw_value(col, number);
		slot->isnull[col->attno - 1] = false;
	}
}

/* Of how many of LOOKED rows has the next one the same value?  An array by column. */
static int *
count_same(const WsLearning *l)
{
	const WsKeySpec *spec = l->spec;
	WsKeySlot  *a = l->rows->make_slot(l->rows->store);
	WsKeySlot  *b = l->rows->make_slot(l->rows->store);
	int		   *same = palloc0(spec->ncols * sizeof(int));

	for (Size i = 0; i < LOOKED; i++)
	{
		Size		at = i * (l->n - 1) / LOOKED;

		l->rows->fetch(l->rows->store, ws_entry_pointer(l->entries[at]), a);
		l->rows->fetch(l->rows->store, ws_entry_pointer(l->entries[at + 1]), b);
		for (int c = 0; c < spec->ncols; c++)
		{
			const WsKeyColumn *col = &spec->cols[c];
			int			k = col->attno - 1;

			same[c] += !a->isnull[k] && !b->isnull[k] && ws_same_value(col, a->values[k], b->values[k]);
		}
	}
	return same;
}

/* Do the first rows lack half of the values, by the rows that these are of? */
static bool
are_lacking(const WsLearning *l, const WsKeyColumn *col, const Column *of)
{
	WsKeySlot  *slot = l->rows->make_slot(l->rows->store);
	bool	   *seen = palloc0(of->frequent.n * sizeof(bool));
	double		shown = 0;

	for (Size i = 0; i < LOOKED; i++)
	{
		l->rows->fetch(l->rows->store, ws_entry_pointer(l->entries[i * l->n / LOOKED]), slot);
		if (slot->isnull[of->attno - 1])
			continue;
		for (int j = 0; j < of->frequent.n; j++)
			if (!seen[j] && ws_same_value(col, slot->values[of->attno - 1], of->frequent.values[j]))
			{
				seen[j] = true;
				shown += of->frequent.shares[j];
			}
		CHECK_FOR_INTERRUPTS();
	}
	pfree(seen);
	return of->known >= LEAST_KNOWN && shown < of->known * MOST_SHOWN;
}

/* Asks for the values of a column.  False if none is known. */
static bool
ask(const WsLearning *l, int column, Column *of)
{
	of->attno = l->spec->cols[column].attno;
	of->known = 0;
	if (l->foretold == NULL || !l->foretold->ask(l->foretold->who, column, &of->frequent))
		return false;
	of->sums = palloc(of->frequent.n * sizeof(double));
	for (int i = 0; i < of->frequent.n; i++)
		of->sums[i] = of->known += of->frequent.shares[i];
	return true;
}

/* Do statistics say that a column has few values? */
bool
ws_foretold_few(const WsLearning *l, int column)
{
	Column		of;

	return ask(l, column, &of) && of.frequent.distinct > 0 && of.frequent.distinct <= FEW;
}

/* What statistics say of how many values a column has; 0 if nothing, or less than the first rows show. */
static double
distinct_foretold(const WsLearning *l, int column, int seen)
{
	Column		of;

	return ask(l, column, &of) && of.frequent.distinct >= seen ? of.frequent.distinct : 0;
}

/* Do statistics say that a dictionary has room for all values of a column, which are no fewer than `seen`? */
bool
ws_foretold_to_fit(const WsLearning *l, int column, int seen, int room)
{
	double		distinct = distinct_foretold(l, column, seen);

	return distinct > 0 && distinct <= room;
}

/* The same; where statistics do not say it, twice as many values may come as the first rows have. */
bool
ws_foretold_fit(const WsLearning *l, int column, int seen, int room)
{
	double		distinct = distinct_foretold(l, column, seen);

	return distinct > 0 ? distinct <= room : seen <= room / 2;
}

/*
 * Has the rows that are learnt from show values that statistics foretell, if the first ones lack them: sets
 * l->rows and l->imagined.
 */
void
ws_learn_foretold(WsLearning *l)
{
	const WsKeySpec *spec = l->spec;
	Imagined   *im;
	int		   *same;

	if (l->foretold == NULL || l->all || l->n < WS_LEARN_LEAST)
		return;
	im = palloc(sizeof(Imagined));
	*im = (Imagined) {*l->rows, l->rows, 0, palloc(spec->ncols * sizeof(Column))};
	im->rows.ready = ready_imagined;
	im->rows.prefetch = prefetch_imagined;
	im->rows.make_slot = make_imagined_slot;
	im->rows.fetch = fetch_imagined;
	im->rows.store = im;
	same = count_same(l);
	for (int c = 0; c < spec->ncols; c++)
	{
		const WsKeyColumn *col = &spec->cols[c];

		if (same[c] * 2 >= LOOKED && (col->transform != NULL || !ws_encoding_partial(col->encoding)) &&
			ask(l, c, &im->columns[im->ncolumns]) &&
			are_lacking(l, col, &im->columns[im->ncolumns]))
			im->ncolumns++;
	}
	pfree(same);
	if (im->ncolumns == 0)
		return;
	l->rows = &im->rows;
	l->imagined = true;
}
