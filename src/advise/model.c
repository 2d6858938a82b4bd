/*-------------------------------------------------------------------------
 * model.c - what a sort will do with so much memory: here, and by core.
 *
 * Here: the division of memory is that of sort/budget.c, which is called for it; runs are formed, and
 * merged, as run/formation.c and merge/passes.c do, in figures: pieces of the IndexMap, one after the other.
 * Core: as tuplesort.c does.  Its array of tuples grows by doubling, and a last time by what is
 * left; what does not fit is written as runs, which are merged as often as its merge order asks for.
 *
 * Seconds are those of the machine that the constants were fitted on (docs/dba.md); advise.c scales them
 * by what a sort took that was run.
 *
 * Pure: no server, no setting.  test/t/advise.py runs the sorts.
 *
 * Not modelled: codes of values, which may take up to an eighth of the memory (sort/learn.c); rows
 * whose table or spool leaves memory on the way (sort/again.c); ties that are more than statistics say.
 *-------------------------------------------------------------------------
 */
#include "advise/advise.h"

#include <math.h>

#include "sort/budget.h"

/* Of core's sort (tuplesort.c, logtape.c). */
#define CORE_SLOT			24		/* bytes of a SortTuple */
#define CORE_FIRST_SLOTS	1024
#define CORE_LEAST			((Size) 64 * 1024)
#define CORE_LEAST_ORDER	6
#define CORE_MOST_ORDER		500
#define CORE_PAGE			((double) BLCKSZ / (BLCKSZ - 16))

/* Runs, above which they are not gone through one by one. */
#define MOST_RUNS			20000

/* Nanoseconds: of a row, of a byte of memory at its first use or of a file, of a comparison. */
#define HERE_ROW			60.0
#define HERE_LONG_KEY		40.0
#define HERE_TABLE_ROW		60.0
#define HERE_PASSED_ROW		30.0	/* that a LIMIT does not ask for */
#define HERE_ALONE_ROW		100.0	/* without helpers */
#define HERE_MORE_PASSES	300.0	/* a row that is merged before the final merge */
#define HERE_MEMORY_BYTE	0.45
#define HERE_FILE_BYTE		0.22
#define HERE_STEP			0.7
#define HERE_COMPARED_STEP	3.5
#define CORE_ROW			140.0
#define CORE_DATUM			30.0
#define CORE_MEMORY_BYTE	0.5
#define CORE_FILE_BYTE		0.65
#define CORE_MORE_PASSES	0.1		/* a byte */
#define CORE_STEP			9.0
#define CORE_DATUM_STEP		5.6
#define CORE_COMPARED_STEP	13.0

/* The settings for which both sorts are forecast, kB. */
const int	ws_settings[WS_SETTINGS] = {4 * 1024, 16 * 1024, 64 * 1024, 256 * 1024, 1024 * 1024};

/* Bytes of a run's file that n entries take. */
static double
run_bytes(double n, Size block)
{
	return sizeof(WsRunHeader) + n * sizeof(WsEntry) +
		ceil(n / (double) ws_block_capacity(block)) * sizeof(WsBlockHeader);
}

/* The files of runs, one a level, and the runs in them (run/runfile.c). */
typedef struct Levels
{
	Size		block;
	double		runs[WS_MAX_LEVELS];
	double		entries[WS_MAX_LEVELS]; /* of these */
	double		end[WS_MAX_LEVELS]; /* bytes */
	double		most[WS_MAX_LEVELS];
	double		merged;			/* entries that were merged, each as often as it was */
	int			highest;
} Levels;

static void
add_run(Levels *l, int level, double entries)
{
	level = Min(level, WS_MAX_LEVELS - 1);
	l->runs[level]++;
	l->entries[level] += entries;
	l->end[level] += run_bytes(entries, l->block);
	l->most[level] = Max(l->most[level], l->end[level]);
	l->highest = Max(l->highest, level);
}

static double
all_runs(const Levels *l)
{
	double		n = 0;

	for (int i = 0; i < WS_MAX_LEVELS; i++)
		n += l->runs[i];
	return n;
}

/* Merges the n runs of the lowest levels into one, beginning with level `first`. */
static void
merge_lowest(Levels *l, int first, double n)
{
	double		entries = 0;
	int			level = first;

	for (int i = first; i < WS_MAX_LEVELS && n > 0; i++)
	{
		double		taken = Min(n, l->runs[i]);
		double		share = l->runs[i] > 0 ? l->entries[i] * taken / l->runs[i] : 0;

		if (taken == 0)
			continue;
		level = i;
		n -= taken;
		entries += share;
		l->runs[i] -= taken;
		l->entries[i] -= share;
	}
	add_run(l, level + 1, entries);
	l->merged += entries;
	/* a file begins again when nothing in it is wanted */
	for (int i = 0; i < WS_MAX_LEVELS; i++)
		if (l->runs[i] == 0)
			l->end[i] = 0;
}

/* Is a helper taken that would sort? */
static bool
sort_helper(const WsSortFacts *s, Size bytes)
{
	return s->request.vectorised && ws_thread_wanted(s->request.threads.sort, bytes >= WS_HELPER_MEMORY);
}

/* Adds to `f` the runs of entries of a sort whose IndexMap has only room for `capacity` of them. */
static void
form_runs(const WsSortFacts *s, const WsBudget *b, const WsEntryBudget *e, double capacity, double before,
		  WsSortForecast *f)
{
	Levels		l = {.block = e->block};
	double		piece = Min((double) WS_PIECE_ENTRIES, capacity);
	double		fan_in = Max(2.0, Min((double) (TYPEALIGN_DOWN(4096, e->entries) / e->block), 4096.0));
	double		left = s->rows;
	double		pieces;
	double		kept;
	double		nruns;
	int			slot = 0;

	if (sort_helper(s, e->entries) && before < piece && capacity < 2 * piece)
		piece = TYPEALIGN(4, (Size) (capacity + 1) / 2);
	pieces = ceil(capacity / piece);
	f->one_pass = false;
	f->runs = ceil(s->rows / (capacity / pieces));
	if (f->runs > MOST_RUNS)
	{
		f->passes = (int) ceil(log(f->runs) / log(fan_in));
		f->merged = (f->passes - 1) * s->rows;
		f->temp += 2 * run_bytes(s->rows, e->block);
		return;
	}
	f->runs = 0;
	for (;;)
	{
		double		room = Min(piece, capacity - slot * piece);

		if (left <= room)
			break;
		left -= room;
		slot = slot + 1 < (int) pieces ? slot + 1 : 0;
		add_run(&l, 0, room);
		f->runs++;
		/* those in the IndexMap are written then as well */
		if (l.runs[0] > Max(1, fan_in - 2 * pieces + 1))
			for (int level = 0; level < WS_MAX_LEVELS && l.runs[level] > Max(1, fan_in - pieces); level++)
				merge_lowest(&l, level, l.runs[level]);
	}
	/* the last piece may stay where it is */
	kept = left * sizeof(WsEntry) + 3 * (all_runs(&l) + pieces + 2) * e->block + b->reading;
	if (s->request.random_access || kept > fan_in * e->block)
	{
		add_run(&l, 0, left);
		f->runs++;
	}
	while ((nruns = all_runs(&l)) > fan_in)
		merge_lowest(&l, 0, Min(fan_in, nruns - fan_in + 1));
	f->merged = l.merged;
	if (s->request.random_access && all_runs(&l) > 1)
		merge_lowest(&l, 0, all_runs(&l));
	f->passes = l.highest + (s->request.random_access ? 0 : 1);
	for (int i = 0; i < WS_MAX_LEVELS; i++)
		f->temp += l.most[i];
}

/*
 * How many of `runs` runs of rows are merged before the final merge, counting each as often as it is: of
 * level 0 only as many as have to be, the oldest of them, of others all (merge/passes.c).  The first one is
 * as long as `first` others.
 */
static double
merged_early(double runs, double first, double fan_in, int pieces)
{
	Levels		l = {.block = BLCKSZ};
	double		most = Max(1, fan_in - pieces);
	double		n;

	for (double left = runs - 1; left >= 0; left--)
	{
		add_run(&l, 0, 1);
		/* the last ones are in memory when the input ends */
		if (l.runs[0] <= Max(1, most - pieces + 1) || left < pieces)
			continue;
		n = l.runs[0];
		merge_lowest(&l, 0, Max(floor(n / 4) + 2, Min(floor(left * 1.05) + 2 * pieces + 2, n)));
		l.merged += first - 1;
		l.entries[1] += first - 1;
		first = 1;
		for (int level = 1; level < WS_MAX_LEVELS && l.runs[level] > most; level++)
			merge_lowest(&l, level, l.runs[level]);
	}
	while ((n = all_runs(&l)) > fan_in)
		merge_lowest(&l, 0, Min(fan_in, n - fan_in + 1));
	return l.merged;
}

/* Sets in `f` what rows that travel inside runs do. */
static void
travel(const WsSortFacts *s, const WsBudget *b, double spooled, WsSortForecast *f)
{
	Size		row = (Size) s->row + 1;
	bool		helped = sort_helper(s, b->total);
	WsRowBudget r = ws_budget_rows(b, row, s->entry, helped);
	double		entries;
	double		a_run;
	double		beginning;
	double		a_block = floor((r.block - sizeof(WsRowBlock)) / (s->row + sizeof(WsEntry)));
	double		fan_in = Max(2.0, Min((double) (r.merging / r.block) * WS_MERGED_SHARE, 4096.0));

	ws_budget_for_shorter(&r);
	entries = Max(4.0, r.entries / s->entry / r.arenas);
	a_run = Min(Max(1.0, (double) r.arena / row), entries);
	f->one_pass = false;
	/* the beginning was in a spool, and became one run, beside which that was until then */
	beginning = Min(spooled, (double) s->request.allowance) / Max(s->row, 1);
	f->runs = (beginning > 0 ? 1 : 0) + ceil(Max(0, s->rows - beginning) / a_run);
	f->passes = Max(1, (int) ceil(log(Max(f->runs, 2.0)) / log(fan_in)));
	if (f->runs > MOST_RUNS)
		f->merged = (f->passes - 1) * s->rows;
	else
	{
		double		first = Max(1, beginning / a_run);
		double		merged = merged_early(f->runs, first, floor(fan_in), r.arenas);

		f->merged = merged / (f->runs - 1 + first) * s->rows;
	}
	if (f->merged > 0)
		f->passes = Max(f->passes, 2);
	a_block = Max(a_block, 1);
	f->temp = ceil(s->rows / a_block) *
		(double) TYPEALIGN(WS_ROWS_UNIT, sizeof(WsRowBlock) + (Size) (a_block * (s->row + sizeof(WsEntry))));
	f->temp = Max(f->temp, 2 * beginning * (s->row + sizeof(WsEntry)));
}

/* Sets the seconds of a sort here, of which `spooled` bytes of rows are copied. */
static void
time_here(const WsSortFacts *s, double spooled, Size memory, WsSortForecast *f)
{
	double		rows = Max(s->rows, 2.0);
	double		row = HERE_ROW + log2(rows) * HERE_STEP;
	double		ns;

	if (!s->exact)
		row += HERE_LONG_KEY;
	if (!s->bytes)
		row += log2(rows) * HERE_COMPARED_STEP;
	if (s->request.store == WS_KIND_HEAP)
		row += HERE_TABLE_ROW;
	if (!sort_helper(s, memory) && !f->in_memory)
		row += HERE_ALONE_ROW;
	ns = rows * row + f->merged * HERE_MORE_PASSES + f->temp * HERE_FILE_BYTE;
	if (f->in_memory)
		ns += (spooled + rows * sizeof(WsEntry)) * HERE_MEMORY_BYTE;
	f->seconds = ns / 1e9;
}

/* What a WiscSort of these rows, which it takes in all, does with `memory` bytes. */
static WsSortForecast
forecast_all(const WsSortFacts *s, Size memory)
{
	WsRequest	request = s->request;
	double		a_row = request.store == WS_KIND_SPOOL ? s->row :
		request.store == WS_KIND_HEAP ? s->tie_row : 0;
	double		spooled = a_row * s->rows;
	bool		writer = ws_thread_wanted(request.threads.write, memory >= WS_HELPER_MEMORY);
	WsSortForecast f = {.one_pass = true};
	WsBudget	b;

	request.memory = memory;
	b = ws_budget(&request);
	if (spooled + s->rows * s->entry <= b.shared)
		f.in_memory = true;
	else if (request.store == WS_KIND_SPOOL && spooled > (double) request.allowance)
		travel(s, &b, spooled, &f);
	else
	{
		WsEntryBudget e = ws_budget_entries(&b, a_row == 0 ? 0 : writer ? b.helped : b.alone);
		double		capacity = (double) (TYPEALIGN_DOWN(4096, e.entries) / s->entry);

		f.temp = spooled;
		if (s->rows > capacity)
			form_runs(s, &b, &e, capacity, (double) b.shared / (a_row + s->entry), &f);
	}
	time_here(s, spooled, memory, &f);
	return f;
}

/* What a WiscSort of these rows does with `memory` bytes. */
WsSortForecast
ws_forecast_here(const WsSortFacts *s, Size memory)
{
	WsSortFacts taken = *s;
	WsSortForecast f;

	if (s->wanted > 0)
		taken.rows = s->taken;
	f = forecast_all(&taken, memory);
	f.seconds += (s->rows - taken.rows) * HERE_PASSED_ROW / 1e9;
	return f;
}

/* Tuples that core's sort has in memory at a time, about; *array is set to the bytes of its array. */
static double
core_capacity(const WsSortFacts *s, double memory, double *array)
{
	double		slots = CORE_FIRST_SLOTS;
	bool		grows = true;

	for (;;)
	{
		double		used;

		*array = slots * CORE_SLOT;
		used = *array + slots * s->core_row;
		if (used > memory)
			return floor(Max(1.0, (memory - *array) / Max(s->core_row, 1)));
		if (!grows || slots > s->rows + 1)
			return slots;
		if (used <= memory / 2)
			slots *= 2;
		else
		{
			slots = floor(slots * memory / used);
			grows = false;
		}
	}
}

/* What core's sort does with `memory` bytes. */
WsSortForecast
ws_forecast_core(const WsSortFacts *s, Size memory)
{
	double		m = (double) Max(memory, CORE_LEAST);
	double		rows = Max(s->rows, 2.0);
	double		order = floor(m / (2 * BLCKSZ + 32 * BLCKSZ));
	bool		datum = s->core_row == 0;
	double		step = !s->bytes ? CORE_COMPARED_STEP : datum ? CORE_DATUM_STEP : CORE_STEP;
	double		ns = rows * ((datum ? CORE_DATUM : CORE_ROW) + log2(rows) * step);
	WsSortForecast f = {.in_memory = true, .one_pass = true};
	double		array;
	double		capacity = core_capacity(s, m, &array);

	if (s->rows > capacity)
	{
		double		tapes;
		double		later;

		order = Max(CORE_LEAST_ORDER, Min(order, CORE_MOST_ORDER));
		tapes = order * BLCKSZ + array < m ? order * BLCKSZ : 0;
		later = array / CORE_SLOT;
		if (!datum)
			later = Max(1.0, Min(later, (m - array - tapes) / s->core_row));
		f.in_memory = f.one_pass = false;
		f.runs = 1 + ceil((s->rows - capacity) / later);
		f.passes = Max(1, (int) ceil(log(f.runs) / log(order) - 1e-9));
		f.temp = s->rows * s->core_tape * CORE_PAGE;
		ns += f.temp * (CORE_FILE_BYTE + (f.passes - 1) * CORE_MORE_PASSES);
	}
	else
		ns += rows * s->core_row * CORE_MEMORY_BYTE;
	f.seconds = ns / 1e9;
	return f;
}

/*
 * The least work_mem, in kB, with which a sort has no more than so many merge passes, as `forecast` says:
 * with none it is in one pass.  MAX_KILOBYTES if none is enough.  More memory never makes it more passes.
 */
int
ws_least_work_mem(const WsSortFacts *s, WsForecaster forecast, int passes)
{
	int			low = 64;
	int			high = MAX_KILOBYTES;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;
		WsSortForecast f = forecast(s, (Size) middle * 1024);

		if (f.one_pass || (passes > 0 && f.passes <= passes))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}
