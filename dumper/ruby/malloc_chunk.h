/*
 * The length of memory that the C library has allocated. Only glibc's malloc() is recognized.
 */
#ifndef RBDUMP_MALLOC_CHUNK_H
#define RBDUMP_MALLOC_CHUNK_H

#include "ruby/access.h"

/*
 * How many words fit into the allocated memory that begins at `address`. The result is the number of words that the
 * program requested from malloc(), or up to three more. If malloc() has made a separate mapping for the memory, all
 * words up to the end of the mapping are counted. Returns 0 if the memory is not from glibc's malloc(), if the memory
 * and its header have more than `most` bytes, or if the header cannot be read. Never sets access->failed.
 */
uint64_t malloc_chunk_words(const struct access *access, uint64_t address, uint64_t most);

#endif
