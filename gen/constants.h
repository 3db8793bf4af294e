/*
 * Constants that some releases of Ruby define as macros. The DWARF of these releases does not contain the constants.
 *
 * Code that uses such a constant first checks whether the layout contains the constant, because any fact may be absent
 * from a layout. Only this module depends on the release of Ruby: it chooses the values of the constants for each
 * release.
 *
 * A number that is the same in all releases is not in this module, but in the code that uses the number. A number that
 * is part of an algorithm, such as the width of a field in a packed word, is also in the code that uses the number. A
 * comment in that code names Ruby's source file, and the first and the last tag in which the number was checked. "and
 * head" in such a comment means that the number was also checked in the development branch after the last tag.
 * Enumerators and constants that the DWARF contains are listed in gen/fields.def, not in this module.
 */
#ifndef RBDUMP_CONSTANTS_H
#define RBDUMP_CONSTANTS_H

#include "layout/layout.h"

/*
 * Adds the enumerators that are macros in the layout's release of Ruby (layout->version), and sets their `is_macro`.
 * The patch level is taken from layout->description. If the description has no patch level, the newest patch level is
 * assumed. Enumerators that the layout already has from DWARF are not changed.
 */
void constants_add(struct layout *layout);

#endif
