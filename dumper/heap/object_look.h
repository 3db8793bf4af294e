/*
 * What is known about one object of a heap: the object itself, its references, and what refers to it. The functions
 * below write these facts as text or as JSON.
 */
#ifndef RBDUMP_OBJECT_LOOK_H
#define RBDUMP_OBJECT_LOOK_H

#include <stdio.h>

#include "base/text.h"
#include "heap/allocation_sites.h"
#include "heap/heap_reading.h"
#include "heap/kinds.h"
#include "heap/options.h"

/* The maximum number of references that are kept in each direction: from the object, and to the object. */
#define OBJECT_LOOK_MAX ((size_t)1 << 24)

/* A reference from one object to another. */
struct object_edge {
	uint64_t from;
	struct object_ref ref;
};

/* A list of references that were found. */
struct object_edges {
	struct object_edge *of;
	size_t count, capacity;
	uint64_t found; /* how many references were found; greater than `count` if not all were kept */
	size_t limit;
	bool no_memory;
};

struct object_look {
	const struct target_options *target;
	uint64_t address; /* of the object */
	size_t limit;	  /* at most this many references in each direction, and this many roots, are kept */
	bool json;
	bool found;
	/* What is known about the object itself. */
	struct census_kind kind;
	uint64_t flags, slot_size, owned;
	bool size_known, refs_known, dead, shady, pinned;
	struct text value; /* what the `inspect` of its class would write (ruby/inspect.h); empty if not known */
	struct object_edges out, in;
	uint64_t from; /* the object whose references are being visited */
	struct heap_reading reading;
	struct allocation_sites *sites;
	struct heap_root *held_by; /* the roots that refer to the object, at most `limit` */
	size_t nr_held_by, held_by_capacity;
	uint64_t nr_roots; /* how many roots refer to the object */
	bool roots_known, no_memory;
};

/*
 * The two functions below write what is known. They read names from the target while they write. The caller checks the
 * stream for errors.
 */
void object_look_text(struct object_look *look, FILE *stream);
/* object_look_json() fails if there is not enough memory. */
struct error *object_look_json(struct object_look *look, FILE *stream);

#endif
