/*-------------------------------------------------------------------------
 * ties.h - how many rows are expected to tie on the prefix: a pure function of statistics.
 *-------------------------------------------------------------------------
 */
#ifndef WS_TIES_H
#define WS_TIES_H

#include "postgres.h"

/* The bytes of a value, as in a key but for escapes and terminators. */
typedef struct WsTieBound
{
	const char *bytes;
	Size		length;
} WsTieBound;

/* A sort column, as far as it comes to lie within the prefix. */
typedef struct WsTieColumn
{
	int			width;			/* bytes of the value in the key; 0: they vary, or there are none */
	bool		ends;			/* a comparator orders it, and the key has no bytes behind it */
	bool		last;			/* no sort column follows */
	double		unique;			/* values / rows that are not null, 0 to 1; 0 if unknown */
	double		nulls;			/* share of rows */
	double		common;			/* share of rows that have one of the most common values */
	int			nbounds;		/* of the histogram; 0 if unknown */
	struct WsTieBound *bounds;	/* in ascending order of their bytes */
	Size		longest;		/* of these and the most common values, bytes in a key; 0 if unknown */
} WsTieColumn;

extern double ws_tied_share(double rows, int ncols, const WsTieColumn *cols);

#endif							/* WS_TIES_H */
