/*-------------------------------------------------------------------------
 * normalize.c - column values to key bytes.
 *
 * Encodings (after AlphaSort's key prefixes and KioxiaSort's keys as
 * big-endian integers; the layout of a key is in key.h):
 *
 *	signed integers		sign bit flipped, big-endian
 *	floats				-0 becomes +0, every NaN the greatest value; then all
 *						bits of a negative, the sign bit of a positive flipped
 *	uuid, macaddr		their bytes
 *	timetz				UTC time as int8, then the zone as int4
 *	interval			microseconds, 30 days a month, as a signed integer
 *	tid					block, then offset
 *	text, bpchar, name	their bytes, then 00 (no value contains a zero byte);
 *						bpchar without its trailing blanks; before a column with a
 *						null byte 00 or 01, which saves that byte, and 01 and 02
 *						written as 02 01 and 02 02
 *	bytea				00 written as 00 FF, then 00 00
 *	bit, varbit			their bytes as bytea, then how many bits of the last count
 *	inet, cidr			family, network address, netmask's bits, then the
 *						address from the byte that the netmask ends in
 *	numeric				its weight and its digits (numeric.c)
 *	text under libc		strxfrm's bytes, which are a guess (transform.c)
 *	text under ICU		places of its letters, an end, its cases (letters.c), or as
 *						core's abbreviated key (SortSupport), which is not decisive on ties
 *	arrays, ranges,		one of the same kind (nested.c, jsonb.c)
 *	multiranges, jsonb,
 *	composite types
 *	any of these	in front of that, or instead of it, a code (dictionary.c)
 *
 * Values that compare equal encode equal: otherwise the next column would
 * never decide.
 *
 * Pure: no I/O, and no allocation except where a value must be detoasted.
 * Key bytes are produced through a window of WS_PREFIX_BYTES bytes at any
 * offset, so that a long key is never materialised.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

#include "access/detoast.h"
#include "fmgr.h"
#include "key/fixed.h"
#include "port/pg_bswap.h"

/* Of a column that is known to hold no null: the planner was wrong, or the table violates its constraint. */
void
ws_unexpected_null(void)
{
	elog(ERROR, "null value in a sort column that is declared NOT NULL");
}

/*
 * In a database of UTF-8 a null has byte 0xFF for itself.  A text that begins so is not UTF-8, but may come
 * from a shared catalog; this byte is put in front of it, and of one that begins with this.
 */
#define ESCAPED_FIRST	0xFE

/* Where in the key we are, and which of its bytes are wanted. */
typedef struct Window
{
	uint8	   *out;
	Size		skip;			/* first byte wanted */
	Size		end;			/* behind the last */
	Size		pos;			/* bytes of the key so far */
} Window;

static inline bool
window_full(const Window *w)
{
	return w->pos > w->end;
}

static inline void
put_byte(Window *w, uint8 byte)
{
	if (w->pos >= w->skip && w->pos < w->end)
		w->out[w->pos - w->skip] = byte;
	w->pos++;
}

/* A byte in each byte of a word. */
static inline uint64
eight_times(uint8 byte)
{
	return ~UINT64CONST(0) / 0xFF * byte;
}

static inline void
copy_bytes(uint8 *out, const uint8 *bytes, Size n, uint8 invert)
{
	Size		i = 0;

	if (invert == 0 && n > 2 * sizeof(uint64))
	{
		memcpy(out, bytes, n);
		return;
	}
	for (; i + sizeof(uint64) <= n; i += sizeof(uint64))
	{
		uint64		word;

		memcpy(&word, bytes + i, sizeof(word));
		word ^= eight_times(invert);
		memcpy(out + i, &word, sizeof(word));
	}
	for (; i < n; i++)
		out[i] = bytes[i] ^ invert;
}

static void
put_bytes(Window *w, const uint8 *bytes, Size n, uint8 invert)
{
	Size		from = w->skip > w->pos ? w->skip - w->pos : 0;
	Size		to = w->end > w->pos ? w->end - w->pos : 0;

	to = Min(to, n);
	if (from < to)
		copy_bytes(w->out + (w->pos + from - w->skip), bytes + from, to - from, invert);
	w->pos += n;
}

/* Is none of eight bytes zero? */
static inline bool
none_zero(const uint8 *bytes)
{
	uint64		word;

	memcpy(&word, bytes, sizeof(word));
	return ((word - eight_times(1)) & ~word & eight_times(0x80)) == 0;
}

/* How many of n bytes, by eights, need no escape, of a text or of a bytea.  The window is not full. */
static inline Size
plain_bytes(const Window *w, const uint8 *bytes, Size n, bool text)
{
	Size		most = Min(n, w->end - w->pos + sizeof(uint64));
	Size		i = 0;

	while (i + sizeof(uint64) <= most && (text ? ws_none_escaped(bytes + i, 0) : none_zero(bytes + i)))
		i += sizeof(uint64);
	return i;
}

static void
put_bytea(Window *w, const uint8 *bytes, Size n, uint8 invert)
{
	for (Size i = 0; i < n && !window_full(w); i++)
	{
		Size		plain = plain_bytes(w, bytes + i, n - i, false);

		put_bytes(w, bytes + i, plain, invert);
		i += plain;
		if (i == n || window_full(w))
			break;
		put_byte(w, bytes[i] ^ invert);
		if (bytes[i] == 0)
			put_byte(w, 0xFF ^ invert);
	}
	put_byte(w, invert);
	put_byte(w, invert);
}

/*
 * A text before a column that may be null: its bytes, and a terminator for each of the two
 * cases, in their order.  Both are below every byte of the text, or above if inverted.
 */
static void
put_text_before(Window *w, const WsKeyColumn *next, bool next_null,
				const uint8 *bytes, Size n, uint8 invert)
{
	bool		second = next_null != next->nulls_first;

	for (Size i = 0; i < n && !window_full(w); i++)
	{
		Size		plain = plain_bytes(w, bytes + i, n - i, true);

		put_bytes(w, bytes + i, plain, invert);
		i += plain;
		if (i == n || window_full(w))
			break;
		if (bytes[i] <= WS_LAST_ESCAPED)
			put_byte(w, WS_LAST_ESCAPED ^ invert);
		put_byte(w, bytes[i] ^ invert);
	}
	put_byte(w, (invert & ~1) + second);
}

static inline void
put_text(Window *w, const WsKeyColumn *col, bool next_null, const uint8 *bytes, Size n,
		 uint8 invert)
{
	if (col->tells_null)
		put_text_before(w, col + 1, next_null, bytes, n, invert);
	else
	{
		put_bytes(w, bytes, n, invert);
		put_byte(w, invert);
	}
}

/*
 * A bit string of n bytes, its length of 4 bytes included, is compared by the
 * bytes behind that, then by the length in bits.  If one's bytes begin the
 * other's, it is the shorter one in bits as well; if they are the same bytes,
 * the lengths differ only in how many bits of the last byte count.
 */
static void
put_bit(Window *w, const uint8 *value, Size n, uint8 invert)
{
	int32		bits;
	Size		bytes = n - sizeof(bits);

	memcpy(&bits, value, sizeof(bits)); /* not aligned behind a short header */
	put_bytea(w, value + sizeof(bits), bytes, invert);
	put_byte(w, (uint8) (bytes > 0 ? bits - BITS_PER_BYTE * (bytes - 1) : 0) ^ invert);
}

/*
 * Addresses of a family are compared by the bits that both netmasks have, then
 * by the number of bits in the netmask, then by all bits.  Masked addresses
 * give the same: let m <= n be the netmasks' bits.  If the first m bits
 * differ, so do the masked addresses, at the same bit.  If not, the one of m
 * bits is 0 where the other may have ones, so it is the smaller one or both are
 * equal, and bits decide: m is the smaller one again.  If bits are equal too,
 * so are the netmasks' bytes, and what is left of the address decides.  The
 * family and the bits tell how long that is.
 */
static void
put_inet(Window *w, const inet_struct *inet, uint8 invert)
{
	int			bytes = ws_inet_address_bytes(inet->family);
	int			network = ws_inet_network_bytes(inet->family, inet->bits);

	put_byte(w, inet->family ^ invert);
	put_bytes(w, inet->ipaddr, network, invert);
	for (int i = network; i < bytes; i++)
	{
		uint8		mask = i == network ? 0xFF00 >> (inet->bits % BITS_PER_BYTE) : 0;

		put_byte(w, (inet->ipaddr[i] & mask) ^ invert);
	}
	put_byte(w, inet->bits ^ invert);
	put_bytes(w, inet->ipaddr + network, bytes - network, invert);
}

/* Appends the guess at a text's order, without its first bytes. */
static void
put_guess(Window *w, const WsKeyColumn *col, Datum value, Size without)
{
	uint8		bytes[sizeof(uint64) + WS_BEGINNING + WS_MOST_BEHIND + WS_TIED_BYTES];
	/* letters are cheap, and transforming is not */
	Size		most = col->alphabet != NULL ? sizeof(bytes) - without : WS_PREFIX_BYTES - w->pos;
	Size		wanted = Min(w->end - w->pos, most);

	ws_guess_of(col, value, without + wanted, bytes);
	put_bytes(w, bytes + without, wanted, 0);
}

/* Appends what the letters of a text tell.  False if that is not all of its order: no bytes follow. */
static bool
put_letters(Window *w, const WsKeyColumn *col, Datum value)
{
	Size		from = w->skip > w->pos ? w->skip - w->pos : 0;
	Size		wanted = w->end > w->pos + from ? w->end - w->pos - from : 0;
	uint8	   *out = w->out + (w->pos + from - w->skip);
	bool		plain;
	Size		n = ws_letters_bytes(col, value, from, wanted, out, &plain);

	if (col->descending)
		for (Size i = 0; i + from < Min(n, from + wanted); i++)
			out[i] ^= 0xFF;
	w->pos += n;
	return plain;
}

static void
put_numeric(Window *w, const uint8 *value, Size n, uint8 invert)
{
	Size		from = w->skip > w->pos ? w->skip - w->pos : 0;
	Size		wanted = w->end > w->pos + from ? w->end - w->pos - from : 0;

	w->pos += ws_numeric_bytes(value, n, invert, from, wanted, w->out + (w->pos + from - w->skip));
}

/* What is asked for of a key. */
typedef enum Asked
{
	GUESSED_BYTES,
	VERIFIED_BYTES,				/* without those of transform.c; guesses of letters are verified */
	CERTAIN_BYTES,				/* and without those of letters that are a guess */
	TOLD_BYTES,					/* and with codes only of values whose order bytes do not tell wholly */
	NO_LENGTH					/* with all guesses, but how long the key is may remain unknown */
} Asked;

/* May bytes of a guess at a column's order, at their place, be among those that are asked for? */
static inline bool
may_guess(const Window *w, const WsKeyColumn *col, Asked asked)
{
	return col->encoding != WS_ENC_TRANSFORMED ||
		(w->pos <= WS_LAST_GUESS && (asked == GUESSED_BYTES || asked == NO_LENGTH));
}

/* Appends the code of a value, or that of a gap and, if asked, the value's hint.  Is it a code of its own? */
static bool
put_code(Window *w, const WsKeyColumn *col, Datum value, Asked asked)
{
	uint32		code = ws_dictionary_code(col->dictionary, value);
	WsHint		hint;

	for (int i = col->code_bytes - 1; i >= 0; i--)
		put_byte(w, (uint8) (code >> (i * 8)));
	if (ws_code_is_exact(code))
		return true;
	if (asked == TOLD_BYTES || col->encoding == WS_ENC_NONE || !may_guess(w, col, asked))
		return false;
	hint = ws_dictionary_hint(col->dictionary);
	if (col->alphabet != NULL)
		put_guess(w, col, value, hint.passed);
	else
	{
		hint.bits = pg_hton64(hint.bits);
		put_bytes(w, (const uint8 *) &hint.bits + hint.passed, sizeof(hint.bits) - hint.passed, 0);
	}
	return false;
}

/* Bytes of a bpchar without the blanks at its end. */
static inline Size
without_blanks(const uint8 *bytes, Size n)
{
	while (n > 0 && bytes[n - 1] == ' ')
		n--;
	return n;
}

/* A value of variable length: what the window has room for, and a byte more, which says that it goes on. */
static struct varlena *
value_in_window(const Window *w, const WsKeyColumn *col, Datum value)
{
	/* each byte is at least one of the key */
	if ((col->encoding == WS_ENC_TEXT && !col->lowered) || col->encoding == WS_ENC_BYTEA)
		return ws_value_beginning(value, w->end > w->pos ? w->end - w->pos + 1 : 1);
	return ws_text_of(col, value);
}

/* Appends one non-null value.  A column that tells_null also says `next_null` of the next. */
static void
put_value(Window *w, const WsKeyColumn *col, Datum value, bool next_null)
{
	uint8		invert = col->descending ? 0xFF : 0;

	if (col->width > 0)
	{
		ws_uint128	bits = fixed_bits(col, value) << (128 - 8 * col->width);
		uint64		half[2] = {pg_hton64((uint64) (bits >> 64)), pg_hton64((uint64) bits)};

		put_bytes(w, (const uint8 *) half, col->width, invert);
	}
	else if (col->encoding == WS_ENC_NAME)
	{
		const char *name = NameStr(*DatumGetName(value));

		put_text(w, col, next_null, (const uint8 *) name, strnlen(name, NAMEDATALEN), invert);
	}
	else
	{
		struct varlena *v = value_in_window(w, col, value);
		const uint8 *bytes = (const uint8 *) VARDATA_ANY(v);
		Size		n = VARSIZE_ANY_EXHDR(v);

		if (col->encoding == WS_ENC_BYTEA)
			put_bytea(w, bytes, n, invert);
		else if (col->encoding == WS_ENC_BIT)
			put_bit(w, bytes, n, invert);
		else if (col->encoding == WS_ENC_INET)
			put_inet(w, (const inet_struct *) bytes, invert);
		else if (col->encoding == WS_ENC_NUMERIC)
			put_numeric(w, bytes, n, invert);
		else
		{
			if (col->encoding == WS_ENC_BPCHAR)
				n = without_blanks(bytes, n);
			if (unlikely(col->null_apart && n > 0 && bytes[0] >= ESCAPED_FIRST))
				put_byte(w, ESCAPED_FIRST ^ invert);
			put_text(w, col, next_null, bytes, n, invert);
		}
		if ((Pointer) v != DatumGetPointer(value))
			pfree(v);
	}
}

/* A value of a column of fixed width, of any direction, as an integer of so many bytes. */
ws_uint128
ws_value_bits(const WsKeyColumn *col, Datum value)
{
	return fixed_bits(col, value);
}

/*
 * Writes the first n bytes that a value has in a key to `out`, with zeros behind its end.  Returns how many
 * bytes it has, as far as it was followed.
 */
Size
ws_value_bytes(const WsKeyColumn *col, Datum value, Size n, uint8 *out)
{
	Window		w = {out, 0, n, 0};

	memset(out, 0, n);
	put_value(&w, col, value, false);
	return w.pos;
}

/* Needs none of n bytes of a text an escape before a column that may be null? */
static inline bool
none_escaped(const uint8 *bytes, Size n)
{
	uint64		word;

	for (; n >= sizeof(word); n -= sizeof(word), bytes += sizeof(word))
		if (!ws_none_escaped(bytes, 0))
			return false;
	memset(&word, 0xFF, sizeof(word));
	memcpy(&word, bytes, n);
	return ws_none_escaped((uint8 *) &word, 0);
}

/*
 * Begins a key with a text (ws_text_first) that is not null, as put_value does, and with zeros behind it.
 * Does nothing, and returns false, if that is not simple.
 */
static inline bool
begin_with_text(Window *w, const WsKeySpec *spec, const Datum *values, const bool *isnull)
{
	const WsKeyColumn *col = &spec->cols[0];
	struct varlena *v = (struct varlena *) DatumGetPointer(values[col->attno - 1]);
	const uint8 *bytes = (const uint8 *) VARDATA_ANY(v);
	uint8		invert = col->descending ? 0xFF : 0;
	bool		second = false;
	Size		n;

	if (unlikely(VARATT_IS_EXTERNAL(v) || VARATT_IS_COMPRESSED(v) || col->lowered))
		return false;
	n = VARSIZE_ANY_EXHDR(v);
	if (col->encoding == WS_ENC_BPCHAR)
		n = without_blanks(bytes, n);
	if (col->tells_null)
	{
		if (unlikely(!none_escaped(bytes, Min(n, w->end))))
			return false;
		second = isnull[col[1].attno - 1] != col[1].nulls_first;
	}
	if (unlikely(col->null_apart && n > 0 && bytes[0] >= ESCAPED_FIRST))
		return false;
	if (!col->notnull && !col->null_apart)
		put_byte(w, ws_null_byte(col, false));
	put_bytes(w, bytes, n, invert);
	put_byte(w, col->tells_null ? (invert & ~1) + second : invert);
	if (w->pos <= w->skip)
		memset(w->out, 0, w->end - w->skip);
	else if (w->pos < w->end)
		memset(w->out + (w->pos - w->skip), 0, w->end - w->pos);
	return true;
}

/*
 * What ws_key_bytes does, for the columns from number `from` on, in a window that stands where they begin.
 * Where no length is asked for, nobody looks at values behind the last byte: it is only said that there are
 * more bytes.
 */
static inline Size
key_bytes(Window *w, const WsKeySpec *spec, int from, const Datum *values, const bool *isnull, Asked asked)
{
	bool		told = false;	/* the column before says whether this one is null */
	bool		guessed = false;
	int			i = from;

	if (from == 0 && ws_text_first(spec) && likely(!isnull[spec->cols[0].attno - 1]) &&
		begin_with_text(w, spec, values, isnull))
	{
		told = spec->cols[0].tells_null;
		i++;
	}
	else
		memset(w->out, 0, w->end - w->skip);
	for (; i < spec->ncols && !(asked == NO_LENGTH ? w->pos >= w->end : window_full(w)); i++)
	{
		const WsKeyColumn *col = &spec->cols[i];
		int			att = col->attno - 1;

		if (!col->notnull && !told && (isnull[att] || !col->null_apart))
			put_byte(w, ws_null_byte(col, isnull[att]));
		told = col->tells_null && !isnull[att];
		if (isnull[att])
		{
			if (unlikely(col->notnull))
				ws_unexpected_null();
			continue;
		}
		if (asked == NO_LENGTH && w->pos >= w->end)
			break;
		if (col->dictionary != NULL)
		{
			if (put_code(w, col, values[att], asked))
				continue;
			return WS_KEY_UNBOUNDED;
		}
		if (col->encoding == WS_ENC_LETTERS)
		{
			if ((asked == CERTAIN_BYTES || asked == TOLD_BYTES) && col->letters->strange)
				return WS_KEY_UNBOUNDED;
			if (!put_letters(w, col, values[att]) && !window_full(w))
				return WS_KEY_UNBOUNDED;
			guessed |= col->letters->strange;
			continue;
		}
		if (asked == TOLD_BYTES && ws_encoding_partial(col->encoding))
			return WS_KEY_UNBOUNDED;
		if (col->encoding == WS_ENC_TRANSFORMED)
		{
			if (may_guess(w, col, asked))
				put_guess(w, col, values[att], 0);
		}
		else if (col->encoding != WS_ENC_NONE)
			put_value(w, col, values[att], told && isnull[col[1].attno - 1]);
		if (ws_encoding_partial(col->encoding))
			return WS_KEY_UNBOUNDED;
	}
	return guessed && asked != NO_LENGTH ? WS_KEY_UNBOUNDED : w->pos + (i < spec->ncols);
}

/*
 * Writes key bytes skip .. skip + n - 1 to `out`, zero beyond the key's end.  `values` and `isnull` are
 * the row's, indexed by attno - 1.  Returns the key's length in bytes as far as it was followed: at most
 * skip + n only if the key ends within these bytes; WS_KEY_UNBOUNDED if they reach a value whose order
 * bytes do not tell.
 */
Size
ws_key_bytes(const WsKeySpec *spec, const Datum *values, const bool *isnull, Size skip, Size n, uint8 *out)
{
	return key_bytes(&(Window) {out, skip, skip + n, 0}, spec, 0, values, isnull, VERIFIED_BYTES);
}

/* The same with a guess at the order of such a value (transform.c), where a prefix would have it. */
Size
ws_key_guessed_bytes(const WsKeySpec *spec, const Datum *values, const bool *isnull, Size skip, Size n,
					 uint8 *out)
{
	return key_bytes(&(Window) {out, skip, skip + n, 0}, spec, 0, values, isnull, GUESSED_BYTES);
}

/*
 * What ws_key_bytes does, without bytes of letters that are a guess (letters.c): zero, and as if they reached
 * a value whose order bytes do not tell.
 */
Size
ws_key_certain_bytes(const WsKeySpec *spec, const Datum *values, const bool *isnull, Size skip, Size n,
					 uint8 *out)
{
	return key_bytes(&(Window) {out, skip, skip + n, 0}, spec, 0, values, isnull, CERTAIN_BYTES);
}

/*
 * The same bytes without anything of a value whose order they do not tell, but its code, and zero from there
 * on.  Sets *told to how many of them are in front of it.  Keys with the same bytes there both come to such a
 * value, so that bytes behind *told never decide between two keys.
 */
Size
ws_key_told_bytes(const WsKeySpec *spec, const Datum *values, const bool *isnull, Size skip, Size n,
				  uint8 *out, Size *told)
{
	Window		w = {out, skip, skip + n, 0};
	Size		length = key_bytes(&w, spec, 0, values, isnull, TOLD_BYTES);

	*told = length != WS_KEY_UNBOUNDED || w.pos > w.end ? n : w.pos > skip ? w.pos - skip : 0;
	return length;
}

/*
 * Writes the first bytes of the key, and zeros behind its end, that are a prefix.  Returns how many there are
 * before that end, or more than WS_PREFIX_BYTES if it lies behind them.
 */
Size
ws_key_prefix_bytes(const WsKeySpec *spec, const Datum *values, const bool *isnull,
					uint8 out[WS_PREFIX_BYTES])
{
	return key_bytes(&(Window) {out, 0, WS_PREFIX_BYTES, 0}, spec, 0, values, isnull, NO_LENGTH);
}

/*
 * Writes the first n bytes that the columns from number `from` on have in a key, as if `before` bytes were in
 * front of them: a guess is written, or not, by its place in the key (told.c).  Returns how many there are in
 * the key, with those in front; more than before + n if it goes on.
 */
Size
ws_key_bytes_behind(const WsKeySpec *spec, int from, Size before, const Datum *values, const bool *isnull,
					Size n, uint8 *out)
{
	return key_bytes(&(Window) {out, before, before + n, before}, spec, from, values, isnull, NO_LENGTH);
}
