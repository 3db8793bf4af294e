/* stack_copy_pack(): see stack_copy.h. */
#include "sampling/stack_copy.h"
#include "sampling/stack_copy_parts.h"

/* The blocks of a packed copy, each at a multiple of 16 bytes. */
enum { BLOCK_COPY, BLOCK_PIECES, BLOCK_STACK, BLOCK_OBJECTS, BLOCK_COLLECTIONS, BLOCKS };

static size_t in_sixteens(size_t length)
{
	return (length + 15) / 16 * 16;
}

/* The lengths of the blocks. The pieces of a stack are copied one behind the other, and so are the objects. */
static void measure(const struct stack_copy *copy, bool whole, size_t lengths[BLOCKS])
{
	const size_t count = whole ? copy->nr_of_stack : 0;
	const struct memory_piece *last = count > 0 ? &copy->of_stack[count - 1] : NULL;

	lengths[BLOCK_COPY] = sizeof(*copy);
	lengths[BLOCK_PIECES] = whole ? copy->nr_pieces * sizeof(*copy->pieces) : 0;
	lengths[BLOCK_STACK] = last ? (size_t)(last->data - copy->stack) + last->length : 0;
	lengths[BLOCK_OBJECTS] = whole && copy->nr_pieces > count ? copy->objects_used : 0;
	lengths[BLOCK_COLLECTIONS] = copy->collections_length;
}

size_t stack_copy_packed_length(const struct stack_copy *copy, bool whole)
{
	size_t lengths[BLOCKS], total = 0;

	measure(copy, whole, lengths);
	for (size_t i = 0; i < BLOCKS; i++)
		total += in_sixteens(lengths[i]);
	return total;
}

/* Where the bytes of a piece are in the packed copy. */
static const uint8_t *moved(const struct stack_copy *copy, const struct stack_copy *packed, size_t stack_length,
			    const uint8_t *data)
{
	const uint64_t offset = (uint64_t)(uintptr_t)data - (uint64_t)(uintptr_t)copy->stack;

	/* A piece of no bytes may be at the end of the stack's. */
	return offset <= stack_length ? packed->stack + offset : packed->objects + (data - copy->objects);
}

struct stack_copy *stack_copy_pack(const struct stack_copy *copy, bool whole, void *room)
{
	struct stack_copy *packed = room;
	uint8_t *blocks[BLOCKS], *next = room;
	size_t lengths[BLOCKS];

	measure(copy, whole, lengths);
	for (size_t i = 0; i < BLOCKS; i++) {
		blocks[i] = next;
		next += in_sixteens(lengths[i]);
	}
	*packed = *copy;
	packed->nr_beside = packed->beside_length = 0;
	packed->beside_data = NULL;
	packed->wants = NULL;
	packed->seen = NULL;
	packed->fetched = NULL;
	packed->kinds = NULL;
	packed->pieces = (struct memory_piece *)(void *)blocks[BLOCK_PIECES];
	packed->stack = blocks[BLOCK_STACK];
	packed->objects = blocks[BLOCK_OBJECTS];
	packed->collections_data = blocks[BLOCK_COLLECTIONS];
	packed->nr_pieces = whole ? copy->nr_pieces : 0;
	packed->nr_of_stack = whole ? copy->nr_of_stack : 0;
	if (lengths[BLOCK_STACK] > 0)
		memcpy(packed->stack, copy->stack, lengths[BLOCK_STACK]);
	if (lengths[BLOCK_OBJECTS] > 0)
		memcpy(packed->objects, copy->objects, lengths[BLOCK_OBJECTS]);
	for (size_t i = 0; i < packed->nr_pieces; i++) {
		packed->pieces[i] = copy->pieces[i];
		packed->pieces[i].data = moved(copy, packed, lengths[BLOCK_STACK], copy->pieces[i].data);
	}
	for (size_t i = 0; i < packed->nr_of_stack; i++)
		packed->of_stack[i].data = moved(copy, packed, lengths[BLOCK_STACK], copy->of_stack[i].data);
	return packed;
}
