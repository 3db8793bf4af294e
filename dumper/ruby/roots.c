#include "ruby/roots.h"

#include <stdlib.h>
#include <string.h>

#include "ruby/class.h"
#include "ruby/context.h"
#include "ruby/symbol.h"

/* template/id.h.tmpl, v1_9_3_0 to v4.0.5 and head: an operator of one character is its own ID. */
#define ID_PLUS ((uint64_t)'+')

void roots_from_module(const struct module *module, struct roots *ret)
{
	enum {
		VM,
		VM_BEFORE,
		SYMBOLS,
		SYMBOLS_BEFORE,
		OPERATORS,
		OBJECT,
		LATE,
		ZJIT,
		SHAPES,
		SHAPES_LATER,
		IVARS,
		IVARS_BEFORE,
		IVARS_LATER,
		VERSION,
		DESCRIPTION,
		COUNT
	};
	struct module_symbol symbols[COUNT] = {
	    [VM] = {.name = "ruby_current_vm_ptr"},
	    [VM_BEFORE] = {.name = "ruby_current_vm"}, /* up to 2.4 */
	    [SYMBOLS] = {.name = "ruby_global_symbols"},
	    [SYMBOLS_BEFORE] = {.name = "global_symbols"}, /* up to 2.6 */
	    [OPERATORS] = {.name = "op_tbl"},
	    [OBJECT] = {.name = "rb_cObject"},
	    [LATE] = {.name = "rb_cComplex"},
	    [ZJIT] = {.name = "rb_zjit_entry"}, /* since 4.0, if it was built in */
	    [SHAPES] = {.name = "rb_shape_tree_ptr"},
	    [SHAPES_LATER] = {.name = "rb_shape_tree"}, /* since 4.0 */
	    [IVARS] = {.name = "generic_iv_tbl_"},
	    [IVARS_BEFORE] = {.name = "generic_iv_tbl"},     /* up to 2.7 */
	    [IVARS_LATER] = {.name = "generic_fields_tbl_"}, /* since 4.0 */
	    [VERSION] = {.name = "ruby_version"},
	    [DESCRIPTION] = {.name = "ruby_description"},
	};

	module_lookup(module, symbols, COUNT);
	*ret = (struct roots){
	    .current_vm = symbols[VM].address ? symbols[VM].address : symbols[VM_BEFORE].address,
	    .global_symbols = symbols[SYMBOLS].address ? symbols[SYMBOLS].address : symbols[SYMBOLS_BEFORE].address,
	    .operators = symbols[OPERATORS].address,
	    .object_class = symbols[OBJECT].address,
	    .late_class = symbols[LATE].address,
	    .zjit_entry = symbols[ZJIT].address,
	    .shape_tree = symbols[SHAPES].address ? symbols[SHAPES].address : symbols[SHAPES_LATER].address,
	    .generic_ivars = symbols[IVARS].address	     ? symbols[IVARS].address
			     : symbols[IVARS_BEFORE].address ? symbols[IVARS_BEFORE].address
							     : symbols[IVARS_LATER].address,
	    .version = symbols[VERSION].address,
	    .description = symbols[DESCRIPTION].address ? symbols[DESCRIPTION].address : module->description,
	};
}

static void take(uint64_t *root, const struct layout *layout, enum layout_symbol_id id, uint64_t bias)
{
	if (*root == 0 && layout->symbols[id].present)
		*root = layout->symbols[id].address + bias;
}

void roots_from_layout(const struct layout *layout, const struct module *module, struct roots *roots)
{
	if (!layout->build_id || !module->build_id || strcmp(layout->build_id, module->build_id) != 0)
		return;
	take(&roots->current_vm, layout, Y_ruby_current_vm_ptr, module->bias);
	take(&roots->global_symbols, layout, Y_ruby_global_symbols, module->bias);
	take(&roots->zjit_entry, layout, Y_rb_zjit_entry, module->bias);
	take(&roots->operators, layout, Y_op_tbl, module->bias);
	take(&roots->shape_tree, layout, Y_rb_shape_tree_ptr, module->bias);
	take(&roots->generic_ivars, layout, Y_generic_iv_tbl_, module->bias);
}

/* How much of a module is searched: Ruby's own data is some 200 KiB. */
#define SEARCH_MAX (UINT64_C(16) << 20)

/* The longest that a search takes: hostile data may look like tables without end. */
#define SEARCH_NS 2000000000L

/* The most pointers between a variable and what identifies it; so pages are fetched at most so often. */
#define SEARCH_ROUNDS 16

struct search {
	const struct module *module;
	struct memory *memory; /* sealed: missing pages are noted, and fetched together */
	const struct layout *layout;
	const struct roots *roots;
	uint64_t *pending; /* addresses that are not decided yet */
	size_t capacity;
};

/*
 * Whether a value can be a pointer to an object or a variable of Ruby. Most pointers in the data of a module lead to
 * its own code and constants, and many words that look like a pointer are two numbers.
 */
static bool may_be_allocated(const struct module *module, uint64_t value)
{
	if (!value_is_object(value))
		return false;
	for (size_t i = 0; i < module->nr_data; i++)
		if (value >= module->data[i].start && value < module->data[i].end)
			return true;
	return (value < module->whole.start || value >= module->whole.end) && target_may_have(module->target, value);
}

/*
 * Whether the variable at `at` points to a VM that has a main thread: then *ret receives that thread's execution
 * context.
 */
static bool has_main_thread(const struct search *search, uint64_t at, uint64_t *ret)
{
	const struct layout *layout = search->layout;
	struct access access = access_begin(search->memory, layout);
	uint64_t vm = access_word(&access, at), thread;

	if (!may_be_allocated(search->module, vm) || !layout_has(layout, F_vm_main_thread) ||
	    !layout_has(layout, F_thread_vm))
		return false;
	thread = access_member(&access, vm, F_vm_main_thread);
	if (access.failed || !may_be_allocated(search->module, thread) ||
	    access_member(&access, thread, F_thread_vm) != vm)
		return false;
	*ret = context_of_thread(&access, thread);
	return !access.failed && (*ret == 0 || context_thread(&access, *ret) == thread) && !access.failed;
}

/* Whether the variable at `at` points to a VM. */
static bool is_vm(const struct search *search, uint64_t at)
{
	uint64_t ec;

	return has_main_thread(search, at, &ec) && ec != 0;
}

/* Whether the variable at `at` points to a VM whose main thread has no execution context any more. */
static bool is_ended_vm(const struct search *search, uint64_t at)
{
	uint64_t ec;

	return has_main_thread(search, at, &ec) && ec == 0;
}

/* Whether the variable at `at` is a symbol table. */
static bool is_symbol_table(const struct search *search, uint64_t at)
{
	struct ruby ruby = {.memory = search->memory, .layout = search->layout, .symbols = at};
	struct access access = ruby_access(&ruby);

	/* Up to 2.1 an operator may have no String, but some other names are known as well. */
	if (!layout_has(search->layout, F_symbols_ids))
		return layout_has(search->layout, F_symbols_id_str) &&
		       may_be_allocated(search->module, access_member(&access, at, F_symbols_id_str)) &&
		       search->layout->enumerators[E_idMethodMissing].present &&
		       value_bytes_are(&access, symbol_name(&ruby, &access, access_enum(&access, E_idMethodMissing)),
				       "method_missing") &&
		       !access.failed;
	if (symbol_serials_end(&access, at) <= access_enum(&access, E_tLAST_OP_ID) + 1 ||
	    !may_be_allocated(search->module, access_member(&access, at, F_symbols_ids)))
		return false;
	return value_bytes_are(&access, symbol_name(&ruby, &access, ID_PLUS), "+") && !access.failed;
}

/*
 * Whether the variable at `at` refers to the class Object. Up to 3.2, names of classes are found by IDs, and in 3.2
 * by the VM's shapes.
 */
static bool is_object_class(const struct search *search, uint64_t at)
{
	const struct roots *roots = search->roots;
	struct ruby ruby = {.memory = search->memory, .layout = search->layout, .symbols = roots->global_symbols};
	struct access access = ruby_access(&ruby);
	uint64_t object = access_word(&access, at);
	struct bytes path;
	bool permanent;

	if (roots->current_vm != 0)
		ruby.vm = access_word(&access, roots->current_vm);
	if (!may_be_allocated(search->module, object) ||
	    value_type(&access, object) != access_enum(&access, E_RUBY_T_CLASS) || access.failed)
		return false;
	class_path(&ruby, &access, object, &path, &permanent);
	return permanent && value_bytes_are(&access, path, "Object") && !access.failed;
}

typedef bool root_test(const struct search *search, uint64_t at);

/* Tests one variable; if that needs pages that are missing, notes the variable for the next round. */
static bool try(const struct search *search, root_test *is_root, uint64_t at, size_t *pending)
{
	size_t missed = memory_missed(search->memory);

	if (is_root(search, at))
		return true;
	if (memory_missed(search->memory) > missed && *pending < search->capacity)
		search->pending[(*pending)++] = at;
	return false;
}

/*
 * The address of the variable that passes a test; 0 if none does. All variables are tested as far as the present
 * pages allow; then all missing pages are copied together, and the variables that lacked them are tested again.
 */
static uint64_t find(const struct search *search, root_test *is_root)
{
	uint64_t left = SEARCH_MAX;
	size_t pending = 0;

	for (size_t i = 0; i < search->module->nr_data; i++) {
		const struct module_segment *data = &search->module->data[i];

		for (uint64_t at = (data->start + 7) & ~UINT64_C(7); at + 8 <= data->end && left >= 8;
		     at += 8, left -= 8) {
			if (memory_is_over(search->memory))
				return 0;
			if (try(search, is_root, at, &pending))
				return at;
		}
	}
	for (int round = 0; round < SEARCH_ROUNDS && pending > 0; round++) {
		size_t count = pending;

		if (memory_fetch(search->memory) == 0)
			return 0;
		pending = 0;
		for (size_t i = 0; i < count; i++) {
			uint64_t at = search->pending[i];

			if (memory_is_over(search->memory))
				return 0;
			if (try(search, is_root, at, &pending))
				return at;
		}
	}
	return 0;
}

/* Requests the pages of the module's data. Returns how many words that are. */
static size_t want_data(const struct module *module, struct memory *memory)
{
	uint64_t left = SEARCH_MAX;

	for (size_t i = 0; i < module->nr_data; i++) {
		uint64_t start = module->data[i].start, length = module->data[i].end - start;

		length = length < left ? length : left;
		memory_want(memory, start, start + length);
		left -= length;
	}
	return (SEARCH_MAX - left) / 8;
}

void roots_add(struct roots *roots, const struct roots *more)
{
	if (roots->current_vm == 0)
		roots->current_vm = more->current_vm;
	if (roots->global_symbols == 0)
		roots->global_symbols = more->global_symbols;
	if (roots->object_class == 0)
		roots->object_class = more->object_class;
}

bool roots_are_complete(const struct roots *roots)
{
	return roots->current_vm != 0 && roots->global_symbols != 0 && roots->object_class != 0;
}

void roots_check(const struct module *module, struct memory *memory, const struct layout *layout, struct roots *roots)
{
	const struct search search = {.module = module, .memory = memory, .layout = layout, .roots = roots};

	if (roots->current_vm != 0 && !is_vm(&search, roots->current_vm))
		roots->current_vm = 0;
	if (roots->global_symbols != 0 && !is_symbol_table(&search, roots->global_symbols))
		roots->global_symbols = 0;
	if (roots->object_class != 0 && !is_object_class(&search, roots->object_class))
		roots->object_class = 0;
}

/* How long the data of the module is. */
static uint64_t length_of_data(const struct module *module)
{
	uint64_t length = 0;

	for (size_t i = 0; i < module->nr_data; i++)
		length += module->data[i].end - module->data[i].start;
	return length;
}

/* Requests all pages that are searched, and allocates memory for the search. False if there is not enough memory. */
static bool search_begin(struct search *search)
{
	memory_limit(search->memory, SEARCH_NS);
	memory_seal(search->memory);
	search->capacity = want_data(search->module, search->memory);
	search->pending = calloc(search->capacity + 1, sizeof(*search->pending));
	if (search->pending)
		memory_fetch(search->memory);
	return search->pending;
}

/* Ends a search. Returns whether there was more to search. */
static bool search_end(struct search *search)
{
	bool cut = length_of_data(search->module) > SEARCH_MAX || memory_is_over(search->memory);

	free(search->pending);
	memory_limit(search->memory, 0);
	return cut;
}

void roots_search(const struct module *module, struct memory *memory, const struct layout *layout, struct roots *roots)
{
	struct search search = {.module = module, .memory = memory, .layout = layout, .roots = roots};

	if (!search_begin(&search))
		return;
	if (roots->current_vm == 0)
		roots->current_vm = find(&search, is_vm);
	if (roots->global_symbols == 0)
		roots->global_symbols = find(&search, is_symbol_table);
	if (roots->object_class == 0)
		roots->object_class = find(&search, is_object_class);
	roots->cut = search_end(&search);
}

uint64_t roots_search_ended_vm(const struct module *module, struct memory *memory, const struct layout *layout)
{
	struct search search = {.module = module, .memory = memory, .layout = layout};
	uint64_t at;

	if (!search_begin(&search))
		return 0;
	at = find(&search, is_ended_vm);
	search_end(&search);
	return at;
}

enum zjit roots_zjit(const struct roots *roots, struct memory *memory)
{
	uint64_t entry;

	if (roots->zjit_entry == 0 || !memory_read(memory, roots->zjit_entry, &entry, sizeof(entry)))
		return ZJIT_UNKNOWN;
	return entry != 0 ? ZJIT_ON : ZJIT_OFF;
}
