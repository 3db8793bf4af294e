/*
 * Symbolizes addresses of a process or a core. The function at an address, and the offset of the address from the start
 * of this function, come from a symbol table. This table is in the mapped file, in its debug file, or in the compressed
 * section .gnu_debugdata of the mapped file. The inlined functions, the source file and the line come from debug info.
 * The debug info is in the mapped ELF file, or in a separate debug file. rbdump finds the debug file with the debuglink,
 * in the build-id folders, or with debuginfod.
 *
 * rbdump symbolizes addresses without stopping the process. Only symbolizer_open() reads the process, so symbolize()
 * also works after the process has ended. rbdump reads a file's symbols and debug info when an address in the file is
 * symbolized for the first time.
 *
 * The files may be hostile, so a child process with almost no privileges reads them (trust/confine.h). The first call of
 * symbolize() starts the child. If DEBUGINFOD_URLS is set and not empty, the child may also use sockets, start threads
 * and write files, because libdebuginfod runs in it. If rbdump runs as root, no server is asked if any of the files
 * belongs to another user, or if the process may see other files than rbdump (live_shares_files()). Servers that do not
 * answer in time are not asked again.
 *
 * If the child takes too long, or ends, symbolize() still finds the mapped file of an address, and symbolizer_lacks()
 * says why names are missing. All functions of one symbolizer must be called by the same thread.
 */
#ifndef RBDUMP_SYMBOLIZE_H
#define RBDUMP_SYMBOLIZE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "native/symbolized.h"
#include "target/target.h"

struct symbolizer;

/*
 * Opens the mapped files of a process. Fails if there is no such process, if access is refused, or if there is not
 * enough memory.
 *   wait_ms  for how many milliseconds, in all, symbolize() waits for answers of the child, until symbolizer_renew().
 *            Servers may take half of that
 */
struct error *symbolizer_open(pid_t pid, unsigned int wait_ms, struct symbolizer **ret);

/*
 * Looks on this system for the files that the process of a core had mapped, and opens only those that
 * target_open_file() accepts (target/core_files.h). `core` must outlive the result. Fails if there is not enough
 * memory.
 */
struct error *symbolizer_of_core(struct target *core, unsigned int wait_ms, struct symbolizer **ret);
void symbolizer_close(struct symbolizer *symbolizer); /* NULL is fine */

/* Prepares for another look: answers are waited for as long as before. A child that has ended is not started again. */
void symbolizer_renew(struct symbolizer *symbolizer);

/*
 * Why names may be missing from the results, for example because a server did not answer; NULL if there is no reason.
 * The string is valid until the next call of a function of this symbolizer.
 */
const char *symbolizer_lacks(const struct symbolizer *symbolizer);

/*
 * Symbolizes an address. Returns false if no ELF file is mapped at the address, for example because a JIT compiler
 * generated the code there. When symbolize() returns false, *ret is all zero. The results for recent addresses are
 * cached.
 */
bool symbolize(struct symbolizer *symbolizer, uint64_t address, struct symbolized *ret);

#endif
