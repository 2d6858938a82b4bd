/*-------------------------------------------------------------------------
 * test_key.c - key bytes against the order of the values.
 *
 * For each encoding, pairs of values (edge cases, then random ones) are
 * encoded under ASC and DESC, NULLS FIRST and LAST, with and without a null
 * byte; memcmp of the key bytes, taken through windows of any offset, must
 * agree with the comparison of the values.  Several columns together must
 * order lexicographically.  The prefix must say "complete" exactly when the
 * key fits it.
 *-------------------------------------------------------------------------
 */
#include "unit.h"

#include "key/key.h"

#include <float.h>
#include <math.h>

#include "keys.c"

#define MAX_KEY 200

typedef struct Value
{
	Datum		datum;
	bool		isnull;
} Value;

typedef int (*Compare) (Datum a, Datum b);

/* All bytes of a key, window by window; returns its length. */
static Size
whole_key(const WsKeySpec *spec, const Datum *values, const bool *isnull, uint8 *out)
{
	Size		length = 0;

	memset(out, 0, MAX_KEY + WS_PREFIX_BYTES);
	for (Size skip = 0; skip < MAX_KEY; skip += WS_PREFIX_BYTES)
	{
		length = ws_key_bytes(spec, values, isnull, skip, WS_PREFIX_BYTES, out + skip);
		if (length <= skip + WS_PREFIX_BYTES)
			break;
	}
	return length;
}

static int
sign(int x)
{
	return (x > 0) - (x < 0);
}

static int
reference(const WsKeyColumn *col, Compare compare, Value a, Value b)
{
	int			cmp;

	if (a.isnull || b.isnull)
		cmp = a.isnull == b.isnull ? 0 : (a.isnull == col->nulls_first ? -1 : 1);
	else
	{
		cmp = compare(a.datum, b.datum);
		if (col->descending)
			cmp = -cmp;
	}
	return sign(cmp);
}

static WsKeyColumn
column(WsEncoding encoding, int width, int options)
{
	WsKeyColumn col = {.attno = 1, .encoding = encoding, .width = width, .descending = options & 1,
		.nulls_first = (options & 2) != 0, .notnull = (options & 4) != 0};

	col.null_apart = ws_null_apart(encoding, col.nulls_first, col.descending, (options & 8) != 0);
	return col;
}

static WsKeySpec
spec_of(WsKeyColumn *cols, int n)
{
	WsKeySpec	spec = {.ncols = n, .cols = cols, .last_attno = n, .exact = true};

	for (int i = 0; i < n; i++)
	{
		cols[i].attno = (AttrNumber) (i + 1);
		if (i > 0)
			cols[i - 1].tells_null = ws_tells_null(&cols[i - 1], &cols[i]);
		spec.exact_bytes += cols[i].width + !cols[i].notnull;
		spec.exact &= cols[i].width > 0;
	}
	spec.exact &= spec.exact_bytes <= WS_PREFIX_BYTES;
	spec.first_alone = ws_first_alone(&spec);
	return spec;
}

/* Every pair of n values, under every option. */
static void
check_pairs(const char *name, WsEncoding encoding, int width, Compare compare,
			const Datum *data, int n)
{
	long		wrong = 0,
				wrong_entry = 0,
				wrong_complete = 0;

	for (int options = 0; options < 16; options++)
	{
		WsKeyColumn col = column(encoding, width, options);
		WsKeySpec	spec = spec_of(&col, 1);

		for (int i = 0; i <= n; i++)
			for (int j = 0; j <= n; j++)
			{
				Value		a = {i < n ? data[i] : 0, i == n};
				Value		b = {j < n ? data[j] : 0, j == n};
				uint8		akey[MAX_KEY + WS_PREFIX_BYTES],
							bkey[MAX_KEY + WS_PREFIX_BYTES];
				WsEntry		ae,
							be;
				Size		alen;
				int			want;

				if (col.notnull && (a.isnull || b.isnull))
					continue;
				want = reference(&col, compare, a, b);
				alen = whole_key(&spec, &a.datum, &a.isnull, akey);
				(void) whole_key(&spec, &b.datum, &b.isnull, bkey);
				wrong += sign(memcmp(akey, bkey, MAX_KEY)) != want;

				ae = ws_key_entry(&spec, &a.datum, &a.isnull, 1);
				wrong_entry += !spec.exact && !ws_entry_same_prefix(ae, ws_key_window_entry(akey, 1));
				be = ws_key_entry(&spec, &b.datum, &b.isnull, 1);
				if (spec.exact)
					wrong_entry += (ws_entry_int(ae) > ws_entry_int(be)) -
						(ws_entry_int(ae) < ws_entry_int(be)) != want;
				else
				{
					wrong_entry += (ws_entry_int(ae) > ws_entry_int(be) && want < 0) ||
						(ws_entry_int(ae) < ws_entry_int(be) && want > 0);
					wrong_complete += ws_key_complete(&spec, ae) != (alen <= WS_PREFIX_BYTES);
				}
			}
	}
	CHECK(wrong == 0, "%s: key bytes order like the values (%ld pairs wrong)", name, wrong);
	CHECK(wrong_entry == 0, "%s: entries order like the values (%ld pairs wrong)", name, wrong_entry);
	CHECK(wrong_complete == 0, "%s: complete keys are known (%ld wrong)", name, wrong_complete);
}

#define COMPARE(name, type, get) \
	static int name(Datum a, Datum b) \
	{ type x = get(a), y = get(b); return (x > y) - (x < y); }

COMPARE(cmp_bool, bool, DatumGetBool)
COMPARE(cmp_char, uint8, DatumGetUInt8)
COMPARE(cmp_int2, int16, DatumGetInt16)
COMPARE(cmp_int4, int32, DatumGetInt32)
COMPARE(cmp_int8, int64, DatumGetInt64)
COMPARE(cmp_oid, uint32, DatumGetUInt32)
COMPARE(cmp_uint8, uint64, DatumGetUInt64)

static int
cmp_double(double x, double y)
{
	if (isnan(x) || isnan(y))
		return (isnan(x) != 0) - (isnan(y) != 0);
	return (x > y) - (x < y);
}

static int
cmp_float8(Datum a, Datum b)
{
	return cmp_double(DatumGetFloat8(a), DatumGetFloat8(b));
}

static int
cmp_float4(Datum a, Datum b)
{
	return cmp_double(DatumGetFloat4(a), DatumGetFloat4(b));
}

/* The same, where equal floats are told apart: -0 is less than +0, and of NaNs one without a sign. */
static int
cmp_apart(int cmp, uint64 a, uint64 b, uint64 sign)
{
	if (cmp != 0 || a == b)
		return cmp;
	if ((a & sign) != (b & sign))
		return ((a & ~sign) == 0) == ((a & sign) != 0) ? -1 : 1;
	return ((a < b) == ((a & sign) == 0)) ? -1 : 1;
}

static int
cmp_float8_apart(Datum a, Datum b)
{
	return cmp_apart(cmp_float8(a, b), a, b, UINT64CONST(1) << 63);
}

static int
cmp_float4_apart(Datum a, Datum b)
{
	return cmp_apart(cmp_float4(a, b), (uint32) a, (uint32) b, UINT64CONST(1) << 31);
}

/* What entries of one column hold is the values, bit by bit. */
static void
check_decoded(const char *name, WsEncoding encoding, int width, const Datum *data, int n)
{
	long		wrong = 0;

	for (int options = 0; options < 16; options++)
	{
		WsKeyColumn col = column(encoding, width, options);
		WsKeySpec	spec = spec_of(&col, 1);

		spec.exact = true;
		spec.exact_bytes = width + (col.notnull ? 0 : 1);
		for (int i = 0; i <= n; i++)
		{
			bool		isnull = i == n;
			Datum		value = isnull ? 0 : data[i];
			Datum		decoded;
			bool		decoded_null;

			if (isnull && col.notnull)
				continue;
			ws_key_decode(&spec, ws_key_entry(&spec, &value, &isnull, 1), &decoded, &decoded_null);
			wrong += decoded != value || decoded_null != isnull;
		}
	}
	CHECK(wrong == 0, "%s: values come back from entries (%ld wrong)", name, wrong);
}

static int
cmp_uuid(Datum a, Datum b)
{
	return memcmp(DatumGetPointer(a), DatumGetPointer(b), 16);
}

static int
cmp_bytes(const char *x, int n, const char *y, int m)
{
	int			cmp = memcmp(x, y, n < m ? n : m);

	return cmp != 0 ? cmp : n - m;
}

static int
cmp_varlena(Datum a, Datum b)
{
	struct varlena *x = (struct varlena *) DatumGetPointer(a);
	struct varlena *y = (struct varlena *) DatumGetPointer(b);

	return cmp_bytes(VARDATA_ANY(x), VARSIZE_ANY_EXHDR(x), VARDATA_ANY(y), VARSIZE_ANY_EXHDR(y));
}

static int
blank_trimmed(struct varlena *v)
{
	int			n = VARSIZE_ANY_EXHDR(v);

	while (n > 0 && VARDATA_ANY(v)[n - 1] == ' ')
		n--;
	return n;
}

static int
cmp_bpchar(Datum a, Datum b)
{
	struct varlena *x = (struct varlena *) DatumGetPointer(a);
	struct varlena *y = (struct varlena *) DatumGetPointer(b);

	return cmp_bytes(VARDATA_ANY(x), blank_trimmed(x), VARDATA_ANY(y), blank_trimmed(y));
}

static int
cmp_name(Datum a, Datum b)
{
	return strncmp(NameStr(*DatumGetName(a)), NameStr(*DatumGetName(b)), NAMEDATALEN);
}

static int
cmp_timetz(Datum a, Datum b)
{
	TimeTzADT  *x = (TimeTzADT *) DatumGetPointer(a);
	TimeTzADT  *y = (TimeTzADT *) DatumGetPointer(b);
	int64		tx = x->time + x->zone * USECS_PER_SEC;
	int64		ty = y->time + y->zone * USECS_PER_SEC;

	if (tx != ty)
		return tx > ty ? 1 : -1;
	return (x->zone > y->zone) - (x->zone < y->zone);
}

/* As bttidcmp, from the halves of the block number. */
static int
cmp_tid(Datum a, Datum b)
{
	ItemPointerData *x = (ItemPointerData *) DatumGetPointer(a);
	ItemPointerData *y = (ItemPointerData *) DatumGetPointer(b);
	int			from[3] = {x->ip_blkid.bi_hi, x->ip_blkid.bi_lo, x->ip_posid};
	int			to[3] = {y->ip_blkid.bi_hi, y->ip_blkid.bi_lo, y->ip_posid};

	for (int i = 0; i < 3; i++)
		if (from[i] != to[i])
			return from[i] > to[i] ? 1 : -1;
	return 0;
}

static int
cmp_interval(Datum a, Datum b)
{
	Interval   *x = (Interval *) DatumGetPointer(a);
	Interval   *y = (Interval *) DatumGetPointer(b);
	__int128	from = ((__int128) x->month * 30 + x->day) * USECS_PER_DAY + x->time;
	__int128	to = ((__int128) y->month * 30 + y->day) * USECS_PER_DAY + y->time;

	return (from > to) - (from < to);
}

static bool
bit_at(const uint8 *bytes, int i)
{
	return bytes[i / 8] >> (7 - i % 8) & 1;
}

/* Orders the first n bits of two strings, one by one. */
static int
cmp_first_bits(const uint8 *x, const uint8 *y, int n)
{
	for (int i = 0; i < n; i++)
		if (bit_at(x, i) != bit_at(y, i))
			return bit_at(x, i) ? 1 : -1;
	return 0;
}

/* bit_cmp: the bits of the bytes that both have, then the length. */
static int
cmp_bit(Datum a, Datum b)
{
	struct varlena *x = (struct varlena *) DatumGetPointer(a);
	struct varlena *y = (struct varlena *) DatumGetPointer(b);
	int32		n,
				m;
	int			cmp;

	memcpy(&n, VARDATA_ANY(x), sizeof(n));
	memcpy(&m, VARDATA_ANY(y), sizeof(m));
	cmp = cmp_first_bits((uint8 *) VARDATA_ANY(x) + 4, (uint8 *) VARDATA_ANY(y) + 4,
						 (Min(n, m) + 7) / 8 * 8);
	return cmp != 0 ? cmp : n - m;
}

/* network_cmp: the bits of both netmasks, the netmasks, all bits. */
static int
cmp_inet(Datum a, Datum b)
{
	inet_struct *x = (inet_struct *) VARDATA_ANY(DatumGetPointer(a));
	inet_struct *y = (inet_struct *) VARDATA_ANY(DatumGetPointer(b));
	int			cmp;

	if (x->family != y->family)
		return x->family - y->family;
	cmp = cmp_first_bits(x->ipaddr, y->ipaddr, Min(x->bits, y->bits));
	if (cmp == 0)
		cmp = x->bits - y->bits;
	return cmp != 0 ? cmp : cmp_first_bits(x->ipaddr, y->ipaddr, x->family == PGSQL_AF_INET ? 32 : 128);
}

static Datum
long_varlena(const char *bytes, int n)
{
	struct varlena *v = calloc(1, VARHDRSZ + n + 1);

	SET_VARSIZE(v, VARHDRSZ + n);
	memcpy(VARDATA(v), bytes, n);
	return PointerGetDatum(v);
}

/* Random strings of an alphabet, with long common prefixes among them. */
static int
strings(Datum *out, int n, const char *alphabet, int letters)
{
	char		buf[48];

	for (int i = 0; i < n; i++)
	{
		int			len = next_random() % 30;
		int			common = next_random() % 20;

		for (int k = 0; k < len; k++)
			buf[k] = k < common ? alphabet[0] : alphabet[next_random() % letters];
		out[i] = long_varlena(buf, len);
	}
	return n;
}

/* The same with a header of one byte, as rows have it. */
static Datum
short_varlena(const char *bytes, int n)
{
	char	   *v = calloc(1, VARHDRSZ_SHORT + n + 1);

	SET_VARSIZE_SHORT(v, VARHDRSZ_SHORT + n);
	memcpy(VARDATA_SHORT(v), bytes, n);
	return PointerGetDatum(v);
}

/* Block and offset, often one of the edges. */
static Datum
random_tid(void)
{
	static const uint32 edges[] = {0, 1, 2, 0xFF, 0x100, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
	ItemPointerData *tid = calloc(1, sizeof(ItemPointerData));
	uint32		block = next_random() % 4 ? edges[next_random() % lengthof(edges)] : (uint32) next_random();

	BlockIdSet(&tid->ip_blkid, block);
	tid->ip_posid = (OffsetNumber) (next_random() % 2 ? edges[next_random() % 6] : next_random());
	return PointerGetDatum(tid);
}

/* Edges of all fields together (infinity), values that differ but are equal, anything. */
static Datum
random_interval(void)
{
	Interval   *span = calloc(1, sizeof(Interval));
	int			months = (int) (next_random() % 7) - 3;

	switch (next_random() % 5)
	{
		case 0:
			span->month = next_random() % 2 ? PG_INT32_MIN : PG_INT32_MAX;
			span->day = next_random() % 2 ? PG_INT32_MIN : PG_INT32_MAX;
			span->time = next_random() % 2 ? PG_INT64_MIN : PG_INT64_MAX;
			break;
		case 1:
			span->month = months;
			break;
		case 2:
			span->day = months * 30;
			break;
		case 3:
			span->day = months * 30 - 1;
			span->time = USECS_PER_DAY + (int) (next_random() % 3) - 1;
			break;
		default:
			span->month = (int32) next_random() >> next_random() % 32;
			span->day = (int32) next_random() >> next_random() % 32;
			span->time = (int64) next_random() >> next_random() % 64;
	}
	return PointerGetDatum(span);
}

/* Bit strings, many of them zero at the end, or one the beginning of another. */
static Datum
random_bit(void)
{
	uint8		value[4 + 12] = {0};
	int32		bits = next_random() % 97;
	int			ones = next_random() % (bits + 1);

	memcpy(value, &bits, sizeof(bits));
	for (int i = 0; i < ones; i++)
		if (next_random() % 4 == 0 || i < 9)
			value[4 + i / 8] |= 0x80 >> i % 8;
	return (next_random() % 2 ? long_varlena : short_varlena) ((char *) value, 4 + (bits + 7) / 8);
}

/* Few networks, and hosts in them. */
static Datum
random_inet(void)
{
	inet_struct inet = {0};
	int			bytes = next_random() % 3 ? 4 : 16;

	inet.family = bytes == 4 ? PGSQL_AF_INET : PGSQL_AF_INET6;
	inet.bits = next_random() % 4 ? next_random() % (8 * bytes + 1) : 8 * bytes;
	inet.ipaddr[0] = next_random() % 2 ? 10 : 128;
	for (int i = 1; i < bytes; i++)
		inet.ipaddr[i] = next_random() % 4 ? 0 : (uint8) (next_random() & 0x81);
	if (next_random() % 4 == 0)	/* a network */
		for (int i = inet.bits; i < 8 * bytes; i++)
			inet.ipaddr[i / 8] &= ~(0x80 >> i % 8);
	return (next_random() % 2 ? long_varlena : short_varlena) ((char *) &inet, 2 + bytes);
}

/* Short texts of letters around the ones that are escaped before a nullable column. */
static Datum
random_text(void)
{
	char		value[14];
	int			n = next_random() % (sizeof(value) + 1);

	for (int i = 0; i < n; i++)
		value[i] = "\1\2\3a"[next_random() % 2 ? 3 : next_random() % 4];
	return (next_random() % 2 ? long_varlena : short_varlena) (value, n);
}

static Datum
random_bpchar(void)
{
	char		value[14];
	int			n = next_random() % (sizeof(value) + 1);

	for (int i = 0; i < n; i++)
		value[i] = "\1\2 a"[next_random() % 4];
	return long_varlena(value, n);
}

static Datum
random_name(void)
{
	Name		name = calloc(1, NAMEDATALEN);
	int			n = next_random() % 14;

	for (int i = 0; i < n; i++)
		NameStr(*name)[i] = "\1\2\3a"[next_random() % 4];
	return NameGetDatum(name);
}

static Datum
random_int4(void)
{
	return Int32GetDatum((int) (next_random() % 5) - 2);
}

static Datum
random_uuid(void)
{
	uint8	   *u = calloc(1, 16);

	for (int i = 0; i < 16; i++)
		u[i] = next_random() % 8 ? 0x80 : (uint8) next_random();
	return PointerGetDatum(u);
}

/* A numeric as core stores it: its parts, which cmp_numeric compares, and the bytes. */
typedef struct Number
{
	int			special;		/* -1 and 1: infinities, 2: NaN */
	bool		negative;
	int			weight;
	int			n;
	uint16		digits[8];
} Number;

/* In front of the stored value. */
static const Number *
number_of(Datum value)
{
	const Number *x;

	memcpy(&x, DatumGetPointer(value) - sizeof(x), sizeof(x));
	return x;
}

/* The digit that counts 10000 to the power of `power`. */
static int
digit_at(const Number *x, int power)
{
	int			i = x->weight - power;

	return i >= 0 && i < x->n ? x->digits[i] : 0;
}

static int
cmp_numeric(Datum a, Datum b)
{
	const Number *x = number_of(a);
	const Number *y = number_of(b);
	int			most = Max(x->weight, y->weight);
	int			least = Min(x->weight - x->n, y->weight - y->n);

	if (x->special != 0 || y->special != 0)
		return x->special - y->special;
	for (int power = most; power >= least; power--)
	{
		int			dx = digit_at(x, power) * (x->negative ? -1 : 1);
		int			dy = digit_at(y, power) * (y->negative ? -1 : 1);

		if (dx != dy)
			return dx - dy;
		/* between the digits of both there are none */
		if (power < x->weight - x->n && power > y->weight)
			power = y->weight + 1;
		if (power < y->weight - y->n && power > x->weight)
			power = x->weight + 1;
	}
	return 0;
}

static Datum
random_numeric(void)
{
	static const int weights[] = {0, 0, 0, 1, -1, 2, 60, 61, 62, 63, -60, -61, -62, -64, 64, -65, 300, -300,
	PG_INT16_MAX, -5000};
	Number	   *x = calloc(1, sizeof(Number));
	char	   *room = calloc(1, sizeof(x) + 32);
	uint16		words[10];
	int			n = 0;
	Datum		value;

	if (next_random() % 12 == 0)
	{
		x->special = (int[]) {-1, 1, 2}[next_random() % 3];
		words[n++] = x->special == 2 ? 0xC000 : x->special == 1 ? 0xD000 : 0xF000;
	}
	else
	{
		x->negative = next_random() % 2;
		x->weight = weights[next_random() % (next_random() % 2 ? 4 : lengthof(weights))];
		x->n = (int) (next_random() % (next_random() % 2 ? 3 : lengthof(x->digits) + 1));
		for (int i = 0; i < x->n; i++)
			x->digits[i] = (uint16[]) {0, 1, 9999, 5000, (uint16) (next_random() % 10000)}[next_random() % 5];
		if (x->weight >= -64 && x->weight <= 63 && next_random() % 4)
			words[n++] = (uint16) (0x8000 | (x->negative ? 0x2000 : 0) | (next_random() % 64) << 7 |
								   (x->weight & 0x7F));
		else
		{
			words[n++] = (uint16) ((x->negative ? 0x4000 : 0) | next_random() % 100);
			words[n++] = (uint16) x->weight;
		}
		memcpy(words + n, x->digits, x->n * sizeof(uint16));
		n += x->n;
	}
	memcpy(room, &x, sizeof(x));
	room += sizeof(x);
	value = (next_random() % 2 ? long_varlena : short_varlena) ((char *) words, n * 2);
	memcpy(room, DatumGetPointer(value), VARSIZE_ANY(DatumGetPointer(value)));
	return PointerGetDatum(room);
}

static const struct Kind
{
	const char *name;
	WsEncoding	encoding;
	int			width;
	Compare		compare;
	Datum		(*make) (void);
}			kinds[] = {
	{"tid", WS_ENC_TID, 6, cmp_tid, random_tid},
	{"interval", WS_ENC_INTERVAL, 10, cmp_interval, random_interval},
	{"bit", WS_ENC_BIT, 0, cmp_bit, random_bit},
	{"inet", WS_ENC_INET, 0, cmp_inet, random_inet},
	{"text of few letters", WS_ENC_TEXT, 0, cmp_varlena, random_text},
	{"bpchar of few letters", WS_ENC_BPCHAR, 0, cmp_bpchar, random_bpchar},
	{"name of few letters", WS_ENC_NAME, 0, cmp_name, random_name},
	{"int4 of few values", WS_ENC_INT4, 4, cmp_int4, random_int4},
	{"uuid of few bytes", WS_ENC_BYTES, 16, cmp_uuid, random_uuid},
	{"numeric", WS_ENC_NUMERIC, 0, cmp_numeric, random_numeric},
};

/* Two or three columns of these kinds, in one key. */
static void
check_kinds_together(void)
{
	enum {VALUES = 60};
	static Datum data[lengthof(kinds)][VALUES];
	long		wrong = 0,
				wrong_entry = 0,
				wrong_complete = 0,
				wrong_cut = 0,
				complete = 0;

	for (int k = 0; k < lengthof(kinds); k++)
		for (int i = 0; i < VALUES; i++)
			data[k][i] = kinds[k].make();
	for (int round = 0; round < 1000000; round++)
	{
		WsKeyColumn cols[3];
		WsKeySpec	spec;
		int			n = 2 + next_random() % 2;
		Datum		a[3],
					b[3];
		bool		an[3] = {false},
					bn[3] = {false};
		uint8		akey[MAX_KEY + WS_PREFIX_BYTES],
					bkey[MAX_KEY + WS_PREFIX_BYTES];
		WsEntry		ae,
					be;
		Size		length;
		int			want = 0;

		for (int i = 0; i < n; i++)
		{
			int			k = next_random() % lengthof(kinds);

			cols[i] = column(kinds[k].encoding, kinds[k].width, next_random() % 16);
			a[i] = data[k][next_random() % VALUES];
			b[i] = next_random() % 3 ? a[i] : data[k][next_random() % VALUES];
			if (!cols[i].notnull)
			{
				an[i] = next_random() % 5 == 0;
				bn[i] = next_random() % 3 ? an[i] : !an[i];
			}
			if (want == 0)
				want = reference(&cols[i], kinds[k].compare, (Value) {a[i], an[i]}, (Value) {b[i], bn[i]});
		}
		spec = spec_of(cols, n);
		length = whole_key(&spec, a, an, akey);
		(void) whole_key(&spec, b, bn, bkey);
		wrong += sign(memcmp(akey, bkey, MAX_KEY)) != want;

		ae = ws_key_entry(&spec, a, an, 1);
		wrong_entry += !spec.exact && !ws_entry_same_prefix(ae, ws_key_window_entry(akey, 1));
		be = ws_key_entry(&spec, b, bn, 1);
		if (ws_entry_same_prefix(ae, be))
			wrong_entry += want != 0 && ws_key_complete(&spec, ae);
		else
			wrong_entry += (ws_entry_int(ae) > ws_entry_int(be) ? 1 : -1) != want;
		if (!spec.exact)
		{
			spec.cut = false;
			(void) ws_key_entry(&spec, a, an, 1);
			/* of one that just fits, nobody has looked whether a null follows, which takes no byte */
			if (!spec.first_alone && length != WS_PREFIX_BYTES)
				wrong_cut += spec.cut != (length > WS_PREFIX_BYTES);
			wrong_cut += ws_key_tells_all(&spec) && length > WS_PREFIX_BYTES;
			wrong_complete += ws_key_complete(&spec, ae) != (length <= WS_PREFIX_BYTES);
			complete += length <= WS_PREFIX_BYTES;
		}
	}
	CHECK(wrong == 0, "columns together: key bytes order like the values (%ld pairs wrong)", wrong);
	CHECK(wrong_entry == 0, "columns together: entries order like the values (%ld pairs wrong)", wrong_entry);
	CHECK(wrong_complete == 0 && complete > 1000,
		  "columns together: complete keys are known (%ld wrong, %ld complete)", wrong_complete, complete);
	CHECK(wrong_cut == 0, "columns together: keys that a prefix cuts are noted (%ld wrong)", wrong_cut);
}

/* The lengths that ties and merges count on: what a common key must fit in. */
static void
check_lengths(void)
{
	static const struct
	{
		int			family,
					bits;
		Size		length;
	}			cases[] = {{PGSQL_AF_INET, 32, 6}, {PGSQL_AF_INET, 24, 7}, {PGSQL_AF_INET, 9, 9},
	{PGSQL_AF_INET, 0, 10}, {PGSQL_AF_INET6, 128, 18}, {PGSQL_AF_INET6, 64, 26}, {PGSQL_AF_INET6, 0, 34}};
	bool		notnull = false;
	WsKeyColumn col = column(WS_ENC_INET, 0, 4);
	WsKeySpec	spec = spec_of(&col, 1);

	for (int i = 0; i < lengthof(cases); i++)
	{
		inet_struct inet = {cases[i].family, cases[i].bits, {0}};
		Datum		value = long_varlena((char *) &inet, cases[i].family == PGSQL_AF_INET ? 6 : 18);
		uint8		key[MAX_KEY + WS_PREFIX_BYTES];

		CHECK(whole_key(&spec, &value, &notnull, key) == cases[i].length,
			  "inet of family %d with %d bits takes %d bytes",
			  cases[i].family, cases[i].bits, (int) cases[i].length);
	}
}

/* A text's terminator says whether the column behind it is null. */
static void
check_null_told(void)
{
	Datum		values[2] = {long_varlena("1234567\1", 8), Int32GetDatum(7)};
	uint8		key[MAX_KEY + WS_PREFIX_BYTES];

	for (int options = 0; options < 16; options++)
	{
		WsKeyColumn cols[2] = {column(WS_ENC_TEXT, 0, (options & 3) | 12), column(WS_ENC_INT4, 4, options >> 2)};
		WsKeySpec	spec = spec_of(cols, 2);
		bool		isnull[2] = {false, false};
		Size		length = whole_key(&spec, values, isnull, key);

		isnull[1] = true;
		CHECK(length == 9 + 1 + 4 && whole_key(&spec, values, isnull, key) == 10 &&
			  ws_key_complete(&spec, ws_key_entry(&spec, values, isnull, 1)),
			  "text before int4 under options %d: %d bytes, and 10 if that is null", options, (int) length);
	}
}

/* A null has its byte for itself where that is possible. */
static void
check_nulls_apart(void)
{
	Datum		value = long_varlena("abc", 3);
	uint8		key[MAX_KEY + WS_PREFIX_BYTES];

	for (int options = 0; options < 16; options++)
	{
		WsKeyColumn col = column(WS_ENC_TEXT, 0, options & ~4);
		WsKeySpec	spec = spec_of(&col, 1);
		bool		apart = (options & 8) != 0 && ((options & 1) != 0) == ((options & 2) != 0);
		bool		isnull = false;
		Size		length = whole_key(&spec, &value, &isnull, key);

		isnull = true;
		CHECK(col.null_apart == apart && length == (apart ? 4 : 5) &&
			  whole_key(&spec, &value, &isnull, key) == 1,
			  "text under options %d: %d bytes, and one for null", options, (int) length);
	}
}

static void
check_columns(void)
{
	long		wrong = 0;

	/* text, int4, text: order is lexicographic over columns */
	for (int round = 0; round < 200000; round++)
	{
		static Datum texts[40];
		WsKeyColumn cols[3];
		WsKeySpec	spec;
		Datum		a[3],
					b[3];
		bool		an[3],
					bn[3];
		uint8		akey[MAX_KEY + WS_PREFIX_BYTES],
					bkey[MAX_KEY + WS_PREFIX_BYTES];
		int			want = 0;
		Compare		compare[3] = {cmp_varlena, cmp_int4, cmp_varlena};

		if (round == 0)
			strings(texts, 40, "ab", 2);
		cols[0] = column(WS_ENC_TEXT, 0, next_random() & 11);
		cols[1] = column(WS_ENC_INT4, 4, next_random() & 3);
		cols[2] = column(WS_ENC_BYTEA, 0, next_random() & 3);
		spec = spec_of(cols, 3);
		for (int i = 0; i < 3; i++)
		{
			a[i] = i == 1 ? Int32GetDatum((int) (next_random() % 3) - 1) : texts[next_random() % 40];
			b[i] = next_random() % 2 ? a[i] :
				i == 1 ? Int32GetDatum((int) (next_random() % 3) - 1) : texts[next_random() % 40];
			an[i] = next_random() % 5 == 0;
			bn[i] = next_random() % 5 == 0;
			if (want == 0)
				want = reference(&cols[i], compare[i], (Value) {a[i], an[i]}, (Value) {b[i], bn[i]});
		}
		(void) whole_key(&spec, a, an, akey);
		(void) whole_key(&spec, b, bn, bkey);
		wrong += sign(memcmp(akey, bkey, MAX_KEY)) != want;
	}
	CHECK(wrong == 0, "three columns order one after the other (%ld pairs wrong)", wrong);
}

#define N 120

int
main(void)
{
	Datum		d[N];
	int			n;
	static const int64 edges[] = {0, 1, -1, 2, -2, 127, 128, -128, 255, 256, 32767, -32768,
	65536, PG_INT32_MAX, PG_INT32_MIN, PG_INT64_MAX, PG_INT64_MIN};
	static const double reals[] = {0.0, -0.0, 1, -1, 0.5, -0.5, 1e30, -1e30, 1e-30, -1e-30,
	FLT_MIN, -FLT_MIN, FLT_MIN / 8, INFINITY, -INFINITY, NAN, -NAN};

	d[0] = BoolGetDatum(false);
	d[1] = BoolGetDatum(true);
	check_pairs("bool", WS_ENC_BOOL, 1, cmp_bool, d, 2);

	for (n = 0; n < N; n++)
		d[n] = CharGetDatum((char) (n * 2 + (n > 60)));
	check_pairs("\"char\"", WS_ENC_CHAR, 1, cmp_char, d, N);

#define INTEGERS(make) \
	for (n = 0; n < N; n++) \
		d[n] = make(n < (int) lengthof(edges) ? edges[n] : (int64) (next_random() >> (next_random() % 60)) * (n & 1 ? 1 : -1))
	INTEGERS(Int16GetDatum);
	check_pairs("int2", WS_ENC_INT2, 2, cmp_int2, d, N);
	INTEGERS(Int32GetDatum);
	check_pairs("int4", WS_ENC_INT4, 4, cmp_int4, d, N);
	INTEGERS(Int64GetDatum);
	check_pairs("int8", WS_ENC_INT8, 8, cmp_int8, d, N);
	check_decoded("int8", WS_ENC_INT8, 8, d, N);
	INTEGERS(UInt32GetDatum);
	check_pairs("oid", WS_ENC_UINT4, 4, cmp_oid, d, N);
	INTEGERS(UInt64GetDatum);
	check_pairs("xid8", WS_ENC_UINT8, 8, cmp_uint8, d, N);

#define REAL(i) ((i) < (int) lengthof(reals) ? reals[i] : ((double) (int64) next_random()) * pow(2, (int) (next_random() % 60) - 80))
	for (n = 0; n < N; n++)
		d[n] = Float4GetDatum((float4) REAL(n));
	check_pairs("float4", WS_ENC_FLOAT4, 4, cmp_float4, d, N);
	d[0] = Int32GetDatum(0x7F800001);
	d[1] = Int32GetDatum((int32) 0xFF800001);
	d[2] = Int32GetDatum(-1);
	check_pairs("float4, apart", WS_ENC_FLOAT4_APART, 4, cmp_float4_apart, d, N);
	check_decoded("float4", WS_ENC_FLOAT4_APART, 4, d, N);
	for (n = 0; n < N; n++)
		d[n] = Float8GetDatum(REAL(n));
	check_pairs("float8", WS_ENC_FLOAT8, 8, cmp_float8, d, N);
	d[0] = UInt64GetDatum(UINT64CONST(0x7FF0000000000001));
	d[1] = UInt64GetDatum(UINT64CONST(0xFFF0000000000001));
	d[2] = UInt64GetDatum(~UINT64CONST(0));
	check_pairs("float8, apart", WS_ENC_FLOAT8_APART, 8, cmp_float8_apart, d, N);
	check_decoded("float8", WS_ENC_FLOAT8_APART, 8, d, N);

	for (n = 0; n < N; n++)
	{
		uint8	   *u = calloc(1, 16);

		for (int i = 0; i < 16; i++)
			u[i] = i < n % 15 ? 0x80 : (uint8) next_random();
		d[n] = PointerGetDatum(u);
	}
	check_pairs("uuid", WS_ENC_BYTES, 16, cmp_uuid, d, N);

	for (n = 0; n < N; n++)
	{
		TimeTzADT  *t = calloc(1, sizeof(TimeTzADT));

		t->zone = ((int) (next_random() % 5) - 2) * 3600;
		t->time = (int64) (next_random() % 5) * 3600 * USECS_PER_SEC;
		d[n] = PointerGetDatum(t);
	}
	check_pairs("timetz", WS_ENC_TIMETZ, 12, cmp_timetz, d, N);

	n = strings(d, N, "\364ab", 3);	/* 377 is in no text of UTF-8 */
	check_pairs("text", WS_ENC_TEXT, 0, cmp_varlena, d, n);
	n = strings(d, N, "a b", 3);
	check_pairs("bpchar", WS_ENC_BPCHAR, 0, cmp_bpchar, d, n);
	n = strings(d, N, "\0\377\1", 3);
	check_pairs("bytea", WS_ENC_BYTEA, 0, cmp_varlena, d, n);
	for (n = 0; n < N; n++)
	{
		Name		name = calloc(1, NAMEDATALEN);
		int			len = next_random() % 40;

		for (int i = 0; i < len; i++)
			NameStr(*name)[i] = i < 12 ? 'n' : "ab\377"[next_random() % 3];
		d[n] = NameGetDatum(name);
	}
	check_pairs("name", WS_ENC_NAME, 0, cmp_name, d, N);

	for (int k = 0; k < lengthof(kinds); k++)
	{
		static Datum many[500];

		for (n = 0; n < lengthof(many); n++)
			many[n] = kinds[k].make();
		check_pairs(kinds[k].name, kinds[k].encoding, kinds[k].width, kinds[k].compare, many, n);
	}
	check_lengths();
	check_nulls_apart();
	check_null_told();
	check_columns();
	check_kinds_together();
	return failures != 0;
}
