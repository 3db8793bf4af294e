/*
 * Where Ruby's roots are in a target: the VM, the symbol table, the class Object, whether ZJIT is on.
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
	uint64_t late_class;	 /* rb_cComplex, a VALUE: one of the last that a starting Ruby makes (inits.c) */
	uint64_t zjit_entry;	 /* rb_zjit_entry, a pointer */
	uint64_t version;	 /* ruby_version, a string */
	uint64_t description;	 /* ruby_description, a string */
	bool cut; /* there was more to search than there was room or time for: what was not found may be there */
};

/* What the ELF's own symbol tables say. */
void roots_from_module(const struct module *module, struct roots *ret);

/* Adds what a layout knows of the build with that build-id. */
void roots_from_layout(const struct layout *layout, const struct module *module, struct roots *roots);

/* Takes the VM, the symbol table and the class Object from `more` where they are not known. */
void roots_add(struct roots *roots, const struct roots *more);

/* Whether the VM, the symbol table and the class Object are known. */
bool roots_are_complete(const struct roots *roots);

/*
 * Forgets of the VM, the symbol table and the class Object what does not hold in the target: what is taken from a file
 * may be anything. The structs behind a root must agree with each other: VM → main thread → VM and execution context →
 * thread; the symbol table must name the ID 43 "+" (operators are their own IDs, id.h); and the class Object, which all
 * export, but in a file that a core is without, must be a class called so.
 *   memory  to read through; not the snapshot that the stacks are read from, since this is before any pause
 */
void roots_check(const struct module *module, struct memory *memory, const struct layout *layout, struct roots *roots);

/*
 * Looks for what is still not known of those in the writable segments of the module: a stripped Ruby since 3.3 does not
 * export the VM, and none exports the symbol table. What is found has passed the same checks. All that is needed is
 * copied in few pieces, whatever there is to look through; 16 MiB of data at most are, in two seconds at most: if
 * that is not all, `cut` is set.
 *   memory  as above, and without anything in it; sealed by this
 */
void roots_search(const struct module *module, struct memory *memory, const struct layout *layout, struct roots *roots);

/*
 * Looks in the same way for a VM whose main thread has given its stack back (vm.c, ruby_vm_destruct, thread_free):
 * where Ruby has come to that, there is none of the others. Gives the address of the variable; 0 if there is none. Two
 * structs that point at each other are no strong sign: lifetime.h asks for another one.
 */
uint64_t roots_search_ended_vm(const struct module *module, struct memory *memory, const struct layout *layout);

/* Whether ZJIT is on (zjit.h, rb_zjit_enabled_p). */
enum zjit roots_zjit(const struct roots *roots, struct memory *memory);

#endif
