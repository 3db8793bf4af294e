/*
 * Of which kind the file system of a mount is, as /proc/PID/mountinfo says (proc(5)). A machine can have thousands of mounts,
 * so the lists are kept while one look needs them.
 *
 * A list that is kept is an open file: the kernel then tells whether the mounts have changed since it was read. While the file
 * is open, the mount namespace of the process and its root directory stay, even if the process ends.
 */
#ifndef RBDUMP_MOUNTS_H
#define RBDUMP_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The size of the name of a kind of file system, with the NUL. */
#define MOUNT_TYPE_MAX 32

/* The most lists that are kept at one time; if another one is needed, the oldest is dropped. */
#define MOUNT_LISTS_MAX 8

/* The most mounts of one list; the kernel allows 100000 unless it is told otherwise (fs.mount-max). */
#define MOUNTS_MAX 400000

struct mount;

/* The mounts that processes of one mount namespace with one root directory have. */
struct mount_list {
	char *place; /* names the namespace and the root directory */
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
 * Finds the kind of file system of a mount, among the mounts of a process, and then among those of rbdump. Reads a list only
 * if it is not kept, or if its mounts have changed since it was read. Returns false if the mount is in none of both, if they
 * cannot be read, or if there is not enough memory.
 *   pid    the process
 *   mount  the number of a mount that cannot go away now, because a file in it is open: the kernel uses numbers again
 *   type   receives the kind ("nfs4"); "" if it is not known
 */
bool mounts_find_type(struct mounts *mounts, pid_t pid, int mount, char type[MOUNT_TYPE_MAX]);

/* Closes the files, and frees the memory. */
void mounts_clear(struct mounts *mounts);

#endif
