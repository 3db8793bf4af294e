#include "given_refs.h"

void given_note(void *context, const struct object_ref *ref)
{
	struct given *given = context;

	if (given->count < sizeof(given->refs) / sizeof(given->refs[0]))
		given->refs[given->count] = *ref;
	given->count++;
}
