/*-------------------------------------------------------------------------
 * os.h - what is asked of the operating system: memory, threads, mappings.
 *-------------------------------------------------------------------------
 */
#ifndef WS_OS_H
#define WS_OS_H

#include "entry.h"
#include <setjmp.h>

#include "lib/ilist.h"
#include "port/atomics.h"

/* ---- region.c: address space that is committed as it fills, and who counts it ---- */

/* Bytes of memory that a sort has, now and at most so far. */
typedef struct WsAccount
{
	Size		now;
	Size		peak;
} WsAccount;

static inline void
ws_account_add(WsAccount *account, Size bytes)
{
	account->now += bytes;
	account->peak = Max(account->peak, account->now);
}

static inline void
ws_account_subtract(WsAccount *account, Size bytes)
{
	Assert(bytes <= account->now);
	account->now -= bytes;
}

typedef struct WsRegion
{
	char	   *base;			/* page-aligned; another one after ws_region_reserve */
	Size		reserved;		/* bytes of address space */
	Size		expected;		/* bytes that it is given at least, if it has to be moved */
	Size		limit;			/* bytes that it may come to have */
	Size		committed;		/* bytes from base that are used */
	Size		usable;			/* bytes from base that may be: no less */
	Size		released;		/* of them, no longer: at the front */
	bool		huge_pages;		/* asked for */
	WsAccount  *account;
	MemoryContextCallback callback;
} WsRegion;

extern WsRegion *ws_region_create(WsAccount *account, Size expected, Size limit);
extern WsRegion *ws_region_create_small(WsAccount *account, Size expected, Size limit);
extern void ws_region_use_huge_pages(WsRegion *region);
extern bool ws_region_reserve(WsRegion *region, Size bytes);
extern void ws_region_commit(WsRegion *region, Size bytes);
extern void ws_region_shrink(WsRegion *region, Size bytes);
extern void ws_region_release(WsRegion *region, Size bytes);
extern void ws_region_destroy(WsRegion *region);
extern void ws_region_drop_spares(void);

/* ---- owned.c: what is told when a resource owner goes ---- */

typedef struct WsOwned
{
	dlist_node	node;			/* among those of its owner */
	struct ResourceOwnerData *owner;	/* NULL: nobody has it */
	void		(*goes) (struct WsOwned *o, bool after, bool commits);
} WsOwned;

extern void ws_owned_take(WsOwned *o, void (*goes) (WsOwned *o, bool after, bool commits));
extern void ws_owned_drop(WsOwned *o);

/* ---- helper.c: a thread that does chores ---- */
typedef struct WsHelper WsHelper;

enum
{
	WS_CHORE_IDLE,				/* zero-initialised: never submitted, or waited for */
	WS_CHORE_QUEUED,
	WS_CHORE_DONE
};

/* index/vqsort.cc: what a thread must call before it ends. */
#ifdef HAVE_LIBHWY
extern void ws_vqsort_thread_end(void);
#endif

/* First member of what a chore works on. */
typedef struct WsChore
{
	void		(*run) (struct WsChore *chore); /* calls nothing of PostgreSQL */
	struct WsChore *next;
	pg_atomic_uint32 state;
	bool		lengthy;		/* the backend does not take it over: it would see no interrupt for long */
} WsChore;

/*
 * Which helpers a sort may have: 0 none, 1 one in any case, -1 one if there is work enough
 * for it; and how many threads this process may have, over all sorts.
 */
typedef struct WsThreads
{
	int			read;			/* merge and fetch ahead of the reader */
	int			sort;			/* sort, and write runs, while rows come in */
	int			write;			/* write the spool */
	int			most;
} WsThreads;

/* Sorts with less memory than this are too short to be helped, and so is the output of fewer rows. */
#define WS_HELPER_MEMORY	((Size) 1024 * 1024)
#define WS_HELPER_ROWS		10000

extern int	ws_processors(void);
extern WsHelper *ws_helper_start(int threads, int most, bool worthwhile);
extern bool ws_thread_wanted(int threads, bool worthwhile);
extern bool ws_thread_take(int most);
extern void ws_thread_give_back(void);
extern void ws_helper_submit(WsHelper *h, WsChore *chore);
extern void ws_helper_submit_lazily(WsHelper *h, WsChore *chore, int enough);
extern bool ws_chore_is_done(const WsChore *chore);
extern bool ws_chore_is_queued(const WsChore *chore);
extern bool ws_chore_is_idle(const WsChore *chore);
extern bool ws_helper_wait(WsHelper *h, WsChore *chore);
extern bool ws_helper_is_stopping(WsHelper *h);
extern void ws_helper_stop(WsHelper *h);

/* ---- crowd.c: do others need the processors? ---- */

/* What a helper knows of that; zeros at first.  Times in ns. */
typedef struct WsCrowd
{
	uint64		watched;		/* when it has last looked */
	uint64		waited;			/* what backend and helper had waited for processors until then */
	volatile uint64 rest_until;
} WsCrowd;

extern uint64 ws_now(void);
extern bool ws_crowd_look(WsCrowd *crowd);
extern bool ws_crowd_rests(const WsCrowd *crowd);

/* ---- team.c: loops that the backend and a helper do together ---- */
#define WS_TEAM_ITEMS	255
#define WS_TEAM_BACKEND	0
#define WS_TEAM_HELPER	1

typedef void (*WsTeamWork) (void *arg, int item, int side);

typedef struct WsTeam
{
	WsChore		chore;			/* must be first */
	WsHelper   *helper;
	bool		on_duty;
	bool		modest;			/* leaves processors to others */
	WsCrowd		crowd;
	volatile bool dismissed;
	WsTeamWork	work;			/* of the loop */
	void	   *arg;
	uint32		loop;			/* its number */
	pg_atomic_uint64 turn;		/* what of it is taken (team.c) */
	pg_atomic_uint32 served;	/* items the helper has done */
	uint32		expected;		/* items it has taken, up to the last loop */
	volatile bool fault;		/* one of them could not read its mapping */
} WsTeam;

extern void ws_team_init(WsTeam *team, WsHelper *helper, bool modest);
extern void ws_team_call(WsTeam *team);
extern void ws_team_end(WsTeam *team);
extern bool ws_team_run(WsTeam *team, WsTeamWork work, void *arg, int n);

/* ---- memory.c: how much memory there is for the page cache ---- */
typedef enum WsMemoryBound
{
	WS_BOUND_NONE,
	WS_BOUND_MACHINE,
	WS_BOUND_CGROUP,
	WS_BOUND_ADDRESS_SPACE
} WsMemoryBound;

typedef struct WsMemory
{
	int64		bytes;
	WsMemoryBound bound;
} WsMemory;

extern void ws_memory_find(const char *root, WsMemory *found);
extern void ws_memory_keep(Size bytes);

/* For so many microseconds what was found is believed by a sort that begins, and by the planner. */
#define WS_FOUND_STILL		INT64CONST(10000)
#define WS_FOUND_LATELY		INT64CONST(1000000)

extern const WsMemory *ws_memory_once(int64 now, int64 still);
extern const char *ws_memory_bound_name(WsMemoryBound bound);

/* ---- device.c: what files are kept on ---- */
typedef struct WsDevice
{
	char		name[128];		/* the device, or what else the file system is of */
	char		type[32];		/* of the file system */
	const char *kind;			/* of the device, in words, or NULL */
	int64		free_bytes;		/* that this user may still write, or -1 */
} WsDevice;

extern bool ws_device_find(const char *root, const char *directory, WsDevice *found);

/* ---- dispose.c ---- */
extern bool ws_room_is_short(int fd, Size bytes);
extern void ws_dispose(char *base, Size bytes, const WsThreads *threads);

/* ---- resident.c ---- */
extern Size ws_page_bytes(void);
extern double ws_pages_absent(const char *address, Size bytes);
extern void ws_pages_announce(const char *address, Size bytes);

/* ---- pmem.c ---- */
extern char *ws_pmem_map(const char *name, Size *bytes);
extern void ws_pmem_unmap(char *base, Size bytes);

/* ---- sigbus.c: a fault inside one of our mappings is an ERROR ---- */
typedef struct WsMapping
{
	char	   *base;
	Size		bytes;
	const char *name;			/* file's name; outlives the mapping */
	bool		table;			/* a table's file, not a temporary one */
	/* of a temporary file in several: the name of that which has this byte, and *at in it; or NULL */
	const char *(*name_at) (const struct WsMapping *mapping, Size *at);
	struct WsMapping *next;
} WsMapping;

extern void ws_sigbus_register(WsMapping *mapping);
extern void ws_sigbus_forget(WsMapping *mapping);

/* Set while a helper touches mappings: where a fault of its thread goes. */
extern __thread sigjmp_buf *ws_fault_jump;

/* After such a jump: the address that could not be read. */
extern __thread const char *ws_fault_address;

/* DETAIL of a mapped page of a temporary file that cannot be read. */
#define WS_UNREADABLE_PAGE "A page of it could not be read: " \
	"it is shorter than what was written to it, or the device failed."

/* Bytes that are enough for a place in a file, as messages name it; and for that without its offset. */
#define WS_WHERE_BYTES	96
#define WS_PART_BYTES	64

extern void ws_corrupt(const char *filename, const char *what, const char *where) __attribute__((noreturn));
extern void ws_bad_table(const char *filename) __attribute__((noreturn));

#endif							/* WS_OS_H */
