#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>

/* So that an array of few items need not grow. */
#define FIRST_CAPACITY 4

void *array_grow(void *items, size_t *capacity, size_t wanted, size_t size)
{
	size_t more = *capacity > FIRST_CAPACITY / 2 ? *capacity : FIRST_CAPACITY / 2;
	void *grown;

	if (items && wanted <= *capacity)
		return items;
	do {
		if (more > SIZE_MAX / 2)
			return NULL;
		more *= 2;
	} while (more < wanted);
	grown = reallocarray(items, more, size);
	if (grown)
		*capacity = more;
	return grown;
}

size_t array_implied_capacity(size_t count)
{
	size_t capacity = FIRST_CAPACITY;

	if (count == 0)
		return 0;
	while (capacity < count)
		capacity *= 2;
	return capacity;
}
