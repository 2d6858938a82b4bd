/*-------------------------------------------------------------------------
 * option.c - EXPLAIN (WISCSORT): beside each sort of a plan, why it is whose it is.
 *
 * What wiscsort.why() says of a query that was given as text, this says of a statement of any kind, with its
 * parameters: below a Sort why it was left to core, and below a WiscSort, as VERBOSE does, why its rows wait
 * where they do.  Of EXPLAIN EXECUTE, and of auto_explain, the plan was made before: what the planner noted
 * is not known any more, but settings, a LIMIT and the threshold are.
 *
 * From PostgreSQL 18 on, which has options of extensions and a hook to print beside a node.
 *-------------------------------------------------------------------------
 */
#include "advise/advise.h"

#include "exec/exec.h"

#ifdef WS_EXPLAIN_OPTIONS

#include "commands/defrem.h"

static explain_per_node_hook_type next_node_hook = NULL;

/* The sorts of the plan that is being printed.  The node at its top is printed first. */
static List *sorts = NIL;

/* EXPLAIN (WISCSORT) and EXPLAIN (WISCSORT off) */
static void
set_option(ExplainState *es, DefElem *option, ParseState *pstate)
{
	static char on;

	SetExplainExtensionState(es, WS_EXPLAIN_ID, defGetBoolean(option) ? &on : NULL);
}

static void
explain_node(PlanState *node, List *ancestors, const char *relationship, const char *plan_name,
			 ExplainState *es)
{
	ListCell   *lc;

	if (next_node_hook != NULL)
		next_node_hook(node, ancestors, relationship, plan_name, es);
	if (!ws_explain_flag(es))
		return;
	if (ancestors == NIL)
		sorts = ws_find_sorts(es->pstmt, node);
	foreach(lc, sorts)
	{
		const WsFoundSort *found = lfirst(lc);
		const char *reason;
		List	   *notes;
		bool		planned;

		if (found->node != node)
			continue;
		planned = ws_notes_of(es, &notes);
		reason = ws_reason(found, sorts, planned, notes);
		if (found->kind != WS_NODE_OURS)
			ExplainPropertyText("WiscSort", psprintf("left to core: %s", reason), es);
		else if (!es->verbose)
			ExplainPropertyText("Record Store Choice", reason, es);
	}
}

/* Adds the option, and joins the hook chain.  Called once. */
void
ws_install_explain_option(void)
{
	ws_register_explain_option("wiscsort", set_option);
	next_node_hook = explain_per_node_hook;
	explain_per_node_hook = explain_node;
}

#else

/* There are no options of extensions before 18. */
void
ws_install_explain_option(void)
{
}

#endif
