#include "sampling/old_objects.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/word_table.h"
#include "ruby/environment.h"
#include "ruby/value.h"
#include "sampling/known_frames.h"
#include "sampling/stack_copy_parts.h"

/* The slots of the table, and the room for the bytes of the objects. When either is used up, all objects are forgotten. */
#define SLOTS	  32768u
#define BYTES_MAX (1u << 20)

struct old_objects {
	const struct layout *layout;
	struct collections as_of; /* the last moment for which the objects are known to be right */
	struct checked_code *checked;
	struct known_frames *known;
	struct word_table
	    *table; /* of an address: where its bytes are (see place_of()), and since when they are kept */
	uint32_t nr_bytes;
	uint8_t bytes[BYTES_MAX];
};

struct old_objects *old_objects_create(const struct layout *layout)
{
	struct old_objects *objects = calloc(1, sizeof(*objects));

	if (!objects)
		return NULL;
	objects->layout = layout;
	objects->checked = checked_code_create();
	objects->known = known_frames_create();
	objects->table = word_table_create(SLOTS);
	if (!objects->checked || !objects->known || !objects->table) {
		old_objects_destroy(objects);
		return NULL;
	}
	return objects;
}

void old_objects_destroy(struct old_objects *objects)
{
	if (!objects)
		return;
	checked_code_destroy(objects->checked);
	known_frames_destroy(objects->known);
	word_table_destroy(objects->table);
	free(objects);
}

void old_objects_forget(struct old_objects *objects)
{
	word_table_forget(objects->table);
	objects->nr_bytes = 0;
	checked_code_forget(objects->checked);
	known_frames_forget(objects->known);
}

void old_objects_at(struct old_objects *objects, const struct collections *then)
{
	if (word_table_count(objects->table) > 0 && !collections_same_old_objects(&objects->as_of, then))
		old_objects_forget(objects);
}

static struct word_key key_of(uint64_t address)
{
	return (struct word_key){{address}};
}

/* A word that says where the bytes of an object are, and how many. */
static uint64_t place_of(uint32_t offset, size_t length)
{
	return (uint64_t)offset << 32 | length;
}

const uint8_t *old_objects_find(const struct old_objects *objects, uint64_t address, size_t length)
{
	const struct word_value *object = word_table_find(objects->table, key_of(address));

	return object && (uint32_t)object->of[0] >= length ? objects->bytes + (object->of[0] >> 32) : NULL;
}

/* Since when an object is kept, by CLOCK_MONOTONIC; UINT64_MAX if it is not. */
static uint64_t kept_since(const struct old_objects *objects, uint64_t address)
{
	const struct word_value *object = word_table_find(objects->table, key_of(address));

	return object ? object->of[1] : UINT64_MAX;
}

/* Since when both the code of a frame and its method entry are kept. */
static uint64_t frame_kept_since(const struct old_objects *objects, const struct frame *frame)
{
	const uint64_t method = frame->method != 0 ? kept_since(objects, frame->method) : 0;
	const uint64_t iseq = frame->kind == FRAME_RUBY ? kept_since(objects, frame->iseq) : 0;

	return method > iseq ? method : iseq;
}

static void keep(struct old_objects *objects, const struct memory_piece *piece, uint64_t now_ns)
{
	struct word_value value;

	if (piece->length > BYTES_MAX || old_objects_find(objects, piece->address, piece->length))
		return;
	if (piece->length > BYTES_MAX - objects->nr_bytes)
		old_objects_forget(objects);
	value = (struct word_value){{place_of(objects->nr_bytes, piece->length), now_ns}};
	if (!word_table_put(objects->table, key_of(piece->address), value)) {
		old_objects_forget(objects);
		return;
	}
	memcpy(objects->bytes + objects->nr_bytes, piece->data, piece->length);
	objects->nr_bytes += (uint32_t)piece->length;
}

/* The piece at an address; NULL if the copy has none there. */
static const struct memory_piece *piece_at(const struct stack_copy *copy, uint64_t address, size_t length)
{
	size_t low = 0, high = copy->nr_pieces;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (copy->pieces[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < copy->nr_pieces && copy->pieces[low].address == address; low++)
		if (copy->pieces[low].length >= length)
			return &copy->pieces[low];
	return NULL;
}

/* Keeps an old object, and what belongs to it alone: the definition of a method entry, the words of an environment. */
static void keep_object(struct old_objects *objects, const struct stack_copy *copy, const struct memory_piece *piece,
			uint64_t now_ns)
{
	const struct layout *layout = objects->layout;
	const uint64_t flags = stack_copy_member(copy, piece->data, F_basic_flags);
	const struct memory_piece *owned = NULL;
	uint64_t type;

	if ((flags & (uint64_t)layout->enumerators[E_RUBY_T_MASK].value) !=
	    (uint64_t)layout->enumerators[E_RUBY_T_IMEMO].value)
		return;
	type = value_imemo_type(layout, flags);
	if (type == (uint64_t)layout->enumerators[E_imemo_ment].value)
		owned = piece_at(copy, stack_copy_member(copy, piece->data, F_ment_def), copy->definition_length);
	else if (type == (uint64_t)layout->enumerators[E_imemo_env].value && layout_has(layout, F_env_ep))
		owned = piece_at(copy, stack_copy_member(copy, piece->data, F_env_ep) - ENVIRONMENT_BEFORE,
				 (size_t)(ENVIRONMENT_WORDS + 1) * 8);
	keep(objects, piece, now_ns);
	if (owned)
		keep(objects, owned, now_ns);
}

void old_objects_keep(struct old_objects *objects, const struct stack_copy *copy, const struct collections *then,
		      const struct collections *now)
{
	const struct layout *layout = objects->layout;
	const uint64_t now_ns = monotonic_ns();

	if (!layout->enumerators[E_RUBY_T_IMEMO].present || !collections_same_objects(then, now) || now->beginning ||
	    !collections_same_old_objects(now, now))
		return;
	/* What is there already must be right as of now, too. */
	old_objects_at(objects, now);
	objects->as_of = *now;
	for (size_t i = 0; i < copy->nr_fetched; i++) {
		const struct memory_piece *piece = piece_at(copy, copy->fetched[i], copy->object_length);

		if (piece && collections_is_old(layout, stack_copy_member(copy, piece->data, F_basic_flags)))
			keep_object(objects, copy, piece, now_ns);
	}
}

void old_objects_look(struct old_objects *objects, const struct stack_copy *copy)
{
	known_frames_find(objects->known, copy);
}

const struct known_stack *old_objects_frames(const struct old_objects *objects)
{
	return known_frames_found(objects->known);
}

bool old_objects_note_checked(struct old_objects *objects, const struct stack_copy *copy, const struct stack *stack,
			      uint64_t read_ns)
{
	const struct known_stack *known = known_frames_found(objects->known);
	bool late = false;

	for (size_t i = 0; i < stack->nr_frames; i++) {
		const struct frame *frame = &stack->frames[i];
		uint64_t since;

		if ((frame->kind != FRAME_RUBY && frame->kind != FRAME_CFUNC) || frame->reason != REASON_NONE ||
		    known_stack_frame(known, frame->cfp, stack->facts.frame_size))
			continue;
		since = frame_kept_since(objects, frame);
		late |= since > read_ns && since != UINT64_MAX;
		if (since > read_ns)
			continue;
		if (frame->kind == FRAME_RUBY)
			checked_code_add(objects->checked, frame->iseq, frame->method, frame->own_method);
		known_frames_add(objects->known, copy, frame);
	}
	return late;
}

void old_objects_note_call(struct old_objects *objects, const struct frame *caller, const struct frame *callee,
			   uint64_t read_ns)
{
	if (caller->kind == FRAME_RUBY && callee->method != 0 && kept_since(objects, caller->iseq) <= read_ns &&
	    kept_since(objects, callee->method) <= read_ns)
		checked_code_add_call(objects->checked, caller->pc, callee->method);
}

const struct checked_code *old_objects_checked(const struct old_objects *objects)
{
	return objects->checked;
}
