#include "ruby/object_slot.h"

uint64_t slot_word(const struct object_slot *slot, uint64_t offset)
{
	uint64_t value = 0;

	if (offset <= slot->size && slot->size - offset >= sizeof(value))
		memcpy(&value, slot->bytes + offset, sizeof(value));
	return value;
}

bool slot_is(const struct layout *layout, uint64_t flags, enum layout_enumerator_id type)
{
	return layout->enumerators[type].present && (flags & (uint64_t)layout->enumerators[E_RUBY_T_MASK].value) ==
							(uint64_t)layout->enumerators[type].value;
}

bool slot_struct_length(const struct layout *layout, uint64_t flags, uint64_t *length)
{
	const struct layout_number *number = &layout->enumerators[E_RSTRUCT_EMBED_LEN_MASK];
	const uint64_t mask = number->present ? (uint64_t)number->value : 0;

	*length = mask != 0 ? (flags & mask) / (mask & -mask) : 0;
	return mask != 0;
}

uint64_t slot_hash_st(const struct layout *layout, const struct object_slot *slot, uint64_t flags)
{
	if (layout->enumerators[E_RHASH_ST_TABLE_FLAG].present && !slot_has_flag(layout, flags, E_RHASH_ST_TABLE_FLAG))
		return 0;
	if (layout_has(layout, F_hash_st))
		return slot_member(layout, slot, F_hash_st);
	return layout->sizes[S_hash].present ? slot->address + (uint64_t)layout->sizes[S_hash].value : 0;
}

/* internal.h, ar_table_entry, v2_6_0 to v2_6_10: the hash, the key and the value. */
bool slot_hash_pairs(const struct layout *layout, struct hash_pairs *ret)
{
	const struct layout_number *size = &layout->sizes[S_ar_table];

	*ret = (struct hash_pairs){.words = 2, .offset = layout->members[F_ar_table_pairs].offset};
	if (layout_has(layout, F_ar_table_pairs))
		return true;
	*ret = (struct hash_pairs){.words = HASH_PAIR_WORDS, .offset = 8};
	return size->present && size->value == INT64_C(8) * HASH_PAIRS * HASH_PAIR_WORDS;
}

uint64_t slot_hash_ar(const struct layout *layout, const struct object_slot *slot)
{
	if (layout_has(layout, F_hash_ar))
		return slot_member(layout, slot, F_hash_ar);
	return layout->sizes[S_hash].present ? slot->address + (uint64_t)layout->sizes[S_hash].value : 0;
}
