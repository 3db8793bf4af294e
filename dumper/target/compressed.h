/*
 * Opens files that may be compressed. For example, systemd-coredump compresses cores with zstd.
 */
#ifndef RBDUMP_COMPRESSED_H
#define RBDUMP_COMPRESSED_H

#include <stdbool.h>

#include "base/error.h"

/*
 * Opens a regular file for reading. If the file is compressed with zstd, decompresses it into an unnamed temporary
 * file. The temporary file is in $TMPDIR, or in /var/tmp if TMPDIR is not set. Blocks of zeros become holes, which take
 * no disk space. The size limit for the decompressed file is 64 GiB. If a compressed file was cut short, the data
 * before the cut is decompressed. The program headers of a core say where the core ends, and decompression stops 16 MiB
 * after this end. If the decompressed data is not an ELF file, decompression stops after 16 MiB.
 *   fd            receives the descriptor of the file, or of the decompressed file; the caller closes the descriptor
 *   decompressed  receives whether the file was compressed with zstd. The checksum is at the end of the compressed
 *                 file. If decompression stopped before this end, the checksum was not checked, and the data may be
 *                 damaged
 * Fails with EXIT_NO_PERMISSION if the kernel refuses to open the file, and with EXIT_FAILED for any other reason. The
 * message names the file.
 */
struct error *compressed_open(const char *path, int *fd, bool *decompressed);

#endif
