/*-------------------------------------------------------------------------
 * memory.c - how much memory there is for the page cache of this process.
 *
 * effective_cache_size is what the administrator says of the machine.  Its default
 * of 4 GB is wrong on every small server and in most containers, and a sort whose rows
 * do not stay in the page cache waits for the disk at every row.  So what the
 * system says is looked up as well:
 *
 *	machine		MemAvailable of /proc/meminfo
 *	cgroups		of the process's memory cgroup and all above it, v1 and v2:
 *				limit - usage + file pages, which the system drops when it needs room
 *	process		what RLIMIT_AS (ulimit -v) leaves, since files are mapped
 *
 * The least of these counts.  A file that is missing, unreadable or odd limits nothing.
 * Cgroups are looked for where /proc/self/mountinfo says that they are mounted, under
 * the path of /proc/self/cgroup as far as it lies within the mount.
 *
 * Plain system calls, no memory but the stack's, no errors raised.  Some 0.1 ms.
 *-------------------------------------------------------------------------
 */
#include "os/os.h"

#include "os/proc.h"

#include <sys/resource.h>
#include <unistd.h>

#define UNLIMITED		PG_INT64_MAX

/* Larger blocks change nothing in glibc (DEFAULT_MMAP_THRESHOLD_MAX, 32 MB, with a header). */
#define LARGEST_KEPT	((Size) 32 * 1024 * 1024 - 8192)

/* The number behind a word that begins a line, or -1. */
static int64
number_of(const char *text, const char *word)
{
	Size		length = strlen(word);

	for (const char *line = text; line != NULL; line = strchr(line, '\n'))
	{
		line += *line == '\n';
		if (strncmp(line, word, length) == 0 && (line[length] == ' ' || line[length] == '\t'))
			return strtoll(line + length, NULL, 10);
	}
	return -1;
}

/* The number in a file of a cgroup; UNLIMITED for "max", and for whatever is no number. */
static int64
limit_of(const char *root, const char *group, const char *file)
{
	char		name[MAXPGPATH];
	char		text[WS_PROC_BYTES];
	char	   *end;
	int64		limit;

	snprintf(name, sizeof(name), "%s/%s", group, file);
	if (!ws_proc_read(root, name, text))
		return UNLIMITED;
	errno = 0;
	limit = strtoll(text, &end, 10);
	return end == text || limit < 0 || errno != 0 ? UNLIMITED : limit;
}

/* What one cgroup leaves, in bytes. */
static int64
left_by(const char *root, const char *group, bool v2)
{
	char		name[MAXPGPATH];
	char		stat[WS_PROC_BYTES];
	int64		limit = limit_of(root, group, v2 ? "memory.max" : "memory.limit_in_bytes");
	int64		usage = limit_of(root, group, v2 ? "memory.current" : "memory.usage_in_bytes");
	int64		files = 0;

	if (v2)
	{
		int64		high = limit_of(root, group, "memory.high");

		limit = Min(limit, high);
	}
	/* v1 writes "none" as a number of pages, which no machine has */
	if (limit >= PG_INT64_MAX / 2)
		return UNLIMITED;
	snprintf(name, sizeof(name), "%s/memory.stat", group);
	if (ws_proc_read(root, name, stat))
	{
		int64		inactive = number_of(stat, v2 ? "inactive_file" : "total_inactive_file");
		int64		active = number_of(stat, v2 ? "active_file" : "total_active_file");

		files = Max(0, inactive) + Max(0, active);
	}
	if (usage == UNLIMITED)
		return limit;
	return Max(0, limit - usage + Min(files, usage));
}

/* Takes a figure that is less than what was found so far. */
static void
take_least(WsMemory *found, int64 bytes, WsMemoryBound bound)
{
	if (bytes >= found->bytes)
		return;
	found->bytes = bytes;
	found->bound = bound;
}

/* Looks at a cgroup, whose name begins with its mount point, and at all above it. */
static void
look_upwards(const char *root, char *group, Size mount_length, bool v2, WsMemory *found)
{
	for (;;)
	{
		char	   *slash;

		take_least(found, left_by(root, group, v2), WS_BOUND_CGROUP);
		slash = strrchr(group, '/');
		if (strlen(group) <= mount_length || slash == NULL || slash < group + mount_length)
			return;
		*slash = '\0';
	}
}

/* The process's path in the hierarchy of v2, or of v1's memory controller. */
static bool
own_path(const char *root, bool v2, char *path)
{
	char		text[WS_PROC_BYTES];
	char	   *rest = text;
	char	   *line;

	if (!ws_proc_read(root, "/proc/self/cgroup", text))
		return false;
	while ((line = strsep(&rest, "\n")) != NULL)
	{
		char	   *controllers = strchr(line, ':');
		char	   *name = controllers != NULL ? strchr(controllers + 1, ':') : NULL;

		if (name == NULL)
			continue;
		*controllers++ = '\0';
		*name++ = '\0';
		if (v2 ? *controllers != '\0' : !ws_list_has(controllers, "memory"))
			continue;
		snprintf(path, MAXPGPATH, "%s", name);
		return true;
	}
	return false;
}

/* Looks at the cgroups of one line of /proc/self/mountinfo, if it mounts any. */
static void
look_at_mount(const char *root, char *line, WsMemory *found)
{
	char		path[MAXPGPATH];
	char		group[2 * MAXPGPATH];
	WsMount		mount;
	Size		length;
	bool		v2;

	if (!ws_mount_parse(line, &mount))
		return;
	v2 = strcmp(mount.type, "cgroup2") == 0;
	if (!v2 && (strcmp(mount.type, "cgroup") != 0 || !ws_list_has(mount.super_options, "memory")))
		return;
	if (!own_path(root, v2, path))
		return;

	/* the part of the path below what is mounted; none if it leads elsewhere */
	length = strcmp(mount.root, "/") == 0 ? 0 : strlen(mount.root);
	if (strncmp(path, mount.root, length) != 0 ||
		(path[length] != '/' && path[length] != '\0') || strstr(path, "/..") != NULL)
		path[length = 0] = '\0';
	if (strcmp(path + length, "/") == 0)
		path[length] = '\0';
	snprintf(group, sizeof(group), "%s%s", mount.point, path + length);
	look_upwards(root, group, strlen(mount.point), v2, found);
}

/* What the limit on the process's address space leaves. */
static int64
address_space_left(const char *root)
{
	char		text[WS_PROC_BYTES];
	struct rlimit limit;
	int64		used;

	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
		!ws_proc_read(root, "/proc/self/statm", text))
		return UNLIMITED;
	if (limit.rlim_cur > (rlim_t) PG_INT64_MAX)
		return UNLIMITED;
	used = strtoll(text, NULL, 10) * sysconf(_SC_PAGESIZE);
	return Max(0, (int64) limit.rlim_cur - used);
}

/*
 * Sets *found to the bytes that the page cache can come to have for files of this process,
 * and to what bounds them.  `root` is put in front of the names of all files that are read: "" but
 * for tests.  Without any bound, `bytes` is PG_INT64_MAX.
 */
void
ws_memory_find(const char *root, WsMemory *found)
{
	char		text[WS_PROC_BYTES];
	char	   *rest = text;
	char	   *line;
	int64		machine;

	found->bytes = UNLIMITED;
	found->bound = WS_BOUND_NONE;
	machine = ws_proc_read(root, "/proc/meminfo", text) ? number_of(text, "MemAvailable:") : -1;
	if (machine >= 0)
		take_least(found, machine * 1024, WS_BOUND_MACHINE);
	take_least(found, address_space_left(root), WS_BOUND_ADDRESS_SPACE);
	if (!ws_proc_read(root, "/proc/self/mountinfo", text))
		return;
	while ((line = strsep(&rest, "\n")) != NULL)
		look_at_mount(root, line, found);
}

/*
 * What ws_memory_find finds, looked up only where `now`, in microseconds, is later than the last look by more
 * than `still`: thousands of sorts a second may be executed, by one statement or by many, each of so little,
 * or only be thought of by the planner, that looking would take a fourth of their time.  Not the beginning of
 * the statement: a procedure may sort for hours.  Always looked up at 0.  Valid until the next call.
 */
const WsMemory *
ws_memory_once(int64 now, int64 still)
{
	static WsMemory found;
	static int64 looked_up = 0;

	if (looked_up == 0 || now < looked_up || now - looked_up > still)
	{
		ws_memory_find("", &found);
		looked_up = now;
	}
	return &found;
}

/* What bounds it, in words for EXPLAIN. */
const char *
ws_memory_bound_name(WsMemoryBound bound)
{
	switch (bound)
	{
		case WS_BOUND_MACHINE:
			return "memory available";
		case WS_BOUND_CGROUP:
			return "memory cgroup";
		case WS_BOUND_ADDRESS_SPACE:
			return "limit on address space";
		case WS_BOUND_NONE:
			break;
	}
	return "effective_cache_size";
}

/*
 * Has the C library's heap keep up to twice so many bytes that are given back to it, as after core's sort,
 * whose arrays pass through it.  glibc keeps what the largest block that it has freed had (M_TRIM_THRESHOLD),
 * 128 kB at first; and the small sort of each group's values above a big sort would have its pages made anew
 * for each (docs/decisions/30-cost-model.md).  No page is touched.  Once for each size.
 */
void
ws_memory_keep(Size bytes)
{
#ifdef __GLIBC__
	static Size kept = 0;
	void	   *volatile block; /* or the compiler does without both calls */

	if (bytes <= kept)
		return;
	kept = bytes;
	block = malloc(Min(bytes, LARGEST_KEPT));
	free(block);
#endif
}
