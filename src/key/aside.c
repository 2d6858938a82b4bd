/*-------------------------------------------------------------------------
 * aside.c - key columns that are set aside: nothing of their values goes into prefixes.
 *
 * Long values are stored out of line, and read when somebody asks for their bytes.  Core asks for those of a
 * later column only where two rows are equal in all columns before.  A prefix has room for its first bytes,
 * and to put them there each row's value would be read, though few rows need it: ORDER BY id, document;
 * DISTINCT over rows with a document; UNION.
 *
 * So such a column is left to the comparator, with what follows it, if the first rows say that
 *	  - there are values stored out of line, or compressed, in it, one in SOME at least;
 *	  - the values of the columns before it tell most rows apart.  Of n rows, d have values that one
 *		before them has.  Then there are about n * n / 2d of these in all, and rows / that is how many
 *		rows have each: one at most.
 *
 * So are columns behind such ones, of whatever length, if each row would be given something that is made by
 * ICU, or of the parts of a value.
 *
 * Measured: docs/decisions/55-columns-set-aside.md.  Memory: an entry for each of the first rows, in
 * CurrentMemoryContext.
 *-------------------------------------------------------------------------
 */
#include "key/learning.h"
#include "key/text.h"

#include "common/hashfn.h"
#include "miscadmin.h"

#define SOME			32
#define LOOKED_AT		1024	/* rows, for long values */
#define HASHED			1024	/* bytes of these: half of what a row of a TOAST table holds */

/* Is it long, so that reading it takes more than a look? */
static inline bool
is_long(const WsKeyColumn *col, const WsKeySlot *slot)
{
	const void *value;

	if (slot->isnull[col->attno - 1])
		return false;
	value = DatumGetPointer(slot->values[col->attno - 1]);
	return VARATT_IS_EXTERNAL_ONDISK(value) || VARATT_IS_COMPRESSED(value);
}

/* The number of the first column but the first one that has long values; that of all columns if none has. */
static int
long_column(const WsLearning *l)
{
	const WsKeySpec *spec = l->spec;
	WsKeySlot  *slot = l->rows->make_slot(l->rows->store);
	Size	   *found = palloc0(spec->ncols * sizeof(Size));
	Size		step = Max(1, l->n / LOOKED_AT);
	Size		seen = 0;
	int			c = 1;

	/* in steps without an order: long values may come in one */
	for (Size i = 0; i < l->n; i += 1 + murmurhash32((uint32) seen++) % (2 * step))
	{
		CHECK_FOR_INTERRUPTS();
		l->rows->fetch(l->rows->store, ws_entry_pointer(l->entries[i]), slot);
		for (int k = 1; k < spec->ncols; k++)
			found[k] += spec->cols[k].length == -1 && is_long(&spec->cols[k], slot);
	}
	while (c < spec->ncols && found[c] * SOME < seen)
		c++;
	pfree(found);
	return c;
}

/* A hash of a value's bytes; of a long one, of its first bytes and its length. */
static uint32
hash_of_value(const WsKeyColumn *col, Datum value)
{
	const void *bytes = DatumGetPointer(value);
	struct varlena *v;
	Size		length;
	uint32		hash;

	if (col->byval)
		return hash_bytes((const unsigned char *) &value, sizeof(value));
	if (col->length >= 0)
		return hash_bytes(bytes, col->length);
	if (col->length == -2)
		return hash_bytes(bytes, (int) strlen(bytes));
	v = ws_value_beginning(value, HASHED);
	length = VARSIZE_ANY_EXHDR(v);
	hash = hash_bytes((const unsigned char *) VARDATA_ANY(v), (int) Min(length, HASHED));
	if ((const void *) v != bytes)
		pfree(v);
	return hash_combine(hash, (uint32) toast_raw_datum_size(value));
}

/*
 * Do the values of the first ncols columns tell most rows apart, of all that there will be?  Their prefixes
 * need not: whoever looks at more of the key comes to the columns behind them no sooner.
 */
bool
ws_learn_tell_apart(const WsLearning *l, int ncols)
{
	const WsKeyColumn *cols = l->spec->cols;
	WsKeySlot  *slot = l->rows->make_slot(l->rows->store);
	void	   *memory = palloc(l->n * sizeof(WsEntry) + 64);
	WsEntry    *entries = (WsEntry *) TYPEALIGN(64, memory);
	Size		same = 0;

	for (Size i = 0; i < l->n; i++)
	{
		uint32		hash = 0;

		CHECK_FOR_INTERRUPTS();
		l->rows->fetch(l->rows->store, ws_entry_pointer(l->entries[i]), slot);
		for (int c = 0; c < ncols; c++)
			hash = hash_combine(hash, slot->isnull[cols[c].attno - 1] ? 0 :
								  hash_of_value(&cols[c], slot->values[cols[c].attno - 1]));
		entries[i] = ws_entry_make(hash, ws_entry_pointer(l->entries[i]));
	}
	l->sort(entries, l->n, l->vectorised);
	for (Size i = 1; i < l->n; i++)
		same += ws_entry_same_prefix(entries[i - 1], entries[i]);
	pfree(memory);
	return 2.0 * same * Max(l->expected, l->n) <= (double) l->n * l->n;
}

/* Leaves a column to the comparator. */
static void
set_aside(WsKeySpec *spec, int c)
{
	WsKeyColumn *col = &spec->cols[c];

	col->aside = true;
	col->encoding = WS_ENC_NONE;
	col->width = 0;
	col->null_apart = col->tells_null = false;
	col->abbreviate = NULL;
	col->icu = NULL;
	col->transform = NULL;
	col->parts = NULL;
	spec->comparator = true;
}

/*
 * Sets a column of the specification aside if its values are long and hardly ever needed.  To be called
 * before anything else is learnt from the first rows.
 */
void
ws_learn_aside(const WsLearning *l)
{
	WsKeySpec  *spec = l->spec;
	int			c = 1;

	while (c < spec->ncols && spec->cols[c].length != -1)
		c++;
	if (c >= spec->ncols || (c = long_column(l)) == spec->ncols || !ws_learn_tell_apart(l, c))
		return;
	for (; c < spec->ncols; c++)
		set_aside(spec, c);
}

/*
 * Sets aside those that are needless, if neither bytes nor letters tell the order of their values: what there
 * is in their place, such as ICU's sort keys, is dear to make.
 */
void
ws_learn_aside_needless(const WsLearning *l)
{
	WsKeySpec  *spec = l->spec;

	for (int c = 0; c < spec->ncols; c++)
		if (spec->cols[c].needless && ws_encoding_partial(spec->cols[c].encoding))
			set_aside(spec, c);
}
