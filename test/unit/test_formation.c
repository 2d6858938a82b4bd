/*-------------------------------------------------------------------------
 * test_formation.c - what formation leaves: sorted pieces, runs, and what is kept of the last piece.
 *
 * Pieces are of 1000 entries here, mostly.  One job after the other, with and without a helper, for exact keys
 * and keys with ties: all in memory, in one piece and in many; too many, with the memory limited when it is
 * full or before; an IndexMap that nobody expected to grow, so that it moves under its pieces; a last
 * piece that two threads sort; one that stays in memory.  Afterwards every row is in exactly one sorted part.
 * Then the same with faults, and without the threads and the memory that were asked for.
 *-------------------------------------------------------------------------
 */
#include <stddef.h>
static size_t piece_entries_wanted = 1000;
#define PIECE_ENTRIES piece_entries_wanted
#include "sorting.c"

#ifndef SCALE
#define SCALE 1					/* less for valgrind: -DSCALE=10 */
#endif

typedef struct Wanted
{
	Job			job;
	bool		whole;			/* as one piece, or not */
	/* found */
	int			parts;
	bool		overflowed;
	Size		kept;
	bool		in_bounds;		/* memory counted is what was said */
	bool		split;			/* two threads have sorted the last piece */
	Size		left_out;		/* rows that are nowhere, because not all are asked for */
} Wanted;

static Wanted w;
static uint32 *rank;			/* of each row, in the order that is right */
static bool *seen;

/* One sorted part: are its rows in order, and have they not been seen yet? */
static void
look(const WsEntry *entries, Size n, int64 *last)
{
	for (Size i = 0; i < n; i++)
	{
		Size		row = ws_entry_pointer(entries[i]);

		if (row >= w.job.n || seen[row] || (int64) rank[row] <= *last)
			w.job.wrong++;
		else
		{
			seen[row] = true;
			*last = rank[row];
		}
	}
}

static void
look_at_run(WsReader *reader, const WsRun *run)
{
	WsRunReader r;
	char	   *buffer = palloc(run->block_size + 16);
	const WsEntry *entries;
	int64		last = -1;
	Size		n;
	uint64		total = 0;

	ws_run_read_begin(&r, reader, run, (char *) TYPEALIGN(16, (uintptr_t) buffer));
	for (int64 block = 0; (entries = ws_run_block(&r, block, &n)) != NULL; block++)
	{
		look(entries, n, &last);
		total += n;
		w.job.wrong += ws_run_is_last_block(&r) != (total == run->nentries);
	}
	ws_run_read_raise(&r);
	w.job.wrong += total != run->nentries;
	pfree(buffer);
}

static void
form(void *arg)
{
	Job		   *j = &w.job;
	WsFormation *f;
	WsReader   *reader;
	Size		before;

	job_form(j);
	f = j->formation;
	before = f->map->count;
	ws_formation_end(f, w.whole, j->reading);
	memset(seen, 0, j->n);
	w.overflowed = f->overflowed;
	w.kept = f->nkept;
	w.split = f->kept[0] > 0;
	w.parts = f->nruns;
	reader = ws_reader_plain(j->files, false);
	for (int i = 0; i < f->nruns; i++)
		look_at_run(reader, &f->runs[i]);
	if (f->overflowed)
	{
		const WsEntry *e = f->map->entries;

		for (int i = 0; i < 2; e += f->kept[i++])
		{
			int64		last = -1;

			look(e, f->kept[i], &last);
			w.parts += f->kept[i] > 0;
		}
		j->wrong += f->nkept != f->kept[0] + f->kept[1];
	}
	else if (w.whole)
	{
		int64		last = -1;

		look(f->map->entries, f->map->count, &last);
		w.parts++;
	}
	else
		for (int i = 0; i <= f->current; i++)
		{
			int64		last = -1;

			look(f->pieces[i]->entries, f->pieces[i]->n, &last);
			w.parts++;
		}
	for (Size i = 0; i < j->n; i++)
	{
		j->wrong += !seen[i] && (j->asked == 0 || rank[i] < j->asked);
		w.left_out += !seen[i];
	}
	j->wrong += f->helper != NULL || server.threads != 0 || f->stats.entries + j->bound.passed != j->n;
	j->wrong += !f->overflowed && before != f->map->count;
	/* pages, a block, runs' descriptions, the ties of a piece */
	w.in_bounds = j->account.peak <= Max(j->bytes, j->disk_bytes + j->block_size) + 8192 +
		f->max_runs * sizeof(WsRun) + Min(j->n, WS_PIECE_ENTRIES) * ws_ties_bytes_per_entry(j->spec);
	job_close(j);
}

static void
prepare(Wanted wanted)
{
	w = wanted;
	job_rows(&w.job);
	rank = malloc((w.job.n + 1) * sizeof(uint32));
	seen = malloc(w.job.n + 1);
	for (Size i = 0; i < w.job.n; i++)
		rank[w.job.order[i]] = (uint32) i;
}

static void
finish(void)
{
	job_free(&w.job);
	free(rank);
	free(seen);
}

/* Runs a job without faults.  `right` is what else must be so. */
#define FORM(right, ...) \
	do { \
		bool		formed_; \
		prepare((Wanted) __VA_ARGS__); \
		formed_ = server_try(form, NULL); \
		CHECK(formed_ && w.job.wrong == 0 && w.in_bounds && server_left() == NULL && (right), \
			  "%s, %s, %s: %d parts, %zu kept, %d moves%s%s (%ld wrong)", w.job.what, \
			  fake_keys[w.job.kind].name, w.job.threads ? "helper" : "alone", w.parts, w.kept, w.job.moves, \
			  formed_ ? "" : ": ", formed_ ? "" : server.message, w.job.wrong); \
		finish(); \
	} while (0)

/* All kinds of jobs with one kind of key. */
static void
jobs(int kind, int threads)
{
	bool		ties = !(kind == FAKE_EXACT || kind == FAKE_EXACT_NULLS);
	bool		pairs = kind == FAKE_COMPARATOR || kind == FAKE_COMPARATOR_BEHIND || kind == FAKE_GUESS;
	Job			job = {.kind = kind, .distinct = 50, .expected = 100, .vectorised = threads > 0,
	.threads = threads, .bytes = 1024 * 1024, .disk_bytes = 64 * 1024, .block_size = 4096};
	Job			small = job;

	job.what = "nothing";
	FORM(w.parts == 1 && !w.overflowed, {.job = job});
	job.n = 1;
	job.what = "one row";
	FORM(w.parts == 1 && !w.overflowed, {.job = job, .whole = true});
	job.n = 1000;
	job.what = "one full piece";
	FORM(w.parts == 1 && !w.overflowed, {.job = job});
	job.n = 1001;
	job.what = "and one row";
	FORM(w.parts == 2 && !w.overflowed, {.job = job});
	job.n = 9500;
	job.what = "pieces";
	FORM(w.parts == 10 && !w.overflowed && w.job.moves >= 1, {.job = job});
	job.what = "pieces as one";
	FORM(w.parts == 1 && !w.overflowed, {.job = job, .whole = true});
	job.n = 40000 / SCALE;
	job.what = "an IndexMap that has to move again and again";
	FORM(!w.overflowed && w.job.moves >= (SCALE == 1 ? 3 : 1), {.job = job});

	small.bytes = 64 * 1024;
	small.n = 4096;
	small.what = "just full";
	FORM(!w.overflowed && w.parts == 5, {.job = small});
	small.n = 4097;
	small.what = "and one entry";
	FORM(w.overflowed, {.job = small});
	small.n = 30000 / SCALE;
	small.disk_bytes = 60 * 1024;
	small.what = "runs";
	FORM(w.overflowed && w.parts > 5, {.job = small});
	small.limit_at = 1500;
	small.what = "runs, limited in the second piece";
	FORM(w.overflowed && w.parts > 5, {.job = small});
	small.limit_at = 10;
	small.what = "runs, limited in the first piece";
	FORM(w.overflowed && w.parts > 5, {.job = small});
	small.n = 2000;
	small.disk_bytes = 8192;
	small.what = "runs, limited to two pages";
	FORM(w.overflowed && w.job.sorts > 0, {.job = small});
	small.disk_bytes = 0;
	small.limit_at = 700;
	small.what = "runs, limited to less than there is";
	FORM(w.overflowed, {.job = small});
	small.n = 700;
	small.disk_bytes = 64 * 1024;
	small.limit_at = 699;
	small.what = "limited, but never full";
	FORM(threads || !w.overflowed, {.job = small});

	/* fan-in 64: 256 kB for three blocks of each source, and what is kept */
	job.what = "the last piece stays";
	job.limit_at = 10;
	job.n = (pairs ? 17500 : 33500) / (ties && SCALE > 1 ? 2 : 1);
	job.bytes = job.disk_bytes = 512 * 1024;
	job.block_size = 512;
	FORM(ties && SCALE > 1 ? true : w.overflowed && w.kept > 0, {.job = job});
	job.reading = 512 * 1024;
	job.what = "no room for it beside the reader";
	FORM(w.kept == 0, {.job = job});
}

/* Not all rows are asked for: the first ones are there, and not many others. */
static void
bounds(int kind, int threads)
{
	bool		guess = kind == FAKE_GUESS || kind == FAKE_COMPARATOR;	/* prefixes tell nothing for certain */
	Job			job = {.kind = kind, .distinct = 5000, .expected = 100, .vectorised = threads > 0,
	.threads = threads, .bytes = 1024 * 1024, .disk_bytes = 64 * 1024, .block_size = 4096, .n = 30000 / SCALE};
	Job			small = job;

	job.asked = 1500;
	job.what = "the first of all in memory";
	FORM(!w.overflowed && (guess || SCALE > 1 || w.left_out > 15000), {.job = job});
	FORM(w.parts == 1 && (guess || SCALE > 1 || w.job.bound.passed > 10000), {.job = job, .whole = true});
	small.bytes = 64 * 1024;
	small.disk_bytes = 60 * 1024;
	small.asked = 2500;
	small.what = "the first of runs";
	FORM(w.overflowed && (guess || SCALE > 1 || w.left_out > 10000), {.job = small});
	FORM(w.overflowed && (guess || SCALE > 1 || w.left_out > 10000), {.job = small, .whole = true});
	small.distinct = 3;
	small.what = "the first of few keys";
	FORM(w.overflowed, {.job = small});
	small.asked = 1;
	small.what = "the first one";
	FORM(true, {.job = small});
	small.asked = small.n - 1;
	small.what = "all but one";
	FORM(w.overflowed && w.left_out <= 1, {.job = small});
	small.asked = small.n * 2;
	small.what = "more than there are";
	FORM(w.overflowed && w.left_out == 0, {.job = small});
}

/* A last piece of more than 32768 entries, which two threads sort: kept, written, or written as the sort needs. */
static void
shared(const char *what, bool whole, Size reading)
{
	Job			job = {.what = what, .kind = FAKE_EXACT, .n = 2 * 65536 + 40000, .distinct = UINT64CONST(1) << 31,
		.expected = 1000, .vectorised = true, .threads = 1, .bytes = 2 * 1024 * 1024,
	.disk_bytes = 2 * 1024 * 1024, .limit_at = 100, .block_size = 4096, .reading = reading};

	/* the limit lays out two pieces of 65536 */
	piece_entries_wanted = 2 * 1024 * 1024;
	FORM(w.overflowed && (whole || reading > 0 ? w.parts == 4 && w.kept == 0 :
						  w.parts == 4 && w.kept == 40000 && w.split), {.job = job, .whole = whole});
	piece_entries_wanted = 1000;
}

/* A fault at every call, for every n until there was none. */
static void
with_faults(FaultKind kind, int key, int threads)
{
	Job			job = {.what = "faults", .kind = key, .distinct = 50, .expected = 10, .vectorised = threads > 0,
	.threads = threads, .bytes = 64 * 1024, .disk_bytes = 32 * 1024, .block_size = 1024, 	.n = 4500};
	bool		right = true;
	long		n = 1;
	long		tried = 0;
	const char *name = "\"pgsql_tmp/mem0\"";

	prepare((Wanted) {.job = job});
	for (;; n += kind == FAULT_CANCEL ? 1 + n / 8 : 1, tried++)
	{
		bool		passed;

		faults_set(kind, n);
		passed = server_try(form, NULL);
		right &= server_left() == NULL;
		if (!faults_met())
		{
			right &= passed && w.job.wrong == 0;
			break;
		}
		right &= !passed && server.errors == 1 && server.sqlstate == faults_sqlstate(kind) &&
			(kind >= FAULT_CANCEL || strstr(server.message, name) != NULL);
	}
	faults_set(FAULT_NONE, 0);
	finish();
	CHECK(right && tried > 0, "%s, %s, %s: an error and nothing left, %ld times", faults_name(kind),
		  fake_keys[key].name, threads ? "helper" : "alone", tried);
}

/* The system gives no thread, or the process may have none: the backend does all. */
static void
no_threads(void)
{
	Job			job = {.what = "no thread to be had", .kind = FAKE_EXACT, .distinct = 50, .expected = 10,
		.vectorised = true, .threads = 1, .bytes = 64 * 1024, .disk_bytes = 32 * 1024, .block_size = 1024,
	.n = 8000};

	server.start_fails_at = 1;
	prepare((Wanted) {.job = job});
	CHECK(server_try(form, NULL) && w.job.wrong == 0 && server_left() == NULL, "%s", w.job.what);
	server.start_fails_at = 0;
	memfiles_no_helpers = true;
	CHECK(server_try(form, NULL) && w.job.wrong == 0 && server_left() == NULL && server.started == 1,
		  "a thread, but no descriptor for it");
	memfiles_no_helpers = false;
	w.job.wanted.most = 0;
	CHECK(server_try(form, NULL) && w.job.wrong == 0 && server_left() == NULL && server.started == 0,
		  "no thread is allowed");
	w.job.wanted.most = 4;
	memfiles_helper_takes = 300;
	for (int refused = 1; refused <= 4; refused++)
	{
		memfiles_refusals = refused;
		CHECK(server_try(form, NULL) && w.job.wrong == 0 && server_left() == NULL && memfiles_refusals == 0,
			  "a descriptor for a thread at last, after %d pieces", refused);
	}
	memfiles_helper_takes = 0;
	finish();
}

/*
 * The system gives no more address space, from the n-th time on that it is asked: what is there is used,
 * and runs are written.  Also where that ends with a piece.
 */
static void
no_address_space(int kind, int threads)
{
	Job			job = {.what = "no more address space", .kind = kind, .distinct = 50, .expected = 10,
		.vectorised = threads > 0, .threads = threads, .bytes = 1024 * 1024, .disk_bytes = 1024 * 1024,
	.block_size = 1024, .n = 20000 / SCALE};
	bool		right = true;
	long		n = 2;

	prepare((Wanted) {.job = job});
	for (;; n++)
	{
		server.reserves_fail_from = n;
		right &= server_try(form, NULL) && w.job.wrong == 0 && server_left() == NULL;
		if (server.reserves < n)
			break;
		right &= w.overflowed;
	}
	server.reserves_fail_from = 0;
	finish();
	CHECK(right && n > 2, "%s, pieces of %zu, %s, %s: %ld times", job.what, piece_entries_wanted,
		  fake_keys[kind].name, threads ? "helper" : "alone", n - 2);
}

int
main(void)
{
	int			kinds[] = {FAKE_EXACT, FAKE_EXACT_NULLS, FAKE_BYTES_NULLS, FAKE_COMPARATOR, FAKE_GUESS};

	for (int threads = 0; threads < 2; threads++)
		for (int i = 0; i < lengthof(kinds); i++)
		{
			jobs(kinds[i], threads);
			bounds(kinds[i], threads);
			no_address_space(kinds[i], threads);
			piece_entries_wanted = 1024;	/* 64 kB are four pieces */
			no_address_space(kinds[i], threads);
			piece_entries_wanted = 1000;
		}
	shared("a shared last piece, kept", false, 0);
	shared("a shared last piece, as one run", true, 0);
	shared("a shared last piece, written", false, 2 * 1024 * 1024);
	no_threads();
	for (int threads = 0; threads < 2; threads++)
		for (int key = FAKE_EXACT; key <= FAKE_BYTES; key += FAKE_BYTES - FAKE_EXACT)
			for (FaultKind kind = FAULT_WRITE_EIO; kind < FAULT_KINDS; kind++)
			{
				bool		helper_writes = threads > 0 && key == FAKE_EXACT;

				if (kind >= FAULT_READER_EIO && kind <= FAULT_READER_FLIP)
					continue;
				if (helper_writes || (kind != FAULT_HELPER_EIO && kind != FAULT_HELPER_ENOSPC))
					with_faults(kind, key, threads);
			}
	return failures != 0;
}
