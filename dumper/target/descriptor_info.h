/*
 * Reads /proc/PID/task/TID/fdinfo/FD (proc(5)): the position and flags of a descriptor, and facts that depend on its
 * kind.
 */
#ifndef RBDUMP_DESCRIPTOR_INFO_H
#define RBDUMP_DESCRIPTOR_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/facts.h"

/*
 * The maximum number of bytes that are read from an fdinfo file. The fdinfo file of an epoll set has a line for each
 * descriptor that the set watches.
 */
#define DESCRIPTOR_INFO_MAX 65536

/* The maximum number of descriptors that are described for one epoll set. */
#define DESCRIPTOR_TARGETS_MAX 64

/* A descriptor that an epoll set watches. */
struct descriptor_target {
	int fd;		    /* the descriptor's number when it was added to the set */
	const char *events; /* call_events() */
	uint64_t inode;	    /* the inode number of the watched file; 0: not known (before Linux 4.13) */
};

struct descriptor_info {
	char *text; /* the contents of the file; each line ends with NUL */
	size_t length;
	bool cut; /* the file is longer than DESCRIPTOR_INFO_MAX */
	struct descriptor_target *targets;
	size_t nr_targets; /* at most DESCRIPTOR_TARGETS_MAX */
	uint64_t nr_more_targets;
};

/*
 * Reads the fdinfo file of a descriptor. On failure, returns false and sets errno: ENOMEM if there is not enough memory.
 */
bool descriptor_info_read(pid_t pid, pid_t tid, int fd, struct descriptor_info *ret);

/*
 * Takes from the fdinfo file the facts that apply to a descriptor of the kind `kind` (descriptor.h), and adds them to
 * `facts`. Does not add the targets of an epoll set.
 */
void descriptor_info_add(const struct descriptor_info *info, const char *kind, struct facts *facts);

/* Frees the memory. */
void descriptor_info_clear(struct descriptor_info *info);

#endif
