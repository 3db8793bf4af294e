/*
 * Finds Ruby's roots in a target: the VM, the symbol table and the class Object. Also finds out whether ZJIT is on.
 */
#ifndef RBDUMP_ROOTS_H
#define RBDUMP_ROOTS_H

#include "base/error.h"
#include "ruby/ruby.h"
#include "target/module.h"

/* Addresses of Ruby's global variables in the target; 0 if not known. */
struct roots {
	uint64_t current_vm;	 /* ruby_current_vm_ptr, a pointer to rb_vm_struct */
	uint64_t global_symbols; /* ruby_global_symbols, an rb_symbols_t */
	uint64_t operators;	 /* op_tbl, an array that is needed only up to 2.1 */
	uint64_t object_class;	 /* rb_cObject, a VALUE */
	/* rb_shape_tree_ptr, a pointer to the struct with the shapes; since 4.0 rb_shape_tree, the struct itself */
	uint64_t shape_tree;
	uint64_t generic_ivars; /* generic_iv_tbl_, which points to an st_table */
	/* rb_cComplex, a VALUE: one of the last classes that Ruby makes when it starts (inits.c) */
	uint64_t late_class;
	uint64_t zjit_entry;  /* rb_zjit_entry, a pointer */
	uint64_t version;     /* ruby_version, a string */
	uint64_t description; /* ruby_description, a string */
	bool cut; /* the search reached its limit of size or time, so a root that was not found can still exist */
};

/* Reads the roots from the symbol tables of the module's ELF file. */
void roots_from_module(const struct module *module, struct roots *ret);

/*
 * If the layout is for the module's build-id, adds the roots that the layout contains. Roots that are already known
 * stay as they are.
 */
void roots_from_layout(const struct layout *layout, const struct module *module, struct roots *roots);

/*
 * Completes `roots`. If `roots` lacks the VM, the symbol table or the class Object, takes the missing address from
 * `more`.
 */
void roots_add(struct roots *roots, const struct roots *more);

/* Whether the VM, the symbol table and the class Object are known. */
bool roots_are_complete(const struct roots *roots);

/*
 * Checks the VM, the symbol table and the class Object in the target, because roots from a file can be wrong. Sets each
 * wrong root to 0. The VM and its main thread must point at each other. The main thread and its execution context must
 * point at each other, too. The ID of a one-character operator is the code of the character (id.h). So in the symbol
 * table, the ID 43 must have the name "+". Up to Ruby 2.1, the ID of method_missing is checked instead. The variable
 * rb_cObject must refer to a class with the name "Object". Every Ruby exports rb_cObject. But if the target is a core,
 * the file that contains this symbol can be missing. In this case, roots_search() searches for a variable that refers
 * to a class with the name "Object".
 *   memory  the memory to read. Roots are checked before the target is stopped, so this memory is not the snapshot from
 *           which the stacks are read
 */
void roots_check(const struct module *module, struct memory *memory, const struct layout *layout, struct roots *roots);

/*
 * Searches the writable segments of the module for the roots (the VM, the symbol table, the class Object) that are not
 * known yet. This search is needed for stripped Rubies. A stripped Ruby does not export Ruby's own symbol table
 * (ruby_global_symbols). Since Ruby 3.3, a stripped Ruby does not export the VM (ruby_current_vm_ptr) either. Every
 * root that is found has passed the checks of roots_check(). The search copies the pages of the segments in a few
 * reads, even if the segments are large. Searches at most 16 MiB of data, for at most two seconds. Sets `cut` if
 * part of the data was not searched.
 *   memory  the memory to read: a snapshot that does not contain any pages yet. Like the memory for roots_check(), it is
 *           not the snapshot from which the stacks are read. The function seals `memory` (see memory_seal())
 */
void roots_search(const struct module *module, struct memory *memory, const struct layout *layout, struct roots *roots);

/*
 * Searches like roots_search(), but only for the VM of a Ruby that is ending. The main thread of such a VM no longer
 * has an execution context (vm.c, ruby_vm_destruct, thread_free). So roots_search() does not find such a VM. Returns
 * the address of the variable that points to the VM; 0 if no VM was found. The only evidence for a VM is that the VM
 * and its main thread point at each other. This evidence is weak, so lifetime.h requires more evidence.
 */
uint64_t roots_search_ended_vm(const struct module *module, struct memory *memory, const struct layout *layout);

/* Whether ZJIT is on (zjit.h, rb_zjit_enabled_p). */
enum zjit roots_zjit(const struct roots *roots, struct memory *memory);

#endif
