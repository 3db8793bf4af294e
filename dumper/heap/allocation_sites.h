/*
 * Finds out where objects were allocated. This is possible only if the program records it, either with
 * ObjectSpace.trace_object_allocations_start, or with another method of the extension objspace.
 *
 * The extension keeps its records in structs of its own. No layout contains these structs: they are not in the file that
 * contains Ruby, but in objspace.so, and distributions ship objspace.so without debug info. So rbdump recognises these
 * structs by their content:
 *   - A variable of objspace.so points to a struct traceobj_arg. After its first word, this struct has one or two
 *     TracePoints. (In Ruby up to 2.5, it has no TracePoint if the program has stopped recording.) The next two words point
 *     to two st_tables: the table of the objects, whose keys are addresses of slots, and the table of the texts.
 *   - For each object, the table of the objects contains the address of a struct allocation_info. The words of this struct
 *     have the same order in all releases that have the struct. Nevertheless, rbdump checks each word before it uses the
 *     word: a path and the name of a class must be keys of the table of the texts, a method must be a Symbol or nil, and the
 *     generation must not be greater than the number of collections so far.
 * If a record does not pass these checks, rbdump does not return the record, but only counts it. So if a later release of the
 * extension changes its structs, rbdump finds no records, or refuses all of them.
 *
 * If the program has stopped recording, the records stay as they were. So the record of a slot can belong to an earlier
 * object in this slot. Ruby's own dump shows such records. rbdump leaves such a record out if the earlier object had another
 * type than the object that is in the slot now.
 *
 * Based on Ruby's sources, ext/objspace/object_tracing.c and objspace.h, v2_1_0 to v4_0_5 and head.
 */
#ifndef RBDUMP_ALLOCATION_SITES_H
#define RBDUMP_ALLOCATION_SITES_H

#include "heap/heap_walk.h"
#include "ruby/heap_root.h"

/* What was recorded when an object was allocated. The texts are UTF-8 (base/text.h). */
struct allocation_site {
	const char *path;	/* NULL: no path was recorded, because no Ruby code was running */
	int64_t line;		/* 0 if it is not known */
	const char *method;	/* NULL if it is not known */
	const char *class_path; /* the name of the method's class; NULL if there is no such name */
	uint64_t generation;	/* how many collections had begun when the object was allocated */
};

struct allocation_sites;

/*
 * Finds the records, and finds out which objects have a record. Returns NULL if there is not enough memory.
 *   walk   must exist until allocation_sites_destroy()
 *   files  as read by data_files_read()
 */
struct allocation_sites *allocation_sites_create(const struct heap_walk *walk, const struct data_files *files);
void allocation_sites_destroy(struct allocation_sites *sites); /* NULL is fine */

/*
 * Reads the record of an object. The function is fast if it is called for objects in the order of their addresses. Returns
 * false if the object has no record, if its record does not pass the checks, or if the record belongs to an earlier object of
 * another type.
 *   flags  RBasic.flags of the object
 *   ret    the texts are valid until the next call
 */
bool allocation_sites_find(struct allocation_sites *sites, uint64_t object, uint64_t flags,
			   struct allocation_site *ret);

/* How many records were left out so far: each belongs to an earlier object that was in the slot and had another type. */
uint64_t allocation_sites_of_others(const struct allocation_sites *sites);

/*
 * How many records rbdump has refused so far: they could not be read, or they do not pass the checks, for example because the
 * program changed them while rbdump read them.
 */
uint64_t allocation_sites_refused(const struct allocation_sites *sites);

/* Whether records are missing, because part of a table could not be read. */
bool allocation_sites_are_incomplete(const struct allocation_sites *sites);

#endif
