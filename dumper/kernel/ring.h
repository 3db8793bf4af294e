/*
 * A ring of records, in memory that the kernel shares with rbdump (see kernel/bpf/ringbuf.c in the source of Linux).
 * Programs in the kernel write the records. rbdump reads the records without a system call. Only one thread of rbdump may
 * use a ring.
 */
#ifndef RBDUMP_KERNEL_RING_H
#define RBDUMP_KERNEL_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "kernel/record.h"

struct kernel_ring;

/*
 * Creates an empty ring.
 *   bytes  the size of the memory for records; must be a power of two and a multiple of the page size
 */
struct error *kernel_ring_create(size_t bytes, struct kernel_ring **ret);
void kernel_ring_destroy(struct kernel_ring *ring); /* NULL is fine */

/* Returns the file descriptor of the ring. The functions in kernel/maps.h use this descriptor. */
int kernel_ring_fd(const struct kernel_ring *ring);

/*
 * Returns the oldest record; NULL if the ring contains no record. The other bytes of the record follow the returned
 * struct. The member `kind` shows the type of the record. The record is always complete, and stays valid until
 * kernel_ring_done().
 */
const struct kernel_head *kernel_ring_next(struct kernel_ring *ring);

/*
 * Waits for at most `timeout_ms` milliseconds. The wait ends earlier in each of these cases:
 * - `end_fd` can be read, or the other end of its pipe is closed. If `end_fd` is -1, this case does not occur.
 * - A signal arrives.
 * - `for_records` is true, and the ring already contains a record when the call begins.
 * - `for_records` is true, and a record KERNEL_UNKNOWN is written to the ring.
 * - `for_records` is true, and a record that wakes rbdump is written to the ring (enum kernel_wakes).
 */
void kernel_ring_wait(const struct kernel_ring *ring, bool for_records, int end_fd, int timeout_ms);

/* Returns how many bytes of the ring the records take. Records that are still being written are counted, too. */
size_t kernel_ring_bytes(const struct kernel_ring *ring);

/* Frees the space of the record that the last call of kernel_ring_next() returned. */
void kernel_ring_done(struct kernel_ring *ring);

#endif
