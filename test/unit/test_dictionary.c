/*-------------------------------------------------------------------------
 * test_dictionary.c - codes of values: in their order, and always the same.
 *
 * Numbers of all sizes and strings, of which some are known from the first rows and the others come
 * later: at random, in order, backwards, between two others, again and again or once only.  With hints
 * that are right, that many values share, that are guesses and wrong, or none.  Every value must have the
 * code that it had before; codes must be in the order of the values, and so must hints behind the code of a
 * gap that are no guesses; and exact codes equal just where values are.  Memory must stay within what was
 * allowed.
 *
 * And columns that are learnt: which get a dictionary, and what the prefixes of keys tell then.
 */
#include "sorting.c"

#include <ctype.h>

#define MOST_ROWS	60000
#define MOST_ZEROS	600			/* that long strings begin with */

static int	hints;				/* 0: none; 1: right (of strings: guesses, and wrong); 2: many are alike */
static long compared;
static long for_codes;			/* of them */

static int
compare_numbers_of_case(Datum x, Datum y, SortSupport ssup)
{
	compared++;
	(void) palloc(1);
	return fake_compare(x, y, ssup);
}

/* Strings that differ only in case are equal. */
static int
compare_strings(Datum x, Datum y, SortSupport ssup)
{
	struct varlena *a = (struct varlena *) DatumGetPointer(x);
	struct varlena *b = (struct varlena *) DatumGetPointer(y);
	Size		n = Min(VARSIZE_ANY_EXHDR(a), VARSIZE_ANY_EXHDR(b));

	compared++;
	for (Size i = 0; i < n; i++)
	{
		int			cmp = tolower(VARDATA_ANY(a)[i]) - tolower(VARDATA_ANY(b)[i]);

		if (cmp != 0)
			return cmp;
	}
	return (VARSIZE_ANY_EXHDR(a) > VARSIZE_ANY_EXHDR(b)) - (VARSIZE_ANY_EXHDR(a) < VARSIZE_ANY_EXHDR(b));
}

static Datum
abbreviate(Datum value, SortSupport ssup)
{
	uint64		bits = (uint64) DatumGetInt64(value) ^ (UINT64CONST(1) << 63);

	return hints == 1 ? bits : hints == 2 ? bits & ~UINT64CONST(0xFFF) : 0;
}

typedef struct Case
{
	const char *what;
	bool		strings;
	bool		descending;
	Size		most;			/* bytes */
	int			code_bytes;
	int			learnt;			/* rows */
	int			rows;
	int64		(*value) (int row);
} Case;

static const Case *c;
static Datum data[MOST_ROWS];
static uint32 codes[MOST_ROWS];
static uint64 behind[MOST_ROWS];	/* codes of gaps */
static uint32 sorted[MOST_ROWS];
static SortSupportData ssup;
static long wrong_order,
			wrong_again;
static long in_turn;			/* values of gaps that were looked for twice though nothing came between */
static int	gaps,
			known_values;
static Size bytes,
			taken;

static int64 long_and_new(int row);

static Datum
make(int64 value)
{
	char		buf[VARHDRSZ + MOST_ZEROS + 32];
	int			n = c->value == long_and_new ? MOST_ZEROS : 0;
	char	   *copy;

	if (!c->strings)
		return Int64GetDatum(value);
	memset(buf + VARHDRSZ, '0', n);
	n += snprintf(buf + VARHDRSZ + n, 32, "%08lld", (long long) value / 2);
	for (int i = 0; i < n; i++)
		buf[VARHDRSZ + i] = buf[VARHDRSZ + i] - '0' + (value % 2 ? 'A' : 'a');
	copy = palloc(VARHDRSZ + n);
	memcpy(copy, buf, VARHDRSZ + n);
	SET_VARSIZE(copy, VARHDRSZ + n);
	return PointerGetDatum(copy);
}

static int
by_value(const void *a, const void *b)
{
	return ApplySortComparator(data[*(const uint32 *) a], false, data[*(const uint32 *) b], false, &ssup);
}

static void
codes_of_case(void *arg)
{
	WsKeyColumn col = {.attno = 1, .encoding = WS_ENC_ABBREVIATED, .width = 8, .descending = c->descending,
		.byval = !c->strings, .length = c->strings ? -1 : 8};
	SortSupportData abbreviation = {.abbrev_converter = abbreviate};
	WsDictionary *d;
	Size		before;
	MemoryContext old;

	ssup = (SortSupportData) {.comparator = c->strings ? compare_strings : compare_numbers_of_case,
		.ssup_reverse = c->descending};
	if (!c->strings)
		col.abbreviate = &abbreviation;
	else
		col.encoding = hints > 0 ? WS_ENC_TRANSFORMED : WS_ENC_NONE;
	for (int i = 0; i < c->rows; i++)
		data[i] = make(c->value(i));
	before = server.memory;
	d = ws_dictionary_create(&col, &ssup, c->most);
	for (int i = 0; i < c->learnt && ws_dictionary_learn(d, data[i]); i++)
		;
	old = MemoryContextSwitchTo(AllocSetContextCreate(CurrentMemoryContext, "numbering", ALLOCSET_SMALL_SIZES));
	ws_dictionary_number(d, c->code_bytes);
	MemoryContextDelete(MemoryContextSwitchTo(old));
	compared = wrong_order = wrong_again = gaps = 0;
	in_turn = 0;
	for (int i = 0; i < c->rows; i++)
	{
		WsHint		hint;

		codes[i] = ws_dictionary_code(d, data[i]);
		behind[i] = 0;
		if (ws_code_is_exact(codes[i]))
			continue;
		gaps++;
		/* asked for again at once, it is known */
		for_codes = compared;
		hint = ws_dictionary_hint(d);
		in_turn += ws_dictionary_code(d, data[i]) != codes[i] || compared != for_codes ||
			hint.bits != ws_dictionary_hint(d).bits || hint.passed != ws_dictionary_hint(d).passed;
		if (!c->strings && hint.passed < sizeof(hint.bits))
			behind[i] = hint.bits << (8 * hint.passed);
	}
	for (int i = 0; i < c->rows; i++)
		wrong_again += ws_dictionary_code(d, data[i]) != codes[i] ||
			codes[i] >= UINT64CONST(1) << (8 * c->code_bytes);
	for_codes = compared;
	bytes = ws_dictionary_bytes(d);
	known_values = ws_dictionary_values(d);
	taken = server.memory - before;
	for (int i = 0; i < c->rows; i++)
		sorted[i] = i;
	(qsort) (sorted, c->rows, sizeof(uint32), by_value);
	for (int i = 1; i < c->rows; i++)
	{
		uint32		a = codes[sorted[i - 1]];
		uint32		b = codes[sorted[i]];
		bool		equal = by_value(&sorted[i - 1], &sorted[i]) == 0;

		wrong_order += equal ? a != b : a > b || (a == b && ws_code_is_exact(a));
		wrong_order += a == b && behind[sorted[i - 1]] > behind[sorted[i]];
	}
	ws_dictionary_free(d);
}

static int64
few(int row)
{
	return (row * INT64CONST(7919)) % 7 * 1000;
}

static int64
thousands(int row)
{
	return (row * INT64CONST(2654435761)) % 5000;
}

static int64
ascending(int row)
{
	return row < 100 ? row % 5 * 1000000 : row / 4;
}

static int64
descending(int row)
{
	return row < 100 ? row % 5 * 1000000 : 900000 - row / 4;
}

static int64
all_new(int row)
{
	return row < 1000 ? few(row) : (row * INT64CONST(2654435761)) % 1000003;
}

static int64
long_and_new(int row)
{
	return all_new(row);
}

static int64
now_and_then(int row)
{
	return row % 10 == 3 ? (row * INT64CONST(48271)) % 60000 : few(row);
}

static int64
one(int row)
{
	return 5;
}

static const Case cases[] = {
	{"few numbers", false, false, 65536, 3, 1000, 20000, few},
	{"few numbers, all of them new", false, true, 65536, 3, 0, 20000, few},
	{"few numbers with codes of two bytes", false, true, 65536, 2, 1000, 20000, few},
	{"thousands of numbers", false, false, 1 << 20, 4, 8000, MOST_ROWS, thousands},
	{"thousands of numbers, little memory", false, false, 16384, 4, 8000, 20000, thousands},
	{"thousands of numbers, no memory", false, true, 16, 4, 8000, 20000, thousands},
	{"numbers that ascend", false, false, 1 << 20, 3, 100, 40000, ascending},
	{"numbers that ascend, short codes", false, false, 1 << 20, 2, 100, 40000, ascending},
	{"numbers that descend", false, true, 1 << 20, 4, 100, 40000, descending},
	{"numbers that are all new", false, false, 1 << 20, 3, 1000, 30000, all_new},
	{"new numbers now and then", false, true, 1 << 20, 3, 1000, 50000, now_and_then},
	{"one number", false, false, 65536, 2, 100, 1000, one},
	{"few strings", true, false, 65536, 3, 1000, 20000, few},
	{"thousands of strings in two cases", true, true, 1 << 20, 4, 8000, MOST_ROWS, thousands},
	{"strings that ascend", true, false, 1 << 20, 4, 100, 40000, ascending},
	{"strings that are all new", true, false, 65536, 4, 1000, 30000, all_new},
	{"long strings that are all new", true, false, 65536, 4, 1000, 10000, long_and_new},
};

static void
check_codes(void)
{
	for (int i = 0; i < lengthof(cases); i++)
		for (hints = 0; hints < (cases[i].strings ? 2 : 3); hints++)
		{
			c = &cases[i];
			if (!server_try(codes_of_case, NULL))
				server_die("%s: %s", c->what, server.message);
			CHECK(wrong_order == 0 && wrong_again == 0 && server_left() == NULL,
				  "%s, hints %d: codes are in order (%ld not), and stay (%ld do not)", c->what, hints,
				  wrong_order, wrong_again);
			CHECK(in_turn == 0, "%s, hints %d: a value that comes again at once is known (%ld of %d not)", c->what,
				  hints, in_turn, gaps);
			CHECK(bytes <= c->most && taken <= bytes + 16384, "%s: %zu bytes of %zu, really %zu", c->what, bytes,
				  c->most, taken);
			if (c->value == few || c->value == one || (c->value == thousands && c->most == 1 << 20))
				CHECK(gaps == 0, "%s: %d values, no gaps (%d)", c->what, known_values, gaps);
			/* nothing grows with the rows: where hints are right, only those of equal ones are compared */
			if (c->value == all_new && hints == 1 && !c->strings)
				CHECK(gaps > 0 && for_codes < c->rows / 2, "%s: %d gaps, %ld comparisons", c->what, gaps, for_codes);
			if ((c->value == ascending || c->value == descending) && c->code_bytes > 2)
				CHECK(gaps < c->rows / 2, "%s: %d of %d rows are in gaps", c->what, gaps, c->rows);
		}
}

/* ---- columns that are learnt ---- */

typedef struct Learning
{
	int			kind;			/* of key */
	uint64		distinct;
	bool		expected;		/* the comparator's column gets a dictionary */
	bool		ranges;			/* the first columns get codes from their ranges */
} Learning;

static FakeTable table;
static long wrong_prefix,
			other_entry,			/* than key bytes make */
			gaps_seen,
			complete;
static bool has_dictionary,
			has_beginnings,
			has_ranges,
			has_memo,
			tells_all;

/* Is the entry of a row other than its key's bytes say?  These come first: a new value has its code then. */
static bool
has_other_entry(WsKeySpec *spec, const Datum *values, const bool *isnull)
{
	uint8		window[WS_PREFIX_BYTES];
	Size		n = ws_key_prefix_bytes(spec, values, isnull, window);
	WsEntry		entry;

	spec->cut = false;
	entry = ws_key_entry(spec, values, isnull, 1);
	return !ws_entry_same_prefix(entry, ws_key_window_entry(window, 1)) || spec->cut != (n > WS_PREFIX_BYTES);
}

/* The same for all rows, and for all with a value of the first column that is new. */
static void
compare_with_bytes(WsKeySpec *spec)
{
	Datum	   *values = palloc(table.ncols * sizeof(Datum));

	other_entry = gaps_seen = 0;
	for (Size i = 0; i < table.n; i++)
	{
		const bool *isnull = table.isnull + i * table.ncols;

		memcpy(values, table.values + i * table.ncols, table.ncols * sizeof(Datum));
		other_entry += has_other_entry(spec, values, isnull);
		if (spec->cols[0].encoding != WS_ENC_NONE || isnull[0])
			continue;
		values[0] = Int64GetDatum(DatumGetInt64(values[0]) * 1000 + i % 500 + 1);
		other_entry += has_other_entry(spec, values, isnull);
		gaps_seen += !ws_code_is_exact(ws_dictionary_code(spec->cols[0].dictionary, values[0]));
	}
}

static void
learn_table(void *arg)
{
	const Learning *l = arg;
	WsKeySpec  *spec = fake_spec(&fake_keys[l->kind]);
	WsEntry    *entries = palloc((table.n + 1) * sizeof(WsEntry));
	WsAccount	account = {0, 0};
	WsLearning	learning;
	Size		most = l->kind == FAKE_LETTERS ? 2000 : 1 << 20;	/* bytes: too few for codes, and enough */

	entries = (WsEntry *) TYPEALIGN(16, (uintptr_t) entries);
	for (Size i = 0; i < table.n; i++)
		entries[i] = ws_entry_make(0, i);
	learning = (WsLearning) {.spec = spec, .rows = &table.keys, .entries = entries, .n = table.n,
		.most = most, .spare = 1 << 20, .account = &account, .sort = ws_sort_entries};
	(void) ws_key_learn(&learning);
	has_dictionary = false;
	for (int i = 0; i < spec->ncols; i++)
		has_dictionary |= spec->cols[i].dictionary != NULL;
	has_beginnings = spec->beginnings != NULL;
	has_ranges = spec->ranges != NULL;
	has_memo = spec->memo != NULL;
	tells_all = ws_key_tells_all(spec);
	wrong_prefix = complete = 0;
	ws_sort_entries(entries, table.n, false);
	for (Size i = 1; i < table.n; i++)
	{
		WsTold		told = ws_key_told(spec, entries[i]);
		Size		a = ws_entry_pointer(entries[i - 1]) * table.ncols;
		Size		b = ws_entry_pointer(entries[i]) * table.ncols;
		bool		same = ws_entry_same_prefix(entries[i - 1], entries[i]);
		int			cmp = ws_key_compare(spec, 0, table.values + a, table.isnull + a, table.values + b,
										 table.isnull + b);

		complete += told.what == WS_TOLD_ALL;
		if (!spec->guess)
			wrong_prefix += same ? told.what == WS_TOLD_ALL && cmp != 0 : cmp > 0;
		for (int k = 0; same && k < told.columns; k++)
			wrong_prefix += table.isnull[a + k] != table.isnull[b + k];
	}
	if (spec->cols[0].dictionary != NULL)
		compare_with_bytes(spec);
}

static void
check_learning(void)
{
	static const Learning learnings[] = {
		{FAKE_COMPARATOR, 7, true, false}, {FAKE_COMPARATOR, 2000, true, false},
		{FAKE_COMPARATOR, 1 << 30, false, false},
		{FAKE_COMPARATOR_BEHIND, 7, true, true}, {FAKE_COMPARATOR_BEHIND, 1 << 30, false, false},
		{FAKE_GUESS, 7, true, false}, {FAKE_LETTERS, 1 << 30, false, false},
		{FAKE_DEAR, 7, true, false}, {FAKE_DEAR, 2000, true, false}, {FAKE_DEAR, 1 << 30, false, false},
		{FAKE_CODED, 7, true, false}, {FAKE_CODED, 1 << 30, false, false},
		{FAKE_BYTES, 7, false, true}, {FAKE_BYTES, 1 << 30, false, false},
		{FAKE_BYTES_NULLS, 7, false, true}, {FAKE_BYTES_NULLS, 1 << 30, false, false},
		{FAKE_LONG, 7, false, true}, {FAKE_LONG, 1 << 30, false, true},
	};

	for (int i = 0; i < lengthof(learnings); i++)
	{
		const Learning *l = &learnings[i];

		fake_fill(&table, &fake_keys[l->kind], 10000, l->distinct);
		if (!server_try(learn_table, (void *) l))
			server_die("%s: %s", fake_keys[l->kind].name, server.message);
		CHECK(has_dictionary == l->expected && has_ranges == l->ranges && !has_beginnings && wrong_prefix == 0 &&
			  server_left() == NULL,
			  "%s of %llu values: %s dictionary, %s ranges, prefixes tell the order (%ld wrong), %ld all of it",
			  fake_keys[l->kind].name, (unsigned long long) l->distinct, has_dictionary ? "a" : "no",
			  has_ranges ? "codes from" : "no", wrong_prefix, complete);
		if (l->ranges && l->distinct == 7)
			CHECK(complete == table.n - 1 && tells_all, "codes from ranges of all columns tell whole keys");
		if (l->expected && !l->ranges)
			CHECK(other_entry == 0 && (gaps_seen > 0) == (l->kind != FAKE_GUESS),
				  "prefixes of codes are key bytes (%ld not), of gaps, too (%ld)", other_entry, gaps_seen);
		CHECK(has_memo == (l->kind == FAKE_LETTERS), "key bytes of a dear text are remembered");
		if (l->kind == FAKE_CODED)
			CHECK(complete == (has_dictionary ? table.n - 1 : 0) && tells_all == has_dictionary,
				  "codes of all columns tell whole keys");
		fake_free(&table);
	}
}

/* Values of two columns, few of which come again: how many of them the first one's dictionary comes to have. */
static int	by_bytes,
			values_added;

static void
ask_two_columns(void *arg)
{
	WsKeyColumn cols[2];
	SortSupportData compare[2] = {{.comparator = fake_compare}, {.comparator = fake_compare}};
	WsKeySpec	spec = {.ncols = 2, .cols = cols, .last_attno = 2, .compare = compare, .comparator = true};
	uint8		window[WS_PREFIX_BYTES];

	for (int c = 0; c < 2; c++)
	{
		cols[c] = (WsKeyColumn) {.attno = c + 1, .encoding = WS_ENC_NONE, .length = 8, .byval = true, .notnull = true,
			.code_bytes = 3};
		cols[c].dictionary = ws_dictionary_create(&cols[c], &compare[c], 1 << 20);
		for (int i = 0; i < 50; i++)
			(void) ws_dictionary_learn(cols[c].dictionary, Int64GetDatum(i * 1000));
		ws_dictionary_number(cols[c].dictionary, cols[c].code_bytes);
	}
	for (int i = 0; i < 20000; i++)
	{
		Datum		values[2] = {Int64GetDatum(i < 100 ? i % 50 * 1000 : i * 7 + 1), Int64GetDatum(i * 11 + 3)};
		bool		isnull[2] = {false, false};

		if (by_bytes)
			(void) ws_key_prefix_bytes(&spec, values, isnull, window);
		else
			(void) ws_key_entry(&spec, values, isnull, i);
	}
	values_added = ws_dictionary_values(cols[0].dictionary);
}

static void
check_two_columns(void)
{
	int			added[2];

	for (by_bytes = 0; by_bytes < 2; by_bytes++)
	{
		if (!server_try(ask_two_columns, NULL))
			server_die("two columns: %s", server.message);
		added[by_bytes] = values_added;
	}
	CHECK(added[0] == added[1] && added[0] < 200,
		  "where values do not come again, prefixes add as few of them as key bytes (%d, %d)", added[0], added[1]);
}

/* Bytes of 0 to 20 are the same as a copy of them, wherever it is, and not if one of them differs. */
static void
check_same_bytes(void)
{
	int			wrong = 0;

	for (Size n = 0; n <= 20; n++)
		for (Size i = 0; i <= n; i++)
		{
			char		a[32];
			char		b[32];

			for (Size k = 0; k < n; k++)
				b[k + 1] = a[k] = (char) (k * 37 + n);
			a[n] = b[0] = b[n + 1] = 'x';
			if (i < n)
				b[i + 1] ^= 1;
			wrong += ws_same_bytes(a, b + 1, n) != (i == n);
		}
	CHECK(wrong == 0, "bytes are the same if all of them are (%d not)", wrong);
}

int
main(void)
{
	check_same_bytes();
	check_codes();
	check_learning();
	check_two_columns();
	return failures != 0;
}
