/*-------------------------------------------------------------------------
 * test_passes.c - from entries to the stream at the end, through runs, merges and their levels.
 *
 * Every kind of key, with and without a helper and gathering, in memories from two pages on: in
 * memory altogether, with one run, with so many that levels of merges are needed, with a part that stays in
 * memory.  Read forward, by a merge, and at random, from the IndexMap or a single run.  The answer must be
 * that of a plain sort; memory and disk must stay within what is said; and a fault at any write or
 * read, in the backend or a helper, a cancel and the end of memory must each give one error and leave nothing.
 *-------------------------------------------------------------------------
 */
#include "sorting.c"

#ifndef SCALE
#define SCALE 1					/* less for valgrind: -DSCALE=10 */
#endif

static Job	job;
static bool helper_safe;
static Size released;

/* Looks at n entries that should have the places from `place` on. */
static void
look(const WsEntry *entries, Size n, uint64 place)
{
	for (Size i = 0; i < n; i++)
		job.wrong += place + i >= job.n || ws_entry_pointer(entries[i]) != job.order[place + i];
}

/* Reads at random, then from the start to the end. */
static void
read_anywhere(WsStream *stream)
{
	WsEntry		out[300];

	for (int i = 0; i < 40 && job.n > 0; i++)
	{
		uint64		place = next_random() % job.n;
		Size		max = 1 + next_random() % lengthof(out);
		Size		n;

		stream->ops->seek(stream, place);
		n = ws_stream_next(stream, out, max);
		job.wrong += n != Min(max, job.n - place);
		look(out, n, place);
	}
	stream->ops->seek(stream, job.n);
	job.wrong += ws_stream_next(stream, out, 1) != 0;
	stream->ops->seek(stream, 0);
}

static void
pass(void *arg)
{
	WsStream   *stream;
	WsEntry		out[300];
	uint64		place = 0;
	Size		n;

	job_form(&job);
	ws_passes_end(job.passes, job.random_access, job.reading);
	stream = ws_passes_stream(job.passes, job.random_access);
	job.wrong += stream->count != job.n || server.threads != 0 ||
		(stream->ops->seek == NULL && job.random_access);
	helper_safe = stream->helper_safe;
	if (job.random_access)
		read_anywhere(stream);
	while ((n = ws_stream_next(stream, out, 1 + place % lengthof(out))) > 0)
	{
		look(out, n, place);
		place += n;
		job.wrong += stream->taken != place;
		if (!job.random_access && stream->ops->release != NULL)
			released = stream->ops->release(stream);
	}
	job.wrong += job.n - Min(place, job.n);
	job_close(&job);
}

/*
 * Runs a job, which must need `least` to `most` merge passes, and stay within memory and disk.
 */
static void
expect(Job wanted, int least, int most)
{
	bool		passed;
	Size		pairs = (wanted.kind >= FAKE_COMPARATOR ? sizeof(WsEntry) : 0);
	Size		memory = Max(wanted.bytes, wanted.disk_bytes);
	int64		entries = wanted.n * sizeof(WsEntry) * 11 / 10 + 32 * 1024;

	job = wanted;
	job_rows(&job);
	passed = server_try(pass, NULL);
	/* one run of two blocks is the least a merge needs */
	memory = Max(memory + wanted.block_size, 4 * wanted.block_size) + 16384 +
		Min(wanted.n, WS_PIECE_ENTRIES) * (wanted.disk_bytes == 0 || wanted.limit_at == 0 ? pairs : 0);
	CHECK(passed && job.wrong == 0 && server_left() == NULL && job.stats.passes >= least &&
		  job.stats.passes <= most && job.account.peak <= memory && job.disk <= 3 * entries,
		  "%s, %s, %s%s: %zu rows, %d runs, %d passes, %zu kB, %lld kB of disk%s%s (%ld wrong)", job.what,
		  fake_keys[job.kind].name, job.threads ? "helper" : "alone", job.random_access ? ", random" : "",
		  job.n, job.stats.formed, job.stats.passes, job.account.peak / 1024, (long long) job.disk / 1024,
		  passed ? "" : ": ", passed ? "" : server.message, job.wrong);
	job_free(&job);
}

static void
jobs(int kind, int threads, bool random_access)
{
	Job			base = {.kind = kind, .distinct = 50, .expected = 1000, .vectorised = threads > 0,
	.threads = threads, .random_access = random_access, .bytes = 256 * 1024, .block_size = 4096};
	Job			j = base;
	bool		exact = kind == FAKE_EXACT || kind == FAKE_EXACT_NULLS;
	int			final = random_access ? 0 : 1;

	j.what = "nothing";
	expect(j, 0, 0);
	j.what = "one row";
	j.n = 1;
	expect(j, 0, 0);
	j.what = "in memory";
	j.n = 5000;
	released = 0;
	expect(j, 0, 0);
	CHECK(random_access || released >= 5000 * sizeof(WsEntry) / 4096 * 4096, "%zu bytes are released", released);

	/* as the sorter does it: memory for rows, or pairs, ends before the IndexMap is full */
	j = base;
	j.what = "two runs";
	j.disk_bytes = 64 * 1024;
	j.limit_at = 1000;
	j.n = 6000;
	expect(j, 1, 2);
	CHECK(!exact || helper_safe, "a helper may read the stream");
	CHECK(exact || random_access || !helper_safe, "but not if there are ties");

	j.what = "few runs, gathered";
	j.disk_bytes = 128 * 1024;
	j.n = 18000;
	expect(j, 1, 2);
	j.what = "many runs";
	j.n = 40000 / SCALE;
	j.disk_bytes = 32 * 1024;
	expect(j, SCALE == 1 ? 1 + final : 1, 4);
	j.what = "levels of merges";
	j.disk_bytes = 16 * 1024;
	j.block_size = 4096;
	j.n = 25000 / SCALE;
	expect(j, SCALE == 1 ? 2 + final : 1, 20);
	j.what = "two pages";
	j.disk_bytes = 8 * 1024;
	j.limit_at = 100;
	j.n = 15000 / SCALE;
	expect(j, SCALE == 1 ? 3 + final : 1, 30);
	j.what = "less than a page";
	j.disk_bytes = 1000;
	j.limit_at = 50;
	j.block_size = 512;
	j.n = 700;
	expect(j, 1, 30);

	j = base;
	j.what = "a part stays in memory";
	j.disk_bytes = 256 * 1024;
	j.block_size = 512;
	j.limit_at = 300;
	j.n = 2 * 16384 + 1000;
	if (SCALE == 1)
	{
		expect(j, 1, 1);
		CHECK(random_access ? job.kept == 0 : job.kept > 0, "%zu entries have stayed", job.kept);
	}
	j.what = "great keys, an unexpected number";
	j.expected = 0;
	j.bytes = 8 * 1024 * 1024;
	j.limit_at = 0;
	j.disk_bytes = 0;
	j.distinct = UINT64CONST(1) << 31;
	j.n = 30000 / SCALE;
	expect(j, 0, 0);
}

/*
 * Runs that follow one another, more than a merge has blocks for, and a part that stays in memory: only there
 * are guesses, and with these no run is in a chain any more.
 */
static void
last_guesses(int threads)
{
	job = (Job) {.what = "guesses, at last", .kind = FAKE_GUESS, .distinct = 50, .expected = 1000,
		.vectorised = threads > 0, .threads = threads, .bytes = 256 * 1024, .disk_bytes = 64 * 1024,
	.limit_at = 1000, .block_size = 2048, .n = 4096 * 40 + 100};
	fake_fill(&job.table, &fake_keys[job.kind], job.n, job.distinct);
	for (Size i = 0; i < job.n; i++)
	{
		Size		at = i * job.table.ncols;

		job.table.values[at + 1] = Int64GetDatum((int64) (i ^ 1));
		job.table.isnull[at] = i < job.n - 20;
		job.table.isnull[at + 1] = false;
		job.table.values[at] = job.table.isnull[at] ? 0 : fake_text(i * 7 % 50);
	}
	job.order = fake_sorted(&job.table, &fake_keys[job.kind]);
	job.wanted = (WsThreads) {threads, threads, threads, 4};
	CHECK(server_try(pass, NULL) && job.wrong == 0 && job.stats.formed > 40 && server_left() == NULL,
		  "%s, %s: %d runs, %d passes, %zu have stayed (%ld wrong)", job.what, threads ? "helper" : "alone",
		  job.stats.formed, job.stats.passes, job.kept, job.wrong);
	job_free(&job);
}

/*
 * Rows in any order, and then some that ascend three times over, of whose runs many wait as chains: merges
 * at the end, of runs of several levels, must be of runs that came one after the other, or rows with equal keys
 * do not keep their order.
 */
static void
sweeps(Size any, Size ascending)
{
	job = (Job) {.what = "sweeps", .kind = FAKE_EXACT, .distinct = 1000, .expected = 1000,
		.bytes = 32 * 1024, .disk_bytes = 8 * 1024, .block_size = 1024, .n = any + ascending};
	job_rows(&job);
	for (Size i = any; i < job.n; i++)
		job.table.values[i * job.table.ncols] = Int64GetDatum((int64) ((i - any) * 3 * 1000 / ascending % 1000));
	free(job.order);
	job.order = fake_sorted(&job.table, &fake_keys[job.kind]);
	CHECK(server_try(pass, NULL) && job.wrong == 0 && server_left() == NULL,
		  "%s: %zu rows in any order, %zu that ascend, %d runs, %d passes (%ld wrong)", job.what, any, ascending,
		  job.stats.formed, job.stats.passes, job.wrong);
	job_free(&job);
}

/* Is the file of a level used again? */
static void
disk_is_reused(void)
{
	Job			j = {.what = "the disk is used again", .kind = FAKE_EXACT, .distinct = 1000, .expected = 1000,
		.bytes = 64 * 1024, .disk_bytes = 32 * 1024, .block_size = 1024, .n = 200000 / SCALE};

	job = j;
	job_rows(&job);
	CHECK(server_try(pass, NULL) && job.wrong == 0 && job.stats.passes >= 2 &&
		  job.disk < (int64) (job.n * sizeof(WsEntry) * 22 / 10 + 64 * 1024),
		  "%s: %lld kB for %zu kB of entries in %d passes", j.what, (long long) job.disk / 1024,
		  job.n * sizeof(WsEntry) / 1024, job.stats.passes);
	job_free(&job);
}

/* A fault at every call, for every n until there was none. */
static void
with_faults(FaultKind kind, Job wanted)
{
	bool		right = true;
	long		n = 1;
	long		tried = 0;
	const char *bad = "";

	job = wanted;
	job_rows(&job);
	for (;; n += kind == FAULT_CANCEL ? 1 + n / 8 : 1, tried++)
	{
		bool		passed;

		random_state = 88172645463325252ULL;	/* the same reads each time */
		faults_set(kind, n);
		passed = server_try(pass, NULL);
		if (server_left() != NULL && right)
		{
			right = false;
			bad = server_left();
		}
		if (!faults_met())
		{
			right &= passed && job.wrong == 0;
			break;
		}
		if (passed || server.errors != 1 || server.sqlstate != faults_sqlstate(kind) ||
			(kind < FAULT_CANCEL && strstr(server.message, "\"pgsql_tmp/mem") == NULL))
		{
			right = false;
			bad = passed ? "no error" : server.message;
		}
	}
	faults_set(FAULT_NONE, 0);
	job_free(&job);
	CHECK(right && tried > 0, "%s, %s, %s%s: an error and nothing left, %ld times%s%s", faults_name(kind),
		  fake_keys[job.kind].name, job.threads ? "helper" : "alone", job.random_access ? ", random" : "",
		  tried, right ? "" : ": ", bad);
}

static void
faults_of(int key, int threads, bool random_access)
{
	Job			j = {.what = "faults", .kind = key, .distinct = 50, .expected = 10, .vectorised = threads > 0,
		.threads = threads, .random_access = random_access, .bytes = 64 * 1024, .disk_bytes = 16 * 1024,
	.limit_at = 500, .block_size = 2048, .n = 3500 / SCALE + 700};

	for (FaultKind kind = FAULT_WRITE_EIO; kind < FAULT_KINDS; kind++)
	{
		if (kind >= FAULT_READER_EIO && kind <= FAULT_READER_FLIP)
			continue;
		if ((threads > 0 && key == FAKE_EXACT) || (kind != FAULT_HELPER_EIO && kind != FAULT_HELPER_ENOSPC))
			with_faults(kind, j);
	}
}

int
main(void)
{
	int			kinds[] = {FAKE_EXACT, FAKE_EXACT_NULLS, FAKE_BYTES, FAKE_COMPARATOR_BEHIND, FAKE_GUESS};

	for (int random_access = 0; random_access < 2; random_access++)
		for (int threads = 0; threads < 2; threads++)
			for (int i = 0; i < lengthof(kinds); i++)
				if (!random_access || kinds[i] != FAKE_EXACT_NULLS)
					jobs(kinds[i], threads, random_access);
	for (Size ascending = 40; ascending < 54; ascending++)
		sweeps(74 * 1536, ascending * 1000);
	disk_is_reused();
	last_guesses(0);
	last_guesses(1);
	faults_of(FAKE_EXACT, 0, false);
	faults_of(FAKE_EXACT, 1, false);
	faults_of(FAKE_EXACT, 0, true);
	faults_of(FAKE_BYTES, 1, false);
	faults_of(FAKE_COMPARATOR_BEHIND, 0, false);
	return failures != 0;
}
