/*-------------------------------------------------------------------------
 * ties.c - how many rows are expected to tie on the prefix.
 *
 * The heap store needs no keys beside the entries where nearly every row is told by its prefix.  What
 * ANALYZE knows of the sort columns says whether that is so:
 *
 *	- A column that lies wholly within the prefix tells rows apart by its values.  Of D values in N rows at
 *	  most N - D rows have a value that another has already: with these, no more than 2 (N - D) rows tie.
 *	- Of a column that is cut by the end of the prefix (uuid, text) also what is left must tell values
 *	  apart.  The bounds of the histogram divide the rows into m equal parts.  Neighbours differ, on
 *	  average, at byte L: log2 m bits lie before that, in L - C bytes, where C are the bytes that all
 *	  values begin with.  If the bytes behind have as many bits each, the prefix has
 *	  B = (bytes of it - C) log2 m / (L - C) bits, and a row ties by chance with N / 2^B.  Two neighbours
 *	  that the prefix does not tell apart have a whole part between them that ties.
 *
 * The columns after the first that is cut, or that only a comparator can order, do not count; nor does it
 * that several columns together tell more than each.  Strings that end within the prefix are told by it.
 * What is unknown tells nothing.
 *
 * Pure: no planner, no catalogs.  tiestats.c has the statistics.
 *-------------------------------------------------------------------------
 */
#include "plan/ties.h"

#include <math.h>

#include "entry.h"

/* A histogram of fewer parts says too little. */
#define LEAST_PARTS		10

/* Bytes that two values begin with alike. */
static Size
alike(const WsTieBound *a, const WsTieBound *b)
{
	Size		n = Min(a->length, b->length);
	Size		i = 0;

	while (i < n && a->bytes[i] == b->bytes[i])
		i++;
	return i;
}

/* The share of rows that values cut after `room` bytes do not tell apart, although they differ. */
static double
cut_share(double rows, const WsTieColumn *col, int room)
{
	int			parts = col->nbounds - 1;
	double		sum = 0;
	double		common;
	double		bits;
	int			merged = 0;

	if (parts < LEAST_PARTS || room <= 0)
		return 1;
	common = (double) alike(&col->bounds[0], &col->bounds[parts]);
	if (common >= room)
		return 1;
	for (int i = 0; i < parts; i++)
	{
		Size		n = alike(&col->bounds[i], &col->bounds[i + 1]);

		sum += (double) n + 1 - common;
		merged += n >= (Size) room;
	}
	bits = (room - common) * log2(parts) * parts / Max(sum, 1);
	return (double) merged / parts + rows * exp2(-bits);
}

/*
 * The share, 0 to 1, of `rows` rows that are expected to have the prefix of another row with a key that
 * goes on.  `cols` are the sort columns, of which there is at least one.
 */
double
ws_tied_share(double rows, int ncols, const WsTieColumn *cols)
{
	int			room = WS_PREFIX_BYTES;
	double		least = 1;

	for (int i = 0; i < ncols; i++)
	{
		const WsTieColumn *col = &cols[i];
		double		share = col->unique > 0 ? 2 * (1 - col->unique) : 1;
		bool		whole;

		room--;					/* the null byte */
		whole = col->width > 0 && col->width <= room;
		if (col->last && col->longest > 0 && col->longest <= (Size) Max(room, 0))
			return 0;
		share = Max(share, col->common) + (col->last ? 0 : col->nulls);
		if (!whole)
			share += cut_share(rows, col, room);
		least = Min(least, share);
		room -= col->width;
		if (!whole || col->ends)
			break;
	}
	return Min(least, 1);
}
