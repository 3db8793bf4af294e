/*
 * The memory that an object owns outside its slot, for example the bytes of a long String. rbdump computes the same
 * number as Ruby's own ObjectSpace.memsize_of, minus the size of the slot. The numbers of older Rubies differ from
 * rbdump's in details. Up to 2.4, Ruby counts nothing for internal objects. Also up to 2.4, for an Array whose elements
 * other Arrays share, Ruby uses the number of these other Arrays instead of the number of elements. For the terminator of
 * a String, 1.9.3 counts nothing, and 2.0 counts one byte. For the groups of a MatchData, 1.9.3 counts nothing.
 *
 * Memory that belongs to several objects is counted only for the object that frees it. For example, a String that
 * shares the bytes of another String owns nothing.
 *
 * Based on Ruby's sources, 1.9.3 to 4.0.5: gc.c (obj_memsize_of), up to 2.0 ext/objspace/objspace.c (memsize_of);
 * string.c (rb_str_memsize), array.c (rb_ary_memsize), st.c (st_memsize), regcomp.c (onig_memsize), io.c
 * (rb_io_memsize), variable.c (rb_generic_ivar_memsize), imemo.c (rb_imemo_memsize).
 */
#ifndef RBDUMP_OBJECT_SIZE_H
#define RBDUMP_OBJECT_SIZE_H

#include "ruby/data_types.h"
#include "ruby/ivars.h"
#include "ruby/object_slot.h"
#include "ruby/ruby.h"
#include "ruby/steps.h"

/* How the size of an object is computed. This depends on the object's type. */
enum object_size_kind {
	SIZE_NOTHING, /* the object owns nothing */
	SIZE_UNKNOWN, /* T_NODE, up to 2.4: only some T_NODEs own memory (gc.c, obj_free) */
	SIZE_STRING,
	SIZE_ARRAY,
	SIZE_OBJECT,
	SIZE_IMEMO,
	SIZE_STRUCT,
	SIZE_BIGNUM,
	SIZE_CLASS,
	SIZE_ICLASS,
	/* The sizes of the following kinds depend on a struct outside the slot: see object_size_wants(). */
	SIZE_HASH,
	SIZE_REGEXP,
	SIZE_MATCH,
	SIZE_FILE,
	SIZE_DATA,
};

/* The data that is needed to compute the sizes of the objects of one Ruby. */
struct object_sizes {
	const struct layout *layout;
	uint8_t kinds[OBJECT_TYPES]; /* for each RUBY_T_ type: its enum object_size_kind */
	struct ivars ivars;
	struct data_types types;
	uint64_t owned_max; /* a larger number of bytes must be wrong; the caller can set a smaller limit */
	/*
	 * How many entries of tables may still be read. The caller can set this member again, for example for each page
	 * of the heap.
	 */
	struct steps steps;
};

/* More bytes than any object owns: a larger number must be wrong. */
#define OBJECT_OWNED_MAX (UINT64_C(1) << 46)

/*
 * The arguments for steps_begin(). OBJECT_SIZE_NEEDED steps are enough for all objects of one page of the heap together.
 * OBJECT_SIZE_FEW steps are enough for most single objects.
 */
#define OBJECT_SIZE_NEEDED 65536u
#define OBJECT_SIZE_FEW	   256u

/*
 * Reads the data that is needed to compute the sizes of objects. Returns false if there is not enough memory. The
 * caller frees `ret` with object_sizes_clear(). Until then, ruby->memory must stay valid.
 */
bool object_sizes_read(const struct ruby *ruby, struct object_sizes *ret);
void object_sizes_clear(struct object_sizes *sizes);

/*
 * Some sizes depend on a struct outside the slot. Returns the address of that struct, and its length in bytes. Returns 0
 * if no struct is needed. The caller can copy many such structs at once, before it calls object_size().
 */
uint64_t object_size_wants(const struct object_sizes *sizes, const struct object_slot *slot, uint64_t *length);

/* Whether object_size_wants() can return an address other than 0 for objects of the given type (a RUBY_T_ type). */
static inline bool object_size_may_want(const struct object_sizes *sizes, uint64_t type)
{
	return sizes->kinds[type % OBJECT_TYPES] >= SIZE_HASH;
}

/*
 * Whether the flags of an object (RBasic.flags) show that the object owns nothing outside its slot. This is true for most
 * objects. If the result is true, object_size() computes 0 bytes, and object_size_wants() returns 0.
 */
bool object_size_is_nothing(struct object_sizes *sizes, uint64_t flags);

/*
 * Computes how many bytes an object owns outside its slot.
 *   access  for reading the structs outside the slot
 *   owned   receives the number of bytes, at most sizes->owned_max. If the exact number is not known, only the known bytes
 *           are counted
 * Returns whether the number is exact. It is not exact in these cases, and in a few others:
 *   - The object is a T_DATA whose memory is known only to the C code that made the object (data_size.h). Most T_DATAs are
 *     such objects.
 *   - The object is code, and the target runs Ruby 2.6 or older.
 *   - The object is a class, and the target runs Ruby 2.3 or older.
 *   - The object is a class with data for several boxes (Ruby::Box).
 *   - The layout lacks a member.
 *   - A struct cannot be read or has impossible values.
 */
bool object_size(struct object_sizes *sizes, struct access *access, const struct object_slot *slot, uint64_t *owned);

#endif
