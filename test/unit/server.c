/*-------------------------------------------------------------------------
 * server.c - the symbols of a server that the sources of a sort refer to, without a server.
 *
 * Memory contexts that keep each chunk in a malloc of its own, so that valgrind and the address
 * sanitizer see its ends; ereport and elog that keep SQLSTATE, message and detail; interrupts;
 * wait events, which are dropped; CRC-32C.  Whatever is allocated, mapped or started is counted:
 * after an error a test can say that nothing is left.
 *
 * As in PostgreSQL, the end of a context is first that of its children, then its callbacks are
 * called, the youngest first, then its memory goes.  What helpers must not do ends the program:
 * palloc, ereport, a look for interrupts.
 *
 * To be included by a test program, before the sources.
 *-------------------------------------------------------------------------
 */
#include "server.h"

#include "miscadmin.h"
#include "nodes/memnodes.h"
#include "pgstat.h"
#include "storage/fd.h"
#include "storage/lwlock.h"
#include "utils/regproc.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

#undef vprintf
#undef vsnprintf
#undef strerror

Server		server;

/* Of the server's variables, those that are referred to. */
MemoryContext TopMemoryContext = NULL;
MemoryContext CurrentMemoryContext = NULL;
ResourceOwner CurrentResourceOwner = NULL;
sigjmp_buf *PG_exception_stack = NULL;
ErrorContextCallback *error_context_stack = NULL;
volatile sig_atomic_t InterruptPending = false;
static uint32 server_wait_event;
uint32	   *my_wait_event_info = &server_wait_event;

static pthread_t server_thread;

bool
server_in_backend(void)
{
	return pthread_equal(pthread_self(), server_thread) != 0;
}

void
server_die(const char *fmt,...)
{
	va_list		args;

	printf("not ok - ");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

static void
server_backend_only(const char *what)
{
	if (!server_in_backend())
		server_die("%s in a helper", what);
}

/* ---- memory contexts ---- */

/* Before each chunk.  40 bytes: chunks are aligned to 8 bytes, and not to 16, as palloc's may be. */
typedef struct Chunk
{
	struct Chunk *next;
	struct Chunk *prev;
	Size		size;
	Size		unused;
	MemoryContext context;		/* last: 15 looks for it there */
} Chunk;

StaticAssertDecl(sizeof(Chunk) % 16 == 8, "chunks are no better aligned than palloc's");

typedef struct Context
{
	MemoryContextData header;	/* must be first; nothing in it is used but the type */
	struct Context *parent;
	struct Context *child;		/* the youngest */
	struct Context *sibling;
	MemoryContextCallback *callbacks;
	Chunk		chunks;			/* head of a ring */
} Context;

MemoryContext
AllocSetContextCreateInternal(MemoryContext parent, const char *name, Size least, Size first, Size most)
{
	Context    *c;

	server_backend_only("a memory context");
	c = calloc(1, sizeof(Context));
	if (c == NULL)
		server_die("no memory");
	c->header.type = T_AllocSetContext;
	c->header.name = name;
	c->chunks.next = c->chunks.prev = &c->chunks;
	c->parent = (Context *) parent;
	if (parent != NULL)
	{
		c->sibling = c->parent->child;
		c->parent->child = c;
	}
	server.contexts++;
	return &c->header;
}

void
MemoryContextRegisterResetCallback(MemoryContext context, MemoryContextCallback *cb)
{
	Context    *c = (Context *) context;

	cb->next = c->callbacks;
	c->callbacks = cb;
}

/* Nothing here is owned by anybody, or aborted. */
void
RegisterResourceReleaseCallback(ResourceReleaseCallback callback, void *arg)
{
}

static void
server_free(Chunk *chunk)
{
	server.memory -= chunk->size;
	chunk->prev->next = chunk->next;
	chunk->next->prev = chunk->prev;
	memset(chunk, 0x7F, sizeof(Chunk) + chunk->size);
	free(chunk);
}

void
MemoryContextReset(MemoryContext context)
{
	Context    *c = (Context *) context;
	MemoryContextCallback *cb;

	server_backend_only("the reset of a memory context");
	while (c->child != NULL)
		MemoryContextDelete(&c->child->header);
	while ((cb = c->callbacks) != NULL)
	{
		c->callbacks = cb->next;
		cb->func(cb->arg);
	}
	while (c->chunks.next != &c->chunks)
		server_free(c->chunks.next);
}

void
MemoryContextDelete(MemoryContext context)
{
	Context    *c = (Context *) context;

	if (context == CurrentMemoryContext)
		server_die("the current memory context is deleted");
	MemoryContextReset(context);
	if (c->parent != NULL)
	{
		Context   **link = &c->parent->child;

		while (*link != c)
			link = &(*link)->sibling;
		*link = c->sibling;
	}
	memset(c, 0x7F, sizeof(Context));
	free(c);
	server.contexts--;
}

void *
MemoryContextAllocHuge(MemoryContext context, Size size)
{
	Context    *c = (Context *) context;
	Chunk	   *chunk;

	server_backend_only("palloc");
	chunk = malloc(sizeof(Chunk) + size);
	if (chunk == NULL)
		server_die("no memory");
	memset(chunk + 1, 0x5A, size);	/* nobody may count on zeroes */
	chunk->size = size;
	chunk->context = context;
	chunk->next = &c->chunks;
	chunk->prev = c->chunks.prev;
	chunk->prev->next = chunk->next->prev = chunk;
	server.memory += size;
	server.memory_peak = Max(server.memory_peak, server.memory);
	return chunk + 1;
}

void *
MemoryContextAlloc(MemoryContext context, Size size)
{
	if (size > MaxAllocSize)
		elog(ERROR, "invalid memory alloc request size %zu", size);
	return MemoryContextAllocHuge(context, size);
}

void *
MemoryContextAllocZero(MemoryContext context, Size size)
{
	return memset(MemoryContextAlloc(context, size), 0, size);
}

void *
palloc(Size size)
{
	return MemoryContextAlloc(CurrentMemoryContext, size);
}

void *
palloc0(Size size)
{
	return MemoryContextAllocZero(CurrentMemoryContext, size);
}

void
pfree(void *pointer)
{
	server_backend_only("pfree");
	server_free((Chunk *) pointer - 1);
}

/* Always moves, so that whoever keeps an old pointer is found out. */
void *
repalloc_huge(void *pointer, Size size)
{
	Chunk	   *chunk = (Chunk *) pointer - 1;
	void	   *moved = MemoryContextAllocHuge(chunk->context, size);

	memcpy(moved, pointer, Min(size, chunk->size));
	pfree(pointer);
	return moved;
}

void *
repalloc(void *pointer, Size size)
{
	if (size > MaxAllocSize)
		elog(ERROR, "invalid memory alloc request size %zu", size);
	return repalloc_huge(pointer, size);
}

char *
pstrdup(const char *in)
{
	return strcpy(palloc(strlen(in) + 1), in);
}

#if PG_VERSION_NUM >= 160000
MemoryContext
GetMemoryChunkContext(void *pointer)
{
	return ((Chunk *) pointer - 1)->context;
}
#endif

/* ---- errors ---- */

static int	server_elevel;
static int	server_errno;

bool
errstart(int elevel, const char *domain)
{
	server_backend_only("ereport");
	server_errno = errno;
	server_elevel = elevel;
	if (elevel < ERROR)
		return false;
	server.sqlstate = ERRCODE_INTERNAL_ERROR;
	server.message[0] = server.detail[0] = '\0';
	return true;
}

bool
errstart_cold(int elevel, const char *domain)
{
	return errstart(elevel, domain);
}

void
pg_re_throw(void)
{
	if (PG_exception_stack == NULL)
		server_die("error raised outside of server_try: %s", server.message);
	siglongjmp(*PG_exception_stack, 1);
}

void
errfinish(const char *file, int line, const char *function)
{
	if (server_elevel < ERROR)
		return;
	server.errors++;
	pg_re_throw();
}

int
errcode(int sqlerrcode)
{
	server.sqlstate = sqlerrcode;
	return 0;
}

int
errcode_for_file_access(void)
{
	switch (server_errno)
	{
		case ENOSPC:
			return errcode(ERRCODE_DISK_FULL);
		case EIO:
			return errcode(ERRCODE_IO_ERROR);
		default:
			return errcode(ERRCODE_INTERNAL_ERROR);
	}
}

/* The C library's vsnprintf knows %m. */
#define FORMAT_INTO(buffer) \
	do { \
		va_list		args_; \
		errno = server_errno; \
		va_start(args_, fmt); \
		vsnprintf(buffer, sizeof(buffer), fmt, args_); \
		va_end(args_); \
	} while (0)

int
errmsg(const char *fmt,...)
{
	FORMAT_INTO(server.message);
	return 0;
}

int
errmsg_internal(const char *fmt,...)
{
	FORMAT_INTO(server.message);
	return 0;
}

int
errdetail(const char *fmt,...)
{
	FORMAT_INTO(server.detail);
	return 0;
}

int
errhint(const char *fmt,...)
{
	return 0;
}

/* Texts that no test here needs. */
char *
psprintf(const char *fmt,...)
{
	return NULL;
}

char *
format_operator(Oid operator_oid)
{
	return NULL;
}

void
ProcessInterrupts(void)
{
	server_backend_only("a look for interrupts");
	if (++server.checks == server.cancel_at)
		ereport(ERROR,
				(errcode(ERRCODE_QUERY_CANCELED),
				 errmsg("canceling statement due to user request")));
}

void
LWLockReleaseAll(void)
{
}

/* Nothing is watched, so that nobody reads it. */
TimestampTz
GetCurrentTimestamp(void)
{
	server_backend_only("the time");
	return 0;
}

/* Descriptors that are nobody's virtual file. */
bool
AcquireExternalFD(void)
{
	server_backend_only("a descriptor");
	if (server.no_descriptors)
		return false;
	server.descriptors++;
	return true;
}

void
ReleaseExternalFD(void)
{
	server_backend_only("a descriptor");
	server.descriptors--;
}

/* ---- values ---- */

struct varlena *
pg_detoast_datum_packed(struct varlena *v)
{
	return v;
}

struct varlena *
pg_detoast_datum_slice(struct varlena *v, int32 first, int32 count)
{
	return v;
}

Size
toast_raw_datum_size(Datum value)
{
	return VARSIZE_ANY_EXHDR(DatumGetPointer(value)) + VARHDRSZ;
}

#ifdef __x86_64__
/* The same by the processor, for which it is a tenth of the time of tests that write many blocks. */
__attribute__((target("sse4.2")))
static pg_crc32c
crc32c_sse42(pg_crc32c crc, const unsigned char *p, size_t n)
{
	uint64		all = crc;
	uint64		eight;

	for (; n >= sizeof(eight); n -= sizeof(eight), p += sizeof(eight))
	{
		memcpy(&eight, p, sizeof(eight));
		all = __builtin_ia32_crc32di(all, eight);
	}
	for (; n > 0; n--, p++)
		all = __builtin_ia32_crc32qi((uint32) all, *p);
	return (pg_crc32c) all;
}
#endif

pg_crc32c
server_crc32c(pg_crc32c crc, const void *data, size_t n)
{
	static uint32 table[256];
	static volatile bool made = false;
	const unsigned char *p = data;

#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return crc32c_sse42(crc, p, n);
#endif
	if (!made)					/* by the backend, before there are helpers: server_try */
	{
		for (uint32 i = 0; i < 256; i++)
		{
			table[i] = i;
			for (int bit = 0; bit < 8; bit++)
				table[i] = (table[i] >> 1) ^ (0x82F63B78 & -(table[i] & 1));
		}
		made = true;
	}
	while (n-- > 0)
		crc = table[(crc ^ *p++) & 0xFF] ^ (crc >> 8);
	return crc;
}

/* ---- what is asked of the system ---- */

static void
count_mapped(int64 bytes)
{
	server_backend_only("a mapping");
	server.mapped += bytes;
	server.mapped_peak = Max(server.mapped_peak, server.mapped);
}

static bool
no_more_address_space(void)
{
	server.reserves++;
	if (server.reserves_fail_from == 0 || server.reserves < server.reserves_fail_from)
		return false;
	errno = ENOMEM;
	return true;
}

void *
server_mmap(void *addr, size_t n, int prot, int flags, int fd, off_t offset)
{
	void	   *base = MAP_FAILED;

	if (prot == PROT_NONE && no_more_address_space())
		return base;
	base = mmap(addr, n, prot, flags, fd, offset);
	if (base != MAP_FAILED)
		count_mapped((int64) n);
	return base;
}

int
server_munmap(void *addr, size_t n)
{
	count_mapped(-(int64) n);
	return munmap(addr, n);
}

void *
server_mremap(void *old, size_t n, size_t newn, int flags, ...)
{
	va_list		args;
	void	   *to;
	void	   *base;

	va_start(args, flags);
	to = (flags & MREMAP_FIXED) != 0 ? va_arg(args, void *) : NULL;
	va_end(args);
	base = no_more_address_space() ? MAP_FAILED :
		to != NULL ? mremap(old, n, newn, flags, to) : mremap(old, n, newn, flags);
	/* where it is moved to, it takes the place of what is counted */
	if (base != MAP_FAILED)
		count_mapped((to != NULL ? 0 : (int64) newn) - (int64) n);
	return base;
}

int
server_mprotect(void *addr, size_t n, int prot)
{
	if (prot != PROT_NONE && ++server.commits == server.commit_fails_at)
	{
		errno = ENOMEM;
		return -1;
	}
	return mprotect(addr, n, prot);
}

int
server_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start) (void *), void *arg)
{
	int			error;

	if (++server.starts == server.start_fails_at)
		return EAGAIN;
	error = pthread_create(thread, attr, start, arg);
	if (error == 0)
	{
		server.threads++;
		server.started++;
	}
	return error;
}

int
server_thread_join(pthread_t thread, void **result)
{
	server.threads--;
	return pthread_join(thread, result);
}

/* ---- for tests ---- */

/* Resets the counts of calls and errors. */
static void
server_begin(void)
{
	if (TopMemoryContext == NULL)
	{
		server_thread = pthread_self();
		(void) server_crc32c(0, "", 0);
		TopMemoryContext = AllocSetContextCreateInternal(NULL, "Top", 0, 0, 0);
	}
	server.errors = server.sqlstate = 0;
	server.message[0] = server.detail[0] = '\0';
	server.checks = server.commits = server.reserves = server.starts = server.started = 0;
	server.memory_peak = server.memory;
	server.mapped_peak = server.mapped;
	InterruptPending = server.cancel_at > 0;
}

bool
server_try(void (*body) (void *arg), void *arg)
{
	sigjmp_buf	jump;
	MemoryContext context;
	volatile bool passed = false;

	server_begin();
	context = AllocSetContextCreateInternal(TopMemoryContext, "test", 0, 0, 0);
	CurrentMemoryContext = context;
	if (sigsetjmp(jump, 0) == 0)
	{
		PG_exception_stack = &jump;
		body(arg);
		passed = true;
	}
	PG_exception_stack = NULL;
	InterruptPending = false;
	CurrentMemoryContext = TopMemoryContext;
	MemoryContextDelete(context);
	return passed;
}

extern void ws_region_drop_spares(void) __attribute__((weak));

const char *
server_left(void)
{
	static char what[256];

	if (ws_region_drop_spares != NULL)
		ws_region_drop_spares();
	if (server.memory == 0 && server.contexts == 1 && server.threads == 0 && server.mapped == 0 &&
		server.files == 0)
		return NULL;
	snprintf(what, sizeof(what), "%zu bytes, %d contexts, %d threads, %lld bytes mapped, %d files",
			 server.memory, server.contexts - 1, server.threads, (long long) server.mapped, server.files);
	return what;
}

/* for the sources that are included next */
#define mmap(a, n, p, f, fd, o)		server_mmap(a, n, p, f, fd, o)
#define munmap(a, n)				server_munmap(a, n)
#define mremap(a, n, m, ...)		server_mremap(a, n, m, __VA_ARGS__)
#define mprotect(a, n, p)			server_mprotect(a, n, p)
#define pthread_create(t, a, s, x)	server_thread_create(t, a, s, x)
#define pthread_join(t, r)			server_thread_join(t, r)
