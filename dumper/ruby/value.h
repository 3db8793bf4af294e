/*
 * Ruby objects: types, Strings, Arrays. Based on Ruby's sources: 3.0.0 to 4.0.5 and head,
 * include/ruby/internal/core/{rbasic,rstring,rarray}.h and internal/imemo.h; 1.9.3 to 2.7.8, include/ruby/ruby.h and
 * internal.h.
 *
 * The functions read the target through `access`. If access->failed is set, the results of these functions have no
 * meaning.
 */
#ifndef RBDUMP_VALUE_H
#define RBDUMP_VALUE_H

#include <string.h>

#include "base/text.h"
#include "ruby/access.h"

/* A range of bytes in the target. `address` is 0 if there are no bytes, for example because a value is nil. */
struct bytes {
	uint64_t address;
	uint64_t length;
};

/* A word of 8 bytes in a copy of the target's memory. */
static inline uint64_t value_word(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* The maximum number of bytes that value_string() and value_append() accept. If there are more bytes, both fail. */
#define VALUE_STRING_MAX (64u * 1024)

/* Whether a VALUE can be a pointer to an object. Does not check whether there is an object at this address. */
static inline bool value_is_object(uint64_t value)
{
	return value >= MEMORY_PAGE && value % 8 == 0;
}

/*
 * The address of the object that `value` points to; the new address if compaction has moved the object (gc.c: T_MOVED,
 * RMoved.destination). Sets access->failed if `value` is not an object.
 */
uint64_t value_object(struct access *access, uint64_t value);

/* RBasic.flags of an object. */
uint64_t value_flags(struct access *access, uint64_t object);
/* The RUBY_T_ type of an object, from its flags. */
uint64_t value_type(struct access *access, uint64_t object);

/* The address of the C struct of a T_DATA (DATA_PTR). Sets access->failed if `value` is not a T_DATA. */
uint64_t value_data(struct access *access, uint64_t value);

/* The enum imemo_type in the flags of a T_IMEMO. */
uint64_t value_imemo_type(const struct layout *layout, uint64_t flags);
/* Whether an object is an imemo of the given type. Up to Ruby 2.2 there are no imemos. */
bool value_is_imemo(struct access *access, uint64_t object, enum layout_enumerator_id imemo_type);

/* The bytes of a String. Sets access->failed if `value` is not a String (nil is not a String). */
struct bytes value_string(struct access *access, uint64_t value);

/* Like value_string(), but for a String of any length. The caller must not read more bytes than it needs. */
struct bytes value_long_string(struct access *access, uint64_t value);

/*
 * Returns the number of elements of an Array; `elements` receives the address of the first element. Sets access->failed
 * if `value` is not an Array.
 */
uint64_t value_array(struct access *access, uint64_t value, uint64_t *elements);

/*
 * The bytes of a C string, without its NUL. Sets access->failed if the bytes cannot be read, or if there are more than
 * `max` bytes.
 */
struct bytes value_c_string(struct access *access, uint64_t address, size_t max);

/* Whether bytes of the target are exactly `expected`. False if the bytes cannot be read. */
bool value_bytes_are(struct access *access, struct bytes bytes, const char *expected);

/* Whether bytes of the target begin with `expected`. False if the bytes cannot be read. */
bool value_bytes_begin(struct access *access, struct bytes bytes, const char *expected);

/* At most this many bytes of a thread's name are shown. */
#define VALUE_NAME_MAX 4096u

/*
 * Appends a String to a text. If the String is longer than `max` bytes, appends approximately its first `max` bytes,
 * and then "…". `max` must be at most VALUE_STRING_MAX. If `value` is not a String, or cannot be read, returns false
 * and sets access->failed.
 */
bool value_append_shortened(struct text *text, struct access *access, uint64_t value, uint64_t max);

/*
 * Appends bytes of the target to a text. If the bytes cannot be read, returns false and sets access->failed. Also returns
 * false if there are more than VALUE_STRING_MAX bytes.
 */
bool value_append(struct text *text, struct access *access, struct bytes bytes);

#endif
