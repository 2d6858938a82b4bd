/*-------------------------------------------------------------------------
 * fetch.c - key columns out of a row that has just come.
 *
 * Deforming a tuple up to the last key column goes through every column before
 * it, and through three functions.  Where all columns up to the
 * last key column are of fixed width, these lie at the same places in every tuple
 * without nulls, and are read there.
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "executor/tuptable.h"

typedef struct WsFixedColumn
{
	int			att;			/* attno - 1 */
	int			offset;			/* bytes from the tuple's data */
	int			length;
	bool		byval;
} WsFixedColumn;

struct WsKeyFetch
{
	const WsKeySpec *spec;
	bool		fixed;			/* what follows is set */
	WsFixedColumn *columns;	/* one for each of spec->cols */
	Datum	   *values;			/* indexed by attno - 1 */
	bool	   *isnull;			/* none */
};

/*
 * Prepares fetching the key columns of `spec`, in CurrentMemoryContext, from
 * rows of type `desc`.
 */
WsKeyFetch *
ws_key_fetch_create(const WsKeySpec *spec, TupleDesc desc)
{
	WsKeyFetch *f = palloc0(sizeof(WsKeyFetch));
	int			offset = 0;
	int		   *offsets = palloc(desc->natts * sizeof(int));

	f->spec = spec;
	for (int i = 0; i < spec->last_attno; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attlen <= 0)
			return f;
		offset = (int) att_align_nominal(offset, att->attalign);
		offsets[i] = offset;
		offset += att->attlen;
	}
	f->fixed = true;
	f->columns = palloc(spec->ncols * sizeof(WsFixedColumn));
	f->values = palloc0(spec->last_attno * sizeof(Datum));
	f->isnull = palloc0(spec->last_attno * sizeof(bool));
	for (int i = 0; i < spec->ncols; i++)
	{
		int			att = spec->cols[i].attno - 1;

		f->columns[i].att = att;
		f->columns[i].offset = offsets[att];
		f->columns[i].length = TupleDescAttr(desc, att)->attlen;
		f->columns[i].byval = TupleDescAttr(desc, att)->attbyval;
	}
	return f;
}

/*
 * Sets *values and *isnull to the key columns of the slot's row, indexed by
 * attno - 1; other columns need not be there.  They are valid as long as the slot's row
 * is, and until the next call.
 */
void
ws_key_fetch(WsKeyFetch *f, TupleTableSlot *slot, const Datum **values, const bool **isnull)
{
	HeapTuple	tuple;

	if (f->fixed && slot->tts_nvalid == 0 &&
		(TTS_IS_BUFFERTUPLE(slot) || TTS_IS_HEAPTUPLE(slot)) &&
		(tuple = ((HeapTupleTableSlot *) slot)->tuple) != NULL &&
		!HeapTupleHasNulls(tuple) &&
		HeapTupleHeaderGetNatts(tuple->t_data) >= f->spec->last_attno)
	{
		const char *data = (const char *) tuple->t_data + tuple->t_data->t_hoff;

		for (int i = 0; i < f->spec->ncols; i++)
		{
			const WsFixedColumn *c = &f->columns[i];

			f->values[c->att] = fetch_att(data + c->offset, c->byval, c->length);
		}
		*values = f->values;
		*isnull = f->isnull;
		return;
	}
	slot_getsomeattrs(slot, f->spec->last_attno);
	*values = slot->tts_values;
	*isnull = slot->tts_isnull;
}
