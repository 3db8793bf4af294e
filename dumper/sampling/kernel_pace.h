/*
 * How rbdump waits for the records that a program in the kernel writes: either each stack wakes rbdump, or rbdump looks
 * for records now and then. A wake-up costs the sampled thread more than the copy of its stack does. But the names of a
 * new stack must be read soon, before a garbage collection can move the objects that contain these names. So stacks
 * wake rbdump only after new stacks were seen, or if there are few stacks. If a stack is in the stack cache, its names
 * need not be read.
 */
#ifndef RBDUMP_KERNEL_PACE_H
#define RBDUMP_KERNEL_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The highest rate at which each stack may wake rbdump. At higher rates, this would delay the target too much. */
#define KERNEL_RATE_WAKES 1000.0

struct kernel_pace {
	double rate;		 /* how many times per second the clock interrupts each CPU */
	size_t ring_bytes;	 /* the size of the ring of records */
	uint64_t new_until_ns;	 /* a new stack was seen less than a moment before this time */
	uint64_t asked_until_ns; /* kernel_pace_ask() was called less than ten seconds before this time */
	int wait_ms;		 /* how long to wait if no stack wakes rbdump */
	bool idle;		 /* there were no records lately, so the target does not run */
	bool calm;		 /* there were few stacks lately */
};

/* Initializes the struct. At first, each stack wakes rbdump if the rate is at most 1,000 samples per second. */
void kernel_pace_init(struct kernel_pace *pace, double rate, size_t ring_bytes, uint64_t now_ns);

/* Tells `pace` that a stack was taken, and that the names for this stack must be read. */
void kernel_pace_new_stack(struct kernel_pace *pace, uint64_t now_ns);

/*
 * Tells `pace` that names are read too late. For the next ten seconds, each stack wakes rbdump, even if the rate is
 * high.
 */
void kernel_pace_ask(struct kernel_pace *pace, uint64_t now_ns);

/* Tells the pace how many bytes of records were in the ring after a wait without wake-ups. */
void kernel_pace_found(struct kernel_pace *pace, size_t bytes);

/* Tells the pace how many records, and how many of them with stacks, were taken in the last `seconds`. */
void kernel_pace_flushed(struct kernel_pace *pace, size_t records, size_t stacks, double seconds);

/* Whether each stack is to wake rbdump. */
bool kernel_pace_wakes(const struct kernel_pace *pace, uint64_t now_ns);

/* Returns how long to wait for records, in milliseconds. `wakes` is the result of kernel_pace_wakes(). */
int kernel_pace_wait_ms(const struct kernel_pace *pace, bool wakes);

#endif
