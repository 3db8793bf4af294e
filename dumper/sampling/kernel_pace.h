/*
 * Decides how rbdump waits for the records that a program in the kernel writes. There are two ways. Either the program
 * wakes rbdump for each stack, or rbdump looks for records at intervals. A wake-up takes more of the sampled thread's
 * time than the copy of a stack. But the names of a new stack must be read soon, because a garbage collection may
 * begin. So the program wakes rbdump for each stack if a stack was new a moment ago, and a collection has begun lately.
 * A stack is new if it is not in the stack cache (stack_cache.h). In all other cases, if there are few stacks, the
 * program wakes rbdump only for the stacks of running threads.
 */
#ifndef RBDUMP_KERNEL_PACE_H
#define RBDUMP_KERNEL_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/record.h"

/*
 * The highest rate at which the program wakes rbdump because of new stacks. At higher rates, the wake-ups would delay
 * the target too much.
 */
#define KERNEL_RATE_WAKES 1000.0

struct kernel_pace {
	double rate;		 /* how many times per second the clock interrupts each CPU */
	size_t ring_bytes;	 /* the size of the ring of records */
	uint64_t collections;	 /* how many garbage collections had begun at the last stack */
	uint64_t collected_ns;	 /* when this number changed */
	uint64_t new_until_ns;	 /* until then, the program wakes rbdump because of a new stack */
	uint64_t asked_until_ns; /* until then, it does so because of kernel_pace_ask() */
	int wait_ms;		 /* how often rbdump looks for records, if the program does not wake it */
	size_t bytes;		 /* of records that were in the ring since kernel_pace_flushed() */
	bool idle;		 /* there were no records lately, so the target does not run */
	bool calm;		 /* there were few stacks lately */
};

/* Initializes the struct. At first, the program wakes rbdump for each stack, unless the rate exceeds KERNEL_RATE_WAKES. */
void kernel_pace_init(struct kernel_pace *pace, double rate, size_t ring_bytes, uint64_t now_ns);

/* Notes how many garbage collections had begun when a stack was copied; 0: not known. */
void kernel_pace_collections(struct kernel_pace *pace, uint64_t collections, uint64_t now_ns);

/* Notes that a new stack was taken, whose names must be read. */
void kernel_pace_new_stack(struct kernel_pace *pace, uint64_t now_ns);

/*
 * Notes that names are read too late. For the next ten seconds, the program wakes rbdump for each stack, even if the
 * sampling rate is above KERNEL_RATE_WAKES.
 */
void kernel_pace_ask(struct kernel_pace *pace, uint64_t now_ns);

/* Notes how many bytes of records were in the ring when rbdump looked for records. */
void kernel_pace_found(struct kernel_pace *pace, size_t bytes);

/*
 * Notes how many records were taken in the last `seconds`, and how many of these records are of the kinds KERNEL_CLOCK
 * and KERNEL_WAIT_STACK.
 */
void kernel_pace_flushed(struct kernel_pace *pace, size_t records, size_t clock_stacks, size_t wait_stacks,
			 double seconds);

/* Returns which records must wake rbdump. */
enum kernel_wakes kernel_pace_wakes(const struct kernel_pace *pace, uint64_t now_ns);

/* Returns how long to wait for records, in milliseconds. `wakes` is the result of kernel_pace_wakes(). */
int kernel_pace_wait_ms(const struct kernel_pace *pace, enum kernel_wakes wakes);

#endif
