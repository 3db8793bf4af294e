#include "ruby/data_refs.h"

#include <string.h>

#include "ruby/typed.h"

/* rtypeddata.h, RUBY_REF_END, v3_3_0 to v4_0_5 and head. */
#define OFFSETS_END UINT64_MAX
#define OFFSETS_MAX 4096

/*
 * malloc/malloc.c of glibc: before the memory is its size, a multiple of 16, with three flags. Behind it is the next
 * chunk, whose PREV_INUSE says that this one is in use.
 */
#define CHUNK_FLAGS UINT64_C(7)
#define PREV_INUSE  UINT64_C(1)
#define IS_MMAPPED  UINT64_C(2)
#define CHUNK_MAX   (UINT64_C(16) << 20)

/* The longest name of a type. */
#define NAME_MAX_BYTES 128

/* How many words are looked at if the length of the memory is not known. */
#define WORDS_UNKNOWN 32u

static struct typed read_slot(const struct layout *layout, const struct object_slot *slot, uint64_t flags)
{
	return typed_decode(layout, slot->address, flags, slot_member(layout, slot, F_typed_data_type),
			    slot_member(layout, slot, F_typed_data_typed_flag),
			    slot_member(layout, slot, F_typed_data_data), slot_member(layout, slot, F_plain_data_data));
}

static bool is_named(struct access *access, uint64_t type, const char *name)
{
	char buffer[16];
	const size_t length = strlen(name) + 1;

	return length <= sizeof(buffer) &&
	       access_bytes(access, access_member(access, type, F_data_type_name), buffer, length) &&
	       memcmp(buffer, name, length) == 0;
}

/* Looks at a type. Returns NULL if it cannot be read. */
static const struct data_type *read_type(struct refs_walk *walk, uint64_t address)
{
	const struct layout *layout = walk->refs->layout;
	struct data_type *kept = &walk->refs->types[address / 8 % DATA_TYPES_KEPT];
	struct access access = access_begin(walk->refs->ivars.lasting, layout);
	struct data_type type = {.address = address};
	struct access name = access;

	if (kept->address == address)
		return kept;
	type.offsets = access_member(&access, address, F_data_type_dmark);
	type.marks = type.offsets != 0;
	if (layout->enumerators[E_RUBY_TYPED_DECL_MARKING].present)
		type.declared = slot_has_flag(layout, access_member(&access, address, F_data_type_flags),
					      E_RUBY_TYPED_DECL_MARKING);
	if (access.failed)
		return NULL;
	if (is_named(&name, address, "proc"))
		type.kind = DATA_PROC;
	else if (is_named(&name, address, "binding"))
		type.kind = DATA_BINDING;
	*kept = type;
	return kept;
}

/* proc.c, block_mark, v2_4_0 to v4_0_5 and head. */
static bool block(const struct refs_walk *walk, uint64_t at)
{
	const struct layout *layout = walk->refs->layout;
	uint64_t ep;

	if (!layout_has(layout, F_block_type) || !layout->enumerators[E_block_type_ifunc].present)
		return false;
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

/* How many words the memory at an address has, if it is from glibc's malloc(). */
static uint64_t words_of(const struct refs_walk *walk, uint64_t address)
{
	struct access try = *walk->access;
	const uint64_t header = access_word(&try, address - 8);
	const uint64_t size = header & ~CHUNK_FLAGS;
	const bool fits = !try.failed && size % 16 == 0 && size >= 32 && size <= CHUNK_MAX;

	if (fits && (header & IS_MMAPPED || access_word(&try, address - 8 + size) & PREV_INUSE) && !try.failed)
		return size / 8 - 1;
	return WORDS_UNKNOWN;
}

static void conservative(struct refs_walk *walk, const struct typed *data)
{
	const uint64_t offset = walk->refs->layout->members[F_typed_data_data].offset;

	if (data->embedded) {
		for (uint64_t i = 0; offset + i * 8 < walk->slot->size; i++)
			refs_give(walk, slot_word(walk->slot, offset + i * 8), REF_DATA, i, REF_CONSERVATIVE);
		return;
	}
	refs_give_words(walk, data->data, words_of(walk, data->data), REF_DATA, REF_CONSERVATIVE);
}

bool data_refs(struct refs_walk *walk)
{
	const struct layout *layout = walk->refs->layout;
	const struct typed data = read_slot(layout, walk->slot, walk->flags);
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
		type = read_type(walk, data.type);
		if (type && !type->marks)
			return true;
		if (type && type->declared)
			return declared(walk, type, data.data);
		if (type && type->kind == DATA_PROC && layout_has(layout, F_proc_block))
			return block(walk, access_address(walk->access, data.data, F_proc_block));
		if (type && type->kind == DATA_BINDING && layout_has(layout, F_binding_block)) {
			refs_give_member(walk, data.data, F_binding_pathobj, "path");
			return block(walk, access_address(walk->access, data.data, F_binding_block));
		}
	}
	conservative(walk, &data);
	return false;
}

uint64_t data_refs_outside(const struct layout *layout, const struct object_slot *slot, uint64_t flags,
			   uint64_t *length)
{
	const struct typed data = read_slot(layout, slot, flags);

	/* Most such memory is short. Before it is its length, if it is from glibc's malloc(). */
	*length = 8 * WORDS_UNKNOWN + 8;
	return data.embedded || data.data < 8 ? 0 : data.data - 8;
}

uint64_t data_refs_type(const struct layout *layout, const struct object_slot *slot, uint64_t flags)
{
	return read_slot(layout, slot, flags).type;
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
