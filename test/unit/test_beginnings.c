/*-------------------------------------------------------------------------
 * test_beginnings.c - codes of what keys begin with: in the order of the keys, and nothing is lost.
 *
 * Keys of many shapes, of which some are the sample and all others come later: they must have prefixes in
 * their order, and a prefix must give back as many bytes of its key as it tells.  What is made must
 * stay within the memory that was allowed, and must tell apart what the first ten bytes do not, or tell whole
 * keys where that was asked for.
 */
#include "sorting.c"

#define KEYS		20000
#define LONGEST		(WS_BEGINNING + WS_MOST_BEHIND)

typedef struct Shape
{
	const char *name;
	Size		sample;			/* keys of it */
	Size		most;			/* bytes */
	int			(*make) (uint8 *key, uint64 random, int row);
	double		told;			/* share of the keys that no other has the prefix of, at least */
	double		whole;			/* of those that the prefix tells to their ends; not asked for if 0 */
} Shape;

static uint8 keys[KEYS][LONGEST];
static ws_uint128 prefixes[KEYS];
static int	lengths[KEYS];
static int	order[KEYS];
static WsPack pack;
static long wrong_order,
			wrong_bytes,
			wrong_behind;
static Size bytes,
			reach;
static double told,
			whole;

static int
nothing(uint8 *key, uint64 random, int row)
{
	return 0;
}

static int
bytes_at_random(uint8 *key, uint64 random, int row)
{
	int			n = random % 40;

	for (int i = 0; i < n; i++)
		key[i] = (uint8) next_random();
	return n;
}

/* Of zeros and ones and their opposites: many are the beginnings of others. */
static int
extremes(uint8 *key, uint64 random, int row)
{
	static const uint8 byte[] = {0, 1, 0xFE, 0xFF};
	int			n = random % 30;

	for (int i = 0; i < n; i++)
		key[i] = byte[next_random() % 4 * (next_random() % 3 > 0)];
	return n;
}

static int
addresses(uint8 *key, uint64 random, int row)
{
	return snprintf((char *) key, WS_BEGINNING, "https://www.example-%d.org/category/%d/product/%016llx",
					(int) (random % 20), (int) (random / 20 % 100), (unsigned long long) next_random());
}

static int
few(uint8 *key, uint64 random, int row)
{
	return snprintf((char *) key, WS_BEGINNING, "all of these begin alike, and there are few: %d",
					(int) (random % 50));
}

static int
longest(uint8 *key, uint64 random, int row)
{
	memset(key, 'x', WS_BEGINNING);
	for (int i = 0; i < 8; i++)
		key[200 + i] = (uint8) (random >> (8 * i));
	return WS_BEGINNING;
}

/* What comes later is not like the sample. */
static int
changing(uint8 *key, uint64 random, int row)
{
	return row < 5000 ? addresses(key, random, row) : extremes(key, random, row);
}

/* As 'Surname123, Anna': 7,500 of them. */
static int
persons(uint8 *key, uint64 random, int row)
{
	static const char *const name[] = {"Anna", "Bert", "Carl", "Dora", "Emil"};

	return snprintf((char *) key, WS_BEGINNING, "Surname%d, %s", (int) (random % 1500), name[random / 1500 % 5]);
}

/* Two integers of eight bytes, the first of which is small. */
static int
integers(uint8 *key, uint64 random, int row)
{
	key[0] = key[8] = 0x80;
	key[6] = (uint8) (random >> 8) % 4;
	key[7] = (uint8) random;
	for (int i = 12; i < 16; i++)
		key[i] = (uint8) next_random();
	return 16;
}

/* Words, of which few come behind a given one. */
static int
words(uint8 *key, uint64 random, int row)
{
	static const char *const word[] = {"regular ", "final ", "deposits ", "requests ", "sleep ", "quickly ", "across ",
	"the ", "furiously ", "packages ", "carefully ", "ironic ", "accounts ", "bold "};
	int			n = 0;

	for (int i = 0; i < 5; i++)
		n += snprintf((char *) key + n, WS_BEGINNING - n, "%s",
					  word[next_random() % lengthof(word) * (next_random() % lengthof(word)) / lengthof(word)]);
	return n;
}

static const Shape shapes[] = {
	{"no bytes at all", 1000, 100000, nothing, 0, 0},
	{"bytes at random", 4000, 100000, bytes_at_random, 0.8, 0},
	{"bytes that are extreme", 4000, 1000000, extremes, 0.5, 0},
	{"bytes that are extreme, little memory", 4000, 3000, extremes, 0.3, 0},
	{"addresses", 10000, 1000000, addresses, 0.95, 0},
	{"addresses, many of them once", 1500, 1000000, addresses, 0.45, 0},
	{"addresses, little memory", 10000, 5000, addresses, 0.0, 0},
	{"addresses, no memory", 10000, 1, addresses, 0.0, 0},
	{"addresses, two of them known", 2, 100000, addresses, 0.0, 0},
	{"few keys", 5000, 100000, few, 0.0, 0},
	{"200 equal bytes", 5000, 100000, longest, 0.99, 0},
	{"others later", 5000, 1000000, changing, 0.3, 0},
	{"integers", 10000, 1000000, integers, 0.99, 0},
	{"persons", 5000, 1000000, persons, 0.05, 0.99},
	{"persons, little memory", 5000, 3000, persons, 0.05, 0.05},
	{"extreme bytes to their ends", 4000, 1000000, extremes, 0.5, 0.4},
	{"words", 4000, 1000000, words, 0.3, 0.9},
	{"words, little memory", 4000, 4000, words, 0.1, 0},
};

static int
by_key(const void *a, const void *b)
{
	int			cmp = memcmp(keys[*(const int *) a], keys[*(const int *) b], LONGEST);

	return cmp;
}

/*
 * The length of a key: with a zero byte at its end, or that of all, where others may have such bytes.  No key
 * is what another one begins with.
 */
static Size
length_of(int row, const Shape *s)
{
	bool		any = s->make == bytes_at_random || s->make == extremes || s->make == changing;

	return any ? LONGEST : (Size) lengths[row] + 1;
}

/* Do bytes behind the first that a prefix does not tell count in it? */
static bool
counts_behind(const WsBeginnings *b, const Shape *s, int row, Size all)
{
	uint8		other[LONGEST];
	Size		same;

	memcpy(other, keys[row], LONGEST);
	for (Size i = all + 1; i < LONGEST; i++)
		other[i] = (uint8) next_random();
	return ws_beginnings_prefix(b, other, length_of(row, s), &same) != prefixes[row] || same != all;
}

static void
try_shape(void *arg)
{
	const Shape *s = arg;
	WsKeyBytes *sample = palloc(s->sample * sizeof(WsKeyBytes));
	WsBeginnings *b;
	int			alone = 0;
	int			ended = 0;

	for (int i = 0; i < KEYS; i++)
	{
		memset(keys[i], 0, LONGEST);
		lengths[i] = s->make(keys[i], next_random(), i);
		order[i] = i;
	}
	for (Size i = 0; i < s->sample; i++)
	{
		Size		n = Min(lengths[i], WS_BEGINNING);

		while (n > 0 && keys[i][n - 1] == 0)
			n--;
		sample[i] = (WsKeyBytes) {keys[i], n, 0};
	}
	b = ws_beginnings_create(sample, s->sample, s->whole > 0, pack, s->most);
	bytes = ws_beginnings_bytes(b);
	reach = ws_beginnings_reach(b);
	wrong_order = wrong_bytes = wrong_behind = 0;
	(qsort) (order, KEYS, sizeof(int), by_key);
	for (int i = 0; i < KEYS; i++)
	{
		uint8		back[LONGEST];
		Size		n;
		Size		all;

		prefixes[i] = ws_beginnings_prefix(b, keys[i], length_of(i, s), &all);
		n = ws_beginnings_expand(b, prefixes[i], back);
		ended += n > lengths[i];
		wrong_behind += pack != WS_PACK_ALL && counts_behind(b, s, i, all);
		wrong_bytes += n != all || (pack == WS_PACK_NONE && n < WS_BEHIND_CODE) || n > reach || memcmp(back, keys[i], n) != 0;
	}
	for (int i = 1; i < KEYS; i++)
	{
		ws_uint128	last = prefixes[order[i - 1]];
		ws_uint128	this = prefixes[order[i]];

		wrong_order += last > this;
		alone += last != this && (i + 1 == KEYS || prefixes[order[i + 1]] != this);
	}
	told = (double) alone / KEYS;
	whole = (double) ended / KEYS;
	ws_beginnings_free(b);
	pfree(sample);
}

/* Of 10,000 rows nearly all of which are tied, because there are few prefixes. */
static void
check_worth(void)
{
	WsLearning	l = {.sampled = 10000};

	CHECK(is_better(&l, 2500, 5000) && !is_better(&l, 2501, 5000), "codes are worth it for half as many ties");
	CHECK(is_better(&l, 9920, 9990) && !is_better(&l, 9921, 9990),
		  "they are for groups of ties that are an eighth as large");
}

/* Whether the share of a million rows that are tied is told by some: groups of so many rows, and so much else. */
static void
check_share(Size group, double share)
{
	WsKeyColumn col = {.attno = 1, .encoding = WS_ENC_TEXT, .notnull = true, .length = -1};
	WsKeySpec	spec = {.ncols = 1, .cols = &col};
	WsLearning	l = {.spec = &spec, .sampled = 2000, .expected = 1000000, .sort = ws_sort_entries};
	WsEntry	   *room = malloc((2 * l.sampled + 4) * sizeof(WsEntry));
	double		told;
	Size		tied;

	l.sample = (WsEntry *) TYPEALIGN(64, room);
	l.sorted = l.sample + l.sampled;
	for (Size i = 0; i < l.sampled; i++)
	{
		uint64		row = next_random() % 1000000;
		uint64		key = row < share * 1000000 ? row / group : 1000000 + i;
		uint8		digits[WS_PREFIX_BYTES + 1];

		snprintf((char *) digits, sizeof(digits), "%010d", (int) key);
		l.sample[i] = ws_key_window_entry(digits, i);
	}
	told = share_tied(&l, &tied);
	CHECK(fabs(told - share) < 0.25 && tied == ws_learn_tied(&l), "%.2f of the rows are tied in groups of %zu, told %.2f", share, group, told);
	free(room);
}

/* Does a prefix that tells a whole text of letters still do so when other texts have made these a guess? */
static void
try_strange(void *arg)
{
	static WsLetterTable table;
	WsLetters	letters = {.table = &table};
	WsKeyColumn col = {.attno = 1, .encoding = WS_ENC_LETTERS, .notnull = true, .length = -1, .letters = &letters};
	WsKeySpec	spec = {.ncols = 1, .cols = &col};
	WsKeyBytes	sample[] = {{(const uint8 *) "letters", 7, 0}, {(const uint8 *) "lettered", 8, 0}};
	uint8		key[LONGEST] = "letters";
	Size		all;
	WsEntry		whole;

	spec.beginnings = ws_beginnings_create(sample, lengthof(sample), true, WS_PACK_ALL, 100000);
	whole = ws_entry_make(ws_beginnings_prefix(spec.beginnings, key, 7, &all), 1);
	CHECK(ws_beginnings_packed(spec.beginnings) && ws_key_told(&spec, whole).what == WS_TOLD_ALL,
		  "a packed prefix tells a whole text");
	letters.strange = true;
	spec.doubts = 1;
	CHECK(ws_key_told(&spec, whole).what == WS_TOLD_GUESSED, "it is a guess when a strange one has come");
	col.encoding = WS_ENC_TEXT;
	col.letters = NULL;
	spec.doubts = 0;
	for (int i = 0; i < 10000 && (i == 0 || (uint8) ws_entry_prefix(whole) != 0); i++)
	{
		for (int j = 0; j < 12; j++)
			key[j] = 1 + next_random() % 255;
		whole = ws_entry_make(ws_beginnings_prefix(spec.beginnings, key, 20, &all), 1);
	}
	CHECK((uint8) ws_entry_prefix(whole) == 0 && ws_key_told(&spec, whole).what == WS_TOLD_IN_PART,
		  "a packed prefix that ends with a zero byte may go on");
}

int
main(void)
{
	if (!server_try(try_strange, NULL))
		server_die("%s", server.message);
	check_worth();
	check_share(2, 0);
	check_share(10, 1);
	check_share(50, 1);
	check_share(1000, 0.1);
	check_share(1000, 0.5);
	check_share(100000, 0.2);
	for (int i = 0; i < 3 * (int) lengthof(shapes); i++)
	{
		const Shape *s = &shapes[i / 3];

		pack = (WsPack) (i % 3);
		if (!server_try(try_shape, (void *) s))
			server_die("%s: %s", s->name, server.message);
		CHECK(wrong_order == 0 && wrong_bytes == 0 && wrong_behind == 0 && reach <= LONGEST && server_left() == NULL,
			  "%s: prefixes are in the order of the keys (%ld not), and tell their bytes (%ld do not, and %ld more)",
			  s->name, wrong_order, wrong_bytes, wrong_behind);
		/* the root is there in any case */
		CHECK(bytes <= Max(s->most, 200), "%s: %zu bytes of %zu", s->name, bytes, s->most);
		/* words are only told where they are packed */
		if (pack == WS_PACK_TOLD || (s->make == words && pack == WS_PACK_NONE))
			continue;
		CHECK(told >= s->told, "%s: %.2f of the keys are told apart, of %.2f", s->name, told, s->told);
		if (s->whole > 0)
			CHECK(whole >= s->whole, "%s: %.2f of the keys are told to their ends, of %.2f", s->name, whole,
				  s->whole);
	}
	return failures != 0;
}
