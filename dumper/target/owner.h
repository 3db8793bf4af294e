/*
 * Finds out to which user and to which cgroup a process belongs.
 */
#ifndef RBDUMP_OWNER_H
#define RBDUMP_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/text.h"

/*
 * Reads the real user id of a process. Returns false if there is no such process.
 *   proc  the path of procfs ("/proc"), or of a folder with the same structure
 */
bool owner_user(const char *proc, pid_t pid, uid_t *ret);

/*
 * Appends the path of a process's cgroup to `ret`, for example "/system.slice/puma.service". The path is relative to
 * rbdump's own cgroup namespace (cgroups(7)). With cgroup v1, a process has one path in each hierarchy. In this case,
 * appends the path in systemd's hierarchy (name=systemd). If there is no such hierarchy, appends the path in the v2
 * hierarchy. If there is no v2 hierarchy either, or if the path in the v2 hierarchy is "/", appends the path in the
 * first hierarchy that /proc/PID/cgroup lists. Returns false if the process has no cgroup that rbdump can read, or if
 * there is not enough memory.
 */
bool owner_cgroup(const char *proc, pid_t pid, struct text *ret);

/*
 * Whether `cgroup` is `top`, or is below `top`. `cgroup` and `top` are paths in the form that owner_cgroup() returns.
 * `top` may also begin with the folder at which cgroups are mounted (/sys/fs/cgroup), and may end with a slash.
 */
bool owner_cgroup_is_below(const char *cgroup, const char *top);

#endif
