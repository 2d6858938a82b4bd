/*-------------------------------------------------------------------------
 * server.h - what unit tests have in the place of a server (server.c), and what they can ask it.
 *
 * To be included before anything of src/: it also sees to it that sources that are included
 * afterwards call counted versions of mmap and of the functions that start threads, and a CRC-32C
 * that is not chosen at run time.  Always the template kernel: no C++.
 *-------------------------------------------------------------------------
 */
#ifndef WS_UNIT_SERVER_H
#define WS_UNIT_SERVER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* mremap */
#endif
#undef HAVE_LIBHWY
#include "postgres.h"
#include "port/pg_crc32c.h"

extern pg_crc32c server_crc32c(pg_crc32c crc, const void *data, size_t n);
#undef COMP_CRC32C
#define COMP_CRC32C(crc, data, len) ((crc) = server_crc32c((crc), (data), (len)))

#include "unit.h"

#include <pthread.h>
#include <sys/mman.h>

#include "utils/memutils.h"

/* What the server has seen, what it holds, and what it is to do.  Only the backend touches it. */
typedef struct Server
{
	/* the last error, and how many there were since server_try began */
	int			errors;
	int			sqlstate;
	char		message[1024];
	char		detail[1024];
	/* what is there now */
	Size		memory;			/* bytes of chunks */
	Size		memory_peak;
	int			contexts;
	int			threads;
	int64		mapped;			/* bytes of mappings */
	int64		mapped_peak;
	int			files;			/* of memfiles.c */
	int			descriptors;	/* AcquireExternalFD */
	bool		no_descriptors; /* it refuses */
	/* calls so far, and at which of them something happens; 0: never */
	long		checks;			/* looks for interrupts, while cancel_at is set */
	long		cancel_at;
	long		commits;		/* mprotect that makes memory usable */
	long		commit_fails_at;
	long		reserves;		/* address space asked for */
	long		reserves_fail_from;	/* this call and all behind it */
	long		starts;			/* of threads */
	long		start_fails_at;
	long		started;		/* threads in all */
} Server;

extern Server server;

/* Ends the test program: what must never happen. */
extern void server_die(const char *fmt,...) __attribute__((format(printf, 1, 2), noreturn));
extern bool server_in_backend(void);

/*
 * Calls body(arg) in a memory context of its own, which is deleted afterwards as at the end of a
 * transaction.  False if an ERROR came out of it.
 */
extern bool server_try(void (*body) (void *arg), void *arg);

/* Nothing of all this is left: NULL; otherwise what is. */
extern const char *server_left(void);

/* What sources that are included call instead of the system (see the end of server.c). */
extern void *server_mmap(void *addr, size_t n, int prot, int flags, int fd, off_t offset);
extern int	server_munmap(void *addr, size_t n);
extern void *server_mremap(void *old, size_t n, size_t newn, int flags, ...);
extern int	server_mprotect(void *addr, size_t n, int prot);
extern int	server_thread_create(pthread_t *thread, const pthread_attr_t *attr,
								 void *(*start) (void *), void *arg);
extern int	server_thread_join(pthread_t thread, void **result);

#endif							/* WS_UNIT_SERVER_H */
