/*
 * Constants of Ruby that its DWARF does not have, since they are macros in that version.
 *
 * What an algorithm does with them is decided by their presence in the layout, as with any other fact; only their
 * values depend on the release, and only here.
 *
 * A number that has been the same in every release that has it is not here but where it is used, with the file and the
 * first and the last tag for which that was looked up ("and head": in what follows the last one, too). So is one that
 * is part of what an algorithm is, as the widths of a packed word are. Where DWARF has an enumerator or a constant,
 * gen/fields.def asks for that.
 */
#ifndef RBDUMP_CONSTANTS_H
#define RBDUMP_CONSTANTS_H

#include "layout.h"

/*
 * Adds the enumerators that are macros in the release of layout->version, and of the patch level in layout->description
 * (none: the newest), marked as such. One that the DWARF has is left as it is there.
 */
void constants_add(struct layout *layout);

#endif
