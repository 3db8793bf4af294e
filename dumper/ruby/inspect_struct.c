/* Structs, instances of Data, Ranges, and other objects with their instance variables: see inspect.h. */
#include <string.h>

#include "ruby/class.h"
#include "ruby/inspect.h"
#include "ruby/inspect_parts.h"
#include "ruby/object_slot.h"
#include "ruby/st.h"
#include "ruby/symbol.h"

/* How many superclasses of a Struct are looked at. */
#define ANCESTORS_MAX 32

/* How many instance variables of a class are looked at, to find the names of a Struct's members. */
#define CLASS_IVARS_MAX 64u

/*
 * range.c, range_initialize, v1_9_3_0 to v4_0_5 and head: a Range is a struct of its ends, and of whether the last is excluded.
 */
enum range_member { RANGE_FIRST, RANGE_LAST, RANGE_EXCLUDES, RANGE_MEMBERS };

/* Words of the target that are VALUEs. */
struct words {
	uint64_t address, count;
};

/* What the class of a struct tells. */
struct struct_class {
	enum { OF_STRUCT, OF_DATA, OF_RANGE } of;
	uint64_t members; /* an Array of Symbols; 0 if it was not found */
};

static bool is_named(struct inspect *inspect, uint64_t id, const char *name)
{
	struct access access = ruby_access(inspect->ruby);

	return id != 0 && value_bytes_are(&access, symbol_name(inspect->ruby, &access, id), name) && !access.failed;
}

/* An instance variable of a class since 3.3: its shape tells where it is. */
static uint64_t class_ivar_by_shape(struct inspect *inspect, uint64_t klass, const char *name)
{
	struct access access = ruby_access(inspect->ruby);
	const uint64_t flags = value_flags(&access, klass), ivars = class_ivars_in_order(&access, klass);
	struct object_shape shape;

	if (access.failed || ivars == 0 || !ivars_shape(&inspect->ivars, flags, &shape) || shape.too_complex)
		return 0;
	for (uint64_t i = 0; i < shape.fields && i < CLASS_IVARS_MAX; i++)
		if (is_named(inspect, ivars_id(&inspect->ivars, klass, flags, i), name))
			return access_word(&access, ivars + i * 8);
	return 0;
}

/* struct.c, struct_ivar_get: the members are an instance variable of the class, or of one above it. */
static uint64_t members_of_class(struct inspect *inspect, uint64_t klass)
{
	const struct layout *layout = inspect->ruby->layout;
	struct access access = ruby_access(inspect->ruby);

	if (layout_has(layout, F_class_slot_iv_ptr) || layout_has(layout, F_class_slot_fields))
		return class_ivar_by_shape(inspect, klass, "__members__");
	return class_ivar(inspect->ruby, &access, klass, "__members__");
}

static bool has_path(struct inspect *inspect, uint64_t klass, const char *path)
{
	struct access access = ruby_access(inspect->ruby);
	struct bytes bytes;
	bool permanent;

	class_path(inspect->ruby, &access, klass, &bytes, &permanent);
	return !access.failed && permanent && value_bytes_are(&access, bytes, path);
}

static struct struct_class read_class(struct inspect *inspect, uint64_t klass)
{
	const enum memory_kind before = inspect_names_begin(inspect);
	struct struct_class ret = {.of = OF_STRUCT};
	struct access access = ruby_access(inspect->ruby);

	klass = class_real(&access, klass);
	for (int i = 0; i < ANCESTORS_MAX && klass != 0 && !access.failed; i++) {
		if (ret.members == 0)
			ret.members = members_of_class(inspect, klass);
		if (has_path(inspect, klass, "Range"))
			ret.of = OF_RANGE;
		else if (has_path(inspect, klass, "Data"))
			ret.of = OF_DATA;
		klass = class_real_superclass(&access, klass);
	}
	inspect_names_end(inspect, before);
	return ret;
}

static struct words struct_words(struct access *access, uint64_t object, uint64_t flags)
{
	const struct layout *layout = access->layout;
	uint64_t count;

	if (!slot_struct_length(layout, flags, &count) || !layout_has(layout, F_struct_ary) ||
	    !layout_has(layout, F_struct_len) || !layout_has(layout, F_struct_ptr)) {
		access_fail(access, object);
		return (struct words){0};
	}
	if (count != 0)
		return (struct words){access_address(access, object, F_struct_ary), count};
	return (struct words){access_member(access, object, F_struct_ptr), access_member(access, object, F_struct_len)};
}

static void add_range(struct inspect *inspect, const uint64_t *members, struct text *text)
{
	const uint64_t nil = (uint64_t)inspect->ruby->layout->enumerators[E_RUBY_Qnil].value;
	const bool from = members[RANGE_FIRST] != nil, to = members[RANGE_LAST] != nil;

	if (from || !to)
		inspect_part(inspect, members[RANGE_FIRST], text);
	/* Both false and nil are false. */
	text_format(text, "%s", members[RANGE_EXCLUDES] & ~nil ? "..." : "..");
	if (to || !from)
		inspect_part(inspect, members[RANGE_LAST], text);
}

/* The name of a member, which is a Symbol: without a colon, unless it could not be the name of a variable or a constant. */
static void add_member_name(struct inspect *inspect, uint64_t members, uint64_t index, struct text *text)
{
	const enum memory_kind before = inspect_names_begin(inspect);
	struct access access = ruby_access(inspect->ruby);
	struct text name = {0};
	uint64_t elements, symbol = 0;

	if (index < value_array(&access, members, &elements))
		symbol = access_word(&access, elements + index * 8);
	if (!access.failed && inspect_is_symbol(inspect, symbol)) {
		inspect_symbol(inspect, symbol, &name);
		if (name.data && !strpbrk(name.data + 1, "\"?!=@$[]+-*/%<>~^&|`"))
			text_add(text, name.data + 1, name.length - 1);
		else if (name.data)
			text_add(text, name.data, name.length);
	} else {
		inspect_unreadable(inspect, text);
	}
	text_clear(&name);
	inspect_names_end(inspect, before);
}

/* Appends how the text of a struct begins: with the name of its class, if it has one. Returns whether it has. */
static bool add_beginning(struct inspect *inspect, const struct struct_class *of, uint64_t klass, struct text *text)
{
	const enum memory_kind before = inspect_names_begin(inspect);
	struct access access = ruby_access(inspect->ruby);
	const size_t length = text->length;
	struct bytes path;
	bool permanent;

	text_format(text, of->of == OF_DATA ? "#<data " : "#<struct ");
	class_path(inspect->ruby, &access, class_real(&access, klass), &path, &permanent);
	if (permanent)
		value_append(text, &access, path);
	text_shorten(text, length, INSPECT_NAME_BYTES);
	inspect_names_end(inspect, before);
	return permanent;
}

static void add_struct(struct inspect *inspect, const struct struct_class *of, uint64_t klass, struct words words,
		       struct text *text)
{
	struct access access = ruby_access(inspect->ruby);
	const bool named = add_beginning(inspect, of, klass, text);

	for (uint64_t i = 0; i < words.count && !access.failed; i++) {
		const uint64_t value = access_word(&access, words.address + i * 8);

		text_format(text, i == 0 && named ? " " : "");
		if (!inspect_next(inspect, i, text))
			break;
		add_member_name(inspect, of->members, i, text);
		text_format(text, "=");
		if (!access.failed)
			inspect_part(inspect, value, text);
	}
	if (access.failed)
		inspect_unreadable(inspect, text);
	text_format(text, ">");
}

void inspect_struct_again(struct inspect *inspect, uint64_t object, struct text *text)
{
	struct access access = ruby_access(inspect->ruby);
	const uint64_t klass = access_member(&access, object, F_basic_klass);
	const struct struct_class of = read_class(inspect, klass);

	add_beginning(inspect, &of, klass, text);
	text_format(text, ":...>");
}

const char *inspect_struct(struct inspect *inspect, uint64_t object, uint64_t flags, struct text *text)
{
	struct access access = ruby_access(inspect->ruby);
	const uint64_t klass = access_member(&access, object, F_basic_klass);
	const struct words words = struct_words(&access, object, flags);
	struct struct_class of = {0};
	uint64_t members[RANGE_MEMBERS];

	if (!access.failed)
		of = read_class(inspect, klass);
	if (!access.failed && of.of == OF_RANGE && words.count == RANGE_MEMBERS &&
	    access_bytes(&access, words.address, members, sizeof(members))) {
		add_range(inspect, members, text);
		return "range";
	}
	if (access.failed)
		inspect_unreadable(inspect, text);
	else
		add_struct(inspect, &of, klass, words, text);
	return "struct";
}

/* Instance variables, while they are written. */
struct writing {
	struct inspect *inspect;
	struct text *text;
	uint64_t count;
};

/* How many instance variables of one object can lack a name. */
#define UNNAMED_MAX 16

/* Appends an instance variable. One whose name does not begin with "@" is Ruby's own. Returns false if there was no room. */
static bool add_ivar(void *context, struct access *access, uint64_t id, uint64_t value)
{
	struct writing *writing = context;
	const struct layout_number *undefined = &access->layout->enumerators[E_RUBY_Qundef];
	struct access names = ruby_access(writing->inspect->ruby);
	const enum memory_kind before = inspect_names_begin(writing->inspect);
	struct text name = {0};
	const bool own = (undefined->present && value == (uint64_t)undefined->value) || id == 0 ||
			 !symbol_add(writing->inspect->ruby, &names, id, &name) || name.length == 0 ||
			 name.data[0] != '@';
	bool room = true;

	inspect_names_end(writing->inspect, before);
	if (!own) {
		text_format(writing->text, writing->count == 0 ? " " : "");
		room = inspect_next(writing->inspect, writing->count++, writing->text);
	}
	if (!own && room) {
		text_shorten(&name, 0, INSPECT_NAME_BYTES);
		text_add(writing->text, name.data, name.length);
		text_format(writing->text, "=");
		inspect_part(writing->inspect, value, writing->text);
	}
	text_clear(&name);
	return room;
}

static bool is_embedded(const struct layout *layout, uint64_t flags)
{
	return layout->enumerators[E_ROBJECT_HEAP].present ? !slot_has_flag(layout, flags, E_ROBJECT_HEAP)
							   : slot_has_flag(layout, flags, E_ROBJECT_EMBED);
}

/* Where the instance variables of a T_OBJECT are, in the order of their indexes. */
static struct words ivar_words(struct inspect *inspect, struct access *access, uint64_t object, uint64_t flags,
			       const struct object_shape *shape)
{
	const struct layout *layout = access->layout;
	const bool embedded = is_embedded(layout, flags);
	struct words words = {.count = shape->fields};

	if (!layout_has(layout, F_object_ary) || !layout_has(layout, F_object_ivptr)) {
		access_fail(access, object);
		return words;
	}
	/* Up to 3.1. What is not set is Qundef. */
	if (layout_has(layout, F_object_numiv))
		words.count = embedded ? OBJECT_EMBEDDED_IVARS : access_member(access, object, F_object_numiv);
	words.address =
	    embedded ? access_address(access, object, F_object_ary) : access_member(access, object, F_object_ivptr);
	if (words.count > inspect->steps)
		words.count = inspect->steps;
	return words;
}

static void add_ivars(struct writing *writing, struct access *access, uint64_t object, uint64_t flags, uint64_t klass)
{
	struct inspect *inspect = writing->inspect;
	enum memory_kind before = inspect_names_begin(inspect);
	struct object_shape shape;
	const bool known = ivars_shape(&inspect->ivars, flags, &shape);
	unsigned int unnamed = 0;
	struct words words;

	inspect_names_end(inspect, before);
	if (!known || (shape.address == 0 && !layout_has(access->layout, F_object_numiv))) {
		access_fail(access, object);
		return;
	}
	if (shape.too_complex) {
		st_each_step(access, access_member(access, object, F_object_ivptr), &inspect->steps, add_ivar, writing);
		return;
	}
	words = ivar_words(inspect, access, object, flags, &shape);
	for (uint64_t i = 0; i < words.count && !access->failed; i++) {
		const uint64_t value = access_word(access, words.address + i * 8);
		uint64_t id;

		before = inspect_names_begin(inspect);
		id = ivars_id(&inspect->ivars, klass, flags, i);
		inspect_names_end(inspect, before);
		/* Only hostile memory has many without names, and to look for each of them takes long. */
		if (id == 0 && ++unnamed > UNNAMED_MAX) {
			text_format(writing->text, " …");
			break;
		}
		if (access->failed || !add_ivar(writing, access, id, value))
			break;
	}
}

void inspect_object(struct inspect *inspect, uint64_t object, uint64_t flags, struct text *text)
{
	struct access access = ruby_access(inspect->ruby);
	const uint64_t klass = access_member(&access, object, F_basic_klass);
	struct writing writing = {.inspect = inspect, .text = text};

	text_format(text, "#<");
	inspect_add_class_of(inspect, klass, text);
	if (slot_is(access.layout, flags, E_RUBY_T_OBJECT)) {
		if (inspect->depth <= INSPECT_IVARS_DEPTH)
			add_ivars(&writing, &access, object, flags, klass);
		else
			text_format(text, " …");
	}
	if (access.failed) {
		text_format(text, " ");
		inspect_unreadable(inspect, text);
	}
	text_format(text, ">");
}
