/*
 * The digest of a file. In the cache, rbdump keeps files for each Ruby. rbdump finds the files for a Ruby by the
 * build-id and the digest of the ELF file that contains the Ruby. The build-id alone is not enough: a target can forge
 * a build-id, but cannot make another file with the same digest.
 */
#ifndef RBDUMP_DIGEST_H
#define RBDUMP_DIGEST_H

#include <stdbool.h>

#define DIGEST_LENGTH 64 /* hexadecimal digits */

/*
 * Reads an open file from its beginning to its end, and sets `ret` to the SHA-256 of the file, in hexadecimal. Returns
 * false if the file cannot be read, if it is larger than 2 GiB (much larger than any Ruby), or if there is not enough
 * memory.
 */
bool digest_of_file(int fd, char ret[DIGEST_LENGTH + 1]);

#endif
