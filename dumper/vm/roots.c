#include "vm/roots.h"

#include <string.h>

#include "decode/class.h"
#include "decode/symbol.h"
#include "vm/context.h"

/* id.h: an operator of one character is its own ID. */
#define ID_PLUS ((uint64_t)'+')

void roots_from_module(const struct module *module, struct roots *ret)
{
	enum { VM, VM_BEFORE, SYMBOLS, SYMBOLS_BEFORE, OPERATORS, OBJECT, VERSION, DESCRIPTION, COUNT };
	struct module_symbol symbols[COUNT] = {
	    [VM] = {.name = "ruby_current_vm_ptr"},
	    [VM_BEFORE] = {.name = "ruby_current_vm"}, /* until 2.4 */
	    [SYMBOLS] = {.name = "ruby_global_symbols"},
	    [SYMBOLS_BEFORE] = {.name = "global_symbols"}, /* until 2.6 */
	    [OPERATORS] = {.name = "op_tbl"},
	    [OBJECT] = {.name = "rb_cObject"},
	    [VERSION] = {.name = "ruby_version"},
	    [DESCRIPTION] = {.name = "ruby_description"},
	};

	module_lookup(module, symbols, COUNT);
	*ret = (struct roots){
	    .current_vm = symbols[VM].address ? symbols[VM].address : symbols[VM_BEFORE].address,
	    .global_symbols = symbols[SYMBOLS].address ? symbols[SYMBOLS].address : symbols[SYMBOLS_BEFORE].address,
	    .operators = symbols[OPERATORS].address,
	    .object_class = symbols[OBJECT].address,
	    .version = symbols[VERSION].address,
	    .description = symbols[DESCRIPTION].address,
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
	take(&roots->operators, layout, Y_op_tbl, module->bias);
}

/* How many words are looked at: Ruby's own data is some 100 KiB. */
#define SCAN_MAX (UINT64_C(1) << 21)

static bool is_vm(struct memory *memory, const struct layout *layout, uint64_t vm)
{
	struct access access = access_begin(memory, layout);
	uint64_t thread, ec;

	if (!value_is_object(vm) || !layout_has(layout, F_vm_main_thread) || !layout_has(layout, F_thread_vm))
		return false;
	thread = access_member(&access, vm, F_vm_main_thread);
	if (access.failed || !value_is_object(thread) || access_member(&access, thread, F_thread_vm) != vm)
		return false;
	ec = context_of_thread(&access, thread);
	return context_thread(&access, ec) == thread && !access.failed;
}

static bool is_symbol_table(struct memory *memory, const struct layout *layout, uint64_t address)
{
	struct ruby ruby = {.memory = memory, .layout = layout, .symbols = address};
	struct access access = ruby_access(&ruby);

	/* Until 2.1 an operator may have no String; some other names are as well known. */
	if (!layout_has(layout, F_symbols_ids))
		return layout->enumerators[E_idMethodMissing].present &&
		       value_bytes_are(&access, symbol_name(&ruby, &access, access_enum(&access, E_idMethodMissing)),
				       "method_missing") &&
		       !access.failed;
	if (symbol_serials_end(&access, address) <= access_enum(&access, E_tLAST_OP_ID) + 1 ||
	    !value_is_object(access_member(&access, address, F_symbols_ids)))
		return false;
	return value_bytes_are(&access, symbol_name(&ruby, &access, ID_PLUS), "+") && !access.failed;
}

static bool is_object_class(struct memory *memory, const struct layout *layout, uint64_t symbols, uint64_t object)
{
	struct ruby ruby = {.memory = memory, .layout = layout, .symbols = symbols};
	struct access access = ruby_access(&ruby);
	struct bytes path;
	bool permanent;

	if (!value_is_object(object) || value_type(&access, object) != access_enum(&access, E_RUBY_T_CLASS) ||
	    access.failed)
		return false;
	class_path(&ruby, &access, object, &path, &permanent);
	return permanent && value_bytes_are(&access, path, "Object") && !access.failed;
}

/* Looks for rb_cObject once the symbol table is known: until 2.7, names of classes are IDs. */
static void scan_for_object(const struct module *module, struct memory *memory, const struct layout *layout,
			    struct roots *roots)
{
	uint64_t left = SCAN_MAX;

	for (size_t i = 0; i < module->nr_data; i++) {
		for (uint64_t at = (module->data[i].start + 7) & ~UINT64_C(7);
		     at + 8 <= module->data[i].end && roots->object_class == 0 && left > 0; at += 8, left--) {
			struct access access = access_begin(memory, layout);
			uint64_t word = access_word(&access, at);

			if (access.failed)
				at = (at & ~(MEMORY_PAGE - 1)) + MEMORY_PAGE - 8;
			else if (is_object_class(memory, layout, roots->global_symbols, word))
				roots->object_class = at;
		}
	}
}

void roots_scan(const struct module *module, struct memory *memory, const struct layout *layout, struct roots *roots)
{
	uint64_t left = SCAN_MAX;

	for (size_t i = 0; i < module->nr_data; i++) {
		for (uint64_t at = (module->data[i].start + 7) & ~UINT64_C(7);
		     at + 8 <= module->data[i].end && (roots->current_vm == 0 || roots->global_symbols == 0) &&
		     left > 0;
		     at += 8, left--) {
			struct access access = access_begin(memory, layout);
			uint64_t word = access_word(&access, at);

			if (access.failed) {
				/* Not a page that is there: go on with the next one. */
				at = (at & ~(MEMORY_PAGE - 1)) + MEMORY_PAGE - 8;
				continue;
			}
			if (roots->current_vm == 0 && is_vm(memory, layout, word))
				roots->current_vm = at;
			if (roots->global_symbols == 0 && is_symbol_table(memory, layout, at))
				roots->global_symbols = at;
		}
	}
	if (roots->object_class == 0)
		scan_for_object(module, memory, layout, roots);
}
