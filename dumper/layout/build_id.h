/*
 * Build-ids as layouts have them: in hexadecimal digits.
 */
#ifndef RBDUMP_BUILD_ID_H
#define RBDUMP_BUILD_ID_H

#include <sys/types.h>

/* The most bytes of a build-id, as libdwfl has it; usual are 20. */
#define BUILD_ID_MAX 64

/*
 * Writes a build-id of `length` bytes in digits, malloc'ed. NULL if there is none (length 0, or -1 for an error of
 * dwelf_elf_gnu_build_id()), if it is longer than BUILD_ID_MAX, and if out of memory.
 */
char *build_id_digits(const void *bits, ssize_t length);

#endif
