/*
 * The files that were mapped where a core was made: which of them are here, and the same; and what is read from them
 * where the core leaves it out.
 */
#ifndef RBDUMP_CORE_FILES_H
#define RBDUMP_CORE_FILES_H

#include "target/core_parts.h"

/* The build-id of an open file: malloc'ed digits; NULL if it has none. */
char *core_build_id_of(int fd);

/* Whether an open file is what was mapped, as far as can be told: by build-id, or by the page that has the headers. */
bool core_file_fits(const struct target *target, const struct core_file *file, int fd);

/* Opens a regular file; the names in a core can be those of anything. Returns -1 with errno, 0 if it is something else.
 */
int core_open_regular(const char *path);

/* A page that the core leaves out, from the file that was mapped there and not written to. False if there is none. */
bool core_read_from_file(const struct target *target, uint64_t page, uint8_t *buffer);

#endif
