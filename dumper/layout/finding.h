/*
 * What the self-test of a layout finds: one malloc'ed sentence; NULL means that nothing is wrong.
 */
#ifndef RBDUMP_FINDING_H
#define RBDUMP_FINDING_H

#include "vm/access.h"

/* Formats one like asprintf(); without memory, it is "out of memory". */
char *finding(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* That something cannot be read, and where that failed. */
char *unreadable(const struct access *access, const char *what);

#endif
