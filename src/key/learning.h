/*-------------------------------------------------------------------------
 * learning.h - what is learnt from the first rows of a sort before keys are made.
 *-------------------------------------------------------------------------
 */
#ifndef WS_LEARNING_H
#define WS_LEARNING_H

#include "key/key.h"

/* Values of a column that are frequent in its table. */
typedef struct WsFrequent
{
	double		distinct;		/* values in all, or less than 0 if there may be many */
	int			n;
	Datum	   *values;			/* not null, and not toasted */
	double	   *shares;			/* of the rows, of each; together 1 at most */
} WsFrequent;

/* Who knows of such values (exec/frequent.c). */
typedef struct WsForetold
{
	/*
	 * Finds those of a key column, from 0, in CurrentMemoryContext.  False: nothing is known.  That there are
	 * no frequent ones may be known, and how many values there are.
	 */
	bool		(*ask) (const void *who, int column, WsFrequent *found);
	const void *who;
} WsForetold;

/* What is learnt from. */
typedef struct WsLearning
{
	WsKeySpec  *spec;
	const WsKeyRows *rows;
	WsEntry    *entries;		/* of the first rows */
	Size		n;
	double		expected;		/* rows in all */
	const WsForetold *foretold; /* what statistics say of columns, or NULL */
	bool		all;			/* there are no others */
	Size		most;			/* bytes of codes */
	Size		spare;			/* bytes that may be taken meanwhile, */
	WsAccount  *account;		/* and are counted here */
	void		(*sort) (WsEntry *entries, Size n, bool vectorised);
	bool		vectorised;
	/* set by ws_key_learn */
	bool		imagined;		/* rows have values that only statistics know */
	int		   *late;			/* by column, values that only the second half of the rows has shown */
	MemoryContext context;		/* of what is learnt */
	WsEntry    *sample;			/* some of the entries */
	Size		sampled;
	Size		step;			/* from one of these to the next */
	WsEntry    *sorted;			/* room for these once more */
} WsLearning;

extern Size ws_key_learn(WsLearning *l);

#define WS_LEARN_DISTINCT	0.75	/* a column with more different values in so many rows has too many */
#define WS_LEARN_ONE_IN	64		/* rows among which there must be one that the prefix ties, */
#define WS_LEARN_FEWER	2		/* for there to be fewer by this factor, */
#define WS_LEARN_LEAST	((Size) 128)	/* and the fewest rows that say so */

/* ---- aside.c: columns behind others that tell rows apart ---- */
extern void ws_learn_aside(const WsLearning *l);
extern void ws_learn_aside_needless(const WsLearning *l);
extern bool ws_learn_tell_apart(const WsLearning *l, int ncols);

/* ---- sample.c: the first rows ---- */
extern void ws_learn_sample(WsLearning *l);
extern void ws_learn_all_entries(const WsLearning *l);
extern void ws_learn_entries(const WsLearning *l);
extern const WsEntry *ws_learn_sorted(const WsLearning *l, int bytes);
extern Size ws_learn_tied(const WsLearning *l);
extern Size ws_learn_tied_apart(const WsLearning *l);
extern Size ws_learn_beginnings(const WsLearning *l);
extern bool ws_learn_ranges(const WsLearning *l);
extern Size ws_learn_first_bytes(const WsLearning *l);

/* ---- learntext.c: how text is told, or guessed ---- */
extern bool ws_has_doubtful_codes(const WsLearning *l, int column);
extern void ws_learn_letters(const WsLearning *l, bool accented);
extern Size ws_learn_text(const WsLearning *l);

/* ---- foretold.c: values that the first rows do not show ---- */
extern void ws_learn_foretold(WsLearning *l);
extern bool ws_foretold_few(const WsLearning *l, int column);
extern bool ws_foretold_to_fit(const WsLearning *l, int column, int seen, int room);
extern bool ws_foretold_fit(const WsLearning *l, int column, int seen, int room);

#endif							/* WS_LEARNING_H */
