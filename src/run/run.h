/*-------------------------------------------------------------------------
 * run.h - runs, and how they are formed.
 *-------------------------------------------------------------------------
 */
#ifndef WS_RUN_H
#define WS_RUN_H

#include "file/file.h"
#include "index/index.h"
#include "run/runblock.h"

/* ---- runfile.c ---- */

/* A file of runs, one behind the other; emptied when all have been read. */
typedef struct WsRunFile
{
	WsTempFile *file;			/* NULL until the first run */
	int64		end;			/* where the next run goes, bytes */
	int			live;			/* runs in it that are still wanted */
} WsRunFile;

typedef struct WsRun
{
	WsRunFile  *home;
	int64		offset;			/* of its header, bytes */
	uint64		nentries;
	Size		block_size;
	uint32		number;
	int			level;			/* merges its entries have been through */
} WsRun;

typedef struct WsRunWriter
{
	WsRun		run;
	char	   *buffer;			/* block_size bytes */
	Size		filled;			/* entries in buffer */
	uint64		written;		/* entries written to the file */
	uint32		block;
	int64		offset;
	bool		raw;			/* written by a helper */
	int			error;			/* of the helper: errno, or 0 */
} WsRunWriter;

typedef struct WsRunReader
{
	WsRun		run;
	char	   *buffer;			/* block_size bytes, 16-byte aligned */
	int64		loaded;			/* number of the block in the buffer, or -1 */
	Size		nloaded;		/* entries in it */
	/* reading by a helper, which leaves here what it cannot raise or count */
	bool		raw;
	int			error;			/* of ws_raw_read, or 0 */
	const char *wrong;			/* what a check found, or NULL */
	Size		nread;			/* bytes, not counted yet */
} WsRunReader;

extern bool ws_run_allow_helpers(WsRunFile *home);
extern void ws_run_write_begin(WsRunWriter *w, WsRunFile *home, uint64 nentries,
							   Size block_size, uint32 number, int level, char *buffer,
							   bool raw);
extern void ws_run_write(WsRunWriter *w, const WsEntry *entries, Size n);
extern WsRun ws_run_write_end(WsRunWriter *w);
extern void ws_run_read_begin(WsRunReader *r, const WsRun *run, char *buffer);
extern void ws_run_read_settle(WsRunReader *r);
extern const WsEntry *ws_run_block(WsRunReader *r, int64 block, Size *n);
extern bool ws_run_is_last_block(const WsRunReader *r);
extern WsEntry ws_run_entry(WsRunReader *r, uint64 index);
extern void ws_run_release(WsRun *run);

/* ---- late.c: keys that a helper makes while more rows come ---- */
typedef struct WsLate WsLate;

#define WS_LATE_BYTES	((Size) 64 * 1024)

extern WsLate *ws_late_create(const WsKeySpec *spec, int threads, bool worthwhile);
extern bool ws_late_put(WsLate *l, Datum value, WsEntry *entry);
extern void ws_late_finish(WsLate *l);
extern Size ws_late_memory(const WsLate *l);
extern void ws_late_stop(WsLate *l);

/* ---- formation.c ---- */
#define WS_MAX_LEVELS	32

/*
 * A part of the IndexMap that is sorted at one go and becomes one run.
 */
typedef struct WsPiece
{
	WsChore		chore;			/* must be first */
	WsEntry    *entries;
	Size		n;				/* 0 when it is not there, or has been written */
	bool		sorted;			/* by prefix */
	bool		settled;		/* its ties too */
	bool		write;			/* the chore writes it */
	WsRunWriter writer;
} WsPiece;

typedef struct WsFormation
{
	const WsKeySpec *spec;
	const WsKeyRows *rows;
	WsIndexMap *map;
	Size		piece;			/* entries of a piece; the last may have fewer */
	WsPiece    *pieces;			/* that the IndexMap has room for */
	int			npieces;
	int			current;		/* the one that is being filled */
	Size		end;			/* of the current piece, in entries of the map */
	bool		overflowed;		/* the IndexMap has been full: pieces are written */
	WsHelper   *helper;			/* sorts and writes pieces, or NULL */
	WsLate	   *late;			/* completes entries before they are sorted, or NULL */
	Size		block_size;		/* bytes; 0 until the first run */
	char	   *block;			/* write buffer of that size */
	int			fan_in;			/* runs that can be merged at once */
	WsRunFile	files[WS_MAX_LEVELS];	/* by level */
	WsRun	   *runs;			/* live runs */
	int			nruns;
	int			max_runs;		/* allocated */
	uint32		next_number;
	Size		nkept;			/* entries at the IndexMap's start that the final merge takes there */
	Size		kept[2];		/* in so many sorted parts, one behind the other */
	/* for EXPLAIN */
	uint64		entries;		/* taken in */
	int			formed;			/* runs formed from the IndexMap */
	int			passes;			/* merge passes, the final one included */
	int64		peak_disk;		/* bytes, most at any time */
	Size		peak_memory;	/* bytes, most while runs are made and merged */
} WsFormation;

struct WsMerge;

extern WsFormation *ws_formation_create(const WsKeySpec *spec, const WsKeyRows *rows,
										Size max_bytes);
extern void ws_formation_next_piece(WsFormation *f);
extern void ws_formation_limit(WsFormation *f, Size bytes, Size block_size);
extern void ws_formation_sort_rest(WsFormation *f, bool whole, Size reading);
extern struct WsMerge *ws_formation_merge(WsFormation *f);
extern WsRun *ws_formation_single_run(WsFormation *f);
extern Size ws_formation_memory(const WsFormation *f);
extern void ws_formation_close(WsFormation *f);

/*
 * Returns where the next entry goes.  May sort, write a run, and merge; raises
 * their errors.
 */
static inline WsEntry *
ws_formation_place(WsFormation *f)
{
	if (unlikely(f->map->count >= f->end))
		ws_formation_next_piece(f);
	return f->map->entries + f->map->count;
}

/* Takes in one entry, after ws_formation_place. */
static inline void
ws_formation_add(WsFormation *f, WsEntry entry)
{
	ws_indexmap_append(f->map, entry);
	f->entries++;
}

#endif							/* WS_RUN_H */
