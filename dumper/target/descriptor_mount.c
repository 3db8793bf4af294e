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

/* `36 35 98:0 /root /mnt rw,noatime master:1 - ext4 /dev/root rw`. Blanks and newlines in names are escaped (proc(5)). */
static bool find_type(const char *path, int mount, char type[DESCRIPTOR_MOUNT_TYPE])
{
	FILE *file = fopen(path, "re");
	bool found = false;
	char *line = NULL;
	size_t size = 0;

	while (file && !found && getline(&line, &size, file) > 0) {
		const char *rest = atoi(line) == mount ? strstr(line, " - ") : NULL;

		found = rest && sscanf(rest, " - %31s", type) == 1;
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

bool descriptor_mount_is_local(pid_t pid, pid_t tid, int fd, char type[DESCRIPTOR_MOUNT_TYPE])
{
	const int mount = mount_of(pid, tid, fd);
	char path[64];

	type[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	return mount >= 0 && (find_type(path, mount, type) || find_type("/proc/self/mountinfo", mount, type)) &&
	       is_local(type);
}
