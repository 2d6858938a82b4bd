/*-------------------------------------------------------------------------
 * query.c - a query that was given as text, and the sorts in its plan.
 *
 * advise() and why() take one query: SELECT, VALUES, TABLE, or WITH around one.  Whatever writes or locks
 * rows, has parameters, or is several statements, is refused before anything of it is planned.  The plan
 * is made as for the query itself, with all of the planner's hooks, and made ready for execution, which
 * checks the caller's rights; without `run` that is all that happens, as with EXPLAIN.
 *
 * Memory: the plan, in CurrentMemoryContext.  Errors: those of parsing, planning and permission.
 *-------------------------------------------------------------------------
 */
#include "advise/advise.h"

#include "access/xact.h"
#include "exec/exec.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parse_node.h"
#include "parser/parser.h"
#include "tcop/tcopprot.h"
#include "utils/resowner.h"
#include "utils/ruleutils.h"
#include "utils/snapmgr.h"

/* Raises the error of a statement that is not taken. */
static void
refuse(const char *message)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("%s", message),
			 errhint("Give one SELECT, VALUES or WITH query that only reads.")));
}

/* A ParseParamRefHook that refuses parameters. */
static Node *
refuse_parameter(ParseState *pstate, ParamRef *parameter)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_PARAMETER),
			 errmsg("the query has parameters"),
			 errhint("Put values in the places of $1 and the like."),
			 parser_errposition(pstate, parameter->location)));
	return NULL;
}

/* A ParserSetupHook. */
static void
refuse_parameters(ParseState *pstate, void *arg)
{
	pstate->p_paramref_hook = refuse_parameter;
}

/* Refuses queries, at any level, that write or lock rows. */
static bool
check_level(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;

		if (query->commandType != CMD_SELECT || query->hasModifyingCTE)
			refuse("the statement would write");
		if (query->rowMarks != NIL)
			refuse("the statement would lock rows");
		return query_tree_walker(query, check_level, context, 0);
	}
	return expression_tree_walker(node, check_level, context);
}

/* Parses `text`, which must be one query that only reads, and has no parameters.  Else it is an error. */
Query *
ws_accept_query(const char *text)
{
	List	   *parsed = pg_parse_query(text);
	RawStmt    *raw;
	List	   *queries;
	Query	   *query;

	if (list_length(parsed) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg(parsed == NIL ? "there is no statement" : "there are several statements"),
				 errhint("Give one SELECT, VALUES or WITH query that only reads.")));
	raw = linitial_node(RawStmt, parsed);
	if (!IsA(raw->stmt, SelectStmt))
		refuse("the statement is not a query");
	queries = pg_analyze_and_rewrite_withcb(raw, text, refuse_parameters, NULL, NULL);
	if (list_length(queries) != 1)
		refuse("the statement would write");
	query = linitial_node(Query, queries);
	if (query->commandType == CMD_UTILITY)
		refuse("the statement would write");	/* SELECT INTO */
	(void) check_level((Node *) query, NULL);
	return query;
}

/*
 * Does `work` on the query `text` in a subtransaction that may only read, and that is rolled back: functions
 * that write raise an error, those among them that the planner evaluates, too.  The place of an error in the
 * text is told as one of an internal query: it is none in the statement of the client.
 */
void
ws_reading(const char *text, void (*work) (void *arg), void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	XactReadOnly = true;		/* until the subtransaction ends */
	PG_TRY();
	{
		work(arg);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	if (error != NULL)
	{
		if (error->cursorpos > 0 && error->internalquery == NULL)
		{
			error->internalpos = error->cursorpos;
			error->internalquery = pstrdup(text);
			error->cursorpos = 0;
		}
		ReThrowError(error);
	}
}

/*
 * Makes a plan ready: to be run and counted, if `run`, else to be looked at.  The caller ends it.  What is
 * not run is no execution, as which other libraries' hooks would count and log it.
 */
QueryDesc *
ws_query_begin(PlannedStmt *stmt, const char *text, bool run)
{
	QueryDesc  *desc = CreateQueryDesc(stmt, text, GetActiveSnapshot(), InvalidSnapshot, None_Receiver,
									   NULL, NULL, run ? INSTRUMENT_TIMER : 0);

	if (run)
		ExecutorStart(desc, 0);
	else
		standard_ExecutorStart(desc, EXEC_FLAG_EXPLAIN_ONLY);
	return desc;
}

/* Ends it: if it was to be run, after ws_run_measured. */
void
ws_query_end(QueryDesc *desc)
{
	if (desc->estate->es_top_eflags & EXEC_FLAG_EXPLAIN_ONLY)
		standard_ExecutorEnd(desc);
	else
		ExecutorEnd(desc);
	FreeQueryDesc(desc);
}

/* On the way down a plan. */
typedef struct Search
{
	List	   *deparse;
	bool		prefix;
	bool		parallel;		/* the plan has parallel workers, somewhere */
	List	   *ancestors;
	const PlanState *parent;
	double		bound;
	const Limit *limit;			/* that it is of */
	int			processes;
	int			outside;		/* the same of the node above */
	Bitmapset  *seen;			/* numbers of SubPlans: several nodes may refer to one */
	List	   *found;
} Search;

/* Is there something in a clause that the planner has no number for? */
static bool
is_unforeseen(Node *clause)
{
	return contain_volatile_functions(clause) || contain_subplans(clause);
}

/* How many rows a LIMIT takes of a sort. */
static double
limit_of(const Limit *limit)
{
	double		bound;

	if (limit->limitOption == LIMIT_OPTION_WITH_TIES)
		return WS_NO_BOUND;
	bound = ws_limit_bound(limit->limitCount, limit->limitOffset, false);
	/* of clauses that are evaluated anew, what the planner expects counts, if it expects something */
	if (bound == WS_UNTOLD_BOUND && !is_unforeseen(limit->limitCount) && !is_unforeseen(limit->limitOffset))
		return Max(limit->plan.plan_rows, 1.0);
	return bound;
}

static void
add_sort(Search *search, PlanState *node, WsSortNode kind)
{
	WsFoundSort *found = palloc0(sizeof(WsFoundSort));
	List	   *context = set_deparse_context_plan(search->deparse, node->plan, search->ancestors);
	StringInfoData keys;
	ListCell   *lc;

	found->node = node;
	found->kind = kind;
	found->bound = search->bound;
	found->processes = search->processes;
	found->threads = !search->parallel;
	if (kind == WS_NODE_OURS)
	{
		const WsRequest *r = ((WsSortState *) node)->request;

		found->ncols = r->ncols;
		found->attnos = r->attnos;
		found->sortops = r->sortops;
		found->collations = r->collations;
		found->nulls_first = r->nulls_first;
	}
	else
	{
		Sort	   *sort = (Sort *) node->plan; /* an IncrementalSort begins with one */

		found->ncols = sort->numCols;
		found->attnos = sort->sortColIdx;
		found->sortops = sort->sortOperators;
		found->collations = sort->collations;
		found->nulls_first = sort->nullsFirst;
	}
	initStringInfo(&keys);
	foreach(lc, ws_sort_key_names(outerPlan(node->plan), found->ncols, found->attnos, found->sortops,
								  found->collations, found->nulls_first, context, search->prefix))
		appendStringInfo(&keys, "%s%s", keys.len > 0 ? ", " : "", (char *) lfirst(lc));
	found->keys = keys.data;
	search->found = lappend(search->found, found);
}

/* Does the bound of a LIMIT reach the node's input (ExecSetTupleBound)? */
static bool
passes_bound(const PlanState *node)
{
	switch (nodeTag(node))
	{
		case T_AppendState:
		case T_MergeAppendState:
		case T_GatherState:
		case T_GatherMergeState:
			return true;
		case T_ResultState:
		case T_SubqueryScanState:
			return node->qual == NULL;
		default:
			return false;
	}
}

/* That of the SubPlans whose plan `node` is, or NULL.  They are walked with the inputs of their node. */
static SubPlan *
subplan_of(const List *subplans, const PlanState *node)
{
	ListCell   *lc;

	foreach(lc, subplans)
	{
		const SubPlanState *sps = lfirst(lc);

		if (sps->planstate == node)
			return sps->subplan;
	}
	return NULL;
}

static bool
search_node(PlanState *node, void *arg)
{
	Search	   *search = arg;
	Search		before = *search;
	SubPlan    *subplan = NULL;

	if (search->parent != NULL)
	{
		subplan = subplan_of(search->parent->initPlan, node);
		if (subplan != NULL)
			search->processes = search->outside;	/* the leader alone runs it */
		else
			subplan = subplan_of(search->parent->subPlan, node);
	}
	if (subplan != NULL)
	{
		if (bms_is_member(subplan->plan_id, search->seen))
		{
			search->processes = before.processes;
			return false;
		}
		search->seen = bms_add_member(search->seen, subplan->plan_id);
		search->bound = WS_NO_BOUND;
		/* what it is given by the query around it has names there (find_param_referent) */
		search->ancestors = lcons(subplan, search->ancestors);
	}
	if (IsA(node, SortState))
		add_sort(search, node, WS_NODE_CORE);
	else if (IsA(node, IncrementalSortState))
		add_sort(search, node, WS_NODE_INCREMENTAL);
	else if (IsA(node, CustomScanState) && ((CustomScan *) node->plan)->methods == &ws_scan_methods)
		add_sort(search, node, WS_NODE_OURS);

	if (IsA(node, LimitState))
	{
		search->limit = (const Limit *) node->plan;
		search->bound = limit_of(search->limit);
	}
	else if (!passes_bound(node))
		search->bound = WS_NO_BOUND;
	search->outside = search->processes;
	if (IsA(node, GatherState))
	{
		const Gather *gather = (const Gather *) node->plan;

		search->processes = gather->single_copy ? gather->num_workers : ws_processes(gather->num_workers);
	}
	else if (IsA(node, GatherMergeState))
		search->processes = ws_processes(((const GatherMerge *) node->plan)->num_workers);
	if ((IsA(node, GatherState) || IsA(node, GatherMergeState)) && search->bound == WS_UNKNOWN_BOUND &&
		!ws_limit_told(search->limit->limitCount, search->limit->limitOffset, true))
		search->bound = WS_UNTOLD_BOUND;
	search->parent = node;
	search->ancestors = lcons(node->plan, search->ancestors);
	(void) planstate_tree_walker(node, search_node, search);
	search->ancestors = list_delete_first(search->ancestors);
	if (subplan != NULL)
		search->ancestors = list_delete_first(search->ancestors);
	search->parent = before.parent;
	search->bound = before.bound;
	search->limit = before.limit;
	search->processes = before.processes;
	search->outside = before.outside;
	return false;
}

/* What rows of a target list are, if they are one value: core sorts such values alone.  Else NULL. */
const Node *
ws_only_target(const List *targetlist)
{
	return list_length(targetlist) != 1 ? NULL : (Node *) linitial_node(TargetEntry, targetlist)->expr;
}

/* All sorts of a plan, from its top to its bottom: a list of WsFoundSort. */
List *
ws_find_sorts(PlannedStmt *stmt, PlanState *top)
{
	List	   *rtable = stmt->rtable;
	Bitmapset  *all = bms_add_range(NULL, 1, list_length(rtable));
	Search		search = {.parallel = stmt->parallelModeNeeded, .bound = WS_NO_BOUND, .processes = 1,
						  .outside = 1};

	search.deparse = deparse_context_for_plan_tree(stmt,
												   select_rtable_names_for_explain(rtable, all));
	search.prefix = ws_several_relations(rtable);
	(void) search_node(top, &search);
	return search.found;
}
