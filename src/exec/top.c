/*-------------------------------------------------------------------------
 * top.c - rows in memory, in order: all of a few, or of many the first ones, as many as a LIMIT asks for.
 *
 * Those of many are a heap whose first row is the last one in order, as in the bounded sort of
 * PostgreSQL's tuplesort; but a row is compared with that before it is copied: most rows are not.  Rows are
 * heap tuples: one of a table keeps its place and system columns, and is not looked up again.
 *
 * Memory: the rows, and a TopRow each, until ws_top_end.  All rows of a few are in chunks, which the next
 * sort finds where they are: to have the system give and take the memory took a fourth of sorts of 600 rows.
 * Comparison functions have that of the context in which it was created; what they do not free goes with the
 * rows.  While these are sorted, there are copies of toasted first keys: MOST_FETCHED, and work_mem with the
 * rows.
 * Errors: those of comparing and detoasting, and of no memory.
 *-------------------------------------------------------------------------
 */
#include "exec/exec.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "key/value.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"

/* Bytes of a chunk, and of the first one; how many are kept. */
#define CHUNK_BYTES		((Size) 64 * 1024)
#define FIRST_CHUNK		((Size) 8 * 1024)
#define MOST_CHUNKS		20

/* As many keys are abbreviated, at least, unless some are toasted. */
#define FEW_BRIEF		64

/* Bytes that fetched keys have, at most: processors have so much cache, and the system need not map more. */
#define MOST_FETCHED	((Size) 512 * 1024)

typedef struct TopRow
{
	HeapTuple	row;
	Datum		key;			/* the first key's value, in `row` or by itself */
	Datum		brief;			/* the same, abbreviated, if rows are sorted by that first */
	bool		isnull;
	bool		in_chunk;
	uint32		bytes;			/* of memory */
} TopRow;

struct WsTop
{
	MemoryContext context;		/* of rows that are in no chunk */
	MemoryContext lasting;		/* of chunks, and what abbreviation keeps */
	char	   *chunks[MOST_CHUNKS];
	int			nchunks;		/* of these, how many there are, and are in use */
	int			in_use;
	Size		used;			/* bytes of the last one */
	TupleDesc	desc;
	int			ncols;
	SortSupport keys;
	SortSupport brief;			/* of the first key, abbreviated */
	bool		is_brief;		/* rows are sorted by that first */
	bool		is_varlena;		/* the first key may be toasted */
	TopRow	   *rows;
	int64		room;
	int64		n;
	int64		bound;			/* of rows that are kept; then `rows` is a heap.  0: all are */
	Size		bytes;			/* of the kept rows */
	Size		fetched;		/* that toasted keys had in a sort, at most */
	int64		passed;			/* rows under a bound that were not kept, */
	int64		replaced;		/* and those that took the place of another */
};

/*
 * Prepares for rows of `desc`, in the order of r's sort columns, which are its columns `attnos`, in
 * CurrentMemoryContext.
 */
WsTop *
ws_top_create(TupleDesc desc, const AttrNumber *attnos, const WsRequest *r)
{
	WsTop	   *top = palloc0(sizeof(WsTop));

	top->context = AllocSetContextCreate(CurrentMemoryContext, "WiscSort few rows", ALLOCSET_DEFAULT_SIZES);
	top->lasting = CurrentMemoryContext;
	top->desc = desc;
	top->ncols = r->ncols;
	top->is_varlena = attnos[0] > 0 && TupleDescAttr(desc, attnos[0] - 1)->attlen == -1;
	top->keys = palloc0((r->ncols + 1) * sizeof(SortSupportData));
	top->brief = &top->keys[r->ncols];
	for (int i = 0; i < r->ncols; i++)
	{
		SortSupport key = &top->keys[i];

		key->ssup_cxt = CurrentMemoryContext;
		key->ssup_collation = r->collations[i];
		key->ssup_nulls_first = r->nulls_first[i];
		key->ssup_attno = attnos[i];
		if (i == 0)
		{
			*top->brief = *key;
			top->brief->abbreviate = true;
			PrepareSortSupportFromOrderingOp(r->sortops[0], top->brief);
		}
		PrepareSortSupportFromOrderingOp(r->sortops[i], key);
	}
	return top;
}

static int
compare(const WsTop *top, const TopRow *a, const TopRow *b)
{
	int			order = 0;

	if (top->is_brief)
		order = ApplySortComparator(a->brief, a->isnull, b->brief, b->isnull, top->brief);
	if (order == 0)
		order = ApplySortComparator(a->key, a->isnull, b->key, b->isnull, top->keys);
	for (int i = 1; i < top->ncols && order == 0; i++)
	{
		SortSupport key = &top->keys[i];
		bool		null1,
					null2;
		Datum		value1 = heap_getattr(a->row, key->ssup_attno, top->desc, &null1);
		Datum		value2 = heap_getattr(b->row, key->ssup_attno, top->desc, &null2);

		order = ApplySortComparator(value1, null1, value2, null2, key);
	}
	return order;
}

/* As qsort_arg has it. */
static int
compare_rows(const void *a, const void *b, void *top)
{
	CHECK_FOR_INTERRUPTS();
	return compare(top, a, b);
}

/* Does the row in `slot` come before a kept one? */
static bool
comes_before(const WsTop *top, TupleTableSlot *slot, const TopRow *kept)
{
	for (int i = 0; i < top->ncols; i++)
	{
		SortSupport key = &top->keys[i];
		bool		null1,
					null2 = kept->isnull;
		Datum		value1 = slot_getattr(slot, key->ssup_attno, &null1);
		Datum		value2 = i == 0 ? kept->key :
			heap_getattr(kept->row, key->ssup_attno, top->desc, &null2);
		int			order = ApplySortComparator(value1, null1, value2, null2, key);

		if (order != 0)
			return order < 0;
	}
	return false;
}

/* Room for so many bytes in a chunk; NULL if there is none. */
static char *
room_in_chunk(WsTop *top, Size bytes)
{
	char	   *room;

	while (top->in_use == 0 || top->used + bytes > (top->in_use == 1 ? FIRST_CHUNK : CHUNK_BYTES))
	{
		if (bytes > CHUNK_BYTES || top->in_use == MOST_CHUNKS)
			return NULL;
		if (top->in_use == top->nchunks)
		{
			top->chunks[top->in_use] = MemoryContextAlloc(top->lasting,
														  top->in_use == 0 ? FIRST_CHUNK : CHUNK_BYTES);
			top->nchunks++;
		}
		top->in_use++;
		top->used = 0;
	}
	room = top->chunks[top->in_use - 1] + top->used;
	top->used += bytes;
	return room;
}

/* The row in `slot`, in a chunk; NULL if there is no room. */
static HeapTuple
copy_to_chunk(WsTop *top, TupleTableSlot *slot)
{
	bool		is_copy;
	HeapTuple	row = ExecFetchSlotHeapTuple(slot, false, &is_copy);
	HeapTuple	copy = (HeapTuple) room_in_chunk(top, MAXALIGN(HEAPTUPLESIZE + row->t_len));

	if (copy != NULL)
	{
		*copy = *row;
		copy->t_data = (HeapTupleHeader) ((char *) copy + HEAPTUPLESIZE);
		memcpy(copy->t_data, row->t_data, row->t_len);
	}
	if (is_copy)
		heap_freetuple(row);
	return copy;
}

/* In top->context. */
static TopRow
copy_row(WsTop *top, TupleTableSlot *slot)
{
	TopRow		row = {.in_chunk = top->bound == 0};

	if (row.in_chunk)
		row.row = copy_to_chunk(top, slot);
	if (row.row == NULL)
	{
		row.in_chunk = false;
		row.row = ExecCopySlotHeapTuple(slot);
	}
	row.bytes = sizeof(TopRow) + (row.in_chunk ? MAXALIGN(HEAPTUPLESIZE + row.row->t_len) :
								  GetMemoryChunkSpace(row.row));
	top->bytes += row.bytes;
	row.key = heap_getattr(row.row, top->keys[0].ssup_attno, top->desc, &row.isnull);
	return row;
}

static void
drop_row(WsTop *top, TopRow *row)
{
	top->bytes -= row->bytes;
	if (!row->in_chunk)
		heap_freetuple(row->row);
}

/* Puts `row` into the heap of the first n rows where there is room at `hole`, or below. */
static void
sift_down(WsTop *top, int64 n, int64 hole, TopRow row)
{
	for (;;)
	{
		int64		child = 2 * hole + 1;

		if (child + 1 < n && compare(top, &top->rows[child + 1], &top->rows[child]) > 0)
			child++;
		if (child >= n || compare(top, &top->rows[child], &row) <= 0)
			break;
		top->rows[hole] = top->rows[child];
		hole = child;
	}
	top->rows[hole] = row;
}

static void
sift_up(WsTop *top, int64 hole, TopRow row)
{
	while (hole > 0)
	{
		int64		parent = (hole - 1) / 2;

		if (compare(top, &top->rows[parent], &row) >= 0)
			break;
		top->rows[hole] = top->rows[parent];
		hole = parent;
	}
	top->rows[hole] = row;
}

static void
make_room(WsTop *top)
{
	Size		bytes;

	if (top->n < top->room)
		return;
	top->room = Max(16, top->room * 2);
	bytes = top->room * sizeof(TopRow);
	top->rows = top->rows == NULL ? MemoryContextAllocHuge(top->context, bytes) :
		repalloc_huge(top->rows, bytes);
}

/*
 * Takes a row: keeps a copy, if it is one of the first so far.  What comparison functions do not free goes
 * with the rows.
 */
void
ws_top_put(WsTop *top, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(top->context);

	if (top->bound == 0 || top->n < top->bound)
	{
		TopRow		row = copy_row(top, slot);

		make_room(top);
		top->n++;
		if (top->bound == 0)
			top->rows[top->n - 1] = row;
		else
			sift_up(top, top->n - 1, row);
	}
	else if (comes_before(top, slot, &top->rows[0]))
	{
		top->replaced++;
		drop_row(top, &top->rows[0]);
		sift_down(top, top->n, 0, copy_row(top, slot));
	}
	else
		top->passed++;
	MemoryContextSwitchTo(old);
}

/* Have so many rows, and most of those that came, taken the place of another? */
bool
ws_top_is_reversed(const WsTop *top, int64 least)
{
	return top->replaced >= least && top->replaced > top->passed;
}

/*
 * Puts copies in the place of toasted first keys, so that each is fetched once, and not by each comparison;
 * returns how many bytes they have.  Sets *toasted if there are such keys, for which memory may not suffice.
 */
static Size
fetch_keys(WsTop *top, bool *toasted)
{
	Size		memory = (Size) work_mem * 1024;
	Size		most = Min(memory - Min(top->bytes, memory), MOST_FETCHED);
	Size		fetched = 0;

	*toasted = false;
	for (int64 i = 0; top->is_varlena && i < top->n; i++)
	{
		TopRow	   *row = &top->rows[i];

		CHECK_FOR_INTERRUPTS();
		if (row->isnull || !ws_varlena_is_toasted(row->key))
			continue;
		*toasted = true;
		if (fetched + toast_raw_datum_size(row->key) > most)
			continue;
		row->key = PointerGetDatum(PG_DETOAST_DATUM(row->key));
		fetched += GetMemoryChunkSpace(DatumGetPointer(row->key));
	}
	return fetched;
}

/* Frees the copies that fetch_keys made. */
static void
drop_keys(WsTop *top)
{
	for (int64 i = 0; i < top->n; i++)
	{
		TopRow	   *row = &top->rows[i];
		Datum		key = heap_getattr(row->row, top->keys[0].ssup_attno, top->desc, &row->isnull);

		if (key != row->key)
			pfree(DatumGetPointer(row->key));
		row->key = key;
	}
}

/*
 * Abbreviates the first keys, where their type has that, and they are enough, or `toasted`; false if they
 * are not.  As tuplesort does it looks whether abbreviations tell the keys apart, each time that they are
 * twice as many.  In a context that stays, as what converters keep does.
 */
static bool
abbreviate(WsTop *top, bool toasted)
{
	MemoryContext old;
	int64		next_look = FEW_BRIEF;
	bool		all = true;

	if (top->brief->abbrev_converter == NULL || (top->n < FEW_BRIEF && !toasted))
		return false;
	old = MemoryContextSwitchTo(top->lasting);
	for (int64 i = 0; i < top->n; i++)
	{
		TopRow	   *row = &top->rows[i];

		CHECK_FOR_INTERRUPTS();
		if (i == next_look)
		{
			next_look *= 2;
			all = !top->brief->abbrev_abort((int) i, top->brief);
			if (!all)
				break;
		}
		row->brief = row->isnull ? (Datum) 0 : top->brief->abbrev_converter(row->key, top->brief);
	}
	MemoryContextSwitchTo(old);
	return all;
}

/* Sorts the kept rows. */
void
ws_top_sort(WsTop *top)
{
	MemoryContext old;
	Size		fetched;
	bool		toasted;

	if (top->n < 2)
		return;
	old = MemoryContextSwitchTo(top->context);
	fetched = fetch_keys(top, &toasted);
	top->fetched = Max(top->fetched, fetched);
	top->is_brief = abbreviate(top, toasted);
	qsort_arg(top->rows, top->n, sizeof(TopRow), compare_rows, top);
	top->is_brief = false;
	if (fetched > 0)
		drop_keys(top);
	MemoryContextSwitchTo(old);
}

/* From now on, only the first `bound` rows are kept, one at least. */
void
ws_top_bound(WsTop *top, int64 bound)
{
	ws_top_sort(top);
	while (top->n > bound)
		drop_row(top, &top->rows[--top->n]);
	/* in the opposite order they are a heap */
	for (int64 i = 0; i < top->n / 2; i++)
	{
		TopRow		row = top->rows[i];

		top->rows[i] = top->rows[top->n - 1 - i];
		top->rows[top->n - 1 - i] = row;
	}
	top->bound = bound;
}

/* Are there perhaps others than those that are kept? */
bool
ws_top_is_bounded(const WsTop *top)
{
	return top->bound > 0;
}

/* The memory context of the rows, which ws_top_end resets. */
MemoryContext
ws_top_context(const WsTop *top)
{
	return top->context;
}

/* Bytes that the kept rows have. */
Size
ws_top_bytes(const WsTop *top)
{
	return top->bytes;
}

/* Bytes that they had at most, with what was fetched to sort them. */
Size
ws_top_peak(const WsTop *top)
{
	return top->bytes + top->fetched;
}

/* How many rows are kept. */
int64
ws_top_rows(const WsTop *top)
{
	return top->n;
}

/* One of them, which stays `top`'s. */
HeapTuple
ws_top_row(const WsTop *top, int64 number)
{
	return top->rows[number].row;
}

/* Forgets the rows, and the bound. */
void
ws_top_end(WsTop *top)
{
	MemoryContextReset(top->context);
	top->in_use = 0;
	top->rows = NULL;
	top->room = top->n = top->bound = 0;
	top->passed = top->replaced = 0;
	top->bytes = top->fetched = 0;
}
