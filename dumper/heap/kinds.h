/*
 * The kind of an object (its class and its type), for the census, and the names of kinds.
 */
#ifndef RBDUMP_KINDS_H
#define RBDUMP_KINDS_H

#include "base/text.h"
#include "heap/census.h"
#include "ruby/object_slot.h"
#include "ruby/ruby.h"

/* What is needed to read the kinds of all objects of one Ruby. */
struct kinds {
	const struct layout *layout;
	uint64_t type_mask, type_imemo, type_data;
	size_t flags_at, klass_at;
	bool internal[OBJECT_TYPES]; /* for each type: in its objects, klass is not a class */
};

struct kinds kinds_read(const struct layout *layout);

/*
 * Whether the flags and the klass of an object (struct RBasic) are enough to know its kind, except for `dead`. If not,
 * the kind also depends on the rest of the slot.
 */
static inline bool kinds_are_told_by(const struct kinds *kinds, uint64_t flags, uint64_t klass)
{
	return klass != 0 || (flags & kinds->type_mask) != kinds->type_data;
}

/*
 * Reads the kind of the object in a slot. Sets `dead` to false; the caller must find out whether the object is dead.
 * Returns false if the slot is free.
 *   slot  `address` is not used. If `bytes` contains only the members of RBasic, `data_type` of *ret is 0
 */
bool kinds_of(const struct kinds *kinds, const struct object_slot *slot, struct census_kind *ret);

/*
 * Appends the name of a group: the name of its class, or of the kind of its internal objects. If this name is not known,
 * appends a text in parentheses, for example "(unreadable class)".
 *   number  the group's number in the census
 */
void kinds_add_name(const struct ruby *ruby, const struct census_kind *kind, uint16_t number, struct text *text);

#endif
