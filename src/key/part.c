/*-------------------------------------------------------------------------
 * part.c - guesses at the order of what values are made of: text under libc, and enums.
 *
 * Arrays, rows and jsonb that are made of these have no bits that are certain (nested.c).  But strxfrm, or
 * the places of letters, tell the order of nearly all texts (guess.c), and an enum's labels have ranks,
 * unless some are added while the sort runs.  So these make a guess at the order of the whole, and each row
 * is compared with the one before it, instead of n log n comparisons, each of which takes both values apart.
 *
 * What follows a text in a guess counts where all its letters are alike, although case or accents may come
 * before it.  learntext.c looks whether the guess is right.
 *
 * Ranks have as many bits as there are labels: the OID of a label has 32, and a guess at an array has room
 * for two of these.
 *
 * Transformations and alphabets stay as long as the backend, one for each collation; ranks as long as a sort.
 *-------------------------------------------------------------------------
 */
#include "key/bits.h"

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "port/pg_bitutils.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* Enums with more labels are guessed at by their OIDs. */
#define MOST_LABELS		4096

/* A label of an enum, and its place among all of them. */
typedef struct Label
{
	Oid			oid;
	float4		place;			/* what pg_enum orders labels by */
	uint32		rank;
} Label;

struct WsRanks
{
	int			n;
	int			bits;			/* of a rank */
	Label		labels[FLEXIBLE_ARRAY_MEMBER];	/* by oid */
};

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

static int
by_place(const void *a, const void *b)
{
	const float4 x = ((const Label *) a)->place;
	const float4 y = ((const Label *) b)->place;

	return (x > y) - (x < y);
}

static int
by_oid(const void *a, const void *b)
{
	const Oid	x = ((const Label *) a)->oid;
	const Oid	y = ((const Label *) b)->oid;

	return (x > y) - (x < y);
}

/* The ranks of an enum's labels, in CurrentMemoryContext; NULL if there are none, or too many. */
static struct WsRanks *
ranks_of(Oid type)
{
	CatCList   *list = SearchSysCacheList1(ENUMTYPOIDNAME, ObjectIdGetDatum(type));
	int			n = list->n_members;
	struct WsRanks *ranks = NULL;

	if (n > 0 && n <= MOST_LABELS)
	{
		ranks = palloc(offsetof(struct WsRanks, labels) + n * sizeof(Label));
		ranks->n = n;
		ranks->bits = pg_leftmost_one_pos32((uint32) n) + 1;
		for (int i = 0; i < n; i++)
		{
			Form_pg_enum label = (Form_pg_enum) GETSTRUCT(&list->members[i]->tuple);

			ranks->labels[i].oid = label->oid;
			ranks->labels[i].place = label->enumsortorder;
		}
		qsort(ranks->labels, n, sizeof(Label), by_place);
		for (int i = 0; i < n; i++)
			ranks->labels[i].rank = (uint32) i;
		qsort(ranks->labels, n, sizeof(Label), by_oid);
	}
	ReleaseCatCacheList(list);
	return ranks;
}

/* The rank of a label; of one that has been added since, the highest. */
static uint32
rank_of(const struct WsRanks *ranks, Oid oid)
{
	const Label label = {oid, 0, 0};
	const Label *found = bsearch(&label, ranks->labels, ranks->n, sizeof(Label), by_oid);

	return found != NULL ? found->rank : (uint32) ranks->n;
}

/* Sets how values that `proc` compares are guessed, as if they were a column.  False if they are not. */
bool
ws_part_guessed(WsKeyColumn *part, Oid proc, Oid type, Oid collation)
{
	const Known *k;

	if (proc == F_ENUM_CMP)
	{
		part->ranks = ranks_of(getBaseType(type));
		part->encoding = part->ranks != NULL ? WS_ENC_TRANSFORMED : WS_ENC_UINT4;
		part->width = part->ranks != NULL ? 0 : sizeof(Oid);
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
	Datum		flat;
	const char *text;
	Size		n;

	if (part->ranks != NULL)
	{
		ws_bits_put(b, rank_of(part->ranks, DatumGetObjectId(value)), part->ranks->bits);
		return;
	}
	flat = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
	text = VARDATA_ANY(DatumGetPointer(flat));
	n = VARSIZE_ANY_EXHDR(DatumGetPointer(flat));
	while (part->padded && n > 0 && text[n - 1] == ' ')
		n--;
	ws_part_put_text(b, part, text, n);
	if (flat != value)
		pfree(DatumGetPointer(flat));
}
