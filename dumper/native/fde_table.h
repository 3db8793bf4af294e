/*
 * The sorted table of the functions in an ELF file (.eh_frame_hdr). The linker makes this table for unwinders, so
 * stripped files have the table, too. rbdump uses only the addresses at which the functions begin.
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
	const uint8_t *entries; /* owned by the Elf object; NULL if the file has no table of the usual form */
	size_t count;
	uint64_t base; /* the address of .eh_frame_hdr, without the load bias */
};

/*
 * Finds the table. `elf` must outlive the result. The result is empty if the file has no table, or if the table does
 * not have the usual form. A table of the usual form contains sorted pairs of offsets, with 4 bytes per offset.
 */
struct fde_table fde_table_read(Elf *elf);

/*
 * Finds the last function that begins at or before an address in the file. Returns false if there is no such function.
 *   start  receives the address at which the function begins
 */
bool fde_table_find(const struct fde_table *table, uint64_t address, uint64_t *start);

#endif
