/*-------------------------------------------------------------------------
 * io.h - memory regions, temporary files and their mappings.
 *-------------------------------------------------------------------------
 */
#ifndef WS_IO_H
#define WS_IO_H

#include "wiscsort.h"
#include "storage/fd.h"

/* ---- region.c: address space reserved once, committed as it fills ---- */
typedef struct WsRegion
{
	char	   *base;			/* page-aligned */
	Size		reserved;		/* bytes of address space */
	Size		committed;		/* bytes usable from base */
	MemoryContextCallback callback;
} WsRegion;

extern WsRegion *ws_region_create(Size bytes);
extern void ws_region_commit(WsRegion *region, Size bytes);
extern void ws_region_shrink(WsRegion *region, Size bytes);
extern void ws_region_destroy(WsRegion *region);

/* ---- tempfile.c: one temporary file under PostgreSQL's virtual files ---- */
typedef struct WsMapping WsMapping;

typedef struct WsTempFile
{
	File		file;
	char	   *name;			/* as PostgreSQL names it in messages */
	int64		size;			/* bytes written so far */
	WsMapping  *mapping;		/* or NULL */
} WsTempFile;

extern WsTempFile *ws_tempfile_create(void);
extern void ws_tempfile_write(WsTempFile *tf, const void *data, Size bytes, int64 offset);
extern void ws_tempfile_read(WsTempFile *tf, void *data, Size bytes, int64 offset);
extern char *ws_tempfile_map(WsTempFile *tf, int64 bytes);
extern void ws_tempfile_close(WsTempFile *tf);

/* ---- sigbus.c: a fault inside one of our mappings is an ERROR ---- */
struct WsMapping
{
	char	   *base;
	Size		bytes;
	const char *name;			/* file's name; outlives the mapping */
	WsMapping  *next;
};

extern void ws_sigbus_register(WsMapping *mapping);
extern void ws_sigbus_forget(WsMapping *mapping);

extern void ws_corrupt(const char *filename, const char *what) __attribute__((noreturn));

#endif							/* WS_IO_H */
