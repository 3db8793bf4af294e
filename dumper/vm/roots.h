/*
 * Where Ruby's roots are in a target: the VM, the symbol table, the class Object.
 */
#ifndef RBDUMP_ROOTS_H
#define RBDUMP_ROOTS_H

#include "error.h"
#include "target/module.h"
#include "vm/ruby.h"

/* Addresses of Ruby's global variables in the target; 0 for those that are not known. */
struct roots {
	uint64_t current_vm;	 /* ruby_current_vm_ptr, a pointer to rb_vm_struct */
	uint64_t global_symbols; /* ruby_global_symbols, an rb_symbols_t */
	uint64_t operators;	 /* op_tbl, an array; until 2.1, else not needed */
	uint64_t object_class;	 /* rb_cObject, a VALUE */
	uint64_t version;	 /* ruby_version, a string; always known */
	uint64_t description;	 /* ruby_description, a string */
};

/* What the ELF's own symbol tables say. */
void roots_from_module(const struct module *module, struct roots *ret);

/* Adds what a layout knows of the build with that build-id. */
void roots_from_layout(const struct layout *layout, const struct module *module, struct roots *roots);

/*
 * Looks for what is still not known in the writable segments of the module: a stripped Ruby since 3.3 does not export
 * the VM, and none exports the symbol table. A candidate counts only if the structs behind it agree with each other: VM
 * → main thread → VM and execution context → thread; the symbol table must name the ID 43 "+" (operators are their own
 * IDs, id.h); and the class Object, which all export, but in a file that a core is without, must be a class called so.
 *   memory  to read through; not the snapshot that the stacks are read from, since it gets all those segments
 */
void roots_scan(const struct module *module, struct memory *memory, const struct layout *layout, struct roots *roots);

#endif
