#include "memory/overlay.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"

/* At most so many pieces may overlap. */
#define OVERLAPS 4

static int pieces_by_address(const void *a, const void *b)
{
	const struct memory_piece *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

void memory_sort_pieces(struct memory_piece *pieces, size_t count)
{
	qsort(pieces, count, sizeof(*pieces), pieces_by_address);
}

static bool has(const struct memory_piece *piece, uint64_t address, size_t length)
{
	const uint64_t offset = address - piece->address;

	return offset <= piece->length && length <= piece->length - offset;
}

const struct memory_piece *overlay_find(struct overlay *overlay, uint64_t address, size_t length)
{
	size_t behind;

	if (overlay->count == 0)
		return NULL;
	/* Most reads are of the object that the last one was of. */
	if (has(&overlay->pieces[overlay->last], address, length))
		return &overlay->pieces[overlay->last];
	behind = array_first(overlay->pieces, overlay->count, piece, piece->address > address);
	for (size_t back = 0; back < OVERLAPS && back < behind; back++) {
		if (!has(&overlay->pieces[behind - 1 - back], address, length))
			continue;
		overlay->last = behind - 1 - back;
		return &overlay->pieces[overlay->last];
	}
	return NULL;
}
