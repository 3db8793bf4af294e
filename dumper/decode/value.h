/*
 * Ruby objects: types, Strings, Arrays. Facts: include/ruby/internal/core/{rbasic,rstring,rarray}.h and
 * internal/imemo.h, 3.0.0 to 4.0.5 and head; 1.9.3 to 2.7.8, include/ruby/ruby.h and internal.h.
 *
 * All functions read through `access`; what they give is meaningless once access->failed is set.
 */
#ifndef RBDUMP_VALUE_H
#define RBDUMP_VALUE_H

#include "vm/access.h"

/* A run of bytes in the target. `address` 0: there is none (nil). */
struct bytes {
	uint64_t address;
	uint64_t length;
};

/* Longest String that is taken for a label, a path or a name; a longer one fails the read. */
#define VALUE_STRING_MAX (64u * 1024)

/* Whether a VALUE can be a pointer to an object at all; says nothing of what is there. */
static inline bool value_is_object(uint64_t value)
{
	return value >= MEMORY_PAGE && value % 8 == 0;
}

/*
 * The object that `value` points to, or the one that compaction has moved it to (gc.c: T_MOVED, RMoved.destination).
 * A `value` that is no object fails the read.
 */
uint64_t value_object(struct access *access, uint64_t value);

/* RBasic.flags of an object, and the RUBY_T_ type in it. */
uint64_t value_flags(struct access *access, uint64_t object);
uint64_t value_type(struct access *access, uint64_t object);

/* What a T_DATA is for: its C struct (DATA_PTR). Anything else fails the read. */
uint64_t value_data(struct access *access, uint64_t value);

/* The enum imemo_type in the flags of a T_IMEMO. */
uint64_t value_imemo_type(const struct layout *layout, uint64_t flags);
/* Whether an object is an imemo of that type. There are none until 2.2. */
bool value_is_imemo(struct access *access, uint64_t object, enum layout_enumerator_id imemo_type);

/* The bytes of a String. Anything else, nil included, fails the read. */
struct bytes value_string(struct access *access, uint64_t value);

/* Number of elements of an Array, and the address of the first. Anything else fails the read. */
uint64_t value_array(struct access *access, uint64_t value, uint64_t *elements);

/* Whether the bytes in the target are just these. False too if they cannot be read. */
bool value_bytes_are(struct access *access, struct bytes bytes, const char *expected);

/* Whether they begin with these. False too if they cannot be read. */
bool value_bytes_begin(struct access *access, struct bytes bytes, const char *expected);

#endif
