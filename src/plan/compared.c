/*-------------------------------------------------------------------------
 * compared.c - how much of a sort comparisons are going to decide.
 *
 * What the prefixes of entries leave: ties, and columns that only a comparison function can order.  Text of
 * libc is told by its letters, or its order is guessed, and each guess is verified (letters.c, guess.c).  Few
 * values get codes (dictionary.c).  What is left takes long, because rows are fetched for each comparison,
 * which core's sort has in memory; so some sorts are left to core (docs/decisions/30-cost-model.md has the
 * figures).
 *-------------------------------------------------------------------------
 */
#include "plan/plan.h"

#include <float.h>
#include <math.h>

#include "catalog/pg_type_d.h"
#include "key/text.h"
#include "miscadmin.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "plan/cost.h"
#include "utils/selfuncs.h"

/* Shares of a comparison sort that are left to be done (see cost.c). */
#define ABBREVIATED_SHARE	0.3		/* ties that an abbreviation leaves */
#define ICU_SHARE			0.45	/* the same, and making sort keys */
#define TEXT_SHARE			0.15	/* ties that a prefix of text leaves */
#define GUESS_SHARE			0.5		/* verifying a guess, and merging by comparator */
#define COMPARATOR_SHARE	1.5		/* no prefix at all */

/*
 * Rows that share the values of the columns before, on average, above which a comparison function has
 * too much to decide; and rows that share the first one's.
 */
#define FEW_TIES			4.0
#define MANY_TIES			100.0

/* A dictionary may have this share of work_mem, and takes so many bytes a value (key/dictionary.c). */
#define CODES_SHARE			8
#define CODE_BYTES			64
#define MOST_CODES			8192

/* How a key's values become bytes. */
static WsEncoding
encoding_of(const PathKey *pathkey, int *width)
{
	bool		descending;

	return ws_key_encoding(ws_less_than(pathkey), pathkey->pk_eclass->ec_collation, &descending, width);
}

/* The widths of all keys, each with a byte for null, as they are in a prefix. */
WsKeyWidth
ws_key_widths(List *pathkeys)
{
	WsKeyWidth	all = WS_NO_WIDTH;
	ListCell   *lc;

	foreach(lc, pathkeys)
	{
		const PathKey *pathkey = lfirst_node(PathKey, lc);

		ws_key_width_add(&all, ws_less_than(pathkey), pathkey->pk_eclass->ec_collation, false);
	}
	return all;
}

/* Is the key text whose order libc decides, or made of it?  It is guessed. */
static bool
is_guessed(const PathKey *pathkey)
{
	bool		padded;

	return ws_key_is_text(ws_less_than(pathkey), &padded) ?
		ws_transformable(pathkey->pk_eclass->ec_collation) : ws_nested_is_guessed(pathkey);
}

/* Is it that, or one that no bytes tell anything of? */
static bool
is_compared(const PathKey *pathkey)
{
	bool		padded;
	int			width;

	if (encoding_of(pathkey, &width) != WS_ENC_NONE)
		return false;
	return is_guessed(pathkey) ||
		(!ws_key_is_nested(pathkey) && !ws_key_is_text(ws_less_than(pathkey), &padded));
}

/*
 * Rows that share the values of the keys from `first` to before n, on average.  An aggregate's results may be
 * all the same, for all that is known.
 */
static double
rows_alike(PlannerInfo *root, List *pathkeys, int first, int n, double rows)
{
	List	   *exprs = NIL;
	double		groups;

	for (int i = first; i < n; i++)
	{
		EquivalenceClass *ec = list_nth_node(PathKey, pathkeys, i)->pk_eclass;
		Expr	   *expr = linitial_node(EquivalenceMember, ec->ec_members)->em_expr;

		if (ec->ec_has_volatile)
			return 1;
		if (contain_agg_clause((Node *) expr) || contain_window_function((Node *) expr))
			continue;
		/* above a set operation, columns are of no relation that has statistics */
		if (bms_is_member(0, pull_varnos(root, (Node *) expr)))
			return rows / DEFAULT_NUM_DISTINCT;
		exprs = lappend(exprs, expr);
	}
	if (exprs == NIL)
		return rows;
	groups = estimate_num_groups(root, exprs, rows, NULL, NULL);
	return rows / Max(1, groups);
}

/* How many values may get codes. */
static double
most_codes(void)
{
	return Min(work_mem * 1024.0 / CODES_SHARE / CODE_BYTES, MOST_CODES);
}

/*
 * Is a comparison function to order the values of a key, of `rows` rows, for all that statistics say?  Not if
 * they are so few that they get codes.
 */
static bool
stays_compared(PlannerInfo *root, const PathKey *pathkey, double rows)
{
	Node	   *expr = (Node *) linitial_node(EquivalenceMember, pathkey->pk_eclass->ec_members)->em_expr;
	VariableStatData data;
	bool		unknown;
	double		values;

	if (!is_compared(pathkey))
		return false;
	if (pathkey->pk_eclass->ec_has_volatile || bms_is_member(0, pull_varnos(root, expr)))
		return true;
	examine_variable(root, expr, 0, &data);
	values = get_variable_numdistinct(&data, &unknown);
	ReleaseVariableStats(data);
	return unknown || values >= rows || values > most_codes();
}

/* The part of a comparison sort that the bytes of one key leave to be done; of `pathkeys` the first. */
static double
share_of(const PathKey *first, List *pathkeys)
{
	EquivalenceClass *ec = first->pk_eclass;
	bool		padded;
	int			width;

	switch (encoding_of(first, &width))
	{
		case WS_ENC_NONE:
			if (ws_key_is_nested(first))
				return is_guessed(first) ? GUESS_SHARE : ABBREVIATED_SHARE;
			if (!ws_key_is_text(ws_less_than(first), &padded))
				return COMPARATOR_SHARE;
			/* of libc, or of ICU, whose sort keys core abbreviates */
			return ws_transformable(ec->ec_collation) ? GUESS_SHARE : ICU_SHARE;
		case WS_ENC_TEXT:
		case WS_ENC_BPCHAR:
		case WS_ENC_NAME:
		case WS_ENC_BYTEA:
		case WS_ENC_BIT:
		case WS_ENC_INET:
		case WS_ENC_NUMERIC:
		case WS_ENC_INTERVAL:	/* fills the prefix, and has no room for a null byte */
			return TEXT_SHARE;
		default:
			{
				WsKeyWidth	all = ws_key_widths(pathkeys);

				return list_length(pathkeys) > 1 && !ws_prefix_holds(&all) ? TEXT_SHARE : 0;
			}
	}
}

/*
 * The part of a comparison sort that the prefixes leave to be done.  A key behind the first decides
 * between rows that share the values of those before: of `rows` rows, those that do.
 */
double
ws_comparison_share(PlannerInfo *root, List *pathkeys, double rows)
{
	double		share = 0;

	for (int i = 0; i < list_length(pathkeys); i++)
	{
		const PathKey *pathkey = list_nth_node(PathKey, pathkeys, i);
		double		own = share_of(pathkey, i == 0 ? pathkeys : NIL);
		double		more;

		if (is_compared(pathkey) && !stays_compared(root, pathkey, rows))
			own = Min(own, TEXT_SHARE);
		more = own - share;

		if (more > 0)
		{
			double		alike = i == 0 ? DBL_MAX : rows_alike(root, pathkeys, 0, i, rows);

			share += more * (1 - 1 / Max(1.0, alike));
		}
	}
	return share;
}

/* Does core's sort have abbreviations of the key's values, and WiscSort nothing? */
static bool
is_cores(const PathKey *pathkey)
{
	return is_compared(pathkey) && !is_guessed(pathkey) &&
		ws_abbreviates_otherwise(ws_less_than(pathkey), pathkey->pk_eclass->ec_collation);
}

/*
 * Do comparison functions come to decide so much that core, which has the values in memory, is
 * faster?
 */
static bool
comparisons_lose(PlannerInfo *root, List *pathkeys, double rows)
{
	for (int i = 0; i < list_length(pathkeys); i++)
	{
		const PathKey *pathkey = list_nth_node(PathKey, pathkeys, i);
		bool		nested = ws_key_is_nested(pathkey);
		double		alike;

		if (i == 0 && !nested && is_cores(pathkey) && stays_compared(root, pathkey, rows))
			return true;
		if (!nested && (!is_compared(pathkey) || is_guessed(pathkey)))
			continue;
		/* all alike: nothing is known */
		alike = rows_alike(root, pathkeys, i, i + 1, rows);
		if (alike < rows && rows / alike <= most_codes())
			continue;
		if (nested && !ws_nested_untold(root, pathkey))
			continue;
		if (i > 0 ? rows_alike(root, pathkeys, 0, i, rows) > FEW_TIES :
			nested || rows_alike(root, pathkeys, 0, 1, rows) > MANY_TIES)
			return true;
	}
	return false;
}

/*
 * Why a sort of `rows` rows by `pathkeys` is left to core whatever the store, for EXPLAIN; NULL if it
 * is not.
 */
const char *
ws_comparison_refusal(PlannerInfo *root, List *pathkeys, double rows)
{
	return ws_debug_force || !comparisons_lose(root, pathkeys, rows) ? NULL :
		"a comparison function would have many rows to decide about";
}

/* Is any of the keys ordered by its comparison function? */
bool
ws_any_compared(List *pathkeys)
{
	ListCell   *lc;

	foreach(lc, pathkeys)
		if (is_compared(lfirst_node(PathKey, lc)))
			return true;
	return false;
}

/*
 * Is a key an array or a composite value, of which a prefix has two elements or fields?  The same of many
 * values, and what ties take is not known.
 */
static bool
is_partly_told(PlannerInfo *root, const PathKey *pathkey)
{
	const EquivalenceMember *member = linitial_node(EquivalenceMember, pathkey->pk_eclass->ec_members);
	VariableStatData data;
	bool		unknown;
	double		values;

	if (member->em_datatype != ANYARRAYOID && member->em_datatype != RECORDOID)
		return false;
	if (pathkey->pk_eclass->ec_has_volatile || bms_is_member(0, pull_varnos(root, (Node *) member->em_expr)))
		return true;
	examine_variable(root, (Node *) member->em_expr, 0, &data);
	values = get_variable_numdistinct(&data, &unknown);
	ReleaseVariableStats(data);
	return unknown || values > most_codes();
}

/* The same, but for keys of which few values are expected; and with those that a prefix tells a part of. */
bool
ws_any_stays_compared(PlannerInfo *root, List *pathkeys, double rows)
{
	for (int i = 0; i < list_length(pathkeys); i++)
	{
		const PathKey *pathkey = list_nth_node(PathKey, pathkeys, i);

		if (stays_compared(root, pathkey, rows) ||
			(is_partly_told(root, pathkey) &&
			 (i == 0 || rows_alike(root, pathkeys, 0, i, rows) > FEW_TIES)))
			return true;
	}
	return false;
}
