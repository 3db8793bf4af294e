/*
 * Searches for the variables of Ruby that lead to instance variables (ruby/ivars.h), if a stripped Ruby has no symbols for
 * them. rbdump tries each word of Ruby's own data: does it lead to something that looks like the table of
 * generic instance variables, or like the shapes that some objects of the heap have? Many facts must fit together, so a
 * wrong word is unlikely to pass.
 *
 * Based on Ruby's sources, 1.9.3 to 4.0.5 and head: variable.c (generic_iv_tbl_), shape.c (rb_shape_tree_ptr).
 */
#ifndef RBDUMP_IVARS_SEARCH_H
#define RBDUMP_IVARS_SEARCH_H

#include "memory/memory.h"
#include "ruby/ruby.h"
#include "target/module.h"

/*
 * Sets `generic_ivars` and `shape_tree` of a Ruby, if they are not known and this Ruby has them. What is not found stays 0.
 *   ruby             the function does not use its `memory`
 *   source, context  the source of the target's pages, and the first argument for the source
 * Returns false if there is not enough memory.
 */
bool ivars_search(const struct module *module, memory_source *source, void *context, struct ruby *ruby);

#endif
