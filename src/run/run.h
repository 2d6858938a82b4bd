/*-------------------------------------------------------------------------
 * run.h - runs, and how they are formed.
 *-------------------------------------------------------------------------
 */
#ifndef WS_RUN_H
#define WS_RUN_H

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
} WsRunWriter;

typedef struct WsRunReader
{
	WsRun		run;
	char	   *buffer;			/* block_size bytes, 16-byte aligned */
	int64		loaded;			/* number of the block in the buffer, or -1 */
	Size		nloaded;		/* entries in it */
} WsRunReader;

extern void ws_run_write_begin(WsRunWriter *w, WsRunFile *home, uint64 nentries,
							   Size block_size, uint32 number, int level, char *buffer);
extern void ws_run_write(WsRunWriter *w, const WsEntry *entries, Size n);
extern WsRun ws_run_write_end(WsRunWriter *w);
extern void ws_run_read_begin(WsRunReader *r, const WsRun *run, char *buffer);
extern const WsEntry *ws_run_block(WsRunReader *r, int64 block, Size *n);
extern bool ws_run_is_last_block(const WsRunReader *r);
extern WsEntry ws_run_entry(WsRunReader *r, uint64 index);
extern void ws_run_release(WsRun *run);

/* ---- formation.c ---- */
#define WS_MAX_LEVELS	32

typedef struct WsFormation
{
	const WsKeySpec *spec;
	const WsKeyRows *rows;
	WsIndexMap *map;
	Size		piece;			/* entries sorted at one go */
	Size		block_size;		/* bytes; 0 until the first run */
	char	   *block;			/* write buffer of that size */
	int			fan_in;			/* runs that can be merged at once */
	WsRunFile	files[WS_MAX_LEVELS];	/* by level */
	WsRun	   *runs;			/* live runs */
	int			nruns;
	int			max_runs;		/* allocated */
	uint32		next_number;
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
extern void ws_formation_add(WsFormation *f, WsEntry entry);
extern void ws_formation_limit(WsFormation *f, Size bytes, Size block_size);
extern void ws_formation_sort_rest(WsFormation *f, bool whole);
extern struct WsMerge *ws_formation_merge(WsFormation *f);
extern WsRun *ws_formation_single_run(WsFormation *f);
extern Size ws_formation_memory(const WsFormation *f);
extern void ws_formation_close(WsFormation *f);

#endif							/* WS_RUN_H */
