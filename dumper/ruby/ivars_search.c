#include "ruby/ivars_search.h"

#include "memory/word_scan.h"
#include "ruby/heap_pages.h"
#include "ruby/ivars.h"
#include "ruby/object_slot.h"
#include "ruby/st.h"
#include "ruby/value.h"

/* The limits of a search: pages of memory, time, and bytes of data. */
#define SEARCH_PAGES 16384
#define SEARCH_NS    2000000000L
#define SEARCH_BYTES (UINT64_C(64) << 20)

/* How many entries of a table are looked at, and how many shapes must be right. */
#define ENTRIES 16u
#define SHAPES	24u
#define ENOUGH	2u

/* shape.h, INVALID_SHAPE_ID, v3_2_0 to v4_0_5 and head: the parent of the first shape; at least this. */
#define INVALID_MIN 0x7fffu

/* shape.h, SIZE_POOL_COUNT and the first shapes, v3_2_0 to v4_0_5 and head: those without a parent have low numbers. */
#define ROOTS_END   16u
#define PARENTS_MAX 512

/* The most instance variables of an object, and the most entries of a table, that are taken for possible. */
#define FIELDS_MAX  65536u
#define ENTRIES_MAX (UINT64_C(1) << 32)

struct search {
	struct ruby ruby;
	const struct module *module;
	bool wants_generic, wants_shapes;
	uint64_t flags[SHAPES]; /* of objects with instance variables */
	size_t nr_flags;
	uint64_t generic, shapes; /* what was found */
};

/* Objects, classes and modules have their shapes in their flags. */
static bool has_shape(const struct layout *layout, uint64_t flags)
{
	return slot_is(layout, flags, E_RUBY_T_OBJECT) || slot_is(layout, flags, E_RUBY_T_CLASS) ||
	       slot_is(layout, flags, E_RUBY_T_MODULE);
}

/* Collects the flags of some objects with different shapes. */
static void take_flags(struct search *search, const struct heap_page *page)
{
	const struct layout *layout = search->ruby.layout;

	for (uint64_t i = 0; i < page->slots && search->nr_flags < SHAPES; i++) {
		struct access access = ruby_access(&search->ruby);
		const uint64_t flags = value_flags(&access, page->start + i * page->slot_size);
		bool is_new = has_shape(layout, flags) && !access.failed;

		for (size_t j = 0; j < search->nr_flags && is_new; j++)
			is_new = search->flags[j] >> 32 != flags >> 32;
		if (is_new)
			search->flags[search->nr_flags++] = flags;
	}
}

static void collect_flags(struct search *search)
{
	struct heap_pages pages;
	struct heap_page page;

	if (!heap_pages_begin(search->ruby.memory, search->ruby.memory, search->ruby.layout, search->ruby.vm, &pages))
		return;
	while (search->nr_flags < SHAPES && heap_pages_next(&pages, &page))
		if (!page.damaged)
			take_flags(search, &page);
}

/* Whether the shape of an object, and the shapes that it was made of, can be right. */
static bool is_shape(struct ivars *ivars, uint64_t flags, bool *has_fields)
{
	struct access access = access_begin(ivars->lasting, ivars->layout);
	struct object_shape shape;
	uint64_t id;

	if (!ivars_shape(ivars, flags, &shape) || shape.address == 0 || shape.fields > FIELDS_MAX)
		return false;
	*has_fields = shape.fields > 0;
	id = (shape.address - ivars->shapes) / access_sizeof(&access, S_shape);
	for (int i = 0; i < PARENTS_MAX && id >= ROOTS_END; i++) {
		const uint64_t parent =
		    access_member(&access, ivars->shapes + id * access_sizeof(&access, S_shape), F_shape_parent_id);
		struct object_shape above;

		/* A shape is made after its parent, and has at most one instance variable more. */
		if (access.failed || parent >= id || !ivars_shape_of_id(ivars, parent, &above) ||
		    above.fields > shape.fields || above.fields + 1 < shape.fields)
			return false;
		id = parent;
		shape = above;
	}
	return id < ROOTS_END;
}

static bool are_shapes(const struct search *search, uint64_t list)
{
	struct ivars ivars = {.layout = search->ruby.layout, .lasting = search->ruby.memory, .shapes = list};
	struct access access = ruby_access(&search->ruby);
	size_t with_fields = 0;

	if (access_member(&access, list, F_shape_parent_id) < INVALID_MIN || access.failed)
		return false;
	for (size_t i = 0; i < search->nr_flags; i++) {
		bool has_fields;

		if (!is_shape(&ivars, search->flags[i], &has_fields))
			return false;
		with_fields += has_fields;
	}
	return with_fields >= ENOUGH;
}

/* Entries of a table, while they are looked at. */
struct entries {
	const struct layout *layout;
	size_t seen;
};

static bool is_entry(void *context, struct access *access, uint64_t key, uint64_t record)
{
	struct entries *entries = context;
	const struct layout *layout = entries->layout;
	bool right = value_is_object(key) && value_is_object(record);
	uint64_t bytes;

	if (right && layout_has(layout, F_generic_ivars_numiv))
		right = access_member(access, record, F_generic_ivars_numiv) <= FIELDS_MAX &&
			ivars_may_be_generic(layout, value_flags(access, key));
	else if (right && ivars_generic_are_tables(layout))
		right = st_size(access, record, &bytes) &&
			access_member(access, record, F_st_num_entries) <= FIELDS_MAX &&
			ivars_may_be_generic(layout, value_flags(access, key));
	else if (right)
		right = value_is_imemo(access, record, E_imemo_fields) &&
			access_member(access, record, F_basic_klass) == key;
	if (!right)
		access_fail(access, record);
	return right && !access->failed && ++entries->seen < ENTRIES;
}

static bool is_generic_table(const struct search *search, uint64_t table)
{
	struct access access = ruby_access(&search->ruby);
	struct entries entries = {.layout = search->ruby.layout};
	uint64_t bytes, count;

	if (!st_size(&access, table, &bytes))
		return false;
	count = access_member(&access, table, F_st_num_entries);
	if (access.failed || count == 0 || count > ENTRIES_MAX)
		return false;
	st_each(&access, table, ENTRIES * 4, is_entry, &entries);
	return !access.failed && entries.seen == (count < ENTRIES ? count : ENTRIES);
}

static void look_at_word(void *context, uint64_t address, uint64_t word)
{
	struct search *search = context;
	const struct layout *layout = search->ruby.layout;
	struct access access = ruby_access(&search->ruby);

	if (word >= search->module->whole.start && word < search->module->whole.end)
		return;
	if (search->wants_generic && search->generic == 0 && is_generic_table(search, word))
		search->generic = address;
	if (!search->wants_shapes || search->shapes != 0)
		return;
	/* Up to 3.4, the variable is a pointer to the struct; since 4.0, it is the struct. */
	if (layout_has(layout, F_shape_fields)) {
		if (are_shapes(search, word))
			search->shapes = address - layout->members[F_shape_tree_list].offset;
	} else {
		const uint64_t list = access_member(&access, word, F_shape_tree_list);

		if (!access.failed && value_is_object(list) && are_shapes(search, list))
			search->shapes = address;
	}
}

static bool has_generic_table(const struct layout *layout)
{
	return layout_has(layout, F_generic_ivars_numiv) || layout->enumerators[E_imemo_fields].present ||
	       ivars_generic_are_tables(layout);
}

bool ivars_search(const struct module *module, memory_source *source, void *context, struct ruby *ruby)
{
	const struct layout *layout = ruby->layout;
	struct search search = {.ruby = *ruby, .module = module};
	struct word_scan scan;
	bool enough;

	search.wants_generic = ruby->generic_ivars == 0 && has_generic_table(layout);
	search.wants_shapes =
	    ruby->shape_tree == 0 && layout_has(layout, F_shape_tree_list) && !layout_has(layout, F_vm_shape_list);
	if (!search.wants_generic && !search.wants_shapes)
		return true;
	search.ruby.memory = memory_create(source, context, SEARCH_PAGES);
	enough = search.ruby.memory && word_scan_begin(source, context, SEARCH_BYTES, 0, &scan);
	if (enough) {
		memory_limit(search.ruby.memory, SEARCH_NS);
		if (search.wants_shapes)
			collect_flags(&search);
		for (size_t i = 0; i < module->nr_data; i++)
			word_scan_each(&scan, module->data[i].start, module->data[i].end, look_at_word, &search);
		word_scan_end(&scan);
		if (search.generic != 0)
			ruby->generic_ivars = search.generic;
		if (search.shapes != 0)
			ruby->shape_tree = search.shapes;
	}
	memory_destroy(search.ruby.memory);
	return enough;
}
