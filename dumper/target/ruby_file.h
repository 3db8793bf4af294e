/*
 * How an ELF file can be told to have to do with Ruby without any symbol: by the text that `ruby --version` prints,
 * which each has, and by the libruby that it needs. Pure over the file.
 */
#ifndef RBDUMP_RUBY_FILE_H
#define RBDUMP_RUBY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Looks for a description in what the file has of constants and code: "ruby 3.4.5 (2025-07-16 …", "ruby 2.7.4p191
 * (2021-07-07 …" (version.c, version.h, 1.9.3 to 4.0.5).
 *   elf  an Elf *, of which the headers are there
 *   fd   the same file, open: its contents are read from there
 * Returns its address in the ELF; 0 if there is none.
 */
uint64_t ruby_file_description(void *elf, int fd);

/*
 * The version at the beginning of a description, "3.4.5". Returns false, and "", if it is none.
 */
bool ruby_file_version(const char *description, char *ret, size_t size);

/* Whether an executable needs a libruby (DT_NEEDED), which then is loaded before it runs. */
bool ruby_file_needs_libruby(void *elf);

#endif
