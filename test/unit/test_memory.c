/*-------------------------------------------------------------------------
 * test_memory.c - what made-up machines and cgroups leave for the page cache.
 *-------------------------------------------------------------------------
 */
#include "unit.h"
#include "../../src/os/memory.c"
#include "../../src/os/proc.c"

#include "madeup.h"

/* A sanitizer has a heap of its own. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#if __GLIBC_PREREQ(2, 33)
#include <malloc.h>
#define TELLS_HEAP
#endif
#endif

#define MB (INT64CONST(1024) * 1024)

/* A new machine, with memory. */
static void
start(const char *what)
{
	begin_machine(what);
	put("/proc/meminfo", "MemTotal:  8000000 kB\nMemFree: 100 kB\nMemAvailable:   4096000 kB\n");
}

static void
expect(const char *what, int64 bytes, WsMemoryBound bound)
{
	WsMemory	found;

	ws_memory_find(root, &found);
	CHECK(found.bytes == bytes && found.bound == bound, "%s: " INT64_FORMAT " by %s (wanted "
		  INT64_FORMAT ")", what, found.bytes, ws_memory_bound_name(found.bound), bytes);
}

#define V2_MOUNT "30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_MOUNT "31 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"

/* After that the heap has blocks of its own that are almost as large, as after such an array of core's. */
static void
heap_keeps(void)
{
#ifdef TELLS_HEAP
	char	   *volatile block = malloc(MB);
	bool		apart = mallinfo2().hblks > 0;

	free(block);
	if (!apart)
	{
		printf("# the heap is not glibc's, or set otherwise\n");
		return;
	}
	ws_memory_keep(4 * MB);
	block = malloc(3 * MB);
	CHECK(mallinfo2().hblks == 0, "three megabytes are of the heap then");
	free(block);
	CHECK(mallinfo2().fordblks >= 3 * MB, "which keeps them: %zu bytes", mallinfo2().fordblks);
	ws_memory_keep(PG_INT64_MAX);
	CHECK(mallinfo2().hblks == 0, "and takes no more than it may for a sort of any size");
#endif
}

static void
version_2(void)
{
	start("v2");
	put("/proc/self/mountinfo", "22 1 254:1 / / rw - ext4 /dev/vda rw\n" V2_MOUNT);
	put("/proc/self/cgroup", "0::/pod/server\n");
	expect("v2 without any file", 4000 * MB, WS_BOUND_MACHINE);
	put("/sys/fs/cgroup/pod/server/memory.max", "max\n");
	put("/sys/fs/cgroup/pod/server/memory.current", "52428800\n");
	expect("v2, max", 4000 * MB, WS_BOUND_MACHINE);
	put("/sys/fs/cgroup/pod/server/memory.max", "1073741824\n");
	expect("v2, limit less usage", 974 * MB, WS_BOUND_CGROUP);
	put("/sys/fs/cgroup/pod/server/memory.stat", "anon 100\ninactive_file 10485760\nactive_file 20971520\nfile 99\n");
	expect("v2, and file pages back", 1004 * MB, WS_BOUND_CGROUP);
	put("/sys/fs/cgroup/pod/server/memory.high", "536870912\n");
	expect("v2, memory.high", 492 * MB, WS_BOUND_CGROUP);
	put("/sys/fs/cgroup/pod/memory.max", "314572800\n");
	put("/sys/fs/cgroup/pod/memory.current", "104857600\n");
	expect("v2, the level above", 200 * MB, WS_BOUND_CGROUP);
	put("/sys/fs/cgroup/memory.max", "209715200");
	put("/sys/fs/cgroup/memory.current", "251658240");
	expect("v2, more used than allowed", 0, WS_BOUND_CGROUP);
	put("/sys/fs/cgroup/memory.max", "nonsense\n");
	put("/sys/fs/cgroup/pod/memory.max", "");
	put("/sys/fs/cgroup/pod/server/memory.max", "-5");
	put("/sys/fs/cgroup/pod/server/memory.high", "99999999999999999999999");
	expect("v2, odd figures limit nothing", 4000 * MB, WS_BOUND_MACHINE);
	put("/proc/self/cgroup", "0::/../../elsewhere\n");
	put("/sys/fs/cgroup/memory.max", "1048576000\n");
	put("/sys/fs/cgroup/memory.current", "1048576\n");
	expect("v2, a path out of the namespace", 999 * MB, WS_BOUND_CGROUP);
}

static void
version_1(void)
{
	start("v1");
	put("/proc/self/mountinfo", "29 20 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n" V1_MOUNT);
	put("/proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a/b\n0::/\n");
	put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "1048576\n");
	expect("v1 without a limit", 4000 * MB, WS_BOUND_MACHINE);
	put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1073741824\n");
	put("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1073741824\n");
	put("/sys/fs/cgroup/memory/a/memory.stat",
		"inactive_file 1\nactive_file 2\ntotal_inactive_file 104857600\ntotal_active_file 209715200\n");
	expect("v1, the level above", 300 * MB, WS_BOUND_CGROUP);
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "10485760\n");
	expect("v1, the root's, without a usage", 10 * MB, WS_BOUND_CGROUP);
}

static void
mounted_elsewhere(void)
{
	start("a container");
	put("/proc/self/mountinfo", "31 20 0:27 /docker/abc /my\\040cgroups ro - cgroup cgroup rw,memory\n");
	put("/proc/self/cgroup", "4:memory:/docker/abc/pg\n");
	put("/my cgroups/pg/memory.limit_in_bytes", "419430400\n");
	put("/my cgroups/memory.limit_in_bytes", "524288000\n");
	expect("a part of the hierarchy is mounted", 400 * MB, WS_BOUND_CGROUP);
	put("/proc/self/cgroup", "4:memory:/docker/abcdef\n");
	expect("the path is of another part", 500 * MB, WS_BOUND_CGROUP);
	put("/proc/self/cgroup", "4:memory:/docker/abc\n");
	expect("the mount is the process's own cgroup", 500 * MB, WS_BOUND_CGROUP);
	put("/proc/self/mountinfo", "nonsense\n\n1 2 - cgroup2\n31 20 0:27 - cgroup2 x rw\n");
	expect("nonsense in mountinfo", 4000 * MB, WS_BOUND_MACHINE);
}

static void
nothing_there(void)
{
	start("nothing");
	put("/proc/meminfo", "MemTotal: 8000000 kB\n");
	expect("no MemAvailable", PG_INT64_MAX, WS_BOUND_NONE);
}

static void
address_space(void)
{
	struct rlimit limit = {(rlim_t) 900 * MB, RLIM_INFINITY};
	struct rlimit before;
	char		statm[64];

	start("ulimit -v");
	snprintf(statm, sizeof(statm), "%ld 10 10\n", (long) (100 * MB / sysconf(_SC_PAGESIZE)));
	put("/proc/self/statm", statm);
	expect("no limit on address space", 4000 * MB, WS_BOUND_MACHINE);
	(void) getrlimit(RLIMIT_AS, &before);
	limit.rlim_max = before.rlim_max;
	(void) setrlimit(RLIMIT_AS, &limit);
	expect("a limit on address space", 800 * MB, WS_BOUND_ADDRESS_SPACE);
	/* a program with AddressSanitizer could start no other with so little */
	(void) setrlimit(RLIMIT_AS, &before);
}

/* Of statements that follow each other closely, the first one looks. */
static void
looks_once(void)
{
	struct rlimit limit = {(rlim_t) MB, RLIM_INFINITY};
	struct rlimit before;
	int64		first = ws_memory_once(1000000, WS_FOUND_STILL)->bytes;
	int64		soon;
	int64		later;

	(void) getrlimit(RLIMIT_AS, &before);
	limit.rlim_max = before.rlim_max;
	(void) setrlimit(RLIMIT_AS, &limit);
	soon = ws_memory_once(1000000 + WS_FOUND_STILL, WS_FOUND_STILL)->bytes;
	later = ws_memory_once(1000000 + WS_FOUND_STILL + 1, WS_FOUND_STILL)->bytes;
	(void) setrlimit(RLIMIT_AS, &before);
	CHECK(first > 0 && soon == first, "soon: " INT64_FORMAT ", first " INT64_FORMAT, soon, first);
	CHECK(later == 0, "later: " INT64_FORMAT, later);
	CHECK(ws_memory_once(1000000, WS_FOUND_STILL)->bytes > 0, "a clock that was set back");
	CHECK(ws_memory_once(0, WS_FOUND_STILL)->bytes > 0, "no statement");
}

int
main(void)
{
	heap_keeps();
	begin_machines("memory");
	version_2();
	version_1();
	mounted_elsewhere();
	nothing_there();
	address_space();
	looks_once();
	end_machines();
	return failures > 0;
}
