/*
 * Keeping a layout in a file that is whole from the moment it has its name, and the folder that it goes to.
 */
#ifndef RBDUMP_STORE_H
#define RBDUMP_STORE_H

#include "layout.h"

/* Makes a folder and those above it, where they are not there, with the modes that umask(2) leaves. False with errno.
 */
bool store_make_folder(const char *folder);

/*
 * Writes a layout to a file beside its place, then gives it its name: what was there before stays if that fails. False
 * with errno.
 */
bool store_layout(const struct layout *layout, const char *path);

#endif
