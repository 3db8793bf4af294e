/*
 * Finds the path of an open file of a live process, as seen from the process's root directory. Also finds out whether
 * the path still leads to the file.
 */
#ifndef RBDUMP_DESCRIPTOR_PATH_H
#define RBDUMP_DESCRIPTOR_PATH_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/facts.h"

/*
 * Adds the facts `path` and `deleted` (descriptor.h). The kernel appends " (deleted)" to the path of a deleted file.
 * But the name of a file can also end with " (deleted)". So rbdump also checks the link count of the file, and whether
 * the path with " (deleted)" leads to the file. To look up this path, rbdump needs a flag of openat2(2) that limits the
 * lookup to cached paths (RESOLVE_CACHED). Kernels before Linux 5.12 lack this flag. On these kernels, rbdump treats
 * each file whose path ends with " (deleted)" as deleted.
 *   link    the contents of the link in /proc/PID/fd; these contents must begin with "/"
 *   status  the status of the file, from statx(2)
 */
void descriptor_path_add(pid_t pid, const char *link, const struct statx *status, struct facts *facts);

#endif
