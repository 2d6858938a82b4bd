/*-------------------------------------------------------------------------
 * file.h - the temporary files of a sort.
 *-------------------------------------------------------------------------
 */
#ifndef WS_FILE_H
#define WS_FILE_H

#include "file/watch.h"
#include "os/os.h"

/* Blocks of rows begin at such offsets, and their buffers at such addresses, in bytes. */
#define WS_IO_ALIGN		((Size) 4096)

/* ---- fileset.c: the files of one sort, by number ---- */
typedef struct WsFileSet WsFileSet;

/* Where some bytes of a file are, for those who read it themselves. */
typedef struct WsStretch
{
	int			member;			/* number of the member that has them (stripe.h) */
	int			cached;			/* its descriptors: through the page cache, and past it */
	int			direct;
	int64		offset;			/* bytes, in the member */
} WsStretch;

extern WsFileSet *ws_fileset_create(const WsThreads *threads, int64 stays);
extern void ws_fileset_watch(WsFileSet *set, WsWatch *watch);
extern void ws_fileset_stripe(WsFileSet *set, int64 extent);
extern int	ws_file_create(WsFileSet *set);
extern void ws_file_align(WsFileSet *set, int file, Size unit);
extern int	ws_file_width(const WsFileSet *set, int file);
extern void ws_file_drop(WsFileSet *set, int file);
extern bool ws_file_allow_helpers(WsFileSet *set, int file);
extern bool ws_file_allow_direct(WsFileSet *set, int file, int *cached);
extern bool ws_file_stretch(const WsFileSet *set, int file, Size bytes, int64 offset, WsStretch *stretch);
extern int	ws_file_error(const WsFileSet *set, int file, int64 offset, int error);
extern void ws_file_write(WsFileSet *set, int file, const void *data, Size bytes, int64 offset);
extern void ws_file_extend(WsFileSet *set, int file, Size bytes, int64 offset);
extern void ws_file_announce(WsFileSet *set, int file, Size bytes, int64 offset);
extern void ws_file_prepare(WsFileSet *set, int file, Size bytes, int64 offset);
extern void ws_file_charge(WsFileSet *set, int file);
extern int	ws_file_write_raw(WsFileSet *set, int file, const void *data, Size bytes, int64 offset);
extern bool ws_file_allow_appending(WsFileSet *set, int file);
extern int	ws_file_append_raw(WsFileSet *set, int file, const void *data, Size bytes, int64 offset);
extern void ws_file_appended(WsFileSet *set, int file, Size bytes, int64 size);
extern void ws_file_read_ahead(WsFileSet *set, int file, Size bytes, int64 offset);
extern bool ws_file_punch(WsFileSet *set, int file, Size bytes, int64 offset);
extern void ws_file_forget(WsFileSet *set, int file, Size bytes, int64 offset);
extern int	ws_file_read(WsFileSet *set, int file, void *data, Size bytes, int64 offset);
extern void ws_file_count_read(WsFileSet *set, Size bytes);
extern char *ws_file_map(WsFileSet *set, int file, int64 bytes);
extern void ws_file_write_failed(const WsFileSet *set, int file, int error) __attribute__((noreturn));
extern void ws_file_read_failed(const WsFileSet *set, int file, int error, int64 offset, const char *part)
			__attribute__((noreturn));
extern void ws_file_corrupt(const WsFileSet *set, int file, Size bytes, int64 offset, const char *what,
							const char *part)
			__attribute__((noreturn));
extern int64 ws_fileset_bytes(const WsFileSet *set);
extern void ws_fileset_close(WsFileSet *set);

/* ---- writer.c: writes that a helper does ---- */
typedef struct WsWrite
{
	WsChore		chore;			/* must be first */
	WsFileSet  *files;
	int			file;
	const char *data;
	Size		bytes;
	int64		offset;
	int			error;			/* errno, or 0 */
} WsWrite;

extern void ws_write_start(WsHelper *h, WsWrite *w, WsFileSet *files, int file,
						   const char *data, Size bytes, int64 offset);
extern void ws_write_finish(WsHelper *h, WsWrite *w);

#endif							/* WS_FILE_H */
