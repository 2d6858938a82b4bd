/*-------------------------------------------------------------------------
 * icu.c - abbreviated keys of text under collations of ICU.
 *
 * The first eight bytes of ICU's sort key, as PostgreSQL's varstr_abbrev_convert makes them in
 * databases of UTF-8, but without its statistics, which are there to give abbreviation up, and with nothing
 * that is the backend's own: a helper can make them, too (keyqueue.c).  Collators are not changed by
 * this, and ICU lets several threads use one that nobody changes.
 *
 * Its headers may be missing, and the server may have been linked with another ICU than
 * theirs, whose functions have other names: then core's function makes the keys.  It does, too, where
 * several versions of ICU are loaded, because another extension brought one: a collator of
 * one must not come to functions of another.
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#include "mb/pg_wchar.h"
#include "port/pg_bswap.h"

#if defined(HAVE_ICU) && defined(USE_ICU)
#include <dlfcn.h>
#include <unicode/ucol.h>
#include <unicode/uiter.h>

#include "catalog/pg_collation.h"
#include "utils/pg_locale.h"

extern void uiter_setUTF8(UCharIterator *iter, const char *s, int32_t length) __attribute__((weak));
extern int32_t ucol_nextSortKeyPart(const UCollator *coll, UCharIterator *iter, uint32_t state[2],
									uint8_t *dest, int32_t count, UErrorCode *status) __attribute__((weak));

#define OLDEST	40				/* versions that there may be */
#define NEWEST	150

/* Is the only ICU in this process that of the headers, and so the server's? */
static bool
is_servers(void)
{
	static int	answer = -1;

	if (answer < 0)
	{
		int			versions = 0;

		for (int i = OLDEST; i <= NEWEST; i++)
		{
			char		name[32];

			snprintf(name, sizeof(name), "ucol_open_%d", i);
			versions += dlsym(RTLD_DEFAULT, name) != NULL;
		}
		answer = versions == 1 && uiter_setUTF8 != NULL && ucol_nextSortKeyPart != NULL;
	}
	return answer;
}

struct WsIcu
{
	const UCollator *collator;	/* the server's: it stays */
};

/*
 * How to make keys of text under a collation, in CurrentMemoryContext; NULL where
 * that is not done here.
 */
WsIcu *
ws_icu_create(Oid collation)
{
	pg_locale_t locale;
	WsIcu	   *icu;
	char	   *name;

	if (GetDatabaseEncoding() != PG_UTF8 || !is_servers() ||
		ws_collation_provider(collation, &name) != COLLPROVIDER_ICU)
		return NULL;
	locale = pg_newlocale_from_collation(collation);
	if (locale == NULL)
		return NULL;
	icu = palloc(sizeof(WsIcu));
	icu->collator = ws_locale_collator(locale);
	return icu;
}

/*
 * Sets *key to the key of a text of n bytes, which compares as an unsigned integer.  False if
 * ICU reports an error.  Callable from helpers.
 */
bool
ws_icu_key(const WsIcu *icu, const char *text, Size n, uint64 *key)
{
	UCharIterator iter;
	uint32_t	state[2] = {0, 0};
	UErrorCode	status = U_ZERO_ERROR;
	uint64		bytes = 0;

	uiter_setUTF8(&iter, text, (int32_t) n);
	(void) ucol_nextSortKeyPart(icu->collator, &iter, state, (uint8_t *) &bytes, sizeof(bytes), &status);
	*key = pg_ntoh64(bytes);
	return U_SUCCESS(status);
}

/*
 * Writes the first bytes of a text's sort key to `out`, `wanted` at most, and returns how many these are;
 * 0 if ICU reports an error.
 */
Size
ws_icu_bytes(const WsIcu *icu, const char *text, Size n, Size wanted, char *out)
{
	UCharIterator iter;
	uint32_t	state[2] = {0, 0};
	UErrorCode	status = U_ZERO_ERROR;
	int32_t		written;

	uiter_setUTF8(&iter, text, (int32_t) n);
	written = ucol_nextSortKeyPart(icu->collator, &iter, state, (uint8_t *) out, (int32_t) wanted, &status);
	return U_SUCCESS(status) ? (Size) written : 0;
}

#else							/* no ICU */

WsIcu *
ws_icu_create(Oid collation)
{
	return NULL;
}

bool
ws_icu_key(const WsIcu *icu, const char *text, Size n, uint64 *key)
{
	return false;
}

Size
ws_icu_bytes(const WsIcu *icu, const char *text, Size n, Size wanted, char *out)
{
	return 0;
}
#endif

/* Raises what a failure of ws_icu_key means. */
void
ws_icu_failed(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
			 errmsg("could not make a sort key of a text"),
			 errdetail("ICU reported an error.")));
}

/* Bytes of a text that count. */
Size
ws_icu_length(const WsKeyColumn *col, const char *text, Size n)
{
	if (col->padded)
		while (n > 0 && text[n - 1] == ' ')
			n--;
	return n;
}

/* What SortSupport's abbrev_converter is. */
Datum
ws_icu_abbreviate(Datum original, SortSupport ssup)
{
	const WsKeyColumn *col = ssup->ssup_extra;
	struct varlena *text = PG_DETOAST_DATUM_PACKED(original);
	Size		n = ws_icu_length(col, VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text));
	uint64		key;

	if (!ws_icu_key(col->icu, VARDATA_ANY(text), n, &key))
		ws_icu_failed();
	if ((Pointer) text != DatumGetPointer(original))
		pfree(text);
	return UInt64GetDatum(key);
}
