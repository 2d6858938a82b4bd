/*-------------------------------------------------------------------------
 * test_ties.c - entries with equal prefixes in the order of their rows, against a plain sort.
 *
 * Every kind of key that needs ties settled (fakestore.c), few and many rows, few and many
 * different keys, guesses that are right and guesses that are wrong.  The prefixes must be what they
 * were, no row may be read before it is said to be ready, few rows be read for equal keys, and a cancel
 * at any look for interrupts leaves nothing.
 *-------------------------------------------------------------------------
 */
#include "sorting.c"

#ifndef SCALE
#define SCALE 1					/* less for valgrind: -DSCALE=10 */
#endif

static Job	job;
static bool prefixes;			/* are what they were */
static Size peak;

/* Sorts the entries of all rows, and settles their ties. */
static void
settle_all(void *arg)
{
	WsKeySpec  *spec = fake_spec(&fake_keys[job.kind]);
	WsEntry    *entries = MemoryContextAllocHuge(CurrentMemoryContext, (job.n + 1) * sizeof(WsEntry) + 8);
	Size		before;

	entries = (WsEntry *) TYPEALIGN(16, (uintptr_t) entries);
	job.table.readied = false;
	job.table.fetched = 0;
	for (Size i = 0; i < job.n; i++)
		entries[i] = fake_entry(&job.table, spec, i);
	ws_sort_entries(entries, job.n, job.vectorised);
	before = server.memory_peak = server.memory;
	ws_settle_ties(entries, job.n, spec, &job.table.keys, job.vectorised);
	peak = server.memory_peak - before;
	job.wrong = server.memory != before;
	prefixes = true;
	for (Size i = 0; i < job.n; i++)
	{
		Size		row = ws_entry_pointer(entries[i]);

		job.wrong += row != job.order[i];
		if (!spec->guess && row < job.n)
			prefixes &= ws_entry_same_prefix(entries[i], fake_entry(&job.table, spec, row));
	}
}

static void
settle_rows(int kind, Size n, uint64 distinct)
{
	job.kind = kind;
	job.n = n;
	job.distinct = distinct;
	job_rows(&job);
	if (!server_try(settle_all, NULL))
		server_die("%s: %s", fake_keys[kind].name, server.message);
}

/* All sizes of one kind of key. */
static void
sizes(int kind, bool vectorised)
{
	Size		counts[] = {0, 1, 2, 3, 4, 5, 17, 100, 1000 / SCALE, 6000 / SCALE};
	uint64		distincts[] = {1, 2, 30, 1000, UINT64CONST(1) << 31};
	long		wrong = 0;
	bool		kept = true;

	job.vectorised = vectorised;
	for (int c = 0; c < lengthof(counts); c++)
		for (int d = 0; d < lengthof(distincts); d++)
		{
			settle_rows(kind, counts[c], distincts[d]);
			wrong += job.wrong;
			kept &= prefixes;
			job_free(&job);
		}
	CHECK(wrong == 0 && kept && server_left() == NULL,
		  "%s%s%s: rows are in order, prefixes what they were (%ld wrong)", fake_keys[kind].name,
		  kind != FAKE_GUESS ? "" : fake_guess_wrong > 1 ? ", at times wrongly" :
		  fake_guess_wrong == 1 ? ", wrongly" : ", rightly",
		  vectorised ? ", vectorised" : "", wrong);
}

/* Of equal keys each row is read once, and where the prefix is enough, none is. */
static void
few_reads(void)
{
	settle_rows(FAKE_BYTES, 1000, 1);
	CHECK(job.wrong == 0 && job.table.fetched == 1000, "equal keys: %ld reads of 1000 rows",
		  job.table.fetched);
	job_free(&job);
	settle_rows(FAKE_BYTES, 2000, UINT64CONST(1) << 31);
	CHECK(job.wrong == 0 && job.table.fetched == 0, "no ties: %ld reads", job.table.fetched);
	job_free(&job);
	/* eight digits before the last column */
	settle_rows(FAKE_LONG, 6000, UINT64CONST(1) << 31);
	CHECK(job.wrong == 0 && job.table.fetched < 4 * 6000, "what nearly all share is passed over: %ld reads of 6000",
		  job.table.fetched);
	job_free(&job);
	/* what bytes in front of a comparator tell is not asked of it */
	settle_rows(FAKE_FAR, 60, UINT64CONST(1) << 31);
	CHECK(job.wrong == 0 && job.table.fetched == 60, "few in front of a comparator: %ld reads of 60",
		  job.table.fetched);
	job_free(&job);
	settle_rows(FAKE_FAR, 6000, UINT64CONST(1) << 31);
	CHECK(job.wrong == 0 && job.table.fetched < 6000 + 100, "what all share in front of one: %ld reads of 6000",
		  job.table.fetched);
	job_free(&job);
}

/* Few rows that do not share what the others do, before and behind them. */
static void
strangers(void)
{
	long		wrong = 0;

	for (int i = 0; i < 300 / SCALE; i++)
	{
		settle_rows(FAKE_STRANGERS, 2000 + i * 10, 2);
		wrong += job.wrong;
		job_free(&job);
	}
	CHECK(wrong == 0, "few strangers on both sides: %ld rows out of place", wrong);
}

/* Pairs take what is announced; digits take nothing that grows with the rows. */
static void
memory(void)
{
	WsKeySpec	spec = {.comparator = true};

	settle_rows(FAKE_BYTES, 20000, 30);
	CHECK(peak < 2000 + 20000, "digits: %zu bytes for 20000 entries", peak);
	job_free(&job);
	CHECK(ws_ties_bytes_per_entry(&spec) == sizeof(Pair), "pairs are announced");
	spec.comparator = false;
	CHECK(ws_ties_bytes_per_entry(&spec) == 0, "digits announce nothing");
}

/* A cancel at the n-th look for interrupts, for n in steps that grow. */
static void
cancels(int kind)
{
	long		n = 1;
	long		tried = 0;
	bool		right = true;

	job.vectorised = false;
	job.kind = kind;
	job.n = 1500 / SCALE;
	job.distinct = 30;
	job_rows(&job);
	for (;; n += 1 + n / 10, tried++)
	{
		bool		passed;

		faults_set(FAULT_CANCEL, n);
		passed = server_try(settle_all, NULL);
		right &= server_left() == NULL;
		if (!faults_met())
		{
			right &= passed && job.wrong == 0;
			break;
		}
		right &= !passed && server.errors == 1 && server.sqlstate == ERRCODE_QUERY_CANCELED;
	}
	faults_set(FAULT_NONE, 0);
	job_free(&job);
	CHECK(right && tried > 0, "%s: %ld cancels among %ld looks leave nothing", fake_keys[kind].name, tried, n);
}

int
main(void)
{
	for (int kind = FAKE_BYTES; kind < FAKE_KEYS; kind++)
		for (int vectorised = 0; vectorised < 2; vectorised++)
			sizes(kind, vectorised);
	fake_guess_wrong = 1;
	sizes(FAKE_GUESS, false);
	sizes(FAKE_GUESS, true);
	fake_guess_wrong = 50;
	sizes(FAKE_GUESS, false);
	sizes(FAKE_GUESS, true);
	fake_guess_wrong = 1;
	few_reads();
	strangers();
	memory();
	for (int kind = FAKE_BYTES; kind < FAKE_KEYS; kind++)
		cancels(kind);
	return failures != 0;
}
