/*-------------------------------------------------------------------------
 * budget.c - how a sort's memory is divided: W = work_mem bytes, in one place.
 *
 *	at first	rows and entries share W, less what comes later beside them: the buffers of the
 *				helper that is going to write, or W/8 for a window over a table, or a batch of
 *				entries
 *	with files	spool buffers	W/16: one of 8 kB to 64 kB (larger writes gain nothing), or
 *								four of 4 kB to 256 kB that a helper writes
 *				run block		1/256 of the rest, 4 kB to 256 kB; or what was asked for
 *				entries			all that is left, with what settling ties needs
 *	output		the entries' memory holds the merge's blocks; of what they leave, up to W/8
 *				(3 MB at most) go to the rows that a helper reads ahead, or all of it to a
 *				window over a table
 *
 *	rows that travel	block	W/64, 4 kB to 256 kB; eight average rows if that is W/8 or less.
 *								(Smaller ones have fewer passes, but more reads: with 4 MB,
 *								1.1 GB of rows of 100 B, memory 500 MB: 16 kB 24.8 s,
 *								64 kB 12.6 s.)  Or what was asked for, W/8 at most.
 *				write buffer	W/16: a block at least, 1 MB at most
 *				arenas			two with a helper, which share the rest; of each so much goes to
 *								entries as such rows have beside them, a sixteenth at least
 *
 * Fixed structures take a few kB beside it.
 *
 * Pure: a function of the request.  test/unit/test_budget prints it as a table.
 *-------------------------------------------------------------------------
 */
#include "sort/budget.h"

#include "key/key.h"
#include "run/run.h"

#define KB				((Size) 1024)
#ifndef QUEUE_LEAST
#define QUEUE_LEAST		(16 * WS_KEYQUEUE_BYTES)	/* of memory, for a queue of keys */
#endif
#define CLAMP(x, low, high)		Max((Size) (low), Min((Size) (x), (Size) (high)))

/* Of an arena's memory, the part that is for entries at least. */
#define ENTRIES_LEAST	16

/* A block of `asked` bytes as far as `memory` bytes allow it. */
static Size
block_asked_for(Size asked, Size memory)
{
	return TYPEALIGN_DOWN(WS_IO_ALIGN, CLAMP(asked, WS_IO_ALIGN, Max(memory / 8, WS_IO_ALIGN)));
}

/* The division of request->memory bytes. */
WsBudget
ws_budget(const WsRequest *request)
{
	Size		w = request->memory;
	WsBudget	b = {.total = w, .block = request->block};
	Size		later = 0;

	b.alone = CLAMP(w / 16, 8 * KB, 64 * KB);
	b.helped = CLAMP(w / 16, 16 * KB, 1024 * KB);
	b.queue = w >= QUEUE_LEAST;
	switch (request->store)
	{
		case WS_KIND_KEYS:
			later = b.reading = CLAMP(w / 16, 8 * KB, 256 * KB);
			break;
		case WS_KIND_HEAP:
			later = w / 8;
			b.reading = w;
			break;
		case WS_KIND_SPOOL:
			if (ws_thread_wanted(request->threads.write, w >= WS_HELPER_MEMORY))
				later = b.helped;
			b.reading = CLAMP(w / 8, 8 * KB, 3 * 1024 * KB);
			break;
	}
	if (request->allowance == 0)
	{
		Size		buffer = ws_budget_rows(&b, 0, 0, false).buffer;

		later = Max(later, buffer);
	}
	b.shared = w - Min(later, w);
	b.total -= (Size) (request->codes * w);
	b.shared -= Min(b.shared, (Size) (request->codes * w));
	return b;
}

/*
 * The division for rows that travel inside runs: of `row` bytes on average, with `entry` bytes for the
 * entry of each. With `helped`, a helper sorts and writes one arena while another is filled.
 */
WsRowBudget
ws_budget_rows(const WsBudget *budget, Size row, Size entry, bool helped)
{
	Size		w = budget->total;
	Size		least = Min(8 * row, w / 8);
	Size		share;
	WsRowBudget b;

	b.block = TYPEALIGN_DOWN(WS_IO_ALIGN, CLAMP(Max(w / 64, least), WS_IO_ALIGN, 256 * KB));
	if (budget->block > 0)
		b.block = block_asked_for(budget->block, w);
	b.buffer = CLAMP(w / 16, b.block, 1024 * KB) / b.block * b.block;
	b.merging = w - Min(b.buffer, w / 2);
	b.arenas = helped ? WS_ARENAS : 1;
	share = b.merging / b.arenas;
	b.arena = (Size) ((double) share * (double) row / (double) Max(row + entry, 1));
	b.entries = (share - b.arena) * b.arenas;
	return b;
}

/*
 * Has a sixteenth of what rows and entries share be for entries, at least: later rows may be much shorter
 * than those that the division was made for.
 */
void
ws_budget_for_shorter(WsRowBudget *b)
{
	Size		share = b->arena + b->entries / b->arenas;

	b->arena = Min(b->arena, share - share / ENTRIES_LEAST);
	b->entries = (share - b->arena) * b->arenas;
}

/* The division for a sort with temporary files, whose rows have `buffers` bytes of buffers. */
WsEntryBudget
ws_budget_entries(const WsBudget *budget, Size buffers)
{
	Size		rest = budget->total - Min(buffers, budget->total);
	WsEntryBudget b;

	b.block = budget->block > 0 ? block_asked_for(budget->block, rest) :
		TYPEALIGN_DOWN(4096, CLAMP(rest / 256, 4 * KB, 256 * KB));
	b.entries = rest - Min(b.block, rest);
	return b;
}

/* With `memory` bytes, a sort is one-pass if its entries, with rows if `rows`, have so many bytes at most. */
Size
ws_budget_one_pass(const WsRequest *request, Size memory, bool rows)
{
	WsRequest	r = *request;
	WsBudget	b;
	bool		writer = ws_thread_wanted(r.threads.write, memory >= WS_HELPER_MEMORY);

	r.memory = memory;
	b = ws_budget(&r);
	if (rows)
		return b.shared;
	return ws_budget_entries(&b, r.store == WS_KIND_KEYS ? 0 : writer ? b.helped : b.alone).entries;
}
