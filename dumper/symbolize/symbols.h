/*
 * The symbols of an ELF file's code. Where several fit an address (aliases, functions without a size), the one is taken
 * that gdb's `info symbol` takes.
 *
 * The file may be hostile: all offsets and counts are checked, by libelf or here.
 */
#ifndef RBDUMP_SYMBOLS_H
#define RBDUMP_SYMBOLS_H

#include <libelf.h>
#include <stdint.h>

struct symbols;

/*
 * Reads .symtab, or .dynsym if there is none. Names belong to the Elf. NULL if there is neither, or no memory.
 */
struct symbols *symbols_read(Elf *elf);
void symbols_destroy(struct symbols *symbols); /* NULL is fine */

/*
 * Finds the symbol that an address, as in the file, belongs to.
 *   start  receives where it begins
 * Returns its name, NULL if there is none.
 */
const char *symbols_find(const struct symbols *symbols, uint64_t address, uint64_t *start);

#endif
