/*
 * Closes many files at once. Used by a child directly after fork().
 */
#ifndef RBDUMP_CLOSE_FILES_H
#define RBDUMP_CLOSE_FILES_H

/* Closes all open file descriptors from `first` to `last`, both included. */
void close_files(unsigned int first, unsigned int last);

#endif
