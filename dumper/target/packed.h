/*
 * Opens files that may be packed (compressed): systemd-coredump packs cores with zstd.
 */
#ifndef RBDUMP_PACKED_H
#define RBDUMP_PACKED_H

#include "base/error.h"

/*
 * Opens a regular file for reading. A file that is packed with zstd is unpacked into a file without a name, in $TMPDIR,
 * or in /var/tmp if TMPDIR is not set. Blocks of zeros become holes, which take no disk space. The unpacked file may
 * have at most 64 GiB. If a packed file was cut short, its remaining data is unpacked. The program headers of a core
 * tell where the core ends. Unpacking stops 16 MiB after that end. Unpacking a file that is not an ELF file stops after
 * 16 MiB.
 *   fd  receives the descriptor, which the caller closes
 * Fails with EXIT_NO_PERMISSION if the kernel refuses to open the file. Otherwise, fails with EXIT_FAILED. The message
 * names the file.
 */
struct error *packed_open(const char *path, int *fd);

#endif
