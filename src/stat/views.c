/*-------------------------------------------------------------------------
 * views.c - what SQL sees of the statistics and of sorts that run.
 *
 * Views of the extension's script give the columns their units.  Who may not see what a role does sees that
 * there is something, and whose.
 *
 * When a sort is going to end is a guess: the input takes as long for each row as until now, and what comes
 * behind in the proportion in which earlier sorts of the query took it, or sorts of any query.
 *
 * Memory bound: that of the result.
 *-------------------------------------------------------------------------
 */
#ifndef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#endif

#include "stat/stat.h"

#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
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

/* What follows the input of a sort, as a share of the time that that took, if nothing is known. */
#define SORT_SHARE		0.15
#define OUTPUT_SHARE	0.5

static WsShared *
require_shared(void)
{
	WsShared   *shared = ws_shared();

	if (shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("wiscsort has no shared memory for statistics"),
				 errhint("Before PostgreSQL 17, add \"wiscsort\" to shared_preload_libraries and restart "
						 "the server.")));
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
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	WsShared   *shared = require_shared();
	WsStatRow  *rows = palloc(WS_STAT_ROWS * sizeof(WsStatRow));
	int			n = 0;

	InitMaterializedSRF(fcinfo, 0);
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

/* wiscsort.stat_info_row() returns since when sorts are counted, and how many queries' rows were given up. */
Datum
wiscsort_stat_info(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	WsShared   *shared = require_shared();
	Datum		values[3];
	bool		nulls[3] = {0};

	InitMaterializedSRF(fcinfo, 0);
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

/* How long sorting and output take, as shares of the input: by what was counted of the query, or of all. */
static void
shares_of(WsShared *shared, const WsStatKey *key, double *sort, double *output)
{
	int64		counts[WS_COUNTS] = {0};
	WsStatRow	copy;
	WsStatRow  *row;

	LWLockAcquire(&shared->lock, LW_SHARED);
	row = key->query != 0 ? ws_stat_find(shared, key) : NULL;
	if (row != NULL)
	{
		copy_row(row, &copy);
		ws_counts_add(counts, copy.counts);
	}
	if (counts[WS_INPUT_US] == 0)
		for (int b = 0; b < WS_STAT_BUCKETS; b++)
			for (int i = shared->buckets[b]; i >= 0; i = shared->rows[i].next)
			{
				copy_row(&shared->rows[i], &copy);
				ws_counts_add(counts, copy.counts);
			}
	LWLockRelease(&shared->lock);
	*sort = SORT_SHARE;
	*output = OUTPUT_SHARE;
	if (counts[WS_INPUT_US] > 0)
	{
		*sort = (double) counts[WS_SORT_US] / (double) counts[WS_INPUT_US];
		*output = (double) counts[WS_OUTPUT_US] / (double) counts[WS_INPUT_US];
	}
}

/* In so many microseconds the sort is going to end, perhaps; -1: who knows. */
static double
left_of(WsShared *shared, const WsSlot *slot, double in_stage)
{
	const WsFigures *f = &slot->figures;
	double		input = (double) slot->spent[WS_STAGE_INPUT];
	double		sort;
	double		output;

	if (f->stage == WS_STAGE_OUTPUT && f->rows_out > 0)
		return in_stage / (double) f->rows_out * (double) Max(f->rows_in - f->rows_out, 0);
	shares_of(shared, &slot->key, &sort, &output);
	if (f->stage == WS_STAGE_OUTPUT)
		return Max(input * output - in_stage, 0);
	if (f->stage == WS_STAGE_SORT)
		return Max(input * sort - in_stage, 0) + input * output;
	if (f->rows_in == 0)
		return -1;
	input = in_stage / (double) f->rows_in * Max(slot->expected, (double) f->rows_in);
	return input * (1 + sort + output) - in_stage;
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
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	WsShared   *shared = require_shared();

	InitMaterializedSRF(fcinfo, 0);
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
		values[c++] = Float8GetDatum(slot.expected);
		values[c++] = Int64GetDatum(f->disk);
		values[c++] = Int64GetDatum(f->memory);

		/* of a merge, all that has been merged since the stage began is not known */
		in_stage = (double) Max(now - slot.stage_began, 0);
		moved = f->stage == WS_STAGE_INPUT ? f->rows_in : f->rows_out;
		nulls[c] |= f->stage == WS_STAGE_SORT || in_stage <= 0;
		values[c] = Float8GetDatum(nulls[c] ? 0 : (double) moved / (in_stage / USECS_PER_SEC));
		c++;
		values[c++] = TimestampTzGetDatum(slot.began);
		left = left_of(shared, &slot, in_stage);
		nulls[c] |= left < 0;
		values[c++] = TimestampTzGetDatum(now + (int64) left);
		values[c++] = Int64GetDatum(f->merged);
		for (int j = 0; j < 3; j++)
			values[c++] = Int64GetDatum(slot.spent[j] + (j == f->stage ? (int64) in_stage : 0));
		Assert(c == PROGRESS_COLUMNS);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
