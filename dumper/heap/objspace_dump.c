#include "heap/objspace_dump.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/addresses.h"
#include "base/text.h"
#include "heap/slot_set.h"
#include "heap/sums.h"
#include "ruby/class.h"
#include "ruby/collections.h"
#include "ruby/data_refs.h"
#include "ruby/object_type.h"
#include "ruby/value.h"

/*
 * encoding.h, v1_9_3_0 to v4_0_5 and head: ENCODING_MASK; ENC_CODERANGE_MASK, FL_USER8 and FL_USER9; encindex.h: the
 * numbers of the first encodings.
 */
#define ENCODING_MASK	0x7fu
#define CODERANGE_MASK	3u
#define CODERANGE_SHIFT 8
enum { CODERANGE_UNKNOWN, CODERANGE_7BIT, CODERANGE_VALID, CODERANGE_BROKEN };
static const char *const encodings[] = {"ASCII-8BIT", "UTF-8", "US-ASCII"};

/* The longest String whose bytes are written. */
#define BYTES_MAX (UINT64_C(1) << 20)

struct writer {
	FILE *stream;
	struct objspace_dump *result;
	const struct slots *slots;
	struct slot_set written, referenced;
	struct allocation_sites *sites;
	/* Of the object that is being written. */
	const struct layout *layout;
	const struct heap_object *object;
	uint64_t klass;
	uint64_t superclass;
	size_t references;
};

/* Writes a string of valid UTF-8. As Ruby, but characters that control a terminal are escaped, too (text_control()). */
static void string(struct writer *writer, const uint8_t *bytes, size_t length)
{
	FILE *stream = writer->stream;

	fputc_unlocked('"', stream);
	for (size_t i = 0; i < length; i++) {
		const uint8_t c = bytes[i];
		uint32_t point;
		const size_t control = c >= 0x80 ? text_control(bytes + i, length - i, &point) : 0;

		if (control > 0) {
			fprintf(stream, "\\u%04x", (unsigned int)point);
			i += control - 1;
		} else if (c == '"' || c == '\\') {
			fputc_unlocked('\\', stream);
			fputc_unlocked(c, stream);
		} else if (c < 0x20 || c == 0x7f) {
			fprintf(stream, "\\u%04x", c);
		} else {
			fputc_unlocked(c, stream);
		}
	}
	fputc_unlocked('"', stream);
}

static void address(struct writer *writer, uint64_t value)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 + 2 + 16 + 1];
	char *at = text + sizeof(text);

	*--at = '"';
	do
		*--at = digits[value & 15];
	while ((value >>= 4) != 0);
	*--at = 'x';
	*--at = '0';
	*--at = '"';
	fwrite_unlocked(at, 1, (size_t)(text + sizeof(text) - at), writer->stream);
}

static void name(struct writer *writer, const char *key)
{
	fputs_unlocked(", \"", writer->stream);
	fputs_unlocked(key, writer->stream);
	fputs_unlocked("\":", writer->stream);
}

/* Many readers of JSON refuse greater numbers than SUM_MAX. Only a hostile target has such. */
static void number(struct writer *writer, const char *key, uint64_t value)
{
	name(writer, key);
	fprintf(writer->stream, "%" PRIu64, sum(value, 0));
}

static void yes(struct writer *writer, const char *key, bool is)
{
	if (!is)
		return;
	name(writer, key);
	fputs_unlocked("true", writer->stream);
}

static void words(struct writer *writer, const char *key, const char *value)
{
	name(writer, key);
	string(writer, (const uint8_t *)value, strlen(value));
}

static uint64_t slot(const struct writer *writer, enum layout_member_id id)
{
	return slot_member(writer->layout, &writer->object->slot, id);
}

static bool flag(const struct writer *writer, enum layout_enumerator_id id)
{
	return slot_has_flag(writer->layout, writer->object->flags, id);
}

static uint64_t user_bits(const struct writer *writer, int shift, uint64_t mask)
{
	return writer->object->flags >> (writer->layout->enumerators[E_RUBY_FL_USHIFT].value + shift) & mask;
}

static bool is_ascii(const uint8_t *bytes, uint64_t length)
{
	for (uint64_t i = 0; i < length; i++)
		if (bytes[i] >= 0x80)
			return false;
	return true;
}

/*
 * The bytes of a String, if they are ASCII. They count as steps: a hostile target can have many Strings with the same
 * bytes.
 */
static void value(struct writer *writer, struct access *access, struct bytes bytes, uint64_t coderange,
		  struct steps *steps)
{
	uint8_t *copy;

	if (bytes.length == 0 || bytes.length > BYTES_MAX || coderange > CODERANGE_7BIT ||
	    steps_for_one(steps) < bytes.length / 8)
		return;
	steps_take(steps, bytes.length / 8);
	copy = malloc(bytes.length);
	if (copy && access_bytes(access, bytes.address, copy, bytes.length) && is_ascii(copy, bytes.length)) {
		name(writer, "value");
		string(writer, copy, bytes.length);
	}
	free(copy);
}

static void of_string(struct writer *writer, struct heap_walk *walk)
{
	static const char *const coderanges[] = {"unknown", "7bit", "valid", "broken"};
	const struct heap_object *object = writer->object;
	const struct layout_number *shift = &writer->layout->enumerators[E_RUBY_ENCODING_SHIFT];
	const uint64_t coderange = user_bits(writer, CODERANGE_SHIFT, CODERANGE_MASK);
	const uint64_t encoding = shift->present ? object->flags >> shift->value & ENCODING_MASK : 0;
	const bool embedded = !flag(writer, E_RSTRING_NOEMBED);
	const bool shared = !embedded && flag(writer, E_RUBY_ELTS_SHARED);
	struct access access = *object->access;
	struct bytes bytes;

	/* value_string() reads no string of more than 64 KiB. */
	if (embedded)
		bytes = value_string(&access, object->slot.address);
	else
		bytes = (struct bytes){
		    slot(writer, F_string_heap_ptr),
		    slot(writer, layout_has(writer->layout, F_string_len) ? F_string_len : F_string_heap_len)};
	yes(writer, "embedded", embedded);
	yes(writer, "shared", shared);
	if (!shared && !access.failed) {
		number(writer, "bytesize", bytes.length);
		if (!embedded && layout_has(writer->layout, F_string_capa) &&
		    slot(writer, F_string_capa) != bytes.length)
			number(writer, "capacity", slot(writer, F_string_capa));
		value(writer, &access, bytes, coderange, &walk->refs.steps);
	}
	if (encoding != 0 && encoding < sizeof(encodings) / sizeof(encodings[0]))
		words(writer, "encoding", encodings[encoding]);
	words(writer, "coderange", coderanges[coderange]);
	yes(writer, "broken", coderange == CODERANGE_BROKEN);
}

static void of_symbol(struct writer *writer, struct heap_walk *walk)
{
	struct access access = *writer->object->access;
	const struct bytes bytes = value_string(&access, slot(writer, F_symbol_fstr));

	if (access.failed)
		return;
	number(writer, "bytesize", bytes.length);
	value(writer, &access, bytes, CODERANGE_UNKNOWN, &walk->refs.steps);
}

static void of_hash(struct writer *writer)
{
	const struct heap_object *object = writer->object;
	const uint64_t table = slot_hash_st(writer->layout, &object->slot, object->flags);
	const struct layout_number *mask = &writer->layout->enumerators[E_RHASH_AR_TABLE_SIZE_MASK];
	const struct layout_number *shift = &writer->layout->enumerators[E_RHASH_AR_TABLE_SIZE_SHIFT];
	struct access access = *object->access;
	uint64_t size = 0;

	if (table != 0)
		size = access_member(&access, table, F_st_num_entries);
	else if (mask->present && shift->present)
		size = (object->flags & (uint64_t)mask->value) >> shift->value;
	if (!access.failed)
		number(writer, "size", size);
}

static void of_array(struct writer *writer)
{
	struct access access = *writer->object->access;
	uint64_t elements;
	const uint64_t length = value_array(&access, writer->object->slot.address, &elements);
	const bool embedded = flag(writer, E_RARRAY_EMBED_FLAG);

	if (access.failed)
		return;
	number(writer, "length", length);
	yes(writer, "shared", length > 0 && !embedded && flag(writer, E_RUBY_ELTS_SHARED));
	yes(writer, "embedded", embedded);
}

static void of_class(struct writer *writer, struct heap_walk *walk)
{
	const uint64_t klass = writer->object->slot.address;
	struct access access = ruby_access(&walk->lasting);
	struct text text = {0};
	struct bytes path;
	bool permanent;

	class_path(&walk->lasting, &access, klass, &path, &permanent);
	if (!access.failed && path.address != 0 && value_append(&text, &access, path)) {
		name(writer, "name");
		string(writer, (const uint8_t *)text.data, text.length);
	}
	text_clear(&text);
	yes(writer, "singleton",
	    flag(writer, E_RUBY_FL_SINGLETON) && slot_is(writer->layout, writer->object->flags, E_RUBY_T_CLASS));
}

static void of_data(struct writer *writer)
{
	const struct heap_object *object = writer->object;
	struct access access = *object->access;
	const uint64_t type = data_refs_type(writer->layout, &object->slot, object->flags);
	const struct bytes bytes = data_refs_type_name(&access, type);
	struct text text = {0};

	if (bytes.address != 0 && value_append(&text, &access, bytes))
		words(writer, "struct", text.data ? text.data : "");
	text_clear(&text);
}

static void of_object(struct writer *writer, struct heap_walk *walk)
{
	struct object_shape shape;

	const bool embedded = flag(writer, E_ROBJECT_EMBED);

	yes(writer, "embedded", embedded);
	if (layout_has(writer->layout, F_object_numiv))
		number(writer, "ivars", embedded ? OBJECT_EMBEDDED_IVARS : slot(writer, F_object_numiv));
	if (!ivars_shape(&walk->refs.ivars, writer->object->flags, &shape) || shape.address == 0)
		return;
	if (!shape.too_complex)
		number(writer, "ivars", shape.fields);
	yes(writer, "too_complex_shape", shape.too_complex);
}

static void of_file(struct writer *writer)
{
	struct access access = *writer->object->access;
	const uint64_t io = slot(writer, F_file_fptr);
	int64_t fd;

	if (io == 0 || !layout_has(writer->layout, F_io_fd))
		return;
	fd = access_signed(&access, io, F_io_fd);
	if (!access.failed)
		fprintf(writer->stream, ", \"fd\":%" PRId64, fd);
}

static void by_type(struct writer *writer, struct heap_walk *walk)
{
	const struct layout *layout = writer->layout;
	const uint64_t flags = writer->object->flags;

	if (slot_is(layout, flags, E_RUBY_T_STRING))
		of_string(writer, walk);
	else if (slot_is(layout, flags, E_RUBY_T_HASH))
		of_hash(writer);
	else if (slot_is(layout, flags, E_RUBY_T_ARRAY))
		of_array(writer);
	else if (slot_is(layout, flags, E_RUBY_T_OBJECT))
		of_object(writer, walk);
	else if (slot_is(layout, flags, E_RUBY_T_DATA))
		of_data(writer);
	else if (slot_is(layout, flags, E_RUBY_T_CLASS) || slot_is(layout, flags, E_RUBY_T_MODULE))
		of_class(writer, walk);
	else if (slot_is(layout, flags, E_RUBY_T_SYMBOL))
		of_symbol(writer, walk);
	else if (slot_is(layout, flags, E_RUBY_T_FILE))
		of_file(writer);
	else if (slot_is(layout, flags, E_RUBY_T_IMEMO)) {
		const char *imemo = object_imemo_name(layout, value_imemo_type(layout, flags));

		if (imemo)
			words(writer, "imemo_type", imemo + strlen("imemo_"));
	}
}

/* Notes that something refers to an object. Returns false if the object is in a page that was made meanwhile. */
static bool refers_to(struct writer *writer, uint64_t target)
{
	const uint32_t number = slots_number(writer->slots, target);

	if (number != 0)
		slot_set_add(&writer->referenced, number);
	return number != 0;
}

static void reference(void *context, const struct object_ref *ref)
{
	struct writer *writer = context;

	if (ref->label == REF_SUPER)
		writer->superclass = ref->target;
	/* Ruby, too, leaves out the class, which has a key of its own. */
	if (ref->target == writer->klass || !refers_to(writer, ref->target))
		return;
	if (writer->references++ == 0)
		name(writer, "references");
	fputs_unlocked(writer->references == 1 ? "[" : ", ", writer->stream);
	address(writer, ref->target);
}

static void references(struct writer *writer, struct heap_walk *walk)
{
	const struct heap_object *object = writer->object;

	writer->references = 0;
	writer->superclass = 0;
	if (!heap_walk_refs(walk, object, reference, writer))
		writer->result->unknown++;
	if (writer->references > 0)
		fputc_unlocked(']', writer->stream);
	if (writer->superclass != 0) {
		name(writer, "superclass");
		address(writer, writer->superclass);
	}
}

/*
 * objspace_dump.c, dump_object, v3_1_0 to v4_0_5 and head. Up to 2.7, Ruby writes "(null)" as the file, and 0 as the line,
 * if they are not known.
 */
static void allocation(struct writer *writer)
{
	struct allocation_site site;

	if (!allocation_sites_find(writer->sites, writer->object->slot.address, writer->object->flags, &site))
		return;
	if (site.path)
		words(writer, "file", site.path);
	if (site.line != 0) {
		name(writer, "line");
		fprintf(writer->stream, "%" PRId64, site.line);
	}
	if (site.method)
		words(writer, "method", site.method);
	number(writer, "generation", site.generation);
}

static void collector_flags(struct writer *writer)
{
	const struct heap_object *object = writer->object;
	const struct heap_copy_page *page = object->page;
	const struct {
		const char *name;
		bool is;
	} flags[] = {
	    {"wb_protected", page->shady && !heap_copy_bit(page, page->shady, object->index)},
	    {"old", collections_is_old(writer->layout, object->flags)},
	    {"marked", heap_copy_bit(page, page->marked, object->index)},
	    {"pinned", heap_copy_bit(page, page->pinned, object->index)},
	};
	bool any = false;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (!flags[i].is)
			continue;
		fprintf(writer->stream, "%s\"%s\":true", any ? ", " : ", \"flags\":{", flags[i].name);
		any = true;
	}
	if (any)
		fputc_unlocked('}', writer->stream);
}

static bool write_object(void *context, struct heap_walk *walk, const struct heap_object *object)
{
	struct writer *writer = context;
	const char *type = object_type_name(writer->layout, object->type);
	const bool internal = slot_is(writer->layout, object->flags, E_RUBY_T_IMEMO) ||
			      slot_is(writer->layout, object->flags, E_RUBY_T_NODE);
	const uint32_t slot_number = slots_number(writer->slots, object->slot.address);
	uint64_t owned;

	if (object->dead || !type || slot_number == 0)
		return true;
	slot_set_add(&writer->written, slot_number);
	writer->object = object;
	writer->klass = internal ? 0 : slot(writer, F_basic_klass);
	writer->result->objects++;
	fputs_unlocked("{\"address\":", writer->stream);
	address(writer, object->slot.address);
	words(writer, "type", type + strlen("T_"));
	number(writer, "slot_size", object->slot.size);
	if (writer->klass != 0) {
		name(writer, "class");
		address(writer, writer->klass);
	}
	yes(writer, "frozen", flag(writer, E_RUBY_FL_FREEZE));
	by_type(writer, walk);
	references(writer, walk);
	allocation(writer);
	if (heap_walk_size(walk, object, &owned))
		number(writer, "memsize", sum(object->slot.size, owned));
	collector_flags(writer);
	fputs_unlocked("}\n", writer->stream);
	return !ferror(writer->stream);
}

/* Ruby's names of the kinds of roots: gc.c, MARK_CHECKPOINT in gc_mark_roots, v2_7_0 to v4_0_5 and head. */
enum category { VM, FINALIZERS, MACHINE_CONTEXT, GLOBAL_LIST, GLOBAL_TABLE };
static const char *const categories[] = {
    [VM] = "vm",
    [FINALIZERS] = "finalizers",
    [MACHINE_CONTEXT] = "machine_context",
    [GLOBAL_LIST] = "global_list",
    [GLOBAL_TABLE] = "global_tbl",
};

static enum category category(enum heap_root_kind kind)
{
	switch (kind) {
	case ROOT_C_VARIABLE:
	case ROOT_REGISTERED:
		return GLOBAL_LIST;
	case ROOT_GLOBAL_VARIABLE:
		return GLOBAL_TABLE;
	case ROOT_FINALIZER:
		return FINALIZERS;
	case ROOT_NATIVE_STACK:
		return MACHINE_CONTEXT;
	default:
		return VM;
	}
}

/* The roots, until they are written: those of each category in the order in which they were found. */
struct roots_by_category {
	struct writer *writer;
	struct addresses of[sizeof(categories) / sizeof(categories[0])];
	bool no_memory;
};

static bool is_slot(void *context, uint64_t address)
{
	const struct roots_by_category *roots = context;

	return slots_number(roots->writer->slots, address) != 0;
}

static void keep_root(void *context, const struct heap_root *root)
{
	struct roots_by_category *roots = context;

	if (root->holder == 0)
		roots->no_memory |= !addresses_add(&roots->of[category(root->kind)], root->target);
}

/* Returns false if there is not enough memory. */
static bool write_roots(struct writer *writer, struct heap_roots *roots)
{
	struct roots_by_category by = {.writer = writer};

	heap_roots_each(roots, is_slot, keep_root, &by);
	for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++) {
		if (by.of[i].count > 0)
			fprintf(writer->stream, "{\"type\":\"ROOT\", \"root\":\"%s\", \"references\":[", categories[i]);
		for (size_t j = 0; j < by.of[i].count; j++) {
			if (j > 0)
				fputs_unlocked(", ", writer->stream);
			refers_to(writer, by.of[i].of[j]);
			address(writer, by.of[i].of[j]);
		}
		if (by.of[i].count > 0)
			fputs_unlocked("]}\n", writer->stream);
		addresses_clear(&by.of[i]);
	}
	return !by.no_memory;
}

/*
 * Writes a line for each slot that something refers to and that has no object: as Ruby's dump of the whole heap does.
 * Tools expect that each reference leads to a line.
 */
static void write_empty(struct writer *writer)
{
	const uint32_t count = slots_count(writer->slots);
	uint64_t size;

	for (uint32_t number = 1; number <= count && !ferror(writer->stream); number++) {
		if (!slot_set_has(&writer->referenced, number) || slot_set_has(&writer->written, number))
			continue;
		fputs_unlocked("{\"address\":", writer->stream);
		address(writer, slots_address(writer->slots, number, &size));
		fputs_unlocked(", \"type\":\"NONE\"}\n", writer->stream);
		writer->result->empty++;
	}
}

void objspace_dump_write(struct heap_walk *walk, struct heap_roots *roots, struct allocation_sites *sites, FILE *stream,
			 struct objspace_dump *ret)
{
	struct writer writer = {
	    .stream = stream, .result = ret, .layout = walk->ruby->layout, .slots = walk->slots, .sites = sites};

	*ret = (struct objspace_dump){0};
	if (slot_set_create(&writer.written, slots_count(walk->slots)) &&
	    slot_set_create(&writer.referenced, slots_count(walk->slots)) && write_roots(&writer, roots)) {
		walk->strings = true;
		/* What a Fiber's stack keeps alive only as long as the Fiber is alive is not among the roots. */
		walk->refs.contexts = true;
		heap_walk_each(walk, write_object, &writer);
		/* If the walk has ended early, the objects of the other slots are not known. */
		if (!walk->late)
			write_empty(&writer);
	} else {
		walk->no_memory = true;
	}
	free(writer.written.bits);
	free(writer.referenced.bits);
}
