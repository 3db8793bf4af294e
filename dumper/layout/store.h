/*
 * Keeping what was found out, a layout above all, in a file that is whole from the moment it has its name, and the
 * folder that it goes to.
 */
#ifndef RBDUMP_STORE_H
#define RBDUMP_STORE_H

#include <stdio.h>

#include "layout.h"

/* Makes a folder and those above it, where they are not there, with the modes that umask(2) leaves. False with errno.
 */
bool store_make_folder(const char *folder);

/* Writes what `content` points to; false with errno, that of the stream included. */
typedef bool store_writer(const void *content, FILE *file);

/*
 * Writes a file beside its place, then gives it its name: what was there before stays if that fails. False with errno.
 */
bool store_file(const char *path, store_writer *write, const void *content);

/* The same of a layout. */
bool store_layout(const struct layout *layout, const char *path);

#endif
