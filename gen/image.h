/*
 * An ELF file as a program's image: what it is, what it defines, and the bytes at its addresses.
 *
 * The file may be hostile: all offsets and counts are checked, by libelf or here.
 */
#ifndef RBDUMP_IMAGE_H
#define RBDUMP_IMAGE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Checks that an open file is an ELF file that rbdump can read: x86_64, and an executable, a shared library or a
 * relocatable object. Returns NULL, or a malloc'ed sentence that begins with the name.
 */
char *image_check(const char *name, int fd);

/*
 * Copies a file into memory that nobody else can change (a sealed memfd), so that what is read stays as it is: a file
 * that is mapped and cut short meanwhile would end rbdump by SIGBUS.
 * Returns a descriptor, or -1 with errno: EFBIG if the file is larger than any Ruby (1 GiB).
 */
int image_copy(int fd);

/*
 * What is needed of an ELF file to know what it is and what it defines, copied to memory of this process: headers,
 * symbol tables, notes and the dynamic section. All else reads as zeros.
 */
struct image_parts {
	Elf *elf; /* NULL: none */
	void *bytes;
	size_t size; /* of the whole file */
};

/* Fails with false: it cannot be read, or is no ELF file that image_check() would take. */
bool image_parts_open(int fd, struct image_parts *ret);
void image_parts_close(struct image_parts *parts); /* all-zero is fine */

/*
 * Whether a section, by its number, is memory that is not written to. A constant of a shared library may have a symbol
 * in the executable, too, where the loader copies it to (R_X86_64_COPY): that is writable.
 */
bool image_is_constant(Elf *elf, size_t section);

/* Whether one of the symbol tables defines a constant of that name. */
bool image_defines_constant(Elf *elf, const char *name);

/*
 * Copies bytes from an address as in the ELF file.
 *   section   of a relocatable object, the section that the address is relative to; else 0
 * False if the file does not hold all of them (as a separate debug file does not).
 */
bool image_read(Elf *elf, size_t section, uint64_t address, void *buffer, size_t length);

/*
 * Why a file that has a .debug_info section cannot be read: NULL if it has none, else words that follow "which ", owned
 * by nobody.
 */
const char *image_debug_info_obstacle(Elf *elf);

/* The dynamic section's string for an entry that names one: DT_NEEDED (the nth, from 0), DT_RPATH, DT_RUNPATH.
 * NULL if there is none. Owned by the Elf. */
const char *image_dynamic_string(Elf *elf, int64_t tag, size_t n);

#endif
