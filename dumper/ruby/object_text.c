#include "ruby/object_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ruby/class.h"
#include "ruby/code.h"
#include "ruby/data_refs.h"
#include "ruby/number_text.h"
#include "ruby/object_type.h"
#include "ruby/symbol.h"
#include "ruby/value.h"

/* special_consts.h (up to 2.7 ruby.h), RUBY_Qtrue with flonum, v2_0_0_0 to v4_0_5 and head. */
#define QTRUE 0x14u

/* The most bytes of a description, without the address: a hostile target can have names of any length. */
#define NAME_MAX_BYTES 512u

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
	struct bytes bytes = value_long_string(&try, object);
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

/*
 * The place of a module among the superclasses of a class that includes it (class.c, rb_include_class_new, v1_9_3_0 to
 * v4_0_5 and head): its klass is the module, unless it is the origin of a class.
 */
static void add_included(const struct ruby *ruby, struct access *access, uint64_t module, struct text *text)
{
	struct access try = *access;

	if (value_is_object(module) && slot_is(access->layout, value_flags(&try, module), E_RUBY_T_MODULE))
		add_module(ruby, access, module, "included module", text);
	else
		text_format(text, "included module");
}

/* An object that programs do not see: its type, and of a T_DATA the name of its C type. */
static void add_internal(const struct access *from, const struct object_slot *slot, const char *type, struct text *text)
{
	const uint64_t flags = slot_flags(from->layout, slot);
	struct access access = *from;
	struct bytes name = {0};

	text_format(text, "internal %s", type);
	if (slot_is(access.layout, flags, E_RUBY_T_DATA))
		name = data_refs_type_name(&access, data_refs_type(access.layout, slot, flags));
	if (name.length == 0)
		return;
	text_format(text, " (");
	value_append(text, &access, name);
	text_format(text, ")");
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
	} else if (slot_is(layout, flags, E_RUBY_T_ICLASS)) {
		add_included(ruby, access, slot_member(layout, &slot, F_basic_klass), text);
	} else if (!name) {
		text_format(text, "no object");
	} else {
		if (slot_member(layout, &slot, F_basic_klass) != 0)
			add_class_of(access, ruby, slot_member(layout, &slot, F_basic_klass), text);
		else
			add_internal(access, &slot, name, text);
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
	else if (value == QTRUE)
		text_format(text, "true");
	else if ((value & 3) == 2)
		number_add_float(number_of_flonum(value), text);
	else
		text_format(text, "0x%" PRIx64, value);
}

void object_add_text(const struct ruby *ruby, struct access *access, uint64_t value, struct text *text)
{
	const size_t before = text->length;

	add_value(ruby, access, value, text);
	text_shorten(text, before, NAME_MAX_BYTES);
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

/* A local variable in an imemo_env: its name, or its index if Ruby itself uses it. */
static void add_local(const struct ruby *ruby, struct access *access, uint64_t env, uint64_t index, struct text *text)
{
	struct access try = *access;
	const uint64_t iseq = layout_has(access->layout, F_env_iseq) ? access_member(&try, env, F_env_iseq) : 0;
	const uint64_t body = value_is_object(iseq) ? code_body(&try, iseq) : 0;
	struct text name = {0};
	uint64_t id = 0;

	if (body != 0 && layout_has(access->layout, F_body_local_table) &&
	    layout_has(access->layout, F_body_local_table_size) &&
	    index < access_member(&try, body, F_body_local_table_size))
		id = access_word(&try, access_member(&try, body, F_body_local_table) + index * 8);
	if (!try.failed && id != 0 && symbol_add(ruby, &try, id, &name) && name.length > 0) {
		text_format(text, "local variable ");
		text_add(text, name.data, name.length);
	} else {
		text_format(text, "local variable %" PRIu64, index);
	}
	text_clear(&name);
}

/* References whose `name` is an ID: what is before it. */
static const char *prefix_of(enum ref_label label)
{
	switch (label) {
	case REF_IVAR_NAMED:
		return "";
	case REF_CONSTANT:
		return "constant ";
	case REF_CLASS_VARIABLE:
		return "class variable ";
	case REF_FIBER_LOCAL:
		return "fiber-local variable ";
	case REF_METHOD:
		return "method ";
	default:
		return NULL;
	}
}

void object_add_ref(const struct ruby *ruby, struct access *access, struct ivars *ivars, uint64_t from,
		    const struct object_ref *ref, struct text *text)
{
	static const char *const plain[] = {
	    [REF_CLASS] = "class",	     [REF_KEY] = "key",
	    [REF_DEFAULT] = "default value", [REF_SHARED] = "shared contents",
	    [REF_SUPER] = "superclass",	     [REF_CODE] = "code",
	};

	if (prefix_of(ref->label)) {
		add_id(ruby, access, ref->name, prefix_of(ref->label), text);
		return;
	}
	switch (ref->label) {
	case REF_IVAR:
		add_ivar(ruby, access, ivars, from, ref->name, text);
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
	case REF_VARIABLE:
		add_local(ruby, access, from, ref->name, text);
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
