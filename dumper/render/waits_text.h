/*
 * Text for people: what a thread waits for, who holds it, and which deadlocks there are.
 */
#ifndef RBDUMP_WAITS_TEXT_H
#define RBDUMP_WAITS_TEXT_H

#include <stdio.h>

#include "trace/trace.h"

/* ANSI SGR codes; empty without colour. */
struct waits_style {
	const char *reset, *bold, *bad;
};

/* Writes each deadlock, before all threads. Writes nothing if there is none. */
void waits_text_deadlocks(const struct trace *trace, const struct waits_style *style, FILE *stream);

/*
 * Writes what an entry waits for, the chain of threads and fibers that must continue before the entry can continue, and the
 * objects that the entry holds and others wait for. Writes nothing if there is nothing to say.
 *   index  of the entry in trace->threads
 */
void waits_text_entry(const struct trace *trace, size_t index, const struct waits_style *style, FILE *stream);

/*
 * The same, but only the facts that are the same in all looks for which trace_same_waits() is true. So the chain, the number
 * of those that wait, and the number of elements in a queue are omitted.
 */
void waits_text_lasting(const struct trace *trace, size_t index, const struct waits_style *style, FILE *stream);

#endif
