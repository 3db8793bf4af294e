/*
 * Decides how rbdump waits for the records that a program in the kernel writes, and when rbdump flushes time lines.
 * Either the program wakes rbdump when the program has copied a stack, or rbdump looks for records at intervals. A
 * wake-up costs the sampled thread more time than the copy of a stack does. But the names of a new stack must be read
 * soon, before a garbage collection begins. A stack is new if it is not in the stack cache (stack_cache.h). The program
 * wakes rbdump for each stack if three conditions are true: the sampling rate is at most KERNEL_RATE_WAKES, rbdump has
 * found a new stack in the last 0.1 s, and a collection had begun in the five seconds before this new stack. The
 * program also wakes rbdump for each stack for ten seconds after a call of kernel_pace_ask(). In all other cases, it
 * depends on the number of stacks. If there are few stacks, the program wakes rbdump only for the stacks of running
 * threads. If there are many stacks, the program does not wake rbdump at all.
 */
#ifndef RBDUMP_KERNEL_PACE_H
#define RBDUMP_KERNEL_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/record.h"

/*
 * The highest sampling rate at which the program wakes rbdump because of new stacks. At higher rates, the wake-ups
 * would delay the target too much.
 */
#define KERNEL_RATE_WAKES 1000.0

struct kernel_pace {
	double rate;		 /* how many times per second the clock interrupts each CPU */
	size_t ring_bytes;	 /* the size of the ring that contains the records */
	uint64_t collections;	 /* how many garbage collections had begun when the last stack was copied */
	uint64_t collected_ns;	 /* when `collections` last changed */
	uint64_t new_until_ns;	 /* after a new stack was found: until this time, every stack wakes rbdump */
	uint64_t asked_until_ns; /* after kernel_pace_ask(): until this time, every stack wakes rbdump */
	int wait_ms;		 /* the interval at which rbdump looks for records while the program does not wake it */
	size_t bytes;		 /* how many bytes of records were found since the last kernel_pace_flushed() */
	bool idle;		 /* there were no records lately, so the target seems not to run */
	bool calm;		 /* there were few stacks lately */
};

/* Initializes `pace`. If `rate` is at most KERNEL_RATE_WAKES, the program at first wakes rbdump for each stack. */
void kernel_pace_init(struct kernel_pace *pace, double rate, size_t ring_bytes, uint64_t now_ns);

/*
 * Notes how many garbage collections had begun when a stack was copied. The caller passes 0 if this number is not
 * known.
 */
void kernel_pace_collections(struct kernel_pace *pace, uint64_t collections, uint64_t now_ns);

/* Notes that rbdump has taken a new stack, so the names for this stack must be read. */
void kernel_pace_new_stack(struct kernel_pace *pace, uint64_t now_ns);

/*
 * Notes that rbdump reads names too late. For the next ten seconds, the program wakes rbdump for each stack, even if
 * the sampling rate is above KERNEL_RATE_WAKES.
 */
void kernel_pace_ask(struct kernel_pace *pace, uint64_t now_ns);

/* Notes how many bytes of records were in the ring when rbdump looked for records. */
void kernel_pace_found(struct kernel_pace *pace, size_t bytes);

/*
 * Notes how many records were taken in the last `seconds` seconds. Of these records, `clock_stacks` records are of the
 * kind KERNEL_CLOCK, and `wait_stacks` records are of the kind KERNEL_WAIT_STACK.
 */
void kernel_pace_flushed(struct kernel_pace *pace, size_t records, size_t clock_stacks, size_t wait_stacks,
			 double seconds);

/*
 * Returns when the next flush of time lines is due, after a flush at `now_ns`. The time between two flushes is random:
 * from 0.1 to 0.2 s. A flush assigns the time since the last clock interrupt to the stack of this interrupt, and not to
 * the stack of the next interrupt (time_line.h). So if all flushes were at the same point of a loop in the target, this
 * time would always be assigned to the same methods.
 *   random  the state of the random number generator (base/random.h)
 */
uint64_t kernel_pace_next_flush(uint64_t now_ns, uint64_t *random);

/* Returns for which records the program must wake rbdump. */
enum kernel_wakes kernel_pace_wakes(const struct kernel_pace *pace, uint64_t now_ns);

/*
 * Returns how long to wait for records, in milliseconds.
 *   wakes     the result of kernel_pace_wakes()
 *   until_ns  a time by CLOCK_MONOTONIC: the wait must end soon after this time. 0: there is no such time
 */
int kernel_pace_wait_ms(const struct kernel_pace *pace, enum kernel_wakes wakes, uint64_t now_ns, uint64_t until_ns);

#endif
