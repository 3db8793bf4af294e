/*
 * The slots of an environment, in Ruby 2.4 and later. An environment has three slots of one word each. The ep
 * (environment pointer) points at the third slot. An environment on the heap has a fourth slot. For the slots of older
 * Rubies, see frame.c.
 */
#ifndef RBDUMP_ENVIRONMENT_H
#define RBDUMP_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

/* The position of each slot, in words from the ep (vm_core.h, VM_ENV_DATA_INDEX_*, v2_4_0 to v4.0.5 and head). */
enum environment_slot {
	ENVIRONMENT_ME_CREF = -2, /* a method entry, a cref, or an svar that refers to a method entry or a cref */
	ENVIRONMENT_SPECVAL = -1, /* the enclosing environment; if there is none, a block or 0 */
	ENVIRONMENT_FLAGS = 0,
	ENVIRONMENT_ENV = 1, /* the environment object, if the environment is on the heap */
};

/* The number of slots from ME_CREF to FLAGS, both included. */
#define ENVIRONMENT_WORDS 3u

/* The number of bytes from ME_CREF to the ep. */
#define ENVIRONMENT_BEFORE ((ENVIRONMENT_WORDS - 1) * 8)

/*
 * The ep of the enclosing environment. `specval` is the word in the SPECVAL slot: an ep or a block. The two low bits of
 * this word are a tag (vm_core.h, v1_9_3_0 to v4.0.5 and head: GC_GUARDED_PTR_REF).
 */
static inline uint64_t environment_previous(uint64_t specval)
{
	return specval & ~UINT64_C(3);
}

/*
 * Whether the FLAGS slot contains flags. The flags form a Fixnum (vm_core.h, v2_4_0 to v4.0.5 and head: VM_ENV_FLAGS),
 * so bit 0 of the slot is set. While an environment is being moved to the heap, the slot contains the address of the
 * environment object instead (vm.c, vm_make_env_each).
 */
static inline bool environment_has_flags(uint64_t flags)
{
	return flags & 1;
}

#endif
