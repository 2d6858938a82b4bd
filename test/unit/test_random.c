/*-------------------------------------------------------------------------
 * test_random.c - the sorts of test_sort.c, of which everything is drawn: keys, rows, how many of these come in
 * order or are asked for, values that leave the range of the first ones, memory, and how they are read.
 *
 * `test_random FIRST LAST` draws with other seeds.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

static int64 allowance;
static bool again;
static bool always_packed;
static bool queued;			/* a helper may make keys */
static long asked_for_helper;	/* rows that came before there was one */
static int	packed;				/* sorts for which it was asked if packing pays */

#define ALLOWANCE	allowance
#define AGAIN		again
#define ANY_WAY		true
#define WORTH_PACKING	(packed++, always_packed ? -1 : 0.2)
#define WORTH_IF_DEAR	WORTH_PACKING
#define LEAST_REST		((Size) 1)
#define MANY_MORE		0
#define QUEUE_LEAST		(queued ? 0 : MaxAllocHugeSize)
#define QUEUE_FIRST		(asked_for_helper++, 16)
#define MANY_CODES		1
#define main		sort_main
#include "test_sort.c"
#undef main

#define SEEDS	400

static uint64
draw(uint64 n)
{
	return next_random() % n;
}

/* Values of numbers behind a row that are none of those before it, and a few that are extreme. */
static void
spread(const FakeKey *key)
{
	Size		from = draw(c.n + 1) * table.ncols;
	uint64		way = draw(4);
	bool		extreme = draw(4) == 0;

	for (Size i = 0; i < c.n * table.ncols; i++)
	{
		int64		value = DatumGetInt64(table.values[i]);

		if (table.isnull[i] || is_text(key->encoding[i % table.ncols]))
			continue;
		if (i >= from && (way == 1 || (way > 1 && draw(3) == 0)))
			value = way == 1 ? value + 100000 : way == 2 ? (int64) next_random() : -value % 1000 * 1000003;
		if (extreme && draw(100) == 0)
			value = draw(2) ? PG_INT64_MAX : PG_INT64_MIN;
		table.values[i] = Int64GetDatum(value);
	}
}

/* Has a text this byte? */
static bool
has_byte(Datum text, char byte)
{
	return memchr(VARDATA_ANY(DatumGetPointer(text)), byte, VARSIZE_ANY_EXHDR(DatumGetPointer(text))) != NULL;
}

/* Texts with a byte, in a column, come only behind a row that is drawn: in place of those before it others do. */
static void
comes_late(int col, char byte)
{
	Size		from = draw(c.n + 1);

	for (Size i = 0; i < from; i++)
	{
		Datum	   *value = &table.values[i * table.ncols + col];

		if (table.isnull[i * table.ncols + col])
			continue;
		for (int tries = 0; tries < 50 && has_byte(*value, byte); tries++)
		{
			Size		other = draw(c.n) * table.ncols + col;

			if (!table.isnull[other])
				*value = table.values[other];
		}
	}
}

/* Letters tell all texts at first, or none that are ignored have come, in some columns. */
static void
doubt_late(const FakeKey *key)
{
	for (int col = 0; col < key->ncols; col++)
	{
		if (key->encoding[col] != WS_ENC_LETTERS || draw(3) == 0)
			continue;
		comes_late(col, (char) 0xBF);
		if (draw(2))
			comes_late(col, '~');
		if (draw(2))
			comes_late(col, (char) 0xA9);
	}
}

static Case
draw_case(void)
{
	const uint64 distinct[] = {1, 2, 7, 100, 7420, 1000000, UINT64CONST(1) << 31, UINT64CONST(1) << 31};
	const Size	memory[] = {24, 24, 32, 64, 64, 96, 128, 256, 512, 1024};
	Case		k = {.what = "random"};

	k.kind = (int) draw(FAKE_KEYS);
	k.n = draw(3) == 0 ? draw(300) : draw(4) > 0 ? draw(5000) : draw(24000);
	k.distinct = distinct[draw(lengthof(distinct))];
	k.memory = memory[draw(lengthof(memory))] * 1024;
	k.expected = draw(2) ? (double) k.n : (double) draw(30000);
	k.threads = (int) draw(2);
	k.random_access = draw(3) == 0;
	k.early = draw(2);
	k.half = draw(6) == 0;
	if (draw(2) && k.n > 0)
		k.in_order = draw(3) == 0 ? k.n : draw(2) ? k.n - draw(Min(k.n, 4)) : draw(k.n);
	if (draw(2))
		k.wanted = 1 + (draw(3) == 0 ? draw(40) : draw(k.n + 2));
	again = draw(5) == 0;
	always_packed = draw(3) > 0;
	queued = draw(2);
	allowance = draw(3) ? PG_INT64_MAX : draw(3) == 0 ? 0 : (int64) draw(200 * 1024);
	fake_ignores = draw(2);
	fake_strange = draw(3) ? (int) draw(5000) : 0;
	fake_guess_wrong = draw(3) ? 0 : 1 + (int) draw(50);
	fake_alike = false;
	block = draw(3) ? 0 : 4096 * (1 + draw(4));
	reads = (WsMergeReads) {(WsMergeRead) draw(3), (int) draw(5) - 1, WS_READER_SYNC};
	return k;
}

/* Makes it one of keys that begin alike, of which the bytes behind are packed. */
static void
pack_drawn(Case *k)
{
	k->kind = draw(3) > 0 ? FAKE_LETTERS : FAKE_LETTERS_BEHIND;
	k->n = 3000 + draw(20000);
	k->distinct = draw(3) ? 1000000 : 7420;
	k->expected = 30000;
	k->in_order = 0;
	k->threads = queued = draw(4) > 0;
	fake_alike = draw(4) > 0;
	fake_strange = draw(3) ? 1 + (int) draw(2000) : 0;
	fake_guess_wrong = draw(2) ? 1 + (int) draw(10) : 0;
	always_packed = true;
}

static bool
sort_drawn(uint64 seed)
{
	const FakeKey *key;
	Case		k;
	bool		right;

	random_state = seed * UINT64CONST(2654435761) + UINT64CONST(88172645463325252);
	for (int i = 0; i < 10; i++)
		(void) next_random();
	k = draw_case();
	if (draw(4) == 0)
		pack_drawn(&k);
	key = &fake_keys[k.kind];
	prepare(k);
	spread(key);
	doubt_late(key);
	if (c.in_order > 0)
		put_in_order(key);
	free(order);
	order = fake_sorted(&table, key);
	right = server_try(sort_rows, NULL) && wrong == 0 && left_behind == 0 && server_left() == NULL;
	if (!right)
		printf("# seed %llu: %s, %zu rows in %zu kB, %zu in order, %llu asked for, %s%s%s: %ld wrong %s\n",
			   (unsigned long long) seed, key->name, k.n, k.memory / 1024, k.in_order,
			   (unsigned long long) k.wanted, k.threads ? "helpers" : "alone",
			   k.random_access ? ", random" : "", again ? ", again" : "", wrong, server.message);
	finish();
	return right;
}

int
main(int argc, char **argv)
{
	uint64		first = argc > 2 ? strtoull(argv[1], NULL, 10) : 1;
	uint64		last = argc > 2 ? strtoull(argv[2], NULL, 10) : SEEDS;
	int			bad = 0;

	for (uint64 seed = first; seed <= last && bad < 10; seed++)
		bad += !sort_drawn(seed);
	CHECK(bad == 0, "sorts of which everything is drawn: seeds %llu to %llu", (unsigned long long) first,
		  (unsigned long long) last);
	CHECK(packed > (int) (last - first) / 12, "bytes behind beginnings might be packed in %d sorts", packed);
	/* where none starts, each row asks for it */
	CHECK(asked_for_helper > (long) (last - first) && asked_for_helper < (long) (last - first) * 20, "helpers may make keys: %ld rows came before", asked_for_helper);
	return failures != 0;
}
