/*
 * Where objects were allocated, if the program records that: with ObjectSpace.trace_object_allocations_start, or with
 * another method of the extension objspace.
 *
 * The extension keeps its records in structs of its own. No layout has these structs: they are not in the file that
 * contains Ruby, and distributions ship objspace.so without debug info. So rbdump recognises them by what is in them:
 *   - A variable of objspace.so points to a struct traceobj_arg. This struct begins with TracePoints (one or two, or
 *     none any more). Behind them are two st_tables: the table of the objects, whose keys are addresses of slots, and the
 *     table of the texts.
 *   - The table of the objects leads to a struct allocation_info for each object. Its words have had the same order in
 *     each release that has it. Nevertheless, each one is checked before it is used: a path and the name of a class are
 *     keys of the table of texts, a method is a Symbol or nil, and the generation is not later than now.
 * A record that does not pass these checks is not returned, but only counted. So if the extension changes its structs, no
 * records are found, or all are refused.
 *
 * If the program has stopped recording, the records stay as they were. So, as in Ruby's own dump, a record can be of an
 * earlier object in the same slot. rbdump leaves the record out if the earlier object was of another type.
 *
 * Based on Ruby's sources, ext/objspace/object_tracing.c and objspace.h, v2_1_0 to v4_0_5 and head.
 */
#ifndef RBDUMP_ALLOCATION_SITES_H
#define RBDUMP_ALLOCATION_SITES_H

#include "heap/heap_walk.h"
#include "ruby/heap_root.h"

/* What was recorded when an object was allocated. The texts are UTF-8 (base/text.h). */
struct allocation_site {
	const char *path;	/* NULL if it is not known: no Ruby code was running */
	int64_t line;		/* 0 if it is not known */
	const char *method;	/* NULL if it is not known */
	const char *class_path; /* the name of the method's class; NULL if it has none */
	uint64_t generation;	/* how many collections had begun */
};

struct allocation_sites;

/*
 * Finds the records, and reads which objects have one. Returns NULL if there is not enough memory.
 *   walk   the caller keeps it until allocation_sites_destroy()
 *   files  as read by data_files_read()
 */
struct allocation_sites *allocation_sites_create(const struct heap_walk *walk, const struct data_files *files);
void allocation_sites_destroy(struct allocation_sites *sites); /* NULL is fine */

/*
 * Reads the record of an object. This is fast if objects are asked for in the order of their addresses. Returns false if
 * the object has no record, or if its record does not pass the checks.
 *   flags  RBasic.flags of the object
 *   ret    the texts are valid until the next call
 */
bool allocation_sites_find(struct allocation_sites *sites, uint64_t object, uint64_t flags,
			   struct allocation_site *ret);

/* How many records were left out until now because they are of an earlier object in the slot, of another type. */
uint64_t allocation_sites_of_others(const struct allocation_sites *sites);

/*
 * How many records could not be used until now: because they do not pass the checks, or because the program has changed
 * them meanwhile.
 */
uint64_t allocation_sites_refused(const struct allocation_sites *sites);

/* Whether a table could not be read as a whole, so that records are missing. */
bool allocation_sites_are_incomplete(const struct allocation_sites *sites);

#endif
