/*-------------------------------------------------------------------------
 * test_letters.c - what letters tell of text must be what the collation's own library says.
 *
 * All collations of ICU, and those of libc that can be made here (localedef) or are named in LETTERS_LOCALES.
 * Random texts are compared by the library, as core compares them, and by their key bytes:
 *
 *	- the bytes of two plain texts are in the order of the texts, and the same only for the same text;
 *	- those of accented texts that differ are in their order;
 *	- windows of any offset are parts of the whole, and where a text ends is seen from the bytes.
 */
#include "server.c"
#include "unit.h"
#include "key/text.h"
#include "mb/pg_wchar.h"
#include "utils/pg_locale.h"

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#undef snprintf
#undef printf

/* ---- in the place of the server, and of parts of the sources ---- */

int
GetDatabaseEncoding(void)
{
	return PG_UTF8;
}

char
ws_collation_provider(Oid collation, char **name)
{
	*name = NULL;
	return '\0';
}

/* No text here is compared in lower case. */
struct varlena *
ws_lowered(Datum value)
{
	exit(1);
}

bool
get_collation_isdeterministic(Oid collation)
{
	return true;
}

pg_locale_t
pg_newlocale_from_collation(Oid collation)
{
	return NULL;
}

#include "../../src/key/icu.c"
#include "../../src/key/transform.c"
#include "../../src/key/alphabet.c"
#include "../../src/key/lettertable.c"
#include "../../src/key/glibc.c"
#include "../../src/key/letters.c"

#define TEXT	200			/* more than letters.c looks at together */
#define KEY		1200

typedef struct Text
{
	union
	{
		struct varlena v;
		char		bytes[TEXT + VARHDRSZ + 8];
	}			u;
	Size		n;
	uint8		key[KEY];
	Size		length;
	WsLettered	lettered;
} Text;

static WsTransform transform;
static WsLetters letters;
static WsKeySpec spec;
static WsKeyColumn col;

static char *
bytes_of(Text *t)
{
	return t->u.bytes + VARHDRSZ;
}

/* Adds a letter, which is likely to be like others. */
static void
add_letter(Text *t, int kind)
{
	static const char *const others[] = {"\xC3\xA9", "\xC3\x9F", "\xC3\x85", "\xC3\xA5", "\xC3\xBC", "\xC4\x8D", "\xC5\x93", "\xC2\xB7",
		"\xC2\xAD", "\xCC\x81", "\xCC\x8C", "\xD0\x96", "\xE6\xBC\xA2", "\x01", "\xC3\xBE", "\xC3\x9E", "\xC3\xA6", "\xC2\xAA", "\xC5\x82"};
	static const char like[] = "aAbBcChHlLsSzZdDyYnNgGjJ";
	char		buf[4];
	int			choice = (int) (next_random() % 16);
	int			letter;

	if (kind == 0 || choice < 8)
		snprintf(buf, sizeof(buf), "%c", choice < 11 ? like[next_random() % (sizeof(like) - 1)] :
				 choice < 13 ? " -.,'_/" [next_random() % 7] : (char) (0x20 + next_random() % 95));
	else if (kind == 1)
	{
		letter = 0xA0 + (int) (next_random() % 0xE0);
		buf[0] = (char) (0xC0 | letter >> 6);
		buf[1] = (char) (0x80 | (letter & 0x3F));
		buf[2] = '\0';
	}
	else
		snprintf(buf, sizeof(buf), "%s", others[next_random() % lengthof(others)]);
	if (t->n + strlen(buf) <= TEXT)
	{
		memcpy(bytes_of(t) + t->n, buf, strlen(buf));
		t->n += strlen(buf);
	}
}

/* A text that is like another one at times. */
static void
make_text(Text *t, const Text *like, int kind)
{
	static const int lengths[] = {8, 8, 8, 8, 8, 8, 8, 8, 8, 40, 40, 190};
	int			n = (int) (next_random() % lengths[next_random() % lengthof(lengths)]);

	t->n = 0;
	if (like != NULL && next_random() % 4 != 0)
	{
		const char *from = like->u.bytes + VARHDRSZ;
		Size		bytes;

		/* the same, but for case, or one letter less or more */
		for (Size i = 0; i < like->n; i += bytes)
		{
			char		c = from[i];

			bytes = letter_bytes(from + i, like->n - i);
			if (next_random() % 12 == 0)
				continue;
			if (next_random() % 12 == 0)
				add_letter(t, kind);
			if (t->n + bytes > TEXT)
				break;
			memcpy(bytes_of(t) + t->n, from + i, bytes);
			if (next_random() % 8 == 0 && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
				bytes_of(t)[t->n] ^= 0x20;
			t->n += bytes;
		}
	}
	else
		for (int i = 0; i < n; i++)
			add_letter(t, kind);
	SET_VARSIZE(&t->u.v, t->n + VARHDRSZ);
	bytes_of(t)[t->n] = '\0';
}

static long wrong;

#define EXPECT(condition) \
	do { \
		if (!(condition) && wrong++ < 5) \
			printf("# %s\n", #condition); \
	} while (0)

static void
make_key(Text *t)
{
	bool		plain;
	bool		compared;
	Size		end;

	letters.strange = false;
	memset(t->key, 0, KEY);
	t->lettered = ws_letters_of(letters.table, &col, PointerGetDatum(&t->u.v));
	t->length = ws_letters_bytes(&col, PointerGetDatum(&t->u.v), 0, KEY, t->key, &plain);
	EXPECT(plain == (t->lettered == WS_LETTERS_PLAIN) && t->length <= KEY);
	EXPECT(letters.strange == (t->lettered == WS_LETTERS_STRANGE));
	EXPECT(plain == ws_letters_tell(&col, PointerGetDatum(&t->u.v)));
	end = ws_letters_end(t->key, t->length, 0, letters.table->ignores, &compared);
	EXPECT(end == t->length && compared == !plain);
	for (int i = 0; i < 4; i++)
	{
		uint8		part[KEY] = {0};
		Size		skip = next_random() % (t->length + 4);
		Size		wanted = next_random() % 30;
		Size		length = ws_letters_bytes(&col, PointerGetDatum(&t->u.v), skip, wanted, part, &plain);

		EXPECT(memcmp(part, t->key + skip, wanted) == 0);
		EXPECT(length == t->length || (length > skip + wanted && t->length > skip + wanted));
		if (wanted > 0 && wanted < t->length)
			EXPECT(ws_letters_end(t->key, wanted, 0, letters.table->ignores, &compared) == wanted + 1 ||
				   ws_letters_end(t->key, wanted, 0, letters.table->ignores, &compared) > wanted);
	}
}

static int
sign(int cmp)
{
	return (cmp > 0) - (cmp < 0);
}

/* As core compares them. */
static int
compare_texts(Text *a, Text *b)
{
	int			cmp = 0;

#if defined(HAVE_ICU) && defined(USE_ICU)
	if (transform.icu != NULL)
	{
		UErrorCode	status = U_ZERO_ERROR;

		cmp = ucol_strcollUTF8(transform.icu->collator, bytes_of(a), (int32_t) a->n, bytes_of(b), (int32_t) b->n, &status);
	}
	else
#endif
		cmp = strcoll_l(bytes_of(a), bytes_of(b), transform.locale);
	return sign(cmp != 0 ? cmp : strcmp(bytes_of(a), bytes_of(b)));
}

/* What there was to compare. */
static long compared_plain;
static long compared_accented;

static void
compare_pairs(const char *name, int pairs)
{
	long		before = wrong;

	spec.cols = &col;
	spec.ncols = 1;
	letters.spec = &spec;
	col.letters = &letters;
	for (int i = 0; i < pairs; i++)
	{
		Text		a;
		Text		b;
		int			cmp;
		int			by_bytes;

		make_text(&a, NULL, i % 3);
		make_text(&b, &a, i % 3);
		make_key(&a);
		make_key(&b);
		if (a.lettered == WS_LETTERS_STRANGE || b.lettered == WS_LETTERS_STRANGE)
			continue;
		cmp = compare_texts(&a, &b);
		by_bytes = sign(memcmp(a.key, b.key, KEY));
		if (a.lettered == WS_LETTERS_PLAIN && b.lettered == WS_LETTERS_PLAIN)
			compared_plain++;
		else if (by_bytes != 0)
			compared_accented++;
		else
			continue;
		if (cmp != by_bytes)
		{
			if (wrong++ < 5)
				printf("# %s: \"%s\" and \"%s\": %d by the library, %d by bytes\n", name, bytes_of(&a), bytes_of(&b), cmp, by_bytes);
		}
	}
	if (wrong > before)
		printf("# %s: %ld wrong\n", name, wrong - before);
}

/* Of a collation: false if letters do not tell its texts. */
static bool
try(const char *name, int pairs)
{
	WsKeyColumn before = {.icu = (WsIcu *) transform.icu, .transform = &transform};

	transform.name = (char *) name;
	col = before;
	CurrentMemoryContext = TopMemoryContext;
	letters.table = ws_letter_table(&col, true);
	if (letters.table == NULL)
		return false;
	col.alphabet = ws_alphabet_of(&transform);
	compare_pairs(name, pairs);
	pfree(col.alphabet);
	return true;
}

#if defined(HAVE_ICU) && defined(USE_ICU)
static bool
is_among(const char *name, const char *const *names, int n)
{
	for (int i = 0; i < n; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static void
of_icu(int pairs)
{
	static const char *const told[] = {"en", "de", "fr", "es", "it", "pt", "nl", "pl", "sv", "fi", "tr", "ja", "zh", "ru", "ar"};
	static const char *const untold[] = {"cs", "da", "hu", "hr", "cy", "en@colNumeric=yes", "en@colStrength=secondary",
	"en@colCaseFirst=upper", "en@colAlternate=shifted", "en@colCaseLevel=yes"};
	static const char *const more[] = {"und", "de@collation=phonebook", "es@collation=traditional", "fr-CA", "en@colStrength=quaternary",
		"en@colStrength=identical", "en@colBackwards=yes", "en@colNumeric=yes", "en@colStrength=secondary", "en@colCaseFirst=upper",
		"en@colCaseFirst=lower", "en@colAlternate=shifted", "en@colCaseLevel=yes", "en@colNormalization=yes", "en@colReorder=digit-latn",
	"en@colReorder=grek-latn-punct"};
	int			available = ucol_countAvailable();
	int			all = available + (int) lengthof(more);
	int			ntold = 0;
	long		mistaken = 0;

	for (int i = 0; i < all; i++)
	{
		const char *name = i < available ? ucol_getAvailable(i) : more[i - available];
		UErrorCode	status = U_ZERO_ERROR;
		UCollator  *collator = ucol_open(name, &status);
		WsIcu		icu = {collator};
		bool		tells;

		if (U_FAILURE(status))
			continue;
		transform = (WsTransform) {.icu = &icu};
		tells = try(name, pairs);
		ntold += tells;
		if (is_among(name, told, lengthof(told)) != is_among(name, untold, lengthof(untold)) &&
			tells != is_among(name, told, lengthof(told)))
		{
			printf("# letters %stell texts of %s\n", tells ? "" : "do not ", name);
			mistaken++;
		}
		ucol_close(collator);
	}
	CHECK(wrong == 0, "ICU: the order of plain and accented texts (%d collations of %d, %ld and %ld pairs, %ld wrong)",
		  ntold, all, compared_plain, compared_accented, wrong);
	CHECK(mistaken == 0 && ntold > all / 2, "ICU: which collations these are (%ld wrong)", mistaken);
	CHECK(compared_plain > pairs * ntold / 4L && compared_accented > pairs * ntold / 10L, "ICU: there are such texts");
}
#endif

static int
remove_it(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static void
of_libc(int pairs)
{
	char		folder[] = "/tmp/wiscsort-letters-XXXXXX";
	char		names[4096] = "en_US de_DE sv_SE fr_FR cs_CZ da_DK";
	const char *asked = getenv("LETTERS_LOCALES");
	int			made = 0;
	int			told = 0;
	bool		english = false;
	bool		czech = false;

	if (mkdtemp(folder) == NULL)
		server_die("no folder");
	(void) setenv("LOCPATH", folder, 1);
	if (asked != NULL)
		snprintf(names, sizeof(names), "%s", asked);
	compared_plain = compared_accented = wrong = 0;
	for (char *name = strtok(names, " "); name != NULL; name = strtok(NULL, " "))
	{
		char		command[200];
		char		utf8[80];

		snprintf(utf8, sizeof(utf8), "%s.utf8", name);
		snprintf(command, sizeof(command), "localedef --no-archive -c -i %s -f UTF-8 %s/%s >/dev/null 2>&1", name, folder, utf8);
		(void) (system(command) + 1);
		transform = (WsTransform) {.locale = newlocale(LC_COLLATE_MASK | LC_CTYPE_MASK, utf8, (locale_t) 0)};
		if (transform.locale == (locale_t) 0)
			continue;
		made++;
		if (try(utf8, pairs))
		{
			told++;
			english |= strcmp(name, "en_US") == 0;
			czech |= strcmp(name, "cs_CZ") == 0;
		}
		freelocale(transform.locale);
	}
	(void) nftw(folder, remove_it, 8, FTW_DEPTH | FTW_PHYS);
	CHECK(wrong == 0, "libc: the order of plain and accented texts (%d collations of %d, %ld and %ld pairs, %ld wrong)",
		  told, made, compared_plain, compared_accented, wrong);
	CHECK(made == 0 || asked != NULL || (english && !czech), "libc: which collations these are");
	CHECK(compared_plain >= pairs * told / 4L && compared_accented >= pairs * told / 10L, "libc: there are such texts");
}

static void
all(void *arg)
{
#if defined(HAVE_ICU) && defined(USE_ICU)
	of_icu(1500);
#endif
	of_libc(60000);
}

int
main(void)
{
	if (!server_try(all, NULL))
		server_die("%s", server.message);
	return failures != 0;
}
