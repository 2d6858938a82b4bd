/*-------------------------------------------------------------------------
 * explain.c - what EXPLAIN shows for a WiscSort node.
 *
 * Sort Key always, in the notation of core's Sort node.  With ANALYZE, once
 * the node has sorted: how it sorted, where the rows waited, and what that
 * took.  Every field is a property of the structured formats under the same
 * name; the names are fixed (README.md).
 *-------------------------------------------------------------------------
 */
#include "exec/exec.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/ruleutils.h"
#include "utils/typcache.h"

/* Appends what distinguishes one column's order from its type's default. */
static void
append_order(StringInfo buf, Node *expr, Oid sortop, Oid collation, bool nulls_first)
{
	Oid			type = exprType(expr);
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
	bool		reverse = false;

	if (OidIsValid(collation) && collation != get_typcollation(type))
	{
		char	   *name = get_collation_name(collation);

		if (name != NULL)
			appendStringInfo(buf, " COLLATE %s", quote_identifier(name));
	}
	if (sortop == entry->gt_opr)
	{
		appendStringInfoString(buf, " DESC");
		reverse = true;
	}
	else if (sortop != entry->lt_opr)
	{
		char	   *name = get_opname(sortop);

		if (name != NULL)
			appendStringInfo(buf, " USING %s", name);
		(void) get_equality_op_for_ordering_op(sortop, &reverse);
	}
	if (nulls_first != reverse)
		appendStringInfoString(buf, nulls_first ? " NULLS FIRST" : " NULLS LAST");
}

/*
 * The sort columns as columns of the plan `input`, as core's Sort shows them: a list of strings.  `context`
 * is that of the plan above it, for deparsing.
 */
List *
ws_sort_key_names(const Plan *input, int ncols, const AttrNumber *attnos, const Oid *sortops,
				  const Oid *collations, const bool *nulls_first, List *context, bool prefix)
{
	List	   *result = NIL;

	for (int i = 0; i < ncols; i++)
	{
		TargetEntry *tle = get_tle_by_resno(input->targetlist, attnos[i]);
		StringInfoData buf;
		Var		   *column;

		if (tle == NULL)
			elog(ERROR, "no tlist entry for key %d", attnos[i]);
		column = makeVarFromTargetEntry(OUTER_VAR, tle);
		initStringInfo(&buf);
		appendStringInfoString(&buf, deparse_expression((Node *) column, context, prefix, true));
		append_order(&buf, (Node *) column, sortops[i], collations[i], nulls_first[i]);
		result = lappend(result, buf.data);
	}
	return result;
}

/*
 * The same of a node's sort columns.
 */
List *
ws_sort_keys(WsSortState *state, List *context, bool prefix)
{
	const WsRequest *r = state->request;

	return ws_sort_key_names(outerPlanState(state)->plan, r->ncols, r->attnos, r->sortops, r->collations,
							 r->nulls_first, context, prefix);
}

static int64
kilobytes(int64 bytes)
{
	return (bytes + 1023) / 1024;
}

/* Of wiscsort.merge_read. */
static const char *const methods[] = {"read_order", "block", "double"};

/* Of wiscsort.io_method. */
static const char *const io_methods[WS_READER_KINDS] = {"sync", "libaio", "io_uring"};

/* What the first rows have taught of the keys. */
static void
show_learnt(const WsLearnt *learnt, ExplainState *es)
{
	if (learnt->coded > 0)
		ExplainPropertyInteger("Coded Columns", NULL, learnt->coded, es);
	if (learnt->ranged > 0)
		ExplainPropertyInteger("Ranged Columns", NULL, learnt->ranged, es);
	if (learnt->lettered > 0)
		ExplainPropertyInteger("Lettered Columns", NULL, learnt->lettered, es);
	if (learnt->guessed > 0)
		ExplainPropertyInteger("Guessed Columns", NULL, learnt->guessed, es);
	if (learnt->beginnings > 0)
		ExplainPropertyInteger("Coded Beginnings", NULL, learnt->beginnings, es);
}

static const char *
method_of(const WsSortStats *s)
{
	return s->runs.formed > 0 ? "wiscsort merge-pass" : "wiscsort one-pass";
}

/* Where rows waited that the store of this name had at first. */
static const char *
store_of(const WsSortStats *s, const char *name)
{
	return s->again ? psprintf("%s, then inline", name) : s->store.travels ? "inline" : name;
}

/* Of a parallel worker, in one line: as core's Sort, which shows less. */
static void
show_worker_line(int number, const WsSortStats *s, const char *store, ExplainState *es)
{
	appendStringInfoSpaces(es->str, es->indent * 2);
	appendStringInfo(es->str, "Worker %d:  Sort Method: %s  Record Store: %s  ", number, method_of(s),
					 store_of(s, store));
	appendStringInfo(es->str, "Memory: " INT64_FORMAT "kB  Disk: " INT64_FORMAT "kB  Rows: " UINT64_FORMAT,
					 kilobytes(s->memory), kilobytes(s->disk), s->runs.entries);
	if (s->runs.formed > 0)
		appendStringInfo(es->str, "  Runs: %d  Merge Passes: %d", s->runs.formed, s->runs.passes);
	appendStringInfoChar(es->str, '\n');
}

/* The same under the names that the leader's own figures have. */
static void
show_worker_group(int number, const WsSortStats *s, const char *store, ExplainState *es)
{
	ExplainOpenGroup("Sort", NULL, true, es);
	ExplainPropertyInteger("Worker Number", NULL, number, es);
	ExplainPropertyText("Sort Method", method_of(s), es);
	ExplainPropertyText("Record Store", store_of(s, store), es);
	ExplainPropertyInteger("Memory", "kB", kilobytes(s->memory), es);
	ExplainPropertyInteger("Disk", "kB", kilobytes(s->disk), es);
	ExplainPropertyInteger("IndexMap Entries", NULL, (int64) s->runs.entries, es);
	ExplainPropertyInteger("Runs", NULL, s->runs.formed, es);
	ExplainPropertyInteger("Merge Passes", NULL, s->runs.passes, es);
	ExplainCloseGroup("Sort", NULL, true, es);
}

/* The sorts of parallel workers, if there are any. */
static void
show_workers(const WsSortState *state, ExplainState *es)
{
	bool		open = false;

	for (int i = 0; i < ws_gathered_count(state); i++)
	{
		const char *store;
		const WsSortStats *s = ws_gathered_sort(state, i, &store);

		if (s == NULL)
			continue;
		if (es->format == EXPLAIN_FORMAT_TEXT)
		{
			show_worker_line(i, s, store, es);
			continue;
		}
		if (!open)
			ExplainOpenGroup("Worker Sorts", "Worker Sorts", false, es);
		open = true;
		show_worker_group(i, s, store, es);
	}
	if (open)
		ExplainCloseGroup("Worker Sorts", "Worker Sorts", false, es);
}

/* Why the rows of a node wait where they do. */
const char *
ws_store_choice(const WsSortState *state)
{
	return state->request->copies ? "memory does not hold the table, unlike when the plan was made" :
		state->request->why;
}

/* The sort of this process, which has sorted. */
static void
show_sort(WsSortState *state, ExplainState *es)
{
	WsSortStats *s = &state->stats;

	if (state->sort != NULL)
		ws_sort_stats(state->sort, s);	/* what has happened since it sorted */
	ExplainPropertyText("Sort Method", method_of(s), es);
	ExplainPropertyText("Record Store", store_of(s, state->store), es);
	if (s->again)
		ExplainPropertyInteger("Began Again At Row", NULL, (int64) s->rows_before, es);
	if (s->wanted > 0)
	{
		ExplainPropertyInteger("Bound", NULL, (int64) s->wanted, es);
		ExplainPropertyInteger("Rows Passed Over", NULL, (int64) s->passed, es);
	}
	ExplainPropertyInteger("Memory", "kB", kilobytes(s->memory), es);
	ExplainPropertyInteger("Disk", "kB", kilobytes(s->disk), es);
	if (es->verbose && state->request->bound != NULL)
	{
		ExplainPropertyInteger("Cache Size", "kB", kilobytes(state->request->found), es);
		ExplainPropertyText("Cache Bound", state->request->bound, es);
	}
	ExplainPropertyInteger("IndexMap Entries", NULL, (int64) s->runs.entries, es);
	if (es->verbose)
		show_learnt(&s->learnt, es);
	if (s->runs.in_order)
		ExplainPropertyBool("Rows in Order", true, es);
	ExplainPropertyInteger("Runs", NULL, s->runs.formed, es);
	if (es->verbose && s->runs.chains > 0)
		ExplainPropertyInteger("Run Chains", NULL, s->runs.chains, es);
	ExplainPropertyInteger("Merge Passes", NULL, s->runs.passes, es);
	if (s->runs.reads.blocks > 0)
	{
		ExplainPropertyInteger("Read Order Blocks", NULL, (int64) s->runs.reads.blocks, es);
		if (es->verbose)
			ExplainPropertyText("Merge Read", methods[s->runs.reads.method], es);
		ExplainPropertyText("I/O Method", io_methods[s->runs.reads.io], es);
		ExplainPropertyInteger("Read Stalls", NULL, (int64) s->runs.reads.stalls, es);
		if (es->timing)
			ExplainPropertyFloat("Read Stall Time", "ms", s->runs.reads.stalled_us / 1000.0, 3, es);
	}
	if (state->prefetched > 0)
		ExplainPropertyInteger("Probes Prefetched", NULL, (int64) state->prefetched, es);
	if (s->store.windows)
	{
		ExplainPropertyInteger("Window Rows", NULL, (int64) s->store.window_rows, es);
		ExplainPropertyInteger("Blocks Direct", NULL, s->store.blocks_direct, es);
		ExplainPropertyInteger("Blocks Buffered", NULL, s->store.blocks_buffered, es);
		if (s->store.ties_in_table)
			ExplainPropertyInteger("Tie Rows Fetched", NULL, s->store.tie_rows, es);
		if (s->store.persistent)
			ExplainPropertyBool("Persistent Memory", true, es);
	}
}

/* As ws_explain, of a sort whose keys are known, as a list of texts: reads no catalog. */
void
ws_explain_by(CustomScanState *node, List *keys, ExplainState *es)
{
	WsSortState *state = (WsSortState *) node;
	const WsSortStats *s = &state->stats;

	ExplainPropertyList("Sort Key", keys, es);
	if (es->verbose)
		ExplainPropertyText("Record Store Choice", ws_store_choice(state), es);
	if (es->verbose && state->request->ties != WS_TIES_NONE && !state->request->copies)
		ExplainPropertyText("Tie Keys", state->request->ties == WS_TIES_SPOOL ? "spool" :
							es->analyze && s->store.ties_spooled ? "table, then spool" : "table", es);
	if (es->analyze && state->has_stats)
		show_sort(state, es);
	if (es->analyze && !es->hide_workers)
		show_workers(state, es);
}

/* ExplainCustomScan callback. */
void
ws_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	List	   *context = set_deparse_context_plan(es->deparse_cxt, node->ss.ps.plan, ancestors);
	bool		prefix = es->verbose || ws_several_relations(es->rtable);

	ws_explain_by(node, ws_sort_keys((WsSortState *) node, context, prefix), es);
}
