/* Other objects, with their instance variables, and exceptions with their message: see inspect.h. */
#include <string.h>

#include "ruby/inspect.h"
#include "ruby/inspect_parts.h"
#include "ruby/object_slot.h"
#include "ruby/st.h"
#include "ruby/symbol.h"

/* error.c, id_mesg, v1_9_3_0 to v4_0_5 and head: an instance variable of exceptions that programs do not see. */
#define MESSAGE "mesg"

/* Instance variables, while they are written. */
struct writing {
	struct inspect *inspect;
	struct text *text;
	uint64_t count;
	struct text message; /* of an exception, with what is before it; empty if there is none */
};

/* How many instance variables of one object can lack a name. */
#define UNNAMED_MAX 16

/*
 * Takes the quotes off a String as it is shown, and the backslashes that are there only because of the quotes. Returns false
 * if the String is not shown as a whole, or if something else in it is escaped: then the text is of no use.
 */
static bool unquote(struct text *text)
{
	const size_t end = text->length - 1;
	size_t length = 0;

	if (text->length < 2 || text->data[end] != '"')
		return false;
	for (size_t i = 1; i < end; i++) {
		if (text->data[i] == '\\' && !strchr("\"\\#", text->data[++i]))
			return false;
		text->data[length++] = text->data[i];
	}
	text->data[length] = '\0';
	text->length = length;
	return true;
}

/*
 * Writes the message of an exception, as error.c, exc_inspect, v1_9_3_0 to v4_0_5 and head does, with these differences: the
 * message is quoted if it has characters that cannot be printed, or is shortened (since 3.4, Ruby quotes it if it has more
 * than one line). It is left out if it is empty, or no String: that of a NameError is made when it is asked for.
 */
static void write_message(struct writing *writing, struct access *access, uint64_t value)
{
	struct inspect *inspect = writing->inspect;
	const size_t start = inspect->start;
	struct access try = *access;
	const uint64_t flags = value_is_object(value) ? value_flags(&try, value_object(&try, value)) : 0;
	struct text part = {0};

	if (try.failed || !slot_is(access->layout, flags, E_RUBY_T_STRING))
		return;
	inspect->start = 0;
	inspect_part(inspect, value, &part);
	inspect->start = start;
	if (!part.failed && part.length > 0 && part.data[0] == '"') {
		text_format(&writing->message, ":%s", part.data);
		if (unquote(&part)) {
			text_clear(&writing->message);
			text_format(&writing->message, part.length > 0 ? ": %s" : "%s", part.data);
		}
	}
	writing->message.failed |= part.failed;
	text_clear(&part);
}

/* Inserts the message where the instance variables begin. */
static void insert_message(struct text *text, size_t at, struct text *message)
{
	text_add(text, message->data, message->length);
	text->failed |= message->failed;
	if (!text->failed && message->length > 0) {
		memmove(text->data + at + message->length, text->data + at, text->length - at - message->length);
		memcpy(text->data + at, message->data, message->length);
	}
	text_clear(message);
}

/* Appends an instance variable. One whose name does not begin with "@" is Ruby's own. Returns false if there was no room. */
static bool add_ivar(void *context, struct access *access, uint64_t id, uint64_t value)
{
	struct writing *writing = context;
	const struct layout_number *undefined = &access->layout->enumerators[E_RUBY_Qundef];
	struct access names = ruby_access(writing->inspect->ruby);
	const enum memory_kind before = inspect_names_begin(writing->inspect);
	struct text name = {0};
	const bool named = !(undefined->present && value == (uint64_t)undefined->value) && id != 0 &&
			   symbol_add(writing->inspect->ruby, &names, id, &name) && name.length > 0;
	bool room = true;

	inspect_names_end(writing->inspect, before);
	if (named && strcmp(name.data, MESSAGE) == 0 && writing->message.length == 0)
		write_message(writing, access, value);
	if (named && name.data[0] == '@') {
		text_format(writing->text, writing->count == 0 ? " " : "");
		room = inspect_next(writing->inspect, writing->count++, writing->text);
		if (room) {
			text_shorten(&name, 0, INSPECT_NAME_BYTES);
			text_add(writing->text, name.data, name.length);
			text_format(writing->text, "=");
			inspect_part(writing->inspect, value, writing->text);
		}
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
	size_t begin;

	text_format(text, "#<");
	inspect_add_class_of(inspect, klass, text);
	begin = text->length;
	if (slot_is(access.layout, flags, E_RUBY_T_OBJECT)) {
		if (inspect->depth <= INSPECT_IVARS_DEPTH)
			add_ivars(&writing, &access, object, flags, klass);
		else
			text_format(text, " …");
	}
	insert_message(text, begin, &writing.message);
	if (access.failed) {
		text_format(text, " ");
		inspect_unreadable(inspect, text);
	}
	text_format(text, ">");
}
