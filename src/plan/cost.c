/*-------------------------------------------------------------------------
 * cost.c - what a WiscSort costs, in the planner's units.
 *
 * Core charges a sort 2 * cpu_operator_cost a comparison and the pages of a
 * row-wise external merge.  For 10 M rows of 100 bytes at 64 MB that is 1.7 M
 * units beyond the scan, and takes 2.07 times as long beyond the scan as
 * WiscSort does (sort tax in bench/results/2026-11-20-headline.json): honest
 * are 0.8 M units, which are spread over:
 *
 *	startup	a key and an append a row; the vectorised sort of the entries;
 *			writing the spool and the runs, once a merge pass
 *	run		a merge step and a fetch a row, and reading the spool back, which
 *			is cheap in the page cache and one random page a row outside it
 *
 * Keys that only a comparator can order cost the comparisons core's sort
 * makes, and the row fetches that they need on top.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "key/key.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "utils/spccache.h"
#include "utils/syscache.h"

/*
 * Fetching a row from the table instead of the spool takes 0.07 us more with a large
 * window, and two to three times that with a small one.  What it saves is the spool's I/O: 500 bytes a
 * row make up for it.  A big spool costs more than that: beyond what the
 * system recycles from the files of the last sort, its pages are fresh ones
 * (on a virtual machine: faults of the hypervisor), and are written back.
 * Core's model leaves that out of core's sort, and so it is left out of the
 * spool's costs, and taken off what the heap costs more instead.
 *
 * The smaller the window, the fewer of a block's rows are fetched in one visit: the shares are
 * fitted to bench/results/2026-11-21-stores.json, where 200 000 rows of 500 bytes at 64 MB and of
 * 4000 bytes are better left in the table, those of 500 and 1000 bytes at 4 MB are not.
 */
#define HEAP_SHARE			7.0		/* of cpu_tuple_cost */
#define SMALL_WINDOW_SHARE	16.0	/* the same, on top, with a window of no rows */
#define LARGE_WINDOW		0.1		/* of the rows: no block is visited often */
#define FRESH_SHARE			5.4		/* of seq_page_cost */
#define RECYCLED			0.25	/* of effective_cache_size */

/* Fitted to the measurement above; the share of a core comparison or row. */
#define SORT_SHARE			0.1	/* of comparing, by vqsort */
#define APPEND_SHARE		1.5		/* of cpu_tuple_cost, key and append */
#define FETCH_SHARE			2.0		/* of cpu_tuple_cost, merge and fetch */
#define DECODE_SHARE		1.0		/* the same without a row to fetch */
#define IO_SHARE			1.0		/* of seq_page_cost, buffered large I/O */
#define ABBREVIATED_SHARE	0.3		/* ties that an abbreviation leaves */
#define TEXT_SHARE			0.15	/* ties that a prefix of text leaves */
#define GUESS_SHARE			0.5		/* verifying a guess, and merging by comparator */
#define COMPARATOR_SHARE	1.3		/* no prefix at all */
/* What a row takes in tuplesort's memory beside its data: SortTuple, chunk, header. */
#define TUPLESORT_OVERHEAD	(24 + 16 + 16)
#define ROW_OVERHEAD		14		/* bytes of a row in the spool beside its data */
#define STARTUP_ROWS		200		/* set-up of a sort, in appended rows */

static double
sort_bytes(double rows, int width)
{
	return rows * (MAXALIGN(width) + MAXALIGN(SizeofHeapTupleHeader));
}

/*
 * Is a sort of `rows` rows of `width` bytes large enough to be considered at
 * all (wiscsort.threshold)?  enable_sort discourages this kind of sort as well.
 */
bool
ws_sort_considered(double rows, int width)
{
	double		threshold = ws_threshold < 0 ? work_mem : ws_threshold;

	if (!ws_enable || !enable_sort)
		return false;
	return ws_debug_force ||
		rows * (MAXALIGN(width) + TUPLESORT_OVERHEAD) > threshold * 1024;
}

/*
 * The number of rows that the level above will take of a subquery: a
 * SubqueryScan passes a LIMIT on (ExecSetTupleBound), and the planner passes
 * the number down as tuple_fraction.
 */
double
ws_inherited_bound(PlannerInfo *root)
{
	if (root->parent_root == NULL || root->tuple_fraction <= 0 ||
		root->parent_root->parse->limitCount == NULL)
		return WS_NO_BOUND;
	return root->tuple_fraction >= 1 ? root->tuple_fraction : WS_UNKNOWN_BOUND;
}

/*
 * Is a sort of rows of `width` bytes, of which a LIMIT takes `bound`, better
 * left to core, which keeps a heap of so many rows?
 */
bool
ws_bound_is_cores(double bound, int width)
{
	return bound == WS_UNKNOWN_BOUND ||
		(bound > 0 && sort_bytes(bound, width) <= work_mem * 1024.0);
}

/* The "<" operator of a key. */
static Oid
less_than(const PathKey *pathkey)
{
	EquivalenceMember *em = linitial_node(EquivalenceMember, pathkey->pk_eclass->ec_members);

	return get_opfamily_member(pathkey->pk_opfamily, em->em_datatype, em->em_datatype,
							   BTLessStrategyNumber);
}

/* Is the prefix the whole key, with a byte for null in every column? */
static bool
fits_prefix(List *pathkeys)
{
	int			bytes = 0;
	ListCell   *lc;

	foreach(lc, pathkeys)
	{
		const PathKey *pathkey = lfirst_node(PathKey, lc);
		bool		descending;
		int			width;

		if (ws_encoding_partial(ws_key_encoding(less_than(pathkey), pathkey->pk_eclass->ec_collation,
												&descending, &width)) || width == 0)
			return false;
		bytes += width + 1;
	}
	return bytes <= WS_PREFIX_BYTES;
}

/* The part of a comparison sort that the prefixes leave to be done. */
static double
comparison_share(List *pathkeys)
{
	PathKey    *first = linitial_node(PathKey, pathkeys);
	EquivalenceClass *ec = first->pk_eclass;
	Oid			lt = less_than(first);
	bool		descending;
	bool		padded;
	int			width;

	switch (ws_key_encoding(lt, ec->ec_collation, &descending, &width))
	{
		case WS_ENC_NONE:
			if (!ws_key_is_text(lt, &padded))
				return COMPARATOR_SHARE;
			/* of libc, or of ICU, whose sort keys core abbreviates */
			return ws_transformable(ec->ec_collation) ? GUESS_SHARE : ABBREVIATED_SHARE;
		case WS_ENC_NUMERIC:
			return ABBREVIATED_SHARE;
		case WS_ENC_TEXT:
		case WS_ENC_BPCHAR:
		case WS_ENC_NAME:
		case WS_ENC_BYTEA:
		case WS_ENC_BIT:
		case WS_ENC_INET:
		case WS_ENC_INTERVAL:	/* fills the prefix, and has no room for a null byte */
			return TEXT_SHARE;
		default:
			return list_length(pathkeys) > 1 && !fits_prefix(pathkeys) ? TEXT_SHARE : 0;
	}
}

/* Share of `bytes` that the system's cache cannot hold. */
static double
uncached(double bytes)
{
	double		cache = (double) effective_cache_size * BLCKSZ;

	return bytes > cache ? 1.0 - cache / bytes : 0.0;
}

/*
 * Sets the costs of `path`, a sort of `input` that spools `spool` bytes and
 * fetches each row for `fetch`.
 */
static void
set_costs(Path *path, const Path *input, List *pathkeys, double spool, Cost fetch)
{
	double		rows = Max(input->rows, 2.0);
	double		entries = rows * sizeof(WsEntry);
	double		memory = work_mem * 1024.0;
	double		comparing = 2.0 * cpu_operator_cost * rows * log2(rows);
	Cost		startup;
	Cost		run;

	startup = cpu_tuple_cost * APPEND_SHARE * (rows + STARTUP_ROWS) +
		comparing * (SORT_SHARE + comparison_share(pathkeys));
	run = fetch * rows;

	if (spool > 0 && spool + entries > memory)
	{
		double		pages = ceil(spool / BLCKSZ);

		startup += IO_SHARE * seq_page_cost * pages;
		run += 0.5 * IO_SHARE * seq_page_cost * pages;
		run += uncached(spool) * random_page_cost * rows;
	}
	if (entries > memory)
	{
		double		runs = ceil(entries / memory);
		double		fan_in = Max(2.0, Min(64.0, memory / (4.0 * 1024)));
		double		passes = Max(1.0, ceil(log(runs) / log(fan_in)));

		startup += 2.0 * IO_SHARE * seq_page_cost * passes * ceil(entries / BLCKSZ);
		run += cpu_operator_cost * 0.2 * rows * log2(Max(2.0, Min(runs, fan_in)));
	}

	if (ws_debug_force)
		startup = run = 0;
	path->startup_cost = input->total_cost + startup;
	path->total_cost = path->startup_cost + run;
}

/* Bytes of a key column, one for null included; 0 if they do not tell its value. */
static int
decodable_bytes(const PathKey *pathkey)
{
	bool		descending;
	int			width;

	return ws_encoding_decodable(ws_key_encoding(less_than(pathkey), pathkey->pk_eclass->ec_collation,
												 &descending, &width)) ? width + 1 : 0;
}

/*
 * Are there no columns in the rows of `input` but keys, which entries will tell?
 * Then neither store is needed (rows_are_keys in exec/node.c decides).
 */
bool
ws_keys_alone(const Path *input, List *pathkeys)
{
	int			bytes = 0;
	ListCell   *lc;

	if (ws_record_store == WS_STORE_SPOOL || input->pathtarget->exprs == NIL)
		return false;
	foreach(lc, pathkeys)
	{
		int			column = decodable_bytes(lfirst_node(PathKey, lc));

		bytes += column;
		if (column == 0 || bytes > WS_PREFIX_BYTES)
			return false;
	}
	foreach(lc, input->pathtarget->exprs)
	{
		bool		found = false;
		ListCell   *key;

		foreach(key, pathkeys)
			found = found || find_ec_member_matching_expr(lfirst_node(PathKey, key)->pk_eclass, lfirst(lc),
														  input->parent->relids) != NULL;
		if (!found)
			return false;
	}
	return true;
}

/*
 * Sets startup_cost and total_cost of `path`, a WiscSort of the rows of
 * `input` by `pathkeys`, which are spooled unless they are nothing but keys.  path->rows is the
 * input's already.
 */
void
ws_cost_sort(Path *path, const Path *input, List *pathkeys)
{
	if (ws_keys_alone(input, pathkeys))
		set_costs(path, input, pathkeys, 0, cpu_tuple_cost * DECODE_SHARE);
	else
		set_costs(path, input, pathkeys, input->rows * (input->pathtarget->width + ROW_OVERHEAD),
				  cpu_tuple_cost * FETCH_SHARE);
}

/*
 * How far the order of a column follows that of the rows in the table, from 0 to
 * 1, as ANALYZE found it.
 */
static double
correlation(Oid relid, const Var *column)
{
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(relid),
										Int16GetDatum(column->varattno), BoolGetDatum(false));
	AttStatsSlot slot;
	double		result = 0;

	if (!HeapTupleIsValid(tuple))
		return 0;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_CORRELATION, InvalidOid, ATTSTATSSLOT_NUMBERS))
	{
		result = fabs(slot.numbers[0]);
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return result;
}

/*
 * The same for a sort that leaves the rows in the table `rel`: `input` has their
 * TIDs and keys, which are spooled if the prefix is not the whole key.
 */
void
ws_cost_heap_sort(Path *path, const Path *input, List *pathkeys, const RelOptInfo *rel, Oid relid)
{
	double		width = input->pathtarget->width + ROW_OVERHEAD;
	double		spool = fits_prefix(pathkeys) ? 0 : input->rows * width;
	double		avoided = (input->rows * (rel->reltarget->width + ROW_OVERHEAD) - spool) / BLCKSZ;
	double		fresh = Max(0, avoided - effective_cache_size * RECYCLED);
	/* of the first key; the others count as in btcostestimate */
	double		ordered = correlation(relid, lsecond_node(Var, input->pathtarget->exprs)) *
		(list_length(pathkeys) > 1 ? 0.75 : 1);
	double		window = Min(1.0, work_mem * 1024.0 / (LARGE_WINDOW * input->rows * (rel->reltarget->width + ROW_OVERHEAD)));
	double		share = HEAP_SHARE + SMALL_WINDOW_SHARE * (1 - window);
	/* rows that follow one another in the table are in a block that has been visited */
	Cost		more = cpu_tuple_cost * share * (1 - ordered * ordered) * input->rows -
		seq_page_cost * FRESH_SHARE * fresh;
	Cost		fetch = cpu_tuple_cost * FETCH_SHARE;
	double		random_page;

	/* who asks for it gets it where a spool would be better than core */
	if (ws_record_store != WS_STORE_HEAP)
		fetch += Max(0, more) / Max(input->rows, 1);
	get_tablespace_page_costs(rel->reltablespace, &random_page, NULL);
	fetch += uncached((double) rel->pages * BLCKSZ) * random_page;
	set_costs(path, input, pathkeys, spool, fetch);

	/* debug_force says nothing of the store: auto is the spool then */
	if (ws_debug_force && ws_record_store == WS_STORE_AUTO)
		path->total_cost += 1.0;
}
