/*
 * Opens a target to read its heap.
 */
#ifndef RBDUMP_HEAP_OPEN_H
#define RBDUMP_HEAP_OPEN_H

#include <stdio.h>

#include "heap/heap_walk.h"
#include "heap/options.h"
#include "session/session.h"

/*
 * Opens the process or the core. The caller closes it with session_close(). Fails, among other reasons, if the heap
 * cannot be read because the layout lacks a fact that is needed, or because the garbage collector is not Ruby's own.
 */
struct error *heap_open(const struct target_options *from, struct session **ret);

/* Fails if the process has ended, or is ending: its memory may be gone. Never fails for a core. */
struct error *heap_open_check_alive(const struct session *session, const struct target_options *from);

/*
 * If the layout is for another release, prints a message that says so.
 *   prefix  printed before the message
 */
void heap_open_print_nearest(const struct session *session, const char *prefix, FILE *stream);

/*
 * An upper bound for the bytes that all objects of the target own together. Objects do not share the memory that they
 * own, so the bound is the number of bytes that the target has mapped, plus 512 MiB for memory that the target maps
 * while its heap is read. The bound is at most OBJECT_OWNED_MAX.
 */
uint64_t heap_open_most_bytes(const struct target *target);

/*
 * Sets the limits of a walk: how many bytes an object can own, and how many steps the walk can take. Both limits are
 * computed from heap_open_most_bytes().
 */
void heap_open_limit(const struct target *target, struct heap_walk *walk);

#endif
