/*-------------------------------------------------------------------------
 * test_device.c - what made-up machines tell of the devices of directories.
 *-------------------------------------------------------------------------
 */
#include "unit.h"
#include "../../src/os/device.c"
#include "../../src/os/proc.c"

#include "madeup.h"

static void
expect(const char *directory, const char *name, const char *type, const char *kind)
{
	WsDevice	found;
	bool		told = ws_device_find(root, directory, &found);

	CHECK(told, "%s: the system tells", directory);
	if (!told)
		return;
	CHECK(strcmp(found.name, name) == 0 && strcmp(found.type, type) == 0, "%s: %s, %s (wanted %s, %s)",
		  directory, found.name, found.type, name, type);
	CHECK(found.kind == NULL ? kind == NULL : kind != NULL && strcmp(found.kind, kind) == 0,
		  "%s: %s (wanted %s)", directory, found.kind ? found.kind : "no kind", kind ? kind : "none");
}

int
main(void)
{
	WsDevice	found;
	static char many[WS_PROC_BYTES + 4096];

	begin_machines("device");
	begin_machine("nothing");
	CHECK(!ws_device_find(root, "/data", &found), "no mountinfo: nothing is told");
	put("/proc/self/mountinfo", "no line of it\n");
	CHECK(!ws_device_find(root, "/data", &found), "none that is above it: nothing is told");
	put("/proc/self/mountinfo",
		"22 1 254:1 / / rw shared:1 - ext4 /dev/vda1 rw\n"
		"23 22 259:2 / /data rw - xfs /dev/nvme0n1p2 rw\n"
		"24 22 253:0 / /data/pg\\040temp rw - xfs /dev/mapper/vg-temp rw\n"
		"25 22 0:30 / /ram rw - tmpfs tmpfs rw\n"
		"26 22 0:31 / /far rw - nfs4 server:/export rw\n"
		"27 22 259:5 / /pm rw,relatime - ext4 /dev/pmem0 rw,dax=always\n"
		"28 22 259:6 / /pm/slow rw - ext4 /dev/pmem1 rw,dax=never\n"
		"29 22 0:32 /sub /pool rw - btrfs /dev/sda3 rw\n"
		"30 22 0:33 / /union rw - overlay overlay rw\n"
		"31 22 254:2 / /twice rw - ext4 /dev/vdb rw\n"
		"32 31 0:34 / /twice rw - ramfs none rw\n");
	put("/sys/dev/block/254:1/x", "");
	put("/sys/dev/block/queue/rotational", "1\n");	/* what 254:1/.. is here */
	put("/sys/dev/block/253:0/queue/rotational", "0\n");
	put("/sys/class/block/sda3/queue/rotational", "0\n");
	put("/data/file", "");
	expect("/", "/dev/vda1", "ext4", "rotating disk");
	expect("/database", "/dev/vda1", "ext4", "rotating disk");
	expect("/data", "/dev/nvme0n1p2", "xfs", "NVMe");
	expect("/data/base/5", "/dev/nvme0n1p2", "xfs", "NVMe");
	expect("/data/pg temp/16384", "/dev/mapper/vg-temp", "xfs", "solid state");
	expect("/ram/a", "tmpfs", "tmpfs", "memory");
	expect("/far/a", "server:/export", "nfs4", "network");
	expect("/pm/a", "/dev/pmem0", "ext4", "persistent memory");
	expect("/pm/slow", "/dev/pmem1", "ext4", "persistent memory, mounted without dax");
	expect("/pool/a", "/dev/sda3", "btrfs", "solid state");
	expect("/union", "overlay", "overlay", NULL);
	expect("/twice/a", "none", "ramfs", "memory");
	many[0] = '\0';
	for (Size used = 0; used < WS_PROC_BYTES; used += strlen(many + used))
		snprintf(many + used, sizeof(many) - used, "40 22 0:50 / /many/%zu rw - overlay overlay rw\n", used);
	CHECK(ws_device_find(root, "/data", &found) && found.free_bytes >= 0, "the room of a directory that is there");
	CHECK(ws_device_find(root, "/nowhere", &found) && found.free_bytes == -1, "and of none");
	put("/proc/self/mountinfo", many);
	CHECK(!ws_device_find(root, "/data", &found), "so many mounts that some are not seen: nothing is told");
	end_machines();
	return failures > 0;
}
