/*-------------------------------------------------------------------------
 * locality.c - does an index find its rows together in the table, though these are in another order?
 *
 * Events that have the uuid of their session are written session by session: the scan of an index on it goes
 * to another page once in a session.  pg_stats.correlation compares the order of the whole table, is 0, and
 * core charges a page for nearly every row (docs/decisions/30-cost-model.md).
 *
 * So a scan is charged here by what leaf pages of the index say (leaves.c).  Errors are those of reading
 * them.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/spccache.h"

/*
 * What the visit of another page than that of the row before takes: in shared buffers, of cpu_tuple_cost (0.8
 * to 1.2 us); and what reading it there takes beyond, from the system's page cache, of seq_page_cost (2.5 to
 * 3.4 us).
 */
#define VISIT			22.0
#define READ			0.6

/* Of the rows that an index finds, those that are sorted at least. */
#define LEAST_SORTED	0.5

/* Of the pages of a table, those that are beyond so many bytes of memory. */
static double
beyond(const RelOptInfo *rel, double memory)
{
	double		table = (double) rel->pages * BLCKSZ;

	return table > memory ? 1 - memory / table : 0;
}

/* Of the pages of the table that a path reads, those that shared buffers do not hold. */
static double
unbuffered(const IndexPath *path)
{
	bool		temporary = get_rel_persistence(path->indexinfo->indexoid) == RELPERSISTENCE_TEMP;

	return beyond(path->path.parent, (double) (temporary ? num_temp_buffers : NBuffers) * BLCKSZ);
}

/*
 * Does a path scan an index that takes less than `cost`, that of a WiscSort, by what its pages say of where
 * its rows are?  What it is charged for the index itself, and for conditions, is core's.
 *
 * A WiscSort reads the table's pages in their order, which takes next to nothing where shared buffers hold
 * them.  It is charged less than it takes for the rows instead: if it has all, one makes up for the other.
 * Of fewer rows, it is taken off the costs.  If it has less than half of those that the index finds, it may
 * find them otherwise, and nothing is said.
 */
bool
ws_index_takes_less(PlannerInfo *root, const Path *path, Cost cost)
{
	const IndexPath *scan = (const IndexPath *) path;
	const RelOptInfo *rel = path->parent;
	double		rows;
	double		share;
	double		missing;
	double		random_page;
	double		seq_page;
	Cost		charge;
	Cost		visit;

	if (!IsA(path, IndexPath) || path->param_info != NULL)
		return false;
	rows = clamp_row_est(scan->indexselectivity * rel->tuples);
	if (rel->rows < LEAST_SORTED * rows)
		return false;
	share = path->parallel_workers > 0 ? Min(1, path->rows / Max(rel->rows, 1)) : 1;
	missing = unbuffered(scan);
	get_tablespace_page_costs(rel->reltablespace, &random_page, &seq_page);
	cost -= seq_page * rel->pages * (1 - Min(1, rel->rows / Max(rel->tuples, 1))) * (1 - missing);
	charge = scan->indextotalcost + rel->baserestrictcost.startup + path->pathtarget->cost.startup +
		share * rows * (cpu_tuple_cost + rel->baserestrictcost.per_tuple) +
		path->rows * path->pathtarget->cost.per_tuple;
	if (charge >= cost)
		return false;
	visit = share * VISIT * cpu_tuple_cost + READ * seq_page * missing +
		random_page * beyond(rel, ws_page_cache()->bytes);
	if (path->pathtype == T_IndexOnlyScan)
		visit *= 1 - rel->allvisfrac;
	return charge + rows * ws_index_scatter(root, scan) * visit < cost;
}
