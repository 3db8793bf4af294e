/*
 * Types and functions that are shared by the files that find the roots of the heap. Only heap_roots*.c include this
 * header. To give a root means to call `visit` for the root, if its target is an object according to `is_object`. To
 * give a word or a value means to give the root whose target is this word or value.
 */
#ifndef RBDUMP_HEAP_ROOTS_PARTS_H
#define RBDUMP_HEAP_ROOTS_PARTS_H

#include "ruby/heap_root.h"
#include "ruby/st.h"
#include "ruby/value.h"

/* A walk over the roots. */
struct roots_walk {
	struct heap_roots *roots;
	struct access access;
	heap_root_is_object *is_object;
	heap_root_visit *visit;
	void *context;
	struct heap_root root; /* the root that is given next; only some of its members change from root to root */
	bool complete;
};

/* Sets the kind, the certainty and the name of the roots that are given after this call. */
void roots_begin(struct roots_walk *walk, enum heap_root_kind kind, enum ref_certainty certainty, uint64_t name);

/* Gives the word `value`, which is at the address `at`. */
void roots_give(struct roots_walk *walk, uint64_t at, uint64_t value);

/* Gives all words of the range [start, end). */
void roots_scan(struct roots_walk *walk, uint64_t start, uint64_t end);

/* Gives all words of the struct at the address `at`. Does nothing if `at` is 0, or if the struct's size is not known. */
void roots_scan_struct(struct roots_walk *walk, uint64_t at, enum layout_struct_id id);

/* Gives the values of an st_table. The `name` of each root is the value's key. */
void roots_give_st(struct roots_walk *walk, uint64_t table);

/* Gives the values of a rb_id_table. The `name` of each root is the value's key, an ID. */
void roots_give_id_table(struct roots_walk *walk, uint64_t table);

/*
 * Call this function after a read has failed. The function notes that roots may be missing. After this, the walk can
 * continue.
 */
void roots_lack(struct roots_walk *walk);

/* Calls `visit` for each entry of a rb_id_table. Returns false if the table cannot be read, or is too long. */
bool roots_each_id(struct access *access, uint64_t table, st_visit *visit, void *context);

/* In heap_roots_variables.c: two functions that give the registered variables, and the global variables. */
void roots_give_registered(struct roots_walk *walk);
void roots_give_global_variables(struct roots_walk *walk);

/* Sets roots->global_variables. Searches for the variable rb_global_tbl if Ruby is stripped. */
void roots_find_variables(struct heap_roots *roots);

/*
 * In heap_roots_stacks.c: three functions for the stacks of threads and fibers. roots_read_stacks() returns false if there
 * is not enough memory.
 */
bool roots_read_stacks(struct heap_roots *roots, memory_source *source, void *context);
void roots_clear_stacks(struct heap_roots *roots);
void roots_give_stacks(struct roots_walk *walk);

#endif
