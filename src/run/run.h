/*-------------------------------------------------------------------------
 * run.h - runs, and how they are formed.
 *-------------------------------------------------------------------------
 */
#ifndef WS_RUN_H
#define WS_RUN_H

#include "file/reader.h"
#include "index/index.h"
#include "run/runblock.h"

#define WS_MAX_LEVELS	32

/* ---- runfile.c ---- */

/* A run on disk.  No pointers: it may lie in shared memory. */
typedef struct WsRun
{
	int			file;			/* of its file set */
	int64		offset;			/* of its header, bytes */
	uint64		nentries;
	Size		block_size;		/* bytes */
	uint32		number;			/* unique within its sort */
	int			level;			/* merges its entries have been through */
} WsRun;

/* The files of runs, one a level; emptied when all its runs have been read. */
typedef struct WsRunFiles
{
	WsFileSet  *files;
	struct
	{
		int			file;		/* -1 until the first run */
		int64		end;		/* where the next run goes, bytes */
		int			live;		/* runs in it that are still wanted */
	}			level[WS_MAX_LEVELS];
} WsRunFiles;

typedef struct WsRunWriter
{
	WsRun		run;
	WsFileSet  *files;
	char	   *buffer;			/* block_size bytes */
	Size		filled;			/* entries in buffer */
	uint64		written;		/* entries written to the file */
	uint32		block;
	int64		offset;
	bool		helped;			/* written by a helper */
	int			error;			/* of the helper: errno, or 0 */
} WsRunWriter;

typedef struct WsRunReader
{
	WsRun		run;
	WsReader   *reader;
	WsRead		read;
	char	   *buffer;			/* block_size bytes, 16-byte aligned */
	int64		loaded;			/* number of the block that was read last, or -1 */
	Size		nloaded;		/* entries in it */
	int			error;			/* of a read, or 0 */
	const char *wrong;			/* what a check found, or NULL */
} WsRunReader;

extern void ws_runs_init(WsRunFiles *home, WsFileSet *files);
extern bool ws_runs_allow_helpers(WsRunFiles *home, int level);
extern void ws_run_write_begin(WsRunWriter *w, WsRunFiles *home, uint64 nentries,
							   Size block_size, uint32 number, int level, char *buffer,
							   bool helped);
extern void ws_run_write(WsRunWriter *w, const WsEntry *entries, Size n);
extern WsRun ws_run_write_end(WsRunWriter *w);
extern void ws_run_read_begin(WsRunReader *r, WsReader *reader, const WsRun *run, char *buffer);
extern void ws_run_read_raise(const WsRunReader *r);
extern const WsEntry *ws_run_block(WsRunReader *r, int64 block, Size *n);
extern bool ws_run_is_last_block(const WsRunReader *r);
extern void ws_run_release(WsRunFiles *home, const WsRun *run);

/* ---- formation.c ---- */

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

/* What it has done, for EXPLAIN. */
typedef struct WsRunStats
{
	uint64		entries;		/* taken in */
	int			formed;			/* runs formed from the IndexMap */
	int			passes;			/* merge passes, the final one included */
} WsRunStats;

typedef struct WsFormation
{
	const WsKeySpec *spec;
	const WsKeyRows *rows;
	const WsThreads *threads;
	WsAccount  *account;
	bool		vectorised;		/* entries are sorted by vqsort */
	WsIndexMap *map;
	Size		piece;			/* entries of a piece; the last may have fewer */
	WsPiece   **pieces;			/* made as they are needed */
	int			made;			/* so many */
	int			npieces;		/* that the IndexMap may come to have */
	int			current;		/* the one that is being filled */
	Size		end;			/* of the current piece, in entries of the map */
	bool		overflowed;		/* the IndexMap has been full: pieces are written */
	WsPiece		front;			/* the beginning of the last piece, when that is split */
	WsHelper   *helper;			/* sorts and writes pieces, or NULL */
	WsKeyQueue *queue;			/* completes entries before they are sorted, or NULL */
	Size		block_size;		/* bytes; 0 until the first run */
	char	   *block;			/* write buffer of that size */
	int			fan_in;			/* runs that can be merged at once */
	WsRunFiles	home;
	WsRun	   *runs;			/* live runs */
	int			nruns;
	int			max_runs;		/* allocated */
	uint32		next_number;
	Size		nkept;			/* entries at the IndexMap's start that the final merge takes there */
	Size		kept[2];		/* in so many sorted parts, one behind the other */
	WsRunStats	stats;
} WsFormation;

extern WsFormation *ws_formation_create(const WsKeySpec *spec, const WsKeyRows *rows,
										const WsThreads *threads, WsAccount *account,
										WsFileSet *files, bool vectorised,
										double expected, Size max_bytes);
extern bool ws_formation_make_room(WsFormation *f);
extern void ws_formation_limit(WsFormation *f, Size bytes, Size block_size);
extern bool ws_formation_is_crowded(const WsFormation *f);
extern void ws_formation_empty(WsFormation *f);
extern void ws_formation_resume(WsFormation *f);
extern int	ws_formation_runs_of_level(const WsFormation *f, int level);
extern void ws_formation_add_run(WsFormation *f, WsRun run);
extern void ws_formation_drop_runs(WsFormation *f, int n);
extern void ws_formation_end(WsFormation *f, bool whole, Size reading);
extern void ws_formation_close(WsFormation *f);

/* Is there room for the next entry?  If not, ws_formation_make_room is to be called. */
static inline bool
ws_formation_has_room(const WsFormation *f)
{
	return likely(f->map->count < Min(f->end, f->map->room));
}

/* Where the next entry goes. */
static inline WsEntry *
ws_formation_place(WsFormation *f)
{
	return f->map->entries + f->map->count;
}

/* Takes in one entry, for which there is room. */
static inline void
ws_formation_add(WsFormation *f, WsEntry entry)
{
	ws_indexmap_append(f->map, entry);
	f->stats.entries++;
}

#endif							/* WS_RUN_H */
