/*
 * Finds the names of IDs. An ID is Ruby's number for the name of a method or a variable. Based on Ruby's sources: 2.2.0
 * to 4.0.5 and head, symbol.c and symbol.h (rb_symbols_t, rb_id_to_serial, get_id_serial_entry), id.h (tLAST_OP_ID);
 * 1.9.3 to 2.1.10, parse.y (rb_id2str, op_tbl).
 */
#ifndef RBDUMP_SYMBOL_H
#define RBDUMP_SYMBOL_H

#include "ruby/ruby.h"
#include "ruby/value.h"

/* The name of an ID. Sets access->failed if the symbol table is not known (ruby->symbols is 0), or has no such ID. */
struct bytes symbol_name(const struct ruby *ruby, struct access *access, uint64_t id);

/*
 * Appends the name of an ID. Ruby 1.9.3 to 2.1 makes the String for an operator's name only when Ruby first needs this
 * String (parse.y, rb_id2str()). So in these Rubies, the function takes the name of a one-character operator from the
 * ID itself. If the name cannot be read, returns false and sets access->failed.
 */
bool symbol_add(const struct ruby *ruby, struct access *access, uint64_t id, struct text *text);

/*
 * Appends the name of a Symbol. If `value` is not a Symbol, or if the name cannot be read, returns false and sets
 * access->failed.
 */
bool symbol_add_value(const struct ruby *ruby, struct access *access, uint64_t value, struct text *text);

/* The serial number that the next new ID will get. `symbols` is the address of the symbol table. */
uint64_t symbol_serials_end(struct access *access, uint64_t symbols);

/*
 * Since Ruby 2.2 the symbol table consists of inner lists of names. Tests whether the first inner list has as many
 * names as the layout says. Also returns true if this cannot be tested: the table has fewer than two inner lists, or
 * the inner lists are not Arrays. If the lists cannot be read, returns false and sets access->failed.
 */
bool symbol_units_hold(const struct ruby *ruby, struct access *access);

#endif
