#include "ruby/object_text.h"

#include <inttypes.h>
#include <string.h>

#include "ruby/class.h"
#include "ruby/data_refs.h"
#include "ruby/object_type.h"
#include "ruby/symbol.h"
#include "ruby/value.h"

static void add_id(const struct ruby *ruby, struct access *access, uint64_t id, const char *prefix, struct text *text)
{
	struct access try = *access;

	text_format(text, "%s", prefix);
	if (id == 0 || !symbol_add(ruby, &try, id, text))
		text_format(text, "?");
}

/* A String, shortened, with quotes. Control characters are escaped by what prints the text. */
static void add_string(struct access *access, uint64_t object, struct text *text)
{
	struct access try = *access;
	struct bytes bytes = value_string(&try, object);
	const uint64_t length = bytes.length;

	if (try.failed) {
		text_format(text, "String");
		return;
	}
	text_format(text, "\"");
	if (bytes.length > OBJECT_TEXT_BYTES)
		bytes.length = OBJECT_TEXT_BYTES;
	value_append(text, &try, bytes);
	text_format(text, "\"");
	if (length > OBJECT_TEXT_BYTES)
		text_format(text, "… (%" PRIu64 " bytes)", length);
}

static void add_class_of(struct access *access, const struct ruby *ruby, uint64_t klass, struct text *text)
{
	struct access try = *access;
	const size_t before = text->length;
	const uint64_t real = class_real(&try, klass);

	if (real != 0)
		class_add_name(ruby, &try, real, text);
	if (text->length == before)
		text_format(text, "object");
}

/* How many entries an Array or a Hash has. */
static void add_count(struct access *access, const struct object_slot *slot, uint64_t flags, struct text *text)
{
	const struct layout *layout = access->layout;
	struct access try = *access;
	const struct layout_number *mask = &layout->enumerators[E_RHASH_AR_TABLE_SIZE_MASK];
	const struct layout_number *shift = &layout->enumerators[E_RHASH_AR_TABLE_SIZE_SHIFT];
	uint64_t count = 0, elements, table;

	if (slot_is(layout, flags, E_RUBY_T_ARRAY)) {
		count = value_array(&try, slot->address, &elements);
	} else {
		table = slot_hash_st(layout, slot, flags);
		if (table != 0)
			count = access_member(&try, table, F_st_num_entries);
		else if (mask->present && shift->present)
			count = (flags & (uint64_t)mask->value) >> shift->value;
	}
	if (!try.failed)
		text_format(text, " (%" PRIu64 " %s)", count, count == 1 ? "entry" : "entries");
}

static void add_module(const struct ruby *ruby, struct access *access, uint64_t object, const char *what,
		       struct text *text)
{
	struct access try = *access;

	text_format(text, "%s ", what);
	class_add_name(ruby, &try, object, text);
}

static void add_object(const struct ruby *ruby, struct access *access, uint64_t object, struct text *text)
{
	const struct layout *layout = access->layout;
	uint8_t bytes[64];
	const struct object_slot slot = {object, bytes, sizeof(bytes)};
	struct access try = *access;
	const char *name;
	uint64_t flags;

	/* The smallest slot has 40 bytes (gc.c, RVALUE, v1_9_3_0 to v3_4_9), or 32 (head). */
	memset(bytes, 0, sizeof(bytes));
	if (!access_bytes(&try, object, bytes, 32)) {
		text_format(text, "object");
		return;
	}
	access_bytes(&try, object + 32, bytes + 32, 32);
	try = *access;
	flags = slot_flags(layout, &slot);
	name = object_type_name(layout, flags & access_enum(access, E_RUBY_T_MASK));
	if (slot_is(layout, flags, E_RUBY_T_STRING)) {
		add_string(access, object, text);
	} else if (slot_is(layout, flags, E_RUBY_T_CLASS)) {
		add_module(ruby, access, object, "class", text);
	} else if (slot_is(layout, flags, E_RUBY_T_MODULE)) {
		add_module(ruby, access, object, "module", text);
	} else if (slot_is(layout, flags, E_RUBY_T_IMEMO)) {
		name = object_imemo_name(layout, value_imemo_type(layout, flags));
		text_format(text, "%s", name ? name : "internal object");
	} else if (slot_is(layout, flags, E_RUBY_T_ICLASS) || !name) {
		text_format(text, "%s", name ? "included module" : "no object");
	} else {
		if (slot_member(layout, &slot, F_basic_klass) != 0)
			add_class_of(access, ruby, slot_member(layout, &slot, F_basic_klass), text);
		else
			text_format(text, "internal %s", name);
		if (slot_is(layout, flags, E_RUBY_T_ARRAY) || slot_is(layout, flags, E_RUBY_T_HASH))
			add_count(access, &slot, flags, text);
	}
}

static void add_value(const struct ruby *ruby, struct access *access, uint64_t value, struct text *text)
{
	const struct layout *layout = access->layout;
	const struct layout_number *symbol = &layout->enumerators[E_RUBY_SYMBOL_FLAG];
	const struct layout_number *shift = &layout->enumerators[E_RUBY_SPECIAL_SHIFT];

	/* special_consts.h, v1_9_3_0 to v4_0_5 and head: the lowest bit of an Integer is set. */
	if (value & 1)
		text_format(text, "%" PRId64, (int64_t)value >> 1);
	else if (value == 0)
		text_format(text, "false");
	else if (value == access_enum(access, E_RUBY_Qnil))
		text_format(text, "nil");
	else if (symbol->present && shift->present && (value & 0xff) == (uint64_t)symbol->value)
		add_id(ruby, access, value >> shift->value, ":", text);
	else if (value_is_object(value))
		add_object(ruby, access, value, text);
	else
		text_format(text, "0x%" PRIx64, value);
}

void object_add_text(const struct ruby *ruby, struct access *access, uint64_t value, struct text *text)
{
	add_value(ruby, access, value, text);
	if (value_is_object(value))
		text_format(text, " 0x%" PRIx64, value);
}

static void add_ivar(const struct ruby *ruby, struct access *access, struct ivars *ivars, uint64_t from, uint64_t index,
		     struct text *text)
{
	struct access try = *access;
	const uint64_t flags = value_flags(&try, from), klass = access_member(&try, from, F_basic_klass);
	const uint64_t id = try.failed ? 0 : ivars_id(ivars, klass, flags, index);

	if (id != 0)
		add_id(ruby, access, id, "", text);
	else
		text_format(text, "instance variable %" PRIu64, index);
}

void object_add_ref(const struct ruby *ruby, struct access *access, struct ivars *ivars, uint64_t from,
		    const struct object_ref *ref, struct text *text)
{
	static const char *const plain[] = {
	    [REF_CLASS] = "class",	     [REF_KEY] = "key",
	    [REF_DEFAULT] = "default value", [REF_SHARED] = "shares its bytes with",
	    [REF_SUPER] = "superclass",	     [REF_CODE] = "code",
	};

	switch (ref->label) {
	case REF_IVAR:
		add_ivar(ruby, access, ivars, from, ref->name, text);
		break;
	case REF_IVAR_NAMED:
		add_id(ruby, access, ref->name, "", text);
		break;
	case REF_ELEMENT:
		text_format(text, "[%" PRIu64 "]", ref->name);
		break;
	case REF_MEMBER:
		text_format(text, "member %" PRIu64, ref->name);
		break;
	case REF_VALUE:
		text_format(text, "[");
		add_value(ruby, access, ref->name, text);
		text_format(text, "]");
		break;
	case REF_CONSTANT:
		add_id(ruby, access, ref->name, "constant ", text);
		break;
	case REF_CLASS_VARIABLE:
		add_id(ruby, access, ref->name, "class variable ", text);
		break;
	case REF_METHOD:
		add_id(ruby, access, ref->name, "method ", text);
		break;
	case REF_VARIABLE:
		text_format(text, "local variable %" PRIu64, ref->name);
		break;
	case REF_PART:
		text_format(text, "%s", (const char *)(uintptr_t)ref->name);
		break;
	case REF_DATA:
		text_format(text, "word %" PRIu64 " of its memory", ref->name);
		break;
	default:
		text_format(text, "%s", plain[ref->label]);
	}
}
