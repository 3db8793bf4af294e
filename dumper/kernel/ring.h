/*
 * A ring of records in memory that the kernel shares with rbdump: programs in the kernel write records, and rbdump reads
 * them without a system call (kernel/bpf/ringbuf.c). A ring belongs to one thread of rbdump.
 */
#ifndef RBDUMP_KERNEL_RING_H
#define RBDUMP_KERNEL_RING_H

#include <stddef.h>

#include "base/error.h"
#include "kernel/record.h"

struct kernel_ring;

/*
 * Creates an empty ring.
 *   bytes  the room for records: a power of two that is a multiple of the page size
 */
struct error *kernel_ring_create(size_t bytes, struct kernel_ring **ret);
void kernel_ring_destroy(struct kernel_ring *ring); /* NULL is fine */

/* The descriptor of the ring, for programs.h. */
int kernel_ring_fd(const struct kernel_ring *ring);

/*
 * The oldest record, with the bytes that follow it; NULL if there is none. `kind` says which type it has. The record is
 * always complete. Valid until kernel_ring_done().
 */
const struct kernel_head *kernel_ring_next(struct kernel_ring *ring);

/* Waits until there is a record that ends the wait (`wakes` of struct kernel_facts), but at most `timeout_ms`. */
void kernel_ring_wait(const struct kernel_ring *ring, int timeout_ms);

/* Frees the room of the record that kernel_ring_next() returned last. */
void kernel_ring_done(struct kernel_ring *ring);

#endif
