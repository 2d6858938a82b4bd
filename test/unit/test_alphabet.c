/*-------------------------------------------------------------------------
 * test_alphabet.c - places of letters: in the order of their weights, and few letters are transformed.
 *
 * A collation is made up here: case and accents do not count, nor does punctuation; ae is a letter of two;
 * Greek comes behind Latin, and what is not known in front of both.
 */
#include "server.c"
#include "unit.h"
#include "key/text.h"
#include "mb/pg_wchar.h"

static long transformed;
static int	encoding = PG_UTF8;

int
GetDatabaseEncoding(void)
{
	return encoding;
}

/* Bytes of a letter, and what it weighs: 0 if nothing. */
static Size
weigh(const char *text, uint8 *weight)
{
	const uint8 *at = (const uint8 *) text;

	if (at[0] < 0x80)
	{
		*weight = at[0] >= 'A' && at[0] <= 'Z' ? at[0] - 'A' + 'a' : at[0] >= '0' ? at[0] : 0;
		return 1;
	}
	if (at[0] < 0xE0)
	{
		int			letter = (at[0] & 0x1F) << 6 | (at[1] & 0x3F);

		*weight = letter >= 0x370 ? 0x80 + letter % 64 : letter == 0xE9 ? 'e' : 0x79;
		return 2;
	}
	*weight = at[2] == 0xA1 ? 'a' : at[2] == 0xBB ? 0 : 5;
	return 3;
}

Size
ws_transform(const WsTransform *transform, const char *text, Size n, Size wanted, char *out)
{
	Size		length = 0;

	transformed++;
	for (Size i = 0; i < n;)
	{
		uint8		weight;

		if (n - i >= 2 && memcmp(text + i, "\xC3\xA6", 2) == 0)
		{
			out[length++] = 'a';
			out[length++] = 'e';
			i += 2;
			continue;
		}
		i += weigh(text + i, &weight);
		if (weight != 0)
			out[length++] = (char) weight;
	}
	out[length++] = WS_LEVEL_END;
	out[length++] = 'z';		/* another level */
	return length;
}

#include "../../src/key/alphabet.c"

static WsAlphabet *alphabet;

typedef struct Places
{
	uint8		at[12];
	Size		n;				/* of them */
	Size		bytes;			/* with those behind */
} Places;

static Places
places(const char *text)
{
	Places		p = {.n = 0};

	p.bytes = ws_alphabet_places(alphabet, text, strlen(text), sizeof(p.at), p.at, &p.n);
	return p;
}

/* As texts whose places these are would be sorted. */
static int
order(const char *a, const char *b)
{
	Places		x = places(a);
	Places		y = places(b);

	return memcmp(x.at, y.at, sizeof(x.at));
}

static void
all(void *arg)
{
	long		wrong = 0;
	uint8		out[3] = {0xAA, 0xAA, 0xAA};
	Places		both;
	Size		placed;

	alphabet = ws_alphabet_create(NULL);
	CHECK(alphabet != NULL, "there is an alphabet");
	for (char a = 'a'; a <= 'z'; a++)
		for (char b = 'a'; b <= 'z'; b++)
		{
			char		x[] = {a, 0};
			char		y[] = {b - 'a' + 'A', 0};

			wrong += (order(x, y) > 0) != (a > b) || (order(x, y) < 0) != (a < b);
		}
	CHECK(wrong == 0, "letters are in order, whatever their case (%ld wrong)", wrong);
	transformed = 0;
	CHECK(order("Chateau d'If, 17", "chat\xC3\xA9" "au dif17") == 0 && transformed == 0,
		  "accents and punctuation do not count, and nothing is transformed");
	both = places("\xC3\xA6");
	CHECK(both.n == 2 && order("\xC3\xA6", "ae") == 0 && order("\xC3\xA6" "b", "af") < 0, "a letter counts as two");
	CHECK(ws_alphabet_places(alphabet, "xyz", 3, 2, out, &placed) == 2 && out[2] == 0xAA &&
		  ws_alphabet_places(alphabet, "x\xC3\xA6", 3, 2, out, &placed) == 2 && out[2] == 0xAA &&
		  ws_alphabet_places(alphabet, "\xCE\xB1xyz", 5, 2, out, &placed) == 2 && placed == 1 && out[2] == 0xAA &&
		  ws_alphabet_places(alphabet, "...", 3, 2, out, &placed) == 0 && out[2] == 0xAA, "no more than asked for");
	CHECK(order("a\xCE\xB1", "az") > 0 && order("a\xE2\x80\x93", "a0") < 0 && order("a\xE2\x80\x93", "a") > 0,
		  "letters that are not known are between those that are");
	transformed = 0;
	both = places("x\xCE\xB1\xCE\xB2\xCE\xB3");
	CHECK(both.n == 2 && both.bytes == 5 && transformed == 2, "the first of them is the last place");
	CHECK(order("x\xCE\xB1\xCE\xB2", "x\xCE\xB1\xCE\xB3") < 0 && order("x\xCE\xB2", "x\xCE\xB1\xCE\xB3") > 0,
		  "the text from there is transformed, and tells more");
	CHECK(order("\xEF\xBD\xA1" "b", "ab") == 0 && order("a\xEF\xBB\xBB" "b", "ab") == 0,
		  "one that weighs as much as a letter, or nothing, does not");
	transformed = 0;
	CHECK(places("\xEF\xBD\xA1\xEF\xBD\xA1\xEF\xBD\xA1\xEF\xBD\xA1\xEF\xBD\xA1z").n == 4 && transformed == 4,
		  "few of a text are transformed");
	alphabet = ws_alphabet_copy(alphabet, NULL);
	transformed = 0;
	CHECK(order("chat\xC3\xA9", "Chateau") < 0 && transformed == 0 && ws_alphabet_transformed(alphabet) == 0,
		  "a copy knows the same letters");
	encoding = PG_LATIN1;
	CHECK(ws_alphabet_create(NULL) == NULL, "none in another encoding");
}

int
main(void)
{
	if (!server_try(all, NULL))
		server_die("%s", server.message);
	CHECK(server_left() == NULL, "nothing is left");
	return failures != 0;
}
