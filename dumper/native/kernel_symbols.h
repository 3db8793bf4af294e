/*
 * The names of the kernel's functions, from /proc/kallsyms. The functions of modules and BPF programs are included.
 */
#ifndef RBDUMP_KERNEL_SYMBOLS_H
#define RBDUMP_KERNEL_SYMBOLS_H

#include <stdint.h>

#include "base/error.h"

struct kernel_symbols;

/*
 * Reads all symbols. It takes some tens of milliseconds to read the symbols. The symbols need a few MB of memory. Fails
 * with EXIT_NO_PERMISSION if the kernel hides its addresses (kernel.kptr_restrict), and with EXIT_FAILED if the file
 * cannot be read.
 *   path  "/proc/kallsyms", except in tests
 */
struct error *kernel_symbols_read(const char *path, struct kernel_symbols **ret);
void kernel_symbols_destroy(struct kernel_symbols *symbols); /* NULL is fine */

/*
 * Returns the name of the last function that begins at or before an address. Returns NULL if there is no such function.
 * The name is owned by `symbols`.
 *   start  receives the address at which the function begins
 */
const char *kernel_symbols_find(const struct kernel_symbols *symbols, uint64_t address, uint64_t *start);

#endif
