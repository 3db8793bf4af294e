/*
 * Where the roots of one file are, kept in the user's cache (layout/made.h), so that a stripped Ruby is searched for
 * them once; doc/layout-format.md has the format. Whatever it says is only where to look first: roots_check() decides.
 */
#ifndef RBDUMP_ROOTS_FILE_H
#define RBDUMP_ROOTS_FILE_H

#include "vm/roots.h"

/*
 * Reads what is kept of the module's build: addresses in the target that lie in the module's writable segments; 0 for
 * those that are not kept. A file that is not in order in any way is as if it were not there.
 */
void roots_file_read(struct module *module, struct roots *ret);

/*
 * Keeps the VM, the symbol table and the class Object, but those that the module's own symbols tell. Nothing if the
 * module has no build-id, or if there is no cache that is trusted.
 *   told  what the module's own symbols tell
 */
void roots_file_write(struct module *module, const struct roots *told, const struct roots *roots);

#endif
