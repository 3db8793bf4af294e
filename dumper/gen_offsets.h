/*
 * The verb `rbdump --gen-offsets ELF [-o FILE] [--any-build]`: makes a layout file from a Ruby's debug info.
 */
#ifndef RBDUMP_GEN_OFFSETS_H
#define RBDUMP_GEN_OFFSETS_H

#include <stdbool.h>

/*
 * Makes the layout of a Ruby and writes it.
 *   elf        an executable, shared library, debug file or object file (gen/gen.h says how it is read)
 *   output     the file to write, "-" for stdout; NULL for a file of its own name, VERSION-ARCH-BUILDID.layout with the
 *              first 12 digits of the build-id (without them for any build), in a folder in which `rbdump -p` will
 *              find it: the first of $RBDUMP_OFFSETS_D if that is set, else ./offsets.d if there is one (as in
 *              rbdump's own tree), else the user's cache (layout/find.h). It is made if it is not there.
 *   any_build  make it for any build of this version: without build-id, symbols and windows
 * The file is written beside its place and renamed, so that it is there whole or not at all. On success one line is
 * written to stderr: `FILE: N fields, M absent (optional)`; on failure one sentence, and nothing is left behind.
 * Returns an exit status (error.h).
 */
int gen_offsets_main(const char *elf, const char *output, bool any_build);

#endif
