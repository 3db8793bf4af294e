/*
 * The references of a T_DATA. In general, only the C code that made the object knows the object's references. rbdump
 * knows the references of three groups of objects:
 *   - objects of Ruby's own types whose structs are in the layout (data_types.h: Procs, Queues, Threads and others)
 *   - objects whose type says where the references are (RUBY_TYPED_DECL_MARKING, since 3.3)
 *   - objects without a mark function, which have no references
 * For any other T_DATA, rbdump reads the words of its memory. If a word can be the address of an object, rbdump treats
 * the word as a conservative reference. The length of this memory is known if the memory is in the slot, or is from
 * glibc's malloc(). Otherwise, only the first 32 words are read.
 *
 * Based on Ruby's sources, 1.9.3 to 4.0.5 and head: include/ruby/internal/core/rtypeddata.h (up to 2.7
 * include/ruby/ruby.h), gc.c (rb_gc_mark_children), proc.c (block_mark), vm_core.h (struct rb_block), thread_sync.c
 * (queue_mark), iseq.c (iseqw_mark), variable.c (autoload_table_mark), memory_view.c (exported_object_registry_mark).
 */
#ifndef RBDUMP_DATA_REFS_H
#define RBDUMP_DATA_REFS_H

#include "ruby/refs_walk.h"
#include "ruby/value.h"

/* Gives the references of a T_DATA (see refs_walk.h). Returns false if some references may be missing or wrong. */
bool data_refs(struct refs_walk *walk);

/*
 * Returns the address of the memory outside the slot that the caller should copy before it calls data_refs(). Returns 0
 * if there is no such memory.
 *   length  receives the length of this memory, in bytes
 */
uint64_t data_refs_outside(const struct layout *layout, const struct object_slot *slot, uint64_t flags,
			   uint64_t *length);

/* The address of the type (rb_data_type_t) of a T_DATA; 0 if the T_DATA has no type. */
uint64_t data_refs_type(const struct layout *layout, const struct object_slot *slot, uint64_t flags);

/*
 * The name of the type at an address. The C code that defines the type chooses this name. The address in the result is
 * 0 if the type has no name, if the name cannot be read, or if the name is longer than 128 bytes.
 */
struct bytes data_refs_type_name(struct access *access, uint64_t type);

#endif
