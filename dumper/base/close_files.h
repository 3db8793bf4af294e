/*
 * Closes many files at once. A child process calls close_files() immediately after fork().
 */
#ifndef RBDUMP_CLOSE_FILES_H
#define RBDUMP_CLOSE_FILES_H

/* Closes all open file descriptors from `first` to `last`, including `first` and `last`. */
void close_files(unsigned int first, unsigned int last);

#endif
