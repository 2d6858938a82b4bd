/*-------------------------------------------------------------------------
 * plan.h - where WiscSort enters the planner.
 *-------------------------------------------------------------------------
 */
#ifndef WS_PLAN_H
#define WS_PLAN_H

#include "guc.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "store/request.h"

/* ---- orderings.c ---- */
extern List *ws_useful_orderings(PlannerInfo *root, RelOptInfo *rel, bool parallel);
extern bool ws_ordering_computable(PlannerInfo *root, RelOptInfo *rel, List *pathkeys,
								   bool parallel);

/* ---- members.c ---- */
extern EquivalenceMember *ws_member_of(PlannerInfo *root, RelOptInfo *rel, EquivalenceClass *ec, Expr *expr);
extern bool ws_class_computable(PlannerInfo *root, RelOptInfo *rel, EquivalenceClass *ec, bool parallel);
extern int	ws_sorts_at_once(PlannerInfo *root, const RelOptInfo *rel, List *pathkeys);
extern bool ws_sorted_with_others(PlannerInfo *root, const RelOptInfo *rel, List *pathkeys, double bound);

/* ---- path.c ---- */
extern CustomPath *ws_wrap_sort(PlannerInfo *root, SortPath *sort, double bound);
extern CustomPath *ws_wrap_heap_sort(PlannerInfo *root, SortPath *sort, RelOptInfo *rel, WsTieKeys ties);
extern void ws_hand_on_keys(CustomPath *cpath);
extern void ws_set_reason(CustomPath *cpath, const char *reason);
extern bool ws_is_wiscsort(const Path *path);
extern bool ws_rows_are_keys(const WsRequest *request, List *tlist);

/* ---- paths.c ---- */
extern void ws_install_planner_hooks(void);

/* ---- heap.c ---- */
extern const char *ws_heap_refusal(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte);
extern bool ws_has_tids(const Path *path);
extern Path *ws_heap_input(PlannerInfo *root, RelOptInfo *rel, Path *scan, List *pathkeys);

/* ---- rewrite.c ---- */
typedef struct WsSaved
{
	Cost		startup;
	Cost		total;
} WsSaved;

extern void ws_rewrite_final(PlannerInfo *root, RelOptInfo *final_rel);

/* ---- finish.c ---- */
extern void ws_plan_has_node(void);
extern void ws_install_finish_hook(void);

/* ---- cache.c ---- */
typedef struct WsPageCache
{
	double		bytes;
	const char *bound;			/* what bounds it, in words */
} WsPageCache;

extern const WsPageCache *ws_page_cache(void);

/* Of what core's sort is charged, so that a WiscSort takes its place, and that of no other plan. */
#define WS_JUST_LESS	0.99

/* ---- reach.c ---- */
extern bool ws_reached_by_indexes(PlannerInfo *root);
extern bool ws_finds_partners(PlannerInfo *root, const RelOptInfo *other);

/* ---- groups.c ---- */
extern bool ws_can_hash_groups(const PlannerInfo *root);
extern bool ws_hashed_for_less(PlannerInfo *root);
extern bool ws_is_union_of_few(PlannerInfo *root);

/* ---- narrow.c ---- */
extern double ws_sorted_width(PlannerInfo *root);
extern bool ws_made_in_scan_order(PlannerInfo *root, const RelOptInfo *rel, bool early);
extern bool ws_narrower_when_sorted(PlannerInfo *root, const RelOptInfo *rel);

/* ---- workers.c ---- */
extern double ws_hand_over(int width);
extern void ws_charge_workers(PlannerInfo *root, const RelOptInfo *rel, CustomPath *cpath, const Path *sort,
							  int workers);
extern Cost ws_undercharge(PlannerInfo *root, const Path *sort);
extern Cost ws_hidden_result_cost(PlannerInfo *root, const Path *path);
extern Cost ws_hidden_cost(PlannerInfo *root, const Path *scan);
extern bool ws_workers_sort(PlannerInfo *root, RelOptInfo *rel, const CustomPath *serial);

/* ---- rivals.c ---- */
/* Of what core charges for an index in the order of the table, what its scan takes. */
#define WS_INDEX_SHARE		0.5

extern bool ws_in_table_order(PlannerInfo *root, Path *path);
extern const char *ws_presorted_refusal(PlannerInfo *root, RelOptInfo *rel, List *paths, List *pathkeys,
										bool compared, Cost cost, Cost core);
extern Path *ws_better_index(PlannerInfo *root, List *paths, const Path *sort);
extern const char *ws_members_refusal(const Path *input, List *pathkeys);
extern Cost ws_rival_cost(PlannerInfo *root, const Path *input, List *pathkeys, const Path *sort,
						  double wanted);

/* ---- locality.c ---- */
extern bool ws_index_takes_less(PlannerInfo *root, const Path *path, Cost cost);

/* ---- leaves.c ---- */
extern double ws_index_scatter(PlannerInfo *root, const IndexPath *path);

/* ---- settle.c ---- */
/* The paths of a query level, of which core will choose one. */
typedef struct WsRivals
{
	Cost	   *costs;			/* before WiscSorts were among them */
	int			place;			/* in the list, of the one that takes least; -1: there is none */
	Cost		least;			/* by the measure of WiscSort */
} WsRivals;

extern WsRivals ws_rivals(PlannerInfo *root, List *paths);
extern void ws_settle_rivals(PlannerInfo *root, List *paths, const WsRivals *rivals);

/* ---- why.c ---- */

/* Of a sort that was left to core. */
typedef struct WsNote
{
	char	   *reason;
	double		rows;
	int			nkeys;
	bool		cost;			/* it was not refused: its cost is the reason, if there is no other */
} WsNote;

extern void ws_note_left(const char *reason, double rows, const List *pathkeys);
extern void ws_note_costs(Cost cost, const Path *sort, double rows);
extern PlannedStmt *ws_plan_with_notes(Query *query, const char *text, List **notes);
extern bool ws_notes_of(const ExplainState *es, List **notes);
extern bool ws_note_planning(const Query *query);
extern void ws_note_planned(const Query *query, const PlannedStmt *stmt, bool before);
extern void ws_install_why_hooks(void);

/* ---- tiestats.c ---- */
extern WsTieKeys ws_tie_keys(PlannerInfo *root, const Path *input, List *pathkeys, double tuples);

/* The "<" operator of a key. */
static inline Oid
ws_less_than(const PathKey *pathkey)
{
	EquivalenceMember *em = linitial_node(EquivalenceMember, pathkey->pk_eclass->ec_members);

	return get_opfamily_member(pathkey->pk_opfamily, em->em_datatype, em->em_datatype,
							   BTLessStrategyNumber);
}

/* ---- nested.c ---- */
extern bool ws_key_is_nested(const PathKey *pathkey);
extern bool ws_nested_is_guessed(const PathKey *pathkey);
extern bool ws_nested_untold(PlannerInfo *root, const PathKey *pathkey);

/* ---- compared.c ---- */

extern WsKeyWidth ws_key_widths(List *pathkeys);
extern const char *ws_comparison_refusal(PlannerInfo *root, List *pathkeys, double rows);
extern bool ws_any_compared(List *pathkeys);
extern bool ws_any_stays_compared(PlannerInfo *root, List *pathkeys, double rows);
extern double ws_comparison_share(PlannerInfo *root, List *pathkeys, double rows);

/* ---- early.c ---- */

extern uint64 ws_planning_number(void);
extern bool ws_read_partly(PlannerInfo *root);
extern bool ws_planning_for(bool cursor);
extern void ws_planned_for(bool before);
extern void ws_keep_early_paths(PlannerInfo *root, RelOptInfo *rel);
extern void ws_install_join_hook(void);

/* ---- handed.c ---- */
extern void ws_drop_late_paths(const PlannerInfo *root, RelOptInfo *final_rel);

/* ---- lookups.c ---- */
extern void ws_install_lookup_hook(void);

/* ---- bound.c ---- */

/* How many rows a LIMIT above can ask for, where that is not a number. */
#define WS_NO_BOUND			(-1.0)
#define WS_UNTOLD_BOUND		(-2.0)	/* nor will a WiscSort be told */
#define WS_UNKNOWN_BOUND	0.0

extern bool ws_limit_told(Node *count, Node *offset, bool parallel);
extern double ws_limit_bound(Node *count, Node *offset, bool parallel);
extern double ws_bound_in_worker(PlannerInfo *root, double bound);
extern double ws_inherited_bound(PlannerInfo *root);
extern double ws_query_bound(PlannerInfo *root, bool parallel);
extern bool ws_is_optional(const PlannerInfo *root, Relids own, Relids other);
extern bool ws_limit_may_starve(PlannerInfo *root, const RelOptInfo *rel);

/* ---- shape.c ---- */

extern bool ws_sort_considered(double rows, int width, const Node *only);
extern bool ws_considered_with(int memory, double rows, int width, const Node *only);
extern int	ws_processes(int workers);
extern const Node *ws_only_value(const Path *input, List *pathkeys);
extern bool ws_bound_fits(double bound, double rows, int width, double memory);
extern bool ws_bound_is_cores(double bound, Oid sortop, Oid collation, double rows, int width);
extern bool ws_bound_leaves(double bound, List *pathkeys, double rows, int width);
extern bool ws_keys_alone(const Path *input, List *pathkeys);
extern double ws_correlation(Oid relid, AttrNumber column);
extern const char *ws_again_refusal(PlannerInfo *root, Relids relids);
extern const char *ws_spool_refusal(PlannerInfo *root, const Path *input, List *pathkeys, double bound);
extern const char *ws_table_refusal(PlannerInfo *root, const Path *input, List *pathkeys, WsTieKeys ties,
									const RelOptInfo *rel, Oid relid, double bound);
extern bool ws_cost_sort(PlannerInfo *root, Path *path, const Path *sort, const Path *input,
						 List *pathkeys, double bound);
extern void ws_cost_heap_sort(PlannerInfo *root, Path *path, const Path *sort, const Path *input,
							  double bound, List *pathkeys, WsTieKeys ties, const RelOptInfo *rel, Oid relid);

#endif							/* WS_PLAN_H */
