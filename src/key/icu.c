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
#include "key/text.h"

#include "mb/pg_wchar.h"
#include "port/pg_bswap.h"

#if defined(HAVE_ICU) && defined(USE_ICU)
#include <dlfcn.h>
#include <unicode/ucol.h>
#include <unicode/uiter.h>
#include <unicode/uset.h>

#include "catalog/pg_collation.h"
#include "utils/pg_locale.h"

extern void uiter_setUTF8(UCharIterator *iter, const char *s, int32_t length) __attribute__((weak));
extern int32_t ucol_nextSortKeyPart(const UCollator *coll, UCharIterator *iter, uint32_t state[2],
									uint8_t *dest, int32_t count, UErrorCode *status) __attribute__((weak));
extern UColAttributeValue ucol_getAttribute(const UCollator *coll, UColAttribute attr,
											UErrorCode *status) __attribute__((weak));
extern void ucol_getContractionsAndExpansions(const UCollator *coll, USet *contractions, USet *expansions,
											  UBool addPrefixes, UErrorCode *status) __attribute__((weak));
extern USet *uset_openEmpty(void) __attribute__((weak));
extern void uset_close(USet *set) __attribute__((weak));
extern UBool uset_contains(const USet *set, UChar32 c) __attribute__((weak));
extern int32_t uset_getItemCount(const USet *set) __attribute__((weak));
extern int32_t uset_getItem(const USet *set, int32_t itemIndex, UChar32 *start, UChar32 *end, UChar *str,
							int32_t strCapacity, UErrorCode *ec) __attribute__((weak));

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

/* The collator, which stays as long as the backend. */
const void *
ws_icu_collator(const WsIcu *icu)
{
	return icu->collator;
}

/* Is an attribute of the collator between two values? */
static bool
has(const WsIcu *icu, UColAttribute attribute, UColAttributeValue least, UColAttributeValue most)
{
	UErrorCode	status = U_ZERO_ERROR;
	UColAttributeValue value = ucol_getAttribute(icu->collator, attribute, &status);

	return U_SUCCESS(status) && value >= least && value <= most;
}

/* Is it an accent of its own, which belongs to the letter before it? */
static inline bool
is_combining(UChar c)
{
	return c >= 0x300 && c < 0x370;
}

/*
 * Of letters that count together, notes those that are not ASCII, which tell such texts from plain ones.
 * False if texts of ASCII alone have them, or such with accents of their own.
 */
static bool
note_joined(const UChar *letters, int n, WsLetterFacts *facts)
{
	bool		ascii = true;
	int			bases = 0;

	for (int i = 0; i < n; i++)
		if (letters[i] >= WS_LETTERS && !is_combining(letters[i]))
			return true;		/* texts with this one are not looked at */
	for (int i = 0; i < n; i++)
	{
		bases += !is_combining(letters[i]);
		ascii = ascii && letters[i] < 0x80;
		if (letters[i] >= 0x80 && letters[i] < WS_LETTERS)
			facts->letter[letters[i]].joined = true;
	}
	return bases < 2 || (!ascii && bases == n);
}

/* Notes what counts together, and what has several weights.  False if that concerns texts of ASCII. */
static bool
note_sets(const WsIcu *icu, WsLetterFacts *facts)
{
	UErrorCode	status = U_ZERO_ERROR;
	USet	   *contractions = uset_openEmpty();
	USet	   *expansions = uset_openEmpty();
	bool		good;

	ucol_getContractionsAndExpansions(icu->collator, contractions, expansions, true, &status);
	good = U_SUCCESS(status);
	for (int i = 0; good && i < uset_getItemCount(contractions); i++)
	{
		UChar		letters[32];
		UChar32		first;
		UChar32		last;
		int			n = uset_getItem(contractions, i, &first, &last, letters, lengthof(letters), &status);

		/* 0 is a range of single letters */
		good = U_SUCCESS(status) && n <= (int) lengthof(letters) && note_joined(letters, n, facts);
	}
	for (int i = 0; i < WS_LETTERS; i++)
		facts->letter[i].several = uset_contains(expansions, i);
	uset_close(contractions);
	uset_close(expansions);
	return good;
}

/* Sets what a text of a letter or two weighs. */
static void
take_weights(const WsIcu *icu, const char *text, Size n, WsLetterWeights *out)
{
	char		key[3 * WS_LETTER_WEIGHT];
	Size		length = ws_icu_bytes(icu, text, n, sizeof(key), key);
	const char *at = key;
	const char *end = key + length;

	out->known = length > 0 && length < sizeof(key);
	for (int level = 0; level < 3 && at < end; level++)
	{
		const char *level_end = memchr(at, WS_LEVEL_END, end - at);
		Size		bytes = (level_end == NULL ? end : level_end) - at;

		if (bytes > WS_LETTER_WEIGHT)
			out->known = false;
		else
		{
			out->n[level] = (uint8) bytes;
			memcpy(out->bytes[level], at, bytes);
		}
		at += bytes + 1;
	}
}

/*
 * Sets what letters weigh, in facts that are zero.  False if the collation has other attributes than most, or
 * letters of ASCII that count together or weigh as much as several.
 */
bool
ws_icu_facts(const WsIcu *icu, WsLetterFacts *facts)
{
	if (ucol_getAttribute == NULL || ucol_getContractionsAndExpansions == NULL || uset_openEmpty == NULL ||
		uset_close == NULL || uset_contains == NULL || uset_getItemCount == NULL || uset_getItem == NULL)
		return false;
	if (!has(icu, UCOL_STRENGTH, UCOL_TERTIARY, UCOL_IDENTICAL) ||
		!has(icu, UCOL_CASE_FIRST, UCOL_OFF, UCOL_OFF) || !has(icu, UCOL_CASE_LEVEL, UCOL_OFF, UCOL_OFF) ||
		!has(icu, UCOL_NUMERIC_COLLATION, UCOL_OFF, UCOL_OFF) ||
		!has(icu, UCOL_ALTERNATE_HANDLING, UCOL_NON_IGNORABLE, UCOL_NON_IGNORABLE) || !note_sets(icu, facts))
		return false;
	for (int i = 0x20; i < WS_LETTERS; i++)
	{
		const char	one = (char) i;
		const char	two[2] = {(char) (0xC0 | i >> 6), (char) (0x80 | (i & 0x3F))};

		if (i < 0x80)
			take_weights(icu, &one, 1, &facts->letter[i]);
		else
			take_weights(icu, two, 2, &facts->letter[i]);
	}
	for (int i = 0; i < WS_LETTER_PAIRS; i++)
		take_weights(icu, ws_letter_pair(i), 2, &facts->pair[i]);
	return true;
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

const void *
ws_icu_collator(const WsIcu *icu)
{
	return NULL;
}

bool
ws_icu_facts(const WsIcu *icu, WsLetterFacts *facts)
{
	return false;
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
	struct varlena *text = ws_text_of(col, original);
	Size		n = ws_icu_length(col, VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text));
	uint64		key;

	if (!ws_icu_key(col->icu, VARDATA_ANY(text), n, &key))
		ws_icu_failed();
	if ((Pointer) text != DatumGetPointer(original))
		pfree(text);
	return UInt64GetDatum(key);
}
