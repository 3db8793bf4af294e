/*
 * The names of the types of objects. Based on Ruby's sources, 1.9.3 to 4.0.5 and head:
 * include/ruby/internal/value_type.h (up to 2.7: include/ruby/ruby.h), internal/imemo.h (up to 2.6: internal.h), gc.c
 * (type_name).
 */
#ifndef RBDUMP_OBJECT_TYPE_H
#define RBDUMP_OBJECT_TYPE_H

#include <stdint.h>

#include "layout/layout.h"

/*
 * The name of a type, for example "T_STRING". Returns NULL if this Ruby has no such type.
 *   type  the RUBY_T_ type, from the flags of an object
 */
const char *object_type_name(const struct layout *layout, uint64_t type);

/* Returns a constant string that is equal to `name`, the name of a type; "?" if no type has that name. */
const char *object_type_constant(const char *name);

/*
 * The name of a kind of internal object, for example "imemo_iseq". Returns NULL if this Ruby has no such kind.
 *   imemo  the enum imemo_type, from the flags of a T_IMEMO
 */
const char *object_imemo_name(const struct layout *layout, uint64_t imemo);

#endif
