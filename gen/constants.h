/*
 * Constants that some releases of Ruby define as macros. The DWARF of these releases does not contain the constants.
 *
 * Code must check whether a layout contains a constant before it uses the constant, because any fact may be absent from
 * a layout. Among the modules in gen/, only this module depends on the release of Ruby: it chooses the values of the
 * constants for each release.
 *
 * Numbers that are the same in all releases are in the code that uses them, not in this module. Numbers that are part
 * of an algorithm, such as the width of a field in a packed word, are also in the code that uses them. Beside such a
 * number, a comment names the source file of Ruby that contains the number, and the first and the last git tag for which
 * the number was checked. The words "and head" in a comment mean that the number was also checked in Ruby's development
 * branch, at a commit after the last tag. Enumerators and constants that the DWARF contains are listed in
 * gen/fields.def, not in this module.
 */
#ifndef RBDUMP_CONSTANTS_H
#define RBDUMP_CONSTANTS_H

#include "layout/layout.h"

/*
 * Adds to a layout, as enumerators, the constants that the layout's release of Ruby (layout->version) defines as macros.
 * Sets `is_macro` of each added enumerator. The patch level of the release is taken from layout->description. If the
 * description has no patch level, the newest patch level is assumed. Enumerators that the layout already has from DWARF
 * are not changed.
 */
void constants_add(struct layout *layout);

#endif
