/* Strings and Symbols: see inspect.h. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "ruby/inspect.h"
#include "ruby/inspect_parts.h"
#include "ruby/object_slot.h"
#include "ruby/symbol.h"

/* include/ruby/internal/encoding/encoding.h (up to 2.7 include/ruby/encoding.h), ENCODING_MASK, v1_9_3_0 to v4_0_5 and head. */
#define ENCODING_MASK 127u

/* encindex.h, RUBY_ENCINDEX_UTF_8, v2_2_0 to v4_0_5 and head. */
#define ENCODING_UTF_8 1u

/* The letter of a character that is written as a backslash and a letter; 0 if it is not. */
static char letter_of(uint8_t c)
{
	static const char from[] = "\n\r\t\f\v\b\a\x1b", to[] = "nrtfvbae";
	const char *at = c != 0 ? strchr(from, c) : NULL;

	return at ? to[at - from] : '\0';
}

/*
 * Whether a character is a control character or a separator of lines, U+0080 to U+009F, U+2028 and U+2029. Ruby writes
 * these and those that Unicode has not assigned by their numbers (string.c, rb_str_inspect); the latter are not known here.
 */
static bool is_control(const uint8_t *bytes, size_t character)
{
	return (character == 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0) ||
	       (character == 3 && bytes[0] == 0xe2 && bytes[1] == 0x80 && (bytes[2] | 1) == 0xa9);
}

static unsigned int number_of(const uint8_t *bytes, size_t character)
{
	return character == 2 ? (bytes[0] & 0x1fu) << 6 | (bytes[1] & 0x3fu)
			      : (bytes[0] & 0x0fu) << 12 | (bytes[1] & 0x3fu) << 6 | (bytes[2] & 0x3fu);
}

/* Whether "#" at `bytes` would begin an interpolation. */
static bool interpolates(const uint8_t *bytes, size_t length)
{
	return length > 1 && bytes[0] == '#' && (bytes[1] == '{' || bytes[1] == '$' || bytes[1] == '@');
}

static void add_quoted(const uint8_t *bytes, size_t length, bool utf8, struct text *text)
{
	text_format(text, "\"");
	for (size_t i = 0; i < length;) {
		const uint8_t c = bytes[i];
		const size_t character = utf8 && c >= 0x80 ? text_character(bytes + i, length - i) : 1;

		if (letter_of(c) != '\0')
			text_format(text, "\\%c", letter_of(c));
		else if (c == '"' || c == '\\' || interpolates(bytes + i, length - i))
			text_format(text, "\\%c", c);
		else if (c >= 0x80 && character > 0 && utf8 && is_control(bytes + i, character))
			text_format(text, "\\u%04X", number_of(bytes + i, character));
		else if (c >= 0x80 && character > 0 && utf8)
			text_add(text, bytes + i, character);
		else if (isprint(c) && c < 0x80)
			text_add(text, &c, 1);
		else
			text_format(text, utf8 && c < 0x80 ? "\\u%04X" : "\\x%02X", c);
		i += character > 0 ? character : 1;
	}
	text_format(text, "\"");
}

/* The length of what is shown of a UTF-8 text: a character stays whole. */
static size_t whole_characters(const uint8_t *bytes, size_t length)
{
	size_t end = length;

	for (int i = 0; i < 4 && end > 0 && bytes[end - 1] >= 0x80; i++) {
		end--;
		if (bytes[end] >= 0xc0)
			return text_character(bytes + end, length - end) > 0 ? length : end;
	}
	return length;
}

void inspect_string(struct inspect *inspect, uint64_t object, uint64_t flags, struct text *text)
{
	const struct layout_number *shift = &inspect->ruby->layout->enumerators[E_RUBY_ENCODING_SHIFT];
	const bool utf8 = !shift->present || (flags >> shift->value & ENCODING_MASK) == ENCODING_UTF_8;
	struct access access = ruby_access(inspect->ruby);
	const struct bytes bytes = value_long_string(&access, object);
	uint8_t shown[INSPECT_STRING_BYTES];
	size_t length = bytes.length < sizeof(shown) ? bytes.length : sizeof(shown);

	if (access.failed || !access_bytes(&access, bytes.address, shown, length)) {
		inspect_unreadable(inspect, text);
		return;
	}
	if (utf8 && length < bytes.length)
		length = whole_characters(shown, length);
	add_quoted(shown, length, utf8, text);
	if (length < bytes.length)
		text_format(text, "… (%" PRIu64 " bytes)", bytes.length);
}

bool inspect_is_symbol(struct inspect *inspect, uint64_t value)
{
	const struct layout *layout = inspect->ruby->layout;
	const struct layout_number *flag = &layout->enumerators[E_RUBY_SYMBOL_FLAG];
	struct access access = ruby_access(inspect->ruby);

	if (flag->present && (value & 0xff) == (uint64_t)flag->value)
		return true;
	return value_is_object(value) && slot_is(layout, value_flags(&access, value), E_RUBY_T_SYMBOL) &&
	       !access.failed;
}

static bool is_letter(char c)
{
	return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_identifier(const char *name, size_t length)
{
	if (length == 0 || !is_letter(name[0]))
		return false;
	for (size_t i = 1; i < length; i++)
		if (!is_letter(name[i]) && !isdigit((unsigned char)name[i]))
			return false;
	return true;
}

static bool is_operator(const char *name)
{
	static const char *const operators[] = {
	    "+",  "-", "*",  "/",   "%",  "**", "==", "!=", "===", "=~", "!~",	"!",  "~",  "<",
	    "<=", ">", ">=", "<=>", "<<", ">>", "&",  "|",  "^",   "[]", "[]=", "+@", "-@", "`",
	};

	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (strcmp(name, operators[i]) == 0)
			return true;
	return false;
}

/* Whether "$…" is the name of a global variable (symbol.c, is_special_global_name). */
static bool is_global(const char *name, size_t length)
{
	if (is_identifier(name + 1, length - 1))
		return true;
	if (length == 2)
		return strchr("~*$?!@/\\;,.=:<>\"&`'+0123456789", name[1]) != NULL;
	if (length == 3 && name[1] == '-')
		return is_letter(name[2]) || isdigit((unsigned char)name[2]);
	for (size_t i = 1; i < length; i++)
		if (!isdigit((unsigned char)name[i]))
			return false;
	return length > 1;
}

/* Whether a Symbol is written without quotes (symbol.c, rb_enc_symname_type). */
static bool is_plain(const char *name, size_t length)
{
	if (length == 0)
		return false;
	if (name[0] == '$')
		return is_global(name, length);
	if (name[0] == '@')
		return length > 1 && name[1] == '@' ? is_identifier(name + 2, length - 2)
						    : is_identifier(name + 1, length - 1);
	if (is_operator(name))
		return true;
	if (strchr("?!=", name[length - 1]))
		length--;
	return is_identifier(name, length);
}

/* Reads the name of a Symbol. Returns false, and appends "(unreadable)", if it cannot be read. */
static bool read_name(struct inspect *inspect, uint64_t value, struct text *name, struct text *text)
{
	struct access access = ruby_access(inspect->ruby);
	const enum memory_kind before = inspect_names_begin(inspect);
	const bool read = symbol_add_value(inspect->ruby, &access, value, name) && !name->failed;

	inspect_names_end(inspect, before);
	if (!read)
		inspect_unreadable(inspect, text);
	return read;
}

static const char *characters(const struct text *name)
{
	return name->data ? name->data : "";
}

static void add_name(const struct text *name, bool quoted, struct text *text)
{
	const uint8_t *bytes = (const uint8_t *)characters(name);
	const size_t length =
	    name->length > INSPECT_NAME_BYTES ? whole_characters(bytes, INSPECT_NAME_BYTES) : name->length;

	if (quoted)
		add_quoted(bytes, length, true, text);
	else
		text_add(text, bytes, length);
	if (length < name->length)
		text_format(text, "…");
}

void inspect_symbol(struct inspect *inspect, uint64_t value, struct text *text)
{
	struct text name = {0};

	if (read_name(inspect, value, &name, text)) {
		text_format(text, ":");
		add_name(&name, !is_plain(characters(&name), name.length), text);
	}
	text_clear(&name);
}

/* hash.c, symbol_key_needs_quote, v3_4_0 to v4_0_5 and head. */
static bool is_plain_key(const char *name, size_t length)
{
	return is_plain(name, length) && !strchr("@$!", name[0]) && !strchr("+-*/`%^&|]<=>~@", name[length - 1]);
}

void inspect_symbol_key(struct inspect *inspect, uint64_t value, struct text *text)
{
	struct text name = {0};

	if (read_name(inspect, value, &name, text))
		add_name(&name, !is_plain_key(characters(&name), name.length), text);
	text_format(text, ": ");
	text_clear(&name);
}
