/*-------------------------------------------------------------------------
 * test_sort.c - whole sorts, by sort/sorter.h, over a fake store, a fake reader and files in memory.
 *
 * Up to 200,000 rows of every kind of key, with and without helpers, with little memory, read forward,
 * or at random: forward and backward, marked, restored, rewound, against a model of what core's
 * sort does.  Afterwards the sort's memory must have been within work_mem, and nothing may be left of it.
 *
 * Then the faults: EIO, ENOSPC, short reads, flipped bytes, a cancel, no memory, at the n-th call that
 * could have it, for n = 1, 2, 3, ... until none was met.  Each must be one ERROR with its SQLSTATE and the
 * file's name; nothing may be left; and the sort without a fault must be right.
 *-------------------------------------------------------------------------
 */
#define WS_FAKE_READER
#include "sorting.c"

#include "../../src/sort/budget.c"
#include "../../src/sort/sorter.c"
#include "../../src/sort/learn.c"
#include "../../src/sort/order.c"
#include "../../src/sort/again.c"
#include "tableorder.c"

#ifndef ALLOWANCE
#define ALLOWANCE PG_INT64_MAX	/* bytes of rows that may wait in a file; the others travel inside runs */
#endif

#ifndef AGAIN
#define AGAIN false				/* the sort begins again when a third of the rows have been got */
#endif

#ifndef FROM_TABLE
#define FROM_TABLE false		/* its rows are in a table */
#endif

#ifndef ANY_WAY
#define ANY_WAY false			/* which way a sort goes is not looked at */
#endif

#ifndef SCALE
#define SCALE 1					/* less for valgrind: -DSCALE=10 */
#endif

typedef struct Case
{
	const char *what;
	int			kind;			/* of key */
	Size		n;
	uint64		distinct;
	Size		memory;
	double		expected;		/* rows */
	int			threads;		/* 1: helpers, 0: none */
	bool		random_access;
	bool		early;			/* the reader reads when it is asked to */
	bool		half;			/* read only half of it */
	Size		in_order;		/* so many rows, the first ones, come in order */
	uint64		wanted;			/* so many rows are asked for; 0: all */
} Case;

static Case c;
static FakeTable table;
static uint32 *order;
static WsRequest request;
static WsMergeReads reads = {WS_READ_ORDER, -1, WS_READER_SYNC};	/* what it asks for */
static Size block = 0;
static AttrNumber attnos[FAKE_COLUMNS];
static Oid	sortops[FAKE_COLUMNS];
static bool notnull[FAKE_COLUMNS];

/* What was found. */
static long wrong;
static Size left_behind;		/* bytes that a sort's end has left */
static WsSortStats stats;

/* Puts the first rows into order. */
static void
put_in_order(const FakeKey *key)
{
	FakeTable	first = table;
	uint32	   *sorted;
	Datum	   *values;
	bool	   *isnull;
	Size		row = table.ncols;

	first.n = c.in_order;
	sorted = fake_sorted(&first, key);
	values = malloc(first.n * row * sizeof(Datum));
	isnull = malloc(first.n * row * sizeof(bool));
	for (Size i = 0; i < first.n; i++)
	{
		memcpy(values + i * row, table.values + sorted[i] * row, row * sizeof(Datum));
		memcpy(isnull + i * row, table.isnull + sorted[i] * row, row * sizeof(bool));
	}
	memcpy(table.values, values, first.n * row * sizeof(Datum));
	memcpy(table.isnull, isnull, first.n * row * sizeof(bool));
	free(sorted);
	free(values);
	free(isnull);
}

/* Rows that are handed out. */
static Size
asked_for(void)
{
	return c.wanted > 0 ? Min(c.wanted, c.n) : c.n;
}

static void
prepare(Case wanted)
{
	const FakeKey *key = &fake_keys[wanted.kind];

	c = wanted;
	fake_fill(&table, key, c.n, c.distinct);
	if (c.in_order > 0)
		put_in_order(key);
	order = fake_sorted(&table, key);
	for (int i = 0; i < key->ncols; i++)
	{
		attnos[i] = i + 1;
		sortops[i] = key->encoding[i] | (key->descending[i] ? 0x100 : 0);
		notnull[i] = !key->nullable[i];
	}
	request = (WsRequest) {.ncols = key->ncols, .attnos = attnos, .sortops = sortops,
		.nulls_first = (bool *) key->nulls_first, .notnull = notnull, .store = WS_KIND_SPOOL,
		.rows = c.expected, .memory = c.memory, .random_access = c.random_access,
		.allowance = ALLOWANCE, .again = AGAIN, .again_at = (int64) asked_for() / 3, .vectorised = c.threads > 0,
		.wanted = c.wanted, .reads = reads, .block = block, .threads = {c.threads, c.threads, c.threads, 4}};
	fakereader_early = c.early;
	fake_store_is_table = FROM_TABLE;
	ordered_table = &table;
}

static void
finish(void)
{
	fake_free(&table);
	free(order);
}

/* Is the slot's row the one that has place number `place`? */
static bool
is_row(const TupleTableSlot *slot, Size place)
{
	return place < c.n && slot->tts_values[table.ncols] == order[place];
}

/* Moves at random, beside a model of a sort that can: a position, and whether the end was met. */
static void
scroll(WsSort *sort, TupleTableSlot *slot)
{
	Size		position = 0;
	Size		marked = 0;
	bool		eof = false;
	bool		marked_eof = false;
	Size		n = asked_for();

	for (int move = 0; move < 20; move++)
	{
		int			kind = (int) (next_random() % 8);
		Size		steps = next_random() % 5 == 0 ? n + 2 : 1 + next_random() % 100;

		if (kind == 5)
		{
			ws_sorter_mark(sort->sorter);
			marked = position;
			marked_eof = eof;
		}
		else if (kind == 6)
		{
			ws_sorter_restore(sort->sorter);
			position = marked;
			eof = marked_eof;
		}
		else if (kind == 7)
		{
			ws_sorter_rewind(sort->sorter);
			position = marked = 0;
			eof = marked_eof = false;
		}
		else if (kind < 3)
			for (; steps > 0; steps--)
			{
				bool		found = ws_sort_get(sort, true, slot);

				wrong += found != (position < n) || (found && !is_row(slot, position));
				position += found;
				eof |= !found;
				if (!found)
					break;
			}
		else
			for (; steps > 0 && move % 10 != 9; steps -= Min(steps, 1 + n / 500))
			{
				bool		found = ws_sort_get(sort, false, slot);

				/* behind the last row, that row again; else the one before the last that was got */
				if (eof && position > 0)
					eof = false;
				else if (position > 0)
					position--;
				wrong += found != (position > 0) || (found && !is_row(slot, position - 1));
				if (!found)
					break;
			}
	}
	ws_sorter_rewind(sort->sorter);
}

/* The number of the first row that is not where it came; c.n if there is none. */
static Size
first_displaced(void)
{
	Size		i = 0;

	while (i < c.n && order[i] == i)
		i++;
	return i;
}

static void
sort_rows(void *arg)
{
	Datum		values[FAKE_COLUMNS + 1];
	bool		isnull[FAKE_COLUMNS + 1] = {false};
	TupleTableSlot slot = {.tts_values = values, .tts_isnull = isnull, .tts_nvalid = table.ncols + 1,
	.tts_ops = &fake_slot_ops};
	Size		before = server.memory;
	WsSort	   *sort = ws_sort_create(&request, NULL, FROM_TABLE ? (Relation) &table : NULL);
	Size		place = 0;
	Size		most = asked_for();

	wrong = 0;
	for (Size i = 0; i < c.n; i++)
	{
		memcpy(values, table.values + i * table.ncols, table.ncols * sizeof(Datum));
		memcpy(isnull, table.isnull + i * table.ncols, table.ncols * sizeof(bool));
		values[table.ncols] = i;
		ws_sort_put(sort, &slot);
	}
	ws_sort_perform(sort);
	/* keys that are learnt from are not made as long as rows come in order */
	if (ALLOWANCE == PG_INT64_MAX && !AGAIN && c.in_order > 0 && c.wanted == 0 && !ANY_WAY)
		wrong += sort->sorter->formation->in_order != (first_displaced() == c.n);
	if (c.random_access)
		scroll(sort, &slot);
	while ((!c.half || place <= most / 2) && ws_sort_get(sort, true, &slot))
		wrong += !is_row(&slot, place++);
	if (!c.half)
	{
		wrong += most - Min(place, most);
		wrong += ws_sort_get(sort, true, &slot);	/* the end stays the end */
	}
	ws_sort_stats(sort, &stats);
	wrong += stats.runs.entries + stats.passed != c.n;
	/* it is a matter of files, unless rows are in a table, and of rows that were got */
	if (AGAIN && (stats.disk > 0 || FROM_TABLE) && !c.random_access && most > 2 && !ANY_WAY)
		wrong += !stats.again || stats.rows_before != most / 3;
	if (FROM_TABLE && c.random_access)
		wrong += stats.again != (most / 3 == 0);
	ws_sort_destroy(sort);
	ws_region_drop_spares();
	left_behind = server.memory - before + server.mapped + server.threads + server.files;
}

static void
expect(Case wanted, bool disk)
{
	bool		passed;

	prepare(wanted);
	passed = server_try(sort_rows, NULL);
	/* rows, entries, pairs, buffers: a few kB beside work_mem, as budget.c says */
	CHECK(passed && wrong == 0 && left_behind == 0 && server_left() == NULL && ((stats.disk > 0) == disk || c.wanted > 0) &&
		  stats.memory <= (int64) (c.memory + (AGAIN ? 32 : 24) * 1024) && server.threads == 0 &&
		  (server.started > 0) <= c.threads,
		  "%s%s, %s, %s%s: %zu rows in %zu kB, %d runs, %d passes, %lld kB of memory, %lld of disk%s%s (%ld wrong)",
		  c.what, c.half ? ", half" : "", fake_keys[c.kind].name, c.threads ? "helpers" : "alone",
		  c.random_access ? ", random" : "", c.n, c.memory / 1024, stats.runs.formed, stats.runs.passes,
		  (long long) stats.memory / 1024, (long long) stats.disk / 1024, passed ? "" : ": ",
		  passed ? "" : server.message, wrong);
	finish();
}

static void
sorts(int kind, int threads, bool random_access)
{
	Size		row = (fake_keys[kind].ncols + 1) * sizeof(Datum) + 48;
	Case		k = {.kind = kind, .distinct = 100, .memory = 64 * 1024, .expected = 1000, .threads = threads,
	.random_access = random_access};
	Size		counts[] = {0, 1, 2, 3, 31, 32, 33, 64 * 1024 / row / 2};

	k.what = "in memory";
	for (int i = 0; i < lengthof(counts); i++)
	{
		k.n = counts[i];
		expect(k, false);
	}
	k.what = "just too many";
	k.n = 64 * 1024 / 32 + 100;
	/* but what is left of a table's rows may not be */
	if (!FROM_TABLE || random_access)
		expect(k, true);
	k.what = "runs";
	k.n = 6000;
	k.early = true;
	expect(k, true);
	k.n = 8000;
	k.half = !random_access;
	expect(k, true);
	k.half = false;
	k.distinct = UINT64CONST(1) << 31;
	expect(k, true);
	k.memory = 256 * 1024;
	k.what = "more memory";
	k.n = 20000;
	k.expected = 20000;
	expect(k, true);
	k.expected = 0;
	expect(k, true);
	if (ALLOWANCE == 0 || AGAIN)
		return;
	k.what = "rows that stay in memory";
	fake_store_keeps = true;
	k.n = 3000;
	expect(k, false);
	k.n = 20000;
	expect(k, true);
	fake_store_keeps = false;
}

/* Rows that come in order, all of them, or the first ones. */
static void
in_order(int kind, int threads, bool random_access)
{
	Case		k = {.what = "in order", .kind = kind, .expected = 10, .threads = threads,
	.random_access = random_access, .early = true};
	const Size	counts[] = {300, 6000, 20000};

	for (int i = 0; i < lengthof(counts); i++)
	{
		k.n = counts[i];
		k.memory = i == 2 ? 256 * 1024 : 64 * 1024;
		for (int part = 1; part <= 4; part++)
		{
			k.distinct = part % 2 == 0 ? 100 : UINT64CONST(1) << 31;
			k.in_order = k.n * part / 4;
			expect(k, i > 0);
			k.in_order = k.n - part;
			expect(k, i > 0);
		}
	}
}

/* Not all rows are asked for, and some come in order. */
static void
first_ones(int kind, int threads, bool random_access)
{
	const uint64 wanted[] = {1, 700, 3000, 5999};
	Case		k = {.what = "first ones", .kind = kind, .expected = 10, .memory = 64 * 1024, .threads = threads,
	.random_access = random_access, .n = 6000};

	for (int i = 0; i < lengthof(wanted); i++)
		for (int part = 0; part < 5; part++)
		{
			k.wanted = wanted[i];
			k.distinct = part % 2 == 0 ? 100 : UINT64CONST(1) << 31;
			k.in_order = part == 4 ? k.n - 1 : k.n * part / 3;
			expect(k, true);
		}
}

/*
 * All rows come in order but the last one, or all do; and as many as that are asked for, or fewer.  The first
 * rows are learnt from when half the memory is full, or when the last row finds all of it full: that is some
 * one of these numbers.  With the least memory two runs are merged at a time, of neighbours.
 */
static void
every_number(int kind, Size memory, Size most, Size behind, uint64 wanted)
{
	Case		k = {.what = "every number", .kind = kind, .distinct = UINT64CONST(1) << 31, .memory = memory,
	.expected = 10, .wanted = wanted};
	const char *bad = "";

	for (k.n = 100; k.n < most && bad[0] == '\0'; k.n++)
	{
		k.threads = k.n % 2;
		k.random_access = k.n % 4 < 2;
		k.in_order = wanted > 0 ? 0 : k.n - behind;
		prepare(k);
		if (!server_try(sort_rows, NULL) || wrong != 0 || server_left() != NULL)
			bad = ": wrong";
		finish();
	}
	CHECK(bad[0] == '\0', "%s, %s, %zu kB, all but %zu in order, %llu asked for: up to %zu rows%s", k.what,
		  fake_keys[kind].name, memory / 1024, behind, (unsigned long long) wanted, k.n, bad);
}

/* A fault at every call, for every n until there was none. */
static void
with_faults(FaultKind kind, Case wanted)
{
	bool		right = true;
	long		n = 1;
	long		tried = 0;
	const char *bad = "";

	prepare(wanted);
	for (;; n += kind == FAULT_CANCEL ? 1 + n / 4 : 1, tried++)
	{
		bool		passed;
		const char *left;

		random_state = 88172645463325252ULL;	/* the same moves each time */
		faults_set(kind, n);
		passed = server_try(sort_rows, NULL);
		left = server_left();
		if (left != NULL)
			bad = left;
		else if (!faults_met())
		{
			if (!passed || wrong > 0)
				bad = "the answer without a fault is wrong";
		}
		else if (passed)
			bad = "no error";
		else if (server.errors != 1 || server.sqlstate != faults_sqlstate(kind) ||
				 (kind < FAULT_CANCEL && strstr(server.message, "\"pgsql_tmp/mem") == NULL))
			bad = server.message;
		if (bad[0] != '\0')
			right = false;
		if (!right || !faults_met())
			break;
	}
	CHECK(right && tried > 0, "%s: %s, %s, %s%s: one error, and nothing left, %ld times%s%s", c.what,
		  faults_name(kind), fake_keys[c.kind].name, c.threads ? "helpers" : "alone",
		  c.random_access ? ", random" : "", tried, right ? "" : ": ", bad);
	faults_set(FAULT_NONE, 0);
	finish();
}

static void
all_faults(int kind, int threads, bool random_access, bool early)
{
	Case		k = {.what = "two levels", .kind = kind, .distinct = 100, .memory = 24 * 1024, .expected = 10,
		.threads = threads, .random_access = random_access, .early = early,
	.n = threads > 0 ? 1000 : 2500};

	for (FaultKind fault = FAULT_WRITE_EIO; fault < FAULT_KINDS; fault++)
		if (threads > 0 || (fault != FAULT_HELPER_EIO && fault != FAULT_HELPER_ENOSPC))
			with_faults(fault, k);
	if (kind != FAKE_EXACT && AGAIN == false && ALLOWANCE == PG_INT64_MAX)
	{
		/* the last row is less than the one before it: runs are read, and written again */
		k.what = "all but one in order";
		k.in_order = k.n - 1;
		for (FaultKind fault = FAULT_WRITE_EIO; fault < FAULT_KINDS; fault++)
			if (threads > 0 || (fault != FAULT_HELPER_EIO && fault != FAULT_HELPER_ENOSPC))
				with_faults(fault, k);
		k.in_order = 0;
	}
	/* enough memory to gather */
	k.what = "one level";
	k.memory = 80 * 1024;
	k.n = 5000;
	for (FaultKind fault = FAULT_READER_EIO; fault <= FAULT_READER_FLIP; fault++)
		with_faults(fault, k);
}

/* Every way to read the blocks of a merge, and sizes of these. */
static void
ways_to_read(void)
{
	const WsMergeReads ways[] = {
		{WS_READ_BLOCK, -1, WS_READER_SYNC}, {WS_READ_DOUBLE, -1, WS_READER_LIBAIO},
		{WS_READ_ORDER, 0, WS_READER_URING}, {WS_READ_ORDER, 2, WS_READER_SYNC}
	};
	Case		k = {.distinct = 100, .memory = 128 * 1024, .n = 16000, .expected = 10};
	char		what[64];

	for (int way = 0; way < lengthof(ways); way++)
		for (block = 0; block < 32 * 1024; block = block * 3 + 4096)
			for (k.threads = 0; k.threads < 2; k.threads++)
			{
				reads = ways[way];
				snprintf(what, sizeof(what), "read %d, %d, blocks of %zu", reads.method, reads.assist, block);
				k.what = what;
				k.kind = k.threads ? FAKE_BYTES : FAKE_EXACT;
				expect(k, true);
			}
	block = 0;
	for (int way = 0; way < lengthof(ways); way++)
	{
		reads = ways[way];
		all_faults(FAKE_EXACT, 1, false, true);
	}
	reads = (WsMergeReads) {WS_READ_ORDER, -1, WS_READER_SYNC};
}

int
main(void)
{
	Case		large = {.what = "many rows", .kind = FAKE_EXACT, .distinct = UINT64CONST(1) << 31,
	.memory = 1024 * 1024, .expected = 1000, .n = 200000};

	setvbuf(stdout, NULL, _IOLBF, 0);

	for (int random_access = 0; random_access < 2; random_access++)
		for (int threads = 0; threads < 2; threads++)
			for (int kind = random_access * 2; kind < FAKE_KEYS; kind++)
				if (kind % 2 == 0 || (SCALE == 1 && !random_access))
					sorts(kind, threads, random_access);
	if (ALLOWANCE != 0 && !AGAIN)
		for (int kind = FAKE_BYTES; kind < FAKE_KEYS; kind++)
			for (int way = 0; way < 4; way++)
				in_order(kind, way % 2, way / 2);
	/* pointers of a table's rows would have to be those of rows that are passed over, too */
	for (int kind = SCALE == 1 && !FROM_TABLE ? 0 : FAKE_KEYS; kind < FAKE_KEYS; kind++)
		first_ones(kind, kind % 2, (kind + kind / 2) % 2);
	if (ALLOWANCE == PG_INT64_MAX && !AGAIN && SCALE == 1)
		for (int kind = FAKE_BYTES; kind < FAKE_KEYS; kind++)
		{
			if (kind >= FAKE_COMPARATOR)
				every_number(kind, 64 * 1024, 1400, 1, 0);
			/* so many rows are to find room as tell that they come in order */
			if (kind != FAKE_LONG)
				every_number(kind, (kind == FAKE_STRANGERS || kind == FAKE_FAR ? 32 : 24) * 1024, 500, 0, 0);
			every_number(kind, 24 * 1024, 500, 0, 70);
		}
	for (large.threads = 0; large.threads < 2; large.threads++)
		expect(large, true);
	large.threads = 1;
	large.kind = FAKE_BYTES;
	large.distinct = 1000;
	large.random_access = true;
	expect(large, true);

	all_faults(FAKE_EXACT, 0, false, false);
	all_faults(FAKE_EXACT, 1, false, true);
	all_faults(FAKE_BYTES, 1, false, false);
	all_faults(FAKE_COMPARATOR, 0, false, false);
	if (ALLOWANCE == 0 && !AGAIN)
		ways_to_read();
	return failures != 0;
}
