/*
 * Looks on this system for the files that the process of a core had mapped. Checks whether each file that was found is
 * really the file that was mapped. Uses these files to read the memory that the core omits.
 */
#ifndef RBDUMP_CORE_FILES_H
#define RBDUMP_CORE_FILES_H

#include "target/core_parts.h"

/*
 * Returns the build-id of an open file, as malloc'ed hexadecimal digits. Returns NULL if the file has no build-id, or
 * if there is not enough memory.
 */
char *core_build_id_of(int fd);

/*
 * Whether the open file `fd` is the mapped file `file`. If the core has a build-id for the mapped file, the open file
 * must have the same build-id. If the core has no build-id for the mapped file, two conditions must be met: the open
 * file also has no build-id, and its first page equals the first page of the mapped file in the core. The first page
 * contains the ELF headers.
 */
bool core_file_fits(const struct target *target, const struct core_file *file, int fd);

/*
 * Opens a file for reading, but only if it is a regular file, because a path from a core may lead to a device or a
 * pipe. Returns the descriptor, which the caller closes. On failure, returns -1 and sets errno; errno is 0 if the file
 * is not a regular file.
 */
int core_open_regular(const char *path);

/*
 * Reads a page that the core omits. The bytes come from the file that was mapped at that page. Returns false if no file
 * was mapped at that page, or if the page was writable. Also returns false if the file is missing on this system, or if
 * the path of the file now leads to another file.
 */
bool core_read_from_file(const struct target *target, uint64_t page, uint8_t *buffer);

/*
 * Implements target_open_file() for a core. If the user gave an executable, and rbdump uses it as the file that
 * `mapping` maps, opens the executable. Otherwise, opens the file at the mapping's path on this system, but only if
 * that file is the file that was mapped.
 */
int core_open_file(const struct target *target, const struct mapping *mapping);

#endif
