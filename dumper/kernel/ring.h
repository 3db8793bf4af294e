/*
 * A ring of records, in memory that the kernel shares with rbdump. Programs in the kernel write the records. rbdump
 * reads the records without a system call (kernel/bpf/ringbuf.c). A ring belongs to one thread of rbdump.
 */
#ifndef RBDUMP_KERNEL_RING_H
#define RBDUMP_KERNEL_RING_H

#include <stddef.h>

#include "base/error.h"
#include "kernel/record.h"

struct kernel_ring;

/*
 * Creates an empty ring.
 *   bytes  the number of bytes for records: a power of two, and a multiple of the page size
 */
struct error *kernel_ring_create(size_t bytes, struct kernel_ring **ret);
void kernel_ring_destroy(struct kernel_ring *ring); /* NULL is fine */

/* The file descriptor of the ring, which the functions of kernel/programs.h use. */
int kernel_ring_fd(const struct kernel_ring *ring);

/*
 * The oldest record, with the bytes that follow it; NULL if the ring contains no record. `kind` tells the type of the
 * record. The record is always complete. Valid until kernel_ring_done().
 */
const struct kernel_head *kernel_ring_next(struct kernel_ring *ring);

/*
 * Waits for at most `timeout_ms` milliseconds. The wait ends when a record KERNEL_UNKNOWN is written to the ring. If
 * `wakes` of struct kernel_facts is set, the wait also ends when a stack is written.
 */
void kernel_ring_wait(const struct kernel_ring *ring, int timeout_ms);

/* How many bytes of records are in the ring, with those that are being written. */
size_t kernel_ring_bytes(const struct kernel_ring *ring);

/* Frees the room of the record that kernel_ring_next() returned last. */
void kernel_ring_done(struct kernel_ring *ring);

#endif
