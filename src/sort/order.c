/*-------------------------------------------------------------------------
 * order.c - rows that come in the order of their keys get no prefixes.
 *
 * If the first rows came in order, each row that follows is compared with the one before it, as core's
 * sort does with all rows at the end.  As long as none is less, entries have no prefix: they are sorted as
 * they are, by their pointers, and so are runs of them, which are read one after the other.  A row takes one
 * comparison, and not a key, and a comparison where that is verified, and a match in the merge.  That is for
 * keys that are learnt from: others are made in less time than two are compared.
 *
 * At the first row that is less, all entries so far get their prefixes.  Those in memory get them there, and
 * are sorted once more.  Those in runs are read, get them, and go into the IndexMap again, as if their rows
 * had just come.
 *
 * Memory: the key of the last row, an eighth of work_mem at most; and a block, while runs are read.  What
 * comparing raises is raised here.  Refused: keys that are larger, and those that are not in line.
 *-------------------------------------------------------------------------
 */
#include "sort/sorter.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* Of work_mem, what the last row's key may take. */
#define KEY_SHARE	8

/* Fewer rows say little. */
#define LEAST_ROWS	64

/* Rows between two times that what comparators leave is freed. */
#define FREE_ROWS	1024

struct WsOrder
{
	const WsSorter *sorter;
	MemoryContext context;		/* of all this */
	MemoryContext work;			/* what comparators leave */
	Datum	   *last;			/* key columns of the last row, by attno - 1 */
	bool	   *last_null;
	char	   *bytes;			/* of those that are not passed by value */
	Size		allocated;
	uint32		rows;
};

/* Prepares for looking at rows, in CurrentMemoryContext; NULL if it is of no use. */
WsOrder *
ws_order_create(const WsSorter *sorter)
{
	const WsKeySpec *spec = sorter->spec;
	MemoryContext context;
	MemoryContext old;
	WsOrder    *order;

	if (sorter->request->allowance == 0)
		return NULL;			/* rows travel from the first on */
	context = AllocSetContextCreate(CurrentMemoryContext, "WiscSort order", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	order = palloc0(sizeof(WsOrder));
	order->sorter = sorter;
	order->context = context;
	order->work = AllocSetContextCreate(context, "WiscSort order work", ALLOCSET_SMALL_SIZES);
	order->last = palloc0(spec->last_attno * sizeof(Datum));
	order->last_null = palloc0(spec->last_attno * sizeof(bool));
	MemoryContextSwitchTo(old);
	return order;
}

static void
free_order(WsSorter *sorter)
{
	ws_account_subtract(&sorter->account, sorter->order->allocated);
	MemoryContextDelete(sorter->order->context);
	sorter->order = NULL;
}

/* Bytes of a value that is not passed by value; 0 if it cannot be kept. */
static Size
value_bytes(const WsKeyColumn *col, Datum value)
{
	if (col->length > 0)
		return col->length;
	if (col->length != -1 || VARATT_IS_EXTERNAL(DatumGetPointer(value)))
		return 0;
	return VARSIZE_ANY(DatumGetPointer(value));
}

/* Remembers a row's key as the last one.  False if it cannot be kept. */
static bool
remember(WsOrder *order, WsAccount *account, const Datum *values, const bool *isnull)
{
	const WsKeySpec *spec = order->sorter->spec;
	Size		needed = 0;
	char	   *to;

	for (int c = 0; c < spec->ncols; c++)
	{
		int			att = spec->cols[c].attno - 1;
		Size		bytes;

		if (isnull[att] || spec->cols[c].byval)
			continue;
		bytes = value_bytes(&spec->cols[c], values[att]);
		if (bytes == 0)
			return false;
		needed += MAXALIGN(bytes);
	}
	if (needed > order->allocated)
	{
		Size		size = Max(needed + needed / 2, 256);

		if (size > order->sorter->request->memory / KEY_SHARE || size > MaxAllocSize)
			return false;
		ws_account_add(account, size - order->allocated);
		if (order->bytes != NULL)
			pfree(order->bytes);
		order->bytes = MemoryContextAlloc(order->context, size);
		order->allocated = size;
	}
	to = order->bytes;
	for (int c = 0; c < spec->ncols; c++)
	{
		int			att = spec->cols[c].attno - 1;
		Size		bytes;

		order->last_null[att] = isnull[att];
		order->last[att] = values[att];
		if (isnull[att] || spec->cols[c].byval)
			continue;
		bytes = value_bytes(&spec->cols[c], values[att]);
		memcpy(to, DatumGetPointer(values[att]), bytes);
		order->last[att] = PointerGetDatum(to);
		to += MAXALIGN(bytes);
	}
	return true;
}

/* Is a row's key less than the last one? */
static bool
is_less(const WsOrder *order, const Datum *values, const bool *isnull)
{
	const WsKeySpec *spec = order->sorter->spec;

	if (spec->lettered)
		ws_key_look(spec, values, isnull);
	return ws_key_compare(spec, 0, order->last, order->last_null, values, isnull) > 0;
}

/* Has another row a key that is not less than that of the last one, which it becomes if it is `kept`? */
bool
ws_order_goes_on(WsSorter *sorter, const Datum *values, const bool *isnull, bool kept)
{
	WsOrder    *order = sorter->order;
	MemoryContext old = MemoryContextSwitchTo(order->work);
	bool		less = is_less(order, values, isnull);

	MemoryContextSwitchTo(old);
	if (++order->rows % FREE_ROWS == 0)
		MemoryContextReset(order->work);
	return !less && (!kept || remember(order, &sorter->account, values, isnull));
}

/* Did the rows that there are, whose entries have no prefixes yet, come in order? */
bool
ws_order_holds(WsSorter *sorter)
{
	const WsKeyRows *rows = sorter->store->keys;
	const WsIndexMap *map = sorter->formation->map;
	WsKeySlot  *slots[2];
	MemoryContext old;
	bool		holds = true;

	if (sorter->order == NULL || map->count < LEAST_ROWS)
		return false;
	old = MemoryContextSwitchTo(sorter->order->work);
	slots[0] = rows->make_slot(rows->store);
	slots[1] = rows->make_slot(rows->store);
	rows->ready(rows->store);
	rows->fetch(rows->store, ws_entry_pointer(map->entries[0]), slots[0]);
	for (Size i = 1; i < map->count && holds; i++)
	{
		const WsKeySlot *a = slots[(i - 1) % 2];
		WsKeySlot  *b = slots[i % 2];

		CHECK_FOR_INTERRUPTS();
		rows->fetch(rows->store, ws_entry_pointer(map->entries[i]), b);
		holds = ws_key_compare(sorter->spec, 0, a->values, a->isnull, b->values, b->isnull) <= 0;
	}
	if (holds)
	{
		const WsKeySlot *last = slots[(map->count - 1) % 2];

		holds = remember(sorter->order, &sorter->account, last->values, last->isnull);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(sorter->order->work);
	return holds;
}

/* From now on rows come in order, as those did that there are: takes their prefixes away; or they do not. */
void
ws_order_begin(WsSorter *sorter, bool holds)
{
	WsIndexMap *map = sorter->formation->map;

	if (sorter->order == NULL)
		return;
	if (!holds)
	{
		free_order(sorter);
		return;
	}
	for (Size i = 0; i < map->count; i++)
		map->entries[i] = ws_entry_make(0, ws_entry_pointer(map->entries[i]));
	sorter->formation->in_order = true;
}

/* An entry with the prefix of its row. */
static WsEntry
with_prefix(const WsSorter *sorter, WsEntry entry, WsKeySlot *slot)
{
	const WsKeyRows *rows = sorter->store->keys;

	rows->fetch(rows->store, ws_entry_pointer(entry), slot);
	return ws_key_entry(sorter->spec, slot->values, slot->isnull, ws_entry_pointer(entry));
}

/* Gives the entries in memory their prefixes, and sorts the pieces that are full. */
static void
rework_pieces(WsSorter *sorter, WsKeySlot *slot)
{
	WsFormation *f = sorter->formation;

	f->in_order = false;
	for (int i = 0; i < f->current; i++)
		(void) ws_helper_wait(f->helper, &f->pieces[i]->chore);
	for (Size i = 0; i < f->map->count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		f->map->entries[i] = with_prefix(sorter, f->map->entries[i], slot);
	}
	/* their ties are settled later */
	for (int i = 0; i < f->current; i++)
	{
		ws_sort_entries(f->pieces[i]->entries, f->pieces[i]->n, f->vectorised);
		f->pieces[i]->settled = false;
	}
}

/* The oldest first. */
static int
older_first(const void *a, const void *b)
{
	const WsRun *x = a;
	const WsRun *y = b;

	if (x->level != y->level)
		return y->level - x->level;
	return (x->number > y->number) - (x->number < y->number);
}

/* Puts the entries of a run, with their prefixes, into the IndexMap.  Raises what reading and writing do. */
static void
rework_run(WsSorter *sorter, const WsRun *run, char *block, WsKeySlot *slot)
{
	WsFormation *f = sorter->formation;
	WsReader   *reader = ws_reader_plain(sorter->files, false);
	WsRunReader in;
	const WsEntry *entries;
	Size		n;

	ws_run_read_begin(&in, reader, run, block);
	for (int64 number = 0; (entries = ws_run_block(&in, number, &n)) != NULL; number++)
	{
		for (Size i = 0; i < n; i++)
		{
			if (!ws_formation_has_room(f))
			{
				(void) ws_formation_make_room(f);
				ws_passes_check(sorter->passes);
				slot->pointer = WS_POINTER_MASK;
				sorter->store->keys->ready(sorter->store->keys->store);
			}
			CHECK_FOR_INTERRUPTS();
			ws_formation_add(f, with_prefix(sorter, entries[i], slot));
		}
	}
	ws_run_read_raise(&in);
	ws_reader_count(reader);
	reader->ops->close(reader);
	ws_run_release(&f->home, run);
}

/* The same with all entries, when there are runs. */
static void
rework_runs(WsSorter *sorter, WsKeySlot *slot)
{
	WsFormation *f = sorter->formation;
	Size		bytes = f->block_size + WS_IO_ALIGN;
	uint64		taken_in = f->stats.entries;
	char	   *block;
	WsRun	   *runs;
	int			n;

	ws_formation_flush(f);
	f->in_order = false;
	n = f->nruns;
	runs = palloc(n * sizeof(WsRun));
	memcpy(runs, f->runs, n * sizeof(WsRun));
	qsort(runs, n, sizeof(WsRun), older_first);
	f->nruns = 0;
	f->stats.entries = 0;
	ws_formation_resume(f);
	ws_account_add(&sorter->account, bytes);
	block = palloc(bytes);
	for (int i = 0; i < n; i++)
		rework_run(sorter, &runs[i], (char *) TYPEALIGN(WS_IO_ALIGN, block), slot);
	pfree(block);
	pfree(runs);
	ws_account_subtract(&sorter->account, bytes);
	/* with a bound, some of them have been left out of the runs */
	f->stats.entries = taken_in;
}

/* Not all rows come in order: makes the prefixes of those that did.  Nothing to do if that is known. */
void
ws_order_end(WsSorter *sorter)
{
	WsFormation *f = sorter->formation;
	const WsKeyRows *rows = sorter->store->keys;
	WsKeySlot  *slot;

	if (!f->in_order)
		return;
	free_order(sorter);
	slot = rows->make_slot(rows->store);
	rows->ready(rows->store);
	if (f->overflowed)
		rework_runs(sorter, slot);
	else
		rework_pieces(sorter, slot);
}
