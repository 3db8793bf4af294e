/*
 * Writes a heap in the format of Ruby's ObjectSpace.dump_all, for the tools that read this format. For each object,
 * there is one line of JSON with its address, type, class, references, size and flags. The line of a String also has
 * the value of the String, if the value is ASCII and not very long. If the program records where objects are allocated,
 * the line of an object also has this place. Roots have lines of their own. The format is defined by
 * ext/objspace/objspace_dump.c in Ruby's sources, 2.7.0 to 3.4.9.
 */
#ifndef RBDUMP_OBJSPACE_DUMP_H
#define RBDUMP_OBJSPACE_DUMP_H

#include <stdio.h>

#include "heap/allocation_sites.h"
#include "heap/heap_walk.h"
#include "ruby/heap_roots.h"

/* What was written. */
struct objspace_dump {
	uint64_t objects;
	uint64_t unknown; /* objects whose references are not all known */
	uint64_t empty;	  /* slots that something refers to, but that contain no object */
};

/*
 * Writes the roots and all live objects.
 *   roots  as read by heap_roots_read()
 *   sites  where objects were allocated, if the program records that
 * After the call, the caller checks ferror(), and `late`, `incomplete`, `blind` and `no_memory` of the walk.
 */
void objspace_dump_write(struct heap_walk *walk, struct heap_roots *roots, struct allocation_sites *sites, FILE *stream,
			 struct objspace_dump *ret);

#endif
