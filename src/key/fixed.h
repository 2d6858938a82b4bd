/*-------------------------------------------------------------------------
 * fixed.h - values of fixed width as unsigned integers in their order; pure.
 *
 * Inline: prefix.c makes most prefixes of them.  normalize.c says how each type is encoded.
 *-------------------------------------------------------------------------
 */
#ifndef WS_FIXED_H
#define WS_FIXED_H

#include <math.h>

#include "key/key.h"
#include "port/pg_bswap.h"
#include "storage/itemptr.h"
#include "utils/date.h"
#include "utils/timestamp.h"

#define SIGN_32		((uint32) 1 << 31)
#define SIGN_64		(UINT64CONST(1) << 63)
#define SIGN_80		((ws_uint128) 1 << 79)

/* An encoding that tells values apart that are equal, in the place of one that does not. */
static inline WsEncoding
ws_encoding_apart(WsEncoding encoding)
{
	return encoding == WS_ENC_FLOAT4 ? WS_ENC_FLOAT4_APART :
		encoding == WS_ENC_FLOAT8 ? WS_ENC_FLOAT8_APART : encoding;
}

/* IEEE bits of a float8, ordered as unsigned integers. */
static inline uint64
float8_bits(float8 f)
{
	uint64		bits;

	if (isnan(f))
		return ~UINT64CONST(0);
	if (f == 0)
		f = 0;					/* -0 is equal to +0 */
	memcpy(&bits, &f, sizeof(bits));
	return (bits & SIGN_64) ? ~bits : bits | SIGN_64;
}

static inline uint32
float4_bits(float4 f)
{
	uint32		bits;

	if (isnan(f))
		return ~(uint32) 0;
	if (f == 0)
		f = 0;
	memcpy(&bits, &f, sizeof(bits));
	return (bits & SIGN_32) ? ~bits : bits | SIGN_32;
}

/*
 * The same, but each value has bits of its own: -0 comes before +0, and NaNs, of whatever sign, come last.
 * Those with a sign would come first, so all others take their places, and they go round to the end.
 */
#define SIGNED_NANS_64	((UINT64CONST(1) << 52) - 1)
#define SIGNED_NANS_32	(((uint32) 1 << 23) - 1)

static inline uint64
float8_bits_apart(uint64 bits)
{
	return ((bits & SIGN_64) ? ~bits : bits | SIGN_64) - SIGNED_NANS_64;
}

static inline uint32
float4_bits_apart(uint32 bits)
{
	return ((bits & SIGN_32) ? ~bits : bits | SIGN_32) - SIGNED_NANS_32;
}

/* IEEE bits of the float that has these. */
static inline uint64
float8_of_bits_apart(uint64 apart)
{
	apart += SIGNED_NANS_64;
	return (apart & SIGN_64) ? apart ^ SIGN_64 : ~apart;
}

static inline uint32
float4_of_bits_apart(uint32 apart)
{
	apart += SIGNED_NANS_32;
	return (apart & SIGN_32) ? apart ^ SIGN_32 : ~apart;
}

/*
 * What intervals compare by, as an unsigned integer of 80 bits.  Days are at
 * most 31 * 2^31 in magnitude, microseconds of them 5.76e21, with the time
 * field's 2^63 still below 2^73.  Infinity (17 and later) has all fields
 * at their extremes, and so is beyond every other interval.
 */
static inline ws_uint128
interval_bits(const Interval *span)
{
	int64		days = span->month * INT64CONST(30) + span->day;

	return (ws_uint128) days * USECS_PER_DAY + (ws_uint128) span->time + SIGN_80;
}

/* The value of a fixed-width column as an unsigned integer of col->width bytes. */
static inline ws_uint128
fixed_bits(const WsKeyColumn *col, Datum value)
{
	switch (col->encoding)
	{
		case WS_ENC_BOOL:
			return DatumGetBool(value) ? 1 : 0;
		case WS_ENC_CHAR:
			return (uint8) DatumGetChar(value);
		case WS_ENC_INT2:
			return (uint16) (DatumGetInt16(value) ^ 0x8000);
		case WS_ENC_INT4:
			return (uint32) DatumGetInt32(value) ^ 0x80000000;
		case WS_ENC_INT8:
			return (uint64) DatumGetInt64(value) ^ SIGN_64;
		case WS_ENC_UINT4:
			return DatumGetUInt32(value);
		case WS_ENC_UINT8:
			return DatumGetUInt64(value);
		case WS_ENC_FLOAT4:
			return float4_bits(DatumGetFloat4(value));
		case WS_ENC_FLOAT8:
			return float8_bits(DatumGetFloat8(value));
		case WS_ENC_FLOAT4_APART:
			return float4_bits_apart((uint32) DatumGetInt32(value));
		case WS_ENC_FLOAT8_APART:
			return float8_bits_apart(DatumGetUInt64(value));
		case WS_ENC_BYTES:
			{
				ws_uint128	bits = 0;
				uint64		half[2] = {0, 0};

				memcpy(half, DatumGetPointer(value), col->width);
				bits = ((ws_uint128) pg_hton64(half[0]) << 64) | pg_hton64(half[1]);
				return bits >> (128 - 8 * col->width);
			}
		case WS_ENC_TIMETZ:
			{
				const TimeTzADT *t = (const TimeTzADT *) DatumGetPointer(value);
				uint64		utc = (uint64) (t->time + t->zone * USECS_PER_SEC) ^ SIGN_64;

				return ((ws_uint128) utc << 32) | ((uint32) t->zone ^ 0x80000000);
			}
		case WS_ENC_INTERVAL:
			return interval_bits((const Interval *) DatumGetPointer(value));
		case WS_ENC_TID:
			{
				const ItemPointerData *tid = (const ItemPointerData *) DatumGetPointer(value);

				return ((uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16) |
					ItemPointerGetOffsetNumberNoCheck(tid);
			}
		case WS_ENC_ABBREVIATED:
			return ws_key_abbreviation(col, value);
		default:
			return 0;
	}
}

#endif							/* WS_FIXED_H */
