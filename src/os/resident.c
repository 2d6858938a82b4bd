/*-------------------------------------------------------------------------
 * resident.c - which pages of a mapped file are in memory, and asking for those that are not.
 *
 * The system's calls want addresses at the beginning of a page, of 4 kB mostly, but of up to 64 kB on arm64
 * and ppc64el.  Helpers may call all of it: nothing is allocated, and nothing raised.
 *-------------------------------------------------------------------------
 */
#include "os/os.h"

#include <sys/mman.h>
#include <unistd.h>

/* Pages that are asked about at a time. */
#define ASKED_PAGES		64

Size
ws_page_bytes(void)
{
	static Size bytes = 0;

	if (bytes == 0)
		bytes = (Size) sysconf(_SC_PAGESIZE);
	return bytes;
}

/* Of the pages that `bytes` bytes of a mapping are on, the share that is not in memory; -1: who knows. */
double
ws_pages_absent(const char *address, Size bytes)
{
	Size		page = ws_page_bytes();
	const char *begin = (const char *) TYPEALIGN_DOWN(page, (uintptr_t) address);
	Size		pages = ((Size) (address - begin) + bytes + page - 1) / page;
	Size		absent = 0;

	for (Size at = 0; at < pages; at += ASKED_PAGES)
	{
		unsigned char there[ASKED_PAGES];
		Size		n = Min(ASKED_PAGES, pages - at);

		if (mincore((void *) (begin + at * page), n * page, there) != 0)
			return -1;
		for (Size i = 0; i < n; i++)
			absent += (there[i] & 1) == 0;
	}
	return pages == 0 ? 0 : (double) absent / (double) pages;
}

/* Tells the system that these bytes of a mapping are going to be read. */
void
ws_pages_announce(const char *address, Size bytes)
{
	Size		before = (uintptr_t) address % ws_page_bytes();

	(void) madvise((void *) (address - before), before + bytes, MADV_WILLNEED);
}
