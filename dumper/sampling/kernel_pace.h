/*
 * How rbdump waits for the records that a program in the kernel writes: either each stack wakes rbdump, or rbdump looks
 * for records now and then. A wake-up costs the sampled thread more than the copy of its stack does. But the names of a
 * new stack must be read soon, before a garbage collection can move what they are read from. So a stack wakes rbdump
 * only if new stacks were seen shortly before, or if there are few stacks. Stacks that are in the stack cache need no
 * reading of names.
 */
#ifndef RBDUMP_KERNEL_PACE_H
#define RBDUMP_KERNEL_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The highest rate at which each stack may wake rbdump. At higher rates, so many wake-ups would delay the target too
 * much.
 */
#define KERNEL_RATE_WAKES 1000.0

struct kernel_pace {
	double rate;		 /* how many times per second the clock interrupts each CPU */
	size_t ring_bytes;	 /* the size of the ring of records */
	uint64_t new_until_ns;	 /* until then, each stack wakes rbdump, because a new stack was seen */
	uint64_t asked_until_ns; /* until then, each stack wakes rbdump, because of kernel_pace_ask() */
	int wait_ms;		 /* how long to wait if no stack wakes rbdump */
	bool idle;		 /* there were no records lately, so the target does not run */
	bool calm;		 /* there were few stacks lately */
};

/* Initializes the struct. At first, each stack wakes rbdump, unless the rate is above 1,000 samples per second. */
void kernel_pace_init(struct kernel_pace *pace, double rate, size_t ring_bytes, uint64_t now_ns);

/* Tells the pace that a stack was taken whose names must be read. */
void kernel_pace_new_stack(struct kernel_pace *pace, uint64_t now_ns);

/* Tells the pace that names are read too late. For the next ten seconds, each stack wakes rbdump, at any rate. */
void kernel_pace_ask(struct kernel_pace *pace, uint64_t now_ns);

/* Tells the pace how many bytes of records were in the ring after a wait without wake-ups. */
void kernel_pace_found(struct kernel_pace *pace, size_t bytes);

/*
 * Tells the pace what was taken in the last `seconds` seconds: the number of records, and the number of stacks in these
 * records.
 */
void kernel_pace_flushed(struct kernel_pace *pace, size_t records, size_t stacks, double seconds);

/* Whether each stack should wake rbdump. */
bool kernel_pace_wakes(const struct kernel_pace *pace, uint64_t now_ns);

/* Returns how long to wait for records, in milliseconds. `wakes` is the result of kernel_pace_wakes(). */
int kernel_pace_wait_ms(const struct kernel_pace *pace, bool wakes);

#endif
