/*
 * Sampling in the kernel: a program in the kernel (stacks.bpf.c) that copies the stack of a thread at the interrupt of
 * its CPU's clock. No thread is stopped, woken or scheduled for this, and the sampled thread cannot run while its stack
 * is copied. This module loads the program, and tells it which processes and threads to sample.
 *
 * The kernel removes the program, and all that belongs to it, when the program's last descriptor is closed. So it does
 * even if rbdump is killed.
 *
 * If rbdump was built without the program (KERNEL of the Makefile), kernel_programs_load() fails, and says so.
 */
#ifndef RBDUMP_KERNEL_PROGRAMS_H
#define RBDUMP_KERNEL_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "kernel/ring.h"

struct kernel_programs;

/* Which form of the program to load. */
enum kernel_form {
	KERNEL_FORM_BEST,   /* the fastest one that the kernel accepts */
	KERNEL_FORM_COPIED, /* the one for kernels before 6.16 */
};

/*
 * Loads the program. It samples nothing yet.
 *   waits  whether the program also reports when threads leave a CPU, and when they are given one
 * Fails with EXIT_NO_PERMISSION if the kernel refuses, and with EXIT_FAILED if
 * this kernel cannot run the program.
 */
struct error *kernel_programs_load(enum kernel_form form, bool waits, struct kernel_programs **ret);
/* Checks whether the program can be loaded. Fails with the same errors as kernel_programs_load(). */
struct error *kernel_programs_try(void);
void kernel_programs_destroy(struct kernel_programs *programs); /* NULL is fine */

/*
 * From now on, the program runs `rate` times per second on each CPU that is not idle, by that CPU's clock. A CPU that
 * comes online later is not sampled.
 */
struct error *kernel_programs_begin(struct kernel_programs *programs, double rate);
/* From now on, the program does not run. */
void kernel_programs_end(struct kernel_programs *programs);

/* From now on, samples of a process go to a ring. The ring must exist as long as samples go to it. */
struct error *kernel_programs_follow(struct kernel_programs *programs, pid_t pid, const struct kernel_facts *facts,
				     const struct kernel_ring *ring);
/* Changes the facts of a process that is followed. */
struct error *kernel_programs_change(struct kernel_programs *programs, pid_t pid, const struct kernel_facts *facts);

/*
 * Tells the program the rb_thread_t of a native thread of a process that is followed. Threads of which the program was
 * not told are not sampled. False if there is no room for another thread.
 */
bool kernel_programs_set_thread(struct kernel_programs *programs, pid_t tid, uint64_t thread);
/* Sets the chance that a thread's stack is copied when the thread begins to wait, from 0 to 1; it is 1 at first. */
void kernel_programs_set_chance(struct kernel_programs *programs, pid_t tid, double chance);
/*
 * When a thread last left its CPU, by CLOCK_MONOTONIC, in ns. 0 if the thread has not left its CPU since the program
 * was told of it, or if the program does not know the thread.
 */
uint64_t kernel_programs_out_ns(const struct kernel_programs *programs, pid_t tid);
void kernel_programs_forget_thread(struct kernel_programs *programs, pid_t tid);

/* How many records of a process that is followed were lost since kernel_programs_follow(). */
struct kernel_counts kernel_programs_counts(const struct kernel_programs *programs, pid_t pid);

#endif
