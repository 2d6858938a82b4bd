/*-------------------------------------------------------------------------
 * heap.c - sorting one table without copying its rows: the input for it.
 *
 * If what is sorted are rows of one table, as any of its scans that knows
 * their TIDs returns them, the sort's input need not have more than the TID
 * and the key columns.  The node then fetches each row by its TID, in output
 * order, from the table (store/heap.c); its own scan tuple is the whole row,
 * of which its target list takes what the query needs.
 *
 * Refused, because a row fetched later would not be the row that was scanned,
 * or not all of it:
 *	- tables that are not heaps; system catalogs; other sessions' tables
 *	- statements that lock or change rows: EvalPlanQual puts rows of its own in
 *	  the place of the scan
 *	- system columns other than ctid and tableoid: they may change meanwhile
 *	- old_snapshot_threshold (15, 16): rows may vanish under the snapshot
 * Left to the spool unless asked for, because a visit of a block then costs a copy of its page, or two:
 * tables that cannot be read directly (temporary ones; a limit on address space; direct_read = off).
 * Index-only scans and ordered distance scans have no TIDs of rows, and sort keys that are expressions
 * would be evaluated twice: the spool is for these.
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "access/sysattr.h"
#include "access/tableam.h"
#include "access/table.h"
#include "catalog/catalog.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "utils/rel.h"

/* Why the relation is no heap whose rows can be fetched by TID in a while, or not fast; NULL if it is. */
static const char *
table_refusal(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	const char *refusal = NULL;

	if (rel->rd_tableam != GetHeapamTableAmRoutine() || IsCatalogRelation(rel) || RELATION_IS_OTHER_TEMP(rel))
		refusal = "rows of this table cannot be fetched later";
	else if (ws_record_store == WS_STORE_AUTO &&
			 (ws_direct_read == WS_DIRECT_OFF || ws_direct_refused(rel)))
		refusal = "rows of this table cannot be read without its buffers";
	table_close(rel, NoLock);
	return refusal;
}

/* Does anything above the scan ask for a system column that may change? */
static bool
needs_changing_columns(RelOptInfo *rel)
{
	Bitmapset  *columns = NULL;
	int			column = -1;

	/* not attr_needed: it is empty for partitions */
	pull_varattnos((Node *) rel->reltarget->exprs, rel->relid, &columns);
	while ((column = bms_next_member(columns, column)) >= 0)
	{
		AttrNumber	attno = column + FirstLowInvalidHeapAttributeNumber;

		if (attno < 0 && attno != SelfItemPointerAttributeNumber &&
			attno != TableOidAttributeNumber)
			return true;
	}
	return false;
}

/*
 * Why a sort of this base relation cannot leave the rows where they are, for
 * EXPLAIN; NULL if it can.  The caller has found that it can be sorted at all.
 */
const char *
ws_heap_refusal(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	if (ws_record_store == WS_STORE_SPOOL)
		return "wiscsort.record_store is spool";
	if (ws_record_store == WS_STORE_INLINE)
		return "wiscsort.record_store is inline";
	if ((root->parse->commandType != CMD_SELECT && root->parse->commandType != CMD_INSERT) ||
		root->parse->rowMarks != NIL || root->rowMarks != NIL)
		return "the statement locks or changes rows";
	if (ws_snapshots_expire())
		return "old_snapshot_threshold lets rows vanish";
	if (needs_changing_columns(rel))
		return "the query reads system columns that may change";
	return table_refusal(rte->relid);
}

/* Does this path return rows of its relation as they are there? */
bool
ws_has_tids(const Path *path)
{
	switch (path->pathtype)
	{
		case T_IndexScan:
			/* with reordering, the executor's slot has no TID */
			return ((const IndexPath *) path)->indexorderbys == NIL;
		case T_SeqScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
			return true;
		default:
			return false;
	}
}

/* The column of the relation that is a key's value, or NULL. */
static Expr *
key_column(PlannerInfo *root, RelOptInfo *rel, PathKey *pathkey)
{
	ListCell   *lc;

	foreach(lc, rel->reltarget->exprs)
	{
		Expr	   *expr = lfirst(lc);

		if (IsA(expr, Var) && ((Var *) expr)->varattno > 0 &&
			ws_member_of(root, rel, pathkey->pk_eclass, expr) != NULL)
			return expr;
	}
	return NULL;
}

/*
 * The input of a sort by `pathkeys` that leaves the rows in the table: TID
 * first, then the key columns, of `scan`, which becomes part of it.  NULL if a
 * key is not a column, or is equal to the TID.
 */
Path *
ws_heap_input(PlannerInfo *root, RelOptInfo *rel, Path *scan, List *pathkeys)
{
	PathTarget *target = create_empty_pathtarget();
	Expr	   *place = (Expr *) makeVar(rel->relid, SelfItemPointerAttributeNumber, TIDOID, -1, InvalidOid,
										 0);
	ListCell   *lc;

	add_column_to_pathtarget(target, place, 0);
	foreach(lc, pathkeys)
	{
		PathKey    *pathkey = lfirst(lc);
		Expr	   *column = key_column(root, rel, pathkey);

		/* core sorts by the first column that is equal: it must not be the place */
		if (column == NULL ||
			ws_member_of(root, rel, pathkey->pk_eclass, place) != NULL)
			return NULL;
		add_column_to_pathtarget(target, column, 0);
	}
	return (Path *) create_projection_path(root, rel, scan, set_pathtarget_cost_width(root, target));
}
