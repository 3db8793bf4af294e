/*
 * The sorted table of the functions in an ELF file (.eh_frame_hdr). The linker makes it for the unwinder, so stripped
 * files have it, too. Of each function, only the address at which it begins is used.
 *
 * The file may be hostile: each offset and each count is checked.
 */
#ifndef RBDUMP_FDE_TABLE_H
#define RBDUMP_FDE_TABLE_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fde_table {
	const uint8_t *entries; /* belongs to the Elf; NULL: the file has no such table, or one of another form */
	size_t count;
	uint64_t base; /* the address of the table's section in the file */
};

/*
 * Finds the table. `elf` must outlive the result. The table is empty if the file has none, or if it has not the usual
 * form (sorted pairs of offsets with 4 bytes each).
 */
struct fde_table fde_table_read(Elf *elf);

/*
 * Finds the last function that begins at or before an address in the file. Returns false if there is none.
 *   start  receives the address at which the function begins
 */
bool fde_table_find(const struct fde_table *table, uint64_t address, uint64_t *start);

#endif
