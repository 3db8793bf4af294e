/*
 * Closes many files at once. A child process calls these functions immediately after fork().
 */
#ifndef RBDUMP_CLOSE_FILES_H
#define RBDUMP_CLOSE_FILES_H

#include <stddef.h>

/* Closes all open file descriptors from `first` to `last`, including `first` and `last`. */
void close_files(unsigned int first, unsigned int last);

/* The maximum of `count` for close_files_except(). */
#define CLOSE_EXCEPT_MAX 1024

/* Closes all open file descriptors above standard error, except the `count` descriptors in `kept`. */
void close_files_except(const int *kept, size_t count);

#endif
