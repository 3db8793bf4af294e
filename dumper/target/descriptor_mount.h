/*
 * Finds out whether the kernel can answer questions about an open file without asking a server or a program. On NFS and
 * similar file systems, even stat(2) of an open file may ask a server, and may never return.
 */
#ifndef RBDUMP_DESCRIPTOR_MOUNT_H
#define RBDUMP_DESCRIPTOR_MOUNT_H

#include <stdbool.h>
#include <sys/types.h>

#include "target/mounts.h"

/*
 * Whether the file of a descriptor is on a file system that is known to be local. Does not access the file or its file
 * system. The number of the file's mount is in fdinfo, and the kind of the mount's file system is in
 * /proc/PID/mountinfo. The mount can be in the mount namespace of the process, or in rbdump's own mount namespace.
 *   mounts    keeps the lists of mounts, so that later calls can use them again
 *   pid, tid  the thread that has the descriptor
 *   type      receives the kind of file system ("nfs4"); "" if it is not known
 */
bool descriptor_mount_is_local(struct mounts *mounts, pid_t pid, pid_t tid, int fd, char type[MOUNT_TYPE_MAX]);

#endif
