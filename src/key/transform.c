/*-------------------------------------------------------------------------
 * transform.c - a guess at the order of text under a collation of libc, or ICU.
 *
 * strxfrm makes byte strings of texts that should compare as strcoll compares
 * the texts, but there are versions of libc where they do not always, which is
 * why core has given up abbreviated keys for these collations.  Here they are a
 * guess, and nothing depends on it but speed: a piece of the IndexMap is sorted
 * by transformed keys, and then each row is compared with the one before it by the
 * comparator (index/ties.c): n comparisons instead of n log n.
 *
 * Only as much of a text is transformed as the bytes asked for come from: its weights of
 * the first level, of which there must be as many.
 *
 * The locale is opened by name, and belongs to the memory context.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>

#include "utils/memutils.h"

/* Bytes of text that are tried first for so many bytes of transformed text, and the most. */
#define SOURCE_BYTES(wanted)	((wanted) + 2)
#define SOURCE_LIMIT			256

#define OF_POSTGRESQL	'b'		/* COLLPROVIDER_BUILTIN, from PostgreSQL 17 on */

struct WsTransform
{
	const WsIcu *icu;			/* ICU's sort keys, if not NULL */
	char	   *name;
	locale_t	locale;
	MemoryContextCallback callback;
};

/*
 * The name of the libc locale behind a collation, palloc'd; NULL if it is of
 * another provider, or not deterministic.
 */
static char *
libc_locale(Oid collation)
{
	char	   *name;

	(void) ws_collation_provider(collation, &name);
	return name;
}

/* Has a locale of this name no rules, so that strcoll is strcmp?  Opened once: each plan asks many times. */
static bool
has_no_rules(const char *name)
{
	static bool asked = false;
	static bool none = false;
	locale_t	locale;

	if (pg_strcasecmp(name, "C.UTF-8") != 0 && pg_strcasecmp(name, "C.utf8") != 0)
		return false;
	if (asked)
		return none;
	asked = true;
	locale = newlocale(LC_COLLATE_MASK | LC_CTYPE_MASK, name, (locale_t) 0);
	if (locale == (locale_t) 0)
		return false;
#ifdef __GLIBC__
	/* an item that is a number, which a pointer holds */
	none = (uint32) (uintptr_t) nl_langinfo_l(_NL_COLLATE_NRULES, locale) == 0;
#endif
	freelocale(locale);
	return none;
}

/*
 * Is the order of texts under this collation that of their bytes?  So it is for C, for those of PostgreSQL
 * itself, and for C.UTF-8 since glibc 2.35: there it is the order of code points, for which it has no
 * rules, and that of UTF-8 is the same.  Asked of its name: its locale is not opened, because nobody may
 * ever compare by it, and it may be gone.
 */
bool
ws_collation_is_bytes(Oid collation)
{
	char	   *name;
	char		provider = ws_collation_provider(collation, &name);

	if (name != NULL)
		return strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0 || has_no_rules(name);
	return provider == OF_POSTGRESQL;
}

/* Can text under this collation be transformed? */
bool
ws_transformable(Oid collation)
{
	return libc_locale(collation) != NULL && !ws_collation_is_bytes(collation);
}

static void
close_locale(void *arg)
{
	freelocale(((WsTransform *) arg)->locale);
}

/*
 * The transformation for a collation, in CurrentMemoryContext, or NULL if it has
 * none.
 */
WsTransform *
ws_transform_create(Oid collation)
{
	char	   *name = libc_locale(collation);
	WsTransform *transform;

	if (name == NULL || ws_collation_is_bytes(collation))
		return NULL;
	transform = palloc0(sizeof(WsTransform));
	transform->name = name;
	transform->locale = newlocale(LC_COLLATE_MASK | LC_CTYPE_MASK, name, (locale_t) 0);
	if (transform->locale == (locale_t) 0)
		return NULL;
	transform->callback.func = close_locale;
	transform->callback.arg = transform;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &transform->callback);
	return transform;
}

/*
 * The transformation that ICU's sort keys are, in CurrentMemoryContext; NULL for a collation that is not
 * deterministic.  There is nothing to be guessed of whole keys.  But behind what texts have in common, the
 * sort key of the rest is a guess as well: letters there may be one with what is before them.
 */
WsTransform *
ws_transform_of_icu(const WsIcu *icu, Oid collation)
{
	WsTransform *transform;

	if (!get_collation_isdeterministic(collation))
		return NULL;
	transform = palloc0(sizeof(WsTransform));
	transform->icu = icu;
	transform->name = psprintf("ICU's at %p", ws_icu_collator(icu));
	return transform;
}

/* What tells its collation from others, as long as the backend lives. */
const char *
ws_transform_name(const WsTransform *transform)
{
	return transform->name;
}

/* Sets what letters weigh, in facts that are zero.  False if that cannot be told. */
bool
ws_transform_facts(const WsTransform *transform, WsLetterFacts *facts)
{
	return transform->icu != NULL ? ws_icu_facts(transform->icu, facts) :
		ws_glibc_facts(transform->locale, facts);
}

/*
 * Transforms a text of n bytes, of which `wanted` bytes will be looked at, into
 * out[WS_TRANSFORMED].  Returns the number of bytes.
 */
Size
ws_transform(const WsTransform *transform, const char *text, Size n, Size wanted, char *out)
{
	char		source[SOURCE_LIMIT + 1];
	Size		asked = SOURCE_BYTES(wanted);
	Size		most = SOURCE_LIMIT;
	Size		length;
	Size		result;

	for (;;)
	{
		length = Min(n, Min(asked, most));
		/* not in the middle of a character (of UTF-8) */
		while (length > 0 && length < n && (text[length] & 0xC0) == 0x80)
			length--;
		if (transform->icu != NULL)
			result = ws_icu_bytes(transform->icu, text, length, wanted, out);
		else
		{
			memcpy(source, text, length);
			source[length] = '\0';
			result = strxfrm_l(out, source, WS_TRANSFORMED, transform->locale);
		}
		if (result >= WS_TRANSFORMED)
			most = length / 2;
		else if (length < n && asked < most &&
				 (result < wanted || memchr(out, WS_LEVEL_END, wanted) != NULL))
			asked *= 2;			/* what followed would be weights of another level */
		else
			return result;
	}
}
