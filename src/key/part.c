/*-------------------------------------------------------------------------
 * part.c - guesses at the order of what values are made of: text under libc, and enums.
 *
 * Arrays, rows and jsonb that are made of these have no bits that are certain (nested.c).  But strxfrm, or
 * the places of letters, tell the order of nearly all texts (guess.c), and the OIDs of an enum are in the
 * order of its labels, unless some have been added in between.  So these make a guess at the order of the
 * whole, and each row is compared with the one before it, instead of n log n comparisons, each of which
 * takes both values apart.
 *
 * What follows a text in a guess counts where all its letters are alike, although case or accents may come
 * before it.  learntext.c looks whether the guess is right.
 *
 * Transformations and alphabets stay as long as the backend, one for each collation.
 *-------------------------------------------------------------------------
 */
#include "key/bits.h"

#include "utils/fmgroids.h"
#include "utils/memutils.h"

/* How texts of a collation are guessed. */
typedef struct Known
{
	Oid			collation;
	struct WsTransform *transform;	/* NULL: not at all */
	struct WsAlphabet *alphabet;	/* NULL: by the transformation */
	struct Known *next;
} Known;

static Known *known = NULL;

static const Known *
guess_for(Oid collation)
{
	MemoryContext old;
	Known	   *k = known;

	while (k != NULL && k->collation != collation)
		k = k->next;
	if (k != NULL)
		return k;
	old = MemoryContextSwitchTo(TopMemoryContext);
	k = palloc0(sizeof(Known));
	k->collation = collation;
	k->transform = ws_transform_create(collation);
	if (k->transform != NULL)
		k->alphabet = ws_alphabet_create(k->transform);
	k->next = known;
	known = k;
	MemoryContextSwitchTo(old);
	return k;
}

/* Sets how values that `proc` compares are guessed, as if they were a column.  False if they are not. */
bool
ws_part_guessed(WsKeyColumn *part, Oid proc, Oid collation)
{
	const Known *k;

	if (proc == F_ENUM_CMP)
	{
		part->encoding = WS_ENC_UINT4;
		part->width = sizeof(Oid);
		return true;
	}
	if (proc != F_BTTEXTCMP && proc != F_BPCHARCMP)
		return false;
	k = guess_for(collation);
	if (k->transform == NULL)
		return false;
	part->encoding = WS_ENC_TRANSFORMED;
	part->padded = proc == F_BPCHARCMP;
	part->transform = k->transform;
	part->alphabet = k->alphabet;
	return true;
}

/* Appends the guess at a text's order, and what ends it, which is less than all that goes on. */
void
ws_part_put_text(WsBits *b, const WsKeyColumn *part, const char *text, Size n)
{
	uint8		bytes[sizeof(ws_uint128)] = {0};
	Size		wanted = ws_bits_wanted(b);
	Size		written;

	if (wanted == 0)
		return;
	written = ws_guess_text(part, text, n, wanted, bytes);
	ws_bits_put_bytes(b, bytes, Min(written + 1, wanted));
}

/* The same of a value of the type. */
void
ws_part_put_guess(WsBits *b, const WsKeyColumn *part, Datum value)
{
	Datum		flat = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
	const char *text = VARDATA_ANY(DatumGetPointer(flat));
	Size		n = VARSIZE_ANY_EXHDR(DatumGetPointer(flat));

	while (part->padded && n > 0 && text[n - 1] == ' ')
		n--;
	ws_part_put_text(b, part, text, n);
	if (flat != value)
		pfree(DatumGetPointer(flat));
}
