/*
 * Files that may be packed: a core as systemd-coredump keeps it is compressed with zstd.
 */
#ifndef RBDUMP_PACKED_H
#define RBDUMP_PACKED_H

#include "error.h"

/*
 * Opens a regular file for reading. One that is packed with zstd is unpacked into a file without a name, in $TMPDIR or
 * else /var/tmp; what is zero there is a hole, and takes no room. It may become 64 GiB long; what is cut short is
 * unpacked as far as it goes; of what lies behind the end that a core's program headers tell, 16 MiB are, and of what
 * is no core as much. *fd receives the descriptor, the caller's. Fails with EXIT_NO_PERMISSION if the file must not be
 * read, else with EXIT_FAILED; the sentence names the file.
 */
struct error *packed_open(const char *path, int *fd);

#endif
