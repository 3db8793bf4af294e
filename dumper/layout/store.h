/*
 * Writing a layout to a file that the user has named, which is whole from the moment it has its name.
 */
#ifndef RBDUMP_STORE_H
#define RBDUMP_STORE_H

#include "layout.h"

/*
 * Writes a file beside its place, then gives it its name: what was there before stays if that fails. False with errno.
 */
bool store_layout(const struct layout *layout, const char *path);

#endif
