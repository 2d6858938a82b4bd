/*-------------------------------------------------------------------------
 * request.h - what is to be sorted, how, and with what.
 *
 * The planner decides, the executor adds what only it knows, and nothing below
 * exec/ knows of plans or reads a setting.
 *-------------------------------------------------------------------------
 */
#ifndef WS_REQUEST_H
#define WS_REQUEST_H

#include <math.h>

#include "run/run.h"
#include "utils/relcache.h"

/* Where rows wait. */
typedef enum WsStoreKind
{
	WS_KIND_SPOOL,
	WS_KIND_HEAP,
	WS_KIND_KEYS
} WsStoreKind;

/* Where the heap store has the keys of ties. */
typedef enum WsTieKeys
{
	WS_TIES_NONE,				/* there are none to be settled: prefixes are whole keys */
	WS_TIES_SPOOL,				/* in a spool of its own, with the TIDs */
	WS_TIES_TABLE				/* in the table: each is read again */
} WsTieKeys;

typedef struct WsRequest
{
	/* of the planner (exec/request.c carries it in custom_private) */
	int			ncols;			/* sort columns; the arrays have a member for each */
	AttrNumber *attnos;			/* in the input's rows, from 1 */
	Oid		   *sortops;
	Oid		   *collations;
	bool	   *nulls_first;
	bool	   *notnull;		/* no null can be there */
	WsStoreKind store;
	const char *why;			/* it is that store, for EXPLAIN */
	WsTieKeys	ties;			/* of the heap store */
	AttrNumber *columns;		/* of its table, that are the sort columns; else NULL */
	double		rows;			/* expected */
	double		width;			/* expected bytes of a row's data, on average */
	int64		query;			/* its identifier, or 0 */
	int			sharers;		/* sorts of parts of the input at once: by processes, or of partitions */
	/* of the executor */
	uint64		wanted;			/* so many rows are asked for, the first ones; 0: all */
	Size		memory;			/* bytes for all of the sort: work_mem */
	int64		cache;			/* bytes of files that the page cache is expected to hold */
	int64		allowance;		/* bytes of a spool's file; with more, rows travel inside runs */
	int64		found;			/* the same, whatever is expected */
	int64		stays;			/* bytes of a file of runs of rows that may stay in the page cache */
	int64		extent;			/* bytes by which files are striped over temp_tablespaces, or 0: not */
	WsMergeReads reads;			/* how merges of runs of rows read */
	Size		block;			/* bytes of a run's blocks, 0: chosen */
	bool	   *needed;			/* of its table, by column; NULL: more of a row than columns */
	bool		copies;			/* rows are copied out of it when they come, after all */
	bool		again;			/* a sort whose rows have left the page cache may begin again */
	int64		again_at;		/* for tests: it does when that many rows have been got, unless -1 */
	const char *bound;			/* what that comes from, for EXPLAIN; NULL: there is no such bound */
	WsWatch    *watch;			/* who watches how it goes, or NULL */
	const struct WsForetold *foretold;	/* what statistics say of the columns (key/learning.h), or NULL */
	bool		random_access;	/* more than reading forward once */
	bool		vectorised;		/* entries are sorted by vqsort, if it has been built in */
	bool		direct_always;	/* direct reads whatever the cache holds */
	bool		direct_never;
	WsThreads	threads;
	double		codes;			/* for forecasts: the share of the memory that codes will take */
} WsRequest;

/* Of the rows expected, the share up to which it pays not to take all in for a LIMIT. */
#define WS_MOST_WANTED	0.75

/*
 * Of `rows` rows in random order, how many are taken in if the first `wanted` are asked for (run/bound.c); 0:
 * all are.  The limit comes down with each piece that is full: as many rows as that later, of which a share
 * was taken that grows less and less.
 */
static inline double
ws_rows_taken_in(double rows, double wanted)
{
	double		piece = Max(wanted / WS_BOUND_SHARE, (double) WS_BOUND_ENTRIES);
	double		first = ceil(wanted / piece) * piece;	/* there is no limit before these */
	double		taken;

	if (wanted <= 0 || first >= rows)
		return rows;
	taken = first + piece * log(rows / first) / log1p(piece / wanted);
	return Min(rows, taken);
}

/* ---- heap_direct.c ---- */
extern bool ws_direct_refused(Relation rel);

#endif							/* WS_REQUEST_H */
