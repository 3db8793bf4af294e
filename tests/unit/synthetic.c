#include "synthetic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "synthetic_layout.h"

/* A test that takes longer is in an endless loop: its program is ended. */
#define TEST_SECONDS 60

#define PAGES (SYNTHETIC_SIZE / MEMORY_PAGE)
/* How many inner Arrays the symbol table has. */
enum { ID_ARRAYS = 32 };

static void source(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	struct synthetic *s = context;

	s->copied = true;
	for (size_t i = 0; i < count; i++) {
		uint64_t page = (pages[i] - SYNTHETIC_BASE) / MEMORY_PAGE;

		ok[i] = pages[i] >= SYNTHETIC_BASE && page < PAGES && s->mapped[page];
		if (ok[i])
			memcpy(buffer + i * MEMORY_PAGE, s->bytes + page * MEMORY_PAGE, MEMORY_PAGE);
	}
}

static void create_symbols(struct synthetic *s)
{
	uint64_t arrays[ID_ARRAYS], none[SYNTHETIC_ID_UNIT * 2] = {0};

	for (size_t i = 0; i < ID_ARRAYS; i++)
		arrays[i] = synthetic_array(s, none, SYNTHETIC_ID_UNIT * 2);
	s->ruby.symbols = synthetic_struct(s, S_symbols);
	synthetic_set(s, s->ruby.symbols, F_symbols_ids, synthetic_array(s, arrays, ID_ARRAYS));
	synthetic_set(s, s->ruby.symbols, F_symbols_last_id, SYNTHETIC_LAST_OPERATOR);
	s->serial = SYNTHETIC_LAST_OPERATOR;
}

int synthetic_set_up(void **state)
{
	struct synthetic *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	alarm(TEST_SECONDS);
	s->bytes =
	    mmap(NULL, SYNTHETIC_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(s->bytes, MAP_FAILED);
	s->mapped = calloc(PAGES, 1);
	assert_non_null(s->mapped);
	s->next = SYNTHETIC_BASE + 0x1238;
	s->layout = synthetic_layout();
	s->ruby.layout = s->layout;
	s->ruby.memory = memory_create(source, s, PAGES);
	assert_non_null(s->ruby.memory);
	create_symbols(s);
	*state = s;
	return 0;
}

int synthetic_tear_down(void **state)
{
	struct synthetic *s = *state;

	alarm(0);
	memory_destroy(s->ruby.memory);
	layout_destroy(s->layout);
	munmap(s->bytes, SYNTHETIC_SIZE);
	free(s->mapped);
	free(s);
	return 0;
}

void synthetic_with(struct synthetic *s, enum layout_member_id id)
{
	s->layout->members[id].present = true;
}

void synthetic_without(struct synthetic *s, enum layout_member_id id)
{
	s->layout->members[id] = (struct layout_member){0};
}

void synthetic_without_enumerator(struct synthetic *s, enum layout_enumerator_id id)
{
	s->layout->enumerators[id] = (struct layout_number){0};
}

/* A write that the snapshot must not hide. */
static void writing(struct synthetic *s)
{
	if (s->copied)
		assert_true(memory_forget(s->ruby.memory));
	s->copied = false;
}

uint64_t synthetic_allocate(struct synthetic *s, size_t size)
{
	uint64_t address = s->next, offset = address - SYNTHETIC_BASE;

	writing(s);
	assert_true(size <= SYNTHETIC_SIZE - offset - 64);
	/* Objects lie at every place of a page, and across two. */
	s->next += (size + 7) / 8 * 8 + 24;
	for (uint64_t page = offset / MEMORY_PAGE; page <= (offset + size) / MEMORY_PAGE; page++)
		s->mapped[page] = true;
	memset(s->bytes + offset, POISON, size);
	return address;
}

void synthetic_unmap(struct synthetic *s, uint64_t address)
{
	writing(s);
	s->mapped[(address - SYNTHETIC_BASE) / MEMORY_PAGE] = false;
}

void synthetic_put(struct synthetic *s, uint64_t address, const void *bytes, size_t length)
{
	uint64_t offset = address - SYNTHETIC_BASE;

	writing(s);
	assert_true(address >= SYNTHETIC_BASE && offset + length <= SYNTHETIC_SIZE);
	assert_true(length == 0 || (s->mapped[offset / MEMORY_PAGE] && s->mapped[(offset + length - 1) / MEMORY_PAGE]));
	if (length > 0)
		memcpy(s->bytes + offset, bytes, length);
}

void synthetic_put_word(struct synthetic *s, uint64_t address, uint64_t word)
{
	synthetic_put(s, address, &word, sizeof(word));
}

void synthetic_set(struct synthetic *s, uint64_t object, enum layout_member_id id, uint64_t value)
{
	const struct layout_member *member = &s->layout->members[id];
	uint64_t address = object + member->offset, old = 0;

	assert_true(member->present && member->size <= 8);
	if (member->width > 0) {
		uint64_t mask = ((UINT64_C(1) << member->width) - 1) << member->shift;

		memcpy(&old, s->bytes + (address - SYNTHETIC_BASE), member->size);
		assert_true(value < UINT64_C(1) << member->width);
		value = (old & ~mask) | value << member->shift;
	}
	synthetic_put(s, address, &value, member->size);
}

static void clear_members(struct synthetic *s, uint64_t address, enum layout_struct_id id)
{
	for (int m = 0; m < LAYOUT_MEMBERS; m++) {
		static const uint8_t zero;
		const struct layout_member *member = &s->layout->members[m];

		if (layout_member_specs[m].parent != (int)id || !member->present)
			continue;
		if (member->width > 0)
			synthetic_set(s, address, m, 0);
		for (size_t i = 0; member->width == 0 && i < member->size; i++)
			synthetic_put(s, address + member->offset + i, &zero, 1);
	}
}

uint64_t synthetic_struct(struct synthetic *s, enum layout_struct_id id)
{
	uint64_t address = synthetic_allocate(s, (size_t)s->layout->sizes[id].value);

	if (synthetic_is_object(id))
		clear_members(s, address, S_basic);
	if (id == S_class_slot)
		clear_members(s, address, S_class);
	clear_members(s, address, id);
	return address;
}

uint64_t synthetic_object(struct synthetic *s, enum layout_struct_id id, uint64_t flags)
{
	uint64_t address = synthetic_struct(s, id);

	synthetic_set(s, address, F_basic_flags, flags);
	return address;
}

uint64_t synthetic_moved(struct synthetic *s, uint64_t destination)
{
	uint64_t object = synthetic_object(s, S_moved, synthetic_enum(s, E_RUBY_T_MOVED));

	synthetic_set(s, object, F_moved_destination, destination);
	return object;
}

uint64_t synthetic_enum(const struct synthetic *s, enum layout_enumerator_id id)
{
	assert_true(s->layout->enumerators[id].present);
	return (uint64_t)s->layout->enumerators[id].value;
}

uint64_t synthetic_imemo(struct synthetic *s, enum layout_struct_id id, enum layout_enumerator_id imemo_type)
{
	return synthetic_object(s, id,
				synthetic_enum(s, E_RUBY_T_IMEMO) | synthetic_enum(s, imemo_type)
									<< synthetic_enum(s, E_RUBY_FL_USHIFT));
}

uint64_t synthetic_string(struct synthetic *s, const char *text)
{
	uint64_t bytes = synthetic_allocate(s, strlen(text) + 1);
	uint64_t object =
	    synthetic_object(s, S_string, synthetic_enum(s, E_RUBY_T_STRING) | synthetic_enum(s, E_RSTRING_NOEMBED));

	synthetic_put(s, bytes, text, strlen(text));
	synthetic_set(s, object, F_string_len, strlen(text));
	synthetic_set(s, object, F_string_heap_ptr, bytes);
	return object;
}

uint64_t synthetic_array(struct synthetic *s, const uint64_t *elements, size_t count)
{
	uint64_t copy = synthetic_allocate(s, count * 8);
	uint64_t object = synthetic_object(s, S_array, synthetic_enum(s, E_RUBY_T_ARRAY));

	synthetic_put(s, copy, elements, count * 8);
	synthetic_set(s, object, F_array_heap_len, count);
	synthetic_set(s, object, F_array_heap_ptr, copy);
	return object;
}

static uint64_t word_at(const struct synthetic *s, uint64_t address)
{
	uint64_t word;

	memcpy(&word, s->bytes + (address - SYNTHETIC_BASE), 8);
	return word;
}

void synthetic_name_id(struct synthetic *s, uint64_t id, const char *name)
{
	const struct layout_member *members = s->layout->members;
	uint64_t serial = id > SYNTHETIC_LAST_OPERATOR ? id >> SYNTHETIC_ID_SHIFT : id;
	uint64_t outer = word_at(s, s->ruby.symbols + members[F_symbols_ids].offset), inner;

	assert_true(serial < ID_ARRAYS * SYNTHETIC_ID_UNIT);
	inner = word_at(s, word_at(s, outer + members[F_array_heap_ptr].offset) + serial / SYNTHETIC_ID_UNIT * 8);
	synthetic_put_word(s, word_at(s, inner + members[F_array_heap_ptr].offset) + serial % SYNTHETIC_ID_UNIT * 2 * 8,
			   synthetic_string(s, name));
}

uint64_t synthetic_id(struct synthetic *s, const char *name)
{
	uint64_t id = ++s->serial << SYNTHETIC_ID_SHIFT | 1; /* of a local variable */

	synthetic_set(s, s->ruby.symbols, F_symbols_last_id, s->serial);
	synthetic_name_id(s, id, name);
	return id;
}

uint64_t synthetic_class(struct synthetic *s, enum layout_enumerator_id type, const char *path, bool permanent)
{
	uint64_t klass = synthetic_object(s, S_class_slot, synthetic_enum(s, type));

	if (path)
		synthetic_set(s, klass, F_class_slot_classpath, synthetic_string(s, path));
	synthetic_set(s, klass, F_class_slot_permanent, permanent);
	return klass;
}

uint64_t synthetic_singleton(struct synthetic *s, uint64_t of)
{
	uint64_t klass = synthetic_class(s, E_RUBY_T_CLASS, NULL, false);

	synthetic_set(s, klass, F_basic_flags,
		      synthetic_enum(s, E_RUBY_T_CLASS) | synthetic_enum(s, E_RUBY_FL_SINGLETON));
	synthetic_set(s, klass, F_class_slot_attached_object, of);
	return klass;
}

uint64_t synthetic_method(struct synthetic *s, enum layout_enumerator_id type, uint64_t owner, const char *name)
{
	uint64_t method = synthetic_imemo(s, S_ment, E_imemo_ment), definition = synthetic_struct(s, S_mdef);

	synthetic_set(s, method, F_ment_def, definition);
	synthetic_set(s, method, F_ment_owner, owner);
	synthetic_set(s, definition, F_mdef_type, synthetic_enum(s, type));
	synthetic_set(s, definition, F_mdef_original_id, synthetic_id(s, name));
	return method;
}

uint64_t synthetic_body(struct synthetic *s, uint64_t code)
{
	return word_at(s, code + s->layout->members[F_iseq_body].offset);
}

uint64_t synthetic_code(struct synthetic *s, enum layout_enumerator_id type, const char *label)
{
	uint64_t code = synthetic_imemo(s, S_iseq, E_imemo_iseq), body = synthetic_struct(s, S_body);

	synthetic_set(s, code, F_iseq_body, body);
	synthetic_set(s, body, F_body_type, synthetic_enum(s, type));
	synthetic_set(s, body, F_body_iseq_size, 100);
	synthetic_set(s, body, F_body_iseq_encoded, synthetic_allocate(s, 800));
	synthetic_set(s, body, F_body_label, synthetic_string(s, label));
	synthetic_set(s, body, F_body_pathobj, synthetic_string(s, "/app/x.rb"));
	synthetic_set(s, body, F_body_local_iseq, code);
	return code;
}
