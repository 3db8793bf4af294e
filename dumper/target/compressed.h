/*
 * Opens files that may be compressed: systemd-coredump compresses cores with zstd.
 */
#ifndef RBDUMP_COMPRESSED_H
#define RBDUMP_COMPRESSED_H

#include "base/error.h"

/*
 * Opens a regular file for reading. A file that is compressed with zstd is decompressed into a file without a name, in
 * $TMPDIR, or in /var/tmp if TMPDIR is not set. Blocks of zeros become holes, which take no disk space. The
 * decompressed file may have at most 64 GiB. If a compressed file was cut short, the data before the cut is
 * decompressed. The program headers of a core tell where the core ends: decompression stops 16 MiB after that. For a
 * file that is not an ELF file, decompression stops after 16 MiB.
 *   fd  receives the descriptor, which the caller closes
 * Fails with EXIT_NO_PERMISSION if the kernel refuses to open the file. Otherwise, fails with EXIT_FAILED. The message
 * names the file.
 */
struct error *compressed_open(const char *path, int *fd);

#endif
