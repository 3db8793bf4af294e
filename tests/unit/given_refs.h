/* The references that one walk over an object gives: for tests of ruby/object_refs.h and what is below it. */
#ifndef RBDUMP_GIVEN_REFS_H
#define RBDUMP_GIVEN_REFS_H

#include <stdbool.h>
#include <stddef.h>

#include "ruby/object_refs.h"

struct given {
	struct object_ref refs[256];
	size_t count; /* also of those for which there is no room in `refs` */
	bool all;     /* for the test: whether the walk says that these are all */
};

/* An object_ref_visit whose `context` is a struct given: adds the reference. */
void given_note(void *context, const struct object_ref *ref);

#endif
