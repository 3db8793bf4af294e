/*
 * Text for people: what a thread waits for, who holds it, and which deadlocks there are.
 */
#ifndef RBDUMP_WAITS_TEXT_H
#define RBDUMP_WAITS_TEXT_H

#include <stdio.h>

#include "trace/trace.h"

/* ANSI SGR codes; if the output has no colours, empty strings. */
struct waits_style {
	const char *reset, *bold, *bad;
};

/* Writes the deadlocks. In the output, they come before the threads. Writes nothing if there are no deadlocks. */
void waits_text_deadlocks(const struct trace *trace, const struct waits_style *style, FILE *stream);

/*
 * Writes what a thread or fiber (an entry) waits for. Also writes the chain of threads and fibers that must continue before
 * the entry can continue. Also writes each object that the entry holds, if other threads or fibers wait for this object.
 * Writes nothing if there is nothing to say.
 *   index  the index of the entry in trace->threads
 */
void waits_text_entry(const struct trace *trace, size_t index, const struct waits_style *style, FILE *stream);

/*
 * Like waits_text_entry(), but writes only the facts that trace_same_waits() compares. If trace_same_waits() returns
 * true for several looks, these facts are the same in all of these looks. Other facts can differ, so they are omitted:
 * the chain, the number of threads and fibers that wait for an object, and the number of elements in a queue.
 */
void waits_text_lasting(const struct trace *trace, size_t index, const struct waits_style *style, FILE *stream);

#endif
