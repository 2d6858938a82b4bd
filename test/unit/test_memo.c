/*-------------------------------------------------------------------------
 * test_memo.c - key bytes that are remembered must be those that would be made.
 *
 * Letters are made up here: a text has a byte for each of its letters, and an end; with a '~' it is not told
 * wholly, and with a '!' it is strange, and all that come later are a guess.
 */
#include "unit.h"

#define LETTERS_OF_ITS_OWN
#include "keys.c"

#undef printf

#define TEXTS		12
#define MOST_KEY	60

static long made;				/* texts of which bytes have been made */

Size
ws_letters_bytes(const WsKeyColumn *col, Datum value, Size skip, Size wanted, uint8 *out, bool *plain)
{
	const char *text = VARDATA_ANY(DatumGetPointer(value));
	Size		n = VARSIZE_ANY_EXHDR(DatumGetPointer(value));

	made++;
	*plain = true;
	for (Size i = 0; i < n; i++)
	{
		*plain &= text[i] != '~' && text[i] != '!';
		if (text[i] == '!')
			col->letters->strange = true;
	}
	for (Size i = 0; i < wanted && skip + i <= n; i++)
		out[i] = skip + i < n ? (uint8) (text[skip + i] + 1) : 1;
	return n + 1;
}

/* With a header of one byte or of four: a row of a spool has the one, a row that is computed the other. */
static Datum
random_text(bool strange)
{
	static const int lengths[] = {0, 1, 8, 9, 10, 11, 30, 59, 60, 61, 200, 600};
	int			n = lengths[next_random() % lengthof(lengths)];
	struct varlena *v = calloc(1, VARHDRSZ + n);
	char	   *text;

	if (next_random() % 2 && n + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
		SET_VARSIZE_SHORT(v, VARHDRSZ_SHORT + n);
	else
		SET_VARSIZE(v, VARHDRSZ + n);
	text = VARDATA_ANY(v);
	for (int i = 0; i < n; i++)
		text[i] = (char) ('a' + next_random() % 3);
	if (n > 0 && next_random() % 3 == 0)
		text[next_random() % n] = strange ? '!' : '~';
	return PointerGetDatum(v);
}

/* Do both make the same of a row? */
static bool
same_bytes_made(WsMemo *memo, const WsKeySpec *spec, const Datum *values, const bool *isnull, Size n)
{
	uint8		a[MOST_KEY];
	uint8		b[MOST_KEY];
	Size		length = ws_memo_key_bytes(memo, spec, values, isnull, n, a);
	Size		wanted = ws_key_bytes_behind(spec, 0, 0, values, isnull, n, b);

	return memcmp(a, b, n) == 0 && Min(length, n + 1) == Min(wanted, n + 1);
}

static void
check_bytes(bool strange)
{
	long		wrong = 0;
	long		rows = 0;

	for (int round = 0; round < 20000; round++)
	{
		WsLetters	letters = {0};
		WsKeyColumn cols[2] = {{.attno = 1, .encoding = WS_ENC_LETTERS, .length = -1, .letters = &letters},
		{.attno = 2, .encoding = WS_ENC_INT4, .width = 4, .length = 4, .byval = true}};
		WsKeySpec	spec = {.ncols = 1 + next_random() % 2, .cols = cols, .last_attno = 2, .lettered = true};
		Datum		texts[TEXTS];
		Datum		values[2];
		bool		isnull[2];
		WsMemo	   *memo;

		letters.spec = &spec;
		cols[0].descending = next_random() % 2;
		cols[0].notnull = next_random() % 2;
		if (next_random() % 4 == 0)
			cols[0].encoding = WS_ENC_TRANSFORMED;
		cols[1].descending = next_random() % 2;
		for (int i = 0; i < TEXTS; i++)
			texts[i] = random_text(strange);
		memo = ws_memo_create(&spec);
		values[0] = texts[0];
		for (int i = 0; i < 30; i++)
		{
			if (next_random() % 2)
				values[0] = texts[next_random() % TEXTS];
			values[1] = Int32GetDatum((int32) next_random());
			isnull[0] = !cols[0].notnull && next_random() % 8 == 0;
			isnull[1] = next_random() % 4 == 0;
			wrong += !same_bytes_made(memo, &spec, values, isnull, next_random() % 8 ? WS_PREFIX_BYTES : MOST_KEY);
			rows++;
		}
		free(memo);
	}
	CHECK(wrong == 0, "%s: the same bytes with a memo (%ld of %ld rows wrong)",
		  strange ? "with strange texts" : "without", wrong, rows);
}

/* A text that comes again is not made again, as long as that comes often. */
static void
check_use(void)
{
	WsLetters	letters = {0};
	WsKeyColumn col = {.attno = 1, .encoding = WS_ENC_LETTERS, .length = -1, .notnull = true, .letters = &letters};
	WsKeySpec	spec = {.ncols = 1, .cols = &col, .last_attno = 1, .lettered = true};
	WsMemo	   *memo = ws_memo_create(&spec);
	Datum		texts[2] = {random_text(false), random_text(false)};
	bool		notnull = false;
	uint8		out[WS_PREFIX_BYTES];

	while (VARSIZE_ANY(DatumGetPointer(texts[0])) > 400)
		texts[0] = random_text(false);
	while (VARSIZE_ANY(DatumGetPointer(texts[1])) > 400 ||
		   VARSIZE_ANY(DatumGetPointer(texts[1])) == VARSIZE_ANY(DatumGetPointer(texts[0])))
		texts[1] = random_text(false);
	made = 0;
	for (int i = 0; i < 10000; i++)
		(void) ws_memo_key_bytes(memo, &spec, &texts[i / 5 % 2], &notnull, WS_PREFIX_BYTES, out);
	CHECK(made == 2000, "five rows with each text: one of them is made (%ld of 10000)", made);
	for (int i = 0; i < 5000; i++)
		(void) ws_memo_key_bytes(memo, &spec, &texts[i % 2], &notnull, WS_PREFIX_BYTES, out);
	made = 0;
	for (int i = 0; i < 1000; i++)
		(void) ws_memo_key_bytes(memo, &spec, &texts[0], &notnull, WS_PREFIX_BYTES, out);
	CHECK(made == 1000, "where hardly any text comes again, the memo is given up (%ld of 1000)", made);
	spec.ranges = (struct WsRanges *) &spec;
	CHECK(ws_memo_create(&spec) == NULL, "no memo beside ranges");
	spec.ranges = NULL;
	col.encoding = WS_ENC_TEXT;
	CHECK(ws_memo_create(&spec) == NULL, "no memo of bytes that are cheap");
}

int
main(void)
{
	check_bytes(false);
	check_bytes(true);
	check_use();
	return failures != 0;
}
