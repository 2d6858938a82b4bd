/*-------------------------------------------------------------------------
 * tempfile.h - one temporary file under PostgreSQL's virtual files.
 *-------------------------------------------------------------------------
 */
#ifndef WS_TEMPFILE_H
#define WS_TEMPFILE_H

#include "os/os.h"
#include "storage/fd.h"

/* In the place of an errno: a read has met the end of the file. */
#define WS_SHORT_FILE	(-1)

typedef struct WsTempFile
{
	File		file;
	char	   *name;			/* as PostgreSQL names it in messages */
	int64		size;			/* bytes written so far */
	int64		extended;		/* bytes it has been made to have for ws_tempfile_prepare */
	int			raw;			/* duplicate descriptor for helpers, or -1 */
	int			direct;			/* descriptor for reading past the page cache, or -1 */
	WsMapping  *mapping;		/* or NULL */
	bool		mapped_elsewhere;	/* by ws_tempfile_map_at, now or before */
} WsTempFile;

extern WsTempFile *ws_tempfile_create(const WsThreads *threads);
extern bool ws_tempfile_allow_helpers(WsTempFile *tf);
extern void ws_tempfile_require_helpers(WsTempFile *tf);
extern void ws_tempfile_write(WsTempFile *tf, const void *data, Size bytes, int64 offset);
extern void ws_tempfile_extend(WsTempFile *tf, Size bytes, int64 offset);
extern void ws_tempfile_announce(WsTempFile *tf, Size bytes, int64 offset);
extern void ws_tempfile_prepare(WsTempFile *tf, Size bytes, int64 offset);
extern void ws_tempfile_charge(WsTempFile *tf);
extern bool ws_tempfile_allow_direct(WsTempFile *tf);
extern int	ws_raw_write(int fd, const void *data, Size bytes, int64 offset);
extern bool ws_tempfile_allow_appending(WsTempFile *tf);
extern int	ws_raw_append(int fd, const void *data, Size bytes, int64 offset, int64 stays);
extern void ws_tempfile_appended(WsTempFile *tf, Size bytes, int64 size);
extern void ws_raw_read_ahead(int fd, Size bytes, int64 offset);
extern bool ws_tempfile_punch(WsTempFile *tf, Size bytes, int64 offset);
extern void ws_raw_forget(int fd, Size bytes, int64 offset, int64 stays);
extern int	ws_raw_read(int fd, void *data, Size bytes, int64 offset);
extern int	ws_tempfile_read(WsTempFile *tf, void *data, Size bytes, int64 offset);
extern void ws_tempfile_count_read(Size bytes);
extern void ws_tempfile_write_failed(const WsTempFile *tf, int error) __attribute__((noreturn));
extern void ws_tempfile_read_failed(const WsTempFile *tf, int error, const char *where)
			__attribute__((noreturn));
extern void ws_tempfile_check_length(const WsTempFile *tf, int64 bytes);
extern void ws_tempfile_cannot_map(const WsTempFile *tf) __attribute__((noreturn));
extern void ws_tempfile_map_at(WsTempFile *tf, char *address, Size bytes, int64 offset);
extern void ws_tempfile_unmap(WsTempFile *tf);
extern char *ws_tempfile_map(WsTempFile *tf, int64 bytes);
extern void ws_tempfile_close(WsTempFile *tf);

#endif							/* WS_TEMPFILE_H */
