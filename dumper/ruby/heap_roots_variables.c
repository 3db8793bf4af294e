#include <string.h>

#include "ruby/heap_roots_parts.h"

/* The most elements of a list. */
#define LINKS_MAX (1u << 20)

/*
 * How many entries of a table must be right so that it is that of the global variables, of which Ruby itself has some
 * fifty. Also how many elements of a list are looked at.
 */
#define ENTRIES_RIGHT 16u

/* The largest table of global variables that is searched for. */
#define CAPACITY_MAX 65536u

/* The limits of a search for the variables of a stripped Ruby. */
#define SEARCH_PAGES 16384
#define SEARCH_NS    2000000000L

static uint64_t root_address(const struct heap_roots *roots, const char *name, enum layout_symbol_id id)
{
	const struct layout *layout = roots->ruby->layout;
	const struct module *module = roots->module;
	struct module_symbol symbol = {.name = name};

	module_lookup(module, &symbol, 1);
	if (symbol.address != 0 || !layout->symbols[id].present)
		return symbol.address;
	if (!layout->build_id || !module->build_id || strcmp(layout->build_id, module->build_id) != 0)
		return 0;
	return layout->symbols[id].address + module->bias;
}

static bool has_globals(const struct layout *layout)
{
	return layout_has(layout, F_global_entry_var) && layout_has(layout, F_global_entry_id) &&
	       layout_has(layout, F_global_var_data);
}

/* An entry knows its own ID. Stops if that is another one than the key. Counts the entries. */
static bool is_entry(void *context, struct access *access, uint64_t serial, uint64_t entry)
{
	const uint64_t id = access_member(access, entry, F_global_entry_id);
	const uint64_t variable = access_member(access, entry, F_global_entry_var);
	size_t *left = context;

	access_member(access, variable, F_global_var_data);
	if (access->failed || id >> access_enum(access, E_RUBY_ID_SCOPE_SHIFT) != serial)
		access_fail(access, entry);
	if (!access->failed)
		(*left)--;
	return !access->failed && *left > 0;
}

/* A search for the variables of a stripped Ruby, with a snapshot of its own: most words lead to something else. */
struct search {
	struct heap_roots *roots;
	struct memory *memory;
};

/* Whether a word points to the table of global variables. */
static bool is_global_table(const struct search *search, uint64_t word)
{
	struct access access = access_begin(search->memory, search->roots->ruby->layout);
	const uint64_t capacity = access_member(&access, word, F_id_table_capa);
	size_t left = ENTRIES_RIGHT;

	/* id_table.c, v2_3_0 to v4.0.5 and head: round_capa gives a power of two. */
	if (access.failed || capacity > CAPACITY_MAX || (capacity & (capacity - 1)) != 0)
		return false;
	roots_each_id(&access, word, is_entry, &left);
	return left == 0;
}

static bool is_in_module(const struct module *module, uint64_t address)
{
	return address >= module->whole.start && address < module->whole.end;
}

static void look_at_word(void *context, uint64_t address, uint64_t word)
{
	const struct search *search = context;
	struct heap_roots *roots = search->roots;
	const struct layout *layout = roots->ruby->layout;

	if (is_in_module(roots->module, word))
		return;
	if (roots->global_variables == 0 && has_globals(layout) && layout_has(layout, F_id_table_items) &&
	    layout_has(layout, F_id_table_capa) && is_global_table(search, word))
		roots->global_variables = address;
}

static void search_variables(struct heap_roots *roots)
{
	const struct module *module = roots->module;
	struct search search = {roots, memory_create(roots->scan.source, roots->scan.context, SEARCH_PAGES)};

	if (!search.memory)
		return;
	memory_limit(search.memory, SEARCH_NS);
	for (size_t i = 0; i < module->nr_data; i++)
		if (!word_scan_each(&roots->scan, module->data[i].start, module->data[i].end, look_at_word, &search))
			roots->incomplete = true;
	roots->incomplete |= memory_is_over(search.memory);
	memory_destroy(search.memory);
}

void roots_find_variables(struct heap_roots *roots)
{
	roots->global_variables = root_address(roots, "rb_global_tbl", Y_rb_global_tbl);
	if (roots->global_variables == 0)
		search_variables(roots);
	roots->incomplete |= roots->global_variables == 0;
}

/*
 * The data of a variable is the value itself (rb_gvar_val_marker), or the address of a variable of C code
 * (rb_gvar_var_marker): variable.c, v1_9_3_0 to v4.0.5 and head.
 */
static void give_variable(struct roots_walk *walk, uint64_t entry)
{
	struct access access = walk->access;
	const uint64_t variable = access_member(&access, entry, F_global_entry_var);
	const uint64_t data = access_member(&access, variable, F_global_var_data);
	uint64_t value;

	roots_begin(walk, ROOT_GLOBAL_VARIABLE, REF_EXACT, access_member(&access, entry, F_global_entry_id));
	if (access.failed) {
		roots_lack(walk);
		return;
	}
	roots_give(walk, access_address(&access, variable, F_global_var_data), data);
	if (!value_is_object(data) || walk->is_object(walk->context, data))
		return;
	/* What is not the address of a variable need not be readable. */
	value = access_word(&access, data);
	if (!access.failed)
		roots_give(walk, data, value);
}

static bool give_entry(void *context, struct access *access, uint64_t key, uint64_t entry)
{
	(void)access;
	(void)key;
	give_variable(context, entry);
	return true;
}

void roots_give_global_variables(struct roots_walk *walk)
{
	const struct layout *layout = walk->access.layout;
	const uint64_t at = walk->roots->global_variables;
	struct access access = walk->access;
	uint64_t table;
	bool all;

	if (at == 0 || !has_globals(layout))
		return;
	table = access_word(&access, at);
	all = st_replaced_by_id_tables(layout) ? roots_each_id(&access, table, give_entry, walk)
					       : st_each(&access, table, LINKS_MAX, give_entry, walk);
	if (!all)
		roots_lack(walk);
}

/* C code has registered the variable at an address. */
static void give_registered(struct roots_walk *walk, uint64_t variable)
{
	struct access access = walk->access;
	const uint64_t value = access_word(&access, variable);

	if (access.failed)
		roots_lack(walk);
	else
		roots_give(walk, variable, value);
}

/* head: the list is an array. */
static void give_registered_array(struct roots_walk *walk, uint64_t vm)
{
	struct access *access = &walk->access;
	const uint64_t count = access_member(access, vm, F_vm_nr_global_objects);
	const uint64_t array = access_member(access, vm, F_vm_global_objects);

	if (access->failed || count > LINKS_MAX) {
		roots_lack(walk);
		return;
	}
	memory_want(access->memory, array, array + count * 8);
	memory_fetch(access->memory);
	for (uint64_t i = 0; i < count && !access->failed; i++)
		give_registered(walk, access_word(access, array + i * 8));
	if (access->failed)
		roots_lack(walk);
}

void roots_give_registered(struct roots_walk *walk)
{
	struct access *access = &walk->access;
	const uint64_t vm = walk->roots->ruby->vm;
	uint64_t link = 0, mark = 0;

	roots_begin(walk, ROOT_REGISTERED, REF_EXACT, 0);
	if (layout_has(access->layout, F_vm_global_objects) && layout_has(access->layout, F_vm_nr_global_objects)) {
		give_registered_array(walk, vm);
		return;
	}
	if (!layout_has(access->layout, F_registered_varptr) || !layout_has(access->layout, F_registered_next))
		return;
	if (layout_has(access->layout, F_vm_global_objects))
		link = access_member(access, vm, F_vm_global_objects);
	else if (layout_has(access->layout, F_objspace_registered))
		link = access_member(access, access_member(access, vm, F_vm_objspace), F_objspace_registered);
	/* A list that leads into a circle: Brent's algorithm finds it. */
	for (size_t i = 0, lap = 1; link != 0 && link != mark && i < LINKS_MAX && !access->failed; i++) {
		give_registered(walk, access_member(access, link, F_registered_varptr));
		if (i == lap) {
			mark = link;
			lap *= 2;
		}
		link = access_member(access, link, F_registered_next);
	}
	if (link != 0 || access->failed)
		roots_lack(walk);
}
