/*
 * Constants of Ruby that its DWARF does not have, since they are macros in that version.
 *
 * What an algorithm does with them is decided by their presence in the layout, as with any other fact; only their
 * values depend on the version, and only here.
 */
#ifndef RBDUMP_CONSTANTS_H
#define RBDUMP_CONSTANTS_H

#include "layout.h"

/*
 * Adds the enumerators that layout->version has as macros, marked as such. One that the DWARF has is left as it is
 * there.
 */
void constants_add(struct layout *layout);

#endif
