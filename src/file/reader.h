/*-------------------------------------------------------------------------
 * reader.h - blocks of temporary files on their way into memory.
 *
 * A reader is given reads, and hands them back in the order in which they were
 * given, each when its bytes are there.  It never raises an error: what went wrong is in the
 * read, and whoever asked for it raises that, in the backend (ws_file_read_failed).
 *
 *	plain	reads when it is waited for
 *	ahead	has the system read ahead from when it is asked, into the page cache, and drops it from there
 *	async	has many reads on their way at once, past the page cache (async.c)
 *	mapped	the bytes are in a mapping of the file: no buffer is needed
 *
 * A kind of its own injects faults, in test/unit.
 *-------------------------------------------------------------------------
 */
#ifndef WS_READER_H
#define WS_READER_H

#include "file/file.h"
#include "port/atomics.h"

/* How many reads are on their way at once: not at all (plain, ahead), or by which queue (async). */
typedef enum WsReaderKind
{
	WS_READER_SYNC,
	WS_READER_LIBAIO,
	WS_READER_URING
} WsReaderKind;

#define WS_READER_KINDS	3

/* What is asked for where the choice is free. */
#if defined(HAVE_LIBAIO)
#define WS_READER_BUILT_IN	WS_READER_LIBAIO
#elif defined(HAVE_LIBURING)
#define WS_READER_BUILT_IN	WS_READER_URING
#else
#define WS_READER_BUILT_IN	WS_READER_SYNC
#endif

/* One read.  Belongs to whoever asks for it, and stays until it is handed back. */
typedef struct WsRead
{
	struct WsRead *next;		/* the reader's */
	void	   *operation;		/* the reader's */
	int			file;
	int64		offset;			/* bytes */
	Size		bytes;
	char	   *buffer;			/* for so many bytes; NULL with a mapping */
	const char *data;			/* where they are: afterwards */
	int			error;			/* 0, or what ws_file_read_failed takes: afterwards */
} WsRead;

typedef struct WsReader WsReader;

typedef struct WsReaderOps
{
	void		(*submit) (WsReader *reader, WsRead *read);
	void		(*start) (WsReader *reader);	/* no more for now: those submitted may begin; or NULL */
	WsRead	   *(*wait) (WsReader *reader); /* the oldest, which it starts; NULL if there is none */
	void		(*close) (WsReader *reader);	/* drops what was submitted; frees the reader */
} WsReaderOps;

struct WsReader
{
	const WsReaderOps *ops;
	WsFileSet  *files;
	bool		helper_safe;	/* submit and wait may be called by a helper */
	pg_atomic_uint64 bytes;		/* read, and not counted yet: a helper may be adding to it */
	bool		failed;			/* a read has failed, or brought what was damaged: said by who asked */
	WsRead	   *first;			/* submitted, oldest first */
	WsRead	   *last;
};

extern WsReader *ws_reader_plain(WsFileSet *files, bool helper_safe);
extern WsReader *ws_reader_ahead(WsFileSet *files, bool helper_safe);
extern WsReader *ws_reader_async(WsFileSet *files, int file, bool helper_safe, WsReaderKind *kind);
extern WsReader *ws_reader_mapped(WsFileSet *files, int file, int64 bytes);
extern void ws_reader_count(WsReader *reader);

/* For the kinds: the queue of reads. */
extern void ws_reader_queue(WsReader *reader, WsRead *read);
extern WsRead *ws_reader_unqueue(WsReader *reader);

#endif							/* WS_READER_H */
