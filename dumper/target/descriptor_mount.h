/*
 * Whether a question about an open file can be answered by this machine alone. On NFS and the like, even stat(2) of an
 * open file may ask a server, and never return.
 */
#ifndef RBDUMP_DESCRIPTOR_MOUNT_H
#define RBDUMP_DESCRIPTOR_MOUNT_H

#include <stdbool.h>
#include <sys/types.h>

#include "target/mounts.h"

/*
 * Whether a descriptor leads to a file system that is known to be local. Asks neither the file nor its file system: the
 * number of the mount is in fdinfo, and the kind of its file system in /proc/PID/mountinfo. The mount can be in the
 * mount namespace of the process, or in rbdump's own.
 *   mounts    keeps the lists of mounts for the next question
 *   pid, tid  the thread whose descriptor it is
 *   type      receives the kind of file system ("nfs4"); "" if it is not known
 */
bool descriptor_mount_is_local(struct mounts *mounts, pid_t pid, pid_t tid, int fd, char type[MOUNT_TYPE_MAX]);

#endif
