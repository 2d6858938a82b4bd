/*-------------------------------------------------------------------------
 * test_gather.c - merging by batches, against a plain sort and against the tournament.
 *
 * Sources of random lengths, some empty, in memory and on disk, from two to a hundred; few and
 * many different prefixes, so that equal ones lie on both sides of a block's end and of a share's; sources
 * that have the next entries all alone.  What is handed out must be the sorted union, to the last entry,
 * and nothing may be written behind the buffer that was lent.  Then a fault at every read.
 *-------------------------------------------------------------------------
 */
#include "sorting.c"

#ifndef SCALE
#define SCALE 1					/* less for valgrind: -DSCALE=10 */
#endif

#define MAX_SOURCES		100
#define GUARD			64		/* entries behind the buffer */

typedef struct Gathering
{
	/* set by the test */
	int			nsources;
	Size		most;			/* entries of a source */
	uint64		distinct;
	int			skew;			/* 1: each source has keys of its own; 2: one source has nearly all entries */
	bool		on_disk;		/* every second source is a run */
	Size		block_size;
	Size		max;			/* asked for at a time; 0: random */
	bool		tournament;		/* do not gather */
	/* made of it */
	WsEntry    *entries[MAX_SOURCES];
	Size		n[MAX_SOURCES];
	WsEntry    *expected;
	Size		total;
	/* found */
	bool		gathered;
	long		wrong;
	bool		guarded;
	Size		most_at_once;
} Gathering;

static Gathering g;
static WsThreads no_threads = {0, 0, 0, 0};

static int
entry_order(const void *a, const void *b)
{
	ws_uint128	x = ws_entry_int(*(const WsEntry *) a);
	ws_uint128	y = ws_entry_int(*(const WsEntry *) b);

	return (x > y) - (x < y);
}

static void
make_sources(void)
{
	uint64		pointer = 0;

	g.total = 0;
	g.expected = malloc((g.nsources * g.most + 1) * sizeof(WsEntry));
	for (int s = 0; s < g.nsources; s++)
	{
		Size		n = next_random() % 6 == 0 ? 0 : next_random() % g.most;

		if (g.skew == 2)
			n = s == 0 ? g.most - 1 : n / 50;
		g.n[s] = n;
		g.entries[s] = malloc((n + 1) * sizeof(WsEntry));
		for (Size i = 0; i < n; i++)
		{
			ws_uint128	prefix = next_random() % g.distinct;

			if (g.skew == 1)
				prefix += s * g.distinct;
			prefix = prefix << 30 | (g.distinct > 1000 ? next_random() % 1000 : 0);
			g.entries[s][i] = ws_entry_make(prefix, pointer++);
			g.expected[g.total++] = g.entries[s][i];
		}
		qsort(g.entries[s], n, sizeof(WsEntry), entry_order);
	}
	qsort(g.expected, g.total, sizeof(WsEntry), entry_order);
}

static void
free_sources(void)
{
	for (int s = 0; s < g.nsources; s++)
		free(g.entries[s]);
	free(g.expected);
}

/* Memory for n entries, aligned to 16 bytes. */
static WsEntry *
entries_alloc(Size n)
{
	return (WsEntry *) TYPEALIGN(16, (uintptr_t) MemoryContextAllocHuge(CurrentMemoryContext,
																	   n * sizeof(WsEntry) + 16));
}

static void
merge_all(void *arg)
{
	WsKeySpec  *spec = fake_spec(&fake_keys[FAKE_EXACT]);
	WsFileSet  *files = ws_fileset_create(&no_threads, 0);
	WsReader   *reader = ws_reader_plain(files, false);
	WsMerge    *merge = ws_merge_create(spec, NULL, reader, g.nsources, false);
	Size		capacity = ws_block_capacity(g.block_size);
	Size		room = 2 * g.nsources * capacity;
	WsEntry    *buffer = entries_alloc(room + GUARD);
	WsEntry    *out = entries_alloc(5000);
	char	   *write_buffer = (char *) entries_alloc(g.block_size / sizeof(WsEntry));
	WsRunFiles	home;
	Size		n;
	Size		done = 0;

	g.wrong = 0;
	ws_runs_init(&home, files);
	memset(buffer + room, 0x11, GUARD * sizeof(WsEntry));
	for (int s = 0; s < g.nsources; s++)
	{
		if (g.on_disk && s % 2 == 0 && g.n[s] > 0)
		{
			WsRunWriter writer;
			WsRun		run;

			ws_run_write_begin(&writer, &home, g.n[s], g.block_size, s, 0, write_buffer, NULL);
			ws_run_write(&writer, g.entries[s], g.n[s]);
			run = ws_run_write_end(&writer);
			ws_merge_run(merge, s, &run, (char *) entries_alloc(g.block_size / sizeof(WsEntry)));
		}
		else
			ws_merge_slice(merge, s, g.entries[s], g.n[s]);
	}
	g.gathered = !g.tournament && ws_merge_gather(merge, capacity, buffer, room, true);
	if (!g.gathered)
		ws_merge_start(merge);
	g.wrong += merge->stream.count != g.total;
	while ((n = ws_stream_next(&merge->stream, out,
							   g.max > 0 ? g.max : 1 + next_random() % 5000)) > 0)
	{
		for (Size i = 0; i < n; i++, done++)
			g.wrong += done >= g.total || ws_entry_int(out[i]) != ws_entry_int(g.expected[done]);
		g.wrong += merge->stream.taken != done;
		g.most_at_once = Max(g.most_at_once, merge->ngathered);
	}
	g.wrong += g.total - Min(done, g.total);
	g.wrong += ws_stream_next(&merge->stream, out, 10);	/* the end stays the end */
	g.guarded = true;
	for (Size i = 0; i < GUARD; i++)
		g.guarded &= buffer[room + i].hi == UINT64CONST(0x1111111111111111);
	ws_merge_free(merge);
	ws_fileset_close(files);
}

/* Random sources of all sorts, nsources of them. */
static void
against_sort(int nsources)
{
	Size		block_sizes[] = {64, 4096, 64 * 1024};
	uint64		distincts[] = {1, 3, 500, 1000000};
	long		wrong = 0;
	bool		right = true;
	Size		most_at_once = 0;

	for (int b = 0; b < lengthof(block_sizes); b++)
		for (int d = 0; d < lengthof(distincts); d++)
			for (int skew = 0; skew < 3; skew++)
			{
				g = (Gathering) {.nsources = nsources, .distinct = distincts[d], .skew = skew,
					.on_disk = (d + skew) % 2 == 0, .block_size = block_sizes[b],
					.most = Max(40000 / SCALE / nsources, 20), .max = d == 1 ? 7 : 0};
				make_sources();
				right &= server_try(merge_all, NULL) && g.gathered && g.guarded && server_left() == NULL;
				wrong += g.wrong;
				if (b == lengthof(block_sizes) - 1 && skew == 0)
					most_at_once = Max(most_at_once, g.most_at_once);
				g.tournament = true;
				right &= server_try(merge_all, NULL) && !g.gathered;
				wrong += g.wrong;
				free_sources();
			}
	CHECK(right && wrong == 0, "%d sources: gathered as sorted, and as by the tournament (%ld wrong)",
		  nsources, wrong);
	/* of two blocks of 64 kB, or of many, a batch takes a share */
	CHECK(most_at_once <= Max(4096, nsources * 64) + nsources, "%d sources: %zu entries in a batch at most",
		  nsources, most_at_once);
}

/* When it cannot gather, it says so, and changes nothing. */
static void
refuse(void *arg)
{
	WsEntry    *buffer = entries_alloc(1000);
	WsKeySpec  *exact = fake_spec(&fake_keys[FAKE_EXACT]);
	WsKeySpec  *bytes = fake_spec(&fake_keys[FAKE_BYTES]);
	FakeTable	table = {.ncols = 2};
	WsMerge    *one = ws_merge_create(exact, NULL, NULL, 1, false);
	WsMerge    *two = ws_merge_create(exact, NULL, NULL, 2, false);
	WsMerge    *tied;
	WsMerge    *whole = ws_merge_create(bytes, &table.keys, NULL, 2, false);

	bytes->cut = true;
	tied = ws_merge_create(bytes, &table.keys, NULL, 2, false);
	CHECK(!ws_merge_gather(one, 10, buffer, 1000, true), "one source is not gathered");
	CHECK(!ws_merge_gather(tied, 10, buffer, 1000, true), "keys with ties are not gathered");
	CHECK(ws_merge_gather(whole, 10, buffer, 1000, true), "they are if no prefix has been cut");
	CHECK(!ws_merge_gather(two, 10, buffer, 1000, false), "nothing is gathered without a vectorised kernel");
	CHECK(!ws_merge_gather(two, 10, buffer, 39, true), "a buffer of less than two blocks a source is too small");
	CHECK(two->gathered == NULL && one->gathered == NULL && tied->gathered == NULL, "nothing is changed then");
	CHECK(ws_merge_gather(two, 10, buffer, 40, true), "one of two blocks is enough");
}

/* A fault at the n-th read of a run, for every n. */
static void
read_faults(FaultKind kind)
{
	bool		right = true;
	long		n = 1;

	for (;; n++)
	{
		bool		passed;

		faults_set(kind, n);
		passed = server_try(merge_all, NULL);
		right &= server_left() == NULL;
		if (!faults_met())
		{
			right &= passed && g.wrong == 0 && g.gathered;
			break;
		}
		right &= !passed && server.errors == 1 && server.sqlstate == faults_sqlstate(kind) &&
			strstr(server.message, "\"pgsql_tmp/mem0\"") != NULL;
	}
	faults_set(FAULT_NONE, 0);
	CHECK(right && n > 20, "%s: an error with the file's name at each of %ld reads", faults_name(kind), n - 1);
}

int
main(void)
{
	int			counts[] = {2, 3, 4, 5, 16, 17, 63, 64, 65, 100};

	for (int i = 0; i < lengthof(counts); i++)
		against_sort(counts[i]);
	if (!server_try(refuse, NULL))
		CHECK(false, "refusals: %s", server.message);

	g = (Gathering) {.nsources = 6, .distinct = 500, .on_disk = true, .block_size = 512, .most = 1500,
		.max = 100};
	make_sources();
	for (FaultKind kind = FAULT_FILE_EIO; kind <= FAULT_FILE_FLIP; kind++)
		read_faults(kind);
	free_sources();
	return failures != 0;
}
