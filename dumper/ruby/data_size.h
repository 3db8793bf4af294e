/*
 * The memory that a T_DATA owns outside its slot. In general, only the C code that made the object knows how many bytes this
 * memory has. But the structs of a few of Ruby's own types are in the layout: Procs, Bindings, Mutexes, Queues, Threads (with
 * their VM stacks), and the tables of autoload. For an object of these types, rbdump computes the same number of bytes as
 * Ruby itself.
 *
 * Based on Ruby's sources, 1.9.3 to 4.0.5: gc.c (rb_objspace_data_type_memsize), proc.c (proc_memsize, binding_memsize),
 * thread_sync.c (mutex_memsize, queue_memsize, szqueue_memsize; up to 2.2 thread.c), vm.c (thread_memsize), variable.c
 * (autoload_table_memsize, up to 3.1 autoload_memsize).
 */
#ifndef RBDUMP_DATA_SIZE_H
#define RBDUMP_DATA_SIZE_H

#include "ruby/access.h"
#include "ruby/data_types.h"

/*
 * Computes how many bytes a T_DATA owns outside its slot.
 *   lasting  for reading the type, which does not change
 *   access   for reading the struct
 *   ret      receives the number; if the exact number is not known, only the known bytes are counted
 * Returns whether the number is exact. Sets access->failed if memory cannot be read.
 */
bool data_size(struct data_types *types, struct memory *lasting, struct access *access, const struct object_slot *slot,
	       uint64_t flags, uint64_t *ret);

/*
 * Returns the address of the memory that data_size() will read outside the slot. Returns 0 if there is no such memory,
 * or if the type of the T_DATA is not kept (see data_types_kept()).
 *   length  receives the length of this memory, in bytes
 */
uint64_t data_size_wants(const struct data_types *types, const struct layout *layout, const struct object_slot *slot,
			 uint64_t flags, uint64_t *length);

#endif
