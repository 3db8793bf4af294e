#include "ruby/data_refs.h"

#include "ruby/class_refs.h"
#include "ruby/malloc_chunk.h"
#include "ruby/thread_refs.h"

/* rtypeddata.h, RUBY_REF_END, v3_3_0 to v4_0_5 and head. */
#define OFFSETS_END UINT64_MAX
#define OFFSETS_MAX 4096

/* The most memory from malloc() that is looked at, but for Sets. */
#define CHUNK_MAX (UINT64_C(16) << 20)

/* The most memory of the elements of a Set that is looked at: those of more than 30 million. */
#define SET_MAX (UINT64_C(1) << 30)

/* The longest name of a type. */
#define NAME_MAX_BYTES 128

/* The most values of an environment. */
#define ENVIRONMENT_MAX 65536

/* How many words are looked at if the length of the memory is not known. */
#define WORDS_UNKNOWN 32u

/* proc.c, block_mark, v2_4_0 to v4_0_5 and head. */
static bool block(const struct refs_walk *walk, uint64_t at)
{
	uint64_t ep;

	if (access_member(walk->access, at, F_block_type) > access_enum(walk->access, E_block_type_ifunc)) {
		/* A Symbol or a Proc is in the place of the receiver. */
		refs_give_member(walk, at, F_block_self, "block");
		return true;
	}
	refs_give_member(walk, at, F_block_self, "self");
	refs_give(walk, access_member(walk->access, at, F_block_code), REF_CODE, 0, REF_EXACT);
	ep = access_member(walk->access, at, F_block_ep);
	/* vm_core.h, VM_ENV_DATA_INDEX_ENV: the environment that `ep` points into. A block of a C function has none. */
	if (ep != 0)
		refs_give(walk, access_word(walk->access, ep + 8), REF_PART, (uint64_t)(uintptr_t) "environment",
			  REF_EXACT);
	return !walk->access->failed;
}

/* rb_gc_mark_children, v3_3_0 to v4_0_5 and head. */
static bool declared(struct refs_walk *walk, const struct data_type *type, uint64_t address)
{
	for (uint64_t i = 0; i < OFFSETS_MAX && refs_step(walk); i++) {
		const uint64_t offset = access_word(walk->access, type->offsets + i * 8);

		if (walk->access->failed || offset == OFFSETS_END)
			return !walk->access->failed;
		refs_give(walk, access_word(walk->access, address + offset), REF_DATA, offset / 8, REF_DECLARED);
	}
	return false;
}

/*
 * The code of a RubyVM::InstructionSequence; 0 if it is not found. Up to v3_3_11, the code is in the place of a struct;
 * later, the struct has a pointer to it (iseq.c, iseqw_mark). Code has a pointer to its object.
 */
static uint64_t code_of(const struct refs_walk *walk, uint64_t data)
{
	struct access try = *walk->access;
	uint64_t code;

	if (!layout_has(try.layout, F_iseq_wrapper))
		return 0;
	if (access_member(&try, data, F_iseq_wrapper) == walk->slot->address && !try.failed)
		return data;
	try = *walk->access;
	code = access_word(&try, data);
	return access_member(&try, code, F_iseq_wrapper) == walk->slot->address && !try.failed ? code : 0;
}

/* Whether a block can be read: up to 2.3, it has another form. */
static bool blocks_are_known(const struct layout *layout)
{
	return layout_has(layout, F_block_type) && layout->enumerators[E_block_type_ifunc].present;
}

/* Whether the struct of a type of Ruby itself can be read with by_kind(): whether the layout has its members. */
static bool is_known(const struct refs_walk *walk, enum data_kind kind, uint64_t data)
{
	const struct layout *layout = walk->refs->layout;

	switch (kind) {
	case DATA_PROC:
		return layout_has(layout, F_proc_block) && blocks_are_known(layout);
	case DATA_BINDING:
		return layout_has(layout, F_binding_block) && blocks_are_known(layout);
	case DATA_QUEUE:
	case DATA_SIZED_QUEUE:
		return layout_has(layout, F_queue_que);
	case DATA_CODE:
		return code_of(walk, data) != 0;
	case DATA_AUTOLOAD:
	case DATA_EXPORTED:
		return true;
	case DATA_THREAD:
	case DATA_FIBER:
		return thread_refs_are_known(layout);
	case DATA_CALLS:
		return class_refs_caches_are_known(layout);
	default:
		return false;
	}
}

static bool by_kind(struct refs_walk *walk, enum data_kind kind, uint64_t data)
{
	switch (kind) {
	case DATA_PROC:
		return block(walk, access_address(walk->access, data, F_proc_block));
	case DATA_BINDING:
		refs_give_member(walk, data, F_binding_pathobj, "path");
		if (!block(walk, access_address(walk->access, data, F_binding_block)))
			return false;
		/* proc.c, binding_mark, v2_4_0 to v2_4_10: the path has another form. */
		if (layout_has(walk->refs->layout, F_binding_pathobj))
			return true;
		refs_give_words(walk, data, (uint64_t)walk->refs->layout->sizes[S_binding].value / 8, REF_DATA,
				REF_CONSERVATIVE);
		return false;
	case DATA_QUEUE:
	case DATA_SIZED_QUEUE:
		/* thread_sync.c, queue_mark, v2_5_0 to v4.0.5. An rb_szqueue begins with its rb_queue. */
		refs_give_member(walk, data, F_queue_que, "elements");
		return !walk->access->failed;
	case DATA_CODE:
		refs_give(walk, code_of(walk, data), REF_CODE, 0, REF_EXACT);
		return true;
	case DATA_AUTOLOAD:
		return refs_give_table(walk, data, REF_CONSTANT, false);
	case DATA_EXPORTED:
		/* The values are small numbers. */
		return refs_give_table(walk, data, REF_VALUE, true);
	case DATA_THREAD:
		return thread_refs(walk, data);
	case DATA_FIBER:
		return fiber_refs(walk, data);
	case DATA_CALLS:
		return class_refs_caches(walk, data);
	default:
		return false;
	}
}

/*
 * The frames of a backtrace: up to v3_2_11, the first word of its struct leads to memory with all of them; later, they are
 * in the struct itself (vm_backtrace.c, rb_backtrace_t). No layout has the members, so they are found conservatively.
 */
static void give_frames(struct refs_walk *walk, uint64_t data)
{
	struct access try = *walk->access;
	const uint64_t frames = access_word(&try, data),
		       words = try.failed ? 0 : malloc_chunk_words(walk->access, frames, CHUNK_MAX);

	if (words > 0)
		refs_give_words(walk, frames, words, REF_CODE, REF_CONSERVATIVE);
}

/*
 * vm.c, env_mark, v1_9_3_0 to v2_1_10: the values are in memory that the first word of the struct leads to. In 2.2 and 2.3
 * they are in the struct itself, behind their number.
 */
static void give_environment(struct refs_walk *walk, uint64_t data)
{
	const struct layout *layout = walk->refs->layout;
	struct access try = *walk->access;
	uint64_t values, count;

	if (!layout_has(layout, F_env_values) || !layout_has(layout, F_env_size) ||
	    layout->members[F_env_values].offset > layout->members[F_env_size].offset)
		return;
	values = access_member(&try, data, F_env_values);
	count = access_member(&try, data, F_env_size);
	if (!try.failed && values != 0 && count <= ENVIRONMENT_MAX)
		refs_give_words(walk, values, count, REF_DATA, REF_CONSERVATIVE);
}

/*
 * The elements of a Set: its struct is in its slot, and has a pointer to memory with a hash and a key for each element
 * (set.c, struct set_object; internal/set_table.h; st.c, struct set_table_entry; v4_0_0 to v4_0_5). No layout has the
 * members, so each word is looked at that can be this pointer, and the elements are found conservatively.
 */
static void give_elements(struct refs_walk *walk)
{
	const uint64_t offset = walk->refs->layout->members[F_typed_data_data].offset;

	for (uint64_t at = offset; at < walk->slot->size; at += 8) {
		const uint64_t entries = slot_word(walk->slot, at);
		const uint64_t words =
		    entries < 8 || entries % 16 != 0 ? 0 : malloc_chunk_words(walk->access, entries, SET_MAX);

		if (words > 0)
			refs_give_words(walk, entries, words, REF_KEY, REF_CONSERVATIVE);
	}
}

static void conservative(struct refs_walk *walk, const struct typed *data)
{
	const uint64_t offset = walk->refs->layout->members[F_typed_data_data].offset;
	uint64_t words;

	if (data->embedded) {
		for (uint64_t i = 0; offset + i * 8 < walk->slot->size; i++)
			refs_give(walk, slot_word(walk->slot, offset + i * 8), REF_DATA, i, REF_CONSERVATIVE);
		return;
	}
	words = malloc_chunk_words(walk->access, data->data, CHUNK_MAX);
	refs_give_words(walk, data->data, words > 0 ? words : WORDS_UNKNOWN, REF_DATA, REF_CONSERVATIVE);
}

bool data_refs(struct refs_walk *walk)
{
	const struct layout *layout = walk->refs->layout;
	const struct typed data = data_types_slot(layout, walk->slot, walk->flags);
	const struct data_type *type;

	if (layout_has(layout, F_typed_data_fields) && data.type != 0)
		refs_give(walk, slot_member(layout, walk->slot, F_typed_data_fields), REF_PART,
			  (uint64_t)(uintptr_t) "instance variables", REF_EXACT);
	if (data.data == 0)
		return true;
	if (data.type == 0) {
		if (layout_has(layout, F_plain_data_dmark) && slot_member(layout, walk->slot, F_plain_data_dmark) == 0)
			return true;
	} else {
		type = data_types_read(&walk->refs->types, layout, walk->refs->ivars.lasting, data.type);
		if (type && !type->marks)
			return true;
		if (type && type->declared)
			return declared(walk, type, data.data);
		if (type && is_known(walk, type->kind, data.data))
			return by_kind(walk, type->kind, data.data);
		if (type && type->kind == DATA_BACKTRACE && !data.embedded)
			give_frames(walk, data.data);
		if (type && type->kind == DATA_ENVIRONMENT && !data.embedded)
			give_environment(walk, data.data);
		if (type && type->kind == DATA_SET && data.embedded)
			give_elements(walk);
	}
	conservative(walk, &data);
	return false;
}

uint64_t data_refs_outside(const struct layout *layout, const struct object_slot *slot, uint64_t flags,
			   uint64_t *length)
{
	const struct typed data = data_types_slot(layout, slot, flags);

	/* Most such memory is short. Before it is its length, if it is from glibc's malloc(). */
	*length = 8 * WORDS_UNKNOWN + 8;
	return data.embedded || data.data < 8 ? 0 : data.data - 8;
}

uint64_t data_refs_type(const struct layout *layout, const struct object_slot *slot, uint64_t flags)
{
	return data_types_slot(layout, slot, flags).type;
}

struct bytes data_refs_type_name(struct access *access, uint64_t type)
{
	const struct bytes none = {0};
	struct access try = *access;
	uint64_t name;

	if (type == 0 || !layout_has(access->layout, F_data_type_name))
		return none;
	name = access_member(&try, type, F_data_type_name);
	return name != 0 && !try.failed ? value_c_string(&try, name, NAME_MAX_BYTES) : none;
}
