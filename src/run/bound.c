/*-------------------------------------------------------------------------
 * bound.c - which rows cannot be among the first ones that a LIMIT asks for.
 *
 * The problem: of all rows only the first k in order are asked for, and these do not fit into memory, so
 * that a heap of them, as core's sort has it, is not to be had.  But rows that are not among them need not
 * be stored, written or merged.
 *
 * Of each sorted piece of the IndexMap some entries, evenly spaced, are noted here, each with the number of
 * entries that it stands for: a histogram of what has come so far.  The first prefix up to which there are
 * k entries is the limit: what is behind it is not among the first k.  So a row with a greater prefix is
 * passed over when it comes, and sorted entries behind the limit are left out of runs.  With every piece the
 * limit comes down.  (Chronis, Do, Graefe and Peters, External Merge Sort for Top-K Queries, SIGMOD 2020.)
 * Of N rows in random order some k (1 + ln(N / k)) would be taken in if the limit came down with each row,
 * and up to a third more as it is (ws_rows_taken_in); of rows that come in the opposite order all.
 *
 * What must hold is that each row left out has k others in front of it.  Prefixes that differ tell the
 * order of their keys, unless the difference is in what they guess: there the limit is the last prefix with
 * the same certain bytes.  Rows with the limit's own prefix stay, because the rest of their keys may say
 * otherwise; if the prefix is the whole key, those that come later than the k are peers that nobody needs.
 * Prefixes keep their meaning once the first rows have been learnt from (key/learn.c), which is before any
 * piece is sorted; codes that dictionaries add later stand between the others.
 *
 * Memory: the struct.  Nothing is raised.
 *-------------------------------------------------------------------------
 */
#include "run/run.h"

/*
 * If of the rows of the second piece after there has been a limit hardly any were passed over, rows come in
 * the opposite order: then it is given up, so that a helper sorts.  (In random order it is a third; the first
 * limit may be the greatest prefix of all.)
 */
#define TELLING		2
#define FEW_ONE_IN	16

/* Starts a bound of `rows` rows. */
void
ws_bound_init(WsBound *b, uint64 rows)
{
	memset(b, 0, sizeof(WsBound));
	b->rows = rows;
}

static int
note_order(const void *x, const void *y)
{
	ws_uint128	a = ws_entry_int(((const WsNoted *) x)->entry);
	ws_uint128	b = ws_entry_int(((const WsNoted *) y)->entry);

	return (a > b) - (a < b);
}

/* Makes one note of each two that follow one another. */
static void
thin_out(WsBound *b)
{
	int			n = 0;

	for (int i = 0; i < b->nnoted; i += 2)
	{
		WsNoted		noted = b->noted[i];

		if (i + 1 < b->nnoted)
			noted = (WsNoted) {b->noted[i + 1].entry, noted.n + b->noted[i + 1].n};
		b->noted[n++] = noted;
	}
	b->nnoted = n;
}

/* There are enough entries up to this one. */
static void
set_limit(WsBound *b, const WsKeySpec *spec, WsEntry entry)
{
	WsCertain	certain = ws_key_certain(spec, entry);
	ws_uint128	last = certain.to;
	bool		complete = !certain.guessed && ws_key_complete(spec, entry);

	/* behind the greatest prefix there is none: the first column is a guess, most likely */
	if (!complete && last == ws_prefix_mask(WS_PREFIX_BYTES))
	{
		b->given_up = true;
		b->known = false;
		return;
	}
	b->known = true;
	b->last = ws_entry_make(last, WS_POINTER_MASK);
	b->first_out = ws_entry_make(complete ? last : last + 1, 0);
}

/* Where what prefixes tell has become a guess, the limit is the last one with the same certain bytes. */
void
ws_bound_doubt(WsBound *b, const WsKeySpec *spec)
{
	if (spec->doubts == b->doubts)
		return;
	b->doubts = spec->doubts;
	if (b->known)
		set_limit(b, spec, b->last);
}

/* Notes n sorted entries of rows that have not been noted before. */
void
ws_bound_note(WsBound *b, const WsKeySpec *spec, const WsEntry *entries, Size n)
{
	Size		step = Max((n + WS_NOTES - 1) / WS_NOTES, 1);
	uint64		sum = 0;
	bool		limited = b->known;

	ws_bound_doubt(b, spec);
	if (b->given_up)
		return;
	for (Size i = step - 1; i < n; i += step)
	{
		if (b->known && ws_entry_int(entries[i]) > ws_entry_int(b->last))
			break;
		b->noted[b->nnoted++] = (WsNoted) {entries[i], step};
	}
	qsort(b->noted, b->nnoted, sizeof(WsNoted), note_order);
	for (int i = 0; i < b->nnoted; i++)
	{
		sum += b->noted[i].n;
		if (sum < b->rows)
			continue;
		set_limit(b, spec, b->noted[i].entry);
		b->nnoted = i + 1;
	}
	if (b->nnoted > WS_NOTED - WS_NOTES)
		thin_out(b);

	b->limited += limited;
	if (b->limited == TELLING && b->passed < n / FEW_ONE_IN)
	{
		b->given_up = true;
		b->known = false;
	}
}

/* Sorts a piece, if that has not been done, and notes it. */
void
ws_piece_sort(WsFormation *f, WsPiece *p)
{
	if (p->sorted)
		return;
	ws_sort_entries(p->entries, p->n, f->vectorised);
	p->sorted = true;
	if (f->bound != NULL)
		ws_bound_note(f->bound, f->spec, p->entries, p->n);
}

/*
 * Of n sorted entries, how many may be among the first.  `settled`: they are in the order of their whole
 * keys, and not only of their prefixes.
 */
Size
ws_bound_cut(const WsBound *b, const WsEntry *entries, Size n, bool settled)
{
	Size		low = 0;

	if (settled)
		n = Min(n, b->rows);
	if (!b->known)
		return n;
	while (low < n)
	{
		Size		middle = low + (n - low) / 2;

		if (ws_entry_int(entries[middle]) <= ws_entry_int(b->last))
			low = middle + 1;
		else
			n = middle;
	}
	return low;
}

/* Leaves entries out of a sorted piece that are not among the first. */
void
ws_piece_cut(WsFormation *f, WsPiece *p)
{
	if (f->bound != NULL)
		p->n = ws_bound_cut(f->bound, p->entries, p->n, f->spec->exact || p->settled);
}
