/*
 * Naive sources, which an experiment compares with rbdump's own sources. Naive sources read stacks as a simple profiler
 * does, and do not check their copies. They are used only in experiments.
 */
#ifndef RBDUMP_NAIVE_SOURCES_H
#define RBDUMP_NAIVE_SOURCES_H

#include "sampling/source.h"

/*
 * Reads the execution context, the frames and the values of a stack in separate system calls. If possible, rbdump makes
 * these calls on a CPU on which the thread is not running.
 */
extern const struct source source_unpaused_naive;

/* Like source_unpaused_naive, but reads the execution context, the frames and the values in a single system call. */
extern const struct source source_unpaused_once;

/* Stops the thread and copies its stack once. */
extern const struct source source_paused_naive;

#endif
