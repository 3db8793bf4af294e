/*
 * Keeps the addresses of the roots of one ELF file in the user's cache (store/made.h), so that rbdump searches for the
 * roots of a stripped Ruby only once. doc/layout-format.md describes the format of the cache file. The addresses in the
 * cache can be wrong, so roots_check() checks them before they are used.
 */
#ifndef RBDUMP_ROOTS_FILE_H
#define RBDUMP_ROOTS_FILE_H

#include "ruby/roots.h"

/*
 * Reads the addresses that are kept for the module's build. An address that is not kept is set to 0. Every other
 * address is in a writable segment of the module. A cache file that has any error is ignored.
 */
void roots_file_read(struct module *module, struct roots *ret);

/*
 * Keeps the addresses of the VM, the symbol table and the class Object, except those that the module's own symbols
 * give. Does nothing if the module has no build-id, or if there is no trusted cache.
 *   told  the roots that the module's own symbols give
 */
void roots_file_write(struct module *module, const struct roots *told, const struct roots *roots);

#endif
