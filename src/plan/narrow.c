/*-------------------------------------------------------------------------
 * narrow.c - rows that are narrower where core sorts them than where they are scanned.
 *
 * SELECT left(body, 40) ... ORDER BY k: core makes its result's columns first, and sorts these.  A sorted
 * path of the table would sort the whole bodies, in files that core need not have.  So the sort of such a
 * level is core's to plan, and takes its place above the scan; rewrite.c makes it a WiscSort there
 * (docs/decisions/57-where-rows-are-narrow.md).
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"

/* Is a column of the result one by which windows are made? */
static bool
orders_windows(const PlannerInfo *root, const TargetEntry *item)
{
	ListCell   *lc;

	foreach(lc, root->parse->windowClause)
	{
		const WindowClause *window = lfirst_node(WindowClause, lc);

		if (get_sortgroupref_clause_noerr(item->ressortgroupref, window->partitionClause) != NULL ||
			get_sortgroupref_clause_noerr(item->ressortgroupref, window->orderClause) != NULL)
			return true;
	}
	return false;
}

/* The width of the rows that core's sort of a level takes: for windows, or of what the level returns. */
static int
sorted_width(PlannerInfo *root)
{
	PathTarget *target = create_empty_pathtarget();
	ListCell   *lc;

	foreach(lc, root->processed_tlist)
	{
		TargetEntry *item = lfirst_node(TargetEntry, lc);

		if (root->parse->hasWindowFuncs && !orders_windows(root, item))
			add_new_columns_to_pathtarget(target, pull_var_clause((Node *) item->expr,
																  PVC_RECURSE_WINDOWFUNCS |
																  PVC_INCLUDE_PLACEHOLDERS));
		else
			add_new_column_to_pathtarget(target, item->expr);
	}
	return set_pathtarget_cost_width(root, target)->width;
}

/*
 * Are the rows of `rel`, the only relation of its level, narrower when they are sorted?  Groups
 * are made of columns as they are, and under a LIMIT core makes dear columns of few rows alone.  Who wants
 * rows to stay in their table gets that.
 */
bool
ws_narrower_when_sorted(PlannerInfo *root, const RelOptInfo *rel)
{
	const Query *q = root->parse;

	if (ws_debug_force || ws_record_store == WS_STORE_HEAP ||
		bms_membership(root->all_baserels) != BMS_SINGLETON ||
		q->groupClause != NIL || q->groupingSets != NIL || q->hasAggs || q->havingQual != NULL ||
		q->hasTargetSRFs || q->limitCount != NULL || q->setOperations != NULL || q->commandType != CMD_SELECT)
		return false;
	return MAXALIGN(sorted_width(root)) < MAXALIGN(rel->reltarget->width);
}
