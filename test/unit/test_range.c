/*-------------------------------------------------------------------------
 * test_range.c - codes of values from the range that they have: in the order of the rows, whatever comes.
 *
 * Random keys of up to five columns, of all widths and directions, with and without nulls, some with a uuid or
 * a bytea behind.  Ranges are learnt from some rows.  Then come others: with nulls, values just outside the
 * ranges, far outside, and the least and the greatest.  All pairs of rows are compared, and what a prefix
 * tells is held against the key's bytes.
 *-------------------------------------------------------------------------
 */
#include "unit.h"

#include "key/key.h"

#include "keys.c"

#define COLUMNS		5
#define LEARNT		40
#define ROWS		100
#define KEY			160			/* bytes of a key at most */
#define TRIALS		4000

typedef struct Type
{
	WsEncoding	encoding;
	int			width;
} Type;

static const Type types[] = {
	{WS_ENC_BOOL, 1}, {WS_ENC_CHAR, 1}, {WS_ENC_INT2, 2}, {WS_ENC_INT4, 4}, {WS_ENC_INT8, 8},
	{WS_ENC_INT8, 8}, {WS_ENC_UINT4, 4}, {WS_ENC_UINT8, 8}, {WS_ENC_FLOAT8, 8}, {WS_ENC_BYTES, 6},
	{WS_ENC_INTERVAL, 10}, {WS_ENC_TIMETZ, 12}, {WS_ENC_BYTES, 16}, {WS_ENC_BYTEA, 0}
};

typedef struct Row
{
	Datum		values[COLUMNS];
	bool		isnull[COLUMNS];
	uint64		place[COLUMNS];
	ws_uint128	ordered[COLUMNS];	/* as an unsigned integer that ascends with the value */
	uint8		bytes[COLUMNS][32] pg_attribute_aligned(8);	/* of what is passed by reference */
	WsEntry		entry;
	WsTold		told;
	uint8		key[KEY];
} Row;

/* Sets a value of a type to the one that is number `place` of them. */
static void
set_value(Row *row, int c, const WsKeyColumn *col, uint64 place)
{
	uint64		sign = UINT64CONST(1) << 63;

	row->isnull[c] = false;
	row->place[c] = place;
	if (col->width > 0 && col->width < 8)
		place &= (UINT64CONST(1) << (8 * col->width)) - 1;
	if (col->encoding == WS_ENC_BOOL)
		place &= 1;
	if (col->encoding == WS_ENC_FLOAT8)
	{
		float8		f = (float8) (int64) (place ^ sign);

		row->values[c] = Float8GetDatum(f);
		row->ordered[c] = (uint64) (f >= 0x1p63 ? PG_INT64_MAX : (int64) f) ^ sign;
		return;
	}
	row->ordered[c] = place;
	if (col->encoding == WS_ENC_INTERVAL)
	{
		Interval   *span = (Interval *) row->bytes[c];

		*span = (Interval) {.time = (int64) (place ^ sign), .day = place % 8 == 0 ? (int32) (place >> 36) : 0,
			.month = place % 64 == 0 ? -1 : 0};
		row->values[c] = PointerGetDatum(span);
		row->ordered[c] = (ws_uint128) 1 << 79;
		row->ordered[c] += (ws_uint128) (span->month * 30 + span->day) * USECS_PER_DAY + span->time;
	}
	else if (col->encoding == WS_ENC_TIMETZ)
	{
		TimeTzADT  *time = (TimeTzADT *) row->bytes[c];

		*time = (TimeTzADT) {.time = (int64) (place ^ sign) / 4, .zone = place % 3 * 1800 - 3600};
		row->values[c] = PointerGetDatum(time);
		row->ordered[c] = (ws_uint128) ((uint64) (time->time + time->zone * USECS_PER_SEC) ^ sign) << 32;
		row->ordered[c] |= (uint32) time->zone ^ 0x80000000;
	}
	else if (col->encoding == WS_ENC_BYTES || col->encoding == WS_ENC_BYTEA)
	{
		uint8	   *at = row->bytes[c];
		int			n = col->width > 0 ? col->width : 8;

		row->values[c] = PointerGetDatum(at);
		memset(at, 0, sizeof(row->bytes[c]));
		if (col->width == 0)
		{
			SET_VARSIZE(at, VARHDRSZ + n);
			at += VARHDRSZ;
		}
		for (int i = 0; i < Min(n, 8); i++)
			at[n - 1 - i] = (uint8) (place >> (8 * i));
	}
	else if (col->encoding == WS_ENC_INT2)
		row->values[c] = Int16GetDatum((int16) (place ^ 0x8000));
	else if (col->encoding == WS_ENC_INT4)
		row->values[c] = Int32GetDatum((int32) (place ^ 0x80000000));
	else if (col->encoding == WS_ENC_INT8)
		row->values[c] = Int64GetDatum((int64) (place ^ sign));
	else
		row->values[c] = (Datum) place;
}

static int
compare_rows(const WsKeySpec *spec, const Row *a, const Row *b, int columns)
{
	for (int c = 0; c < columns; c++)
	{
		int			cmp = (a->ordered[c] > b->ordered[c]) - (a->ordered[c] < b->ordered[c]);

		if (a->isnull[c] || b->isnull[c])
			cmp = a->isnull[c] == b->isnull[c] ? 0 : a->isnull[c] == spec->cols[c].nulls_first ? -1 : 1;
		else if (spec->cols[c].descending)
			cmp = -cmp;
		if (cmp != 0)
			return cmp;
	}
	return 0;
}

static long wrong_order,
			wrong_told,
			wrong_bytes,
			wrong_all;
static int	ranged,
			whole,
			cut,
			never_cut,
			outside;

static void
trial(void)
{
	static Row	rows[ROWS];
	WsKeyColumn cols[COLUMNS] = {{0}};
	WsKeySpec	spec = {.ncols = 1 + next_random() % COLUMNS, .cols = cols};
	uint64		from[COLUMNS];
	uint64		spread[COLUMNS];
	int			nulls[COLUMNS];
	WsRanges   *r;
	bool		whole_before;

	for (int c = 0; c < spec.ncols; c++)
	{
		const Type *type = &types[next_random() % (c + 1 < spec.ncols ? lengthof(types) - 2 : lengthof(types))];

		cols[c] = (WsKeyColumn) {.attno = c + 1, .encoding = type->encoding, .width = type->width,
			.descending = next_random() % 2, .nulls_first = next_random() % 2, .notnull = next_random() % 3 == 0};
		spread[c] = ~UINT64CONST(0) >> (next_random() % 64);
		from[c] = next_random() % 2 ? next_random() : (UINT64CONST(1) << 63) - spread[c] / 2;
		nulls[c] = cols[c].notnull ? 0 : (int) (next_random() % 4 ? next_random() % 30 : 100);
	}
	spec.last_attno = spec.ncols;
	r = ws_ranges_create(&spec);
	if (r == NULL)
		return;
	for (int i = 0; i < ROWS; i++)
		for (int c = 0; c < spec.ncols; c++)
		{
			uint64		value = from[c] + next_random() % Max(spread[c], 1);

			/* what has not been learnt: other numbers near the range, and far away; the last ones of all */
			if (i >= LEARNT && next_random() % 4 == 0)
				switch (next_random() % 4)
				{
					case 0:
						value = from[c] + spread[c] + next_random() % 3;
						break;
					case 1:
						value = from[c] - next_random() % 3;
						break;
					case 2:
						value = next_random();
						break;
					default:
						value = next_random() % 2 ? 0 : ~UINT64CONST(0);
				}
			else if (i > 0 && next_random() % 3 == 0)
				value = rows[next_random() % i].place[c];
			set_value(&rows[i], c, &cols[c], value);
			if ((int) (next_random() % 100) < nulls[c] && !(i >= LEARNT && next_random() % 2))
				rows[i].isnull[c] = true;
		}
	for (int i = 0; i < LEARNT; i++)
		ws_ranges_learn(r, &spec, rows[i].values, rows[i].isnull);
	ws_ranges_number(r, &spec);
	ranged++;
	whole += whole_before = r->whole;
	spec.ranges = r;
	for (int i = 0; i < ROWS; i++)
	{
		Row		   *row = &rows[i];
		bool		told_all;

		row->entry = ws_key_entry(&spec, row->values, row->isnull, i);
		row->told = ws_key_told(&spec, row->entry);
		(void) ws_key_bytes(&spec, row->values, row->isnull, 0, KEY, row->key);
		told_all = row->told.what == WS_TOLD_ALL;
		wrong_all += ws_key_tells_all(&spec) && !told_all;
		wrong_all += i < LEARNT && whole_before && !told_all;
		wrong_all += told_all != (row->told.columns == spec.ncols);
		for (int c = 0; c < r->ncols; c++)
			outside += !row->isnull[c] &&
				(ws_value_bits(&cols[c], row->values[c]) ^ r->range[c].invert) - r->range[c].least >
				r->range[c].span;
	}
	if (r->all)
		cut += spec.cut, never_cut += !spec.cut;
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < ROWS; j++)
		{
			const Row  *a = &rows[i];
			const Row  *b = &rows[j];
			int			cmp = compare_rows(&spec, a, b, spec.ncols);
			ws_uint128	x = ws_entry_prefix(a->entry);
			ws_uint128	y = ws_entry_prefix(b->entry);

			if (x != y)
			{
				wrong_order += cmp == 0 || (x < y) != (cmp < 0);
				continue;
			}
			wrong_told += a->told.what == WS_TOLD_ALL && cmp != 0;
			wrong_told += compare_rows(&spec, a, b, a->told.columns) != 0;
			wrong_bytes += memcmp(a->key, b->key, a->told.reach) != 0;
			/* a prefix has no room for a mark and all bits of a wide value */
			wrong_bytes += a->told.what == WS_TOLD_ALL ? memcmp(a->key, b->key, KEY) != 0 :
				a->told.reach == 0 && cols[0].width <= 8;
		}
	free(r);
}

/* The bits that the codes of a column have, of values from one number to another. */
static WsRanges *
ranges_of(WsKeySpec *spec, const int64 *from, const int64 *to)
{
	WsRanges   *r;
	Datum		values[COLUMNS];
	bool		isnull[COLUMNS] = {false};

	for (int c = 0; c < spec->ncols; c++)
		spec->cols[c].attno = c + 1;
	r = ws_ranges_create(spec);
	for (int end = 0; end < 2; end++)
	{
		for (int c = 0; c < spec->ncols; c++)
			values[c] = Int64GetDatum(end == 0 ? from[c] : to[c]);
		ws_ranges_learn(r, spec, values, isnull);
	}
	ws_ranges_number(r, spec);
	return r;
}

static void
check_bits(void)
{
	WsKeyColumn two[2] = {{.encoding = WS_ENC_INT8, .width = 8}, {.encoding = WS_ENC_INT8, .width = 8}};
	WsKeyColumn flags[2] = {{.encoding = WS_ENC_BOOL, .width = 1}, {.encoding = WS_ENC_BYTEA}};
	WsKeySpec	spec = {.ncols = 2, .cols = two};
	WsKeySpec	bytes = {.ncols = 2, .cols = flags};
	const WsRange *range;
	WsRanges   *r;

	r = ranges_of(&spec, (int64[]) {0, 0}, (int64[]) {PG_INT64_MAX, 7420});
	CHECK(r->whole && r->range[0].bits + r->range[1].bits == 80, "63 bits and 0 to 7420 are a prefix (%d, %d)",
		  r->range[0].bits, r->range[1].bits);
	r = ranges_of(&spec, (int64[]) {PG_INT64_MIN, 0}, (int64[]) {PG_INT64_MAX, 7420});
	CHECK(r->whole && r->range[0].bits == 65 && r->range[0].escape == 1 && r->range[1].bits == 15,
		  "all values of 8 bytes, or a null, take 65 bits");
	r = ranges_of(&spec, (int64[]) {PG_INT64_MIN, PG_INT64_MIN}, (int64[]) {PG_INT64_MAX, PG_INT64_MAX});
	CHECK(!r->whole && r->all && r->ncols == 2, "twice as much is more than a prefix");
	r = ranges_of(&spec, (int64[]) {1000, 500}, (int64[]) {2000, 500});
	range = &r->range[0];
	CHECK(r->whole && range->bits + r->range[1].bits == 80 && range->bits == 45 && r->range[1].bits == 35 &&
		  (uint64) range->span - 1000 > UINT64CONST(1) << 30 &&
		  (uint64) (((UINT64CONST(1) << 63) + 1000 - range->least) - (range->span - 1000) / 2) <= 1,
		  "a prefix with room is divided among the columns, for values on both sides");
	r = ranges_of(&bytes, (int64[]) {0, 0}, (int64[]) {1, 0});
	CHECK(r->ncols == 1 && !r->all && !r->whole && r->range[0].bits == 4, "before bytes, a bool takes 3 bits and one");
}

int
main(void)
{
	for (int i = 0; i < TRIALS; i++)
		trial();
	CHECK(wrong_order == 0, "prefixes are in the order of the rows (%ld pairs wrong)", wrong_order);
	CHECK(wrong_told == 0, "rows with the same are equal in what it tells (%ld pairs wrong)", wrong_told);
	CHECK(wrong_bytes == 0, "and in so many bytes of their keys (%ld pairs wrong)", wrong_bytes);
	CHECK(wrong_all == 0, "whole keys are known (%ld rows wrong)", wrong_all);
	CHECK(whole > ranged / 10 && cut > ranged / 10 && never_cut > ranged / 10 && outside > 5 * ranged,
		  "%d keys, %d whole, %d cut, %d never; %d values out of their range", ranged, whole, cut, never_cut, outside);
	check_bits();
	return failures != 0;
}
