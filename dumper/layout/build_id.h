/*
 * Converts build-ids to hexadecimal digits, the form in which layouts contain build-ids.
 */
#ifndef RBDUMP_BUILD_ID_H
#define RBDUMP_BUILD_ID_H

#include <sys/types.h>

/* The maximum length of a build-id, in bytes; the same maximum as in libdwfl. Most build-ids have 20 bytes. */
#define BUILD_ID_MAX 64

/*
 * Returns a build-id of `length` bytes as a malloc'ed string of hexadecimal digits. Returns NULL if there is no
 * build-id, if the build-id is longer than BUILD_ID_MAX, or if there is not enough memory. If `length` is 0 or -1 (the
 * error value of dwelf_elf_gnu_build_id()), there is no build-id.
 */
char *build_id_digits(const void *bits, ssize_t length);

#endif
