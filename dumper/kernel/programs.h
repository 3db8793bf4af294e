/*
 * Sampling in the kernel: when the clock of a CPU interrupts a thread, a program in the kernel (stacks.bpf.c) copies
 * the thread's stack. No thread is stopped, woken or scheduled for a sample. The sampled thread cannot run while its
 * stack is copied. This module loads the program, and tells the program which processes and threads to sample.
 *
 * When the last descriptor of the program is closed, the kernel removes the program and everything that belongs to it.
 * So the program is removed even if rbdump is killed.
 *
 * If rbdump was built without the program (see KERNEL in the Makefile), kernel_programs_load() fails with an error that
 * says so.
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
	KERNEL_FORM_BEST,   /* the fastest form that the kernel accepts */
	KERNEL_FORM_COPIED, /* the form for kernels before 6.16 */
};

/*
 * Loads the program. At first, the program samples nothing.
 *   waits  whether the program also reports when a thread leaves a CPU, and when a thread is given a CPU
 * Fails with EXIT_NO_PERMISSION if the kernel refuses, and with EXIT_FAILED if this kernel cannot run the program.
 */
struct error *kernel_programs_load(enum kernel_form form, bool waits, struct kernel_programs **ret);
/* Checks whether the program can be loaded. Fails with the same errors as kernel_programs_load(). */
struct error *kernel_programs_try(void);
void kernel_programs_destroy(struct kernel_programs *programs); /* NULL is fine */

/*
 * From this call on, the clock of each CPU runs the program `rate` times per second. An idle CPU does not run the
 * program. A CPU that comes online later is not sampled.
 */
struct error *kernel_programs_begin(struct kernel_programs *programs, double rate);
/* From this call on, the program no longer runs. */
void kernel_programs_end(struct kernel_programs *programs);

/*
 * From this call on, the program writes the samples of a process to a ring. The ring must exist as long as the program
 * writes to it.
 */
struct error *kernel_programs_follow(struct kernel_programs *programs, pid_t pid, const struct kernel_facts *facts,
				     const struct kernel_ring *ring);
/* Replaces the facts of a process. Call kernel_programs_follow() for the process first. */
struct error *kernel_programs_change(struct kernel_programs *programs, pid_t pid, const struct kernel_facts *facts);

/*
 * Tells the program which rb_thread_t a native thread has. Before this call, call kernel_programs_follow() for the
 * thread's process. The program samples a thread only after this function was called for the thread. Returns false if
 * the program has no room for another thread.
 */
bool kernel_programs_set_thread(struct kernel_programs *programs, pid_t tid, uint64_t thread);
/*
 * Sets the probability, from 0 to 1, that a thread's stack is copied when the thread begins to wait. At first, the
 * probability is 1.
 */
void kernel_programs_set_chance(struct kernel_programs *programs, pid_t tid, double chance);
/* What the program knows about a thread. All members are 0 if the program does not know the thread. */
struct kernel_thread kernel_programs_thread(const struct kernel_programs *programs, pid_t tid);
void kernel_programs_forget_thread(struct kernel_programs *programs, pid_t tid);

/* How many records of a process have been lost since kernel_programs_follow() was called for the process. */
struct kernel_counts kernel_programs_counts(const struct kernel_programs *programs, pid_t pid);

#endif
