/*-------------------------------------------------------------------------
 * keys.c - key bytes without a server, for tests to include.
 *
 * Behind unit.h.  With what these parts call of the server and of parts that are not there.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"

/* The server's part: nothing here is toasted, errors end the test. */
struct varlena *
pg_detoast_datum_packed(struct varlena *v)
{
	return v;
}

struct varlena *
pg_detoast_datum_slice(struct varlena *v, int32 first, int32 count)
{
	return v;
}

Size
toast_raw_datum_size(Datum value)
{
	return VARSIZE_ANY_EXHDR(DatumGetPointer(value)) + VARHDRSZ;
}

void
pfree(void *p)
{
}

void *
palloc(Size n)
{
	return malloc(n);
}

bool
errstart(int elevel, const char *domain)
{
	return true;
}

bool
errstart_cold(int elevel, const char *domain)
{
	return true;
}

int
errmsg_internal(const char *fmt,...)
{
	printf("not ok - error raised: %s\n", fmt);
	exit(1);
}

int
errmsg(const char *fmt,...)
{
	return errmsg_internal(fmt);
}

int
errdetail(const char *fmt,...)
{
	return 0;
}

int
errcode(int sqlerrcode)
{
	return 0;
}

void
errfinish(const char *file, int line, const char *function)
{
	exit(1);
}

/* No value here is made of parts. */
bool
ws_nested_vote(SortSupport ssup, const Datum *value)
{
	return false;
}

void
ws_nested_guess(SortSupport guess, Datum value, Size wanted, uint8 *out)
{
	memset(out, 0, wanted);
}

Size
ws_transform(const WsTransform *transform, const char *text, Size n, Size wanted, char *out)
{
	n = Min(n, WS_TRANSFORMED);
	memcpy(out, text, n);
	return n;
}

/* No text here is compared in lower case. */
struct varlena *
ws_lowered(Datum value)
{
	exit(1);
}

/* No column here has an alphabet, letters or a dictionary, and no key has codes of beginnings. */
#ifndef LETTERS_OF_ITS_OWN
Size
ws_letters_bytes(const WsKeyColumn *col, Datum value, Size skip, Size wanted, uint8 *out, bool *plain)
{
	exit(1);
}
#endif

Size
ws_letters_end(const uint8 *bytes, Size n, uint8 invert, bool ignores, bool *compared)
{
	exit(1);
}

void
ws_letters_look(const WsKeyColumn *col, Datum value)
{
	exit(1);
}

Size
ws_alphabet_places(WsAlphabet *alphabet, const char *text, Size n, Size wanted, uint8 *out,
				   Size *placed)
{
	exit(1);
}

uint32
ws_dictionary_code(WsDictionary *d, Datum value)
{
	exit(1);
}

WsHint
ws_dictionary_hint(const WsDictionary *d)
{
	exit(1);
}

Size
ws_beginnings_reach(const WsBeginnings *b)
{
	exit(1);
}

bool
ws_beginnings_packed(const WsBeginnings *b)
{
	exit(1);
}

ws_uint128
ws_beginnings_prefix(const WsBeginnings *b, const uint8 *key, Size n, Size *told)
{
	exit(1);
}

Size
ws_beginnings_expand(const WsBeginnings *b, ws_uint128 prefix, uint8 *key)
{
	exit(1);
}

#include "../../src/key/normalize.c"
#include "../../src/key/memo.c"
#include "../../src/key/prefix.c"
#include "../../src/key/numeric.c"
#include "../../src/key/told.c"
#include "../../src/key/guess.c"
#include "../../src/key/range.c"
#include "../../src/key/decode.c"
