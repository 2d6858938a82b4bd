/*-------------------------------------------------------------------------
 * file.h - temporary files.
 *-------------------------------------------------------------------------
 */
#ifndef WS_FILE_H
#define WS_FILE_H

#include "os/os.h"
#include "storage/fd.h"

/* ---- tempfile.c: one temporary file under PostgreSQL's virtual files ---- */
typedef struct WsTempFile
{
	File		file;
	char	   *name;			/* as PostgreSQL names it in messages */
	int64		size;			/* bytes written so far */
	int64		extended;		/* bytes it has been made to have for ws_tempfile_prepare */
	int			raw;			/* duplicate descriptor for helpers, or -1 */
	WsMapping  *mapping;		/* or NULL */
} WsTempFile;

/* One write that a helper does. */
typedef struct WsWrite
{
	WsChore		chore;			/* must be first */
	WsTempFile *tf;
	const char *data;
	Size		bytes;
	int64		offset;
	int			error;			/* errno, or 0 */
} WsWrite;

extern WsTempFile *ws_tempfile_create(void);
extern bool ws_tempfile_allow_helpers(WsTempFile *tf);
extern void ws_tempfile_extend(WsTempFile *tf, Size bytes, int64 offset);
extern void ws_tempfile_prepare(WsTempFile *tf, Size bytes, int64 offset);
extern void ws_tempfile_charge(WsTempFile *tf);
extern int	ws_raw_write(int fd, const void *data, Size bytes, int64 offset);
extern int	ws_raw_read(int fd, void *data, Size bytes, int64 offset);
extern void ws_tempfile_failed(const WsTempFile *tf, bool writing, int error) __attribute__((noreturn));
extern void ws_tempfile_count_read(Size bytes);
extern void ws_write_start(WsHelper *h, WsWrite *w, WsTempFile *tf,
						   const char *data, Size bytes, int64 offset);
extern void ws_write_finish(WsHelper *h, WsWrite *w);
extern void ws_tempfile_write(WsTempFile *tf, const void *data, Size bytes, int64 offset);
extern void ws_tempfile_read(WsTempFile *tf, void *data, Size bytes, int64 offset);
extern char *ws_tempfile_map(WsTempFile *tf, int64 bytes);
extern void ws_tempfile_close(WsTempFile *tf);

#endif							/* WS_FILE_H */
