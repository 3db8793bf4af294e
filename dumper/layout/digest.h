/*
 * The digest of a file: what is kept for a Ruby is kept under it. A target can choose which build-id its file states,
 * but not which other file has the same digest.
 */
#ifndef RBDUMP_DIGEST_H
#define RBDUMP_DIGEST_H

#include <stdbool.h>

#define DIGEST_LENGTH 64 /* hexadecimal digits */

/*
 * Reads an open file from its beginning to its end and gives its SHA-256. False if it cannot be read, or is larger than
 * any Ruby (2 GiB).
 */
bool digest_of_file(int fd, char ret[DIGEST_LENGTH + 1]);

#endif
