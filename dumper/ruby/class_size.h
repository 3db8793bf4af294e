/*
 * The memory that classes and modules own outside their slots: tables of methods, constants and variables. Based on
 * Ruby's sources, 2.4.0 to 4.0.5 and head: gc.c (obj_memsize_of, cc_table_memsize), id_table.c (rb_id_table_memsize),
 * internal/class.h, shape.h.
 */
#ifndef RBDUMP_CLASS_SIZE_H
#define RBDUMP_CLASS_SIZE_H

#include "ruby/access.h"

/*
 * Computes how many bytes a class or a module owns outside its slot.
 *   flags  RBasic.flags of the class
 *   shape  the address of the shape of the class; 0 if it is not known, or if this Ruby has no shapes
 *   steps  how many entries of tables may still be read; the function subtracts the number of entries that it reads
 * Returns false if the number of bytes is not known.
 */
bool class_size(struct access *access, uint64_t klass, uint64_t flags, uint64_t shape, uint64_t *steps, uint64_t *ret);

/* Like class_size(), but for a T_ICLASS (an included module). */
bool class_included_size(struct access *access, uint64_t iclass, uint64_t flags, uint64_t *steps, uint64_t *ret);

#endif
