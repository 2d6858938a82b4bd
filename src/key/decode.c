/*-------------------------------------------------------------------------
 * decode.c - key bytes back to column values.
 *
 * If a sort's rows have no columns but its keys, and the prefix is the whole
 * key, the entry says all there is to say of a row.  That takes an encoding
 * that gives equal bytes to identical values only: integers and the like.
 * Floats have two zeros, which are equal, and many NaNs: only behind the last
 * column does it not matter if these are told apart.  Texts have lengths of
 * their own.
 *
 * Pure: the inverse of ws_key_entry (prefix.c).
 *-------------------------------------------------------------------------
 */
#include "key/fixed.h"

/* Can values be told from their bytes?  Then they are passed by value. */
bool
ws_encoding_decodable(WsEncoding encoding)
{
	switch (encoding)
	{
		case WS_ENC_BOOL:
		case WS_ENC_CHAR:
		case WS_ENC_INT2:
		case WS_ENC_INT4:
		case WS_ENC_INT8:
		case WS_ENC_UINT4:
		case WS_ENC_UINT8:
		case WS_ENC_FLOAT4_APART:
		case WS_ENC_FLOAT8_APART:
			return true;
		default:
			return false;
	}
}

static inline Datum
decode_value(WsEncoding encoding, uint64 bits)
{
	switch (encoding)
	{
		case WS_ENC_BOOL:
			return BoolGetDatum(bits != 0);
		case WS_ENC_CHAR:
			return CharGetDatum((char) bits);
		case WS_ENC_INT2:
			return Int16GetDatum((int16) (bits ^ 0x8000));
		case WS_ENC_INT4:
			return Int32GetDatum((int32) ((uint32) bits ^ 0x80000000));
		case WS_ENC_INT8:
			return Int64GetDatum((int64) (bits ^ SIGN_64));
		case WS_ENC_FLOAT4_APART:
			return Int32GetDatum((int32) float4_of_bits_apart((uint32) bits));
		case WS_ENC_FLOAT8_APART:
			return UInt64GetDatum(float8_of_bits_apart(bits));
		case WS_ENC_UINT4:
			/* as deforming does it: by sign, whatever the type */
			return Int32GetDatum((int32) (uint32) bits);
		default:
			return UInt64GetDatum(bits);
	}
}

/*
 * Puts the key columns of an entry into `values` and `isnull`, indexed by attno -
 * 1.  The key is exact and all its columns are decodable.
 */
void
ws_key_decode(const WsKeySpec *spec, WsEntry entry, Datum *values, bool *isnull)
{
	ws_uint128	prefix = ws_entry_prefix(entry);
	int			left = WS_PREFIX_BYTES * 8;

	Assert(spec->exact);
	for (int i = 0; i < spec->ncols; i++)
	{
		const WsKeyColumn *col = &spec->cols[i];
		int			att = col->attno - 1;
		uint64		mask = ~UINT64CONST(0) >> (64 - col->width * 8);

		isnull[att] = false;
		if (!col->notnull)
		{
			left -= 8;
			isnull[att] = (uint8) (prefix >> left) == ws_null_byte(col, true);
		}
		left -= col->width * 8;
		values[att] = isnull[att] ? (Datum) 0 :
			decode_value(col->encoding,
						 ((uint64) (prefix >> left) ^ (col->descending ? mask : 0)) & mask);
	}
}
