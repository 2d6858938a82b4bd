/*-------------------------------------------------------------------------
 * dispose.c - the end of a large mapping, beside the query that follows.
 *
 * The mapping of a deleted file is the last that keeps its pages.  Giving back a
 * gigabyte of them takes a tenth of a second (of 1.7 s, 10 M rows of 100 bytes, in which
 * core deletes its files as well): a thread of its own does that, while the backend
 * goes on.  It makes one system call and ends.  If the process ends before, the
 * system does the same.
 *-------------------------------------------------------------------------
 */
#include "os/os.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

#include "port/atomics.h"

#define WORTHWHILE_BYTES	((Size) 32 * 1024 * 1024)
#define STACK_BYTES			((Size) 64 * 1024)

/* What the thread, of which there is one at most, is to do. */
static struct
{
	char	   *base;
	Size		bytes;
} disposed;
static pg_atomic_uint32 busy;

static void *
unmap(void *arg)
{
	munmap(disposed.base, disposed.bytes);
	pg_memory_barrier();
	pg_atomic_write_u32(&busy, 0);
	ws_thread_give_back();
	return NULL;
}

/*
 * Is the file system of a descriptor, if there is one, so full that what is written next may need the room of
 * `bytes` bytes that are given back?
 */
bool
ws_room_is_short(int fd, Size bytes)
{
	struct statvfs fs;

	return fd >= 0 && fstatvfs(fd, &fs) == 0 && (double) fs.f_bavail * fs.f_frsize < 2.0 * bytes;
}

/*
 * Ends a mapping of `bytes` bytes, now or soon: nobody may touch it any more.  `threads` says
 * whether a thread may do it; NULL: none, since the room is needed.
 */
void
ws_dispose(char *base, Size bytes, const WsThreads *threads)
{
	pthread_attr_t attr;
	pthread_t	thread;
	sigset_t	block;
	sigset_t	before;
	bool		started;

	if (threads == NULL || !ws_thread_wanted(threads->write, bytes >= WORTHWHILE_BYTES) ||
		!ws_thread_take(threads->most))
	{
		munmap(base, bytes);
		return;
	}
	if (pg_atomic_exchange_u32(&busy, 1) != 0)
	{
		ws_thread_give_back();
		munmap(base, bytes);
		return;
	}
	disposed.base = base;
	disposed.bytes = bytes;
	pthread_attr_init(&attr);
	(void) pthread_attr_setstacksize(&attr, Max(STACK_BYTES, (Size) PTHREAD_STACK_MIN));
	(void) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&block);
	pthread_sigmask(SIG_SETMASK, &block, &before);
	started = pthread_create(&thread, &attr, unmap, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!started)
		unmap(NULL);
}
