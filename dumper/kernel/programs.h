/*
 * Sampling in the kernel: when the clock of a CPU interrupts a thread, a program in the kernel (stacks.bpf.c) copies
 * the thread's stack. No thread of the process is stopped, woken or scheduled for a sample. The sampled thread cannot
 * run while its stack is copied. This module loads the program and runs it. The maps of the program say which processes
 * and threads to sample (maps.h).
 *
 * When the last descriptor of the program is closed, the kernel removes the program and everything that belongs to it.
 * So the program is removed even if rbdump is killed.
 *
 * If rbdump was built without the program (see KERNEL in the Makefile), kernel_programs_load() always fails, and the
 * error message gives this reason.
 */
#ifndef RBDUMP_KERNEL_PROGRAMS_H
#define RBDUMP_KERNEL_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "kernel/maps.h"

struct kernel_programs;

/* Which form of the program to load. */
enum kernel_form {
	KERNEL_FORM_BEST,   /* the fastest form that the kernel accepts */
	KERNEL_FORM_COPIED, /* the form for kernels before 6.16 */
};

/*
 * Loads the program. At first, the program samples nothing.
 *   waits  whether the program also reports when a thread leaves a CPU, and when a thread is given a CPU
 * Fails with EXIT_NO_PERMISSION if the kernel does not let rbdump sample in the kernel, and with EXIT_FAILED if this
 * kernel cannot run the program.
 */
struct error *kernel_programs_load(enum kernel_form form, bool waits, struct kernel_programs **ret);
void kernel_programs_destroy(struct kernel_programs *programs); /* NULL is fine */

/*
 * From this call on, the clock of each CPU runs the program `rate` times per second. An idle CPU does not run the
 * program. A CPU that comes online later is not sampled.
 */
struct error *kernel_programs_begin(struct kernel_programs *programs, double rate);
/* From this call on, the program no longer runs. */
void kernel_programs_end(struct kernel_programs *programs);

/* Returns the maps of the program. The maps are valid until kernel_programs_destroy(). */
struct kernel_maps kernel_programs_maps(const struct kernel_programs *programs);

#endif
