#include "objects.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 24 };

void end_by_abort(const char *what)
{
	fprintf(stderr, "fuzz: a seed cannot be made: %s\n", what);
	abort();
}

uint8_t *bytes_at(struct writer *w, uint64_t address, size_t length)
{
	struct region *regions[] = {&w->context, &w->stack, &w->heap};

	for (size_t i = 0; i < 3; i++)
		if (address >= regions[i]->base && address - regions[i]->base <= regions[i]->size - length)
			return regions[i]->bytes + (address - regions[i]->base);
	end_by_abort("an address outside");
	return NULL;
}

void put_word(struct writer *w, uint64_t address, uint64_t word)
{
	memcpy(bytes_at(w, address, sizeof(word)), &word, sizeof(word));
}

void set_member(struct writer *w, uint64_t object, enum layout_member_id id, uint64_t value)
{
	const struct layout_member *member = &w->layout->members[id];
	uint8_t *to = bytes_at(w, object + member->offset, member->size);
	uint64_t old = 0;

	if (!member->present || member->size > 8)
		end_by_abort(layout_member_specs[id].label);
	if (member->width > 0 && member->width < 64) {
		uint64_t mask = ((UINT64_C(1) << member->width) - 1) << member->shift;

		memcpy(&old, to, member->size);
		value = (old & ~mask) | (value << member->shift & mask);
	}
	memcpy(to, &value, member->size);
}

void set_member_if_there(struct writer *w, uint64_t object, enum layout_member_id id, uint64_t value)
{
	if (layout_has(w->layout, id))
		set_member(w, object, id, value);
}

uint64_t enumerator(const struct writer *w, enum layout_enumerator_id id)
{
	return (uint64_t)w->layout->enumerators[id].value;
}

uint64_t size_of(const struct writer *w, enum layout_struct_id id)
{
	return (uint64_t)w->layout->sizes[id].value;
}

uint64_t note_address(struct writer *w, uint64_t address)
{
	if (w->program->nr_objects < PROGRAM_OBJECTS)
		w->program->objects[w->program->nr_objects++] = address;
	return address;
}

uint64_t allocate(struct writer *w, uint64_t size)
{
	uint64_t address = w->heap.next;

	size = (size + 7) / 8 * 8;
	if (size > w->heap.base + w->heap.size - address)
		end_by_abort("the heap is full");
	w->heap.next += size;
	return note_address(w, address);
}

uint64_t new_object(struct writer *w, enum layout_struct_id id, uint64_t flags)
{
	uint64_t address = allocate(w, size_of(w, id));

	set_member(w, address, F_basic_flags, flags);
	return address;
}

uint64_t imemo(struct writer *w, enum layout_struct_id id, enum layout_enumerator_id type)
{
	return new_object(w, id,
			  enumerator(w, E_RUBY_T_IMEMO) | enumerator(w, type) << enumerator(w, E_RUBY_FL_USHIFT));
}

static uint64_t heap_string(struct writer *w, const char *text)
{
	uint64_t at = allocate(w, strlen(text));
	uint64_t string = new_object(w, S_string, enumerator(w, E_RUBY_T_STRING) | enumerator(w, E_RSTRING_NOEMBED));

	memcpy(bytes_at(w, at, strlen(text)), text, strlen(text));
	set_member(w, string, layout_has(w->layout, F_string_len) ? F_string_len : F_string_heap_len, strlen(text));
	set_member(w, string, F_string_heap_ptr, at);
	return string;
}

/* Embedded if it fits into every Ruby's slot of 40 bytes. */
uint64_t new_string(struct writer *w, const char *text)
{
	size_t length = strlen(text);
	uint64_t flags = enumerator(w, E_RUBY_T_STRING), address;
	bool in_flags = !layout_has(w->layout, F_string_len) && !layout_has(w->layout, F_string_embed_len);

	if (length > 15)
		return heap_string(w, text);
	if (in_flags)
		flags |= length << enumerator(w, E_RSTRING_EMBED_LEN_SHIFT);
	address = new_object(w, S_string, flags);
	if (layout_has(w->layout, F_string_len))
		set_member(w, address, F_string_len, length);
	else if (!in_flags)
		set_member(w, address, F_string_embed_len, length);
	memcpy(bytes_at(w, address + w->layout->members[F_string_embed_ary].offset, length), text, length);
	return address;
}

static uint64_t heap_array(struct writer *w, uint64_t elements, uint64_t count)
{
	uint64_t array = new_object(w, S_array, enumerator(w, E_RUBY_T_ARRAY));

	set_member(w, array, F_array_heap_len, count);
	set_member(w, array, F_array_heap_ptr, elements);
	return array;
}

uint64_t embedded_pair(struct writer *w, uint64_t first, uint64_t second)
{
	uint64_t array = new_object(w, S_array,
				    enumerator(w, E_RUBY_T_ARRAY) | enumerator(w, E_RARRAY_EMBED_FLAG) |
					UINT64_C(2) << enumerator(w, E_RARRAY_EMBED_LEN_SHIFT));

	put_word(w, array + w->layout->members[F_array_ary].offset, first);
	put_word(w, array + w->layout->members[F_array_ary].offset + 8, second);
	return array;
}

/* IDs above the operators begin here, so that all their names are in the first inner Array. */
static uint64_t first_serial(const struct writer *w)
{
	return enumerator(w, E_tLAST_OP_ID) + 1;
}

/*
 * ids is an Array of one Array. Of that only the end is there, from the first serial that has a name: nothing reads the
 * operators in front of it.
 */
void put_symbols(struct writer *w)
{
	uint64_t inner, outer, serials = first_serial(w) + NAMES;

	w->names_at = allocate(w, NAMES * 16);
	inner = heap_array(w, w->names_at - first_serial(w) * 16, serials * 2);
	outer = allocate(w, 8);
	put_word(w, outer, inner);
	set_member(w, IMAGE_SYMBOLS, F_symbols_ids, heap_array(w, outer, 1));
	if (layout_has(w->layout, F_symbols_next_id))
		set_member(w, IMAGE_SYMBOLS, F_symbols_next_id, serials);
	else
		set_member(w, IMAGE_SYMBOLS, F_symbols_last_id, serials - 1);
}

uint64_t new_id(struct writer *w, const char *name)
{
	uint64_t serial = first_serial(w) + w->nr_names, id = serial << enumerator(w, E_RUBY_ID_SCOPE_SHIFT) | 1;

	if (w->nr_names >= NAMES)
		end_by_abort("too many names");
	put_word(w, w->names_at + w->nr_names++ * 16, new_string(w, name));
	return id;
}
