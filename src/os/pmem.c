/*-------------------------------------------------------------------------
 * pmem.c - reading files that lie on persistent memory.
 *
 * A file of a DAX file system has no page cache: its mapping is the medium.
 * libpmem maps it at addresses that allow huge pages, and says whether it really is
 * persistent memory.  With PMEM_IS_PMEM_FORCE=1 in the server's environment any
 * file is, for tests (man libpmem).
 *
 * The library is loaded when the first such file is met: it brings ten others with
 * it, which would cost every new backend a millisecond.
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* statx */
#endif
#include "os/os.h"

#ifdef HAVE_LIBPMEM
#include <dlfcn.h>
#include <fcntl.h>
#include <libpmem.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define LIBRARY "libpmem.so.1"

static struct
{
	bool		tried;
	typeof(pmem_map_file) *map;
	typeof(pmem_unmap) *unmap;
} pmem;

static bool
load(void)
{
	void	   *library;

	if (pmem.tried)
		return pmem.map != NULL;
	pmem.tried = true;
	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
	{
		ereport(DEBUG1, (errmsg_internal("could not load %s: %s", LIBRARY, dlerror())));
		return false;
	}
	pmem.unmap = (typeof(pmem_unmap) *) dlsym(library, "pmem_unmap");
	if (pmem.unmap != NULL)
		pmem.map = (typeof(pmem_map_file) *) dlsym(library, "pmem_map_file");
	return pmem.map != NULL;
}

/* Does the file system say that there is no page cache between it and us? */
static bool
direct_access(const char *name)
{
#ifdef STATX_ATTR_DAX
	struct statx st;

	if (statx(AT_FDCWD, name, 0, 0, &st) == 0 && (st.stx_attributes & STATX_ATTR_DAX) != 0)
		return true;
#endif
	return getenv("PMEM_IS_PMEM_FORCE") != NULL;
}
#endif							/* HAVE_LIBPMEM */

/*
 * Maps the whole file, for reading, if it lies on persistent memory.  Returns the
 * address and sets *bytes; NULL if it does not, or if there is no libpmem.  To be
 * ended by ws_pmem_unmap.
 */
char *
ws_pmem_map(const char *name, Size *bytes)
{
#ifdef HAVE_LIBPMEM
	void	   *base;
	int			is_pmem;

	if (!direct_access(name) || !load())
		return NULL;
	base = pmem.map(name, 0, 0, 0, bytes, &is_pmem);
	if (base == NULL)
		return NULL;
	/* it maps for writing */
	if (is_pmem && mprotect(base, *bytes, PROT_READ) == 0)
		return base;
	pmem.unmap(base, *bytes);
#endif
	return NULL;
}

/* Ends a mapping made by ws_pmem_map. */
void
ws_pmem_unmap(char *base, Size bytes)
{
#ifdef HAVE_LIBPMEM
	pmem.unmap(base, bytes);
#endif
}
