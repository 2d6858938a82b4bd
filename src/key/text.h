/*-------------------------------------------------------------------------
 * text.h - text under collations other than that of bytes: how its order is told, or guessed.
 *
 * Letters tell it (letters.c), ICU's sort keys do (icu.c), or it is guessed: by letters (alphabet.c), or by
 * what strxfrm or ICU make of a part of it (transform.c, guess.c).  learntext.c says which.
 *-------------------------------------------------------------------------
 */
#ifndef WS_TEXT_H
#define WS_TEXT_H

#include <locale.h>

#include "key/key.h"

#include "access/detoast.h"

typedef struct WsIcu WsIcu;
typedef struct WsLetterFacts WsLetterFacts;

/* ---- encoding.c ---- */
extern bool ws_key_is_lowered(Oid sortop);
extern bool ws_abbreviates_otherwise(Oid sortop, Oid collation);

/* ---- lower.c: text whose case does not count ---- */
extern struct varlena *ws_lowered(Datum value);
extern void ws_lower_sort_support(SortSupport ssup);

/*
 * A value of variable length, of which nobody will look at more than n bytes: if it is stored elsewhere, or
 * compressed, a copy that may have only so many of them.
 */
static inline struct varlena *
ws_value_beginning(Datum value, Size n)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(value);

	if (likely(!VARATT_IS_EXTERNAL(v) && !VARATT_IS_COMPRESSED(v)))
		return v;
	if (toast_raw_datum_size(value) - VARHDRSZ > n)
		return PG_DETOAST_DATUM_SLICE(value, 0, (int32) n);
	return PG_DETOAST_DATUM_PACKED(value);
}

/* A column's text as its order is told by: not toasted, and in lower case if it is compared so. */
static inline struct varlena *
ws_text_of(const WsKeyColumn *col, Datum value)
{
	return unlikely(col->lowered) ? ws_lowered(value) : PG_DETOAST_DATUM_PACKED(value);
}

/* ---- transform.c: guesses at the order of text ---- */
#define WS_TRANSFORMED	1024	/* bytes of a transformed text at most */
#define WS_LEVEL_END	1		/* behind its weights of the first level, in ICU and most locales of libc */

typedef struct WsTransform WsTransform;

extern bool ws_collation_is_bytes(Oid collation);
extern bool ws_transformable(Oid collation);
extern WsTransform *ws_transform_create(Oid collation);
extern WsTransform *ws_transform_of_icu(const WsIcu *icu, Oid collation);
extern Size ws_transform(const WsTransform *transform, const char *text, Size n,
						 Size wanted, char *out);
extern const char *ws_transform_name(const WsTransform *transform);
extern bool ws_transform_facts(const WsTransform *transform, WsLetterFacts *facts);

/* ---- glibc.c: what libc's tables say of letters ---- */
extern bool ws_glibc_facts(locale_t locale, WsLetterFacts *facts);

/* ---- guess.c: the same where texts begin alike ---- */
typedef struct WsGuess
{
	const WsKeyColumn *col;
	char	   *beginning;
	Size		common;			/* bytes of it that texts have in common */
} WsGuess;

extern void ws_guess_begin(WsGuess *guess, const WsKeyColumn *col, Datum value);
extern void ws_guess_add(WsGuess *guess, Datum value);
extern void ws_guess_window(const WsGuess *guess, Datum value, Size wanted, uint8 *out);
extern void ws_guess_of(const WsKeyColumn *col, Datum value, Size wanted, uint8 *out);

/* ---- alphabet.c: the same from letters alone ---- */
#define WS_LETTERS		0x180	/* code points that have places: ASCII, Latin-1, Latin Extended-A */
#define WS_LETTER_PLACES	2	/* of a letter at most */

typedef struct WsAlphabet WsAlphabet;

extern WsAlphabet *ws_alphabet_create(const WsTransform *transform);
extern WsAlphabet *ws_alphabet_copy(const WsAlphabet *alphabet, const WsTransform *transform);
extern int	ws_alphabet_weights(const WsAlphabet *alphabet);
extern const uint8 *ws_alphabet_letter(const WsAlphabet *alphabet, int letter);
extern uint64 ws_alphabet_transformed(const WsAlphabet *alphabet);
extern Size ws_alphabet_places(WsAlphabet *alphabet, const char *text, Size n, Size wanted,
							   uint8 *out, Size *placed);

/*
 * Writes what letters, or a transformation, make of a text of n bytes to `out`, `wanted` bytes at most.
 * Returns how many these are.
 */
static inline Size
ws_guess_text(const WsKeyColumn *col, const char *text, Size n, Size wanted, uint8 *out)
{
	char		transformed[WS_TRANSFORMED];
	Size		length;

	if (col->alphabet != NULL)
		return ws_alphabet_places(col->alphabet, text, n, wanted, out, &length);
	length = ws_transform(col->transform, text, n, wanted, transformed);
	length = Min(length, wanted);
	memcpy(out, transformed, length);
	return length;
}

/* ---- icu.c: abbreviated keys of text under collations of ICU ---- */
extern WsIcu *ws_icu_create(Oid collation);
extern bool ws_icu_key(const WsIcu *icu, const char *text, Size n, uint64 *key);
extern Size ws_icu_bytes(const WsIcu *icu, const char *text, Size n, Size wanted, char *out);
extern const void *ws_icu_collator(const WsIcu *icu);
extern bool ws_icu_facts(const WsIcu *icu, WsLetterFacts *facts);
extern void ws_icu_failed(void) __attribute__((noreturn));
extern Size ws_icu_length(const WsKeyColumn *col, const char *text, Size n);
extern Datum ws_icu_abbreviate(Datum original, SortSupport ssup);

/* ---- letters.c: key bytes of text, letter by letter ---- */
/* What ends the places of a text's letters. */
#define WS_END_SKIPS	1		/* how many have been skipped follows, and then one of the next two */
#define WS_END_SMALL	2		/* none is a capital */
#define WS_END_CASES	3		/* a bit for each follows, which says whether it is */
#define WS_END_COMPARED	4		/* the comparator tells the rest */
#define WS_SHIFT		4		/* of places, so that they are above these */

/* What its letters tell of a text's order. */
typedef enum WsLettered
{
	WS_LETTERS_PLAIN,			/* all */
	WS_LETTERS_ACCENTED,		/* all but for accents and case */
	WS_LETTERS_STRANGE			/* nothing for certain */
} WsLettered;

/* Of a collation, what each letter tells. */
typedef struct WsLetterTable
{
	uint8		places[WS_LETTERS + 1][WS_LETTER_PLACES];	/* and WS_SHIFT; 0: none, as all others */
	uint8		lettered[WS_LETTERS];	/* what a text is that has it */
	bool		capital[128];
	uint8		ignored[128];	/* rank among those that only the last level counts; 0: it has a place */
	bool		ignores;		/* there are such */
	bool		backward[128];	/* the second level goes backward, and skips one of several such */
} WsLetterTable;

/* Of a column. */
typedef struct WsLetters
{
	const WsLetterTable *table;
	WsKeySpec  *spec;			/* whose column this is of */
	bool		strange;		/* there has been a strange text: all bytes are a guess */
} WsLetters;

/* The letter at the beginning of a text in UTF-8, and its bytes; WS_LETTERS for one that is none of them. */
static inline int
ws_letter_at(const uint8 *text, Size n, Size *bytes)
{
	*bytes = 1;
	if (text[0] < 0x80)
		return text[0];
	if (text[0] < 0xC2 || text[0] > 0xDF || n < 2 || (text[1] & 0xC0) != 0x80)
		return WS_LETTERS;
	*bytes = 2;
	return Min((text[0] & 0x1F) << 6 | (text[1] & 0x3F), WS_LETTERS);
}

/* ---- memo.c: key bytes that a row has in common with the one before ---- */
typedef struct WsMemo WsMemo;

extern WsMemo *ws_memo_create(const WsKeySpec *spec);
extern Size ws_memo_key_bytes(WsMemo *memo, const WsKeySpec *spec, const Datum *values, const bool *isnull,
							  Size n, uint8 *out);

extern WsLettered ws_letters_of(const WsLetterTable *table, const WsKeyColumn *col, Datum value);
extern Size ws_letters_bytes(const WsKeyColumn *col, Datum value, Size skip, Size wanted, uint8 *out,
							 bool *plain);
extern Size ws_letters_end(const uint8 *bytes, Size n, uint8 invert, bool ignores, bool *compared);
extern void ws_letters_look(const WsKeyColumn *col, Datum value);
extern bool ws_letters_tell(const WsKeyColumn *col, Datum value);
extern bool ws_letters_compare(const WsKeyColumn *col, Datum x, Datum y, int *cmp);

/*
 * Orders two values of key column number `column` as the sort does: by letters, where these tell the order,
 * or by the comparator.  Returns <0, 0, >0.
 */
static inline int
ws_compare_values(const WsKeySpec *spec, int column, Datum a, bool anull, Datum b, bool bnull)
{
	const WsKeyColumn *col = &spec->cols[column];
	int			cmp;

	if (col->letters != NULL && !col->letters->strange && !anull && !bnull &&
		ws_letters_compare(col, a, b, &cmp))
		return col->descending ? -cmp : cmp;
	return ApplySortComparator(a, anull, b, bnull, &spec->compare[column]);
}

/* ---- lettertable.c: what the letters of a collation tell ---- */
#define WS_LETTER_LEVELS	4
#define WS_LETTER_WEIGHT	24	/* bytes of a letter's weight on one level at most */

/* What a letter, or two, weigh on each level: bytes that are compared as memcmp does. */
typedef struct WsLetterWeights
{
	uint8		n[WS_LETTER_LEVELS];
	uint8		bytes[WS_LETTER_LEVELS][WS_LETTER_WEIGHT];
	bool		known;			/* what its weights are */
	bool		joined;			/* it may count together with letters before or behind it */
	bool		several;		/* it may have several weights on the first level */
	bool		backward;		/* its second level goes backward, and is confused by that */
} WsLetterWeights;

/* Two letters that weigh as much as one, in some collations. */
#define WS_LETTER_PAIRS	4

static inline const char *
ws_letter_pair(int i)
{
	static const char pairs[WS_LETTER_PAIRS][3] = {"ae", "ss", "ij", "oe"};

	return pairs[i];
}

/* What a collation says of letters. */
struct WsLetterFacts
{
	WsLetterWeights letter[WS_LETTERS];
	WsLetterWeights pair[WS_LETTER_PAIRS];
};

extern WsAlphabet *ws_alphabet_of(const WsTransform *transform);
extern const WsLetterTable *ws_letter_table(const WsKeyColumn *col, bool make);

#endif							/* WS_TEXT_H */
