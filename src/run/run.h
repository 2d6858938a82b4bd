/*-------------------------------------------------------------------------
 * run.h - runs, and how they are formed.
 *-------------------------------------------------------------------------
 */
#ifndef WS_RUN_H
#define WS_RUN_H

#include "file/reader.h"
#include "index/index.h"
#include "run/rowblock.h"
#include "run/runblock.h"

#define WS_MAX_LEVELS	32

/* Memory whose rows take so long to be written that interrupts must be seen meanwhile. */
#define WS_LENGTHY_BYTES	((Size) 32 * 1024 * 1024)

/* ---- runfile.c ---- */

/* A run on disk.  No pointers: it may lie in shared memory. */
typedef struct WsRun
{
	int			file;			/* of its file set */
	int64		offset;			/* of its header, bytes */
	uint64		nentries;
	Size		block_size;		/* bytes */
	uint32		number;			/* unique within its sort */
	uint32		arrival;		/* least of the numbers of those it was merged from, or its own */
	int			level;			/* merges its entries have been through */
	WsEntry		first;			/* of a run of entries */
	WsEntry		last;
	bool		rows;			/* a run of rows, not of entries: what follows is set */
	uint32		blocks;
	uint32		units;			/* of WS_ROWS_UNIT bytes, that these have in the file */
	uint64		largest;		/* bytes of its largest block */
} WsRun;

/* Where a run is in its file, in bytes. */
typedef struct WsRunExtent
{
	int64		begin;
	int64		end;
} WsRunExtent;

/* The files of runs, one a level.  The place of a run that has been read is taken again. */
typedef struct WsRunFiles
{
	WsFileSet  *files;
	MemoryContext context;
	struct
	{
		int			file;		/* -1 until the first run */
		WsRunExtent *live;		/* runs in it that are still wanted, by place */
		int			nlive;
		int			max_live;	/* allocated */
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
	WsHelper   *helper;			/* that writes, or NULL */
	int			error;			/* of the helper: errno, or 0 */
} WsRunWriter;

typedef struct WsRunReader
{
	WsRun		run;
	WsReader   *reader;
	WsRead		read;
	char	   *buffer;			/* block_size bytes, 16-byte aligned */
	int64		asked;			/* number of the block that `read` was for last, or -1: the header */
	int64		loaded;			/* number of the block that was read last, or -1 */
	Size		nloaded;		/* entries in it */
	int			error;			/* of a read, or 0 */
	const char *wrong;			/* what a check found, or NULL */
} WsRunReader;

extern void ws_runs_init(WsRunFiles *home, WsFileSet *files);
extern int64 ws_run_bytes(uint64 nentries, Size block_size);
extern bool ws_runs_allow_helpers(WsRunFiles *home, int level);
extern void ws_run_write_begin(WsRunWriter *w, WsRunFiles *home, uint64 nentries,
							   Size block_size, uint32 number, int level, char *buffer,
							   WsHelper *helper);
extern void ws_run_write(WsRunWriter *w, const WsEntry *entries, Size n);
extern WsRun ws_run_write_end(WsRunWriter *w);
extern void ws_run_read_begin(WsRunReader *r, WsReader *reader, const WsRun *run, char *buffer);
extern void ws_run_read_raise(const WsRunReader *r);
extern bool ws_run_read_next(WsRunReader *r, const WsRun *run);
extern const WsEntry *ws_run_block(WsRunReader *r, int64 block, Size *n);
extern bool ws_run_is_last_block(const WsRunReader *r);
extern void ws_run_release(WsRunFiles *home, const WsRun *run);
extern void ws_runs_drop(WsRunFiles *home);

/* ---- rowwrite.c: runs of rows ---- */

/*
 * The pointer of a row that travels: not an offset in the spool, but one in a place in memory that is used
 * again and again.
 */
#define WS_TRAVELS			(UINT64CONST(1) << (WS_POINTER_BITS - 1))
#define WS_PLACE_SHIFT		30
#define WS_PLACE_OFFSETS	(UINT64CONST(1) << WS_PLACE_SHIFT)

/* Where rows are that travel: by number of the place. */
typedef struct WsPlaces
{
	const char **base;
	const char **end;			/* behind its last byte that may be looked at */
	int			n;				/* allocated */
} WsPlaces;

/* Places 0 and 1 are those that rows are put into; behind them come the sources of merges. */
#define WS_ARENAS			2

/* Of the blocks of a merge's memory, those that its runs have: others are for reading ahead. */
#define WS_MERGED_SHARE		0.8

static inline uint64
ws_travel_pointer(int place, uint64 offset)
{
	return WS_TRAVELS | (uint64) place << WS_PLACE_SHIFT | offset;
}

static inline int
ws_travel_place(uint64 pointer)
{
	return (int) ((pointer & ~WS_TRAVELS) >> WS_PLACE_SHIFT);
}

/* Whose rows they are. */
typedef struct WsRowSource
{
	/*
	 * A row's first byte in memory, how many there are, and how many of them come before the one that is
	 * aligned; NULL if there is something wrong with it.  Callable from helpers.
	 */
	const char *(*locate) (void *store, uint64 pointer, Size *bytes, Size *lead);
	void		(*prefetch) (void *store, uint64 pointer);
	/* gives the memory of rows back, which have been written */
	void		(*yield) (void *store);
	void	   *store;
	WsPlaces   *places;
	int			shift;			/* log2 of the unit of offsets, and of the alignment, in bytes */
} WsRowSource;

/* ---- rowspace.c: where in a file the blocks of all runs of rows are ---- */

/* Bytes: blocks begin at multiples of this, and have as many. */
#define WS_ROWS_UNIT		WS_IO_ALIGN

/* Units that follow one another. */
typedef struct WsRowExtent
{
	uint32		unit;
	uint32		n;
} WsRowExtent;

/*
 * The file of all runs of rows.  A block that a merge has read makes room for those that it writes, so that
 * merging in several passes takes little more disk than one.
 */
typedef struct WsRowFile
{
	WsFileSet  *files;
	int			file;			/* its number */
	Size		block_size;		/* bytes of a block at most, but of one with a single row */
	uint32		end;			/* units that have been used */
	WsRowExtent *free;			/* of them, those that are free again, by place */
	uint32		nfree;
	uint32		max_free;		/* allocated */
	uint32		looked;			/* where the last search for free ones has ended */
	WsAccount  *account;
} WsRowFile;

extern void ws_rowfile_init(WsRowFile *home, WsFileSet *files, Size block_size, WsAccount *account);
extern void ws_rowfile_free(WsRowFile *home, uint32 unit, uint32 n);
extern uint32 ws_rowfile_take(WsRowFile *home, uint32 n, uint32 wanted);
extern void ws_rowfile_align(WsRowFile *home);

/* ---- rowwrite.c ---- */

/*
 * With which key a block of a run begins, and where it is.  Those of one run are in the order of its
 * blocks.
 */
typedef struct WsBlockStart
{
	uint64		first;			/* eight bytes of its first entry's prefix */
	uint32		run:24;			/* its number */
	uint32		units_less_1:8;	/* of the file, or of a buffer if that has less */
	uint32		unit;			/* in the file */
} WsBlockStart;

/* Beginnings of blocks, at most: with twice as many for a moment 32 bits count them. */
#define WS_MOST_STARTS		((Size) 1 << 30)

#define WS_MOST_ROW_RUNS	(1 << 24)

typedef struct WsRowWriter
{
	WsRun		run;
	WsRowFile  *home;
	const WsRowSource *source;
	char	   *buffer;			/* the caller's */
	Size		buffer_bytes;
	Size		from;			/* of it, where the blocks begin that are still to be written */
	Size		start;			/* of the block that is being filled, behind these */
	Size		used;			/* bytes of its header and its rows; 0: there is none */
	uint32		nentries;		/* in it: at its end, the last one first */
	uint64		written;		/* entries */
	uint32		next_unit;		/* where they end: they lie one behind the other */
	uint32		end;			/* the unit behind the last that has a place */
	WsBlockStart *starts;		/* of its blocks; the caller's */
	uint32		max_starts;
	uint64	   *rows;			/* numbers of their first rows, or NULL unless read in any order */
	WsHelper   *helper;			/* that writes it, or NULL */
	int			error;			/* errno, or 0 */
	const char *wrong;			/* with a row, or NULL */
} WsRowWriter;

extern uint32 ws_rows_most_blocks(Size bytes, Size block_size);
extern void ws_rows_write_begin(WsRowWriter *w, WsRowFile *home, const WsRowSource *source,
								uint32 number, int level, char *buffer, Size buffer_bytes,
								WsBlockStart *starts, uint32 max_starts, WsHelper *helper);
extern void ws_rows_write(WsRowWriter *w, const WsEntry *entries, Size n);
extern void ws_rows_write_last(WsRowWriter *w);
extern WsRun ws_rows_write_end(WsRowWriter *w);

/* ---- rowread.c ---- */
typedef struct WsRowsIn WsRowsIn;

/* How a merge reads the blocks of its runs (rowread.c). */
typedef enum WsMergeRead
{
	WS_READ_ORDER,
	WS_READ_BLOCK,
	WS_READ_DOUBLE
} WsMergeRead;

typedef struct WsMergeReads
{
	WsMergeRead method;
	int			assist;			/* of the read order: blocks to read ahead, -1: as many as are good */
	WsReaderKind io;			/* wanted */
} WsMergeReads;

/* What reading has done, for EXPLAIN. */
typedef struct WsReadStats
{
	uint64		blocks;			/* of the read order */
	uint64		stalls;			/* times that a block was waited for, longer than WS_STALL_US */
	uint64		stalled_us;		/* by all waits */
	WsReaderKind io;			/* as it was */
	WsMergeRead method;
} WsReadStats;

#define WS_STALL_US		20

extern WsRowsIn *ws_rows_in_create(WsReader *reader, const WsRowSource *source, WsRowFile *home, bool recycle,
								   WsMergeRead method, WsReadStats *stats, const WsRun *runs, int nruns,
								   const WsBlockStart *starts, uint32 nstarts);
extern Size ws_rows_in_bytes(const WsRowsIn *in);
extern void ws_rows_in_begin(WsRowsIn *in, char *buffers, Size nbuffers);
extern const WsEntry *ws_rows_in_next(WsRowsIn *in, int run, Size *n, WsEntry *following);
extern bool ws_rows_in_is_there(const WsRowsIn *in, int run);
extern void ws_rows_in_seek(WsRowsIn *in, int run, uint32 block);
extern void ws_rows_in_raise(WsRowsIn *in);
extern void ws_rows_in_free(WsRowsIn *in);

/* ---- bound.c: which rows cannot be among the first ones ---- */

/*
 * A piece of the IndexMap has this share of the rows that are asked for, but so many entries at least, from
 * which the keys are learnt.
 */
#define WS_BOUND_SHARE		2
#define WS_BOUND_ENTRIES	((Size) 16 * 1024)

#define WS_NOTES		64		/* of a piece at most */
#define WS_NOTED		320		/* of all: twice as many and more of each would not say much more */

/* An entry up to which there are n others, that entry included, and behind those of another note. */
typedef struct WsNoted
{
	WsEntry		entry;
	uint64		n;
} WsNoted;

typedef struct WsBound
{
	uint64		rows;			/* that are asked for */
	bool		known;			/* what follows is set */
	WsEntry		last;			/* what is greater is not among them */
	WsEntry		first_out;		/* of rows that are still to come, neither is this, with the pointer 0 */
	uint64		passed;			/* rows passed over */
	int			limited;		/* pieces that have come when there was a limit */
	bool		given_up;		/* it does not pay */
	int			doubts;			/* that prefixes have come into, as far as the limit has heeded them */
	int			nnoted;
	WsNoted		noted[WS_NOTED];
} WsBound;

extern void ws_bound_init(WsBound *b, uint64 rows);
extern void ws_bound_doubt(WsBound *b, const WsKeySpec *spec);
extern void ws_bound_note(WsBound *b, const WsKeySpec *spec, const WsEntry *entries, Size n);
extern Size ws_bound_cut(const WsBound *b, const WsEntry *entries, Size n, bool settled);

/* Is a row that comes now, with this entry and the pointer 0, not among those that are asked for? */
static inline bool
ws_bound_passes(const WsBound *b, WsEntry entry)
{
	return ws_entry_int(entry) >= ws_entry_int(b->first_out);
}

/* ---- formation.c ---- */

/*
 * A part of the IndexMap that is sorted at one go and becomes one run.
 */
typedef struct WsPiece
{
	WsChore		chore;			/* must be first */
	WsEntry    *entries;
	Size		n;				/* 0 when it is not there, or has been written */
	uint64		closed;			/* how many had been closed, this one included */
	bool		sorted;			/* by prefix */
	bool		settled;		/* its ties too */
	bool		write;			/* the chore writes it */
	WsRunWriter writer;
	WsRowWriter rows;			/* instead, with a row source */
} WsPiece;

/* What it has done, for EXPLAIN. */
typedef struct WsRunStats
{
	uint64		entries;		/* taken in */
	int			formed;			/* runs formed from the IndexMap */
	int			passes;			/* merge passes, the final one included */
	int			chains;			/* of the runs of the last merge, if there are fewer; or 0 */
	bool		in_order;		/* rows came in order, and needed no prefixes */
	int64		bytes;			/* of all runs that were written, merged ones too */
	WsReadStats reads;
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
	bool		in_order;		/* rows come in order: entries have no prefixes, and need none */
	WsGuesses	guesses;		/* in the prefixes of what is to be merged */
	WsPiece		front;			/* the beginning of the last piece, when that is split */
	WsHelper   *helper;			/* sorts and writes pieces, or NULL */
	WsKeyQueue *queue;			/* completes entries before they are sorted, or NULL */
	WsBound    *bound;			/* not all of them are asked for; or NULL */
	Size		block_size;		/* bytes; 0 until the first run */
	char	   *block;			/* write buffer of that size */
	int			fan_in;			/* runs that can be merged at once */
	WsRunFiles	home;
	const WsRowSource *source;	/* of rows that travel: runs are of rows now; or NULL */
	WsRowFile	row_home;
	Size		row_block;		/* bytes */
	Size		row_memory;		/* bytes that merges of such runs may use */
	WsMergeReads row_reads;		/* how these read */
	char	   *row_buffer;		/* write buffer */
	Size		row_buffer_bytes;
	uint32		most_starts;	/* blocks of a run of level 0 at most */
	WsBlockStart *starts;		/* of the live runs */
	uint32		nstarts;
	uint32		max_starts;		/* allocated */
	uint64	   *block_rows;		/* first rows of the only run's blocks, if read in any order */
	uint32		turns;			/* times that another piece was opened */
	uint64		closed;			/* pieces that have been closed */
	double		expected;		/* entries in all */
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
extern void ws_formation_bound(WsFormation *f, WsBound *bound);
extern bool ws_formation_make_room(WsFormation *f);
extern void ws_formation_limit(WsFormation *f, Size bytes, Size block_size);
extern void ws_formation_travel(WsFormation *f, const WsRowSource *source, Size block_size,
								Size buffer_bytes, Size memory, WsMergeReads reads);
extern void ws_formation_flush(WsFormation *f);
extern void ws_formation_limit_rows(WsFormation *f, Size bytes, int pieces);
extern void ws_formation_turn(WsFormation *f);
extern bool ws_formation_is_crowded(const WsFormation *f);
extern void ws_formation_empty(WsFormation *f);
extern void ws_formation_resume(WsFormation *f);
extern void ws_formation_end(WsFormation *f, bool whole, Size reading);
extern void ws_formation_close(WsFormation *f);

/* ---- bound.c, of a formation's pieces ---- */
extern void ws_piece_sort(WsFormation *f, WsPiece *p);
extern void ws_piece_cut(WsFormation *f, WsPiece *p);

/* ---- emit.c: how a sorted piece becomes a run ---- */
extern bool ws_emit_by_helper(WsFormation *f, const WsPiece *p);
extern void ws_emit_begin(WsFormation *f, WsPiece *p, bool helped);
extern void ws_emit(WsPiece *p);
extern void ws_emit_chore(WsChore *chore);
extern void ws_emit_end(WsFormation *f, WsPiece *p);

/* ---- chain.c: runs that follow one another ---- */
extern int	ws_chain_runs(WsRun *runs, int n, bool whole, int *lengths);
extern bool ws_formation_may_chain(const WsFormation *f);
extern int	ws_formation_chains(const WsFormation *f, WsRun *runs, int n, int *lengths);
extern int	ws_formation_count_chains(const WsFormation *f, int level);

/* ---- runlist.c: the live runs ---- */
extern int	ws_formation_runs_of_level(const WsFormation *f, int level);
extern bool ws_formation_too_many(const WsFormation *f, int level, int most);
extern void ws_formation_add_run(WsFormation *f, WsRun run);
extern void ws_formation_drop_runs(WsFormation *f, int n);
extern void ws_starts_check(Size n);
extern void ws_starts_add(WsFormation *f, const WsBlockStart *starts, uint32 n);
extern void ws_starts_free(WsFormation *f);

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
