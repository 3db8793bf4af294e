/*
 * The path of an open file of a live process, in the target's root directory, and whether the path still leads to the
 * file.
 */
#ifndef RBDUMP_DESCRIPTOR_PATH_H
#define RBDUMP_DESCRIPTOR_PATH_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/facts.h"

/*
 * Adds the facts `path` and `deleted` (descriptor.h). The kernel appends " (deleted)" to the path of a deleted file;
 * but the name of a file can end like that, too. So the link count and the path itself decide. Before Linux 5.12,
 * openat2(2) cannot look only at cached paths (RESOLVE_CACHED). So each file whose path ends with " (deleted)" counts as
 * deleted there.
 *   link    what the link in /proc/PID/fd says; begins with "/"
 *   status  of the file
 */
void descriptor_path_add(pid_t pid, const char *link, const struct statx *status, struct facts *facts);

#endif
