/*-------------------------------------------------------------------------
 * test_budget.c - the division of work_mem, printed as a table, and what must hold in it.
 *
 * For work_mem from 64 kB to 2 GB, each kind of store, and with and without a helper that
 * writes: no part and no sum of parts is larger than the whole, blocks of runs are whole pages, more
 * memory never means less of anything.  Some rows of the table are written down here, figure by
 * figure, and so are the places where the limits begin to hold.
 *-------------------------------------------------------------------------
 */
#include "unit.h"

#include "store/request.h"

bool
ws_thread_wanted(int threads, bool worthwhile)
{
	return threads > 0 || (threads < 0 && worthwhile);
}

#include "../../src/sort/budget.c"

#define MB	((Size) 1024 * 1024)

static const char *const kinds[] = {"spool", "heap", "keys"};

static WsBudget
divide(Size w, WsStoreKind store, int threads)
{
	WsRequest	request = {.store = store, .memory = w, .allowance = PG_INT64_MAX,
	.threads = {threads, threads, threads, 4}};

	return ws_budget(&request);
}

/* What is wrong with a division, or NULL. */
static const char *
wrong(const WsBudget *b, Size w, WsStoreKind store, int threads)
{
	Size		buffers[] = {0, b->alone, b->helped};
	bool		helper = threads > 0 || (threads < 0 && w >= MB);

	if (b->total != w)
		return "the total is not work_mem";
	if (b->shared > w || b->alone > w || b->helped > w || b->reading > w)
		return "a part is larger than the whole";
	if (store == WS_KIND_SPOOL && helper && b->shared + b->helped > w)
		return "no room for the helper's buffers beside rows and entries";
	if (store == WS_KIND_SPOOL && !helper && b->shared != w)
		return "something is kept from rows and entries";
	if (store == WS_KIND_HEAP && b->shared + w / 8 != w)
		return "no eighth for the window";
	if (store == WS_KIND_KEYS && b->shared + b->reading != w)
		return "no room for a batch of entries";
	if (b->alone < 8 * KB || b->alone > 64 * KB || b->helped < 16 * KB || b->helped > MB)
		return "spool buffers out of bounds";
	for (int i = 0; i < lengthof(buffers); i++)
	{
		WsEntryBudget e = ws_budget_entries(b, buffers[i]);

		if (e.block % 4096 != 0 || e.block < 4 * KB || e.block > 256 * KB)
			return "a run's block is not of whole pages, or out of bounds";
		if (buffers[i] + e.entries + e.block != w)
			return "buffers, entries and a block are not all there is";
		if (e.entries < 4 * e.block)
			return "too little for a merge of four runs";
	}
	return NULL;
}

/* Is there less of anything in `b` than in `a`, whose work_mem was less? */
static bool
shrinks(const WsBudget *a, const WsBudget *b)
{
	WsEntryBudget x = ws_budget_entries(a, a->helped);
	WsEntryBudget y = ws_budget_entries(b, b->helped);

	/* a larger block, of whole pages, may take a few from the entries */
	return b->shared < a->shared || b->alone < a->alone || b->helped < a->helped ||
		b->reading < a->reading || b->queue < a->queue || y.block < x.block ||
		y.entries + y.block < x.entries + x.block;
}

static void
print(const WsBudget *b, WsStoreKind store, bool helper)
{
	Size		buffers = store != WS_KIND_SPOOL ? 0 : helper ? b->helped : b->alone;
	WsEntryBudget e = ws_budget_entries(b, buffers);

	printf("# %10zu  %-5s  %-6s %10zu %8zu %8zu %10zu %8zu %10zu %6zu  %s\n", b->total / KB, kinds[store],
		   helper ? "helper" : "alone", b->shared, b->alone, b->helped, b->reading, e.block, e.entries,
		   e.entries / e.block, b->queue ? "yes" : "no");
}

static void
table(void)
{
	const char *bad = NULL;
	Size		bad_at = 0;
	bool		shrunk = false;

	printf("# %10s  %-5s  %-6s %10s %8s %8s %10s %8s %10s %6s  %s\n", "work_mem/kB", "store", "writes",
		   "shared", "alone", "helped", "reading", "block", "entries", "fan-in", "queue");
	for (WsStoreKind store = WS_KIND_SPOOL; store <= WS_KIND_KEYS; store++)
		for (int threads = -1; threads <= 1; threads++)
		{
			WsBudget	before = divide(64 * KB, store, threads);

			for (Size w = 64 * KB; w <= 2048 * MB; w *= 2)
			{
				WsBudget	b = divide(w, store, threads);

				if (threads >= 0)
					print(&b, store, threads > 0);
			}
			/* and between the powers of two, in odd figures too */
			for (Size w = 64 * KB; w <= 2048 * MB; w += 1 + w / 97)
			{
				WsBudget	b = divide(w, store, threads);

				if (bad == NULL && (bad = wrong(&b, w, store, threads)) != NULL)
					bad_at = w;
				/* where a helper begins to be worth it, its buffers are taken */
				if (threads >= 0 || before.total >= MB || w < MB)
					shrunk |= shrinks(&before, &b);
				before = b;
			}
		}
	CHECK(bad == NULL, "parts never exceed the whole, blocks are whole pages (%s at %zu bytes)",
		  bad == NULL ? "nothing wrong" : bad, bad_at);
	CHECK(!shrunk, "more memory never means less of a part");
}

static void
expect(Size w, WsStoreKind store, int threads, Size shared, Size alone, Size helped, Size reading,
	   Size block, Size entries)
{
	WsBudget	b = divide(w, store, threads);
	Size		buffers = store != WS_KIND_SPOOL ? 0 : threads > 0 ? b.helped : b.alone;
	WsEntryBudget e = ws_budget_entries(&b, buffers);

	CHECK(b.shared == shared && b.alone == alone && b.helped == helped && b.reading == reading &&
		  e.block == block && e.entries == entries, "%zu kB, %s%s: as written down", w / KB, kinds[store],
		  threads > 0 ? ", helper" : "");
}

/* What is wrong with a division for rows that travel, or NULL. */
static const char *
wrong_rows(Size w, Size row, bool helped)
{
	WsBudget	b = divide(w, WS_KIND_SPOOL, helped);
	WsRowBudget r = ws_budget_rows(&b, row, 16, helped);

	if (r.block % 4096 != 0 || r.block < 4 * KB || r.block > 256 * KB)
		return "a run's block is not of whole pages, or out of bounds";
	if (r.buffer % r.block != 0 || r.buffer < r.block || r.buffer > MB)
		return "the write buffer is not of whole blocks, or out of bounds";
	if (r.arenas != (helped ? 2 : 1))
		return "two arenas with a helper, one without";
	if (r.arenas * r.arena + r.entries > r.merging || r.merging + r.buffer > w)
		return "parts are larger than the whole";
	if (r.arenas * r.arena + r.entries < r.merging - 2)
		return "some memory is left out";
	if (r.merging < 4 * r.block)
		return "too little for a merge of three runs";
	/* rows and entries are to be full at the same time */
	if (r.arena / Max(row, 1) * 16 > r.entries / r.arenas + 32 || r.entries / r.arenas / 16 > r.arena / Max(row, 1) + 2)
		return "rows and entries are out of proportion";
	return NULL;
}

static void
travelling(void)
{
	WsBudget	b = divide(64 * MB, WS_KIND_SPOOL, 1);
	WsRowBudget r = ws_budget_rows(&b, 100, 16, true);
	WsRowBudget before;
	const char *bad = NULL;

	CHECK(r.block == 256 * KB && r.buffer == MB && r.arenas == 2 && r.merging == 63 * MB &&
		  r.arena == 28474262 && r.entries == 9111764, "64 MB, rows of 100 bytes: as written down (%zu, %zu)",
		  r.arena, r.entries);
	b = divide(4 * MB, WS_KIND_SPOOL, 0);
	r = ws_budget_rows(&b, 4000, 32, false);
	CHECK(r.block == 64 * KB && r.buffer == 256 * KB && r.arenas == 1, "4 MB, rows of 4000 bytes: blocks of 64 kB");
	r = ws_budget_rows(&b, 20000, 32, false);
	CHECK(r.block == 156 * KB, "rows of 20,000 bytes: of eight such rows");
	r = ws_budget_rows(&b, 1000000, 32, false);
	CHECK(r.block == 256 * KB, "of 1 MB: no more than 256 kB");
	ws_budget_for_shorter(&r);
	CHECK(r.entries >= r.merging / 17 && r.arena + r.entries <= r.merging && r.arena + r.entries >= r.merging - 2,
		  "rows of 1 MB leave a sixteenth to entries of shorter ones (%zu of %zu)", r.entries, r.merging);
	r = ws_budget_rows(&b, 100, 16, true);
	before = r;
	ws_budget_for_shorter(&r);
	CHECK(r.arena == before.arena && r.entries == before.entries, "of short rows nothing changes");
	b.block = 13 * KB;
	r = ws_budget_rows(&b, 1000, 16, true);
	CHECK(r.block == 12 * KB && ws_budget_entries(&b, 0).block == 12 * KB, "one that was asked for, of whole pages");
	b.block = 1 * KB;
	CHECK(ws_budget_rows(&b, 1000, 16, true).block == 4 * KB, "not less than a page");
	b.block = MB;
	r = ws_budget_rows(&b, 1000, 16, true);
	CHECK(r.block == 512 * KB && ws_budget_entries(&b, 0).block == 512 * KB, "not more than an eighth");
	b.block = 0;
	for (Size w = 64 * KB; w <= 2048 * MB && bad == NULL; w += 1 + w / 97)
		for (Size row = 8; row <= 2000 && bad == NULL; row = row * 2 + 3)
			for (int helped = 0; helped < 2 && bad == NULL; helped++)
				bad = wrong_rows(w, row, helped);
	CHECK(bad == NULL, "rows that travel: %s", bad == NULL ? "nothing wrong" : bad);
}

static void
boundaries(void)
{
	WsBudget	b;
	bool		tiny = true;

	expect(64 * KB, WS_KIND_SPOOL, 0, 65536, 8192, 16384, 8192, 4096, 53248);
	expect(64 * KB, WS_KIND_SPOOL, 1, 49152, 8192, 16384, 8192, 4096, 45056);
	expect(64 * KB, WS_KIND_HEAP, 0, 57344, 8192, 16384, 65536, 4096, 61440);
	expect(64 * KB, WS_KIND_KEYS, 0, 57344, 8192, 16384, 8192, 4096, 61440);
	expect(4 * MB, WS_KIND_SPOOL, 0, 4194304, 65536, 262144, 524288, 12288, 4116480);
	expect(4 * MB, WS_KIND_SPOOL, 1, 3932160, 65536, 262144, 524288, 12288, 3919872);
	expect(4 * MB, WS_KIND_KEYS, 1, 3932160, 65536, 262144, 262144, 16384, 4177920);
	expect(1024 * MB, WS_KIND_SPOOL, 1, 1072693248, 65536, 1048576, 3145728, 262144, 1072431104);

	b = divide(128 * KB - 16, WS_KIND_SPOOL, 0);
	CHECK(b.alone == 8192, "8 kB for the spool up to 128 kB");
	b = divide(128 * KB + 16, WS_KIND_SPOOL, 0);
	CHECK(b.alone == 8193, "a sixteenth behind that");
	b = divide(16 * MB + 16, WS_KIND_SPOOL, 0);
	CHECK(b.alone == 64 * KB && b.helped == MB, "64 kB and 1 MB at most");
	b = divide(16 * MB - 16, WS_KIND_SPOOL, 0);
	CHECK(b.helped == MB - 1, "1 MB for a helper from 16 MB on");
	CHECK(!divide(2 * MB - 1, WS_KIND_SPOOL, 0).queue && divide(2 * MB, WS_KIND_SPOOL, 0).queue,
		  "a queue of keys from 2 MB on");
	b = divide(MB - 1, WS_KIND_SPOOL, -1);
	CHECK(b.shared == MB - 1, "a helper is not worth it below 1 MB");
	b = divide(MB, WS_KIND_SPOOL, -1);
	CHECK(b.shared == MB - b.helped, "but from there on");
	b = divide(64 * MB, WS_KIND_SPOOL, 0);
	CHECK(ws_budget_entries(&b, 0).block == 256 * KB && ws_budget_entries(&b, 256).block == 252 * KB,
		  "blocks of 256 kB from 64 MB on");

	/* PostgreSQL asks for no less than 64 kB, and nothing here may run backward where it did */
	for (Size w = 0; w < 64 * KB; w += 511)
		for (WsStoreKind store = WS_KIND_SPOOL; store <= WS_KIND_KEYS; store++)
		{
			WsEntryBudget e;

			b = divide(w, store, 1);
			e = ws_budget_entries(&b, b.helped);
			tiny &= b.shared <= w && e.entries <= w && e.block >= 4 * KB && e.block % 4096 == 0;
		}
	CHECK(tiny, "less than 64 kB: nothing becomes negative");
}

int
main(void)
{
	table();
	boundaries();
	travelling();
	return failures != 0;
}
