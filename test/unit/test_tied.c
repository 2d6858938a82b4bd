/*-------------------------------------------------------------------------
 * test_tied.c - how many rows are expected to tie on the prefix, by statistics.
 *-------------------------------------------------------------------------
 */
#include "unit.h"
#include "../../src/plan/ties.c"

#define EXPECT(condition)	CHECK((condition), "%s", #condition)

#define PARTS	100

static char values[PARTS + 1][64];
static WsTieBound bounds[PARTS + 1];

/* A column of strings, all different, with bounds of the given form: of i * step. */
static WsTieColumn
strings(const char *form, int step)
{
	WsTieColumn col = {.last = true, .unique = 1, .nbounds = PARTS + 1, .bounds = bounds};

	for (int i = 0; i <= PARTS; i++)
	{
		snprintf(values[i], sizeof(values[i]), form, i * step);
		bounds[i].bytes = values[i];
		bounds[i].length = strlen(values[i]);
		col.longest = Max(col.longest, bounds[i].length + 1);
	}
	return col;
}

/* The same of 16 bytes, the first of which are `zeros` zero bytes, and then such that are by chance. */
static WsTieColumn
uuids(int zeros)
{
	WsTieColumn col = {.width = 16, .last = true, .unique = 1, .nbounds = PARTS + 1, .bounds = bounds, .longest = 16};

	for (int i = 0; i <= PARTS; i++)
	{
		uint64		next = (uint64) i * (UINT64_MAX / (PARTS + 1)) + 12345;

		memset(values[i], 0, 16);
		for (int b = zeros; b < 16; b++)
			values[i][b] = (char) (b - zeros < 8 ? next >> (56 - 8 * (b - zeros)) : i * 37);
		bounds[i].bytes = values[i];
		bounds[i].length = 16;
	}
	return col;
}

static double
alone(double rows, WsTieColumn col)
{
	return ws_tied_share(rows, 1, &col);
}

static void
cut(void)
{
	WsTieColumn col = uuids(0);

	EXPECT(alone(1e6, col) < 0.001);
	EXPECT(alone(1e9, col) < 0.01);
	col.nbounds = 5;
	EXPECT(alone(1e6, col) == 1);
	col.nbounds = 0;
	EXPECT(alone(1e6, col) == 1);
	/* counted from 1: the first bytes are all the same */
	EXPECT(alone(1000, uuids(9)) == 1);
	EXPECT(alone(1000, uuids(14)) == 1);
	/* two bytes are left */
	EXPECT(alone(500, uuids(7)) < 0.1);
	EXPECT(alone(1e6, uuids(7)) == 1);

	/* digits by chance; the same behind what all have in common, or nearly */
	EXPECT(alone(1e6, strings("%08d and more", 999983)) < 0.1);
	EXPECT(alone(1e10, strings("%08d and more", 999983)) == 1);
	EXPECT(alone(10000, strings("customer-%08d", 100)) == 1);
	EXPECT(alone(1e6, strings("cust-%08d-x", 10000)) == 1);
	EXPECT(alone(1e7, strings("u-%08d and more", 999983)) > 0.1);
	EXPECT(alone(2000, strings("u-%08d and more", 999983)) < 0.1);
	/* a part of the values has a long beginning in common */
	col = strings("%08d and more", 999983);
	for (int i = 0; i < 30; i++)
		snprintf(values[i], sizeof(values[i]), "0000000000000000%04d", i);
	EXPECT(alone(10000, col) > 0.28);
}

static void
distinct(void)
{
	WsTieColumn col = uuids(0);

	col.unique = 0.97;
	EXPECT(alone(1e6, col) > 0.05 && alone(1e6, col) < 0.07);
	col.unique = 0.5;
	EXPECT(alone(1e6, col) == 1);
	col.unique = 0;
	EXPECT(alone(1e6, col) == 1);
	col.unique = 1;
	col.common = 0.2;
	EXPECT(alone(1e6, col) >= 0.2 && alone(1e6, col) < 0.21);
}

/* Strings that end in the prefix are told by it, however few there are. */
static void
short_strings(void)
{
	WsTieColumn cols[2];

	cols[0] = strings("%07d", 10);
	cols[0].unique = 0.0001;
	EXPECT(alone(1e6, cols[0]) == 0);
	cols[0].longest = 9;
	EXPECT(alone(1e6, cols[0]) == 0);
	cols[0].longest = 10;
	EXPECT(alone(1e6, cols[0]) == 1);
	cols[0].longest = 8;
	cols[0].last = false;
	cols[1] = cols[0];
	EXPECT(ws_tied_share(1e6, 2, cols) == 1);
}

static void
several(void)
{
	WsTieColumn cols[3];

	/* a timestamp tells; or it does not, and two bytes of the next do not help */
	cols[0] = (WsTieColumn) {.width = 8, .unique = 0.99};
	cols[1] = (WsTieColumn) {.width = 8, .unique = 1, .last = true};
	EXPECT(ws_tied_share(1e6, 2, cols) < 0.03);
	cols[0].nulls = 0.3;
	EXPECT(ws_tied_share(1e6, 2, cols) > 0.3);
	cols[0] = (WsTieColumn) {.width = 8, .unique = 0.1};
	EXPECT(ws_tied_share(1e6, 2, cols) == 1);
	/* the second lies in the prefix, too */
	cols[0].width = 4;
	cols[1].width = 4;
	cols[1].last = false;
	cols[2] = (WsTieColumn) {.last = true};
	EXPECT(ws_tied_share(1e6, 3, cols) == 0);
	/* of ten bytes with their null bytes, not of eleven */
	cols[1].width = 5;
	EXPECT(ws_tied_share(1e6, 3, cols) == 1);
	/* nothing counts behind what a comparator orders */
	cols[0] = (WsTieColumn) {.width = 2, .unique = 0.1, .ends = true};
	cols[1].width = 4;
	EXPECT(ws_tied_share(1e6, 3, cols) == 1);
	cols[0].unique = 1;
	EXPECT(ws_tied_share(1e6, 3, cols) == 0);
	/* four bytes of a uuid behind an int */
	cols[0] = (WsTieColumn) {.width = 4, .unique = 0.001};
	cols[1] = uuids(0);
	EXPECT(ws_tied_share(1e6, 2, cols) < 0.1);
	EXPECT(ws_tied_share(1e9, 2, cols) == 1);
}

int
main(void)
{
	cut();
	distinct();
	short_strings();
	several();
	return failures > 0;
}
