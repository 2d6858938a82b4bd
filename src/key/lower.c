/*-------------------------------------------------------------------------
 * lower.c - text whose case does not count: contrib/citext.
 *
 * citext compares what the database's own collation makes of both texts in lower case, as text under the
 * column's collation.  Core's sort lowers both for each comparison.  Here a text is lowered where its key
 * bytes are made, which are then those of text: so it has letters, codes and sort keys as text has.
 *
 * Letters of ASCII are lowered by a table of what the server makes of each: nothing around a letter changes
 * that, but for accents, which are not ASCII.  Where it makes something else of one (Turkish), and of all
 * other texts, the server's own function is asked.
 *
 * Memory: the result is palloc'd.  Errors: those of str_tolower, of text that is not in the database's
 * encoding (from a shared catalog); core raises them only where it comes to compare such a text.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_operator.h"
#include "utils/builtins.h"
#include "utils/formatting.h"

#define ASCII	128

/* What each letter of ASCII is in lower case. */
typedef struct LowerTable
{
	bool		made;
	bool		simple;			/* each of them is one of ASCII */
	uint8		letter[ASCII];
} LowerTable;

static LowerTable table;

static void
make_table(void)
{
	bool		simple = true;

	for (int i = 1; i < ASCII; i++)
	{
		const char	letter = (char) i;
		char	   *lower = str_tolower(&letter, 1, DEFAULT_COLLATION_OID);

		table.letter[i] = (uint8) lower[0];
		simple = simple && lower[0] != '\0' && lower[1] == '\0' && table.letter[i] < ASCII;
		pfree(lower);
	}
	table.simple = simple;
	table.made = true;
}

/* Lowers a text of n bytes if it is of ASCII.  Was it? */
static bool
lower_ascii(const uint8 *text, Size n, uint8 *out)
{
	uint8		all = 0;

	for (Size i = 0; i < n; i++)
	{
		all |= text[i];
		out[i] = table.letter[text[i] % ASCII];
	}
	return all < ASCII;
}

/* A text in lower case, as citext sees it. */
struct varlena *
ws_lowered(Datum value)
{
	struct varlena *v = PG_DETOAST_DATUM_PACKED(value);
	const char *text = VARDATA_ANY(v);
	Size		n = VARSIZE_ANY_EXHDR(v);
	struct varlena *result = palloc(VARHDRSZ + n);

	if (unlikely(!table.made))
		make_table();
	if (likely(table.simple && lower_ascii((const uint8 *) text, n, (uint8 *) VARDATA(result))))
		SET_VARSIZE(result, VARHDRSZ + n);
	else
	{
		char	   *lower = str_tolower(text, n, DEFAULT_COLLATION_OID);

		pfree(result);
		result = cstring_to_text(lower);
		pfree(lower);
	}
	if ((Pointer) v != DatumGetPointer(value))
		pfree(v);
	return result;
}

static int
compare_lowered(Datum x, Datum y, SortSupport ssup)
{
	SortSupport text = ssup->ssup_extra;
	struct varlena *a = ws_lowered(x);
	struct varlena *b = ws_lowered(y);
	int			cmp = text->comparator(PointerGetDatum(a), PointerGetDatum(b), text);

	pfree(a);
	pfree(b);
	return cmp;
}

/*
 * Has a column's SortSupport, of which citext's own function is the comparator, compare as that does, but
 * sooner: letters of ASCII are lowered by the table.  In CurrentMemoryContext.
 */
void
ws_lower_sort_support(SortSupport ssup)
{
	SortSupport text = palloc0(sizeof(SortSupportData));

	ws_init_sort_support(text, ssup->ssup_attno, TextLessOperator, ssup->ssup_collation,
						 ssup->ssup_nulls_first, false);
	ssup->ssup_extra = text;
	ssup->comparator = compare_lowered;
}
