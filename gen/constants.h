/*
 * Constants that some releases of Ruby define as macros. The DWARF of these releases does not have the constants.
 *
 * Code that uses such a constant first checks whether the layout has the constant, because any fact may be absent from
 * a layout. Only this module depends on the release of Ruby: it chooses the values of the constants for each release.
 *
 * A number that is the same in all releases is not in this module, but in the code that uses the number. A comment in
 * that code names Ruby's source file, and the first and the last tag for which the number was checked. "and head" in
 * that comment means that the number was also checked for the development branch after the last tag. A number that is
 * part of an algorithm, such as the width of a field in a packed word, is also in the code that uses it. Enumerators
 * and constants that DWARF has are not in this module, but in gen/fields.def.
 */
#ifndef RBDUMP_CONSTANTS_H
#define RBDUMP_CONSTANTS_H

#include "layout/layout.h"

/*
 * Adds the enumerators that Ruby release layout->version defines as macros, and marks them (is_macro). The patch level
 * is taken from layout->description. If the description has no patch level, the newest patch level is assumed. An
 * enumerator that DWARF has is not changed.
 */
void constants_add(struct layout *layout);

#endif
