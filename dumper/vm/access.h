/*
 * Reading Ruby's structs: one accessor over one layout.
 *
 * A read that fails is remembered: it and every later read through the same `struct access` gives 0, so that code can
 * follow a chain of pointers and ask once, at its end, whether all of it could be read.
 */
#ifndef RBDUMP_ACCESS_H
#define RBDUMP_ACCESS_H

#include "layout.h"
#include "memory/memory.h"

struct access {
	struct memory *memory;
	const struct layout *layout;
	bool failed;
	uint64_t address; /* of the first read that failed */
};

/* Begins a chain of reads. */
static inline struct access access_begin(struct memory *memory, const struct layout *layout)
{
	return (struct access){.memory = memory, .layout = layout};
}

/* What was read is not what it must be: the read fails as if `address` could not be read. */
void access_fail(struct access *access, uint64_t address);

/* Copies bytes; on failure `buffer` is all zero. */
bool access_bytes(struct access *access, uint64_t address, void *buffer, size_t length);

/* A little-endian word of 8 bytes. */
uint64_t access_word(struct access *access, uint64_t address);

/* Address of a member. */
static inline uint64_t access_address(const struct access *access, uint64_t object, enum layout_member_id id)
{
	return object + access->layout->members[id].offset;
}

/*
 * Value of a member that is a number, pointer or bitfield of at most 8 bytes, zero-extended. A member that this Ruby
 * does not have is a failed read: ask layout_has() before.
 */
uint64_t access_member(struct access *access, uint64_t object, enum layout_member_id id);

/* The same, sign-extended from the member's own size. */
int64_t access_signed(struct access *access, uint64_t object, enum layout_member_id id);

/* Value of an enumerator, size of a struct: for those that fields.def says are required, or after asking. */
static inline uint64_t access_enum(const struct access *access, enum layout_enumerator_id id)
{
	return (uint64_t)access->layout->enumerators[id].value;
}

static inline uint64_t access_sizeof(const struct access *access, enum layout_struct_id id)
{
	return (uint64_t)access->layout->sizes[id].value;
}

#endif
