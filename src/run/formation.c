/*-------------------------------------------------------------------------
 * formation.c - run formation: entries become sorted pieces, and runs.
 *
 * Entries go into the IndexMap, piece by piece.  A full piece is sorted; if a
 * helper is there, by the helper, while the next piece is being filled.  If the
 * IndexMap can hold all entries, the pieces are merged where they are (OnePass).
 * Otherwise, from the moment when it is full, each piece is written as a run of
 * level 0 before it is filled again.  Runs that have become too many are merged by
 * whoever called (merge/passes.c).
 *
 * The last piece need not be written where there is room for it beside the merge:
 * it is a source of the final merge where it is.
 *
 * The helper sorts by prefix and, if prefixes are whole keys so far, writes the run.  Settling
 * ties needs rows and comparators, and stays with the backend.
 *
 * Memory: the IndexMap, one block for writing, and what settling ties takes.
 * On error nothing is left that its owners do not clean up.
 *-------------------------------------------------------------------------
 */
#include "run/run.h"

#include "miscadmin.h"

/* Entries of a last piece that two threads sort sooner than one. */
#define SHARED_ENTRIES	((Size) 32 * 1024)

/* Of a sort with a bound, pieces at most. */
#define BOUND_PIECES	32

static void
lay_out_pieces(WsFormation *f, Size piece)
{
	Size		capacity = f->map->capacity;

	f->piece = Min(piece, capacity);
	f->npieces = (int) ((capacity + f->piece - 1) / f->piece);
	f->end = f->piece;
}

/*
 * Starts run formation in CurrentMemoryContext with an IndexMap of at most
 * `max_bytes` bytes, for about `expected` entries.  Runs go to `files`, memory is counted in
 * `account`; these, `spec`, `rows` (NULL if keys are exact) and `threads` outlive it.
 */
WsFormation *
ws_formation_create(const WsKeySpec *spec, const WsKeyRows *rows, const WsThreads *threads,
					WsAccount *account, WsFileSet *files, bool vectorised,
					double expected, Size max_bytes)
{
	WsFormation *f = palloc0(sizeof(WsFormation));

	f->spec = spec;
	f->rows = rows;
	f->threads = threads;
	f->account = account;
	f->vectorised = vectorised;
	f->expected = expected;
	f->map = ws_indexmap_create(account, expected, max_bytes);
	ws_runs_init(&f->home, files);
	lay_out_pieces(f, WS_PIECE_ENTRIES);
	return f;
}

/*
 * Says, before the first entry, that not all entries are asked for.  The sooner a piece is sorted, the more
 * rows that come behind it are passed over.
 */
void
ws_formation_bound(WsFormation *f, WsBound *bound)
{
	Size		share = Min(bound->rows / WS_BOUND_SHARE, WS_PIECE_ENTRIES);
	Size		wanted = Max(f->map->capacity / BOUND_PIECES, share);

	f->bound = bound;
	lay_out_pieces(f, TYPEALIGN(4, Min(Max(wanted, WS_BOUND_ENTRIES), WS_PIECE_ENTRIES)));
}

/* Piece number i, made if there is none yet. */
static WsPiece *
piece(WsFormation *f, int i)
{
	while (f->made <= i)
	{
		MemoryContext context = GetMemoryChunkContext(f);

		f->pieces = f->pieces == NULL ? MemoryContextAlloc(context, sizeof(WsPiece *)) :
			repalloc(f->pieces, (f->made + 1) * sizeof(WsPiece *));
		f->pieces[f->made++] = MemoryContextAllocZero(context, sizeof(WsPiece));
	}
	return f->pieces[i];
}

/* Where a piece starts, and how many entries it can have. */
static WsEntry *
piece_entries(const WsFormation *f, int i, Size *room)
{
	Size		start = i * f->piece;

	*room = Min(f->piece, f->map->capacity - start);
	return f->map->entries + start;
}

static void
run_formed(WsFormation *f, WsPiece *p)
{
	ws_emit_end(f, p);
	f->stats.formed++;
	p->n = 0;
	p->write = false;
}

/* Puts sorted entries into the order of their whole keys. */
static void
settle(WsFormation *f, WsEntry *entries, Size n)
{
	Size		extra = n * ws_ties_bytes_per_entry(f->spec);
	WsGuesses	guesses;

	if (ws_key_tells_all(f->spec))
		return;
	ws_account_add(f->account, extra);
	guesses = ws_settle_ties(entries, n, f->spec, f->rows, f->vectorised);
	f->guesses = Max(f->guesses, guesses);
	ws_account_subtract(f->account, extra);
}

/* Has a full piece sorted and, after an overflow and if `write`, perhaps written. */
static void
submit_piece(WsFormation *f, WsPiece *p, bool write)
{
	write = write && f->overflowed;
	/*
	 * rows take long to be written: that is worth a helper even if it cannot sort them; and how many of a
	 * piece are written is known when it is sorted
	 */
	if (f->helper == NULL || p->n == 0 || (f->bound != NULL && !f->bound->given_up) ||
		(write && f->source != NULL && !ws_key_tells_all(f->spec)))
	{
		CHECK_FOR_INTERRUPTS();
		ws_piece_sort(f, p);
		ws_piece_cut(f, p);
		if (f->helper == NULL || p->n == 0)
			return;
		if (!p->settled)
			settle(f, p->entries, p->n);
		p->settled = true;
		ws_piece_cut(f, p);
	}
	if (write && (ws_key_tells_all(f->spec) || p->settled) && ws_emit_by_helper(f, p))
	{
		ws_emit_begin(f, p, true);
		p->write = true;
	}
	p->chore.run = ws_emit_chore;
	p->chore.lengthy = p->write && f->row_memory >= WS_LENGTHY_BYTES;
	ws_helper_submit(f->helper, &p->chore);
}

/* Waits for a piece; afterwards it is written, or sorted with its ties settled. */
static void
finish_piece(WsFormation *f, WsPiece *p)
{
	(void) ws_helper_wait(f->helper, &p->chore);
	if (p->write)
		run_formed(f, p);
	else if (p->n > 0 && !p->settled)
	{
		Assert(p->sorted);
		settle(f, p->entries, p->n);
		p->settled = true;
	}
	ws_piece_cut(f, p);
}

/* Writes a piece, unless that has been done. */
static void
empty_piece(WsFormation *f, WsPiece *p)
{
	finish_piece(f, p);
	if (p->n == 0)
		return;
	/* those that the helper writes are written from the same block */
	for (int i = 0; i < f->made; i++)
		if (f->pieces[i]->write)
			(void) ws_helper_wait(f->helper, &f->pieces[i]->chore);
	ws_emit_begin(f, p, false);
	ws_emit(p);
	run_formed(f, p);
}

/* Writes all pieces but the current one, the oldest first. */
static void
empty_others(WsFormation *f)
{
	for (int i = 1; i < f->npieces; i++)
		empty_piece(f, piece(f, (f->current + i) % f->npieces));
}

/* Writes all pieces. */
static void
empty_all(WsFormation *f)
{
	empty_others(f);
	empty_piece(f, piece(f, f->current));
	f->map->count = 0;
}

/* Ends the filling of the current piece, with entries up to the map's count. */
static WsPiece *
close_piece(WsFormation *f)
{
	WsPiece    *p = piece(f, f->current);
	Size		room;

	ws_keyqueue_finish(f->queue);
	p->entries = piece_entries(f, f->current, &room);
	p->n = f->map->count - (p->entries - f->map->entries);
	Assert(p->n <= room);
	p->closed = ++f->closed;
	p->sorted = p->settled = f->in_order;
	p->write = false;
	return p;
}

/* Makes piece number i the one that is filled. */
static void
open_piece(WsFormation *f, int i)
{
	Size		room;

	f->current = i;
	f->map->count = piece_entries(f, i, &room) - f->map->entries;
	f->end = f->map->count + room;
}

/* Are pieces in the order of their whole keys when they are submitted, so that the helper writes them? */
static bool
settles_early(const WsFormation *f)
{
	return ws_key_tells_all(f->spec) || f->in_order || (f->bound != NULL && !f->bound->given_up);
}

/* The IndexMap is full for the first time. */
static void
overflow(WsFormation *f)
{
	f->overflowed = true;
	/* their sort is done, or nearly so: now they are to be written, too */
	for (int i = 0; i < f->current; i++)
	{
		finish_piece(f, piece(f, i));
		if (settles_early(f))
			submit_piece(f, piece(f, i), true);
	}
}

/* Starts the helper, if there is to be one. */
static void
start_helper(WsFormation *f, Size bytes)
{
	if (f->helper == NULL && f->vectorised)
		f->helper = ws_helper_start(f->threads->sort, f->threads->most, bytes >= WS_HELPER_MEMORY);
}

/* The current piece is full: has it sorted, and opens the next one, which may mean writing it. */
static void
next_piece(WsFormation *f)
{
	/* the current one may be behind the last: memory can turn out to be less (ws_formation_make_room) */
	int			next = f->current + 1 < f->npieces ? f->current + 1 : 0;
	WsPiece    *p = close_piece(f);

	if (!f->overflowed)
		start_helper(f, f->map->capacity * sizeof(WsEntry));
	if (next == 0 && !f->overflowed)
		overflow(f);
	submit_piece(f, p, true);
	if (f->helper == NULL)
		finish_piece(f, p);
	if (f->overflowed)
		empty_piece(f, piece(f, next));
	open_piece(f, next);
	f->turns++;
}

/* Ends the current piece, although there is room in it: its rows have used up their memory. */
void
ws_formation_turn(WsFormation *f)
{
	next_piece(f);
}

/* Lets the IndexMap grow, for which entries may move.  False if there is no more memory, or address space. */
static bool
grow(WsFormation *f)
{
	const WsEntry *before = f->map->entries;

	if (ws_indexmap_must_move(f->map))
	{
		/* nobody may be holding pointers to them */
		ws_keyqueue_finish(f->queue);
		for (int i = 0; i < f->made; i++)
			(void) ws_helper_wait(f->helper, &f->pieces[i]->chore);
	}
	if (!ws_indexmap_grow(f->map))
		return false;
	for (int i = 0; i < f->made; i++)
		if (f->pieces[i]->entries != NULL)
			f->pieces[i]->entries = f->map->entries + (f->pieces[i]->entries - before);
	return true;
}

/* Runs that `memory` bytes can merge; if these are of rows, also read ahead of them, and hand rows out. */
static inline int
fan_in(const WsFormation *f, Size memory)
{
	double		blocks = f->source != NULL ? (double) (memory / f->row_block) * WS_MERGED_SHARE : 0;

	if (f->source == NULL)
		return (int) Max(2, Min(memory / f->block_size, 4096));
	return (int) Max(2, Min(f->row_reads.method == WS_READ_DOUBLE ? blocks / 2 : blocks, 4096));
}

/*
 * Makes room for another entry; may sort and write runs, and raises the errors of that.  Returns
 * false, and changes nothing, if there is no more memory and ws_formation_limit has not been called:
 * then it is to be called now.
 */
bool
ws_formation_make_room(WsFormation *f)
{
	WsIndexMap *map = f->map;

	while (!ws_formation_has_room(f))
	{
		if (map->count >= f->end)
		{
			if (f->block_size == 0 && f->current + 1 >= f->npieces)
				return false;
			next_piece(f);
		}
		else if (!grow(f))
		{
			Size		room;

			if (f->block_size == 0)
				return false;
			if (map->room == 0)
				ereport(ERROR,
						(errcode(ERRCODE_OUT_OF_MEMORY),
						 errmsg("out of memory"),
						 errdetail("No address space is left for a sort.")));
			map->capacity = map->room;
			f->npieces = (int) ((map->capacity + f->piece - 1) / f->piece);
			f->fan_in = Min(f->fan_in, fan_in(f, map->region->reserved));
			f->end = piece_entries(f, f->current, &room) - map->entries;
			f->end += room;
		}
	}
	return true;
}

/* Writes all that is in the IndexMap, whose memory is free then, until ws_formation_resume. */
void
ws_formation_empty(WsFormation *f)
{
	Assert(f->map->count == (Size) f->current * f->piece);
	empty_all(f);
}

/* Continues with the piece that was open before ws_formation_empty. */
void
ws_formation_resume(WsFormation *f)
{
	open_piece(f, f->current);
}

/*
 * Says that from now on `bytes` bytes of memory are there for entries, ties
 * and merging, and that runs have blocks of `block_size` bytes.  To be called once, before the
 * IndexMap is full.
 */
void
ws_formation_limit(WsFormation *f, Size bytes, Size block_size)
{
	WsIndexMap *map = f->map;
	Size		capacity;
	Size		room;

	bytes = TYPEALIGN_DOWN(4096, bytes);	/* memory comes in pages */
	capacity = bytes / (sizeof(WsEntry) + ws_ties_bytes_per_entry(f->spec));
	f->block_size = block_size;
	f->block = (char *) MemoryContextAlloc(GetMemoryChunkContext(f), block_size + 16);
	f->block = (char *) TYPEALIGN(16, (uintptr_t) f->block);
	ws_account_add(f->account, block_size);
	map->capacity = Max(Min(capacity, map->capacity), map->count);
	/* the pairs of ties are not there during a merge: all bytes are */
	f->fan_in = fan_in(f, bytes);
	start_helper(f, bytes);

	/* two pieces at least, so that one can be sorted while one is filled */
	if (f->current == 0 && f->helper != NULL && map->capacity < 2 * f->piece)
		lay_out_pieces(f, TYPEALIGN(4, (map->capacity + 1) / 2));
	else
		f->npieces = (int) ((map->capacity + f->piece - 1) / f->piece);
	for (;;)
	{
		Size		count = map->count;
		WsEntry    *entries = piece_entries(f, f->current, &room);

		f->end = (entries - map->entries) + room;
		if (count <= f->end)
			break;
		map->count = f->end;
		submit_piece(f, close_piece(f), true);
		map->count = count;
		f->current++;
	}
}

/*
 * From now on rows travel: runs are of rows of `source`, with blocks of `block_size` bytes, written through a
 * buffer of `buffer_bytes`; `memory` bytes are there for merging them, which reads as `reads` says.  To be
 * followed by ws_formation_limit_rows, before which nothing is added but what ws_formation_flush writes.
 */
void
ws_formation_travel(WsFormation *f, const WsRowSource *source, Size block_size,
					Size buffer_bytes, Size memory, WsMergeReads reads)
{
	char	   *buffer = MemoryContextAllocHuge(GetMemoryChunkContext(f), buffer_bytes + WS_IO_ALIGN);

	Assert(f->source == NULL);
	f->source = source;
	f->row_block = block_size;
	f->row_memory = memory;
	f->row_reads = reads;
	f->row_buffer = (char *) TYPEALIGN(WS_IO_ALIGN, buffer);
	f->row_buffer_bytes = buffer_bytes;
	/* what is in memory becomes one run a piece, and a row larger than all of it may come behind */
	f->most_starts = ws_rows_most_blocks(memory + buffer_bytes, block_size) + 2;
	ws_rowfile_init(&f->row_home, f->home.files, block_size, f->account);
	if (f->map->count == 0)
	{
		ws_region_shrink(f->map->region, 0);
		f->map->room = 0;
	}
	if (f->block_size == 0)
		f->block_size = block_size;
	ws_account_add(f->account, buffer_bytes);
}

/* Writes all entries that there are. */
void
ws_formation_flush(WsFormation *f)
{
	WsPiece    *p = close_piece(f);

	start_helper(f, f->map->capacity * sizeof(WsEntry));
	if (!f->overflowed)
		overflow(f);
	/* runs are numbered as they are begun: those of older pieces first */
	if (!ws_key_tells_all(f->spec))
		empty_others(f);
	submit_piece(f, p, false); /* the backend writes it: only that sees interrupts */
	empty_all(f);
}

/* Says, when the IndexMap is empty, that it may have `bytes` bytes, with what settling ties needs. */
void
ws_formation_limit_rows(WsFormation *f, Size bytes, int pieces)
{
	WsIndexMap *map = f->map;
	Size		capacity = bytes / (sizeof(WsEntry) + ws_ties_bytes_per_entry(f->spec)) / pieces;

	Assert(map->count == 0);
	ws_region_shrink(map->region, 0);
	map->room = 0;
	f->fan_in = fan_in(f, f->row_memory);
	map->capacity = Min(map->capacity, Max(4, TYPEALIGN_DOWN(4, Min(capacity, WS_PIECE_ENTRIES))) * pieces);
	lay_out_pieces(f, map->capacity / pieces);
	open_piece(f, 0);
}

/*
 * Leaves the beginning of the last piece to the helper, to be sorted, and perhaps written
 * if `write`, meanwhile, and returns it as a piece of its own, an empty one if it is not worth it.
 */
static WsPiece *
split_last(WsFormation *f, WsPiece *last, bool write)
{
	WsPiece    *first = &f->front;

	memset(first, 0, sizeof(WsPiece));
	first->entries = last->entries;
	first->closed = last->closed;
	first->sorted = first->settled = last->sorted;
	if (f->helper == NULL || !f->overflowed || f->source != NULL || f->bound != NULL ||
		last->n < SHARED_ENTRIES)
		return first;
	/* less than half if it has more to do; vqsort wants 64 bytes */
	first->n = TYPEALIGN_DOWN(4, write ? last->n * 3 / 8 : last->n / 2);
	last->entries += first->n;
	last->n -= first->n;
	submit_piece(f, first, write);
	return first;
}

/*
 * Is there room for n entries beside the blocks of the final merge, and `reading`
 * bytes for its reader?
 */
static bool
may_keep(const WsFormation *f, Size n, Size reading)
{
	Size		nsources = f->npieces + lengthof(f->kept);

	if (!f->overflowed || f->source != NULL)
		return false;
	/* the first guess may be among them, and ends all chains: merges would follow, and take what is kept */
	nsources += f->spec->guess ? f->nruns : ws_formation_count_chains(f, -1);
	return
		n * sizeof(WsEntry) + 3 * nsources * f->block_size + reading <= (Size) f->fan_in * f->block_size;
}

/* Leaves the two parts of the last piece in memory, sorted, at the IndexMap's start. */
static void
keep_last(WsFormation *f, WsPiece *first, WsPiece *last)
{
	finish_piece(f, first);
	finish_piece(f, last);
	f->kept[0] = first->n;
	f->kept[1] = last->n;
	f->nkept = first->n + last->n;
	memmove(f->map->entries, first->entries, first->n * sizeof(WsEntry));
	memmove(f->map->entries + first->n, last->entries, last->n * sizeof(WsEntry));
	first->n = last->n = 0;
	f->map->count = 0;
}

/*
 * Ends the input.  Afterwards either all entries are in the IndexMap, sorted
 * in pieces or, if `whole`, as one; or they are in runs, but
 * for the last ones, which may be kept in memory if not `whole`.  `reading`: bytes of the
 * memory that the reader of the final merge wants.  Helpers have ended.
 */
void
ws_formation_end(WsFormation *f, bool whole, Size reading)
{
	WsIndexMap *map = f->map;
	WsPiece    *last = close_piece(f);
	bool		keep = !whole && may_keep(f, last->n, reading);
	WsPiece    *first = split_last(f, last, !keep);

	f->stats.in_order = f->in_order;
	/* the helper may be busy with what came before: not with this */
	ws_piece_sort(f, last);
	if (keep)
	{
		empty_others(f);
		keep_last(f, first, last);
	}
	else if (f->overflowed)
	{
		if (!first->write)
			empty_others(f);	/* what came before has lower numbers */
		empty_piece(f, first);	/* the block that runs are written from is free then */
		empty_all(f);
	}
	else
	{
		whole &= f->current > 0 && !f->in_order;
		for (int i = 0; i <= f->current; i++)
			if (whole)			/* what settling each of them finds would be lost */
				(void) ws_helper_wait(f->helper, &piece(f, i)->chore);
			else
				finish_piece(f, piece(f, i));
		if (whole)
		{
			ws_sort_entries(map->entries, map->count, f->vectorised);
			settle(f, map->entries, map->count);
		}
	}
	ws_helper_stop(f->helper);
	f->helper = NULL;
	ws_keyqueue_stop(f->queue);
}

/* Stops helpers and releases the IndexMap.  The files are their owner's.  NULL is fine. */
void
ws_formation_close(WsFormation *f)
{
	if (f == NULL)
		return;
	ws_keyqueue_stop(f->queue);
	ws_helper_stop(f->helper);
	f->helper = NULL;
	ws_region_destroy(f->map->region);
}
