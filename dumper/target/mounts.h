/*
 * Finds the kind of a mount's file system in /proc/PID/mountinfo (proc(5)). A machine can have thousands of mounts, so
 * the lists of mounts are kept for later calls.
 *
 * While a list is kept, its mountinfo file stays open, because the open file shows whether the mounts have changed
 * since the list was read (poll(2)). While the file is open, the mount namespace of the process and its root directory
 * continue to exist, even if the process ends.
 */
#ifndef RBDUMP_MOUNTS_H
#define RBDUMP_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The maximum size of the name of a kind of file system, including the NUL. */
#define MOUNT_TYPE_MAX 32

/* The maximum number of lists that are kept at one time. If another list is needed, the oldest list is dropped. */
#define MOUNT_LISTS_MAX 8

/* The maximum number of mounts in one list. By default, the kernel allows 100000 mounts (fs.mount-max). */
#define MOUNTS_MAX 400000

struct mount;

/* The mounts of all processes that have the same mount namespace and the same root directory. */
struct mount_list {
	char *place; /* identifies the namespace and the root directory */
	int file;    /* the open mountinfo */
	struct mount *mounts;
	size_t count; /* sorted by number */
};

/* A zeroed struct has no lists yet. To close the files and free the memory, call mounts_clear(). */
struct mounts {
	struct mount_list lists[MOUNT_LISTS_MAX];
	size_t count, next;
};

/*
 * Finds the kind of file system of a mount. Searches the mounts of the process `pid` first, and then the mounts of
 * rbdump. Reads a list only if the list is not kept, or if the mounts have changed since the list was read. Returns
 * false if the mount is in neither list, if the lists cannot be read, or if there is not enough memory.
 *   pid    the process
 *   mount  the number of the mount. A file in the mount must stay open during the call. Otherwise, the mount could go
 *          away, and the kernel could give its number to another mount
 *   type   receives the kind ("nfs4"); "" if it is not known
 */
bool mounts_find_type(struct mounts *mounts, pid_t pid, int mount, char type[MOUNT_TYPE_MAX]);

/* Closes the files, and frees the memory. */
void mounts_clear(struct mounts *mounts);

#endif
