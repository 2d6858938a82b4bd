/*-------------------------------------------------------------------------
 * shim.c - makes the n-th I/O call on temporary files fail, inside a server.
 *
 * The driver (inject.py) compiles this and loads it into a server by LD_PRELOAD.  Both map one small file,
 * whose name is in the environment variable WISCSORT_FAULTS: the driver writes there which backend is
 * meant, which kind of fault, and at which call; this counts the calls and says what it has done.
 *
 * A call counts if its file lies in a directory of temporary files, which its descriptor's link in /proc
 * tells, and if the process is the one meant; helper threads are threads of that process.  Mappings of
 * tables count as well, which no part of PostgreSQL but wiscsort makes.
 *
 * What a fault does is what a system does: a mapping fails for want of memory, a read given to libaio
 * fails in its result, and a submission is refused with EAGAIN.  A cancel is a SIGINT to the process; a
 * timeout is a call that takes longer than statement_timeout.
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <linux/aio_abi.h>

/* Kinds of faults.  inject.py has the same numbers. */
enum
{
	NONE, FAIL, FULL, SHORT, END, CANCEL, TIMEOUT, FAIL_ON, FULL_ON
};

/* What a call is, as bits.  inject.py has the same. */
enum
{
	CREATE = 1, OPEN = 2, READ = 4, WRITE = 8, SIZE = 16, ADVICE = 32, MAP = 64, SETUP = 128, SUBMIT = 256,
	RESULT = 512, TRY = 1024, TABLE = 2048
};

/* What the driver and this share.  32-bit numbers all: inject.py unpacks them. */
static struct Control
{
	atomic_int	pid;			/* of the backend that is meant, or 0 */
	int			kind;
	int			at;				/* the first call is 1; 0: only count */
	int			wait_ms;		/* how long a timeout's call takes */
	int			cold;			/* mincore says that the page cache has nothing */
	atomic_int	counted;		/* calls that this kind can happen to */
	atomic_int	injected;
	atomic_int	what;			/* the call that it happened to first */
	atomic_int	on_their_way;	/* reads given to libaio and not taken back */
}		   *control = NULL;

static ssize_t (*real_pread) (int, void *, size_t, off_t);
static ssize_t (*real_pwrite) (int, const void *, size_t, off_t);
static ssize_t (*real_preadv) (int, const struct iovec *, int, off_t);
static ssize_t (*real_pwritev) (int, const struct iovec *, int, off_t);
static ssize_t (*real_preadv2) (int, const struct iovec *, int, off_t, int);
static ssize_t (*real_pwritev2) (int, const struct iovec *, int, off_t, int);
static int	(*real_ftruncate) (int, off_t);
static int	(*real_fallocate) (int, int, off_t, off_t);
static int	(*real_posix_fallocate) (int, off_t, off_t);
static int	(*real_posix_fadvise) (int, off_t, off_t, int);
static int	(*real_sync_file_range) (int, off_t, off_t, unsigned int);
static int	(*real_mincore) (void *, size_t, unsigned char *);

__attribute__((constructor)) static void
begin(void)
{
	const char *name = getenv("WISCSORT_FAULTS");
	int			fd = name != NULL ? open(name, O_RDWR | O_CLOEXEC) : -1;

	real_pread = dlsym(RTLD_NEXT, "pread");
	real_pwrite = dlsym(RTLD_NEXT, "pwrite");
	real_preadv = dlsym(RTLD_NEXT, "preadv");
	real_pwritev = dlsym(RTLD_NEXT, "pwritev");
	real_preadv2 = dlsym(RTLD_NEXT, "preadv2");
	real_pwritev2 = dlsym(RTLD_NEXT, "pwritev2");
	real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
	real_fallocate = dlsym(RTLD_NEXT, "fallocate");
	real_posix_fallocate = dlsym(RTLD_NEXT, "posix_fallocate");
	real_posix_fadvise = dlsym(RTLD_NEXT, "posix_fadvise");
	real_sync_file_range = dlsym(RTLD_NEXT, "sync_file_range");
	real_mincore = dlsym(RTLD_NEXT, "mincore");
	if (fd >= 0)
	{
		void	   *shared = mmap(NULL, sizeof(struct Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (shared != MAP_FAILED)
			control = shared;
		close(fd);
	}
}

/* Which calls a kind can happen to. */
static int
calls_of(int kind)
{
	switch (kind)
	{
		case FULL:
		case FULL_ON:
			return CREATE | WRITE | SIZE;
		case SHORT:
		case END:
			return READ | WRITE | RESULT | TRY;
		default:
			return ~0;
	}
}

static void
delay(int ms)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += ms / 1000;
	end.tv_nsec += ms % 1000 * 1000000L;
	if (end.tv_nsec >= 1000000000L)
	{
		end.tv_sec++;
		end.tv_nsec -= 1000000000L;
	}
	/* signals come meanwhile, and are handled */
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
}

/* Counts a call.  Returns the kind of fault that it is to have. */
static int
due(int what)
{
	int			saved = errno;
	int			n;
	int			kind;

	if (control == NULL || atomic_load(&control->pid) != getpid())
		return NONE;
	kind = control->kind;
	if ((calls_of(kind) & what) == 0)
		return NONE;
	n = atomic_fetch_add(&control->counted, 1) + 1;
	if (control->at == 0 || n < control->at || (n > control->at && kind != FAIL_ON && kind != FULL_ON))
		return NONE;
	if (atomic_fetch_add(&control->injected, 1) == 0)
		atomic_store(&control->what, what);
	if (kind == CANCEL)
		kill(getpid(), SIGINT);
	else if (kind == TIMEOUT)
		delay(control->wait_ms);
	errno = saved;
	return kind == CANCEL || kind == TIMEOUT ? NONE : kind == FAIL_ON ? FAIL : kind == FULL_ON ? FULL : kind;
}

/* The same, for a call on a descriptor, if that is of a file that counts. */
static int
due_for(int fd, int what)
{
	char		link[32];
	char		name[512];
	int			saved = errno;
	ssize_t		n;

	if (control == NULL || atomic_load(&control->pid) != getpid())
		return NONE;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, sizeof(name) - 1);
	errno = saved;
	if (n <= 0)
		return NONE;
	name[n] = '\0';
	if (strstr(name, "/pgsql_tmp") != NULL)
		return due(what);
	if (what == MAP && strstr(name, "/base/") != NULL)
		return due(TABLE);
	return NONE;
}

/* Does a fault end a call that moves bytes, and with what?  *bytes becomes how many it may move. */
static int
ends(int kind, size_t *bytes, ssize_t *result)
{
	*result = -1;
	switch (kind)
	{
		case FAIL:
			errno = EIO;
			return 1;
		case FULL:
			errno = ENOSPC;
			return 1;
		case END:
			*result = 0;
			return 1;
		case SHORT:
			*bytes = *bytes > 1 ? *bytes / 2 : *bytes;
			return 0;
		default:
			return 0;
	}
}

/* Does a fault end a call that returns 0 or -1? */
static int
fails(int kind)
{
	if (kind == NONE)
		return 0;
	errno = kind == FULL ? ENOSPC : EIO;
	return 1;
}

/* ---- reading and writing ---- */

ssize_t
pread(int fd, void *data, size_t bytes, off_t offset)
{
	ssize_t		result;

	return ends(due_for(fd, READ), &bytes, &result) ? result : real_pread(fd, data, bytes, offset);
}

ssize_t
pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
	ssize_t		result;

	return ends(due_for(fd, WRITE), &bytes, &result) ? result : real_pwrite(fd, data, bytes, offset);
}

/* Of several buffers a short call moves the first one, or half of it. */
#define OF_BUFFERS(what, real, ...) \
	struct iovec first = buffers[0]; \
	ssize_t result; \
	int kind = due_for(fd, what); \
	\
	if (ends(kind, &first.iov_len, &result)) \
		return result; \
	return kind == SHORT ? real(fd, &first, 1, __VA_ARGS__) : real(fd, buffers, n, __VA_ARGS__)

ssize_t
preadv(int fd, const struct iovec *buffers, int n, off_t offset)
{
	OF_BUFFERS(READ, real_preadv, offset);
}

ssize_t
pwritev(int fd, const struct iovec *buffers, int n, off_t offset)
{
	OF_BUFFERS(WRITE, real_pwritev, offset);
}

ssize_t
preadv2(int fd, const struct iovec *buffers, int n, off_t offset, int flags)
{
	OF_BUFFERS((flags & RWF_NOWAIT) != 0 ? TRY : READ, real_preadv2, offset, flags);
}

ssize_t
pwritev2(int fd, const struct iovec *buffers, int n, off_t offset, int flags)
{
	OF_BUFFERS(WRITE, real_pwritev2, offset, flags);
}

/* ---- files ---- */

static int
open_file(const char *name, int flags, mode_t mode)
{
	int			what = (flags & O_CREAT) != 0 ? CREATE : OPEN;
	int			of = -1;
	int			fault = NONE;

	if (strstr(name, "pgsql_tmp") != NULL)
		fault = due(what);
	else if (sscanf(name, "/proc/self/fd/%d", &of) == 1)
		fault = due_for(of, what);
	return fails(fault) ? -1 : (int) syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

#define OPEN_FILE(name, flags) \
	mode_t mode = 0; \
	\
	if ((flags & (O_CREAT | O_TMPFILE)) != 0) \
	{ \
		va_list args; \
		\
		va_start(args, flags); \
		mode = va_arg(args, mode_t); \
		va_end(args); \
	} \
	return open_file(name, flags, mode)

int
open(const char *name, int flags,...)
{
	OPEN_FILE(name, flags);
}

int
open64(const char *name, int flags,...)
{
	OPEN_FILE(name, flags);
}

int
ftruncate(int fd, off_t size)
{
	return fails(due_for(fd, SIZE)) ? -1 : real_ftruncate(fd, size);
}

int
fallocate(int fd, int mode, off_t offset, off_t bytes)
{
	return fails(due_for(fd, mode != 0 ? ADVICE : SIZE)) ? -1 : real_fallocate(fd, mode, offset, bytes);
}

int
posix_fallocate(int fd, off_t offset, off_t bytes)
{
	int			kind = due_for(fd, SIZE);

	return kind == NONE ? real_posix_fallocate(fd, offset, bytes) : kind == FULL ? ENOSPC : EIO;
}

int
posix_fadvise(int fd, off_t offset, off_t bytes, int advice)
{
	return due_for(fd, ADVICE) != NONE ? EIO : real_posix_fadvise(fd, offset, bytes, advice);
}

int
sync_file_range(int fd, off_t offset, off_t bytes, unsigned int flags)
{
	return fails(due_for(fd, ADVICE)) ? -1 : real_sync_file_range(fd, offset, bytes, flags);
}

void *
mmap(void *at, size_t bytes, int access, int flags, int fd, off_t offset)
{
	if (fd >= 0 && (flags & MAP_ANONYMOUS) == 0 && due_for(fd, MAP) != NONE)
	{
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *) syscall(SYS_mmap, at, bytes, access, flags, fd, offset);
}

/* So that reads are given to libaio, which what has just been written would not need. */
int
mincore(void *at, size_t bytes, unsigned char *there)
{
	int			result = real_mincore(at, bytes, there);

	if (result == 0 && control != NULL && control->cold && atomic_load(&control->pid) == getpid())
		memset(there, 0, (bytes + 4095) / 4096);
	return result;
}

#if defined(__x86_64__) || defined(__aarch64__)
/* The names with 64 are the same functions where off_t has 64 bits. */
#define SAME(name) __attribute__((alias(#name)))
ssize_t		pread64(int, void *, size_t, off_t) SAME(pread);
ssize_t		pwrite64(int, const void *, size_t, off_t) SAME(pwrite);
ssize_t		preadv64(int, const struct iovec *, int, off_t) SAME(preadv);
ssize_t		pwritev64(int, const struct iovec *, int, off_t) SAME(pwritev);
ssize_t		preadv64v2(int, const struct iovec *, int, off_t, int) SAME(preadv2);
ssize_t		pwritev64v2(int, const struct iovec *, int, off_t, int) SAME(pwritev2);
int			ftruncate64(int, off_t) SAME(ftruncate);
int			fallocate64(int, int, off_t, off_t) SAME(fallocate);
int			posix_fallocate64(int, off_t, off_t) SAME(posix_fallocate);
int			posix_fadvise64(int, off_t, off_t, int) SAME(posix_fadvise);
void	   *mmap64(void *, size_t, int, int, int, off_t) SAME(mmap);
#endif

/* ---- libaio, whose functions return a negative errno; they are system calls and nothing else ---- */

int
io_setup(int depth, aio_context_t *context)
{
	if (due(SETUP) != NONE)
		return -EAGAIN;
	return syscall(SYS_io_setup, depth, context) < 0 ? -errno : 0;
}

int
io_submit(aio_context_t context, long n, struct iocb **reads)
{
	long		taken;

	if (n > 0 && due_for((int) reads[0]->aio_fildes, SUBMIT) != NONE)
		return -EAGAIN;
	taken = syscall(SYS_io_submit, context, n, reads);
	if (taken < 0)
		return -errno;
	if (control != NULL && atomic_load(&control->pid) == getpid())
		atomic_fetch_add(&control->on_their_way, (int) taken);
	return (int) taken;
}

int
io_getevents(aio_context_t context, long least, long most, struct io_event *events, struct timespec *timeout)
{
	long		n = syscall(SYS_io_getevents, context, least, most, events, timeout);

	if (n < 0)
		return -errno;
	if (control == NULL || atomic_load(&control->pid) != getpid())
		return (int) n;
	atomic_fetch_sub(&control->on_their_way, (int) n);
	for (long i = 0; i < n; i++)
	{
		int			kind = due(RESULT);

		if (kind == FAIL)
			events[i].res = -EIO;
		else if (kind == END)
			events[i].res = 0;
		else if (kind == SHORT && events[i].res > 1)
			events[i].res /= 2;
	}
	return (int) n;
}
