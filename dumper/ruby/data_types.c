#include "ruby/data_types.h"

#include <string.h>

#include "ruby/value.h"

/* The longest name that is known, with its NUL, is shorter. */
#define NAME_BYTES 40

/* Since v4.0.0, queues have other names; since v3_2_0, the tables of autoload. */
static const struct {
	const char *name;
	enum data_kind kind;
} known[] = {
    {"proc", DATA_PROC},
    {"binding", DATA_BINDING},
    {"mutex", DATA_MUTEX},
    {"queue", DATA_QUEUE},
    {"Thread::Queue", DATA_QUEUE},
    {"sized_queue", DATA_SIZED_QUEUE},
    {"Thread::SizedQueue", DATA_SIZED_QUEUE},
    {"T_IMEMO/iseq", DATA_CODE},
    {"autoload", DATA_AUTOLOAD},
    {"autoload_table", DATA_AUTOLOAD},
    {"memory_view/exported_object_registry", DATA_EXPORTED},
    {"backtrace", DATA_BACKTRACE},
    {"VM/env", DATA_ENVIRONMENT},
    {"set", DATA_SET},
    {"VM/thread", DATA_THREAD},
    {"fiber", DATA_FIBER},
    {"VM/cc_table", DATA_CALLS},
};

static size_t place_of(uint64_t address)
{
	return address / 8 % DATA_TYPES_KEPT;
}

/* The name can be at the end of a page, and nothing behind it, so no more bytes are read than a name has. */
static enum data_kind kind_of(const struct access *access, uint64_t type)
{
	struct access try = *access;
	const uint64_t name = access_member(&try, type, F_data_type_name);
	char buffer[NAME_BYTES];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const size_t length = strlen(known[i].name) + 1;

		try = *access;
		if (length <= sizeof(buffer) && access_bytes(&try, name, buffer, length) &&
		    memcmp(buffer, known[i].name, length) == 0)
			return known[i].kind;
	}
	return DATA_OTHER;
}

const struct data_type *data_types_read(struct data_types *types, const struct layout *layout, struct memory *lasting,
					uint64_t address)
{
	struct data_type *kept = &types->kept[place_of(address)];
	struct access access = access_begin(lasting, layout);
	struct data_type type = {.address = address};

	if (address == 0 || kept->address == address)
		return address != 0 ? kept : NULL;
	type.offsets = access_member(&access, address, F_data_type_dmark);
	type.marks = type.offsets != 0;
	if (layout->enumerators[E_RUBY_TYPED_DECL_MARKING].present)
		type.declared = slot_has_flag(layout, access_member(&access, address, F_data_type_flags),
					      E_RUBY_TYPED_DECL_MARKING);
	if (access.failed)
		return NULL;
	type.kind = kind_of(&access, address);
	*kept = type;
	return kept;
}

const struct data_type *data_types_kept(const struct data_types *types, uint64_t address)
{
	const struct data_type *kept = &types->kept[place_of(address)];

	return address != 0 && kept->address == address ? kept : NULL;
}

struct typed data_types_slot(const struct layout *layout, const struct object_slot *slot, uint64_t flags)
{
	return typed_decode(layout, slot->address, flags, slot_member(layout, slot, F_typed_data_type),
			    slot_member(layout, slot, F_typed_data_typed_flag),
			    slot_member(layout, slot, F_typed_data_data), slot_member(layout, slot, F_plain_data_data));
}
