/*
 * The symbols for the code in an ELF file. If several symbols match an address (aliases, functions without a size),
 * symbols_find() chooses the symbol that gdb's `info symbol` shows.
 *
 * The file may be hostile. Each offset and each count is checked, either by libelf or by symbols.c.
 */
#ifndef RBDUMP_SYMBOLS_H
#define RBDUMP_SYMBOLS_H

#include <libelf.h>
#include <stdint.h>

struct symbols;

/*
 * Reads .symtab, or .dynsym if there is no .symtab. The names of the symbols belong to `elf`, which must outlive the
 * result. Returns NULL if the file has neither .symtab nor .dynsym, or if there is not enough memory.
 */
struct symbols *symbols_read(Elf *elf);
void symbols_destroy(struct symbols *symbols); /* NULL is fine */

/*
 * Finds the symbol for an address in the file. Returns the name of the symbol; NULL if no symbol matches.
 *   start  receives the address at which the symbol begins
 */
const char *symbols_find(const struct symbols *symbols, uint64_t address, uint64_t *start);

#endif
