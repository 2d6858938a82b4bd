/*-------------------------------------------------------------------------
 * device.c - what a directory's files are kept on, as far as the system tells.
 *
 * For wiscsort.status(): a DBA who looks there wants to know whether sorts write to the disk that was meant.
 * The last of the longest mount points that the directory is below has it (/proc/self/mountinfo), and the
 * queue of its block device says whether it turns (/sys/dev/block).  Virtual disks say of themselves what
 * their host has chosen, mostly that they turn.
 *
 * Plain system calls, no memory but the stack's, no errors raised.
 *-------------------------------------------------------------------------
 */
#include "os/os.h"

#include "os/proc.h"

#include <sys/statvfs.h>

static bool
is_one_of(const char *word, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

/* Is a directory the mount point, or below it? */
static bool
is_below(const char *directory, const char *point)
{
	Size		length = strcmp(point, "/") == 0 ? 0 : strlen(point);

	return strncmp(directory, point, length) == 0 && (directory[length] == '/' || directory[length] == '\0');
}

/* A number in a file of a block device, or of the disk that it is a partition of; or -1. */
static int
number_in(const char *root, const char *device, const char *file)
{
	static const char *const places[] = {"", "/.."};
	char		name[MAXPGPATH];
	char		text[WS_PROC_BYTES];

	for (int i = 0; i < (int) lengthof(places); i++)
	{
		snprintf(name, sizeof(name), "%s%s/%s", device, places[i], file);
		if (ws_proc_read(root, name, text))
			return atoi(text);
	}
	return -1;
}

/* In words, or NULL. */
static const char *
kind_of(const char *root, const WsMount *mount)
{
	static const char *const memories[] = {"tmpfs", "ramfs", NULL};
	static const char *const networks[] = {"nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "lustre", "9p",
	NULL};
	static const char *const direct[] = {"dax", "dax=always", NULL};
	const char *name = strrchr(mount->source, '/');
	char		device[MAXPGPATH];
	int			turns;

	name = name != NULL ? name + 1 : mount->source;
	if (is_one_of(mount->type, memories))
		return "memory";
	if (is_one_of(mount->type, networks))
		return "network";
	for (int i = 0; direct[i] != NULL; i++)
		if (ws_list_has(mount->options, direct[i]) || ws_list_has(mount->super_options, direct[i]))
			return "persistent memory";
	if (strncmp(name, "pmem", 4) == 0)
		return "persistent memory, mounted without dax";
	if (strncmp(name, "nvme", 4) == 0)
		return "NVMe";
	/* file systems over several devices have a number of their own, 0:n */
	if (strncmp(mount->device, "0:", 2) == 0)
		snprintf(device, sizeof(device), "/sys/class/block/%s", name);
	else
		snprintf(device, sizeof(device), "/sys/dev/block/%s", mount->device);
	turns = number_in(root, device, "queue/rotational");
	return turns < 0 ? NULL : turns > 0 ? "rotating disk" : "solid state";
}

/*
 * Sets *found to what the files of a directory are kept on.  The directory's name is absolute and has no
 * symbolic link in it.  `root` is put in front of the names of all files that are read: "" but for tests.
 * False if the system does not tell.
 */
bool
ws_device_find(const char *root, const char *directory, WsDevice *found)
{
	char		text[WS_PROC_BYTES];
	char		path[2 * MAXPGPATH];
	char	   *rest = text;
	char	   *line;
	WsMount		best = {.type = NULL};
	struct statvfs room;

	/* of so many mounts that they are cut off, one that is missing might be the one */
	if (!ws_proc_read(root, "/proc/self/mountinfo", text) || strlen(text) == WS_PROC_BYTES - 1)
		return false;
	while ((line = strsep(&rest, "\n")) != NULL)
	{
		WsMount		mount;

		if (ws_mount_parse(line, &mount) && is_below(directory, mount.point) &&
			(best.type == NULL || strlen(mount.point) >= strlen(best.point)))
			best = mount;
	}
	if (best.type == NULL)
		return false;
	snprintf(found->name, sizeof(found->name), "%s", best.source);
	snprintf(found->type, sizeof(found->type), "%s", best.type);
	found->kind = kind_of(root, &best);
	snprintf(path, sizeof(path), "%s%s", root, directory);
	found->free_bytes = statvfs(path, &room) == 0 ? (int64) room.f_bavail * (int64) room.f_frsize : -1;
	return true;
}
