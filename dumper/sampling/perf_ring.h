/*
 * Events that the kernel reports in shared memory (perf_event_open(2)). Reading these reports requires no system call.
 * Only this module opens events that are reported in shared memory.
 *
 * A ring belongs to one thread of rbdump at a time.
 */
#ifndef RBDUMP_PERF_RING_H
#define RBDUMP_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct perf_ring {
	int fd; /* -1: none */
	struct perf_event_mmap_page *page;
	size_t bytes; /* the room for records, in bytes: a power of two */
};

/*
 * Opens a dummy event, which counts nothing. The kernel reports only what is requested in `attributes`. The event
 * excludes the kernel and the hypervisor. On failure, returns false, sets errno, and leaves `*ret` closed.
 *   attributes  the caller sets the members that say what to report, and leaves all other members zero. This function
 *               sets some of the other members
 *   tid, cpu    as in perf_event_open(2)
 *   bytes       how many bytes of records the ring has room for: a power of two, and a multiple of the page size
 */
bool perf_ring_open(struct perf_event_attr *attributes, pid_t tid, int cpu, size_t bytes, struct perf_ring *ret);

/*
 * Opens the same event as perf_ring_open(), but without shared memory, so the kernel reports nothing. Returns the
 * descriptor of the event. On failure, returns -1 and sets errno.
 */
int perf_event_open_dummy(struct perf_event_attr *attributes, pid_t tid, int cpu);

void perf_ring_close(struct perf_ring *ring); /* `ring` may already be closed */

/* A record. */
struct perf_told {
	unsigned int type; /* PERF_RECORD_...; 0: the record had an impossible size, and all records were dropped */
	unsigned int misc;
	/* the 4 bytes after the record's header, which are a pid in most record types; 0 if there are no such bytes */
	pid_t pid;
};

/* Takes the oldest record that has not been taken yet. Returns false if there is no such record. */
bool perf_ring_take(const struct perf_ring *ring, struct perf_told *ret);

/* Drops all records. */
void perf_ring_skip(struct perf_event_mmap_page *page);

/*
 * How many bytes of records the kernel has written to the ring so far. While the ring has room for records, this number
 * grows with each record.
 */
uint64_t perf_ring_head(const struct perf_event_mmap_page *page);

#endif
