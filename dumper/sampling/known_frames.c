#include "sampling/known_frames.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/word_table.h"
#include "ruby/environment.h"
#include "sampling/stack_copy_parts.h"

/* The slots of the table. */
#define SLOTS 32768u

/* The most blocks in blocks that are followed, and the most frames of a stack that are looked at. */
#define NESTED_MAX 32u
#define FRAMES_MAX 16384u

/* How many of the innermost frames are not known. */
#define INNERMOST 2u

/* The second word of a value: what else is known of a frame than its kind, which is the first word. */
#define OWN_METHOD UINT64_C(1)
#define FINISH	   UINT64_C(2)

/* The bit that is set in all flags, because they are a Fixnum. In a key it is cleared if the frame has no pc. */
#define NO_PC UINT64_C(1)

struct known_frames {
	struct word_table *table; /* the keys: see read_key() */
	struct known_stack found;
	size_t capacity;
};

struct known_frames *known_frames_create(void)
{
	struct known_frames *known = calloc(1, sizeof(*known));

	if (!known)
		return NULL;
	known->table = word_table_create(SLOTS);
	if (!known->table) {
		known_frames_destroy(known);
		return NULL;
	}
	return known;
}

void known_frames_destroy(struct known_frames *known)
{
	if (!known)
		return;
	word_table_destroy(known->table);
	free(known->found.frames);
	free(known);
}

void known_frames_forget(struct known_frames *known)
{
	word_table_forget(known->table);
}

/* The bytes of a frame. */
static const uint8_t *frame_at(const struct stack_copy *copy, uint64_t cfp)
{
	return copy->of_stack[PIECE_FRAMES].data + (cfp - copy->of_stack[PIECE_FRAMES].address);
}

/*
 * Reads the key of a frame: its code, its method entry and its flags, with bit 0 cleared if it has no pc. False if it has
 * none.
 */
static bool read_key(const struct stack_copy *copy, const uint8_t *frame, struct word_key *ret)
{
	const uint64_t local = (uint64_t)copy->layout->enumerators[E_VM_ENV_FLAG_LOCAL].value;
	const uint8_t *env = stack_copy_env(copy, stack_copy_member(copy, frame, F_cfp_ep));
	uint64_t *method = &ret->of[1], own_flags;

	if (!env)
		return false;
	own_flags = stack_copy_word(env + ENVIRONMENT_BEFORE);
	ret->of[0] = stack_copy_member(copy, frame, F_cfp_iseq);
	ret->of[2] = stack_copy_member(copy, frame, F_cfp_pc) != 0 ? own_flags : own_flags & ~NO_PC;
	for (unsigned int nested = 0; env && nested < NESTED_MAX; nested++) {
		const uint64_t flags = stack_copy_word(env + ENVIRONMENT_BEFORE);

		*method = stack_copy_word(env);
		if (!environment_has_flags(flags))
			return false;
		if (flags & local)
			return *method != 0;
		if (*method != 0)
			return false;
		env = stack_copy_env(copy, environment_previous(stack_copy_word(env + 8)));
	}
	return false;
}

/* How many frames a copy has, if they can be known at all; otherwise 0. `end` receives where the oldest frame ends. */
static size_t count_of(const struct stack_copy *copy, uint64_t *end)
{
	const struct stack_facts *facts = &copy->facts;
	const struct layout *layout = copy->layout;

	/* There is one frame more, which was never called (vm.c, rb_ec_initialize_vm_stack). */
	*end = facts->vm_stack + facts->words * 8 - facts->frame_size;
	if (layout_has(layout, F_cfp_flag) || layout_has(layout, F_cfp_me) || copy->zjit_frame_length > 0 ||
	    copy->nr_of_stack <= PIECE_VALUES || facts->frame_size == 0 ||
	    *end + facts->frame_size != copy->extent.end || facts->cfp >= *end)
		return 0;
	return (size_t)((*end - facts->cfp) / facts->frame_size);
}

void known_frames_find(struct known_frames *known, const struct stack_copy *copy)
{
	const bool has_jit = layout_has(copy->layout, F_cfp_jit_return);
	struct known_stack *found = &known->found;
	const size_t count = count_of(copy, &found->end);

	found->count = 0;
	if (count <= INNERMOST || count > FRAMES_MAX || word_table_count(known->table) == 0 ||
	    !array_make_room(found->frames, known->capacity, count))
		return;
	found->count = count - INNERMOST;
	for (size_t i = 0; i < found->count; i++) {
		const uint64_t cfp = found->end - (i + 1) * copy->facts.frame_size;
		const uint8_t *bytes = frame_at(copy, cfp);
		const struct word_value *frame;
		struct word_key key;

		found->frames[i].kind = FRAME_UNREADABLE;
		frame = read_key(copy, bytes, &key) ? word_table_find(known->table, key) : NULL;
		if (!frame)
			continue;
		found->frames[i] = (struct frame){
		    .cfp = cfp,
		    .pc = stack_copy_member(copy, bytes, F_cfp_pc),
		    .iseq = key.of[0],
		    .method = key.of[1],
		    .kind = (enum frame_kind)frame->of[0],
		    .own_method = frame->of[1] & OWN_METHOD,
		    .finish = frame->of[1] & FINISH,
		    .jit = has_jit && stack_copy_member(copy, bytes, F_cfp_jit_return) != 0,
		};
	}
}

const struct known_stack *known_frames_found(const struct known_frames *known)
{
	return &known->found;
}

void known_frames_add(struct known_frames *known, const struct stack_copy *copy, const struct frame *frame)
{
	const uint64_t facts = (frame->own_method ? OWN_METHOD : 0) | (frame->finish ? FINISH : 0);
	struct word_key key;

	if (read_key(copy, frame_at(copy, frame->cfp), &key) && key.of[0] == frame->iseq &&
	    key.of[1] == frame->method && !word_table_put(known->table, key, (struct word_value){{frame->kind, facts}}))
		word_table_forget(known->table);
}
