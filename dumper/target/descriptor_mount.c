#include "target/descriptor_mount.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What no server and no program is asked for. Of any other kind it is not known. */
static const char *const local_types[] = {
    "ext2",	  "ext3",     "ext4",  "xfs",	 "btrfs",    "bcachefs", "f2fs",      "zfs",
    "jfs",	  "reiserfs", "vfat",  "exfat",	 "ntfs3",    "iso9660",	 "udf",	      "squashfs",
    "erofs",	  "overlay",  "tmpfs", "ramfs",	 "rootfs",   "devtmpfs", "devpts",    "hugetlbfs",
    "mqueue",	  "proc",     "sysfs", "cgroup", "cgroup2",  "nsfs",	 "debugfs",   "tracefs",
    "securityfs", "configfs", "bpf",   "pstore", "efivarfs", "fusectl",	 "selinuxfs", "binfmt_misc",
};

static bool is_local(const char *type)
{
	for (size_t i = 0; i < sizeof(local_types) / sizeof(local_types[0]); i++)
		if (strcmp(local_types[i], type) == 0)
			return true;
	return false;
}

/* The number of the mount of a descriptor; -1 if it is not known. */
static int mount_of(pid_t pid, pid_t tid, int fd)
{
	char path[64], line[256];
	int mount = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fdinfo/%d", pid, tid, fd);
	file = fopen(path, "re");
	while (file && mount < 0 && fgets(line, sizeof(line), file))
		if (strncmp(line, "mnt_id:", 7) == 0)
			mount = atoi(line + 7);
	if (file)
		fclose(file);
	return mount;
}

bool descriptor_mount_is_local(struct mounts *mounts, pid_t pid, pid_t tid, int fd, char type[MOUNT_TYPE_MAX])
{
	const int mount = mount_of(pid, tid, fd);

	type[0] = '\0';
	return mount >= 0 && mounts_find_type(mounts, pid, mount, type) && is_local(type);
}
