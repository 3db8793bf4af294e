/*
 * Closing many files at once, in a process that was just forked.
 */
#ifndef RBDUMP_CLOSE_FILES_H
#define RBDUMP_CLOSE_FILES_H

/* Closes what is open from `first` to `last`, both included, if anything is. */
void close_files(unsigned int first, unsigned int last);

#endif
