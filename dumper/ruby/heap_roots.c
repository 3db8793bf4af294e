#include "ruby/heap_roots.h"

#include <ctype.h>
#include <string.h>

#include "ruby/heap_roots_parts.h"
#include "ruby/st.h"

/* The most memory that is looked at for roots, in all. */
#define BYTES_MAX (UINT64_C(4) << 30)

/* The most entries of a table. */
#define ENTRIES_MAX (1u << 20)

/* The most elements of a list that is linked. */
#define LINKS_MAX 65536u

void roots_begin(struct roots_walk *walk, enum heap_root_kind kind, enum ref_certainty certainty, uint64_t name)
{
	walk->root = (struct heap_root){
	    .kind = kind,
	    .certainty = certainty,
	    .name = name,
	    .stack = walk->root.stack,
	    .holder = walk->root.holder,
	};
}

void roots_give(struct roots_walk *walk, uint64_t at, uint64_t value)
{
	if (!value_is_object(value) || !walk->is_object(walk->context, value))
		return;
	walk->root.word = at;
	walk->root.target = value;
	walk->visit(walk->context, &walk->root);
}

void roots_lack(struct roots_walk *walk)
{
	walk->complete = false;
	walk->access.failed = false;
}

static void give_word(void *context, uint64_t address, uint64_t word)
{
	roots_give(context, address, word);
}

void roots_scan(struct roots_walk *walk, uint64_t start, uint64_t end)
{
	if (!word_scan_each(&walk->roots->scan, start, end, give_word, walk))
		roots_lack(walk);
}

void roots_scan_struct(struct roots_walk *walk, uint64_t at, enum layout_struct_id id)
{
	const struct layout_number *size = &walk->access.layout->sizes[id];

	if (at != 0 && size->present)
		roots_scan(walk, at, at + (uint64_t)size->value);
}

static bool give_entry(void *context, struct access *access, uint64_t key, uint64_t record)
{
	struct roots_walk *walk = context;

	(void)access;
	/* A ractor's value keeps the number of the ractor. */
	if (walk->root.kind != ROOT_RACTOR_STORAGE)
		walk->root.name = key;
	roots_give(walk, 0, record);
	return true;
}

void roots_give_st(struct roots_walk *walk, uint64_t table)
{
	if (table != 0 && !st_each(&walk->access, table, ENTRIES_MAX, give_entry, walk))
		roots_lack(walk);
}

bool roots_each_id(struct access *access, uint64_t table, st_visit *visit, void *context)
{
	const struct layout *layout = access->layout;
	uint64_t capacity, items;

	if (!layout_has(layout, F_id_table_items) || !layout_has(layout, F_id_table_capa) ||
	    !layout_has(layout, F_id_item_key) || !layout_has(layout, F_id_item_val))
		return false;
	capacity = access_member(access, table, F_id_table_capa);
	items = access_member(access, table, F_id_table_items);
	if (access->failed || capacity > ENTRIES_MAX)
		return false;
	memory_want(access->memory, items, items + capacity * access_sizeof(access, S_id_item));
	memory_fetch(access->memory);
	for (uint64_t i = 0; i < capacity && !access->failed; i++) {
		const uint64_t item = items + i * access_sizeof(access, S_id_item);
		const uint64_t serial = access_member(access, item, F_id_item_key);

		if (serial != 0 && !visit(context, access, serial, access_member(access, item, F_id_item_val)))
			return false;
	}
	return !access->failed;
}

/* The key of a rb_id_table is the serial number of an ID. */
static bool give_id_entry(void *context, struct access *access, uint64_t serial, uint64_t value)
{
	return give_entry(context, access, serial << access_enum(access, E_RUBY_ID_SCOPE_SHIFT), value);
}

void roots_give_id_table(struct roots_walk *walk, uint64_t table)
{
	if (table != 0 && !roots_each_id(&walk->access, table, give_id_entry, walk))
		roots_lack(walk);
}

/* A pointer of the VM or of the state of the collector; 0 if this Ruby does not have it, or if it cannot be read. */
static uint64_t pointer(struct roots_walk *walk, uint64_t at, enum layout_member_id id)
{
	uint64_t value = 0;

	if (at != 0 && layout_has(walk->access.layout, id))
		value = access_member(&walk->access, at, id);
	if (walk->access.failed) {
		roots_lack(walk);
		return 0;
	}
	return value;
}

/* A table of the VM: a pointer to it, or, if the member is larger than a pointer, the table itself. */
static uint64_t table(struct roots_walk *walk, enum layout_member_id id)
{
	const struct layout *layout = walk->access.layout;
	const uint64_t vm = walk->roots->ruby->vm;

	return layout_has(layout, id) && layout->members[id].size > 8 ? access_address(&walk->access, vm, id)
								      : pointer(walk, vm, id);
}

static void give_hooks(struct roots_walk *walk, uint64_t at, enum layout_member_id head)
{
	uint64_t hook = pointer(walk, at, head);

	if (!layout_has(walk->access.layout, F_hook_data) || !layout_has(walk->access.layout, F_hook_next))
		return;
	roots_begin(walk, ROOT_TRACE, REF_EXACT, 0);
	for (size_t i = 0; hook != 0 && i < LINKS_MAX && !walk->access.failed; i++) {
		const uint64_t data = access_member(&walk->access, hook, F_hook_data);

		roots_give(walk, access_address(&walk->access, hook, F_hook_data), data);
		hook = access_member(&walk->access, hook, F_hook_next);
	}
	if (hook != 0 || walk->access.failed)
		roots_lack(walk);
}

/* The VM's members, and what they lead to. */
static void give_vm(struct roots_walk *walk)
{
	const uint64_t vm = walk->roots->ruby->vm, objspace = pointer(walk, vm, F_vm_objspace);
	const uint64_t symbols = walk->roots->ruby->symbols;

	roots_begin(walk, ROOT_VM, REF_CONSERVATIVE, 0);
	roots_scan_struct(walk, vm, S_vm);
	roots_begin(walk, ROOT_BOX, REF_CONSERVATIVE, 0);
	roots_scan_struct(walk, pointer(walk, vm, F_vm_root_box), S_box);
	roots_scan_struct(walk, pointer(walk, vm, F_vm_main_box), S_box);
	roots_begin(walk, ROOT_LOADING, REF_EXACT, 0);
	roots_give_st(walk, table(walk, F_vm_loading_table));
	roots_begin(walk, ROOT_METHOD, REF_EXACT, 0);
	roots_give_id_table(walk, table(walk, F_vm_negative_cmes));
	roots_give_st(walk, table(walk, F_vm_overloaded_cmes));
	roots_begin(walk, ROOT_FINALIZER, REF_EXACT, 0);
	if (layout_has(walk->access.layout, F_objspace_finalizers))
		roots_give_st(walk, pointer(walk, objspace, F_objspace_finalizers));
	else
		roots_lack(walk);
	give_hooks(walk, vm, F_vm_hooks);
	/* symbol.c, Init_sym, v2_2_0 to v4_0_5 and head: `ids` is registered. */
	roots_begin(walk, ROOT_SYMBOLS, REF_EXACT, 0);
	if (symbols != 0 && layout_has(walk->access.layout, F_symbols_ids))
		roots_give(walk, access_address(&walk->access, symbols, F_symbols_ids),
			   pointer(walk, symbols, F_symbols_ids));
	/* parse.y, rb_gc_mark_symbols, v1_9_3_0 to v2_1_10 */
	if (symbols != 0)
		roots_give_st(walk, pointer(walk, symbols, F_symbols_id_str));
	roots_begin(walk, ROOT_SYMBOLS, REF_CONSERVATIVE, 0);
	roots_scan_struct(walk, symbols, S_symbols);
}

/* Since 2.7 a table of modules; before, and since 3.2, an object, which the scan of the VM gives. */
static void give_modules(struct roots_walk *walk)
{
	const uint64_t modules = table(walk, F_vm_modules);

	roots_begin(walk, ROOT_MODULE, REF_EXACT, 0);
	if (modules != 0 && !walk->is_object(walk->context, modules))
		roots_give_st(walk, modules);
}

/*
 * Whether a variable has a class or a module of Ruby's own: the names of these variables begin with rb_c, rb_m or rb_e
 * (include/ruby/internal/globals.h, error.h, v3_0_0 to v4_0_5 and head; up to v2_7_8 include/ruby/ruby.h). They are never
 * freed, so such a root is certain.
 */
static bool is_class_variable(const struct heap_roots *roots, uint64_t address)
{
	const char *name = data_files_variable(roots->files, address);

	return name && strncmp(name, "rb_", 3) == 0 && name[3] != '\0' && strchr("cme", name[3]) &&
	       isupper((unsigned char)name[4]);
}

static void give_variable(void *context, uint64_t address, uint64_t word)
{
	struct roots_walk *walk = context;

	if (!walk->is_object(walk->context, word))
		return;
	walk->root.certainty = is_class_variable(walk->roots, address) ? REF_EXACT : REF_CONSERVATIVE;
	roots_give(walk, address, word);
}

static void give_data(struct roots_walk *walk)
{
	const struct data_files *files = walk->roots->files;

	roots_begin(walk, ROOT_C_VARIABLE, REF_CONSERVATIVE, 0);
	for (size_t i = 0; i < files->nr_ranges; i++)
		if (!word_scan_each(&walk->roots->scan, files->ranges[i].start, files->ranges[i].end, give_variable,
				    walk))
			roots_lack(walk);
}

static void give_ractor(struct roots_walk *walk, uint64_t ractor)
{
	uint64_t number = 0;

	if (layout_has(walk->access.layout, F_ractor_id))
		number = access_member(&walk->access, ractor, F_ractor_id);
	roots_begin(walk, ROOT_RACTOR, REF_CONSERVATIVE, number);
	roots_scan_struct(walk, ractor, S_ractor);
	give_hooks(walk, ractor, F_ractor_hooks);
	/* What these values are, only C code knows. */
	roots_begin(walk, ROOT_RACTOR_STORAGE, REF_CONSERVATIVE, number);
	roots_give_st(walk, pointer(walk, ractor, F_ractor_values));
	roots_begin(walk, ROOT_RACTOR_STORAGE, REF_EXACT, number);
	roots_give_id_table(walk, pointer(walk, ractor, F_ractor_storage));
}

/* Each ractor has a thread, and threads that have the same ractor follow each other. */
static void give_ractors(struct roots_walk *walk)
{
	const struct ruby_threads *threads = &walk->roots->threads;
	uint64_t last = 0;

	for (size_t i = 0; i < threads->count; i++) {
		const uint64_t ractor = pointer(walk, threads->threads[i].address, F_thread_ractor);

		if (ractor != 0 && ractor != last)
			give_ractor(walk, ractor);
		last = ractor;
	}
}

bool heap_roots_each(struct heap_roots *roots, heap_root_is_object *is_object, heap_root_visit *visit, void *context)
{
	struct roots_walk walk = {
	    .roots = roots,
	    .access = ruby_access(roots->ruby),
	    .is_object = is_object,
	    .visit = visit,
	    .context = context,
	    .root.stack = HEAP_ROOT_NO_STACK,
	    .complete = !roots->incomplete && !roots->files->incomplete,
	};

	roots->scan.bytes_left = BYTES_MAX;
	roots_give_global_variables(&walk);
	roots_give_stacks(&walk);
	roots_give_registered(&walk);
	give_data(&walk);
	give_vm(&walk);
	give_modules(&walk);
	give_ractors(&walk);
	return walk.complete;
}

bool heap_roots_read(const struct ruby *ruby, const struct module *module, const struct data_files *files,
		     memory_source *source, void *context, uint64_t deadline_ns, struct heap_roots *ret)
{
	*ret = (struct heap_roots){.ruby = ruby, .module = module, .files = files};
	if (!word_scan_begin(source, context, BYTES_MAX, deadline_ns, &ret->scan) ||
	    !threads_list(ruby, &ret->threads) || !roots_read_stacks(ret, source, context))
		return false;
	ret->incomplete |= ret->threads.missing != LIST_COMPLETE;
	roots_find_variables(ret);
	return true;
}

void heap_roots_clear(struct heap_roots *roots)
{
	roots_clear_stacks(roots);
	threads_clear(&roots->threads);
	word_scan_end(&roots->scan);
	*roots = (struct heap_roots){0};
}
