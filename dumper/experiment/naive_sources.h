/*
 * Naive sources, which an experiment compares with rbdump's own sources. Naive sources read stacks as a simple profiler
 * does, and do not check their copies. They are used only in experiments.
 */
#ifndef RBDUMP_NAIVE_SOURCES_H
#define RBDUMP_NAIVE_SOURCES_H

#include "sampling/source.h"

/* Reads execution context, frames and values in separate system calls, from a CPU other than the thread's. */
extern const struct source source_unpaused_naive;

/* Reads execution context, frames and values in a single system call, from a CPU other than the thread's. */
extern const struct source source_unpaused_once;

/* Stops the thread and copies its stack once. */
extern const struct source source_paused_naive;

#endif
