#include "ruby/inspect.h"

#include <ctype.h>
#include <inttypes.h>

#include "ruby/class.h"
#include "ruby/inspect_parts.h"
#include "ruby/number_text.h"
#include "ruby/object_slot.h"

/* special_consts.h (up to 2.7 ruby.h), RUBY_Qtrue with flonum, v2_0_0_0 to v4_0_5 and head. */
#define QTRUE 0x14u

/* How many words may be read in all. */
#define STEPS (UINT64_C(1) << 22)

bool inspect_begin(const struct ruby *ruby, struct inspect *ret)
{
	struct ruby without_generic = *ruby;

	*ret = (struct inspect){.ruby = ruby, .steps = STEPS};
	without_generic.generic_ivars = 0;
	return ivars_read(&without_generic, &ret->ivars);
}

void inspect_end(struct inspect *inspect)
{
	ivars_clear(&inspect->ivars);
}

void inspect_unreadable(struct inspect *inspect, struct text *text)
{
	inspect->lacks = true;
	text_format(text, "(unreadable)");
}

bool inspect_is_full(struct inspect *inspect, const struct text *text)
{
	if (inspect->steps == 0)
		return true;
	inspect->steps--;
	return text->length - inspect->start >= INSPECT_BYTES;
}

bool inspect_next(struct inspect *inspect, uint64_t index, struct text *text)
{
	if (index > 0)
		text_format(text, ", ");
	if (index < INSPECT_ENTRIES && !inspect_is_full(inspect, text))
		return true;
	text_format(text, "…");
	return false;
}

enum memory_kind inspect_names_begin(struct inspect *inspect)
{
	return memory_reads(inspect->ruby->memory, MEMORY_LASTS);
}

void inspect_names_end(struct inspect *inspect, enum memory_kind before)
{
	memory_reads(inspect->ruby->memory, before);
}

void inspect_add_class(struct inspect *inspect, uint64_t klass, struct text *text)
{
	const enum memory_kind before = inspect_names_begin(inspect);
	struct access access = ruby_access(inspect->ruby);
	const size_t length = text->length;

	class_add_name(inspect->ruby, &access, klass, text);
	inspect_names_end(inspect, before);
	text_shorten(text, length, INSPECT_NAME_BYTES);
	if (text->length == length)
		inspect_unreadable(inspect, text);
}

void inspect_add_class_of(struct inspect *inspect, uint64_t klass, struct text *text)
{
	const enum memory_kind before = inspect_names_begin(inspect);
	struct access access = ruby_access(inspect->ruby);
	const uint64_t real = class_real(&access, klass);

	inspect_names_end(inspect, before);
	inspect_add_class(inspect, real, text);
}

static void add_array(struct inspect *inspect, uint64_t object, struct text *text)
{
	struct access access = ruby_access(inspect->ruby);
	uint64_t elements, count = value_array(&access, object, &elements);

	text_format(text, "[");
	for (uint64_t i = 0; i < count && !access.failed && inspect_next(inspect, i, text); i++) {
		const uint64_t element = access_word(&access, elements + i * 8);

		if (!access.failed)
			inspect_part(inspect, element, text);
	}
	if (access.failed)
		inspect_unreadable(inspect, text);
	text_format(text, "]");
}

/* Appends a part of an object that is a VALUE in its slot. */
static void add_member(struct inspect *inspect, uint64_t object, enum layout_member_id id, struct text *text)
{
	struct access access = ruby_access(inspect->ruby);
	const uint64_t value = layout_has(access.layout, id) ? access_member(&access, object, id) : 0;

	if (access.failed || !layout_has(access.layout, id))
		inspect_unreadable(inspect, text);
	else
		inspect_part(inspect, value, text);
}

static void add_rational(struct inspect *inspect, uint64_t object, struct text *text)
{
	text_format(text, "(");
	add_member(inspect, object, F_rational_num, text);
	text_format(text, "/");
	add_member(inspect, object, F_rational_den, text);
	text_format(text, ")");
}

/*
 * complex.c, f_format, v1_9_3_0 to v4_0_5 and head: the imaginary part without its sign, which is before it; and "*" if it
 * does not end with a digit.
 */
static void add_complex(struct inspect *inspect, uint64_t object, struct text *text)
{
	struct text imaginary = {0};
	const size_t start = inspect->start;
	const char *part;
	bool rational, negative;

	text_format(text, "(");
	add_member(inspect, object, F_complex_real, text);
	inspect->start = 0;
	add_member(inspect, object, F_complex_imag, &imaginary);
	inspect->start = start;
	part = imaginary.data ? imaginary.data : "";
	/* A Rational has its sign inside of its parentheses. */
	rational = *part == '(';
	negative = part[rational] == '-';
	text_format(text, "%c%s%s%si)", negative ? '-' : '+', rational ? "(" : "", part + rational + negative,
		    *part && !isdigit((unsigned char)part[imaginary.length - 1]) ? "*" : "");
	text_clear(&imaginary);
}

static void add_regexp(struct inspect *inspect, uint64_t object, struct text *text)
{
	struct access access = ruby_access(inspect->ruby);
	const uint64_t source =
	    layout_has(access.layout, F_regexp_src) ? access_member(&access, object, F_regexp_src) : 0;
	const uint64_t flags = value_object(&access, source) != 0 ? value_flags(&access, source) : 0;

	text_format(text, "#<Regexp ");
	if (access.failed)
		inspect_unreadable(inspect, text);
	else
		inspect_string(inspect, source, flags, text);
	text_format(text, ">");
}

static bool is_within_itself(const struct inspect *inspect, uint64_t object)
{
	for (size_t i = 0; i < inspect->depth; i++)
		if (inspect->path[i] == object)
			return true;
	return false;
}

/* Objects that contain others are only shown down to a depth, and not within themselves. */
static const char *add_container(struct inspect *inspect, uint64_t object, uint64_t flags, struct text *text)
{
	const struct layout *layout = inspect->ruby->layout;
	const bool array = slot_is(layout, flags, E_RUBY_T_ARRAY), hash = slot_is(layout, flags, E_RUBY_T_HASH);
	const bool is_struct = slot_is(layout, flags, E_RUBY_T_STRUCT);
	const char *kind = array ? "array" : hash ? "hash" : is_struct ? "struct" : "object";

	if (is_within_itself(inspect, object)) {
		if (is_struct)
			inspect_struct_again(inspect, object, text);
		else
			text_format(text, array ? "[...]" : hash ? "{...}" : "#<...>");
		return kind;
	}
	if (inspect->depth == INSPECT_DEPTH) {
		text_format(text, "…");
		return kind;
	}
	inspect->path[inspect->depth++] = object;
	if (array)
		add_array(inspect, object, text);
	else if (hash)
		inspect_hash(inspect, object, flags, text);
	else if (is_struct)
		kind = inspect_struct(inspect, object, flags, text);
	else
		inspect_object(inspect, object, flags, text);
	inspect->depth--;
	return kind;
}

/* Types of objects that contain no others, or few. Returns NULL for all other types. */
static const char *add_plain(struct inspect *inspect, uint64_t object, uint64_t flags, struct text *text)
{
	const struct layout *layout = inspect->ruby->layout;
	struct access access = ruby_access(inspect->ruby);
	const char *kind = NULL;

	if (slot_is(layout, flags, E_RUBY_T_STRING)) {
		inspect_string(inspect, object, flags, text);
		return "string";
	}
	if (slot_is(layout, flags, E_RUBY_T_SYMBOL)) {
		inspect_symbol(inspect, object, text);
		return "symbol";
	}
	if (slot_is(layout, flags, E_RUBY_T_RATIONAL)) {
		add_rational(inspect, object, text);
		return "rational";
	}
	if (slot_is(layout, flags, E_RUBY_T_COMPLEX)) {
		add_complex(inspect, object, text);
		return "complex";
	}
	if (slot_is(layout, flags, E_RUBY_T_REGEXP)) {
		add_regexp(inspect, object, text);
		return "regexp";
	}
	if (slot_is(layout, flags, E_RUBY_T_CLASS) || slot_is(layout, flags, E_RUBY_T_MODULE)) {
		inspect_add_class(inspect, object, text);
		return slot_is(layout, flags, E_RUBY_T_CLASS) ? "class" : "module";
	}
	if (slot_is(layout, flags, E_RUBY_T_FLOAT)) {
		number_add_float_object(&access, object, text);
		kind = "float";
	} else if (slot_is(layout, flags, E_RUBY_T_BIGNUM)) {
		number_add_bignum(&access, object, flags, text);
		kind = "integer";
	}
	if (access.failed)
		inspect_unreadable(inspect, text);
	return kind;
}

/* Objects that programs do not see, and what is no object at all. */
static bool is_hidden(const struct layout *layout, uint64_t flags, uint64_t klass)
{
	return klass == 0 || (flags & (uint64_t)layout->enumerators[E_RUBY_T_MASK].value) == 0 ||
	       slot_is(layout, flags, E_RUBY_T_IMEMO) || slot_is(layout, flags, E_RUBY_T_ICLASS) ||
	       slot_is(layout, flags, E_RUBY_T_NODE) || slot_is(layout, flags, E_RUBY_T_ZOMBIE) ||
	       slot_is(layout, flags, E_RUBY_T_MOVED);
}

static bool is_main(struct inspect *inspect, uint64_t object)
{
	struct access access = ruby_access(inspect->ruby);

	if (!layout_has(access.layout, F_vm_top_self))
		return object == inspect->main;
	return access_member(&access, inspect->ruby->vm, F_vm_top_self) == object && !access.failed;
}

static const char *add_object(struct inspect *inspect, uint64_t value, struct text *text)
{
	struct access access = ruby_access(inspect->ruby);
	const uint64_t object = value_object(&access, value), flags = value_flags(&access, object);
	const uint64_t klass = access_member(&access, object, F_basic_klass);
	const char *kind;

	if (access.failed || is_hidden(access.layout, flags, klass)) {
		inspect_unreadable(inspect, text);
		return "unknown";
	}
	if (is_main(inspect, value)) {
		text_format(text, "main");
		return "object";
	}
	kind = add_plain(inspect, object, flags, text);
	return kind ? kind : add_container(inspect, object, flags, text);
}

static const char *add_value(struct inspect *inspect, uint64_t value, struct text *text)
{
	const struct layout *layout = inspect->ruby->layout;

	/* special_consts.h, v1_9_3_0 to v4_0_5 and head: the lowest bit of an Integer is set. */
	if (value & 1) {
		text_format(text, "%" PRId64, (int64_t)value >> 1);
		return "integer";
	}
	if (value == 0) {
		text_format(text, "false");
		return "false";
	}
	if (value == (uint64_t)layout->enumerators[E_RUBY_Qnil].value) {
		text_format(text, "nil");
		return "nil";
	}
	if (value_is_object(value))
		return add_object(inspect, value, text);
	if (value == QTRUE) {
		text_format(text, "true");
		return "true";
	}
	if (inspect_is_symbol(inspect, value)) {
		inspect_symbol(inspect, value, text);
		return "symbol";
	}
	if ((value & 3) == 2) {
		number_add_float(number_of_flonum(value), text);
		return "float";
	}
	inspect_unreadable(inspect, text);
	return "unknown";
}

void inspect_part(struct inspect *inspect, uint64_t value, struct text *text)
{
	if (inspect_is_full(inspect, text))
		text_format(text, "…");
	else
		add_value(inspect, value, text);
}

const char *inspect_value(struct inspect *inspect, uint64_t value, struct text *text)
{
	const enum memory_kind before = memory_reads(inspect->ruby->memory, inspect->kind);
	const char *kind;

	inspect->lacks = false;
	inspect->start = text->length;
	inspect->depth = 0;
	kind = add_value(inspect, value, text);
	memory_reads(inspect->ruby->memory, before);
	return kind;
}
