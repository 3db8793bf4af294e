/*
 * One reading of a heap with its references. This module prepares everything that is needed to visit the objects
 * (heap_walk.h) and the roots (ruby/heap_roots.h). All code that follows references from object to object uses this module.
 *
 * The order of the calls: first heap_reading_begin(), once. Then for each reading: heap_reading_prepare(),
 * heap_reading_roots(), and heap_walk_each() for the member `walk`. heap_reading_roots() and heap_walk_each() can be called
 * in either order. Finally heap_reading_clear(), also after a failure.
 */
#ifndef RBDUMP_HEAP_READING_H
#define RBDUMP_HEAP_READING_H

#include "heap/heap_walk.h"
#include "ruby/collections.h"
#include "ruby/heap_roots.h"
#include "session/session.h"

struct heap_reading {
	const struct session *session;
	struct ruby ruby;	 /* a copy of session->ruby, but with a separate snapshot */
	struct data_files files; /* the variables of C code */
	struct heap_walk walk;
	struct heap_roots roots;
	struct collections before; /* the state of the collector before anything was read */
};

/*
 * Reads the symbols of the files that the target has mapped. This function does not read the target's memory, so call it
 * before the target is stopped. The session must exist until heap_reading_clear(). Returns false if there is not enough
 * memory.
 */
bool heap_reading_begin(const struct session *session, struct heap_reading *ret);
void heap_reading_clear(struct heap_reading *reading); /* a zeroed struct is fine */

/*
 * Prepares the walk, and allows it as many steps as the objects of the target can need (heap_open.h). Forgets what was
 * read before.
 *   runs         the target runs during the walk
 *   deadline_ns  after this time (CLOCK_MONOTONIC), no page of the heap and no large range of memory is read; 0: the
 *                deadline that heap_walk_begin() sets
 * Returns false if there is not enough memory.
 */
bool heap_reading_prepare(struct heap_reading *reading, bool runs, uint64_t deadline_ns);

/* Reads the threads and stacks, for heap_roots_each(). Returns false if there is not enough memory. */
bool heap_reading_roots(struct heap_reading *reading);

/*
 * Sets *ret to true if a collection has begun since heap_reading_prepare(), or if Ruby does not show whether one has
 * begun. If a collection has begun, references that were read can lead to slots that now contain other objects. Returns
 * false if there is not enough memory.
 */
bool heap_reading_collected(const struct heap_reading *reading, bool *ret);

/* Forgets what was read from the heap. To read the heap again, call heap_reading_prepare(). */
void heap_reading_forget(struct heap_reading *reading);

#endif
