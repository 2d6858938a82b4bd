/*-------------------------------------------------------------------------
 * recommend.c - the work_mem to be recommended for a sort, and why.
 *
 * More memory is recommended where it saves a tenth of the sort's time or more: what one pass takes, or what
 * merging once takes, if one pass saves little beside that, or would take more than one sort should have.
 * With the setting the planner has to have WiscSort sort still.
 *
 * Memory: the reason, in CurrentMemoryContext.  Nothing is raised.
 *-------------------------------------------------------------------------
 */
#include "advise/advise.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/guc.h"

#define LARGEST_ADVICE		(1024 * 1024)	/* kB: more is not recommended */
#define LEAST_GAIN			0.1		/* of a sort's time, for which more memory is recommended */

/* Does core keep a heap of the rows that a LIMIT asks for? */
bool
ws_is_top_n(const WsAdvised *a)
{
	const WsFoundSort *found = a->found;

	return found->kind == WS_NODE_CORE && found->bound != WS_NO_BOUND &&
		ws_bound_is_cores(found->bound, found->sortops[0], found->collations[0], a->facts.rows, a->width);
}

/* A setting that is at least `kb`, and easy to remember. */
static int
round_up(int kb)
{
	int			unit = kb >= 16 * 1024 ? 1024 : 64;

	return kb > MAX_KILOBYTES - unit ? MAX_KILOBYTES : (kb + unit - 1) / unit * unit;
}

/* The factor of who sorts with so much memory, kB: between those of two settings in proportion. */
static double
factor_at(const WsAdvised *a, int kb)
{
	const double *factors = a->found->kind == WS_NODE_OURS ? a->here : a->core;
	int			i = 0;
	double		share;

	while (i < WS_SETTINGS - 2 && kb > ws_settings[i + 1])
		i++;
	share = log((double) kb / ws_settings[i]) / log((double) ws_settings[i + 1] / ws_settings[i]);
	share = Max(0.0, Min(share, 1.0));
	return factors[i] * (1 - share) + factors[i + 1] * share;
}

/* Does the planner, which may expect fewer rows than there are, still prefer WiscSort with `memory` kB? */
static bool
stays_ours(const WsAdvised *a, int memory)
{
	return ws_considered_with(memory, outerPlan(a->found->node->plan)->plan_rows, a->rows->plan_width,
							  ws_only_target(a->rows->targetlist));
}

/* What a sort does with so much memory, kB, by who sorts; *seconds is how long it takes. */
static WsSortForecast
forecast(const WsAdvised *a, int kb, double *seconds)
{
	WsSortForecast f = a->found->kind == WS_NODE_OURS ? ws_forecast_here(&a->facts, (Size) kb * 1024) :
		ws_forecast_core(&a->facts, (Size) kb * 1024);

	*seconds = f.seconds * factor_at(a, kb);
	return f;
}

/* Why so much memory is not recommended for one pass, or NULL: it is. */
static char *
objection(const WsAdvised *a, int kb, int least, double gain)
{
	bool		ours = a->found->kind == WS_NODE_OURS;
	const char *one_pass = ours ? "one-pass" : "in memory";

	if (kb > LARGEST_ADVICE)
		return psprintf("the sort would be %s with %d kB, which is more than one sort should have",
						one_pass, least);
	if (gain < LEAST_GAIN)
		return psprintf("the sort would be %s with %d kB, and take %.0f %% less time", one_pass, least,
						Max(0.0, gain * 100));
	if (ours && !stays_ours(a, kb))
		return psprintf("the sort would be %s with %d kB, but the planner expects only %.0f rows, and "
						"would leave them to PostgreSQL's sort then", one_pass, least,
						outerPlan(a->found->node->plan)->plan_rows);
	return NULL;
}

/* The work_mem to be recommended for a sort that takes `least` for one pass; *reason is set. */
int
ws_recommend(const WsAdvised *a, int least, char **reason)
{
	bool		ours = a->found->kind == WS_NODE_OURS;
	int			advice = round_up(least);
	double		now_seconds;
	double		seconds;
	double		merged_seconds;
	WsSortForecast now = forecast(a, work_mem, &now_seconds);
	WsSortForecast then = forecast(a, advice, &seconds);

	if (ws_is_top_n(a))
		*reason = "a LIMIT takes few of the rows, of which PostgreSQL keeps no more than these";
	else if (a->found->kind == WS_NODE_INCREMENTAL)
		*reason = "rows come in the order of the first keys, and are sorted a group at a time";
	else if (now.in_memory)
		*reason = "the sort is in memory with the present work_mem";
	else if (now.one_pass)
		*reason = "the sort is one-pass with the present work_mem";
	else
	{
		*reason = objection(a, advice, least, 1 - seconds / now_seconds);
		if (ours && now.passes > 1)
		{
			/* merging once may take a hundredth of that memory, and is nearly as good */
			int			once = round_up(ws_least_work_mem(&a->facts, ws_forecast_here, 1));
			WsSortForecast merged = forecast(a, once, &merged_seconds);

			if (objection(a, once, once, 1 - merged_seconds / now_seconds) == NULL &&
				(*reason != NULL || seconds > merged_seconds * (1 - LEAST_GAIN)))
			{
				*reason = psprintf("the sort merges its runs once with that instead of %d times, and takes "
								   "about %.0f %% less time and %.0f kB of temporary files instead of "
								   "%.0f kB", now.passes, (1 - merged_seconds / now_seconds) * 100,
								   merged.temp / 1024, now.temp / 1024);
				return once;
			}
		}
		if (*reason != NULL)
			return work_mem;
		*reason = psprintf("the sort is %s with that, and takes about %.0f %% less time and %.0f kB of "
						   "temporary files instead of %.0f kB", ours ? "one-pass" : "in memory",
						   (1 - seconds / now_seconds) * 100, then.temp / 1024, now.temp / 1024);
		return advice;
	}
	return work_mem;
}
