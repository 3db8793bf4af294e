/*
 * Reads the program headers in the first page of an ELF file. The program headers say where the rest of the file is
 * mapped. A core contains the first page of each program and library, even if the core omits the rest of the file. The
 * page may contain arbitrary bytes, so every value that is read from the page is checked.
 */
#ifndef RBDUMP_FIRST_PAGE_H
#define RBDUMP_FIRST_PAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number of program headers that fit into a page of 4 KiB. */
#define FIRST_PAGE_HEADERS 72

struct first_page {
	Elf64_Phdr headers[FIRST_PAGE_HEADERS];
	size_t count;
	uint64_t base; /* the virtual address (p_vaddr) of the first byte of the file: usually 0 */
};

/*
 * Reads the program headers from the first `length` bytes of a file. Returns false if the file is not an x86_64 program
 * or library, or if these bytes do not contain all program headers of the file.
 */
bool first_page_read(const uint8_t *bytes, size_t length, struct first_page *ret);

/*
 * Whether a virtual address of the ELF file is in a page that is writable, or that was writable until relocation was
 * done (RELRO). In memory, such a page may differ from the file.
 */
bool first_page_is_written(const struct first_page *page, uint64_t address);

#endif
