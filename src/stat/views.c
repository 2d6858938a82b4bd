/*-------------------------------------------------------------------------
 * views.c - what SQL sees of the statistics and of sorts that run.
 *
 * Views of the extension's script give the columns their units.  Who may not see what a role does sees that
 * there is something, and whose.
 *
 * When a sort is going to end is a guess: the input takes as long for each row as until now, and what comes
 * behind as long as was foreseen (exec/foresee.c), times how far off that was in earlier sorts of the query,
 * or of any query.
 *
 * Memory bound: that of the result.
 *-------------------------------------------------------------------------
 */
#ifndef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#endif

#include "stat/stat.h"

#include <math.h>

#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

/* Columns before the counts, and all of them. */
#define STAT_KEYS		3
#define STAT_COLUMNS	(STAT_KEYS + WS_SHOWN + 1)
#define PROGRESS_COLUMNS	19

/* Attempts to read a slot while its backend changes it. */
#define ATTEMPTS		1000

/* Of the input, what has to have been read before it says how many rows there are. */
#define LEAST_SHARE		0.01

/* When so many times the planner's rows have come, these count no more. */
#define JUST_MORE		1.02

/*
 * A scan without rows for so long, in microseconds, and so many times as long as WS_LOOK_ROWS of them took,
 * has none; and what its rest then takes, as a share of what it would with rows.
 */
#define SILENCE			10000.0
#define SILENT			20.0
#define SCAN_ALONE		0.4

/* Of the batches of a hash join, the share whose time is guessed, beside those that have been seen. */
#define GUESSED			0.125

/* A share of the output that is 1/TRUST says how long all of it takes. */
#define FURTHEST		1e17	/* microseconds from now on in which a sort may end */
#define TRUST			5

static WsShared *
require_shared(void)
{
	WsShared   *shared = ws_shared();

	if (shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("wiscsort has no shared memory for statistics"), errhint("%s", ws_why_not_shared())));
	return shared;
}

/* May this session see what a role does? */
static bool
may_see(Oid role)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		(OidIsValid(role) && has_privs_of_role(GetUserId(), role));
}

/* The key as three columns. */
static void
put_key(const WsStatKey *key, bool seen, Datum *values, bool *nulls)
{
	values[0] = ObjectIdGetDatum(key->database);
	nulls[0] = !OidIsValid(key->database);
	values[1] = ObjectIdGetDatum(key->role);
	nulls[1] = !OidIsValid(key->role);
	values[2] = Int64GetDatum(key->query);
	nulls[2] = key->query == 0 || !seen;
}

/* A consistent copy of a row.  The caller has the lock. */
static void
copy_row(WsStatRow *row, WsStatRow *copy)
{
	SpinLockAcquire(&row->mutex);
	*copy = *row;
	SpinLockRelease(&row->mutex);
}

PG_FUNCTION_INFO_V1(wiscsort_stat_rows);
PGDLLEXPORT Datum wiscsort_stat_rows(PG_FUNCTION_ARGS);

/*
 * wiscsort.stat_rows() returns a row for each database, role and query of which sorts have been counted.
 */
Datum
wiscsort_stat_rows(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = ws_return_rows(fcinfo, STAT_COLUMNS);
	WsShared   *shared = require_shared();
	WsStatRow  *rows = palloc(WS_STAT_ROWS * sizeof(WsStatRow));
	int			n = 0;

	LWLockAcquire(&shared->lock, LW_SHARED);
	copy_row(&shared->rows[0], &rows[n]);
	n += rows[n].counts[WS_SORTS] + rows[n].counts[WS_ABORTED] + rows[n].counts[WS_LEFT] > 0;
	for (int b = 0; b < WS_STAT_BUCKETS; b++)
		for (int i = shared->buckets[b]; i >= 0; i = shared->rows[i].next)
			copy_row(&shared->rows[i], &rows[n++]);
	LWLockRelease(&shared->lock);
	for (int i = 0; i < n; i++)
	{
		const WsStatRow *row = &rows[i];
		bool		seen = may_see(row->key.role);
		Datum		values[STAT_COLUMNS];
		bool		nulls[STAT_COLUMNS];
		Datum		needs[WS_NEEDS];

		put_key(&row->key, seen, values, nulls);
		memset(nulls + STAT_KEYS, !seen, STAT_COLUMNS - STAT_KEYS);
		for (int j = 0; j < WS_SHOWN; j++)
			values[STAT_KEYS + j] = Int64GetDatum(row->counts[j]);
		for (int j = 0; j < WS_NEEDS; j++)
			needs[j] = Int64GetDatum(row->counts[WS_NEED + j]);
		values[STAT_COLUMNS - 1] = PointerGetDatum(construct_array(needs, WS_NEEDS, INT8OID, sizeof(int64),
																   true, TYPALIGN_DOUBLE));
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(wiscsort_stat_reset);
PGDLLEXPORT Datum wiscsort_stat_reset(PG_FUNCTION_ARGS);

/* wiscsort.stat_reset() forgets all counts, and returns of how many sorts they were. */
Datum
wiscsort_stat_reset(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(ws_stat_clear(require_shared()));
}

PG_FUNCTION_INFO_V1(wiscsort_stat_info);
PGDLLEXPORT Datum wiscsort_stat_info(PG_FUNCTION_ARGS);

/* wiscsort.stat_info_row() returns since when sorts are counted, and how many rows were given up. */
Datum
wiscsort_stat_info(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = ws_return_rows(fcinfo, 3);
	WsShared   *shared = require_shared();
	Datum		values[3];
	bool		nulls[3] = {0};

	LWLockAcquire(&shared->lock, LW_SHARED);
	values[0] = TimestampTzGetDatum(shared->since);
	values[1] = Int64GetDatum(shared->folded);
	LWLockRelease(&shared->lock);
	values[2] = Int32GetDatum(WS_STAT_ROWS - 1);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	return (Datum) 0;
}

/* ---- progress ---- */

/* Copies a slot; false if no sort is shown in it. */
static bool
copy_slot(const volatile WsSlot *slot, WsSlot *copy)
{
	for (int i = 0; i < ATTEMPTS; i++)
	{
		uint32		before = slot->change;

		pg_read_barrier();
		*copy = *(const WsSlot *) slot;
		pg_read_barrier();
		if (before == slot->change && (before & 1) == 0)
			return copy->pid != 0;
		CHECK_FOR_INTERRUPTS();
		pg_usleep(1);
	}
	return false;
}

/* Adds the counts of a row. */
static void
add_counts(WsStatRow *row, int64 *counts)
{
	WsStatRow	copy;

	copy_row(row, &copy);
	ws_counts_add(counts, copy.counts);
}

/*
 * By how much forecasts were off: of the query, or else of all.  It is the mean of the logarithms, so that
 * one sort whose rows nobody took for an hour says little.  What rows from their table take says nothing of
 * others, nor the other way round.
 */
static double
off_by(WsShared *shared, const WsSlot *slot)
{
	const WsStatKey *key = &slot->key;
	int			seen = WS_FORESEEN + slot->table;
	int64		counts[WS_COUNTS] = {0};
	WsStatRow  *row;

	LWLockAcquire(&shared->lock, LW_SHARED);
	row = key->query != 0 ? ws_stat_find(shared, key) : NULL;
	if (row != NULL)
		add_counts(row, counts);
	if (counts[seen] == 0)
	{
		add_counts(&shared->rows[0], counts);
		for (int b = 0; b < WS_STAT_BUCKETS; b++)
			for (int i = shared->buckets[b]; i >= 0; i = shared->rows[i].next)
				add_counts(&shared->rows[i], counts);
	}
	LWLockRelease(&shared->lock);
	if (counts[seen] == 0)
		return 1;
	return exp2((double) counts[WS_FORESEEN_LOG + slot->table] / 1024 / (double) counts[seen]);
}

/*
 * Has the scan below come to where few rows pass its conditions?  Then it is going on, and nothing comes of
 * that; *silent is set to the microseconds for which it has.  If the inner side of a nested loop makes many
 * of each row, it may be that which takes so long.
 */
static bool
has_thinned(const WsSlot *slot, TimestampTz now, double *silent)
{
	const WsFigures *f = &slot->figures;

	*silent = (double) (now - f->looked_at);
	return f->looked_at > 0 && f->share_read >= LEAST_SHARE && f->share_read < 1 && f->pass == 0 &&
		f->rows_each <= 1 && f->batches == 0 &&
		*silent > SILENCE + SILENT * WS_LOOK_ROWS * (double) (f->looked_at - slot->first_row) /
		(double) f->rows_in;
}

/* How many rows the input will have: for the rest as many as for the share that has been read. */
static double
rows_expected(const WsSlot *slot, TimestampTz now)
{
	const WsFigures *f = &slot->figures;
	double		silent;

	if (f->stage != WS_STAGE_INPUT || has_thinned(slot, now, &silent))
		return (double) f->rows_in;
	if (f->looked_rows == 0)
		return Max(slot->expected, (double) f->rows_in);
	/* of what a hash join in batches has read, the rows of one batch have come */
	if (f->batches > 0 ? f->share_done >= LEAST_SHARE && f->share_read > 0 : f->share_read >= LEAST_SHARE)
	{
		double		told = Max((double) f->looked_rows / Min(f->share_read, 1), (double) f->rows_in);
		double		least = Max(slot->expected, (double) f->rows_in);

		/* what the rows of one row of the outer side make up for does not contradict the planner */
		if (fabs(told - slot->expected) <= f->rows_each / Min(f->share_read, 1))
			return least;
		/* rows that pass may lie together: a planner that is not far off may know that */
		if (least < slot->expected * JUST_MORE && least < told && least > told / 2)
			told = sqrt(told * least);
		return told;
	}
	return Max(slot->expected, (double) f->rows_in);
}

/* In so many microseconds the present merge pass is going to end, if there is one. */
static double
left_of_pass(const WsFigures *f, TimestampTz now)
{
	if (f->pass == 0 || f->merged == 0 || f->merged > f->to_merge)
		return 0;
	return (double) (now - f->pass_began) * ((double) f->to_merge / (double) f->merged - 1);
}

/*
 * In so many microseconds a hash join in batches is going to end, which began `spent` ago.  Its other batches
 * may take longer than reading its outer side, or less: the sort takes in most rows meanwhile.  Each takes as
 * long as those that have ended; a share of all counts among these, as if all took as long as what was
 * before.  That is what there was to do at the last look: while no rows come, it becomes less.
 */
static double
left_of_batches(const WsFigures *f, double spent, TimestampTz now)
{
	double		since = f->looked_at > 0 && f->pass == 0 ? (double) Max(now - f->looked_at, 0) : 0;
	double		ended = Max(0, f->batch - f->turned) + 0.5;
	double		guessed = GUESSED * f->batches;
	double		others = f->turned_at > 0 ? (double) Max(f->looked_at - f->turned_at, 0) : 0;
	double		left;

	spent -= since;
	if (f->turned_at == 0)
		left = spent * Max(0, 1 - f->share_done) / f->share_done;
	else
		left = (others + GUESSED * Max(0, spent - others)) / (ended + guessed) *
			Max(0, f->batches - f->batch - 0.5);
	return Max(left - since, 0);
}

/* Of so many rows, how many somebody is going to ask for. */
static double
rows_asked_for(const WsSlot *slot, double rows)
{
	return slot->wanted > 0 ? Min(slot->wanted, rows) : rows;
}

/*
 * In so many microseconds all `asked` rows are going to be out, which are expected to take `behind` from the
 * end of the input on, and have been on their way out for `in_stage`.  They say it themselves the more of
 * them are out.  What is done once before the second row is asked for, as the other side of a merge join is
 * sorted, counts as long as few are.
 */
static double
left_of_output(const WsSlot *slot, double asked, double behind, double in_stage, TimestampTz now)
{
	const WsFigures *f = &slot->figures;
	bool		flowing = f->flowing_at > 0 && f->rows_out >= 2 * WS_LOOK_ROWS;
	double		since = flowing ? (double) Max(now - f->flowing_at, 0) : in_stage;
	double		moved = (double) f->rows_out - (flowing ? WS_LOOK_ROWS : 0);
	double		done = (double) f->rows_out / asked;
	double		trust = Min(1, done * TRUST);

	/* the first rows out may say little, of how long the others take */
	if (!flowing)
		trust *= trust;
	behind = Max(behind - (double) slot->spent[WS_STAGE_SORT] - in_stage, behind * (1 - done) / 2);
	return (1 - trust) * behind + (moved > 0 ? trust * since * (asked - (double) f->rows_out) / moved : 0);
}

/* In so many microseconds the sort is going to end, perhaps; -1: who knows. */
static double
left_of(WsShared *shared, const WsSlot *slot, double in_stage, TimestampTz now)
{
	const WsFigures *f = &slot->figures;
	double		rows = rows_expected(slot, now);
	double		asked = rows_asked_for(slot, rows);
	double		behind = asked * slot->foreseen / 1000;
	double		silent;
	double		before;
	double		pass;

	if (f->stage == WS_STAGE_OUTPUT && (double) f->rows_out >= rows_asked_for(slot, (double) f->rows_in))
		return 0;
	behind *= off_by(shared, slot);
	switch ((WsStage) f->stage)
	{
		case WS_STAGE_OUTPUT:
			return left_of_output(slot, asked, behind, in_stage, now);
		case WS_STAGE_SORT:
			pass = left_of_pass(f, now);
			return Max(behind - in_stage, behind / 2 + pass);
		case WS_STAGE_INPUT:
			break;
	}
	if (f->rows_in == 0)
		return -1;
	if (has_thinned(slot, now, &silent))
	{
		double		rest = (double) (f->looked_at - slot->first_row) * (1 / f->share_read - 1);

		return Max(rest * SCAN_ALONE - silent, 0) + behind;
	}
	/* rows to come are merged, too: as long for each as those that came */
	before = (double) (slot->first_row - slot->stage_began);
	pass = left_of_pass(f, now);
	if (f->batches > 0 && f->share_done >= LEAST_SHARE)
		return left_of_batches(f, in_stage - before + pass, now) + pass + behind;
	return (in_stage - before + pass) * (rows / (double) f->rows_in - 1) + pass + behind;
}

/* The phase, in words. */
static const char *
phase_of(const WsFigures *f)
{
	static const char *const stages[] = {"input", "sort", "output"};

	if (f->pass > 0)
		return psprintf("merge pass %d of %d", f->pass, f->passes);
	return stages[f->stage];
}

PG_FUNCTION_INFO_V1(wiscsort_progress_rows);
PGDLLEXPORT Datum wiscsort_progress_rows(PG_FUNCTION_ARGS);

/* wiscsort.progress_rows() returns a row for each sort that runs in any backend. */
Datum
wiscsort_progress_rows(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = ws_return_rows(fcinfo, PROGRESS_COLUMNS);
	WsShared   *shared = require_shared();

	for (int i = 0; i < shared->nslots; i++)
	{
		WsSlot		slot;
		const WsFigures *f = &slot.figures;
		Datum		values[PROGRESS_COLUMNS];
		bool		nulls[PROGRESS_COLUMNS];
		bool		seen;
		TimestampTz now;
		double		in_stage;
		double		left;
		int64		moved;
		int			c = 0;

		if (shared->slots[i].slot.pid == 0 || !copy_slot(&shared->slots[i].slot, &slot))
			continue;
		now = GetCurrentTimestamp();
		seen = may_see(slot.key.role);
		memset(nulls, !seen, sizeof(nulls));
		put_key(&slot.key, seen, values, nulls);
		c = STAT_KEYS;
		nulls[c] = false;
		values[c++] = Int32GetDatum(slot.pid);
		nulls[c] |= slot.leader == 0;
		values[c++] = Int32GetDatum(slot.leader);
		values[c++] = Int32GetDatum(slot.node);
		values[c++] = CStringGetTextDatum(phase_of(f));
		values[c++] = Int64GetDatum(f->rows_in);
		values[c++] = Int64GetDatum(f->rows_out);
		values[c++] = Float8GetDatum(rint(rows_expected(&slot, now)));
		values[c++] = Int64GetDatum(f->disk);
		values[c++] = Int64GetDatum(f->memory);

		/* of a merge, all that has been merged since the stage began is not known */
		in_stage = (double) Max(now - slot.stage_began, 0);
		moved = f->stage == WS_STAGE_INPUT ? f->rows_in : f->rows_out;
		nulls[c] |= f->stage == WS_STAGE_SORT || in_stage <= 0;
		values[c] = Float8GetDatum(nulls[c] ? 0 : (double) moved / (in_stage / USECS_PER_SEC));
		c++;
		values[c++] = TimestampTzGetDatum(slot.began);
		left = left_of(shared, &slot, in_stage, now);
		nulls[c] |= left < 0 || left > FURTHEST;
		values[c] = TimestampTzGetDatum(nulls[c] ? now : now + (int64) left);
		c++;
		values[c++] = Int64GetDatum(f->merged);
		for (int j = 0; j < 3; j++)
			values[c++] = Int64GetDatum(slot.spent[j] + (j == f->stage ? (int64) in_stage : 0));
		Assert(c == PROGRESS_COLUMNS);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
