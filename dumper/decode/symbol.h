/*
 * IDs: names of methods and variables. Facts: symbol.c and symbol.h (rb_symbols_t, rb_id_to_serial,
 * get_id_serial_entry), id.h (tLAST_OP_ID), 2.2.0 to 4.0.5 and head; parse.y (rb_id2str, op_tbl), 1.9.3 to 2.1.10.
 */
#ifndef RBDUMP_SYMBOL_H
#define RBDUMP_SYMBOL_H

#include "decode/text.h"
#include "vm/ruby.h"

/*
 * The name of an ID. Fails the read if Ruby's symbol table is not known (ruby->symbols is 0), or if the table has no
 * such ID.
 */
struct bytes symbol_name(const struct ruby *ruby, struct access *access, uint64_t id);

/*
 * Appends the name of an ID. Until 2.1 an operator has no String until somebody asks for it (parse.y, rb_id2str()): its
 * name is then in the ID itself. False, with the read failed, if the name cannot be had.
 */
bool symbol_add(const struct ruby *ruby, struct access *access, uint64_t id, struct text *text);

/* The lowest serial number of an ID that is not in use yet; `symbols` is the address of the table. */
uint64_t symbol_serials_end(struct access *access, uint64_t symbols);

/*
 * Whether the first inner list of the symbol table has as many names as the layout says that each has. True also if
 * that cannot be known: the table has no such lists, only one, or lists that are no Arrays. False, with the read
 * failed, if they cannot be read.
 */
bool symbol_units_hold(const struct ruby *ruby, struct access *access);

#endif
