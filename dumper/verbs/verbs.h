/*
 * The verbs: `rbdump VERB …`. Each function reads the command line of its verb (argv[0] is the verb's name), does the
 * work, and returns the exit status.
 */
#ifndef RBDUMP_VERBS_H
#define RBDUMP_VERBS_H

#include <stdbool.h>

/*
 * dump is the default verb: `rbdump PID` and `rbdump -p PID` also call dump_command(). dump_command() also handles the
 * old options --gen-offsets and --version. The verbs layout and version now do what these options did before.
 */
int dump_command(int argc, char **argv);
int layout_command(int argc, char **argv);
int record_command(int argc, char **argv);
int report_command(int argc, char **argv);
int experiment_command(int argc, char **argv);
int version_command(int argc, char **argv);

/*
 * Makes the layout of a Ruby and writes it.
 *   elf        an executable, shared library, debug file or object file (gen/gen.h says how these are read)
 *   output     the file to write; "-": stdout; NULL: a file in the default folder. The name of the file in the default
 *              folder is VERSION-ARCH-BUILDID.layout, where BUILDID is the first 12 digits of the build-id. If
 *              `any_build` is true, the name is VERSION-ARCH.layout
 *   any_build  make a layout for any build of this version: omit the build-id, the symbols and the windows
 *
 * The default folder is one where `rbdump dump` will find the layout. It is the first folder of $RBDUMP_OFFSETS_D if
 * that variable is set. If RBDUMP_OFFSETS_D is not set, or if its first folder is empty, the default folder is
 * ./offsets.d if that belongs to rbdump's own tree, and the user's cache (store/folders.h) if not. The default folder is
 * created if it does not exist.
 *
 * The layout is written to a temporary file in the same folder. The temporary file is then renamed. So the layout's
 * file is complete at any time. On success, prints one line to stderr: `FILE: N fields, M absent (optional)`. On
 * failure, prints one sentence, and leaves no file behind.
 */
int layout_make(const char *elf, const char *output, bool any_build);

#endif
