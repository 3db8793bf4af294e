#include "ruby/value.h"

#include <stdlib.h>
#include <string.h>

uint64_t value_flags(struct access *access, uint64_t object)
{
	return access_member(access, object, F_basic_flags);
}

uint64_t value_type(struct access *access, uint64_t object)
{
	return value_flags(access, object) & access_enum(access, E_RUBY_T_MASK);
}

uint64_t value_object(struct access *access, uint64_t value)
{
	if (!value_is_object(value)) {
		access_fail(access, value);
		return 0;
	}
	if (layout_has(access->layout, F_moved_destination) && access->layout->enumerators[E_RUBY_T_MOVED].present &&
	    value_type(access, value) == access_enum(access, E_RUBY_T_MOVED) && !access->failed)
		return access_member(access, value, F_moved_destination);
	return value;
}

uint64_t value_data(struct access *access, uint64_t value)
{
	const struct layout_number *type = &access->layout->enumerators[E_RUBY_T_DATA];
	uint64_t object = value_object(access, value);

	if (!type->present || value_type(access, object) != (uint64_t)type->value)
		access_fail(access, value);
	return access_member(access, object, F_typed_data_data);
}

/*
 * internal.h, v2_5_0 to v2_7_8, then internal/imemo.h, to v4.0.5 and head. Before, it was the enumerator imemo_mask.
 */
#define IMEMO_MASK 0x0f

uint64_t value_imemo_type(const struct layout *layout, uint64_t flags)
{
	const struct layout_number *mask = &layout->enumerators[E_imemo_mask];

	return (flags >> (uint64_t)layout->enumerators[E_RUBY_FL_USHIFT].value) &
	       (mask->present ? (uint64_t)mask->value : IMEMO_MASK);
}

bool value_is_imemo(struct access *access, uint64_t object, enum layout_enumerator_id imemo_type)
{
	const struct layout *layout = access->layout;
	uint64_t flags;

	if (!value_is_object(object) || !layout->enumerators[E_RUBY_T_IMEMO].present ||
	    !layout->enumerators[imemo_type].present)
		return false;
	flags = value_flags(access, object);
	return !access->failed && (flags & access_enum(access, E_RUBY_T_MASK)) == access_enum(access, E_RUBY_T_IMEMO) &&
	       value_imemo_type(access->layout, flags) == access_enum(access, imemo_type);
}

struct bytes value_long_string(struct access *access, uint64_t value)
{
	const struct layout *layout = access->layout;
	uint64_t object = value_object(access, value);
	uint64_t flags = value_flags(access, object);
	bool heap = flags & access_enum(access, E_RSTRING_NOEMBED);
	struct bytes bytes;

	if (!access->failed && (flags & access_enum(access, E_RUBY_T_MASK)) != access_enum(access, E_RUBY_T_STRING))
		access_fail(access, object);
	if (layout_has(layout, F_string_len))
		bytes.length = access_member(access, object, F_string_len);
	else if (heap)
		bytes.length = access_member(access, object, F_string_heap_len);
	else if (layout_has(layout, F_string_embed_len))
		bytes.length = access_member(access, object, F_string_embed_len);
	else
		bytes.length = (flags & access_enum(access, E_RSTRING_EMBED_LEN_MASK)) >>
			       access_enum(access, E_RSTRING_EMBED_LEN_SHIFT);
	bytes.address = heap ? access_member(access, object, F_string_heap_ptr)
			     : access_address(access, object, F_string_embed_ary);
	return access->failed ? (struct bytes){0, 0} : bytes;
}

struct bytes value_string(struct access *access, uint64_t value)
{
	const struct bytes bytes = value_long_string(access, value);

	if (bytes.length <= VALUE_STRING_MAX)
		return bytes;
	access_fail(access, value);
	return (struct bytes){0, 0};
}

uint64_t value_array(struct access *access, uint64_t value, uint64_t *elements)
{
	uint64_t object = value_object(access, value);
	uint64_t flags = value_flags(access, object);

	*elements = 0;
	if (!access->failed && (flags & access_enum(access, E_RUBY_T_MASK)) != access_enum(access, E_RUBY_T_ARRAY))
		access_fail(access, object);
	if (access->failed)
		return 0;
	if (flags & access_enum(access, E_RARRAY_EMBED_FLAG)) {
		*elements = access_address(access, object, F_array_ary);
		return (flags & access_enum(access, E_RARRAY_EMBED_LEN_MASK)) >>
		       access_enum(access, E_RARRAY_EMBED_LEN_SHIFT);
	}
	*elements = access_member(access, object, F_array_heap_ptr);
	return access_member(access, object, F_array_heap_len);
}

struct bytes value_c_string(struct access *access, uint64_t address, size_t max)
{
	uint64_t length = 0;
	char piece[64];

	while (length <= max) {
		/* Behind the end of the string may be a page that cannot be read. */
		const uint64_t at = address + length, room = MEMORY_PAGE - at % MEMORY_PAGE;
		const size_t part = room < sizeof(piece) ? (size_t)room : sizeof(piece);
		const char *end;

		if (!access_bytes(access, at, piece, part))
			return (struct bytes){0, 0};
		end = memchr(piece, '\0', part);
		length += end ? (uint64_t)(end - piece) : part;
		if (end && length <= max)
			return (struct bytes){address, length};
	}
	access_fail(access, address);
	return (struct bytes){0, 0};
}

bool value_bytes_begin(struct access *access, struct bytes bytes, const char *expected)
{
	size_t length = strlen(expected);

	if (bytes.length < length)
		return false;
	bytes.length = length;
	return value_bytes_are(access, bytes, expected);
}

bool value_bytes_are(struct access *access, struct bytes bytes, const char *expected)
{
	char buffer[256];
	size_t length = strlen(expected);

	return bytes.address != 0 && bytes.length == length && length <= sizeof(buffer) &&
	       access_bytes(access, bytes.address, buffer, length) && memcmp(buffer, expected, length) == 0;
}

/* So many bytes of text are the escaped parts of a character that was cut. */
#define CUT_CHARACTER 12u

bool value_append_shortened(struct text *text, struct access *access, uint64_t value, uint64_t max)
{
	const size_t before = text->length;
	struct bytes bytes = value_long_string(access, value);
	const bool cut = bytes.length > max;

	if (cut)
		bytes.length = max;
	if (!value_append(text, access, bytes))
		return false;
	if (cut && text->length - before > CUT_CHARACTER)
		text_shorten(text, before, text->length - before - CUT_CHARACTER);
	return true;
}

bool value_append(struct text *text, struct access *access, struct bytes bytes)
{
	uint8_t *buffer;

	if (bytes.length > VALUE_STRING_MAX || access->failed)
		return false;
	buffer = malloc(bytes.length + 1);
	if (!buffer) {
		text->failed = true;
		return false;
	}
	if (access_bytes(access, bytes.address, buffer, bytes.length))
		text_add(text, buffer, bytes.length);
	free(buffer);
	return !access->failed;
}
