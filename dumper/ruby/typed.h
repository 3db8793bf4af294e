/*
 * T_DATA objects: objects of Ruby that have a C struct, such as Mutex, Thread::Queue and Thread. The type of the struct
 * is an rb_data_type_t, which has a name (for example "mutex").
 *
 * Based on Ruby's sources, 1.9.3 to 4.0.5 and head: include/ruby/internal/core/rtypeddata.h (rbimpl_rtypeddata_p,
 * TYPED_DATA_EMBEDDED), include/ruby/ruby.h.
 */
#ifndef RBDUMP_TYPED_H
#define RBDUMP_TYPED_H

#include "ruby/ruby.h"

struct typed {
	uint64_t object; /* address of the object */
	uint64_t type;	 /* address of the rb_data_type_t; 0: the object is an RData, which has no type */
	uint64_t data;	 /* address of the struct */
	bool embedded;	 /* the struct is in the object's slot */
};

/*
 * Finds the type and the struct of a T_DATA, from the words of its slot.
 *   object      address of the slot
 *   flags       RBasic.flags
 *   type        RTypedData.type
 *   typed_flag  RTypedData.typed_flag; not used if this Ruby has no such member
 *   typed_data, plain_data  RTypedData.data and RData.data
 */
struct typed typed_decode(const struct layout *layout, uint64_t object, uint64_t flags, uint64_t type,
			  uint64_t typed_flag, uint64_t typed_data, uint64_t plain_data);

/*
 * Reads the object to which `value` points. Returns false if `value` is not a T_DATA with a type, or if the object
 * cannot be read. If compaction has moved the object, `ret->object` is its new address.
 */
bool typed_read(const struct ruby *ruby, uint64_t value, struct typed *ret);

/*
 * Whether the type has the given name. The name must have at most 31 bytes. Reads the type's name as data that lasts
 * (MEMORY_LASTS; see memory_reads()).
 */
bool typed_is(const struct ruby *ruby, const struct typed *typed, const char *name);

#endif
