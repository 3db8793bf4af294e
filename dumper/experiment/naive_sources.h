/*
 * Naive sources. An experiment compares naive sources with the usual sources of rbdump. Like a simple profiler, a naive
 * source does not check the stacks that it copies. Naive sources are used only in experiments.
 */
#ifndef RBDUMP_NAIVE_SOURCES_H
#define RBDUMP_NAIVE_SOURCES_H

#include "sampling/source.h"

/*
 * Reads the execution context, the frames and the values of a stack in separate system calls. If possible, rbdump makes
 * these calls on a CPU other than the CPU of the thread.
 */
extern const struct source source_unpaused_naive;

/* Like source_unpaused_naive, but reads the execution context, the frames and the values in a single system call. */
extern const struct source source_unpaused_once;

/* Stops the thread and copies its stack once. */
extern const struct source source_paused_naive;

#endif
