/*
 * The first page of an ELF file: its program headers, which say where the rest is when it is mapped. A core has that
 * page of each program and library, where it does not have the file. Any bytes will do: what is read is checked.
 */
#ifndef RBDUMP_FIRST_PAGE_H
#define RBDUMP_FIRST_PAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As many as there is room for in a page of 4 KiB. */
#define FIRST_PAGE_HEADERS 72

struct first_page {
	Elf64_Phdr headers[FIRST_PAGE_HEADERS];
	size_t count;
	uint64_t base; /* the address that the page itself has in the ELF: of most it is 0 */
};

/* Returns false if it is no x86_64 program or library, or if its program headers are not in that page. */
bool first_page_read(const uint8_t *bytes, size_t length, struct first_page *ret);

/*
 * Whether an address of the ELF is in a page that is writable, at least until it is relocated: then the file need not
 * have what the memory has.
 */
bool first_page_is_written(const struct first_page *page, uint64_t address);

#endif
