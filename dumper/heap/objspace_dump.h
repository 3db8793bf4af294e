/*
 * Writes a heap in the format of Ruby's ObjectSpace.dump_all, for the tools that read this format: one line of JSON for
 * each object, with its address, type, class, value if it is a String, references, size and flags, and where it was
 * allocated, if the program records that. Roots have lines of their own. The format: ext/objspace/objspace_dump.c in
 * Ruby's sources, 2.7.0 to 3.4.9.
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
	uint64_t unknown; /* objects of which not all references are known */
	uint64_t empty;	  /* slots that something refers to and that have no object */
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
