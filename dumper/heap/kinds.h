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
	bool internal[OBJECT_TYPES]; /* types whose klass is no class */
};

struct kinds kinds_read(const struct layout *layout);

/*
 * Whether the flags and the klass of an object (struct RBasic) tell its whole kind, except for `dead`. If not, the kind
 * also depends on the rest of the slot.
 */
static inline bool kinds_are_told_by(const struct kinds *kinds, uint64_t flags, uint64_t klass)
{
	return klass != 0 || (flags & kinds->type_mask) != kinds->type_data;
}

/*
 * Reads the kind of the object in a slot. `dead` is left to the caller. Returns false if the slot is free.
 *   slot  needs no address. If it has only the members of RBasic, the types of T_DATA are not told apart
 */
bool kinds_of(const struct kinds *kinds, const struct object_slot *slot, struct census_kind *ret);

/*
 * Appends the name of a group: the name of its class, or of the kind of its internal objects. If it has neither,
 * appends the reason in parentheses.
 *   number  of the group in the census
 */
void kinds_add_name(const struct ruby *ruby, const struct census_kind *kind, uint16_t number, struct text *text);

#endif
