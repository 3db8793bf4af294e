/*
 * Reads members of Ruby's structs, at the offsets that a layout gives.
 *
 * If a read fails, this read and every later read through the same `struct access` return 0. So a function can follow a
 * chain of pointers, and check only once, after the last read, whether all reads have succeeded.
 */
#ifndef RBDUMP_ACCESS_H
#define RBDUMP_ACCESS_H

#include "layout/layout.h"
#include "memory/memory.h"

struct access {
	struct memory *memory;
	const struct layout *layout;
	bool failed;
	uint64_t address; /* address of the first read that failed */
};

/* Begins a chain of reads. */
static inline struct access access_begin(struct memory *memory, const struct layout *layout)
{
	return (struct access){.memory = memory, .layout = layout};
}

/*
 * Sets access->failed, as if a read at `address` had failed. Call this function if the value that was read at `address`
 * is not valid.
 */
void access_fail(struct access *access, uint64_t address);

/* Copies bytes of the target. If the read fails, returns false and fills `buffer` with zeros. */
bool access_bytes(struct access *access, uint64_t address, void *buffer, size_t length);

/* Reads a little-endian word of 8 bytes. */
uint64_t access_word(struct access *access, uint64_t address);

/* Returns the address of a member of the struct at `object`. */
static inline uint64_t access_address(const struct access *access, uint64_t object, enum layout_member_id id)
{
	return object + access->layout->members[id].offset;
}

/*
 * Returns the value of a member, zero-extended. The member must be a number, a pointer or a bitfield, of at most 8 bytes.
 * Sets access->failed if this Ruby does not have the member, so check layout_has() first.
 */
uint64_t access_member(struct access *access, uint64_t object, enum layout_member_id id);

/* Like access_member(), but the value is sign-extended from the member's size. */
int64_t access_signed(struct access *access, uint64_t object, enum layout_member_id id);

/*
 * Returns the value of an enumerator. If gen/fields.def does not require the enumerator, check first whether the layout
 * has the enumerator.
 */
static inline uint64_t access_enum(const struct access *access, enum layout_enumerator_id id)
{
	return (uint64_t)access->layout->enumerators[id].value;
}

/*
 * Returns the size of a struct. If gen/fields.def does not require the struct, check first whether the layout has the
 * struct.
 */
static inline uint64_t access_sizeof(const struct access *access, enum layout_struct_id id)
{
	return (uint64_t)access->layout->sizes[id].value;
}

#endif
