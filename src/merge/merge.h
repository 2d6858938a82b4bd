/*-------------------------------------------------------------------------
 * merge.h - merging runs, and pieces of the IndexMap.
 *-------------------------------------------------------------------------
 */
#ifndef WS_MERGE_H
#define WS_MERGE_H

#include "merge/losertree.h"
#include "merge/stream.h"

/* A sorted source: a slice of memory, or a run. */
typedef struct WsSource
{
	const WsEntry *next;
	const WsEntry *end;
	const WsEntry *limit;		/* of a slice; behind end if it is taken by blocks */
	Size		block_entries;	/* then: entries of a block */
	bool		from_run;
	const WsRun *more;			/* runs that follow it */
	int			nmore;
	int64		block;			/* next block of the run */
	WsRunReader reader;
	WsRowsIn   *rows;			/* of a run of rows, else NULL */
	int			run;			/* number of it there */
	WsEntry		following;		/* nothing less than this is in blocks that are not loaded */
	Size		equal;			/* so many of the next entries have the key of the one before them */
} WsSource;

/* The key of a source's current entry, as far as ties have needed it. */
typedef struct WsTied
{
	WsKeySlot  *slot;			/* NULL until the source's first tie */
	uint64		pointer;		/* of the row whose bytes these are */
	uint8		window[WS_TIED_BYTES];	/* key bytes behind the prefix */
	bool		complete;		/* the key ends in the window */
} WsTied;

typedef struct WsMerge
{
	WsStream	stream;			/* must be first; its context is that of all this */
	const WsKeySpec *spec;
	const WsKeyRows *rows;
	WsReader   *reader;			/* of all its runs of entries, or NULL */
	WsRowsIn   *rows_in;		/* of all its runs of rows, or NULL */
	bool		whole;			/* all prefixes are whole keys */
	bool		wipes;			/* guesses are wiped out of entries */
	bool		chained;		/* sources have several runs */
	int			waiting;		/* source whose next block is to be loaded, or -1 */
	int			nsources;
	WsSource   *sources;
	WsTied	   *tied;			/* by source; NULL if `whole` */
	MemoryContext tie_context;	/* what comparators leave */
	WsTied		ahead;			/* of an entry that has not been reached */
	int			far;			/* entries that are looked at ahead */
	int			blind;			/* so many times more there are none, */
	int			blinded;		/* and so many when that was in vain the last time */
	uint64		compared;		/* matches that comparators decided */
	int			ties_lately;	/* the more, the more rows were read for ties */
	WsEntry		last_tied;		/* an entry, and what its prefix tells */
	WsTold		told;
	WsLoserTree tree;			/* unless it gathers */
	WsEntry    *gathered;		/* buffer of gather.c, or NULL */
	WsEntry    *scratch;		/* as large */
	Size		ngathered;		/* entries in it */
	Size		taken;			/* of them, handed out */
} WsMerge;

extern WsMerge *ws_merge_create(const WsKeySpec *spec, const WsKeyRows *rows, WsReader *reader,
								int nsources, bool wipes);
extern bool ws_merge_verify(WsMerge *merge);
extern void ws_merge_slice(WsMerge *merge, int source, const WsEntry *entries, Size n);
extern void ws_merge_run(WsMerge *merge, int source, const WsRun *run, char *buffer);
extern void ws_merge_chain(WsMerge *merge, int source, const WsRun *runs, int n, char *buffer);
extern void ws_merge_rows(WsMerge *merge, int source, WsRowsIn *rows, int run, const WsRun *described);
extern void ws_merge_in_order(WsMerge *merge);
extern void ws_merge_start(WsMerge *merge);
extern void ws_merge_free(WsMerge *merge);

/* ---- gather.c ---- */

/*
 * Entries of a batch, about: in cache, and no long wait for whoever wants only some of them.  And of a
 * source's share at least, so that looking at all sources pays where one alone has the next entries.
 */
#define WS_BATCH_ENTRIES	(4 * 1024)
#define WS_LEAST_SHARE		64

/* Entries that a batch takes from one source at most. */
static inline Size
ws_gather_share(int nsources)
{
	return Max(WS_BATCH_ENTRIES / nsources, WS_LEAST_SHARE);
}

extern bool ws_merge_gather(WsMerge *merge, Size block_entries, WsEntry *buffer, Size room,
							bool vectorised);
extern Size ws_merge_gather_next(WsMerge *merge);

/* Said of a run of rows: is no block behind the one that is loaded? */
static inline bool
ws_source_is_used_up(const WsSource *s)
{
	return s->following.lo == WS_ENTRY_MAX.lo;
}

/*
 * Loads the next block of a source, a run's or a slice's; false behind the last,
 * and when reading failed.
 */
static inline bool
ws_source_load(WsSource *s)
{
	Size		n;

	if (s->rows != NULL)
	{
		s->next = s->end = ws_rows_in_next(s->rows, s->run, &n, &s->following);
		if (s->next == NULL)
		{
			s->following = WS_ENTRY_MAX;
			return false;
		}
		s->end += n;
		return true;
	}
	if (!s->from_run)
	{
		n = Min(s->block_entries, (Size) (s->limit - s->end));
		s->next = s->end;
		s->end += n;
		return n > 0;
	}
	s->next = ws_run_block(&s->reader, s->block, &n);
	while (unlikely(s->next == NULL) && s->nmore > 0 && ws_run_read_next(&s->reader, s->more))
	{
		s->more++;
		s->nmore--;
		s->block = 0;
		s->next = ws_run_block(&s->reader, s->block, &n);
	}
	s->end = s->next;
	if (s->next == NULL)
		return false;
	s->end += n;
	s->block++;
	return true;
}

/* Is the block that was loaded the source's last? */
static inline bool
ws_source_at_last_block(const WsSource *s)
{
	if (s->rows != NULL)
		return ws_source_is_used_up(s);
	return s->from_run ? s->nmore == 0 && ws_run_is_last_block(&s->reader) : s->end == s->limit;
}

/* ---- passes.c: the merges that a sort needs ---- */
typedef struct WsPasses
{
	WsFormation *formation;
	WsFileSet  *files;
	WsWatch    *watch;			/* or NULL */
	Size		reading;		/* what the reader of the result wants of the memory, bytes */
} WsPasses;

extern WsPasses *ws_passes_create(WsFormation *formation, WsFileSet *files, WsWatch *watch);
extern void ws_passes_narrow(WsPasses *p);
extern void ws_passes_depart(WsPasses *p, Size bytes);
extern void ws_passes_reduce(WsPasses *p);
extern void ws_passes_end(WsPasses *p, bool random_access, Size reading);
extern WsStream *ws_passes_stream(WsPasses *p, bool random_access);

/* ---- rowpasses.c: the same for runs of rows ---- */
extern WsRun ws_rows_write_merged(WsPasses *p, WsMerge *merge, Size bytes, int level, bool any_order);
extern WsRun ws_rows_merge(WsPasses *p, int n, int level, bool any_order);
extern WsMerge *ws_rows_final(WsPasses *p);
extern WsStream *ws_rows_stream(WsPasses *p);

/* Does the merge's bookkeeping when the formation has written runs.  Raises errors of merging. */
static inline void
ws_passes_check(WsPasses *p)
{
	if (unlikely(ws_formation_is_crowded(p->formation)))
		ws_passes_reduce(p);
}

#endif							/* WS_MERGE_H */
