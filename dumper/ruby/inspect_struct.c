/* Structs, instances of Data, and Ranges: see inspect.h. */
#include "ruby/class.h"
#include "ruby/inspect.h"
#include "ruby/inspect_parts.h"
#include "ruby/object_slot.h"
#include "ruby/symbol.h"

/* How many superclasses of a Struct are looked at. */
#define ANCESTORS_MAX 32

/* How many instance variables of a class are looked at, to find the names of a Struct's members. */
#define CLASS_IVARS_MAX 64u

/*
 * range.c, range_initialize, v1_9_3_0 to v4_0_5: a Range is a struct of its ends, and of whether the last is excluded. At head
 * (internal/range.h, RANGE_FL_EXCL), the last is a user flag of the object.
 */
enum range_member { RANGE_FIRST, RANGE_LAST, RANGE_EXCLUDES, RANGE_MEMBERS };
#define EXCLUDES_FLAG 19

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
		else if (has_path(inspect, klass, "Struct"))
			ret.of = OF_STRUCT; /* a class Data below Struct is the program's own */
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

static void add_range(struct inspect *inspect, const uint64_t *members, bool excludes, struct text *text)
{
	const uint64_t nil = (uint64_t)inspect->ruby->layout->enumerators[E_RUBY_Qnil].value;
	const bool from = members[RANGE_FIRST] != nil, to = members[RANGE_LAST] != nil;

	if (from || !to)
		inspect_part(inspect, members[RANGE_FIRST], text);
	text_format(text, "%s", excludes ? "..." : "..");
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
	if (!access.failed && of.of == OF_RANGE && (words.count == RANGE_MEMBERS || words.count == RANGE_EXCLUDES) &&
	    access_bytes(&access, words.address, members, words.count * sizeof(members[0]))) {
		/* Both false and nil are false. */
		add_range(inspect, members,
			  words.count == RANGE_MEMBERS
			      ? members[RANGE_EXCLUDES] & ~access_enum(&access, E_RUBY_Qnil)
			      : flags >> access_enum(&access, E_RUBY_FL_USHIFT) >> EXCLUDES_FLAG & 1,
			  text);
		return "range";
	}
	if (access.failed)
		inspect_unreadable(inspect, text);
	else
		add_struct(inspect, &of, klass, words, text);
	return "struct";
}
