/* stack_copy_pack(): see stack_copy.h. */
#include "sampling/stack_copy.h"
#include "sampling/stack_copy_parts.h"

/* The blocks of a packed copy, each at a multiple of 16 bytes. */
enum { BLOCK_COPY, BLOCK_PIECES, BLOCK_STACK, BLOCK_OBJECTS, BLOCK_COLLECTIONS, BLOCKS };

static size_t in_sixteens(size_t length)
{
	return (length + 15) / 16 * 16;
}

/* Which of the stack's own pieces are packed. */
static bool is_packed(const struct stack_copy *copy, enum stack_copy_parts parts, size_t piece)
{
	return piece < copy->nr_of_stack &&
	       (parts == PACK_ALL || (parts == PACK_OBJECTS && piece != PIECE_FRAMES && piece != PIECE_VALUES));
}

/* The lengths of the blocks. */
static void measure(const struct stack_copy *copy, enum stack_copy_parts parts, size_t lengths[BLOCKS])
{
	const bool has_objects = parts != PACK_NO_STACK && copy->nr_pieces > copy->nr_of_stack;

	lengths[BLOCK_COPY] = sizeof(*copy);
	lengths[BLOCK_PIECES] = parts != PACK_NO_STACK ? copy->nr_pieces * sizeof(*copy->pieces) : 0;
	lengths[BLOCK_STACK] = 0;
	for (size_t i = 0; i < STACK_PIECES; i++)
		lengths[BLOCK_STACK] += is_packed(copy, parts, i) ? copy->of_stack[i].length : 0;
	lengths[BLOCK_OBJECTS] = has_objects ? copy->objects_used : 0;
	lengths[BLOCK_COLLECTIONS] = copy->collections_length;
}

size_t stack_copy_packed_length(const struct stack_copy *copy, enum stack_copy_parts parts)
{
	size_t lengths[BLOCKS], total = 0;

	measure(copy, parts, lengths);
	for (size_t i = 0; i < BLOCKS; i++)
		total += in_sixteens(lengths[i]);
	return total;
}

/* Packs the stack's own pieces, one after the other. */
static void pack_stack(const struct stack_copy *copy, enum stack_copy_parts parts, struct stack_copy *packed)
{
	uint8_t *next = packed->stack;

	packed->nr_of_stack = 0;
	for (size_t i = 0; i < STACK_PIECES; i++) {
		struct memory_piece *piece = &packed->of_stack[packed->nr_of_stack];

		if (!is_packed(copy, parts, i))
			continue;
		*piece = copy->of_stack[i];
		memcpy(next, piece->data, piece->length);
		piece->data = next;
		next += piece->length;
		packed->nr_of_stack++;
	}
}

/* Packs a piece of the sorted ones: its bytes are packed already. Leaves it out if they are not. */
static void pack_piece(const struct stack_copy *copy, const struct memory_piece *piece, struct stack_copy *packed)
{
	struct memory_piece *ret = &packed->pieces[packed->nr_pieces];

	*ret = *piece;
	for (size_t i = 0; i < copy->nr_of_stack; i++) {
		if (copy->of_stack[i].data != piece->data)
			continue;
		for (size_t j = 0; j < packed->nr_of_stack; j++)
			if (packed->of_stack[j].address == piece->address &&
			    packed->of_stack[j].length == piece->length) {
				ret->data = packed->of_stack[j].data;
				packed->nr_pieces++;
				return;
			}
		return;
	}
	ret->data = packed->objects + (piece->data - copy->objects);
	packed->nr_pieces++;
}

struct stack_copy *stack_copy_pack(const struct stack_copy *copy, enum stack_copy_parts parts, void *room)
{
	struct stack_copy *packed = room;
	uint8_t *blocks[BLOCKS], *next = room;
	size_t lengths[BLOCKS];

	measure(copy, parts, lengths);
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
	packed->nr_pieces = 0;
	packed->stack = blocks[BLOCK_STACK];
	packed->objects = blocks[BLOCK_OBJECTS];
	packed->collections_data = blocks[BLOCK_COLLECTIONS];
	pack_stack(copy, parts, packed);
	if (lengths[BLOCK_OBJECTS] > 0)
		memcpy(packed->objects, copy->objects, lengths[BLOCK_OBJECTS]);
	for (size_t i = 0; parts != PACK_NO_STACK && i < copy->nr_pieces; i++)
		pack_piece(copy, &copy->pieces[i], packed);
	return packed;
}
