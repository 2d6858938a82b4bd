/*-------------------------------------------------------------------------
 * cost.c - what a WiscSort costs, in the planner's units.
 *
 * The unit is what scans, hash tables that fit and index scans in order take: about as many units a second
 * as a plain scan of the table.  In these, a WiscSort of 10 M rows of 100 bytes at 64 MB
 * takes 0.25 to 0.45 M units beyond the scan (bench/results.jsonl), and one of 1 M rows 45 000.
 * Core's sort is no measure: of integers it is charged 1.7 times what it takes, of text under libc
 * half of it (docs/decisions/30-cost-model.md).  The costs are spread over:
 *
 *	startup	a key and an append a row; the vectorised sort of the entries;
 *			writing the spool and the runs, once a merge pass
 *	run		a merge step and a fetch a row, and reading the spool back, which
 *			is cheap in the page cache and one random page a row outside it
 *
 * Keys that only a comparator can order cost the comparisons core's sort
 * makes, and the row fetches that they need on top.
 *
 * Pure: no planner, no setting.  What the shape is made of is in shape.c.
 *-------------------------------------------------------------------------
 */
#include "plan/cost.h"

#include <math.h>

/*
 * Fetching a row from the table instead of the spool takes 0.07 us more with a large
 * window, and two to three times that with a small one.  What it saves is the spool's I/O: 500 bytes a
 * row make up for it.  A big spool costs more than that: beyond what the
 * system recycles from the files of the last sort, its pages are fresh ones
 * (on a virtual machine: faults of the hypervisor), and are written back.
 * Core's model leaves that out of core's sort, and so it is left out of the
 * spool's costs, and taken off what the heap costs more instead.
 *
 * A spool of keys beside the table is written and read by pointers as one of rows is, and then the table is
 * read as well, in whatever order it lies.  Tables in the order of their keys, as far as correlation tells,
 * took 1.5 and 2.1 times as long as with a spool of rows (docs/decisions/30-cost-model.md).
 *
 * Where the table is in the order of the keys, a row of it takes as long as the I/O of 160 bytes: of 16 to
 * 100 bytes a spool is the faster (docs/decisions/03-record-stores.md).
 *
 * The smaller the window, the fewer of a block's rows are fetched in one visit: the shares are
 * fitted to run 2026-11-21-stores, where 200 000 rows of 500 bytes at 64 MB and of
 * 4000 bytes are better left in the table, those of 500 and 1000 bytes at 4 MB are not.
 */
const WsProfile ws_default_profile = {
	.append = 1.0,
	.passed = 0.5,
	.fetch = 1.0,
	.decode = 0.3,
	.sort = 0.06,
	.io = 1.0,
	.heap = 7.0,
	.heap_in_order = 3.0,
	.small_window = 16.0,
	.large_window = 0.1,
	.tied = 2.5,
	.fresh = 5.4,
	.recycled = 0.25,
	.startup_rows = 200,
};

/* Share of `bytes` that the cache cannot hold. */
static double
uncached(double bytes, double cache)
{
	return bytes > cache ? 1.0 - cache / bytes : 0.0;
}

/* Of handing one row out. */
static double
fetch_cost(const WsShape *s, const WsProfile *p)
{
	double		more,
				window,
				avoided,
				recycled = s->cache / BLCKSZ * p->recycled;
	double		fetch = p->cpu_tuple * p->fetch;

	if (s->store == WS_KIND_KEYS)
		return p->cpu_tuple * p->decode;
	if (s->store == WS_KIND_SPOOL)
		return fetch;
	avoided = (s->rows * s->row - s->spool) / BLCKSZ;
	window = Min(1.0, s->memory / (p->large_window * s->rows * s->row));
	/* rows that follow one another in the table are in a block that has been visited */
	more = p->cpu_tuple * (p->heap_in_order + (p->heap - p->heap_in_order + p->small_window * (1 - window)) *
						   (1 - s->ordered * s->ordered)) * s->rows;
	if (s->spool > 0)
		more += p->cpu_tuple * p->tied * s->rows;
	/* what is taken off for fresh pages is never more than their rows cost: more rows do not cost less */
	if (avoided > recycled)
		more = Max(more * recycled / avoided, more - p->seq_page * p->fresh * (avoided - recycled));
	if (!s->asked)
		fetch += more / Max(s->rows, 1);
	return fetch + uncached(s->table, s->cache) * p->random_page;
}

/* Adds what it takes that all rows are written and read with runs. */
static void
add_travelling(WsCost *c, const WsShape *s, const WsProfile *p)
{
	double		all = s->spool + s->rows * sizeof(WsEntry);
	double		pages = ceil(all / BLCKSZ);
	double		runs = Max(1.0, ceil(2.0 * all / s->memory));
	/* a block of a run has 1/64 of the memory, 4 kB at least and 256 kB at most (sort/budget.c) */
	double		block = Max(4.0 * 1024, Min(s->memory / 64, 256.0 * 1024));
	double		fan_in = Max(4.0, 0.8 * s->memory / block);
	double		passes = Max(1.0, ceil(log(runs) / log(fan_in)));

	c->startup += p->io * p->seq_page * pages * (2.0 * passes - 1.0);
	c->run += p->io * p->seq_page * pages;
	c->run += p->cpu_operator * 0.2 * s->rows * log2(Max(2.0, runs));
}

/* The costs of a sort; with a bound, of one of the rows that it takes in, and of the others' keys. */
WsCost
ws_cost(const WsShape *s, const WsProfile *p)
{
	WsShape		taken_in = *s;
	double		rows;
	double		entries;
	double		comparing;
	WsCost		c;

	if (s->wanted > 0)
	{
		/* handing out is charged for all rows: the LIMIT takes its share of that */
		taken_in.wanted = 0;
		taken_in.rows = ws_rows_taken_in(s->rows, s->wanted);
		taken_in.spool *= taken_in.rows / s->rows;
		c = ws_cost(&taken_in, p);
		c.startup += p->cpu_tuple * p->passed * (s->rows - taken_in.rows);
		c.run *= s->rows / taken_in.rows;
		return c;
	}
	rows = Max(s->rows, 2.0);
	entries = rows * sizeof(WsEntry);
	comparing = 2.0 * p->cpu_operator * rows * log2(rows);
	c.startup = p->cpu_tuple * p->append * (rows + p->startup_rows) +
		comparing * (p->sort + s->comparisons);
	c.run = fetch_cost(s, p) * rows;

	if (s->spool > 0 && s->spool + entries > s->memory)
	{
		double		pages = ceil(Min(s->spool, s->allowance) / BLCKSZ);

		c.startup += p->io * p->seq_page * pages;
		if (s->spool > s->allowance)
		{
			add_travelling(&c, s, p);
			return c;
		}
		c.run += 0.5 * p->io * p->seq_page * pages;
		c.run += uncached(s->spool, s->cache) * p->random_page * rows;
	}
	if (entries > s->memory)
	{
		double		runs = ceil(entries / s->memory);
		double		fan_in = Max(2.0, Min(64.0, s->memory / (4.0 * 1024)));
		double		passes = Max(1.0, ceil(log(runs) / log(fan_in)));

		c.startup += 2.0 * p->io * p->seq_page * passes * ceil(entries / BLCKSZ);
		c.run += p->cpu_operator * 0.2 * rows * log2(Max(2.0, Min(runs, fan_in)));
	}
	return c;
}
