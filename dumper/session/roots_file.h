/*
 * Keeps addresses of Ruby's roots (ruby/roots.h) in the user's cache (store/made.h), separately for each ELF file that
 * contains Ruby. With this cache, rbdump searches for the roots of a stripped Ruby only once. For the format of the
 * cache file, see doc/layout-format.md. The addresses in the cache can be wrong, so roots_check() checks them before
 * they are used.
 */
#ifndef RBDUMP_ROOTS_FILE_H
#define RBDUMP_ROOTS_FILE_H

#include "ruby/roots.h"

/*
 * Reads the addresses that the cache has for the module's ELF file. If the cache does not have the address of a root,
 * sets this address to 0. All other addresses in `ret` are in writable segments of the module. Ignores a cache file
 * that contains an error.
 */
void roots_file_read(struct module *module, struct roots *ret);

/*
 * Writes the addresses of three variables of Ruby to the cache: the pointer to the VM, the symbol table, and rb_cObject.
 * Leaves out each address that the module's own symbols contain. Does nothing if the module has no build-id, or if
 * there is no trusted cache.
 *   told  the roots whose addresses come from the module's own symbols
 */
void roots_file_write(struct module *module, const struct roots *told, const struct roots *roots);

#endif
