/*-------------------------------------------------------------------------
 * fakestore.h - rows, keys and a store for tests, without tuples or catalogs (fakestore.c).
 *-------------------------------------------------------------------------
 */
#ifndef WS_UNIT_FAKESTORE_H
#define WS_UNIT_FAKESTORE_H

#include "faults.h"

#include "store/store.h"

#define FAKE_COLUMNS	12

/*
 * A kind of key, column by column, all of int8 but WS_ENC_TRANSFORMED, which is text, and WS_ENC_LETTERS, which
 * is text whose letters may tell its order.
 */
typedef struct FakeKey
{
	const char *name;
	int			ncols;
	WsEncoding	encoding[FAKE_COLUMNS];
	bool		descending[FAKE_COLUMNS];
	bool		nulls_first[FAKE_COLUMNS];
	bool		nullable[FAKE_COLUMNS];
	int			constant;		/* so many columns, from the first, are nearly always the same */
	bool		rare[FAKE_COLUMNS]; /* of some hundred values one is not as the others */
} FakeKey;

enum
{
	FAKE_EXACT,					/* 8 bytes */
	FAKE_EXACT_NULLS,			/* 9 bytes, descending */
	FAKE_BYTES,					/* 16 bytes: two digits */
	FAKE_BYTES_NULLS,
	FAKE_LONG,					/* 96 bytes: more digits than are sorted by */
	FAKE_COMPARATOR,			/* nothing but comparators */
	FAKE_COMPARATOR_BEHIND,		/* 9 bytes, then a comparator */
	FAKE_GUESS,					/* text, whose order is guessed */
	FAKE_DEAR,					/* comparators, a guess, and a number */
	FAKE_LETTERS,				/* letters, and a number */
	FAKE_LETTERS_BEHIND,		/* a number, letters twice, and a number */
	FAKE_LETTERS_AFTER,			/* two numbers, of which the first and a null fill a prefix, and letters */
	FAKE_CODED,					/* a comparator and a number, which fit the prefix if the first has codes */
	FAKE_STRANGERS,				/* numbers, of which some are nearly always the same */
	FAKE_FAR,					/* numbers, most of which are always the same, a comparator, and a number */
	FAKE_KEYS
};

extern const FakeKey fake_keys[FAKE_KEYS];

/* Rows in an array: row number n has the pointer n. */
typedef struct FakeTable
{
	int			ncols;
	Size		n;
	Datum	   *values;			/* n * ncols */
	bool	   *isnull;
	bool		readied;		/* `ready` has been called */
	long		fetched;
	const WsPlaces *places;		/* of rows that travel */
	WsKeyRows	keys;
} FakeTable;

extern WsKeySpec *fake_spec(const FakeKey *key);
extern void fake_fill(FakeTable *table, const FakeKey *key, Size n, uint64 distinct);
extern void fake_free(FakeTable *table);
extern WsEntry fake_entry(const FakeTable *table, WsKeySpec *spec, Size row);
extern uint32 *fake_sorted(const FakeTable *table, const FakeKey *key);

extern int	fake_guess_wrong;	/* of one text in so many, what is guessed is not its order; 0: of none */
extern int	fake_strange;		/* letters do not tell one text in so many; 0: they tell all */
extern bool fake_ignores;		/* letters are ignored, and count last */
extern bool fake_alike;			/* texts of letters begin alike, and are many */
extern bool fake_store_keeps;	/* the store's rows are never written */

#endif							/* WS_UNIT_FAKESTORE_H */
