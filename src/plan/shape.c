/*-------------------------------------------------------------------------
 * shape.c - the shape of a sort, out of what the planner knows; and what is left to core.
 *
 * A sort is not taken if it is too small (wiscsort.threshold), if a LIMIT makes it a heap of few
 * rows, or if it would be slower than core's:
 *
 *	- rows wait in a file or a table that would not stay in the page cache (cache.c): each is a random
 *	  read then.  Rows that travel inside runs do not wait
 *	- comparison functions would have much to decide (compared.c)
 *	- it is one of many, and perhaps of few rows: in a subquery, for each row outside
 *
 * Core charges all comparisons alike, and those by a comparison function too little.  So a sort
 * that needs these is charged just less than core's own: it takes the place of that, and of
 * no other kind of plan but core's parallel sort (rivals.c).
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include <float.h>
#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "exec/request.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "plan/cost.h"
#include "storage/fd.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"
#include "utils/syscache.h"

/* What a row takes in tuplesort's memory beside its data: SortTuple, header, chunk, or what is like it. */
#define TUPLESORT_OVERHEAD	(24 + 16 + Min(WS_CORE_CHUNK, 16))

/* The same of a value that is sorted alone: SortTuple. */
#define TUPLESORT_VALUE		24

/*
 * Of the bytes of all rows, those that keys for ties may take beside the table.  With more, a spool of rows
 * is not much larger, and the table is read as well (docs/decisions/03-record-stores.md).
 */
#define MOST_TIE_KEYS		0.5

/* Of the rows, those that a LIMIT is taken to ask for if the number is not known (preprocess_limit). */
#define UNKNOWN_SHARE		0.1

/* Of temp_file_limit, what a sort is to stay below. */
#define TEMP_SHARE			0.9

static double
sort_bytes(double rows, int width)
{
	return rows * (MAXALIGN(width) + MAXALIGN(SizeofHeapTupleHeader));
}

/*
 * Is a sort of `rows` rows of `width` bytes large enough to be considered at
 * all (wiscsort.threshold)?  enable_sort discourages this kind of sort as well.  Of rows that are an `only`
 * value core holds more in the same memory, if it sorts such values alone.
 */
bool
ws_sort_considered(double rows, int width, const Node *only)
{
	return ws_considered_with(work_mem, rows, width, only);
}

/* The same with a work_mem of `memory` kB. */
bool
ws_considered_with(int memory, double rows, int width, const Node *only)
{
	double		threshold = ws_threshold < 0 ? memory : ws_threshold;
	double		bytes = MAXALIGN(width) + TUPLESORT_OVERHEAD;

	if (!ws_enable || !enable_sort)
		return false;
	if (ws_threshold < 0 && only != NULL)
	{
		if (get_typbyval(exprType(only)))
			bytes = TUPLESORT_VALUE;
		else if (WS_CORE_SORTS_ANY_DATUM)
			bytes = TUPLESORT_VALUE + ws_core_datum_bytes(width);
	}
	return ws_debug_force || rows * bytes > threshold * 1024;
}

/*
 * The value that the rows of `input` are, and are sorted by; NULL if they have more columns, or get one:
 * core's Sort adds to them what it sorts by.
 */
const Node *
ws_only_value(const Path *input, List *pathkeys)
{
	Expr	   *only;

	if (list_length(input->pathtarget->exprs) != 1 || list_length(pathkeys) != 1)
		return NULL;
	only = linitial(input->pathtarget->exprs);
	return find_ec_member_matching_expr(linitial_node(PathKey, pathkeys)->pk_eclass, only,
										input->parent->relids) != NULL ? (const Node *) only : NULL;
}

/* The rows that a bound comes to, as the planner takes it where the number is not known; 0: all. */
static double
rows_wanted(double bound, double rows)
{
	return bound == WS_UNKNOWN_BOUND ? rows * UNKNOWN_SHARE : Max(bound, 0.0);
}

/* Do the rows that a LIMIT takes of `rows`, of `width` bytes, fit so many bytes of memory, as core sorts? */
bool
ws_bound_fits(double bound, double rows, int width, double memory)
{
	return sort_bytes(rows_wanted(bound, rows), width) <= memory;
}

/*
 * Is a sort of `rows` rows of `width` bytes, of which a LIMIT takes `bound`, better
 * left to core, which keeps a heap of so many rows?  `sortop` and `collation` are of the first key.  If the
 * number is not known, it may be a small one: that is as fast here, if the prefixes tell by which rows can be
 * passed over.  Those of texts may not; of numerics they do.  Where the sort would not be told, it is not.
 */
bool
ws_bound_is_cores(double bound, Oid sortop, Oid collation, double rows, int width)
{
	bool		descending;
	int			key_width;

	if (bound == WS_NO_BOUND)
		return false;
	if (bound == WS_UNTOLD_BOUND)
	{
		if (!ws_debug_force)
			return true;
		bound = WS_UNKNOWN_BOUND;
	}
	if (bound == WS_UNKNOWN_BOUND &&
		ws_key_encoding(sortop, collation, &descending, &key_width) != WS_ENC_NUMERIC && key_width <= 0)
		return true;
	return ws_bound_fits(bound, rows, width, work_mem * 1024.0);
}

/* The same of a sort by `pathkeys`. */
bool
ws_bound_leaves(double bound, List *pathkeys, double rows, int width)
{
	const PathKey *first = linitial_node(PathKey, pathkeys);

	return ws_bound_is_cores(bound, ws_less_than(first), first->pk_eclass->ec_collation, rows, width);
}

/* How many processes have a part each of what so many parallel workers, or none, are planned for. */
int
ws_processes(int workers)
{
	return workers == 0 ? 1 : workers + (parallel_leader_participation ? 1 : 0);
}

/* Is a parameter the result of an initplan, of this query level or of one outside? */
static bool
is_initplan_result(PlannerInfo *root, int paramid)
{
	ListCell   *lc;

	for (; root != NULL; root = root->parent_root)
		foreach(lc, root->init_plans)
			if (list_member_int(lfirst_node(SubPlan, lc)->setParam, paramid))
				return true;
	return false;
}

/* Does a condition compare with what a row of a query outside has? */
static bool
has_outer_value(Node *node, PlannerInfo *root)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan))		/* its parameters are its own, but for what is handed to it */
		return has_outer_value((Node *) ((SubPlan *) node)->args, root);
	if (IsA(node, Param))
		return ((Param *) node)->paramkind == PARAM_EXEC &&
			!is_initplan_result(root, ((Param *) node)->paramid);
	return expression_tree_walker(node, has_outer_value, root);
}

/* Is it known how many values an expression has? */
static bool
has_known_values(PlannerInfo *root, Node *expr)
{
	VariableStatData data;
	bool		unknown;

	examine_variable(root, expr, 0, &data);
	(void) get_variable_numdistinct(&data, &unknown);
	ReleaseVariableStats(data);
	return !unknown;
}

/* Is a condition one of equality with a value that is known to have so many rows on average? */
static bool
is_equality(PlannerInfo *root, const Expr *clause)
{
	const OpExpr *op = (const OpExpr *) clause;
	Node	   *left;
	Node	   *right;

	if (!IsA(clause, OpExpr) || list_length(op->args) != 2 ||
		!op_mergejoinable(op->opno, exprType(linitial(op->args))))
		return false;
	left = linitial(op->args);
	right = lsecond(op->args);
	return has_known_values(root, has_outer_value(left, root) ? right : left);
}

/*
 * Why a sort of rows of `relids` is left to core that is done again for each row of a query outside, NULL if
 * it is not.  Where a value of that row is compared, but for equality, PostgreSQL expects a third of a
 * table's rows, whatever the value is; and a 200th where it does not know how many values there are.  Where
 * there are none, core's plan is the better one.
 */
const char *
ws_again_refusal(PlannerInfo *root, Relids relids)
{
	int			relid = -1;
	ListCell   *lc;

	if (ws_debug_force || root->parent_root == NULL)
		return NULL;
	if (bms_is_empty(relids))	/* of a later step: all that the level scans */
		relids = root->all_baserels;
	while ((relid = bms_next_member(relids, relid)) >= 0)
	{
		const RelOptInfo *rel = relid < root->simple_rel_array_size ? root->simple_rel_array[relid] : NULL;

		if (rel != NULL && root->simple_rte_array[relid]->self_reference)
			return "it is done again for the rows of each step of a recursion, which may be few";
		if (rel != NULL && rel->subroot != NULL)
		{
			/* conditions on a subquery move into it */
			const char *below = ws_again_refusal(rel->subroot, NULL);

			if (below != NULL)
				return below;
		}
		if (rel != NULL)
			foreach(lc, rel->baserestrictinfo)
			{
				const Expr *clause = lfirst_node(RestrictInfo, lc)->clause;

				if (has_outer_value((Node *) clause, root) && !is_equality(root, clause))
					return "it is done again for each row of a query outside, and may be of few rows";
			}
	}
	return NULL;
}

/* The profile for a tablespace, or for none. */
static WsProfile
profile_of(Oid tablespace)
{
	WsProfile	p = ws_default_profile;

	p.seq_page = seq_page_cost;
	p.random_page = random_page_cost;
	if (OidIsValid(tablespace))
		get_tablespace_page_costs(tablespace, &p.random_page, NULL);
	p.cpu_tuple = cpu_tuple_cost;
	p.cpu_operator = cpu_operator_cost;
	return p;
}

/* What all shapes have in common; `sharers` sorts of parts of one input share the page cache. */
static WsShape
shape_of(const Path *input, int sharers)
{
	WsShape		s = {.rows = input->rows,
		.memory = work_mem * 1024.0,
		.cache = ws_page_cache()->bytes / sharers,
		.allowance = DBL_MAX};

	return s;
}

/* The shape of a sort of the input's rows, which are spooled unless they are nothing but keys. */
static WsShape
spool_shape(PlannerInfo *root, const Path *input, List *pathkeys)
{
	int			sharers = ws_sorts_at_once(root, input->parent, pathkeys);
	WsShape		s = shape_of(input, sharers);
	const char *bound;
	int64		allowance;

	s.store = ws_keys_alone(input, pathkeys) ? WS_KIND_KEYS : WS_KIND_SPOOL;
	if (s.store == WS_KIND_SPOOL)
		s.spool = ws_spool_bytes(input->rows, input->pathtarget->width);
	allowance = ws_spool_allowance(ws_processes(input->parallel_workers) * sharers, WS_FOUND_LATELY, &bound);
	if (allowance < PG_INT64_MAX)
		s.allowance = (double) allowance;
	/* who says how much the page cache holds is believed */
	if (s.allowance < DBL_MAX)
		s.cache = Max(s.cache, s.allowance);
	return s;
}

/*
 * How far the order of a column follows that of the rows in the table, from 0 to
 * 1, as ANALYZE found it.
 */
double
ws_correlation(Oid relid, AttrNumber column)
{
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(relid), Int16GetDatum(column),
										BoolGetDatum(false));
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

/* The shape of a sort that leaves the rows in the table: `input` has TIDs and keys. */
static WsShape
heap_shape(PlannerInfo *root, const Path *input, List *pathkeys, WsTieKeys ties, const RelOptInfo *rel,
		   Oid relid)
{
	WsShape		s = shape_of(input, ws_sorts_at_once(root, rel, pathkeys));

	s.store = WS_KIND_HEAP;
	s.allowance = DBL_MAX;
	if (ties == WS_TIES_SPOOL)
		s.spool = ws_spool_bytes(input->rows, input->pathtarget->width);
	s.row = ws_spool_bytes(1, rel->reltarget->width);
	s.table = (double) rel->pages * BLCKSZ;
	/* of the first key; the others count as in btcostestimate */
	s.ordered = ws_correlation(relid, lsecond_node(Var, input->pathtarget->exprs)->varattno) *
		(list_length(pathkeys) > 1 ? 0.75 : 1);
	/* who asks for it gets it where a spool would be better than core */
	s.asked = ws_record_store == WS_STORE_HEAP;
	return s;
}

/*
 * Would the sort's files come to temp_file_limit, or its files or its table not stay in the page cache?  Then
 * why, else NULL.  `bound` is that of a LIMIT.
 */
static const char *
file_refusal(const WsShape *s, double bound)
{
	double		entries = s->rows * sizeof(WsEntry);
	bool		spills = s->spool + entries > s->memory;
	double		file = spills && s->allowance == DBL_MAX ? s->spool : 0;
	double		temp = spills ? s->spool + (entries > s->memory ? entries : 0) : 0;
	double		taken = bound == WS_NO_BOUND ? s->rows :
		ws_rows_taken_in(s->rows, rows_wanted(bound, s->rows));
	const WsPageCache *cache = ws_page_cache();
	bool		table = s->table > WS_CACHE_SHARE * s->cache;

	/* under a LIMIT core writes all rows, and WiscSort only those that it takes in */
	if (temp_file_limit >= 0 && temp > TEMP_SHARE * 1024 * temp_file_limit && taken > s->rows / 2)
		return psprintf("about %.0f kB of temporary files would come near temp_file_limit, of %d kB",
						temp / 1024, temp_file_limit);
	if (!table && file <= WS_CACHE_SHARE * s->cache)
		return NULL;
	return psprintf("%s of %.0f kB would not stay in the page cache, of %.0f kB by %s",
					table ? "a table" : "a spool", (table ? s->table : file) / 1024,
					s->cache / 1024, cache->bound);
}

/* Why a sort with a spool of the rows of `input` is left to core; NULL if it is not. */
const char *
ws_spool_refusal(PlannerInfo *root, const Path *input, List *pathkeys, double bound)
{
	WsShape		s;

	if (ws_debug_force)
		return NULL;
	s = spool_shape(root, input, pathkeys);
	return file_refusal(&s, bound);
}

/*
 * The same for a sort with the table as its store: `input` has the TIDs and keys of its rows, and the keys
 * of ties are where `ties` says.
 */
const char *
ws_table_refusal(PlannerInfo *root, const Path *input, List *pathkeys, WsTieKeys ties, const RelOptInfo *rel,
				 Oid relid, double bound)
{
	WsShape		s;

	if (ws_debug_force)
		return NULL;
	s = heap_shape(root, input, pathkeys, ties, rel, relid);
	if (!s.asked && s.spool > MOST_TIE_KEYS * s.rows * s.row)
		return psprintf("keys for ties would take %.0f bytes a row, the row %.0f", s.spool / s.rows, s.row);
	if (ws_needs_no_cache(rel->reltablespace))
		s.table = 0;
	return file_refusal(&s, bound);
}

/*
 * Are there no columns in the rows of `input` but keys, which entries will tell?  Each key tells one, so
 * that two columns that a WHERE clause makes equal are more than one key.
 */
bool
ws_keys_alone(const Path *input, List *pathkeys)
{
	WsKeyWidth	keys = ws_key_widths(pathkeys);
	List	   *untold = list_copy(pathkeys);
	ListCell   *lc;

	/* each key tells one; looking for it takes long where a class has a member for each of many partitions */
	if (ws_record_store == WS_STORE_SPOOL || ws_record_store == WS_STORE_INLINE ||
		input->pathtarget->exprs == NIL || !keys.decodable || !ws_prefix_holds(&keys) ||
		list_length(input->pathtarget->exprs) > list_length(pathkeys))
		return false;
	foreach(lc, input->pathtarget->exprs)
	{
		PathKey    *key = NULL;
		ListCell   *lc2;

		foreach(lc2, untold)
		{
			key = lfirst_node(PathKey, lc2);
			if (find_ec_member_matching_expr(key->pk_eclass, lfirst(lc), input->parent->relids) != NULL)
				break;
			key = NULL;
		}
		if (key == NULL)
			return false;
		untold = list_delete_ptr(untold, key);
	}
	return true;
}

/* Sets the costs of `path`, which does what core's `sort` does. */
static void
set_costs(PlannerInfo *root, Path *path, const Path *sort, const Path *input, double bound, List *pathkeys,
		  WsShape *shape, Oid tablespace)
{
	WsProfile	profile = profile_of(tablespace);
	WsCost		c;

	shape->wanted = rows_wanted(bound, input->rows);
	shape->comparisons = ws_comparison_share(root, pathkeys, input->rows);
	c = ws_cost(shape, &profile);
	if (ws_debug_force)
		c.startup = c.run = 0;
	path->startup_cost = input->total_cost + c.startup;
	path->total_cost = path->startup_cost + c.run;
	if (!ws_debug_force && bound == WS_UNKNOWN_BOUND && sort->total_cost > 0)
	{
		/*
		 * Beside core's sort alone: what a LIMIT's parameter is worth, core learns from plans for its value.
		 * A sort that seems to be cheaper than these ends them, and workers' share in reading a few rows.
		 */
		double		less = WS_JUST_LESS + (1 - WS_JUST_LESS) / 2 *
			Min(1, (path->startup_cost + UNKNOWN_SHARE * c.run) / sort->total_cost);

		path->startup_cost = Max(path->startup_cost, less * sort->startup_cost);
		path->total_cost = Max(path->total_cost, less * sort->total_cost);
	}
	else if (!ws_debug_force && path->total_cost < sort->total_cost &&
		ws_any_stays_compared(root, pathkeys, input->rows))
	{
		/* what is cheaper by its own costs stays so */
		double		less = WS_JUST_LESS + (1 - WS_JUST_LESS) / 2 * path->total_cost / sort->total_cost;
		Cost		rival = ws_rival_cost(root, input, pathkeys, sort, shape->wanted);

		rival = Max(rival, path->total_cost);
		path->startup_cost = Max(path->startup_cost,
								 WS_JUST_LESS * sort->startup_cost * rival / sort->total_cost);
		/* but no sort is cheaper than the rows that it sorts, however dear these are */
		path->total_cost = Max(less * rival, input->total_cost + c.run);
		path->startup_cost = Min(path->startup_cost, path->total_cost);
	}
}

/*
 * Sets startup_cost and total_cost of `path`, a WiscSort of the rows of `input` by `pathkeys`, which
 * core's `sort` sorts as well, and of which a LIMIT takes `bound` rows.  path->rows is the input's already.
 * Are the rows expected to travel inside runs?
 */
bool
ws_cost_sort(PlannerInfo *root, Path *path, const Path *sort, const Path *input, List *pathkeys,
			 double bound)
{
	WsShape		s = spool_shape(root, input, pathkeys);

	set_costs(root, path, sort, input, bound, pathkeys, &s, InvalidOid);
	return s.spool > s.allowance && s.spool + s.rows * sizeof(WsEntry) > s.memory;
}

/*
 * The same for a sort that leaves the rows in the table `rel`: `input` has their
 * TIDs and keys, which are spooled if `ties` says so.
 */
void
ws_cost_heap_sort(PlannerInfo *root, Path *path, const Path *sort, const Path *input, double bound,
				  List *pathkeys, WsTieKeys ties, const RelOptInfo *rel, Oid relid)
{
	WsShape		s = heap_shape(root, input, pathkeys, ties, rel, relid);

	set_costs(root, path, sort, input, bound, pathkeys, &s, rel->reltablespace);
	/* debug_force says nothing of the store: auto is the spool then */
	if (ws_debug_force && ws_record_store == WS_STORE_AUTO)
		path->total_cost += 1.0;
}
