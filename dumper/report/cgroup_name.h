/*
 * The names by which people know a cgroup: the container or the systemd unit that it belongs to.
 */
#ifndef RBDUMP_CGROUP_NAME_H
#define RBDUMP_CGROUP_NAME_H

#include <stdbool.h>

#include "base/text.h"

/*
 * Appends the name of the innermost container of a cgroup: the first twelve digits of its id, as docker, podman and
 * Kubernetes print it, or the name of an LXC container. Returns false if the path names no container.
 *   cgroup  a path such as "/system.slice/docker-3f2a….scope"; NULL is fine
 */
bool cgroup_container(const char *cgroup, struct text *ret);

/* Appends the name of the innermost systemd service or scope of a cgroup. Returns false if the path names none. */
bool cgroup_unit(const char *cgroup, struct text *ret);

/* Appends the container, or else the unit. Returns false if the path names neither. */
bool cgroup_name(const char *cgroup, struct text *ret);

#endif
