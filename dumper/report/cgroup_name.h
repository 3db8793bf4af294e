/*
 * Finds the name by which people know a cgroup: the name of its container or of its systemd unit.
 */
#ifndef RBDUMP_CGROUP_NAME_H
#define RBDUMP_CGROUP_NAME_H

#include <stdbool.h>

#include "base/text.h"

/*
 * Appends the name of the innermost container in the path of a cgroup. For docker, podman and Kubernetes, this name is the
 * first twelve digits of the container's id, as docker and podman print it. For LXC, appends the name of the container.
 * Returns false if the path does not name a container.
 *   cgroup  a path such as "/system.slice/docker-3f2a….scope"; NULL is fine
 */
bool cgroup_container(const char *cgroup, struct text *ret);

/*
 * Appends the name of the innermost systemd service or scope in the path of a cgroup. Returns false if the path contains
 * neither a service nor a scope.
 */
bool cgroup_unit(const char *cgroup, struct text *ret);

/*
 * Appends the name that cgroup_container() finds. If there is no container, appends the name that cgroup_unit() finds.
 * Returns false if both cgroup_container() and cgroup_unit() return false.
 */
bool cgroup_name(const char *cgroup, struct text *ret);

#endif
