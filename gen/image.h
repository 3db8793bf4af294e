/*
 * Reads an ELF file: its kind, the symbols that it defines, and the bytes at its addresses.
 *
 * The file may be hostile: all offsets and counts are checked, by libelf or by this module.
 */
#ifndef RBDUMP_IMAGE_H
#define RBDUMP_IMAGE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Checks that an open file is an ELF file that rbdump can read: an executable, a shared library or a relocatable
 * object, for x86_64. Fails with EXIT_FAILED; the message begins with `name`.
 */
struct error *image_check(const char *name, int fd);

/*
 * Copies a file into memory that nobody else can change (a sealed memfd). The copy is safe to map. If rbdump mapped the
 * file itself, and somebody truncated the file, SIGBUS would kill rbdump. Returns a file descriptor of the copy, which
 * the caller must close. On failure, returns -1 and sets errno. errno is EFBIG if the file is larger than 1 GiB (no
 * Ruby is that large).
 */
int image_copy(int fd);

/*
 * A partial copy of an ELF file. The copy contains only the headers, the symbol tables, the notes and the dynamic
 * section. These parts show the kind and the symbols of the file. All other bytes of the copy are zero.
 */
struct image_parts {
	Elf *elf; /* NULL if no file is open */
	void *bytes;
	size_t size; /* the size of the whole file */
};

/*
 * Makes a partial copy of an open file. False if the file cannot be read or is too large, or if image_check() would
 * refuse the file.
 */
bool image_parts_open(int fd, struct image_parts *ret);
void image_parts_close(struct image_parts *parts); /* also works on a zeroed struct */

/*
 * Whether the section with a given number is read-only. A symbol in a read-only section is a constant that the ELF file
 * contains. An executable can also define a symbol for a constant of a shared library. Such a symbol is in a writable
 * section, because the loader copies the constant into the executable (R_X86_64_COPY).
 */
bool image_is_constant(Elf *elf, size_t section);

/* Whether one of the symbol tables defines a constant named `name`. */
bool image_defines_constant(Elf *elf, const char *name);

/*
 * Copies the bytes at an address of the ELF file to `buffer`. False if the file does not contain all of these bytes. A
 * separate debug file contains none of these bytes.
 *   section   in a relocatable object, the section that `address` is relative to; otherwise 0
 */
bool image_read(Elf *elf, size_t section, uint64_t address, void *buffer, size_t length);

/*
 * Says why the .debug_info section of a file cannot be read. Returns a constant string, such as "cannot be read", that
 * completes the sentence "FILE has debug info, which ...". Returns NULL if the file has no such section. Call this
 * function only after an attempt to read the debug info has failed.
 */
const char *image_debug_info_obstacle(Elf *elf);

/*
 * Finds the nth entry with a given tag in the dynamic section, and returns the string of this entry. The tag is
 * DT_NEEDED, DT_RPATH or DT_RUNPATH; n counts from 0. NULL if there is no such entry. `elf` owns the string.
 */
const char *image_dynamic_string(Elf *elf, int64_t tag, size_t n);

#endif
