/*
 * What the kernel tells of as it happens, in memory that it shares with rbdump (perf_event_open(2)): to take it is no
 * system call. The one place that opens such events.
 *
 * A ring belongs to one thread of rbdump at a time.
 */
#ifndef RBDUMP_PERF_RING_H
#define RBDUMP_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct perf_ring {
	int fd; /* -1: none */
	struct perf_event_mmap_page *page;
	size_t bytes; /* for records: a power of two */
};

/*
 * Opens an event that counts nothing, and tells of what `attributes` ask for, of user space. False with errno, and
 * `ret` has none.
 *   attributes  zero but for what is to be told; the rest is set here
 *   tid, cpu    as perf_event_open(2) has them
 *   bytes       for records: a power of two, and whole pages
 */
bool perf_ring_open(struct perf_event_attr *attributes, pid_t tid, int cpu, size_t bytes, struct perf_ring *ret);

/* Such an event without memory: it tells nobody. Returns its descriptor, or -1 with errno. */
int perf_event_open_dummy(struct perf_event_attr *attributes, pid_t tid, int cpu);

void perf_ring_close(struct perf_ring *ring); /* one that has none is fine */

/* A record. */
struct perf_told {
	unsigned int type; /* PERF_RECORD_...; 0: what follows could not be told, and is dropped */
	unsigned int misc;
	pid_t pid; /* its first word, which of most types is the process; 0 if it has none */
};

/* Takes the oldest record that was not taken yet. False if there is none. */
bool perf_ring_take(const struct perf_ring *ring, struct perf_told *ret);

/* Drops all that there are. */
void perf_ring_skip(struct perf_event_mmap_page *page);

#endif
