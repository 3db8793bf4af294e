/*
 * The references of an object: which other objects it keeps alive. These are the references that Ruby's collector marks
 * (ObjectSpace.reachable_objects_from).
 *
 * Based on Ruby's sources, 2.1.0 to 4.0.5 and head: gc.c (gc_mark_children; since 3.4: rb_gc_mark_children), imemo.c
 * (rb_imemo_mark_and_move; up to 3.3: gc.c, gc_mark_imemo), iseq.c (rb_iseq_mark_and_move; up to 3.2: rb_iseq_mark).
 */
#ifndef RBDUMP_OBJECT_REFS_H
#define RBDUMP_OBJECT_REFS_H

#include "ruby/refs_walk.h"

/*
 * Reads the data that is needed to find the references of objects. Returns false if there is not enough memory. The
 * caller frees `ret` with object_refs_clear(). Until then, `ruby` and ruby->memory must stay valid.
 */
bool object_refs_read(const struct ruby *ruby, struct object_refs *ret);
void object_refs_clear(struct object_refs *refs);

/*
 * Calls `visit` for each reference of an object.
 *   access  for reading the structs outside the slot
 * Returns whether all references are known. A reference is not known if only C code knows it (data_refs.h), if the layout
 * lacks a member, if a struct cannot be read or has impossible values, or if the object would need more steps than one
 * object may take.
 */
bool object_refs_each(struct object_refs *refs, struct access *access, const struct object_slot *slot,
		      object_ref_visit *visit, void *context);

/* Memory is copied in advance in two rounds: first structs, and then the entries of tables to which these structs lead. */
enum refs_round { REFS_STRUCTS, REFS_ENTRIES, REFS_ROUNDS };

/*
 * Returns the address of memory that object_refs_each() will read outside the slot, and the length of this memory in bytes.
 * Returns 0 if there is no such memory in this round, or if its address is not known. The caller can copy this memory for
 * many objects at once. Memory that is not copied in advance is copied when it is read.
 *   access  for reading the memory that was copied in the previous round
 */
uint64_t object_refs_wants(struct object_refs *refs, struct access *access, const struct object_slot *slot,
			   enum refs_round round, uint64_t *length);

#endif
