/*
 * Recognizes an ELF file that contains or uses Ruby, even if the file has no symbols. If a file contains Ruby, it also
 * contains a description: the text that `ruby --version` prints. If a file does not contain Ruby itself but uses Ruby,
 * the file needs a libruby. The results depend only on the file's contents.
 */
#ifndef RBDUMP_RUBY_FILE_H
#define RBDUMP_RUBY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Looks for the description of a Ruby in the read-only segments. A description begins with text such as
 * "ruby 3.4.5 (2025-07-16 …" or "ruby 2.7.4p191 (2021-07-07 …" (version.c, version.h, 1.9.3 to 4.0.5).
 *   elf  an Elf * that contains the file's headers
 *   fd   the same file, open for reading its contents
 * Returns the virtual address of the description, as in the program headers. Returns 0 if the file has no description,
 * or if there is not enough memory.
 */
uint64_t ruby_file_description(void *elf, int fd);

/*
 * Copies the version (such as "3.4.5") from the beginning of a description to `ret`. If the text is not a description,
 * or if the version does not fit into `size` bytes, sets `ret` to "" and returns false.
 */
bool ruby_file_version(const char *description, char *ret, size_t size);

/*
 * Whether an executable needs a libruby (DT_NEEDED). The dynamic linker loads this libruby before the executable runs.
 * `elf` points to an Elf.
 */
bool ruby_file_needs_libruby(void *elf);

#endif
