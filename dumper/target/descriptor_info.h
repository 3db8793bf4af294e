/*
 * /proc/PID/task/TID/fdinfo/FD: position and flags of a descriptor, and more facts that depend on its kind (proc(5)).
 */
#ifndef RBDUMP_DESCRIPTOR_INFO_H
#define RBDUMP_DESCRIPTOR_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/facts.h"

/* The maximum number of bytes that are read of a fdinfo file: an epoll set has a line for each of its descriptors. */
#define DESCRIPTOR_INFO_MAX 65536

/* The maximum number of descriptors of one epoll set that are described. */
#define DESCRIPTOR_TARGETS_MAX 64

/* A descriptor that an epoll set watches. */
struct descriptor_target {
	int fd;		    /* its number when it was added to the set */
	const char *events; /* call_events() */
	uint64_t inode;	    /* 0: not known (before Linux 4.13) */
};

struct descriptor_info {
	char *text; /* the file; lines end with NUL */
	size_t length;
	bool cut; /* the file is longer than DESCRIPTOR_INFO_MAX */
	struct descriptor_target *targets;
	size_t nr_targets; /* at most DESCRIPTOR_TARGETS_MAX */
	uint64_t nr_more_targets;
};

/* Reads the file of a descriptor. Returns false with errno: ENOMEM if there is not enough memory. */
bool descriptor_info_read(pid_t pid, pid_t tid, int fd, struct descriptor_info *ret);

/* Adds the facts that the file has for a descriptor of this kind (descriptor.h), except for the targets of an epoll set. */
void descriptor_info_add(const struct descriptor_info *info, const char *kind, struct facts *facts);

/* Frees the memory. */
void descriptor_info_clear(struct descriptor_info *info);

#endif
