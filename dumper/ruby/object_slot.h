/*
 * Reads the copy of an object's slot in the heap: the members and the flags of the object, and for a Hash also the address
 * of its table.
 *
 * Based on Ruby's sources, 1.9.3 to 4.0.5 and head: gc.c, internal/hash.h (RHASH_ST_TABLE, RHASH_AR_TABLE).
 */
#ifndef RBDUMP_OBJECT_SLOT_H
#define RBDUMP_OBJECT_SLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "layout/layout.h"

/* More than the number of types: RUBY_T_MASK has five bits (value_type.h, v1_9_3_0 to v4_0_5 and head). */
#define OBJECT_TYPES 64u

/*
 * The maximum number of instance variables in the slot of an object (include/ruby/ruby.h, ROBJECT_EMBED_LEN_MAX, v1_9_3_0 to
 * v3_1_7). In later releases, this number depends on the size of the slot.
 */
#define OBJECT_EMBEDDED_IVARS 3u

/*
 * The maximum number of pairs in a small Hash (hash.c, RHASH_AR_TABLE_MAX_SIZE, v2_6_0 to v4_0_5 and head), and the
 * maximum number of words in a pair.
 */
#define HASH_PAIRS	8u
#define HASH_PAIR_WORDS 3u

struct object_slot {
	uint64_t address;
	const uint8_t *bytes;
	uint64_t size; /* of the slot; at least 16 */
};

/* The position of the pairs in an ar_table. */
struct hash_pairs {
	uint64_t offset; /* of the first key; the word after a key is its value */
	uint64_t words;	 /* from one key to the next, at most HASH_PAIR_WORDS */
};

/*
 * A member of an object, read from the slot, and zero-extended. Returns 0 if this Ruby has no such member, or if the
 * slot is too small for it.
 */
static inline uint64_t slot_member(const struct layout *layout, const struct object_slot *slot,
				   enum layout_member_id id)
{
	const struct layout_member *member = &layout->members[id];
	uint64_t value = 0;

	if (!member->present || member->size > sizeof(value) || (uint64_t)member->offset + member->size > slot->size)
		return 0;
	if (member->size == sizeof(value))
		memcpy(&value, slot->bytes + member->offset,
		       sizeof(value)); /* most members are words, and a memcpy() of a fixed size needs no call */
	else
		memcpy(&value, slot->bytes + member->offset, member->size);
	return value;
}

/* A word of the slot. Returns 0 if the slot is too small for it. */
uint64_t slot_word(const struct object_slot *slot, uint64_t offset);

/* RBasic.flags. */
static inline uint64_t slot_flags(const struct layout *layout, const struct object_slot *slot)
{
	return slot_member(layout, slot, F_basic_flags);
}

/* Whether this Ruby has a flag, and all bits of the flag are set in `flags`. */
static inline bool slot_has_flag(const struct layout *layout, uint64_t flags, enum layout_enumerator_id id)
{
	const struct layout_number *flag = &layout->enumerators[id];

	/* In 4.0, RUBY_FL_EXIVAR is 0: there is no such flag. */
	return flag->present && flag->value != 0 && (flags & (uint64_t)flag->value) == (uint64_t)flag->value;
}

/* Whether the type in an object's flags is `type`, one of the enumerators RUBY_T_…. */
bool slot_is(const struct layout *layout, uint64_t flags, enum layout_enumerator_id type);

/*
 * How many members a T_STRUCT has in its slot; 0: the members are outside the slot. Returns false if the layout lacks
 * the mask of this number (RSTRUCT_EMBED_LEN_MASK). The number begins at the lowest bit of the mask.
 * RSTRUCT_EMBED_LEN_SHIFT is not used, because up to 2.2 no layout has it.
 */
bool slot_struct_length(const struct layout *layout, uint64_t flags, uint64_t *length);

/* The address of the st_table of a T_HASH; 0 if the T_HASH has no st_table. */
uint64_t slot_hash_st(const struct layout *layout, const struct object_slot *slot, uint64_t flags);

/* The address of the ar_table of a T_HASH that has no st_table; 0 if the T_HASH has no ar_table either. */
uint64_t slot_hash_ar(const struct layout *layout, const struct object_slot *slot);

/* Finds the position of the pairs in the ar_tables of this Ruby. Returns false if the position is not known. */
bool slot_hash_pairs(const struct layout *layout, struct hash_pairs *ret);

/* The number of bytes that `count` pairs take, from the first key to the last value. */
static inline uint64_t slot_hash_pairs_bytes(const struct hash_pairs *pairs, uint64_t count)
{
	return count > 0 ? ((count - 1) * pairs->words + 2) * 8 : 0;
}

#endif
