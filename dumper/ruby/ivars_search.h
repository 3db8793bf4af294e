/*
 * Searches for the C variables that lead to instance variables (ruby/ivars.h). This search is for a stripped Ruby that
 * has no symbols for these C variables. For each word of Ruby's own data, rbdump tests whether the word leads to data
 * that looks like the table of generic instance variables, or like the shapes of some objects of the heap. Many facts
 * must fit together, so a wrong word is unlikely to pass this test.
 *
 * Based on Ruby's sources, 1.9.3 to 4.0.5 and head: variable.c (generic_iv_tbl_), shape.c (rb_shape_tree_ptr).
 */
#ifndef RBDUMP_IVARS_SEARCH_H
#define RBDUMP_IVARS_SEARCH_H

#include "memory/memory.h"
#include "ruby/ruby.h"
#include "target/module.h"

/*
 * Sets `generic_ivars` and `shape_tree` of a Ruby, if they are not known and this Ruby has them. A member stays 0 if
 * its value is not found.
 *   ruby             the function does not use ruby->memory
 *   source, context  the function that reads the target's pages, and its first argument
 * Returns false if there is not enough memory.
 */
bool ivars_search(const struct module *module, memory_source *source, void *context, struct ruby *ruby);

#endif
